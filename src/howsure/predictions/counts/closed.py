"""Laws of counts in closed form, with one set of parameters for each row."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, erfc, gammaincc

from howsure.core.arrays import FloatArray, IntArray, check_above
from howsure.predictions.counts.base import (
    AROUND,
    MAX_EXPONENT,
    CountLaw,
    between,
    deviance,
    first_guess,
    log_negative_binomial,
    log_spread,
    search,
)

# Quantiles sought at once: eight neighbours of each are 1 MB, whatever their number.
_QUANTILES_AT_ONCE = 1 << 14
_LARGE_MEAN, _SDS_ABOVE = (
    5e4,
    4.0,
)  # SciPy's cdf is off for larger means, 4.5 standard deviations above


class ClosedForm(CountLaw):
    """A law whose cdf is a special function."""

    # variance μ + a μ² of a mean μ and a dispersion a, shape (n,) each
    _mean: FloatArray
    _dispersion: FloatArray

    @abstractmethod
    def _below(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        """The cdf of row ``rows[i]`` at the whole count ``counts[i]``, zero or more."""

    @abstractmethod
    def _log_mass(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        """Log probability of row ``rows[i]`` at the whole count ``counts[i]``, zero or more."""

    def __len__(self) -> int:
        return len(self._mean)

    def mean(self) -> FloatArray:
        """The parameter μ."""
        return self._mean

    def variance(self) -> FloatArray:
        """μ + a μ²."""
        return np.asarray(self._mean * (1.0 + self._dispersion * self._mean))

    def _log_masses(self, counts: FloatArray) -> FloatArray:
        return self._log_mass(counts.reshape(-1), self._rows(counts)).reshape(counts.shape)

    def _totals(self, counts: FloatArray) -> FloatArray:
        return self._below(counts.reshape(-1), self._rows(counts)).reshape(counts.shape)

    def _quantile(self, levels: FloatArray) -> FloatArray:
        wanted, rows = levels.reshape(-1), self._rows(levels)
        out = np.empty_like(wanted)
        for start in range(0, len(wanted), _QUANTILES_AT_ONCE):
            block = slice(start, start + _QUANTILES_AT_ONCE)
            out[block] = self._seek(wanted[block], rows[block])
        return out.reshape(levels.shape)

    def _seek(self, levels: FloatArray, rows: IntArray) -> FloatArray:
        def around(counts: FloatArray, places: IntArray) -> tuple[FloatArray, FloatArray]:
            chosen = rows[places]
            line = counts + np.arange(1.0 - AROUND, AROUND + 1.0)[:, None]
            steps = self._log_steps(np.maximum(line[:-1], 0.0), chosen)
            mass = np.empty_like(line)
            mass[AROUND - 1] = self._log_mass(counts, chosen)
            mass[AROUND:] = mass[AROUND - 1] + np.cumsum(steps[AROUND - 1 :], axis=0)
            mass[: AROUND - 1] = mass[AROUND - 1] - np.cumsum(steps[AROUND - 2 :: -1], axis=0)[::-1]
            shares = np.where(line < 0.0, 0.0, np.exp(mass))
            return self._below(counts, chosen), shares

        mean, dispersion = self._mean[rows], self._dispersion[rows]
        variance = mean * (1.0 + dispersion * mean)
        per = np.divide(1.0, variance, out=np.zeros(len(rows)), where=variance > 0.0)
        skewness = (1.0 + 2.0 * dispersion * mean) * np.sqrt(per)
        guess = first_guess(levels, mean, np.sqrt(variance), skewness, 6.0 * dispersion + per)
        return search(levels, guess, around)

    def _outside(self) -> tuple[FloatArray, FloatArray]:
        mean, spread = self._mean, np.sqrt(2.0 * MAX_EXPONENT * self.variance())
        tail = MAX_EXPONENT * (1.0 / 3.0 + self._dispersion * mean)
        high = mean + tail + np.sqrt(np.square(tail) + np.square(spread))
        return np.maximum(mean - spread, 0.0), high

    def _exponent(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The log likelihood ratio of means `at` and μ."""
        mean, dispersion = self._mean, self._dispersion
        grown, widened = 1.0 + dispersion * at, 1.0 + dispersion * mean
        gap = (at - mean) / widened
        rate = deviance(at, mean * grown / widened, gap)
        size = 1.0 / np.maximum(dispersion, 1e-300)
        successes = deviance(size, size * (grown / widened), -gap)
        with np.errstate(divide="ignore", invalid="ignore"):  # at zero, and a mean of zero
            slope = np.asarray(np.log(at / mean) - np.log(grown / widened))
        return np.where(dispersion > 0.0, rate + successes, rate), slope

    def _log_steps(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        mean, dispersion = self._mean[rows], self._dispersion[rows]
        ratio = (1.0 + dispersion * counts) * (mean / (1.0 + dispersion * mean)) / (counts + 1.0)
        with np.errstate(divide="ignore"):  # a mean of zero
            return np.asarray(np.log(ratio))

    def _rows(self, values: FloatArray) -> IntArray:
        return np.repeat(np.arange(len(self)), values.size // len(self))


@final
class Poisson(ClosedForm):
    """Poisson law.

    Parameters
    ----------
    mu : array-like of shape (n,)
        Mean and variance, zero or more, at most 1e15.

    Raises
    ------
    InputError
        If a mean lies outside its domain.

    Examples
    --------
    >>> Poisson([2.0]).pmf([0]).round(6).tolist()
    [0.135335]
    """

    def __init__(self, mu: npt.ArrayLike) -> None:
        self._mean = between(mu, "mu", 0.0)
        self._dispersion = np.zeros(len(self._mean))

    def take(self, rows: IntArray) -> Self:
        """The laws of some rows."""
        return type(self)(self._mean[rows])

    def _log_mass(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        return -deviance(counts, self._mean[rows]) - log_spread(counts)

    def _below(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        return _poisson_below(counts, self._mean[rows])

    def sample(self, rng: np.random.Generator, size: int = 1) -> FloatArray:
        """Draw counts, shape (n, size)."""
        return rng.poisson(self._mean[:, None], (len(self), size)).astype(np.float64)


@final
class NegativeBinomial(ClosedForm):
    """Negative binomial law by mean and dispersion: variance = μ + a μ².

    Parameters
    ----------
    mu : array-like of shape (n,)
        μ, zero or more, at most 1e15.
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

    def __init__(self, mu: npt.ArrayLike, dispersion: npt.ArrayLike) -> None:
        self._mean = between(mu, "mu", 0.0)
        self._dispersion = between(dispersion, "dispersion", 0.0, len(self._mean))
        check_above(self._dispersion, "dispersion", 0.0)

    def take(self, rows: IntArray) -> Self:
        """The laws of some rows."""
        return type(self)(self._mean[rows], self._dispersion[rows])

    def _log_mass(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        return log_negative_binomial(counts, self._mean[rows], self._dispersion[rows])

    def _below(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        """Iₚ(1/a, k + 1), by its complement where aμ is small; Poisson's where aμ is nothing."""
        mean, size = self._mean[rows], 1.0 / self._dispersion[rows]
        odds = mean / size
        # Below 10⁻¹⁴ a law differs from Poisson's by less than rounding; below .1, p itself keeps
        # more digits than 1 − p.
        none, near = odds < 1e-14, (odds >= 1e-14) & (odds < 0.1)
        out = np.empty(len(counts))
        out[none] = _poisson_below(counts[none], mean[none])
        out[near] = betaincc(counts[near] + 1.0, size[near], (odds / (1.0 + odds))[near])
        far = odds >= 0.1
        out[far] = betainc(size[far], counts[far] + 1.0, 1.0 / (1.0 + odds[far]))
        return out

    def sample(self, rng: np.random.Generator, size: int = 1) -> FloatArray:
        """Draw counts, Poisson with gamma means, shape (n, size)."""
        shape = (len(self), size)
        rate = rng.gamma(1.0 / self._dispersion[:, None], 1.0, shape)
        rate *= (self._dispersion * self._mean)[:, None]
        return rng.poisson(np.minimum(rate, 2.0**62)).astype(np.float64)


def _poisson_below(counts: FloatArray, mean: FloatArray) -> FloatArray:
    """Poisson's cdf; by its expansion where SciPy stops its series of the upper tail too early."""
    below = np.asarray(gammaincc(counts + 1.0, mean))
    far = (mean > _LARGE_MEAN) & (counts > mean + _SDS_ABOVE * np.sqrt(mean))
    below[far] = 1.0 - _poisson_above(counts[far], mean[far])
    return below


def _poisson_above(counts: FloatArray, mean: FloatArray) -> FloatArray:
    """Poisson's probability of more than each count, for counts above large means.

    Temme's uniform expansion of the incomplete gamma function (DLMF 8.12.7 and 8.12.8), whose
    coefficients are here their series about the mean: beyond 0.04 of it no mass is left.
    """
    shape = counts + 1.0
    depth = deviance(shape, mean)
    eta = -np.sqrt(2.0 * depth / shape)
    lead = np.polynomial.Polynomial([-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600])
    next_ = np.polynomial.Polynomial([-1 / 540, -1 / 288, 1 / 378, -77 / 77760])
    correction = (lead(eta) + next_(eta) / shape) * np.exp(-depth) / np.sqrt(2.0 * np.pi * shape)
    return np.asarray(0.5 * erfc(np.sqrt(depth)) - correction)
