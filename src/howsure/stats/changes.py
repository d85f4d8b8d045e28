"""Does the level of a series change with time: when, by how much, and is it more than chance?

Rows in order of time make batches, and the test permutes these. What it permutes is studentised by
a long-run variance whose band is a fixed share of all batches: rows that follow each other make
numerator and denominator larger alike. A second look, with batches long beside the memory that is
seen, must agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.rng import child
from howsure.stats.memory import memory_of
from howsure.stats.permutation import batch_starts, p_value, sequential

# The usual trimming of tests for a change at an unknown time (Andrews 1993, Econometrica 61).
# Smaller, the largest statistic is more often one of few rows at an end, and power elsewhere
# falls.
EDGE = 0.15
"""Share of the rows that lies on each side of a change, at least."""
# 9,999 permutations of 100 batches of one series are 8 MB. Below 8 batches no order of them is
# unlikely enough: a split into 3 and 4 has 35 arrangements. Chosen by hand; not tuned.
MIN_BATCHES, MAX_BATCHES = 8, 100
# Chosen by hand; not tuned. Smaller, "now" is nearer to today, and its interval wider.
LATEST = 0.1
"""Share of the rows that are the latest."""
# 5 % over some 16 tests of one verdict (Holm's first step). Draws end where p is surely above.
LEVEL = 0.003
"""P-value that a test of the verdict may have to reach."""
# Share of all batches whose correlations count in the long-run variance. A fixed share keeps the
# level of the test where rows depend (fixed-b asymptotics). Chosen by hand; not tuned: larger
# allows for longer memory and costs power.
_BAND_SHARE = 0.1
# At frequency 0 an estimate with triangular weights over a share b has 1.5/b degrees.
_DEGREES_OF_FREEDOM = 1.5 / _BAND_SHARE
# Batches of the second look are five memories long, so that neighbours share little, but at least
# ten are left to permute. Chosen by hand; not tuned.
_MEMORIES_PER_BATCH, _MIN_LONG_BATCHES = 5.0, 10
# 500 permutations of 100 batches are 400 kB a series, which stays in the cache.
_PERMUTATIONS_AT_ONCE = 500
# Statistics that differ by less are tied: they differ by the order of additions alone.
_TIE_TOLERANCE = 1e-9
# Keeps a division by a variance or mass of 0 from being one by 0; far below any real one.
_MIN_DIVISOR = 1e-300


@frozen
class Level:
    """Mean of a series over some of the rows, their standard deviation, and how many they count."""

    mean: float
    sd: float
    rows: float

    def reach(self, confidence: float) -> float:
        """Half the width of the mean's confidence interval."""
        wide = float(special.stdtrit(_DEGREES_OF_FREEDOM, 0.5 + confidence / 2.0))
        return wide * self.sd / math.sqrt(self.rows)


@frozen(kw_only=True)
class Change:
    """The clearest change of one series."""

    # the first time after it, and the first of the last tenth of the rows
    start: int
    late: int
    # of the series before and after it, and over the last tenth of the rows. Rows that follow each
    # other count as fewer.
    before: Level
    after: Level
    latest: Level
    # confidence interval of the largest size that any split of the rows shows, unsigned
    lower: float
    upper: float
    error: float  # standard error of the size, as if the time had been known
    p: float  # probability that batches in random order show as clear a change in any of the series
    # mean and 95 % quantile of the unsigned size where nothing changes
    null: float
    null_upper: float

    @property
    def size(self) -> float:
        """The mean after less the mean before."""
        return self.after.mean - self.before.mean


def find_changes(
    values: npt.ArrayLike,
    times: IntArray,
    *,
    mass: FloatArray | None = None,
    noise: FloatArray | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[Change | None]:
    """The clearest change of each of several series, and one test for all.

    Rows make up to 100 consecutive batches. With C_k the sum of the first k batches less what the
    mean of all leads one to expect, the statistic is max_k |C_k| / sd(C_k) over splits that leave
    15 % of the rows on each side, in units of the long-run standard deviation of what a step at
    the best split leaves: Bartlett's, with a tenth of the batches. Its law under independence comes
    from permuting batches, of all series together. The band grows with n, so the statistic's law
    is that of fixed-b asymptotics, which short memory leaves as it is: N. M. Kiefer and
    T. J. Vogelsang, Econometric Theory 21 (2005) 1130-1164; of changes: X. Shao and X. Zhang, JASA
    105 (2010) 1228-1240. A second test takes batches five times as long as the integrated
    autocorrelation time (`howsure.stats.memory`) and their plain
    variance. The larger p-value counts; errors are those of the second test, and the interval of
    the largest size holds for all splits at once.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=1000)
    >>> found = find_changes([noise + (np.arange(1000) >= 700)], np.arange(1000))[0]
    >>> found.start, round(found.size, 1), found.p < 0.001
    (700, 1.0, True)
    """
    series = np.asarray(values, dtype=np.float64)
    weights = np.ones(series.shape[1]) if mass is None else mass
    spread = weights if noise is None else noise
    fine = _Course(series, times, weights, spread)
    live = np.flatnonzero(fine.live)
    changes: list[Change | None] = [None] * len(series)
    if not len(live):
        return changes
    first = fine.test(live, confidence, seed)
    most = _long_batches(fine.residuals(series[live], times, weights, first.best))
    second = _Course(series, times, weights, spread, most=most, memory=False).test(
        live, confidence, seed
    )
    for number, row in enumerate(live):
        changes[row] = fine.change(int(row), number, first, second)
    return changes


@frozen
class _Test:
    """Of each series: p-value, best split, all sums, long-run variance; of all, the reach.

    `reach` times a standard error holds for all splits at once; `sizes` are those drawn, in units
    of the standard deviation.
    """

    p: FloatArray
    best: IntArray
    upto: FloatArray
    variance: FloatArray
    reach: float
    sizes: FloatArray


class _Course:
    """Series as batches of consecutive times."""

    def __init__(
        self,
        series: FloatArray,
        times: IntArray,
        mass: FloatArray,
        noise: FloatArray,
        *,
        most: int = MAX_BATCHES,
        memory: bool = True,
    ) -> None:
        every = np.bincount(times, weights=noise).astype(np.float64)
        self.starts = batch_starts(every, most)
        batch = np.searchsorted(self.starts, times, side="right") - 1
        self.count = len(self.starts)
        if self.count < MIN_BATCHES:
            few = f"{self.count} different times are too few to detect a change"
            raise UnanswerableError(few if self.count > 1 else "all rows have one time")
        self.mass, self.noise = (np.bincount(batch, weights=sizes) for sizes in (mass, noise))
        self.total = float(self.mass.sum())
        self.sums = np.stack([np.bincount(batch, weights=mass * values) for values in series])
        self.moments = np.stack(
            [
                [np.bincount(batch, weights=noise * values**power) for power in (0, 1, 2)]
                for values in series
            ]
        )
        self.means = self.sums.sum(axis=1) / self.total
        self.root = np.sqrt(self.noise)
        self.scores = (self.sums - self.means[:, None] * self.mass) / self.root
        size = np.abs(series).max(axis=1, initial=0.0)
        self.live = np.abs(self.scores / self.root).max(axis=1) > _TIE_TOLERANCE * (1.0 + size)
        upto, spread = np.cumsum(self.mass)[:-1], np.cumsum(self.noise)[:-1]
        share = upto / self.total
        inside = (share > EDGE - _TIE_TOLERANCE) & (share < 1.0 - EDGE + _TIE_TOLERANCE)
        if not inside.any():
            raise UnanswerableError("most rows have one time")
        self.splits = np.flatnonzero(inside) + 1
        self.upto, share, spread = upto[inside], share[inside], spread[inside]
        after = float(self.noise.sum()) - spread
        self.sd = np.sqrt(spread * (1.0 - share) ** 2 + after * share**2)
        self.size_of = self.total / (self.upto * (self.total - self.upto))
        self.band = max(round(_BAND_SHARE * self.count), 1) if memory else 1

    def test_steps(self, scores: FloatArray) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
        """Statistic, best split, long-run variance of what the step leaves, and all sums.

        Of scores of shape (..., batches).
        """
        sums = scores * self.root
        sums -= sums.sum(axis=-1, keepdims=True) * (self.mass / self.total)
        upto = np.cumsum(sums, axis=-1)[..., self.splits - 1]
        clear = np.abs(upto) / self.sd
        top = clear.max(axis=-1, keepdims=True)
        best = (clear >= top * (1.0 - _TIE_TOLERANCE)).argmax(
            axis=-1
        )  # the first, whatever the rounding
        moved = np.take_along_axis(upto, best[..., None], axis=-1)
        before = np.arange(self.count) < self.splits[best][..., None]
        mass = self.upto[best][..., None]
        step = np.where(before, moved / mass, -moved / (self.total - mass))
        off = (sums - self.mass * step) / self.root
        variance = np.square(off).sum(axis=-1)
        for lag in range(1, self.band):
            products = np.einsum("...i,...i->...", off[..., lag:], off[..., :-lag])
            variance = variance + 2.0 * (1.0 - lag / self.band) * products
        variance = np.maximum(variance, 0.0) / (self.count - 2)
        with np.errstate(divide="ignore"):
            statistic = np.where(top[..., 0] > 0, top[..., 0] / np.sqrt(variance), 0.0)
        return statistic, best, variance, upto

    def test(self, live: IntArray, confidence: float, seed: int) -> _Test:
        scores = self.scores[live]
        statistic, best, variance, upto = self.test_steps(scores)
        rng = child(seed, "change", self.count, self.band, len(live))
        sizes: list[FloatArray] = []
        variances: list[FloatArray] = []

        def draw(start: int, stop: int) -> FloatArray:
            largest = []
            for at in range(start, stop, _PERMUTATIONS_AT_ONCE):
                many = np.tile(np.arange(self.count), (min(_PERMUTATIONS_AT_ONCE, stop - at), 1))
                clear, where, long_run, _ = self.test_steps(scores[:, rng.permuted(many, axis=1)])
                variances.append(long_run)
                largest.append(clear.max(axis=0))
                sizes.append(clear * (self.sd * self.size_of)[where])
            return np.concatenate(largest)

        near = statistic * (1.0 - _TIE_TOLERANCE)
        drawn = sequential(draw, float(near.max()), level=LEVEL)
        score_variance = np.maximum(np.square(scores).sum(axis=1) / (self.count - 1), _MIN_DIVISOR)
        taken = (
            np.concatenate(variances, axis=1).mean(axis=1) / score_variance
        )  # what is left by the step
        return _Test(
            p=np.array([p_value(float(clear), drawn) for clear in near]),
            best=best,
            upto=upto,
            variance=variance / np.maximum(taken, _MIN_DIVISOR),
            reach=float(np.quantile(drawn, confidence)),
            sizes=np.concatenate(sizes, axis=1),
        )

    def change(self, row: int, number: int, first: _Test, second: _Test) -> Change:
        """The change at the best split; errors follow the second test, of long batches."""
        at = int(first.best[number])
        split = int(self.splits[at])
        before = np.arange(self.count) < split
        late = np.cumsum(self.mass[::-1])[::-1] <= LATEST * self.total * (1.0 + _TIE_TOLERANCE)
        late[-1] = True
        side_variance = np.where(before, *(self._variance(row, side) for side in (before, ~before)))
        plain = float((side_variance * self.noise).sum() / self.noise.sum())
        cost = max(float(second.variance[number]) / plain, 1.0) if plain > 0 else 1.0
        spread = cost * side_variance * self.noise
        below = np.cumsum(spread)[self.splits - 1]
        above = float(spread.sum()) - below
        errors = np.sqrt(below / self.upto**2 + above / (self.total - self.upto) ** 2)
        size = np.abs(first.upto[number]) * self.size_of
        chance = second.sizes[number] * math.sqrt(cost * plain)
        return Change(
            start=int(self.starts[split]),
            late=int(self.starts[late.argmax()]),
            before=self._level(row, before, cost),
            after=self._level(row, ~before, cost),
            latest=self._level(row, late, cost),
            lower=float(np.maximum(size - second.reach * errors, 0.0).max()),
            upper=float((size + second.reach * errors).max()),
            error=float(errors[at]),
            p=float(max(first.p[number], second.p[number])),
            null=float(chance.mean()),
            null_upper=float(np.quantile(chance, 0.95)),
        )

    def residuals(
        self, series: FloatArray, times: IntArray, mass: FloatArray, best: IntArray
    ) -> list[FloatArray]:
        """Sums of each time, less a step at the best split and a trend, which are no memory."""
        total = np.bincount(times, weights=mass)
        middle = np.cumsum(total) - total / 2.0
        off = []
        for values, at in zip(series, best, strict=True):
            after = np.arange(len(total)) >= self.starts[self.splits[at]]
            shape = np.stack([np.ones(len(total)), after, middle / middle[-1]], axis=1)
            sums = np.bincount(times, weights=mass * values)
            root = np.sqrt(np.maximum(total, _MIN_DIVISOR))[:, None]
            fit = np.linalg.lstsq(shape * root, sums / root[:, 0], rcond=None)[0]
            gap = sums - total * (shape @ fit)
            off.append(np.where(np.abs(gap) > _TIE_TOLERANCE * np.abs(sums).max(), gap, 0.0))
        return off

    def _variance(self, row: int, inside: BoolArray) -> float:
        count, first, second = self.moments[row][:, inside].sum(axis=1)
        return max(float(second / count - (first / count) ** 2), 0.0)

    def _level(self, row: int, inside: BoolArray, cost: float) -> Level:
        mass = float(self.mass[inside].sum())
        mean = float(self.sums[row, inside].sum()) / mass
        rows = mass**2 / float(self.noise[inside].sum()) / cost
        return Level(mean, math.sqrt(self._variance(row, inside)), rows)


def _long_batches(residuals: Sequence[FloatArray]) -> int:
    """How many batches are long beside the memory of what steps leave."""
    memory = max(_remembered(series) for series in residuals) - 1.0
    return max(
        min(int(len(residuals[0]) / max(_MEMORIES_PER_BATCH * memory, _MIN_DIVISOR)), MAX_BATCHES),
        _MIN_LONG_BATCHES,
    )


def _remembered(residuals: FloatArray) -> float:
    """How many batches count as one; 1 of few."""
    try:
        return memory_of(residuals).tau
    except UnanswerableError:
        return 1.0
