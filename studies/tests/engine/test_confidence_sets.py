"""Means, intervals of ranks and sets of the best, against SciPy, all signs, and known truths."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import integrate, stats

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure_studies.engine.confidence_sets import (
    confidence_set,
    difference_intervals,
    mean_intervals,
    problems_needed,
    rank_intervals,
)

RNG = np.random.default_rng(0)


def t_of(differences: np.ndarray) -> float:
    """t by SciPy; infinite where all differences are one number."""
    if (differences == differences[0]).all():
        return math.copysign(math.inf, differences[0]) if differences[0] else 0.0
    return float(stats.ttest_1samp(differences, 0.0).statistic)


def pairs_by_all_signs(scores: np.ndarray) -> dict[tuple[int, int], float]:
    """Westfall and Young's step-down of the largest |t|, from its definition."""
    n, k = scores.shape
    gaps = {(i, j): scores[:, i] - scores[:, j] for i, j in itertools.combinations(range(k), 2)}
    signs = [np.array(s) for s in itertools.product([1.0, -1.0], repeat=n)]
    seen = {pair: abs(t_of(gap)) for pair, gap in gaps.items()}
    order = sorted(seen, key=lambda pair: -seen[pair])
    adjusted, running = {}, 0.0
    for place, pair in enumerate(order):
        largest = [max(abs(t_of(s * gaps[other])) for other in order[place:]) for s in signs]
        running = max(running, float(np.mean(np.array(largest) >= seen[pair] - 1e-9)))
        adjusted[pair] = running
    return adjusted


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 7])
def test_pairs_are_those_of_all_signs(n: int) -> None:
    rng = child(0, "all signs", str(n))
    scores = rng.standard_t(3, size=(n, 3)) + np.array([0.0, 1.0, 4.0])
    found = rank_intervals(scores, RNG, 0.9)
    for (i, j), p in pairs_by_all_signs(scores).items():
        assert found.p_values[i, j] == found.p_values[j, i] == pytest.approx(p)
        assert found.better[i, j] == (p <= 0.1 and scores[:, i].mean() < scores[:, j].mean())
    assert (found.lower == 1 + found.better.sum(axis=0)).all()
    assert (found.upper == 3 - found.better.sum(axis=1)).all()
    assert np.isnan(np.diag(found.p_values)).all()


def set_by_all_signs(scores: np.ndarray) -> list[float]:
    """Hansen, Lunde and Nason's elimination by T_R, with the law of all signs."""
    n, k = scores.shape
    signs = [np.array(s) for s in itertools.product([1.0, -1.0], repeat=n)]
    left, p_values, running = list(range(k)), [0.0] * k, 0.0
    while len(left) > 1:
        off = {(i, j): scores[:, i] - scores[:, j] for i in left for j in left if i != j}
        seen = {pair: t_of(each) for pair, each in off.items()}
        worst, over = max(seen, key=lambda pair: seen[pair])
        largest = np.array([max(t_of(s * each) for each in off.values()) for s in signs])
        running = max(running, float(np.mean(largest >= seen[worst, over] - 1e-9)))
        p_values[worst] = running
        left.remove(worst)
    p_values[left[0]] = 1.0
    return p_values


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 7])
def test_the_set_is_that_of_all_signs(n: int) -> None:
    rng = child(0, "set", str(n))
    scores = rng.standard_t(3, size=(n, 4)) + np.array([0.0, 0.2, 1.5, 9.0])
    found = confidence_set(scores, RNG, 0.9)
    expected = set_by_all_signs(scores)
    assert found.p_values == pytest.approx(expected)
    assert (found.member == (np.array(expected) > 0.1)).all()
    assert not found.member.all()


def test_drawn_signs_come_near_all_signs() -> None:
    scores = child(0, "near").normal(size=(12, 4)) + np.array([0.0, 0.3, 0.9, 1.2])
    several = [rank_intervals(scores, child(s, "drawn"), draws=2_000).p_values for s in (0, 1)]
    exact = rank_intervals(scores, RNG, draws=2**11).p_values
    assert 0.001 < np.nanmin(exact) < np.nanmax(exact)
    for drawn in several:
        reach = 5.0 * np.sqrt(exact * (1.0 - exact) / 2_000)
        assert (np.abs(drawn - exact) <= reach)[~np.eye(4, dtype=bool)].all()
    assert not np.array_equal(several[0], several[1], equal_nan=True)


def test_means_and_differences_have_the_t_intervals_of_scipy() -> None:
    scores = child(0, "means").normal(size=(9, 3))
    scores[2, 0] = scores[4:6, 1] = np.nan
    found, pairs = mean_intervals(scores, 0.9), difference_intervals(scores, 0.9)
    for i in range(3):
        own = scores[~np.isnan(scores[:, i]), i]
        low, high = stats.ttest_1samp(own, 0.0).confidence_interval(0.9)
        assert (found.mean[i], found.lower[i], found.upper[i]) == pytest.approx(
            (own.mean(), low, high)
        )
        assert (found.sd[i], found.problems[i]) == (pytest.approx(own.std(ddof=1)), len(own))
    both = ~np.isnan(scores[:, :2]).any(axis=1)
    low, high = stats.ttest_rel(*scores[both, :2].T).confidence_interval(0.9)
    assert (pairs.lower[0, 1], pairs.upper[0, 1]) == pytest.approx((low, high))
    assert pairs.problems[0, 1] == both.sum() == 6
    assert pairs.mean == pytest.approx(-pairs.mean.T)


def test_a_mean_of_one_problem_has_no_interval_and_of_none_no_value() -> None:
    found = mean_intervals([[1.0, np.nan, 2.0], [2.0, np.nan, np.nan]])
    assert found.mean[2] == 2.0
    assert math.isnan(found.lower[2])
    assert math.isnan(found.sd[2])
    assert math.isnan(found.mean[1])


def test_a_gap_of_one_number_needs_six_problems() -> None:
    """All signs alike have probability 2^(1−n)."""
    for n, apart in ((5, False), (6, True)):
        scores = np.tile([0.0, 1.0], (n, 1))
        found = rank_intervals(scores, RNG)
        assert found.p_values[0, 1] == 2.0 ** (1 - n)
        assert (found.lower[1] == 2) == apart
        assert confidence_set(scores, RNG).p_values[1] == 2.0 ** (1 - n)


def test_methods_of_one_column_are_alike() -> None:
    scores = child(0, "alike").normal(size=(20, 3)) + np.array([0.0, 0.0, 2.0])
    scores = np.column_stack((scores, scores[:, [0, 2]]))
    found, best = rank_intervals(scores, child(0, "a")), confidence_set(scores, child(0, "b"))
    assert found.p_values[0, 3] == found.p_values[2, 4] == 1.0
    assert (found.lower[[0, 2]] == found.lower[[3, 4]]).all()
    assert best.p_values[0] == best.p_values[3]
    assert best.p_values[2] == best.p_values[4] < 0.05
    same = confidence_set(np.zeros((20, 3)), RNG)
    assert (same.p_values == 1.0).all()
    assert (rank_intervals(np.zeros((20, 3)), RNG).upper == 3).all()


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_units_and_what_a_problem_adds_change_nothing(unit: float) -> None:
    rng = child(0, "units")
    scores = rng.normal(size=(15, 4)) + np.array([0.0, 0.5, 1.0, 2.0])
    ease = 1e3 * rng.normal(size=(15, 1))
    for found, other in (
        (f(scores, child(1, "x")), f(unit * (scores + ease), child(1, "x")))
        for f in (rank_intervals, confidence_set)
    ):
        assert other.p_values == pytest.approx(found.p_values, nan_ok=True)


def test_missing_scores_leave_pairs_their_common_problems() -> None:
    scores = child(0, "missing").normal(size=(10, 3)) + np.array([0.0, 6.0, 1.0])
    scores[:2, 1] = np.nan
    found = rank_intervals(scores, RNG)
    alone = rank_intervals(scores[2:, :2], RNG)
    assert found.better[0, 1]
    assert found.p_values[0, 1] >= alone.p_values[0, 1] == 2.0**-7
    best = confidence_set(scores, RNG)
    assert best.compared.tolist() == [True, False, True]
    assert not best.member[1]
    assert best.p_values[[0, 2]] == pytest.approx(confidence_set(scores[:, [0, 2]], RNG).p_values)


def test_methods_without_a_common_problem_are_not_told_apart() -> None:
    scores = np.full((20, 2), np.nan)
    scores[:10, 0], scores[10:, 1] = 0.0, 9.0
    found = rank_intervals(scores, RNG)
    assert found.p_values[0, 1] == 1.0
    assert found.upper.tolist() == [2, 2]
    assert not confidence_set(scores, RNG).compared.any()


def t_beyond(n: int, shift: float) -> float:
    """P(|T| > t(0.975)) as an integral over the law of the sample's standard deviation."""
    cut = stats.t.ppf(0.975, n - 1)

    def part(s: float) -> float:
        tails = stats.norm.sf(cut * s - shift) + stats.norm.cdf(-cut * s - shift)
        density = stats.chi.pdf(s * math.sqrt(n - 1), n - 1) * math.sqrt(n - 1)
        return float(tails * density)

    return float(integrate.quad(part, 0.0, 1.0)[0] + integrate.quad(part, 1.0, math.inf)[0])


@pytest.mark.parametrize(("gap", "power"), [(5.0, 0.8), (-1.0, 0.8), (0.5, 0.95), (0.2, 0.5)])
def test_the_number_of_problems_is_the_first_with_that_power(gap: float, power: float) -> None:
    n = problems_needed(2.0, 2.0 * gap, power)
    assert t_beyond(n, math.sqrt(n) * abs(gap)) >= power
    assert n == 2 or t_beyond(n - 1, math.sqrt(n - 1) * abs(gap)) < power


def test_many_problems_follow_the_normal_law() -> None:
    z = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert problems_needed(1.0, 1e-3) == pytest.approx((z / 1e-3) ** 2, rel=1e-4)
    assert problems_needed(0.0, 1.0) == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: problems_needed(1.0, 0.0), "gap must be"),
        (lambda: problems_needed(-1.0, 1.0), "sd must be"),
        (lambda: problems_needed(1.0, 1.0, 1.0), "power must"),
        (lambda: rank_intervals(np.zeros((1, 3)), RNG), "at least 2 problems by 2 methods"),
        (lambda: confidence_set(np.zeros(4), RNG), "at least 2 problems by 2 methods"),
        (lambda: rank_intervals([[0.0, math.inf], [0.0, 1.0]], RNG), "must not be infinite"),
        (lambda: mean_intervals(np.zeros((3, 2)), 95), "confidence must"),
        (lambda: rank_intervals(np.zeros((3, 2)), RNG, draws=10), "draws must be at least 100"),
    ],
)
def test_what_cannot_be_answered_is_said(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def noise(kind: str, rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    if kind == "normal":
        return rng.normal(size=(n, k))
    if kind == "heavy":
        return rng.standard_t(3, size=(n, k)) * np.geomspace(0.3, 3.0, k)
    loads = child(0, "loads").normal(size=(3, k))
    return rng.normal(size=(n, 3)) @ loads + 0.5 * rng.normal(size=(n, k))


TRUTHS: dict[str, Callable[[int], np.ndarray]] = {
    "all alike": np.zeros,
    "half alike": lambda k: np.where(np.arange(k) < k // 2, 0.0, 0.5 * np.arange(k)),
    "near": lambda k: 0.05 * np.arange(k),
    "apart": lambda k: 0.5 * np.arange(k),
}
"""True means: ranks are wrong most easily where methods are alike, or nearly."""


def misses(kind: str, truth: str, n: int, k: int, times: int, draws: int) -> tuple[int, int]:
    """How often some true rank is outside its interval, and some best method outside the set."""
    means = TRUTHS[truth](k)
    first = 1 + (means[:, None] < means).sum(axis=0)
    last = k - (means[:, None] > means).sum(axis=0)
    best = means == means.min()
    ranks = sets = 0
    rng = child(0, "rates", kind, truth, f"{n} {k}")
    for _ in range(times):
        scores = noise(kind, rng, n, k) + means
        found = rank_intervals(scores, rng, draws=draws)
        ranks += bool((found.lower > first).any() or (found.upper < last).any())
        sets += not confidence_set(scores, rng, draws=draws).member[best].all()
    return ranks, sets


def check_rates(kind: str, truth: str, n: int, k: int, times: int, draws: int) -> None:
    """At most 5 %, up to what chance gives once in 10,000; where all are alike, about 5 %."""
    most = stats.binom.ppf(0.9999, times, 0.05)
    ranks, sets = misses(kind, truth, n, k, times, draws)
    assert max(ranks, sets) <= most
    if truth == "all alike":
        assert min(ranks, sets) >= stats.binom.ppf(0.0001, times, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["all alike", "near"])
def test_ranks_and_the_best_are_covered(truth: str) -> None:
    check_rates("normal", truth, 15, 5, times=400, draws=200)


@pytest.mark.rate
@pytest.mark.parametrize("k", [5, 20])
@pytest.mark.parametrize("n", [15, 30])
@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("kind", ["normal", "heavy", "correlated"])
def test_ranks_and_the_best_are_covered_at_full_rates(
    kind: str, truth: str, n: int, k: int
) -> None:
    check_rates(kind, truth, n, k, times=2_000, draws=400)
