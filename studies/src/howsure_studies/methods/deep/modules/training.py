"""Training a network of torch modules, with any head: epochs, steps, checkpoints."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, as_vector, placed, to_host
from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure.core.optional import require
from howsure.core.progress import report_progress
from howsure.core.rng import child
from howsure_studies.methods.deep.heads import Head, head_named
from howsure_studies.methods.deep.modules.backbones import Backbone, backbone_named, tighten
from howsure_studies.methods.deep.modules.inputs import (
    Array,
    DeviceRows,
    Scaling,
    augmented,
    checked_inputs,
)
from howsure_studies.methods.deep.modules.network import (
    ModuleNetwork,
    Net,
    packed,
    reseed,
    torch_draws,
    unpacked,
)
from howsure_studies.methods.deep.training import (
    BestCheckpoint,
    ModuleTraining,
    OutputInitialisation,
    Phase,
    Standardization,
    recipe_named,
    start_of,
)
from howsure_studies.methods.options import options_of

Module = Any
Tensor = Any
Data = tuple[DeviceRows, FloatArray]
Rows = tuple[npt.ArrayLike, npt.ArrayLike]

_SECONDS: Final = 60.0
_FREED: Final = 31 * 2**20


def train_module(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    head: str | Mapping[str, Any] | Head,
    backbone: Any = "small",
    recipe: str | Mapping[str, Any] | ModuleTraining = "shift",
    rng: np.random.Generator,
    held: Rows | None = None,
    scaling: Scaling = "imagenet",
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = _SECONDS,
) -> ModuleNetwork:
    """Train one network on images, or on anything that a torch module takes.

    Parameters
    ----------
    x : array-like, shape (n, height, width, channels) or (n, …)
        Images, or rows of any other shape for a module of one's own; at least two rows.
    y : array-like of shape (n,)
        What happened.
    head : str, mapping or Head
        What outputs mean: see `howsure_studies.methods.deep.heads.head_named`.
    backbone : str, mapping, Backbone or callable
        What turns inputs into features: see `backbone_named`.
    recipe : str, mapping or ModuleTraining
        How to train: see `recipe_named`; ``shift``, the default, is `ModuleTraining` as it comes.
    rng : numpy.random.Generator
        The only source of randomness: one number is drawn, from which all follows.
    held : tuple of array-like, shapes (h, …) and (h,), optional
        Rows to judge the network by after each epoch.
    scaling : {"imagenet", "none"}
        What is done to images, as `network_input` has it; other inputs are taken as they
        are.
    checkpoint : path, optional
        A file that training is saved in and, where it is there, resumed from: the network comes
        out as if training had never stopped. It is left there when training has ended.
    every : float
        Seconds between saves, at least; they happen between epochs.

    Returns
    -------
    ModuleNetwork
        If a loss stops being finite, training stops, and the network says where and is as it was
        after the epoch before.

    Raises
    ------
    InputError
        If inputs or targets break a rule, the backbone does not give features, the best epoch is
        wanted without rows held out, or the checkpoint is damaged or of another training.
    MissingDependencyError
        If torch is not installed.

    Notes
    -----
    On a processor, the same generator gives the same network bit for bit, for one number of
    threads; torch's own generators are left as they were. Threads are torch's own affair: for
    small networks, one (``OMP_NUM_THREADS=1``) and several processes are the fastest.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("torch")
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 256, size=(40, 16, 16, 1), dtype=np.uint8)
    >>> network = train_module(
    ...     x, x.mean(axis=(1, 2, 3)), head="gaussian", recipe=ModuleTraining.small(2), rng=rng
    ... )
    >>> network.prediction(x[:3]).sd().shape, network.features(x[:3]).shape
    ((3,), (3, 64))
    """
    chosen = recipe_named(recipe)
    law, made = head_named(head), backbone_named(backbone)
    inputs, targets = _rows(x, y, "x", "y", law, scaling)
    if len(targets) < 2:
        raise InputError("x must have at least 2 rows, got 1")
    if chosen.augment and inputs.ndim != 4:
        rule = f"augment must be empty where x are no images, got {list(chosen.augment)}"
        raise InputError(f"{rule} for shape {inputs.shape}")
    judged = None
    if held is not None:
        judged = _rows(held[0], held[1], "held", "held y", law, scaling, inputs.shape[1:])
    chosen.check_held(judged)
    seed = int(rng.integers(2**63 - 1))
    scale = Standardization.of(
        np.empty((len(targets), 0)), targets, targets=chosen.standardise and law.standardises
    )
    if not scale.sound:
        raise InputError("y must be small enough for a finite mean and sd, got larger numbers")
    device = chosen.torch_device()
    loop = _loop((inputs, targets), judged, law, made, chosen, scale, seed, device)
    saved = None
    if checkpoint is not None:
        stamp = Checkpoint.stamp(made, law, chosen, seed, (inputs, targets), judged)
        saved = Checkpoint(checkpoint, stamp, every)
    loop.run(saved)
    return ModuleNetwork(
        net=loop.net,
        head=law,
        backbone=made,
        scale=scale,
        shape=inputs.shape[1:],
        scaling=scaling,
        hidden=chosen.hidden,
        channels_last=chosen.channels_last,
        failure=loop.best_checkpoint.failures[0],
        kept=int(loop.best_checkpoint.kept[0]),
        losses=loop.best_checkpoint.trace[0],
    )


def _rows(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    name: str,
    target: str,
    head: Head,
    scaling: Scaling,
    shape: tuple[int, ...] | None = None,
) -> tuple[Array, FloatArray]:
    inputs = checked_inputs(x, name, scaling, shape)
    targets = as_vector(y, target, length=len(inputs))
    head.check_targets(targets)
    return inputs, targets


def _loop(
    rows: tuple[Array, FloatArray],
    held: tuple[Array, FloatArray] | None,
    head: Head,
    backbone: Backbone,
    recipe: ModuleTraining,
    scale: Standardization,
    seed: int,
    device: Any,
) -> Loop:
    def data(labelled: tuple[Array, FloatArray]) -> tuple[DeviceRows, FloatArray]:
        inputs = DeviceRows.of(
            labelled[0], grey=backbone.grey, channels_last=recipe.channels_last, device=device
        )
        return inputs, scale.targets(labelled[1])

    inputs, targets = data(rows)
    net = Net.of(
        backbone,
        placed(inputs.batch(slice(0, 2))),
        outputs=head.outputs,
        shielded=head.shielded,
        hidden=recipe.hidden,
        seed=seed % 2**63,
    )
    return Loop(net, head, recipe, (inputs, targets), None if held is None else data(held), seed)


@final
class Loop:
    """One network in training, in place: first weights are its own, targets are standardised.

    The seed decides the order of rows, and what the modules draw.
    """

    __slots__ = (
        "_body",
        "_device",
        "_head",
        "_held",
        "_initialisation",
        "_kept",
        "_optimiser",
        "_recipe",
        "_rows",
        "_seed",
        "_torch",
        "best_checkpoint",
        "net",
    )

    def __init__(
        self, net: Net, head: Head, recipe: ModuleTraining, rows: Data, held: Data | None, seed: int
    ) -> None:
        torch = require("torch", extra="deep")
        self._torch, self._head, self._recipe, self._seed = torch, head, recipe, seed
        self._device = rows[0].values.device
        layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
        net.modules.to(device=self._device, memory_format=layout)
        reuse_memory()
        self.net = net
        self._body = torch.compile(net.body) if recipe.compile else net.body
        self._rows = rows[0], self._targets(rows[1])
        self._held = None if held is None else (held[0], self._targets(held[1]))
        start = start_of(head, rows[1], warm=recipe.warm_start)
        self._initialisation = OutputInitialisation(start.offset, start.unit, self._device)
        self._optimiser = recipe.optimiser(net.modules.parameters())
        self._kept = _Kept(net.modules)
        self.best_checkpoint = BestCheckpoint(self._kept, best=recipe.keep == "best")

    def run(self, checkpoint: Checkpoint | None) -> None:
        """Train to the end, or until the loss stops being finite, and put the kept state back."""
        epochs = self._recipe.epochs
        first = 0 if checkpoint is None else checkpoint.resume(self)
        with torch_draws(0, self._device):
            for epoch in range(first, epochs):
                if self.best_checkpoint.failures[0] is not None:
                    break
                losses = self.epoch(epoch)[:, None]
                sound = self.best_checkpoint.look(losses, np.array([self._judged()]))
                if checkpoint is not None:
                    checkpoint.save(self, epoch + 1, done=epoch + 1 == epochs or not sound)
                report_progress("epochs", epoch + 1, epochs)
        self._kept.put_back()
        tighten(self.net.body)
        last = self.net.modules["last"]
        self._initialisation.absorb(last.weight, last.bias[:, None])
        self.net.modules.eval()

    def epoch(self, epoch: int) -> FloatArray:
        """Train for one epoch, counted from 0; the loss of each step."""
        return np.asarray(to_host(self.losses(epoch)))

    def losses(self, epoch: int) -> Tensor:
        """As `epoch`, with nothing copied from the device."""
        torch = self._torch
        inputs, targets = self._rows
        phase = self._recipe.phase(epoch, self._head)
        self._optimiser.param_groups[0]["lr"] = self._recipe.learning_rate_at(epoch)
        draws = child(self._seed, "epoch", epoch)
        order = placed(draws.permutation(len(inputs)), self._device)
        reseed(int(draws.integers(2**63 - 1)), self._device)
        self.net.modules.train()
        bounds = steps(len(inputs), self._recipe.batch_size)
        losses = torch.empty(len(bounds), dtype=torch.float64, device=self._device)
        for step, (start, stop) in enumerate(bounds):
            rows = order[start:stop]
            batch = inputs.batch(rows)
            if self._recipe.augment:
                batch = augmented(batch, self._recipe.augment)
            losses[step] = self.step(batch, targets[rows], phase)
        return losses

    def step(self, x: Tensor, y: Tensor, phase: Phase) -> Tensor:
        """One step on a batch; its loss."""
        self._optimiser.zero_grad(set_to_none=True)
        loss = self.loss(x, y, phase)
        loss.backward()
        self._optimiser.step()
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, phase: Phase) -> Tensor:
        """Mean loss of a batch, differentiable in what the phase trains."""
        with self._torch.set_grad_enabled(phase != "frozen"), self._rounded():
            features = self._body(x)
        with self._torch.enable_grad():
            outputs = self._initialisation.shift(self.net.outputs(features.to(y.dtype)))
            cost = self._head.warm_loss if phase == "warm" else self._head.loss
            return cost(outputs, y).mean()

    def _judged(self) -> float:
        """Mean loss on the rows held out, or NaN."""
        return float("nan") if self._held is None else float(self.held_loss(*self._held))

    def held_loss(self, inputs: DeviceRows, targets: Tensor) -> Tensor:
        """Mean loss on rows, with nothing copied from the device."""
        self.net.modules.eval()
        with self._torch.no_grad():
            outputs = self._initialisation.shift(self.net.passed(inputs)[0])
            return self._head.loss(outputs, targets).double().mean()

    def _rounded(self) -> AbstractContextManager[None]:
        if self._recipe.precision == "float32":
            return nullcontext()
        context: AbstractContextManager[None] = self._torch.autocast(
            self._device.type, dtype=self._torch.bfloat16
        )
        return context

    def _targets(self, y: FloatArray) -> Tensor:
        with np.errstate(over="ignore"):  # a loss that is not finite says so
            return placed(y.astype(np.float32), self._device)

    def state(self) -> dict[str, Any]:
        """All that `restore` needs, but for the epoch."""
        best = self.best_checkpoint
        kept = {
            "values": self._kept.values,
            "least": float(best.least[0]),
            "trace": best.trace[0].tolist(),
            "failure": best.failures[0],
            "kept": int(best.kept[0]),
        }
        return {
            "values": self.net.modules.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "keeper": kept,  # as files have called it since they were first written
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from an earlier loop's state."""
        self.net.modules.load_state_dict(state["values"])
        self._optimiser.load_state_dict(state["optimiser"])
        best, kept = self.best_checkpoint, state["keeper"]
        for key, value in kept["values"].items():
            self._kept.values[key].copy_(value)
        best.epochs[:] = [np.array([pair]) for pair in kept["trace"]]
        best.failures[0] = kept["failure"]
        best.least[0], best.kept[0] = kept["least"], kept["kept"]


@final
class _Kept:
    """The states of one network, for its `BestCheckpoint`."""

    __slots__ = ("_modules", "count", "values")

    def __init__(self, modules: Module) -> None:
        self._modules, self.count = modules, 1
        self.values = {key: value.clone() for key, value in modules.state_dict().items()}

    def sound(self) -> BoolArray:
        """Whether all its values are finite."""
        values = self._modules.state_dict().values()
        return np.array([all(bool(value.isfinite().all()) for value in values)])

    def save(self, networks: BoolArray) -> None:
        """Keep the present state."""
        for key, value in self._modules.state_dict().items():
            self.values[key].copy_(value)

    def put_back(self) -> None:
        """Make the kept state the present one."""
        self._modules.load_state_dict(self.values)


def reuse_memory() -> None:
    """Let the process reuse freed memory rather than hand it back at each step.

    The C library of Linux hands freed blocks back to the system, and gets them again empty, until
    it has seen a large block freed (less than 32 MiB): activations of small networks then cost
    thousands of page faults a step, up to a third of its time. Nothing else depends on it.
    """
    torch = require("torch", extra="deep")
    torch.empty(_FREED, dtype=torch.uint8)


def steps(n: int, size: int) -> list[tuple[int, int]]:
    """First row and the row after the last of each step; a single row left joins the one before."""
    starts = [start for start in range(0, n, size) if n - start > 1 or start == 0]
    return list(zip(starts, [*starts[1:], n], strict=True))


@final
class Checkpoint:
    """A file with the state of one training, saved every so many seconds at most; see `stamp`."""

    __slots__ = ("_every", "_last", "_path", "_stamp")

    def __init__(self, path: str | os.PathLike[str], stamp: str, every: float) -> None:
        if not every >= 0.0:
            raise InputError(f"every must be a number of seconds of at least 0, got {every!r}")
        self._path, self._stamp, self._every = Path(path), stamp, every
        self._last = time.monotonic()

    @staticmethod
    def stamp(
        backbone: Backbone,
        head: Head,
        recipe: ModuleTraining,
        seed: int,
        rows: tuple[Array, FloatArray],
        held: tuple[Array, FloatArray] | None,
    ) -> str:
        """A hash of all that decides how a training comes out, but the code of callables."""
        options = options_of(recipe, "recipe")
        del options["device"]
        text = repr((backbone.name, backbone.spec, head, sorted(options.items()), seed))
        digest = hashlib.sha256(text.encode())
        for array in (*rows, *(held or ())):
            digest.update(repr((array.shape, array.dtype.str)).encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def resume(self, training: Loop) -> int:
        """Go on where the file left off, if there is one; how many epochs it has seen."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise InputError(
                f"checkpoint {str(self._path)!r} cannot be read: {error.strerror}"
            ) from error
        content = unpacked(data, f"checkpoint {str(self._path)!r}")
        if content.get("stamp") != self._stamp:
            raise InputError(
                f"checkpoint must be of this training, got {str(self._path)!r}, which is of other "
                "data, options or random numbers"
            )
        training.restore(content["training"])
        return int(content["epochs"])

    def save(self, training: Loop, epochs: int, *, done: bool) -> None:
        """Save the state after so many epochs, if it is time or training is done."""
        now = time.monotonic()
        if done or now - self._last >= self._every:
            content = {"stamp": self._stamp, "epochs": epochs, "training": training.state()}
            atomic_write(self._path, packed(content))
            self._last = now
