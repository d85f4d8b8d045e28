"""Results side by side: averages, ranks, degrees of shift and the leaderboard."""

from __future__ import annotations

import math

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.studies.shift import (
    INTERVAL_METHODS,
    Answers,
    PublishedValue,
    ShiftResult,
    average_errors,
    degree_curves,
    evaluate_shift,
    leaderboard,
    published,
    shift_against_error,
    shift_ranks,
)

TASKS = ("cells", "cells-tails", "cells-gap", "chair-angle")


def result(
    task: str,
    method: str,
    shifts: dict[str, float],
    *,
    noise: float = 1.0,
    runs: int = 2,
    seed: int = 0,
    coverage: float = 0.9,
    lost: bool = False,
) -> ShiftResult:
    """A method whose y moves away by so much on each test."""
    done = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run, len(method), len(task)])

        def part(off: float, rng: np.random.Generator = rng) -> Answers:
            point = np.full(120, math.nan) if lost else np.zeros(120)
            return Answers(
                y=off + noise * rng.normal(size=120), point=point, lower=point, upper=point
            )

        tests = {name: part(off) for name, off in shifts.items()}
        done.append(evaluate_shift(part(0.0), tests, coverage=coverage))
    return ShiftResult(
        task=task, method=method, coverage=coverage, rule="paper", runs=tuple(done), units="n"
    )


def grid() -> list[ShiftResult]:
    return [
        result(task, method, {"full": place / 2}, noise=1.0 + 0.1 * rank, seed=place)
        for place, task in enumerate(TASKS)
        for rank, method in enumerate(INTERVAL_METHODS)
    ]


def test_average_errors_are_means_over_tasks() -> None:
    results = grid()
    table = average_errors(results)
    assert table.columns["method"].tolist() == list(INTERVAL_METHODS)
    for row, method in enumerate(INTERVAL_METHODS):
        own = [one for one in results if one.method == method]
        errors = [
            abs(np.mean([run.tests["full"].empirical_coverage for run in one.runs]) - 0.9)
            for one in own
        ]
        assert table.columns["coverage_error"][row] == pytest.approx(np.mean(errors))
        spread = [one.value("coverage_error").standard_error for one in own]
        assert table.columns["standard_error"][row] == pytest.approx(
            math.sqrt(sum(s * s for s in spread)) / 4
        )
    assert table.columns["tasks"].tolist() == [4] * 5
    assert np.all(table.columns["null"] == own[0].null_error(120))


def test_tasks_without_an_answer_are_not_counted() -> None:
    good = result("a", "m", {"t": 1.0})
    bad = result("b", "m", {"t": 1.0}, lost=True)
    table = average_errors([good, bad])
    assert table.columns["tasks"].tolist() == [1]
    assert table.columns["coverage_error"][0] == good.value("coverage_error").mean
    none = average_errors([bad])
    assert math.isnan(none.columns["coverage_error"][0])
    assert math.isnan(none.columns["standard_error"][0])


@pytest.mark.parametrize("measure", ["val_mae", "val_width", "coverage_error"])
def test_ranks_are_those_of_each_task_averaged(measure: str) -> None:
    results = grid()
    table = np.array(
        [
            [
                next(
                    one.value(measure).mean
                    for one in results
                    if (one.task, one.method) == (task, method)
                )
                for method in INTERVAL_METHODS
            ]
            for task in TASKS
        ]
    )
    table = table.round(12)
    ranks = [[0.5 + (row < v).sum() + (row == v).sum() / 2 for v in row] for row in table]
    expected = np.mean(ranks, axis=0)
    found = shift_ranks(results, measure)
    np.testing.assert_allclose(found.mean_ranks, expected)
    assert found.names == INTERVAL_METHODS
    assert found.n == 4
    assert found.critical_difference == pytest.approx(2.728 * math.sqrt(5 * 6 / 24), rel=1e-3)
    assert found.table("ranks").columns["mean_rank"][0] == expected.min()


def test_ties_share_their_mean_rank() -> None:
    results = [
        result(task, method, {"t": 0.0}, noise=noise, seed=3)
        for task in ("a", "b")
        for method, noise in (("xx", 1.0), ("yy", 1.0), ("zz", 2.0))
    ]
    assert shift_ranks(results).mean_ranks.tolist() == [1.5, 1.5, 3.0]


def test_degrees_run_from_home_to_the_strongest_shift() -> None:
    steps = {"full": 3.0, "step-1": 1.0, "step-2": 2.0}
    tails = [result("cells-tails", name, steps) for name in ("conformal", "gaussian")]
    plain = [result("cells", "conformal", {"full": 0.0})]
    curves = degree_curves(tails, ["step-1", "step-2", "full"], home=plain)
    assert [curve.model for curve in curves] == ["conformal", "gaussian"]
    first, second = curves
    assert first.x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert second.x.tolist() == [1.0, 2.0, 3.0]
    values = [plain[0].value("test_empirical_coverage")]
    values += [
        tails[0].value("test_empirical_coverage", name) for name in ("step-1", "step-2", "full")
    ]
    assert first.y.tolist() == [one.mean for one in values]
    assert first.lower.tolist() == [one.low for one in values]
    assert first.upper.tolist() == [one.high for one in values]
    assert (np.diff(first.y) < 0).all()
    assert (first.reference == 0.9).all()
    assert first.name == "degree_of_shift"
    assert "none, step-1, step-2, full" in first.notes
    mae = degree_curves(tails, ["full"], measure="relative_mae_change")[0]
    assert mae.reference is None
    assert mae.y[0] == tails[0].value("relative_mae_change").mean


def test_shift_is_measured_by_the_mae_of_conformal_prediction() -> None:
    results = grid()
    table = shift_against_error(results)
    assert table.columns["task"].tolist() == list(TASKS)
    for row, task in enumerate(TASKS):
        own = {one.method: one for one in results if one.task == task}
        runs = own["conformal"].runs
        change = [run.tests["full"].mae / run.val.mae_all - 1 for run in runs]
        assert table.columns["relative_mae_change"][row] == pytest.approx(np.mean(change))
        raw = [run.tests["full"].mae - run.val.mae_all for run in runs]
        assert table.columns["mae_change"][row] == pytest.approx(np.mean(raw))
        errors = [own[name].value("coverage_error").mean for name in INTERVAL_METHODS]
        assert table.columns["coverage_error"][row] == pytest.approx(np.mean(errors))
    assert "Spearman's correlation" in table.notes
    assert (table.columns["low"] < table.columns["relative_mae_change"]).all()
    every = [result("a", name, {"near": 0.5, "far": 2.0}) for name in INTERVAL_METHODS]
    both = shift_against_error(every, every_test=True)
    assert both.columns["test"].tolist() == ["near", "far"]
    assert both.notes == "Too few different points for a correlation."


def test_the_leaderboard_stands_beside_published_numbers() -> None:
    ours = [
        result("cells-tails", "conformal", {"full": 1.0, "step-1": 0.5}),
        result("my-own", "conformal", {"full": 1.0}),
    ]
    table = leaderboard(ours, published(coverage=0.9), every_test=True)
    assert table.columns["task"].tolist() == ["cells-tails", "cells-tails", "my-own"]
    assert table.columns["test"].tolist() == ["full", "step-1", "full"]
    value = ours[0].value("test_empirical_coverage", "full")
    theirs = next(
        one.mean
        for one in published("cells-tails", coverage=0.9, method="conformal")
        if one.quantity == "test_empirical_coverage"
    )
    assert table.columns["test_empirical_coverage"][0] == value.mean
    assert table.columns["test_empirical_coverage_low"][0] == value.low
    assert table.columns["test_empirical_coverage_sd"][0] == value.sd
    assert table.columns["test_empirical_coverage_published"][0] == theirs
    assert table.columns["test_empirical_coverage_difference"][0] == pytest.approx(
        value.mean - theirs
    )
    assert np.isnan(table.columns["test_empirical_coverage_published"][1:]).all()
    assert len(leaderboard(ours)) == 2
    assert len(leaderboard([])) == 0


def test_published_numbers_belong_to_their_coverage() -> None:
    one = PublishedValue(
        table="A1",
        dataset="cells",
        coverage=0.8,
        method="conformal",
        quantity="test_empirical_coverage",
        mean=0.81,
        sd=0.01,
    )
    at = [result("cells", "conformal", {"full": 0.0}, coverage=c) for c in (0.8, 0.9)]
    found = leaderboard(at, [one]).columns["test_empirical_coverage_published"]
    assert found[0] == 0.81
    assert math.isnan(found[1])


def test_missing_numbers_have_their_reason() -> None:
    table = leaderboard([result("cells", "conformal", {"full": 0.0}, lost=True)])
    assert math.isnan(table.columns["test_empirical_coverage"][0])
    assert "test_empirical_coverage: " in table.columns["reason"][0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: average_errors([]), "results must hold at least one result, got none"),
        (
            lambda: average_errors(
                [result("a", "m", {"t": 0.0}), result("b", "m", {"t": 0.0}, coverage=0.8)]
            ),
            r"results must be of one coverage, got \[0.8, 0.9\]",
        ),
        (
            lambda: average_errors([result("a", "m", {"t": 0.0})] * 2),
            "results must hold m on a once, got it twice",
        ),
        (lambda: shift_ranks(grid(), "test_mae"), "measure must be 'val_mae', 'val_width' or"),
        (lambda: shift_ranks(grid()[:-1]), "quantile lacks chair-angle"),
        (
            lambda: shift_ranks(
                [*grid()[:-1], result("chair-angle", "quantile", {"full": 0.0}, lost=True)]
            ),
            "scores must hold finite numbers",
        ),
        (lambda: degree_curves(grid()[:1], []), "tests must hold at least one name"),
        (lambda: degree_curves(grid(), ["full"]), "results must be of one task"),
        (lambda: degree_curves(grid()[:1], ["step-1"]), "test must be one of full, got 'step-1'"),
        (
            lambda: shift_against_error(grid()[:2]),
            "got none of gaussian, gaussian_ensemble, quantile",
        ),
        (
            lambda: shift_against_error(
                [result(f"task {i}", name, {"t": 0.0}) for i, name in enumerate(INTERVAL_METHODS)]
            ),
            "results must hold a task with all of",
        ),
    ],
)
def test_bad_input_is_told(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
