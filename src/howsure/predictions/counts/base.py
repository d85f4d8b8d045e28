"""What every law of counts can be asked, and the search for its quantiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.predictions.counts.formulas import sum_down

BEYOND = 2.0**53  # stands for a count of infinity

_DEPTH = 34.0  # windows leave out a mass of about e^-34 at either end
_CELLS = 1 << 17  # table entries held at once
_WIDEST = 1 << 27  # entries of a support


class CountLaw(ABC):
    """A distribution on 0, 1, 2, … for each of n rows.

    Counts and levels have shape (n,), or (n, m) for several a row; answers have the same shape.
    """

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, rows: IntArray) -> Self:
        """The laws of some rows."""

    @abstractmethod
    def log_pmf(self, counts: npt.ArrayLike) -> FloatArray:
        """Log probability of counts; −∞ where a count is negative or not whole."""

    @abstractmethod
    def cdf(self, counts: npt.ArrayLike) -> FloatArray:
        """Probability of at most each count."""

    @abstractmethod
    def mean(self) -> FloatArray:
        """Mean of each row, shape (n,)."""

    @abstractmethod
    def variance(self) -> FloatArray:
        """Variance of each row, shape (n,)."""

    @abstractmethod
    def _quantile(self, levels: FloatArray) -> FloatArray:
        """Smallest count with a cdf of at least each level, levels of shape (n, m)."""

    @abstractmethod
    def _ends(self, depth: float) -> tuple[FloatArray, FloatArray]:
        """First and last count that leave out about e^−depth at either side, shape (n,)."""

    @abstractmethod
    def _log_steps(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        """log p(k + 1) − log p(k) at counts of shape (w, rows) or (rows,)."""

    def pmf(self, counts: npt.ArrayLike) -> FloatArray:
        """Probability of counts."""
        found: FloatArray = np.exp(self.log_pmf(counts))
        return found

    def quantile(self, levels: npt.ArrayLike) -> FloatArray:
        """Smallest count whose cdf reaches each level.

        A level that misses a value of the cdf by rounding alone (2e-13, or 1e-8 of the smaller
        tail where that is less) counts as reached.

        Parameters
        ----------
        levels : float or array-like of shape (n,) or (n, m)
            Strictly between 0 and 1.

        Returns
        -------
        ndarray of float
            Whole numbers, in the shape of the levels.

        Raises
        ------
        InputError
            If a level lies outside (0, 1), or the shape does not fit.
        """
        wanted = self._shaped(levels, "levels")
        if not ((wanted > 0.0) & (wanted < 1.0)).all():
            raise InputError("levels must lie strictly between 0 and 1, got others")
        return self._quantile(wanted.reshape(len(self), -1)).reshape(wanted.shape)

    def sample(self, rng: np.random.Generator, size: int = 1) -> FloatArray:
        """Draw counts by inverting the cdf.

        Parameters
        ----------
        rng : numpy.random.Generator
            Where randomness comes from.
        size : int
            Draws for each row.

        Returns
        -------
        ndarray of float, shape (n, size)
        """
        return self._quantile(np.maximum(rng.random((len(self), size)), 2.0**-54))

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """First and last count of each row outside which there is no mass but rounding.

        Returns
        -------
        low, high : ndarray of float, shape (n,)
        """
        return self._ends(_DEPTH)

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Counts that carry all but a negligible part of each row's mass.

        Returns
        -------
        values : ndarray of float, shape (n, w)
            Consecutive counts, w the widest row's number.
        probabilities : ndarray of float, shape (n, w)
            Summing to one in each row.

        Raises
        ------
        InputError
            If that would take more than 2²⁷ entries.
        """
        low, high = self.ends()
        widths = high - low + 1.0
        width = int(widths.max())
        if width * len(self) > _WIDEST:
            row = int(np.argmax(high - low))
            raise InputError(
                f"a support must have at most {_WIDEST} entries, got {len(self)} rows of {width} "
                f"counts (row {row} is the widest)"
            )
        values = low[:, None] + np.arange(width)
        probabilities = np.zeros(values.shape)
        for rows, table in self._tables(np.arange(len(self)), low, widths):
            probabilities[rows, : len(table)] = table[:width].T
        return values, probabilities

    def _tables(
        self, rows: IntArray, low: FloatArray, widths: FloatArray, each: int = 1
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Probabilities at consecutive counts, rows of like width together.

        Blocks are small enough for ``each`` answers a row.

        Yields places in ``rows``, and a table of shape (w, places) that sums to one over the
        counts from ``low`` on. A row's table depends on that row alone, so that equal rows have
        equal answers.
        """
        grain = np.maximum(np.exp2(np.floor(np.log2(widths)) - 3.0), 16.0)
        common = np.ceil(widths / grain) * grain
        order = np.argsort(common, kind="stable")
        edges = np.flatnonzero(np.diff(common[order], prepend=0.0, append=np.inf))
        for first, last in pairwise(edges):
            width = int(common[order[first]])
            size = max(_CELLS // max(width, each), 1)
            for start in range(first, last, size):
                places: IntArray = order[start : min(start + size, last)]
                table = np.zeros((width, len(places)))
                counts = low[places] + np.arange(width - 1.0)[:, None]
                np.cumsum(self._log_steps(counts, rows[places]), axis=0, out=table[1:])
                table -= table.max(axis=0)
                np.exp(table, out=table)
                table /= sum_down(table)
                yield places, table

    def _shaped(self, values: npt.ArrayLike, name: str) -> FloatArray:
        array = np.asarray(values, dtype=np.float64)
        if array.ndim == 0:
            array = np.full(len(self), float(array))
        if array.ndim > 2 or array.shape[0] != len(self):
            raise InputError(
                f"{name} must have shape ({len(self)},) or ({len(self)}, m), got {array.shape}"
            )
        if np.isnan(array).any():
            raise InputError(f"{name} must hold no missing values, got some")
        return array
