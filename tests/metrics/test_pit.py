"""The PIT, its histogram and its cells, against definitions and simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.stats.ecdf import uniformity_of_counts
from howsure.topics.pit import pit_cells, pit_histogram, randomised_counts, randomised_pit
from metrics.statistics import CELLS, GRID, NAMES, ROWS, Rows, counts
from oracles import scores as oracle


def test_histogram_counts_bins_and_its_band_holds() -> None:
    left, right = counts()
    edges = np.linspace(0, 1, 6)
    table = np.array(
        [[oracle.row_share(a, b, p) for p in edges] for a, b in zip(left, right, strict=True)]
    )
    got = pit_histogram(right, left=left, bins=5)
    np.testing.assert_allclose(got.share, np.diff(table.mean(axis=0)), atol=1e-12)
    assert pit_histogram([0.0, 0.2, 1.0], bins=5).share[0] == pytest.approx(2 / 3)
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(1000):
        shown = pit_histogram(rng.random(200), bins=10)
        inside += bool(((shown.share >= shown.lower) & (shown.share <= shown.upper)).all())
    assert inside / 1000 >= 0.95 - 4 * 0.007
    assert inside / 1000 <= 0.99  # Bonferroni over whole counts, not much wider than it must be


def test_randomised_pit_is_uniform_and_lies_in_its_cell() -> None:
    left, right = counts(n=4000, shift=1.0)
    drawn = randomised_pit(right, left, np.random.default_rng(6).random(4000))
    assert ((drawn >= left) & (drawn <= right)).all()
    assert stats.kstest(drawn, "uniform").pvalue > 0.01


@pytest.mark.parametrize(("left", "right"), CELLS, ids=NAMES)
@pytest.mark.parametrize("version", ["quantile", "interval"])
def test_cells_hold_the_share_of_each_row(
    left: np.ndarray, right: np.ndarray, version: Any
) -> None:
    share = oracle.row_share if version == "quantile" else oracle.folded_share
    table = np.array([[share(a, b, p) for p in GRID] for a, b in zip(left, right, strict=True)])
    made = pit_cells(right, left, version=version)
    observed = made.observed(GRID)
    np.testing.assert_allclose(observed, table.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        made.second_moment(GRID, observed), np.square(table).mean(axis=0), atol=1e-12
    )
    factors = np.random.default_rng(14).normal(size=len(GRID))
    np.testing.assert_allclose(made.dot(GRID, factors), table @ factors, atol=1e-12)


def test_a_continuous_law_has_cells_without_width() -> None:
    assert pit_cells([0.2, 0.7]).continuous
    assert pit_cells([0.2, 0.7], [0.2, 0.7]).continuous
    assert not pit_cells([0.2, 0.7], [0.1, 0.7]).continuous
    assert pit_cells([0.2, 0.7], weights=[1.0, 2.5]).total == 3.5


@examples(60)
@given(rows=ROWS, plain_values=st.booleans())
def test_weights_repeat_rows(rows: Rows, plain_values: bool) -> None:
    right = np.array([max(a, b) for a, b, _ in rows])
    left = right if plain_values else np.array([min(a, b) for a, b, _ in rows])
    weights = np.array([float(w) for *_, w in rows])
    index = np.repeat(np.arange(len(rows)), weights.astype(int))[::-1]
    np.testing.assert_allclose(
        pit_histogram(right, left=left, weights=weights).share,
        pit_histogram(right[index], left=left[index]).share,
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pit_histogram([0.5], bins=1), "bins must be a whole number of at least 2"),
        (lambda: pit_histogram([0.5], bins=2.5), "bins must be a whole number of at least 2"),
        (lambda: randomised_pit([0.5], [0.1], [2.0]), "uniforms must be"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_counts_of_random_ranks_are_those_of_single_draws() -> None:
    """Against the definition: each copy draws its own rank, and ranks are counted."""
    rng = np.random.default_rng(11)
    left = np.array([0.0, 0.12, 0.12, 0.5, 0.71])
    right = np.array([0.12, 0.5, 0.31, 0.71, 0.71])
    weights = np.array([40, 1, 25, 7, 3])
    seeds = range(400)
    ours = np.array([randomised_counts(right, left, GRID, weights, seed=s) for s in seeds])
    rows = np.repeat(np.arange(5), weights)
    single = np.array(
        [
            (randomised_pit(right[rows], left[rows], rng.random(76))[:, None] <= GRID).sum(axis=0)
            for _ in seeds
        ]
    )
    assert (np.diff(ours, axis=1) >= 0).all()
    error = np.sqrt((ours.var(axis=0) + single.var(axis=0)) / len(seeds))
    assert (np.abs(ours.mean(axis=0) - single.mean(axis=0)) <= 4.0 * error + 1e-12).all()
    between = np.cov(np.diff(ours, axis=1).T), np.cov(np.diff(single, axis=1).T)
    np.testing.assert_allclose(*between, atol=2.5)


def test_counts_of_random_ranks_ignore_order_and_writing_out() -> None:
    rng = np.random.default_rng(12)
    left = rng.integers(0, 8, 60) / 10
    right = left + rng.integers(0, 3, 60) / 10
    weights = rng.integers(1, 4, 60)
    mixed = rng.permutation(np.repeat(np.arange(60), weights))
    one = randomised_counts(right, left, GRID, weights, seed=3)
    other = randomised_counts(right[mixed], left[mixed], GRID, seed=3)
    np.testing.assert_array_equal(one, other)


@pytest.mark.rate
def test_random_ranks_of_heavy_rows_of_a_right_law_are_uniform() -> None:
    """Poisson(1) in its own shares, times a million: p-values are as uniform as they should be."""
    y = np.arange(8)
    law = stats.poisson(1.0)
    p_values = []
    for seed in range(300):
        weights = np.random.default_rng(seed).multinomial(10**6, law.pmf(y))
        held = weights > 0
        counts = randomised_counts(
            law.cdf(y[held]),
            law.cdf(y[held] - 1),
            np.arange(1, 100) / 100,
            weights[held],
            seed=seed,
        )
        p_values.append(uniformity_of_counts(counts, int(weights.sum())).p_value)
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
