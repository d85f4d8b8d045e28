"""How good is the point forecast itself?"""

from __future__ import annotations

import math

import numpy as np

from howsure.core.arrays import FloatArray, power_of_two
from howsure.stats.estimate import Statistic


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
) -> Statistic:
    """√mean (y_i − ŷ_i)², in units of y; lower is better.

    Parameters
    ----------
    y, point : ndarray of float, shape (n,)
        What happened and what was forecast.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Statistic
        Influence (e_i² − RMSE²)/(2 RMSE).

    Examples
    --------
    >>> root_mean_squared_error(np.array([0.0, 0.0]), np.array([3.0, 4.0])).value
    3.5355
    """
    unit = power_of_two(y - point)  # so that squares neither vanish nor overflow
    squares = np.square((y - point) / unit)
    mean = float(np.average(squares, weights=weights))
    root = math.sqrt(mean)
    influence = unit * (squares - mean) / (2 * root) if root > 0 else np.zeros(len(y))
    return Statistic(unit * root, influence)


def r_squared(y: FloatArray, point: FloatArray, *, weights: FloatArray | None = None) -> Statistic:
    """Share of the variance of y that the forecast explains, at most 1; higher is better.

    Parameters
    ----------
    y, point : ndarray of float, shape (n,)
        What happened and what was forecast.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Statistic
        1 − mean e²/var y, with its delta-method influence; NaN where y is constant.

    Examples
    --------
    >>> r_squared(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0])).value
    1.0
    """
    if y.max() == y.min():
        return Statistic(math.nan, None, reason="y is constant, so it has no variance to explain")
    centred = y - float(np.average(y, weights=weights))
    unit = power_of_two(centred)  # so that squares of small numbers do not vanish
    squares = np.square((y - point) / unit)
    mean = float(np.average(squares, weights=weights))
    deviations = np.square(centred / unit)
    variance = float(np.average(deviations, weights=weights))
    if variance == 0.0:
        return Statistic(math.nan, None, reason="y varies too little for its square to be summed")
    ratio = mean / variance
    influence = (ratio * (deviations - variance) - (squares - mean)) / variance
    return Statistic(1.0 - ratio, influence)
