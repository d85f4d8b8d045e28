"""What a mean over rows that follow each other is worth: short, long and seasonal memory alike,
and that of several series of the same times.

The cosine transform of a stationary series has nearly independent ordinates, whose variance is the
spectrum at the frequencies π j/n; the variance of the mean is the spectrum at 0. So a family of
spectral shapes is weighed by how likely each makes the ordinates j ≥ 1, and every shape says what
the mean is worth. What the data cannot rule out stays in: the mean's law is a mixture of Student's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.times import MIN_TIMES, Panel

# Chosen by hand; not tuned. Lower, more means are judged by a law that rests on the prior.
MIN_EFFECTIVE = 10.0
"""Effective rows below which a mean is not told: any law of it is a guess."""
# Half of the above; chosen by hand, not tuned.
MIN_EFFECTIVE_OF_ANY = 5.0
"""The same of what remembers most, below which no mean at all is told."""
# Times: of their seven ordinates four are near 0, the fewest that are used, and three are left for
# a shape. Chosen by hand; not tuned.
_MIN_TIMES = 8
# The lowest frequencies, which give all that a mean needs. With many more of them shapes follow
# what days and weeks look like, and no longer what is near 0.
_MAX_ORDINATES = 1_024
# Prior of no memory, of one that falls as a power of time, and (of each) of a season besides.
# Chosen by hand. What these and the grids below give is measured in docs/verdict.md, under "Tests
# of a mean difference over time": 4 to 5 % of rejections at 5 %, for short, long and seasonal
# memory. More prior on memory widens all intervals of rows in time.
_PRIOR_INDEPENDENT, _PRIOR_FRACTIONAL, _PRIOR_SEASONAL = 0.8, 0.05, 0.1
# Shares of the variance that have a memory; the rest of each row is its own. A coarse grid of all
# that may be, as data seldom tell neighbours apart.
_SHARES_OF_VARIANCE = np.array([0.1, 0.25, 0.5, 0.75, 1.0])
# Orders d of fractional noise: ρ_k falls as k^(2d − 1), and d < 1/2 is stationary.
_FRACTIONAL_ORDERS = (0.1, 0.2, 0.3, 0.4)
# Denser near 1 than the shares above: a season that is clear enough to be tried holds much.
_SEASONAL_SHARES = (0.25, 0.5, 0.75, 0.9, 1.0)
# Correlations from one season to the next; denser near 1, where what a mean is worth changes
# fastest.
_SEASONAL_CORRELATIONS = np.array([0.3, 0.5, 0.65, 0.8, 0.9, 0.95])
# Shares of the variance of a memory, and of a seasonal one beside it: quarters that leave some to
# each of the two.
_PAIRS_OF_SHARES = ((0.5, 0.5), (0.25, 0.75), (0.75, 0.25), (0.25, 0.5), (0.5, 0.25), (0.25, 0.25))
# Seasons that are tried: those of the largest autocorrelations, of so many standard errors. A lag
# of pure noise is so large in 6 of 1,000; its prior corrects for the search. Time grows with
# their number; not tuned.
_MAX_SEASONS, _MIN_Z_OF_SEASON = 3, 2.5
# What a shape implies of the scale near 0 counts so many times what the ordinates there do, and at
# most as so many of them: of many rows no shape is right. Chosen by hand; not tuned. Larger,
# degrees of freedom rise, and intervals rely more on the shapes.
_TRUST_IN_SHAPES, _MAX_TRUST_IN_SHAPES = 3.0, 60.0
# From one length of memory to the next. Neighbours of it differ by 25 % in τ, 12 % in the width of
# an interval, and the mixture lies between; finer takes more time.
_GROWTH_OF_LENGTHS = 1.25
# Logs of τ that are one: widths that differ by less than 3 % are not told apart.
_LOG_TAU_STEP = 0.05
# Weight of a shape: all that are left out together move no tail of .0025 in its third digit.
_NEGLIGIBLE_WEIGHT = 1e-9
# Newton's method in logs, where tails are nearly straight, takes a few steps; 60 only end it where
# rounding does not.
_MAX_NEWTON_STEPS, _ROOT_TOLERANCE = 60, 1e-12
# Prior of series that share no shocks. Chosen by hand, as that of no memory; lower widens
# intervals of several series.
_PRIOR_UNSHARED = 0.8
# Variance of a shock, beside that of a series' own, that is told from none. Chosen by hand; not
# tuned. Smaller adds shapes that the data do not distinguish from series without shocks.
_MIN_SHARE_OF_SHOCKS = 0.02
# Shapes of series that are tried beside shocks, and log odds from which on: what is left out has
# less than e⁻⁵ = .7 % of the weight of the best. Eight bound the array, which has four axes.
_MAX_SHAPES_WITH_SHOCKS, _MIN_LOG_ODDS = 8, -5.0
# Ordinates near 0 that are looked at, of all series together; and series whose means show 0
# itself. 120 leave the scale an error of √(2/120) = 13 %. Chosen by hand; not tuned.
_ORDINATES_NEAR_0, _SERIES_THAT_SHOW_0 = 120, 10.0
# Tails at which a Student's law takes the place of the mixture: 5 %, and 5 % of ten tests.
_USUAL_TAIL, _STRICT_TAIL = 0.025, 0.0025
# Steps of 5 %, so that a ratio is interpolated; 1 is Cauchy's law, 10⁴ a normal one to four
# digits.
_DEGREES = np.geomspace(1.0, 1e4, 200)
# The degrees of freedom follow from how much farther out the strict tail lies.
_RATIOS = special.stdtrit(_DEGREES, 1.0 - _STRICT_TAIL) / special.stdtrit(
    _DEGREES, 1.0 - _USUAL_TAIL
)


@frozen(eq=False)
class Memory:
    """How much a series, or several of the same times, remember, in all the ways that their
    ordinates leave open.
    """

    n: int  # times
    # of these, how many are there; and rows of series that are told apart
    there: int
    rows: float
    # of the number of one time, were rows independent; and how many times that it is seen to be
    variance: float
    ratio: float
    # shape (k,): times that tell as much of the mean as one of independent rows, how likely that
    # is, degrees of freedom, and whether series share shocks, so that times alone are independent
    taus: FloatArray
    weights: FloatArray
    freedom: FloatArray
    shared: BoolArray
    lag: int  # the likeliest season, in times; 1 where there is none

    @property
    def tau(self) -> float:
        """Times that tell as much of the mean as one independent time, on (geometric) average."""
        return self._mean(self.taus)

    @property
    def lasts(self) -> float:
        """Times that tell as much as one independent time, whatever the rows of one time share."""
        return self._mean(self._lasting)

    @property
    def effective(self) -> float:
        """Independent rows that tell as much; times, where series share shocks."""
        return self._mean(np.where(self.shared, self.there, self.rows)) / self.lasts

    def _mean(self, values: FloatArray) -> float:
        """Geometric."""
        return float(np.exp(self.weights @ np.log(values)))

    @property
    def common(self) -> float:
        """How likely series share shocks."""
        return float(self.weights @ self.shared)

    @property
    def few(self) -> bool:
        """Whether these are too few for the error of a mean."""
        return self.effective < MIN_EFFECTIVE or (self.there < MIN_TIMES and self.common > 0.5)

    @property
    def _lasting(self) -> FloatArray:
        return np.where(self.shared, np.maximum(self.taus / self.ratio, 1.0), self.taus)

    def bounds(self, confidence: float = 0.95) -> tuple[float, float]:
        """Credible interval of τ."""
        order = np.argsort(self.taus, kind="stable")
        upto = np.cumsum(self.weights[order])
        ends = np.searchsorted(upto, [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0])
        low, high = self.taus[order[np.minimum(ends, len(upto) - 1)]]
        freedom = float(self.weights @ self.freedom)
        reach = math.exp(float(special.ndtri(0.5 + confidence / 2.0)) * math.sqrt(2.0 / freedom))
        return float(low) / reach, float(high) * reach

    def tail(self, off: float) -> float:
        """Chance that the mean is beyond so many standard errors of independent times."""
        return float(self.weights @ special.stdtr(self.freedom, -abs(off) / np.sqrt(self.taus)))

    def student(self) -> tuple[float, float]:
        """Error of the mean, and degrees of freedom, of the Student's law with the same tails."""
        usual, strict = (self._quantile(tail) for tail in (_USUAL_TAIL, _STRICT_TAIL))
        degrees = float(np.interp(-strict / usual, -_RATIOS, _DEGREES))
        degrees = min(degrees, float(self.freedom.max()))
        times = usual / float(special.stdtrit(degrees, 1.0 - _USUAL_TAIL))
        return times * math.sqrt(self.variance / self.n), degrees

    def _quantile(self, tail: float) -> float:
        """The number of standard errors of independent times that leaves so much beyond it."""
        sizes = np.sqrt(self.taus)
        ends = special.stdtrit(self.freedom, 1.0 - tail) * sizes
        low, high = float(ends.min()), float(ends.max())
        off = float(np.exp(self.weights @ np.log(ends)))
        for _ in range(_MAX_NEWTON_STEPS):  # Newton's in logs, in which tails are nearly straight
            at = off / sizes
            beyond = float(self.weights @ special.stdtr(self.freedom, -at))
            low, high = (off, high) if beyond > tail else (low, off)
            slope = float(self.weights @ (at * _density(self.freedom, at)))
            step = beyond / slope * math.log(beyond / tail) if slope > 0.0 else math.inf
            if abs(step) < _ROOT_TOLERANCE:
                break
            off = off * math.exp(step) if abs(step) < 1.0 else math.inf
            if not low < off < high:
                off = math.sqrt(low * high)
        return off


def _density(freedom: FloatArray, at: FloatArray) -> FloatArray:
    """Student's."""
    scale = special.gammaln((freedom + 1.0) / 2.0) - special.gammaln(freedom / 2.0)
    log = scale - 0.5 * np.log(math.pi * freedom)
    return np.asarray(np.exp(log - (freedom + 1.0) / 2.0 * np.log1p(np.square(at) / freedom)))


def memory_of(series: FloatArray, panel: Panel | None = None, there: int | None = None) -> Memory:
    """How much a series remembers, or the sums over several of the same times.

    Shapes: no memory; a share of the variance with autoregressive memory of l times, from .7 to
    n/2, or with fractional noise; the same times, or plus, an autoregression at any lag s ≤ n/4 (s
    from the data, with prior 1/s). The scale of each is integrated out over all ordinates. No shape
    is trusted near 0: its scale there is drawn to the mean of the first ν = .4 n^⅔ ordinates, and
    counts as 3ν of them, at most 60; so many degrees of freedom there are together. Cosine
    estimator: E. Lazarus, D. J. Lewis, J. H. Stock and M. W. Watson, Journal of Business & Economic
    Statistics 36 (2018) 541-559.

    Of several series the ordinates Q of what rows differ by from the mean of their time show the
    memory of each alone. The sums have the same spectrum if series are independent; then both are
    one spectrum seen many times. Else shocks that series share add to it, with a shape of their own
    and a share r of the variance: (own, r, shocks) are weighed by both sets of ordinates.

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
    energy = float(x @ x)
    there = n if there is None else there
    rows, square = (float(there), energy) if panel is None else (panel.rows, panel.square)
    variance = square / max(n - 1, 1)
    if n < _MIN_TIMES or not variance > 1e-24 * float(np.square(series).max(initial=0.0)):
        raise UnanswerableError("times are too few, or all alike")
    m = min(n - 1, _MAX_ORDINATES)
    low = min(m, max(4, int(0.4 * n ** (2.0 / 3.0))))
    power = np.square(fft.dct(x, type=2, norm="ortho")[1 : m + 1]) / variance
    trusted = min(_TRUST_IN_SHAPES * low, _MAX_TRUST_IN_SHAPES)
    within_times, level, free, near = np.zeros(m), 0.0, 0.0, low
    if panel is not None:
        waves = fft.dct(panel.apart, type=2, norm="ortho", axis=1)[:, : m + 1]
        squares = np.square(waves).sum(axis=0) / variance
        level, within_times = float(squares[0]), squares[1:]
        free = panel.freedom if within_times.sum() > _NEGLIGIBLE_WEIGHT * power.sum() else 0.0
        near = min(low, max(2, math.ceil(_ORDINATES_NEAR_0 / (1.0 + free))))
    both = 1.0 + free
    total = power + free * within_times
    freedom = trusted + (free if free >= _SERIES_THAT_SHOW_0 else near * both)
    plain = _plain(n, m)
    families = [plain.family(1, math.log(1.0 - _PRIOR_SEASONAL))]
    sums = [families[0].sums(total)]
    whitened = plain.inverse[int(np.argmax(families[0].odds(sums[0], both, m)))]
    for lag in _seasons(total * whitened, n):
        products, seasonal = _seasonal(n, m, lag)
        if len(products.prior):
            families += [plain.times(products, lag), seasonal.family(lag)]
    sums += [family.sums(total) for family in families[1:]]
    odds = [each.odds(every, both, m) for each, every in zip(families, sums, strict=True)]
    taus = [
        each.zero
        * (
            trusted * every / (m * both)
            + (free * level / each.zero if free >= _SERIES_THAT_SHOW_0 else each.sums(total[:near]))
        )
        / freedom
        for each, every in zip(families, sums, strict=True)
    ]
    lags = [np.full(len(each.zero), each.lag) for each in families]
    degrees = np.full(sum(map(len, taus)), min(m * both, freedom))
    shared = np.full(len(degrees), panel is not None and not free)  # of series that are all alike
    if free:
        shocks = _with_shocks(families, np.concatenate(odds), power, within_times, free, n, low)
        odds = [each + math.log(_PRIOR_UNSHARED) for each in odds] + [shocks[0]]
        taus, lags = [*taus, shocks[1]], [*lags, shocks[2]]
        count = len(shocks[0])
        degrees = np.append(degrees, np.full(count, min(float(m), trusted + low)))
        shared = np.append(shared, np.ones(count, dtype=bool))
    log = np.concatenate(odds)
    weights = np.exp(log - log.max())
    retained = weights > _NEGLIGIBLE_WEIGHT * weights.sum()
    weights = weights[retained] / weights[retained].sum()
    lag = int(np.bincount(np.concatenate(lags)[retained], weights).argmax())
    every_tau = np.maximum(np.concatenate(taus)[retained], 1.0)
    alike = _alike(every_tau, weights, degrees[retained], shared[retained])
    return Memory(n, there, rows, variance, energy / square, *alike, lag)


def _with_shocks(
    families: list[_Family],
    odds: FloatArray,
    power: FloatArray,
    within_times: FloatArray,
    free: float,
    n: int,
    low: int,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Log odds, τ and season of (memory of each series, share of shocks, memory of these)."""
    m = len(power)
    trusted = min(_TRUST_IN_SHAPES * low, _MAX_TRUST_IN_SHAPES)
    steps = 1.5 * math.sqrt(2.0 / m) * np.arange(-2, 4)
    shares = float(power.sum() / within_times.sum()) * np.exp(steps) - 1.0
    shares = shares[shares > _MIN_SHARE_OF_SHOCKS]
    if not len(shares):
        return np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)
    by_rows = np.concatenate(
        [family.odds(family.sums(within_times), free, m) for family in families]
    )
    rank = np.maximum(by_rows - by_rows.max(), odds - odds.max())
    best = np.argsort(-rank, kind="stable")[:_MAX_SHAPES_WITH_SHOCKS]
    best = best[rank[best] > _MIN_LOG_ODDS]
    starts = np.cumsum([0, *(len(each.prior) for each in families)])
    of = np.searchsorted(starts, best, side="right") - 1
    shapes = [families[f].shape(int(i - starts[f])) for f, i in zip(of, best, strict=True)]
    zero, prior, size = (np.array(values) for values in list(zip(*shapes, strict=True))[:3])
    inverse = np.stack([each[3] for each in shapes])
    of_shocks = [(1, _plain(n, m, coarse=True))]
    of_shocks += [(lag, _seasonal(n, m, lag)[0]) for lag in _seasons(power, n)[:1]]
    shocks = [shock for shock in of_shocks if len(shock[1].prior)]
    shock_spectra, zero_beside, prior_beside = (
        np.concatenate(list(values))
        for values in zip(*((1.0 / s.inverse, s.zero, s.prior) for _, s in shocks), strict=True)
    )
    # axes: memory of each series, share, memory of shocks, ordinates; one large array, made over
    both = 1.0 / inverse[:, None, None] + shares[:, None, None] * shock_spectra
    np.divide(1.0, both, out=both)
    at_zero = zero[:, None, None] + shares[:, None] * zero_beside
    every, near = both @ power, both[..., :low] @ power[:low]
    log = (
        (prior - free * size)[:, None, None]
        + prior_beside
        + 0.5 * np.log(both, out=both).sum(axis=-1)
        - 0.5 * m * (1.0 + free) * np.log(every + free * (inverse @ within_times)[:, None, None])
        + math.log((1.0 - _PRIOR_UNSHARED) / len(shares))
    )
    tau = at_zero * (trusted * every / m + near) / (trusted + low)
    lags = np.concatenate([np.full(len(each.prior), lag) for lag, each in shocks])
    return log.ravel(), tau.ravel(), np.broadcast_to(lags, log.shape).ravel()


def _alike(
    taus: FloatArray, weights: FloatArray, freedom: FloatArray, shared: BoolArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Shapes of nearly one τ as one, in rising order; those of shared shocks by themselves."""
    near = np.round(np.log(taus) / _LOG_TAU_STEP).astype(np.int64) * 2 + shared
    kinds, kind_of = np.unique(near, return_inverse=True)
    joint = np.bincount(kind_of, weights).astype(np.float64)
    means = np.bincount(kind_of, weights * np.log(taus)) / joint
    return np.exp(means), joint, np.bincount(kind_of, weights * freedom) / joint, kinds % 2 == 1


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
    best = np.argsort(-alike, kind="stable")[:_MAX_SEASONS]
    clear = alike[best] > _MIN_Z_OF_SEASON / math.sqrt(n)
    return [int(lag) for lag in every[best[clear]]]


class _Family(NamedTuple):
    """Shapes that are weighed: log prior, half the sum of their logs, and the spectrum at 0."""

    prior: FloatArray
    size: FloatArray
    zero: FloatArray
    lag: int
    # sums of the first ordinates, each divided by the shape; and the inverse of one shape
    sums: Callable[[FloatArray], FloatArray]
    inverse: Callable[[int], FloatArray]

    def odds(self, sums: FloatArray, sets: float, m: int) -> FloatArray:
        """Log odds, from sums of so many sets of m ordinates."""
        return np.asarray(self.prior - sets * (self.size + 0.5 * m * np.log(sums)))

    def shape(self, index: int) -> tuple[float, float, float, FloatArray]:
        """Spectrum at 0, log prior, half the sum of logs and inverse of one."""
        zero, prior, size = (float(values[index]) for values in (self.zero, self.prior, self.size))
        return zero, prior, size, self.inverse(index)


class _Shapes(NamedTuple):
    """Spectra at 0, and at the ordinates: 1 over each; log prior, and half the sum of logs."""

    zero: FloatArray
    inverse: FloatArray
    prior: FloatArray
    size: FloatArray

    def family(self, lag: int, log: float = 0.0) -> _Family:
        """These shapes, with so much more log prior."""
        return _Family(
            self.prior + log,
            self.size,
            self.zero,
            lag,
            lambda power: np.asarray(self.inverse[:, : len(power)] @ power),
            lambda index: self.inverse[index],
        )

    def times(self, other: _Shapes, lag: int) -> _Family:
        """Each of these multiplied by each of others."""
        count = len(other.zero)

        def sums(power: FloatArray) -> FloatArray:
            both = power[:, None] * other.inverse[:, : len(power)].T
            return np.asarray((self.inverse[:, : len(power)] @ both).ravel())

        return _Family(
            np.add.outer(self.prior, other.prior).ravel(),
            np.add.outer(self.size, other.size).ravel(),
            np.multiply.outer(self.zero, other.zero).ravel(),
            lag,
            sums,
            lambda index: np.asarray(self.inverse[index // count] * other.inverse[index % count]),
        )


def _shapes(spectra: list[FloatArray], prior: float, share: FloatArray | None = None) -> _Shapes:
    """From spectra at 0 and the ordinates, their prior together, and the share of each."""
    if not spectra:
        return _Shapes(np.empty(0), np.empty((0, 0)), np.empty(0), np.empty(0))
    table = np.stack(spectra)
    shares = np.full(len(table), 1.0 / len(table)) if share is None else share
    half = 0.5 * np.log(table[:, 1:]).sum(axis=1)
    return _Shapes(table[:, 0].copy(), 1.0 / table[:, 1:], np.log(prior * shares), half)


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


def _memories(n: int, growth: float = _GROWTH_OF_LENGTHS) -> FloatArray:
    """Times that an autoregression remembers: from .7 to n/2."""
    return np.asarray(0.7 * growth ** np.arange(int(math.log(n / 1.4) / math.log(growth)) + 1))


@lru_cache(maxsize=16)
def _plain(n: int, m: int, *, coarse: bool = False) -> _Shapes:
    """No memory, and shares of the variance with a short or a long one; fewer if `coarse`."""
    shares = _SHARES_OF_VARIANCE[2::2] if coarse else _SHARES_OF_VARIANCE
    at, lengths = (
        math.pi * np.arange(m + 1) / n,
        _memories(n, 2.0 if coarse else _GROWTH_OF_LENGTHS),
    )
    waves = [_autoregression(math.exp(-1.0 / length), at) for length in lengths]
    endless = [_fractional(d, at, n) for d in (() if coarse else _FRACTIONAL_ORDERS)]
    spectra = [np.ones(m + 1), *(1.0 - h + h * wave for wave in waves for h in shares)]
    spectra += [1.0 - h + h * wave for wave in endless for h in (0.5, 1.0)]
    long = (1.0 - _PRIOR_INDEPENDENT - _PRIOR_FRACTIONAL) * lengths**-0.5 / (lengths**-0.5).sum()
    powers = np.full(2 * len(endless), _PRIOR_FRACTIONAL / (2 * len(_FRACTIONAL_ORDERS)))
    prior = np.r_[_PRIOR_INDEPENDENT, np.repeat(long / len(shares), len(shares)), powers]
    return _shapes(spectra, 1.0, prior)


@lru_cache(maxsize=8)
def _seasonal(n: int, m: int, lag: int) -> tuple[_Shapes, _Shapes]:
    """Memories from one season to the next that fit into the series: by what they multiply plain
    ones, and beside them.
    """
    at = math.pi * np.arange(m + 1) / n
    steps = [phi for phi in _SEASONAL_CORRELATIONS if lag * (1.0 + phi) / (1.0 - phi) <= 2.0 * n]
    waves = [_autoregression(phi, lag * at) for phi in steps]
    products = [1.0 - g + g * wave for wave in waves for g in _SEASONAL_SHARES]
    plain = [_autoregression(math.exp(-1.0 / length), at) for length in _memories(n)[2::4]]
    sums = [
        1.0 - h - g + h * ar + g * wave
        for ar in plain
        for wave in waves[1::2]
        for h, g in _PAIRS_OF_SHARES
    ]
    harmonic = float((1.0 / np.arange(2, n // 4 + 1)).sum())
    chance = _PRIOR_SEASONAL / 2.0 / (lag * harmonic)  # of this lag, as either
    return _shapes(products, chance), _shapes(sums, chance)
