"""Do rows go together: from one time to the next, within clusters, or in the order of a file?

Two signals of each row are looked at: on which side of its prediction y lies, and how far (the
first two orthonormal polynomials of the PIT; misses, where a prediction has no PIT). Errors whose
size alone has a memory leave the first one uncorrelated.

The test adds up products of pairs of rows that lie in one block, over blocks of 1, 2, 4, … units.
Of independent rows these sums have three known moments. Seasons, to which blocks are blind, show in
products at one lag. How much dependence costs is the integrated autocorrelation time τ: n rows tell
of a mean as much as n/τ independent ones.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Literal

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.times import MIN_TIMES, Chronology, less_means
from howsure.core.weights import Weights
from howsure.stats.ecdf import legendre
from howsure.stats.estimate import Z_95
from howsure.stats.memory import MIN_EFFECTIVE_OF_ANY, memory_of
from howsure.stats.permutation import batch_starts

Kind = Literal["time", "clusters", "file"]
Series = Literal["", "known", "unknown"]
# The usual level. Missed dependence makes intervals too narrow, found where there is none only a
# little too wide.
LEVEL = 0.05
"""P-value below which dependence is taken as found."""
# Measured, as below.
DOUBT = 0.3
"""P-value below which rows are not taken for independent: few show a weak memory that costs much.

Of right models at n = 100, errors AR(.3), 12 % of the tests of a mean were below .05 with .05 here,
and are 4 %; of independent rows, a fault of a power of 79 % at .005 is found in 65 %.
"""
# Strict, as a file's order need mean nothing, and the largest of several signals is taken.
STRICT, STRONG = 1e-3, 0.1
"""The same of a file's order, which may mean nothing, and the least correlation told of it."""
# Batches of time, and effective rows that each is to hold. With ten and Student's t a test at .005
# holds its level from 50 effective rows on (.007); eight memories long, they hardly depend on each
# other. More than 50 would gain under 3 % in an interval.
MIN_BATCHES, MAX_BATCHES, EFFECTIVE_ROWS_PER_BATCH = 10, 50, 8
"""Batches, and effective rows that each of them is to hold."""
# Fewer blocks, or times, leave sums of products too few to have the law that is used. Chosen by
# hand; not tuned. Higher, long memory in short series is overlooked.
_MIN_BLOCKS, _MIN_TIMES_OF_LAGS = 8, 16
# Chosen by hand; not tuned. Of fewer rows no test of dependence has power worth its level.
_MIN_ROWS = 20
# Kurtosis from which on products of rare values are no sum of many. Components of the PIT have 1.8
# and 2.1, hits at 90 % coverage 8: these are left to the blocks. Not tuned.
_MAX_KURTOSIS = 5.0
# Chosen by hand; not tuned. A part of fewer rows has a mean of its own by chance.
_SHARE_OF_EDGES = 0.05
# A correlation of 20,000 pairs has a standard error of .007: one of STRONG is beyond any doubt,
# and a longer look at a huge file would cost time alone.
_MAX_STRETCHES, _ROWS_PER_STRETCH = 10, 2_000


@frozen(kw_only=True)
class Dependence:
    """How rows go together, and what that costs."""

    by: Kind  # {"time", "clusters", "file"}: in what order, or within what
    signal: str  # {"side", "size"}: whether the side of errors has a memory, or their size alone
    # from one time to the next (`lag` times later), or within a time or cluster, whichever is
    # larger
    correlation: float
    tau: float  # rows that tell as much of a mean as one independent row; at least 1
    # τ − 1 and its 95 % interval; where nothing is found, that of blocks of n^⅓ rows
    effect: float
    lower: float
    upper: float
    p: float  # probability that independent rows show as much
    n: float  # rows that count
    found: bool  # whether p is below .05 (.001 in file order)
    # batches of consecutive rows that are the units of what is resampled; 0 for none, 1 if no
    # batches are long enough
    batches: int = 0
    lag: int = 1  # times from one season to the next; 1 where there is none
    # whether rows of one time are of several series, and these are known; how likely shocks are
    # shared by them; different times, and those that tell as much as one independent one
    series: Series = ""
    common: float = 0.0
    times: int = 0
    lasts: float = 1.0

    @property
    def effective(self) -> float:
        """Independent rows that tell as much."""
        return self.n / self.tau

    @property
    def doubted(self) -> bool:
        """Whether rows in time may depend, so that errors are those of a series."""
        return self.by == "time" and (self.p < DOUBT or bool(self.series))

    @property
    def few(self) -> bool:
        """Whether rows are too few for any error: by what they remember, or by their times."""
        lone = self.series == "unknown" or self.common > 0.5
        return self.effective < MIN_EFFECTIVE_OF_ANY or (lone and self.times < MIN_TIMES)


def serial_dependence(
    known: Mapping[str, FloatArray],
    units: IntArray,
    by: Kind,
    *,
    weights: Weights | None = None,
    series: IntArray | None = None,
) -> Dependence:
    """Whether signals of rows are correlated within units and, by time, from unit to unit.

    τ is that of `howsure.stats.memory`. P-values over blocks, lags and signals are joined by their
    Cauchy combination: Y. Liu and J. Xie, JASA 115 (2020) 393-402. That of lags is the
    least of all, with prior 1/lag.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=1000)
    >>> found = serial_dependence({"side": noise[1:] + noise[:-1]}, np.arange(999), "time")
    >>> found.found, round(found.correlation, 1), round(found.tau)
    (True, 0.5, 2)
    """
    order = np.argsort(units, kind="stable")
    codes = units[order]
    count = int(codes[-1]) + 1
    if count < 2:
        raise UnanswerableError(f"all rows have one {'time' if by == 'time' else 'cluster'}")
    if len(codes) < _MIN_ROWS:
        raise UnanswerableError(f"{len(codes):,} rows are too few")
    w = None if weights is None else weights.values[order]
    copies = weights is not None and weights.kind == "frequency"
    rows = _OrderedUnits(codes, w, by, copies, None if series is None else series[order])
    found, chances = [], []
    for name, values in known.items():
        x = values[order] - np.average(values[order], weights=w)
        if not np.abs(x).max() > 1e-9:
            continue
        chance, lately = rows.every_test(x)
        chances.append(chance)
        found.append((name, x, lately))
    if not found:
        raise UnanswerableError("rows do not differ in what predicts their errors")
    p = _joined(np.concatenate(chances))
    n = float(len(units)) if weights is None else weights.effective_n
    sought = by == "time" and p < LEVEL
    told = [rows.cost(name, x, lately, by, p, n) for name, x, lately in found]
    if sought:  # a single change explains what no memory has to
        after = [(name, rows.parted(x)) for name, x, _ in found]
        tests = [rows.every_test(x) for _, x in after]
        p_after = _joined(np.concatenate([test[0] for test in tests]))
        calm = [
            rows.cost(name, x, test[1], by, p_after, n)
            for (name, x), test in zip(after, tests, strict=True)
        ]
        if max(each.tau for each in calm) - 1.0 < (max(each.tau for each in told) - 1.0) / 2.0:
            told = calm
    return max(told, key=lambda each: each.effect)


@frozen
class _Blocks:
    """What sums over blocks of one length are like whatever the signal: sums over pairs of rows."""

    pairs: float
    held: float
    kept: float
    triples: float
    cubes: float

    @classmethod
    def of(cls, powers: list[FloatArray]) -> _Blocks:
        """From sums of the weights' powers 1, 2, 3, 4 and 6 in each block."""
        one, two, three, four, six = powers
        return cls(
            pairs=float(two @ two - four.sum()),
            held=float(one @ one - two.sum()),
            kept=1.0 - float(two @ two) / float(two.sum()) ** 2,
            triples=float((two * (two * two - 3.0 * four) + 2.0 * six).sum()),
            cubes=float(three @ three - six.sum()),
        )


class _OrderedUnits:
    """Rows in order of their units, with what of them does not depend on a signal."""

    def __init__(
        self,
        codes: IntArray,
        weights: FloatArray | None,
        by: Kind,
        copies: bool,
        series: IntArray | None = None,
    ) -> None:
        self.codes, self.ordered, self.frequency = codes, by == "time", copies
        self.starts = np.flatnonzero(np.diff(codes, prepend=-1))
        self.wide = 1.0  # by how much what products sum up to varies more than that of other rows
        self.series, self.beside = series, None
        if series is not None:  # one after the other, with room for the lags between them
            place, count = Chronology(codes).places()
            apart = series * (5 * count // 4 + 1) + place
            self.place = np.argsort(apart, kind="stable")
            w = None if weights is None else weights[self.place]
            self.beside = _OrderedUnits(apart[self.place], w, by, copies)
            # rows of one time, less their mean, are as many less one
            self.beside.wide = math.sqrt(len(codes) / max(len(codes) - len(self.starts), 1))
        self.single = len(self.starts) == len(codes)
        self.w = np.ones(len(codes)) if weights is None else weights
        self.mass = self.sums(self.w)
        powers = [self.mass] * 5
        if weights is not None:
            powers = [self.mass, *(self.sums(weights**power) for power in (2, 3, 4, 6))]
        self.total, self.squares = float(self.mass.sum()), float(powers[1].sum())
        self.blocks = [_Blocks.of(powers)]
        while self.ordered and len(powers[0]) >= 2 * _MIN_BLOCKS:
            fewer = _paired(powers[0])
            powers = [fewer] * 5 if weights is None else [_paired(each) for each in powers]
            self.blocks.append(_Blocks.of(powers))

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over units."""
        return values if self.single else np.add.reduceat(values, self.starts)

    def test(self, x: FloatArray) -> tuple[FloatArray, tuple[float, float, float]]:
        """P-values over lengths of blocks; excess of the variance of sums, and its 95 % interval.

        Rows are exchangeable under the null: a sum of products of different rows has mean
        −σ²/(n − 1) a product, and the second and third cumulant of a quadratic form.
        """
        a = self.w * x
        own = float(a @ a)
        variance = own / self.squares
        third = float(a @ np.square(x)) / self.total
        kish = self.total**2 / self.squares
        sums, chances, lately = self.sums(a), [], (0.0, -math.inf, math.inf)
        for level, block in enumerate(self.blocks):
            sums = _paired(sums) if level else sums
            if not block.pairs > 0:
                continue
            centre = -variance * block.held / max(kish - 1.0, 1.0)
            spread = math.sqrt(2.0 * block.kept * block.pairs) * variance
            skew = 8.0 * variance**3 * block.triples * block.kept + 4.0 * third**2 * block.cubes
            away = (float(sums @ sums) - own - centre) / spread / self.wide
            chances.append(_beyond(away, skew / spread**3))
            if 8**level <= len(x) or math.isinf(lately[2]):
                ends = [each * spread / own for each in (away, away - Z_95, away + Z_95)]
                lately = (ends[0], ends[1], ends[2])
        if not chances:
            raise UnanswerableError(f"{len(self.mass):,} rows are too few")
        return np.array(chances), lately

    def every_test(self, x: FloatArray) -> tuple[FloatArray, tuple[float, float, float]]:
        """The same with p-values of lags, and of each series less the mean of its times."""
        chances, lately = self.test(x)
        chances = np.append(chances, self._at_one_lag(x))
        if self.beside is not None:
            rest = less_means(x, self.codes - self.codes[0], self.w)[self.place]
            with contextlib.suppress(UnanswerableError):
                chances = np.append(chances, self.beside.every_test(rest)[0])
        return chances, lately

    def _at_one_lag(self, x: FloatArray) -> FloatArray:
        """The p-value of the largest correlation at one lag; none of few times, or rare values."""
        sums = self.sums(self.w * x)
        count, square = len(sums), float(sums @ sums)
        smooth = float(np.sum(sums**4)) * count < _MAX_KURTOSIS * square**2
        if not self.ordered or count < _MIN_TIMES_OF_LAGS or not smooth:
            return np.empty(0)
        place, span = Chronology(self.codes[self.starts]).places()
        both = np.zeros((2, span))
        both[:, place] = sums, np.ones(count)
        size, every = 2 << both.shape[1].bit_length(), np.arange(2, both.shape[1] // 4 + 1)
        lagged, pairs = np.fft.irfft(np.square(np.abs(np.fft.rfft(both, size))), size)[:, every]
        pairs = np.maximum(np.round(pairs), 1.0)
        away = (lagged * count / square + pairs / (count - 1.0)) / np.sqrt(pairs) / self.wide
        chances = special.ndtr(-away) * every * float((1.0 / every).sum())
        return np.array([-math.expm1(-float(chances.min()))])  # of lags that are independent

    def parted(self, x: FloatArray) -> FloatArray:
        """The signal less its means before and after the time when they differ most."""
        sums, mass = np.cumsum(self.sums(self.w * x)), np.cumsum(self.mass)
        share = mass / mass[-1]
        inside = np.flatnonzero((share > _SHARE_OF_EDGES) & (share < 1.0 - _SHARE_OF_EDGES))
        if not len(inside):
            return x
        gain = np.square(sums[inside]) / (share[inside] * (1.0 - share[inside]))
        at = int(inside[np.argmax(gain)])
        before = sums[at] / mass[at]
        after = (sums[-1] - sums[at]) / (mass[-1] - mass[at])
        return np.asarray(x - np.where(self.codes <= self.codes[self.starts[at]], before, after))

    def cost(
        self,
        signal: str,
        x: FloatArray,
        lately: tuple[float, float, float],
        by: Kind,
        p: float,
        n: float,
    ) -> Dependence:
        """The integrated autocorrelation time of a signal."""
        a = self.w * x
        sums = self.sums(a)
        own = float((a * x).sum() if self.frequency else np.square(a).sum())
        if self.frequency:  # copies of a row are rows of their own
            square = float(np.square(sums).sum() - np.square(a).sum()) + own
        else:
            square = float(np.square(sums).sum())
        squares = self.sums(self.w * np.square(x))
        correlation = _share(square - own, 2.0 * float(self.mass @ squares - np.square(a).sum()))
        reach = math.exp(Z_95 * math.sqrt(2.0 / len(sums)))
        tau = square / own / (1.0 - min(1.0 / len(sums), 0.5))  # less the mean of few units
        low, high, lag, lasts, common = 1.0 / reach, reach, 1, 1.0, 0.0
        found = p < LEVEL
        if self.ordered:
            times = Chronology(self.codes, series=self.series)
            if found:
                with contextlib.suppress(UnanswerableError):  # too few times: what is within them
                    numbers, panel = times.numbers(x, self.w)
                    memory = memory_of(numbers, panel)
                    lag, (low, high) = memory.lag, memory.bounds()
                    low, high = low / memory.tau, high / memory.tau
                    tau = memory.tau if panel is not None else tau * memory.tau
                    lasts, common = memory.lasts, memory.common
            place = times.places()[0][self.starts]
            following = [_following(place, sums, squares, self.mass, lag)]
            if self.beside is not None:
                following.append(self.beside.following(x[self.place], lag))
            correlation = max(correlation, *following)
        tau = max(tau, 1.0)
        effect, low, high = (tau - 1.0, tau * low - 1.0, tau * high - 1.0) if found else lately
        return Dependence(
            by=by,
            signal=signal,
            correlation=float(correlation),
            tau=float(tau),
            effect=float(effect),
            lower=float(low),
            upper=float(high),
            p=p,
            n=n,
            found=found,
            lag=lag,
            series="" if self.series is None else "known",
            common=common,
            times=len(self.starts),
            lasts=lasts,
        )

    def following(self, x: FloatArray, lag: int) -> float:
        """The correlation of units so many times apart."""
        sums, squares = self.sums(self.w * x), self.sums(self.w * np.square(x))
        return _following(self.codes[self.starts], sums, squares, self.mass, lag)


def _following(
    places: IntArray, sums: FloatArray, squares: FloatArray, mass: FloatArray, lag: int
) -> float:
    """The correlation of rows of units so many times apart, at most 1."""
    now = np.flatnonzero(np.isin(places + lag, places))
    later = np.searchsorted(places, places[now] + lag)
    both = float(mass[later] @ squares[now] + mass[now] @ squares[later])
    return _share(float(sums[now] @ sums[later]), both)


def _share(products: float, squares: float) -> float:
    """The correlation of pairs: twice their products over the sum of their squares."""
    return min(2.0 * products / squares, 1.0) if squares > 0.0 else 0.0  # but for rounding


def _paired(values: FloatArray) -> FloatArray:
    """Sums of neighbours; the last one joins the block before it."""
    even = len(values) // 2 * 2
    sums = values[0:even:2] + values[1:even:2]
    if even < len(values):
        sums[-1] += values[-1]
    return sums


def _beyond(away: float, skew: float) -> float:
    """Upper tail of Pearson's type III law with mean 0 and variance 1."""
    if skew < 1e-4:  # normal to 1e-5, and shapes k past 4e8 lose digits
        return float(special.ndtr(-away))
    k = 4.0 / min(skew, 1e6) ** 2  # which a shape of 0 would not answer
    return float(special.gammaincc(k, max(k + away * math.sqrt(k), 0.0)))


def _joined(chances: FloatArray) -> float:
    """The Cauchy combination of p-values, which may depend on each other."""
    least = float(chances.min())
    if least < 1e-15:  # where 1 / tan loses the chance, the least alone decides, as Bonferroni's
        return min(least * len(chances), 1.0)
    chances = np.minimum(chances, 1.0 - 1e-3)  # one near 1 is no proof of independence
    mean = float(np.mean(1.0 / np.tan(math.pi * chances)))
    return float(np.arctan2(1.0, mean) / math.pi)


def batches_of(units: IntArray, mass: FloatArray, count: int) -> IntArray:
    """Numbers of batches of consecutive units, alike in mass, for each row; none is empty."""
    starts = batch_starts(np.asarray(np.bincount(units, weights=mass), dtype=np.float64), count)
    return np.asarray(np.searchsorted(starts, units, side="right") - 1)


def batches_for(found: Dependence) -> int:
    """How many batches hold the level of a test; 1 if rows are too few for any."""
    # a batch is to span so many seasons as rows, and holds all series of its times
    most = min(found.effective, found.times / found.lasts or math.inf) / found.lag
    if most < 2 * MIN_BATCHES:
        return 1
    return min(max(round(most / EFFECTIVE_ROWS_PER_BATCH), MIN_BATCHES), MAX_BATCHES)


def stretches(n: int) -> IntArray:
    """Rows of a file whose order is looked at: all, or ten stretches of it; shape (k, length)."""
    if n <= _MAX_STRETCHES * _ROWS_PER_STRETCH:
        return np.arange(n)[None]
    starts = np.linspace(0, n - _ROWS_PER_STRETCH, _MAX_STRETCHES).astype(np.int64)
    return starts[:, None] + np.arange(_ROWS_PER_STRETCH)


def is_sorted(columns: FloatArray) -> bool:
    """Whether nearly all steps of any column of (k, length, columns) go one way."""
    steps = np.diff(columns, axis=1)
    rising, falling = ((side > 0).sum(axis=(0, 1)) for side in (steps, -steps))
    some = np.maximum(rising + falling, 1)
    return bool((np.maximum(rising, falling) >= 0.9 * some)[rising + falling > 0].any())


def file_dependence(known: Mapping[str, FloatArray], shape: tuple[int, int]) -> Dependence | None:
    """Strong correlation of neighbouring rows of a file, whose stretches have this shape."""
    best: Dependence | None = None
    for name, values in known.items():
        x = (values - values.mean()).reshape(shape)
        size = float(np.square(x).mean())
        if not size > 1e-18:  # signals are of order one: this is rounding about a constant
            continue
        products = x[:, 1:] * x[:, :-1]
        rho = float(products.mean()) / size
        p = min(1.0, len(known) * float(special.ndtr(-rho * math.sqrt(products.size))))
        if p < STRICT and rho > STRONG and (best is None or rho > best.correlation):
            best = Dependence(
                by="file",
                signal=name,
                correlation=rho,
                tau=(1.0 + min(rho, 0.999)) / (1.0 - min(rho, 0.999)),
                effect=math.nan,
                lower=math.nan,
                upper=math.nan,
                p=p,
                n=float(values.size),
                found=True,
            )
    return best


def in_time_order(time: IntArray, cluster: IntArray) -> IntArray | None:
    """Numbers of clusters in order of time, for each row; None if their times overlap."""
    count = int(cluster.max()) + 1
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(first, cluster, time)
    np.maximum.at(last, cluster, time)
    order = np.lexsort((last, first))
    if (first[order[1:]] < last[order[:-1]]).any():
        return None
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    return np.asarray(place[cluster])


def mid_ranks(values: FloatArray) -> FloatArray:
    """Shares of the values below each, of equal ones half."""
    ordered = np.sort(values)
    ends = [np.searchsorted(ordered, values, side) for side in ("left", "right")]
    return np.asarray((ends[0] + ends[1]) / (2.0 * len(values)))


def follows(values: FloatArray, units: IntArray, weights: Weights | None = None) -> bool:
    """Whether numbers, or their sizes alone, may depend from one time to the next."""
    known = dict(zip(("side", "size"), legendre(mid_ranks(values))[:2], strict=True))
    try:
        return serial_dependence(known, units, "time", weights=weights).doubted
    except UnanswerableError:  # too few, or all alike
        return False
