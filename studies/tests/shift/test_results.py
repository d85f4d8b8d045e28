"""Means over runs and their intervals over models and rows; results side by side."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.engine import RunVariance, crossed_spread
from howsure_studies.shift import (
    ALL_ROWS,
    DIRECTIONS,
    INTERVAL_METHODS,
    MEASURES,
    Answers,
    ShiftResult,
    ShiftRun,
    average_errors,
    degree_curves,
    evaluate_shift,
    shift_against_error,
    shift_ranks,
)
from howsure_studies.shift.evaluate import ValidationThreshold

SIMULATED = (
    *(
        "val_mae",
        "val_width",
        "test_empirical_coverage",
        "test_width",
        "test_mae",
        "prediction_rate",
    ),
    *("coverage_error", "mae_change", "relative_mae_change", *ALL_ROWS),
)


def rows(rng: np.random.Generator, n: int, far: float) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(far, 1.0, n)
    return x, np.sin(x) + (0.5 + 0.2 * np.abs(x)) * rng.normal(size=n)


def answers(part: tuple[np.ndarray, np.ndarray], model: np.ndarray, differ: float) -> Answers:
    """A model that is off by 1 and a random line, unsure by a random factor."""
    x, y = part
    point = np.sin(x) + 1.0 + differ * (model[0] + 0.5 * model[1] * x)
    half = np.exp(0.3 * differ * model[1]) * (0.6 + 0.03 * x * x)
    score = np.abs(x) + 0.1 * differ * model[0] * x
    return Answers(y=y, point=point, lower=point - half, upper=point + half, score=score)


def simulated(
    rng: np.random.Generator, runs: int, val: int, test: int, differ: float
) -> ShiftResult:
    home, away = rows(rng, val, 0.0), rows(rng, test, 1.0)
    done = []
    for _ in range(runs):
        model = rng.normal(size=2)
        own = answers(home, model, differ), answers(away, model, differ)
        done.append(evaluate_shift(own[0], {"t": own[1]}))
    return ShiftResult(task="s", method="m", coverage=0.9, rule="paper", runs=tuple(done))


@pytest.mark.parametrize(("runs", "differ"), [(5, 0.3), (5, 0.05), (1, 0.0)])
@pytest.mark.rate
def test_intervals_hold_the_truth_as_often_as_they_say(runs: int, differ: float) -> None:
    """Other models, other validation rows and other test rows, all at once."""
    rng = np.random.default_rng(11)
    alone = [simulated(rng, 1, 200, 5000, differ) for _ in range(300)]
    truth = {
        name: float(np.mean([one.value(name).mean for one in alone]))
        for name in SIMULATED
        if name != "coverage_error"
    }
    truth["coverage_error"] = abs(truth["test_empirical_coverage"] - 0.9)
    trials, held = 300, dict.fromkeys(SIMULATED, 0)
    for _ in range(trials):
        result = simulated(rng, runs, 200, 300, differ)
        for name in SIMULATED:
            value = result.value(name)
            held[name] += value.low <= truth[name] <= value.high
    # Binomial error of a share, such that all 36 that are tested here pass in 99 of 100 tests;
    # and half a percent for what is approximate.
    least = 0.95 - 0.005 - 3.45 * math.sqrt(0.95 * 0.05 / trials)
    assert {name: count for name, count in held.items() if count / trials < least} == {}
    # They are not merely wide: over all measures they hold it in about 95 of 100.
    assert 0.93 < np.mean(list(held.values())) / trials < 0.975


def test_either_source_alone_would_be_too_sure() -> None:
    rng = np.random.default_rng(12)
    alone = [simulated(rng, 1, 200, 5000, 0.2) for _ in range(300)]
    truth = float(np.mean([one.value("test_mae_all").mean for one in alone]))
    hits = {"both": 0, "models": 0, "rows": 0}
    for _ in range(300):
        value = simulated(rng, 5, 200, 60, 0.2).value("test_mae_all")
        parts = value.spread
        away = abs(value.mean - truth)
        hits["both"] += value.low <= truth <= value.high
        hits["models"] += away <= 2.776 * math.sqrt(parts.models)
        hits["rows"] += away <= 1.96 * math.sqrt(parts.rows)
    assert hits["models"] < 0.9 * 300
    assert hits["rows"] < 0.9 * 300
    assert hits["both"] > 0.915 * 300


def test_two_way_layout_of_normal_effects() -> None:
    """A_r + B_i + e_ri: the interval of the grand mean holds its truth in 95 of 100."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(2000):
        cells = (
            rng.normal(0, 0.3, size=(5, 1))
            + rng.normal(0, 1, size=(1, 40))
            + rng.normal(0, 1, size=(5, 40))
        )
        means = cells.mean(axis=1)
        spread = crossed_spread(means, list(cells - means[:, None]), [])
        low, high = spread.interval(float(means.mean()), 0.95)
        hits += low <= 0.0 <= high
    assert abs(hits / 2000 - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 2000)


def test_the_variance_is_that_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(1)
    cells = rng.normal(size=(4, 1)) + 2 * rng.normal(size=(1, 30)) + rng.normal(size=(4, 30))
    means, columns, grand = cells.mean(axis=1), cells.mean(axis=0), cells.mean()
    rest = cells - means[:, None] - columns[None] + grand
    by_models = 30 * np.square(means - grand).sum() / 3
    by_rows = 4 * np.square(columns - grand).sum() / 29
    noise = np.square(rest).sum() / (3 * 29)
    spread = crossed_spread(means, list(cells - means[:, None]), [])
    assert spread.variance == pytest.approx((by_models + by_rows - noise) / 120)


def test_runs_that_agree_in_all_rows_add_nothing_to_one() -> None:
    moved = np.random.default_rng(2).normal(size=50)
    moved -= moved.mean()
    one = crossed_spread(np.array([0.3]), [moved], [])
    five = crossed_spread(np.full(5, 0.3), [moved] * 5, [])
    assert five.variance == pytest.approx(one.variance)
    assert one.variance == pytest.approx(moved.var(ddof=1) / 50)
    assert (one.degrees, five.degrees) == (pytest.approx(49), pytest.approx(49))


def test_shares_at_the_edge_keep_an_interval() -> None:
    none = RunVariance(models=0.0, rows=0.0, calibration=0.0, degrees=math.inf)
    low, high = none.share_interval(1.0, 100, 0.95)
    assert (round(low, 4), high) == (0.963, 1.0)
    binomial = RunVariance(models=0.0, rows=0.09 / 100, calibration=0.0, degrees=math.inf)
    from howsure.stats.binomial import wilson

    expected = [float(end) for end in wilson(90.0, 100.0)]
    assert list(binomial.share_interval(0.9, 55, 0.95)) == pytest.approx(expected)


def test_a_cut_knows_its_neighbours() -> None:
    values = np.random.default_rng(3).permutation(1000).astype(float)
    cut = ValidationThreshold.at(values, 901, 0.9)
    reach = round(1.959964 * math.sqrt(90))
    assert (cut.low, cut.value, cut.high) == (900 - reach, 900, 900 + reach)
    assert cut.step == 2 * reach / 1000
    assert ValidationThreshold.at(values[:1], 1, 0.9).step == 0.0


def many(runs: int = 3, seed: int = 0) -> ShiftResult:
    return simulated(np.random.default_rng(seed), runs, 80, 60, 0.3)


def test_mean_and_sd_are_plain_over_runs() -> None:
    result = many(5)
    for measure, of in {
        "val_mae": lambda run: run.val.mae_all,
        "val_width": lambda run: run.val.width_all,
        "val_empirical_coverage": lambda run: run.val.empirical_coverage_all,
        "test_empirical_coverage": lambda run: run.tests["t"].empirical_coverage,
        "test_width": lambda run: run.tests["t"].width,
        "test_mae": lambda run: run.tests["t"].mae,
        "prediction_rate": lambda run: run.tests["t"].prediction_rate,
        "mae_change": lambda run: run.tests["t"].mae_all - run.val.mae_all,
        "relative_mae_change": lambda run: run.tests["t"].mae_all / run.val.mae_all - 1,
        "test_mae_all": lambda run: run.tests["t"].mae_all,
    }.items():
        by_run = np.array([of(run) for run in result.runs])
        value = result.value(measure, "t")
        np.testing.assert_allclose(value.by_run, by_run)
        assert value.mean == pytest.approx(by_run.mean())
        assert value.sd == pytest.approx(by_run.std(ddof=0))
        assert value.low <= value.mean <= value.high
    error = result.value("coverage_error")
    mean = result.value("test_empirical_coverage").mean
    assert error.mean == pytest.approx(abs(mean - 0.9))
    assert 0 <= error.low <= error.mean <= error.high


def test_the_interval_of_the_error_is_the_image_of_the_coverage_interval() -> None:
    result = many(4)
    seen, error = result.value("test_empirical_coverage"), result.value("coverage_error")
    grid = np.abs(np.linspace(seen.low, seen.high, 100001) - 0.9)
    assert error.low == pytest.approx(grid.min(), abs=1e-5)
    assert error.high == pytest.approx(grid.max())


def test_one_run_says_what_it_leaves_out() -> None:
    value = many(1).value("test_empirical_coverage")
    assert "only one run" in value.reason
    assert value.sd == 0.0
    assert value.low < value.mean < value.high
    assert "only one run" not in many(2).value("test_empirical_coverage").reason


def without(result: ShiftResult, place: int) -> ShiftResult:
    """The same, one run's network having diverged."""
    runs = list(result.runs)
    parts = []
    for n in (runs[0].val.n, runs[0].tests["t"].n):
        lost = np.full(n, math.nan)
        parts.append(Answers(y=np.arange(float(n)), point=lost, lower=lost, upper=lost))
    runs[place] = evaluate_shift(parts[0], {"t": parts[1]})
    return ShiftResult(task="s", method="m", coverage=0.9, rule="paper", runs=tuple(runs))


def test_runs_without_an_answer_are_left_out_and_told() -> None:
    whole = many(3)
    value = without(whole, 1).value("test_empirical_coverage")
    kept = [run.tests["t"].empirical_coverage for run in (whole.runs[0], whole.runs[2])]
    assert value.mean == pytest.approx(np.mean(kept))
    assert value.reason.startswith("1 of 3 runs have no answer")
    assert math.isnan(value.by_run[1])
    alone = without(many(1), 0)
    for measure in (*MEASURES, *ALL_ROWS):
        if measure == "prediction_rate":
            continue
        value = alone.value(measure)
        assert math.isnan(value.mean), measure
        assert math.isnan(value.low), measure
        assert "missing or not finite" in value.reason or "not known" in value.reason


def test_an_infinite_offset_is_told() -> None:
    y = np.arange(5.0)
    part = Answers(y=y, point=y, lower=y, upper=y)
    run = evaluate_shift(part, {"t": part}, rule="conformal")
    result = ShiftResult(task="s", method="m", coverage=0.9, rule="conformal", runs=(run,))
    width = result.value("test_width")
    assert width.mean == math.inf
    assert math.isnan(width.high)
    assert "some intervals are unbounded" in width.reason
    covers = result.value("test_empirical_coverage")
    assert (covers.mean, covers.high) == (1.0, 1.0)
    assert result.value("val_empirical_coverage").low == pytest.approx(1.0)


def test_methods_that_predict_all_rows_do_so_for_sure() -> None:
    y = np.arange(30.0)
    part = Answers(y=y, point=y + 1.0, lower=y, upper=y + 1.0)
    run = evaluate_shift(part, {"t": part})
    result = ShiftResult(task="s", method="m", coverage=0.9, rule="paper", runs=(run, run))
    value = result.value("prediction_rate")
    assert (value.mean, value.sd, value.low, value.high) == (1.0, 0.0, 1.0, 1.0)


def test_one_row_has_no_interval() -> None:
    val = Answers(y=[1.0], point=[0.0], lower=[0.0], upper=[0.5])
    run = evaluate_shift(val, {"t": val})
    result = ShiftResult(task="s", method="m", coverage=0.9, rule="paper", runs=(run,))
    value = result.value("test_mae")
    assert value.mean == 1.0
    assert math.isnan(value.standard_error)
    assert math.isnan(value.low)
    assert value.reason


def test_validation_coverage_is_that_of_its_rank() -> None:
    value = many(3).value("val_empirical_coverage")
    assert value.mean == pytest.approx(73 / 80)
    assert value.low < 0.9 < value.high
    assert value.reason == "fixed by the rule on the rows that Q comes from"


def test_records_carry_what_is_needed() -> None:
    result = many(3)
    found = result.records()
    assert [record.metric for record in found] == list(MEASURES)
    by_name = {record.metric: record for record in found}
    cover = by_name["test_empirical_coverage"]
    assert (
        cover.direction == DIRECTIONS["test_empirical_coverage"] == "closer to the target is better"
    )
    assert (cover.target, cover.coverage, cover.model, cover.group) == (0.9, 0.9, "m", "test=t")
    assert cover.notion == "marginal"
    assert cover.options["runs"] == 3.0
    assert cover.options["rule"] == "paper"
    assert cover.lower < cover.value < cover.upper
    assert cover.standard_error > 0
    assert by_name["val_mae"].group == ""
    error = by_name["coverage_error"]
    expected = math.sqrt(2 / math.pi * 0.09 * (1 / error.n + 1 / 80))
    assert error.null == pytest.approx(expected)
    assert error.target == 0.0
    json.dumps([record.as_dict() for record in found], allow_nan=False)
    units = ShiftResult(
        task="s", method="m", coverage=0.9, rule="paper", runs=result.runs, units="kg"
    ).records()
    kilograms = [record.metric for record in units if record.units == "kg"]
    assert kilograms == ["val_mae", "val_width", "test_width", "test_mae", "mae_change"]


def test_the_null_is_what_a_perfect_model_shows() -> None:
    rng = np.random.default_rng(4)
    seen = []
    for _ in range(400):
        home, away = rng.normal(size=200), rng.normal(size=150)
        val = Answers(y=home, point=0 * home, lower=0 * home, upper=0 * home)
        test = Answers(y=away, point=0 * away, lower=0 * away, upper=0 * away)
        run = evaluate_shift(val, {"t": test})
        result = ShiftResult(task="s", method="m", coverage=0.9, rule="paper", runs=(run,))
        seen.append(result.value("coverage_error").mean)
    null = result.null_error(150)
    assert abs(np.mean(seen) - null) < 4 * np.std(seen) / math.sqrt(400)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: many().value("coverage"), "measure must be one of .*got 'coverage'"),
        (lambda: many().value("test_mae", "u"), "test must be one of t, got 'u'"),
        (lambda: many().value("test_mae", confidence=95), "confidence must be strictly"),
        (
            lambda: ShiftResult(task="s", method="m", coverage=0.9, rule="paper", runs=()),
            "runs must contain at least one run, got none",
        ),
        (
            lambda: ShiftResult(
                task="s",
                method="m",
                coverage=0.9,
                rule="paper",
                runs=(
                    many(1).runs[0],
                    simulated(np.random.default_rng(0), 1, 80, 61, 0.0).runs[0],
                ),
            ),
            "runs must be of the same parts, got rows .* and, in run 1,",
        ),
    ],
)
def test_bad_input_is_told(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_a_run_tells_its_numbers() -> None:
    run = many(1).runs[0]
    assert isinstance(run, ShiftRun)
    assert run.q == run.offset.value
    assert run.threshold == run.cut.value
    assert run.offset.rank == 73


def test_intervals_of_mean_errors_stay_at_or_above_zero() -> None:
    runs = []
    for size in (0.01, 30.0):
        y = np.linspace(0.0, 1.0, 40)
        part = Answers(y=y, point=y + size, lower=y, upper=y + 2 * size)
        runs.append(evaluate_shift(part, {"far": part}))
    result = ShiftResult(task="t", method="m", coverage=0.9, rule="paper", runs=tuple(runs))
    for measure in ("val_mae", "test_mae"):
        found = result.value(measure)
        assert found.low == 0.0
        assert found.mean == pytest.approx(15.005)
    assert result.value("test_width").low < 0.0  # widths may be negative: ends may cross


# Side by side


TASKS = ("cells", "cells-tails", "cells-gap", "chair-angle")


def tried(
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
        tried(task, method, {"full": place / 2}, noise=1.0 + 0.1 * rank, seed=place)
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
    good = tried("a", "m", {"t": 1.0})
    bad = tried("b", "m", {"t": 1.0}, lost=True)
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
        tried(task, method, {"t": 0.0}, noise=noise, seed=3)
        for task in ("a", "b")
        for method, noise in (("xx", 1.0), ("yy", 1.0), ("zz", 2.0))
    ]
    assert shift_ranks(results).mean_ranks.tolist() == [1.5, 1.5, 3.0]


def test_degrees_run_from_home_to_the_strongest_shift() -> None:
    steps = {"full": 3.0, "step-1": 1.0, "step-2": 2.0}
    tails = [tried("cells-tails", name, steps) for name in ("conformal", "gaussian")]
    plain = [tried("cells", "conformal", {"full": 0.0})]
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
    every = [tried("a", name, {"near": 0.5, "far": 2.0}) for name in INTERVAL_METHODS]
    both = shift_against_error(every, every_test=True)
    assert both.columns["test"].tolist() == ["near", "far"]
    assert both.notes == "Too few different points for a correlation."


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: average_errors([]), "results must contain at least one result, got none"),
        (
            lambda: average_errors(
                [tried("a", "m", {"t": 0.0}), tried("b", "m", {"t": 0.0}, coverage=0.8)]
            ),
            r"results must be of one coverage, got \[0.8, 0.9\]",
        ),
        (
            lambda: average_errors([tried("a", "m", {"t": 0.0})] * 2),
            "results must contain m on a once, got it twice",
        ),
        (lambda: shift_ranks(grid(), "test_mae"), "measure must be 'val_mae', 'val_width' or"),
        (lambda: shift_ranks(grid()[:-1]), "quantile lacks chair-angle"),
        (
            lambda: shift_ranks(
                [*grid()[:-1], tried("chair-angle", "quantile", {"full": 0.0}, lost=True)]
            ),
            "scores must contain finite numbers",
        ),
        (lambda: degree_curves(grid()[:1], []), "tests must contain at least one name"),
        (lambda: degree_curves(grid(), ["full"]), "results must be of one task"),
        (lambda: degree_curves(grid()[:1], ["step-1"]), "test must be one of full, got 'step-1'"),
        (
            lambda: shift_against_error(grid()[:2]),
            "got none of gaussian, gaussian_ensemble, quantile",
        ),
        (
            lambda: shift_against_error(
                [tried(f"task {i}", name, {"t": 0.0}) for i, name in enumerate(INTERVAL_METHODS)]
            ),
            "results must contain a task with all of",
        ),
    ],
)
def test_results_that_cannot_be_compared_are_told(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
