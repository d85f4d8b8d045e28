"""Areas under a curve: whole or in part, by convention and by reading, and gains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.engine.metric import check_range
from howsure.topics.characteristic.bands import XAxis, YAxis
from howsure.topics.characteristic.trace import Trace

Convention = Literal["exact", "paper", "uq360"]
Reading = Literal["under", "left"]
Rule = Literal["step", "lower", "linear"]

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class AreaRequest:
    """Which area: the convention, and the part of the curve.

    Attributes
    ----------
    convention : {"exact", "paper", "uq360"}
        ``exact``: under the step function (miss rate) or the broken line (deficit). ``paper``:
        rectangles at the value after each drop, eq. 14 of Navrátil et al. ``uq360``: trapezoids
        from the first critical point, in standard deviations of y.
    y_range : (float, float), optional
        Part of the curve by its y axis.
    x_range : (float, float), optional
        Part of the curve by its x axis.
    reading : {"under", "left"}
        For a part by the y axis: the area under the curve where y is in the range, or the area
        to its left, ∫ x dy over the range.
    """

    convention: Convention = "exact"
    y_range: tuple[float, float] | None = None
    x_range: tuple[float, float] | None = None
    reading: Reading = "under"

    def checked(self, y_axis: YAxis) -> AreaRequest:
        """Check the request against the curve's y axis.

        Raises
        ------
        InputError
            If a word is unknown, a range does not rise or leaves the axis, both ranges are given,
            or the left reading is asked of an x range or another convention.

        Examples
        --------
        >>> AreaRequest(y_range=(0, 0.1)).checked("miss_rate").reading
        'under'
        """
        checked(self.convention, Convention, "convention")
        checked(self.reading, Reading, "reading")
        if self.y_range is not None and self.x_range is not None:
            raise InputError("y_range and x_range must not both be given")
        if self.y_range is not None:
            largest = 1.0 if y_axis == "miss_rate" else math.inf
            check_range(self.y_range, "y_range", largest=largest)
        if self.x_range is not None:
            check_range(self.x_range, "x_range", largest=math.inf)
        if self.reading == "left" and (self.y_range is None or self.convention != "exact"):
            raise InputError("reading 'left' needs a y_range and the convention 'exact'")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """An area under a curve, and what it is.

    Attributes
    ----------
    value : float
        The area; lower is better. Where `complete` is False, its finite part.
    complete : bool
        False where some rows are never captured, so that the area asked for is infinite.
    reason : str
        What limits it.
    x_axis, y_axis : str
        Axes of the curve.
    request : AreaRequest
        Convention, part and reading.
    units : str
        In terms of the units of y.
    """

    value: float
    complete: bool
    reason: str
    x_axis: XAxis
    y_axis: YAxis
    request: AreaRequest
    units: str

    @property
    def mean(self) -> float:
        """Area to the left, divided by its range: the mean x needed in that range of y.

        NaN for other areas.
        """
        if self.request.reading != "left" or self.request.y_range is None:
            return math.nan
        return self.value / (self.request.y_range[1] - self.request.y_range[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How much smaller the area is than that of a constant band.

    Attributes
    ----------
    value : float
        100·(A_const − A)/A_const in percent, higher is better, 0 for a constant band; NaN where
        `reason` says why. By the convention ``uq360``, 100·(A_const − A)/A.
    area, constant : Area
        The two areas, of one request.
    reason : str
        Why there is no value.
    """

    value: float
    area: Area
    constant: Area
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """y against x along a curve."""

    x: FloatArray  # shape (m,): never falls
    y: FloatArray  # shape (m,): never rises
    # {"step", "lower", "linear"}: between two vertices: the left one's y, the right one's, or the
    # straight line. Beyond the last vertex y is constant.
    rule: Rule

    def total(self) -> float:
        """Area under the whole path."""
        return float(np.sum(self._heights() * np.diff(self.x)))

    def between(self, left: float, right: float) -> float:
        """Area under the path from one x to another."""
        sums = np.append(0.0, np.cumsum(self._heights() * np.diff(self.x)))
        return self._up_to(right, sums) - self._up_to(left, sums)

    def reach(self, level: float) -> float:
        """Smallest x at which y is at most a level; infinite where it never is."""
        j = int(np.searchsorted(-self.y, -level * (1.0 + _ROUNDING)))
        if j == len(self.y):
            return math.inf
        if j == 0 or self.rule != "linear" or self.y[j] >= level:
            return float(self.x[j])
        share = (self.y[j - 1] - level) / (self.y[j - 1] - self.y[j])
        return float(self.x[j - 1] + share * (self.x[j] - self.x[j - 1]))

    def value(self, x: FloatArray) -> FloatArray:
        """y at each x; where the path is vertical, its lowest y."""
        j = np.searchsorted(self.x, x, side="right") - 1
        if self.rule == "step":
            return self.y[j]
        after = np.minimum(j + 1, len(self.x) - 1)
        if self.rule == "lower":
            return self.y[np.where(self.x[j] == x, j, after)]
        width = self.x[after] - self.x[j]
        share = np.divide(x - self.x[j], width, out=np.zeros_like(width), where=width > 0)
        return self.y[j] + share * (self.y[after] - self.y[j])

    def _heights(self) -> FloatArray:
        if self.rule == "step":
            return self.y[:-1]
        return self.y[1:] if self.rule == "lower" else 0.5 * (self.y[:-1] + self.y[1:])

    def _up_to(self, x: float, sums: FloatArray) -> float:
        j = int(np.searchsorted(self.x, x, side="right")) - 1
        height = self.y[min(j + 1, len(self.y) - 1)] if self.rule == "lower" else self.y[j]
        if self.rule == "linear":
            height = 0.5 * (height + self.value(np.array([x]))[0])
        return float(sums[j] + height * (x - self.x[j]))


def path_of(trace: Trace, x_axis: XAxis, y_axis: YAxis, convention: Convention) -> Path:
    """The path whose area a convention takes."""
    x, y = trace.axes[x_axis], trace.axes[y_axis]
    if convention == "exact":
        return Path(x, y, "step" if y_axis == "miss_rate" else "linear")
    kept = np.append(True, np.diff(trace.axes["miss_rate"]) < 0)
    return Path(x[kept], y[kept], "lower")


def area_of(path: Path, request: AreaRequest) -> tuple[float, bool]:
    """Area under a path, and whether it is the whole of what was asked for.

    Where y never falls to the bottom of the range, the area is infinite; its part up to the last
    vertex is returned.
    """
    if request.x_range is not None:
        return path.between(*request.x_range), True
    if request.y_range is None:
        return path.total(), bool(path.y[-1] == 0.0)
    low, high = request.y_range
    left, right = path.reach(high), path.reach(low)
    complete = math.isfinite(right)
    end = float(path.x[-1])
    left, right = min(left, end), min(right, end)
    low = max(low, float(path.y[-1]))
    under = path.between(left, right)
    if request.reading == "under":
        return under, complete
    return under + max(high, low) * left - low * right, complete


def gain_of(area: Area, constant: Area) -> Gain:
    """Gain of one area over that of a constant band."""
    uq360 = area.request.convention == "uq360"
    base = area.value if uq360 else constant.value
    if not (area.complete and constant.complete):
        reason = area.reason or constant.reason
    elif base <= 0:
        whose = "model" if uq360 else "constant band"
        reason = f"the area of the {whose} is 0"
    else:
        value = 100.0 * (constant.value - area.value) / base
        return Gain(value=value, area=area, constant=constant)
    return Gain(value=math.nan, area=area, constant=constant, reason=reason)
