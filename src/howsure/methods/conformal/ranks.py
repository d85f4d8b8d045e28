"""Which calibration score serves as threshold, and what coverage that leads to."""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.errors import InputError
from howsure.core.weights import Weights

RankRule = Literal["conformal", "paper"]

_ROUNDING: Final = 1e-12


def conformal_rank(n: float, coverage: float, rule: RankRule = "conformal") -> int:
    """Rank of the calibration score that serves as threshold, counted from 1.

    Parameters
    ----------
    n : float
        Number of calibration rows (effective number for importance weights), above 0.
    coverage : float
        Nominal coverage 1−α, in (0, 1).
    rule : {"conformal", "paper"}
        ``conformal``: ⌈(n + 1)(1 − α)⌉, which guarantees the coverage; it exceeds n where n is
        too small. ``paper``: ⌊n(1 − α)⌋ + 1, the rule of Gustafsson, Danelljan and Schön (TMLR
        2023); it equals the first or is one smaller, never exceeds n, and guarantees nothing.

    Returns
    -------
    int

    Raises
    ------
    InputError
        If the coverage leaves (0, 1), or the rule is unknown.

    Examples
    --------
    >>> conformal_rank(1288, 0.9), conformal_rank(1288, 0.9, "paper")
    (1161, 1160)
    """
    target = check_fraction(coverage, "coverage")
    slack = _ROUNDING * (n + 1)
    if rule == "conformal":
        return math.ceil((n + 1) * target - slack)
    if rule == "paper":
        return math.floor(n * target + slack) + 1
    raise InputError(f"rank must be 'conformal' or 'paper', got {rule!r}")


def rows_needed(coverage: float) -> int:
    """Smallest number of calibration rows with a finite threshold at this coverage.

    Examples
    --------
    >>> rows_needed(0.9), rows_needed(0.99)
    (9, 99)
    """
    return math.ceil(coverage / (1.0 - coverage) - 1e-9)


def coverage_range(rank: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Central range of Beta(rank, n + 1 − rank): the coverage that calibration sets lead to.

    Parameters
    ----------
    rank : float
        Rank of the threshold among n calibration scores; above n it covers everything.
    n : float
        Number of calibration rows.
    confidence : float
        Probability of the range, in (0, 1).

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> low, high = coverage_range(901, 1000)
    >>> round(low, 3), round(high, 3)
    (0.881, 0.918)
    """
    if rank > n:
        return 1.0, 1.0
    tail = (1.0 - confidence) / 2.0
    low, high = special.betaincinv(rank, n + 1 - rank, [tail, 1.0 - tail])
    return float(low), float(high)


def level_ranks(levels: FloatArray, n: float) -> tuple[IntArray, IntArray]:
    """Ranks whose mean order statistic stands for each level: (n + 1)p, rounded outward.

    Below one half the rank is rounded down, above it up, so that the interval between the levels
    p and 1 − p keeps its coverage. At one half the two neighbours are averaged.

    Parameters
    ----------
    levels : ndarray of float, shape (k,)
        Levels in (0, 1).
    n : float
        Number of calibration rows.

    Returns
    -------
    low, high : ndarray of int, shape (k,)
        Equal but at one half. A level is reachable where 1 ≤ low and high ≤ n.

    Examples
    --------
    >>> level_ranks(np.array([0.1, 0.5, 0.9]), 100)
    (array([10, 50, 91]), array([10, 51, 91]))
    """
    place = (n + 1) * levels
    slack = _ROUNDING * (n + 1)
    down = np.floor(place + slack).astype(np.int64)
    up = np.ceil(place - slack).astype(np.int64)
    middle = np.abs(levels - 0.5) < _ROUNDING
    low = np.where(middle | (levels < 0.5), down, up)
    high = np.where(middle | (levels > 0.5), up, down)
    return low, high


def repetitions(weights: Weights | None) -> FloatArray | None:
    """How often each row counts, summing to the effective number of rows; None for once each.

    Examples
    --------
    >>> repetitions(Weights.checked([1, 3]))
    array([1., 3.])
    """
    return None if weights is None else weights.values * (weights.effective_n / weights.total)


def order_statistics(
    scores: FloatArray, ranks: IntArray, counts: FloatArray | None = None
) -> FloatArray:
    """The smallest scores that at least `rank` rows do not exceed.

    Parameters
    ----------
    scores : ndarray of float, shape (n,)
        One score a row.
    ranks : ndarray of int, shape (k,)
        Ranks counted from 1, at most the number of rows.
    counts : ndarray of float, shape (n,), optional
        How often each row counts.

    Returns
    -------
    ndarray of float, shape (k,)

    Examples
    --------
    >>> order_statistics(np.array([3.0, 1.0, 2.0]), np.array([1, 3]))
    array([1., 3.])
    >>> order_statistics(np.array([3.0, 1.0]), np.array([2, 3]), np.array([1.0, 2.0]))
    array([1., 3.])
    """
    if counts is None:
        places = np.asarray(ranks) - 1
        return np.asarray(np.partition(scores, np.unique(places))[places])
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(counts[order])
    places = np.searchsorted(reached, ranks - _ROUNDING * (reached[-1] + 1))
    return np.asarray(scores[order][np.minimum(places, len(scores) - 1)])
