"""`howsure data`: data sets by name, how to get them, and whether they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from howsure.cli.entry import Interrupted, echo
from howsure.cli.terminal import Console, escape
from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure.core.registry import unknown

if TYPE_CHECKING:
    from howsure_studies.tasks.download import Entry, Remote

KEPT: Final = "interrupted: downloaded data are kept; the same command resumes"

app = typer.Typer(name="data", no_args_is_help=True, add_completion=False, rich_markup_mode="rich")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Data set by name: see howsure data list.")
]
Folder = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Folder of the data set; found automatically if omitted."),
]


_ABSENT = {"drawn images": "generated on demand", "table of a package": "read from its package"}
"""Where sets are that need no folder."""


@app.callback()
def root() -> None:
    """List data sets, download them, and check the files."""


@app.command(name="list", epilog="Example: howsure data list")
def list_() -> None:
    """List the data sets with their content, licence and place."""
    from howsure_studies.tasks.catalogue import entries
    from howsure_studies.tasks.files import located

    console = Console()
    kind = None
    for entry in entries().values():
        if entry.kind != kind:
            kind = entry.kind
            console.print(f"\n[bold]{kind}[/bold]", highlight=True)
        title = f"[cyan]{entry.name}[/cyan]  {escape(entry.what)}"
        console.print(title, highlight=False, soft_wrap=True)
        home = located(entry.folder) if entry.folder else None
        there = f"at {home}" if home else _ABSENT.get(entry.kind, "not on this machine")
        text = escape(f"licence: {entry.licence}; {there}")
        console.print(Padding(text, (0, 0, 0, 4)), style="dim", highlight=False)
    console.print("\nhowsure data get NAME downloads a data set, or shows how.", highlight=False)


@app.command(epilog="Example: howsure data get cells")
def get(name: Name, folder: Folder = None) -> None:
    """Download a data set, or show how to get it by hand; exit 1 if it is not there yet.

    What breaks off or is interrupted is kept, and the same command goes on from there.
    """
    from howsure_studies.tasks.download import check as examined
    from howsure_studies.tasks.download import get as fetch

    entry = _entry(name)
    _print_facts(entry)
    if entry.remotes:
        try:
            with _shown():
                home = fetch(entry, folder)
        except KeyboardInterrupt:
            raise Interrupted(KEPT) from None
        echo(f"written: {home}")
        return
    if not entry.folder:
        return
    echo(f"put it in a folder {entry.folder} under HOWSURE_DATA or the cache of howsure")
    if entry.kind == "drawn images":
        return
    if not all(finding.good for finding in examined(entry, folder)):
        echo(f"then howsure data check {name} shows whether all files are intact", error=True)
        raise typer.Exit(1)


@app.command(epilog="Example: howsure data check cells")
def check(
    name: Name,
    folder: Folder = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="Record the hash of every file, so that later checks detect changes."
        ),
    ] = False,
) -> None:
    """Check which files are present, missing or changed; exit 0 if all are intact, 1 if not."""
    from howsure_studies.tasks.download import check as examined
    from howsure_studies.tasks.download import record as note
    from howsure_studies.tasks.files import located

    entry = _entry(name)
    if not entry.folder:
        from howsure_studies.tasks import regression_table

        echo(f"ok    {len(regression_table(name)):,} complete rows")
        return
    if entry.kind == "drawn images" and folder is None and located(entry.folder) is None:
        echo(f"{name} is generated on demand: no file is needed")
        return
    if record:
        echo(f"written: {note(entry, folder)}")
    findings = examined(entry, folder)
    for finding in findings:
        echo(f"{'ok  ' if finding.good else 'FAIL'}  {finding.said}")
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)


@contextmanager
def _shown() -> Iterator[None]:
    """Bars on stderr: of each file, how much of it has come, is checked and is unpacked."""
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    shown: dict[str, TaskID] = {}

    def hear(stage: str, done: int, total: int) -> None:
        if stage not in shown:
            shown[stage] = bars.add_task(escape(stage), total=None, said="")
        said = f"{done:,}" if not total else f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB"
        bars.update(shown[stage], completed=done, total=total or None, said=said)

    with bars, subscribe(hear):
        yield


def _entry(name: str) -> Entry:
    from howsure_studies.tasks.catalogue import entries

    known = entries()
    if name not in known:
        raise InputError(unknown(name, known, "NAME"))
    return known[name]


def _print_facts(entry: Entry) -> None:
    console = Console()
    console.print(f"[bold]{escape(entry.name)}[/bold]", highlight=False)
    for label, text in (
        ("what", entry.what),
        ("licence", entry.licence),
        ("source", entry.source),
        ("how", entry.how),
        *(("file", _described(remote)) for remote in entry.remotes),
    ):
        console.print(f"  {label:<8} {escape(text)}", highlight=False, soft_wrap=True)


def _described(remote: Remote) -> str:
    """A file's name, bytes and hash, as far as they are known, and its address."""
    size = "" if remote.size is None else f", {remote.size:,} bytes"
    return f"{remote.name}{size}, {remote.hash or 'no hash known'}, {remote.url}"
