"""From an estimate to a record: the one place where errors, bounds and reasons are put together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from howsure.core.arrays import IntArray
from howsure.core.formats import roughly
from howsure.core.records import Record
from howsure.core.times import Chronology
from howsure.engine.metric import Metric
from howsure.predictions import EvalSet
from howsure.stats.binomial import clopper_pearson
from howsure.stats.estimate import Estimate, counts_as, heavy, share_ends, skewed_ends, spread_of
from howsure.stats.memory import FEWEST


def record_of(
    metric: Metric,
    estimate: Estimate,
    evalset: EvalSet,
    *,
    coverage: float = math.nan,
    confidence: float = 0.95,
    share: bool = False,
    source: str = "",
    tail: str | None = None,
    bundles: IntArray | None = None,
) -> Record:
    """The record of an estimate.

    Where its rows stand for others, `tail` says of a mean of squared errors why these are too
    heavy-tailed (empty: they are not), and `bundles` how rows are added up to tell the error.
    """
    weights = evalset.weights
    rows = float(evalset.n) if weights is None else weights.effective_n
    reason = estimate.reason
    if not math.isfinite(estimate.value) and not reason:
        reason = "the numbers are too large or too small to be added up"
    if estimate.n < evalset.n:
        part = f"on {estimate.n:,.0f} of {evalset.n:,} rows"
        reason = "; ".join(filter(None, (reason, part)))
    record = Record(
        metric=metric.name,
        value=estimate.value,
        standard_error=estimate.error,
        lower=estimate.lower,
        upper=estimate.upper,
        confidence=confidence,
        n=rows if math.isnan(estimate.n) else estimate.n,
        direction=metric.direction,
        units=metric.units,
        notion=metric.notion,
        target=metric.target_at(coverage),
        null=estimate.null,
        null_lower=estimate.null_lower,
        null_upper=estimate.null_upper,
        p=estimate.p,
        coverage=coverage,
        model=evalset.model,
        source=source,
        reason=reason,
        options=dict(estimate.details),
    )
    if math.isfinite(estimate.value) and estimate.influence is not None:
        if estimate.squares is not None:
            tail = "" if estimate.cancels else heavy(estimate.squares, evalset.multiplicities)
        record = _from_influence(
            record, estimate, estimate.influence, evalset, metric.bounds, share, tail, bundles
        )
    return of_its_rows(record, evalset)


def of_its_rows(record: Record, evalset: EvalSet) -> Record:
    """A record with what its number was computed of: all rows, or a sample that adds an error."""
    if evalset.share == 1.0 or math.isnan(record.value):
        return record
    added = record.standard_error * math.sqrt(1.0 - evalset.share)
    return replace(record, exact="sample", added_error=added)


def _from_influence(
    record: Record,
    estimate: Estimate,
    influence: np.ndarray,
    evalset: EvalSet,
    bounds: tuple[float, float],
    share: bool,
    tail: str | None,
    bundles: IntArray | None,
) -> Record:
    """Standard error and interval of rows that are independent, weighted or in clusters."""
    weights, units = evalset.weights, evalset.units
    if isinstance(units, Chronology) and share:
        units = units.hiding(units.size if record.metric == "empirical_coverage" else units.side)
    cluster = bundles if units is None else units
    spread = spread_of(influence, weights, cluster)
    record = replace(record, standard_error=float(spread.error[0]))
    if bundles is not None:  # they tell the error; the rows count all the same
        spread = replace(spread, units=np.array([record.n]))
        count = int(bundles.max()) + 1
        record = _because(record, f"its error is that of {count:,} bundles of rows")
    if weights is not None and weights.kind == "importance":
        record = _because(record, "approximate: importance weights")
    if isinstance(units, Chronology):
        like = counts_as(influence, weights, spread, record.n)
        told = f"{record.n:,.0f} rows count as about {roughly(like)}"
        if math.isnan(record.standard_error):
            told = f"no interval: rows count as fewer than {FEWEST:g}"
        record = _because(record, told)
    elif evalset.cluster is not None:
        count = len(evalset.cluster.labels)
        told = f"{count:,} clusters" if count > 1 else "no interval: rows are one cluster"
        record = _because(record, told)
    if tail:
        return _because(record, tail)
    value, n = np.array([record.value]), np.array([record.n])
    if share and cluster is None and (weights is None or weights.kind == "frequency"):
        ends = clopper_pearson(np.round(value * n), n, confidence=record.confidence)
    elif share:
        ends = share_ends(value, spread, n, record.confidence)
    else:
        ends = skewed_ends(value, spread, record.confidence, squares=tail is not None)
    low, high = (float(end[0]) for end in ends)
    if estimate.noise is not None:  # in clusters noise grows as the standard error does
        plain = spread_of(influence, weights).error
        growth = max(1.0, float(spread.error[0] / plain[0])) if cluster is not None else 1.0
        most = float(np.quantile(estimate.noise.norms, 0.5 + record.confidence / 2.0))
        end = estimate.noise.end(growth * most)
        low, high = min(low, end), max(high, end)
    low, high = (float(np.clip(end, *bounds)) for end in (low, high))
    return replace(record, lower=low, upper=high)


def _because(record: Record, reason: str) -> Record:
    return replace(record, reason="; ".join(filter(None, (record.reason, reason))))
