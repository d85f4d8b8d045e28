"""PyTorch tensors at the door: what they are, where they lie, and how they become NumPy arrays.

What only looks at tensors never imports PyTorch: a tensor proves that it is there. `placed` is the
one way by which numbers get to a device, and `to_host` the one way back.
"""

from __future__ import annotations

import re
import sys
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from howsure.core.errors import InputError
from howsure.core.optional import require


def is_tensor(value: object) -> bool:
    """Whether something is a PyTorch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def to_host(value: npt.ArrayLike, name: str = "array") -> npt.ArrayLike:
    """A tensor as a NumPy array, wherever it lives; anything else as it came."""
    if not is_tensor(value):
        return value
    tensor = plain_tensor(value, name)
    tensor = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
    found: npt.ArrayLike = tensor.cpu().numpy()
    return found


def plain_tensor(value: Any, name: str) -> Any:
    """A tensor without its gradient, if it holds real numbers."""
    if value.is_meta:
        raise InputError(f"{name} must hold numbers, got a tensor without data (device meta)")
    if value.is_complex() or value.is_quantized or "strided" not in str(value.layout):
        kind = f"{value.dtype}, layout {value.layout}"
        raise InputError(f"{name} must be a dense tensor of real numbers, got {kind}")
    return value.detach()


def device_named(name: str | None = "auto", *, extra: str = "deep") -> Any:
    """The torch device of a name; ``auto`` or None: a GPU where torch finds one, else the CPU."""
    torch = require("torch", extra=extra)
    found = bool(torch.cuda.is_available())
    if name in (None, "auto"):
        name = "cuda" if found else "cpu"
    why = "torch finds no GPU"
    try:
        chosen = torch.device(name)
        if found or chosen.type != "cuda":
            torch.empty(1, device=chosen)
            return chosen
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        why = str(error).strip().partition("\n")[0]
    raise InputError(f"device must be one that torch can use here, got {name!r}: {why}")


def placed(values: Any, device: Any = "cpu", dtype: Any = None) -> Any:
    """Numbers, or a tensor, as a tensor on a device; it shares memory with an array on the CPU."""
    if not is_tensor(values):
        # PyTorch warns of arrays that must not be written to
        array = np.require(np.asarray(values), requirements="W")
        values = require("torch", extra="deep").from_numpy(array)
    return values.to(device=device, dtype=dtype)


def _checked_device(value: str, name: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", value):
        raise InputError(f"{name} must be 'auto', 'cpu', 'cuda' or 'cuda:NUMBER', got {value!r}")
    return value


Device = Annotated[str, _checked_device]
"""A device by name, as fields of options are annotated."""
