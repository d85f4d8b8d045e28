"""Which state of each network is kept, and which networks have failed."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.optional import require
from howsure.methods.deep.body import Body
from howsure.methods.deep.members import Training
from howsure.methods.deep.objective import Data, Objective

Tensor = Any


@final
class Keeper:
    """Looks at networks after each epoch, and keeps a good state of each.

    Parameters
    ----------
    body : Body
        The networks, with their first weights.
    objective : Objective
        Their losses.
    data : Data
        Their rows, those held out among them.
    options : Training
        Which state to keep.

    Attributes
    ----------
    failures : list of str or None
        Where each network failed.
    kept : ndarray of int, shape (m,)
        The epoch after which each network's kept state was; 0 for first weights.
    """

    __slots__ = (
        "_best",
        "_body",
        "_data",
        "_least",
        "_objective",
        "_torch",
        "_trace",
        "_values",
        "failures",
        "kept",
    )

    def __init__(self, body: Body, objective: Objective, data: Data, options: Training) -> None:
        self._torch = require("torch", extra="deep")
        self._body, self._objective, self._data = body, objective, data
        self._best = options.keep == "best"
        self._values = body.values.clone()
        self._least = np.full(body.count, np.inf)
        self._trace: list[FloatArray] = []
        self.failures: list[str | None] = [None] * body.count
        self.kept = np.zeros(body.count, dtype=np.int64)

    def look(self, epoch: int, losses: Tensor) -> bool:
        """Look at all networks after an epoch; whether any is still sound.

        Parameters
        ----------
        epoch : int
            Counted from 1.
        losses : tensor of shape (steps, m)
            Of each step.
        """
        steps = losses.numpy()
        finite = np.isfinite(steps)
        sound = finite.all(axis=0)
        if not bool(self._body.values.sum().isfinite()):
            sound &= self._body.finite().numpy()
        for network in np.flatnonzero(~sound):
            if self.failures[network] is None:
                self.failures[network] = _words(finite[:, network], epoch)
        held = self._held_losses()
        with np.errstate(invalid="ignore", over="ignore"):
            self._trace.append(np.stack([steps.mean(axis=0), held], axis=1))
        sound &= np.array([failure is None for failure in self.failures])
        better = sound & (held < self._least) if self._best else sound
        self._least = np.where(better, held, self._least)
        self.kept[better] = epoch
        if better.all():
            self._values.copy_(self._body.values)
        elif better.any():
            chosen = self._torch.from_numpy(np.flatnonzero(better))
            self._body.move(self._body.values, self._values, chosen)
        return bool(sound.any())

    def settle(self) -> FloatArray:
        """Put the kept states back; the losses of each epoch, shape (m, epochs, 2)."""
        self._body.values.copy_(self._values)
        return np.stack(self._trace, axis=1)

    def _held_losses(self) -> FloatArray:
        """Losses on the rows held out, shape (m,); NaN without any."""
        if self._data.held_x is None:
            return np.full(self._body.count, np.nan)
        outputs = self._body.forward(self._data.held_x)
        losses = self._objective.losses(outputs, self._data.held_y)
        return np.asarray(losses.numpy(), dtype=np.float64)


def _words(finite: FloatArray, epoch: int) -> str:
    if finite.all():
        return f"weights not finite after epoch {epoch}"
    step = int(np.argmin(finite)) + 1
    return f"loss not finite in epoch {epoch}, step {step} of {len(finite)}"
