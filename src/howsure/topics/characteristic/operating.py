"""Operating points: where a model stands on its curve, and the knob's setting for a wish."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.topics.characteristic.bands import Bands, Move, XAxis, YAxis
from howsure.topics.characteristic.trace import AreaRequest, Path, Trace, find_kinks, trace

# A rate that is asked for as .1 is not a multiple of 1/n to its last digit.
_RATE_ROUNDING = 1e-9


@frozen(kw_only=True)
class ConformalPromise:
    """What a setting of the knob promises for a fresh row.

    The bands must come from a model that has not seen these rows, and the fresh row must be
    exchangeable with them.

    Attributes
    ----------
    knob : float
        The setting: the `rank`-th smallest critical setting. Infinite where `rank` exceeds n.
    rank, n : int
        Its rank among the n critical settings.
    coverage : float
        rank/(n + 1): a fresh row is covered with at least this probability, and with exactly this
        one where no settings tie, provided that the rank was fixed beforehand.
    coverage_lower : float
        A bound that the coverage, given these rows, exceeds with probability `confidence`. For a
        rank fixed beforehand the quantile of Beta(rank, n + 1 − rank); else, as the setting was
        chosen by looking at these rows, the bound that holds at all settings at once (Dvoretzky,
        Kiefer, Wolfowitz; Massart 1990).
    confidence : float
        As said.
    reason : str
        Why a number is missing, or what limits it.
    """

    knob: float
    rank: int
    n: int
    coverage: float
    coverage_lower: float
    confidence: float
    reason: str = ""


@frozen(kw_only=True)
class OperatingPoint:
    """The four measures at one setting of the knob.

    Attributes
    ----------
    move : {"scale", "bias"}
        What the knob does to the bands.
    knob : float
        Its setting: k for scaling, the length added for bias. NaN where the wish cannot be met.
    bandwidth, miss_rate, excess, deficit : float
        Mean half width, share of rows outside, mean distance to the nearer end of rows inside and
        of rows outside (both divided by all rows). Units of y but for the miss rate.
    wanted : str
        What was asked for: ``now``, ``knob`` or a measure.
    conformal : SplitConformal
        What the setting promises for a fresh row. For a wanted miss rate α it is the
        split-conformal setting, of rank ⌈(n + 1)(1 − α)⌉, which is at least that of the point.
    reason : str
        Why the wish cannot be met.
    """

    move: Move
    knob: float
    bandwidth: float
    miss_rate: float
    excess: float
    deficit: float
    wanted: str
    conformal: ConformalPromise
    reason: str = ""


def measure(bands: Bands, knob: float) -> dict[str, float]:
    """The four measures at a setting of the knob, from their definitions.

    A row counts as inside where its critical setting is at most the knob's, so that rounding in
    the ends of the interval cannot lose a row at its own critical setting.

    Examples
    --------
    >>> error, one = np.array([1.0, -2.0]), np.ones(2)
    >>> measure(Bands(error, error, one, one), 1.5)
    {'bandwidth': 1.5, 'miss_rate': 0.5, 'excess': 0.25, 'deficit': 0.25}
    """
    active, opposite = bands.sides()
    if bands.move == "scale":
        near, far = knob * active, knob * opposite
    else:
        near, far = np.maximum(active + knob, 0.0), np.maximum(opposite + knob, 0.0)
    size = np.abs(bands.error)
    inside = bands.critical() <= knob
    room = np.maximum(np.minimum(near - size, far + size), 0.0)
    short = np.maximum(size - near, 0.0)
    return {
        "bandwidth": bands.mean(0.5 * (near + far)),
        "miss_rate": bands.mean(np.where(inside, 0.0, 1.0)),
        "excess": bands.mean(np.where(inside, room, 0.0)),
        "deficit": bands.mean(np.where(inside, 0.0, short)),
    }


def operating_point(
    bands: Bands, trace: Trace, wanted: str, value: float, confidence: float
) -> OperatingPoint:
    """The operating point that meets a wish.

    A wanted miss rate or deficit gives the smallest setting that does not exceed it, a wanted
    bandwidth or excess the largest.
    """
    lowest = bands.start if wanted == "knob" else 0.0
    if wanted != "now" and not lowest <= value < math.inf:
        raise InputError(f"{wanted} must be finite and at least {lowest:g}, got {value!r}")
    if wanted == "miss_rate" and value > 1:
        raise InputError(f"miss_rate must not exceed 1, got {value!r}")
    knob, reason = bands.now if wanted == "now" else value, ""
    if wanted in ("miss_rate", "deficit"):
        knob, reason = _smallest_setting(trace, wanted, value)
    elif wanted in ("bandwidth", "excess"):
        knob, reason = _largest_setting(bands, trace, wanted, value)
    miss_rate = value if wanted == "miss_rate" else None
    conformal = _conformal(bands, trace, knob, confidence, miss_rate)
    point = dict.fromkeys(trace.axes, math.nan) if math.isnan(knob) else measure(bands, knob)
    return OperatingPoint(
        move=bands.move, knob=knob, wanted=wanted, conformal=conformal, reason=reason, **point
    )


def _smallest_setting(trace: Trace, axis: str, value: float) -> tuple[float, str]:
    """First setting at which a falling axis is at most the value."""
    y = trace.axes[axis]
    falling = Path(trace.knob, y, "step" if axis == "miss_rate" else "linear")
    knob = falling.reach(value, rounding=_RATE_ROUNDING)
    if math.isfinite(knob):
        return knob, ""
    return math.nan, (
        f"no setting brings the {axis.replace('_', ' ')} below {y[-1]:g}: some rows are on the "
        "side where the band is 0"
    )


def _largest_setting(bands: Bands, trace: Trace, axis: str, value: float) -> tuple[float, str]:
    """Last setting at which a rising axis is at most the value."""
    if axis == "bandwidth" and bands.move == "scale":
        return value / bands.mean_band(), ""
    x = trace.axes[axis]
    j = int(np.searchsorted(x, value, side="right")) - 1
    if j + 1 < len(x):
        slope = (x[j + 1] - x[j]) / (trace.knob[j + 1] - trace.knob[j])
    else:
        slope = _final_slope(bands)
    if slope <= 0:
        return math.nan, f"the {axis} never exceeds {x[-1]:g}"
    return float(trace.knob[j] + (value - x[j]) / slope), ""


def _final_slope(bands: Bands) -> float:
    """Slope of the excess past its last kink; also that of the bandwidth, by bias."""
    if bands.move == "bias":
        return 1.0
    captured = np.isfinite(bands.critical())
    return bands.mean(np.where(captured, np.minimum(bands.below, bands.above), 0.0))


def _conformal(
    bands: Bands, trace: Trace, knob: float, confidence: float, miss_rate: float | None
) -> ConformalPromise:
    """What a setting promises; for a miss rate chosen beforehand the split-conformal setting."""
    promise = partial(ConformalPromise, confidence=confidence)
    reason = ""
    if miss_rate is None and math.isnan(knob):
        reason = "there is no such setting"
    elif bands.weights is not None and bands.weights_kind == "importance":
        reason = "rows with importance weights are not exchangeable with a fresh row"
    elif bands.outputs > 1:
        reason = "several outputs are pooled: use the curve of one output"
    if reason:
        nan = math.nan
        return promise(knob=nan, rank=0, n=0, coverage=nan, coverage_lower=nan, reason=reason)
    n = round(bands.total)
    if miss_rate is None:
        vertex = int(np.searchsorted(trace.knob, knob, side="right")) - 1
        share = 1.0 - float(trace.axes["miss_rate"][vertex])
        margin = math.sqrt(-math.log(min(1.0 - confidence, 0.5)) / (2.0 * n))
        rank = round(share * n)
        return promise(
            knob=knob,
            rank=rank,
            n=n,
            coverage=rank / (n + 1),
            coverage_lower=max(share - margin, 0.0),
            reason="the setting was not fixed beforehand as a rank: coverage is not a guarantee, "
            "coverage_lower is",
        )
    rank = max(math.ceil((n + 1) * (1.0 - miss_rate) - _RATE_ROUNDING), 0)
    reached = np.flatnonzero(trace.axes["miss_rate"] * n <= n - rank + 0.5)
    if rank > n:
        reason = f"{n} rows are too few for a miss rate of {miss_rate:g}"
    elif not len(reached):
        reason = "the row of this rank is on the side where the band is 0"
    if reason:
        return promise(
            knob=math.inf, rank=rank, n=n, coverage=1.0, coverage_lower=1.0, reason=reason
        )
    lower = float(betaincinv(rank, n + 1 - rank, 1.0 - confidence)) if rank else 0.0
    setting = float(trace.knob[reached[0]])
    return promise(knob=setting, rank=rank, n=n, coverage=rank / (n + 1), coverage_lower=lower)


@frozen(kw_only=True)
class Cost:
    """The cheapest point of a curve under C = x_weight·x + y_weight·y, and the cost now.

    Attributes
    ----------
    x_axis, y_axis : str
        Axes of the curve.
    x_weight, y_weight : float
        Prices of one unit of either axis; 2 of x, where costs are in units of width.
    move : {"scale", "bias"}
        What the knob does to the bands.
    knob, cost, x, y : float
        Setting, cost and place of the cheapest point; the smallest setting where several are.
    cost_now, x_now, y_now : float
        Cost and place of the model as it stands.
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

    def isocost(self, x: npt.ArrayLike) -> FloatArray:
        """y along the line of the least cost, which the curve touches.

        Parameters
        ----------
        x : array-like of shape (k,)
            Places on the x axis.

        Returns
        -------
        ndarray of float, shape (k,)
            NaN where y is free, as the line is vertical.

        Examples
        --------
        >>> place = dict(knob=1.0, cost=1.0, x=0.5, y=0.5)
        >>> now = dict(cost_now=1.0, x_now=0.5, y_now=0.5)
        >>> axes = dict(x_axis="bandwidth", y_axis="miss_rate", x_weight=1.0, y_weight=1.0)
        >>> Cost(**axes, move="scale", **place, **now).isocost([0.0, 1.0])
        array([1., 0.])
        """
        places = np.asarray(x, dtype=np.float64)
        if not self.y_weight:
            return np.full(places.shape, math.nan)
        line: FloatArray = self.cost - self.x_weight * places
        return line / self.y_weight


def cheapest(x: FloatArray, y: FloatArray, x_weight: float, y_weight: float) -> tuple[int, float]:
    """Index and cost of the cheapest vertex.

    Between vertices the cost is linear in the knob, and no drop raises it, so the cheapest vertex
    is the cheapest point of the curve.
    """
    cost = x_weight * x + y_weight * y
    index = int(np.argmin(cost))
    return index, float(cost[index])


# ---- the curve as the UQ360 toolkit computes it, for comparison with published numbers -----------

_TOOLKIT_ZERO = 1e-8  # numpy.isclose(band, 0) of the toolkit


@frozen(eq=False)
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
        points = slice(first, last + 1)
        return float(np.trapezoid(y[points], x[points]))

    def cost(self, x_weight: float, y_weight: float) -> Cost:
        """The cheapest critical point, the prices divided by the axes' units."""
        for name, price in (("x_weight", x_weight), ("y_weight", y_weight)):
            if not 0.0 <= price < math.inf:
                raise InputError(f"{name} must be finite and at least 0, got {price!r}")
        if x_weight == 0 and y_weight == 0:
            raise InputError("x_weight and y_weight must not both be 0")
        x_price, y_price = x_weight / self.x_unit, y_weight / self.y_unit
        index, cost = cheapest(self.x, self.y, x_price, y_price)
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
            cost_now=x_price * self.x_now + y_price * self.y_now,
            x_now=self.x_now,
            y_now=self.y_now,
        )


def toolkit_curve(bands: Bands, x_axis: XAxis, y_axis: YAxis) -> ToolkitCurve:
    """Compute the toolkit's critical points."""
    if bands.weights is not None:
        raise InputError("the convention 'uq360' does not support weights")
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
    unit = 1.0 if math.isclose(unit, 0.0, abs_tol=_TOOLKIT_ZERO) else unit
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
        if not (side > _TOOLKIT_ZERO).any():
            raise InputError(f"the convention 'uq360' needs a positive {name} band, got 0 only")
    for side in (below, above):
        if (side <= _TOOLKIT_ZERO).any():
            smallest = float(side[side > 0].min())
            below = np.where(below <= _TOOLKIT_ZERO, smallest, below)
            above = np.where(above <= _TOOLKIT_ZERO, smallest, above)
            break
    return replace(bands, below=below, above=above)
