"""Adaptivity of an evaluation set: are predictions larger where rows are harder, and do they hold?

Needs label sets or intervals, and for the cells by ease a feature ``ease``: how easy each row is;
see `howsure.metrics.adaptivity.ease`. Evaluation takes ``class_scores``, ``bins`` and
``resampling`` besides, as given.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Curve, Direction, Notion, Table
from howsure.core.rng import child
from howsure.metrics.adaptivity import (
    AdaptivityMeasure,
    CellTable,
    Resampling,
    escv,
    label_rank,
    rank_cv,
    rank_ss,
    satisfaction_rate,
    set_deficit,
    set_excess,
    sscv,
    t_cv,
    t_ss,
)
from howsure.metrics.metric import POSITIVE, SHARE, Form, Laws, Metric, Question, Topic, stated
from howsure.predictions import LabelSets
from howsure.stats.binomial import clopper_pearson
from howsure.stats.dominance import merge_ties
from howsure.stats.permutation import groups_differ

if TYPE_CHECKING:
    from howsure.metrics.measure import Evaluation
    from howsure.metrics.view import View

BINS = 50
EASE = "ease"
"""The feature that says how easy each row is."""

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
    """Cells by ease: those wanted, at most one for five rows."""
    if view.evalset.n < 3:
        raise UnanswerableError("cells by ease need at least 3 rows")
    return max(3, min(int(view.given.get("bins", BINS)), view.evalset.n // 5))


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
    held = view.belief(LabelSets)
    scores, wanted = view.given.get("class_scores", held.probabilities), held.members.shape
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
    """The feature of that name."""
    column = view.evalset.features.get(EASE)
    if column is None:
        raise UnanswerableError("the ease of each row is needed")
    if column.dtype.kind not in "iufb":
        raise UnanswerableError(f"the column {EASE!r} must hold numbers")
    ease = column.astype(np.float64)
    if not np.isfinite(ease).all():
        raise UnanswerableError(f"the column {EASE!r} must be complete")
    return ease


def _t_cv(view: View, coverage: float) -> AdaptivityMeasure:
    hits, ease = _hits(view, coverage), view.get("ease")
    return t_cv(hits, ease, coverage=coverage, bins=_cells(view), **_options(view))


def _t_ss(view: View, coverage: float) -> AdaptivityMeasure:
    size, difficulty = view.get("size", coverage), view.get("difficulty", coverage)
    return t_ss(size, difficulty, view.get("ease"), bins=_cells(view), **_options(view))


def _satisfied(view: View, coverage: float) -> AdaptivityMeasure:
    options = _options(view)
    if options.pop("weights") is not None:
        raise UnanswerableError("the satisfaction rate needs unweighted rows")
    size, difficulty = view.get("size", coverage), view.get("difficulty", coverage)
    subset = min(100, max(1, view.evalset.n // 10))
    return satisfaction_rate(size, difficulty, subset=subset, **options)


def _of_sets(measure: Callable[..., AdaptivityMeasure], array: str) -> _Maker:
    """A measure of label sets: of coverage over what an array holds."""

    def make(view: View, coverage: float) -> AdaptivityMeasure:
        view.belief(LabelSets)
        hits, by = _hits(view, coverage), view.get(array, coverage)
        return measure(hits, by, coverage=coverage, **_options(view))

    return make


def _sscv(view: View, coverage: float) -> AdaptivityMeasure:
    """SSCV, with the test that sets of all sizes cover as all rows do, and the size farthest off.

    The largest violation itself is that of the fewest rows; the test weighs each size by them.
    """
    found: AdaptivityMeasure = _of_sets(sscv, "size")(view, coverage)
    weights = view.evalset.weights
    if weights is not None and weights.kind != "frequency":
        return found
    sizes, mass = view.get("size", coverage), view.evalset.multiplicities
    labels, codes = np.unique(sizes, return_inverse=True)
    rows = np.bincount(codes, weights=mass)
    hits = np.bincount(codes, weights=_hits(view, coverage) * (1.0 if mass is None else mass))
    tested = groups_differ(
        np.round(rows).astype(np.int64),
        np.round(hits).astype(np.int64),
        [np.arange(len(labels))],
        child(view.seed, "set sizes"),
        9_999,
        staged=True,
    )
    if tested.note:
        return found
    at, level = tested.group, 1.0 - (1.0 - view.confidence) / len(labels)
    lower, upper = clopper_pearson(np.round(hits), np.round(rows), confidence=level)
    seen = hits.sum() / rows.sum()
    details: dict[str, str | float] = {
        "sizes_differ": tested.p_value,
        "where": f"{labels[at]:g}",
        "value": float(hits[at] / rows[at]),
        "expected": float(seen),
        "lower": float(lower[at]),
        "upper": float(upper[at]),
        "reach": float(np.maximum(upper - seen, seen - lower).max()),
        "rows": float(rows[at]),
    }
    known = {**found.estimate.details, **details}
    return replace(found, estimate=replace(found.estimate, details=known))


def _rank_ss(view: View, coverage: float) -> AdaptivityMeasure:
    return rank_ss(view.get("size", coverage), view.get("true_rank"), **_options(view))


def cell_tables(evaluation: Evaluation) -> list[Table]:
    """The cells by ease: ``adaptivity_cells``, of whatever measures were answered."""
    violation, slope = _answers(evaluation)
    held = violation or slope
    if held is None:
        return []
    cells = held.cells
    columns = {"cell": np.arange(1.0, len(cells.n) + 1), "ease_low": cells.low}
    columns |= {"ease_high": cells.high, "n": cells.n}
    if violation is not None:
        columns["coverage"] = cells.means["coverage"]
    if slope is not None:
        columns |= {name: slope.cells.means[name] for name in ("size", "difficulty")}
    return [
        Table(
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
    found: list[AdaptivityMeasure | None] = []
    for name in ("t_cv", "t_ss"):
        try:
            found.append(evaluation.view.get(name, evaluation.coverages[-1]))
        except UnanswerableError:
            found.append(None)
    return found[0], found[1]


def _curves(evaluation: Evaluation, confidence: float) -> list[Curve]:
    violation, slope = _answers(evaluation)
    model, labels = evaluation.evalset.model, evaluation.view.held(LabelSets) is not None
    made = []
    if violation is not None:
        made.append(_coverage_curve(violation, evaluation.coverages[-1], confidence, model))
    if slope is not None:
        made.append(_size_curve(slope.cells, "labels" if labels else "y", model))
    return made


def _coverage_curve(
    measure: AdaptivityMeasure, nominal: float, confidence: float, model: str
) -> Curve:
    cells, found = measure.cells, measure.estimate
    share = (np.cumsum(cells.n) - cells.n / 2) / cells.n.sum()
    flat = np.full(len(share), nominal)
    return Curve(
        name="coverage_by_ease",
        x=share,
        y=cells.means["coverage"],
        lower=np.maximum(flat - found.null_upper, 0.0),
        upper=np.minimum(flat + found.null_upper, 1.0),
        reference=flat,
        x_label="Share of rows that are harder",
        y_label="Empirical coverage",
        band=f"{confidence:.0%} band of a perfect model, all cells at once",
        model=model,
        notes=f"T-CV {found.value:.3g}; a perfect model shows {found.null:.3g} on average.",
        hover={"Rows": cells.n, "Ease from": cells.low, "Ease to": cells.high},
    )


def _size_curve(cells: CellTable, units: str, model: str) -> Curve:
    order = np.argsort(cells.means["difficulty"], kind="stable")
    labels = units == "labels"
    return Curve(
        name="size_by_difficulty",
        x=cells.means["difficulty"][order],
        y=cells.means["size"][order],
        x_label="Mean rank of the true label" if labels else "Mean |y − forecast| (y)",
        y_label="Mean set size (labels)" if labels else "Mean width (y)",
        model=model,
        notes="Each point is a cell of equal mass by ease.",
        hover={
            "Rows": cells.n[order],
            "Cell from the hardest": np.arange(1.0, len(order) + 1)[order],
        },
    )


_ENTRIES = (
    Metric(
        name="t_cv",
        title="T-CV",
        question=Question.ADAPTIVITY,
        meaning="Largest violation of coverage over cells of equal mass by ease.",
        formula="max over cells b of |(1−α) − cov_b|",
        source="Jang and Lee 2025, equation 3",
        direction=Direction.LOWER,
        units="1",
        forms=(stated("t_cv"),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=True,
        beside="ease",
        merges="rows",
        bounds=SHARE,
    ),
    Metric(
        name="t_ss",
        title="T-SS",
        question=Question.ADAPTIVITY,
        meaning="How well mean size follows mean difficulty over cells of equal mass by ease.",
        formula="sign(ρ)·ρ² of the cells' mean size and mean difficulty",
        source="Jang and Lee 2025, equation 5",
        direction=Direction.HIGHER,
        units="1",
        forms=(stated("t_ss"),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=True,
        beside="ease",
        merges="rows",
        target=1.0,
        bounds=(-1.0, 1.0),
    ),
    Metric(
        name="satisfaction_rate",
        title="Satisfaction of Property 1",
        question=Question.ADAPTIVITY,
        meaning="How often the harder of two random subsets has the larger sets.",
        formula="share of pairs of subsets that d₁ ≤ d₂ and s₁ ≤ s₂ order alike",
        source="Jang and Lee 2025, Property 1",
        direction=Direction.HIGHER,
        units="1",
        forms=(stated("satisfaction_rate"),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=True,
        beside="ease",
        merges="rows",
        target=1.0,
        bounds=SHARE,
    ),
    Metric(
        name="sscv",
        title="SSCV",
        synonyms=("size-stratified coverage violation", "size stratified coverage", "SSC"),
        question=Question.ADAPTIVITY,
        meaning="Largest violation of coverage over strata of set size.",
        formula="max over strata j of |(1−α) − cov_j|",
        source="Angelopoulos et al. 2021",
        direction=Direction.LOWER,
        units="1",
        forms=(stated("sscv"),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=True,
        merges="rows",
        bounds=SHARE,
    ),
    Metric(
        name="escv",
        title="ESCV",
        synonyms=("each-size coverage violation",),
        question=Question.ADAPTIVITY,
        meaning="Largest violation of coverage over exact set sizes.",
        formula="max over sizes j ≥ 1 of |(1−α) − cov_j|",
        source="Huang et al. 2024; two-sided as in Jang and Lee 2025",
        direction=Direction.LOWER,
        units="1",
        forms=(stated("escv"),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=True,
        beside="ease",
        merges="rows",
        bounds=SHARE,
    ),
    Metric(
        name="rank_cv",
        title="Rank-CV",
        question=Question.ADAPTIVITY,
        meaning="Largest violation of coverage over strata of the true label's rank.",
        formula="max over strata of rank of |(1−α) − cov_j|",
        source="Jang and Lee 2025",
        direction=Direction.NONE,
        units="1",
        forms=(stated("rank_cv"),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=True,
        beside="ease",
        merges="rows",
        bounds=SHARE,
    ),
    Metric(
        name="rank_ss",
        title="Rank-SS",
        question=Question.ADAPTIVITY,
        meaning="How well mean size follows the true label's rank.",
        formula="sign(ρ)·ρ² of the strata's mean size and mean rank",
        source="Jang and Lee 2025",
        direction=Direction.NONE,
        units="1",
        forms=(stated("rank_ss"),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=True,
        beside="ease",
        merges="rows",
        bounds=(-1.0, 1.0),
    ),
    Metric(
        name="set_deficit",
        title="Deficit of label sets",
        question=Question.ADAPTIVITY,
        meaning="Mean number of further labels that the set would need to contain the true one.",
        formula="mean max(rank − size, 0)",
        source="Navrátil et al. 2021, for sets; Jang and Lee 2025",
        direction=Direction.LOWER,
        units="1",
        forms=(Form(needs=("true_rank", "set_sizes"), function=set_deficit),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=False,
        beside="ease",
        merges="rows",
        target=0.0,
        bounds=POSITIVE,
    ),
    Metric(
        name="set_excess",
        title="Excess of label sets",
        question=Question.ADAPTIVITY,
        meaning="Mean number of labels in the set beyond the true one.",
        formula="mean max(size − rank, 0)",
        source="Navrátil et al. 2021, for sets; Jang and Lee 2025",
        direction=Direction.LOWER,
        units="1",
        forms=(Form(needs=("true_rank", "set_sizes"), function=set_excess),),
        laws=Laws(),
        standard_normal=math.nan,
        notion=Notion.LOCAL,
        per_coverage=False,
        beside="ease",
        merges="rows",
        target=0.0,
        bounds=POSITIVE,
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays={
        "ease": _ease,
        "size": _sizes,
        "difficulty": _difficulty,
        "true_rank": _true_rank,
        "t_cv": _t_cv,
        "t_ss": _t_ss,
        "satisfaction_rate": _satisfied,
        "sscv": _sscv,
        "escv": _of_sets(escv, "size"),
        "rank_cv": _of_sets(rank_cv, "true_rank"),
        "rank_ss": _rank_ss,
    },
    per_coverage=(
        *("size", "difficulty", "t_cv", "t_ss", "satisfaction_rate"),
        *("sscv", "escv", "rank_cv", "rank_ss"),
    ),
    curves=(_curves,),
    tables=(cell_tables,),
)
