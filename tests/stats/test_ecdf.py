"""Shares on a grid against their definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.stats.ecdf import check_pit, grid_dot, grid_sums
from oracles import scores as oracle

GRID = np.arange(1, 20) / 20


def cells(seed: int, n: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    left = rng.random(n)
    if kind == "plain":
        return left, left
    width = {"wide": 0.5, "narrow": 1e-3, "hair": 1e-12}.get(kind)
    if width is None:
        width = 10.0 ** rng.uniform(-14, -0.3, n) * (rng.random(n) < 0.8)
    return left, np.minimum(left + width * rng.random(n), 1.0)


@pytest.mark.parametrize("kind", ["plain", "wide", "narrow", "hair", "mixed"])
def test_shares_are_those_of_the_definition(kind: str) -> None:
    left, right = cells(1, 60, kind)
    right[:5] = GRID[:5]  # ends that fall on the grid
    left[:5] = np.minimum(left[:5], right[:5])
    want = oracle.shares(left, right, GRID)
    weights = np.random.default_rng(2).integers(1, 4, 60).astype(float)
    np.testing.assert_allclose(grid_sums(left, right, GRID), want.sum(axis=0), atol=1e-11)
    np.testing.assert_allclose(grid_sums(left, right, GRID, weights), weights @ want, atol=1e-11)
    np.testing.assert_allclose(
        grid_sums(left, right, GRID, weights, power=2), weights @ want**2, atol=1e-9
    )
    factors = np.random.default_rng(3).normal(size=len(GRID))
    np.testing.assert_allclose(grid_dot(left, right, GRID, factors), want @ factors, atol=1e-12)


def test_plain_values_count_from_the_right() -> None:
    values = np.array([0.2, 0.5, 0.5, 0.9])
    assert grid_sums(values, values, np.array([0.2, 0.49, 0.5, 1.0])).tolist() == [1, 1, 3, 4]


@examples(60)
@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, 3)), min_size=1, max_size=12
    )
)
def test_weights_repeat_rows_and_order_is_nothing(rows: list[tuple[float, float, int]]) -> None:
    left = np.array([min(a, b) for a, b, _ in rows])
    right = np.array([max(a, b) for a, b, _ in rows])
    weights = np.array([w for *_, w in rows])
    index = np.repeat(np.arange(len(rows)), weights)[::-1]
    once = grid_sums(left, right, GRID, weights)
    np.testing.assert_allclose(once, grid_sums(left[index], right[index], GRID), atol=1e-11)
    assert (np.diff(once) >= -1e-11).all()


def test_the_pit_of_counts_is_uniform_in_expectation() -> None:
    """Σ_k P(Y = k) t_k(p) = p for any discrete law: the reason for spreading rows over cells."""
    law = stats.poisson(2.3)
    counts = np.arange(60)
    left, right = law.cdf(counts - 1), law.cdf(counts)
    np.testing.assert_allclose(grid_sums(left, right, GRID, law.pmf(counts)), GRID, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_pit([]), "at least one row"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
