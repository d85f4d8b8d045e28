"""Networks on another device: on torch's `meta` device, no tensor strays to the host."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.arrays import device_named, placed, to_host
from howsure.core.errors import InputError
from howsure_studies.methods.catalogue import method_named, method_spec
from howsure_studies.methods.deep.batch import Chunk, Member, train
from howsure_studies.methods.deep.heads import HEADS, Head, PairHead, SquaredError, head_named
from howsure_studies.methods.deep.mlp import Bernoulli, Concrete, Dropout
from howsure_studies.methods.deep.modules.backbones import backbone_named
from howsure_studies.methods.deep.modules.inputs import DeviceRows
from howsure_studies.methods.deep.modules.network import Net
from howsure_studies.methods.deep.modules.training import Loop
from howsure_studies.methods.deep.training import BatchTraining, ModuleTraining

torch = needs("torch")

from strays import HostTensors, Unplaced  # noqa: E402

ROOT = Path(__file__).parents[4]
ROOMS = [ROOT / "src/howsure" / room for room in ("stats", "engine", "topics")]
LAWS = [*(head_named(name) for name in HEADS), SquaredError(), PairHead()]
SMALL = {"name": "small", "widths": [4, 4, 4, 4]}


def name_of(head: Any) -> str:
    return type(head).__name__


def members(head: Head, held: bool = False) -> list[Member]:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)), rng.poisson(4.0, size=20).astype(float)
    return [Member(x, y, seed=k, held=(x[:7], y[:7]) if held else None) for k in range(2)]


def loop(head: Head, recipe: ModuleTraining, spec: Any = SMALL, device: str = "meta") -> Loop:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, size=(20, 12, 12, 1), dtype=np.uint8)
    y = rng.poisson(4.0, size=20).astype(float)
    backbone = backbone_named(spec)
    rows = DeviceRows.of(x, grey=backbone.grey, device=device)
    net = Net.of(
        backbone,
        DeviceRows.of(x, grey=backbone.grey).batch(slice(0, 2)),
        outputs=head.outputs,
        shielded=head.shielded,
        hidden=recipe.hidden,
        seed=3,
    )
    return Loop(net, head, recipe, (rows, y), None, seed=5)


@pytest.mark.parametrize("head", LAWS, ids=name_of)
def test_small_networks_stay_on_their_device(head: Head) -> None:
    options = BatchTraining(layers=(6, 5), epochs=2, batch_size=8, penalty=0.1)
    chunk = Chunk(members(head, held=True), [head] * 2, options, device="meta")
    with torch.no_grad(), HostTensors() as host:
        losses, judged = chunk.epoch(0), chunk.judged()
    assert host.found == []
    assert losses.device.type == "meta" == judged.device.type
    assert (losses.shape, judged.shape) == ((3, 2), (2,))


@pytest.mark.parametrize("dropout", [Bernoulli(0.1, True), Concrete(drop_input=True)], ids=name_of)
def test_dropout_stays_on_its_device(dropout: Dropout) -> None:
    head = head_named("gaussian")
    options = BatchTraining(layers=(6, 5), epochs=1, batch_size=8, weight_decay=1e-3)
    chunk = Chunk(members(head), [head] * 2, options, dropout, "meta")
    with torch.no_grad(), HostTensors() as host:
        assert chunk.epoch(0).device.type == "meta"
    assert host.found == []
    assert chunk.mlp.values.grad.device.type == "meta"


@pytest.mark.slow
@pytest.mark.parametrize("head", LAWS, ids=name_of)
def test_modules_train_and_predict_on_their_device(head: Head) -> None:
    """An epoch of each phase, the loss on rows held out, and the outputs of new rows."""
    recipe = ModuleTraining(epochs=3, warm_epochs=1, frozen_epochs=1, batch_size=8, warm_start=True)
    made = loop(head, recipe)
    rows, y = made._rows
    with HostTensors() as host:
        losses = [made.losses(epoch) for epoch in range(3)]
        held = made.held_loss(rows, y)
        with torch.inference_mode():
            outputs, features = made.net.passed(rows)
    assert host.found == []
    assert {part.device.type for part in (*losses, held, outputs, features)} == {"meta"}
    assert outputs.shape == (head.outputs, 20)
    assert features.shape[0] == 20


@pytest.mark.parametrize(
    "spec",
    [{**SMALL, "spectral": 2.0}, pytest.param({"name": "resnet34"}, marks=pytest.mark.slow)],
    ids=str,
)
def test_backbones_stay_on_their_device(spec: Any) -> None:
    made = loop(head_named("gaussian"), ModuleTraining.small(3, weight_decay=1e-3), spec)
    with HostTensors() as host:
        made.losses(2)
    assert host.found == []


def test_the_oracle_sees_what_strays() -> None:
    """A tensor made on the host inside; and one made where no device is told."""
    with HostTensors() as host:
        torch.ones(3)
    assert host.found == ["aten.ones.default"]
    with Unplaced() as unplaced:
        torch.zeros(3, device="cpu")
        placed(np.ones(3), "meta")
        assert unplaced.found == []
        torch.zeros(3)
    assert len(unplaced.found) == 1


def test_all_of_training_tells_its_device() -> None:
    """What is read on the host as well: whole trainings, with nothing made where none is told."""
    head = head_named("gaussian")
    options = BatchTraining(layers=(6, 5), epochs=2, batch_size=8, keep="best")
    made = loop(head, ModuleTraining.small(2), device="cpu")  # first weights are drawn on the CPU
    with Unplaced() as unplaced:
        train(members(head, held=True), head, options)
        made.run(None)
    assert unplaced.found == []


def test_one_function_places_tensors() -> None:
    """No other file of networks or statistics moves a tensor or makes one of an array."""
    moves = re.compile(r"from_numpy\(|torch\.tensor\(|as_tensor\(|\.cuda\(\)|\.cpu\(\)")
    for room in (*ROOMS, ROOT / "studies/src/howsure_studies"):
        for path in room.rglob("*.py"):
            text = re.sub(r"(?m)^ *>>>.*$|^ *\.\.\..*$", "", path.read_text())
            assert not moves.search(text), path


def test_devices_by_name() -> None:
    there = torch.cuda.is_available()
    assert device_named("cpu") == torch.device("cpu")
    assert device_named() == device_named(None) == torch.device("cuda" if there else "cpu")
    for name in ("nowhere", "cuda:99"):
        with pytest.raises(InputError, match="device must be one that torch can use here, got"):
            device_named(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_a_gpu_that_is_missing_is_told_by_small_networks_too() -> None:
    method = method_named("deep_ensemble", epochs=1, device="cuda")
    with pytest.raises(InputError, match="got 'cuda': torch finds no GPU"):
        method.fit(np.zeros((9, 1)), np.arange(9.0), np.random.default_rng(0))


def test_the_device_of_a_method_is_checked_and_told_only_where_it_is_not_its_own() -> None:
    assert "device" not in method_spec(method_named("deep_ensemble"))["options"]
    assert method_spec(method_named("deep_ensemble", device="auto"))["options"]["device"] == "auto"
    with pytest.raises(InputError, match="device must be 'auto', 'cpu', 'cuda' or 'cuda:NUMBER'"):
        method_named("deep_ensemble", device="gpu")


def test_numbers_are_placed_and_come_back() -> None:
    still = np.arange(3.0)
    still.flags.writeable = False
    for given in (still, [0.0, 1.0, 2.0], torch.arange(3.0)):
        assert np.asarray(to_host(placed(given, dtype=torch.float64))).tolist() == [0.0, 1.0, 2.0]
    own = np.zeros(2)
    placed(own)[0] = 5.0
    assert own[0] == 5.0
    assert placed(own, "meta").device.type == "meta"
