"""Do intervals cover, where do they miss, and how wide are they?

Intervals are closed. Row functions return one number a row; their mean is the measure.
"""

from __future__ import annotations

import math

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray
from howsure.stats.estimate import Estimate
from howsure.stats.quantiles import quantile_statistic


def covered(y: FloatArray, lower: FloatArray, upper: FloatArray) -> BoolArray:
    """Whether each closed interval holds y; the mean is the empirical coverage (PICP).

    Parameters
    ----------
    y, lower, upper : ndarray of float, shape (n,)
        What happened and the ends of the intervals, in one unit.

    Returns
    -------
    ndarray of bool, shape (n,)
        The mean lies in [0, 1] and is best at the nominal coverage.

    Notes
    -----
    c_i = 1{l_i ≤ y_i ≤ u_i}. Source: prediction interval coverage probability, the field's PICP.

    Examples
    --------
    >>> covered(np.array([1.0, 5.0]), np.array([0.0, 0.0]), np.array([1.0, 4.0]))
    array([ True, False])
    """
    return (y >= lower) & (y <= upper)


def missed_below(y: FloatArray, lower: FloatArray) -> BoolArray:
    """Whether y lies below its interval, 1{y_i < l_i}; best at half the nominal miss rate.

    Parameters
    ----------
    y, lower : ndarray of float, shape (n,)
        What happened and the lower ends.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> missed_below(np.array([-1.0, 1.0]), np.array([0.0, 0.0]))
    array([ True, False])
    """
    return np.asarray(y < lower)


def missed_above(y: FloatArray, upper: FloatArray) -> BoolArray:
    """Whether y lies above its interval, 1{y_i > u_i}; best at half the nominal miss rate.

    Parameters
    ----------
    y, upper : ndarray of float, shape (n,)
        What happened and the upper ends.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> missed_above(np.array([1.0, 5.0]), np.array([4.0, 4.0]))
    array([False,  True])
    """
    return np.asarray(y > upper)


def width(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Width of each interval, u_i − l_i, in units of y; narrower is better at equal coverage.

    Parameters
    ----------
    lower, upper : ndarray of float, shape (n,)
        Ends of the intervals.

    Returns
    -------
    ndarray of float, shape (n,)

    Examples
    --------
    >>> width(np.array([0.0]), np.array([3.0]))
    array([3.])
    """
    return upper - lower


def bandwidth(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Half the width of each interval, in units of y (Navratil et al., equation 2).

    Parameters
    ----------
    lower, upper : ndarray of float, shape (n,)
        Ends of the intervals.

    Returns
    -------
    ndarray of float, shape (n,)

    Examples
    --------
    >>> bandwidth(np.array([0.0]), np.array([3.0]))
    array([1.5])
    """
    return (upper - lower) / 2.0


def excess(y: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """How far a covered y lies from the nearer end, 0 where missed; in units of y.

    Parameters
    ----------
    y, lower, upper : ndarray of float, shape (n,)
        What happened and the ends of the intervals.

    Returns
    -------
    ndarray of float, shape (n,)
        Lower is better at equal deficit.

    Notes
    -----
    c_i · min(y_i − l_i, u_i − y_i), averaged over all rows (Navratil et al.: two-sided excess).

    Examples
    --------
    >>> excess(np.array([1.0, 9.0]), np.array([0.0, 0.0]), np.array([4.0, 4.0]))
    array([1., 0.])
    """
    return np.maximum(np.minimum(y - lower, upper - y), 0.0)


def deficit(y: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """How far a missed y lies from the nearer end, 0 where covered; in units of y.

    Parameters
    ----------
    y, lower, upper : ndarray of float, shape (n,)
        What happened and the ends of the intervals.

    Returns
    -------
    ndarray of float, shape (n,)
        Lower is better.

    Notes
    -----
    max(l_i − y_i, y_i − u_i, 0), averaged over all rows (Navratil et al.).

    Examples
    --------
    >>> deficit(np.array([1.0, 9.0]), np.array([0.0, 0.0]), np.array([4.0, 4.0]))
    array([0., 5.])
    """
    return np.maximum(np.maximum(lower - y, y - upper), 0.0)


def median_width(
    lower: FloatArray, upper: FloatArray, *, weights: FloatArray | None = None
) -> Estimate:
    """Median width of the intervals, in units of y.

    Parameters
    ----------
    lower, upper : ndarray of float, shape (n,)
        Ends of the intervals.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        The mid-median, with its influence (see `quantile_statistic`).

    Examples
    --------
    >>> median_width(np.zeros(3), np.array([1.0, 2.0, 9.0])).value
    2.0
    """
    return quantile_statistic(upper - lower, 0.5, weights=weights)


def normalised_width(
    y: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    *,
    by: str = "range",
    weights: FloatArray | None = None,
) -> Estimate:
    """Mean width relative to the spread of y, without units.

    Parameters
    ----------
    y, lower, upper : ndarray of float, shape (n,)
        What happened and the ends of the intervals.
    by : {"range", "sd"}
        Divide by max y − min y (the literature's NMPIL) or by the population sd of y.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        NaN with a reason where y is constant. The range is taken as known in the influence.

    Examples
    --------
    >>> normalised_width(np.array([0.0, 4.0]), np.zeros(2), np.ones(2)).value
    0.25
    """
    widths = upper - lower
    mean = float(np.average(widths, weights=weights))
    centre = float(np.average(y, weights=weights))
    variance = float(np.average(np.square(y - centre), weights=weights))
    spread = float(y.max() - y.min()) if by == "range" else math.sqrt(variance)
    if spread == 0 or y.max() == y.min():
        return Estimate(math.nan, None, reason="y is constant, so its spread is 0")
    value = mean / spread
    if not math.isfinite(value):
        return Estimate(value, None, reason="some intervals are unbounded, or y hardly varies")
    influence = (widths - mean) / spread
    if by == "sd":
        influence = influence - value * (np.square(y - centre) - variance) / (2 * variance)
    return Estimate(value, influence)
