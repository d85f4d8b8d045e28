"""The conformal core against its exact laws and against the definitions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.conformal import (
    Band,
    Offset,
    Scaled,
    Score,
    calibrate,
    conformal_rank,
    conformal_threshold,
    rows_needed,
)
from howsure.conformal.ranks import coverage_range, level_ranks, order_statistics, repetitions
from howsure.conformal.scores import LowerEnd, UpperEnd
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.core.weights import Weights

SCORES: list[Score] = [Offset(), LowerEnd(), UpperEnd(), Scaled()]


def bands(rng: np.random.Generator, n: int, at: float = 0.0, unit: float = 1.0) -> Band:
    """Bands of varied widths, the centre off the middle."""
    center = rng.normal(size=n)
    lower, upper = center - rng.uniform(0.2, 2.0, n), center + rng.uniform(0.2, 2.0, n)
    return Band(at + unit * lower, at + unit * upper, at + unit * center)


@pytest.mark.parametrize("percent", [1, 5, 7, 10, 29, 32, 50, 57, 80, 90, 95, 99])
def test_ranks_in_exact_arithmetic(percent: int) -> None:
    coverage = Fraction(percent, 100)
    for n in [*range(1, 400), 999, 1000, 1288, 2000, 6116, 1164, 2702, 2797, 999_999, 10**8 - 1]:
        assert conformal_rank(n, float(coverage)) == math.ceil((n + 1) * coverage)
        assert conformal_rank(n, float(coverage), "paper") == math.floor(n * coverage) + 1


def test_the_two_ranks_differ_at_the_sizes_known() -> None:
    sizes = [2000, 1288, 6116, 1164, 2702, 2797]
    gaps = [conformal_rank(n, 0.9) - conformal_rank(n, 0.9, "paper") for n in sizes]
    assert gaps == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95, 0.99, 2 / 3])
def test_rows_needed_is_the_first_size_with_a_finite_threshold(coverage: float) -> None:
    first = next(n for n in range(1, 1000) if conformal_rank(n, coverage) <= n)
    assert rows_needed(coverage) == first


def test_level_ranks_mirror_and_round_outward() -> None:
    levels = np.array([0.01, 0.025, 0.1, 0.35, 0.5, 0.65, 0.9, 0.975, 0.99])
    for n in range(1, 300):
        low, high = level_ranks(levels, n)
        assert (low + high[::-1] == n + 1).all()
        exact = [Fraction(str(level)) * (n + 1) for level in levels]
        assert low[:5].tolist() == [math.floor(place) for place in exact[:5]]
        assert high[4:].tolist() == [math.ceil(place) for place in exact[4:]]


def test_a_threshold_is_exact_unless_rows_weigh_by_importance() -> None:
    scores = np.arange(1.0, 20.0)
    for kind in ("frequency", "importance"):
        threshold = conformal_threshold(scores, 0.9, weights=Weights(np.full(19, 2.0), kind))
        assert threshold.exact == (kind == "frequency")
    assert conformal_threshold(scores, 0.9).exact


def test_coverage_range_is_that_of_the_beta_law() -> None:
    low, high = coverage_range(90, 99, confidence=0.8)
    law = stats.beta(90, 10)
    assert low == pytest.approx(law.ppf(0.1))
    assert high == pytest.approx(law.ppf(0.9))
    assert coverage_range(100, 99) == (1.0, 1.0)


@examples(100)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=12),
    st.data(),
)
def test_weighted_order_statistics_are_those_of_repeated_rows(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    scores = np.array([score for score, _ in rows], dtype=float)
    counts = np.array([count for _, count in rows], dtype=float)
    repeated = np.sort(np.repeat(scores, counts.astype(int)))
    rank = data.draw(st.integers(1, len(repeated)))
    weights = repetitions(Weights.checked(counts))
    assert order_statistics(scores, np.array([rank]), weights)[0] == repeated[rank - 1]
    assert order_statistics(repeated, np.array([rank]))[0] == repeated[rank - 1]


def test_importance_weights_count_up_to_kish() -> None:
    weights = Weights.checked([0.5, 0.5, 1.0], "importance")
    counts = repetitions(weights)
    assert counts is not None
    assert counts.sum() == pytest.approx(weights.effective_n)


@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
def test_region_is_what_scores_at_most_the_threshold(score: Score) -> None:
    rng = child(0, "region", type(score).__name__)
    band = bands(rng, 200)
    for threshold in [0.0, 0.4, 1.7] if isinstance(score, Scaled) else [-0.3, 0.0, 1.2]:
        y = rng.normal(scale=3, size=200)
        lower, upper = score.region(band, threshold)
        assert ((score.score(y, band) <= threshold) == ((lower <= y) & (y <= upper))).all()


@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
@pytest.mark.parametrize(("at", "unit"), [(0.0, 1.0), (1e6, 1e-3), (-3e8, 1.0)])
def test_calibration_rows_captured_are_as_many_as_the_rank(
    score: Score, at: float, unit: float
) -> None:
    rng = child(1, "captured", type(score).__name__, at)
    for trial in range(30):
        n = 20 + trial
        band = bands(rng, n, at, unit)
        y = band.center + unit * rng.normal(size=n)
        threshold = calibrate(score, y, band, 0.8)
        lower, upper = score.region(band, threshold.value)
        assert ((lower <= y) & (y <= upper)).sum() == threshold.rank


@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
def test_thresholds_do_not_depend_on_the_order_of_rows(score: Score) -> None:
    rng = child(2, "order")
    band, y = bands(rng, 60), rng.normal(size=60)
    rows = rng.permutation(60)
    shuffled = calibrate(score, y[rows], band.take(rows), 0.9)
    assert shuffled == calibrate(score, y, band, 0.9)


def coverage_counts(rank_rule: str, n: int, m: int, repeats: int) -> np.ndarray:
    """How many of m fresh rows each calibrated threshold covers."""
    rng = child(3, "law", n)
    counts = np.empty(repeats, dtype=int)
    for trial in range(repeats):
        band = bands(rng, n + m)
        y = rng.standard_t(3, size=n + m)
        held_out, fresh = np.arange(n), np.arange(n, n + m)
        threshold = calibrate(Offset(), y[:n], band.take(held_out), 0.9, rule=rank_rule)
        lower, upper = Offset().region(band.take(fresh), threshold.value)
        counts[trial] = ((lower <= y[n:]) & (y[n:] <= upper)).sum()
    return counts


def p_value(counts: np.ndarray, law: Any, m: int) -> float:
    """Chi-squared test of counts against a law on 0…m, cells of at least 5 expected."""
    expected = law.pmf(np.arange(m + 1)) * len(counts)
    cell = np.floor(np.cumsum(expected) / 25).astype(int)
    seen = np.bincount(cell[counts], minlength=cell.max() + 1)
    wanted = np.bincount(cell, weights=expected, minlength=cell.max() + 1)
    keep = wanted > 0
    return float(stats.chisquare(seen[keep], wanted[keep] * seen.sum() / wanted.sum()).pvalue)


def test_fresh_rows_covered_follow_the_beta_binomial_law() -> None:
    n, m = 28, 40
    counts = coverage_counts("conformal", n, m, 3000)
    assert p_value(counts, stats.betabinom(m, 27, n + 1 - 27), m) > 0.01
    assert p_value(counts, stats.betabinom(m, 26, n + 1 - 26), m) < 1e-6


def test_the_papers_rank_follows_its_own_law_and_covers_too_little() -> None:
    n, m = 28, 40
    counts = coverage_counts("paper", n, m, 3000)
    assert p_value(counts, stats.betabinom(m, 26, n + 1 - 26), m) > 0.01
    assert counts.mean() / m == pytest.approx(26 / 29, abs=0.006)


def test_too_few_rows_are_infinite_or_refused() -> None:
    zero = np.zeros(8)
    band = Band(zero, zero, zero)
    threshold = calibrate(Offset(), np.arange(8.0), band, 0.9)
    assert threshold.value == math.inf
    assert threshold.expected_coverage == 1.0
    with pytest.raises(InputError, match=r"coverage 0\.9 needs 9; got 8"):
        calibrate(Offset(), np.arange(8.0), band, 0.9, too_few="error")
    nine = calibrate(Offset(), np.arange(9.0), Band(*[np.zeros(9)] * 3), 0.9)
    assert (nine.value, nine.expected_coverage) == (8.0, 0.9)


def test_a_scale_without_width_is_out_of_reach() -> None:
    zero = np.zeros(30)
    assert Scaled().score(np.array([0.0, 1.0]), Band(*[np.zeros(2)] * 3)).tolist() == [0, math.inf]
    threshold = calibrate(Scaled(), np.ones(30), Band(zero, zero, zero), 0.9)
    assert threshold.value == math.inf
    with pytest.raises(InputError, match="width 0"):
        calibrate(Scaled(), np.ones(30), Band(zero, zero, zero), 0.9, too_few="error")


def test_unbounded_intervals_teach_no_offset() -> None:
    low, high = np.full(30, -np.inf), np.full(30, np.inf)
    with pytest.raises(InputError, match="bounded"):
        calibrate(Offset(), np.ones(30), Band(low, high, np.zeros(30)), 0.9)


@pytest.mark.parametrize(
    ("coverage", "options", "word"),
    [
        (90, {}, "coverage"),
        (0.9, {"rule": "numpy"}, "rank"),
        (0.9, {"too_few": "cut"}, "too_few"),
    ],
)
def test_bad_choices_are_refused(coverage: float, options: dict[str, str], word: str) -> None:
    with pytest.raises(InputError, match=word):
        calibrate(Offset(), np.ones(30), Band(*[np.zeros(30)] * 3), coverage, **options)
