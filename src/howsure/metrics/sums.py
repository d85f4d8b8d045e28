"""How statistics follow from sums over rows, so that the parts of a table can be added up.

A mean needs nothing for that. A statistic of means names row values, and how it follows from their
means; its influence values are slopes times the deviations of these, as in the formula on rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.weights import Weights
from howsure.metrics.calibration.components import REACH
from howsure.metrics.calibration.responses import miss_imbalance
from howsure.stats.estimate import Estimate
from howsure.stats.moments import Joint

if TYPE_CHECKING:
    from howsure.metrics.view import View

Columns = Callable[["View", float], tuple[FloatArray, ...]]
_ROUNDING = 1e-9


def _nothing(view: View, coverage: float) -> tuple[FloatArray, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Sums:
    """How a statistic follows from sums over rows.

    Attributes
    ----------
    columns : callable
        Of a view and a coverage, row values whose moments are kept together.
    value : callable
        Of all means, the estimate without influence values, and its slopes in those of `columns`:
        a row's influence is slopes · (its values − means). None where it has none.
    beside : callable
        Row values of which mean, least and greatest suffice; they follow the others.
    squared : int, optional
        The place of the column whose square is kept too, as the next one. Squares lose their
        digits far from 0, so both are about an origin near the rows.
    """

    columns: Columns
    value: Callable[[Joint], tuple[Estimate, FloatArray | None]]
    beside: Columns = _nothing
    squared: int | None = None

    def rows(self, view: View, coverage: float, origin: float = 0.0) -> tuple[FloatArray, ...]:
        """The columns of some rows, with the squares about an origin."""
        found = list(self.columns(view, coverage))
        if self.squared is not None:
            off = found[self.squared] - origin
            found[self.squared : self.squared + 1] = off, np.square(off)
        return tuple(found)


def _width(view: View, coverage: float) -> FloatArray:
    lower, upper = view.get("ends", coverage)
    return np.asarray(upper - lower)


def _width_by_range(held: Joint) -> tuple[Estimate, None]:
    span = float(held.greatest[1] - held.least[1])
    if span == 0.0:
        return Estimate(math.nan, reason="y is constant, so its spread is 0"), None
    value = float(held.mean[0]) / span
    if not math.isfinite(value):
        return Estimate(value, reason="some intervals are unbounded, or y hardly varies"), None
    return Estimate(value, reason="no interval: the range of y is that of two rows alone"), None


def _width_by_sd(held: Joint) -> tuple[Estimate, FloatArray | None]:
    variance = float(held.second[1, 1]) / held.mass
    if variance == 0.0:
        return Estimate(math.nan, reason="y is constant, so its spread is 0"), None
    spread = math.sqrt(variance)
    value = float(held.mean[0]) / spread
    if not math.isfinite(value):
        return Estimate(value, reason="some intervals are unbounded, or y hardly varies"), None
    tilt = -value / (2.0 * variance)  # of (y − mean)² = y² − 2·mean·y + mean²
    return Estimate(value), np.array([1.0 / spread, -2.0 * held.mean[1] * tilt, tilt])


def _root(held: Joint) -> tuple[Estimate, FloatArray]:
    root = math.sqrt(float(held.mean[0]))
    return Estimate(root), np.array([0.5 / root if root > 0.0 else 0.0])


def _variance_ratio(held: Joint) -> tuple[Estimate, FloatArray | None]:
    error, variance = (float(each) for each in held.mean)
    if variance == 0.0:
        told = "every sd is 0, so the predictions show no spread"
        return Estimate(math.nan, reason=told), None
    ratio = error / variance
    return Estimate(ratio), np.array([1.0, -ratio]) / variance


def _relative_error(held: Joint) -> tuple[Estimate, FloatArray | None]:
    found, slopes = _variance_ratio(held)
    if slopes is None:
        return found, None
    root = math.sqrt(found.value)
    return Estimate(1.0 - root), slopes * (-0.5 / root if root > 0.0 else 0.0)


def _r_squared(held: Joint) -> tuple[Estimate, FloatArray | None]:
    variance = float(held.second[0, 0]) / held.mass
    if variance == 0.0:
        told = "y varies too little for its square to be summed"
        if held.least[0] == held.greatest[0]:
            told = "y is constant, so it has no variance to explain"
        return Estimate(math.nan, reason=told), None
    ratio = float(held.mean[2]) / variance
    return Estimate(1.0 - ratio), np.array([-2.0 * held.mean[0] * ratio, ratio, -1.0]) / variance


def _errors_and_variances(name: str) -> Columns:
    def columns(view: View, _: float) -> tuple[FloatArray, ...]:
        sd = view.get(name)
        return np.square(view.get("y") - view.get("mean")), np.square(sd)

    return columns


def _sides(view: View, coverage: float) -> tuple[FloatArray, ...]:
    lower, upper = view.get("ends", coverage)
    if np.isinf(lower).all() or np.isinf(upper).all():
        raise UnanswerableError("the intervals are one-sided")
    y = view.evalset.y
    return (y < lower).astype(np.float64), (y > upper).astype(np.float64)


def _claimed_sides(view: View, coverage: float) -> tuple[FloatArray, ...]:
    """What rows claim of misses above less below, and the variance of that; none of a range."""
    try:
        view.get("claim", coverage)
        claims = view.get("claims", coverage)
    except UnanswerableError:
        return (np.zeros(view.evalset.n),) * 2
    skew = (claims["above"] - claims["below"])[:, 0]
    return skew, claims["missed"][:, 0] - np.square(skew)


def _imbalance(held: Joint) -> tuple[Estimate, FloatArray]:
    below, above, null, spread = (float(each) for each in held.mean)
    counts = np.round(np.array([below, above, 1.0 - below - above]) * held.mass)
    side = np.arange(3)
    found = miss_imbalance(side == 0, side == 1, weights=Weights(counts))
    bare = replace(found, value=above - below, influence=None)
    if abs(null) > _ROUNDING:
        chance = REACH * math.sqrt(spread / held.mass)
        bare = replace(bare, null=null, null_lower=null - chance, null_upper=null + chance)
    return bare, np.array([-1.0, 1.0])


SUMS: Mapping[str, Sums] = MappingProxyType(
    {
        "normalised_width": Sums(
            lambda view, c: (_width(view, c),),
            _width_by_range,
            beside=lambda view, _: (view.evalset.y,),
        ),
        "relative_width": Sums(
            lambda view, c: (_width(view, c), view.evalset.y), _width_by_sd, squared=1
        ),
        "miss_imbalance": Sums(_sides, _imbalance, beside=_claimed_sides),
        "sharpness": Sums(lambda view, _: (np.square(view.get("sd")),), _root),
        "mean_squared_z": Sums(_errors_and_variances("ensemble_sd"), _variance_ratio),
        "relative_calibration_error": Sums(_errors_and_variances("error_sd"), _relative_error),
        "rmse": Sums(lambda view, _: (np.square(view.get("y") - view.get("point")),), _root),
        "r_squared": Sums(
            lambda view, _: (view.get("y"), np.square(view.get("y") - view.get("point"))),
            _r_squared,
            squared=0,
        ),
    }
)
"""Statistics that sums give exactly, by name, but for those that a topic brings itself."""
