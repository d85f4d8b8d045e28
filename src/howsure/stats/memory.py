"""What a mean over rows that follow each other is worth: short, long and seasonal memory alike.

The cosine transform of a stationary series has nearly independent ordinates, whose variance is the
spectrum at the frequencies π j/n; the variance of the mean is the spectrum at 0. So a family of
spectral shapes is weighed by how likely each makes the ordinates j ≥ 1, and every shape says what
the mean is worth. What the data cannot rule out stays in: the mean's law is a mixture of Student's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError

FEWEST = 10.0
"""Effective rows below which a mean is not told: any law of it is a guess."""
HARDLY = 5.0
"""The same of what remembers most, below which no mean at all is told."""
_LEAST = 8  # times
_ORDINATES = 1_024
"""The lowest frequencies, which tell of all that a mean needs. With many more of them shapes follow
what days and weeks look like, and no longer what is near 0.
"""
_INDEPENDENT, _ENDLESS, _SEASONAL = 0.8, 0.05, 0.1
"""Prior of no memory, of one that falls as a power of time, and (of each) of a season besides."""
_SHARES = np.array([0.1, 0.25, 0.5, 0.75, 1.0])
"""Shares of the variance that have a memory; the rest of each row is its own."""
_POWERS = (0.1, 0.2, 0.3, 0.4)
"""Orders d of fractional noise: ρ_k falls as k^(2d − 1)."""
_SEASONAL_SHARES = (0.25, 0.5, 0.75, 0.9, 1.0)
_STEPS = np.array([0.3, 0.5, 0.65, 0.8, 0.9, 0.95])
"""Correlations from one season to the next."""
_SUMS = ((0.5, 0.5), (0.25, 0.75), (0.75, 0.25), (0.25, 0.5), (0.5, 0.25), (0.25, 0.25))
"""Shares of the variance of a memory, and of a seasonal one beside it."""
_LAGS, _CLEAR = 3, 2.5
"""Seasons that are tried: those of the largest autocorrelations, of so many standard errors."""
_TRUSTED, _MOST_TRUSTED = 3.0, 60.0
"""What a shape says of the scale near 0 counts so many times what the ordinates there do, and at
most as so many of them: of many rows no shape is right."""
_GROWTH = 1.25  # from one length of memory to the next
_SAME = 0.05  # logs of τ that are one
_NEGLIGIBLE = 1e-9  # weight of a shape
_STEPS_OF_ROOT, _ACCURACY = 60, 1e-12
_USUAL, _STRICT = 0.025, 0.0025
"""Tails at which a Student's law takes the place of the mixture: 5 %, and 5 % of ten tests."""
_DEGREES = np.geomspace(1.0, 1e4, 200)
_RATIOS = special.stdtrit(_DEGREES, 1.0 - _STRICT) / special.stdtrit(_DEGREES, 1.0 - _USUAL)


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """How much a series remembers, in all the ways that its ordinates leave open."""

    n: int  # times
    variance: float  # of one
    # shape (k,): times that tell as much of the mean as one independent time, and how likely that
    # is
    taus: FloatArray
    weights: FloatArray
    freedom: float  # degrees of freedom of each
    lag: int  # the likeliest season, in times; 1 where there is none

    @property
    def tau(self) -> float:
        """Times that tell as much of the mean as one independent time, on (geometric) average."""
        return float(np.exp(self.weights @ np.log(self.taus)))

    @property
    def effective(self) -> float:
        """Independent times that tell as much."""
        return self.n / self.tau

    def bounds(self, confidence: float = 0.95) -> tuple[float, float]:
        """Credible interval of τ."""
        upto = np.cumsum(self.weights)
        ends = np.searchsorted(upto, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
        low, high = self.taus[np.minimum(ends, len(upto) - 1)]
        reach = math.exp(
            float(special.ndtri(0.5 + confidence / 2.0)) * math.sqrt(2.0 / self.freedom)
        )
        return float(low) / reach, float(high) * reach

    def tail(self, off: float) -> float:
        """Chance that the mean is beyond so many standard errors of independent times."""
        return float(self.weights @ special.stdtr(self.freedom, -abs(off) / np.sqrt(self.taus)))

    def student(self) -> tuple[float, float]:
        """Error of the mean, and degrees of freedom, of the Student's law with the same tails."""
        usual, strict = (self._quantile(tail) for tail in (_USUAL, _STRICT))
        degrees = float(np.interp(-strict / usual, -_RATIOS, _DEGREES))
        degrees = min(degrees, self.freedom)
        times = usual / float(special.stdtrit(degrees, 1.0 - _USUAL))
        return times * math.sqrt(self.variance / self.n), degrees

    def _quantile(self, tail: float) -> float:
        """The number of standard errors of independent times that leaves so much beyond it."""
        sizes = np.sqrt(self.taus)
        low, high = float(special.stdtrit(self.freedom, 1.0 - tail)) * sizes[[0, -1]]
        off = float(np.exp(self.weights @ np.log(sizes)) * low / sizes[0])
        for _ in range(_STEPS_OF_ROOT):  # Newton's in logs, in which tails are nearly straight
            at = off / sizes
            beyond = float(self.weights @ special.stdtr(self.freedom, -at))
            low, high = (off, high) if beyond > tail else (low, off)
            slope = float(self.weights @ (at * _density(self.freedom, at)))
            step = beyond / slope * math.log(beyond / tail) if slope > 0.0 else math.inf
            if abs(step) < _ACCURACY:
                break
            off = off * math.exp(step) if abs(step) < 1.0 else math.inf
            if not low < off < high:
                off = math.sqrt(low * high)
        return off


def _density(freedom: float, at: FloatArray) -> FloatArray:
    """Student's."""
    scale = math.lgamma((freedom + 1.0) / 2.0) - math.lgamma(freedom / 2.0)
    log = scale - 0.5 * math.log(math.pi * freedom)
    return np.asarray(np.exp(log - (freedom + 1.0) / 2.0 * np.log1p(np.square(at) / freedom)))


def memory_of(series: FloatArray) -> Memory:
    """How much a series remembers.

    Parameters
    ----------
    series : ndarray of float, shape (n,)
        In the order of time.

    Returns
    -------
    Memory

    Notes
    -----
    Shapes: no memory; a share of the variance with autoregressive memory of l times, from .7 to
    n/2, or with fractional noise; the same times, or plus, an autoregression at any lag s ≤ n/4 (s
    from the data, with prior 1/s). The scale of each is integrated out over all ordinates. No shape
    is trusted near 0: its scale there is drawn to the mean of the first ν = .4 n^⅔ ordinates, and
    counts as 3ν of them, at most 60; so many degrees of freedom there are together. Cosine
    estimator: E. Lazarus, D. J. Lewis, J. H. Stock and M. W. Watson, Journal of Business & Economic
    Statistics 36 (2018) 541-559.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=4_012)
    >>> found = memory_of(noise[12:] + noise[:-12])
    >>> found.lag, round(found.tau)
    (12, 3)
    """
    from scipy import fft  # here, as few tables have time

    n = len(series)
    x = series - series.mean()
    variance = float(x @ x) / max(n - 1, 1)
    if n < _LEAST or not variance > 1e-24 * float(np.square(series).max(initial=0.0)):
        raise UnanswerableError("times are too few, or all alike")
    m = min(n - 1, _ORDINATES)
    low = min(m, max(4, int(0.4 * n ** (2.0 / 3.0))))
    power = np.square(fft.dct(x, type=2, norm="ortho")[1 : m + 1]) / variance
    trusted = min(_TRUSTED * low, _MOST_TRUSTED)
    plain = _plain(n, m)
    odds, taus, lags = [], [], []

    def weigh(log: FloatArray, zero: FloatArray, every: FloatArray, near: FloatArray) -> None:
        """Take shapes whose ordinates, divided by the shape, have these sums."""
        odds.append((log - 0.5 * m * np.log(every)).ravel())
        scale = (trusted * every / m + near) / (trusted + low)
        taus.append(np.maximum(zero * scale, 1.0).ravel())

    first = plain.log + math.log(1.0 - _SEASONAL)
    weigh(first, plain.zero, plain.inverse @ power, plain.inverse[:, :low] @ power[:low])
    lags.append(np.ones(len(odds[0]), dtype=np.int64))
    whitened = power * plain.inverse[int(np.argmax(odds[0]))]
    for lag in _seasons(whitened, n):
        season = _seasonal(n, m, lag)
        if not len(season.products.log):
            continue
        both = power[:, None] * season.products.inverse.T
        weigh(
            plain.log[:, None] + season.products.log,
            plain.zero[:, None] * season.products.zero,
            plain.inverse @ both,
            plain.inverse[:, :low] @ both[:low],
        )
        sums = season.sums
        weigh(sums.log, sums.zero, sums.inverse @ power, sums.inverse[:, :low] @ power[:low])
        lags.append(np.full(len(odds[-2]) + len(odds[-1]), lag))
    log = np.concatenate(odds)
    weights = np.exp(log - log.max())
    kept = weights > _NEGLIGIBLE * weights.sum()
    weights = weights[kept] / weights[kept].sum()
    lag = int(np.bincount(np.concatenate(lags)[kept], weights).argmax())
    taus_of, weights = _alike(np.concatenate(taus)[kept], weights)
    return Memory(n, variance, taus_of, weights, min(float(m), trusted + low), lag)


def _alike(taus: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shapes of nearly one τ as one, in rising order."""
    _, place = np.unique(np.round(np.log(taus) / _SAME).astype(np.int64), return_inverse=True)
    joint = np.bincount(place, weights).astype(np.float64)
    means = np.bincount(place, weights * np.log(taus)) / joint
    return np.exp(means), joint


def _seasons(whitened: FloatArray, n: int) -> list[int]:
    """Lags at which what the best plain shape leaves is alike."""
    every = np.arange(2, n // 4 + 1)
    if not len(every):
        return []
    full = np.zeros(n + 1)
    full[1 : len(whitened) + 1] = whitened
    from scipy import fft

    lagged = fft.irfft(full, 2 * n)
    alike = lagged[every] / lagged[0]
    best = np.argsort(-alike, kind="stable")[:_LAGS]
    clear = alike[best] > _CLEAR / math.sqrt(n)
    return [int(lag) for lag in every[best[clear]]]


class _Shapes(NamedTuple):
    """Spectra at 0, and at the ordinates: 1 over each; logs of prior and of the normal's scale."""

    zero: FloatArray
    inverse: FloatArray
    log: FloatArray


class _Season(NamedTuple):
    """Shapes of a seasonal memory: by what it multiplies plain ones, and beside them."""

    products: _Shapes
    sums: _Shapes


def _shapes(spectra: list[FloatArray], prior: float, share: FloatArray | None = None) -> _Shapes:
    """From spectra at 0 and the ordinates, their prior together, and the share of each."""
    if not spectra:
        return _Shapes(np.empty(0), np.empty((0, 0)), np.empty(0))
    table = np.stack(spectra)
    shares = np.full(len(table), 1.0 / len(table)) if share is None else share
    log = np.log(prior * shares) - 0.5 * np.log(table[:, 1:]).sum(axis=1)
    return _Shapes(table[:, 0].copy(), 1.0 / table[:, 1:], log)


def _autoregression(phi: float, at: FloatArray) -> FloatArray:
    """Its spectrum at variance 1."""
    return np.asarray((1.0 - phi * phi) / (1.0 - 2.0 * phi * np.cos(at) + phi * phi))


def _fractional(d: float, at: FloatArray, n: int) -> FloatArray:
    """The spectrum of fractional noise of variance 1; at 0, where it has none, n·Var(mean).

    J. R. M. Hosking, Biometrika 68 (1981) 165-176.
    """
    gone = math.gamma(1.0 - d)
    spectrum = np.empty(len(at))
    spectrum[0] = gone / ((1.0 + 2.0 * d) * math.gamma(1.0 + d)) * n ** (2.0 * d)
    spectrum[1:] = gone**2 / math.gamma(1.0 - 2.0 * d) * (2.0 * np.sin(at[1:] / 2.0)) ** (-2.0 * d)
    return spectrum


def _memories(n: int) -> FloatArray:
    """Times that an autoregression remembers: from .7 to n/2."""
    return np.asarray(0.7 * _GROWTH ** np.arange(int(math.log(n / 1.4) / math.log(_GROWTH)) + 1))


@lru_cache(maxsize=16)
def _plain(n: int, m: int) -> _Shapes:
    """No memory, and shares of the variance with a short or a long one."""
    at, lengths = math.pi * np.arange(m + 1) / n, _memories(n)
    waves = [_autoregression(math.exp(-1.0 / length), at) for length in lengths]
    endless = [_fractional(d, at, n) for d in _POWERS]
    spectra = [np.ones(m + 1), *(1.0 - h + h * wave for wave in waves for h in _SHARES)]
    spectra += [1.0 - h + h * wave for wave in endless for h in (0.5, 1.0)]
    long = (1.0 - _INDEPENDENT - _ENDLESS) * lengths**-0.5 / (lengths**-0.5).sum()
    powers = np.full(2 * len(_POWERS), _ENDLESS / (2 * len(_POWERS)))
    prior = np.r_[_INDEPENDENT, np.repeat(long / len(_SHARES), len(_SHARES)), powers]
    return _shapes(spectra, 1.0, prior)


@lru_cache(maxsize=8)
def _seasonal(n: int, m: int, lag: int) -> _Season:
    """Memories from one season to the next that fit into the series."""
    at = math.pi * np.arange(m + 1) / n
    steps = [phi for phi in _STEPS if lag * (1.0 + phi) / (1.0 - phi) <= 2.0 * n]
    waves = [_autoregression(phi, lag * at) for phi in steps]
    products = [1.0 - g + g * wave for wave in waves for g in _SEASONAL_SHARES]
    plain = [_autoregression(math.exp(-1.0 / length), at) for length in _memories(n)[2::4]]
    sums = [
        1.0 - h - g + h * ar + g * wave for ar in plain for wave in waves[1::2] for h, g in _SUMS
    ]
    harmonic = float((1.0 / np.arange(2, n // 4 + 1)).sum())
    chance = _SEASONAL / 2.0 / (lag * harmonic)  # of this lag, as either
    return _Season(_shapes(products, chance), _shapes(sums, chance))
