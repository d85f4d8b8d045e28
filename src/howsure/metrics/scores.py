"""Proper scores of intervals, quantiles, samples and laws, one number a row.

Every score here is negatively oriented: lower is better, and in expectation no belief scores
better than the right one. Their mean over rows tests the marginal notion, calibration and
sharpness in one number, in the units of y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import (
    FloatArray,
    IntArray,
    as_matrix,
    as_vector,
    check_fraction,
    check_interval,
    check_levels,
)
from howsure.core.errors import InputError

RowCdf = Callable[[FloatArray, IntArray], FloatArray]
"""P(Y ≤ x) at values (m, k), where line i belongs to row ``rows[i]`` of the prediction."""

_BLOCK = 4096  # rows treated at once, which bounds memory
_TOLERANCE = 1e-7  # estimated error of a run, as a share of the score
_TAIL = 1e-9  # what the neglected tail may add, as a share of the score
_DOUBLINGS = 300  # runs after which a tail counts as without end
_HALVINGS = 60
_MAX_CLOSED_SIZE = 2000.0  # size of a negative binomial up to which 2F1 is accurate


# --- intervals and quantiles ---------------------------------------------------------------------


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
        return _finite_or_inf((high - low) + (2.0 / alpha) * _miss(truth, low, high))


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
        return _finite_or_inf(total / parts)


def pinball(y: npt.ArrayLike, quantile: npt.ArrayLike, *, level: float) -> FloatArray:
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
    >>> pinball([1.0, 3.0], [2.0, 2.0], level=0.9)
    array([0.1, 0.9])
    """
    truth = as_vector(y, "y")
    predicted = as_vector(quantile, "quantile", length=len(truth))
    with np.errstate(over="ignore"):
        return _pinball(truth, predicted, check_fraction(level, "level"))


def mean_pinball(y: npt.ArrayLike, quantiles: npt.ArrayLike, levels: npt.ArrayLike) -> FloatArray:
    """Pinball loss of each row, averaged over its quantiles.

    Lower is better, at least 0, in the units of y. Over levels that are symmetric about ½ it is
    half the `weighted_interval_score`.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    quantiles : array-like of shape (n, k)
        Predicted quantiles, one column a level.
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
    Source as in `pinball`.

    Examples
    --------
    >>> mean_pinball([1.0], [[0.0, 2.0]], [0.25, 0.75])
    array([0.25])
    """
    truth, table, grid = _check_quantiles(y, quantiles, levels)
    return _weighted_pinball(truth, table, grid, np.full(len(grid), 1.0 / len(grid)))


def squared_z(y: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike) -> FloatArray:
    """Squared z-score of each row, (y − mean)²/sd².

    Its mean is 1 where the predicted variances are right on average; above 1 means overconfident.
    Closer to 1 is better; no units. Not a proper score by itself.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's predicted mean and standard deviation (above 0).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an sd is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Pernot (2024), arXiv:2402.10043.

    Examples
    --------
    >>> squared_z([1.0, 4.0], [0.0, 0.0], [1.0, 2.0])
    array([1., 4.])
    """
    truth, centre, scale = _check_located(y, ("mean", mean), ("sd", sd))
    with np.errstate(over="ignore"):
        return np.square((truth - centre) / scale)


# --- CRPS of quantiles and samples ---------------------------------------------------------------


def crps_quantiles(y: npt.ArrayLike, quantiles: npt.ArrayLike, levels: npt.ArrayLike) -> FloatArray:
    """CRPS of each row from its quantiles alone, truncated at the outermost levels.

    2 ∫ pinball_τ(y, q_τ) dτ from the first to the last level, by the trapezoid over the given
    levels. What lies beyond the outermost levels is unknown and left out (see
    `truncation_note`), so values over other levels are not comparable. Lower is better, at least
    0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    quantiles : array-like of shape (n, k)
        Predicted quantiles, one column a level, k ≥ 2.
    levels : array-like of shape (k,)
        Their levels, rising, in (0, 1).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an argument leaves its domain, shapes differ, or there are fewer than two levels.

    Notes
    -----
    Laio and Tamea (2007), Verification tools for probabilistic forecasts of continuous
    hydrological variables, Hydrology and Earth System Sciences 11.

    Examples
    --------
    >>> crps_quantiles([0.0], [[-1.0, 0.0, 1.0]], [0.25, 0.5, 0.75])
    array([0.125])
    """
    truth, table, grid = _check_quantiles(y, quantiles, levels)
    if len(grid) < 2:
        raise InputError(f"levels must hold at least 2 levels for a CRPS, got {len(grid)}")
    gaps = np.diff(grid)
    factors = np.append(gaps, 0.0) + np.append(0.0, gaps)  # 2 × half of each neighbouring gap
    return _weighted_pinball(truth, table, grid, factors)


def truncation_note(levels: npt.ArrayLike) -> str:
    """Say what `crps_quantiles` leaves out.

    Raises
    ------
    InputError
        If the levels do not rise inside (0, 1).

    Examples
    --------
    >>> truncation_note([0.05, 0.5, 0.95])
    'truncated: integrated over levels 0.05 to 0.95 only'
    """
    grid = check_levels(levels)
    return f"truncated: integrated over levels {grid[0]:g} to {grid[-1]:g} only"


def crps_samples(y: npt.ArrayLike, samples: npt.ArrayLike, *, fair: bool = True) -> FloatArray:
    """CRPS of each row from samples, in O(m log m) a row.

    mean_j |s_j − y| − ½ mean_{j,k} |s_j − s_k|. The mean over pairs divides by m² (the CRPS of
    the samples' own step function), or, ``fair``, by m(m − 1): then its expectation is the CRPS of
    the law that the samples were drawn from, whatever m is. Lower is better, in the units of y; a
    fair score may be negative.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    samples : array-like of shape (n, m)
        Draws from each row's law; at least two for a fair score.
    fair : bool
        Whether to judge the law behind the draws rather than the draws.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If shapes differ, a value is missing, or a fair score is asked of one sample.

    Notes
    -----
    Gneiting and Raftery (2007), eq. 21; fair version: Ferro (2014), Fair scores for ensemble
    forecasts, Quarterly Journal of the Royal Meteorological Society 140. Sorted, the sum
    over pairs is Σ_j 2(2j − m − 1) s_(j).

    Examples
    --------
    >>> crps_samples([0.0], [[-1.0, 1.0]], fair=False), crps_samples([0.0], [[-1.0, 1.0]])
    (array([0.5]), array([0.]))
    """
    truth = as_vector(y, "y")
    table = as_matrix(samples, "samples", length=len(truth))
    size = table.shape[1]
    if fair and size < 2:
        raise InputError("samples must hold at least 2 columns for a fair score, got 1")
    rank = 2.0 * np.arange(1, size + 1) - size - 1.0
    factor = rank / (size * (size - 1 if fair else size))
    scores = np.empty(len(truth))
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(truth), _BLOCK):
            rows = slice(start, start + _BLOCK)
            distance = np.sort(table[rows] - truth[rows, None], axis=1)
            scores[rows] = np.abs(distance).mean(axis=1) - distance @ factor
    return _finite_or_inf(scores)


# --- CRPS of laws: closed forms ------------------------------------------------------------------


def crps_normal(y: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's normal law.

    σ [z(2Φ(z) − 1) + 2φ(z) − 1/√π] with z = (y − mean)/σ. Lower is better, at least 0, in the
    units of y.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's mean and standard deviation (above 0).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an sd is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Gneiting, Raftery, Westveld and Goldman (2005), Calibrated probabilistic forecasting using
    ensemble model output statistics and minimum CRPS estimation, Monthly Weather Review 133, eq. 5.

    Examples
    --------
    >>> crps_normal([0.0], [0.0], [1.0])
    array([0.2337])
    """
    truth, centre, scale = _check_located(y, ("mean", mean), ("sd", sd))
    with np.errstate(over="ignore"):
        distance = np.abs(truth - centre)
        z = distance / scale
        density = np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi)
    inside = special.erf(z / np.sqrt(2.0))
    return np.asarray(distance * inside + scale * (2.0 * density - np.pi**-0.5))


def crps_logistic(y: npt.ArrayLike, location: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's logistic law: s [|z| + 2 log(1 + e^−|z|) − 1], z = (y − location)/s.

    Lower is better, at least 0, in the units of y.

    Parameters
    ----------
    y, location, scale : array-like of shape (n,)
        What happened, and each row's mean and scale s (above 0; the sd is πs/√3).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a scale is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Jordan, Krüger and Lerch (2019), Evaluating probabilistic forecasts with scoringRules, Journal
    of Statistical Software 90, appendix A.

    Examples
    --------
    >>> crps_logistic([0.0], [0.0], [1.0])
    array([0.3863])
    """
    truth, centre, width = _check_located(y, ("location", location), ("scale", scale))
    with np.errstate(over="ignore"):
        distance = np.abs(truth - centre)
        z = distance / width
    return distance + width * (2.0 * np.log1p(np.exp(-z)) - 1.0)


def crps_laplace(y: npt.ArrayLike, location: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's Laplace law: s [|z| + e^−|z| − ¾], z = (y − location)/s.

    Lower is better, at least 0, in the units of y.

    Parameters
    ----------
    y, location, scale : array-like of shape (n,)
        What happened, and each row's mean and scale s (above 0; the sd is s√2).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a scale is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Jordan, Krüger and Lerch (2019), appendix A.

    Examples
    --------
    >>> crps_laplace([0.0], [0.0], [1.0])
    array([0.25])
    """
    truth, centre, width = _check_located(y, ("location", location), ("scale", scale))
    with np.errstate(over="ignore"):
        distance = np.abs(truth - centre)
        z = distance / width
    return distance + width * (np.exp(-z) - 0.75)


def crps_t(
    y: npt.ArrayLike, freedom: npt.ArrayLike, location: npt.ArrayLike, scale: npt.ArrayLike
) -> FloatArray:
    """CRPS of each row's Student t law.

    s [z(2F(z) − 1) + 2f(z)(ν + z²)/(ν − 1) − (2√ν/(ν − 1)) B(½, ν − ½)/B(½, ν/2)²] with
    z = (y − location)/s and ν degrees of freedom. Lower is better, at least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    freedom : array-like of shape (n,)
        Degrees of freedom ν, above 1.
    location, scale : array-like of shape (n,)
        Centre, and scale s (above 0).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a parameter leaves its domain, lengths differ, or a value is missing. From ν > ½ the
        score exists and `crps_numeric` gives it.

    Notes
    -----
    Jordan, Krüger and Lerch (2019), appendix A.

    Examples
    --------
    >>> crps_t([0.0], [5.0], [0.0], [1.0])
    array([0.2570])
    """
    truth, centre, width = _check_located(y, ("location", location), ("scale", scale))
    nu = as_vector(freedom, "freedom", length=len(truth))
    _check_above(nu, "freedom", 1.0)
    with np.errstate(over="ignore"):
        distance = np.abs(truth - centre)
        z = np.minimum(distance / width, 1e300)
    log_density = (
        -0.5 * (nu + 1.0) * 2.0 * np.log(np.hypot(1.0, z / np.sqrt(nu)))
        - 0.5 * np.log(nu)
        - special.betaln(0.5, 0.5 * nu)
    )
    falling = 2.0 * np.exp(log_density + 2.0 * np.log(np.hypot(np.sqrt(nu), z))) / (nu - 1.0)
    pairs = np.exp(special.betaln(0.5, nu - 0.5) - 2.0 * special.betaln(0.5, 0.5 * nu))
    inside = 2.0 * special.stdtr(nu, z) - 1.0
    return distance * inside + width * (falling - 2.0 * np.sqrt(nu) / (nu - 1.0) * pairs)


def crps_lognormal(y: npt.ArrayLike, mu: npt.ArrayLike, sigma: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's lognormal law.

    y(2F(y) − 1) − 2 e^{μ+σ²/2} [Φ(z − σ) − Φ(−σ/√2)] with z = (log y − μ)/σ. Lower is better, at
    least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened; any sign.
    mu, sigma : array-like of shape (n,)
        Mean and standard deviation (above 0) of log Y.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a sigma is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Jordan, Krüger and Lerch (2019), appendix A.

    Examples
    --------
    >>> crps_lognormal([1.0], [0.0], [1.0])
    array([0.2674])
    """
    truth, centre, width = _check_located(y, ("mu", mu), ("sigma", sigma))
    positive = truth > 0.0
    logs = np.log(np.where(positive, truth, 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.where(positive, (logs - centre) / width, -np.inf)
        log_mean = centre + 0.5 * np.square(width)
        below = np.exp(log_mean + special.log_ndtr(z - width))
        pairs = np.exp(log_mean + special.log_ndtr(-width / np.sqrt(2.0)))
        return _finite_or_inf(truth * special.erf(z / np.sqrt(2.0)) - 2.0 * (below - pairs))


def crps_gamma(y: npt.ArrayLike, shape: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's gamma law.

    y(2F_k(y) − 1) − kθ(2F_{k+1}(y) − 1) − θ/B(½, k), where F_k has shape k and scale θ. Lower is
    better, at least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened; any sign.
    shape, scale : array-like of shape (n,)
        k and θ, both above 0; the mean is kθ.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a parameter is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Jordan, Krüger and Lerch (2019), appendix A.

    Examples
    --------
    >>> crps_gamma([1.0], [1.0], [1.0])
    array([0.2358])
    """
    truth = as_vector(y, "y")
    k = as_vector(shape, "shape", length=len(truth))
    theta = as_vector(scale, "scale", length=len(truth))
    _check_above(k, "shape", 0.0)
    _check_above(theta, "scale", 0.0)
    with np.errstate(over="ignore"):
        z = np.maximum(truth / theta, 0.0)
    own = 2.0 * special.gammainc(k, z) - 1.0
    next_shape = 2.0 * special.gammainc(k + 1.0, z) - 1.0
    return truth * own - k * theta * next_shape - theta * np.exp(-special.betaln(0.5, k))


def crps_poisson(y: npt.ArrayLike, rate: npt.ArrayLike) -> FloatArray:
    """CRPS (ranked probability score) of each row's Poisson law.

    y(2F(y) − 1) − λ(2F(y − 1) − 1) − λ e^{−2λ} [I₀(2λ) + I₁(2λ)]. Lower is better, at least 0,
    in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened; whole or not, any sign.
    rate : array-like of shape (n,)
        λ, at least 0.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a rate is negative, lengths differ, or a value is missing.

    Notes
    -----
    Wei and Held (2014), Calibration tests for count data, TEST 23.

    Examples
    --------
    >>> crps_poisson([1.0], [1.0])
    array([0.2120])
    """
    truth = as_vector(y, "y")
    mean = as_vector(rate, "rate", length=len(truth))
    if (mean < 0.0).any():
        row = int(np.argmax(mean < 0.0))
        raise InputError(f"rate must not be negative, got {mean[row]:g} (first at row {row})")
    below = 2.0 * _poisson_cdf(truth, mean) - 1.0
    shifted = 2.0 * _poisson_cdf(truth - 1.0, mean) - 1.0
    pairs = mean * (special.i0e(2.0 * mean) + special.i1e(2.0 * mean))
    return truth * below - mean * shifted - pairs


def crps_negative_binomial(
    y: npt.ArrayLike, size: npt.ArrayLike, probability: npt.ArrayLike
) -> FloatArray:
    """CRPS of each row's negative binomial law: failures before the size-th success.

    y(2F_{n,p}(y) − 1) − μ(2F_{n+1,p}(y − 1) − 1) − E|Y − Y'|/2 with μ = n(1 − p)/p and
    E|Y − Y'|/2 = μ/(2 − p) · ₂F₁(1 − n, ½; 2; 4(1 − p)/(2 − p)²). Lower is better, at least 0, in
    the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened; whole or not, any sign.
    size : array-like of shape (n,)
        Number of successes n, above 0, whole or not.
    probability : array-like of shape (n,)
        Probability of success p, in (0, 1].

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If a parameter leaves its domain, lengths differ, or a value is missing.

    Notes
    -----
    Wei and Held (2014), after Pfaff's transformation of ₂F₁, which keeps its argument
    inside [0, 1]. Beyond a size of 2,000, where ₂F₁ loses its digits, `crps_lattice` is used.

    Examples
    --------
    >>> crps_negative_binomial([1.0], [2.0], [0.5])
    array([0.4630])
    """
    truth = as_vector(y, "y")
    successes = as_vector(size, "size", length=len(truth))
    chance = as_vector(probability, "probability", length=len(truth))
    _check_above(successes, "size", 0.0)
    outside = (chance <= 0.0) | (chance > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"probability must lie in (0, 1], got {chance[row]:g} (first at row {row})"
        )
    mean = successes * (1.0 - chance) / chance
    below = 2.0 * _negative_binomial_cdf(truth, successes, chance) - 1.0
    shifted = 2.0 * _negative_binomial_cdf(truth - 1.0, successes + 1.0, chance) - 1.0
    argument = 4.0 * (1.0 - chance) / np.square(2.0 - chance)
    few = np.minimum(successes, _MAX_CLOSED_SIZE)
    pairs = mean / (2.0 - chance) * special.hyp2f1(1.0 - few, 0.5, 2.0, argument)
    scores = truth * below - mean * shifted - pairs
    many = np.flatnonzero(successes > _MAX_CLOSED_SIZE)
    if len(many):

        def cdf(values: FloatArray, rows: IntArray) -> FloatArray:
            chosen = many[rows, None]
            return _negative_binomial_cdf(values, successes[chosen], chance[chosen])

        spread = np.sqrt(mean[many] / chance[many]) + 1.0
        scores[many] = crps_lattice(truth[many], cdf, spread)
    return scores


def crps_closed(
    family: str, y: npt.ArrayLike, parameters: Mapping[str, FloatArray]
) -> FloatArray | None:
    """CRPS of each row's law of ``scipy.stats``, where a closed form is known.

    Parameters
    ----------
    family : str
        Name in ``scipy.stats``: norm, logistic, laplace, t, lognorm, gamma, expon, poisson, nbinom.
    y : array-like of shape (n,)
        What happened.
    parameters : mapping of str to ndarray of shape (n,)
        The law's parameters by SciPy's names, ``loc`` and, if continuous, ``scale`` included.

    Returns
    -------
    ndarray of float, shape (n,), or None
        None where the family has no closed form here, or not for these parameters; then use
        `crps_numeric` or `crps_lattice`.

    Raises
    ------
    InputError
        As the closed form does.

    Examples
    --------
    >>> zero, one = np.zeros(1), np.ones(1)
    >>> crps_closed("expon", [1.0], {"loc": zero, "scale": one})
    array([0.2358])
    >>> crps_closed("beta", [0.5], {"a": one, "b": one, "loc": zero, "scale": one}) is None
    True
    """
    location = parameters.get("loc", np.zeros(1))
    scale = parameters.get("scale", np.ones(1))
    if family == "norm":
        return crps_normal(y, location, scale)
    if family == "logistic":
        return crps_logistic(y, location, scale)
    if family == "laplace":
        return crps_laplace(y, location, scale)
    if family == "t" and (parameters["df"] > 1.0).all():
        return crps_t(y, parameters["df"], location, scale)
    moved = as_vector(y, "y") - location
    if family == "lognorm":
        return crps_lognormal(moved, np.log(scale), parameters["s"])
    if family == "gamma":
        return crps_gamma(moved, parameters["a"], scale)
    if family == "expon":
        return crps_gamma(moved, np.ones(len(moved)), scale)
    if family == "poisson":
        return crps_poisson(moved, parameters["mu"])
    if family == "nbinom":
        return crps_negative_binomial(moved, parameters["n"], parameters["p"])
    return None


# --- CRPS of laws: any law through its cdf -------------------------------------------------------


def crps_numeric(y: npt.ArrayLike, cdf: RowCdf, spread: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's law through its cumulative probabilities, to about 1e-7 of itself.

    ∫_{−∞}^{y} F(x)² dx + ∫_{y}^{∞} (1 − F(x))² dx. From y outwards both integrands only fall, so
    each side is integrated over runs of doubling length until what is left is negligible, by a
    17-point Clenshaw–Curtis rule; a run that 17 Chebyshev terms do not describe is halved. Lower
    is better, at least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    cdf : callable
        ``cdf(values, rows)`` with values (m, k) and rows (m,) gives P(Y ≤ value) of shape (m, k),
        where line i of the values belongs to row ``rows[i]``.
    spread : array-like of shape (n,)
        About the width of each law, at least 0, such as its sd or a difference of quantiles. Only
        speed depends on it.

    Returns
    -------
    ndarray of float, shape (n,)
        NaN where the integral does not converge, as for t laws of ½ degree of freedom or less.

    Raises
    ------
    InputError
        If a spread is negative, lengths differ, or a value is missing.

    Notes
    -----
    Matheson and Winkler (1976), Scoring rules for continuous probability distributions,
    Management Science 22; Gneiting and Raftery (2007), eq. 20. Some 100 to 150 evaluations of the
    law a row. Tails whose index is below about 0.6 lose digits, as 1 − F does. For laws on the
    whole numbers use `crps_lattice`.

    Examples
    --------
    >>> from scipy import special
    >>> crps_numeric([0.0], lambda values, rows: special.ndtr(values), [1.0])
    array([0.2337])
    """
    truth = as_vector(y, "y")
    width = _check_spread(spread, truth)
    scores = np.empty(len(truth))
    for start in range(0, len(truth), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(truth)))
        scores[rows] = _two_sided(truth[rows], width[rows], cdf, rows, lattice=False)
    return scores


def crps_lattice(y: npt.ArrayLike, cdf: RowCdf, spread: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's law on the whole numbers, to about 1e-7 of itself or exactly.

    The integral of `crps_numeric`, which for a law on the whole numbers is the sum over k of
    (F(k) − 1{k ≥ y})² where y is whole. Runs of up to 32 numbers are summed term by term; longer
    ones by a 17-point rule that sums polynomials exactly, and halved where it does not suffice.
    Lower is better, at least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened; whole or not.
    cdf, spread
        As in `crps_numeric`; ``cdf`` is asked at whole numbers only.

    Returns
    -------
    ndarray of float, shape (n,)
        NaN where the sum does not converge.

    Raises
    ------
    InputError
        If a spread is negative, lengths differ, or a value is missing.

    Notes
    -----
    Epstein (1969), A scoring system for probability forecasts of ranked categories, Journal of
    Applied Meteorology 8; Czado, Gneiting and Held (2009).

    Examples
    --------
    >>> from scipy import stats
    >>> crps_lattice([1.0], lambda values, rows: stats.poisson.cdf(values, 1.0), [1.0])
    array([0.2120])
    """
    truth = as_vector(y, "y")
    width = _check_spread(spread, truth)
    scores = np.empty(len(truth))
    for start in range(0, len(truth), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(truth)))
        whole = np.floor(truth[rows])
        part = truth[rows] - whole
        at = cdf(whole[:, None], rows)[:, 0]
        cell = part * np.square(at) + (1.0 - part) * np.square(1.0 - at)
        length = 2.0 ** np.clip(np.ceil(np.log2(width[rows])), 4.0, 60.0)
        scores[rows] = _two_sided(whole, length, cdf, rows, lattice=True, base=cell)
    return scores


def _two_sided(
    y: FloatArray,
    width: FloatArray,
    cdf: RowCdf,
    rows: IntArray,
    *,
    lattice: bool,
    base: FloatArray | None = None,
) -> FloatArray:
    """Both sides of y: F² going down and (1 − F)² going up, per row, added to ``base``.

    Side s of row i has number i + s·n. Distances from y are t; on a lattice, t = 0 is the first
    whole number beyond y's own.
    """
    n = len(y)
    offset = 1.0 if lattice else 0.0

    def height(distance: FloatArray, side: IntArray) -> FloatArray:
        row = side % n
        up = (side >= n)[:, None]
        step = np.where(up, distance + offset, -distance - offset)
        share = cdf(y[row, None] + step, rows[row])
        return np.square(np.where(up, 1.0 - share, share))

    def measure(
        side: IntArray, start: FloatArray, length: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        return _runs(height, side, start, length, lattice=lattice)

    total = np.zeros(n) if base is None else base.copy()
    side = np.arange(2 * n)
    start, length = np.zeros(2 * n), np.tile(width, 2)
    kept: list[tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]] = []
    for _ in range(_DOUBLINGS):
        value, error, edge = measure(side, start, length)
        kept.append((side, start, length, value, error))
        total += np.bincount(side % n, weights=value, minlength=n)
        end = start + length
        more = edge * end > _TAIL * total[side % n]
        side, start, length = side[more], end[more], end[more]
        if not len(side):
            break
    endless = np.unique(side % n)
    side, start, length, value, error = (np.concatenate(part) for part in zip(*kept, strict=True))
    allowed = _TOLERANCE * total
    for _ in range(_HALVINGS):
        rough = error > allowed[side % n]
        if not rough.any():
            break
        side, start, length = side[rough], start[rough], length[rough] / 2.0
        total -= np.bincount(side % n, weights=value[rough], minlength=n)
        side, start = np.tile(side, 2), np.append(start, start + length)
        length = np.tile(length, 2)
        value, error, _ = measure(side, start, length)
        total += np.bincount(side % n, weights=value, minlength=n)
    total[endless] = np.nan
    return total


def _runs(
    height: RowCdf, side: IntArray, start: FloatArray, length: FloatArray, *, lattice: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Area over each run, an estimate of its error, and the height at its end."""
    if not lattice:
        nodes, weights, checks = _smooth_rule()
        values = height(start[:, None] + length[:, None] * nodes, side)
        error = np.abs(values @ checks).max(axis=1)
        return values @ weights * length, error * length, values[:, -1]
    area, error, edge = np.empty(len(side)), np.zeros(len(side)), np.empty(len(side))
    for size in np.unique(length):
        chosen = np.flatnonzero(length == size)
        nodes, weights, checks = _lattice_rule(int(size))
        values = height(start[chosen, None] + nodes, side[chosen])
        area[chosen] = values @ weights
        error[chosen] = np.abs(values @ checks).max(axis=1) * size
        edge[chosen] = values[:, -1]
    return area, error, edge


@lru_cache(maxsize=1)
def _smooth_rule() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Clenshaw–Curtis nodes on [0, 1], their weights, and the checks of `_fit`."""
    nodes = (1.0 - np.cos(np.pi * np.arange(17) / 16.0)) / 2.0
    moments = np.zeros(17)
    moments[::2] = 1.0 / (1.0 - np.square(np.arange(0, 17, 2)))
    return (nodes, *_fit(2.0 * nodes - 1.0, moments))


@lru_cache(maxsize=128)
def _lattice_rule(size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Whole nodes in [0, size), weights that sum polynomials over all of it, checks of `_fit`.

    Up to 32 numbers all are nodes. Beyond 2¹⁶ the moments are averaged over cells of equal length.
    """
    if size <= 32:
        return np.arange(float(size)), np.ones(size), np.zeros((size, 1))
    nodes = np.round((1.0 - np.cos(np.pi * np.arange(17) / 16.0)) / 2.0 * (size - 1))
    points = min(size, 2**16)
    every = (np.arange(points) + 0.5) * (size / points) - 0.5
    angles = np.arccos(np.clip(2.0 * every / (size - 1) - 1.0, -1.0, 1.0))
    moments = np.array([np.cos(degree * angles).sum() for degree in range(17)]) * (size / points)
    return (nodes, *_fit(2.0 * nodes / (size - 1) - 1.0, moments))


def _fit(nodes: FloatArray, moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights on 17 nodes that give Chebyshev polynomials' moments, and checks of the fit.

    The checks turn values at the nodes into a quarter of the last four Chebyshev coefficients,
    which are tiny where 17 terms suffice. One alone may vanish by chance, four in a row do not.
    """
    inverse = np.linalg.inv(np.polynomial.chebyshev.chebvander(nodes, 16))
    return np.asarray(moments @ inverse), np.asarray(inverse[-4:].T / 4.0)


# --- shared arithmetic and checks ----------------------------------------------------------------


def _miss(y: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    return np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)


def _pinball(y: FloatArray, quantile: FloatArray, level: float) -> FloatArray:
    distance = y - quantile
    return np.maximum(level * distance, (level - 1.0) * distance)


def _weighted_pinball(
    y: FloatArray, quantiles: FloatArray, levels: FloatArray, factors: FloatArray
) -> FloatArray:
    total = np.zeros(len(y))
    with np.errstate(over="ignore"):
        for column, level, factor in zip(quantiles.T, levels, factors, strict=True):
            total += factor * _pinball(y, column, level)
    return total


def _poisson_cdf(y: FloatArray, rate: FloatArray) -> FloatArray:
    count = np.floor(y)
    known = np.maximum(count, 0.0)
    return np.where(count < 0.0, 0.0, special.gammaincc(known + 1.0, rate))


def _negative_binomial_cdf(y: FloatArray, size: FloatArray, chance: FloatArray) -> FloatArray:
    count = np.floor(y)
    known = np.maximum(count, 0.0)
    return np.where(count < 0.0, 0.0, special.betainc(size, known + 1.0, chance))


def _finite_or_inf(scores: FloatArray) -> FloatArray:
    """An overflow on both sides leaves NaN where the score is infinite."""
    return np.where(np.isnan(scores), np.inf, scores)


def _check_quantiles(
    y: npt.ArrayLike, quantiles: npt.ArrayLike, levels: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    truth = as_vector(y, "y")
    grid = check_levels(levels)
    return truth, as_matrix(quantiles, "quantiles", length=len(truth), columns=len(grid)), grid


def _check_located(
    y: npt.ArrayLike, centre: tuple[str, npt.ArrayLike], scale: tuple[str, npt.ArrayLike]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    truth = as_vector(y, "y")
    middle = as_vector(centre[1], centre[0], length=len(truth))
    width = as_vector(scale[1], scale[0], length=len(truth))
    _check_above(width, scale[0], 0.0)
    return truth, middle, width


def _check_spread(spread: npt.ArrayLike, y: FloatArray) -> FloatArray:
    width = as_vector(spread, "spread", length=len(y))
    if (width < 0.0).any():
        row = int(np.argmax(width < 0.0))
        raise InputError(f"spread must not be negative, got {width[row]:g} (first at row {row})")
    return np.maximum(width, np.maximum(1e-15 * np.abs(y), 1e-60))


def _check_above(values: FloatArray, name: str, bound: float) -> None:
    wrong = values <= bound
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{name} must be above {bound:g}, got {int(wrong.sum())} that are not "
            f"(first at row {row}: {values[row]:g})"
        )
