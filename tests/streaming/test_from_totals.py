"""Numbers by parts are those of all rows at once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howsure.core.formats import details
from howsure.core.records import Record
from howsure.report.assessment import Assessment
from streaming.tables import at_once, by_parts, normal_table, state_of

pytestmark = pytest.mark.few_draws

TABLE = normal_table(2_400)
NUMBERS = ("value", "standard_error", "lower", "upper", "n", "p")


def named(record: Record) -> tuple[str, str, str]:
    """What a record is of; the worst group of a sample may be another."""
    group = "" if record.metric == "worst_group_shortfall" else record.group
    return record.metric, str(record.coverage), group


def compared(parts: Assessment, whole: Assessment, tolerance: float = 1e-9) -> dict[str, int]:
    """Hold all exact records against those of all rows; how many there are of each way."""
    found = {named(record): record for record in parts.records}
    count = {"rows": 0, "histogram": 0, "sample": 0}
    for record in whole.records:
        other = found[named(record)]
        count[other.exact] += 1
        if "rows of the sample are beyond" in other.reason:  # of which all rows hold enough
            assert math.isnan(other.value)
            count["rows"] -= 1
            continue
        if math.isnan(record.value) or other.exact == "sample":
            assert math.isnan(record.value) == math.isnan(other.value), (record, other)
            continue
        size = max(abs(record.value), np.nan_to_num(record.standard_error), 1e-6)
        if other.exact == "rows":
            for name in NUMBERS:
                one, two = getattr(record, name), getattr(other, name)
                near = abs(one - two) <= tolerance * max(size, abs(one))
                assert near or (math.isnan(one) and math.isnan(two)), (record, other, name)
        elif record.units != "p-value":
            assert abs(record.value - other.value) <= 1.6e-5, (record, other)
    return count


@pytest.mark.rate
def test_plain_rows() -> None:
    count = compared(by_parts(state_of(TABLE, [500, 1_000])), at_once(TABLE))
    assert count["rows"] > 300
    assert count["histogram"] >= 7


def moved_table(kind: str, shift: float, scale: float, n: int = 600) -> pa.Table:
    """Predictions of one kind, moved and stretched; y has ties, and the level of parts differs."""
    rng = np.random.default_rng(11)
    mean, sd = rng.normal(size=n) + np.arange(n) / n, np.exp(rng.normal(size=n) / 3)
    y = np.round(mean + sd * rng.normal(size=n), 1)
    columns = {
        "intervals": {"lower_90": mean - 1.6 * sd, "upper_90": mean + 1.6 * sd, "pred": mean},
        "normal": {"mean": mean, "sd": sd},
        "quantiles": {f"q{level}": mean + z * sd for level, z in QUANTILES.items()},
        "samples": {f"s_{k}": mean + sd * rng.normal(size=n) for k in range(6)},
        "point": {"pred": mean},
    }[kind]
    lies = {name: scale * values for name, values in columns.items()}
    lies = {name: lie if name == "sd" else shift + lie for name, lie in lies.items()}
    site = np.array(["a", "b"])[rng.integers(0, 2, n)]
    return pa.table({"y": shift + scale * y, **lies, "site": site, "house": np.arange(n) // 4})


QUANTILES = {0.05: -1.6449, 0.25: -0.6745, 0.5: 0.0, 0.75: 0.6745, 0.95: 1.6449}


@pytest.mark.parametrize("kind", ["intervals", "normal", "quantiles", "samples", "point"])
@pytest.mark.parametrize(
    ("shift", "scale"),
    [(0.0, 1.0), (1e6, 1.0), (1e9, 1.0), (-1e8, 1e-1), (0.0, 1e-9), (1.0, 1e-6), (1e9, 1e9)],
)
@pytest.mark.rate
def test_where_rows_lie_and_how_far_apart_costs_no_digits(
    kind: str, shift: float, scale: float
) -> None:
    """Numbers of both ways agree as far as the rows themselves carry digits."""
    table = moved_table(kind, shift, scale)
    digits = 1e-9 + 20.0 * np.finfo(float).eps * abs(shift) / scale
    for columns in ({}, {"cluster": "house"}):
        whole = at_once(table, groups="site", **columns)
        parts = by_parts(state_of(table, [130, 400], most=10_000, groups="site", **columns))
        assert compared(parts, whole, digits)["rows"] > 10


@pytest.mark.rate
def test_frequency_weights() -> None:
    compared(
        by_parts(state_of(TABLE, [500], most=10_000, weights="weight")),
        at_once(TABLE, weights="weight"),
    )


@pytest.mark.rate
def test_clusters() -> None:
    parts = by_parts(state_of(TABLE, [500, 1_000], most=2_400, cluster="house"))
    compared(parts, at_once(TABLE, cluster="house"))


@pytest.mark.rate
def test_importance_weights_have_exact_values_and_near_errors() -> None:
    rng = np.random.default_rng(5)
    table = TABLE.append_column("importance_weight", pa.array(rng.gamma(3.0, size=2_400)))
    whole = at_once(table, weights="importance_weight")
    parts = by_parts(state_of(table, [900], weights="importance_weight"))
    found = {(r.metric, str(r.coverage), r.group): r for r in parts.records}
    for record in whole.records:
        other = found[record.metric, str(record.coverage), record.group]
        if other.exact != "rows" or math.isnan(record.value) or "of the sample" in other.reason:
            continue
        assert other.value == pytest.approx(record.value, rel=1e-9, abs=1e-9)
        if record.standard_error > 0:
            assert other.standard_error == pytest.approx(record.standard_error, rel=0.15)
        assert "clusters" not in other.reason
        if record.units == "1" and record.lower < record.upper:
            ratio = (other.upper - other.lower) / (record.upper - record.lower)
            assert 0.85 < ratio < 1.15, (record, other)
            assert "groups of rows" in other.reason


def test_importance_weights_of_rows_in_time_that_are_independent_have_near_errors() -> None:
    rng = np.random.default_rng(5)
    table = TABLE.append_column("importance_weight", pa.array(rng.gamma(3.0, size=2_400)))
    table = table.append_column("tick", pa.array(rng.permutation(2_400)))
    columns = {"weights": "importance_weight", "time": "tick", "groups": ""}
    parts = by_parts(state_of(table, [900], **columns))
    whole = at_once(table, **columns)
    for name in ("mae", "empirical_coverage", "r_squared"):
        one, two = (next(r for r in a.records if r.metric == name) for a in (whole, parts))
        assert two.exact == "rows"
        assert two.standard_error == pytest.approx(one.standard_error, rel=0.15)


def labels_table(n: int = 2_400) -> pa.Table:
    """Probabilities of five classes, with ease and days beside."""
    rng = np.random.default_rng(4)
    shares = rng.dirichlet(np.ones(5), size=n)
    label = np.array(list("abcde"))[(shares.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)]
    site = np.array(["u", "v", "w"])[rng.integers(0, 3, n)]
    ease, day = shares.max(axis=1), np.sort(rng.integers(0, 400, n))
    told = {f"p_{name}": shares[:, place] for place, name in enumerate("abcde")}
    return pa.table({"y": label, **told, "site": site, "ease": ease, "day": day})


@pytest.mark.parametrize("columns", [{"ease": "ease"}, {"time": "day"}, {}], ids=str)
@pytest.mark.rate
def test_what_is_called_exact_of_label_sets_is_that_of_all_rows(columns: dict[str, str]) -> None:
    table = labels_table()
    named: dict[str, Any] = {"groups": "site", "coverage": 0.9, **columns}
    parts = by_parts(state_of(table, [500, 1_300], **named))
    count = compared(parts, at_once(table, **named))
    assert count["rows"] > 30
    ways = {record.metric: record.exact for record in parts.records if record.value == record.value}
    if "ease" in columns:
        sampled = ("satisfaction_rate", "escv", "rank_cv", "rank_ss", "set_deficit", "set_excess")
        assert [ways[name] for name in sampled] == ["sample"] * len(sampled)
        noisy = [r for r in parts.records if r.exact == "sample" and r.standard_error != 0.0]
        assert not any(record.added_error == 0.0 for record in noisy)
    assert ways["empirical_coverage"] == "rows"


def test_what_a_sample_adds_to_a_group_is_that_of_the_group() -> None:
    rng = np.random.default_rng(5)
    table = TABLE.append_column("importance_weight", pa.array(rng.gamma(3.0, size=2_400)))
    parts = by_parts(state_of(table, [900], most=600, weights="importance_weight"))
    sampled = [r for r in parts.records if r.exact == "sample" and r.group and r.metric == "mae"]
    assert len(sampled) > 4
    for record in sampled:
        assert record.added_error == pytest.approx(record.standard_error * math.sqrt(0.75))


def test_an_infinite_number_of_a_sample_is_no_number_of_all_rows() -> None:
    upper = TABLE["upper_90"].to_numpy().copy()
    upper[::20] = np.inf
    table = TABLE.select(["y", "lower_90", "site"]).append_column("upper_90", pa.array(upper))
    parts = by_parts(state_of(table, [900], most=600, groups="site"))
    ways = {(r.metric, r.group): r.exact for r in parts.records if math.isinf(r.value)}
    assert ways["mean_width", "site=a"] == ways["relative_width", ""] == "rows"
    assert ways["relative_width", "site=a"] == "sample"


def test_an_error_by_clusters_of_the_sample_says_so() -> None:
    normal = by_parts(state_of(TABLE, [900], most=600, groups="", cluster="house"))
    record = next(r for r in normal.records if r.metric == "miscalibration_area")
    assert record.exact == "histogram"
    assert record.reason.endswith(" clusters of the sample")
    names = ("y", "q0.05", "q0.5", "q0.95", "house")
    mean, sd = TABLE["mean"].to_numpy(), TABLE["sd"].to_numpy()
    columns = (TABLE["y"], mean - 1.6449 * sd, mean, mean + 1.6449 * sd, TABLE["house"])
    table = pa.table(dict(zip(names, columns, strict=True)))
    quantiles = by_parts(state_of(table, [900], most=600, groups="", cluster="house"))
    record = next(r for r in quantiles.records if r.metric == "calibration_error")
    assert (record.exact, record.n < 2_400) == ("sample", True)
    assert record.added_error > 0.0


def test_the_worst_group_is_told_once() -> None:
    parts = by_parts(state_of(TABLE, [500], most=200))
    assert [r.exact for r in parts.records if r.metric == "worst_group_shortfall"] == ["rows"]


def test_the_same_findings() -> None:
    parts, whole = by_parts(state_of(TABLE, [500], most=2_400)), at_once(TABLE)
    assert [(f.id, f.state) for f in parts.findings] == [(f.id, f.state) for f in whole.findings]


@pytest.mark.rate
def test_an_infinite_score() -> None:
    y = TABLE["y"].to_numpy().copy()
    y[17] = 1e99
    table = TABLE.set_column(0, "y", pa.array(y))
    whole, parts = at_once(table), by_parts(state_of(table, [10]))
    for name in ("log_score", "crps"):
        one, two = (
            next(r for r in each.records if r.metric == name and not r.group)
            for each in (whole, parts)
        )
        assert one.value == pytest.approx(two.value, rel=1e-9)


def test_what_a_sample_adds_is_said() -> None:
    parts = by_parts(state_of(TABLE, most=1_000))
    record = next(r for r in parts.records if r.metric == "kendall_tau")
    assert record.exact == "sample"
    assert record.n == 1_000
    assert record.added_error == pytest.approx(record.standard_error * math.sqrt(7 / 12))
    told = next(r for r in parts.records if r.metric == "miscalibration_area")
    assert (told.exact, told.added_error) == ("histogram", 2.0**-16)
    assert parts.facts["Rows"] == "2,400"
    assert next(r for r in parts.records if r.metric == "set_size").exact == "rows"  # it has none
    assert details(record)["exact"] == "of a sample of 1,000 rows"
    assert details(told)["exact"] == "of a histogram of all rows"


@pytest.mark.rate
def test_blocks_of_time_follow_each_other_where_rows_do() -> None:
    rng = np.random.default_rng(8)
    noise = np.zeros(2_400)
    shock = rng.normal(size=2_400)
    for place in range(1, 2_400):
        noise[place] = 0.95 * noise[place - 1] + math.sqrt(1 - 0.95**2) * shock[place]
    table = TABLE.set_column(0, "y", pa.array(TABLE["mean"].to_numpy() + noise))
    table = table.set_column(9, "day", pa.array(np.arange(2_400)))
    parts = by_parts(state_of(table, [900], most=2_400, time="day"))
    whole = at_once(table, time="day")
    one, two = (
        next(r for r in each.records if r.metric == "mae" and not r.group)
        for each in (whole, parts)
    )
    assert two.value == pytest.approx(one.value, rel=1e-9)
    assert two.standard_error == pytest.approx(one.standard_error, rel=0.35)
    assert "effective sample size about" in two.reason


@pytest.mark.rate
def test_errors_of_all_rows_know_a_season() -> None:
    """Lag 12: blocks of one day each, of which a tenth is missing."""
    rng = np.random.default_rng(9)
    fresh, noise = 0.6 * rng.normal(size=3_000), np.zeros(3_000)
    for place in range(12, 3_000):
        noise[place] = 0.8 * noise[place - 12] + fresh[place]
    days = np.sort(rng.choice(np.arange(300, 3_000), 2_400, replace=False))
    table = TABLE.set_column(0, "y", pa.array(TABLE["mean"].to_numpy() + noise[days]))
    table = table.set_column(9, "day", pa.array(days))
    parts = by_parts(state_of(table, [900], most=2_400, time="day"))
    whole, alone = at_once(table, time="day"), at_once(table)
    error, all_rows, plain = (
        next(r for r in each.records if r.metric == "bias" and not r.group).standard_error
        for each in (whole, parts, alone)
    )
    assert all_rows == pytest.approx(error, rel=0.15)
    assert all_rows > 2.2 * plain


@pytest.mark.rate
def test_drift_of_coverage_is_told_by_blocks_of_all_rows() -> None:
    n = 2_400
    late = np.arange(n) >= 1_700
    mean, sd = TABLE["mean"].to_numpy(), TABLE["sd"].to_numpy()
    noise = np.random.default_rng(4).normal(size=n) * np.where(late, 1.8, 1.0)
    table = TABLE.set_column(0, "y", pa.array(mean + sd * noise))
    table = table.set_column(9, "day", pa.array(np.arange(n) // 3))
    parts = by_parts(state_of(table, [1_100], most=300, time="day"))
    whole = at_once(table, time="day")
    one, two = (
        next(r for r in each.records if r.metric == "coverage_drift") for each in (whole, parts)
    )
    assert two.exact == "rows"
    assert two.value == pytest.approx(one.value, rel=1e-9)
    assert two.p == pytest.approx(one.p, abs=1e-3)
    assert two.options["when"] == one.options["when"]
