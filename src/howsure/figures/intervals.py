"""y beside its interval, row by row: one figure a model, all with one range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from howsure.core import formats
from howsure.core.arrays import FloatArray
from howsure.core.records import Table
from howsure.core.text import headed, one_line
from howsure.figures.columns import number, of_model, texts
from howsure.figures.figure import HIGHLIGHT, REFERENCE, Axis, Figure, Layer, Mark

INSIDE, OUTSIDE = "y inside its interval", "y outside"
_NEEDED = ("y", "point", "lower", "upper")
_SMALL, _LARGE = 0.3, 0.75
"""Areas of points: so many stand side by side that those inside must be small."""
_SPARE = 1.5
"""How often the range of nearly all ends fits into that of the figure."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """A table's rows as they are drawn: about the prediction, or as they are in time."""

    table: Table
    x: FloatArray
    axis: Axis
    y: FloatArray
    lower: FloatArray
    upper: FloatArray
    centre: FloatArray
    title: str


def interval_figures(tables: Sequence[Table], _: Mapping[str, int]) -> list[Figure]:
    """A figure of each table of rows and their intervals, all with one range of y."""
    found = [_rows(table) for table in tables if len(table)]
    drawn = [rows for rows in found if rows is not None]
    if not drawn:
        return []
    domain = _domain(drawn)
    return [_figure(rows, domain) for rows in drawn]


def _rows(table: Table) -> _Rows | None:
    parts = [number(table, name) for name in _NEEDED]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    y, point, lower, upper = known
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
    every = np.concatenate([part for rows in drawn for part in (rows.y, rows.lower, rows.upper)])
    every = every[np.isfinite(every)]
    low, high = np.quantile(every, (0.02, 0.98))
    spare = _SPARE * (high - low)
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
        notes.append(f"Drawn at the edge, as they lie beyond it: {beyond:,}.")
    layers = [_spine(rows)] if len(rows.centre) == 0 else []
    for chosen, words, colour in ((~outside, INSIDE, 0), (outside, OUTSIDE, HIGHLIGHT)):
        if chosen.any():
            layers += _marks(rows, chosen, words, colour, domain)
    return Figure(
        name=table.name,
        label=table.model,
        question="What do the intervals look like beside y?",
        title=headed(f"{claim}intervals and y{of_model(table)}"),
        reading="Each bar is a row's interval, each point its y. Points outside it are missed.",
        x=rows.axis,
        y=Axis(title=rows.title, domain=domain),
        layers=tuple(layers),
        notes=tuple(notes),
        naming="Row",
        finding=_missed(rows, outside),
    )


def _missed(rows: _Rows, outside: npt.NDArray[np.bool_]) -> str:
    """How many rows lie outside their interval, and which of them lies farthest."""
    share = formats.percent(float(outside.mean()))
    beyond = np.where(outside, np.maximum(rows.lower - rows.y, rows.y - rows.upper), -np.inf)
    far = int(np.argmax(beyond))
    names = texts(rows.table, "row")
    where = f", the farthest by {formats.number(beyond[far], 3)} (row {names[far] or far})"
    told = where if np.isfinite(beyond[far]) else ""
    return f"Of {len(outside):,} rows shown, {int(outside.sum()):,} lie outside ({share}){told}."


def _spine(rows: _Rows) -> Layer:
    what = rows.title.removeprefix("y − ")
    return Layer(mark=Mark.RULE, y=np.zeros(1), series=what, colour=REFERENCE)


def _marks(
    rows: _Rows,
    chosen: npt.NDArray[np.bool_],
    words: str,
    colour: int,
    domain: tuple[float, float],
) -> list[Layer]:
    """Intervals and points of some of the rows, brought to the edge where they lie beyond it."""
    names = texts(rows.table, "row")
    y, lower, upper = (np.clip(part[chosen], *domain) for part in (rows.y, rows.lower, rows.upper))
    itself = () if len(rows.centre) else (("y", "y itself"),)
    told = {
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
    labels = tuple(name for name, each in zip(names, chosen, strict=True) if each)
    size = _LARGE if colour == HIGHLIGHT else _SMALL
    shape = 3 if colour == HIGHLIGHT else 0
    dots = replace(bars, mark=Mark.POINTS, y=y, labels=labels, hover=told, size=size, shape=shape)
    return [bars, replace(dots, lower=np.zeros(0), upper=np.zeros(0), faint=False)]
