"""Isotonic recalibration: the levels of a law replaced by those that calibration rows obey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from howsure.conformal import TooFew, order_statistics
from howsure.core.arrays import FloatArray, IntArray
from howsure.predictions import Distribution, EvalSet, Prediction, Samples
from howsure.recalibration.base import (
    SPREAD,
    RecalibrationMethod,
    belief_of,
    effective_rows,
    fit_notes,
    kind_named,
    signature,
)
from howsure.recalibration.info import SPREAD_KINDS, MethodInfo
from howsure.recalibration.levels import DEFAULT_LEVELS, TableRecalibrator, level_words, plan_levels

_NARROW = 1e-9
"""PIT intervals below this width are points."""


@final
@dataclass(frozen=True, slots=True)
class Isotonic(RecalibrationMethod):
    """The quantile at level p becomes the one at the level that calibration rows show.

    With R the distribution function of the PIT values F_i(y_i) of the calibration rows, the new
    law is R(F(y)), and its quantile at p is F⁻¹(R⁻¹(p)). R rises, so it is its own isotonic fit,
    and quantiles keep their order. For laws with jumps, and for samples, R is the mean of the
    non-randomised PIT, so that a perfect law stays as it is. Source: Kuleshov, Fenner and Ermon
    (2018), "Accurate uncertainties for deep learning using calibrated regression", algorithm 1.

    Parameters
    ----------
    belief : {"distributions", "samples"}
        What is recalibrated; both become quantiles.
    levels : array-like of shape (k,)
        Rising levels of the quantiles.
    too_few : {"infinite", "error"}
        What to do with levels that the calibration rows, or the law itself, cannot reach: leave
        them out with a note, or refuse.

    Examples
    --------
    >>> y = np.array([-4.0, -1.0, 0.0, 1.0, 4.0])
    >>> held_out = EvalSet.checked(y, Distribution.normal(np.zeros(5), np.ones(5)))
    >>> fitted = Isotonic(levels=[0.2, 0.5, 0.8]).fit(held_out)
    >>> fitted.apply(held_out).beliefs[0].values[0]
    array([-4.,  0.,  4.])
    """

    belief: str = Distribution.kind
    levels: npt.ArrayLike = DEFAULT_LEVELS
    too_few: TooFew = "infinite"

    @np.errstate(over="ignore", invalid="ignore")
    def fit(self, calibration: EvalSet) -> IsotonicRecalibrator:
        """Learn the levels from held-out rows.

        Raises
        ------
        InputError
            If no level can be reached.
        """
        prediction = belief_of(calibration, kind_named(self.belief, SPREAD))
        lowest, highest, jumps = _reach(prediction)
        n, exact = effective_rows(calibration)
        plan = plan_levels(self.levels, n, self.too_few, exact=exact and not jumps)
        left, right = prediction.cdf_left(calibration.y), prediction.cdf(calibration.y)
        counts = calibration.multiplicities
        ends = [pit_knots(left, right, ranks, counts) for ranks in (plan.low, plan.high)]
        knots = (ends[0] + ends[1]) / 2.0
        reached = (knots >= lowest) & (knots <= highest)
        plan = plan.keep(
            reached, f"lie beyond what the {self.belief} reach on calibration rows", self.too_few
        )
        return IsotonicRecalibrator(
            belief=self.belief,
            method="isotonic",
            parameters=plan.learnt("level", knots[reached]),
            guarantee=_words(n, exact=exact, jumps=jumps),
            notes=(*fit_notes(calibration), *plan.notes),
            fitted_to=signature(prediction),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IsotonicRecalibrator(TableRecalibrator):
    """Fitted `Isotonic`, or `Shape` of distributions; see `TableRecalibrator`."""

    def _quantiles(self, prediction: Distribution | Samples, learnt: FloatArray) -> FloatArray:
        return np.sort(prediction.quantile(learnt), axis=1)  # SciPy's may fall by a rounding


def pit_knots(
    left: FloatArray, right: FloatArray, ranks: IntArray, counts: FloatArray | None = None
) -> FloatArray:
    """Where the summed PIT function first reaches each rank.

    Source of the non-randomised PIT: Czado, Gneiting and Held (2009), "Predictive model
    assessment for count data", equation 2.
    """
    width = right - left
    wide = width > _NARROW
    if not wide.any():
        return order_statistics(right, ranks, counts)
    weight = np.ones(len(left)) if counts is None else counts
    steep = weight[wide] / width[wide]
    place = np.concatenate([left[wide], right[wide], right[~wide]])
    bend = np.concatenate([steep, -steep, np.zeros(int((~wide).sum()))])
    jump = np.concatenate([np.zeros(2 * len(steep)), weight[~wide]])
    order = np.argsort(place, kind="stable")
    place, bend, jump = place[order], bend[order], jump[order]
    slope = np.r_[0.0, np.cumsum(bend)[:-1]]
    rise = slope * np.diff(place, prepend=place[0])
    after = np.cumsum(rise + jump)
    slack = 1e-9 * (float(weight.sum()) + 1.0)
    at = np.minimum(np.searchsorted(np.maximum.accumulate(after), ranks - slack), len(place) - 1)
    missing = np.maximum(after[at] - jump[at] - ranks, 0.0)
    back = np.divide(missing, slope[at], out=np.zeros(len(at)), where=slope[at] > 0)
    return np.asarray(np.clip(place[at] - back, 0.0, 1.0))


def _reach(prediction: Prediction) -> tuple[float, float, bool]:
    """Lowest and highest level that has a finite quantile, and whether the law has jumps."""
    if isinstance(prediction, Samples):
        size = prediction.size
        return 1.0 / (size + 1) - 1e-12, size / (size + 1) + 1e-12, True
    discrete = isinstance(prediction, Distribution) and prediction.discrete
    return float(np.nextafter(0.0, 1.0)), float(np.nextafter(1.0, 0.0)), discrete


def _words(n: float, *, exact: bool, jumps: bool) -> str:
    if exact and not jumps:
        return level_words(n, "PIT values") + "."
    return (
        f"Approximate: the mean PIT of {n:g} calibration rows is made uniform; no finite-sample "
        "guarantee."
    )


METHODS: Final = (
    MethodInfo(
        name="isotonic",
        kinds=SPREAD_KINDS,
        make=lambda kind, options: Isotonic(kind, options.levels, options.too_few),
        saves=(IsotonicRecalibrator,),
        gives="quantiles",
        label="by its PIT",
    ),
)
