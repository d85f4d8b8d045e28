"""Backbones: shapes, counts of parameters, shortcuts, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError  # noqa: E402
from howsure_studies.methods.deep.modules import (  # noqa: E402
    Backbone,
    ModuleTraining,
    backbone_named,
    resnet34,
    small,
    train_module,
)
from howsure_studies.methods.deep.modules.backbones import shortcut  # noqa: E402
from howsure_studies.methods.deep.modules.network import Net  # noqa: E402


def parameters(module: Any) -> int:
    return sum(part.numel() for part in module.parameters())


@pytest.mark.parametrize("channels", [1, 3, 8])
def test_the_resnet_has_the_parameters_of_hand_arithmetic(channels: int) -> None:
    stem = 9 * channels * 64 + 2 * 64
    stages = 0
    for wide, narrow, blocks in ((64, 64, 3), (64, 128, 4), (128, 256, 6), (256, 512, 3)):
        convolutions = 9 * wide * narrow + (2 * blocks - 1) * 9 * narrow**2
        stages += convolutions + 2 * blocks * 2 * narrow
    assert parameters(resnet34(channels)) == stem + stages
    if channels == 3:
        assert stem + stages == 21_103_168


def test_the_resnet_halves_at_every_stage_and_gives_512_features() -> None:
    module = resnet34(3).eval()
    sides = []
    for part in module:
        part.register_forward_hook(lambda _, __, out: sides.append(tuple(out.shape[1:])))
    with torch.no_grad():
        assert tuple(module(torch.zeros(2, 3, 64, 64)).shape) == (2, 512)
    assert sides[0] == (64, 64, 64)  # the stem neither strides nor pools
    ends = [3 + place - 1 for place in (3, 7, 13, 16)]
    assert [sides[end] for end in ends] == [(64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]
    starts = [3, 6, 10, 16]
    strides = [part.stride for part in module if hasattr(part, "stride") and hasattr(part, "first")]
    assert [place + 3 for place, stride in enumerate(strides) if stride == 2] == starts
    assert sum(1 for part in module.modules() if isinstance(part, torch.nn.Linear)) == 0
    slopes = {p.negative_slope for p in module.modules() if isinstance(p, torch.nn.LeakyReLU)}
    assert slopes == {0.01}
    assert all(p.bias is None for p in module.modules() if isinstance(p, torch.nn.Conv2d))


def brute_shortcut(x: np.ndarray, channels: int, stride: int) -> np.ndarray:
    b, c, h, w = x.shape
    out = np.zeros((b, channels, math.ceil(h / stride), math.ceil(w / stride)))
    for i in range(out.shape[2]):
        for j in range(out.shape[3]):
            patch = x[:, :, i * stride : (i + 1) * stride, j * stride : (j + 1) * stride]
            out[:, :c, i, j] = patch.mean(axis=(2, 3))
    return out


@pytest.mark.parametrize(("side", "stride"), [(8, 2), (7, 2), (1, 2), (5, 1)])
def test_the_shortcut_is_means_of_patches_and_empty_channels(side: int, stride: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, side, side))
    for channels in (3, 5):
        found = shortcut(torch.tensor(x), channels, stride).numpy()
        np.testing.assert_allclose(found, brute_shortcut(x, channels, stride), atol=1e-15)


def test_a_block_is_what_it_says() -> None:
    module = resnet34(3).double().eval()
    block = next(part for part in module if getattr(part, "channels", 0) == 128)
    for norm in (block.first_norm, block.second_norm):
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
    x = torch.randn(2, 64, 6, 6, dtype=torch.float64)

    def norm(values: Any, part: Any) -> Any:
        shape = (1, -1, 1, 1)
        scale = part.weight / (part.running_var + part.eps).sqrt()
        return (values - part.running_mean.view(shape)) * scale.view(shape) + part.bias.view(shape)

    def bend(values: Any) -> Any:
        return torch.where(values > 0, values, 0.01 * values)

    conv = torch.nn.functional.conv2d
    with torch.no_grad():
        inner = bend(norm(conv(x, block.first.weight, stride=2, padding=1), block.first_norm))
        outer = norm(conv(inner, block.second.weight, padding=1), block.second_norm)
        expected = bend(outer + torch.tensor(brute_shortcut(x.numpy(), 128, 2)))
        torch.testing.assert_close(block(x), expected)


def test_the_small_network_has_the_parameters_of_hand_arithmetic() -> None:
    widths = (16, 32, 64, 64)
    kernels = 9 * (3 * 16 + 16 * 32 + 32 * 64 + 64 * 64)
    assert parameters(small(3)) == kernels + 2 * sum(widths)
    with torch.no_grad():
        assert tuple(small(3).eval()(torch.zeros(2, 3, 64, 64)).shape) == (2, 64)
        assert tuple(small(1, (4, 7)).eval()(torch.zeros(2, 1, 9, 5)).shape) == (2, 7)


@pytest.mark.parametrize("hidden", [None, 0, 5])
@pytest.mark.parametrize("shielded", [0, 1])
def test_outputs_are_little_networks_of_their_own(hidden: int | None, shielded: int) -> None:
    example = torch.zeros(2, 3, 8, 8)
    spec = {"name": "small", "widths": [4, 6]}
    net = Net.of(backbone_named(spec), example, outputs=3, shielded=shielded, hidden=hidden, seed=1)
    features = torch.randn(7, 6, requires_grad=True)
    found = net.outputs(features)
    units = 6 if hidden is None else hidden
    last = net.modules["last"]
    for k in range(3):
        own = features.detach()
        if units:
            rows = slice(k * units, (k + 1) * units)
            inner = net.modules["hidden"]
            own = (own @ inner.weight[rows].T + inner.bias[rows]).relu()
        torch.testing.assert_close(found[k], own @ last.weight[k] + last.bias[k])
        (slope,) = torch.autograd.grad(
            found[k].sum(), features, retain_graph=True, allow_unused=True
        )
        shut = slope is None or not bool(slope.any())
        assert shut == (k >= 3 - shielded)


def test_first_weights_come_from_the_seed_as_torch_draws_them() -> None:
    example = torch.zeros(2, 3, 8, 8)
    before = torch.get_rng_state()
    nets = [Net.of(backbone_named("small"), example, outputs=2, seed=seed) for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), before)
    states = [net.modules.state_dict() for net in nets]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert not torch.equal(states[0]["body.0.weight"], states[2]["body.0.weight"])
    weights = states[0]["body.9.weight"]
    bound = 1.0 / math.sqrt(9 * 64)
    assert float(weights.abs().max()) <= bound
    assert float(weights.std()) == pytest.approx(bound / math.sqrt(3), rel=0.02)


def test_an_image_alone_has_the_group_norms_that_it_has_among_others() -> None:
    rows = torch.rand(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    for kind, alike in (("group", True), ("batch", False)):
        module = backbone_named({"name": "small", "widths": [6, 8], "norm": kind}).make(3).train()
        with torch.no_grad():
            assert torch.allclose(module(rows)[:2], module(rows[:2]), atol=1e-6) is alike
    # Networks that are kept are found by the specification: the default must not stand in it.
    assert backbone_named({"name": "small", "norm": "batch"}).spec == backbone_named("small").spec
    assert (backbone_named({"name": "small", "norm": "group"}).spec or {})["norm"] == "group"
    with pytest.raises(InputError, match="norm must be"):
        backbone_named({"name": "small", "norm": "layer"})


def test_the_narrow_resnet_has_a_block_a_stage() -> None:
    stem = 9 * 3 * 4 + 2 * 4
    stages = sum(
        9 * wide * narrow + 9 * narrow**2 + 4 * narrow for wide, narrow in ((4, 4), (4, 6))
    )
    module = backbone_named({"name": "resnet", "widths": [4, 6]}).make(3).eval()
    assert parameters(module) == stem + stages
    sides = []
    for part in module:
        part.register_forward_hook(lambda _, __, out: sides.append(tuple(out.shape[1:])))
    with torch.no_grad():
        assert tuple(module(torch.zeros(2, 3, 16, 16)).shape) == (2, 6)
    assert sides == [(4, 16, 16), (4, 16, 16), (4, 16, 16), (4, 8, 8), (6, 4, 4), (6,)]


def test_names_and_options() -> None:
    assert backbone_named("small").spec == {
        "name": "small",
        "widths": [16, 32, 64, 64],
        "grey": True,
        "spectral": None,
    }
    made = backbone_named({"name": "resnet34", "spectral": 3})
    assert (made.spectral, made.grey) == (3, False)
    assert backbone_named(made) is made
    again = backbone_named(backbone_named({"name": "small", "widths": [4, 5]}).spec or {})
    assert again.name == "small (4-5)"
    again = backbone_named(backbone_named({"name": "small", "widths": [4, 5]}).spec or {})
    assert again.name == "small (4-5)"
    own = backbone_named("howsure_studies.methods.deep.modules.backbones:small")
    assert own.make is small
    assert isinstance(backbone_named(lambda channels: small(channels)), Backbone)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("smal", "small"),
        ({"widths": [3]}, "name"),
        ({"name": "small", "depth": 3}, "depth"),
        ({"name": "small", "widths": 3}, "widths"),
        ({"name": "small", "widths": []}, "widths"),
        ({"name": "small", "widths": [0]}, "widths"),
        ({"name": "small", "grey": 1}, "grey"),
        ({"name": "resnet", "widths": [0]}, "widths"),
        ({"name": "resnet34", "spectral": 0}, "spectral"),
        ({"name": "resnet34", "spectral": float("nan")}, "spectral"),
        ({"name": "resnet34", "spectral": True}, "spectral"),
        ("math:pi", "callable"),
        ("nowhere:net", "nowhere"),
        (3, "backbone"),
    ],
)
def test_what_is_no_backbone_is_refused(spec: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        backbone_named(spec)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda channels: 3, "torch module"),
        (lambda channels: torch.nn.Conv2d(channels, 4, 3), r"\(2, d\)"),
        (lambda channels: torch.nn.Flatten(0), r"\(2, d\)"),
        (lambda channels: torch.nn.Conv2d(channels + 1, 4, 3), "must take a batch"),
        (lambda channels: torch.nn.Linear(7, 3), "must take a batch"),
    ],
)
def test_a_module_that_gives_no_features_is_refused(make: Any, words: str) -> None:
    x = np.zeros((4, 8, 8, 3), dtype=np.uint8)
    with pytest.raises(InputError, match=words):
        train_module(
            x,
            np.arange(4.0),
            head="gaussian",
            backbone=make,
            recipe=ModuleTraining.small(1),
            rng=np.random.default_rng(0),
        )
