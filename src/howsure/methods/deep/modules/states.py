"""States of networks: which is kept, and how they are written and read."""

from __future__ import annotations

import hashlib
import io
from typing import Any, Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.optional import require

Tensor = Any
Module = Any

_MARK: Final = b"howsure\x01"
_DIGEST: Final = 32


def packed(content: dict[str, Any]) -> bytes:
    """Tensors, numbers and text as bytes that tell whether they are whole."""
    torch = require("torch", extra="deep")
    buffer = io.BytesIO()
    torch.save(content, buffer)
    data = buffer.getvalue()
    return _MARK + hashlib.sha256(data).digest() + data


def unpacked(data: bytes, name: str) -> dict[str, Any]:
    """What `packed` was given, on the processor; no code is run in reading it.

    Raises
    ------
    InputError
        If the bytes are not whole, or are none of `packed`.
    """
    torch = require("torch", extra="deep")
    start = len(_MARK) + _DIGEST
    body = data[start:]
    if data[: len(_MARK)] != _MARK:
        raise InputError(
            f"{name} must be what howsure wrote, got {len(data)} bytes of another kind"
        )
    if hashlib.sha256(body).digest() != data[len(_MARK) : start]:
        raise InputError(f"{name} must be whole, got {len(data)} bytes that are damaged or cut")
    content: dict[str, Any] = torch.load(io.BytesIO(body), map_location="cpu", weights_only=True)
    return content


@final
class Keeper:
    """Looks at a network after each epoch, and keeps a good state of it.

    Parameters
    ----------
    modules : torch.nn.Module
        The network, with its first weights.
    best : bool
        Whether the state of least loss on the rows held out is kept, or the last.

    Attributes
    ----------
    failure : str or None
        Where the network failed.
    kept : int
        The epoch after which the kept state was; 0 for first weights.
    """

    __slots__ = ("_best", "_least", "_modules", "_trace", "_values", "failure", "kept")

    def __init__(self, modules: Module, *, best: bool) -> None:
        self._modules, self._best = modules, best
        self._values = {key: value.clone() for key, value in modules.state_dict().items()}
        self._least = np.inf
        self._trace: list[tuple[float, float]] = []
        self.failure: str | None = None
        self.kept = 0

    def look(self, losses: FloatArray, held: float) -> bool:
        """Look at the network after one more epoch; whether it is sound.

        Parameters
        ----------
        losses : ndarray of float, shape (steps,)
            Of each step.
        held : float
            Loss on the rows held out; NaN without any.
        """
        epoch = len(self._trace) + 1
        finite = np.isfinite(losses)
        with np.errstate(invalid="ignore", over="ignore"):
            self._trace.append((float(losses.mean()), held))
        state = self._modules.state_dict()
        if not finite.all():
            step = int(np.argmin(finite)) + 1
            self.failure = f"loss not finite in epoch {epoch}, step {step} of {len(finite)}"
        elif not all(bool(value.isfinite().all()) for value in state.values()):
            self.failure = f"weights not finite after epoch {epoch}"
        elif not self._best or held < self._least:
            self.kept = epoch
            self._least = held
            for key, value in state.items():
                self._values[key].copy_(value)
        return self.failure is None

    @property
    def trace(self) -> FloatArray:
        """Mean loss of each epoch's steps, and the loss on the rows held out, shape (epochs, 2)."""
        return np.array(self._trace, dtype=np.float64).reshape(-1, 2)

    def settle(self) -> None:
        """Put the kept state back."""
        self._modules.load_state_dict(self._values)

    def state(self) -> dict[str, Any]:
        """All that `restore` needs."""
        return {
            "values": self._values,
            "least": float(self._least),
            "trace": [list(pair) for pair in self._trace],
            "failure": self.failure,
            "kept": self.kept,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from an earlier keeper's state."""
        for key, value in state["values"].items():
            self._values[key].copy_(value)
        self._least = state["least"]
        self._trace = [(loss, held) for loss, held in state["trace"]]
        self.failure, self.kept = state["failure"], state["kept"]
