"""The four axes along the knob, by one sort of the kinks and running sums, and areas under them.

Bandwidth, excess and deficit are sums over rows of continuous piecewise-linear functions of the
knob, and the miss rate is a sum of steps. Their kinks are few a row, so sorting all kinks once
and summing slopes gives every axis at every kink in O(N log N). Excess and bandwidth are built up
from the left, miss rate and deficit from the right, out of positive terms alone: the tails keep
their digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Literal

import numpy as np

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.engine.metric import check_range
from howsure.topics.characteristic.bands import Bands, XAxis, YAxis

AXES = ("miss_rate", "deficit", "excess", "bandwidth")
# Half a megabyte of 64 bits stays in the cache.
_NUMBERS_AT_ONCE = 1 << 16
_SHARE_OF_LOPSIDED = (
    1e-3  # below this share of the wider band, what rounds away of the narrower matters
)


Adder = Callable[..., FloatArray]
"""A cumulative sum, which may be written where it is read, as `out`."""


@frozen(eq=False)
class Trace:
    """The axes at each vertex of the curve, in order of the knob."""

    # shape (m,): settings of the knob, strictly rising; the first has every interval closed
    knob: FloatArray
    # shape (m,): the axes that were asked for. Miss rates hold from a vertex up to the next; the
    # other axes are linear between vertices.
    axes: Mapping[str, FloatArray]


@frozen(eq=False)
class Kinks:
    """Where the axes bend, sorted along the knob; the first is the start and belongs to no row."""

    position: FloatArray  # shape (m,): settings of the knob, rising
    row: IntArray | None  # shape (m,): the row that each belongs to; None where rows were not kept
    capture: BoolArray  # shape (m,): whether the row is captured here
    # shape (m,): for bandwidth and excess, by how much the slope rises here; for the deficit, by
    # how much the rate of its fall drops here. Per unit of weight. By scaling, the bandwidth has
    # none, and the deficit's are those of the excess at captures.
    bends: Mapping[str, FloatArray]
    # index of the last kink of each group of ties; None where there are no ties
    last: IntArray | None
    never: IntArray  # rows that no setting captures


def running_sum(values: FloatArray, *, out: FloatArray | None = None) -> FloatArray:
    """Cumulative sum, as exact as if it were carried in twice the digits.

    The rounding error of each step from left to right is recovered exactly (Knuth's two-sum), and
    the running sum of those errors corrects the result.
    """
    result = np.empty(len(values)) if out is None else out
    carry = lost_so_far = 0.0
    for begin in range(0, len(values), _NUMBERS_AT_ONCE):
        block = values[begin : begin + _NUMBERS_AT_ONCE]
        total = np.array(block)
        total[0] += carry
        np.cumsum(total, out=total)
        before = np.append(carry, total[:-1])
        added = total - before
        lost = (before - (total - added)) + (block - added)
        lost[0] += lost_so_far
        np.cumsum(lost, out=lost)
        carry, lost_so_far = float(total[-1]), float(lost[-1])
        np.add(total, lost, out=result[begin : begin + _NUMBERS_AT_ONCE])
    return result


def find_kinks(
    bands: Bands,
    axes: Collection[str] = AXES,
    *,
    keep_rows: bool = False,
    one_sided: bool = False,
) -> Kinks:
    """Find and sort the kinks of the axes."""
    keep_rows = keep_rows or bands.weights is not None
    critical = bands.critical()
    never = np.flatnonzero(np.isinf(critical))
    if bands.move == "scale" and not keep_rows and not {"excess", "deficit"}.intersection(axes):
        position = np.append(critical, bands.start)
        position.sort()
        position = position[: len(position) - len(never)]
        capture = np.ones(len(position), dtype=bool)
        capture[0] = False
        return Kinks(position, None, capture, {}, _ends_of_ties(position), never)
    pieces = (_scale_kinks if bands.move == "scale" else _bias_kinks)(
        bands, critical, axes, one_sided
    )
    position = np.concatenate([[bands.start], *(piece.position for piece in pieces)])
    order = np.argsort(position)
    position = position[order]
    columns = [name for name in ("bandwidth", "excess", "deficit") if name in axes]
    if bands.move == "scale":
        columns = [name for name in ("excess", "deficit") if name in axes][:1]
    return Kinks(
        position,
        np.concatenate([[0], *(piece.row for piece in pieces)])[order] if keep_rows else None,
        _sorted_column("capture", False, pieces, order),
        {name: _sorted_column(name, 0.0, pieces, order) for name in columns},
        _ends_of_ties(position),
        never,
    )


def trace(
    kinks: Kinks,
    bands: Bands,
    axes: Collection[str] = AXES,
    *,
    weights: FloatArray | None = None,
) -> Trace:
    """Sum the axes at every kink."""
    add = running_sum if weights is None else np.cumsum
    by_row = bands.weights if weights is None else weights
    total = float(len(bands)) if by_row is None else float(by_row.sum())
    weight = None
    if by_row is not None:
        if kinks.row is None:
            raise InputError("kinks must have kept their rows to be weighted")
        weight = by_row[kinks.row]
    done: dict[str, FloatArray] = {}
    for name in axes:
        if name == "miss_rate":
            axis = _beyond(add, _weighted(kinks.capture, weight))
            axis += _weight_of(kinks.never, by_row)
        elif name == "deficit":
            axis = _deficit(kinks, weight, add)
            axis += _weight_of(kinks.never, by_row, np.abs(bands.error[kinks.never]))
        elif name in kinks.bends:
            axis = _risen(add(_weighted(kinks.bends[name], weight)), kinks.position, add)
        else:
            axis = _mass(bands, by_row) * kinks.position
        axis /= total
        done[name] = axis if kinks.last is None else axis[kinks.last]
    knob = kinks.position if kinks.last is None else kinks.position[kinks.last]
    return Trace(knob, done)


def axes_needed(x_axis: XAxis, y_axis: YAxis) -> tuple[str, ...]:
    """Axes to trace for an area: the curve's two, and the miss rate, which tells its drops."""
    return ("miss_rate", x_axis) if y_axis == "miss_rate" else ("miss_rate", y_axis, x_axis)


@frozen(eq=False)
class _Piece:
    """Kinks of one sort, at most one a row: where they lie and what they bend."""

    row: IntArray
    position: FloatArray
    bends: Mapping[str, FloatArray | float]


def _scale_kinks(
    bands: Bands, critical: FloatArray, axes: Collection[str], one_sided: bool
) -> list[_Piece]:
    """Captures, and the scales at which y is the middle of its interval."""
    active, opposite = bands.sides()
    counted = np.isfinite(critical)
    if bands.weights is not None:
        counted &= bands.weights > 0
    row = np.flatnonzero(counted)
    band = active[row]
    pieces = [_Piece(row, critical[row], {"capture": True, "excess": band, "deficit": band})]
    if "excess" in axes and not one_sided:
        row = np.flatnonzero(counted & (active > opposite))
        narrowing = opposite[row] - active[row]
        with np.errstate(over="ignore"):
            middle = -2.0 * np.abs(bands.error[row]) / narrowing
        reached = np.isfinite(middle)
        if not reached.all():
            row, middle, narrowing = row[reached], middle[reached], narrowing[reached]
        pieces.append(_Piece(row, middle, {"excess": narrowing}))
        lopsided = np.flatnonzero(opposite[row] < _SHARE_OF_LOPSIDED * active[row])
        odd = row[lopsided]
        lost = opposite[odd] - (narrowing[lopsided] + active[odd])
        pieces.append(_Piece(odd, middle[lopsided], {"excess": lost}))
    return pieces


def _bias_kinks(
    bands: Bands, critical: FloatArray, axes: Collection[str], one_sided: bool
) -> list[_Piece]:
    """Captures, the openings of the bands, and the stretch in which the other end is nearer."""
    active, opposite = bands.sides()
    size = np.abs(bands.error)
    counted = np.ones(len(bands), dtype=bool) if bands.weights is None else bands.weights > 0
    late = np.flatnonzero(counted & (size > 0))
    exact = np.flatnonzero(counted & (size == 0))
    everywhere = np.flatnonzero(counted)
    off = size[everywhere] > 0
    far = counted & (active - opposite > 2.0 * size)
    if one_sided:
        far[:] = False
    odd = np.flatnonzero(far)
    return [
        _Piece(late, critical[late], {"capture": True, "excess": 1.0, "deficit": 1.0}),
        _Piece(exact, critical[exact], {"capture": True}),
        _Piece(
            everywhere,
            -active[everywhere],
            {
                "bandwidth": 0.5,
                "excess": np.where(off, 0.0, 1.0),
                "deficit": np.where(off, -1.0, 0.0),
            },
        ),
        _Piece(
            everywhere,
            -opposite[everywhere],
            {"bandwidth": 0.5, "excess": np.where(far[everywhere], 1.0, 0.0)},
        ),
        _Piece(odd, 2.0 * size[odd] - active[odd], {"excess": -1.0}),
    ]


def _sorted_column(
    name: str, absent: float | bool, pieces: list[_Piece], order: IntArray
) -> AnyArray:
    columns = [np.broadcast_to(piece.bends.get(name, absent), len(piece.row)) for piece in pieces]
    return np.concatenate([[absent], *columns])[order]


def _ends_of_ties(position: FloatArray) -> IntArray | None:
    rises = position[1:] != position[:-1]
    return None if rises.all() else np.flatnonzero(np.append(rises, True))


def _deficit(kinks: Kinks, weight: FloatArray | None, add: Adder) -> FloatArray:
    """Deficit of the rows that are captured somewhere: its fall, summed from the right."""
    bend = kinks.bends.get("deficit")
    if bend is None:
        bend = np.where(kinks.capture, kinks.bends["excess"], 0.0)
    falling = _beyond(add, _weighted(bend, weight))
    np.maximum(falling, 0.0, out=falling)
    fall = np.diff(kinks.position)
    fall *= falling[:-1]
    falling[-1] = 0.0
    add(fall[::-1], out=falling[-2::-1])
    return falling


def _risen(slope: FloatArray, position: FloatArray, add: Adder) -> FloatArray:
    """What has been climbed at each kink, by the slope after each; written over the slope."""
    rise = np.diff(position)
    rise *= np.maximum(slope[:-1], 0.0)
    slope[0], slope[1:] = 0.0, rise
    return add(slope, out=slope)


def _mass(bands: Bands, by_row: FloatArray | None) -> float:
    """Weighted sum of the half widths."""
    half_width = bands.below + bands.above
    half_width *= 0.5
    if by_row is not None:
        half_width *= by_row
    return float(half_width.sum())


def _weighted(values: AnyArray, weight: FloatArray | None) -> FloatArray:
    return np.asarray(values, dtype=np.float64) if weight is None else values * weight


def _beyond(add: Adder, values: FloatArray) -> FloatArray:
    """Sum of the values after each index, summed from the right."""
    sums = np.empty(len(values))
    sums[-1] = 0.0
    add(values[:0:-1], out=sums[-2::-1])
    return sums


def _weight_of(
    rows: IntArray, by_row: FloatArray | None, values: FloatArray | float = 1.0
) -> float:
    """Weighted sum of a number over some rows."""
    if by_row is None:
        return float(np.sum(np.broadcast_to(values, len(rows))))
    return float(np.sum(by_row[rows] * values))


# ---- areas under a curve: whole or in part, by convention and by reading, and gains --------------

Convention = Literal["exact", "paper", "uq360"]
Reading = Literal["under", "left"]
Rule = Literal["step", "lower", "linear"]

# A level that a curve meets exactly is met, though sums of n rows lose four digits of sixteen.
_LEVEL_ROUNDING = 1e-12


@frozen(kw_only=True)
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


@frozen(kw_only=True)
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


@frozen(kw_only=True)
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


@frozen(eq=False)
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

    def between(self, start: float, end: float) -> float:
        """Area under the path from one x to another."""
        sums = np.append(0.0, np.cumsum(self._heights() * np.diff(self.x)))
        return self._up_to(end, sums) - self._up_to(start, sums)

    def reach(self, level: float, *, rounding: float = _LEVEL_ROUNDING) -> float:
        """Smallest x at which y is at most a level; infinite where it never is."""
        j = int(np.searchsorted(-self.y, -level * (1.0 + rounding)))
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
    drops = np.append(True, np.diff(trace.axes["miss_rate"]) < 0)
    return Path(x[drops], y[drops], "lower")


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
    start, stop = path.reach(high), path.reach(low)
    complete = math.isfinite(stop)
    end = float(path.x[-1])
    start, stop = min(start, end), min(stop, end)
    low = max(low, float(path.y[-1]))
    under = path.between(start, stop)
    if request.reading == "under":
        return under, complete
    return under + max(high, low) * start - low * stop, complete


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


def resampling_request(request: AreaRequest | None, y_axis: YAxis) -> AreaRequest:
    """Check a request whose area is computed many times."""
    request = (request or AreaRequest()).checked(y_axis)
    if request.convention == "uq360":
        raise InputError("convention must be 'exact' or 'paper' here, got 'uq360'")
    return request
