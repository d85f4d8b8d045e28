"""What every method of uncertainty does: fit rows of data, then say what it believes.

A method is a frozen set of options. `fit` returns something fitted; `predict` says at each x what
is believed of a new y, and, where the method tells the two apart, of the mean of y. Intervals at
any coverage follow from the predictions: of y, prediction intervals; of the mean, confidence
intervals.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, as_matrix, as_vector
from howsure.core.classes import brief_repr, frozen
from howsure.core.errors import InputError
from howsure.predictions import Prediction

COVERAGES: Final = (0.7, 0.8, 0.9, 0.95)
"""Coverages of methods that fix them when they are fitted; those of Sluijterman et al."""


@frozen
class Predictions:
    """What a fitted method predicts at n inputs.

    Attributes
    ----------
    outcome : Prediction
        Of a new y: its intervals are prediction intervals.
    mean : Prediction, optional
        Of the mean of y: its intervals are confidence intervals. None where the method does not
        tell the mean's uncertainty from the noise.
    """

    outcome: Prediction
    mean: Prediction | None = None


class Fitted(ABC):
    """A method fitted to data."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Let each kind show itself in a few lines, also one that `dataclass` makes."""
        super().__init_subclass__()
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = brief_repr  # type: ignore[method-assign]

    @abstractmethod
    def predict(self, x: npt.ArrayLike) -> Predictions:
        """What is believed at the rows of x, shape (n, d)."""


class Method(ABC):
    """A method with its options, not yet fitted; it may be fitted many times."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call it."""

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        """The only coverages that it can answer; None where it answers any."""
        return None

    @abstractmethod
    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Fit rows of data.

        Parameters
        ----------
        x : array-like of shape (n, d)
            Inputs.
        y : array-like of shape (n,)
            What happened.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        Fitted

        Raises
        ------
        InputError
            If a value is missing or not finite, or there are too few rows.
        """

    @property
    def batch(self) -> int:
        """How many data sets `fit_many` takes best at once; 1 where it only loops."""
        return 1

    def fit_many(
        self,
        data: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
        rngs: Sequence[np.random.Generator],
    ) -> Sequence[Fitted]:
        """Fit several data sets, each with its own generator; the same as fitting one by one.

        Parameters
        ----------
        data : sequence of (x, y)
            One pair of inputs and targets a data set.
        rngs : sequence of numpy.random.Generator
            One a data set.

        Returns
        -------
        sequence of Fitted
            In the order given.
        """
        return [self.fit(x, y, rng) for (x, y), rng in zip(data, rngs, strict=True)]


def checked_rows(
    x: npt.ArrayLike, y: npt.ArrayLike, *, least: int
) -> tuple[FloatArray, FloatArray]:
    """Inputs and targets of at least so many rows."""
    inputs = as_matrix(x, "x")
    targets = as_vector(y, "y", length=len(inputs))
    if len(targets) < least:
        raise InputError(f"x must have at least {least} rows, got {len(targets)}")
    return inputs, targets


def held_out(rng: np.random.Generator, n: int, wanted: float, name: str) -> BoolArray:
    """Which of n rows to hold out: a number of rows, or a share below 1."""
    share = isinstance(wanted, float) and 0 < wanted < 1
    whole = isinstance(wanted, int | np.integer) and not isinstance(wanted, bool) and wanted >= 1
    if not share and not whole:
        raise InputError(f"{name} must be a whole number of rows or a share, got {wanted!r}")
    count = max(round(wanted * n), 1) if share else int(wanted)
    if n - count < 2:
        raise InputError(f"{name} must leave at least 2 of {n} rows, got {wanted!r}")
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[rng.permutation(n)[:count]] = True
    return chosen


def seeded_clone(regressor: Any, rng: np.random.Generator) -> Any:
    """An unfitted copy of a regressor; every ``random_state``, nested ones too, is drawn anew."""
    if not (hasattr(regressor, "fit") and hasattr(regressor, "predict")):
        raise InputError(
            f"regressor must have fit and predict, as scikit-learn's do, got {regressor!r}"
        )
    if not hasattr(regressor, "get_params"):
        return copy.deepcopy(regressor)
    from sklearn.base import clone

    fresh = clone(regressor)
    keys = sorted(
        key
        for key in fresh.get_params(deep=True)
        if key == "random_state" or key.endswith("__random_state")
    )
    states = {key: int(rng.integers(2**31 - 1)) for key in keys}
    return fresh.set_params(**states) if states else fresh


def trained(
    regressor: Any, x: FloatArray, y: FloatArray, rng: np.random.Generator, **parameters: float
) -> Any:
    """A copy of a regressor with these parameters, fitted; see `seeded_clone`."""
    fresh = seeded_clone(regressor, rng)
    if parameters:
        fresh.set_params(**parameters)
    fresh.fit(x, y)
    return fresh


def point_of(fitted: Any, x: npt.ArrayLike) -> FloatArray:
    """A fitted regressor's point forecast, shape (n,)."""
    inputs = as_matrix(x, "x")
    forecast = fitted.predict(inputs)
    if isinstance(forecast, Prediction | tuple | dict):
        raise InputError(
            "a class with fit(x, y) must predict one number per row, got "
            f"{type(forecast).__name__}. One with uncertainty has fit(x, y, rng)"
        )
    return as_vector(forecast, "the regressor's forecast", length=len(inputs))
