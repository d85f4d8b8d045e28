"""Dominance counts against all pairs, with ties and weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.core.weights import check_multiplicities
from howsure.stats.dominance import lowest, merge_ties, pair_masses, rank_values
from oracles.association import pair_signs

quick = examples(300)
tied = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e3, 1e3), st.just(np.inf))


@st.composite
def weighted_pairs(draw):
    n = draw(st.integers(1, 40))
    column = st.lists(tied, min_size=n, max_size=n)
    x, y = np.array(draw(column)), np.array(draw(column))
    weights = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), dtype=float)
    weights[draw(st.integers(0, n - 1))] = 1.0
    return x, y, draw(st.sampled_from([None, weights]))


@pytest.mark.parametrize("most", [1, 50, 499, 500, 600])
def test_of_equal_values_the_earlier_rows_are_lowest(most):
    values = np.random.default_rng(3).integers(0, 4, 500).astype(np.float64)
    in_order = sorted(range(500), key=lambda row: (values[row], row))
    assert lowest(values, most).tolist() == in_order[:most]


@pytest.mark.slow
@quick
@given(weighted_pairs())
def test_pair_masses_are_the_counts_over_all_pairs(case):
    x, y, weights = case
    mass = np.ones(len(x)) if weights is None else weights
    x, y = np.nan_to_num(x, posinf=1e6), np.nan_to_num(y, posinf=1e6)
    signs = pair_signs(x, y)
    pairs = pair_masses(rank_values(x, weights), rank_values(y, weights), weights)
    np.testing.assert_array_equal(pairs.concordant, (signs > 0) @ mass)
    np.testing.assert_array_equal(pairs.discordant, (signs < 0) @ mass)


@pytest.mark.parametrize("decimals", [None, 1, 0])
@pytest.mark.parametrize("n", [1023, 1024, 1025, 2000])
def test_larger_tables_with_real_weights(n, decimals):
    rng = child(0, "dominance", n)
    x, y = rng.normal(size=(2, n))
    if decimals is not None:
        x, y = x.round(decimals), y.round(decimals)
    weights = rng.gamma(1.0, size=n)
    signs = pair_signs(x, y)
    pairs = pair_masses(rank_values(x, weights), rank_values(y, weights), weights)
    np.testing.assert_allclose(pairs.concordant, (signs > 0) @ weights, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(pairs.discordant, (signs < 0) @ weights, rtol=1e-12, atol=1e-10)


@quick
@given(st.lists(tied, min_size=1, max_size=40))
def test_ranks_agree_with_scipy(values):
    ranked = rank_values(values)
    np.testing.assert_array_equal(ranked.codes, rankdata(values, "dense") - 1)
    np.testing.assert_array_equal(ranked.below[ranked.codes], rankdata(values, "min") - 1)
    middle = (rankdata(values, "average") - 0.5) / len(values)
    np.testing.assert_allclose(ranked.middle[ranked.codes], middle, rtol=1e-14)
    assert ranked.total == len(values)
    np.testing.assert_array_equal(np.array(values)[ranked.order], np.sort(values))


def test_widths_that_rounding_parts_are_merged():
    centre = child(1, "merge").normal(size=5000) * 1e3
    half = np.repeat([0.1, 0.7, np.inf], [3000, 1999, 1])
    lower, upper = centre - half, centre + half
    noise = np.where(np.isfinite(half), 4e-16 * np.maximum(np.abs(lower), np.abs(upper)), 0.0)
    assert len(np.unique(upper - lower)) > 10
    merged = merge_ties(upper - lower, noise)
    assert len(np.unique(merged)) == 3
    np.testing.assert_allclose(merged, 2 * half, rtol=1e-11)
    apart = child(2, "merge").normal(size=5000)
    np.testing.assert_array_equal(merge_ties(apart, 1e-15), apart)
    np.testing.assert_array_equal(merge_ties([1.0, 1.0, 2.0, 2.5], 0.5), [1.0, 1.0, 2.0, 2.0])


def test_bad_input_is_named():
    with pytest.raises(InputError, match="values must contain no missing values"):
        rank_values([1.0, np.nan])
    with pytest.raises(InputError, match="weights must not be negative"):
        check_multiplicities([1.0, -1.0], 2)
    assert check_multiplicities(None, 2) is None
    with pytest.raises(InputError, match="noise must not be negative"):
        merge_ties([1.0, 2.0], -1.0)
