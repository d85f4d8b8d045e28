"""Predictions moved and stretched row by row, and how far calibration rows say that they should be.

Of a distribution or an ensemble, centre and spread are the mean and the sd, and what is learnt are
moments. Of quantiles and intervals only some levels are known, and what is learnt minimises the
pinball loss at these, which is convex in a shift and in a factor: each is a weighted quantile.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar, final

import numpy as np

from howsure.conformal.thresholds import raise_too_large
from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.rng import row_keys, row_uniforms
from howsure.core.text import CountedNote
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Quantiles, Samples
from howsure.predictions.base import tail_levels
from howsure.recalibration.base import (
    CENTRAL,
    FittedParameter,
    Recalibrator,
    check_factor,
    check_rows,
    check_spread,
    counts,
    effective_rows,
    fit_notes,
    kind_named,
    prediction_of,
    sampling_error,
    signature,
)

FRAMED: tuple[type[Prediction], ...] = (*CENTRAL, Intervals)
"""Kinds that have a frame."""
PINBALL = "the correction minimises the pinball loss on the calibration rows"

# A row that is stated ten times surer than the mean would decide a relative shift alone. Not
# tuned.
MIN_RELATIVE_SPREAD = 0.1
"""Of the mean spread: the least that a relative shift is measured in."""


@frozen(eq=False)
class LocationScale:
    """Where predictions lie, and what y shows of it."""

    # shape (n,): mean of a distribution or of samples; median of quantiles (the middle of the
    # outermost where there is none); middle of an interval
    center: FloatArray
    # shape (n,): standard deviation; half the distance of the outermost quantiles or of the ends
    spread: FloatArray
    # shape (k,): levels of the columns of `table`; none of a distribution or of samples
    levels: FloatArray
    table: FloatArray  # shape (n, k): quantiles, or ends of intervals
    # what the variance must be multiplied by to be that of y about the centre: 1 + 1/m for m
    # samples
    inflation: float = 1.0

    @classmethod
    def of(cls, prediction: Prediction) -> Self:
        """The frame of a prediction."""
        nothing = np.empty((prediction.n, 0))
        if isinstance(prediction, Distribution):
            if prediction.discrete:
                raise InputError(
                    "only continuous distributions can be shifted or scaled, got "
                    f"{prediction.law.name}; use 'shape'"
                )
            frame = cls(prediction.point(), prediction.sd(), nothing[0], nothing)
        elif isinstance(prediction, Samples):
            inflation = 1.0 + 1.0 / prediction.size
            frame = cls(prediction.point(), prediction.sd(), nothing[0], nothing, inflation)
        elif isinstance(prediction, Quantiles):
            low, high = prediction.values[:, 0], prediction.values[:, -1]
            inside = prediction.levels[0] <= 0.5 <= prediction.levels[-1]
            center = prediction.point() if inside else (low + high) / 2.0
            frame = cls(center, (high - low) / 2.0, prediction.levels, prediction.values)
        elif isinstance(prediction, Intervals):
            ends = np.concatenate([prediction.lower, prediction.upper], axis=1)
            if not np.isfinite(ends).all():
                raise InputError("intervals with infinite ends cannot be scaled")
            if not prediction.coverages:
                raise InputError("the coverage of the intervals must be known to recalibrate them")
            sides = np.array([tail_levels(c) for c in prediction.coverages]).T.ravel()
            half = (prediction.upper[:, -1] - prediction.lower[:, -1]) / 2.0
            frame = cls(prediction.point(), half, sides, ends)
        else:
            raise InputError(f"{prediction.kind} cannot be shifted or scaled")
        return frame

    def loss(self, mass: FloatArray, below: FloatArray) -> float:
        """Mean pinball loss at these levels of quantiles that lie below y by so much: they go."""
        tilted = float(mass @ below @ self.levels)
        missed = float((mass @ np.minimum(below, 0.0, out=below)).sum())
        return (tilted - missed) / (float(mass.sum()) * len(self.levels))

    def take(self, rows: BoolArray | FloatArray) -> Self:
        """The same of some rows."""
        return type(self)(
            self.center[rows], self.spread[rows], self.levels, self.table[rows], self.inflation
        )

    def stretched(self, by: FloatArray) -> Self:
        """The same about the same centre, with each row's spread multiplied."""
        center = self.center[:, None]
        table = center + by[:, None] * (self.table - center)
        return replace(self, spread=self.spread * by, table=table)

    def shift_parts(self, y: FloatArray, unit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Two values a row whose means have the shift, in units, as ratio."""
        precision = 1.0 / np.square(self.spread) if self.inflation == 1.0 else 1.0
        return precision * unit * (y - self.center), precision * np.square(unit)

    def factor_parts(self, y: FloatArray, center: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Two values a row whose means have the squared factor as ratio."""
        if self.inflation == 1.0:
            return np.square((y - center) / self.spread), np.ones_like(center)
        return np.square(y - center), self.inflation * np.square(self.spread)

    def shift(self, y: FloatArray, mass: FloatArray, unit: FloatArray) -> float:
        """The b for which center + b·unit is centred.

        Of a distribution, the mean of errors with precisions as weights; of samples, which state
        their precision with much noise, the ratio of means; else the least pinball loss.
        """
        if not self.levels.size:
            return _ratio(*self.shift_parts(y, unit), mass)
        distance = (y[:, None] - self.table) / unit[:, None]
        weight = np.broadcast_to((mass * unit)[:, None], distance.shape)
        return weighted_quantile(distance.ravel(), weight.ravel(), float(self.levels.mean()))

    def factor(self, y: FloatArray, mass: FloatArray, center: FloatArray | None = None) -> float:
        """The k for which the spread k·spread about the centre is right; 0 where no error is.

        Of a distribution √ mean z²; of samples the ratio of mean squares, fair for their number;
        else the least pinball loss of levels off the centre. Rows without a spread say nothing.
        """
        middle = self.center if center is None else center
        if not self.levels.size:
            return math.sqrt(_ratio(*self.factor_parts(y, middle), mass))
        return self.factor_of((y - middle)[:, None], mass, self.table - self.center[:, None])

    def factor_of(self, off: FloatArray, mass: FloatArray, away: FloatArray) -> float:
        """The factor of least pinball loss of errors, for quantiles so far away from the centre."""
        used = away != 0
        if not used.any():
            raise InputError("spreads cannot be scaled, because no row has a spread above 0")
        ratio = off / away if used.all() else np.divide(off, away, np.zeros_like(away), where=used)
        level = np.where(away > 0, self.levels, 1.0 - self.levels)
        weight = np.abs(away) * mass[:, None]
        wanted = float((level * weight).sum() / weight.sum())
        return max(weighted_quantile(ratio.ravel(), weight.ravel(), wanted), 0.0)


def _ratio(top: FloatArray, bottom: FloatArray, mass: FloatArray) -> float:
    return float(np.average(top, weights=mass) / np.average(bottom, weights=mass))


# Each member is left out once, n numbers each; 100 know a spread to 7 %, and rows average it.
_MAX_MEMBERS = 100


def left_out(samples: Samples) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Members, and mean and variance of all others for each, shape (n, k).

    Of a perfect ensemble y stands to m − 1 members as the one that is left out does, and shows
    what their noise alone does to any relation. Of more than 100, every so-many-th stands for all,
    in each row from another one on.
    """
    table, size = samples.sorted_samples, samples.size
    if size < 3:
        raise InputError(
            f"samples must have at least 3 per row to estimate their spread, got {size}"
        )
    mean = samples.point()[:, None]
    if size > _MAX_MEMBERS:
        begun = row_uniforms(0, "members", row_keys(mean[:, 0]))[:, None]
        ranks = ((np.arange(_MAX_MEMBERS) + begun) * (size / _MAX_MEMBERS)).astype(np.int64)
        table = np.take_along_axis(table, ranks, axis=1)
    away = table - mean
    square = np.square(samples.sd())[:, None] * (size - 1) - np.square(away) * size / (size - 1)
    return table, mean - away / (size - 1), np.maximum(square, 0.0) / (size - 2)


def weighted_quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    """The middle of the values that split the weights at a level: the least pinball loss."""
    last = len(values) - 1
    slack = 1e-12
    if (weights == weights[0]).all():
        share = level * len(values)
        low = min(max(math.ceil(share * (1.0 - slack)) - 1, 0), last)
        high = min(max(math.floor(share * (1.0 + slack)), low), last)
        split = np.partition(values, (low, high))
        return float(split[low] / 2.0 + split[high] / 2.0)
    share = level * float(weights.sum())
    values, weights, before = _around(values, weights, share)
    order, last = np.argsort(values, kind="stable"), len(values) - 1
    total = before + np.cumsum(weights[order])
    low = min(int(np.searchsorted(total, share * (1.0 - slack))), last)
    high = min(int(np.searchsorted(total, share * (1.0 + slack), side="right")), last)
    return float(values[order[low]] / 2.0 + values[order[high]] / 2.0)


# Values whose order tells about where a quantile of many lies: to 2 % of the rows, which are then
# sorted alone. It decides time, never the answer.
_VALUES_SEEN = 500
_SPREAD_OUT = (
    np.arange(_VALUES_SEEN) * 0.6180339887498949 % 1.0
)  # in step with no number of columns


def _around(
    values: FloatArray, weights: FloatArray, share: float
) -> tuple[FloatArray, FloatArray, float]:
    """Values about the one where the running weight has a sum, their weights, and that before."""
    before, room, total_weight = 0.0, 1e-9 * share, float(weights.sum())
    while len(values) >= 4 * _VALUES_SEEN:
        places = (_SPREAD_OUT * len(values)).astype(np.int64)
        ordered = places[np.argsort(values[places])]
        total = np.cumsum(weights[ordered])
        ends = (share - before) / total_weight + np.array([-0.1, 0.1])
        first, last = np.clip(np.searchsorted(total, ends * total[-1]), 0, len(ordered) - 1)
        low, high = values[ordered[first]], values[ordered[last]]
        inside = np.flatnonzero((values >= low) & (values <= high))
        up_to = before + float(weights @ (values < low).astype(np.float64))
        weights_inside = weights[inside]
        within, every = float(weights_inside.sum()), len(inside) == len(values)
        if every or not up_to < share - room or not up_to + within > share + room:
            break
        values, weights = values[inside], weights_inside
        before, total_weight = up_to, within
    return values, weights, before


@np.errstate(all="ignore")
def moved(
    prediction: Prediction, frame: LocationScale, shift: FloatArray, factor: FloatArray
) -> Prediction:
    """The prediction with its centre moved and all else stretched about it, row by row."""

    def at(values: FloatArray) -> FloatArray:
        wide = values.ndim > 1
        middle, move, stretch = (
            column[:, None] if wide else column for column in (frame.center, shift, factor)
        )
        changed = values - middle
        changed *= stretch
        changed += middle + move
        return np.asarray(changed)

    if isinstance(prediction, Distribution):
        parameters = dict(prediction.parameters)
        for name, values in prediction.parameters.items():
            if name.startswith("loc"):  # a mixture numbers those of its parts
                parameters[name] = at(values)
            elif name.startswith("scale"):
                parameters[name] = factor * values
        return Distribution(prediction.law, parameters)
    if isinstance(prediction, Samples):
        return Samples.owning(at(prediction.sorted_samples))
    if isinstance(prediction, Quantiles):
        return Quantiles(prediction.levels, at(prediction.values), "sort")
    if isinstance(prediction, Intervals):
        ends = at(prediction.lower), at(prediction.upper)
        return Intervals(*ends, prediction.coverages or None)
    raise InputError(f"{prediction.kind} cannot be shifted or scaled")


def floored(spread: FloatArray, floor: float) -> FloatArray:
    """Spreads as units of a shift: none below the floor; all 1 where that is 0."""
    return np.maximum(spread, floor) if floor > 0 else np.ones_like(spread)


def crossed_note(prediction: Prediction) -> tuple[str, ...]:
    """A note on rows of quantiles that crossed when moved; none of anything else."""
    if not isinstance(prediction, Quantiles) or not prediction.crossed_rows:
        return ()
    said = " of quantiles crossed after the shift and were sorted."
    return (CountedNote.of(prediction.crossed_rows, "row", said),)


def power_of(spread: FloatArray, typical: float, power: float) -> FloatArray:
    """The factors that make spreads go as a power of theirs; 1 where there is none."""
    known = np.where(spread > 0, spread, typical)
    return np.asarray((known / typical) ** (power - 1.0))


Amounts = tuple[FloatArray, FloatArray, tuple[str, ...]]
"""Each row's shift, in units of y, and factor of the spread; and notes on the rows."""


@frozen(kw_only=True)
class LocationScaleRecalibrator(Recalibrator):
    """A fitted method that moves and stretches each row's prediction. Subclasses are final."""

    @abstractmethod
    def amounts(self, evalset: EvalSet, frame: LocationScale) -> Amounts:
        """How far each row moves and stretches."""

    @np.errstate(all="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Predictions of the same kind, moved and stretched."""
        prediction = self.matching_prediction(evalset, FRAMED)
        frame = LocationScale.of(prediction)
        shift, factor, notes = self.amounts(evalset, frame)
        return moved(prediction, frame, shift, factor), notes


M = TypeVar("M", bound=LocationScaleRecalibrator)


@final
@frozen(kw_only=True)
class AffineLocationScale(LocationScaleRecalibrator):
    """A fitted shift, multiple, factor or power of the spread, or several of these.

    The fitted parameters have names: ``shift`` in units of y, ``relative shift`` in spreads,
    ``multiple`` of centre and spread, ``factor`` of the spread, and ``power``, with which a spread
    s goes as s^power.
    """

    floor: float = 0.0  # the least spread that a relative shift is measured in
    typical: float = 1.0  # the spread at which `factor` holds where there is a power

    def amounts(self, evalset: EvalSet, frame: LocationScale) -> Amounts:
        """The same for all rows, but for what goes with the spread."""
        learnt = {parameter.name: parameter.value for parameter in self.parameters}
        shift = np.full(evalset.n, learnt.get("shift", 0.0))
        if "relative shift" in learnt:
            shift = learnt["relative shift"] * floored(frame.spread, self.floor)
        if "multiple" in learnt:
            shift = (learnt["multiple"] - 1.0) * frame.center
        factor = np.full(evalset.n, learnt.get("multiple", learnt.get("factor", 1.0)))
        if "power" in learnt:
            factor *= power_of(frame.spread, self.typical, learnt["power"])
        return shift, factor, ()


@frozen(eq=False)
class CalibrationRows:
    """Calibration rows of one kind, and what they teach of a shift and a factor."""

    calibration: EvalSet
    prediction: Prediction
    frame: LocationScale
    y: FloatArray
    mass: FloatArray

    @classmethod
    def of(
        cls, calibration: EvalSet, kind: str, kinds: Sequence[type[Prediction]] = FRAMED
    ) -> Self:
        """The rows, which must be two at least; those of a distribution must have a spread."""
        prediction = prediction_of(calibration, kind_named(kind, kinds))
        check_rows(calibration)
        frame = LocationScale.of(prediction)
        if isinstance(prediction, Distribution):
            check_spread(frame.spread)
        return cls(calibration, prediction, frame, calibration.y, counts(calibration))

    @classmethod
    def spread_out(cls, calibration: EvalSet, kind: str) -> Self:
        """The rows where each must have a spread, for what is learnt is in units of it."""
        rows = cls.of(calibration, kind)
        check_spread(rows.frame.spread)
        with np.errstate(all="ignore"):
            if not math.isfinite(float(np.square(rows.y - rows.frame.center).sum())):
                raise_too_large()
        return rows

    @property
    def floor(self) -> float:
        """The least spread that a relative shift is measured in."""
        return MIN_RELATIVE_SPREAD * float(np.average(self.frame.spread, weights=self.mass))

    def location_scale(self) -> tuple[float, float]:
        """A shift in units of each row's spread, and a factor about what is shifted."""
        frame = self.frame
        shift = frame.shift(self.y, self.mass, frame.spread)
        factor = frame.factor(self.y, self.mass, frame.center + shift * frame.spread)
        return shift, check_factor(factor)

    def shift(self, name: str, value: float, unit: FloatArray) -> FittedParameter:
        """A shift in units, with its standard error where it is a ratio of means."""
        if self.frame.levels.size:
            return self.learnt(name, value)
        top, bottom = self.frame.shift_parts(self.y, unit)
        influence = (top - value * bottom) / float(np.average(bottom, weights=self.mass))
        return self.learnt(name, value, sampling_error(influence, self.calibration))

    def factor(
        self, center: FloatArray | None = None, stretch: FloatArray | None = None
    ) -> FittedParameter:
        """The factor of spreads about a centre, with its standard error where it is by moments."""
        frame = self.frame if stretch is None else self.frame.stretched(stretch)
        middle = frame.center if center is None else center
        if frame.levels.size:
            return self.learnt("factor", check_factor(frame.factor(self.y, self.mass, middle)))
        top, bottom = frame.factor_parts(self.y, middle)
        if not (np.isfinite(top).all() and np.isfinite(bottom).all()):
            raise_too_large()
        expected = float(np.average(bottom, weights=self.mass))
        if expected == 0:
            raise InputError("samples must vary within some calibration row, but none do")
        square = float(np.average(top, weights=self.mass)) / expected
        if square == 0:
            raise InputError(
                "all errors in the calibration rows are zero, so the scale would be zero"
            )
        error = sampling_error((top - square * bottom) / expected, self.calibration)
        value = math.sqrt(square)
        return self.learnt("factor", value, error / (2.0 * value))

    def learnt(self, name: str, value: float, error: float = math.nan) -> FittedParameter:
        """One number, fitted to all rows."""
        if not math.isfinite(value):
            raise_too_large()
        n = effective_rows(self.calibration)[0]
        return FittedParameter(name=name, value=value, n=n, standard_error=error)

    def mover(
        self,
        kind: type[M],
        method: str,
        parameters: tuple[FittedParameter, ...],
        guarantee: str,
        *notes: str,
        **own: Any,
    ) -> M:
        """What was learnt, fitted to rows like these."""
        return kind(
            belief=self.prediction.kind,
            method=method,
            parameters=parameters,
            guarantee=f"No finite-sample guarantee: {guarantee}.",
            notes=(*fit_notes(self.calibration), *notes),
            fitted_to=signature(self.prediction),
            **own,
        )
