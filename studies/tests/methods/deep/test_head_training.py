"""BatchTraining with heads: schedules, states kept, divergence, and what is learnt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError, UnanswerableError  # noqa: E402
from howsure.predictions import Prediction  # noqa: E402
from howsure_studies.methods.deep.batch import Member, Network, outputs, train  # noqa: E402
from howsure_studies.methods.deep.heads import (  # noqa: E402
    HEADS,
    DoublePoissonHead,
    FaithfulGaussian,
    Gaussian,
    Head,
    NegativeBinomialHead,
    PoissonHead,
    SquaredError,
    head_named,
)
from howsure_studies.methods.deep.mlp import BatchedMLP, Bernoulli  # noqa: E402
from howsure_studies.methods.deep.networks import HeadNetwork  # noqa: E402
from howsure_studies.methods.deep.training import BatchTraining  # noqa: E402

COUNTS = ("poisson", "negative_binomial", "double_poisson")
FULL = BatchTraining(
    layers=(7, 5),
    epochs=6,
    batch_size=16,
    weight_decay=0.1,
    learning_rate=0.02,
    schedule="cosine",
    keep="best",
    initial="torch",
)


def rows(n: int = 50, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, rng.poisson(np.exp(1.0 + x[:, 0])).astype(float)


def members(count: int) -> list[Member]:
    x, y = rows()
    held = rows(20, seed=1)
    return [Member(x, y, seed=5, index=k, resample=k, held=held) for k in range(count)]


def prediction(head: Head, network: Network, x: np.ndarray) -> Any:
    return head.prediction(outputs([network], x)[0], network.scale.y_center, network.scale.y_unit)


def alone(
    member: Member, head: Head, options: BatchTraining
) -> tuple[list[np.ndarray], list[float]]:
    """One plain network, by torch's own layers, AdamW and schedule; the best state is kept."""
    x, y = member.rows()
    assert member.held is not None
    center, unit = (y.mean(), y.std()) if head.standardises else (0.0, 1.0)
    scaled = [
        (
            torch.tensor((a - x.mean(0)) / x.std(0), dtype=torch.float32),
            torch.tensor((b - center) / unit, dtype=torch.float32),
        )
        for a, b in ((x, y), member.held)
    ]
    start = head.start((y - center) / unit)
    sizes = [x.shape[1], *options.layers, head.outputs]
    layers = [torch.nn.Linear(i, o) for i, o in pairwise(sizes)]
    first, order = member.rng("weights"), member.rng("order")
    with torch.no_grad():
        for part in ("weight", "bias"):
            for layer in layers:
                tensor, limit = getattr(layer, part), 1 / np.sqrt(layer.in_features)
                tensor.copy_(torch.tensor(first.uniform(-limit, limit, tensor.shape)))

    def outs(z: Any) -> Any:
        for layer in layers[:-1]:
            z = layer(z).relu()
        return torch.tensor(start.offset)[:, None] + torch.tensor(start.unit)[:, None] * (
            layers[-1](z).T
        )

    parameters = [p for layer in layers for p in layer.parameters()]
    adam = torch.optim.AdamW(
        parameters, lr=options.learning_rate, weight_decay=options.weight_decay
    )
    pace = torch.optim.lr_scheduler.CosineAnnealingLR(adam, options.epochs)
    found, states = [], []
    for _ in range(options.epochs):
        for batch in torch.tensor(order.permutation(len(y))).split(options.batch_size):
            adam.zero_grad()
            head.loss(outs(scaled[0][0][batch]), scaled[0][1][batch]).mean().backward()
            adam.step()
        pace.step()
        with torch.no_grad():
            found.append(float(head.loss(outs(scaled[1][0]), scaled[1][1]).mean()))
        states.append([p.detach().clone().numpy() for p in parameters])
    return states[int(np.argmin(found))], found


@pytest.mark.parametrize("name", ["gaussian", "double_poisson", "negative_binomial", "mixture"])
def test_members_equal_lone_training(name: str) -> None:
    head = head_named(name)
    state = torch.get_rng_state()
    for member, network in zip(members(3), train(members(3), head, FULL), strict=True):
        best, found = alone(member, head, FULL)
        np.testing.assert_allclose(network.losses[:, 1], found, rtol=2e-3, atol=1e-4)
        assert network.kept == int(np.argmin(found)) + 1
        start = head.start(network.scale.targets(member.rows()[1]))
        unit, offset = np.array(start.unit), np.array(start.offset)
        for layer in range(3):
            kernel, bias = best[2 * layer : 2 * layer + 2]
            if layer == 2:
                kernel, bias = unit[:, None] * kernel, offset + unit * bias
            np.testing.assert_allclose(network.kernels[layer], kernel, rtol=1e-3, atol=2e-4)
            np.testing.assert_allclose(network.biases[layer], bias, rtol=1e-3, atol=2e-4)
    torch.set_rng_state(state)


def same(one: Network, other: Network) -> bool:
    pairs = zip((*one.kernels, *one.biases), (*other.kernels, *other.biases), strict=True)
    return one.kept == other.kept and all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in pairs)


def test_heads_of_one_shape_train_side_by_side_and_change_nothing() -> None:
    heads = [head_named(name) for name in HEADS]
    kinds = [heads[k % len(heads)] for k in range(2 * len(heads))]
    ours = members(len(kinds))
    together = train(ours, kinds, FULL)
    for member, head, network in zip(ours, kinds, together, strict=True):
        assert same(network, train([member], head, FULL)[0]), head.title
    with pytest.raises(InputError, match="one for each of 20, got 3"):
        train(ours, kinds[:3], FULL)


def test_the_faithful_variance_sends_no_gradient_into_the_body() -> None:
    """The hidden layers are those that squared error alone would train."""
    ours, plain = members(2), replace(FULL, keep="last", initial="glorot", weight_decay=0.0)
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.normal(size=(1, 3, 8)), dtype=torch.float32)
    y = torch.tensor(rng.normal(size=(1, 8)), dtype=torch.float32)
    body = BatchedMLP((3, 6, 5, 2), [np.random.default_rng(0)], shielded=1)
    out = body.forward(x).requires_grad_()
    (slope,) = torch.autograd.grad(FaithfulGaussian().loss(out, y).mean(), out)
    body.backward(slope)
    leaves = [v.clone().requires_grad_() for v in (*body.kernels, *body.biases)]
    h = x[0]
    for kernel, bias in zip(leaves[:2], leaves[3:5], strict=True):
        h = (kernel[0] @ h + bias[0]).relu()
    mean = leaves[2][0, :1] @ h + leaves[5][0, :1]
    spread = leaves[2][0, 1:] @ h.detach() + leaves[5][0, 1:]
    FaithfulGaussian().loss(torch.cat([mean, spread]), y[0]).mean().backward()
    for ours_, leaf in zip((*body.kernel_gradients, *body.bias_gradients), leaves, strict=True):
        np.testing.assert_allclose(ours_, leaf.grad, rtol=1e-4, atol=1e-6)
    unshielded = BatchedMLP((3, 6, 5, 2), [np.random.default_rng(0)])
    unshielded.forward(x)
    unshielded.backward(slope)
    assert not torch.allclose(unshielded.kernel_gradients[0], body.kernel_gradients[0])
    assert all(n.failure is None for n in train(ours, FaithfulGaussian(), plain))


def test_the_learning_rate_falls_along_half_a_wave() -> None:
    options = BatchTraining(epochs=4, learning_rate=0.8, schedule="cosine")
    found = [options.learning_rate_at(epoch) for epoch in range(4)]
    np.testing.assert_allclose(found, 0.4 * (1 + np.cos(np.pi * np.arange(4) / 4)))
    assert BatchTraining(learning_rate=0.8).learning_rate_at(70) == 0.8


def test_losses_are_told_with_and_without_rows_held_out() -> None:
    member = members(1)[0]
    options = replace(FULL, keep="last")
    held, bare = (
        train([one], PoissonHead(), options)[0] for one in (member, replace(member, held=None))
    )
    assert held.kept == bare.kept == 6
    np.testing.assert_array_equal(held.losses[:, 0], bare.losses[:, 0])
    assert np.isfinite(held.losses).all()
    assert np.isnan(bare.losses[:, 1]).all()
    best = train([member], PoissonHead(), FULL)[0]
    assert best.kept == int(np.argmin(best.losses[:, 1])) + 1
    with pytest.raises(InputError, match="keep must be 'last'"):
        train([replace(member, held=None)], PoissonHead(), FULL)
    with pytest.raises(InputError, match="held must be left out beside dropout"):
        train([member], Gaussian(), options, Bernoulli(0.1))


class Fragile(Head):
    """Squared error that breaks once the forecast of any row passes a bound."""

    title: ClassVar[str] = "fragile"
    standardises: ClassVar[bool] = False

    @property
    def outputs(self) -> int:
        return 1

    def loss(self, outputs: Any, y: Any) -> Any:
        mean = outputs[..., 0, :]
        return (y - mean).square() / (mean < 2.0)

    def prediction(self, outputs: np.ndarray, center: float, unit: float) -> Prediction:
        return SquaredError(1.0).prediction(outputs, center, unit)


def test_a_diverging_network_stops_says_where_and_keeps_its_last_good_state() -> None:
    x = np.ones((64, 1))
    options = BatchTraining(layers=(8,), epochs=400, batch_size=16, learning_rate=0.01)
    bad, good = Member(x, np.full(64, 5.0), seed=0), Member(x, np.full(64, 1.0), seed=0)
    failed, fine = train([bad, good], Fragile(), options)
    assert failed.failure is not None
    epoch = failed.kept + 1
    assert failed.failure.startswith(f"loss not finite in epoch {epoch}, step ")
    assert failed.failure.endswith(" of 4")
    assert 1 < epoch < 400
    expected = train([bad], Fragile(), replace(options, epochs=failed.kept))[0]
    assert expected.failure is None
    assert same(failed, expected)
    assert outputs([failed], x)[0].max() < 2.0
    assert (fine.failure, fine.kept) == (None, 400)
    lone = train([bad], Fragile(), options)[0]
    assert lone.failure == failed.failure
    assert len(lone.losses) == epoch  # it stopped there
    assert np.isfinite(lone.losses[:-1, 0]).all()


def test_a_network_that_fails_at_once_is_as_it_began() -> None:
    x, _ = rows()
    network = train([Member(x, np.full(50, 1e30), seed=0)], Fragile(), BatchTraining(layers=(4,)))[
        0
    ]
    assert network.failure == "loss not finite in epoch 1, step 1 of 2"
    assert network.kept == 0
    assert all(np.isfinite(kernel).all() for kernel in network.kernels)


def wave(n: int, draw: Callable[..., Any], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, size=(n, 1))
    return x, np.asarray(draw(rng, x[:, 0]), dtype=float)


QUICK: dict[str, Any] = {
    "layers": (32, 32),
    "epochs": 40,
    "batch_size": 64,
    "learning_rate": 5e-3,
    "validation": 0.2,
}


def learnt(head: Any, data: tuple[np.ndarray, np.ndarray], x: np.ndarray, **more: Any) -> Any:
    method = HeadNetwork(head=head, **{**QUICK, **more})
    return method.fit(*data, np.random.default_rng(0)).predict(x).outcome


GRID = np.linspace(-0.8, 0.8, 9)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(HEADS) - set(COUNTS)))
def test_normal_data_give_their_mean_and_sd_back(name: str) -> None:
    data = wave(2800, lambda rng, x: 50 + 20 * x + (2 + 4 * (x > 0)) * rng.normal(size=len(x)))
    found = learnt(name, data, GRID)
    sd = np.where(GRID[:, 0] > 0, 6.0, 2.0)
    lower, upper = found.interval(0.8)
    np.testing.assert_allclose(found.point(), 50 + 20 * GRID[:, 0], atol=1.5)
    clear = np.abs(GRID[:, 0]) > 0.3
    loose = 0.5 if name == "faithful_gaussian" else 0.3  # features serve its mean alone
    np.testing.assert_allclose((upper - lower)[clear], (2 * 1.2816 * sd)[clear], rtol=loose)


@pytest.mark.rate
def test_counts_give_their_parameters_back() -> None:
    mean = np.exp(2.0 + GRID[:, 0])

    def poisson(rng: np.random.Generator, x: np.ndarray) -> Any:
        return rng.poisson(np.exp(2.0 + x))

    def negative_binomial(rng: np.random.Generator, x: np.ndarray) -> Any:
        return rng.poisson(np.exp(2.0 + x) * rng.gamma(2.0, 0.5, len(x)))

    def binomial(rng: np.random.Generator, x: np.ndarray) -> Any:
        """Variance half of the mean, which no mixture of Poisson laws has."""
        return rng.binomial(np.round(2 * np.exp(2.0 + x)).astype(int), 0.5)

    found = learnt("poisson", wave(4000, poisson), GRID)
    np.testing.assert_allclose(found.parameters["mu"], mean, rtol=0.1)
    found = learnt("negative_binomial", wave(4000, negative_binomial), GRID)
    np.testing.assert_allclose(found.parameters["mu"], mean, rtol=0.15)
    assert np.median(found.parameters["dispersion"]) == pytest.approx(0.5, rel=0.2)
    found = learnt("double_poisson", wave(4000, binomial), GRID)
    np.testing.assert_allclose(found.parameters["mu"], mean, rtol=0.1)
    assert np.median(found.parameters["phi"]) == pytest.approx(2.0, rel=0.15)
    found = learnt("double_poisson", wave(4000, poisson), GRID)
    assert np.median(found.parameters["phi"]) == pytest.approx(1.0, rel=0.15)


@pytest.mark.slow
def test_student_t_finds_heavy_tails() -> None:
    def draw(rng: np.random.Generator, x: np.ndarray) -> Any:
        return 3 * x + rng.standard_t(3, size=len(x))

    found = learnt("student_t", wave(3000, draw), GRID, epochs=80)
    assert np.median(found.parameters["df"]) == pytest.approx(3.0, abs=1.0)
    assert np.median(found.parameters["scale"]) == pytest.approx(1.0, rel=0.15)


def test_mixtures_find_two_modes() -> None:
    def draw(rng: np.random.Generator, x: np.ndarray) -> Any:
        return rng.choice([-1.0, 1.0], len(x)) * (5 + 2 * x) + 0.3 * rng.normal(size=len(x))

    found = learnt({"name": "mixture", "components": 2}, wave(1200, draw), GRID)
    first = found.parameters["weight_1"]
    means = np.sort([found.parameters["loc_1"], found.parameters["loc_2"]], axis=0)
    np.testing.assert_allclose(first, 0.5, atol=0.12)
    np.testing.assert_allclose(means[1], 5 + 2 * GRID[:, 0], atol=0.4)
    np.testing.assert_allclose(means[0], -5 - 2 * GRID[:, 0], atol=0.4)


@pytest.mark.parametrize("name", COUNTS)
def test_targets_of_a_billion(name: str) -> None:
    data = wave(600, lambda rng, x: rng.poisson(1e9 * np.exp(0.3 * x)))
    found = learnt(name, data, GRID, epochs=40)
    np.testing.assert_allclose(found.point(), 1e9 * np.exp(0.3 * GRID[:, 0]), rtol=0.05)
    assert (found.sd() > 1e3).all()
    assert np.isfinite(found.log_density(np.round(found.point()))).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("level", [1e4, 1e6, 1e9])
def test_large_counts_that_hardly_differ(name: str, level: float) -> None:
    """First weights scatter log means by per cents, where a Poisson law is 3e-5 wide; a negative
    binomial law is wider by its least dispersion of 1e-5."""
    data = wave(600, lambda rng, x: rng.poisson(level, len(x)))
    found = learnt(name, data, GRID)
    truth = -0.5 * np.log(2 * np.pi * level)  # of a Poisson law at its mean
    if name == "negative_binomial":
        truth -= 0.5 * np.log1p(1e-5 * level)
    assert found.log_density(np.full(9, level)).min() > truth - 0.1
    assert np.abs(found.point() - level).max() < 0.2 * found.sd().min()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(HEADS) - set(COUNTS)))
def test_targets_near_a_billion_keep_their_differences(name: str) -> None:
    """An offset of 1e9 times the differences leaves of them what standardisation leaves."""
    data = wave(1200, lambda rng, x: 1e9 + 3.0 * x + rng.normal(size=len(x)))
    found = learnt(name, data, GRID)
    np.testing.assert_allclose(found.point() - 1e9, 3.0 * GRID[:, 0], atol=0.5)
    lower, upper = found.interval(0.8)
    np.testing.assert_allclose(upper - lower, 2 * 1.2816, rtol=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("name", HEADS)
def test_targets_of_zero(name: str) -> None:
    found = learnt(name, (wave(60, lambda rng, x: x)[0], np.zeros(60)), GRID, epochs=100)
    assert (np.abs(found.point()) < 0.1).all()
    lower, upper = found.interval(0.9)
    assert (np.abs([lower, upper]) < 1.5).all()  # 1.64 is where they set out from
    if name in COUNTS:
        assert (found.cdf(np.zeros(9)) > 0.9).all()


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("bad", [-1.0, 2.5])
def test_what_is_no_count_is_refused(name: str, bad: float) -> None:
    x, y = rows()
    y[[7, 20]] = bad
    with pytest.raises(InputError, match=rf"y must contain counts .* got 2 .* row 7: {bad:g}"):
        HeadNetwork(head=name, **QUICK).fit(x, y, np.random.default_rng(0))
    good = rows()
    with pytest.raises(InputError, match="y must contain counts"):
        HeadNetwork(head=name).fit_beside(good, (x, y), np.random.default_rng(0))


def test_a_failed_network_gives_no_number_as_a_method() -> None:
    x, y = rows(n=40)[0], np.full(40, 1e30)
    method = HeadNetwork(head=Fragile(), layers=(4,), epochs=2)
    with pytest.raises(UnanswerableError, match=r"loss not finite in epoch 1, step 1 of 2"):
        method.fit(x, y, np.random.default_rng(0)).predict(x)


def test_starts_may_be_cold() -> None:
    x, y = rows()
    y = y * 1e3 + 1e6
    warm, cold = (
        train(
            [Member(x, y, seed=0)],
            DoublePoissonHead(),
            BatchTraining(layers=(4,), epochs=1, warm_start=w),
        )[0]
        for w in (True, False)
    )
    assert prediction(DoublePoissonHead(), warm, x).point().mean() == pytest.approx(1e6, rel=0.2)
    assert prediction(DoublePoissonHead(), cold, x).point().mean() < 100.0
    raw = train([Member(x, y, seed=0)], Gaussian(), BatchTraining(epochs=1, standardise=False))[0]
    assert (raw.scale.y_center, raw.scale.y_unit) == (0.0, 1.0)
    np.testing.assert_array_equal(raw.scale.x_unit, 1.0)
    assert NegativeBinomialHead().start(y).unit[0] == pytest.approx(y.std(), rel=1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weight_decay": -1.0}, "weight_decay must be"),
        ({"schedule": "linear"}, "schedule must be one of constant, cosine"),
        ({"keep": "first"}, "keep must be one of"),
        ({"initial": "zero"}, "initial must be one of"),
    ],
)
def test_bad_training_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        BatchTraining(**options)
