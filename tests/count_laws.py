"""What holds of any law of counts with a location and a power, known up to a constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

COUNTS = np.arange(60_000.0)
LEVELS = np.array([1e-9, 1e-4, 0.02, 0.3, 0.5, 0.8, 0.99, 1.0 - 1e-6])

Family = Callable[[Any, Any], Any]
LogWeights = Callable[[float, float], np.ndarray]


def brute(log_weights: LogWeights, mu: float, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of all counts, and their sums, from logarithms up to a constant."""
    weights = log_weights(mu, power)
    shares = np.exp(weights - weights.max())
    return shares / shares.sum(), np.cumsum(shares) / shares.sum()


def check_sums(family: Family, log_weights: LogWeights, mu: float, power: float) -> None:
    """Probabilities, their sums and moments are those of brute force."""
    shares, below = brute(log_weights, mu, power)
    at = np.unique(np.r_[0, 1, 31, 32, 33, np.searchsorted(below, LEVELS)]).astype(float)
    law = family(np.full(len(at), mu), np.full(len(at), power))
    np.testing.assert_allclose(law.cdf(at), below[at.astype(int)], atol=1e-10, rtol=1e-5)
    np.testing.assert_allclose(law.pmf(at), shares[at.astype(int)], rtol=1e-9, atol=1e-300)
    mean = (shares * COUNTS).sum()
    variance = (shares * (COUNTS - mean) ** 2).sum()
    np.testing.assert_allclose(law.mean(), mean, rtol=1e-9)
    np.testing.assert_allclose(law.variance(), variance, rtol=1e-8)


def check_quantiles(family: Family, log_weights: LogWeights, mu: float, power: float) -> None:
    """Quantiles are the smallest counts that reach their level, of one row and of many."""
    _, below = brute(log_weights, mu, power)
    law = family([mu], [power])
    quantiles = law.quantile(LEVELS[None])[0]
    assert quantiles.tolist() == np.searchsorted(below, LEVELS - 1e-11 * LEVELS).tolist()
    many = law.quantile(np.tile(LEVELS, 40)[None])[0]  # enough to tabulate a wide law
    assert many.tolist() == np.tile(quantiles, 40).tolist()


def check_inverse(law: Any, at: float) -> None:
    """The cdf rises by the probabilities, and quantiles undo it."""
    low, high = law.ends()
    first = np.floor(low + at * (high - low))
    counts = first[:, None] + np.arange(-2.0, 40.0)
    below = law.cdf(counts)
    assert (np.diff(below) >= -1e-12).all()
    assert ((below >= 0.0) & (below <= 1.0)).all()
    np.testing.assert_allclose(np.diff(below), law.pmf(counts[:, 1:]), atol=1e-9)
    inside = (below > 1e-300) & (below < 1.0)
    back = law.quantile(np.where(inside, below, 0.5))
    assert (back <= counts)[inside].all()
