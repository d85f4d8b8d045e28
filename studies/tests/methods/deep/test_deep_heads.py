"""Losses and laws of heads, and the masks of dropout."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError  # noqa: E402
from howsure_studies.methods.deep.heads import Gaussian, Head, QuantileHead, SquaredError  # noqa: E402
from howsure_studies.methods.deep.mlp import Bernoulli, Concrete  # noqa: E402

HEADS: list[Head] = [Gaussian(), SquaredError(), QuantileHead((0.1, 0.5, 0.9))]


def drawn(head: Head, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    shape = (4, head.outputs, 6)
    return torch.tensor(rng.normal(size=shape)), torch.tensor(rng.normal(size=(4, 6)))


def test_the_gaussian_loss_is_minus_the_log_density() -> None:
    out, y = drawn(Gaussian())
    found = Gaussian().loss(out, y).numpy()
    density = stats.norm.logpdf(y, out[:, 0], np.exp(0.5 * out[:, 1].numpy()))
    np.testing.assert_allclose(found, -density - 0.5 * np.log(2 * np.pi), rtol=1e-12)


def test_the_gaussian_law_is_in_the_units_of_y() -> None:
    law = Gaussian().prediction(np.array([[1.0, -1.0], [0.0, np.log(4.0)]]), center=5.0, unit=3.0)
    np.testing.assert_allclose(law.point(), [8.0, 2.0])
    np.testing.assert_allclose(law.sd(), [3.0, 6.0])


def test_the_pinball_loss_is_least_at_the_quantiles() -> None:
    y = torch.tensor(np.random.default_rng(0).exponential(size=2000))
    levels = (0.2, 0.5, 0.9)
    grid = np.linspace(0.05, 3.5, 400)
    out = torch.tensor(np.repeat(grid[:, None, None], len(levels), 1)).expand(400, 3, 2000)
    for place, level in enumerate(levels):
        head = QuantileHead((level,))
        costs = head.loss(out[:, place : place + 1], y.expand(400, -1)).mean(-1)
        assert grid[int(costs.argmin())] == pytest.approx(np.quantile(y, level), abs=0.02)
    total = QuantileHead(levels).loss(out, y.expand(400, -1))
    apart = sum(QuantileHead((t,)).loss(out[:, :1], y.expand(400, -1)) for t in levels)
    np.testing.assert_allclose(total, apart, rtol=1e-12)


def test_crossing_quantiles_are_sorted() -> None:
    prediction = QuantileHead((0.1, 0.9)).prediction(np.array([[1.0, 0.0], [0.0, 1.0]]), 0.0, 1.0)
    np.testing.assert_array_equal(prediction.quantile([0.1, 0.9]), [[0.0, 1.0], [0.0, 1.0]])
    assert prediction.crossed_rows == 1


def test_the_law_of_squared_error_has_one_sd() -> None:
    values = np.array([[0.0, 1.0]])
    np.testing.assert_allclose(SquaredError(0.5).prediction(values, 1.0, 4.0).sd(), [2.0, 2.0])
    lower, upper = SquaredError().prediction(values, 1.0, 4.0).interval(0.9)
    np.testing.assert_array_equal(lower, upper)


@pytest.mark.parametrize("head", HEADS, ids=lambda head: type(head).__name__)
def test_gradients_are_finite_differences(head: Head) -> None:
    out, y = drawn(head)
    out.requires_grad_()
    (slope,) = torch.autograd.grad(head.loss(out, y).sum(), out)
    step = 1e-6
    for place in np.ndindex(out.shape[1:]):
        moved = [out.detach().clone() for _ in range(2)]
        for sign, item in zip((1, -1), moved, strict=True):
            item[0][place] += sign * step
        up, down = (float(head.loss(item, y).sum()) for item in moved)
        assert float(slope[0][place]) == pytest.approx((up - down) / (2 * step), abs=1e-7)


def test_losses_do_not_mind_how_many_networks_there_are() -> None:
    for head in HEADS:
        out, y = drawn(head)
        alone = torch.stack([head.loss(out[k], y[k]) for k in range(4)])
        assert head.loss(out, y).shape == (4, 6)
        assert torch.equal(head.loss(out, y), alone)


def test_bernoulli_masks_keep_the_mean() -> None:
    mask = Bernoulli(0.3).masks(np.random.default_rng(0), 20000, (1, 5, 1), np.empty(0))
    assert set(np.unique(mask).tolist()) == {0.0, np.float32(1 / 0.7)}
    np.testing.assert_allclose(mask.mean(axis=0), 1.0, atol=0.02)


def test_concrete_masks_follow_their_law() -> None:
    """z < ½ just where u < 1 − p, and z is as the formula says."""
    options = Concrete(temperature=0.1)
    rates = np.array([0.3, 0.05])
    mask = options.masks(np.random.default_rng(0), 4000, (1, 6, 2, 1), rates)
    p = np.repeat(rates, [6, 2])
    z = 1 - mask * (1 - p)
    np.testing.assert_allclose((z > 0.5).mean(axis=0), p, atol=0.025)
    u = np.random.default_rng(0).random((4000, 8), dtype=np.float32).astype(float)
    exact = 1 / (1 + np.exp(-(np.log(p / (1 - p)) + np.log((u + 1e-7) / (1 + 1e-7 - u))) / 0.1))
    np.testing.assert_allclose(z, exact, atol=2e-3)


@pytest.mark.parametrize("drop_input", [False, True])
def test_a_pass_is_a_network_with_scaled_weights(drop_input: bool) -> None:
    rng = np.random.default_rng(0)
    sizes = (3, 5, 4, 2)
    kernels = [rng.normal(size=(o, i)).astype("f4") for i, o in pairwise(sizes)]
    options = Bernoulli(0.4, drop_input)
    assert options.units(sizes) == 9 + 3 * drop_input
    passes = options.passes(np.random.default_rng(7), 6, kernels, np.empty(0))
    masks = options.masks(np.random.default_rng(7), 6, sizes, np.empty(0))
    x = rng.normal(size=3)
    for b in range(6):
        h, start = x, 0
        for layer, kernel in enumerate(kernels):
            scaled = h
            if layer > 0 or drop_input:
                scaled = h * masks[b, start : start + len(h)]
                start += len(h)
            np.testing.assert_allclose(kernel @ scaled, passes[layer][b] @ h, rtol=1e-4, atol=1e-5)
            h = np.maximum(kernel @ scaled, 0.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SquaredError(-1.0), "sd must be"),
        (lambda: SquaredError(float("nan")), "sd must be"),
        (lambda: QuantileHead((0.9, 0.1)), "levels must increase"),
        (lambda: QuantileHead(()), "at least one row"),
        (lambda: Bernoulli(0.0), "rate must be"),
        (lambda: Bernoulli(5), "rate must be"),
        (lambda: Concrete(start=1.0), "start must be"),
        (lambda: Concrete(length=0.0), "length must be"),
        (lambda: Concrete(temperature=float("inf")), "temperature must be"),
    ],
)
def test_bad_options_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
