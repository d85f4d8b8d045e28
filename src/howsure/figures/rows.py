"""Rows drawn one by one: y beside its interval, and maps coloured by a number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core import formats
from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.records import ResultTable
from howsure.core.text import headed, one_line
from howsure.figures.figure import (
    HIGHLIGHT,
    REFERENCE,
    Axis,
    Figure,
    Layer,
    Mark,
    Shades,
    number,
    of_model,
    texts,
)
from howsure.figures.palette import VEGA_SHAPES

INSIDE, OUTSIDE = "y inside its interval", "y outside"
_NEEDED = ("y", "point", "lower", "upper")
# Areas of points: so many stand side by side that those inside must be small. By eye.
_AREA_INSIDE, _AREA_OUTSIDE = 0.3, 0.75
# How often the range of nearly all ends fits into that of the figure on each side. Larger, one far
# end flattens all others. By eye.
_SPARE_RANGES = 1.5


@frozen
class _Rows:
    """A table's rows as they are drawn: about the prediction, or as they are in time."""

    table: ResultTable
    x: FloatArray
    axis: Axis
    y: FloatArray
    lower: FloatArray
    upper: FloatArray
    centre: FloatArray
    title: str


def interval_figures(tables: Sequence[ResultTable], _: Mapping[str, int]) -> list[Figure]:
    """A figure of each table of rows and their intervals, all with one range of y."""
    rows_or_none = [_rows(table) for table in tables if len(table)]
    drawn = [rows for rows in rows_or_none if rows is not None]
    if not drawn:
        return []
    domain = _domain(drawn)
    return [_figure(rows, domain) for rows in drawn]


def _rows(table: ResultTable) -> _Rows | None:
    parts = [number(table, name) for name in _NEEDED]
    columns = [column for column in parts if column is not None]
    if len(columns) < len(parts):
        return None
    y, point, lower, upper = columns
    time = table.columns.get("time")
    if time is not None:
        x, axis = _in_time(time)
        return _Rows(table, x, axis, y, lower, upper, point, "y and its interval")
    what = one_line(table.labels.get("point", "prediction"), 40)
    width = upper - lower
    alike = np.ptp(width) <= 1e-9 * np.abs(width).max() if np.isfinite(width).all() else False
    order = "Rows, all of one width" if alike else "Rows, from narrow to wide"
    ranks = np.arange(1.0, len(y) + 1.0)
    axis = Axis(title=order, domain=(0.0, len(y) + 1.0), labelled=False)
    ends = (y - point, lower - point, upper - point)
    return _Rows(table, ranks, axis, *ends, np.zeros(0), f"y − {what}")


def _in_time(time: npt.NDArray[np.generic]) -> tuple[FloatArray, Axis]:
    """Places along the axis of time: dates, numbers, or the order of anything else."""
    if time.dtype.kind == "M":
        seconds = time.astype("datetime64[ms]").astype(np.float64) / 1e3
        return seconds, Axis(title="Time (UTC)", kind="time")
    if time.dtype.kind in "iuf":
        return time.astype(np.float64), Axis(title="Time")
    ranks = np.arange(1.0, len(time) + 1.0)
    return ranks, Axis(title="Rows, in order of time", labelled=False)


def _domain(drawn: Sequence[_Rows]) -> tuple[float, float]:
    """The range of all that is drawn, less what lies so far out that nothing else would show."""
    every = np.concatenate(
        [values for rows in drawn for values in (rows.y, rows.lower, rows.upper)]
    )
    every = every[np.isfinite(every)]
    low, high = np.quantile(every, (0.02, 0.98))
    spare = _SPARE_RANGES * (high - low)
    least, most = max(every.min(), low - spare), min(every.max(), high + spare)
    if not most > least:
        reach = abs(least) or 1.0
        least, most = least - reach, most + reach
    edge = 0.03 * (most - least)
    return float(least - edge), float(most + edge)


def _figure(rows: _Rows, domain: tuple[float, float]) -> Figure:
    table = rows.table
    outside = np.array([text == "no" for text in texts(table, "covered")])
    nominal = number(table, "nominal")
    claim = "" if nominal is None or np.isnan(nominal[0]) else f"{formats.level(nominal[0])} "
    notes = [one_line(table.notes, 400)] if table.notes else []
    beyond = int(((rows.y < domain[0]) | (rows.y > domain[1])).sum())
    if beyond:
        notes.append(f"Points beyond the plotted range, drawn at its edge: {beyond:,}.")
    layers = [_spine(rows)] if len(rows.centre) == 0 else []
    for chosen, words, colour in ((~outside, INSIDE, 0), (outside, OUTSIDE, HIGHLIGHT)):
        if chosen.any():
            layers += _marks(rows, chosen, words, colour, domain)
    return Figure(
        name=table.name,
        label=table.model,
        question="How do the intervals compare with y?",
        title=headed(f"{claim}intervals and y{of_model(table)}"),
        reading="Each bar is the interval of a row, each point its y. Points outside are misses.",
        x=rows.axis,
        y=Axis(title=rows.title, domain=domain),
        layers=tuple(layers),
        notes=tuple(notes),
        naming="Row",
        finding=_missed(rows, outside),
    )


def _missed(rows: _Rows, outside: BoolArray) -> str:
    """How many rows lie outside their interval, and which of them lies farthest."""
    share = formats.percent(float(outside.mean()))
    beyond = np.where(outside, np.maximum(rows.lower - rows.y, rows.y - rows.upper), -np.inf)
    far = int(np.argmax(beyond))
    names = texts(rows.table, "row")
    where = f", the farthest by {formats.number(beyond[far], 3)} (row {names[far] or far})"
    farthest = where if np.isfinite(beyond[far]) else ""
    return (
        f"Of {len(outside):,} rows shown, {int(outside.sum()):,} are outside ({share}){farthest}."
    )


def _spine(rows: _Rows) -> Layer:
    what = rows.title.removeprefix("y − ")
    return Layer(mark=Mark.RULE, y=np.zeros(1), series=what, colour=REFERENCE)


def _marks(
    rows: _Rows,
    chosen: BoolArray,
    words: str,
    colour: int,
    domain: tuple[float, float],
) -> list[Layer]:
    """Intervals and points of some of the rows, brought to the edge where they lie beyond it."""
    names = texts(rows.table, "row")
    y, lower, upper = (
        np.clip(numbers[chosen], *domain) for numbers in (rows.y, rows.lower, rows.upper)
    )
    itself = () if len(rows.centre) else (("y", "y itself"),)
    hover = {
        title: values[chosen]
        for name, title in (*itself, ("lower", "Lower end"), ("upper", "Upper end"))
        if (values := number(rows.table, name)) is not None
    }
    bars = Layer(
        mark=Mark.INTERVALS,
        x=rows.x[chosen],
        lower=lower,
        upper=upper,
        series=words,
        colour=colour,
        faint=True,
    )
    labels = tuple(name for name, is_chosen in zip(names, chosen, strict=True) if is_chosen)
    size = _AREA_OUTSIDE if colour == HIGHLIGHT else _AREA_INSIDE
    shape = 3 if colour == HIGHLIGHT else 0
    dots = replace(bars, mark=Mark.POINTS, y=y, labels=labels, hover=hover, size=size, shape=shape)
    return [bars, replace(dots, lower=np.zeros(0), upper=np.zeros(0), faint=False)]


# ---- maps of rows, coloured by a number: where a model is wrong ----------------------------------

# Points of 5 pixels on 420 × 600: more lie over each other, and each adds to the page. By eye.
MAX_POINTS_OF_MAP = 300
"""The most points of one map, and of rows outside a reference besides."""
# A map has two inputs: taller than a curve. By eye.
MAP_HEIGHT = 420
IN_REFERENCE, OUT_OF_REFERENCE = "inside the reference", "outside the reference"
"""What rows of a map are that a reference watches."""
# Shades of one colour that are told apart. By eye.
_MAX_CLASSES = 8
# Beyond this size, numbers have no class, and below its inverse they are all one: products with
# round steps stay finite.
_MAX_SIZE = 1e150
_CROSS = VEGA_SHAPES.index("cross")
_SHADED = (
    "Stronger colour: the predictive distribution is farther from the outcomes at similar inputs "
    "(higher CCE). Clusters of strong points show where the model is wrong."
)
_BEYOND = "Crosses: no labelled row is near, so the model cannot be judged there."
_HOVERED = (
    ("cce", "CCE"),
    ("perfect", "CCE of a perfect model"),
    ("p_value", "p-value"),
)


def map_figures(tables: Sequence[ResultTable], _: Mapping[str, int]) -> list[Figure]:
    """A scatter plot of each map of rows, all with one scale of colours."""
    maps = [(table, rows) for table in tables if len(rows := _mapped_rows(table))]
    if not maps:
        return []
    values = np.concatenate([_column(table, "cce")[rows] for table, rows in maps])
    finite = values[np.isfinite(values)]
    edges = class_edges(float(finite.min()), float(finite.max())) if len(finite) else ()
    return [_map_figure(table, rows, edges) for table, rows in maps]


def class_edges(low: float, high: float) -> tuple[float, ...]:
    """Round ends of at most `_MAX_CLASSES` classes of one width that hold a range."""
    spread = max(high - low, 1e-3 * max(abs(low), abs(high)))
    if spread < 1.0 / _MAX_SIZE:
        spread = 1.0
    size = 10.0 ** math.floor(math.log10(spread / _MAX_CLASSES))
    steps = [size * multiple for multiple in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)]
    ends = [(math.floor(low / step), math.ceil(high / step), step) for step in steps]
    first, last, step = next(end for end in ends if end[1] - end[0] <= _MAX_CLASSES)
    return tuple(float(f"{index * step:.12g}") for index in range(first, max(last, first + 2) + 1))


def _column(table: ResultTable, name: str) -> FloatArray:
    numbers = number(table, name)
    return np.zeros(0) if numbers is None else numbers


def _mapped_rows(table: ResultTable) -> IntArray:
    """Rows that have a place, and a colour or lie outside, the highest last: it is on top."""
    parts = [number(table, name) for name in ("first", "second", "cce")]
    if any(column is None for column in parts):
        return np.zeros(0, dtype=np.int64)
    first, second, value = (column for column in parts if column is not None)
    shown = np.abs(value) < _MAX_SIZE
    if "outside" in table.columns:
        shown |= np.isnan(value)
    placed = np.flatnonzero(np.isfinite(first) & np.isfinite(second) & shown)
    return placed[np.argsort(value[placed], kind="stable")]


def _map_figure(table: ResultTable, rows: IntArray, edges: tuple[float, ...]) -> Figure:
    notes = [one_line(table.notes, 400)] if table.notes else []
    outside = table.columns.get("outside")
    beyond = np.zeros(len(rows), dtype=np.bool_) if outside is None else outside[rows] == 1
    parts = [_thinned(rows[~beyond]), _thinned(rows[beyond])]
    if len(parts[0]) + len(parts[1]) < len(rows):
        notes.append(
            f"Shown: {len(parts[0]) + len(parts[1]):,} of {len(rows):,} rows, "
            "from the lowest to the highest CCE."
        )
    numbers = {title: _column(table, name) for name, title in _HOVERED}
    names = texts(table, "row")

    def points(shown: IntArray, **look: Any) -> Layer:
        return Layer(
            mark=Mark.POINTS,
            x=_column(table, "first")[shown],
            y=_column(table, "second")[shown],
            labels=tuple(names[row] for row in shown) if "row" in table.columns else (),
            hover={
                title: values[shown]
                for title, values in numbers.items()
                if len(values) and np.isfinite(values[shown]).any()
            },
            **look,
        )

    inside: dict[str, Any] = {"series": IN_REFERENCE, "size": 0.5}
    if edges:
        inside = {"shade": numbers["CCE"][parts[0]], "listed": False}
    layers = [points(parts[0], **inside)] if len(parts[0]) else []
    if len(parts[1]):
        layers.append(points(parts[1], series=OUT_OF_REFERENCE, colour=HIGHLIGHT, shape=_CROSS))
    x, y = (headed(table.labels.get(name, name)) for name in ("first", "second"))
    reading = [_SHADED] if edges else []
    reading += [_BEYOND] if len(parts[1]) else []
    watched = outside is not None
    title = "New rows and the reference" if watched else "Congruence error of each row"
    return Figure(
        name=table.name,
        label=table.model,
        question="Which rows can be judged?" if watched else "Where is the model wrong?",
        title=title + of_model(table),
        reading=" ".join(reading) or "Every row is inside the reference.",
        x=Axis(title=x),
        y=Axis(title=y),
        layers=tuple(layers),
        notes=tuple(notes),
        shades=Shades(title="CCE", edges=edges) if edges else None,
        naming="Row",
        height=MAP_HEIGHT,
        finding=_farthest(table, rows, (x, y), int(beyond.sum()) if watched else None),
    )


def _farthest(
    table: ResultTable, rows: IntArray, titles: tuple[str, str], outside: int | None
) -> str:
    """The row of the highest CCE and where it lies, and how many rows lie outside a reference."""
    sentences = []
    if outside is not None:
        sentences.append(
            f"{outside:,} of {formats.counted(len(rows), 'row')} outside the reference"
        )
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
        sentences.append(f"CCE up to {highest} ({', '.join(places)}), median {middle}")
    return f"{'; '.join(sentences)}."


def _thinned(rows: IntArray) -> IntArray:
    """At most so many rows as a map shows, evenly from the first to the last."""
    if len(rows) <= MAX_POINTS_OF_MAP:
        return rows
    return rows[np.linspace(0, len(rows) - 1, MAX_POINTS_OF_MAP).round().astype(np.int64)]
