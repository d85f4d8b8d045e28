"""What every world can be asked: data sets from named seeds, and the truth behind them.

A world draws one test set and as many training sets as a protocol wants. Draws come from named
parts of a seed, so that trial 7 is the same whichever trials ran before it, and a training set of
50 rows begins with the rows of one of 20.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, as_vector, check_fraction
from howsure.core.brief import brief_repr
from howsure.core.convert import check_whole, checked
from howsure.core.errors import UnanswerableError
from howsure.core.rng import child
from howsure.studies.tasks.worlds.noise import Noise

Covariates = Literal["random", "fixed"]


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """Rows of data.

    Attributes
    ----------
    x : ndarray of float, shape (n, d)
        Inputs.
    y : ndarray of float, shape (n,)
        What happened.
    """

    x: FloatArray
    y: FloatArray

    __repr__ = brief_repr

    @classmethod
    def checked(cls, x: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Check inputs and targets at the door.

        Raises
        ------
        InputError
            If lengths differ, or a value is missing or not finite.

        Examples
        --------
        >>> Draw.checked([[1.0], [2.0]], [3.0, 4.0]).n
        2
        """
        inputs = as_matrix(x, "x")
        return cls(inputs, as_vector(y, "y", length=len(inputs)))

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    def take(self, rows: npt.NDArray[np.int64]) -> Draw:
        """The rows chosen by an index."""
        return Draw(self.x[rows], self.y[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The true distribution of y at n inputs: mean + scale × noise.

    Attributes
    ----------
    mean : ndarray of float, shape (n,)
        The true mean of y.
    scale : ndarray of float, shape (n,)
        What multiplies the noise.
    noise : Noise
        The law of the noise.

    Examples
    --------
    >>> from howsure.studies.tasks.worlds import Normal
    >>> truth = Truth(np.array([0.0, 1.0]), np.array([1.0, 2.0]), Normal())
    >>> truth.cdf(np.array([0.0, 1.0]))
    array([0.5, 0.5])
    """

    mean: FloatArray
    scale: FloatArray
    noise: Noise

    __repr__ = brief_repr

    @property
    def sd(self) -> FloatArray:
        """The true standard deviation of y, shape (n,); may be infinite."""
        return self.scale * self.noise.sd

    def cdf(self, y: FloatArray) -> FloatArray:
        """P(Y ≤ y) for y of shape (n,) or (n, k), in the same shape."""
        shape = (-1, *(1,) * (np.ndim(y) - 1))
        return self.noise.cdf((y - self.mean.reshape(shape)) / self.scale.reshape(shape))

    def quantile(self, levels: npt.ArrayLike) -> FloatArray:
        """True quantiles of y, shape (n, k)."""
        wanted = as_vector(levels, "levels", scalar=True)
        for level in wanted:
            check_fraction(float(level), "levels")
        return self.mean[:, None] + self.scale[:, None] * self.noise.quantile(wanted)

    def log_density(self, y: FloatArray) -> FloatArray:
        """True log density at y, shape (n,)."""
        return self.noise.log_density((y - self.mean) / self.scale) - np.log(self.scale)

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """The true central interval: what a method that knows everything would answer."""
        tail = 0.5 * (1.0 - check_fraction(coverage, "coverage"))
        ends = self.quantile([tail, 1.0 - tail])
        return ends[:, 0], ends[:, 1]

    def sample(self, rng: np.random.Generator) -> FloatArray:
        """Draw y once at each input, shape (n,)."""
        return self.mean + self.scale * self.noise.sample(rng, len(self.mean))


class World(ABC):
    """A source of one test set and many training sets.

    What is true at x is known to the subclass, or `truth` raises `UnanswerableError` with the
    reason.
    """

    __slots__ = ()
    name: str
    description: str
    knows_truth: ClassVar[bool] = False
    no_truth: ClassVar[str] = ""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of columns of x."""

    @abstractmethod
    def test_set(self, seed: int, n: int | None = None) -> Draw:
        """The test set of a seed: the same for every method and trial."""

    @abstractmethod
    def training_set(
        self,
        seed: int,
        trial: int,
        n: int | None = None,
        *,
        covariates: Covariates = "random",
        n_test: int | None = None,
    ) -> Draw:
        """The training set of one trial.

        Parameters
        ----------
        seed : int
            The experiment's seed.
        trial : int
            Which trial, from 0.
        n : int, optional
            Rows; the world's own number if omitted.
        covariates : {"random", "fixed"}
            Whether every trial draws its own x, or all share one x and draw y anew.
        n_test : int, optional
            Rows of the test set, which no training set shares.
        """

    def trials_available(self, n: int | None = None, n_test: int | None = None) -> float:
        """How many training sets of n rows there are; infinite where they are simulated."""
        return math.inf

    def truth(self, x: FloatArray) -> Truth:
        """The true law of y at each row of x.

        Raises
        ------
        UnanswerableError
            If nothing is known beyond y.
        """
        raise UnanswerableError(self.no_truth)


class KnownWorld(World):
    """y = mean(x) + scale(x) × noise, with noise of a known distribution. Subclasses are final."""

    __slots__ = ()
    knows_truth: ClassVar[bool] = True
    noise: Noise

    @abstractmethod
    def mean(self, x: FloatArray) -> FloatArray:
        """The true mean of y at each row of x, shape (n,)."""

    @abstractmethod
    def scale(self, x: FloatArray) -> FloatArray:
        """What multiplies the noise at each row of x, shape (n,); above 0."""

    @abstractmethod
    def with_noise(self, noise: str | Noise) -> Self:
        """The same world with another noise law; its random numbers stay the same."""

    def truth(self, x: FloatArray) -> Truth:
        """The true law of y at each row of x."""
        return Truth(self.mean(x), self.scale(x), self.noise)


def rows_wanted(n: int | None, default: int, name: str, *, most: float = math.inf) -> int:
    """A number of rows that a caller asks for.

    Raises
    ------
    InputError
        If it is not a whole number from 1 to `most`.

    Examples
    --------
    >>> rows_wanted(None, 100, "n_train")
    100
    """
    return check_whole(default if n is None else n, name, 1, most)


def check_covariates(covariates: str) -> None:
    """Raise `InputError` unless the choice is known."""
    checked(covariates, Literal["random", "fixed"], "covariates")


def trial_rng(seed: int, trial: int | None, part: str) -> np.random.Generator:
    """The generator of one part of a trial's training set, or (None) of what trials share."""
    if trial is None:
        return child(seed, "worlds", part, "shared")
    return child(seed, "worlds", part, "trial", trial)
