"""Shape: a rising map of levels, or of standardised quantiles, whose ends keep the given tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.conformal import order_statistics
from howsure.core.arrays import FloatArray, IntArray, check_levels
from howsure.predictions import Distribution, EvalSet, Prediction, Quantiles, Samples
from howsure.recalibration.base import (
    CENTRAL,
    FittedParameter,
    RecalibrationMethod,
    Recalibrator,
    belief_of,
    check_rows,
    effective_rows,
    fit_notes,
    kind_named,
    signature,
)
from howsure.recalibration.info import CENTRAL_KINDS, SHAPE, MethodInfo
from howsure.recalibration.isotonic import IsotonicRecalibrator, pit_knots
from howsure.recalibration.levels import DEFAULT_LEVELS
from howsure.recalibration.location_scale import FLOOR, LocationScale, crossed_note, floored

_PRIOR = 2.0
"""Rows that speak for the tail as it is given, beside those that lie beyond a level."""

_TINY = 1e-12
"""Of a level, from 0 and from 1."""

_GUARANTEE = (
    "No finite-sample guarantee: on the calibration rows levels are met nearly as stated, and "
    "where few rows lie beyond a level the given tail continues."
)


@final
@dataclass(frozen=True, slots=True)
class Shape(RecalibrationMethod):
    """A rising map of the prediction's levels, learnt from calibration rows, that keeps the tails.

    Of distributions the quantile at level p becomes F⁻¹(u), with u the level that calibration
    rows obey, as of `Isotonic`. Of samples and of quantiles column i moves by the row's spread
    times the quantile, at its own level, of (y − column)/spread. From the median outward each
    distance is a share of what the rows say and a share of going on as the level within does, by
    k rows beyond the level against 2: so levels that no row reaches continue the given tail.

    Parameters
    ----------
    belief : {"distributions", "samples", "quantiles"}
        What is mended. Distributions become quantiles; samples and quantiles stay what they are.
    levels : array-like of shape (k,)
        Rising levels of the quantiles that distributions become.

    Examples
    --------
    >>> y = np.linspace(-2.0, 2.0, 400)
    >>> held_out = EvalSet.checked(y, Distribution.normal(np.zeros(400), np.ones(400)))
    >>> fitted = Shape(levels=[0.1, 0.5, 0.9]).fit(held_out)
    >>> fitted.apply(held_out).beliefs[0].values[0].round(1)
    array([-1.6,  0. ,  1.6])
    """

    belief: str = Distribution.kind
    levels: npt.ArrayLike = DEFAULT_LEVELS

    @np.errstate(all="ignore")
    def fit(self, calibration: EvalSet) -> IsotonicRecalibrator | ShapedColumns:
        """Learn the map from held-out rows.

        Raises
        ------
        InputError
            If the rows are fewer than two.
        UnanswerableError
            If there is one sample a row.
        """
        prediction = belief_of(calibration, kind_named(self.belief, CENTRAL))
        check_rows(calibration)
        n, counts = effective_rows(calibration)[0], calibration.multiplicities
        if isinstance(prediction, Distribution):
            levels = check_levels(self.levels)
        elif isinstance(prediction, Quantiles):
            levels = prediction.levels
        else:
            levels = np.arange(1, prediction.size + 1) / (prediction.size + 1)
        common: dict[str, Any] = {
            "belief": self.belief,
            "method": "shape",
            "guarantee": _GUARANTEE,
            "notes": (*fit_notes(calibration), *_notes(levels, n)),
            "fitted_to": signature(prediction),
        }
        if isinstance(prediction, Distribution):
            known = _own_levels(prediction, calibration.y, levels, counts, n)
            return IsotonicRecalibrator(parameters=_learnt("level", levels, known, n), **common)
        frame = LocationScale.of(prediction)
        floor = FLOOR * float(np.average(frame.spread, weights=counts))
        table = prediction.sorted_samples if isinstance(prediction, Samples) else prediction.values
        moves = _own_moves(frame, table, levels, floor, calibration)
        return ShapedColumns(parameters=_learnt("move", levels, moves, n), floor=floor, **common)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedColumns(Recalibrator):
    """Fitted `Shape` of samples or quantiles."""

    floor: float  # the least spread that a column moves by; 0 where all move by constants

    @np.errstate(all="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Columns moved, with a note on rows that had to be sorted."""
        prediction = self.held(evalset, CENTRAL)
        unit = floored(LocationScale.of(prediction).spread, self.floor)
        moves = unit[:, None] * np.array([learnt.value for learnt in self.parameters])
        if isinstance(prediction, Samples):
            moves += prediction.sorted_samples
            return Samples.owning(moves), ()
        assert isinstance(prediction, Quantiles)
        moved = Quantiles(prediction.levels, prediction.values + moves, crossing="sort")
        return moved, crossed_note(moved)


def _own_levels(
    prediction: Distribution, y: FloatArray, levels: FloatArray, counts: FloatArray | None, n: float
) -> FloatArray:
    """R⁻¹ at the levels, R being the distribution function of the calibration rows' PIT."""
    left, right = prediction.cdf_left(y), prediction.cdf(y)
    wanted = np.unique([*levels, 0.5])
    low, high, share = _ranks(wanted, n)
    knots = [pit_knots(left, right, ranks, counts) for ranks in (low, high)]
    found = (1.0 - share) * knots[0] + share * knots[1]
    weight = np.where((found > 0) & (found < 1), _weights(wanted, n), 0.0)
    middle = int(np.searchsorted(wanted, 0.5))
    center = weight[middle] * found[middle] + (1.0 - weight[middle]) * 0.5
    low_side, high_side = slice(None, middle), slice(middle + 1, None)
    inward = wanted[low_side][::-1], found[low_side][::-1], weight[low_side][::-1]
    lower = _outward(*inward, (0.0, 0.0), 2.0 * center)[::-1]
    mirrored = (1.0 - wanted[high_side], 1.0 - found[high_side], weight[high_side])
    upper = 1.0 - _outward(*mirrored, (0.0, 0.0), 2.0 * (1.0 - center))
    rising = _rising(lower, center, upper)
    return np.clip(rising[np.isin(wanted, levels)], _TINY, 1.0 - _TINY)


def _own_moves(
    frame: LocationScale, table: FloatArray, levels: FloatArray, floor: float, rows: EvalSet
) -> FloatArray:
    """By how many units each column moves."""
    unit = floored(frame.spread, floor)
    n, counts = effective_rows(rows)[0], rows.multiplicities
    low, high, share = _ranks(levels, n)
    own, given = np.empty(len(levels)), np.empty(len(levels))
    for column, ranks in enumerate(np.stack([low, high], axis=1)):
        values = table[:, column]
        ends = order_statistics((rows.y - values) / unit, ranks, counts)
        own[column] = (1.0 - share[column]) * ends[0] + share[column] * ends[1]
        given[column] = np.average((values - frame.center) / unit, weights=counts)
    weight, wanted = _weights(levels, n), given + own
    center = float(np.interp(0.5, levels, given))
    anchor = (center, center + float(np.interp(0.5, levels, weight * own)))
    low_side, high_side = levels < 0.5 - 1e-9, levels > 0.5 + 1e-9
    inward = given[low_side][::-1], wanted[low_side][::-1], weight[low_side][::-1]
    lower = _outward(*inward, anchor, 1.0)[::-1]
    upper = _outward(given[high_side], wanted[high_side], weight[high_side], anchor, 1.0)
    rising = _rising(lower, anchor[1], upper)
    has_median = len(lower) + len(upper) < len(levels)
    kept = rising if has_median else np.delete(rising, len(lower))
    return np.asarray(kept - given)


def _rising(lower: FloatArray, center: float, upper: FloatArray) -> FloatArray:
    """Places that never turn back on the way outward from the centre, with it."""
    down = np.minimum.accumulate(np.r_[center, lower[::-1]])[::-1]
    up = np.maximum.accumulate(np.r_[center, upper])
    return np.concatenate([down, up[1:]])


def _ranks(levels: FloatArray, n: float) -> tuple[IntArray, IntArray, FloatArray]:
    """The ranks about (n + 1)p, and how far between them it lies."""
    place = np.clip((n + 1.0) * levels, 1.0, max(np.floor(n), 1.0))
    low = np.floor(place + 1e-9).astype(np.int64)
    share = np.maximum(place - low, 0.0)
    return low, np.minimum(low + (share > 1e-9), int(max(n, 1))), share


def _weights(levels: FloatArray, n: float) -> FloatArray:
    """How much calibration rows say of each level; nothing where none may lie beyond."""
    beyond = (n + 1.0) * np.minimum(levels, 1.0 - levels)
    return np.where(beyond >= 1.0 - 1e-9, beyond / (beyond + _PRIOR), 0.0)


def _outward(
    given: FloatArray,
    wanted: FloatArray,
    weight: FloatArray,
    anchor: tuple[float, float],
    ratio: float,
) -> FloatArray:
    """Places by distance from the median: what rows say of each, and going on as the last did."""
    made = np.empty(len(given))
    for at in range(len(given)):
        away = given[at] - anchor[0]
        made[at] = weight[at] * wanted[at] + (1.0 - weight[at]) * (anchor[1] + ratio * away)
        if away != 0:
            ratio = (made[at] - anchor[1]) / away
    return made


def _learnt(
    name: str, levels: FloatArray, values: FloatArray, n: float
) -> tuple[FittedParameter, ...]:
    return tuple(
        FittedParameter(name=name, value=float(value), nominal=float(level), n=n)
        for level, value in zip(levels, values, strict=True)
    )


def _notes(levels: FloatArray, n: float) -> tuple[str, ...]:
    far = int((_weights(levels, n) == 0).sum())
    if not far:
        return ()
    return (f"The given tail is kept at {far} levels that {n:g} calibration rows cannot reach.",)


METHODS: Final = (
    MethodInfo(
        name="shape",
        kinds=CENTRAL_KINDS,
        make=lambda kind, options: Shape(kind, options.levels),
        saves=(IsotonicRecalibrator, ShapedColumns),
        gives="levels",
        label="by its shape",
        words="map stated probabilities to observed frequencies",
        complexity=3,
        aims=SHAPE,
    ),
)
