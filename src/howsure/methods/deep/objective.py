"""What a chunk of networks is trained on: its data, and its loss, in which heads may differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.optional import require
from howsure.methods.deep.heads import Head, Start
from howsure.methods.deep.members import Member, Scale, Training

Tensor = Any


@final
@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Rows of m networks on the scale of training, as tensors.

    Attributes
    ----------
    x, y : tensor of shape (m, d, n) and (m, n)
        Rows to train on.
    held_x, held_y : tensor of shape (m, d, h) and (m, h), or None
        Rows held out.
    scales : list of Scale
        What each network's rows were standardised by.
    starts : list of Start
        Where each network sets out from.
    """

    x: Tensor
    y: Tensor
    held_x: Tensor | None
    held_y: Tensor | None
    scales: list[Scale]
    starts: list[Start]

    @classmethod
    def of(cls, members: Sequence[Member], heads: Sequence[Head], options: Training) -> Data:
        """The rows of these members, each with its head."""
        torch = require("torch", extra="deep")
        scales: list[Scale] = []
        starts: list[Start] = []
        parts: list[tuple[FloatArray, ...]] = []
        for member, head in zip(members, heads, strict=True):
            x, y = member.rows()
            whole = options.standardise
            scale = Scale.of(x, y, inputs=whole, targets=whole and head.standardises)
            scales.append(scale)
            held = member.held if member.held is not None else ()
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite fails
                rows = [
                    scale.inputs(part).T if part.ndim > 1 else scale.targets(part)
                    for part in (x, y, *held)
                ]
            starts.append(_start(head, rows[1], warm=options.warm and scale.sound))
            parts.append(tuple(rows))
        with np.errstate(over="ignore"):
            tensors = [
                torch.from_numpy(np.stack(part).astype(np.float32))
                for part in zip(*parts, strict=True)
            ]
        held_x, held_y = tensors[2:] if len(tensors) > 2 else (None, None)
        return cls(tensors[0], tensors[1], held_x, held_y, scales, starts)


def _start(head: Head, y: FloatArray, *, warm: bool) -> Start:
    return head.start(y) if warm else Start((0.0,) * head.outputs, (1.0,) * head.outputs)


@final
class Objective:
    """The loss of m networks, heads of one kind side by side.

    Parameters
    ----------
    heads : sequence of Head
        One a network; those that are equal stand together.
    starts : sequence of Start
        One a network.
    """

    __slots__ = ("_blocks", "_offset", "_torch", "_unit")

    def __init__(self, heads: Sequence[Head], starts: Sequence[Start]) -> None:
        torch = require("torch", extra="deep")
        self._torch = torch
        self._blocks: list[tuple[Head, slice]] = []
        stop = 0
        for head, same in groupby(heads):
            first, stop = stop, stop + len(list(same))
            self._blocks.append((head, slice(first, stop)))
        self._offset = torch.tensor([start.offset for start in starts])[:, :, None]
        self._unit = torch.tensor([start.unit for start in starts])[:, :, None]
        if not self._offset.any() and (self._unit == 1.0).all():
            self._offset = None

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean loss of each network over its rows, shape (m,).

        Parameters
        ----------
        outputs : tensor of shape (m, k, b)
            What the last layers give.
        y : tensor of shape (m, b)
            What happened, on the scale of training.
        """
        if self._offset is not None:
            outputs = self._torch.addcmul(self._offset, self._unit, outputs)
        found = [head.loss(outputs[part], y[part]).mean(-1) for head, part in self._blocks]
        return found[0] if len(found) == 1 else self._torch.cat(found)

    def slope(self, outputs: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Losses as `losses` has them, and their gradients by the outputs, (m, k, b)."""
        with self._torch.enable_grad():
            outputs.requires_grad_()
            losses = self.losses(outputs, y)
            (slope,) = self._torch.autograd.grad(losses.sum(), outputs)
        return losses.detach(), slope

    def absorb(self, kernel: Tensor, bias: Tensor) -> None:
        """Put offsets and units into the last layer, shapes (m, k, i) and (m, k, 1)."""
        if self._offset is not None:
            kernel.mul_(self._unit)
            bias.mul_(self._unit).add_(self._offset)
