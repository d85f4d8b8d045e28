"""Exact shares against sums of binomial terms in exact arithmetic, and against SciPy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.binomial import (
    binomial_test,
    clopper_pearson,
    holm,
    shift_shares,
    wilson,
)

quick = examples(200)
shares = st.floats(0.001, 0.999)


@st.composite
def counts(draw, least=0):
    n = draw(st.integers(least, 60))
    return draw(st.integers(0, n)), n


def tail(k, n, p, *, above):
    """P(X ≥ k) or P(X ≤ k), summed term by term in fractions."""
    p = Fraction(p)
    terms = range(k, n + 1) if above else range(k + 1)
    return float(sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in terms))


@quick
@given(counts(), shares)
def test_p_values_are_sums_of_terms(case, share):
    k, n = case
    less, greater = tail(k, n, share, above=False), tail(k, n, share, above=True)
    assert binomial_test(k, n, share, "less") == pytest.approx(less, rel=1e-12)
    assert binomial_test(k, n, share, "greater") == pytest.approx(greater, rel=1e-12)
    assert binomial_test(k, n, share) == pytest.approx(min(1, 2 * min(less, greater)), rel=1e-12)


@quick
@given(counts(), shares)
def test_one_sided_tests_agree_with_scipy(case, share):
    k, n = case
    for side in ("less", "greater"):
        if n:
            expected = stats.binomtest(k, n, share, alternative=side).pvalue
            assert binomial_test(k, n, share, side) == pytest.approx(expected, rel=1e-10)


@quick
@given(counts(least=1), st.floats(0.5, 0.999))
def test_intervals_agree_with_scipy(case, confidence):
    k, n = case
    for ours, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
        lower, upper = ours(k, n, confidence)
        expected = stats.binomtest(k, n).proportion_ci(confidence, method=method)
        assert lower == pytest.approx(expected.low, abs=1e-12)
        assert upper == pytest.approx(expected.high, abs=1e-12)


@quick
@given(counts(least=1), st.floats(0.5, 0.999))
def test_ends_leave_exactly_the_tail(case, confidence):
    k, n = case
    lower, upper = clopper_pearson(k, n, confidence)
    if k > 0:
        assert tail(k, n, float(lower), above=True) == pytest.approx((1 - confidence) / 2)
    if k < n:
        assert tail(k, n, float(upper), above=False) == pytest.approx((1 - confidence) / 2)


@quick
@given(counts(least=1), shares)
def test_the_test_rejects_exactly_what_the_interval_excludes(case, share):
    k, n = case
    lower, upper = clopper_pearson(k, n, 0.9)
    p_value = float(binomial_test(k, n, share))
    if abs(p_value - 0.1) > 1e-9:
        assert (p_value < 0.1) == (not lower <= share <= upper)


@pytest.mark.parametrize("n", [5, 20, 50])
def test_intervals_and_bounds_keep_their_promise(n):
    k = np.arange(n + 1)
    lower, upper = clopper_pearson(k, n, 0.9)
    for share in np.linspace(0.01, 0.99, 99):
        chance = stats.binom.pmf(k, n, share)
        assert chance[(lower <= share) & (share <= upper)].sum() >= 0.9


def test_edges_have_closed_forms():
    lower, upper = clopper_pearson([0, 0, 5], [0, 5, 5])
    np.testing.assert_allclose(lower, [0, 0, 0.025 ** (1 / 5)])
    np.testing.assert_allclose(upper, [1, 1 - 0.025 ** (1 / 5), 1])
    for ends in (wilson(0, 0), clopper_pearson(0, 0)):
        assert tuple(ends) == (0.0, 1.0)
    assert wilson(0, 7)[0] == 0
    assert wilson(7, 7)[1] == 1
    np.testing.assert_allclose(binomial_test([0, 0, 5], [0, 5, 5], 0.9), [1, 2e-5, 1])
    np.testing.assert_allclose(binomial_test([3, 0, 10, 4], 10, [0.0, 0.0, 1.0, 1.0]), [0, 1, 1, 0])


def test_thousands_of_groups_at_once():
    rng = child(0, "groups")
    n = rng.integers(0, 3000, 4000)
    k = rng.binomial(n, 0.9)
    lower, upper = clopper_pearson(k, n)
    p_values = binomial_test(k, n, 0.9)
    assert lower.shape == upper.shape == p_values.shape == (4000,)
    for place in range(0, 4000, 97):
        assert (lower[place], upper[place]) == clopper_pearson(k[place], n[place])
        assert p_values[place] == binomial_test(k[place], n[place], 0.9)


def test_a_hundred_million_rows():
    lower, upper = clopper_pearson(9 * 10**7, 10**8)
    half = stats.norm.ppf(0.975) * math.sqrt(0.09 / 10**8)
    assert upper - lower == pytest.approx(2 * half, rel=1e-3)
    assert 0.9 - lower == pytest.approx(half, rel=1e-3)


def test_fractional_counts_lie_between_whole_ones():
    ends = np.array([clopper_pearson(0.9 * n, n) for n in (20, 25.5, 30)])
    assert (np.diff(ends[:, 0]) > 0).all()
    assert (np.diff(ends[:, 1]) < 0).all()


@quick
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.5))
def test_holm_rejects_as_its_steps_do(p_values, level):
    rejected = set()
    for step, place in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[place] * (len(p_values) - step) > level:
            break
        rejected.add(place)
    assert set(np.flatnonzero(holm(p_values) <= level)) == rejected


def test_holm_leaves_out_what_was_not_tested():
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])
    np.testing.assert_array_equal(holm([0.9, 0.9]), [1.0, 1.0])
    assert holm([]).shape == (0,)


def test_wilson_ends_exactly_where_no_row_or_every_row_is_covered():
    lower, upper = wilson([0, 7], [7, 7])
    assert lower[0] == 0.0 < lower[1]
    assert upper[1] == 1.0 > upper[0]


def test_wilson_counts_weights_that_sum_to_less_than_one_row():
    k, n, z = 0.25, 0.5, stats.norm.ppf(0.975)
    half = z * np.sqrt(k * (1 - k / n) + z**2 / 4) / (n + z**2)
    centre = (k + z**2 / 2) / (n + z**2)
    np.testing.assert_allclose(np.ravel(wilson(k, n)), [centre - half, centre + half], rtol=1e-12)


def test_bad_input_is_named():
    for k, n in ((3, 2), (-1, 2), (np.nan, 2), (1, np.inf)):
        with pytest.raises(InputError, match="covered and n must be finite"):
            clopper_pearson(k, n)
    with pytest.raises(InputError, match=r"got covered 5 of n 4 \(place 1\)"):
        binomial_test([1, 5], 4, 0.5)
    with pytest.raises(InputError, match="shares"):
        shift_shares([np.nan], 0.5)
    with pytest.raises(InputError, match="confidence must be strictly between"):
        wilson(1, 2, 95)
    with pytest.raises(InputError, match="share must be in"):
        binomial_test(1, 2, 1.5)
    with pytest.raises(InputError, match="alternative must be one of"):
        binomial_test(1, 2, 0.5, "both")
    with pytest.raises(InputError, match="p_values must be in"):
        holm([0.5, 1.5])
    with pytest.raises(InputError, match="p_values must have one dimension"):
        holm([[0.5]])
