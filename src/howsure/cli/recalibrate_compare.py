"""`howsure recalibrate --compare`: every way to mend a belief, through every measure."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import box
from rich.table import Table as Shown

from howsure.cli.terminal import Console, escape
from howsure.core.errors import InputError
from howsure.core.formats import short
from howsure.core.records import Direction, Table
from howsure.inputs import write_table
from howsure.methods.conformal import RankRule, TooFew
from howsure.metrics.view import choose_coverages
from howsure.predictions import EvalSet
from howsure.recalibration import METHODS, compare_recalibrations
from howsure.recalibration.base import kinds_of
from howsure.report.document import Document, Section
from howsure.report.grids import table_grids

ENDINGS = (".csv", ".md", ".json")
"""What a comparison can be written to."""

_SCORES = 5  # columns of a comparison before those of the ways
_ROOM, _CELL = 35, 11  # characters for a measure's title with what is perfect, and for a way


def comparison_form(path: Path) -> str:
    """The ending of a file that a comparison may be written to."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InputError(f"path must end in {', '.join(ENDINGS)}, got {str(path)!r}")
    return ending


def compare(
    given: EvalSet,
    held_out: EvalSet,
    output: Path | None,
    methods: Sequence[str],
    *,
    coverages: Sequence[float],
    seed: int,
    rank: RankRule,
    delta: float,
    too_few: TooFew,
    by: tuple[str, ...] = (),
) -> None:
    """Print each prediction of a table, recalibrated in every way, through every measure."""
    tables = []
    parts = _each_belief(given)
    alien = {way for way in methods if not any(way in _suiting(part) for part in parts)}
    for part in parts:
        ways = [way for way in methods if way in alien or way in _suiting(part)]
        if methods and not ways:
            continue
        chosen = tuple(c for c in choose_coverages(part, coverages) if not math.isnan(c))
        table = compare_recalibrations(
            part,
            held_out,
            methods=ways or None,
            coverages=chosen or (0.9,),
            seed=seed,
            rank=rank,
            delta=delta,
            too_few=too_few,
            by=by,
        )
        labels = {way: way for way in list(table.columns)[_SCORES:]}
        tables.append(replace(table, name=f"ways to recalibrate: {_kind(part)}", labels=labels))
    console = Console()
    for table in tables:
        for shown in _shown(table, max((console.width - _ROOM) // _CELL, 2)):
            console.print(shown)
        if table.notes:
            console.print(f"note: {escape(table.notes)}", highlight=False)
    console.print("bold: the best of a row; all on the test rows", style="dim")
    if output is not None:
        _write(tables, output)
        console.print(f"written: {escape(str(output))}", highlight=False, soft_wrap=True)


def _each_belief(given: EvalSet) -> list[EvalSet]:
    """The rows once for each belief that they hold, with that one alone."""
    return [replace(given, beliefs=(belief,)) for belief in given.beliefs] or [given]


def _kind(part: EvalSet) -> str:
    (kind,) = kinds_of(part)
    return kind


def _suiting(part: EvalSet) -> Collection[str]:
    """The methods that suit a prediction."""
    return METHODS.get(_kind(part), {})


def _shown(table: Table, most: int) -> Iterator[Shown]:
    """The table, in as many parts as it takes; each starts with what was given."""
    given, *ways = list(table.columns)[_SCORES:]
    for start in range(0, len(ways), most - 1):
        yield _part(table, [given, *ways[start : start + most - 1]])


def _part(table: Table, ways: Sequence[str]) -> Shown:
    shown = Shown(title=escape(table.name.capitalize()), title_justify="left", box=box.SIMPLE_HEAD)
    shown.add_column("measure", min_width=12)
    for heading in ("at", *ways, "perfect"):
        shown.add_column(escape(heading), justify="right", no_wrap=True)
    columns = table.columns
    for row in range(len(table)):
        values = {way: float(columns[way][row]) for way in list(columns)[_SCORES:]}
        perfect = float(columns["perfect"][row])
        if all(math.isnan(values[way]) for way in ways[1:]):
            continue
        best = _best(list(values.values()), Direction(columns["direction"][row]), perfect)
        cells = [short(values[way]) for way in ways]
        shown.add_row(
            escape(str(columns["title"][row])),
            short(float(columns["coverage"][row])),
            *(
                f"[bold]{cell}[/bold]" if values[way] == best else cell
                for cell, way in zip(cells, ways, strict=True)
            ),
            short(perfect),
        )
    return shown


def _best(values: Sequence[float], direction: Direction, perfect: float) -> float:
    """The best of some values, some of which are missing; NaN where there is no better or worse."""
    known = [value for value in values if not math.isnan(value)]
    if direction is Direction.LOWER:
        return min(known)
    if direction is Direction.HIGHER:
        return max(known)
    if direction is Direction.TARGET and not math.isnan(perfect):
        return min(known, key=lambda value: abs(value - perfect))
    return math.nan


def _write(tables: Sequence[Table], output: Path) -> None:
    ending = comparison_form(output)
    if ending == ".csv":
        write_table(_together(tables), output)
        return
    kept = [  # titles of measures stand beside their names
        replace(table, columns={k: v for k, v in table.columns.items() if k != "metric"})
        for table in tables
    ]
    Document(
        title="Ways to recalibrate",
        opening=Section(title=""),
        sections=tuple(
            Section(title=grid.title, grids=(replace(grid, title=""),))
            for grid in table_grids(kept, limit=max(map(len, kept), default=0))
        ),
        tables=tuple(tables),
        command=shlex.join(["howsure", *sys.argv[1:]]),
    ).save(output)


def _together(tables: Sequence[Table]) -> dict[str, npt.NDArray[Any]]:
    """One table of all, with a column ``belief``; a way that does not suit a belief is missing."""
    names = dict.fromkeys(name for table in tables for name in table.columns)
    found: dict[str, npt.NDArray[Any]] = {}
    if len(tables) > 1:
        beliefs = [np.full(len(t), t.name.split(": ")[1], dtype=object) for t in tables]
        found["belief"] = np.concatenate(beliefs)
    for name in names:
        parts = [t.columns.get(name, np.full(len(t), np.nan)) for t in tables]
        found[name] = np.concatenate(parts)
    return found
