"""Laws of the congruence worlds, and the exact distance of two laws, against direct sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from howsure.core.errors import InputError
from howsure.metrics.congruence import Draws, Mixtures, Normals, Support
from howsure.predictions import Distribution
from howsure.studies.congruence.worlds import FallingCounts, draw_wave, law_distance, wave_law


def table_at(x: float) -> np.ndarray:
    """p(k) ∝ (λᵏ/k!)⁵ for k = 0, …, 79, by direct sums."""
    k = np.arange(80.0)
    logs = np.array([np.log(np.arange(1.0, n + 1)).sum() for n in range(80)])
    scores = 5.0 * (k * np.log(max(10.0 * np.sin(x) + 10.0, 1e-9)) - logs)
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def test_wave_is_as_published() -> None:
    x, y, _ = draw_wave(3, 60)
    law = wave_law(x)
    tables = np.stack([table_at(at) for at in x])
    below = (30 - y).astype(int)
    mass = tables[np.arange(60), below]
    above = np.array([row[at:].sum() for row, at in zip(tables, below, strict=True)])
    np.testing.assert_allclose(np.exp(law.log_density(y)), mass, atol=1e-9)
    np.testing.assert_allclose(law.cdf(y), above, atol=1e-9)
    np.testing.assert_allclose(law.cdf_left(y), above - mass, atol=1e-9)
    np.testing.assert_allclose(law.point(), 30 - tables @ np.arange(80.0), atol=1e-8)
    spread = tables @ np.arange(80.0) ** 2 - (tables @ np.arange(80.0)) ** 2
    np.testing.assert_allclose(law.sd(), np.sqrt(spread), atol=1e-4)
    draws = law.sample(np.random.default_rng(0), 2000)
    np.testing.assert_allclose(draws.mean(axis=1), law.point(), atol=0.25)
    assert law.discrete


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.floats(0.0, 6.28), st.floats(1e-6, 1.0 - 1e-6))
def test_wave_quantiles_are_the_smallest_that_reach_their_level(x: float, level: float) -> None:
    law = wave_law(np.array([x]))
    (found,) = law.quantile([level])[:, 0]
    assert law.cdf(np.array([found]))[0] >= level - 1e-9
    assert law.cdf(np.array([found - 1.0]))[0] < level + 1e-9


def test_wave_takes_parameters_of_one_column() -> None:
    law = wave_law(np.array([0.5, 2.0]))
    wide = {name: value[:, None] for name, value in law.parameters.items()}
    values = np.array([[10.0, 12.0, 14.0], [9.0, 11.0, 13.0]])
    found = law.law.log_density(values, wide)
    for column in range(3):
        np.testing.assert_allclose(found[:, column], law.log_density(values[:, column]))


def test_a_fractional_top_is_refused() -> None:
    with pytest.raises(InputError, match="top must be whole"):
        Distribution(FallingCounts(), {"mu": [1.0], "nu": 1.0, "top": 2.5})


def test_distance_of_normal_laws_by_integration() -> None:
    gamma = 0.7

    def mean(m1: float, s1: float, m2: float, s2: float) -> float:
        wide = np.hypot(s1, s2)
        law = lambda d: np.exp(-0.5 * ((d - m1 + m2) / wide) ** 2) / wide / np.sqrt(2 * np.pi)  # noqa: E731
        return float(integrate.quad(lambda d: law(d) * np.exp(-gamma * d * d), -30, 30)[0])

    one, two = (0.3, 1.2), (1.0, 0.4)
    squared = mean(*one, *one) - 2.0 * mean(*one, *two) + mean(*two, *two)
    found = law_distance(Normals([one[0]], [one[1]]), Normals([two[0]], [two[1]]), gamma)
    assert found[0] == pytest.approx(np.sqrt(squared), abs=1e-7)


def test_distance_of_listed_laws_and_mixtures_by_sums() -> None:
    p, q = np.array([[0.2, 0.5, 0.3]]), np.array([[0.6, 0.4]])
    a, b = np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0])
    kernel = lambda u, v: np.exp(-0.5 * np.subtract.outer(u, v) ** 2)  # noqa: E731
    squared = p @ kernel(a, a) @ p.T - 2 * p @ kernel(a, b) @ q.T + q @ kernel(b, b) @ q.T
    found = law_distance(Support(a, p), Support(b, q), 0.5)
    assert found[0] == pytest.approx(float(np.sqrt(squared[0, 0])))
    points = Mixtures(p, a[None], np.full((1, 3), 1e-9))
    assert law_distance(points, Support(b, q), 0.5)[0] == pytest.approx(found[0])
    assert law_distance(Support(a, p), Support(a, p), 0.5)[0] == pytest.approx(0.0, abs=1e-7)


def test_distance_refuses_what_it_cannot_take() -> None:
    one = Normals([0.0], [1.0])
    with pytest.raises(InputError, match="gamma must be above 0"):
        law_distance(one, one, 0.0)
    with pytest.raises(InputError, match="second must have 1 rows"):
        law_distance(one, Normals([0.0, 1.0], [1.0, 1.0]), 1.0)
    with pytest.raises(InputError, match="belief must be"):
        law_distance(one, Draws([0.0]), 1.0)
