"""Worlds: named draws, and a truth that agrees with what is drawn."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure_studies.tasks.worlds import (
    NOISES,
    Box,
    CentredGamma,
    CutWorld,
    Draw,
    FunctionWorld,
    KnownWorld,
    Truth,
    TwoModes,
    constant,
    world_named,
    worlds,
)

EVERY = [(world, noise) for world in worlds() for noise in NOISES]


def check_true_intervals(truth: Truth, coverage: float) -> None:
    """Mass is the coverage, but for what moving both ends by a rounding of y changes.

    That is below 1e-11 for all laws but the gamma, which has mass within a rounding of its end.
    """
    lower, upper = truth.interval(coverage)
    mass = truth.cdf(upper) - truth.cdf(lower)
    slack = np.full(len(mass), 1e-12)
    for end in (lower, upper):
        step = 4 * np.spacing(np.maximum(np.abs(end), np.abs(truth.mean)))
        slack += truth.cdf(end + step) - truth.cdf(end - step)
    assert (np.abs(mass - coverage) <= slack).all()
    if not isinstance(truth.noise, CentredGamma) or coverage <= 0.5:
        assert slack.max() < 1e-9


def line(scale: Any = 0.1) -> FunctionWorld:
    return FunctionWorld(
        name="line",
        inputs=Box((0.0,), (1.0,)),
        mean_function=lambda x: x[:, 0],
        scale_function=scale if callable(scale) else constant(scale),
    )


@pytest.mark.parametrize(("name", "noise"), EVERY)
def test_true_intervals_cover_alike_at_every_point(name: str, noise: str) -> None:
    """The law of the catalogue: a method that knows all has PICF = 1 − α everywhere."""
    world = world_named(name, noise=noise)
    truth = world.truth(world.test_set(0, 60).x)
    for coverage in (0.5, 0.8, 0.95):
        check_true_intervals(truth, coverage)


@pytest.mark.parametrize("name", worlds())
@pytest.mark.parametrize("noise", ["normal", "gamma", "heavy_tailed"])
def test_what_is_drawn_agrees_with_the_truth(name: str, noise: str) -> None:
    """P(Y ≤ y | x) of what was drawn is uniform, and independent of x."""
    world = world_named(name, noise=noise)
    for draw in (world.test_set(1, 3000), world.training_set(1, 5, 3000)):
        pit = world.truth(draw.x).cdf(draw.y)
        assert stats.kstest(pit, "uniform").pvalue > 1e-3
        for column in draw.x.T:  # the noise knows nothing of x
            assert abs(stats.spearmanr(column, pit).statistic) < 0.08


@pytest.mark.parametrize("name", worlds())
def test_moments_are_those_of_simulation(name: str) -> None:
    world = worlds()[name]
    x = np.repeat(world.test_set(0, 3).x, 20000, axis=0)
    truth = world.truth(x)
    y = truth.sample(np.random.default_rng(0)).reshape(3, -1)
    sd = truth.sd.reshape(3, -1)[:, 0]
    assert (np.abs(y.mean(axis=1) - truth.mean.reshape(3, -1)[:, 0]) < 5 * sd / 141).all()
    np.testing.assert_allclose(y.std(axis=1), sd, rtol=0.03)


def test_the_functions_are_the_published_ones() -> None:
    from sklearn import datasets as data

    for number in (1, 2, 3):
        make = getattr(data, f"make_friedman{number}")
        x, y = make(n_samples=50, noise=0.0, random_state=0)
        world = worlds()[f"friedman{number}"]
        np.testing.assert_allclose(world.mean(x), y, rtol=1e-10)
        assert isinstance(world, FunctionWorld)
        assert isinstance(world.inputs, Box)
        assert (x >= world.inputs.lower).all()
        assert (x <= world.inputs.upper).all()
    branin = worlds()["branin"]
    lowest = np.array([[-math.pi, 12.275], [math.pi, 2.275], [9.42478, 2.475]])
    np.testing.assert_allclose(branin.mean(lowest), 0.397887, atol=1e-5)
    ishigami = worlds()["ishigami"]
    assert ishigami.mean(np.full((1, 3), math.pi / 2))[0] == pytest.approx(
        8 + 0.1 * (math.pi / 2) ** 4
    )
    draw = ishigami.test_set(0, 200_000)
    variance = 7**2 / 8 + 0.1 * math.pi**4 / 5 + 0.01 * math.pi**8 / 18 + 0.5
    assert ishigami.mean(draw.x).var() == pytest.approx(variance, rel=0.02)


def test_the_toys_are_those_of_the_paper() -> None:
    x = np.array([[-0.5], [0.0], [0.5]])
    for name in ("toy_homoscedastic", "toy_heteroscedastic", "toy_bimodal"):
        assert worlds()[name].mean(x).tolist() == [-8.0, -1.0, 0.0]
    assert worlds()["toy_homoscedastic"].scale(x).tolist() == [0.2] * 3
    np.testing.assert_allclose(worlds()["toy_heteroscedastic"].scale(x), [0.35, 0.1, 0.35])
    modes = worlds()["toy_bimodal"].test_set(0, 20000).x[:, 0]
    left, right = modes[modes < -0.05], modes[modes > -0.05]
    assert left.mean() == pytest.approx(-0.4, abs=0.003)
    assert right.mean() == pytest.approx(0.3, abs=0.003)
    assert left.std() == pytest.approx(0.07, rel=0.03)
    assert len(left) == pytest.approx(10000, rel=0.03)
    assert ((modes > -0.2) & (modes < 0.1)).mean() < 0.01


@pytest.mark.parametrize("name", worlds())
def test_draws_come_from_names(name: str) -> None:
    world = worlds()[name]
    test = world.test_set(0, 30)
    assert np.array_equal(world.test_set(0, 30).y, test.y)
    assert np.array_equal(world.test_set(0, 50).x[:30], test.x)
    assert np.array_equal(world.test_set(0, 50).y[:30], test.y)
    third = world.training_set(0, 3, 20)
    assert np.array_equal(world.training_set(0, 3, 40).y[:20], third.y)
    others = (world.training_set(0, 4, 20), world.training_set(1, 3, 20), world.test_set(0, 20))
    for other in others:
        assert not np.isin(other.y, third.y).any()
        assert not np.isin(other.x[:, 0], third.x[:, 0]).any()


def test_fixed_covariates_are_shared_and_y_is_new() -> None:
    world = worlds()["friedman1"]
    first, second = (world.training_set(0, t, 20, covariates="fixed") for t in (0, 1))
    assert np.array_equal(first.x, second.x)
    assert not np.isin(first.y, second.y).any()


def test_worlds_that_differ_in_noise_share_their_random_numbers() -> None:
    world = worlds()["toy_heteroscedastic"]
    normal = world.training_set(0, 0, 50)
    heavy = world.with_noise("laplace").training_set(0, 0, 50)
    assert np.array_equal(normal.x, heavy.x)
    ranks = [np.argsort((d.y - world.mean(d.x)) / world.scale(d.x)) for d in (normal, heavy)]
    assert np.array_equal(*ranks)


def test_an_infinite_sd_is_said() -> None:
    world = world_named("linear", noise="heavy_tailed")
    assert np.isinf(world.truth(np.zeros((2, 1))).sd).all()


@pytest.mark.parametrize("name", worlds())
def test_worlds_can_be_sent_to_other_processes(name: str) -> None:
    world = pickle.loads(pickle.dumps(worlds()[name]))
    assert isinstance(world, KnownWorld)
    assert np.array_equal(world.test_set(0, 5).y, worlds()[name].test_set(0, 5).y)


def test_every_world_says_what_it_is() -> None:
    for name, world in worlds().items():
        assert world.name == name
        assert world.description
        assert world.knows_truth


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_a_world_without_noise_is_refused(scale: float) -> None:
    with pytest.raises(InputError, match="scale above 0 at every x"):
        line(scale).test_set(0, 5)


def test_noise_that_vanishes_somewhere_is_refused() -> None:
    with pytest.raises(InputError, match="got 1 that are not"):
        line(lambda x: x[:, 0]).truth(np.array([[0.0], [1.0]]))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: world_named("freidman1"), "near: friedman1"),
        (lambda: world_named("linear", noise="gausian"), "noise must be one of"),
        (lambda: worlds()["linear"].test_set(0, 0), "n_test must be a whole number"),
        (lambda: worlds()["linear"].training_set(0, 0, 2.5), "n_train must be a whole number"),
        (lambda: worlds()["linear"].training_set(0, -1), "trial must be a whole number"),
        (lambda: worlds()["linear"].training_set(0, 0, covariates="same"), "covariates must be"),
        (lambda: worlds()["linear"].test_set(-1), "seed must be an integer"),
        (lambda: worlds()["friedman1"].truth(np.zeros((2, 3))), "10 columns"),
        (
            lambda: worlds()["linear"].truth(np.zeros((2, 1))).quantile(1.5),
            "levels must be strictly",
        ),
        (lambda: Box((0.0,), (0.0,)), "upper must exceed lower"),
        (lambda: Box((0.0,), (1.0, 2.0)), "one number per column"),
        (lambda: TwoModes((0.0, 1.0), 0.0), "sd must be"),
        (lambda: TwoModes((0.0, math.nan), 1.0), "centers must be"),
        (lambda: Draw.checked([[1.0]], [1.0, 2.0]), "y must have 1 rows"),
    ],
)
def test_bad_questions_are_refused(ask: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ask()


def test_functions_of_the_wrong_shape_are_refused() -> None:
    world = FunctionWorld(
        name="bad",
        inputs=Box((0.0,), (1.0,)),
        mean_function=lambda x: x,
        scale_function=constant(1.0),
    )
    with pytest.raises(InputError, match="mean_function of world 'bad' must return shape"):
        world.test_set(0, 4)
    broken = FunctionWorld(
        name="bad",
        inputs=Box((0.0,), (1.0,)),
        mean_function=constant(math.nan),
        scale_function=constant(1.0),
    )
    with pytest.raises(InputError, match="finite at every x"):
        broken.test_set(0, 4)


def test_a_world_without_truth_has_no_noise_to_change() -> None:
    cut = CutWorld.from_data(np.arange(40.0), np.arange(40.0), rows=5)
    with pytest.raises(InputError, match="must be left out"):
        world_named(cut, noise="normal")
