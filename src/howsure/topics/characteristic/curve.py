"""The uncertainty characteristics curve."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole, checked
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Curve
from howsure.core.weights import WeightsKind
from howsure.topics.characteristic.bands import (
    Bands,
    Move,
    Outside,
    XAxis,
    YAxis,
    checked_bands,
)
from howsure.topics.characteristic.operating import (
    Cost,
    OperatingPoint,
    ToolkitCurve,
    cheapest,
    operating_point,
    toolkit_curve,
)
from howsure.topics.characteristic.trace import (
    AXES,
    Area,
    AreaRequest,
    Convention,
    Gain,
    Path,
    Reading,
    Trace,
    area_of,
    axes_needed,
    find_kinks,
    gain_of,
    path_of,
    trace,
)

Range = tuple[float, float]


@frozen(eq=False, kw_only=True)
class CharacteristicCurve:
    """What misses cost in width, and width in misses, over all operating points of a model.

    Make one with `characteristic_curve`. Lower and further left is better.

    Attributes
    ----------
    x_axis : {"bandwidth", "excess"}
        Cost of width, in units of y.
    y_axis : {"miss_rate", "deficit"}
        Cost of misses: a share, or units of y.
    bands : Bands
        Errors and bands.
    trace : Trace
        All four axes at every vertex.
    outputs : tuple of CharacteristicCurve
        The curves of the single outputs, where several are averaged in this one; else empty.
    """

    x_axis: XAxis
    y_axis: YAxis
    bands: Bands
    trace: Trace
    outputs: tuple[CharacteristicCurve, ...] = ()

    @property
    def knob(self) -> FloatArray:
        """Setting at each vertex: the scale k, or the length added by bias. Shape (m,)."""
        return self.trace.knob

    @property
    def x(self) -> FloatArray:
        """The x axis at each vertex, rising from 0. Shape (m,)."""
        return self.trace.axes[self.x_axis]

    @property
    def y(self) -> FloatArray:
        """The y axis at each vertex, after the drop that may be there. Shape (m,)."""
        return self.trace.axes[self.y_axis]

    @property
    def n(self) -> int:
        """Number of entries: rows times outputs."""
        return len(self.bands)

    @property
    def uncaptured(self) -> float:
        """Share of rows that no setting captures, as their active band is 0."""
        return float(self.trace.axes["miss_rate"][-1])

    def on(self, *, x: XAxis, y_axis: YAxis) -> CharacteristicCurve:
        """The same curve on another pair of axes, at no cost.

        Examples
        --------
        >>> curve = characteristic_curve([1.0, 2.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 1.0])
        >>> curve.on(x="excess", y_axis="deficit").x
        array([0. , 0. , 0.5])
        """
        checked(x, XAxis, "x")
        checked(y_axis, YAxis, "y_axis")
        outputs = tuple(output.on(x=x, y_axis=y_axis) for output in self.outputs)
        return replace(self, x_axis=x, y_axis=y_axis, outputs=outputs)

    def take(self, rows: AnyArray) -> CharacteristicCurve:
        """The curve of the rows chosen by an index or a mask; one output only."""
        return curve_of(self.bands.take(rows), self.x_axis, self.y_axis)

    def constant(self) -> CharacteristicCurve:
        """The curve of a constant band about the same points: what any gain is measured against.

        Its distances below and above are the model's means, so that a gain tells of widths that
        vary, not of bands that are lopsided. (The published conventions of `gain` take a symmetric
        band.) Their scale does not matter, and the operating point
        moves by scaling. With several outputs the band has one width for all.

        Examples
        --------
        >>> curve = characteristic_curve([1.0, 3.0], [0.0, 0.0], [-1.0, -9.0], [1.0, 9.0])
        >>> curve.constant().area().value
        2.0
        """
        outputs = tuple(output.constant() for output in self.outputs)
        return replace(curve_of(self.bands.constant(), self.x_axis, self.y_axis), outputs=outputs)

    def uq360(self) -> ToolkitCurve:
        """The curve as the UQ360 toolkit computes it, for comparison with published numbers."""
        return toolkit_curve(self.bands, self.x_axis, self.y_axis)

    def area(self, convention: Convention = "exact") -> Area:
        """Area under the whole curve; lower is better.

        On bandwidth and miss rate the exact area is c·mean(k), with c the mean half width and k
        the critical scales: the expected critical bandwidth (Navrátil et al., proposition 1). The
        convention ``paper`` loses its largest term, b_N/N. On excess and deficit it is the mean
        deficit over all excesses up to the largest, times the largest (their proposition 2).

        Parameters
        ----------
        convention : {"exact", "paper", "uq360"}
            See `AreaRequest`.

        Returns
        -------
        Area
            In units of y (of y² on the deficit; of standard deviations for ``uq360``).

        Examples
        --------
        >>> import numpy as np
        >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
        >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
        >>> curve.area().value, curve.area("paper").value
        (1.5625, 0.9375)
        """
        return self.area_by(AreaRequest(convention=convention))

    def partial_area(
        self,
        *,
        y_range: Range | None = None,
        x_range: Range | None = None,
        reading: Reading = "under",
        convention: Convention = "exact",
    ) -> Area:
        """Area of a part of the curve; lower is better.

        For a range [a, b] of the y axis, ``under`` is the area under the curve from the x where y
        falls to b, to the x where it falls to a; ``left`` is ∫ x dy over the range, whose `mean`
        is the mean bandwidth needed at the miss rates in the range. They differ by a rectangle:
        left = under + b·x(b) − a·x(a).

        Parameters
        ----------
        y_range, x_range : (float, float)
            One of the two.
        reading : {"under", "left"}
            For a y range.
        convention : {"exact", "paper", "uq360"}
            See `AreaRequest`. Ranges of ``uq360`` are in its own units.

        Returns
        -------
        Area

        Raises
        ------
        InputError
            As `AreaRequest.checked`, or if no range is given.

        Examples
        --------
        >>> import numpy as np
        >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
        >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
        >>> curve.partial_area(y_range=(0, 0.5)).value
        0.46875
        >>> curve.partial_area(y_range=(0, 0.5), reading="left").value
        1.09375
        """
        return self.area_by(self._area_request(y_range, x_range, reading, convention))

    def gain(self, convention: Convention = "exact") -> Gain:
        """How much smaller the area is than that of a constant band, in percent.

        The constant band of the exact convention is as lopsided as the model's mean band, that of
        the others symmetric. For symmetric bands and the exact area it is 100·Cov(z, k)/MAE.
        Higher is better, but a perfectly specified model has an expected gain of 0: judge it
        beside `gain_of_perfect_model`.

        Parameters
        ----------
        convention : {"exact", "paper", "uq360"}
            See `AreaRequest`.

        Returns
        -------
        Gain

        Examples
        --------
        >>> import numpy as np
        >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
        >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
        >>> curve.gain().value, curve.gain("paper").value
        (3.846, -7.143)
        """
        return self.gain_by(AreaRequest(convention=convention))

    def partial_gain(
        self,
        *,
        y_range: Range | None = None,
        x_range: Range | None = None,
        reading: Reading = "under",
    ) -> Gain:
        """Gain by the exact area of a part of the curve, in percent.

        At low miss rates it is positive for bands that follow the true spread of the errors.

        Parameters
        ----------
        y_range, x_range, reading
            As in `partial_area`.

        Returns
        -------
        Gain

        Raises
        ------
        InputError
            As `partial_area`.

        Examples
        --------
        >>> import numpy as np
        >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
        >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
        >>> curve.partial_gain(y_range=(0, 0.5)).value
        37.5
        """
        return self.gain_by(self._area_request(y_range, x_range, reading, "exact"))

    def at(
        self,
        *,
        knob: float | None = None,
        miss_rate: float | None = None,
        bandwidth: float | None = None,
        excess: float | None = None,
        deficit: float | None = None,
        confidence: float = 0.95,
    ) -> OperatingPoint:
        """Where the model stands, or the operating point that meets one wish.

        Parameters
        ----------
        knob : float, optional
            A setting: a scale of at least 0, or a length to add.
        miss_rate, deficit : float, optional
            The smallest setting whose miss rate or deficit is at most this.
        bandwidth, excess : float, optional
            The largest setting whose bandwidth or excess is at most this.
        confidence : float
            Of the guarantee, in (0, 1).

        Returns
        -------
        OperatingPoint
            With what the setting promises for a fresh row.

        Raises
        ------
        InputError
            If several wishes are given, or one leaves its axis.

        Examples
        --------
        >>> import numpy as np
        >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
        >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
        >>> curve.at().miss_rate, curve.at(miss_rate=0.5).knob
        (0.5, 1.0)
        """
        check_fraction(confidence, "confidence")
        wishes = {
            "knob": knob,
            "miss_rate": miss_rate,
            "bandwidth": bandwidth,
            "excess": excess,
            "deficit": deficit,
        }
        wanted_values = {name: value for name, value in wishes.items() if value is not None}
        if len(wanted_values) > 1:
            raise InputError(f"at most one target may be given, got {' and '.join(wanted_values)}")
        wanted, value = next(iter(wanted_values.items()), ("now", math.nan))
        return operating_point(self.bands, self.trace, wanted, value, confidence)

    def cost(
        self,
        *,
        miss_cost: float | None = None,
        coverage: float | None = None,
        cost_weight: float | None = None,
    ) -> Cost:
        """The cheapest point under 2·x + miss_cost·y, and the cost as the model stands.

        Costs are in the units of y, those of width: a bandwidth of 1 is a width of 2.

        Parameters
        ----------
        miss_cost : float, optional
            What a miss costs, in units of width, at least 0; on the deficit, what each unit costs
            by which an interval misses.
        coverage : float, optional
            In its place, a nominal coverage 1 − α, whose own price is taken: the one at which the
            cost is the mean interval score. It is 2/α on bandwidth and deficit, and 2(1 − α)/α on
            excess and deficit, where the cost is the score less twice the mean error and bands
            must be symmetric.
        cost_weight : float, optional
            In their place the paper's c in [0, 1], for C = c·x + (1 − c)·y. It has its optimum
            where ``miss_cost`` = 2(1 − c)/c has, and costs c/2 times as much.

        Returns
        -------
        Cost

        Raises
        ------
        InputError
            Unless one of the three is given, or if one leaves its range.
        UnanswerableError
            If a nominal coverage sets no price on these axes.

        Notes
        -----
        C(k) = c·x + (1 − c)·y is equation 20 of Navrátil et al. 2021. On the miss rate a coverage
        has no price of its own: width + p·1{miss} is least where y's density at both ends is 1/p
        (Casella, Hwang and Robert 1993), so the coverage that a price buys depends on the data.
        Source of the others: Gneiting and Raftery 2007, eq. 43.

        Examples
        --------
        >>> import numpy as np
        >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
        >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
        >>> curve.cost(miss_cost=8).knob
        2.0
        >>> curve.on(x="bandwidth", y_axis="deficit").cost(coverage=0.9).cost_now
        12.5
        """
        prices = {"miss_cost": miss_cost, "coverage": coverage, "cost_weight": cost_weight}
        named = [name for name, value in prices.items() if value is not None]
        if len(named) != 1:
            came = " and ".join(named) or "none"
            raise InputError(f"one of {', '.join(prices)} must be given, got {came}")
        x_weight, y_weight = 2.0, math.nan
        if coverage is not None:
            y_weight = self._own_price(check_fraction(coverage, "coverage"))
        elif miss_cost is not None:
            if not 0.0 <= miss_cost < math.inf:
                raise InputError(f"miss_cost must be finite and at least 0, got {miss_cost!r}")
            y_weight = float(miss_cost)
        elif cost_weight is not None:
            if not 0.0 <= cost_weight <= 1.0:
                raise InputError(f"cost_weight must be in [0, 1], got {cost_weight!r}")
            x_weight, y_weight = float(cost_weight), 1.0 - float(cost_weight)
        index, cost = cheapest(self.x, self.y, x_weight, y_weight)
        now = self.at()
        x_now, y_now = getattr(now, self.x_axis), getattr(now, self.y_axis)
        return Cost(
            x_axis=self.x_axis,
            y_axis=self.y_axis,
            x_weight=x_weight,
            y_weight=y_weight,
            move=self.bands.move,
            knob=float(self.knob[index]),
            cost=cost,
            x=float(self.x[index]),
            y=float(self.y[index]),
            cost_now=x_weight * x_now + y_weight * y_now,
            x_now=x_now,
            y_now=y_now,
        )

    def _own_price(self, coverage: float) -> float:
        """What the interval score makes a unit of the y axis cost."""
        tail = 1.0 - coverage
        if self.y_axis == "miss_rate":
            raise UnanswerableError(
                "a nominal coverage sets no price of a miss, which depends on the density of y at "
                "the ends: give miss_cost, or take the deficit as the y axis"
            )
        if self.x_axis == "bandwidth":
            return 2.0 / tail
        if not np.allclose(self.bands.below, self.bands.above, rtol=1e-9, atol=0.0):
            raise UnanswerableError(
                "a nominal coverage sets no price on the excess where bands are not symmetric: "
                "take the bandwidth as the x axis"
            )
        return 2.0 * coverage / tail

    def vertices_to_draw(self, points: int = 500) -> IntArray:
        """Vertices to draw: at most so many, spread evenly over both axes, ends included.

        The last is the first at which the y axis is at its least: what lies beyond is a level
        line, along which the excess may still bend far away.

        Parameters
        ----------
        points : int
            At least 4.

        Returns
        -------
        ndarray of int, shape (k,)
            Rising indices of vertices, also of `knob`.

        Raises
        ------
        InputError
            If fewer than 4 points are allowed.

        Examples
        --------
        >>> import numpy as np
        >>> y = np.arange(10_000.0)
        >>> len(characteristic_curve(y, 0 * y, -1 + 0 * y, 1 + 0 * y).vertices_to_draw(100)) <= 100
        True
        """
        end = int(np.searchsorted(-self.y, -self.y[-1])) + 1
        return thinned(self.x[:end], self.y[:end], points)

    def drawn(
        self, points: int = 500, *, model: str = "", group: str = "", reference: bool = True
    ) -> Curve:
        """The curve thinned for drawing, exact at the points kept, beside a constant band.

        Parameters
        ----------
        points : int
            At most so many.
        model, group : str
            Whose curve it is.
        reference : bool
            Whether to trace the constant band too, which takes as long as the curve itself.

        Returns
        -------
        Curve
            Its reference is the curve of a constant band at the same x. Its hover values are the
            settings of the knob, named ``k`` for scaling and ``t`` for bias.

        Examples
        --------
        >>> characteristic_curve([1.0, 2.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 1.0]).drawn().y
        array([1. , 0.5, 0. ])
        """
        vertices = self.vertices_to_draw(points)
        x = self.x[vertices]
        area = self.area()
        moved, knob = ("scaled", "k") if self.bands.move == "scale" else ("shifted", "t")
        against = "; reference: a constant band" if reference else ""
        return Curve(
            name="characteristic_curve",
            x=x,
            y=self.y[vertices],
            reference=self.constant()._path().value(x) if reference else None,
            x_label=AXIS_TITLES[self.x_axis],
            y_label=AXIS_TITLES[self.y_axis],
            model=model,
            group=group,
            step=self.y_axis == "miss_rate",
            area=area.value if area.complete else math.nan,
            notes=f"bands {moved}{against}; exact area. {area.reason}".strip(),
            hover={knob: self.knob[vertices]},
        )

    def _path(self) -> Path:
        return path_of(self.trace, self.x_axis, self.y_axis, "exact")

    def _area_request(
        self,
        y_range: Range | None,
        x_range: Range | None,
        reading: Reading,
        convention: Convention,
    ) -> AreaRequest:
        if y_range is None and x_range is None:
            raise InputError("a partial area needs a y_range or an x_range, got neither")
        return AreaRequest(convention=convention, y_range=y_range, x_range=x_range, reading=reading)

    def area_by(self, request: AreaRequest) -> Area:
        """The area that a request describes; `area` and `partial_area` spell one out.

        Raises
        ------
        InputError
            As `AreaRequest.checked`.
        """
        request.checked(self.y_axis)
        units, complete, reason = "y" if self.y_axis == "miss_rate" else "y²", True, ""
        if request.convention == "uq360":
            value = self.uq360().area(request)
            units = "sd of y" if self.y_axis == "miss_rate" else "(sd of y)²"
        else:
            path = path_of(self.trace, self.x_axis, self.y_axis, request.convention)
            value, complete = area_of(path, request)
        if not complete:
            reason = (
                f"a share {self.uncaptured:.3g} of rows is on the side where the band is 0 and is "
                "never captured: the area is infinite, and given up to the last critical point"
            )
        return Area(
            value=value,
            complete=complete,
            reason=reason,
            x_axis=self.x_axis,
            y_axis=self.y_axis,
            request=request,
            units=units,
        )

    def gain_by(self, request: AreaRequest) -> Gain:
        """The gain that a request describes; `gain` and `partial_gain` spell one out."""
        constant = self.flat(lopsided=request.convention == "exact")
        return gain_of(self.area_by(request), constant.area_by(request))

    def flat(self, *, lopsided: bool = True) -> CharacteristicCurve:
        """The curve of a constant band as far as its areas need it."""
        axes = axes_needed(self.x_axis, self.y_axis)
        return curve_of(self.bands.constant(lopsided=lopsided), self.x_axis, self.y_axis, axes)


def characteristic_curve(
    y: npt.ArrayLike,
    point: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    x: XAxis = "bandwidth",
    y_axis: YAxis = "miss_rate",
    move: Move = "scale",
    weights: npt.ArrayLike | None = None,
    weights_kind: WeightsKind = "frequency",
    outside: Outside = "error",
) -> CharacteristicCurve:
    """Trace the uncertainty characteristics curve of a model's intervals.

    The bands about each point, z^l = ŷ − l and z^u = u − ŷ, are scaled by k ≥ 0 (or widened by a
    bias t), and the cost of width is set against the cost of misses at every k. With rows inside
    where y lies in the closed interval, and all means over all rows:

    * bandwidth: mean of ½(u − l);
    * miss rate: share of rows outside;
    * excess: mean of 1{inside}·min(y − l, u − y);
    * deficit: mean of 1{outside}·min(|y − l|, |y − u|).

    Row i is captured at its critical scale, |y − ŷ|/z on the side of its error; 0 for an error of
    0, infinite for a band of 0. Inside and outside are told by the critical scale, never by a
    rounded interval. The curve is exact and takes O(N log N): one sort and running sums.

    Source: Navrátil, Elder, Arnold, Ghosh, Sattigeri, "Assessment of Prediction Intervals Using
    Uncertainty Characteristics Curves", eqs. 1–4 and 6–8.

    Parameters
    ----------
    y : array-like of shape (n,) or (n, p)
        What happened. Several outputs should share their units: each measure is averaged over
        them, and `outputs` holds the curve of each.
    point, lower, upper : array-like, as y
        Point predictions and intervals, lower ≤ point ≤ upper. `bands_from_sd`
        makes them from a mean and a standard deviation.
    x : {"bandwidth", "excess"}
        The x axis.
    y_axis : {"miss_rate", "deficit"}
        The y axis.
    move : {"scale", "bias"}
        How the operating point moves: bands times k, or bands plus t (never below 0).
    weights : array-like of shape (n,), optional
        Weights of rows.
    weights_kind : {"frequency", "importance"}
        A weight of two is a row twice, or a row stands for a share of another population.
    outside : {"error", "recentre"}
        What to do where a point lies outside its own interval: refuse, or take the midpoint.

    Returns
    -------
    CharacteristicCurve

    Raises
    ------
    InputError
        If a number is not finite, shapes differ, an interval is crossed or does not hold its
        point, all bands are 0, or a word is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
    >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
    >>> curve.x
    array([0.   , 0.625, 1.25 , 1.875, 2.5  ])
    >>> curve.y
    array([1.  , 0.75, 0.5 , 0.25, 0.  ])
    """
    checked(x, XAxis, "x")
    checked(y_axis, YAxis, "y_axis")
    bands = checked_bands(
        y,
        point,
        lower,
        upper,
        weights=weights,
        weights_kind=weights_kind,
        outside=outside,
        move=move,
    )
    outputs = (
        tuple(curve_of(bands.output(index), x, y_axis) for index in range(bands.outputs))
        if bands.outputs > 1
        else ()
    )
    return replace(curve_of(bands, x, y_axis), outputs=outputs)


def auucc(
    y: npt.ArrayLike,
    point: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> float:
    """Area under the characteristics curve of bandwidth and miss rate; lower is better.

    Parameters
    ----------
    y, point : array-like of shape (n,)
        What happened, and the forecasts about which intervals are scaled.
    lower, upper : array-like of shape (n,)
        Ends of the intervals, with the forecasts inside.
    weights : array-like of shape (n,), optional
        Frequency weights of the rows.

    Returns
    -------
    float
        In the units of y; infinite where no scale captures some rows.

    Raises
    ------
    InputError
        As `characteristic_curve`.

    Notes
    -----
    The exact area of `CharacteristicCurve.area`. Source: Navrátil et al. 2021, section 2.2.

    Examples
    --------
    >>> auucc([1.0, -2.0, 0.5, 3.0], [0.0] * 4, [-1, -1, -1, -2], [1, 1, 1, 2])
    1.5625
    """
    area = characteristic_curve(y, point, lower, upper, weights=weights).area()
    return area.value if area.complete else math.inf


def curve_of(
    bands: Bands, x_axis: XAxis, y_axis: YAxis, axes: Collection[str] = AXES
) -> CharacteristicCurve:
    """The curve of bands that were checked already; of its points only these axes are known."""
    traced = trace(find_kinks(bands, axes), bands, axes)
    return CharacteristicCurve(x_axis=x_axis, y_axis=y_axis, bands=bands, trace=traced)


AXIS_TITLES = {
    "bandwidth": "mean half-width (bandwidth, units of y)",
    "excess": "excess (units of y)",
    "miss_rate": "miss rate",
    "deficit": "deficit (units of y)",
}


def thinned(x: FloatArray, y: FloatArray, points: int) -> IntArray:
    """Vertices spread evenly over both axes, ends included."""
    check_whole(points, "points", 4)
    if len(x) <= points:
        return np.arange(len(x))
    share = np.linspace(0.0, 1.0, points // 2)
    across = np.searchsorted(x, share * x[-1])
    down = np.searchsorted(-y, share * (y[0] - y[-1]) - y[0])
    return np.unique(np.minimum(np.concatenate([across, down]), len(x) - 1))
