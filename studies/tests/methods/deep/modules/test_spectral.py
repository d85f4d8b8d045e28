"""Soft spectral normalisation: bounds by singular values of the whole map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError  # noqa: E402
from howsure_studies.methods.deep.modules import (  # noqa: E402
    ModuleTraining,
    backbone_named,
    resnet34,
    soften,
    train_module,
)
from howsure_studies.methods.deep.modules.backbones import tighten  # noqa: E402
from howsure_studies.methods.deep.modules.network import Net  # noqa: E402


def largest(part: Any) -> float:
    """The norm of a convolution as a matrix that maps whole images."""
    size = tuple(part.parametrizations.weight[0].source.shape[1:])
    images = torch.eye(int(np.prod(size)), dtype=torch.float64).view(-1, *size)
    with torch.no_grad():
        mapped = torch.nn.functional.conv2d(
            images, part.weight.double(), stride=part.stride, padding=part.padding
        )
    return float(torch.linalg.svdvals(mapped.flatten(1))[0])


def convolutions(module: Any) -> list[Any]:
    return [part for part in module.modules() if isinstance(part, torch.nn.Conv2d)]


@pytest.mark.parametrize("bound", [3.0, 0.5])
def test_trained_convolutions_keep_within_the_bound(bound: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(64, 8, 8, 3), dtype=np.uint8)
    network = train_module(
        x,
        x[:, :4].mean(axis=(1, 2, 3)),
        head="gaussian",
        backbone={"name": "small", "widths": [8, 16], "spectral": bound},
        recipe=ModuleTraining.small(4, learning_rate=2e-2),
        rng=np.random.default_rng(1),
    )
    found = [largest(part) for part in convolutions(network.net.body)]
    assert len(found) == 2
    assert max(found) <= bound * (1 + 1e-3)
    if bound < 1.0:  # reached: without the bound they are larger
        assert min(found) == pytest.approx(bound, rel=1e-3)


def test_weights_within_the_bound_stay_as_they_are() -> None:
    body = torch.nn.Conv2d(2, 3, 3, padding=1, bias=False).eval()
    before = body.weight.detach().clone()
    soften(body, torch.zeros(1, 2, 5, 5), bound=100.0)
    torch.testing.assert_close(body.weight.detach(), before / (1 + 1e-5))


def test_one_step_of_iteration_for_each_use_in_training() -> None:
    body = soften(torch.nn.Conv2d(2, 3, 3, padding=1, bias=False), torch.zeros(1, 2, 5, 5))
    norm = body.parametrizations.weight[0]
    source = norm.source.clone()
    body.eval()(torch.zeros(1, 2, 5, 5))
    assert torch.equal(norm.source, source)
    body.train()(torch.zeros(1, 2, 5, 5))
    assert not torch.equal(norm.source, source)


def test_the_iteration_finds_the_largest_singular_value() -> None:
    body = torch.nn.Conv2d(2, 3, 3, stride=2, padding=1, bias=False)
    raw = body.weight.detach().clone()
    soften(body, torch.zeros(1, 2, 7, 6), bound=0.1)
    tighten(body)
    body.eval()
    assert largest(body) == pytest.approx(0.1, rel=1e-4)
    norm = body.parametrizations.weight[0]
    with torch.no_grad():
        assert torch.equal(body.parametrizations.weight.original, raw)
        body.parametrizations.weight.original.mul_(1e-3)
    assert float(norm.through(norm.source, raw).norm()) == pytest.approx(
        largest(body) * 1e3 * (1 + 1e-5), rel=1e-4
    )


def test_the_slope_by_the_weights_is_right() -> None:
    body = torch.nn.Conv2d(1, 2, 3, bias=False).double()
    soften(body, torch.zeros(1, 1, 4, 4, dtype=torch.float64), bound=0.05)
    norm = body.parametrizations.weight[0].double().eval()
    weight = torch.randn(2, 1, 3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(norm, (weight,))


def test_all_convolutions_of_the_resnet_are_bounded() -> None:
    spec = {"name": "resnet34", "spectral": 3.0}
    net = Net.of(backbone_named(spec), torch.zeros(2, 3, 16, 16), outputs=2)
    parts = convolutions(net.body)
    assert len(parts) == 33
    assert all(hasattr(part, "parametrizations") for part in parts)
    sides = [part.parametrizations.weight[0].source.shape[2] for part in parts]
    assert sides[0] == 16
    assert sides[-1] == 1
    plain = sum(p.numel() for p in resnet34(3).parameters())
    assert sum(p.numel() for p in net.body.parameters()) == plain


@pytest.mark.parametrize(
    "make",
    [
        lambda channels: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 3)),
        lambda channels: torch.nn.Sequential(
            torch.nn.Conv2d(channels, 2, 3, padding=1, padding_mode="circular"), torch.nn.Flatten()
        ),
        lambda channels: torch.nn.Sequential(
            torch.nn.Conv2d(channels, 2, 3, padding="same"), torch.nn.Flatten()
        ),
    ],
)
def test_what_cannot_be_bounded_is_refused(make: Any) -> None:
    with pytest.raises(InputError, match="spectral"):
        soften(make(1), torch.zeros(2, 1, 8, 8))
