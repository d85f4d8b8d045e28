"""CRPS of any law through its cumulative probabilities, one number a row.

Lower is better, and in expectation no law scores better than the right one. Values of y outside
`lower` to `upper` may count as these ends (threshold weights), and levels may have weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_vector
from howsure.core.errors import InputError

RowCdf = Callable[[FloatArray, IntArray], FloatArray]
"""P(Y ≤ x) at values (m, k), where line i belongs to row ``rows[i]`` of the prediction."""

# Rows treated at once: 17 nodes of each are 560 kB, whatever their number.
_ROWS_AT_ONCE = 4096
# Estimated error of a run, as a share of the score: three digits more than any score is shown
# with.
_RELATIVE_ERROR = 1e-7
# What the neglected tail may add, as a share of the score: below the error of the runs.
_RELATIVE_TAIL = 1e-9
# Runs after which a tail counts as without end: a width that doubles 300 times is 10⁹⁰.
_MAX_DOUBLINGS = 300
# A run halved 60 times is below the last digit of its place.
_MAX_HALVINGS = 60
_PLAIN = (1.0,)  # the weight of every level


def crps_numeric(
    y: npt.ArrayLike,
    cdf: RowCdf,
    spread: npt.ArrayLike,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    powers: Sequence[float] = _PLAIN,
) -> FloatArray:
    """CRPS of each row's law through its cumulative probabilities, to about 1e-7 of itself.

    ∫_{−∞}^{y} F(x)² dx + ∫_{y}^{∞} (1 − F(x))² dx. From y outwards both integrands only fall, so
    each side is integrated over runs of doubling length until what is left is negligible, by a
    17-point Clenshaw–Curtis rule; a run that 17 Chebyshev terms do not describe is halved. Lower
    is better, at least 0, in the units of y.

    Matheson and Winkler (1976), Scoring rules for continuous probability distributions,
    Management Science 22; Gneiting and Raftery (2007), Strictly proper scoring rules, prediction,
    and estimation, Journal of the American Statistical Association 102, eq. 20.

    Some 100 to 150 evaluations of the law a row. Tails whose index is below about 0.6 lose
    digits, as 1 − F does. For laws on the whole numbers use `crps_lattice`.

    Examples
    --------
    >>> from scipy import special
    >>> crps_numeric([0.0], lambda values, rows: special.ndtr(values), [1.0])
    array([0.2337])
    """
    truth = np.clip(as_vector(y, "y"), lower, upper)
    width = _check_spread(spread, truth)
    heights = _heights(powers)
    scores = np.empty(len(truth))
    for start in range(0, len(truth), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(truth)))
        here = truth[rows]
        room = np.append(here - lower, upper - here)
        scores[rows] = _two_sided(here, width[rows], cdf, rows, heights, room, lattice=False)
    return scores


def crps_lattice(
    y: npt.ArrayLike,
    cdf: RowCdf,
    spread: npt.ArrayLike,
    *,
    lower: float = -math.inf,
    upper: float = math.inf,
    powers: Sequence[float] = _PLAIN,
) -> FloatArray:
    """CRPS of each row's law on the whole numbers, to about 1e-7 of itself or exactly.

    The integral of `crps_numeric`, which for a law on the whole numbers is the sum over k of
    (F(k) − 1{k ≥ y})² where y is whole. Runs of up to 32 numbers are summed term by term; longer
    ones by a 17-point rule that sums polynomials exactly, and halved where it does not suffice.
    Lower is better, at least 0, in the units of y.

    Epstein (1969), A scoring system for probability forecasts of ranked categories, Journal of
    Applied Meteorology 8; Czado, Gneiting and Held (2009), Predictive
    model assessment for count data, Biometrics 65.

    Examples
    --------
    >>> from scipy import stats
    >>> crps_lattice([1.0], lambda values, rows: stats.poisson.cdf(values, 1.0), [1.0])
    array([0.2120])
    """
    truth = np.clip(as_vector(y, "y"), lower, upper)
    width = _check_spread(spread, truth)
    below, above = heights = _heights(powers)
    scores = np.empty(len(truth))
    for start in range(0, len(truth), _ROWS_AT_ONCE):
        rows = np.arange(start, min(start + _ROWS_AT_ONCE, len(truth)))
        here, whole = truth[rows], np.floor(truth[rows])
        at = cdf(whole[:, None], rows)[:, 0]
        cell = (here - np.maximum(whole, lower)) * below(at)
        cell += (np.minimum(whole + 1.0, upper) - here) * above(1.0 - at)
        if math.isfinite(lower):  # of the cell that it cuts, the part inside
            far, edge = np.flatnonzero(whole >= np.ceil(lower)), math.floor(lower)
            share = cdf(np.full((len(far), 1), float(edge)), rows[far])[:, 0]
            cell[far] += (math.ceil(lower) - lower) * below(share)
        if math.isfinite(upper):
            far, edge = np.flatnonzero(whole < np.floor(upper)), math.floor(upper)
            share = cdf(np.full((len(far), 1), float(edge)), rows[far])[:, 0]
            cell[far] += (upper - edge) * above(1.0 - share)
        room = np.append(whole - np.ceil(lower), np.floor(upper) - whole - 1.0)
        length = 2.0 ** np.clip(np.ceil(np.log2(width[rows])), 4.0, 60.0)
        scores[rows] = _two_sided(whole, length, cdf, rows, heights, room, lattice=True, base=cell)
    return scores


Height = Callable[[FloatArray], FloatArray]


def _heights(powers: Sequence[float]) -> tuple[Height, Height]:
    """What is integrated below y, of F, and above it, of 1 − F, for a weight of levels."""
    if tuple(powers) == _PLAIN:
        return np.square, np.square
    weight = np.polynomial.Polynomial(powers)
    level = np.polynomial.Polynomial([0.0, 1.0])
    below = (2.0 * weight * level).integ()
    above = (2.0 * weight(1.0 - level) * level).integ()
    return below, above


def _two_sided(
    y: FloatArray,
    width: FloatArray,
    cdf: RowCdf,
    rows: IntArray,
    heights: tuple[Height, Height],
    room: FloatArray,
    *,
    lattice: bool,
    base: FloatArray | None = None,
) -> FloatArray:
    """Both sides of y: F² going down and (1 − F)² going up, per row, added to ``base``.

    Side s of row i has number i + s·n, and ends at a distance of `room`. Distances from y are t;
    on a lattice, t = 0 is the first whole number beyond y's own.
    """
    n = len(y)
    offset = 1.0 if lattice else 0.0

    def height(distance: FloatArray, side: IntArray) -> FloatArray:
        row = side % n
        up = (side >= n)[:, None]
        step = np.where(up, distance + offset, -distance - offset)
        share = cdf(y[row, None] + step, rows[row])
        if heights[0] is heights[1]:
            return heights[0](np.where(up, 1.0 - share, share))
        return np.where(up, heights[1](1.0 - share), heights[0](share))

    def fitting(length: FloatArray, left: FloatArray) -> FloatArray:
        """Runs within the room that is left; on a lattice, powers of two."""
        if np.isinf(left).all():
            return length
        least = np.minimum(length, left)
        return 2.0 ** np.floor(np.log2(least)) if lattice else least

    def measure(
        side: IntArray, start: FloatArray, length: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        return _runs(height, side, start, length, lattice=lattice)

    total = np.zeros(n) if base is None else base.copy()
    side = np.flatnonzero(room > 0.0)
    start, length = np.zeros(len(side)), fitting(np.tile(width, 2)[side], room[side])
    kept: list[tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]] = []
    for _ in range(_MAX_DOUBLINGS):
        if not len(side):
            break
        value, error, edge = measure(side, start, length)
        kept.append((side, start, length, value, error))
        total += np.bincount(side % n, weights=value, minlength=n)
        end = start + length
        more = (edge * end > _RELATIVE_TAIL * total[side % n]) & (end < room[side])
        side, start = side[more], end[more]
        length = fitting(start, room[side] - start)
    endless = np.unique(side % n)
    if not kept:
        return total
    side, start, length, value, error = (np.concatenate(part) for part in zip(*kept, strict=True))
    allowed = _RELATIVE_ERROR * total
    for _ in range(_MAX_HALVINGS):
        rough = error > allowed[side % n]
        if not rough.any():
            break
        side, start, length = side[rough], start[rough], length[rough] / 2.0
        total -= np.bincount(side % n, weights=value[rough], minlength=n)
        side, start = np.tile(side, 2), np.append(start, start + length)
        length = np.tile(length, 2)
        value, error, _ = measure(side, start, length)
        total += np.bincount(side % n, weights=value, minlength=n)
    total[endless] = np.nan
    return total


def _runs(
    height: RowCdf, side: IntArray, start: FloatArray, length: FloatArray, *, lattice: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Area over each run, an estimate of its error, and the height at its end."""
    if not lattice:
        nodes, weights, checks = _smooth_rule()
        values = height(start[:, None] + length[:, None] * nodes, side)
        error = np.abs(values @ checks).max(axis=1)
        return values @ weights * length, error * length, values[:, -1]
    area, error, edge = np.empty(len(side)), np.zeros(len(side)), np.empty(len(side))
    for size in np.unique(length):
        chosen = np.flatnonzero(length == size)
        nodes, weights, checks = _lattice_rule(int(size))
        values = height(start[chosen, None] + nodes, side[chosen])
        area[chosen] = values @ weights
        error[chosen] = np.abs(values @ checks).max(axis=1) * size
        edge[chosen] = values[:, -1]
    return area, error, edge


@lru_cache(maxsize=1)
def _smooth_rule() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Clenshaw–Curtis nodes on [0, 1], their weights, and the checks of `_fit`."""
    # 17 nodes are exact to degree 16, the last four of which check it. By hand; time alone depends.
    nodes = (1.0 - np.cos(np.pi * np.arange(17) / 16.0)) / 2.0
    moments = np.zeros(17)
    moments[::2] = 1.0 / (1.0 - np.square(np.arange(0, 17, 2)))
    return (nodes, *_fit(2.0 * nodes - 1.0, moments))


@lru_cache(maxsize=128)
def _lattice_rule(size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Whole nodes in [0, size), weights that sum polynomials over all of it, checks of `_fit`.

    Up to 32 numbers all are nodes. Beyond 2¹⁶ the moments are averaged over cells of equal length.
    """
    if size <= 32:
        return np.arange(float(size)), np.ones(size), np.zeros((size, 1))
    nodes = np.round((1.0 - np.cos(np.pi * np.arange(17) / 16.0)) / 2.0 * (size - 1))
    points = min(size, 2**16)
    every = (np.arange(points) + 0.5) * (size / points) - 0.5
    angles = np.arccos(np.clip(2.0 * every / (size - 1) - 1.0, -1.0, 1.0))
    moments = np.array([np.cos(degree * angles).sum() for degree in range(17)]) * (size / points)
    return (nodes, *_fit(2.0 * nodes / (size - 1) - 1.0, moments))


def _fit(nodes: FloatArray, moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights on 17 nodes that give Chebyshev polynomials' moments, and checks of the fit.

    The checks turn values at the nodes into a quarter of the last four Chebyshev coefficients,
    which are tiny where 17 terms suffice. One alone may vanish by chance, four in a row do not.
    """
    inverse = np.linalg.inv(np.polynomial.chebyshev.chebvander(nodes, 16))
    return np.asarray(moments @ inverse), np.asarray(inverse[-4:].T / 4.0)


def _check_spread(spread: npt.ArrayLike, y: FloatArray) -> FloatArray:
    width = as_vector(spread, "spread", length=len(y))
    if (width < 0.0).any():
        row = int(np.argmax(width < 0.0))
        raise InputError(f"spread must not be negative, got {width[row]:g} (first at row {row})")
    # Narrower than the doubles about y, or than any size, a law is a point and its z overflows.
    return np.maximum(width, np.maximum(1e-15 * np.abs(y), 1e-60))
