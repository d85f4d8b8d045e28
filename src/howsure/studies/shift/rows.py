"""What intervals do on the rows of one part, at a calibration offset and a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray

NOTHING_ACCEPTED = "no row is accepted, so nothing can be said of the rows accepted"
"""Why a measure of the accepted rows may be missing."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftTest:
    """One part's rows under one calibrated model; everything follows from four numbers a row.

    Attributes
    ----------
    excess : ndarray of float, shape (n,)
        max(L − y, y − U) of the intervals before calibration, in the units of y.
    error : ndarray of float, shape (n,)
        |y − point|, in the units of y.
    base_width : ndarray of float, shape (n,)
        U − L before calibration; negative where the ends cross.
    score : ndarray of float, shape (n,), optional
        κ: higher is more foreign. None where every row is accepted.
    q : float
        The offset Q: calibrated intervals are [L − Q, U + Q].
    threshold : float
        τ: a row is accepted where κ ≤ τ.

    Notes
    -----
    A calibrated interval holds y where the excess is at most Q, which is the same as
    L − Q ≤ y ≤ U + Q but for rounding, so that the row whose excess is Q is always held.
    """

    excess: FloatArray
    error: FloatArray
    base_width: FloatArray
    score: FloatArray | None
    q: float
    threshold: float

    @property
    def n(self) -> int:
        """Number of rows, accepted or not."""
        return len(self.excess)

    @property
    def covered(self) -> BoolArray:
        """Whether the calibrated interval holds y, shape (n,); False where it is not known."""
        return np.asarray(self.excess <= self.q)

    @property
    def accepted(self) -> BoolArray:
        """Whether the score allows a prediction, shape (n,); False where it is not known."""
        if self.score is None:
            return np.ones(self.n, dtype=np.bool_)
        return np.asarray(self.score <= self.threshold)

    @property
    def width_rows(self) -> FloatArray:
        """Width of each calibrated interval, shape (n,)."""
        return self.base_width + 2.0 * self.q

    @property
    def coverage(self) -> float:
        """Share of the accepted rows that are covered; NaN where `reasons` says why."""
        return self._mean("coverage", self.covered, self.accepted)

    @property
    def width(self) -> float:
        """Mean width of the accepted rows, in the units of y."""
        return self._mean("width", self.width_rows, self.accepted)

    @property
    def mae(self) -> float:
        """Mean |y − point| of the accepted rows, in the units of y."""
        return self._mean("mae", self.error, self.accepted)

    @property
    def prediction_rate(self) -> float:
        """Share of the rows that are accepted."""
        return self._mean("prediction_rate", self.accepted, None)

    @property
    def coverage_all(self) -> float:
        """Share of all rows that are covered."""
        return self._mean("coverage_all", self.covered, None)

    @property
    def width_all(self) -> float:
        """Mean width of all rows, in the units of y."""
        return self._mean("width_all", self.width_rows, None)

    @property
    def mae_all(self) -> float:
        """Mean |y − point| of all rows, in the units of y."""
        return self._mean("mae_all", self.error, None)

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why a property above is NaN, by its name."""
        found = {name: self.reason(name) for name in _NEEDS}
        return {name: reason for name, reason in found.items() if reason}

    def reason(self, name: str) -> str:
        """Why the property of this name is NaN; empty where it is not."""
        return next(filter(None, (_WHY[need](self) for need in _NEEDS[name])), "")

    def at(self, *, q: float | None = None, threshold: float | None = None) -> ShiftTest:
        """The same rows at another offset or threshold."""
        return replace(
            self,
            q=self.q if q is None else q,
            threshold=self.threshold if threshold is None else threshold,
        )

    def _mean(self, name: str, values: FloatArray | BoolArray, kept: BoolArray | None) -> float:
        if self.reason(name):
            return math.nan
        return float(np.mean(values if kept is None else values[kept]))


def _lost(values: FloatArray, what: str) -> str:
    """Why values serve nothing, where some are missing."""
    count = int(np.isnan(values).sum())
    return f"{count} of {len(values)} {what} are missing or not finite" if count else ""


def _no_scores(part: ShiftTest) -> str:
    if part.score is None:
        return ""
    lost = _lost(part.score, "scores")
    return lost or ("the threshold is not known" if math.isnan(part.threshold) else "")


def _none_accepted(part: ShiftTest) -> str:
    return "" if part.accepted.any() else NOTHING_ACCEPTED


def _no_ends(part: ShiftTest) -> str:
    lost = _lost(part.excess, "intervals") or _lost(part.base_width, "intervals")
    known = math.isfinite(part.q) or part.q == math.inf
    return lost or ("" if known else "the calibration offset is not known")


def _no_points(part: ShiftTest) -> str:
    return _lost(np.where(np.isinf(part.error), np.nan, part.error), "point forecasts")


_WHY: Final[Mapping[str, Callable[[ShiftTest], str]]] = {
    "scores": _no_scores,
    "accepted": _none_accepted,
    "ends": _no_ends,
    "points": _no_points,
}
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    "prediction_rate": ("scores",),
    "coverage": ("scores", "accepted", "ends"),
    "width": ("scores", "accepted", "ends"),
    "mae": ("scores", "accepted", "points"),
    "coverage_all": ("ends",),
    "width_all": ("ends",),
    "mae_all": ("points",),
}
"""What each property needs, the first that fails being told."""
