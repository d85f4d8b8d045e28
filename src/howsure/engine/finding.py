"""A finding: its question, what the records of a model show of it, and its words.

A topic owns its findings, each one `FindingQuestion`; `howsure.verdict` judges them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.formats import fixed, number, percent
from howsure.core.records import Record
from howsure.engine.autocorrelation import Dependence
from howsure.engine.catalogue import catalogue
from howsure.engine.metric import MOST_LABELS
from howsure.engine.view import View
from howsure.predictions import EvalSet, Intervals, LabelSets, Quantiles
from howsure.stats.binomial import worst_part

State = Literal["good", "caution", "bad", "negligible", "undecided"]

# The usual level; one of twenty correctly specified models has any ✗ (docs/verdict.md measures
# it).
LEVEL = 0.05
"""Error rate of all findings together."""
# A correctly specified 90 % model earns a ✓ from some 400 rows on; with the tolerance of one point
# as margin it would need 3,500.
MARGIN = 0.03
"""Shares that differ by no more are alike."""
# Chosen by hand; not tuned. Fewer rows would be named by what a single one of them is.
MIN_ROWS_OF_PART = 10
"""Rows that a part of all needs, lest what it shows be condemned."""
FROM_ALL = "expected from all rows"
"""By what the coverage of a part of the rows is judged, in words."""


@frozen(kw_only=True)
class Finding:
    """One question of the verdict, answered.

    Attributes
    ----------
    id : str
        Its name, also that of its page in the documentation.
    question : str
        What it answers.
    state : {"good", "caution", "bad", "negligible", "undecided"}
        ``bad``: jointly significant and beyond the tolerance. ``negligible``: within it.
        ``good``: the interval lies within the margin. ``caution``: below .05 alone, not jointly.
    effect, unit, lower, upper
        Size of the departure from a correctly specified model, and its 95 % interval.
    p, p_adjusted : float
        Its p-value alone, and among all findings of the model (Holm).
    tolerance : float
        The effect that does no harm.
    cost : float
        Of what is bad, the share of its score that the way aimed at it saves on held-out rows;
        NaN where none was tried.
    where : str
        The group or the part of the inputs, if there is one.
    sentence : str
        The finding in words.
    clause : str
        What was seen, short, as a part of a sentence.
    more_rows : float
        How many more rows would decide what is undecided; infinite where none would, NaN where that
        is not known.
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
    clause: str = ""
    more_rows: float = math.nan
    model: str = ""


@frozen(kw_only=True)
class Draft:
    """What one question showed, before it is judged beside the others.

    Attributes
    ----------
    id : str
        Of the question; the verdict fills it in.
    effect, lower, upper, p, where
        As in `Finding`.
    n : float
        Rows behind it.
    good : bool, optional
        Overrides the margin where evidence for a model has another form.
    caution : bool
        Of what is never bad: whether it is worth a word.
    telling : bool
        Whether it would look otherwise were the model wrong; else it is never good.
    within : mapping of str to float
        Findings that explain this one where they are bad, each with the effect here that one unit
        of theirs explains.
    beside : tuple of (effect, lower, upper)
        What must be within the margin too, for the finding to be good.
    facts : mapping
        What its words need besides.
    p_adjusted : float
        Of a finding that shares no error rate with others; p, if omitted.
    tolerance : float
        Size of an effect that does no harm, where that depends on the draft; else its question's.
    """

    id: str = ""
    effect: float
    lower: float = math.nan
    upper: float = math.nan
    p: float = math.nan
    where: str = ""
    n: float = math.nan
    good: bool | None = None
    caution: bool = False
    telling: bool = True
    within: Mapping[str, float] = field(default_factory=dict)
    beside: tuple[tuple[float, float, float], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    p_adjusted: float = math.nan
    tolerance: float = math.nan


class Words(NamedTuple):
    """A finding in words; what follows what was seen depends on the state.

    Attributes
    ----------
    seen : str
        What was seen, with its numbers.
    fault : str
        The fault; empty where all is said.
    well : str
        What holds if all is well.
    more : str
        A sentence that follows.
    limit : str
        Of what more than these rows nothing can be said.
    clause : str
        What was seen, short, as a part of a sentence; the fault where it is empty.
    """

    seen: str
    fault: str = ""
    well: str = ""
    more: str = ""
    limit: str = ""
    clause: str = ""


@frozen(kw_only=True)
class FindingQuestion:
    """What a finding answers, from what, and in which words.

    Attributes
    ----------
    id : str
        Its name.
    asked : str
        The question, for people.
    label : str
        It in a word or two, for a table.
    unit : str
        Of the effect and its bounds.
    draft : callable
        From the records of a model, a `Case`, to a `Draft`; `UnanswerableError` says why there is
        none.
    words : callable
        From a draft and its `Finding` to `Words`.
    tolerance : float
        Size of an effect that does no harm, at the default tolerance of one point of coverage.
    margin : float
        What the whole interval of the effect must be within to be good; NaN where no amount of
        rows gives evidence *for* a model.
    measures : tuple of str
        Those that it reads.
    told_by : tuple of str
        Those that its words read besides, which decide no state.
    section : str
        Label of the section of the page where it stands; that of its topic, if omitted.
    name : str
        It within a sentence, where its id is no word.
    cause : str
        What another finding is then part of.
    needs : str
        What a model needs that has it where no recalibration helps, with ``{where}``.
    healed : {"any", "aimed", "none"}
        By which ways to recalibrate: any; those alone that aim at it, as it is out of sight on
        held-out folds, which differ; none.
    reported : bool
        Whether a report alone has what it reads, and a check does not judge it.
    sought : str
        What is proven or not.
    measured : bool
        Whether its effect is of what its sentence tells.
    times : str
        What its effect is a multiple of, for people; empty where it is a difference.
    reads_null : callable, optional
        Of which records it reads what a perfect model shows, that is drawn for it.
    kind : {"model", "data", "setting"}
        Whether it is a fault of the ``model``, for which all such findings share one error rate;
        of the ``data`` that are given, which comes before all others and is bad where its draft
        says so; or tells the ``setting`` of the others, and is never bad.
    """

    id: str
    asked: str
    label: str
    draft: Callable[[Case], Draft]
    words: Callable[[Draft, Finding], Words]
    unit: str = "share"
    tolerance: float = 0.01
    margin: float = MARGIN
    measures: tuple[str, ...] = ()
    told_by: tuple[str, ...] = ()
    section: str = ""
    name: str = ""
    cause: str = ""
    needs: str = ""
    healed: Literal["any", "aimed", "none"] = "any"
    reported: bool = False
    sought: str = "difference"
    measured: bool = True
    times: str = ""
    reads_null: Callable[[Record], bool] | None = None
    kind: Literal["model", "data", "setting"] = "model"


@frozen
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
            raise UnanswerableError(_absence(name, bool(self.evalset.groups)))
        if math.isnan(record.value):
            raise UnanswerableError(record.reason)
        return record

    def array(self, name: str) -> FloatArray:
        """A named array of the rows, at the coverage."""
        return np.asarray(View(self.evalset).get(name, self.coverage), dtype=np.float64)

    @property
    def freedom(self) -> float:
        """Degrees of freedom of an error of all rows."""
        dependence = self.dependence
        if self.evalset.chronology is not None and not isinstance(dependence, str):
            return max(dependence.effective - 1.0, 1.0)
        return max(self.evalset.independent_n - 1.0, 1.0)

    @property
    def one_quantile(self) -> float | None:
        """The level of the quantile that alone bounds intervals at the coverage, if one does."""
        tables = (
            prediction
            for prediction in self.evalset.predictions
            if isinstance(prediction, Quantiles)
        )
        return next((table.one_sided(self.coverage) for table in tables), None)

    @property
    def ends(self) -> tuple[FloatArray, FloatArray] | None:
        """Of bare intervals at the coverage, or at their lowest; None of other predictions."""
        intervals = next(
            (
                prediction
                for prediction in self.evalset.predictions
                if isinstance(prediction, Intervals)
            ),
            None,
        )
        if intervals is None:
            return None
        coverages = intervals.own_coverages
        number = coverages.index(self.coverage) if self.coverage in coverages else 0
        return intervals.lower[:, number], intervals.upper[:, number]

    @property
    def of_sets(self) -> bool:
        """Whether label sets were predicted."""
        return any(isinstance(prediction, LabelSets) for prediction in self.evalset.predictions)


def _absence(name: str, grouped: bool) -> str:
    """Why there is no record of a measure."""
    if name not in catalogue():
        return f"no topic has the measure {name}"
    need = catalogue()[name].beside
    if need == "groups" and grouped:
        return f"every column has more than {MOST_LABELS:,} groups"
    return f"the table has no {need}" if need else "it was not measured"


# ---- what drafts share ---------------------------------------------------------------------------

# The usual level, of a change beside the departure that is judged by itself; it decides words
# alone.
_LEVEL_OF_CHANGE = 0.05
# One point, as the tolerance: below it, an end that fails less is not worth a word.
_MIN_SHORTFALL_TOLD = 0.01


def at_worst(case: Case, ask: Callable[[Case], Draft], *, short_first: bool = False) -> Draft:
    """What a question shows at the stated level that is farthest off, one test for all levels.

    Where none is proven to be off, at the headline level. With `short_first` a level that is
    proven to fall short comes before those that are above, the farthest of which is a fact.
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
    named, facts = worst if p < _LEVEL_OF_CHANGE else case.coverage, {}
    below = [
        c
        for c, each in every.items()
        if each.effect < -_MIN_SHORTFALL_TOLD and len(every) * each.p < _LEVEL_OF_CHANGE
    ]
    if short_first and below:
        named = min(below, key=lambda coverage: every[coverage].p)
        if every[worst].effect > 0:
            facts = {"above": (worst, every[worst].effect)}
    chosen = every.pop(named)
    return replace(
        chosen,
        p=p,
        beside=tuple((each.effect, each.lower, each.upper) for each in every.values()),
        facts={**chosen.facts, **facts, "others": list(every)},
    )


@frozen
class Parts:
    """Coverage of parts of the rows, beside what all rows lead one to expect."""

    labels: Sequence[str]
    value: FloatArray
    expected: FloatArray
    lower: FloatArray  # ends of simultaneous intervals
    upper: FloatArray
    n: FloatArray

    def named(
        self, farthest: int, proven: BoolArray | None = None
    ) -> tuple[int, dict[str, str | float]]:
        """The part of which a test tells, and what `draft_departure` reads of it.

        It is the one that is covered less than expected by most, of those `proven` to be apart;
        else that which differs most. ``reach`` is how far any part may stray.
        """
        upper = self.upper if proven is None else np.where(proven, self.upper, np.inf)
        number = worst_part(upper, self.expected, farthest)
        reach = np.maximum(self.upper - self.expected, self.expected - self.lower).max()
        return number, {
            "reach": max(float(reach), 0.0),
            "where": self.labels[number],
            "rows": float(self.n[number]),
            **{
                name: float(getattr(self, name)[number])
                for name in ("value", "expected", "lower", "upper")
            },
        }


def draft_departure(test: Record, facts: Mapping[str, Any]) -> Draft:
    """A part of the rows that is covered otherwise than all rows lead one to expect."""
    chosen = dict(test.options)
    coverage, expected = float(chosen["value"]), float(chosen["expected"])
    return Draft(
        effect=coverage - expected,
        lower=float(chosen["lower"]) - expected,
        upper=float(chosen["upper"]) - expected,
        p=test.p,
        where=str(chosen["where"]),
        n=test.n,
        good=float(chosen["reach"]) <= MARGIN,
        facts={**chosen, **facts},
    )


def of_ratio(record: Record, **more: Any) -> Draft:
    """The departure of a ratio from 1."""
    return Draft(
        effect=record.value - 1.0,
        lower=record.lower - 1.0,
        upper=record.upper - 1.0,
        p=record.p,
        n=record.n,
        **more,
    )


def of_value(record: Record, **more: Any) -> Draft:
    """The departure of what should be 0."""
    return Draft(effect=record.value, lower=record.lower, upper=record.upper, n=record.n, **more)


def student_p(value: float, error: float, freedom: float) -> float:
    """Two-sided p-value of a mean that should be 0."""
    if not error > 0:
        return math.nan
    return float(2.0 * special.stdtr(freedom, -abs(value) / error))


def known_drift(case: Case, name: str) -> Record | None:
    """The record of how coverage, spread or bias changes in time, where there is one."""
    try:
        return case.get(f"{name}_drift")
    except UnanswerableError:
        return None


def since_change(case: Case, name: str) -> dict[str, float]:
    """Drift explains a departure of all rows that only one side of the change has."""
    record = known_drift(case, name)
    if record is None or record.p >= _LEVEL_OF_CHANGE:
        return {}
    return {"drift": math.inf} if record.options.get("wrong") in ("after", "before") else {}


# ---- which of several models is best, by a score that they have in common ------------------------


@frozen
class SharedScore:
    """One score that models have in common."""

    metric: str  # its name in the catalogue
    coverage: float = math.nan  # of an interval score; NaN for others
    # levels of the quantiles that it reads; empty where each model's own measure serves
    levels: tuple[float, ...] = ()
    how: str = ""  # what was done to make it mean the same, in words; empty where nothing was

    @property
    def title(self) -> str:
        """Its name within a sentence; kept files may name a measure that is gone."""
        entry = catalogue().get(self.metric)
        title = self.metric if entry is None else entry.title.partition(" (")[0]
        return title if title.isupper() else title[:1].lower() + title[1:]


@frozen(kw_only=True, eq=False)
class Standing:
    """Which models are best, by the finest score that they have in common.

    Models stand in the order of their mean score, the lowest first.
    """

    score: SharedScore  # that score
    models: tuple[str, ...]  # the models that have it
    # shape (m,): its mean for each, and the interval
    values: FloatArray
    lower: FloatArray
    upper: FloatArray
    best: BoolArray  # shape (m,): whether no other model provably beats it
    # shape (m, m): whether the model of the row is provably worse than that of the column
    behind: BoolArray
    # the first model less the second, with its interval
    difference: float
    difference_lower: float
    difference_upper: float
    # of that difference alone, and among all pairs
    p: float
    p_adjusted: float
    # models that do not have the score, and what they give
    left_out: Mapping[str, str] = field(default_factory=dict)


# ---- numbers as sentences of findings tell them --------------------------------------------------

SDS = "predicted sd"
"""The unit of what is measured by the spread that a model states."""


def small(value: float, places: int, *, trim: bool = True) -> str:
    """So many decimals; two digits where these would show 0; 0 below 0.0001; at most four."""
    if abs(value) >= 0.5 * 10.0**-places:
        return _four_digits(value, places, trim=trim)
    return number(value, 2) if abs(value) >= 1e-4 else "0"


def _four_digits(value: float, places: int, *, trim: bool = False) -> str:
    """So many decimals, and no more than four digits: no table tells more of a ratio."""
    if 1e3 <= abs(value) < math.inf:
        return fixed(float(f"{value:.4g}"), 0)
    return fixed(value, min(places, 1) if abs(value) >= 100.0 else places, trim=trim)


def points(share: float) -> str:
    """A share in points of percent."""
    text = small(100.0 * abs(share), 1)
    return f"{text} point" if text == "1" else f"{text} points"


def between(one: float, other: float, places: int) -> str:
    """An interval in brackets, the ends in order; empty where none is known."""
    ends = sorted((one, other))
    if any(map(math.isnan, ends)):
        return ""
    dash = "–" if ends[0] >= 0 else " to "
    return f" ({_four_digits(ends[0], places)}{dash}{_four_digits(ends[1], places)})"


def span(record: Record, *, times: float = 1.0, places: int = 1) -> str:
    """A record's interval in brackets."""
    return between(times * record.lower, times * record.upper, places)


def share_with_span(record: Record) -> str:
    """A share in percent, with its interval."""
    return f"{percent(record.value)}{span(record, times=100.0)}"
