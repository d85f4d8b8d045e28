"""Maps of rows, coloured by a number: where a model is wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray, IntArray
from howsure.core.records import Table
from howsure.core.text import headed, one_line
from howsure.figures.columns import number, of_model, texts
from howsure.figures.figure import HIGHLIGHT, Axis, Figure, Layer, Mark, Shades
from howsure.figures.palette import VEGA_SHAPES

MAP_LIMIT = 300
"""The most points of one map, and of rows outside a reference besides."""
MAP_HEIGHT = 420
INSIDE, OUTSIDE = "inside the reference", "outside the reference"
"""What rows of a map are that a reference watches."""
_CLASSES = 8
_EXTREME = 1e150
"""Beyond this size, numbers have no class; below its inverse, they are all one."""
_CROSS = VEGA_SHAPES.index("cross")
_SHADED = (
    "The stronger a row's colour, the farther its predictive distribution is from what happened at "
    "like inputs (CCE). Strong points that lie together show where."
)
_BEYOND = "At crosses the model cannot be judged, as no labelled row is near."
_HOVERED = (
    ("cce", "CCE"),
    ("perfect", "CCE of a perfect model"),
    ("p_value", "p-value"),
)


def map_figures(tables: Sequence[Table], _: Mapping[str, int]) -> list[Figure]:
    """A scatter plot of each map of rows, all with one scale of colours."""
    maps = [(table, rows) for table in tables if len(rows := _rows(table))]
    if not maps:
        return []
    values = np.concatenate([_column(table, "cce")[rows] for table, rows in maps])
    known = values[np.isfinite(values)]
    edges = class_edges(float(known.min()), float(known.max())) if len(known) else ()
    return [_map_figure(table, rows, edges) for table, rows in maps]


def class_edges(low: float, high: float, most: int = _CLASSES) -> tuple[float, ...]:
    """Round ends of at most so many classes of one width that hold a range."""
    spread = max(high - low, 1e-3 * max(abs(low), abs(high)))
    if spread < 1.0 / _EXTREME:
        spread = 1.0
    size = 10.0 ** math.floor(math.log10(spread / most))
    steps = [size * part for part in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)]
    ends = [(math.floor(low / step), math.ceil(high / step), step) for step in steps]
    first, last, step = next(end for end in ends if end[1] - end[0] <= most)
    return tuple(float(f"{place * step:.12g}") for place in range(first, max(last, first + 2) + 1))


def _column(table: Table, name: str) -> FloatArray:
    found = number(table, name)
    return np.zeros(0) if found is None else found


def _rows(table: Table) -> IntArray:
    """Rows that have a place, and a colour or lie outside, the highest last: it is on top."""
    parts = [number(table, name) for name in ("first", "second", "cce")]
    if any(part is None for part in parts):
        return np.zeros(0, dtype=np.int64)
    first, second, value = (part for part in parts if part is not None)
    shown = np.abs(value) < _EXTREME
    if "outside" in table.columns:
        shown |= np.isnan(value)
    seen = np.flatnonzero(np.isfinite(first) & np.isfinite(second) & shown)
    return seen[np.argsort(value[seen], kind="stable")]


def _map_figure(table: Table, rows: IntArray, edges: tuple[float, ...]) -> Figure:
    notes = [one_line(table.notes, 400)] if table.notes else []
    outside = table.columns.get("outside")
    beyond = np.zeros(len(rows), dtype=np.bool_) if outside is None else outside[rows] == 1
    parts = [_thinned(rows[~beyond]), _thinned(rows[beyond])]
    if len(parts[0]) + len(parts[1]) < len(rows):
        notes.append(
            f"Shown: {len(parts[0]) + len(parts[1]):,} of {len(rows):,} rows, "
            "from the lowest CCE to the highest."
        )
    told = {title: _column(table, name) for name, title in _HOVERED}
    names = texts(table, "row")

    def points(shown: IntArray, **look: Any) -> Layer:
        return Layer(
            mark=Mark.POINTS,
            x=_column(table, "first")[shown],
            y=_column(table, "second")[shown],
            labels=tuple(names[row] for row in shown) if "row" in table.columns else (),
            hover={
                title: part[shown]
                for title, part in told.items()
                if len(part) and np.isfinite(part[shown]).any()
            },
            **look,
        )

    inside: dict[str, Any] = {"series": INSIDE, "size": 0.5}
    if edges:
        inside = {"shade": told["CCE"][parts[0]], "listed": False}
    layers = [points(parts[0], **inside)] if len(parts[0]) else []
    if len(parts[1]):
        layers.append(points(parts[1], series=OUTSIDE, colour=HIGHLIGHT, shape=_CROSS))
    x, y = (headed(table.labels.get(name, name)) for name in ("first", "second"))
    reading = [_SHADED] if edges else []
    reading += [_BEYOND] if len(parts[1]) else []
    watched = outside is not None
    title = "New rows beside the reference" if watched else "Congruence at every row"
    return Figure(
        name=table.name,
        label=table.model,
        question="Which rows can be judged?" if watched else "Where is the model wrong?",
        title=title + of_model(table),
        reading=" ".join(reading) or "Every row lies inside the reference.",
        x=Axis(title=x),
        y=Axis(title=y),
        layers=tuple(layers),
        notes=tuple(notes),
        shades=Shades(title="CCE", edges=edges) if edges else None,
        naming="Row",
        height=MAP_HEIGHT,
        finding=_farthest(table, rows, (x, y), int(beyond.sum()) if watched else None),
    )


def _farthest(table: Table, rows: IntArray, titles: tuple[str, str], outside: int | None) -> str:
    """The row of the highest CCE and where it lies, and how many rows lie outside a reference."""
    told = []
    if outside is not None:
        told.append(f"{outside:,} of {formats.counted(len(rows), 'row')} outside the reference")
    value = _column(table, "cce")[rows]
    if np.isfinite(value).any():
        row = rows[int(np.nanargmax(value))]
        places = (
            f"{title} {formats.number(_column(table, name)[row], 3)}"
            for title, name in zip(titles, ("first", "second"), strict=True)
        )
        highest, middle = (
            formats.number(np.nanmax(value), 3),
            formats.number(np.nanmedian(value), 3),
        )
        told.append(f"CCE up to {highest} ({', '.join(places)}), median {middle}")
    return f"{'; '.join(told)}."


def _thinned(rows: IntArray) -> IntArray:
    """At most so many rows as a map shows, evenly from the first to the last."""
    if len(rows) <= MAP_LIMIT:
        return rows
    return rows[np.linspace(0, len(rows) - 1, MAP_LIMIT).round().astype(np.int64)]
