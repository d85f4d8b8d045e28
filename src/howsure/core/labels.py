"""Labels of rows, such as groups and clusters: checked at the door, and stored once each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    check_length,
    plain_array,
    shortened,
)
from howsure.core.classes import frozen
from howsure.core.errors import InputError


def as_labels(value: npt.ArrayLike, name: str, *, length: int | None = None) -> AnyArray:
    """Check a one-dimensional array of labels of any kind, such as groups or clusters."""
    array = plain_array(value, name, text=True)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {array.shape}")
    check_length(array, name, length)
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind in "fmM":
        missing = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
    elif array.dtype.kind in "OSU":
        array, missing = _text_labels(array.tolist(), name)
    else:
        raise InputError(f"{name} must contain labels, got dtype {array.dtype}")
    if missing.any():
        count = int(missing.sum())
        raise InputError(
            f"{name} must contain no missing labels, got {count} (first at row "
            f"{np.argmax(missing)})"
        )
    return array


@frozen(eq=False)
class Categories:
    """Labels of rows, stored once each: groups, clusters."""

    codes: IntArray  # shape (n,): for each row, the place of its label in `labels`
    labels: AnyArray  # shape (g,): the distinct labels in rising order, each used by a row

    @classmethod
    def checked(
        cls, values: npt.ArrayLike | Categories, name: str, *, length: int | None = None
    ) -> Self:
        """Check labels at the door, and find the distinct ones."""
        if isinstance(values, Categories):
            check_length(values.codes, name, length)
            return cls.from_codes(values.codes, values.labels)
        array = as_labels(values, name, length=length)
        if array.dtype.kind != "O":
            labels, codes = np.unique(array, return_inverse=True)
            return cls(codes.astype(np.int64, copy=False), labels)
        numbers: dict[str, int] = {}
        codes = np.fromiter(
            (numbers.setdefault(item, len(numbers)) for item in array.tolist()),
            np.int64,
            len(array),
        )
        return cls.from_codes(codes, _object_array(list(numbers)))

    @classmethod
    def from_codes(cls, codes: AnyArray, labels: AnyArray) -> Self:
        """Put codes of distinct labels into the form above: sorted, and used ones alone."""
        used = np.flatnonzero(np.bincount(codes, minlength=len(labels)))
        order = used[np.argsort(labels[used], kind="stable")]
        new_code = np.zeros(len(labels), dtype=np.int64)
        new_code[order] = np.arange(len(order))
        return cls(new_code[codes], labels[order])

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def counts(self) -> IntArray:
        """Number of rows of each label, shape (g,)."""
        return np.bincount(self.codes, minlength=len(self.labels)).astype(np.int64, copy=False)

    def values(self) -> AnyArray:
        """The label of each row, shape (n,)."""
        return np.asarray(self.labels[self.codes])

    def take(self, rows: AnyArray) -> Categories:
        """Labels of the rows chosen by an index or a mask; unused labels go."""
        return Categories.from_codes(self.codes[rows], self.labels)


def is_numeric(values: AnyArray) -> bool:
    """Whether an input counts as a number; all others are labels."""
    return values.dtype.kind in "biuf"


def rank_labels(
    values: AnyArray,
    mass: AnyArray | None = None,
    *,
    later_first: bool = False,
) -> tuple[list[str], AnyArray]:
    """Distinct labels as text, the most frequent first, and how often each comes.

    Labels that come equally often stand in their order, or, as scikit-learn ranks them, the later
    first.

    >>> rank_labels(np.array(["b", "a", "c", "c"]))
    (['c', 'a', 'b'], array([2, 1, 1]))
    """
    distinct = Categories.checked(values.astype(str), "labels")
    counts = np.bincount(distinct.codes, mass)
    order = np.argsort(counts if later_first else -counts, kind="stable")
    order = order[::-1] if later_first else order
    return distinct.labels[order].tolist(), counts[order]


def find_labels(texts: AnyArray, labels: Sequence[str]) -> IntArray:
    """The place of each text among labels; their number where it is none of them."""
    places = {label: number for number, label in enumerate(labels)}
    return np.array([places.get(text, len(labels)) for text in texts.tolist()], dtype=np.int64)


@frozen
class InputColumn:
    """A column of numbers that an input becomes: its values, or whether it holds a label."""

    name: str  # in words
    label: str | None = None

    @classmethod
    def columns_of(
        cls,
        name: str,
        values: AnyArray,
        most: int,
        *,
        mass: AnyArray | None = None,
        both: bool = False,
    ) -> list[Self]:
        """Numbers as they are; of labels the most frequent ones; of two, unless both, the rarer."""
        if is_numeric(values):
            return [cls(name)]
        labels, _ = rank_labels(values, mass)
        chosen = labels[1:] if len(labels) == 2 and not both else labels[:most]
        return [cls(f"{name}={label}", label) for label in chosen]

    def read(self, values: AnyArray) -> FloatArray:
        """The column of rows that have these values of the input, shape (n,)."""
        numbers = values if self.label is None else values.astype(str) == self.label
        return numbers.astype(np.float64)


def dense(codes: IntArray) -> IntArray:
    """Codes from 0 without gaps, in the order of these.

    >>> dense(np.array([7, 2, 7, 4]))
    array([2, 0, 2, 1])
    """
    if int(codes.max()) > 4 * len(codes):
        return np.unique(codes, return_inverse=True)[1].astype(np.int64, copy=False)
    return np.asarray((np.cumsum(np.bincount(codes) > 0) - 1)[codes])


def joint(first: IntArray, *further: IntArray) -> IntArray:
    """One code from 0 for each combination of codes that occurs.

    >>> joint(np.array([0, 0, 1]), np.array([2, 5, 2]))
    array([0, 1, 2])
    """
    crossed = dense(first)
    for codes in further:
        crossed = dense(crossed * (int(codes.max()) + 1) + codes)
    return crossed


def _object_array(items: list[Any]) -> AnyArray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _is_missing(item: object) -> bool:
    """Whether it is None, or unlike itself as NaN and NaT are, or pandas' NA."""
    if isinstance(item, str):
        return False
    return item is None or type(item).__name__ == "NAType" or bool(item != item)


def _text_labels(items: list[Any], name: str) -> tuple[AnyArray, BoolArray]:
    """Items as text, and which of them are missing."""
    missing = np.zeros(len(items), dtype=np.bool_)
    try:
        if set(map(type, items)) != {str}:
            missing[:] = [_is_missing(item) for item in items]
            items = [item.decode() if isinstance(item, bytes) else str(item) for item in items]
        "".join(items).encode()
    except UnicodeError as error:
        raise InputError(f"{name} must contain Unicode text, got {shortened(items)}") from error
    return _object_array(items), missing
