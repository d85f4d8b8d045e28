"""Many networks of one shape as one: forward and backward passes by batched products, dropout.

Activations are laid out (networks, units, rows): rows are contiguous, which batched matrix
products like best. All parameters lie in one flat tensor, so that one call of Adam moves all.
Gradients are written out by hand: half the time of automatic differentiation at these sizes.

What dropout drops are the inputs of each layer after the first, and those of the first (x itself)
if asked for. While training, every row draws its own mask. A trained network draws one mask for
each pass, the same for all rows: the law at any one x is the same, a pass is a plain network
with scaled weights, and what is predicted at x does not depend on the rows beside it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray, placed, to_host
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Fraction, Positive
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure_studies.methods.deep.training import Initial, Weights

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
    def prepared(
        self, sizes: Sequence[int], rows: int, own: tuple[Tensor, Tensor] | None
    ) -> DropoutMasks:
        """What drops units while networks are trained on so many rows.

        Rates that are learnt have parameters and gradients of their own, each (m, rates).
        """

    @abstractmethod
    def masks(
        self, rng: np.random.Generator, passes: int, sizes: Sequence[int], rates: FloatArray
    ) -> Weights:
        """What units are multiplied by in each pass of a trained network, (passes, units)."""

    def passes(
        self, rng: np.random.Generator, passes: int, kernels: Sequence[Weights], rates: FloatArray
    ) -> list[Weights]:
        """Kernels of each pass, a plain network each, (passes, out, in); kernels are (out, in)."""
        sizes = [*(kernel.shape[1] for kernel in kernels), kernels[-1].shape[0]]
        masks = self.masks(rng, passes, sizes, rates)
        places = self.dropped(sizes)
        return [
            kernel * masks[:, None, places[layer]]
            if layer in places
            else np.broadcast_to(kernel, (passes, *kernel.shape))
            for layer, kernel in enumerate(kernels)
        ]


class DropoutMasks(ABC):
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

    def scale_gradients(self, layer: int, slope: Tensor) -> Tensor:
        """Gradients by a layer's inputs, given those by what `drop` made of them."""
        return slope * self._mask[:, self._places[layer]]

    def finish(self, kernels: list[Tensor], gradients: list[Tensor]) -> None:
        """Add what dropout itself costs to the gradients of the kernels and of its parameters."""
        return None

    def rates(self, networks: int) -> Weights:
        """Learnt rates, shape (m, rates)."""
        return np.empty((networks, 0), dtype=np.float32)


@final
@frozen
class Bernoulli(Dropout, Checked):
    """Each unit is dropped with one fixed probability; what is kept is divided by its chance.

    Source: Srivastava et al. 2014; kept on while predicting: Gal and Ghahramani 2016.
    """

    rate: Fraction
    drop_input: bool = False

    def prepared(
        self, sizes: Sequence[int], rows: int, own: tuple[Tensor, Tensor] | None
    ) -> DropoutMasks:
        """What drops units while networks are trained."""
        return _BernoulliNoise(self.dropped(sizes), self.rate)

    def masks(
        self, rng: np.random.Generator, passes: int, sizes: Sequence[int], rates: FloatArray
    ) -> Weights:
        """0 or 1/(1 − rate), shape (passes, units)."""
        kept = rng.random((passes, self.units(sizes)), dtype=np.float32) >= self.rate
        return kept.astype(np.float32) / np.float32(1.0 - self.rate)


@final
class _BernoulliNoise(DropoutMasks):
    __slots__ = ("_rate",)

    def __init__(self, places: dict[int, slice], rate: float) -> None:
        super().__init__(places)
        self._rate = rate

    def draw(self, uniforms: Tensor) -> None:
        """0 or 1/(1 − rate)."""
        self._mask = (uniforms >= self._rate).float().div_(1.0 - self._rate)


@final
@frozen
class Concrete(Dropout, Checked):
    """One learnt rate a layer, through a smooth stand-in for dropping.

    With u uniform, z = sigmoid([log(p + ε) − log(1 − p + ε) + log(u + ε) − log(1 − u + ε)]/τ),
    and inputs are multiplied by (1 − z)/(1 − p), where p = sigmoid(ℓ) and ℓ is learnt. Beside
    the mean negative log-likelihood of n rows, each such layer of K inputs costs
    ½ (l²/n) Σ w²/(1 − p) + (K/n) [p log p + (1 − p) log(1 − p)]: half of what the authors' code
    adds to twice the likelihood. Source: Gal, Hron and Kendall 2017, and their code.
    """

    length: Positive = 1e-4
    temperature: Positive = 0.1
    start: Fraction = 0.1
    drop_input: bool = False

    def learnt(self, sizes: Sequence[int]) -> int:
        """One a layer dropped."""
        return len(self.dropped(sizes))

    def prepared(
        self, sizes: Sequence[int], rows: int, own: tuple[Tensor, Tensor] | None
    ) -> DropoutMasks:
        """What drops units while networks are trained; its parameters get their first values."""
        if own is None:
            raise InputError("own must contain the parameters of the rates, got None")
        own[0].fill_(math.log(self.start / (1.0 - self.start)))
        return _ConcreteNoise(self, self.dropped(sizes), rows, own)

    def masks(
        self, rng: np.random.Generator, passes: int, sizes: Sequence[int], rates: FloatArray
    ) -> Weights:
        """(1 − z)/(1 − p), shape (passes, units)."""
        widths = [units.stop - units.start for units in self.dropped(sizes).values()]
        uniforms = placed(rng.random((passes, self.units(sizes)), dtype=np.float32))
        p = placed(np.repeat(rates, widths).astype(np.float32))
        mask = (1.0 - _smooth(uniforms, p, self.temperature)) / (1.0 - p)
        return np.asarray(to_host(mask), dtype=np.float32)


def _smooth(uniforms: Tensor, p: Tensor, temperature: float) -> Tensor:
    """The stand-in z in (0, 1) for dropping with probability p."""
    noise = (uniforms + _EPS).log_() - (1.0 + _EPS - uniforms).log_()
    odds = (p + _EPS).log_() - (1.0 + _EPS - p).log_()
    return noise.add_(odds).div_(temperature).sigmoid_()


@final
class _ConcreteNoise(DropoutMasks):
    """Masks of shape (m, units, rows), and the gradients by the rates' parameters."""

    __slots__ = ("_inputs", "_layer", "_logits", "_options", "_p", "_rows", "_slopes", "_z")

    def __init__(
        self, options: Concrete, places: dict[int, slice], rows: int, own: tuple[Tensor, Tensor]
    ) -> None:
        super().__init__(places)
        self._options, self._rows = options, rows
        self._logits, self._slopes = own
        widths = [units.stop - units.start for units in places.values()]
        self._layer = placed(np.repeat(np.arange(len(widths)), widths), own[0].device)
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
        return DropoutMasks.drop(self, layer, h)

    def scale_gradients(self, layer: int, slope: Tensor) -> Tensor:
        """Gradients by a layer's inputs; what the layer's masks were multiplied by is kept."""
        self._inputs[layer] = slope * self._inputs[layer]
        return DropoutMasks.scale_gradients(self, layer, slope)

    def finish(self, kernels: list[Tensor], gradients: list[Tensor]) -> None:
        """Add the regulariser, and write the gradients by the rates' parameters."""
        p, z, eps = self._p, self._z, _EPS
        bend = (1.0 / (p + eps) + 1.0 / (1.0 - p + eps)) / (self._options.temperature * (1.0 - p))
        by_rate = self._mask / (1.0 - p) - z * (1.0 - z) * bend
        decay = 0.5 * self._options.length**2 / self._rows
        rates = self._logits.sigmoid()
        for number, (layer, units) in enumerate(self._places.items()):
            rate = rates[:, number]
            slope = (by_rate[:, units] * self._inputs[layer]).sum((1, 2))
            squares = kernels[layer].square().sum((1, 2))
            slope += decay * squares / (1.0 - rate) ** 2
            width = (units.stop - units.start) / self._rows
            slope += width * (rate.log() - (1.0 - rate).log())
            self._slopes[:, number] = slope * rate * (1.0 - rate)
            gradients[layer].add_(kernels[layer] * (2.0 * decay / (1.0 - rate))[:, None, None])

    def rates(self, networks: int) -> Weights:
        """Learnt rates, shape (m, layers dropped)."""
        return np.array(to_host(self._logits.sigmoid()), dtype=np.float32)


@final
class BatchedMLP:
    """The parameters of many networks, their gradients, and the passes over minibatches.

    `sizes` are units of each layer, from inputs to outputs; `rngs` draw each network's first
    weights; dropout's regulariser is divided by `rows`; the last `shielded` outputs send no
    gradient into the hidden layers. `values` and `gradients`, shape (p,), hold all parameters, on
    the device.
    """

    __slots__ = (
        "_inputs",
        "_kept",
        "_noise",
        "_rooms",
        "_shapes",
        "_shielded",
        "_threshold",
        "_torch",
        "bias_gradients",
        "biases",
        "count",
        "gradients",
        "kernel_gradients",
        "kernels",
        "sizes",
        "values",
    )

    def __init__(
        self,
        sizes: Sequence[int],
        rngs: Sequence[np.random.Generator],
        dropout: Dropout | None = None,
        rows: int = 1,
        initial: Initial = "glorot",
        shielded: int = 0,
        device: Any = "cpu",
    ) -> None:
        torch = require("torch", extra="deep")
        self._torch = torch
        self._threshold = torch.ops.aten.threshold_backward.grad_input
        self.sizes = tuple(sizes)
        self.count = len(rngs)
        shapes: list[tuple[int, ...]] = [(self.count, o, i) for i, o in pairwise(sizes)]
        shapes += [(self.count, o, 1) for o in sizes[1:]]
        rates = dropout.learnt(sizes) if dropout is not None else 0
        shapes += [(self.count, rates)] * (rates > 0)
        self._shapes = shapes
        total = sum(math.prod(shape) for shape in shapes)
        self.values, self.gradients = (torch.zeros(total, device=device) for _ in range(2))
        layers = len(sizes) - 1
        parts, slopes = (_views(flat, shapes) for flat in (self.values, self.gradients))
        self.kernels, self.kernel_gradients = parts[:layers], slopes[:layers]
        self.biases, self.bias_gradients = parts[layers : 2 * layers], slopes[layers : 2 * layers]
        for kernel in self.kernels:
            fans = kernel.shape[1] + kernel.shape[2] if initial == "glorot" else 6 * kernel.shape[2]
            self._fill(kernel, rngs, math.sqrt(6.0 / fans))
        if initial == "torch":
            for bias, kernel in zip(self.biases, self.kernels, strict=True):
                self._fill(bias, rngs, math.sqrt(1.0 / kernel.shape[2]))
        self._shielded = shielded
        self._noise: DropoutMasks | None = None
        if dropout is not None:
            own = (parts[-1], slopes[-1]) if rates else None
            self._noise = dropout.prepared(self.sizes, rows, own)
        self.values.grad = self.gradients
        self._kept = self.values.clone()
        self._inputs: list[Tensor] = []
        self._rooms: dict[int, tuple[list[Tensor], list[Tensor]]] = {}

    def _fill(self, parameters: Tensor, rngs: Sequence[np.random.Generator], limit: float) -> None:
        """Draw parameters uniform up to a limit, each network's from its own generator."""
        for network, rng in zip(parameters, rngs, strict=True):
            network.copy_(placed(rng.uniform(-limit, limit, network.shape), network.device))

    def forward(self, x: Tensor, uniforms: Tensor | None = None) -> Tensor:
        """Outputs (m, k, b) for inputs (m, d, b); what `backward` needs is kept.

        Dropout draws with uniform numbers, shape (m, units dropped, b).
        """
        torch = self._torch
        if self._noise is not None:
            self._noise.draw(uniforms)
        self._inputs = []
        h, space = x, self._space(x.shape[2])[0]
        last = len(self.kernels) - 1
        for layer, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            if self._noise is not None:
                h = self._noise.drop(layer, h)
            self._inputs.append(h)
            if layer == last:
                break
            h = torch.baddbmm(bias, kernel, h, out=space[layer]).relu_()
        return torch.baddbmm(bias, kernel, h)

    def backward(self, slope: Tensor) -> None:
        """Write the gradients of the loss, given those by the outputs, shape (m, k, b)."""
        torch = self._torch
        for layer in range(len(self.kernels) - 1, -1, -1):
            h = self._inputs[layer]
            torch.bmm(slope, h.transpose(1, 2), out=self.kernel_gradients[layer])
            torch.sum(slope, dim=2, keepdim=True, out=self.bias_gradients[layer])
            dropped = self._noise is not None and self._noise.drops(layer)
            if layer == 0 and not dropped:
                break
            room = self._space(slope.shape[2])[1][layer]
            kernel = self.kernels[layer]
            if layer == len(self.kernels) - 1 and self._shielded:
                kernel, slope = kernel[:, : -self._shielded], slope[:, : -self._shielded]
            slope = torch.bmm(kernel.transpose(1, 2), slope, out=room)
            if self._noise is not None and dropped:
                slope = self._noise.scale_gradients(layer, slope)
            if layer > 0:  # where an input is 0, by ReLU or dropped, its slope is 0
                slope = self._threshold(slope, h, 0.0, grad_input=slope)
        if self._noise is not None:
            self._noise.finish(self.kernels, self.kernel_gradients)

    def _space(self, rows: int) -> tuple[list[Tensor], list[Tensor]]:
        """Room for activations of the hidden layers and for gradients by inputs, kept for reuse."""
        if rows not in self._rooms:

            def empty(units: int) -> Tensor:
                return self._torch.empty(self.count, units, rows, device=self.values.device)

            inner, inputs = self.sizes[1:-1], self.sizes[:-1]
            self._rooms[rows] = ([*map(empty, inner)], [*map(empty, inputs)])
        return self._rooms[rows]

    def decay_weights(self, amount: float) -> None:
        """Add to the gradients those of amount × Σ w² over the hidden layers' kernels."""
        for kernel, gradient in zip(self.kernels[:-1], self.kernel_gradients[:-1], strict=True):
            gradient.add_(kernel, alpha=2.0 * amount)

    def rates(self) -> Weights:
        """Learnt rates of dropout, shape (m, layers); no columns without them."""
        if self._noise is None:
            return np.empty((self.count, 0), dtype=np.float32)
        return self._noise.rates(self.count)

    def sound(self) -> BoolArray:
        """Whether all parameters of each network are finite, shape (m,)."""
        if bool(self.values.sum().isfinite()):
            return np.ones(self.count, dtype=np.bool_)
        tensors = _views(self.values, self._shapes)
        finite = self._torch.stack([tensor.flatten(1).isfinite().all(1) for tensor in tensors]).all(
            0
        )
        return np.asarray(to_host(finite))

    def save(self, networks: BoolArray) -> None:
        """Keep the present state of these networks, for `put_back`."""
        if networks.all():
            self._kept.copy_(self.values)
            return
        chosen = placed(np.flatnonzero(networks), self.values.device)
        pairs = (_views(flat, self._shapes) for flat in (self.values, self._kept))
        for old, new in zip(*pairs, strict=True):
            new[chosen] = old[chosen]

    def put_back(self) -> None:
        """Make the kept states the present ones."""
        self.values.copy_(self._kept)

    def layers_of(self, network: int) -> tuple[tuple[Weights, ...], tuple[Weights, ...]]:
        """Copies of one network's kernels and biases."""
        kernels = tuple(np.array(to_host(kernel[network])) for kernel in self.kernels)
        return kernels, tuple(np.array(to_host(bias[network, :, 0])) for bias in self.biases)


def _views(flat: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Parts of a flat tensor, one after the other, in these shapes."""
    parts, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        parts.append(flat[start:stop].view(shape))
        start = stop
    return parts
