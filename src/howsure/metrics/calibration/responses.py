"""Do widths follow the size of the errors, and do misses lie on both sides?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.times import Units
from howsure.core.weights import Weights
from howsure.metrics.calibration.components import REACH, mean_test, wider_by
from howsure.stats.binomial import binomial_test
from howsure.stats.dominance import rank_values
from howsure.stats.estimate import Estimate, standard_error, weighted_mean

ONE_WIDTH = "one_width"
"""The option of a record that has no value as every row has the same width."""
_ROUNDING = 1e-9
"""Widths that differ by less are one: a width made in another way must find its own rank."""


def width_rank(
    uncertainty: FloatArray, weights: FloatArray | None = None
) -> Callable[[FloatArray], FloatArray]:
    """What turns a width into its standardised mid-rank among these, of mean 0 and variance 1."""
    ranked = rank_values(uncertainty, weights)
    if len(ranked.tied) < 2:
        raise UnanswerableError("every row has the same width")
    edges = np.r_[0.0, np.cumsum(ranked.tied)] / ranked.total
    middle = (edges[1:] + edges[:-1]) / 2.0
    spread = math.sqrt(float(np.average(np.square(middle - 0.5), weights=ranked.tied)))

    def rank(width: FloatArray) -> FloatArray:
        if width is uncertainty:  # a million rows are not looked up again
            return np.asarray((middle[ranked.codes] - 0.5) / spread)
        values = np.unique(uncertainty)
        low = edges[np.searchsorted(values, width * (1.0 - _ROUNDING), "left")]
        high = edges[np.searchsorted(values, width * (1.0 + _ROUNDING), "right")]
        return np.asarray(((low + high) / 2.0 - 0.5) / spread)

    return rank


def width_response(
    signal: FloatArray,
    rank: FloatArray,
    size: Callable[[float], float],
    *,
    expected: FloatArray | float = 0.0,
    weights: Weights | None = None,
    cluster: Units = None,
) -> Estimate:
    """How much larger errors are, against their stated size, where widths are large than small.

    Parameters
    ----------
    signal : ndarray of float, shape (n,)
        What tells of the size of a row's error: φ_2 of its PIT, or whether it is missed.
    rank : ndarray of float, shape (n,)
        Standardised rank of the width.
    size : callable
        Log of the errors' multiple of their stated size that a mean signal shows.
    expected : ndarray of float, shape (n,), optional
        Mean of rank × signal if the row is right, where the width tells of chance itself.
    weights, cluster : optional
        Of the rows.

    Returns
    -------
    Estimate
        k(+1)/k(−1), k the multiple one sd of the width's rank above and below its mean; 1 is
        right, below 1 the widths overreact.
    """
    share = None if weights is None else weights.values
    mean = weighted_mean(signal, share)
    rows = rank * (signal - mean) - expected
    slope = weighted_mean(rows, share)
    spread = math.sqrt(weighted_mean(np.square(signal - mean), share))
    if spread == 0.0:
        raise UnanswerableError("rows are all alike in what tells of their errors")
    p = mean_test(rows, spread, weights=weights, cluster=cluster, exact=True)  # rows permuted
    error = standard_error(rows - slope, weights, cluster)

    def ratio(at: float) -> float:
        return math.exp(size(mean + at) - size(mean - at))

    n = float(len(rows)) if weights is None else weights.effective_n
    chance = REACH * spread / math.sqrt(n) * wider_by(rows - slope, weights, cluster)
    ends = sorted(ratio(slope + side * REACH * error) for side in (-1.0, 1.0))
    null = sorted(ratio(side * chance) for side in (-1.0, 1.0))
    return Estimate(
        ratio(slope),
        error=abs(ratio(slope + error) - ratio(slope - error)) / 2.0,
        lower=ends[0],
        upper=ends[1],
        null_lower=null[0],
        null_upper=null[1],
        p=p,
        details={"widest": math.exp(size(mean + slope)), "narrowest": math.exp(size(mean - slope))},
    )


def exchanged_response(
    values: FloatArray, second: FloatArray, rank: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Mean of rank × φ_2 of a row, over which of its m + 1 values is y; shape (n,).

    Few members that lie close together by chance state a small sd and are missed: their width
    tells of their own luck. Exchangeable values say by how much.
    """
    ordered = np.sort(values, axis=1)
    ordered -= ordered.mean(axis=1, keepdims=True)
    m = ordered.shape[1] - 1
    total = np.square(ordered).sum(axis=1, keepdims=True)
    variance = (total - np.square(ordered) * (1.0 + 1.0 / m)) / (m - 1)
    return np.asarray((rank(np.sqrt(np.maximum(variance, 0.0))) * second).mean(axis=1))


def miss_imbalance(
    below: npt.NDArray[np.bool_],
    above: npt.NDArray[np.bool_],
    *,
    weights: Weights | None = None,
    cluster: Units = None,
) -> Estimate:
    """How many more rows are missed above than below, as a share of all rows.

    Of the misses of a central interval as many lie below as above; the p-value is the exact
    binomial one given their number, or Student's for weights of importance and clusters.

    Examples
    --------
    >>> miss_imbalance(np.zeros(100, bool), np.arange(100) < 10).p
    0.002
    """
    rows = above.astype(np.float64) - below
    share = None if weights is None else weights.values
    value = weighted_mean(rows, share)
    count = [float(np.sum(each if share is None else each * share)) for each in (below, above)]
    details = {"below": count[0], "above": count[1]}
    total = sum(count)
    size = math.sqrt(weighted_mean(np.square(rows), share))
    if not total:
        p = math.nan
    elif cluster is None and (weights is None or weights.kind == "frequency"):
        p = float(binomial_test(count[0], total, 0.5))
    else:
        p = mean_test(rows, size, weights=weights, cluster=cluster)
    n = float(len(rows)) if weights is None else weights.effective_n
    chance = REACH * size / math.sqrt(n) * wider_by(rows - value, weights, cluster)
    found = Estimate(value, rows - value, p=p, null_lower=-chance, null_upper=chance)
    return replace(found, details=details)
