"""Proper scores of intervals and quantiles, one number a row.

Every score here is negatively oriented: lower is better, and in expectation no prediction scores
better than the right one. Their mean over rows tests the marginal notion, calibration and
sharpness in one number, in the units of y.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    as_matrix,
    as_vector,
    check_fraction,
    check_interval,
    check_levels,
    check_quantiles,
    row_blocks,
)
from howsure.core.errors import DegenerateError, InputError, UnanswerableError
from howsure.core.records import Direction
from howsure.engine.finding import Case, Draft, Finding, FindingQuestion, Words, of_value, small
from howsure.engine.metric import (
    BY_UNIT,
    POSITIVE,
    SHARE,
    Array,
    Form,
    Laws,
    Metric,
    Question,
    Topic,
    itself,
    row_mean,
)
from howsure.engine.view import View
from howsure.predictions import Distribution, Intervals, Prediction, Probabilities, Quantiles


def interval_score(
    y: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike, *, coverage: float
) -> FloatArray:
    """Interval (Winkler) score of each row.

    (u − l) + (2/α)(l − y)₊ + (2/α)(y − u)₊ with α = 1 − coverage: the width, and a fine for each
    miss in proportion to its distance. Lower is better, at least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    lower, upper : array-like of shape (n,)
        Ends of the intervals, lower ≤ upper; an infinite end scores infinity.
    coverage : float
        Nominal coverage of the intervals, in (0, 1).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an argument leaves its domain, lengths differ, or a value is missing.

    Notes
    -----
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation,
    Journal of the American Statistical Association 102, eq. 43.

    Examples
    --------
    >>> interval_score([1.0, 5.0], [0.0, 0.0], [2.0, 2.0], coverage=0.5)
    array([ 2., 14.])
    """
    truth = as_vector(y, "y")
    low, high = check_interval(lower, upper, length=len(truth))
    alpha = 1.0 - check_fraction(coverage, "coverage")
    with np.errstate(over="ignore", invalid="ignore"):
        return overflow_as_inf((high - low) + (2.0 / alpha) * _miss(truth, low, high))


def weighted_interval_score(
    y: npt.ArrayLike,
    median: npt.ArrayLike | None,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    coverages: npt.ArrayLike,
) -> FloatArray:
    """Weighted interval score of each row, over several intervals and a median.

    With α_k = 1 − coverage_k and IS_k the interval score,
    [½|y − m| + Σ_k (α_k/2) IS_k] / (K + ½), or Σ_k (α_k/2) IS_k / K without a median. Equals
    twice the mean pinball loss over the levels involved. Lower is better, at least 0, in the
    units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    median : array-like of shape (n,) or None
        Predicted medians, if there are any.
    lower, upper : array-like of shape (n, c)
        Ends of the central intervals, one column a coverage.
    coverages : array-like of shape (c,)
        Their nominal coverages, distinct, in (0, 1), in the order of the columns.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an argument leaves its domain, shapes differ, or a value is missing.

    Notes
    -----
    Bracher, Ray, Gneiting and Reich (2021), Evaluating epidemic forecasts in an interval format,
    PLOS Computational Biology 17. (``weighted_interval_score`` of scoringrules 0.10 adds
    the median where the formula has |y − median|.)

    Examples
    --------
    >>> weighted_interval_score([1.0], [1.5], [[0.0]], [[2.0]], [0.5])
    array([0.5])
    """
    truth = as_vector(y, "y")
    nominal = as_vector(coverages, "coverages")
    check_levels(np.sort(nominal), "coverages")
    low = as_matrix(lower, "lower", length=len(truth), columns=len(nominal), finite=False)
    high = as_matrix(upper, "upper", length=len(truth), columns=len(nominal), finite=False)
    total = np.zeros(len(truth))
    parts = float(len(nominal))
    if median is not None:
        total += 0.5 * np.abs(truth - as_vector(median, "median", length=len(truth)))
        parts += 0.5
    with np.errstate(over="ignore", invalid="ignore"):
        for column, share in enumerate(nominal):
            left, right = check_interval(low[:, column], high[:, column])
            total += (1.0 - share) / 2.0 * (right - left) + _miss(truth, left, right)
        return overflow_as_inf(total / parts)


def log_score(y: npt.ArrayLike, prediction: Prediction) -> FloatArray:
    """Log score of each row: minus the log density, or log probability, of y.

    −log f(y), in nats. Lower is better; infinite where y is impossible under its prediction. Scores
    of densities and of probabilities of counts cannot be compared.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    prediction : Prediction
        A `Distribution` of n rows: samples, quantiles and intervals have no density.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If lengths differ, a y is missing, or the prediction is of another kind.

    Notes
    -----
    Good (1952), Rational decisions, Journal of the Royal Statistical Society B 14.

    Examples
    --------
    >>> from howsure import Distribution
    >>> log_score([0.0, 2.0], Distribution.normal([0.0, 0.0], [1.0, 1.0])).round(4)
    array([0.9189, 2.9189])
    """
    kind = kind_of(prediction)
    if kind != Distribution.kind:
        raise InputError(f"prediction must be distributions, which have a density, got {kind}")
    return -prediction.log_density(as_vector(y, "y", length=prediction.n))


def kind_of(prediction: Any) -> str:
    """What came as a prediction, for an error."""
    if isinstance(prediction, Prediction):
        return prediction.kind
    return f"{type(prediction).__name__}: give draws of shape (n, m) as howsure.Samples(draws)"


def pinball_loss(y: npt.ArrayLike, quantile: npt.ArrayLike, *, level: float) -> FloatArray:
    """Pinball (quantile) loss of each row.

    (y − q)τ where y ≥ q, else (q − y)(1 − τ). Lower is better, at least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    quantile : array-like of shape (n,)
        Predicted quantiles.
    level : float
        Their level τ, in (0, 1).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an argument leaves its domain, lengths differ, or a value is missing.

    Notes
    -----
    Koenker and Bassett (1978), Regression quantiles, Econometrica 46.

    Examples
    --------
    >>> pinball_loss([1.0, 3.0], [2.0, 2.0], level=0.9)
    array([0.1, 0.9])
    """
    truth = as_vector(y, "y")
    predicted = as_vector(quantile, "quantile", length=len(truth))
    with np.errstate(over="ignore"):
        return pinball(truth, predicted, check_fraction(level, "level"))


# Beyond a level that fewer members pass, a fair score of it is the noise of these. By hand; not
# tuned.
MIN_MEMBERS_BEYOND = 2.5
"""Members that must be beyond a level for an ensemble to be scored there."""


def pinball_samples(y: npt.ArrayLike, samples: npt.ArrayLike, *, level: float) -> FloatArray:
    """Pinball loss of each row at a quantile of the distribution behind its samples.

    A quantile of m draws errs by its own noise, which costs about c/m in expected loss. So the
    loss L_m of all draws and the mean L_{m−1} of those with one left out are extrapolated to
    m L_m − (m − 1) L_{m−1}, from which c/m is gone. Lower is better, in the units of y; a row may
    score below 0.

    The quantile is that of Harrell and Davis (1982), Biometrika 69, a mean of the sorted draws
    that changes smoothly with m; the extrapolation is Quenouille's (1956), Biometrika 43.
    With fewer than some 2.5 draws beyond the level a part of the cost remains.

    Examples
    --------
    >>> pinball_samples([0.0], [[-1.0, 0.0, 1.0]], level=0.5).round(3)
    array([-0.333])
    """
    truth = as_vector(y, "y")
    share = check_fraction(level, "level")
    table = as_matrix(samples, "samples", length=len(truth))
    size = table.shape[1]
    if size < 2:
        raise DegenerateError("samples needs at least 2 columns, got 1")
    whole, fewer = _quantile_weights(size, share), _quantile_weights(size - 1, share)
    scores = np.empty(len(truth))
    for rows in row_blocks(len(truth), size):
        draws = np.sort(truth[rows, None] - table[rows], axis=1)[:, ::-1]  # y less rising draws
        before = np.cumsum(draws[:, :-1] * fewer, axis=1)  # draws below the one left out
        after = np.cumsum((draws[:, 1:] * fewer)[:, ::-1], axis=1)[:, ::-1]
        without = np.pad(before, ((0, 0), (1, 0))) + np.pad(after, ((0, 0), (0, 1)))
        lost = pinball(without, 0.0, share).mean(axis=1)
        scores[rows] = size * pinball(draws @ whole, 0.0, share) - (size - 1) * lost
    return scores


def _quantile_weights(size: int, level: float) -> FloatArray:
    """Weights of sorted draws: steps of the law of the order statistic that the level names."""
    steps = np.arange(size + 1) / size
    law = special.betainc((size + 1) * level, (size + 1) * (1.0 - level), steps)
    return np.diff(law)


def mean_pinball(y: npt.ArrayLike, quantiles: npt.ArrayLike, levels: npt.ArrayLike) -> FloatArray:
    """Pinball loss of each row, averaged over its quantiles.

    Lower is better, at least 0, in the units of y. Over levels that are symmetric about ½ it is
    half the `weighted_interval_score`.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    quantiles : array-like of shape (n, k)
        Predicted quantiles, one column per level.
    levels : array-like of shape (k,)
        Their levels, rising, in (0, 1).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an argument leaves its domain, shapes differ, or a value is missing.

    Notes
    -----
    Source as in `pinball_loss`.

    Examples
    --------
    >>> mean_pinball([1.0], [[0.0, 2.0]], [0.25, 0.75])
    array([0.25])
    """
    truth, table, grid = check_quantiles(y, quantiles, levels)
    return weighted_pinball(truth, table, grid, np.full(len(grid), 1.0 / len(grid)))


def weighted_pinball(
    y: FloatArray, quantiles: FloatArray, levels: FloatArray, factors: FloatArray
) -> FloatArray:
    """Pinball loss of each row, summed over its quantiles with a factor each; nothing is checked.

    Examples
    --------
    >>> table, levels = np.array([[0.0, 2.0]]), np.array([0.25, 0.75])
    >>> weighted_pinball(np.array([1.0]), table, levels, np.array([1.0, 2.0]))
    array([0.75])
    """
    total = np.zeros(len(y))
    with np.errstate(over="ignore"):
        for column, level, factor in zip(quantiles.T, levels, factors, strict=True):
            total += factor * pinball(y, column, level)
    return total


def overflow_as_inf(scores: FloatArray) -> FloatArray:
    """Scores with infinity for NaN, which an overflow on both sides of a difference leaves.

    Examples
    --------
    >>> overflow_as_inf(np.array([1.0, np.nan]))
    array([ 1., inf])
    """
    return np.where(np.isnan(scores), np.inf, scores)


def _miss(y: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    return np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)


def pinball(y: FloatArray, quantile: FloatArray | float, level: float) -> FloatArray:
    """As `pinball_loss`; nothing is checked."""
    distance = y - quantile
    return np.maximum(level * distance, (level - 1.0) * distance)


def _negative(values: FloatArray) -> FloatArray:
    return -values


def _several_intervals(view: View, part: str) -> Any:
    """All central intervals that the content states: given ones, or pairs of quantiles."""
    intervals = view.find_prediction(Intervals)
    if intervals is not None and len(intervals.coverages) > 1:
        found: dict[str, Any] = {
            "lowers": intervals.lower,
            "uppers": intervals.upper,
            "coverages": np.asarray(intervals.coverages),
        }
        return found[part]
    table = view.find_prediction(Quantiles)
    if table is None:
        raise UnanswerableError("several intervals, or quantiles in pairs, are needed")
    pairs = [
        (i, int(j))
        for i, level in enumerate(table.levels)
        if level < 0.5
        for j in np.flatnonzero(np.abs(table.levels - (1.0 - level)) < 1e-9)
    ]
    if not pairs:
        raise UnanswerableError("no two quantile columns bound a central interval")
    low, high = (list(side) for side in zip(*pairs, strict=True))
    found = {
        "lowers": table.values[:, low],
        "uppers": table.values[:, high],
        "coverages": table.levels[high] - table.levels[low],
    }
    return found[part]


def _median(view: View, _: float) -> FloatArray | None:
    """The median where the content states it; None otherwise."""
    table = view.find_prediction(Quantiles)
    if table is not None and (np.abs(table.levels - 0.5) < 1e-9).any():
        return np.asarray(table.quantile([0.5])[:, 0])
    return None


def _log_density(view: View, coverage: float) -> Any:
    if view.find_prediction(Probabilities) is not None:
        raise UnanswerableError("class probabilities are no density")
    return view.ask("log_density", "log_density", view.evalset.y)


def _out_of_bounds(view: View, _: float) -> BoolArray:
    """Whether y lies beyond the quantiles at the levels 0 and 1."""
    table = view.prediction(Quantiles)
    if table.bounds is None:
        raise UnanswerableError("the quantiles have no bounds, at levels 0 and 1")
    y, (lower, upper) = view.evalset.y, table.bounds.T
    return np.asarray((y < lower) | (y > upper))


_entry = partial(
    Metric,
    question=Question.SCORE,
    direction=Direction.LOWER,
    units="y",
    laws=BY_UNIT,
    bounds=POSITIVE,
)

_ENTRIES = (
    _entry(
        name="interval_score",
        title="Interval score (Winkler)",
        synonyms=("Winkler score", "IS", "MIS", "mean interval score"),
        meaning="Width plus a penalty for each miss; proper for central intervals.",
        formula="(u − l) + (2/α)(l − y)₊ + (2/α)(y − u)₊",
        source="Gneiting and Raftery 2007, equation 43",
        forms=(
            Form(
                needs=("y", "lower", "upper"),
                keywords={"coverage": "coverage"},
                function=interval_score,
            ),
        ),
        standard_normal=4.1254,
        calibration=True,
        per_coverage=True,
        key_number=4,
        compares=3,
        beware=(
            "It is proper for central intervals of one coverage. Scores at different coverages, "
            "or of different tables, cannot be compared."
        ),
    ),
    _entry(
        name="weighted_interval_score",
        title="Weighted interval score",
        synonyms=("WIS",),
        meaning="Interval scores at several coverages in one number, with the median where given.",
        formula="[½|y − m| + Σ (α_k/2) IS_k] / (K + ½)",
        source="Bracher et al. 2021",
        forms=(row_mean(weighted_interval_score, "y", "median", "lowers", "uppers", "coverages"),),
        standard_normal=math.nan,
        key_number=13,
        compares=2,
        beware="It depends on the coverages chosen: compare models at the same ones.",
    ),
    _entry(
        name="pinball",
        title="Pinball loss",
        synonyms=("quantile loss", "quantile score", "mean pinball loss", "check loss", "QL"),
        meaning="Average quantile loss over the given levels.",
        formula="mean over levels τ of (y − q)τ if y ≥ q else (q − y)(1 − τ)",
        source="Koenker and Bassett 1978",
        forms=(row_mean(mean_pinball, "y", "quantiles", "levels"),),
        standard_normal=math.nan,
        key_number=12,
        compares=4,
        beware="It averages over the levels given: compare models at the same levels.",
    ),
    Metric(
        name="log_score",
        title="Log score",
        synonyms=(
            "NLL",
            "negative log likelihood",
            "NLPD",
            "logarithmic score",
            "log loss",
            "LogS",
            "NLPPD",
            "ignorance score",
        ),
        question=Question.SCORE,
        meaning="Negative log density of y; proper, and severe on outliers.",
        formula="−log f(y)",
        source="Good 1952",
        direction=Direction.LOWER,
        units="nats",
        forms=(
            row_mean(_negative, "log_density"),
            row_mean(itself, "class_log_score", interval="class_log_mean"),
        ),
        laws=Laws(scale="log", why="a density has units 1/y, so its logarithm shifts by log s"),
        standard_normal=1.4189,
        key_number=14,
        compares=5,
        beware=(
            "One outlier can dominate it, and it is infinite where a density is 0. Changing the "
            "unit of y adds a constant. Densities cannot be compared with probabilities of counts."
        ),
    ),
    Metric(
        name="impossible_share",
        title="Impossible outcomes",
        synonyms=("zero density share",),
        question=Question.SCORE,
        meaning="Share of rows whose y has density or probability 0 under its prediction.",
        formula="mean 1{f(y) = 0}",
        direction=Direction.LOWER,
        forms=(
            row_mean(np.isneginf, "log_density", reduce="share"),
            row_mean(np.asarray, "out_of_bounds", reduce="share"),
        ),
        standard_normal=0.0,
        target=0.0,
        bounds=SHARE,
        beware="It is 0 for any distribution with unbounded tails, however wrong they are.",
    ),
)


def _support(case: Case) -> Draft:
    record = case.get("impossible_share")
    if record.value == 0:
        raise UnanswerableError("every y is possible under its prediction")
    return of_value(record, p=0.0, facts={"record": record})


def _support_words(draft: Draft, _: Finding) -> Words:
    seen = f"{small(100.0 * draft.effect, 1)} % of y have probability 0 under their prediction"
    fault = "the predictive distribution rules out values that occurred"
    return Words(seen, fault, clause=seen)


TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("levels", lambda view, _: view.prediction(Quantiles).levels, predicted=True),
        Array("quantiles", lambda view, _: view.prediction(Quantiles).values, predicted=True),
        Array("lowers", lambda view, _: _several_intervals(view, "lowers"), predicted=True),
        Array("uppers", lambda view, _: _several_intervals(view, "uppers"), predicted=True),
        Array("coverages", lambda view, _: _several_intervals(view, "coverages"), predicted=True),
        Array("median", _median, predicted=True, by_row=True),
        Array("log_density", _log_density),
        Array("out_of_bounds", _out_of_bounds),
    ),
    findings=(
        FindingQuestion(
            id="support",
            asked="Did anything happen that the model called impossible?",
            label="Support",
            draft=_support,
            words=_support_words,
            tolerance=0.0,
            measures=("impossible_share",),
            section="Coverage",
            name="impossible outcomes",
            needs="Needed for impossible outcomes: a predictive distribution that allows them.",
        ),
    ),
)
