"""Empirical cumulative shares on a grid.

A probability integral transform (PIT) is uniform on [0, 1] where the prediction is right. A
discrete law gives no single PIT but a cell [P(Y < y), P(Y ≤ y)] over which the row is spread
evenly; a continuous law is the case of cells without width. Everything here takes the two ends of
the cell.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import (
    FloatArray,
    IntArray,
    as_vector,
    check_fraction,
    check_levels,
    row_blocks,
)
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError

_MIN_WIDTH_OF_PREFIX_SUMS = (
    0.01  # cells wider than this are summed through prefix sums, which lose 1e-16 / width
)


def grid_sums(
    left: FloatArray,
    right: FloatArray,
    grid: FloatArray,
    weights: FloatArray | None = None,
    *,
    power: int = 1,
) -> FloatArray:
    """Σ_i w_i t_i(p)^power at each grid point, rows being spread evenly over their cells.

    t_i(p) = clip((p − left_i)/(right_i − left_i), 0, 1), and 1{p ≥ right_i} for a cell without
    width. Takes O(n log k + k) for k grid points; nothing is checked. For the PIT of counts its
    mean is the non-randomised PIT of Czado, Gneiting and Held (2009, Biometrics 65, section 2),
    which is uniform in expectation under the right law.
    """
    size = len(grid)
    last = np.searchsorted(grid, right, side="left")
    total = np.bincount(last, weights=weights, minlength=size + 1)[:size].cumsum()
    total = total.astype(np.float64)
    if left is right:
        return total
    first = np.searchsorted(grid, left, side="right")
    width = right - left
    wide = np.flatnonzero((first < last) & (width >= _MIN_WIDTH_OF_PREFIX_SUMS))
    if len(wide):
        factor = width[wide] ** -float(power) * (1.0 if weights is None else weights[wide])
        ends = (first[wide], last[wide])
        if power == 1:
            total += grid * _between(factor, *ends, size)
            total -= _between(factor * left[wide], *ends, size)
        else:
            total += grid * grid * _between(factor, *ends, size)
            total -= 2.0 * grid * _between(factor * left[wide], *ends, size)
            total += _between(factor * np.square(left[wide]), *ends, size)
    narrow = np.flatnonzero((first < last) & (width < _MIN_WIDTH_OF_PREFIX_SUMS))
    for rows, points in _crossings(narrow, first, last):
        share = ((grid[points] - left[rows]) / width[rows]) ** power
        total += np.bincount(
            points, weights=share if weights is None else share * weights[rows], minlength=size
        )
    return total


def grid_dot(
    left: FloatArray, right: FloatArray, grid: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """Σ_j c_j t_i(p_j) for each row, t as in `grid_sums`; nothing is checked.

    The adjoint of `grid_sums`: it turns the derivative of a statistic by the shares on the grid
    into the influence of each row.
    """
    last = np.searchsorted(grid, right, side="left")
    tail = np.append(coefficients[::-1].cumsum()[::-1], 0.0)
    out = tail[last]
    if left is right:
        return out
    first = np.searchsorted(grid, left, side="right")
    width = right - left
    wide = np.flatnonzero((first < last) & (width >= _MIN_WIDTH_OF_PREFIX_SUMS))
    if len(wide):
        start, stop = first[wide], last[wide]
        sums = np.append(0.0, coefficients.cumsum())
        moments = np.append(0.0, (coefficients * grid).cumsum())
        inside = moments[stop] - moments[start] - left[wide] * (sums[stop] - sums[start])
        out[wide] += inside / width[wide]
    narrow = np.flatnonzero((first < last) & (width < _MIN_WIDTH_OF_PREFIX_SUMS))
    for rows, points in _crossings(narrow, first, last):
        out[rows] += coefficients[points] * (grid[points] - left[rows]) / width[rows]
    return out


def check_pit(value: npt.ArrayLike, name: str = "pit", *, length: int | None = None) -> FloatArray:
    """Check probabilities in [0, 1], one per row."""
    array = as_vector(value, name, length=length)
    outside = (array < 0.0) | (array > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"{name} must be in [0, 1], got {int(outside.sum())} values outside "
            f"(first at row {row}: {array[row]:g})"
        )
    return array


def _between(values: FloatArray, first: IntArray, last: IntArray, size: int) -> FloatArray:
    """Sum of the values of the rows whose range [first, last) holds each grid point."""
    steps = np.bincount(first, weights=values, minlength=size + 1)
    steps -= np.bincount(last, weights=values, minlength=size + 1)
    return np.asarray(steps.cumsum()[:size])


def _crossings(rows: IntArray, first: IntArray, last: IntArray) -> list[tuple[IntArray, IntArray]]:
    """The grid points inside the cells of the rows: first points, second points, …"""
    crossings = []
    points = first[rows]
    while len(rows):
        crossings.append((rows, points))
        points = points + 1
        keep = points < last[rows]
        rows, points = rows[keep], points[keep]
    return crossings


# ---- bands that the empirical cumulative shares of a uniform sample stay inside, and the test ----

# Beyond, the probability is carried on, by a term in 1/√n, from here and a quarter of it. Between
# these it moves by .0006 at the 2.5 % bound, so little is left to err by.
_MAX_ROWS_COMPUTED = 40_000
_MIN_P = 1e-8  # p-values below are bounds: one less a probability has no digits left


@frozen
class EcdfBand:
    """A band for the empirical cumulative shares of a uniform sample."""

    grid: FloatArray  # shape (k,): where the shares are looked at
    # shape (k,): ends of the band, as shares
    lower: FloatArray
    upper: FloatArray
    # probability that a uniform sample stays inside: at each point alone, or at all together
    confidence: float
    # two-sided tail probability left out at each point; 1 − confidence for a pointwise band
    gamma: float
    n: int  # size of the sample


@frozen
class UniformityTest:
    """Whether values look like a uniform sample."""

    p_value: float  # probability that a uniform sample of this size departs as far
    gamma: float  # smallest two-sided tail probability of the counts over the grid
    n: int  # size of the sample


def pointwise_band(n: int, grid: npt.ArrayLike, *, confidence: float = 0.95) -> EcdfBand:
    """Band that the share of a uniform sample stays inside at each grid point alone.

    The ends are the smallest c with P(X ≤ c) ≥ γ/2 and the largest with P(X ≥ c) ≥ γ/2, as
    shares c/n, where X is Binomial(n, p) and γ = 1 − confidence.
    """
    points = check_levels(grid, "grid")
    gamma = 1.0 - check_fraction(confidence, "confidence")
    return _band(check_whole(n, "n"), points, confidence, gamma)


def simultaneous_band(n: int, grid: npt.ArrayLike, *, confidence: float = 0.95) -> EcdfBand:
    """Band that the shares of a uniform sample stay inside at all grid points together.

    At every point the band leaves out the same tail probability γ, the largest whose band holds a
    uniform sample with the confidence. The probability is exact up to 40,000 values; beyond, it
    is carried on in n^−½, to within 2 % of the probability outside.

    Säilynoja, Bürkner and Vehtari (2022), Graphical test for discrete uniformity and its
    applications in goodness-of-fit evaluation and multiple sample comparison, Statistics and
    Computing 32, section 2 (the band; they simulate γ or sum over paths). Moscovich and Nadler
    (2017), Fast calculation of boundary crossing probabilities for Poisson processes, Statistics
    and Probability Letters 123 (the Poisson steps).
    """
    points = check_levels(grid, "grid")
    size = check_whole(n, "n")
    gamma = _smallest_tail(size, tuple(points.tolist()), check_fraction(confidence, "confidence"))
    return _band(size, points, confidence, gamma)


def uniformity_test(pit: npt.ArrayLike) -> UniformityTest:
    """Test whether values are a uniform sample on [0, 1], by the simultaneous band.

    γ is the smallest two-sided binomial tail probability of the counts at 1/K, …, (K − 1)/K, where
    K = 100; its p-value is the probability that `simultaneous_band` gives of leaving the band of γ,
    so the test rejects at 1 − confidence exactly where the shares leave the band. Where (K − 1)γ
    is below 1e-8, this bound is given.

    Source as in `simultaneous_band`.
    """
    values = check_pit(pit)
    return uniformity_of_counts(grid_sums(values, values, np.arange(1, 100) / 100), len(values))


def uniformity_of_counts(counts: FloatArray, n: int) -> UniformityTest:
    """`uniformity_test` of how many of n values lie at or below 1/K, …, (K − 1)/K."""
    points = len(counts) + 1
    grid = np.arange(1, points) / points
    gamma = float(min(1.0, 2.0 * _smaller_tail(counts, n, grid).min()))
    bound = min(1.0, (points - 1) * gamma)
    if bound < _MIN_P:
        return UniformityTest(bound, gamma, n)
    # Counts are whole: what departs as far as γ itself must count as outside.
    inside = _probability_inside(gamma * (1.0 + 3e-9), n, tuple(grid.tolist()))
    return UniformityTest(min(1.0 - inside, bound), gamma, n)


@lru_cache(maxsize=256)
def _smallest_tail(n: int, grid: tuple[float, ...], confidence: float) -> float:
    """Largest γ whose band holds a uniform sample with probability of at least the confidence."""
    outside = 1.0 - confidence
    # γ to six digits: a band is drawn, and told to three.
    low, high = outside / len(grid), min(1.0, outside * (1.0 + 1e-6))
    while high > low * (1.0 + 1e-6):
        middle = math.sqrt(low * high)
        if _probability_inside(middle, n, grid) >= confidence:
            low = middle
        else:
            high = middle
    return low


def _probability_inside(gamma: float, n: int, grid: tuple[float, ...]) -> float:
    """Probability that no count of a uniform sample has a two-sided tail below γ.

    It nears its limit as n^−½, by the share of the outermost count; to within 2 % of one less it.
    """
    if n <= _MAX_ROWS_COMPUTED:
        return _probability_on_path(gamma, n, grid)
    large = _probability_on_path(gamma, _MAX_ROWS_COMPUTED, grid)
    quarter = _probability_on_path(gamma, _MAX_ROWS_COMPUTED // 4, grid)
    remainder = 1.0 - math.sqrt(_MAX_ROWS_COMPUTED / n)
    return min(1.0, max(0.0, large + remainder * (large - quarter)))


@lru_cache(maxsize=4096)
def _probability_on_path(gamma: float, n: int, grid: tuple[float, ...]) -> float:
    """`_probability_inside`, exactly.

    A uniform sample is a Poisson process of n expected points, given that it has n. Its counts grow
    by independent steps, so those still inside pass from one grid point to the next by a
    convolution.
    """
    points = np.array(grid)
    lowest = _smallest_count(gamma / 2.0, n, points).astype(int)
    highest = n - _smallest_count(gamma / 2.0, n, 1.0 - points).astype(int)
    inside, start = np.ones(1), 0
    for width, low, high in zip(np.diff(points, prepend=0.0), lowest, highest, strict=True):
        if low > high:
            return 0.0
        first = max(0, low - start - len(inside) + 1)
        grown = np.convolve(inside, _poisson(np.arange(first, high - start + 1), n * width))
        skipped = low - start - first
        inside, start = grown[skipped : skipped + high - low + 1], low
    remaining = n - start - np.arange(len(inside))
    joint = float(inside @ _poisson(remaining, n * (1.0 - points[-1])))
    return min(1.0, joint / float(_poisson(np.array([n]), float(n))[0]))


def _poisson(count: IntArray, mean: float) -> FloatArray:
    """Probabilities of counts under Poisson(mean)."""
    return np.asarray(np.exp(special.xlogy(count, mean) - mean - special.gammaln(count + 1.0)))


def _smaller_tail(count: FloatArray, n: int, p: FloatArray) -> FloatArray:
    """min(P(X ≤ count), P(X ≥ count)) for X of Binomial(n, p), smooth between whole counts."""
    return np.minimum(_lower_tail(count, n, p), _upper_tail(count, n, p))


def _lower_tail(count: FloatArray, n: int, p: FloatArray) -> FloatArray:
    inner = np.minimum(count, n - 0.5)
    return np.where(count >= n, 1.0, special.betainc(n - inner, inner + 1.0, 1.0 - p))


def _upper_tail(count: FloatArray, n: int, p: FloatArray) -> FloatArray:
    inner = np.maximum(count, 0.5)
    return np.where(count <= 0, 1.0, special.betainc(inner, n - inner + 1.0, p))


def _band(n: int, grid: FloatArray, confidence: float, gamma: float) -> EcdfBand:
    lower = _smallest_count(gamma / 2.0, n, grid) / n
    upper = (n - _smallest_count(gamma / 2.0, n, 1.0 - grid)) / n
    return EcdfBand(grid, lower, upper, float(confidence), gamma, n)


def _smallest_count(tail: float, n: int, p: FloatArray) -> FloatArray:
    """Smallest count c with P(X ≤ c) ≥ tail for X of Binomial(n, p), by bisection."""
    low = np.zeros(len(p))
    high = np.full(len(p), float(n))
    while (low < high).any():
        middle = np.floor((low + high) / 2.0)
        reached = _lower_tail(middle, n, p) >= tail * (1.0 - 1e-9)
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + 1.0, high))
    return high


# ---- orthonormal polynomials of ranks: of uniform ones, and of those of cells --------------------


def legendre(u: FloatArray) -> FloatArray:
    """Shifted Legendre polynomials of order 1 to 4, orthonormal on [0, 1]; shape (4, n)."""
    polynomials = np.empty((4, *u.shape))
    for rows in row_blocks(len(u), u[:1].size):
        x = 2.0 * u[rows] - 1.0
        square = x * x
        polynomials[0, rows] = math.sqrt(3.0) * x
        polynomials[1, rows] = math.sqrt(5.0) / 2.0 * (3.0 * square - 1.0)
        polynomials[2, rows] = math.sqrt(7.0) / 2.0 * x * (5.0 * square - 3.0)
        polynomials[3, rows] = 3.0 / 8.0 * ((35.0 * square - 30.0) * square + 3.0)
    return polynomials


def cell_polynomials(share: FloatArray) -> FloatArray:
    """Polynomials in the cells' middle, orthonormal under the cells' shares; (orders, cells)."""
    middle = np.cumsum(share) - share / 2.0
    powers = np.vander(2.0 * middle - 1.0, min(4, len(share) - 1) + 1, increasing=True)
    root = np.sqrt(share)[:, None]
    basis, triangle = np.linalg.qr(root * powers)
    basis = basis * np.sign(np.diag(triangle)) / root
    return np.asarray(basis[:, 1:].T)
