"""`howsure recalibrate --compare`: every way to recalibrate a prediction, through every measure."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.cli.show import show_grid
from howsure.cli.terminal import Console, escape
from howsure.conformal import RankRule, TooFew
from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.records import Direction, Table
from howsure.inputs import write_table
from howsure.metrics.view import choose_coverages
from howsure.predictions import EvalSet
from howsure.recalibration import compare_recalibrations
from howsure.recalibration.base import kinds_of
from howsure.recalibration.registry import method_of
from howsure.report.document import Cell, Column, Document, Grid, GridRows, Section
from howsure.report.grids import number_cell

ENDINGS = (".csv", ".md", ".json")
"""What a comparison can be written to."""

_SCORES = 5  # columns of a comparison before those of the ways


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
    alien = {way for way in methods if not any(_suits(way, part) for part in parts)}
    for part in parts:
        ways = [way for way in methods if way in alien or _suits(way, part)]
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
    grids = [_grid(table) for table in tables]
    for grid in grids:
        show_grid(console, grid)
    if output is not None:
        _write(tables, grids, output)
        console.print(f"written: {escape(str(output))}", highlight=False, soft_wrap=True)


def _each_belief(given: EvalSet) -> list[EvalSet]:
    """The rows once for each belief that they hold, with that one alone."""
    return [replace(given, beliefs=(belief,)) for belief in given.beliefs] or [given]


def _kind(part: EvalSet) -> str:
    (kind,) = kinds_of(part)
    return kind


def _suits(way: str, part: EvalSet) -> bool:
    """Whether a method suits a prediction."""
    return method_of(_kind(part), way) is not None


def _grid(table: Table) -> Grid:
    """A row a measure, a column a way; the best of a row is marked."""
    ways = list(table.columns)[_SCORES:]
    rows = tuple(
        _row(table, row, ways)
        for row in range(len(table))
        if not all(math.isnan(float(table.columns[way][row])) for way in ways[1:])
    )
    return Grid(
        title=table.name.capitalize(),
        columns=(
            Column(title="Measure"),
            *(Column(title=title, numeric=True) for title in (*ways, "perfect")),
        ),
        parts=(GridRows(rows=rows),),
        notes=(
            *([table.notes] if table.notes else []),
            "*: the best of a row; chance is not tested.",
        ),
    )


def _row(table: Table, row: int, ways: Sequence[str]) -> tuple[Cell, ...]:
    """A measure of every way; as it is called, with its coverage."""
    values = {way: float(table.columns[way][row]) for way in ways}
    perfect, at = (float(table.columns[name][row]) for name in ("perfect", "coverage"))
    best = _best(list(values.values()), Direction(table.columns["direction"][row]), perfect)
    marked = number_cell(best).text if not math.isnan(best) else ""
    shown = [number_cell(value) for value in values.values()]
    title = str(table.columns["title"][row])
    small = "" if math.isnan(at) else f"at {formats.level(at)}"
    return (
        Cell(text=title, small=small),
        *(replace(cell, small="*" if cell.text == marked else "") for cell in shown),
        number_cell(perfect),
    )


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


def _write(tables: Sequence[Table], grids: Sequence[Grid], output: Path) -> None:
    ending = comparison_form(output)
    if ending == ".csv":
        write_table(_together(tables), output)
        return
    Document(
        title="Ways to recalibrate",
        opening=Section(title=""),
        sections=tuple(
            Section(title=grid.title, grids=(replace(grid, title=""),)) for grid in grids
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
