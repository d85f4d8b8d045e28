"""Critical-difference diagrams: mean ranks of methods, and which of them do not differ."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from howsure.core import formats
from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError
from howsure.core.records import ResultTable
from howsure.core.text import distinct, one_line
from howsure.figures.figure import REFERENCE, Axis, Figure, Layer, Mark, number, of_model, texts

_CLIQUE = re.compile(r"clique_\d+")
CRITICAL: Final = "critical difference"
TIED: Final = "not significantly different"
AXIS: Final = "axis"
LEADERS: Final = "leader lines"
NAMES: Final = "names"
_ROW: Final = 26
"""Pixels from one name to the next, more where names take two lines; the unit of heights."""
_TALL_ROW: Final = 34
_BAR: Final = 0.38
_THIN: Final = 0.7
_MOST_TICKS: Final = 8
_LONG_NAME: Final = 14
_LONG_LINE: Final = 20
_EDGE: Final = 0.04
"""How far the drawing reaches past the axis, as a share of its length."""


def rank_figure(table: ResultTable) -> Figure:
    """The critical-difference diagram of a table of ranks.

    As in figure 1 of J. Demšar, JMLR 7 (2006), but with the best method on the left: methods are
    labelled lines at their mean ranks, a thick bar joins methods that do not differ
    significantly, and the critical difference, where the test has one, is a bar above the axis.

    Parameters
    ----------
    table : ResultTable
        Columns ``method`` and ``mean_rank``; it may hold ``shared_rank``,
        ``critical_difference`` and truth values ``clique_1``, …: what
        `howsure_studies.engine.ranks.RankComparison.table` gives.

    Returns
    -------
    Figure

    Raises
    ------
    InputError
        If a column is missing, there is no method, or a mean rank is not finite.

    Examples
    --------
    >>> columns = {"method": np.array(["a", "b"], dtype=object), "mean_rank": np.array([1.2, 1.8])}
    >>> figure = rank_figure(ResultTable(name="ranks", columns=columns))
    >>> [layer.labels for layer in figure.layers if layer.series == "names"]
    [('a',), ('b',)]
    """
    ranks = number(table, "mean_rank")
    if ranks is None or "method" not in table.columns or not len(table):
        raise InputError(
            "table must have methods in columns method and mean_rank, got "
            f"{', '.join(table.columns) or 'no column'}"
        )
    if not np.isfinite(ranks).all():
        raise InputError(f"mean_rank must contain finite numbers, got {ranks.tolist()}")
    order = np.argsort(ranks, kind="stable")
    ranks = ranks[order]
    names = distinct([texts(table, "method")[row] for row in order])
    sets = [
        column[order].astype(np.bool_)
        for name, column in table.columns.items()
        if _CLIQUE.fullmatch(name)
    ]
    critical = number(table, "critical_difference")
    width = math.nan if critical is None else float(critical[0])
    shared = number(table, "shared_rank")
    ends = (min(1.0, math.floor(ranks[0])), max(float(len(ranks)), math.ceil(ranks[-1]), 2.0))
    bars, depth = _bars(ranks, sets)
    first = -(depth + 1.0)
    rows = (len(ranks) + 1) // 2
    top = 1.6 if math.isnan(width) else 2.6
    skips = any(layer.mark is Mark.POINTS for layer in bars)
    points = Layer(
        mark=Mark.POINTS,
        x=ranks,
        y=np.zeros(len(ranks)),
        series="mean rank",
        labels=names,
        listed=False,
        hover={} if shared is None else {"Shared rank": shared[order]},
    )
    reach = max(ends[1], 1.0 + width) if math.isfinite(width) else ends[1]
    edge = _EDGE * (reach - ends[0])
    tall = any("\n" in _wrapped(name) for name in names)
    return Figure(
        name=table.name,
        question="Which methods differ significantly?" + of_model(table),
        title="Critical-difference diagram",
        reading=(
            "Points are mean ranks over all problems. "
            + (
                "A thick bar joins the methods with dots on it; these do not differ significantly."
                if skips
                else "A thick bar joins methods that do not differ significantly."
            )
        ),
        x=Axis(
            title="Mean rank (best on the left)",
            domain=(ends[0] - edge, reach + edge),
            shown=False,
        ),
        y=Axis(domain=(first - rows + 0.5, top + 0.3), shown=False),
        layers=(
            *_axis(*ends),
            *_leaders(ranks, names, first, (ends[0] - edge, reach + edge)),
            *bars,
            *([] if math.isnan(width) else _critical(width)),
            points,
        ),
        notes=(
            *([one_line(table.notes, 400)] if table.notes else []),
            one_line(_bars_in_words(names, sets), 400),
        ),
        finding=f"Mean ranks: {_ranked(names, ranks)}. {_bars_in_words(names, sets)}",
        naming="Method",
        height=round((_TALL_ROW if tall else _ROW) * (top + rows - first)),
    )


def _ranked(names: Sequence[str], ranks: FloatArray) -> str:
    """The methods from the best on, with their mean ranks."""
    pairs = zip(names, ranks, strict=True)
    return ", ".join(f"{name} {formats.number(float(rank), 3)}" for name, rank in pairs)


def _bars_in_words(names: Sequence[str], sets: Sequence[BoolArray]) -> str:
    """The bars in words."""
    if not sets:
        return "Every pair of methods differs significantly."
    held = [", ".join(names[row] for row in np.flatnonzero(inside).tolist()) for inside in sets]
    return f"Not significantly different: {'; '.join(held)}."


def _neutral(mark: Mark, series: str, **parts: Any) -> Layer:
    return Layer(mark=mark, series=series, colour=REFERENCE, listed=False, **parts)


def _axis(low: float, high: float) -> list[Layer]:
    """A line with ticks, their numbers, and what it measures above them."""
    step = max(1, math.ceil((high - low) / _MOST_TICKS))
    ticks = np.unique([*np.arange(low, high, step), high])
    if len(ticks) > 2 and ticks[-1] - ticks[-2] <= step / 2:
        ticks = np.delete(ticks, -2)
    whole = np.zeros(len(ticks))
    middle = np.array([0.5 * (low + high)])
    return [
        _neutral(
            Mark.INTERVALS, AXIS, y=np.zeros(1), lower=np.array([low]), upper=np.array([high])
        ),
        _neutral(Mark.INTERVALS, AXIS, x=ticks, lower=whole, upper=whole + 0.2),
        _neutral(
            Mark.TEXT, AXIS, x=ticks, y=whole + 0.6, labels=tuple(f"{tick:g}" for tick in ticks)
        ),
        _neutral(
            Mark.TEXT, AXIS, x=middle, y=np.array([1.3]), labels=("Mean rank (best on the left)",)
        ),
    ]


def _leaders(
    ranks: FloatArray, names: Sequence[str], first: float, ends: tuple[float, float]
) -> list[Layer]:
    """Lines from each rank down to a row and out to its name: the better half on the left."""
    half = (len(ranks) + 1) // 2
    rows = np.concatenate([np.arange(half), np.arange(len(ranks) - half)[::-1]])
    heights = first - rows
    left = np.arange(len(ranks)) < half
    sides: tuple[tuple[BoolArray, float, Literal["start", "end"]], ...]
    sides = ((left, ends[0], "end"), (~left, ends[1], "start"))
    words = [_wrapped(name) for name in names]
    return [
        _neutral(
            Mark.INTERVALS,
            LEADERS,
            x=ranks,
            lower=heights,
            upper=np.zeros(len(ranks)),
            size=_THIN,
        ),
        _neutral(
            Mark.INTERVALS,
            LEADERS,
            y=heights,
            lower=np.where(left, ends[0], ranks),
            upper=np.where(left, ranks, ends[1]),
            size=_THIN,
        ),
        *(
            Layer(
                mark=Mark.TEXT,
                x=np.full(int(side.sum()), end),
                y=heights[side],
                series=NAMES,
                labels=tuple(words[row] for row in np.flatnonzero(side).tolist()),
                anchor=anchor,
                listed=False,
            )
            for side, end, anchor in sides
            if side.any()
        ),
    ]


def _wrapped(name: str) -> str:
    """A long name on two lines, cut at the space nearest its middle; lines end in an ellipsis."""
    spaces = [place for place, char in enumerate(name) if char == " "]
    if len(name) <= _LONG_NAME or not spaces:
        return one_line(name, _LONG_LINE)
    cut = min(spaces, key=lambda place: abs(place - len(name) / 2))
    return f"{one_line(name[:cut], _LONG_LINE)}\n{one_line(name[cut + 1 :], _LONG_LINE)}"


def _bars(ranks: FloatArray, sets: Sequence[BoolArray]) -> tuple[list[Layer], float]:
    """A bar a set, each on the first row where it meets no other, and how deep they reach."""
    layers: list[Layer] = []
    filled: list[float] = []
    for inside in sets:
        held = ranks[inside]
        low, high = float(held.min()), float(held.max())
        row = next((row for row, end in enumerate(filled) if end < low), len(filled))
        filled[row : row + 1] = [high]
        height = np.array([-_BAR * (row + 1)])
        look: dict[str, Any] = {"series": TIED, "colour": 1, "listed": False}
        ends: dict[str, Any] = {"lower": np.array([low]), "upper": np.array([high])}
        layers.append(Layer(mark=Mark.INTERVALS, y=height, size=3.0, **ends, **look))
        if int(((ranks >= low) & (ranks <= high)).sum()) > len(held):
            at = np.repeat(height, len(held))
            layers.append(Layer(mark=Mark.POINTS, x=held, y=at, shape=0, size=0.5, **look))
    return layers, _BAR * len(filled)


def _critical(width: float) -> list[Layer]:
    """The critical difference as a bar from rank 1, with its length beside it."""
    height = np.array([2.3])
    ends = {"lower": np.array([1.0]), "upper": np.array([1.0 + width])}
    label = f"{CRITICAL} {formats.number(width, 3)}"
    caps = np.array([1.0, 1.0 + width])
    return [
        _neutral(Mark.INTERVALS, CRITICAL, y=height, **ends),
        _neutral(
            Mark.INTERVALS,
            f"{CRITICAL}, ends",
            x=caps,
            lower=np.full(2, 2.15),
            upper=np.full(2, 2.45),
        ),
        _neutral(
            Mark.TEXT, CRITICAL, x=caps[:1], y=np.array([2.75]), labels=(label,), anchor="start"
        ),
    ]
