"""Formulas of intervals and points against loops written from the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from generated import examples
from howsure.topics import coverage, point

VALUES = st.floats(-1e6, 1e6, allow_nan=False)
TABLE = st.integers(1, 30).flatmap(
    lambda n: st.tuples(*(arrays(np.float64, n, elements=VALUES) for _ in range(3)))
)


@examples(150)
@given(TABLE)
def test_rows_match_the_definitions(table: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    y, a, b = table
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    for i in range(len(y)):
        inside = lower[i] <= y[i] <= upper[i]
        near = min(abs(y[i] - lower[i]), abs(y[i] - upper[i]))
        assert coverage.covered(y, lower, upper)[i] == inside
        assert coverage.missed_below(y, lower)[i] == (y[i] < lower[i])
        assert coverage.missed_above(y, upper)[i] == (y[i] > upper[i])
        assert coverage.excess(y, lower, upper)[i] == (near if inside else 0.0)
        assert coverage.deficit(y, lower, upper)[i] == (0.0 if inside else near)
        assert coverage.bandwidth(lower, upper)[i] == (upper[i] - lower[i]) / 2
    n = len(y)
    misses = coverage.missed_below(y, lower).sum() + coverage.missed_above(y, upper).sum()
    assert coverage.covered(y, lower, upper).sum() + misses == n


def test_median_width_of_weights_and_infinity() -> None:
    lower, upper = np.zeros(4), np.array([1.0, 2.0, 3.0, 10.0])
    assert coverage.median_width(lower, upper).value == 2.5
    weights = np.array([1.0, 1.0, 1.0, 4.0])
    assert coverage.median_width(lower, upper, weights=weights).value == 10.0
    unbounded = coverage.median_width(np.zeros(3), np.array([1.0, np.inf, np.inf]))
    assert unbounded.value == math.inf
    assert unbounded.reason


def test_median_width_standard_error_is_that_of_a_median() -> None:
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(200):
        found = coverage.median_width(np.zeros(400), rng.exponential(size=400))
        assert found.influence is not None
        values.append(found.value)
        errors.append(float(np.sqrt(np.mean(found.influence**2) / 400)))
    truth = 0.5 / (0.5 * math.sqrt(400))  # sd of a median: 1 / (2 f(m) √n), f(m) = 1/2
    assert np.std(values) == pytest.approx(truth, rel=0.15)
    assert np.mean(errors) == pytest.approx(truth, rel=0.15)


def test_constant_y_has_no_spread() -> None:
    found = coverage.normalised_width(np.ones(3), np.zeros(3), np.ones(3))
    assert math.isnan(found.value)
    assert "constant" in found.reason
    assert math.isnan(point.r_squared(np.ones(3), np.arange(3.0)).value)


def test_points_match_scikit_learn() -> None:
    from sklearn import metrics

    rng = np.random.default_rng(1)
    y, forecast, weights = rng.normal(size=50), rng.normal(size=50), rng.integers(1, 5, 50) * 1.0
    assert point.r_squared(y, forecast, weights=weights).value == pytest.approx(
        metrics.r2_score(y, forecast, sample_weight=weights), abs=1e-12
    )
    assert point.root_mean_squared_error(y, forecast, weights=weights).value == pytest.approx(
        metrics.root_mean_squared_error(y, forecast, sample_weight=weights), abs=1e-12
    )
