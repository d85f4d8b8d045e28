"""Intervals: kept as given, found by their coverage, never derived."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.predictions import Intervals

SETTINGS = examples(60)


@SETTINGS
@given(st.permutations([0.5, 0.8, 0.9, 0.99]), st.integers(1, 4), st.integers(1, 6))
def test_each_coverage_finds_its_columns(order: list[float], c: int, n: int) -> None:
    """Whatever the order in which the columns came."""
    shares = order[:c]
    lower = -np.outer(np.arange(1, n + 1), shares)
    prediction = Intervals(lower, -lower, shares)
    assert prediction.n == n
    assert prediction.coverages == tuple(sorted(shares))
    for column, share in enumerate(shares):
        low, high = prediction.interval(share)
        np.testing.assert_array_equal(low, lower[:, column])
        np.testing.assert_array_equal(high, -lower[:, column])
    rows = np.arange(n)[::-1]
    np.testing.assert_array_equal(prediction.take(rows).interval(shares[0])[0], lower[::-1, 0])
    assert prediction.take(rows).coverages == prediction.coverages


def test_a_coverage_that_was_not_given_is_unanswerable() -> None:
    prediction = Intervals([0.0], [1.0], 0.9)
    with pytest.raises(UnanswerableError, match=r"given at coverage 0\.9, not 0\.8"):
        prediction.interval(0.8)
    with pytest.raises(UnanswerableError, match="coverage of the intervals is unknown"):
        Intervals([0.0], [1.0]).interval(0.9)
    for coverage in (np.nan, 90, 0.0, 1.0):
        with pytest.raises(InputError, match="coverage must be strictly between 0 and 1"):
            prediction.interval(coverage)
    for ask in (
        prediction.sd,
        lambda: prediction.quantile([0.5]),
        lambda: prediction.cdf(np.zeros(1)),
    ):
        with pytest.raises(UnanswerableError, match="intervals have no"):
            ask()


def test_the_point_is_the_middle_of_the_narrowest() -> None:
    prediction = Intervals([[0.0, -4.0]], [[2.0, 9.0]], [0.5, 0.9])
    assert prediction.point().tolist() == [1.0]
    assert Intervals([-1.5e308], [1.7e308]).point().tolist() == pytest.approx([1e307])
    for low, high in [(-np.inf, 0.0), (0.0, np.inf), (-np.inf, np.inf)]:
        with pytest.raises(UnanswerableError, match="unbounded"):
            Intervals([low], [high]).point()


@pytest.mark.parametrize(
    ("lower", "upper", "coverage", "said"),
    [
        ([2.0], [1.0], 0.9, "lower must not exceed upper"),
        ([0.0], [1.0, 2.0], 0.9, "upper must have 1 rows, got 2"),
        ([np.nan], [1.0], 0.9, "lower must contain no missing values"),
        ([np.inf], [np.inf], 0.9, r"lower must not be \+inf"),
        ([-np.inf], [-np.inf], 0.9, "upper must not be -inf"),
        ([[0.0, 0.0]], [[1.0, 1.0]], None, "coverage must be given for 2 columns"),
        ([[0.0, 0.0]], [[1.0, 1.0]], 0.9, r"one number per column \(2\); got 1"),
        ([[0.0, 0.0]], [[1.0, 1.0]], [0.9, 0.9], "distinct numbers"),
        ([0.0], [1.0], 90, "between 0 and 1"),
        ([0.0], [1.0], "x", "coverage must contain real numbers"),
        ([0.0], [1.0], [[0.9], [0.8, 0.7]], "coverage must be one rectangular array"),
        ([[0.0, 0.0]], [1.0], [0.8, 0.9], "upper must have 2 columns, got 1"),
        ([], [], 0.9, "at least one row"),
    ],
)
def test_intervals_that_are_none_are_named(
    lower: Any, upper: Any, coverage: Any, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        Intervals(lower, upper, coverage)


def test_a_prediction_travels() -> None:
    prediction = pickle.loads(pickle.dumps(Intervals([0.0], [1.0], 0.9)))
    assert prediction.interval(0.9)[1].tolist() == [1.0]
    assert prediction == prediction
    assert hash(prediction) is not None


def test_swapped_ends_are_told() -> None:
    with pytest.raises(InputError, match=r"got 2 crossed .*; lower and upper look swapped"):
        Intervals([1.0, 2.0], [0.0, 1.0])
    with pytest.raises(InputError) as error:
        Intervals([1.0, 2.0], [0.0, 3.0])
    assert "swapped" not in str(error.value)
    with pytest.raises(InputError, match=r"got \[90.0\]; did you mean 0\.9\?"):
        Intervals([0.0], [1.0], 90)
