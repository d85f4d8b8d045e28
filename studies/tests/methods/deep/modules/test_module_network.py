"""Trained networks: what they say, as bytes and back, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError  # noqa: E402
from howsure_studies.methods.deep.heads import HEADS, Gaussian, PairHead  # noqa: E402
from howsure_studies.methods.deep.modules import (  # noqa: E402
    ModuleNetwork,
    ModuleTraining,
    backbone_named,
    small,
    train_module,
)
from howsure_studies.methods.deep.modules.inputs import (  # noqa: E402
    DeviceRows,
    checked_inputs,
    network_input,
)

TINY = {"name": "small", "widths": [4, 6]}


def data(n: int = 40, channels: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(n, 8, 8, channels), dtype=np.uint8)
    return x, x[:, :4].mean(axis=(1, 2, 3))


def fit(head: Any = "gaussian", backbone: Any = TINY, **options: Any) -> ModuleNetwork:
    x, y = data()
    return train_module(
        x,
        y,
        head=head,
        backbone=backbone,
        recipe=ModuleTraining.small(3, **options),
        rng=np.random.default_rng(0),
    )


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("last", [True, False])
def test_batches_are_what_the_task_says(channels: int, last: bool) -> None:
    x, _ = data(20, channels)
    inputs = DeviceRows.of(x, grey=False, channels_last=last)
    rows = torch.tensor([3, 1, 17])
    found = inputs.batch(rows)
    np.testing.assert_allclose(found.numpy(), network_input(x)[rows.numpy()], atol=1e-6)
    layout = torch.channels_last if last else torch.contiguous_format
    assert found.is_contiguous(memory_format=layout)
    grey = DeviceRows.of(x, grey=True).batch(slice(0, 4))
    np.testing.assert_allclose(grey.numpy(), network_input(x)[:4, :channels], atol=1e-6)


def test_floats_and_tables_are_taken_as_they_are() -> None:
    x = np.random.default_rng(0).normal(size=(5, 3, 2, 8))
    rows = checked_inputs(x, "x", "none")
    found = DeviceRows.of(rows, grey=True).batch(slice(0, 5))
    np.testing.assert_array_equal(found.numpy(), network_input(x, "none"))
    table = checked_inputs(x.reshape(5, -1), "x", "imagenet")
    np.testing.assert_array_equal(DeviceRows.of(table, grey=True).batch(slice(1, 3)), table[1:3])


def test_bytes_in_eight_bits_are_never_widened_in_store() -> None:
    x, _ = data()
    inputs = DeviceRows.of(checked_inputs(x, "x", "imagenet"), grey=True)
    assert inputs.values.dtype == torch.uint8
    assert inputs.values.data_ptr() == x.__array_interface__["data"][0]
    x.flags.writeable = False
    assert DeviceRows.of(x, grey=True).values.shape == x.shape


def test_outputs_features_and_predictions_agree() -> None:
    x, _ = data(600)
    network = fit()
    outputs, features = network.predict_all(x)
    assert (outputs.shape, features.shape) == ((2, 600), (600, 6))
    np.testing.assert_array_equal(network.outputs(x), outputs)
    np.testing.assert_array_equal(network.features(x), features)
    np.testing.assert_allclose(network.outputs(x[300:310]), outputs[:, 300:310], atol=1e-5)
    scale = network.scale
    law = network.prediction(x)
    np.testing.assert_allclose(law.point(), scale.y_center + scale.y_unit * outputs[0])
    np.testing.assert_allclose(law.sd(), scale.y_unit * np.exp(0.5 * outputs[1]))


def test_asking_changes_nothing() -> None:
    x, _ = data()
    network = fit()
    before = network.to_bytes(), torch.get_rng_state(), torch.is_grad_enabled()
    first = network.outputs(x)
    np.testing.assert_array_equal(network.outputs(x), first)
    assert network.to_bytes() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert torch.is_grad_enabled() == before[2]
    assert not network.net.modules.training


@pytest.mark.parametrize("head", [*HEADS, PairHead(0.8), {"name": "squared_error", "sd": 0.5}])
def test_bytes_and_back(head: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = data()
    network = train_module(
        x, np.round(y), head=head, backbone=TINY, recipe=ModuleTraining.small(2), rng=rng
    )
    again = ModuleNetwork.from_bytes(network.to_bytes())
    np.testing.assert_array_equal(again.outputs(x), network.outputs(x))
    assert again.head == network.head
    assert again.backbone.name == network.backbone.name
    assert (again.shape, again.kept, again.failure) == (network.shape, 2, None)
    np.testing.assert_array_equal(again.losses, network.losses)
    assert again.prediction(x).interval(0.8)[0] == pytest.approx(
        network.prediction(x).interval(0.8)[0]
    )
    assert again.to_bytes() == network.to_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "backbone", [{"name": "resnet34"}, {**TINY, "spectral": 1.0}, {**TINY, "grey": False}]
)
def test_every_backbone_comes_back(backbone: Any) -> None:
    x, _ = data()
    network = fit(backbone=backbone, channels_last=False, hidden=3)
    again = ModuleNetwork.from_bytes(network.to_bytes())
    np.testing.assert_array_equal(again.outputs(x), network.outputs(x))


def test_a_backbone_of_ones_own_must_be_given_again() -> None:
    def own(channels: int) -> Any:
        return small(channels, (3, 5))

    x, _ = data()
    network = fit(backbone=own)
    held = network.to_bytes()
    with pytest.raises(InputError, match="backbone must be given"):
        ModuleNetwork.from_bytes(held)
    again = ModuleNetwork.from_bytes(held, backbone=own)
    np.testing.assert_array_equal(again.outputs(x), network.outputs(x))
    with pytest.raises(InputError, match="backbone must fit"):
        ModuleNetwork.from_bytes(held, backbone=lambda channels: small(channels, (3, 6)))
    with pytest.raises(InputError, match="head must have 2 outputs"):
        ModuleNetwork.from_bytes(held, backbone=own, head="poisson")
    by_path = fit(backbone="howsure_studies.methods.deep.modules.backbones:small").to_bytes()
    with pytest.raises(InputError, match="backbone must be given"):  # bytes import no code
        ModuleNetwork.from_bytes(by_path)
    ModuleNetwork.from_bytes(by_path, backbone=small)


def test_damaged_bytes_are_refused() -> None:
    held = fit().to_bytes()
    for damaged in (b"", b"howsure", held[:-1], held + b"0", held[:50] + b"?" + held[51:]):
        with pytest.raises(InputError, match="data must be"):
            ModuleNetwork.from_bytes(damaged)


def test_the_size_of_bytes_is_that_of_the_weights() -> None:
    network = fit(backbone="small")
    numbers = sum(part.numel() for part in network.net.modules.state_dict().values())
    assert len(network.to_bytes()) < 4 * numbers + 20_000


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros((3, 8, 8, 3), np.uint8), "rows of shape"),
        (np.zeros((3, 9, 8, 1), np.uint8), "rows of shape"),
        (np.zeros((3, 64)), "rows of shape"),
        (np.zeros((3, 8, 8, 1)), "8-bit"),
        (np.zeros((0, 8, 8, 1), np.uint8), "at least one number"),
        (None, "real numbers"),
    ],
)
def test_rows_of_another_kind_are_refused(x: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        fit().prediction(x)


def test_the_head_and_the_scale_are_there_to_read() -> None:
    network = fit(Gaussian(), standardise=True)
    assert network.head == Gaussian()
    assert network.scale.y_unit != 1.0
    assert network.device == "cpu"
    assert backbone_named(network.backbone) is network.backbone
