"""How worlds draw their inputs x.

Every draw is a row of uniform numbers transformed, so a longer sample begins with a shorter one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError


class Inputs(ABC):
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
@dataclass(frozen=True, slots=True)
class Box(Inputs):
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
                "lower and upper must hold one number a column, "
                f"got {len(self.lower)} and {len(self.upper)}"
            )
        edges = np.subtract(self.upper, self.lower)
        if not (np.isfinite(edges) & (edges > 0)).all():
            raise InputError(f"upper must exceed lower, got {self.lower} and {self.upper}")

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return len(self.lower)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draws, shape (n, d)."""
        edges = np.subtract(self.upper, self.lower)
        return np.asarray(self.lower + edges * rng.random((n, self.dimension)))


@final
@dataclass(frozen=True, slots=True)
class TwoModes(Inputs):
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
        """Number of columns: 1."""
        return 1

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draws, shape (n, 1)."""
        uniforms = np.maximum(rng.random((n, 2)), 2.0**-54)
        center = np.where(uniforms[:, 0] < 0.5, *self.centers)
        return np.asarray(center + self.sd * special.ndtri(uniforms[:, 1]))[:, None]
