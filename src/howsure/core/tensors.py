"""PyTorch tensors at the door: what they are, and how they become NumPy arrays.

PyTorch is never imported here: a tensor proves that it is there.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy.typing as npt

from howsure.core.errors import InputError


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
