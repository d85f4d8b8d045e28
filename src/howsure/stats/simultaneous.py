"""Intervals of several means that hold all at once: how sure each must be alone."""

from __future__ import annotations

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, power_of_two
from howsure.core.rng import child
from howsure.core.times import Chronology, Units
from howsure.core.weights import Weights

_DRAWS = 10_000
_FEWEST = 4  # ordinates


def joint_level(
    influence: FloatArray,
    groups: IntArray,
    size: int,
    weights: Weights | None = None,
    units: Units = None,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> float:
    """Confidence of each interval, for those of the means of all groups to hold together.

    Parameters
    ----------
    influence : ndarray of float, shape (n,)
        Of each row on the mean of its own group.
    groups : ndarray of int, shape (n,)
        The group of each row.
    size : int
        Groups.
    weights, units
        As of `howsure.stats.estimate.spread_of`.
    confidence : float
        Of all together.
    seed : int
        Fixes the draws.

    Returns
    -------
    float
        Between the confidence and its root by the number of groups, which independent means need.

    Notes
    -----
    Rows of different groups are independent unless they share a unit. Else the largest of the
    absolute standardised means is drawn from a normal law of their correlations: of sums over
    clusters, or, of times that follow each other, of the lowest cosine ordinates of what each time
    adds, whose covariance is that of the means (Lazarus, Lewis, Stock and Watson 2018). Of B
    ordinates and k groups correlations count B/(B + k), so that few of them claim less.

    Examples
    --------
    >>> together = np.repeat(np.arange(50), 2)
    >>> values = np.random.default_rng(0).normal(size=50)[together]
    >>> round(joint_level(values, np.tile([0, 1], 50), 2, units=together), 3)  # one and the same
    0.962
    """
    most = float(confidence ** (1.0 / size))
    if units is None or size == 1:
        return most
    mass = np.ones(len(influence)) if weights is None else weights.values
    psi = influence / power_of_two(influence)  # so that squares neither vanish nor overflow
    share = mass * psi / np.maximum(np.bincount(groups, mass, size), 1e-300)[groups]
    if isinstance(units, Chronology):
        table = _ordinates(share, groups, size, units)
    else:
        table = _sums(share, groups, size, units, int(units.max()) + 1).T
    norms = np.sqrt(np.square(table).sum(axis=0))
    known = table / np.where(norms > 0.0, norms, 1.0)
    alike = known.T @ known * (len(table) / (len(table) + size))
    np.fill_diagonal(alike, 1.0)
    values, vectors = np.linalg.eigh(alike)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    drawn = child(seed, "simultaneous").standard_normal((_DRAWS, size)) @ root.T
    most_off = float(np.quantile(np.abs(drawn).max(axis=1), confidence))
    return float(np.clip(2.0 * special.ndtr(most_off) - 1.0, confidence, most))


def _sums(
    share: FloatArray, groups: IntArray, size: int, units: IntArray, count: int
) -> FloatArray:
    """What each unit adds to each mean, shape (size, units)."""
    sums = np.bincount(groups * count + units, share, size * count)
    return sums.reshape(size, count).astype(np.float64)


def _ordinates(share: FloatArray, groups: IntArray, size: int, times: Chronology) -> FloatArray:
    """The lowest cosine ordinates of what each time adds to each mean, shape (B, size)."""
    from scipy import fft  # here, as few tables have time

    place, n = times.places()
    series = _sums(share, groups, size, place, n)
    low = min(n - 1, max(_FEWEST, int(0.4 * n ** (2.0 / 3.0))))
    return np.asarray(fft.dct(series, type=2, norm="ortho", axis=1)[:, 1 : low + 1].T)
