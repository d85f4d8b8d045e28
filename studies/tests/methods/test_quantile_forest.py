"""Quantile forests against brute-force weights, and against the package quantile-forest."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from extras import needs
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Quantiles
from howsure_studies.methods.quantile_forest import FittedForest, QuantileForest


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = child(seed, "rows")
    x = rng.uniform(-1, 1, size=(n, 3))
    return x, x[:, 0] + (0.3 + np.abs(x[:, 1])) * rng.normal(size=n)


def fitted(rule: Any, n: int = 90, **options: Any) -> tuple[FittedForest, np.ndarray, np.ndarray]:
    x, y = rows(n)
    y = np.round(y, 1)  # ties too
    method = QuantileForest(trees=7, min_leaf=4, rows=rule, **options)
    return method.fit(x, y, np.random.default_rng(1)), x, y


def brute_weights(
    forest: FittedForest, x: np.ndarray, new: np.ndarray, rule: str
) -> list[list[Fraction]]:
    """Weights of the training rows by the definition, in their own order, exactly."""
    trees = forest.forest.estimators_
    table = [[Fraction(0)] * len(x) for _ in new]
    for tree, drawn in zip(trees, forest.forest.estimators_samples_, strict=True):
        count = np.bincount(drawn, minlength=len(x)) if rule == "bag" else np.ones(len(x), int)
        home, at = tree.apply(x.astype(np.float32)), tree.apply(new.astype(np.float32))
        for row, leaf in enumerate(at):
            total = int(count[home == leaf].sum())
            for i in np.flatnonzero(home == leaf):
                table[row][i] += Fraction(int(count[i]), total * len(trees))
    return table


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["all", "bag"])
def test_weights_and_quantiles_are_the_definition(rule: str) -> None:
    forest, x, y = fitted(rule, coverages=(0.2, 0.5, 0.8))
    new = rows(25, seed=2)[0]
    exact = brute_weights(forest, x, new, rule)
    order = np.argsort(y, kind="stable")
    dense = forest.weights(new).toarray()
    np.testing.assert_allclose(dense, np.array(exact, dtype=float)[:, order], atol=1e-15)
    prediction = forest.predict(new).outcome
    assert isinstance(prediction, Quantiles)
    levels = [Fraction(round(1000 * level), 1000) for level in prediction.levels]
    for row, weights in enumerate(exact):
        for column, level in enumerate(levels):
            expected = min(
                value
                for value in sorted(set(y.tolist()))
                if sum(w for w, at in zip(weights, y, strict=True) if at <= value) >= level
            )
            assert prediction.values[row, column] == expected


def test_the_mean_of_the_bags_law_is_the_forests_forecast() -> None:
    forest, _, _ = fitted("bag")
    new = rows(25, seed=2)[0]
    np.testing.assert_allclose(forest.weights(new) @ forest.y, forest.forest.predict(new))


def test_the_package_quantile_forest_agrees() -> None:
    """Its quantiles lie between two neighbouring y; ours is one of the two."""
    peer = needs("quantile_forest")
    x, y = rows(400)
    new = rows(60, seed=3)[0]
    forest = QuantileForest(trees=15, rows="bag").fit(x, y, np.random.default_rng(1))
    other = peer.RandomForestQuantileRegressor(
        15,
        min_samples_leaf=5,
        max_features=1.0,
        max_samples_leaf=None,
        random_state=forest.forest.random_state,
    ).fit(x, y)
    levels = forest.levels.tolist()
    low, high = (
        other.predict(new, quantiles=levels, weighted_leaves=True, interpolation=side)
        for side in ("lower", "higher")
    )
    prediction = forest.predict(new).outcome
    assert isinstance(prediction, Quantiles)
    place = np.searchsorted(forest.y, prediction.values)
    below = np.searchsorted(forest.y, low)
    above = np.searchsorted(forest.y, high)
    assert ((prediction.values == low) | (prediction.values == high)).mean() > 0.95
    assert (np.minimum(np.abs(place - below), np.abs(place - above)) <= 3).all()


def test_quantiles_follow_the_true_ones() -> None:
    rng = child(4, "truth")
    x = rng.uniform(-1, 1, size=(4000, 1))
    y = x[:, 0] + (0.3 + np.abs(x[:, 0])) * rng.normal(size=4000)
    method = QuantileForest(trees=40, min_leaf=60, coverages=(0.8,))
    for middle in (-0.75, 0.0, 0.75):
        grid = np.linspace(middle - 0.15, middle + 0.15, 61)[:, None]
        prediction = method.fit(x, y, rng).predict(grid).outcome
        assert isinstance(prediction, Quantiles)
        expected = grid + (0.3 + np.abs(grid)) * stats.norm.ppf(prediction.levels)
        np.testing.assert_allclose(prediction.values.mean(axis=0), expected.mean(axis=0), atol=0.15)


def test_blocks_change_nothing_and_bound_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(3000)
    forest = QuantileForest(trees=10).fit(x, y, np.random.default_rng(0))
    whole = forest.predict(x[:200]).outcome.quantile([0.3])
    monkeypatch.setattr("howsure_studies.methods.quantile_forest._BLOCK", 20_000)
    assert np.array_equal(whole, forest.predict(x[:200]).outcome.quantile([0.3]))
    tracemalloc.start()
    forest.predict(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6  # weights of all pairs of rows would take 7.2e7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trees": 0}, "trees must be"),
        ({"min_leaf": 2.5}, "min_leaf must be"),
        ({"max_features": 0.0}, "max_features must be in"),
        ({"rows": "oob"}, "rows must be"),
        ({"coverages": (90,)}, "coverages must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        QuantileForest(**options)
