"""A statistic with its influence values, and the standard error that follows from them.

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
class Statistic:
    """A number computed from rows, and how each row moves it.

    Attributes
    ----------
    value : float
        The statistic; NaN where undefined.
    influence : ndarray of float, shape (n,), optional
        ψ_i as above, in the units of the value; None where none is known.
    null : float
        The value expected of a perfect model at this n, where it differs from the target.
    reason : str
        Why the value is undefined, or what limits it.
    details : mapping
        What else the reader should see beside it.
    """

    value: float
    influence: FloatArray | None = None
    null: float = math.nan
    reason: str = ""
    details: Mapping[str, str | float] = field(default_factory=lambda: MappingProxyType({}))


def weighted_mean(values: FloatArray, weights: FloatArray | None = None) -> float:
    """Mean of values, Σ w_i v_i / Σ w_i.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        One value a row.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    float

    Examples
    --------
    >>> weighted_mean(np.array([1.0, 3.0]), np.array([3.0, 1.0]))
    1.5
    """
    return float(np.average(values, weights=weights))


def mean_statistic(scores: FloatArray, weights: FloatArray | None = None) -> Statistic:
    """Weighted mean of per-row scores, with its influence values.

    Parameters
    ----------
    scores : ndarray of float, shape (n,)
        One score a row.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Statistic

    Examples
    --------
    >>> mean_statistic(np.array([1.0, 3.0])).value
    2.0
    """
    value = weighted_mean(scores, weights)
    if not math.isfinite(value):
        return Statistic(value, None, reason="some rows score infinity")
    return Statistic(value, scores - value)


def standard_error(
    influence: FloatArray,
    weights: Weights | None = None,
    cluster: npt.NDArray[Any] | None = None,
) -> float:
    """Standard error of a statistic from its influence values.

    Plain rows and frequency weights: √(Σ wψ² / (N(N − 1))) with N = Σw, so that a weight of two
    is a row twice. Importance weights: √Σ(wψ)² / Σw. Clusters: influence is summed within each
    cluster first, and G/(G − 1) corrects for their number.

    Parameters
    ----------
    influence : ndarray of float, shape (n,)
        ψ_i, with weighted sum zero.
    weights : Weights, optional
        How rows count.
    cluster : ndarray of int, shape (n,), optional
        Codes 0 … G−1 of clusters of dependent rows.

    Returns
    -------
    float
        NaN where fewer than two rows or clusters are at hand.

    Examples
    --------
    >>> scores = np.array([1.0, 2.0, 3.0])
    >>> standard_error(scores - 2.0)
    0.577
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
