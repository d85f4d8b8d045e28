"""A right table of quantiles is judged at the coverages that it gives."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

import howsure
from howsure.core.rng import child

N = 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("levels", "coverage"),
    [
        ((0.025, 0.25, 0.5, 0.75, 0.975), 0.95),
        ((0.1, 0.5, 0.9), 0.8),
        ((0.05, 0.25, 0.5, 0.75, 0.95), 0.9),
        ((0.01, 0.03, 0.5, 0.97, 0.99), 0.94),
    ],
)
def test_a_right_model_is_not_condemned_for_levels_between_those_given(
    levels: tuple[float, ...], coverage: float
) -> None:
    """Interpolated between 2.5 % and 25 %, a right 5 % quantile lies too low: 93 %, not 90 %."""
    y = child(0, "right quantiles").normal(size=N)
    table = np.tile(norm.ppf(levels), (N, 1))
    result = howsure.assess(
        y, howsure.Quantiles(levels, table), options=howsure.Options(trials=False)
    )
    (found,) = (f for f in result.findings if f.id == "coverage")
    assert found.state == "good"
    assert result.record("empirical_coverage").coverage == pytest.approx(coverage)


def test_a_coverage_that_is_asked_for_is_interpolated_as_before() -> None:
    y = child(0, "right quantiles").normal(size=N)
    levels = (0.025, 0.25, 0.5, 0.75, 0.975)
    table = np.tile(norm.ppf(levels), (N, 1))
    result = howsure.assess(
        y, howsure.Quantiles(levels, table), coverage=0.9, options=howsure.Options(trials=False)
    )
    low = norm.ppf(0.025) + (0.05 - 0.025) / 0.225 * (norm.ppf(0.25) - norm.ppf(0.025))
    assert result.value("empirical_coverage") == pytest.approx(1 - 2 * norm.cdf(low), abs=0.006)
