"""Class probabilities, for classification."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_matrix, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.predictions.base import Prediction, Rows

# How far probabilities, often of single precision, may be from summing to 1: 1,000 of them round
# by less.
_MAX_ERROR_OF_SUM = 1e-3


@final
@frozen(init=False, eq=False, repr=False)
class Probabilities(Prediction):
    """A probability of each class, for each row.

    Parameters
    ----------
    p : array-like of shape (n,) or (n, classes)
        Of two classes the probability of the second alone, or a column for each class.
    classes : sequence of str, optional
        Names of the classes, in their order; numbers from 0 if omitted.

    Raises
    ------
    InputError
        If probabilities leave [0, 1] or do not sum to 1 in each row, there are fewer than two
        classes, or names are not as many or not all different.

    Examples
    --------
    >>> prediction = Probabilities([0.9, 0.2], classes=["no", "yes"])
    >>> prediction.table
    array([[0.1, 0.9],
           [0.8, 0.2]])
    """

    kind: ClassVar[str] = "class probabilities"
    table: FloatArray
    classes: tuple[str, ...] | None

    def __init__(self, p: npt.ArrayLike, classes: Sequence[str] | None = None) -> None:
        table = as_matrix(p, "p")
        if table.shape[1] == 1:
            outside = (table < 0) | (table > 1)
            if outside.any():
                row = int(np.argmax(outside[:, 0]))
                raise InputError(
                    f"p must be between 0 and 1, got {table[row, 0]:.6g} at row {row}"
                    + (": divide percent by 100" if 1 < table.max() <= 100 else "")
                )
            table = np.hstack([1.0 - table, table])
        check_probabilities(table, "p")
        names = None if classes is None else checked_labels(classes, classes=table.shape[1])
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "classes", names)

    def _shown_fields(self) -> list[str]:
        return [f"classes={self.table.shape[1]:,}"]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.table)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes; their numbers where they have none."""
        return self.classes or tuple(map(str, range(self.table.shape[1])))

    def numbers(self) -> Mapping[str, FloatArray]:
        """The numbers that the prediction holds, by name."""
        return {"probabilities": self.table}

    def described(self) -> str:
        """What it is, in words."""
        return f"probabilities of {self.table.shape[1]:,} classes"

    def take(self, rows: Rows) -> Self:
        """The same prediction for the rows chosen by an index or a mask."""
        return type(self)(self.table[rows], self.classes)

    def check_outcomes(self, y: FloatArray) -> None:
        """Raise `InputError` where a y is no class number."""
        class_numbers(y, self.table.shape[1], self.kind)

    def log_density(self, y: FloatArray) -> FloatArray:
        """Log of the probability of the class that came, shape (n,)."""
        codes = class_numbers(y, self.table.shape[1], self.kind)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.table[np.arange(self.n), codes]))

    def redrawn(self, y: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, Self]:
        """A class drawn from the probabilities."""
        return drawn_classes(self.table, uniforms), self

    def likeliest(self, coverage: float) -> BoolArray:
        """The fewest classes that reach a coverage together, shape (n, classes).

        Classes of one probability go together.
        """
        share = check_fraction(coverage, "coverage")
        rising = -np.sort(-self.table, axis=1)
        before = np.cumsum(rising, axis=1) - rising
        fewest = np.where(before < share - 1e-12, rising, np.inf).min(axis=1)
        return np.asarray(self.table >= fewest[:, None])


def class_numbers(y: FloatArray, classes: int, kind: str) -> IntArray:
    """Each y as the number of its class; an `InputError` where it is none."""
    wrong = ~((y >= 0) & (y < classes) & (y == np.floor(y)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"with {kind}, y must contain class numbers from 0 to {classes - 1}, got {y[row]:g} "
            f"at row {row}"
        )
    return y.astype(np.int64)


def drawn_classes(table: FloatArray, uniforms: FloatArray) -> FloatArray:
    """A class of each row drawn from its probabilities, which need not quite sum to 1."""
    rising = table.cumsum(axis=1)
    drawn = (rising <= uniforms[:, None] * rising[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(drawn, table.shape[1] - 1), dtype=np.float64)


def check_probabilities(stated: FloatArray, name: str) -> None:
    """Raise `InputError` where a row of probabilities is negative or does not sum to 1."""
    sums = stated.sum(axis=1)
    negative = np.asarray((stated < 0).any(axis=1))
    wrong = negative | (np.abs(sums - 1.0) > _MAX_ERROR_OF_SUM)
    if wrong.any():
        row = int(np.argmax(wrong))
        what = f"least {stated[row].min():.6g}" if negative[row] else f"sum {sums[row]:.6g}"
        raise InputError(
            f"{name} must be at least 0 and sum to 1 in each row; {int(wrong.sum())} rows do not "
            f"(first at row {row}: {what})"
        )


def checked_labels(labels: Sequence[str], classes: int) -> tuple[str, ...]:
    """Names of so many classes, all different."""
    names = tuple(map(str, labels))
    if isinstance(labels, str) or len(names) != classes:
        got = "a text" if isinstance(labels, str) else len(names)
        raise InputError(f"labels must name {classes} classes, got {got}")
    ((name, count),) = Counter(names).most_common(1)
    if count > 1:
        raise InputError(f"labels must be distinct, got {name!r} {count} times")
    return names
