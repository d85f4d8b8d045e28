"""Conformal recalibration of quantile tables, of intervals, and of a bare point forecast."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from howsure.conformal import Band, Offset, Scaled, Score, Threshold, calibrate, rows_needed
from howsure.conformal.ranks import DELTA, RankRule, coverage_range, order_statistics
from howsure.conformal.scores import LowerEnd, UpperEnd, uncrossed
from howsure.conformal.thresholds import TooFew, raise_too_large
from howsure.core import formats
from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.text import CountedNote
from howsure.predictions import EvalSet, Intervals, Quantiles
from howsure.recalibration.base import (
    POINT,
    FittedParameter,
    RecalibrationMethod,
    Recalibrator,
    effective_rows,
    fit_notes,
    point_of,
    prediction_of,
    signature,
)
from howsure.recalibration.info import MethodInfo
from howsure.recalibration.levels import hold_below, level_words, plan_levels
from howsure.recalibration.location_scale import crossed_note


@final
@frozen
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
    >>> ConformalQuantiles().fit(held_out).apply(held_out).predictions[0].values[0]
    array([-2.,  2.])
    """

    too_few: TooFew = "infinite"

    @np.errstate(over="ignore", invalid="ignore")
    def fit(self, calibration: EvalSet) -> QuantilesRecalibrator:
        """Fit one shift per level on held-out rows.

        Raises
        ------
        InputError
            If no level can be reached.
        """
        prediction = prediction_of(calibration, Quantiles)
        n, exact = effective_rows(calibration)
        plan = plan_levels(prediction.levels, n, self.too_few, exact=exact)
        counts = calibration.multiplicities
        columns = np.flatnonzero(np.isin(prediction.levels, plan.levels))
        shifts = []
        for column, low, high in zip(columns, plan.low, plan.high, strict=True):
            stated = prediction.values[:, column]
            error = calibration.y - stated
            if not np.isfinite(error).all():
                raise_too_large()
            ends = order_statistics(error, np.array([low, high]), counts)

            def end(rows: IntArray, shift: float, stated: FloatArray = stated) -> FloatArray:
                return stated[rows] + shift

            shifts.append(hold_below(float(ends.mean()), calibration.y, error, end))
        return QuantilesRecalibrator(
            belief=Quantiles.kind,
            method="conformal",
            parameters=plan.learnt("shift", np.array(shifts)),
            guarantee=_quantile_words(n, exact=exact),
            notes=(*fit_notes(calibration), *plan.notes),
            fitted_to=signature(prediction),
        )


@final
@frozen(kw_only=True)
class QuantilesRecalibrator(Recalibrator):
    """Fitted `ConformalQuantiles`."""

    @np.errstate(over="ignore", invalid="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Quantiles, tuple[str, ...]]:
        """The quantiles moved, with a note on rows that had to be sorted."""
        prediction = self.matching_prediction(evalset, (Quantiles,))
        levels = np.array([learnt.nominal for learnt in self.parameters])
        shifts = np.array([learnt.value for learnt in self.parameters])
        columns = np.abs(prediction.levels[:, None] - levels).argmin(axis=0)
        moved = Quantiles(levels, prediction.values[:, columns] + shifts, crossing="sort")
        return moved, crossed_note(moved)


def _quantile_words(n: float, *, exact: bool) -> str:
    if not exact:
        return "Approximate: weighted quantiles of the errors; no finite-sample guarantee."
    return level_words(n, "errors") + "; rows sorted afterwards may differ."


# ---- conformal recalibration of intervals, and of a bare point forecast --------------------------

# The ends that are moved, by the score that moves them, and the number learnt for each.
_SCORES: dict[str, tuple[tuple[Score, str], ...]] = {
    "cqr": ((Offset(), "offset"),),
    "asymmetric": ((LowerEnd(), "lower offset"), (UpperEnd(), "upper offset")),
    "scale": ((Scaled(), "factor"),),
}
# What these are called of a point forecast and of other predictions, also where it was kept.
_ALIASES = {"split": "cqr", "cp": "cqr", "ucc": "scale", "cp_a": "scale", "pac": "scale"}


@frozen
class _Column:
    """Thresholds for one nominal coverage, from the intervals given at another or the same.

    `base` is the coverage of the intervals that are moved, None where it is unknown.
    """

    base: float | None
    coverage: float
    thresholds: tuple[Threshold, ...]

    @property
    def expected(self) -> float:
        """Probability that a new row is covered: both ends' misses are added."""
        return 1.0 - sum(1.0 - threshold.expected_coverage for threshold in self.thresholds)

    def range(self) -> tuple[float, float]:
        """What 95 of 100 calibration sets lead to; NaN where two ends depend on each other."""
        first = self.thresholds[0]
        if len(self.thresholds) > 1 or not first.exact:
            return math.nan, math.nan
        return coverage_range(math.inf if math.isinf(first.value) else first.rank, first.n)


@final
@frozen
class ConformalIntervals(RecalibrationMethod):
    """Intervals moved so that they cover: at each nominal coverage, one conformal threshold.

    Parameters
    ----------
    method : {"cqr", "asymmetric", "scale"}
        ``cqr``: both ends move outward by one offset, the conformal quantile of
        max(lower − y, y − upper); it may be negative (Romano et al. 2019). Of a point forecast,
        an interval of width 0, it is called ``split``. ``asymmetric``: each end moves by its own
        offset, at half the miss rate, so that intervals also shift. ``scale``: the ends are
        stretched by one factor about the point forecast (the midpoint where there is none), the
        operating point of the uncertainty characteristics curve. Aliases are ``split`` and ``cp``
        of the first, ``ucc``, ``cp_a`` and ``pac`` of the last.
    belief : {"intervals", "point"}
        What is recalibrated.
    coverage : float, optional
        Nominal coverage to reach. Intervals reach their own by default; otherwise those given at
        the nearest coverage are moved to reach this one. Needed for a point forecast and for
        intervals of unknown coverage.
    rank : {"conformal", "paper", "pac"}
        See `howsure.conformal.conformal_rank`.
    delta : float
        δ of ``pac``: the share of calibration sets that may fall short of the coverage; where
        each end has its own offset, they share it.
    too_few : {"infinite", "error"}
        What to do where the calibration rows are too few for a finite interval.

    Examples
    --------
    >>> y = np.arange(1.0, 20.0)
    >>> held_out = EvalSet.checked(y, point=np.zeros(19))
    >>> fitted = ConformalIntervals("split", "point", coverage=0.9).fit(held_out)
    >>> fitted.parameters[0].value, fitted.parameters[0].expected
    (18.0, 0.9)
    >>> fitted.apply(held_out).predictions[0].interval(0.9)[1][:2]
    array([18., 18.])
    """

    method: str = "cqr"
    belief: str = Intervals.kind
    coverage: float | None = None
    rank: RankRule = "conformal"
    too_few: TooFew = "infinite"
    delta: float = DELTA

    @np.errstate(over="ignore", invalid="ignore")
    def fit(self, calibration: EvalSet) -> IntervalRecalibrator:
        """Learn the offsets or the factor from held-out rows.

        Raises
        ------
        InputError
            If the coverage is unknown, or it or δ is not in (0, 1), the rows have no such kind,
            a scale has nothing to stretch, or too few rows are refused.
        """
        name = _name(self.method)
        if name not in _SCORES or self.belief not in (Intervals.kind, POINT):
            raise InputError(
                f"method must be among {', '.join(_SCORES)}, and prediction must be 'intervals' or "
                f"'point', got {self.method!r} and {self.belief!r}"
            )
        scores = _SCORES[name]
        centred = name == "scale" and calibration.point is not None
        columns = []
        for base, coverage in self._coverages(calibration):
            band = _band(calibration, self.belief, base, centred=centred)
            if name == "scale":
                _check_stretch(band)
                if (band.lower == band.upper).all():
                    raise InputError("intervals cannot be scaled, because all have width 0")
            thresholds = tuple(
                calibrate(
                    score,
                    calibration.y,
                    band,
                    1.0 - (1.0 - coverage) / len(scores),
                    weights=calibration.weights,
                    rule=self.rank,
                    delta=self.delta / len(scores),
                    too_few=self.too_few,
                )
                for score, _ in scores
            )
            columns.append(_Column(base, coverage, thresholds))
        return IntervalRecalibrator(
            belief=self.belief,
            method="split" if (name, self.belief) == ("cqr", POINT) else name,
            parameters=tuple(
                _learnt(name, column, threshold)
                for column in columns
                for (_, name), threshold in zip(scores, column.thresholds, strict=True)
            ),
            guarantee=" ".join(_words(column, self) for column in columns),
            notes=(*fit_notes(calibration), *_notes(columns, self)),
            columns=tuple(columns),
            moved=self.coverage is not None,
            centred=centred,
        )

    def _coverages(self, calibration: EvalSet) -> list[tuple[float | None, float]]:
        wanted = None if self.coverage is None else check_fraction(self.coverage, "coverage")
        if self.belief == POINT:
            if wanted is None:
                raise InputError("coverage must be given to make intervals from a point forecast")
            return [(None, wanted)]
        stated = prediction_of(calibration, Intervals).coverages
        if wanted is None:
            if not stated:
                raise InputError(
                    "coverage must be given to recalibrate intervals of unknown coverage"
                )
            return [(coverage, coverage) for coverage in stated]
        if not stated:
            return [(None, wanted)]
        return [(min(stated, key=lambda coverage: abs(coverage - wanted)), wanted)]


@final
@frozen(kw_only=True)
class IntervalRecalibrator(Recalibrator):
    """Fitted `ConformalIntervals`."""

    columns: tuple[_Column, ...]  # thresholds for each nominal coverage
    moved: bool  # whether one asked coverage is reached, in place of each interval's own
    centred: bool  # whether scales stretch about the point forecast, in place of the midpoint

    @np.errstate(over="ignore", invalid="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Intervals, tuple[str, ...]]:
        """The intervals recalibrated, with a note on those that shrank to a point."""
        lowers, uppers, coverages, notes = [], [], [], []
        if (
            self.moved
            and self.belief != POINT
            and len(prediction_of(evalset, Intervals).coverages) > 1
        ):
            notes.append("Intervals at coverages other than the given one were omitted.")
        name = _name(self.method)
        for column in self._chosen(evalset):
            band = _band(evalset, self.belief, column.base, centred=self.centred)
            if name == "scale":
                _check_stretch(band)
            lower, upper, collapsed = _region(_SCORES[name], column.thresholds, band)
            if collapsed:
                collapse = (
                    f" at coverage {column.coverage:g} would have a negative width: each is "
                    "replaced by its midpoint."
                )
                notes.append(CountedNote.of(collapsed, "interval", collapse))
            lowers.append(lower)
            uppers.append(upper)
            coverages.append(column.coverage)
        intervals = Intervals(np.stack(lowers, axis=1), np.stack(uppers, axis=1), coverages)
        return intervals, tuple(notes)

    def _chosen(self, evalset: EvalSet) -> list[_Column]:
        if self.belief == POINT or self.moved:
            return list(self.columns)
        chosen = []
        for coverage in prediction_of(evalset, Intervals).coverages or (math.nan,):
            matching = [c for c in self.columns if abs(c.coverage - coverage) <= 1e-9]
            if not matching:
                learnt = ", ".join(f"{c.coverage:g}" for c in self.columns)
                came = "an unknown coverage" if math.isnan(coverage) else f"{coverage:g}"
                raise InputError(
                    f"intervals must have a coverage of the calibration rows ({learnt}), got {came}"
                )
            chosen.append(matching[0])
        return chosen


def _name(method: str) -> str:
    """The one name of what moves intervals."""
    return _ALIASES.get(method, method)


def _band(evalset: EvalSet, prediction: str, base: float | None, *, centred: bool) -> Band:
    if prediction == POINT:
        point = point_of(evalset)
        return Band(point, point, point)
    intervals = prediction_of(evalset, Intervals)
    if (base is None) != (not intervals.coverages):
        raise InputError(
            "the coverage of the intervals must be known in both test and calibration rows, or "
            "in neither"
        )
    lower, upper = (
        (intervals.lower[:, 0], intervals.upper[:, 0]) if base is None else intervals.interval(base)
    )
    if not centred:
        middle = np.full(intervals.n, np.nan)
        finite = np.isfinite(lower) & np.isfinite(upper)
        middle[finite] = lower[finite] + (upper[finite] - lower[finite]) / 2.0
        return Band(lower, upper, middle)
    return Band(lower, upper, point_of(evalset))


def _check_stretch(band: Band) -> None:
    if not (np.isfinite(band.lower) & np.isfinite(band.upper)).all():
        raise InputError("intervals with infinite ends cannot be scaled; use 'cqr'")
    outside = (band.center < band.lower) | (band.center > band.upper)
    if outside.any():
        raise InputError(
            f"scaling needs the point forecast inside its interval; {int(outside.sum())} are "
            f"outside (first at row {int(np.argmax(outside))}); use 'cqr'"
        )


def _region(
    scores: tuple[tuple[Score, str], ...], thresholds: tuple[Threshold, ...], band: Band
) -> tuple[FloatArray, FloatArray, int]:
    n = len(band.lower)
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    for (score, _), threshold in zip(scores, thresholds, strict=True):
        if math.isfinite(threshold.value):
            low, high = score.region(band, threshold.value)
            lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    return uncrossed(lower, upper)


def _learnt(name: str, column: _Column, threshold: Threshold) -> FittedParameter:
    low, high = column.range()
    return FittedParameter(
        name=name,
        value=threshold.value,
        nominal=column.coverage,
        n=threshold.n,
        rank=threshold.rank,
        expected=column.expected,
        lower=low,
        upper=high,
    )


def _words(column: _Column, method: ConformalIntervals) -> str:
    first = column.thresholds[0]
    name = f"{formats.level(column.coverage)} intervals"
    if not first.exact:
        return f"{name}: approximately the nominal coverage; no finite-sample guarantee."
    if all(math.isinf(threshold.value) for threshold in column.thresholds):
        return f"{name}: infinite, so they cover every row."
    text = (
        f"{name}: a new row exchangeable with the {first.n:g} calibration rows is covered with "
        f"probability {column.expected:.5g} (or more with tied scores)"
    )
    low, high = column.range()
    if not math.isnan(low):
        text += (
            f"; for 95 of 100 calibration sets of this size, between {formats.share(low)} and "
            f"{formats.share(high)} of rows are covered"
        )
    if len(column.thresholds) > 1:
        text += ", with equal miss rates on both sides"
    if method.rank == "pac":
        text += (
            f"; at least {formats.level(column.coverage)} of rows are covered for all but "
            f"{100 * method.delta:g} of 100 calibration sets"
        )
    if method.rank == "paper" and column.expected < column.coverage:
        text += "; the rank of the paper gives less than the nominal coverage"
    return text + "."


def _notes(columns: list[_Column], method: ConformalIntervals) -> list[str]:
    notes = []
    for column in columns:
        endless = [t for t in column.thresholds if math.isinf(t.value)]
        if not endless:
            if column.base is not None and abs(column.base - column.coverage) > 1e-9:
                notes.append(
                    f"Intervals at coverage {column.base:g} were adjusted to coverage "
                    f"{column.coverage:g}."
                )
            continue
        target = 1.0 - (1.0 - column.coverage) / len(column.thresholds)
        if endless[0].rank > endless[0].n:
            needed = rows_needed(target, method.rank, method.delta / len(column.thresholds))
            why = f"{needed} calibration rows are needed, got {endless[0].n:g}"
        else:
            why = "too many calibration intervals have width 0 and cannot be scaled"
        notes.append(f"Intervals at coverage {column.coverage:g} are infinite: {why}.")
    return notes


METHODS = (
    MethodInfo(
        name="conformal",
        kinds=(Quantiles.kind,),
        make=lambda _, options: ConformalQuantiles(options.too_few),
        saves=(QuantilesRecalibrator,),
        leads=(Quantiles.kind,),
        label="with conformal quantiles",
    ),
    MethodInfo(
        name="split",
        aliases=("cp",),
        kinds=(POINT,),
        make=lambda kind, options: ConformalIntervals("split", kind, *options.threshold),
        saves=(IntervalRecalibrator,),
        leads=(POINT,),
        gives="intervals",
    ),
)
