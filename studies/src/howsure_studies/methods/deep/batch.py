"""Training thousands of small networks as one batched network, and their outputs.

Each network has its own data, first weights, order of rows and draws of dropout, all from
generators of its own, and its own state of Adam: it comes out as it would alone, up to rounding,
whatever else is trained beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field
from itertools import chain, groupby, pairwise
from typing import Any, Final, TypeVar, final

import numpy as np

from howsure.core.arrays import FloatArray, placed, to_host
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.core.rng import child
from howsure_studies.methods.deep.heads import Gaussian, Head, SquaredError
from howsure_studies.methods.deep.mlp import BatchedMLP, Dropout
from howsure_studies.methods.deep.training import (
    BatchTraining,
    BestCheckpoint,
    OutputInitialisation,
    Standardization,
    Weights,
    start_of,
)

Tensor = Any
Item = TypeVar("Item")
Result = TypeVar("Result")

_WEIGHTS: Final = 57_600  # of hidden layers, whose products take as long as a step's other work
_ROOM: Final = 2**23


@final
@frozen(eq=False)
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
    begin : Network, optional
        A trained network of this shape whose weights are the first ones, on the scale of its own
        data. Adam begins anew.

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
    begin: Network | None = None

    def rng(self, purpose: str) -> np.random.Generator:
        """The member's own generator for one purpose."""
        return child(self.seed, "network", self.index, purpose)

    def rows(self) -> tuple[FloatArray, FloatArray]:
        """What it is trained on."""
        if self.resample is None:
            return self.x, self.y
        n = len(self.y)
        chosen = child(self.seed, "resample", self.resample).integers(n, size=n)
        return self.x[chosen], self.y[chosen]


@final
@frozen(eq=False)
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
    scale: Standardization
    failure: str | None = None
    kept: int = 0
    losses: FloatArray = field(default_factory=lambda: np.empty((0, 2)))
    rates: FloatArray = field(default_factory=lambda: np.empty((0, 0)))


def train(
    members: Sequence[Member],
    head: Head | Sequence[Head],
    options: BatchTraining | None = None,
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
    >>> from howsure_studies.methods.deep.heads import SquaredError
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> members = [Member(x, x[:, 0], seed=0, index=k) for k in range(3)]
    >>> len(train(members, SquaredError(), BatchTraining(layers=(4,), epochs=2)))
    3
    """
    chosen = BatchTraining() if options is None else options
    heads = [head] * len(members) if isinstance(head, Head) else list(head)
    _check(members, heads, chosen, dropout is not None)
    device = chosen.torch_device()
    with one_thread_each() as cores:
        threads = cores if device.type == "cpu" else 1
        chunks = [
            chunk for group in _groups(members, heads) for chunk in _chunks(group, threads, chosen)
        ]
        trained = side_by_side(
            lambda chunk: Chunk(
                [members[k] for k in chunk], [heads[k] for k in chunk], chosen, dropout, device
            ).run(),
            chunks,
            threads,
        )
    networks = dict(zip(chain(*chunks), chain(*trained), strict=True))
    return [networks[number] for number in range(len(members))]


def _check(
    members: Sequence[Member], heads: Sequence[Head], options: BatchTraining, dropped: bool
) -> None:
    if len(heads) != len(members):
        raise InputError(f"head must be one, or one for each of {len(members)}, got {len(heads)}")
    for member, head in zip(members, heads, strict=True):
        options.check_held(member.held)
        head.check_targets(member.y)
        if member.held is not None:
            if dropped:
                raise InputError("held must be left out beside dropout, got rows")
            head.check_targets(member.held[1])


def _groups(members: Sequence[Member], heads: Sequence[Head]) -> list[list[int]]:
    """Numbers of networks of one shape, those of one head side by side."""
    order = {head: rank for rank, head in enumerate(dict.fromkeys(heads))}
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, (member, head) in enumerate(zip(members, heads, strict=True)):
        validation = None if member.held is None else member.held[0].shape
        groups[member.x.shape, validation, head.outputs, head.shielded].append(number)
    return [sorted(group, key=lambda number: order[heads[number]]) for group in groups.values()]


def _chunks(numbers: list[int], threads: int, options: BatchTraining) -> list[list[int]]:
    """Numbers in chunks: for each thread one, when they are few, as long as steps are worth it."""
    weights = sum(i * o for i, o in pairwise(options.layers))
    share = max(-(-len(numbers) // threads), _WEIGHTS // max(weights, 1), 1)
    size = min(options.chunk, share)
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


@final
class Chunk:
    """Networks of one shape in training, all on one device."""

    __slots__ = (
        "_data",
        "_device",
        "_masks",
        "_objective",
        "_options",
        "_orders",
        "_torch",
        "_uniforms",
        "mlp",
        "optimiser",
    )

    def __init__(
        self,
        members: Sequence[Member],
        heads: Sequence[Head],
        options: BatchTraining,
        dropout: Dropout | None = None,
        device: Any = "cpu",
    ) -> None:
        self._torch = require("torch", extra="deep")
        self._options, self._device = options, device
        self._data = Data.of(members, heads, options, device)
        self._objective = Objective(heads, self._data.initialisation)
        count, columns, n = self._data.x.shape
        sizes = (columns, *options.layers, heads[0].outputs)
        rngs = [member.rng("weights") for member in members]
        shielded = heads[0].shielded
        self.mlp = BatchedMLP(sizes, rngs, dropout, n, options.initial, shielded, device)
        for number, member in enumerate(members):
            self._begin(number, member.begin)
        self.optimiser = options.optimiser([self.mlp.values], eps=1e-7)
        self._orders = [member.rng("order") for member in members]
        self._masks = [member.rng("masks") for member in members]
        drawn = (count, dropout.units(sizes), n) if dropout else None
        self._uniforms = None if drawn is None else np.empty(drawn, dtype=np.float32)

    def _begin(self, number: int, network: Network | None) -> None:
        """Give a network the weights of one that is trained, if it is to go on from there."""
        if network is None:
            return
        for layer, (kernel, bias) in enumerate(zip(network.kernels, network.biases, strict=True)):
            self.mlp.kernels[layer][number] = placed(kernel, self._device)
            self.mlp.biases[layer][number] = placed(bias[:, None], self._device)

    def run(self) -> list[Network]:
        """Train to the end, or until no network is sound, and give the states that are kept."""
        mlp, data = self.mlp, self._data
        checkpoint = BestCheckpoint(mlp, best=self._options.keep == "best")
        rates = []
        with self._torch.no_grad():
            for epoch in range(self._options.epochs):
                losses = np.asarray(to_host(self.epoch(epoch)))
                rates.append(mlp.rates())
                judged = self.judged()
                validation = np.full(mlp.count, np.nan) if judged is None else to_host(judged)
                if not checkpoint.look(losses, np.asarray(validation, dtype=np.float64)):
                    break
            mlp.put_back()
            data.initialisation.absorb(mlp.kernels[-1], mlp.biases[-1])
        return _networks(mlp, data, checkpoint, np.stack(rates, axis=1))

    def epoch(self, epoch: int) -> Tensor:
        """Train for one epoch, counted from 0; the losses of each step, (steps, m)."""
        torch, options, mlp, data = self._torch, self._options, self.mlp, self._data
        self.optimiser.param_groups[0]["lr"] = options.learning_rate_at(epoch)
        n, size = data.x.shape[2], options.batch_size
        orders = np.stack([rng.permutation(n) for rng in self._orders])
        order = placed(orders, self._device)
        inputs = data.x.gather(2, order[:, None].expand(data.x.shape))
        targets = data.y.gather(1, order)
        uniforms = None
        if self._uniforms is not None:
            for buffer, rng in zip(self._uniforms, self._masks, strict=True):
                rng.random(out=buffer, dtype=np.float32)
            uniforms = placed(self._uniforms, self._device)
        steps = -(-n // size)
        losses = torch.empty(steps, mlp.count, dtype=torch.float64, device=self._device)
        for step in range(steps):
            batch = slice(step * size, (step + 1) * size)
            drawn = None if uniforms is None else uniforms[:, :, batch]
            outputs = mlp.forward(inputs[:, :, batch], drawn)
            losses[step], slope = self._objective.slope(outputs, targets[:, batch])
            mlp.backward(slope)
            if options.penalty > 0:
                mlp.decay_weights(options.penalty / n)
            self.optimiser.step()
        return losses

    def judged(self) -> Tensor | None:
        """Mean loss of each network on the rows held out, (m,); None without such rows."""
        if self._data.held_x is None:
            return None
        return self._objective.losses(self.mlp.forward(self._data.held_x), self._data.held_y)


def _networks(
    mlp: BatchedMLP, data: Data, checkpoint: BestCheckpoint, rates: Weights
) -> list[Network]:
    networks = []
    for number, (scale, losses) in enumerate(zip(data.scales, checkpoint.trace, strict=True)):
        kernels, biases = mlp.layers_of(number)
        failure, kept = checkpoint.failures[number], int(checkpoint.kept[number])
        if not scale.sound:
            failure, kept = "data too large to standardise", 0
        own = rates[number].astype(np.float64)
        networks.append(Network(kernels, biases, scale, failure, kept, losses, own))
    return networks


@final
@frozen(eq=False)
class Data:
    """Rows of m networks on the scale of training, as tensors: x (m, d, n) and y (m, n)."""

    x: Tensor
    y: Tensor
    held_x: Tensor | None
    held_y: Tensor | None
    scales: list[Standardization]
    initialisation: OutputInitialisation

    @classmethod
    def of(
        cls,
        members: Sequence[Member],
        heads: Sequence[Head],
        options: BatchTraining,
        device: Any = "cpu",
    ) -> Data:
        """The rows of these members, each with its head, on a device."""
        scales: list[Standardization] = []
        starts = []
        parts: list[tuple[FloatArray, ...]] = []
        for member, head in zip(members, heads, strict=True):
            x, y = member.rows()
            whole = options.standardise
            scale = Standardization.of(x, y, inputs=whole, targets=whole and head.standardises)
            scales.append(scale)
            validation = member.held if member.held is not None else ()
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite fails
                rows = [
                    scale.inputs(array).T if array.ndim > 1 else scale.targets(array)
                    for array in (x, y, *validation)
                ]
            warm = options.warm_start and scale.sound and member.begin is None
            starts.append(start_of(head, rows[1], warm=warm))
            parts.append(tuple(rows))
        with np.errstate(over="ignore"):
            tensors = [
                placed(np.stack(arrays).astype(np.float32), device)
                for arrays in zip(*parts, strict=True)
            ]
        held_x, held_y = tensors[2:] if len(tensors) > 2 else (None, None)
        offsets, units = ([getattr(start, k) for start in starts] for k in ("offset", "unit"))
        initialisation = OutputInitialisation(offsets, units, device)
        return cls(tensors[0], tensors[1], held_x, held_y, scales, initialisation)


@final
class Objective:
    """The loss of m networks, equal heads side by side, of outputs as they are initialised."""

    __slots__ = ("_blocks", "_initialisation", "_torch")

    def __init__(self, heads: Sequence[Head], initialisation: OutputInitialisation) -> None:
        self._torch = require("torch", extra="deep")
        self._initialisation = initialisation
        self._blocks: list[tuple[Head, slice]] = []
        stop = 0
        for head, same in groupby(heads):
            first, stop = stop, stop + len(list(same))
            self._blocks.append((head, slice(first, stop)))

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean loss of each network, (m,), for outputs (m, k, b) and standardised y (m, b)."""
        outputs = self._initialisation.shift(outputs)
        losses = [head.loss(outputs[block], y[block]).mean(-1) for head, block in self._blocks]
        return losses[0] if len(losses) == 1 else self._torch.cat(losses)

    def slope(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Losses as `losses` has them, and their gradients by the outputs, (m, k, b)."""
        with self._torch.enable_grad():
            outputs.requires_grad_()
            losses = self.losses(outputs, y)
            (slope,) = self._torch.autograd.grad(losses.sum(), outputs)
        return losses.detach(), slope


@contextmanager
def one_thread_each() -> Iterator[int]:
    """One thread an operation inside; torch's number of threads, which comes back after."""
    # Torch shares each operation among its threads, which wait for each other by spinning: for
    # small operations that gains nothing, and on a busy machine it costs ten times the time. So
    # each operation runs in one thread, and the threads train chunks of their own.
    torch = require("torch", extra="deep")
    threads = int(torch.get_num_threads())
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def side_by_side(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> list[Result]:
    """Results in the order of the items, by so many threads."""
    waiting = list(items)
    if threads == 1 or len(waiting) < 2:
        return [work(item) for item in waiting]
    with ThreadPoolExecutor(min(threads, len(waiting))) as pool:
        return list(pool.map(work, waiting))


def outputs(networks: Sequence[Network], x: FloatArray) -> FloatArray:
    """Outputs (m, k, n) of networks of one shape at x (n, d), on the scale of their training."""
    kernels = [np.stack(layer) for layer in zip(*(n.kernels for n in networks), strict=True)]
    biases = [np.stack(layer) for layer in zip(*(n.biases for n in networks), strict=True)]
    blocks = []
    for rows in _blocks(x, kernels):
        inputs = [n.scale.inputs(rows) for n in networks]
        blocks.append(_forward(kernels, biases, np.stack(inputs).swapaxes(1, 2)))
    return np.concatenate(blocks, axis=2)


def dropped_outputs(
    network: Network, x: FloatArray, dropout: Dropout, rng: np.random.Generator, passes: int
) -> FloatArray:
    """Outputs (passes, k, n) with dropout kept on, each pass with one mask for all rows."""
    rates = network.rates[-1]
    kernels = dropout.passes(rng, passes, network.kernels, rates)
    biases = [np.broadcast_to(bias, (passes, len(bias))) for bias in network.biases]
    blocks = []
    for rows in _blocks(x, kernels):
        inputs = network.scale.inputs(rows).T
        blocks.append(_forward(kernels, biases, np.broadcast_to(inputs, (passes, *inputs.shape))))
    return np.concatenate(blocks, axis=2)


def moments(
    networks: Sequence[Network], head: Gaussian | SquaredError, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and variances (m, n) of y that outputs (m, k, n) of one or m networks tell."""
    own = list(networks) * (len(values) if len(networks) == 1 else 1)
    laws = [
        head.prediction(of_network, network.scale.y_center, network.scale.y_unit)
        for of_network, network in zip(values, own, strict=True)
    ]
    means = np.stack([law.point() for law in laws])
    return means, np.stack([np.square(law.sd()) for law in laws])


def _forward(kernels: Sequence[Weights], biases: Sequence[Weights], x: Any) -> FloatArray:
    torch = require("torch", extra="deep")
    with np.errstate(over="ignore"):  # infinite inputs have outputs that are not finite
        h = placed(np.ascontiguousarray(x, dtype=np.float32))
    last = len(kernels) - 1
    with one_thread_each(), torch.no_grad():
        for layer, (kernel, bias) in enumerate(zip(kernels, biases, strict=True)):
            own = placed(np.ascontiguousarray(bias)[:, :, None])
            h = torch.baddbmm(own, placed(np.ascontiguousarray(kernel)), h)
            h = h.relu_() if layer < last else h
    return np.asarray(to_host(h), dtype=np.float64)


def _blocks(x: FloatArray, kernels: Sequence[Weights]) -> Iterator[FloatArray]:
    """Blocks of rows whose activations take bounded memory."""
    widest = max(max(kernel.shape[1:]) for kernel in kernels)
    rows = max(_ROOM // (len(kernels[0]) * widest), 1)
    for start in range(0, len(x), rows):
        yield x[start : start + rows]
