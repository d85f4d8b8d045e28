"""Records, groups and comparisons of evaluation sets."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.engine.measure import curves_of, evaluate, worst_rows
from howsure.engine.view import choose_coverages
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Quantiles,
    Samples,
)
from howsure.stats.bootstrap import bootstrap_means
from howsure.topics.compare import compare, standing
from howsure.topics.groups import assess_groups
from howsure.topics.scores import interval_score


def normal_set(n: int, *, factor: float = 1.0, seed: int = 0, **extra: object) -> EvalSet:
    rng = child(seed, "normal set")
    mean, sd = rng.normal(size=n), np.exp(rng.uniform(-0.5, 0.5, n))
    y = mean + sd * rng.normal(size=n)
    return EvalSet.checked(y, Distribution.normal(mean, factor * sd), **extra)  # type: ignore[arg-type]


def test_intervals_come_from_the_first_prediction_that_can_give_them() -> None:
    held = EvalSet.checked(
        [0.0, 0.0],
        (Intervals([-1, -1], [1, 1], coverage=0.9), Distribution.normal([0, 0], [1, 1])),
    )
    found = {(r.metric, r.coverage): r for r in evaluate(held, coverages=[0.9, 0.5]).records}
    assert found["mean_width", 0.9].value == 2.0
    assert found["mean_width", 0.9].source == "intervals"
    assert found["mean_width", 0.5].value == pytest.approx(2 * 0.6744897501960817)
    assert found["mean_width", 0.5].source == "distributions"


def test_coverage_has_its_exact_interval() -> None:
    held = EvalSet.checked(np.arange(10.0), Intervals(np.zeros(10), np.full(10, 6.0), coverage=0.9))
    record = evaluate(held, metrics=["empirical_coverage"]).records[0]
    exact = stats.binomtest(7, 10).proportion_ci(0.95, method="exact")
    assert (record.lower, record.upper) == pytest.approx((exact.low, exact.high), abs=1e-12)
    assert record.target == 0.9
    assert record.n == 10


@pytest.mark.parametrize("n", [2, 3, 5, 12])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_a_mean_of_few_rows_without_skew_has_the_interval_of_student(
    n: int, confidence: float
) -> None:
    half = child(n, "few rows").normal(size=n // 2)
    y = np.r_[half, -half, np.zeros(n % 2)]
    held = EvalSet.checked(y, point=np.zeros(n))
    found = {r.metric: r for r in evaluate(held, metrics=["bias"], confidence=confidence).records}
    exact = stats.ttest_1samp(-y, 0.0).confidence_interval(confidence)
    assert (found["bias"].lower, found["bias"].upper) == pytest.approx((exact.low, exact.high))


def test_unknown_coverage_gives_no_verdict_on_calibration() -> None:
    held = EvalSet.checked([0.0, 5.0], Intervals([-1, -1], [1, 1]))
    found = {r.metric: r for r in evaluate(held).records}
    assert found["empirical_coverage"].value == 0.5
    assert math.isnan(found["empirical_coverage"].target)
    assert math.isnan(found["interval_score"].value)
    assert "unknown" in found["interval_score"].reason


def test_a_coverage_that_samples_cannot_reach_is_said() -> None:
    held = EvalSet.checked(np.zeros(3), Samples(np.arange(30.0).reshape(3, 10)))
    assert choose_coverages(held) == (9 / 11,)
    found = {(r.metric, r.coverage): r for r in evaluate(held, coverages=[0.8, 0.9]).records}
    assert math.isnan(found["empirical_coverage", 0.9].value)
    assert "10 samples" in found["empirical_coverage", 0.9].reason
    assert not math.isnan(found["empirical_coverage", 0.8].value)


def test_a_perfect_small_ensemble_covers_what_it_claims() -> None:
    """Ranks among m + 1 places, not np.quantile: ten members claim 9/11 at 80 %."""
    rng = child(0, "small ensemble")
    draws = rng.normal(size=(40_000, 11))
    held = EvalSet.checked(draws[:, 0], Samples(draws[:, 1:]))
    record = evaluate(held, coverages=[0.8], metrics=["empirical_coverage"]).records[0]
    assert record.null == pytest.approx(9 / 11)
    assert abs(record.value - record.null) < 4 * record.standard_error
    naive = np.quantile(draws[:, 1:], [0.1, 0.9], axis=1)
    seen = np.mean((draws[:, 0] >= naive[0]) & (draws[:, 0] <= naive[1]))
    assert seen < 0.75


def test_discrete_laws_use_both_sides_of_the_jump() -> None:
    rng = child(0, "poisson")
    rate = rng.uniform(0.5, 5, 3_000)
    held = EvalSet.checked(rng.poisson(rate), Distribution.from_scipy(stats.poisson(rate)))
    found = {r.metric: r for r in evaluate(held).records}
    error = found["calibration_error"]
    assert error.value < 0.02
    assert found["pit_uniformity"].value > 0.001
    assert found["empirical_coverage"].value > 0.9


def test_label_sets() -> None:
    sets = LabelSets([[True, False, False], [True, True, False]], coverage=0.8)
    found = {r.metric: r for r in evaluate(EvalSet.checked([0, 2], sets)).records}
    assert found["empirical_coverage"].value == 0.5
    assert found["set_size"].value == 1.5
    with pytest.raises(InputError, match="class numbers"):
        EvalSet.checked([0, 7], sets)


def test_clusters_widen_standard_errors() -> None:
    rng = child(0, "clusters")
    shared = np.repeat(rng.normal(size=60), 50)
    y = shared + 0.3 * rng.normal(size=3_000)
    cluster = np.repeat(np.arange(60), 50)
    prediction = Intervals(np.full(3_000, -1.7), np.full(3_000, 1.7), coverage=0.9)
    plain = evaluate(EvalSet.checked(y, prediction), metrics=["empirical_coverage"]).records[0]
    held = EvalSet.checked(y, prediction, cluster=cluster)
    grouped = evaluate(held, metrics=["empirical_coverage"]).records[0]
    assert grouped.standard_error > 3 * plain.standard_error
    assert "60 clusters" in grouped.reason
    by_cluster = (np.abs(y) <= 1.7).reshape(60, 50).mean(axis=1)
    error = by_cluster.std(ddof=1) / np.sqrt(60)
    assert grouped.standard_error == pytest.approx(error, rel=1e-12)
    assert grouped.lower < grouped.value < grouped.upper
    shuffled = child(1, "order").permutation(3_000)
    again = evaluate(held.take(shuffled), metrics=["empirical_coverage"]).records[0]
    assert (again.lower, again.upper) == pytest.approx((grouped.lower, grouped.upper), rel=1e-12)


def test_clusters_reach_measures_that_are_not_means() -> None:
    plain = normal_set(400)
    held = EvalSet.checked(plain.y, plain.predictions, cluster=np.arange(400))
    for first, second in zip(evaluate(plain).records, evaluate(held).records, strict=True):
        if first.metric.endswith(("miscalibration", "discrimination")):
            continue  # whose folds are dealt to clusters, and drawn of rows
        if not np.isnan(second.standard_error) and first.standard_error > 1e-9:
            assert second.standard_error == pytest.approx(first.standard_error, rel=0.12)


def test_importance_weights_use_kish() -> None:
    weights = np.array([1.0, 1.0, 2.0])
    held = EvalSet.checked(
        [0.0, 0.0, 9.0],
        Intervals([-1.0] * 3, [1.0] * 3, coverage=0.9),
        weights=weights,
        weights_kind="importance",
    )
    record = evaluate(held, metrics=["empirical_coverage"]).records[0]
    assert record.value == 0.5
    assert record.n == pytest.approx(16 / 6)
    assert "approximate" in record.reason


def test_importance_weights_have_no_unit() -> None:
    weights = child(0, "importance").uniform(0.1, 5.0, 300)
    found = [
        evaluate(normal_set(300, weights=weights * unit, weights_kind="importance")).records
        for unit in (1.0, 1e-3, 1e4)
    ]
    for first, *others in zip(*found, strict=True):
        for other in others:
            assert other.n == pytest.approx(first.n, rel=1e-12)
            for name in ("value", "standard_error", "lower", "null"):
                expected = getattr(first, name)
                assert getattr(other, name) == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_groups_equal_evaluating_each_part() -> None:
    n = 900
    rng = child(0, "groups")
    region, kind = rng.choice(["a", "b", "c"], n), rng.choice(["u", "v"], n)
    held = normal_set(n, groups={"region": region, "kind": kind})
    whole = evaluate(held)
    report = assess_groups(whole)
    by_key = {(r.group, r.metric): r for r in report.records}
    for a, b in itertools.product("abc", "uv"):
        part = held.take(np.flatnonzero((region == a) & (kind == b)))
        for record in evaluate(part).records:
            if record.metric in ("interval_score", "crps", "empirical_coverage", "rmse", "aurc"):
                twin = by_key[f"region={a}, kind={b}", record.metric]
                assert twin.value == pytest.approx(record.value, rel=1e-12)
                assert twin.standard_error == pytest.approx(record.standard_error, rel=1e-9)
                assert twin.n == record.n


def test_a_bad_group_is_found_and_fair_groups_are_not_blamed() -> None:
    n = 4_000
    rng = child(1, "bad group")
    region = rng.choice(["north", "south", "east"], n)
    y = rng.normal(size=n) * np.where(region == "north", 1.8, 1.0)
    held = EvalSet.checked(y, Distribution.normal(np.zeros(n), np.ones(n)), groups={"r": region})
    found = {
        r.metric: r for r in assess_groups(evaluate(held)).records if r.group in ("", "r=north")
    }
    assert found["groups_differ"].value < 0.001
    assert found["worst_group_shortfall"].group == "r=north"
    assert found["worst_group_shortfall"].reason == ""
    fair = EvalSet.checked(
        rng.normal(size=n), Distribution.normal(np.zeros(n), np.ones(n)), groups={"r": region}
    )
    fair_records = {r.metric: r for r in assess_groups(evaluate(fair)).records if not r.group}
    assert fair_records["groups_differ"].value > 0.01


def test_identifier_columns_are_not_groups() -> None:
    held = normal_set(1_500, groups={"id": np.arange(1_500)})
    report = assess_groups(evaluate(held))
    assert report.table is None
    assert "1,500 labels" in report.notes[0]


def test_compare_pairs_rows() -> None:
    first, second = normal_set(800), normal_set(800, factor=1.6)
    table = compare([evaluate(first), evaluate(second)])
    row = list(table.columns["metric"]).index("crps")
    assert table.columns["difference"][row] < 0
    assert table.columns["upper"][row] < 0
    assert table.columns["p_value"][row] < 0.01
    same = compare([evaluate(first), evaluate(first)])
    assert (same.columns["difference"] == 0).all()


def several(count: int, n: int = 60) -> list[EvalSet]:
    """Models whose CRPS rises with the number in their name, but for the third, which is best."""
    rng = child(0, "several")
    mean = rng.normal(size=n)
    y = mean + rng.normal(size=n)
    wrong = [0.5 + 0.3 * place if place != 2 else 0.0 for place in range(count)]
    return [
        EvalSet.checked(y, Distribution.normal(mean + off, np.ones(n)), model=f"m{place}")
        for place, off in enumerate(wrong)
    ]


def test_a_pair_among_many_models_is_that_pair_alone() -> None:
    done = [evaluate(held) for held in several(4)]
    table, alone = compare(done).columns, compare(done[:2]).columns
    rows = np.flatnonzero((table["model_a"] == "m0") & (table["model_b"] == "m1"))
    assert len(table["metric"]) == 6 * len(alone["metric"])
    for name, column in alone.items():
        if name in ("lower", "upper", "p_value", "adjusted_p_value"):
            continue
        for there, here in zip(table[name][rows], column, strict=True):
            assert there == here or there == pytest.approx(here, abs=1e-12, nan_ok=True)
    np.testing.assert_array_equal(table["p_value"][rows], alone["p_value"])
    width = alone["upper"] - alone["lower"]
    assert np.nanmax(np.abs(table["lower"][rows] - alone["lower"]) / (width + 1e-12)) < 0.1


def test_intervals_of_a_pair_are_those_of_its_differences() -> None:
    first, second = (evaluate(held) for held in several(2, 200))
    table = compare([first, second]).columns
    row = list(table["metric"]).index("mae")
    gap = first.row_scores("mae", np.nan) - second.row_scores("mae", np.nan)
    drawn = bootstrap_means(gap, child(9, "other draws"), 20_000)
    lower, upper = (float(end[0]) for end in drawn.interval(0.95))
    slack = 0.15 * (upper - lower)
    assert table["difference"][row] == pytest.approx(gap.mean(), abs=1e-14)
    assert table["lower"][row] == pytest.approx(lower, abs=slack)
    assert table["upper"][row] == pytest.approx(upper, abs=slack)


def test_past_ten_models_all_are_compared_with_the_best_three(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = [evaluate(held) for held in several(12)]
    found = standing(done)
    assert found is not None
    assert (found.models[:3], found.score.metric) == (("m2", "m0", "m1"), "crps")
    calls: list[int] = []

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(1)
        return bootstrap_means(*given, **named)

    module = importlib.import_module("howsure.topics.compare")
    monkeypatch.setattr(module, "bootstrap_means", counted)
    table = compare(done, order=found.models)
    assert len(calls) <= len(done[0].scores)  # draws for a measure, not for a pair
    columns = table.columns
    pairs = set(zip(columns["model_a"], columns["model_b"], strict=True))
    best = {"m0", "m1", "m2"}
    assert len(pairs) == 3 * 9 + 3
    assert all(best.intersection(pair) for pair in pairs)
    assert "all 12 are compared with the first 3 alone (m2, m0, m1)" in table.notes


def test_models_on_other_rows_are_refused() -> None:
    with pytest.raises(InputError, match="same rows"):
        compare([evaluate(normal_set(30)), evaluate(normal_set(30, seed=5))])


def test_curves_of_every_kind() -> None:
    held = normal_set(500, time=np.arange(500))
    names = {curve.name for curve in curves_of(evaluate(held))}
    assert names == {
        "calibration",
        "interval_calibration",
        "murphy",
        "pit_ecdf",
        "pit_histogram",
        "error_by_width",
        "risk_coverage",
        "risk_coverage_oracle",
        "rolling_coverage",
        "characteristic",
        "characteristic_constant",
        "characteristic_deficit",
        "characteristic_deficit_constant",
        "characteristic_isocost",
    }
    levels = [0.05, 0.5, 0.95]
    table = Quantiles(levels, np.tile([-1.6, 0.0, 1.6], (50, 1)))
    held = EvalSet.checked(child(0, "q").normal(size=50), table)
    curve = next(c for c in curves_of(evaluate(held)) if c.name == "calibration")
    assert curve.x.tolist() == levels


@pytest.mark.parametrize(("n", "count"), [(30, 1), (99, 1), (130, 2), (3_100, 60)])
def test_rolling_coverage_is_that_of_windows_of_equal_numbers_of_rows(n: int, count: int) -> None:
    """To within one row: the last window held up to twice the rows of its label."""
    order = child(0, "windows").permutation(n)
    held = normal_set(n, factor=0.7, time=order * 2.0)
    curve = next(c for c in curves_of(evaluate(held)) if c.name == "rolling_coverage")
    prediction = held.predictions[0].interval(0.9)
    covered = ((prediction[0] <= held.y) & (held.y <= prediction[1]))[np.argsort(order)]
    edges = [math.ceil(n * place / count) for place in range(count + 1)]
    parts = list(itertools.pairwise(edges))
    sizes = [b - a for a, b in parts]
    assert max(sizes) - min(sizes) <= 1
    assert curve.y == pytest.approx([covered[a:b].mean() for a, b in parts])
    bounds = [stats.binomtest(int(covered[a:b].sum()), b - a).proportion_ci(0.95) for a, b in parts]
    assert curve.lower == pytest.approx([each.low for each in bounds])
    assert curve.upper == pytest.approx([each.high for each in bounds])
    assert curve.x.tolist() == [2.0 * ((a + b) // 2) for a, b in parts]
    assert curve.y_label == f"Empirical coverage of {round(n / count)} rows"
    assert curve.band == "95 % binomial interval in each window, rows taken as independent"


def test_curves_are_cut_to_a_few_hundred_points_and_keep_their_ends() -> None:
    held = normal_set(5_000)
    found = evaluate(held)
    whole = found.view.get("characteristic")
    made = {curve.name: curve for curve in curves_of(found)}
    assert max(len(curve.x) for curve in made.values()) <= 500
    for name, y_axis in (("characteristic", "miss_rate"), ("characteristic_deficit", "deficit")):
        drawn, full = made[name], whole.on(x="bandwidth", y_axis=y_axis)
        assert 150 <= len(drawn.x) <= 300
        assert (drawn.x[0], drawn.y[0]) == (full.x[0], full.y[0])
        assert (drawn.x[-1], drawn.y[-1]) == (pytest.approx(full.at(miss_rate=0.0).bandwidth), 0.0)


@pytest.mark.parametrize("coverages", [(), (0.8,), (0.5, 0.95)])
def test_the_isocost_line_touches_the_deficit_curve_at_the_least_score(
    coverages: tuple[float, ...],
) -> None:
    held = normal_set(400)
    made = {c.name: c for c in curves_of(evaluate(held, coverages=coverages))}
    line, curve = made["characteristic_isocost"], made["characteristic_deficit"]
    coverage = {(): 0.9, (0.8,): 0.8, (0.5, 0.95): 0.95}[coverages]
    assert -np.diff(line.y)[0] / np.diff(line.x)[0] == pytest.approx(1 - coverage)
    gap = curve.y - np.interp(curve.x, line.x, line.y)
    assert gap[curve.x <= line.x[-1]].min() >= -1e-12  # the curve never lies below the line
    lower, upper = held.predictions[0].interval(0.9)
    point = held.predictions[0].point()

    def score(k: float) -> float:
        low, high = point + k * (lower - point), point + k * (upper - point)
        return float(interval_score(held.y, low, high, coverage=coverage).mean())

    least = min(score(float(k)) for k in np.abs(held.y - point) / (upper - point))
    assert 2 * line.x[-1] == pytest.approx(least, rel=1e-9)
    assert f"is {least:.4g}, the least" in line.notes
    assert f"as predicted it is {score(1.0):.4g}" in line.notes
    assert score(float(curve.hover["k"][5])) == pytest.approx(
        2 * curve.x[5] + 2 / (1 - coverage) * curve.y[5]
    )


def test_worst_rows_are_the_worst() -> None:
    y = np.zeros(100)
    y[17] = 50.0
    held = EvalSet.checked(y, Intervals(np.full(100, -1.0), np.full(100, 1.0), coverage=0.9))
    table = worst_rows(evaluate(held))
    assert table is not None
    assert table.columns["row"][0] == 17
    assert table.columns["interval_score"][0] == pytest.approx(2 + 20 * 49)


def test_worst_rows_that_tie_come_in_their_order() -> None:
    y = np.random.default_rng(3).integers(0, 4, 500).astype(np.float64)
    held = EvalSet.checked(y, Intervals(np.full(500, -1.0), np.full(500, 1.0), coverage=0.9))
    table = worst_rows(evaluate(held, metrics=["interval_score"]))
    assert table is not None
    assert table.columns["row"].tolist() == np.flatnonzero(y == 3.0)[:50].tolist()


def test_unknown_metric() -> None:
    with pytest.raises(
        InputError, match="metric must be a measure that howsure metrics lists, got"
    ):
        evaluate(normal_set(5), metrics=["nonsense"])


def test_one_row_has_values_but_no_standard_errors() -> None:
    found = {record.metric: record for record in evaluate(normal_set(1)).records}
    assert found["mae"].value >= 0
    assert all(math.isnan(record.standard_error) for record in found.values())
    assert 0 <= found["empirical_coverage"].lower < found["empirical_coverage"].upper <= 1
