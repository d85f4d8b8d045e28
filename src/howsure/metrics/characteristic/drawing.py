"""Which vertices of a long curve to draw."""

from __future__ import annotations

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.convert import check_whole

AXIS_TITLES = {
    "bandwidth": "bandwidth (units of y)",
    "excess": "excess (units of y)",
    "miss_rate": "miss rate",
    "deficit": "deficit (units of y)",
}


def thinned(x: FloatArray, y: FloatArray, points: int) -> IntArray:
    """Vertices spread evenly over both axes, ends included.

    Parameters
    ----------
    x, y : ndarray of float, shape (m,)
        A curve; x never falls, y never rises.
    points : int
        At most so many, at least 4.

    Returns
    -------
    ndarray of int, shape (k,)
        Rising indices.

    Raises
    ------
    InputError
        If fewer than 4 points are allowed.

    Examples
    --------
    >>> thinned(np.arange(1000.0), -np.arange(1000.0), 4)
    array([  0, 999])
    """
    check_whole(points, "points", 4)
    if len(x) <= points:
        return np.arange(len(x))
    share = np.linspace(0.0, 1.0, points // 2)
    across = np.searchsorted(x, share * x[-1])
    down = np.searchsorted(-y, share * (y[0] - y[-1]) - y[0])
    return np.unique(np.minimum(np.concatenate([across, down]), len(x) - 1))
