"""The curve as the UQ360 toolkit computes it, for comparison with published numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.metrics.characteristic.area import AreaRequest
from howsure.metrics.characteristic.bands import Bands, Move, XAxis, YAxis
from howsure.metrics.characteristic.operating import Cost, cheapest, check_prices, measure
from howsure.metrics.characteristic.trace import find_kinks, trace

_ZERO = 1e-8  # numpy.isclose(band, 0) of the toolkit


@dataclass(frozen=True, slots=True, eq=False)
class ToolkitCurve:
    """Critical points only, with the toolkit's excess, units and trapezoids.

    It differs from `CharacteristicCurve` in that the curve starts at its first critical point;
    the excess is the distance to the end on the error's side; areas are trapezoids, of parts
    between the critical points nearest to the range's ends; every axis but the miss rate is
    divided by the population standard deviation of y; bands of 0 become the smallest positive
    band; and the cost is minimised over critical points. It knows no weights.

    Two faults of the toolkit are not repeated. It alters predictions near 0 when it replaces
    bands. And it tells inside from outside by the rounded ends of the scaled interval, so that
    at some critical points the very row that defines it counts as missed: its areas come out
    too large, by parts in ten thousand at some hundreds of rows.

    Attributes
    ----------
    x_axis, y_axis : str
        Axes.
    move : {"scale", "bias"}
        What the knob does to the bands.
    knob, x, y : ndarray of float, shape (m,)
        The critical points; x and y in the axes' own units.
    x_now, y_now : float
        The point as predicted.
    x_unit, y_unit : float
        What the toolkit divides the axes by.
    """

    x_axis: XAxis
    y_axis: YAxis
    move: Move
    knob: FloatArray
    x: FloatArray
    y: FloatArray
    x_now: float
    y_now: float
    x_unit: float
    y_unit: float

    __repr__ = brief_repr

    def area(self, request: AreaRequest) -> float:
        """Trapezoids over the critical points, in the toolkit's units.

        Examples
        --------
        >>> error, band = np.array([1.0, -2.0, 0.5, 3.0]), np.array([1.0, 1.0, 1.0, 2.0])
        >>> curve = toolkit_curve(Bands(error, error, band, band), "bandwidth", "miss_rate")
        >>> curve.area(AreaRequest()) * curve.x_unit
        0.703125
        """
        x, y = self.x / self.x_unit, self.y / self.y_unit
        first, last = 0, len(x) - 1
        if request.x_range is not None:
            first, last = sorted(int(np.argmin(np.abs(x - end))) for end in request.x_range)
        elif request.y_range is not None:
            first, last = sorted(int(np.argmin(np.abs(y - end))) for end in request.y_range)
        part = slice(first, last + 1)
        return float(np.trapezoid(y[part], x[part]))

    def cost(self, x_weight: float, y_weight: float) -> Cost:
        """The cheapest critical point, the prices divided by the axes' units."""
        check_prices(x_weight, y_weight)
        x_price, y_price = x_weight / self.x_unit, y_weight / self.y_unit
        index, cost = cheapest(self.knob, self.x, self.y, x_price, y_price)
        return Cost(
            x_axis=self.x_axis,
            y_axis=self.y_axis,
            x_weight=x_price,
            y_weight=y_price,
            move=self.move,
            knob=float(self.knob[index]),
            cost=cost,
            x=float(self.x[index]),
            y=float(self.y[index]),
            knob_now=1.0 if self.move == "scale" else 0.0,
            cost_now=x_price * self.x_now + y_price * self.y_now,
            x_now=self.x_now,
            y_now=self.y_now,
        )

    def nearest(self, *, x: float | None = None, y: float | None = None) -> tuple[float, ...]:
        """Setting, x and y (in the toolkit's units) of the critical point nearest to a wish.

        Raises
        ------
        InputError
            Unless one of x and y is given.
        """
        if x is not None and y is None:
            gaps = np.abs(self.x / self.x_unit - x)
        elif y is not None and x is None:
            gaps = np.abs(self.y / self.y_unit - y)
        else:
            raise InputError("exactly one of x and y must be given")
        index = int(np.argmin(gaps))
        places = (self.knob[index], self.x[index] / self.x_unit, self.y[index] / self.y_unit)
        return tuple(map(float, places))


def toolkit_curve(bands: Bands, x_axis: XAxis, y_axis: YAxis) -> ToolkitCurve:
    """Compute the toolkit's critical points."""
    if bands.weights is not None:
        raise InputError("the convention 'uq360' knows no weights")
    repaired = _without_zeros(bands)
    axes = ("miss_rate", x_axis, y_axis)
    kinks = find_kinks(repaired, axes, one_sided=True)
    vertices = trace(kinks, repaired, axes)
    miss = vertices.axes["miss_rate"]
    critical = np.append(miss[0] < 1.0, np.diff(miss) < 0)
    now = measure(repaired, bands.now)
    active, _ = repaired.sides()
    now["excess"] = float(np.maximum(active - np.abs(bands.error), 0.0).mean())
    unit = float(np.std(bands.y))
    unit = 1.0 if math.isclose(unit, 0.0, abs_tol=_ZERO) else unit
    return ToolkitCurve(
        x_axis,
        y_axis,
        bands.move,
        vertices.knob[critical],
        vertices.axes[x_axis][critical],
        vertices.axes[y_axis][critical],
        now[x_axis],
        now[y_axis],
        unit,
        1.0 if y_axis == "miss_rate" else unit,
    )


def _without_zeros(bands: Bands) -> Bands:
    """Bands of 0 replaced by the smallest positive one, the lower side's first."""
    below, above = bands.below, bands.above
    for name, side in (("lower", below), ("upper", above)):
        if not (side > _ZERO).any():
            raise InputError(f"the convention 'uq360' needs a positive {name} band, got 0 only")
    for side in (below, above):
        if (side <= _ZERO).any():
            smallest = float(side[side > 0].min())
            below = np.where(below <= _ZERO, smallest, below)
            above = np.where(above <= _ZERO, smallest, above)
            break
    return replace(bands, below=below, above=above)
