"""Noise laws against SciPy's own, and against integrals of their densities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from generated import examples
from howsure.core.errors import InputError
from howsure_studies.tasks.worlds import (
    NOISES,
    CentredGamma,
    Mixture,
    Noise,
    Skewed,
    StudentT,
    noise_named,
)

SHAPE = 0.1
SLANT = stats.skewnorm(5.0)
REFERENCES: dict[str, Any] = {
    "normal": stats.norm(),
    "student_t3": stats.t(3, scale=math.sqrt(1 / 3)),
    "gamma": stats.gamma(SHAPE, loc=-math.sqrt(SHAPE), scale=1 / math.sqrt(SHAPE)),
    "skewed": stats.skewnorm(5.0, loc=-SLANT.mean() / SLANT.std(), scale=1 / SLANT.std()),
    "heavy_tailed": stats.t(1.5),
    "laplace": stats.laplace(scale=math.sqrt(0.5)),
    "uniform": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)),
}
Z = np.concatenate([-np.geomspace(1e-3, 8, 25), [0.0], np.geomspace(1e-3, 8, 25)])


def mixture_cdf(z: np.ndarray) -> np.ndarray:
    sd = math.sqrt(1 - 0.81)
    return 0.5 * stats.norm.cdf(z, -0.9, sd) + 0.5 * stats.norm.cdf(z, 0.9, sd)


@pytest.mark.parametrize("name", NOISES)
def test_laws_match_their_references(name: str) -> None:
    law = NOISES[name]
    cdf = mixture_cdf(Z) if name == "mixture" else REFERENCES[name].cdf(Z)
    np.testing.assert_allclose(law.cdf(Z), cdf, rtol=1e-9, atol=1e-14)
    if name != "mixture":
        with np.errstate(divide="ignore"):
            log = REFERENCES[name].logpdf(Z)
        edge = np.isclose(np.abs(Z), math.sqrt(3)) if name == "uniform" else np.zeros(len(Z), bool)
        np.testing.assert_allclose(law.log_density(Z)[~edge], log[~edge], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", NOISES)
def test_the_density_is_the_slope_of_the_cdf(name: str) -> None:
    law, step = NOISES[name], 1e-6
    z = law.quantile(np.array([0.6, 0.7, 0.8, 0.9]))
    if name != "gamma":  # whose density has a pole at the left end, too sharp for this step
        z = np.concatenate([-z[::-1], z])
    slope = (law.cdf(z + step) - law.cdf(z - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(law.log_density(z)), slope, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOISES)
def test_laws_have_mean_zero_and_sd_one(name: str) -> None:
    """Moments as integrals of the quantile function over (0, 1)."""
    law = NOISES[name]

    def power(k: int) -> float:
        total = 0.0
        for low, high in ((0.0, 0.5), (0.5, 1.0)):
            total += integrate.quad(
                lambda p: float(law.quantile(np.array([p]))[0]) ** k, low, high, limit=400
            )[0]
        return total

    if name == "heavy_tailed":
        assert law.sd == math.inf
        z = law.quantile(np.array([0.1, 0.9]))
        assert z[0] == pytest.approx(-z[1])
        return
    assert law.sd == 1.0
    assert power(1) == pytest.approx(0.0, abs=2e-3)
    assert power(2) == pytest.approx(1.0, abs=2e-2 if name == "student_t3" else 2e-3)


@examples(40)
@given(st.sampled_from(sorted(NOISES)), st.floats(1e-6, 1 - 1e-6))
def test_quantiles_invert_the_cdf(name: str, level: float) -> None:
    law = NOISES[name]
    z = law.quantile(np.array([level]))
    below, above = (law.cdf(z + k * np.spacing(np.abs(z))) for k in (-4, 4))
    assert below[0] <= level * (1 + 1e-12) + 1e-15
    assert level * (1 - 1e-12) - 1e-15 <= above[0]
    if name != "gamma" or level > 0.5:
        assert above[0] - below[0] < 1e-13  # elsewhere the bracket is tight


def test_the_gamma_law_has_mass_too_close_to_its_end_for_doubles() -> None:
    """What its docstring warns of: 2 % of draws lie within a rounding of the least value."""
    law = CentredGamma()
    least = -math.sqrt(0.1)
    near = float(law.cdf(np.array([least + np.spacing(abs(least))]))[0])
    assert near == pytest.approx(0.023, abs=0.003)
    assert law.quantile(np.array([0.01]))[0] == pytest.approx(least, abs=1e-16)


@pytest.mark.parametrize("name", NOISES)
def test_draws_follow_the_law(name: str) -> None:
    draws = NOISES[name].sample(np.random.default_rng(3), 4000)
    reference = mixture_cdf if name == "mixture" else REFERENCES[name].cdf
    assert stats.kstest(draws, reference).pvalue > 1e-3
    assert np.isfinite(draws).all()


@pytest.mark.parametrize("name", NOISES)
def test_a_longer_sample_begins_with_the_shorter(name: str) -> None:
    law = NOISES[name]
    short = law.sample(np.random.default_rng(0), 5)
    assert np.array_equal(law.sample(np.random.default_rng(0), 9)[:5], short)


@pytest.mark.parametrize("name", NOISES)
def test_infinite_ends_have_the_right_probability(name: str) -> None:
    ends = NOISES[name].cdf(np.array([-np.inf, np.inf]))
    assert ends.tolist() == [0.0, 1.0]


def test_uniform_extremes_of_the_generator_stay_finite() -> None:
    class Lowest(np.random.Generator):
        def random(self, size: int) -> np.ndarray:
            return np.zeros(size)

    lowest = Lowest(np.random.PCG64(0))
    for law in NOISES.values():
        assert np.isfinite(law.sample(lowest, 2)).all()


def test_the_shapes_of_laws_matter() -> None:
    one: list[Noise] = [StudentT(5.0), CentredGamma(2.0), Skewed(-3.0), Mixture(0.5)]
    for law in one:
        level = law.cdf(np.array([0.3]))
        np.testing.assert_allclose(law.quantile(level), 0.3, rtol=1e-9)
    assert Skewed(0.0).cdf(np.array([1.0]))[0] == pytest.approx(stats.norm.cdf(1.0))
    assert Skewed(-3.0).cdf(np.array([0.4]))[0] == pytest.approx(
        1 - Skewed(3.0).cdf(np.array([-0.4]))[0]
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StudentT(1.0), "freedom"),
        (lambda: StudentT(math.inf), "freedom"),
        (lambda: CentredGamma(0.0), "shape"),
        (lambda: Skewed(math.nan), "slant"),
        (lambda: Mixture(1.0), "offset"),
        (lambda: noise_named("gamma_"), "near: gamma"),
        (lambda: noise_named("zzz"), "noise must be one of normal"),
    ],
)
def test_bad_laws_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
