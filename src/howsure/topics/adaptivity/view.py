"""Adaptivity of an evaluation set: are predictions larger where rows are harder, and do they hold?

Needs label sets or intervals, and for the cells by ease the feature that says how easy each row is;
see `howsure.topics.adaptivity.ease`. Ranks come from the sets' class probabilities. Evaluation
takes ``class_scores``, ``bins`` and ``resampling`` besides, as given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.formats import fixed, number, percent
from howsure.core.records import (
    UNIT,
    Axis,
    Curve,
    Direction,
    Layout,
    Mark,
    Notion,
    Record,
    ResultTable,
)
from howsure.core.rng import child
from howsure.engine.finding import (
    FROM_ALL,
    MARGIN,
    Case,
    Draft,
    Finding,
    FindingQuestion,
    Parts,
    Words,
    draft_departure,
    points,
)
from howsure.engine.metric import (
    POSITIVE,
    SHARE,
    Array,
    Form,
    Metric,
    Question,
    Topic,
    coverage_array,
    stated,
)
from howsure.predictions import LabelSets
from howsure.stats.binomial import clopper_pearson
from howsure.stats.cells import MIN_ROWS_PER_CELL
from howsure.stats.dominance import label_rank, merge_ties
from howsure.stats.permutation import Resampling, groups_differ
from howsure.topics.adaptivity.association import rank_ss, satisfaction_rate, t_ss
from howsure.topics.adaptivity.coverage import (
    AdaptivityMeasure,
    escv,
    rank_cv,
    set_deficit,
    set_excess,
    sscv,
    t_cv,
)

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View

# As in the main tables of Jang and Lee, every value of which is a multiple of 1/400 (50 cells of
# 400).
BINS = 50
# Into how many parts of equal mass the rows are cut by ease to be tested, one in the other: tenths
# find a fault at an end, halves a trend that is weak in each. Not tuned.
_TESTED_PARTS = (10, 5, 2)
# Rows of nearly one chance are drawn together: this many steps in √ of an arc of it. Not tuned;
# finer cells leave fewer rows to exchange.
_STEPS_OF_CHANCE = 16.0

# Resamples of the satisfaction rate, at most; each draws a thousand pairs, so it takes longer than
# other resamples. Not tuned.
_MAX_RATE_RESAMPLES = 199

_Maker = Callable[["View", float], Any]


def _options(view: View) -> dict[str, Any]:
    """What every measure takes; rows must be independent."""
    if view.evalset.cluster is not None:
        raise UnanswerableError("measures of adaptivity need independent rows, not clusters")
    resampling = view.given.get("resampling") or Resampling(
        confidence=view.confidence, seed=view.seed
    )
    return {"weights": view.evalset.multiplicities, "resampling": resampling}


def _cells(view: View) -> int:
    """Cells by ease: those wanted, at most one for five rows, or for so many as may be told of."""
    if view.evalset.n < 3:
        raise UnanswerableError("cells by ease need at least 3 rows")
    least = max(MIN_ROWS_PER_CELL, view.evalset.fewest)
    return max(3, min(int(view.given.get("bins", BINS)), view.evalset.n // least))


def _hits(view: View, coverage: float) -> FloatArray:
    return np.asarray(view.get("covered", coverage), dtype=np.float64)


def _sizes(view: View, coverage: float) -> FloatArray:
    """Labels in each set, or widths, those that differ by rounding alone made one."""
    view.get("covered", coverage)
    if view.source(("covered",), coverage) == LabelSets.kind:
        return np.asarray(view.get("set_sizes"))
    lower, upper = view.get("ends", coverage)
    widths = np.asarray(upper - lower)
    if not np.isfinite(widths).all():
        raise UnanswerableError("some intervals are unbounded")
    return merge_ties(widths, 4e-16 * np.maximum(np.abs(lower), np.abs(upper)))


def _true_rank(view: View, _: float) -> FloatArray:
    """Rank of the true label among the class scores."""
    sets = view.prediction(LabelSets)
    scores, wanted = view.given.get("class_scores", sets.probabilities), sets.members.shape
    if scores is None:
        raise UnanswerableError("class probabilities are needed for the rank of the true label")
    table = np.asarray(scores)
    if table.shape != wanted:
        raise UnanswerableError(f"class scores must have shape {wanted}, got {table.shape}")
    return label_rank(table, view.evalset.y)


def _difficulty(view: View, coverage: float) -> FloatArray:
    """The rank of the true label, or |y − point forecast|."""
    view.get("covered", coverage)
    labels = view.source(("covered",), coverage) == LabelSets.kind
    return np.asarray(view.get("true_rank" if labels else "absolute_error"))


def _ease(view: View, _: float) -> FloatArray:
    """The feature that says it."""
    name = view.evalset.ease
    column = view.evalset.features.get(name)
    if column is None:
        raise UnanswerableError("the ease of each row is needed")
    if column.dtype.kind not in "iufb":
        raise UnanswerableError(f"the column {name!r} must contain numbers")
    ease = column.astype(np.float64)
    if not np.isfinite(ease).all():
        raise UnanswerableError(f"the column {name!r} must be complete")
    if (ease == ease[0]).all():
        raise UnanswerableError(f"the column {name!r} has the same ease in every row")
    return ease


def _violation(
    measure: Callable[..., AdaptivityMeasure],
    view: View,
    coverage: float,
    by: FloatArray,
    **more: Any,
) -> AdaptivityMeasure:
    """A violation of coverage, beside what the rows' own claims lead one to expect."""
    try:
        claimed = view.get("claim", coverage)
    except UnanswerableError:  # of a range of claims the coverage is the least
        claimed = None
    if claimed is not None:
        same = not (np.abs(claimed - coverage) > _CLAIM_ROUNDING).any()
        claimed = None if same or claimed.min() < 0 or claimed.max() > 1 else claimed
    hits = _hits(view, coverage)
    return measure(hits, by, coverage=coverage, claimed=claimed, **more, **_options(view))


# Claims are sums of stated shares, which lose fewer than seven digits.
_CLAIM_ROUNDING = 1e-9


def _t_cv(view: View, coverage: float) -> AdaptivityMeasure:
    """T-CV, with the test that parts of the rows by ease cover as all rows do."""
    ease = view.get("ease")
    violation = _violation(t_cv, view, coverage, ease, bins=_cells(view))
    name, mass = view.evalset.ease, view.evalset.multiplicities
    divided = [_cut(ease, mass, parts, name) for parts in _TESTED_PARTS]
    return _differing(
        violation,
        view,
        coverage,
        "ease",
        [pair for pair in divided if len(pair[1]) > 1],
    )


def _cut(
    ease: FloatArray, mass: FloatArray | None, parts: int, name: str
) -> tuple[IntArray, tuple[str, ...]]:
    """Parts of about equal mass by ease, equal ones together: the part of each row, and names."""
    order = np.argsort(ease, kind="stable")
    weights = np.ones(len(ease)) if mass is None else mass[order]
    rising = np.cumsum(weights) / weights.sum()
    places = np.searchsorted(rising, np.arange(1, parts) / parts - 1e-12)
    edges = np.unique(ease[order][places])
    edges = edges[edges < ease.max()]
    limits = [number(float(edge), 4) for edge in edges]
    middle = [f"{low} < {name} ≤ {high}" for low, high in pairwise(limits)]
    names = (f"{name} ≤ {limits[0]}", *middle, f"{name} > {limits[-1]}") if limits else ("",)
    return np.searchsorted(edges, ease, side="left"), names


def _t_ss(view: View, coverage: float) -> AdaptivityMeasure:
    size, difficulty = view.get("size", coverage), view.get("difficulty", coverage)
    return t_ss(size, difficulty, view.get("ease"), bins=_cells(view), **_options(view))


def _satisfied(view: View, coverage: float) -> AdaptivityMeasure:
    options = _options(view)
    if options.pop("weights") is not None:
        raise UnanswerableError("the satisfaction rate needs unweighted rows")
    size, difficulty = view.get("size", coverage), view.get("difficulty", coverage)
    subset = min(100, max(1, view.evalset.n // 10))
    drawn = options["resampling"]
    most = {
        name: min(getattr(drawn, name), _MAX_RATE_RESAMPLES)
        for name in ("replicates", "permutations")
    }
    options["resampling"] = replace(drawn, **most)
    return satisfaction_rate(size, difficulty, subset=subset, **options)


def _of_sets(measure: Callable[..., AdaptivityMeasure], array: str) -> _Maker:
    """A measure of label sets: of coverage over what an array holds."""

    def measure_violation(view: View, coverage: float) -> AdaptivityMeasure:
        view.prediction(LabelSets)
        return _violation(measure, view, coverage, view.get(array, coverage))

    return measure_violation


def _sscv(view: View, coverage: float) -> AdaptivityMeasure:
    """SSCV, with the test that sets of all sizes cover as all rows do, and the size farthest off.

    The largest violation itself is that of the fewest rows; the test weighs each size by them.
    Sets of all labels cover whatever happens, and are left out of it.
    """
    violation: AdaptivityMeasure = _of_sets(sscv, "size")(view, coverage)
    some = ~view.prediction(LabelSets).members.all(axis=1)
    if not some.any():
        return violation
    view_of_some = view if some.all() else view.of(np.flatnonzero(some))
    sizes, codes = np.unique(view_of_some.get("size", coverage), return_inverse=True)
    names = tuple(f"{size:g}" for size in sizes)
    return _differing(violation, view_of_some, coverage, "sizes", [(codes, names)])


def _differing(
    measure: AdaptivityMeasure,
    view: View,
    coverage: float,
    by: str,
    divided: Sequence[tuple[IntArray, tuple[str, ...]]],
) -> AdaptivityMeasure:
    """A measure, with the test that no part of the rows strays from what all lead one to expect.

    `divided` holds the part of each row, and the parts' names, for each way to cut the rows.
    """
    weights = view.evalset.weights
    if not divided or (weights is not None and weights.kind != "frequency"):
        return measure
    hits = _hits(view, coverage)
    try:
        expected = view.get("expected_coverage", coverage)
    except UnanswerableError:
        return measure
    mass = np.ones(len(hits)) if weights is None else weights.values
    joint = np.zeros(len(hits), dtype=np.int64)
    free = bool((expected != expected[0]).any())
    steps = (
        np.floor(_STEPS_OF_CHANCE * np.arcsin(np.sqrt(expected))).astype(np.int64)
        if free
        else joint
    )
    for codes in (steps, *(codes for codes, _ in divided)):
        joint = np.unique(joint * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    first_rows = np.unique(joint, return_index=True)[1]
    sizes = np.bincount(joint, mass)
    chances = np.bincount(joint, mass * expected) / sizes
    tested = groups_differ(
        np.round(sizes).astype(np.int64),
        np.round(np.bincount(joint, mass * hits)).astype(np.int64),
        [codes[first_rows] for codes, _ in divided],
        child(view.seed, "coverage by", by),
        9_999,
        chances=np.clip(chances, 0.0, 1.0) if free else None,
        staged=True,
    )
    if tested.note:
        return measure
    level = 1.0 - (1.0 - view.confidence) / sum(len(names) for _, names in divided)
    ways = [
        [np.bincount(codes, mass * each) for each in (1.0, hits, expected)] for codes, _ in divided
    ]
    n, shares, due = (np.concatenate(column) for column in zip(*ways, strict=True))
    ends = clopper_pearson(np.round(shares), np.round(n), confidence=level)
    names = [name for _, parts in divided for name in parts]
    first = sum(len(parts) for _, parts in divided[: tested.grouping])
    details = Parts(names, shares / n, due / n, *ends, n).named(first + tested.group)[1]
    all_details = {**measure.estimate.details, f"{by}_differ": tested.p_value, **details}
    return replace(measure, estimate=replace(measure.estimate, details=all_details))


def _rank_ss(view: View, coverage: float) -> AdaptivityMeasure:
    return rank_ss(view.get("size", coverage), view.get("true_rank"), **_options(view))


def cell_tables(evaluation: Evaluation) -> list[ResultTable]:
    """The cells by ease: ``adaptivity_cells``, of whatever measures were answered."""
    violation, slope = _answers(evaluation)
    measure = violation or slope
    if measure is None:
        return []
    cells = measure.cells
    columns = {"cell": np.arange(1.0, len(cells.n) + 1), "ease_low": cells.low}
    columns |= {"ease_high": cells.high, "n": cells.n}
    if violation is not None:
        columns["coverage"] = cells.means["coverage"]
    if slope is not None:
        columns |= {name: slope.cells.means[name] for name in ("size", "difficulty")}
    return [
        ResultTable(
            name="adaptivity_cells",
            columns=columns,
            labels={"cell": "cell, from the hardest", "n": "rows"},
            model=evaluation.evalset.model,
            notes="Cells of equal mass by ease; size and difficulty are means.",
        )
    ]


def _answers(
    evaluation: Evaluation,
) -> tuple[AdaptivityMeasure | None, AdaptivityMeasure | None]:
    measures: list[AdaptivityMeasure | None] = []
    for name in ("t_cv", "t_ss"):
        try:
            measures.append(evaluation.view.get(name, evaluation.coverages[-1]))
        except UnanswerableError:
            measures.append(None)
    return measures[0], measures[1]


def _curves(evaluation: Evaluation, confidence: float) -> list[Curve]:
    violation, slope = _answers(evaluation)
    model, labels = evaluation.evalset.model, evaluation.view.find_prediction(LabelSets) is not None
    curves = []
    if violation is not None:
        cells, estimate = violation.cells, violation.estimate
        share = (np.cumsum(cells.n) - cells.n / 2) / cells.n.sum()
        nominal = np.full(len(share), evaluation.coverages[-1])
        floor = f"a perfect model shows {estimate.null:.3g} on average."
        coverage_by_ease = Curve(
            name="coverage_by_ease",
            x=share,
            y=cells.means["coverage"],
            lower=np.maximum(nominal - estimate.null_upper, 0.0),
            upper=np.minimum(nominal + estimate.null_upper, 1.0),
            reference=nominal,
            x_label="Share of rows that are harder",
            y_label="Empirical coverage",
            band=f"{confidence:.0%} band of a perfect model, all cells at once",
            model=model,
            notes=f"T-CV {estimate.value:.3g}; {floor}",
            hover={"Rows": cells.n, "Ease from": cells.low, "Ease to": cells.high},
        )
        curves.append(coverage_by_ease)
    if slope is not None:
        cells = slope.cells
        order = np.argsort(cells.means["difficulty"], kind="stable")
        numbers = np.arange(1.0, len(order) + 1)
        size_by_difficulty = Curve(
            name="size_by_difficulty",
            x=cells.means["difficulty"][order],
            y=cells.means["size"][order],
            x_label="Mean rank of the true label" if labels else "Mean |y − forecast| (y)",
            y_label="Mean set size (labels)" if labels else "Mean width (y)",
            model=model,
            notes="Each point is a cell of equal mass by ease.",
            hover={"Rows": cells.n[order], "Cell from the hardest": numbers[order]},
        )
        curves.append(size_by_difficulty)
    return curves


_STRATA = "It detects only coverage that depends on the size of sets."
_MAXIMUM = (
    "The largest violation is above 0 by chance: compare it with the value of a perfect model."
)
_RANK = "It conditions on the true label, which no method can use: it is descriptive, not a test."
_entry = partial(
    Metric,
    question=Question.ADAPTIVITY,
    source="Jang and Lee 2025",
    direction=Direction.LOWER,
    beside="ease",
    merges="rows",
    standard_normal=math.nan,
    notion=Notion.LOCAL,
    per_coverage=True,
    bounds=SHARE,
)

_ENTRIES = (
    _entry(
        name="t_cv",
        title="T-CV",
        meaning="Largest violation of coverage over cells of equal mass by ease.",
        formula="max over cells b of |(1−α) − cov_b|",
        synonyms=("transformation-based coverage violation", "coverage violation by ease"),
        source="Jang and Lee 2025, equation 3",
        forms=(stated("t_cv"),),
        beware=f"{_MAXIMUM} It uses ease alone.",
    ),
    _entry(
        name="t_ss",
        title="T-SS",
        meaning="How well mean size follows mean difficulty over cells of equal mass by ease.",
        formula="sign(ρ)·ρ² of the cells' mean size and mean difficulty",
        source="Jang and Lee 2025, equation 5",
        direction=Direction.HIGHER,
        forms=(stated("t_ss"),),
        target=1.0,
        bounds=(-1.0, 1.0),
        beware="It is undefined for constant widths. Random sizes give values other than 0 by "
        "chance.",
    ),
    _entry(
        name="satisfaction_rate",
        title="Satisfaction of Property 1",
        meaning="How often the harder of two random subsets has the larger sets.",
        formula="share of pairs of subsets that d₁ ≤ d₂ and s₁ ≤ s₂ put in the same order",
        source="Jang and Lee 2025, Property 1",
        direction=Direction.HIGHER,
        forms=(stated("satisfaction_rate"),),
        target=1.0,
        beware="Random sizes satisfy the property half of the time: 0.5 means no relation.",
    ),
    _entry(
        name="sscv",
        title="SSCV",
        synonyms=("size-stratified coverage violation", "size stratified coverage", "SSC"),
        meaning="Largest violation of coverage over strata of set size.",
        formula="max over strata j of |(1−α) − cov_j|",
        source="Angelopoulos et al. 2021",
        forms=(stated("sscv"),),
        beside="",
        beware=f"{_STRATA} {_MAXIMUM}",
    ),
    _entry(
        name="escv",
        title="ESCV",
        synonyms=("each-size coverage violation",),
        meaning="Largest violation of coverage over exact set sizes.",
        formula="max over sizes j ≥ 1 of |(1−α) − cov_j|",
        source="Huang et al. 2024; two-sided as in Jang and Lee 2025",
        forms=(stated("escv"),),
        beware=f"{_STRATA} Rare sizes can dominate it.",
    ),
    _entry(
        name="rank_cv",
        title="Rank-CV",
        meaning="Largest violation of coverage over strata of the true label's rank.",
        formula="max over strata of rank of |(1−α) − cov_j|",
        direction=Direction.NONE,
        forms=(stated("rank_cv"),),
        beware=_RANK,
    ),
    _entry(
        name="rank_ss",
        title="Rank-SS",
        meaning="How well mean size follows the true label's rank.",
        formula="sign(ρ)·ρ² of the strata's mean size and mean rank",
        direction=Direction.NONE,
        forms=(stated("rank_ss"),),
        bounds=(-1.0, 1.0),
        beware=_RANK,
    ),
    _entry(
        name="set_deficit",
        title="Deficit of label sets",
        meaning="Mean number of further labels that the set would need to contain the true one.",
        formula="mean max(rank − size, 0)",
        source="Navrátil et al. 2021, for sets; Jang and Lee 2025",
        forms=(Form(needs=("true_rank", "set_sizes"), function=set_deficit),),
        per_coverage=False,
        target=0.0,
        bounds=POSITIVE,
        beware="It is 0 for sets of all labels; read it with the excess.",
    ),
    _entry(
        name="set_excess",
        title="Excess of label sets",
        meaning="Mean number of labels in the set beyond the true one.",
        formula="mean max(size − rank, 0)",
        source="Navrátil et al. 2021, for sets; Jang and Lee 2025",
        forms=(Form(needs=("true_rank", "set_sizes"), function=set_excess),),
        per_coverage=False,
        target=0.0,
        bounds=POSITIVE,
        beware="It is 0 for empty sets; read it with the deficit.",
    ),
)


# ---- what is concluded of coverage by ease, and by the size of label sets ------------------------


def _ease_of(case: Case) -> Draft:
    record = case.get("t_cv")
    if "where" not in record.options:
        raise UnanswerableError("parts of the rows by ease were not compared")
    return draft_departure(
        replace(record, p=float(record.options["ease_differ"])), {"record": record}
    )


def _ease_words(draft: Draft, _: Finding) -> Words:
    facts = draft.facts
    record: Record = facts["record"]
    seen = (
        f"Where {draft.where}, {percent(float(facts['value']))} of "
        f"{float(facts['rows']):,.0f} rows are covered "
        f"({percent(float(facts['expected']))} {FROM_ALL})"
    )
    more = f"T-CV is {fixed(record.value, 3)} (correctly specified model: {fixed(record.null, 3)})."
    well = f"no part differs by more than {points(MARGIN)}"
    clause = f"coverage is {percent(float(facts['value']))} where {draft.where}"
    return Words(seen, "coverage depends on ease", well, more, clause=clause)


# Shares that differ by less are one: stated with six digits.
_MAX_DIFFERENCE_OF_EQUALS = 1e-6


def _sets(case: Case) -> Draft:
    if not case.of_sets:
        raise UnanswerableError("the table has no label sets")
    record, empty = case.get("sscv"), case.get("empty_sets")
    if "where" not in record.options:
        raise UnanswerableError("the sizes of sets were not compared")
    seen, expected = case.get("empirical_coverage").value, float(record.options["expected"])
    facts = {
        "empty": empty.value,
        "size": case.get("set_size").value,
        "free": abs(seen - expected) > _MAX_DIFFERENCE_OF_EQUALS,
    }
    return draft_departure(replace(record, p=float(record.options["sizes_differ"])), facts)


def _sets_words(draft: Draft, _: Finding) -> Words:
    facts = draft.facts
    labels = "label" if draft.where == "1" else "labels"
    seen = (
        f"Sets of {draft.where} {labels} cover {percent(float(facts['value']))} of "
        f"{float(facts['rows']):,.0f} rows"
    )
    due = percent(float(facts["expected"]))
    seen += f" ({due} {FROM_ALL})" if facts["free"] else f", all sets {due}"
    empty = float(facts["empty"])
    more = f"{percent(empty)} of sets are empty." if empty else ""
    if draft.where == "0":  # as of one threshold for an accurate model, by LAC or randomised APS
        more += (
            " They occur where the model's accuracy exceeds the nominal coverage. Requiring at "
            "least one label fills them and raises coverage: LabelConformal(allow_empty=False)."
        )
    fault = "coverage depends on the size of the set"
    clause = f"sets of {draft.where} {labels} cover {percent(float(facts['value']))}"
    return Words(seen, fault, "sets of all sizes have similar coverage", more, clause=clause)


FINDINGS = (
    FindingQuestion(
        id="ease",
        asked="Is coverage the same for hard and easy rows?",
        label="Ease",
        draft=_ease_of,
        words=_ease_words,
        measures=("t_cv",),
        name="coverage by ease",
        cause="how coverage depends on ease",
        needs="Needed for ease: calibration within ranges of ease.",
    ),
    FindingQuestion(
        id="sets",
        asked="Do sets of all sizes have the same coverage?",
        label="Set sizes",
        draft=_sets,
        words=_sets_words,
        measures=("sscv", "empty_sets", "set_size", "empirical_coverage"),
        section="Coverage",
        needs="Needed for label sets: class probabilities, from which new sets can be built.",
    ),
)


TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("ease", _ease, predicted=True),
        coverage_array("size", _sizes, predicted=True),
        coverage_array("difficulty", _difficulty, predicted=True),
        Array("true_rank", _true_rank),
        coverage_array("t_cv", _t_cv),
        coverage_array("t_ss", _t_ss),
        coverage_array("satisfaction_rate", _satisfied),
        coverage_array("sscv", _sscv),
        coverage_array("escv", _of_sets(escv, "size")),
        coverage_array("rank_cv", _of_sets(rank_cv, "true_rank")),
        coverage_array("rank_ss", _rank_ss),
    ),
    curves=(_curves,),
    tables=(cell_tables,),
    findings=FINDINGS,
    label="Ease",
    layouts={
        "coverage_by_ease": Layout(
            order=14,
            question="Do easy and hard inputs have the same coverage?",
            title="Coverage by ease",
            reading=(
                "Rows are sorted from hard to easy, in cells of equal size. A line that leaves "
                "the band is significantly below or above nominal coverage."
            ),
            x=Axis(kind="percent", domain=UNIT),
            y=Axis(kind="percent"),
            reference="nominal",
            band_about="reference",
            band="chance alone",
        ),
        "size_by_difficulty": Layout(
            order=15,
            question="Do sets or intervals grow with difficulty?",
            title="Size by difficulty",
            reading=(
                "Each point is a cell of rows of similar difficulty. T-SS is the signed R² of a "
                "line through the points of one colour."
            ),
            mark=Mark.POINTS,
            data="cells",
        ),
    },
    titles={"adaptivity_cells": "Adaptivity cells"},
)
