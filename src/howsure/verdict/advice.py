"""Advice that was tried: recalibrations fitted on some folds of the rows, and judged on the others.

One is accepted in either of two ways: its gain is proven (Holm over all that were tried), or it
heals: on held-out rows every bad finding that it aims at is back within chance, no other turned
bad, and the score is not provably worse. Proper scores are of second order: where a spread is a
tenth too small, its finding is bad long before any gain can be proven. Of the accepted that save
nine tenths of the best, or are not provably worse, what heals most is chosen; of equals the
simplest.

Members of an ensemble state the spread of a row with noise, so whatever pools rows lessens the
score of a perfect ensemble too: there something must be clearly bad.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import HowsureError, InputError, UnanswerableError
from howsure.core.progress import report_progress
from howsure.core.rng import row_keys, row_uniforms
from howsure.core.threads import one_thread
from howsure.engine.catalogue import catalogue
from howsure.engine.finding import LEVEL, Finding, SharedScore
from howsure.engine.measure import Evaluation, evaluate
from howsure.engine.view import KIND_PRIORITY, View, choose_coverages
from howsure.predictions import (
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Probabilities,
    Quantiles,
    Samples,
    content_order,
)
from howsure.recalibration import METHODS, Recalibrator
from howsure.recalibration.base import POINT, Pieces, counts, kinds_of
from howsure.recalibration.classes import advise_classes, class_losses
from howsure.recalibration.dispatch import advised, applied, fit_methods, method_of
from howsure.recalibration.info import KINDS, MethodInfo, RecalibrationOptions
from howsure.recalibration.recent import since_rows
from howsure.stats.binomial import holm
from howsure.stats.dominance import places_in_order
from howsure.stats.estimate import spread_of
from howsure.topics.groups import groupings
from howsure.topics.shared import all_shared, scored
from howsure.verdict import words
from howsure.verdict.copies import predicted_numbers
from howsure.verdict.dependence import Known, follow
from howsure.verdict.family import Judging, judge_rows
from howsure.verdict.findings import headline_coverage, questions
from howsure.verdict.without_y import LACKING, least_width

# Every way is fitted five times and scored, in time that grows with the rows. Chosen by hand; not
# tuned: higher, smaller gains are proven and a run takes longer.
MOST_ROWS = 20_000
# Four fifths of the rows fit, close to all of them; ten folds would take twice the time.
FOLDS = 5
# Six rows in a fold.
FEWEST_ROWS = 30
"""Rows, or clusters where rows depend, without which nothing is tried: FEWEST_UNITS of these."""
# Two whole clusters in a fold; with fewer than ten, Student's t of them has hardly any power.
FEWEST_UNITS = 10
# Half of 5 %, so that with HEALED at most 3.5 % of the tables of a correctly specified model are
# advised: below the 5 % of the findings. docs/verdict.md counts the advice that they get.
PROVEN = 0.025
"""One-sided level of a gain, among all that were tried."""
# A fifth of those 5 %; docs/verdict.md counts the advice that correctly specified models get.
HEALED = 0.01
"""Joint p-value below which a finding is clearly bad, so that its healing proves a way: less than
the 5 % at which it is bad, so that a right model is seldom advised.
"""
# A tenth of a gain is not worth a way with more parameters; the bar of docs/verdict.md for right
# advice is within 10 % of the best, too.
NEAR = 0.9
"""Share of the best gain that is as good as the best."""
# One-sided 5 %, without correction: a way that may harm is refused more readily than proven.
_MIN_T_OF_WORSE = -float(special.ndtri(0.05))
_KINDS = tuple(kind for kind in (*(kind.kind for kind in KIND_PRIORITY), POINT) if kind in KINDS)
"""Kinds of prediction, what says most first: that one decides what is tried."""
# Sums of scores lose fewer than seven of sixteen digits; a real difference is larger.
_ROUNDING = 1e-9
# Share of a part's score that a recalibration may add to it. Chosen by hand; not tuned. Larger,
# advice that costs a group something passes.
_MAX_HARM = 0.005
_BY_WIDTH = ("the narrowest third", "the third of middle width", "the widest third")
_IN_TIME = ("the first third in time", "the second third in time", "the last third in time")
# Groups of a column past which it makes no parts. Chosen by hand; not tuned. Each part counts in
# the correction, so with more of them harm is proven less often.
_MAX_PARTS_OF_COLUMN = 50
# Least spread that a row's score is divided by, as a share of the mean spread: no row weighs more
# than ten times the usual one. Not tuned.
_MIN_RELATIVE_SPREAD = 0.1


@frozen(kw_only=True)
class RecalibrationTrial:
    """One way to recalibrate, tried on held-out folds.

    Attributes
    ----------
    method : str
        As in `howsure.recalibration.METHODS`.
    by : tuple of str
        Columns of groups, of the method ``group``.
    since : str
        The time from which on rows are used to fit and test; all if empty.
    gain, lower, upper : float
        By which share the score falls on held-out rows, with its 95 % interval.
    p : float
        One-sided p-value that it falls at all, each row's score on the scale of its spread.
    heals, leaves : tuple of str
        Ids of the findings that were bad and are no longer shown to be, and that still are.
    harms : str
        The part of the rows, a group or a third by width or time, whose score it provably raises by
        most; or those without y, where it narrows predictions though these may lack y as their
        errors are large. Empty where there is none.
    accepted : bool
        Whether its gain is significant among all that were tried, or it heals what it aims at; and
        it harms no part.
    reason : str
        Why it could not be tried.
    """

    method: str
    by: tuple[str, ...] = ()
    since: str = ""
    gain: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    p: float = math.nan
    heals: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    harms: str = ""
    accepted: bool = False
    reason: str = ""


@frozen(kw_only=True)
class Advice:
    """The next step: the recalibration that was accepted, or that none helps.

    Attributes
    ----------
    method : str
        As in `howsure.recalibration.METHODS`; empty where nothing that was tried helps.
    by : tuple of str
        Columns of groups, of the method ``group``.
    since : str
        The time from which on rows are used to fit; all if empty.
    score : str
        What the gain is of, in words.
    gain, lower, upper : float
        By which share the score falls on held-out rows, with its 95 % interval.
    heals, leaves : tuple of str
        Ids of the findings that were bad and are no longer shown to be, and that still are.
    command : str
        What does it.
    sentence : str
        The advice in words.
    model : str
        Which model.
    """

    method: str
    by: tuple[str, ...] = ()
    since: str = ""
    score: str = ""
    gain: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    heals: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()
    command: str = ""
    sentence: str = ""
    model: str = ""


@frozen(kw_only=True)
class Trials:
    """All recalibrations that were tried on the rows of one model, and what follows.

    Attributes
    ----------
    advice : Advice, optional
        None where no finding is bad and nothing helps.
    trials : tuple of Trial
        In the order in which they were tried.
    score : str
        What gains are of, in words; empty where nothing could be tried.
    costs : mapping of str to float
        For each bad finding, the share of the score that the recalibration aimed at it saves.
    lifted : tuple, optional
        The group that fails, with its coverage before and after the recalibration that is advised.
    step : str
        The recalibration that is advised, in words; empty where none is.
    """

    advice: Advice | None
    trials: tuple[RecalibrationTrial, ...] = ()
    score: str = ""
    costs: Mapping[str, float] = field(default_factory=dict)
    lifted: tuple[str, float, float] | None = None
    step: str = ""


@one_thread()
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def try_recalibrations(
    evalset: EvalSet, *, coverages: Sequence[float] = (), seed: int = 0
) -> Trials:
    """Try every recalibration that suits the predictions of a table, by cross-fitting.

    Parameters
    ----------
    evalset : EvalSet
        Held-out rows.
    coverages : sequence of float
        Nominal coverages; the verdict speaks of the one nearest to 0.9.
    seed : int
        Fixes all draws.

    Returns
    -------
    Trials

    Examples
    --------
    >>> from howsure import Distribution
    >>> rng = np.random.default_rng(0)
    >>> held = EvalSet.checked(rng.normal(size=2000), Distribution.normal(np.zeros(2000), 0.7))
    >>> try_recalibrations(held).advice.method
    'scale'
    """
    judging = Judging(coverages=coverages, seed=seed)
    (evalset,), (dependence,) = follow([evalset], content_order([evalset]))
    findings, _ = judge_rows(evalset, dependence, judging)
    return run_trials(View(evalset, seed=seed), dependence, findings, judging)


def run_trials(
    view: View,
    dependence: Known,
    findings: Sequence[Finding],
    judging: Judging,
    *,
    prefix: str | None = "",
) -> Trials:
    """The same of a view of rows in the order of their content, whose findings are known."""
    bad = {finding.id for finding in findings if finding.state == "bad"}
    kinds = kinds_of(view.evalset)
    if Probabilities.kind in kinds and "rows" not in bad:
        return _advise_probabilities(view, findings, prefix)
    if "rows" in bad or LabelSets.kind in kinds or not lead_kind(view.evalset):
        return Trials(advice=None)  # rows are put right before predictions
    bench = _Bench.of(view.take_at_most(MOST_ROWS).evalset, dependence, findings, judging)
    if bench.too_few:
        return _conclude(Trials(advice=None), bench, prefix, bench.too_few)
    recent = _try_since_change(bench) if "drift" in bench.ids else None
    return _conclude(recent or bench.run(), bench, prefix)


_OF_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "level": "level",
        "sureness": "sureness",
        "shape": "shape",
        "class_groups": "groups",
        "class_region": "region",
    }
)
"""Findings on class probabilities that a recalibration may heal, by the question that each asks."""


def _advise_probabilities(view: View, findings: Sequence[Finding], prefix: str | None) -> Trials:
    """The simplest recalibration of class probabilities that helps on held-out rows."""
    evalset, score = view.take_at_most(MOST_ROWS).evalset, catalogue()["log_score"].title.lower()
    red = [finding for finding in findings if finding.state == "bad" and finding.id in _OF_CLASSES]
    if not red:
        return Trials(advice=None)
    if evalset.n < FEWEST_ROWS:
        reason = f"{evalset.n} rows are too few to try methods on held-out folds"
        sentence = words.nothing_helps(red, None, None, score, reason)
        return Trials(advice=Advice(method="", sentence=sentence, model=evalset.model))
    rows = View(evalset, seed=view.seed)
    table, y = rows.get("class_table"), rows.get("class_codes")
    where = next((each.where for each in red if each.id == "class_groups"), "")
    named = [name for name in evalset.groups if where.startswith(f"{name}=")]
    by = tuple((named or [*evalset.groups])[:1])
    faults = {_OF_CLASSES[each.id]: each.p for each in red}
    if "level" in faults and all(each.id != "sureness" for each in findings):
        faults["sureness"] = faults["level"]  # of too few rows in doubt sureness is not asked
    advice = advise_classes(
        table,
        y,
        faults,
        evalset.groups[by[0]].codes if by else None,
        None if evalset.cluster is None else evalset.cluster.codes,
        evalset.multiplicities,
        view.seed,
    )
    if advice is None:
        sentence = words.nothing_helps(red, None, None, score, "")
        return Trials(advice=Advice(method="", sentence=sentence, model=evalset.model), score=score)
    info = method_of(Probabilities.kind, advice.method)
    assert info is not None
    base = float(np.average(class_losses(table, y), weights=evalset.multiplicities))
    reach = _ERRORS_OF_INTERVAL * advice.error
    step = Advice(
        method=advice.method,
        by=by if info.needs == "groups" else (),
        score=score,
        gain=advice.gain / base,
        lower=(advice.gain - reach) / base,
        upper=(advice.gain + reach) / base,
        model=evalset.model,
    )
    told = words.step(step, (), None, info)
    return Trials(
        advice=replace(
            step, sentence=f"Best next step: {told}", command=words.command(prefix, step)
        ),
        score=score,
        step=told,
    )


# Of a 95 % interval of a gain of many rows.
_ERRORS_OF_INTERVAL = 1.96


def confirm(
    evalset: EvalSet,
    dependence: Known,
    findings: Sequence[Finding],
    advice: Advice,
    fitted: tuple[Recalibrator, ...],
    judging: Judging,
) -> RecalibrationTrial:
    """What other rows advise and taught, judged on rows that had no part in it.

    `findings` are those of these rows before it. The bar is that of advice: of a recalibration
    that helps nothing, `PROVEN` of all sets of rows prove a gain, `HEALED` a fault that it heals.
    """
    bench = _Bench.of(evalset, dependence, findings, judging)
    if bench.too_few:
        return RecalibrationTrial(method=advice.method, by=advice.by, reason=bench.too_few)
    few = applied(fitted, evalset.take(np.arange(1))).evalset
    fit = _Fit(METHODS[advice.method], advice.by, (fitted,), few)
    return bench.compare([fit], np.zeros(evalset.n, dtype=np.int64)).trials[0]


def cross_fit(evalset: EvalSet, advice: Advice, seed: int) -> EvalSet:
    """Rows as a recalibration leaves them that was fitted on the other folds, as new rows are."""
    folds = _folds(evalset, seed)
    fit = _fit_folds(evalset, _method(evalset, advice.method), advice.by, folds)
    return _recalibrate_folds(evalset, fit.fitted, folds)


def _method(evalset: EvalSet, name: str) -> MethodInfo:
    """The method of this name for the predictions of rows."""
    return method_of(kinds_of(evalset)[0], name) or METHODS[name]


def lead_kind(evalset: EvalSet) -> str:
    """The kind of prediction that says most, by which recalibrations are tried; empty if none."""
    kinds = kinds_of(evalset)
    return next((kind for kind in _KINDS if kind in kinds), "")


def _lead_prediction(evalset: EvalSet) -> Prediction | None:
    """The prediction that says most; None of a bare point."""
    kind = lead_kind(evalset)
    return next((prediction for prediction in evalset.predictions if prediction.kind == kind), None)


@frozen
class _Bench:
    """The rows on which recalibrations are tried, and what must be healed."""

    evalset: EvalSet
    dependence: Known
    faults: tuple[Finding, ...]
    judging: Judging
    worst: str = ""  # the group that fails
    since: str = ""

    @classmethod
    def of(
        cls, evalset: EvalSet, dependence: Known, findings: Sequence[Finding], judging: Judging
    ) -> _Bench:
        """Of rows with these findings, of which recalibrations may heal the bad ones."""
        faults = tuple(
            finding
            for finding in findings
            if finding.state == "bad" and questions()[finding.id].healed != "none"
        )
        worst = next((fault.where for fault in faults if fault.id == "groups"), "")
        judging = replace(judging, ignore={*judging.ignore, "rows"})
        return cls(evalset, dependence, faults, judging, worst)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(fault.id for fault in self.faults)

    @property
    def clear(self) -> set[str]:
        """The faults whose healing is enough for a recalibration to be accepted."""
        return {fault.id for fault in self.faults if fault.p_adjusted < HEALED}

    @property
    def too_few(self) -> str:
        """Why nothing can be tried; empty where it can."""
        if self.evalset.n < FEWEST_ROWS:
            return f"{self.evalset.n} rows are too few to try methods on held-out folds"
        cluster, times = self.evalset.cluster, self.evalset.chronology
        if times is not None:
            if (count := len(times.ranks()[0])) < FOLDS:
                return f"{count} times are too few to try methods on held-out periods"
            if times.few:
                return "rows are too strongly correlated in time to try methods on held-out periods"
            return ""
        if cluster is not None and len(cluster.labels) < FEWEST_UNITS:
            return f"{len(cluster.labels)} clusters are too few to try methods on held-out folds"
        return ""

    def candidates(self) -> Iterator[tuple[MethodInfo, tuple[str, ...]]]:
        """What suits the rows, each with the columns of groups that it divides by."""
        unit = _unit(self.evalset)
        holds = {
            "": True,
            "spreads": np.ptp(unit) > _ROUNDING * unit.max(),
            "sign": _one_sign(self.evalset),
        }
        for method in advised(lead_kind(self.evalset)):
            if not holds[method.tried_of]:
                continue
            if method.needs == "groups":
                for name, column in self.evalset.groups.items():
                    if len(column.labels) > 1:
                        yield method, (name,)
            elif not method.needs or self.evalset.features or self.evalset.embedding is not None:
                yield method, ()

    def run(self) -> Trials:
        """Fit every way that suits on all folds but one, and judge it on that one."""
        folds = _folds(self.evalset, self.judging.seed)
        candidates = list(self.candidates())
        fits: list[_Fit] = []
        refused: list[RecalibrationTrial] = []
        for number, (method, by) in enumerate(candidates):
            report_progress(f"fit of {method.name}", number, len(candidates))
            try:
                fits.append(_fit_folds(self.evalset, method, by, folds))
            except HowsureError as error:
                refused.append(RecalibrationTrial(method=method.name, by=by, reason=str(error)))
        return self.compare(fits, folds, refused)

    def compare(
        self, fits: Sequence[_Fit], folds: IntArray, refused: Sequence[RecalibrationTrial] = ()
    ) -> Trials:
        """Apply, score, judge; then choose. The rows of one way are held at a time."""
        failed = list(refused)
        before = self._evaluate(self.evalset)
        score, losses = self._find_score(before, folds, [fit.few for fit in fits])
        ways: list[_Way] = []
        for number, fit in enumerate(fits):
            report_progress(f"trial of {fit.method.name}", number, len(fits))
            try:
                ways.append(self._judge_fit(fit, folds, score, losses, before.view))
            except HowsureError as error:
                method = fit.method.name
                failed.append(RecalibrationTrial(method=method, by=fit.by, reason=str(error)))
        if score is None or not ways:
            return Trials(advice=None, trials=tuple(failed))
        trials = self._test(ways, losses)
        best = self._choose(ways, trials)
        advice = lifted = None
        if best is not None:
            advice = self._advise(trials[best], score.title)
            if not math.isnan(coverage := ways[best].coverage):
                lifted = self.worst, self._cover_worst(before.view), coverage
        return Trials(
            advice=advice,
            trials=(*trials, *failed),
            score=score.title,
            costs={fault.id: _cost(fault.id, ways, trials) for fault in self.faults},
            lifted=lifted,
        )

    def _find_score(
        self, before: Evaluation, folds: IntArray, few: Sequence[EvalSet]
    ) -> tuple[SharedScore | None, FloatArray]:
        """The finest score in common, by a few rows as each way leaves them; and each row's."""
        samples = [self.evalset.take(_first(folds)), *few]
        for shared in all_shared([self._evaluate(rows) for rows in samples]):
            losses = scored(before, shared.score)
            if not isinstance(losses, str):
                return shared.score, losses
        return None, np.zeros(self.evalset.n)

    def _judge_fit(
        self,
        fit: _Fit,
        folds: IntArray,
        score: SharedScore | None,
        losses: FloatArray,
        before: View,
    ) -> _Way:
        """What is known of a recalibration once its rows are let go."""
        if score is None:
            raise InputError("no score applies to the predictions both before and after it")
        after = self._evaluate(_recalibrate_folds(self.evalset, fit.fitted, folds))
        remaining = scored(after, score)
        if isinstance(remaining, str):
            raise InputError(remaining)
        drop = losses - remaining
        gain, lower, upper = self._gain(drop, losses)
        heals, leaves, spoils = self._heal(after)
        trial = RecalibrationTrial(
            method=fit.method.name,
            by=fit.by,
            since=self.since,
            gain=gain,
            lower=lower,
            upper=upper,
            heals=heals,
            leaves=leaves,
        )
        width = self._narrow(before, after.view)
        return _Way(fit.method, trial, drop, spoils, self._cover_worst(after.view), width)

    def _test(self, ways: Sequence[_Way], losses: FloatArray) -> list[RecalibrationTrial]:
        """Each way, judged on held-out rows and in each part; of groups also on the worst."""
        unit, worst = _unit(self.evalset), self._worst_rows()
        drops = [way.drop / unit for way in ways]
        tests = [_student(drop, self.evalset) for drop in drops]
        by_group = [k for k, way in enumerate(ways) if way.method.needs == "groups" and worst.any()]
        in_worst = [_student(drops[k][worst], self.evalset.take(worst))[1] for k in by_group]
        proven = holm(np.array([*(p for _, p in tests), *in_worst])) < PROVEN
        sure = {
            k
            for k, is_proven in zip([*range(len(ways)), *by_group], proven, strict=True)
            if is_proven
        }
        parts = list(self._parts(unit))
        least = (1.0 - _ROUNDING) * least_width(self.evalset, self._headline)
        healed_by_any = {name for name in self.ids if questions()[name].healed == "any"}
        noisy = lead_kind(self.evalset) == Samples.kind
        trials = []
        for number, (way, (t, p)) in enumerate(zip(ways, tests, strict=True)):
            trial, aims = way.trial, way.method.aims & set(self.ids)
            worse = t < -_MIN_T_OF_WORSE or trial.upper < 0
            cured = bool(aims & self.clear) and aims <= set(trial.heals) and not way.spoils
            proof = number in sure and (not noisy or bool(self.clear))
            harms = _find_harmed(way.drop, losses, unit, parts)
            harms = harms or (LACKING if way.width < least else "")
            curable = way.method.aims | healed_by_any
            trials.append(
                replace(
                    trial,
                    p=p,
                    heals=tuple(name for name in trial.heals if name in curable),
                    harms=harms,
                    accepted=not (worse or harms) and (cured or proof),
                )
            )
        return trials

    @property
    def _headline(self) -> float:
        return headline_coverage(choose_coverages(self.evalset, self.judging.coverages))

    def _narrow(self, before: View, after: View) -> float:
        """Mean width as a share of that before, of rows whose intervals are finite in both; 1
        where there are none.
        """
        try:
            ends = [view.get("ends", self._headline) for view in (before, after)]
        except UnanswerableError:
            return 1.0
        widths = np.stack([upper - lower for lower, upper in ends])
        finite = np.isfinite(widths).all(axis=0)
        stated, recalibrated = (widths[:, finite] @ counts(self.evalset)[finite]).tolist()
        return recalibrated / stated if stated > 0.0 else 1.0

    def _advise(self, trial: RecalibrationTrial, score: str) -> Advice:
        names = ("method", "by", "since", "gain", "lower", "upper", "heals", "leaves")
        values = {name: getattr(trial, name) for name in names}
        return Advice(**values, score=score, model=self.evalset.model)

    def _cover_worst(self, view: View) -> float:
        """Coverage of the group that fails; NaN where none does."""
        worst = self._worst_rows()
        if not worst.any():
            return math.nan
        covered = view.get("covered", self._headline)[worst]
        return float(np.average(covered, weights=counts(self.evalset)[worst]))

    def _parts(self, unit: FloatArray) -> Iterator[_PartOfRows]:
        """Groups, and thirds by width and in time: each with what a mean of its rows needs."""
        evalset = self.evalset
        lean = EvalSet(
            y=evalset.y,
            weights=evalset.weights,
            cluster=evalset.cluster,
            chronology=evalset.chronology if _batches_are_few(evalset) else None,
            model=evalset.model,
        )
        named: list[tuple[str, BoolArray]] = []
        for name, column in evalset.groups.items():
            if 1 < len(column.labels) <= _MAX_PARTS_OF_COLUMN:
                named += [
                    (f"{name}={label}", column.codes == code)
                    for code, label in enumerate(column.labels.tolist())
                ]
        widths = unit if np.ptp(unit) > _ROUNDING * unit.max() else None
        for values, names in ((widths, _BY_WIDTH), (evalset.time, _IN_TIME)):
            if values is not None:
                thirds = 3 * places_in_order(values) // len(values)
                named += [(name, thirds == third) for third, name in enumerate(names)]
        for name, inside in named:
            if inside.sum() >= FEWEST_ROWS:
                yield _PartOfRows(name, inside, lean.take(inside))

    def _worst_rows(self) -> BoolArray:
        """The rows of the group that fails."""
        for grouping in groupings(self.evalset)[0] if self.worst else ():
            if self.worst in grouping.labels:
                return np.asarray(grouping.codes == grouping.labels.index(self.worst))
        return np.zeros(self.evalset.n, dtype=np.bool_)

    def _evaluate(self, evalset: EvalSet) -> Evaluation:
        judging = self.judging
        return evaluate(
            evalset,
            coverages=judging.coverages,
            metrics=("crps", "mae"),
            seed=judging.seed,
            miss_range=judging.miss_range,
        )

    def _gain(self, drop: FloatArray, losses: FloatArray) -> tuple[float, float, float]:
        """By which share a score falls, with its 95 % interval: a ratio of means."""
        evalset, mass = self.evalset, counts(self.evalset)
        base = float(np.average(losses, weights=mass))
        gain = float(np.average(drop, weights=mass)) / base
        ratio = spread_of((drop - gain * losses) / base, evalset.weights, evalset.units)
        reach = float(special.stdtrit(max(float(ratio.degrees[0]), 1.0), 0.975) * ratio.error[0])
        return gain, gain - reach, gain + reach

    def _heal(self, after: Evaluation) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """Which faults are healed, which are left, and whether another finding turned bad."""
        findings, _ = judge_rows(
            after.evalset, self.dependence, self.judging, described=False, known=after
        )
        by_id = {finding.id: finding for finding in findings}
        level = LEVEL / max(len(self.faults), 1)

        def is_fine(name: str) -> bool:
            finding = by_id.get(name)
            if finding is None:  # it cannot be asked any more: support of what covers every y
                return name == "support"
            small = abs(finding.effect) <= finding.tolerance
            return finding.p >= level or (finding.state != "bad" and small)

        heals = tuple(filter(is_fine, self.ids))
        leaves = tuple(name for name in self.ids if name in by_id and name not in heals)
        spoils = any(finding.state == "bad" and finding.id not in self.ids for finding in findings)
        return heals, leaves, spoils

    def _choose(self, ways: Sequence[_Way], trials: Sequence[RecalibrationTrial]) -> int | None:
        """Of the accepted, those like the best; of these, what heals most, and is simplest."""
        accepted = [number for number, trial in enumerate(trials) if trial.accepted]
        if not accepted:
            return None
        best = max(accepted, key=lambda number: trials[number].gain)
        alike = [
            number
            for number in accepted
            if trials[number].gain >= NEAR * trials[best].gain
            or _student(ways[best].drop - ways[number].drop, self.evalset)[0] < _MIN_T_OF_WORSE
        ]

        def order(number: int) -> tuple[float, ...]:
            trial = trials[number]
            return -len(trial.heals), ways[number].method.complexity, -trial.gain

        return min(alike, key=order)


class _Fit(NamedTuple):
    """A way as it was fitted on the other rows of each fold, and a few rows as it leaves them."""

    method: MethodInfo
    by: tuple[str, ...]
    fitted: tuple[tuple[Recalibrator, ...], ...]
    few: EvalSet


class _Way(NamedTuple):
    """A way that was tried: how far each row's score falls, whether it spoils what was not bad,
    the coverage then of the group that fails, and the mean width of intervals as a share of the
    stated one.
    """

    method: MethodInfo
    trial: RecalibrationTrial
    drop: FloatArray
    spoils: bool
    coverage: float
    width: float


class _PartOfRows(NamedTuple):
    """Some of the rows: their name, which they are, and these without predictions."""

    name: str
    inside: BoolArray
    rows: EvalSet


def _cost(name: str, ways: Sequence[_Way], trials: Sequence[RecalibrationTrial]) -> float:
    """What a fault costs: the gain of the simplest way that heals it, or the most that one aimed at
    it saves.
    """
    aimed = [trial for way, trial in zip(ways, trials, strict=True) if name in way.method.aims]
    healing = [trial for trial in aimed if name in trial.heals][:1]
    return max([0.0, *(trial.gain for trial in healing or aimed)])


def _find_harmed(
    drop: FloatArray, losses: FloatArray, unit: FloatArray, parts: Sequence[_PartOfRows]
) -> str:
    """The part whose mean score a way provably raises by most; empty where there is none."""
    worst, least = "", -_MAX_HARM
    for name, inside, rows in parts:
        t, p = _student(-(drop / unit)[inside], rows)
        mass = counts(rows)
        gain = float(np.average(drop[inside], weights=mass))
        share = gain / max(float(np.average(losses[inside], weights=mass)), 1e-300)
        if t > 0 and p * len(parts) < PROVEN and share < least:
            worst, least = name, share
    return worst


def _student(values: FloatArray, evalset: EvalSet) -> tuple[float, float]:
    """Student's t of a mean over rows, and its one-sided p-value that it is above 0."""
    mean = float(np.average(values, weights=counts(evalset)))
    spread = spread_of(values - mean, evalset.weights, evalset.units)
    error = float(spread.error[0])
    if not error > 0:
        return 0.0, 1.0
    t = mean / error
    return t, spread.tail(t)


def _folds(evalset: EvalSet, seed: int) -> IntArray:
    """The fold of each row: whole clusters, stretches of time, else rows by what they hold."""
    if evalset.chronology is not None and _batches_are_few(evalset):
        times, ranks = evalset.chronology.ranks()
        return np.asarray(FOLDS * ranks // len(times))
    if evalset.cluster is not None:
        return np.asarray(evalset.cluster.codes % FOLDS)
    keys = row_keys(evalset.y, *predicted_numbers(evalset))
    return places_in_order(row_uniforms(seed, "folds", keys)) % FOLDS


def _batches_are_few(evalset: EvalSet) -> bool:
    """Whether rows that follow each other make too few batches to stand for independent rows."""
    return evalset.cluster is not None and len(evalset.cluster.labels) < FEWEST_UNITS


def _first(folds: IntArray) -> IntArray:
    """A row of each fold."""
    return np.sort(np.unique(folds, return_index=True)[1])


def _fit_folds(evalset: EvalSet, method: MethodInfo, by: tuple[str, ...], folds: IntArray) -> _Fit:
    """A recalibration fitted for each fold on the others."""
    fitted = []
    for fold in range(FOLDS):
        train = evalset.take(folds != fold)
        fitted.append(fit_methods(evalset, train, method.name, by=by)[0])
    rows = _first(folds)
    few = _recalibrate_folds(evalset.take(rows), fitted, folds[rows])
    return _Fit(method, by, tuple(fitted), few)


def _recalibrate_folds(
    evalset: EvalSet, fitted: Sequence[tuple[Recalibrator, ...]], folds: IntArray
) -> EvalSet:
    """Every row as the recalibration leaves it that was fitted on the other folds."""
    pieces: list[Pieces] = []
    point = None if evalset.point is None else evalset.point.copy()
    for fold, recalibrators in enumerate(fitted):
        rows = np.flatnonzero(folds == fold)
        recalibrated = applied(recalibrators, evalset.take(rows)).evalset
        pieces = pieces or [
            Pieces(prediction, evalset.n) for prediction in recalibrated.predictions
        ]
        for piece, prediction in zip(pieces, recalibrated.predictions, strict=True):
            first = piece.first
            levels = [table.levels for table in (first, prediction) if isinstance(table, Quantiles)]
            if levels and not np.array_equal(levels[0], levels[-1]):
                raise InputError("folds are too small for the same levels")
            ends = [prediction.lower, prediction.upper] if isinstance(prediction, Intervals) else []
            if not np.isfinite(ends).all():
                raise InputError("folds are too small for finite intervals")
            piece.put(rows, prediction)
        if point is not None and recalibrated.point is not None:
            point[rows] = recalibrated.point
    return replace(evalset, predictions=tuple(piece.join() for piece in pieces), point=point)


def _unit(evalset: EvalSet) -> FloatArray:
    """What each row's score is divided by: its spread, not far below the mean one."""
    prediction = _lead_prediction(evalset)
    if prediction is None:
        return np.ones(evalset.n)
    try:
        spread = prediction.sd()
    except HowsureError:
        try:
            lower, upper = prediction.interval(min(prediction.widest, 0.9))
        except HowsureError:
            values = np.stack([*prediction.numbers().values()], axis=-1).reshape(evalset.n, -1)
            lower, upper = values.min(axis=1), values.max(axis=1)
        spread = upper - lower
    mean = float(np.mean(spread[np.isfinite(spread)])) if np.isfinite(spread).any() else 0.0
    if not mean > 0:
        return np.ones(evalset.n)
    return np.asarray(
        np.maximum(np.where(np.isfinite(spread), spread, mean), _MIN_RELATIVE_SPREAD * mean)
    )


def _one_sign(evalset: EvalSet) -> bool:
    """Whether all predictions lie on one side of 0."""
    prediction = _lead_prediction(evalset)
    try:
        center = evalset.point if prediction is None else prediction.point()
    except HowsureError:  # a law without a mean
        return False
    return center is not None and bool((center > 0).all() or (center < 0).all())


def _try_since_change(bench: _Bench) -> Trials | None:
    """What helps of the rows from a change on, judged on these alone; None where nothing does."""
    where = next(fault.where for fault in bench.faults if fault.id == "drift")
    since = where.removeprefix("from ").removesuffix(" on").removeprefix("time ")
    try:
        rows = since_rows(bench.evalset, since)
    except HowsureError:  # a time of words cannot be told from which on
        return None
    later = replace(bench, evalset=rows, since=since)
    if later.too_few:
        return None
    findings, _ = judge_rows(rows, bench.dependence, bench.judging)
    bad = tuple(finding for finding in findings if finding.state == "bad")
    trials = replace(later, faults=bad).run()
    if trials.advice is None:
        return None
    leaves = trials.advice.leaves  # where none is left, what changed is healed too
    heals = (*(() if leaves else ("drift",)), *trials.advice.heals)
    advice = replace(trials.advice, heals=heals)
    return replace(trials, advice=advice, costs=dict.fromkeys(heals, max(advice.gain, 0.0)))


def _conclude(trials: Trials, bench: _Bench, prefix: str | None, reason: str = "") -> Trials:
    """With the sentence of the advice and its command, or with what the bad need instead."""
    advice, evalset = trials.advice, bench.evalset
    if advice is None:
        harmful = _find_harmful(trials)
        if not bench.faults and harmful is None:
            return trials
        reasons = [trial.reason for trial in trials.trials]
        if not reason and reasons and all(reasons):
            reason = reasons[0]
        nearest = None if harmful is not None else _find_nearest(trials, evalset.n)
        sentence = words.nothing_helps(bench.faults, nearest, harmful, trials.score, reason)
        return replace(trials, advice=Advice(method="", sentence=sentence, model=evalset.model))
    rows = evalset if not advice.since else since_rows(evalset, advice.since)
    options = RecalibrationOptions(by=advice.by)
    fitted = METHODS[advice.method].make(lead_kind(evalset), options).fit(rows)
    step = words.step(advice, fitted.parameters, trials.lifted)
    sentence, command = f"Best next step: {step}", words.command(prefix, advice)
    return replace(trials, advice=replace(advice, sentence=sentence, command=command), step=step)


def _find_harmful(trials: Trials) -> RecalibrationTrial | None:
    """The way of the largest proven gain that was refused for harming a part of the rows."""
    level = PROVEN / max(len(trials.trials), 1)
    proven = [
        trial for trial in trials.trials if trial.harms and trial.p < level and trial.gain > 0
    ]
    return max(proven, key=lambda trial: trial.gain, default=None)


def _find_nearest(trials: Trials, n: int) -> tuple[str, float, int] | None:
    """The way of the largest gain, that gain, and the rows that would prove it; None without."""
    hopeful = [trial for trial in trials.trials if trial.gain > 0 and trial.p < 0.5]
    if not hopeful:
        return None
    best = max(hopeful, key=lambda trial: trial.gain)
    wanted = special.ndtri(PROVEN / len(trials.trials)) / special.ndtri(best.p)
    if wanted <= 1 or n >= MOST_ROWS:  # it is proven, or more rows are there
        return None
    return best.method, best.gain, math.ceil(n * float(wanted) ** 2)
