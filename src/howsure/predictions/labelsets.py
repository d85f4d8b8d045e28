"""Sets of labels, for classification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_matrix, check_fraction
from howsure.core.errors import InputError
from howsure.predictions.base import Prediction, Rows

_SLACK = 1e-3
"""How far probabilities, often of single precision, may be from summing to 1."""


@final
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class LabelSets(Prediction):
    """A set of classes for each row, with the nominal coverage it was built for.

    Parameters
    ----------
    members : array-like of bool, shape (n, classes)
        Whether each class is in the row's set. Empty sets are legal.
    coverage : float
        Nominal coverage, in (0, 1).
    probabilities : array-like of shape (n, classes), optional
        What the classifier said of each class, from which other sets can be made.

    Raises
    ------
    InputError
        If it is not a table of booleans, the coverage leaves (0, 1), or probabilities are not as
        many, are negative, or do not sum to 1.

    Examples
    --------
    >>> belief = LabelSets([[True, False], [True, True]], coverage=0.9)
    >>> belief.sizes
    array([1, 2])
    """

    kind: ClassVar[str] = "label sets"
    members: BoolArray
    coverage: float
    probabilities: FloatArray | None

    def __init__(
        self,
        members: npt.ArrayLike,
        coverage: float,
        probabilities: npt.ArrayLike | None = None,
    ) -> None:
        try:
            table: npt.NDArray[Any] = np.asarray(members)
        except ValueError as error:
            raise InputError("members must have one number of classes in every row") from error
        if table.ndim != 2 or 0 in table.shape:
            raise InputError(f"members must have shape (rows, classes), got {table.shape}")
        if table.dtype != np.bool_:
            if table.dtype.kind not in "iuf" or not np.isin(table, (0, 1)).all():
                raise InputError(f"members must hold booleans, got dtype {table.dtype}")
            table = table.astype(np.bool_)
        object.__setattr__(self, "members", table)
        object.__setattr__(self, "coverage", check_fraction(coverage, "coverage"))
        stated = None
        if probabilities is not None:
            n, classes = table.shape
            stated = as_matrix(probabilities, "probabilities", length=n, columns=classes)
            wrong = (stated < 0).any(axis=1) | (np.abs(stated.sum(axis=1) - 1.0) > _SLACK)
            if wrong.any():
                raise InputError(
                    "probabilities must be at least 0 and sum to 1, got "
                    f"{int(wrong.sum())} rows that do not (first at row {int(np.argmax(wrong))})"
                )
        object.__setattr__(self, "probabilities", stated)

    def _told(self) -> list[str]:
        return [f"classes={self.members.shape[1]:,}", f"coverage={self.coverage:g}"]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.members)

    @property
    def sizes(self) -> IntArray:
        """Number of classes in each set, shape (n,)."""
        return np.asarray(self.members.sum(axis=1))

    def numbers(self) -> Mapping[str, FloatArray]:
        """The numbers that the prediction holds, by name."""
        members = {"members": self.members.astype(np.float64)}
        if self.probabilities is None:
            return members
        return {**members, "probabilities": self.probabilities}

    def take(self, rows: Rows) -> Self:
        """The same prediction for the rows chosen by an index or a mask."""
        stated = None if self.probabilities is None else self.probabilities[rows]
        return type(self)(self.members[rows], self.coverage, stated)

    def check_outcomes(self, y: FloatArray) -> None:
        """Raise `InputError` where a y is no class number."""
        self.contains(y)

    def contains(self, y: FloatArray) -> BoolArray:
        """Whether the true class, a whole number from 0, is in the set; shape (n,)."""
        classes = self.members.shape[1]
        wrong = ~((y >= 0) & (y < classes) & (y == np.floor(y)))
        if wrong.any():
            raise InputError(
                f"y must hold class numbers from 0 to {classes - 1} beside label sets, "
                f"got {y[np.argmax(wrong)]:g} at row {int(np.argmax(wrong))}"
            )
        return self.members[np.arange(self.n), y.astype(np.int64)]

    def inside(self, coverage: float, uniforms: FloatArray) -> BoolArray:
        """A coin with the claimed coverage; always in a full set."""
        return np.asarray((uniforms < self.coverage) | self.members.all(axis=1))
