"""A correction after a fault: fitted to the rows since, and monitored in turn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Self, final

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import checked, json_number, plain, restored
from howsure.core.errors import InputError
from howsure.core.formats import fixed, number
from howsure.core.labels import Categories
from howsure.core.registry import check_known
from howsure.core.times import MIN_TIMES
from howsure.engine.catalogue import catalogue
from howsure.engine.finding import SharedScore, between
from howsure.engine.measure import Evaluation, evaluate
from howsure.predictions import EvalSet
from howsure.predictions.evalset import lone
from howsure.recalibration import FittedRecalibration
from howsure.recalibration.dispatch import method_of
from howsure.recalibration.location_scale import FRAMED, LocationScale, moved
from howsure.report.recalibrate import recalibrate
from howsure.topics.shared import scored, shared_by_all
from howsure.verdict import words
from howsure.verdict.advice import try_recalibrations
from howsure.watch.ledger import DayScores
from howsure.watch.promise import Promise
from howsure.watch.quantities import larger_worth, row_counts, watched, worth_of_rows
from howsure.watch.running import Running, ShadowGain, running_of
from howsure.watch.selected import Strata


@final
@frozen(kw_only=True)
class Correction:
    """A recalibration in use, and what is monitored afterwards.

    Attributes
    ----------
    after : int
        The last uncorrected day; predictions of later days are corrected.
    method : str
        As in `howsure.recalibration.METHODS`, or ``running``; empty if a correction has ended.
    rows : int
        Rows that it was fitted to.
    advice : str
        The recalibration, and its gain on held-out rows.
    gain, lower, upper : float
        By which share the score fell on these, with its 95 % interval.
    promise : Promise
        What is monitored of the corrected predictions.
    fitted : FittedRecalibration
        The fitted recalibration.
    score : SharedScore
        The score that compares original and corrected predictions.
    """

    after: int
    method: str
    rows: int
    advice: str
    gain: float
    lower: float
    upper: float
    promise: Promise
    fitted: FittedRecalibration
    score: SharedScore

    @property
    def factor(self) -> float:
        """By which half-widths are multiplied at first, if it runs on; else NaN."""
        running = self.promise.running
        return running.factor if self.method == RUNNING and running is not None else math.nan

    @property
    def sentence(self) -> str:
        """The result in words."""
        return (
            f"{'Corrected' if self.method else 'Correction ended'} after "
            f"{self.promise.day_in_words(self.after)}, using {self.rows:,} rows since the change: "
            f"{self.advice} Monitoring restarts."
        )

    def apply(self, rows: EvalSet, factors: FloatArray | None = None) -> EvalSet:
        """Rows with their predictions corrected; by a factor a row where the correction runs on."""
        if factors is None:
            return self.fitted.apply(rows).evalset
        return stretched(rows, factors)

    def scores(self, before: EvalSet, after: EvalSet, days: IntArray) -> list[DayScores]:
        """Of each day: rows, and sums of the score of predictions as they are and corrected."""
        scores = [scored(_evaluated(rows), self.score) for rows in (before, after)]
        if any(isinstance(rows, str) for rows in scores):
            return []
        counts = row_counts(before)
        dates, codes = np.unique(days, return_inverse=True)
        sums = [np.bincount(codes, weights=counts * rows) for rows in (np.ones(before.n), *scores)]
        return [(int(day), *totals) for day, totals in zip(dates, np.transpose(sums), strict=True)]

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return dict(plain({**values, "fitted": self.fitted.to_json()}, json_number))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `as_dict` made."""
        fitted = FittedRecalibration.from_json(checked(values.get("fitted"), str, "fitted"))
        correction: Self = restored({**values, "fitted": fitted}, cls, "correction")
        check_known(correction.score.metric, catalogue(), "score of the correction")
        return correction


def learn(
    rows: EvalSet,
    days: IntArray,
    promise: Promise,
    *,
    after: int,
    present: Correction | None,
) -> Correction:
    """The correction that is proven to help on folds of some rows that it did not learn from.

    Where none is, and one is in use, it ends.

    Raises
    ------
    InputError
        If none is, and none is in use.
    """
    if rows.series is None and promise.row_id and not promise.recurring:  # new things each day
        places = np.arange(rows.n)
        rows = replace(rows, series=Categories(places, places))
    trials = try_recalibrations(rows)
    advice = trials.advice
    if advice is None or not advice.method:
        if present is not None and present.method:
            return _ended(rows, days, promise, after, present)
        why = f": {advice.sentence}" if advice is not None and advice.sentence else ""
        if rows.series is None and lone(rows, np.unique(days, return_inverse=True)[1], None):
            why = (
                f": equally many rows per day may be series, and need {MIN_TIMES} days, "
                "unless the reference has a series column (series)"
            )
        raise InputError(
            f"the rows must show a fault that a recalibration corrects; none of those tried on "
            f"{rows.n:,} rows since {promise.day_in_words(int(days.min()))} gave a significant "
            f"improvement{why}"
        )
    since = advice.since or None
    done = recalibrate(rows, rows, method=advice.method, by=advice.by or None, since=since)
    return Correction(
        after=after,
        method=advice.method,
        rows=rows.n,
        advice=words.step(
            advice,
            done.recalibrators[0].parameters,
            trials.lifted,
            method_of(done.recalibrators[0].belief, advice.method),
        ),
        gain=advice.gain,
        lower=advice.lower,
        upper=advice.upper,
        promise=_promised(replace(done.evalset, model=rows.model), days, promise),
        fitted=done.fitted,
        score=_shared_score(rows, done.evalset),
    )


def go_on(
    rows: EvalSet,
    days: IntArray,
    promise: Promise,
    *,
    after: int,
    running: Running | None,
    gain: ShadowGain | None,
) -> Correction:
    """The correction that runs on, from where it stands; of rows since the change.

    Raises
    ------
    InputError
        If it is not proven better than none.
    """
    if running is None or gain is None:
        raise InputError("running needs intervals with a nominal coverage, and evaluated days")
    if not gain.offered:
        raise InputError(
            "a running correction must have a significant gain; after "
            f"{gain.days:,} days the gain is {100.0 * gain.value:.1f} % and not significant"
        )
    corrected = stretched(rows, np.full(rows.n, running.factor))
    span = between(100.0 * gain.low, 100.0 * gain.high, 1)
    return Correction(
        after=after,
        method=RUNNING,
        rows=rows.n,
        advice=f"multiply half-widths by a running factor, now {number(running.factor, 3)}. "
        f"So far the interval score would have been {fixed(100.0 * gain.value, 1)} %{span} lower.",
        gain=gain.value,
        lower=gain.low,
        upper=gain.high,
        promise=replace(_promised(corrected, days, promise), running=running),
        fitted=FittedRecalibration(),
        score=_shared_score(rows, corrected),
    )


def _shared_score(before: EvalSet, after: EvalSet) -> SharedScore:
    """The score that is the same of predictions as they are and corrected."""
    shared = shared_by_all([_evaluated(before), _evaluated(after)])
    if shared is None:
        raise InputError("the rows must have a score that applies before and after the correction")
    return shared.score


def stretched(rows: EvalSet, factors: FloatArray) -> EvalSet:
    """Rows whose predictions are stretched about their middle, each by its factor."""
    predictions = (
        moved(prediction, LocationScale.of(prediction), np.zeros(rows.n), factors)
        for prediction in rows.predictions
        if isinstance(prediction, FRAMED)
    )
    return replace(rows, predictions=tuple(predictions))


RUNNING = "running"
"""The method of a correction that runs on."""


def _ended(
    rows: EvalSet, days: IntArray, promise: Promise, after: int, present: Correction
) -> Correction:
    """Predictions as they are, where these are better than those of the correction in use."""
    scores = np.array(present.scores(rows, present.apply(rows), days))
    gain, lower, upper = gained(scores[:, [1, 3, 2]]) if len(scores) else (math.nan,) * 3
    if not lower > 0:
        raise InputError(
            "the rows must show a fault that a recalibration corrects, or that the current "
            f"correction is worse than none; in {rows.n:,} rows neither is significant"
        )
    span = between(100.0 * lower, 100.0 * upper, 1)
    return replace(
        present,
        after=after,
        method="",
        rows=rows.n,
        advice=f"without it the {present.score.title} is {fixed(100.0 * gain, 1)} % lower{span}.",
        gain=gain,
        lower=lower,
        upper=upper,
        promise=_promised(rows, days, promise),
        fitted=FittedRecalibration(),
    )


def _promised(rows: EvalSet, days: IntArray, promise: Promise) -> Promise:
    """The promise of rows that are corrected."""
    numbers = watched(rows, promise.coverage, promise.tolerance, promise.usual, promise.centre)
    worth = worth_of_rows(rows, days, numbers)
    return replace(
        promise,
        running=running_of(rows, promise.coverage, promise.mature),
        quantities=numbers.names,
        bounds=numbers.bounds,
        rows=rows.n,
        days=len(np.unique(days)),
        worth=larger_worth(promise.worth, worth),
        strata=None if promise.strata is None else Strata.learnt(rows, promise.coverage, numbers),
        flaw="",
    )


def _evaluated(rows: EvalSet) -> Evaluation:
    return evaluate(rows, metrics=("crps", "mae"))


def gained(scores: FloatArray) -> tuple[float, float, float]:
    """By which share a correction lowered the score, from sums of days (rows, before, after).

    Days are units, so that rows of a day may depend.
    """
    _, before, after = scores.T
    gain = 1.0 - after.sum() / before.sum()
    residuals = (1.0 - gain) * before - after
    n = len(scores)
    if n < 2:
        return float(gain), math.nan, math.nan
    error = math.sqrt(n / (n - 1.0) * float(np.square(residuals).sum())) / float(before.sum())
    reach = float(special.stdtrit(n - 1.0, 0.975)) * error
    return float(gain), float(gain) - reach, float(gain) + reach
