"""Rows to look at: which are shown, in what order, with what ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.arrays import FloatArray
from howsure.core.records import ResultTable
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Intervals, LabelSets, Quantiles, Samples
from howsure.topics.interval_rows import MAX_ROWS_SHOWN, interval_tables


def made(*evalsets: EvalSet, **choices: Any) -> list[ResultTable]:
    """The tables of these sets, none of which lacks one."""
    tables, reasons = interval_tables([evaluate(held, **choices) for held in evalsets])
    assert not reasons
    return tables


def mean_sd(n: int = 900) -> tuple[FloatArray, FloatArray]:
    """Means and sds of the predictions."""
    rng = np.random.default_rng(5)
    return rng.normal(size=n), rng.uniform(0.5, 2.0, n)


def some(n: int = 900, **more: Any) -> EvalSet:
    """Normal predictions of unequal width, whose means and sds are those of `mean_sd`."""
    mean, sd = mean_sd(n)
    y = mean + sd * np.random.default_rng(4).normal(size=n)
    return EvalSet.checked(
        y, Distribution.normal(mean, sd), rows=[f"r{i}" for i in range(n)], **more
    )


def same(first: ResultTable, second: ResultTable) -> None:
    """Both hold the same rows in the same order."""
    assert list(first.columns) == list(second.columns)
    for name, column in first.columns.items():
        np.testing.assert_array_equal(column, second.columns[name])


def test_ends_are_those_of_the_prediction_and_rows_rise_in_width() -> None:
    held = some()
    (table,) = made(held)
    assert len(table) == MAX_ROWS_SHOWN
    places = [int(name[1:]) for name in table.columns["row"]]
    mean, sd = mean_sd()
    lower, upper = stats.norm.ppf([[0.05], [0.95]], mean[places], sd[places])
    np.testing.assert_allclose(table.columns["lower"], lower)
    np.testing.assert_allclose(table.columns["upper"], upper)
    np.testing.assert_array_equal(table.columns["y"], held.y[places])
    inside = (held.y[places] >= lower) & (held.y[places] <= upper)
    assert (table.columns["covered"] == "yes").tolist() == inside.tolist()
    assert (np.diff(upper - lower) >= 0).all()
    assert f"contain y in {inside.sum()} of them" in table.notes
    assert f"Shown: {MAX_ROWS_SHOWN} of 900 rows" in table.notes


@pytest.mark.parametrize("y", ["distinct", "repeated"])
def test_the_order_of_rows_has_no_say(y: str) -> None:
    held = some()
    if y == "repeated":
        held = EvalSet.checked(np.round(held.y), held.predictions, rows=held.rows)
    mixed = held.take(np.random.default_rng(1).permutation(held.n))
    same(*made(held), *made(mixed))


def test_all_models_show_the_same_rows() -> None:
    held = some()
    mean, sd = mean_sd()
    law = Distribution.normal(mean + 1, 2 / sd)
    other = EvalSet.checked(held.y, law, rows=held.rows, model="other")
    first, second = made(held, other)
    assert set(first.columns["row"]) == set(second.columns["row"])
    assert first.columns["row"].tolist() != second.columns["row"].tolist()


def test_every_row_is_as_likely_to_be_shown() -> None:
    n, held = 600, some(600)
    shown = np.zeros(n)
    found = evaluate(held, metrics=["empirical_coverage"])
    for seed in range(200):
        ((table,), _) = interval_tables([found], seed=seed)
        shown[[int(name[1:]) for name in table.columns["row"]]] += 1
    expected = 200 * MAX_ROWS_SHOWN / n
    chi = float(np.sum((shown - expected) ** 2) / (expected * (1 - MAX_ROWS_SHOWN / n)))
    assert stats.chi2.ppf(1e-4, n - 1) < chi < stats.chi2.isf(1e-4, n - 1)


def test_rows_stand_in_order_of_time_where_it_is_known() -> None:
    when = np.datetime64("2026-01-01") + np.random.default_rng(2).permutation(900)
    (table,) = made(some(time=when))
    assert (np.diff(table.columns["time"]) > np.timedelta64(0)).all()


def test_the_coverage_nearest_to_nine_tenths_is_shown() -> None:
    y, half = np.arange(5.0), np.tile([1.0, 2.0, 3.0], (5, 1))
    ends = Intervals(-half, half, coverage=[0.5, 0.8, 0.99])
    (table,) = made(EvalSet.checked(y, ends))
    assert table.columns["nominal"].tolist() == [0.99] * 5
    assert table.columns["upper"].tolist() == [3.0] * 5


@pytest.mark.parametrize(
    ("prediction", "point", "what"),
    [
        (Intervals(np.zeros(4), np.ones(4), coverage=0.9), None, "middle of the interval"),
        (Intervals(np.zeros(4), np.ones(4), coverage=0.9), np.ones(4), "prediction"),
        (Distribution.normal(np.zeros(4), np.ones(4)), None, "predicted mean"),
        (Quantiles([0.05, 0.5, 0.95], np.tile([0.0, 0.5, 1.0], (4, 1))), None, "median"),
        (Samples(np.random.default_rng(0).normal(size=(4, 50))), None, "predicted mean"),
    ],
)
def test_the_centre_is_named(prediction: Any, point: Any, what: str) -> None:
    (table,) = made(EvalSet.checked(np.arange(4.0), prediction, point=point))
    assert table.labels["point"] == what


def test_one_sided_intervals_have_a_place_where_there_is_a_point() -> None:
    low, high = np.array([-np.inf, 0.0, -np.inf]), np.array([1.0, np.inf, np.inf])
    ends = Intervals(low, high, coverage=0.9)
    (table,) = made(EvalSet.checked(np.zeros(3), ends, point=np.zeros(3)))
    assert table.columns["row"].tolist() == [0, 1]
    assert table.notes.endswith("Left out: 1 unbounded ones.")
    _, reasons = interval_tables([evaluate(EvalSet.checked(np.zeros(3), ends))])
    assert reasons == [
        "intervals of model cannot be drawn with y: every interval has an infinite end"
    ]


@pytest.mark.parametrize(
    "held",
    [
        EvalSet.checked([0.0, 1.0], point=[0.0, 1.0]),
        EvalSet.checked([0.0, 1.0], LabelSets(np.ones((2, 2), bool), coverage=0.9)),
    ],
)
def test_a_model_without_intervals_has_no_table_and_needs_no_reason(held: EvalSet) -> None:
    assert interval_tables([evaluate(held)]) == ([], [])
    assert interval_tables([]) == ([], [])
