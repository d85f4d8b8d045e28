"""Models beside each other: scores that mean the same, every pair, and the set of the best."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import signal, stats

import howsure
from howsure.core.records import ResultTable
from howsure.core.rng import child
from howsure.engine.finding import Standing
from howsure.engine.measure import Evaluation, evaluate
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
)
from howsure.recalibration import compare_recalibrations
from howsure.stats.estimate import Spread, skewed_ends
from howsure.topics.compare import compare, standing
from howsure.topics.scores import pinball_loss, pinball_samples
from howsure.topics.shared import meaning

N = 2_000
SCORES = ("crps", "crps_fair", "pinball", "weighted_interval_score", "interval_score", "log_score")
Z = child(0, "comparison").normal(size=N)
ZERO = np.zeros(N)
LAW = Distribution.normal(ZERO, 1.0)
QUARTERS = np.array([0.25, 0.5, 0.75])
FIVE = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def evaluated(*predictions: Prediction | None, y: np.ndarray = Z, **known: Any) -> list[Evaluation]:
    """Models a, b, c, … on one y; a prediction of None is a point forecast of 0."""
    return [
        evaluate(
            EvalSet.checked(
                y,
                () if prediction is None else prediction,
                point=np.zeros(len(y)) if prediction is None else None,
                model="abcdefghijklmnop"[place],
                **known,
            ),
            metrics=(*SCORES, "mae", "bias"),
        )
        for place, prediction in enumerate(predictions)
    ]


def stood(*predictions: Prediction | None, **known: Any) -> Standing:
    found = standing(evaluated(*predictions, **known))
    assert found is not None
    return found


def won(table: ResultTable) -> dict[str, str]:
    """Which of two models is better by each score; "" where it does not tell them apart."""
    found = {}
    for row in range(len(table)):
        name = str(table.columns["metric"][row])
        if name in SCORES and np.isfinite(table.columns["difference"][row]):
            apart = table.columns["p_value"][row] < 0.05
            lower = "a" if table.columns["difference"][row] < 0 else "b"
            found[name] = lower if apart else ""
    return found


def told(table: ResultTable, metric: str) -> list[str]:
    return [str(note) for note in table.columns["note"][table.columns["metric"] == metric]]


def members(size: int, scale: float, name: str, n: int = N) -> Samples:
    return Samples(scale * child(1, "members", name).normal(size=(n, size)))


def quantiles(levels: np.ndarray, off: float = 0.0, factor: float = 1.0) -> Quantiles:
    return Quantiles(levels, off + factor * np.tile(stats.norm.ppf(levels), (N, 1)))


# Scores that mean the same


def test_three_wrong_quantiles_do_not_beat_the_law_that_is_right() -> None:
    wrong = quantiles(QUARTERS, 0.2, 1.3)
    table = compare(evaluated(LAW, wrong))
    assert set(won(table).values()) == {"a"}
    assert "pinball" in won(table)
    assert told(table, "crps") == [
        "not compared: of the whole distribution of a, at levels 0.25, 0.5, 0.75 of b"
    ]
    found = stood(LAW, wrong)
    assert (found.score.metric, found.score.levels) == ("pinball", (0.25, 0.5, 0.75))
    assert found.models == ("a", "b")
    assert found.best.tolist() == [True, False]


def test_a_law_too_wide_does_not_win_by_more_members() -> None:
    found = won(compare(evaluated(members(10, 1.0, "few"), members(50, 1.15, "many"))))
    assert "b" not in found.values()
    assert found["crps"] == "a"


def test_the_same_law_in_every_form_cannot_be_told_apart() -> None:
    few, many = members(5, 1.0, "five"), members(100, 1.0, "hundred")
    assert set(won(compare(evaluated(few, many))).values()) == {""}
    assert set(won(compare(evaluated(LAW, few))).values()) == {""}
    assert set(won(compare(evaluated(many, quantiles(FIVE)))).values()) == {""}
    ends = Intervals(*(side * np.full(N, stats.norm.ppf(0.95)) for side in (-1, 1)), coverage=0.9)
    assert set(won(compare(evaluated(many, ends))).values()) == {""}
    assert stood(LAW, few, many, quantiles(FIVE)).best.all()


def test_the_pinball_loss_in_common_is_that_of_exact_quantiles() -> None:
    found = stood(LAW, quantiles(QUARTERS, 0.3))
    losses = [pinball_loss(Z, np.full(N, stats.norm.ppf(p)), level=p) for p in QUARTERS]
    exact = np.mean(losses)
    assert found.values[0] == pytest.approx(exact, rel=1e-12)


def test_one_central_pair_in_common_is_an_interval_score() -> None:
    half = np.full(N, 1.7)
    bare = Intervals(-half, half, coverage=0.9)
    found = stood(bare, LAW, quantiles(FIVE))
    assert (found.score.metric, found.score.coverage) == ("interval_score", 0.9)
    record = next(
        r for r in evaluated(bare)[0].records if (r.metric, r.coverage) == ("interval_score", 0.9)
    )
    assert found.values[found.models.index("a")] == pytest.approx(record.value, rel=1e-12)


def test_levels_that_one_model_does_not_state_are_not_interpolated() -> None:
    found = stood(quantiles(FIVE), quantiles(np.array([0.1, 0.5, 0.9])))
    assert found.score.levels == (0.5,)
    alike = stood(quantiles(FIVE), quantiles(FIVE, 0.1))
    assert (alike.score.metric, alike.score.levels) == ("crps", tuple(FIVE))


def test_a_level_needs_members_beyond_it() -> None:
    assert stood(members(50, 1.0, "fifty"), quantiles(FIVE)).score.levels == tuple(FIVE)
    assert stood(members(20, 1.0, "twenty"), quantiles(FIVE)).score.levels == tuple(QUARTERS)


def test_what_cannot_be_compared_is_named_with_what_it_gives() -> None:
    unknown = Intervals(ZERO - 1, ZERO + 1)
    found = stood(LAW, Distribution.normal(ZERO, 1.2), unknown)
    assert found.score.metric == "crps"
    assert found.left_out == {"c": "it gives intervals of unknown coverage"}
    endless = Intervals(np.r_[-np.inf, ZERO[1:] - 1.6], ZERO + 1.6, coverage=0.9)
    bare = Intervals(ZERO - 1.6, ZERO + 1.7, coverage=0.9)
    left = stood(bare, Intervals(ZERO - 1.5, ZERO + 1.5, coverage=0.9), endless).left_out
    assert left == {"c": "some of its intervals are unbounded"}
    sets = LabelSets(np.ones((50, 3), dtype=bool), 0.9)
    labels = np.arange(50.0) % 3
    assert standing(evaluated(sets, sets, y=labels)) is None


def test_points_are_compared_only_as_what_they_are() -> None:
    """A skewed law's mean loses to its own median in mean absolute error."""
    y = child(2, "skewed").exponential(size=N)
    law = Distribution.from_scipy(stats.expon(), n=N)
    table = Quantiles(QUARTERS, np.tile(stats.expon.ppf(QUARTERS), (N, 1)))
    both = compare(evaluated(law, table, y=y))
    assert told(both, "mae") == ["not compared: of the mean of a, of the median of b"]
    assert told(both, "bias") == ["not compared: of the mean of a, of the median of b"]
    given = evaluate(EvalSet.checked(y, point=np.full(N, math.log(2)), model="b"))
    found = standing([evaluated(law, y=y)[0], given])
    assert found is not None
    assert found.score.metric == "mae"


def test_densities_are_not_compared_with_probabilities() -> None:
    y = child(3, "counts").poisson(4.0, N).astype(float)
    counts = Distribution.from_scipy(stats.poisson(np.full(N, 4.0)))
    table = compare(evaluated(counts, Distribution.normal(np.full(N, 4.0), 2.0), y=y))
    assert told(table, "log_score") == ["not compared: of probabilities of a, of densities of b"]
    assert won(table)["crps"] == "a"


def test_interpolated_intervals_mean_something_else() -> None:
    coarse = evaluate(EvalSet.checked(Z, quantiles(FIVE)), coverages=[0.8])
    assert meaning(coarse, "interval_score", 0.8).startswith("interpolated between")
    assert meaning(coarse, "interval_score", 0.9) == ""


# Quantiles of a law behind samples


def test_pinball_of_samples_by_its_definition() -> None:
    rng = child(4, "pinball")
    y, draws = rng.normal(size=40), rng.normal(size=(40, 9))

    def quantile(row: np.ndarray, level: float) -> float:
        size = len(row)
        law = stats.beta((size + 1) * level, (size + 1) * (1 - level))
        return float(np.diff(law.cdf(np.arange(size + 1) / size)) @ np.sort(row))

    for level in (0.1, 0.5, 0.8):
        found = pinball_samples(y, draws, level=level)
        for row in range(40):
            parts = [quantile(np.delete(draws[row], j), level) for j in range(9)]
            lost = np.mean([pinball_loss([y[row]], [q], level=level)[0] for q in parts])
            whole = pinball_loss([y[row]], [quantile(draws[row], level)], level=level)[0]
            assert found[row] == pytest.approx(9 * whole - 8 * lost, abs=1e-12)


@pytest.mark.parametrize(("size", "level"), [(20, 0.5), (20, 0.25), (50, 0.1), (50, 0.95)])
def test_pinball_of_samples_is_that_of_the_law(size: int, level: float) -> None:
    """Within noise of the exact loss, where the quantile of the draws costs some per cent."""
    rng = child(5, "pinball", str(size))
    y, draws = rng.normal(size=40_000), rng.normal(size=(40_000, size))
    exact = pinball_loss(y, np.full(len(y), stats.norm.ppf(level)), level=level)
    gap = pinball_samples(y, draws, level=level) - exact
    assert abs(gap.mean()) < 4 * gap.std() / 200 + 0.005 * exact.mean()
    at = np.quantile(draws, level, axis=1, method="weibull")
    plain = pinball_loss(y, at, level=level) - exact
    assert plain.mean() > 4 * plain.std() / 200  # which the definition takes out


# All pairs


def test_adjusted_p_values_are_those_of_all_pairs_of_a_measure() -> None:
    laws = [Distribution.normal(ZERO + off, 1.0) for off in (0.0, 0.02, 0.1)]
    columns = compare(evaluated(*laws)).columns
    rows = np.flatnonzero(columns["metric"] == "crps")
    p = columns["p_value"][rows]
    order = np.argsort(p)
    expected = np.maximum.accumulate(np.minimum((3 - np.arange(3)) * p[order], 1.0))
    np.testing.assert_allclose(columns["adjusted_p_value"][rows][order], expected)


def test_the_best_set_of_planted_models() -> None:
    laws = [Distribution.normal(ZERO + off, 1.0) for off in (0.5, 0.0, 0.001, 0.3)]
    found = stood(*laws)
    assert set(found.models[:2]) == {"b", "c"}
    assert found.models[2:] == ("d", "a")
    assert found.best.tolist() == [True, True, False, False]
    assert found.behind[2:, :2].all()
    assert found.behind[3, 2]
    assert found.p_adjusted >= found.p
    assert found.difference < 0
    assert (np.diff(found.values) > 0).all()


def test_the_order_of_models_and_of_rows_changes_nothing() -> None:
    laws = [Distribution.normal(ZERO + off, 1.0) for off in (0.5, 0.0, 0.02)]
    there = stood(*laws)
    back = stood(*laws[::-1])
    assert [{"a": "c", "c": "a"}.get(name, name) for name in back.models] == list(there.models)
    np.testing.assert_array_equal(back.best, there.best)
    order = child(6, "rows").permutation(N)
    moved = standing([evaluate(found.evalset.take(order)) for found in evaluated(*laws)])
    assert moved is not None
    assert moved.p == there.p
    assert (moved.difference_lower, moved.difference_upper) == pytest.approx(
        (there.difference_lower, there.difference_upper), rel=1e-9
    )


def test_equal_models_are_both_best() -> None:
    found = stood(LAW, LAW, Distribution.normal(ZERO + 0.5, 1.0))
    assert found.best.tolist() == [True, True, False]
    assert math.isnan(found.p)
    assert found.difference == 0


def test_many_models_are_tested_jointly() -> None:
    """Of 60 pairs and more Holm over drawn p-values could prove nothing."""
    laws = [Distribution.normal(ZERO[:400] + 0.02 * k, 1.0) for k in range(16)]
    found = stood(*laws, y=Z[:400])
    assert found.models[-1] == "p"
    assert not found.best[-1]
    assert found.best[0]
    noise = child(7, "tied").normal(size=(16, 400))
    tied = stood(*(Distribution.normal(0.3 * row, 1.0) for row in noise), y=Z[:400])
    assert tied.best.sum() >= 15


# Clusters


def clustered(count: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose error has a part that all rows of a cluster share; the cluster of each."""
    code = np.repeat(np.arange(count), size)
    return rng.normal(size=count)[code] + 0.5 * rng.normal(size=len(code)), code


def test_the_interval_of_a_difference_is_a_jackknife_over_clusters() -> None:
    y, code = clustered(12, 5, child(8, "clusters"))
    weights = child(8, "weights").integers(1, 4, len(y)).astype(float)
    laws = [Distribution.normal(np.zeros(60) + off, 1.0) for off in (0.0, 0.4)]
    found = stood(*laws, y=y, cluster=code, weights=weights)
    evaluations = evaluated(*laws, y=y)
    gap = evaluations[0].row_scores("crps", math.nan) - evaluations[1].row_scores("crps", math.nan)
    sign = 1.0 if found.models == ("a", "b") else -1.0
    without = [np.average(sign * gap[code != c], weights=weights[code != c]) for c in range(12)]
    value = np.average(sign * gap, weights=weights)
    moved = value - np.array(without)
    mass = np.bincount(code, weights=weights)
    units = mass.sum() ** 2 / np.square(mass).sum()
    error = math.sqrt((units - 1) / units * np.square(moved).sum())
    skew = (moved**3).sum() / np.square(moved).sum() ** 1.5
    degrees = np.square(mass).sum() ** 2 / (mass**4).sum() - 1
    spread = Spread(*(np.array([each]) for each in (error, skew, units, degrees)))
    low, high = skewed_ends(value, spread, 0.95)
    assert found.difference == pytest.approx(value, rel=1e-12)
    assert found.difference_lower == pytest.approx(low[0], rel=1e-9)
    assert found.difference_upper == pytest.approx(high[0], rel=1e-9)


@pytest.mark.rate
def test_differences_follow_errors_that_follow_each_other_in_time() -> None:
    n = 2_000
    fresh = child(11, "time").normal(size=n + 500) * math.sqrt(1 - 0.95**2)
    y = signal.lfilter([1.0], [1.0, -0.95], fresh)[500:]
    laws = {name: Distribution.normal(np.full(n, off), 1.0) for name, off in (("a", 0), ("b", 0.3))}
    rows = {}
    for given in ({}, {"time": np.arange(n)}):
        result = howsure.assess(y, laws, **given)
        table = next(held for held in result.tables if held.name == "models").columns
        row = table["metric"].tolist().index("crps")
        width = float(table["upper"][row] - table["lower"][row])
        rows[bool(given)] = width, float(table["p_value"][row]), str(table["note"][row])
    assert rows[True][0] > 3 * rows[False][0]
    assert rows[True][1] > rows[False][1]
    assert rows[True][2].startswith("effective sample size about ")
    assert rows[True][2].endswith("p-value from Student's t, because rows are in time order")


@pytest.mark.slow
def test_differences_that_follow_each_other_by_season_are_no_proof() -> None:
    """Two equal models, each off by errors of lag 12: one of them won in 31 % of such tables."""
    n, tables, won = 600, 40, {False: 0, True: 0}
    for number in range(tables):
        rng = np.random.default_rng([12, number])
        y = rng.normal(size=n)
        seasons = [rng.normal(size=n + 600) * 0.6 for _ in "ab"]
        off = [signal.lfilter([1.0], [1.0, *[0.0] * 11, -0.8], each)[600:] for each in seasons]
        for dated in won:
            times = {"time": np.arange(n)} if dated else {}
            sets = [
                EvalSet.checked(y, Distribution.normal(each, 1.4), model=name, **times)
                for name, each in zip("ab", off, strict=True)
            ]
            found = standing([evaluate(held, metrics=["crps"]) for held in sets])
            assert found is not None
            won[dated] += bool(found.behind.any())
    assert won[False] >= 6
    assert won[True] <= tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables))


@pytest.mark.slow
def test_differences_of_series_with_a_memory_each_are_no_proof() -> None:
    """Two equal models of 16 series × 30 times, off by errors AR(.7) of each series."""
    series, when = np.divmod(np.arange(480), 30)
    tables, won = 40, {False: 0, True: 0}
    for number in range(tables):
        rng = np.random.default_rng([13, number])
        y = rng.normal(size=480)
        fresh = rng.normal(size=(2, 16, 330)) * 0.7
        off = signal.lfilter([1.0], [1.0, -0.7], fresh)[..., 300:].reshape(2, 480)
        for dated in won:
            known = {"time": when, "series": series} if dated else {}
            sets = [
                EvalSet.checked(y, Distribution.normal(each, 1.4), model=name, **known)
                for name, each in zip("ab", off, strict=True)
            ]
            found = standing([evaluate(held, metrics=["crps"]) for held in sets])
            assert found is not None
            won[dated] += bool(found.behind.any())
    assert won[False] >= 6
    assert won[True] <= tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables))


@pytest.mark.slow
def test_intervals_of_differences_hold_with_few_clusters() -> None:
    """Both models are off by as much, to either side: the true difference is 0."""
    held = 0
    laws = [Distribution.normal(np.full(200, off), 1.0) for off in (-0.5, 0.5)]
    for trial in range(150):
        y, code = clustered(20, 10, child(9, "trial", trial))
        found = [
            evaluate(EvalSet.checked(y, law, cluster=code, model=name), metrics=["crps"])
            for name, law in zip("ab", laws, strict=True)
        ]
        table = compare(found).columns
        held += bool(table["lower"][0] <= 0 <= table["upper"][0])
    assert held >= 150 * (0.95 - 3 * math.sqrt(0.95 * 0.05 / 150))


def test_five_clusters_prove_nothing() -> None:
    """All signs turned or none: two of 32 patterns."""
    y, code = clustered(5, 40, child(10, "five"))
    found = stood(*(Distribution.normal(y + off, 1.0) for off in (0.0, 2.0)), y=y, cluster=code)
    assert found.p == pytest.approx(2 / 32)
    assert found.best.all()


# Before and after


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["law", "samples", "quantiles"])
def test_a_right_prediction_is_not_improved_by_its_change_of_kind(kind: str) -> None:
    rng = child(11, "before", kind)

    def made() -> EvalSet:
        prediction: Prediction = LAW
        if kind == "samples":
            prediction = Samples(rng.normal(size=(N, 39)))
        elif kind == "quantiles":
            prediction = quantiles(FIVE)
        return EvalSet.checked(rng.normal(size=N), prediction)

    table = compare_recalibrations(made(), made(), coverages=(0.5,))
    columns = table.columns
    ways = list(columns)[6:]
    scored = 0
    for row in range(len(table)):
        if columns["metric"][row] not in SCORES:
            continue
        for way in ways:
            before, after = float(columns["before"][row]), float(columns[way][row])
            if not math.isnan(before + after):
                scored += 1
                assert after > 0.97 * before, (columns["title"][row], way)
    assert scored >= len(ways)
    if kind == "law":
        crps = columns["metric"] == "crps"
        assert np.isnan(columns["isotonic"][crps]).all()
        assert "CRPS" in table.notes


# What is shown first


@pytest.mark.slow
def test_the_table_of_models_by_questions_comes_first() -> None:
    models = {
        "wide": Distribution.normal(ZERO, 2.0),
        "right": LAW,
        "sets": Intervals(ZERO, ZERO + 1),
    }
    result = howsure.assess(Z, models, options=howsure.Options(trials=False))
    table = result.tables[0]
    assert table.name == "overview"
    assert table.columns["model"].tolist() == ["right", "wide", "sets"]
    assert table.columns["best_set"].tolist() == ["yes", "no", ""]
    states = {(f.model, f.id): f.state for f in result.findings}
    for place, model in enumerate(table.columns["model"]):
        for asked in ("coverage", "spread"):
            assert table.columns[asked][place] == states.get((model, asked), "")
    assert "sets is not compared: it gives intervals of unknown coverage." in table.notes
    score = result.record("crps", model="right")
    assert table.columns["score"][0] == pytest.approx(score.value)
    assert (table.columns["lower"][0], table.columns["upper"][0]) == (score.lower, score.upper)
    text = result.to_markdown()
    assert text.index("## Models and questions") < text.index("## Key numbers")
    assert text.count("## Models and questions") == 1
    assert "| Question | right | wide | sets |" in text
    assert "| In the best set | yes | no |  |" in text
    line = next(line for line in text.splitlines() if line.startswith("| Spread |"))
    assert line.startswith("| Spread | ✓ |")
    assert result.findings[0].id == "comparison"
    answer, _, second, *_ = result.verdict.splitlines()
    assert answer.startswith("Use right: its CRPS is lower by 14 % (13 to 15).")
    assert second == result.findings[0].sentence
    page = result.to_html()
    assert page.count('class="table-block states"') == 1
    assert page.index('class="table-block states"') < page.index('id="section-models"')
    alone = howsure.assess(Z, LAW)
    assert all(held.name != "overview" for held in alone.tables)
    assert "Models and questions" not in alone.to_markdown()


def test_all_pairs_of_models_are_in_the_table_of_differences() -> None:
    table = compare(evaluated(LAW, members(30, 1.0, "x"), quantiles(FIVE), None))
    pairs = set(zip(table.columns["model_a"], table.columns["model_b"], strict=True))
    assert pairs == set(itertools.combinations("abcd", 2))


def test_the_comparison_comes_first_where_advice_is_given_too() -> None:
    """It stood last of the lines of the model that was tried."""
    models = {"one": Distribution.normal(ZERO, 0.6), "two": Distribution.normal(ZERO, 0.601)}
    result = howsure.assess(Z, models)
    assert result.advice is not None
    assert result.findings[0].id == "comparison"
    answer = "Use two: its CRPS is lower by 0.026 % (0.024 to 0.028)."
    assert result.lines[0].text.startswith(answer)
    assert result.lines[2].text == result.findings[0].sentence
