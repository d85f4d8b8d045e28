"""Bootstrap of rows and of clusters, and a choice of rows that ignores their order.

What is resampled is a *unit*: a row, each copy of a row with a frequency weight, or a whole
cluster. Units are sorted by what they hold before any draw and equal ones are counted, so the
order of rows changes nothing, a frequency weight of two draws exactly as the row written twice,
and the cost does not grow with weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_matrix, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import UnanswerableError
from howsure.core.labels import as_labels
from howsure.core.rng import KeyArray, row_uniforms
from howsure.core.weights import Weights, merge_rows
from howsure.stats.dominance import lowest

# Units that are drawn one by one: 20,000 counts take 1 ms a replicate. Of more, neighbours are
# grouped and what they differ by is added as normal, so a larger limit costs time and changes
# little.
MAX_UNITS = 20_000
# The same where units have many copies: a binomial count of each is some ten times as dear as
# drawing rows, so ten times fewer take the same time.
_MAX_UNITS_OF_COPIES = 2_000
# 2 million counts of 64 bits are 16 MB, whatever the number of replicates.
_COUNTS_AT_ONCE = 2_000_000
# Squares of sums up to it are finite, with room for the sum of 10⁸ of them.
_LARGEST = 1e150


@frozen(eq=False)
class Bootstrap:
    """Replicates of one or several numbers, drawn together."""

    estimate: FloatArray  # shape (k,): the numbers on the data
    # shape (replicates, k): the numbers on each resample; columns share their draws, so that the
    # difference of two columns is a replicate of the difference
    replicates: FloatArray
    units: int  # how many units were resampled
    note: str = ""  # what limits the answer, in words

    def standard_error(self) -> FloatArray:
        """Standard deviation of the replicates; NaN with fewer than two units."""
        if self.units < 2:
            return np.full(len(self.estimate), np.nan)
        return np.asarray(self.replicates.std(axis=0, ddof=1))

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Confidence interval of each number, by percentiles of the replicates."""
        tail = (1.0 - check_fraction(confidence, "confidence")) / 2.0
        ends = np.full((2, len(self.estimate)), np.nan)
        finite = np.isfinite(self.replicates).all(axis=0)
        if self.units > 1 and finite.any():
            draws = self.replicates[:, finite]
            ends[:, finite] = np.quantile(draws, [tail, 1.0 - tail], axis=0, method="weibull")
        return ends[0], ends[1]


def bootstrap_means(
    scores: npt.ArrayLike,
    rng: np.random.Generator,
    replicates: int = 2000,
    *,
    weights: Weights | None = None,
    cluster: npt.ArrayLike | None = None,
    at_most: int = MAX_UNITS,
) -> Bootstrap:
    """Bootstrap weighted means of per-row scores, all columns on the same draws.

    Copies are drawn by multinomial counts. Source: B. Efron (1979); clusters: Davison and
    Hinkley, *Bootstrap Methods* (1997), 3.8.
    """
    table = as_matrix(scores, "scores")
    check_whole(replicates, "replicates", 2)
    check_whole(at_most, "at_most", 2)
    units, copies = resampling_units(table, weights, cluster)
    count = float(copies.sum())
    if np.abs(units).max() > _LARGEST / count:
        raise UnanswerableError(f"scores that sum past {_LARGEST:g} are too large to resample")
    total = copies @ units
    estimate = total[:-1] / total[-1]
    groups = at_most if count <= 2 * len(units) else min(at_most, _MAX_UNITS_OF_COPIES)
    note, within_groups = "", None
    if len(units) > groups:
        note = f"{len(units)} different units were resampled in {groups} groups of neighbours"
        units, copies, within_groups = _grouped(units, copies, groups)
    drawn = np.concatenate([counts @ units for counts in resampled_counts(rng, copies, replicates)])
    if within_groups is not None:
        drawn += rng.standard_normal((replicates, len(within_groups))) @ within_groups
    means = drawn[:, :-1] / drawn[:, -1:]
    return Bootstrap(estimate, means, int(count), note)


def _grouped(
    units: FloatArray, copies: FloatArray, groups: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means and copies of groups of neighbours, and a root of the sums of squares within them."""
    member = np.arange(len(units)) * groups // len(units)
    mass = np.bincount(member, weights=copies)
    means = _sums_by(member, copies[:, None] * units) / mass[:, None]
    within = np.sqrt(copies)[:, None] * (units - means[member])
    root = np.asarray(np.linalg.qr(within, mode="r"))
    return means, mass.astype(np.float64), root


def subsample(keys: KeyArray, at_most: int, *, seed: int, name: str) -> IntArray:
    """Choose at most so many rows at random, whatever their order."""
    check_whole(at_most, "at_most")
    return lowest(row_uniforms(seed, name, keys), at_most)


def resampling_units(
    scores: FloatArray, weights: Weights | None = None, cluster: npt.ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """Sum scores and weights within each unit that is resampled as a whole."""
    n = len(scores)
    mass = np.ones(n) if weights is None else as_vector(weights.values, "weights", length=n)
    frequent = weights is None or weights.kind == "frequency"
    if cluster is None and frequent:
        return merge_rows(np.column_stack((scores, np.ones(n))), mass)
    units = np.column_stack((scores * mass[:, None], mass))
    if cluster is not None:
        codes = _codes(cluster, n)
        order = np.lexsort((*units.T, codes))
        units = _sums_by(codes[order], units[order])
    units = units[units[:, -1] > 0]  # sums are not merged: rounding decides which are equal
    return units[np.lexsort(units.T)], np.ones(len(units))


def resampled_counts(
    rng: np.random.Generator, copies: FloatArray, replicates: int
) -> Iterator[FloatArray]:
    """How often each unit is drawn where all copies are resampled, some replicates at a time."""
    m, total = len(copies), int(copies.sum())
    few = total <= 2 * m  # then single draws are faster than counts
    owner = np.repeat(np.arange(m), copies.astype(np.int64)) if few else None
    step = max(1, _COUNTS_AT_ONCE // max(m, total if few else 0))
    for start in range(0, replicates, step):
        rows = min(step, replicates - start)
        if owner is None:
            counts = rng.multinomial(total, copies / total, size=rows)
        else:
            drawn = owner[rng.integers(0, total, size=(rows, total))]
            drawn += m * np.arange(rows)[:, None]
            counts = np.bincount(drawn.ravel(), minlength=rows * m).reshape(rows, m)
        yield counts.astype(np.float64)


def _codes(cluster: npt.ArrayLike, n: int) -> IntArray:
    labels = as_labels(cluster, "cluster", length=n)
    return np.asarray(np.unique(labels, return_inverse=True)[1])


def _sums_by(codes: IntArray, columns: FloatArray) -> FloatArray:
    return np.column_stack([np.bincount(codes, weights=column) for column in columns.T])
