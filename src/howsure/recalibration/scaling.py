"""Scaling of spread by one factor: of distributions, of samples and of quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, final

import numpy as np

from howsure.core.classes import frozen
from howsure.core.formats import number
from howsure.predictions import Distribution, EvalSet, Quantiles, Samples
from howsure.recalibration.base import FittedParameter, RecalibrationMethod
from howsure.recalibration.conformal import ConformalIntervals, IntervalRecalibrator
from howsure.recalibration.info import (
    FRAMED_KINDS,
    SIZE,
    SPREAD_KINDS,
    MethodInfo,
    RecalibrationOptions,
)
from howsure.recalibration.location_scale import PINBALL, AffineLocationScale, CalibrationRows


@frozen
class _Scaling(RecalibrationMethod):
    """Spreads times one factor. Subclasses are final."""

    kind: ClassVar[str]
    words: ClassVar[str]
    """What holds on the calibration rows."""

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> AffineLocationScale:
        """Learn the factor from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, their law is discrete, every error is zero or nearly
            all are, no samples scatter, or no row of quantiles has a spread.
        UnanswerableError
            If a law has no mean or standard deviation, or there is one sample per row.
        """
        rows = CalibrationRows.of(calibration, self.kind)
        return rows.mover(AffineLocationScale, "scale", (rows.factor(),), self.words)


@final
@frozen
class VarianceScaling(_Scaling):
    """Standard deviations times one factor, about the mean: sd × √ZMS.

    ZMS = mean((y − mean)²/sd²) on the calibration rows, so that it is 1 there afterwards. The
    family stays: location and scale, of a mixture those of each part, become
    mean + f (loc − mean) and f·scale.

    Examples
    --------
    >>> held_out = EvalSet.checked([2.0, -2.0], Distribution.normal([0.0, 0.0], [1.0, 1.0]))
    >>> VarianceScaling().fit(held_out).apply(held_out).predictions[0].sd()
    array([2., 2.])
    """

    kind = Distribution.kind
    words = (
        "the mean squared z-score is 1 on the calibration rows, and coverage is correct as far "
        "as the shape of the family is"
    )


@final
@frozen
class SpreadScaling(_Scaling):
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

    kind = Samples.kind
    words = (
        "on the calibration rows the mean squared error of the samples' mean is (1 + 1/m) times "
        "their mean variance, as for m samples of the true distribution"
    )


@final
@frozen
class QuantileScaling(_Scaling):
    """Quantiles stretched about their median by the one factor of least pinball loss.

    The factor is a weighted quantile of (y − median)/(quantile − median), so it is exact. Where
    no median is given, the middle of the outermost quantiles takes its place.

    Examples
    --------
    >>> held_out = EvalSet.checked([-4.0, 0.0, 4.0], Quantiles([0.1, 0.9], [[-1.0, 1.0]] * 3))
    >>> QuantileScaling().fit(held_out).apply(held_out).predictions[0].values[0]
    array([-4.,  4.])
    """

    kind = Quantiles.kind
    words = PINBALL


_SCALINGS = {method.kind: method for method in (VarianceScaling, SpreadScaling, QuantileScaling)}


def _make_scaling(kind: str, options: RecalibrationOptions) -> RecalibrationMethod:
    if kind in _SCALINGS:
        return _SCALINGS[kind]()
    return ConformalIntervals("scale", kind, *options.threshold)


def _describe_factor(learnt: Sequence[FittedParameter]) -> str:
    factor = learnt[0].value
    if len(learnt) > 1 or not math.isfinite(factor):
        return ""
    verb = "widen" if factor > 1 else "narrow"
    return f"{verb} every prediction by a factor of {number(factor, 3)}"


METHODS = (
    MethodInfo(
        name="scale",
        aliases=("ucc",),
        kinds=FRAMED_KINDS,
        make=_make_scaling,
        saves=(AffineLocationScale, IntervalRecalibrator),
        leads=SPREAD_KINDS,
        label="scaled",
        words="scale every prediction",
        says=_describe_factor,
        complexity=1,
        turn=1,
        aims=SIZE,
    ),
)
