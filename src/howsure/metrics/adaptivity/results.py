"""What a measure of adaptivity gives: a number, its interval, and what chance alone would show."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.brief import brief_repr
from howsure.core.convert import Checked, Fraction, Natural
from howsure.core.rng import child
from howsure.core.weights import MOST_COPIES, check_multiplicities, merge_rows
from howsure.stats.bootstrap import resampled_counts
from howsure.stats.estimate import Estimate

_PERMUTED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Resampling(Checked):
    """How the interval and the simulated floor of a measure are drawn.

    Parameters
    ----------
    replicates : int
        Bootstrap resamples of the rows; 0 for no interval.
    permutations : int
        Shuffles for a floor that has no closed form; 0 for none.
    confidence : float
        Of the interval and of the floor's upper end.
    seed : int
        Seed of all draws.

    Raises
    ------
    InputError
        If a count is negative, or the confidence leaves (0, 1).

    Examples
    --------
    >>> Resampling(replicates=0).confidence
    0.95
    """

    replicates: Natural = 500
    permutations: Natural = 500
    confidence: Fraction = 0.95
    seed: int = 0

    def interval(self, draws: FloatArray) -> tuple[float, float]:
        """Percentile interval; NaN without draws, or where one is not finite."""
        if len(draws) < 2 or not np.isfinite(draws).all():
            return math.nan, math.nan
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(draws, [tail, 1 - tail], method="weibull")
        return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellTable:
    """The cells behind a measure, each array of shape (B,).

    Attributes
    ----------
    low, high : ndarray of float
        Range of what the cells are made by: ease, size or rank.
    n : ndarray of float
        Rows in each cell.
    means : dict of str to ndarray of float
        Mean of each column in the cell; NaN where it is empty.
    """

    low: FloatArray
    high: FloatArray
    n: FloatArray
    means: dict[str, FloatArray]

    __repr__ = brief_repr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdaptivityMeasure:
    """One number on how a prediction adapts, with what is needed to judge it.

    Attributes
    ----------
    estimate : Estimate
        The number. Its bounds are a bootstrap interval over rows: where the value is a maximum
        over cells, resampling adds noise to noise, so that the interval lies too high, and is to
        be read beside the null. That is what chance alone gives on average at this n and these
        cells: for a violation of coverage, a perfect model; for an association, shuffled rows.
        A value below its upper end says nothing.
    cells : CellTable
        The cells.
    """

    estimate: Estimate
    cells: CellTable

    __repr__ = brief_repr


def canonical_rows(
    columns: FloatArray, weights: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Rows sorted by content, equal ones made one, and how often each counts."""
    counts = check_multiplicities(weights, len(columns))
    if counts is None or _whole(counts):
        return merge_rows(columns, counts)
    order = np.lexsort(columns.T)
    return columns[order], counts[order]


def _whole(counts: FloatArray) -> bool:
    """Whether counts are of copies, each a row of its own, and not shares of rows."""
    return bool((counts == np.floor(counts)).all() and counts.sum() <= MOST_COPIES)


def bootstrapped(
    statistic: Callable[[FloatArray], float], counts: FloatArray, resampling: Resampling, name: str
) -> FloatArray:
    """A statistic of multiplicities on resamples of the rows, shape (replicates,)."""
    rng = child(resampling.seed, "adaptivity", name, "bootstrap")
    whole = _whole(counts)
    copies = counts if whole else np.ones(len(counts))
    drawn = (
        row if whole else row * counts
        for table in resampled_counts(rng, copies, resampling.replicates)
        for row in table
    )
    return np.array([statistic(row) for row in drawn])


def shuffled_column(values: FloatArray, counts: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Mean of the values that the copies of each row get when all copies swap at random.

    Up to 20,000 copies (or two a row) are permuted; more are drawn from the normal limit of it.
    """
    if not _whole(counts):
        return rng.permutation(values)
    total = float(counts.sum())
    if total <= max(_PERMUTED, 2 * len(values)):
        sizes = counts.astype(np.int64)
        moved = rng.permutation(np.repeat(values, sizes))
        return np.add.reduceat(moved, np.r_[0, np.cumsum(sizes)[:-1]]) / counts
    mean = float(values @ counts) / total
    sd = math.sqrt(float(np.square(values - mean) @ counts) / total)
    noise = rng.standard_normal(len(values)) / np.sqrt(counts)
    return np.asarray(mean + sd * (noise - float(noise @ counts) / total))
