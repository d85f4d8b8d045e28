"""Sums of laws known up to a constant: against brute force, in many digits, and at extremes."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln, xlogy

from count_laws import COUNTS, check_inverse, check_quantiles, check_sums
from generated import examples
from howsure.core.rng import child
from howsure.predictions.counts import DoublePoisson, NegativeBinomial, Poisson

quick = examples(80)


def log_weights(mu: float, power: float) -> np.ndarray:
    """The published formula, but for its constant, at all counts."""
    own = -COUNTS + xlogy(COUNTS, COUNTS) - gammaln(COUNTS + 1.0)
    return own + power * (COUNTS + COUNTS * np.log(mu) - xlogy(COUNTS, COUNTS))


@quick
@given(st.floats(-2.0, 3.3), st.floats(-2.7, 1.3))
def test_sums_agree_with_brute_force(mu: float, power: float) -> None:
    """Narrow and wide, symmetric and skewed: 10^mu up to 2,000, powers from 0.002 to 20."""
    check_sums(DoublePoisson, log_weights, 10.0**mu, 10.0**power)


@quick
@given(st.floats(-2.0, 3.3), st.floats(-2.7, 1.3))
def test_quantiles_agree_with_brute_force(mu: float, power: float) -> None:
    check_quantiles(DoublePoisson, log_weights, 10.0**mu, 10.0**power)


@pytest.mark.parametrize(("mu", "phi"), [(0.3, 0.2), (40.0, 0.8), (900.0, 0.25), (7.0, 4.5)])
def test_double_poisson_in_fifty_digits(mu: float, phi: float) -> None:
    with localcontext() as context:
        context.prec = 50
        log_mu, power, factorial = Decimal(mu).ln(), Decimal(phi), Decimal(0)
        weights = []
        for k in range(int(mu + 16.0 * math.sqrt(mu / phi) + 200.0 / phi)):
            log_k = Decimal(max(k, 1)).ln()
            factorial += log_k
            weights.append((k * log_k - k - factorial + power * k * (1 + log_mu - log_k)).exp())
        total = sum(weights)
        at = [0, int(mu), int(mu + math.sqrt(mu / phi))]
        below = [float(sum(weights[: k + 1]) / total) for k in at]
        logs = [float((weights[k] / total).ln()) for k in at]
    law = DoublePoisson(np.full(3, mu), np.full(3, phi))
    np.testing.assert_allclose(law.cdf(at), below, atol=1e-11)
    np.testing.assert_allclose(law.log_pmf(at), logs, rtol=1e-11, atol=1e-11)


ANY = {
    "poisson": lambda mu, power: Poisson(mu),
    "negative binomial": NegativeBinomial,
    "double poisson": DoublePoisson,
}


@quick
@example("negative binomial", 0.0, 0.1875, 0.0)
@example("negative binomial", math.log10(19.051374539091846), math.log10(0.004785576336316832), 0.0)
@example("double poisson", math.log10(6649778.4537592335), math.log10(396.6616273682291), 0.5)
@given(st.sampled_from(sorted(ANY)), st.floats(-6.0, 9.0), st.floats(-6.0, 4.0), st.floats(0, 1))
def test_cdfs_rise_and_quantiles_undo_them(name: str, mu: float, power: float, at: float) -> None:
    check_inverse(ANY[name]([10.0**mu], [10.0**power]), at)


@pytest.mark.parametrize("name", sorted(ANY))
def test_probabilities_sum_to_one(name: str) -> None:
    mu = np.array([1e-9, 0.4, 3.0, 60.0, 900.0, 2000.0])
    law = ANY[name](mu, np.array([2.0, 0.3, 1.0, 0.05, 3.0, 0.2]))
    low, high = law.ends()
    values = low[:, None] + np.arange((high - low).max() + 1.0)
    np.testing.assert_allclose(law.pmf(values).sum(axis=1), 1.0, atol=1e-11)


@pytest.mark.parametrize("name", sorted(ANY))
@pytest.mark.parametrize(("mu", "power"), [(0.2, 0.4), (6.0, 0.7), (80.0, 0.3), (4000.0, 2.0)])
def test_draws_follow_the_cdf(name: str, mu: float, power: float) -> None:
    """The largest gap between the shares of draws and the cdf, at Kolmogorov's 1e-4 bound."""
    law = ANY[name]([mu], [power])
    draws = law.sample(child(0, "draws", name, mu), 20_000)[0]
    values, counts = np.unique(draws, return_counts=True)
    seen = np.cumsum(counts) / len(draws)
    gap = np.abs(seen - law.cdf(values[None])[0]).max()
    assert gap < stats.kstwobign.isf(1e-4) / np.sqrt(len(draws))


def test_one_draw_a_row_follows_each_law() -> None:
    rng = child(1, "rows", "DoublePoisson")
    mu, power = 10.0 ** rng.uniform(-1.0, 3.0, 20_000), np.exp(rng.uniform(-1.6, 1.6, 20_000))
    law = DoublePoisson(mu, power)
    y = law.sample(rng)[:, 0]
    low, high = law.cdf(y - 1.0), law.cdf(y)
    pit = low + rng.random(len(y)) * (high - low)
    assert stats.kstest(pit, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("mu", [1e6, 1e9, 1e12])
def test_huge_means_have_normal_quantiles(mu: float) -> None:
    """Mean, variance and quantiles by the expansion of Cornish and Fisher to third order."""
    for power in (0.3, 1.0, 4.0):
        law = DoublePoisson([mu], [power])
        sd = np.sqrt(mu / power)
        assert law.variance()[0] == pytest.approx(sd**2, rel=1e-5)
        z = stats.norm.ppf([0.01, 0.5, 0.999])
        skewness = 1.0 / np.sqrt(mu * power)
        assert law.mean()[0] - mu == pytest.approx(0.0, abs=1e-3 + 1e-15 * mu)
        guess = mu + sd * (z + skewness * (z**2 - 1.0) / 6.0)
        found = law.quantile(np.array([[0.01, 0.5, 0.999]]))[0]
        assert np.abs(found - guess).max() < 1.0 + 1e-9 * sd


def poisson_above(mean: int, count: int) -> float:
    """P(X > count): the next count's probability in fifty digits, times a sum of ratios."""
    with localcontext() as context:
        context.prec = 50
        k = Decimal(count + 1)  # log k! by Stirling's series, to far below 1e-30 from 1e5 on
        series = 1 / (12 * k) - 1 / (360 * k**3) + 1 / (1260 * k**5)
        factorial = k * k.ln() - k + (2 * Decimal(math.pi) * k).ln() / 2 + series
        first = float((k * Decimal(mean).ln() - mean - factorial).exp())
    ratios = mean / (count + 2.0 + np.arange(int(12 * math.sqrt(mean))))
    return first * (1.0 + float(np.cumprod(ratios).sum()))


@pytest.mark.parametrize("mean", [60_000, 10**6, 10**7, 10**8, 10**9])
@pytest.mark.parametrize("at", [3.9, 4.1, 4.6, 5.5, 7.5])
def test_upper_tails_of_large_means_keep_their_digits(mean: int, at: float) -> None:
    """SciPy's regularised gamma function is off beyond 4.5 standard deviations above the mean."""
    count = int(mean + at * math.sqrt(mean))
    truth = poisson_above(mean, count)
    for law in (Poisson([mean]), NegativeBinomial([mean], [1e-25])):
        found = law.cdf([count])[0]
        assert found == pytest.approx(1.0 - truth, abs=1e-9 * truth + 3e-16)
        assert law.quantile([1.0 - 1.001 * truth - 1e-15])[0] <= count
        assert law.quantile([1.0 - 0.999 * truth + 1e-15])[0] > count


@pytest.mark.parametrize("mean", [1e6, 1e9, 1e12, 1e15])
def test_far_quantiles_of_large_means_are_nearly_normal(mean: float) -> None:
    """By the expansion of Cornish and Fisher to third order, in both tails, without a warning."""
    tails = np.array([1e-300, 1e-30, 1e-16, 1e-12, 1e-6])
    z, sd = stats.norm.ppf(tails), math.sqrt(mean)
    z = np.r_[z, -z[3:]]
    found = Poisson([mean]).quantile(np.r_[tails, 1.0 - tails[3:]][None])[0]
    guess = mean + sd * z + (z**2 - 1.0) / 6.0 + (z - z**3) / 72.0 / sd
    rounding = np.r_[np.full(5, 1e-8), 1e-8 + 5e-16 / tails[3:]]  # of a level, as a share
    assert (np.abs(found - guess) < 1.0 + sd * rounding).all()


def test_extremes_are_safe() -> None:
    mu = np.array([1e-100, 1e-15, 0.5, 1e3, 1e9, 1e15])
    for power in (1e-15, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e15):
        law = DoublePoisson(mu, np.full(6, power))
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
    law = DoublePoisson([6.2, 1e6 + 0.3], [1e9, 1e9])
    assert law.quantile(0.5).tolist() == [6.0, 1e6]
    np.testing.assert_allclose(law.variance(), 0.0, atol=1e-12)


def test_the_widest_laws_are_nearly_gamma() -> None:
    """φ → 0 at fixed μ: k^(-1/2) exp(-φ k (log(k/μ) − 1)), here by integrating on log k."""
    mu, phi = 5.0, 1e-13
    law = DoublePoisson([mu], [phi])
    v = np.linspace(0.0, np.log(60.0 / phi), 400_001)
    density = np.exp(0.5 * v - phi * np.exp(v) * (v - np.log(mu) - 1.0))
    mean = np.trapezoid(density * np.exp(v), v) / np.trapezoid(density, v)
    assert law.mean()[0] == pytest.approx(mean, rel=1e-5)  # the counts near 0 weigh about √φ


@pytest.mark.parametrize("name", sorted(ANY))
def test_a_row_is_answered_alone(name: str) -> None:
    """To the last bit: equal rows are equal whatever stands beside them."""
    rng = child(3, "alone", name)
    mu, power = 10.0 ** rng.uniform(-1.0, 3.0, 2049), 10.0 ** rng.uniform(-2.0, 1.0, 2049)
    counts, levels = np.floor(mu * rng.uniform(0.2, 2.0, 2049)), rng.random(2049)
    law = ANY[name](mu, power)
    together = law.mean(), law.variance(), law.log_pmf(counts), law.cdf(counts)
    quantiles = law.quantile(levels)
    for row in (0, 7, 1000, 2047, 2048):
        alone = law.take(np.array([row]))
        at = counts[[row]]
        single = alone.mean(), alone.variance(), alone.log_pmf(at), alone.cdf(at)
        assert [float(part[0]) for part in single] == [float(part[row]) for part in together]
        assert alone.quantile(levels[[row]])[0] == quantiles[row]
