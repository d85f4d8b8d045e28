"""Training thousands of small networks as one batched network.

Each network has its own data, first weights, order of rows and draws of dropout, all from
generators of its own, and its own state of Adam: it comes out as it would alone, up to rounding,
whatever else is trained beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.methods.deep.body import Body
from howsure.methods.deep.dropout import Dropout
from howsure.methods.deep.heads import Head
from howsure.methods.deep.keeper import Keeper
from howsure.methods.deep.members import Member, Network, Training, Weights
from howsure.methods.deep.objective import Data, Objective
from howsure.methods.deep.threads import one_thread_each, side_by_side

_WEIGHTS: Final = 57_600  # of hidden layers, whose products take as long as a step's other work


def train(
    members: Sequence[Member],
    head: Head | Sequence[Head],
    options: Training | None = None,
    dropout: Dropout | None = None,
) -> list[Network]:
    """Train networks.

    Parameters
    ----------
    members : sequence of Member
        What is to be trained; numbers of rows and of columns may differ.
    head : Head or sequence of Head
        What outputs mean, and so the loss: one for all, or one a member.
    options : Training, optional
        How to train.
    dropout : Dropout, optional
        What is dropped while training.

    Returns
    -------
    list of Network
        In the order given. One whose loss stops being finite says where, is as it was after the
        epoch before, and harms no other.

    Raises
    ------
    InputError
        If targets are none that a head speaks of, there is not one head a member, the best state
        is wanted without rows held out, or rows are held out beside dropout.
    MissingDependencyError
        If torch is not installed.

    Notes
    -----
    Adam as in Keras, except that ε is added to the corrected root, not to the raw one; with a
    weight decay, AdamW as in torch, with its ε of 1e-8. Memory grows with ``options.chunk`` times
    torch's number of threads, not with the number of members.

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
    heads = [head] * len(members) if isinstance(head, Head) else list(head)
    _check(members, heads, chosen, dropout is not None)
    with one_thread_each() as threads:
        chunks = [
            chunk
            for places in _groups(members, heads)
            for chunk in _chunks(places, min(chosen.chunk, _share(len(places), threads, chosen)))
        ]
        trained = side_by_side(
            lambda chunk: _train_chunk(
                [members[k] for k in chunk], [heads[k] for k in chunk], chosen, dropout
            ),
            chunks,
            threads,
        )
    networks = dict(zip(chain(*chunks), chain(*trained), strict=True))
    return [networks[place] for place in range(len(members))]


def _check(
    members: Sequence[Member], heads: Sequence[Head], options: Training, dropped: bool
) -> None:
    if len(heads) != len(members):
        raise InputError(f"head must be one, or one for each of {len(members)}, got {len(heads)}")
    for member, head in zip(members, heads, strict=True):
        if options.keep == "best" and member.held is None:
            raise InputError("keep must be 'last' where no rows are held out, got 'best'")
        head.check_targets(member.y)
        if member.held is not None:
            if dropped:
                raise InputError("held must be left out beside dropout, got rows")
            head.check_targets(member.held[1])


def _groups(members: Sequence[Member], heads: Sequence[Head]) -> list[list[int]]:
    """Places of networks of one shape, those of one head side by side."""
    order = {head: place for place, head in enumerate(dict.fromkeys(heads))}
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, (member, head) in enumerate(zip(members, heads, strict=True)):
        held = None if member.held is None else member.held[0].shape
        groups[member.x.shape, held, head.outputs, head.shielded].append(place)
    return [sorted(places, key=lambda place: order[heads[place]]) for places in groups.values()]


def _chunks(places: list[int], size: int) -> list[list[int]]:
    return [places[start : start + size] for start in range(0, len(places), size)]


def _share(count: int, threads: int, options: Training) -> int:
    """Networks a thread, when they are few; a step of fewer takes hardly less time."""
    weights = sum(i * o for i, o in pairwise(options.layers))
    return max(-(-count // threads), _WEIGHTS // max(weights, 1), 1)


def _train_chunk(
    members: list[Member], heads: list[Head], options: Training, dropout: Dropout | None
) -> list[Network]:
    torch = require("torch", extra="deep")
    data = Data.of(members, heads, options)
    objective = Objective(heads, data.starts)
    count, columns, n = data.x.shape
    sizes = (columns, *options.layers, heads[0].outputs)
    rngs = [member.rng("weights") for member in members]
    body = Body(sizes, rngs, dropout, n, options.initial, heads[0].shielded)
    optimiser = _optimiser(torch, body, options)
    keeper = Keeper(body, objective, data, options)
    orders = [member.rng("order") for member in members]
    masks = [member.rng("masks") for member in members]
    uniforms = torch.empty(count, dropout.units(sizes), n) if dropout else None
    losses = torch.empty(-(-n // options.batch_size), count, dtype=torch.float64)
    rates = []
    with torch.no_grad():
        for epoch in range(options.epochs):
            optimiser.param_groups[0]["lr"] = options.pace(epoch)
            order = torch.from_numpy(np.stack([rng.permutation(n) for rng in orders]))
            inputs = data.x.gather(2, order[:, None].expand(data.x.shape))
            targets = data.y.gather(1, order)
            if uniforms is not None:
                for part, rng in zip(uniforms, masks, strict=True):
                    rng.random(out=part.numpy(), dtype=np.float32)
            for step in range(len(losses)):
                batch = slice(step * options.batch_size, (step + 1) * options.batch_size)
                drawn = None if uniforms is None else uniforms[:, :, batch]
                outputs = body.forward(inputs[:, :, batch], drawn)
                losses[step], slope = objective.slope(outputs, targets[:, batch])
                body.backward(slope)
                if options.penalty > 0:
                    body.shrink(options.penalty / n)
                optimiser.step()
            rates.append(body.rates())
            if not keeper.look(epoch + 1, losses):
                break
        trace = keeper.settle()
        objective.absorb(body.kernels[-1], body.biases[-1])
    return _networks(body, data, keeper, trace, np.stack(rates, axis=1))


def _optimiser(torch: Any, body: Body, options: Training) -> Any:
    body.values.grad = body.gradients
    if options.weight_decay > 0:
        return torch.optim.AdamW(
            [body.values], lr=options.learning_rate, weight_decay=options.weight_decay, fused=True
        )
    return torch.optim.Adam([body.values], lr=options.learning_rate, eps=1e-7, fused=True)


def _networks(
    body: Body, data: Data, keeper: Keeper, trace: FloatArray, rates: Weights
) -> list[Network]:
    networks = []
    for place, scale in enumerate(data.scales):
        kernels, biases = body.layers_of(place)
        sound = scale.sound
        failure = keeper.failures[place] if sound else "data too large to standardise"
        networks.append(
            Network(
                kernels,
                biases,
                scale,
                failure,
                int(keeper.kept[place]) if sound else 0,
                trace[place],
                rates[place].astype(np.float64),
            )
        )
    return networks
