"""CRUDE: the calibration rows' own z-scores as the standardised law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from howsure.conformal import TooFew, order_statistics, raise_too_large
from howsure.core.arrays import FloatArray, IntArray
from howsure.predictions import Distribution, EvalSet, Samples
from howsure.recalibration.base import (
    SPREAD,
    FittedParameter,
    RecalibrationMethod,
    belief_of,
    check_spread,
    effective_rows,
    fit_notes,
    kind_named,
    signature,
)
from howsure.recalibration.info import SPREAD_KINDS, MethodInfo
from howsure.recalibration.levels import (
    DEFAULT_LEVELS,
    TableRecalibrator,
    hold_below,
    level_words,
    plan_levels,
)


@final
@dataclass(frozen=True, slots=True)
class Crude(RecalibrationMethod):
    """Quantiles mean + c + sd·q, with q an empirical quantile of the calibration z-scores.

    z = (y − mean − c)/sd, and c is the mean calibration error. It keeps the mean and the standard
    deviation of the model and nothing of its shape. Source: Zelikman et al. (2020), "CRUDE:
    Calibrating regression uncertainty distributions empirically".

    Parameters
    ----------
    belief : {"distributions", "samples"}
        What is recalibrated; both become quantiles.
    levels : array-like of shape (k,)
        Rising levels of the quantiles.
    shift : bool
        Whether to learn c; without it c is 0, and the finite-sample guarantee is exact.
    too_few : {"infinite", "error"}
        What to do with levels that the calibration rows cannot reach: leave them out with a
        note, or refuse.

    Examples
    --------
    >>> y = np.array([-4.0, -1.0, 0.0, 1.0, 4.0])
    >>> held_out = EvalSet.checked(y, Distribution.normal(np.zeros(5), np.ones(5)))
    >>> fitted = Crude(levels=[0.2, 0.5, 0.8]).fit(held_out)
    >>> fitted.apply(held_out).beliefs[0].values[0]
    array([-4.,  0.,  4.])
    """

    belief: str = Distribution.kind
    levels: npt.ArrayLike = DEFAULT_LEVELS
    shift: bool = True
    too_few: TooFew = "infinite"

    @np.errstate(over="ignore", invalid="ignore")
    def fit(self, calibration: EvalSet) -> CrudeRecalibrator:
        """Learn the shift and the quantiles of z from held-out rows.

        Raises
        ------
        InputError
            If a standard deviation is zero, or no level can be reached.
        UnanswerableError
            If a prediction has no mean or standard deviation.
        """
        prediction = belief_of(calibration, kind_named(self.belief, SPREAD))
        mean, sd = prediction.point(), prediction.sd()
        check_spread(sd)
        n, exact = effective_rows(calibration)
        plan = plan_levels(self.levels, n, self.too_few, exact=exact and not self.shift)
        y, counts = calibration.y, calibration.multiplicities
        constant = float(np.average(y - mean, weights=counts)) if self.shift else 0.0
        z = (y - mean - constant) / sd
        if not np.isfinite(z).all():
            raise_too_large()
        middle = (
            order_statistics(z, plan.low, counts) + order_statistics(z, plan.high, counts)
        ) / 2

        def end(rows: IntArray, threshold: float) -> FloatArray:
            return mean[rows] + constant + sd[rows] * threshold

        # Each is raised by its own roundings: keep them in order.
        quantiles = np.maximum.accumulate([hold_below(float(at), y, z, end) for at in middle])
        shift = FittedParameter(name="shift", value=constant, n=n)
        return CrudeRecalibrator(
            belief=self.belief,
            method="crude",
            parameters=(shift, *plan.learnt("z quantile", quantiles)),
            guarantee=_words(n, exact=exact, shift=self.shift),
            notes=(*fit_notes(calibration), *plan.notes),
            fitted_to=signature(prediction),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CrudeRecalibrator(TableRecalibrator):
    """Fitted `Crude`; see `TableRecalibrator`."""

    def _quantiles(self, prediction: Distribution | Samples, learnt: FloatArray) -> FloatArray:
        mean = prediction.point() + self.parameters[0].value
        return np.asarray(mean[:, None] + prediction.sd()[:, None] * learnt)


def _words(n: float, *, exact: bool, shift: bool) -> str:
    if exact and not shift:
        return level_words(n, "z-scores") + "."
    return (
        f"Approximate: quantiles of {n:g} calibration z-scores"
        + (", from which their own mean error was taken out" if shift else "")
        + "; no finite-sample guarantee."
    )


METHODS: Final = (
    MethodInfo(
        name="crude",
        kinds=SPREAD_KINDS,
        make=lambda kind, options: Crude(kind, options.levels, too_few=options.too_few),
        saves=(CrudeRecalibrator,),
        gives="quantiles",
        label="by its z-scores",
    ),
)
