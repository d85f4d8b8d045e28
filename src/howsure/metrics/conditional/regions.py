"""Where coverage fails: regions of the inputs in words, judged on rows that did not find them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.formats import minus
from howsure.metrics.conditional.forests import edge_of, tree_inputs
from howsure.stats.binomial import Alternative, binomial_test, clopper_pearson

LEAF_SHARE = 0.05
"""Least share of the rows in a leaf of the tree that names regions."""
DEPTH = 2
"""Conditions that a region is told in, at most."""
LEAST_GAIN = 0.05
"""Least share of the variance that a split of that tree explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A part of the inputs, and how often its rows are covered.

    Attributes
    ----------
    where : str
        The part, in words.
    n : int
        Rows inside that had no say in choosing it; all its rows where `found` is NaN.
    share : float
        Share of such rows that lie inside.
    empirical_coverage, lower, upper : float
        Coverage of those rows, with its exact interval; NaN if there are none.
    p_value : float
        Exact binomial p-value against `expected`.
    expected : float
        Mean coverage that is claimed inside, or expected there.
    found : float
        Coverage inside on the rows that chose the region: too far from the nominal one, as it
        was sought. NaN where there was no search.
    """

    where: str
    n: int
    share: float
    empirical_coverage: float
    lower: float
    upper: float
    p_value: float
    expected: float
    found: float = math.nan


def region_of(
    where: str,
    inside: BoolArray,
    covered: BoolArray,
    coverage: float | FloatArray,
    *,
    found: float = math.nan,
    confidence: float = 0.95,
    alternative: Alternative = "two-sided",
) -> Region:
    """Describe a region by rows that had no say in choosing it.

    Of unequal claims the binomial law of their mean is conservative (Hoeffding 1956).
    """
    n, hits = int(inside.sum()), int(covered[inside].sum())
    share = mean_claim(np.broadcast_to(coverage, len(inside))[inside])
    lower, upper = clopper_pearson(hits, n, confidence)
    return Region(
        where=where,
        n=n,
        share=n / len(inside),
        empirical_coverage=hits / n if n else math.nan,
        lower=float(lower) if n else math.nan,
        upper=float(upper) if n else math.nan,
        p_value=float(binomial_test(hits, n, share, alternative)) if n else math.nan,
        expected=share,
        found=found,
    )


def mean_claim(claimed: FloatArray) -> float:
    """Mean of what rows claim, to the last digit where all claim the same; NaN of none."""
    if not len(claimed):
        return math.nan
    return float(claimed[0] if (claimed == claimed[0]).all() else min(claimed.mean(), 1.0))


def tree_parts(
    x: FloatArray, values: FloatArray, names: Sequence[str], *, depth: int = DEPTH
) -> tuple[IntArray, dict[int, str]]:
    """Divide rows by a shallow tree in which a number differs."""
    gain = LEAST_GAIN * float(values.var())
    inputs, levels = tree_inputs(x)
    tree = _tree(len(x), depth, gain).fit(inputs, values)
    part = np.asarray(tree.apply(inputs), dtype=np.int64)
    every = node_rules(tree.tree_, names, levels)
    return part, {int(leaf): every[int(leaf)] for leaf in np.unique(part)}


def tree_nodes(
    held: tuple[FloatArray, dict[int, FloatArray]],
    values: FloatArray,
    names: Sequence[str],
    learn: BoolArray,
) -> tuple[BoolArray, tuple[str, ...]]:
    """Which rows of `tree_inputs` lie in each node of a tree that some rows teach, root first, and
    its words.
    """
    inputs, levels = held
    tree = _tree(int(learn.sum()), DEPTH, 0.0).fit(inputs[learn], values[learn])
    path = tree.decision_path(inputs)
    rules = node_rules(tree.tree_, names, levels)
    return path.toarray().astype(np.bool_), tuple(rules[node] for node in range(path.shape[1]))


def _tree(n: int, depth: int, gain: float) -> Any:
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor(
        max_depth=depth,
        min_samples_leaf=max(int(LEAF_SHARE * n), 1),
        min_impurity_decrease=gain,
        random_state=0,
    )


def node_rules(tree: Any, names: Sequence[str], scale: dict[int, FloatArray]) -> dict[int, str]:
    """What leads to each node of a fitted scikit-learn tree, in words."""
    limits: dict[int, dict[int, tuple[float, float]]] = {0: {}}
    for node in range(tree.node_count):
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            continue
        feature = int(tree.feature[node])
        edge = edge_of(scale, feature, float(tree.threshold[node]))
        low, high = limits[node].get(feature, (-math.inf, math.inf))
        limits[left] = {**limits[node], feature: (low, min(high, edge))}
        limits[right] = {**limits[node], feature: (max(low, edge), high)}
    return {node: _words(known, names) for node, known in limits.items()}


def _words(limits: dict[int, tuple[float, float]], names: Sequence[str]) -> str:
    told = [between(names[feature], *ends) for feature, ends in limits.items()]
    return " and ".join(told) or "all rows"


def between(name: str, low: float, high: float) -> str:
    """A range of one input, in words."""
    if "=" in name and 0 < min(abs(low), abs(high)) < 1 and math.isinf(max(abs(low), abs(high))):
        return f"not {name}" if math.isinf(low) else name
    if math.isinf(low) and math.isinf(high):
        return f"any {name}"
    least, most = minus(f"{low:.4g}"), minus(f"{high:.4g}")
    if math.isinf(low):
        return f"{name} ≤ {most}"
    return f"{name} > {least}" if math.isinf(high) else f"{least} < {name} ≤ {most}"
