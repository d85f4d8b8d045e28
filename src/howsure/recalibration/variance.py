"""Isotonic variance: what squared errors say of the predicted variance, if it only ranks rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import optimize

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.predictions import Distribution, EvalSet, Prediction
from howsure.recalibration.base import (
    Learnt,
    Method,
    Recalibrator,
    belief_of,
    effective_rows,
    fit_notes,
    matching,
    signature,
    spread_kind,
)
from howsure.recalibration.moving import Frame, mass_of, moved
from howsure.recalibration.scaling import check_rows

_LEAST = 30.0
_SHARE = 0.1


@final
@dataclass(frozen=True, slots=True)
class IsotonicVariance(Method):
    """The variance becomes a rising function of itself, learnt from squared errors.

    Squared errors about the mean are regressed on the predicted variance by pool adjacent
    violators: rows of one variance are averaged first, and blocks smaller than 30 rows (or a
    tenth of fewer than 300) are joined to a neighbour. The function is linear between the mean
    variances of the blocks and constant beyond the outermost. The mean stays, and so does the
    family. For m samples squared errors are divided by 1 + 1/m; few samples state their variance
    with noise, so that even those of a perfect ensemble are drawn to their mean. Source
    of the regression: Barlow et al. (1972), "Statistical inference under order restrictions".

    Parameters
    ----------
    belief : {"distributions", "samples"}
        What is stretched; it stays what it is.

    Examples
    --------
    >>> sd = np.repeat([1.0, 2.0], 40)
    >>> y = np.tile([-3.0, 3.0], 40)
    >>> held_out = EvalSet.checked(y, Distribution.normal(np.zeros(80), sd))
    >>> IsotonicVariance().fit(held_out).apply(held_out).beliefs[0].sd()[[0, -1]]
    array([3., 3.])
    """

    belief: str = Distribution.kind

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> VarianceMap:
        """Learn the function from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, what they predict is discrete, or every error is zero.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        prediction = belief_of(calibration, spread_kind(self.belief))
        check_rows(calibration)
        frame = Frame.of(prediction)
        n = effective_rows(calibration)[0]
        mass = mass_of(calibration)
        mass = mass * (n / float(mass.sum()))
        square = np.square(calibration.y - frame.center) / frame.inflation
        given, learnt, rows = _blocks(np.square(frame.spread), square, mass)
        return VarianceMap(
            belief=self.belief,
            method="isotonic_variance",
            parameters=tuple(
                Learnt(name=f"sd near {at:.3g}", value=float(value), n=float(count))
                for at, value, count in zip(np.sqrt(given), np.sqrt(learnt), rows, strict=True)
            ),
            guarantee=(
                "No finite-sample guarantee: in each block of predicted variances the mean "
                "squared error of the calibration rows is the variance that is learnt."
            ),
            notes=fit_notes(calibration),
            fitted_to=signature(prediction),
            given=given,
            learnt=learnt,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VarianceMap(Recalibrator):
    """Fitted `IsotonicVariance`.

    Attributes
    ----------
    fitted_to : str
        What the rows must hold: the family of laws, or the number of samples.
    given, learnt : ndarray of float, shape (k,)
        Predicted variances at the centres of the blocks, rising, and what they become.
    """

    fitted_to: str
    given: FloatArray
    learnt: FloatArray

    @np.errstate(all="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Predictions of the same kind and mean, with a note on rows that cannot be stretched."""
        prediction = matching(evalset, spread_kind(self.belief), self.fitted_to)
        frame = Frame.of(prediction)
        wanted = np.sqrt(np.interp(np.square(frame.spread), self.given, self.learnt))
        some = frame.spread > 0
        factor = np.divide(wanted, frame.spread, out=np.ones_like(wanted), where=some)
        flat = int((~some).sum())
        notes = (f"{flat} rows without a spread stay as they are.",) if flat else ()
        return moved(prediction, frame, np.zeros(prediction.n), factor), notes


def _blocks(
    variance: FloatArray, square: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean variance, mean square and rows of each block, both means rising."""
    places, at = np.unique(variance, return_inverse=True)
    rows = np.bincount(at, mass)
    mean = np.bincount(at, mass * square) / rows
    pooled = optimize.isotonic_regression(mean, weights=rows)
    starts = pooled.blocks[:-1]
    count, place, level = (
        np.add.reduceat(each, starts) for each in (rows, rows * places, rows * mean)
    )
    least = min(_LEAST, _SHARE * float(rows.sum())) * (1.0 - 1e-9)
    first, held, total = [0], 0.0, 0.0
    for block, (own, height) in enumerate(zip(count, level, strict=True)):
        if held >= least and total > 0:  # a block of no error at all has no variance
            first.append(block)
            held, total = 0.0, 0.0
        held, total = held + own, total + height
    if len(first) > 1 and held < least:
        first.pop()
    count, place, level = (np.add.reduceat(each, first) for each in (count, place, level))
    if not level[0] > 0:
        raise InputError(
            "errors must not all be zero in the calibration rows: the variance would be zero"
        )
    return place / count, level / count, count
