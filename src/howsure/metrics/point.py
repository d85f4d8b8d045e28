"""How good is the point forecast itself?"""

from __future__ import annotations

import math

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.stats.estimate import Estimate


def error(y: FloatArray, point: FloatArray) -> FloatArray:
    """Forecast minus truth, in units of y; the mean is the bias, best at 0.

    Parameters
    ----------
    y, point : ndarray of float, shape (n,)
        What happened and what was forecast.

    Returns
    -------
    ndarray of float, shape (n,)

    Examples
    --------
    >>> error(np.array([1.0]), np.array([3.0]))
    array([2.])
    """
    return point - y


def absolute_error(y: FloatArray, point: FloatArray) -> FloatArray:
    """|y_i − ŷ_i| in units of y; the mean is the MAE, lower is better.

    Parameters
    ----------
    y, point : ndarray of float, shape (n,)
        What happened and what was forecast.

    Returns
    -------
    ndarray of float, shape (n,)

    Examples
    --------
    >>> absolute_error(np.array([1.0]), np.array([3.0]))
    array([2.])
    """
    return np.abs(y - point)


def root_mean_squared_error(
    y: FloatArray, point: FloatArray, *, weights: FloatArray | None = None
) -> Estimate:
    """√mean (y_i − ŷ_i)², in units of y; lower is better.

    Parameters
    ----------
    y, point : ndarray of float, shape (n,)
        What happened and what was forecast.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        Influence (e_i² − RMSE²)/(2 RMSE).

    Examples
    --------
    >>> root_mean_squared_error(np.array([0.0, 0.0]), np.array([3.0, 4.0])).value
    3.5355
    """
    squares = np.square(y - point)
    mean = float(np.average(squares, weights=weights))
    value = math.sqrt(mean)
    return Estimate(value, (squares - mean) / (2 * value) if value > 0 else np.zeros(len(y)))


def r_squared(y: FloatArray, point: FloatArray, *, weights: FloatArray | None = None) -> Estimate:
    """Share of the variance of y that the forecast explains, at most 1; higher is better.

    Parameters
    ----------
    y, point : ndarray of float, shape (n,)
        What happened and what was forecast.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        1 − mean e²/var y, with its delta-method influence; NaN where y is constant.

    Examples
    --------
    >>> r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])).value
    1.0
    """
    if y.max() == y.min():
        return Estimate(math.nan, None, reason="y is constant, so it has no variance to explain")
    squares = np.square(y - point)
    mean = float(np.average(squares, weights=weights))
    deviations = np.square(y - float(np.average(y, weights=weights)))
    variance = float(np.average(deviations, weights=weights))
    if variance == 0.0:
        return Estimate(math.nan, None, reason="y varies too little for its square to be summed")
    ratio = mean / variance
    influence = (ratio * (deviations - variance) - (squares - mean)) / variance
    return Estimate(1.0 - ratio, influence)
