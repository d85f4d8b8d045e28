"""Backbones: what turns images, or anything, into features; convolutions with bounded norms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from itertools import pairwise
from math import gcd
from typing import Annotated, Any, Final, Literal, final

from howsure.core.arrays import placed
from howsure.core.classes import frozen
from howsure.core.convert import Count, Positive, checked, filled
from howsure.core.errors import InputError
from howsure.core.optional import require
from howsure_studies.methods.options import attribute, named

Module = Any
Tensor = Any
Maker = Callable[[int], Module]

SMALL: Final = (16, 32, 64, 64)
"""Channels of the small backbone."""

MLP: Final = (64, 64)
"""Units of the layers of the backbone for tables."""

RESNET34: Final = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Channels and blocks of the stages of the ResNet-34."""

NARROW: Final = (8, 16, 32, 64)
"""Channels of the stages of the narrow residual network."""

Norm = Literal["batch", "group"]

GROUPS: Final = 4
"""Groups of channels that are normalised together; four leave each at least four channels."""

_SLOPE: Final = 0.01

COEFFICIENT: Final = 3.0
"""The bound of the shift benchmark."""

_STABLE: Final = 1e-5
_STEPS: Final = 2000
_SETTLED: Final = 1e-8


@final
@frozen
class Backbone:
    """What makes a module that turns a batch into features, shape (b, d).

    Attributes
    ----------
    name : str
        What reports call it.
    make : callable
        A module for so many channels (columns, of tables), with weights drawn by torch.
    grey : bool
        Whether images of one channel are taken as such under ImageNet's scaling, rather than
        copied to three: the copies say nothing new.
    spectral : float, optional
        The bound of soft spectral normalisation of all convolutions; none if None.
    spec : mapping, optional
        Plain values from which `backbone_named` makes it again, where there are such.
    """

    name: str
    make: Maker
    grey: bool = False
    spectral: float | None = None
    spec: Mapping[str, Any] | None = field(default=None, compare=False)


def backbone_named(spec: str | Mapping[str, Any] | Backbone | Maker) -> Backbone:
    """The backbone of a name, with its options, or of a callable of one's own.

    Parameters
    ----------
    spec : str, mapping, Backbone or callable
        ``small``, ``resnet``, ``resnet34``, ``mlp``, or ``module:attribute`` of a callable, bare
        or as the ``name`` of a mapping that holds options beside it; a callable that takes the
        number of channels and gives a torch module, whose output must have shape (b, d); or a
        backbone, which passes through. All but the last take ``grey`` and ``spectral`` (see
        `Backbone`); ``small`` takes ``widths``, the channels of its convolutions, and ``norm``
        (see `small`) as well,
        ``resnet`` those of its stages of one block each, and ``mlp``, for tables, the units of
        its layers.

    Returns
    -------
    Backbone

    Raises
    ------
    InputError
        If a name or an option is unknown, or an option breaks its rule.

    Examples
    --------
    >>> backbone_named({"name": "small", "widths": [8, 16, 32, 64]}).name
    'small (8-16-32-64)'
    >>> backbone_named("resnet34").grey
    False
    """
    if isinstance(spec, Backbone):
        return spec
    if not isinstance(spec, str | Mapping):
        if not callable(spec):
            raise InputError(f"backbone must be a name, a mapping or a callable, got {spec!r}")
        return Backbone(getattr(spec, "__name__", type(spec).__name__), spec)
    known: dict[str, Callable[..., Backbone]] = {
        "small": _small,
        "resnet": _resnet,
        "resnet34": _resnet34,
        "mlp": _mlp,
    }
    name = spec.get("name") if isinstance(spec, Mapping) else spec
    if isinstance(name, str) and ":" in name:
        known[name] = partial(_own_backbone, name)
    backbone: Backbone = named(spec, known, "backbone")
    return backbone


def _own_backbone(name: str, grey: bool = False, spectral: float | None = None) -> Backbone:
    make = attribute(name, "backbone")
    if not callable(make):
        raise InputError(f"backbone {name!r} must be callable, got {make!r}")
    return _backbone(name, make, {"name": name}, grey, spectral)


def _small(
    widths: Any = SMALL, grey: bool = True, spectral: float | None = None, norm: Norm = "batch"
) -> Backbone:
    backbone = _wide("small", partial(small, norm=norm), widths, grey, spectral)
    if checked(norm, Norm, "norm") == "batch":
        return backbone
    # The default stays out of the specification, by which trained networks are found again.
    return replace(backbone, spec={**(backbone.spec or {}), "norm": norm})


def _mlp(widths: Any = MLP, grey: bool = False, spectral: float | None = None) -> Backbone:
    return _wide("mlp", mlp, widths, grey, spectral)


def _resnet(widths: Any = NARROW, grey: bool = True, spectral: float | None = None) -> Backbone:
    return _wide("resnet", resnet, widths, grey, spectral)


def _resnet34(grey: bool = False, spectral: float | None = None) -> Backbone:
    return _backbone("ResNet-34", resnet34, {"name": "resnet34"}, grey, spectral)


def _wide(
    name: str, make: Callable[..., Module], given: Any, grey: bool, spectral: float | None
) -> Backbone:
    """A backbone of layers of chosen widths."""
    widths: tuple[int, ...] = checked(given, Annotated[tuple[Count, ...], filled], "widths")
    title = f"{name} ({'-'.join(map(str, widths))})"
    spec = {"name": name, "widths": list(widths)}
    return _backbone(title, partial(make, widths=widths), spec, grey, spectral)


def _backbone(
    title: str, make: Maker, spec: dict[str, Any], grey: bool, spectral: float | None
) -> Backbone:
    options = {
        "grey": checked(grey, bool, "grey"),
        "spectral": checked(spectral, Positive | None, "spectral"),
    }
    return Backbone(title, make, **options, spec={**spec, **options})


def small(channels: int, widths: tuple[int, ...] = SMALL, norm: Norm = "batch") -> Module:
    """A small convolutional network for training on a processor.

    3×3 convolutions of stride 2 without bias, each followed by a normalisation and
    LeakyReLU(0.01), and the mean over places: as many features as the last has channels.

    Parameters
    ----------
    channels : int
        Channels of the images.
    widths : tuple of int
        Channels of the convolutions.
    norm : {"batch", "group"}
        Normalisation over the batch, or over groups of an image's own channels, which neighbours
        in a batch do not change.

    Returns
    -------
    torch.nn.Module
    """
    nn = require("torch", extra="deep").nn
    layers: list[Module] = []
    for wide, narrow in pairwise((channels, *widths)):
        layers += [
            nn.Conv2d(wide, narrow, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(narrow)
            if norm == "batch"
            else nn.GroupNorm(gcd(GROUPS, narrow), narrow),
            nn.LeakyReLU(_SLOPE, inplace=True),
        ]
    return nn.Sequential(*layers, _pool(nn))


def mlp(columns: int, widths: tuple[int, ...] = MLP) -> Module:
    """Full layers with LeakyReLU(0.01), for rows of a table; the last gives the features."""
    nn = require("torch", extra="deep").nn
    layers: list[Module] = []
    for wide, narrow in pairwise((columns, *widths)):
        layers += [nn.Linear(wide, narrow), nn.LeakyReLU(_SLOPE, inplace=True)]
    return nn.Sequential(*layers)


def resnet34(channels: int) -> Module:
    """The ResNet-34 of Deep Deterministic Uncertainty, as the shift benchmark uses it.

    A 3×3 stem of stride 1 with 64 channels and no max-pooling; stages of 3, 4, 6 and 3 blocks of
    two 3×3 convolutions with 64, 128, 256 and 512 channels, each starting with stride 2;
    shortcuts without parameters (`shortcut`); LeakyReLU(0.01); the mean over places: 512
    features. Convolutions have no bias.

    Parameters
    ----------
    channels : int
        Channels of the images.

    Returns
    -------
    torch.nn.Module

    Notes
    -----
    Sources: Mukhoti et al. 2023, Deep Deterministic Uncertainty; Gustafsson, Danelljan and
    Schön 2023. Not torchvision's network of that name.
    """
    return _residual(channels, RESNET34)


def resnet(channels: int, widths: tuple[int, ...] = NARROW) -> Module:
    """A residual network for training on a processor: `resnet34` with one block a stage.

    Parameters
    ----------
    channels : int
        Channels of the images.
    widths : tuple of int
        Channels of the stages; the stem has those of the first.

    Returns
    -------
    torch.nn.Module
    """
    return _residual(channels, [(width, 1) for width in widths])


def _residual(channels: int, stages: Sequence[tuple[int, int]]) -> Module:
    """A stem, and stages of so many channels and blocks, of which each first has stride 2."""
    nn = require("torch", extra="deep").nn
    wide = stages[0][0]
    layers: list[Module] = [
        nn.Conv2d(channels, wide, 3, padding=1, bias=False),
        nn.BatchNorm2d(wide),
        nn.LeakyReLU(_SLOPE, inplace=True),
    ]
    for narrow, blocks in stages:
        for number in range(blocks):
            layers.append(_block_type()(wide, narrow, 2 if number == 0 else 1))
            wide = narrow
    return nn.Sequential(*layers, _pool(nn))


def _pool(nn: Any) -> Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())


def shortcut(x: Tensor, channels: int, stride: int) -> Tensor:
    """What a block of the ResNet adds to its convolutions: means of patches, and no channels more.

    Patches are of side `stride`; those that the border cuts are averaged over what is left.
    """
    f = require("torch", extra="deep").nn.functional
    if stride > 1:
        x = f.avg_pool2d(x, stride, ceil_mode=True, count_include_pad=False)
    more = channels - x.shape[1]
    return f.pad(x, (0, 0, 0, 0, 0, more)) if more else x


@cache
def _block_type() -> Any:
    """The class of the blocks of the ResNet: made when torch is first needed."""
    nn = require("torch", extra="deep").nn

    def construct(self: Module, wide: int, narrow: int, stride: int) -> None:
        nn.Module.__init__(self)
        self.stride, self.channels = stride, narrow
        self.first = nn.Conv2d(wide, narrow, 3, stride=stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(narrow)
        self.second = nn.Conv2d(narrow, narrow, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(narrow)
        self.bend = nn.LeakyReLU(_SLOPE, inplace=True)

    def forward(self: Module, x: Tensor) -> Tensor:
        inner = self.bend(self.first_norm(self.first(x)))
        outer = self.second_norm(self.second(inner))
        return self.bend(outer + shortcut(x, self.channels, self.stride))

    return type("BasicBlock", (nn.Module,), {"__init__": construct, "forward": forward})


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
    convolutions = [
        convolution for convolution in module.modules() if isinstance(convolution, torch.nn.Conv2d)
    ]
    if not convolutions:
        raise InputError("spectral must be left out for a backbone without 2-d convolutions")
    hooks = [
        convolution.register_forward_pre_hook(
            lambda layer, inputs: sizes.__setitem__(layer, tuple(inputs[0].shape[1:]))
        )
        for convolution in convolutions
    ]
    was = module.training
    try:
        with torch.no_grad():
            module.eval()(example)
    finally:
        module.train(was)
        for hook in hooks:
            hook.remove()
    for convolution in convolutions:
        if convolution.padding_mode != "zeros" or isinstance(convolution.padding, str):
            raise InputError("spectral must be left out for convolutions not padded by zeros")
        if convolution in sizes:
            norm = _norm_type()(convolution, sizes[convolution], bound)
            torch.nn.utils.parametrize.register_parametrization(
                convolution, "weight", norm, unsafe=True
            )
    return module


def tighten(module: Module) -> None:
    """Iterate the norms of softened convolutions until they settle, so that the bounds hold."""
    torch = require("torch", extra="deep")
    for layer in module.modules():
        for norm, weight in _softened(torch, layer):
            last = 0.0
            with torch.no_grad():
                for _ in range(_STEPS):
                    size = float(norm.iterate(weight))
                    if abs(size - last) <= _SETTLED * size:
                        break
                    last = size


def _softened(torch: Any, convolution: Module) -> Iterator[tuple[Module, Tensor]]:
    """The bound and the raw weight of a convolution, if it is softened."""
    if torch.nn.utils.parametrize.is_parametrized(convolution, "weight"):
        chain = convolution.parametrizations.weight
        for norm in chain:
            if isinstance(norm, _norm_type()):
                yield norm, chain.original


@cache
def _norm_type() -> Any:
    """The class of bounded weights: made when torch is first needed."""
    torch = require("torch", extra="deep")
    f = torch.nn.functional

    def construct(self: Module, convolution: Module, size: tuple[int, ...], bound: float) -> None:
        torch.nn.Module.__init__(self)
        self.bound = bound
        self.options = {
            "stride": convolution.stride,
            "padding": convolution.padding,
            "dilation": convolution.dilation,
            "groups": convolution.groups,
        }
        with torch.no_grad():
            drawn = torch.randn(1, *size)  # on the CPU: the same numbers for every device
            source = _unit(placed(drawn, convolution.weight.device, convolution.weight.dtype))
            self.register_buffer("source", source)
            self.register_buffer("image", _unit(self.through(source, convolution.weight)))

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

    members = {"__init__": construct, "through": through, "iterate": iterate, "forward": forward}
    return type("SoftSpectralNorm", (torch.nn.Module,), members)


def _unit(values: Tensor) -> Tensor:
    return values / values.norm().clamp(min=1e-12)
