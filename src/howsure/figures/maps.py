"""Maps of rows, coloured by a number: where a model is wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.records import Table
from howsure.figures.columns import number, of_model, texts
from howsure.figures.figure import Axis, Figure, Layer, Mark, Shades
from howsure.figures.text import headed, one_line

MAP_LIMIT = 300
"""The most points of one map."""
_CLASSES = 8
_EXTREME = 1e150
"""Beyond this size, numbers have no class; below its inverse, they are all one."""
_HOVERED = (
    ("cce", "CCE"),
    ("perfect", "CCE of a perfect model"),
    ("p_value", "p-value"),
)


def map_figures(tables: Sequence[Table]) -> list[Figure]:
    """A scatter plot of each table ``cce_map``, all with one scale of colours."""
    maps = [(table, rows) for table in tables if len(rows := _rows(table))]
    if not maps:
        return []
    values = [_column(table, "cce")[rows] for table, rows in maps]
    edges = class_edges(min(v[0] for v in values), max(v[-1] for v in values))
    return [_map_figure(table, rows, edges) for table, rows in maps]


def class_edges(low: float, high: float, most: int = _CLASSES) -> tuple[float, ...]:
    """Round ends of at most so many classes of one width that hold a range."""
    spread = max(high - low, 1e-3 * max(abs(low), abs(high)))
    if spread < 1.0 / _EXTREME:
        spread = 1.0
    size = 10.0 ** math.floor(math.log10(spread / most))
    steps = [size * part for part in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)]
    ends = [(math.floor(low / step), math.ceil(high / step), step) for step in steps]
    first, last, step = next(found for found in ends if found[1] - found[0] <= most)
    return tuple(float(f"{place * step:.12g}") for place in range(first, max(last, first + 2) + 1))


def _column(table: Table, name: str) -> FloatArray:
    found = number(table, name)
    return np.zeros(0) if found is None else found


def _rows(table: Table) -> IntArray:
    """Rows that have a place and a colour, the highest last: it is drawn on top."""
    if table.name != "cce_map":
        return np.zeros(0, dtype=np.int64)
    parts = [number(table, name) for name in ("first", "second", "cce")]
    if any(part is None for part in parts):
        return np.zeros(0, dtype=np.int64)
    first, second, value = (part for part in parts if part is not None)
    coloured = np.abs(value) < _EXTREME
    seen = np.flatnonzero(np.isfinite(first) & np.isfinite(second) & coloured)
    return seen[np.argsort(value[seen], kind="stable")]


def _map_figure(table: Table, rows: IntArray, edges: tuple[float, ...]) -> Figure:
    shown = rows
    notes = [one_line(table.notes, 400)] if table.notes else []
    if len(rows) > MAP_LIMIT:
        shown = rows[np.linspace(0, len(rows) - 1, MAP_LIMIT).round().astype(np.int64)]
        notes.append(
            f"Shown: {MAP_LIMIT:,} of {len(rows):,} rows, from the lowest CCE to the highest."
        )
    told = {title: _column(table, name) for name, title in _HOVERED}
    names = texts(table, "row")
    layer = Layer(
        mark=Mark.POINTS,
        x=_column(table, "first")[shown],
        y=_column(table, "second")[shown],
        shade=told["CCE"][shown],
        labels=tuple(names[row] for row in shown) if "row" in table.columns else (),
        hover={title: part[shown] for title, part in told.items() if len(part)},
        listed=False,
    )
    x, y = (headed(table.labels.get(name, name)) for name in ("first", "second"))
    return Figure(
        name="cce_map",
        label=table.model,
        question="Where is the model wrong?",
        title="Congruence at every row" + of_model(table),
        reading=(
            "The stronger a row's colour, the farther its predictive distribution is from what "
            "happened at like inputs (CCE). Strong points that lie together show where."
        ),
        x=Axis(title=x),
        y=Axis(title=y),
        layers=(layer,),
        notes=tuple(notes),
        shades=Shades(title="CCE", edges=edges),
        naming="Row",
    )
