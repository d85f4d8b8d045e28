"""Networks to be trained, and networks that were."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import Checked, Count, NonNegative, Positive, filled
from howsure.core.errors import UnanswerableError
from howsure.core.rng import child

Weights = npt.NDArray[np.float32]
Layers = Annotated[tuple[Count, ...], filled]
Schedule = Literal["constant", "cosine"]
Keep = Literal["last", "best"]
Initial = Literal["glorot", "torch"]


@final
@dataclass(frozen=True, slots=True)
class Training(Checked):
    """How networks are trained; defaults are those of the toy studies and of Keras' Adam.

    Parameters
    ----------
    layers : tuple of int
        Units of the hidden layers, all with ReLU.
    epochs : int
        Passes over the data.
    batch_size : int
        Rows of a step; the last step of an epoch takes what is left.
    learning_rate : float
        Of Adam, with β₁ = 0.9, β₂ = 0.999, ε = 1e-7.
    penalty : float
        The loss holds (penalty/n) Σ w² over the kernels of the hidden layers.
    chunk : int
        How many networks a thread trains at once, at most; it bounds memory, and changes no
        network.
    weight_decay : float
        Above 0, AdamW: each step shrinks all parameters by this times the learning rate.
    schedule : {"constant", "cosine"}
        Of the learning rate: ``cosine`` lets it fall to 0, epoch by epoch, along half a wave.
    keep : {"last", "best"}
        Which state is kept: that after the last epoch, or after the one of least loss on the
        rows held out, which each member then needs.
    initial : {"glorot", "torch"}
        First weights: Glorot's uniform law and biases of 0, or both uniform up to 1/√inputs, as
        torch's layers have it.
    warm : bool
        Whether training sets out near the law that ignores x (see `Head.start`).
    standardise : bool
        Whether inputs, and targets where the head asks for it, are standardised.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> Training(layers=(50,)).epochs
    80
    """

    layers: Layers = (40, 30, 20)
    epochs: Count = 80
    batch_size: Count = 32
    learning_rate: Positive = 1e-3
    penalty: NonNegative = 0.0
    chunk: Count = 128
    weight_decay: NonNegative = 0.0
    schedule: Schedule = "constant"
    keep: Keep = "last"
    initial: Initial = "glorot"
    warm: bool = True
    standardise: bool = True

    def pace(self, epoch: int) -> float:
        """The learning rate in an epoch, counted from 0."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * epoch / self.epochs))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A network to be trained: its data, and where its random numbers come from.

    Parameters
    ----------
    x : ndarray of float, shape (n, d)
        Inputs.
    y : ndarray of float, shape (n,)
        Targets.
    seed : int
        The seed of everything random.
    index : int
        Its number among those of this seed.
    resample : int, optional
        Which resample of the rows (n of n, with replacement) it is trained on; the rows
        themselves if omitted. Members of one seed and resample share their rows.
    held : tuple of ndarray, optional
        Inputs and targets of rows to judge it by while it is trained, shapes (h, d) and (h,).

    Examples
    --------
    >>> member = Member(np.zeros((5, 1)), np.arange(5.0), seed=0, index=3, resample=1)
    >>> member.rows()[1].shape
    (5,)
    """

    x: FloatArray
    y: FloatArray
    seed: int
    index: int = 0
    resample: int | None = None
    held: tuple[FloatArray, FloatArray] | None = None

    def rng(self, part: str) -> np.random.Generator:
        """The member's own generator for one purpose."""
        return child(self.seed, "network", self.index, part)

    def rows(self) -> tuple[FloatArray, FloatArray]:
        """What it is trained on."""
        if self.resample is None:
            return self.x, self.y
        n = len(self.y)
        chosen = child(self.seed, "resample", self.resample).integers(n, size=n)
        return self.x[chosen], self.y[chosen]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """What a network's data were standardised by: means and sds (divisor n), 1 where constant.

    Attributes
    ----------
    x_center, x_unit : ndarray of float, shape (d,)
        Of the inputs.
    y_center, y_unit : float
        Of the targets; 0 and 1 where they were left as they are.

    Examples
    --------
    >>> Scale.of(np.array([[1.0], [3.0]]), np.array([5.0, 5.0]), targets=True).y_unit
    1.0
    """

    x_center: FloatArray
    x_unit: FloatArray
    y_center: float
    y_unit: float

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray, *, inputs: bool = True, targets: bool) -> Scale:
        """The scale of these rows; zeros and ones for what stays as it is."""
        columns = x.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):  # see `sound`
            unit, spread = x.std(axis=0), float(y.std())
            return cls(
                x_center=x.mean(axis=0) if inputs else np.zeros(columns),
                x_unit=np.where(unit > 0, unit, 1.0) if inputs else np.ones(columns),
                y_center=float(y.mean()) if targets else 0.0,
                y_unit=spread if targets and spread > 0 else 1.0,
            )

    @property
    def sound(self) -> bool:
        """Whether the data were small enough for finite means and sds."""
        numbers = (*self.x_center, *self.x_unit, self.y_center, self.y_unit)
        return bool(np.isfinite(numbers).all())

    def inputs(self, x: FloatArray) -> FloatArray:
        """Inputs on the scale of training."""
        return np.asarray((x - self.x_center) / self.x_unit)

    def targets(self, y: FloatArray) -> FloatArray:
        """Targets on the scale of training."""
        return np.asarray((y - self.y_center) / self.y_unit)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A trained network.

    Attributes
    ----------
    kernels : tuple of ndarray of float32, shapes (out, in)
        Weights of each layer, the output layer last.
    biases : tuple of ndarray of float32, shapes (out,)
        One array a layer.
    scale : Scale
        What its data were standardised by.
    failure : str, optional
        Why it is of no use: where its loss was not finite, or that its data were too large.
    kept : int
        The epoch after which it was as it is: the last, the best, or, where it failed, the last
        before that; 0 for first weights.
    losses : ndarray of float, shape (epochs, 2)
        Mean loss of each epoch's steps, and the loss on the rows held out; NaN without such rows.
    rates : ndarray of float, shape (epochs, layers)
        Learnt rates of dropout after each epoch, one column a layer; of no columns without them.
    """

    kernels: tuple[Weights, ...]
    biases: tuple[Weights, ...]
    scale: Scale
    failure: str | None = None
    kept: int = 0
    losses: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    rates: FloatArray = field(default_factory=lambda: np.empty((0, 0)))


def check_sound(networks: tuple[Network, ...]) -> None:
    """Raise `UnanswerableError` if a network has failed.

    Examples
    --------
    >>> check_sound(())
    """
    bad = [(k, item.failure) for k, item in enumerate(networks) if item.failure is not None]
    if bad:
        raise UnanswerableError(
            f"{len(bad)} of {len(networks)} networks failed (first network {bad[0][0]}: "
            f"{bad[0][1]})"
        )
