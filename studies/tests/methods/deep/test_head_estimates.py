"""What heads prove of themselves: draws, gradients, estimates; without a network between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from extras import needs

torch = needs("torch")

from howsure_studies.methods.deep.heads import (  # noqa: E402
    HEADS,
    BetaGaussian,
    DoublePoissonHead,
    FaithfulGaussian,
    Gaussian,
    NegativeBinomialHead,
    QuantileHead,
    head_named,
)

ROWS = 20_000
RARE = 1e-3  # a p-value below it is a failure; all draws are seeded
TRUTH: dict[str, list[float]] = {
    "poisson": [np.log(7.0)],
    "negative_binomial": [6.0, 0.3],
    "double_poisson": [np.log(20.0), np.log(2.5)],
    "gaussian": [1.0, -0.8],
    "natural_gaussian": [2.0, 1.5],
    "beta_gaussian": [1.0, -0.8],
    "faithful_gaussian": [1.0, -0.8],
    "student_t": [0.5, -0.4, 1.2],
    "mixture": [0.3, -0.3, 0.0, -2.0, 0.5, 2.5, -0.7, -1.2, 0.1],
}
"""Outputs of one row, from which data are drawn."""


def law_of(name: str, outputs: Any) -> Any:
    return head_named(name).prediction(np.asarray(outputs)[:, None], 0.0, 1.0)


def drawn(name: str, seed: int = 0, n: int = ROWS) -> np.ndarray:
    return np.asarray(law_of(name, TRUTH[name]).sample(np.random.default_rng(seed), n)[0])


def slopes(head: Any, outputs: Any, y: np.ndarray) -> np.ndarray:
    """Gradient of the mean loss by the outputs of a row that all y share, shape (k,)."""
    o = torch.tensor(np.asarray(outputs, dtype=float)[:, None], requires_grad=True)
    loss = head.loss(o.expand(-1, len(y)), torch.tensor(y)).mean()
    return np.asarray(torch.autograd.grad(loss, o)[0][:, 0])


def fitted(head: Any, y: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The outputs, one row for all y, of least mean loss: what a network without inputs learns."""
    o = torch.tensor(start[:, None].copy(), requires_grad=True)
    target = torch.tensor(y)
    solver = torch.optim.LBFGS(
        [o],
        max_iter=500,
        tolerance_grad=1e-10,
        tolerance_change=1e-16,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Any:
        solver.zero_grad()
        loss = head.loss(o.expand(-1, len(y)), target).mean()
        loss.backward()
        return loss

    solver.step(closure)
    return o.detach().numpy()[:, 0]


@pytest.mark.parametrize("name", TRUTH)
def test_draws_pass_tests_against_the_cdf(name: str) -> None:
    """Kolmogorov and Smirnov's for densities, Pearson's for counts, expecting 20 a cell."""
    head = head_named(name)
    rng = np.random.default_rng(5)
    outputs = np.array(TRUTH[name])[:, None] + 0.3 * rng.normal(size=(head.outputs, 5))
    law = head.prediction(outputs, 0.0, 1.0)
    for row, values in enumerate(law.sample(rng, ROWS)):
        one = law.take(np.full(ROWS, row))
        if not law.discrete:
            assert stats.kstest(one.cdf(values), "uniform").pvalue > RARE
            continue
        counts = np.arange(values.max() + 1.0)
        reached = law.take(np.full(len(counts), row)).cdf(counts)
        ends = [0.0]
        for share in reached:
            if share - ends[-1] > 20 / ROWS and 1.0 - share > 20 / ROWS:
                ends.append(share)
        ends.append(1.0)
        cells = np.searchsorted(ends, one.cdf(values) - 1e-12) - 1
        seen = np.bincount(cells, minlength=len(ends) - 1)
        assert stats.chisquare(seen, ROWS * np.diff(ends)).pvalue > RARE


@pytest.mark.parametrize("name", HEADS)
def test_gradients_are_differences_once_what_stands_still_does(name: str) -> None:
    """In 64 bits. β's weight and the faithful law's mean stay where they are as outputs move."""
    head = head_named(name)
    rng = np.random.default_rng(2)
    out = torch.tensor(rng.normal(size=(head.outputs, 30)))
    y = torch.tensor(
        rng.poisson(2.0, 30).astype(float) if not head.standardises else rng.normal(size=30)
    )
    stand_in: dict[str, Callable[[Any], Any]] = {
        "beta_gaussian": lambda o: (BetaGaussian().beta * out[1]).exp() * Gaussian().loss(o, y),
        "faithful_gaussian": lambda o: (
            0.5 * (y - o[0]) ** 2 + Gaussian().loss(torch.stack([out[0], o[1]]), y)
        ),
    }
    moved = stand_in.get(name, lambda o: head.loss(o, y))
    o = out.clone().requires_grad_()
    (slope,) = torch.autograd.grad(head.loss(o, y).sum(), o)
    for place in range(head.outputs):
        step = torch.zeros_like(out)
        step[place] = 1e-6
        difference = (moved(out + step) - moved(out - step)) / 2e-6
        np.testing.assert_allclose(slope[place], difference, rtol=1e-6, atol=1e-7)


def test_losses_are_least_where_estimates_are_known() -> None:
    """Means and variances of y; for the double Poisson law 1/φ is twice the mean deviance."""
    z, counts = drawn("gaussian"), drawn("negative_binomial")
    mean, variance = z.mean(), z.var()
    for head in (Gaussian(), BetaGaussian(), BetaGaussian(1.0), FaithfulGaussian()):
        np.testing.assert_allclose(slopes(head, [mean, np.log(variance)], z), 0.0, atol=1e-9)
    natural = [mean / variance, np.log(np.expm1(1.0 / variance))]
    np.testing.assert_allclose(slopes(head_named("natural_gaussian"), natural, z), 0.0, atol=1e-9)
    level = counts.mean()
    assert slopes(head_named("poisson"), [np.log(level)], counts) == pytest.approx(0.0, abs=1e-9)
    inverse = np.log(np.expm1(level))
    for spread in (-1.0, 0.0, 2.0):  # the mean's estimate is the mean, whatever the dispersion
        assert slopes(NegativeBinomialHead(), [inverse, spread], counts)[0] == pytest.approx(
            0, abs=1e-9
        )
    y = drawn("double_poisson")
    ratio = np.where(y > 0, y * np.log(np.maximum(y, 1) / y.mean()), 0.0)
    phi = 0.5 / float(np.mean(ratio - y + y.mean()))
    np.testing.assert_allclose(
        slopes(DoublePoissonHead(), np.log([y.mean(), phi]), y), 0.0, atol=1e-9
    )


@pytest.mark.parametrize(
    "name", ["poisson", "negative_binomial", "gaussian", "natural_gaussian", "student_t", "mixture"]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_parameters_come_back_as_closely_as_likelihood_allows(name: str, seed: int) -> None:
    """Wilks: twice the gain in log likelihood over the truth follows χ² of k degrees, less where
    a parameter is idle (two logits of three)."""
    head, y = head_named(name), drawn(name, seed)
    found = fitted(head, y, np.array(head.start(y).offset))
    assert np.abs(slopes(head, found, y)).max() < 1e-5
    target = torch.tensor(y)
    costs = [
        float(head.loss(torch.tensor(np.array(o)[:, None]).expand(-1, len(y)), target).sum())
        for o in (TRUTH[name], found)
    ]
    free = head.outputs - (name == "mixture")
    gain = 2.0 * (costs[0] - costs[1])
    assert -1e-6 < gain < stats.chi2.isf(RARE, free)


def test_dispersion_of_counts_comes_back() -> None:
    """Of the double Poisson law, whose loss lacks the constant: φ within 3 % where φμ is 10 up."""
    for mu, phi in ((20.0, 0.5), (20.0, 2.5), (400.0, 5.0)):
        law = DoublePoissonHead().prediction(np.log([[mu], [phi]]), 0.0, 1.0)
        y = law.sample(np.random.default_rng(1), ROWS)[0]
        found = fitted(DoublePoissonHead(), y, np.array(DoublePoissonHead().start(y).offset))
        np.testing.assert_allclose(np.exp(found), [mu, phi], rtol=0.03)


def test_quantiles_are_those_of_the_data() -> None:
    """The subgradient is zero just between the order statistics of a level; at the true quantile
    the share below is binomial."""
    head = QuantileHead((0.05, 0.3, 0.5, 0.9))
    y = np.sort(drawn("student_t"))
    levels = np.array(head.levels)
    at = np.array([(y[int(p * ROWS) - 1] + y[int(p * ROWS)]) / 2 for p in levels])
    np.testing.assert_allclose(slopes(head, at, y), 0.0, atol=1e-12)
    true = law_of("student_t", TRUTH["student_t"]).quantile(levels)[0]
    error = slopes(head, true, y)  # of each level: share below − level
    assert (np.abs(error) < 4.0 * np.sqrt(levels * (1 - levels) / ROWS)).all()
    np.testing.assert_allclose(
        error, [(y < q).mean() - p for q, p in zip(true, levels, strict=True)]
    )
