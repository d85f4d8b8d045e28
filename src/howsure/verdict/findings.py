"""All findings: what topics conclude from their measures, and what belongs to no topic."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType

from howsure.core.errors import UnanswerableError, attempt
from howsure.core.records import Record
from howsure.engine.autocorrelation import Dependence
from howsure.engine.catalogue import catalogue, every_topic
from howsure.engine.finding import Case, Draft, FindingQuestion, Standing
from howsure.engine.metric import Beside
from howsure.predictions import EvalSet
from howsure.verdict.comparison import COMPARISON
from howsure.verdict.dependence import DEPENDENCE
from howsure.verdict.row_finding import ROWS

_ORDER = (
    *("rows", "ends", "coverage", "bias", "spread", "skew", "tails", "one_sided", "support"),
    *(
        "groups",
        "region",
        "ease",
        "congruence",
        "width",
        "trade",
        "skill",
        "sets",
        "dependence",
        "drift",
    ),
    *("lead_time", "comparison"),
)
"""In which what is not bad is told; what is not named here follows."""


@cache
def questions() -> Mapping[str, FindingQuestion]:
    """Every finding by its id, in the order in which what is not bad is told."""
    of_topics = (question for topic in every_topic() for question in topic.findings)
    known = {each.id: each for each in (*of_topics, ROWS, DEPENDENCE, COMPARISON)}
    first = [name for name in _ORDER if name in known]
    return MappingProxyType({name: known[name] for name in (*first, *known)})


@cache
def measures(beside: Beside = "", *, told: bool = True) -> tuple[str, ...]:
    """The measures that findings read, of those that need so much beside y and predictions.

    Unless findings are `told`, without what their words alone read.
    """
    entries = catalogue()
    names = dict.fromkeys(
        name
        for each in questions().values()
        for name in (*each.measures, *(each.told_by if told else ()))
    )
    return tuple(
        name
        for name in names
        if name in entries and entries[name].beside == beside and entries[name].forms
    )


def needs_null(record: Record) -> bool:
    """Whether a finding asks what a right model shows."""
    asks = (question.reads_null for question in questions().values())
    return any(ask(record) for ask in asks if ask is not None)


def headline_coverage(coverages: Iterable[float]) -> float:
    """The coverage that a verdict speaks of: 0.9 if assessed, else the one nearest to it."""
    known = [c for c in coverages if not math.isnan(c)]
    return min(known, key=lambda c: (abs(c - 0.9), -c)) if known else math.nan


def case_of(
    records: Sequence[Record],
    evalset: EvalSet,
    comparison: Standing | None = None,
    dependence: Dependence | str = "",
) -> Case:
    """Pick the records of one model that its verdict rests on."""
    mine = [record for record in records if record.model == evalset.model]
    covers = [r.coverage for r in mine if r.metric == "empirical_coverage" and r.value == r.value]
    coverage = headline_coverage(covers)
    chosen: dict[str, Record] = {}
    for record in mine:
        if record.group and record.metric != "worst_group_shortfall":
            continue
        if math.isnan(record.coverage) or math.isnan(coverage) or record.coverage == coverage:
            chosen.setdefault(record.metric, record)
    levels: dict[float, dict[str, Record]] = {}
    for record in mine:
        if record.coverage in covers and not record.group:
            levels.setdefault(record.coverage, {})[record.metric] = record
    return Case(evalset, chosen, coverage, levels, comparison, dependence)


def drafts_of(case: Case, ignore: Collection[str] = ()) -> tuple[list[Draft], dict[str, str]]:
    """What every question shows, and the reasons of those that do not apply."""
    drafts: list[Draft] = []
    silent: dict[str, str] = {}
    for name, question in questions().items():
        if name in ignore:
            silent[name] = "ignored, as asked"
            continue
        what = f"{name} in the verdict on {case.evalset.model}"
        answer = attempt(what, partial(_draft_finding, question, case), str)
        if isinstance(answer, Draft) and _is_of_few(answer, case.evalset.fewest):
            silent[name] = f"the part found has fewer than {case.evalset.fewest} rows"
        elif isinstance(answer, Draft):
            drafts.append(replace(answer, id=name))
        elif answer:
            silent[name] = answer
    return drafts, silent


def _is_of_few(draft: Draft, fewest: int) -> bool:
    """Whether a draft is of a part of fewer rows than may be told of."""
    return bool(draft.where) and float(draft.facts.get("rows", draft.n)) < fewest


def _draft_finding(question: FindingQuestion, case: Case) -> Draft | str:
    try:
        return question.draft(case)
    except UnanswerableError as reason:
        return str(reason)
