"""Conditional coverage of an evaluation set: where does it fail, and is it more than chance?

Needs inputs (features or an embedding) or groups beside the predictions, and independent rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from howsure.core.arrays import AnyArray, BoolArray, FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.formats import level, percent
from howsure.core.labels import InputColumn
from howsure.core.records import UNIT, Axis, Curve, Direction, Layout, Notion, Record, ResultTable
from howsure.engine.finding import (
    FROM_ALL,
    SDS,
    Case,
    Draft,
    Finding,
    FindingQuestion,
    Words,
    small,
)
from howsure.engine.metric import SHARE, Array, Metric, Question, Topic, coverage_array, stated
from howsure.predictions import EvalSet, LabelSets
from howsure.stats.ecdf import simultaneous_band
from howsure.stats.estimate import Z_95
from howsure.topics.calibration.components import MOVED, scale_of, shift_of
from howsure.topics.conditional.dependence import (
    CoverageGap,
    DependenceTest,
    coverage_gap,
    hsic,
    width_correlation,
)
from howsure.topics.conditional.ert import ERT, ert
from howsure.topics.conditional.forests import Region
from howsure.topics.conditional.local_pit import LocalPit, local_pit
from howsure.topics.conditional.slab import (
    RegionTest,
    WorstRegion,
    WorstSlab,
    regions_differ,
    worst_region,
    worst_slab,
)

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View

# 199 refits of one ERT took 72 s at 5,000 rows, before its trees were learnt only once. Not tuned
# since; more rows are used where they are asked for.
MOST_ROWS = 5_000
# Of the 1,000 that its authors draw, for the sake of time; ask for more with `worst_slab`.
DIRECTIONS = 300
# Each frequent label is a column; the rest are one. By hand; not tuned.
MOST_LABELS = 10
# Random directions in more columns hardly meet the one that matters.
MOST_COLUMNS = 50
# Chosen by hand; not tuned. More follow the noise of an embedding.
COMPONENTS = 20


def input_table(evalset: EvalSet) -> tuple[FloatArray, tuple[str, ...]]:
    """The inputs as a matrix of numbers, with a name for each column."""
    if evalset.features:
        named = {
            column.name: column.read(values)
            for name, values in evalset.features.items()
            for column in InputColumn.columns_of(name, values, MOST_LABELS)
        }
        return np.stack(list(named.values()), axis=1), tuple(named)
    if evalset.embedding is None:
        raise UnanswerableError("inputs are needed: features or an embedding")
    rows = evalset.embedding
    if rows.shape[1] <= MOST_COLUMNS:
        return rows, tuple(f"embedding {i}" for i in range(rows.shape[1]))
    directions, scale, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    coordinates = directions[:, :COMPONENTS] * scale[:COMPONENTS]
    return coordinates, tuple(f"principal coordinate {i + 1}" for i in range(coordinates.shape[1]))


def _independent_rows(view: View) -> View:
    """Independent rows, at most 5,000 unless all are asked for."""
    if view.evalset.weights is not None or view.evalset.cluster is not None:
        raise UnanswerableError(
            "measures of conditional coverage need independent, unweighted rows"
        )
    return view if "conditional" in view.slow else view.take_at_most(MOST_ROWS)


def _hits(view: View, coverage: float) -> BoolArray:
    view.get("coverage", coverage)  # which must be known
    return np.asarray(view.get("covered", coverage), dtype=np.bool_)


def _options(view: View, coverage: float) -> dict[str, Any]:
    """What every measure is told: what the rows claim."""
    claimed = view.get("claim", coverage)
    same = 0 < claimed[0] < 1 and (claimed == claimed[0]).all()
    return {
        "coverage": float(claimed[0]) if same else claimed,
        "confidence": view.confidence,
        "seed": view.seed,
    }


def _rows_by_inputs(view: View, coverage: float) -> tuple[BoolArray, FloatArray, dict[str, Any]]:
    """Which rows are covered, their inputs, and what else every measure of inputs is told."""
    independent = _independent_rows(view)
    x, names = input_table(independent.evalset)
    return _hits(independent, coverage), x, {"names": names, **_options(independent, coverage)}


def _slab(view: View, coverage: float) -> WorstSlab:
    hits, x, options = _rows_by_inputs(view, coverage)
    return worst_slab(hits, x, directions=DIRECTIONS, **options)


def _worst(view: View, coverage: float) -> WorstRegion:
    hits, x, options = _rows_by_inputs(view, coverage)
    return worst_region(hits, x, **options)


def _differ(view: View, coverage: float) -> RegionTest:
    hits, x, options = _rows_by_inputs(view, coverage)
    try:
        pit = _independent_rows(view).get("pit")
    except UnanswerableError:
        pit = None
    return regions_differ(hits, x, pit=pit, **options)


def _ert(view: View, coverage: float) -> ERT:
    hits, x, options = _rows_by_inputs(view, coverage)
    return ert(hits, x, classifier=view.given.get("classifier"), **options)


def _of_width(
    measure: Callable[..., DependenceTest],
) -> Callable[[View, float], DependenceTest]:
    def test_widths(view: View, coverage: float) -> DependenceTest:
        independent = _independent_rows(view)
        hits = _hits(independent, coverage)
        if independent.source(("covered",), coverage) == LabelSets.kind:
            widths = independent.get("set_sizes")
        else:
            widths = independent.get("upper", coverage) - independent.get("lower", coverage)
        return measure(hits, widths, **_options(independent, coverage))

    return test_widths


def _local(view: View, _: float) -> LocalPit:
    independent = _independent_rows(view)
    x, names = input_table(independent.evalset)
    headline = view.headline
    return local_pit(
        independent.get("pit"),
        x,
        names=names,
        coverage=0.9 if math.isnan(headline) else headline,
        confidence=view.confidence,
        seed=view.seed,
    )


def _gaps(view: View, coverage: float) -> list[CoverageGap]:
    independent = _independent_rows(view)
    if not independent.evalset.groups:
        raise UnanswerableError("the table has no groups")
    hits, options = _hits(independent, coverage), _options(independent, coverage)
    columns = independent.evalset.groups.items()
    return [coverage_gap(hits, groups, name=name, **options) for name, groups in columns]


def region_tables(evaluation: Evaluation) -> list[ResultTable]:
    """Where coverage fails: the region of each measure, and all parts that a tree tells apart."""
    view, coverage = evaluation.view, evaluation.coverages[-1]
    regions: list[tuple[str, Region]] = []
    for name in ("worst_region", "regions_differ", "worst_slab", "ert", "hsic", "local_pit"):
        answer = _answer(view, name, coverage)
        region = getattr(answer, "region", None)
        if region is None or (name == "local_pit" and not region.n):
            continue
        if name == "regions_differ" and regions and region.where == regions[0][1].where:
            continue
        if isinstance(answer, WorstSlab) and answer.slab is not None:
            inputs, _ = input_table(_independent_rows(view).evalset)
            region = replace(region, where=answer.slab.mostly(inputs))
        regions.append((name, region))
    regions.extend(
        (f"coverage_gap {gap.raw.details['column']}", gap.region)
        for gap in _answer(view, "coverage_gaps", coverage) or ()
        if gap.region is not None
    )
    model = view.evalset.model
    tables = [_region_table("conditional_regions", regions, coverage, model, _JUDGED)]
    excess = _answer(view, "ert", coverage)
    parts = [("ert", leaf) for leaf in excess.parts] if excess is not None else []
    tables.append(_region_table("conditional_parts", parts, coverage, model, _PARTS))
    return [table for table in tables if table is not None]


def _answer(view: View, name: str, coverage: float) -> Any:
    try:
        return view.get(name, coverage)
    except UnanswerableError:
        return None


_JUDGED = (
    "Where coverage is worst according to each measure. Regions are found on one half of the rows; "
    "coverage, interval and p-value are measured on the other. P-values of groups are "
    "Holm-adjusted."
)
_PARTS = (
    "A shallow tree on the probability of coverage, grown on one half of the rows. "
    "Coverage is measured on the other half."
)


def _region_table(
    name: str, regions: Sequence[tuple[str, Region]], nominal: float, model: str, notes: str
) -> ResultTable | None:
    if not regions:
        return None
    columns: dict[str, AnyArray] = {
        "measure": np.array([measure for measure, _ in regions], dtype=object),
        "where": np.array([region.where for _, region in regions], dtype=object),
    }
    for key in (
        "n",
        "share",
        "empirical_coverage",
        "lower",
        "upper",
        "p_value",
        "found",
        "expected",
    ):
        columns[key] = np.array([float(getattr(region, key)) for _, region in regions])
    columns["nominal"] = np.full(len(regions), nominal)
    labels = {
        "found": "coverage in the search half",
        "share": "share of rows",
        "expected": "expected coverage",
    }
    return ResultTable(name=name, columns=columns, labels=labels, model=model, notes=notes)


def _local_curve(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """The PIT in the worst part, as its distance from uniform, with the band of a right model."""
    local: LocalPit = evaluation.view.get("local_pit")
    if local.region is None or not local.region.n:
        return []
    where = local.region.where
    where_words = f"over {where}" if where == "all rows" else f"where {where}"
    band = simultaneous_band(local.region.n, local.levels, confidence=confidence)
    return [
        Curve(
            name="local_pit",
            x=local.levels,
            y=local.region_cdf - local.levels,
            lower=np.asarray(band.lower) - local.levels,
            upper=np.asarray(band.upper) - local.levels,
            reference=np.zeros(len(local.levels)),
            x_label="PIT",
            y_label="ECDF − uniform",
            band=f"{level(confidence)} simultaneous band of a perfect model",
            model=evaluation.evalset.model,
            notes=f"Least uniform {where_words}: predictive distributions {local.fault}.",
        )
    ]


_LOCAL = "Rows must be independent. At most 5,000 rows are used unless all are requested."
_ERT = (
    "It is a lower bound: effects of the inputs that the classifier cannot fit are missed. It is "
    "negative where the classifier is worse than the nominal coverage itself, so a perfect model "
    "is about 0 or below."
)
_entry = partial(
    Metric,
    question=Question.CONDITIONAL,
    direction=Direction.LOWER,
    beside="inputs",
    merges="rows",
    standard_normal=math.nan,
    notion=Notion.LOCAL,
    per_coverage=True,
    calibration=True,
    target=0.0,
)

_ENTRIES = (
    _entry(
        name="worst_region",
        title="Coverage in the worst region",
        synonyms=("worst region coverage",),
        meaning=(
            "Coverage where it is lowest, found on one half of the rows and measured on the other."
        ),
        formula="coverage of the part (two conditions) that the other half finds farthest below",
        source="trees on one half judged on the other",
        direction=Direction.TARGET,
        forms=(stated("worst_region"),),
        target="coverage",
        bounds=SHARE,
        key_number=11,
        beware=f"A different split of the rows may find a different region. {_LOCAL}",
    ),
    _entry(
        name="regions_differ",
        title="Do regions differ?",
        synonyms=("region differences",),
        meaning="P-value of the test that no region of the inputs differs from all rows.",
        formula="min over halves and signals of p in the part that the other half finds, adjusted",
        source="trees on one half judged on the other; claims shifted to the coverage of all rows",
        direction=Direction.NONE,
        units="p-value",
        forms=(stated("regions_differ"),),
        target=math.nan,
        bounds=SHARE,
        beware=(
            "A p-value is not an effect size: with many rows, a negligible difference is "
            f"significant. It also detects over-coverage. {_LOCAL}"
        ),
    ),
    _entry(
        name="worst_slab",
        title="Coverage in the worst slab",
        synonyms=("WSC", "worst slab coverage", "worst slice coverage"),
        meaning=(
            "Coverage in the worst slab, found on one half of the rows and measured on the other."
        ),
        formula="coverage of {a ≤ v·x ≤ b}, v in two inputs, where the other half covers least",
        source="Cauchois et al. 2021; found on one half, measured on the other",
        direction=Direction.TARGET,
        forms=(stated("worst_slab"),),
        target="coverage",
        bounds=SHARE,
        beware=(
            "Found and measured on the same rows, the slab of a perfect model looks bad; here "
            f"rows are split. {_LOCAL}"
        ),
    ),
    _entry(
        name="ert_squared",
        title="Excess risk of the target coverage, squared",
        synonyms=("ERT", "excess risk of the target", "L2-ERT"),
        meaning=(
            "Lower bound of the mean squared gap between coverage given x and nominal coverage."
        ),
        formula="mean (1−α−c)² − mean (h−c)², h(x) cross-fitted, c whether covered, 1−α as claimed",
        source="arXiv 2512.11779",
        forms=(stated("ert", "squared"),),
        beware=f"{_ERT} {_LOCAL}",
    ),
    _entry(
        name="ert_absolute",
        title="Excess risk of the target coverage, absolute",
        synonyms=("L1-ERT",),
        meaning=(
            "Lower bound of the mean absolute gap between coverage given x and nominal coverage."
        ),
        formula="mean sign(h−(1−α))·(c−(1−α)), h(x) cross-fitted",
        source="arXiv 2512.11779",
        forms=(stated("ert", "absolute"),),
        beware=f"{_ERT} {_LOCAL}",
    ),
    _entry(
        name="ert_log",
        title="Excess risk of the target coverage, logarithmic",
        synonyms=("KL-ERT",),
        meaning="Lower bound of the mean divergence of coverage given x, in nats.",
        formula="mean log loss of 1−α less that of h(x), cross-fitted",
        source="arXiv 2512.11779",
        units="nats",
        forms=(stated("ert", "log"),),
        beware=f"{_ERT} {_LOCAL}",
    ),
    _entry(
        name="conditional_validity_index",
        title="Conditional validity index (CVI)",
        meaning="Mean distance of the estimated coverage given x from nominal coverage.",
        formula="mean |h−(1−α)|, h(x) cross-fitted; the parts below and above 1−α sum to it",
        source="arXiv 2603.27189, by its abstract; the package insurance-conformal",
        forms=(stated("ert", "validity"),),
        target=math.nan,
        bounds=SHARE,
        beware=(
            "Estimates vary by chance, so a perfect model is above 0: compare it with its "
            "reference. The default trees smooth and so understate a sharp failure. Compare "
            "models only on the same rows. The absolute ERT is the same index corrected for "
            f"chance. {_LOCAL}"
        ),
    ),
    _entry(
        name="hsic",
        title="HSIC of width and coverage",
        synonyms=("Hilbert-Schmidt independence criterion",),
        meaning="Dependence of width and coverage; 0 where coverage does not depend on width.",
        formula="normalised Hilbert–Schmidt criterion; bandwidths are median distances",
        source="Feldman, Bates and Romano 2021",
        forms=(stated("hsic"),),
        bounds=SHARE,
        beware=f"It detects coverage that depends on width, not on other inputs. {_LOCAL}",
    ),
    _entry(
        name="width_correlation",
        title="Correlation of width and coverage",
        synonyms=("Pearson's correlation of width and coverage",),
        meaning="Above 0 where wider intervals cover more often; 0 is best.",
        formula="Pearson's r of width and whether covered",
        source="Feldman, Bates and Romano 2021",
        direction=Direction.TARGET,
        forms=(stated("width_correlation"),),
        bounds=(-1.0, 1.0),
        merges="sums",
        beware=f"It detects only a linear relation. {_LOCAL}",
    ),
    _entry(
        name="local_pit",
        title="Local miscalibration of the PIT",
        meaning="How much better the PIT given x is predicted than by the uniform distribution.",
        formula="mean excess risk of P(PIT ≤ u) = u against a cross-fitted P(PIT ≤ u | x)",
        source="Zhao et al. 2021",
        forms=(stated("local_pit"),),
        per_coverage=False,
        calibration=False,
        beware=f"It is a lower bound, as the ERT is, and may be negative. {_LOCAL}",
    ),
    _entry(
        name="coverage_gap",
        title="Coverage gap over groups",
        synonyms=("CovGap", "class coverage gap"),
        meaning="Mean distance of group coverage from its nominal coverage; above 0 by chance "
        "alone.",
        formula="mean over groups of |cov_g − (1−α)|, 1−α the nominal coverage of the rows",
        forms=(stated("coverage_gaps", "raw"),),
        notion=Notion.GROUP,
        bounds=SHARE,
        merges="sums",
        beware=(
            "Small groups deviate by chance. The debiased form corrects for that; this one does "
            "not."
        ),
    ),
    _entry(
        name="coverage_gap_debiased",
        title="Coverage gap over groups, debiased",
        synonyms=("debiased CovGap",),
        meaning="Mean squared distance of group coverage from its nominal coverage, less its "
        "binomial variance.",
        formula="mean over groups of [(cov_g − (1−α))² − α(1−α)/n_g]₊",
        forms=(stated("coverage_gaps", "debiased"),),
        notion=Notion.GROUP,
        bounds=SHARE,
        merges="sums",
        beware=(
            "Groups with less spread than chance count as 0, so a perfect model is slightly "
            "above 0."
        ),
    ),
)


# ---- what is concluded of coverage given the inputs ----------------------------------------------

_WELL = "no region differs"
# From there on z is below .67, and an interval as wide as effect / z tells nothing.
_MAX_P_OF_INTERVAL = 0.5


def _region(case: Case) -> Draft:
    record = case.get("regions_differ")
    options = record.options
    where = str(options["where"])
    effect, lower, upper = (
        float(options[name]) - float(options["expected"]) for name in ("value", "lower", "upper")
    )
    moved = MOVED.get(str(options["signal"]))
    if moved is not None:  # told by the PIT, which coverage alone may hide
        effect = moved * float(options["deviation"])
        reach = math.nan
        if record.p < _MAX_P_OF_INTERVAL:
            reach = abs(effect) * Z_95 / -float(special.ndtri(record.p / 2.0))
        lower, upper = effect - reach, effect + reach
    ease = f" {case.evalset.ease} "
    by_ease_alone = all(ease in f" {condition} " for condition in where.split(" and "))
    return Draft(
        effect=effect,
        lower=lower,
        upper=upper,
        p=record.p,
        where=where,
        n=float(options["rows"]),
        within={"ease": math.inf} if by_ease_alone else {},
        facts={"told": options, "worst": case.records.get("worst_region")},
    )


def _region_words(draft: Draft, finding: Finding) -> Words:
    options, worst = draft.facts["told"], draft.facts["worst"]
    signal, off = str(options["signal"]), float(options["deviation"])
    cover, expected = percent(float(options["value"])), percent(float(options["expected"]))
    if signal == "coverage":
        what, fault = f"coverage is {cover}", "coverage depends on the inputs"
        sentence = f"{what} ({expected} {FROM_ALL})"
        if draft.effect > 0 and isinstance(worst, Record) and worst.value < float(options["value"]):
            lowest = f"is {percent(worst.value)} where {worst.options['where']}"
            sentence = f"Coverage {lowest}, {cover} where {draft.where} ({expected} {FROM_ALL})"
            return Words(sentence, fault, _WELL, clause=f"coverage {lowest}")
    elif signal == "bias":  # as of normal y
        way = "lower" if draft.effect > 0 else "higher"
        what = f"predictions are {abs(shift_of(off)):.2f} {SDS} {way} relative to y"
        sentence, fault = f"{what} than overall", "bias depends on the inputs"
    else:
        size = small(scale_of(off), 2, trim=False)
        what = f"errors relative to the predicted spread are {size} × those overall"
        sentence, fault = what, "spread depends on the inputs"
    short = signal != "coverage" and float(options["value"]) < float(options["expected"])
    more = f"Coverage there is {cover}." if short and finding.state == "bad" else ""
    clause = f"{what} where {draft.where}"
    return Words(f"Where {draft.where}, {sentence}", fault, _WELL, more, clause=clause)


FINDINGS = (
    FindingQuestion(
        id="region",
        asked="Does coverage depend on the inputs?",
        label="Input regions",
        draft=_region,
        words=_region_words,
        measures=("regions_differ",),
        told_by=("worst_region",),
        name="coverage given inputs",
        cause="what depends on the inputs",
        needs="Needed for the inputs: a model that fits the rows better where {where}.",
        measured=False,  # its effect is of probabilities, its sentence of coverage
        healed="aimed",
    ),
)


TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        coverage_array("worst_region", _worst),
        coverage_array("regions_differ", _differ),
        coverage_array("worst_slab", _slab),
        coverage_array("ert", _ert),
        coverage_array("hsic", _of_width(hsic)),
        coverage_array("width_correlation", _of_width(width_correlation)),
        Array("local_pit", _local),
        coverage_array("coverage_gaps", _gaps),
    ),
    curves=(_local_curve,),
    tables=(region_tables,),
    findings=FINDINGS,
    label="Inputs",
    layouts={
        "local_pit": Layout(
            order=9,
            question="For which inputs is the PIT least uniform?",
            title="Local PIT, difference from uniform",
            reading=(
                "Each curve is the PIT in the region of the inputs where it departs most. Inside "
                "its shaded band it is consistent with calibration."
            ),
            x=Axis(title="PIT", domain=UNIT),
            y=Axis(title="ECDF − uniform"),
            reference="uniform",
            band_about="reference",
            band="simultaneous band",
        ),
    },
    titles={
        "conditional_regions": "Conditional regions",
        "conditional_parts": "Conditional parts",
    },
)
