"""Several methods over common problems: means, intervals of ranks, and the set of the best.

Rows are problems (data sets, tables, worlds), columns are methods; a lower score is better, and NaN
is a score that is missing. Problems are independent draws of those that the answer speaks of.

Tests flip signs: where methods do not differ, a problem's differences are as likely with the other
sign, so the largest |t| of all pairs is compared with those of the same differences under random
signs, one sign a problem. This is exact at any number of problems where differences are symmetric
about their means, whatever their tails, scales and correlations. Resampled problems reject too
often where they are few. One long tail breaks it: of 20 methods alike in their means, half of them
exponential, half normal of a third of their sd, on 15 problems, false pairs are found in 20 % of
simulations, not 5 %.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_numbers, check_fraction
from howsure.core.classes import frozen
from howsure.core.errors import InputError

_DRAWS: Final = 2000
_ROUNDING: Final = 1e-12
"""By how much, as a share, sums that are equal may come out apart."""


@frozen(kw_only=True, eq=False)
class MeanIntervals:
    """Means over problems, each with an interval that holds alone; NaN where not known."""

    mean: FloatArray  # shape (k,) of methods, or (k, k): row's score − column's
    lower: FloatArray  # t intervals; one problem gives none
    upper: FloatArray
    sd: FloatArray  # over problems
    problems: IntArray  # how many the mean is over
    confidence: float


@frozen(kw_only=True, eq=False)
class RankIntervals:
    """Outcome of `rank_intervals`."""

    # shape (k,): 1 + how many methods are shown to be better, k − how many are shown to be worse
    lower: IntArray
    upper: IntArray
    better: BoolArray  # shape (k, k): row shown to be better than column
    p_values: FloatArray  # shape (k, k): of each pair, adjusted for all; NaN on the diagonal
    confidence: float  # that all intervals hold together


@frozen(kw_only=True, eq=False)
class ConfidenceSet:
    """Outcome of `confidence_set`."""

    member: BoolArray  # shape (k,): not shown to be worse than the best
    # shape (k,): a method is in the sets of confidence 1 − p and above; NaN where it has no score
    # on some problem, so that it was not compared
    p_values: FloatArray
    confidence: float  # that the set holds the method whose mean is lowest

    @property
    def compared(self) -> BoolArray:
        """Methods that have a score on every problem."""
        return ~np.isnan(self.p_values)


def mean_intervals(scores: npt.ArrayLike, confidence: float = 0.95) -> MeanIntervals:
    """Each method's mean over the problems where it has a score: mean ± t · sd/√n."""
    return _means(_table(scores, least=1), confidence)


def difference_intervals(scores: npt.ArrayLike, confidence: float = 0.95) -> MeanIntervals:
    """Each pair's mean difference over the problems that both have a score on."""
    table = _table(scores)
    return _means(table[:, :, None] - table[:, None, :], confidence)


def rank_intervals(
    scores: npt.ArrayLike,
    rng: np.random.Generator,
    confidence: float = 0.95,
    *,
    draws: int = _DRAWS,
) -> RankIntervals:
    """Intervals of the ranks of all methods by their mean score, which hold together.

    Parameters
    ----------
    scores : array-like of float, shape (n, k)
        Problems by methods; lower is better, NaN is missing. Pairs are compared on problems that
        both have.
    rng : numpy.random.Generator
        Draws the signs; up to 11 problems all signs are tried, and it draws none.
    confidence : float
        Probability that every method's true rank is in its interval. Methods of one true mean
        share all ranks that they span.
    draws : int
        Vectors of signs.

    Returns
    -------
    RankIntervals

    Raises
    ------
    InputError
        If there are fewer than 2 methods or problems, or a score is infinite.

    Notes
    -----
    A pair with differences d_i has u = |Σ d_i|/√(Σ d_i²), which rises with |t| alone. u is compared
    with the largest |Σ s_i d_i|/√(Σ d_i²) of all pairs whose u is no larger, over signs s: the
    step-down of P. H. Westfall and S. S. Young, *Resampling-Based Multiple Testing* (1993),
    algorithm 2.8. Ranks follow from the pairs told apart, as in M. Mogstad, J. P. Romano,
    A. M. Shaikh and D. Wilhelm, Review of Economic Studies 91 (2024).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(20, 3)) + [0.0, 0.1, 3.0]
    >>> found = rank_intervals(scores, rng)
    >>> found.lower, found.upper
    (array([1, 1, 3]), array([2, 2, 3]))
    """
    table = _table(scores)
    n, k = table.shape
    level = 1.0 - check_fraction(confidence, "confidence")
    first, second = np.triu_indices(k, 1)
    differences = table[:, first] - table[:, second]
    differences[np.isnan(differences)] = 0.0
    drawn = np.abs(_signs(n, rng, draws) @ _unit(differences))
    order = np.argsort(-drawn[0], kind="stable")
    largest = np.maximum.accumulate(drawn[:, order[::-1]], axis=1)[:, ::-1]
    adjusted = np.empty(len(order))
    adjusted[order] = np.maximum.accumulate(_p_values(largest, drawn[0, order]))
    p_values = np.full((k, k), np.nan)
    p_values[first, second] = p_values[second, first] = adjusted
    better = np.zeros((k, k), dtype=np.bool_)
    apart, sums = adjusted <= level, differences.sum(axis=0)
    better[first, second] = apart & (sums < 0.0)
    better[second, first] = apart & (sums > 0.0)
    return RankIntervals(
        lower=1 + better.sum(axis=0),
        upper=k - better.sum(axis=1),
        better=better,
        p_values=p_values,
        confidence=confidence,
    )


def confidence_set(
    scores: npt.ArrayLike,
    rng: np.random.Generator,
    confidence: float = 0.95,
    *,
    draws: int = _DRAWS,
) -> ConfidenceSet:
    """The model confidence set: methods not shown to be worse than the best.

    Parameters
    ----------
    scores : array-like of float, shape (n, k)
        Problems by methods; lower is better. A method with a missing score (NaN) is left out.
    rng : numpy.random.Generator
        Draws the signs; up to 11 problems all signs are tried, and it draws none.
    confidence : float
        Probability that the set holds every method whose true mean is lowest.
    draws : int
        Vectors of signs.

    Returns
    -------
    ConfidenceSet

    Raises
    ------
    InputError
        If there are fewer than 2 methods or problems, or a score is infinite.

    Notes
    -----
    Of those left, each pair has a t; the largest |t|, T_R, tests whether all are alike, and the
    method that loses by it leaves. A method's p-value is the largest up to its leaving. Source:
    P. R. Hansen, A. Lunde and J. M. Nason, Econometrica 79 (2011), with their T_R, whose law is
    found by signs here, for independent problems. Their T_max, of each method against the mean of
    all, shows little where some are far worse than others.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(20, 3)) + [0.0, 0.1, 3.0]
    >>> confidence_set(scores, rng).member
    array([ True,  True, False])
    """
    table = _table(scores)
    level = 1.0 - check_fraction(confidence, "confidence")
    p_values = np.full(table.shape[1], np.nan)
    compared = np.flatnonzero(~np.isnan(table).any(axis=0))
    p_values[compared] = 1.0
    first, second = (compared[each] for each in np.triu_indices(len(compared), 1))
    differences = table[:, first] - table[:, second]
    drawn = np.abs(_signs(len(table), rng, draws) @ _unit(differences))
    loser = np.where(differences.sum(axis=0) > 0.0, first, second)
    left, p = np.ones(len(first), dtype=np.bool_), 0.0
    while left.any() and drawn[0, left].max() > 0.0:
        largest = drawn[:, left].max(axis=1, keepdims=True)
        p = max(p, float(_p_values(largest, largest[0, 0])[0]))
        gone = loser[left & (drawn[0] >= largest[0, 0] - _ROUNDING)]
        p_values[gone] = p
        left &= ~(np.isin(first, gone) | np.isin(second, gone))
    return ConfidenceSet(member=p_values > level, p_values=p_values, confidence=confidence)


def problems_needed(sd: float, gap: float, power: float = 0.8) -> int:
    """How many problems tell a pair apart, by a two-sided t test at 5 %.

    Parameters
    ----------
    sd : float
        Of the pair's difference over problems.
    gap : float
        Its true mean, of either sign.
    power : float
        Probability of telling them apart.

    Returns
    -------
    int
        The smallest n with P(|T| > t(0.975, n − 1)) at least the power, T of the noncentral t law
        with n − 1 degrees of freedom and noncentrality √n · gap/sd.

    Raises
    ------
    InputError
        If the sd is negative, the gap is 0, or either is not finite.

    Examples
    --------
    >>> problems_needed(sd=1.0, gap=0.5)
    34
    """
    wanted = check_fraction(power, "power")
    if not (np.isfinite(sd) and sd >= 0.0):
        raise InputError(f"sd must be a finite number of at least 0, got {sd!r}")
    if not np.isfinite(gap) or gap == 0.0:
        raise InputError(f"gap must be a finite number other than 0, got {gap!r}")

    def enough(n: int) -> bool:
        if sd == 0.0:
            return True
        off, cut = n**0.5 * abs(gap) / sd, special.stdtrit(n - 1, 0.975)
        beyond = special.nctdtr(n - 1, -off, cut), special.nctdtr(n - 1, off, cut)
        return bool(1.0 - beyond[1] + 1.0 - beyond[0] >= wanted)

    high = 2
    while not enough(high):
        high *= 2
    low = high // 2  # too few, or 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _table(scores: npt.ArrayLike, least: int = 2) -> FloatArray:
    """Scores of at least so many methods on so many problems, without infinite ones."""
    table = as_numbers(scores, "scores")
    if table.ndim != 2 or min(table.shape) < least:
        raise InputError(
            f"scores must contain at least {least} problems by {least} methods, got shape "
            f"{table.shape}"
        )
    if np.isinf(table).any():
        raise InputError(f"scores must not be infinite, got {int(np.isinf(table).sum())} that are")
    return table


def _means(values: FloatArray, confidence: float) -> MeanIntervals:
    """Means over the first axis, without missing values, with t intervals."""
    tail = 0.5 + 0.5 * check_fraction(confidence, "confidence")
    known = ~np.isnan(values)
    n = known.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, values, 0.0).sum(axis=0) / n
        spread = np.square(np.where(known, values - mean, 0.0)).sum(axis=0) / (n - 1)
        sd = np.sqrt(np.where(n > 1, spread, np.nan))
        reach = special.stdtrit(np.maximum(n - 1, 1), tail) * sd / np.sqrt(n)
    return MeanIntervals(
        mean=mean,
        lower=mean - reach,
        upper=mean + reach,
        sd=sd,
        problems=n,
        confidence=confidence,
    )


def _signs(n: int, rng: np.random.Generator, draws: int) -> FloatArray:
    """Vectors of n signs, the first all +1: every one where they are few, else drawn.

    The last sign is +1 throughout, as −s gives what s gives.
    """
    if draws < 100:
        raise InputError(f"draws must be at least 100, got {draws}")
    if 2 ** (n - 1) <= draws:
        codes = np.arange(2 ** (n - 1))[:, None] >> np.arange(n)
        return np.asarray(np.where(codes & 1, -1.0, 1.0))
    signs = np.asarray(2.0 * rng.integers(0, 2, size=(draws, n)) - 1.0, dtype=np.float64)
    signs[0] = 1.0
    return signs


def _unit(differences: FloatArray) -> FloatArray:
    """Columns over their length; 0 where that is 0."""
    largest = np.abs(differences).max(axis=0)
    shown = np.divide(differences, largest, out=np.zeros_like(differences), where=largest > 0.0)
    return np.asarray(shown / np.maximum(np.sqrt(np.square(shown).sum(axis=0)), 1.0))


def _p_values(drawn: FloatArray, found: npt.ArrayLike) -> FloatArray:
    """Per column, the share of draws, the found one among them, that are as large."""
    return np.asarray((drawn >= np.asarray(found) - _ROUNDING).mean(axis=0))
