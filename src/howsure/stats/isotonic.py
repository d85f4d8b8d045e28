"""Isotonic regression: the rising function of x that fits y best, for quantiles and for means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen

# Share of rows with their value from which on these are taken away. It decides only time: a lower
# one copies the rest more often, a higher one carries more that is done. Not tuned.
_SHARE_DONE_TO_SHRINK = 0.3
# Share of all weights by which costs may differ and be equal, as sums are off by their digits.
_COST_TOLERANCE = 1e-13


@frozen(eq=False)
class Rising:
    """A quantile regression to solve, its rows in rising x."""

    rank: IntArray  # of each y
    share: FloatArray  # weight times level
    mass: FloatArray  # weight
    ends: BoolArray  # the last rows of equal x, after which alone values may rise

    @classmethod
    def of(cls, x: FloatArray, rank: IntArray, level: float, mass: FloatArray) -> Self:
        """Of rows in rising x."""
        return cls(rank, level * mass, mass, np.append(x[1:] != x[:-1], True))


def isotonic_mean(x: FloatArray, y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """The rising function of x with the least squared error, at each row; equal x have one value.

    A segment of rows is cut in two where those up to there fall most below its mean, until none
    does: then the mean is its value. So no loop over rows is needed, as that of pooling is.

    >>> isotonic_mean(np.array([1.0, 2.0, 3.0]), np.array([0.0, 5.0, 4.0]))
    array([0. , 4.5, 4.5])
    """
    _, rank = np.unique(x, return_inverse=True)
    mass = np.bincount(rank, weights=weights).astype(np.float64)
    moment = np.bincount(rank, weights=y if weights is None else weights * y)
    fitted, live, begin = np.empty(len(mass)), np.arange(len(mass)), np.zeros(1, dtype=np.int64)
    while True:
        size = np.diff(begin, append=len(live))
        mean = np.add.reduceat(moment, begin) / np.add.reduceat(mass, begin)
        level = np.repeat(mean, size) * mass
        saved = np.cumsum(level - moment)
        before = np.append(0.0, saved[begin[1:] - 1])
        saved[begin + size - 1] = -np.inf  # all rows lie at their mean
        slack = _COST_TOLERANCE * np.add.reduceat(np.abs(level) + np.abs(moment), begin)
        best = np.maximum.reduceat(saved, begin)
        keep = np.repeat(best > before + slack, size)
        fitted[live[~keep]] = np.repeat(mean, size)[~keep]
        if not keep.any():
            return np.asarray(fitted[rank])
        cut = np.zeros(len(live), dtype=np.bool_)
        cut[np.flatnonzero((saved == np.repeat(best, size)) & keep) + 1] = True
        cut[begin] = True
        live, mass, moment = live[keep], mass[keep], moment[keep]
        begin = np.flatnonzero(cut[keep])


def fitted_together(problems: Sequence[Rising]) -> list[IntArray]:
    """The rank of the y that each row of each problem is given, in passes over all of them.

    Threshold partitioning: the rows that the best fit sets above a value are those that are best
    set above it if no other value is asked for. So each segment of rows is cut in two where that
    costs least, its left has the lower half of its values left to it and its right the upper half,
    and log₂ n passes over arrays do. Of fits that cost the same the lowest is taken.
    """
    rank, share, mass, ends = (
        np.concatenate([getattr(problem, name) for problem in problems])
        for name in ("rank", "share", "mass", "ends")
    )
    starts: IntArray = np.cumsum([0, *(len(problem.rank) for problem in problems[:-1])])
    fitted = np.empty(len(rank), dtype=np.int64)
    row, begin = np.arange(len(rank)), starts
    rank, slack = rank.astype(np.int64), _COST_TOLERANCE * float(mass.sum())
    kept, lost = mass - share, -share  # what it costs to lie above a y that is lower, or not
    barred = np.where(ends, 0.0, np.inf)
    while True:
        size = np.diff(begin, append=len(row))
        low, high = np.minimum.reduceat(rank, begin), np.maximum.reduceat(rank, begin)
        done = low == high
        if size[done].sum() > _SHARE_DONE_TO_SHRINK * len(
            row
        ):  # what is done stays as it is if it is kept
            over = np.repeat(done, size)
            fitted[row[over]] = rank[over]
            live = np.flatnonzero(~over)
            if not len(live):
                return np.split(fitted, starts[1:])
            row, rank = row[live], rank[live]
            kept, lost, barred = kept[live], lost[live], barred[live]
            size, low, high = size[~done], low[~done], high[~done]
            begin = np.cumsum(size) - size
        half = (low + high + 1) // 2  # the least of the upper half
        least = np.repeat(half, size)
        # what the lower half saves in the rows up to each, where a fit may be cut
        saved = np.cumsum(np.where(rank < least, kept, lost))
        before = np.append(0.0, saved[begin[1:] - 1])
        saved -= barred
        best = np.maximum.reduceat(saved, begin)
        here = np.flatnonzero(saved >= np.repeat(best - slack, size))
        cut = begin.copy()
        cut[np.searchsorted(begin, here, side="right") - 1] = here + 1  # of several the last
        nowhere = best < before - slack
        cut[nowhere] = begin[nowhere]
        lower = np.arange(len(row)) < np.repeat(cut, size)
        rank = np.where(lower, np.minimum(rank, least - 1), np.maximum(rank, least))
        inner = cut[(cut > begin) & (cut < begin + size)]
        begin = np.sort(np.concatenate((begin, inner)))
