"""One shift, one factor, both, or a power of the spread, for every kind that has a centre."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NoReturn, Self, final

import numpy as np
from scipy import optimize

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError, UnanswerableError
from howsure.methods.conformal import DELTA, RankRule, TooFew, raise_too_large
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Quantiles, Samples
from howsure.recalibration.base import (
    POINT,
    Learnt,
    Method,
    Recalibrator,
    belief_of,
    check_spread,
    effective_rows,
    fit_notes,
    signature,
)
from howsure.recalibration.intervals import ConformalIntervals, IntervalRecalibrator
from howsure.recalibration.moving import (
    FLOOR,
    KINDS,
    Frame,
    Mover,
    floored,
    left_out,
    mass_of,
    power_of,
    weighted_quantile,
)
from howsure.recalibration.scaling import check_rows, spread_factor
from howsure.stats.estimate import standard_error

_POWERS = (0.0, 2.0)
_NOISE = 0.2
"""The share of a log spread's variance that must be more than the noise of few samples."""


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Calibration rows of one kind."""

    calibration: EvalSet
    prediction: Prediction
    frame: Frame
    y: FloatArray
    mass: FloatArray

    @classmethod
    def of(cls, calibration: EvalSet, kind: str) -> Self:
        if kind not in KINDS:
            raise InputError(f"belief must be one of {', '.join(KINDS)}, got {kind!r}")
        prediction = belief_of(calibration, KINDS[kind])
        check_rows(calibration)
        frame = Frame.of(prediction)
        if isinstance(prediction, Distribution):
            check_spread(frame.spread)
        return cls(calibration, prediction, frame, calibration.y, mass_of(calibration))

    @property
    def floor(self) -> float:
        return FLOOR * float(np.average(self.frame.spread, weights=self.mass))

    def error(self, influence: FloatArray) -> float:
        cluster = self.calibration.cluster
        codes = None if cluster is None else cluster.codes
        return standard_error(influence, self.calibration.weights, codes)

    def learnt(self, name: str, value: float, error: float = math.nan) -> Learnt:
        if not math.isfinite(value):
            raise_too_large()
        n = effective_rows(self.calibration)[0]
        return Learnt(name=name, value=value, n=n, standard_error=error)

    def mover(
        self, method: str, parameters: tuple[Learnt, ...], guarantee: str, *notes: str, **own: float
    ) -> Mover:
        return Mover(
            belief=self.prediction.kind,
            method=method,
            parameters=parameters,
            guarantee=f"No finite-sample guarantee: {guarantee}.",
            notes=(*fit_notes(self.calibration), *notes),
            fitted_to=signature(self.prediction),
            given=tuple(self.frame.levels.tolist()),
            **own,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Shift:
    """A shift in one of its two forms: unit times value."""

    name: str
    value: float
    unit: FloatArray
    loss: float

    @property
    def amount(self) -> FloatArray:
        return self.value * self.unit


def _shift(rows: _Rows) -> _Shift:
    """The better of a constant and a share of the spread; equal ones give the constant."""
    tried = [_tried(rows, "shift", np.ones(len(rows.y)))]
    unit = floored(rows.frame.spread, rows.floor)
    if np.ptp(unit) > 1e-9 * float(unit.max()):
        tried.append(_tried(rows, "relative shift", unit))
    if len(tried) > 1 and tried[1].loss < tried[0].loss * (1.0 - 1e-9):
        return tried[1]
    return tried[0]


def _tried(rows: _Rows, name: str, unit: FloatArray) -> _Shift:
    frame, y, mass = rows.frame, rows.y, rows.mass
    value = frame.shift(y, mass, unit)
    if frame.levels.size:
        loss = frame.loss(y, mass, frame.table + (value * unit)[:, None])
    else:
        off = np.abs(y - frame.center - value * unit) / floored(frame.spread, rows.floor)
        loss = float(np.average(off, weights=mass))
    return _Shift(name, value, unit, loss)


def _told_shift(rows: _Rows, shift: _Shift) -> Learnt:
    """The shift with its standard error, where it is a ratio of means."""
    frame = rows.frame
    if frame.levels.size:
        return rows.learnt(shift.name, shift.value)
    precision = 1.0 / np.square(frame.spread) if frame.inflation == 1.0 else 1.0
    top = precision * shift.unit * (rows.y - frame.center - shift.amount)
    bottom = float(np.average(precision * np.square(shift.unit), weights=rows.mass))
    return rows.learnt(shift.name, shift.value, rows.error(top / bottom))


def _told_factor(rows: _Rows, center: FloatArray, stretch: FloatArray) -> Learnt:
    """The factor of stretched spreads about a centre, with its standard error by moments."""
    frame = rows.frame
    if frame.levels.size:
        about = Frame(
            frame.center,
            frame.spread * stretch,
            frame.levels,
            frame.center[:, None] + stretch[:, None] * (frame.table - frame.center[:, None]),
        )
        return rows.learnt("factor", _positive(about.factor(rows.y, rows.mass, center)))
    return spread_factor(*_squares(rows, center, stretch), rows.calibration)


def _squares(rows: _Rows, center: FloatArray, stretch: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Two values a row whose means have the squared factor as ratio."""
    square, own = np.square(rows.y - center), np.square(rows.frame.spread * stretch)
    if rows.frame.inflation == 1.0:
        return square / own, np.ones_like(square)
    return square, rows.frame.inflation * own


def _positive(factor: float) -> float:
    if not factor > 0:
        raise InputError(
            "errors must not be zero in most calibration rows: the scale would be zero"
        )
    return factor


_CENTRED = {
    Distribution.kind: (
        "on the calibration rows errors weighted by their stated precision have mean zero"
    ),
    Samples.kind: "on the calibration rows the mean error of the samples' mean is zero",
}
_PINBALL = "of all such moves this one has the least pinball loss on the calibration rows"


@final
@dataclass(frozen=True, slots=True)
class Shift(Method):
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
    >>> fitted.apply(held_out).beliefs[0].point()
    array([2., 2.])
    """

    belief: str = Distribution.kind

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> Mover:
        """Learn the shift from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, or what they predict is discrete or unbounded.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        rows = _Rows.of(calibration, self.belief)
        shift = _shift(rows)
        words = _CENTRED.get(self.belief, _PINBALL)
        return rows.mover("shift", (_told_shift(rows, shift),), words, floor=rows.floor)


@final
@dataclass(frozen=True, slots=True)
class PointShift(Method):
    """A point forecast plus its mean error on calibration rows.

    Examples
    --------
    >>> held_out = EvalSet.checked([1.0, 3.0], point=[0.0, 0.0])
    >>> PointShift().fit(held_out).apply(held_out).point
    array([2., 2.])
    """

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> PointShifter:
        """Learn the mean error from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, or hold no point forecast.
        """
        check_rows(calibration)
        error = calibration.y - _point(calibration)
        shift = float(np.average(error, weights=mass_of(calibration)))
        codes = None if calibration.cluster is None else calibration.cluster.codes
        learnt = Learnt(
            name="shift",
            value=shift,
            n=effective_rows(calibration)[0],
            standard_error=standard_error(error - shift, calibration.weights, codes),
        )
        return PointShifter(
            belief=POINT,
            method="shift",
            parameters=(learnt,),
            guarantee="No finite-sample guarantee: the mean error is zero on the calibration rows.",
            notes=fit_notes(calibration),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PointShifter(Recalibrator):
    """Fitted `PointShift`: what it mends is the point forecast of the rows themselves."""

    def transform(self, evalset: EvalSet) -> NoReturn:
        """A point forecast is no predictive distribution: use `apply`."""
        raise UnanswerableError(
            "a point forecast that is moved gives no predictive distribution; use apply"
        )

    def apply(self, evalset: EvalSet) -> EvalSet:
        """The same rows with the point forecast moved; nothing else changes."""
        return replace(evalset, point=_point(evalset) + self.parameters[0].value)


def _point(evalset: EvalSet) -> FloatArray:
    if evalset.point is None:
        raise InputError("the rows must hold a point forecast, got none")
    return evalset.point


@final
@dataclass(frozen=True, slots=True)
class QuantileScaling(Method):
    """Quantiles stretched about their median by the one factor of least pinball loss.

    The factor is a weighted quantile of (y − median)/(quantile − median), so it is exact. Where
    no median is given, the middle of the outermost quantiles takes its place.

    Examples
    --------
    >>> held_out = EvalSet.checked([-4.0, 0.0, 4.0], Quantiles([0.1, 0.9], [[-1.0, 1.0]] * 3))
    >>> QuantileScaling().fit(held_out).apply(held_out).beliefs[0].values[0]
    array([-4.,  4.])
    """

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> Mover:
        """Learn the factor from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, none has a spread, or nearly all errors are zero.
        """
        rows = _Rows.of(calibration, Quantiles.kind)
        factor = _told_factor(rows, rows.frame.center, np.ones(len(rows.y)))
        return rows.mover("scale", (factor,), _PINBALL)


@final
@dataclass(frozen=True, slots=True)
class ShiftScale(Method):
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
    >>> mended = ShiftScale().fit(held_out).apply(held_out).beliefs[0]
    >>> mended.point(), mended.sd()
    (array([2., 2.]), array([3., 3.]))
    """

    belief: str = Distribution.kind

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> Mover:
        """Learn shift and factor from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, what they predict is discrete or has no spread, or
            nothing but a shift is wrong with any of them.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        rows = _Rows.of(calibration, self.belief)
        shift = _shift(rows)
        if rows.frame.levels.size:
            value, factor = _least_loss(rows, shift.unit)
            parameters = (rows.learnt(shift.name, value), rows.learnt("factor", factor))
            return rows.mover("shift_scale", parameters, _PINBALL, floor=rows.floor)
        stretched = _told_factor(rows, rows.frame.center + shift.amount, np.ones(len(rows.y)))
        words = f"{_CENTRED[self.belief]}, and their mean square is right"
        parameters = (_told_shift(rows, shift), stretched)
        return rows.mover("shift_scale", parameters, words, floor=rows.floor)


def _least_loss(rows: _Rows, unit: FloatArray) -> tuple[float, float]:
    """The shift and the factor of least pinball loss, which is convex in both."""
    frame, y, mass = rows.frame, rows.y, rows.mass
    weight = np.repeat(mass * unit, len(frame.levels))
    level = float(frame.levels.mean())
    away = frame.table - frame.center[:, None]

    def best(factor: float) -> tuple[float, float]:
        table = frame.center[:, None] + factor * away
        shift = weighted_quantile(((y[:, None] - table) / unit[:, None]).ravel(), weight, level)
        return frame.loss(y, mass, table + (shift * unit)[:, None]), shift

    # The profile over the factor is convex too; moves along one axis at a time could stick in a
    # corner of the loss, but lead near its least value.
    factor = 1.0
    for _ in range(3):
        factor = _positive(frame.factor(y, mass, frame.center + best(factor)[1] * unit))
    low, high = factor / 1.5, factor * 1.5
    while best(low)[0] < best(low * 1.01)[0]:
        low /= 2.0
    while best(high)[0] < best(high / 1.01)[0]:
        high *= 2.0
    found = optimize.minimize_scalar(
        lambda factor: best(factor)[0],
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10 * factor},
    )
    nearest = float(f"{found.x:.8g}")  # so that the order of rows leaves no trace
    return best(nearest)[1], nearest


@final
@dataclass(frozen=True, slots=True)
class ShiftScaledIntervals(Method):
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
        ).fit(_without_point(first.apply(calibration)))
        return IntervalShifter(
            belief=Intervals.kind,
            method="shift_scale",
            parameters=(*first.parameters, *map(_unsure, then.parameters)),
            guarantee=(
                "Approximate: factors are conformal for intervals whose shift was learnt on the "
                "same rows; no finite-sample guarantee."
            ),
            notes=then.notes,
            shift=first,
            scale=then,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalShifter(Recalibrator):
    """Fitted `ShiftScaledIntervals`.

    Attributes
    ----------
    shift : Mover
        What moves the intervals.
    scale : IntervalRecalibrator
        What stretches them then.
    """

    shift: Mover
    scale: IntervalRecalibrator

    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Intervals moved and stretched."""
        return self.scale.transform(_without_point(self.shift.apply(evalset)))


def _unsure(learnt: Learnt) -> Learnt:
    return replace(learnt, expected=math.nan, lower=math.nan, upper=math.nan)


def _without_point(evalset: EvalSet) -> EvalSet:
    return replace(evalset, point=None)


@final
@dataclass(frozen=True, slots=True)
class Widths(Method):
    """The spread s becomes a·s^b, about the same centre.

    With b below 1 widths overreact, and b = 0 makes them one constant. Of distributions a and b
    have the greatest normal likelihood, of quantiles and intervals the least pinball loss. Of
    samples the power that errors follow is divided by the power that each member's distance from
    the others follows, which is 1 for many members: a perfect ensemble gives b = 1. Then a is the
    fair factor of `SpreadScaling`. The ``factor`` that is told holds at the typical spread, the
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
    def fit(self, calibration: EvalSet) -> Mover:
        """Learn factor and power from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two, what they predict is discrete or has no spread,
            every error is zero, or samples are fewer than three a row.
        UnanswerableError
            If a distribution has no mean or standard deviation.
        """
        rows = _Rows.of(calibration, self.belief)
        spread = rows.frame.spread
        some = spread > 0
        if not some.any():
            raise InputError("some rows must have a spread to be stretched, got none")
        typical = math.exp(float(np.average(np.log(spread[some]), weights=rows.mass[some])))
        found, notes = _Power(1.0, np.zeros(len(rows.y))), tuple[str, ...]()
        if np.ptp(spread[some]) <= 1e-9 * typical:
            notes = ("All spreads are equal: their power cannot be learnt, and they are scaled.",)
        elif isinstance(rows.prediction, Samples):
            found, notes = _power_of_samples(rows, rows.prediction)
        elif rows.frame.levels.size:
            found = _Power(_power_of_table(rows, typical), found.influence * np.nan)
        else:
            found = _power(np.square(rows.y - rows.frame.center), spread, rows.mass)
        stretch = power_of(spread, typical, found.value)
        factor = _told_factor(rows, rows.frame.center, stretch)
        error = math.nan if notes else rows.error(found.influence)
        power = rows.learnt("power", found.value, error)
        words = _PINBALL
        if not rows.frame.levels.size:
            factor = replace(factor, standard_error=_factor_error(rows, factor, found, typical))
            words = "on the calibration rows the mean square is right, and so is its trend in sd"
        return rows.mover("widths", (factor, power), words, *notes, typical=typical)


def _factor_error(rows: _Rows, factor: Learnt, power: _Power, typical: float) -> float:
    """The standard error of a factor that follows the errors of the power."""
    spread = rows.frame.spread
    log = np.log(np.where(spread > 0, spread / typical, 1.0))
    top, bottom = _squares(rows, rows.frame.center, power_of(spread, typical, power.value))
    fall = 0.0
    if rows.frame.inflation != 1.0:  # of a distribution the likelihood makes both independent
        fall = -float(np.average(log, weights=rows.mass * bottom))
    means = (float(np.average(each, weights=rows.mass)) for each in (top, bottom))
    parts = [each / mean for each, mean in zip((top, bottom), means, strict=True)]
    own = (parts[0] - parts[1]) / 2.0
    return factor.value * rows.error(own + fall * power.influence)


@dataclass(frozen=True, slots=True, eq=False)
class _Power:
    """A power with its influence values; NaN at an end of its range."""

    value: float
    influence: FloatArray


def _power(square: FloatArray, spread: FloatArray, mass: FloatArray) -> _Power:
    """The b of greatest likelihood of squared errors with variance ∝ spread^2b.

    The profile likelihood over the factor is log-concave: its slope, the mean of log spreads less
    their mean with squared standardised errors as weights, falls in b.
    """
    given = np.log(spread)
    log = given - float(np.average(given, weights=mass))
    some = square > 0
    if not some.any():
        raise InputError(
            "errors must not all be zero in the calibration rows: the scale would be zero"
        )
    height, place = np.log(mass[some] * square[some]), log[some]

    def slope(power: float) -> float:
        load = height - 2.0 * power * place
        own = np.exp(load - load.max())
        return -float(np.sum(own * place) / np.sum(own))

    low, high = _POWERS
    if slope(low) >= 0:
        value = low
    elif slope(high) <= 0:
        value = high
    else:
        value = float(optimize.brentq(slope, low, high, xtol=1e-12))
    standard = square * np.exp(-2.0 * value * log)
    standard /= np.average(standard, weights=mass)
    known = np.nan if value in _POWERS else 1.0
    bend = 2.0 * float(np.average(standard * np.square(log), weights=mass))
    return _Power(value, known * (standard - 1.0) * log / bend)


def _power_of_samples(rows: _Rows, samples: Samples) -> tuple[_Power, tuple[str, ...]]:
    """The power of errors over the power that the members themselves follow.

    Few members state their spread with noise, so that even a perfect ensemble errs as a lower
    power of it. Each member, told by the others, shows how much lower.
    """
    table = samples.sorted_samples
    center, variance = left_out(samples)
    spread = np.maximum(np.sqrt(variance), FLOOR * rows.floor)  # none at all has no log
    mass = np.broadcast_to(rows.mass[:, None], table.shape).ravel()
    flat = spread.ravel()
    own = _power(np.square(table - center).ravel(), flat, mass)
    seen = _power(np.square(rows.y[:, None] - center).ravel(), flat, mass)
    if own.value < _NOISE:
        return _Power(1.0, np.zeros(len(rows.y))), (
            "The samples' spreads differ by little but noise: their power cannot be learnt, and "
            "they are scaled.",
        )
    value = min(seen.value / own.value, _POWERS[1])
    influence = (seen.influence - value * own.influence) / own.value
    known = np.nan if value in _POWERS else 1.0
    return _Power(value, known * influence.reshape(table.shape).mean(axis=1)), ()


def _power_of_table(rows: _Rows, typical: float) -> float:
    """The power of least pinball loss, each with its own best factor."""
    frame, y, mass = rows.frame, rows.y, rows.mass
    center = frame.center[:, None]
    away = frame.table - center

    def loss(power: float) -> float:
        wide = power_of(frame.spread, typical, power)[:, None] * away
        own = Frame(frame.center, frame.spread, frame.levels, center + wide)
        return frame.loss(y, mass, center + own.factor(y, mass) * wide)

    grid = np.linspace(*_POWERS, 9)
    best = int(np.argmin([loss(float(power)) for power in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = optimize.minimize_scalar(
        loss, bounds=(low, high), method="bounded", options={"xatol": 1e-8}
    )
    near = [round(float(found.x), 6), float(grid[best])]  # as above
    return min(near, key=loss)
