"""Isotonic variance: what squared errors say of the predicted variance, if it only ranks rows."""

from __future__ import annotations

from typing import final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.text import CountedNote
from howsure.predictions import Distribution, EvalSet, Samples
from howsure.recalibration.base import SPREAD, FittedParameter, RecalibrationMethod
from howsure.recalibration.info import SPREAD_KINDS, WIDTHS, MethodInfo
from howsure.recalibration.location_scale import (
    Amounts,
    CalibrationRows,
    LocationScale,
    LocationScaleRecalibrator,
    left_out,
)

# Rows of a block: its variance is off by 26 % (√(2/30)). By hand; not tuned: smaller blocks follow
# noise.
_MIN_ROWS_OF_BLOCK = 30.0
# Ten blocks of fewer than 300 rows, so that there is a curve at all.
_MIN_SHARE_OF_BLOCK = 0.1


@final
@frozen
class IsotonicVariance(RecalibrationMethod):
    """The variance becomes a rising function of itself, learnt from squared errors.

    Squared errors about the mean are regressed on the predicted variance by pool adjacent
    violators: rows of one variance are averaged first, and blocks smaller than 30 rows (or a
    tenth of fewer than 300) are joined to a neighbour. The function is linear between the mean
    variances of the blocks and constant beyond the outermost. The mean stays, and so does the
    family. Source of the regression: Barlow et al. (1972), "Statistical inference under order
    restrictions".

    Few samples state their variance with noise, so that even of a perfect ensemble the regression
    would be too flat. Squared errors of y about the others of each member are therefore compared,
    block by block, with those of the member itself: the ratio is 1 of a perfect ensemble, and
    variances are multiplied by it, linear between blocks and constant beyond.

    Parameters
    ----------
    belief : {"distributions", "samples"}
        What is stretched; it stays what it is.

    Examples
    --------
    >>> sd = np.repeat([1.0, 2.0], 40)
    >>> y = np.tile([-3.0, 3.0], 40)
    >>> held_out = EvalSet.checked(y, Distribution.normal(np.zeros(80), sd))
    >>> IsotonicVariance().fit(held_out).apply(held_out).predictions[0].sd()[[0, -1]]
    array([3., 3.])
    """

    belief: str = Distribution.kind

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> VarianceLocationScale:
        """Learn the function from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, what they predict is discrete, every error is zero, or
            samples are fewer than three a row or never scatter.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        taught = CalibrationRows.of(calibration, self.belief, SPREAD)
        if isinstance(taught.prediction, Samples):
            stated, learnt, rows = _of_samples(taught.prediction, taught.y, taught.mass)
        else:
            square = np.square(taught.y - taught.frame.center)
            stated, learnt, rows, _ = _blocks(
                np.square(taught.frame.spread), square, taught.mass, taught.mass
            )
        return taught.mover(
            VarianceLocationScale,
            "isotonic_variance",
            tuple(
                FittedParameter(name=f"sd near {at:.3g}", value=float(value), n=float(count))
                for at, value, count in zip(np.sqrt(stated), np.sqrt(learnt), rows, strict=True)
            ),
            "in each block of predicted variances the mean squared error of the calibration "
            "rows equals the fitted variance",
            given=stated,
            learnt=learnt,
        )


@final
@frozen(kw_only=True, eq=False)
class VarianceLocationScale(LocationScaleRecalibrator):
    """Fitted `IsotonicVariance`."""

    # shape (k,): predicted variances at the centres of the blocks, rising, and what they become
    given: FloatArray
    learnt: FloatArray

    def amounts(self, evalset: EvalSet, frame: LocationScale) -> Amounts:
        """Factors by the variance, with a note on rows that cannot be stretched."""
        variance, some = np.square(frame.spread), frame.spread > 0
        if self.belief == Samples.kind:
            square = np.interp(variance, self.given, self.learnt / self.given)
        else:
            square = np.interp(variance, self.given, self.learnt)
            square = np.divide(square, variance, out=np.ones_like(square), where=some)
        flat = int((~some).sum())
        notes = (CountedNote.of(flat, "row", " without a spread: unchanged."),) if flat else ()
        return np.zeros(evalset.n), np.sqrt(square), notes


def _of_samples(
    samples: Samples, y: FloatArray, mass: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """As `_blocks`, each member in turn left out and told by the others beside y."""
    members, center, variance = left_out(samples)
    size, members_used = samples.size, members.shape[1]
    rows = np.repeat(mass / members_used, members_used)
    error, noise = (np.square(outcomes - center).ravel() for outcomes in (y[:, None], members))
    center_of_block, square, count, member_square = _blocks(variance.ravel(), error, rows, noise)
    # About m − 1 members errors hold more of the members' own noise than about m.
    ratio = square / member_square
    fair = 1.0 + (ratio - 1.0) * size**2 / (size**2 - 1.0)
    return center_of_block, center_of_block * np.maximum(fair, ratio / size), count


def rising_blocks(means: FloatArray, mass: FloatArray) -> IntArray:
    """Where the blocks of the isotonic regression of means begin, of equal neighbours too.

    All that fall are pooled at once, until none fall: SciPy's loop takes longer to load than this.
    """
    starts = np.arange(len(means))
    total = means * mass
    while (falls := np.diff(total / mass) <= 0).any():
        first = np.flatnonzero(np.append(True, ~falls))
        total, mass = np.add.reduceat(total, first), np.add.reduceat(mass, first)
        starts = starts[first]
    return starts


def _blocks(
    variance: FloatArray, square: FloatArray, mass: FloatArray, companion: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean variance, mean square, rows and mean of something beside it, of each block."""
    places, at = np.unique(variance, return_inverse=True)
    rows = np.bincount(at, mass).astype(np.float64)
    mean = np.bincount(at, mass * square) / rows
    starts = rising_blocks(mean, rows)
    sums = [rows, rows * places, rows * mean, np.bincount(at, mass * companion)]
    sums = [np.add.reduceat(sums_of_rows, starts) for sums_of_rows in sums]
    least = min(_MIN_ROWS_OF_BLOCK, _MIN_SHARE_OF_BLOCK * float(rows.sum())) * (1.0 - 1e-9)
    first, gathered = [0], np.zeros(len(sums))
    for block, block_sums in enumerate(np.transpose(sums)):
        if (
            gathered[0] >= least and (gathered > 0).all()
        ):  # a block of no error at all has no variance
            first.append(block)
            gathered = np.zeros(len(sums))
        gathered = gathered + block_sums
    if len(first) > 1 and not (gathered[0] >= least and (gathered > 0).all()):
        first.pop()
    count, total_variance, level, other = (
        np.add.reduceat(sums_of_rows, first) for sums_of_rows in sums
    )
    if not level[0] > 0:
        raise InputError(
            "all errors in the calibration rows are zero, so the variance would be zero"
        )
    if not (total_variance[0] > 0 and other[0] > 0):
        raise InputError("samples must vary within some calibration row, but none do")
    return total_variance / count, level / count, count, other / count


METHODS = (
    MethodInfo(
        name="isotonic_variance",
        kinds=SPREAD_KINDS,
        make=lambda kind, _: IsotonicVariance(kind),
        saves=(VarianceLocationScale,),
        label="with isotonic variance",
        words="replace each variance by the mean squared error of rows with similar variance",
        tried_of="spreads",  # else it is the same as scale
        complexity=3,
        turn=1,
        aims=WIDTHS,
    ),
)
