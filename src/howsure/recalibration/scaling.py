"""Scaling of spread: the standard deviations of distributions, the scatter of samples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.methods.conformal import raise_too_large
from howsure.predictions import Distribution, EvalSet, Samples
from howsure.recalibration.base import (
    Learnt,
    Method,
    belief_of,
    check_spread,
    effective_rows,
    fit_notes,
    signature,
)
from howsure.recalibration.moving import Frame, Mover
from howsure.stats.estimate import mean_statistic, standard_error


@final
@dataclass(frozen=True, slots=True)
class VarianceScaling(Method):
    """Standard deviations times one factor, about the mean: sd × √ZMS.

    ZMS = mean((y − mean)²/sd²) on the calibration rows, so that it is 1 there afterwards. The
    family stays: location and scale, of a mixture those of each part, become
    mean + f (loc − mean) and f·scale.

    Examples
    --------
    >>> held_out = EvalSet.checked([2.0, -2.0], Distribution.normal([0.0, 0.0], [1.0, 1.0]))
    >>> VarianceScaling().fit(held_out).apply(held_out).beliefs[0].sd()
    array([2., 2.])
    """

    @np.errstate(over="ignore", invalid="ignore")
    def fit(self, calibration: EvalSet) -> Mover:
        """Learn the factor from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, their law is discrete, or every error is zero.
        UnanswerableError
            If a law has no mean or standard deviation.
        """
        belief = belief_of(calibration, Distribution)
        check_rows(calibration)
        frame = Frame.of(belief)
        check_spread(frame.spread)
        square = np.square((calibration.y - frame.center) / frame.spread)
        return Mover(
            belief=Distribution.kind,
            method="scale",
            parameters=(spread_factor(square, np.ones_like(square), calibration),),
            guarantee=(
                "No finite-sample guarantee: the mean squared z-score is 1 on the calibration "
                "rows, and coverage is right so far as the family's shape is."
            ),
            notes=fit_notes(calibration),
            fitted_to=signature(belief),
        )


@final
@dataclass(frozen=True, slots=True)
class SpreadScaling(Method):
    """Samples drawn toward or away from their mean by one factor.

    f² = mean (y − mean)² / ((1 + 1/m)·mean s²) with s² the variance of a row's m samples (divisor
    m − 1): if y and the samples come from one law, whatever its shape, numerator and denominator
    have one expectation (Fortin et al. 2014, "Why should ensemble spread match the RMSE of the
    ensemble mean?").

    Examples
    --------
    >>> held_out = EvalSet.checked([3.0, -3.0], Samples([[-1.0, 1.0], [-1.0, 1.0]]))
    >>> SpreadScaling().fit(held_out).parameters[0].value
    1.732
    """

    @np.errstate(over="ignore", invalid="ignore")
    def fit(self, calibration: EvalSet) -> Mover:
        """Learn the factor from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, every error is zero, or no samples scatter.
        UnanswerableError
            If there is one sample a row.
        """
        belief = belief_of(calibration, Samples)
        check_rows(calibration)
        spread = (1.0 + 1.0 / belief.size) * np.square(belief.sd())
        square = np.square(calibration.y - belief.point())
        return Mover(
            belief=Samples.kind,
            method="scale",
            parameters=(spread_factor(square, spread, calibration),),
            guarantee=(
                "No finite-sample guarantee: on the calibration rows the mean squared error of "
                "the samples' mean is (1 + 1/m) times their mean variance, as for m samples of "
                "the true law."
            ),
            notes=fit_notes(calibration),
            fitted_to=signature(belief),
        )


def check_rows(calibration: EvalSet) -> None:
    """Raise `InputError` where rows are fewer than two."""
    n = effective_rows(calibration)[0]
    if n < 2:
        raise InputError(f"calibration must hold at least 2 rows to learn from, got {n:g}")


def spread_factor(square: FloatArray, expected: FloatArray, calibration: EvalSet) -> Learnt:
    """√(mean square / mean expected), with its standard error by the delta method."""
    weights = None if calibration.weights is None else calibration.weights.values
    if not (np.isfinite(square).all() and np.isfinite(expected).all()):
        raise_too_large()
    top, bottom = mean_statistic(square, weights), mean_statistic(expected, weights)
    if bottom.value == 0:
        raise InputError("samples must scatter in some calibration row, got none that do")
    if top.value == 0:
        raise InputError(
            "errors must not all be zero in the calibration rows: the scale would be zero"
        )
    ratio = top.value / bottom.value
    if not 0.0 < ratio < math.inf or top.influence is None or bottom.influence is None:
        raise_too_large()
    cluster = None if calibration.cluster is None else calibration.cluster.codes
    # The influence of a ratio of means.
    influence = (top.influence - ratio * bottom.influence) / bottom.value
    error = standard_error(influence, calibration.weights, cluster)
    factor = math.sqrt(ratio)
    return Learnt(
        name="factor",
        value=factor,
        n=effective_rows(calibration)[0],
        standard_error=error / (2.0 * factor),
    )
