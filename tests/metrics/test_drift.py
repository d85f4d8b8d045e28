"""Drift of coverage, bias and spread: what is found, and what must not matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.records import Record
from howsure.core.rng import child
from howsure.engine.measure import curves_of, evaluate
from howsure.predictions import Distribution, EvalSet, Intervals, LabelSets, Samples
from howsure.stats.changes import find_changes
from howsure.topics.drift import stamp
from howsure.verdict.family import examine

DRIFTS = ("coverage_drift", "bias_drift", "spread_drift")


def records(held: EvalSet, **options: Any) -> dict[str, Record]:
    return {r.metric: r for r in evaluate(held, metrics=DRIFTS, **options).records}


def normal(
    n: int, name: str = "drift", factor: Any = 1.0, shift: Any = 0.0, **more: Any
) -> EvalSet:
    y = child(0, name).normal(size=n) * factor + shift
    more.setdefault("time", np.arange(n))
    return EvalSet.checked(y, Distribution.normal(np.zeros(n), np.ones(n)), **more)


def test_coverage_before_and_after_is_that_of_the_rows() -> None:
    """A table with coverage .91 and then .52 had no line on time."""
    n = 2_000
    half = np.where(np.arange(n) < 1_200, stats.norm.ppf(0.955), stats.norm.ppf(0.76))
    y = child(0, "two regimes").normal(size=n)
    day = np.datetime64("2024-01-01") + np.arange(n) // 20
    found = records(EvalSet.checked(y, Intervals(-half, half, coverage=0.9), time=day))
    drift, told = found["coverage_drift"], found["coverage_drift"].options
    assert told["when"] == "2024-03-01"
    before, after = (
        np.mean(np.abs(y[part]) <= half[part]) for part in (slice(1_200), slice(1_200, n))
    )
    assert told["before"] == pytest.approx(before)
    assert told["after"] == pytest.approx(after)
    assert told["latest"] == pytest.approx(np.mean(np.abs(y[1_800:]) <= half[1_800:]))
    assert drift.value == pytest.approx(before - after)
    assert told["way"] == "down"
    assert told["wrong"] == "after"
    assert drift.p < 1e-3
    assert 0.25 < drift.lower < drift.value < drift.upper < 0.6
    assert float(told["after_lower"]) < 0.52 < float(told["after_upper"])
    assert math.isnan(found["bias_drift"].value)


def test_bias_and_spread_are_told_in_their_own_units() -> None:
    n = 4_000
    late = np.arange(n) >= 3_000
    wide = records(normal(n, factor=np.where(late, 2.0, 1.0)))["spread_drift"]
    assert wide.options["before"] == pytest.approx(1.0, abs=0.05)
    assert wide.options["after"] == pytest.approx(2.0, abs=0.2)
    assert (wide.options["way"], wide.options["when"]) == ("up", "time 3000")
    moved = records(normal(n, shift=np.where(late, 0.0, 0.5)))["bias_drift"]
    assert moved.options["before"] == pytest.approx(0.5, abs=0.06)
    assert moved.options["after"] == pytest.approx(0.0, abs=0.1)
    assert (moved.options["way"], moved.options["wrong"]) == ("down", "before")
    at = np.linspace(-4, 4, 100_001)  # the largest change of a stated probability
    ideal = np.abs(stats.norm.cdf(at) - stats.norm.cdf(at - 0.5)).max()
    assert moved.value == pytest.approx(ideal, abs=0.05)


def test_hits_are_judged_beside_what_each_row_claims() -> None:
    """Coverage that falls as its claim does is no drift."""
    n = 3_000
    rng = child(0, "claims")
    mu = np.where(np.arange(n) < n // 2, 0.3, 30.0)
    counts = Distribution.from_scipy(stats.poisson(mu))
    found = records(EvalSet.checked(rng.poisson(mu).astype(float), counts, time=np.arange(n)))
    drift = found["coverage_drift"]
    moved = float(drift.options["claimed_after"]) - float(drift.options["claimed_before"])
    assert abs(moved) > 0.02
    assert drift.p > 0.05
    assert drift.value < 0.05


def test_a_drift_in_ensembles_and_label_sets_is_seen() -> None:
    n = 2_000
    rng = child(0, "kinds")
    late = np.arange(n) >= 1_400
    members = rng.normal(size=(n, 10)) * np.where(late, 0.5, 1.0)[:, None]
    held = EvalSet.checked(rng.normal(size=n), Samples(members), time=np.arange(n))
    assert records(held)["spread_drift"].p < 0.01
    inside = rng.random(n) < np.where(late, 0.6, 0.9)
    sets = LabelSets(np.tile([True, False], (n, 1)), coverage=0.9)
    found = records(EvalSet.checked((~inside).astype(float), sets, time=np.arange(n)))
    assert found["coverage_drift"].p < 0.01


def same(one: dict[str, Record], other: dict[str, Record]) -> None:
    for name in DRIFTS:
        a, b = one[name], other[name]
        for part in ("value", "lower", "upper", "p", "null_upper", "n", "standard_error"):
            assert getattr(a, part) == pytest.approx(getattr(b, part), rel=1e-7), (name, part)
        assert a.options["when"] == b.options["when"], name
        assert a.options["wrong"] == b.options["wrong"]


def test_neither_the_order_of_rows_nor_the_seed_of_others_matters() -> None:
    held = normal(400, time=np.arange(400) // 3)
    same(records(held), records(held.take(child(1, "order").permutation(400))))


def test_a_weight_of_two_is_a_row_twice() -> None:
    counts = child(2, "copies").integers(0, 4, 400)
    held = normal(400, time=np.arange(400) // 2)
    weighted = EvalSet.checked(held.y, held.predictions, weights=counts, time=held.time)
    same(records(weighted), records(held.take(np.repeat(np.arange(400), counts))))


def test_reflection_and_units_change_no_size() -> None:
    held = normal(500, factor=1.3, shift=np.where(np.arange(500) < 200, 0.3, 0.0))
    one = records(held)
    for scale in (-1.0, 250.0):
        mean, sd = np.full(500, 11.0), np.full(500, abs(scale))
        moved = EvalSet.checked(
            11.0 + scale * held.y, Distribution.normal(mean, sd), time=held.time
        )
        other = records(moved)
        same(one, other)
        way = {name: record.options["way"] for name, record in other.items()}
        turned = {"up": "down", "down": "up"}[str(one["bias_drift"].options["way"])]
        assert way["bias_drift"] == (turned if scale < 0 else one["bias_drift"].options["way"])


def test_times_may_be_numbers_dates_or_words() -> None:
    n = 300
    day = np.datetime64("2024-01-01") + np.arange(n)
    ways = (np.arange(n), np.arange(n) / 7 - 3, day, np.array([str(each) for each in day], object))
    found = [records(normal(n, time=time))["coverage_drift"] for time in ways]
    assert len({record.p for record in found}) == 1
    assert found[2].options["when"] == found[3].options["when"]
    assert stamp(day.astype("datetime64[ns]"), 4) == "2024-01-05"
    assert stamp(np.array(["2024-01-05T03:00:07", "2024-01-06"], "datetime64[s]"), 0) == (
        "2024-01-05 03:00:07"
    )
    assert stamp(np.array(["a", "b"], dtype=object), 1) == "b"


def test_clusters_that_follow_each_other_stay_together() -> None:
    """Sixty stays of 20 rows are 60 units; sites that last all the time are none."""
    n = 1_200
    stay, site = np.arange(n) // 20, np.arange(n) % 50
    plain = normal(n)
    series = (np.abs(plain.y) <= stats.norm.ppf(0.95)) - 0.9
    units = find_changes([series], stay)[0]
    assert units is not None
    held = normal(n, cluster=stay)
    assert records(held)["coverage_drift"].p == units.p
    assert (
        records(normal(n, cluster=site))["coverage_drift"].p == records(plain)["coverage_drift"].p
    )


@pytest.mark.rate
def test_few_rows_a_cluster_that_follow_each_other_keep_the_level() -> None:
    tables, red = 200, 0
    for number in range(tables):
        rng = child(number, "stays")
        shared = np.repeat(rng.normal(size=50), 20)
        u = stats.norm.cdf(math.sqrt(0.5) * (shared + rng.normal(size=1_000)))
        y = stats.norm.ppf(u)
        held = EvalSet.checked(
            y,
            Distribution.normal(np.zeros(1_000), np.ones(1_000)),
            time=np.arange(1_000),
            cluster=np.arange(1_000) // 20,
        )
        found = records(held, seed=number)
        red += 2 * min(record.p for record in found.values()) < 0.05
    assert red / tables <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / tables)


def test_what_has_no_answer_says_why() -> None:
    lone = EvalSet.checked(np.zeros(50), point=np.zeros(50), time=np.arange(50))
    assert "no " in records(lone)["coverage_drift"].reason
    timeless = EvalSet.checked(np.zeros(50), Distribution.normal(np.zeros(50), np.ones(50)))
    assert {r.reason for r in records(timeless).values()} == {"the table has no time"}
    sure = Intervals(np.full(50, -9.0), np.full(50, 9.0), coverage=0.9)
    held = EvalSet.checked(np.zeros(50), sure, time=np.arange(50))
    assert records(held)["coverage_drift"].reason == "every row is covered"
    short = normal(60, time=np.arange(60) % 3)
    assert records(short)["spread_drift"].reason == (
        "3 different times are too few to detect a change"
    )


@pytest.mark.parametrize(
    ("half", "proof"), [(1.2536, ": not significant evidence"), (None, ": significant.")]
)
def test_the_caption_of_the_rolling_figure_follows_the_test(half: float | None, proof: str) -> None:
    """It said 'drifted' of a constant 79 %."""
    n = 2_000
    wide = np.full(n, half) if half else np.where(np.arange(n) < 1_000, 1.7, 0.7)
    y = child(3, "constant").normal(size=n)
    held = EvalSet.checked(y, Intervals(-wide, wide, coverage=0.9), time=np.arange(n))
    curve = next(c for c in curves_of(evaluate(held)) if c.name == "rolling_coverage")
    assert proof in curve.notes
    assert "around time" in curve.notes


@pytest.mark.slow
def test_errors_that_grow_slowly_drift_also_where_rows_are_taken_as_batches() -> None:
    """A trend was taken for memory: at 3,000 rows it was named in one table of four."""
    size = 1.0 + np.arange(3_000) / 3_000
    for number in range(3):
        findings, _ = examine(normal(3_000, f"slowly {number}", size))
        assert {each.id: each.state for each in findings}["drift"] == "bad"
