"""Worlds made of a function and a noise term."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self, final

import numpy as np

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.studies.tasks.worlds.base import (
    Covariates,
    Draw,
    KnownWorld,
    check_covariates,
    rows_wanted,
    trial_rng,
)
from howsure.studies.tasks.worlds.inputs import Inputs
from howsure.studies.tasks.worlds.noise import Noise, Normal, noise_named

RowFunction = Callable[[FloatArray], FloatArray]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
    >>> from howsure.studies.tasks.worlds import Box, FunctionWorld
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
    inputs: Inputs
    mean_function: RowFunction
    scale_function: RowFunction
    noise: Noise = field(default_factory=Normal)
    rows: int = 1000
    test_rows: int = 1000
    description: str = ""
    source: str = ""

    @property
    def dimension(self) -> int:
        """Number of columns of x."""
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
        """The same world with another noise law; its random numbers stay the same."""
        return replace(self, noise=noise_named(noise))

    def test_set(self, seed: int, n: int | None = None) -> Draw:
        """The test set of a seed."""
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
        """The training set of one trial; see `World.training_set`."""
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
