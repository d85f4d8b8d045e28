"""Permutation tests against enumeration of every sign pattern and every order of rows."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.core.weights import Weights
from howsure.stats import permutation
from howsure.stats.binomial import shift_shares
from howsure.stats.permutation import (
    groups_differ,
    joint_flip_tests,
    sign_flip_test,
    sign_flip_tests,
)

quick = examples(100)
values = st.one_of(st.integers(-2, 2).map(float), st.floats(-3, 3).map(lambda v: round(v, 2)))


def enumerated_flips(sums):
    """Share of sign patterns whose |sum| is at least the one seen."""
    seen = abs(np.sum(sums))
    every = [abs(np.dot(signs, sums)) for signs in product((-1, 1), repeat=len(sums))]
    return float(np.mean(np.array(every) >= seen - 1e-9))


@quick
@given(st.lists(values, min_size=1, max_size=9))
def test_few_rows_are_enumerated(differences):
    result = sign_flip_test(differences, child(0, "flip"))
    assert result.mean == pytest.approx(np.mean(differences), abs=1e-14)
    if not np.any(differences):
        assert np.isnan(result.p_value)
        assert result.note == "no row differs"
    else:
        assert result.method == "exact"
        assert result.p_value == pytest.approx(enumerated_flips(differences), abs=1e-14)


@quick
@given(
    st.lists(st.tuples(values, st.integers(0, 3)), min_size=1, max_size=12),
    st.sampled_from(["frequency", "importance"]),
)
def test_clusters_flip_whole(rows, kind):
    differences, cluster = (np.array(column) for column in zip(*rows, strict=True))
    weights = Weights(child(1, "weights").integers(1, 4, len(rows)).astype(float), kind)
    sums = np.bincount(cluster, weights.values * differences)
    result = sign_flip_test(differences, child(2, "flip"), weights=weights, cluster=cluster)
    if np.abs(sums).max() > 1e-9:
        assert result.p_value == pytest.approx(enumerated_flips(sums), abs=1e-14)
        assert result.mean == pytest.approx(sums.sum() / weights.total, abs=1e-14)


@pytest.mark.parametrize("n", [6, 40, 30_000])
def test_a_weight_of_two_is_a_row_twice_and_order_does_not_matter(n):
    rng = child(3, "law", n)
    differences = rng.normal(size=n).round(2) + 2 / n**0.5
    weights = rng.integers(0, 3, n).astype(float)
    rows = rng.permutation(np.repeat(np.arange(n), weights.astype(int)))
    weighted = sign_flip_test(differences, child(4, "law"), weights=Weights(weights))
    plain = sign_flip_test(differences[rows], child(4, "law"))
    assert weighted.p_value == pytest.approx(plain.p_value, rel=1e-9)
    assert (weighted.units, weighted.method) == (plain.units, plain.method)
    assert weighted.mean == pytest.approx(plain.mean, rel=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.4, 0.8])
def test_random_patterns_estimate_the_enumerated_share(shift):
    differences = child(5, "random").normal(size=15) + shift
    exact = enumerated_flips(differences)
    result = sign_flip_test(differences, child(6, "random"), 20_000)
    assert result.method == "Monte Carlo"
    assert result.resamples == 20_000
    spread = (exact * (1 - exact) / 20_000) ** 0.5
    assert result.p_value == pytest.approx(exact, abs=4 * spread + 1e-4)


def test_a_difference_everywhere_has_the_least_p_value():
    result = sign_flip_test(np.ones(200), child(7, "least"), 999)
    assert result.p_value == 1 / 1000
    assert sign_flip_test(np.ones(10), child(7, "least")).p_value == 2 / 2**10


def test_the_normal_limit_agrees_with_random_patterns():
    rng = child(8, "limit")
    differences = rng.normal(size=20_001) + 0.012
    limit = sign_flip_test(differences, rng)
    assert (limit.method, limit.resamples) == ("normal limit", 0)
    assert "20000" in limit.note
    patterns = sign_flip_test(differences[:-1], rng, 20_000)
    assert patterns.method == "Monte Carlo"
    assert limit.p_value == pytest.approx(patterns.p_value, abs=0.015)


def test_few_dominating_differences_are_flipped_one_by_one():
    differences = np.full(30_000, 1e-3)
    differences[:3] = 100.0
    result = sign_flip_test(differences, child(9, "heavy"))
    assert result.method == "Monte Carlo"
    assert "largest" in result.note
    # All three large ones must agree (¼), and the 29,997 small ones lend +30 against sd 0.17.
    assert result.p_value < 0.001
    differences[3:] *= -1
    assert sign_flip_test(differences, child(9, "heavy")).p_value == pytest.approx(0.25, abs=0.02)


def test_the_rest_of_a_dominated_sum_is_normal():
    rest = 0.1 * np.where(np.arange(30_000) % 2, 1.0, -1.0)
    result = sign_flip_test(np.r_[np.full(5, 10.0), rest], child(18, "rest"), 20_000)
    assert "largest" in result.note
    sums = [sum(signs) for signs in product((-10.0, 10.0), repeat=5)]
    sd = 0.1 * 30_000**0.5
    tails = [stats.norm.sf(50, s, sd) + stats.norm.cdf(-50, s, sd) for s in sums]
    assert result.p_value == pytest.approx(np.mean(tails), abs=0.01)


@pytest.mark.parametrize("n", [8, 50])
def test_p_values_are_uniform_when_nothing_differs(n):
    rng = child(10, "uniform", n)
    found = [sign_flip_test(rng.normal(size=n), rng, 199).p_value for _ in range(400)]
    assert stats.kstest(found, "uniform").pvalue > 0.001


def standardised(sizes, covered, groupings):
    """The largest standardised distance, from the definition, group by group."""
    n, share = sizes.sum(), covered.sum() / sizes.sum()
    best = -np.inf
    for grouping in groupings:
        for group in set(grouping.tolist()) - {-1}:
            inside = grouping == group
            rows = sizes[inside].sum()
            if 0 < rows < n:
                scale = np.sqrt(share * (1 - share) * (1 / rows - 1 / n))
                best = max(best, abs(covered[inside].sum() / rows - share) / scale)
    return best


CASES = [
    ([3, 3, 2], [3, 1, 0], [[0, 1, 2]]),
    ([2, 3, 2, 3], [2, 3, 1, 0], [[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 2, 3]]),
    ([4, 3, 3], [1, 3, 3], [[0, 1, -1], [1, -1, 0]]),
    ([1, 1, 8], [0, 1, 6], [[0, 1, 2]]),
]


@pytest.mark.parametrize(("sizes", "covered", "groupings"), CASES)
def test_groups_against_every_order_of_the_rows(sizes, covered, groupings):
    sizes, covered = np.array(sizes), np.array(covered)
    groupings = [np.array(grouping) for grouping in groupings]
    seen = standardised(sizes, covered, groupings)
    cell = np.repeat(np.arange(len(sizes)), sizes)
    hits = [
        standardised(sizes, np.bincount(cell[list(rows)], minlength=len(sizes)), groupings)
        >= seen - 1e-9
        for rows in combinations(range(len(cell)), int(covered.sum()))
    ]
    exact = np.mean(hits)
    result = groups_differ(sizes, covered, groupings, child(11, "groups"), 20_000)
    assert result.statistic == pytest.approx(seen, rel=1e-12)
    spread = (exact * (1 - exact) / 20_000) ** 0.5
    assert result.p_value == pytest.approx(exact, abs=4 * spread + 1e-4)


def test_the_worst_group_is_named():
    sizes = np.full(6, 100)
    covered = np.array([90, 91, 89, 90, 90, 60])
    groupings = [np.array([0, 0, 0, 1, 1, 1]), np.array([7, 3, 4, 7, 3, 9])]
    result = groups_differ(sizes, covered, groupings, child(12, "worst"), 999)
    assert (result.grouping, result.group) == (1, 9)
    assert result.p_value == 1 / 1000
    again = groups_differ(sizes, covered, groupings[::-1], child(12, "worst"), 999)
    assert (again.grouping, again.group) == (0, 9)


def test_group_p_values_are_uniform_when_groups_are_alike():
    rng = child(13, "alike")
    sizes = rng.integers(50, 300, 12)
    groupings = [np.arange(12) // 4, np.arange(12) % 4, np.arange(12)]
    found = [
        groups_differ(sizes, rng.binomial(sizes, 0.9), groupings, rng, 199).p_value
        for _ in range(400)
    ]
    assert stats.kstest(found, "uniform").pvalue > 0.001


def test_splitting_a_cell_that_no_grouping_splits_changes_nothing():
    one = groups_differ([30, 70], [29, 50], [[0, 1]], child(14, "cells"), 4999)
    two = groups_differ([30, 40, 30], [29, 30, 20], [[0, 1, 1]], child(15, "cells"), 4999)
    assert one.statistic == pytest.approx(two.statistic, rel=1e-12)
    assert one.p_value == pytest.approx(two.p_value, abs=0.005)


@pytest.mark.parametrize("scale", [1e-300, 1e200, 1e307])
def test_the_unit_of_the_differences_does_not_matter(scale):
    differences = child(19, "unit").normal(size=40)
    one = sign_flip_test(differences, child(20, "unit"))
    other = sign_flip_test(scale * differences, child(20, "unit"))
    assert one.p_value == other.p_value
    assert other.mean == pytest.approx(scale * one.mean, rel=1e-12)


def test_clusters_that_cancel_but_for_rounding_do_not_differ():
    result = sign_flip_test([0.1, 0.2, -0.3, 0.0], child(21, "cancel"), cluster=[0, 0, 0, 1])
    assert result.note == "no row differs"


def test_groups_without_an_answer_say_why():
    rng = child(16, "reason")
    for sizes, covered, groupings, note in (
        ([3, 3], [3, 3], [[0, 1]], "every row is covered"),
        ([3, 3], [0, 0], [[0, 1]], "no row is covered"),
        ([0, 0], [0, 0], [[0, 1]], "no row is at hand"),
        ([3, 3], [1, 2], [[0, 0]], "no group to compare with the rest"),
        ([3, 3], [1, 2], [[-1, -1]], "no group to compare with the rest"),
        ([3, 3], [1, 2], [], "no group to compare with the rest"),
    ):
        result = groups_differ(sizes, covered, groupings, rng)
        assert np.isnan(result.p_value)
        assert result.note == note


def test_bad_input_is_named():
    rng = child(17, "bad")
    with pytest.raises(InputError, match="differences must contain finite numbers"):
        sign_flip_test([np.nan], rng)
    with pytest.raises(InputError, match="resamples must be a whole number"):
        sign_flip_test([1.0], rng, 0)
    with pytest.raises(InputError, match="cluster must have 2 rows"):
        sign_flip_test([1.0, 2.0], rng, cluster=[0])
    with pytest.raises(InputError, match="got 4 of 3 in cell 1"):
        groups_differ([3, 3], [1, 4], [[0, 1]], rng)
    with pytest.raises(InputError, match="must be whole numbers"):
        groups_differ([3, 2.5], [1, 1], [[0, 1]], rng)
    with pytest.raises(InputError, match=r"groupings\[0\] must be whole numbers .* got 0.5"):
        groups_differ([3, 3], [1, 1], [[0, 0.5]], rng)
    with pytest.raises(InputError, match=r"groupings\[0\] must have 2 rows"):
        groups_differ([3, 3], [1, 1], [[0]], rng)
    with pytest.raises(InputError, match="resamples must be a whole number"):
        groups_differ([3, 3], [1, 1], [[0, 1]], rng, 0)


@pytest.mark.parametrize(
    ("sizes", "total"), [([4_000_000, 900_000, 30, 1], 6_000), ([50_000, 9_000, 400, 1], 30_000)]
)
@pytest.mark.parametrize("missed", [False, True])
def test_the_limit_draws_as_the_permutation(monkeypatch, sizes, total, missed):
    """Means and covariances are those of the multivariate hypergeometric law."""
    sizes, n = np.array(sizes), sum(sizes)
    total = n - total if missed else total
    monkeypatch.setattr(permutation, "_MAX_ROWS_OF_NUMPY", 1)
    drawn = permutation._covered_by_chance(child(20, "limit"), sizes, total, 40_000)
    np.testing.assert_allclose(drawn.sum(axis=1), total, rtol=1e-12)
    shares = sizes / n
    expected = (np.diag(shares) - np.outer(shares, shares)) * total * (n - total) / (n - 1)
    spread = np.sqrt(np.diag(expected))
    assert (np.abs(drawn.mean(axis=0) - total * shares) < 4 * spread / 200).all()
    off = (np.cov(drawn.T) - expected) / np.outer(spread, spread)
    assert np.abs(off).max() < 0.05


def test_groups_of_billions_are_tested():
    """Half covered more by five of its own standard deviations: no chance; none: chance."""
    half, rng = 2 * 10**12, child(22, "billions")
    step = int(5 * np.sqrt(half * 0.9 * 0.1))
    covered = int(0.9 * half)
    apart = groups_differ([half, half], [covered + step, covered - step], [[0, 1]], rng, 999)
    assert apart.p_value == 0.001
    close = groups_differ([half, half], [covered + 9, covered], [[0, 1]], rng, 999)
    assert close.p_value > 0.9


PAIRS = [(0, 1), (0, 2), (1, 2), (0, 3)]


def shared_table(rows=300):
    table = child(0, "shared flips").normal(size=(rows, 4))
    table[:, 2] += 0.15
    table[:, 3] = table[:, 0]
    return table


@pytest.mark.parametrize("weighted", ["", "frequency", "importance"])
@pytest.mark.parametrize("clustered", [False, True])
def test_pairs_on_shared_signs_agree_with_each_pair_alone(weighted, clustered):
    table, rng = shared_table(), child(1, "weights")
    mass = rng.integers(1, 4, 300) if weighted == "frequency" else rng.random(300) + 0.1
    weights = Weights.checked(mass, weighted) if weighted else None
    cluster = rng.integers(0, 40, 300) if clustered else None
    known = {"weights": weights, "cluster": cluster}
    found = sign_flip_tests(table, PAIRS, child(2, "signs"), **known)
    for (one, two), together in zip(PAIRS, found, strict=True):
        alone = sign_flip_test(table[:, one] - table[:, two], child(3, "signs"), **known)
        assert (together.method, together.units) == (alone.method, alone.units)
        assert together.mean == pytest.approx(alone.mean, abs=1e-14)
        if (one, two) == (0, 3):
            assert (together.p_value, together.note) == (
                pytest.approx(np.nan, nan_ok=True),
                alone.note,
            )
        else:
            spread = np.sqrt(2 * max(alone.p_value, 1e-3) / 9999)
            assert together.p_value == pytest.approx(alone.p_value, abs=5 * spread)


def test_shared_signs_against_every_pattern():
    table = child(4, "every pattern").normal([0.0, 0.4, 0.8], size=(16, 3))
    pairs = [(0, 1), (0, 2), (1, 2)]
    for test, (one, two) in zip(
        sign_flip_tests(table, pairs, child(5, "signs")), pairs, strict=True
    ):
        exact = enumerated_flips(table[:, one] - table[:, two])
        assert test.method == "Monte Carlo"
        assert test.p_value == pytest.approx(exact, abs=5 * np.sqrt(exact / 9999) + 1e-4)


def test_a_pair_depends_on_no_other_pair():
    table = shared_table()
    every = sign_flip_tests(table, PAIRS, child(6, "signs"))
    some = sign_flip_tests(table[:, [0, 1]], [(0, 1)], child(6, "signs"))
    assert some[0] == every[0]
    few = sign_flip_tests(table[:9], PAIRS, child(6, "signs"))
    assert few[1] == sign_flip_test(table[:9, 0] - table[:9, 2], child(6, "signs"))
    assert few[1].method == "exact"


def test_models_that_hardly_differ_keep_their_digits():
    table = shared_table()
    table[:, 3] = table[:, 1] + 1e-9 * table[:, 2]  # far from the first, near the second
    together = sign_flip_tests(table, [(0, 1), (1, 3)], child(7, "signs"))[1]
    alone = sign_flip_test(table[:, 1] - table[:, 3], child(7, "signs"))
    assert together.p_value == alone.p_value


@pytest.mark.parametrize("size", [1e9, 1e16, 1e200])
def test_one_model_that_went_astray_hides_no_difference_of_others(size):
    """Though all are compared with the first, and its digits end before theirs begin."""
    table = shared_table()
    table[:, 0] = size * (1 + np.abs(table[:, 0]))
    together = sign_flip_tests(table, [(0, 1), (1, 2)], child(8, "signs"))[1]
    alone = sign_flip_test(table[:, 1] - table[:, 2], child(8, "signs"))
    assert (together.p_value, together.units) == (alone.p_value, alone.units)


@pytest.mark.parametrize("hits", [[2, 0, 3, 1], [3, 2, 4, 0], [1, 2, 2, 2]])
def test_unequal_chances_against_every_outcome(hits):
    """Every outcome of the cells, weighed by its chance, with its surplus taken back."""
    sizes, hits = np.array([3, 2, 4, 2]), np.array(hits)
    chances = shift_shares(np.repeat([0.9, 0.6, 0.8, 0.3], sizes), hits.sum() / 11)
    chances = chances[[0, 3, 5, 9]]
    groups = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    noise = sizes * chances * (1 - chances)
    inside = groups @ noise
    spread = np.sqrt(inside * (1 - inside / noise.sum()))

    def statistic(counts):
        off = counts - sizes * chances
        return np.abs(groups @ (off - off.sum() * noise / noise.sum()) / spread).max()

    seen = statistic(hits)
    exact = sum(
        np.prod(stats.binom.pmf(counts, sizes, chances))
        for counts in product(*(range(size + 1) for size in sizes))
        if statistic(np.array(counts)) >= seen - 1e-9
    )
    codes = [[0, 0, 1, 1], [0, 1, 0, 1]]
    result = groups_differ(sizes, hits, codes, child(23, "free"), 20_000, chances=chances)
    assert result.statistic == pytest.approx(seen, rel=1e-9)
    spread = (exact * (1 - exact) / 20_000) ** 0.5
    assert result.p_value == pytest.approx(exact, abs=4 * spread + 1e-4)


def test_stages_draw_much_only_where_a_p_value_is_small():
    far = groups_differ([500, 500], [480, 400], [[0, 1]], child(24, "far"), 9_999, staged=True)
    assert (far.p_value, far.resamples) == (1e-4, 9_999)
    near = groups_differ([500, 500], [450, 451], [[0, 1]], child(24, "near"), 9_999, staged=True)
    assert near.resamples == 199
    assert near.p_value > 0.055


def test_chances_outside_their_domain_are_refused():
    with pytest.raises(InputError, match="chances must be in"):
        groups_differ([3, 3], [1, 2], [[0, 1]], child(25, "bad"), chances=[0.5, 1.5])
    sure = groups_differ([3, 3], [3, 0], [[0, 1]], child(25, "sure"), chances=[1.0, 0.0])
    assert sure.note == "every chance is 0 or 1"


def test_joint_p_values_are_those_of_all_sign_patterns() -> None:
    """Westfall and Young's steps over every pattern of nine rows."""
    table = child(20, "joint").normal(size=(9, 4)) + np.array([0.0, 0.5, 1.0, 2.0])
    pairs = list(combinations(range(4), 2))
    gaps = np.stack([table[:, a] - table[:, b] for a, b in pairs], axis=1)
    signs = np.array(list(product((-1.0, 1.0), repeat=9)))
    size = np.sqrt(np.square(gaps).sum(axis=0))
    drawn, seen = np.abs(signs @ gaps) / size, np.abs(gaps.sum(axis=0)) / size
    order = np.argsort(-seen)
    expected, least = np.empty(6), 0.0
    for step, place in enumerate(order):
        rest = order[step:]
        share = float(np.mean(drawn[:, rest].max(axis=1) >= seen[place] * (1 - 1e-9)))
        least = max(least, share)
        expected[place] = least
    alone, joint = joint_flip_tests(table, pairs, child(21, "draws"), 20_000)
    np.testing.assert_allclose(joint, expected, atol=0.015)
    exact = (drawn >= seen * (1 - 1e-9)).mean(axis=0)
    np.testing.assert_allclose(alone, exact, atol=0.015)


def test_joint_p_values_of_very_many_rows_and_of_weights() -> None:
    rng = child(22, "many")
    table = rng.normal(size=(24_000, 3))
    table[:, 2] += 0.012
    pairs = [(0, 1), (0, 2), (1, 2)]
    alone, joint = joint_flip_tests(table, pairs, child(23, "draws"), 4_999)
    for place, (a, b) in enumerate(pairs):
        t = (table[:, a] - table[:, b]).mean() / (table[:, a] - table[:, b]).std() * 24_000**0.5
        assert alone[place] == pytest.approx(2 * stats.norm.sf(abs(t)), abs=0.02)
    assert (joint >= alone).all()
    few = rng.normal(size=(40, 3))
    twice = Weights.checked(np.full(40, 2.0), "frequency", length=40)
    weighted = joint_flip_tests(few, pairs, child(24, "draws"), weights=twice)
    repeated = joint_flip_tests(np.repeat(few, 2, axis=0), pairs, child(25, "draws"))
    np.testing.assert_allclose(weighted, repeated, atol=0.05)
    equal, _ = joint_flip_tests(np.ones((30, 3)), pairs, child(26, "draws"))
    assert np.isnan(equal).all()


def test_joint_tests_of_ties_keep_their_level() -> None:
    """Any of 66 pairs of 12 tied models is proven in 5 % of the tables."""
    pairs, found = list(combinations(range(12), 2)), 0
    for trial in range(200):
        table = child(27, "tied", trial).normal(size=(60, 12))
        found += bool((joint_flip_tests(table, pairs, child(28, trial), 499)[1] < 0.05).any())
    assert found <= 200 * (0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5)
