"""Murphy diagrams: the mean elementary score of a forecast at every threshold.

Every score that a quantile, or a mean, is best for is a mixture over thresholds of elementary ones
(Ehm, Gneiting, Jordan and Krüger 2016). So a forecast that scores less at every threshold is the
better one whatever score is asked for, and where curves cross the score decides.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector, check_fraction
from howsure.core.weights import check_multiplicities


def elementary_quantiles(
    y: npt.ArrayLike,
    quantile: npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    level: float,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Mean elementary score of a quantile at thresholds; lower is better.

    At θ a row scores 1 − τ where y ≤ θ < q, τ where q ≤ θ < y, else 0: what who acts where q > θ,
    and should where y > θ, loses. Over all θ it integrates to the mean pinball loss.

    Parameters
    ----------
    y, quantile : array-like of shape (n,)
        What happened and its predicted quantile.
    thresholds : array-like of shape (k,)
        Where to score, in the units of y.
    level : float
        Level τ of the quantile, in (0, 1).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    ndarray of float, shape (k,)

    Raises
    ------
    InputError
        If an argument leaves its domain, lengths differ, or a value is missing.

    Notes
    -----
    Ehm, Gneiting, Jordan and Krüger (2016), Of quantiles and expectiles, JRSS B 78, equation 6.
    O((n + k) log n).

    Examples
    --------
    >>> elementary_quantiles([3.0], [1.0], [0.0, 2.0, 4.0], level=0.9)
    array([0. , 0.9, 0. ])
    """
    truth, point, at, mass = _checked(y, quantile, "quantile", thresholds, weights)
    share = check_fraction(level, "level")
    cost = mass * np.where(truth < point, 1.0 - share, share)
    low, high = np.minimum(truth, point), np.maximum(truth, point)
    return np.maximum(_up_to(low, cost, at) - _up_to(high, cost, at), 0.0)


def elementary_means(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> FloatArray:
    """Mean elementary score of a mean at thresholds; lower is better.

    At θ a row scores 2 |y − θ| where θ lies between y and the mean, else 0. Over all θ it
    integrates to the mean squared error.

    Parameters
    ----------
    y, mean : array-like of shape (n,)
        What happened and its predicted mean.
    thresholds : array-like of shape (k,)
        Where to score, in the units of y.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    ndarray of float, shape (k,)

    Raises
    ------
    InputError
        If an argument leaves its domain, lengths differ, or a value is missing.

    Notes
    -----
    Source as in `elementary_quantiles`, equation 8 for the mean, times four.

    Examples
    --------
    >>> elementary_means([3.0], [1.0], [0.0, 2.0, 4.0])
    array([0., 2., 0.])
    """
    truth, point, at, mass = _checked(y, mean, "mean", thresholds, weights)
    centre = float(np.median(truth))  # so that products keep their digits
    truth, point, at = truth - centre, point - centre, at - centre
    side = 2.0 * mass * np.where(truth < point, 1.0, -1.0)
    low, high = np.minimum(truth, point), np.maximum(truth, point)
    slope = _up_to(low, side, at) - _up_to(high, side, at)
    moment = _up_to(low, side * truth, at) - _up_to(high, side * truth, at)
    return np.maximum(slope * at - moment, 0.0)


def _checked(
    y: npt.ArrayLike,
    point: npt.ArrayLike,
    name: str,
    thresholds: npt.ArrayLike,
    weights: npt.ArrayLike | None,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Arguments, and weights that sum to 1."""
    truth = as_vector(y, "y")
    forecast = as_vector(point, name, length=len(truth))
    counts = check_multiplicities(weights, len(truth))
    mass = np.ones(len(truth)) if counts is None else counts
    return truth, forecast, as_vector(thresholds, "thresholds", scalar=True), mass / mass.sum()


def _up_to(places: FloatArray, values: FloatArray, at: FloatArray) -> FloatArray:
    """Sums of values at places up to each threshold."""
    order = np.argsort(places, kind="stable")
    sums = np.append(0.0, np.cumsum(values[order]))
    return np.asarray(sums[np.searchsorted(places[order], at, side="right")])
