"""Comparisons of conformal methods by how they adapt, and the validation of the measures."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from howsure.conformal.labels import APS, LAC, LabelConformal, TunedLabels
from howsure.core.errors import InputError
from howsure.core.progress import subscribe
from howsure.core.records import Direction
from howsure.core.rng import child
from howsure.predictions import LabelSets
from howsure.stats.cells import EaseCells
from howsure.stats.dominance import label_rank
from howsure.stats.ease import GaussianNoise, ease
from howsure.stats.permutation import Resampling
from howsure.topics.adaptivity.association import rank_ss, t_ss
from howsure.topics.adaptivity.coverage import escv, noise_floor, rank_cv, sscv, t_cv
from howsure_studies.adaptivity import (
    INTERVAL_MEASURES,
    INTERVAL_METHODS,
    LABEL_MEASURES,
    LABEL_METHODS,
    VALIDATED,
    Classified,
    MethodComparison,
    Regressed,
    average_records,
    classified,
    classifier_task,
    compare_intervals,
    compare_label_sets,
    correlation_ranks,
    ease_sensitivity,
    forest_task,
    given_probabilities,
    regressed,
    validate_measures,
)
from howsure_studies.adaptivity.comparison import (
    CONTRASTS,
    agreed_mean,
    differences,
    random_split,
    slope_floor,
)
from howsure_studies.adaptivity.image_jitter import Brightness, Contrast
from howsure_studies.adaptivity.intervals import CONTROL, interval_numbers
from howsure_studies.adaptivity.label_sets import TRUE_MEASURES, first_sets, label_numbers

QUIET = Resampling(replicates=0, permutations=0)


def softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


@pytest.fixture(scope="module")
def task() -> Classified:
    """A classifier twice too sure, on inputs of which some lie near all borders."""
    rng = np.random.default_rng(0)
    n = 1500
    x = rng.normal(size=(n, 6)) * rng.uniform(0.2, 2.5, n)[:, None]
    y = (softmax(x).cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
    ways = {"noise 0.3": GaussianNoise(0.3), "noise 0.6": GaussianNoise(0.6)}
    return classified(lambda rows: softmax(2 * rows), x, y, ways, repeats=8, name="toy")


@pytest.fixture(scope="module")
def compared(task: Classified) -> tuple[MethodComparison, ...]:
    tuning = TunedLabels(share=0.5, bins=(3, 6), penalties=(0.05, 0.2))
    return compare_label_sets(task, coverages=(0.8, 0.9), repeats=6, bins=15, tuning=tuning, seed=3)


def test_numbers_of_sets_are_the_measures() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(7, 0.4), 400)
    y = rng.integers(0, 7, 400)
    easy = rng.random(400)
    sets = LabelSets(p > 0.08, 0.8)
    rank = label_rank(p, y)
    found = label_numbers(sets, y, rank, EaseCells(easy, 10))
    covered = sets.contains(y.astype(float)).astype(float)
    for name, measure in (
        ("t_cv", t_cv(covered, easy, coverage=0.8, bins=10, resampling=QUIET)),
        ("t_ss", t_ss(sets.sizes, rank, easy, bins=10, resampling=QUIET)),
        ("sscv", sscv(covered, sets.sizes, coverage=0.8, resampling=QUIET)),
        ("escv", escv(covered, sets.sizes, coverage=0.8, resampling=QUIET)),
        ("rank_cv", rank_cv(covered, rank, coverage=0.8, resampling=QUIET)),
        ("rank_ss", rank_ss(sets.sizes, rank, resampling=QUIET)),
    ):
        assert found[name] == pytest.approx(measure.estimate.value, abs=1e-12)
    deficit, excess, size = (
        float(found[name]) for name in ("set_deficit", "set_excess", "set_size")
    )
    assert deficit - excess + size == pytest.approx(rank.mean(), abs=1e-12)
    empty = LabelSets(np.zeros((400, 7), dtype=bool), 0.8)
    told = label_numbers(empty, y, rank, EaseCells(easy, 10))
    assert told["escv"] == "all sets are empty"
    assert isinstance(told["t_ss"], str)
    assert isinstance(told["rank_ss"], str)


def test_slopes_of_sizes_that_ignore_difficulty_stay_below_the_floor() -> None:
    rng = np.random.default_rng(12)
    for cells in (3, 10, 50):
        pairs = rng.normal(size=(4000, 2, cells))
        rho = np.array([np.corrcoef(pair)[0, 1] for pair in pairs])
        below = (np.sign(rho) * rho**2 < slope_floor(cells)).mean()
        assert below == pytest.approx(0.95, abs=0.012)


def test_a_repeat_is_a_split_done_by_hand(task: Classified) -> None:
    (found,) = compare_label_sets(task, methods=("LAC", "APS"), repeats=2, bins=10, seed=5)
    assert (found.calibration_rows, found.test_rows) == (900, 600)
    # LAC needs no draws: any split in 900 and 600 rows gives its numbers. That of repeat 0:
    order = child(5, "adaptivity", "split", 0).permutation(1500)
    held, new = np.sort(order[:900]), np.sort(order[900:])
    p, y = task.probabilities, task.y
    score = np.sort(1 - p[held, y[held]])[math.ceil(901 * 0.9) - 1]
    members = 1 - p[new] <= score + 1e-12
    covered = members[np.arange(600), y[new]].astype(float)
    first = next(iter(task.eases.values()))[new]
    by_name = dict(zip(found.measures, found.values[0, 0], strict=True))
    assert by_name["empirical_coverage"] == covered.mean()
    assert by_name["set_size"] == members.sum(axis=1).mean()
    cells = np.split(covered[np.argsort(first, kind="stable")], 10)
    assert by_name["t_cv"] == pytest.approx(max(abs(c.mean() - 0.9) for c in cells))


def test_methods_for_label_sets_cover_and_those_by_ease_adapt(
    compared: tuple[MethodComparison, ...],
) -> None:
    for found in compared:
        assert found.methods == LABEL_METHODS
        assert found.measures == LABEL_MEASURES
        assert found.values.shape == (6, 6, len(LABEL_MEASURES))
        assert np.isfinite(found.values).all()
        coverage = found.median("empirical_coverage")
        assert np.abs(coverage - found.coverage).max() < 0.04
        assert found.floor.median == noise_floor([40] * 15, found.coverage).median
    low = compared[0]
    violation = dict(zip(low.methods, low.median("t_cv"), strict=True))
    assert violation["O-LAC"] < violation["LAC"]
    slope = dict(zip(low.methods, low.median("t_ss"), strict=True))
    assert slope["O-SAPS"] > slope["SAPS"]


def averages(*comparisons: MethodComparison) -> dict[str, list[float]]:
    """By measure: the averages of the methods."""
    columns: dict[str, list[float]] = {}
    for record in average_records(comparisons):
        columns.setdefault(record.metric, []).append(record.value)
    return columns


def test_records_hold_the_medians(compared: tuple[MethodComparison, ...]) -> None:
    found = compared[1]
    place = LABEL_MEASURES.index("t_ss")
    medians = np.median(found.values[:, :, place], axis=0)
    np.testing.assert_array_equal(found.median("t_ss"), medians)
    np.testing.assert_array_equal(averages(found)["t_ss"], medians)
    assert not found.decides  # by Wilcoxon and Holm, 6 splits prove no pair of 15
    assert "t_ss_rank" not in averages(found)
    records = found.records()
    assert len(records) == 6 * len(LABEL_MEASURES)
    first = records[0]
    assert (first.metric, first.model, first.coverage) == ("t_cv", "LAC", 0.9)
    assert first.value == found.median("t_cv")[0]
    assert first.null == found.floor.median
    assert first.direction is Direction.LOWER
    assert first.options["low_5"] <= first.value <= first.options["high_95"]
    ranks = found.ranks("empirical_coverage").mean_ranks
    near = np.abs(found.of("empirical_coverage") - 0.9)
    by_hand = np.array(
        [[(row < v).sum() + ((row == v).sum() + 1) / 2 for v in row] for row in near]
    )
    np.testing.assert_allclose(ranks, by_hand.mean(axis=0))


def test_shared_ranks_average_over_tasks(compared: tuple[MethodComparison, ...]) -> None:
    found = compared[0]
    (other,) = compare_label_sets(
        given_probabilities(np.tile([0.6, 0.3, 0.1], (60, 1)), np.tile([0, 0, 1], 20), name="flat"),
        coverages=(0.8,),
        methods=LABEL_METHODS,
        repeats=2,
        bins=3,
        tuning=TunedLabels(share=0.5, bins=(2,), penalties=(0.1,)),
    )
    assert other.surrogate
    table = averages(found, other)
    both = np.array([found.median("t_cv"), other.median("t_cv")])
    np.testing.assert_allclose(table["t_cv"], both.mean(axis=0))
    assert "t_cv_rank" not in table  # of six methods ranks can differ from ten splits on
    many = replace(found, values=np.tile(found.values, (2, 1, 1)))
    more = replace(other, values=np.tile(other.values, (5, 1, 1)))
    assert (many.repeats, more.repeats) == (12, 10)
    ranks = many.ranks("t_cv").shared_ranks + more.ranks("t_cv").shared_ranks
    np.testing.assert_allclose(averages(many, more)["t_cv_rank"], ranks / 2)
    alone = averages(many, replace(more, values=more.values[:9]))["t_cv_rank"]
    np.testing.assert_allclose(alone, many.ranks("t_cv").shared_ranks)
    first = average_records([found, other])[0]
    assert (first.model, first.options["answered"]) == (LABEL_METHODS[0], 2)
    assert first.standard_error == pytest.approx(abs(both[0, 0] - both[1, 0]) / 2)
    levels = [record.coverage for record in average_records([compared[1], found])]
    assert list(dict.fromkeys(levels)) == [0.8, 0.9]
    with pytest.raises(InputError, match="same methods"):
        average_records([found, replace(other, methods=tuple("abcdef"))])


def test_a_value_without_an_answer_ranks_last() -> None:
    rng = np.random.default_rng(2)
    values = np.stack([rng.random((9, 1)), rng.random((9, 1)) - 3, rng.random((9, 1)) + 2], axis=1)
    values[:, 1] = np.nan
    found = MethodComparison(
        task="t",
        methods=("a", "b", "c"),
        measures=("t_ss",),
        values=values,
        coverage=0.9,
        calibration_rows=1,
        test_rows=1,
        bins=3,
        seed=0,
    )
    np.testing.assert_array_equal(found.ranks("t_ss").mean_ranks, [2, 3, 1])
    assert math.isnan(found.median("t_ss")[1])
    with pytest.raises(InputError, match="measure must be one of"):
        found.of("t_cv")


def test_a_classifier_that_never_errs_gives_reasons() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 300)
    p = np.where(np.arange(3) == y[:, None], 0.8, 0.1)
    p += rng.uniform(0, 0.01, (300, 3))
    p /= p.sum(axis=1, keepdims=True)
    (found,) = compare_label_sets(
        given_probabilities(p, y), repeats=2, bins=5, tuning=TunedLabels(share=0.5, bins=(2,))
    )
    assert np.isnan(found.median("t_ss")).all()
    assert "agree" in found.reasons["LAC", "t_ss"]
    assert "no candidate for RAPS" in found.reasons["RAPS", "t_cv"]


@pytest.fixture(scope="module")
def slopes() -> Regressed:
    """Noise is larger where the function is steeper, so that ease follows the errors."""
    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (2400, 2))

    def mean(rows: np.ndarray) -> np.ndarray:
        return np.asarray(np.exp(2 * rows[:, 0]))

    y = mean(x) + mean(x) / 4 * rng.normal(size=2400)

    def crude(rows: np.ndarray) -> np.ndarray:
        return np.asarray(1 + 0.2 * rows[:, 0])

    ways = {"noise": GaussianNoise(0.1)}
    return regressed(mean, x, y, ways, spread=crude, repeats=8, name="steep")


@pytest.fixture(scope="module")
def intervals(slopes: Regressed) -> tuple[MethodComparison, ...]:
    from sklearn.linear_model import LinearRegression

    return compare_intervals(
        slopes, coverages=(0.7, 0.8), repeats=4, bins=6, difficulty=LinearRegression()
    )


def test_methods_for_intervals(intervals: tuple[MethodComparison, ...]) -> None:
    for found in intervals:
        assert found.methods == INTERVAL_METHODS
        assert found.measures == INTERVAL_MEASURES
        median = {
            measure: dict(zip(found.methods, found.median(measure), strict=True))
            for measure in INTERVAL_MEASURES
        }
        # a line of the inputs is a crude model of residuals, but all cover
        for name, value in median["empirical_coverage"].items():
            assert value > found.coverage - 0.03, name
        assert median["empirical_coverage"]["PAC"] > median["empirical_coverage"]["CP-A"]
        assert median["empirical_coverage"]["O-PAC"] > median["empirical_coverage"]["O-CPA"]
        assert math.isnan(median["t_ss"]["CP"])
        assert "agree in mean size" in found.reasons["CP", "t_ss"]
        assert math.isnan(median["kendall_tau"]["CP"])
        assert median["t_ss"]["O-CPA"] > 0.9
        assert median["t_cv"]["O-CPA"] < median["t_cv"]["CP-A"] < median["t_cv"]["CP"]
        assert median["binned_r2"]["O-CPA"] > 0.8


def test_the_control_has_groups_by_ease_with_thresholds_of_random_rows(slopes: Regressed) -> None:
    """By hand: fifths of the validation rows at random, their order statistics, fifths by ease."""
    (found,) = compare_intervals(
        slopes, coverages=(0.8,), methods=("CP-A", "O-CPA", CONTROL), repeats=1, bins=6, groups=5
    )
    split = random_split(2400, 0.5, 0)
    score = slopes.error / slopes.sd
    own = np.sort(slopes.ease[split.validation])
    group = np.searchsorted(own, slopes.ease[split.test]) * 5 // (len(own) + 1)
    n = len(own) // 5
    rank = math.ceil((n + 1) * 0.8) - 1
    by_ease = np.array([slopes.ease[split.validation][k] for k in range(1200)])
    parts = np.array_split(np.argsort(by_ease), 5)
    o_cpa = np.array([np.sort(score[split.validation][part])[rank] for part in parts])
    width = found.of("width")[0]
    sd = slopes.sd[split.test]
    assert width[1] == pytest.approx((2 * o_cpa[group] * sd).mean(), rel=0.01)
    # thresholds of random rows are near that of all rows, those by ease are not
    q = np.sort(score[split.validation])[math.ceil(1201 * 0.8) - 1]
    assert width[0] == pytest.approx((2 * q * sd).mean(), rel=1e-9)
    assert np.ptp(o_cpa) > q
    assert width[2] == pytest.approx(width[0], rel=0.1)
    assert found.of("t_cv")[0, 1] < found.of("t_cv")[0, 2]


def test_differences_are_means_with_the_corrected_error_and_tables_are_clusters() -> None:
    rng = np.random.default_rng(1)

    def table(task: str, shift: float, coverage: float = 0.8) -> MethodComparison:
        values = rng.normal(size=(7, 3, 2)) / 10
        values[:, 1] += shift
        return MethodComparison(
            task=task,
            methods=("CP-A", "O-CPA", "PAC"),
            measures=("t_cv", "t_ss"),
            values=values,
            coverage=coverage,
            calibration_rows=300,
            test_rows=200,
            bins=5,
            seed=0,
            units="y",
        )

    tables = [table("a", -1.0), table("b", -2.0), table("c", 0.5), table("d", 1.0, 0.9)]
    tables[2].values[:6, 0, 1] = np.nan  # one split alone has an answer there
    records = differences(tables)
    assert {record.model for record in records} == {"O-CPA − CP-A"}
    by = {(r.metric, r.coverage, r.group): r for r in records}
    gaps = tables[0].values[:, 1, 0] - tables[0].values[:, 0, 0]
    one = by["t_cv", 0.8, "a"]
    assert one.value == pytest.approx(gaps.mean())
    error = math.sqrt((1 / 7 + 200 / 300) * gaps.var(ddof=1))
    assert one.standard_error == pytest.approx(error)
    assert one.upper - one.value == pytest.approx(2.446912 * error, rel=1e-6)  # t of 6
    whole = by["t_cv", 0.8, ""]
    means = [by["t_cv", 0.8, name].value for name in "abc"]
    assert whole.value == pytest.approx(np.mean(means))
    assert whole.standard_error == pytest.approx(np.std(means, ddof=1) / math.sqrt(3))
    assert whole.value - whole.lower == pytest.approx(4.302653 * whole.standard_error, rel=1e-6)
    assert whole.options == {"tasks": 3.0, "better": 2.0}  # a lower T-CV is better
    assert ("t_ss", 0.8, "c") not in by
    assert by["t_ss", 0.8, ""].options == {"tasks": 2.0, "better": 0.0}
    assert ("t_cv", 0.9, "") not in by  # one table is no mean
    assert len(set(CONTRASTS)) == len(CONTRASTS)


def test_tasks_that_agree_have_the_error_of_a_rule_of_succession() -> None:
    value, error = agreed_mean(np.full(8, 6.0))
    assert (value, error) == (6.0, math.sqrt(0.1 * 0.9 / 8))
    assert agreed_mean(np.array([1.0, 2.0])) == (1.5, pytest.approx(0.5))
    assert agreed_mean(np.zeros(2), 36.0)[1] == pytest.approx(36 * math.sqrt(3 / 32))
    assert math.isnan(agreed_mean(np.array([1.0]))[1])
    # as a simulation has it: of shares under a uniform prior that showed none in 8, the mean
    rng = np.random.default_rng(0)
    shares = rng.random(400_000)
    none = shares[rng.binomial(8, shares) == 0]
    assert none.mean() == pytest.approx(0.1, abs=0.002)


@pytest.fixture(scope="module")
def letters() -> Classified:
    """A classifier that knows the truth, but for a softening."""
    from howsure_studies.tasks.images import draw_letters

    _, y, truth = draw_letters(1500, seed=2)
    p = truth**0.5
    ease = {"known": truth.max(axis=1), "other": np.random.default_rng(0).random(1500)}
    return Classified(
        name="letters", y=y, probabilities=p / p.sum(axis=1, keepdims=True), eases=ease, truth=truth
    )


def test_where_the_truth_is_known_coverage_is_that_of_chances(letters: Classified) -> None:
    (found,) = compare_label_sets(letters, methods=("LAC", "APS"), repeats=2, bins=10, seed=1)
    assert found.measures == (*LABEL_MEASURES, *TRUE_MEASURES)
    sets, test = first_sets(letters, "APS", coverage=0.9, bins=10, seed=1)
    assert letters.truth is not None
    chance = np.array(
        [
            sum(letters.truth[row, label] for label in np.flatnonzero(sets.members[k]))
            for k, row in enumerate(test)
        ]
    )
    order = np.argsort(letters.truth[test].max(axis=1), kind="stable")
    cells = [part.mean() for part in np.array_split(chance[order], 10)]
    gap = max(abs(cell - 0.9) for cell in cells)
    assert found.of("t_cv_true")[0, 1] == pytest.approx(gap, abs=1e-12)
    # here the ease is the truth, so that both cut alike, and ranks agree
    assert found.of("t_cv_exact")[0, 1] == pytest.approx(gap, abs=1e-12)
    np.testing.assert_allclose(found.of("ease_truth"), 1.0)
    # labels are draws of these chances
    hits = sets.contains(letters.y[test].astype(float))
    spread = math.sqrt((chance * (1 - chance)).sum())
    assert abs(hits.sum() - chance.sum()) < 4 * spread
    rng = np.random.default_rng(3)
    sums = letters.truth[test].cumsum(axis=1)
    again = np.mean(
        [
            sets.contains((sums > rng.random(len(test))[:, None]).argmax(axis=1).astype(float))
            for _ in range(400)
        ],
        axis=0,
    )
    assert np.abs(again - chance).max() < 5 * 0.5 / math.sqrt(400)


def test_a_truth_of_another_shape_is_refused() -> None:
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 40)
    images = rng.uniform(0, 0.9, (80, 2, 2, 3)) + 0.1 * y[:, None, None, None]
    ways = ("saturation 0.5", "noise 0.5")
    task = classifier_task(images, y, "discriminant", train=20, repeats=2, transformations=ways)
    assert list(task.eases) == list(ways)
    assert np.ptp(task.eases["saturation 0.5"]) > 0
    with pytest.raises(InputError, match="truth must have shape"):
        classifier_task(images, y, "discriminant", train=20, repeats=2, truth=np.ones((80, 3)))
    with pytest.raises(InputError, match="three colours"):
        classifier_task(
            images[..., 0], y, "discriminant", train=20, transformations=("saturation 0.5",)
        )


def test_clipped_intervals_of_one_width_have_a_slope(slopes: Regressed) -> None:
    """The likely reason why the published table has a T-SS for CP."""
    held = float(slopes.y.min()), float(slopes.y.max())
    (found,) = compare_intervals(slopes, coverages=(0.8,), methods=("CP",), repeats=2, bins=6)
    clip = (held[0], held[1])
    (cut,) = compare_intervals(
        slopes, coverages=(0.8,), methods=("CP",), repeats=2, bins=6, clip=clip
    )
    assert math.isnan(found.median("t_ss")[0])
    assert np.isfinite(cut.median("t_ss")[0])
    np.testing.assert_array_equal(found.of("empirical_coverage"), cut.of("empirical_coverage"))


def test_groups_without_enough_rows_are_unbounded(slopes: Regressed) -> None:
    (found,) = compare_intervals(
        slopes, coverages=(0.95,), methods=("CP-A", "O-PAC"), repeats=2, bins=6, groups=30
    )
    assert "unbounded" in found.reasons["O-PAC", "width"]
    assert np.isfinite(found.median("width")[0])
    assert np.isfinite(found.median("t_cv")[1])


def test_numbers_of_intervals_count_ends_in() -> None:
    lower, upper = np.array([0.0, 0.0, 0.0, 1.0]), np.array([1.0, 2.0, 4.0, 4.0])
    y = np.array([1.0, 3.0, 0.0, 1.0])
    cells = EaseCells([4.0, 3.0, 2.0, 1.0], 4)
    found = interval_numbers(lower, upper, y, np.array([1.0, 2.0, 3.0, 2.0]), cells, 0.7)
    assert (found["empirical_coverage"], found["width"]) == (0.75, 2.5)
    assert found["t_cv"] == pytest.approx(0.7)
    line = np.corrcoef([1, 2, 4, 3], [1, 2, 3, 2])[0, 1]
    assert found["t_ss"] == pytest.approx(line**2)


def test_forests_make_a_task_from_a_table() -> None:
    rng = np.random.default_rng(9)
    x = rng.uniform(-1, 1, (500, 2))
    y = 2 * x[:, 0] + np.abs(x[:, 1]) * rng.normal(size=500)
    made = forest_task((x[:300], y[:300]), (x[300:], y[300:]), trees=40, repeats=4, seed=2)
    assert len(made.y) == 200
    assert list(made.eases) == ["noise 0.2"]
    assert np.corrcoef(made.mean, 2 * x[300:, 0])[0, 1] > 0.9
    assert np.corrcoef(made.sd, np.abs(x[300:, 1]))[0, 1] > 0.5
    noise = GaussianNoise.relative(x[:300], 0.2)
    np.testing.assert_array_equal(
        made.eases["noise 0.2"], ease(made.predict, x[300:], noise, repeats=4, seed=2)
    )
    flat = forest_task((x[:300], np.zeros(300)), (x[300:], y[300:]), trees=40, repeats=1)
    assert (flat.sd > 0).all()
    with pytest.raises(InputError, match="trees must be"):
        forest_task((x, y), (x, y), trees=10)


def test_splits_are_those_of_their_seed(task: Classified) -> None:
    options = {"methods": ("LAC", "APS"), "bins": 10}
    (one,) = compare_label_sets(task, repeats=3, seed=1, **options)
    (two,) = compare_label_sets(task, repeats=2, seed=1, **options)
    (alone,) = compare_label_sets(task, repeats=2, seed=1, methods=("APS",), bins=10)
    (other,) = compare_label_sets(task, repeats=2, seed=2, **options)
    np.testing.assert_array_equal(one.values[:2], two.values)
    np.testing.assert_array_equal(one.values[:2, 1:], alone.values)
    assert (other.values != two.values).any()
    told: list[tuple[str, int, int]] = []
    with subscribe(lambda *step: told.append(step)):
        compare_label_sets(task, repeats=2, **options)
    assert told == [("toy", 1, 2), ("toy", 2, 2)]


def test_validation_finds_the_measure_that_follows_the_property() -> None:
    """Half of the rows have sets that follow difficulty; trials differ in how many they hold."""
    rng = np.random.default_rng(6)
    n = 4000
    rank = 1.0 + rng.geometric(0.4, n)
    size = np.where(rng.random(n) < 0.5, rank, rng.permutation(rank)) + rng.integers(0, 2, n)
    covered = rank <= size
    found = validate_measures(
        *(size, rank, covered, -rank + rng.normal(0, 0.3, n)),
        coverage=float(covered.mean()),
        rows=200,
        subset=30,
        pairs=200,
        trials=80,
        bins=20,
    )
    by_name = dict(zip(VALIDATED, found.rho, strict=True))
    assert by_name["t_ss"] > 0.3
    assert by_name["set_deficit"] < -0.3
    for k in range(5):
        expected = spearmanr(found.values[:, k], found.rate)
        assert found.rho[k] == pytest.approx(expected.statistic)
        assert found.p_value[k] == pytest.approx(expected.pvalue)
    assert found.table().columns["rank"].tolist() == correlation_ranks(found.rho[None])[0].tolist()


def test_few_pairs_leave_little_to_correlate_with() -> None:
    """Trials of all rows differ by the pairs drawn alone: nothing of the rate is reliable."""
    rng = np.random.default_rng(8)
    rank = 1.0 + rng.geometric(0.4, 300)
    arrays = rank + rng.integers(0, 3, 300), rank, rank > 1, rng.random(300)
    options = {"coverage": 0.9, "subset": 20, "trials": 200, "bins": 5}
    same = validate_measures(*arrays, rows=300, pairs=50, **options)
    assert same.reliability < 0.3
    few = validate_measures(*arrays, rows=30, pairs=400, **options)
    assert few.reliability > 0.5
    wanted = 1 - (few.rate * (1 - few.rate)).mean() / 400 / few.rate.var(ddof=1)
    assert few.reliability == pytest.approx(wanted)


def test_a_measure_that_never_varies_has_no_correlation() -> None:
    rng = np.random.default_rng(7)
    rank = 1.0 + rng.poisson(1.0, 300)
    found = validate_measures(
        *(np.full(300, 3.0), rank, rank <= 3, rng.random(300)),
        coverage=0.9,
        rows=100,
        subset=10,
        pairs=20,
        trials=5,
        bins=5,
    )
    assert np.isnan(found.rho).all()  # sets of one size: the property holds in all pairs
    assert np.isnan(found.values[:, 4]).all()


def test_sensitivity_is_the_measures_at_every_way_and_number_of_cells(task: Classified) -> None:
    sets = (
        LabelConformal(score=APS(), coverage=0.8)
        .calibrate(task.probabilities[:700], task.y[:700])
        .predict(task.probabilities[700:])
    )
    covered = sets.contains(task.y[700:].astype(float))
    eases = {name: values[700:] for name, values in task.eases.items()}
    table = ease_sensitivity(
        sets.sizes, task.rank[700:], covered, eases, coverage=0.8, bins=(5, 20)
    )
    assert table.columns["ease"].tolist() == ["noise 0.3"] * 2 + ["noise 0.6"] * 2
    row = 3
    second = eases["noise 0.6"]
    assert (
        table.columns["t_ss"][row]
        == t_ss(sets.sizes, task.rank[700:], second, bins=20, resampling=QUIET).estimate.value
    )
    assert table.columns["t_cv_floor"][row] == noise_floor([40] * 20, 0.8).median
    first = eases["noise 0.3"]
    assert table.columns["agreement"][row] == pytest.approx(spearmanr(first, second).statistic)
    assert table.columns["agreement"][0] == 1


def squares(n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Dark and bright squares of noise."""
    rng = np.random.default_rng(10)
    y = rng.integers(0, 2, n)
    return rng.uniform(0, 0.7, (n, 4, 4)) + 0.3 * y[:, None, None], y


def test_a_classifier_is_trained_on_some_images_and_judged_on_the_others() -> None:
    from sklearn.linear_model import LogisticRegression

    x, y = squares()
    ways = ["contrast 0.4", "noise 0.5", "brightness 0.3"]
    made = classifier_task(x, y, train=40, transformations=ways, repeats=3, seed=4)
    order = child(4, "adaptivity", "images").permutation(160)
    own, rest = order[:40], order[40:]
    model = LogisticRegression(C=0.1, max_iter=200).fit(x[own].reshape(40, -1), y[own])

    def predict(images: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict_proba(images.reshape(len(images), -1)))

    np.testing.assert_array_equal(made.y, y[rest])
    np.testing.assert_allclose(made.probabilities, predict(x[rest]))
    assert list(made.eases) == ways
    assert made.source == "contrast 0.4"
    for way, how in (
        ("contrast 0.4", Contrast(0.4)),
        ("brightness 0.3", Brightness(0.3)),
        ("noise 0.5", GaussianNoise(0.5 * x[own].std())),
    ):
        wanted = ease(predict, x[rest], how, repeats=3, seed=4)
        np.testing.assert_allclose(made.eases[way], wanted, rtol=1e-9)
    few = classifier_task(x, y, train=40, rows=30, transformations=ways, repeats=3, seed=4)
    np.testing.assert_array_equal(few.eases["noise 0.5"], made.eases["noise 0.5"][:30])
    assert made.about["Accuracy"].endswith("%")


@pytest.mark.parametrize("name", ["logistic", "network", "forest", "discriminant"])
def test_classifiers_draw_by_their_seed(name: str) -> None:
    x, y = squares(60)
    one, two = (
        classifier_task(x, y, name, train=30, transformations=["noise 0.5"], repeats=1, seed=1)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    assert one.probabilities.shape == (30, 2)


def test_a_classifier_of_ones_own_is_named_with_its_options() -> None:
    x, y = squares(60)
    tree = {"name": "sklearn.tree:DecisionTreeClassifier", "max_depth": 1}
    ways = ["noise 0.5"]
    made = classifier_task(x, y, tree, train=30, transformations=ways, repeats=1)
    assert len(np.unique(made.probabilities)) <= 4  # of two leaves


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"classifier": "logistics"}, "classifier must be one of .*near: logistic"),
        ({"classifier": "sklearn.linear_model:Ridge"}, "fit and predict_proba"),
        ({"classifier": {"name": "logistic", "C": 2}}, "or module:attribute"),
        ({"transformations": ["blur 0.5"]}, "transformation must be one of"),
        ({"transformations": ["noise"]}, "as 'noise 0.5', got 'noise'"),
        ({"transformations": ["noise 0"]}, "a size above 0"),
        ({"transformations": ["brightness 2"]}, r"amount must be in \(0, 1\]"),
        ({"transformations": []}, "transformations must not be empty"),
        ({"transformations": ["noise 1", "noise 1"]}, "must be different"),
        ({"train": 59}, "train must be"),
        ({"train": 2, "seed": 2}, "all 3 classes"),
        ({"images": 3 * squares(60)[0]}, r"pixels in \[0, 1\]"),
    ],
)
def test_bad_images_and_classifiers_are_named(options: dict[str, Any], words: str) -> None:
    x, y = squares(60)
    y = np.where(np.arange(60) == 7, 2, y) if options.get("seed") else y
    given: dict[str, Any] = {"images": x, "classifier": "logistic", "train": 30, "repeats": 1}
    given |= options
    with pytest.raises(InputError, match=words):
        classifier_task(given.pop("images"), y, given.pop("classifier"), **given)


def test_a_task_holds_the_model_and_its_ease(task: Classified) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    made = classified(
        softmax, x, np.zeros(30), {"a": GaussianNoise(0.2), "b": GaussianNoise(0.5)}, repeats=3
    )
    np.testing.assert_array_equal(made.eases["b"], ease(softmax, x, GaussianNoise(0.5), repeats=3))
    np.testing.assert_array_equal(made.probabilities, softmax(x))
    assert made.accuracy == (x.argmax(axis=1) == 0).mean()
    assert not made.surrogate


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: compare_label_sets(t, methods=("LAC", "ABS")), "method must be one of LAC"),
        (lambda t: compare_label_sets(t, methods=("LAC", "LAC")), "must be different"),
        (lambda t: compare_label_sets(t, methods=()), "must not be empty"),
        (lambda t: compare_label_sets(t, coverages=(1.0,)), "coverages"),
        (lambda t: compare_label_sets(t, repeats=0), "repeats must be"),
        (lambda t: compare_label_sets(t, share=1.0), "share"),
        (lambda t: compare_label_sets(t, bins=601), "600 test rows"),
        (lambda t: classified(softmax, np.ones((3, 2)), [0, 1, 2], {}), "y must be class"),
        (lambda t: classified(softmax, np.ones((3, 2)), [0, 1, 1], {}), "at least one way"),
        (lambda t: given_probabilities([[0.5, 0.5]], [0], sds=()), "sds must contain"),
        (
            lambda t: regressed(
                lambda x: x[:, 0],
                np.ones((3, 2)),
                np.ones(3),
                {"n": GaussianNoise(0.1)},
                spread=lambda x: 0 * x[:, 0],
            ),
            "spread's outputs must be above 0",
        ),
        (lambda t: validate_measures([1], [1], [1], [1], coverage=0.9), "rows must be"),
        (
            lambda t: validate_measures([1] * 9, [1] * 9, [1] * 8, [1] * 9, coverage=0.9),
            "covered must have",
        ),
        (lambda t: ease_sensitivity([1], [1], [1], {}, coverage=0.9), "eases must contain"),
        (lambda t: average_records([]), "at least one"),
    ],
)
def test_bad_input_is_named(task: Classified, call, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(task)


def test_bad_groups_are_named(slopes: Regressed) -> None:
    with pytest.raises(InputError, match="groups must be"):
        compare_intervals(slopes, groups=1)


def test_first_columns_are_the_probabilities(task: Classified) -> None:
    """The columns of ease beside them change no set."""
    (found,) = compare_label_sets(task, methods=("LAC",), repeats=1, bins=5)
    bare = Classified(
        name="bare",
        probabilities=task.probabilities,
        y=task.y,
        eases={"one": next(iter(task.eases.values()))},
    )
    (again,) = compare_label_sets(bare, methods=("LAC",), repeats=1, bins=5)
    np.testing.assert_array_equal(found.values, again.values)
    assert LAC().name == found.methods[0]
