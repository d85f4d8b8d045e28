"""How networks are trained: options, the state that is kept, and how outputs are initialised.

Both engines share these: small networks trained as one (`howsure_studies.methods.deep.batch`) and
torch modules trained one by one (`howsure_studies.methods.deep.modules`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any, Final, Literal, Protocol, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, device_named, placed
from howsure.core.classes import frozen
from howsure.core.convert import (
    Bound,
    Checked,
    Count,
    Natural,
    NonNegative,
    Positive,
    check_whole,
    filled,
)
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.optional import require
from howsure_studies.methods.deep.heads import Head, Start
from howsure_studies.methods.options import named

Tensor = Any


def _checked_device(value: str, name: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        raise InputError(f"{name} must be 'auto', 'cpu', 'cuda' or 'cuda:NUMBER', got {value!r}")
    return value


Device = Annotated[str, _checked_device]
"""A device by name, as fields of options are annotated."""
Weights = npt.NDArray[np.float32]
Layers = Annotated[tuple[Count, ...], filled]
Schedule = Literal["constant", "cosine"]
Keep = Literal["last", "best"]
Initial = Literal["glorot", "torch"]
Precision = Literal["float32", "bfloat16"]
Augment = Literal["flip", "crop"]
Phase = Literal["warm", "frozen", "full"]


@frozen(kw_only=True)
class Training(Checked):
    """How any network is trained, by Adam with β₁ = 0.9 and β₂ = 0.999. Subclasses are final.

    `BatchTraining` adds what small networks trained as one have besides, `ModuleTraining` what
    torch modules have.

    Parameters
    ----------
    epochs : int
        Passes over the data, each in a new order.
    batch_size : int
        Rows of a step; the last step of an epoch takes what is left.
    learning_rate : float
        Of Adam.
    weight_decay : float
        Above 0, AdamW: each step shrinks all parameters by this times the learning rate.
    schedule : {"constant", "cosine"}
        Of the learning rate: ``cosine`` lets it fall to 0, epoch by epoch, along half a wave.
    keep : {"last", "best"}
        Which state is kept: that after the last epoch, or after the one of least loss on the
        rows held out, which training then needs.
    standardise : bool
        Whether targets are standardised where the head allows it, and inputs of small networks.
    warm_start : bool
        Whether training sets out near the law that ignores x (see `Head.start`).
    device : str
        Where to train: ``cpu``, ``cuda``, ``cuda:1`` and the like; ``auto`` takes a GPU if there
        is one.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> Training(epochs=30, schedule="cosine").learning_rate_at(15)
    0.0005
    """

    epochs: Count = 80
    batch_size: Count = 32
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 0.0
    schedule: Schedule = "constant"
    keep: Keep = "last"
    standardise: bool = True
    warm_start: bool = True
    device: Device = "auto"

    def learning_rate_at(self, epoch: int) -> float:
        """The learning rate in an epoch, counted from 0."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * epoch / self.epochs))

    def optimiser(self, parameters: Any, eps: float = 1e-8) -> Any:
        """Adam with this ε, or AdamW with torch's own, over these parameters."""
        adam = require("torch", extra="deep").optim
        trained = list(parameters)
        fused = trained[0].device.type != "meta" or None  # which has no data, and no fused step
        if self.weight_decay > 0:
            decay = self.weight_decay
            return adam.AdamW(trained, lr=self.learning_rate, weight_decay=decay, fused=fused)
        return adam.Adam(trained, lr=self.learning_rate, eps=eps, fused=fused)

    def torch_device(self) -> Any:
        """The torch device to train on; an error where torch cannot use the one that is wanted."""
        return device_named(self.device)

    def check_held(self, held: object, where: str = "no rows are held out") -> None:
        """Refuse to keep the best state where nothing tells which that is."""
        if self.keep == "best" and held is None:
            raise InputError(f"keep must be 'last' where {where}, got 'best'")


@final
@frozen(kw_only=True)
class BatchTraining(Training):
    """How small networks are trained as one; defaults are the preset ``toy``.

    Parameters
    ----------
    layers : tuple of int
        Units of the hidden layers, all with ReLU.
    penalty : float
        The loss holds (penalty/n) Σ w² over the kernels of the hidden layers.
    chunk : int
        How many networks a thread trains at once, at most; it bounds memory, and changes no
        network.
    initial : {"glorot", "torch"}
        First weights: Glorot's uniform law and biases of 0, or both uniform up to 1/√inputs, as
        torch's layers have it.
    epochs, batch_size, learning_rate, weight_decay, schedule, keep, standardise, warm_start
        See `Training`. Adam's ε is 1e-7, as in Keras.
    device : str
        As `Training` has it, and the processor by default, which suits small networks.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> BatchTraining(layers=(50,)).epochs
    80
    """

    layers: Layers = (40, 30, 20)
    penalty: NonNegative = 0.0
    chunk: Count = 128
    initial: Initial = "glorot"
    device: Device = "cpu"


@final
@frozen(kw_only=True)
class ModuleTraining(Training):
    """How a network of torch modules is trained; defaults are the preset ``shift``.

    Parameters
    ----------
    batch_size : int
        Rows of a step, at least 2; a single row that is left joins the step before, since
        normalisation over a batch needs two.
    warm_epochs : int
        First epochs, in which the head's `warm_loss` is minimised: squared errors, for normal
        laws and pairs of quantiles.
    frozen_epochs : int
        Epochs after these in which the features stay as they are, but for the running statistics
        of batch normalisation, while heads whose warm-up leaves outputs untrained learn those;
        for other heads they are epochs like the rest.
    hidden : int, optional
        Units of the hidden layer, with ReLU, that each output has to itself: as many as there
        are features if omitted; none if 0, so that outputs are linear in the features.
    precision : {"float32", "bfloat16"}
        Of the products of the backbone while it trains; its weights, the outputs and all that
        is said later have 32 bits.
    channels_last : bool
        Whether images are laid out with their channels innermost, which is faster.
    compile : bool
        Whether ``torch.compile`` translates the backbone for training.
    augment : tuple of {"flip", "crop"}
        What is done to each image at random whenever it is trained on: ``flip`` mirrors it left
        to right, in half of the cases; ``crop`` shifts it by up to an eighth of its sides, what
        leaves it on one side being mirrored in on the other.
    epochs, learning_rate, weight_decay, schedule, keep, standardise, warm_start, device
        See `Training`. Inputs are never standardised: images are scaled as their task says.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Source: the shift benchmark of Gustafsson, Danelljan and Schön 2023: Adam at 1e-3, batches of
    32, 75 epochs, raw targets, the last epoch kept; 20 epochs of squared errors, 5 with the
    features held still for normal laws.

    Examples
    --------
    >>> ModuleTraining().epochs, ModuleTraining.small().epochs
    (75, 20)
    """

    epochs: Count = 75
    batch_size: Annotated[int, Bound(2)] = 32
    standardise: bool = False
    warm_start: bool = False
    warm_epochs: Natural = 20
    frozen_epochs: Natural = 5
    hidden: Natural | None = None
    precision: Precision = "float32"
    channels_last: bool = True
    compile: bool = False
    augment: tuple[Augment, ...] = field(default=(), metadata={"later": True})

    def __post_init__(self) -> None:
        Training.__post_init__(self)
        if self.warm_epochs + self.frozen_epochs >= self.epochs:
            raise InputError(
                f"warm_epochs and frozen_epochs must leave epochs for the loss itself, got "
                f"{self.warm_epochs} and {self.frozen_epochs} of {self.epochs}"
            )

    @classmethod
    def small(cls, epochs: int = 20, **options: Any) -> ModuleTraining:
        """The preset ``small``: few epochs on a processor, a fifth of them warm."""
        check_whole(epochs, "epochs")
        own: dict[str, Any] = {
            "warm_epochs": epochs // 5,
            "frozen_epochs": epochs // 20,
            "learning_rate": 2e-3,
            "schedule": "cosine",
            "standardise": True,
        }
        return cls(epochs=epochs, **{**own, **options})

    def phase(self, epoch: int, head: Head) -> Phase:
        """What is trained in an epoch, counted from 0, and by which loss."""
        if epoch < self.warm_epochs:
            return "warm"
        if head.settles and epoch < self.warm_epochs + self.frozen_epochs:
            return "frozen"
        return "full"


TABLES: Final = BatchTraining(
    layers=(128, 128, 128, 64), epochs=200, weight_decay=1e-5, schedule="cosine", keep="best"
)
"""The preset ``tables``: settings of Young et al. 2025."""


def recipe_named(spec: str | Mapping[str, Any] | ModuleTraining) -> ModuleTraining:
    """The training of a preset's name, or of a mapping of ``name`` and options.

    Parameters
    ----------
    spec : str, mapping or ModuleTraining
        ``shift``, which is `ModuleTraining` with its defaults, or ``small``, which is
        `ModuleTraining.small`; in a mapping the name may be left out, and is then ``shift``. A
        `ModuleTraining` passes through.

    Raises
    ------
    InputError
        If the name or an option is unknown, or an option breaks its rule.

    Examples
    --------
    >>> recipe_named({"name": "small", "epochs": 40}).warm_epochs
    8
    """
    if isinstance(spec, ModuleTraining):
        return spec
    training: ModuleTraining = named(
        spec, {"shift": ModuleTraining, "small": ModuleTraining.small}, "recipe", "shift"
    )
    return training


@final
@frozen(eq=False)
class Standardization:
    """What a network's data were standardised by: means and sds (divisor n), 1 where constant."""

    x_center: FloatArray
    x_unit: FloatArray
    y_center: float
    y_unit: float

    @classmethod
    def of(
        cls, x: FloatArray, y: FloatArray, *, inputs: bool = True, targets: bool
    ) -> Standardization:
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
class OutputInitialisation:
    """How outputs are initialised: an output is offset + unit × the last layer's.

    Offsets and units, of shape (k, 1) or (m, k, 1), stay fixed while networks train; `absorb` puts
    them into the last layer afterwards.
    """

    __slots__ = ("_offset", "_torch", "_unit")

    def __init__(self, offset: Any, unit: Any, device: Any = "cpu") -> None:
        self._torch = require("torch", extra="deep")
        arrays = [np.asarray(values, dtype=np.float32)[..., None] for values in (offset, unit)]
        self._offset, self._unit = (placed(array, device) for array in arrays)
        if not arrays[0].any() and (arrays[1] == 1.0).all():
            self._offset = None

    def shift(self, outputs: Tensor) -> Tensor:
        """Outputs as the head takes them."""
        if self._offset is None:
            return outputs
        return self._torch.addcmul(self._offset, self._unit, outputs)

    def absorb(self, kernel: Tensor, bias: Tensor) -> None:
        """Change the last layer, kernel (…, k, i) and bias (…, k, 1), so that it needs no shift."""
        if self._offset is not None:
            with self._torch.no_grad():
                kernel.mul_(self._unit)
                bias.mul_(self._unit).add_(self._offset)


def start_of(head: Head, y: FloatArray, *, warm: bool) -> Start:
    """Where training on these y sets out from; as the first weights have it, if not warm."""
    return head.start(y) if warm else Start((0.0,) * head.outputs, (1.0,) * head.outputs)


class Parameters(Protocol):
    """The parameters of m networks in training, with room for the states that are kept."""

    count: int

    def sound(self) -> BoolArray:
        """Whether each network's parameters are all finite, shape (m,)."""

    def save(self, networks: BoolArray) -> None:
        """Keep the present state of these networks."""

    def put_back(self) -> None:
        """Make the kept states the present ones."""


@final
class BestCheckpoint:
    """Keeps a good state of each of m networks: the last, or the best on rows held out."""

    __slots__ = ("_best", "_parameters", "epochs", "failures", "kept", "least")

    def __init__(self, parameters: Parameters, *, best: bool) -> None:
        self._parameters, self._best = parameters, best
        self.failures: list[str | None] = [None] * parameters.count
        self.kept = np.zeros(parameters.count, dtype=np.int64)
        self.least = np.full(parameters.count, np.inf)
        self.epochs: list[FloatArray] = []

    def look(self, losses: FloatArray, held: FloatArray) -> bool:
        """Look after one more epoch, at losses (steps, m) and (m,); whether any network is sound.

        Losses on the rows held out are NaN without such rows.
        """
        epoch = len(self.epochs) + 1
        with np.errstate(invalid="ignore", over="ignore"):
            self.epochs.append(np.stack([losses.mean(axis=0), held], axis=1))
        finite = np.isfinite(losses)
        sound = finite.all(axis=0) & self._parameters.sound()
        for network in np.flatnonzero(~sound):
            if self.failures[network] is None:
                self.failures[network] = _failure(finite[:, network], epoch)
        sound &= np.array([failure is None for failure in self.failures])
        better = sound & (held < self.least) if self._best else sound
        self.least = np.where(better, held, self.least)
        self.kept[better] = epoch
        if better.any():
            self._parameters.save(better)
        return bool(sound.any())

    @property
    def trace(self) -> FloatArray:
        """Losses of each epoch, shape (m, epochs, 2)."""
        empty = np.empty((len(self.kept), 0, 2))
        return np.stack(self.epochs, axis=1) if self.epochs else empty


def _failure(finite: BoolArray, epoch: int) -> str:
    if finite.all():
        return f"weights not finite after epoch {epoch}"
    step = int(np.argmin(finite)) + 1
    return f"loss not finite in epoch {epoch}, step {step} of {len(finite)}"


def check_sound(networks: Sequence[Any]) -> None:
    """Refuse to answer where a network has failed."""
    bad = [(k, item.failure) for k, item in enumerate(networks) if item.failure is not None]
    if bad:
        raise UnanswerableError(
            f"{len(bad)} of {len(networks)} networks failed (first network {bad[0][0]}: "
            f"{bad[0][1]})"
        )
