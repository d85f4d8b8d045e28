"""A curve of any length as few points that keep its shape."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.records import Curve
from howsure.figures.figure import sample_points

POINTS_LIMIT = 120
"""The most points drawn of one curve that has more than these."""
_BASE = 40
"""Of these, the points spread evenly, so that a reader finds one to point at everywhere."""
_FIRST = 10_000
"""Points looked at: so many that none in between shows."""
_SEEN = 1e-3
"""Share of the height below which a departure from the drawn line cannot be seen."""

Places = npt.NDArray[np.int64]


def placed(curve: Curve) -> Curve:
    """The curve without points that have no place."""
    return points_of(curve, np.flatnonzero(np.isfinite(curve.x) & np.isfinite(curve.y)))


def thinned(curve: Curve) -> Curve:
    """The curve with no more points than can be seen.

    Steps so many that they are left out are drawn as the line through their corners.
    """
    if len(curve.x) <= POINTS_LIMIT:
        return curve
    curve = points_of(curve, sample_points(curve.x, _FIRST))
    if curve.step:
        count = len(curve.x)
        right, left = np.repeat(np.arange(count), 2)[1:], np.repeat(np.arange(count), 2)[:-1]
        hover = {name: part[right] for name, part in curve.hover.items()}
        curve = replace(points_of(curve, left), x=curve.x[right], hover=hover, step=False)
    parts = [part for part in (curve.y, curve.lower, curve.upper) if part is not None]
    return points_of(curve, shape_points(curve.x, np.array(parts), POINTS_LIMIT))


def shape_points(x: FloatArray, parts: FloatArray, limit: int) -> Places:
    """Indices of at most `limit` points through which lines follow each of the parts, shape (p, n).

    From points spread evenly on, the one that lies farthest from the lines is added, until none
    can be seen beside them.
    """
    low, high = (bound(parts[np.isfinite(parts)]) for bound in (np.min, np.max))
    scaled = np.where(np.isfinite(parts), parts - low, 0.0) / ((high - low) or 1.0)
    spread = np.linspace(x[0], x[-1], _BASE)
    start = np.unique(np.r_[0, np.searchsorted(x, spread[1:-1]), len(x) - 1]).astype(np.int64)
    heap = [_farthest(x, scaled, a, b) for a, b in itertools.pairwise(start)]
    heapq.heapify(heap)
    chosen = set(start.tolist())
    while len(chosen) < limit and heap and -heap[0][0] > _SEEN:
        _, place, first, last = heapq.heappop(heap)
        chosen.add(place)
        heapq.heappush(heap, _farthest(x, scaled, first, place))
        heapq.heappush(heap, _farthest(x, scaled, place, last))
    return np.array(sorted(chosen), dtype=np.int64)


def _farthest(x: FloatArray, parts: FloatArray, a: int, b: int) -> tuple[float, int, int, int]:
    """The departure (negative, for the heap) and place of the farthest point between two."""
    if b - a < 2:
        return 0.0, int(a), int(a), int(b)
    width = x[b] - x[a]
    share = (x[a + 1 : b] - x[a]) / width if width > 0 else np.zeros(b - a - 1)
    line = parts[:, [a]] + share * (parts[:, [b]] - parts[:, [a]])
    away = np.abs(parts[:, a + 1 : b] - line).max(axis=0)
    place = int(np.argmax(away))
    return -float(away[place]), int(a + 1 + place), int(a), int(b)


def points_of(curve: Curve, index: Places | BoolArray) -> Curve:
    """The curve at some of its points."""

    def pick(part: FloatArray | None) -> FloatArray | None:
        return None if part is None else part[index]

    return replace(
        curve,
        x=curve.x[index],
        y=curve.y[index],
        lower=pick(curve.lower),
        upper=pick(curve.upper),
        reference=pick(curve.reference),
        hover={name: part[index] for name, part in curve.hover.items()},
    )
