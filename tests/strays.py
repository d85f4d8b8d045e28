"""What strays to the host while work is done on another device."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

FACTORIES = frozenset(
    getattr(torch, name)
    for name in (
        *("empty", "zeros", "ones", "full", "arange", "eye", "linspace", "tensor", "as_tensor"),
        *("asarray", "rand", "randn", "randint", "randperm"),
    )
)
"""What makes tensors where torch thinks best, unless it is told where."""


class HostTensors(TorchDispatchMode):
    """Collects the operations inside that give a tensor of numbers on the CPU.

    Two are left out: arrays that come in, of which `placed` makes tensors before it moves them,
    and single numbers, as torch's optimisers count their steps there.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        for one in tree_leaves(made):
            stray = isinstance(one, torch.Tensor) and one.device.type == "cpu" and one.numel() > 1
            if stray and function is not torch.ops.aten.lift_fresh.default:
                self.found.append(str(function))
        return made


class Unplaced(TorchFunctionMode):
    """Collects where tensors are made, inside, with no device told.

    It needs no other device: what names the device of what it works on is right on any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        told = kwargs or {}
        if function in FACTORIES and told.get("device") is None:
            caller = _caller(sys._getframe(1))
            self.found.append(f"{caller.f_code.co_filename}:{caller.f_lineno}")
        return function(*args, **told)


def _caller(frame: FrameType | None) -> FrameType:
    """The innermost frame that is not a library's."""
    assert frame is not None
    while frame.f_back is not None and "site-packages" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame
