"""What a head is: what a network's outputs mean, as a loss and as a law."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.predictions import Prediction

Tensor = Any


@final
@frozen
class Start:
    """Where training sets out from: a head's output is offset + unit × the last layer's.

    Attributes
    ----------
    offset, unit : tuple of float, k of them
        Fixed for each output while a network trains, and put into its last layer afterwards.

    Examples
    --------
    >>> Start((0.5,), (1.0,)).offset
    (0.5,)
    """

    offset: tuple[float, ...]
    unit: tuple[float, ...]


class Head(ABC):
    """What outputs mean. Subclasses are final and hold no parameters to be learnt.

    Attributes
    ----------
    title : str
        What reports call it.
    standardises : bool
        Whether the network is trained on (y − mean)/sd, which `prediction` undoes; heads of counts
        are trained on y itself.
    shielded : int
        How many of the outputs, the last ones, take the hidden layers as they are: their loss
        trains the output layer alone.
    settles : bool
        Whether `warm_loss` leaves some outputs as they are at first, so that it is well to train
        them on features held still before all is trained together.
    """

    __slots__ = ()
    title: ClassVar[str]
    standardises: ClassVar[bool] = True
    shielded: ClassVar[int] = 0
    settles: ClassVar[bool] = False

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many outputs it needs, k."""

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        """The only coverages that its predictions can answer; None where they answer any."""
        return None

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
            Differentiable in the outputs; lower is better. In 64 bits where 32 would not do.
        """

    def warm_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """What each row costs while training warms up: as `loss`, unless a head says otherwise."""
        return self.loss(outputs, y)

    @abstractmethod
    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Prediction:
        """What is believed of y, in its own units.

        Parameters
        ----------
        outputs : ndarray of float, shape (k, n)
            One network's outputs.
        center, unit : float
            What y was standardised by: 0 and 1 if it was not.
        """

    def check_targets(self, y: FloatArray) -> None:
        """Raise `InputError` where a y to train on, shape (n,), is none that the head speaks of."""
        return None

    def start(self, y: FloatArray) -> Start:
        """Where training on these y sets out from: near the law that ignores x.

        Parameters
        ----------
        y : ndarray of float, shape (n,)
            Targets, standardised if the head standardises.
        """
        return Start((0.0,) * self.outputs, (1.0,) * self.outputs)


def softplus(values: Tensor) -> Tensor:
    """log(1 + eᵛ) of a tensor, exact to rounding everywhere."""
    return values.logaddexp(values.new_zeros(()))


def inverse_softplus(value: float) -> float:
    """Where softplus takes a positive value."""
    return float(value + np.log(-np.expm1(-value)))
