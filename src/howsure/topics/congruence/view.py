"""Conditional congruence of an evaluation set: is the prediction right at every input?

Needs inputs (an embedding) beside the predictions. One mode serves all models of a comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from howsure.core.arrays import AnyArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError, attempt
from howsure.core.formats import number
from howsure.core.progress import part_of, report_progress
from howsure.core.records import (
    UNIT,
    Axis,
    Companion,
    Curve,
    Direction,
    Layout,
    Notion,
    Record,
    ResultTable,
    TableLayout,
)
from howsure.core.rng import child, row_keys
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Words, small
from howsure.engine.measure import record_of
from howsure.engine.metric import (
    POSITIVE,
    Array,
    Form,
    Metric,
    Question,
    Topic,
    itself,
)
from howsure.predictions import EvalSet, Prediction, Samples
from howsure.stats.bootstrap import subsample
from howsure.stats.estimate import Z_95, Estimate
from howsure.stats.kernels import normalize_rows
from howsure.topics.congruence.examples import (
    extremes,
    extremes_table,
    map_table,
    rejection_curves,
    tree_table,
)
from howsure.topics.congruence.laws import (
    DRAWS,
    embeds_exactly,
    law_of,
    predictive_of,
)
from howsure.topics.congruence.null import NullReference, Outcomes, mean_cce, null_reference
from howsure.topics.congruence.predictive import Mode
from howsure.topics.congruence.reference import CongruenceReference
from howsure.topics.congruence.results import lengths
from howsure.topics.congruence.skce import skce_of_part
from howsure.topics.congruence_options import CongruenceOptions

if TYPE_CHECKING:
    from howsure.engine.view import View

__all__ = [
    "CongruenceOptions",
    "CongruenceReport",
    "Mode",
    "assess_congruence",
    "congruence_mode",
    "fitted_reference",
    "predictive_of",
    "reference_places",
    "reference_rows",
    "right_model",
    "unanswered",
]

# Time grows with n³: 1,000 rows take a second of two cores, 3,000 some eight.
MOST_ROWS = 2_000
# p = .005 at the least; more are drawn while a finding may still be significant.
REPLICATES = 199
# As many as any test of the verdict: p = .005 is known to .0007.
MAX_REPLICATES = 9_999
# p = .01 at the least, below the level of a flag (.03), for each new row.
REPLICATES_OF_MONITOR = 99
# Worlds with a shifted y: a power of .9 is known to .04. By hand; not tuned.
DRAWS_OF_SHIFTED = 50
# As in the reliability study of the method's paper.
BOOTSTRAPS = 10
# Chosen by hand; not tuned. Each label is a column of the inputs.
MAX_GROUP_LABELS = 20


_PLAIN = CongruenceOptions()


@frozen
class CongruenceReport:
    """What conditional congruence tells of one model: its record, and where it is wrong."""

    record: Record  # the mean error beside that of a right model
    tables: tuple[ResultTable, ...] = ()  # `cce_map`, `cce_rows` and `cce_tree`
    curves: tuple[Curve, ...] = ()  # rejection by the error
    # shape (k,): where the rows of `cce_rows` stand in the evaluation set
    places: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def congruence_mode(
    evalsets: Sequence[EvalSet],
    draws: int | None = None,
    *,
    seed: int = 0,
    everything: bool = False,
) -> Mode:
    """The mode that serves all models: exact where every prediction that is used embeds exactly."""
    # of a set that has no answer all rows
    parts = (_take(evalset, _places(evalset, seed, everything)) for evalset in evalsets)
    exact = all(map(embeds_exactly, parts))
    return "exact" if exact and draws is None else "samples"


def assess_congruence(
    evalset: EvalSet,
    mode: Mode,
    *,
    seed: int = 0,
    everything: bool = False,
    options: CongruenceOptions = _PLAIN,
    beside: Mapping[str, AnyArray] | None = None,
) -> CongruenceReport:
    """Mean CCE beside that of a perfectly congruent model, and where the model is wrong."""
    with part_of(f"congruence of {evalset.model}"):
        return attempt(
            f"mean_cce of {evalset.model}",
            lambda: _assessed(evalset, mode, seed, everything, options, beside or {}),
            lambda reason: unanswered(evalset, reason),
        )


def unanswered(evalset: EvalSet, reason: str) -> CongruenceReport:
    """The report of a set without an answer."""
    return CongruenceReport(_record(evalset, Estimate(math.nan, reason=reason)))


def _assessed(
    evalset: EvalSet,
    mode: Mode,
    seed: int,
    everything: bool,
    options: CongruenceOptions,
    further: Mapping[str, AnyArray],
) -> CongruenceReport:
    rows = reference_places(evalset, seed=seed, everything=everything)
    sampled = _take(evalset, rows)
    report_progress("reference", 0, 4)
    reference = fitted_reference(sampled, mode, seed=seed, options=options)
    reference.solution()
    report_progress("a perfect model's errors", 1, 4)
    null = right_model(
        reference, sampled, mode, seed=seed, replicates=REPLICATES, most=MAX_REPLICATES
    )
    report_progress("bootstrap", 2, 4)
    spread = mean_cce(reference, bootstraps=BOOTSTRAPS, seed=seed)
    score = reference.score()
    details: dict[str, str | float] = {**score.options, "draws": float(score.draws)}
    details["null_draws"] = float(len(null.replicates))
    if null.stopped:
        details["null_stopped"] = "further draws would take more than 2 s"
    estimate = Estimate(
        null.observed,
        null=null.expected,
        details=details,
        error=spread.data_sd,
        null_lower=null.range[0],
        null_upper=null.range[1],
        p=null.p_value,
        n=sampled.n,
    )
    record = _record(evalset, estimate)
    report_progress(f"{options.layout} map, rows, tree", 3, 4)
    places = extremes(score.values)
    further_of_part = {name: value[rows] for name, value in further.items()}
    makers: dict[str, Callable[[], ResultTable | None]] = {
        "map": lambda: map_table(
            np.asarray(reference.inputs.rows, dtype=np.float64),
            score.values,
            null,
            sampled.row_names(),
            second=("y", sampled.y),
            features=sampled.features,
            layout=options.layout,
            model=sampled.model,
            seed=seed,
        ),
        "extreme rows": lambda: extremes_table(sampled, score.values, places, further_of_part),
        "tree": lambda: _explained(
            sampled, score.values, mode, seed, options, null.p_value <= 0.05
        ),
    }
    answers = [
        attempt(f"{name} of congruence of {evalset.model}", maker, lambda _: None)
        for name, maker in makers.items()
    ]
    report_progress("done", 4, 4)
    curves: tuple[Curve, ...] = attempt(
        f"rejection by congruence of {evalset.model}",
        partial(rejection_curves, sampled, score.values),
        lambda _: (),
    )
    tables = tuple(table for table in answers if table is not None)
    return CongruenceReport(record, tables, curves, rows[places])


def reference_rows(evalset: EvalSet, *, seed: int = 0, everything: bool = False) -> EvalSet:
    """The rows that a reference is fitted on: all, or 2,000 chosen by their content."""
    return _take(evalset, reference_places(evalset, seed=seed, everything=everything))


def reference_places(evalset: EvalSet, *, seed: int = 0, everything: bool = False) -> IntArray:
    """Where the rows of `reference_rows` stand, in rising order; errors as there."""
    if evalset.embedding is None:
        raise UnanswerableError("congruence needs inputs: features or an embedding")
    if evalset.weights is not None or evalset.cluster is not None:
        raise UnanswerableError("congruence needs independent, unweighted rows")
    law_of(evalset)
    return _places(evalset, seed, everything)


def support_rows(evalset: EvalSet, *, seed: int = 0, everything: bool = False) -> EvalSet:
    """The same of a reference whose predictions need state no distribution."""
    if evalset.weights is not None or evalset.cluster is not None:
        raise UnanswerableError("a reference needs independent, unweighted rows")
    return _take(evalset, _places(evalset, seed, everything))


def _places(evalset: EvalSet, seed: int, everything: bool) -> IntArray:
    if everything or evalset.n <= MOST_ROWS or evalset.embedding is None:
        return np.arange(evalset.n)
    keys = row_keys(evalset.y, evalset.embedding)
    return np.sort(subsample(keys, MOST_ROWS, seed=seed, name="congruence"))


def _take(evalset: EvalSet, rows: IntArray) -> EvalSet:
    return evalset if len(rows) == evalset.n else evalset.take(rows)


def fitted_reference(
    evalset: EvalSet,
    mode: Mode,
    *,
    seed: int = 0,
    options: CongruenceOptions = _PLAIN,
) -> CongruenceReference:
    """Fit a reference on labelled rows; it scores any inputs without labels."""
    assert evalset.embedding is not None
    predictive = predictive_of(evalset, mode, seed=seed, draws=options.draws or DRAWS)
    return CongruenceReference(
        evalset.embedding,
        evalset.y,
        predictive,
        kernel=options.kernel_for(evalset.embedding.shape[1]),
        bandwidth=options.bandwidth,
        regularization=options.regularization,
    )


def right_model(
    reference: CongruenceReference,
    evalset: EvalSet,
    mode: Mode,
    *,
    grid: FloatArray | None = None,
    seed: int = 0,
    replicates: int = REPLICATES_OF_MONITOR,
    most: int | None = None,
    near: Any = None,
) -> NullReference:
    """What the errors would be if every y were drawn from its prediction."""
    law = law_of(evalset)
    outcomes: Outcomes | None = None
    if mode == "samples":
        outcomes = "exchange" if isinstance(law, Samples) else _drawn(law, evalset.model, seed)
    null = null_reference(
        reference, grid, outcomes=outcomes, replicates=replicates, most=most, seed=seed, near=near
    )
    if null.near is None:
        return null
    return replace(null, near=replace(null.near, shifted=_shifted(reference, law, near, seed)))


def _shifted(reference: CongruenceReference, law: Prediction, near: Any, seed: int) -> FloatArray:
    """Mean errors near points where y lies half a spread above what the law says, world by world.

    Half the distance from the median to the 84th percentile is half an sd of a normal law, and
    laws without an sd have it too.
    """
    drawn = law.sample(child(seed, "congruence shifted"), DRAWS_OF_SHIFTED)
    low, high = np.quantile(drawn, [0.16, 0.84], axis=1)
    moved = drawn + 0.25 * (high - low)[:, None]
    worlds = (reference.outputs.difference(world[:, None])[0] for world in moved.T)
    return np.array([lengths(near @ world).mean() for world in worlds])


def _drawn(law: Prediction, model: str, seed: int) -> Callable[[np.random.Generator], FloatArray]:
    """Outcomes one world at a time, drawn a hundred worlds at once."""

    def worlds() -> Iterator[FloatArray]:
        for block in count():
            yield from law.sample(child(seed, "congruence null", model, block), 100).T

    source = worlds()
    return lambda _: next(source)


def _record(evalset: EvalSet, estimate: Estimate) -> Record:
    return record_of(_ENTRIES[0], estimate, evalset, source="embedding")


def _explained(
    evalset: EvalSet,
    values: FloatArray,
    mode: Mode,
    seed: int,
    options: CongruenceOptions,
    proven: bool,
) -> ResultTable | None:
    """The tree of errors. Groups that are no inputs count as inputs here.

    An error given the inputs alone is an average over groups, so that a group in which the model
    is wrong would stay unseen wherever its inputs are those of the others.
    """
    new = {name: group for name, group in evalset.groups.items() if name not in evalset.features}
    if not new or evalset.n < 100:
        return tree_table(evalset, values, seed, proven)
    assert evalset.embedding is not None
    kernel = options.kernel_for(evalset.embedding.shape[1])
    inputs = _with_groups(evalset.embedding, [group.values() for group in new.values()], kernel)
    options = replace(options, kernel=kernel, bandwidth=None)
    wider = replace(evalset, embedding=inputs)
    reference = fitted_reference(wider, mode, seed=seed, options=options)
    notes = f"CCE given the inputs and {', '.join(new)}."
    with part_of("groups"):
        errors = reference.score().values
    return tree_table(evalset, errors, seed, proven, notes)


def _with_groups(embedding: FloatArray, groups: Sequence[AnyArray], kernel: str) -> FloatArray:
    """Inputs beside indicators of the common labels of groups, both of like weight."""
    unit = kernel == "polynomial" and embedding.shape[1] > 1
    rows = np.asarray(normalize_rows(embedding, "embedding")) if unit else embedding
    parts = [rows]
    for values in groups:
        texts = values.astype(str)
        labels, counts = np.unique(texts, return_counts=True)
        common = labels[np.argsort(-counts, kind="stable")][:MAX_GROUP_LABELS]
        marks = (texts[:, None] == common).astype(np.float64)
        if unit:
            parts.append(marks / math.sqrt(len(groups)))
        elif (spread := float(marks.var(axis=0).sum())) > 0:
            parts.append(marks * math.sqrt(float(rows.var(axis=0).mean()) / spread))
    return np.hstack(parts)


def _skce(view: View, _: float) -> Estimate:
    evalset = view.evalset
    try:
        law = law_of(evalset)
    except UnanswerableError:
        raise UnanswerableError("SKCE needs a predictive distribution or samples") from None
    weights = evalset.weights
    if evalset.units is not None or (weights is not None and weights.kind != "frequency"):
        raise UnanswerableError("SKCE needs independent rows without importance weights")
    view.note_source("skce", law.kind)
    return skce_of_part(
        evalset.y,
        law,
        None if weights is None else weights.values,
        everything="skce" in view.slow,
        confidence=view.confidence,
        seed=view.seed,
    )


_ENTRIES = (
    Metric(
        name="mean_cce",
        title="Mean conditional congruence error (CCE)",
        synonyms=("MCCE", "conditional congruence error", "congruence"),
        question=Question.CONGRUENCE,
        meaning="Distance of the predictive from the true distribution, averaged over the inputs.",
        formula="mean over x of ‖Σ_i α_i(x) (φ(y_i) − μ_i)‖, α(x) = (K + nλI)⁻¹ k(x)",
        source="Young et al. 2025",
        direction=Direction.LOWER,
        forms=(),
        merges="rows",
        beside="inputs",
        standard_normal=math.nan,
        notion=Notion.POINTWISE,
        bounds=POSITIVE,
        beware=(
            "A value has no meaning without its reference: it depends on kernels, on λ and on the "
            "number of rows. It is slow: above 50,000 rows it must be requested by name."
        ),
    ),
    Metric(
        name="skce",
        title="Squared kernel calibration error (SKCE)",
        synonyms=("kernel calibration error", "kernel calibration error of distributions"),
        question=Question.CALIBRATION,
        meaning=(
            "Distance of y from its predictive distribution, among rows with similar predictions; "
            "unbiased."
        ),
        formula=(
            "mean over pairs of e^(−W₂(P,P')/ℓ)·[κ(y,y') − E κ(Z,y') − E κ(y,Z') + E κ(Z,Z')], "
            "Z ~ P, Z' ~ P'"
        ),
        source="Widmann, Lindsten and Zachariah 2021 (arXiv 2210.13355)",
        direction=Direction.TARGET,
        forms=(Form(needs=("skce",), function=itself, reduce="statistic", weighted=False),),
        merges="rows",
        slow=True,
        standard_normal=0.0,
        notion=Notion.LOCAL,
        target=0.0,
        beware=(
            "Its size means little: use its p-value. A perfect model is often below 0. It detects "
            "faults that depend on the prediction, not on other inputs. Above 500 rows (100 for "
            "counts) a subset is used unless it is requested by name; then rows are paired within "
            "blocks of 125."
        ),
    ),
)


# ---- what is concluded of conditional congruence -------------------------------------------------


def _congruence(case: Case) -> Draft:
    record = case.get("mean_cce")
    if not record.null > 0:
        raise UnanswerableError("no correctly specified model could be simulated to compare with")
    half = Z_95 * record.standard_error
    return Draft(
        effect=record.value / record.null - 1.0,
        lower=(record.value - half) / record.null - 1.0,
        upper=(record.value + half) / record.null - 1.0,
        p=record.p,
        n=record.n,
        facts={"record": record},
    )


def _congruence_words(draft: Draft, _: Finding) -> Words:
    record: Record = draft.facts["record"]
    sentence = (
        f"Mean CCE is {number(record.value, 3)}; "
        f"a correctly specified model has {number(record.null, 3)}"
    )
    ratio = small(record.value / record.null, 1)
    clause = f"mean CCE is {ratio} times that of a correctly specified model"
    return Words(sentence, "at some inputs the predictive distribution is wrong", clause=clause)


FINDINGS = (
    FindingQuestion(
        id="congruence",
        asked="Is the predictive distribution right for all inputs?",
        label="Congruence",
        unit="ratio − 1",
        draft=_congruence,
        words=_congruence_words,
        tolerance=0.02,
        margin=math.nan,
        measures=("mean_cce",),
        healed="none",
        reported=True,
        times="a correct model's",
    ),
)


TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(Array("skce", _skce),),
    findings=FINDINGS,
    label="Inputs",
    layouts={
        "rejection": Layout(
            order=10,
            question="Does rejecting rows with a high CCE lower the error?",
            title="Rejection by CCE",
            section="Rejection",
            reading=(
                "Rows with the highest CCE are rejected first. A curve below random order means "
                "that rows with larger errors are rejected."
            ),
            x=Axis(title="Share of rows rejected", kind="percent", domain=UNIT),
            y=Axis(title="Mean |error| of the rows kept", zero=True),
            data="highest CCE first",
            reference="random order",
            companions={"rejection_oracle": Companion(words="oracle order")},
            fits_curve=True,
            read_at=0.5,
        ),
        "rejection_nll": Layout(
            order=11,
            question="Does rejecting rows with a high CCE improve the likelihood?",
            title="Rejection by CCE, likelihood",
            section="Rejection",
            reading=(
                "Rows with the highest CCE are rejected first. A curve below random order means "
                "that the least likely rows are rejected."
            ),
            x=Axis(title="Share of rows rejected", kind="percent", domain=UNIT),
            y=Axis(title="Mean NLL of the rows kept"),
            data="highest CCE first",
            reference="random order",
            companions={"rejection_nll_oracle": Companion(words="oracle order")},
            read_at=0.5,
        ),
    },
    titles={
        "cce_tree": TableLayout(
            title="Which inputs go with the error", listed=False, figure="leaves"
        ),
        "cce_map": TableLayout(
            title="Congruence error of each row",
            listed=False,
            ranks=lambda table: -table.columns["cce"],
            figure="map",
        ),
        "cce_rows": TableLayout(
            title="Rows of the highest and the lowest CCE", columns={"cce": "CCE"}
        ),
        "cce_images": TableLayout(title="Images of the highest and the lowest CCE", listed=False),
    },
    reports="howsure.report.congruence:reports",
)
