"""The four axes along the knob: one sort of the kinks, then running sums.

Bandwidth, excess and deficit are sums over rows of continuous piecewise-linear functions of the
knob, and the miss rate is a sum of steps. Their kinks are few a row, so sorting all kinks once
and summing slopes gives every axis at every kink in O(N log N). Excess and bandwidth are built up
from the left, miss rate and deficit from the right, out of positive terms alone: the tails keep
their digits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.topics.characteristic.bands import Bands, XAxis, YAxis

AXES = ("miss_rate", "deficit", "excess", "bandwidth")
_BLOCK = 1 << 16
_LOPSIDED = 1e-3  # below this share of the wider band, what rounds away of the narrower matters


class Adder(Protocol):
    """A cumulative sum, which may be written where it is read."""

    def __call__(self, values: FloatArray, *, out: FloatArray | None = None) -> FloatArray: ...


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The axes at each vertex of the curve, in order of the knob."""

    # shape (m,): settings of the knob, strictly rising; the first has every interval closed
    knob: FloatArray
    # shape (m,): the axes that were asked for. Miss rates hold from a vertex up to the next; the
    # other axes are linear between vertices.
    axes: Mapping[str, FloatArray]

    __repr__ = brief_repr


@dataclass(frozen=True, slots=True, eq=False)
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
    for begin in range(0, len(values), _BLOCK):
        block = values[begin : begin + _BLOCK]
        total = np.array(block)
        total[0] += carry
        np.cumsum(total, out=total)
        before = np.append(carry, total[:-1])
        part = total - before
        lost = (before - (total - part)) + (block - part)
        lost[0] += lost_so_far
        np.cumsum(lost, out=lost)
        carry, lost_so_far = float(total[-1]), float(lost[-1])
        np.add(total, lost, out=result[begin : begin + _BLOCK])
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
    add = running_sum if weights is None else _plain_sum
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


@dataclass(frozen=True, slots=True, eq=False)
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
        lopsided = np.flatnonzero(opposite[row] < _LOPSIDED * active[row])
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
) -> npt.NDArray[Any]:
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


def _plain_sum(values: FloatArray, *, out: FloatArray | None = None) -> FloatArray:
    return np.cumsum(values, out=out)


def _weighted(values: npt.NDArray[Any], weight: FloatArray | None) -> FloatArray:
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
