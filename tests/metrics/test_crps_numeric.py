"""CRPS of any law through its cumulative probabilities, against sums and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from howsure.core.errors import InputError
from howsure.topics.crps_closed import crps_normal
from howsure.topics.crps_numeric import crps_lattice, crps_numeric
from oracles import scores as oracle

LATTICE = [
    stats.poisson(0.3),
    stats.poisson(2.5e3),
    stats.binom(12, 0.3),
    stats.binom(100_000, 0.2),
    stats.nbinom(0.2, 0.01),
    stats.geom(0.05),
    stats.randint(-3, 90),
    stats.randint(0, 5000),
]


@pytest.mark.parametrize("law", LATTICE, ids=lambda law: f"{law.dist.name}{law.args}")
@pytest.mark.parametrize("spread", [1.0, 0.02, 50.0])
def test_the_lattice_score_is_the_sum_over_counts(law: Any, spread: float) -> None:
    low, high = int(law.ppf(1e-15)) - 6, int(law.isf(1e-15)) + 6
    y = np.append(law.ppf([0.01, 0.5, 0.8]), [low + 1.0, high - 2.0, low + 0.25])
    got = crps_lattice(y, lambda values, rows: law.cdf(values), np.full(len(y), law.std() * spread))
    want = [oracle.crps_counts(law.cdf, value, low - 1, high + 1) for value in y]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-12)


def test_a_lattice_wider_than_any_sum() -> None:
    """A uniform law on a billion numbers: Σ is (N² − 1)/6N plus the distance terms."""
    n = 10.0**9
    y = np.array([0.0, 3e8])
    got = crps_lattice(
        y, lambda values, rows: np.clip((values + 1) / n, 0.0, 1.0), np.full(2, n / 4)
    )
    below = y * (y + 1) / (2 * n)
    above = (n - 1 - y) * (n - y) / (2 * n)
    np.testing.assert_allclose(got, below + above - (n**2 - 1) / (6 * n), rtol=1e-6)


def test_a_score_that_does_not_exist_is_missing() -> None:
    got = crps_numeric([0.0], lambda values, rows: special.stdtr(0.4, values), [1.0])
    assert np.isnan(got[0])


def test_a_law_narrower_than_a_float_is_a_point() -> None:
    def cdf(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (values >= 5.0).astype(float)

    np.testing.assert_allclose(crps_numeric([5.0, 7.0], cdf, [0.0, 0.0]), [0.0, 2.0], atol=1e-12)


def test_rows_keep_their_own_law_across_blocks() -> None:
    n = 9000
    rng = np.random.default_rng(4)
    mean, sd = rng.normal(size=n) * 100, rng.gamma(1.0, 1.0, n) + 1e-3
    y = mean + sd * rng.normal(size=n)

    def cdf(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return special.ndtr((values - mean[rows, None]) / sd[rows, None])

    got = crps_numeric(y, cdf, sd)
    np.testing.assert_allclose(got, crps_normal(y, mean, sd), rtol=1e-6)


def test_a_negative_spread_is_named() -> None:
    with pytest.raises(InputError, match="spread must not be negative"):
        crps_numeric([1], lambda values, rows: values, [-1])
