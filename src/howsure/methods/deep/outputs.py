"""Outputs of trained networks at new rows, all networks in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.optional import require
from howsure.methods.deep.dropout import Dropout
from howsure.methods.deep.heads import Gaussian, SquaredError
from howsure.methods.deep.members import Network, Weights
from howsure.methods.deep.threads import one_thread_each

_ROOM: Final = 2**23


def outputs(networks: Sequence[Network], x: FloatArray) -> FloatArray:
    """Outputs of networks of one shape, on the scale that they were trained on.

    Parameters
    ----------
    networks : sequence of Network
        The networks.
    x : ndarray of float, shape (n, d)
        Inputs in their own units.

    Returns
    -------
    ndarray of float, shape (m, k, n)

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("torch")
    >>> from howsure.methods.deep.members import Scale
    >>> scale = Scale(np.zeros(1), np.ones(1), 0.0, 1.0)
    >>> line = Network((np.full((1, 1), 2.0, "f4"),), (np.ones(1, "f4"),), scale)
    >>> outputs([line], np.array([[3.0]]))
    array([[[7.]]])
    """
    kernels = [np.stack(layer) for layer in zip(*(n.kernels for n in networks), strict=True)]
    biases = [np.stack(layer) for layer in zip(*(n.biases for n in networks), strict=True)]
    found = []
    for rows in _blocks(x, kernels):
        inputs = [n.scale.inputs(rows) for n in networks]
        found.append(_forward(kernels, biases, np.stack(inputs).swapaxes(1, 2)))
    return np.concatenate(found, axis=2)


def dropped_outputs(
    network: Network, x: FloatArray, dropout: Dropout, rng: np.random.Generator, passes: int
) -> FloatArray:
    """Outputs of one network with dropout kept on, each pass with one mask for all rows.

    Parameters
    ----------
    network : Network
        The trained network.
    x : ndarray of float, shape (n, d)
        Inputs in their own units.
    dropout : Dropout
        What it was trained with.
    rng : numpy.random.Generator
        Draws the masks.
    passes : int
        How many.

    Returns
    -------
    ndarray of float, shape (passes, k, n)
    """
    rates = network.rates[-1]
    kernels = dropout.passes(rng, passes, network.kernels, rates)
    biases = [np.broadcast_to(bias, (passes, len(bias))) for bias in network.biases]
    found = []
    for rows in _blocks(x, kernels):
        inputs = network.scale.inputs(rows).T
        found.append(_forward(kernels, biases, np.broadcast_to(inputs, (passes, *inputs.shape))))
    return np.concatenate(found, axis=2)


def moments(
    networks: Sequence[Network], head: Gaussian | SquaredError, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and variances that heads of normal laws give, in the units of y, each of shape (m, n).

    Parameters
    ----------
    networks : sequence of Network
        One for each row of `values`, or one for all.
    head : Gaussian or SquaredError
        Their head.
    values : ndarray of float, shape (m, k, n)
        Their outputs.
    """
    own = list(networks) * (len(values) if len(networks) == 1 else 1)
    laws = [
        head.belief(part, network.scale.y_center, network.scale.y_unit)
        for part, network in zip(values, own, strict=True)
    ]
    means = np.stack([law.point() for law in laws])
    return means, np.stack([np.square(law.sd()) for law in laws])


def _forward(kernels: Sequence[Weights], biases: Sequence[Weights], x: Any) -> FloatArray:
    torch = require("torch", extra="deep")
    with np.errstate(over="ignore"):  # infinite inputs have outputs that are not finite
        h = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
    last = len(kernels) - 1
    with one_thread_each(), torch.no_grad():
        for layer, (kernel, bias) in enumerate(zip(kernels, biases, strict=True)):
            own = torch.from_numpy(np.ascontiguousarray(bias)[:, :, None])
            h = torch.baddbmm(own, torch.from_numpy(np.ascontiguousarray(kernel)), h)
            h = h.relu_() if layer < last else h
    return np.asarray(h.numpy(), dtype=np.float64)


def _blocks(x: FloatArray, kernels: Sequence[Weights]) -> Iterator[FloatArray]:
    """Blocks of rows whose activations take bounded memory."""
    widest = max(max(kernel.shape[1:]) for kernel in kernels)
    rows = max(_ROOM // (len(kernels[0]) * widest), 1)
    for start in range(0, len(x), rows):
        yield x[start : start + rows]
