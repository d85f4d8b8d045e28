"""Shallow regression trees: each split is sought in all columns at once.

The splits are those of CART (Breiman et al. 1984), as scikit-learn has them, but for ties between
columns: of equal ones the first is taken.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen

# Values that are closer are one, as their midpoint may be either.
_LEAST_STEP = np.float32(1e-7)
# Two million numbers, of which some five arrays are held at once: 60 MB.
_NUMBERS_AT_ONCE = 2_000_000
# Gains whose difference is rounding are equal.
_SAME_GAIN = 1.0 - 1e-10
# A variance that is rounding, of values that are near 1.
_NO_VARIANCE = float(np.finfo(np.float64).eps)


@frozen(eq=False)
class ShallowTree:
    """Nodes in the order of a walk that goes below first; leaves have the feature −1."""

    feature: IntArray
    threshold: FloatArray
    children_left: IntArray
    children_right: IntArray
    value: FloatArray  # shape (nodes,): mean of the rows that taught it
    risk: FloatArray  # shape (nodes,): their share of all times their variance

    @property
    def node_count(self) -> int:
        """How many nodes it has."""
        return len(self.feature)

    def nodes_of(self, x: FloatArray) -> BoolArray:
        """Which rows pass through each node, shape (n, nodes)."""
        inside = np.zeros((len(x), self.node_count), dtype=np.bool_)
        inside[:, 0] = True
        for node in np.flatnonzero(self.feature >= 0):
            low = x[:, self.feature[node]].astype(np.float32) <= self.threshold[node]
            inside[:, self.children_left[node]] = inside[:, node] & low
            inside[:, self.children_right[node]] = inside[:, node] & ~low
        return inside

    def leaf_of(self, x: FloatArray) -> IntArray:
        """The leaf of each row, shape (n,)."""
        leaves = np.flatnonzero(self.feature < 0)
        return np.asarray(leaves[self.nodes_of(x)[:, leaves].argmax(axis=1)])

    def pruned(self, alpha: float) -> ShallowTree:
        """The tree without splits that lower the risk by no more than alpha for each leaf.

        The weakest split goes first (minimal cost-complexity pruning).
        """
        feature = self.feature.copy()
        while True:
            nodes = _walk(feature, self.children_left, self.children_right, 0)
            splits = nodes[feature[nodes] >= 0]
            if not len(splits):
                break
            gains = [self._gain(int(node), feature) for node in splits]
            weakest = int(np.argmin(gains))
            if gains[weakest] > alpha:
                break
            feature[splits[weakest]] = -1
        numbers = np.full(self.node_count, -1)
        numbers[nodes] = np.arange(len(nodes))
        leaf = feature[nodes] < 0
        below, above = (
            np.where(leaf, -1, numbers[child[nodes]])
            for child in (self.children_left, self.children_right)
        )
        threshold = np.where(leaf, -2.0, self.threshold[nodes])
        return ShallowTree(
            feature[nodes], threshold, below, above, self.value[nodes], self.risk[nodes]
        )

    def _gain(self, node: int, feature: IntArray) -> float:
        """By how much the splits from a node on lower the risk, for each leaf that they add."""
        below = _walk(feature, self.children_left, self.children_right, node)
        leaves = below[feature[below] < 0]
        return float(self.risk[node] - self.risk[leaves].sum()) / max(len(leaves) - 1, 1)


def _walk(feature: IntArray, lows: IntArray, highs: IntArray, start: int) -> IntArray:
    """Nodes from one on, each before those below it."""
    nodes, waiting = list[int](), [start]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if feature[node] >= 0:
            waiting += [int(highs[node]), int(lows[node])]
    return np.array(nodes)


def rising_rows(x: FloatArray) -> npt.NDArray[np.int32]:
    """Rows in the rising order of each column, shape (d, n), as trees over the same inputs share.

    >>> rising_rows(np.array([[3.0, 1.0], [1.0, 2.0], [2.0, 0.0]])).tolist()
    [[1, 2, 0], [2, 0, 1]]
    """
    order = np.empty(x.T.shape, dtype=np.int32)
    for block in _blocks(len(order), len(x)):
        order[block] = np.argsort(x.T[block].astype(np.float32), axis=1)
    return order


def _blocks(columns: int, rows: int) -> list[slice]:
    together = max(_NUMBERS_AT_ONCE // max(rows, 1), 1)
    return [slice(start, start + together) for start in range(0, columns, together)]


def grow_tree(
    x: FloatArray,
    values: FloatArray,
    *,
    depth: int,
    least: float,
    weights: FloatArray | None = None,
    gain: float = 0.0,
    learn: BoolArray | None = None,
    order: npt.NDArray[np.int32] | None = None,
) -> ShallowTree:
    """The tree whose splits lower the variance of values most, one by one.

    Parameters
    ----------
    x : ndarray of float, shape (n, d)
        Inputs, which are seen in 32 bits.
    values : ndarray of float, shape (n,)
        What differs.
    depth : int
        Splits that lead to a leaf, at most.
    least : float
        Weight of a leaf, at least.
    weights : ndarray of float, shape (n,), optional
        Weights of the rows.
    gain : float
        By how much a split lowers the variance of all rows, at least.
    learn : ndarray of bool, shape (n,), optional
        The rows that teach it; else all do.
    order : ndarray of int, shape (d, n), optional
        `rising_rows` of x, where it is known.

    Examples
    --------
    >>> x = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [4.0, 5.0]])
    >>> tree = grow_tree(x, np.array([0.0, 0.0, 0.0, 8.0]), depth=1, least=1)
    >>> tree.feature.tolist(), float(tree.threshold[0]), tree.value.tolist()
    ([0, -1, -1], 3.5, [2.0, 0.0, 8.0])
    """
    columns = np.ascontiguousarray(x.T, dtype=np.float32)
    mass = np.ones(len(values)) if weights is None else weights
    every = np.ones(len(values), dtype=np.bool_) if learn is None else learn
    total = float(mass[every].sum())
    nodes: list[list[float]] = []  # feature, threshold, left, right, value, risk

    def grow(inside: BoolArray, rising: npt.NDArray[np.int32], levels: int) -> int:
        node, rows = len(nodes), np.flatnonzero(inside)
        weight = float(mass[rows].sum())
        mean = float(np.average(values[rows], weights=mass[rows]))
        variance = float(np.average(np.square(values[rows] - mean), weights=mass[rows]))
        nodes.append([-1, -2.0, -1, -1, mean, variance * weight / total])
        if levels and variance > _NO_VARIANCE and len(rows) > 1 and weight >= 2 * least:
            if rising.shape[1] > len(rows):
                rising = rising[inside[rising]].reshape(len(columns), -1)
            split = _best_split(columns, rising, mass * (values - mean), mass, least)
            if split is not None and split[0] / total + _NO_VARIANCE >= gain:
                _, feature, threshold = split
                low = columns[feature] <= threshold
                nodes[node][:2] = feature, threshold
                nodes[node][2] = grow(inside & low, rising, levels - 1)
                nodes[node][3] = grow(inside & ~low, rising, levels - 1)
        return node

    grow(every, rising_rows(x) if order is None else order, depth)
    feature, threshold, low, high, value, risk = np.array(nodes, dtype=np.float64).T
    links = [numbers.astype(np.int64) for numbers in (feature, low, high)]
    return ShallowTree(links[0], threshold, links[1], links[2], value, risk)


def _best_split(
    columns: npt.NDArray[np.float32],
    rising: npt.NDArray[np.int32],
    sums: FloatArray,
    mass: FloatArray,
    least: float,
) -> tuple[float, int, float] | None:
    """By how much the best split lowers the sum of squares, its column and its threshold.

    With values less their mean, of a part that sums to s and weighs w, the rest weighing v, the
    squares fall by s² (1/w + 1/v).
    """
    best: tuple[float, int, float] | None = None
    n = rising.shape[1]
    total, plain = float(mass[rising[0]].sum()), bool((mass[rising[0]] == 1.0).all())
    for columns_of_block in _blocks(len(columns), n):
        order = rising[columns_of_block]
        block = np.take_along_axis(columns[columns_of_block], order, axis=1)
        lowered = np.cumsum(sums[order], axis=1)[:, :-1]
        below = np.arange(1.0, n)[None] if plain else np.cumsum(mass[order], axis=1)[:, :-1]
        above = total - below
        np.square(lowered, out=lowered)
        lowered *= total / (below * above)
        lowered[np.broadcast_to((below < least) | (above < least), lowered.shape)] = -1.0
        lowered[~(block[:, 1:] > block[:, :-1] + _LEAST_STEP)] = -1.0
        steps = lowered.argmax(axis=1)
        gains = lowered[np.arange(len(block)), steps]
        column = int(np.argmax(gains >= _SAME_GAIN * gains.max()))
        if gains[column] >= 0.0 and (best is None or gains[column] * _SAME_GAIN > best[0]):
            low, high = block[column, steps[column] : steps[column] + 2].astype(np.float64)
            middle = low / 2.0 + high / 2.0
            middle = low if middle == high or not np.isfinite(middle) else middle
            best = float(gains[column]), columns_of_block.start + column, float(middle)
    return best
