"""How areas under the characteristics curve follow from sums over rows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.metrics.characteristic.bands import Bands, level, one_width
from howsure.metrics.sums import Sums
from howsure.stats.estimate import Estimate
from howsure.stats.moments import Joint

if TYPE_CHECKING:
    from howsure.metrics.view import View


def _bands(view: View, _: float) -> tuple[FloatArray, ...]:
    """Half widths, critical scales, and errors above and below the point."""
    held: Bands = view.get("bands")
    half = 0.5 * (held.below + held.above)
    return half, held.critical(), np.maximum(held.error, 0.0), np.maximum(-held.error, 0.0)


def _beside_bands(view: View, _: float) -> tuple[FloatArray, ...]:
    held: Bands = view.get("bands")
    width = held.below + held.above
    outside = np.zeros(len(held))
    outside[view.get("recentred_rows")] = 1.0
    return held.below, held.above, width, np.abs(held.y - held.error) + width, outside


def _area(held: Joint) -> tuple[Estimate, FloatArray | None]:
    half, scale, outside = (float(held.mean[place]) for place in (0, 1, 8))
    if not math.isfinite(scale):
        return Estimate(math.inf, reason="no scale captures some rows"), None
    told = f"{_outside(outside * held.mass)}; midpoints stand for these points" if outside else ""
    found = Estimate(half * scale, reason=told, details={"convention": "exact"})
    return found, np.array([scale, half, 0.0, 0.0])


def _gain(held: Joint) -> tuple[Estimate, FloatArray | None]:
    half, scale, up, down, below, above, _, _, outside = (float(each) for each in held.mean)
    if outside:
        told = f"{_outside(outside * held.mass)}, where no scale is defined"
        return Estimate(math.nan, reason=told), None
    details = {"convention": "exact"}
    if one_width(held.least[6], held.greatest[6], held.greatest[7]):
        told = "every row has the same width"
        return Estimate(0.0, reason=told, details=details), np.zeros(4)
    if level(below, above):
        below = above = 1.0
    middle = (below + above) / 2.0
    constant = middle * (up / above + down / below)
    if not (math.isfinite(scale) and constant > 0.0):
        return Estimate(math.nan, reason="an area is infinite, or that of the constant is 0"), None
    ratio = half * scale / constant
    slopes = np.array([scale, half, -ratio * middle / above, -ratio * middle / below])
    return Estimate(100.0 * (1.0 - ratio), details=details), -100.0 / constant * slopes


def _outside(count: float) -> str:
    return f"the point lies outside its interval in {count:,.0f} rows"


SUMS = {
    "auucc": Sums(_bands, _area, beside=_beside_bands),
    "characteristic_gain": Sums(_bands, _gain, beside=_beside_bands),
}
