"""Heads: what a network's outputs mean, as a loss and as a law.

A head says how many outputs it needs, what each row of data costs given them, and what is
believed of y given them. A new head is one more class of the same shape; it works with any
network that makes its outputs, alone or by the thousand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from howsure.core.arrays import FloatArray, check_levels
from howsure.core.errors import InputError
from howsure.methods.interface import located
from howsure.predictions import Prediction, Quantiles

Tensor = Any


class Head(ABC):
    """What outputs mean. Subclasses are final and hold no parameters to be learnt.

    Attributes
    ----------
    standardises : bool
        Whether the network is trained on (y − mean)/sd, which `belief` undoes; heads of counts
        are trained on y itself.
    """

    __slots__ = ()
    standardises: ClassVar[bool] = True

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many outputs it needs, k."""

    @abstractmethod
    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """What each row costs.

        Parameters
        ----------
        outputs : tensor of shape (..., k, b)
            Outputs for b rows, of one network or of many.
        y : tensor of shape (..., b)
            What happened, standardised if the head standardises.

        Returns
        -------
        tensor of shape (..., b)
            Differentiable in the outputs; lower is better.
        """

    @abstractmethod
    def belief(self, outputs: FloatArray, center: float, unit: float) -> Prediction:
        """What is believed of y, in its own units.

        Parameters
        ----------
        outputs : ndarray of float, shape (k, n)
            One network's outputs.
        center, unit : float
            What y was standardised by: 0 and 1 if it was not.
        """


@final
@dataclass(frozen=True, slots=True)
class Gaussian(Head):
    """A mean and a log variance: ½[e^{−s}(y − μ)² + s] for outputs (μ, s).

    Notes
    -----
    The normal density's negative logarithm without ½ log 2π. Source: Nix and Weigend 1994.

    Examples
    --------
    >>> Gaussian().belief(np.array([[0.0], [0.0]]), center=10.0, unit=2.0).sd()
    array([2.])
    """

    @property
    def outputs(self) -> int:
        """Two: the mean and the log variance."""
        return 2

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """½[e^{−s}(y − μ)² + s], shape (..., b)."""
        spread = outputs[..., 1, :]
        return ((y - outputs[..., 0, :]).square() * (-spread).exp() + spread) * 0.5

    def belief(self, outputs: FloatArray, center: float, unit: float) -> Prediction:
        """Normal laws."""
        return located("norm", center + unit * outputs[0], unit * np.exp(0.5 * outputs[1]))


@final
@dataclass(frozen=True, slots=True)
class SquaredError(Head):
    """A mean alone, by squared error: a normal law of one sd at all x.

    Parameters
    ----------
    sd : float
        The noise's sd, learnt elsewhere, in sds of y; at 0 the law is a point.

    Raises
    ------
    InputError
        If the sd is negative or not finite.

    Examples
    --------
    >>> SquaredError(sd=0.5).belief(np.array([[1.0]]), center=10.0, unit=2.0).sd()
    array([1.])
    """

    sd: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.sd < np.inf:
            raise InputError(f"sd must be finite and at least 0, got {self.sd!r}")

    @property
    def outputs(self) -> int:
        """One: the mean."""
        return 1

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """(y − μ)², shape (..., b)."""
        return (y - outputs[..., 0, :]).square()

    def belief(self, outputs: FloatArray, center: float, unit: float) -> Prediction:
        """Normal laws of one sd."""
        mean = center + unit * outputs[0]
        return located("norm", mean, np.full(len(mean), unit * self.sd))


@final
@dataclass(frozen=True, slots=True)
class QuantileHead(Head):
    """One output a level, by the sum of pinball losses; crossing quantiles are sorted.

    Parameters
    ----------
    levels : tuple of float
        Rising levels in (0, 1).

    Raises
    ------
    InputError
        If levels do not rise or leave (0, 1).

    Notes
    -----
    Pinball loss at level τ: max(τ(y − q), (τ − 1)(y − q)). Source: Koenker and Bassett 1978.

    Examples
    --------
    >>> head = QuantileHead((0.1, 0.9))
    >>> head.belief(np.array([[-1.0], [1.0]]), center=10.0, unit=2.0).interval(0.8)
    (array([8.]), array([12.]))
    """

    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(check_levels(self.levels).tolist()))

    @property
    def outputs(self) -> int:
        """One a level."""
        return len(self.levels)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Sum over levels of the pinball loss, shape (..., b)."""
        above = y.unsqueeze(-2) - outputs
        level = above.new_tensor(self.levels).unsqueeze(-1)
        return (level * above - above.clamp(max=0.0)).sum(-2)

    def belief(self, outputs: FloatArray, center: float, unit: float) -> Prediction:
        """Quantiles at the levels."""
        return Quantiles(np.array(self.levels), center + unit * outputs.T, crossing="sort")
