"""Noise laws with mean 0 and, where it exists, standard deviation 1.

A world's noise is a law of this list times the world's scale at x. Draws are quantiles of uniform
numbers, one a draw: the first draws do not depend on how many follow, and worlds that differ in
their noise law alone share their random numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, final

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Checked, Fraction, Positive
from howsure.core.registry import check_known

_LOG_2PI: Final = math.log(2.0 * math.pi)
_HALVINGS: Final = 70  # of a bracket of width 100: below the spacing of doubles near 1e-17


class Noise(ABC):
    """A standardised distribution. Subclasses are final.

    Every method works elementwise on arrays of any shape. The mean is 0. The standard deviation
    `sd` is 1, or infinite: then the law keeps its natural scale.
    """

    __slots__ = ()
    name: ClassVar[str]

    @property
    def sd(self) -> float:
        """Standard deviation: 1, or infinite."""
        return 1.0

    @abstractmethod
    def cdf(self, z: FloatArray) -> FloatArray:
        """P(Z ≤ z)."""

    @abstractmethod
    def quantile(self, level: FloatArray) -> FloatArray:
        """The z with P(Z ≤ z) = level, for levels in (0, 1)."""

    @abstractmethod
    def log_density(self, z: FloatArray) -> FloatArray:
        """Log density, −inf where there is none."""

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws, shape (size,)."""
        return self.quantile(np.maximum(rng.random(size), 2.0**-54))


@final
@frozen
class Normal(Noise):
    """The standard normal distribution.

    Examples
    --------
    >>> Normal().cdf(np.array([0.0]))
    array([0.5])
    """

    name: ClassVar[str] = "normal"

    def cdf(self, z: FloatArray) -> FloatArray:
        return np.asarray(special.ndtr(z))

    def quantile(self, level: FloatArray) -> FloatArray:
        return np.asarray(special.ndtri(level))

    def log_density(self, z: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * np.square(z) - 0.5 * _LOG_2PI)


@final
@frozen
class StudentT(Noise, Checked):
    """Student's t, scaled to standard deviation 1 where that exists.

    Parameters
    ----------
    freedom : float
        Degrees of freedom, above 1 so that the mean exists; up to 2 the standard deviation is
        infinite, and the law is not scaled.

    Raises
    ------
    InputError
        If the degrees of freedom are not finite or not above 1.

    Examples
    --------
    >>> StudentT(3.0).sd, StudentT(1.5).sd
    (1.0, inf)
    """

    name: ClassVar[str] = "student_t"
    freedom: Annotated[float, Bound(1.0, ends="()")] = 3.0

    @property
    def sd(self) -> float:
        """1, or infinite for at most 2 degrees of freedom."""
        return 1.0 if self.freedom > 2 else math.inf

    @property
    def _unit(self) -> float:
        """How many standardised units one unit of Student's t is."""
        return math.sqrt((self.freedom - 2) / self.freedom) if self.freedom > 2 else 1.0

    def cdf(self, z: FloatArray) -> FloatArray:
        return np.asarray(special.stdtr(self.freedom, z / self._unit))

    def quantile(self, level: FloatArray) -> FloatArray:
        return np.asarray(special.stdtrit(self.freedom, level) * self._unit)

    def log_density(self, z: FloatArray) -> FloatArray:
        half = (self.freedom + 1) / 2
        constant = -special.betaln(self.freedom / 2, 0.5) - 0.5 * math.log(self.freedom)
        tail = half * np.log1p(np.square(z / self._unit) / self.freedom)
        return np.asarray(constant - math.log(self._unit) - tail)


@final
@frozen
class CentredGamma(Noise, Checked):
    """A gamma distribution less its mean, scaled to standard deviation 1: (G − k)/√k.

    Parameters
    ----------
    shape : float
        k, above 0. The default 0.1 is far from normal: skewness 2/√k ≈ 6.3, and 2 % of its mass
        lies within a rounding error of its least value −√k. There y cannot be told from that
        value, and probabilities of intervals that end there are right to a few hundredths only.

    Raises
    ------
    InputError
        If the shape is not a finite number above 0.

    Examples
    --------
    >>> CentredGamma(4.0).quantile(np.array([0.5]))
    array([-0.164])
    """

    name: ClassVar[str] = "gamma"
    shape: Positive = 0.1

    def _gamma(self, z: FloatArray) -> FloatArray:
        return np.maximum(self.shape + math.sqrt(self.shape) * z, 0.0)

    def cdf(self, z: FloatArray) -> FloatArray:
        return np.asarray(special.gammainc(self.shape, self._gamma(z)))

    def quantile(self, level: FloatArray) -> FloatArray:
        drawn = special.gammaincinv(self.shape, level)
        return np.asarray((drawn - self.shape) / math.sqrt(self.shape))

    def log_density(self, z: FloatArray) -> FloatArray:
        """Log density, −inf at and below the least value −√k."""
        value = self._gamma(z)
        inside = value > 0
        safe = np.where(inside, value, 1.0)
        log = (self.shape - 1) * np.log(safe) - safe - special.gammaln(self.shape)
        return np.where(inside, log + 0.5 * math.log(self.shape), -np.inf)


@final
@frozen
class Skewed(Noise, Checked):
    """The skew-normal distribution (Azzalini 1985), standardised.

    Parameters
    ----------
    slant : float
        Its slant; 0 is the normal law, the default 5 has skewness 0.85.

    Raises
    ------
    InputError
        If the slant is not finite.

    Examples
    --------
    >>> Skewed(5.0).cdf(np.array([0.0])).round(3)
    array([0.566])
    """

    name: ClassVar[str] = "skewed"
    slant: Annotated[float, Bound(ends="()")] = 5.0

    @property
    def _moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the law before it is standardised."""
        mean = self.slant / math.hypot(1.0, self.slant) * math.sqrt(2.0 / math.pi)
        return mean, math.sqrt(1.0 - mean * mean)

    def cdf(self, z: FloatArray) -> FloatArray:
        mean, sd = self._moments
        raw = np.clip(mean + sd * np.asarray(z), -40.0, 40.0)
        return np.asarray(special.ndtr(raw) - 2.0 * special.owens_t(raw, self.slant))

    def quantile(self, level: FloatArray) -> FloatArray:
        return _inverted(self.cdf, level)

    def log_density(self, z: FloatArray) -> FloatArray:
        mean, sd = self._moments
        raw = mean + sd * np.asarray(z)
        normal = -0.5 * np.square(raw) - 0.5 * _LOG_2PI
        return np.asarray(math.log(2.0 * sd) + normal + special.log_ndtr(self.slant * raw))


@final
@frozen
class Mixture(Noise, Checked):
    """Two equal normal distributions about −offset and +offset, of total standard deviation 1.

    Parameters
    ----------
    offset : float
        In (0, 1); each part has standard deviation √(1 − offset²). Above 1/√2 there are two
        modes.

    Raises
    ------
    InputError
        If the offset leaves (0, 1).

    Examples
    --------
    >>> Mixture().cdf(np.array([0.0]))
    array([0.5])
    """

    name: ClassVar[str] = "mixture"
    offset: Fraction = 0.9

    @property
    def _scale_of_part(self) -> float:
        return math.sqrt(1.0 - self.offset**2)

    def cdf(self, z: FloatArray) -> FloatArray:
        left = special.ndtr((z + self.offset) / self._scale_of_part)
        right = special.ndtr((z - self.offset) / self._scale_of_part)
        return np.asarray(0.5 * (left + right))

    def quantile(self, level: FloatArray) -> FloatArray:
        return _inverted(self.cdf, level)

    def log_density(self, z: FloatArray) -> FloatArray:
        left = -0.5 * np.square((z + self.offset) / self._scale_of_part)
        right = -0.5 * np.square((z - self.offset) / self._scale_of_part)
        constant = math.log(0.5 / self._scale_of_part) - 0.5 * _LOG_2PI
        return np.asarray(np.logaddexp(left, right) + constant)


@final
@frozen
class Laplace(Noise):
    """The double exponential distribution of standard deviation 1.

    Examples
    --------
    >>> Laplace().quantile(np.array([0.5]))
    array([0.])
    """

    name: ClassVar[str] = "laplace"

    def cdf(self, z: FloatArray) -> FloatArray:
        tail = 0.5 * np.exp(-math.sqrt(2.0) * np.abs(z))
        return np.where(np.asarray(z) < 0, tail, 1.0 - tail)

    def quantile(self, level: FloatArray) -> FloatArray:
        tail = np.minimum(level, 1.0 - level)
        size = -np.log(2.0 * tail) / math.sqrt(2.0)
        return np.where(level < 0.5, -size, size)

    def log_density(self, z: FloatArray) -> FloatArray:
        return np.asarray(-math.sqrt(2.0) * np.abs(z) - 0.5 * math.log(2.0))


@final
@frozen
class Uniform(Noise):
    """The uniform distribution on [−√3, √3].

    Examples
    --------
    >>> Uniform().quantile(np.array([0.5]))
    array([0.])
    """

    name: ClassVar[str] = "uniform"

    def cdf(self, z: FloatArray) -> FloatArray:
        return np.clip(0.5 + np.asarray(z) / math.sqrt(12.0), 0.0, 1.0)

    def quantile(self, level: FloatArray) -> FloatArray:
        return np.asarray(math.sqrt(12.0) * (level - 0.5))

    def log_density(self, z: FloatArray) -> FloatArray:
        """Log density, −inf outside."""
        return np.where(np.abs(z) <= math.sqrt(3.0), -0.5 * math.log(12.0), -np.inf)


NOISES: Final[Mapping[str, Noise]] = MappingProxyType(
    {
        "normal": Normal(),
        "student_t3": StudentT(3.0),
        "gamma": CentredGamma(),
        "skewed": Skewed(),
        "mixture": Mixture(),
        "heavy_tailed": StudentT(1.5),
        "laplace": Laplace(),
        "uniform": Uniform(),
    }
)
"""Noise distributions by the names that plans call them."""


def noise_named(noise: str | Noise) -> Noise:
    """The noise distribution of this name; a distribution passes through.

    Parameters
    ----------
    noise : str or Noise
        ``normal``, ``student_t3`` and ``gamma`` (shape 0.1), the laws of Sluijterman et al.'s
        later code; ``skewed``, ``mixture`` (two modes), ``heavy_tailed`` (Student's t with 1.5
        degrees of freedom: infinite variance), ``laplace``, ``uniform``.

    Returns
    -------
    Noise

    Raises
    ------
    InputError
        If there is no such law; the message names the near ones.

    Examples
    --------
    >>> noise_named("gamma").shape
    0.1
    >>> noise_named("gama")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: noise must be one of normal, student_t3, gamma, skewed,
    mixture, heavy_tailed, laplace, uniform, got 'gama'; near: gamma
    """
    if isinstance(noise, Noise):
        return noise
    check_known(noise, NOISES, "noise")
    return NOISES[noise]


def _inverted(cdf: Callable[[FloatArray], FloatArray], level: FloatArray) -> FloatArray:
    """Solve cdf(z) = level by halving a bracket; exact to rounding of z."""
    low = np.full(np.shape(level), -50.0)
    high = np.full(np.shape(level), 50.0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        below = cdf(middle) < level
        low = np.where(below, middle, low)
        high = np.where(below, high, middle)
    return np.asarray(high)
