"""Tail calibration: is y beyond a threshold as often, and as far, as predictions state?

Whether y lies beyond (occurrence) is judged apart from how far (severity), and both together.
S. Allen, J. Koh, J. Segers and J. Ziegel (2024), Tail calibration of probabilistic forecasts,
arXiv:2407.03167.

Weights are multiplicities: a weight of two is a row twice.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, as_vector
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.formats import level
from howsure.core.records import UNIT, Axis, Curve, Direction, Layout
from howsure.core.weights import check_multiplicities
from howsure.engine.measure import Evaluation
from howsure.engine.metric import (
    POSITIVE,
    Array,
    Laws,
    Metric,
    Question,
    Topic,
    estimated,
)
from howsure.engine.view import View
from howsure.predictions import Distribution, Prediction, Samples
from howsure.stats.ecdf import grid_sums
from howsure.stats.estimate import Estimate, NormNoise, spread_of, weighted_mean
from howsure.topics.tails import (
    SHARE_INSIDE,
    SIDES,
    Side,
    check_beyond,
    tail_start,
    threshold_told,
)

# 95 %, as all ranges.
_Z_95 = float(special.ndtri(0.975))
_HALF = (1.0 - SHARE_INSIDE) / 2.0  # of a tail


class Beyond(NamedTuple):
    """Rows and a threshold: what happened, and what was stated of it."""

    happened: BoolArray  # shape (n,): whether y lies beyond
    stated: FloatArray  # shape (n,): the stated probability of it
    # shape (n,): of y beyond, the stated share of what lies beyond and no farther out; else NaN
    pit: FloatArray
    left: FloatArray  # shape (n,): as pit, of what lies less far out than y
    draws: int = 0  # samples a row that the probability is estimated from; 0 where it is stated


def beyond(
    y: npt.ArrayLike, prediction: Prediction, *, threshold: float, side: Side = "right"
) -> Beyond:
    """What happened beyond a threshold, and what predictions stated of it.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    prediction : Prediction
        Distributions or samples of n rows.
    threshold : float
        t, in the units of y.
    side : {"right", "left"}
        Whether y > t or y < t is beyond.

    Returns
    -------
    Beyond
        `happened`, 1{y > t}; `stated`, 1 − F(t); and of rows with y > t `pit`, the conditional PIT
        (F(y) − F(t))/(1 − F(t)), and `left`, where a jump of F at y begins, else NaN. Of samples
        these are the place of y among the draws beyond, which any has alike if all have one law.

    Raises
    ------
    InputError
        If lengths differ, the threshold is not finite, the side is unknown, or the prediction is
        of another kind.

    Examples
    --------
    >>> from howsure import Distribution
    >>> beyond([0.0, 2.0], Distribution.normal([0.0, 0.0], [1.0, 1.0]), threshold=1.0).stated
    array([0.1587, 0.1587])
    """
    truth = as_vector(y, "y", length=prediction.n)
    if not math.isfinite(threshold):
        raise InputError(f"threshold must be finite, got {threshold!r}")
    if side not in SIDES:
        raise InputError(f"side must be 'left' or 'right', got {side!r}")
    right = side == "right"
    happened = np.asarray(truth > threshold if right else truth < threshold)
    rows = np.flatnonzero(happened)
    pit, left = np.full((2, len(truth)), np.nan)
    if isinstance(prediction, Samples):
        table = prediction.sorted_samples
        outside = table > threshold if right else table < threshold
        draws, at = table[rows], truth[rows, None]
        places = outside[rows].sum(axis=1) + 1.0
        nearer = (outside[rows] & (draws < at if right else draws > at)).sum(axis=1)
        left[rows] = nearer / places
        pit[rows] = (nearer + 1.0 + (draws == at).sum(axis=1)) / places
        return Beyond(happened, outside.mean(axis=1), pit, left, prediction.size)
    if not isinstance(prediction, Distribution):
        kind = prediction.kind if isinstance(prediction, Prediction) else repr(prediction)
        raise InputError(f"prediction must be distributions or samples, got {kind}")
    start = np.full(len(truth), float(threshold))
    stated = 1.0 - prediction.cdf(start) if right else prediction.cdf_left(start)
    if len(rows):
        here, at = prediction.take(rows), truth[rows]
        no_less_far = 1.0 - here.cdf_left(at) if right else here.cdf(at)
        farther = 1.0 - here.cdf(at) if right else here.cdf_left(at)
        for ends, share in ((pit, farther), (left, no_less_far)):
            with np.errstate(divide="ignore", invalid="ignore"):
                ends[rows] = np.clip(1.0 - share / stated[rows], 0.0, 1.0)
            ends[rows[stated[rows] <= 0.0]] = 1.0
    return Beyond(happened, stated, pit, left)


def tail_occurrence(
    happened: npt.ArrayLike,
    stated: npt.ArrayLike,
    *,
    draws: int = 0,
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """How many times as often as stated y lies beyond a threshold (occurrence ratio).

    Σ 1{y > t} / Σ (1 − F(t)). Above 1 extremes are more frequent than stated; 1 is right.

    Parameters
    ----------
    happened : array-like of bool, shape (n,)
        Whether y lies beyond.
    stated : array-like of shape (n,)
        The stated probability of it, in [0, 1].
    draws : int
        How many samples the probability is a share of; 0 where it is stated itself.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        With influence (1{y > t} − ratio (1 − F(t))) / mean (1 − F(t)). Its p and range hold for
        independent rows: normal, with variance Σ p(1 − p), times (m + 1)/(m − 1) for m samples.

    Raises
    ------
    InputError
        If lengths differ, or a probability leaves [0, 1].
    UnanswerableError
        If fewer than ten rows are beyond, or none has a stated probability above 0.

    Notes
    -----
    Allen, Koh, Segers and Ziegel (2024), the occurrence ratio.

    Examples
    --------
    >>> told = tail_occurrence([True] * 20 + [False] * 80, [0.1] * 100)
    >>> told.value, round(told.p, 4)
    (2.0, 0.0009)
    """
    is_beyond, claims, w = _checked(happened, stated, weights)
    count, expected = _sum(is_beyond, w), _sum(claims, w)
    ratio = count / expected
    spread = _of_draws(draws) * math.sqrt(_sum(claims * (1.0 - claims), w)) / expected
    return Estimate(
        ratio,
        (is_beyond - ratio * claims) / weighted_mean(claims, w),
        p=_two_sided(ratio - 1.0, spread),
        null_lower=max(1.0 - _Z_95 * spread, 0.0),
        null_upper=1.0 + _Z_95 * spread,
        details={"rows_beyond": count},
    )


def tail_severity(
    happened: npt.ArrayLike,
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """How far beyond a threshold y lies where it does, against what was stated (severity).

    Mean conditional PIT of rows beyond, less ½. Above 0 extremes are farther out than stated,
    below 0 less far; 0 is right.

    Parameters
    ----------
    happened : array-like of bool, shape (n,)
        Whether y lies beyond.
    pit : array-like of shape (n,)
        Of rows beyond, the conditional PIT (F(y) − F(t))/(1 − F(t)); others are not looked at.
    left : array-like of shape (n,), optional
        Where a jump at y begins, for discrete distributions and samples; its middle counts.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        With influence 1{y > t} (PIT − mean) / share beyond. Its p and range hold for independent
        rows: normal, with the variance 1/(12 m) of a mean of m uniform values.

    Raises
    ------
    InputError
        If lengths differ, or a PIT leaves [0, 1].
    UnanswerableError
        If fewer than ten rows are beyond, or each could only have one value there.

    Notes
    -----
    Allen, Koh, Segers and Ziegel (2024): the conditional PIT is uniform where the tail is right.

    Examples
    --------
    >>> told = tail_severity([True] * 12, [0.9] * 12)
    >>> told.value, told.p < 0.01
    (0.4, True)
    """
    is_beyond, _, w = _checked(happened, None, weights)
    high = _check_pit(pit, is_beyond)
    low = high if left is None else _check_pit(left, is_beyond)
    if (high - low >= is_beyond).all():
        raise UnanswerableError("predictions state a single value beyond the threshold")
    places, count = 0.5 * (high + low), _sum(is_beyond, w)
    mean = _sum(is_beyond * places, w) / count
    spread = 1.0 / math.sqrt(12.0 * count)
    return Estimate(
        mean - 0.5,
        is_beyond * (places - mean) / weighted_mean(is_beyond, w),
        p=_two_sided(mean - 0.5, spread),
        null_lower=max(-_Z_95 * spread, -0.5),
        null_upper=min(_Z_95 * spread, 0.5),
        details={"rows_beyond": count},
    )


def tail_miscalibration(
    happened: npt.ArrayLike,
    stated: npt.ArrayLike,
    pit: npt.ArrayLike,
    *,
    left: npt.ArrayLike | None = None,
    draws: int = 0,
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """How far the combined ratio of a tail departs from the diagonal, at most.

    max over u of |R(u) − u| with R(u) = Σ 1{y > t, PIT ≤ u} / Σ (1 − F(t)), which tells occurrence
    and severity at once. Lower is better; 0 is right, and chance makes it larger.

    Parameters
    ----------
    happened : array-like of bool, shape (n,)
        Whether y lies beyond.
    stated : array-like of shape (n,)
        The stated probability of it, in [0, 1].
    pit : array-like of shape (n,)
        Of rows beyond, the conditional PIT; others are not looked at.
    left : array-like of shape (n,), optional
        Where a jump at y begins, for discrete distributions and samples; a row is then spread
        evenly over it.
    draws : int
        How many samples the probability is a share of; 0 where it is stated itself.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        With the influence of R at the u that is farthest off. Its p and range hold for independent
        rows and thresholds that few rows pass: those of the maximum of a Brownian motion on [0, 1],
        over √Σ (1 − F(t)). They err on the safe side, as a share has less variance than a count.

    Raises
    ------
    InputError
        If lengths differ, or a value leaves [0, 1].
    UnanswerableError
        If fewer than ten rows are beyond, or none has a stated probability above 0.

    Notes
    -----
    Allen, Koh, Segers and Ziegel (2024), the combined ratio.

    Examples
    --------
    >>> tail_miscalibration([True] * 10, [1.0] * 10, [0.5] * 10).value
    0.5
    """
    is_beyond, claims, w = _checked(happened, stated, weights)
    high, rows = _check_pit(pit, is_beyond), np.flatnonzero(is_beyond)
    low = high if left is None else _check_pit(left, is_beyond)
    expected = _sum(claims, w)
    levels = np.unique(np.concatenate([low[rows], high[rows], [1.0]]))
    mass = None if w is None else w[rows]
    after = grid_sums(low[rows], high[rows], levels, mass) / expected
    points = rows[low[rows] == high[rows]]  # which make a jump
    jumps = np.bincount(
        np.searchsorted(levels, high[points]),
        weights=None if w is None else w[points],
        minlength=len(levels),
    )
    before = after - jumps / expected
    off = np.append(after, before) - np.tile(levels, 2)
    worst = int(np.argmax(np.abs(off)))
    at, value, sign = np.tile(levels, 2)[worst], abs(off[worst]), np.sign(off[worst])
    width = high - low
    inside = np.where(width > 0.0, (at - low) / np.where(width > 0.0, width, 1.0), 0.0)
    inside = np.clip(inside, 0.0, 1.0)
    reached = high <= at if worst < len(levels) else high < at
    inside[width == 0.0] = reached[width == 0.0]
    influence = sign * (is_beyond * inside - (off[worst] + at) * claims) / weighted_mean(claims, w)
    scale = _of_draws(draws) / math.sqrt(expected)
    norms = scale * _motion_quantiles()
    return Estimate(
        float(value),
        influence,
        p=_motion_exceeds(float(value) / scale),
        null=scale * math.sqrt(math.pi / 2.0),
        null_lower=float(np.quantile(norms, 0.025)),
        null_upper=float(np.quantile(norms, 0.975)),
        noise=NormNoise(norms, lambda most: value - most),
        details={
            "farthest_at": round(float(at), 2),
            "rows_beyond": _sum(is_beyond, w),
        },
    )


def _checked(
    happened: npt.ArrayLike, stated: npt.ArrayLike | None, weights: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Rows beyond as 1, stated probabilities, and multiplicities."""
    is_beyond = as_vector(np.asarray(happened, dtype=np.float64), "happened")
    w = check_multiplicities(weights, len(is_beyond))
    check_beyond(is_beyond > 0.0, w)
    if stated is None:
        return is_beyond, is_beyond, w
    claims = as_vector(stated, "stated", length=len(is_beyond))
    if not ((claims >= 0.0) & (claims <= 1.0)).all():
        raise InputError(f"stated must be in [0, 1], got {claims.min():g} to {claims.max():g}")
    if not _sum(claims, w) > 0.0:
        raise UnanswerableError("predictions give no row a probability beyond the threshold")
    return is_beyond, claims, w


def _check_pit(pit: npt.ArrayLike, is_beyond: FloatArray) -> FloatArray:
    """The conditional PIT of rows beyond, and 0 of others."""
    pits = np.asarray(pit, dtype=np.float64)
    if pits.shape != is_beyond.shape:
        raise InputError(f"pit must have {len(is_beyond)} entries, got shape {pits.shape}")
    places = np.where(is_beyond > 0.0, pits, 0.0)
    if not ((places >= 0.0) & (places <= 1.0)).all():
        row = int(np.argmin((places >= 0.0) & (places <= 1.0)))
        raise InputError(f"pit must be in [0, 1] beyond the threshold, got {pits[row]:g}")
    return places


def _sum(values: FloatArray, w: FloatArray | None) -> float:
    return float(values.sum() if w is None else w @ values)


def _of_draws(draws: int) -> float:
    """By what a share of draws, and not its law, adds to a standard deviation."""
    return math.sqrt((draws + 1.0) / (draws - 1.0)) if draws > 1 else 1.0


def _two_sided(off: float, spread: float) -> float:
    if spread > 0.0:
        return float(2.0 * special.ndtr(-abs(off) / spread))
    return 0.0 if off else 1.0  # all is stated for certain


def _motion_exceeds(most: float) -> float:
    """Probability that a Brownian motion on [0, 1] strays that far from 0 (Feller II, X.5)."""
    if most < 0.1:
        return 1.0
    if most < 1.0:
        odd = 2.0 * np.arange(5) + 1.0
        signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
        inside = 4.0 / math.pi * (signs / odd) @ np.exp(-np.square(math.pi * odd / most) / 8.0)
        return float(1.0 - inside)
    turns = np.arange(1, 8)  # by reflection: the series above has too few terms farther out
    tails = special.ndtr(-most * (2.0 * turns - 1.0))
    return float(4.0 * (np.where(turns % 2, 1.0, -1.0) @ tails))


@lru_cache(maxsize=1)
def _motion_quantiles() -> FloatArray:
    """Evenly spaced quantiles of the greatest distance of a Brownian motion on [0, 1] from 0."""
    # A motion stays within .2 with chance 5 · 10⁻¹⁴ and passes 6 with 4 · 10⁻⁹. Between the places
    # and at 2,000 levels a straight line is right to more digits than a p-value has.
    grid = np.linspace(0.2, 6.0, 1_000)
    below = 1.0 - np.array([_motion_exceeds(float(most)) for most in grid])
    levels = (np.arange(2_000) + 0.5) / 2_000
    return np.asarray(np.interp(levels, below, grid))


def _beyond(side: Side, view: View, _: float) -> Beyond:
    """Beyond where the tail of y begins."""
    prediction = _stating(view)
    view.note_source(f"beyond_{side}", prediction.kind)
    start: float = view.get(f"threshold_{side}")
    return beyond(view.evalset.y, prediction, threshold=start, side=side)


def _nearby(side: Side, view: View, _: float) -> tuple[Beyond, Beyond]:
    """Beyond one half more of the tail of y, and one half less."""
    prediction, y, w = _stating(view), view.evalset.y, view.evalset.multiplicities
    starts = (tail_start(y, side, SHARE_INSIDE + step, w) for step in (-_HALF, _HALF))
    more, less = (beyond(y, prediction, threshold=start, side=side) for start in starts)
    return more, less


def _stating(view: View) -> Prediction:
    """The prediction that states how likely y lies beyond a threshold."""
    prediction = view.find_prediction(Distribution) or view.find_prediction(Samples)
    if prediction is None:
        raise UnanswerableError(
            "only distributions and samples give the probability that y is beyond a threshold"
        )
    return prediction


def _measured(side: Side, measure: str, view: View, _: float) -> Estimate:
    """One measure of a tail; of rows that depend, its p by their own errors."""
    rows: Beyond = view.get(f"beyond_{side}")
    view.note_source(f"tail_{measure}_{side}", view.source([f"beyond_{side}"]))
    evalset, w = view.evalset, view.evalset.multiplicities
    if measure == "occurrence":
        estimate = tail_occurrence(rows.happened, rows.stated, draws=rows.draws, weights=w)
    elif measure == "severity":
        estimate = tail_severity(rows.happened, rows.pit, left=rows.left, weights=w)
    else:
        estimate = tail_miscalibration(*rows[:3], left=rows.left, draws=rows.draws, weights=w)
    plain = estimate.influence  # that of a correctly specified model: its ratio has no slope
    if measure != "severity":
        estimate = _with_threshold(view, side, rows, estimate)
    details = {**threshold_told(view, side), **estimate.details}
    if evalset.units is None:
        return replace(estimate, details=details)
    p, nan = math.nan, math.nan
    if measure != "miscalibration" and plain is not None:
        off = estimate.value - (1.0 if measure == "occurrence" else 0.0)
        p = spread_of(plain, evalset.weights, evalset.units).p(off)
    return replace(estimate, details=details, p=p, null=nan, null_lower=nan, null_upper=nan)


def _with_threshold(view: View, side: Side, rows: Beyond, estimate: Estimate) -> Estimate:
    """With what the chance of the threshold itself adds to the influence.

    A row more beyond moves it out, and with it the ratio by its slope in the share of y inside,
    which is taken from one half more and one half less of the tail.
    """
    w = view.evalset.multiplicities
    assert estimate.influence is not None
    farthest = estimate.details.get("farthest_at")
    level = 1.0 if farthest is None else float(farthest)
    more, less = (_ratio(each, level, w) for each in view.get(f"beyond_nearby_{side}"))
    slope = (less - more) / (2.0 * _HALF)
    # what is farthest off the diagonal may be so below it
    sign = 1.0 if farthest is None else math.copysign(1.0, _ratio(rows, level, w) - level)
    happened = rows.happened.astype(np.float64)
    moved = estimate.influence + sign * slope * (happened - weighted_mean(happened, w))
    sizes = [weighted_mean(np.square(each), w) for each in (estimate.influence, moved)]
    # few rows tell little of a slope: it may lengthen an interval, and not shorten it
    return replace(estimate, influence=moved) if sizes[1] > sizes[0] else estimate


def _ratio(rows: Beyond, level: float, w: FloatArray | None) -> float:
    """The combined ratio at a level."""
    claim = weighted_mean(rows.stated, w)
    width = np.where(rows.pit > rows.left, rows.pit - rows.left, 1.0)
    inside = np.where(rows.pit > rows.left, (level - rows.left) / width, rows.pit <= level)
    reached = np.where(rows.happened, np.clip(inside, 0.0, 1.0), 0.0)
    return weighted_mean(reached, w) / claim if claim > 0.0 else math.nan


def _combined(side: Side, evaluation: Evaluation, confidence: float) -> list[Curve]:
    """The combined ratio of a tail, in a band that a right model keeps to at all u at once."""
    view, evalset = evaluation.view, evaluation.evalset
    if f"tail_miscalibration_{side}" not in view.slow:  # pages stay small
        return []
    rows: Beyond = view.get(f"beyond_{side}")
    is_beyond, claims, w = _checked(rows.happened, rows.stated, evalset.multiplicities)
    chosen, levels = np.flatnonzero(is_beyond), np.linspace(0.0, 1.0, 101)
    expected = _sum(claims, w)
    mass = None if w is None else w[chosen]
    ratio = grid_sums(rows.left[chosen], rows.pit[chosen], levels, mass) / expected
    scale = _of_draws(rows.draws) / math.sqrt(expected)
    reach = scale * float(np.quantile(_motion_quantiles(), confidence))
    independent = evalset.units is None
    return [
        Curve(
            name=f"tail_calibration_{side}",
            x=levels.round(2),  # short numbers, for small files
            y=ratio.round(4),
            lower=np.maximum(levels - reach, 0.0).round(4) if independent else None,
            upper=(levels + reach).round(4) if independent else None,
            reference=levels.round(2),
            x_label="Conditional PIT",
            y_label="Combined ratio",
            band=f"{level(confidence)} simultaneous band of a perfect model",
            model=evalset.model,
        )
    ]


_entry = partial(
    Metric,
    question=Question.TAILS,
    source="Allen, Koh, Segers and Ziegel 2024",
    direction=Direction.TARGET,
    merges="rows",
)
_OF_THESE = "The threshold is a quantile of these y: other rows have another threshold."


def _of_tail(side: Side, measure: str, **more: Any) -> Metric:
    name, other = f"tail_{measure}_{side}", "left" if side == "right" else "right"
    laws = Laws(reflection=f"tail_{measure}_{other}")
    return _entry(name=name, forms=(estimated(name),), laws=laws, **more)


def _of_side(side: Side) -> tuple[Metric, ...]:
    entry = partial(_of_tail, side)
    where, sign = ("above the 90 %", ">") if side == "right" else ("below the 10 %", "<")
    stated = "P(Y > t)" if side == "right" else "P(Y < t)"
    return (
        entry(
            "occurrence",
            title=f"Occurrence ratio of the {side} tail",
            synonyms=(f"occurrence of extremes, {side}",),
            meaning=(
                f"How many times as often as predicted y is {where} quantile of y: above 1, "
                "extremes are more frequent than predicted."
            ),
            formula=f"Σ 1{{y {sign} t}} / Σ {stated}",
            standard_normal=1.0,
            target=1.0,
            bounds=POSITIVE,
            beware=f"It ignores how extreme they are: read it with the severity. {_OF_THESE}",
        ),
        entry(
            "severity",
            title=f"Severity of the {side} tail",
            synonyms=(f"severity of extremes, {side}", f"conditional PIT of the {side} tail"),
            meaning=(
                f"How extreme y is {where} quantile of y: the mean conditional PIT less ½, above 0 "
                "where extremes are farther out than predicted."
            ),
            formula=f"½ − mean of {stated.replace('t)', 'y)')} / {stated}, rows with y {sign} t",
            standard_normal=0.0,
            target=0.0,
            bounds=(-0.5, 0.5),
            beware="It ignores how frequent they are: read it with the occurrence ratio. "
            f"{_OF_THESE}",
        ),
        entry(
            "miscalibration",
            title=f"Miscalibration of the {side} tail",
            synonyms=(f"combined ratio of the {side} tail", f"tail calibration, {side}"),
            meaning=(
                "Largest departure from the diagonal of the combined ratio of occurrence and "
                f"severity {where} quantile of y."
            ),
            formula=f"max_u |Σ 1{{y {sign} t, PIT ≤ u}} / Σ {stated} − u|, PIT given y {sign} t",
            direction=Direction.LOWER,
            standard_normal=0.0,
            target=0.0,
            bounds=POSITIVE,
            beware=(
                f"It is above 0 by chance: compare it with its reference. {_OF_THESE} Its figure "
                "is shown if it is requested by name."
            ),
        ),
    )


_MEASURES = ("occurrence", "severity", "miscalibration")

TOPIC = Topic(
    entries=tuple(entry for pair in zip(*map(_of_side, SIDES), strict=True) for entry in pair),
    arrays=(
        *(Array(f"beyond_{side}", partial(_beyond, side)) for side in SIDES),
        *(Array(f"beyond_nearby_{side}", partial(_nearby, side)) for side in SIDES),
        *(
            Array(f"tail_{measure}_{side}", partial(_measured, side, measure))
            for measure in _MEASURES
            for side in SIDES
        ),
    ),
    curves=tuple(partial(_combined, side) for side in SIDES),
    label="Tails",
    layouts={
        f"tail_calibration_{side}": Layout(
            order=4,
            question=f"Is y in the {side} tail as often and as far out as predicted?",
            title=f"Calibration of the {side} tail",
            reading=(
                f"For y {where} quantile of y: the height at 1 is how many times as often as "
                "predicted y is there. A curve that sags below a straight line to its end means "
                "that y is farther out than predicted."
            ),
            banded="A departure from the diagonal inside the shaded band may be chance.",
            x=Axis(title="Conditional PIT", domain=UNIT),
            y=Axis(title="Combined ratio", zero=True),
            reference="perfect calibration",
            band_about="reference",
            band="simultaneous band",
            read_at=1.0,
        )
        for side, where in (("left", "below the 10 %"), ("right", "above the 90 %"))
    },
)
