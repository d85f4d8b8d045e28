"""Weights of rows, and what they mean."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError, either

WeightsKind = Literal["frequency", "importance"]
# Whole numbers above are not all numbers of 64 bits.
MAX_COPIES = 2**53


@frozen(eq=False)
class Weights:
    """Weights of rows, and what they mean."""

    values: FloatArray  # shape (n,): non-negative, not all zero
    # {"frequency", "importance"}: `frequency`: a weight of two is a row seen twice. `importance`: a
    # row stands for a share of another population; standard errors are approximate.
    kind: WeightsKind = "frequency"

    @classmethod
    def checked(
        cls, values: npt.ArrayLike, kind: str = "frequency", *, length: int | None = None
    ) -> Self:
        """Check weights at the door."""
        array = as_vector(values, "weights", length=length)
        if (array < 0).any():
            raise InputError(f"weights must not be negative, got {float(array.min()):g}")
        if not array.any():
            raise InputError("weights must not all be zero")
        if not np.isfinite(float(array.max()) * len(array)):
            raise InputError(f"weights must have a finite sum, got {array.max():g}")
        if kind == "frequency":
            broken = array != np.floor(array)
            importance = either(
                "howsure.Table(…, weights_kind='importance')", "--weights-kind importance"
            )
            if broken.any():
                first = int(np.argmax(broken))
                raise InputError(
                    "frequency weights must be whole numbers (a weight of 2 means two equal "
                    f"rows), got {array[first]:g} at row {first}; for other weights use "
                    f"{importance}"
                )
            if array.sum() >= MAX_COPIES:  # a sum below is exact
                raise InputError(
                    f"frequency weights must sum to less than {MAX_COPIES:,} (2^53), the limit "
                    f"for exact whole numbers, got {array.sum():g}; for relative weights use "
                    f"{importance}"
                )
            return cls(array, "frequency")
        if kind == "importance":
            return cls(array, "importance")
        raise InputError(f"weights kind must be 'frequency' or 'importance', got {kind!r}")

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.values.sum())

    @property
    def effective_n(self) -> float:
        """Rows that count: the sum for frequencies, Kish's (Σw)²/Σw² for importance."""
        if self.kind == "frequency":
            return self.total
        shares = self.values / self.values.max()
        return float(shares.sum()) ** 2 / float(np.square(shares).sum())

    @property
    def multiplicities(self) -> FloatArray:
        """How often each row counts, summing to the rows that count."""
        return self.values * (self.effective_n / self.total)

    def take(self, rows: AnyArray) -> Weights:
        """Weights of the rows chosen by an index or a mask."""
        return Weights(self.values[rows], self.kind)


def check_multiplicities(weights: npt.ArrayLike | None, length: int) -> FloatArray | None:
    """Check weights that count rows; None stays None."""
    if weights is None:
        return None
    return Weights.checked(weights, "importance", length=length).values


def merge_rows(
    table: FloatArray, copies: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Rows sorted by content, equal ones made one whose copies are summed."""
    counts = np.ones(len(table)) if copies is None else copies
    order = np.lexsort(table.T)
    order = order[counts[order] > 0]
    ranked = table[order]
    fresh = np.append(True, (ranked[1:] != ranked[:-1]).any(axis=1))[: len(ranked)]
    starts = np.flatnonzero(fresh)
    if len(starts) == len(ranked):
        return ranked, counts[order]
    return ranked[starts], np.add.reduceat(counts[order], starts)
