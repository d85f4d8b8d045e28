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
from howsure.metrics.adaptivity import (
    Brightness,
    Contrast,
    EaseCells,
    GaussianNoise,
    Resampling,
    ease,
    escv,
    label_rank,
    noise_floor,
    rank_cv,
    rank_ss,
    sscv,
    t_cv,
    t_ss,
)
from howsure.predictions import LabelSets
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
from howsure_studies.adaptivity.comparison import slope_floor
from howsure_studies.adaptivity.intervals import interval_numbers
from howsure_studies.adaptivity.label_sets import label_numbers

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
    assert averages(found)["t_ss_rank"] == found.ranks("t_ss").shared_ranks.tolist()
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
    ranks = found.ranks("t_cv").shared_ranks + other.ranks("t_cv").shared_ranks
    np.testing.assert_allclose(table["t_cv_rank"], ranks / 2)
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
    assert "no choice of RAPS" in found.reasons["RAPS", "t_cv"]


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
        ({"transformations": ["brightness 2"]}, r"amount must lie in \(0, 1\]"),
        ({"transformations": []}, "at least one"),
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
        (lambda t: compare_label_sets(t, methods=()), "at least one"),
        (lambda t: compare_label_sets(t, coverages=(1.0,)), "coverages"),
        (lambda t: compare_label_sets(t, repeats=0), "repeats must be"),
        (lambda t: compare_label_sets(t, share=1.0), "share"),
        (lambda t: compare_label_sets(t, bins=601), "600 test rows"),
        (lambda t: classified(softmax, np.ones((3, 2)), [0, 1, 2], {}), "y must hold class"),
        (lambda t: classified(softmax, np.ones((3, 2)), [0, 1, 1], {}), "at least one way"),
        (lambda t: given_probabilities([[0.5, 0.5]], [0], sds=()), "sds must hold"),
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
        (lambda t: ease_sensitivity([1], [1], [1], {}, coverage=0.9), "eases must hold"),
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
