"""Quantile regression forests: quantiles of the training y, weighted by shared leaves."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Checked, Count, Coverages
from howsure.inputs.distributions import central_levels
from howsure.predictions import Quantiles
from howsure_studies.methods.interface import (
    COVERAGES,
    Fitted,
    Method,
    Predictions,
    checked_rows,
    trained,
)

LeafRows = Literal["all", "bag"]

# The package quantile-forest (1.4.2) takes as long (fit .55 s, predict .06 s against .07 s at 2,000
# rows and 100 trees), but has the rows of bags alone, and 9 % of its quantiles are a neighbour of
# the smallest y that reaches the level, by which ours are exact.
_BLOCK = 2**22
_SLACK = 1e-10


@final
@frozen
class QuantileForest(Method, Checked):
    """A quantile regression forest: the distribution of y in rows that share leaves with x.

    Parameters
    ----------
    trees : int
        Number of trees, at least 1.
    min_leaf : int
        Least rows in a leaf, at least 1.
    max_features : float
        Share of the columns tried at each split, in (0, 1].
    rows : {"all", "bag"}
        Which rows count in a leaf: ``all`` training rows, each once, as published; ``bag``, those
        of the tree's own bootstrap sample, as often as it drew them, so that the mean of the law
        is the forest's forecast.
    coverages : tuple of float
        The coverages of its central intervals.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Row i weighs w_i(x) = mean over trees of 1{x_i in the leaf of x}/(rows in it); the quantile at
    p is the smallest y with Σ{w_i : y_i ≤ y} ≥ p. Quantiles at the coverages' levels and the
    median. The trees are scikit-learn's; weights are products of sparse matrices, made by blocks
    of rows. Source: Meinshausen 2006, "Quantile regression forests", equations 4 and 5.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 200)[:, None]
    >>> method = QuantileForest(trees=10, min_leaf=20, coverages=(0.8,))
    >>> prediction = method.fit(x, x[:, 0], np.random.default_rng(0)).predict([[0.5]]).outcome
    >>> prediction.levels
    array([0.1, 0.5, 0.9])
    """

    name: ClassVar[str] = "quantile forest"
    trees: Count = 100
    min_leaf: Count = 5
    max_features: Annotated[float, Bound(0.0, 1.0, "(]")] = 1.0
    rows: LeafRows = "all"
    coverages: Coverages = COVERAGES

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> FittedForest:
        """Grow the trees, and note which rows each leaf holds."""
        from scipy import sparse
        from sklearn.ensemble import RandomForestRegressor

        inputs, targets = checked_rows(x, y, least=2)
        forest = trained(
            RandomForestRegressor(
                self.trees, min_samples_leaf=self.min_leaf, max_features=float(self.max_features)
            ),
            inputs,
            targets,
            rng,
        )
        order = np.argsort(targets, kind="stable")
        sizes = [tree.tree_.node_count for tree in forest.estimators_]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        leaves = (forest.apply(inputs[order]) + starts[:-1]).ravel()
        counts = self._counts(forest, len(targets))[order].ravel()
        mass = np.bincount(leaves, weights=counts, minlength=starts[-1])
        members = sparse.csr_array(
            (counts / mass[leaves], (leaves, np.repeat(np.arange(len(order)), self.trees))),
            shape=(int(starts[-1]), len(order)),
        )
        levels = np.union1d(central_levels(self.coverages), [0.5])
        return FittedForest(forest, members, targets[order], starts[:-1], levels)

    def _counts(self, forest: Any, n: int) -> FloatArray:
        """How often each row counts in each tree, shape (n, trees)."""
        if self.rows == "all":
            return np.ones((n, self.trees))
        drawn = forest.estimators_samples_
        return np.stack([np.bincount(rows, minlength=n) for rows in drawn], axis=1).astype(float)


@final
@frozen(eq=False)
class FittedForest(Fitted):
    """A fitted `QuantileForest`."""

    forest: Any
    members: Any
    y: FloatArray
    starts: IntArray
    levels: FloatArray

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Quantiles of a new y at each row of x."""
        inputs = as_matrix(x, "x", columns=self.forest.n_features_in_)
        heaviest = int(np.diff(self.members.indptr).max()) * len(self.starts)
        size = max(1, _BLOCK // min(len(self.y), heaviest))
        starts = range(0, len(inputs), size)
        parts = [self._block(inputs[start : start + size]) for start in starts]
        return Predictions(Quantiles(self.levels, np.concatenate(parts)))

    def weights(self, x: FloatArray) -> Any:
        """Weights of the training rows, in rising order of y: sparse, shape (m, n)."""
        from scipy import sparse

        trees = len(self.starts)
        leaves = (self.forest.apply(x) + self.starts).ravel()
        ends = np.arange(0, len(leaves) + 1, trees)
        paths = sparse.csr_array(
            (np.full(len(leaves), 1.0 / trees), leaves, ends), shape=(len(x), self.members.shape[0])
        )
        return paths @ self.members

    def _block(self, x: FloatArray) -> FloatArray:
        weights = self.weights(x)
        weights.sum_duplicates()
        weights.eliminate_zeros()
        first, last = weights.indptr[:-1], weights.indptr[1:]
        reached = np.cumsum(weights.data)
        before = np.r_[0.0, reached][first]
        wanted = before[:, None] + self.levels - _SLACK
        places = np.searchsorted(reached, wanted)
        places = np.clip(places, first[:, None], last[:, None] - 1)
        return np.asarray(self.y[weights.indices[places]])
