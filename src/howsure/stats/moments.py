"""Mass, means and central moments of row values: of parts, merged into those of the whole.

Sums of powers cancel where a mean is large beside its standard deviation, so moments are taken
about the mean of their own rows and moved when parts are merged (P. Pébay, Sandia report
SAND2008-6212, 2008). Three moments are all that a standard error and its skewness need.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen


@frozen(eq=False)
class Moments:
    """Of p columns of row values in c cells, each column by itself."""

    mass: FloatArray  # shape (c,): sum of the weights in each cell
    # shape (c, p): weighted mean, and sums of squares and of cubes about it
    mean: FloatArray
    second: FloatArray
    third: FloatArray

    @classmethod
    def of(
        cls,
        columns: Sequence[FloatArray],
        codes: IntArray,
        size: int,
        weights: FloatArray | None = None,
    ) -> Moments:
        """Of rows whose cells are given by codes below `size`."""
        mass = np.bincount(codes, weights=weights, minlength=size).astype(np.float64)
        empty = np.where(mass > 0.0, mass, 1.0)
        moments = np.zeros((3, size, len(columns)))
        for position, values in enumerate(columns):
            weighted = values if weights is None else weights * values
            mean = np.bincount(codes, weights=weighted, minlength=size) / empty
            off = values - mean[codes]
            # what rounding left of the mean: the mean then holds to the last digit
            moved = off if weights is None else weights * off
            rounding = np.bincount(codes, weights=moved, minlength=size) / empty
            square = moved * off
            second = np.bincount(codes, weights=square, minlength=size)
            third = np.bincount(codes, weights=square * off, minlength=size)
            moments[:, :, position] = _added(mean, rounding), second, third
        return cls(mass, *moments)

    @np.errstate(invalid="ignore")
    def merged(self, other: Moments) -> Moments:
        """Of the rows of both, whose cells are the same; values may be infinite."""
        mass = self.mass + other.mass
        safe = np.where(mass > 0.0, mass, 1.0)[:, None]
        a, b = self.mass[:, None], other.mass[:, None]
        gap = other.mean - self.mean
        cross = a * b / safe
        second = self.second + other.second + cross * np.square(gap)
        third = (
            self.third
            + other.third
            + cross * (a - b) / safe * gap**3
            + 3.0 * gap * (a * other.second - b * self.second) / safe
        )
        return Moments(mass, _between(self.mean, other.mean, b / safe), second, third)

    def placed(self, codes: IntArray, size: int) -> Moments:
        """The same with each cell at another place, or several cells made one."""
        order = np.argsort(codes, kind="stable")
        total = Moments(np.zeros(size), *np.zeros((3, size, self.mean.shape[1])))
        turn = _occurrence(codes[order])
        for number in range(int(turn.max(initial=-1)) + 1):
            rows = order[turn == number]
            batch = Moments(np.zeros(size), *np.zeros((3, size, self.mean.shape[1])))
            for name in ("mass", "mean", "second", "third"):
                getattr(batch, name)[codes[rows]] = getattr(self, name)[rows]
            total = total.merged(batch)
        return total


@frozen(eq=False)
class Joint:
    """Of p columns of row values together, and of q − p further ones beside them, over all rows."""

    mass: float  # sum of the weights
    # shape (q,): weighted means, and extremes
    mean: FloatArray
    least: FloatArray
    greatest: FloatArray
    second: FloatArray  # shape (p, p): sums of products of two deviations
    third: FloatArray  # shape (p, p, p): sums of products of three

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(
        cls,
        columns: Sequence[FloatArray],
        further: Sequence[FloatArray] = (),
        weights: FloatArray | None = None,
        *,
        cubes: bool = True,
    ) -> Joint:
        """Of rows, some infinite perhaps; without `cubes`, which take longest, these are NaN."""
        every = np.stack([*columns, *further])
        if weights is not None and not weights.all():  # rows of no weight may hold infinity
            every, weights = every[:, weights > 0.0], weights[weights > 0.0]
        mean = np.average(every, axis=1, weights=weights)
        least, greatest = every.min(axis=1), every.max(axis=1)
        off = every[: len(columns)]
        off -= mean[: len(columns), None]  # in place: of a million rows each copy takes its time
        moved = off if weights is None else off * weights
        p, n = off.shape
        mass = float(n if weights is None else weights.sum())
        mean[:p] = _added(mean[:p], moved.sum(axis=1) / mass)
        third = np.full((p, p, p), np.nan)
        for i in range(p if cubes else 0):
            for j in range(i + 1):
                third[i, j] = third[j, i] = moved @ (off[i] * off[j])
        return cls(mass, mean, least, greatest, moved @ off.T, third)

    def merged(self, other: Joint) -> Joint:
        """Of the rows of both."""
        a, b, mass = self.mass, other.mass, self.mass + other.mass
        every = other.mean - self.mean
        gap = every[: len(self.second)]
        outer = np.multiply.outer(gap, gap)
        turned = a / mass * other.second - b / mass * self.second
        return Joint(
            mass,
            _between(self.mean, other.mean, b / mass),
            np.minimum(self.least, other.least),
            np.maximum(self.greatest, other.greatest),
            self.second + other.second + a * b / mass * outer,
            self.third
            + other.third
            + a * b * (a - b) / mass**2 * np.multiply.outer(outer, gap)
            + _symmetric(gap, turned),
        )

    def counting_as(self, n: float) -> Joint:
        """The same of weights whose sum is n."""
        times = n / self.mass
        sums = (times * self.second, times * self.third)
        return Joint(n, self.mean, self.least, self.greatest, *sums)

    def moved(self, position: int, by: float) -> Joint:
        """The same of rows whose column at a place, squared in the next one, is less by a number.

        The extremes of the squares are then unknown.
        """
        square = position + 1
        mean, least, greatest = self.mean.copy(), self.least.copy(), self.greatest.copy()
        mean[square] += by * (by - 2.0 * mean[position])  # (u − d)² = u² − 2du + d²
        mean[position] -= by
        for ends in (least, greatest):
            ends[position] -= by
            ends[square] = np.nan
        second, third = self.second.copy(), self.third.copy()
        for moments in (second, third):  # which are linear in each column, and some may be infinite
            for axis in range(moments.ndim):
                rows = np.moveaxis(moments, axis, 0)
                rows[square] -= 2.0 * by * rows[position]
        return Joint(self.mass, mean, least, greatest, second, third)

    @np.errstate(over="ignore", invalid="ignore")
    def is_representable(self) -> bool:
        """Whether cubes of all columns that vary are numbers, neither 0 nor infinite."""
        p = len(self.second)
        least, greatest = self.least[:p], self.greatest[:p]
        sizes = np.sqrt(np.maximum(np.diag(self.second), 0.0) / self.mass)
        moved = np.flatnonzero(np.isnan(least))  # squares of the column before
        sizes[moved] = np.square(sizes[moved - 1])
        cubes = self.mass * sizes**3
        return bool((np.isfinite(cubes) & (cubes > _LEAST_CUBE) | (least == greatest)).all())

    def powers(self, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sums of the squares and of the cubes of slopes · (row − mean), each shape (1,)."""
        second = max(float(slopes @ self.second @ slopes), 0.0)
        third = float(np.einsum("abc,a,b,c->", self.third, slopes, slopes, slopes))
        return np.array([second]), np.array([third])


_LEAST_CUBE = 1e-290  # below, numbers lose digits


def _added(mean: FloatArray, rounding: FloatArray) -> FloatArray:
    """Means with what rounding left of them; infinite ones stay."""
    return np.where(np.isfinite(mean), mean + rounding, mean)


def _between(first: FloatArray, other: FloatArray, share: FloatArray | float) -> FloatArray:
    """Means of both, this share of them the other's; infinite where one is."""
    finite = np.isfinite(first) & np.isfinite(other)
    return np.where(finite, first + (other - first) * share, first + other)


def _occurrence(ranked: IntArray) -> IntArray:
    """How often each of some sorted codes came before."""
    starts = np.flatnonzero(np.diff(ranked, prepend=-1))
    counts = np.diff(np.append(starts, len(ranked)))
    return np.asarray(np.arange(len(ranked)) - np.repeat(starts, counts))


def _symmetric(gap: FloatArray, second: FloatArray) -> FloatArray:
    """The sum of gap times second over the three places that gap can take."""
    return np.asarray(
        np.einsum("a,bc->abc", gap, second)
        + np.einsum("b,ac->abc", gap, second)
        + np.einsum("c,ab->abc", gap, second)
    )
