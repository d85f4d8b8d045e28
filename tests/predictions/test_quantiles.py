"""Quantiles: interpolated between the given levels, never beyond them."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.predictions import Quantiles

SETTINGS = examples(80)
LEVELS = [0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975]


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[float], np.ndarray]:
    levels = draw(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=7, unique=True))
    n = draw(st.integers(1, 4))
    values = draw(
        st.lists(
            st.lists(st.floats(-1e6, 1e6), min_size=len(levels), max_size=len(levels)),
            min_size=n,
            max_size=n,
        )
    )
    return sorted(levels), np.sort(np.array(values), axis=1)


@SETTINGS
@given(tables(), st.lists(st.floats(0.001, 0.999), min_size=1, max_size=4))
def test_interpolation_is_that_of_numpy(
    table: tuple[list[float], np.ndarray], wanted: list[float]
) -> None:
    levels, values = table
    prediction = Quantiles(levels, values)
    if min(wanted) < levels[0] or max(wanted) > levels[-1]:
        with pytest.raises(UnanswerableError, match="not extrapolated"):
            prediction.quantile(wanted)
        return
    expected = [np.interp(wanted, levels, row) for row in values]
    np.testing.assert_allclose(prediction.quantile(wanted), expected, rtol=1e-9, atol=1e-9)


@SETTINGS
@given(tables(), st.randoms(use_true_random=False))
def test_given_levels_return_given_values(
    table: tuple[list[float], np.ndarray], random: Any
) -> None:
    """Exactly, whatever the order in which the columns came."""
    levels, values = table
    order = list(range(len(levels)))
    random.shuffle(order)
    prediction = Quantiles([levels[i] for i in order], values[:, order])
    np.testing.assert_array_equal(prediction.quantile(levels), values)
    assert prediction.crossed_rows == 0
    rows = np.arange(prediction.n)[::-1]
    np.testing.assert_array_equal(prediction.take(rows).quantile(levels), values[::-1])


def test_intervals_are_nested_and_central() -> None:
    prediction = Quantiles(LEVELS, np.sort(np.random.default_rng(0).normal(size=(50, 7)), axis=1))
    ends = [prediction.interval(coverage) for coverage in (0.2, 0.5, 0.8, 0.95)]
    for inner, outer in pairwise(ends):
        assert (outer[0] <= inner[0]).all()
        assert (inner[1] <= outer[1]).all()
    np.testing.assert_array_equal(ends[1][0], prediction.values[:, 2])
    np.testing.assert_array_equal(ends[3][1], prediction.values[:, 6])
    with pytest.raises(UnanswerableError, match=r"0.025 to 0.975"):
        prediction.interval(0.99)
    np.testing.assert_array_equal(prediction.point(), prediction.values[:, 3])


def test_no_median_no_point() -> None:
    with pytest.raises(UnanswerableError):
        Quantiles([0.9], [[1.0]]).point()


def test_reversed_levels_and_turned_tables_are_told() -> None:
    table = np.sort(np.random.default_rng(0).normal(size=(5, 3)), axis=1)
    with pytest.raises(InputError, match=r"cross in 5 rows .* give levels\[::-1\]"):
        Quantiles([0.9, 0.5, 0.1], table)
    square = np.array([[7.0, 8.0, 9.0], [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(InputError, match=r"look transposed: give values\.T$"):
        Quantiles([0.1, 0.5, 0.9], square.T)


def test_crossing_rows_are_refused_or_sorted() -> None:
    table = [[1.0, 2.0, 3.0], [3.0, 2.0, 2.0], [1.0, 1.0, 1.0]]
    with pytest.raises(InputError, match=r"they cross in 1 row \(first at row 1\); .*"):
        Quantiles([0.1, 0.5, 0.9], table)
    prediction = Quantiles([0.1, 0.5, 0.9], table, crossing="sort")
    assert prediction.crossed_rows == 1
    with pytest.raises(InputError, match="crossing='sort'"):
        Quantiles([0.1, 0.5, 0.9], table)
    assert prediction.values.tolist() == [[1.0, 2.0, 3.0], [2.0, 2.0, 3.0], [1.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("levels", "values", "said"),
    [
        ([0.1, 0.1], [[1.0, 2.0]], "levels must increase strictly"),
        ([-0.1, 0.5], [[1.0, 2.0]], "levels must be strictly between 0 and 1"),
        ([5, 95], [[1.0, 2.0]], "levels must be strictly between 0 and 1"),
        ([np.nan], [[1.0]], "levels must contain finite numbers"),
        (["a"], [[1.0]], "levels must contain real numbers"),
        ([[0.1, 0.5], [0.2, 0.6]], [[1.0, 2.0]], "levels must have one dimension"),
        ([0.1, 0.5], [[1.0]], "quantiles must have 2 columns, got 1"),
        (
            [0.1, 0.5],
            [[1.0] * 3, [2.0] * 3],
            r"shape \(2, 3\)\); they look transposed: .* values.T",
        ),
        (
            [[1.0, 2.0]] * 3,
            [0.1, 0.5],
            r"the levels are the first argument: Quantiles\(levels, values\).*\(3, 2\)",
        ),
        ([1.0, 2.0, 3.0], [0.5], r"the levels are the first argument: Quantiles\(levels, values\)"),
        ([5, 95], [[1.0, 2.0]], r"got \[5.0, 95.0\]; did you mean 0\.05, 0\.95\?"),
        ([0.5], [[np.inf]], "quantiles must contain finite numbers"),
    ],
)
def test_quantiles_that_are_none_are_named(levels: Any, values: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Quantiles(levels, values)
    with pytest.raises(InputError, match="crossing must be 'error' or 'sort'"):
        Quantiles([0.5], [[1.0]], crossing="maybe")  # type: ignore[arg-type]


@pytest.mark.parametrize("wanted", [[np.nan], [0.0], [1.0], [50], ["a"]])
def test_levels_asked_for_are_checked(wanted: Any) -> None:
    with pytest.raises(InputError, match="levels"):
        Quantiles([0.1, 0.9], [[1.0, 2.0]]).quantile(wanted)


def test_a_prediction_travels() -> None:
    prediction = pickle.loads(pickle.dumps(Quantiles([0.5], [[1.0]])))
    assert prediction.point().tolist() == [1.0]
    assert prediction == prediction
