"""Quantiles of laws of counts: a guess, the cdf around it, and steps towards the level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import gammaincinv, ndtri

from howsure.core.arrays import FloatArray, IntArray

REACH = 4
"""The cdf around a guess is known at this many counts on either side."""

Around = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""``around(k, places)``: cdf at k, and probabilities of k − 3, …, k + 4 of shape (8, places)."""

_CLOSE = 1e-9  # sums of neighbours are truer than this
_NEWTON = 8  # rounds before the search only halves
_ROUNDS = 200
_SKEWED = 0.4


def slack(levels: FloatArray) -> FloatArray:
    """By how much a cdf may miss a level and count as reaching it: what its sums round."""
    return np.minimum(1e-8 * np.minimum(levels, 1.0 - levels), 2e-13) + 4e-16 * levels


def search(levels: FloatArray, guess: FloatArray, around: Around) -> FloatArray:
    """Smallest count whose cdf reaches each level."""
    wanted = levels - slack(levels)
    low, high = np.full(len(levels), -1.0), np.full(len(levels), np.inf)
    count, answer = guess.copy(), np.empty(len(levels))
    below_answer = np.empty(len(levels))  # the cdf one count under the answer
    open_ = np.arange(len(levels))
    for attempt in range(_ROUNDS):
        here, aim = count[open_], wanted[open_]
        total, shares = around(here, open_)
        values = np.empty((2 * REACH + 1, len(open_)))
        values[REACH] = total
        values[REACH + 1 :] = total + np.cumsum(shares[REACH:], axis=0)
        values[:REACH] = (total - np.cumsum(shares[REACH - 1 :: -1], axis=0))[::-1]
        values[here + np.arange(-REACH, REACH + 1.0)[:, None] < 0.0] = -1.0
        below = (values < aim).sum(axis=0)
        low[open_] = np.where(below > 2 * REACH, here + REACH, low[open_])
        high[open_] = np.where(below == 0, here - REACH, high[open_])
        answer[open_] = np.clip(here - REACH + below, low[open_] + 1.0, high[open_])
        under = np.clip(answer[open_] - 1.0 - here + REACH, 0.0, 2.0 * REACH).astype(np.int64)
        below_answer[open_] = values[under, np.arange(len(open_))]
        up = below > 2 * REACH
        missed = (up | (below == 0)) & (high[open_] - low[open_] > 1.0)
        if not missed.any():
            break
        open_, up, edge = open_[missed], up[missed], np.where(up, 2 * REACH, 0)[missed]
        slope = np.where(up, shares[-1, missed], shares[0, missed])
        gap = aim[missed] - values[edge, np.flatnonzero(missed)]
        with np.errstate(over="ignore"):  # far out in a tail: the bracket decides
            step = np.divide(gap, slope, out=np.zeros(len(open_)), where=slope > 0.0)
        target = count[open_] + edge - REACH + np.rint(step)
        count[open_] = _inside(target, low[open_], high[open_], halve=attempt >= _NEWTON)
    # Sums of neighbours round otherwise than the cdf itself, which decides where they meet.
    close = np.flatnonzero((answer > 0.0) & (below_answer > levels - _CLOSE))
    if len(close):
        reached, _ = around(answer[close] - 1.0, close)
        answer[close] -= reached >= levels[close]
    return answer


def _inside(target: FloatArray, low: FloatArray, high: FloatArray, *, halve: bool) -> FloatArray:
    """Newton's target where it helps, or else the middle of the bracket; upwards, a doubling."""
    endless = np.isinf(high)
    middle = np.where(
        endless, 2.0 * low + 8.0, np.floor((low + np.where(endless, low, high)) / 2.0)
    )
    most = np.where(endless, 8.0 * low + 64.0, high)
    helps = (target > low) & (target < most) & (not halve)
    return np.maximum(np.where(helps, target, middle), 0.0)


def first_guess(
    levels: FloatArray,
    mean: FloatArray,
    sd: FloatArray,
    skewness: FloatArray,
    kurtosis: FloatArray,
) -> FloatArray:
    """Quantiles of a continuous law with these moments, rounded up to counts.

    Nearly normal laws by the expansion of Cornish and Fisher, skewed ones by a gamma law.
    """
    z = ndtri(levels)
    square = np.square(z)
    curve = skewness * (square - 1.0) / 6.0
    curve += z * (
        kurtosis * (square - 3.0) / 24.0 - np.square(skewness) * (2.0 * square - 5.0) / 36.0
    )
    found: FloatArray = mean + sd * (z + curve)
    skewed = np.flatnonzero((skewness > _SKEWED) & (mean > 0.0))
    if len(skewed):
        shape = np.square(mean[skewed] / sd[skewed])
        found[skewed] = gammaincinv(shape, levels[skewed]) * mean[skewed] / shape
    return np.maximum(np.ceil(found - 0.5), 0.0)
