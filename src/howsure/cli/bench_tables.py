"""Tables of `howsure bench` for people and for programs."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
from pyarrow import csv
from rich import box
from rich.table import Table

from howsure.bench import Survey
from howsure.cli.terminal import Console, escape
from howsure.core.formats import short
from howsure.results import Cell, Comparison, side_by_side
from howsure.results.tables import parquet_bytes

_SIDE_BY_SIDE = 5
"""The most methods that stand side by side."""
_STATES = ("done", "failed", "damaged", "at work", "missing")


def print_status(console: Console, found: Survey) -> None:
    """How many trials of each world, method and other label are in which state, and why."""
    given = dict.fromkeys(key for trial, _ in found.found for key in trial.labels)
    keys = sorted(given, key=lambda key: (key != "world", key == "method"))
    counts: dict[tuple[str, ...], Counter[str]] = {}
    parts: Counter[tuple[str, ...]] = Counter()
    for trial, entry in found.found:
        place = tuple(trial.labels.get(key, "") for key in keys)
        state = "at work" if entry.address in found.at_work else entry.status
        counts.setdefault(place, Counter())[state] += 1
        parts[place] += entry.failed_parts
    shown = [state for state in _STATES if any(states[state] for states in counts.values())]
    table = Table()
    for heading in keys:
        table.add_column(heading, no_wrap=heading == "world", overflow="fold")
    for heading in (*shown, *(["failed parts"] if parts.total() else [])):
        table.add_column(heading, no_wrap=True)
    for place, states in counts.items():
        numbers = [str(states[state] or "") for state in shown]
        table.add_row(
            *map(escape, place), *numbers, *([str(parts[place])] if parts.total() else [])
        )
    console.print(table)
    for trial, entry in found.not_done():
        told = entry.problem
        if entry.failure is not None:
            told = f"{entry.failure.error}: {entry.failure.message}"
        if told:
            line = f"{entry.status}: {trial.title} ({entry.address[:12]}): {told}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def print_results(console: Console, table: pa.Table, metrics: tuple[str, ...]) -> None:
    """Methods side by side, or one below the other where they are many, a table a world.

    The best and its equals are bold.
    """
    found = side_by_side(table, metrics)
    for world in dict.fromkeys(row.world for row in found):
        rows = [row for row in found if row.world == world]
        methods = list(dict.fromkeys(name for row in rows for name in row.cells))
        shown = _below(rows, methods) if len(methods) > _SIDE_BY_SIDE else _beside(rows, methods)
        shown.title, shown.title_justify = escape(world), "left"
        console.print(shown)
    console.print(
        "value ± standard error over simulations; bold: the best, and what differs from it by "
        "less than 1.96 standard errors",
        highlight=False,
    )


def _beside(rows: Sequence[Comparison], methods: Sequence[str]) -> Table:
    """A row a measure."""
    shown = Table()
    shown.add_column("measure", no_wrap=True)
    for heading in ("at", *methods, "perfect"):
        shown.add_column(escape(heading))
    for row in rows:
        cells = [_cell(row, name) for name in methods]
        shown.add_row(escape(row.metric), short(row.coverage, 6), *cells, short(row.target, 6))
    return shown


def _below(rows: Sequence[Comparison], methods: Sequence[str]) -> Table:
    """A row a method."""
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    shown.add_column("method", min_width=12)
    for row in rows:
        level = short(row.coverage, 6)
        at = f" at {level}" if level and len({r.coverage for r in rows}) > 1 else ""
        shown.add_column(escape(f"{row.metric.replace('_', ' ')}{at}"), overflow="fold")
    for name in methods:
        shown.add_row(escape(name), *(_cell(row, name).replace(" ± ", "\n±") for row in rows))
    targets = [short(row.target, 6) for row in rows]
    if any(targets):
        shown.add_section()
        shown.add_row("perfect", *targets)
    return shown


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


def _cell(row: Comparison, name: str) -> str:
    cell = row.cells.get(name, Cell(value=math.nan, standard_error=math.nan))
    if math.isnan(cell.value):
        return "–"
    error = "" if math.isnan(cell.standard_error) else f" ± {cell.standard_error:.2g}"
    text = escape(f"{cell.value:.4g}{error}")
    return f"[bold]{text}[/bold]" if name in row.best and len(row.cells) > 1 else text
