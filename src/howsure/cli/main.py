"""`howsure …`: the command line."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import typer
from typer.core import TyperGroup

from howsure.cli.entry import Interrupted, echo
from howsure.cli.flags import OUTPUT, command, share
from howsure.cli.watch import watch_app
from howsure.core.errors import HowsureError, HowsureWarning, InputError, asked_in, system_line
from howsure.core.optional import installs
from howsure.core.registry import PluginError, Registry
from howsure.core.schemas import SchemaName

if TYPE_CHECKING:
    from howsure.cli.options import (
        ConformalFlags,
        CurveFlags,
        FitFlags,
        LimitFlags,
        NamedLimits,
        OutcomeFlags,
        ReadOptions,
        ReportFlags,
        TableFlags,
    )
    from howsure.report.options import CheckOptions, Options


class _Commands(TyperGroup):
    """Help in panels, but errors on plain lines, which no box breaks.

    Commands that a package brings by an entry point are loaded when they are asked for; a list of
    all leaves out those that cannot be.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *filter(_loads, _BROUGHT.names())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _BROUGHT.names():
            brought: Any = typer.main.get_command(_BROUGHT.get(cmd_name))
            brought.rich_help_panel = _STUDIES
            return brought
        if cmd_name in _OF_STUDIES:
            raise InputError(f"{cmd_name} is a command of howsure-studies, {_ABSENT}")
        return super().get_command(ctx, cmd_name)

    def main(self, *args: Any, **extra: Any) -> Any:
        self.rich_markup_mode = None
        with asked_in("command"):
            return super().main(*args, **extra)

    def format_help(self, *args: Any) -> None:
        self.rich_markup_mode = "rich"
        super().format_help(*args)
        if not set(_OF_STUDIES) & set(_BROUGHT.names()):
            echo(f"bench, data and simulate come with howsure-studies, {_ABSENT}")


_BROUGHT: Final = Registry("command", "howsure.commands")
_OF_STUDIES: Final = ("bench", "data", "simulate")
_FIRST, _MORE, _PROGRAMS, _STUDIES = "Begin with", "Further", "For programs", "Studies"
"""Panels of the help, in this order."""
_ABSENT: Final = (
    f"which is not installed: run {installs('studies')}, or in a checkout "
    "pip install -e . -e ./studies"
)


def _loads(name: str) -> bool:
    """Whether a command that is brought can be loaded; a note says why not."""
    try:
        _BROUGHT.get(name)
    except PluginError as error:
        echo(f"note: {error}", error=True)
        return False
    return True


app = typer.Typer(
    name="howsure",
    cls=_Commands,
    help="Assess the calibration, coverage and sharpness of predictions.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    # without these, None would be parsed, for which pydantic is imported
    context_settings={
        "default_map": dict.fromkeys(("help", "install_completion", "show_completion"), False)
    },
)
app.add_typer(watch_app, name="watch", rich_help_panel=_MORE)

# Below 40 columns panels of help are empty.
_MIN_COLUMNS = 40


Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="Table of predictions: a file, folder, quoted pattern or URL. Each further table is "
        "another model.",
    ),
]
NewRows = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="Table of new predictions, with or without y; or a folder, or a quoted pattern "
        "such as 'preds/*.parquet'.",
    ),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        hidden=True,
        metavar="TABLE",
        help="Labelled table of the same model, to judge rows of FILE that have no y. "
        "Without a predictive distribution, only rows outside the reference are reported.",
    ),
]
HeldOut = Annotated[
    Path,
    typer.Option(
        metavar="TABLE",
        help="Held-out table with y and predictions, or a .json file saved with --keep.",
    ),
]


def _measures(incomplete: str) -> list[str]:
    """Names of measures that begin so, for the shell."""
    from howsure.engine.catalogue import catalogue

    return [name for name in catalogue() if name.startswith(incomplete)]


def _version(wanted: bool) -> None:
    if wanted:
        from howsure._version import __version__

        echo(f"howsure {__version__}")
        raise typer.Exit


_BEGINNING: Final = """\
howsure assesses the calibration and coverage of predictions: intervals, quantiles,
distributions, samples, class probabilities or label sets.

  howsure assess predictions.csv -o report.html
      Assess a table with y and predictions, and write a page.
  howsure check predictions.csv --min-coverage 0.85
      Fail a pipeline if coverage is significantly too low.
  howsure recalibrate new.csv --calibration held_out.csv -o recalibrated.csv
      Recalibrate new predictions with held-out data.

No table at hand? howsure demo writes one, with its report.
howsure --help lists all commands."""


@app.callback()
def root(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Assess the calibration, coverage and sharpness of predictions."""
    if context.invoked_subcommand is None:
        for line in _BEGINNING.split("\n"):
            echo(line)


@command(app, "demo:run", panel=_FIRST, epilog="Example: howsure demo trial")
def demo(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="[FOLDER]", file_okay=False, help="Folder to write to; made if not there."
        ),
    ] = Path("howsure-demo"),
) -> None:
    """Write a small made-up table of predictions, and its report as a page."""


@command(
    app,
    "assess:run",
    panel=_FIRST,
    epilog="Example: howsure assess predictions.csv --groups region -o report.html",
)
def assess(
    files: Files,
    report: ReportFlags,
    explain_input: Annotated[
        bool,
        typer.Option(
            "--explain-input",
            help="Only show how the columns would be read. With --all, also list all known names.",
        ),
    ] = False,
    reference: Reference = None,
    *,
    options: Options,
    read: ReadOptions,
) -> None:
    """Assess the uncertainty of predictions: coverage, calibration, groups, widths, errors."""


@command(
    app,
    "assess:merge",
    panel=_MORE,
    epilog="Example: howsure merge mon.arrow tue.arrow wed.arrow -o week.html",
)
def merge(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="STATE", help="Files written with howsure assess --state."),
    ],
    report: ReportFlags,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=OUTPUT, help="Also save the merged state."),
    ] = None,
    *,
    options: Options,
) -> None:
    """Assess several tables as one from the saved state of each, without their rows."""


@command(
    app,
    "check:run",
    panel=_FIRST,
    epilog="Example: howsure check predictions.csv --min-coverage 0.85 --by region",
)
def check(
    files: Files,
    limits: LimitFlags,
    bounds: NamedLimits,
    rules: Annotated[Mapping[str, Any], CheckOptions],
    shown: OutcomeFlags,
    reference: Reference = None,
    *,
    options: Options,
    read: ReadOptions,
) -> None:
    """Gate a pipeline: exit 0 if no limit is shown to be broken; inconclusive limits pass.

    Exit 1 if a limit is broken, 2 on an error. With --undecided fail, inconclusive limits fail too.
    """


@command(
    app,
    "recalibrate:run",
    panel=_FIRST,
    epilog="Example: howsure recalibrate new.csv --calibration held_out.csv -o recalibrated.csv",
)
def recalibrate(
    file: NewRows,
    calibration: HeldOut,
    fit: FitFlags,
    table: TableFlags,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Compare methods (--method A,B or all) on FILE, which needs y. Then -o writes "
            ".csv, .md or .json.",
        ),
    ] = False,
    *,
    options: Options,
    read: ReadOptions,
) -> None:
    """Recalibrate predictions with held-out data. If y is known, show the effect."""


@command(
    app,
    "recalibrate:run_improve",
    panel=_MORE,
    epilog="Example: howsure improve held_out.csv new.csv --until-right -o improved.csv",
)
def improve(
    calibration: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Held-out table with y and predictions.")
    ],
    new: Annotated[
        str | None,
        typer.Argument(
            metavar="[NEW]",
            help="Table of new predictions to recalibrate with the confirmed steps; or a folder, "
            "or a quoted pattern such as 'preds/*.parquet'.",
        ),
    ] = None,
    until_right: Annotated[
        bool,
        typer.Option(
            "--until-right",
            help="Repeat until no fault is significant, nothing helps or a step is not confirmed.",
        ),
    ] = False,
    hold_back: Annotated[
        float,
        typer.Option(
            callback=share, hidden=True, help="Share of the held-out rows used only to verify."
        ),
    ] = 0.5,
    proof: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="File for the results on the verification rows, as .json.",
        ),
    ] = Path("improvement.json"),
    *,
    table: TableFlags,
    options: Options,
    read: ReadOptions,
) -> None:
    """Recalibrate, then verify on held-out rows. Exit 1 if a fault remains."""


@command(
    app,
    "recalibrate:run_conformal",
    panel=_MORE,
    epilog="Example: howsure conformal new.csv --calibration held_out.csv --method lac -o sets.csv",
)
def conformal(
    new: NewRows,
    calibration: HeldOut,
    fit: ConformalFlags,
    table: TableFlags,
    options: Options,
    read: ReadOptions,
) -> None:
    """Build conformal sets or intervals from held-out data."""


@command(
    app,
    "characteristic:run",
    panel=_MORE,
    epilog="Example: howsure characteristic predictions.csv --want miss_rate=0.1 --plot curve.png",
)
def characteristic(
    files: Files,
    shown: CurveFlags,
    x: Annotated[str | None, typer.Option("--x", hidden=True)] = None,
    *,
    options: Options,
    read: ReadOptions,
) -> None:
    """Plot interval width against miss rate: areas, gains, operating points, costs."""


@command(app, "metrics:list_measures", panel=_MORE, epilog="Example: howsure metrics PICP")
def metrics(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Show one measure in full.", autocompletion=_measures),
    ] = None,
) -> None:
    """List the measures, or show one: its direction, notion, formula and source."""


@command(
    app,
    "metrics:print_schema",
    panel=_PROGRAMS,
    epilog="Example: howsure schema report -o report.schema.json",
)
def schema(
    name: Annotated[
        SchemaName,
        typer.Argument(
            metavar="NAME",
            help=f"Format to describe: {', '.join(get_args(SchemaName))}.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="Write the schema to this .json file instead.",
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of a machine-readable output."""


@command(app, "mcp:run", panel=_PROGRAMS, epilog="Example: howsure mcp --skill")
def mcp(
    skill: Annotated[
        bool,
        typer.Option("--skill", help="Print SKILL.md, the page for agents, and stop."),
    ] = False,
    root: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Read and write only in this folder; file names are relative to it.",
        ),
    ] = Path(),
) -> None:
    """Run a Model Context Protocol server for agents: assess, check, recalibrate, explain."""


def main() -> int:
    """Run the command line; its status, which for an error of input is 2, with one clear line."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) < _MIN_COLUMNS:  # where panels of help would be empty
        os.environ["TERMINAL_WIDTH"] = str(_MIN_COLUMNS)
    with warnings.catch_warnings():
        warnings.simplefilter("always", HowsureWarning)
        warnings.showwarning = partial(_noted, warnings.showwarning)
        try:
            app()
        except HowsureError as error:
            echo(f"howsure: {error}", error=True)
            return 2
        except OSError as error:  # of the system, where nothing nearer says more of it
            echo(f"howsure: {system_line(error)}", error=True)
            return 2
        except Interrupted:
            raise
        except SystemExit as leaving:
            meant = leaving.code != 1 or isinstance(leaving.__context__, typer.Exit)
            return int(leaving.code or 0) if meant else 2
    return 0


def _noted(otherwise: Callable[..., None], message: Any, category: Any, *location: Any) -> None:
    """A warning of howsure's own as one line, without the place in the code that it came from."""
    if issubclass(category, HowsureWarning):
        echo(f"note: {message}", error=True)
    else:
        otherwise(message, category, *location)
