"""Networks trained as one are the networks trained alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.predictions import Prediction  # noqa: E402
from howsure_studies.methods.deep.batch import Member, Network, outputs, train  # noqa: E402
from howsure_studies.methods.deep.heads import Gaussian, Head, QuantileHead, SquaredError  # noqa: E402
from howsure_studies.methods.deep.mlp import BatchedMLP, Bernoulli, Concrete, Dropout  # noqa: E402
from howsure_studies.methods.deep.training import BatchTraining  # noqa: E402

SMALL = BatchTraining(layers=(7, 5), epochs=4, batch_size=16)


def rows(n: int = 50, d: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = 3.0 + rng.normal(size=(n, d))
    return x, 10.0 + x[:, 0] ** 2 + rng.normal(size=n)


def members(count: int, n: int = 50, d: int = 2) -> list[Member]:
    x, y = rows(n, d)
    return [Member(x, y, seed=5, index=k, resample=k) for k in range(count)]


def pinball(o: Any, y: Any) -> Any:
    losses = [
        torch.maximum(t * (y - o[:, k]), (t - 1) * (y - o[:, k])) for k, t in enumerate((0.1, 0.9))
    ]
    return (losses[0] + losses[1]).mean()


LOSSES: dict[str, tuple[Head, Any]] = {
    "squared error": (SquaredError(), lambda o, y: torch.nn.functional.mse_loss(o[:, 0], y)),
    "Gaussian": (
        Gaussian(),
        lambda o, y: torch.nn.functional.gaussian_nll_loss(o[:, 0], y, o[:, 1].exp()),
    ),
    "quantiles": (QuantileHead((0.1, 0.9)), pinball),
}


def alone(member: Member, outputs: int, loss: Any, options: BatchTraining) -> list[np.ndarray]:
    """Weights and biases of one plain network: torch's own layers, gradients and Adam."""
    x, y = member.rows()
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
    sizes = [x.shape[1], *options.layers, outputs]
    layers = [torch.nn.Linear(i, o) for i, o in pairwise(sizes)]
    first, order = member.rng("weights"), member.rng("order")
    with torch.no_grad():
        for layer in layers:
            limit = np.sqrt(6.0 / sum(layer.weight.shape))
            layer.weight.copy_(torch.tensor(first.uniform(-limit, limit, layer.weight.shape)))
            layer.bias.zero_()
    chain: list[Any] = []
    for layer in layers:
        chain += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*chain[:-1])
    adam = torch.optim.Adam(model.parameters(), lr=options.learning_rate, eps=1e-7)
    for _ in range(options.epochs):
        shuffled = torch.tensor(order.permutation(len(y)))
        for batch in shuffled.split(options.batch_size):
            adam.zero_grad()
            cost = loss(model(x[batch]), y[batch])
            for layer in layers[:-1]:
                cost = cost + options.penalty / len(y) * layer.weight.square().sum()
            cost.backward()
            adam.step()
    return [p.detach().numpy() for p in model.parameters()]


@pytest.mark.parametrize("penalty", [0.0, 2.0])
@pytest.mark.parametrize("name", LOSSES)
def test_members_equal_lone_training(name: str, penalty: float) -> None:
    head, loss = LOSSES[name]
    options = BatchTraining(
        layers=(7, 5), epochs=4, batch_size=16, penalty=penalty, learning_rate=0.01
    )
    state = torch.get_rng_state()
    for member, network in zip(members(3), train(members(3), head, options), strict=True):
        expected = alone(member, head.outputs, loss, options)
        for layer in range(3):
            np.testing.assert_allclose(network.kernels[layer], expected[2 * layer], atol=1e-5)
            np.testing.assert_allclose(network.biases[layer], expected[2 * layer + 1], atol=1e-5)
        assert np.abs(network.biases[0]).max() > 0.01
    torch.set_rng_state(state)


def same(one: Network, other: Network) -> bool:
    pairs = zip((*one.kernels, *one.biases), (*other.kernels, *other.biases), strict=True)
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in pairs)


@pytest.mark.parametrize("dropout", [None, Bernoulli(0.2), Concrete(drop_input=True)])
def test_companions_and_chunks_change_nothing(dropout: Dropout | None) -> None:
    ours = members(7)
    apart = [train([member], Gaussian(), SMALL, dropout)[0] for member in ours]
    assert not same(apart[0], apart[1])
    for chunk in (1, 3, 7, 100):
        options = BatchTraining(layers=(7, 5), epochs=4, batch_size=16, chunk=chunk)
        together = train(ours, Gaussian(), options, dropout)
        assert all(same(a, b) for a, b in zip(apart, together, strict=True))
    mixed = train([ours[4], *members(2, n=30), ours[1]], Gaussian(), SMALL, dropout)
    assert same(mixed[0], apart[4])
    assert same(mixed[3], apart[1])


def test_threads_share_the_chunks_and_change_nothing() -> None:
    ours = members(70)
    options = BatchTraining(layers=(4,), epochs=2, batch_size=16)
    threads = torch.get_num_threads()
    found = []
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            found.append(train(ours, Gaussian(), options, Bernoulli(0.1)))
            assert torch.get_num_threads() == number
    finally:
        torch.set_num_threads(threads)
    assert all(same(a, b) for a, b in zip(*found, strict=True))
    assert all(network.failure is None for network in found[1])


def test_an_error_in_one_chunk_reaches_the_caller() -> None:
    class Broken(Raw):
        def loss(self, outputs: Any, y: Any) -> Any:
            raise ArithmeticError("no loss")

    with pytest.raises(ArithmeticError, match="no loss"):
        train(members(70), Broken(), BatchTraining(epochs=1, chunk=10))


def test_data_sets_of_other_sizes_are_kept_apart() -> None:
    mixed = [*members(2, n=30), *members(2, n=50, d=3), *members(1, n=50)]
    networks = train(mixed, SquaredError(), SMALL)
    assert [network.kernels[0].shape for network in networks] == [(7, 2)] * 2 + [(7, 3)] * 2 + [
        (7, 2)
    ]
    assert same(networks[1], train(mixed[1:2], SquaredError(), SMALL)[0])
    assert train([], SquaredError(), SMALL) == []


class Raw(Head):
    """Squared error of targets as they are."""

    standardises: ClassVar[bool] = False

    @property
    def outputs(self) -> int:
        return 1

    def loss(self, outputs: Any, y: Any) -> Any:
        return (y - outputs[..., 0, :]).square()

    def prediction(self, outputs: np.ndarray, center: float, unit: float) -> Prediction:
        assert (center, unit) == (0.0, 1.0)
        return SquaredError().prediction(outputs, center, unit)


def test_a_network_that_diverges_harms_no_other() -> None:
    good = members(3)
    x, y = rows()
    bad = Member(x, 1e30 * y, seed=5, index=1)
    networks = train([good[0], bad, good[2]], Raw(), SMALL)
    assert networks[1].failure == "loss not finite in epoch 1, step 1 of 4"
    assert (networks[1].scale.y_center, networks[1].scale.y_unit) == (0.0, 1.0)
    for place in (0, 2):
        assert networks[place].failure is None
        assert same(networks[place], train([good[place]], Raw(), SMALL)[0])


def test_data_too_large_to_standardise_fail_and_say_so() -> None:
    x, y = rows()
    for member in (Member(x, 1e200 * y, seed=0), Member(1e200 * x, y, seed=0)):
        network = train([member], SquaredError(), SMALL)[0]
        assert network.failure == "data too large to standardise"


def test_constant_columns_and_targets_are_no_matter() -> None:
    x = np.ones((20, 2))
    network = train([Member(x, np.full(20, 3.0), seed=0)], SquaredError(), SMALL)[0]
    assert network.failure is None
    scale = network.scale
    assert (scale.y_center, scale.y_unit) == (3.0, 1.0)
    np.testing.assert_array_equal(scale.x_unit, [1.0, 1.0])


def test_global_state_is_left_alone() -> None:
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    threads, grad = torch.get_num_threads(), torch.is_grad_enabled()
    train(members(2), Gaussian(), SMALL, Concrete())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert (torch.get_num_threads(), torch.is_grad_enabled()) == (threads, grad)


def concrete_objective(body: BatchedMLP, x: Any, y: Any, u: Any, options: Concrete, n: int) -> Any:
    """Half of the loss of the authors' code, by automatic differentiation."""
    total = 0.0
    logits = body.values[-body.count * options.learnt(body.sizes) :].view(body.count, -1)
    leaves = [v.clone().requires_grad_() for v in (*body.kernels, *body.biases, logits)]
    layers = len(body.kernels)
    for m in range(body.count):
        h, start = x[m].T, 0
        for layer in range(layers):
            kernel, bias = leaves[layer][m], leaves[layers + layer][m]
            if options.drop_input or layer > 0:
                number = layer if options.drop_input else layer - 1
                p = leaves[-1][m, number].sigmoid()
                width = h.shape[1]
                draws = u[m, start : start + width].T
                start += width
                eps = 1e-7
                logit = (p + eps).log() - (1 - p + eps).log()
                logit = logit + (draws + eps).log() - (1 - draws + eps).log()
                z = torch.sigmoid(logit / options.temperature)
                h = h * (1 - z) / (1 - p)
                decay, entropy = options.length**2 / n, p * p.log() + (1 - p) * (1 - p).log()
                total = total + decay * kernel.square().sum() / (1 - p) + 2 / n * width * entropy
            h = h @ kernel.T + bias[:, 0]
            h = h.relu() if layer < layers - 1 else h
        total = total + (torch.exp(-h[:, 1]) * (y[m] - h[:, 0]) ** 2 + h[:, 1]).mean()
    total.backward()
    return [leaf.grad / 2 for leaf in leaves], logits


@pytest.mark.parametrize("drop_input", [False, True])
def test_gradients_of_concrete_dropout_are_those_of_its_loss(drop_input: bool) -> None:
    rng = np.random.default_rng(1)
    options = Concrete(length=3.0, temperature=0.3, start=0.2, drop_input=drop_input)
    sizes, n = (3, 6, 5, 2), 40
    body = BatchedMLP(sizes, [np.random.default_rng(k) for k in range(2)], options, rows=n)
    x = torch.tensor(rng.normal(size=(2, 3, 8)), dtype=torch.float32)
    y = torch.tensor(rng.normal(size=(2, 8)), dtype=torch.float32)
    u = torch.tensor(rng.random((2, options.units(sizes), 8)), dtype=torch.float32)
    expected, logits = concrete_objective(body, x, y, u, options, n)
    assert torch.allclose(logits.sigmoid(), torch.tensor(0.2))
    out = body.forward(x, u).requires_grad_()
    (slope,) = torch.autograd.grad(Gaussian().loss(out, y).mean(-1).sum(), out)
    body.backward(slope)
    found = [*body.kernel_gradients, *body.bias_gradients, body.gradients[-logits.numel() :]]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.ravel(), theirs.ravel(), rtol=2e-4, atol=2e-5)


def test_outputs_are_a_plain_forward_pass() -> None:
    networks = train(members(3), Gaussian(), SMALL)
    x, _ = rows(9, seed=1)
    found = outputs(networks, x)
    for network, ours in zip(networks, found, strict=True):
        h = network.scale.inputs(x)
        for layer, (kernel, bias) in enumerate(zip(network.kernels, network.biases, strict=True)):
            h = h @ kernel.T + bias
            h = np.maximum(h, 0.0) if layer < 2 else h
        np.testing.assert_allclose(ours, h.T, rtol=1e-4, atol=1e-5)


def test_rows_in_blocks_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    networks = train(members(2), Gaussian(), SMALL)
    x, _ = rows(9, seed=1)
    whole = outputs(networks, x)
    monkeypatch.setattr("howsure_studies.methods.deep.batch._ROOM", 60)
    np.testing.assert_allclose(outputs(networks, x), whole, rtol=1e-5, atol=1e-6)
