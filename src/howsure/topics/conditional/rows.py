"""What every measure of conditional coverage does first: check its rows, and order them.

Rows are put into an order that their content decides, and halves and folds are cut from it: so
no answer depends on the order in which rows came. Rows must be independent and unweighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    as_matrix,
    as_vector,
    check_fraction,
)
from howsure.core.errors import InputError
from howsure.core.rng import row_keys
from howsure.stats.bootstrap import subsample


@dataclass(frozen=True, slots=True, eq=False)
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
    known = as_names(names, inputs.shape[1])
    varies = (claimed,) if (claimed != claimed[0]).any() else ()
    order = content_order(seed, hit.astype(np.float64), inputs, *varies)
    return Problem(hit[order], inputs[order], claimed[order], known, order)


def as_claimed(coverage: float | npt.ArrayLike, n: int) -> FloatArray:
    """Check what rows claim to be covered with: one nominal coverage, or one share a row."""
    if np.ndim(coverage) == 0:
        return np.full(n, check_fraction(coverage, "coverage"))  # type: ignore[arg-type]
    claimed = as_vector(coverage, "coverage", length=n)
    if ((claimed < 0) | (claimed > 1)).any():
        raise InputError(
            f"coverage must lie in [0, 1] in every row, got {claimed.min():g} to {claimed.max():g}"
        )
    return claimed


def as_covered(covered: npt.ArrayLike) -> BoolArray:
    """Check indicators of coverage."""
    hit = as_vector(covered, "covered")
    wrong = (hit != 0) & (hit != 1)
    if wrong.any():
        raise InputError(
            f"covered must hold truth values, got {hit[int(np.argmax(wrong))]:g} "
            f"at row {int(np.argmax(wrong))}"
        )
    return np.asarray(hit == 1)


def as_names(names: Sequence[str] | None, columns: int) -> tuple[str, ...]:
    """Names of the inputs; ``x0``, ``x1``, … where none are given."""
    if names is None:
        return tuple(f"x{column}" for column in range(columns))
    if len(names) != columns:
        raise InputError(f"names must hold {columns} names, as x has columns, got {len(names)}")
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
