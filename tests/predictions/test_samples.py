"""Samples: quantiles by ranks among m + 1 places, so that a perfect ensemble covers as it says."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.predictions import Samples

SETTINGS = examples(80)
ensembles = st.lists(st.lists(st.integers(-9, 9), min_size=5, max_size=5), min_size=1, max_size=5)


def by_rank(draws: list[float], level: Fraction) -> float:
    """The draw of rank (m + 1)p from the definition, in exact arithmetic."""
    ordered = sorted(Fraction(draw) for draw in draws)
    rank = (len(draws) + 1) * level
    below = int(rank)
    if rank == below:
        return float(ordered[below - 1])
    share = rank - below
    return float(ordered[below - 1] * (1 - share) + ordered[below] * share)


@SETTINGS
@given(ensembles, st.integers(1, 99))
def test_quantiles_from_the_definition(table: list[list[float]], percent: int) -> None:
    prediction = Samples(table)
    level = Fraction(percent, 100)
    if not Fraction(1, 6) <= level <= Fraction(5, 6):
        with pytest.raises(UnanswerableError, match="5 samples per row reach levels from"):
            prediction.quantile([float(level)])
        return
    expected = [by_rank(row, level) for row in table]
    np.testing.assert_allclose(prediction.quantile([float(level)])[:, 0], expected, atol=1e-12)


@SETTINGS
@given(ensembles, st.integers(-10, 10), st.randoms(use_true_random=False))
def test_places_of_y_from_the_definition(table: list[list[int]], y: int, random: Any) -> None:
    """And the order of the draws does not matter."""
    truth = np.full(len(table), float(y))
    prediction = Samples(table)
    below = [sum(draw < y for draw in row) / 6 for row in table]
    upto = [(1 + sum(draw <= y for draw in row)) / 6 for row in table]
    assert prediction.cdf_left(truth).tolist() == pytest.approx(below)
    assert prediction.cdf(truth).tolist() == pytest.approx(upto)
    assert (prediction.cdf_left(truth) < prediction.cdf(truth)).all()
    for row in table:
        random.shuffle(row)
    np.testing.assert_array_equal(Samples(table).sorted_samples, prediction.sorted_samples)


def test_a_perfect_ensemble_covers_as_it_says() -> None:
    """Where empirical quantiles of ten members would cover 75.8 % in place of 90 %."""
    rng = np.random.default_rng(0)
    n = 100_000
    y, nine, ten = rng.normal(size=n), rng.normal(size=(n, 9)), rng.normal(size=(n, 10))
    low, high = Samples(nine).interval(0.8)
    seen = ((low <= y) & (y <= high)).mean()
    assert abs(seen - 0.8) < 4 * np.sqrt(0.8 * 0.2 / n)
    naive = np.quantile(ten, [0.05, 0.95], axis=1)
    assert abs(((naive[0] <= y) & (y <= naive[1])).mean() - 0.758) < 0.006
    with pytest.raises(UnanswerableError, match=r"10 samples per row reach coverages up to 0.8182"):
        Samples(ten).interval(0.9)
    place = Samples(nine)
    middle = (place.cdf(y) + place.cdf_left(y)) / 2
    assert np.unique(middle).tolist() == pytest.approx([(k + 0.5) / 10 for k in range(10)])
    counts = np.unique(middle, return_counts=True)[1]
    assert np.abs(counts - n / 10).max() < 4 * np.sqrt(n * 0.09)


def test_moments_and_draws() -> None:
    table = np.random.default_rng(0).normal(size=(6, 7))
    prediction = Samples(table)
    np.testing.assert_allclose(prediction.point(), [np.mean(row) for row in table])
    np.testing.assert_allclose(prediction.sd(), [np.std(row, ddof=1) for row in table])
    draws = prediction.sample(np.random.default_rng(1), 500)
    assert draws.shape == (6, 500)
    for row, drawn in zip(table, draws, strict=True):
        assert set(drawn) == set(row)
    assert prediction.size == 7
    np.testing.assert_array_equal(
        prediction.take(np.array([4, 0])).sorted_samples, np.sort(table[[4, 0]], axis=1)
    )
    again = pickle.loads(pickle.dumps(prediction))
    np.testing.assert_array_equal(again.sorted_samples, prediction.sorted_samples)
    with pytest.raises(UnanswerableError, match="one sample per row gives no standard deviation"):
        Samples([1.0, 2.0]).sd()


@pytest.mark.parametrize(
    ("value", "said"),
    [([[np.nan]], "finite"), ([[np.inf]], "finite"), ([], "at least one row"), ("a", "real")],
)
def test_samples_that_are_none_are_named(value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Samples(value)


@pytest.mark.parametrize("wanted", [[np.nan], [0.0], [1.0], [50], ["a"]])
def test_levels_asked_for_are_checked(wanted: Any) -> None:
    with pytest.raises(InputError, match="levels"):
        Samples([[1.0, 2.0, 3.0]]).quantile(wanted)
