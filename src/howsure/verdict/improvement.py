"""Recalibrate until nothing is proven wrong: some rows teach, those held back only prove.

The rows are split once. Those that teach advise a recalibration, by cross-fitting; it is fitted on
all of them, and counts only where the rows held back confirm it. Then the teaching rows, as a
recalibration leaves them that was fitted on other folds, are asked again. What is tried, and in
which order, thus hangs on the teaching rows alone, and the first step that is not confirmed ends
it. So it is a fixed sequence of tests (Maurer, Hothorn and Lehmacher 1995): the chance that any
step is confirmed that helps nothing is that of one test, whatever the number of looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.progress import report_progress
from howsure.core.rng import row_hashes, row_uniforms
from howsure.core.threads import one_thread
from howsure.engine.finding import Finding
from howsure.engine.metric import MISS_RANGE
from howsure.engine.view import View
from howsure.predictions import EvalSet, LabelSets, Probabilities, content_order
from howsure.recalibration import Recalibrator
from howsure.recalibration.base import POINT
from howsure.recalibration.classes import class_losses
from howsure.recalibration.dispatch import InTurn, applied, fit_methods
from howsure.recalibration.recent import since_rows
from howsure.stats.dominance import places_in_order
from howsure.stats.estimate import spread_of, weighted_mean
from howsure.verdict.advice import (
    FEWEST_ROWS,
    FEWEST_UNITS,
    HEALED,
    PROVEN,
    Advice,
    RecalibrationTrial,
    confirm,
    cross_fit,
    lead_kind,
    run_trials,
)
from howsure.verdict.copies import copies, predicted_numbers
from howsure.verdict.dependence import Known, follow
from howsure.verdict.family import Judging, judge_rows

ERROR_RATE: Final = PROVEN + HEALED
"""The chance that any step is confirmed where none helps."""
# Chosen by hand; not tuned. More would go on with what the first steps left.
MAX_STEPS: Final = 5

Split = Literal["random", "units", "time"]
"""How rows are split: by what they hold, by whole units, or by time, the last ones held back."""
Ended = Literal["right", "one_step", "most_steps", "nothing_helps", "unconfirmed", "rows"]
"""Why no further step was taken."""


@frozen(kw_only=True)
class ImprovementStep:
    """A recalibration advised by the fitting rows, and its test on held-out rows.

    Attributes
    ----------
    advice : Advice
        From the fitting rows; its gain is that on their held-out folds.
    proof : RecalibrationTrial
        The same on the held-out rows: gain, interval, p-value, what it heals, leaves and harms.
    fitted : tuple of Recalibrator
        As fitted to all fitting rows.
    """

    advice: Advice
    proof: RecalibrationTrial
    fitted: tuple[Recalibrator, ...]


@frozen(kw_only=True)
class ImprovedRows:
    """The result; all findings are those of the held-out rows.

    Attributes
    ----------
    split : {"random", "units", "time"}
        How rows were split.
    teaching, held_back : int
        Rows of either part.
    steps : tuple of ImprovementStep
        In order; the last may be one that is not confirmed.
    ended : str
        Why no further step was taken.
    before, after : tuple of Finding
        Of these rows as they were given, and as the confirmed steps leave them.
    reason : str
        Where no step was found, why.
    teaching_faults : tuple of str
        Where no step was found, ids of bad findings on the fitting rows as they are by then.
    held : EvalSet
        The fitting rows as they were given.
    """

    split: Split
    teaching: int
    held_back: int
    steps: tuple[ImprovementStep, ...]
    ended: Ended
    before: tuple[Finding, ...]
    after: tuple[Finding, ...]
    reason: str
    teaching_faults: tuple[str, ...]
    held: EvalSet

    @property
    def confirmed(self) -> tuple[ImprovementStep, ...]:
        """The steps that the held-out rows confirm."""
        return tuple(step for step in self.steps if step.proof.accepted)

    @property
    def right(self) -> bool:
        """Whether no finding of the held-out rows is bad."""
        return not any(each.state == "bad" for each in self.after)

    @property
    def recalibrators(self) -> tuple[Recalibrator, ...]:
        """All confirmed steps as one recalibration; empty where there is none."""
        steps = [one for step in self.confirmed for one in step.fitted]
        return () if not steps else (steps[0],) if len(steps) == 1 else (InTurn.of(steps),)


@one_thread()
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def improved(
    evalset: EvalSet,
    *,
    until_right: bool = False,
    hold_back: float = 0.5,
    coverages: Sequence[float] = (),
    seed: int = 0,
    miss_range: Sequence[float] = MISS_RANGE,
) -> ImprovedRows:
    """Recalibrate once, or until nothing is proven wrong or nothing helps."""
    evalset = _leading(evalset)
    how, proves = split(evalset, hold_back, seed)
    rows, dependence = _followed(evalset.take(~proves))
    proof, known = _followed(evalset.take(proves))
    judging = Judging(coverages, seed, miss_range=miss_range)
    before = after = judge_rows(proof, known, judging)[0]
    steps: list[ImprovementStep] = []
    ended: Ended = "most_steps"
    reason = ""
    faults: tuple[str, ...] = ()
    for number in range(MAX_STEPS):
        report_progress("steps", number, MAX_STEPS)
        findings, _ = judge_rows(rows, dependence, judging)
        view = View(rows, seed=seed)
        advice = run_trials(view, dependence, findings, judging, prefix=None).advice
        if advice is None or not advice.method:
            faults = tuple(each.id for each in findings if each.state == "bad")
            bad = {*faults, *(each.id for each in after if each.state == "bad")}
            ended = "rows" if "rows" in bad else "nothing_helps" if bad else "right"
            reason = "" if advice is None else advice.sentence
            break
        if advice.since:
            rows = since_rows(rows, advice.since)
        fitted, _ = fit_methods(rows, rows, advice.method, by=advice.by)
        check = confirm_probabilities if View(proof).find_prediction(Probabilities) else confirm
        trial = check(proof, known, after, advice, fitted, judging)
        if trial.accepted:
            proof = applied(fitted, proof).evalset
            after = judge_rows(proof, known, judging)[0]
            left = {each.id for each in after if each.state == "bad"}
            trial = replace(trial, leaves=tuple(leaf for leaf in trial.leaves if leaf in left))
        steps.append(ImprovementStep(advice=advice, proof=trial, fitted=fitted))
        if not trial.accepted:
            ended = "unconfirmed"
            break
        if not until_right:
            ended = "one_step"
            break
        rows = cross_fit(rows, advice, seed)
    return ImprovedRows(
        split=how,
        teaching=int((~proves).sum()),
        held_back=int(proves.sum()),
        steps=tuple(steps),
        ended=ended,
        before=before,
        after=after,
        reason=reason,
        teaching_faults=faults,
        held=evalset.take(~proves),
    )


def confirm_probabilities(
    evalset: EvalSet,
    dependence: Known,
    findings: Sequence[Finding],
    advice: Advice,
    fitted: tuple[Recalibrator, ...],
    judging: Judging,
) -> RecalibrationTrial:
    """As `confirm`, of class probabilities: Student's t of the log loss saved, by units."""
    new, codes = applied(fitted, evalset).evalset, View(evalset).get("class_codes")
    before, left = (class_losses(View(rows).get("class_table"), codes) for rows in (evalset, new))
    base, mean = (weighted_mean(each, evalset.multiplicities) for each in (before, before - left))
    spread = spread_of(before - left - mean, evalset.weights, evalset.units)
    error, freedom = float(spread.error[0]), max(float(spread.degrees[0]), 1.0)
    p = float(special.stdtr(freedom, -mean / error)) if error > 0 else 1.0
    reach = float(special.stdtrit(freedom, 0.975)) * error
    bad, still = (
        [each.id for each in found if each.state == "bad"]
        for found in (findings, judge_rows(new, dependence, judging)[0])
    )
    return RecalibrationTrial(
        method=advice.method,
        by=advice.by,
        gain=mean / base,
        lower=(mean - reach) / base,
        upper=(mean + reach) / base,
        p=p,
        heals=tuple(name for name in bad if name not in still),
        leaves=tuple(name for name in bad if name in still),
        accepted=p < PROVEN,
    )


def split(evalset: EvalSet, hold_back: float, seed: int) -> tuple[Split, BoolArray]:
    """Which rows are held back: those of some units, else the last in time, else some at random.

    Copies of a row stand on one side, and who stands where does not depend on the order of rows.
    """
    check_fraction(hold_back, "hold_back")
    if evalset.n < 2 * FEWEST_ROWS:
        raise InputError(
            f"calibration must have at least {2 * FEWEST_ROWS} rows, some to fit and some to "
            f"verify, got {evalset.n}"
        )
    cluster, times = evalset.cluster, evalset.time
    many = cluster is not None and len(cluster.labels) >= 2 * FEWEST_UNITS
    moments = np.unique(times) if times is not None and not many else np.zeros(0)
    how: Split = "random"
    if times is not None and len(moments) > 1:
        how, place = "time", np.searchsorted(moments, times)
    elif cluster is not None:
        how, place = "units", _drawn(cluster.codes, evalset, seed)
    else:
        order = content_order([evalset])
        found = copies([evalset.take(order)])
        codes = np.arange(evalset.n)
        if found is not None:
            codes[order] = found.clusters.codes
        place = _drawn(codes, evalset, seed)
    upto = np.cumsum(np.bincount(place)) / evalset.n
    first = int(np.argmin(np.abs(upto[:-1] - (1.0 - hold_back)))) if len(upto) > 1 else 0
    return how, place > first


def _drawn(codes: IntArray, evalset: EvalSet, seed: int) -> IntArray:
    """The rank of each row's unit in an order that is drawn by what the units hold."""
    units = np.zeros(int(codes.max()) + 1, dtype=np.uint64)
    np.add.at(units, codes, row_hashes(evalset.y, *predicted_numbers(evalset)))
    return places_in_order(row_uniforms(seed, "held-back rows", units))[codes]


def _leading(evalset: EvalSet) -> EvalSet:
    """The rows with the one kind of prediction by which they are judged."""
    stated = View(evalset).find_prediction(Probabilities)
    if stated is not None:
        return replace(evalset, predictions=(stated,))
    kind = lead_kind(evalset)
    if not kind or any(isinstance(prediction, LabelSets) for prediction in evalset.predictions):
        told = ", ".join(each.kind for each in evalset.predictions) or "none"
        raise InputError(
            "calibration must have a distribution, samples, quantiles, intervals, class "
            f"probabilities or a point forecast to be improved, got {told}"
        )
    if kind == POINT:
        return evalset
    return replace(evalset, predictions=tuple(b for b in evalset.predictions if b.kind == kind))


def _followed(evalset: EvalSet) -> tuple[EvalSet, Known]:
    """Rows in the order of their content, and how they go together."""
    (rows,), (known,) = follow([evalset], content_order([evalset]))
    return rows, known
