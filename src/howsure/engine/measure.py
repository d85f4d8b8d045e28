"""From an evaluation set to records: every metric of the catalogue that its content permits."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError, attempt, either
from howsure.core.formats import roughly
from howsure.core.records import Curve, Key, Record, ResultTable, TableLayout
from howsure.core.times import Chronology
from howsure.engine.catalogue import catalogue, metric_named, topics
from howsure.engine.metric import (
    MISS_RANGE,
    RANGED,
    SLOW_ROWS,
    Beside,
    Form,
    Metric,
    check_miss_range,
)
from howsure.engine.view import View, choose_coverages, stated_coverages
from howsure.predictions import EvalSet, Quantiles
from howsure.stats.binomial import clopper_pearson
from howsure.stats.dominance import lowest
from howsure.stats.estimate import (
    Estimate,
    counts_as,
    heavy,
    mean_statistic,
    share_ends,
    skewed_ends,
    spread_of,
    weighted_mean,
)
from howsure.stats.memory import MIN_EFFECTIVE

_UNKNOWN = "the nominal coverage of the intervals is unknown"


@frozen
class Evaluation:
    """One model's records, with the row scores behind them."""

    evalset: EvalSet  # what was evaluated
    view: View  # its named arrays
    coverages: tuple[float, ...]  # the nominal coverages assessed; a NaN stands for an unknown one
    records: tuple[Record, ...]  # one for each metric and coverage, answered or not
    # shape (n,): the row scores of metrics that are means
    scores: Mapping[Key, FloatArray]
    beside: Beside = ""  # {"", "inputs", "ease"}: what its metrics need beside y and predictions

    def row_scores(self, metric: str, coverage: float) -> FloatArray | None:
        """The row scores of a metric at a coverage (NaN: an unknown one), if there are any."""
        return self.scores.get(Key.of(metric, coverage))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def evaluate(
    evalset: EvalSet,
    *,
    coverages: Sequence[float] = (),
    metrics: Iterable[str] | None = None,
    beside: Beside = "",
    confidence: float = 0.95,
    seed: int = 0,
    slow: Iterable[str] = (),
    given: Mapping[str, Any] | None = None,
    miss_range: Sequence[float] = MISS_RANGE,
    known: Evaluation | None = None,
) -> Evaluation:
    """Compute every metric that the content permits, each with its sampling error.

    What an evaluation of the same rows, with the same options, holds is `known`: it is taken.
    """
    check_fraction(confidence, "confidence")
    entries = catalogue()
    if metrics is None:
        metrics = [name for name, e in entries.items() if e.forms and e.beside == beside]
    names = list(dict.fromkeys(metric_named(name).name for name in metrics))
    wanted = choose_coverages(evalset, coverages)
    every = wanted if len(coverages) else stated_coverages(evalset, wanted)
    if beside:  # such measures are told at the headline coverage alone
        wanted = wanted[-1:]
    wanted_slow = frozenset(slow)
    if known is None:
        view = View(
            evalset,
            seed=seed,
            confidence=confidence,
            slow=wanted_slow,
            given=given,
            miss_range=check_miss_range(miss_range),
        )
    else:
        view = known.view
    records_known: dict[str, list[Record]] = {}
    for record in () if known is None else known.records:
        records_known.setdefault(record.metric, []).append(record)
    records: list[Record] = []
    scores: dict[Key, FloatArray] = {}
    for name in names:
        metric = entries[name]
        if known is not None and name in records_known:
            records.extend(records_known[name])
            scores |= {key: rows for key, rows in known.scores.items() if key.metric == name}
            continue
        levels = every if metric.every_level else wanted
        for coverage in levels if metric.per_coverage else (math.nan,):
            if metric.slow and evalset.n > SLOW_ROWS and name not in wanted_slow:
                also = either(f"howsure.Options(also={{{name!r}}})", f"--also {name}")
                reason = f"slow above {SLOW_ROWS:,} rows: ask for it with {also}"
                records.extend(_unanswered(view, metric, coverage, reason)[0])
                continue
            measured, rows = attempt(
                f"{name} of {evalset.model}",
                partial(_measure, view, metric, coverage),
                partial(_unanswered, view, metric, coverage),
            )
            records.extend(measured)
            if rows is not None:
                scores[Key.of(name, coverage)] = rows
    return Evaluation(evalset, view, wanted, tuple(records), scores, beside)


def _measure(view: View, metric: Metric, coverage: float) -> tuple[list[Record], FloatArray | None]:
    """One metric at one coverage: its records, and its row scores where it is a mean."""
    if view.evalset.n > metric.most_rows:
        sample = view.take_at_most(int(metric.most_rows))
        share = view.evalset.share * sample.evalset.n / view.evalset.n
        return _answered(sample.on(replace(sample.evalset, share=share)), metric, coverage)
    if not _RANKED.intersection(*(form.needs for form in metric.forms)):
        return _answered(view, metric, coverage)
    with_point: View = view.get("with_point")
    records, rows = _answered(with_point, metric, coverage)
    left_out, n = view.evalset.n - with_point.evalset.n, view.evalset.n
    if left_out:
        reason = f"on {n - left_out:,} of {n:,} rows, those whose interval has a midpoint"
        records = [because(record, reason) for record in records]
    return records, rows


_RANKED = frozenset({"uncertainty", "acceptance"})
"""Arrays that set rows in order: a few rows without a point must not take the others along."""


def _answered(
    view: View, metric: Metric, coverage: float
) -> tuple[list[Record], FloatArray | None]:
    form = find_form(view, metric, coverage)
    estimates, rows = _compute(view, form, coverage)
    refuse_open_side(view, metric, coverage, np.array([each.value for each in estimates]))
    beside_claims_made = [_claimed(view, metric, coverage, each) for each in estimates]
    needs = [*form.needs, "ends"] if metric.per_coverage else form.needs
    records = [
        record_of(
            metric,
            noted(each, form),
            view.evalset,
            coverage=coverage,
            confidence=view.confidence,
            source=view.source(needs, coverage),
            share=form.reduce == "share",
        )
        for each in beside_claims_made
    ]
    return supposed(view, metric, records), rows


def find_form(view: View, metric: Metric, coverage: float, *, without: Container[str] = ()) -> Form:
    """The first form of a measure whose arrays the content permits; some are not asked for.

    Raises
    ------
    UnanswerableError
        If there is none, with the reason of each.
    """
    if metric.calibration and math.isnan(coverage):
        raise UnanswerableError(_UNKNOWN)
    reasons: list[str] = []
    for form in metric.forms:
        try:
            for name in (*form.keywords.values(), *form.needs):
                if name not in without:
                    view.get(name, coverage)
        except UnanswerableError as error:
            reasons.append(str(error))
        else:
            return form
    raise UnanswerableError("; ".join(dict.fromkeys(reasons)))


def arrays_of(view: View, form: Form, coverage: float) -> tuple[list[Any], dict[str, Any]]:
    """What the function of a form is given."""
    keywords = {key: view.get(name, coverage) for key, name in form.keywords.items()}
    return [view.get(name, coverage) for name in form.needs], keywords


def apply_form(view: View, form: Form, coverage: float) -> Any:
    """What the function of a form makes: the score of each row, or estimates of a statistic."""
    arrays, keywords = arrays_of(view, form, coverage)
    weights = {}
    if form.reduce == "statistic" and form.weighted:
        weights = {"weights": view.evalset.multiplicities}
    return form.function(*arrays, **keywords, **form.options, **weights)


def refuse_open_side(view: View, metric: Metric, coverage: float, values: FloatArray) -> None:
    """Raise `UnanswerableError` where values are infinite as one quantile bounds one side alone."""
    prediction = view.answered("ends", coverage) if metric.per_coverage else None
    if (
        isinstance(prediction, Quantiles)
        and prediction.one_sided(coverage)
        and np.isinf(values).any()
    ):
        raise UnanswerableError("one quantile alone gives a one-sided interval")


def tail_of(view: View, form: Form, coverage: float) -> str:
    """Why the errors of these rows are too heavy-tailed for an interval; empty where they are not.

    The form is one whose estimate is a mean of squared errors.
    """
    (estimate,), _ = _compute(view, form, coverage)
    if estimate.squares is None or estimate.cancels:
        return ""
    return heavy(estimate.squares, view.evalset.multiplicities)


def find_measure(view: View, names: Sequence[str], coverage: float) -> tuple[str, Form]:
    """The first of some measures that the content permits, and its form."""
    for name in names:
        with suppress(UnanswerableError):
            return name, find_form(view, catalogue()[name], coverage)
    raise UnanswerableError(f"no {' or '.join(names)} is known")


def _unanswered(
    view: View, metric: Metric, coverage: float, reason: str
) -> tuple[list[Record], None]:
    return [record_of(metric, unknown(reason), view.evalset, coverage=coverage)], None


def unknown(reason: str) -> Estimate:
    """The estimate of what has no answer."""
    return Estimate(math.nan, reason=reason)


def _claimed(view: View, metric: Metric, coverage: float, estimate: Estimate) -> Estimate:
    """With what the prediction itself claims, where that is not the nominal coverage.

    Of a range the null is the end nearer to the nominal value, and the other is a detail.
    """
    if not metric.expected or math.isnan(coverage):
        return estimate
    claims, weights = view.get("claims", coverage)[metric.expected], view.evalset.multiplicities
    least, most = (weighted_mean(end, weights) for end in claims.T)
    return beside_claims(metric, coverage, estimate, least, most)


def beside_claims(
    metric: Metric, coverage: float, estimate: Estimate, least: float, most: float
) -> Estimate:
    """An estimate beside the least and the most that rows claim on average."""
    least, most = (float(np.clip(end, 0.0, 1.0)) for end in (least, most))
    target = metric.target_at(coverage)
    if most - least <= RANGED:  # a few values that rounding made equal are no range
        return (
            estimate if math.isclose(least, target, rel_tol=1e-9) else replace(estimate, null=least)
        )
    if abs(least - target) <= abs(most - target):
        return replace(estimate, null=least, details={**estimate.details, "claimed_most": most})
    return replace(estimate, null=most, details={**estimate.details, "claimed_least": least})


def supposed(view: View, metric: Metric, records: list[Record]) -> list[Record]:
    """Without their target where what it supposes does not hold, and the reason."""
    try:
        if metric.supposes:
            view.get(metric.supposes)
    except UnanswerableError as error:
        return [
            replace(because(record, str(error)), target=math.nan, null=math.nan)
            for record in records
        ]
    return records


def noted(estimate: Estimate, form: Form) -> Estimate:
    """With the options of its form, and the form's note unless the value has one of its own."""
    options = {name: str(value) for name, value in form.options.items()}
    return replace(
        estimate, reason=estimate.reason or form.note, details={**options, **estimate.details}
    )


def _compute(
    view: View, form: Form, coverage: float
) -> tuple[Sequence[Estimate], FloatArray | None]:
    scores = apply_form(view, form, coverage)
    if form.reduce == "statistic":
        return [scores] if isinstance(scores, Estimate) else scores, None
    rows = np.asarray(scores)
    estimate = mean_statistic(rows, view.evalset.multiplicities)
    if form.interval:
        wider: Estimate = view.get(form.interval)
        estimate = replace(estimate, lower=wider.lower, upper=wider.upper)
    return [replace(estimate, squares=rows) if form.squares else estimate], rows


# What a person may look through; a file of all rows is a flag away.
WORST_ROWS = 50
TABLES = {
    "worst_rows": TableLayout(
        title="The worst rows", ranks=lambda table: np.arange(float(len(table))), columns={}
    )
}
"""How the worst rows are shown."""


def curves_of(evaluation: Evaluation, *, confidence: float = 0.95) -> tuple[Curve, ...]:
    """Every curve that the content permits, thinned to a few hundred points."""
    return _attempt_each(evaluation, "curves", confidence)


def tables_of(evaluation: Evaluation) -> tuple[ResultTable, ...]:
    """Every small table of the topics that were evaluated."""
    return _attempt_each(evaluation, "tables")


def _attempt_each(evaluation: Evaluation, kind: str, *more: float) -> tuple[Any, ...]:
    """The curves or the tables of the topics; where there is none, a record tells the reason."""
    items: list[Any] = []
    for topic in topics(evaluation.beside):
        for make in getattr(topic, kind):
            what = f"{kind} of {topic.entries[0].question} of {evaluation.evalset.model}"
            items += attempt(what, partial(make, evaluation, *more), lambda _: [])
    return tuple(items)


def worst_rows(evaluation: Evaluation) -> ResultTable | None:
    """The rows that the predictions describe worst, with what is known of them."""
    ranked_by = ("interval_score", "crps", "mae", "miss_rate")
    ranked = [key for name in ranked_by for key in evaluation.scores if key.metric == name]
    if not ranked:
        return None
    name, coverage = ranked[0].metric, ranked[0].at
    scores = evaluation.scores[ranked[0]].astype(np.float64)
    evalset, view = evaluation.evalset, evaluation.view
    most = min(WORST_ROWS, evalset.n)
    rows = lowest(-scores, most)
    columns = {"row": evalset.row_names()[rows], "y": evalset.y[rows]}
    for extra, key in (("point", 0.0), ("lower", coverage), ("upper", coverage), ("sd", 0.0)):
        try:
            columns[extra] = view.get(extra, key)[rows]
        except UnanswerableError:
            continue
    columns[name] = scores[rows]
    for label, group in evalset.groups.items():
        columns.setdefault(label, group.labels[group.codes[rows]])
    for label, feature in evalset.features.items():
        columns.setdefault(label, feature[rows])
    return ResultTable(
        name="worst_rows",
        columns=columns,
        model=evalset.model,
        notes=f"The {most} rows with the worst {name.replace('_', ' ')}.",
    )


# ---- from an estimate to a record: the one place where errors, bounds and reasons are put together


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
        of_rows = f"on {estimate.n:,.0f} of {evalset.n:,} rows"
        reason = "; ".join(filter(None, (reason, of_rows)))
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
    if math.isfinite(estimate.value) and (
        estimate.influence is not None or estimate.spread is not None
    ):
        if estimate.squares is not None:
            tail = "" if estimate.cancels else heavy(estimate.squares, evalset.multiplicities)
        record = _with_errors(record, estimate, evalset, metric.bounds, share, tail, bundles)
    return of_its_rows(record, evalset)


def of_its_rows(record: Record, evalset: EvalSet) -> Record:
    """A record with what its number was computed of: all rows, or a sample that adds an error."""
    if evalset.share == 1.0 or math.isnan(record.value):
        return record
    added = record.standard_error * math.sqrt(1.0 - evalset.share)
    return replace(record, exact="sample", added_error=added)


def _with_errors(
    record: Record,
    estimate: Estimate,
    evalset: EvalSet,
    bounds: tuple[float, float],
    share: bool,
    tail: str | None,
    bundles: IntArray | None,
) -> Record:
    """Standard error and interval of rows that are independent, weighted or in clusters."""
    weights, units, influence = evalset.weights, evalset.units, estimate.influence
    if isinstance(units, Chronology) and share:
        units = units.hiding(units.size if record.metric == "empirical_coverage" else units.side)
    cluster = bundles if units is None else units
    if influence is None:  # of rows that are independent
        assert estimate.spread is not None
        spread, influence = estimate.spread, np.zeros(1)
    else:
        spread = spread_of(influence, weights, cluster)
    record = replace(record, standard_error=float(spread.error[0]))
    if bundles is not None:  # they tell the error; the rows count all the same
        spread = replace(spread, units=np.array([record.n]))
        count = int(bundles.max()) + 1
        record = because(record, f"standard error from {count:,} groups of rows")
    if weights is not None and weights.kind == "importance":
        record = because(record, "approximate: importance weights")
    if isinstance(units, Chronology):
        like = counts_as(influence, weights, spread, record.n)
        reason = f"effective sample size about {roughly(like)} of {record.n:,.0f}"
        if math.isnan(record.standard_error):
            reason = f"no interval: effective sample size below {MIN_EFFECTIVE:g}"
        record = because(record, reason)
    elif evalset.cluster is not None:
        count = len(evalset.cluster.labels)
        reason = f"{count:,} clusters" if count > 1 else "no interval: all rows are in one cluster"
        record = because(record, reason)
    if tail:
        return because(record, tail)
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
    if estimate.lower <= estimate.upper:  # what its rows do not show, as of few events
        low, high = min(low, estimate.lower), max(high, estimate.upper)
    low, high = (float(np.clip(end, *bounds)) for end in (low, high))
    return replace(record, lower=low, upper=high)


def because(record: Record, reason: str) -> Record:
    """A record with one more reason."""
    return replace(record, reason="; ".join(filter(None, (record.reason, reason))))
