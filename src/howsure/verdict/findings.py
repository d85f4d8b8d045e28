"""All findings: what topics conclude from their measures, and which of several models is best."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType

import numpy as np

from howsure.core.errors import UnanswerableError, attempt
from howsure.core.formats import listed, number, p_words
from howsure.core.records import Record
from howsure.engine.autocorrelation import Dependence
from howsure.engine.catalogue import catalogue, every_topic
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Standing, Words
from howsure.engine.metric import Beside
from howsure.predictions import EvalSet
from howsure.topics.compare import per_cent
from howsure.verdict.dependence import DEPENDENCE
from howsure.verdict.row_finding import ROWS

_ORDER = (
    "rows",
    "impossible",
    "sureness",
    "level",
    "shape",
    "class_groups",
    "class_region",
    "class_skill",
    "decision",
    "ends",
    "coverage",
    "bias",
    "spread",
    "skew",
    "tails",
    "one_sided",
    "support",
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
    "lead_time",
    "comparison",
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
def measures(beside: Beside = "", *, described: bool = True) -> tuple[str, ...]:
    """The measures that findings read, of those that need so much beside y and predictions.

    Unless findings are `described`, without what their words alone read.
    """
    entries = catalogue()
    names = dict.fromkeys(
        name
        for question in questions().values()
        for name in (*question.measures, *(question.told_by if described else ()))
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
    finite = (coverage for coverage in coverages if not math.isnan(coverage))
    return min(finite, key=lambda c: (abs(c - 0.9), -c), default=math.nan)


def case_of(
    records: Sequence[Record],
    evalset: EvalSet,
    comparison: Standing | None = None,
    dependence: Dependence | str = "",
) -> Case:
    """Pick the records of one model that its verdict rests on."""
    of_model = [record for record in records if record.model == evalset.model]
    covers = {
        record.coverage
        for record in of_model
        if record.metric == "empirical_coverage" and not math.isnan(record.value)
    }
    coverage = headline_coverage(covers)
    chosen: dict[str, Record] = {}
    levels: dict[float, dict[str, Record]] = {}
    for record in of_model:
        if record.coverage in covers and not record.group:
            levels.setdefault(record.coverage, {})[record.metric] = record
        if record.group and record.metric != "worst_group_shortfall":
            continue
        if math.isnan(record.coverage) or math.isnan(coverage) or record.coverage == coverage:
            chosen.setdefault(record.metric, record)
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
        ask: Callable[[], Draft | str] = partial(question.draft, case)
        answer = attempt(what, ask, str)
        if isinstance(answer, Draft) and _is_of_few(answer, case.evalset.fewest):
            silent[name] = f"the part that was found has fewer than {case.evalset.fewest} rows"
        elif isinstance(answer, Draft):
            drafts.append(replace(answer, id=name))
        elif answer:
            silent[name] = answer
    return drafts, silent


def _is_of_few(draft: Draft, fewest: int) -> bool:
    """Whether a draft is of a part of fewer rows than may be told of."""
    return bool(draft.where) and float(draft.facts.get("rows", draft.n)) < fewest


# ---- which of several models is better, as a finding ---------------------------------------------


def _draft_comparison(case: Case) -> Draft:
    standing = case.comparison
    if standing is None:
        raise UnanswerableError("there is one model")
    return Draft(
        effect=standing.difference,
        lower=standing.difference_lower,
        upper=standing.difference_upper,
        p=standing.p,
        p_adjusted=standing.p_adjusted,  # whose pairs are a family of their own
        good=bool(standing.best.sum() == 1),
        facts={"standing": standing},
    )


def _describe_comparison(draft: Draft, finding: Finding) -> Words:
    standing: Standing = draft.facts["standing"]
    models, title, count = standing.models, standing.score.title, len(standing.models)
    best = [name for name, is_best in zip(models, standing.best, strict=True) if is_best]
    worse = [name for name in models if name not in best]
    p = "all rows are equal" if math.isnan(finding.p_adjusted) else p_words(finding.p_adjusted)
    if count == 2 and worse:
        size = abs(draft.effect)
        share = size * per_cent(standing.score.metric, float(standing.values[1]))
        lead = number(size, 3) + ("" if math.isnan(share) else f", or {number(share, 2)} %")
        seen = f"{best[0]} beats {worse[0]} in {title} by {lead} ({p})"
    elif count == 2:
        seen = f"{best[0]} and {best[1]} do not differ significantly in {title} ({p})"
    elif count > _MAX_MODELS_NAMED and len(best) == 1:
        seen = f"{models[0]} has the lowest {title}; "
        seen += f"the other {len(worse)} models are significantly worse"
    elif count > _MAX_MODELS_NAMED:
        seen = f"{models[0]} has the lowest {title}; "
        seen += f"it and {len(best) - 1} others of {count} models do not differ significantly"
    elif len(best) == 1:
        seen = f"{best[0]} has the lowest {title}; {listed(worse)} are significantly worse"
    else:
        seen = f"{listed(best)} do not differ significantly in {title}"
        if worse and standing.behind[np.ix_(~standing.best, standing.best)].all():
            seen += f"; {'both' if len(best) == 2 else 'all'} beat {listed(worse)}"
        elif worse:
            seen += f"; {listed(worse)} {'is' if len(worse) == 1 else 'are'} significantly worse"
    return Words(seen, more=_not_compared(standing.left_out))


# The most models that are all named in one sentence of 25 words.
_MAX_MODELS_NAMED = 4


def _not_compared(left_out: Mapping[str, str]) -> str:
    """Who does not have the score, and why if it is one."""
    if not left_out:
        return ""
    if len(left_out) == 1:
        ((name, why),) = left_out.items()
        return f"{name} cannot be compared: {why}."
    return f"{len(left_out)} models cannot be compared; the table gives the reasons."


COMPARISON = FindingQuestion(
    id="comparison",
    kind="setting",
    asked="Which model is better?",
    label="Best model",
    unit="y",
    draft=_draft_comparison,
    words=_describe_comparison,
    margin=math.nan,
    reported=True,
)
