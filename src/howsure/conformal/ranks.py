"""Which calibration score serves as threshold, and what coverage that leads to."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.errors import InputError
from howsure.core.weights import Weights

RankRule = Literal["conformal", "paper", "pac"]
"""By which rank of the calibration scores a threshold is taken."""

# The usual one in twenty; no paper says more.
DELTA = 0.05
"""Of PAC thresholds: the share of calibration sets that may fall short of the coverage."""

# n (1 − α) of a million rows is off by 10⁻¹⁰; an exact whole number must not become the next.
_ROUNDING = 1e-12


def conformal_rank(
    n: float, coverage: float, rule: RankRule = "conformal", delta: float = DELTA
) -> int:
    """Rank of the calibration score that serves as threshold, counted from 1.

    Parameters
    ----------
    n : float
        Number of calibration rows (effective number for importance weights), above 0.
    coverage : float
        Nominal coverage 1−α, in (0, 1).
    rule : {"conformal", "paper", "pac"}
        ``conformal``: ⌈(n + 1)(1 − α)⌉, which guarantees the coverage on average over
        calibration sets; it exceeds n where n is too small. ``paper``: ⌊n(1 − α)⌋ + 1, the rule
        of Gustafsson, Danelljan and Schön (TMLR 2023); it equals the first or is one smaller,
        never exceeds n, and guarantees nothing. ``pac``: the smallest that guarantees the
        coverage for all but a share δ of calibration sets; see `pac_rank`.
    delta : float
        δ of ``pac``, in (0, 1).

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
    slack = _slack(n)
    if rule == "conformal":
        return math.ceil((n + 1) * target - slack)
    if rule == "paper":
        return math.floor(n * target + slack) + 1
    if rule == "pac":
        return pac_rank(n, target, delta)
    raise InputError(f"rank must be 'conformal', 'paper' or 'pac', got {rule!r}")


def pac_rank(n: float, coverage: float, delta: float = DELTA) -> int:
    """Rank whose threshold covers enough for nearly every calibration set, counted from 1.

    Parameters
    ----------
    n : float
        Number of calibration rows, above 0.
    coverage : float
        Nominal coverage 1−α, in (0, 1).
    delta : float
        δ: the share of calibration sets that may cover less than that, in (0, 1).

    Returns
    -------
    int
        ⌊n⌋ + 1 where no finite threshold will do.

    Raises
    ------
    InputError
        If the coverage or δ leaves (0, 1).

    Notes
    -----
    The share covered at rank r follows Beta(r, n + 1 − r), so r is the smallest with
    P(Beta(r, n + 1 − r) < 1 − α) ≤ δ. For whole n it is n − k, with k the most misses for which
    the binomial P(X ≤ k) with n trials at rate α is at most δ: the training-conditional bound of
    Vovk 2012, Proposition 2; Park et al. 2020, "PAC confidence sets for deep neural networks".

    Examples
    --------
    >>> pac_rank(1000, 0.9), conformal_rank(1000, 0.9), pac_rank(20, 0.9)
    (916, 901, 21)
    """
    target, share = check_fraction(coverage, "coverage"), check_fraction(delta, "delta")
    rank, most = 1, math.floor(n) + 1
    while rank < most:  # the chance of falling short sinks as the rank rises
        middle = (rank + most) // 2
        if special.betainc(middle, n + 1.0 - middle, target) > share * (1.0 + _ROUNDING):
            rank = middle + 1
        else:
            most = middle
    return rank


def _slack(n: float) -> float:
    """What rounding may take from a place among n rows, and never a whole row."""
    return min(_ROUNDING * (n + 1), 0.25)


def rows_needed(coverage: float, rule: RankRule = "conformal", delta: float = DELTA) -> int:
    """Smallest number of calibration rows with a finite threshold at this coverage.

    Parameters
    ----------
    coverage, rule, delta
        As in `conformal_rank`.

    Returns
    -------
    int

    Examples
    --------
    >>> rows_needed(0.9), rows_needed(0.99), rows_needed(0.9, "pac")
    (9, 99, 29)
    """
    if rule == "pac":
        # A quotient that is a whole number, as of .9 and .1, is off by rounding.
        return math.ceil(math.log(delta) / math.log(coverage) - 1e-9)
    if rule == "paper":
        return 1
    # As above: .9 / (1 − .9) is 9.000000000000002.
    return math.ceil(coverage / (1.0 - coverage) - 1e-9)


def coverage_range(rank: float, n: float, confidence: float = 0.95) -> tuple[float, float]:
    """Central range of Beta(rank, n + 1 − rank): the coverage that calibration sets lead to.

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

    Examples
    --------
    >>> level_ranks(np.array([0.1, 0.5, 0.9]), 100)
    (array([10, 50, 91]), array([10, 51, 91]))
    """
    exact = (n + 1) * levels
    slack = _slack(n)
    down = np.floor(exact + slack).astype(np.int64)
    up = np.ceil(exact - slack).astype(np.int64)
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
    return None if weights is None else weights.multiplicities


def order_statistics(
    scores: FloatArray, ranks: IntArray, counts: FloatArray | None = None
) -> FloatArray:
    """The smallest scores that at least `rank` rows do not exceed.

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
    places = np.searchsorted(reached, ranks - _slack(reached[-1]))
    return np.asarray(scores[order][np.minimum(places, len(scores) - 1)])
