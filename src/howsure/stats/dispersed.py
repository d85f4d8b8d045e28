"""Laws of counts known up to a constant: double Poisson and Conway–Maxwell–Poisson.

They are normalised by summing a window around each row's mean outside which the mass is below
rounding; their moments come from the same sums.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.stats.count_formulas import at_whole, deviance, log_spread, positive
from howsure.stats.counts import CountLaw

Normalization = Literal["exact", "efron", "none"]

_DEPTH = 60.0  # windows reach to a relative weight of e^-60, with room for slow factors
_CHUNK = 1 << 21  # table entries held at once
_WIDEST = 1 << 25


class Tabulated(CountLaw):
    """A law known up to a constant, ∝ exp(−rate · D(k, μ) − …), summed over a window."""

    __slots__ = ()

    location: FloatArray
    _log_total: FloatArray
    _first: FloatArray
    _second: FloatArray

    @abstractmethod
    def _rate(self) -> FloatArray:
        """How fast the log weight falls with the deviance D."""

    @abstractmethod
    def _log_weight(self, counts: FloatArray, rows: IntArray | slice) -> FloatArray:
        """Log weights (before normalisation) of whole counts of shape (rows, w)."""

    def __len__(self) -> int:
        return len(self.location)

    def mean(self) -> FloatArray:
        return self._first

    def variance(self) -> FloatArray:
        return self._second

    def cdf(self, counts: npt.ArrayLike) -> FloatArray:
        count = np.floor(self._shaped(counts, "counts"))
        flat = count.reshape(len(self), -1)
        out = np.empty_like(flat)
        for rows, low, table in self._tables():
            total = np.cumsum(table, axis=1)
            total /= total[:, -1:]
            place = np.clip(flat[rows] - low[:, None], -1, table.shape[1] - 1).astype(np.int64)
            found = np.take_along_axis(total, np.maximum(place, 0), axis=1)
            out[rows] = np.where(place < 0, 0.0, found)
        return out.reshape(count.shape)

    def _search(self, levels: FloatArray) -> FloatArray:
        out = np.empty_like(levels)
        for rows, low, table in self._tables():
            total = np.cumsum(table, axis=1)
            total /= total[:, -1:]
            out[rows] = low[:, None] + _first_reaching(total, levels[rows])
        return out

    def _log_weights(self, counts: FloatArray) -> FloatArray:
        return self._log_weight(counts, slice(None))

    def _settle(self) -> None:
        """Sum every row's window once: the constant, the mean and the variance."""
        constants = np.empty((3, len(self)))
        for rows, low, table in self._tables(constants[0]):
            places = np.arange(table.shape[1])
            step = table @ places
            centred = places - step[:, None]
            constants[1, rows] = low + step
            constants[2, rows] = np.einsum("ij,ij,ij->i", table, centred, centred)
        for name, values in zip(("_log_total", "_first", "_second"), constants, strict=True):
            object.__setattr__(self, name, values)

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Where the weight falls below rounding, by Bernstein's bound on the deviance."""
        depth = _DEPTH / self._rate()
        reach = np.sqrt(2.0 * depth * self.location)
        low = np.maximum(np.floor(self.location - reach) - 1.0, 0.0)
        above = depth / 3.0 + np.sqrt(np.square(depth / 3.0) + np.square(reach))
        high = np.ceil(self.location + above) + 1.0
        if (high - low).max() > _WIDEST:
            row = int(np.argmax(high - low))
            raise InputError(
                f"parameters must leave a window of at most {_WIDEST} counts, got "
                f"{high[row] - low[row]:.3g} at row {row}"
            )
        return low, high

    def _tables(
        self, constants: FloatArray | None = None
    ) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        """Rows of like width together: their numbers, first counts and probabilities.

        With an array of constants the tables are normalised here and their log sums are put
        there; otherwise by the constants already known.
        """
        low, high = self._ends()
        order = np.argsort(high - low, kind="stable")
        widths = (high - low)[order]
        start = 0
        while start < len(order):
            stop = _chunk_end(widths, start)
            rows: IntArray = order[start:stop]
            width = int(widths[stop - 1]) + 1
            weight = self._log_weight(low[rows, None] + np.arange(width), rows)
            peak = weight.max(axis=1, keepdims=True)
            table = np.exp(weight - peak)
            total = table.sum(axis=1, keepdims=True)
            if constants is not None:
                constants[rows] = (peak + np.log(total))[:, 0]
            yield rows, low[rows], table / total
            start = stop


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class DoublePoisson(Tabulated):
    """Double Poisson law of Efron: a Poisson law raised to a power and a saturated one.

    log p(k) = ½ log φ − φμ − k + k log k − log k! + φ(k + k log μ − k log k) − log of the sum;
    the mean is about μ and the variance about μ/φ, both worse the smaller φμ is. Mean and
    variance here are those of the law itself.

    Parameters
    ----------
    location : array-like of shape (n,)
        μ, positive.
    precision : array-like of shape (n,)
        φ, positive; 1 gives the Poisson law.

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

    location: FloatArray
    precision: FloatArray
    _log_total: FloatArray
    _first: FloatArray
    _second: FloatArray

    def __init__(self, location: npt.ArrayLike, precision: npt.ArrayLike) -> None:
        where = positive(location, "location")
        object.__setattr__(self, "location", where)
        object.__setattr__(self, "precision", positive(precision, "precision", len(where)))
        self._settle()

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
        count = self._shaped(counts, "counts")
        flat = count.reshape(len(self), -1)
        raw = at_whole(flat, lambda k: self._log_weight(k, slice(None)))
        if normalization == "exact":
            raw -= self._log_total[:, None]
        if normalization == "efron":
            raw += np.log(efron_constant(self.location, self.precision))[:, None]
        return raw.reshape(count.shape)

    def _rate(self) -> FloatArray:
        return self.precision

    def _log_weight(self, counts: FloatArray, rows: IntArray | slice) -> FloatArray:
        location, precision = self.location[rows, None], self.precision[rows, None]
        return 0.5 * np.log(precision) - precision * deviance(counts, location) - log_spread(counts)


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class ConwayMaxwellPoisson(Tabulated):
    """Conway–Maxwell–Poisson law, p(k) ∝ (μ^k / k!)^ν.

    The usual rate is λ = μ^ν. ν = 1 gives the Poisson law, ν > 1 less dispersion, ν < 1 more;
    the mode is ⌊μ⌋ and the variance about μ/ν.

    Parameters
    ----------
    location : array-like of shape (n,)
        μ, positive.
    power : array-like of shape (n,)
        ν, positive.

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

    location: FloatArray
    power: FloatArray
    _log_total: FloatArray
    _first: FloatArray
    _second: FloatArray

    def __init__(self, location: npt.ArrayLike, power: npt.ArrayLike) -> None:
        where = positive(location, "location")
        object.__setattr__(self, "location", where)
        object.__setattr__(self, "power", positive(power, "power", len(where)))
        self._settle()

    def log_pmf(self, counts: npt.ArrayLike) -> FloatArray:
        count = self._shaped(counts, "counts")
        flat = count.reshape(len(self), -1)
        raw = at_whole(flat, lambda k: self._log_weight(k, slice(None)))
        return (raw - self._log_total[:, None]).reshape(count.shape)

    def _rate(self) -> FloatArray:
        return self.power

    def _log_weight(self, counts: FloatArray, rows: IntArray | slice) -> FloatArray:
        location, power = self.location[rows, None], self.power[rows, None]
        return -power * (deviance(counts, location) + log_spread(counts))


def efron_constant(location: npt.ArrayLike, precision: npt.ArrayLike) -> FloatArray:
    """Efron's approximate constant of the double Poisson law.

    1/c = 1 + (1−φ)/(12μφ) · (1 + 1/(μφ)). Within 0.3 % of the exact constant for μ ≥ 5 and
    φ ≥ 0.5; poor below μφ of about 2, and without meaning where 1/c is not positive.

    Parameters
    ----------
    location, precision : array-like of shape (n,)
        μ and φ, positive.

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
    where = positive(location, "location")
    power = positive(precision, "precision", len(where))
    scaled = where * power
    inverse = 1.0 + (1.0 - power) / (12.0 * scaled) * (1.0 + 1.0 / scaled)
    if (inverse <= 0.0).any():
        row = int(np.argmin(inverse))
        raise InputError(
            "Efron's constant exists only where its reciprocal is positive, got "
            f"{inverse[row]:.3g} at row {row} (location {where[row]:g}, precision {power[row]:g})"
        )
    constant: FloatArray = 1.0 / inverse
    return constant


def _chunk_end(widths: FloatArray, start: int) -> int:
    """Where a chunk of rows of rising width ends so that its table stays small."""
    stop = start + 1
    while stop < len(widths) and (stop + 1 - start) * (widths[stop] + 1.0) <= _CHUNK:
        stop += 1
    return stop


def _first_reaching(total: FloatArray, levels: FloatArray) -> FloatArray:
    """First column of each row of rising totals that reaches each level, by bisection."""
    low = np.full(levels.shape, -1, dtype=np.int64)
    high = np.full(levels.shape, total.shape[1] - 1, dtype=np.int64)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = np.take_along_axis(total, np.maximum(middle, 0), axis=1) >= levels
        open_ = high - low > 1
        high = np.where(open_ & enough, middle, high)
        low = np.where(open_ & ~enough, middle, low)
    return high.astype(np.float64)
