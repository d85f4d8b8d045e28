"""Predictions moved and stretched row by row, and how far calibration rows say that they should be.

Of a distribution or an ensemble, centre and spread are the mean and the sd, and what is learnt are
moments. Of quantiles and intervals only some levels are known, and what is learnt minimises the
pinball loss at these, which is convex in a shift and in a factor: each is a weighted quantile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self, final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Quantiles, Samples
from howsure.predictions.base import tail_levels
from howsure.recalibration.base import Recalibrator, belief_of, matching

KINDS: dict[str, type[Prediction]] = {
    each.kind: each for each in (Distribution, Samples, Quantiles, Intervals)
}


FLOOR = 0.1
"""Of the mean spread: the least that a relative shift is measured in."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Where predictions lie, and what y shows of it.

    Attributes
    ----------
    center : ndarray of float, shape (n,)
        Mean of a distribution or of samples; median of quantiles (the middle of the outermost
        where there is none); middle of an interval.
    spread : ndarray of float, shape (n,)
        Standard deviation; half the distance of the outermost quantiles or of the ends.
    levels : ndarray of float, shape (k,)
        Levels of the columns of `table`; none of a distribution or of samples.
    table : ndarray of float, shape (n, k)
        Quantiles, or ends of intervals.
    inflation : float
        What the variance must be multiplied by to be that of y about the centre: 1 + 1/m for m
        samples.
    """

    center: FloatArray
    spread: FloatArray
    levels: FloatArray
    table: FloatArray
    inflation: float = 1.0

    @classmethod
    def of(cls, prediction: Prediction) -> Self:
        """The frame of a prediction.

        Raises
        ------
        InputError
            If it is discrete, has no spread in some row, or its intervals are unbounded.
        UnanswerableError
            If a distribution has no mean or sd.
        """
        nothing = np.empty((prediction.n, 0))
        if isinstance(prediction, Distribution):
            if prediction.discrete:
                raise InputError(
                    f"what is moved or stretched must be continuous, got {prediction.law.name}; "
                    "use 'shape'"
                )
            made = cls(prediction.point(), prediction.sd(), nothing[0], nothing)
        elif isinstance(prediction, Samples):
            inflation = 1.0 + 1.0 / prediction.size
            made = cls(prediction.point(), prediction.sd(), nothing[0], nothing, inflation)
        elif isinstance(prediction, Quantiles):
            low, high = prediction.values[:, 0], prediction.values[:, -1]
            inside = prediction.levels[0] <= 0.5 <= prediction.levels[-1]
            center = prediction.point() if inside else (low + high) / 2.0
            made = cls(center, (high - low) / 2.0, prediction.levels, prediction.values)
        elif isinstance(prediction, Intervals):
            ends = np.concatenate([prediction.lower, prediction.upper], axis=1)
            if not np.isfinite(ends).all():
                raise InputError("intervals must be bounded to be stretched, got infinite ends")
            if not prediction.coverages:
                raise InputError("the coverage of intervals must be known to learn how they miss")
            sides = np.array([tail_levels(c) for c in prediction.coverages]).T.ravel()
            half = (prediction.upper[:, -1] - prediction.lower[:, -1]) / 2.0
            made = cls(prediction.point(), half, sides, ends)
        else:
            raise InputError(f"{prediction.kind} can be neither moved nor stretched")
        return made

    def check_spread(self) -> None:
        """Raise `InputError` unless every row has a spread."""
        flat = ~(self.spread > 0)
        if flat.any():
            raise InputError(
                "every row must have a spread above 0 to be stretched, got "
                f"{int(flat.sum())} without (first at row {int(np.argmax(flat))})"
            )

    def loss(self, y: FloatArray, mass: FloatArray, table: FloatArray) -> float:
        """Mean pinball loss of a table of quantiles at these levels."""
        below = y[:, None] - table
        return float(
            np.average(
                np.maximum(self.levels * below, (self.levels - 1.0) * below).mean(axis=1),
                weights=mass,
            )
        )

    def take(self, rows: BoolArray | FloatArray) -> Self:
        """The same of some rows."""
        return type(self)(
            self.center[rows], self.spread[rows], self.levels, self.table[rows], self.inflation
        )

    def shift(self, y: FloatArray, mass: FloatArray, unit: FloatArray) -> float:
        """The b for which center + b·unit is centred.

        Of a distribution, the mean of errors with precisions as weights; of samples, which state
        their precision with much noise, the ratio of means; else the least pinball loss.
        """
        if self.levels.size:
            return self._pinball(y, mass, unit)
        error = y - self.center
        precision = mass / np.square(self.spread) if self.inflation == 1.0 else mass
        return float(np.sum(precision * unit * error) / np.sum(precision * np.square(unit)))

    def _pinball(self, y: FloatArray, mass: FloatArray, unit: FloatArray) -> float:
        rest = (y[:, None] - self.table) / unit[:, None]
        weight = np.broadcast_to((mass * unit)[:, None], rest.shape)
        return weighted_quantile(rest.ravel(), weight.ravel(), float(self.levels.mean()))

    def factor(self, y: FloatArray, mass: FloatArray, center: FloatArray | None = None) -> float:
        """The k for which the spread k·spread about the centre is right; 0 where no error is.

        Of a distribution √ mean z²; of samples the ratio of mean squares, fair for their number;
        else the least pinball loss of levels off the centre. Rows without a spread say nothing.
        """
        middle = self.center if center is None else center
        error = y - middle
        if not self.levels.size:
            square = np.square(error)
            if self.inflation == 1.0:
                return math.sqrt(np.average(square / np.square(self.spread), weights=mass))
            expected = self.inflation * np.average(np.square(self.spread), weights=mass)
            return math.sqrt(np.average(square, weights=mass) / expected)
        away = self.table - self.center[:, None]
        used = away != 0
        ratio = np.divide(error[:, None], away, out=np.zeros_like(away), where=used)
        level = np.where(away > 0, self.levels, 1.0 - self.levels)
        weight = np.abs(away) * mass[:, None]
        if not used.any():
            raise InputError("some rows must have a spread to be stretched, got none")
        weight, ratio, level = weight[used], ratio[used], level[used]
        wanted = float(np.average(level, weights=weight))
        return max(weighted_quantile(ratio, weight, wanted), 0.0)


def frame_of(evalset: EvalSet, kind: str) -> Frame:
    """The frame of the prediction of one kind."""
    return Frame.of(belief_of(evalset, KINDS[kind]))


def left_out(samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of all other members for each, shape (n, m).

    Of a perfect ensemble y stands to m − 1 members as the one that is left out does, and shows
    what their noise alone does to any relation.

    Raises
    ------
    InputError
        If members are fewer than three.
    """
    table, size = samples.sorted_samples, samples.size
    if size < 3:
        raise InputError(
            f"samples must be at least 3 a row to tell their spread from its noise, got {size}"
        )
    mean = samples.point()[:, None]
    away = table - mean
    square = np.square(samples.sd())[:, None] * (size - 1) - np.square(away) * size / (size - 1)
    return mean - away / (size - 1), np.maximum(square, 0.0) / (size - 2)


def weighted_quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    """The middle of the values that split the weights at a level: the least pinball loss.

    Examples
    --------
    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), 0.5)
    2.0
    >>> weighted_quantile(np.array([1.0, 2.0]), np.array([1.0, 1.0]), 0.5)
    1.5
    """
    last = len(values) - 1
    slack = 1e-12
    if (weights == weights[0]).all():
        share = level * len(values)
        low = min(max(math.ceil(share * (1.0 - slack)) - 1, 0), last)
        high = min(max(math.floor(share * (1.0 + slack)), low), last)
        split = np.partition(values, (low, high))
        return float(split[low] / 2.0 + split[high] / 2.0)
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    share = level * float(total[-1])
    low = min(int(np.searchsorted(total, share * (1.0 - slack))), last)
    high = min(int(np.searchsorted(total, share * (1.0 + slack), side="right")), last)
    return float(values[order[low]] / 2.0 + values[order[high]] / 2.0)


@np.errstate(all="ignore")
def moved(
    prediction: Prediction, frame: Frame, shift: FloatArray, factor: FloatArray
) -> Prediction:
    """The prediction with its centre moved and all else stretched about it, row by row.

    Parameters
    ----------
    prediction : Prediction
        n rows.
    frame : Frame
        Its own.
    shift, factor : ndarray of float, shape (n,)
        In units of y; and above 0.

    Examples
    --------
    >>> held = Distribution.normal([0.0, 1.0], [1.0, 2.0])
    >>> made = moved(held, Frame.of(held), np.array([0.5, 0.0]), np.array([1.0, 2.0]))
    >>> made.point(), made.sd()
    (array([0.5, 1. ]), array([1., 4.]))
    """

    def at(values: FloatArray) -> FloatArray:
        wide = values.ndim > 1
        middle, move, stretch = (
            each[:, None] if wide else each for each in (frame.center, shift, factor)
        )
        return np.asarray(middle + move + stretch * (values - middle))

    if isinstance(prediction, Distribution):
        parameters = dict(prediction.parameters)
        for name, values in prediction.parameters.items():
            if name.startswith("loc"):  # a mixture numbers those of its parts
                parameters[name] = at(values)
            elif name.startswith("scale"):
                parameters[name] = factor * values
        return Distribution(prediction.law, parameters)
    if isinstance(prediction, Samples):
        return Samples(at(prediction.sorted_samples))
    if isinstance(prediction, Quantiles):
        return Quantiles(prediction.levels, at(prediction.values), "sort")
    if isinstance(prediction, Intervals):
        ends = at(prediction.lower), at(prediction.upper)
        return Intervals(*ends, prediction.coverages or None)
    raise InputError(f"{prediction.kind} can be neither moved nor stretched")


def floored(spread: FloatArray, floor: float) -> FloatArray:
    """Spreads as units of a shift: none below the floor; all 1 where that is 0."""
    return np.maximum(spread, floor) if floor > 0 else np.ones_like(spread)


def check_given(levels: FloatArray, given: tuple[float, ...], kind: str) -> None:
    """Raise `InputError` unless levels are those of the calibration rows."""
    if len(levels) != len(given) or (np.abs(levels - given) > 1e-9).any():
        raise InputError(
            f"{kind} must be at the levels of the calibration rows ({_listed(given)}), "
            f"got {_listed(levels.tolist())}"
        )


def _listed(levels: tuple[float, ...] | list[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)


def crossed_note(made: Prediction) -> tuple[str, ...]:
    """A note on rows of quantiles that crossed when moved; none of anything else."""
    if not isinstance(made, Quantiles) or not made.crossed_rows:
        return ()
    return (f"{made.crossed_rows} rows of quantiles crossed when moved, and were sorted.",)


def mass_of(evalset: EvalSet) -> FloatArray:
    """How much each row counts."""
    return np.ones(evalset.n) if evalset.weights is None else evalset.weights.values


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Mover(Recalibrator):
    """A fitted shift, factor or power of the spread, or several of these.

    What was learnt is told by its name: ``shift`` in units of y, ``relative shift`` in spreads,
    ``factor`` of the spread, and ``power``, with which a spread s goes as s^power.

    Attributes
    ----------
    fitted_to : str
        What the rows must hold: the family of laws, or the number of samples.
    given : tuple of float
        Levels of the quantiles or the ends of the calibration rows.
    floor : float
        The least spread that a relative shift is measured in.
    typical : float
        The spread at which ``factor`` holds where there is a power.
    """

    fitted_to: str
    given: tuple[float, ...] = ()
    floor: float = 0.0
    typical: float = 1.0

    @np.errstate(all="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Predictions of the same kind, moved and stretched, with a note where some crossed."""
        prediction = matching(evalset, KINDS[self.belief], self.fitted_to)
        frame = Frame.of(prediction)
        check_given(frame.levels, self.given, self.belief)
        learnt = {one.name: one.value for one in self.parameters}
        shift = np.full(prediction.n, learnt.get("shift", 0.0))
        if "relative shift" in learnt:
            shift = learnt["relative shift"] * floored(frame.spread, self.floor)
        factor = np.full(prediction.n, learnt.get("factor", 1.0))
        if "power" in learnt:
            factor *= power_of(frame.spread, self.typical, learnt["power"])
        return moved(prediction, frame, shift, factor), ()


def power_of(spread: FloatArray, typical: float, power: float) -> FloatArray:
    """The factors that make spreads go as a power of theirs; 1 where there is none."""
    known = np.where(spread > 0, spread, typical)
    return np.asarray((known / typical) ** (power - 1.0))
