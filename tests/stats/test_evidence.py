"""Evidence against its definition, by brute force and by simulation."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import signal, special, stats

from howsure.core.rng import child
from howsure.stats.binomial import clopper_pearson
from howsure.stats.ecdf import legendre
from howsure.stats.evidence import (
    BETS,
    FIRST,
    RATE,
    SIZES,
    Bounds,
    Side,
    bennett,
    by_closed_testing,
    change_point,
    evidence,
    mean_bets,
    mean_bound,
    mixed_bets,
    mixed_capital,
    values_needed,
    worth_of,
)

COVERAGE = Bounds(variance=0.09, lowest=-0.9, highest=0.1)
SPREAD = Bounds(variance=1.0, lowest=-math.sqrt(5.0) / 2.0, highest=math.sqrt(5.0))


@pytest.mark.parametrize("bounds", [COVERAGE, SPREAD])
@pytest.mark.parametrize("size", [-3.0, -0.5, -0.05, 0.05, 0.5, 3.0])
def test_bennetts_bound_holds_for_two_points_and_is_reached(bounds: Bounds, size: float) -> None:
    """The law on two points with that variance and end has the largest of all such means."""
    end = bounds.highest if size > 0 else bounds.lowest
    other = -bounds.variance / end
    p = bounds.variance / (end**2 + bounds.variance)  # of the end, so that the mean is 0
    exact = math.log(p * math.exp(size * end) + (1.0 - p) * math.exp(size * other))
    bound = float(bennett(np.array([size]), bounds)[0])
    assert exact <= bound
    assert bound == pytest.approx(bounds.variance * size**2 / 2.0, rel=0.9) or abs(size) > 1
    small = float(bennett(np.array([1e-3 * np.sign(size)]), bounds)[0])
    assert small == pytest.approx(bounds.variance * 1e-6 / 2.0, rel=1e-2)


def by_definition(sums: Any, counts: Any, bounds: Bounds, worth: float) -> float:
    """The capital as a sum over sizes and days of the start, each with its share."""
    sizes = np.concatenate([-SIZES, SIZES]) / math.sqrt(bounds.variance)
    cost = bennett(sizes, bounds) + np.abs(sizes) * bounds.tolerance
    shares = [FIRST]
    for _ in range(1, len(sums)):
        shares.append((1.0 - sum(shares)) * -math.expm1(-RATE))
    capital = 1.0 - sum(shares)
    for start, share in enumerate(shares):
        for size, price in zip(sizes, cost, strict=True):
            gain = sum(
                (size * s - n * price) / worth
                for s, n in zip(sums[start:], counts[start:], strict=True)
            )
            capital += share / len(sizes) * math.exp(gain)
    return math.log(capital)


def test_evidence_is_that_of_the_definition() -> None:
    rng = child(0, "evidence")
    counts = rng.integers(1, 60, size=12).astype(float)
    sums = rng.normal(size=12) * np.sqrt(0.09 * counts)
    bounds = Bounds(variance=0.09, lowest=-0.9, highest=0.1, tolerance=0.01)
    for worth in (1.0, 3.5):
        made = evidence(sums, counts, bounds, worth)
        assert made[-1] == pytest.approx(by_definition(sums, counts, bounds, worth), rel=1e-10)
        assert made[4] == pytest.approx(
            by_definition(sums[:5], counts[:5], bounds, worth), rel=1e-10
        )
    many = evidence(np.stack([sums, -sums]), counts, bounds, np.array([1.0, 3.5]))
    np.testing.assert_allclose(many[0], evidence(sums, counts, bounds), rtol=1e-12)
    np.testing.assert_allclose(many[1], evidence(-sums, counts, bounds, 3.5), rtol=1e-12)


def test_days_without_rows_change_no_bet() -> None:
    sums, counts = np.array([3.0, 0.0, 2.0]), np.array([50.0, 0.0, 40.0])
    made = evidence(sums, counts, COVERAGE)
    assert made[1] == pytest.approx(made[0], abs=1e-12)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_closed_testing_is_the_least_mean_of_all_sets(m: int) -> None:
    rng = child(1, "closed", m)
    for _ in range(20):
        logs, shares = 3.0 * rng.normal(size=m), rng.uniform(0.1, 1.0, size=m)
        made = by_closed_testing(logs, shares)
        for place in range(m):
            others = [k for k in range(m) if k != place]
            sets = [
                (place, *some) for size in range(m) for some in itertools.combinations(others, size)
            ]
            means = [
                np.average(np.exp(logs[list(each)]), weights=shares[list(each)]) for each in sets
            ]
            assert made[place] == pytest.approx(math.log(min(means)), rel=1e-10)


def test_a_change_is_found_where_it_is() -> None:
    rng = child(2, "change")
    counts = np.full(100, 50.0)
    sums = rng.normal(size=100) * np.sqrt(50.0) + np.where(np.arange(100) >= 60, 0.4 * 50.0, 0.0)
    free = Bounds(variance=1.0, lowest=-3.0, highest=3.0)
    at, mean, (first, last) = change_point(sums, counts, free)
    assert abs(at - 60) <= 2
    assert first <= 60 <= last
    assert mean == pytest.approx(0.4, abs=0.1)
    fallen = np.r_[np.full(10, -300.0), np.zeros(80), np.full(10, 30.0)]
    rises = replace(free, rises=True)
    assert change_point(fallen, counts, free)[0] == 0
    assert change_point(fallen, counts, rises)[0] == 90


def test_a_mean_that_may_fall_is_not_bet_on() -> None:
    counts = np.full(60, 50.0)
    free = Bounds(variance=1.0, lowest=-3.0, highest=3.0)
    rises = replace(free, rises=True)
    assert evidence(np.full(60, -20.0), counts, free)[-1] > math.log(20.0)
    assert evidence(np.full(60, -20.0), counts, rises).max() < 0.0
    assert evidence(np.full(60, 20.0), counts, rises)[-1] > math.log(20.0)


def days(rng: Any, count: int, rows: int, memory: float, shared: float) -> Any:
    """Sums by day of coverage and of the second component, of rows that may depend."""
    noise = rng.normal(size=count * rows + 500) * math.sqrt(1.0 - memory**2)
    z = signal.lfilter([1.0], [1.0, -memory], noise)[500:]
    if shared:
        z = math.sqrt(1 - shared) * z + math.sqrt(shared) * np.repeat(rng.normal(size=count), rows)
    covered = (np.abs(z) < stats.norm.ppf(0.95)) - 0.9
    spread = legendre(special.ndtr(z))[1]
    return np.stack([covered, spread]).reshape(2, count, rows).sum(axis=2)


def ever_broken(runs: int, *, length: int, memory: float = 0.0, shared: float = 0.0) -> int:
    """Of promises that are kept for so long, how many are ever told broken; looked at daily."""
    counts, hits = np.full(length, 50.0), 0
    for run in range(runs):
        rng = child(3, "kept", run, memory, shared)
        reference, seen = (days(rng, length, 50, memory, shared) for _ in range(2))
        logs = [
            evidence(seen[k], counts, bounds, worth_of(reference[k], counts, bounds.variance))
            for k, bounds in enumerate((COVERAGE, SPREAD))
        ]
        total = np.logaddexp(*logs) - math.log(2.0)
        hits += bool((total >= math.log(20.0)).any())
    return hits


@pytest.mark.parametrize(("memory", "shared"), [(0.0, 0.0), (0.8, 0.0), (0.0, 0.05)])
def test_promises_that_are_kept_are_hardly_ever_told_broken(memory: float, shared: float) -> None:
    hits = ever_broken(40, length=120, memory=memory, shared=shared)
    assert clopper_pearson(hits, 40)[0] <= 0.05


@pytest.mark.rate
@pytest.mark.parametrize(
    ("memory", "shared"), [(0.0, 0.0), (0.8, 0.0), (0.99, 0.0), (0.9955, 0.0), (0.0, 0.05)]
)
def test_false_alarms_of_a_year_of_daily_looks(memory: float, shared: float) -> None:
    """Correlations from day to day of 0, 0, .6, .8, and days of rows that share a level."""
    hits = ever_broken(300, length=365, memory=memory, shared=shared)
    assert clopper_pearson(hits, 300)[0] <= 0.05


def test_dependent_rows_count_as_fewer() -> None:
    counts = np.full(300, 50.0)
    alone, copies = (days(child(4, "worth"), 300, 50, 0.0, share) for share in (0.0, 0.2))
    assert worth_of(alone[1], counts, 1.0) < 1.6
    # φ_2 of normal errors that share a fifth of their variance correlate by about .2²
    assert worth_of(copies[1], counts, 1.0) > 2.0


@pytest.mark.parametrize(("change", "most"), [("spread", 12), ("bias", 30)])
def test_faults_are_found_soon(change: str, most: int) -> None:
    rng = child(5, "found", change)
    z = rng.normal(size=(200, 50)) * (1.3 if change == "spread" else 1.0)
    z += 0.2 * (change == "bias")
    order = 1 if change == "spread" else 0
    bounds = SPREAD if order else Bounds(variance=1.0, lowest=-math.sqrt(3), highest=math.sqrt(3))
    sums = legendre(special.ndtr(z.ravel()))[order].reshape(200, 50).sum(axis=1)
    made = evidence(sums, np.full(200, 50.0), bounds)
    assert int(np.argmax(made >= math.log(20.0))) <= most


def test_mixed_bets_are_the_mean_of_capitals() -> None:
    logs, shares = child(6, "mixed").normal(size=(3, 4)), np.array([0.5, 0.2, 0.3])
    np.testing.assert_allclose(mixed_bets(logs, shares), np.log(shares @ np.exp(logs)), rtol=1e-12)


@pytest.mark.parametrize("side", ["below", "above"])
def test_bets_on_a_mean_at_the_limit_neither_gain_nor_lose(side: Side) -> None:
    """The mean of the capital over all sequences of a three-point distribution, one by one."""
    points, p = np.array([0.0, 0.7, 1.0]), np.array([0.05, 0.3, 0.65])
    limit, total = float(points @ p), 0.0
    for places in itertools.product(range(3), repeat=5):
        logs = mean_bets(points[list(places)], limit, side).sum(axis=1)
        total += math.prod(p[list(places)]) * math.exp(float(mixed_capital(logs)))
    assert total == pytest.approx(1.0, rel=1e-12)


def ever_reached(p: float, limit: float, side: Side, level: float, most: int) -> float:
    """Exact chance that shares of one row each, looked at one by one, ever prove so much."""
    one, none = (mean_bets(x, limit, side) for x in (1.0, 0.0))
    alive, reached = np.ones(1), 0.0  # chances of 0, 1, … ones, where nothing was proven yet
    for count in range(1, most + 1):
        alive = np.append(alive * (1.0 - p), 0.0) + np.append(0.0, alive * p)
        ones = np.arange(count + 1)
        logs = mixed_capital(np.outer(one, ones) + np.outer(none, count - ones))
        proven = logs >= -math.log(level)
        reached += float(alive[proven].sum())
        alive = np.where(proven, 0.0, alive)
    return reached


@pytest.mark.parametrize("side", ["below", "above"])
@pytest.mark.parametrize("level", [0.2, 0.01])
def test_false_proofs_of_a_mean_whenever_one_looks_are_as_rare_as_stated(
    side: Side, level: float
) -> None:
    at_limit = ever_reached(0.88, 0.88, side, level, 400)
    assert 0.2 * level < at_limit <= level
    inside = 0.9 if side == "below" else 0.86
    assert ever_reached(inside, 0.88, side, level, 400) < at_limit


def test_means_beyond_the_limit_are_proven() -> None:
    assert ever_reached(0.7, 0.88, "below", 0.01, 200) > 0.99
    assert ever_reached(0.99, 0.88, "above", 0.01, 400) > 0.95


@pytest.mark.parametrize("side", ["below", "above"])
def test_a_bound_is_where_the_bets_just_prove(side: Side) -> None:
    values = child(7, "bound").beta(8.0, 2.0, size=30)
    bound = mean_bound(values, side, 0.05)
    outward = 1e-4 if side == "below" else -1e-4
    assert (bound - values.mean()) * outward > 0.0
    for limit, proven in ((bound + outward, True), (bound - outward, False)):
        capital = float(mixed_capital(mean_bets(values, limit, side).sum(axis=1)))
        assert (capital >= math.log(20.0)) == proven


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_bounds_of_values_at_an_end(value: float) -> None:
    """(1 + 0.99 (1 − u) / u)⁶⁰ / 2 = 20 by the boldest bet alone; the others add a little."""
    lower, upper = (mean_bound(np.full(60, value), side, 0.05) for side in ("above", "below"))  # type: ignore[arg-type]
    boldest = 1.0 / (1.0 + (40.0 ** (1.0 / 60.0) - 1.0) / BETS[0])
    near, end = (lower, upper) if value else (1.0 - upper, 1.0 - lower)
    assert end == 1.0
    assert near == pytest.approx(boldest, abs=0.004)
    assert near >= boldest - 1e-6


def test_one_value_bounds_little() -> None:
    assert mean_bound(np.array([0.5]), "above", 0.05) < 0.02
    assert mean_bound(np.array([0.5]), "below", 0.05) > 0.98


def test_values_needed_are_those_after_which_one_bet_suffices() -> None:
    logs = mean_bets(np.full(10, 0.85), 0.88, "below").sum(axis=1)
    shares = np.append(0.5, np.full(7, 0.5 / 7))
    needed = values_needed(logs, 10, 0.01)
    alone = next(
        count for count in range(1, 10_000) if (shares * np.exp(logs / 10 * count)).max() >= 100.0
    )
    assert math.ceil(needed) == alone
    assert values_needed(mean_bets(np.full(5, 0.9), 0.88, "below").sum(axis=1), 5, 0.01) == math.inf
