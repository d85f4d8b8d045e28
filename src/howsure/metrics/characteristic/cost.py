"""The cost of an operating point, and the cheapest one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.metrics.characteristic.bands import Move, XAxis, YAxis


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cheapest point of a curve under C = x_weight·x + y_weight·y, and the cost now.

    Attributes
    ----------
    x_axis, y_axis : str
        Axes of the curve.
    x_weight, y_weight : float
        Prices of one unit of either axis.
    move : {"scale", "bias"}
        What the knob does to the bands.
    knob, cost, x, y : float
        Setting, cost and place of the cheapest point; the smallest setting where several are.
    knob_now, cost_now, x_now, y_now : float
        The same as the model stands.
    regret : float
        cost_now − cost.
    slope : float
        Slope −x_weight/y_weight of the lines of equal cost; −infinity where y is free.
    """

    x_axis: XAxis
    y_axis: YAxis
    x_weight: float
    y_weight: float
    move: Move
    knob: float
    cost: float
    x: float
    y: float
    knob_now: float
    cost_now: float
    x_now: float
    y_now: float

    @property
    def regret(self) -> float:
        """What the present setting costs beyond the cheapest."""
        return self.cost_now - self.cost

    @property
    def slope(self) -> float:
        """Slope of the lines of equal cost."""
        return -self.x_weight / self.y_weight if self.y_weight else -math.inf

    def isocost(self, x: npt.ArrayLike, *, cost: float | None = None) -> FloatArray:
        """y along a line of equal cost, by default the cheapest one that the curve touches.

        Parameters
        ----------
        x : array-like of shape (k,)
            Places on the x axis.
        cost : float, optional
            The line's cost.

        Returns
        -------
        ndarray of float, shape (k,)
            NaN where y is free, as the line is vertical.

        Examples
        --------
        >>> place = dict(knob=1.0, cost=1.0, x=0.5, y=0.5)
        >>> now = dict(knob_now=1.0, cost_now=1.0, x_now=0.5, y_now=0.5)
        >>> axes = dict(x_axis="bandwidth", y_axis="miss_rate", x_weight=1.0, y_weight=1.0)
        >>> Cost(**axes, move="scale", **place, **now).isocost([0.0, 1.0])
        array([1., 0.])
        """
        places = np.asarray(x, dtype=np.float64)
        if not self.y_weight:
            return np.full(places.shape, math.nan)
        line: FloatArray = (self.cost if cost is None else cost) - self.x_weight * places
        return line / self.y_weight


def check_prices(x_weight: float, y_weight: float) -> None:
    """Refuse prices that are negative, not finite, or both zero.

    Raises
    ------
    InputError
        Naming the argument and what came.

    Examples
    --------
    >>> check_prices(1.0, 10.0)
    """
    for name, price in (("x_weight", x_weight), ("y_weight", y_weight)):
        if not 0.0 <= price < math.inf:
            raise InputError(f"{name} must be finite and at least 0, got {price!r}")
    if x_weight == 0 and y_weight == 0:
        raise InputError("x_weight and y_weight must not both be 0")


def cheapest(
    knob: FloatArray, x: FloatArray, y: FloatArray, x_weight: float, y_weight: float
) -> tuple[int, float]:
    """Index and cost of the cheapest vertex.

    Between vertices the cost is linear in the knob, and no drop raises it, so the cheapest vertex
    is the cheapest point of the curve.

    Parameters
    ----------
    knob, x, y : ndarray of float, shape (m,)
        Vertices in order of the knob.
    x_weight, y_weight : float
        Prices.

    Returns
    -------
    index : int
    cost : float

    Examples
    --------
    >>> knob = np.array([0.0, 1.0, 2.0])
    >>> cheapest(knob, knob, np.array([1.0, 0.1, 0.0]), 1.0, 5.0)
    (1, 1.5)
    """
    cost = x_weight * x + y_weight * y
    index = int(np.argmin(cost))
    return index, float(cost[index])
