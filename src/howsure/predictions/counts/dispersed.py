"""Laws of counts known up to a constant.

Narrow laws are summed count by count, wide ones by quadrature; their moments come from the same
sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.predictions.counts.base import BEYOND, CountLaw
from howsure.predictions.counts.formulas import at_whole, deviance, sum_down
from howsure.predictions.counts.panels import Family, Panels
from howsure.predictions.counts.search import first_guess, search, slack

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
