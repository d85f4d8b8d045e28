"""The options of several commands: how a table is read, what is found, what is written."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    get_origin,
    get_type_hints,
)

import typer

from howsure.core.errors import InputError
from howsure.inputs.roles import ROLES, Columns, Role

if TYPE_CHECKING:
    from howsure.inputs import ColumnUse, Loaded
    from howsure.streaming import Large
    from howsure.topics.congruence.view import CongruenceOptions

R = TypeVar("R")
_COLUMNS: Final = {
    "outcome": "Columns: outcome and predictions",
    "prediction": "Columns: outcome and predictions",
    "doubt": "Columns: outcome and predictions",
    "inputs": "Columns: model inputs",
    "rows": "Columns: groups, time, weights",
    "order": "Columns: models and rows",
    "long": "Columns of long tables",
}

output_flag = functools.partial(typer.Option, rich_help_panel="Output")
file_flag = functools.partial(output_flag, metavar="FILE")
finding_flag = functools.partial(typer.Option, rich_help_panel="Findings")
limit_flag = functools.partial(typer.Option, rich_help_panel="Limits")
reading_flag = functools.partial(typer.Option, rich_help_panel="How tables are read")
parts_flag = functools.partial(typer.Option, rich_help_panel="Tables too large for memory")
congruence_flag = functools.partial(typer.Option, rich_help_panel="Conditional congruence")
"""Flags, each in the panel of the help where it stands."""

_BOUNDS: Final = {
    "min_coverage": "Least empirical coverage.",
    "max_coverage": "Greatest empirical coverage.",
    "max_interval_score": "Greatest mean interval score.",
    "max_crps": "Greatest mean CRPS.",
    "max_mae": "Greatest mean absolute error.",
    "max_mean_width": "Greatest mean width.",
    "min_skill": "Least skill against the --baseline (0.1 = 10 %).",
    "max_drift": "Greatest change of coverage over time (0.01 = 1 point).",
    "max_outside": "Greatest share of rows outside the --reference.",
    "max_flagged": "Greatest share of flagged rows among those inside the --reference.",
    "max_outside_drift": "Greatest change over time in the share of rows outside the --reference.",
}
"""Limits that have flags of their own."""

# As in Python (`howsure.verdict.TOLERANCE`), so that help is shown without loading the library.
TOLERANCE, CONFIDENCE = 0.01, 0.95
"""What is too small to count as a fault, and the level of confidence, if nothing is said."""


def share(param: typer.CallbackParam, value: Any) -> Any:
    """Refuse, before any work, what is no share strictly between 0 and 1; several are a list."""
    from howsure.core.arrays import check_fraction

    for number in value if isinstance(value, list | tuple) else [value]:
        if number is not None:
            check_fraction(number, f"--{param.name}".replace("_", "-"))
    return value


def miss_rates(param: typer.CallbackParam, value: Any) -> Any:
    """Refuse, before any work, what is no rising range of miss rates."""
    from howsure.engine.metric import check_miss_range

    return value if value is None else check_miss_range(value, f"--{param.name}".replace("_", "-"))


def cells_by_ease(param: typer.CallbackParam, value: Any) -> Any:
    """Refuse, before any work, cells of which no line can be drawn."""
    from howsure.core.convert import check_whole

    return value if value is None else check_whole(value, f"--{param.name}", 3)


Outputs = Annotated[
    list[Path],
    file_flag(
        "-o", "--output", help="File to write: .html, .json, .md, .csv or .card.md. Repeatable."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random draws.")]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="Table of predictions: a file, folder, quoted pattern or URL. Each further table is "
        "another model.",
    ),
]
Confidence = Annotated[
    float, typer.Option(callback=share, help="Confidence level of all confidence intervals.")
]
Tolerance = Annotated[
    float,
    finding_flag(callback=share, help="Largest coverage error to ignore (0.01 = 1 point)."),
]
MissRates = Annotated[
    tuple[float, float] | None,
    finding_flag(
        "--miss-range",
        callback=miss_rates,
        metavar="LOW HIGH",
        help="Range of miss rates for comparison with a constant width; 0 to 0.2 if omitted.",
    ),
]
Baseline = Annotated[
    str,
    finding_flag(
        metavar="NAME",
        help="Baseline for skill: climatology (the distribution of y; the default), persistence, "
        "seasonal, or the name of a model.",
    ),
]
Lead = Annotated[
    int | None,
    finding_flag(
        metavar="N",
        help="Lead time of all rows, in steps of --time; needed for skill against persistence.",
    ),
]
Season = Annotated[
    int | None,
    finding_flag(
        metavar="N", help="Steps of --time per season; if omitted, derived from the dates."
    ),
]
Ignored = Annotated[
    list[str],
    finding_flag("--ignore", metavar="ID", help="Leave out the finding with this id. Repeatable."),
]
CsvSafe = Annotated[
    bool,
    output_flag(
        "--csv-safe",
        help="Put ' before cells that begin with = + - or @, so that no spreadsheet runs them.",
    ),
]
NoRows = Annotated[
    bool,
    output_flag(
        "--no-rows",
        help="For personal data: omit names, values and pictures of single rows, and results on "
        "fewer than 10 rows.",
    ),
]
Trials = Annotated[
    bool,
    finding_flag(
        "--trials/--no-trials",
        help="Try recalibration methods and measure their gain in five-fold cross-validation.",
    ),
]
All = Annotated[bool, output_flag("--all", help="Print every number.")]
Quiet = Annotated[
    bool,
    output_flag("--quiet", help="Print nothing; only write the files named with -o."),
]
Json = Annotated[
    bool,
    output_flag("--json", help="Print only the report as JSON."),
]
Progress = Annotated[
    bool | None,
    output_flag("--progress/--no-progress", help="Show progress. By default, only in a terminal."),
]


@dataclass(frozen=True)
class ReadOptions:
    """What the reader is told: of columns by their roles, and the flags that are its fields."""

    at: Annotated[
        list[float],
        typer.Option(
            help="Coverage to assess, if predictions give intervals of any coverage. Repeatable.",
            callback=share,
            rich_help_panel=_COLUMNS["outcome"],
        ),
    ] = field(default_factory=list)
    missing: Annotated[
        Literal["error", "drop"],
        reading_flag(help="Rows with missing values: stop with an error, or drop them."),
    ] = "error"
    common_rows: Annotated[
        bool,
        reading_flag(
            "--common-rows",
            help="Compare models on the rows predicted by all of them, matched by --row-id.",
        ),
    ] = False
    crossing: Annotated[
        Literal["error", "sort"],
        reading_flag(
            help="Quantiles or ends of intervals that cross: stop with an error, or sort them."
        ),
    ] = "error"
    encoding: Annotated[
        str | None,
        reading_flag(help="Encoding of text files, such as latin-1."),
    ] = None
    decimal: Annotated[
        Literal[".", ","],
        reading_flag(help="Decimal mark of text files."),
    ] = "."
    columns: Columns = field(default_factory=Columns)

    @property
    def assessed(self) -> list[float]:
        """The coverages to assess; empty leaves the choice to the content."""
        coverages: Any = self.columns.get("coverage")
        return self.at or coverages or []

    @property
    def reading(self) -> dict[str, Any]:
        """How cells are read, alike of calibration rows and new ones."""
        names = ("missing", "crossing", "encoding", "decimal")
        return {name: getattr(self, name) for name in names}

    def flags(self, without: Collection[str] = ()) -> list[str]:
        """The flags that read another table alike, but for some roles."""
        flags: list[str] = []
        for role in ROLES:
            columns: Any = None if role.name in without else self.columns.get(role.name)
            for column in columns if isinstance(columns, list) else [columns]:
                flags += [] if column is None else [role.option, str(column)]
        usual = ReadOptions().reading
        for name, value in self.reading.items():
            flags += [] if value == usual[name] else [f"--{name}", str(value)]
        return flags

    def load(self, source: Any, parts: PartFlags | None = None, seed: int = 0) -> Loaded:
        """Read a file, or several, as these options say; by parts where that is asked for."""
        options: Any = {**self.reading, **self.columns}
        self._check_words(source)
        table = source[0] if isinstance(source, list) and len(source) == 1 else source
        if parts is not None and isinstance(table, Path) and not self.common_rows:
            from howsure.streaming import load_parts

            options |= {"large": parts.large(), "at": self.at}
            return load_parts(address(table), seed=seed, **options)
        if parts is not None:
            parts.refuse("models are compared row by row, which needs whole tables")
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


@dataclass(frozen=True)
class PartFlags:
    """How a table too large for memory is read; every field is a flag."""

    memory: Annotated[
        str | None,
        parts_flag(
            metavar="SIZE",
            help="Memory limit, such as 2GB: larger tables are read in parts. By default, tables "
            "of over 2,000,000 rows are read in parts.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        parts_flag(min=1, help="Processes that read parts; by default one per core."),
    ] = None
    scheduler: Annotated[
        str | None,
        parts_flag(
            metavar="ADDRESS",
            help="Dask scheduler that reads parts on its workers, such as tcp://host:8786.",
        ),
    ] = None
    resume: Annotated[
        bool,
        parts_flag("--resume", help="Continue an interrupted run after its finished parts."),
    ] = False
    state: Annotated[
        Path | None,
        parts_flag(
            metavar="FILE", help="Also save a summary of this table for howsure merge (.arrow)."
        ),
    ] = None

    def large(self) -> Large:
        """The same, checked."""
        from howsure.streaming import Large

        return Large(**dataclasses.asdict(self))

    def refuse(self, why: str) -> None:
        """Refuse flags that say what cannot be done."""
        for name, value in dataclasses.asdict(self).items():
            if value:
                raise InputError(f"--{name} cannot be given: {why}")


def address(path: Path) -> Path | str:
    """A path as it was typed, where it is an address such as s3://bucket/file."""
    typed = re.sub(r"^([a-z][a-z0-9+.-]+):/(?=[^/])", r"\1://", str(path))
    return typed if "://" in typed and not os.path.exists(path) else path


@dataclass(frozen=True)
class CongruenceFlags:
    """What the conditional congruence error is told; every field is a flag."""

    gamma: Annotated[
        float | None,
        congruence_flag(help="γ of the kernel on inputs; derived from their variance if omitted."),
    ] = None
    regularization: Annotated[
        float,
        congruence_flag(help="λ of the kernel regression on the inputs."),
    ] = 0.1
    kernel: Annotated[
        Literal["auto", "rbf", "laplacian", "polynomial"],
        congruence_flag(help="Kernel on the inputs."),
    ] = "auto"
    draws: Annotated[
        int | None,
        congruence_flag(
            help="Draws per row. If omitted, none are drawn where the distribution allows it."
        ),
    ] = None
    layout: Annotated[
        Literal["inputs", "pca", "t-sne"],
        congruence_flag("--map", help="How inputs are mapped to two dimensions in the figure."),
    ] = "inputs"

    def options(self) -> CongruenceOptions:
        """The choices that these flags make."""
        from howsure.topics.congruence.view import CongruenceOptions

        return CongruenceOptions(
            kernel=self.kernel,
            bandwidth=self.gamma,
            regularization=self.regularization,
            draws=self.draws,
            layout=self.layout,
        )


@dataclass(frozen=True)
class TellFlags:
    """How the outcome of a check is told, and what of it; every field is a flag."""

    as_json: Annotated[
        bool,
        output_flag("--json", help="Print the outcome as JSON."),
    ] = False
    junit: Annotated[
        Path | None,
        file_flag(help="Write the outcome as JUnit XML."),
    ] = None
    sarif: Annotated[
        Path | None,
        file_flag(help="Write failures and possible problems as SARIF."),
    ] = None
    github: Annotated[
        bool | None,
        output_flag(
            "--github/--no-github",
            help="Annotate the GitHub run and add to its summary. By default, only inside one.",
        ),
    ] = None
    no_rows: NoRows = False

    @property
    def outputs(self) -> list[Path]:
        """The files that are written."""
        return [*filter(None, (self.junit, self.sarif))]


def reads_tables(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command a flag for every role, and for every other field of `ReadOptions`."""
    at, *others = _flags(ReadOptions)
    roles = [_flag(role) for role in ROLES]
    after = 1 + [role.name for role in ROLES].index("coverage")

    def made(**chosen: Any) -> ReadOptions:
        columns: Any = {role.name: chosen.pop(role.name) for role in ROLES}
        for role in ROLES:
            if role.repeats:
                columns[role.name] = columns[role.name] or None
        return ReadOptions(**chosen, columns=columns)

    return _spread(command, "read", [*roles[:after], at, *roles[after:], *others], made)


def tunes_congruence(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command every field of `CongruenceFlags` as a flag; it receives them as ``tuned``."""
    return _spread(command, "tuned", _flags(CongruenceFlags), CongruenceFlags)


def reads_parts(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command every field of `PartFlags` as a flag; it receives them as ``parts``."""
    return _spread(command, "parts", _flags(PartFlags), PartFlags)


def tells_outcome(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command every field of `TellFlags` as a flag; it receives them as ``telling``."""
    return _spread(command, "telling", _flags(TellFlags), TellFlags)


def uses_resources(command: Callable[..., R]) -> Callable[..., R]:
    """As `reads_parts`, for a command that keeps no state of the table."""
    flags = [flag for flag in _flags(PartFlags) if flag.name != "state"]
    return _spread(command, "parts", flags, PartFlags)


def takes_bounds(command: Callable[..., R]) -> Callable[..., R]:
    """Give a command a flag for each usual limit; it receives them by name as ``bounds``."""
    flags = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[float | None, limit_flag(help=text)],
        )
        for name, text in _BOUNDS.items()
    ]
    return _spread(command, "bounds", flags, dict)


def _flag(role: Role) -> inspect.Parameter:
    """The flag of a role."""
    kind: Any = str if role.kind else Literal[role.choices] if role.choices else float
    option = typer.Option(
        role.option,
        help=role.help,
        metavar=role.metavar,
        callback=share if role.name == "coverage" else None,
        rich_help_panel=_COLUMNS[role.of],
    )
    return inspect.Parameter(
        role.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=[] if role.repeats else None,
        annotation=Annotated[list[kind] if role.repeats else kind | None, option],
    )


def _flags(options: type[Any]) -> list[inspect.Parameter]:
    """A flag for each field of a dataclass that says its option."""
    hints = get_type_hints(options, include_extras=True)
    return [
        inspect.Parameter(
            f.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=f.default if f.default_factory is dataclasses.MISSING else f.default_factory(),
            annotation=hints[f.name],
        )
        for f in dataclasses.fields(options)
        if get_origin(hints[f.name]) is Annotated
    ]


def _spread(
    command: Callable[..., R], name: str, extra: list[inspect.Parameter], made: Callable[..., Any]
) -> Callable[..., R]:
    """A command whose one argument is made of flags."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> R:
        chosen = {p.name: kwargs.pop(p.name) for p in extra}
        return command(*args, **{name: made(**chosen)}, **kwargs)

    flags: list[inspect.Parameter] = []
    for flag in inspect.signature(command, eval_str=True).parameters.values():
        flags += extra if flag.name == name else [flag.replace(kind=flag.KEYWORD_ONLY)]
    wrapper.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {flag.name: flag.annotation for flag in flags}
    return wrapper
