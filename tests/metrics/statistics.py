"""What every statistic must obey, and PIT cells to try it on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from howsure.stats.estimate import Estimate, standard_error
from oracles.scores import derivative

GRID = np.array([0.07, 0.2, 0.5, 0.51, 0.8, 0.95])
ROWS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, 3)), min_size=2, max_size=10
)

Rows = list[tuple[float, float, int]]
Draw = Callable[..., tuple[Any, ...]]


def plain(seed: int = 1, n: int = 25) -> tuple[np.ndarray, np.ndarray]:
    values = np.random.default_rng(seed).beta(0.6, 0.9, n)
    return values, values


def counts(seed: int = 2, n: int = 25, shift: float = 1.3) -> tuple[np.ndarray, np.ndarray]:
    """PIT cells of Poisson laws whose rates are too low by a factor."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2.0, 1.5, n)
    y = rng.poisson(rate * shift)
    return stats.poisson.cdf(y - 1, rate), stats.poisson.cdf(y, rate)


def mixed(seed: int = 3, n: int = 25) -> tuple[np.ndarray, np.ndarray]:
    """Cells of every width, some of none."""
    rng = np.random.default_rng(seed)
    left = rng.random(n)
    width = 10.0 ** rng.uniform(-6, 0, n) * (rng.random(n) < 0.7)
    return left, np.minimum(left + width, 1.0)


CELLS = [plain(), counts(), mixed()]
NAMES = ["plain", "counts", "mixed"]


def same(one: Estimate, other: Estimate) -> None:
    """Assert that two statistics are one."""
    assert one.value == pytest.approx(other.value, abs=1e-12, nan_ok=True)
    assert one.null == pytest.approx(other.null, abs=1e-12, nan_ok=True)


def assert_influence_is_the_derivative(measure: Callable[[Any], Estimate], n: int) -> None:
    """The influence of n rows is what a little more weight on each would do."""
    got = measure(None)
    assert got.influence is not None
    want = derivative(lambda w: measure(w).value, n)
    np.testing.assert_allclose(got.influence, want, atol=2e-4 * np.abs(want).max())
    assert abs(got.influence.sum()) < 1e-9 * np.abs(got.influence).sum() + 1e-12


def assert_standard_error_holds(measure: Callable[..., Estimate], draw: Draw) -> None:
    """Away from a perfect model; 800 replicates know a standard deviation to 2.5 %."""
    rng = np.random.default_rng(10)
    values, errors = [], []
    for _ in range(800):
        found = measure(*draw(rng))
        assert found.influence is not None
        values.append(found.value)
        errors.append(standard_error(found.influence))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(values), rel=0.1)


def assert_null_is_the_mean(
    measure: Callable[..., Estimate], draw: Draw, n: int, bias: float
) -> None:
    """Within four standard errors of the simulation, and the bias that the docstring admits."""
    rng = np.random.default_rng(11)
    found = [measure(*draw(rng, n)) for _ in range(1500)]
    values = np.array([each.value for each in found])
    null = float(np.mean([each.null for each in found]))
    assert values.mean() == pytest.approx(
        null, abs=4 * values.std() / np.sqrt(len(values)) + bias * abs(null)
    )
