"""The sample: of the right size, fair, and the same whatever the order and the cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from howsure.inputs import load
from howsure.streaming.sample import Sample, copies_below, first_bound
from streaming.tables import normal_table, state_of


def test_so_many_rows_and_fair() -> None:
    table = normal_table(6_000)
    held = state_of(table, [1_000, 2_500], most=1_500).sample
    assert held.table.num_rows == 1_500
    rank = np.argsort(np.argsort(table["y"].to_numpy()))
    place = dict(zip(table["y"].to_pylist(), rank, strict=True))
    taken = np.array([place[value] for value in held.table["y"].to_pylist()]) / 6_000
    assert stats.kstest(taken, "uniform").pvalue > 0.001


def test_equal_rows_are_neither_all_in_nor_all_out() -> None:
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 5, 20_000)
    table = pa.table({"y": kinds * 1.0, "mean": np.zeros(20_000), "sd": np.ones(20_000)})
    held = state_of(table, list(range(1_000, 20_000, 1_000)), most=2_000, groups="").sample
    assert held.table.num_rows == 2_000
    seen = np.bincount(held.table["y"].to_numpy().astype(int), minlength=5)
    assert stats.chisquare(seen, 2_000 * np.bincount(kinds) / 20_000).pvalue > 0.001


def test_frequency_weights_are_copies() -> None:
    table = normal_table(3_000)
    held = state_of(table, [1_200], most=1_000, weights="weight").sample
    assert held.taken.sum() == pytest.approx(1_000, abs=3)
    assert (held.taken >= 1).all()
    many = state_of(table, most=10**6, weights="weight").sample
    assert many.taken.sum() == sum(table["weight"].to_pylist())


def test_copies_are_binomial() -> None:
    number = (np.arange(20_000) + 0.5) / 20_000
    copies = copies_below(number, np.full(20_000, 10.0), 0.3)
    expected = stats.binom.pmf(np.arange(11), 10, 0.3)
    np.testing.assert_allclose(
        np.bincount(copies.astype(int), minlength=11) / 2e4, expected, atol=2e-4
    )
    more = copies_below(number, np.full(20_000, 10.0), 0.5)
    assert (more >= copies).all()


def test_clusters_come_whole() -> None:
    table = normal_table(12_000)
    houses = np.random.default_rng(1).integers(0, 4_000, 12_000)
    table = table.set_column(8, "house", pa.array(houses))
    held = state_of(table, [5_000], most=2_000, cluster="house").sample
    taken = np.array(held.table["house"].to_pylist())
    assert len(taken) <= 2_000
    assert len(np.unique(taken)) >= 200
    for house in np.unique(taken)[:50]:
        assert (taken == house).sum() == (houses == house).sum()
    whole: Sample = state_of(table, most=2_000, cluster="house").sample
    assert whole.ranked().table.equals(held.ranked().table)


def test_a_few_large_clusters_keep_some_rows_of_each() -> None:
    table = normal_table(12_000)
    sites = np.random.default_rng(1).integers(0, 50, 12_000)
    table = table.set_column(8, "house", pa.array(sites))
    held = state_of(table, [5_000], most=2_000, cluster="house").sample
    assert held.table.num_rows == 2_000
    assert len(set(held.table["house"].to_pylist())) == 50


def test_a_first_bound_leaves_no_cluster_out() -> None:
    table = normal_table(2_000).select(["y", "mean", "sd", "site"])
    held = load(table, cluster="site").evalsets
    bound = first_bound(500, 10**9)
    assert Sample.of(table, held, most=500, bound=bound).table.num_rows == 500
    plain = load(table, groups="site").evalsets
    assert Sample.of(table, plain, most=500, bound=bound).table.num_rows == 0
