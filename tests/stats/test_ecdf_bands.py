"""Bands of uniform samples, and the test, against simulation and exact probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.stats import ecdf
from howsure.stats.ecdf import (
    grid_sums,
    pointwise_band,
    simultaneous_band,
    uniformity_of_counts,
    uniformity_test,
)

GRID = np.arange(1, 20) / 20


def test_pointwise_band_leaves_out_at_most_the_tails() -> None:
    for n, confidence in itertools.product([1, 7, 100, 12_345], [0.5, 0.95, 0.999]):
        band = pointwise_band(n, GRID, confidence=confidence)
        law = stats.binom(n, GRID)
        low, high = np.round(band.lower * n), np.round(band.upper * n)
        tail = (1 - confidence) / 2
        assert (law.cdf(low - 1) < tail).all()
        assert (law.cdf(low) >= tail * (1 - 1e-6)).all()
        assert (law.sf(high) < tail).all()
        assert (law.sf(high - 1) >= tail * (1 - 1e-6)).all()


def test_band_of_one_point_is_the_exact_binomial_one() -> None:
    """At one grid point nothing is simultaneous: the narrowest band that holds the confidence."""
    for n, confidence in itertools.product([7, 300, 2000], [0.6, 0.9, 0.99]):
        band = simultaneous_band(n, [0.5], confidence=confidence)
        low, high = np.round(band.lower * n), np.round(band.upper * n)

        def inside(low: np.ndarray, high: np.ndarray, n: int = n) -> float:
            return float(stats.binom.cdf(high, n, 0.5)[0] - stats.binom.cdf(low - 1, n, 0.5)[0])

        assert inside(low, high) >= confidence > inside(low + 1, high - 1)


def test_band_of_two_points_has_the_exact_probability() -> None:
    """Two points of a small sample: the multinomial can be summed in full."""
    n, grid = 30, np.array([0.3, 0.6])
    band = simultaneous_band(n, grid, confidence=0.9)
    inside = 0.0
    for first in range(n + 1):
        for second in range(first, n + 1):
            seen = np.array([first, second]) / n
            if ((seen >= band.lower) & (seen <= band.upper)).all():
                inside += stats.multinomial.pmf(
                    [first, second - first, n - second], n, [0.3, 0.3, 0.4]
                )
    assert 0.9 <= inside <= 0.96  # counts are whole, so it may hold more
    gamma = band.gamma
    assert ecdf._probability_inside(gamma, n, (0.3, 0.6)) == pytest.approx(inside, abs=1e-13)


@pytest.mark.parametrize("n", [50, 500])
def test_band_holds_uniform_samples_as_often_as_it_says(n: int) -> None:
    grid, replicates = np.arange(1, 100) / 100, 2000
    band = simultaneous_band(n, grid, confidence=0.95)
    rng = np.random.default_rng(n)
    inside = 0
    for _ in range(replicates):
        values = rng.random(n)
        seen = grid_sums(values, values, grid) / len(values)
        inside += bool(((seen >= band.lower) & (seen <= band.upper)).all())
    assert inside / replicates == pytest.approx(0.95, abs=4 * 0.005)


@pytest.mark.parametrize("n", [1, 3, 40])
def test_probabilities_inside_are_those_of_walks(n: int) -> None:
    """By the definition: a count grows by Binomial(n − count, share of what is left of [0, 1])."""
    grid = (0.07, 0.2, 0.5, 0.55, 0.9)
    for gamma in (1e-9, 1e-3, 0.1, 0.7, 1.0):
        reach = {0: 1.0}
        before = 0.0
        for point in grid:
            share = (point - before) / (1 - before)
            grown: dict[int, float] = {}
            for count, mass in reach.items():
                for more in range(n - count + 1):
                    tail = min(
                        stats.binom.cdf(count + more, n, point),
                        stats.binom.sf(count + more - 1, n, point),
                    )
                    if 2 * tail >= gamma * (1 - 1e-9):
                        step = mass * stats.binom.pmf(more, n - count, share)
                        grown[count + more] = grown.get(count + more, 0.0) + step
            reach, before = grown, point
        ours = ecdf._probability_inside(gamma, n, grid)
        assert ours == pytest.approx(sum(reach.values()), abs=1e-12)


@pytest.mark.parametrize("n", [60_000, 300_000])
def test_probabilities_of_large_samples_are_carried_on(n: int) -> None:
    grid = tuple((np.arange(1, 100) / 100).tolist())
    for gamma in (1e-6, 2.3e-3, 0.02):
        exact = 1 - ecdf._probability_on_path(gamma, n, grid)
        ours = 1 - ecdf._probability_inside(gamma, n, grid)
        assert ours == pytest.approx(exact, rel=0.02)


def test_band_is_symmetric_fixed_and_shrinks() -> None:
    band = simultaneous_band(400, GRID)
    np.testing.assert_allclose(band.lower, 1 - band.upper[::-1], atol=1e-12)
    again = simultaneous_band(400, GRID)
    assert again.gamma == band.gamma
    wider = simultaneous_band(400, GRID, confidence=0.99)
    assert (wider.lower <= band.lower).all()
    assert wider.gamma < band.gamma < 0.05
    large = simultaneous_band(40_000, GRID)
    ratio = (large.upper - large.lower) / (band.upper - band.lower)
    np.testing.assert_allclose(ratio, 0.1, atol=0.02)


@pytest.mark.slow
def test_uniformity_test_agrees_with_the_band_and_keeps_its_level() -> None:
    grid = np.arange(1, 100) / 100
    rng = np.random.default_rng(5)
    p_values = []
    for n in (20, 300):
        band = simultaneous_band(n, grid, confidence=0.95)
        for _ in range(400):
            values = rng.random(n) ** rng.choice([1.0, 1.0, 1.3])
            seen = grid_sums(values, values, grid) / len(values)
            inside = ((seen >= band.lower) & (seen <= band.upper)).all()
            assert inside == (uniformity_test(values).p_value > 0.05)
        p_values += [uniformity_test(rng.random(n)).p_value for _ in range(1000)]
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(p_values) <= level) == pytest.approx(level, abs=0.045)


def test_uniformity_test_sees_what_it_should_and_goes_far_down() -> None:
    rng = np.random.default_rng(6)
    assert uniformity_test(rng.beta(0.8, 0.8, 3000)).p_value < 1e-4
    far = uniformity_test(rng.random(20_000) ** 2)
    assert 0.0 <= far.p_value < 1e-50
    assert far.p_value == pytest.approx(99 * far.gamma)
    assert uniformity_test(np.zeros(3)).p_value < 1e-3
    assert uniformity_test(np.ones(3)).p_value < 1e-3


def test_uniformity_test_counts_weights_as_rows() -> None:
    rng = np.random.default_rng(7)
    values, weights = rng.random(200), rng.integers(0, 4, 200)
    counts = grid_sums(values, values, np.arange(1, 100) / 100, weights)
    weighted = uniformity_of_counts(counts, int(weights.sum()))
    repeated = uniformity_test(np.repeat(values, weights))
    assert weighted.n == repeated.n
    assert weighted.p_value == pytest.approx(repeated.p_value, abs=1e-12)


def test_large_samples_cost_no_more() -> None:
    """Past some size the probability is carried on, so a hundred million rows fit."""
    band = simultaneous_band(100_000_000, np.arange(1, 100) / 100)
    assert band.gamma == pytest.approx(simultaneous_band(1_000_000, band.grid).gamma, rel=0.15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simultaneous_band(0, [0.5]), "n must be a whole number"),
        (lambda: simultaneous_band(10, [0.0, 0.5]), "grid must increase strictly and be"),
        (lambda: simultaneous_band(10, [0.5], confidence=95), "confidence must be"),
        (lambda: pointwise_band(2.5, [0.5]), "n must be a whole number"),
        (lambda: uniformity_test([0.5, 1.5]), r"pit must be in \[0, 1\].*first at row 1: 1.5"),
        (lambda: uniformity_test([0.5, np.nan]), "pit must contain finite numbers"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_huge_samples_have_a_band() -> None:
    band = simultaneous_band(10**15, [0.25, 0.5, 0.75])
    z = stats.norm.isf(band.gamma / 2)
    np.testing.assert_allclose(
        band.upper - band.grid, z * np.sqrt(band.grid * (1 - band.grid) / 1e15), rtol=1e-4
    )
    assert 0.015 < band.gamma < 0.05
