"""`howsure watch`: a promise from deployment to retirement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from howsure.cli.entry import echo
from howsure.cli.flags import OUTPUT, address, command, flag_of
from howsure.core.errors import InputError

if TYPE_CHECKING:
    from howsure.cli.options import ReadOptions, ReportFlags
    from howsure.report.options import Options

watch_app = typer.Typer(
    help="Monitor a deployed model; safe to check every day.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Ledger = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="Ledger of the watch: a file, a folder (path ending with /), or a URL of either.",
    ),
]


def _print(sentence: str) -> None:
    from howsure.cli.terminal import Console, escape

    Console().print(escape(sentence))


@command(
    watch_app,
    epilog="Example: howsure watch init model.watch --reference held_out.csv --time day",
)
def init(
    ledger: Ledger,
    reference: Annotated[
        Path,
        typer.Option(
            metavar="TABLE", help="Rows with y and predictions on which the model was calibrated."
        ),
    ],
    mature: Annotated[
        int,
        typer.Option(
            metavar="DAYS",
            help="Label delay: days to wait for rows and their y before a day is tested.",
        ),
    ] = 0,
    *,
    options: Options,
    read: ReadOptions,
) -> None:
    """Save a reference in a new ledger."""
    from howsure.watch import Watch

    read.refuse_common_rows()
    if read.at:
        raise InputError("--at is not used here: a watch monitors the nominal coverage")
    columns: dict[str, Any] = {k: v for k, v in read.columns.items() if v is not None}
    row_id = columns.pop("rows", None)
    watch = Watch.init(
        ledger,
        address(reference),
        mature=mature,
        tolerance=options.tolerance,
        row_id=row_id,
        **read.reading,
        **columns,
    )
    _print(watch.promise.sentence)


@command(watch_app, epilog="Example: howsure watch add model.watch today.csv labels.csv")
def add(
    ledger: Ledger,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Rows with or without y, or names and y of rows already added."
        ),
    ],
) -> None:
    """Add rows to a ledger: exit 0 if all files are added, 2 if none is.

    Rows are evaluated once they have y and the label delay is over.
    """
    from howsure.watch import Watch

    booked = Watch(ledger).add(*map(address, files))
    _print(booked.sentence)


@command(watch_app, epilog="Example: howsure watch undo model.watch")
def undo(ledger: Ledger) -> None:
    """Undo the last addition: exit 0 if it is undone, 2 if there is none."""
    from howsure.watch import Watch

    _print(Watch(ledger).undo())


@command(watch_app, epilog="Example: howsure watch show model.watch -o watch.html")
def show(
    ledger: Ledger,
    output: Annotated[list[Path], flag_of(ReportFlags, "output")] = [],  # noqa: B006
) -> None:
    """Show results so far: exit 0 if no fault is significant, 1 if one is, 2 on an error."""
    from howsure.cli.show import show_lines
    from howsure.cli.terminal import Console, say_written
    from howsure.core.files import check_outputs
    from howsure.report.document import form_of
    from howsure.watch import Watch

    for path in output:
        form_of(path)
    check_outputs(output, [Path(ledger)])
    report = Watch(ledger).show()
    console = Console()
    show_lines(console, report.document().lines)
    for path in output:
        report.save(path)
    say_written(console, *output)
    raise typer.Exit(0 if report.kept else 1)


@command(
    watch_app,
    epilog="Example: howsure watch correct model.watch april.csv -o correction.json",
)
def correct(
    ledger: Ledger,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Rows with y since the change.")
    ],
    since: Annotated[
        str | None,
        typer.Option(metavar="DAY", help="First day to fit to; the day of the change if omitted."),
    ] = None,
    running: Annotated[
        bool,
        typer.Option(
            "--running",
            help="Multiply half-widths by a factor that is updated as y becomes available.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="Also save the fit as .json, for howsure recalibrate.",
        ),
    ] = None,
) -> None:
    """Correct future days after a fault: exit 0 if a correction helps, 2 if none does.

    The corrected model is monitored from then on. Keep adding the model's original predictions.
    """
    from howsure.recalibration.serialization import check_place
    from howsure.watch import Watch

    if output is not None:
        if running:
            raise InputError("--output saves a fixed fit, but --running updates it every day")
        check_place(output)
    correction = Watch(ledger).correct(*map(address, files), since=since, running=running)
    _print(correction.sentence)
    if output is not None:
        correction.fitted.save(output)
        echo(f"written: {output}")
