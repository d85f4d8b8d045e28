"""Laws that heads state: total mass, draws against the cdf, moments, units of y."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import integrate

from howsure.predictions import Distribution
from howsure.predictions.counts import DoublePoisson as DoublePoissonLaw
from howsure.predictions.counts import efron_constant
from howsure_studies.methods.deep.heads import HEADS, DoublePoissonHead, QuantileHead, head_named

COUNTS = ("poisson", "negative_binomial", "double_poisson")
LAWS = tuple(name for name in HEADS if name != "quantile")


def stated(name: str, center: float = 0.0, unit: float = 1.0, n: int = 4) -> Any:
    head = head_named(name)
    outputs = np.random.default_rng(3).normal(size=(head.outputs, n))
    if name in COUNTS:
        outputs[0] += 1.5
        return head.prediction(outputs, 0.0, 1.0)
    return head.prediction(outputs, center, unit)


@pytest.mark.parametrize("name", LAWS)
def test_masses_and_densities_sum_to_one(name: str) -> None:
    law = stated(name)
    assert isinstance(law, Distribution)
    if law.discrete:
        values = np.arange(1500.0)
        spread_out = {key: value[:, None] for key, value in law.parameters.items()}
        table = law.law.log_density(np.broadcast_to(values, (law.n, 1500)), spread_out)
        shares = np.exp(table).T
        np.testing.assert_allclose(shares.sum(axis=0), 1.0, rtol=1e-8)
        np.testing.assert_allclose(values @ shares, law.point(), rtol=1e-6)
        spread = (values[:, None] - law.point()) ** 2
        np.testing.assert_allclose((spread * shares).sum(axis=0), law.sd() ** 2, rtol=1e-5)
        return
    for row in range(law.n):
        one = law.take(np.array([row]))
        total, _ = integrate.quad(
            lambda z, law=one: (
                float(np.exp(law.log_density(law.point() + z * law.sd()))[0]) * float(law.sd()[0])
            ),
            -np.inf,
            np.inf,
            limit=400,
        )
        assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_draws_follow_the_cdf(name: str) -> None:
    law = stated(name)
    drawn = law.sample(np.random.default_rng(0), 3000)
    for level in (0.1, 0.5, 0.9):
        q = law.quantile([level])[:, 0]
        share = (drawn <= q[:, None]).mean(axis=1)
        np.testing.assert_allclose(share, law.cdf(q), atol=4 * np.sqrt(0.25 / 3000))


@pytest.mark.parametrize("name", sorted(set(LAWS) - set(COUNTS)))
def test_laws_are_in_the_units_of_y(name: str) -> None:
    plain, moved = stated(name), stated(name, center=100.0, unit=5.0)
    np.testing.assert_allclose(moved.point(), 100.0 + 5.0 * plain.point())
    np.testing.assert_allclose(moved.sd(), 5.0 * plain.sd())
    y = np.linspace(-1.0, 1.0, plain.n)
    np.testing.assert_allclose(moved.cdf(100.0 + 5.0 * y), plain.cdf(y), rtol=1e-9)
    lower, upper = moved.interval(0.8)
    low, high = plain.interval(0.8)
    np.testing.assert_allclose([lower, upper], 100.0 + 5.0 * np.array([low, high]), rtol=1e-9)


def test_quantiles_bound_intervals() -> None:
    prediction = QuantileHead().prediction(
        np.linspace(-2, 2, 11)[:, None] + np.zeros((11, 3)), 10.0, 3.0
    )
    for coverage in (0.5, 0.7, 0.8, 0.9, 0.95):
        lower, upper = prediction.interval(coverage)
        assert (lower < 10.0).all()
        assert (upper > 10.0).all()


@pytest.mark.parametrize(
    ("mu", "phi", "raw", "corrected"),
    [
        (10.0, 0.2, 1.043, 0.994),
        (10.0, 0.5, 1.012, 1.002),
        (10.0, 2.0, 0.996, 1.000),
        (10.0, 5.0, 0.993, 1.000),
        (2.0, 0.2, 0.950, 0.600),
    ],
)
def test_sums_of_the_double_poisson_law(
    mu: float, phi: float, raw: float, corrected: float
) -> None:
    """With neither constant the published likelihood is no law; what the head states is one."""
    prediction = DoublePoissonHead().prediction(np.log([[mu], [phi]]), 0.0, 1.0)
    counts = np.arange(3000.0)[None]
    law = DoublePoissonLaw([mu], [phi])
    total = float(np.exp(law.log_pmf(counts, "none")).sum())
    assert total == pytest.approx(raw, abs=1e-3)
    assert total * float(efron_constant([mu], [phi])[0]) == pytest.approx(corrected, abs=1e-3)
    shares = np.exp(prediction.log_density(np.array([0.0]))), law.pmf(counts)
    assert shares[0][0] == pytest.approx(shares[1][0, 0], rel=1e-9)
    assert shares[1].sum() == pytest.approx(1.0, abs=1e-9)


def test_moments_of_the_double_poisson_law() -> None:
    """Mean about μ and variance about μ/φ; at μ = 2, φ = 0.2 the mean is 1.300 μ."""
    low = DoublePoissonHead().prediction(np.log([[2.0], [0.2]]), 0.0, 1.0)
    assert low.point()[0] / 2.0 == pytest.approx(1.300, abs=1e-3)
    phi = np.array([0.5, 2.0, 5.0])
    high = DoublePoissonHead().prediction(np.log([[10.0] * 3, phi.tolist()]), 0.0, 1.0)
    np.testing.assert_allclose(high.point(), 10.0, rtol=0.01)
    np.testing.assert_allclose(high.sd() ** 2, 10.0 / phi, rtol=0.05)
