"""Dropout at a fixed rate and at rates that are learnt, for many networks at once.

What is dropped are the inputs of each layer after the first, and those of the first (x itself)
if asked for. While training, every row draws its own mask. A trained network draws one mask for
each pass, the same for all rows: the law at any one x is the same, a pass is a plain network
with scaled weights, and the belief at x does not depend on the rows beside it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import Checked, Fraction, Positive
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.methods.deep.members import Weights

Tensor = Any

_EPS: Final = 1e-7


class Dropout(ABC):
    """What is dropped, and how often. Subclasses are final."""

    __slots__ = ()
    drop_input: bool

    def dropped(self, sizes: Sequence[int]) -> dict[int, slice]:
        """The layers whose inputs are dropped, and where their units lie among those dropped."""
        places, start = {}, 0
        for layer in range(0 if self.drop_input else 1, len(sizes) - 1):
            places[layer] = slice(start, start + sizes[layer])
            start += sizes[layer]
        return places

    def units(self, sizes: Sequence[int]) -> int:
        """How many units are dropped or kept."""
        return sum(sizes[0 if self.drop_input else 1 : -1])

    def learnt(self, sizes: Sequence[int]) -> int:
        """How many rates are learnt, each with one parameter."""
        return 0

    @abstractmethod
    def prepared(self, sizes: Sequence[int], rows: int, own: tuple[Tensor, Tensor] | None) -> Noise:
        """What drops units while networks are trained.

        Parameters
        ----------
        sizes : sequence of int
            Units of each layer, from the inputs to the outputs.
        rows : int
            Rows of training data.
        own : tuple of tensor, optional
            Learnt parameters and their gradients, each of shape (m, rates); first values are set.
        """

    @abstractmethod
    def masks(
        self, rng: np.random.Generator, passes: int, sizes: Sequence[int], rates: FloatArray
    ) -> Weights:
        """What units are multiplied by in each pass of a trained network, (passes, units)."""

    def passes(
        self,
        rng: np.random.Generator,
        passes: int,
        kernels: Sequence[Weights],
        rates: FloatArray,
    ) -> list[Weights]:
        """Kernels of each pass: a plain network each, shapes (passes, out, in).

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws the masks.
        passes : int
            How many.
        kernels : sequence of ndarray of float32, shapes (out, in)
            The trained network's.
        rates : ndarray of float, shape (layers dropped,)
            Learnt rates; empty where they are fixed.
        """
        sizes = [*(kernel.shape[1] for kernel in kernels), kernels[-1].shape[0]]
        masks = self.masks(rng, passes, sizes, rates)
        places = self.dropped(sizes)
        return [
            kernel * masks[:, None, places[layer]]
            if layer in places
            else np.broadcast_to(kernel, (passes, *kernel.shape))
            for layer, kernel in enumerate(kernels)
        ]


class Noise(ABC):
    """Drops units while networks are trained: masks of shape (m, units, rows)."""

    __slots__ = ("_mask", "_places")

    def __init__(self, places: dict[int, slice]) -> None:
        self._places = places
        self._mask: Tensor = None

    def drops(self, layer: int) -> bool:
        """Whether the layer's inputs are dropped."""
        return layer in self._places

    @abstractmethod
    def draw(self, uniforms: Tensor) -> None:
        """Make the masks of a minibatch from uniform numbers, shape (m, units, b)."""

    def drop(self, layer: int, h: Tensor) -> Tensor:
        """A layer's inputs, some dropped."""
        return h * self._mask[:, self._places[layer]] if layer in self._places else h

    def back(self, layer: int, slope: Tensor) -> Tensor:
        """Gradients by a layer's inputs, given those by what `drop` made of them."""
        return slope * self._mask[:, self._places[layer]]

    def finish(self, kernels: list[Tensor], gradients: list[Tensor]) -> None:
        """Add what dropout itself costs to the gradients of the kernels and of its parameters."""
        return None

    def rates(self, networks: int) -> Weights:
        """Learnt rates, shape (m, rates)."""
        return np.empty((networks, 0), dtype=np.float32)


@final
@dataclass(frozen=True, slots=True)
class Bernoulli(Dropout, Checked):
    """Each unit is dropped with one fixed probability; what is kept is divided by its chance.

    Parameters
    ----------
    rate : float
        The probability, in (0, 1).
    drop_input : bool
        Whether x is dropped too.

    Raises
    ------
    InputError
        If the rate leaves (0, 1).

    Notes
    -----
    Source: Srivastava et al. 2014; kept on while predicting: Gal and Ghahramani 2016.

    Examples
    --------
    >>> Bernoulli(0.5).masks(np.random.default_rng(0), 1, (1, 4, 1), np.empty(0))
    array([[2., 2., 2., 0.]], dtype=float32)
    """

    rate: Fraction
    drop_input: bool = False

    def prepared(self, sizes: Sequence[int], rows: int, own: tuple[Tensor, Tensor] | None) -> Noise:
        """What drops units while networks are trained."""
        return _BernoulliNoise(self.dropped(sizes), self.rate)

    def masks(
        self, rng: np.random.Generator, passes: int, sizes: Sequence[int], rates: FloatArray
    ) -> Weights:
        """0 or 1/(1 − rate), shape (passes, units)."""
        kept = rng.random((passes, self.units(sizes)), dtype=np.float32) >= self.rate
        return kept.astype(np.float32) / np.float32(1.0 - self.rate)


@final
class _BernoulliNoise(Noise):
    __slots__ = ("_rate",)

    def __init__(self, places: dict[int, slice], rate: float) -> None:
        super().__init__(places)
        self._rate = rate

    def draw(self, uniforms: Tensor) -> None:
        """0 or 1/(1 − rate)."""
        self._mask = (uniforms >= self._rate).float().div_(1.0 - self._rate)


@final
@dataclass(frozen=True, slots=True)
class Concrete(Dropout, Checked):
    """One learnt rate a layer, through a smooth stand-in for dropping.

    Parameters
    ----------
    length : float
        The prior's length scale l, above 0.
    temperature : float
        How far from 0 and 1 masks may stay, above 0.
    start : float
        The first rate, in (0, 1).
    drop_input : bool
        Whether x is dropped too, at a rate of its own.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    With u uniform, z = sigmoid([log(p + ε) − log(1 − p + ε) + log(u + ε) − log(1 − u + ε)]/τ),
    and inputs are multiplied by (1 − z)/(1 − p), where p = sigmoid(ℓ) and ℓ is learnt. Beside
    the mean negative log-likelihood of n rows, each such layer of K inputs costs
    ½ (l²/n) Σ w²/(1 − p) + (K/n) [p log p + (1 − p) log(1 − p)]: half of what the authors' code
    adds to twice the likelihood. Source: Gal, Hron and Kendall 2017, and their code.

    Examples
    --------
    >>> Concrete().learnt((1, 40, 30, 20, 2))
    3
    """

    length: Positive = 1e-4
    temperature: Positive = 0.1
    start: Fraction = 0.1
    drop_input: bool = False

    def learnt(self, sizes: Sequence[int]) -> int:
        """One a layer dropped."""
        return len(self.dropped(sizes))

    def prepared(self, sizes: Sequence[int], rows: int, own: tuple[Tensor, Tensor] | None) -> Noise:
        """What drops units while networks are trained; its parameters get their first values."""
        if own is None:
            raise InputError("own must hold the parameters of the rates, got None")
        own[0].fill_(math.log(self.start / (1.0 - self.start)))
        return _ConcreteNoise(self, self.dropped(sizes), rows, own)

    def masks(
        self, rng: np.random.Generator, passes: int, sizes: Sequence[int], rates: FloatArray
    ) -> Weights:
        """(1 − z)/(1 − p), shape (passes, units)."""
        torch = require("torch", extra="deep")
        widths = [place.stop - place.start for place in self.dropped(sizes).values()]
        uniforms = torch.from_numpy(rng.random((passes, self.units(sizes)), dtype=np.float32))
        p = torch.from_numpy(np.repeat(rates, widths).astype(np.float32))
        mask = (1.0 - _smooth(uniforms, p, self.temperature)) / (1.0 - p)
        return np.asarray(mask.numpy(), dtype=np.float32)


def _smooth(uniforms: Tensor, p: Tensor, temperature: float) -> Tensor:
    """The stand-in z in (0, 1) for dropping with probability p."""
    noise = (uniforms + _EPS).log_() - (1.0 + _EPS - uniforms).log_()
    odds = (p + _EPS).log_() - (1.0 + _EPS - p).log_()
    return noise.add_(odds).div_(temperature).sigmoid_()


@final
class _ConcreteNoise(Noise):
    """Masks of shape (m, units, rows), and the gradients by the rates' parameters."""

    __slots__ = ("_inputs", "_layer", "_logits", "_options", "_p", "_rows", "_slopes", "_z")

    def __init__(
        self, options: Concrete, places: dict[int, slice], rows: int, own: tuple[Tensor, Tensor]
    ) -> None:
        super().__init__(places)
        torch = require("torch", extra="deep")
        self._options, self._rows = options, rows
        self._logits, self._slopes = own
        widths = torch.tensor([place.stop - place.start for place in places.values()])
        self._layer = torch.repeat_interleave(torch.arange(len(widths)), widths)
        self._inputs: dict[int, Tensor] = {}
        self._p: Tensor = None
        self._z: Tensor = None

    def draw(self, uniforms: Tensor) -> None:
        """Smooth masks at the present rates."""
        self._p = self._logits.sigmoid()[:, self._layer, None]
        self._z = _smooth(uniforms, self._p, self._options.temperature)
        self._mask = (1.0 - self._z).div_(1.0 - self._p)
        self._inputs = {}

    def drop(self, layer: int, h: Tensor) -> Tensor:
        """A layer's inputs, some dropped; they are kept for the gradients by the rates."""
        self._inputs[layer] = h
        return Noise.drop(self, layer, h)

    def back(self, layer: int, slope: Tensor) -> Tensor:
        """Gradients by a layer's inputs; what the layer's masks were multiplied by is kept."""
        self._inputs[layer] = slope * self._inputs[layer]
        return Noise.back(self, layer, slope)

    def finish(self, kernels: list[Tensor], gradients: list[Tensor]) -> None:
        """Add the regulariser, and write the gradients by the rates' parameters."""
        p, z, eps = self._p, self._z, _EPS
        bend = (1.0 / (p + eps) + 1.0 / (1.0 - p + eps)) / (self._options.temperature * (1.0 - p))
        by_rate = self._mask / (1.0 - p) - z * (1.0 - z) * bend
        decay = 0.5 * self._options.length**2 / self._rows
        rates = self._logits.sigmoid()
        for number, (layer, place) in enumerate(self._places.items()):
            rate = rates[:, number]
            slope = (by_rate[:, place] * self._inputs[layer]).sum((1, 2))
            squares = kernels[layer].square().sum((1, 2))
            slope += decay * squares / (1.0 - rate) ** 2
            width = (place.stop - place.start) / self._rows
            slope += width * (rate.log() - (1.0 - rate).log())
            self._slopes[:, number] = slope * rate * (1.0 - rate)
            gradients[layer].add_(kernels[layer] * (2.0 * decay / (1.0 - rate))[:, None, None])

    def rates(self, networks: int) -> Weights:
        """Learnt rates, shape (m, layers dropped)."""
        return np.asarray(self._logits.sigmoid().numpy(), dtype=np.float32).copy()
