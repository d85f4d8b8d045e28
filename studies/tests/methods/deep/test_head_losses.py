"""Losses of heads: as their papers write them, their gradients, and the edges of their domains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError  # noqa: E402
from howsure_studies.methods.deep.heads import (  # noqa: E402
    HEADS,
    BetaGaussian,
    DoublePoissonHead,
    FaithfulGaussian,
    Gaussian,
    NaturalGaussian,
    NegativeBinomialHead,
    NormalMixture,
    PoissonHead,
    QuantileHead,
    StudentTHead,
    head_named,
)
from howsure_studies.methods.deep.heads.base import inverse_softplus  # noqa: E402

COUNTS = ("poisson", "negative_binomial", "double_poisson")
ALL: dict[str, Any] = {name: head_named(name) for name in HEADS}
F = torch.nn.functional


def drawn(head: Any, seed: int = 0, n: int = 40) -> tuple[Any, Any]:
    """Outputs of shape (3, k, n) and targets of shape (3, n), in 64 bits."""
    rng = np.random.default_rng(seed)
    outputs = torch.tensor(rng.normal(size=(3, head.outputs, n)))
    if head.standardises:
        return outputs, torch.tensor(rng.normal(size=(3, n)))
    return outputs, torch.tensor(rng.poisson(2.0, size=(3, n)).astype(float))


def poisson(o: Any, y: Any) -> Any:
    return -torch.distributions.Poisson(o[0].exp()).log_prob(y) - (y + 1).lgamma()


def negative_binomial(o: Any, y: Any) -> Any:
    """Torch's own law: r failures, success probability μ/(r + μ)."""
    mean, size = F.softplus(o[0]), 1 / F.softplus(o[1])
    law = torch.distributions.NegativeBinomial(size, probs=mean / (size + mean))
    return -law.log_prob(y) - (y + 1).lgamma()


def double_poisson(o: Any, y: Any) -> Any:
    """As published."""
    log_mu, phi = o[0], o[1].exp()
    known = torch.where(y > 0, y * (1 + log_mu - y.clamp(min=1).log()), torch.zeros_like(y))
    return -0.5 * o[1] + phi * log_mu.exp() - phi * known


def gaussian(o: Any, y: Any) -> Any:
    return F.gaussian_nll_loss(o[0], y, o[1].exp(), reduction="none", eps=1e-12)


def beta_gaussian(o: Any, y: Any) -> Any:
    return o[1].exp().detach() ** 0.5 * gaussian(o, y)


def natural_gaussian(o: Any, y: Any) -> Any:
    """As published."""
    one, two = o[0], -0.5 * F.softplus(o[1])
    return -(one * y + two * y**2 + one**2 / (4 * two) + 0.5 * (-2 * two).log())


def faithful_gaussian(o: Any, y: Any) -> Any:
    law = torch.distributions.Normal(o[0].detach(), (0.5 * o[1]).exp())
    return 0.5 * (y - o[0]) ** 2 - law.log_prob(y)


def quantile(o: Any, y: Any) -> Any:
    levels = QuantileHead().levels
    return sum(
        torch.maximum(t * (y - q), (t - 1) * (y - q)) for t, q in zip(levels, o, strict=True)
    )


def student_t(o: Any, y: Any) -> Any:
    law = torch.distributions.StudentT(2 + F.softplus(o[2]), o[0], (0.5 * o[1]).exp())
    return -law.log_prob(y)


def mixture(o: Any, y: Any) -> Any:
    which = torch.distributions.Categorical(logits=o[:3].T)
    parts = torch.distributions.Normal(o[3:6].T, (0.5 * o[6:]).exp().T)
    return -torch.distributions.MixtureSameFamily(which, parts).log_prob(y)


PUBLISHED: dict[str, Callable[[Any, Any], Any]] = {
    "poisson": poisson,
    "negative_binomial": negative_binomial,
    "double_poisson": double_poisson,
    "gaussian": gaussian,
    "beta_gaussian": beta_gaussian,
    "natural_gaussian": natural_gaussian,
    "faithful_gaussian": faithful_gaussian,
    "quantile": quantile,
    "student_t": student_t,
    "mixture": mixture,
}


@pytest.mark.parametrize("name", HEADS)
def test_losses_and_their_gradients_are_those_published(name: str) -> None:
    head = ALL[name]
    out, y = drawn(head)
    for row, target in zip(out, y, strict=True):
        ours, theirs = (row.clone().requires_grad_() for _ in range(2))
        one, other = head.loss(ours, target), PUBLISHED[name](theirs, target)
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=1e-9, atol=1e-9)
        (slope,) = torch.autograd.grad(one.sum(), ours)
        (wanted,) = torch.autograd.grad(other.sum(), theirs)
        np.testing.assert_allclose(slope, wanted, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", sorted(set(HEADS) - {"beta_gaussian", "faithful_gaussian"}))
def test_gradients_are_finite_differences(name: str) -> None:
    head = ALL[name]
    out, y = drawn(head, seed=1)
    ours = out[0].clone().requires_grad_()
    (slope,) = torch.autograd.grad(head.loss(ours, y[0]).sum(), ours)
    step = 1e-6
    for place in range(head.outputs):
        up, down = (out[0].clone() for _ in range(2))
        up[place] += step
        down[place] -= step
        difference = (head.loss(up, y[0]) - head.loss(down, y[0])) / (2 * step)
        np.testing.assert_allclose(slope[place], difference, rtol=1e-6, atol=1e-7)


def test_what_stands_still_in_a_loss_has_no_gradient() -> None:
    """β's weight and the faithful law's mean are constants; so finite differences do not serve."""
    out, y = drawn(Gaussian(), seed=2)
    o = out[0].clone().requires_grad_()
    (plain,) = torch.autograd.grad(Gaussian().loss(o, y[0]).sum(), o)
    for beta in (0.0, 0.3, 1.0):
        (slope,) = torch.autograd.grad(BetaGaussian(beta).loss(o, y[0]).sum(), o)
        np.testing.assert_allclose(slope, plain * out[0, 1].exp() ** beta, rtol=1e-12)
    (slope,) = torch.autograd.grad(FaithfulGaussian().loss(o, y[0]).sum(), o)
    np.testing.assert_allclose(slope[0], out[0, 0] - y[0], rtol=1e-12)
    np.testing.assert_allclose(slope[1], plain[1], rtol=1e-12)


@pytest.mark.parametrize("name", HEADS)
def test_losses_do_not_mind_how_many_networks_there_are(name: str) -> None:
    head = ALL[name]
    out, y = drawn(head)
    apart = torch.stack([head.loss(o, t) for o, t in zip(out, y, strict=True)])
    assert head.loss(out, y).shape == y.shape
    assert torch.equal(head.loss(out, y), apart)


@pytest.mark.parametrize("name", COUNTS)
def test_losses_are_log_probabilities_but_for_a_constant_of_y(name: str) -> None:
    head = ALL[name]
    for seed in range(3):
        out, y = drawn(head, seed)
        first, second = (o.numpy() for o in out[:2])
        gap = (head.loss(out[0], y[0]) - head.loss(out[1], y[0])).numpy()
        laws = [head.prediction(o, 0.0, 1.0) for o in (first, second)]
        if name == "double_poisson":
            stated = [law.law.frozen(law.parameters).log_pmf(y[0], "none") for law in laws]
        else:
            stated = [law.log_density(y[0].numpy()) for law in laws]
        np.testing.assert_allclose(gap, stated[1] - stated[0], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["gaussian", "natural_gaussian", "student_t", "mixture"])
def test_losses_are_log_densities(name: str) -> None:
    head = ALL[name]
    out, y = drawn(head, 5)
    dropped = 0.5 * np.log(2 * np.pi) if "gaussian" in name else 0.0
    law = head.prediction(out[0].numpy(), 0.0, 1.0)
    found = head.loss(out[0], y[0]).numpy() + dropped
    np.testing.assert_allclose(found, -law.log_density(y[0].numpy()), rtol=1e-9)


EDGES = [-200.0, -80.0, -20.0, 0.0, 20.0, 30.0]


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_any_size_cost_a_finite_loss_with_a_finite_slope(name: str) -> None:
    head = ALL[name]
    grid = np.stack(np.meshgrid(*[EDGES] * head.outputs), axis=0).reshape(head.outputs, -1)
    for y in (0.0, 1.0, 7.0, 1e6, 1e9):
        out = torch.tensor(grid, dtype=torch.float32, requires_grad=True)
        loss = head.loss(out, torch.full((grid.shape[1],), y))
        assert torch.isfinite(loss).all(), y
        (slope,) = torch.autograd.grad(loss.sum(), out)
        assert torch.isfinite(slope).all(), y


@pytest.mark.parametrize("name", sorted(set(HEADS) - set(COUNTS)))
def test_tiny_variances_cost_a_finite_loss_with_a_finite_slope(name: str) -> None:
    head = ALL[name]
    rng = np.random.default_rng(0)
    grid = rng.choice(EDGES, size=(head.outputs, 500))
    for y in (0.0, 1e-8, -3.0):
        out = torch.tensor(grid, dtype=torch.float32, requires_grad=True)
        loss = head.loss(out, torch.full((500,), y))
        assert torch.isfinite(loss).all(), y
        (slope,) = torch.autograd.grad(loss.sum(), out)
        assert torch.isfinite(slope).all(), y


def test_the_double_poisson_loss_does_not_cancel_at_large_counts() -> None:
    """y (eᵈ − 1 − d) is about y d²/2, here 5e-4, of terms of 2e10."""
    y = 1e9
    log_mu = np.log(y) + 1e-6
    out = torch.tensor([[log_mu], [0.0]], dtype=torch.float64)
    found = float(DoublePoissonHead().loss(out, torch.tensor([y], dtype=torch.float64)))
    gap = log_mu - np.log(y)
    assert found == pytest.approx(y * (gap**2 / 2 + gap**3 / 6), rel=1e-6)


def test_clamps_of_the_published_double_poisson() -> None:
    """μ is at least 1e-6, and μ/φ at least 1e-4."""
    out = np.array([[-50.0, 0.0], [0.0, 30.0]])
    law = DoublePoissonHead().prediction(out, 0.0, 1.0)
    np.testing.assert_allclose(law.parameters["mu"], [1e-6, 1.0])
    np.testing.assert_allclose(law.parameters["phi"], [1e-2, 1e4])


def test_the_least_dispersion_is_that_published() -> None:
    law = NegativeBinomialHead().prediction(np.array([[1.0], [-100.0]]), 0.0, 1.0)
    assert law.parameters["dispersion"] == pytest.approx(1e-5)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BetaGaussian(1.5), "beta must be in"),
        (lambda: NormalMixture(1), "components must be"),
        (lambda: NormalMixture(2.5), "components must be"),
        (lambda: NormalMixture(least_sd=0.0), "least_sd must be in"),
        (lambda: head_named("poison"), "near: poisson"),
        (lambda: head_named(3), "head must be a name"),
        (lambda: head_named({"beta": 1.0}), "head must be a name"),
        (lambda: head_named({"name": "gaussian", "beta": 1.0}), "takes no options, got .beta"),
    ],
)
def test_bad_options_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_names_and_options_make_heads() -> None:
    assert head_named({"name": "mixture", "components": 5}) == NormalMixture(5)
    assert head_named(StudentTHead()) == StudentTHead()
    assert head_named("natural_gaussian") == NaturalGaussian()
    assert len({head.title for head in ALL.values()}) == len(HEADS)


def test_targets_are_counted_on() -> None:
    for name in COUNTS:
        head = ALL[name]
        head.check_targets(np.array([0.0, 1e9]))
        for bad in (-1.0, 0.5):
            with pytest.raises(InputError, match=rf"y must contain counts .*{head.title}.*row 1"):
                head.check_targets(np.array([3.0, bad]))


def test_training_sets_out_near_the_law_that_ignores_x() -> None:
    y = np.random.default_rng(0).negative_binomial(2, 0.1, size=5000).astype(float)
    mean, variance = y.mean(), y.var()
    for head in (PoissonHead(), NegativeBinomialHead(), DoublePoissonHead()):
        law = head.prediction(np.array([head.start(y).offset]).T, 0.0, 1.0)
        assert law.parameters["mu"] == pytest.approx(mean, rel=1e-3)
    start = np.array([NegativeBinomialHead().start(y).offset]).T
    assert NegativeBinomialHead().prediction(start, 0, 1).sd()[0] ** 2 == pytest.approx(
        variance, rel=1e-3
    )
    phi = (
        DoublePoissonHead()
        .prediction(np.array([DoublePoissonHead().start(y).offset]).T, 0, 1)
        .parameters
    )
    assert mean / phi["phi"][0] == pytest.approx(variance, rel=1e-3)
    z = (y - mean) / y.std()
    law = StudentTHead().prediction(
        np.array([StudentTHead().start(z).offset]).T, mean, float(y.std())
    )
    assert (law.point()[0], law.parameters["df"][0]) == pytest.approx((mean, 5.0), rel=1e-6)
    parts = np.array([NormalMixture(4).start(z).offset]).T
    mixed = NormalMixture(4).prediction(parts, float(mean), float(y.std()))
    assert mixed.point()[0] == pytest.approx(mean, abs=0.1 * y.std())
    assert mixed.sd()[0] == pytest.approx(y.std(), rel=0.2)
    for head in ALL.values():
        zeros = np.zeros(10)
        assert np.isfinite(head.start(zeros).offset).all()
        assert len(head.start(zeros).unit) == head.outputs


@pytest.mark.parametrize("value", [1e-12, 0.3, 5.0, 40.0, 1e9])
def test_inverse_of_softplus(value: float) -> None:
    assert np.logaddexp(inverse_softplus(value), 0.0) == pytest.approx(value, rel=1e-9)
