"""From an evaluation set to records: every metric of the catalogue that its content permits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray, check_fraction
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.faults import attempt
from howsure.core.records import Record
from howsure.core.rng import child
from howsure.metrics.catalogue import catalogue
from howsure.metrics.evaluate.view import INTERVAL_KINDS, SLOW_ROWS, View
from howsure.metrics.metric import Form, Metric
from howsure.predictions import EvalSet, Intervals, LabelSets
from howsure.stats.binomial import clopper_pearson
from howsure.stats.bootstrap import bootstrap_means
from howsure.stats.estimate import Statistic, mean_statistic, standard_error, weighted_mean

_UNKNOWN = "the nominal coverage of the intervals is unknown"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One model's records, with the row scores behind them.

    Attributes
    ----------
    evalset : EvalSet
        What was evaluated.
    view : View
        Its named arrays.
    coverages : tuple of float
        The nominal coverages assessed; a NaN stands for an unknown one.
    records : tuple of Record
        One for each metric and coverage, answered or not.
    scores : mapping of (metric, coverage) to ndarray of shape (n,)
        The row scores of metrics that are means.
    """

    evalset: EvalSet
    view: View
    coverages: tuple[float, ...]
    records: tuple[Record, ...]
    scores: Mapping[tuple[str, float], FloatArray]

    def row_scores(self, metric: str, coverage: float) -> FloatArray | None:
        """The row scores of a metric at a coverage (NaN: an unknown one), if there are any."""
        for (name, at), scores in self.scores.items():
            if name == metric and (at == coverage or (math.isnan(at) and math.isnan(coverage))):
                return scores
        return None


def choose_coverages(evalset: EvalSet, wanted: Sequence[float] = ()) -> tuple[float, ...]:
    """The nominal coverages to assess.

    Those wanted; else those that intervals or label sets were given at; else 0.9, with 0.8 and
    0.5 beside it where 0.9 cannot be reached. NaN stands for given intervals of unknown coverage.

    Examples
    --------
    >>> from howsure.predictions import Distribution
    >>> choose_coverages(EvalSet.checked([0.0], Distribution.normal([0.0], [1.0])))
    (0.9,)
    """
    if len(wanted):
        return tuple(check_fraction(c, "coverage") for c in wanted)
    for belief in evalset.beliefs:
        if isinstance(belief, Intervals):
            return belief.coverages or (math.nan,)
        if isinstance(belief, LabelSets):
            return (belief.coverage,)
    held = any(belief.kind in INTERVAL_KINDS for belief in evalset.beliefs)
    out_of_reach = attempt(
        "nominal coverages",
        lambda: View(evalset).get("lower", 0.9) is None,
        lambda _: held,
    )
    return (0.5, 0.8, 0.9) if out_of_reach else (0.9,)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def evaluate(
    evalset: EvalSet,
    *,
    coverages: Sequence[float] = (),
    metrics: Iterable[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    slow: Iterable[str] = (),
) -> Evaluation:
    """Compute every metric that the content permits, each with its sampling error.

    Parameters
    ----------
    evalset : EvalSet
        What happened and what was believed.
    coverages : sequence of float
        Nominal coverages; see `choose_coverages`.
    metrics : iterable of str, optional
        Names from the catalogue; all if omitted.
    confidence : float
        Nominal confidence of the intervals about the numbers.
    seed : int
        Fixes the draws of randomised measures.
    slow : iterable of str
        Slow metrics to compute past 50,000 rows all the same.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        If a metric is unknown, or a coverage or confidence leaves (0, 1).

    Examples
    --------
    >>> from howsure.predictions import Intervals
    >>> held = EvalSet.checked([1.0, 5.0], Intervals([0.0, 0.0], [2.0, 2.0], coverage=0.9))
    >>> evaluate(held, metrics=["empirical_coverage"]).records[0].value
    0.5
    """
    check_fraction(confidence, "confidence")
    entries = catalogue()
    names = [n for n in entries if entries[n].forms] if metrics is None else list(metrics)
    for name in names:
        if name not in entries:
            raise InputError(f"metric must be in the catalogue, got {name!r}")
    wanted = choose_coverages(evalset, coverages)
    asked = frozenset(slow)
    view = View(evalset, seed=seed, slow=asked)
    records: list[Record] = []
    scores: dict[tuple[str, float], FloatArray] = {}
    for name in names:
        metric = entries[name]
        for coverage in wanted if metric.per_coverage else (math.nan,):
            if metric.slow and evalset.n > SLOW_ROWS and name not in asked:
                reason = f"slow past {SLOW_ROWS:,} rows: ask for it with --with {name}"
                records.append(_unanswered(evalset, metric, coverage, reason)[0])
                continue
            record, rows = attempt(
                f"{name} of {evalset.model}",
                partial(_measure, view, metric, coverage, confidence),
                partial(_unanswered, evalset, metric, coverage),
            )
            records.append(record)
            if rows is not None:
                scores[(name, coverage)] = rows
    return Evaluation(evalset, view, wanted, tuple(records), scores)


def _measure(
    view: View, metric: Metric, coverage: float, confidence: float
) -> tuple[Record, FloatArray | None]:
    """One metric at one coverage: its record, and its row scores where it is a mean."""
    ranked = _RANKED.intersection(*(form.needs for form in metric.forms))
    if not ranked:
        return _answered(view, metric, coverage, confidence)
    known: View = view.get("with_point")
    record, rows = _answered(known, metric, coverage, confidence)
    left, n = view.evalset.n - known.evalset.n, view.evalset.n
    if left:
        told = f"on {n - left:,} of {n:,} rows, those whose interval has a midpoint"
        record = replace(record, reason="; ".join(filter(None, (record.reason, told))))
    return record, rows


_RANKED = frozenset({"uncertainty", "acceptance"})
"""Arrays that set rows in order: a few rows without a point must not take the others along."""


def _answered(
    view: View, metric: Metric, coverage: float, confidence: float
) -> tuple[Record, FloatArray | None]:
    evalset = view.evalset
    if metric.calibration and math.isnan(coverage):
        raise UnanswerableError(_UNKNOWN)
    reasons: list[str] = []
    for form in metric.forms:
        try:
            arrays = [view.get(name, coverage) for name in form.needs]
            keywords = {key: view.get(name, coverage) for key, name in form.keywords.items()}
        except UnanswerableError as error:
            reasons.append(str(error))
            continue
        source = view.source([*form.needs, "ends"] if metric.per_coverage else form.needs, coverage)
        found = _compute(evalset, metric, form, arrays, keywords, coverage, confidence, source)
        return replace(found[0], null=_expected(view, metric, coverage, found[0].null)), found[1]
    raise UnanswerableError("; ".join(dict.fromkeys(reasons)))


def _unanswered(
    evalset: EvalSet, metric: Metric, coverage: float, reason: str
) -> tuple[Record, None]:
    return _record(metric, coverage, evalset, Statistic(math.nan), reason), None


def _expected(view: View, metric: Metric, coverage: float, known: float) -> float:
    """The value expected of a perfect model, where the belief itself says so."""
    if not metric.expected:
        return known
    try:
        return weighted_mean(view.get(metric.expected, coverage), view.evalset.multiplicities)
    except UnanswerableError:
        return known


def _compute(
    evalset: EvalSet,
    metric: Metric,
    form: Form,
    arrays: list[Any],
    keywords: Mapping[str, Any],
    coverage: float,
    confidence: float,
    source: str,
) -> tuple[Record, FloatArray | None]:
    values = evalset.multiplicities
    rows: FloatArray | None = None
    if form.reduce == "statistic":
        given = {"weights": values} if form.weighted else {}
        found: Statistic = form.function(*arrays, **keywords, **form.options, **given)
    else:
        rows = np.asarray(form.function(*arrays, **keywords, **form.options))
        found = mean_statistic(rows, values)
    reason = found.reason or form.note
    if not math.isfinite(found.value) and not reason:
        reason = "the numbers are too large or too small to be added up"
    record = _record(metric, coverage, evalset, found, reason)
    options = {**{name: str(value) for name, value in form.options.items()}, **found.details}
    record = replace(record, source=source, options=options)
    record = _with_error(
        record, found, evalset, confidence, metric.bounds, share=form.reduce == "share"
    )
    return record, rows


def _with_error(
    record: Record,
    found: Statistic,
    evalset: EvalSet,
    confidence: float,
    bounds: tuple[float, float],
    *,
    share: bool,
) -> Record:
    """Add the standard error and the confidence interval to a record."""
    from scipy import special

    record = replace(record, confidence=confidence)
    if found.influence is None or not math.isfinite(found.value):
        return record
    if evalset.cluster is not None:
        return _by_clusters(record, found, evalset, bounds)
    error = standard_error(found.influence, evalset.weights)
    if share and (evalset.weights is None or evalset.weights.kind == "frequency"):
        ends = clopper_pearson(round(found.value * record.n), record.n, confidence=confidence)
        return replace(record, standard_error=error, lower=float(ends[0]), upper=float(ends[1]))
    if math.isnan(error):
        return record
    reach = float(special.stdtrit(max(record.n - 1, 1.0), 0.5 + confidence / 2.0)) * error
    low, high = max(found.value - reach, bounds[0]), min(found.value + reach, bounds[1])
    reason = record.reason
    if evalset.weights is not None and evalset.weights.kind == "importance":
        reason = "; ".join(note for note in (reason, "approximate: importance weights") if note)
    return replace(record, standard_error=error, lower=low, upper=high, reason=reason)


def _by_clusters(
    record: Record, found: Statistic, evalset: EvalSet, bounds: tuple[float, float]
) -> Record:
    """Standard error and percentile interval from resampling whole clusters.

    A mean is resampled as it is; any other statistic through its influence values, to first order.
    """
    assert evalset.cluster is not None
    assert found.influence is not None
    drawn = bootstrap_means(
        found.value + found.influence,
        child(0, "cluster bootstrap", record.metric),
        weights=evalset.weights,
        cluster=evalset.cluster.codes,
    )
    error = float(drawn.standard_error()[0])
    ends = drawn.interval(record.confidence)
    low, high = (float(np.clip(end[0], *bounds)) for end in ends)
    notes = (record.reason, f"cluster bootstrap of {len(evalset.cluster.labels):,} clusters")
    reason = "; ".join(note for note in (*notes, drawn.note) if note)
    return replace(record, standard_error=error, lower=low, upper=high, reason=reason)


def _record(
    metric: Metric, coverage: float, evalset: EvalSet, found: Statistic, reason: str
) -> Record:
    weights = evalset.weights
    return Record(
        metric=metric.name,
        value=found.value,
        n=float(evalset.n) if weights is None else weights.effective_n,
        direction=metric.direction,
        units=metric.units,
        notion=metric.notion,
        target=metric.target_at(coverage),
        null=found.null,
        coverage=coverage,
        model=evalset.model,
        reason=reason,
    )
