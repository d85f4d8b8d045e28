"""How does it change with lead time? Coverage, score, width and skill by how far ahead rows were
predicted.

Horizons are cells: each its own, or, of many, consecutive ones of about as many rows. Rows of one
origin and of neighbouring times depend; what holds of a mean of all rows holds within a cell, and
bands over all cells are drawn from how their means go together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from howsure.core import formats
from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.formats import listed, percent
from howsure.core.records import Axis, Curve, Direction, Key, Layout, Notion, Record, ResultTable
from howsure.core.times import Chronology
from howsure.engine.catalogue import catalogue
from howsure.engine.finding import (
    FROM_ALL,
    MARGIN,
    Case,
    Draft,
    Finding,
    FindingQuestion,
    Words,
    between,
    draft_departure,
    points,
)
from howsure.engine.measure import Evaluation, apply_form, find_measure
from howsure.engine.metric import (
    SHARE,
    Array,
    Metric,
    Question,
    Topic,
    coverage_array,
    estimated,
)
from howsure.engine.view import View
from howsure.stats.estimate import Estimate, joint_level, skewed_ends, spread_of, weighted_mean
from howsure.topics.coverage import unequal_hits
from howsure.topics.decomposition.parts import skill_of_groups
from howsure.topics.groups import GroupComparison, Grouping, group_means, rows_in_groups

# Points that a figure can name on its axis; fewer cells have more rows. By hand; not tuned.
MAX_CELLS = 12
"""The most cells that lead times are put into."""
# Of fewer rows a coverage of 90 % is not even known to 11 points (95 %).
MIN_ROWS_OF_CELL = 30
"""Rows of a cell, below which nothing is told of it."""
# 95 %, as all ranges.
_Z_95 = 1.96
# The part of all horizons that are the shortest, and of those that are the longest: thirds leave
# one between that blurs neither.
_PARTS_OF_HORIZONS = 3.0
_SCORES = ("crps", "interval_score", "mae")
"""The finest first."""


@frozen(eq=False)
class Leads:
    """Rows by lead time."""

    view: View  # of the rows that are in a cell
    horizons: FloatArray  # shape (h,): the different ones, rising
    place: IntArray  # shape (n,): which of them each row has
    cells: IntArray  # shape (h,): the cell of each
    labels: tuple[str, ...]  # of the cells
    middle: FloatArray  # shape (c,): mean horizon of each cell
    left_out: str  # the horizons of too few rows, in words

    @property
    def grouping(self) -> Grouping:
        """The cells as groups."""
        return Grouping("lead time", self.cells[self.place], self.labels)


def _leads(view: View, _: float) -> Leads:
    horizon = view.evalset.horizon
    if horizon is None:
        raise UnanswerableError("the table has no horizon")
    horizons, place = np.unique(horizon, return_inverse=True)
    if len(horizons) < 2:
        raise UnanswerableError("all rows have one lead time")
    weights = view.evalset.weights
    copies = weights.values if weights is not None and weights.kind == "frequency" else None
    rows = np.bincount(place, copies).astype(np.float64)
    cells = np.arange(len(horizons))
    if len(horizons) > MAX_CELLS:
        middle = np.cumsum(rows) - 0.5 * rows
        cells = np.floor(MAX_CELLS * middle / rows.sum()).astype(np.int64)
    enough = np.bincount(cells, rows)[cells] >= MIN_ROWS_OF_CELL
    if len(np.unique(cells[enough])) < 2:
        raise UnanswerableError(f"fewer than two lead times have {MIN_ROWS_OF_CELL} rows")
    left_out = ""
    if not enough.all():
        few = [f"{horizon:g}" for horizon in horizons[~enough].tolist()]
        left_out = (
            f"Horizons of fewer than {MIN_ROWS_OF_CELL} rows are left out: {listed(few, most=12)}."
        )
        view = view.of(np.flatnonzero(enough[place]))
        place = (np.cumsum(enough) - 1)[place[enough[place]]]
        horizons, cells, rows = horizons[enough], cells[enough], rows[enough]
    cells = np.unique(cells, return_inverse=True)[1]
    total = np.bincount(cells, rows)
    return Leads(
        view=view,
        horizons=horizons,
        place=place,
        cells=cells,
        labels=tuple(_steps(horizons[np.flatnonzero(cells == cell)]) for cell in range(len(total))),
        middle=np.bincount(cells, rows * horizons) / total,
        left_out=left_out,
    )


def _steps(horizons: FloatArray) -> str:
    """Horizons in words."""
    first, last = (f"{end:g}" for end in (horizons[0], horizons[-1]))
    if first == last:
        return f"{first} step{'' if first == '1' else 's'}"
    return f"{first}–{last} steps"


def _hits(leads: Leads, coverage: float) -> tuple[FloatArray, FloatArray]:
    """Whether rows are covered, and what they claim, where that is known."""
    hits = unequal_hits(leads.view, coverage)
    if math.isnan(coverage):
        return hits, np.zeros(len(hits))
    return hits, np.asarray(leads.view.get("claim", coverage))


def _differ(view: View, coverage: float) -> Estimate:
    """The test that no lead time differs from all, by cells."""
    leads: Leads = view.get("leads")
    _hits(leads, coverage)
    return _tested(leads.view, coverage, leads.grouping)


def _tested(view: View, coverage: float, grouping: Grouping) -> Estimate:
    """Do groups differ?"""
    scores = {Key.of("empirical_coverage", coverage): view.get("covered", coverage)}
    evaluation = Evaluation(view.evalset, view, (coverage,), (), scores)
    compared = GroupComparison(evaluation, (grouping,), coverage, view.confidence, view.seed)
    return compared.difference()


def _drop(view: View, coverage: float) -> Estimate:
    """Coverage less its claim at the shortest third of horizons, less that at the longest."""
    leads: Leads = view.get("leads")
    hits, claim = _hits(leads, coverage)
    count = max(int(len(leads.horizons) / _PARTS_OF_HORIZONS), 1)
    ends = (leads.place < count, leads.place >= len(leads.horizons) - count)
    names = [_steps(leads.horizons[:count]), _steps(leads.horizons[-count:])]
    evalset = leads.view.evalset
    mass = evalset.multiplicities
    mass = np.ones(evalset.n) if mass is None else mass

    def contrast(values: FloatArray) -> tuple[float, FloatArray]:
        """Difference of the means at both ends, and its influence values."""
        influence, means = np.zeros(len(values)), []
        for rows, sign in zip(ends, (1.0, -1.0), strict=True):
            mean = weighted_mean(values[rows], mass[rows])
            influence[rows] = sign * (values[rows] - mean) * (mass.sum() / mass[rows].sum())
            means.append(mean)
        return means[0] - means[1], influence

    drop, influence = contrast(hits - claim)
    units = evalset.units
    if isinstance(units, Chronology):
        units = units.hiding(None if units.size is None else contrast(units.size)[1])
    spread = spread_of(influence, evalset.weights, units)
    alone = spread_of(influence, evalset.weights)
    if alone.error[0] > spread.error[0]:  # few units that agree by luck have no error
        spread = replace(alone, degrees=spread.degrees)
    lower, upper = (float(end[0]) for end in skewed_ends(drop, spread, view.confidence))
    both = np.flatnonzero(ends[0] | ends[1])
    p = spread.p(drop)
    if units is None and (evalset.weights is None or evalset.weights.kind == "frequency"):
        grouping = Grouping("lead time", ends[1][both].astype(np.int64), tuple(names))
        arrays = {"covered": hits[both], "claim": claim[both]}
        p = _tested(leads.view.on(evalset.take(both), arrays), coverage, grouping).p  # exact
    error = float(spread.error[0])
    details: dict[str, str | float] = {}
    for name, rows, label in zip(("short", "long"), ends, names, strict=True):
        details[name] = label
        details[f"{name}_coverage"] = weighted_mean(hits[rows], mass[rows])
        details[f"{name}_claim"] = weighted_mean(claim[rows], mass[rows])
    return Estimate(
        drop,
        error=error,
        lower=max(lower, -1.0),
        upper=min(upper, 1.0),
        null_lower=-_Z_95 * error,
        null_upper=_Z_95 * error,
        p=p,
        n=float(mass[both].sum()),
        reason="no interval: the effective sample size is too small" if math.isnan(error) else "",
        details=details,
    )


class Profile(NamedTuple):
    """One quantity by lead time: its means, simultaneous ends, and what it is judged against."""

    name: str
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    reference: FloatArray | None
    level: float  # confidence of each interval alone


def _profiles(view: View, coverage: float) -> list[Profile]:
    """Coverage, score, width and skill by cell."""
    leads: Leads = view.get("leads")
    profiles: list[Profile] = []
    for measure in (_coverages, _scores, _widths, _skills):
        try:
            profiles.append(measure(leads, coverage))
        except UnanswerableError:
            continue
    if not profiles:
        raise UnanswerableError("these predictions have no score per row")
    return profiles


def _coverages(leads: Leads, coverage: float) -> Profile:
    hits = np.asarray(leads.view.get("covered", coverage), dtype=np.float64)
    claims = None
    if not math.isnan(coverage):
        claims = _cell_means(leads, np.asarray(leads.view.get("claimed", coverage)))
    return _means(leads, "empirical_coverage", hits)._replace(reference=claims)


def _widths(leads: Leads, coverage: float) -> Profile:
    lower, upper = leads.view.get("ends", coverage)
    widths = np.asarray(upper - lower, dtype=np.float64)
    if not np.isfinite(widths).all():
        raise UnanswerableError("some intervals are unbounded")
    return _means(leads, "mean_width", widths)


def _scores(leads: Leads, coverage: float) -> Profile:
    name, form = find_measure(leads.view, _SCORES, coverage)
    rows = np.asarray(apply_form(leads.view, form, coverage), dtype=np.float64)
    if not np.isfinite(rows).all():
        raise UnanswerableError("some rows have an infinite score")
    return _means(leads, name, rows)


def _means(leads: Leads, name: str, rows: FloatArray) -> Profile:
    """Means of row scores, with simultaneous intervals."""
    grouping, evalset = leads.grouping, leads.view.evalset
    means = group_means(evalset, grouping, rows, catalogue()[name])
    level = _level(leads, rows - means.value[grouping.codes])
    return Profile(name, means.value, *means.ends(level), None, level)


def _skills(leads: Leads, coverage: float) -> Profile:
    """Skill against the distribution of y at the same lead times."""
    evalset, codes, size = leads.view.evalset, leads.grouping.codes, len(leads.labels)
    name, value, influence = skill_of_groups(leads.view, codes, range(size), coverage)
    if not np.isfinite(value).any():
        raise UnanswerableError(
            "the score of the reference is 0, for example because y is constant"
        )
    spread = spread_of(influence, evalset.weights, evalset.units, codes, size)
    level = _level(leads, influence)
    lower, upper = skewed_ends(value, spread, level)
    return Profile(name, value, lower, np.minimum(upper, 1.0), np.zeros(size), level)


def _cell_means(leads: Leads, rows: FloatArray) -> FloatArray:
    codes, weights = leads.grouping.codes, leads.view.evalset.multiplicities
    mass = np.ones(len(rows)) if weights is None else weights
    return np.asarray(np.bincount(codes, mass * rows) / np.bincount(codes, mass))


def _level(leads: Leads, influence: FloatArray) -> float:
    """How sure each interval must be for all to hold."""
    view = leads.view
    return joint_level(
        influence,
        leads.grouping.codes,
        len(leads.labels),
        view.evalset.weights,
        view.evalset.units,
        confidence=view.confidence,
        seed=view.seed,
    )


# ---- what a page shows ---------------------------------------------------------------------------

_SHOWN = {
    "empirical_coverage": ("lead_time_coverage", "Coverage"),
    "crps": ("lead_time_score", "CRPS"),
    "interval_score": ("lead_time_score", "Interval score"),
    "mae": ("lead_time_score", "MAE"),
    "mean_width": ("lead_time_width", "Width"),
    "crps_skill": ("lead_time_skill", "Skill"),
    "interval_skill": ("lead_time_skill", "Skill"),
}
"""The curve of each measure by lead time, and what heads its column."""


def _curves(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Coverage, score, width and skill by lead time, each with its simultaneous band."""
    view, coverage = evaluation.view, evaluation.coverages[-1]
    leads: Leads = view.get("leads")
    return [
        Curve(
            name=_SHOWN[profile.name][0],
            x=leads.middle,
            y=profile.value,
            lower=profile.lower,
            upper=profile.upper,
            reference=profile.reference,
            x_label="Lead time (steps)",
            y_label=catalogue()[profile.name].title,
            band=f"{formats.level(confidence)} band, simultaneous for all lead times",
            model=view.evalset.model,
            notes=leads.left_out,
        )
        for profile in view.get("lead_profiles", coverage)
    ]


def _tables(evaluation: Evaluation) -> list[ResultTable]:
    """The same as numbers."""
    view, coverage = evaluation.view, evaluation.coverages[-1]
    leads: Leads = view.get("leads")
    columns: dict[str, Any] = {
        "lead_time": np.array(leads.labels, dtype=object),
        "n": rows_in_groups(leads.view.evalset, leads.grouping),
    }
    labels = {"lead_time": "Lead time", "n": "Rows"}
    for profile in view.get("lead_profiles", coverage):
        title = _SHOWN[profile.name][1]
        columns |= {
            profile.name: profile.value,
            f"{profile.name}_lower": profile.lower,
            f"{profile.name}_upper": profile.upper,
        }
        labels |= {
            profile.name: title,
            f"{profile.name}_lower": "from",
            f"{profile.name}_upper": "to",
        }
    notes = [
        f"Intervals of each measure are simultaneous for all lead times ({view.confidence:.0%}).",
        leads.left_out,
    ]
    return [
        ResultTable(
            name="lead_times",
            columns=columns,
            labels=labels,
            model=view.evalset.model,
            notes=" ".join(filter(None, notes)),
        )
    ]


# ---- the finding ---------------------------------------------------------------------------------

# P-value of a fall or a rise that is told rather than one lead time: the usual one; it decides
# words alone.
_LEVEL = 0.05
# Half a point, as shown: a claim that moves by less reads the same.
_MIN_CHANGE_OF_CLAIM = 0.005


def _draft(case: Case) -> Draft:
    """A fall or rise with lead time, or one lead time that differs from all: what is clearer."""
    drop, test = case.get("lead_time_drop"), case.get("lead_times_differ")
    p = min(2.0 * float(np.fmin(drop.p, test.p)), 1.0)
    within = max(abs(drop.lower), abs(drop.upper)) <= MARGIN
    good = within and float(test.options["reach"]) <= MARGIN
    if drop.p <= max(_LEVEL, test.p):
        return Draft(
            effect=-drop.value,
            lower=-drop.upper,
            upper=-drop.lower,
            p=p,
            n=drop.n,
            good=good,
            facts={"drop": drop},
        )
    return replace(draft_departure(test, {"drop": None}), p=p, good=good)


def _words(draft: Draft, finding: Finding) -> Words:
    drop: Record | None = draft.facts["drop"]
    well = f"no lead time differs by more than {points(MARGIN)}"
    if drop is None:
        facts = draft.facts
        cover = percent(float(facts["value"]))
        sentence = (
            f"At {draft.where}, {cover} of {float(facts['rows']):,.0f} rows are covered "
            f"({percent(float(facts['expected']))} {FROM_ALL})"
        )
        clause = f"coverage is {cover} at {draft.where}"
        return Words(sentence, "coverage depends on lead time", well, clause=clause)
    ends = drop.options
    short, long = (percent(float(ends[f"{end}_coverage"])) for end in ("short", "long"))
    claims = [float(ends[f"{end}_claim"]) for end in ("short", "long")]
    if abs(claims[0] - claims[1]) > _MIN_CHANGE_OF_CLAIM:
        short, long = (
            f"{cover} ({percent(claim)} expected)"
            for cover, claim in zip((short, long), claims, strict=True)
        )
    way, side = ("falls", 100.0) if draft.effect < 0 else ("rises", -100.0)
    size = f"{points(drop.value)}{between(side * drop.lower, side * drop.upper, 1)}"
    clause = f"coverage {way} from {short} at {ends['short']} to {long} at {ends['long']}"
    if finding.state == "bad":
        sentence = (
            f"Coverage {way} with lead time: {short} at {ends['short']}, {long} at {ends['long']}"
        )
        return Words(sentence, more=f"It {way} by {size}.", clause=clause)
    sentence = f"Coverage is {short} at {ends['short']} and {long} at {ends['long']}"
    return Words(sentence, f"coverage {way} with lead time by {size}", well, clause=clause)


_entry: Callable[..., Metric] = partial(
    Metric,
    question=Question.TIME,
    merges="rows",
    standard_normal=math.nan,
    notion=Notion.GROUP,
    per_coverage=True,
)

_ENTRIES = (
    _entry(
        name="lead_time_drop",
        title="Drop of coverage with lead time",
        synonyms=("coverage by lead time", "coverage by horizon"),
        meaning=(
            "Coverage minus nominal coverage at the shortest third of lead times, minus the same "
            "at the longest third."
        ),
        formula="mean (c − p) of the shortest third of horizons − that of the longest",
        direction=Direction.TARGET,
        target=0.0,
        bounds=(-1.0, 1.0),
        forms=(estimated("lead_time_drop"),),
        beware="It ignores the middle third: coverage may be lowest there.",
    ),
    _entry(
        name="lead_times_differ",
        title="Do lead times differ?",
        meaning="P-value of the test that all lead times have the same coverage, given their "
        "nominal coverage.",
        formula="max over lead times of |Σ(c − p̃)| / sd, p̃ the claims shifted to all coverage",
        source="as groups_differ",
        direction=Direction.NONE,
        units="p-value",
        bounds=SHARE,
        forms=(estimated("lead_times_differ"),),
        beware="A p-value is not an effect size: with many rows, a negligible difference is "
        "significant.",
    ),
)

_layout = partial(Layout, order=12, x=Axis(title="Lead time (steps)"))

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("leads", _leads),
        coverage_array("lead_time_drop", _drop),
        coverage_array("lead_times_differ", _differ),
        coverage_array("lead_profiles", _profiles),
    ),
    curves=(_curves,),
    tables=(_tables,),
    findings=(
        FindingQuestion(
            id="lead_time",
            asked="Is coverage the same at all lead times?",
            label="Lead time",
            draft=_draft,
            words=_words,
            measures=("lead_time_drop", "lead_times_differ"),
            name="coverage by lead time",
            cause="how coverage depends on lead time",
            needs="Needed for lead time: a spread that grows with the horizon as errors do.",
        ),
    ),
    label="Lead time",
    title="How does it change with lead time?",
    layouts={
        "lead_time_coverage": _layout(
            question="Up to which lead time do the intervals cover?",
            title="Coverage by lead time",
            reading=(
                "The dashed line is nominal coverage, where it is known: below it intervals "
                "under-cover. A line that falls to the right means that intervals do not widen as "
                "fast as errors grow."
            ),
            y=Axis(title="Empirical coverage", kind="percent"),
            reference="claimed",
        ),
        "lead_time_score": _layout(
            question="How does the score grow with lead time?",
            title="Score by lead time",
            reading="Lower is better. Scores grow with lead time as the future becomes less "
            "predictable.",
            y=Axis(title="Score", zero=True),
        ),
        "lead_time_skill": _layout(
            question="Up to which lead time does the model have skill?",
            title="Skill by lead time",
            reading=(
                "At 0 a forecast is no better than the distribution of y at that lead time; where "
                "the band reaches 0, skill is not significant."
            ),
            y=Axis(title="Skill"),
            reference="no skill",
        ),
        "lead_time_width": _layout(
            question="How do intervals widen with lead time?",
            title="Width by lead time",
            reading="Coverage falls where widths stay constant while scores grow.",
            y=Axis(title="Mean width", zero=True),
        ),
    },
    titles={"lead_times": "By lead time"},
)
