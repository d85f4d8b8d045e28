"""The probability integral transform (PIT) of y, which is uniform where the prediction is right.

A discrete law has P(Y < y) < P(Y ≤ y), and y's PIT is then spread evenly between the two (the
non-randomised PIT of Czado, Gneiting and Held 2009): pass the first as ``left``. For a continuous
law leave ``left`` out.

Weights are multiplicities: a weight of two is a row twice. To use importance weights, scale them
so that they sum to Kish's effective n, which then is the n of the nulls and the bands.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child, row_keys, row_uniforms
from howsure.core.weights import check_multiplicities, merge_rows
from howsure.stats.ecdf import check_pit, grid_dot, grid_sums, pointwise_band

Version = Literal["quantile", "interval"]


def randomised_pit(pit: npt.ArrayLike, left: npt.ArrayLike, uniforms: npt.ArrayLike) -> FloatArray:
    """Randomised PIT: a uniform draw between P(Y < y) and P(Y ≤ y).

    u = left + v (pit − left). Exactly uniform under the right law, discrete or not.

    Parameters
    ----------
    pit : array-like of shape (n,)
        P(Y ≤ y) of each row, in [0, 1].
    left : array-like of shape (n,)
        P(Y < y) of each row, at most ``pit``.
    uniforms : array-like of shape (n,)
        One draw v in [0, 1] a row, such as those of `howsure.core.rng.row_uniforms`.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a value leaves [0, 1], ``left`` exceeds ``pit``, or lengths differ.

    Notes
    -----
    Czado, Gneiting and Held (2009), Predictive model assessment for count data, Biometrics 65,
    1254-1261, section 2.

    Examples
    --------
    >>> randomised_pit([0.5, 1.0], [0.0, 0.5], [0.5, 0.5])
    array([0.25, 0.75])
    """
    low, high = _check_cells(pit, left)
    draws = check_pit(uniforms, "uniforms", length=len(high))
    return low + draws * (high - low)


def randomised_counts(
    pit: npt.ArrayLike,
    left: npt.ArrayLike | None,
    grid: FloatArray,
    weights: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
) -> FloatArray:
    """How many randomised PIT values lie at or below each grid point, a draw for every copy.

    Rows with the same jump are counted together. The draws of one row lie in a cell of the grid
    with the probability of its part of the jump, so their counts are multinomial, and are drawn
    as such: the cost does not grow with weights.
    """
    low, high = _check_cells(pit, left)
    copies = check_multiplicities(weights, len(high))
    if low is high:
        return grid_sums(high, high, grid, copies)
    cells, copies = merge_rows(np.column_stack((low, high)), copies)
    low, high = cells.T
    once = copies == 1
    lone = (low + row_uniforms(seed, "pit", row_keys(low, high)) * (high - low))[once]
    counts = grid_sums(lone, lone, grid)
    low, high, left_over = low[~once], high[~once], copies[~once].astype(np.int64)
    rng, before, drawn = child(seed, "pit", "copies"), -np.inf, 0
    for place, point in enumerate(grid):
        start = np.maximum(low, before)
        with np.errstate(invalid="ignore", divide="ignore"):
            chance = np.where(high <= point, 1.0, (point - start) / (high - start))
        below = rng.binomial(left_over, np.clip(chance, 0.0, 1.0))
        left_over = left_over - below
        drawn += int(below.sum())
        counts[place] += drawn
        before = point
    return counts


@frozen
class PitHistogram:
    """Shares of the PIT in bins of equal width."""

    # shape (bins + 1,): from 0 to 1. A bin holds its right edge, and the first its left edge too.
    edges: FloatArray
    # shape (bins,): share of the rows in each bin; 1/bins where the prediction is right
    share: FloatArray
    # ends of the band that all shares of a perfect model stay inside together
    lower: float
    upper: float
    confidence: float  # probability of that, or more


def pit_histogram(
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    bins: int = 20,
    confidence: float = 0.95,
    weights: npt.ArrayLike | None = None,
) -> PitHistogram:
    """Histogram of the PIT, non-randomised if discrete, with a simultaneous band.

    The band takes each bin's binomial quantiles at (1 − confidence)/bins (Bonferroni). It is
    conservative for discrete laws, whose shares vary less. A hump means that predictions are too
    wide, a U that they are too narrow, a slope bias.

    Parameters
    ----------
    pit : array-like of shape (n,)
        P(Y ≤ y) of each row, in [0, 1].
    left : array-like of shape (n,), optional
        P(Y < y) of each row, for discrete laws.
    bins : int
        Number of bins, at least 2.
    confidence : float
        Probability that a perfect model stays inside the band, in (0, 1).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    PitHistogram

    Raises
    ------
    InputError
        If an argument leaves its domain, or lengths differ.

    Notes
    -----
    Czado, Gneiting and Held (2009), Biometrics 65, section 2.

    Examples
    --------
    >>> pit_histogram([0.1, 0.2, 0.6, 0.9], bins=2).share
    array([0.5, 0.5])
    """
    check_whole(bins, "bins", 2)
    check_fraction(confidence, "confidence")
    cells = pit_cells(pit, left, weights)
    edges = np.arange(bins + 1) / bins
    share = np.diff(cells.observed(edges[1:-1]), prepend=0.0, append=1.0)
    size = max(1, round(cells.total))
    band = pointwise_band(size, [1.0 / bins], confidence=1.0 - (1.0 - confidence) / bins)
    return PitHistogram(edges, share, float(band.lower[0]), float(band.upper[0]), confidence)


@frozen
class PitCells:
    """Where each row's PIT may lie: pieces [left, right] with a share of a row each.

    A row has one piece, or, where a cell is folded about ½, two that follow each other. Over its
    pieces it is spread evenly, so that h(p), its share at or below p, rises from 0 to 1.
    """

    # shape (m,): ends of the pieces; one array twice for a continuous law
    left: FloatArray
    right: FloatArray
    n: int  # number of rows
    weights: FloatArray | None  # shape (n,): multiplicities of the rows
    # shape (m,): share of its row that each piece holds; None where every row has one piece
    share: FloatArray | None = None
    before: FloatArray | None = None  # shape (m,): share of its row below each piece
    row: IntArray | None = None  # shape (m,): row of each piece

    @property
    def continuous(self) -> bool:
        """Whether every piece is a point."""
        return self.left is self.right

    @property
    def total(self) -> float:
        """Sum of the multiplicities."""
        return float(self.n) if self.weights is None else float(self.weights.sum())

    def mass(self, factor: FloatArray | None = None) -> FloatArray | None:
        """Weight of each piece times its factor; None where all are one."""
        w = self.weights
        if w is not None and self.row is not None:
            w = w[self.row]
        if factor is None or w is None:
            return w if factor is None else factor
        return w * factor

    def observed(self, grid: FloatArray) -> FloatArray:
        """Mean of the rows' shares h(p) at or below each grid point."""
        return grid_sums(self.left, self.right, grid, self.mass(self.share)) / self.total

    def second_moment(self, grid: FloatArray, observed: FloatArray) -> FloatArray:
        """Mean of h(p)²; equal to the first where every h is 0 or 1."""
        if self.continuous:
            return observed
        if self.share is None or self.before is None:
            return grid_sums(self.left, self.right, grid, self.mass(), power=2) / self.total
        cross = self.mass(2.0 * self.before * self.share)
        square = self.mass(np.square(self.share))
        sums = grid_sums(self.left, self.right, grid, cross)
        return (sums + grid_sums(self.left, self.right, grid, square, power=2)) / self.total

    def dot(self, grid: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Σ_j c_j h(p_j) of each row."""
        return self.by_row(grid_dot(self.left, self.right, grid, coefficients))

    def by_row(self, pieces: FloatArray) -> FloatArray:
        """Sum over the pieces of each row."""
        if self.share is None or self.row is None:
            return pieces
        sums = np.bincount(self.row, weights=self.share * pieces, minlength=self.n)
        return sums.astype(np.float64)


def pit_cells(
    pit: npt.ArrayLike,
    left: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    version: Version = "quantile",
) -> PitCells:
    """Check PIT values, and find where each row's PIT may lie."""
    low, high = _check_cells(pit, left)
    n = len(high)
    w = check_multiplicities(weights, n)
    if version == "quantile":
        return PitCells(low, high, n, w)
    if version != "interval":
        raise InputError(f"version must be 'quantile' or 'interval', got {version!r}")
    if low is high:
        folded = np.abs(2.0 * high - 1.0)
        return PitCells(folded, folded, n, w)
    below, above = 1.0 - 2.0 * low, 2.0 * high - 1.0
    near = np.minimum(np.abs(below), np.abs(above))
    far = np.maximum(np.abs(below), np.abs(above))
    row = np.arange(n)
    cut = np.flatnonzero((below > 0.0) & (above > 0.0))
    if not len(cut):
        return PitCells(near, far, n, w)
    lower_end, upper_end = near.copy(), far.copy()
    lower_end[cut], upper_end[cut] = 0.0, near[cut]
    share, before = np.ones(n), np.zeros(n)
    share[cut] = 2.0 * near[cut] / (near[cut] + far[cut])
    return PitCells(
        np.append(lower_end, near[cut]),
        np.append(upper_end, far[cut]),
        n,
        w,
        np.append(share, 1.0 - share[cut]),
        np.append(before, share[cut]),
        np.append(row, cut),
    )


def _check_cells(pit: npt.ArrayLike, left: npt.ArrayLike | None) -> tuple[FloatArray, FloatArray]:
    high = check_pit(pit)
    if left is None or left is pit:
        return high, high
    low = check_pit(left, "left", length=len(high))
    crossed = low > high
    if crossed.any():
        row = int(np.argmax(crossed))
        raise InputError(
            f"left must not exceed pit, got {int(crossed.sum())} rows where it does "
            f"(first at row {row}: {low[row]:g} > {high[row]:g})"
        )
    return (high, high) if np.array_equal(low, high) else (low, high)
