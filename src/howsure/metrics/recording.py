"""From an estimate to a record: the one place where errors, bounds and reasons are put together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import special

from howsure.core.records import Record
from howsure.core.rng import child
from howsure.metrics.metric import Metric
from howsure.predictions import EvalSet
from howsure.stats.binomial import clopper_pearson
from howsure.stats.bootstrap import bootstrap_means
from howsure.stats.estimate import Estimate, standard_error


def record_of(
    metric: Metric,
    found: Estimate,
    evalset: EvalSet,
    *,
    coverage: float = math.nan,
    confidence: float = 0.95,
    share: bool = False,
    source: str = "",
) -> Record:
    """The record of an estimate."""
    weights = evalset.weights
    rows = float(evalset.n) if weights is None else weights.effective_n
    reason = found.reason
    if not math.isfinite(found.value) and not reason:
        reason = "the numbers are too large or too small to be added up"
    if found.n < evalset.n:
        part = f"on {found.n:,.0f} of {evalset.n:,} rows"
        reason = "; ".join(filter(None, (reason, part)))
    record = Record(
        metric=metric.name,
        value=found.value,
        standard_error=found.error,
        lower=found.lower,
        upper=found.upper,
        confidence=confidence,
        n=rows if math.isnan(found.n) else found.n,
        direction=metric.direction,
        units=metric.units,
        notion=metric.notion,
        target=metric.target_at(coverage),
        null=found.null,
        null_lower=found.null_lower,
        null_upper=found.null_upper,
        p=found.p,
        coverage=coverage,
        model=evalset.model,
        source=source,
        reason=reason,
        options=dict(found.details),
    )
    if not math.isfinite(found.value):
        return record
    if found.influence is not None:
        return _from_influence(record, found, found.influence, evalset, metric.bounds, share=share)
    return record


def _from_influence(
    record: Record,
    found: Estimate,
    influence: np.ndarray,
    evalset: EvalSet,
    bounds: tuple[float, float],
    *,
    share: bool,
) -> Record:
    """Standard error and interval of rows that are independent, weighted or in clusters."""
    weights = evalset.weights
    if evalset.cluster is not None:
        return _by_clusters(record, found, influence, evalset, bounds)
    error = standard_error(influence, weights)
    if share and (weights is None or weights.kind == "frequency"):
        ends = clopper_pearson(
            round(found.value * record.n), record.n, confidence=record.confidence
        )
        return replace(record, standard_error=error, lower=float(ends[0]), upper=float(ends[1]))
    if math.isnan(error):
        return record
    if weights is not None and weights.kind == "importance":
        reason = "; ".join(filter(None, (record.reason, "approximate: importance weights")))
        record = replace(record, reason=reason)
    tail = 0.5 + record.confidence / 2.0
    reach = float(special.stdtrit(max(record.n - 1, 1.0), tail)) * error
    return _between(replace(record, standard_error=error), reach, bounds)


def _between(record: Record, reach: float, bounds: tuple[float, float]) -> Record:
    low, high = record.value - reach, record.value + reach
    return replace(record, lower=max(low, bounds[0]), upper=min(high, bounds[1]))


def _by_clusters(
    record: Record,
    found: Estimate,
    influence: np.ndarray,
    evalset: EvalSet,
    bounds: tuple[float, float],
) -> Record:
    """Standard error and percentile interval from resampling whole clusters.

    A mean is resampled as it is; any other estimate through its influence values, to first order.
    """
    assert evalset.cluster is not None
    drawn = bootstrap_means(
        found.value + influence,
        child(0, "cluster bootstrap", record.metric),
        weights=evalset.weights,
        cluster=evalset.cluster.codes,
    )
    low, high = (float(np.clip(end[0], *bounds)) for end in drawn.interval(record.confidence))
    notes = (record.reason, f"cluster bootstrap of {len(evalset.cluster.labels):,} clusters")
    reason = "; ".join(filter(None, (*notes, drawn.note)))
    error = float(drawn.standard_error()[0])
    return replace(record, standard_error=error, lower=low, upper=high, reason=reason)
