"""CRPS of laws by closed form, one number a row: the continuous families, and any by its name.

Lower is better, and in expectation no law scores better than the right one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, as_matrix, as_vector, check_above
from howsure.core.errors import InputError
from howsure.topics.crps_numeric import crps_lattice
from howsure.topics.scores import overflow_as_inf


def crps_closed(
    family: str, y: npt.ArrayLike, parameters: Mapping[str, FloatArray]
) -> FloatArray | None:
    """CRPS of each row's law of ``scipy.stats``, where a closed form is known.

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
    if family in _LOCATED:
        return _LOCATED[family](y, location, scale)
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


def crps_between(
    family: str, y: FloatArray, parameters: Mapping[str, FloatArray], lower: float, upper: float
) -> FloatArray | None:
    """`crps_closed` of y and laws that are moved between two thresholds.

    ∫ F² from the lower threshold to y, and ∫ (1 − F)² from y to the upper one: what it is for y at
    a threshold, where most lie, and of others what the CRPS is more or less than there.
    """
    ends = [np.full(len(y), each) for each in (lower, upper) if np.isfinite(each)]
    if not ends:
        return crps_closed(family, y, parameters)
    if not _has_areas(family, parameters):
        return None
    area = _above if np.isfinite(lower) else _below
    scores = area(family, ends[0], parameters)
    if len(ends) > 1:
        scores -= _above(family, ends[1], parameters)
    rows = np.flatnonzero(y != ends[0])
    if len(rows):
        here = {name: values[rows] for name, values in parameters.items()}
        own, there = (crps_closed(family, at[rows], here) for at in (y, ends[0]))
        assert own is not None
        assert there is not None
        scores[rows] += own - there
    return np.maximum(scores, 0.0)


def _has_areas(family: str, parameters: Mapping[str, FloatArray]) -> bool:
    if family == "t":
        return bool((parameters["df"] > 1.0).all())
    return family in _SYMMETRIC | {"lognorm", "gamma", "expon"}


def _below(family: str, x: FloatArray, parameters: Mapping[str, FloatArray]) -> FloatArray:
    """∫_{−∞}^x F(z)² dz of each row's law.

    ∫ F² = x F(x)² − 2 ∫ z f F; the last integral by parts, as z f is the derivative of a multiple
    of f, or a multiple of a density of the same family.
    """
    z = (x - parameters["loc"]) / parameters["scale"]
    with np.errstate(over="ignore", under="ignore"):
        area = _standard_area(family, z, parameters)
    return np.asarray(parameters["scale"] * np.maximum(area, 0.0))


def _above(family: str, x: FloatArray, parameters: Mapping[str, FloatArray]) -> FloatArray:
    """∫_x^∞ (1 − F(z))² dz: that of the mirrored law, or what `_below` leaves of the CRPS."""
    if family in _SYMMETRIC:
        return _below(family, -x, {**parameters, "loc": -parameters["loc"]})
    whole = crps_closed(family, x, parameters)
    assert whole is not None
    return np.asarray(np.maximum(whole - _below(family, x, parameters), 0.0))


_SYMMETRIC = frozenset({"norm", "logistic", "laplace", "t"})


def _standard_area(family: str, z: FloatArray, parameters: Mapping[str, FloatArray]) -> FloatArray:
    """That of the law at location 0 and scale 1."""
    if family == "norm":
        share, density = special.ndtr(z), np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi)
        pairs = special.ndtr(np.sqrt(2.0) * z) / np.sqrt(np.pi)
        return np.asarray(z * np.square(share) + 2.0 * density * share - pairs)
    if family == "logistic":
        return np.asarray(np.logaddexp(0.0, z) - special.expit(z))
    if family == "laplace":
        below, above = np.exp(np.minimum(z, 0.0)), np.exp(-np.maximum(z, 0.0))
        inside = np.maximum(z, 0.0) - (1.0 - above) + (1.0 - np.square(above)) / 8.0
        return np.asarray(np.square(below) / 8.0 + inside)
    if family == "t":
        return _area_of_t(z, parameters["df"])
    z = np.maximum(z, 0.0)
    if family == "lognorm":
        return _area_of_lognormal(z, parameters["s"])
    k = np.ones(len(z)) if family == "expon" else parameters["a"]
    share, next_share = special.gammainc(k, z), special.gammainc(k + 1.0, z)
    # k/√π Γ(k + ½)/Γ(k + 1), the law's half mean difference, is 1/B(½, k)
    pairs = np.exp(-special.betaln(0.5, k)) * special.gammainc(2.0 * k + 1.0, 2.0 * z)
    return np.asarray(z * np.square(share) - k * np.square(next_share) - pairs)


def _area_of_t(z: FloatArray, nu: FloatArray) -> FloatArray:
    """By z f = −g′ with g = f (ν + z²)/(ν − 1), and g f a multiple of a t density."""
    share = special.stdtr(nu, z)
    falling, pairs = _terms_of_t(z, nu)
    narrower = special.stdtr(2.0 * nu - 1.0, z * np.sqrt((2.0 * nu - 1.0) / nu))
    return np.asarray(z * np.square(share) + 2.0 * (falling * share - pairs * narrower))


def _terms_of_t(z: FloatArray, nu: FloatArray) -> tuple[FloatArray, FloatArray]:
    """g(z), and ∫ g f over the whole line, of `_area_of_t`."""
    far = np.log(np.hypot(1.0, z / np.sqrt(nu)))
    log_beta = special.betaln(0.5, 0.5 * nu)
    log_density = -(nu + 1.0) * far - 0.5 * np.log(nu) - log_beta
    falling = nu * np.exp(log_density + 2.0 * far) / (nu - 1.0)
    pairs = np.exp(special.betaln(0.5, nu - 0.5) - 2.0 * log_beta)
    return falling, np.sqrt(nu) / (nu - 1.0) * pairs


def _area_of_lognormal(z: FloatArray, sigma: FloatArray) -> FloatArray:
    """By P(log X′ ≤ log X + σ², log X ≤ log z − σ²), a normal probability, by Owen's T."""
    positive = z > 0.0
    u = np.where(positive, np.log(np.where(positive, z, 1.0)) / sigma, -40.0)
    share = special.ndtr(u)
    h, k = u - sigma, sigma / np.sqrt(2.0)  # their correlation is −1/√2
    near = np.where(np.abs(h) < 1e-300, 1e-300, h)
    both = 0.5 * (special.ndtr(h) + special.ndtr(k))
    both -= special.owens_t(h, np.sqrt(2.0) * k / near + 1.0)
    both -= special.owens_t(k, np.sqrt(2.0) * h / k + 1.0) + 0.5 * (near < 0.0)
    area = z * np.square(share) - 2.0 * np.exp(0.5 * np.square(sigma)) * both
    return np.where(positive, area, 0.0)


def crps_normal(y: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's normal distribution.

    σ [z(2Φ(z) − 1) + 2φ(z) − 1/√π] with z = (y − mean)/σ.

    Gneiting, Raftery, Westveld and Goldman (2005), Calibrated probabilistic forecasting using
    ensemble model output statistics and minimum CRPS estimation, Monthly Weather Review 133, eq. 5.
    """
    distance, z, scale = _check_distance(y, ("mean", mean), ("sd", sd))
    with np.errstate(over="ignore"):
        density = np.exp(-0.5 * np.square(z)) / np.sqrt(2.0 * np.pi)
    inside = special.erf(z / np.sqrt(2.0))
    return np.asarray(distance * inside + scale * (2.0 * density - np.pi**-0.5))


def crps_logistic(y: npt.ArrayLike, location: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's logistic distribution: s [|z| + 2 log(1 + e^−|z|) − 1], z = (y − loc)/s.

    Jordan, Krüger and Lerch (2019), Evaluating probabilistic forecasts with scoringRules, Journal
    of Statistical Software 90, appendix A.
    """
    distance, z, width = _check_distance(y, ("location", location), ("scale", scale))
    return distance + width * (2.0 * np.log1p(np.exp(-z)) - 1.0)


def crps_laplace(y: npt.ArrayLike, location: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's Laplace distribution: s [|z| + e^−|z| − ¾], z = (y − location)/s.

    Jordan, Krüger and Lerch (2019), appendix A.
    """
    distance, z, width = _check_distance(y, ("location", location), ("scale", scale))
    return distance + width * (np.exp(-z) - 0.75)


def crps_t(
    y: npt.ArrayLike, freedom: npt.ArrayLike, location: npt.ArrayLike, scale: npt.ArrayLike
) -> FloatArray:
    """CRPS of each row's Student t distribution.

    s [z(2F(z) − 1) + 2f(z)(ν + z²)/(ν − 1) − (2√ν/(ν − 1)) B(½, ν − ½)/B(½, ν/2)²] with
    z = (y − location)/s and ν degrees of freedom.

    Jordan, Krüger and Lerch (2019), appendix A.
    """
    distance, z, width = _check_distance(y, ("location", location), ("scale", scale))
    nu = as_vector(freedom, "freedom", length=len(z))
    check_above(nu, "freedom", 1.0)
    z = np.minimum(z, 1e300)
    falling, pairs = _terms_of_t(z, nu)
    inside = 2.0 * special.stdtr(nu, z) - 1.0
    return distance * inside + 2.0 * width * (falling - pairs)


def crps_lognormal(y: npt.ArrayLike, mu: npt.ArrayLike, sigma: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's lognormal distribution.

    y(2F(y) − 1) − 2 e^{μ+σ²/2} [Φ(z − σ) − Φ(−σ/√2)] with z = (log y − μ)/σ.

    Jordan, Krüger and Lerch (2019), appendix A.
    """
    truth, centre, width = _check_located(y, ("mu", mu), ("sigma", sigma))
    positive = truth > 0.0
    logs = np.log(np.where(positive, truth, 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.where(positive, (logs - centre) / width, -np.inf)
        log_mean = centre + 0.5 * np.square(width)
        below = np.exp(log_mean + special.log_ndtr(z - width))
        pairs = np.exp(log_mean + special.log_ndtr(-width / np.sqrt(2.0)))
        return overflow_as_inf(truth * special.erf(z / np.sqrt(2.0)) - 2.0 * (below - pairs))


def crps_gamma(y: npt.ArrayLike, shape: npt.ArrayLike, scale: npt.ArrayLike) -> FloatArray:
    """CRPS of each row's gamma distribution.

    y(2F_k(y) − 1) − kθ(2F_{k+1}(y) − 1) − θ/B(½, k), where F_k has shape k and scale θ.

    Jordan, Krüger and Lerch (2019), appendix A.
    """
    truth = as_vector(y, "y")
    k = as_vector(shape, "shape", length=len(truth))
    theta = as_vector(scale, "scale", length=len(truth))
    check_above(k, "shape", 0.0)
    check_above(theta, "scale", 0.0)
    with np.errstate(over="ignore"):
        z = np.maximum(truth / theta, 0.0)
    own = 2.0 * special.gammainc(k, z) - 1.0
    next_shape = 2.0 * special.gammainc(k + 1.0, z) - 1.0
    return truth * own - k * theta * next_shape - theta * np.exp(-special.betaln(0.5, k))


Named = tuple[str, npt.ArrayLike]
"""A parameter with its name."""


def _check_distance(
    y: npt.ArrayLike, centre: Named, scale: Named
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """How far each y lies from the centre, in units and in scales, and the scales."""
    truth, middle, width = _check_located(y, centre, scale)
    with np.errstate(over="ignore"):
        distance = np.abs(truth - middle)
        return distance, distance / width, width


def _check_located(
    y: npt.ArrayLike, centre: Named, scale: Named
) -> tuple[FloatArray, FloatArray, FloatArray]:
    truth = as_vector(y, "y")
    middle = as_vector(centre[1], centre[0], length=len(truth))
    width = as_vector(scale[1], scale[0], length=len(truth))
    check_above(width, scale[0], 0.0)
    return truth, middle, width


_LOCATED = {"norm": crps_normal, "logistic": crps_logistic, "laplace": crps_laplace}


# ---- cRPS (ranked probability score) of laws of counts, by closed form or by sums, one number a ro
# Lower is better, and in expectation no law scores better than the right one.

# Size of a negative binomial up to which ₂F₁ is accurate: scores are right to 10⁻¹¹ at 2,000 and
# at 5,000, and not a number at 20,000. Sums serve beyond.
_MAX_CLOSED_SIZE = 2000.0


def crps_poisson(y: npt.ArrayLike, rate: npt.ArrayLike) -> FloatArray:
    """CRPS (ranked probability score) of each row's Poisson distribution.

    y(2F(y) − 1) − λ(2F(y − 1) − 1) − λ e^{−2λ} [I₀(2λ) + I₁(2λ)].

    Wei and Held (2014), Calibration tests for count data, TEST 23.
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
    E|Y − Y'|/2 = μ/(2 − p) · ₂F₁(1 − n, ½; 2; 4(1 − p)/(2 − p)²).

    Wei and Held (2014), Calibration tests for count data, TEST 23, after Pfaff's transformation
    of ₂F₁, which keeps its argument inside [0, 1]. Beyond a size of 2,000, where ₂F₁ loses its
    digits, `howsure.topics.crps_numeric.crps_lattice` is used.
    """
    truth = as_vector(y, "y")
    successes = as_vector(size, "size", length=len(truth))
    chance = as_vector(probability, "probability", length=len(truth))
    check_above(successes, "size", 0.0)
    outside = (chance <= 0.0) | (chance > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(f"probability must be in (0, 1], got {chance[row]:g} (first at row {row})")
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
    return np.where(y < 0.0, 0.0, special.gammaincc(_next_count(y), rate))


def _negative_binomial_cdf(y: FloatArray, size: FloatArray, chance: FloatArray) -> FloatArray:
    return np.where(y < 0.0, 0.0, special.betainc(size, _next_count(y), chance))


def _next_count(y: FloatArray) -> FloatArray:
    """The whole number above y, at least 1."""
    return np.maximum(np.floor(y), 0.0) + 1.0
