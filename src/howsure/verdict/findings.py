"""One function a question: records of a model in, what they show out."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from scipy import special

from howsure.core.errors import UnanswerableError
from howsure.core.faults import attempt
from howsure.core.records import Record
from howsure.core.times import Chronology
from howsure.metrics.calibration.components import MOVED
from howsure.metrics.calibration.responses import ONE_WIDTH
from howsure.metrics.catalogue import TOPICS, catalogue
from howsure.metrics.compare import Standing
from howsure.metrics.groups import MOST_LABELS
from howsure.metrics.serial import Dependence
from howsure.metrics.view import View
from howsure.predictions import EvalSet, LabelSets
from howsure.stats.binomial import binomial_test
from howsure.stats.estimate import spread_of, weighted_mean
from howsure.verdict.rows import row_faults

State = Literal["good", "caution", "bad", "negligible", "undecided"]

LEVEL = 0.05
"""Error rate of all findings together."""
MEAN_ERROR = math.sqrt(2.0 / math.pi)
"""Mean absolute error of a normal law, in sds."""
_REACH = float(special.ndtri(0.975))


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingQuestion:
    """What a finding answers.

    Attributes
    ----------
    asked : str
        The question, for people.
    label : str
        It in a word or two, for a table.
    unit : str
        Of the effect and its bounds.
    tolerance : float
        Size of an effect that does no harm, at the default tolerance of one point of coverage.
    margin : float
        What the whole interval of the effect must lie within to be good; NaN where no amount of
        rows gives evidence *for* a model.
    """

    asked: str
    label: str
    unit: str
    tolerance: float = 0.01
    margin: float = 0.03


QUESTIONS: Mapping[str, FindingQuestion] = MappingProxyType(
    {
        "rows": FindingQuestion(
            asked="Are rows what they seem?",
            label="Rows",
            unit="share",
            tolerance=0.0,
            margin=math.nan,
        ),
        "coverage": FindingQuestion(
            asked="Do the intervals cover as often as they claim?", label="Coverage", unit="share"
        ),
        "bias": FindingQuestion(
            asked="Are the predictions centred?",
            label="Bias",
            unit="mean error",
            tolerance=0.02,
            margin=0.1,
        ),
        "spread": FindingQuestion(
            asked="Is the stated spread right?",
            label="Spread",
            unit="ratio − 1",
            tolerance=0.02,
            margin=0.1,
        ),
        "skew": FindingQuestion(asked="Is the stated skew right?", label="Skew", unit="share"),
        "tails": FindingQuestion(asked="Are the stated tails right?", label="Tails", unit="share"),
        "one_sided": FindingQuestion(
            asked="Are misses as frequent on both sides?", label="Both sides", unit="share"
        ),
        "support": FindingQuestion(
            asked="Is every y possible?", label="Support", unit="share", tolerance=0.0
        ),
        "groups": FindingQuestion(
            asked="Do groups differ in coverage?", label="Groups", unit="share"
        ),
        "region": FindingQuestion(
            asked="Does coverage depend on the inputs?", label="Regions", unit="share"
        ),
        "ease": FindingQuestion(
            asked="Does coverage hold where rows are hard?", label="Ease", unit="share"
        ),
        "congruence": FindingQuestion(
            asked="Is the prediction right at every input?",
            label="Congruence",
            unit="ratio − 1",
            tolerance=0.02,
            margin=math.nan,
        ),
        "width": FindingQuestion(
            asked="Do widths follow the size of the errors?",
            label="Widths",
            unit="ratio − 1",
            tolerance=0.02,
            margin=0.1,
        ),
        "trade": FindingQuestion(
            asked="Do varying widths help?",
            label="Gain of widths",
            unit="ratio − 1",
            tolerance=0.02,
            margin=math.nan,
        ),
        "sets": FindingQuestion(
            asked="Do sets of every size cover alike?", label="Set sizes", unit="share"
        ),
        "dependence": FindingQuestion(
            asked="Are rows independent?",
            label="Independence",
            unit="ratio − 1",
            tolerance=0.1,
            margin=0.25,
        ),
        "drift": FindingQuestion(
            asked="Does coverage change over time?", label="Drift", unit="share"
        ),
        "comparison": FindingQuestion(
            asked="Which model is better?", label="Best model", unit="y", margin=math.nan
        ),
    }
)
"""Every finding by its id, in the order in which what is not bad is told."""


_READ: Mapping[str, tuple[str, ...]] = {
    "": (
        "empirical_coverage",
        "misses_below",
        "pit_bias",
        "pit_spread",
        "pit_skew",
        "pit_tails",
        "width_response",
        "miss_imbalance",
        "impossible_share",
        "characteristic_gain",
        "characteristic_partial_gain",
        "empty_sets",
        "set_size",
        "sscv",
        "bias",
        "mae",
        "coverage_drift",
        "bias_drift",
        "spread_drift",
    ),
    "inputs": ("worst_region", "noise_given_inputs"),
    "ease": ("t_cv",),
}
_OWN = frozenset(entry.name for topic in TOPICS for entry in topic.entries)
MEASURES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {beside: tuple(name for name in names if name in _OWN) for beside, names in _READ.items()}
)
"""The measures that findings read of topics that are there, by what they need beside y and
predictions.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One question of the verdict, answered.

    Attributes
    ----------
    id : str
        Its name; a page of the documentation bears it.
    question : str
        What it answers.
    state : {"good", "caution", "bad", "negligible", "undecided"}
        ``bad``: jointly proven, and beyond the tolerance. ``negligible``: proven, within it.
        ``good``: the interval lies within the margin. ``caution``: below .05 alone, not jointly.
    effect, unit, lower, upper
        Size of the departure from a correctly specified model, and its 95 % interval.
    p, p_adjusted : float
        Its p-value alone, and among all findings of the model (Holm).
    tolerance : float
        The effect that does no harm.
    cost : float
        Of what is bad, the share of its score that the mend aimed at it saves on held-out rows;
        NaN where none was tried.
    where : str
        The group or the part of the inputs, if there is one.
    sentence : str
        The finding in words.
    model : str
        Which model.
    """

    id: str
    question: str
    state: State
    effect: float
    unit: str
    lower: float
    upper: float
    p: float
    p_adjusted: float
    tolerance: float
    cost: float
    where: str
    sentence: str
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What one question showed, before it is judged beside the others.

    `good` overrides the margin where evidence for a model has another form; `caution` is of what is
    never bad. `within` names the findings that explain this one where they are bad, each with the
    effect here that one unit of theirs explains. `beside` are effects, each with its interval,
    that must lie within the margin too, for the finding to be good. `facts` are for the sentence.
    """

    id: str
    effect: float
    lower: float = math.nan
    upper: float = math.nan
    p: float = math.nan
    where: str = ""
    n: float = math.nan
    good: bool | None = None
    caution: bool = False
    within: Mapping[str, float] = field(default_factory=dict)
    beside: tuple[tuple[float, float, float], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """The records of one model that a verdict rests on, found once.

    `records` are those at the headline coverage, `levels` those at every stated one.
    """

    evalset: EvalSet
    records: Mapping[str, Record]
    coverage: float
    levels: Mapping[float, Mapping[str, Record]] = field(default_factory=dict)
    comparison: Standing | None = None
    dependence: Dependence | str = ""

    def get(self, name: str) -> Record:
        """The record of a measure; or the reason why it has none."""
        record = self.records.get(name)
        if record is None:
            if name not in catalogue():
                raise UnanswerableError(f"no topic brings the measure {name}")
            beside = catalogue()[name].beside
            if beside == "groups" and self.evalset.groups:
                raise UnanswerableError(f"no column has {MOST_LABELS:,} groups or fewer")
            raise UnanswerableError(_ABSENT[beside])
        if math.isnan(record.value):
            raise UnanswerableError(record.reason)
        return record

    @property
    def exact(self) -> bool:
        """Whether rows are independent, so that shares are binomial."""
        weights = self.evalset.weights
        return self.evalset.units is None and (weights is None or weights.kind == "frequency")

    @property
    def freedom(self) -> float:
        """Degrees of freedom of an error of all rows."""
        found = self.dependence
        if self.evalset.chronology is not None and not isinstance(found, str):
            return max(found.effective - 1.0, 1.0)
        return max(self.evalset.independent_n - 1.0, 1.0)


_ABSENT = {
    "": "it was not measured",
    "groups": "the table has no groups",
    "inputs": "the table has no inputs",
    "ease": "the table has no ease",
}


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
    """What every question shows, and the reasons of those that do not apply.

    Of rows that are what they seem nothing is said.
    """
    drafts: list[Draft] = []
    silent: dict[str, str] = {}
    for name in QUESTIONS:
        if name in ignore:
            silent[name] = "ignored, as asked"
            continue
        told = f"{name} in the verdict on {case.evalset.model}"
        answer = attempt(told, partial(_asked, name, case), str)
        if isinstance(answer, Draft):
            drafts.append(answer)
        elif answer:
            silent[name] = answer
    return drafts, silent


def _asked(name: str, case: Case) -> Draft | str:
    try:
        return _ASKERS[name](case)
    except UnanswerableError as reason:
        return str(reason)


def _at_worst(case: Case, ask: Callable[[Case], Draft]) -> Draft:
    """What a question shows at the stated level that is farthest off, one test for all levels.

    Where none is proven to be off, at the headline level.
    """
    drafts: dict[float, Draft] = {}
    for coverage, records in case.levels.items():
        with suppress(UnanswerableError):
            drafts[coverage] = ask(replace(case, coverage=coverage, records=records))
    headline = drafts.pop(case.coverage, None) or ask(case)
    if not drafts or any(math.isnan(draft.p) for draft in (headline, *drafts.values())):
        return headline
    every = {case.coverage: headline, **drafts}
    worst = min(every, key=lambda coverage: every[coverage].p)
    p = min(len(every) * every[worst].p, 1.0)
    chosen = every.pop(worst if p < _PLAIN else case.coverage)
    return replace(
        chosen,
        p=p,
        beside=tuple((each.effect, each.lower, each.upper) for each in every.values()),
        facts={**chosen.facts, "others": list(every)},
    )


def _rows(case: Case) -> Draft:
    known = case.dependence
    found = row_faults(case.evalset, 1.0 if isinstance(known, str) else known.tau)
    if not found:
        raise UnanswerableError("")
    first = found[0]
    return Draft(
        id="rows",
        effect=first.share,
        n=float(case.evalset.n),
        caution=True,
        facts={"found": found, "bad": any(each.bad for each in found)},
    )


def _coverage(case: Case) -> Draft:
    if math.isnan(case.coverage):
        case.get("empirical_coverage")
        raise UnanswerableError("the nominal coverage of the intervals is unknown")
    return _at_worst(case, _coverage_at)


def _coverage_at(case: Case) -> Draft:
    cover = case.get("empirical_coverage")
    least = case.coverage if math.isnan(cover.null) else cover.null
    most = float(cover.options.get("claimed_most", least))
    claimed = least if cover.value < least else most

    def beyond(share: float) -> float:
        return share - min(max(share, least), most)

    if least < cover.value < most:
        p = 1.0
    elif case.exact:  # past the most: y strictly inside more often than the least claims
        hits = cover.value - (most - least if cover.value >= most else 0.0)
        p = float(binomial_test(round(hits * cover.n), cover.n, least))
    elif case.evalset.chronology is not None:
        p = _in_time(case, case.evalset.chronology, cover.value - claimed, claimed)
    else:
        spread = cover.value * (1.0 - cover.value)
        wider = math.sqrt(max(claimed * (1.0 - claimed) / spread, 1.0)) if spread > 0 else 1.0
        p = _student(cover.value - claimed, wider * cover.standard_error, case.freedom)
    return Draft(
        id="coverage",
        effect=beyond(cover.value),
        lower=beyond(cover.lower),
        upper=beyond(cover.upper),
        p=p,
        n=cover.n,
        within=_since(case, "coverage"),
        facts={
            "record": cover,
            "coverage": case.coverage,
            "claims": (least, most),
            "sets": any(isinstance(each, LabelSets) for each in case.evalset.beliefs),
        },
    )


def _in_time(case: Case, times: Chronology, off: float, claimed: float) -> float:
    """The p-value of coverage where rows follow each other: hits hide the memory of sizes.

    The variance of a hit is that of the claim at least: one that is smaller is luck.
    """
    evalset = case.evalset
    hits = np.asarray(View(evalset).get("covered", case.coverage), dtype=np.float64)
    mean = weighted_mean(hits, evalset.multiplicities)
    least = math.sqrt(claimed * (1.0 - claimed))
    if hits.min() == hits.max():  # the signal alone tells
        rows, scale = times.size, 1.0 / least if least > 0 else math.nan
        if rows is None:
            return math.nan
        rows = rows - weighted_mean(rows, evalset.multiplicities)
        rows = rows / math.sqrt(weighted_mean(np.square(rows), evalset.multiplicities))
    else:
        rows, scale = hits - mean, min(math.sqrt(mean * (1.0 - mean)) / least, 1.0)
    return spread_of(rows, evalset.weights, times.hiding(times.size)).p(scale * off)


def _student(value: float, error: float, freedom: float) -> float:
    """Two-sided p-value of a mean that should be 0."""
    if not error > 0:
        return math.nan
    return float(2.0 * special.stdtr(freedom, -abs(value) / error))


def _bias(case: Case) -> Draft:
    try:
        found = case.get("pit_bias")
    except UnanswerableError:
        return _point_bias(case)
    return Draft(
        id="bias",
        effect=found.value / MEAN_ERROR,
        lower=found.lower / MEAN_ERROR,
        upper=found.upper / MEAN_ERROR,
        p=found.p,
        n=found.n,
        within={"skew": 4.0, **_since(case, "bias")},
        facts={"record": found},
    )


def _point_bias(case: Case) -> Draft:
    """The mean error of a point forecast that was given, as a mean."""
    if case.evalset.point is None:
        raise UnanswerableError("neither a predictive distribution nor a point forecast was given")
    bias, error = case.get("bias"), case.get("mae")
    if not error.value > 0:
        raise UnanswerableError("every error is 0")
    return Draft(
        id="bias",
        effect=-bias.value / error.value,
        lower=-bias.upper / error.value,
        upper=-bias.lower / error.value,
        p=_student(bias.value, bias.standard_error, case.freedom),
        n=bias.n,
        facts={"record": bias, "point": True},
    )


def _spread(case: Case) -> Draft:
    found = case.get("pit_spread")
    return Draft(
        id="spread",
        effect=found.value - 1.0,
        lower=found.lower - 1.0,
        upper=found.upper - 1.0,
        p=found.p,
        n=found.n,
        within={"skew": 3.0, "tails": 20.0, **_since(case, "spread")},
        facts={"record": found},
    )


def _shape(name: str, case: Case) -> Draft:
    found = case.get(f"pit_{name}")
    return Draft(
        id=name,
        effect=found.value,
        lower=found.lower,
        upper=found.upper,
        p=found.p,
        n=found.n,
        within={"width": 0.1, "groups": 0.15, "region": 0.15, "drift": 0.2},
        facts={"record": found},
    )


def _one_sided(case: Case) -> Draft:
    return _at_worst(case, _one_sided_at)


def _one_sided_at(case: Case) -> Draft:
    cover = case.get("empirical_coverage")
    if cover.source == "label sets":
        raise UnanswerableError("label sets have no sides")
    if cover.source != "intervals":
        raise UnanswerableError("bias and skew judge both sides of a predictive distribution")
    if "claimed_most" in cover.options:
        raise UnanswerableError("y often equals an end of its interval")
    found = case.get("miss_imbalance")
    if math.isnan(found.p):
        raise UnanswerableError("no row is missed")
    return Draft(
        id="one_sided",
        effect=found.value,
        lower=found.lower,
        upper=found.upper,
        p=found.p,
        n=found.n,
        facts={
            "record": found,
            "below": case.get("misses_below").value,
            "coverage": case.coverage,
        },
    )


def _support(case: Case) -> Draft:
    found = case.get("impossible_share")
    if found.value == 0:
        raise UnanswerableError("every y is possible under its prediction")
    return Draft(
        id="support",
        effect=found.value,
        lower=found.lower,
        upper=found.upper,
        p=0.0,
        n=found.n,
        facts={"record": found},
    )


FROM_ALL = "expected from all rows"
"""By what a group's coverage is judged, in words."""


def _groups(case: Case) -> Draft:
    worst = case.records.get("worst_group_shortfall")
    try:
        return _apart("groups", case.get("groups_differ"), {"worst": worst, "by": FROM_ALL})
    except UnanswerableError:  # of a range of claims, a group can fall short of the least
        if worst is None or math.isnan(worst.p):
            raise
    claimed = float(worst.options["claimed"])
    return Draft(
        id="groups",
        effect=-worst.value,
        lower=-worst.upper,
        upper=-worst.lower,
        p=worst.p if worst.value > 0 else 1.0,
        where=worst.group,
        n=worst.n,
        good=worst.upper <= QUESTIONS["groups"].margin,
        facts={
            "value": claimed - worst.value,
            "expected": claimed,
            "by": "claimed at least",
            "rows": worst.n,
            "spells": worst.options.get("spells", 0.0),
            "worst": worst,
        },
    )


def _apart(name: str, test: Record, facts: Mapping[str, Any]) -> Draft:
    """A part of the rows that is covered otherwise than all rows lead one to expect."""
    chosen = dict(test.options)
    seen, expected = float(chosen["value"]), float(chosen["expected"])
    margin = QUESTIONS[name].margin
    return Draft(
        id=name,
        effect=seen - expected,
        lower=float(chosen["lower"]) - expected,
        upper=float(chosen["upper"]) - expected,
        p=test.p,
        where=str(chosen["where"]),
        n=test.n,
        good=float(chosen["reach"]) <= margin,
        facts={**chosen, **facts},
    )


def _region(case: Case) -> Draft:
    found = case.get("worst_region")
    effect, lower, upper = (each - found.null for each in (found.value, found.lower, found.upper))
    moved = MOVED.get(str(found.options["signal"]))
    if moved is not None:  # told by the PIT, which coverage alone may hide
        effect = moved * float(found.options["deviation"])
        sure = found.p < _VAGUE
        reach = abs(effect) * _REACH / -float(special.ndtri(found.p / 2.0)) if sure else math.nan
        lower, upper = effect - reach, effect + reach
    return Draft(
        id="region",
        effect=effect,
        lower=lower,
        upper=upper,
        p=found.p,
        where=str(found.options["where"]),
        n=found.n,
        within={"ease": math.inf} if _is_ease(case, str(found.options["where"])) else {},
        facts={"record": found},
    )


def _is_ease(case: Case, where: str) -> bool:
    """Whether a region is a part of the rows by ease alone."""
    conditions = where.split(" and ")
    return all(f" {case.evalset.ease} " in f" {each} " for each in conditions)


def _ease(case: Case) -> Draft:
    found = case.get("t_cv")
    if "where" not in found.options:
        raise UnanswerableError("parts of the rows by ease were not compared")
    tested = replace(found, p=float(found.options["ease_differ"]))
    return _apart("ease", tested, {"record": found})


_VAGUE = 0.5
"""P-value from which on no interval follows from it."""


def _congruence(case: Case) -> Draft:
    found = case.get("mean_cce")
    if not found.null > 0:
        raise UnanswerableError("no correctly specified model could be simulated to compare with")
    return Draft(
        id="congruence",
        effect=found.value / found.null - 1.0,
        lower=(found.value - _REACH * found.standard_error) / found.null - 1.0,
        upper=(found.value + _REACH * found.standard_error) / found.null - 1.0,
        p=found.p,
        n=found.n,
        facts={"record": found},
    )


def _width(case: Case) -> Draft:
    equal = "width_response" in case.records and ONE_WIDTH in case.records["width_response"].options
    try:
        found = case.get("noise_given_inputs" if equal else "width_response")
    except UnanswerableError as why:
        said = f"every row has the same width, and {why}" if equal else str(why)
        raise UnanswerableError(said) from None
    return Draft(
        id="width",
        effect=found.value - 1.0,
        lower=found.lower - 1.0,
        upper=found.upper - 1.0,
        p=found.p,
        where=str(found.options.get("where", "")),
        n=found.n,
        facts={"record": found, "equal": equal},
    )


def needs_null(record: Record) -> bool:
    """Whether a finding asks what a right model shows: of a gain that is a loss."""
    return record.metric == "characteristic_partial_gain" and record.value < 0


def _trade(case: Case) -> Draft:
    low, whole = case.get("characteristic_partial_gain"), case.get("characteristic_gain")
    if not low.standard_error > 0:
        raise UnanswerableError("every row has the same width")
    p = float(special.stdtr(case.freedom, low.value / low.standard_error))
    if needs_null(low) and low.null_lower < low.null_upper:  # as a right model of few members may
        spread = (low.null_upper - low.null_lower) / (2.0 * _REACH)
        p = max(p, float(special.ndtr((low.value - low.null) / spread)))
    return Draft(
        id="trade",
        effect=low.value / 100.0,
        lower=low.lower / 100.0,
        upper=low.upper / 100.0,
        p=p,
        n=low.n,
        good=low.lower > 0,
        facts={"record": low, "whole": whole},
    )


_SAME = 1e-6
"""Shares that differ by less are one."""


def _sets(case: Case) -> Draft:
    if not any(isinstance(each, LabelSets) for each in case.evalset.beliefs):
        raise UnanswerableError("the table has no label sets")
    found, empty = case.get("sscv"), case.get("empty_sets")
    if "where" not in found.options:
        raise UnanswerableError("the sizes of sets were not compared")
    found = replace(found, p=float(found.options["sizes_differ"]))
    seen, expected = case.get("empirical_coverage").value, float(found.options["expected"])
    facts = {"empty": empty.value, "size": case.get("set_size").value}
    return _apart("sets", found, {**facts, "free": abs(seen - expected) > _SAME})


def _dependence(case: Case) -> Draft:
    found = case.dependence
    if isinstance(found, str):
        raise UnanswerableError(found or "it was not asked for")
    margin = QUESTIONS["dependence"].margin
    return Draft(
        id="dependence",
        effect=found.effect,
        lower=found.lower,
        upper=found.upper,
        p=found.p,
        n=found.n,
        good=not found.found and found.upper <= margin,
        caution=found.found,
        facts={"found": found},
    )


def _drift(case: Case) -> Draft:
    """Of coverage, spread and bias what is proven to have changed most."""
    known = {name: record for name in _DRIFTS if (record := _drift_of(case, name)) is not None}
    if not known:
        case.get("coverage_drift")
    families = len({name == "coverage" for name in known})  # bias and spread have one test
    least = min(record.p for record in known.values())
    clear = [name for name in known if known[name].p <= _AS_CLEAR * least]
    name = max(clear, key=lambda each: known[each].lower)  # the first of equals
    found = known[name]
    sign = 1.0 if found.options["way"] == "up" else -1.0
    ends = sorted((sign * found.lower, sign * found.upper))
    if found.lower == 0:
        ends = [-found.upper, found.upper]
    return Draft(
        id="drift",
        effect=sign * found.value,
        lower=ends[0],
        upper=ends[1],
        p=min(families * least, 1.0),
        where=f"from {found.options['when']} on",
        n=found.n,
        good=max(record.upper for record in known.values()) <= QUESTIONS["drift"].margin,
        facts={"record": found, "signal": name},
    )


_DRIFTS = ("coverage", "spread", "bias")
_AS_CLEAR = 3.0
"""P-values are as clear as the least up to this factor: they are drawn."""
_PLAIN = 0.05
"""P-value of a change that may explain a departure of all rows."""


def _drift_of(case: Case, name: str) -> Record | None:
    try:
        return case.get(f"{name}_drift")
    except UnanswerableError:
        return None


def _since(case: Case, name: str) -> dict[str, float]:
    """Drift explains a departure of all rows that only one side of the change has."""
    found = _drift_of(case, name)
    if found is None or found.p >= _PLAIN:
        return {}
    return {"drift": math.inf} if found.options.get("wrong") in ("after", "before") else {}


def _comparison(case: Case) -> Draft:
    found = case.comparison
    if found is None:
        raise UnanswerableError("there is one model")
    return Draft(
        id="comparison",
        effect=found.difference,
        lower=found.difference_lower,
        upper=found.difference_upper,
        p=found.p,
        good=bool(found.best.sum() == 1),
        facts={"standing": found},
    )


_ASKERS: Mapping[str, Callable[[Case], Draft]] = {
    "rows": _rows,
    "coverage": _coverage,
    "bias": _bias,
    "spread": _spread,
    "skew": lambda case: _shape("skew", case),
    "tails": lambda case: _shape("tails", case),
    "one_sided": _one_sided,
    "support": _support,
    "groups": _groups,
    "region": _region,
    "ease": _ease,
    "congruence": _congruence,
    "width": _width,
    "trade": _trade,
    "sets": _sets,
    "dependence": _dependence,
    "drift": _drift,
    "comparison": _comparison,
}
