"""Worlds made from tables: forests fitted to one, and one cut in many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure_studies.tasks.worlds import NOISES, CutWorld, ForestWorld, world_named


def table(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    draw = world_named("friedman1").training_set(0, 0, n)
    return draw.x, draw.y


@pytest.fixture(scope="module")
def forest() -> ForestWorld:
    return ForestWorld.from_data(*table(), trees=40)


def forests(x: np.ndarray, y: np.ndarray, *, in_sample: bool) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 3 written out, out-of-bag predictions from scikit-learn itself."""

    def fit(name: str, target: np.ndarray) -> RandomForestRegressor:
        state = int(child(4, "worlds", "forest", name).integers(2**31))
        model = RandomForestRegressor(
            n_estimators=40, max_depth=15, oob_score=True, random_state=state
        )
        return model.fit(x, target)

    first = fit("mean", y)
    residual = y - (first.predict(x) if in_sample else first.oob_prediction_)
    return first.predict(x), fit("variance", residual**2).predict(x)


@pytest.mark.parametrize("residuals", ["out_of_bag", "in_sample"])
def test_forests_are_those_of_the_algorithm(residuals: Any) -> None:
    x, y = table()
    world = ForestWorld.from_data(x, y, trees=40, seed=4, residuals=residuals)
    mean, variance = forests(x, y, in_sample=residuals == "in_sample")
    np.testing.assert_allclose(world.row_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(world.row_scale, np.sqrt(variance), rtol=1e-10)
    np.testing.assert_allclose(world.mean(x), world.row_mean)
    np.testing.assert_allclose(world.scale(x), world.row_scale)


def test_in_sample_noise_is_the_smaller() -> None:
    x, y = table()
    sizes = [
        np.square(ForestWorld.from_data(x, y, trees=40, residuals=r).row_scale).mean()
        for r in ("in_sample", "out_of_bag")
    ]
    assert sizes[0] < 0.3 * sizes[1]


def test_test_rows_and_training_rows_are_apart(forest: ForestWorld) -> None:
    test = forest.test_set(0, 30)
    own = {tuple(row) for row in test.x}
    assert len(own) == 30
    fixed = forest.training_set(0, 0, covariates="fixed", n_test=30)
    assert fixed.n == 90
    assert not own & {tuple(row) for row in fixed.x}
    assert {tuple(row) for row in fixed.x} | own == {tuple(row) for row in forest.x}
    drawn, other = (forest.training_set(0, t, 60, n_test=30) for t in (0, 1))
    first, second = ({tuple(row) for row in d.x} for d in (drawn, other))
    assert len(first) == len(second) == 60
    assert first != second
    assert not own & (first | second)
    more = forest.training_set(0, 0, 80, n_test=30)
    assert np.array_equal(more.x[:60], drawn.x)
    assert np.array_equal(more.y[:60], drawn.y)


def test_only_y_is_simulated(forest: ForestWorld) -> None:
    first, second = (forest.training_set(0, t, 50, covariates="fixed") for t in (0, 1))
    assert np.array_equal(first.x, second.x)
    assert not np.isin(first.y, second.y).any()
    again = forest.training_set(0, 1, 50, covariates="fixed")
    assert np.array_equal(again.y, second.y)
    z = [(d.y - forest.mean(d.x)) / forest.scale(d.x) for d in (first, second)]
    assert abs(np.mean(z)) < 0.3
    assert np.std(z) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("noise", NOISES)
def test_true_intervals_of_a_forest_cover_alike_everywhere(forest: ForestWorld, noise: str) -> None:
    world = forest.with_noise(noise)
    truth = world.truth(world.test_set(0).x)
    lower, upper = truth.interval(0.5)
    np.testing.assert_allclose(truth.cdf(upper) - truth.cdf(lower), 0.5, atol=1e-7)


def test_the_floor_holds_and_is_counted() -> None:
    x = np.linspace(0, 1, 100)[:, None]
    y = np.where(x[:, 0] < 0.5, 0.0, np.random.default_rng(0).normal(size=100))
    world = ForestWorld.from_data(x, y, trees=40, floor=0.5)
    assert world.floored > 20
    assert world.row_scale.min() == world.floor
    assert world.scale(np.array([[0.1]]))[0] == world.floor


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"residuals": "oob"}, "residuals must be"),
        ({"trees": 0}, "trees must be"),
        ({"trees": 2}, "trees must suffice"),
        ({"depth": 0}, "depth must be"),
        ({"leaf": 0}, "leaf must be"),
        ({"floor": 0.0}, "floor must be in"),
        ({"noise": "norml"}, "near: normal"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ForestWorld.from_data(*table(30), **options)


def test_bad_tables_are_refused(forest: ForestWorld) -> None:
    x, y = table(30)
    with pytest.raises(InputError, match="no noise"):
        ForestWorld.from_data(x, np.ones(30))
    with pytest.raises(InputError, match="at least 10 rows"):
        ForestWorld.from_data(x[:9], y[:9])
    with pytest.raises(InputError, match="x must contain finite"):
        ForestWorld.from_data(np.where(x > 0.9, np.nan, x), y)
    with pytest.raises(InputError, match=r"n_test must be .* at most 119"):
        forest.test_set(0, 120)
    with pytest.raises(InputError, match=r"n_train must be .* at most 96"):
        forest.training_set(0, 0, 97)
    with pytest.raises(InputError, match="10 columns"):
        forest.truth(np.zeros((2, 3)))


def test_a_cut_table_shares_no_row() -> None:
    x = np.arange(103.0)
    world = CutWorld.from_data(x, x**2, rows=10)
    test = world.test_set(5, 20)
    trials = int(world.trials_available(n_test=20))
    assert trials == 8
    sets = [world.training_set(5, t, n_test=20) for t in range(trials)]
    seen = np.concatenate([test.x[:, 0], *[d.x[:, 0] for d in sets]])
    assert len(seen) == len(set(seen.tolist())) == 100
    for draw in (test, *sets):
        assert np.array_equal(draw.y, draw.x[:, 0] ** 2)
    with pytest.raises(InputError, match="trial must be below 8"):
        world.training_set(5, 8, n_test=20)


def test_a_cut_table_knows_no_truth() -> None:
    world = CutWorld.from_data(np.arange(50.0), np.arange(50.0), rows=5)
    assert not world.knows_truth
    with pytest.raises(UnanswerableError, match="each x has one y"):
        world.truth(np.zeros((1, 1)))
    with pytest.raises(InputError, match="covariates must be 'random'"):
        world.training_set(0, 0, covariates="fixed")


def test_a_table_too_small_to_cut_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 rows"):
        CutWorld.from_data([1.0], [1.0])
    with pytest.raises(InputError, match="rows must be"):
        CutWorld.from_data(np.arange(10.0), np.arange(10.0), rows=6)
    assert CutWorld.from_data(np.arange(1010.0), np.arange(1010.0)).trials_available() == 100
