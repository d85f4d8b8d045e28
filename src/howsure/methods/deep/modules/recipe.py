"""How networks of torch modules are trained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, final

from howsure.core.convert import (
    Bound,
    Count,
    Natural,
    NonNegative,
    Positive,
    check_fields,
    check_whole,
)
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.methods.deep.heads import Head
from howsure.methods.deep.members import Keep, Schedule
from howsure.methods.options import named

Precision = Literal["float32", "bfloat16"]
Device = Literal["auto", "cpu", "cuda"]
Phase = Literal["warm", "frozen", "full"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a network of torch modules is trained; defaults are those of the shift benchmark.

    Parameters
    ----------
    epochs : int
        Passes over the data, each in a new order.
    batch_size : int
        Rows of a step, at least 2. The last step of an epoch takes what is left; a single row
        that is left joins the step before, since normalisation over a batch needs two.
    learning_rate : float
        Of Adam, with β₁ = 0.9, β₂ = 0.999, ε = 1e-8.
    weight_decay : float
        Above 0, AdamW: each step shrinks all parameters by this times the learning rate.
    schedule : {"constant", "cosine"}
        Of the learning rate: ``cosine`` lets it fall to 0, epoch by epoch, along half a wave.
    warm_epochs : int
        First epochs, in which the head's `warm_loss` is minimised: squared errors, for normal
        laws and pairs of quantiles.
    frozen_epochs : int
        Epochs after these in which the features stay as they are, but for the running statistics
        of batch normalisation, while heads whose warm-up leaves outputs untrained learn those;
        for other heads they are epochs like the rest.
    keep : {"last", "best"}
        Which state is kept: that after the last epoch, or after the one of least loss on the
        rows held out, which training then needs.
    standardise : bool
        Whether targets are standardised where the head allows it. Inputs never are: images are
        scaled as their task says, and tables are taken as they come.
    warm_start : bool
        Whether training sets out near the law that ignores x (see `Head.start`).
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
    device : {"auto", "cpu", "cuda"}
        Where to train; ``auto`` takes a GPU if there is one.

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
    >>> Recipe().epochs, Recipe.small().epochs
    (75, 20)
    >>> Recipe(epochs=30, schedule="cosine").pace(15)
    0.0005
    """

    epochs: Count = 75
    batch_size: Annotated[int, Bound(2)] = 32
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 0.0
    schedule: Schedule = "constant"
    warm_epochs: Natural = 20
    frozen_epochs: Natural = 5
    keep: Keep = "last"
    standardise: bool = False
    warm_start: bool = False
    hidden: Natural | None = None
    precision: Precision = "float32"
    channels_last: bool = True
    compile: bool = False
    device: Device = "auto"

    def __post_init__(self) -> None:
        check_fields(self)
        if self.warm_epochs + self.frozen_epochs >= self.epochs:
            raise InputError(
                f"warm_epochs and frozen_epochs must leave epochs for the loss itself, got "
                f"{self.warm_epochs} and {self.frozen_epochs} of {self.epochs}"
            )

    @classmethod
    def small(cls, epochs: int = 20, **options: Any) -> Recipe:
        """A recipe for few epochs on a processor: standardised targets, a rate that falls.

        Parameters
        ----------
        epochs : int
            Passes over the data; a fifth of them are warm, a twentieth frozen.
        **options
            Any other option, in place of the recipe's own.

        Raises
        ------
        InputError
            If an option breaks its rule.

        Examples
        --------
        >>> Recipe.small(40).warm_epochs
        8
        """
        check_whole(epochs, "epochs")
        own: dict[str, Any] = {
            "warm_epochs": epochs // 5,
            "frozen_epochs": epochs // 20,
            "learning_rate": 2e-3,
            "schedule": "cosine",
            "standardise": True,
        }
        return cls(epochs=epochs, **{**own, **options})

    def pace(self, epoch: int) -> float:
        """The learning rate in an epoch, counted from 0."""
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * 0.5 * (1.0 + math.cos(math.pi * epoch / self.epochs))

    def phase(self, epoch: int, head: Head) -> Phase:
        """What is trained in an epoch, counted from 0, and by which loss.

        Examples
        --------
        >>> from howsure.methods.deep.heads import Gaussian, PairHead
        >>> Recipe().phase(22, Gaussian()), Recipe().phase(22, PairHead())
        ('frozen', 'full')
        """
        if epoch < self.warm_epochs:
            return "warm"
        if head.settles and epoch < self.warm_epochs + self.frozen_epochs:
            return "frozen"
        return "full"

    def place(self) -> str:
        """The device to train on: ``cpu`` or ``cuda``.

        Raises
        ------
        InputError
            If a GPU is wanted and there is none that torch can use.
        MissingDependencyError
            If torch is not installed.
        """
        found = bool(require("torch", extra="deep").cuda.is_available())
        if self.device == "cuda" and not found:
            raise InputError("device must be 'cpu' or 'auto' where torch finds no GPU, got 'cuda'")
        return "cuda" if found and self.device != "cpu" else "cpu"


def recipe_named(spec: str | Mapping[str, Any] | Recipe) -> Recipe:
    """The recipe of a name, or of a mapping of ``name`` and options; a recipe passes through.

    Parameters
    ----------
    spec : str, mapping or Recipe
        ``shift``, which is `Recipe` with its defaults, or ``small``, which is `Recipe.small`; in
        a mapping the name may be left out, and is then ``shift``.

    Raises
    ------
    InputError
        If the name or an option is unknown, or an option breaks its rule.

    Examples
    --------
    >>> recipe_named({"name": "small", "epochs": 40}).warm_epochs
    8
    """
    if isinstance(spec, Recipe):
        return spec
    found: Recipe = named(spec, {"shift": Recipe, "small": Recipe.small}, "recipe", "shift")
    return found
