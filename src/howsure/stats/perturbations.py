"""Small disturbances of inputs, drawn for each row by what it holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.rng import KeyArray, row_normals

Inputs = npt.NDArray[np.floating[Any]]


class Perturbation(ABC):
    """A random disturbance of rows of inputs. Subclasses are final."""

    __slots__ = ()

    @property
    @abstractmethod
    def label(self) -> str:
        """What reports call it."""

    @abstractmethod
    def apply(self, x: Inputs, keys: KeyArray, seed: int, repeat: int) -> Inputs:
        """Disturbed copies of rows.

        Parameters
        ----------
        x : ndarray of shape (n, …)
            Inputs.
        keys : ndarray of uint64, shape (n,)
            From `howsure.core.rng.row_keys`: a row's draw depends on its key alone.
        seed : int
            The experiment's seed.
        repeat : int
            Which of several disturbances.
        """


@final
@dataclass(frozen=True, slots=True, init=False, eq=False)
class GaussianNoise(Perturbation):
    """Normal noise added to every entry.

    Parameters
    ----------
    sd : float or array-like of shape (…)
        Standard deviation of the noise, in the units of x; one for all entries or one an entry.

    Raises
    ------
    InputError
        If it is negative or not finite.

    Examples
    --------
    >>> noise = GaussianNoise.relative(np.array([[0.0], [2.0]]), 0.1)
    >>> noise.sd
    array([0.1])
    """

    sd: FloatArray

    def __init__(self, sd: npt.ArrayLike) -> None:
        value = np.asarray(sd, dtype=np.float64)
        if not (np.isfinite(value).all() and (value >= 0).all()):
            raise InputError(f"sd must be finite and not negative, got {value!r}")
        object.__setattr__(self, "sd", value)

    @classmethod
    def relative(cls, x: npt.ArrayLike, share: float, *, each_column: bool = True) -> Self:
        """Noise with a share of the standard deviation of these inputs.

        Parameters
        ----------
        x : array-like of shape (n, …)
            Inputs that give the scale; those of calibration, say.
        share : float
            Share of their standard deviation; Jang and Lee do not say theirs, 0.05 to 0.5 is
            usual.
        each_column : bool
            Whether each column has its own, as for tables; otherwise all entries share one, as
            for images and embeddings.

        Raises
        ------
        InputError
            If the share is negative or not finite.
        """
        if not (np.isfinite(share) and share >= 0):
            raise InputError(f"share must be finite and not negative, got {share!r}")
        values = np.asarray(x, dtype=np.float64)
        return cls(share * values.std(axis=0 if each_column else None))

    @property
    def label(self) -> str:
        """What reports call it."""
        return "Gaussian noise"

    def apply(self, x: Inputs, keys: KeyArray, seed: int, repeat: int) -> Inputs:
        """Rows with noise added; see `Perturbation.apply`."""
        columns = int(np.prod(x.shape[1:]))
        noise = row_normals(seed, f"gaussian noise {repeat}", keys, columns).reshape(x.shape)
        noise *= self.sd
        return np.asarray(x + noise, dtype=x.dtype if x.dtype.kind == "f" else np.float64)
