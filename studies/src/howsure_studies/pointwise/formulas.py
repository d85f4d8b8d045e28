"""Do intervals cover at every single point, over many training sets?

Arrays have one row a trial (a training set drawn anew, S of them) and one column a test point
(n of them). Coverage is first taken within a point over trials, then compared over points; a
single test set can only show its average. Intervals are closed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_matrix, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.binomial import clopper_pearson

_RESAMPLES: Final = 2000
_ROUNDING: Final = 1e-9
_GRAM_TRIALS: Final = 1000  # trials whose pairs tell the error of a degenerate score
_BLOCK: Final = 4_000_000  # numbers held at once while resampling: 32 MB


def interval_mass(
    lower: FloatArray, upper: FloatArray, cdf: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Probability that a new y falls in each interval, by the true law of y.

    Parameters
    ----------
    lower, upper : ndarray of float, shape (S, n) or (n,)
        Ends of the intervals, in the units of y.
    cdf : callable
        The true P(Y ≤ y), column by column; a continuous law.

    Returns
    -------
    ndarray of float
        In the shape given, in [0, 1]; the mean over trials is the `picf`.

    Notes
    -----
    P(Y ∈ PI_s(x_i)) = F_i(u_si) − F_i(l_si). Source: Sluijterman, Cator and Heskes, arXiv
    2106.03395, equations 6 and 7, with any F in place of the normal.

    Examples
    --------
    >>> interval_mass(np.array([-1.0]), np.array([1.0]), special.ndtr).round(3)
    array([0.683])
    """
    return np.asarray(cdf(upper) - cdf(lower))


def picf(
    lower: FloatArray, upper: FloatArray, cdf: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Prediction interval coverage fraction: coverage of y at each point, over trials.

    Parameters
    ----------
    lower, upper : ndarray of float, shape (S, n)
        Ends of the prediction intervals, in the units of y.
    cdf : callable
        The true P(Y ≤ y), column by column; a continuous law.

    Returns
    -------
    ndarray of float, shape (n,)
        In [0, 1]; best at the nominal coverage, at every point.

    Notes
    -----
    PICF(x_i) = mean_s P(Y ∈ PI_s(x_i)), the expectation over y taken exactly. Source:
    Sluijterman, Cator and Heskes, equation 6.

    Examples
    --------
    >>> ends = np.array([[-1.0], [-2.0]])
    >>> picf(ends, -ends, special.ndtr).round(3)
    array([0.819])
    """
    return np.asarray(interval_mass(lower, upper, cdf).mean(axis=0))


def cicf(mean: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Confidence interval coverage fraction: coverage of the mean at each point, over trials.

    Parameters
    ----------
    mean : ndarray of float, shape (n,)
        The true mean f at each point.
    lower, upper : ndarray of float, shape (S, n)
        Ends of the confidence intervals, in the units of y.

    Returns
    -------
    ndarray of float, shape (n,)
        In [0, 1]; best at the nominal coverage, at every point.

    Notes
    -----
    CICF(x_i) = mean_s 1{l_si ≤ f(x_i) ≤ u_si}. Source: Sluijterman, Cator and Heskes, section 4.

    Examples
    --------
    >>> ends = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> cicf(np.array([1.0, 1.0]), ends, ends + 1)
    array([0.5, 1. ])
    """
    return np.asarray(_inside(mean, lower, upper).mean(axis=0))


def picp(y: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Prediction interval coverage probability: the share of y covered, in each trial.

    Parameters
    ----------
    y : ndarray of float, shape (n,)
        What happened in the test set.
    lower, upper : ndarray of float, shape (S, n)
        Ends of the prediction intervals, in the units of y.

    Returns
    -------
    ndarray of float, shape (S,)
        In [0, 1]; one number a trial, whose mean is the marginal coverage.

    Notes
    -----
    PICP_s = mean_i 1{l_si ≤ y_i ≤ u_si}. Source: Sluijterman, Cator and Heskes, definition 5.

    Examples
    --------
    >>> ends = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> picp(np.array([1.0, 1.0]), ends, ends + 1)
    array([1. , 0.5])
    """
    return np.asarray(_inside(y, lower, upper).mean(axis=1))


def cicp(mean: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Confidence interval coverage probability: the share of means covered, in each trial.

    Parameters
    ----------
    mean : ndarray of float, shape (n,)
        The true mean f at each point.
    lower, upper : ndarray of float, shape (S, n)
        Ends of the confidence intervals, in the units of y.

    Returns
    -------
    ndarray of float, shape (S,)
        In [0, 1]. Even perfect intervals give numbers far from nominal in single trials, for
        errors at neighbouring points go together.

    Notes
    -----
    CICP_s = mean_i 1{l_si ≤ f(x_i) ≤ u_si}. Source: Sluijterman, Cator and Heskes, definition 6.

    Examples
    --------
    >>> ends = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> cicp(np.array([1.0, 1.0]), ends, ends + 1)
    array([1. , 0.5])
    """
    return np.asarray(_inside(mean, lower, upper).mean(axis=1))


@frozen(kw_only=True)
class Brier:
    """How far coverage at single points lies from the nominal one, squared and averaged.

    `raw` and its parts describe the coverages seen; they hold Monte-Carlo error, which shrinks
    with more trials. `corrected` and its parts estimate, without bias, what infinitely many
    trials would show; they may be negative.
    """

    # mean_i (p̄_i − (1−α))², and its two parts: the squared mean deviation, and the variance of
    # p̄_i over points
    raw: float
    raw_bias_squared: float
    raw_variance: float
    # the same three without Monte-Carlo error; NaN from a single trial
    corrected: float
    bias_squared: float
    variance: float
    # standard errors of these three over trials, with the test points held fixed; NaN from fewer
    # than three trials
    standard_error: float
    bias_squared_error: float
    variance_error: float
    # monte-Carlo error expected in `raw`: raw − corrected. It is what a method with the right
    # coverage everywhere would show.
    noise: float
    # S and n
    trials: int
    points: int


def brier(coverage_by_trial: npt.ArrayLike, coverage: float) -> Brier:
    """Brier score of pointwise coverage, raw and corrected for Monte-Carlo error.

    Parameters
    ----------
    coverage_by_trial : array-like of shape (S, n)
        For the PICF, `interval_mass`; for the CICF, whether each confidence interval holds f.
    coverage : float
        Nominal coverage 1−α, in (0, 1).

    Returns
    -------
    Brier
        Lower is better; 0 is perfect.

    Notes
    -----
    With d_si = p_si − (1−α): raw = mean_i d̄_i². Corrected = mean_i (d̄_i² − s_i²/S), s_i² the
    sample variance over trials (for 0/1 values s_i²/S = ĉ_i(1−ĉ_i)/(S−1)), which equals
    the mean of g_st = mean_i d_si d_ti over pairs of trials s ≠ t: a U-statistic, hence unbiased.
    Its error is the jackknife's over trials, whose variance counts the pairs' own part twice, less
    that part (Efron and Stein 1981), but at least √(2 mean c_st² / (S(S−1))), c_st being g_st of
    d_si − d̄_i: the error that it has where coverage is right at every point. There the
    U-statistic is degenerate, its law is that of a chi-squared less its mean, and the jackknife
    alone would be near 0 whenever the score is near its least value. Source: Sluijterman, Cator
    and Heskes, equation 8 (raw); Hoeffding 1948 (U-statistics); the correction is ours.

    Examples
    --------
    >>> score = brier([[0.8, 0.9], [0.9, 1.0], [1.0, 0.8]], 0.9)
    >>> score.raw, score.corrected
    (0.0, -0.0033)
    """
    shares = as_matrix(coverage_by_trial, "coverage_by_trial")
    if (shares < -_ROUNDING).any() or (shares > 1 + _ROUNDING).any():
        raise InputError(
            f"coverage_by_trial must be in [0, 1], got {float(shares.min()):g} to "
            f"{float(shares.max()):g}"
        )
    off = shares - check_fraction(coverage, "coverage")
    trials, points = off.shape
    mean = off.mean(axis=0)
    raw = float(np.square(mean).mean())
    raw_bias = float(mean.mean()) ** 2
    own = np.square(off).mean(axis=1)
    within = off @ mean * (trials / points)  # Σ_t of mean_i d_si d_ti
    corrected, without = _over_pairs(within, own)
    average = off.mean(axis=1)
    bias, bias_without = _over_pairs(average * float(average.sum()), np.square(average))
    some = (off - mean)[:_GRAM_TRIALS]
    table, alone = some @ some.T / points, some.mean(axis=1)
    outer = np.multiply.outer(alone, alone)
    return Brier(
        raw=raw,
        raw_bias_squared=raw_bias,
        raw_variance=max(raw - raw_bias, 0.0),
        corrected=corrected,
        bias_squared=bias,
        variance=corrected - bias,
        standard_error=_error(without, table),
        bias_squared_error=_error(bias_without, outer),
        variance_error=_error(without - bias_without, table - outer),
        noise=raw - corrected,
        trials=trials,
        points=points,
    )


@frozen(eq=False)
class CoverageBand:
    """Coverage at each point, with a band that holds at all points together."""

    value: FloatArray  # shape (n,): mean coverage over trials: PICF or CICF
    standard_error: FloatArray  # shape (n,): monte-Carlo standard error of each value
    # shape (n,): the band, within [0, 1]
    lower: FloatArray
    upper: FloatArray
    confidence: float  # nominal probability that the band holds the true coverage at every point
    pointwise_confidence: float  # the confidence of the single intervals that make up the band

    def verdict(self, coverage: float) -> IntArray:
        """Where coverage is significantly off: −1 under, +1 over, 0 neither; shape (n,).

        Examples
        --------
        >>> covers = np.zeros((50, 2)); covers[:, 1] = 1.0
        >>> coverage_band(covers, binary=True).verdict(0.5)
        array([-1,  1])
        """
        nominal = check_fraction(coverage, "coverage")
        above, below = self.lower > nominal + _ROUNDING, self.upper < nominal - _ROUNDING
        return above.astype(np.int64) - below.astype(np.int64)


def coverage_band(
    coverage_by_trial: npt.ArrayLike,
    *,
    binary: bool = False,
    confidence: float = 0.95,
    resamples: int = _RESAMPLES,
    seed: int = 0,
) -> CoverageBand:
    """Coverage at each point with a Monte-Carlo band that is simultaneous over points.

    Parameters
    ----------
    coverage_by_trial : array-like of shape (S, n)
        As for `brier`, S at least 2.
    binary : bool
        Whether the values are 0 and 1 (CICF): then the band is made of exact binomial intervals.
    confidence : float
        Nominal probability that the band holds at every point, in (0, 1).
    resamples : int
        Draws of the multiplier bootstrap.
    seed : int
        Its seed.

    Returns
    -------
    CoverageBand

    Notes
    -----
    The critical value c is the `confidence` quantile of max_i |Σ_s ξ_s (p_si − p̄_i)| / (√(S−1) s_i)
    over independent standard normal multipliers ξ_s (points with s_i = 0 left out): it knows how
    points depend on each other through shared training sets. Values in between: the logit of p̄_i
    ± c′ s_i/(√S p̄_i(1 − p̄_i)), c′ the quantile of Student's t with S − 1 degrees of freedom at
    the normal probability of c. Binary: Clopper–Pearson intervals at the confidence 2Φ(c) − 1.
    Where p_si is very skewed over trials and they are few, the band holds less often: in a
    simulation of 40 independent points with p_si = Φ(1.7 + 0.6z), 89 % at S = 50 instead of 95 %
    (94 % with 0.85 + 0.3z). Source: Degras 2017 for bands of this kind; Chernozhukov, Chetverikov
    and Kato 2013 for the multipliers; the logit is ours, as coverage is skewed near 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> band = coverage_band(rng.uniform(0.6, 1.0, size=(100, 3)))
    >>> bool((band.lower < 0.8).all() and (0.8 < band.upper).all())
    True
    """
    shares = as_matrix(coverage_by_trial, "coverage_by_trial")
    trials = len(shares)
    if trials < 2:
        raise InputError(f"coverage_by_trial must have at least 2 trials, got {trials}")
    if binary and not np.isin(shares, (0.0, 1.0)).all():
        raise InputError("coverage_by_trial must contain 0 and 1 alone where binary, got others")
    check_whole(resamples, "resamples")
    level = check_fraction(confidence, "confidence")
    value = shares.mean(axis=0)
    sd = shares.std(axis=0, ddof=1)
    sd[sd < 1e-12] = 0.0  # the same in every trial, but for rounding
    critical = _critical(shares - value, sd, level, resamples, seed)
    single = float(special.erf(critical / math.sqrt(2.0)))
    error = sd / math.sqrt(trials)
    if binary:
        lower, upper = clopper_pearson(np.round(value * trials), trials, single)
    else:
        times = float(special.stdtrit(trials - 1, 0.5 + 0.5 * single))
        room = value * (1.0 - value)
        reach = np.divide(times * error, room, out=np.zeros_like(room), where=error > 0)
        lower, upper = (special.expit(special.logit(value) + side * reach) for side in (-1, 1))
    return CoverageBand(value, error, lower, upper, level, single)


def _inside(target: FloatArray, lower: FloatArray, upper: FloatArray) -> BoolArray:
    return np.asarray((lower <= target) & (target <= upper))


def _over_pairs(within: FloatArray, own: FloatArray) -> tuple[float, FloatArray]:
    """Mean of a symmetric table over pairs s ≠ t, and the same without each trial in turn.

    The table is given by its row sums and its diagonal; leaving trial s out removes its row and
    its column.
    """
    trials = len(own)
    total = float(within.sum() - own.sum())
    value = total / (trials * (trials - 1)) if trials > 1 else math.nan
    if trials < 3:
        return value, np.full(trials, np.nan)
    return value, (total - 2.0 * (within - own)) / ((trials - 1) * (trials - 2))


def _error(without: FloatArray, table: FloatArray) -> float:
    """Jackknife standard error, at least that of a degenerate statistic.

    The jackknife counts the variance of the pairs' own part twice (Efron and Stein 1981), so one
    is taken back.

    Parameters are the values without each trial in turn, and the table of pairs of trials less
    their means (of some of the trials, where there are many).
    """
    trials, some = len(without), len(table)
    jackknife = float(np.square(without - without.mean()).sum()) * (trials - 1) / trials
    pairs = float(np.square(table).sum() - np.square(np.diag(table)).sum())
    least = 2.0 * pairs / (some * max(some - 1, 1)) / (trials * max(trials - 1, 1))
    return math.sqrt(max(jackknife - least, least)) if trials > 2 else math.nan


def _critical(
    residuals: FloatArray, sd: FloatArray, confidence: float, resamples: int, seed: int
) -> float:
    """Quantile of the largest standardised mean over points, by normal multipliers."""
    live = sd > 0
    if not live.any():
        return float(special.ndtri(0.5 + 0.5 * confidence))
    scaled = residuals[:, live] / sd[live] / math.sqrt(len(residuals) - 1)
    block = max(_BLOCK // max(scaled.shape), 1)
    largest = [
        np.abs(drawn @ scaled).max(axis=1)
        for drawn in _multipliers(seed, len(scaled), resamples, block)
    ]
    return float(np.quantile(np.concatenate(largest), confidence))


def _multipliers(seed: int, trials: int, resamples: int, block: int) -> Iterator[FloatArray]:
    """Rows of normal numbers, in blocks; the same for all measures of one study."""
    if resamples <= block:
        yield _drawn(seed, trials, resamples)
        return
    rng = child(seed, "pointwise", "band")
    for start in range(0, resamples, block):
        yield rng.standard_normal((min(block, resamples - start), trials))


@lru_cache(maxsize=1)
def _drawn(seed: int, trials: int, resamples: int) -> FloatArray:
    return child(seed, "pointwise", "band").standard_normal((resamples, trials))
