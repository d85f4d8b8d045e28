"""An estimate with its influence values, and the standard error that follows from them.

If row i's weight grows by a share, the statistic moves by its influence ψ_i times that share:
θ(w) ≈ θ + Σ w_i ψ_i / Σ w_i, with Σ w_i ψ_i = 0. A mean's influence is ψ_i = s_i − mean. One
formula then gives every standard error: plain, weighted or clustered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, power_of_two
from howsure.core.weights import Weights


@dataclass(frozen=True, slots=True)
class Estimate:
    """What any measure that is no plain mean returns: a number with all that is known of it.

    What is left NaN is unknown, or follows from the influence values; see `finished`.

    Attributes
    ----------
    value : float
        The number; NaN where undefined, and then `reason` says why.
    influence : ndarray of float, shape (n,), optional
        ψ_i as above, in the units of the value; None where none is known.
    null : float
        The value expected of a perfect model at this n, where it differs from the target.
    reason : str
        Why the value is undefined, or what limits it.
    details : mapping
        What else the reader should see beside it.
    error : float
        Standard error.
    lower, upper : float
        Confidence interval.
    null_lower, null_upper : float
        Ends of the range that a perfect model keeps to; one is NaN where the range is one-sided.
    p : float
        Probability that a perfect model departs as far.
    n : float
        Rows behind the value; NaN where these are all rows.
    """

    value: float
    influence: FloatArray | None = None
    null: float = math.nan
    reason: str = ""
    details: Mapping[str, str | float] = field(default_factory=lambda: MappingProxyType({}))
    error: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    null_lower: float = math.nan
    null_upper: float = math.nan
    p: float = math.nan
    n: float = math.nan


def weighted_mean(values: FloatArray, weights: FloatArray | None = None) -> float:
    """Mean of values, Σ w_i v_i / Σ w_i."""
    return float(np.average(values, weights=weights))


def mean_statistic(scores: FloatArray, weights: FloatArray | None = None) -> Estimate:
    """Weighted mean of per-row scores, with its influence values."""
    value = weighted_mean(scores, weights)
    if not math.isfinite(value):
        return Estimate(value, None, reason="some rows score infinity")
    return Estimate(value, scores - value)


def standard_error(
    influence: FloatArray,
    weights: Weights | None = None,
    cluster: npt.NDArray[Any] | None = None,
) -> float:
    """Standard error of a statistic from its influence values.

    Plain rows and frequency weights: √(Σ wψ² / (N(N − 1))) with N = Σw, so that a weight of two
    is a row twice. Importance weights: √Σ(wψ)² / Σw. Clusters: influence is summed within each
    cluster first, and G/(G − 1) corrects for their number.
    """
    unit = power_of_two(influence)  # so that squares neither vanish nor overflow
    influence = influence / unit
    moved = influence if weights is None else weights.values * influence
    total = float(len(influence)) if weights is None else weights.total
    if cluster is not None:
        sums = np.bincount(cluster, weights=moved)
        count = len(sums)
        if count < 2:
            return math.nan
        return unit * math.sqrt(float(np.square(sums).sum()) * count / (count - 1)) / total
    if weights is not None and weights.kind == "importance":
        return unit * math.sqrt(float(np.square(moved).sum())) / total
    if total <= 1:
        return math.nan
    return unit * math.sqrt(float((moved * influence).sum()) / (total * (total - 1)))


def quantile_statistic(
    values: FloatArray, level: float, *, weights: FloatArray | None = None
) -> Estimate:
    """Quantile of values: the mean of the least and the greatest that qualify."""
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
