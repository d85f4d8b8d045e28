"""Ranks of methods over common problems, against SciPy, tables and enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.core.records import Direction
from howsure_studies.engine.ranks import (
    cliques,
    compare_ranks,
    critical_difference,
    friedman,
    method_ranks,
    nemenyi,
    wilcoxon_holm,
)
from oracles.conditional import friedman_by_hand

DEMSAR_05 = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)
DEMSAR_10 = (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920)
"""Critical values of Demšar (2006), table 5(a), for two to ten methods."""

DEMSAR_SCORES = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.9749],  # told apart by the printed ranks, not by three digits
        [0.957, 0.978, 0.946, 0.970],
    ]
)
"""AUC of C4.5 and three variants on 14 data sets: Demšar (2006), table 6."""


def scores(n: int = 20, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)) + np.array([0.0, 0.1, 1.0, 2.0, 2.1])


@pytest.mark.parametrize(("confidence", "table"), [(0.95, DEMSAR_05), (0.9, DEMSAR_10)])
def test_critical_values_are_the_published_ones(confidence: float, table: tuple[float]) -> None:
    for k, value in enumerate(table, start=2):
        n = 10
        q = critical_difference(k, n, confidence) / math.sqrt(k * (k + 1) / (6 * n))
        assert q == pytest.approx(value, abs=1.1e-3)  # table 5 is truncated in places


def test_the_published_example() -> None:
    """Mean ranks 3.143, 2.000, 2.893, 1.964; F = 3.69; CD 1.25 at 5 %, 1.12 at 10 %."""
    ranks = method_ranks(DEMSAR_SCORES, Direction.HIGHER).mean(axis=0)
    assert ranks == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    n, k = DEMSAR_SCORES.shape
    untied = 12 * n / (k * (k + 1)) * (np.square(ranks).sum() - k * (k + 1) ** 2 / 4)
    assert untied == pytest.approx(9.28, abs=0.005)  # the paper leaves ties uncorrected
    assert (n - 1) * untied / (n * (k - 1) - untied) == pytest.approx(3.69, abs=0.005)
    assert friedman(DEMSAR_SCORES).chi_square > untied
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, 0.9) == pytest.approx(1.12, abs=0.005)
    found = compare_ranks(
        DEMSAR_SCORES,
        ["C4.5", "+m", "+cf", "+m+cf"],
        direction=Direction.HIGHER,
        method="nemenyi",
        confidence=0.9,
    )
    assert found.different[0, 1]  # 3.143 − 2.000 > 1.12, as the paper says
    assert found.different[0, 3]  # 3.143 − 1.964 > 1.12
    assert not found.different[1, 2]


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(3, 6), st.booleans())
@examples(60)
def test_friedman_by_hand_with_and_without_ties(seed: int, n: int, k: int, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (n, k)) * 1.0 if tied else rng.normal(size=(n, k))
    found = friedman(table)
    if (table == table[:, :1]).all():
        assert math.isnan(found.chi_square)
        return
    by_hand = friedman_by_hand(table)
    assert found.chi_square == pytest.approx(by_hand, rel=1e-9)
    assert found.p_value == pytest.approx(stats.chi2.sf(by_hand, k - 1), rel=1e-6, abs=1e-12)
    if n * (k - 1) - by_hand > 1e-6:
        f = (n - 1) * by_hand / (n * (k - 1) - by_hand)
        assert found.f == pytest.approx(f, rel=1e-6)
        assert found.f_p_value == pytest.approx(
            stats.f.sf(f, k - 1, (k - 1) * (n - 1)), rel=1e-6, abs=1e-12
        )


def test_perfect_agreement_is_infinitely_far_from_chance() -> None:
    found = friedman(np.tile([1.0, 2.0, 3.0], (5, 1)))
    assert (found.f, found.f_p_value) == (math.inf, 0.0)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_ties_and_zeros_are_exact_over_all_signs(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        d = rng.integers(-2, 4, n).astype(float)
        some = d[d != 0]
        ranks = stats.rankdata(np.abs(some))
        signs = np.array(list(itertools.product([0, 1], repeat=len(some))))
        sums, own = signs @ ranks, ranks[some > 0].sum()
        brute = min(1.0, 2 * min((sums <= own + 1e-9).mean(), (sums >= own - 1e-9).mean()))
        assert wilcoxon_holm(np.column_stack((d, np.zeros(n))))[0, 1] == pytest.approx(brute)


def test_wilcoxon_is_exact_and_holm_adjusted() -> None:
    table = scores(8)[:, :3]
    raw = {}
    for i, j in itertools.combinations(range(3), 2):
        gaps = table[:, i] - table[:, j]
        ranks = stats.rankdata(np.abs(gaps))
        seen = ranks[gaps > 0].sum()
        sums = [ranks[np.array(signs) > 0].sum() for signs in itertools.product([-1, 1], repeat=8)]
        tail = min(np.mean(np.array(sums) <= seen), np.mean(np.array(sums) >= seen))
        raw[i, j] = min(1.0, 2 * tail)
    found = wilcoxon_holm(table)
    order = sorted(raw, key=lambda pair: raw[pair])
    running = 0.0
    for place, pair in enumerate(order):
        running = max(running, min(1.0, (3 - place) * raw[pair]))
        assert found[pair] == pytest.approx(running)
        assert found[pair[::-1]] == found[pair]
    assert np.isnan(np.diag(found)).all()


def test_equal_methods_are_never_told_apart() -> None:
    table = scores(12)
    table[:, 1] = table[:, 0]
    assert wilcoxon_holm(table)[0, 1] == 1.0
    for method in ("wilcoxon-holm", "nemenyi"):
        found = compare_ranks(table, list("abcde"), method=method)
        assert not found.different[0, 1]
        assert found.shared_ranks[0] == found.shared_ranks[1] == 1


def test_nemenyi_rejects_exactly_past_its_critical_difference() -> None:
    for n in (5, 11, 30):
        table = scores(n)
        ranks = method_ranks(table).mean(axis=0)
        far = np.abs(ranks[:, None] - ranks) > critical_difference(5, n)
        p_values = nemenyi(ranks, n)
        assert ((p_values < 0.05) == far).all()


def test_shared_ranks_count_the_methods_that_are_better() -> None:
    found = compare_ranks(scores(40), list("abcde"))
    assert found.friedman.f_p_value < 1e-6
    assert found.shared_ranks.tolist() == [1, 1, 3, 4, 4]
    assert found.cliques == ((0, 1), (3, 4)) or found.cliques == ((1, 0), (4, 3))
    higher = compare_ranks(-scores(40), list("abcde"), direction=Direction.HIGHER)
    assert higher.shared_ranks.tolist() == found.shared_ranks.tolist()
    assert higher.mean_ranks == pytest.approx(found.mean_ranks)


def test_nobody_is_told_apart_where_friedman_finds_nothing() -> None:
    rng = np.random.default_rng(3)
    table = rng.normal(size=(10, 4))
    found = compare_ranks(table, list("abcd"), method="nemenyi")
    assert found.friedman.f_p_value > 0.05
    assert found.shared_ranks.tolist() == [1, 1, 1, 1]
    assert len(found.cliques) == 1
    assert not compare_ranks(np.ones((5, 3)), list("abc")).different.any()
    open_ = compare_ranks(scores(4), list("abcde"), gate=False)
    assert not open_.different.any()  # four problems: p of at least 1/8


@given(st.integers(0, 10_000), st.integers(2, 7))
@examples(60)
def test_cliques_are_the_largest_sets_not_told_apart(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    ranks = rng.normal(size=k)
    apart = np.triu(rng.random((k, k)) < 0.5, 1)
    apart = apart | apart.T
    legal = [
        set(chosen)
        for size in range(2, k + 1)
        for chosen in itertools.combinations(range(k), size)
        if not apart[np.ix_(chosen, chosen)].any()
    ]
    largest = [chosen for chosen in legal if not any(chosen < other for other in legal)]
    found = cliques(ranks, apart)
    assert sorted(map(sorted, found)) == sorted(map(sorted, largest))
    for members in found:
        assert (np.diff(ranks[list(members)]) >= 0).all()


def test_the_table_holds_what_was_found() -> None:
    found = compare_ranks(scores(40), list("abcde"), method="nemenyi")
    table = found.table()
    assert (np.diff(table.columns["mean_rank"]) >= 0).all()
    assert table.columns["critical_difference"][0] == pytest.approx(critical_difference(5, 40))
    for number, clique in enumerate(found.cliques, start=1):
        inside = table.columns["method"][table.columns[f"clique_{number}"]]
        assert set(inside) == {found.names[i] for i in clique}
    assert "40 problems" in table.notes


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: friedman(np.ones((5, 2))), "at least 3 methods"),
        (lambda: friedman([[1.0, math.nan, 2.0], [1.0, 2.0, 3.0]]), "finite"),
        (lambda: wilcoxon_holm(np.ones((5, 1))), "at least 2 methods"),
        (lambda: compare_ranks(scores(), ["a"]), "names must have one method per column"),
        (lambda: compare_ranks(scores(), list("abcde"), method="tukey"), "method must be"),
        (lambda: compare_ranks(scores(), list("abcde"), confidence=95), "confidence must be"),
        (lambda: method_ranks(scores(), Direction.TARGET), "direction must be"),
        (lambda: critical_difference(1, 5), "at least 2 methods"),
        (lambda: nemenyi([1.0, 2.0], 0), "at least 2 methods"),
        (lambda: cliques([1.0, 2.0], np.array([[0, 1], [0, 0]])), "must be symmetric"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], match: str) -> None:
    with pytest.raises(InputError, match=match):
        call()
