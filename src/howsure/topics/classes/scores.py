"""Scores of class probabilities: Brier, log loss, their parts, AUC, calibration errors, decisions.

Everything is written for arrays: p of shape (n, k), whose rows sum to 1, and y, the codes of the
classes that came; or, for one class, its claims and whether it came.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import DegenerateError
from howsure.core.rng import child
from howsure.core.weights import Weights
from howsure.stats.binomial import wilson
from howsure.stats.estimate import Estimate, skewed_ends, spread_of, weighted_mean

# Odds of a million to one: the least probability of which a logit is taken.
_FLOOR = 1e-6
# Draws of a perfect model: the mean of its score is then known to a seventh of its spread.
_DRAWS = 199
# Rows of the rarer class placed wrongly, below which the placements seen hardly tell their spread.
_MIN_MISPLACED = 5
# Bins of a calibration error: the number of Guo, Pleiss, Sun and Weinberger (2017).
BINS = 15
# Prior weight of the curve as stated, against separated or certain rows: that of a hundredth of a
# row of probability one half.
_RIDGE_OF_CURVE = 0.0025
# Newton's steps; a logistic curve takes some eight.
_MAX_STEPS = 50


# ---- one score per row ---------------------------------------------------------------------------


def brier_score(p: FloatArray, y: IntArray) -> FloatArray:
    """Brier score of each row, shape (n,): Σ_j (p_j − 1[y = j])², of two classes (p_1 − y)².

    Lower is better; 0 to 2, of two classes to 1. Source: G. W. Brier, Monthly Weather Review 78
    (1950), whose score of two classes is twice as large.

    >>> brier_score(np.array([[0.2, 0.8]]), np.array([1])).round(2)
    array([0.04])
    """
    if p.shape[1] == 2:
        return np.asarray(np.square(p[:, 1] - y))
    came = p[np.arange(len(p)), y]
    return np.asarray(np.square(p).sum(1) + 1.0 - 2.0 * came)


def log_loss(p: FloatArray, y: IntArray) -> FloatArray:
    """Logarithmic score of each row, shape (n,): −log p_y; infinite where what came had 0.

    Lower is better. Source: I. J. Good, JRSS B 14 (1952).

    >>> log_loss(np.array([[0.2, 0.8]]), np.array([1])).round(4)
    array([0.2231])
    """
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(p[np.arange(len(p)), y]))


def frequency_forecast(y: IntArray, classes: int, weights: FloatArray | None = None) -> FloatArray:
    """The baseline: frequencies of the classes among all other rows, shape (n, k).

    A class that no other row has gets half a row, so that its log loss is finite.
    """
    mass = np.ones(len(y)) if weights is None else weights
    others = np.bincount(y, mass, classes) - mass[:, None] * (y[:, None] == np.arange(classes))
    others = np.maximum(others, 0.5)
    return np.asarray(others / others.sum(1, keepdims=True))


# ---- intervals of means --------------------------------------------------------------------------


def mean_interval(
    scores: FloatArray,
    p: FloatArray,
    y: IntArray,
    given: FloatArray,
    clusters: IntArray | None = None,
    weights: Weights | None = None,
    confidence: float = 0.95,
    code: int = -1,
) -> tuple[float, float]:
    """Confidence interval of the mean of a score, that holds for rare and near-certain events.

    The union of two: Student's t, corrected for skewness (`skewed_ends`), and what the score is
    expected to be under the shifts of the odds of a class that y permits, by a score test on the
    rows that have a score. Where few or no errors happened, scores hardly vary, and the first
    alone would be far too short.

    Parameters
    ----------
    scores : array of shape (n,)
        As they came: ``given[i, y[i]]``.
    p, y : arrays of shape (n, k) and (n,)
    given : array of shape (n, k)
        The score of each row for each class that may come.
    code : int
        The class; -1 is the likeliest of each row.
    """
    mass = None if weights is None else weights.values
    mean = weighted_mean(scores, mass)
    spread = spread_of(scores - mean, weights, clusters)
    low, high = (float(end[0]) for end in skewed_ends(mean, spread, confidence))
    z = float(special.ndtri(0.5 + confidence / 2))
    place = p.argmax(1) if code < 0 else np.full(len(p), code)
    claims, came = p[np.arange(len(p)), place], place == y
    logit = special.logit(np.clip(claims, _FLOOR, 1 - _FLOOR))
    shifted = np.arange(p.shape[1]) == place[:, None]
    scored = given.any(1) * (np.ones(len(p)) if mass is None else mass)
    if not scored.any():
        return low, high
    worth = _effective_share(claims, came, clusters, scored)
    ends = [low, high]
    for step in _permitted_shifts(logit, came, scored, z / math.sqrt(worth)):
        new = special.expit(logit + step)[:, None]
        rest = np.where(shifted, 0.0, p)
        rest = rest / np.maximum(rest.sum(1, keepdims=True), 1e-300)
        moved = np.where(shifted, new, (1 - new) * rest)
        expected = np.where(moved > 0, moved * np.where(moved > 0, given, 0.0), 0.0).sum(1)
        ends.append(weighted_mean(expected, mass))
    if not math.isfinite(mean):
        return math.nan, math.nan
    return float(np.nanmin(ends)), float(np.nanmax(ends))


def _effective_share(
    claims: FloatArray, came: BoolArray, clusters: IntArray | None, w: FloatArray
) -> float:
    """Effective rows for each row that counts: less than 1 where rows of a cluster go together."""
    kish = float(w.sum() ** 2 / np.square(w).sum()) / np.count_nonzero(w)
    if clusters is None:
        return kish
    residuals = w * (came - claims)
    sums = np.bincount(clusters, residuals)
    size = np.bincount(clusters, w)
    square = float(np.square(sums - size * residuals.sum() / w.sum()).sum())
    alone = float((np.square(w) * np.clip(claims * (1 - claims), 1e-12, None)).sum())
    return kish / max(square / alone, 1.0)


def _permitted_shifts(
    logit: FloatArray, came: BoolArray, w: FloatArray, z: float
) -> tuple[float, float]:
    """The least and greatest shift of logits whose score test does not reject what came."""
    w = w * (np.count_nonzero(w) / w.sum())
    total = float(w @ came)
    ends = []
    for sign in (-1.0, 1.0):
        low, high = -30.0, 30.0
        for _ in range(60):  # halves 60 to 10⁻¹⁶
            middle = (low + high) / 2
            m = special.expit(logit + middle)
            t = (float(w @ m) - total) / math.sqrt(float(w @ (m * (1 - m))) + 1e-300)
            low, high = (middle, high) if t < sign * z else (low, middle)
        ends.append((low + high) / 2)
    return ends[0], ends[1]


# ---- discrimination ------------------------------------------------------------------------------


def auc(
    claims: FloatArray,
    came: BoolArray,
    clusters: IntArray | None = None,
    weights: Weights | None = None,
    confidence: float = 0.95,
) -> Estimate:
    """Area under the ROC curve: the chance that an event has the higher claim, ties one half.

    Its influence values are the placements of E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson,
    Biometrics 44 (1988); the interval is symmetric in the logit. Where few rows are misplaced, it
    is no shorter than that of a share of as many rows as the rarer class has.

    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1]) == 1).value
    0.75
    """
    mass = np.ones(len(claims)) if weights is None else weights.values
    positive, negative = float(mass[came].sum()), float(mass[~came].sum())
    if not positive or not negative:
        raise DegenerateError("AUC needs rows with the class and rows without it")
    placements = np.empty(len(claims))
    for side in (came, ~came):
        order = np.argsort(claims[~side], kind="stable")
        upto = np.append(0.0, np.cumsum(mass[~side][order]))
        sorted_claims = claims[~side][order]
        low = upto[np.searchsorted(sorted_claims, claims[side], "left")]
        high = upto[np.searchsorted(sorted_claims, claims[side], "right")]
        placements[side] = (low + high) / 2 / upto[-1]
    placements[~came] = 1 - placements[~came]
    value = float(np.average(placements[came], weights=mass[came]))
    total = positive + negative
    influence = (placements - value) * np.where(came, total / positive, total / negative)
    spread = spread_of(influence, weights, clusters)
    error, few = float(spread.error[0]), min(positive, negative)
    lower, upper = (float(end) for end in wilson(value * few, few, confidence))
    if 0 < value < 1 and error > 0:
        t = float(special.stdtrit(max(float(spread.degrees[0]), 1.0), 0.5 + confidence / 2))
        half = t * error / (value * (1 - value))
        ends = special.expit(special.logit(value) + np.array([-half, half])).tolist()
        enough = few * min(value, 1 - value) >= _MIN_MISPLACED
        lower, upper = ends if enough else (min(lower, ends[0]), max(upper, ends[1]))
    return Estimate(value, influence, error=error, lower=lower, upper=upper)


# ---- calibration errors --------------------------------------------------------------------------


def ece(claims: FloatArray, came: BoolArray, bins: int = BINS, seed: int = 0) -> Estimate:
    """Expected calibration error in bins of equal width, beside that of a perfect model.

    Σ_b |Σ_{i in b} (y_i − p_i)|/n. It is no error of the model alone: a perfect model shows
    `null`, which falls with n and rises with the number of bins. Source: C. Guo, G. Pleiss, Y. Sun
    and K. Q. Weinberger, ICML (2017).
    """
    at = np.minimum((claims * bins).astype(np.int64), bins - 1)
    return _beside_perfect(
        claims,
        came,
        lambda residuals: float(np.abs(np.bincount(at, residuals, bins)).sum() / len(at)),
        seed,
    )


def squared_calibration_error(
    claims: FloatArray, came: BoolArray, bins: int = BINS, seed: int = 0
) -> Estimate:
    """Squared calibration error without bias, in bins of equal number: 0 on average if perfect.

    Σ_b Σ_{i ≠ j in b} r_i r_j/((m_b − 1) n) with r = y − p: products of two rows do not hold the
    noise of one. Negative by chance. Source: J. Bröcker, Climate Dynamics 39 (2012), and A. Kumar,
    P. Liang and T. Ma, NeurIPS (2019), for the bias that this avoids.
    """
    parts = np.array_split(np.argsort(claims, kind="stable"), min(bins, max(len(claims) // 2, 1)))
    at = np.empty(len(claims), dtype=np.int64)
    for place, part in enumerate(parts):
        at[part] = place
    size = np.maximum(np.bincount(at) - 1.0, 1.0)

    def value(residuals: FloatArray) -> float:
        products = np.square(np.bincount(at, residuals)) - np.bincount(at, np.square(residuals))
        return float((products / size).sum() / len(at))

    return _beside_perfect(claims, came, value, seed)


def _beside_perfect(
    claims: FloatArray, came: BoolArray, value: Callable[[FloatArray], float], seed: int
) -> Estimate:
    """A number of residuals, with its mean and 95 % range for y drawn from the claims."""
    rng = child(seed, "calibration error")
    drawn = np.array([value((rng.random(len(claims)) < claims) - claims) for _ in range(_DRAWS)])
    seen = value(came - claims)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(
        seen,
        null=float(drawn.mean()),
        null_lower=float(low),
        null_upper=float(high),
        p=float((1 + np.sum(drawn >= seen)) / (1 + len(drawn))),
    )


# ---- a fitted calibration curve ------------------------------------------------------------------


@frozen(eq=False)
class CalibrationFit:
    """The logistic curve of what came on logit p, with its interval, at some claims.

    logit P(came) = a + b logit(claim). Two numbers are known from fewer rows than the share of
    each cell, so that "yes" can be said earlier; the questions look for what such a curve misses.
    """

    claims: FloatArray  # where it is read
    fitted: FloatArray
    lower: FloatArray  # pointwise 95 % interval
    upper: FloatArray
    bound: float  # mean over rows of the farthest that the interval lies from the claim
    intercept: float
    slope: float


def fit_curve(
    claims: FloatArray,
    came: BoolArray,
    at: FloatArray | None = None,
    clusters: IntArray | None = None,
    weights: FloatArray | None = None,
    confidence: float = 0.95,
) -> CalibrationFit:
    """Fit the curve, and read it at claims: by default the deciles of those stated.

    Clusters widen the interval by the variance of their scores, never shorten it.

    >>> claims = np.repeat([0.3, 0.8], 500)
    >>> fit = fit_curve(claims, np.arange(1000) % 10 < 10 * claims)
    >>> bool(fit.bound < 0.05), fit.fitted.round(2)[[0, -1]]
    (True, array([0.3, 0.8]))
    """
    at = np.unique(np.quantile(claims, np.arange(1, 10) / 10)) if at is None else at
    w = np.ones(len(claims)) if weights is None else weights
    logit = special.logit(np.clip(claims, _FLOOR, 1 - _FLOOR))
    centre, scale = float(np.average(logit, weights=w)), max(float(logit.std()), 1e-9)
    flat = scale < 1e-6  # one claim: no slope can be known
    columns = (
        np.ones((len(logit), 1))
        if flat
        else np.column_stack([np.ones(len(logit)), (logit - centre) / scale])
    )
    theta = np.zeros(columns.shape[1])
    ridge = np.full(len(theta), _RIDGE_OF_CURVE)
    for _ in range(_MAX_STEPS):
        m = special.expit(logit + columns @ theta)
        hessian = (columns * (w * m * (1 - m))[:, None]).T @ columns + np.diag(ridge)
        step = np.linalg.solve(hessian, columns.T @ (w * (came - m)) - ridge * theta)
        theta = theta + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-9:
            break
    inverse = np.linalg.inv(hessian)
    scores = columns * (w * (came - m))[:, None]
    if weights is not None:
        inverse = inverse @ ((columns * (w**2 * m * (1 - m))[:, None]).T @ columns) @ inverse
    t = float(special.ndtri(0.5 + confidence / 2))
    covariances = [inverse]
    if clusters is not None:
        codes = np.unique(clusters, return_inverse=True)[1]
        count = int(codes.max()) + 1
        sums = np.stack([np.bincount(codes, column) for column in scores.T], 1)
        robust = np.linalg.inv(hessian) @ (sums.T @ sums) @ np.linalg.inv(hessian)
        covariances.append(robust * count / max(count - 1, 1))
        t = float(special.stdtrit(max(count - 1, 1), 0.5 + confidence / 2))

    def read(claim: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        x = special.logit(np.clip(claim, _FLOOR, 1 - _FLOOR))
        where = (
            np.ones((len(x), 1))
            if flat
            else np.column_stack([np.ones(len(x)), (x - centre) / scale])
        )
        middle = x + where @ theta
        half = t * np.sqrt(
            np.max([np.einsum("ia,ab,ib->i", where, each, where) for each in covariances], 0)
        )
        ends = special.expit(np.stack([middle, middle - half, middle + half]))
        return ends[0], ends[1], ends[2]

    _, low, high = read(claims)
    bound = float(np.average(np.maximum(np.abs(low - claims), np.abs(high - claims)), weights=w))
    slope = 1.0 + (0.0 if flat else float(theta[1]) / scale)
    intercept = float(theta[0]) - (0.0 if flat else float(theta[1]) * centre / scale)
    fitted, lower, upper = read(at)
    return CalibrationFit(at, fitted, lower, upper, bound, intercept, slope)


# ---- decisions at a threshold --------------------------------------------------------------------


@frozen
class NetBenefit:
    """How acting where p ≥ t fares, beside acting on all rows; acting on none has 0.

    Net benefit counts events acted on, less rows acted on in vain, each at the odds t/(1 − t).
    Source: A. J. Vickers and E. B. Elkin, Medical Decision Making 26 (2006).
    """

    threshold: float
    acts: float  # share of rows acted on
    benefit: float
    lower: float
    upper: float
    of_all: float  # net benefit of acting on all
    beyond: float  # benefit less the better of all and none
    beyond_lower: float
    beyond_upper: float
    fitted: float  # the calibration curve at the threshold
    fitted_lower: float
    fitted_upper: float
    p: float  # one-sided: the chance of as little beyond all and none, were it 0


def net_benefit(
    claims: FloatArray,
    came: BoolArray,
    threshold: float,
    clusters: IntArray | None = None,
    weights: Weights | None = None,
    confidence: float = 0.95,
) -> NetBenefit:
    """Net benefit of acting where the claim reaches a threshold, with intervals.

    >>> claims = np.array([0.1, 0.3, 0.6, 0.9])
    >>> round(net_benefit(claims, np.array([0, 0, 1, 1]) == 1, 0.2).benefit, 4)
    0.4375
    """
    odds = check_fraction(threshold, "threshold") / (1 - threshold)
    p = np.column_stack([1 - claims, claims])
    y = came.astype(np.int64)
    act = claims >= threshold
    worth = np.column_stack([np.full(len(claims), -odds), np.ones(len(claims))])
    mine = worth * act[:, None]
    mass = None if weights is None else weights.values

    def judge(given: FloatArray) -> tuple[float, float, float]:
        scores = given[np.arange(len(y)), y]
        ends = mean_interval(scores, p, y, given, clusters, weights, confidence, code=1)
        return (weighted_mean(scores, mass), *ends)

    of_all = weighted_mean(worth[np.arange(len(y)), y], mass)
    beyond = judge(mine - worth if of_all > 0 else mine)
    z = float(special.ndtri(0.5 + confidence / 2))
    near = fit_curve(claims, came, np.array([threshold]), clusters, mass, confidence)
    return NetBenefit(
        threshold,
        weighted_mean(act.astype(np.float64), mass),
        *judge(mine),
        of_all,
        *beyond,
        float(near.fitted[0]),
        float(near.lower[0]),
        float(near.upper[0]),
        float(special.ndtr(z * beyond[0] / max(beyond[2] - beyond[0], 1e-300))),
    )
