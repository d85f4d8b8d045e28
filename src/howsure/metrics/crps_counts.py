"""CRPS (ranked probability score) of laws of counts, by closed form or by sums, one number a row.

Lower is better, and in expectation no law scores better than the right one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, as_matrix, as_vector, check_above
from howsure.core.errors import InputError
from howsure.metrics.crps_numeric import crps_lattice

_MAX_CLOSED_SIZE = 2000.0  # size of a negative binomial up to which 2F1 is accurate


def crps_poisson(y: npt.ArrayLike, rate: npt.ArrayLike) -> FloatArray:
    """CRPS (ranked probability score) of each row's Poisson distribution.

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
    """CRPS of each row's negative binomial distribution: failures before the size-th success.

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
    Wei and Held (2014), Calibration tests for count data, TEST 23, after Pfaff's transformation
    of ₂F₁, which keeps its argument inside [0, 1]. Beyond a size of 2,000, where ₂F₁ loses its
    digits, `howsure.metrics.crps_numeric.crps_lattice` is used.

    Examples
    --------
    >>> crps_negative_binomial([1.0], [2.0], [0.5])
    array([0.4630])
    """
    truth = as_vector(y, "y")
    successes = as_vector(size, "size", length=len(truth))
    chance = as_vector(probability, "probability", length=len(truth))
    check_above(successes, "size", 0.0)
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


def crps_support(
    y: npt.ArrayLike, values: npt.ArrayLike, probabilities: npt.ArrayLike
) -> FloatArray:
    """CRPS of each row's law on listed values, exactly.

    E|Y − y| − ½ E|Y − Y'|, the latter as the sum over neighbours of their gap times F(1 − F).
    Lower is better, at least 0, in the units of y.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    values : array-like of shape (n, w)
        Values that may happen, not falling along a row.
    probabilities : array-like of shape (n, w)
        Their probabilities, each row summing to one (to within 1e-6, then made exact).

    Returns
    -------
    ndarray of float, shape (n,)

    Notes
    -----
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation,
    Journal of the American Statistical Association 102, eq. 21.

    Examples
    --------
    >>> crps_support([1.0], [[0.0, 1.0, 2.0]], [[0.25, 0.5, 0.25]])
    array([0.125])
    """
    truth = as_vector(y, "y")
    points = as_matrix(values, "values", length=len(truth))
    shares = as_matrix(probabilities, "probabilities", length=len(truth), columns=points.shape[1])
    gaps = np.diff(points, axis=1)
    if (gaps < 0.0).any():
        row = int(np.argmax((gaps < 0.0).any(axis=1)))
        raise InputError(f"values must not fall along a row, got some that do at row {row}")
    below = np.cumsum(shares, axis=1)
    wrong = (np.abs(below[:, -1] - 1.0) > 1e-6) | (shares < 0.0).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            "probabilities must be zero or more and sum to 1 in every row, got "
            f"{below[row, -1]:.6g} in all, {shares[row].min():.3g} at the least, at row {row}"
        )
    total = below[:, -1]
    distance = np.einsum("ij,ij->i", shares, np.abs(points - truth[:, None])) / total
    share = below[:, :-1] / total[:, None]
    return np.asarray(distance - np.einsum("ij,ij,ij->i", gaps, share, 1.0 - share))


def _poisson_cdf(y: FloatArray, rate: FloatArray) -> FloatArray:
    count = np.floor(y)
    known = np.maximum(count, 0.0)
    return np.where(count < 0.0, 0.0, special.gammaincc(known + 1.0, rate))


def _negative_binomial_cdf(y: FloatArray, size: FloatArray, chance: FloatArray) -> FloatArray:
    count = np.floor(y)
    known = np.maximum(count, 0.0)
    return np.where(count < 0.0, 0.0, special.betainc(size, known + 1.0, chance))
