"""`howsure …`: the command line."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from howsure.cli.bench import app as bench_app
from howsure.cli.data import app as data_app
from howsure.cli.entry import Interrupted
from howsure.cli.options import CongruenceFlags, ReadOptions, reads_tables, share, tunes_congruence
from howsure.cli.terminal import say
from howsure.core.errors import HowsureError, HowsureWarning, InputError


class _Commands(TyperGroup):
    """Help in panels, but errors on plain lines, which no box breaks."""

    def main(self, *args: Any, **extra: Any) -> Any:
        self.rich_markup_mode = None
        return super().main(*args, **extra)

    def format_help(self, *args: Any) -> None:
        self.rich_markup_mode = "rich"
        super().format_help(*args)


app = typer.Typer(
    name="howsure",
    cls=_Commands,
    help="How sure is a regression model, and is it right to be?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

_NARROWEST = 40

Files = Annotated[
    list[Path], typer.Argument(help="Tables of predictions; several are several models.")
]
Outputs = Annotated[
    list[Path],
    typer.Option("-o", "--output", help="Write .html, .json, .md or .csv; repeat."),
]
Seed = Annotated[int, typer.Option(min=0, help="Fixes all random draws.")]
Confidence = Annotated[
    float, typer.Option(callback=share, help="Confidence of the intervals about numbers.")
]
Tolerance = Annotated[
    float, typer.Option(callback=share, help="Miscoverage that does no harm, as a share.")
]
Ignored = Annotated[
    list[str], typer.Option("--ignore", metavar="ID", help="Leave a finding out; repeat.")
]
CsvSafe = Annotated[
    bool,
    typer.Option(
        "--csv-safe",
        help="Put ' before cells that a spreadsheet would run: those that begin with = + - or @.",
    ),
]


def _measures(incomplete: str) -> list[str]:
    """Names of measures that begin so, for the shell."""
    from howsure.metrics.catalogue import catalogue

    return [name for name in catalogue() if name.startswith(incomplete)]


def _version(wanted: bool) -> None:
    if wanted:
        from howsure._version import __version__

        say(f"howsure {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """How sure is a regression model, and is it right to be?"""


@app.command(epilog="Example: howsure assess predictions.csv --groups region -o report.html")
@reads_tables
@tunes_congruence
def assess(
    files: Files,
    output: Outputs = [],  # noqa: B006
    explain_input: Annotated[
        bool, typer.Option("--explain-input", help="Say how columns were read, and stop.")
    ] = False,
    with_: Annotated[
        list[str], typer.Option("--with", help="Also compute a slow measure by name; repeat.")
    ] = [],  # noqa: B006
    reference: Annotated[
        Path | None,
        typer.Option(
            help="A labelled table; its model is judged at FILE's inputs, not FILE's predictions."
        ),
    ] = None,
    tolerance: Tolerance = 0.01,
    ignore: Ignored = [],  # noqa: B006
    trials: Annotated[
        bool,
        typer.Option("--trials/--no-trials", help="Try ways to recalibrate on held-out fifths."),
    ] = True,
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    all_: Annotated[bool, typer.Option("--all", help="Print every number.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; for use with -o.")] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON, and nothing else.")
    ] = False,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show progress; by default in a terminal only."
        ),
    ] = None,
    *,
    csv_safe: CsvSafe = False,
    tuned: CongruenceFlags,
    read: ReadOptions,
) -> None:
    """Give a verdict on predictions: coverage, calibration, groups, width, error."""
    printed = {"all": all_, "quiet": quiet, "json": json_}
    said = [name for name, given in printed.items() if given]
    if len(said) > 1:
        raise InputError(f"--{said[0]} and --{said[1]} say each what is printed: give one of them")
    if reference is not None:
        if said:
            raise InputError(f"--{said[0]} is of labelled tables: leave --reference out")
        from howsure.cli.monitor import run as watch

        if len(files) != 1:
            raise InputError(f"--reference scores one file, got {len(files)}")
        if explain_input:
            raise InputError("--explain-input is of one table: leave --reference out")
        if other := sorted({*with_} - {"mean_cce"}):
            raise InputError(f"--with beside --reference must be mean_cce, got {other[0]!r}")
        watch(files[0], reference, output, bool(with_), seed, progress, tuned, read, csv_safe)
        return
    from howsure.cli.assess import run

    judging = (tolerance, ignore)
    choices = (confidence, seed, progress, tuned, read, trials)
    shown = said[0] if said else "brief"
    run(files, output, explain_input, with_, judging, *choices, shown=shown)


@app.command(epilog="Example: howsure check predictions.csv --min-coverage 0.85 --by region")
@reads_tables
def check(
    files: Files,
    limits: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file of limits; else, if no flag asks, pyproject.toml's.",
        ),
    ] = None,
    min_: Annotated[
        list[str], typer.Option("--min", metavar="MEASURE=LIMIT", help="Any measure; repeat.")
    ] = [],  # noqa: B006
    max_: Annotated[
        list[str], typer.Option("--max", metavar="MEASURE=LIMIT", help="Any measure; repeat.")
    ] = [],  # noqa: B006
    min_coverage: Annotated[float | None, typer.Option(help="Least empirical coverage.")] = None,
    max_coverage: Annotated[float | None, typer.Option(help="Most empirical coverage.")] = None,
    max_interval_score: Annotated[float | None, typer.Option(help="Most interval score.")] = None,
    max_crps: Annotated[float | None, typer.Option(help="Most CRPS.")] = None,
    max_mae: Annotated[float | None, typer.Option(help="Most mean absolute error.")] = None,
    max_mean_width: Annotated[float | None, typer.Option(help="Most mean width.")] = None,
    max_drift: Annotated[
        float | None, typer.Option(help="Largest change of coverage with time, as a share.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Limits hold in every group of these columns."),
    ] = None,
    require_proof: Annotated[
        bool, typer.Option("--require-proof", help="Fail unless a bound proves the limit held.")
    ] = False,
    sided: Annotated[
        Literal["one", "two"] | None,
        typer.Option(help="Judge limits by one-sided bounds (default) or two-sided intervals."),
    ] = None,
    fail_on: Annotated[
        Literal["never", "watch", "bad"] | None,
        typer.Option(help="Judge the verdict too: fail on a fault (✗), or also on a doubt (○)."),
    ] = None,
    findings: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Judge these findings alone: groups,region,drift."),
    ] = None,
    ignore: Ignored = [],  # noqa: B006
    tolerance: Annotated[
        float | None,
        typer.Option(callback=share, help="Miscoverage that does no harm; 0.01 if omitted."),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(callback=share, help="Confidence of bounds; 0.95 if omitted.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Write the outcome to stdout as JSON.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the outcome as JUnit XML.")
    ] = None,
    github: Annotated[
        bool | None,
        typer.Option(
            "--github/--no-github", help="Annotate a GitHub run; by default inside of one only."
        ),
    ] = None,
    seed: Seed = 0,
    *,
    read: ReadOptions,
) -> None:
    """Gate a pipeline: exit 0 if nothing fails, 1 if a limit fails, 2 if it cannot be judged."""
    from howsure.cli.check import Told, parse_limits, rules_for, run

    named = {
        "min_coverage": min_coverage,
        "max_coverage": max_coverage,
        "max_interval_score": max_interval_score,
        "max_crps": max_crps,
        "max_mae": max_mae,
        "max_mean_width": max_mean_width,
        "max_drift": max_drift,
    }
    changes = {
        "by": _names(by),
        "confidence": confidence,
        "sided": sided,
        "undecided": "fail" if require_proof else None,
        "fail_on": fail_on,
        "findings": _names(findings),
        "ignore": tuple(ignore) or None,
        "tolerance": tolerance,
    }
    rules, source = rules_for(limits, parse_limits(named, min_, max_), changes)
    failed = run(files, rules, source, Told(json, junit, github), seed, read)
    raise typer.Exit(1 if failed else 0)


def _names(text: str | None) -> tuple[str, ...] | None:
    """Names with commas between; none if nothing is said."""
    if text is None:
        return None
    return tuple(name.strip() for name in text.split(",") if name.strip())


@app.command(
    epilog="Example: howsure recalibrate new.csv --calibration held_out.csv -o recalibrated.csv"
)
@reads_tables
def recalibrate(
    file: Annotated[Path, typer.Argument(help="Table of new predictions; it needs no y.")],
    calibration: Annotated[
        Path,
        typer.Option(help="Held-out table with y and predictions, or a .json that --keep wrote."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where the new table, or the comparison, goes."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="How; a fitting one if omitted; best tries all. To compare: A,B, or all."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Recalibrate within the groups of these columns."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Learn from calibration rows from this time on.")
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Keep what was learnt as .json, to apply it again.")
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Compare all ways on FILE, whose y is needed; -o writes .csv, .md or .json.",
        ),
    ] = False,
    too_few: Annotated[
        Literal["infinite", "error"], typer.Option(help="Too few held-out rows for a coverage.")
    ] = "infinite",
    rank: Annotated[
        Literal["conformal", "paper", "pac"],
        typer.Option(help="Conformal methods: what coverage means."),
    ] = "conformal",
    delta: Annotated[
        float,
        typer.Option(callback=share, help="pac: share of held-out tables that may fall short."),
    ] = 0.05,
    levels: Annotated[
        str | None, typer.Option(help="Quantile levels to give, as 0.05,0.5,0.95.")
    ] = None,
    csv_safe: CsvSafe = False,
    seed: Seed = 0,
    *,
    read: ReadOptions,
) -> None:
    """Recalibrate predictions by a held-out table; where y is known, show what it changed."""
    from howsure.cli.recalibrate import run

    run(
        file,
        calibration,
        output,
        method,
        too_few,
        seed,
        read,
        rank,
        delta,
        levels,
        by=by,
        since=since,
        keep=keep,
        comparing=compare,
        csv_safe=csv_safe,
    )


@app.command(
    epilog="Example: howsure characteristic predictions.csv --want miss_rate=0.1 --plot curve.png"
)
@reads_tables
def characteristic(
    files: Files,
    x: Annotated[
        Literal["bandwidth", "excess"], typer.Option("--x", help="What width is measured by.")
    ] = "bandwidth",
    y_axis: Annotated[
        Literal["miss_rate", "deficit"], typer.Option("--y-axis", help="What misses are.")
    ] = "miss_rate",
    want: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=NUMBER", help="Operating point to find, such as miss_rate=0.1; repeat."
        ),
    ] = [],  # noqa: B006
    miss_cost: Annotated[
        float | None,
        typer.Option(
            help="Width that a miss is worth, in units of y; of deficit, per unit missed. By "
            "default the price of the nominal coverage, where it has one."
        ),
    ] = None,
    range_: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--range",
            metavar="LOW HIGH",
            help="Part of the y axis for areas and gains: 0 0.2 of miss rates if omitted.",
        ),
    ] = None,
    bootstrap: Annotated[int, typer.Option(help="Resamples for intervals; 0 for none.")] = 1000,
    plot: Annotated[Path | None, typer.Option(help="Draw to .png, .svg or .pdf.")] = None,
    seed: Seed = 0,
    *,
    read: ReadOptions,
) -> None:
    """Trace what misses cost in width: areas, gains, operating points, costs."""
    from howsure.cli.characteristic import run

    run(files, (x, y_axis), want, miss_cost, range_, bootstrap, plot, seed, read)


@app.command(
    epilog="Example: howsure simulate heteroscedastic --method naive_bootstrap -o pointwise.html"
)
def simulate(
    source: Annotated[
        str, typer.Argument(metavar="WORLD|TABLE", help="A world's name, or a table of your own.")
    ],
    method: Annotated[
        list[str],
        typer.Option(
            "--method",
            metavar="NAME[:OPTION=VALUE,…]",
            help="A method's name, or module:attribute of a method or regressor; repeat.",
        ),
    ] = [],  # noqa: B006
    output: Outputs = [],  # noqa: B006
    target: Annotated[str | None, typer.Option(help="The table's column of y.")] = None,
    features: Annotated[
        str | None, typer.Option(metavar="A,B", help="The table's columns of x; all if omitted.")
    ] = None,
    coverage: Annotated[
        list[float], typer.Option(callback=share, help="Nominal coverage, such as 0.9; repeat.")
    ] = [],  # noqa: B006
    trials: Annotated[int, typer.Option(min=1, help="Training sets to draw, at most.")] = 100,
    until_se: Annotated[
        float | None, typer.Option(help="Stop once a Monte-Carlo standard error is this small.")
    ] = None,
    of: Annotated[Literal["picf", "cicf", "brier"], typer.Option(help="Whose.")] = "picf",
    noise: Annotated[
        str | None, typer.Option(help="Noise law, such as normal, student_t3, gamma or laplace.")
    ] = None,
    residuals: Annotated[
        Literal["out-of-bag", "in-sample"],
        typer.Option(help="Residuals that a table's noise comes from."),
    ] = "out-of-bag",
    train_rows: Annotated[int | None, typer.Option(min=1, help="Rows of a training set.")] = None,
    test_rows: Annotated[int | None, typer.Option(min=1, help="Test points.")] = None,
    covariates: Annotated[
        Literal["random", "fixed"], typer.Option(help="Whether x is drawn anew in each trial.")
    ] = "random",
    missing: Annotated[Literal["error", "drop"], typer.Option(help="Missing values.")] = "error",
    encoding: Annotated[str | None, typer.Option(help="Text encoding of the table.")] = None,
    decimal: Annotated[Literal[".", ","], typer.Option(help="Decimal mark of text tables.")] = ".",
    seed: Seed = 0,
) -> None:
    """Test a method's intervals at every point of a world; exit 1 if every trial failed."""
    from howsure.cli.simulate import Request, run

    run(
        Request(
            source=source,
            methods=method,
            target=target,
            features=[name.strip() for name in (features or "").split(",") if name.strip()],
            coverages=coverage,
            trials=trials,
            until=until_se,
            of=of,
            noise=noise,
            residuals=residuals,
            n_train=train_rows,
            n_test=test_rows,
            covariates=covariates,
            seed=seed,
            missing=missing,
            encoding=encoding,
            decimal=decimal,
            outputs=output,
        )
    )


@app.command(epilog="Example: howsure metrics PICP")
def metrics(
    name: Annotated[
        str | None, typer.Argument(help="One measure, in full.", autocompletion=_measures)
    ] = None,
) -> None:
    """List the measures: direction, notion tested, formula, source."""
    from howsure.cli.metrics import run

    run(name)


app.add_typer(bench_app)
app.add_typer(data_app)


def main() -> int:
    """Run the command line; its status, which for an error of input is 2, with one clear line."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) < _NARROWEST:  # where panels of help would be empty
        os.environ["TERMINAL_WIDTH"] = str(_NARROWEST)
    with warnings.catch_warnings():
        warnings.simplefilter("always", HowsureWarning)
        warnings.showwarning = partial(_noted, warnings.showwarning)
        try:
            app()
        except HowsureError as error:
            say(f"howsure: {error}", error=True)
            return 2
        except Interrupted:
            raise
        except SystemExit as leaving:
            meant = leaving.code != 1 or isinstance(leaving.__context__, typer.Exit)
            return int(leaving.code or 0) if meant else 2
    return 0


def _noted(otherwise: Callable[..., None], message: Any, category: Any, *place: Any) -> None:
    """A warning of howsure's own as one line, without the place in the code that it came from."""
    if issubclass(category, HowsureWarning):
        say(f"note: {message}", error=True)
    else:
        otherwise(message, category, *place)
