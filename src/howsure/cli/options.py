"""The options of commands: how a table is read, what is printed and written."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from howsure.cli.flags import COLUMNS, OUTPUT, address
from howsure.core.arrays import check_fractions
from howsure.core.errors import InputError
from howsure.core.options import SHARE, Described, described, option, options_set, words_of
from howsure.inputs.roles import ROLES
from howsure.streaming.large import Large

if TYPE_CHECKING:
    from howsure.inputs import ColumnUse, Loaded

LIMITS: Final = "Limits"
_READING: Final = "How tables are read"


def check_shares(value: Any, name: str) -> Any:
    """One share strictly between 0 and 1, or several in a list."""
    check_fractions(() if value is None else value, name)
    return value


_output = functools.partial(option, panel=OUTPUT)
_written = functools.partial(option, panel=OUTPUT, usual=True)
_limit = functools.partial(option, panel=LIMITS)
_usual = functools.partial(option, usual=True)
_reading = functools.partial(option, panel=_READING)
_csv_safe = functools.partial(
    _output,
    "Put ' before cells that begin with = + - or @, so that no spreadsheet runs them.",
    verbs="assess recalibrate improve conformal",
    default=False,
)
_delta = functools.partial(
    option, "With pac: probability that coverage falls short.", rule=SHARE, default=0.05
)
_too_few = functools.partial(
    option, "With too few held-out rows: infinite intervals and sets of all classes, or an error."
)


@described
class ReportFlags(Described):
    """What of an assessment is printed, and what is written."""

    output: Sequence[Path] = _written(
        "File to write: .html, .json, .md, .csv or .card.md.",
        flag="-o --output",
        metavar="FILE",
        default=(),
    )
    all: bool = _written("Print every number.", default=False)
    quiet: bool = _output("Print nothing; only write the files named with -o.", default=False)
    json: bool = _written("Print only the report as JSON.", default=False)
    progress: bool | None = _output("Show progress. By default, only in a terminal.")
    csv_safe: bool = _csv_safe()

    @property
    def printed(self) -> str:
        """How much is printed, by the one flag that says so."""
        names = [name for name in ("all", "quiet", "json") if getattr(self, name)]
        if len(names) > 1:
            raise InputError(
                f"--{names[0]} and --{names[1]} contradict each other: give one of them"
            )
        return names[0] if names else "brief"


@described
class TableFlags(Described):
    """Where a new table is written, and what was learnt."""

    output: Path | None = _written(
        "File for the new table. For several tables, a folder: one file of the same name per "
        "table.",
        flag="-o --output",
    )
    keep: Path | None = _written("Save the fit as .json, for --calibration in a later run.")
    csv_safe: bool = _csv_safe()


@described
class FitFlags(Described):
    """How predictions are recalibrated."""

    method: str | None = _usual(
        "Recalibration method, such as the one in the advice of assess; best tries all. If "
        "omitted, the kind of prediction decides.",
        tools="recalibrate",
        metavar="NAME",
    )
    by: tuple[str, ...] = _usual(
        "Recalibrate within the groups of these columns.", tools="recalibrate", default=()
    )
    since: str | None = option(
        "Use only calibration rows since this time.", tools="recalibrate", metavar="TIME"
    )
    too_few: Literal["infinite", "error"] = _too_few(default="infinite")
    rank: Literal["conformal", "paper", "pac"] = option(
        "Guarantee of conformal methods. conformal: coverage on average; pac: coverage with "
        "confidence 1 - delta; paper: as published.",
        default="conformal",
    )
    delta: float = _delta()
    levels: tuple[str, ...] = option("Quantile levels to write, such as 0.05,0.5,0.95.", default=())


@described
class ConformalFlags(Described):
    """How label sets and intervals are built."""

    method: str | None = _usual(
        "Label sets: lac, aps, raps, saps, o_lac, o_saps. Intervals: cp, cp_a, pac, cqr, "
        "o_cpa, o_pac. Those with o_ need --ease.",
        metavar="NAME",
    )
    bins: int | None = option(
        "Bins by ease; if omitted, chosen from the calibration rows.", least=2
    )
    penalty: float | None = option(
        "Penalty λ of raps, saps and o_saps; if omitted, tuned on half of the rows."
    )
    delta: float = _delta()
    too_few: Literal["infinite", "error"] = _too_few(default="error")


@described
class CurveFlags(Described):
    """What of a characteristics curve is shown."""

    x_axis: Literal["bandwidth", "excess"] = _usual(
        "Width axis: half the mean width (bandwidth), or mean distance inside (excess).",
        default="bandwidth",
    )
    y_axis: Literal["miss_rate", "deficit"] = _usual(
        "Miss axis: the miss_rate, or the mean distance outside (deficit).", default="miss_rate"
    )
    want: Sequence[str] = _usual(
        "Operating point to find, such as miss_rate=0.1.", metavar="NAME=NUMBER", default=()
    )
    miss_cost: float | None = _usual(
        "Cost of a miss (or of a unit of deficit), as a width in units of y. By default, that "
        "of the interval score.",
        metavar="WIDTH",
    )
    cost_weight: float | None = option(
        "Instead: weight of the width axis; the miss axis has weight 1 - SHARE.", metavar="SHARE"
    )
    miss_range: tuple[float, float] | None = option(
        "Range of miss rates (or deficits) of areas and gains; 0 0.2 for miss rates.",
        flag="--miss-range --range",
        metavar="LOW HIGH",
    )
    bootstrap: int = _usual("Bootstrap resamples; 0 for no confidence intervals.", default=1000)
    plot: Path | None = _written("Plot the curves to a .png, .svg or .pdf file.")


@described
class LimitFlags(Described):
    """Where limits stand, and those of any measure."""

    limits: Path | None = _limit(
        "TOML file of limits. Without any limits, those of pyproject.toml are used.", usual=True
    )
    least: Sequence[str] = _limit(
        "Least value of a measure.", usual=True, flag="--min", metavar="MEASURE=LIMIT", default=()
    )
    most: Sequence[str] = _limit(
        "Greatest value of a measure.",
        usual=True,
        flag="--max",
        metavar="MEASURE=LIMIT",
        default=(),
    )


@described
class NamedLimits(Described):
    """Limits that have flags of their own."""

    min_coverage: float | None = _limit("Least empirical coverage.", usual=True)
    max_coverage: float | None = _limit("Greatest empirical coverage.")
    max_interval_score: float | None = _limit("Greatest mean interval score.")
    max_crps: float | None = _limit("Greatest mean CRPS.", usual=True)
    max_brier: float | None = _limit("Greatest Brier score of class probabilities.")
    max_mae: float | None = _limit("Greatest mean absolute error.", usual=True)
    max_mean_width: float | None = _limit("Greatest mean width.")
    min_skill: float | None = _limit("Least skill against the {baseline} (0.1 = 10 %).")
    max_drift: float | None = _limit("Greatest change of coverage over time (0.01 = 1 point).")
    max_outside: float | None = _limit("Greatest share of rows outside the {reference}.")
    max_flagged: float | None = _limit(
        "Greatest share of flagged rows among those inside the {reference}."
    )
    max_outside_drift: float | None = _limit(
        "Greatest change over time in the share of rows outside the {reference}."
    )


@described
class OutcomeFlags(Described):
    """How the outcome of a check is printed and written."""

    json: bool = _written("Print the outcome as JSON.", default=False)
    junit: Path | None = _written("Write the outcome as JUnit XML.")
    sarif: Path | None = _output("Write failures and possible problems as SARIF.")
    github: bool | None = _output(
        "Annotate the GitHub run and add to its summary. By default, only inside one."
    )
    repeated: bool = _limit(
        "Explain what daily checks of new rows do to the error rate of limits.", default=False
    )

    @property
    def written(self) -> list[Path]:
        """The files that are written."""
        return [*filter(None, (self.junit, self.sarif))]


@described
class ReadOptions(Described):
    """What the reader is told: of columns by their roles, and the flags that are its fields."""

    at: Sequence[float] = option(
        "Coverages to assess, such as 0.9, if predictions give intervals of any coverage.",
        panel=COLUMNS["outcome"],
        tools="assess check",
        rule="howsure.cli.options:check_shares",
        default=(),
    )
    missing: Literal["error", "drop"] = _reading(
        "Rows with missing values: stop with an error, or drop them.",
        tools="assess check recalibrate improve",
        default="error",
    )
    common_rows: bool = _reading(
        "Compare models on the rows predicted by all of them, matched by {rows}.",
        tools="assess",
        default=False,
    )
    crossing: Literal["error", "sort"] = _reading(
        "Quantiles or ends of intervals that cross: stop with an error, or sort them.",
        default="error",
    )
    encoding: str | None = _reading("Encoding of text files, such as latin-1.")
    decimal: Literal[".", ","] = _reading("Decimal mark of text files.", default=".")
    large: Any = option(
        "How tables too large for memory are read.",
        kind=Large,
        verbs="assess check recalibrate improve conformal characteristic",
    )
    columns: Any = field(default_factory=dict, metadata={"roles": ROLES})

    def __post_init__(self) -> None:
        object.__setattr__(self, "large", self.large or Large())
        Described.__post_init__(self)

    @property
    def assessed(self) -> list[float]:
        """The coverages to assess; empty leaves the choice to the content."""
        coverages: Any = self.columns.get("coverage")
        return list(self.at or coverages or ())

    @property
    def reading(self) -> dict[str, Any]:
        """How cells are read, alike of calibration rows and new ones."""
        names = ("missing", "crossing", "encoding", "decimal")
        return {name: getattr(self, name) for name in names}

    def words(self, without: Collection[str] = ()) -> list[str]:
        """The words that read another table alike, but for some roles and options."""
        words: list[str] = []
        for role in ROLES:
            columns: Any = None if role.name in without else self.columns.get(role.name)
            for column in columns if isinstance(columns, list) else [columns]:
                words += [] if column is None else [role.option, str(column)]
        return [*words, *words_of(replace(self, large=Large()), without)]

    def load(self, source: Any, seed: int = 0) -> Loaded:
        """Read a file, or several, as these options say; by parts where that is asked for."""
        options: Any = {**self.reading, **self.columns}
        self._check_words(source)
        table = source[0] if isinstance(source, list) and len(source) == 1 else source
        if isinstance(table, Path) and not self.common_rows:
            from howsure.streaming import load_parts

            return load_parts(address(table), large=self.large, at=self.at, seed=seed, **options)
        for item, _ in options_set(self.large):
            raise InputError(
                f"{item.typed} cannot be given: models are compared row by row, which needs "
                "whole tables"
            )
        from howsure.inputs import load

        return load(source, common_rows=self.common_rows, **options)

    def _check_words(self, source: Any) -> None:
        """Refuse the second of several columns, where it stands as if it were a file."""
        for role in ROLES if isinstance(source, list) else ():
            columns: Any = self.columns.get(role.name) if role.many and not role.repeats else None
            for path in source[1:] if columns else ():
                if not path.suffix and not os.path.exists(path):
                    raise InputError(
                        f"{path}: no such file; if it is a column, join the columns with commas: "
                        f"{role.option} {columns},{path}"
                    )

    def refuse_common_rows(self) -> None:
        """Refuse the rule for rows of several models, where one is read."""
        if self.common_rows:
            raise InputError("--common-rows needs several models, and only one is read here")

    def explain(self, source: Any) -> tuple[ColumnUse, ...]:
        """How the columns would be read, from their names alone; of parts, from the first rows."""
        from howsure.inputs import explain
        from howsure.inputs.sources import is_huge
        from howsure.inputs.tables import cut

        self._check_words(source)
        options: Any = {"encoding": self.encoding, "decimal": self.decimal, **self.columns}
        if isinstance(source, Path) and is_huge(address(source), sys.maxsize):
            return cut(address(source), **options).explanation
        return explain(source, **options)
