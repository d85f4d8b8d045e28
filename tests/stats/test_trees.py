"""Shallow trees beside scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from howsure.core.rng import child
from howsure.stats.trees import grow_tree, rising_rows


@pytest.mark.parametrize("kind", ["plain", "weighted", "whole numbers"])
@pytest.mark.parametrize("seed", range(6))
def test_trees_are_those_of_another_library(kind: str, seed: int) -> None:
    rng = child(seed, "trees", kind)
    n, depth = 300, 1 + seed % 3
    x = rng.normal(size=(n, 5)) * 10.0 ** rng.integers(-3, 4, 5)
    if kind == "whole numbers":
        x = np.round(rng.normal(size=(n, 5)) * [1, 2, 3, 5, 8])
    values = np.sign(x[:, 0]) * (x[:, 1] > 0) + rng.normal(size=n)
    weights = rng.uniform(0.2, 2.0, n) if kind == "weighted" else np.ones(n)
    total, least, gain = float(weights.sum()), 20.0, 0.001 * seed
    theirs = DecisionTreeRegressor(
        max_depth=depth,
        min_weight_fraction_leaf=least / total,
        min_impurity_decrease=gain,
        random_state=0,
    ).fit(x, values, sample_weight=weights)
    ours = grow_tree(
        x,
        values,
        depth=depth,
        least=least,
        weights=None if kind == "plain" else weights,
        gain=gain,
    )
    tree = theirs.tree_
    assert ours.children_left.tolist() == tree.children_left.tolist()
    assert ours.children_right.tolist() == tree.children_right.tolist()
    assert (
        np.maximum(ours.feature, -2).tolist()
        == np.where(tree.feature < 0, -1, tree.feature).tolist()
    )
    assert ours.threshold == pytest.approx(tree.threshold, rel=1e-15)
    assert ours.value == pytest.approx(tree.value[:, 0, 0], rel=1e-12, abs=1e-12)
    assert (ours.leaf_of(x) == theirs.apply(x)).all()
    assert (ours.nodes_of(x) == theirs.decision_path(x).toarray()).all()
    for alpha in (0.002, 0.01, 0.05, 0.5):
        cut = theirs.set_params(ccp_alpha=alpha).fit(x, values, sample_weight=weights)
        pruned = ours.pruned(alpha)
        assert pruned.threshold == pytest.approx(cut.tree_.threshold, rel=1e-15)
        assert pruned.children_left.tolist() == cut.tree_.children_left.tolist()
        assert (pruned.leaf_of(x) == cut.apply(x)).all()


def test_of_columns_that_split_alike_the_first_is_taken() -> None:
    rng = child(0, "ties")
    first = rng.integers(0, 2, 200).astype(float)
    x = np.column_stack([np.ones(200), 1.0 - first, first, first])
    tree = grow_tree(x, first + rng.normal(size=200), depth=2, least=5)
    assert tree.feature.tolist() == [1, -1, -1]
    assert tree.threshold[0] == 0.5
    assert grow_tree(x, np.full(200, 0.1), depth=2, least=5).feature.tolist() == [-1]


def test_a_tree_of_some_rows_is_that_of_these_alone() -> None:
    rng = child(0, "some rows")
    x, values, learn = rng.normal(size=(200, 4)), rng.normal(size=200), rng.random(200) < 0.5
    weights = rng.uniform(0.5, 2.0, 200)
    some = grow_tree(
        x, values, depth=3, least=8.0, weights=weights, learn=learn, order=rising_rows(x)
    )
    alone = grow_tree(x[learn], values[learn], depth=3, least=8.0, weights=weights[learn])
    assert some.node_count > 5
    assert some.feature.tolist() == alone.feature.tolist()
    assert some.threshold.tolist() == alone.threshold.tolist()
    assert some.value == pytest.approx(alone.value, rel=1e-12)
