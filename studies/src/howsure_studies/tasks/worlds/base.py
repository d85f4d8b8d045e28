"""What every world can be asked: data sets from named seeds, and the truth behind them.

A world draws one test set and as many training sets as a study wants. Draws come from named
parts of a seed, so that trial 7 is the same whichever trials ran before it, and a training set of
50 rows begins with the rows of one of 20: every input is a row of uniform numbers transformed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field, replace
from typing import ClassVar, Literal, Self, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, as_matrix, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole, checked
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure_studies.tasks.worlds.noise import Noise, Normal, noise_named

Covariates = Literal["random", "fixed"]
"""Whether the training x are drawn for each trial, or the same in all."""
RowFunction = Callable[[FloatArray], FloatArray]


@frozen(eq=False)
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

    def take(self, rows: IntArray) -> Draw:
        """The rows chosen by an index."""
        return Draw(self.x[rows], self.y[rows])


@frozen(eq=False)
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
    >>> from howsure_studies.tasks.worlds import Normal
    >>> truth = Truth(np.array([0.0, 1.0]), np.array([1.0, 2.0]), Normal())
    >>> truth.cdf(np.array([0.0, 1.0]))
    array([0.5, 0.5])
    """

    mean: FloatArray
    scale: FloatArray
    noise: Noise

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


class InputLaw(ABC):
    """A distribution of x. Subclasses are final."""

    __slots__ = ()

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of columns."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draws, shape (n, d)."""


@final
@frozen
class Box(InputLaw):
    """Uniform in a box.

    Parameters
    ----------
    lower, upper : tuple of float
        Its corners, one number a column.

    Raises
    ------
    InputError
        If the corners differ in length, or an edge is not finite or has no length.

    Examples
    --------
    >>> Box((0.0, 0.0), (1.0, 2.0)).dimension
    2
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.lower) != len(self.upper) or not self.lower:
            raise InputError(
                f"lower and upper must contain one number per column, got {len(self.lower)} and "
                f"{len(self.upper)}"
            )
        edges = np.subtract(self.upper, self.lower)
        if not (np.isfinite(edges) & (edges > 0)).all():
            raise InputError(f"upper must exceed lower, got {self.lower} and {self.upper}")

    @property
    def dimension(self) -> int:
        return len(self.lower)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        edges = np.subtract(self.upper, self.lower)
        return np.asarray(self.lower + edges * rng.random((n, self.dimension)))


@final
@frozen
class TwoModes(InputLaw):
    """One column, drawn from two equally likely normal distributions.

    Parameters
    ----------
    centers : tuple of float
        The two means.
    sd : float
        The standard deviation of both, above 0.

    Raises
    ------
    InputError
        If there are not two centres, or the standard deviation is not above 0.

    Examples
    --------
    >>> TwoModes((-0.4, 0.3), 0.07).dimension
    1
    """

    centers: tuple[float, float]
    sd: float

    def __post_init__(self) -> None:
        if len(self.centers) != 2 or not np.isfinite(self.centers).all():
            raise InputError(f"centers must be two finite numbers, got {self.centers}")
        if not 0 < self.sd < np.inf:
            raise InputError(f"sd must be a finite number above 0, got {self.sd!r}")

    @property
    def dimension(self) -> int:
        return 1

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        uniforms = np.maximum(rng.random((n, 2)), 2.0**-54)
        center = np.where(uniforms[:, 0] < 0.5, *self.centers)
        return np.asarray(center + self.sd * special.ndtri(uniforms[:, 1]))[:, None]


@final
@frozen(kw_only=True, eq=False)
class FunctionWorld(KnownWorld):
    """y = f(x) + scale(x) × noise, with f, scale and the distributions of x and noise given.

    Parameters
    ----------
    name : str
        The world's name.
    inputs : Inputs
        The law of x.
    mean_function, scale_function : callable
        Take x of shape (n, d), return shape (n,). The scale must be above 0.
    noise : Noise
        The law of the noise; normal if omitted.
    rows, test_rows : int
        Rows of a training set and of the test set where none are asked for.
    description, source : str
        What it is, in words, and where it comes from.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure_studies.tasks.worlds import Box, FunctionWorld
    >>> world = FunctionWorld(
    ...     name="parabola",
    ...     inputs=Box((-1.0,), (1.0,)),
    ...     mean_function=lambda x: x[:, 0] ** 2,
    ...     scale_function=lambda x: 0.1 + 0.1 * np.abs(x[:, 0]),
    ... )
    >>> world.training_set(seed=0, trial=3, n=20).x.shape
    (20, 1)
    >>> lower, upper = world.truth(np.array([[0.0], [1.0]])).interval(0.9)
    >>> (upper - lower).round(3)
    array([0.329, 0.658])
    """

    name: str
    inputs: InputLaw
    mean_function: RowFunction
    scale_function: RowFunction
    noise: Noise = field(default_factory=Normal)
    rows: int = 1000
    test_rows: int = 1000
    description: str = ""
    source: str = ""

    @property
    def dimension(self) -> int:
        return self.inputs.dimension

    def mean(self, x: FloatArray) -> FloatArray:
        """f at each row of x, shape (n,).

        Raises
        ------
        InputError
            If x has another number of columns, or f is not finite somewhere.
        """
        value = self._rows_of(self.mean_function, x, "mean_function")
        if not np.isfinite(value).all():
            raise InputError(f"mean_function of world {self.name!r} must be finite at every x")
        return value

    def scale(self, x: FloatArray) -> FloatArray:
        """What multiplies the noise at each row of x, shape (n,).

        Raises
        ------
        InputError
            If x has another number of columns, or the scale is not above 0 somewhere: where y is
            certain, no interval has a coverage between 0 and 1.
        """
        value = self._rows_of(self.scale_function, x, "scale_function")
        wrong = ~((value > 0) & np.isfinite(value))
        if wrong.any():
            raise InputError(
                f"the noise of world {self.name!r} must have a finite scale above 0 at every x, "
                f"got {int(wrong.sum())} that are not (first {value[np.argmax(wrong)]:g}): where "
                "y is certain, no interval has a coverage between 0 and 1"
            )
        return value

    def with_noise(self, noise: str | Noise) -> Self:
        return replace(self, noise=noise_named(noise))

    def test_set(self, seed: int, n: int | None = None) -> Draw:
        wanted = rows_wanted(n, self.test_rows, "n_test")
        x = self.inputs.sample(trial_rng(seed, None, "test x"), wanted)
        return Draw(x, self.truth(x).sample(trial_rng(seed, None, "test y")))

    def training_set(
        self,
        seed: int,
        trial: int,
        n: int | None = None,
        *,
        covariates: Covariates = "random",
        n_test: int | None = None,
    ) -> Draw:
        check_covariates(covariates)
        number = check_whole(trial, "trial", 0)
        wanted = rows_wanted(n, self.rows, "n_train")
        drawn = number if covariates == "random" else None
        x = self.inputs.sample(trial_rng(seed, drawn, "train x"), wanted)
        return Draw(x, self.truth(x).sample(trial_rng(seed, number, "train y")))

    def _rows_of(self, function: RowFunction, x: FloatArray, argument: str) -> FloatArray:
        inputs = as_matrix(x, "x", columns=self.dimension)
        value = np.asarray(function(inputs), dtype=np.float64)
        if value.shape != (len(inputs),):
            raise InputError(
                f"{argument} of world {self.name!r} must return shape ({len(inputs)},), "
                f"got {value.shape}"
            )
        return value
