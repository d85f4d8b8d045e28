"""Training thousands of small networks as one batched network.

Each network has its own data, first weights, order of rows and draws of dropout, all from
generators of its own, and its own state of Adam: it comes out as it would alone, up to rounding,
whatever else is trained beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.optional import require
from howsure.methods.deep.body import Body
from howsure.methods.deep.dropout import Dropout
from howsure.methods.deep.heads import Head
from howsure.methods.deep.members import Member, Network, Scale, Training
from howsure.methods.deep.threads import one_thread_each, side_by_side

Tensor = Any


def train(
    members: Sequence[Member],
    head: Head,
    options: Training | None = None,
    dropout: Dropout | None = None,
) -> list[Network]:
    """Train networks.

    Parameters
    ----------
    members : sequence of Member
        What is to be trained; numbers of rows and of columns may differ.
    head : Head
        What outputs mean, and so the loss.
    options : Training, optional
        How to train.
    dropout : Dropout, optional
        What is dropped while training.

    Returns
    -------
    list of Network
        In the order given. One whose loss stops being finite says so, and harms no other.

    Raises
    ------
    MissingDependencyError
        If torch is not installed.

    Notes
    -----
    Adam as in Keras, except that ε is added to the corrected root, not to the raw one. Memory
    grows with ``options.chunk`` times torch's number of threads, not with the number of members.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("torch")
    >>> from howsure.methods.deep.heads import SquaredError
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> members = [Member(x, x[:, 0], seed=0, index=k) for k in range(3)]
    >>> len(train(members, SquaredError(), Training(layers=(4,), epochs=2)))
    3
    """
    chosen = Training() if options is None else options
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, member in enumerate(members):
        groups[member.x.shape].append(place)
    with one_thread_each() as threads:
        chunks = [
            chunk
            for places in groups.values()
            for chunk in _chunks(places, min(chosen.chunk, _share(len(places), threads)))
        ]
        trained = side_by_side(
            lambda chunk: _train_chunk([members[k] for k in chunk], head, chosen, dropout),
            chunks,
            threads,
        )
    networks = dict(zip(chain(*chunks), chain(*trained), strict=True))
    return [networks[place] for place in range(len(members))]


def _chunks(places: list[int], size: int) -> list[list[int]]:
    return [places[start : start + size] for start in range(0, len(places), size)]


def _share(count: int, threads: int) -> int:
    """Networks a thread, when they are few; a step of fewer than 32 takes no less time."""
    return max(-(-count // threads), 32)


def _train_chunk(
    members: list[Member], head: Head, options: Training, dropout: Dropout | None
) -> list[Network]:
    torch = require("torch", extra="deep")
    x, y, scales = _standardised(members, head)
    n = y.shape[1]
    sizes = (x.shape[1], *options.layers, head.outputs)
    body = Body(sizes, [m.rng("weights") for m in members], dropout, rows=n)
    adam = torch.optim.Adam([body.values], lr=options.learning_rate, eps=1e-7, fused=True)
    body.values.grad = body.gradients
    orders = [member.rng("order") for member in members]
    masks = [member.rng("masks") for member in members]
    uniforms = torch.empty(len(members), dropout.units(sizes), n) if dropout else None
    failed: dict[int, int] = {}
    rates = []
    with torch.no_grad():
        for epoch in range(options.epochs):
            order = torch.from_numpy(np.stack([rng.permutation(n) for rng in orders]))
            inputs = x.gather(2, order[:, None].expand(x.shape))
            targets = y.gather(1, order)
            if uniforms is not None:
                for part, rng in zip(uniforms, masks, strict=True):
                    rng.random(out=part.numpy(), dtype=np.float32)
            total = torch.zeros(len(members))
            for start in range(0, n, options.batch_size):
                batch = slice(start, start + options.batch_size)
                drawn = None if uniforms is None else uniforms[:, :, batch]
                outputs = body.forward(inputs[:, :, batch], drawn)
                losses, slope = _loss(torch, head, outputs, targets[:, batch])
                total += losses
                body.backward(slope)
                if options.penalty > 0:
                    body.shrink(options.penalty / n)
                adam.step()
            for network in np.flatnonzero(~torch.isfinite(total).numpy()):
                failed.setdefault(int(network), epoch + 1)
            rates.append(body.rates())
    trace = np.stack(rates, axis=1).astype(np.float64)
    networks = []
    for place, scale in enumerate(scales):
        kernels, biases = body.layers_of(place)
        failure = f"loss not finite in epoch {failed[place]}" if place in failed else None
        if not scale.sound:
            failure = "data too large to standardise"
        networks.append(Network(kernels, biases, scale, failure, trace[place]))
    return networks


def _loss(torch: Any, head: Head, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The mean loss of each network over its rows, and its gradient by the outputs."""
    with torch.enable_grad():
        outputs.requires_grad_()
        losses = head.loss(outputs, y).mean(-1)
        (slope,) = torch.autograd.grad(losses.sum(), outputs)
    return losses.detach(), slope


def _standardised(members: list[Member], head: Head) -> tuple[Tensor, Tensor, list[Scale]]:
    """Inputs of shape (m, d, n), targets of shape (m, n), and their scales."""
    torch = require("torch", extra="deep")
    scales: list[Scale] = []
    inputs: list[FloatArray] = []
    targets: list[FloatArray] = []
    for member in members:
        x, y = member.rows()
        scale = Scale.of(x, y, targets=head.standardises)
        scales.append(scale)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite fails
            inputs.append(scale.inputs(x).T.astype(np.float32))
            targets.append(scale.targets(y).astype(np.float32))
    return torch.from_numpy(np.stack(inputs)), torch.from_numpy(np.stack(targets)), scales
