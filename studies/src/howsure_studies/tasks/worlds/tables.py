"""Worlds made of a real table: y simulated from forests fitted to it, or the table cut in many.

The second and the third source of data of Sluijterman, Cator and Heskes (arXiv 2106.03395).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Bound, check_whole, checked
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure_studies.tasks.worlds.base import (
    Covariates,
    Draw,
    KnownWorld,
    Truth,
    World,
    check_covariates,
    rows_wanted,
    trial_rng,
)
from howsure_studies.tasks.worlds.noise import Noise, noise_named

Residuals = Literal["out_of_bag", "in_sample"]

_SOURCE: Final = "Sluijterman, Cator and Heskes, arXiv 2106.03395, Algorithm 3"


@final
@frozen(kw_only=True, eq=False)
class ForestWorld(KnownWorld):
    """A real table's own x, with y simulated from two random forests fitted to it.

    One forest of y is the true mean; another, of its squared residuals, the true variance. Make
    one with `from_data`. The rows of the table are cut in a test set and a pool by the seed, and
    training sets are rows of the pool, none twice: with ``covariates="fixed"`` all trials share
    one choice, with ``"random"`` each makes its own (which differs only in order where all rows
    are taken). Only y is simulated.

    Attributes
    ----------
    x : ndarray of float, shape (n, d)
        The table's inputs.
    row_mean, row_scale : ndarray of float, shape (n,)
        The true mean and the noise's scale at these rows.
    noise : Noise
        The law of the noise.
    floor : float
        The least noise scale, in units of y.
    floored : int
        Rows of the table at that floor.
    residuals : {"out_of_bag", "in_sample"}
        Which residuals the variance was learnt from.
    """

    name: str
    x: FloatArray
    row_mean: FloatArray
    row_scale: FloatArray
    noise: Noise
    floor: float
    floored: int
    residuals: Residuals
    mean_forest: Any
    variance_forest: Any
    description: str = ""
    source: str = _SOURCE

    @classmethod
    def from_data(
        cls,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        name: str = "forest",
        residuals: Residuals = "out_of_bag",
        noise: str | Noise = "normal",
        trees: int = 100,
        depth: int | None = 15,
        leaf: int = 1,
        floor: float = 0.01,
        seed: int = 0,
    ) -> Self:
        """Fit the two forests to a table.

        Parameters
        ----------
        x : array-like of shape (n, d)
            Inputs, all numbers, n at least 10.
        y : array-like of shape (n,)
            What happened.
        name : str
            The world's name.
        residuals : {"out_of_bag", "in_sample"}
            ``out_of_bag``: y less the mean of those trees that did not see the row.
            ``in_sample``: y less the forest's own fit, as the paper has it.
        noise : str or Noise
            The law of the simulated noise; see `noise_named`.
        trees, depth, leaf : int
            Trees of each forest, their greatest depth (None: unbounded) and the fewest rows of a
            leaf. The paper: 100 trees of depth 15.
        floor : float
            The least noise scale, as a share of the residuals' root mean square, in (0, 1].
        seed : int
            Seed of the forests.

        Raises
        ------
        InputError
            If an argument breaks its rule, the residuals are all zero (the world would have no
            noise), or a row is in every tree's sample (too few trees for out-of-bag residuals).

        Notes
        -----
        f = forest₁(x, y); σ² = forest₂(x, r²) with r the residuals; ỹ ~ f(x) + σ(x)·noise.
        Forests follow their training rows, so in-sample residuals understate the noise.
        Out-of-bag residuals are errors on new rows: they hold what the forest could not learn
        beside the noise, so that the simulated y is as hard to predict as the real one. On tables
        of 300 to 4000 rows from worlds of known noise the simulated sd was 1.2 to 2.4 times the
        true one out of bag, 0.5 to 0.9 times in sample. On the UCI tables the variance of the
        simulated y was 0.98 to 1.19 times the real one out of bag, 0.76 to 1.00 times in sample;
        on 300 rows of the noisiest up to 1.4 times out of bag, for there f follows noise too
        (a larger `leaf` tames it). Source: the paper above, which says nothing of a floor.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.linspace(0.0, 1.0, 60)[:, None]
        >>> y = x[:, 0] + 0.1 * np.sin(40 * x[:, 0])
        >>> world = ForestWorld.from_data(x, y, trees=30)
        >>> world.training_set(seed=0, trial=0).n, world.test_set(seed=0).n
        (48, 12)
        """
        data = Draw.checked(x, y)
        _check_options(data.n, residuals, trees, depth, leaf, floor)
        law = noise_named(noise)
        first = _forest(trees, depth, leaf, seed, "mean").fit(data.x, data.y)
        fitted = np.asarray(first.predict(data.x), dtype=np.float64)
        expected = _out_of_bag(first, data) if residuals == "out_of_bag" else fitted
        squares = np.square(data.y - expected)
        size = float(np.sqrt(squares.mean()))
        if size <= 1e-12 * max(1.0, float(np.abs(data.y).max())):
            raise InputError("y must not be fitted without error: the world would have no noise")
        second = _forest(trees, depth, leaf, seed, "variance").fit(data.x, squares)
        lowest = floor * size
        scale = np.sqrt(np.asarray(second.predict(data.x), dtype=np.float64))
        return cls(
            name=name,
            x=data.x,
            row_mean=fitted,
            row_scale=np.maximum(scale, lowest),
            noise=law,
            floor=lowest,
            floored=int((scale < lowest).sum()),
            residuals=residuals,
            mean_forest=first,
            variance_forest=second,
            description=f"{data.n} rows of a real table, y simulated from two forests",
        )

    @property
    def dimension(self) -> int:
        return int(self.x.shape[1])

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return len(self.x)

    def mean(self, x: FloatArray) -> FloatArray:
        """The first forest at each row of x, shape (n,)."""
        inputs = as_matrix(x, "x", columns=self.dimension)
        return np.asarray(self.mean_forest.predict(inputs), dtype=np.float64)

    def scale(self, x: FloatArray) -> FloatArray:
        """The root of the second forest at each row of x, at least the floor, shape (n,)."""
        inputs = as_matrix(x, "x", columns=self.dimension)
        variance = np.asarray(self.variance_forest.predict(inputs), dtype=np.float64)
        return np.maximum(np.sqrt(variance), self.floor)

    def with_noise(self, noise: str | Noise) -> Self:
        return replace(self, noise=noise_named(noise))

    def test_set(self, seed: int, n: int | None = None) -> Draw:
        """The test set of a seed: n rows of the table, one in five if omitted."""
        rows = self._order(seed)[: self._test_rows(n)]
        return self._drawn(seed, rows, None, "test y")

    def training_set(
        self,
        seed: int,
        trial: int,
        n: int | None = None,
        *,
        covariates: Covariates = "random",
        n_test: int | None = None,
    ) -> Draw:
        """The training set of one trial, none of whose rows is a test row.

        n is at most the number of rows outside the test set, and is that number if omitted.
        """
        check_covariates(covariates)
        number = check_whole(trial, "trial", 0)
        pool = self._order(seed)[self._test_rows(n_test) :]
        wanted = rows_wanted(n, len(pool), "n_train", most=len(pool))
        if covariates == "random":
            pool = trial_rng(seed, number, "train x").permutation(pool)
        return self._drawn(seed, pool[:wanted], number, "train y")

    def _test_rows(self, n: int | None) -> int:
        return rows_wanted(n, max(self.rows // 5, 1), "n_test", most=self.rows - 1)

    def _order(self, seed: int) -> IntArray:
        return child(seed, "worlds", "rows").permutation(self.rows)

    def _drawn(self, seed: int, rows: IntArray, trial: int | None, part: str) -> Draw:
        truth = Truth(self.row_mean[rows], self.row_scale[rows], self.noise)
        return Draw(self.x[rows], truth.sample(trial_rng(seed, trial, part)))


def _check_options(
    n: int, residuals: str, trees: int, depth: int | None, leaf: int, floor: float
) -> None:
    if n < 10:
        raise InputError(f"x must have at least 10 rows to fit forests to, got {n}")
    checked(residuals, Literal["out_of_bag", "in_sample"], "residuals")
    rows_wanted(trees, 0, "trees")
    rows_wanted(depth, 1, "depth")
    rows_wanted(leaf, 1, "leaf")
    checked(floor, Annotated[float, Bound(0.0, 1.0, "(]")], "floor")


def _forest(trees: int, depth: int | None, leaf: int, seed: int, name: str) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    state = int(child(seed, "worlds", "forest", name).integers(2**31))
    return RandomForestRegressor(
        n_estimators=trees, max_depth=depth, min_samples_leaf=leaf, random_state=state
    )


def _out_of_bag(forest: Any, data: Draw) -> FloatArray:
    """Mean prediction of the trees that did not see each row."""
    total = np.zeros(data.n)
    count = np.zeros(data.n)
    for tree, seen in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        unseen = np.ones(data.n, dtype=np.bool_)
        unseen[seen] = False
        total[unseen] += tree.predict(data.x[unseen])
        count[unseen] += 1
    never = int((count == 0).sum())
    if never:
        raise InputError(
            f"trees must suffice for out-of-bag residuals, got {len(forest.estimators_)}: "
            f"{never} rows are in every tree's sample"
        )
    return total / count


@final
@frozen(kw_only=True, eq=False)
class CutWorld(World):
    """Real data: disjoint training sets and one test set, with no truth beyond y.

    The third source of Sluijterman, Cator and Heskes (section 4). Prediction intervals can be
    tested over the rows of the test set (PICP), over many training sets; nothing at single
    points, and no confidence interval.

    Parameters
    ----------
    name : str
        The world's name.
    x, y : ndarray of float, shape (n, d) and (n,)
        The table; see `from_data`.
    rows : int
        Rows of a training set, and of the test set, where none are asked for.

    Examples
    --------
    >>> import numpy as np
    >>> world = CutWorld.from_data(np.arange(100.0), np.arange(100.0), rows=10)
    >>> world.trials_available()
    9
    """

    no_truth: ClassVar[str] = (
        "the data are real: each x has one y, and the mean and the distribution of y there are "
        "unknown"
    )
    name: str
    x: FloatArray
    y: FloatArray
    rows: int
    description: str = "a real table cut in one test set and disjoint training sets"

    @classmethod
    def from_data(
        cls, x: npt.ArrayLike, y: npt.ArrayLike, *, rows: int | None = None, name: str = "cut"
    ) -> Self:
        """Check the table.

        Parameters
        ----------
        x, y : array-like of shape (n, d) and (n,)
            The table.
        rows : int, optional
            Rows of each set; a hundred-and-first of the table if omitted, for 100 trials.
        name : str
            The world's name.

        Raises
        ------
        InputError
            If lengths differ, a value is missing, or there are not two sets of so many rows.
        """
        data = Draw.checked(x, y)
        size = rows_wanted(rows, max(data.n // 101, 1), "rows", most=max(data.n // 2, 1))
        if data.n < 2:
            raise InputError("x must have at least 2 rows to cut, got 1")
        return cls(name=name, x=data.x, y=data.y, rows=size)

    @property
    def dimension(self) -> int:
        return int(self.x.shape[1])

    def trials_available(self, n: int | None = None, n_test: int | None = None) -> int:
        """How many disjoint training sets of n rows the table holds beside its test set."""
        rest = len(self.y) - self._test_rows(n_test)
        return rest // rows_wanted(n, self.rows, "n_train", most=rest)

    def test_set(self, seed: int, n: int | None = None) -> Draw:
        return self._cut(self._order(seed)[: self._test_rows(n)])

    def training_set(
        self,
        seed: int,
        trial: int,
        n: int | None = None,
        *,
        covariates: Covariates = "random",
        n_test: int | None = None,
    ) -> Draw:
        """The training set of one trial; it shares no row with another, or with the test set.

        Raises
        ------
        InputError
            If the trials need more rows than there are, or ``covariates="fixed"``.
        """
        check_covariates(covariates)
        if covariates == "fixed":
            raise InputError("covariates must be 'random' in a cut table, got 'fixed'")
        number = check_whole(trial, "trial", 0)
        available = self.trials_available(n, n_test)
        if number >= available:
            raise InputError(f"trial must be below {available}, the sets there are, got {trial}")
        wanted = rows_wanted(n, self.rows, "n_train")
        start = self._test_rows(n_test) + number * wanted
        return self._cut(self._order(seed)[start : start + wanted])

    def _test_rows(self, n: int | None) -> int:
        return rows_wanted(n, self.rows, "n_test", most=len(self.y) - 1)

    def _order(self, seed: int) -> IntArray:
        return child(seed, "worlds", "rows").permutation(len(self.y))

    def _cut(self, rows: IntArray) -> Draw:
        return Draw(np.ascontiguousarray(self.x[rows]), self.y[rows])
