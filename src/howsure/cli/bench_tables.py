"""Tables of `howsure bench` for people and for programs."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyarrow import csv

from howsure.bench import Survey
from howsure.cli.show import show_grid, show_note
from howsure.cli.terminal import Console
from howsure.core import formats
from howsure.report.document import Cell, Column, Grid, Rows
from howsure.report.grids import number_cell
from howsure.results import Comparison, side_by_side
from howsure.results.tables import parquet_bytes

_SIDE_BY_SIDE = 5
"""The most methods that stand side by side."""
_PARTS = "failed parts"
_STATES = ("done", "failed", "damaged", "at work", "missing", _PARTS)


def print_status(console: Console, found: Survey) -> None:
    """How many trials of each world, method and other label are in which state, and why."""
    given = dict.fromkeys(key for trial, _ in found.found for key in trial.labels)
    keys = sorted(given, key=lambda key: (key != "world", key == "method"))
    counts: dict[tuple[str, ...], Counter[str]] = {}
    for trial, entry in found.found:
        place = tuple(trial.labels.get(key, "") for key in keys)
        state = "at work" if entry.address in found.at_work else entry.status
        counts.setdefault(place, Counter())[state] += 1
        counts[place][_PARTS] += entry.failed_parts
    shown = [state for state in _STATES if any(states[state] for states in counts.values())]
    rows = tuple(
        tuple(Cell(text=text) for text in (*place, *(str(states[s] or "") for s in shown)))
        for place, states in counts.items()
    )
    columns = (*(Column(title=k) for k in keys), *(Column(title=s, numeric=True) for s in shown))
    show_grid(console, Grid(title="", columns=columns, parts=(Rows(rows=rows),)))
    for trial, entry in found.not_done():
        told = entry.problem
        if entry.failure is not None:
            told = f"{entry.failure.error}: {entry.failure.message}"
        if told:
            line = f"{entry.status}: {trial.title} ({entry.address[:12]}): {told}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def print_results(console: Console, table: pa.Table, metrics: tuple[str, ...]) -> None:
    """Methods side by side, or one below the other where they are many, a table a world."""
    found = side_by_side(table, metrics)
    for world in dict.fromkeys(row.world for row in found):
        rows = [row for row in found if row.world == world]
        methods = list(dict.fromkeys(name for row in rows for name in row.cells))
        shown = _below(rows, methods) if len(methods) > _SIDE_BY_SIDE else _beside(rows, methods)
        show_grid(console, replace(shown, title=world))
    show_note(
        console,
        "Value ± standard error over simulations. *: the best, and what differs from it by less "
        "than 1.96 standard errors.",
    )


def _beside(rows: Sequence[Comparison], methods: Sequence[str]) -> Grid:
    """A row a measure."""
    shown = tuple(
        (
            Cell(text=row.metric, small=_at(row)),
            *(_cell(row, name) for name in methods),
            number_cell(row.target),
        )
        for row in rows
    )
    numbers = (Column(title=title, numeric=True) for title in (*methods, "perfect"))
    columns = (Column(title="Measure"), *numbers)
    return Grid(title="", columns=columns, parts=(Rows(rows=shown),))


def _below(rows: Sequence[Comparison], methods: Sequence[str]) -> Grid:
    """A row a method."""
    several = len({row.coverage for row in rows}) > 1
    columns = [Column(title="Method")]
    for row in rows:
        title = f"{row.metric.replace('_', ' ')} {_at(row) if several else ''}"
        columns.append(Column(title=title.strip(), numeric=True))
    shown = [(Cell(text=name), *(_cell(row, name) for row in rows)) for name in methods]
    if any(not math.isnan(row.target) for row in rows):
        shown.append((Cell(text="perfect"), *(number_cell(row.target) for row in rows)))
    return Grid(title="", columns=tuple(columns), parts=(Rows(rows=tuple(shown)),))


def _at(row: Comparison) -> str:
    return "" if math.isnan(row.coverage) else f"at {formats.level(row.coverage)}"


def written(table: pa.Table, form: str) -> bytes:
    """A table as CSV, JSON (a list of rows; what is not a number is null) or Parquet."""
    if form == "parquet":
        return parquet_bytes(table)
    if form == "csv":
        sink = io.BytesIO()
        csv.write_csv(table, sink)
        return sink.getvalue()
    rows = [{key: _plain(value) for key, value in row.items()} for row in table.to_pylist()]
    return (json.dumps(rows, indent=1, ensure_ascii=False) + "\n").encode()


def _plain(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(row: Comparison, name: str) -> Cell:
    """A number with its error; marked where it is among the best."""
    if name not in row.cells or math.isnan(row.cells[name].value):
        return Cell(text=formats.MISSING)
    found = row.cells[name]
    value, error = formats.estimate(found.value, found.standard_error)
    best = name in row.best and len(row.cells) > 1
    small = (f"± {error}" if error else "", "*" if best else "")
    return Cell(text=value, small=" ".join(filter(None, small)))
