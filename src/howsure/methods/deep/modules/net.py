"""A backbone with outputs on top: how the two are made, and how a batch passes through."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, final

from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure.methods.deep.modules.backbones import Backbone
from howsure.methods.deep.modules.spectral import soften

Module = Any
Tensor = Any

_DRAWING: Final = threading.Lock()


@contextmanager
def torch_draws(seed: int, device: str = "cpu") -> Iterator[None]:
    """Torch's own random numbers from a seed inside; outside they go on as if nothing had been."""
    torch = require("torch", extra="deep")
    devices = [torch.cuda.current_device()] if device == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        reseed(seed, device)
        yield


def reseed(seed: int, device: str = "cpu") -> None:
    """Seed torch's generator, inside `torch_draws`."""
    torch = require("torch", extra="deep")
    torch.default_generator.manual_seed(seed)
    if device == "cuda":
        torch.cuda.manual_seed(seed)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """A backbone, and a hidden layer and a weighted sum for each output.

    Attributes
    ----------
    modules : torch.nn.ModuleDict
        All parts: ``body``, the backbone; ``last``, weights (k, h) and biases (k,) of the
        outputs; and ``hidden``, where there are hidden layers, those of all outputs one after
        the other.
    shielded : int
        How many outputs, the last ones, send no gradient into the features.
    """

    modules: Module
    shielded: int

    @classmethod
    def of(
        cls,
        backbone: Backbone,
        example: Tensor,
        *,
        outputs: int,
        shielded: int = 0,
        hidden: int | None = None,
        seed: int = 0,
    ) -> Net:
        """A net with first weights drawn by torch from a seed, on the processor.

        Parameters
        ----------
        backbone : Backbone
            What makes the body.
        example : tensor of shape (2, c, …)
            Two rows as the body takes them.
        outputs, shielded : int
            How many outputs, and how many of them, the last, do not train the body.
        hidden : int, optional
            Hidden units of each output: as many as features if omitted, none if 0.
        seed : int
            For `torch_draws`.

        Raises
        ------
        InputError
            If the backbone does not give a torch module whose output has shape (b, d).
        """
        nn = require("torch", extra="deep").nn
        with _DRAWING, torch_draws(seed):
            body = backbone.make(int(example.shape[1]))
            features = _width(body, example, backbone.name)
            if backbone.spectral is not None:
                soften(body, example, backbone.spectral)
            units = features if hidden is None else hidden
            parts = {"body": body, "last": nn.Linear(units or features, outputs)}
            if units:
                parts["hidden"] = nn.Linear(features, outputs * units)
        return cls(nn.ModuleDict(parts), shielded)

    @property
    def body(self) -> Module:
        """The backbone."""
        return self.modules["body"]

    def outputs(self, features: Tensor) -> Tensor:
        """Outputs, shape (k, b), for features, shape (b, d)."""
        count = len(self.modules["last"].bias)
        free = count - self.shielded
        open_part = self._some(features, 0, free)
        if not self.shielded:
            return open_part
        still = self._some(features.detach(), free, count)
        return require("torch", extra="deep").cat((open_part, still))

    def _some(self, features: Tensor, start: int, stop: int) -> Tensor:
        """Some of the outputs."""
        last = self.modules["last"]
        weight, bias = last.weight[start:stop], last.bias[start:stop, None]
        if "hidden" not in self.modules:
            return weight @ features.T + bias
        hidden, units = self.modules["hidden"], weight.shape[1]
        own = slice(start * units, stop * units)
        linear = require("torch", extra="deep").nn.functional.linear
        inner = linear(features, hidden.weight[own], hidden.bias[own]).relu()
        return (inner.view(len(inner), *weight.shape) * weight).sum(-1).T + bias


def _width(body: Module, example: Tensor, name: str) -> int:
    """How many features a body gives for each row; checked by passing two rows through it."""
    torch = require("torch", extra="deep")
    if not isinstance(body, torch.nn.Module):
        raise InputError(f"backbone {name!r} must give a torch module, got {type(body).__name__}")
    was = body.training
    try:
        with torch.no_grad():
            found = body.eval()(example)
    except (RuntimeError, ValueError, TypeError, IndexError) as error:
        raise InputError(
            f"backbone {name!r} must take a batch of shape {tuple(example.shape)}, got the error: "
            f"{error}"
        ) from error
    finally:
        body.train(was)
    what = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
    if not isinstance(found, torch.Tensor) or found.ndim != 2 or len(found) != len(example):
        raise InputError(
            f"backbone {name!r} must give features of shape ({len(example)}, d) for "
            f"{len(example)} rows, got {what}"
        )
    if found.shape[1] < 1 or not found.is_floating_point():
        raise InputError(f"backbone {name!r} must give floating numbers, got {found.dtype}, {what}")
    return int(found.shape[1])
