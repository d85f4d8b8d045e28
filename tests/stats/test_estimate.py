"""Errors and intervals from influence values, against brute force, Hall's cubic and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from howsure.core.rng import child
from howsure.core.weights import Weights
from howsure.stats.estimate import (
    heavy,
    like_rows,
    one_more,
    quantile_statistic,
    share_ends,
    skewed_ends,
    spread_of,
    standard_error,
)


def jackknifed(values: np.ndarray, weights: np.ndarray, unit: np.ndarray) -> float:
    """√((G − 1)/G Σ (θ₋g − θ)²) of a weighted mean, each unit left out in turn."""
    whole = np.average(values, weights=weights)
    labels = np.unique(unit)
    without = [np.average(values[unit != g], weights=weights[unit != g]) for g in labels]
    masses = np.array([weights[unit == g].sum() for g in labels])
    count = masses.sum() ** 2 / np.square(masses).sum()
    return math.sqrt((1 - 1 / count) * np.square(np.array(without) - whole).sum())


def test_clusters_and_importance_weights_are_jackknifed() -> None:
    rng = child(1, "spread")
    values, unit = rng.normal(size=60), rng.integers(0, 7, 60)
    weights = rng.uniform(0.2, 3.0, 60)
    for w, cluster in ((np.ones(60), unit), (weights, unit), (weights, None)):
        held = Weights(w, "importance")
        psi = values - np.average(values, weights=w)
        own = np.arange(60) if cluster is None else cluster
        want = jackknifed(values, w, own)
        assert standard_error(psi, held, cluster) == pytest.approx(want, rel=1e-12)


def test_a_group_is_a_table_of_its_own() -> None:
    rng = child(2, "spread")
    psi, cluster, group = rng.normal(size=90), rng.integers(0, 9, 90), rng.integers(0, 3, 90)
    for codes in (None, cluster):
        every = spread_of(psi, None, codes, group, 3)
        for g in range(3):
            rows = group == g
            alone = spread_of(psi[rows], None, None if codes is None else codes[rows])
            for name in ("error", "skew", "units", "degrees"):
                assert getattr(every, name)[g] == pytest.approx(getattr(alone, name)[0], rel=1e-12)


def test_a_frequency_weight_is_a_row_repeated() -> None:
    rng = child(3, "spread")
    psi, copies = rng.normal(size=20), rng.integers(0, 4, 20)
    one = spread_of(psi, Weights(copies.astype(float)))
    other = spread_of(np.repeat(psi, copies))
    for name in ("error", "skew", "units", "degrees"):
        assert getattr(one, name)[0] == pytest.approx(getattr(other, name)[0], rel=1e-12)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_ends_solve_halls_cubic(side: float) -> None:
    """g(t) = t + kt²/3 + k²t³/27 + k/6 of t = (value − end)/error is a quantile of t."""
    psi = side * child(4, "cubic").gamma(2.0, size=80)
    psi -= psi.mean()
    spread = spread_of(psi)
    k = 1.25 * float(np.sum(psi**3) / np.sum(psi**2) ** 1.5)
    error = float(np.std(psi, ddof=1) / math.sqrt(80))
    assert spread.skew[0] == pytest.approx(k / 1.25, rel=1e-12)
    low, high = (float(end[0]) for end in skewed_ends(5.0, spread, 0.9))
    for end, tail in ((low, 0.95), (high, 0.05)):
        z = stats.t.ppf(tail, 79)

        def off(t: float, z: float = z) -> float:
            return t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6 - z

        assert (5.0 - end) / error == pytest.approx(optimize.brentq(off, -20, 20), rel=1e-9)


def test_ends_of_terms_without_skew_are_students() -> None:
    psi = np.array([-2.0, -1.0, 1.0, 2.0])
    reach = stats.t.ppf(0.975, 3) * np.std(psi, ddof=1) / 2
    low, high = skewed_ends(0.0, spread_of(psi), 0.95)
    assert (low[0], high[0]) == pytest.approx((-reach, reach), rel=1e-9)


@pytest.mark.parametrize("n", [20, 100])
def test_intervals_of_skewed_means_hold(n: int) -> None:
    """Means of χ²₁, whose intervals by Student's t hold in 90 and 93 % (Johnson 1978)."""
    rng = child(5, "skewed")
    tables, held, plain = 1_500, 0, 0
    for _ in range(tables):
        terms = np.square(rng.normal(size=n))
        low, high = skewed_ends(terms.mean(), spread_of(terms - terms.mean()), 0.95)
        held += bool(low[0] <= 1.0 <= high[0])
        reach = stats.t.ppf(0.975, n - 1) * terms.std(ddof=1) / math.sqrt(n)
        plain += abs(terms.mean() - 1.0) <= reach
    allowed = 3 * math.sqrt(0.95 * 0.05 / tables)
    assert abs(held / tables - 0.95) < allowed + 0.01
    assert held > plain


@pytest.mark.parametrize("n", [3, 5, 12])
def test_intervals_of_few_normal_rows_hold(n: int) -> None:
    rng, held, tables = child(9, "few"), 0, 2_000
    for _ in range(tables):
        terms = rng.normal(size=n)
        low, high = skewed_ends(terms.mean(), spread_of(terms - terms.mean()), 0.95)
        held += bool(low[0] <= 0.0 <= high[0])
    assert abs(held / tables - 0.95) < 3 * math.sqrt(0.95 * 0.05 / tables) + 0.01


def test_a_clustered_share_without_misses_has_an_upper_end() -> None:
    """Each of G clusters counts as one row: 1 − (α/2)^{1/G}."""
    cluster = np.repeat(np.arange(20), 50)
    spread = spread_of(np.zeros(1_000), None, cluster)
    low, high = share_ends(np.zeros(1), spread, np.array([1_000.0]), 0.95)
    assert (low[0], high[0]) == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)), rel=1e-9)
    rows = like_rows(np.array([0.3]), np.array([0.05]), np.array([1e3]), np.array([21.0]), 0.95)
    ratio = stats.t.ppf(0.975, 999) / stats.t.ppf(0.975, 20)
    assert rows[0] == pytest.approx(0.21 / 0.05**2 * ratio**2, rel=1e-9)


def test_tails_are_too_heavy_where_the_variance_of_squares_is_infinite() -> None:
    rng = child(6, "heavy")
    found = {
        name: np.mean([bool(heavy(np.square(draw(n)))) for _ in range(300)])
        for n in (100, 1_000)
        for name, draw in (
            (f"normal {n}", lambda n: rng.normal(size=n)),
            (f"t3 {n}", lambda n: rng.standard_t(3, size=n)),
        )
    }
    assert max(found["normal 100"], found["normal 1000"]) < 0.05 + 3 * math.sqrt(0.0475 / 300)
    assert found["t3 1000"] > 0.95
    assert found["t3 100"] > 0.4


def test_the_tail_index_is_hills() -> None:
    squares = child(7, "hill").pareto(1.2, size=500) + 1.0
    ranked = np.sort(squares)[::-1]
    index = 1.0 / np.log(ranked[:50] / ranked[50]).mean()
    assert f"tail index of their squares {index:.1f}" in heavy(squares)
    copies = child(7, "copies").integers(0, 4, 500)
    assert heavy(squares, copies.astype(float)) == heavy(np.repeat(squares, copies))


def test_one_more_row_moves_a_mean_as_it_would() -> None:
    values = child(8, "more").normal(size=400)
    mean = values.mean()
    low, high = one_more(values - mean)
    assert low == pytest.approx(np.append(values, values.min()).mean() - mean, rel=1e-9)
    assert high == pytest.approx(np.append(values, values.max()).mean() - mean, rel=1e-9)
    few = np.r_[np.zeros(99), 100.0]
    assert one_more(few - 1.0)[1] == pytest.approx(8 * 99.0 / 101.0, rel=1e-9)


def test_a_quantile_is_the_mean_of_the_values_that_qualify() -> None:
    values = np.array([9.0, 1.0, 4.0, 2.0])
    assert quantile_statistic(values, 0.5).value == 3.0
    assert quantile_statistic(values, 0.6).value == 4.0
    weights = np.array([1.0, 3.0, 0.0, 2.0])
    repeated = np.repeat(values, weights.astype(int))
    assert quantile_statistic(values, 0.5, weights=weights).value == np.median(repeated)


def test_a_quantile_of_too_many_infinite_values_is_told_with_the_reason() -> None:
    found = quantile_statistic(np.array([1.0, 2.0, np.inf]), 0.9)
    assert (found.value, found.influence) == (math.inf, None)
    assert "infinite at level 0.9" in found.reason


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_error_of_a_quantile_is_that_of_the_density(level: float) -> None:
    """√(p(1 − p)/n) / f(q), averaged over samples, for which the spread of values is noisy."""
    rng, n = child(0, "quantile error"), 2000
    errors = []
    for _ in range(60):
        influence = quantile_statistic(rng.normal(size=n), level).influence
        assert influence is not None
        errors.append(np.sqrt(np.square(influence).mean() / n))
    wanted = math.sqrt(level * (1 - level) / n) / stats.norm.pdf(stats.norm.ppf(level))
    assert np.mean(errors) == pytest.approx(wanted, rel=0.1)
