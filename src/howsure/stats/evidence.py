"""Evidence that may be looked at every day: capitals that grow only where a promise is broken.

A bet of size θ on numbers d of mean 0 multiplies its capital by exp(Σ (θ d − ψ(θ))), whose mean is
at most 1 while the promise holds (ψ by Bennett's bound: d has at most the variance v and lies in
[lo, hi]). By Ville's inequality a capital that starts with 1 ever reaches 1/α with probability α at
most, however often it is looked at. Capital is spread over sizes of the fault, both of its
directions, and the days on which it may begin.

Of a mean of numbers in [0, 1] nothing else need be known: bets are shares of what can be lost.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.convert import Finite, NonNegative
from howsure.core.errors import UnanswerableError
from howsure.stats.memory import memory_of
from howsure.stats.roots import root

# Bets on neighbouring sizes, a factor of two apart, grow at least 89 % as fast as one on the true
# size between them. The smallest needs some 3,700 rows to gain 3 nats (1/.05), the largest 15.
SIZES = np.array([0.04, 0.08, 0.16, 0.32, 0.64])
"""Sizes of fault that are bet on, in standard deviations of a row."""
# Chosen by hand; not tuned. A fault from the first day on costs 1.4 nats, log(1/FIRST); larger,
# one that begins later costs more.
FIRST = 0.25
"""Share of the capital that is bet from the first day on."""
# Spreads the rest over days with a mean of a year, so that a fault that begins in any season meets
# capital that was put in about then.
RATE = 1.0 / 365.0
"""Share of the rest that is bet from each later day on."""
# Has a logarithm, unlike 0, and is below any level.
_MIN_CAPITAL = 1e-300
# Of changes by .5 to 2 sd within 200 rows, the range holds the true day in 92 to 97 % (simulated).
_LOG_LIKELIHOOD_RANGE = 3.0


@frozen(kw_only=True)
class Bounds:
    """What is known of numbers of mean 0 under the promise."""

    variance: NonNegative
    lowest: Finite
    highest: Finite
    tolerance: NonNegative = 0.0  # how far their mean may be off and the promise be kept
    rises: bool = False  # whether a mean below 0 keeps the promise too


def bennett(sizes: FloatArray, bounds: Bounds) -> FloatArray:
    """Bound of log E exp(θ d) where E d = 0, var d is the variance at most, and d is bounded."""
    reach = np.where(sizes > 0, bounds.highest, -bounds.lowest)
    far = np.abs(sizes) * reach
    return np.asarray(bounds.variance * (np.expm1(far) - far) / reach**2)


def evidence(
    sums: FloatArray,
    counts: FloatArray,
    bounds: Bounds,
    worth: float | FloatArray = 1.0,
    days: IntArray | None = None,
    slack: float | FloatArray = 0.0,
) -> FloatArray:
    """Log capital after each day against a mean of 0, of which `sums` of `counts` rows are known.

    Examples
    --------
    >>> kept = Bounds(variance=0.09, lowest=-0.9, highest=0.1)
    >>> bool(evidence(np.full(60, -5.0), np.full(60, 50.0), kept)[-1] > math.log(20))
    True
    """
    sums, counts, slack = np.broadcast_arrays(sums, counts, slack)
    shared = np.broadcast_to(np.asarray(worth, dtype=np.float64)[..., None], sums.shape)
    days = np.arange(sums.shape[-1]) if days is None else days
    gaps = np.diff(days, prepend=days[:1] - 1)[1:]
    waits = np.log1p(-FIRST) - RATE * np.append(0.0, np.cumsum(gaps))  # log of what is not bet yet
    put = np.append(math.log(FIRST), waits[:-1] + np.log(-np.expm1(-RATE * gaps)))[: len(days)]
    sizes = SIZES if bounds.rises else np.concatenate([-SIZES[::-1], SIZES])
    logs = np.broadcast_to(waits, sums.shape)
    for size in sizes / math.sqrt(bounds.variance):
        cost = float(bennett(np.array([size]), bounds)[0]) + abs(size) * (bounds.tolerance + slack)
        grown = np.cumsum((size * sums - cost * counts) / shared, axis=-1)
        before = np.concatenate([np.zeros((*grown.shape[:-1], 1)), grown[..., :-1]], axis=-1)
        # what each day puts in, as it would have to be from the first day on
        begun = np.logaddexp.accumulate(put - math.log(len(sizes)) - before, axis=-1)
        logs = np.logaddexp(logs, begun + grown)
    return np.asarray(logs)


def worth_of(sums: FloatArray, counts: FloatArray, variance: float) -> float:
    """How many rows count as one, from sums of days of a reference; near 1 of independent rows.

    The variance of a day's sum beside that of as many independent rows, times the days that tell as
    much as one independent day: of these the upper end of what the reference leaves open, a wider
    one where it proves that days depend.
    """
    there = counts > 0
    off = sums - float(sums.sum() / counts.sum()) * counts
    days = off[there] / np.sqrt(counts[there] * variance)
    try:
        memory = memory_of(days)
    except UnanswerableError:  # too few days, or days that are all alike
        return 1.0
    single = float(np.mean(np.square(days)))
    proven = memory.bounds(_CONFIDENCE_IF_DEPENDENT)[0] > 1.0
    return max(
        single * memory.bounds(_CONFIDENCE_IF_DEPENDENT if proven else _CONFIDENCE_ELSE)[1], 1.0
    )


# Confidence of the days that count as one: where dependence is proven, and elsewhere. Chosen by
# hand; not tuned. Higher, rows that may depend count for less, and alarms come later.
_CONFIDENCE_IF_DEPENDENT, _CONFIDENCE_ELSE = 0.9, 0.6


Side = Literal["below", "above"]
# A bet below 1 never loses all, so its logarithm is finite. Halves of it to 1/128 grow at least 89
# % as fast as the best bet between them.
BETS = 0.99 * 0.5 ** np.arange(8)
"""Shares of the capital that bets on the mean of numbers in [0, 1] may lose at most."""
# How the capital is spread over them: means of many rows vary little, so the boldest is best.
_SHARES_OF_BETS = np.append(0.5, np.full(len(BETS) - 1, 0.5 / (len(BETS) - 1)))
# Finer than any digit of a bound that is shown.
_BOUND_TOLERANCE = 1e-6


def mixed_bets(logs: FloatArray, shares: FloatArray) -> FloatArray:
    """Log of a capital that is spread over bets by shares, from the log growth of each bet."""
    spread = np.log(shares).reshape(-1, *(1,) * (logs.ndim - 1))
    return np.asarray(np.logaddexp.reduce(logs + spread, axis=0))


def mean_bets(values: FloatArray | float, limit: float, side: Side) -> FloatArray:
    """Log growth of each bet that the mean of numbers in [0, 1] lies beyond a limit.

    If the mean is not beyond the limit, the mean of λ g is at most 0, and `mixed_capital` of sums
    over values ever reaches 1/α with probability α at most. Source: Waudby-Smith and Ramdas 2024,
    "Estimating means of bounded random variables by betting".

    Examples
    --------
    >>> seen = mean_bets(np.full(12, 0.8), 0.88, "below").sum(axis=1)
    >>> float(np.exp(mixed_capital(seen))) > 100.0
    True
    """
    numbers = np.asarray(values, dtype=np.float64)
    gains = (limit - numbers) / (1.0 - limit) if side == "below" else (numbers - limit) / limit
    return np.asarray(np.log1p(BETS.reshape(-1, *(1,) * numbers.ndim) * gains))


def mixed_capital(logs: FloatArray) -> FloatArray:
    """Log capital of the bets of `mean_bets`, from the log growth of each."""
    return mixed_bets(logs, _SHARES_OF_BETS)


def values_needed(logs: FloatArray, count: int, level: float) -> float:
    """How many values would bring the capital to 1/level, if it grew on as it did with so many.

    Infinite where no bet of `mean_bets` has grown.
    """
    rates = np.where(logs > 0.0, logs, 1.0) / count
    needed = (-math.log(level) - np.log(_SHARES_OF_BETS)) / rates
    return float(np.where(logs > 0.0, needed, math.inf).min())


def mean_bound(values: FloatArray, side: Side, level: float) -> float:
    """A bound of the mean of numbers in [0, 1], upper for ``below`` and lower for ``above``.

    The nearest limit beyond which `mean_bets` prove it to lie: bounds after each value all hold
    with probability 1 − level at least.

    Examples
    --------
    >>> values = np.full(100, 0.8)
    >>> lower, upper = (mean_bound(values, side, 0.05) for side in ("above", "below"))
    >>> round(lower, 3), round(upper, 3)
    (0.771, 0.807)
    """

    def short(limit: float) -> float:
        return float(mixed_capital(mean_bets(values, limit, side).sum(axis=1))) + math.log(level)

    end, farthest = (1.0, 1.0 - _BOUND_TOLERANCE) if side == "below" else (0.0, _BOUND_TOLERANCE)
    mean = min(max(float(np.mean(values)), _BOUND_TOLERANCE), 1.0 - _BOUND_TOLERANCE)
    if mean == farthest or not short(farthest) > 0.0:
        return end
    return root(short, mean, farthest, _BOUND_TOLERANCE / 10.0)


def by_closed_testing(logs: FloatArray, shares: FloatArray) -> FloatArray:
    """Of each of several capitals, the least of the means of all sets that hold it, as a log.

    A mean of capitals, with any shares, is a capital against all their promises at once. Promises
    are named as broken where each set that holds them is: then, with probability 1 − α, none of
    those that are kept is ever named.

    Examples
    --------
    >>> np.exp(by_closed_testing(np.log([100.0, 1.0]), np.array([0.5, 0.5]))).round(6)
    array([50.5,  1. ])
    """
    order = np.argsort(logs, kind="stable")
    capital = np.exp(np.minimum(logs[order], 700.0))
    mass = shares[order]
    capital_below, mass_below = (
        np.append(0.0, np.cumsum(capital * mass)),
        np.append(0.0, np.cumsum(mass)),
    )
    least = np.empty(len(logs))
    for position in range(len(logs)):  # beside the smallest others, each number of them
        before = slice(0, position + 1)
        sums = capital[position] * mass[position] + capital_below[before]
        least[position] = (sums / (mass[position] + mass_below[before])).min()
    adjusted = np.empty(len(logs))
    adjusted[order] = least
    return np.asarray(np.log(np.maximum(adjusted, _MIN_CAPITAL)))


def change_point(
    sums: FloatArray,
    counts: FloatArray,
    bounds: Bounds,
    worth: float = 1.0,
    proven: int | None = None,
) -> tuple[int, float, tuple[int, int]]:
    """The likeliest day of a step of the mean from 0, the mean since, and days not ruled out.

    It is no later than the day on which a departure was proven, if that is known. The 95 % range
    holds the days whose log likelihood is within 3 of the greatest.
    """
    total, rows = (np.cumsum(by_day[::-1])[::-1] for by_day in (sums, counts))
    size = np.maximum(total, 0.0) if bounds.rises else total
    each_row = 2.0 * bounds.variance * worth
    gain = np.where(rows > 0, size**2 / (each_row * np.maximum(rows, 1.0)), 0.0)
    gain = gain if proven is None else gain[: proven + 1]
    best = int(np.argmax(gain))
    near = np.flatnonzero(gain >= gain[best] - _LOG_LIKELIHOOD_RANGE)
    return best, float(total[best] / max(rows[best], 1.0)), (int(near[0]), int(near[-1]))
