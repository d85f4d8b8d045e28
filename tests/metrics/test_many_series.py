"""Scores by series, relative skill and ranks: beside brute force and formulas by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from howsure import assess
from howsure.core.errors import DegenerateError, InputError
from howsure.core.records import Record, ResultTable
from howsure.core.rng import child
from howsure.engine.measure import evaluate, tables_of
from howsure.metrics import climatology_crps, interval_score
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.topics.baseline import with_baselines
from howsure.topics.crps import crps_quantiles, crps_samples
from howsure.topics.crps_closed import crps_normal
from howsure.topics.many_series import MIN_ROWS_OF_SERIES, relative_skill, standing_over_series
from howsure.topics.skill import climatology_pinball

LEVELS = np.array([0.05, 0.3, 0.5, 0.7, 0.95])
SIZES = np.array([12, 40, 17, 25, 31])
NAMES = np.array(["e", "b", "d", "a", "c"])


def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y, a centre of each row, and its series, of unequal size and scale, with ties."""
    rng = child(0, "series")
    series = np.repeat(NAMES, SIZES)
    scale = np.repeat(10.0 ** np.arange(-2, 3), SIZES)
    y = np.round(rng.normal(size=len(series)), 1)
    return scale * y, scale * 0.5 * y, series


def prediction(kind: str, centre: np.ndarray, scale: np.ndarray) -> dict[str, Any]:
    sd = 0.8 * scale
    match kind:
        case "law":
            return {"predictions": Distribution.normal(centre, sd)}
        case "samples":
            draws = child(0, "members").normal(size=(len(centre), 7))
            return {"predictions": Samples(centre[:, None] + sd[:, None] * draws)}
        case "quantiles":
            from scipy import stats

            table = centre[:, None] + sd[:, None] * stats.norm.ppf(LEVELS)
            return {"predictions": Quantiles(LEVELS, table)}
        case "intervals":
            return {"predictions": Intervals(centre - 1.6 * sd, centre + 1.6 * sd, coverage=0.9)}
    return {"point": centre}


def by_hand(held: EvalSet, kind: str) -> tuple[np.ndarray, Any]:
    """Scores of rows, and of the distribution of some y in their rows."""
    y = held.y
    match kind:
        case "law":
            centre, above = held.predictions[0].quantile([0.5, 0.8413447460685429]).T  # type: ignore[attr-defined]
            return crps_normal(y, centre, above - centre), climatology_crps
        case "samples":
            (members,) = held.predictions
            assert isinstance(members, Samples)
            return crps_samples(y, members.sorted_samples), climatology_crps
        case "quantiles":
            (table,) = held.predictions
            assert isinstance(table, Quantiles)
            gaps = np.diff(LEVELS)
            factors = np.append(gaps, 0.0) + np.append(0.0, gaps)
            return crps_quantiles(y, table.values, LEVELS), lambda rows: sum(
                factor * climatology_pinball(rows, level=level)
                for factor, level in zip(factors, LEVELS, strict=True)
            )
        case "intervals":
            lower, upper = held.predictions[0].interval(0.9)
            return (
                interval_score(y, lower, upper, coverage=0.9),
                lambda rows: (
                    20.0
                    * (
                        climatology_pinball(rows, level=0.05)
                        + climatology_pinball(rows, level=0.95)
                    )
                ),
            )
    assert held.point is not None
    return np.abs(y - held.point), lambda rows: 2.0 * climatology_pinball(rows, level=0.5)


def known(held: EvalSet) -> dict[str, Record]:
    return {r.metric: r for r in evaluate(held, metrics=["relative_score", "rmsse"]).records}


def series_table(held: EvalSet) -> ResultTable:
    found = evaluate(held, metrics=["empirical_coverage"])
    return next(table for table in tables_of(found) if table.name == "series")


@pytest.mark.parametrize("kind", ["law", "samples", "quantiles", "intervals", "point"])
def test_relative_scores_are_those_of_each_series_alone(kind: str) -> None:
    y, centre, series = drawn()
    scale = np.repeat(10.0 ** np.arange(-2, 3), SIZES)
    held = EvalSet.checked(y, series=series, **prediction(kind, centre, scale))
    scores, reference = by_hand(held, kind)
    ratios = np.array(
        [scores[series == s].mean() / reference(y[series == s]).mean() for s in NAMES]
    )
    record, table = known(held)["relative_score"], series_table(held)
    assert record.value == pytest.approx(ratios.mean())
    assert record.standard_error == pytest.approx(ratios.std(ddof=1) / math.sqrt(5))
    assert record.lower < record.value < record.upper
    assert record.options["series"] == 5.0
    order = np.argsort(-ratios)
    assert table.columns["series"].tolist() == NAMES[order].tolist()
    np.testing.assert_allclose(table.columns["relative_score"], ratios[order])
    np.testing.assert_array_equal(table.columns["n"], SIZES[order])


def test_units_of_a_series_and_the_order_of_rows_change_nothing() -> None:
    y, centre, series = drawn()
    held = EvalSet.checked(y, Distribution.normal(centre, np.ones(len(y))), series=series)
    before = known(held)["relative_score"]
    factor = np.where(series == "a", -1_000.0, 1.0)
    law = Distribution.normal(factor * centre + 5.0, np.abs(factor))
    moved = EvalSet.checked(factor * y + 5.0, law, series=series)
    turned = held.take(child(1, "order").permutation(held.n))
    for other in (moved, turned):
        after = known(other)["relative_score"]
        for part in ("value", "lower", "upper", "standard_error"):
            assert getattr(after, part) == pytest.approx(getattr(before, part)), part


def test_a_model_that_states_the_distribution_of_each_series_scores_one() -> None:
    """Of 200 series of 20 rows the mean ratio is 1, though its divisor is estimated."""
    rng = child(0, "own distribution")
    series = np.repeat(np.arange(200), 20)
    scale = np.exp(rng.normal(size=200))[series]
    y = scale * rng.normal(size=len(series))
    held = EvalSet.checked(y, Distribution.normal(0.0 * y, scale), series=series)
    record = known(held)["relative_score"]
    assert abs(record.value - 1.0) < 3.0 * record.standard_error < 0.06


def test_rmsse_by_hand() -> None:
    """Three series; of one, a time comes up at two lead times, and counts once as a change."""
    n = MIN_ROWS_OF_SERIES + 2
    rng = child(0, "rmsse")
    first, second, third = rng.normal(size=(3, n))
    y = np.concatenate([first, second, third, third])
    times = np.concatenate([np.arange(n)[::-1], np.arange(n), np.arange(n), np.arange(n)])
    series = np.repeat(["a", "b", "c"], [n, n, 2 * n])
    point = np.zeros(4 * n)
    found = known(EvalSet.checked(y, point=point, series=series, time=times))["rmsse"]
    ratios = [
        math.sqrt(np.mean(part**2) / np.mean(np.diff(part) ** 2))
        for part in (first, second, third)  # turned round, changes are as large
    ]
    assert found.value == pytest.approx(np.mean(ratios))
    held = EvalSet.checked(y, point=point, series=series, time=times)
    table = series_table(held)
    told = dict(zip(table.columns["series"], table.columns["rmsse"], strict=True))
    assert [told[name] for name in "abc"] == pytest.approx(ratios)
    assert found.standard_error == pytest.approx(np.std(ratios, ddof=1) / math.sqrt(3))


@pytest.mark.parametrize(
    ("more", "measure", "reason"),
    [
        ({"series": None}, "relative_score", "the table has no series"),
        ({"series": np.zeros(130)}, "relative_score", "all rows are one series"),
        ({"weights": np.full(130, 2)}, "relative_score", "rows have weights, which"),
        ({"series": np.arange(130)}, "relative_score", "fewer than two series have 10 rows"),
        ({}, "rmsse", "the table has no time"),
        ({"time": np.zeros(130)}, "rmsse", "one series has different y at the same time"),
    ],
)
def test_why_there_is_no_answer(more: dict[str, Any], measure: str, reason: str) -> None:
    rng = child(0, "reasons")
    series = np.repeat(np.arange(10), 13)
    beside = {"series": series, **more}
    law = Distribution.normal(np.zeros(130), np.ones(130))
    record = known(EvalSet.checked(rng.normal(size=130), law, **beside))[measure]
    assert math.isnan(record.value)
    assert record.reason.startswith(reason)


def test_short_and_constant_series_are_left_out_and_said() -> None:
    rng = child(0, "short")
    series = np.repeat(["a", "b", "constant", "short"], [20, 20, 20, MIN_ROWS_OF_SERIES - 1])
    y = np.where(series == "constant", 3.0, rng.normal(size=len(series)))
    law = Distribution.normal(np.zeros(len(y)), np.ones(len(y)))
    held = EvalSet.checked(y, law, series=series)
    record, table = known(held)["relative_score"], series_table(held)
    assert record.options["series"] == 2.0
    assert record.reason.startswith("2 of 4 series left out")
    assert np.isnan(table.columns["relative_score"][2:]).all()


def test_short_series_alone_have_no_table() -> None:
    y = child(0, "all short").normal(size=5 * MIN_ROWS_OF_SERIES - 5)
    law = Distribution.normal(0.0 * y, 1.0 + 0.0 * y)
    held = EvalSet.checked(y, law, series=np.arange(len(y)) % 5)
    assert not any(table.name == "series" for table in tables_of(evaluate(held)))
    longer = np.append(np.arange(len(y) - 1) % 5, 0)  # one has a row more
    assert (
        series_table(EvalSet.checked(y, law, series=longer)).columns["n"].max()
        == MIN_ROWS_OF_SERIES
    )


def test_missing_series_and_horizons_are_said() -> None:
    series, horizon = (part.ravel() for part in np.meshgrid(list("abc"), [1, 2, 3, 4]))
    series, horizon = np.tile(series, 15), np.tile(horizon, 15)
    y = child(0, "missing").normal(size=len(series))
    law = Distribution.normal(0.0 * y, 1.0 + 0.0 * y)
    held = EvalSet.checked(y, law, series=series, horizon=horizon)
    assert "All 3 series have rows at all 4 horizons." in series_table(held).notes
    gone = ((series == "b") & (horizon > 2)) | ((series == "c") & (horizon == 4))
    held = held.take(np.flatnonzero(~gone))
    told = "Of 3 series × 4 horizons, 3 have no rows: b at 3, b at 4 and c at 4."
    assert told in series_table(held).notes


# ---- several models ------------------------------------------------------------------------------

SCORES = np.array(
    [  # three models on four series; the third has no forecast of the last
        [1.0, 2.0, 4.0],
        [2.0, 2.0, 3.0],
        [3.0, 1.0, 5.0],
        [10.0, 7.0, np.nan],
    ]
)


def test_relative_skill_by_hand() -> None:
    """As scoringutils' get_pairwise_comparisons: ratios of means over what both have."""
    first_second = (16.0 / 4) / (12.0 / 4)
    first_third = (6.0 / 3) / (12.0 / 3)
    second_third = (5.0 / 3) / (12.0 / 3)
    wanted = np.array(
        [
            (1.0 * first_second * first_third) ** (1 / 3),
            (1.0 / first_second * 1.0 * second_third) ** (1 / 3),
            (1.0 / first_third / second_third * 1.0) ** (1 / 3),
        ]
    )
    np.testing.assert_allclose(relative_skill(SCORES), wanted)
    np.testing.assert_allclose(relative_skill(SCORES, baseline=2), wanted / wanted[2])
    whole = relative_skill(SCORES[:3])  # alike rows: means over their geometric mean
    means = SCORES[:3].mean(axis=0)
    np.testing.assert_allclose(whole, means / np.prod(means) ** (1 / 3))


@pytest.mark.parametrize(
    ("scores", "baseline", "error", "message"),
    [
        ([[1.0, np.inf]], None, InputError, "scores must be finite, or NaN"),
        ([[1.0, 2.0]], 2, InputError, "baseline must be a column from 0 to 1, got 2"),
        ([[1.0, np.nan], [np.nan, 1.0]], None, DegenerateError, "must have rows in common"),
        ([[1.0, 0.0]], None, DegenerateError, "must have a mean above 0"),
    ],
)
def test_what_has_no_relative_skill_is_refused(
    scores: Any, baseline: int | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        relative_skill(scores, baseline=baseline)


def models(gaps: tuple[float, ...], number: int = 0, count: int = 40) -> dict[str, EvalSet]:
    """Models whose CRPS differ by known factors in every series."""
    rng = child(0, "models", number)
    series = np.repeat(np.arange(count), 15)
    scale = np.exp(0.5 * rng.normal(size=count))[series]
    y = scale * rng.normal(size=len(series))
    return {
        f"m{place}": EvalSet.checked(
            y,
            Distribution.normal(gap * scale * rng.normal(size=len(y)), scale),
            series=series,
            model=f"m{place}",
        )
        for place, gap in enumerate(gaps)
    }


def test_models_are_ranked_with_intervals_over_series() -> None:
    held = models((0.5, 0.5, 2.0))
    found = [evaluate(each, metrics=["crps"]) for each in held.values()]
    table = standing_over_series(found)
    assert table is not None
    rows = np.stack([each.row_scores("crps", math.nan) for each in found], axis=1)
    wanted = relative_skill(rows)
    order = np.argsort(wanted)
    np.testing.assert_allclose(table.columns["relative_skill"], wanted[order])
    assert table.columns["model"].tolist() == [f"m{place}" for place in order]
    assert table.columns["rank"].tolist() == [1, 2, 3]
    assert table.columns["rank_from"].tolist() == [1, 1, 3]
    assert table.columns["rank_to"].tolist() == [2, 2, 3]
    assert (table.columns["lower"] < table.columns["relative_skill"]).all()
    assert (table.columns["upper"] > table.columns["relative_skill"]).all()
    beside = with_baselines(list(held.values()), baseline="m2")
    scaled = standing_over_series([evaluate(each, metrics=["crps"]) for each in beside])
    assert scaled is not None
    places = [list(held).index(name) for name in scaled.columns["model"]]
    np.testing.assert_allclose(
        scaled.columns["relative_skill"], relative_skill(rows, baseline=2)[places]
    )
    assert scaled.columns["relative_skill"][-1] == scaled.columns["upper"][-1] == 1.0
    assert scaled.notes.startswith("Mean CRPS as a multiple of that of m2;")


def test_the_table_stands_in_a_comparison_of_many_series() -> None:
    held = models((0.0, 1.0))
    first = held["m0"]
    result = assess(
        first.y,
        {name: each.predictions[0] for name, each in held.items()},
        series=first.series,
    )
    assert any(table.name == "relative_skill" for table in result.tables)
    assert any(table.name == "series" and table.model == "m1" for table in result.tables)


@pytest.mark.rate
def test_intervals_over_series_hold_relative_skill() -> None:
    """Of 400 tables of 40 series; the truth is that of 40,000 series."""
    gaps = (0.0, 0.7, 1.4)
    big = [evaluate(each, metrics=["crps"]) for each in models(gaps, -1, 40_000).values()]
    true = relative_skill(np.stack([each.row_scores("crps", math.nan) for each in big], axis=1))
    inside = np.zeros(3)
    for number in range(400):
        found = [evaluate(each, metrics=["crps"]) for each in models(gaps, number).values()]
        table = standing_over_series(found, seed=number)
        assert table is not None
        place = [int(name[1:]) for name in table.columns["model"]]
        inside[place] += (table.columns["lower"] <= true[place]) & (
            true[place] <= table.columns["upper"]
        )
    assert (inside / 400 >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 400)).all(), inside / 400
