"""Tables of `howsure bench` for people and for programs."""

from __future__ import annotations

import io
import json
import math
from collections import Counter

import pyarrow as pa
from pyarrow import csv

from howsure.cli.show import show_grid, show_note
from howsure.cli.terminal import Console
from howsure.report.document import Cell, Column, Grid, Rows
from howsure.studies.engine import Survey
from howsure.studies.engine.page import SIDE_BY_SIDE_NOTE, side_by_side_grids
from howsure.studies.engine.tables import parquet_bytes

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
    for grid in side_by_side_grids(table, metrics):
        show_grid(console, grid)
    show_note(console, SIDE_BY_SIDE_NOTE)


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
