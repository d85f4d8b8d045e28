"""Pieces of the probabilities of counts that keep their digits at large counts.

Loader (2000), Fast and accurate computation of binomial probabilities: log factorials are split
into Stirling's formula, its small error, and a deviance, so that no large numbers cancel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from howsure.core.arrays import FloatArray, as_vector, check_above
from howsure.core.errors import InputError

MOST = 1e15
"""The largest parameter: counts beyond it have no exact neighbours in 64 bits."""

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
    whole = (counts >= 0.0) & (counts == np.floor(counts)) & np.isfinite(counts)
    return np.where(whole, log_pmf(np.where(whole, counts, 0.0)), -np.inf)


def at_least_zero(value: npt.ArrayLike, name: str) -> FloatArray:
    """Check a mean of zero to 1e15 in every row."""
    return _between(value, name, 0.0, None)


def positive(value: npt.ArrayLike, name: str, length: int | None = None) -> FloatArray:
    """Check a parameter above zero and at most 1e15 in every row."""
    array = _between(value, name, 0.0, length)
    check_above(array, name, 0.0)
    return array


def location(value: npt.ArrayLike, name: str) -> FloatArray:
    """Check a parameter from 1e-100 to 1e15 in every row."""
    return _between(value, name, 1e-100, None)


def exponent(value: npt.ArrayLike, name: str, length: int) -> FloatArray:
    """Check a power from 1e-15 to 1e15 in every row."""
    return _between(value, name, 1.0 / MOST, length)


def _between(value: npt.ArrayLike, name: str, least: float, length: int | None) -> FloatArray:
    array = as_vector(value, name, length=length)
    wrong = (array < least) | (array > MOST)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{name} must lie between {least:g} and {MOST:g}, got {int(wrong.sum())} that do not "
            f"(first at row {row}: {array[row]:g})"
        )
    return array
