"""Rules judged on predictions: limits and findings as data, which a command or a test tells."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt

from howsure._version import __version__
from howsure.core.arrays import AnyArray, BoolArray
from howsure.core.classes import frozen
from howsure.core.convert import (
    Bound,
    Checked,
    Fraction,
    checked,
    from_options,
    json_number,
    plain,
)
from howsure.core.errors import InputError, UnanswerableError, asked_in, either, within
from howsure.core.files import read_toml
from howsure.core.formats import counted, level
from howsure.core.labels import Categories
from howsure.core.options import Described, named
from howsure.core.records import Direction, Notion, Record
from howsure.core.registry import check_known
from howsure.core.threads import one_thread
from howsure.engine.catalogue import catalogue, metric_named
from howsure.engine.measure import Evaluation, evaluate
from howsure.engine.metric import MOST_LABELS
from howsure.engine.view import choose_coverages
from howsure.inputs.roles import name_roles
from howsure.predictions import EvalSet, content_order
from howsure.report.coercion import check_thresholds
from howsure.report.document import Tone
from howsure.report.options import CheckOptions
from howsure.stats.binomial import clopper_pearson
from howsure.stats.changes import EDGE, find_changes
from howsure.stats.estimate import one_more
from howsure.streaming.from_totals import FromTotals
from howsure.streaming.totals import SufficientStatistics
from howsure.topics.baseline import with_baselines
from howsure.topics.skill import skill_measure
from howsure.verdict import Finding
from howsure.verdict.dependence import Known, follow
from howsure.verdict.family import examine
from howsure.verdict.findings import questions

if TYPE_CHECKING:
    from howsure.inputs import Unlabelled
    from howsure.report.monitor import Monitor

FORMAT = "howsure-check/1"
"""The name and version of the outcome's JSON form."""
State = Literal["holds", "fails", "undecided"]
_COUNTED = {"holds": "held", "fails": "failed", "undecided": "inconclusive"}
_NOTHING_SEEN = {"support": "every y is possible under its prediction"}
"""Reasons of silence that say that there is no fault."""


@frozen(kw_only=True)
class LimitOutcome:
    """What became of one limit, for one model, coverage and group (as ``column=value``, or empty).

    Each bound has its own confidence; `reason` says what limits the value, or why there is none.
    """

    limit: Limit
    model: str
    group: str
    coverage: float
    state: State
    failed: bool
    value: float
    lower: float
    upper: float
    lower_confidence: float
    upper_confidence: float
    n: float
    reason: str

    @property
    def name(self) -> str:
        """What was asked, in words."""
        at = "" if math.isnan(self.coverage) else f" at {self.coverage:g}"
        return f"{f'{self.group}: ' if self.group else ''}{self.limit}{at}"

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        span = f"{self.lower:.4g} … {self.upper:.4g}"
        if math.isnan(self.lower):
            span = self.reason or "interval unknown"
        end = ": inconclusive" if self.failed and self.state == "undecided" else ""
        return f"{self.model}: {self.name}: {self.value:.4g} ({span}), n {self.n:,.0f}{end}"

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        limit = {"measure": self.limit.metric, "side": self.limit.side, "limit": self.limit.value}
        outcome = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return dict(plain({**limit, **outcome, "sentence": self.sentence}, json_number))

    @classmethod
    def of(
        cls,
        limit: Limit,
        records: tuple[Record, Record],
        tails: tuple[float, float],
        rules: Rules,
        *,
        group: str = "",
        slack: tuple[float, float] = (0.0, 0.0),
    ) -> Self:
        """By the bound that would prove a limit, and the one that would refute it.

        Each bound is of its own of two `records`, and leaves out its own of two `tails`.
        """
        lower, upper = records if limit.side == "min" else records[::-1]
        below, above = tails if limit.side == "min" else tails[::-1]
        record = replace(records[0], lower=lower.lower, upper=upper.upper)
        return cls(
            limit=limit,
            model=record.model,
            group=group,
            coverage=record.coverage,
            **rules.decided(judge(limit, record, slack)),
            value=record.value,
            lower=record.lower,
            upper=record.upper,
            lower_confidence=1.0 - below,
            upper_confidence=1.0 - above,
            n=record.n,
            reason=record.reason,
        )


@frozen(kw_only=True)
class Answer:
    """What became of one finding of the verdict."""

    finding: Finding
    failed: bool

    @property
    def model(self) -> str:
        """Of which model."""
        return self.finding.model

    @property
    def name(self) -> str:
        """Its id."""
        return f"finding {self.finding.id}"

    @property
    def state(self) -> str:
        """Its state in the verdict."""
        return self.finding.state

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        return f"{self.model}: {self.finding.sentence}"

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON knows."""
        names = ("id", "model", "state", "effect", "unit", "lower", "upper", "p", "p_adjusted")
        answer = {name: getattr(self.finding, name) for name in (*names, "tolerance", "where")}
        answer |= {"failed": self.failed, "sentence": self.finding.sentence}
        return dict(plain(answer, json_number))


@frozen(kw_only=True)
class CheckResult:
    """What became of all rules: of each limit, and of each finding if the verdict was judged."""

    rules: Rules
    outcomes: tuple[LimitOutcome, ...]
    answers: tuple[Answer, ...]

    @property
    def results(self) -> tuple[LimitOutcome | Answer, ...]:
        """All findings, then all limits."""
        return (*self.answers, *self.outcomes)

    @property
    def failed(self) -> tuple[LimitOutcome | Answer, ...]:
        """What fails."""
        return tuple(outcome for outcome in self.results if outcome.failed)

    @property
    def status(self) -> int:
        """The exit status: 0 if nothing fails, else 1."""
        return 1 if self.failed else 0

    @property
    def tone(self) -> Tone:
        """How the whole is marked: a pass is in doubt while a limit is neither held nor failed."""
        if self.status:
            return "bad"
        return (
            "caution" if any(outcome.state == "undecided" for outcome in self.outcomes) else "good"
        )

    @property
    def summary(self) -> str:
        """What follows, and why, in a few short sentences."""
        states = [outcome.state for outcome in self.outcomes]
        sentences = [f"{'FAIL' if self.status else 'PASS'} (exit {self.status})."]
        if self.tone == "caution":
            limits = counted(states.count("undecided"), "limit")
            sentences = [f"PASS ({limits} inconclusive), exit 0."]
        counts = [f"{states.count(s)} {word}" for s, word in _COUNTED.items() if s in states]
        if states:
            sentences.append(f"Limits: {', '.join(counts)}.")
        if self.answers:
            failed = sum(answer.failed for answer in self.answers)
            sentences.append(f"Findings: {failed or 'none'} of {len(self.answers)} failed.")
        if states:
            how = "one-sided bounds" if self.rules.sided == "one" else "two-sided intervals"
            how = f"{level(self.rules.confidence)} {how}"
            if any(outcome.group for outcome in self.outcomes):
                how += "; failures are adjusted for the number of groups"
            sentences.append(f"Limits are judged with {how}.")
        if "undecided" in states:
            way = either("undecided='fail'", "--undecided fail")
            more = f"; with {way} they fail" * (self.rules.undecided == "pass")
            sentences.append(f"Inconclusive limits {self.rules.undecided}{more}.")
        return " ".join(sentences)

    def as_dict(self) -> dict[str, Any]:
        """As values that JSON knows; ``docs/check.md`` describes them."""
        return {
            "format": FORMAT,
            "howsure": __version__,
            "exit": self.status,
            "summary": self.summary,
            "confidence": self.rules.confidence,
            "sided": self.rules.sided,
            "undecided": self.rules.undecided,
            "fail_on": self.rules.fail_on,
            "limits": [outcome.as_dict() for outcome in self.outcomes],
            "findings": [answer.as_dict() for answer in self.answers],
        }


@one_thread()
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def check(
    evalsets: Sequence[EvalSet],
    rules: Rules,
    *,
    coverages: Sequence[float] = (),
    seed: int = 0,
    totals: Sequence[SufficientStatistics] = (),
) -> CheckResult:
    """Judge every finding and every limit, for every model, coverage and group.

    Where the sets are a sample of more rows, `totals` hold what all rows of each add up to.

    A limit by groups fails if bounds prove so in any group, at a confidence that Bonferroni's
    method adjusts for their number. That it holds needs no adjustment, since all groups must.

    Examples
    --------
    >>> from howsure import Intervals
    >>> from howsure.report.check import limit_of
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> held = EvalSet.checked(y, Intervals(np.full(500, -1.0), np.full(500, 1.0), coverage=0.9))
    >>> check([held], Rules(limits=(limit_of("coverage", "min", 0.88),))).outcomes[0].state
    'fails'
    """
    models = [evalset.model for evalset in evalsets]
    for limit in rules.limits:
        if limit.model:
            check_known(limit.model, models, f"model of the limit {limit}")
        if limit.metric in OF_NEW:
            raise InputError(f"{limit} needs howsure check NEW --reference TABLE")
    evalsets = with_baselines(
        evalsets, baseline=rules.baseline, lead=rules.lead, season=rules.season
    )
    check_thresholds(rules.threshold, evalsets)
    answers: list[Answer] = []
    of_all = totals or (None,) * len(evalsets)
    if rules.fail_on != "never":
        for evalset, total in zip(evalsets, of_all, strict=True):
            answers += _answers(evalset, rules, coverages, seed, total)
    outcomes: list[LimitOutcome] = []
    if rules.limits:
        sets, dependences = follow(evalsets, content_order(evalsets))
        for evalset, total, dependence in zip(sets, of_all, dependences, strict=True):
            outcomes += _outcomes(evalset, rules, coverages, seed, total, dependence)
    return CheckResult(rules=rules, outcomes=tuple(outcomes), answers=tuple(answers))


@one_thread()
def check_new(
    monitor: Monitor, new: Unlabelled, rules: Rules, *, name: str = "new", seed: int = 0
) -> CheckResult:
    """Judge limits on rows without y, watched by a reference: how many are outside, or flagged.

    Shares have exact binomial bounds: given the reference, each row is judged by itself.
    """
    if rules.baseline or rules.lead is not None or rules.season is not None:
        raise InputError("baseline, lead and season need y, but --reference judges rows without y")
    from howsure.report.monitor import findings_of, scored

    judged = monitor.judge(new.inputs.features, new.inputs.embedding)
    table = scored(monitor, judged, new.inputs.row_names())
    answers: list[Answer] = []
    if rules.fail_on != "never":
        answers = [
            Answer(finding=replace(finding, model=name), failed=finding.state in rules.faults)
            for finding in findings_of(monitor, judged, table)
            if finding.id not in rules.ignore
        ]
    outcomes: list[LimitOutcome] = []
    for limit in rules.limits:
        if limit.metric not in OF_NEW or limit.at is not None or limit.model:
            raise InputError(
                f"{limit} cannot be judged with --reference: limits on rows without y are "
                f"{', '.join(OF_NEW)}, for all coverages and models"
            )
        if limit.metric == "flagged" and monitor.reference is None:
            raise InputError(
                f"{limit} cannot be judged: the reference has no predictive distributions, so only "
                "the inputs of rows are judged"
            )
        if limit.metric == "outside_drift" and new.inputs.time is None:
            raise InputError(f"{limit} cannot be judged without times: give {name_roles(time=...)}")
        is_so = table.columns["flagged"] if limit.metric == "flagged" else judged.outside
        groups = _parts_of(new.inputs.groups, rules.by if limit.by is None else limit.by)
        for group, rows in groups or [("", np.arange(new.inputs.n))]:
            rows = rows[~judged.outside[rows]] if limit.metric == "flagged" else rows
            times = new.inputs.time if limit.metric == "outside_drift" else None
            times = None if times is None else times[rows]
            tails = rules.tail, rules.tail / max(len(groups), 1)
            share = partial(_share_of_new, limit, name, is_so[rows], times, seed)
            records = share(tails[0]), share(tails[1])
            outcomes.append(LimitOutcome.of(limit, records, tails, rules, group=group))
    return CheckResult(rules=rules, outcomes=tuple(outcomes), answers=tuple(answers))


def _share_of_new(
    limit: Limit,
    model: str,
    is_so: BoolArray,
    times: AnyArray | None,
    seed: int,
    tail: float,
) -> Record:
    """A share of rows, or the largest change of it over time, with its bounds."""
    count, rows = int(is_so.sum()), len(is_so)
    record = Record(
        metric=limit.metric,
        value=math.nan,
        direction=Direction.LOWER,
        notion=Notion.MARGINAL,
        n=float(rows),
        model=model,
        reason="" if rows else "every row is outside the reference",
    )
    if not rows:
        return record
    level = 1.0 - 2.0 * tail
    if times is None:
        low, high = clopper_pearson(count, rows, confidence=level)
        return replace(record, value=count / rows, lower=float(low), upper=float(high))
    ranks = Categories.checked(times, "time").codes
    try:
        with np.errstate(invalid="ignore"):  # a clean step leaves no noise to tell chance by
            (change,) = find_changes(
                is_so.astype(np.float64)[None], ranks, confidence=level, seed=seed
            )
    except UnanswerableError as error:
        raise InputError(f"{limit} cannot be judged: {error}") from error
    if change is None:  # all rows alike, so a change can only have gone unseen
        unseen = clopper_pearson(0, math.ceil(EDGE * rows), confidence=level)[1]
        return replace(record, value=0.0, lower=0.0, upper=float(unseen))
    return replace(record, value=abs(change.size), lower=change.lower, upper=min(change.upper, 1.0))


def _answers(
    evalset: EvalSet,
    rules: Rules,
    coverages: Sequence[float],
    seed: int,
    total: SufficientStatistics | None,
) -> list[Answer]:
    """What the verdict finds on one model; what is named must be judged."""
    options: Any = {
        "coverages": coverages,
        "seed": seed,
        "tolerance": rules.tolerance,
        "miss_range": rules.miss_range,
        "thresholds": rules.threshold,
    }
    if total is None:
        findings, silent = examine(evalset, ignore=rules.left_out, **options)
    else:
        findings, silent = _examined(evalset, total, rules, options)
    for name in rules.findings:
        if name in silent and name not in rules.ignore and silent[name] != _NOTHING_SEEN.get(name):
            raise InputError(f"finding {name} cannot be judged: {silent[name]}")
    return [
        Answer(
            finding=finding,
            failed=finding.state in rules.faults and questions()[finding.id].kind != "setting",
        )
        for finding in findings
    ]


def _examined(
    evalset: EvalSet, total: SufficientStatistics, rules: Rules, options: Mapping[str, Any]
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """The same of a sample of all rows, beside what these add up to."""
    from howsure.inputs import Loaded
    from howsure.report.assess import assess_loaded
    from howsure.report.options import Options

    reported = {name for name, question in questions().items() if question.reported}
    report = assess_loaded(
        Loaded(evalsets=(evalset,), totals=(total,)),
        Options(
            seed=options["seed"],
            tolerance=rules.tolerance,
            miss_range=rules.miss_range,
            threshold=rules.threshold,
            ignore={*rules.left_out, *reported},
            trials=False,
        ),
        coverages=options["coverages"],
    )
    silent = next(table.columns for table in report.tables if table.name == "not_judged")
    return report.findings, dict(zip(silent["id"], silent["reason"], strict=True))


def judge(limit: Limit, record: Record, slack: tuple[float, float] = (0.0, 0.0)) -> State:
    """Whether confidence bounds prove that a limit holds, or fails, or neither.

    A limit only holds if one more row as bad as the worst would not break it: `slack` is how far
    the lowest and the highest row would move the value.
    """
    low, high, bound, worst = record.lower, record.upper, limit.value, slack[0]
    if limit.side == "max":
        low, high, bound, worst = -high, -low, -bound, -slack[1]
    if math.isnan(low) or math.isnan(high):
        return "undecided"
    if low + worst >= bound:
        return "holds"
    return "fails" if high < bound else "undecided"


def slack_of(evaluation: Evaluation, record: Record) -> tuple[float, float]:
    """How far one more row like the lowest and the highest moves a mean; 0 of bounded shares."""
    rows = evaluation.row_scores(record.metric, record.coverage)
    if rows is None or rows.dtype == np.bool_:
        return 0.0, 0.0
    evalset = evaluation.evalset
    low, high = one_more(rows - record.value, evalset.weights, evalset.units)
    share = min(evalset.independent_n / record.n, 1.0)  # of all rows, where these are a sample
    return share * low, share * high


def _outcomes(
    evalset: EvalSet,
    rules: Rules,
    coverages: Sequence[float],
    seed: int,
    total: SufficientStatistics | None,
    dependence: Known,
) -> list[LimitOutcome]:
    """Every limit on one model; those on the same rows share what is measured."""
    limits_on: dict[tuple[tuple[str, ...], float | None], list[int]] = {}
    for number, limit in enumerate(rules.limits):
        rival = limit.metric == SKILL and rules.baseline == evalset.model
        if limit.model in ("", evalset.model) and not rival:
            key = _columns(evalset, limit, rules), limit.at
            limits_on.setdefault(key, []).append(number)
    outcomes: dict[int, list[LimitOutcome]] = {}
    for (by, at), numbers in limits_on.items():
        wanted = choose_coverages(evalset, coverages if at is None else (at,))
        if any(math.isnan(coverage) for coverage in wanted):
            wanted = ()
        groups = _parts(evalset, by)
        metrics = list(dict.fromkeys(rules.limits[k].measured(evalset) for k in numbers))
        tails = rules.tail, rules.tail / len(groups)
        for label, rows in groups:
            measured = [
                evaluate(
                    rows,
                    coverages=wanted,
                    metrics=metrics,
                    confidence=1.0 - 2.0 * tail,
                    seed=seed,
                    slow=metrics,
                    miss_range=rules.miss_range,
                    given={"thresholds": rules.threshold},
                )
                for tail in dict.fromkeys(tails)
            ]
            sums = total if total is None or not label else total.in_group(*label.split("=", 1))
            if sums is not None:
                measured = [
                    FromTotals(sums, sample, dependence, seed, sample.view.confidence).measured()
                    for sample in measured
                ]
            for number in numbers:
                limit = rules.limits[number]
                outcomes.setdefault(number, []).extend(
                    LimitOutcome.of(
                        limit,
                        records,
                        tails,
                        rules,
                        group=label,
                        slack=slack_of(measured[0], records[0]),
                    )
                    for records in zip(measured[0].records, measured[-1].records, strict=True)
                    if records[0].metric == limit.measured(evalset)
                )
    judged: list[LimitOutcome] = []
    for number in sorted(outcomes):
        limit, in_groups = rules.limits[number], outcomes[number]
        if all(math.isnan(outcome.value) for outcome in in_groups):
            raise InputError(f"{limit} cannot be judged: {in_groups[0].reason}")
        judged += _worst(in_groups, rules) if limit.metric == WORST_GROUP else in_groups
    return judged


def _columns(evalset: EvalSet, limit: Limit, rules: Rules) -> tuple[str, ...]:
    """The columns in each group of which a limit holds; none for all rows."""
    by = rules.by if limit.by is None else limit.by
    if limit.metric == WORST_GROUP and not by:
        by = tuple(evalset.groups)
        if not by:
            raise InputError(
                f"{limit} cannot be judged without groups: give {name_roles(groups=...)}"
            )
    return tuple(dict.fromkeys(by))


def _parts(evalset: EvalSet, by: Sequence[str]) -> list[tuple[str, EvalSet]]:
    """All rows, or the rows of each group of each column."""
    if not by:
        return [("", evalset)]
    return [(label, evalset.take(rows)) for label, rows in _parts_of(evalset.groups, by)]


def _parts_of(
    groups: Mapping[str, Categories], by: Sequence[str]
) -> list[tuple[str, npt.NDArray[np.intp]]]:
    """Where the rows of each group of each column stand."""
    groups_of: list[tuple[str, npt.NDArray[np.intp]]] = []
    for name in by:
        if not groups:
            python = f"howsure.Table(…, groups={{{name!r}: labels}})"
            raise InputError(
                f"by names the groups {name!r}, but no groups were given: give "
                f"{either(python, f'--groups {name}')}"
            )
        check_known(name, groups, "by")
        column = groups[name]
        if len(column.labels) > MOST_LABELS:
            raise InputError(
                f"by must name columns of at most {MOST_LABELS:,} groups, got {name!r} with "
                f"{len(column.labels):,}"
            )
        order = np.argsort(column.codes, kind="stable")
        ends = np.cumsum(column.counts)[:-1]
        for label, rows in zip(column.labels.tolist(), np.split(order, ends), strict=True):
            groups_of.append((f"{name}={label}", rows))
    return groups_of


def _worst(outcomes: Sequence[LimitOutcome], rules: Rules) -> list[LimitOutcome]:
    """At each coverage the group that decides, with the bounds of the least of all."""
    by_coverage: dict[str, list[LimitOutcome]] = {}
    for outcome in outcomes:
        by_coverage.setdefault(f"{outcome.coverage:g}", []).append(outcome)
    worst = []
    for groups in by_coverage.values():
        states = {group.state for group in groups}
        state: State = "fails" if "fails" in states else "undecided"
        state = "holds" if states == {"holds"} else state
        bounded = [group for group in groups if not math.isnan(group.lower)] or groups
        lower, upper = (min(bounded, key=attrgetter(end)) for end in ("lower", "upper"))
        worst.append(
            replace(
                upper if state == "fails" else lower,
                **rules.decided(state),
                lower=lower.lower,
                upper=upper.upper,
            )
        )
    return worst


# ---- limits that predictions must keep, and where they are written: a TOML file, or pyproject.toml

Side = Literal["min", "max"]

WORST_GROUP = "worst_group"
"""The coverage of the group that is covered least."""
SKILL = "skill"
"""Skill against the baseline, by the score that tells most of the predictions."""
OF_NEW = ("outside", "flagged", "outside_drift")
"""Shares of new rows that a reference finds outside it, or flags, and how the first changes."""
PYPROJECT = "pyproject.toml"
TABLE = "tool.howsure.check"


@frozen
class Limit:
    """A bound on a measure: at least, or at most, a number.

    `at` is the nominal coverage, None for each that is assessed; `model` is empty for every one;
    `by` names columns in each group of which it holds, None leaves that to the rules.
    """

    metric: str
    side: Side
    value: float
    at: float | None = None
    model: str = ""
    by: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.metric} {'≥' if self.side == 'min' else '≤'} {self.value:g}"

    def measured(self, evalset: EvalSet) -> str:
        """The measure of the catalogue that is bounded."""
        if self.metric == SKILL:
            return skill_measure(evalset)
        return "empirical_coverage" if self.metric == WORST_GROUP else self.metric


@frozen(kw_only=True)
class Rules(CheckOptions):
    """What a table must keep to pass, and how that is judged; docs/check.md tells of each key.

    `confidence` is that of each bound, of both ends together if intervals are two-sided. The
    verdict is judged unless `fail_on` is ``never``; of its findings all, if none is named.
    """

    limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        checked(self.confidence, Annotated[float, Bound(0.5, 1.0, "()")], named("confidence"))
        Described.__post_init__(self)
        for name in self.findings:
            check_known(name, questions(), "findings")
            if questions()[name].reported:
                raise InputError(f"findings cannot include {name!r}, which only a report judges")
        if self.fail_on == "never" and (self.findings or self.ignore):
            key = "findings" if self.findings else "ignore"
            raise InputError(
                f"{key} selects findings, but fail_on is never: set fail_on to bad or caution"
            )
        self._check_order()

    @property
    def judges(self) -> bool:
        """Whether there is anything to judge."""
        return bool(self.limits) or self.fail_on != "never"

    @property
    def tail(self) -> float:
        """Chance that one bound leaves out."""
        return (1.0 - self.confidence) / (1.0 if self.sided == "one" else 2.0)

    @property
    def faults(self) -> tuple[str, ...]:
        """States in which a finding fails."""
        return ("bad",) if self.fail_on == "bad" else ("bad", "caution")

    def decided(self, state: State) -> dict[str, Any]:
        """The state of a limit, and whether it fails in it."""
        failed = state == "fails" or (state == "undecided" and self.undecided == "fail")
        return {"state": state, "failed": failed}

    @property
    def left_out(self) -> tuple[str, ...]:
        """Ids of the findings that are not judged."""
        chosen = self.findings or tuple(questions())
        return tuple(name for name in questions() if name in self.ignore or name not in chosen)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column by whose groups a limit holds."""
        named = [self.by if limit.by is None else limit.by for limit in self.limits]
        return tuple(dict.fromkeys(name for names in named for name in names))

    def _check_order(self) -> None:
        """Refuse a least value above the most of the same measure."""
        most = {_scope(limit): limit.value for limit in self.limits if limit.side == "max"}
        for limit in self.limits:
            if limit.side == "min" and limit.value > most.get(_scope(limit), math.inf):
                raise InputError(
                    f"min of {limit.metric} must not exceed its max, got min {limit.value:g} and "
                    f"max {most[_scope(limit)]:g}"
                )


def _scope(limit: Limit) -> tuple[object, ...]:
    return limit.metric, limit.at, limit.model, limit.by


def limit_of(measure: str, side: Side, value: float, **scope: Any) -> Limit:
    """A limit on a measure by name; a number that the measure cannot have is refused."""
    metric, entries = measure, catalogue()
    if measure in OF_NEW and side == "min":
        raise InputError(f"{measure} needs max, the largest share of rows to accept, not min")
    if measure not in (WORST_GROUP, SKILL, *OF_NEW):
        entry = metric_named(measure, "limit")
        metric = entry.name
        if metric == "worst_group_shortfall":
            raise InputError(f"a limit on the worst group must use {WORST_GROUP}, got {measure!r}")
        if not entry.forms:
            raise InputError(f"a limit needs a measure with confidence bounds, got {measure!r}")
    if metric == WORST_GROUP and side == "max":
        raise InputError(f"{WORST_GROUP} needs min, the least coverage of every group, not max")
    if not math.isfinite(value):
        raise InputError(f"limit on {measure} must be a number, got {value:g}")
    metric_of = {SKILL: "crps_skill", **dict.fromkeys((WORST_GROUP, *OF_NEW), "empirical_coverage")}
    low, high = entries[metric_of.get(metric, metric)].bounds
    if not low <= value <= high:
        percent = value / 100
        meant = f": did you mean {percent:g}?" if high <= 1 and low <= percent <= high else ""
        ends = f"[{low:g}, " if low > -math.inf else "(-inf, "
        ends += f"{high:g}]" if high < math.inf else "inf)"
        raise InputError(f"limit on {measure} must be in {ends}, got {value:g}{meant}")
    return Limit(metric, side, float(value), **scope)


def limits_of(measure: str, least: float | None, most: float | None, **scope: Any) -> list[Limit]:
    """The limits on a measure that are not None."""
    sides: tuple[tuple[Side, float | None], ...] = (("min", least), ("max", most))
    return [limit_of(measure, side, value, **scope) for side, value in sides if value is not None]


@frozen
class _LimitEntry(Checked):
    """One entry of ``limits`` as it is written."""

    measure: str = ""
    min: float | None = None
    max: float | None = None
    at: Fraction | None = None
    model: str = ""
    by: tuple[str, ...] | None = None

    def limits(self) -> list[Limit]:
        """Its bounds, of which it must have one."""
        if not self.measure:
            raise InputError('a limit needs a measure, such as measure = "coverage"; none given')
        if self.min is None and self.max is None:
            raise InputError(f"{self.measure} must have min or max, got neither")
        scope = {"at": self.at, "model": self.model, "by": self.by}
        return limits_of(self.measure, self.min, self.max, **scope)


def rules_from(
    tables_by_name: Mapping[str, Any], name: str, limits_too: Iterable[Limit] = ()
) -> Rules:
    """Rules from the tables of a file, or a mapping like it; messages begin with its name."""
    with within(name), asked_in("fields"):
        tables = tables_by_name.get("limits", ())
        if isinstance(tables, str | Mapping) or not isinstance(tables, Iterable):
            raise InputError(
                "limits must be a list of tables, such as "
                f'[{{measure = "coverage", min = 0.88}}], got {tables!r}'
            )
        limits = [
            limit for number, table in enumerate(tables, 1) for limit in _limits(table, number)
        ]
        options = {**tables_by_name, "limits": (*limits_too, *limits)}
        if options.get("fail_on") == "watch":  # as version 0.2 called it
            options["fail_on"] = "caution"
        rules = from_options(Rules, options, "key")
        if not rules.judges:
            raise InputError('nothing to judge: give limits, or fail_on = "bad"')
    return rules


def limits_named(
    values: Mapping[str, float | None], title: Callable[[str], str] = str
) -> list[Limit]:
    """Limits from names such as ``min_coverage``, the least first; errors begin with a title."""
    limits = []
    for name in sorted(values, key=lambda name: name.startswith("max")):
        value = values[name]
        if value is not None:
            side: Side = "max" if name.startswith("max") else "min"
            with within(title(name)):
                limits.append(limit_of(name.partition("_")[2], side, value))
    return limits


def _limits(table: Any, number: int) -> list[Limit]:
    with within(f"limit {number}"):
        if not isinstance(table, Mapping):
            raise InputError(
                f'it must be a table such as {{measure = "mae", max = 2}}, got {table!r}'
            )
        return from_options(_LimitEntry, table, "key").limits()


def read_rules(path: str | os.PathLike[str]) -> Rules:
    """The rules of a TOML file; of a pyproject.toml, those under ``[tool.howsure.check]``."""
    name = os.fspath(path)
    if Path(path).name != PYPROJECT:
        return rules_from(read_toml(Path(path), f"limits {name}"), name)
    rules = _rules_of_project(Path(path), name)
    if rules is None:
        raise InputError(f"{name} must contain the table [{TABLE}]")
    return rules


def project_rules(folder: Path) -> Rules | None:
    """The rules that the pyproject.toml of a folder holds, if it does."""
    path = folder / PYPROJECT
    return _rules_of_project(path, PYPROJECT) if path.is_file() else None


def _rules_of_project(path: Path, name: str) -> Rules | None:
    """What a pyproject.toml holds for this command."""
    tools = read_toml(path, f"limits {name}").get("tool", {})
    ours = tools.get("howsure") if isinstance(tools, Mapping) else None
    if ours is None:
        return None
    if not isinstance(ours, Mapping) or not isinstance(ours.get("check", {}), Mapping):
        raise InputError(f"{name}: [{TABLE}] must be a table, got {ours!r}")
    for key in ours:
        check_known(key, ["check"], f"{name}: table of [tool.howsure]")
    return rules_from(ours["check"], f"{name} [{TABLE}]") if "check" in ours else None


def with_more(rules: Rules, limits: Iterable[Limit] = (), **changes: Any) -> Rules:
    """The same rules with further limits, and with those choices that are not None changed."""
    chosen = {name: value for name, value in changes.items() if value is not None}
    return replace(rules, limits=tuple(dict.fromkeys((*rules.limits, *limits))), **chosen)
