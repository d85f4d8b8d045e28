"""Laws of counts in closed form, with one set of parameters for each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt
from scipy.special import betaincc, gammaincc, ndtri

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.stats.count_formulas import (
    at_least_zero,
    at_whole,
    beside,
    deviance,
    log_negative_binomial,
    log_spread,
    positive,
)

_DEPTH = 38.0  # windows leave out a mass of at most e^-38 at either end
_LARGEST = 2.0**53


class CountLaw(ABC):
    """A law on 0, 1, 2, … for each of n rows.

    Counts and levels have shape (n,), or (n, m) for several a row; answers have the same shape.
    """

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def log_pmf(self, counts: npt.ArrayLike) -> FloatArray:
        """Log probability of counts; −∞ where a count is negative or not whole."""

    @abstractmethod
    def cdf(self, counts: npt.ArrayLike) -> FloatArray:
        """Probability of at most each count."""

    @abstractmethod
    def mean(self) -> FloatArray:
        """Mean of each row, shape (n,)."""

    @abstractmethod
    def variance(self) -> FloatArray:
        """Variance of each row, shape (n,)."""

    @abstractmethod
    def _search(self, levels: FloatArray) -> FloatArray:
        """Smallest count with a cdf of at least each level, levels of shape (n, m)."""

    @abstractmethod
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """First and last count of each row's window, shape (n,)."""

    @abstractmethod
    def _log_weights(self, counts: FloatArray) -> FloatArray:
        """Log probabilities but for a constant in each row, at consecutive counts (n, w)."""

    def pmf(self, counts: npt.ArrayLike) -> FloatArray:
        """Probability of counts."""
        found: FloatArray = np.exp(self.log_pmf(counts))
        return found

    def quantile(self, levels: npt.ArrayLike) -> FloatArray:
        """Smallest count whose cdf reaches each level.

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
            raise InputError("levels must lie strictly between 0 and 1, got others")
        return self._search(wanted.reshape(len(self), -1)).reshape(wanted.shape)

    def sample(self, rng: np.random.Generator, size: int = 1) -> FloatArray:
        """Draw counts.

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
        return self._search(rng.random((len(self), size)))

    def support(self) -> tuple[FloatArray, FloatArray]:
        """Counts that carry all but a negligible part of each row's mass.

        Returns
        -------
        values : ndarray of float, shape (n, w)
            Consecutive counts, w the widest row's number.
        probabilities : ndarray of float, shape (n, w)
            Summing to one in each row.
        """
        low, high = self._ends()
        values = low[:, None] + np.arange(int((high - low).max()) + 1)
        log_weights = self._log_weights(values)
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        return values, weights / weights.sum(axis=1, keepdims=True)

    def _shaped(self, values: npt.ArrayLike, name: str) -> FloatArray:
        array = np.asarray(values, dtype=np.float64)
        if array.ndim == 0:
            array = np.full(len(self), float(array))
        if array.ndim > 2 or array.shape[0] != len(self):
            raise InputError(
                f"{name} must have shape ({len(self)},) or ({len(self)}, m), got {array.shape}"
            )
        if np.isnan(array).any():
            raise InputError(f"{name} must hold no missing values, got some")
        return array


class ClosedForm(CountLaw):
    """A law whose cdf is a special function."""

    __slots__ = ()

    @abstractmethod
    def _below(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        """The cdf of row ``rows[i]`` at the whole count ``counts[i]``, zero or more."""

    @abstractmethod
    def _dispersions(self) -> FloatArray:
        """a in the variance μ + a μ², shape (n,)."""

    @abstractmethod
    def _skewness(self) -> FloatArray:
        """Skewness of each row, shape (n,); 0 where the mean is 0."""

    def cdf(self, counts: npt.ArrayLike) -> FloatArray:
        count = np.minimum(np.floor(self._shaped(counts, "counts")), _LARGEST)
        flat = np.maximum(count.reshape(-1), 0.0)
        below = self._below(flat, self._rows(flat)).reshape(count.shape)
        return np.where(count < 0.0, 0.0, below)

    def _search(self, levels: FloatArray) -> FloatArray:
        """Bracket the answer around a guess in doubling steps, then halve the bracket."""
        wanted, rows = levels.reshape(-1), self._rows(levels)
        guess = self._guess(wanted, rows)
        enough = self._below(guess, rows) >= wanted
        low, high = np.where(enough, -1.0, guess), np.where(enough, guess, np.inf)
        step, here = np.ones_like(guess), guess
        open_ = np.flatnonzero(~enough | (guess > 0.0))
        while len(open_):
            move = np.where(enough[open_], -step[open_], step[open_])
            here[open_] = np.maximum(here[open_] + move, 0.0)
            step[open_] *= 2.0
            reached = self._below(here[open_], rows[open_]) >= wanted[open_]
            high[open_[reached]] = here[open_[reached]]
            low[open_[~reached]] = here[open_[~reached]]
            going = np.where(enough[open_], reached & (here[open_] > 0.0), ~reached)
            open_ = open_[going]
        open_ = np.flatnonzero(high - low > 1.0)
        while len(open_):
            middle = np.floor((low[open_] + high[open_]) / 2.0)
            reached = self._below(middle, rows[open_]) >= wanted[open_]
            high[open_[reached]] = middle[reached]
            low[open_[~reached]] = middle[~reached]
            open_ = open_[high[open_] - low[open_] > 1.0]
        return high.reshape(levels.shape)

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Where Chernoff's bound of the mass beyond falls below rounding."""
        mean = self.mean()
        low, high = np.zeros(len(self)), mean.copy()
        step = 1.0 + np.sqrt(self.variance())
        while (short := self._rate(high) < _DEPTH).any():
            high[short] += step[short]
            step *= 2.0
        inside, outside = low.copy(), mean.copy()
        for _ in range(30):  # halving (0, μ) until the bound is met, or 0 is reached
            middle = (inside + outside) / 2.0
            deep = self._rate(middle) >= _DEPTH
            inside = np.where(deep, middle, inside)
            outside = np.where(deep, outside, middle)
        return np.floor(inside), np.ceil(high)

    def _rate(self, at: FloatArray) -> FloatArray:
        """Chernoff's exponent: the log likelihood ratio of means `at` and μ for a count there."""
        mean, dispersion = self.mean(), self._dispersions()
        grown, widened = 1.0 + dispersion * at, 1.0 + dispersion * mean
        gap = (at - mean) / widened
        rate = deviance(at, mean * grown / widened, gap)
        size = 1.0 / np.maximum(dispersion, 1e-300)
        successes = deviance(size, size * (grown / widened), -gap)
        return np.where(dispersion > 0.0, rate + successes, rate)

    def _log_weights(self, counts: FloatArray) -> FloatArray:
        """Running sums of the log ratios of neighbours, (1 + ak)μ / ((1 + aμ)(k + 1))."""
        mean, dispersion = self.mean()[:, None], self._dispersions()[:, None]
        ratio = (1.0 + dispersion * counts) * mean / ((1.0 + dispersion * mean) * (counts + 1.0))
        with np.errstate(divide="ignore"):  # a mean of zero
            steps = np.log(ratio[:, :-1])
        return np.concatenate([np.zeros_like(mean), np.cumsum(steps, axis=1)], axis=1)

    def _guess(self, levels: FloatArray, rows: IntArray) -> FloatArray:
        """Normal quantile corrected for skewness (Cornish and Fisher), as a whole count."""
        z = np.clip(ndtri(levels), -9.0, 9.0)
        spread = z + self._skewness()[rows] * (np.square(z) - 1.0) / 6.0
        guess: FloatArray = self.mean()[rows] + np.sqrt(self.variance())[rows] * spread
        return np.maximum(np.floor(guess), 0.0)

    def _rows(self, values: FloatArray) -> IntArray:
        return np.repeat(np.arange(len(self)), values.size // len(self))


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class Poisson(ClosedForm):
    """Poisson law.

    Parameters
    ----------
    mean : array-like of shape (n,)
        μ, zero or more.

    Raises
    ------
    InputError
        If a mean is negative or not finite.

    Examples
    --------
    >>> Poisson([2.0]).pmf([0]).round(6).tolist()
    [0.135335]
    """

    _mean: FloatArray

    def __init__(self, mean: npt.ArrayLike) -> None:
        object.__setattr__(self, "_mean", at_least_zero(mean, "mean"))

    def __len__(self) -> int:
        return len(self._mean)

    def log_pmf(self, counts: npt.ArrayLike) -> FloatArray:
        count = self._shaped(counts, "counts")
        mean = beside(self._mean, count)
        return at_whole(count, lambda k: -deviance(k, mean) - log_spread(k))

    def _below(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        return np.asarray(gammaincc(counts + 1.0, self._mean[rows]))

    def _dispersions(self) -> FloatArray:
        return np.zeros(len(self))

    def _skewness(self) -> FloatArray:
        return _root_inverse(self._mean)

    def mean(self) -> FloatArray:
        return self._mean

    def variance(self) -> FloatArray:
        return self._mean

    def sample(self, rng: np.random.Generator, size: int = 1) -> FloatArray:
        return rng.poisson(self._mean[:, None], (len(self), size)).astype(np.float64)


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class NegativeBinomial(ClosedForm):
    """Negative binomial law by mean and dispersion: variance = μ + a μ².

    Parameters
    ----------
    mean : array-like of shape (n,)
        μ, zero or more.
    dispersion : array-like of shape (n,)
        a, positive. The number of successes is 1/a, their probability 1/(1 + aμ).

    Raises
    ------
    InputError
        If a parameter lies outside its domain.

    Examples
    --------
    >>> NegativeBinomial([2.0], [0.5]).variance().tolist()
    [4.0]
    """

    _mean: FloatArray
    _dispersion: FloatArray

    def __init__(self, mean: npt.ArrayLike, dispersion: npt.ArrayLike) -> None:
        object.__setattr__(self, "_mean", at_least_zero(mean, "mean"))
        object.__setattr__(self, "_dispersion", positive(dispersion, "dispersion", len(self._mean)))

    def __len__(self) -> int:
        return len(self._mean)

    def log_pmf(self, counts: npt.ArrayLike) -> FloatArray:
        count = self._shaped(counts, "counts")
        mean, dispersion = beside(self._mean, count), beside(self._dispersion, count)
        return at_whole(count, lambda k: log_negative_binomial(k, mean, dispersion))

    def _below(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        mean, dispersion = self._mean[rows], self._dispersion[rows]
        failure = dispersion * mean / (1.0 + dispersion * mean)
        return np.asarray(betaincc(counts + 1.0, 1.0 / dispersion, failure))

    def _dispersions(self) -> FloatArray:
        return self._dispersion

    def _skewness(self) -> FloatArray:
        return (1.0 + 2.0 * self._dispersion * self._mean) * _root_inverse(self.variance())

    def mean(self) -> FloatArray:
        return self._mean

    def variance(self) -> FloatArray:
        return self._mean + self._dispersion * np.square(self._mean)

    def sample(self, rng: np.random.Generator, size: int = 1) -> FloatArray:
        shape = (len(self), size)
        rate = rng.gamma(1.0 / self._dispersion[:, None], 1.0, shape)
        rate *= (self._dispersion * self._mean)[:, None]
        return rng.poisson(rate).astype(np.float64)


def _root_inverse(values: FloatArray) -> FloatArray:
    """1/√v, and 0 where v is 0."""
    return np.where(values > 0.0, 1.0 / np.sqrt(np.where(values > 0.0, values, 1.0)), 0.0)
