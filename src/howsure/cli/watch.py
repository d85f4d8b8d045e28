"""`howsure watch`: a promise from deployment to retirement."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from howsure.cli.options import TOLERANCE, Outputs, ReadOptions, Tolerance, address, reads_tables
from howsure.cli.terminal import Console, escape, say_written
from howsure.core.errors import InputError

watch_app = typer.Typer(
    help="Follow a model after the gate: a promise that may be looked at every day.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Ledger = Annotated[
    str,
    typer.Argument(
        metavar="LEDGER",
        help="Ledger of the watch: a file, a folder (a path that ends with /), or a URL of one.",
    ),
]


@watch_app.command(
    "init", epilog="Example: howsure watch init model.watch --reference held_out.csv --time day"
)
@reads_tables
def watch_init(
    ledger: Ledger,
    reference: Annotated[
        Path,
        typer.Option(
            metavar="TABLE", help="Rows with y and predictions, on which the model was right."
        ),
    ],
    mature: Annotated[
        int,
        typer.Option(
            metavar="DAYS",
            help="Days until a day is booked: so long rows and their y may come.",
        ),
    ] = 0,
    tolerance: Tolerance = TOLERANCE,
    *,
    read: ReadOptions,
) -> None:
    """Freeze the promise of a reference in a new ledger."""
    from howsure.watch import Watch

    read.refuse_common_rows()
    if read.at:
        raise InputError("--at is not used here: a watch follows the coverage that is stated")
    columns: dict[str, Any] = {k: v for k, v in read.columns.items() if v is not None}
    row_id = columns.pop("rows", None)
    watch = Watch.init(
        ledger,
        address(reference),
        mature=mature,
        tolerance=tolerance,
        row_id=row_id,
        **read.reading,
        **columns,
    )
    Console().print(escape(watch.promise.sentence))


@watch_app.command("add", epilog="Example: howsure watch add model.watch today.csv labels.csv")
def watch_add(
    ledger: Ledger,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Rows with y or without it, or names and y of rows that wait."
        ),
    ],
) -> None:
    """Add rows to a ledger: exit 0 if they are booked or wait, 2 if they are refused.

    All files are added, or none.
    """
    from howsure.watch import Watch

    booked = Watch(ledger).add(*map(address, files))
    Console().print(escape(booked.sentence))


@watch_app.command("undo", epilog="Example: howsure watch undo model.watch")
def watch_undo(ledger: Ledger) -> None:
    """Take the last addition back: exit 0 if it is, 2 if there is none."""
    from howsure.watch import Watch

    Console().print(escape(Watch(ledger).undo()))


@watch_app.command("show", epilog="Example: howsure watch show model.watch -o watch.html")
def watch_show(ledger: Ledger, output: Outputs = []) -> None:  # noqa: B006
    """Say whether the promise is kept: exit 0 if it is, 1 if it is broken, 2 on an error."""
    from howsure.cli.show import show_lines
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


@watch_app.command(
    "correct", epilog="Example: howsure watch correct model.watch april.csv -o correction.json"
)
def watch_correct(
    ledger: Ledger,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Rows with y, from the change on.")
    ],
    since: Annotated[
        str | None,
        typer.Option(
            metavar="DAY", help="First day to learn from; that of the change if it is left out."
        ),
    ] = None,
    running: Annotated[
        bool,
        typer.Option(
            "--running",
            help="Multiply half-widths by a factor that follows the rows whose y has come.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Also keep what was learnt, for howsure recalibrate: a .json file.",
        ),
    ] = None,
) -> None:
    """Correct all days to come after a promise broke: exit 0 if something helps, 2 if nothing does.

    A new promise begins. Go on to add predictions as they come from the model.
    """
    from howsure.recalibration.serialization import check_place
    from howsure.watch import Watch

    if output is not None:
        if running:
            raise InputError("--output keeps what is learnt once, and with --running it goes on")
        check_place(output)
    correction = Watch(ledger).correct(*map(address, files), since=since, running=running)
    console = Console()
    console.print(escape(correction.sentence))
    if output is not None:
        correction.fitted.save(output)
        say_written(console, output)
