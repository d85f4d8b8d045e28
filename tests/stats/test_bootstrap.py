"""Bootstrap against enumeration, closed forms, SciPy, and its laws on order and weights."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child, row_keys
from howsure.core.weights import Weights
from howsure.stats.bootstrap import (
    Bootstrap,
    bootstrap_means,
    resampling_units,
    subsample,
)
from howsure.stats.estimate import standard_error

quick = examples(100)


@st.composite
def tables(draw):
    n = draw(st.integers(1, 25))
    value = st.one_of(st.integers(0, 2).map(float), st.floats(-5, 5))
    scores = np.array(draw(st.lists(st.tuples(value, value), min_size=n, max_size=n)))
    weights = np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), dtype=float)
    weights[draw(st.integers(0, n - 1))] = 2
    cluster = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    return scores, Weights(weights), draw(st.sampled_from([None, cluster]))


def drawn(scores, weights=None, cluster=None, replicates=50, **options):
    return bootstrap_means(
        scores, child(0, "test"), replicates, weights=weights, cluster=cluster, **options
    )


@quick
@given(tables(), st.integers(0, 1000))
def test_the_order_of_rows_changes_nothing(case, seed):
    scores, weights, cluster = case
    mixed = child(seed, "mix").permutation(len(scores))
    moved = None if cluster is None else cluster[mixed]
    one, other = drawn(scores, weights, cluster), drawn(scores[mixed], weights.take(mixed), moved)
    np.testing.assert_array_equal(one.replicates, other.replicates)
    np.testing.assert_array_equal(one.estimate, other.estimate)


@quick
@given(tables())
def test_a_weight_of_two_is_a_row_twice(case):
    scores, weights, cluster = case
    rows = np.repeat(np.arange(len(scores)), weights.values.astype(int))
    moved = None if cluster is None else cluster[rows]
    one, other = drawn(scores, weights, cluster), drawn(scores[rows], None, moved)
    np.testing.assert_allclose(one.replicates, other.replicates, rtol=1e-12, atol=1e-12)
    assert one.units == other.units


@quick
@given(tables(), st.sampled_from([3, 8]))
def test_groups_of_neighbours_cannot_tell_weights_from_copies(case, at_most):
    scores, weights, _ = case
    rows = np.repeat(np.arange(len(scores)), weights.values.astype(int))
    one, other = drawn(scores, weights, at_most=at_most), drawn(scores[rows], at_most=at_most)
    np.testing.assert_allclose(one.replicates, other.replicates, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("at_most", [20_000, 50])
@pytest.mark.parametrize("heavy", [1.0, 1e4, 1e12])
def test_heavy_weights_have_the_standard_error_of_their_copies(heavy, at_most):
    rng = child(21, "heavy")
    scores, weights = rng.gamma(1.0, size=400), Weights(heavy * rng.integers(1, 9, 400))
    result = drawn(scores, weights, replicates=8000, at_most=at_most)
    expected = standard_error(scores - result.estimate[0], weights)
    assert result.units == weights.total
    assert result.standard_error()[0] == pytest.approx(expected, rel=0.03)
    lower, upper = result.interval(0.95)
    assert (upper - lower)[0] == pytest.approx(2 * 1.96 * expected, rel=0.05)


@quick
@given(tables())
def test_names_of_clusters_do_not_matter(case):
    scores, weights, _ = case
    cluster = child(1, "names").integers(0, 4, len(scores))
    names = np.array(["z", "north", "a", "m"])[cluster]
    one, other = drawn(scores, weights, cluster), drawn(scores, weights, names)
    np.testing.assert_array_equal(one.replicates, other.replicates)


@pytest.mark.parametrize("cluster", [None, [0, 1, 2, 2, 2]])
def test_replicates_follow_the_enumerated_law(cluster):
    scores = np.array([1.0, 5.0, 3.0]) if cluster is None else np.array([1.0, 5.0, 3.0, 0.0, 7.0])
    codes = np.arange(3) if cluster is None else np.array(cluster)
    sums, sizes = np.bincount(codes, scores), np.bincount(codes)
    every = [
        sums[list(pick)].sum() / sizes[list(pick)].sum() for pick in product(range(3), repeat=3)
    ]
    found = drawn(scores, cluster=cluster, replicates=27_000).replicates[:, 0].round(9)
    values, expected = np.unique(np.round(every, 9), return_counts=True)
    assert set(np.unique(found)) == set(values)
    observed = [np.count_nonzero(found == value) for value in values]
    assert stats.chisquare(observed, expected * 1000).pvalue > 0.001


@pytest.mark.parametrize("kind", ["plain", "frequency", "importance", "cluster"])
def test_spread_agrees_with_the_analytic_standard_error(kind):
    rng = child(2, "analytic")
    scores = rng.gamma(2.0, size=600)
    cluster = np.repeat(np.arange(120), 5) if kind == "cluster" else None
    if cluster is not None:
        scores += rng.normal(size=120)[cluster]
    weights = {
        "frequency": Weights(rng.integers(0, 4, 600).astype(float)),
        "importance": Weights(rng.gamma(1.0, size=600), "importance"),
    }.get(kind)
    result = drawn(scores, weights, cluster, replicates=8000)
    mass = np.ones(600) if weights is None else weights.values
    mean = np.average(scores, weights=mass)
    assert result.estimate[0] == pytest.approx(mean, rel=1e-12)
    expected = standard_error(scores - mean, weights, cluster)
    # 8,000 replicates know a standard deviation to 0.8 %, and 1/(2n) is the bootstrap's own bias.
    assert result.standard_error()[0] == pytest.approx(expected, rel=0.03)


def test_groups_keep_the_standard_error_of_all_rows():
    scores = child(3, "blocks").normal(size=5000)
    result = drawn(scores, replicates=8000, at_most=1000)
    assert result.units == 5000
    assert result.note == ("5000 different units were resampled in 1000 groups of neighbours")
    assert result.estimate[0] == pytest.approx(scores.mean(), rel=1e-9)
    expected = standard_error(scores - scores.mean())
    assert result.standard_error()[0] == pytest.approx(expected, rel=0.06)


def test_columns_share_their_draws():
    scores = child(4, "columns").normal(size=(200, 2))
    result = drawn(np.column_stack((scores, scores[:, 0] - scores[:, 1])))
    np.testing.assert_allclose(
        result.replicates[:, 2], result.replicates[:, 0] - result.replicates[:, 1], atol=1e-13
    )


def test_percentile_interval_is_at_ranks_of_replicates():
    replicates = child(5, "ranks").permutation(np.arange(1.0, 200.0))[:, None]
    lower, upper = Bootstrap(np.array([100.0]), replicates, 50).interval(0.9)
    assert (lower[0], upper[0]) == pytest.approx((10.0, 190.0), rel=1e-14)


def test_intervals_cover_a_mean():
    rng = child(10, "cover")
    covered = 0
    for _ in range(400):
        lower, upper = bootstrap_means(rng.normal(size=60), rng, 400).interval(0.9)
        covered += int(lower[0] <= 0 <= upper[0])
    assert 0.85 < covered / 400 < 0.93


def test_degenerate_tables():
    lone = drawn([3.0])
    assert np.isnan(lone.standard_error()).all()
    assert np.isnan(lone.interval()[0]).all()
    constant = drawn(np.ones(10))
    lower, upper = constant.interval(0.9)
    assert lower[0] == upper[0] == 1
    odd = Bootstrap(np.array([1.0]), np.array([[1.0], [np.nan]]), 5)
    assert np.isnan(odd.interval()[0]).all()


def test_units_are_sorted_sums():
    scores = np.array([[1.0], [2.0], [4.0]])
    importance = Weights(np.array([0.5, 2.0, 0.0]), "importance")
    assert resampling_units(scores, importance)[0].tolist() == [[0.5, 0.5], [4.0, 2.0]]
    frequency = Weights(np.array([2.0, 0.0, 1.0]))
    units, copies = resampling_units(scores, frequency)
    assert (units.tolist(), copies.tolist()) == ([[1.0, 1.0], [4.0, 1.0]], [2.0, 1.0])
    clustered, _ = resampling_units(scores, frequency, ["b", "b", "a"])
    assert clustered.tolist() == [[4.0, 1.0], [2.0, 2.0]]


def test_subsamples_ignore_the_order_of_rows():
    y = child(15, "subsample").normal(size=500)
    mixed = child(16, "subsample").permutation(500)
    first = subsample(row_keys(y), 60, seed=0, name="a")
    again = subsample(row_keys(y[mixed]), 60, seed=0, name="a")
    np.testing.assert_array_equal(y[first], y[mixed][again])
    assert len(set(first.tolist())) == 60
    other = subsample(row_keys(y), 60, seed=0, name="b")
    assert set(first.tolist()) != set(other.tolist())
    assert sorted(subsample(row_keys(y), 500, seed=0, name="a")) == list(range(500))
    assert len(subsample(row_keys(y), 900, seed=0, name="a")) == 500


def test_subsamples_take_every_row_alike():
    y = np.arange(20.0)
    keys = row_keys(y)
    taken = np.zeros(20)
    for seed in range(1000):
        taken[subsample(keys, 5, seed=seed, name="uniform")] += 1
    assert stats.chisquare(taken).pvalue > 0.001


def test_bad_input_is_named():
    rng = child(17, "bad")
    with pytest.raises(InputError, match="scores must contain finite numbers"):
        bootstrap_means([1.0, np.inf], rng)
    with pytest.raises(InputError, match="replicates must be a whole number of at least 2"):
        bootstrap_means([1.0], rng, 1)
    with pytest.raises(InputError, match="cluster must have 2 rows"):
        bootstrap_means([1.0, 2.0], rng, cluster=[1])
    with pytest.raises(InputError, match="weights must have 2 rows"):
        bootstrap_means([1.0, 2.0], rng, weights=Weights(np.ones(3)))
    with pytest.raises(UnanswerableError, match="too large to resample"):
        bootstrap_means([1e200, 2.0], rng)
    with pytest.raises(InputError, match="at_most must be"):
        subsample(row_keys([1.0]), 0, seed=0, name="a")
