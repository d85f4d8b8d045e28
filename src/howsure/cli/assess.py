"""`howsure assess`: the verdict first, then the numbers behind it."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import JustifyMethod
from rich.table import Table

from howsure.cli.options import CongruenceFlags, ReadOptions
from howsure.cli.progress import Stages
from howsure.cli.terminal import SIGNS, Console, escape
from howsure.core.errors import InputError
from howsure.core.files import check_outputs
from howsure.core.formats import short
from howsure.core.progress import listening, tell
from howsure.core.records import Direction, Record
from howsure.inputs import ColumnUse
from howsure.inputs.roles import ROLES
from howsure.metrics.catalogue import asked_for, catalogue
from howsure.report.assess import MISSING_IMAGES, WEIGHTS, assess_loaded
from howsure.report.assessment import Assessment
from howsure.report.document import Grid, form_of
from howsure.report.door import source_fact
from howsure.report.grids import table_grid
from howsure.report.overview import OVERVIEW
from howsure.report.short_forms import key_numbers
from howsure.verdict.family import check_judging

_NARROWEST, _WIDE = 24, 90  # columns of text for titles; for standard errors beside intervals
_ARROWS = {
    Direction.LOWER: "↓",
    Direction.HIGHER: "↑",
    Direction.TARGET: "◎",
    Direction.NONE: "",
}


def run(
    files: Sequence[Path],
    outputs: Sequence[Path],
    explain: bool,
    slow: Sequence[str],
    judging: tuple[float, Sequence[str]],
    confidence: float,
    seed: int,
    progress: bool | None,
    tuned: CongruenceFlags,
    read: ReadOptions,
    trials: bool = True,
    shown: str = "brief",
) -> None:
    """Read, assess, print, and write what is asked for."""
    if shown == "quiet" and not outputs:
        raise InputError("--quiet prints nothing: name a report with -o")
    console = Console()
    for path in outputs:
        form_of(path)
    check_outputs(outputs, files)
    tolerance, ignore = judging
    check_judging(tolerance, ignore)
    slow = asked_for(slow, "--with")
    source = list(files) if len(files) > 1 else files[0]
    if explain:
        print_explanation(console, read.explain(source))
        return
    choices = tuned.options()
    with Stages(progress) as stages, listening(stages):
        tell("reading")
        loaded = read.load(source)
        result = assess_loaded(
            loaded,
            facts=source_fact(files),
            coverages=read.assessed,
            confidence=confidence,
            seed=seed,
            slow=slow,
            tolerance=tolerance,
            ignore=ignore,
            command=shlex.join(["howsure", *sys.argv[1:]]),
            trials=trials,
            recalibration=_recalibration(files, read, [held.model for held in loaded.evalsets]),
            congruence=choices,
        )
        for path in outputs:
            tell(f"writing {path.name}")
            result.save(path)
    if shown == "json":
        sys.stdout.write(result.to_json())
    if shown in ("json", "quiet"):
        return
    for held in result.tables:
        if held.name == OVERVIEW:
            console.print()
            print_grid(console, table_grid(held))
    print_verdict(console, result)
    if shown == "all":
        print_records(console, result)
    else:
        print_grid(console, table_grid(key_numbers(result.records)))
        console.print("--all shows every number, -o report.html a page.", style="dim")
    for path in outputs:
        console.print(f"written: {escape(str(path))}", highlight=False, soft_wrap=True)


def _recalibration(
    files: Sequence[Path], read: ReadOptions, models: Sequence[str]
) -> dict[str, str]:
    """How the command begins that recalibrates new rows of each model that has its own table."""
    told = read.flags(without={"groups"})  # the method names the columns that it needs
    words = ["howsure", "recalibrate", "NEW.csv", "--calibration"]
    if len(models) != len(files):
        return {}
    return {
        model: shlex.join([*words, str(path), *told])
        for model, path in zip(models, files, strict=True)
    }


def print_explanation(console: Console, uses: Sequence[ColumnUse]) -> None:
    """How the columns would be read."""
    several = len({use.source for use in uses}) > 1
    table = Table(title="How the columns are read", title_justify="left")
    for heading in (*(["table"] if several else []), "column", "role", "note"):
        table.add_column(heading, overflow="fold")
    for use in uses:
        cells = (*([use.source] if several else []), use.column, use.role, use.note)
        table.add_row(*(escape(cell) for cell in cells))
    console.print(table)
    known = Table(title="Names that are recognised", title_justify="left")
    for heading in ("flag", "names, whatever their case"):
        known.add_column(heading, overflow="fold")
    for role in ROLES:
        if role.shown:
            beginning = "such as " if role.examples else ""
            known.add_row(role.option, escape(beginning + ", ".join(role.shown)))
    console.print(known)


def print_grid(console: Console, grid: Grid) -> None:
    """A table, in as many parts beside its first column as the width takes."""
    (part,) = grid.parts
    if not part.rows:
        return
    cells = list(zip(*([cell.text for cell in row] for row in part.rows), strict=True))
    name, *others = range(len(grid.columns))
    widths = [
        max(map(len, (column.title, *texts))) + 2
        for column, texts in zip(grid.columns, cells, strict=True)
    ]
    while others:
        room, shown = console.width - widths[name], [name]
        while others and (len(shown) == 1 or room >= widths[others[0]]):
            shown.append(others.pop(0))
            room -= widths[shown[-1]]
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for place in shown:
            justify: JustifyMethod = "right" if grid.columns[place].numeric else "left"
            table.add_column(escape(grid.columns[place].title), justify=justify, no_wrap=True)
        for row in part.rows:
            table.add_row(*(escape(row[place].text) for place in shown))
        console.print(table)
        if others:
            console.print()
    for note in grid.notes:
        console.print(escape(note), style="dim", highlight=False)


def print_verdict(console: Console, result: Assessment) -> None:
    """The verdict, a line each, marked by its tone."""
    console.print()
    for line in result.lines:
        console.print(f"{SIGNS[line.tone]} {escape(line.text)}", highlight=False)
        if line.command:
            console.print(f"  [bold]{escape(line.command)}[/bold]", highlight=False, soft_wrap=True)
    for silent in result.tables:
        if silent.name == "not_judged":
            told = dict.fromkeys(zip(silent.columns["id"], silent.columns["reason"], strict=True))
            listed = "; ".join(f"{name} ({reason})" for name, reason in told)
            console.print(f"Not judged: {escape(listed)}.", style="dim", highlight=False)
    if MISSING_IMAGES in result.facts:
        words = escape(result.facts[MISSING_IMAGES])
        console.print(f"[yellow]![/yellow] Files are gone of {words}.", highlight=False)
    if WEIGHTS in result.facts:
        console.print(f"Weights: {escape(result.facts[WEIGHTS])}.", style="dim", highlight=False)
    console.print()


def print_records(console: Console, result: Assessment) -> None:
    """All answered records over all rows, by model and question; then what was not, and why."""
    entries = catalogue()
    shown = [r for r in result.records if not r.group and not math.isnan(r.value)]
    models = list(dict.fromkeys(record.model for record in shown))
    for model in models:
        if len(models) > 1:
            console.print(f"\n[bold]{escape(model)}[/bold]", highlight=False)
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("measure", overflow="fold", min_width=_NARROWEST)
        headings = ("at", "value", "± se", "interval", "perfect", "")
        kept = [k for k, name in enumerate(headings) if name != "± se" or console.width >= _WIDE]
        for k in kept:
            table.add_column(headings[k], justify="right", no_wrap=True)
        for question in dict.fromkeys(metric.question for metric in entries.values()):
            rows = [r for r in shown if r.model == model and entries[r.metric].question == question]
            for position, record in enumerate(rows):
                if position == 0:
                    table.add_row()
                cells = _cells(record)
                table.add_row(escape(entries[record.metric].title), *(cells[k] for k in kept))
        console.print(table)
    console.print("↓ lower is better  ↑ higher is better  ◎ closer to perfect", style="dim")
    _print_unanswered(console, result)


def _print_unanswered(console: Console, result: Assessment) -> None:
    reasons: dict[str, list[str]] = {}
    for record in result.unanswered:
        reasons.setdefault(record.reason, []).append(record.metric)
    if reasons:
        console.print("\nNot answered:", style="bold")
    for reason, names in reasons.items():
        listed = ", ".join(dict.fromkeys(names))
        console.print(f"  {escape(listed)}: {escape(reason)}", highlight=False)


def _cells(record: Record) -> tuple[str, str, str, str, str, str]:
    perfect = record.null if not math.isnan(record.null) else record.target
    tiny = record.units == "p-value" and record.value < 0.001
    return (
        short(record.coverage),
        "< 0.001" if tiny else short(record.value, 4),
        short(record.standard_error, 2),
        "" if math.isnan(record.lower) else f"{record.lower:.4g} … {record.upper:.4g}",
        short(perfect, 3),
        _ARROWS[record.direction],
    )
