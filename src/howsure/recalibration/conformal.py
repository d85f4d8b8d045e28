"""Conformal recalibration of quantile tables: each level moves by its own constant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.conformal import TooFew, order_statistics, raise_too_large
from howsure.core.arrays import FloatArray, IntArray
from howsure.predictions import EvalSet, Quantiles
from howsure.recalibration.base import (
    RecalibrationMethod,
    Recalibrator,
    belief_of,
    effective_rows,
    fit_notes,
    signature,
)
from howsure.recalibration.info import MethodInfo
from howsure.recalibration.levels import hold_below, level_words, plan_levels
from howsure.recalibration.location_scale import crossed_note


@final
@dataclass(frozen=True, slots=True)
class ConformalQuantiles(RecalibrationMethod):
    """Each quantile column plus a constant, the conformal quantile of y − column at its level.

    The rank is (n + 1)p, rounded outward, so that the interval between the levels p and 1 − p
    keeps its coverage. Rows whose quantiles then cross are sorted, the isotonic rearrangement,
    which brings no quantile further from the truth on average (Chernozhukov, Fernández-Val and
    Galichon 2010, "Quantile and probability curves without crossing").

    Parameters
    ----------
    too_few : {"infinite", "error"}
        What to do with levels that the calibration rows cannot reach: leave them out with a
        note, or refuse.

    Examples
    --------
    >>> table = Quantiles([0.25, 0.75], np.tile([-1.0, 1.0], (7, 1)))
    >>> held_out = EvalSet.checked(np.arange(-3.0, 4.0), table)
    >>> ConformalQuantiles().fit(held_out).apply(held_out).beliefs[0].values[0]
    array([-2.,  2.])
    """

    too_few: TooFew = "infinite"

    @np.errstate(over="ignore", invalid="ignore")
    def fit(self, calibration: EvalSet) -> QuantilesRecalibrator:
        """Learn one shift a level from held-out rows.

        Raises
        ------
        InputError
            If no level can be reached.
        """
        prediction = belief_of(calibration, Quantiles)
        n, exact = effective_rows(calibration)
        plan = plan_levels(prediction.levels, n, self.too_few, exact=exact)
        counts = calibration.multiplicities
        columns = np.flatnonzero(np.isin(prediction.levels, plan.levels))
        shifts = []
        for column, low, high in zip(columns, plan.low, plan.high, strict=True):
            given = prediction.values[:, column]
            error = calibration.y - given
            if not np.isfinite(error).all():
                raise_too_large()
            ends = order_statistics(error, np.array([low, high]), counts)

            def end(rows: IntArray, shift: float, given: FloatArray = given) -> FloatArray:
                return given[rows] + shift

            shifts.append(hold_below(float(ends.mean()), calibration.y, error, end))
        return QuantilesRecalibrator(
            belief=Quantiles.kind,
            method="conformal",
            parameters=plan.learnt("shift", np.array(shifts)),
            guarantee=_words(n, exact=exact),
            notes=(*fit_notes(calibration), *plan.notes),
            fitted_to=signature(prediction),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesRecalibrator(Recalibrator):
    """Fitted `ConformalQuantiles`."""

    @np.errstate(over="ignore", invalid="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Quantiles, tuple[str, ...]]:
        """The quantiles moved, with a note on rows that had to be sorted."""
        prediction = self.held(evalset, (Quantiles,))
        kept = np.array([learnt.nominal for learnt in self.parameters])
        shifts = np.array([learnt.value for learnt in self.parameters])
        columns = np.abs(prediction.levels[:, None] - kept).argmin(axis=0)
        moved = Quantiles(kept, prediction.values[:, columns] + shifts, crossing="sort")
        return moved, crossed_note(moved)


def _words(n: float, *, exact: bool) -> str:
    if not exact:
        return "Approximate: weighted quantiles of the errors; no finite-sample guarantee."
    return level_words(n, "errors") + "; rows that are sorted afterwards may differ."


METHODS: Final = (
    MethodInfo(
        name="conformal",
        kinds=(Quantiles.kind,),
        make=lambda _, options: ConformalQuantiles(options.too_few),
        saves=(QuantilesRecalibrator,),
        leads=(Quantiles.kind,),
        label="by conformal quantiles",
    ),
)
