"""What measures of conditional coverage share: checked rows, chances learnt from others, regions.

By default the trees see the inputs alone, so what they make of outcomes is linear in these, and
what they make of chance outcomes costs a matrix product and no fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    as_matrix,
    as_vector,
    check_fraction,
)
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.formats import minus
from howsure.core.rng import row_keys
from howsure.stats.binomial import Alternative, binomial_test, clopper_pearson
from howsure.stats.bootstrap import subsample
from howsure.stats.estimate import Estimate
from howsure.stats.trees import grow_tree, rising_rows

# Chosen by hand; not tuned. With more, an average over trees varies less and takes more time.
TREES = 50
"""Trees of the default forests; each leaf holds about the root of the number of rows."""
# Chosen by hand; not tuned. Fewer rows in a fold leave a fold without a miss at 90 %.
MIN_ROWS_PER_FOLD = 10
"""Rows of each fold without which nothing is learnt."""
# p = .005 at the least; each draw refits or averages over all folds.
DRAWS = 199
"""Right models that are drawn for a null."""
# A leaf then holds some 40 rows, whose mean of a PIT is known to .16 of its sd. By hand; not
# tuned: larger smooths local faults over, smaller adds noise.
_ROWS_TO_SPLIT = 80
# 2 million numbers of 32 bits are 8 MB.
_NUMBERS_AT_ONCE = 2_000_000
_TOGETHER = 80  # columns whose sums by leaf stay within reach of a cache


def _forest(name: str, n: int) -> Any:
    """The forest of scikit-learn that learns where no model is given."""
    from sklearn import ensemble

    leaf = max(10, math.isqrt(n))
    kind = getattr(ensemble, name)
    return kind(TREES, min_samples_leaf=leaf, max_features=1.0, random_state=0)


class Smoother:
    """Cross-fitted means over the leaves of a forest that sees the inputs alone.

    Each tree splits at random inputs and thresholds until a leaf holds fewer than eighty rows; a
    row's mean is over those of its leaf that are in other folds, averaged over the trees; 0
    where a leaf has none. Source: totally randomised trees of P. Geurts, D. Ernst and L. Wehenkel,
    Machine Learning 63 (2006).

    Parameters
    ----------
    x : ndarray of float, shape (n, d)
        Inputs as trees can hold them.
    fold : ndarray of int, shape (n,)
        The fold of each row, from 0.
    """

    def __init__(self, x: FloatArray, fold: IntArray) -> None:
        from scipy import sparse
        from sklearn.ensemble import ExtraTreesRegressor

        n = len(x)
        # Of one input and one threshold there is no best, so the target decides nothing.
        forest = ExtraTreesRegressor(
            TREES,
            min_samples_split=max(20, min(_ROWS_TO_SPLIT, n // 4)),
            max_features=1,
            random_state=0,
        )
        leaves = np.asarray(forest.fit(x, np.arange(n, dtype=np.float64)).apply(x))
        leaves = leaves + np.arange(TREES) * (int(leaves.max()) + 1)
        codes = np.unique(leaves, return_inverse=True)[1].reshape(leaves.shape)
        starts = np.arange(0, codes.size + 1, TREES)
        member = sparse.csr_array(
            (np.full(codes.size, 1.0, dtype=np.float32), codes.ravel(), starts)
        )
        self._rows = [np.flatnonzero(fold == number) for number in range(int(fold.max()) + 1)]
        self._parts = [member[rows] for rows in self._rows]
        self._counts: list[FloatArray] = [members.sum(axis=0) for members in self._parts]

    def __call__(self, values: AnyArray) -> npt.NDArray[np.float32]:
        """Local means of columns of row values, shape (n, k)."""
        columns, means = np.asarray(values, dtype=np.float32), np.empty(values.shape, np.float32)
        pairs, count = list(zip(self._parts, self._rows, strict=True)), np.sum(self._counts, axis=0)
        elsewhere = [
            np.maximum(count - fold_count, np.float32(1.0))[:, None] for fold_count in self._counts
        ]
        for start in range(0, columns.shape[1], _TOGETHER):
            together = slice(start, start + _TOGETHER)
            block = np.ascontiguousarray(columns[:, together])
            sums = [members.T @ block[rows] for members, rows in pairs]
            total = np.sum(sums, axis=0)
            for (members, rows), here, n in zip(pairs, sums, elsewhere, strict=True):
                means[rows, together] = members @ ((total - here) / n)
        means /= TREES
        return means

    def backwards(self, values: FloatArray) -> FloatArray:
        """How much each row's value counts in a sum of local means: Σ_i values_i s_ij, shape (n,).

        >>> smoother = Smoother(np.arange(40.0)[:, None], np.arange(40) % 2)
        >>> values = np.cos(np.arange(40.0))
        >>> weights = smoother(np.eye(40))
        >>> bool(np.allclose(smoother.backwards(values), values @ weights, atol=1e-5))
        True
        """
        count, counts = np.sum(self._counts, axis=0), np.empty(len(values))
        pairs = list(zip(self._parts, self._rows, self._counts, strict=True))
        shared = [
            (members.T @ values[rows].astype(np.float32))
            / np.maximum(count - here, np.float32(1.0))
            for members, rows, here in pairs
        ]
        total = np.sum(shared, axis=0)
        for (members, rows, _), of_fold in zip(pairs, shared, strict=True):
            counts[rows] = members @ (total - of_fold)
        return counts / TREES

    def per_pass(self, columns: int = 1) -> int:
        """How many draws of so many columns fit into memory at once."""
        n = sum(map(len, self._rows))
        return max(1, _NUMBERS_AT_ONCE // (n * columns))


def check_model(model: Any, method: str, name: str) -> None:
    """Check that a model can be fitted and asked."""
    if not (hasattr(model, "fit") and hasattr(model, method)):
        raise InputError(
            f"{name} must have the methods fit and {method}, got {type(model).__name__}"
        )


def tree_inputs(x: FloatArray) -> tuple[FloatArray, dict[int, FloatArray]]:
    """Inputs as trees can hold them, in 32 bits; and the levels of columns turned into ranks.

    A column that 32 bits cannot hold, or whose values they would make equal, is replaced by its
    ranks: a tree asks only for the order.

    >>> inputs, levels = tree_inputs(np.array([[1.0, 1e60], [2.0, 3.0], [3.0, 4.0]]))
    >>> inputs.tolist(), list(levels)
    ([[1.0, 2.0], [2.0, 0.0], [3.0, 1.0]], [1])
    """
    inputs, levels = x, dict[int, FloatArray]()
    for column in range(x.shape[1]):
        rising = np.sort(x[:, column])
        with np.errstate(over="ignore", under="ignore"):
            single = rising.astype(np.float32)
        if np.isfinite(single).all():
            different, of_single = (
                1 + np.count_nonzero(np.diff(values)) for values in (rising, single)
            )
            if 2 * of_single > different:
                continue
        distinct, ranks = np.unique(x[:, column], return_inverse=True)
        inputs = inputs.copy() if inputs is x else inputs
        inputs[:, column] = ranks
        levels[column] = distinct
    return inputs, levels


def edge_of(levels: dict[int, FloatArray], column: int, threshold: float) -> float:
    """A tree's threshold in the units of the input, which may have been turned into ranks."""
    if column not in levels:
        return threshold
    low, high = levels[column][int(threshold) : int(threshold) + 2]
    return float(low / 2 + high / 2)


def chance_elsewhere(
    model: Any, x: FloatArray, covered: BoolArray, elsewhere: FloatArray
) -> FloatArray:
    """Chance of coverage at other inputs, by a fresh copy of a classifier."""
    edge = 0.5 / len(x)
    if covered.all() or not covered.any():
        return np.full(len(elsewhere), 1 - edge if covered.all() else edge)
    fitted = _copy(_forest("ExtraTreesClassifier", len(x)) if model is None else model)
    fitted.fit(x, covered.astype(np.int64))
    column = int(np.flatnonzero(np.asarray(fitted.classes_) == 1)[0])
    chance = np.asarray(fitted.predict_proba(elsewhere), dtype=np.float64)[:, column]
    return np.clip(chance, edge, 1 - edge)


def shares_elsewhere(
    model: Any, x: FloatArray, below: FloatArray, elsewhere: FloatArray
) -> FloatArray:
    """Local shares at or below each level at other inputs, by a fresh copy of a regressor."""
    fitted = _copy(_forest("ExtraTreesRegressor", len(x)) if model is None else model).fit(x, below)
    shares = np.asarray(fitted.predict(elsewhere), dtype=np.float64).reshape(len(elsewhere), -1)
    return np.sort(np.clip(shares, 0.0, 1.0), axis=1)


def folds_of(n: int, folds: int) -> IntArray:
    """Fold of each row, in turn, for rows in the order of their content."""
    return np.arange(n) % check_whole(folds, "folds", 2)


def _copy(model: Any) -> Any:
    """An unfitted copy, so that the model that came stays as it was."""
    from sklearn.base import clone

    return clone(model)


# ---- where coverage fails: regions of the inputs in words, judged on rows that did not find them -

# A region of less than a twentieth is seldom worth a name. Not tuned.
MIN_SHARE_OF_LEAF = 0.05
"""Least share of the rows in a leaf of the tree that names regions."""
# A sentence with more than two conditions is not understood at first reading.
DEPTH = 2
"""Conditions that a region is told in, at most."""
# Chosen by hand; not tuned. Smaller, trees name regions that explain next to nothing.
LEAST_GAIN = 0.05
"""Least share of the variance that a split of that tree explains."""


@frozen(kw_only=True)
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


def judge_parts(
    where: Mapping[int, str],
    leaf_of_row: IntArray,
    badness: FloatArray,
    covered: BoolArray,
    coverage: FloatArray,
    confidence: float,
) -> dict[int, Region]:
    """Parts that the first half of the rows tells apart, the worst first, by the second half."""
    half = len(covered) // 2
    rank = {leaf: (-float(badness[leaf_of_row == leaf].mean()), leaf) for leaf in where}
    regions = {}
    for leaf in sorted(where, key=lambda leaf: rank[leaf]):
        searched = covered[:half][leaf_of_row[:half] == leaf]
        regions[leaf] = region_of(
            where[leaf],
            leaf_of_row[half:] == leaf,
            covered[half:],
            coverage[half:],
            found=float(searched.mean()) if len(searched) else math.nan,
            confidence=confidence,
        )
    return regions


def share_as_large(drawn: FloatArray, value: float) -> float:
    """Share of right models at least as far off, the model's own counted in: a p-value."""
    return float((1 + np.count_nonzero(drawn >= value)) / (1 + len(drawn)))


def add_null(estimate: Estimate, drawn: FloatArray | None) -> Estimate:
    """An estimate beside those of right models, where any were drawn."""
    if drawn is None:
        return estimate
    return replace(
        estimate,
        null=float(drawn.mean()),
        null_lower=float(np.quantile(drawn, 0.025)),
        null_upper=float(np.quantile(drawn, 0.975)),
        p=share_as_large(drawn, estimate.value),
    )


def mean_claim(claimed: FloatArray) -> float:
    """Mean of what rows claim, to the last digit where all claim the same; NaN of none."""
    if not len(claimed):
        return math.nan
    return float(claimed[0] if (claimed == claimed[0]).all() else min(claimed.mean(), 1.0))


def tree_parts(
    x: FloatArray, values: FloatArray, names: Sequence[str]
) -> tuple[IntArray, dict[int, str]]:
    """Divide rows by a shallow tree in which a number differs."""
    gain = LEAST_GAIN * float(values.var())
    inputs, levels = tree_inputs(x)
    tree = grow_tree(inputs, values, depth=DEPTH, least=_rows_of_leaf(len(x)), gain=gain)
    leaf_of_row = tree.leaf_of(inputs)
    every = node_rules(tree, names, levels)
    return leaf_of_row, {int(leaf): every[int(leaf)] for leaf in np.unique(leaf_of_row)}


class TreeInputs(NamedTuple):
    """What several trees over the same rows share: `tree_inputs`, and the order of each column."""

    inputs: FloatArray
    levels: dict[int, FloatArray]
    order: npt.NDArray[np.int32]

    @classmethod
    def of(cls, x: FloatArray) -> Self:
        inputs, levels = tree_inputs(x)
        return cls(inputs, levels, rising_rows(inputs))


def tree_nodes(
    trees_see: TreeInputs,
    values: FloatArray,
    names: Sequence[str],
    learn: BoolArray,
) -> tuple[BoolArray, tuple[str, ...]]:
    """Which rows lie in each node of a tree that some rows teach, root first, and its words."""
    least = _rows_of_leaf(int(learn.sum()))
    tree = grow_tree(
        trees_see.inputs, values, depth=DEPTH, least=least, learn=learn, order=trees_see.order
    )
    rules = node_rules(tree, names, trees_see.levels)
    return tree.nodes_of(trees_see.inputs), tuple(rules[node] for node in range(tree.node_count))


def _rows_of_leaf(n: int) -> int:
    return max(int(MIN_SHARE_OF_LEAF * n), 1)


def node_rules(tree: Any, names: Sequence[str], scale: dict[int, FloatArray]) -> dict[int, str]:
    """What leads to each node of a fitted tree, in words."""
    limits: dict[int, dict[int, tuple[float, float]]] = {0: {}}
    for node in range(tree.node_count):
        below, above = int(tree.children_left[node]), int(tree.children_right[node])
        if below < 0:
            continue
        feature = int(tree.feature[node])
        edge = edge_of(scale, feature, float(tree.threshold[node]))
        low, high = limits[node].get(feature, (-math.inf, math.inf))
        limits[below] = {**limits[node], feature: (low, min(high, edge))}
        limits[above] = {**limits[node], feature: (max(low, edge), high)}
    conditions = {
        node: [between(names[feature], *ends) for feature, ends in limit.items()]
        for node, limit in limits.items()
    }
    return {node: " and ".join(ranges) or "all rows" for node, ranges in conditions.items()}


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


# ---- what every measure of conditional coverage does first: check its rows, and order them -------
# Rows are put into an order that their content decides, and halves and folds are cut from it: so
# no answer depends on the order in which rows came. Rows must be independent and unweighted.


@frozen(eq=False)
class Problem:
    """Checked rows in the order of their content."""

    covered: BoolArray  # shape (n,): whether each row's interval or set held what happened
    x: FloatArray  # shape (n, d): inputs
    coverage: FloatArray  # shape (n,): what each row claims to be covered with
    names: tuple[str, ...]  # names of the inputs
    order: IntArray  # shape (n,): where each row stood when it came

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.covered)


def as_problem(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    coverage: float | npt.ArrayLike,
    names: Sequence[str] | None,
    seed: int,
) -> Problem:
    """Check rows of coverage and inputs, and order them by content."""
    hit = as_covered(covered)
    inputs = as_matrix(x, "x", length=len(hit))
    claimed = as_claimed(coverage, len(hit))
    checked_names = as_names(names, inputs.shape[1])
    varies = (claimed,) if (claimed != claimed[0]).any() else ()
    order = content_order(seed, hit.astype(np.float64), inputs, *varies)
    return Problem(hit[order], inputs[order], claimed[order], checked_names, order)


def as_claimed(coverage: float | npt.ArrayLike, n: int) -> FloatArray:
    """Check what rows claim to be covered with: one nominal coverage, or one share a row."""
    if np.ndim(coverage) == 0:
        return np.full(n, check_fraction(coverage, "coverage"))  # type: ignore[arg-type]
    claimed = as_vector(coverage, "coverage", length=n)
    if ((claimed < 0) | (claimed > 1)).any():
        raise InputError(
            f"coverage must be in [0, 1] in every row, got {claimed.min():g} to {claimed.max():g}"
        )
    return claimed


def as_covered(covered: npt.ArrayLike) -> BoolArray:
    """Check indicators of coverage."""
    hit = as_vector(covered, "covered")
    wrong = (hit != 0) & (hit != 1)
    if wrong.any():
        raise InputError(
            f"covered must be true or false, got {hit[int(np.argmax(wrong))]:g} "
            f"at row {int(np.argmax(wrong))}"
        )
    return np.asarray(hit == 1)


def as_names(names: Sequence[str] | None, columns: int) -> tuple[str, ...]:
    """Names of the inputs; ``x0``, ``x1``, … where none are given."""
    if names is None:
        return tuple(f"x{column}" for column in range(columns))
    if len(names) != columns:
        raise InputError(f"names needs {columns} entries, one per column of x; got {len(names)}")
    return tuple(map(str, names))


def content_order(seed: int, *columns: FloatArray) -> IntArray:
    """A random order of the rows that their content and the seed decide.

    Examples
    --------
    >>> values = np.array([3.0, 1.0, 2.0])
    >>> first = values[content_order(0, values)]
    >>> bool((first == values[::-1][content_order(0, values[::-1])]).all())
    True
    """
    keys = row_keys(*columns)
    return subsample(keys, len(keys), seed=seed, name="conditional")
