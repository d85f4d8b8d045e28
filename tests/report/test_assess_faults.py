"""One measure never takes the report with it; and each fault once seen, as a test."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from howsure import Table, assess
from howsure.core.errors import _strict
from howsure.engine import measure
from howsure.figures import build
from howsure.figures import groups as groups_figure
from howsure.inputs import Loaded
from howsure.predictions import Distribution, Intervals, Quantiles, Samples
from howsure.report import assess as door
from howsure.report import congruence as report_congruence
from howsure.report import grids, measured
from howsure.report.assessment import Assessment
from howsure.stats.kernels import RBF
from howsure.stats.solvers import landmark_factor
from howsure.topics import association, coverage, groups
from howsure.topics.characteristic import view as characteristic
from howsure.topics.conditional import dependence, forests
from howsure.topics.conditional import view as conditional
from howsure.topics.conditional.dependence import width_correlation
from howsure.topics.conditional.forests import edge_of, tree_inputs, tree_parts
from howsure.topics.congruence import view as congruence
from howsure.verdict import findings

pytestmark = [pytest.mark.slow, pytest.mark.few_draws]

RNG = np.random.default_rng


def whole(**known: Any) -> Assessment:
    """A report with everything in it, of two models."""
    rng = RNG(0)
    n = 60
    x, y = rng.normal(size=n), rng.normal(size=n)
    sd = rng.uniform(0.5, 2.0, n)
    models = {
        "a": Distribution.normal(np.zeros(n), sd),
        "b": Distribution.normal(0.1 * x, np.ones(n)),
    }
    site = np.where(x > 0, "north", "south")
    return assess(y, models, features={"x": x}, groups={"site": site}, time=np.arange(n), **known)


STAGES = (
    (measure, "_answered", "crps"),
    (groups, "_means", "mae in groups"),
    (groups.GroupComparison, "table", "coverage in groups"),
    (groups.GroupComparison, "difference", "groups_differ"),
    (groups.GroupComparison, "shortfall", "worst_group_shortfall"),
    (measured, "assess_groups", "groups of a"),
    (coverage, "clopper_pearson", "curves of Do the intervals cover"),
    (characteristic, "characteristic_curves", "curves of What does covering more"),
    (characteristic, "_interval_cost", "tables of What does covering more"),
    (measured, "worst_rows", "worst rows"),
    (conditional, "worst_slab", "worst_slab of a"),
    (conditional, "ert", "ert_absolute of a"),
    (dependence, "landmark_factor", "hsic of a"),
    (conditional, "local_pit", "local_pit"),
    (conditional, "coverage_gap", "coverage_gap"),
    (congruence, "fitted_reference", "mean_cce of a"),
    (congruence, "map_table", "map of congruence"),
    (congruence, "tree_table", "tree of congruence"),
    (congruence, "rejection_curves", "rejection by congruence"),
    (report_congruence, "with_embedding", "congruence"),
    (measured, "compare", "comparison of models"),
    (findings, "_asked", "in the verdict on a"),
)


@pytest.mark.parametrize(("room", "name", "told"), STAGES, ids=[name for _, name, _ in STAGES])
@pytest.mark.rate
def test_a_fault_of_one_stage_leaves_the_others(
    room: Any, name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise np.linalg.LinAlgError("on purpose")

    monkeypatch.setattr(forests, "TREES", 2)
    monkeypatch.setattr(room, name, broken)
    _strict.set(False)
    result = whole()
    assert told in result.facts["Notes"]
    assert "fault in howsure (LinAlgError: on purpose); please report" in result.facts["Notes"]
    lost = [r for r in result.records if math.isnan(r.value)]
    assert all(record.reason for record in lost)
    if name != "_answered":
        assert {"crps", "empirical_coverage", "kendall_tau"} <= {
            r.metric for r in result.records if not math.isnan(r.value)
        }
        assert len([r for r in lost if "fault" in r.reason and not r.group]) < 10
    assert result.verdict.splitlines()[-1]
    assert "please report it" in result.document().to_markdown()


@pytest.mark.parametrize(
    ("room", "name"),
    [(build, "_figure_of_curves"), (groups_figure, "_read"), (grids, "table_grid")],
)
def test_a_fault_of_a_figure_or_a_table_leaves_the_page(
    room: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OverflowError("on purpose")

    result = whole()
    monkeypatch.setattr(room, name, broken)
    _strict.set(False)
    assert "fault in howsure (OverflowError: on purpose)" in result.to_html()
    assert result.to_markdown()


def test_models_of_different_rows_are_refused_and_no_fault() -> None:
    from howsure.predictions import EvalSet

    one, two = (
        EvalSet.checked([y, 1.0], Distribution.normal([0.0, 0.0], [1.0, 1.0]), model=name)
        for y, name in ((0.0, "a"), (2.0, "b"))
    )
    _strict.set(False)
    with pytest.raises(ValueError, match="y differs between a and b"):
        door.assess_loaded(Loaded(evalsets=(one, two)))


@pytest.mark.parametrize("seed", range(25))
def test_one_interval_of_huge_width_beside_a_feature(seed: int) -> None:
    rng = RNG(seed)
    n = 100
    reach = 1.6 * rng.uniform(0.5, 1.5, n)
    reach[3] = 5e11
    covered = np.abs(rng.normal(size=n)) <= reach
    found = width_correlation(covered, 2 * reach, coverage=0.9).estimate
    assert abs(found.value) <= 1 or math.isnan(found.value)
    part = np.array([0.5, 1.0, 1.5, 2.0])
    plain = width_correlation([0, 1, 1, 0, 1], [*part, 3.0], coverage=0.9).estimate
    far = width_correlation([0, 1, 1, 0, 1], [*part, 3e12], coverage=0.9).estimate
    assert math.isfinite(plain.error)
    assert math.isfinite(far.error)


def test_the_jackknife_of_the_correlation_is_the_textbook_one() -> None:
    rng = RNG(0)
    wide, hit = np.sort(rng.uniform(1, 3, 40)), rng.random(40) < 0.7
    kept = [np.delete(np.arange(40), i) for i in range(40)]
    each = [np.corrcoef(wide[rows], hit[rows])[0, 1] for rows in kept]
    error = math.sqrt(39 * np.var(each))
    assert width_correlation(hit, wide, coverage=0.9).estimate.error == pytest.approx(error)


def test_a_factor_does_without_pivots_that_rounding_spoils() -> None:
    rng = RNG(584598113)
    rng.integers(1, 7)
    rng.choice(["n", "u", "ln", "t", "int", "dup"])
    rows = rng.lognormal(0, 2, size=(2000, 3))
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    kernel = RBF(0.005 / rows.var(axis=0, ddof=1).sum())
    factor, residual = landmark_factor(kernel, rows, tolerance=4.7e-5, max_rank=60)
    assert residual.sum() < 4.7e-5
    np.testing.assert_allclose(factor @ factor.T, kernel.gram(rows, rows), atol=1e-12)


def test_ranks_where_one_row_holds_all_weight() -> None:
    error, width = np.arange(1.0, 6.0), np.array([2.0, 1.0, 4.0, 3.0, 5.0])
    for measure_of in (association.spearman, association.kendall_tau):
        weights = np.array([1e-20, 1e-20, 1.0, 1e-20, 1e-20])
        found = measure_of(error, width, weights)
        assert math.isnan(found.value)
        assert "one of the widths has all weight" in found.reason
        assert math.isfinite(measure_of(error, width, np.array([1e-8, 1e-8, 1, 1e-8, 1e-8])).value)


@pytest.mark.parametrize("size", [1e39, 1e60, 1e300, 1e-60])
def test_trees_see_numbers_that_32_bits_cannot_hold(size: float) -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0]) * size
    inputs, levels = tree_inputs(values[:, None])
    assert inputs[:, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert edge_of(levels, 0, 1.5) == 1.5 * size
    x = np.arange(100.0)[:, None]
    _, plain = tree_parts(x, (x[:, 0] > 50).astype(float), ["age"])
    _, scaled = tree_parts(size * x, (x[:, 0] > 50).astype(float), ["age"])
    assert sorted(plain.values()) == ["age > 50.5", "age ≤ 50.5"]
    assert sorted(scaled.values()) == [f"age > {50.5 * size:.4g}", f"age ≤ {50.5 * size:.4g}"]


def test_a_feature_with_one_enormous_number() -> None:
    rng = RNG(0)
    x = rng.normal(size=100)
    x[0] = 1e60
    prediction = Distribution.normal(np.zeros(100), np.ones(100))
    result = assess(rng.normal(size=100), prediction, features={"a": x})
    for metric in ("ert_squared", "local_pit", "mean_cce", "worst_slab"):
        assert math.isfinite(result.value(metric)), result.record(metric).reason


def test_a_constant_feature_is_the_reason_of_congruence_alone() -> None:
    rng = RNG(0)
    prediction = Distribution.normal(np.zeros(80), np.ones(80))
    result = assess(rng.normal(size=80), prediction, features={"a": np.ones(80)})
    assert "must have a column that varies" in result.record("mean_cce").reason
    assert result.record("ert_squared").reason == "no input varies"
    assert math.isfinite(result.value("crps"))


def test_one_constant_row_of_an_ensemble() -> None:
    rng = RNG(0)
    samples = rng.normal(size=(80, 20))
    samples[3] = 0.1
    result = assess(rng.normal(size=80), Samples(samples))
    told = result.record("ence").reason
    assert told.startswith("the samples of 1 row are all equal (first at row 3), so no error")
    for metric in ("mean_squared_z", "sharpness", "kendall_tau", "crps", "crps_fair"):
        assert math.isfinite(result.value(metric)), metric
    assert Samples(samples).sd()[3] == 0.0


def test_a_table_with_one_sample_a_row() -> None:
    rng = RNG(0)
    result = assess({"y": rng.normal(size=80), "s_1": rng.normal(size=80)})
    assert "at least 2 columns for a fair score" in result.record("crps_fair").reason
    assert math.isfinite(result.value("mae"))


def test_one_group_has_no_other_to_differ_from() -> None:
    rng = RNG(0)
    prediction = Distribution.normal(np.zeros(80), np.ones(80))
    result = assess(rng.normal(size=80), prediction, groups={"g": ["a"] * 80})
    assert result.record("groups_differ").reason == "no group to compare with the rest"


def test_numbers_whose_squares_vanish_or_overflow() -> None:
    rng = RNG(0)
    y, point = rng.normal(size=80), 0.1 * rng.normal(size=80)
    plain = assess(Table(y, point=point))
    for size in (2.0**-700, 2.0**300):
        scaled = assess(Table(size * y, point=size * point))
        for metric, power in (("rmse", 1), ("mae", 1), ("bias", 1), ("r_squared", 0)):
            one, other = plain.record(metric), scaled.record(metric)
            factor = size**power
            for name in ("value", "standard_error", "lower", "upper"):
                want = getattr(one, name) * factor  # summed in another order of rows
                assert getattr(other, name) == pytest.approx(want, rel=1e-12, abs=0), metric


@pytest.mark.parametrize("pointed", [True, False])
def test_three_infinite_ends_leave_the_measures_of_rank(pointed: bool) -> None:
    rng = RNG(0)
    n = 200
    sd = rng.uniform(0.5, 2.0, n)
    y, upper = rng.normal(size=n) * sd, 1.64 * sd
    upper[:3] = np.inf
    point = np.zeros(n) if pointed else None
    result = assess(Table(y, Intervals(-1.64 * sd, upper, coverage=0.9), point=point))
    rows = slice(0 if pointed else 3, None)
    width = np.where(np.isinf(upper), np.inf, 3.28 * sd)
    expected = association.kendall_tau(np.abs(y)[rows], width[rows]).value
    for metric in ("kendall_tau", "spearman", "aurc", "error_most_certain_50"):
        record = result.record(metric)
        assert math.isfinite(record.value), metric
        told = "on 197 of 200 rows, those whose interval has a midpoint"
        assert record.reason == ("" if pointed else told)
    assert result.value("kendall_tau") == pytest.approx(expected)
    assert "same width" not in result.verdict


def silent(result: Assessment) -> list[tuple[str, str]]:
    (table,) = [table for table in result.tables if table.name == "not_judged"]
    return list(zip(table.columns["id"], table.columns["reason"], strict=True))


def test_a_missing_tau_is_no_sign_of_flat_widths() -> None:
    rng = RNG(0)
    y = rng.normal(size=400)
    lower, upper = np.full(400, -np.inf), np.full(400, 1.2816)
    unbounded = assess(y, Intervals(lower, upper, coverage=0.9))
    assert math.isnan(unbounded.value("kendall_tau"))
    assert "same width" not in unbounded.verdict
    flat = assess(y, Intervals(np.full(400, -1.645), np.full(400, 1.645), coverage=0.9))
    (reason,) = [why for name, why in silent(flat) if name == "width"]
    assert reason == "every row has the same width, and the table has no inputs"


def test_importance_weights_of_clusters_count_as_kish_has_it_in_groups() -> None:
    y = np.array([0.0, 1.0, 2.0, 3.0])
    known = {"weights_kind": "importance", "cluster": [0, 0, 1, 2], "groups": {"g": ["a"] * 4}}
    known["weights"] = [1e24, 1e24, 1e24, 1e24]
    result = assess(Table(y, Intervals(y - 1, y + 1, coverage=0.9), **known))
    assert {r.n for r in result.records if r.group == "g=a"} == {4.0}


def test_rounding_crosses_no_interval_between_equal_samples_or_quantiles() -> None:
    rng = RNG(0)
    values = np.repeat(rng.normal(size=(500, 1)), 5, axis=1)
    levels = np.array([0.05, 0.3, 0.5, 0.7, 0.95])
    wanted = np.linspace(0.2, 0.8, 41)
    for prediction in (Samples(values), Quantiles(levels, values)):
        assert (np.diff(prediction.quantile(wanted), axis=1) >= 0).all()
        lower, upper = prediction.interval(0.6)
        assert (lower <= upper).all()
