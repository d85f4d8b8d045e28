"""Sets of labels, for classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_matrix, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.predictions.base import Prediction, Rows
from howsure.predictions.probabilities import (
    Probabilities,
    check_probabilities,
    checked_labels,
    class_numbers,
    drawn_classes,
)


@final
@frozen(init=False, eq=False, repr=False)
class LabelSets(Prediction):
    """A set of classes for each row, with the nominal coverage it was built for.

    A set claims to hold the class with this coverage; one that `likeliest` made of class
    probabilities claims their sum.

    Parameters
    ----------
    members : array-like of bool, shape (n, classes)
        Whether each class is in the row's set. Empty sets are legal.
    coverage : float
        Nominal coverage, in (0, 1).
    probabilities : array-like of shape (n, classes), optional
        What the classifier said of each class, from which other sets can be made.
    labels : sequence of str, optional
        Names of the classes, in their order; numbers from 0 if omitted.

    Raises
    ------
    InputError
        If it is not a table of booleans, the coverage leaves (0, 1), probabilities are not as
        many, are negative, or do not sum to 1, or labels are not as many or not all different.

    Examples
    --------
    >>> prediction = LabelSets([[True, False], [True, True]], coverage=0.9)
    >>> prediction.sizes
    array([1, 2])
    """

    kind: ClassVar[str] = "label sets"
    members: BoolArray
    coverage: float
    probabilities: FloatArray | None
    labels: tuple[str, ...] | None
    own: bool

    def __init__(
        self,
        members: npt.ArrayLike,
        coverage: float,
        probabilities: npt.ArrayLike | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        try:
            table: AnyArray = np.asarray(members)
        except ValueError as error:
            raise InputError("members must have the same number of classes in every row") from error
        if table.ndim != 2 or 0 in table.shape:
            raise InputError(f"members must have shape (rows, classes), got {table.shape}")
        if table.dtype != np.bool_:
            if table.dtype.kind not in "iuf" or not np.isin(table, (0, 1)).all():
                raise InputError(f"members must contain booleans, got dtype {table.dtype}")
            table = table.astype(np.bool_)
        object.__setattr__(self, "members", table)
        object.__setattr__(self, "coverage", check_fraction(coverage, "coverage"))
        stated = None
        if probabilities is not None:
            n, classes = table.shape
            stated = as_matrix(probabilities, "probabilities", length=n, columns=classes)
            check_probabilities(stated, "probabilities")
        object.__setattr__(self, "probabilities", stated)
        names = None if labels is None else checked_labels(labels, classes=table.shape[1])
        object.__setattr__(self, "labels", names)
        object.__setattr__(self, "own", False)

    @classmethod
    def likeliest(
        cls,
        probabilities: npt.ArrayLike | Probabilities,
        coverage: float,
        labels: Sequence[str] | None = None,
    ) -> Self:
        """The sets that a classifier claims itself: the fewest classes that reach the coverage.

        Parameters
        ----------
        probabilities : Probabilities or array-like of shape (n, classes)
            What the classifier said of each class; classes of one probability go together.
        coverage : float
            The probability to reach, in (0, 1).
        labels : sequence of str, optional
            Names of the classes.

        Raises
        ------
        InputError
            As for the class itself.

        Examples
        --------
        >>> LabelSets.likeliest([[0.95, 0.04, 0.01], [0.5, 0.3, 0.2]], 0.9).sizes
        array([1, 3])
        """
        stated = probabilities
        if not isinstance(stated, Probabilities):
            stated = Probabilities(stated, labels)
        sets = cls(stated.likeliest(coverage), coverage, stated.table, stated.classes)
        object.__setattr__(sets, "own", True)
        return sets

    def _shown_fields(self) -> list[str]:
        return [f"classes={self.members.shape[1]:,}", f"coverage={self.coverage:g}"]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes; their numbers where they have none."""
        return self.labels or tuple(map(str, range(self.members.shape[1])))

    @property
    def sizes(self) -> IntArray:
        """Number of classes in each set, shape (n,)."""
        return np.asarray(self.members.sum(axis=1))

    @property
    def own_coverages(self) -> tuple[float, ...]:
        """The nominal coverage."""
        return (self.coverage,)

    def numbers(self) -> Mapping[str, FloatArray]:
        """The numbers that the prediction holds, by name."""
        members = {"members": self.members.astype(np.float64)}
        if self.probabilities is None:
            return members
        return {**members, "probabilities": self.probabilities}

    def take(self, rows: Rows) -> Self:
        """The same prediction for the rows chosen by an index or a mask."""
        stated = None if self.probabilities is None else self.probabilities[rows]
        taken = type(self)(self.members[rows], self.coverage, stated, self.labels)
        object.__setattr__(taken, "own", self.own)
        return taken

    def check_outcomes(self, y: FloatArray) -> None:
        """Raise `InputError` where a y is no class number."""
        self.contains(y)

    def contains(self, y: FloatArray) -> BoolArray:
        """Whether the true class, a whole number from 0, is in the set; shape (n,)."""
        codes = class_numbers(y, self.members.shape[1], self.kind)
        return self.members[np.arange(self.n), codes]

    @property
    def claims(self) -> FloatArray:
        """Probability with which each set claims to hold the class, shape (n,)."""
        if not self.own or self.probabilities is None:
            return np.full(self.n, self.coverage)
        covered = np.where(self.members, self.probabilities, 0.0).sum(axis=1)
        return np.asarray(np.minimum(covered / self.probabilities.sum(axis=1), 1.0))

    def claimed_misses(self, y: FloatArray, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Sets have no sides: each gets half of the nominal miss rate."""
        half = np.repeat((1.0 - self.claims)[:, None] / 2.0, 2, axis=1)
        return half, half

    def inside(self, coverage: float, uniforms: FloatArray) -> BoolArray:
        """A coin with the claimed coverage; always in a full set."""
        return np.asarray((uniforms < self.claims) | self.members.all(axis=1))

    def redrawn(self, y: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, Self]:
        """A class drawn from the probabilities, where these are known."""
        if self.probabilities is None:
            return super(LabelSets, self).redrawn(y, uniforms)  # noqa: UP008 slots: made anew
        return drawn_classes(self.probabilities, uniforms), self
