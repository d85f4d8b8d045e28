"""Adaptivity of an evaluation set: the records are the measures of its arrays."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from howsure.core.records import Direction, Notion
from howsure.engine.catalogue import catalogue
from howsure.engine.measure import Evaluation, curves_of, evaluate, tables_of
from howsure.engine.metric import Question
from howsure.predictions import EvalSet, Intervals, LabelSets
from howsure.stats.dominance import label_rank
from howsure.stats.permutation import Resampling
from howsure.topics.adaptivity.association import t_ss
from howsure.topics.adaptivity.coverage import sscv, t_cv

QUICK = Resampling(replicates=30, permutations=30)


def sets(n: int = 800) -> tuple[EvalSet, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    sharp = rng.uniform(0.2, 3.0, n)
    logits = rng.normal(size=(n, 6)) * sharp[:, None]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    members = p >= np.quantile(p[np.arange(n), y], 0.1)
    return EvalSet.checked(y, LabelSets(members, 0.9), features={"sharp": sharp}), p, sharp


def adapted(
    held: EvalSet, *, ease: np.ndarray | None = None, resampling: Resampling = QUICK, **given: Any
) -> Evaluation:
    """Every measure of adaptivity, SSCV included."""
    if ease is not None:
        held = replace(held, features={**held.features, "ease": ease})
    names = [m.name for m in catalogue().values() if m.question is Question.ADAPTIVITY]
    return evaluate(held, metrics=names, beside="ease", given={**given, "resampling": resampling})


def test_records_of_label_sets_are_the_measures() -> None:
    held, p, sharp = sets()
    report = adapted(held, ease=sharp, class_scores=p, bins=20)
    found = {record.metric: record for record in report.records}
    prediction = held.predictions[0]
    assert isinstance(prediction, LabelSets)
    covered = prediction.contains(held.y).astype(float)
    rank = label_rank(p, held.y)
    first = t_cv(covered, sharp, coverage=0.9, bins=20, resampling=QUICK)
    second = t_ss(prediction.sizes, rank, sharp, bins=20, resampling=QUICK)
    third = sscv(covered, prediction.sizes, coverage=0.9, resampling=QUICK)
    for name, measure in (("t_cv", first), ("t_ss", second), ("sscv", third)):
        record, want = found[name], measure.estimate
        assert (record.value, record.null, record.lower) == (want.value, want.null, want.lower)
        assert (record.null_upper, record.p) == (want.null_upper, want.p)
        assert (record.notion, record.coverage, record.n) == (Notion.LOCAL, 0.9, 800)
    size = prediction.sizes.mean()
    assert found["set_deficit"].value - found["set_excess"].value + size == pytest.approx(
        rank.mean(), abs=1e-12
    )
    assert found["rank_cv"].direction is Direction.NONE


def test_curves_show_the_cells_with_the_band_of_a_perfect_model() -> None:
    held, p, sharp = sets()
    report = adapted(held, ease=sharp, class_scores=p, bins=20)
    by_ease, by_size = curves_of(report)
    (table,) = tables_of(report)
    found = {record.metric: record for record in report.records}
    assert len(table) == 20
    assert table.columns["n"].sum() == 800
    np.testing.assert_array_equal(by_ease.y, table.columns["coverage"])
    assert np.abs(by_ease.y - 0.9).max() == pytest.approx(found["t_cv"].value)
    assert by_ease.lower is not None
    assert by_ease.lower[0] == pytest.approx(0.9 - found["t_cv"].null_upper)
    assert (np.diff(by_size.x) >= 0).all()
    slope, start = np.polyfit(by_size.x, by_size.y, 1)
    rest = by_size.y - slope * by_size.x - start
    r2 = 1 - (rest**2).sum() / ((by_size.y - by_size.y.mean()) ** 2).sum()
    assert np.sign(slope) * r2 == pytest.approx(found["t_ss"].value)


def test_what_is_not_known_is_told() -> None:
    held, p, sharp = sets()
    bare = {r.metric: r for r in adapted(held).records}
    assert math.isnan(bare["t_cv"].value)
    assert bare["t_cv"].reason == "the ease of each row is needed"
    assert "probabilities" in bare["rank_ss"].reason
    assert bare["sscv"].value >= 0
    assert curves_of(adapted(held)) == ()
    clusters = EvalSet.checked(held.y, held.predictions, cluster=np.arange(800) // 2)
    told = {r.metric: r for r in adapted(clusters, ease=sharp).records}
    assert "independent" in told["t_cv"].reason
    weighted = EvalSet.checked(held.y, held.predictions, weights=np.full(800, 2))
    doubled = {r.metric: r for r in adapted(weighted, ease=sharp, class_scores=p).records}
    assert doubled["t_cv"].n == 1600
    assert "unweighted" in doubled["satisfaction_rate"].reason


def test_intervals_of_one_width_have_no_slope_and_infinite_ones_no_size() -> None:
    rng = np.random.default_rng(1)
    y, ease = rng.normal(size=200), rng.random(200)
    flat = EvalSet.checked(y, Intervals(np.full(200, -1.5), np.full(200, 1.5), coverage=0.9))
    found = {r.metric: r for r in adapted(flat, ease=ease).records}
    assert math.isnan(found["t_ss"].value)
    assert "size" in found["t_ss"].reason
    assert found["t_cv"].value > 0
    assert found["t_cv"].options["cells"] == 40  # five rows a cell at least
    far = 1e6 + rng.normal(size=200)  # ends are rounded, widths are one all the same
    shifted = EvalSet.checked(far, Intervals(far - 0.1, far + 0.1, coverage=0.9))
    none = {r.metric: r for r in adapted(shifted, ease=ease).records}
    assert math.isnan(none["t_ss"].value)
    wide = EvalSet.checked(y, Intervals(np.full(200, -np.inf), np.full(200, 1.5), coverage=0.9))
    told = {r.metric: r for r in adapted(wide, ease=ease).records}
    assert "unbounded" in told["t_ss"].reason
    assert told["t_cv"].value > 0


def test_class_scores_of_another_shape_are_told() -> None:
    held, _, sharp = sets()
    found = {r.metric: r for r in adapted(held, ease=sharp, class_scores=np.ones((800, 2))).records}
    assert found["t_ss"].reason == "class scores must have shape (800, 6), got (800, 2)"
    assert found["t_cv"].value > 0


def test_a_point_alone_and_unknown_coverage_have_reasons() -> None:
    ease = np.arange(2.0)
    for held in (
        EvalSet.checked([0.0, 1.0], point=[0.0, 1.0]),
        EvalSet.checked([0.0, 1.0], Intervals([0.0, 0.0], [1.0, 1.0])),
    ):
        (record,) = (r for r in adapted(held, ease=ease).records if r.metric == "t_cv")
        assert math.isnan(record.value)
        assert record.reason


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_a_few_rows_have_numbers_or_reasons(n: int) -> None:
    rng = np.random.default_rng(n)
    y, ends = rng.normal(size=n), np.ones(n)
    held = EvalSet.checked(y, Intervals(-ends, ends, coverage=0.9), point=0 * y)
    for column in (rng.random(n), np.zeros(n), np.arange(n) % 2, np.full(n, np.nan)):
        for record in adapted(held, ease=column).records:
            assert math.isfinite(record.value) or record.reason


def _claimed(n: int = 2000, slope: float = 0.0) -> EvalSet:
    """Sets that class probabilities claim; with a slope those of hard rows are too sure."""
    rng = np.random.default_rng(5)
    ease = rng.uniform(size=n)
    logits = rng.normal(size=(n, 6)) * (0.3 + 3 * ease[:, None])
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.minimum((chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 5)
    stated = np.exp(logits * (1 + slope * (1 - ease[:, None])))
    stated /= stated.sum(axis=1, keepdims=True)
    return EvalSet.checked(y, LabelSets.likeliest(stated, 0.9), features={"ease": ease})


def test_ranks_come_from_the_probabilities_of_the_sets() -> None:
    held = _claimed(400)
    prediction = held.predictions[0]
    assert isinstance(prediction, LabelSets)
    assert prediction.probabilities is not None
    found = {record.metric: record for record in adapted(held).records}
    given = {r.metric: r for r in adapted(held, class_scores=prediction.probabilities).records}
    for name in ("t_ss", "set_deficit", "set_excess", "rank_cv", "rank_ss", "satisfaction_rate"):
        assert math.isfinite(found[name].value), name
        assert found[name].value == given[name].value
    rank = label_rank(prediction.probabilities, held.y)
    assert found["set_deficit"].value == np.maximum(rank - prediction.sizes, 0).mean()


@pytest.mark.rate
def test_the_floor_follows_what_sets_claim() -> None:
    held = _claimed()
    prediction, ease = held.predictions[0], held.features["ease"]
    assert isinstance(prediction, LabelSets)
    record = {r.metric: r for r in adapted(held, bins=10).records}["t_cv"]
    order = np.argsort(ease)
    rng = np.random.default_rng(0)
    drawn = [
        np.abs(
            (rng.random(2000) < prediction.claims)[order].reshape(10, 200).mean(axis=1) - 0.9
        ).max()
        for _ in range(2000)
    ]
    wide = Resampling(replicates=0, permutations=2000)
    exact = {r.metric: r for r in adapted(held, bins=10, resampling=wide).records}["t_cv"]
    assert exact.null == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / math.sqrt(1000))
    assert record.p > 0.05
    fixed = t_cv(prediction.contains(held.y), ease, coverage=0.9, bins=10, resampling=QUICK)
    assert fixed.estimate.p < 0.05 < record.p  # as if sets claimed 90 % alone


def test_parts_by_ease_are_those_of_the_rows() -> None:
    held = _claimed(slope=3.0)
    prediction, ease = held.predictions[0], held.features["ease"]
    assert isinstance(prediction, LabelSets)
    record = {r.metric: r for r in adapted(held).records}["t_cv"]
    assert float(record.options["ease_differ"]) < 1e-3
    where = str(record.options["where"])
    low, high = -math.inf, math.inf
    if "≤" in where:
        high = float(where.split("≤")[1])
    if ">" in where:
        low = float(where.split(">")[1])
    if "<" in where:
        low = float(where.split("<")[0])
    inside = (ease > low) & (ease <= high)
    assert float(record.options["rows"]) == pytest.approx(inside.sum(), abs=2)
    seen = prediction.contains(held.y)[inside].mean()
    assert float(record.options["value"]) == pytest.approx(seen, abs=0.003)
    right = {r.metric: r for r in adapted(_claimed()).records}["t_cv"]
    assert float(right.options["ease_differ"]) > 0.05


def test_one_ease_for_all_rows_divides_nothing() -> None:
    held = _claimed(100)
    for ease, reason in (
        (np.ones(100), "the same ease in every row"),
        (None, "'ease' must contain num"),
    ):
        column = np.array(["a", "b"] * 50) if ease is None else ease
        found = {r.metric: r for r in adapted(held, ease=column).records}
        assert math.isnan(found["t_cv"].value)
        assert reason in found["t_cv"].reason
    tied = {r.metric: r for r in adapted(held, ease=np.repeat([0.0, 1.0], 50)).records}["t_cv"]
    assert math.isfinite(tied.value)
    assert str(tied.options["where"]) in ("ease ≤ 0", "ease > 0")
