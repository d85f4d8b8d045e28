"""Samples, or the members of an ensemble."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, check_fraction, row_blocks
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.predictions.base import Prediction, Rows, interpolated, wanted_levels


@final
@frozen(init=False, eq=False, repr=False)
class Samples(Prediction):
    """Draws from a predictive distribution, m for each row; their order does not matter.

    If y and the m draws come from one law, the rank of y among them is uniform on m + 1 places.
    So the i-th smallest and the i-th largest draw hold y between them with probability
    (m + 1 − 2i)/(m + 1), and no coverage between these can be claimed: `interval` is the one whose
    probability is nearest to the coverage, and `claimed` says which that is. Quantiles, at level
    p the draw of rank (m + 1)p, are interpolated between ranks. Levels below 1/(m + 1) or above
    m/(m + 1) cannot be reached.

    Parameters
    ----------
    samples : array-like of shape (n, m)
        Finite draws in the units of y.

    Raises
    ------
    InputError
        If it is not a table of finite numbers.

    Examples
    --------
    >>> prediction = Samples([[3.0, 1.0, 2.0]])
    >>> prediction.quantile([0.25, 0.5])
    array([[1., 2.]])
    >>> prediction.interval(0.5)
    (array([1.]), array([3.]))
    """

    kind: ClassVar[str] = "samples"
    point_is: ClassVar[str] = "mean"
    sorted_samples: FloatArray

    def __init__(self, samples: npt.ArrayLike) -> None:
        object.__setattr__(self, "sorted_samples", np.sort(as_matrix(samples, "samples"), axis=1))

    @classmethod
    def owning(cls, samples: FloatArray) -> Self:
        """The same of an array that nobody else holds: it is sorted in place."""
        table = as_matrix(samples, "samples")
        table.sort(axis=1)
        return cls.rising(table)

    @classmethod
    def rising(cls, table: FloatArray) -> Self:
        """The same of draws that were checked, and rise in each row."""
        samples = cls.__new__(cls)
        object.__setattr__(samples, "sorted_samples", table)
        return samples

    def _shown_fields(self) -> list[str]:
        return [f"m={self.size:,}"]

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.sorted_samples)

    @property
    def size(self) -> int:
        """Number of draws a row, m."""
        return int(self.sorted_samples.shape[1])

    @property
    def draws(self) -> int:
        """How many draws a row its answers are estimated from."""
        return self.size

    def described(self) -> str:
        """What it is, in words."""
        return f"{self.size} members" if self.size > 1 else "1 member"

    def numbers(self) -> Mapping[str, FloatArray]:
        """The numbers that the prediction holds, by name."""
        return {"samples": self.sorted_samples}

    def take(self, rows: Rows) -> Self:
        """The same prediction for the rows chosen by an index or a mask."""
        return self.rising(self.sorted_samples[rows])

    def quantile(self, levels: npt.ArrayLike) -> FloatArray:
        """The draws of rank (m + 1)p, interpolated between ranks, shape (n, k)."""
        wanted = wanted_levels(levels)
        rank = (self.size + 1) * wanted
        rank = np.where(np.abs(rank - np.round(rank)) < 1e-9, np.round(rank), rank)
        outside = (rank < 1) | (rank > self.size)
        if outside.any():
            raise UnanswerableError(
                f"{self.size} samples per row reach levels from {1 / (self.size + 1):.3g} to "
                f"{self.size / (self.size + 1):.3g}, not {wanted[np.argmax(outside)]:g}"
            )
        below = np.minimum(np.floor(rank).astype(np.int64), self.size) - 1
        above = np.minimum(below + 1, self.size - 1)
        share = rank - 1 - below
        return interpolated(self.sorted_samples, below, above, share)

    @property
    def widest(self) -> float:
        """Coverage of the interval from the least to the greatest draw."""
        return (self.size - 1) / (self.size + 1)

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Between the draws whose claim is nearest to the coverage; of two, the wider interval."""
        rank = self._rank(coverage)
        return self.sorted_samples[:, rank - 1], self.sorted_samples[:, -rank]

    def claimed_misses(self, y: FloatArray, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Shares of the m + 1 values, y among them, that miss the interval of all others.

        Where no values are equal this is i/(m + 1) on each side; equal ones miss less often.
        """
        rank, table = self._rank(coverage), self.sorted_samples
        # Places rank + 1 and m + 1 − rank of the m + 1 values: y between its neighbours there.
        low = np.clip(y, table[:, rank - 1], table[:, rank])
        high = np.clip(y, table[:, -rank - 1], table[:, -rank])
        below = (table[:, :rank] < low[:, None]).sum(axis=1) + (y < low)
        above = (table[:, -rank:] > high[:, None]).sum(axis=1) + (y > high)
        sides = [np.stack([side, side], axis=1) / (self.size + 1) for side in (below, above)]
        return sides[0], sides[1]

    def _rank(self, coverage: float) -> int:
        """The i of the interval between the i-th smallest and the i-th largest draw."""
        wanted = (self.size + 1) * (1.0 - check_fraction(coverage, "coverage")) / 2.0
        if self.size < 2:
            raise UnanswerableError("one sample per row gives no interval")
        if wanted < 1.0 - 1e-9:
            raise UnanswerableError(
                f"{self.size} samples per row reach coverages up to {self.widest:.4g}, not "
                f"{coverage:g}"
            )
        return min(max(math.ceil(wanted - 0.5 - 1e-9), 1), self.size // 2)

    def cdf(self, y: FloatArray) -> FloatArray:
        """Largest place of y among the m + 1: (1 + number of draws ≤ y)/(m + 1)."""
        return np.asarray((1.0 + (self.sorted_samples <= y[:, None]).sum(axis=1)) / (self.size + 1))

    def cdf_left(self, y: FloatArray) -> FloatArray:
        """Smallest place of y among the m + 1: (number of draws < y)/(m + 1)."""
        return np.asarray((self.sorted_samples < y[:, None]).sum(axis=1) / (self.size + 1))

    def point(self) -> FloatArray:
        """The mean of the draws."""
        return np.asarray(self.sorted_samples.mean(axis=1))

    def sd(self) -> FloatArray:
        """Standard deviation of the draws (divisor m − 1); exactly 0 where all are equal."""
        if self.size < 2:
            raise UnanswerableError("one sample per row gives no standard deviation")
        table, spread = self.sorted_samples, np.empty(self.n)
        for rows in row_blocks(self.n, self.size):
            spread[rows] = table[rows].std(axis=1, ddof=1)
        return np.where(table[:, 0] == table[:, -1], 0.0, spread)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws with replacement from the given draws, shape (n, size)."""
        chosen = rng.integers(self.size, size=(self.n, size))
        return np.take_along_axis(self.sorted_samples, chosen, axis=1)

    def redrawn(self, y: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, Self]:
        """Any of the m + 1 exchangeable values; y takes the place of a chosen draw."""
        chosen = (uniforms * (self.size + 1)).astype(np.int64)
        rows = np.flatnonzero(chosen < self.size)
        table, drawn = self.sorted_samples.copy(), y.copy()
        drawn[rows] = table[rows, chosen[rows]]
        table[rows, chosen[rows]] = y[rows]
        return drawn, self.owning(table)
