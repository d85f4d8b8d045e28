"""BatchTraining that stops half-way goes on as if it never had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import HowsureError, InputError  # noqa: E402
from howsure.core.progress import subscribe  # noqa: E402
from howsure_studies.methods.deep.modules import ModuleNetwork, ModuleTraining, train_module  # noqa: E402
from howsure_studies.methods.deep.modules.network import packed, unpacked  # noqa: E402

RECIPE = ModuleTraining.small(10, warm_epochs=3, frozen_epochs=2)


class KilledError(RuntimeError):
    pass


def data(seed: int = 0, n: int = 40) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, size=(n, 8, 8, 1), dtype=np.uint8)
    return x, x.mean(axis=(1, 2, 3))


def fit(
    path: Path | None, *, stop: int | None = None, seed: int = 0, **options: Any
) -> ModuleNetwork:
    x, y = options.pop("data", data())

    def told(stage: str, done: int, total: int) -> None:
        if done == stop:
            raise KilledError

    chosen: dict[str, Any] = {
        "head": "gaussian",
        "backbone": {"name": "small", "widths": [4, 6]},
        "recipe": RECIPE,
        "every": 0.0,
        **options,
    }
    rng = np.random.default_rng(seed)
    with subscribe(told):
        return train_module(x, y, rng=rng, checkpoint=path, **chosen)


@pytest.mark.parametrize("stop", [1, 4, 7])
@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_resumed_training_is_as_an_unbroken_one(tmp_path: Path, stop: int, keep: Any) -> None:
    path = tmp_path / "training"
    recipe = ModuleTraining.small(10, warm_epochs=3, frozen_epochs=2, keep=keep, weight_decay=0.01)
    options: dict[str, Any] = {"recipe": recipe, "held": data(1, 20)}
    whole = fit(None, **options)
    with pytest.raises(KilledError):
        fit(path, stop=stop, **options)
    seen = []
    x, y = data()
    with subscribe(lambda *told: seen.append(told[1])):
        resumed = train_module(
            x,
            y,
            head="gaussian",
            backbone={"name": "small", "widths": [4, 6]},
            rng=np.random.default_rng(0),
            checkpoint=path,
            **options,
        )
    assert seen == list(range(stop + 1, 11))
    assert resumed.to_bytes() == whole.to_bytes()


def test_bounded_convolutions_and_dropped_units_resume_too(tmp_path: Path) -> None:
    def body(channels: int) -> Any:
        nn = torch.nn
        return nn.Sequential(nn.Conv2d(channels, 3, 3), nn.Dropout(0.3), nn.Flatten())

    for k, backbone in enumerate((body, {"name": "small", "widths": [4], "spectral": 0.5})):
        path = tmp_path / f"{k}"
        whole = fit(None, backbone=backbone)
        with pytest.raises(KilledError):
            fit(path, stop=5, backbone=backbone)
        assert fit(path, backbone=backbone).to_bytes() == whole.to_bytes()


def test_a_finished_training_is_read_back_without_a_step(tmp_path: Path) -> None:
    path = tmp_path / "training"
    whole = fit(path, every=1e9)
    again = fit(path, stop=1, every=1e9)
    assert again.to_bytes() == whole.to_bytes()


def test_saves_wait_their_time(tmp_path: Path) -> None:
    path = tmp_path / "training"
    with pytest.raises(KilledError):
        fit(path, stop=9, every=1e9)
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "training"
    x, y = data()
    options: dict[str, Any] = {"data": (x, y * 1e30), "recipe": ModuleTraining(epochs=30)}
    first = fit(path, **options)
    again = fit(path, stop=1, **options)
    assert first.failure == again.failure == "loss not finite in epoch 1, step 1 of 2"


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"data": data(3)},
        {"head": "squared_error"},
        {"recipe": ModuleTraining.small(11)},
        {"backbone": {"name": "small", "widths": [4, 7]}},
        {"held": data(1, 5)},
    ],
)
def test_a_checkpoint_of_another_training_is_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "training"
    fit(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="of this training"):
        fit(path, **change)
    assert path.read_bytes() == before


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "training"
    fit(path)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (b"", b"PK", whole[:-1], whole[: len(whole) // 2], whole + b"x", bytes(flipped)):
        path.write_bytes(damaged)
        with pytest.raises(HowsureError, match=r"checkpoint .*training"):
            fit(path)


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        fit(tmp_path)
    with pytest.raises(InputError, match="folder"):
        fit(tmp_path / "nowhere" / "training")
    with pytest.raises(InputError, match="every"):
        fit(tmp_path / "training", every=float("nan"))


def test_packed_content_comes_back() -> None:
    content = {"a": torch.arange(3), "b": [1.5, None, "c"]}
    found = unpacked(packed(content), "data")
    assert torch.equal(found["a"], content["a"])
    assert found["b"] == content["b"]
