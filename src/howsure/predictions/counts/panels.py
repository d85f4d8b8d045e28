"""Wide laws of counts known up to a constant, summed by quadrature.

A law wider than some 150 counts is smooth from one count to the next. A sum over a run of counts
is then an integral, by Gauss and Legendre's rule in √k, and an end correction from eight
neighbouring counts (Euler and Maclaurin's formula in central differences). The work for a row does
not depend on how wide its law is. Counts below 32, where the weights are not smooth, are summed one
by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.predictions.counts.formulas import deviance, stirling_error, sum_down

START = 32
"""Counts below are summed one by one."""

_BLOCK = 2048  # rows settled at once, which bounds memory
_DEPTH = 34.0  # weights of e^-34 of the largest are left out
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
        reach, log = _DEPTH / self.rate, np.log(counts / self.mu)
        root = np.sqrt(np.square(log) + 2.0 * reach / counts)
        far = np.maximum(log, 0.0)
        return np.where(log > 0.0, counts * (far + root), 2.0 * reach / (root - log + 2.0 * far))

    def ahead(self, counts: FloatArray) -> FloatArray:
        """How far above a count its weight has fallen away, at most (Bernstein's bound).

        The root t of t log(k/μ) + t²/(2k + 2t/3) = reach.
        """
        reach, log = _DEPTH / self.rate, np.maximum(np.log(counts / self.mu), 0.0)
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
        for first in range(0, len(low), _BLOCK):
            part = slice(first, first + _BLOCK)
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
