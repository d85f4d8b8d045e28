"""Many networks of one shape as one: forward and backward passes by batched products.

Activations are laid out (networks, units, rows): rows are contiguous, which batched matrix
products like best. All parameters lie in one flat tensor, so that one call of Adam moves all.
Gradients are written out by hand: half the time of automatic differentiation at these sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, final

import numpy as np

from howsure.core.optional import require
from howsure.methods.deep.dropout import Dropout, Noise
from howsure.methods.deep.members import Initial, Weights

Tensor = Any


@final
class Body:
    """The parameters of many networks, their gradients, and the passes over minibatches.

    Parameters
    ----------
    sizes : sequence of int
        Units of each layer, from the inputs to the outputs.
    rngs : sequence of numpy.random.Generator
        One a network, for its first weights.
    dropout : Dropout, optional
        What is dropped while training.
    rows : int
        Rows of training data, which dropout's regulariser is divided by.
    initial : {"glorot", "torch"}
        First weights: see `Training`.
    shielded : int
        How many outputs, the last ones, send no gradient into the hidden layers.

    Attributes
    ----------
    values, gradients : tensor of shape (p,)
        All parameters of all networks, and the gradients of the loss.

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> body = Body((1, 4, 2), [np.random.default_rng(k) for k in range(3)])
    >>> tuple(body.forward(torch.zeros(3, 1, 5)).shape)
    (3, 2, 5)
    """

    __slots__ = (
        "_inputs",
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
        self.values, self.gradients = torch.zeros(total), torch.zeros(total)
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
        self._noise: Noise | None = None
        if dropout is not None:
            own = (parts[-1], slopes[-1]) if rates else None
            self._noise = dropout.prepared(self.sizes, rows, own)
        self._inputs: list[Tensor] = []
        self._rooms: dict[int, tuple[list[Tensor], list[Tensor]]] = {}

    def _fill(self, part: Tensor, rngs: Sequence[np.random.Generator], limit: float) -> None:
        """Draw parameters uniform up to a limit, each network's from its own generator."""
        for network, rng in zip(part, rngs, strict=True):
            network.copy_(self._torch.from_numpy(rng.uniform(-limit, limit, network.shape)))

    def forward(self, x: Tensor, uniforms: Tensor | None = None) -> Tensor:
        """Outputs for a minibatch of each network; what `backward` needs is kept.

        Parameters
        ----------
        x : tensor of shape (m, d, b)
            Inputs.
        uniforms : tensor of shape (m, units dropped, b), optional
            What dropout draws with.

        Returns
        -------
        tensor of shape (m, k, b)
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
            place = self._space(slope.shape[2])[1][layer]
            kernel = self.kernels[layer]
            if layer == len(self.kernels) - 1 and self._shielded:
                kernel, slope = kernel[:, : -self._shielded], slope[:, : -self._shielded]
            slope = torch.bmm(kernel.transpose(1, 2), slope, out=place)
            if self._noise is not None and dropped:
                slope = self._noise.back(layer, slope)
            if layer > 0:  # where an input is 0, by ReLU or dropped, its slope is 0
                slope = self._threshold(slope, h, 0.0, grad_input=slope)
        if self._noise is not None:
            self._noise.finish(self.kernels, self.kernel_gradients)

    def _space(self, rows: int) -> tuple[list[Tensor], list[Tensor]]:
        """Room for activations of the hidden layers and for gradients by inputs, kept for reuse."""
        if rows not in self._rooms:
            empty = self._torch.empty
            self._rooms[rows] = (
                [empty(self.count, units, rows) for units in self.sizes[1:-1]],
                [empty(self.count, units, rows) for units in self.sizes[:-1]],
            )
        return self._rooms[rows]

    def shrink(self, amount: float) -> None:
        """Add to the gradients those of amount × Σ w² over the hidden layers' kernels."""
        for kernel, gradient in zip(self.kernels[:-1], self.kernel_gradients[:-1], strict=True):
            gradient.add_(kernel, alpha=2.0 * amount)

    def rates(self) -> Weights:
        """Learnt rates of dropout, shape (m, layers); no columns without them."""
        if self._noise is None:
            return np.empty((self.count, 0), dtype=np.float32)
        return self._noise.rates(self.count)

    def move(self, source: Tensor, target: Tensor, networks: Tensor) -> None:
        """Copy some networks' parameters, by index, between flat tensors of all."""
        for old, new in zip(self._parts(source), self._parts(target), strict=True):
            new[networks] = old[networks]

    def finite(self) -> Tensor:
        """Whether all parameters of each network are finite, shape (m,)."""
        parts = self._parts(self.values)
        return self._torch.stack([part.flatten(1).isfinite().all(1) for part in parts]).all(0)

    def _parts(self, flat: Tensor) -> list[Tensor]:
        return _views(flat, self._shapes)

    def layers_of(self, network: int) -> tuple[tuple[Weights, ...], tuple[Weights, ...]]:
        """Copies of one network's kernels and biases."""
        kernels = tuple(kernel[network].numpy().copy() for kernel in self.kernels)
        return kernels, tuple(bias[network, :, 0].numpy().copy() for bias in self.biases)


def _views(flat: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Parts of a flat tensor, one after the other, in these shapes."""
    parts, start = [], 0
    for shape in shapes:
        stop = start + math.prod(shape)
        parts.append(flat[start:stop].view(shape))
        start = stop
    return parts
