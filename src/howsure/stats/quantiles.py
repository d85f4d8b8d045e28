"""A weighted quantile with its influence values."""

from __future__ import annotations

import math

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.stats.estimate import Estimate


def quantile_statistic(
    values: FloatArray, level: float, *, weights: FloatArray | None = None
) -> Estimate:
    """Quantile of values: the mean of the least and the greatest that qualify.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        Numbers; +inf is legal.
    level : float
        In (0, 1); ½ gives the median.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        Influence (F(q) − 1{v ≤ q})/f(q), ties counted half; the density f comes from the
        spacing of the quantiles at level ± N^(−1/3)/2. No influence where that is infinite.

    Examples
    --------
    >>> quantile_statistic(np.array([4.0, 1.0, 3.0, 2.0]), 0.5).value
    2.5
    """
    order = np.argsort(values)
    ordered = values[order]
    counts = np.ones(len(values)) if weights is None else weights[order]
    cumulative = np.cumsum(counts)
    total = float(cumulative[-1])
    last = len(ordered) - 1

    def at(share: float) -> float:
        low = int(np.searchsorted(cumulative, share * total * (1 - 1e-12), side="left"))
        high = int(np.searchsorted(cumulative, share * total * (1 + 1e-12), side="right"))
        return float((ordered[min(low, last)] + ordered[min(high, last)]) / 2.0)

    value = at(level)
    if not math.isfinite(value):
        return Estimate(value, None, reason=f"too many values are infinite at level {level:g}")
    span = min(0.5 * total ** (-1 / 3), 0.98 * level, 0.98 * (1.0 - level))
    spread = at(level + span) - at(level - span)
    if not math.isfinite(spread):
        return Estimate(value, None, reason="too many values are infinite for a standard error")
    below = (values < value) + 0.5 * (values == value)
    share = float(np.average(below, weights=weights))
    return Estimate(value, (share - below) * spread / (2 * span))
