"""Do intervals cover, where do they miss, and how wide are they?

Intervals are closed. Row functions return one number a row; their mean is the measure.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, as_vector, check_interval
from howsure.core.errors import UnanswerableError
from howsure.core.formats import level
from howsure.core.records import (
    UNIT,
    Axis,
    Curve,
    Direction,
    Layout,
    Notion,
    ResultTable,
    TableLayout,
)
from howsure.core.weights import check_multiplicities
from howsure.engine.measure import Evaluation
from howsure.engine.metric import (
    BY_UNIT,
    POSITIVE,
    RANGED,
    SHARE,
    Array,
    Laws,
    Metric,
    Question,
    Sums,
    Topic,
    coverage_array,
    itself,
    of_rows,
    row_mean,
    statistic,
)
from howsure.engine.view import View
from howsure.predictions import (
    Distribution,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
)
from howsure.stats.binomial import clopper_pearson, shift_shares
from howsure.stats.estimate import Estimate, mean_statistic, quantile_statistic, weighted_mean
from howsure.stats.moments import Joint
from howsure.topics.coverage_findings import FINDINGS

_NAVRATIL = "Navrátil et al. 2021, section 2.1"


def covered(y: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> BoolArray:
    """Whether each closed interval holds y; the mean is the empirical coverage (PICP).

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        What happened and the ends of the intervals, in one unit.

    Returns
    -------
    ndarray of bool, shape (n,)
        The mean lies in [0, 1] and is best at the nominal coverage.

    Raises
    ------
    InputError
        If a value is missing, lengths differ, or ends cross.

    Notes
    -----
    c_i = 1{l_i ≤ y_i ≤ u_i}. Source: prediction interval coverage probability, the field's PICP.

    Examples
    --------
    >>> covered(np.array([1.0, 5.0]), np.array([0.0, 0.0]), np.array([1.0, 4.0]))
    array([ True, False])
    """
    truth, low, high = _rows(y, lower, upper)
    return np.asarray((truth >= low) & (truth <= high))


def empirical_coverage(
    y: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Share of rows whose closed interval holds y (PICP); best at the nominal coverage.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        What happened and the ends of the intervals, in one unit.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        In [0, 1], with the influence of each row.

    Raises
    ------
    InputError
        If a value is missing, lengths differ, or ends cross.

    Examples
    --------
    >>> empirical_coverage([1.0, 5.0], [0.0, 0.0], [1.0, 4.0]).value
    0.5
    """
    hits = covered(y, lower, upper).astype(np.float64)
    return mean_statistic(hits, check_multiplicities(weights, len(hits)))


def missed_below(y: npt.ArrayLike, lower: npt.ArrayLike) -> BoolArray:
    """Whether y is below its interval, 1{y_i < l_i}; best at half the nominal miss rate.

    Examples
    --------
    >>> missed_below(np.array([-1.0, 1.0]), np.array([0.0, 0.0]))
    array([ True, False])
    """
    truth = as_vector(y, "y")
    return truth < as_vector(lower, "lower", length=len(truth), finite=False)


def missed_above(y: npt.ArrayLike, upper: npt.ArrayLike) -> BoolArray:
    """Whether y is above its interval, 1{y_i > u_i}; best at half the nominal miss rate.

    Examples
    --------
    >>> missed_above(np.array([1.0, 5.0]), np.array([4.0, 4.0]))
    array([False,  True])
    """
    truth = as_vector(y, "y")
    return truth > as_vector(upper, "upper", length=len(truth), finite=False)


def width(lower: npt.ArrayLike, upper: npt.ArrayLike) -> FloatArray:
    """Width of each interval, u_i − l_i, in units of y; narrower is better at equal coverage.

    Examples
    --------
    >>> width(np.array([0.0]), np.array([3.0]))
    array([3.])
    """
    low, high = check_interval(lower, upper)
    return high - low


def mean_width(
    lower: npt.ArrayLike, upper: npt.ArrayLike, *, weights: npt.ArrayLike | None = None
) -> Estimate:
    """Mean width of the intervals (MPIW), in units of y; narrower is better at equal coverage.

    Parameters
    ----------
    lower, upper : array-like of shape (n,)
        Ends of the intervals.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        At least 0, with the influence of each row; infinite where an interval is unbounded.

    Raises
    ------
    InputError
        If a value is missing, lengths differ, or ends cross.

    Examples
    --------
    >>> mean_width([0.0, 0.0], [1.0, 3.0]).value
    2.0
    """
    widths = width(lower, upper)
    return mean_statistic(widths, check_multiplicities(weights, len(widths)))


def bandwidth(lower: npt.ArrayLike, upper: npt.ArrayLike) -> FloatArray:
    """Half the width of each interval, in units of y (Navrátil et al., equation 2)."""
    return width(lower, upper) / 2.0


def excess(y: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> FloatArray:
    """How far a covered y lies from the nearer end, 0 where missed; in units of y.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        What happened and the ends of the intervals.

    Returns
    -------
    ndarray of float, shape (n,)
        Lower is better at equal deficit.

    Raises
    ------
    InputError
        If a value is missing, lengths differ, or ends cross.

    Notes
    -----
    c_i · min(y_i − l_i, u_i − y_i), averaged over all rows (Navratil et al.: two-sided excess).

    Examples
    --------
    >>> excess(np.array([1.0, 9.0]), np.array([0.0, 0.0]), np.array([4.0, 4.0]))
    array([1., 0.])
    """
    truth, low, high = _rows(y, lower, upper)
    return np.maximum(np.minimum(truth - low, high - truth), 0.0)


def deficit(y: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> FloatArray:
    """How far a missed y lies from the nearer end, 0 where covered; in units of y.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        What happened and the ends of the intervals.

    Returns
    -------
    ndarray of float, shape (n,)
        Lower is better.

    Raises
    ------
    InputError
        If a value is missing, lengths differ, or ends cross.

    Notes
    -----
    max(l_i − y_i, y_i − u_i, 0), averaged over all rows (Navratil et al.).

    Examples
    --------
    >>> deficit(np.array([1.0, 9.0]), np.array([0.0, 0.0]), np.array([4.0, 4.0]))
    array([0., 5.])
    """
    truth, low, high = _rows(y, lower, upper)
    return np.maximum(np.maximum(low - truth, truth - high), 0.0)


def median_width(
    lower: npt.ArrayLike, upper: npt.ArrayLike, *, weights: FloatArray | None = None
) -> Estimate:
    """Median width of the intervals, in units of y.

    Examples
    --------
    >>> median_width(np.zeros(3), np.array([1.0, 2.0, 9.0])).value
    2.0
    """
    return quantile_statistic(width(lower, upper), 0.5, weights=weights)


@np.errstate(over="ignore", invalid="ignore")
def normalised_width(
    y: npt.ArrayLike,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    *,
    by: str = "range",
    weights: FloatArray | None = None,
) -> Estimate:
    """Mean width relative to the spread of y, without units.

    Parameters
    ----------
    y, lower, upper : array-like of shape (n,)
        What happened and the ends of the intervals.
    by : {"range", "sd"}
        Divide by max y − min y (the literature's NMPIL) or by the population sd of y.
    weights : ndarray of float, shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        NaN with a reason where y is constant. By the range there is no influence: its two extremes
        have no standard error, and move further apart with every row.

    Raises
    ------
    InputError
        If a value is missing, lengths differ, or ends cross.

    Examples
    --------
    >>> normalised_width(np.array([0.0, 4.0]), np.zeros(2), np.ones(2)).value
    0.25
    """
    truth, low, high = _rows(y, lower, upper)
    widths = high - low
    if by == "range":
        return of_rows(_by_range, (widths,), beside=(truth,), weights=weights)
    off = truth - weighted_mean(truth, weights)
    squares = np.square(truth - (low + high) / 2)
    return of_rows(_by_sd, (widths, off, np.square(off)), weights=weights, squares=squares)


def _by_range(sums: Joint) -> tuple[Estimate, None]:
    """Of widths, and y beside them."""
    estimate = _over_spread(sums, float(sums.greatest[1] - sums.least[1]))
    reason = estimate.reason or "no interval: the range of y depends on two rows only"
    return replace(estimate, reason=reason), None


def _by_sd(sums: Joint) -> tuple[Estimate, FloatArray | None]:
    """Of widths, y and its square."""
    variance = float(sums.second[1, 1]) / sums.mass
    constant = sums.least[1] == sums.greatest[1]
    spread = 0.0 if constant else math.sqrt(variance)
    estimate = _over_spread(sums, spread)
    if estimate.reason:
        return estimate, None
    tilt = -estimate.value / (2.0 * variance)  # of (y − mean)² = y² − 2·mean·y + mean²
    return estimate, np.array([1.0 / spread, -2.0 * sums.mean[1] * tilt, tilt])


def _over_spread(sums: Joint, spread: float) -> Estimate:
    """The mean width over a spread of y."""
    if spread == 0.0:
        return Estimate(math.nan, reason="y is constant, so its spread is 0")
    value = float(sums.mean[0]) / spread
    reason = "" if math.isfinite(value) else "some intervals are unbounded, or y hardly varies"
    return Estimate(value, reason=reason)


def _rows(
    y: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    truth = as_vector(y, "y")
    return (truth, *check_interval(lower, upper, length=len(truth)))


def _missed(covered: BoolArray) -> BoolArray:
    return ~covered


def _empty(sizes: FloatArray) -> BoolArray:
    return np.asarray(sizes == 0)


def _ends(view: View, coverage: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends: given ones, or those that the richest prediction implies."""
    if math.isnan(coverage):
        intervals = view.prediction(Intervals)
        view.note_source("ends", intervals.kind, coverage)
        return intervals.lower[:, 0], intervals.upper[:, 0]
    table = view.find_prediction(Quantiles)
    stated: tuple[type[Prediction], ...] = (Intervals, Distribution)
    if table is None or table.widest:  # what bounds one side alone goes after the others
        stated = (*stated, Quantiles)
    ends: tuple[FloatArray, FloatArray] = view.ask(
        "ends", "interval", coverage, coverage=coverage, first=stated
    )
    return ends


def _width(view: View, coverage: float) -> FloatArray:
    lower, upper = view.get("ends", coverage)
    return np.asarray(upper - lower)


def _judged_sets(view: View) -> LabelSets | None:
    """The label sets, where these and no intervals are judged."""
    return view.find_prediction(LabelSets) if view.find_prediction(Intervals) is None else None


def _covered(view: View, coverage: float) -> Any:
    sets = _judged_sets(view)
    if sets is not None:
        view.note_source("covered", sets.kind, coverage)
        if not math.isnan(coverage) and abs(sets.coverage - coverage) > 1e-9:
            raise UnanswerableError(f"label sets were given at coverage {sets.coverage:g}")
        return sets.contains(view.evalset.y)
    return covered(view.evalset.y, *view.get("ends", coverage))


def unequal_hits(view: View, coverage: float) -> FloatArray:
    """Whether each row is covered, where not all rows are alike."""
    hits = np.asarray(view.get("covered", coverage), dtype=np.float64)
    if hits.min() == hits.max():
        raise UnanswerableError("every row is covered" if hits[0] else "no row is covered")
    return hits


def _claims(view: View, coverage: float) -> dict[str, FloatArray]:
    """What the prediction that gave the interval claims of it: least and most, shape (n, 2)."""
    nominal = view.get("coverage", coverage)
    prediction: Prediction | None = _judged_sets(view)
    if prediction is None:
        view.get("ends", coverage)  # so that it is known who answered
        prediction = view.answered("ends", coverage)
        assert prediction is not None
    below, above = prediction.claimed_misses(view.evalset.y, nominal)
    shape = below.shape
    if not (below.strides[0] or above.strides[0]):  # rows that all claim the same are one
        below, above = below[:1], above[:1]
    missed = below + above
    claims = {"below": below, "above": above, "missed": missed, "covered": 1.0 - missed[:, ::-1]}
    return {name: np.broadcast_to(ends, shape) for name, ends in claims.items()}


def _claimed(view: View, coverage: float) -> FloatArray:
    """Probability with which each row's own interval claims to hold y; the least, of a range."""
    claims: FloatArray = view.get("claims", coverage)["covered"][:, 0]
    return claims


def _claim(view: View, coverage: float) -> FloatArray:
    """As `_claimed`, where the claim is one number; for measures that need what is expected."""
    view.get("covered", coverage)
    least, most = view.get("claims", coverage)["covered"].T
    if weighted_mean(most - least, view.evalset.multiplicities) > RANGED:
        raise UnanswerableError(
            "y often equals an end of its interval, where quantiles imply a range of coverages"
        )
    return np.asarray(least)


def _expected_coverage(view: View, coverage: float) -> FloatArray:
    """What the rows claim, moved so that on average it is the coverage of all rows, shape (n,)."""
    weights = view.evalset.multiplicities
    hits = np.asarray(view.get("covered", coverage), dtype=np.float64)
    mean_coverage = min(weighted_mean(hits, weights), 1.0)
    if math.isnan(coverage):
        return np.full(len(hits), mean_coverage)
    return shift_shares(view.get("claim", coverage), mean_coverage, weights)


def _interval_calibration(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Empirical against nominal coverage of central intervals."""
    view, evalset = evaluation.view, evaluation.evalset
    nominal = _reachable(view)
    weights = evalset.multiplicities
    shares, claimed = (
        np.array([weighted_mean(view.get(name, c), weights) for c in nominal])
        for name in ("covered", "claimed")
    )
    n = float(evalset.independent_n)
    lower, upper = clopper_pearson(np.round(shares * n), n, confidence=confidence)
    return [
        Curve(
            name="interval_calibration",
            x=np.array(nominal),
            y=shares,
            lower=np.asarray(lower),
            upper=np.asarray(upper),
            reference=claimed,
            x_label="Nominal coverage",
            y_label="Empirical coverage",
            band=f"{level(confidence)} interval at each coverage",
            model=evalset.model,
        )
    ]


def _reachable(view: View) -> list[float]:
    """Nominal coverages to draw: given ones, or a grid of those that can be derived."""
    intervals = view.find_prediction(Intervals)
    coverages = [] if intervals is None else list(intervals.coverages)
    if not coverages:
        coverages = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    reached = []
    for coverage in coverages:
        try:
            view.get("covered", coverage)
        except UnanswerableError:
            continue
        reached.append(coverage)
    if len(reached) < 2:
        raise UnanswerableError("one coverage makes no curve")
    return reached


def _coverage_table(evaluation: Evaluation) -> list[ResultTable]:
    """Coverage of all rows at each nominal coverage, beside what the predictions claim."""
    records = [
        record
        for record in evaluation.records
        if record.metric == "empirical_coverage" and math.isfinite(record.value)
    ]
    if not records:
        return []
    columns_of = {
        name: np.array([getattr(record, name) for record in records], dtype=np.float64)
        for name in ("n", "value", "lower", "upper", "coverage", "null")
    }
    nominal, null = columns_of.pop("coverage"), columns_of.pop("null")
    columns = {"n": columns_of["n"], "empirical_coverage": columns_of["value"]}
    columns |= {name: columns_of[name] for name in ("lower", "upper")}
    columns |= {"claimed": np.where(np.isfinite(null), null, nominal), "nominal": nominal}
    return [ResultTable(name="coverage", columns=columns, model=evaluation.evalset.model)]


_share = partial(
    Metric, question=Question.COVERAGE, direction=Direction.TARGET, per_coverage=True, bounds=SHARE
)
_of_width = partial(
    Metric,
    question=Question.WIDTH,
    direction=Direction.LOWER,
    units="y",
    laws=BY_UNIT,
    bounds=POSITIVE,
    per_coverage=True,
)

_ENTRIES = (
    _share(
        name="empirical_coverage",
        title="Empirical coverage (PICP)",
        synonyms=(
            "coverage",
            "prediction interval coverage probability",
            "ECP",
            "marginal coverage",
            "interval coverage",
        ),
        meaning="Share of rows whose y is in its closed interval or label set.",
        formula="mean 1{l ≤ y ≤ u}",
        source="prediction interval coverage probability",
        forms=(row_mean(itself, "covered", reduce="share"),),
        standard_normal=0.9,
        target="coverage",
        every_level=True,
        expected="covered",
        key_number=1,
        beware=(
            "An average over all rows: groups may be above or below it. Infinitely wide intervals "
            "cover everything, so read it with a width. With 100 rows it is accurate to about 6 "
            "points."
        ),
    ),
    _share(
        name="misses_below",
        title="Misses below",
        synonyms=("lower misses", "below rate"),
        meaning="Share of rows whose y is below its interval.",
        formula="mean 1{y < l}",
        forms=(row_mean(missed_below, "y", "lower", reduce="share"),),
        laws=Laws(reflection="misses_above"),
        standard_normal=0.05,
        target="half miss",
        expected="below",
        key_number=15,
        beware="Half the miss rate is the target only for central intervals.",
    ),
    _share(
        name="misses_above",
        title="Misses above",
        synonyms=("upper misses", "above rate"),
        meaning="Share of rows whose y is above its interval.",
        formula="mean 1{y > u}",
        forms=(row_mean(missed_above, "y", "upper", reduce="share"),),
        laws=Laws(reflection="misses_below"),
        standard_normal=0.05,
        target="half miss",
        expected="above",
        key_number=16,
        beware="Half the miss rate is the target only for central intervals.",
    ),
    _share(
        name="miss_rate",
        title="Miss rate",
        synonyms=("miscoverage", "miscoverage rate", "non-coverage"),
        meaning="Share of rows whose y is outside its interval, 1 − empirical coverage.",
        formula="mean 1{y < l or y > u}",
        source=f"{_NAVRATIL}, equation 1",
        forms=(row_mean(_missed, "covered", reduce="share"),),
        standard_normal=0.1,
        target="miss",
        expected="missed",
        beware="Like empirical coverage, it is an average that hides groups and ignores width.",
    ),
    _of_width(
        name="deficit",
        title="Deficit",
        synonyms=("mean deficit",),
        question=Question.COVERAGE,
        meaning="How far missed values are from their interval, averaged over all rows.",
        formula="mean max(l − y, y − u, 0)",
        source=_NAVRATIL,
        forms=(row_mean(deficit, "y", "lower", "upper"),),
        standard_normal=0.0418,
        beware="It is 0 for intervals that are wide enough; read it with the excess or a width.",
    ),
    Metric(
        name="groups_differ",
        title="Do groups differ?",
        synonyms=("group differences",),
        question=Question.COVERAGE,
        meaning="P-value of the test that all groups have the same coverage, given their nominal "
        "coverage.",
        formula="max over groups of |Σ(c − p̃)| / sd, p̃ the claims shifted to all rows' coverage",
        source="max-statistic test by permutation, of unequal claims by simulation",
        direction=Direction.NONE,
        units="p-value",
        forms=(),
        beside="groups",
        standard_normal=math.nan,
        notion=Notion.GROUP,
        per_coverage=True,
        bounds=SHARE,
        beware=(
            "A p-value is not an effect size: with many rows, a negligible difference is "
            "significant. Choose groups before looking at y."
        ),
    ),
    Metric(
        name="worst_group_shortfall",
        title="Shortfall of the worst group",
        synonyms=("worst group", "worst group coverage"),
        question=Question.COVERAGE,
        meaning="How far the coverage of the worst group is below its nominal coverage.",
        formula="mean nominal coverage of the group − c_g",
        direction=Direction.LOWER,
        forms=(),
        beside="groups",
        standard_normal=math.nan,
        notion=Notion.GROUP,
        per_coverage=True,
        target=0.0,
        beware="The worst of many groups looks bad by chance: compare it with its reference.",
    ),
    _of_width(
        name="mean_width",
        title="Mean width",
        synonyms=(
            "MPIW",
            "PIAW",
            "mean prediction interval width",
            "average width",
            "interval width",
            "mean interval width",
            "AIW",
            "width",
        ),
        meaning="Average width of the intervals; narrower is better at equal coverage.",
        formula="mean (u − l)",
        forms=(row_mean(width, "lower", "upper"),),
        standard_normal=3.2897,
        key_number=2,
        beware="Narrow intervals that miss look best. Compare widths only at equal coverage.",
    ),
    _of_width(
        name="median_width",
        title="Median width",
        synonyms=("median interval width",),
        meaning="Median width of the intervals.",
        formula="median (u − l)",
        forms=(statistic(median_width, "lower", "upper"),),
        merges="rows",
        standard_normal=3.2897,
        beware="It ignores how wide the wider half is. Compare only at equal coverage.",
    ),
    _of_width(
        name="normalised_width",
        title="Width relative to the range of y",
        synonyms=(
            "normalized width",
            "NMPIW",
            "PINAW",
            "NMPIL",
            "PINRW",
            "normalized mean prediction interval width",
        ),
        meaning="Mean width over the range of y (NMPIL); depends on the most extreme y.",
        formula="mean (u − l) / (max y − min y)",
        source="interval literature: NMPIL",
        units="1",
        forms=(statistic(normalised_width, "y", "lower", "upper", by="range"),),
        by_size=True,
        laws=Laws(),
        standard_normal=math.nan,
        beware="The range of y depends on two rows and grows with the number of rows.",
    ),
    _of_width(
        name="relative_width",
        title="Width relative to the sd of y",
        synonyms=("width over sd",),
        meaning="Mean width over the standard deviation of y.",
        formula="mean (u − l) / sd(y)",
        units="1",
        forms=(statistic(normalised_width, "y", "lower", "upper", by="sd", squares=True),),
        laws=Laws(),
        standard_normal=3.2897,
        beware="It compares with the spread of y, so it varies with the rows chosen.",
    ),
    _of_width(
        name="bandwidth",
        title="Mean half-width (bandwidth)",
        synonyms=("half width",),
        meaning="Half the average width.",
        formula="mean (u − l) / 2",
        source=f"{_NAVRATIL}, equation 2",
        forms=(row_mean(bandwidth, "lower", "upper"),),
        standard_normal=1.6449,
        beware="Narrow bands that miss look best. Read it with the miss rate.",
    ),
    _of_width(
        name="excess",
        title="Excess",
        synonyms=("mean excess",),
        meaning="How far covered values are from the nearer end, averaged over all rows.",
        formula="mean 1{l ≤ y ≤ u} min(y − l, u − y)",
        source=_NAVRATIL,
        forms=(row_mean(excess, "y", "lower", "upper"),),
        standard_normal=0.8888,
        beware="It is smallest for narrow intervals that miss. Read it with the deficit.",
    ),
    Metric(
        name="set_size",
        title="Set size",
        synonyms=("average set size", "inefficiency", "mean set size"),
        question=Question.WIDTH,
        meaning="Average number of labels in a set; smaller is better at equal coverage.",
        formula="mean |C|",
        direction=Direction.LOWER,
        units="labels",
        forms=(row_mean(itself, "set_sizes"),),
        standard_normal=math.nan,
        bounds=POSITIVE,
        key_number=3,
        beware="Small sets that miss look best. Compare only at equal coverage.",
    ),
    Metric(
        name="empty_sets",
        title="Empty sets",
        synonyms=("empty set rate",),
        question=Question.WIDTH,
        meaning="Share of rows whose label set is empty, so that it cannot contain the true label.",
        formula="mean 1{|C| = 0}",
        direction=Direction.NONE,
        forms=(row_mean(_empty, "set_sizes", reduce="share"),),
        standard_normal=math.nan,
        bounds=SHARE,
        beware="Empty sets may be right where the nominal coverage is below the accuracy.",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        coverage_array("ends", _ends, predicted=True),
        coverage_array(
            "lower",
            lambda view, coverage: view.get("ends", coverage)[0],
            predicted=True,
        ),
        coverage_array(
            "upper",
            lambda view, coverage: view.get("ends", coverage)[1],
            predicted=True,
        ),
        coverage_array("covered", _covered),
        coverage_array("claims", _claims, predicted=True),
        coverage_array("claim", _claim, predicted=True),
        coverage_array("claimed", _claimed, predicted=True),
        coverage_array("expected_coverage", _expected_coverage),
        Array(
            "set_sizes",
            lambda view, _: view.prediction(LabelSets).sizes.astype(np.float64),
            predicted=True,
            by_row=True,
        ),
    ),
    curves=(_interval_calibration,),
    tables=(_coverage_table,),
    findings=FINDINGS,
    label="Coverage",
    layouts={
        "interval_calibration": Layout(
            order=1,
            question="Is coverage right at every level?",
            title="Interval calibration",
            reading="Below the diagonal the intervals under-cover; above it they over-cover.",
            banded="Where a shaded band contains the diagonal, the difference may be chance.",
            x=Axis(title="Nominal coverage", kind="percent", domain=UNIT),
            y=Axis(title="Empirical coverage", kind="percent", domain=UNIT),
            reference="perfect calibration",
            band="interval",
            square=True,
            read_at=0.9,
        ),
    },
    titles={
        "coverage": TableLayout(listed=False, figure="cover", curve="interval_calibration"),
    },
    sums={
        "normalised_width": Sums(
            lambda view, c: (_width(view, c),), _by_range, beside=lambda view, _: (view.evalset.y,)
        ),
        "relative_width": Sums(
            lambda view, c: (_width(view, c), view.evalset.y), _by_sd, squared=1
        ),
    },
)
