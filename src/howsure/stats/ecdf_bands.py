"""Bands that the empirical cumulative shares of a uniform sample stay inside, and the test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, check_fraction, check_levels
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.core.weights import check_multiplicities
from howsure.stats.ecdf import check_pit, grid_sums

_REPLICATES = 10_000
_LARGE = 10**8  # from here tails are normal, with the term of skewness


@dataclass(frozen=True, slots=True)
class EcdfBand:
    """A band for the empirical cumulative shares of a uniform sample.

    Attributes
    ----------
    grid : ndarray of float, shape (k,)
        Where the shares are looked at.
    lower, upper : ndarray of float, shape (k,)
        Ends of the band, as shares.
    confidence : float
        Probability that a uniform sample stays inside: at each point alone, or at all together.
    gamma : float
        Two-sided tail probability left out at each point; 1 − confidence for a pointwise band.
    n : int
        Size of the sample.
    """

    grid: FloatArray
    lower: FloatArray
    upper: FloatArray
    confidence: float
    gamma: float
    n: int

    __repr__ = brief_repr


@dataclass(frozen=True, slots=True)
class UniformityTest:
    """Whether values look like a uniform sample.

    Attributes
    ----------
    p_value : float
        Probability that a uniform sample of this size departs as far.
    gamma : float
        Smallest two-sided tail probability of the counts over the grid.
    n : int
        Size of the sample.
    """

    p_value: float
    gamma: float
    n: int


def pointwise_band(n: int, grid: npt.ArrayLike, *, confidence: float = 0.95) -> EcdfBand:
    """Band that the share of a uniform sample stays inside at each grid point alone.

    The ends are the smallest c with P(X ≤ c) ≥ γ/2 and the largest with P(X ≥ c) ≥ γ/2, as
    shares c/n, where X is Binomial(n, p) and γ = 1 − confidence.
    """
    points = check_levels(grid, "grid")
    gamma = 1.0 - check_fraction(confidence, "confidence")
    return _band(_check_size(n), points, confidence, gamma)


def simultaneous_band(n: int, grid: npt.ArrayLike, *, confidence: float = 0.95) -> EcdfBand:
    """Band that the shares of a uniform sample stay inside at all grid points together.

    At every point the band leaves out the same tail probability γ, which is found from 10,000
    simulated samples (their counts on the grid are multinomial, so the cost does not grow with
    n). The simulation is seeded by its name and kept, so equal arguments give equal bands.

    Säilynoja, Bürkner and Vehtari (2022), Graphical test for discrete uniformity and its
    applications in goodness-of-fit evaluation and multiple sample comparison, Statistics and
    Computing 32, section 2 (simulated γ). With 10,000 samples the probability inside is itself
    known to about ±0.4 points at 95 %.
    """
    points = check_levels(grid, "grid")
    size = _check_size(n)
    minima = _simulated_minima(size, tuple(points.tolist()))
    outside = 1.0 - check_fraction(confidence, "confidence")
    gamma = float(minima[math.floor(outside * len(minima))])
    return _band(size, points, confidence, gamma)


def uniformity_test(
    pit: npt.ArrayLike, *, points: int = 100, weights: npt.ArrayLike | None = None
) -> UniformityTest:
    """Test whether values are a uniform sample on [0, 1], by the simultaneous band.

    γ is the smallest two-sided binomial tail probability of the counts at 1/K, …, (K − 1)/K; its
    p-value comes from the same simulated samples as `simultaneous_band`, so the test rejects at
    1 − confidence exactly where the shares leave the band. Below the reach of the simulation the
    bound (K − 1)γ is given.

    Source as in `simultaneous_band`.
    """
    values = check_pit(pit)
    if points < 2:
        raise InputError(f"points must be at least 2, got {points}")
    grid = np.arange(1, points) / points
    w = check_multiplicities(weights, len(values))
    n = len(values) if w is None else max(1, round(float(w.sum())))
    counts = grid_sums(values, values, grid, w)
    return uniformity_of_counts(counts if w is None else counts * (n / w.sum()), n)


def uniformity_of_counts(counts: FloatArray, n: int) -> UniformityTest:
    """`uniformity_test` of how many of n values lie at or below 1/K, …, (K − 1)/K."""
    points = len(counts) + 1
    grid = np.arange(1, points) / points
    gamma = float(min(1.0, 2.0 * _smaller_tail(counts, n, grid).min()))
    minima = _simulated_minima(n, tuple(grid.tolist()))
    beyond = int(np.searchsorted(minima, gamma * (1.0 + 1e-9), side="right"))
    simulated = (1.0 + beyond) / (1.0 + len(minima))
    return UniformityTest(min(simulated, (points - 1) * gamma), gamma, n)


@lru_cache(maxsize=64)
def _simulated_minima(n: int, grid: tuple[float, ...]) -> FloatArray:
    """Smallest two-sided tail probabilities of simulated uniform samples, rising."""
    points = np.array(grid)
    rng = child(0, "ecdf band", n, len(grid))
    cells = np.diff(points, prepend=0.0, append=1.0)
    counts = rng.multinomial(n, cells / cells.sum(), size=_REPLICATES)[:, :-1].cumsum(axis=1)
    minima = np.full(_REPLICATES, 0.5)
    for column, p in zip(counts.T, points, strict=True):
        if n > _LARGE:
            np.minimum(minima, _normal_tail(column, n, p), out=minima)
            continue
        low, high = int(column.min()), int(column.max())
        count = np.arange(low, high + 1, dtype=np.float64)
        mass = np.exp(
            special.gammaln(n + 1.0)
            - special.gammaln(count + 1.0)
            - special.gammaln(n - count + 1.0)
            + special.xlogy(count, p)
            + special.xlog1py(n - count, -p)
        )
        below = 1.0 - _upper_tail(np.array([float(low)]), n, np.array([p]))
        cdf = below + np.append(0.0, mass.cumsum())  # P(X < low), P(X ≤ low), …
        tail = np.minimum(cdf[1:], 1.0 - cdf[:-1])
        np.minimum(minima, tail[column - low], out=minima)
    out = np.sort(2.0 * minima)
    out.setflags(write=False)
    return out


def _normal_tail(count: npt.NDArray[np.int64], n: int, p: float) -> FloatArray:
    """Smaller tail of Binomial(n, p) by Edgeworth's first two terms; its error is of order 1/n."""
    sd = math.sqrt(n * p * (1.0 - p))
    z = (count - n * p) / sd
    density = np.exp(-np.square(z) / 2.0) / math.sqrt(2.0 * math.pi)
    shift = density * (1.0 - 2.0 * p) / (6.0 * sd) * (np.square(z) - 1.0)
    half = density / (2.0 * sd)
    lower, upper = special.ndtr(z) - shift + half, special.ndtr(-z) + shift + half
    return np.asarray(np.minimum(lower, upper))


def _smaller_tail(count: FloatArray, n: int, p: FloatArray) -> FloatArray:
    """min(P(X ≤ count), P(X ≥ count)) for X of Binomial(n, p), smooth between whole counts."""
    return np.minimum(_lower_tail(count, n, p), _upper_tail(count, n, p))


def _lower_tail(count: FloatArray, n: int, p: FloatArray) -> FloatArray:
    inner = np.minimum(count, n - 0.5)
    return np.where(count >= n, 1.0, special.betainc(n - inner, inner + 1.0, 1.0 - p))


def _upper_tail(count: FloatArray, n: int, p: FloatArray) -> FloatArray:
    inner = np.maximum(count, 0.5)
    return np.where(count <= 0, 1.0, special.betainc(inner, n - inner + 1.0, p))


def _band(n: int, grid: FloatArray, confidence: float, gamma: float) -> EcdfBand:
    lower = _smallest_count(gamma / 2.0, n, grid) / n
    upper = (n - _smallest_count(gamma / 2.0, n, 1.0 - grid)) / n
    return EcdfBand(grid, lower, upper, float(confidence), gamma, n)


def _smallest_count(tail: float, n: int, p: FloatArray) -> FloatArray:
    """Smallest count c with P(X ≤ c) ≥ tail for X of Binomial(n, p), by bisection."""
    low = np.zeros(len(p))
    high = np.full(len(p), float(n))
    while (low < high).any():
        middle = np.floor((low + high) / 2.0)
        reached = _lower_tail(middle, n, p) >= tail * (1.0 - 1e-9)
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + 1.0, high))
    return high


def _check_size(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InputError(f"n must be a whole number of at least 1, got {n!r}")
    return int(n)
