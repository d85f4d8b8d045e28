"""Laws of another shape: levels or standardised quantiles mapped as calibration rows show."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import order_statistics
from howsure.conformal.thresholds import TooFew, raise_too_large
from howsure.core.arrays import FloatArray, IntArray, check_levels
from howsure.core.classes import frozen
from howsure.predictions import Distribution, EvalSet, Prediction, Quantiles, Samples
from howsure.recalibration.base import (
    CENTRAL,
    SPREAD,
    FittedParameter,
    RecalibrationMethod,
    Recalibrator,
    check_rows,
    check_spread,
    effective_rows,
    fit_notes,
    kind_named,
    prediction_of,
    signature,
)
from howsure.recalibration.info import CENTRAL_KINDS, SHAPE, SPREAD_KINDS, MethodInfo
from howsure.recalibration.levels import (
    DEFAULT_LEVELS,
    TableRecalibrator,
    hold_below,
    level_words,
    plan_levels,
)
from howsure.recalibration.location_scale import (
    MIN_RELATIVE_SPREAD,
    LocationScale,
    crossed_note,
    floored,
)

# Rows that speak for the tail as it is given, beside those that lie beyond a level: where two lie,
# both count alike. By hand; not tuned.
_ROWS_OF_PRIOR = 2.0

# Of a level, from 0 and from 1, whose quantiles may be infinite.
_MARGIN_OF_LEVELS = 1e-12

_GUARANTEE = (
    "No finite-sample guarantee: on the calibration rows, empirical and nominal levels nearly "
    "agree. Where few rows are beyond a level, the given tail continues."
)


@final
@frozen
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
    >>> fitted.apply(held_out).predictions[0].values[0].round(1)
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
            If there is one sample per row.
        """
        prediction = prediction_of(calibration, kind_named(self.belief, CENTRAL))
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
            obeyed = _own_levels(prediction, calibration.y, levels, counts, n)
            return IsotonicRecalibrator(parameters=_learnt("level", levels, obeyed, n), **common)
        frame = LocationScale.of(prediction)
        floor = MIN_RELATIVE_SPREAD * float(np.average(frame.spread, weights=counts))
        table = prediction.sorted_samples if isinstance(prediction, Samples) else prediction.values
        moves = _own_moves(frame, table, levels, floor, calibration)
        return ShapedColumns(parameters=_learnt("move", levels, moves, n), floor=floor, **common)


@final
@frozen(kw_only=True)
class ShapedColumns(Recalibrator):
    """Fitted `Shape` of samples or quantiles."""

    floor: float  # the least spread that a column moves by; 0 where all move by constants

    @np.errstate(all="ignore")
    def transform(self, evalset: EvalSet) -> tuple[Prediction, tuple[str, ...]]:
        """Columns moved, with a note on rows that had to be sorted."""
        prediction = self.matching_prediction(evalset, CENTRAL)
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
    cdf_left, cdf = prediction.cdf_left(y), prediction.cdf(y)
    wanted = np.unique([*levels, 0.5])
    low, high, share = _ranks(wanted, n)
    knots = [pit_knots(cdf_left, cdf, ranks, counts) for ranks in (low, high)]
    obeyed = (1.0 - share) * knots[0] + share * knots[1]
    weight = np.where((obeyed > 0) & (obeyed < 1), _weights(wanted, n), 0.0)
    middle = int(np.searchsorted(wanted, 0.5))
    center = weight[middle] * obeyed[middle] + (1.0 - weight[middle]) * 0.5
    low_side, high_side = slice(None, middle), slice(middle + 1, None)
    inward = wanted[low_side][::-1], obeyed[low_side][::-1], weight[low_side][::-1]
    lower = _outward(*inward, (0.0, 0.0), 2.0 * center)[::-1]
    mirrored = (1.0 - wanted[high_side], 1.0 - obeyed[high_side], weight[high_side])
    upper = 1.0 - _outward(*mirrored, (0.0, 0.0), 2.0 * (1.0 - center))
    rising = _rising(lower, center, upper)
    return np.clip(rising[np.isin(wanted, levels)], _MARGIN_OF_LEVELS, 1.0 - _MARGIN_OF_LEVELS)


def _own_moves(
    frame: LocationScale, table: FloatArray, levels: FloatArray, floor: float, rows: EvalSet
) -> FloatArray:
    """By how many units each column moves."""
    unit = floored(frame.spread, floor)
    n, counts = effective_rows(rows)[0], rows.multiplicities
    low, high, share = _ranks(levels, n)
    corrections, stated = np.empty(len(levels)), np.empty(len(levels))
    for column, ranks in enumerate(np.stack([low, high], axis=1)):
        values = table[:, column]
        ends = order_statistics((rows.y - values) / unit, ranks, counts)
        corrections[column] = (1.0 - share[column]) * ends[0] + share[column] * ends[1]
        stated[column] = np.average((values - frame.center) / unit, weights=counts)
    weight, wanted = _weights(levels, n), stated + corrections
    center = float(np.interp(0.5, levels, stated))
    anchor = (center, center + float(np.interp(0.5, levels, weight * corrections)))
    low_side, high_side = levels < 0.5 - 1e-9, levels > 0.5 + 1e-9
    inward = stated[low_side][::-1], wanted[low_side][::-1], weight[low_side][::-1]
    lower = _outward(*inward, anchor, 1.0)[::-1]
    upper = _outward(stated[high_side], wanted[high_side], weight[high_side], anchor, 1.0)
    rising = _rising(lower, anchor[1], upper)
    has_median = len(lower) + len(upper) < len(levels)
    moved = rising if has_median else np.delete(rising, len(lower))
    return np.asarray(moved - stated)


def _rising(lower: FloatArray, center: float, upper: FloatArray) -> FloatArray:
    """Places that never turn back on the way outward from the centre, with it."""
    down = np.minimum.accumulate(np.r_[center, lower[::-1]])[::-1]
    up = np.maximum.accumulate(np.r_[center, upper])
    return np.concatenate([down, up[1:]])


def _ranks(levels: FloatArray, n: float) -> tuple[IntArray, IntArray, FloatArray]:
    """The ranks about (n + 1)p, and how far between them it lies."""
    rank = np.clip((n + 1.0) * levels, 1.0, max(np.floor(n), 1.0))
    low = np.floor(rank + 1e-9).astype(np.int64)
    share = np.maximum(rank - low, 0.0)
    return low, np.minimum(low + (share > 1e-9), int(max(n, 1))), share


def _weights(levels: FloatArray, n: float) -> FloatArray:
    """How much calibration rows say of each level; nothing where none may lie beyond."""
    beyond = (n + 1.0) * np.minimum(levels, 1.0 - levels)
    return np.where(beyond >= 1.0 - 1e-9, beyond / (beyond + _ROWS_OF_PRIOR), 0.0)


def _outward(
    stated: FloatArray,
    wanted: FloatArray,
    weight: FloatArray,
    anchor: tuple[float, float],
    ratio: float,
) -> FloatArray:
    """Places by distance from the median: what rows say of each, and going on as the last did."""
    mapped = np.empty(len(stated))
    for at in range(len(stated)):
        away = stated[at] - anchor[0]
        mapped[at] = weight[at] * wanted[at] + (1.0 - weight[at]) * (anchor[1] + ratio * away)
        if away != 0:
            ratio = (mapped[at] - anchor[1]) / away
    return mapped


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
    return (
        f"The given tail is unchanged at {far} levels that {n:g} calibration rows cannot reach.",
    )


# ---- isotonic recalibration: the levels of a law replaced by those that calibration rows obey ----

# PIT intervals below this width are points: a share within would be rounding.
_MIN_WIDTH = 1e-9


@final
@frozen
class Isotonic(RecalibrationMethod):
    """The quantile at level p becomes the one at the level that calibration rows show.

    With R the distribution function of the PIT values F_i(y_i) of the calibration rows, the new
    law is R(F(y)), and its quantile at p is F⁻¹(R⁻¹(p)). R rises, so it is its own isotonic fit,
    and quantiles keep their order. For laws with jumps, and for samples, R is the mean of the
    non-randomised PIT, so that a perfect law stays as it is. Source: Kuleshov, Fenner and Ermon
    (2018), "Accurate uncertainties for deep learning using calibrated regression", algorithm 1.

    Parameters
    ----------
    belief : {"distributions", "samples"}
        What is recalibrated; both become quantiles.
    levels : array-like of shape (k,)
        Rising levels of the quantiles.
    too_few : {"infinite", "error"}
        What to do with levels that the calibration rows, or the law itself, cannot reach: leave
        them out with a note, or refuse.

    Examples
    --------
    >>> y = np.array([-4.0, -1.0, 0.0, 1.0, 4.0])
    >>> held_out = EvalSet.checked(y, Distribution.normal(np.zeros(5), np.ones(5)))
    >>> fitted = Isotonic(levels=[0.2, 0.5, 0.8]).fit(held_out)
    >>> fitted.apply(held_out).predictions[0].values[0]
    array([-4.,  0.,  4.])
    """

    belief: str = Distribution.kind
    levels: npt.ArrayLike = DEFAULT_LEVELS
    too_few: TooFew = "infinite"

    @np.errstate(over="ignore", invalid="ignore")
    def fit(self, calibration: EvalSet) -> IsotonicRecalibrator:
        """Learn the levels from held-out rows.

        Raises
        ------
        InputError
            If no level can be reached.
        """
        prediction = prediction_of(calibration, kind_named(self.belief, SPREAD))
        lowest, highest, jumps = _reach(prediction)
        n, exact = effective_rows(calibration)
        plan = plan_levels(self.levels, n, self.too_few, exact=exact and not jumps)
        cdf_left, cdf = prediction.cdf_left(calibration.y), prediction.cdf(calibration.y)
        counts = calibration.multiplicities
        ends = [pit_knots(cdf_left, cdf, ranks, counts) for ranks in (plan.low, plan.high)]
        knots = (ends[0] + ends[1]) / 2.0
        reached = (knots >= lowest) & (knots <= highest)
        plan = plan.keep(
            reached, f"are beyond the range of the {self.belief} on calibration rows", self.too_few
        )
        return IsotonicRecalibrator(
            belief=self.belief,
            method="isotonic",
            parameters=plan.learnt("level", knots[reached]),
            guarantee=_words(n, exact=exact, jumps=jumps),
            notes=(*fit_notes(calibration), *plan.notes),
            fitted_to=signature(prediction),
        )


@final
@frozen(kw_only=True)
class IsotonicRecalibrator(TableRecalibrator):
    """Fitted `Isotonic`, or `Shape` of distributions; see `TableRecalibrator`."""

    def _quantiles(self, prediction: Distribution | Samples, learnt: FloatArray) -> FloatArray:
        return np.sort(prediction.quantile(learnt), axis=1)  # SciPy's may fall by a rounding


def pit_knots(
    left: FloatArray, right: FloatArray, ranks: IntArray, counts: FloatArray | None = None
) -> FloatArray:
    """Where the summed PIT function first reaches each rank.

    Source of the non-randomised PIT: Czado, Gneiting and Held (2009), "Predictive model
    assessment for count data", equation 2.
    """
    width = right - left
    wide = width > _MIN_WIDTH
    if not wide.any():
        return order_statistics(right, ranks, counts)
    weight = np.ones(len(left)) if counts is None else counts
    steep = weight[wide] / width[wide]
    knot = np.concatenate([left[wide], right[wide], right[~wide]])
    bend = np.concatenate([steep, -steep, np.zeros(int((~wide).sum()))])
    jump = np.concatenate([np.zeros(2 * len(steep)), weight[~wide]])
    order = np.argsort(knot, kind="stable")
    knot, bend, jump = knot[order], bend[order], jump[order]
    slope = np.r_[0.0, np.cumsum(bend)[:-1]]
    rise = slope * np.diff(knot, prepend=knot[0])
    after = np.cumsum(rise + jump)
    slack = 1e-9 * (float(weight.sum()) + 1.0)
    at = np.minimum(np.searchsorted(np.maximum.accumulate(after), ranks - slack), len(knot) - 1)
    missing = np.maximum(after[at] - jump[at] - ranks, 0.0)
    overshoot = np.divide(missing, slope[at], out=np.zeros(len(at)), where=slope[at] > 0)
    return np.asarray(np.clip(knot[at] - overshoot, 0.0, 1.0))


def _reach(prediction: Prediction) -> tuple[float, float, bool]:
    """Lowest and highest level that has a finite quantile, and whether the law has jumps."""
    if isinstance(prediction, Samples):
        size = prediction.size
        return 1.0 / (size + 1) - 1e-12, size / (size + 1) + 1e-12, True
    discrete = isinstance(prediction, Distribution) and prediction.discrete
    return float(np.nextafter(0.0, 1.0)), float(np.nextafter(1.0, 0.0)), discrete


def _words(n: float, *, exact: bool, jumps: bool) -> str:
    if exact and not jumps:
        return level_words(n, "PIT values") + "."
    return (
        f"Approximate: the mean PIT of {n:g} calibration rows is made uniform; no finite-sample "
        "guarantee."
    )


# ---- cRUDE: the calibration rows' own z-scores as the standardised law ---------------------------


@final
@frozen
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
    >>> fitted.apply(held_out).predictions[0].values[0]
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
        prediction = prediction_of(calibration, kind_named(self.belief, SPREAD))
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
            guarantee=_crude_words(n, exact=exact, shift=self.shift),
            notes=(*fit_notes(calibration), *plan.notes),
            fitted_to=signature(prediction),
        )


@final
@frozen(kw_only=True)
class CrudeRecalibrator(TableRecalibrator):
    """Fitted `Crude`; see `TableRecalibrator`."""

    def _quantiles(self, prediction: Distribution | Samples, learnt: FloatArray) -> FloatArray:
        mean = prediction.point() + self.parameters[0].value
        return np.asarray(mean[:, None] + prediction.sd()[:, None] * learnt)


def _crude_words(n: float, *, exact: bool, shift: bool) -> str:
    if exact and not shift:
        return level_words(n, "z-scores") + "."
    return (
        f"Approximate: quantiles of {n:g} calibration z-scores"
        + (", after subtracting their mean error" if shift else "")
        + "; no finite-sample guarantee."
    )


METHODS = (
    MethodInfo(
        name="shape",
        kinds=CENTRAL_KINDS,
        make=lambda kind, options: Shape(kind, options.levels),
        saves=(IsotonicRecalibrator, ShapedColumns),
        gives="levels",
        label="using its shape",
        words="map predicted probabilities to observed frequencies",
        complexity=3,
        aims=SHAPE,
    ),
    MethodInfo(
        name="isotonic",
        kinds=SPREAD_KINDS,
        make=lambda kind, options: Isotonic(kind, options.levels, options.too_few),
        saves=(IsotonicRecalibrator,),
        gives="quantiles",
        label="using its PIT",
    ),
    MethodInfo(
        name="crude",
        kinds=SPREAD_KINDS,
        make=lambda kind, options: Crude(kind, options.levels, too_few=options.too_few),
        saves=(CrudeRecalibrator,),
        gives="quantiles",
        label="using its z-scores",
    ),
)
