"""Laws of counts known up to a constant.

Narrow laws are summed count by count, wide ones by quadrature; their moments come from the same
sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, ndtri

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.predictions.counts.base import BEYOND, CountLaw
from howsure.predictions.counts.formulas import (
    at_whole,
    deviance,
    exponent,
    location,
    stirling_error,
    sum_down,
)

_DEPTH = 34.0  # windows leave out weights below e^-34 of the largest
_NARROW = 160.0  # counts up to which a law is summed one by one
_PER_LEVEL = 24.0  # a window of this many counts costs as much as one quantile by search
_BLOCK = 2048  # rows or answers treated at once, which bounds memory
_ROUNDS = 3  # of Newton's method for the windows


class _Sums(NamedTuple):
    log_total: FloatArray
    mean: FloatArray
    variance: FloatArray


class Dispersed(CountLaw):
    """A law with weights exp(−rate · D(k, μ) − spread · S(k)), summed numerically."""

    _family: Family

    def __len__(self) -> int:
        return len(self._family.mu)

    def mean(self) -> FloatArray:
        """Mean of the law itself, shape (n,)."""
        return self._sums.mean

    def variance(self) -> FloatArray:
        """Variance of the law itself, shape (n,)."""
        return self._sums.variance

    def log_pmf(self, counts: npt.ArrayLike) -> FloatArray:
        """Log probability of counts; −∞ where a count is negative or not whole."""
        count = self._shaped(counts, "counts")
        flat = count.reshape(len(self), -1).T
        raw = at_whole(flat, self._family.log_weight) - self._sums.log_total
        return raw.T.reshape(count.shape)

    def cdf(self, counts: npt.ArrayLike) -> FloatArray:
        """Probability of at most each count."""
        count = np.minimum(np.floor(self._shaped(counts, "counts")), BEYOND)
        flat = count.reshape(len(self), -1)
        out = np.empty_like(flat)
        narrow, wide = self._parted(flat.shape[1])
        for rows, low, table in self._summed(narrow, flat.shape[1]):
            total = np.cumsum(table, axis=0)
            total /= total[-1]
            place = np.clip(flat[rows].T - low, -1.0, len(table) - 1.0).astype(np.int64)
            found = np.take_along_axis(total, np.maximum(place, 0), axis=0)
            out[rows] = np.where(place < 0, 0.0, found).T
        places = np.searchsorted(self._wide_rows, wide)
        per = max(_BLOCK // flat.shape[1], 1)
        for start in range(0, len(wide), per):
            part = slice(start, start + per)
            wanted = flat[wide[part]]
            each = np.repeat(places[part], wanted.shape[1])
            below, _ = self._panels.around(np.maximum(wanted.reshape(-1), 0.0), each)
            out[wide[part]] = np.where(wanted < 0.0, 0.0, below.reshape(wanted.shape))
        return np.clip(out, 0.0, 1.0).reshape(count.shape)

    def _quantile(self, levels: FloatArray) -> FloatArray:
        out = np.empty_like(levels)
        narrow, wide = self._parted(levels.shape[1])
        for rows, low, table in self._summed(narrow, levels.shape[1]):
            total = np.cumsum(table, axis=0)
            total /= total[-1]
            aim = levels[rows].T
            out[rows] = (low + _first_reaching(total, aim - slack(aim))).T
        places = np.searchsorted(self._wide_rows, wide)
        per = max(_BLOCK // levels.shape[1], 1)
        for start in range(0, len(wide), per):
            part = slice(start, start + per)
            aim = levels[wide[part]]
            each = np.repeat(places[part], aim.shape[1])
            out[wide[part]] = self._seek(aim.reshape(-1), each).reshape(aim.shape)
        return out

    def _seek(self, levels: FloatArray, rows: IntArray) -> FloatArray:
        """Quantiles of wide rows, numbered among themselves."""
        panels = self._panels
        sd = np.sqrt(panels.variance[rows])
        bend = 1.0 / (panels.family.mu * panels.family.rate)[rows]
        guess = first_guess(levels, panels.mean[rows], sd, np.sqrt(bend), bend)
        return search(levels, guess, lambda counts, places: panels.around(counts, rows[places]))

    def _log_steps(self, counts: FloatArray, rows: IntArray) -> FloatArray:
        """rate · log(μ/(k+1)) + (spread − rate)(k log(1 + 1/k) − 1)."""
        mu, rate, spread = self._family.mu[rows], self._family.rate[rows], self._family.spread[rows]
        steps = rate * np.log(mu / (counts + 1.0))
        if (spread != rate).any():
            lean = counts * np.log1p(1.0 / np.maximum(counts, 1.0)) - 1.0
            steps += (spread - rate) * lean
        return np.asarray(steps)

    def _ends(self, depth: float) -> tuple[FloatArray, FloatArray]:
        """Where the weight's deviance reaches the depth: Newton's method, from outside.

        It starts from Bernstein's bound; the deviance is convex, so steps from outside stay there.
        """
        mu, reach = self._family.mu, depth / self._family.rate
        spread = np.sqrt(2.0 * reach * mu)
        high = mu + reach / 3.0 + np.sqrt(np.square(reach / 3.0) + np.square(spread))
        room = np.maximum(1.0 - reach / np.maximum(mu, reach), 1e-300)
        low = np.maximum(mu - spread, mu * room / (2.0 - 2.0 * np.log(room)))
        low[reach >= mu] = 0.0
        for _ in range(_ROUNDS):
            high, low = _closer(high, mu, reach), _closer(low, mu, reach)
        return np.maximum(np.floor(low) - 1.0, 0.0), np.ceil(high) + 1.0

    @cached_property
    def _window(self) -> tuple[FloatArray, FloatArray]:
        low, high = self._ends(_DEPTH)
        return low, high

    @cached_property
    def _wide_rows(self) -> IntArray:
        low, high = self._window
        return np.flatnonzero(high - low >= _NARROW)

    @cached_property
    def _panels(self) -> Panels:
        rows, (low, high) = self._wide_rows, self._window
        return Panels.settled(self._family.take(rows), low[rows], high[rows])

    @cached_property
    def _sums(self) -> _Sums:
        made = _Sums(*np.empty((3, len(self))))
        for rows, low, table in self._summed(self._parted(1)[0]):
            family = self._family.take(rows)
            places = np.arange(float(len(table)))[:, None]
            step = sum_down(places * table)
            peak = np.argmax(table, axis=0)
            largest = table[peak, np.arange(len(rows))]
            made.log_total[rows] = family.log_weight(low + peak) - np.log(largest)
            made.mean[rows] = low + step
            made.variance[rows] = sum_down(np.square(places - step) * table)
        wide, panels = self._wide_rows, self._panels
        made.log_total[wide] = panels.log_total()
        made.mean[wide], made.variance[wide] = panels.mean, panels.variance
        return made

    def _parted(self, each: int) -> tuple[IntArray, IntArray]:
        """Rows that are best summed count by count for so many answers each, and the others."""
        low, high = self._window
        narrow = high - low < max(_NARROW, _PER_LEVEL * each)
        return np.flatnonzero(narrow), np.flatnonzero(~narrow)

    def _summed(
        self, rows: IntArray, each: int = 1
    ) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        """Rows, their first counts, and tables of their probabilities."""
        low, high = self._window
        for places, table in self._tables(rows, low[rows], high[rows] - low[rows] + 1.0, each):
            yield rows[places], low[rows[places]], table


def _closer(at: FloatArray, mu: FloatArray, reach: FloatArray) -> FloatArray:
    """Newton's step towards D(k, μ) = reach from where D is larger; else no step."""
    depth = deviance(at, mu)
    with np.errstate(divide="ignore"):
        slope = np.log(at / mu)
    usable = (depth > reach) & np.isfinite(slope) & (slope != 0.0)
    step = np.divide(depth - reach, slope, out=np.zeros(len(at)), where=usable)
    found: FloatArray = at - step
    return found


def _first_reaching(total: FloatArray, levels: FloatArray) -> FloatArray:
    """First place in each column of rising totals that reaches each level, by bisection."""
    low = np.full(levels.shape, -1, dtype=np.int64)
    high = np.full(levels.shape, len(total) - 1, dtype=np.int64)
    for _ in range(len(total).bit_length()):
        middle = (low + high) // 2
        enough = np.take_along_axis(total, np.maximum(middle, 0), axis=0) >= levels
        open_ = high - low > 1
        high = np.where(open_ & enough, middle, high)
        low = np.where(open_ & ~enough, middle, low)
    return high.astype(np.float64)


# ---- wide laws of counts known up to a constant, summed by quadrature ----------------------------
# A law wider than some 150 counts is smooth from one count to the next. A sum over a run of counts
# is then an integral, by Gauss and Legendre's rule in √k, and an end correction from eight
# neighbouring counts (Euler and Maclaurin's formula in central differences). The work for a row
# does not depend on how wide its law is. Counts below 32, where the weights are not smooth, are
# summed one by one.

START = 32
"""Counts below are summed one by one."""

_PANEL_ROWS = 2048  # rows settled at once, which bounds memory
_PANEL_DEPTH = 34.0  # weights of e^-34 of the largest are left out
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_PLACES = ((_NODES + 1.0) / 2.0)[:, None]
_SHARES = (_WEIGHTS / 2.0)[:, None]
_OFFSETS = np.arange(-3.0, 5.0)[:, None]
_END = (
    -np.array([0, 0, 0, -1, 1, 0, 0, 0]) / 24.0
    + np.array([0, 0, -1, 3, -3, 1, 0, 0]) * (17.0 / 5760.0)
    - np.array([0, -1, 5, -10, 10, -5, 1, 0]) * (367.0 / 967680.0)
    + np.array([-1, 7, -21, 35, -35, 21, -7, 1]) * (27859.0 / 464486400.0)
)[:, None]
_LOG_2PI = float(np.log(2.0 * np.pi))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Weights of counts k ∝ exp(−rate · D(k, μ) − spread · S(k)), one law a row.

    D is `deviance`, S(k) is log k! − (k log k − k). Poisson: rate = spread = 1.
    """

    # shape (n,): all above 0
    mu: FloatArray
    rate: FloatArray
    spread: FloatArray

    def take(self, rows: IntArray | slice) -> Family:
        """The families of some rows."""
        return Family(self.mu[rows], self.rate[rows], self.spread[rows])

    def log_scale(self) -> FloatArray:
        """Log of the factor that makes the weight at μ about one: spread · ½ log(2πμ)."""
        return np.asarray(0.5 * self.spread * (_LOG_2PI + np.log(self.mu)))

    def log_weight(self, counts: FloatArray) -> FloatArray:
        """Log weights, scaled by that factor, of counts that broadcast with rows (last axis)."""
        some = np.where(counts > 0.0, counts, 1.0)
        lean = 0.5 * np.log(some / self.mu) + stirling_error(some)
        lean = np.where(counts > 0.0, lean, -0.5 * (_LOG_2PI + np.log(self.mu)))
        return -self.rate * deviance(counts, self.mu) - self.spread * lean

    def smooth(self, place: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scaled weights at real counts μ (1 + place)² of at least 28, and the counts less μ."""
        grown = place * (2.0 + place)
        away = self.mu * grown
        inverse = 1.0 / (self.mu + away)
        square = np.square(inverse)
        error = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0))
        log = 2.0 * np.log1p(place)
        depth = self.rate * (self.mu * (log - grown) + away * log)
        depth += self.spread * (0.5 * log + error)
        return np.exp(-depth), away

    def place(self, counts: FloatArray) -> FloatArray:
        """√(k/μ) − 1, with all its digits near μ."""
        found: FloatArray = (counts - self.mu) / (self.mu * (1.0 + np.sqrt(counts / self.mu)))
        return found

    def back(self, counts: FloatArray) -> FloatArray:
        """How far below a count its weight has fallen away, at most: D″ is at least 1/k there."""
        reach, log = _PANEL_DEPTH / self.rate, np.log(counts / self.mu)
        root = np.sqrt(np.square(log) + 2.0 * reach / counts)
        far = np.maximum(log, 0.0)
        return np.where(log > 0.0, counts * (far + root), 2.0 * reach / (root - log + 2.0 * far))

    def ahead(self, counts: FloatArray) -> FloatArray:
        """How far above a count its weight has fallen away, at most (Bernstein's bound).

        The root t of t log(k/μ) + t²/(2k + 2t/3) = reach.
        """
        reach, log = _PANEL_DEPTH / self.rate, np.maximum(np.log(counts / self.mu), 0.0)
        slope, steep = counts * log - reach / 3.0, 1.0 + 2.0 * log / 3.0
        outer = np.abs(slope) + np.sqrt(np.square(slope) + 2.0 * steep * reach * counts)
        return np.where(slope > 0.0, 2.0 * reach * counts / outer, outer / steep)

    def near(self) -> FloatArray:
        """Scaled weights of the counts 0, …, 39, shape (40, n)."""
        counts = np.arange(START + 8.0)[:, None]
        return np.asarray(np.exp(self.log_weight(counts)))

    def beside(self, counts: FloatArray) -> FloatArray:
        """Scaled weights of k − 3, …, k + 4 for counts k of at least 32, shape (8, n)."""
        return self.smooth(self.place(counts + _OFFSETS))[0]

    def integral(self, start: FloatArray, stop: FloatArray, moments: int = 0) -> FloatArray:
        """Integrals of the scaled weight times (k − μ)^p between two places, p = 0, 1, …"""
        length = stop - start
        place = start + length * _PLACES
        weight, away = self.smooth(place)
        weight *= (1.0 + place) * (2.0 * self.mu * length)
        weight *= _SHARES
        sums = np.empty((moments + 1, len(length)))
        for power in range(moments + 1):
            sums[power] = sum_down(weight)
            if power < moments:
                weight *= away
        return sums


@final
@dataclass(frozen=True, slots=True, eq=False)
class Panels:
    """Laws of a family with their sums."""

    family: Family  # the weights, n rows
    # shape (n,): sum of the scaled weights, and the law's moments
    total: FloatArray
    mean: FloatArray
    variance: FloatArray
    # shape (n,): place about which the law is divided into a left and a right tail
    split: FloatArray
    # shape (n,): sum of the weights of counts below 32 where there are any, less its end correction
    base: FloatArray

    @classmethod
    def settled(cls, family: Family, low: FloatArray, high: FloatArray) -> Self:
        """Sum laws whose mass lies between these counts."""
        found = np.empty((5, len(low)))
        for first in range(0, len(low), _PANEL_ROWS):
            part = slice(first, first + _PANEL_ROWS)
            found[:, part] = _settle(family.take(part), low[part], high[part])
        return cls(family, *found)

    def log_total(self) -> FloatArray:
        """Log of the sum of the scaled weights."""
        return np.asarray(np.log(self.total))

    def around(self, counts: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """The cdf of row ``rows[i]`` at a whole count of zero or more, and its neighbourhood."""
        cdf, shares = np.empty(len(counts)), np.empty((8, len(counts)))
        few = counts < START
        for chosen, answer in ((few, self._few), (~few, self._many)):
            places = np.flatnonzero(chosen)
            if len(places):
                cdf[places], shares[:, places] = answer(counts[places], rows[places])
        return cdf, shares

    def _few(self, counts: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        weight = self.family.take(rows).near() / self.total[rows]
        padded = np.concatenate([np.zeros((3, len(rows))), weight])
        line = counts.astype(np.int64) + np.arange(8)[:, None]
        below = np.cumsum(weight, axis=0)[counts.astype(np.int64), np.arange(len(rows))]
        return below, np.take_along_axis(padded, line, axis=0)

    def _many(self, counts: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        family, total = self.family.take(rows), self.total[rows]
        edge = counts + 0.5
        here = family.place(edge)
        left = here <= self.split[rows]
        other = np.where(
            left, np.maximum(edge - family.back(edge), START - 0.5), edge + family.ahead(edge)
        )
        there = family.place(other)
        weight = family.beside(counts)
        (area,) = family.integral(np.where(left, there, here), np.where(left, here, there))
        end = sum_down(_END * weight)
        below = (area + end + self.base[rows]) / total
        above = (area - end) / total
        return np.where(left, below, 1.0 - above), weight / total


def poisson_above(counts: FloatArray, mean: FloatArray) -> FloatArray:
    """Poisson's probability of more than each count, for counts above means of at least 32."""
    ones = np.ones(len(counts))
    family, edge = Family(mean, ones, ones), counts + 0.5
    (area,) = family.integral(family.place(edge), family.place(edge + family.ahead(edge)))
    end = sum_down(_END * family.beside(counts))
    return np.asarray((area - end) * np.exp(-family.log_scale()))


def _settle(family: Family, low: FloatArray, high: FloatArray) -> FloatArray:
    """Total, mean, variance, split and base of each row, shape (5, n)."""
    start = family.place(np.maximum(low, START) - 0.5)
    stop = family.place(high + 0.5)
    split = np.clip(_mode(family), start, stop)
    sums = family.integral(start, split, 2) + family.integral(split, stop, 2)
    base = np.zeros(len(low))
    rows = np.flatnonzero(low < START)
    if len(rows):
        weight = family.take(rows).near()
        away = np.arange(START + 8.0)[:, None] - family.mu[rows]
        parts = np.empty((3, len(rows)))
        for power in range(3):
            parts[power] = sum_down(weight[:START]) - sum_down(_END * weight[START - 4 : START + 4])
            weight *= away
        sums[:, rows] += parts
        base[rows] = parts[0]
    shift = sums[1] / sums[0]
    variance = sums[2] / sums[0] - np.square(shift)
    return np.stack([sums[0], family.mu + shift, variance, split, base])


def _mode(family: Family) -> FloatArray:
    """About where weight times count is largest: the root of k log(k/μ) = (1 − spread/2)/rate."""
    lean = (1.0 - 0.5 * family.spread) / family.rate
    shift = lean / (1.0 + np.log1p(np.maximum(lean, 0.0) / family.mu))
    return family.place(np.maximum(family.mu + shift, 1.0))


# ---- quantiles of laws of counts: a guess, the cdf around it, and steps towards the level --------

REACH = 4
"""The cdf around a guess is known at this many counts on either side."""

Around = Callable[[FloatArray, IntArray], tuple[FloatArray, FloatArray]]
"""``around(k, places)``: cdf at k, and probabilities of k − 3, …, k + 4 of shape (8, places)."""

_CLOSE = 1e-9  # sums of neighbours are truer than this
_NEWTON = 8  # rounds before the search only halves
_SEARCH_ROUNDS = 200
_SKEWED = 0.4


def slack(levels: FloatArray) -> FloatArray:
    """By how much a cdf may miss a level and count as reaching it: what its sums round."""
    return np.minimum(1e-8 * np.minimum(levels, 1.0 - levels), 2e-13) + 4e-16 * levels


def search(levels: FloatArray, guess: FloatArray, around: Around) -> FloatArray:
    """Smallest count whose cdf reaches each level."""
    wanted = levels - slack(levels)
    low, high = np.full(len(levels), -1.0), np.full(len(levels), np.inf)
    count, answer = guess.copy(), np.empty(len(levels))
    below_answer = np.empty(len(levels))  # the cdf one count under the answer
    open_ = np.arange(len(levels))
    for attempt in range(_SEARCH_ROUNDS):
        here, aim = count[open_], wanted[open_]
        total, shares = around(here, open_)
        values = np.empty((2 * REACH + 1, len(open_)))
        values[REACH] = total
        values[REACH + 1 :] = total + np.cumsum(shares[REACH:], axis=0)
        values[:REACH] = (total - np.cumsum(shares[REACH - 1 :: -1], axis=0))[::-1]
        values[here + np.arange(-REACH, REACH + 1.0)[:, None] < 0.0] = -1.0
        below = (values < aim).sum(axis=0)
        low[open_] = np.where(below > 2 * REACH, here + REACH, low[open_])
        high[open_] = np.where(below == 0, here - REACH, high[open_])
        answer[open_] = np.clip(here - REACH + below, low[open_] + 1.0, high[open_])
        under = np.clip(answer[open_] - 1.0 - here + REACH, 0.0, 2.0 * REACH).astype(np.int64)
        below_answer[open_] = values[under, np.arange(len(open_))]
        up = below > 2 * REACH
        missed = (up | (below == 0)) & (high[open_] - low[open_] > 1.0)
        if not missed.any():
            break
        open_, up, edge = open_[missed], up[missed], np.where(up, 2 * REACH, 0)[missed]
        slope = np.where(up, shares[-1, missed], shares[0, missed])
        gap = aim[missed] - values[edge, np.flatnonzero(missed)]
        with np.errstate(over="ignore"):  # far out in a tail: the bracket decides
            step = np.divide(gap, slope, out=np.zeros(len(open_)), where=slope > 0.0)
        target = count[open_] + edge - REACH + np.rint(step)
        count[open_] = _inside(target, low[open_], high[open_], halve=attempt >= _NEWTON)
    # Sums of neighbours round otherwise than the cdf itself, which decides where they meet.
    close = np.flatnonzero((answer > 0.0) & (below_answer > levels - _CLOSE))
    if len(close):
        reached, _ = around(answer[close] - 1.0, close)
        answer[close] -= reached >= levels[close]
    return answer


def _inside(target: FloatArray, low: FloatArray, high: FloatArray, *, halve: bool) -> FloatArray:
    """Newton's target where it helps, or else the middle of the bracket; upwards, a doubling."""
    endless = np.isinf(high)
    middle = np.where(
        endless, 2.0 * low + 8.0, np.floor((low + np.where(endless, low, high)) / 2.0)
    )
    most = np.where(endless, 8.0 * low + 64.0, high)
    helps = (target > low) & (target < most) & (not halve)
    return np.maximum(np.where(helps, target, middle), 0.0)


def first_guess(
    levels: FloatArray,
    mean: FloatArray,
    sd: FloatArray,
    skewness: FloatArray,
    kurtosis: FloatArray,
) -> FloatArray:
    """Quantiles of a continuous law with these moments, rounded up to counts.

    Nearly normal laws by the expansion of Cornish and Fisher, skewed ones by a gamma law.
    """
    z = ndtri(levels)
    square = np.square(z)
    curve = skewness * (square - 1.0) / 6.0
    curve += z * (
        kurtosis * (square - 3.0) / 24.0 - np.square(skewness) * (2.0 * square - 5.0) / 36.0
    )
    found: FloatArray = mean + sd * (z + curve)
    skewed = np.flatnonzero((skewness > _SKEWED) & (mean > 0.0))
    if len(skewed):
        shape = np.square(mean[skewed] / sd[skewed])
        found[skewed] = gammaincinv(shape, levels[skewed]) * mean[skewed] / shape
    return np.maximum(np.ceil(found - 0.5), 0.0)


# ---- the Conway–Maxwell–Poisson law --------------------------------------------------------------


@final
class ConwayMaxwellPoisson(Dispersed):
    """Conway–Maxwell–Poisson law, p(k) ∝ (μ^k / k!)^ν.

    The usual rate is λ = μ^ν. ν = 1 gives the Poisson law, ν > 1 less dispersion, ν < 1 more;
    the mode is ⌊μ⌋ and the variance about μ/ν.

    Parameters
    ----------
    mu : array-like of shape (n,)
        μ, from 1e-100 to 1e15.
    nu : array-like of shape (n,)
        ν, from 1e-15 to 1e15.

    Raises
    ------
    InputError
        If a parameter lies outside its domain.

    References
    ----------
    Guikema and Goffelt (2008), A flexible count data regression model for risk analysis.

    Examples
    --------
    >>> ConwayMaxwellPoisson([3.0], [1.0]).mean().round(9).tolist()
    [3.0]
    """

    def __init__(self, mu: npt.ArrayLike, nu: npt.ArrayLike) -> None:
        where = location(mu, "mu")
        power = exponent(nu, "nu", len(where))
        self._family = Family(where, power, power)

    def take(self, rows: IntArray) -> Self:
        """The laws of some rows."""
        return type(self)(self._family.mu[rows], self._family.rate[rows])


# ---- the double Poisson law ----------------------------------------------------------------------

Normalization = Literal["exact", "efron", "none"]
"""How the double Poisson's probabilities are made to sum to one."""


@final
class DoublePoisson(Dispersed):
    """Double Poisson law of Efron: a Poisson law raised to a power and a saturated one.

    log p(k) = ½ log φ − φμ − k + k log k − log k! + φ(k + k log μ − k log k) − log of the sum;
    the mean is about μ and the variance about μ/φ, both worse the smaller φμ is. Mean and
    variance here are those of the law itself.

    Parameters
    ----------
    mu : array-like of shape (n,)
        μ, from 1e-100 to 1e15.
    phi : array-like of shape (n,)
        φ, from 1e-15 to 1e15; 1 gives the Poisson law.

    Raises
    ------
    InputError
        If a parameter lies outside its domain.

    References
    ----------
    Efron (1986), Double exponential families and their use in generalized linear regression.

    Examples
    --------
    >>> law = DoublePoisson([2.0], [0.2])
    >>> law.mean().round(2).tolist()
    [2.6]
    """

    def __init__(self, mu: npt.ArrayLike, phi: npt.ArrayLike) -> None:
        where = location(mu, "mu")
        share = exponent(phi, "phi", len(where))
        self._family = Family(where, share, np.ones(len(where)))

    def take(self, rows: IntArray) -> Self:
        """The laws of some rows."""
        return type(self)(self._family.mu[rows], self._family.rate[rows])

    def log_pmf(self, counts: npt.ArrayLike, normalization: Normalization = "exact") -> FloatArray:
        """Log probability of counts.

        Parameters
        ----------
        counts : array-like of shape (n,) or (n, m)
            −∞ is the answer where one is negative or not whole.
        normalization : {"exact", "efron", "none"}
            ``exact`` sums to one. ``none`` leaves the constant out, as published likelihoods
            of networks do; ``efron`` multiplies by `efron_constant`.

        Returns
        -------
        ndarray of float

        Raises
        ------
        InputError
            If the shape does not fit, or Efron's constant is asked for where it is not positive.
        """
        if normalization not in ("exact", "efron", "none"):
            raise InputError(f"normalization must be exact, efron or none, got {normalization!r}")
        exact = super().log_pmf(counts)
        if normalization == "exact":
            return exact
        phi = self._family.rate
        constant = self._sums.log_total - self._family.log_scale() + 0.5 * np.log(phi)
        if normalization == "efron":
            constant += np.log(efron_constant(self._family.mu, phi))
        return exact + (constant if exact.ndim == 1 else constant[:, None])


def efron_constant(mu: npt.ArrayLike, phi: npt.ArrayLike) -> FloatArray:
    """Efron's approximate constant of the double Poisson law.

    1/c = 1 + (1−φ)/(12μφ) · (1 + 1/(μφ)). Within 0.3 % of the exact constant for μ ≥ 5 and
    φ ≥ 0.5; poor below μφ of about 2, and without meaning where 1/c is not positive.

    Parameters
    ----------
    mu, phi : array-like of shape (n,)
        μ, from 1e-100 to 1e15, and φ, from 1e-15 to 1e15.

    Returns
    -------
    ndarray of float, shape (n,)
        c.

    Raises
    ------
    InputError
        If a parameter lies outside its domain, or 1/c is not positive.

    References
    ----------
    Efron (1986), Double exponential families and their use in generalized linear regression.

    Examples
    --------
    >>> efron_constant([10.0], [0.5])
    array([0.99009901])
    """
    where = location(mu, "mu")
    power = exponent(phi, "phi", len(where))
    scaled = where * power
    inverse = 1.0 + (1.0 - power) / (12.0 * scaled) * (1.0 + 1.0 / scaled)
    if (inverse <= 0.0).any():
        row = int(np.argmin(inverse))
        raise InputError(
            "Efron's constant exists only where its reciprocal is positive, got "
            f"{inverse[row]:.3g} at row {row} (mu {where[row]:g}, phi {power[row]:g})"
        )
    constant: FloatArray = 1.0 / inverse
    return constant
