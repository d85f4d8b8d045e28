"""The pictures behind the numbers: calibration, PIT, risk and coverage, error by width, time."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from howsure.core.errors import UnanswerableError
from howsure.core.faults import attempt
from howsure.core.records import Curve, Table
from howsure.metrics.association import width_bins
from howsure.metrics.calibration_curve import calibration_curve, calibration_curve_quantiles
from howsure.metrics.evaluate.measure import Evaluation
from howsure.metrics.evaluate.trade import characteristic_curves
from howsure.metrics.evaluate.view import View
from howsure.metrics.pit import pit_histogram
from howsure.predictions import EvalSet
from howsure.stats.binomial import clopper_pearson

WINDOWS = 60
WORST_ROWS = 50


def curves_of(evaluation: Evaluation, *, confidence: float = 0.95) -> tuple[Curve, ...]:
    """Every curve that the content permits, thinned to a few hundred points.

    Parameters
    ----------
    evaluation : Evaluation
        Of all rows of one model.
    confidence : float
        Confidence of the bands.

    Returns
    -------
    tuple of Curve
        Named ``calibration``, ``interval_calibration``, ``pit_ecdf``, ``pit_histogram``,
        ``error_by_width``, ``risk_coverage``, ``risk_coverage_oracle``, ``rolling_coverage``,
        ``characteristic``, ``characteristic_deficit`` and what stands behind them.
    """
    makers: dict[str, Callable[[Evaluation, float], list[Curve]]] = {
        "calibration": _calibration,
        "interval_calibration": _interval_calibration,
        "pit_ecdf": _pit,
        "error_by_width": _error_by_width,
        "risk_coverage": _risk_coverage,
        "rolling_coverage": _rolling_coverage,
        "characteristic": lambda found, _: characteristic_curves(found.view, found.coverages),
    }
    made: list[Curve] = []
    for name, maker in makers.items():
        # the record of the same measure tells the reason
        told = f"curve {name} of {evaluation.evalset.model}"
        made.extend(attempt(told, partial(maker, evaluation, confidence), lambda _: []))
    return tuple(made)


def _independent_n(evalset: EvalSet) -> int:
    """Rows that count, for bands that assume independent ones."""
    if evalset.cluster is not None:
        return len(evalset.cluster.labels)
    return round(evalset.n if evalset.weights is None else evalset.weights.effective_n)


def _calibration(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Observed share below each stated level, in a band that holds at all levels at once."""
    view, evalset = evaluation.view, evaluation.evalset
    weights = evalset.multiplicities
    try:
        curve = calibration_curve(
            view.get("cdf"), left=view.get("left"), confidence=confidence, weights=weights
        )
    except UnanswerableError:
        quantiles, levels = view.get("quantiles"), view.get("levels")
        curve = calibration_curve_quantiles(
            evalset.y, quantiles, levels, confidence=confidence, weights=weights
        )
    return [
        Curve(
            name="calibration",
            x=curve.levels,
            y=curve.observed,
            lower=curve.simultaneous.lower,
            upper=curve.simultaneous.upper,
            reference=curve.levels,
            x_label="Stated probability",
            y_label="Observed share below",
            band=f"{confidence:.0%} band that a perfect model keeps to at all levels at once",
            model=evalset.model,
        )
    ]


def _interval_calibration(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Empirical against nominal coverage of central intervals."""
    view, evalset = evaluation.view, evaluation.evalset
    nominal = _reachable(view)
    weights = evalset.multiplicities
    seen = [float(np.average(view.get("covered", c), weights=weights)) for c in nominal]
    shares = np.array(seen)
    n = float(_independent_n(evalset))
    lower, upper = clopper_pearson(np.round(shares * n), n, confidence=confidence)
    return [
        Curve(
            name="interval_calibration",
            x=np.array(nominal),
            y=shares,
            lower=np.asarray(lower),
            upper=np.asarray(upper),
            reference=np.array(nominal),
            x_label="Nominal coverage",
            y_label="Empirical coverage",
            band=f"{confidence:.0%} confidence interval at each coverage",
            model=evalset.model,
        )
    ]


def _reachable(view: View) -> list[float]:
    """Nominal coverages to draw: given ones, or a grid of those that can be derived."""
    known = [c for c in _given(view) if not math.isnan(c)]
    if not known:
        known = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    reached = []
    for coverage in known:
        try:
            view.get("covered", coverage)
        except UnanswerableError:
            continue
        reached.append(coverage)
    if len(reached) < 2:
        raise UnanswerableError("one coverage makes no curve")
    return reached


def _given(view: View) -> tuple[float, ...]:
    for belief in view.evalset.beliefs:
        if belief.kind == "intervals":
            return tuple(getattr(belief, "coverages", ()))
    return ()


def _pit(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Where y falls in its predictive law: departure of the shares from uniform, and bins."""
    view, evalset = evaluation.view, evaluation.evalset
    pit, left, weights = view.get("cdf"), view.get("left"), evalset.multiplicities
    curve = calibration_curve(pit, left=left, confidence=confidence, weights=weights)
    bins = pit_histogram(pit, left=left, confidence=confidence, weights=weights)
    count = len(bins.share)
    band = f"{confidence:.0%} band that a perfect model keeps to at all points at once"
    return [
        Curve(
            name="pit_ecdf",
            x=curve.levels,
            y=curve.observed - curve.levels,
            lower=curve.simultaneous.lower - curve.levels,
            upper=curve.simultaneous.upper - curve.levels,
            reference=np.zeros(len(curve.levels)),
            x_label="Probability integral transform",
            y_label="Observed − expected share",
            band=band,
            model=evalset.model,
        ),
        Curve(
            name="pit_histogram",
            x=(bins.edges[1:] + bins.edges[:-1]) / 2.0,
            y=bins.share * count,
            lower=np.full(count, bins.lower * count),
            upper=np.full(count, bins.upper * count),
            reference=np.ones(count),
            x_label="Probability integral transform",
            y_label="Density",
            band=band,
            model=evalset.model,
        ),
    ]


def _error_by_width(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Mean |error| against mean uncertainty in bins of equal mass."""
    view: View = evaluation.view.get("with_point")
    evalset = view.evalset
    uncertainty = view.get("uncertainty")
    errors = view.get("absolute_error")
    weights = evalset.multiplicities
    bins = width_bins(errors, uncertainty, weights, ranked=view.get("ranks"))
    if len(bins.mass) < 2:
        raise UnanswerableError("all widths are equal")
    centred = np.square(errors - bins.mean_error[bins.codes])
    spread = np.bincount(bins.codes, weights=centred if weights is None else centred * weights)
    error = np.sqrt(spread) / np.maximum(bins.mass, 1.0)
    return [
        Curve(
            name="error_by_width",
            x=bins.mean_width,
            y=bins.mean_error,
            lower=bins.mean_error - 1.96 * error,
            upper=bins.mean_error + 1.96 * error,
            x_label=f"Mean predicted {view.source(['uncertainty'], 0.0) or 'width'} (units of y)",
            y_label="Mean |error| (units of y)",
            band="95 % interval of each bin's mean",
            model=evalset.model,
        )
    ]


def _risk_coverage(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Mean |error| of the most certain rows, against how many are accepted."""
    view: View = evaluation.view.get("with_point")
    evalset = view.evalset
    accepted = view.get("acceptance")
    curve = accepted.curve(oracle=view.get("oracle"))
    x_label, y_label = "Prediction rate", "Mean |error| of accepted rows"
    return [
        Curve(
            name="risk_coverage",
            x=curve.prediction_rate,
            y=curve.risk,
            lower=curve.risk - 1.96 * curve.standard_error,
            upper=curve.risk + 1.96 * curve.standard_error,
            reference=np.full(len(curve.risk), curve.random),
            band="95 % interval at each rate",
            model=evalset.model,
            x_label=x_label,
            y_label=y_label,
        ),
        Curve(
            name="risk_coverage_oracle",
            x=curve.prediction_rate,
            y=curve.oracle,
            model=evalset.model,
            x_label=x_label,
            y_label=y_label,
        ),
    ]


def _rolling_coverage(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Coverage in windows of equal numbers of rows, in order of time."""
    evalset = evaluation.evalset
    if evalset.time is None:
        raise UnanswerableError("the table holds no time")
    coverage = evaluation.coverages[-1]
    covered = evaluation.view.get("covered", coverage)
    order = np.argsort(evalset.time, kind="stable")
    size = max(len(order) // WINDOWS, min(50, len(order)))
    window = np.minimum(np.arange(len(order)) // size, max(len(order) // size - 1, 0))
    weights = evalset.multiplicities
    mass = np.ones(len(order)) if weights is None else weights[order]
    n = np.bincount(window, weights=mass)
    share = np.bincount(window, weights=mass * covered[order]) / n
    first = np.r_[0, np.flatnonzero(np.diff(window)) + 1]
    middle = np.minimum(first + size // 2, len(order) - 1)
    hits = np.minimum(np.round(share * n), n)  # n is no whole number where weights are none
    lower, upper = clopper_pearson(hits, n, confidence=confidence)
    stamps = evalset.time[order][middle]
    numbers = stamps.astype("datetime64[ms]") if stamps.dtype.kind == "M" else stamps
    numeric = numbers.dtype.kind in "iufMb"
    return [
        Curve(
            name="rolling_coverage",
            x=numbers.astype(np.float64) if numeric else middle.astype(np.float64),
            y=share,
            lower=np.asarray(lower),
            upper=np.asarray(upper),
            reference=np.full(len(n), coverage),
            x_label="Time (ms since 1970)" if stamps.dtype.kind == "M" else "Time",
            y_label=f"Empirical coverage of {size:,} rows",
            band=f"{confidence:.0%} binomial interval in each window",
            model=evalset.model,
        )
    ]


def worst_rows(evaluation: Evaluation, *, most: int = WORST_ROWS) -> Table | None:
    """The rows that the beliefs describe worst, with what is known of them.

    Parameters
    ----------
    evaluation : Evaluation
        Of all rows of one model.
    most : int
        How many rows.

    Returns
    -------
    Table or None
        Ranked by interval score, else by CRPS, else by |error|; None if there is no score.
    """
    ranked_by = ("interval_score", "crps", "mae", "miss_rate")
    found = [
        (name, coverage, scores)
        for wanted in ranked_by
        for (name, coverage), scores in evaluation.scores.items()
        if name == wanted
    ]
    if not found:
        return None
    name, coverage, scores = found[0]
    scores = scores.astype(np.float64)
    evalset, view = evaluation.evalset, evaluation.view
    most = min(most, evalset.n)
    rows = np.argpartition(-scores, most - 1)[:most]
    rows = rows[np.lexsort((rows, -scores[rows]))]
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
    return Table(
        name="worst_rows",
        columns=columns,
        model=evalset.model,
        notes=f"The {most} rows with the worst {name.replace('_', ' ')}.",
    )
