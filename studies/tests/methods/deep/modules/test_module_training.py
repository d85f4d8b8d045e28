"""BatchTraining: phases, slopes, learning, seeds, every head, and what goes wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError, UnanswerableError  # noqa: E402
from howsure.core.progress import subscribe  # noqa: E402
from howsure_studies.methods.deep.heads import HEADS, Gaussian, Head, PairHead, head_named  # noqa: E402
from howsure_studies.methods.deep.modules import (  # noqa: E402
    ModuleNetwork,
    ModuleTraining,
    backbone_named,
    recipe_named,
    train_module,
)
from howsure_studies.methods.deep.modules.inputs import DeviceRows, augmented  # noqa: E402
from howsure_studies.methods.deep.modules.network import Net, torch_draws  # noqa: E402
from howsure_studies.methods.deep.modules.training import Loop, steps  # noqa: E402
from howsure_studies.methods.options import options_of  # noqa: E402
from howsure_studies.shift.study import ShiftOptions as ShiftOptions  # noqa: E402

TINY = {"name": "small", "widths": [4, 6]}


def images(n: int, seed: int = 0, side: int = 8, channels: int = 1) -> tuple[Any, Any]:
    """Noise with two halves of random brightness, and by how much the upper is brighter."""
    rng = np.random.default_rng(seed)
    level = np.repeat(rng.uniform(40, 200, size=(n, 2, 1, 1)), side // 2, axis=1)
    x = rng.normal(level, 20, size=(n, side, side, channels)).clip(0, 255).astype(np.uint8)
    upper, lower = x[:, : side // 2], x[:, side // 2 :]
    return x, upper.mean(axis=(1, 2, 3)) - lower.mean(axis=(1, 2, 3))


def fit(x: Any, y: Any, head: Any = "gaussian", seed: int = 0, **options: Any) -> ModuleNetwork:
    defaults: dict[str, Any] = {"backbone": TINY, "recipe": ModuleTraining.small(3)}
    return train_module(x, y, head=head, rng=np.random.default_rng(seed), **{**defaults, **options})


def loop_of(head: Head, recipe: ModuleTraining, n: int = 20, spec: Any = TINY) -> Loop:
    x, y = images(n, side=12)
    backbone = backbone_named(spec)
    inputs = DeviceRows.of(x, grey=backbone.grey)
    net = Net.of(
        backbone,
        inputs.batch(slice(0, 2)),
        outputs=head.outputs,
        shielded=head.shielded,
        hidden=recipe.hidden,
        seed=3,
    )
    return Loop(net, head, recipe, (inputs, (y - y.mean()) / y.std()), None, seed=5)


def state(loop: Loop, part: str = "") -> dict[str, Any]:
    held = loop.net.modules.state_dict()
    return {key: value.clone() for key, value in held.items() if key.startswith(part)}


def moved(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {key for key in before if not torch.equal(before[key], after[key])}


@pytest.mark.parametrize("hidden", [None, 0, 4])
@pytest.mark.parametrize(("head", "phase"), [(Gaussian(), "warm"), (Gaussian(), "full")])
def test_slopes_of_the_whole_loss_agree_with_differences(
    head: Head, phase: Any, hidden: int | None
) -> None:
    loop = loop_of(
        head,
        ModuleTraining.small(2, hidden=hidden, channels_last=False),
        n=6,
        spec={**TINY, "widths": [2, 3]},
    )
    loop.net.modules.double().train()
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(6, 1, 12, 12)))
    y = torch.tensor(rng.normal(size=6))
    loop.loss(x, y, phase).backward()
    step = 1e-6
    for parameter in loop.net.modules.parameters():
        flat = parameter.data.view(-1)
        for place in range(len(flat)):
            value = float(flat[place])
            ends = []
            for side in (step, -step):
                flat[place] = value + side
                ends.append(loop.loss(x, y, phase).item())
            flat[place] = value
            slope = 0.0 if parameter.grad is None else parameter.grad.view(-1)[place].item()
            assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-8)


def test_the_phases_follow_the_recipe() -> None:
    recipe = ModuleTraining()
    words = [recipe.phase(epoch, Gaussian()) for epoch in range(75)]
    assert words == ["warm"] * 20 + ["frozen"] * 5 + ["full"] * 50
    words = [recipe.phase(epoch, PairHead()) for epoch in range(75)]
    assert words == ["warm"] * 20 + ["full"] * 55


def test_while_frozen_heads_move_and_statistics_move_but_no_weight_of_the_backbone() -> None:
    loop = loop_of(Gaussian(), ModuleTraining(epochs=3, warm_epochs=1, frozen_epochs=1))
    first = state(loop)
    loop.epoch(0)
    second = state(loop)
    still = {"last.weight", "last.bias", "hidden.weight", "hidden.bias"}
    changed = moved(first, second)
    assert changed == set(first)  # all move; of the heads' parts, those of the mean alone
    for key in still:
        half = len(first[key]) // 2
        assert torch.equal(first[key][half:], second[key][half:])
        assert not torch.equal(first[key][:half], second[key][:half])
    loop.epoch(1)
    third = state(loop)
    changed = moved(second, third)
    statistics = {key for key in first if "running" in key or "num_batches" in key}
    assert changed == statistics | still
    half = len(first["hidden.weight"]) // 2
    assert not torch.equal(second["hidden.weight"][half:], third["hidden.weight"][half:])
    loop.epoch(2)
    assert moved(third, state(loop)) == set(first)


def test_a_step_is_adam_on_the_mean_loss() -> None:
    loop = loop_of(
        Gaussian(), ModuleTraining(epochs=1, warm_epochs=0, frozen_epochs=0, batch_size=32)
    )
    inputs, targets = loop._rows
    modules = loop.net.modules.train()
    values = [p.detach().clone() for p in modules.parameters()]
    outputs = loop.net.outputs(loop.net.body(inputs.batch(slice(None))))
    expected = 0.5 * ((targets - outputs[0]) ** 2 * torch.exp(-outputs[1]) + outputs[1])
    slopes = torch.autograd.grad(expected.mean(), list(modules.parameters()))
    found = loop.step(inputs.batch(slice(None)), targets, "full")
    assert found.item() == pytest.approx(expected.mean().item(), rel=1e-6)
    for before, after, slope in zip(values, modules.parameters(), slopes, strict=True):
        moved_by = 1e-3 * slope / (slope.abs() + 1e-8)
        torch.testing.assert_close(after.detach(), before - moved_by, rtol=0, atol=2e-5)


@pytest.mark.slow
def test_it_learns_which_half_is_brighter() -> None:
    x, y = images(300)
    new_x, new_y = images(100, seed=1)
    for head in ("gaussian", "squared_error", "pair"):
        network = fit(
            x, y, head, recipe=ModuleTraining.small(25, learning_rate=1e-2), backbone="small"
        )
        error = np.abs(network.prediction(new_x).point() - new_y).mean()
        assert error < 0.12 * np.abs(new_y - new_y.mean()).mean(), head
        assert network.losses[-1, 0] < network.losses[5, 0]
        assert network.kept == 25


def test_raw_targets_are_learnt_too() -> None:
    x, y = images(300)
    recipe = ModuleTraining(epochs=30, warm_epochs=8, frozen_epochs=2, learning_rate=1e-2)
    network = fit(x, y, recipe=recipe, backbone="small")
    assert (network.scale.y_center, network.scale.y_unit) == (0.0, 1.0)
    assert np.abs(network.prediction(x).point() - y).mean() < 0.2 * np.abs(y - y.mean()).mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*HEADS, "squared_error", "pair"])
def test_every_head_trains(name: str) -> None:
    x, y = images(120)
    counts = np.round((y - y.min()) / 10)
    network = fit(
        x, counts, name, recipe=ModuleTraining.small(25, learning_rate=1e-2, warm_start=True)
    )
    assert network.failure is None
    assert np.isfinite(network.losses[:, 0]).all()
    prediction = network.prediction(x)
    assert np.isfinite(prediction.point()).all()
    assert network.outputs(x).shape == (head_named(name).outputs, 120)
    assert np.corrcoef(prediction.point(), counts)[0, 1] > 0.8


def test_a_warm_start_is_the_law_that_ignores_x() -> None:
    x, y = images(40)
    counts = np.round(y - y.min())
    recipe = ModuleTraining.small(1, learning_rate=1e-12, warm_start=True, hidden=0)
    near = fit(x, counts, "poisson", recipe=recipe).prediction(x).point()
    assert np.abs(near / counts.mean() - 1).max() < 1.0
    cold = fit(x, counts, "poisson", recipe=ModuleTraining.small(1, learning_rate=1e-12, hidden=0))
    assert cold.prediction(x).point().max() < 10


def test_one_seed_gives_one_network_and_leaves_no_trace() -> None:
    x, y = images(50)
    before = torch.get_rng_state(), torch.get_num_threads()
    numpy_before = np.random.get_state()[1].copy()  # noqa: NPY002
    one, same, other = (fit(x, y, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert torch.get_num_threads() == before[1]
    assert (np.random.get_state()[1] == numpy_before).all()  # noqa: NPY002
    assert one.to_bytes() == same.to_bytes()
    assert not np.array_equal(one.outputs(x), other.outputs(x))


def test_modules_that_draw_are_seeded_too() -> None:
    def dropping(channels: int) -> Any:
        nn = torch.nn
        return nn.Sequential(nn.Linear(channels, 8), nn.Dropout(0.5), nn.ReLU())

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    found = []
    for noise in (1, 2):
        torch.manual_seed(noise)
        found.append(fit(x, y, backbone=dropping).outputs(x))
    np.testing.assert_array_equal(*found)


def test_tables_and_other_shapes_pass_through_modules_of_ones_own() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = 5.0 + 2.0 * x[:, 0]

    def body(columns: int) -> Any:
        return torch.nn.Sequential(torch.nn.Linear(columns, 16), torch.nn.Tanh())

    network = fit(x, y, backbone=body, recipe=ModuleTraining.small(40, learning_rate=1e-2))
    assert np.abs(network.prediction(x).point() - y).mean() < 0.2
    series = rng.normal(size=(30, 4, 10))
    network = fit(
        series,
        series.mean(axis=(1, 2)),
        backbone=lambda c: torch.nn.Sequential(torch.nn.Conv1d(c, 3, 3), torch.nn.Flatten()),
    )
    assert network.features(series).shape == (30, 24)


def test_images_of_floats_need_no_scaling() -> None:
    x, y = images(40, channels=8)
    with pytest.raises(InputError, match="8-bit with 1 or 3 channels"):
        fit(x, y)
    network = fit(x / 255.0, y, scaling="none")
    assert network.prediction(x / 255.0).point().shape == (40,)


def test_the_last_single_row_joins_the_step_before() -> None:
    assert steps(33, 32) == [(0, 33)]
    assert steps(34, 32) == [(0, 32), (32, 34)]
    assert steps(2, 32) == [(0, 2)]
    assert steps(65, 32) == [(0, 32), (32, 65)]
    x, y = images(33, side=4)  # one place is left after two strides: a lone row has no variance
    assert fit(x, y).failure is None


def test_the_best_epoch_on_rows_held_out_is_kept() -> None:
    x, y = images(60)
    held = images(20, seed=1)
    recipe = ModuleTraining.small(12, learning_rate=5e-2, schedule="constant", keep="best")
    network = fit(x, y, recipe=recipe, held=held)
    losses = network.losses[:, 1]
    assert network.kept == int(np.argmin(losses)) + 1
    outputs = torch.tensor(network.outputs(held[0]))
    targets = torch.tensor(network.scale.targets(held[1]))
    own = float(Gaussian().loss(outputs, targets).mean())
    assert own == pytest.approx(losses.min(), rel=1e-4)
    last = fit(
        x, y, recipe=ModuleTraining.small(12, learning_rate=5e-2, schedule="constant"), held=held
    )
    np.testing.assert_array_equal(last.losses, network.losses)
    with pytest.raises(InputError, match="keep must be 'last'"):
        fit(x, y, recipe=recipe)


def test_a_loss_that_is_not_finite_says_where_and_keeps_the_last_good_state() -> None:
    x, y = images(40)
    good = fit(x, y, recipe=ModuleTraining.small(4, schedule="constant"))

    class Bomb(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.calls = inner, 0

        def forward(self, x: Any) -> Any:
            self.calls += self.training
            return self.inner(x) * (float("nan") if self.calls > 4 * 2 + 1 else 1.0)

    def exploding(channels: int) -> Any:
        return Bomb(backbone_named(TINY).make(channels))

    seen = []
    recipe = ModuleTraining.small(9, schedule="constant", warm_epochs=0)
    with subscribe(lambda *told: seen.append(told)):
        network = fit(x, y, backbone=exploding, recipe=recipe)
    assert network.failure == "loss not finite in epoch 5, step 2 of 2"
    assert network.kept == 4
    assert len(network.losses) == 5
    assert seen[-1] == ("epochs", 5, 9)
    assert np.isfinite(network.net.modules["last"].weight.detach().numpy()).all()
    assert good.failure is None


def test_huge_targets_fail_at_once_and_are_not_asked() -> None:
    x, y = images(20)
    network = fit(x, y * 1e30, recipe=ModuleTraining.small(3, standardise=False))
    assert network.failure == "loss not finite in epoch 1, step 1 of 1"
    assert network.kept == 0
    with pytest.raises(UnanswerableError, match="never trained: loss not finite in epoch 1"):
        network.prediction(x)


def test_constant_targets_are_believed() -> None:
    x, _ = images(40)
    network = fit(x, np.full(40, 7.0), recipe=ModuleTraining.small(20, learning_rate=1e-2))
    assert (network.scale.y_center, network.scale.y_unit) == (7.0, 1.0)
    assert np.abs(network.prediction(x).point() - 7.0).max() < 0.5


def test_rounded_products_and_other_layouts_learn_alike() -> None:
    x, y = images(200)
    errors = []
    for options in ({}, {"precision": "bfloat16"}, {"channels_last": False}, {"weight_decay": 0.1}):
        recipe = ModuleTraining.small(15, learning_rate=1e-2, **options)
        network = fit(x, y, recipe=recipe)
        errors.append(np.abs(network.prediction(x).point() - y).mean())
        assert network.features(x).dtype == np.float64
    assert max(errors) < 0.3 * np.abs(y - y.mean()).mean()
    assert len(set(errors)) > 2


def test_a_grey_image_as_one_channel_or_three() -> None:
    x, y = images(30)
    assert fit(x, y).net.body[0].weight.shape[1] == 1
    assert fit(x, y, backbone={**TINY, "grey": False}).net.body[0].weight.shape[1] == 3
    colours = np.repeat(x, 3, axis=3)
    assert fit(colours, y).net.body[0].weight.shape[1] == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"x": np.zeros((40, 8, 8))}, None),
        ({"x": np.zeros((39, 8, 8, 1), np.uint8)}, "39 rows"),
        ({"x": np.zeros((40, 8, 8, 1))}, "8-bit"),
        ({"x": np.zeros((40, 8, 8, 2), np.uint8)}, "1 or 3 channels"),
        ({"x": np.full((40, 5), np.nan)}, "finite"),
        ({"x": np.full((40, 5), 1e39)}, "32 bits"),
        ({"x": np.zeros(40)}, "at least one number"),
        ({"x": np.zeros((40, 0))}, "at least one number"),
        ({"x": np.full((40, 3), "a")}, "real numbers"),
        ({"x": np.full((40, 3), 1j)}, "real numbers"),
        ({"y": np.full(40, np.nan)}, "y must contain finite"),
        ({"y": np.zeros((40, 2))}, "y must have one dimension"),
        ({"y": np.full(40, 0.5), "head": "poisson"}, "counts"),
        ({"y": np.full(40, 1e308) * np.array([1, -1] * 20)}, "y must be small enough"),
        ({"head": "gaus"}, "gaussian"),
        ({"scaling": "half"}, "scaling"),
        ({"recipe": "large"}, "recipe"),
        ({"recipe": {"epoch": 3}}, "epoch"),
        ({"recipe": 3}, "recipe"),
        ({"held": (np.zeros((3, 9, 9, 1), np.uint8), np.zeros(3))}, "held must have rows of shape"),
        ({"held": (np.zeros((3, 8, 8, 1), np.uint8), np.zeros(4))}, "held y"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], words: str | None) -> None:
    x, y = images(40)
    given: dict[str, Any] = {"x": x, "y": y, "head": "gaussian", **change}
    with pytest.raises(InputError, match=words):
        fit(given.pop("x"), given.pop("y"), given.pop("head"), **given)


def test_one_row_is_too_few() -> None:
    x, y = images(1)
    with pytest.raises(InputError, match="at least 2 rows"):
        fit(x, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epochs": 0}, "epochs"),
        ({"epochs": 10}, "leave epochs"),
        ({"batch_size": 1}, "batch_size"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"learning_rate": float("nan")}, "learning_rate"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"schedule": "line"}, "schedule"),
        ({"keep": "first"}, "keep"),
        ({"precision": "float16"}, "precision"),
        ({"device": "tpu"}, "device"),
        ({"hidden": -1}, "hidden"),
        ({"warm_epochs": 2.0}, "warm_epochs"),
    ],
)
def test_recipes_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ModuleTraining(**options)


def test_recipes_by_name() -> None:
    assert recipe_named("shift") == ModuleTraining() == recipe_named({})
    assert recipe_named({"name": "small", "epochs": 10}) == ModuleTraining.small(10)
    assert recipe_named({"epochs": 80}).epochs == 80
    assert ModuleTraining.small(40, standardise=False).standardise is False


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_a_missing_gpu_is_told() -> None:
    x, y = images(10)
    with pytest.raises(InputError, match="no GPU"):
        fit(x, y, recipe=ModuleTraining.small(1, device="cuda"))


def pictures(n: int, side: int = 16) -> Any:
    """Images of noise, in which every window is unlike every other."""
    return torch.tensor(np.random.default_rng(4).normal(size=(n, 3, side, side + 3)))


def drawn(x: Any, *kinds: Any, seed: int = 0) -> np.ndarray:
    with torch_draws(seed):
        return np.asarray(augmented(x, kinds))


def test_half_of_the_images_are_mirrored() -> None:
    x = pictures(400, side=4)
    seen = drawn(x, "flip")
    mirrored = (seen == np.asarray(x)[..., ::-1]).all(axis=(1, 2, 3))
    assert (mirrored | (seen == np.asarray(x)).all(axis=(1, 2, 3))).all()
    assert 160 <= mirrored.sum() <= 240  # 4 sd of a fair coin
    np.testing.assert_array_equal(drawn(x, "flip"), seen)
    assert (drawn(x, "flip", seed=1) != seen).any()


@pytest.mark.parametrize(("side", "most"), [(16, (2, 2)), (4, (1, 1)), (1, (0, 1))])
def test_images_are_shifted_and_mirrored_in_at_their_edges(side: int, most: Any) -> None:
    x = pictures(200, side)
    down, along = most
    seen = set()
    wide = np.pad(x, ((0, 0), (0, 0), (down, down), (along, along)), mode="reflect")
    for row, image in enumerate(drawn(x, "crop")):
        found = [
            (i, j)
            for i in range(2 * down + 1)
            for j in range(2 * along + 1)
            if np.array_equal(wide[row, :, i : i + side, j : j + side + 3], image)
        ]
        seen |= {*found}
        assert found
    assert len(seen) == (2 * down + 1) * (2 * along + 1)  # each shift occurs


def test_augmented_images_keep_their_layout_and_place() -> None:
    for layout in (torch.channels_last, torch.contiguous_format):
        x = pictures(3).contiguous(memory_format=layout)
        assert augmented(x, ("flip", "crop")).is_contiguous(memory_format=layout)
    assert augmented(pictures(3).to("meta"), ("flip", "crop")).device.type == "meta"


def test_a_network_that_saw_images_mirrored_knows_them_mirrored() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 40, size=(200, 12, 12, 1), dtype=np.uint8)
    size = rng.integers(1, 6, size=200)
    for row, count in enumerate(size):
        x[row, 3 : 3 + count, 1:4] = 250  # all on the left
    recipe = ModuleTraining.small(25, frozen_epochs=0, warm_epochs=5)

    def dense(channels: int) -> Any:
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(432, 32), torch.nn.ReLU())

    errors = {}
    for kinds in ((), ("flip",)):
        own = replace(recipe, augment=kinds)
        network = fit(x[:150], size[:150], recipe=own, backbone=dense)
        errors[kinds] = np.abs(network.prediction(x[150:, :, ::-1]).point() - size[150:]).mean()
    assert errors["flip",] < 0.5 * errors[()]


def test_augmented_training_is_the_same_again_and_another_than_plain() -> None:
    x, y = images(20)
    recipe = ModuleTraining.small(2, augment=["flip", "crop"])
    first, again, plain = (
        fit(x, y, recipe=each).prediction(x).point()
        for each in (recipe, recipe, ModuleTraining.small(2))
    )
    np.testing.assert_array_equal(first, again)
    assert (first != plain).any()


def test_rows_that_are_no_images_are_not_augmented() -> None:
    x = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(InputError, match="augment must be empty where x are no images"):
        fit(x, x[:, 0], recipe=ModuleTraining.small(2, augment=("flip",)), backbone="mlp")
    with pytest.raises(InputError, match="augment"):
        ModuleTraining(augment=("turn",))  # type: ignore[arg-type]


def test_a_recipe_without_augmentation_is_written_as_before() -> None:
    """So addresses of stored results stay, and files of trainings under way are read."""
    assert "augment" not in options_of(ModuleTraining(), "recipe")
    assert options_of(ModuleTraining(augment=("flip",)), "recipe")["augment"] == ["flip"]
    assert "augment" not in ShiftOptions().training(images=True, spectral=False)["recipe"]
