"""Which rows came before: names of rows by day, so that a row that comes again counts once.

A row is known by its name and its day. A set of 10⁶ takes 5.7 MB, one of 10⁷ 53 MB: numbers of 56
bits in their order, of which only the steps are kept, and 8 bits that tell whether y is another.
That a new row is taken for one of 10⁷ others has a probability of 10⁻¹⁰.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.core.rng import row_hashes
from howsure.inputs import values

MarkArray = npt.NDArray[np.uint8]
_BITS = 56
_APART = 0x9E3779B97F4A7C15 & ((1 << _BITS) - 1)  # by which the keys of one name differ by day
UNKNOWN = 0
"""The mark of rows without y."""
_WIDTH = 9  # bytes of a key and its mark


def name_hashes(column: pa.ChunkedArray, role: str) -> IntArray:
    """Of names of rows."""
    names = values.names(column, role).tolist()
    if None in names:
        raise InputError(
            f"column {role!r} must name every row, got none at row {names.index(None)}, counting "
            "from 0"
        )
    made = (hashlib.blake2b(str(name).encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(b"".join(made), dtype="<i8").astype(np.int64) & ((1 << _BITS) - 1)


def row_keys(hashes: IntArray, days: IntArray | int) -> IntArray:
    """What stands for rows: their names' hashes, and their days."""
    with np.errstate(over="ignore"):
        return np.asarray((hashes + np.int64(_APART) * days) & ((1 << _BITS) - 1))


def marks_of(y: FloatArray) -> MarkArray:
    """By which y is known again, in single or double precision; 0 where it is NaN."""
    if not len(y):
        return np.empty(0, np.uint8)
    with np.errstate(over="ignore"):
        hashed = row_hashes(y.astype(np.float32).astype(np.float64) + 0.0) % np.uint64(255)
    return np.where(np.isnan(y), UNKNOWN, hashed + np.uint64(1)).astype(np.uint8)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowNames:
    """Keys of rows, rising, and a mark of the y of each."""

    keys: IntArray
    marks: MarkArray

    @classmethod
    def of(cls, keys: IntArray, y: FloatArray) -> Self:
        """Those of some rows."""
        kept, first = np.unique(keys, return_index=True)
        return cls(kept, marks_of(y)[first])

    @classmethod
    def joined(cls, every: Iterable[RowNames]) -> Self:
        """All of several sets."""
        parts = [*every]
        keys = np.concatenate([np.empty(0, np.int64), *(each.keys for each in parts)])
        marks = np.concatenate([np.empty(0, np.uint8), *(each.marks for each in parts)])
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], marks[order])

    def places(self, keys: IntArray) -> IntArray:
        """Where each key stands; −1 where it is not."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, -1)

    def holds(self, keys: IntArray) -> BoolArray:
        """Whether each key is there."""
        return np.asarray(self.places(keys) >= 0)

    def to_bytes(self) -> bytes:
        """Steps from key to key, whose bytes of one place lie together, then the marks."""
        steps = np.diff(self.keys, prepend=0).astype("<i8").view(np.uint8).reshape(-1, 8)
        return np.concatenate([steps.T.ravel(), self.marks]).tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What `to_bytes` made."""
        cells = np.frombuffer(data, np.uint8)
        count = len(cells) // _WIDTH
        if len(cells) != _WIDTH * count:
            raise InputError(f"names of rows must take {_WIDTH} bytes each, got {len(cells)}")
        steps = np.ascontiguousarray(cells[: 8 * count].reshape(8, -1).T).view("<i8").ravel()
        return cls(np.cumsum(steps, dtype=np.int64), cells[8 * count :])
