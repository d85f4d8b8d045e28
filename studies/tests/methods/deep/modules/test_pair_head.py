"""The pair of quantiles, and what is minimised while training warms up."""

from __future__ import annotations

import numpy as np
import pytest

from extras import needs

torch = needs("torch")

from howsure.core.errors import InputError  # noqa: E402
from howsure_studies.methods.deep.heads import (  # noqa: E402
    HEADS,
    Gaussian,
    PairHead,
    QuantileHead,
    SquaredError,
    head_named,
    head_spec,
)


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_the_loss_is_half_the_sum_of_two_pinball_losses(coverage: float) -> None:
    rng = np.random.default_rng(0)
    out, y = rng.normal(size=(2, 50)), rng.normal(size=50)
    tail = (1 - coverage) / 2
    expected = np.zeros(50)
    for level, q in ((tail, out[0]), (1 - tail, out[1])):
        gap = y - q
        expected += 0.5 * np.where(gap > 0, level * gap, (1 - level) * -gap)
    found = PairHead(coverage).loss(torch.tensor(out), torch.tensor(y)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    warm = PairHead(coverage).warm_loss(torch.tensor(out), torch.tensor(y)).numpy()
    np.testing.assert_allclose(warm, ((y - out) ** 2).mean(axis=0), rtol=1e-12)


def test_the_loss_takes_many_networks_at_once() -> None:
    rng = np.random.default_rng(1)
    out, y = torch.tensor(rng.normal(size=(3, 2, 5))), torch.tensor(rng.normal(size=(3, 5)))
    for cost in (PairHead().loss, PairHead().warm_loss, Gaussian().warm_loss):
        whole = cost(out, y)
        for k in range(3):
            torch.testing.assert_close(whole[k], cost(out[k], y[k]))


def test_the_loss_is_least_at_the_quantiles() -> None:
    y = torch.tensor(np.random.default_rng(0).normal(size=4000))
    grid = torch.linspace(-3, 3, 601, dtype=torch.float64)
    head = PairHead(0.8)
    for place, level in enumerate(head.levels):
        out = torch.zeros(601, 2, 4000, dtype=torch.float64)
        out[:, place] = grid[:, None]
        best = grid[int(head.loss(out, y.expand(601, -1)).mean(-1).argmin())]
        assert float(best) == pytest.approx(float(np.quantile(y, level)), abs=0.02)


def test_the_prediction_is_in_the_units_of_y_and_sorted() -> None:
    prediction = PairHead(0.9).prediction(
        np.array([[-1.0, 2.0], [1.0, 0.0]]), center=10.0, unit=3.0
    )
    lower, upper = prediction.interval(0.9)
    np.testing.assert_allclose(lower, [7.0, 10.0])
    np.testing.assert_allclose(upper, [13.0, 16.0])
    np.testing.assert_allclose(prediction.point(), [10.0, 13.0])


def test_warming_up_means_squared_errors_where_there_is_a_mean() -> None:
    rng = np.random.default_rng(2)
    for name in HEADS:
        head = head_named(name)
        out = torch.tensor(rng.normal(size=(head.outputs, 6)))
        y = torch.tensor(rng.integers(0, 5, size=6).astype(float))
        warm = head.warm_loss(out, y)
        if name in ("gaussian", "beta_gaussian", "faithful_gaussian"):
            torch.testing.assert_close(warm, (y - out[0]).square())
            assert head.settles
        else:
            torch.testing.assert_close(warm, head.loss(out, y))
            assert not head.settles
    assert not PairHead().settles
    assert not SquaredError().settles


def test_heads_are_written_down_and_made_again() -> None:
    heads = [head_named(name) for name in HEADS]
    for head in [*heads, PairHead(0.8), SquaredError(0.3), QuantileHead((0.1, 0.5))]:
        spec = head_spec(head)
        assert spec is not None
        assert head_named(spec) == head
    assert head_named("pair") == PairHead(0.9)
    assert head_named("squared_error") == SquaredError()


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90])
def test_a_wrong_coverage_is_refused(coverage: float) -> None:
    with pytest.raises(InputError, match="coverage"):
        PairHead(coverage)
