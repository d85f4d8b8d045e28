"""Rows outside a reference, by brute force from the definition and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from howsure.core.rng import child
from howsure.stats.neighbours import Neighbours, fit_neighbours, more_outside, rank_of


def brute(bag: np.ndarray, nearest: int) -> np.ndarray:
    """Scores of all rows of a bag whose distances have no ties."""
    apart = np.linalg.norm(bag[:, None] - bag[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    order = np.argsort(apart, axis=1)[:, :nearest]
    radius = np.take_along_axis(apart, order, axis=1)[:, -1]
    return radius / (radius[order].mean(axis=1) + np.median(radius))


@pytest.mark.parametrize(("n", "width"), [(40, 2), (12, 3), (8, 1), (2, 1)])
def test_p_values_are_full_conformal(n: int, width: int) -> None:
    """Every score among all n + 1 rows, from the definition."""
    rng = child(n, "neighbours", width)
    rows, grid = rng.normal(size=(n, width)), 2.0 * rng.normal(size=(60, width))
    p, distance = fit_neighbours(rows).outside(grid)
    count = min(10, n - 1)
    for place, new in enumerate(grid):
        scores = brute(np.vstack([rows, new]), count)
        assert p[place] == (scores >= scores[-1] * (1 - 1e-12)).mean()
        assert distance[place] == pytest.approx(
            np.sort(np.linalg.norm(rows - new, axis=1))[count - 1]
        )


def drawn(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    """Rows of one law: smooth with long tails, on a lattice, or of a few dozen places."""
    rows = rng.normal(size=(n, 2))
    if kind == "ties":
        return np.round(rows)
    if kind == "repeats":
        return child(0, "places").normal(size=(40, 2))[rng.integers(0, 40, n)]
    return np.exp(rows)


@pytest.mark.parametrize("kind", ["smooth", "ties", "repeats"])
@pytest.mark.rate
def test_one_of_exchangeable_rows_is_seldom_outside(kind: str) -> None:
    """P(p <= α) is at most α over references, with ties as without; (n + 1) α is whole."""
    hits, tables = np.zeros(3), 2000
    levels = np.array([0.02, 0.1, 0.5])
    for table in range(tables):
        rows = drawn(kind, child(table, "exchangeable", kind), 50)
        p, _ = fit_neighbours(rows[1:]).outside(rows[:1])
        hits += p[0] <= levels + 1e-12
    allowed = 3.0 * np.sqrt(levels * (1 - levels) / tables)
    assert (hits / tables <= levels + allowed).all()
    if kind == "smooth":
        assert (hits / tables >= levels - allowed).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["smooth", "ties", "repeats"])
def test_the_number_outside_is_tested_with_one_reference(kind: str) -> None:
    tables, rejected = 200, 0
    for table in range(tables):
        rng = child(table, "shared", kind)
        p, _ = fit_neighbours(drawn(kind, rng, 120)).outside(drawn(kind, rng, 80))
        rejected += more_outside(p, 120, 0.05) < 0.05
    assert rejected / tables <= 0.05 + 3.0 * np.sqrt(0.05 * 0.95 / tables)


def test_the_number_outside_by_its_closed_form() -> None:
    p = np.array([0.01, 0.02, 0.5, 0.9])
    assert rank_of(99, 0.02) == 2
    assert more_outside(p, 99, 0.02) == pytest.approx(
        1 - sum(stats.betabinom(4, 2, 98).pmf(k) for k in (0, 1))
    )
    assert rank_of(20, 0.01) == 1


def test_labels_of_their_own_lie_outside_whatever_their_distance() -> None:
    rows = child(0, "labels").normal(size=(199, 1))
    labels = np.r_[np.zeros(99, int), np.ones(99, int), 2][:, None]
    found = fit_neighbours(rows, labels)
    p, _ = found.outside(np.zeros((4, 1)), np.array([[0], [1], [2], [-1]]))
    assert p[3] == 2 / 200  # the one row that is alone with its label is as far out
    plain, _ = fit_neighbours(rows).outside(np.zeros((1, 1)))
    assert p[2] == plain[0]  # two rows of one label: neither is alone
    assert (p[:2] >= p[2]).all()
    assert (p[:2] <= p[2] + 1 / 200).all()


def test_order_and_repeats_change_nothing() -> None:
    rng = child(1, "order")
    rows, grid = np.round(rng.normal(size=(80, 2)), 1), np.round(rng.normal(size=(30, 2)), 1)
    p, _ = fit_neighbours(rows).outside(grid)
    mixed = rng.permutation(80)
    np.testing.assert_array_equal(fit_neighbours(rows[mixed]).outside(grid)[0], p)
    np.testing.assert_array_equal(fit_neighbours(rows).outside(np.vstack([grid, grid]))[0][30:], p)
    flat = fit_neighbours(np.zeros((50, 1))).outside(np.array([[0.0], [1e-9]]))
    assert flat[0].tolist() == [1.0, 1 / 51]


def test_weights_by_hand() -> None:
    found: Neighbours = fit_neighbours(np.array([[0.0], [1.0], [2.0], [5.0]]))
    made = found.weights(np.array([[0.0]]), 2).toarray()[0]
    np.testing.assert_allclose(made, np.array([1.0, 0.75, 0.0, 0.0]) / 1.75)
    even = fit_neighbours(np.zeros((5, 1))).weights(np.zeros((1, 1)), 3)
    assert sorted(even.toarray()[0].tolist()) == pytest.approx([0, 0, 1 / 3, 1 / 3, 1 / 3])
