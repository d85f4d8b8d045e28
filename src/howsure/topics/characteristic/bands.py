"""Bands about a point prediction, checked at the door, and areas that follow from their sums."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    AnyArray,
    FloatArray,
    IntArray,
    as_matrix,
    as_vector,
    check_interval,
)
from howsure.core.classes import frozen
from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.core.weights import Weights, WeightsKind
from howsure.engine.metric import Sums, Value, of_rows
from howsure.stats.estimate import Estimate
from howsure.stats.moments import Joint

XAxis = Literal["bandwidth", "excess"]
YAxis = Literal["miss_rate", "deficit"]
Move = Literal["scale", "bias"]
Outside = Literal["error", "recentre"]

_DIFFERENCE_ROUNDING = (
    4.0 * np.finfo(np.float64).eps
)  # of a difference, in units of its larger term
# A difference of bands above this share is taken as meant: six digits are written.
_MEANT_DIFFERENCE = 1e-6
_MEAN_ROUNDING = 1e-12  # a difference of mean bands below this share comes from adding up


@frozen(eq=False)
class Bands:
    """Errors and the bands that should contain them, one entry per row and output.

    The interval at the knob's setting is [ŷ − L, ŷ + U]. Scaling: L = k·below, U = k·above, k ≥ 0
    (now: 1). Bias: L = max(below + t, 0), U = max(above + t, 0) (now: 0); all bands are closed at
    t = −(the widest band), where the curve begins.

    Attributes
    ----------
    y, error : ndarray of float, shape (n,)
        What happened, and y − ŷ. Several outputs lie row after row: n = rows × outputs.
    below, above : ndarray of float, shape (n,)
        Distances from ŷ to the two ends of its interval, at least 0.
    weights : ndarray of float, shape (n,), optional
        Multiplicities; None where all are 1.
    weights_kind : {"frequency", "importance"}
        What the weights mean.
    outputs : int
        Number of outputs pooled.
    move : {"scale", "bias"}
        How the operating point moves.
    """

    y: FloatArray
    error: FloatArray
    below: FloatArray
    above: FloatArray
    weights: FloatArray | None = None
    weights_kind: WeightsKind = "frequency"
    outputs: int = 1
    move: Move = "scale"

    def __len__(self) -> int:
        return len(self.error)

    @property
    def total(self) -> float:
        """Sum of the weights; the number of entries where there are none."""
        return float(len(self)) if self.weights is None else float(self.weights.sum())

    @property
    def copies(self) -> FloatArray | None:
        """How often each row stands in the data, by frequency weights; None without any."""
        if self.weights is None or self.weights_kind == "importance":
            return None
        return self.weights[:: self.outputs]

    @property
    def now(self) -> float:
        """The knob's setting that leaves the bands as they are."""
        return 1.0 if self.move == "scale" else 0.0

    @property
    def start(self) -> float:
        """The knob's setting at which every interval is its point."""
        if self.move == "scale":
            return 0.0
        return -max(float(self.below.max()), float(self.above.max()))

    def mean(self, values: FloatArray) -> float:
        """Weighted mean of one number an entry."""
        if self.weights is None:
            return float(values.mean())
        return float(np.sum(self.weights * values)) / self.total

    def sides(self) -> tuple[FloatArray, FloatArray]:
        """Bands on the side of the error, and on the other side; an error of 0 counts as above."""
        up = self.error >= 0
        return np.where(up, self.above, self.below), np.where(up, self.below, self.above)

    def critical(self) -> FloatArray:
        """Smallest setting of the knob that captures each row; infinite where none does."""
        size = np.abs(self.error)
        active = np.where(self.error >= 0, self.above, self.below)
        if self.move == "scale":
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                setting = size / active
        else:
            setting = size - active
        setting[size == 0] = self.start
        return setting

    def mean_band(self) -> float:
        """Bandwidth as predicted: the mean of half the interval's width, in units of y."""
        return self.mean(self.half_width)

    @property
    def half_width(self) -> FloatArray:
        """Half the width of each interval."""
        return 0.5 * (self.below + self.above)

    def constant(self, *, lopsided: bool = True) -> Bands:
        """The same errors with one band for all: as lopsided as the mean band, or symmetric."""
        below, above = (self.mean(self.below), self.mean(self.above)) if lopsided else (1.0, 1.0)
        if level(below, above):
            below = above = 1.0
        ones = np.ones(len(self))
        return replace(self, below=below * ones, above=above * ones, move="scale")

    @property
    def one_width(self) -> bool:
        """Whether all rows have the same width, up to the rounding of intervals' ends."""
        counted = slice(None) if self.weights is None else self.weights > 0
        width = (self.below + self.above)[counted]
        size = (np.abs(self.y - self.error)[counted] + width).max()
        return one_width(float(width.min()), float(width.max()), float(size))

    def take(self, rows: AnyArray) -> Bands:
        """The bands of the entries chosen by an index or a mask; one output only."""
        if self.outputs != 1:
            raise InputError(f"take needs one output, got {self.outputs}")
        return self.entries(rows)

    def output(self, index: int) -> Bands:
        """The bands of one output."""
        return replace(self.entries(slice(index, None, self.outputs)), outputs=1)

    def entries(self, chosen: AnyArray | slice) -> Bands:
        """The bands of some entries, of however many outputs."""
        return replace(
            self,
            y=self.y[chosen],
            error=self.error[chosen],
            below=self.below[chosen],
            above=self.above[chosen],
            weights=None if self.weights is None else self.weights[chosen],
        )


def one_width(least: float, greatest: float, size: float) -> bool:
    """Whether widths are one, up to the rounding of intervals' ends of at most this size."""
    return greatest - least <= min(_DIFFERENCE_ROUNDING * size, _MEANT_DIFFERENCE * greatest)


def level(below: float, above: float) -> bool:
    """Whether mean bands below and above are one, up to adding up."""
    return abs(above - below) <= _MEAN_ROUNDING * (below + above)


def checked_bands(
    y: npt.ArrayLike,
    point: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    weights_kind: WeightsKind = "frequency",
    outside: Outside = "error",
    move: Move = "scale",
) -> Bands:
    """Check observations, point predictions and intervals, and reduce them to bands."""
    checked(outside, Outside, "outside")
    checked(move, Move, "move")
    truth = as_matrix(y, "y")
    rows, outputs = truth.shape
    centre = as_matrix(point, "point", length=rows, columns=outputs)
    low = as_matrix(lower, "lower", length=rows, columns=outputs)
    high = as_matrix(upper, "upper", length=rows, columns=outputs)
    for index in range(outputs):
        check_interval(low[:, index], high[:, index])
    broken = (centre < low) | (centre > high)
    if broken.any():
        if outside == "error":
            row = int(np.argmax(broken.any(axis=1)))
            raise InputError(
                f"point must be inside its interval, got {int(broken.sum())} outside (first at "
                f"row {row}); outside='recentre' takes the midpoint of such an interval instead"
            )
        centre = np.where(broken, low + 0.5 * (high - low), centre)
    with np.errstate(over="ignore"):
        error, below, above = truth - centre, centre - low, high - centre
    for name, gap in (("y - point", error), ("point - lower", below), ("upper - point", above)):
        if not np.isfinite(gap).all():
            raise InputError(f"{name} must be finite, got an overflow")
    below, above = _evened(below, above, np.maximum(np.abs(low), np.abs(high)))
    row_weights = None
    if weights is not None:
        row_weights = Weights.checked(weights, weights_kind, length=rows).values
    counted = slice(None) if row_weights is None else row_weights > 0
    if not below[counted].any() and not above[counted].any():
        raise InputError("upper - lower must be positive in at least one row, got bands of 0 only")
    return Bands(
        truth.flatten(),
        error.ravel(),
        below.ravel(),
        above.ravel(),
        None if row_weights is None else np.repeat(row_weights, outputs),
        weights_kind,
        outputs,
        move,
    )


def _evened(
    below: FloatArray, above: FloatArray, size: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bands made equal where they differ by no more than the rounding of their interval's ends.

    A symmetric interval is stored as two rounded ends. Left alone, the last digits would count as
    one side being wider, and the excess would bend where that side wins: some 1e16 scales away.
    """
    gap = np.abs(above - below)
    even = (
        (gap > 0)
        & (gap <= _DIFFERENCE_ROUNDING * size)
        & (gap <= _MEANT_DIFFERENCE * np.maximum(below, above))
    )
    if not even.any():
        return below, above
    middle = below + 0.5 * (above - below)
    return np.where(even, middle, below), np.where(even, middle, above)


def bands_from_sd(
    mean: npt.ArrayLike, sd: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Point and interval of a distribution known by its mean and standard deviation.

    The interval is mean ± sd, so the curve's scale k counts standard deviations.

    Examples
    --------
    >>> bands_from_sd([10.0], [2.0])
    (array([10.]), array([8.]), array([12.]))
    """
    centre = as_vector(mean, "mean")
    spread = as_vector(sd, "sd", length=len(centre))
    if (spread < 0).any():
        raise InputError(f"sd must not be negative, got {float(spread.min()):g}")
    return centre, centre - spread, centre + spread


# ---- areas under the whole characteristics curve, which follow from sums over rows ---------------


def of_bands(value: Value, bands: Bands, outside: IntArray) -> Estimate:
    """A statistic of bands at hand, of which some rows have their point outside."""
    return of_rows(
        value, _columns(bands), beside=_recentring_columns(bands, outside), weights=bands.weights
    )


def _columns(bands: Bands) -> tuple[FloatArray, ...]:
    """Half widths, critical scales, and errors above and below the point."""
    return (
        bands.half_width,
        bands.critical(),
        np.maximum(bands.error, 0.0),
        np.maximum(-bands.error, 0.0),
    )


def _recentring_columns(bands: Bands, outside: IntArray) -> tuple[FloatArray, ...]:
    width = bands.below + bands.above
    recentred = np.zeros(len(bands))
    recentred[outside] = 1.0
    return bands.below, bands.above, width, np.abs(bands.y - bands.error) + width, recentred


def whole_area(sums: Joint) -> tuple[Estimate, FloatArray | None]:
    """The exact area: mean half width times mean scale."""
    half, scale, outside = (float(sums.mean[place]) for place in (0, 1, 8))
    if not math.isfinite(scale):
        return Estimate(math.inf, reason="no scale captures some rows"), None
    reason = f"{_outside(outside * sums.mass)}; midpoints replace these points" if outside else ""
    estimate = Estimate(half * scale, reason=reason, details={"convention": "exact"})
    return estimate, np.array([scale, half, 0.0, 0.0])


def whole_gain(sums: Joint) -> tuple[Estimate, FloatArray | None]:
    """How much smaller that is than the area of a constant band, in percent."""
    half, scale, up, down, below, above, _, _, outside = (float(mean) for mean in sums.mean)
    if outside:
        reason = f"{_outside(outside * sums.mass)}, where no scale is defined"
        return Estimate(math.nan, reason=reason), None
    details = {"convention": "exact"}
    if one_width(sums.least[6], sums.greatest[6], sums.greatest[7]):
        return Estimate(0.0, reason="every row has the same width", details=details), np.zeros(4)
    if level(below, above):
        below = above = 1.0
    middle = (below + above) / 2.0
    prices = np.array([_price(up, above, middle), _price(down, below, middle)])
    constant = float(np.array([up, down]) @ prices)
    if not (math.isfinite(scale) and math.isfinite(constant) and constant > 0.0):
        return Estimate(
            math.nan, reason="an area is infinite, or the area of the constant band is 0"
        ), None
    ratio = half * scale / constant
    slopes = np.array([scale, half, *(-ratio * prices)])
    return Estimate(100.0 * (1.0 - ratio), details=details), -100.0 / constant * slopes


def _price(error: float, band: float, middle: float) -> float:
    """What a unit of the errors on one side costs a constant band; 0 where there are none."""
    if error == 0.0:
        return 0.0
    return middle / band if band else math.inf


def _outside(count: float) -> str:
    return f"the point is outside its interval in {count:,.0f} rows"


def _sums(value: Value) -> Sums:
    return Sums(
        lambda view, _: _columns(view.get("bands")),
        value,
        beside=lambda view, _: _recentring_columns(view.get("bands"), view.get("recentred_rows")),
    )


SUMS = {"auucc": _sums(whole_area), "characteristic_gain": _sums(whole_gain)}
