"""The epochs and steps of training."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.optional import require
from howsure.core.progress import tell
from howsure.core.rng import child
from howsure.methods.deep.heads import Head
from howsure.methods.deep.modules.checkpoint import Checkpoint
from howsure.methods.deep.modules.inputs import Inputs
from howsure.methods.deep.modules.net import Net, reseed, torch_draws
from howsure.methods.deep.modules.recipe import Phase, Recipe
from howsure.methods.deep.modules.spectral import tighten
from howsure.methods.deep.modules.states import Keeper

Tensor = Any
Data = tuple[Inputs, FloatArray]

_FREED: Final = 31 * 2**20

BLOCK: Final = 256
"""Rows that pass through a network at once when it is not trained."""


@final
class Loop:
    """One network in training.

    Parameters
    ----------
    net : Net
        The network, with its first weights; trained in place.
    head : Head
        What its outputs mean.
    recipe : Recipe
        How to train.
    rows, held : tuple of Inputs and ndarray of float, shape (n,)
        Rows to train on and rows to judge by, targets on the scale of training.
    seed : int
        Of the order of rows, and of what the modules draw.

    Attributes
    ----------
    net : Net
        The network.
    keeper : Keeper
        What is kept of it.
    """

    __slots__ = (
        "_body",
        "_device",
        "_head",
        "_held",
        "_optimiser",
        "_recipe",
        "_rows",
        "_seed",
        "_start",
        "_torch",
        "keeper",
        "net",
    )

    def __init__(
        self, net: Net, head: Head, recipe: Recipe, rows: Data, held: Data | None, seed: int
    ) -> None:
        torch = require("torch", extra="deep")
        self._torch, self._head, self._recipe, self._seed = torch, head, recipe, seed
        self._device = rows[0].values.device.type
        layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
        net.modules.to(device=self._device, memory_format=layout)
        reuse_memory()
        self.net = net
        self._body = torch.compile(net.body) if recipe.compile else net.body
        self._rows = rows[0], self._targets(rows[1])
        self._held = None if held is None else (held[0], self._targets(held[1]))
        self._start: tuple[Tensor, Tensor] | None = None
        if recipe.warm_start:
            start = head.start(rows[1])
            offset, unit = (
                torch.tensor(part, dtype=torch.float32, device=self._device)[:, None]
                for part in (start.offset, start.unit)
            )
            self._start = offset, unit
        kind = torch.optim.AdamW if recipe.weight_decay > 0 else torch.optim.Adam
        self._optimiser = kind(
            net.modules.parameters(),
            lr=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        self.keeper = Keeper(net.modules, best=recipe.keep == "best")

    def run(self, checkpoint: Checkpoint | None) -> None:
        """Train to the end, or until the loss stops being finite, and put the kept state back."""
        epochs = self._recipe.epochs
        first = 0 if checkpoint is None else checkpoint.resume(self)
        with torch_draws(0, self._device):
            for epoch in range(first, epochs):
                if self.keeper.failure is not None:
                    break
                self.keeper.look(self.epoch(epoch), self._judged())
                if checkpoint is not None:
                    done = epoch + 1 == epochs or self.keeper.failure is not None
                    checkpoint.save(self, epoch + 1, done=done)
                tell("epochs", epoch + 1, epochs)
        self.keeper.settle()
        tighten(self.net.body)
        self._absorb()
        self.net.modules.eval()

    def epoch(self, epoch: int) -> FloatArray:
        """Train for one epoch, counted from 0; the loss of each step."""
        torch = self._torch
        inputs, targets = self._rows
        phase = self._recipe.phase(epoch, self._head)
        self._optimiser.param_groups[0]["lr"] = self._recipe.pace(epoch)
        draws = child(self._seed, "epoch", epoch)
        order = torch.from_numpy(draws.permutation(len(inputs))).to(self._device)
        reseed(int(draws.integers(2**63 - 1)), self._device)
        self.net.modules.train()
        bounds = steps(len(inputs), self._recipe.batch_size)
        losses = torch.empty(len(bounds), dtype=torch.float64, device=self._device)
        for step, (start, stop) in enumerate(bounds):
            rows = order[start:stop]
            losses[step] = self.step(inputs.batch(rows), targets[rows], phase)
        return np.asarray(losses.cpu().numpy())

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
            outputs = self._shifted(self.net.outputs(features.to(y.dtype)))
            cost = self._head.warm_loss if phase == "warm" else self._head.loss
            return cost(outputs, y).mean()

    def _judged(self) -> float:
        """Mean loss on the rows held out, or NaN."""
        if self._held is None:
            return float("nan")
        inputs, targets = self._held
        self.net.modules.eval()
        total = 0.0
        with self._torch.no_grad():
            for start in range(0, len(inputs), BLOCK):
                block = slice(start, start + BLOCK)
                outputs = self._shifted(self.net.outputs(self.net.body(inputs.batch(block))))
                total += float(self._head.loss(outputs, targets[block]).double().sum())
        return total / len(inputs)

    def _rounded(self) -> AbstractContextManager[None]:
        wanted = self._recipe.precision == "bfloat16"
        context: AbstractContextManager[None] = self._torch.autocast(
            self._device, dtype=self._torch.bfloat16, enabled=wanted
        )
        return context

    def _targets(self, y: FloatArray) -> Tensor:
        with np.errstate(over="ignore"):  # a loss that is not finite says so
            return self._torch.from_numpy(y.astype(np.float32)).to(self._device)

    def _shifted(self, outputs: Tensor) -> Tensor:
        """Outputs as the head takes them, from where training sets out."""
        return outputs if self._start is None else self._torch.addcmul(*self._start, outputs)

    def _absorb(self) -> None:
        """Put offsets and units into the last layer."""
        if self._start is not None:
            offset, unit = self._start
            last = self.net.modules["last"]
            with self._torch.no_grad():
                last.weight.mul_(unit)
                last.bias.mul_(unit[:, 0]).add_(offset[:, 0])

    def state(self) -> dict[str, Any]:
        """All that `restore` needs, but for the epoch."""
        return {
            "values": self.net.modules.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "keeper": self.keeper.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from an earlier loop's state."""
        self.net.modules.load_state_dict(state["values"])
        self._optimiser.load_state_dict(state["optimiser"])
        self.keeper.restore(state["keeper"])


def reuse_memory() -> None:
    """Let the process reuse freed memory rather than hand it back at each step.

    The C library of Linux hands freed blocks back to the system, and gets them again empty, until
    it has seen a large block freed (less than 32 MiB): activations of small networks then cost
    thousands of page faults a step, up to a third of its time. Nothing else depends on it.
    """
    torch = require("torch", extra="deep")
    torch.empty(_FREED, dtype=torch.uint8)


def steps(n: int, size: int) -> list[tuple[int, int]]:
    """First row and the row after the last of each step; a single row left joins the step before.

    Examples
    --------
    >>> steps(7, 3), steps(8, 3)
    ([(0, 3), (3, 7)], [(0, 3), (3, 6), (6, 8)])
    """
    starts = [start for start in range(0, n, size) if n - start > 1 or start == 0]
    return list(zip(starts, [*starts[1:], n], strict=True))
