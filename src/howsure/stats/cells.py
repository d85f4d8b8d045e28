"""Rows put into cells, by ease or by strata, and what each cell holds on average.

Cells by ease have equal mass. Rows that tie at an edge are shared between the cells beside it in
proportion, so that the order of rows does not matter and a weight of two is a row twice.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector
from howsure.core.convert import checked
from howsure.core.errors import InputError

Strata = Sequence[tuple[float, float]]

# Published, and kept as they are so that results compare.
TORCHCP_STRATA = ((0, 1), (2, 3), (4, 10), (11, 100), (101, 1000))
"""Sizes of label sets, as TorchCP groups them; closed ranges."""
# Published, and kept as they are so that results compare.
RAPS_STRATA = ((0, 1), (2, 3), (4, 6), (7, 10), (11, 100), (101, 1000))
"""Sizes or ranks as Angelopoulos et al. (2021) group them; closed ranges."""


class Cells(ABC):
    """A rule that puts rows into B cells, for any multiplicities of the rows."""

    low: FloatArray
    high: FloatArray

    @abstractmethod
    def sums(self, values: FloatArray, counts: FloatArray) -> FloatArray:
        """Sum of count × value in each cell, shape (B, k); an empty cell has zeros."""

    def means(self, values: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mass of each cell, shape (B,), and means in it, shape (B, k); NaN where it is empty."""
        columns = np.column_stack((np.ones(len(values)), values))
        total = self.sums(columns, counts)
        with np.errstate(invalid="ignore", divide="ignore"):
            return total[:, 0], total[:, 1:] / total[:, :1]


# A cell of fewer rows has no interval (`howsure.topics.adaptivity.coverage`): its share may be
# anything.
MIN_ROWS_PER_CELL = 5
"""Rows that a cell must have, where their number is asked for or chosen."""


def check_cells(cells: int, rows: int) -> int:
    """A number of cells that so many rows fill: from 3, for a line needs so many."""
    most = rows // MIN_ROWS_PER_CELL
    checked(cells, int, "cells")
    if not 3 <= cells <= most:
        if most < 3:
            raise InputError(f"cells need at least {3 * MIN_ROWS_PER_CELL} rows, got {rows}")
        raise InputError(
            f"cells must be between 3 and the {most} that {rows:,} rows fill, "
            f"{MIN_ROWS_PER_CELL} each, got {cells}"
        )
    return cells


@final
class EaseCells(Cells):
    """Cells of equal mass, in rising order of ease.

    Cell b holds the positions ⌊(b − 1)N/B⌋ < j ≤ ⌊bN/B⌋ of the rows in rising order of ease,
    N being the sum of the counts (without rounding where that is no whole number).

    Parameters
    ----------
    ease : array-like of shape (n,)
        Ease of the rows; any number by which they are sorted.
    bins : int
        Number of cells, from 1 to the rows that count.
    counts : ndarray of float, shape (n,), optional
        How often each row counts; once if omitted.

    Raises
    ------
    InputError
        If an ease is not finite, or the number of bins is not in that range.

    Examples
    --------
    >>> cells = EaseCells([0.1, 0.4, 0.2, 0.3], 2)
    >>> cells.sums(np.array([[1.0], [2.0], [3.0], [4.0]]), np.ones(4))[:, 0]
    array([4., 6.])
    """

    def __init__(self, ease: npt.ArrayLike, bins: int, counts: FloatArray | None = None) -> None:
        values = as_vector(ease, "ease")
        checked(bins, int, "bins")
        order = np.argsort(values, kind="stable")
        upto = np.cumsum(np.ones(len(values)) if counts is None else counts[order])
        rows = max(float(upto[-1]), len(values))
        if not 1 <= bins <= rows:
            raise InputError(f"bins must be between 1 and the {rows:.0f} rows, got {bins}")
        ranked = values[order]
        ends = np.r_[np.flatnonzero(ranked[1:] != ranked[:-1]), len(ranked) - 1] + 1
        edges = np.arange(bins + 1) * upto[-1] / bins
        integral = bool(upto[-1] == np.floor(upto[-1]))
        edges = np.floor(edges + 1e-9) if integral else edges
        first = np.searchsorted(upto, edges[:-1], side="right")
        last = np.searchsorted(upto, edges[1:] * (1.0 - 1e-12), side="left")
        self.bins = int(bins)
        self.low, self.high = ranked[first], ranked[np.minimum(last, len(ranked) - 1)]
        self._order, self._ends = order, ends

    def sums(self, values: FloatArray, counts: FloatArray) -> FloatArray:
        """Sum of count × value in each cell, shape (B, k)."""
        mass = np.r_[0.0, np.cumsum(counts[self._order])[self._ends - 1]]
        edges = np.arange(self.bins + 1) * mass[-1] / self.bins
        if mass[-1] == np.floor(mass[-1]):
            edges = np.floor(edges + 1e-9)
        table = np.empty((self.bins, values.shape[1]))
        for number, column in enumerate(values.T):
            reached = np.r_[0.0, np.cumsum((counts * column)[self._order])[self._ends - 1]]
            table[:, number] = np.diff(np.interp(edges, mass, reached))
        return table


@final
class StratumCells(Cells):
    """Cells given as closed ranges of a number; rows of none are left out.

    Parameters
    ----------
    by : array-like of shape (n,)
        What puts a row into a stratum: a set's size, a label's rank.
    strata : sequence of (low, high), or None
        Disjoint ranges in rising order, both ends included; a number between two ranges belongs
        to the one above. None makes each value that occurs a stratum of its own.

    Raises
    ------
    InputError
        If a number is not finite, or the ranges are not in rising order.

    Examples
    --------
    >>> cells = StratumCells([1, 1, 2, 5], ((0, 1), (2, 3)))
    >>> cells.sums(np.ones((4, 1)), np.ones(4))[:, 0]
    array([2., 1.])
    """

    def __init__(self, by: npt.ArrayLike, strata: Strata | None) -> None:
        values = as_vector(by, "by")
        if strata is None:
            high = np.unique(values)
            low = high
        else:
            ends = as_matrix(strata, "strata", columns=2)
            low, high = ends[:, 0], ends[:, 1]
            if (low > high).any() or (low[1:] <= high[:-1]).any():
                raise InputError(f"strata must be ranges in rising order, got {strata!r}")
        codes = np.searchsorted(high, values)
        outside = (codes == len(high)) | (values < low[0])
        self.low, self.high = low, high
        self._codes = np.where(outside, len(high), codes)

    def sums(self, values: FloatArray, counts: FloatArray) -> FloatArray:
        """Sum of count × value in each cell, shape (B, k)."""
        cells = len(self.high)
        columns = [np.bincount(self._codes, counts * column, cells + 1) for column in values.T]
        return np.column_stack(columns)[:cells].astype(np.float64)


def largest_violation(
    cells: Cells,
    covered: FloatArray,
    counts: FloatArray,
    coverage: float,
    *,
    two_sided: bool = True,
) -> float:
    """Largest violation of coverage over cells: the number alone, for experiments of many trials.

    Examples
    --------
    >>> cells = EaseCells([0.1, 0.2, 0.3, 0.4], 2)
    >>> largest_violation(cells, np.array([1.0, 1.0, 0.0, 1.0]), np.ones(4), 0.9)
    0.4
    """
    share = cells.means(covered[:, None], counts)[1][:, 0]
    gap = coverage - share[np.isfinite(share)]
    if not len(gap):
        return math.nan
    return float(np.abs(gap).max() if two_sided else max(gap.max(), 0.0))


def signed_r2(x: FloatArray, y: FloatArray) -> float:
    """sign(ρ)·ρ² of Pearson's correlation; NaN with fewer than three pairs or a constant side.

    Examples
    --------
    >>> signed_r2(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]))
    -1.0
    """
    if len(x) < 3:
        return math.nan
    u, v = x - x.mean(), y - y.mean()
    if np.abs(u).max() <= ROUNDING * np.abs(x).max() or (
        np.abs(v).max() <= ROUNDING * np.abs(y).max()
    ):
        return math.nan
    u, v = u / np.abs(u).max(), v / np.abs(v).max()
    rho = float(u @ v) / math.sqrt(float(u @ u) * float(v @ v))
    return math.copysign(min(rho * rho, 1.0), rho)


# A sum of a million rows loses some 10⁻¹³ of itself; no real difference of cells is so small.
ROUNDING = 1e-12
"""Of cells that differ by less, as a share, rounding alone makes the difference."""
