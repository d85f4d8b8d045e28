"""Gains over a constant band: what they are measured against, and what their records say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from howsure.core.records import Record
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.predictions import EvalSet, Intervals
from howsure.topics.compare import compare

GAINS = ("characteristic_gain", "characteristic_partial_gain", "characteristic_left_gain")


def found(held: EvalSet) -> dict[str, Record]:
    return {r.metric: r for r in evaluate(held, metrics=["auucc", *GAINS]).records}


def skewed(n: int, rng: np.random.Generator, *, vary: float = 0.0) -> EvalSet:
    """Gamma errors above the point, and intervals much longer above than below."""
    point = rng.normal(0.0, 3.0, n)
    size = rng.uniform(1.0 - vary, 1.0 + vary, n)
    y = point + size * (rng.gamma(1.0, 1.0, n) - 0.05)
    ends = Intervals(point - 0.1 * size, point + 2.9 * size, coverage=0.9)
    return EvalSet.checked(y, ends, point=point)


def test_bands_of_one_width_gain_nothing_however_lopsided() -> None:
    rng = child(0, "one width")
    moved = rng.normal(0.0, 3.0, 400)
    at = rng.uniform(0.2, 1.8, 400)  # the point lies anywhere within its interval
    anywhere = EvalSet.checked(
        moved + rng.normal(size=400),
        Intervals(moved - at, moved - at + 2.0, coverage=0.9),
        point=moved,
    )
    for held in (skewed(400, rng), anywhere):
        records = found(held)
        for name in GAINS:
            record = records[name]
            assert (record.value, record.lower, record.upper) == (0.0, 0.0, 0.0)
            assert record.reason == "every row has the same width"


def test_widths_that_hardly_vary_gain_hardly_anything() -> None:
    """Against a symmetric band, lopsided ones would gain some 45 %: no jump at one width."""
    records = found(skewed(4000, child(1, "nearly"), vary=0.01))
    for name in GAINS:
        assert abs(records[name].value) < 1.0
        assert records[name].reason == ""


def test_whole_and_partial_gain_come_with_intervals_and_no_made_up_null() -> None:
    records = found(skewed(500, child(2, "both"), vary=0.6))
    for name in GAINS:
        record = records[name]
        assert record.lower < record.value < record.upper
        assert math.isnan(record.null)
        assert math.isnan(record.null_lower)
        assert math.isnan(record.null_upper)


def test_standard_errors_of_gains_of_lopsided_bands() -> None:
    drawn: dict[str, list[tuple[float, float]]] = {name: [] for name in GAINS}
    for seed in range(200):
        records = found(skewed(300, child(3, "errors", str(seed)), vary=0.6))
        for name in GAINS:
            drawn[name].append((records[name].value, records[name].standard_error))
    for name in GAINS:
        values, errors = np.array(drawn[name]).T
        assert 0.8 < errors.mean() / values.std(ddof=1) < 1.25, name


def test_points_outside_their_interval_are_told_never_moved_in_silence() -> None:
    rng = child(4, "outside")
    n = 1000
    sd, centre = rng.uniform(0.3, 2.0, n), rng.normal(0.0, 3.0, n)
    y = rng.normal(centre, sd)
    lower, upper = centre - 1.645 * sd, centre + 1.645 * sd
    point = centre + np.where(rng.random(n) < 0.3, 3.0, 0.0)
    held = EvalSet.checked(y, Intervals(lower, upper, coverage=0.9), point=point)
    rows = np.flatnonzero((point < lower) | (point > upper))
    records = found(held)
    told = f"the point is outside its interval in {len(rows)} rows (first at row {rows[0]})"
    for name in GAINS:
        assert math.isnan(records[name].value)
        assert records[name].reason == f"{told}, where no scale is defined"
    recentred = np.where((point < lower) | (point > upper), (lower + upper) / 2, point)
    error = y - recentred
    side = np.where(error >= 0, upper - recentred, recentred - lower)
    area = np.mean((upper - lower) / 2) * np.mean(np.abs(error) / side)
    assert records["auucc"].value == pytest.approx(area, rel=1e-12)
    assert records["auucc"].reason == f"{told}; midpoints replace these points"
    assert records["auucc"].upper > area
    compared = compare([evaluate(held), evaluate(held)])
    assert "characteristic_gain" not in compared.columns["metric"]
