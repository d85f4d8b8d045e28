"""Batches of consecutive times, and how long a series remembers."""

from __future__ import annotations

import math

import numpy as np

from howsure.core.arrays import FloatArray, IntArray


def batch_starts(mass: FloatArray, most: int) -> IntArray:
    """The first time of each of at most so many batches of consecutive times, alike in mass."""
    upto = np.cumsum(mass)
    batch = np.minimum((upto - mass / 2.0) * (most / upto[-1]), most - 1).astype(np.int64)
    return np.flatnonzero(np.diff(batch, prepend=-1))


def initial_sequence(series: FloatArray, square: float = math.nan) -> tuple[float, int]:
    """Integrated autocorrelation time, at least 1, and the lags that it spans.

    Parameters
    ----------
    series : ndarray of float, shape (n,)
        With mean 0.
    square : float
        What counts as the product of lag 0, if not the sum of squares.

    Notes
    -----
    1 + 2Σρ_k over the initial monotone sequence of C. J. Geyer, Statistical Science 7 (1992)
    473-483; products of all lags by the fast Fourier transform.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=10_001)
    >>> tau, _ = initial_sequence(noise[1:] + noise[:-1])
    >>> round(tau)
    2
    """
    size = 2 << len(series).bit_length()
    power = np.square(np.abs(np.fft.rfft(series, size)))
    lagged = np.fft.irfft(power, size)[: len(series) // 2 * 2]
    if not math.isnan(square):
        lagged[0] = square
    if not lagged[0] > 0:
        return 1.0, 3
    pairs = lagged.reshape(-1, 2).sum(axis=1) / lagged[0]
    ends = np.flatnonzero(pairs <= 0.0)
    kept = pairs[: ends[0] if len(ends) else len(pairs)]
    total = float(np.minimum.accumulate(kept).sum()) if len(kept) else 0.5
    return max(2.0 * total - 1.0, 1.0), 4 * max(len(kept), 1) - 1
