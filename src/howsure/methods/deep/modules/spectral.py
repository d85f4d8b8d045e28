"""Soft spectral normalisation: convolutions that stretch no image by more than a bound."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from howsure.core.errors import InputError
from howsure.core.optional import require

Module = Any
Tensor = Any

COEFFICIENT: Final = 3.0
"""The bound of the shift benchmark."""

_STABLE: Final = 1e-5
_STEPS: Final = 2000
_SETTLED: Final = 1e-8


def soften(module: Module, example: Tensor, bound: float = COEFFICIENT) -> Module:
    """Bound the norms of all two-dimensional convolutions of a module, each as it is used.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place; its convolutions must each see images of one size.
    example : tensor of shape (b, c, h, w)
        A batch as the module takes it, which tells those sizes.
    bound : float
        Norms above it are brought down to it; those below stay as they are.

    Returns
    -------
    torch.nn.Module
        The same module.

    Raises
    ------
    InputError
        If it has no such convolution, or one that is not zero-padded.

    Notes
    -----
    Weights are divided by max(1, σ/bound) + 1e-5, where σ estimates the norm of the convolution
    as a map of images of its size: one step of power iteration each time that it is used in
    training, from where the last step ended. It runs behind weights that move fast; `tighten`
    catches up. Sources: Gouk et al. 2021, Regularisation of neural
    networks by enforcing Lipschitz continuity; Mukhoti et al. 2023.
    """
    torch = require("torch", extra="deep")
    sizes: dict[Module, tuple[int, ...]] = {}
    convolutions = [part for part in module.modules() if isinstance(part, torch.nn.Conv2d)]
    if not convolutions:
        raise InputError("spectral must be left out for a backbone without 2-d convolutions")
    hooks = [
        part.register_forward_pre_hook(
            lambda part, inputs: sizes.__setitem__(part, tuple(inputs[0].shape[1:]))
        )
        for part in convolutions
    ]
    was = module.training
    try:
        with torch.no_grad():
            module.eval()(example)
    finally:
        module.train(was)
        for hook in hooks:
            hook.remove()
    for part in convolutions:
        if part.padding_mode != "zeros" or isinstance(part.padding, str):
            raise InputError("spectral must be left out for convolutions not padded by zeros")
        if part in sizes:
            norm = _norm_type()(part, sizes[part], bound)
            torch.nn.utils.parametrize.register_parametrization(part, "weight", norm, unsafe=True)
    return module


def tighten(module: Module) -> None:
    """Iterate the norms of softened convolutions until they settle, so that the bounds hold."""
    torch = require("torch", extra="deep")
    for part in module.modules():
        for norm, weight in _softened(torch, part):
            last = 0.0
            with torch.no_grad():
                for _ in range(_STEPS):
                    found = float(norm.iterate(weight))
                    if abs(found - last) <= _SETTLED * found:
                        break
                    last = found


def _softened(torch: Any, part: Module) -> Iterator[tuple[Module, Tensor]]:
    """The bound and the raw weight of a convolution, if it is softened."""
    if torch.nn.utils.parametrize.is_parametrized(part, "weight"):
        chain = part.parametrizations.weight
        for norm in chain:
            if isinstance(norm, _norm_type()):
                yield norm, chain.original


@cache
def _norm_type() -> Any:
    """The class of bounded weights: made when torch is first needed."""
    torch = require("torch", extra="deep")
    f = torch.nn.functional

    def construct(self: Module, part: Module, size: tuple[int, ...], bound: float) -> None:
        torch.nn.Module.__init__(self)
        self.bound = bound
        self.options = {
            "stride": part.stride,
            "padding": part.padding,
            "dilation": part.dilation,
            "groups": part.groups,
        }
        with torch.no_grad():
            source = _unit(torch.randn(1, *size).to(part.weight))
            self.register_buffer("source", source)
            self.register_buffer("image", _unit(self.through(source, part.weight)))

    def through(self: Module, image: Tensor, weight: Tensor) -> Tensor:
        return f.conv2d(image, weight, **self.options)

    def iterate(self: Module, weight: Tensor) -> Tensor:
        size = self.source.shape
        back = torch.nn.grad.conv2d_input(size, weight, self.image, **self.options)
        self.source.copy_(_unit(back))
        image = self.through(self.source, weight)
        self.image.copy_(_unit(image))
        return image.norm()

    def forward(self: Module, weight: Tensor) -> Tensor:
        if self.training:
            with torch.no_grad():
                self.iterate(weight)
        norm = (self.image * self.through(self.source, weight)).sum()
        return weight / ((norm / self.bound).clamp(min=1.0) + _STABLE)

    members = {
        "__init__": construct,
        "through": through,
        "iterate": iterate,
        "forward": forward,
    }
    return type("SoftSpectralNorm", (torch.nn.Module,), members)


def _unit(values: Tensor) -> Tensor:
    return values / values.norm().clamp(min=1e-12)
