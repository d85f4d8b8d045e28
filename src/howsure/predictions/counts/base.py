"""What every law of counts can be asked, and the pieces that laws share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, gammaln, ndtri

from howsure.core.arrays import FloatArray, IntArray, as_vector
from howsure.core.errors import InputError

# Stands for a count of infinity: whole numbers above are not all numbers of 64 bits.
INFINITE_COUNT = 2.0**53

# Windows leave out a mass of about e⁻³⁴ = 1.7 · 10⁻¹⁵ at either end, a few last digits of 1.
MAX_EXPONENT = 34.0
# Of Newton's method for the ends: it comes from outside, so fewer rounds leave a wider window,
# never a wrong one.
_NEWTON_ROUNDS = 4
# Table entries held at once: 1 MB in 64 bits, which stays in the cache.
_NUMBERS_AT_ONCE = 1 << 17
# Entries of a support: 1 GB in 64 bits.
_MAX_SUPPORT = 1 << 27


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
    def _log_masses(self, counts: FloatArray) -> FloatArray:
        """Log probability of whole counts of zero or more, shape (n, m)."""

    @abstractmethod
    def _totals(self, counts: FloatArray) -> FloatArray:
        """Probability of at most each whole count of zero or more, shape (n, m)."""

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
    def _outside(self) -> tuple[FloatArray, FloatArray]:
        """Bernstein's bounds of the counts that leave out about e^−MAX_EXPONENT, shape (n,)."""

    @abstractmethod
    def _exponent(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Chernoff's exponent at numbers of shape (n,), which is convex, and its slope."""

    @abstractmethod
    def _log_steps(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        """log p(k + 1) − log p(k) at counts of shape (w, rows) or (rows,)."""

    def log_pmf(self, counts: npt.ArrayLike) -> FloatArray:
        """Log probability of counts; −∞ where a count is negative or not whole."""
        count = self._shaped(counts, "counts")
        return at_whole(count.reshape(len(self), -1), self._log_masses).reshape(count.shape)

    def cdf(self, counts: npt.ArrayLike) -> FloatArray:
        """Probability of at most each count."""
        count = np.minimum(np.floor(self._shaped(counts, "counts")), INFINITE_COUNT)
        below = self._totals(np.maximum(count.reshape(len(self), -1), 0.0)).reshape(count.shape)
        return np.where(count < 0.0, 0.0, below)

    def pmf(self, counts: npt.ArrayLike) -> FloatArray:
        """Probability of counts."""
        return np.asarray(np.exp(self.log_pmf(counts)))

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
            raise InputError("levels must be strictly between 0 and 1")
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
        low, high = self._outside()
        for _ in range(_NEWTON_ROUNDS):  # of Newton's method: steps from outside stay outside
            low, high = np.maximum(self._nearer(low), 0.0), self._nearer(high)
        return np.floor(low), np.ceil(high)

    def _nearer(self, at: FloatArray) -> FloatArray:
        """Newton's step towards where the exponent is `MAX_EXPONENT`; none from within."""
        exponent, slope = self._exponent(at)
        usable = np.isfinite(slope) & (slope != 0.0) & (exponent > MAX_EXPONENT)
        return at - np.divide(exponent - MAX_EXPONENT, slope, out=np.zeros(len(at)), where=usable)

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
        if width * len(self) > _MAX_SUPPORT:
            row = int(np.argmax(high - low))
            raise InputError(
                f"a support must have at most {_MAX_SUPPORT} entries; got {len(self)} rows of "
                f"{width} counts (most in row {row})"
            )
        values = low[:, None] + np.arange(width)
        probabilities = np.zeros(values.shape)
        for rows, table in self._tables(np.arange(len(self)), low, widths):
            probabilities[rows, : len(table)] = table[:width].T
        return values, probabilities

    def _tables(
        self, rows: IntArray, low: FloatArray, widths: FloatArray, answers: int = 1
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Probabilities at consecutive counts, rows of like width together.

        Blocks are small enough for ``answers`` answers a row.

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
            size = max(_NUMBERS_AT_ONCE // max(width, answers), 1)
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
            raise InputError(f"{name} must contain no missing values")
        return array


# ---- quantiles of laws of counts: a guess, the cdf around it, and steps towards the level --------

# Nine counts hold most answers at the first guess; the panels give eight shares at once. By hand.
AROUND = 4
"""The cdf around a guess is known at this many counts on either side."""

Around = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""``around(k, places)``: cdf at k, and probabilities of k − 3, …, k + 4 of shape (8, places)."""

# Sums of neighbours are truer than this, by seven digits or so: within it the cdf itself decides.
_SUM_ROUNDING = 1e-9
# Rounds before the search only halves, which ends for certain: Newton's steps take two or three,
# unless a law is flat. By hand.
_NEWTON_TRIES = 8
# Doubling up to 10¹⁵ and halving again takes some 100.
_MAX_SEARCH_ROUNDS = 200
# Skewness from which on the normal guess with its correction is worse than one by another law. It
# decides the number of rounds, never the answer.
_MIN_SKEWNESS = 0.4


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
    for attempt in range(_MAX_SEARCH_ROUNDS):
        here, aim = count[open_], wanted[open_]
        total, shares = around(here, open_)
        values = np.empty((2 * AROUND + 1, len(open_)))
        values[AROUND] = total
        values[AROUND + 1 :] = total + np.cumsum(shares[AROUND:], axis=0)
        values[:AROUND] = (total - np.cumsum(shares[AROUND - 1 :: -1], axis=0))[::-1]
        values[here + np.arange(-AROUND, AROUND + 1.0)[:, None] < 0.0] = -1.0
        below = (values < aim).sum(axis=0)
        low[open_] = np.where(below > 2 * AROUND, here + AROUND, low[open_])
        high[open_] = np.where(below == 0, here - AROUND, high[open_])
        answer[open_] = np.clip(here - AROUND + below, low[open_] + 1.0, high[open_])
        under = np.clip(answer[open_] - 1.0 - here + AROUND, 0.0, 2.0 * AROUND).astype(np.int64)
        below_answer[open_] = values[under, np.arange(len(open_))]
        up = below > 2 * AROUND
        missed = (up | (below == 0)) & (high[open_] - low[open_] > 1.0)
        if not missed.any():
            break
        open_, up, edge = open_[missed], up[missed], np.where(up, 2 * AROUND, 0)[missed]
        slope = np.where(up, shares[-1, missed], shares[0, missed])
        gap = aim[missed] - values[edge, np.flatnonzero(missed)]
        with np.errstate(over="ignore"):  # far out in a tail: the bracket decides
            step = np.divide(gap, slope, out=np.zeros(len(open_)), where=slope > 0.0)
        target = count[open_] + edge - AROUND + np.rint(step)
        count[open_] = _inside(target, low[open_], high[open_], halve=attempt >= _NEWTON_TRIES)
    # Sums of neighbours round otherwise than the cdf itself, which decides where they meet.
    close = np.flatnonzero((answer > 0.0) & (below_answer > levels - _SUM_ROUNDING))
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
    guess: FloatArray = mean + sd * (z + curve)
    skewed = np.flatnonzero((skewness > _MIN_SKEWNESS) & (mean > 0.0))
    if len(skewed):
        shape = np.square(mean[skewed] / sd[skewed])
        guess[skewed] = gammaincinv(shape, levels[skewed]) * mean[skewed] / shape
    return np.maximum(np.ceil(guess - 0.5), 0.0)


# ---- pieces of the probabilities of counts that keep their digits at large counts ----------------
# Loader (2000), Fast and accurate computation of binomial probabilities: log factorials are split
# into Stirling's formula, its small error, and a deviance, so that no large numbers cancel.

# Below 2⁵³ = 9 · 10¹⁵, with room for what is added to a mean.
MAX_PARAMETER = 1e15
"""The largest parameter: counts beyond it have no exact neighbours in 64 bits."""

# log √(2π), of Stirling's formula.
_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


def stirling_error(x: FloatArray) -> FloatArray:
    """log Γ(x+1) − [½ log(2πx) + x log x − x] for x > 0."""
    large = np.maximum(x, 16.0)
    inverse = 1.0 / np.square(large)
    series = 1.0 / 1260.0 - inverse * (1.0 / 1680.0 - inverse / 1188.0)
    tail = (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse * series)) / large
    small = np.minimum(x, 16.0)
    direct = gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - _HALF_LOG_2PI
    return np.where(x < 16.0, direct, tail)


def deviance(x: FloatArray, mean: FloatArray, gap: FloatArray | None = None) -> FloatArray:
    """x log(x/μ) − (x − μ), half the Poisson deviance: zero or more; μ at x = 0.

    A gap x − μ that is known better than by subtraction can be given.
    """
    gap = x - mean if gap is None else gap
    total = x + mean
    ratio = np.divide(gap, total, out=np.zeros(np.broadcast(x, mean).shape), where=total > 0.0)
    square = np.square(ratio)
    series = np.zeros_like(ratio)
    for odd in (19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = square * (1.0 / odd + series)
    near = gap * ratio + 2.0 * x * ratio * series
    with np.errstate(divide="ignore", invalid="ignore"):
        far = x * np.log(x / mean) - gap
    far = np.where(x == 0.0, mean, far)
    return np.where(np.abs(ratio) < 0.1, near, far)


def log_spread(x: FloatArray) -> FloatArray:
    """log x! − (x log x − x) for x > 0, and 0 at x = 0."""
    positive = np.where(x > 0.0, x, 1.0)
    spread = _HALF_LOG_2PI + 0.5 * np.log(positive) + stirling_error(positive)
    return np.where(x > 0.0, spread, 0.0)


def log_negative_binomial(k: FloatArray, mean: FloatArray, dispersion: FloatArray) -> FloatArray:
    """Log probability of k for mean μ and variance μ + a μ²."""
    size = 1.0 / dispersion
    positive = np.where(k > 0.0, k, 1.0)
    grown, widened = 1.0 + dispersion * positive, 1.0 + dispersion * mean
    gap = (positive - mean) / widened
    errors = stirling_error(size + positive) - stirling_error(size) - stirling_error(positive)
    away = deviance(size, size * grown / widened, -gap)
    away += deviance(positive, mean * grown / widened, gap)
    spread = _HALF_LOG_2PI + 0.5 * np.log(positive / grown)
    some = errors - away - spread - np.log(grown)
    return np.where(k > 0.0, some, -np.log1p(dispersion * mean) / dispersion)


def sum_down(table: FloatArray) -> FloatArray:
    """Sums of columns, term by term in their order: a column's sum depends on no other column.

    NumPy adds a single column in another order than several.
    """
    return np.asarray(np.cumsum(table, axis=0)[-1] if table.shape[1] == 1 else table.sum(axis=0))


def at_whole(counts: FloatArray, log_pmf: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Apply a log probability at whole counts of zero or more; −∞ elsewhere."""
    possible = (counts >= 0.0) & (counts == np.floor(counts)) & np.isfinite(counts)
    return np.where(possible, log_pmf(np.where(possible, counts, 0.0)), -np.inf)


def between(value: npt.ArrayLike, name: str, least: float, length: int | None = None) -> FloatArray:
    """Check a parameter from the least to 1e15 in every row."""
    array = as_vector(value, name, length=length)
    wrong = (array < least) | (array > MAX_PARAMETER)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{name} must be between {least:g} and {MAX_PARAMETER:g}, got {int(wrong.sum())} "
            f"that are not (first at row {row}: {array[row]:g})"
        )
    return array
