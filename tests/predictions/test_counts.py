"""Laws of counts against SciPy, exact arithmetic, and sums over all counts."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, xlogy

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions.counts import (
    DoublePoisson,
    NegativeBinomial,
    Poisson,
    efron_constant,
)

quick = examples(60)
COUNTS = np.arange(40_000.0)


def double_poisson_weights(mu, phi):
    log = 0.5 * np.log(phi) - phi * mu - COUNTS + xlogy(COUNTS, COUNTS) - gammaln(COUNTS + 1)
    return log + phi * (COUNTS + COUNTS * np.log(mu) - xlogy(COUNTS, COUNTS))


def summed(log_weights):
    """Probabilities, mean and variance by summing over all counts."""
    weights = np.exp(log_weights - log_weights.max())
    shares = weights / weights.sum()
    mean = (shares * COUNTS).sum()
    return shares, mean, (shares * (COUNTS - mean) ** 2).sum()


@quick
@given(st.floats(1e-3, 2000.0), st.floats(1e-2, 50.0))
def test_poisson_and_negative_binomial_agree_with_scipy(mean, dispersion):
    poisson, negative = Poisson([mean]), NegativeBinomial([mean], [dispersion])
    success = 1.0 / (1.0 + dispersion * mean)
    spread = np.sqrt(mean + dispersion * mean**2)
    counts = np.unique(np.floor(np.linspace(0.0, mean + 6.0 * spread, 40)))[None]
    other = stats.nbinom(1.0 / dispersion, success)
    for law, truth, rounding in ((poisson, stats.poisson(mean), 1e-11), (negative, other, 1e-8)):
        np.testing.assert_allclose(law.pmf(counts), truth.pmf(counts), rtol=rounding, atol=1e-15)
        np.testing.assert_allclose(law.cdf(counts), truth.cdf(counts), atol=1e-9)
        np.testing.assert_allclose(law.mean(), truth.mean(), rtol=1e-9)
        np.testing.assert_allclose(law.variance(), truth.var(), rtol=1e-9)


@pytest.mark.parametrize(("count", "mean"), [(3, 2), (40, 55), (1000, 1000), (1200, 900)])
def test_poisson_keeps_its_digits(count, mean):
    exact = Fraction(mean) ** count / math.factorial(count)
    digits = math.log(exact.numerator) - math.log(exact.denominator) - mean
    assert Poisson([mean]).log_pmf([count])[0] == pytest.approx(digits, abs=2e-12 * max(1, -digits))


@pytest.mark.parametrize(("count", "size", "mean"), [(3, 2, 2), (500, 40, 480), (900, 7, 300)])
def test_negative_binomial_keeps_its_digits(count, size, mean):
    ways = Fraction(math.comb(count + size - 1, count))
    share = Fraction(size, size + mean)
    exact = ways * share**size * (1 - share) ** count
    digits = math.log(exact.numerator) - math.log(exact.denominator)
    found = NegativeBinomial([mean], [1.0 / size]).log_pmf([count])[0]
    assert found == pytest.approx(digits, abs=1e-11)


def test_poisson_at_ten_million_agrees_with_the_normal_expansion():
    mean = 1e7
    counts = mean + np.sqrt(mean) * np.array([[-2.0, 0.0, 1.0]])
    whole = np.floor(counts)
    total = Poisson([mean]).pmf(np.arange(mean - 40_000, mean + 40_000)[None]).sum()
    assert total == pytest.approx(1.0, abs=1e-10)
    z = (whole - mean) / np.sqrt(mean)
    edgeworth = stats.norm.pdf(z) / np.sqrt(mean) * (1 + (z**3 - 3 * z) / (6 * np.sqrt(mean)))
    np.testing.assert_allclose(Poisson([mean]).pmf(whole), edgeworth, rtol=1e-6)


@quick
@given(st.floats(0.02, 300.0), st.floats(0.02, 60.0))
def test_double_poisson_agrees_with_the_sum_over_all_counts(mu, phi):
    law = DoublePoisson([mu], [phi])
    shares, mean, variance = summed(double_poisson_weights(mu, phi))
    assert law.mean()[0] == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert law.variance()[0] == pytest.approx(variance, rel=1e-7, abs=1e-12)
    np.testing.assert_allclose(law.pmf(COUNTS[None, :800])[0], shares[:800], atol=1e-11)
    np.testing.assert_allclose(law.cdf(COUNTS[None, :800])[0], np.cumsum(shares)[:800], atol=1e-11)


@pytest.mark.parametrize(
    ("mu", "phi", "raw", "corrected", "share"),
    [
        (10.0, 0.2, 1.043, 0.994, None),
        (10.0, 0.5, 1.012, 1.002, None),
        (10.0, 2.0, 0.996, 1.000, None),
        (10.0, 5.0, 0.993, 1.000, None),
        (2.0, 0.2, 0.950, 0.600, 1.300),
    ],
)
def test_double_poisson_sums_with_and_without_efrons_constant(mu, phi, raw, corrected, share):
    law = DoublePoisson([mu], [phi])
    counts = COUNTS[None, :2000]
    assert np.exp(law.log_pmf(counts, "none")).sum() == pytest.approx(raw, abs=1e-3)
    assert np.exp(law.log_pmf(counts, "efron")).sum() == pytest.approx(corrected, abs=1e-3)
    assert np.exp(law.log_pmf(counts)).sum() == pytest.approx(1.0, abs=1e-12)
    if share is not None:
        assert law.mean()[0] / mu == pytest.approx(share, abs=1e-3)


def test_double_poisson_moments_are_near_location_and_its_share_for_large_locations():
    law = DoublePoisson([5.0, 50.0, 500.0], [0.5, 2.0, 5.0])
    np.testing.assert_allclose(law.mean(), [5.0, 50.0, 500.0], rtol=0.01)
    np.testing.assert_allclose(law.variance(), [10.0, 25.0, 100.0], rtol=0.01)


def test_special_cases_are_the_poisson_law():
    mean = np.array([0.3, 7.0, 400.0])
    counts = np.array([[0.0, 1.0], [5.0, 9.0], [380.0, 450.0]])
    truth = Poisson(mean).pmf(counts)
    law = DoublePoisson(mean, np.ones(3))
    np.testing.assert_allclose(law.pmf(counts), truth, rtol=1e-11)
    np.testing.assert_allclose(law.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(law.variance(), mean, rtol=1e-11)
    thin = NegativeBinomial(mean, np.full(3, 1e-12))
    first_order = 1.0 + 0.5e-12 * ((counts - mean[:, None]) ** 2 - counts)
    np.testing.assert_allclose(thin.pmf(counts), truth * first_order, rtol=1e-11)
    np.testing.assert_allclose(thin.cdf(counts), Poisson(mean).cdf(counts), rtol=1e-9)


LAWS = [
    Poisson([0.0, 0.01, 3.0, 5000.0]),
    NegativeBinomial([0.0, 0.01, 3.0, 5000.0], [1.0, 1e-4, 30.0, 0.3]),
    DoublePoisson([0.01, 0.5, 3.0, 5000.0], [0.1, 20.0, 1.0, 0.01]),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_quantiles_are_the_smallest_counts_that_reach_their_level(law):
    levels = np.tile([1e-9, 0.03, 0.5, 0.97, 1.0 - 1e-9], (4, 1))
    found = law.quantile(levels)
    assert (law.cdf(found) >= levels).all()
    assert (law.cdf(found - 1.0) < levels).all()
    assert law.quantile(0.5).tolist() == found[:, 2].tolist()
    reached = law.cdf(found)
    inside = reached < 1.0  # where rounding leaves room above
    again = law.quantile(np.where(inside, reached, 0.5))
    assert again[inside].tolist() == found[inside].tolist()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_support_carries_the_whole_law(law):
    values, shares = law.support()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    mean = (values * shares).sum(axis=1)
    np.testing.assert_allclose(mean, law.mean(), rtol=1e-10, atol=1e-12)
    variance = (shares * (values - mean[:, None]) ** 2).sum(axis=1)
    np.testing.assert_allclose(variance, law.variance(), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_draws_have_the_moments_of_the_law(law):
    draws = law.sample(child(0, "draws", type(law).__name__), 20_000)
    assert draws.shape == (4, 20_000)
    sd = np.sqrt(law.variance())
    assert (np.abs(draws.mean(axis=1) - law.mean()) <= 5.0 * sd / np.sqrt(20_000)).all()
    ordinary = slice(2, 4)
    np.testing.assert_allclose(draws[ordinary].std(axis=1), sd[ordinary], rtol=0.12)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_counts_that_cannot_be_have_no_probability(law):
    for impossible in (-1.0, 0.5, np.inf, -np.inf):
        assert not law.pmf(impossible).any()
    assert not law.cdf(-0.5).any()
    np.testing.assert_allclose(law.cdf(np.inf), 1.0)
    np.testing.assert_array_equal(law.cdf(2.7), law.cdf(2.0))


def test_rows_of_very_different_width_are_answered_in_order():
    location = np.array([1e6, 0.2, 300.0, 0.2, 1e6])
    precision = np.array([1.0, 3.0, 0.1, 3.0, 1.0])
    law = DoublePoisson(location, precision)
    alone = [DoublePoisson([m], [p]).mean()[0] for m, p in zip(location, precision, strict=True)]
    np.testing.assert_allclose(law.mean(), alone, rtol=1e-13)
    np.testing.assert_allclose(law.mean()[[0, 4]], 1e6, rtol=1e-9)


def test_efrons_constant_has_limits():
    with pytest.raises(InputError, match=r"reciprocal is positive, got -\d.* at row 1"):
        efron_constant([10.0, 0.1], [2.0, 3.0])
    assert efron_constant([3.0], [1.0])[0] == 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Poisson([-1.0]), r"mu must be between 0 and 1e\+15, got 1 .*row 0: -1"),
        (lambda: Poisson([1e16]), "mu must be between 0 and"),
        (lambda: Poisson([float("nan")]), "mu must contain finite numbers"),
        (lambda: NegativeBinomial([1.0], [0.0]), "dispersion must be above 0, got 1"),
        (lambda: NegativeBinomial([1.0, 2.0], [0.5]), "dispersion must have 2 rows"),
        (lambda: DoublePoisson([0.0], [1.0]), "mu must be between 1e-100 and"),
        (lambda: DoublePoisson([1.0], [1e16]), "phi must be between 1e-15 and"),
        (lambda: DoublePoisson([1.0], [0.0]), "phi must be between 1e-15 and"),
        (lambda: Poisson([1.0]).quantile(1.0), "levels must be strictly between 0 and 1"),
        (lambda: Poisson([1.0]).pmf([1.0, 2.0]), r"counts must have shape \(1,\) or \(1, m\)"),
        (lambda: Poisson([1.0]).pmf([np.nan]), "contain no missing values"),
        (lambda: DoublePoisson([1.0], [1.0]).log_pmf([1.0], "half"), "normalization must be"),
        (lambda: Poisson(np.full(3, 1e15)).support(), "at most 134217728 entries; got 3 rows"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
