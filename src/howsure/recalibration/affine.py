"""One shift, one factor, both, a multiple, or a power of the spread, of whatever has a centre."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NoReturn, Self, final

import numpy as np

from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.thresholds import TooFew
from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.formats import number
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Samples
from howsure.recalibration.base import (
    POINT,
    FittedParameter,
    RecalibrationMethod,
    Recalibrator,
    check_factor,
    check_rows,
    counts,
    effective_rows,
    fit_notes,
    point_of,
    sampling_error,
)
from howsure.recalibration.conformal import ConformalIntervals, IntervalRecalibrator
from howsure.recalibration.info import FRAMED_KINDS, SIDES, SIZE, WIDTHS, MethodInfo
from howsure.recalibration.location_scale import (
    MIN_RELATIVE_SPREAD,
    PINBALL,
    AffineLocationScale,
    CalibrationRows,
    floored,
    left_out,
    power_of,
    weighted_quantile,
)
from howsure.stats.roots import minimum, root

# 0 is one width for all, 2 doubles all contrasts; beyond, a few narrow rows would decide.
_RANGE_OF_POWERS = (0.0, 2.0)
# The share of a log spread's variance that must be more than the noise of few samples: below, the
# power is a quotient of noise. By hand; not tuned.
_MIN_SHARE_OF_SIGNAL = 0.2

_CENTRED = {
    Distribution.kind: (
        "on the calibration rows errors weighted by their predicted precision have mean zero"
    ),
    Samples.kind: "on the calibration rows the mean error of the samples' mean is zero",
}
_CENTRED_MULTIPLE = "on the calibration rows errors are not correlated with the prediction"


@final
@frozen
class Shift(RecalibrationMethod):
    """Predictions moved by one amount: a constant, or the same share of every row's spread.

    The form that leaves the smaller errors in units of the spread is taken, or the smaller
    pinball loss. Of distributions the shift is the mean of errors weighted by 1/sd², of samples
    the mean error, of quantiles and intervals that of the least pinball loss. Nothing is
    stretched.

    Parameters
    ----------
    belief : {"distributions", "samples", "quantiles", "intervals"}
        What is moved; it stays what it is.

    Examples
    --------
    >>> held_out = EvalSet.checked([1.0, 3.0], Distribution.normal([0.0, 0.0], [1.0, 1.0]))
    >>> fitted = Shift().fit(held_out)
    >>> fitted.parameters[0].name, fitted.parameters[0].value
    ('shift', 2.0)
    >>> fitted.apply(held_out).predictions[0].point()
    array([2., 2.])
    """

    belief: str = Distribution.kind

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> AffineLocationScale:
        """Learn the shift from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, or what they predict is discrete or unbounded.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        rows = CalibrationRows.of(calibration, self.belief)
        words = _CENTRED.get(self.belief, PINBALL)
        return rows.mover(AffineLocationScale, "shift", (_shift(rows)[0],), words, floor=rows.floor)


def _shift(rows: CalibrationRows) -> tuple[FittedParameter, FloatArray]:
    """A constant or a share of the spread, whichever is better, and what it is measured in."""
    frame, y, mass = rows.frame, rows.y, rows.mass
    spread = floored(frame.spread, rows.floor)

    def tried(name: str, unit: FloatArray) -> tuple[float, str, float, FloatArray]:
        value = frame.shift(y, mass, unit)
        if frame.levels.size:
            loss = frame.loss(mass, (y - value * unit)[:, None] - frame.table)
        else:
            off = np.abs(y - frame.center - value * unit) / spread
            loss = float(np.average(off, weights=mass))
        return loss, name, value, unit

    best = tried("shift", np.ones_like(y))
    if np.ptp(spread) > 1e-9 * float(spread.max()):
        relative = tried("relative shift", spread)
        if relative[0] < best[0] * (1.0 - 1e-9):
            best = relative
    return rows.shift(*best[1:]), best[-1]


@final
@frozen
class Multiply(RecalibrationMethod):
    """Predictions times one number, spread and all: the remedy for another unit.

    Of distributions it is Σ w y m / s² over Σ w m² / s² with mean m and sd s, of samples and point
    forecasts the same without s, of quantiles and intervals that of the least pinball loss.

    Parameters
    ----------
    belief : {"distributions", "samples", "quantiles", "intervals", "point"}
        What is multiplied; it stays what it is.

    Examples
    --------
    >>> held_out = EvalSet.checked([1000.0, 2000.0], Distribution.normal([1.0, 2.0], [0.1, 0.1]))
    >>> mended = Multiply().fit(held_out).apply(held_out).predictions[0]
    >>> mended.point(), mended.sd()
    (array([1000., 2000.]), array([100., 100.]))
    """

    belief: str = Distribution.kind

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> AffineLocationScale | PointLocation:
        """Learn the number from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, what they predict is discrete, unbounded or 0 in every
            row, or y has the other sign.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        if self.belief == POINT:
            check_rows(calibration)
            center = point_of(calibration)
            parts = calibration.y * center, np.square(center)
            learnt = _multiple(*parts, counts(calibration), calibration)
            words = "the factor minimises the mean squared error on the calibration rows"
            return PointLocation.of(calibration, "multiply", learnt, words)
        rows = CalibrationRows.of(calibration, self.belief)
        frame = rows.frame
        if frame.levels.size:
            learnt = rows.learnt("multiple", _positive(_least_multiple(rows)))
            return rows.mover(AffineLocationScale, "multiply", (learnt,), PINBALL)
        top, bottom = frame.shift_parts(rows.y, frame.center)
        top = top + bottom  # of y, not of its distance from the centre
        learnt = _multiple(top, bottom, rows.mass, calibration)
        return rows.mover(AffineLocationScale, "multiply", (learnt,), _CENTRED_MULTIPLE)


def _multiple(
    top: FloatArray, bottom: FloatArray, mass: FloatArray, evalset: EvalSet
) -> FittedParameter:
    """The ratio of two means, with its standard error."""
    divisor = float(np.average(bottom, weights=mass))
    value = _positive(float(np.average(top, weights=mass)) / divisor if divisor > 0 else math.nan)
    error = sampling_error((top - value * bottom) / divisor, evalset)
    return FittedParameter(
        name="multiple", value=value, n=effective_rows(evalset)[0], standard_error=error
    )


def _least_multiple(rows: CalibrationRows) -> float:
    """The b for which b times a table of quantiles has the least pinball loss, convex in b."""
    table = rows.frame.table
    used = table != 0
    if not used.any():
        return math.nan
    ratio = np.divide(rows.y[:, None], table, out=np.zeros_like(table), where=used)[used]
    level = np.where(table > 0, rows.frame.levels, 1.0 - rows.frame.levels)[used]
    weight = (np.abs(table) * rows.mass[:, None])[used]
    return weighted_quantile(ratio, weight, float(np.average(level, weights=weight)))


def _positive(multiple: float) -> float:
    """A multiple, unless predictions are 0 or go against y."""
    if math.isnan(multiple):
        raise InputError("predictions cannot be multiplied, because all are 0")
    if not multiple > 0:
        raise InputError(f"predictions must increase with y: their factor would be {multiple:g}")
    return check_factor(multiple)


@final
@frozen
class PointShift(RecalibrationMethod):
    """A point forecast plus its mean error on calibration rows.

    Examples
    --------
    >>> held_out = EvalSet.checked([1.0, 3.0], point=[0.0, 0.0])
    >>> PointShift().fit(held_out).apply(held_out).point
    array([2., 2.])
    """

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> PointLocation:
        """Learn the mean error from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, or hold no point forecast.
        """
        check_rows(calibration)
        error = calibration.y - point_of(calibration)
        shift = float(np.average(error, weights=counts(calibration)))
        learnt = FittedParameter(
            name="shift",
            value=shift,
            n=effective_rows(calibration)[0],
            standard_error=sampling_error(error - shift, calibration),
        )
        words = "the mean error is zero on the calibration rows"
        return PointLocation.of(calibration, "shift", learnt, words)


@final
@frozen(kw_only=True)
class PointLocation(Recalibrator):
    """A point forecast that is shifted or multiplied: that of the rows themselves."""

    moves_point: ClassVar[bool] = True

    @classmethod
    def of(cls, calibration: EvalSet, method: str, learnt: FittedParameter, words: str) -> Self:
        """What calibration rows taught."""
        return cls(
            belief=POINT,
            method=method,
            parameters=(learnt,),
            guarantee=f"No finite-sample guarantee: {words}.",
            notes=fit_notes(calibration),
        )

    def transform(self, evalset: EvalSet) -> NoReturn:
        """A point forecast is no predictive distribution: use `apply`."""
        raise UnanswerableError(
            "a shifted point forecast has no predictive distribution; use apply"
        )

    def apply(self, evalset: EvalSet) -> EvalSet:
        """The same rows with the point forecast moved; nothing else changes."""
        learnt = {parameter.name: parameter.value for parameter in self.parameters}
        point = point_of(evalset) * learnt.get("multiple", 1.0) + learnt.get("shift", 0.0)
        return replace(evalset, point=point)


@final
@frozen
class ShiftScale(RecalibrationMethod):
    """Predictions moved as by `Shift`, and stretched about their new centre by one factor.

    Of distributions the factor is √(mean z²), of samples the fair ratio of `SpreadScaling`, both
    after the shift. Of quantiles shift and factor have the least pinball loss together.

    Parameters
    ----------
    belief : {"distributions", "samples", "quantiles"}
        What is moved; it stays what it is.

    Examples
    --------
    >>> held_out = EvalSet.checked([-1.0, 5.0], Distribution.normal([0.0, 0.0], [1.0, 1.0]))
    >>> mended = ShiftScale().fit(held_out).apply(held_out).predictions[0]
    >>> mended.point(), mended.sd()
    (array([2., 2.]), array([3., 3.]))
    """

    belief: str = Distribution.kind

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> AffineLocationScale:
        """Learn shift and factor from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, what they predict is discrete or has no spread, or
            nothing but a shift is wrong with any of them.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        rows = CalibrationRows.of(calibration, self.belief)
        shift, unit = _shift(rows)
        if rows.frame.levels.size:
            value, factor = _least_loss(rows, unit)
            parameters = rows.learnt(shift.name, value), rows.learnt("factor", factor)
            words = PINBALL
        else:
            parameters = shift, rows.factor(rows.frame.center + shift.value * unit)
            words = f"{_CENTRED[self.belief]}, and their mean square is right"
        return rows.mover(AffineLocationScale, "shift_scale", parameters, words, floor=rows.floor)


def _least_loss(rows: CalibrationRows, unit: FloatArray) -> tuple[float, float]:
    """The shift and the factor of least pinball loss, which is convex in both."""
    frame, y, mass = rows.frame, rows.y, rows.mass
    weight = np.repeat(mass * unit, len(frame.levels))
    level = float(frame.levels.mean())
    away, off = frame.table - frame.center[:, None], (y - frame.center)[:, None]

    def best(factor: float) -> tuple[float, float]:
        below = off - factor * away
        shift = weighted_quantile((below / unit[:, None]).ravel(), weight, level)
        below -= (shift * unit)[:, None]
        return frame.loss(mass, below), shift

    # The profile over the factor is convex too; moves along one axis at a time could stick in a
    # corner of the loss, but lead near its least value.
    factor = 1.0
    for _ in range(3):
        factor = check_factor(frame.factor(y, mass, frame.center + best(factor)[1] * unit))
    low, high = factor / 1.5, factor * 1.5
    while best(low)[0] < best(low * 1.01)[0]:
        low /= 2.0
    while best(high)[0] < best(high / 1.01)[0]:
        high *= 2.0
    # Two digits more than are kept below.
    best_factor = minimum(lambda factor: best(factor)[0], low, high, 1e-10 * factor)
    nearest = float(f"{best_factor:.8g}")  # so that the order of rows leaves no trace
    return best(nearest)[1], nearest


@final
@frozen
class ShiftScaledIntervals(RecalibrationMethod):
    """Intervals moved as by `Shift`, then stretched about their middle by conformal factors.

    The factor of each coverage is the conformal quantile of errors over half-widths, as of
    `ConformalIntervals` with ``scale``. The shift has seen the same rows, so that the coverage is
    approximate: no finite-sample guarantee holds.

    Parameters
    ----------
    coverage, rank, too_few, delta
        As in `ConformalIntervals`.

    Examples
    --------
    >>> band = Intervals(np.full(9, -1.0), np.full(9, 1.0), coverage=0.8)
    >>> held_out = EvalSet.checked(np.arange(2.0, 11.0), band)
    >>> fitted = ShiftScaledIntervals().fit(held_out)
    >>> [(learnt.name, learnt.value) for learnt in fitted.parameters]
    [('shift', 6.0), ('factor', 4.0)]
    """

    coverage: float | None = None
    rank: RankRule = "conformal"
    too_few: TooFew = "infinite"
    delta: float = DELTA

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> IntervalShifter:
        """Learn the shift, then the factors, from held-out rows.

        Raises
        ------
        InputError
            As `Shift` and `ConformalIntervals`.
        """
        first = Shift(Intervals.kind).fit(calibration)
        then = ConformalIntervals(
            "scale", Intervals.kind, self.coverage, self.rank, self.too_few, self.delta
        ).fit(replace(first.apply(calibration), point=None))
        unsure = (
            replace(learnt, expected=math.nan, lower=math.nan, upper=math.nan)
            for learnt in then.parameters
        )
        return IntervalShifter(
            belief=Intervals.kind,
            method="shift_scale",
            parameters=(*first.parameters, *unsure),
            guarantee=(
                "Approximate: the conformal factors and the shift of the intervals use the same "
                "rows; no finite-sample guarantee."
            ),
            notes=then.notes,
            shift=first,
            scale=then,
        )


@final
@frozen(kw_only=True)
class IntervalShifter(Recalibrator):
    """Fitted `ShiftScaledIntervals`."""

    shift: AffineLocationScale  # what moves the intervals
    scale: IntervalRecalibrator  # what stretches them then

    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Intervals moved and stretched."""
        return self.scale.transform(replace(self.shift.apply(evalset), point=None))


@final
@frozen
class Widths(RecalibrationMethod):
    """The spread s becomes a·s^b, about the same centre.

    With b below 1 widths overreact, and b = 0 makes them one constant. Of distributions a and b
    have the greatest normal likelihood, of quantiles and intervals the least pinball loss. Of
    samples the power that errors follow is divided by the power that each member's distance from
    the others follows, which is 1 for many members: a perfect ensemble gives b = 1. Then a is the
    fair factor of `SpreadScaling`. The reported ``factor`` is that at the typical spread, the
    geometric mean.

    Parameters
    ----------
    belief : {"distributions", "samples", "quantiles", "intervals"}
        What is stretched; it stays what it is.

    Examples
    --------
    >>> sd = np.array([1.0, 1.0, 100.0, 100.0])
    >>> y = np.array([-1.0, 1.0, -10.0, 10.0])
    >>> fitted = Widths().fit(EvalSet.checked(y, Distribution.normal(np.zeros(4), sd)))
    >>> [(learnt.name, round(learnt.value, 6)) for learnt in fitted.parameters]
    [('factor', 0.316228), ('power', 0.5)]
    """

    belief: str = Distribution.kind

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> AffineLocationScale:
        """Learn factor and power from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, what they predict is discrete or has no spread,
            every error is zero, or samples are fewer than three a row.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        rows = CalibrationRows.of(calibration, self.belief)
        spread = rows.frame.spread
        some = spread > 0
        if not some.any():
            raise InputError("spreads cannot be scaled, because no row has a spread above 0")
        typical = math.exp(float(np.average(np.log(spread[some]), weights=rows.mass[some])))
        fitted, notes = _Power(1.0, np.zeros(len(rows.y))), tuple[str, ...]()
        if np.ptp(spread[some]) <= 1e-9 * typical:
            notes = (
                "All spreads are equal: their power cannot be estimated, so they are only scaled.",
            )
        elif isinstance(rows.prediction, Samples):
            fitted, notes = _power_of_samples(rows, rows.prediction)
        elif rows.frame.levels.size:
            fitted = _Power(_power_of_table(rows, typical), fitted.influence * np.nan)
        else:
            fitted = _power(np.square(rows.y - rows.frame.center), spread, rows.mass)
        stretch = power_of(spread, typical, fitted.value)
        factor = rows.factor(stretch=stretch)
        error = math.nan if notes else sampling_error(fitted.influence, rows.calibration)
        power = rows.learnt("power", fitted.value, error)
        words = PINBALL
        if not rows.frame.levels.size:
            factor = replace(factor, standard_error=_factor_error(rows, factor, fitted, typical))
            words = (
                "on the calibration rows the mean squared z-score is 1 and has no trend in the sd"
            )
        return rows.mover(
            AffineLocationScale, "widths", (factor, power), words, *notes, typical=typical
        )


def _factor_error(
    rows: CalibrationRows, factor: FittedParameter, power: _Power, typical: float
) -> float:
    """The standard error of a factor that follows the errors of the power."""
    spread = rows.frame.spread
    log = np.log(np.where(spread > 0, spread / typical, 1.0))
    stretched = rows.frame.stretched(power_of(spread, typical, power.value))
    top, bottom = stretched.factor_parts(rows.y, rows.frame.center)
    fall = 0.0
    if rows.frame.inflation != 1.0:  # of a distribution the likelihood makes both independent
        fall = -float(np.average(log, weights=rows.mass * bottom))
    means = (float(np.average(terms, weights=rows.mass)) for terms in (top, bottom))
    parts = [terms / mean for terms, mean in zip((top, bottom), means, strict=True)]
    influence = (parts[0] - parts[1]) / 2.0
    return factor.value * sampling_error(influence + fall * power.influence, rows.calibration)


@frozen(eq=False)
class _Power:
    """A power with its influence values; NaN at an end of its range."""

    value: float
    influence: FloatArray


def _power(square: FloatArray, spread: FloatArray, mass: FloatArray) -> _Power:
    """The b of greatest likelihood of squared errors with variance ∝ spread^2b.

    The profile likelihood over the factor is log-concave: its slope, the mean of log spreads less
    their mean with squared standardised errors as weights, falls in b.
    """
    log_spread = np.log(spread)
    log = log_spread - float(np.average(log_spread, weights=mass))
    some = square > 0
    if not some.any():
        raise InputError("all errors in the calibration rows are zero, so the scale would be zero")
    height, log_ratio = np.log(mass[some] * square[some]), log[some]

    low, high = _RANGE_OF_POWERS
    if _slope(low, height, log_ratio) >= 0:
        value = low
    elif _slope(high, height, log_ratio) <= 0:
        value = high
    else:
        value = root(lambda power: _slope(power, height, log_ratio), low, high, 1e-12)
    standard = square * np.exp(-2.0 * value * log)
    standard /= np.average(standard, weights=mass)
    certainty = np.nan if value in _RANGE_OF_POWERS else 1.0
    bend = 2.0 * float(np.average(standard * np.square(log), weights=mass))
    return _Power(value, certainty * (standard - 1.0) * log / bend)


def _slope(power: float, height: FloatArray, log_ratio: FloatArray) -> float:
    """Of the profile likelihood at a power, from logs of squared errors and of spreads."""
    load = height - 2.0 * power * log_ratio
    pull = np.exp(load - load.max())
    return -float(np.sum(pull * log_ratio) / np.sum(pull))


def _power_of_samples(rows: CalibrationRows, samples: Samples) -> tuple[_Power, tuple[str, ...]]:
    """The power of errors over the power that the members themselves follow.

    Few members state their spread with noise, so that even a perfect ensemble errs as a lower
    power of it. Each member, told by the others, shows how much lower.
    """
    table, center, variance = left_out(samples)
    spread = np.maximum(
        np.sqrt(variance), MIN_RELATIVE_SPREAD * rows.floor
    )  # none at all has no log
    mass = np.broadcast_to(rows.mass[:, None], table.shape).ravel()
    flat = spread.ravel()
    member_power = _power(np.square(table - center).ravel(), flat, mass)
    error_power = _power(np.square(rows.y[:, None] - center).ravel(), flat, mass)
    if member_power.value < _MIN_SHARE_OF_SIGNAL:
        return _Power(1.0, np.zeros(len(rows.y))), (
            "The samples' spreads differ by little more than noise: their power cannot be "
            "estimated, so they are only scaled.",
        )
    value = min(error_power.value / member_power.value, _RANGE_OF_POWERS[1])
    influence = (error_power.influence - value * member_power.influence) / member_power.value
    certainty = np.nan if value in _RANGE_OF_POWERS else 1.0
    return _Power(value, certainty * influence.reshape(table.shape).mean(axis=1)), ()


def _power_of_table(rows: CalibrationRows, typical: float) -> float:
    """The power of least pinball loss, each with its own best factor."""
    frame, mass, off = rows.frame, rows.mass, (rows.y - rows.frame.center)[:, None]
    away = frame.table - frame.center[:, None]

    def loss(power: float) -> float:
        stretched = power_of(frame.spread, typical, power)[:, None] * away
        return frame.loss(mass, off - frame.factor_of(off, mass, stretched) * stretched)

    grid = np.linspace(*_RANGE_OF_POWERS, 9)
    best = int(np.argmin([loss(float(power)) for power in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    # Two digits more than are kept below.
    finest = minimum(loss, low, high, 1e-8)
    near = [round(finest, 6), float(grid[best])]  # as above
    return min(near, key=loss)


def _describe_shift(learnt: Sequence[FittedParameter]) -> str:
    way = "up" if learnt[0].value > 0 else "down"
    unit = "" if learnt[0].name == "shift" else " of its spread"
    return f"shift every prediction {way} by {number(abs(learnt[0].value), 3)}{unit}"


METHODS = (
    MethodInfo(
        name="shift",
        kinds=(*FRAMED_KINDS, POINT),
        make=lambda kind, _: PointShift() if kind == POINT else Shift(kind),
        saves=(AffineLocationScale, PointLocation),
        label="shifted",
        words="shift every prediction",
        says=_describe_shift,
        complexity=1,
        aims=SIDES,
    ),
    MethodInfo(
        name="shift_scale",
        kinds=FRAMED_KINDS,
        make=lambda kind, options: (
            ShiftScaledIntervals(*options.threshold) if kind == Intervals.kind else ShiftScale(kind)
        ),
        saves=(AffineLocationScale, IntervalShifter),
        label="shifted and scaled",
        words="shift and scale every prediction",
        complexity=2,
        aims=SIDES | SIZE,
        but=Intervals.kind,
    ),
    MethodInfo(
        name="multiply",
        kinds=(*FRAMED_KINDS, POINT),
        make=lambda kind, _: Multiply(kind),
        saves=(AffineLocationScale, PointLocation),
        label="multiplied",
        words="multiply every prediction by a constant",
        says=lambda learnt: f"multiply every prediction by {number(learnt[0].value, 4)}",
        tried_of="sign",  # what has no natural 0 is in no other unit
        complexity=2,
        turn=1,
        aims=SIDES | SIZE,
    ),
    MethodInfo(
        name="widths",
        kinds=FRAMED_KINDS,
        make=lambda kind, _: Widths(kind),
        saves=(AffineLocationScale,),
        label="with a power of its widths",
        words="fit widths to the size of the errors",
        tried_of="spreads",  # else it is the same as scale
        complexity=2,
        turn=3,
        aims=WIDTHS,
    ),
)
