"""A huge real table cut in one test set and many training sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.studies.tasks.worlds.base import Covariates, Draw, World, check_covariates, rows_wanted


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
        """Number of columns of x."""
        return int(self.x.shape[1])

    def trials_available(self, n: int | None = None, n_test: int | None = None) -> int:
        """How many disjoint training sets of n rows the table holds beside its test set."""
        rest = len(self.y) - self._test_rows(n_test)
        return rest // rows_wanted(n, self.rows, "n_train", most=rest)

    def test_set(self, seed: int, n: int | None = None) -> Draw:
        """The test set of a seed."""
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
