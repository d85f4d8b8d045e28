"""Distributions: SciPy's answers, for normal laws and for any other family."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.predictions import Distribution
from howsure.predictions.distribution import law_named
from howsure.predictions.laws import NormalLaw

SETTINGS = examples(60)
N = 12
GRID = np.linspace(0.5, 3.0, N)
FAMILIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "norm": (stats.norm(GRID - 1, GRID), {"loc": GRID - 1, "scale": GRID}),
    "t": (stats.t(GRID + 3, GRID, 2.0), {"df": GRID + 3, "loc": GRID, "scale": 2.0}),
    "laplace": (stats.laplace(GRID), {"loc": GRID}),
    "gamma": (stats.gamma(GRID, scale=2.0), {"a": GRID, "scale": 2.0}),
    "lognorm": (stats.lognorm(0.5, scale=GRID), {"s": 0.5, "scale": GRID}),
    "beta": (stats.beta(GRID, 2.0, 1.0, 3.0), {"a": GRID, "b": 2.0, "loc": 1.0, "scale": 3.0}),
    "truncnorm": (stats.truncnorm(-GRID, np.inf, GRID), {"a": -GRID, "b": np.inf, "loc": GRID}),
    "poisson": (stats.poisson(GRID), {"mu": GRID}),
    "nbinom": (stats.nbinom(GRID, 0.3, loc=2), {"n": GRID, "p": 0.3, "loc": 2}),
    "binom": (stats.binom(9, GRID / 4), {"n": 9, "p": GRID / 4}),
}


@pytest.fixture(params=FAMILIES, scope="module")
def pair(request: pytest.FixtureRequest) -> tuple[Any, Distribution]:
    frozen, parameters = FAMILIES[request.param]
    return frozen, Distribution(request.param, parameters)


def test_answers_are_those_of_scipy(pair: tuple[Any, Distribution]) -> None:
    frozen, prediction = pair
    levels = np.array([0.9, 0.05, 0.5])
    quantiles = np.stack([np.broadcast_to(frozen.ppf(p), N) for p in levels], axis=1)
    np.testing.assert_allclose(prediction.quantile(levels), quantiles, rtol=1e-10)
    y = np.floor(quantiles[:, 2] + 0.3)
    np.testing.assert_allclose(prediction.cdf(y), frozen.cdf(y), rtol=1e-10)
    density = frozen.logpmf(y) if prediction.discrete else frozen.logpdf(y)
    np.testing.assert_allclose(prediction.log_density(y), density, rtol=1e-9)
    np.testing.assert_allclose(prediction.point(), frozen.mean(), rtol=1e-10)
    np.testing.assert_allclose(prediction.sd(), frozen.std(), rtol=1e-10)
    low, high = prediction.interval(0.8)
    np.testing.assert_allclose(low, frozen.ppf(0.1), rtol=1e-10)
    np.testing.assert_allclose(high, frozen.ppf(0.9), rtol=1e-10)


def test_a_frozen_law_is_the_same(pair: tuple[Any, Distribution]) -> None:
    frozen, prediction = pair
    again = Distribution.from_scipy(frozen)
    assert again.law.name == prediction.law.name
    for name, values in prediction.parameters.items():
        np.testing.assert_array_equal(again.parameters[name], values)


def test_quantiles_are_the_smallest_that_reach_their_level(pair: tuple[Any, Distribution]) -> None:
    _, prediction = pair
    for level in (0.01, 0.3, 0.5, 0.99):
        at = prediction.quantile([level])[:, 0]
        if prediction.discrete:
            assert (prediction.cdf(at) >= level - 1e-12).all()
            assert (prediction.cdf(at - 1) < level + 1e-12).all()
        else:
            np.testing.assert_allclose(prediction.cdf(at), level, rtol=1e-9)


def test_student_laws_draw_and_end_as_scipys_do() -> None:
    df = np.array([0.5, 1.5, 5.0])
    law, given = law_named("t"), {"df": df, "loc": GRID[:3], "scale": GRID[3:6]}
    frozen = stats.t(**given)
    for level in (0.0, 0.3, 1.0):
        np.testing.assert_array_equal(law.quantile(np.full(3, level), given), frozen.ppf(level))
    np.testing.assert_array_equal(law.mean(given), frozen.mean())
    np.testing.assert_allclose(law.sd(given), frozen.std(), rtol=1e-14)
    drawn = frozen.rvs((4, 3), random_state=np.random.default_rng(0)).T
    np.testing.assert_array_equal(law.sample(np.random.default_rng(0), 4, given), drawn)


def test_intervals_at_several_coverages_are_those_at_each(pair: tuple[Any, Distribution]) -> None:
    _, prediction = pair
    lower, upper = prediction.intervals((0.5, 0.9))
    for column, coverage in enumerate((0.5, 0.9)):
        low, high = prediction.interval(coverage)
        np.testing.assert_array_equal(lower[:, column], low)
        np.testing.assert_array_equal(upper[:, column], high)


def test_left_limits(pair: tuple[Any, Distribution]) -> None:
    """P(Y < y) = P(Y ≤ y) − P(Y = y), at points of the law and between them."""
    _, prediction = pair
    for y in (np.arange(N) % 5 + 0.0, np.arange(N) % 5 + 0.5):
        if not prediction.discrete:
            np.testing.assert_array_equal(prediction.cdf_left(y), prediction.cdf(y))
            continue
        mass = np.where(y == np.floor(y), np.exp(prediction.log_density(y)), 0.0)
        np.testing.assert_allclose(prediction.cdf_left(y), prediction.cdf(y) - mass, atol=1e-12)


def test_rows_and_draws(pair: tuple[Any, Distribution]) -> None:
    frozen, prediction = pair
    rows = np.array([7, 0])
    np.testing.assert_array_equal(prediction.take(rows).point(), prediction.point()[rows])
    np.testing.assert_array_equal(
        prediction.take(np.arange(N) > 9).point(), prediction.point()[10:]
    )
    draws = prediction.sample(np.random.default_rng(0), 4000)
    assert draws.shape == (N, 4000)
    error = np.abs(draws.mean(axis=1) - frozen.mean()) / (frozen.std() / np.sqrt(4000))
    assert error.max() < 4.5
    again = pickle.loads(pickle.dumps(prediction))
    np.testing.assert_array_equal(again.point(), prediction.point())


@SETTINGS
@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.floats(-30, 30))
def test_normal_laws_against_the_error_function(mean: float, sd: float, z: float) -> None:
    """Far into the tail, where the cumulative probability has no more than its own digits."""
    y = mean + sd * z
    prediction = Distribution.normal([mean], [sd])
    told = (y - mean) / sd
    exact = math.erfc(-told / math.sqrt(2.0)) / 2.0
    density = -told * told / 2.0 - math.log(sd * math.sqrt(2.0 * math.pi))
    slack = 1e-13 * (1.0 + told * told)  # a last digit of z moves the tail by z² of them
    assert float(prediction.cdf(np.array([y]))[0]) == pytest.approx(exact, rel=slack, abs=1e-300)
    assert float(prediction.log_density(np.array([y]))[0]) == pytest.approx(density, rel=1e-12)


def test_extremes_have_their_limits() -> None:
    prediction = Distribution.normal([0.0, -1e308, 1e308], [1e-320, 1.0, 1.0])
    y = np.array([1.0, 1e308, -1e308])
    assert prediction.cdf(y).tolist() == [1.0, 1.0, 0.0]
    assert prediction.log_density(y).tolist() == [-np.inf] * 3


def test_one_number_stands_for_every_row() -> None:
    assert Distribution("norm", {"scale": 2.0}, n=3).sd().tolist() == [2.0, 2.0, 2.0]
    assert Distribution("t", {"df": [4.0, 5.0], "loc": 1.0}).point().tolist() == [1.0, 1.0]
    assert Distribution.from_scipy(stats.norm(0, 1), n=2).n == 2
    assert isinstance(law_named("normal"), NormalLaw)


@pytest.mark.parametrize(
    ("law", "parameters", "n", "said"),
    [
        ("norm", {"mean": [0.0]}, None, "parameters of norm must be among loc, scale, got mean"),
        ("t", {"loc": [0.0]}, None, "parameters of t must include df"),
        ("norm", {"loc": [0.0, 1.0], "scale": [1.0, 1.0, 1.0]}, None, "must have 3 rows, got 2"),
        ("norm", {"loc": [0.0, 1.0]}, 3, "must have 3 rows, got 2"),
        ("norm", {"scale": [1.0, 0.0]}, None, r"sd must be above 0, got 1 .*first at row 1: 0"),
        ("norm", {"scale": [np.nan]}, None, "norm parameter scale must contain finite numbers"),
        ("norm", {"scale": [[1.0], [1.0, 2.0]]}, None, "must be one rectangular array"),
        ("norm", {"scale": "wide"}, None, "must contain real numbers"),
        ("norm", {}, 0, "n must be at least 1, got 0"),
        ("norm", {}, -2, "n must be at least 1, got -2"),
        ("gamma", {"a": [1.0, -1.0]}, None, r"gamma must be in its domain; 1 rows .*a=-1"),
        ("gamma", {"a": [1.0, np.inf]}, None, r"gamma must be in its domain; 1 rows .*a=inf"),
        ("gennorm", {"beta": np.inf}, None, "gennorm must be in its domain"),
        ("vonmises", {"kappa": np.inf}, None, "vonmises must be in its domain"),
        ("truncnorm", {"a": 0.0, "b": np.inf, "loc": np.inf}, None, "loc must contain finite"),
        ("laplace", {"scale": [-1.0]}, None, "laplace must be in its domain"),
        ("poisson", {"mu": [1.0], "loc": [0.5]}, None, "poisson must be in its domain"),
        ("poisson", {"mu": [1.0], "scale": [2.0]}, None, "among mu, loc, got scale"),
        ("nonsense", {}, 1, "law must be a distribution of scipy.stats, got 'nonsense'"),
        ("describe", {}, 1, "law must be a distribution of scipy.stats"),
        ("__class__", {}, 1, "law must be a distribution of scipy.stats"),
        (5, {}, 1, "law must be a family of distributions or the name of one, got 5"),
    ],
)
def test_laws_that_are_none_are_named(law: Any, parameters: Any, n: int | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Distribution(law, parameters, n=n)


@pytest.mark.parametrize(
    "frozen", [3.0, stats.norm, stats.multivariate_normal([0, 0]), stats.gaussian_kde([1.0, 2.0])]
)
def test_only_frozen_laws_are_wrapped(frozen: Any) -> None:
    with pytest.raises(InputError, match="law must be a frozen"):
        Distribution.from_scipy(frozen)


def test_a_discrete_law_lives_on_whole_numbers() -> None:
    half = stats.rv_discrete(values=([0.5, 1.5], [0.5, 0.5]))
    with pytest.raises(InputError, match="must be on whole numbers"):
        Distribution.from_scipy(half())
    dice = Distribution.from_scipy(stats.rv_discrete(values=([1, 2], [0.25, 0.75]))(), n=2)
    assert dice.cdf_left(np.array([2.0, 1.0])).tolist() == pytest.approx([0.25, 0.0])


def test_a_law_without_a_mean_says_so() -> None:
    with pytest.raises(UnanswerableError, match="cauchy distributions have no mean"):
        Distribution("cauchy", {"loc": [0.0]}).point()
    with pytest.raises(UnanswerableError, match="t distributions have no standard deviation"):
        Distribution("t", {"df": [1.5, 5.0]}).sd()


@pytest.mark.parametrize("wanted", [[np.nan], [0.0], [1.0], [50], ["a"]])
def test_levels_asked_for_are_checked(wanted: Any) -> None:
    with pytest.raises(InputError, match="levels"):
        Distribution.normal([0.0], [1.0]).quantile(wanted)
    for coverage in (0, 1, 90, np.nan):
        with pytest.raises(InputError, match="coverage must be strictly"):
            Distribution.normal([0.0], [1.0]).interval(coverage)
