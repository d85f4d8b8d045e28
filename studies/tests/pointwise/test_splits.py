"""Repeated splits: the published ones, means and errors by hand, methods that misbehave."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure.core.rng import child
from howsure.inputs.distributions import located
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.quantile_forest import QuantileForest
from howsure_studies.methods.quantile_regression import linear_quantiles
from howsure_studies.methods.regressors import SplitConformal
from howsure_studies.pointwise import (
    against_published,
    over_splits,
    published_splits,
    time_splits,
    unit_splits,
)
from howsure_studies.tasks import uci, uci_fixed, uci_names


class Steady(Method, Fitted):
    """Says the training mean ± 1, and fails or warns on the splits named."""

    def __init__(self, fails: tuple[int, ...] = (), warns: tuple[int, ...] = ()) -> None:
        self.fails, self.warns, self.count = fails, warns, -1

    @property
    def name(self) -> str:
        return "steady"

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        self.count += 1
        if self.count in self.fails:
            raise ZeroDivisionError("no fit")
        if self.count in self.warns:
            warnings.warn("careful", stacklevel=2)
        self.mean = float(np.mean(y))
        return self

    def predict(self, x: Any) -> Predictions:
        return Predictions(located("norm", np.full(len(x), self.mean), np.ones(len(x))))


def some(rows: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.uniform(size=(rows, 2))
    return x, x @ [1.0, -2.0] + 0.3 * rng.normal(size=rows)


@pytest.mark.parametrize("name", [name for name in uci_names() if uci_fixed(name) is None])
def test_splits_are_those_that_were_published(name: str, data_dir: Callable[[str], Path]) -> None:
    data_dir(f"uci_{name}")
    table = uci(name)
    made = published_splits(len(table.y), len(table.splits))
    for ours, theirs in zip(made, table.splits, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_splits_leave_the_global_generator_alone() -> None:
    state = np.random.get_state
    before = state()[1].tolist()
    published_splits(50)
    assert state()[1].tolist() == before


@pytest.mark.parametrize(
    ("rows", "count", "share", "words"),
    [(1, 20, 0.1, "rows"), (50, 0, 0.1, "count"), (50, 20, 1.0, "share"), (4, 1, 0.1, "share")],
)
def test_splits_that_cannot_be_are_refused(rows: int, count: int, share: float, words: str) -> None:
    with pytest.raises(InputError, match=words):
        published_splits(rows, count, share=share)


def test_error_and_likelihood_are_those_by_hand() -> None:
    x, y = some()
    cuts = published_splits(len(y), 4)
    result = over_splits(x, y, Steady(), splits=cuts, metrics=["rmse", "log_score"])
    rmse = [math.sqrt(np.mean((y[test] - y[train].mean()) ** 2)) for train, test in cuts]
    score = [-stats.norm.logpdf(y[test], y[train].mean(), 1.0).mean() for train, test in cuts]
    np.testing.assert_allclose(result.values("rmse"), rmse)
    np.testing.assert_allclose(result.values("log_score"), score)
    assert result.done == (0, 1, 2, 3)
    assert result.seconds.shape == (4,)


def test_the_line_is_the_line_of_scikit_learn() -> None:
    x, y = some()
    cuts = published_splits(len(y), 3)
    result = over_splits(x, y, LinearT(), splits=cuts, metrics=["rmse", "empirical_coverage"])
    for value, (train, test) in zip(result.values("rmse"), cuts, strict=True):
        point = LinearRegression().fit(x[train], y[train]).predict(x[test])
        assert value == pytest.approx(math.sqrt(np.mean((y[test] - point) ** 2)))


def test_the_error_of_the_mean_knows_that_splits_overlap() -> None:
    x, y = some()
    result = over_splits(x, y, Steady(), metrics=["rmse"])
    values = result.values("rmse")
    assert len(values) == 20
    record = result.record("rmse")
    sd = values.std(ddof=1)
    assert record.value == pytest.approx(values.mean())
    assert record.options["published_error"] == pytest.approx(sd / math.sqrt(20))
    assert record.standard_error == pytest.approx(sd * math.sqrt(1 / 20 + 6 / 54))
    reach = stats.t.ppf(0.975, 19) * record.standard_error
    assert (record.lower, record.upper) == pytest.approx(
        (values.mean() - reach, values.mean() + reach)
    )
    assert record.n == 20
    assert record.units == "y"


def test_the_corrected_error_is_nearer_the_truth() -> None:
    """Over tables drawn anew: the sd of the mean over splits, and what each error claims."""
    rng = np.random.default_rng(0)
    cuts = published_splits(40, 10)
    means, plain, corrected = [], [], []
    for _ in range(200):
        y = rng.normal(size=40)
        record = over_splits(np.zeros((40, 1)), y, Steady(), splits=cuts, metrics=["mae"])
        found = record.record("mae")
        means.append(found.value)
        plain.append(found.options["published_error"])
        corrected.append(found.standard_error)
    truth = np.std(means, ddof=1)
    assert abs(np.mean(corrected) - truth) < abs(np.mean(plain) - truth)
    assert np.mean(plain) < 0.8 * truth


def test_everything_of_the_catalogue_is_measured() -> None:
    x, y = some()
    result = over_splits(x, y, LinearT(), splits=published_splits(60, 3), coverages=(0.8, 0.9))
    named = {record.metric for record in result.records()}
    assert {"rmse", "mae", "log_score", "crps", "empirical_coverage", "interval_score"} <= named
    at = [r.coverage for r in result.records() if r.metric == "empirical_coverage"]
    assert at == [0.8, 0.9]
    assert (
        result.record("empirical_coverage", 0.9).value
        == result.values("empirical_coverage", 0.9).mean()
    )
    conformal = over_splits(
        x, y, SplitConformal(LinearRegression()), splits=published_splits(60, 3), coverages=(0.9,)
    )
    lost = conformal.record("log_score")
    assert math.isnan(lost.value)
    assert lost.reason


NINETEEN = np.arange(1, 20) / 20


def test_pinball_is_averaged_over_the_levels_asked_for() -> None:
    x, y = some()
    splits = published_splits(60, 3)
    found = over_splits(x, y, Steady(), splits=splits, metrics=["rmse", "crps"], levels=NINETEEN)
    at = stats.norm.ppf(NINETEEN)
    for (train, test), loss, crps in zip(
        splits, found.values("pinball"), found.values("crps"), strict=True
    ):
        off = y[test, None] - (y[train].mean() + at)
        assert loss == pytest.approx(np.maximum(NINETEEN * off, (NINETEEN - 1) * off).mean())
        fine = (np.arange(20_000) + 0.5) / 20_000  # CRPS is twice the mean over all levels
        wide = y[test, None] - (y[train].mean() + stats.norm.ppf(fine))
        assert crps == pytest.approx(2 * np.maximum(fine * wide, (fine - 1) * wide).mean(), 1e-3)
    assert found.record("pinball").n == 3


def test_quantiles_are_scored_at_levels_near_their_own() -> None:
    x, y = some()
    splits = published_splits(60, 2)
    many = QuantileForest(trees=10, coverages=tuple(np.arange(1, 10) / 10))
    asked = over_splits(x, y, many, splits=splits, metrics=["pinball"], levels=NINETEEN)
    own = over_splits(x, y, many, splits=splits, metrics=["pinball"])
    assert asked.values("pinball") == pytest.approx(own.values("pinball"))
    gap = linear_quantiles(coverages=tuple(np.arange(1, 10) / 10))  # all but the median
    between = over_splits(x, y, gap, splits=splits, metrics=["pinball"], levels=NINETEEN)
    losses = []
    for number, (train, test) in enumerate(splits):
        fitted = gap.fit(x[train], y[train], child(0, "splits", gap.name, number))
        table = fitted.predict(x[test]).outcome.values
        whole = np.insert(table, 9, (table[:, 8] + table[:, 9]) / 2, axis=1)
        off = y[test, None] - whole
        losses.append(np.maximum(NINETEEN * off, (NINETEEN - 1) * off).mean())
    assert between.values("pinball") == pytest.approx(losses)
    few = QuantileForest(trees=10, coverages=(0.9,))
    lost = over_splits(x, y, few, splits=splits, metrics=["pinball"], levels=NINETEEN)
    assert len(lost.records()) == 1
    assert math.isnan(lost.record("pinball").value)
    assert lost.record("pinball").reason == "no quantile is predicted within 0.05 of level 0.15"
    conformal = SplitConformal(LinearRegression())
    bare = over_splits(x, y, conformal, splits=splits, metrics=["rmse"], levels=NINETEEN)
    assert math.isnan(bare.record("pinball").value)
    assert bare.record("pinball").reason


def test_bad_splits_are_kept_apart() -> None:
    x, y = some()
    result = over_splits(
        x, y, Steady(fails=(1,), warns=(2, 3)), splits=published_splits(60, 5), metrics=["rmse"]
    )
    assert result.done == (0, 2, 3, 4)
    assert result.record("rmse").n == 4
    (failure,) = result.failures
    assert (failure.split, failure.error, failure.message) == (1, "ZeroDivisionError", "no fit")
    assert "no fit" in failure.trace
    assert result.warnings == {"UserWarning: careful": 2}


def test_no_split_leaves_a_reason() -> None:
    x, y = some()
    result = over_splits(x, y, Steady(fails=(0, 1)), splits=published_splits(60, 2))
    assert result.records() == ()
    with pytest.raises(InputError, match="no split succeeded; the first failed: Zero"):
        result.values("rmse")


@pytest.mark.parametrize(
    "splits",
    [
        [],
        [([0, 1], [1, 2])],
        [([0, 1], [99])],
        [([0, 1], [-1])],
        [([0, 1], [])],
        [([0.5, 1.0], [2.0])],
    ],
)
def test_row_numbers_that_cannot_be_are_refused(splits: Any) -> None:
    x, y = some(10)
    with pytest.raises(InputError, match="splits must contain"):
        over_splits(x, y, Steady(), splits=splits)


def test_a_run_reports_its_progress() -> None:
    x, y = some()
    steps: list[tuple[str, int, int]] = []
    with subscribe(lambda *step: steps.append(step)):
        over_splits(x, y, Steady(), splits=published_splits(60, 2), metrics=["rmse"])
    assert steps == [("splits", 0, 2), ("splits", 1, 2), ("splits", 2, 2)]


def test_methods_stand_beside_the_published_numbers(data_dir: Callable[[str], Path]) -> None:
    """Published MC dropout on Boston: 2.90 and −2.40; a line is worse by 1.7 and 0.56."""
    data_dir("uci_boston")
    table = uci("boston")
    result = over_splits(
        table.x,
        table.y,
        LinearT(),
        splits=table.splits,
        metrics=["rmse", "log_score"],
        table="boston",
    )
    held = against_published([result], table.reference).columns
    assert held["metric"].tolist() == ["rmse", "log_score"]
    assert held["published"] == pytest.approx([2.90, 2.40], abs=0.005)
    assert held["mean"] == pytest.approx([4.59, 2.96], abs=0.01)
    differences = result.values("rmse") - table.reference["test_MC_rmse"]
    assert held["difference"][0] == pytest.approx(differences.mean())
    expected = differences.std(ddof=1) * math.sqrt(1 / 20 + 51 / 455)
    assert held["standard_error"][0] == pytest.approx(expected)
    summary = {record.metric: record.value for record in result.records()}
    assert [summary["rmse"], summary["log_score"]] == held["mean"].tolist()
    with pytest.raises(InputError, match="published must contain 20 splits, got 3"):
        against_published([result], {k: v[:3] for k, v in table.reference.items()})


def test_no_unit_is_on_both_sides_and_units_have_the_same_chance() -> None:
    units = np.repeat(np.arange(20), np.arange(1, 21))
    units = np.random.default_rng(0).permutation(units)
    cuts = unit_splits(units, 400, share=0.25)
    tested = np.zeros(20)
    for train, test in cuts:
        assert not set(units[train]) & set(units[test])
        assert sorted([*train, *test]) == list(range(len(units)))
        assert len(set(units[test])) == 5
        tested[list(set(units[test]))] += 1
    assert (np.abs(tested / 400 - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 400)).all()
    named = [f"patient {unit:02d}" for unit in units]
    for one, two in zip(cuts, unit_splits(named, 400, share=0.25), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(("rows", "count", "times"), [(60, 5, 60), (61, 7, 40), (200, 20, 90)])
def test_no_row_is_tested_that_is_earlier_than_one_trained_on(
    rows: int, count: int, times: int
) -> None:
    """By brute force from the definition: the first new time with so many rows before it."""
    when = np.random.default_rng(1).integers(0, times, size=rows)
    cuts = time_splits(when, count)
    assert len(cuts) == count
    moments = [
        next(
            time
            for time in np.unique(when)
            if (when < time).sum() >= rows / 2 + turn * rows / (2 * count)
        )
        for turn in range(count)
    ]
    for turn, (train, test) in enumerate(cuts):
        ends = moments[turn + 1] if turn + 1 < count else np.inf
        assert set(train) == set(np.flatnonzero(when < moments[turn]))
        assert set(test) == set(np.flatnonzero((when >= moments[turn]) & (when < ends)))
        assert when[train].max() < when[test].min()
        assert len(train) >= rows / 2
    tested = np.concatenate([test for _, test in cuts])
    assert sorted(tested) == sorted(np.flatnonzero(when >= moments[0]))
    days = np.datetime64("2024-01-01") + when.astype("timedelta64[D]")
    for one, two in zip(cuts, time_splits(days, count), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            lambda: unit_splits(["a", "b", "c"]),
            "share must leave units on both sides of 3, got 0.1",
        ),
        (lambda: unit_splits(["a", "b"], 0, share=0.5), "count"),
        (lambda: time_splits(np.arange(10), 6), "times must differ enough for 6 splits"),
        (lambda: time_splits(np.zeros(10), 1), "got 1 times in 10 rows"),
        (lambda: time_splits([0, 1, 1, 1], 2), "got 2 times in 4 rows"),
        (lambda: over_splits(*some(), Steady(), way="late"), "way must be one of random, unit"),  # type: ignore[arg-type]
    ],
)
def test_divisions_that_cannot_be_are_refused(made: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        made()


def test_splits_by_time_tell_no_error_of_their_mean() -> None:
    x, y = some()
    cuts = time_splits(np.arange(60), 4)
    result = over_splits(x, y, Steady(), splits=cuts, way="time", metrics=["rmse"])
    rmse = [math.sqrt(np.mean((y[test] - y[train].mean()) ** 2)) for train, test in cuts]
    record = result.record("rmse")
    assert record.value == pytest.approx(np.mean(rmse))
    assert np.isnan([record.standard_error, record.lower, record.upper]).all()
    assert record.options["published_error"] == pytest.approx(np.std(rmse, ddof=1) / 2)


def test_the_corrected_error_is_nearer_the_truth_where_units_are_split() -> None:
    """Over tables drawn anew, whose units differ: the sd of the mean, and what errors claim."""
    rng = np.random.default_rng(0)
    units = np.repeat(np.arange(20), 3)
    cuts = unit_splits(units, 10, share=0.1)
    means, plain, corrected = [], [], []
    for _ in range(200):
        y = rng.normal(size=20)[units] + 0.3 * rng.normal(size=60)
        made = over_splits(np.zeros((60, 1)), y, Steady(), splits=cuts, way="unit", metrics=["mae"])
        found = made.record("mae")
        means.append(found.value)
        plain.append(found.options["published_error"])
        corrected.append(found.standard_error)
    truth = np.std(means, ddof=1)
    assert abs(np.mean(corrected) - truth) < abs(np.mean(plain) - truth)
    assert np.mean(plain) < 0.8 * truth
    assert np.mean(corrected) == pytest.approx(truth, rel=0.25)
