"""The Conway–Maxwell–Poisson law against sums over all counts, and at extremes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from count_laws import COUNTS, brute, check_inverse, check_quantiles, check_sums
from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions.counts import Poisson
from howsure_studies.congruence.worlds import ConwayMaxwellPoisson

quick = examples(80)


def log_weights(mu: float, power: float) -> np.ndarray:
    """The published formula, but for its constant, at all counts."""
    return power * (COUNTS * np.log(mu) - gammaln(COUNTS + 1.0))


@quick
@given(st.floats(-2.0, 3.3), st.floats(-2.7, 1.3))
def test_sums_agree_with_brute_force(mu: float, power: float) -> None:
    """Narrow and wide, symmetric and skewed: 10^mu up to 2,000, powers from 0.002 to 20."""
    check_sums(ConwayMaxwellPoisson, log_weights, 10.0**mu, 10.0**power)


@quick
@given(st.floats(-2.0, 3.3), st.floats(-2.7, 1.3))
def test_quantiles_agree_with_brute_force(mu: float, power: float) -> None:
    check_quantiles(ConwayMaxwellPoisson, log_weights, 10.0**mu, 10.0**power)


@quick
@given(st.floats(-6.0, 9.0), st.floats(-6.0, 4.0), st.floats(0, 1))
def test_cdfs_rise_and_quantiles_undo_them(mu: float, power: float, at: float) -> None:
    check_inverse(ConwayMaxwellPoisson([10.0**mu], [10.0**power]), at)


def test_probabilities_sum_to_one() -> None:
    mu = np.array([1e-9, 0.4, 3.0, 60.0, 900.0, 2000.0])
    law = ConwayMaxwellPoisson(mu, np.array([2.0, 0.3, 1.0, 0.05, 3.0, 0.2]))
    low, high = law.ends()
    values = low[:, None] + np.arange((high - low).max() + 1.0)
    np.testing.assert_allclose(law.pmf(values).sum(axis=1), 1.0, atol=1e-11)


@pytest.mark.parametrize(("mu", "power"), [(0.2, 0.4), (6.0, 0.7), (80.0, 0.3), (4000.0, 2.0)])
def test_draws_follow_the_cdf(mu: float, power: float) -> None:
    """The largest gap between the shares of draws and the cdf, at Kolmogorov's 1e-4 bound."""
    law = ConwayMaxwellPoisson([mu], [power])
    draws = law.sample(child(0, "draws", "conway maxwell poisson", mu), 20_000)[0]
    values, counts = np.unique(draws, return_counts=True)
    seen = np.cumsum(counts) / len(draws)
    gap = np.abs(seen - law.cdf(values[None])[0]).max()
    assert gap < stats.kstwobign.isf(1e-4) / np.sqrt(len(draws))


def test_one_draw_a_row_follows_each_law() -> None:
    rng = child(1, "rows", "ConwayMaxwellPoisson")
    mu, power = 10.0 ** rng.uniform(-1.0, 3.0, 20_000), np.exp(rng.uniform(-1.6, 1.6, 20_000))
    law = ConwayMaxwellPoisson(mu, power)
    y = law.sample(rng)[:, 0]
    low, high = law.cdf(y - 1.0), law.cdf(y)
    pit = low + rng.random(len(y)) * (high - low)
    assert stats.kstest(pit, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("mu", [1e6, 1e9, 1e12])
def test_huge_means_have_normal_quantiles(mu: float) -> None:
    """Mean, variance and quantiles by the expansion of Cornish and Fisher to third order."""
    for power in (0.3, 1.0, 4.0):
        law = ConwayMaxwellPoisson([mu], [power])
        sd = np.sqrt(mu / power)
        assert law.variance()[0] == pytest.approx(sd**2, rel=1e-5)
        z = stats.norm.ppf([0.01, 0.5, 0.999])
        skewness = 1.0 / np.sqrt(mu * power)
        lean = 0.5 / power - 0.5
        assert law.mean()[0] - mu == pytest.approx(lean, abs=1e-3 + 1e-15 * mu)
        guess = mu + lean + sd * (z + skewness * (z**2 - 1.0) / 6.0)
        found = law.quantile(np.array([[0.01, 0.5, 0.999]]))[0]
        assert np.abs(found - guess).max() < 1.0 + 1e-9 * sd


def test_extremes_are_safe() -> None:
    mu = np.array([1e-100, 1e-15, 0.5, 1e3, 1e9, 1e15])
    for power in (1e-15, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e15):
        law = ConwayMaxwellPoisson(mu, np.full(6, power))
        for counts in (np.zeros(6), np.full(6, 7.0), np.floor(mu), np.full(6, 1e15)):
            below = law.cdf(counts)
            assert ((below >= 0.0) & (below <= 1.0)).all()
            assert (law.log_pmf(counts) <= 1e-6).all()
        assert np.isfinite(law.mean()).all()
        assert (law.variance() >= 0.0).all()
        middle = law.quantile(0.5)
        assert np.isfinite(middle).all()
        assert (middle >= 0.0).all()
        assert np.isfinite(law.sample(child(2, "extremes"), 3)).all()


def test_a_law_without_spread_is_a_point() -> None:
    law = ConwayMaxwellPoisson([6.2, 1e6 + 0.3], [1e9, 1e9])
    assert law.quantile(0.5).tolist() == [6.0, 1e6]
    np.testing.assert_allclose(law.variance(), 0.0, atol=1e-12)


def test_a_row_is_answered_alone() -> None:
    """To the last bit: equal rows are equal whatever stands beside them."""
    rng = child(3, "alone", "conway maxwell poisson")
    mu, power = 10.0 ** rng.uniform(-1.0, 3.0, 2049), 10.0 ** rng.uniform(-2.0, 1.0, 2049)
    counts, levels = np.floor(mu * rng.uniform(0.2, 2.0, 2049)), rng.random(2049)
    law = ConwayMaxwellPoisson(mu, power)
    together = law.mean(), law.variance(), law.log_pmf(counts), law.cdf(counts)
    quantiles = law.quantile(levels)
    for row in (0, 7, 1000, 2047, 2048):
        alone = law.take(np.array([row]))
        at = counts[[row]]
        single = alone.mean(), alone.variance(), alone.log_pmf(at), alone.cdf(at)
        assert [float(part[0]) for part in single] == [float(part[row]) for part in together]
        assert alone.quantile(levels[[row]])[0] == quantiles[row]


@quick
@given(st.floats(0.02, 300.0), st.floats(0.05, 60.0))
def test_conway_maxwell_poisson_agrees_with_the_sum_over_all_counts(mu: float, nu: float) -> None:
    law = ConwayMaxwellPoisson([mu], [nu])
    shares, below = brute(log_weights, mu, nu)
    mean = (shares * COUNTS).sum()
    variance = (shares * (COUNTS - mean) ** 2).sum()
    assert law.mean()[0] == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert law.variance()[0] == pytest.approx(variance, rel=1e-7, abs=1e-12)
    np.testing.assert_allclose(law.pmf(COUNTS[None, :800])[0], shares[:800], atol=1e-11)
    np.testing.assert_allclose(law.cdf(COUNTS[None, :800])[0], below[:800], atol=1e-11)


def test_five_poissons_multiplied_are_conway_maxwell_poisson() -> None:
    x = np.linspace(0.1, 3.0, 5)
    rate = 10.0 * np.sin(x) + 10.0
    counts = np.tile(np.arange(60.0), (5, 1))
    product = Poisson(rate).pmf(counts) ** 5
    product /= product.sum(axis=1, keepdims=True)
    law = ConwayMaxwellPoisson(rate, np.full(5, 5.0))
    np.testing.assert_allclose(law.pmf(counts), product, atol=1e-13)
    np.testing.assert_allclose(law.variance(), rate / 5.0, rtol=0.03)  # strong under-dispersion


def test_a_power_of_one_is_the_poisson_law() -> None:
    mean = np.array([0.3, 7.0, 400.0])
    counts = np.array([[0.0, 1.0], [5.0, 9.0], [380.0, 450.0]])
    law = ConwayMaxwellPoisson(mean, np.ones(3))
    np.testing.assert_allclose(law.pmf(counts), Poisson(mean).pmf(counts), rtol=1e-11)
    np.testing.assert_allclose(law.mean(), mean, rtol=1e-12)
    np.testing.assert_allclose(law.variance(), mean, rtol=1e-11)


LAW = ConwayMaxwellPoisson([0.01, 0.5, 3.0, 5000.0], [0.3, 20.0, 1.0, 0.1])


def test_quantiles_are_the_smallest_counts_that_reach_their_level() -> None:
    levels = np.tile([1e-9, 0.03, 0.5, 0.97, 1.0 - 1e-9], (4, 1))
    found = LAW.quantile(levels)
    assert (LAW.cdf(found) >= levels).all()
    assert (LAW.cdf(found - 1.0) < levels).all()
    assert LAW.quantile(0.5).tolist() == found[:, 2].tolist()
    reached = LAW.cdf(found)
    inside = reached < 1.0  # where rounding leaves room above
    again = LAW.quantile(np.where(inside, reached, 0.5))
    assert again[inside].tolist() == found[inside].tolist()


def test_support_carries_the_whole_law() -> None:
    values, shares = LAW.support()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    mean = (values * shares).sum(axis=1)
    np.testing.assert_allclose(mean, LAW.mean(), rtol=1e-10, atol=1e-12)
    variance = (shares * (values - mean[:, None]) ** 2).sum(axis=1)
    np.testing.assert_allclose(variance, LAW.variance(), rtol=1e-6, atol=1e-12)


def test_draws_have_the_moments_of_the_law() -> None:
    draws = LAW.sample(child(0, "draws", "ConwayMaxwellPoisson"), 20_000)
    assert draws.shape == (4, 20_000)
    sd = np.sqrt(LAW.variance())
    assert (np.abs(draws.mean(axis=1) - LAW.mean()) <= 5.0 * sd / np.sqrt(20_000)).all()
    ordinary = slice(2, 4)
    np.testing.assert_allclose(draws[ordinary].std(axis=1), sd[ordinary], rtol=0.12)


def test_counts_that_cannot_be_have_no_probability() -> None:
    for impossible in (-1.0, 0.5, np.inf, -np.inf):
        assert not LAW.pmf(impossible).any()
    assert not LAW.cdf(-0.5).any()
    np.testing.assert_allclose(LAW.cdf(np.inf), 1.0)
    np.testing.assert_array_equal(LAW.cdf(2.7), LAW.cdf(2.0))


def test_powers_of_zero_are_refused() -> None:
    with pytest.raises(InputError, match="nu must be between 1e-15 and"):
        ConwayMaxwellPoisson([1.0], [0.0])
