"""Areas under the whole characteristics curve, which follow from sums over rows."""

from __future__ import annotations

import math

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.engine.metric import Sums, Value, of_rows
from howsure.stats.estimate import Estimate
from howsure.stats.moments import Joint
from howsure.topics.characteristic.bands import Bands, level, one_width


def of_bands(value: Value, bands: Bands, outside: IntArray) -> Estimate:
    """A statistic of bands at hand, of which some rows have their point outside."""
    return of_rows(
        value, _columns(bands), beside=_recentring_columns(bands, outside), weights=bands.weights
    )


def _columns(bands: Bands) -> tuple[FloatArray, ...]:
    """Half widths, critical scales, and errors above and below the point."""
    half = 0.5 * (bands.below + bands.above)
    return half, bands.critical(), np.maximum(bands.error, 0.0), np.maximum(-bands.error, 0.0)


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
    reason = f"{_outside(outside * sums.mass)}; midpoints stand for these points" if outside else ""
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
        return Estimate(math.nan, reason="an area is infinite, or that of the constant is 0"), None
    ratio = half * scale / constant
    slopes = np.array([scale, half, *(-ratio * prices)])
    return Estimate(100.0 * (1.0 - ratio), details=details), -100.0 / constant * slopes


def _price(error: float, band: float, middle: float) -> float:
    """What a unit of the errors on one side costs a constant band; 0 where there are none."""
    if error == 0.0:
        return 0.0
    return middle / band if band else math.inf


def _outside(count: float) -> str:
    return f"the point lies outside its interval in {count:,.0f} rows"


def _sums(value: Value) -> Sums:
    return Sums(
        lambda view, _: _columns(view.get("bands")),
        value,
        beside=lambda view, _: _recentring_columns(view.get("bands"), view.get("recentred_rows")),
    )


SUMS = {"auucc": _sums(whole_area), "characteristic_gain": _sums(whole_gain)}
