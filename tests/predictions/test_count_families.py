"""Laws of counts as distributions: names, parameters, shapes, and what comes in at the door."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.predictions import Distribution, EvalSet
from howsure.predictions.counts import CountFamily, DoublePoisson
from howsure.predictions.counts.family import COUNT_FAMILIES
from howsure.predictions.distribution import law_named
from howsure.predictions.laws import ScipyLaw

MU = np.array([0.3, 4.0, 55.0, 2000.0])
SECOND = np.array([0.5, 1.0, 3.0, 0.2])
PARAMETERS = {
    "poisson": {"mu": MU},
    "negative_binomial": {"mu": MU, "dispersion": SECOND},
    "double_poisson": {"mu": MU, "phi": SECOND},
}


@pytest.fixture(params=COUNT_FAMILIES)
def prediction(request: pytest.FixtureRequest) -> Distribution:
    return Distribution(request.param, PARAMETERS[request.param])


def test_names_give_families() -> None:
    for name in COUNT_FAMILIES:
        assert isinstance(law_named(name), CountFamily)
    assert isinstance(law_named("nbinom"), ScipyLaw)
    with pytest.raises(InputError, match="law must be one of poisson"):
        CountFamily("counts")


def test_negative_binomial_is_that_of_scipy() -> None:
    prediction = Distribution("negative_binomial", PARAMETERS["negative_binomial"])
    frozen = stats.nbinom(1.0 / SECOND, 1.0 / (1.0 + SECOND * MU))
    y = np.array([0.0, 6.0, 50.0, 1500.0])
    np.testing.assert_allclose(prediction.log_density(y), frozen.logpmf(y), rtol=1e-10)
    np.testing.assert_allclose(prediction.cdf(y), frozen.cdf(y), rtol=1e-10)
    np.testing.assert_allclose(
        prediction.quantile([0.1, 0.9]).T, [frozen.ppf(0.1), frozen.ppf(0.9)]
    )
    np.testing.assert_allclose(prediction.sd(), np.sqrt(MU + SECOND * MU**2))


def test_poisson_moves_as_in_scipy() -> None:
    prediction = Distribution("poisson", {"mu": MU, "loc": 3.0})
    frozen = stats.poisson(MU, loc=3)
    y = np.array([2.0, 8.0, 60.0, 2001.0])
    np.testing.assert_allclose(prediction.log_density(y), frozen.logpmf(y), rtol=1e-10)
    np.testing.assert_allclose(prediction.cdf_left(y), frozen.cdf(y - 1.0), rtol=1e-10)
    np.testing.assert_array_equal(prediction.quantile([0.4])[:, 0], frozen.ppf(0.4))
    np.testing.assert_allclose(prediction.point(), MU + 3.0)
    assert prediction.sample(np.random.default_rng(0), 50).min() >= 3.0


def test_answers_broadcast(prediction: Distribution) -> None:
    """(n,) with (n,), (n, m) with (n, 1), and one set of parameters for many values."""
    family, parameters = prediction.law, prediction.parameters
    values = np.array([[0.0, 1.0, 9.0]] * 4) + MU[:, None].round()
    upright = {name: value[:, None] for name, value in parameters.items()}
    for ask in (family.cdf, family.log_density):
        table = ask(values, upright)
        for column in range(3):
            np.testing.assert_allclose(table[:, column], ask(values[:, column], parameters))
        single = {name: value[1:2] for name, value in parameters.items()}
        np.testing.assert_allclose(ask(values[1], single), table[1])
    levels = np.full((4, 2), [0.2, 0.7])
    np.testing.assert_array_equal(family.quantile(levels, upright), prediction.quantile([0.2, 0.7]))


def test_rows_pickles_and_moments(prediction: Distribution) -> None:
    again = pickle.loads(pickle.dumps(prediction)).take(np.array([2, 0]))
    np.testing.assert_allclose(again.point(), prediction.point()[[2, 0]])
    draws = prediction.sample(np.random.default_rng(1), 20_000)
    assert draws.shape == (4, 20_000)
    error = np.abs(draws.mean(axis=1) - prediction.point()) / prediction.sd()
    assert error.max() < 4.5 / np.sqrt(20_000)
    low, high = prediction.interval(0.9)
    inside = (draws >= low[:, None]) & (draws <= high[:, None])
    assert (inside.mean(axis=1) > 0.89).all()


def test_what_is_no_count_has_no_probability(prediction: Distribution) -> None:
    for y in (-1.0, 2.5, -0.5):
        assert (prediction.log_density(np.full(4, y)) == -np.inf).all()
        mass = prediction.cdf(np.full(4, y)) - prediction.cdf_left(np.full(4, y))
        np.testing.assert_array_equal(mass, 0.0)


@pytest.mark.parametrize("y", [-1.0, 2.5])
def test_the_door_asks_for_counts(prediction: Distribution, y: float) -> None:
    said = f"{prediction.law.name} distributions need y to be counts .*; 1 values .*row 2: {y:g}"
    with pytest.raises(InputError, match=said):
        EvalSet.checked([0.0, 1.0, y, 3.0], prediction)
    assert EvalSet.checked([0.0, 1.0, 2.0, 3.0], prediction).n == 4


@pytest.mark.parametrize(
    ("name", "parameters", "said"),
    [
        ("double_poisson", {"mu": 1.0}, "must include phi"),
        ("double_poisson", {"mu": 1.0, "phi": 0.0}, "of double_poisson must be .* phi must be"),
        ("double_poisson", {"mu": 1.0, "phi": 1.0, "loc": 1.0}, "among mu, phi, got loc"),
        ("negative_binomial", {"mu": -1.0, "dispersion": 1.0}, "mu must be between 0"),
        ("double_poisson", {"mu": 1.0, "phi": -1.0}, "phi must be between"),
        ("poisson", {"mu": 1.0, "loc": 0.5}, "loc must be whole, got 0.5"),
    ],
)
def test_bad_parameters_are_named(name: str, parameters: dict[str, float], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Distribution(name, parameters, n=1)


def test_published_likelihoods_leave_the_constant_out() -> None:
    """−½ log φ + φμ − φ y (1 + log μ − log y) and the terms that do not depend on the model."""
    mu, phi, y = 7.0, 2.0, 9.0
    loss = -0.5 * np.log(phi) + phi * mu - phi * y * (1.0 + np.log(mu) - np.log(y))
    own = -y + y * np.log(y) - np.sum(np.log(np.arange(1.0, y + 1.0)))
    found = DoublePoisson([mu], [phi]).log_pmf([y], "none")[0]
    assert found == pytest.approx(own - loss, rel=1e-12)
