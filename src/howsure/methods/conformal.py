"""Split conformal prediction: a score, its finite-sample quantile, and the region that follows.

A score says how far y lies from what was predicted. If a new row is exchangeable with n
calibration rows, the rank of its score among the n + 1 is uniform; so its score is at most the
k-th smallest calibration score with probability k/(n + 1) where scores do not tie, and with at
least that probability where they do. The y that score at most that threshold form the region.
Given the calibration set, the share of new rows covered follows the law Beta(k, n + 1 − k)
(Vovk 2012, "Conditional validity of inductive conformal predictors").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, Weights, check_fraction
from howsure.core.errors import InputError

RankRule = Literal["conformal", "paper"]
TooFew = Literal["infinite", "error"]

_ROUNDING = 1e-12


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


@dataclass(frozen=True, slots=True)
class Band:
    """What a model says of each row: two ends, and a centre between or beside them.

    Attributes
    ----------
    lower, upper, center : ndarray of float, shape (n,)
        In the units of y.
    """

    lower: FloatArray
    upper: FloatArray
    center: FloatArray

    def take(self, rows: IntArray) -> Band:
        """The rows chosen by an index."""
        return Band(self.lower[rows], self.upper[rows], self.center[rows])


class Score(ABC):
    """How far y lies from a band, and which y score at most a threshold. Subclasses are final."""

    __slots__ = ()

    @abstractmethod
    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Score of each row, shape (n,); larger is further away, +inf is out of reach."""

    @abstractmethod
    def region(self, band: Band, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Ends of {y : score(y) ≤ threshold}, a finite threshold; empty where they cross."""


@final
class Offset(Score):
    """max(lower − y, y − upper), in the units of y: conformalised quantile regression.

    With lower = upper = the point forecast it is the absolute error of split conformal
    prediction. Source: Romano, Patterson and Candès (2019), equation 6.

    Examples
    --------
    >>> band = Band(np.array([0.0]), np.array([2.0]), np.array([1.0]))
    >>> Offset().score(np.array([3.0]), band), Offset().region(band, 1.0)
    (array([1.]), (array([-1.]), array([3.])))
    """

    __slots__ = ()

    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Distance outside the band; negative inside."""
        return np.maximum(band.lower - y, y - band.upper)

    def region(self, band: Band, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Both ends moved outward by the threshold."""
        return band.lower - threshold, band.upper + threshold


@final
class LowerEnd(Score):
    """lower − y, in the units of y: the lower end alone."""

    __slots__ = ()

    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Distance below the lower end; negative above it."""
        return band.lower - y

    def region(self, band: Band, threshold: float) -> tuple[FloatArray, FloatArray]:
        """From the moved lower end upward."""
        return band.lower - threshold, np.full_like(band.upper, np.inf)


@final
class UpperEnd(Score):
    """y − upper, in the units of y: the upper end alone."""

    __slots__ = ()

    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Distance above the upper end; negative below it."""
        return y - band.upper

    def region(self, band: Band, threshold: float) -> tuple[FloatArray, FloatArray]:
        """Up to the moved upper end."""
        return np.full_like(band.lower, -np.inf), band.upper + threshold


@final
class Scaled(Score):
    """Critical scale: how much the band must be stretched about its centre to reach y.

    e/(upper − centre) for an error e = y − centre ≥ 0, else −e/(centre − lower). It is the
    critical scale of the uncertainty characteristics curve (Navrátil et al. 2021), and
    normalised conformal prediction on the band centre ± sd.

    Examples
    --------
    >>> band = Band(np.array([0.0]), np.array([4.0]), np.array([1.0]))
    >>> Scaled().score(np.array([7.0]), band), Scaled().region(band, 2.0)
    (array([2.]), (array([-1.]), array([7.])))
    """

    __slots__ = ()

    def score(self, y: FloatArray, band: Band) -> FloatArray:
        """Critical scale; 0 for no error, +inf for an error toward an end without width."""
        error = y - band.center
        reach = np.where(error >= 0, band.upper - band.center, band.center - band.lower)
        size = np.abs(error)
        scale = np.full_like(size, np.inf)
        np.divide(size, reach, out=scale, where=reach > 0)
        return np.where(size == 0, 0.0, scale)

    def region(self, band: Band, threshold: float) -> tuple[FloatArray, FloatArray]:
        """The band stretched by the threshold about its centre."""
        return (
            band.center - threshold * (band.center - band.lower),
            band.center + threshold * (band.upper - band.center),
        )


@dataclass(frozen=True, slots=True)
class Threshold:
    """A finite-sample quantile of calibration scores, and what it guarantees.

    Attributes
    ----------
    value : float
        The threshold; +inf where no finite score has the rank.
    rank : int
        Its rank among the calibration scores, from 1; above n there are too few rows.
    n : float
        Number of calibration rows.
    exact : bool
        Whether rows count in whole numbers, so that the guarantee holds.
    """

    value: float
    rank: int
    n: float
    exact: bool = True

    @property
    def expected_coverage(self) -> float:
        """Probability that a new row is covered: rank/(n + 1); NaN where none is guaranteed."""
        if not self.exact:
            return math.nan
        return 1.0 if math.isinf(self.value) else self.rank / (self.n + 1)


def calibrate(
    score: Score,
    y: FloatArray,
    band: Band,
    coverage: float,
    *,
    weights: Weights | None = None,
    rule: RankRule = "conformal",
    too_few: TooFew = "infinite",
) -> Threshold:
    """Learn the threshold of a score from calibration rows.

    Parameters
    ----------
    score : Score
        How far y lies from the band.
    y : ndarray of float, shape (n,)
        What happened.
    band : Band
        What was predicted.
    coverage : float
        Nominal coverage, in (0, 1).
    weights : Weights, optional
        A frequency of two is a row seen twice. Importance weights give the weighted quantile at
        Kish's effective number of rows, without a guarantee.
    rule : {"conformal", "paper"}
        See `conformal_rank`.
    too_few : {"infinite", "error"}
        What to do where no finite threshold reaches the coverage.

    Returns
    -------
    Threshold
        Raised by as many roundings as the calibration rows that it captures need in order to lie
        inside the closed region as computed.

    Raises
    ------
    InputError
        If the coverage is not in (0, 1), no finite threshold reaches it and ``too_few="error"``,
        or so many regions are unbounded already that none is needed.

    Examples
    --------
    >>> y = np.arange(1.0, 10.0)
    >>> calibrate(Offset(), y, Band(0 * y, 0 * y, 0 * y), 0.8).value
    8.0
    """
    check_too_few(too_few)
    n = float(len(y)) if weights is None else weights.effective_n
    exact = weights is None or weights.kind == "frequency"
    rank = conformal_rank(n, coverage, rule)
    if rank > n:
        check_few(too_few, f"coverage {coverage:g} needs {rows_needed(coverage)}, got {n:g}")
        return Threshold(math.inf, rank, n, exact)
    scores = score.score(y, band)
    value = float(order_statistics(scores, np.array([rank]), repetitions(weights))[0])
    if value == -math.inf:
        raise InputError(
            f"intervals at coverage {coverage:g} must be bounded on most calibration rows, "
            "got too many with infinite ends to learn how far to move them"
        )
    if value == math.inf:
        check_few(too_few, f"coverage {coverage:g} is out of reach where so many have no width")
        return Threshold(value, rank, n, exact)
    captured = np.flatnonzero(scores <= value)
    held = _held_by(score, y[captured], band.take(captured), value)
    return Threshold(held, rank, n, exact)


def check_too_few(too_few: str) -> None:
    """Raise `InputError` unless the choice is known."""
    if too_few not in ("infinite", "error"):
        raise InputError(f"too_few must be 'infinite' or 'error', got {too_few!r}")


def check_few(too_few: TooFew, reason: str) -> None:
    """Refuse where finite answers need more calibration rows and the caller wants no others."""
    if too_few == "error":
        raise InputError(f"calibration rows must suffice for a finite answer: {reason}")


def held(value: float, lost: Callable[[float], bool]) -> float:
    """Raise a number by roundings, doubling, until nothing is lost.

    Subtracting and adding again may miss a value by its last bit; a threshold learnt from a row
    must still hold that row.

    Examples
    --------
    >>> held(1.0, lambda value: value < 1.0)
    1.0
    """
    step = float(np.spacing(max(abs(value), 1e-300)))
    while lost(value):
        value += step
        step *= 2.0
    return value


def _held_by(score: Score, y: FloatArray, band: Band, value: float) -> float:
    lower, upper = score.region(band, value)
    near = np.flatnonzero((y < lower) | (y > upper))
    if not len(near):
        return value
    edge, rows = y[near], band.take(near)

    def lost(threshold: float) -> bool:
        low, high = score.region(rows, threshold)
        return bool(((edge < low) | (edge > high)).any())

    return held(value, lost)
