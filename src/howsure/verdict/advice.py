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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.errors import HowsureError, InputError, UnanswerableError
from howsure.core.progress import report_progress
from howsure.core.rng import row_keys, row_uniforms
from howsure.core.threads import one_thread
from howsure.engine.finding import LEVEL, Finding, SharedScore
from howsure.engine.measure import Evaluation, evaluate
from howsure.engine.metric import MISS_RANGE
from howsure.engine.view import KIND_PRIORITY, View, choose_coverages
from howsure.predictions import (
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
    content_order,
)
from howsure.recalibration import METHODS, Recalibrator, recalibrate
from howsure.recalibration.base import POINT, Pieces, counts, kinds_of
from howsure.recalibration.dispatch import applied
from howsure.recalibration.info import KINDS, MethodInfo, RecalibrationOptions
from howsure.recalibration.recent import since_rows
from howsure.recalibration.registry import advised
from howsure.stats.binomial import holm
from howsure.stats.estimate import spread_of
from howsure.topics.groups import groupings
from howsure.topics.shared import all_shared, scored
from howsure.verdict import words
from howsure.verdict.dependence import Known, follow
from howsure.verdict.family import judged
from howsure.verdict.findings import headline_coverage, questions
from howsure.verdict.without_y import LACKING, least_width

MOST_ROWS = 20_000
FOLDS = 5
FEWEST_ROWS = 30
"""Rows, or clusters where rows depend, without which nothing is tried: FEWEST_UNITS of these."""
FEWEST_UNITS = 10
PROVEN = 0.025
"""One-sided level of a gain, among all that were tried."""
HEALED = 0.01
"""Joint p-value below which a finding is clearly bad, so that its healing proves a way: less than
the 5 % at which it is bad, so that a right model is seldom advised.
"""
NEAR = 0.9
"""Share of the best gain that is as good as the best."""
_WORSE = -float(special.ndtri(0.05))
_KINDS = tuple(kind for kind in (*(each.kind for each in KIND_PRIORITY), POINT) if kind in KINDS)
"""Kinds of prediction, what says most first: that one decides what is tried."""
_EQUAL = 1e-9
_HARM = 0.005
"""Share of a part's score that a recalibration may add to it."""
_BY_WIDTH = ("the narrowest third", "the third of middle width", "the widest third")
_IN_TIME = ("the first third in time", "the second third in time", "the last third in time")
_MOST_PARTS = 50
"""Groups of a column past which it makes no parts."""
_FLOOR = 0.1
"""Least spread that a row's score is divided by, as a share of the mean spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecalibrationTrial:
    """One way to recalibrate, tried on held-out folds.

    Attributes
    ----------
    method : str
        As in `howsure.recalibration.METHODS`.
    by : tuple of str
        Columns of groups, of the method ``group``.
    since : str
        The time from which on rows teach, and are judged; all if empty.
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
        Whether its gain is proven among all that were tried, or it heals what it aims at; and it
        harms no part.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The next step: the recalibration that was accepted, or that none helps.

    Attributes
    ----------
    method : str
        As in `howsure.recalibration.METHODS`; empty where nothing that was tried helps.
    by : tuple of str
        Columns of groups, of the method ``group``.
    since : str
        The time from which on rows teach; all if empty.
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


@dataclass(frozen=True, slots=True, kw_only=True)
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
    (evalset,), (dependence,) = follow([evalset], content_order([evalset]))
    found, _ = judged(evalset, dependence, coverages=coverages, seed=seed)
    view = View(evalset, seed=seed)
    return tried(view, dependence, found, coverages=coverages, seed=seed)


def tried(
    view: View,
    dependence: Known,
    findings: Sequence[Finding],
    *,
    coverages: Sequence[float] = (),
    seed: int = 0,
    ignore: Collection[str] = (),
    prefix: str | None = "",
    miss_range: Sequence[float] = MISS_RANGE,
) -> Trials:
    """The same of a view of rows in the order of their content, whose findings are known."""
    bad = [finding for finding in findings if finding.state == "bad"]
    red = _mendable(findings)
    kind = lead_kind(view.evalset)
    other = any(each.id == "rows" for each in bad)
    if not kind or LabelSets.kind in kinds_of(view.evalset) or other:
        return Trials(advice=None)  # rows are put right before predictions
    part = view.part(MOST_ROWS).evalset
    bench = _bench(part, dependence, red, coverages, seed, ignore, miss_range)
    if bench.too_few:
        return _concluded(Trials(advice=None), red, bench, prefix, bench.too_few)
    found = _lately(bench, red) if "drift" in bench.red else None
    return _concluded(found or bench.run(), red, bench, prefix)


def confirmed(
    evalset: EvalSet,
    dependence: Known,
    findings: Sequence[Finding],
    advice: Advice,
    fitted: tuple[Recalibrator, ...],
    *,
    coverages: Sequence[float] = (),
    seed: int = 0,
    miss_range: Sequence[float] = MISS_RANGE,
) -> RecalibrationTrial:
    """What other rows advise and taught, judged on rows that had no part in it.

    `findings` are those of these rows before it. The bar is that of advice: of a recalibration
    that helps nothing, `PROVEN` of all sets of rows prove a gain, `HEALED` a fault that it heals.
    """
    bench = _bench(evalset, dependence, _mendable(findings), coverages, seed, (), miss_range)
    if bench.too_few:
        return RecalibrationTrial(method=advice.method, by=advice.by, reason=bench.too_few)
    few = applied(fitted, evalset.take(np.arange(1))).evalset
    fit = _Fit(METHODS[advice.method], advice.by, (fitted,), few)
    return bench.compared([fit], np.zeros(evalset.n, dtype=np.int64)).trials[0]


def cross_fitted(evalset: EvalSet, advice: Advice, seed: int) -> EvalSet:
    """Rows as a recalibration leaves them that was fitted on the other folds, as new rows are."""
    folds = _folds(evalset, seed)
    fit = _fitted(evalset, METHODS[advice.method], advice.by, folds)
    return _mended(evalset, fit.fitted, folds)


def lead_kind(evalset: EvalSet) -> str:
    """The kind of prediction that says most, by which recalibrations are tried; empty if none."""
    kinds = kinds_of(evalset)
    return next((each for each in _KINDS if each in kinds), "")


def _mendable(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The bad findings that a recalibration may heal."""
    bad = (finding for finding in findings if finding.state == "bad")
    return tuple(each for each in bad if questions()[each.id].healed != "none")


def _bench(
    evalset: EvalSet,
    dependence: Known,
    red: Sequence[Finding],
    coverages: Sequence[float],
    seed: int,
    ignore: Collection[str],
    miss_range: Sequence[float],
) -> _Bench:
    """The rows on which recalibrations are tried, with what is bad of them."""
    return _Bench(
        evalset,
        dependence,
        tuple(each.id for each in red),
        _clear(red),
        lead_kind(evalset),
        coverages,
        seed,
        {*ignore, "rows"},
        next((each.where for each in red if each.id == "groups"), ""),
        miss_range=miss_range,
    )


@dataclass(frozen=True, slots=True)
class _Bench:
    """The rows on which recalibrations are tried, and what must be healed."""

    evalset: EvalSet
    dependence: Known
    red: tuple[str, ...]
    clear: Collection[str]
    kind: str
    coverages: Sequence[float]
    seed: int
    ignore: Collection[str]
    worst: str = ""
    since: str = ""
    miss_range: Sequence[float] = MISS_RANGE

    @property
    def too_few(self) -> str:
        """Why nothing can be tried; empty where it can."""
        if self.evalset.n < FEWEST_ROWS:
            return f"{self.evalset.n} rows are too few to try methods on held-out folds"
        cluster, times = self.evalset.cluster, self.evalset.chronology
        if times is not None:
            if (count := len(times.ranks()[0])) < FOLDS:
                return f"{count} times are too few to try methods on held-out stretches of time"
            if times.few:
                return "rows remember too much to try methods on held-out stretches of time"
            return ""
        if cluster is not None and len(cluster.labels) < FEWEST_UNITS:
            return f"{len(cluster.labels)} clusters are too few to try methods on held-out folds"
        return ""

    def candidates(self) -> Iterator[tuple[MethodInfo, tuple[str, ...]]]:
        """What suits the rows, each with the columns of groups that it divides by."""
        unit = _unit(self.evalset)
        holds = {
            "": True,
            "spreads": np.ptp(unit) > _EQUAL * unit.max(),
            "sign": _one_sign(self.evalset),
        }
        for each in advised(self.kind):
            if not holds[each.tried_of]:
                continue
            if each.needs == "groups":
                for name, column in self.evalset.groups.items():
                    if len(column.labels) > 1:
                        yield each, (name,)
            elif not each.needs or self.evalset.features or self.evalset.embedding is not None:
                yield each, ()

    def run(self) -> Trials:
        """Fit every way that suits on all folds but one, and judge it on that one."""
        folds = _folds(self.evalset, self.seed)
        listed = list(self.candidates())
        fits: list[_Fit] = []
        refused: list[RecalibrationTrial] = []
        for place, (candidate, by) in enumerate(listed):
            report_progress(f"fit of {candidate.name}", place, len(listed))
            try:
                fits.append(_fitted(self.evalset, candidate, by, folds))
            except HowsureError as error:
                refused.append(RecalibrationTrial(method=candidate.name, by=by, reason=str(error)))
        return self.compared(fits, folds, refused)

    def compared(
        self, fits: Sequence[_Fit], folds: IntArray, refused: Sequence[RecalibrationTrial] = ()
    ) -> Trials:
        """Apply, score, judge; then choose. The rows of one way are held at a time."""
        without = list(refused)
        score, rows = self._score(folds, [each.few for each in fits])
        made: list[_Made] = []
        for place, fit in enumerate(fits):
            report_progress(f"trial of {fit.candidate.name}", place, len(fits))
            try:
                made.append(self._made(fit, folds, score, rows))
            except HowsureError as error:
                method = fit.candidate.name
                without.append(RecalibrationTrial(method=method, by=fit.by, reason=str(error)))
        if score is None or not made:
            return Trials(advice=None, trials=tuple(without))
        tried = self._tried(made, rows)
        chosen = self._chosen(made, tried)
        lifted = None
        if chosen is not None and not math.isnan(after := made[chosen].covered):
            lifted = self.worst, self._covered(self.evalset), after
        return Trials(
            advice=None if chosen is None else self._advice(tried[chosen], score.title),
            trials=(*tried, *without),
            score=score.title,
            costs=self._costs(made, tried),
            lifted=lifted,
        )

    def _score(
        self, folds: IntArray, few: Sequence[EvalSet]
    ) -> tuple[SharedScore | None, FloatArray]:
        """The finest score in common, by a few rows as each way leaves them; and each row's."""
        before = self.evalset.take(_first(folds))
        whole = self._evaluated(self.evalset)
        for shared in all_shared([self._evaluated(each) for each in (before, *few)]):
            rows = scored(whole, shared.score)
            if not isinstance(rows, str):
                return shared.score, rows
        return None, np.zeros(self.evalset.n)

    def _made(
        self, fit: _Fit, folds: IntArray, score: SharedScore | None, rows: FloatArray
    ) -> _Made:
        """What is known of a recalibration once its rows are let go."""
        if score is None:
            raise InputError("no score suits the predictions before and after it")
        after = _mended(self.evalset, fit.fitted, folds)
        told = scored(self._evaluated(after), score)
        if isinstance(told, str):
            raise InputError(told)
        drop = rows - told
        return _Made(
            fit.candidate,
            fit.by,
            drop,
            self._gain(drop, rows),
            self._healed(after),
            self._covered(after),
            self._narrowed(after),
        )

    def _tried(self, made: Sequence[_Made], rows: FloatArray) -> list[RecalibrationTrial]:
        """Each way, judged on held-out rows and in each part; of groups also on the worst."""
        unit, worst = _unit(self.evalset), self._worst_rows()
        drops = [each.drop / unit for each in made]
        tests = [_tested(drop, self.evalset) for drop in drops]
        divided = [k for k, each in enumerate(made) if each.candidate.needs == "groups"]
        divided = divided if worst.any() else []
        own = [_tested(drops[k][worst], self.evalset.take(worst))[1] for k in divided]
        proven = holm(np.array([*(p for _, p in tests), *own])) < PROVEN
        parts = list(self._parts(unit))
        least = (1.0 - _EQUAL) * least_width(self.evalset, self._headline)
        sure = {k for k, found in zip([*range(len(made)), *divided], proven, strict=True) if found}
        tried = []
        for place, (each, (t, p)) in enumerate(zip(made, tests, strict=True)):
            heals, leaves, spoiled = each.healed
            aimed = each.candidate.aims & set(self.red)
            worse = t < -_WORSE or each.gain[2] < 0
            clear = bool(aimed & set(self.clear))
            cured = clear and aimed <= set(heals) and not spoiled
            proof = place in sure and (self.kind != Samples.kind or bool(self.clear))
            harms = _harmed(each.drop, rows, unit, parts)
            harms = harms or (LACKING if each.width < least else "")
            healed_by_any = (name for name in self.red if questions()[name].healed == "any")
            mendable = (*each.candidate.aims, *healed_by_any)
            tried.append(
                RecalibrationTrial(
                    method=each.candidate.name,
                    by=each.by,
                    since=self.since,
                    gain=each.gain[0],
                    lower=each.gain[1],
                    upper=each.gain[2],
                    p=p,
                    heals=tuple(name for name in heals if name in mendable),
                    leaves=leaves,
                    harms=harms,
                    accepted=not (worse or harms) and (cured or proof),
                )
            )
        return tried

    @property
    def _headline(self) -> float:
        return headline_coverage(choose_coverages(self.evalset, self.coverages))

    def _narrowed(self, after: EvalSet) -> float:
        """Mean width as a share of that before, of rows whose intervals are finite in both; 1
        where there are none.
        """
        try:
            ends = [View(each).get("ends", self._headline) for each in (self.evalset, after)]
        except UnanswerableError:
            return 1.0
        widths = np.stack([upper - lower for lower, upper in ends])
        finite = np.isfinite(widths).all(axis=0)
        before, now = (widths[:, finite] @ counts(self.evalset)[finite]).tolist()
        return now / before if before > 0.0 else 1.0

    def _advice(self, trial: RecalibrationTrial, score: str) -> Advice:
        names = ("method", "by", "since", "gain", "lower", "upper", "heals", "leaves")
        told = {name: getattr(trial, name) for name in names}
        return Advice(**told, score=score, model=self.evalset.model)

    def _covered(self, evalset: EvalSet) -> float:
        """Coverage of the group that fails; NaN where none does."""
        worst = self._worst_rows()
        if not worst.any():
            return math.nan
        covered = View(evalset).get("covered", self._headline)[worst]
        return float(np.average(covered, weights=counts(self.evalset)[worst]))

    def _parts(self, unit: FloatArray) -> Iterator[_PartOfRows]:
        """Groups, and thirds by width and in time: each with what a mean of its rows needs."""
        held = self.evalset
        times = held.chronology if _batches_are_few(held) else None
        lean = EvalSet(
            y=held.y,
            weights=held.weights,
            cluster=held.cluster,
            chronology=times,
            model=held.model,
        )
        named: list[tuple[str, BoolArray]] = []
        for name, column in held.groups.items():
            if 1 < len(column.labels) <= _MOST_PARTS:
                named += [
                    (f"{name}={label}", column.codes == code)
                    for code, label in enumerate(column.labels.tolist())
                ]
        wide = unit if np.ptp(unit) > _EQUAL * unit.max() else None
        for values, names in ((wide, _BY_WIDTH), (held.time, _IN_TIME)):
            if values is not None:
                ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
                thirds = 3 * ranks // len(ranks)
                named += [(name, thirds == place) for place, name in enumerate(names)]
        for name, inside in named:
            if inside.sum() >= FEWEST_ROWS:
                yield _PartOfRows(name, inside, lean.take(inside))

    def _worst_rows(self) -> BoolArray:
        """The rows of the group that fails."""
        for each in groupings(self.evalset)[0] if self.worst else ():
            if self.worst in each.labels:
                return np.asarray(each.codes == each.labels.index(self.worst))
        return np.zeros(self.evalset.n, dtype=np.bool_)

    def _evaluated(self, evalset: EvalSet) -> Evaluation:
        asked = ("crps", "mae")
        return evaluate(evalset, coverages=self.coverages, metrics=asked, seed=self.seed)

    def _gain(self, drop: FloatArray, rows: FloatArray) -> tuple[float, float, float]:
        """By which share a score falls, with its 95 % interval: a ratio of means."""
        evalset, mass = self.evalset, counts(self.evalset)
        base = float(np.average(rows, weights=mass))
        gain = float(np.average(drop, weights=mass)) / base
        ratio = spread_of((drop - gain * rows) / base, evalset.weights, evalset.units)
        reach = float(special.stdtrit(max(float(ratio.degrees[0]), 1.0), 0.975) * ratio.error[0])
        return gain, gain - reach, gain + reach

    def _healed(self, mended: EvalSet) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
        """Which bad findings are healed, which are left, and whether another turned bad."""
        found, _ = judged(
            mended,
            self.dependence,
            coverages=self.coverages,
            seed=self.seed,
            ignore=self.ignore,
            miss_range=self.miss_range,
            told=False,
        )
        after = {each.id: each for each in found}
        level = LEVEL / max(len(self.red), 1)

        def fine(name: str) -> bool:
            held = after.get(name)
            if held is None:  # it cannot be asked any more: support of what covers every y
                return name == "support"
            return held.p >= level or (held.state != "bad" and abs(held.effect) <= held.tolerance)

        heals = tuple(name for name in self.red if fine(name))
        leaves = tuple(name for name in self.red if name in after and name not in heals)
        spoiled = any(each.state == "bad" and each.id not in self.red for each in found)
        return heals, leaves, spoiled

    def _chosen(self, made: Sequence[_Made], tried: Sequence[RecalibrationTrial]) -> int | None:
        """Of the accepted, those like the best; of these, what heals most, and is simplest."""
        accepted = [place for place, each in enumerate(tried) if each.accepted]
        if not accepted:
            return None
        best = max(accepted, key=lambda place: tried[place].gain)
        least = NEAR * tried[best].gain
        alike = [
            place
            for place in accepted
            if tried[place].gain >= least
            or _tested(made[best].drop - made[place].drop, self.evalset)[0] < _WORSE
        ]

        def order(place: int) -> tuple[float, ...]:
            return -len(tried[place].heals), made[place].candidate.complexity, -tried[place].gain

        return min(alike, key=order)

    def _costs(
        self, made: Sequence[_Made], tried: Sequence[RecalibrationTrial]
    ) -> dict[str, float]:
        """What each bad finding costs: the gain of the simplest way that heals it, or the most
        that one aimed at it saves.
        """
        costs = {}
        for name in self.red:
            aimed = [t for t, m in zip(tried, made, strict=True) if name in m.candidate.aims]
            chosen = [t for t in aimed if name in t.heals][:1] or aimed
            costs[name] = max([0.0, *(t.gain for t in chosen)])
        return costs


class _Fit(NamedTuple):
    """A way as it was fitted on the other rows of each fold, and a few rows as it leaves them."""

    candidate: MethodInfo
    by: tuple[str, ...]
    fitted: tuple[tuple[Recalibrator, ...], ...]
    few: EvalSet


class _Made(NamedTuple):
    """A way: how far each row's score falls, and the share by which the mean score does, with its
    interval; what it heals, leaves and spoils; the coverage then of the group that fails; and
    the mean width of intervals as a share of the stated one.
    """

    candidate: MethodInfo
    by: tuple[str, ...]
    drop: FloatArray
    gain: tuple[float, float, float]
    healed: tuple[tuple[str, ...], tuple[str, ...], bool]
    covered: float
    width: float


class _PartOfRows(NamedTuple):
    """Some of the rows: their name, which they are, and these without predictions."""

    name: str
    inside: BoolArray
    rows: EvalSet


def _harmed(
    drop: FloatArray, rows: FloatArray, unit: FloatArray, parts: Sequence[_PartOfRows]
) -> str:
    """The part whose mean score a way provably raises by most; empty where there is none."""
    worst, least = "", -_HARM
    for name, inside, held in parts:
        t, p = _tested(-(drop / unit)[inside], held)
        mass = counts(held)
        gain = float(np.average(drop[inside], weights=mass))
        share = gain / max(float(np.average(rows[inside], weights=mass)), 1e-300)
        if t > 0 and p * len(parts) < PROVEN and share < least:
            worst, least = name, share
    return worst


def _clear(red: Sequence[Finding]) -> tuple[str, ...]:
    """The findings whose healing is enough for a recalibration to be accepted."""
    return tuple(each.id for each in red if each.p_adjusted < HEALED)


def _tested(values: FloatArray, evalset: EvalSet) -> tuple[float, float]:
    """Student's t of a mean over rows, and its one-sided p-value that it is above 0."""
    mean = float(np.average(values, weights=counts(evalset)))
    found = spread_of(values - mean, evalset.weights, evalset.units)
    error = float(found.error[0])
    if not error > 0:
        return 0.0, 1.0
    t = mean / error
    return t, float(special.stdtr(max(float(found.degrees[0]), 1.0), -t))


def _keys(evalset: EvalSet) -> npt.NDArray[np.uint64]:
    """Hashes of the rows."""
    points = () if evalset.point is None else (evalset.point,)
    return row_keys(evalset.y, *points, *(v for b in evalset.beliefs for v in b.numbers().values()))


def _folds(evalset: EvalSet, seed: int) -> IntArray:
    """The fold of each row: whole clusters, stretches of time, else rows by what they hold."""
    if evalset.chronology is not None and _batches_are_few(evalset):
        held, place = evalset.chronology.ranks()
        return np.asarray(FOLDS * place // len(held))
    if evalset.cluster is not None:
        return np.asarray(evalset.cluster.codes % FOLDS)
    drawn = row_uniforms(seed, "folds", _keys(evalset))
    places = np.empty(evalset.n, dtype=np.int64)
    places[np.argsort(drawn, kind="stable")] = np.arange(evalset.n)
    return places % FOLDS


def _batches_are_few(evalset: EvalSet) -> bool:
    """Whether rows that follow each other make too few batches to stand for independent rows."""
    return evalset.cluster is not None and len(evalset.cluster.labels) < FEWEST_UNITS


def _first(folds: IntArray) -> IntArray:
    """A row of each fold."""
    return np.sort(np.unique(folds, return_index=True)[1])


def _fitted(evalset: EvalSet, candidate: MethodInfo, by: tuple[str, ...], folds: IntArray) -> _Fit:
    """A recalibration fitted for each fold on the others."""
    fitted = []
    for fold in range(FOLDS):
        own, train = np.flatnonzero(folds == fold), evalset.take(folds != fold)
        made = recalibrate(evalset.take(own[:1]), train, method=candidate.name, by=by)
        fitted.append(made.recalibrators)
    rows = _first(folds)
    few = _mended(evalset.take(rows), fitted, folds[rows])
    return _Fit(candidate, by, tuple(fitted), few)


def _mended(
    evalset: EvalSet, fitted: Sequence[tuple[Recalibrator, ...]], folds: IntArray
) -> EvalSet:
    """Every row as the recalibration leaves it that was fitted on the other folds."""
    beliefs: list[Pieces] = []
    point = None if evalset.point is None else evalset.point.copy()
    for fold, methods in enumerate(fitted):
        rows = np.flatnonzero(folds == fold)
        part = applied(methods, evalset.take(rows)).evalset
        beliefs = beliefs or [Pieces(belief, evalset.n) for belief in part.beliefs]
        for held, belief in zip(beliefs, part.beliefs, strict=True):
            if not _same_levels(held.first, belief):
                raise InputError("folds are too small for the same levels")
            if (
                isinstance(belief, Intervals)
                and not np.isfinite([belief.lower, belief.upper]).all()
            ):
                raise InputError("folds are too small for finite intervals")
            held.put(rows, belief)
        if point is not None and part.point is not None:
            point[rows] = part.point
    return replace(evalset, beliefs=tuple(each.join() for each in beliefs), point=point)


def _same_levels(prediction: Prediction, other: Prediction) -> bool:
    if isinstance(prediction, Quantiles) and isinstance(other, Quantiles):
        return np.array_equal(prediction.levels, other.levels)
    return True


def _unit(evalset: EvalSet) -> FloatArray:
    """What each row's score is divided by: its spread, not far below the mean one."""
    if not evalset.beliefs:
        return np.ones(evalset.n)
    belief = next(b for kind in _KINDS for b in evalset.beliefs if b.kind == kind)
    try:
        spread = belief.sd()
    except HowsureError:
        try:
            lower, upper = belief.interval(min(belief.widest, 0.9))
        except HowsureError:
            values = np.stack([*belief.numbers().values()], axis=-1).reshape(evalset.n, -1)
            lower, upper = values.min(axis=1), values.max(axis=1)
        spread = upper - lower
    mean = float(np.mean(spread[np.isfinite(spread)])) if np.isfinite(spread).any() else 0.0
    if not mean > 0:
        return np.ones(evalset.n)
    return np.asarray(np.maximum(np.where(np.isfinite(spread), spread, mean), _FLOOR * mean))


def _one_sign(evalset: EvalSet) -> bool:
    """Whether all predictions lie on one side of 0."""
    belief = next((b for kind in _KINDS for b in evalset.beliefs if b.kind == kind), None)
    try:
        center = evalset.point if belief is None else belief.point()
    except HowsureError:  # a law without a mean
        return False
    return center is not None and bool((center > 0).all() or (center < 0).all())


def _lately(bench: _Bench, red: Sequence[Finding]) -> Trials | None:
    """What helps of the rows from a change on, judged on these alone; None where nothing does."""
    where = next(each.where for each in red if each.id == "drift")
    since = where.removeprefix("from ").removesuffix(" on").removeprefix("time ")
    try:
        rows = since_rows(bench.evalset, since)
    except HowsureError:  # a time of words cannot be told from which on
        return None
    later = replace(bench, evalset=rows, since=since)
    if later.too_few:
        return None
    found, _ = judged(
        rows,
        bench.dependence,
        coverages=bench.coverages,
        seed=bench.seed,
        ignore=bench.ignore,
        miss_range=bench.miss_range,
    )
    bad = [each for each in found if each.state == "bad"]
    trials = replace(later, red=tuple(each.id for each in bad), clear=_clear(bad)).run()
    if trials.advice is None:
        return None
    left = trials.advice.leaves  # where none is left, what changed is mended too
    healed = (*(() if left else ("drift",)), *trials.advice.heals)
    advice = replace(trials.advice, heals=healed, leaves=left)
    return replace(trials, advice=advice, costs=dict.fromkeys(healed, max(advice.gain, 0.0)))


def _concluded(
    trials: Trials, red: Sequence[Finding], bench: _Bench, prefix: str | None, reason: str = ""
) -> Trials:
    """With the sentence of the advice and its command, or with what the bad need instead."""
    advice = trials.advice
    if advice is None:
        harmful = _harmful(trials)
        if not red and harmful is None:
            return trials
        reasons = [trial.reason for trial in trials.trials if trial.reason]
        if not reason and reasons and len(reasons) == len(trials.trials):
            reason = reasons[0]
        nearest = None if harmful is not None else _nearest(trials, bench)
        said = words.nothing_helps(red, nearest, harmful, trials.score, reason)
        return replace(trials, advice=Advice(method="", sentence=said, model=bench.evalset.model))
    rows = bench.evalset if not advice.since else since_rows(bench.evalset, advice.since)
    method = METHODS[advice.method].make(bench.kind, RecalibrationOptions(by=advice.by))
    fitted = method.fit(rows)
    step = words.step(advice, fitted.parameters, trials.lifted)
    said, command = f"Best next step: {step}", words.command(prefix, advice)
    return replace(trials, advice=replace(advice, sentence=said, command=command), step=step)


def _harmful(trials: Trials) -> RecalibrationTrial | None:
    """The way of the largest proven gain that was refused for harming a part of the rows."""
    level = PROVEN / max(len(trials.trials), 1)
    proven = [
        trial for trial in trials.trials if trial.harms and trial.p < level and trial.gain > 0
    ]
    return max(proven, key=lambda each: each.gain, default=None)


def _nearest(trials: Trials, bench: _Bench) -> tuple[str, float, int] | None:
    """The way of the largest gain, that gain, and the rows that would prove it; None without."""
    hopeful = [trial for trial in trials.trials if trial.gain > 0 and trial.p < 0.5]
    if not hopeful:
        return None
    best = max(hopeful, key=lambda each: each.gain)
    wanted = special.ndtri(PROVEN / len(trials.trials)) / special.ndtri(best.p)
    if wanted <= 1 or bench.evalset.n >= MOST_ROWS:  # it is proven, or more rows are there
        return None
    return best.method, best.gain, math.ceil(bench.evalset.n * float(wanted) ** 2)
