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
    get_origin,
    get_type_hints,
)

import typer
from typer.core import TyperCommand

from howsure.cli.entry import say
from howsure.core.errors import InputError
from howsure.core.registry import attribute_of
from howsure.inputs.roles import ROLES, Columns, Role

if TYPE_CHECKING:
    from howsure.inputs import ColumnUse, Loaded
    from howsure.streaming import Large
    from howsure.topics.congruence.view import CongruenceOptions

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
limit_flag = functools.partial(typer.Option, rich_help_panel="Limits")
rare_flag = functools.partial(typer.Option, hidden=True)
finding_flag = functools.partial(rare_flag, rich_help_panel="Findings")
reading_flag = functools.partial(rare_flag, rich_help_panel="How tables are read")
parts_flag = functools.partial(rare_flag, rich_help_panel="Tables too large for memory")
congruence_flag = functools.partial(rare_flag, rich_help_panel="Conditional congruence")
"""Flags, each in the panel of the help where it stands; `hidden` is shown by --help-all alone."""

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


_parameter = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)


class Flags:
    """Options that a command declares as one parameter: every field is a flag."""

    @classmethod
    def declared(cls) -> list[inspect.Parameter]:
        """The flags, as parameters of a command."""
        hints = get_type_hints(cls, include_extras=True)
        return [
            _parameter(
                f.name,
                default=f.default
                if f.default_factory is dataclasses.MISSING
                else f.default_factory(),
                annotation=hints[f.name],
            )
            for f in dataclasses.fields(cls)  # type: ignore[arg-type]
            if get_origin(hints[f.name]) is Annotated
        ]

    @classmethod
    def from_chosen(cls, **chosen: Any) -> Any:
        """What the command receives for its flags."""
        return cls(**chosen)


class Command(TyperCommand):
    """A command whose flags are made when they are asked for; its help shows the usual ones."""

    def __init__(self, *, work: Any, target: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.work, self.target = work, target
        self.rare: list[Any] = []
        del self.params

    @functools.cached_property
    def params(self) -> Any:  # type: ignore[override]
        """Arguments and flags; those that are declared hidden are for --help-all."""
        flags: list[inspect.Parameter] = []
        groups: dict[str, tuple[Any, list[str]]] = {}
        for flag in inspect.signature(self.work, eval_str=True).parameters.values():
            kind = flag.annotation
            if isinstance(kind, type) and issubclass(kind, Flags):
                added = kind.declared()
                groups[flag.name] = kind, [key.name for key in added]
                flags += added
            else:
                flags.append(flag.replace(kind=flag.KEYWORD_ONLY))
        if len(flags) > _MAX_FLAGS_SHOWN:
            flags.append(_HELP_ALL)

        def run(**chosen: Any) -> None:
            chosen.pop("help_all", None)
            for name, (kind, names) in groups.items():
                chosen[name] = kind.from_chosen(**{key: chosen.pop(key) for key in names})
            work = attribute_of(f"howsure.cli.{self.target}") if self.target else self.work
            if work(**chosen):
                raise typer.Exit(1)

        run.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
        run.__annotations__ = {flag.name: flag.annotation for flag in flags}
        single = typer.Typer(add_completion=False)
        single.command()(run)
        built: Any = typer.main.get_command(single)
        self.callback = built.callback
        for param in built.params:
            if param.hidden and param.help:
                param.hidden = False
                self.rare += [param] if len(flags) > _MAX_FLAGS_SHOWN else []
        return built.params

    def format_help(self, ctx: Any, *args: Any) -> None:
        every = self.params
        rare = [] if "howsure.help_all" in ctx.meta else self.rare
        self.params = [param for param in every if param not in rare]
        super().format_help(ctx, *args)
        self.params = every
        if rare:
            say(f" --help-all shows {len(rare)} more options.")


def command(app: typer.Typer, target: str = "", *, epilog: str) -> Callable[[Any], Any]:
    """Add a command, of which the function declares the flags, and does the work without a target.

    The module of a target is imported when the command is called. True is status 1.
    """

    def add(work: Any) -> Any:
        cls: Any = functools.partial(Command, work=work, target=target)
        app.command(work.__name__, cls=cls, help=work.__doc__, epilog=epilog)(lambda: None)
        return work

    return add


def _help_all(ctx: typer.Context, wanted: bool) -> None:
    """Show the help with every flag."""
    if wanted:
        ctx.meta["howsure.help_all"] = True
        say(ctx.get_help())
        raise typer.Exit


# All of them then fit on a screen of 60 lines.
_MAX_FLAGS_SHOWN: Final = 16
"""A command with no more flags than these shows all of them."""
_HELP_ALL: Final = _parameter(
    "help_all",
    default=False,
    annotation=Annotated[
        bool,
        typer.Option(
            "--help-all",
            is_eager=True,
            expose_value=False,
            callback=_help_all,
            help="Show all options and exit.",
        ),
    ],
)

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
    float | None,
    rare_flag(
        callback=share,
        show_default=False,
        help="Confidence level of all intervals and bounds; 0.95 if omitted.",
    ),
]
Tolerance = Annotated[
    float | None,
    finding_flag(
        callback=share,
        show_default=False,
        help="Largest coverage error to ignore (0.01 = 1 point); 0.01 if omitted.",
    ),
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
        hidden=True,
        help="Put ' before cells that begin with = + - or @, so that no spreadsheet runs them.",
    ),
]
NoRows = Annotated[
    bool,
    output_flag(
        "--no-rows",
        hidden=True,
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
    output_flag("--quiet", hidden=True, help="Print nothing; only write the files named with -o."),
]
Json = Annotated[
    bool,
    output_flag("--json", help="Print only the report as JSON."),
]
Progress = Annotated[
    bool | None,
    output_flag(
        "--progress/--no-progress",
        hidden=True,
        help="Show progress. By default, only in a terminal.",
    ),
]


@dataclass(frozen=True)
class ReadOptions(Flags):
    """What the reader is told: of columns by their roles, and the flags that are its fields."""

    at: Annotated[
        list[float],
        rare_flag(
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

    @classmethod
    def declared(cls) -> list[inspect.Parameter]:
        """The flag of every role, and of every other field."""
        return [*map(_flag, ROLES), *super().declared()]

    @classmethod
    def from_chosen(cls, **chosen: Any) -> ReadOptions:
        """The same, of which an empty list of columns is nothing said."""
        columns: Any = {role.name: chosen.pop(role.name) for role in ROLES}
        for role in ROLES:
            if role.repeats:
                columns[role.name] = columns[role.name] or None
        return cls(**chosen, columns=columns)

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
class PartFlags(Flags):
    """How a table too large for memory is read, whose state is not kept."""

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
    state: Path | None = None

    def large(self) -> Large:
        """The same, checked."""
        from howsure.streaming import Large

        return Large(**dataclasses.asdict(self))

    def refuse(self, why: str) -> None:
        """Refuse flags that say what cannot be done."""
        for name, value in dataclasses.asdict(self).items():
            if value:
                raise InputError(f"--{name} cannot be given: {why}")


@dataclass(frozen=True)
class StateFlags(PartFlags):
    """The same, for a command that can keep the state of the table."""

    state: Annotated[
        Path | None,
        parts_flag(
            metavar="FILE", help="Also save a summary of this table for howsure merge (.arrow)."
        ),
    ] = None


def address(path: Path) -> Path | str:
    """A path as it was typed, where it is an address such as s3://bucket/file."""
    typed = re.sub(r"^([a-z][a-z0-9+.-]+):/(?=[^/])", r"\1://", str(path))
    return typed if "://" in typed and not os.path.exists(path) else path


@dataclass(frozen=True)
class CongruenceFlags(Flags):
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
class TellFlags(Flags):
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
        file_flag(hidden=True, help="Write failures and possible problems as SARIF."),
    ] = None
    github: Annotated[
        bool | None,
        output_flag(
            "--github/--no-github",
            hidden=True,
            help="Annotate the GitHub run and add to its summary. By default, only inside one.",
        ),
    ] = None
    no_rows: NoRows = False

    @property
    def outputs(self) -> list[Path]:
        """The files that are written."""
        return [*filter(None, (self.junit, self.sarif))]


class LimitFlags(dict[str, float | None], Flags):
    """The usual limits by name, each a flag."""

    @classmethod
    def declared(cls) -> list[inspect.Parameter]:
        """A flag for each."""
        return [
            _parameter(
                name,
                default=None,
                annotation=Annotated[
                    float | None,
                    limit_flag(
                        help=text, hidden=name not in ("min_coverage", "max_crps", "max_mae")
                    ),
                ],
            )
            for name, text in _BOUNDS.items()
        ]


def _flag(role: Role) -> inspect.Parameter:
    """The flag of a role."""
    kind: Any = str if role.kind else Literal[role.choices] if role.choices else float
    option = typer.Option(
        role.option,
        help=role.help,
        metavar=role.metavar,
        hidden=not role.usual,
        callback=share if role.name == "coverage" else None,
        rich_help_panel=_COLUMNS[role.of],
    )
    return _parameter(
        role.name,
        default=[] if role.repeats else None,
        annotation=Annotated[list[kind] if role.repeats else kind | None, option],
    )
