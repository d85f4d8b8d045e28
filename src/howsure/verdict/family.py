"""The verdict: one error rate by Holm over all findings, a tolerance, states, an order."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from howsure.core.arrays import check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError, attempt
from howsure.core.options import MISS_RANGE, TOLERANCE
from howsure.core.records import Record
from howsure.core.threads import one_thread
from howsure.engine.autocorrelation import Dependence
from howsure.engine.finding import LEVEL, MIN_ROWS_OF_PART, Draft, Finding, Standing, State
from howsure.engine.measure import Evaluation, evaluate
from howsure.predictions import EvalSet, content_order
from howsure.stats.binomial import holm
from howsure.stats.permutation import Resampling
from howsure.topics.groups import compare_groups
from howsure.verdict.copies import OTHERS
from howsure.verdict.dependence import Known, follow
from howsure.verdict.findings import case_of, drafts_of, measures, needs_null, questions
from howsure.verdict.nulls import with_nulls
from howsure.verdict.words import clause, more_rows, sentence


def judge(
    records: Sequence[Record],
    evalset: EvalSet,
    *,
    comparison: Standing | None = None,
    dependence: Dependence | str = "",
    tolerance: float = TOLERANCE,
    ignore: Collection[str] = (),
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Judge one model by its records.

    Examples
    --------
    >>> from howsure import assess, Distribution
    >>> rng = np.random.default_rng(0)
    >>> y, zero = rng.normal(size=2000), np.zeros(2000)
    >>> result = assess(y, Distribution.normal(zero, zero + 0.5))
    >>> [(finding.id, finding.state) for finding in result.findings][:2]
    [('spread', 'bad'), ('coverage', 'bad')]
    """
    check_fraction(tolerance, "tolerance")
    check_ignored(ignore)
    drafts, silent = drafts_of(case_of(records, evalset, comparison, dependence), ignore)
    adjusted = np.array(
        [draft.p if math.isnan(draft.p_adjusted) else draft.p_adjusted for draft in drafts]
    )
    family = np.array([questions()[draft.id].kind == "model" for draft in drafts], dtype=bool)
    adjusted[family] = holm(adjusted[family])
    judged = [
        _finding(draft, float(p), tolerance, evalset.model)
        for draft, p in zip(drafts, adjusted, strict=True)
    ]
    bad = {finding.id: abs(finding.effect) for finding in judged if finding.state == "bad"}
    moved = _moved_by_rows(drafts)
    causes: dict[str, str] = {}
    for draft in drafts:
        shares = {"rows": moved[draft.id] + _unsure(draft)} if draft.id in moved else {}
        shares |= {name: unit * bad[name] for name, unit in draft.within.items() if name in bad}
        if draft.id in bad and sum(shares.values()) >= bad[draft.id] and shares:
            causes[draft.id] = max(shares, key=lambda name: shares[name])
    findings = []
    for draft, finding in zip(drafts, judged, strict=True):
        cause = causes.get(draft.id, "")
        cause = causes.get(cause, cause)  # tails may themselves be part of something
        doubted = replace(finding, state="caution") if cause else finding
        findings.append(_in_words(doubted, draft, cause))
    return ordered(findings), silent


def _in_words(finding: Finding, draft: Draft, cause: str) -> Finding:
    """With its sentence; words that fail leave those of the others."""
    label = questions()[finding.id].label
    more = more_rows(finding, draft)
    return attempt(
        f"words of {finding.id}",
        lambda: replace(
            finding,
            sentence=sentence(finding, draft, cause),
            clause=clause(finding, draft),
            more_rows=more,
        ),
        lambda reason: replace(finding, sentence=f"{label}: {reason}.", clause=label.lower()),
    )


def _moved_by_rows(drafts: Sequence[Draft]) -> dict[str, float]:
    """By how much what is wrong with rows may move each finding."""
    moved: dict[str, float] = {}
    faults = [fault for draft in drafts if draft.id == "rows" for fault in draft.facts["found"]]
    for name in (draft.id for draft in drafts if questions()[draft.id].kind == "model"):
        for fault in faults:
            unit = fault.explains.get(name, fault.explains.get(OTHERS))
            if unit is not None:
                moved[name] = moved.get(name, 0.0) + unit * fault.share
    return moved


def _unsure(draft: Draft) -> float:
    """How far the end of the interval that is nearer to 0 lies from the effect."""
    ends = sorted((abs(draft.lower), abs(draft.upper)))
    if math.isnan(ends[0]):
        return 0.0
    near = ends[0] if draft.lower * draft.upper > 0 else 0.0
    return max(abs(draft.effect) - near, 0.0)


def ordered(
    findings: Sequence[Finding], costs: Mapping[str, float] = MappingProxyType({})
) -> tuple[Finding, ...]:
    """Faults of rows and ends; what is bad, by its cost if known, then by size; the others."""
    places = {name: place for place, name in enumerate(questions())}
    known = [replace(each, cost=costs.get(each.id, each.cost)) for each in findings]

    def rank(finding: Finding) -> tuple[float, ...]:
        if questions()[finding.id].kind == "data":
            return -1, places[finding.id]
        if finding.state != "bad":
            return 1, places[finding.id]
        cost = 0.0 if math.isnan(finding.cost) else finding.cost
        size = abs(finding.effect) / finding.tolerance if finding.tolerance > 0 else math.inf
        return 0, -round(cost, 4), -size

    return tuple(sorted(known, key=rank))


def check_ignored(ignore: Collection[str], name: str = "ignore") -> tuple[str, ...]:
    """Refuse ids of no finding."""
    if isinstance(ignore, str) or not isinstance(ignore, Collection):
        raise InputError(f"{name} must be a list of names, got {ignore!r}")
    unknown = [each for each in ignore if each not in questions()]
    if unknown:
        raise InputError(f"{name} must be among {', '.join(questions())}, got {unknown[0]!r}")
    return tuple(ignore)


def _finding(draft: Draft, adjusted: float, tolerance: float, model: str) -> Finding:
    question = questions()[draft.id]
    sets = draft.facts.get("sets", False)
    harmless = question.tolerance if math.isnan(draft.tolerance) else draft.tolerance
    allowed = harmless * tolerance / TOLERANCE
    margin = max(question.margin, allowed)
    size = abs(draft.effect)
    here = float(draft.facts.get("p_here", math.nan))  # of these rows, if not in general
    proven, alone = adjusted < LEVEL, draft.p < LEVEL or here < LEVEL
    spans = [(draft.effect, draft.lower, draft.upper), *draft.beside]
    within = all(lower >= -margin and upper <= margin for _, lower, upper in spans)
    state: State = "undecided"
    if question.kind == "data":
        state = "bad" if draft.facts["bad"] else "negligible" if draft.good else "caution"
    elif question.kind == "setting":
        state = "good" if draft.good else "caution" if draft.caution else "undecided"
    elif proven and draft.where and draft.facts.get("rows", draft.n) < MIN_ROWS_OF_PART:
        state = "caution"
    elif proven:
        state = "bad" if size > allowed else "negligible"
    elif alone and size > allowed:
        state = "caution"
    elif within if draft.good is None else draft.good:
        state = "good"
    elif draft.caution:
        state = "caution"
    if not draft.telling and state in ("good", "negligible"):
        state = "undecided"
    return Finding(
        id=draft.id,
        question=question.asked.replace("intervals", "sets") if sets else question.asked,
        state=state,
        effect=draft.effect,
        unit=question.unit,
        lower=draft.lower,
        upper=draft.upper,
        p=draft.p,
        p_adjusted=adjusted,
        tolerance=allowed,
        cost=math.nan,
        where=draft.where,
        sentence="",
        model=model,
    )


# ---- the verdict without a report: only what its questions read is measured ----------------------


@one_thread()
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def examine(
    evalset: EvalSet,
    *,
    coverages: Sequence[float] = (),
    seed: int = 0,
    tolerance: float = TOLERANCE,
    ignore: Collection[str] = (),
    miss_range: Sequence[float] = MISS_RANGE,
    thresholds: Sequence[float] = (),
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Judge one model, as `howsure.assess` does but for congruence, without a report.

    Examples
    --------
    >>> from howsure import Distribution
    >>> rng = np.random.default_rng(0)
    >>> y, zero = rng.normal(size=500), np.zeros(500)
    >>> held = EvalSet.checked(y, Distribution.normal(zero, zero + 1.0))
    >>> examine(held)[0][0].state
    'undecided'
    """
    check_fraction(tolerance, "tolerance")
    check_ignored(ignore)
    judging = Judging(coverages, seed, tolerance, ignore, miss_range, thresholds)
    (evalset,), (dependence,) = follow([evalset], content_order([evalset]))
    return judge_rows(evalset, dependence, judging)


@frozen
class Judging:
    """How rows are judged: as the parameters of `examine`."""

    coverages: Sequence[float] = ()
    seed: int = 0
    tolerance: float = TOLERANCE
    ignore: Collection[str] = ()
    miss_range: Sequence[float] = MISS_RANGE
    thresholds: Sequence[float] = ()


_AS_USUAL = Judging()


def judge_rows(
    evalset: EvalSet,
    dependence: Known,
    judging: Judging = _AS_USUAL,
    *,
    described: bool = True,
    known: Evaluation | None = None,
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Judge rows whose order and dependence are known.

    What words alone read is measured where findings are `described`. Measures of an evaluation that
    is `known` are taken from it.
    """
    seed = judging.seed
    measure = partial(evaluate, evalset, coverages=judging.coverages, seed=seed)
    evaluation = measure(
        metrics=measures(described=described),
        miss_range=judging.miss_range,
        given={"thresholds": judging.thresholds},
        known=known,
    )
    lacking = tuple(filter(needs_null, evaluation.records))
    records = [record for record in evaluation.records if not needs_null(record)]
    records += with_nulls(replace(evaluation, records=lacking), seed=seed, dependence=dependence)[0]
    records += compare_groups(evaluation, seed=seed).records
    if evalset.features or evalset.embedding is not None:
        records += measure(metrics=measures("inputs"), beside="inputs").records
    if evalset.ease in evalset.features:
        without_draws = {"resampling": Resampling(replicates=0, permutations=0)}
        records += measure(metrics=measures("ease"), beside="ease", given=without_draws).records
    return judge(
        records,
        evalset,
        dependence=dependence,
        tolerance=judging.tolerance,
        ignore=judging.ignore,
    )
