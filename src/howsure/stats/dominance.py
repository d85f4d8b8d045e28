"""Ranks with ties and weights, how many rows each row dominates, and ranks of true classes.

Weights are multiplicities: a weight of two counts as two rows with the same values.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray, as_matrix, as_vector
from howsure.core.classes import frozen
from howsure.core.errors import InputError

_T = TypeVar("_T", bound=np.generic)


@frozen(eq=False)
class Ranked:
    """Values replaced by the ranks of their distinct levels."""

    codes: IntArray  # shape (n,): rank of each row's value among the m distinct values, 0 … m−1
    order: IntArray  # shape (n,): rows in rising order of value; the order among ties is arbitrary
    tied: FloatArray  # shape (m,): mass (sum of weights) of each distinct value
    below: FloatArray  # shape (m,): mass strictly below each distinct value

    @property
    def total(self) -> float:
        """Mass of all rows."""
        return float(self.below[-1] + self.tied[-1])

    @property
    def middle(self) -> FloatArray:
        """Mid-distribution of each distinct value: (mass below + half the ties) / total."""
        return (self.below + 0.5 * self.tied) / self.total


@frozen(eq=False)
class PairMasses:
    """How each row pairs with all others."""

    concordant: FloatArray  # shape (n,): mass of the rows that lie on the same side in x and in y
    discordant: FloatArray  # shape (n,): mass of the rows that lie on opposite sides


def lowest(values: FloatArray, most: int) -> IntArray:
    """Rows of so many lowest values, the lowest first; of equal ones the earlier row.

    NumPy's own order of ties differs between processors.
    """
    rows = np.arange(len(values))
    if most < len(values):
        rows = np.flatnonzero(values <= np.partition(values, most - 1)[most - 1])
    return np.asarray(rows[np.argsort(values[rows], kind="stable")][:most])


def places_in_order(values: AnyArray) -> IntArray:
    """The place of each value in their rising order; of equal ones the earlier comes first."""
    places = np.empty(len(values), dtype=np.int64)
    places[np.argsort(values, kind="stable")] = np.arange(len(values))
    return places


def rank_values(values: npt.ArrayLike, weights: FloatArray | None = None) -> Ranked:
    """Rank values, ties together."""
    array = as_vector(values, "values", finite=False)
    order = np.argsort(array)
    ordered = array[order]
    starts = np.r_[True, ordered[1:] != ordered[:-1]]
    codes = np.empty(len(array), dtype=np.int64)
    codes[order] = np.cumsum(starts) - 1
    tied = np.bincount(codes, weights=weights).astype(np.float64)
    below = np.cumsum(tied) - tied
    return Ranked(codes, order, tied, below)


def merge_ties(values: npt.ArrayLike, noise: npt.ArrayLike) -> FloatArray:
    """Make values equal that differ by rounding alone.

    Intervals of one width, stored as two ends, have widths that differ in the last digits; left
    alone, those digits would be ranked as if they meant something.
    """
    array = as_vector(values, "values", finite=False)
    spread = as_vector(np.broadcast_to(np.asarray(noise), array.shape), "noise")
    if (spread < 0).any():
        raise InputError(f"noise must not be negative, got {spread.min():g}")
    order = np.argsort(array)
    ordered, spread = array[order], spread[order]
    reach = ordered[:-1] + np.maximum(spread[:-1], spread[1:])
    starts = np.r_[True, ordered[1:] > reach]
    merged = np.empty_like(array)
    merged[order] = ordered[starts][np.cumsum(starts) - 1]
    return merged


def pair_masses(x: Ranked, y: Ranked, weights: FloatArray | None = None) -> PairMasses:
    """Mass of concordant and of discordant rows, for every row."""
    both_below, x_order, y_order = _strictly_below(x, y, weights)
    x_below, x_tied = x.below[x.codes], x.tied[x.codes]
    y_below, y_tied = y.below[y.codes], y.tied[y.codes]
    same_x_y_below, same_both = _tied_below(x, y, x_order, weights)
    same_y_x_below, _ = _tied_below(y, x, y_order, weights)
    x_below_y_above = x_below - both_below - same_y_x_below
    x_above_y_below = y_below - both_below - same_x_y_below
    neither_above = both_below + same_x_y_below + same_y_x_below + same_both
    both_above = x.total - (x_below + x_tied) - (y_below + y_tied) + neither_above
    return PairMasses(both_below + both_above, x_below_y_above + x_above_y_below)


def _strictly_below(
    x: Ranked, y: Ranked, weights: FloatArray | None
) -> tuple[FloatArray, IntArray, IntArray]:
    """Mass strictly below in both, and the rows sorted by (x, −y) and by (y, −x).

    Rows of equal x lie in falling y, and rows of equal y are numbered in falling x: so an
    earlier position with a lower number is strictly below in both, and ties never count.
    """
    n = len(x.codes)
    if len(x.tied) == n:
        x_order = x.order
    else:
        x_order = np.argsort(x.codes * len(y.tied) + (len(y.tied) - 1 - y.codes))
    position = np.empty(n, dtype=np.int64)
    position[x_order] = np.arange(n)
    y_order = y.order if len(y.tied) == n else np.argsort(y.codes * n + (n - 1 - position))
    number = np.empty(n, dtype=np.int64)
    number[y_order] = np.arange(n)
    laid_out = number[x_order]
    below = np.empty(n)
    below[y_order] = _earlier_and_lower(laid_out, None if weights is None else weights[x_order])
    return below, x_order, y_order


def _earlier_and_lower(numbers: IntArray, weights: FloatArray | None) -> FloatArray:
    """For a permutation: the mass of earlier, lower entries, listed by number."""
    n = len(numbers)
    current = numbers.astype(np.int32)
    mass = weights
    gained = np.zeros(n)
    places = np.arange(n, dtype=np.int32)
    for bit in reversed(range((n - 1).bit_length())):
        half = 1 << bit
        high = (current & half) != 0
        node = current & -2 * half
        zeros = _running(~high, np.int32)
        zeros_before = zeros[:-1] - zeros[node]
        if mass is None:
            gained += np.where(high, zeros_before, 0)
        else:
            low = _running(np.where(high, 0.0, mass), np.float64)
            gained += np.where(high, low[:-1] - low[node], 0.0)
        target = np.where(high, places + half - zeros_before, node + zeros_before)
        current = _moved(current, target)
        gained = _moved(gained, target)
        mass = None if mass is None else _moved(mass, target)
    return gained


def _running(values: AnyArray, kind: type[_T]) -> npt.NDArray[_T]:
    """Sums of the first 0, 1, …, n values."""
    sums = np.zeros(len(values) + 1, dtype=kind)
    np.cumsum(values, out=sums[1:])
    return sums


def _moved(values: npt.NDArray[_T], target: npt.NDArray[np.int32]) -> npt.NDArray[_T]:
    """Values carried to their target places."""
    result = np.empty_like(values)
    result[target] = values
    return result


def _tied_below(
    outer: Ranked, inner: Ranked, order: IntArray, weights: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Per row, among rows equal in `outer`: the mass lower in `inner`, and the mass equal in it.

    `order` sorts rows by rising outer and falling inner value.
    """
    n = len(order)
    mass = np.ones(n) if weights is None else weights
    if len(outer.tied) == n:
        return np.zeros(n), mass
    outer_code, inner_code = outer.codes[order], inner.codes[order]
    group_last = np.r_[outer_code[1:] != outer_code[:-1], True]
    block_last = group_last | np.r_[inner_code[1:] != inner_code[:-1], True]
    running = _running(mass[order], np.float64)
    group_end = _next_marked(group_last)
    block_end = _next_marked(block_last)
    block_start = np.r_[0, np.flatnonzero(block_last)[:-1] + 1]
    lengths = np.diff(np.r_[block_start, n])
    below = np.empty(n)
    equal = np.empty(n)
    below[order] = running[group_end + 1] - running[block_end + 1]
    equal[order] = running[block_end + 1] - running[np.repeat(block_start, lengths)]
    return below, equal


def _next_marked(marked: BoolArray) -> IntArray:
    """Index of the next marked place at or after each place; the last is marked."""
    ends = np.flatnonzero(marked)
    return np.repeat(ends, np.diff(np.r_[-1, ends]))


# ---- the true class of each row, and its rank by the scores of all classes -----------------------


def label_rank(scores: npt.ArrayLike, y: npt.ArrayLike) -> FloatArray:
    """Rank of the true label among the classes, by falling score.

    Examples
    --------
    >>> label_rank([[0.5, 0.3, 0.2], [0.2, 0.4, 0.4]], [1, 2])
    array([2. , 1.5])
    """
    table = as_matrix(scores, "scores")
    label_score = table[np.arange(len(table)), class_numbers(y, *table.shape)][:, None]
    return np.asarray(
        ((table > label_score).sum(axis=1) + (table >= label_score).sum(axis=1) + 1) / 2
    )


def class_numbers(y: npt.ArrayLike, n: int, classes: int) -> IntArray:
    """The true classes as whole numbers.

    Raises
    ------
    InputError
        If an entry is no whole number from 0 to the last class, or there are not n.

    Examples
    --------
    >>> class_numbers([0.0, 2.0], 2, 3)
    array([0, 2])
    """
    numbers = as_vector(y, "y", length=n)
    wrong = (numbers < 0) | (numbers >= classes) | (numbers != np.floor(numbers))
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"y must be class numbers from 0 to {classes - 1}, got {numbers[first]:g} at row "
            f"{first}"
        )
    return numbers.astype(np.int64)
