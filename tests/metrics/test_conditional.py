"""Conditional coverage: oracles, laws, and the regions that fail."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from sklearn.tree import DecisionTreeRegressor

from generated import examples
from howsure.core.errors import InputError
from howsure.topics.conditional.dependence import (
    _added_by_chance,
    _mean_deviation,
    coverage_gap,
    hsic,
    median_gap,
    width_correlation,
)
from howsure.topics.conditional.ert import conditional_validity_index, ert, excess_risk
from howsure.topics.conditional.forests import Smoother, content_order
from howsure.topics.conditional.local_pit import local_pit
from howsure.topics.conditional.slab import (
    _directions,
    _search,
    regions_differ,
    worst_region,
    worst_slab,
)
from oracles.conditional import dense_hsic, lowest_slab, mean_deviation, permuted_mean

RIGHT = 0.9


def right(n: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and the coverage of a model that is right at every one of them."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)), rng.random(n) < RIGHT


def wrong(n: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for a model that fails past 1 of the first input and is right on average."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, columns))
    failing = x[:, 0] > 1
    chance = np.where(failing, 0.5, 0.9756)
    return x, rng.random(n) < chance, chance


def leaf(depth: int = 2) -> Any:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(max_depth=depth, min_samples_leaf=20, random_state=0)


# Worst slab


@examples(25)
@given(st.integers(0, 10_000), st.integers(4, 18), st.sampled_from([0.1, 0.3, 0.6]), st.booleans())
def test_the_search_finds_the_lowest_of_all_slabs(
    seed: int, n: int, share: float, tied: bool
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    x = np.round(x) if tied else x
    covered = rng.random((n, 3)) < 0.7
    directions = np.array([[1.0, 0.0], [0.6, 0.8], [-0.8, 0.6]])
    values, number, (low, high) = _search(x, covered, directions, share)
    least = math.ceil(share * n - 1e-9)
    for column in range(3):
        tried = [lowest_slab(covered[:, column], x, d, least) for d in directions]
        assert values[column] == pytest.approx(min(tried), abs=1e-12)
    place = x @ directions[number]
    inside = (place >= low) & (place <= high)
    assert inside.sum() >= least
    assert covered[inside, 0].mean() == pytest.approx(values[0], abs=1e-12)


def lowest_on_own_rows(
    covered: npt.NDArray[np.bool_], x: npt.NDArray[np.float64], seed: int = 0
) -> tuple[float, npt.NDArray[np.bool_]]:
    """The lowest coverage of a slab on the rows that chose it, and which rows lie in it."""
    rows = (x - x.mean(axis=0)) / x.std(axis=0)
    tried = _directions(x, np.ones(x.shape[1], dtype=np.bool_), 1_000, seed)
    values, place, (low, high) = _search(rows, covered[:, None], tried, 0.1)
    along = rows @ tried[place]
    return float(values[0]), (along >= low) & (along <= high)


def test_many_rows_are_searched_on_a_grid_of_ends() -> None:
    x, covered = right(9_000, 1, 0)
    value, inside = lowest_on_own_rows(covered, x)
    place = np.sort(x[:, 0])
    order = np.argsort(x[:, 0])
    total = np.r_[0, np.cumsum(covered[order])]
    exact = min(
        ((total[m:] - total[:-m]) / m).min() for m in range(900, 1_800)
    )  # twice the least share can be halved
    assert exact <= value <= exact + 0.004
    assert len(place) == 9_000
    assert covered[inside].mean() == pytest.approx(value, abs=1e-12)


@pytest.mark.slow
def test_judged_on_its_own_rows_a_right_model_looks_bad() -> None:
    """Search and evaluation on the same rows, as a peer does, says about .75 for .90."""
    own, honest, errors = [], [], []
    for seed in range(8):
        x, covered = right(1_000, 8, seed)
        own.append(lowest_on_own_rows(covered, x, seed)[0])
        found = worst_slab(covered, x, coverage=RIGHT, directions=200, replicates=1, seed=seed)
        honest.append(found.estimate.value)
        errors.append(found.estimate.error)
    assert np.mean(own) == pytest.approx(0.75, abs=0.02)
    error = math.sqrt(np.square(errors).sum()) / len(errors)
    assert np.mean(honest) == pytest.approx(RIGHT, abs=3 * error)
    assert error < 0.02


def test_the_p_values_of_right_models_are_uniform_and_those_of_wrong_ones_small() -> None:
    honest, searched = [], []
    for seed in range(150):
        x, covered = right(300, 3, seed)
        found = worst_slab(covered, x, coverage=RIGHT, directions=20, replicates=39, seed=seed)
        honest.append(found.estimate.p)
        searched.append(found.searched.p)
        assert found.estimate.null == RIGHT
    assert np.mean(np.array(honest) <= 0.1) <= 0.16  # exact for counts: at most .1 but for luck
    for level in (0.05, 0.1, 0.2, 0.4):  # minima of few rows tie, and ties count as lower
        error = math.sqrt(level * (1 - level) / 150)
        assert level / 2 - 3 * error < np.mean(np.array(searched) <= level) < level + 3 * error
    x, covered, _ = wrong(1_000, 3, 0)
    found = worst_slab(covered, x, coverage=RIGHT, directions=100, names=["age", "b", "c"])
    assert found.estimate.p < 1e-6
    assert found.searched.p == 0.01
    assert found.estimate.value == pytest.approx(0.5, abs=0.12)
    assert found.searched.value < found.searched.null_lower
    assert found.region is not None
    assert found.slab is not None
    assert " < age" in found.region.where or "age > " in found.region.where
    assert x[found.slab.contains(x), 0].min() > 0.95
    assert found.region.n == round(found.region.share * 500)


def test_the_slab_does_not_depend_on_units_or_the_order_of_rows() -> None:
    x, covered, _ = wrong(600, 3, 1)
    first = worst_slab(covered, x, coverage=RIGHT, directions=30, replicates=9)
    backwards = worst_slab(covered[::-1], x[::-1], coverage=RIGHT, directions=30, replicates=9)
    assert backwards.estimate.value == first.estimate.value
    assert backwards.searched.p == first.searched.p
    assert first.slab is not None
    assert backwards.slab is not None
    np.testing.assert_allclose(first.slab.direction, backwards.slab.direction)
    inside = first.slab.contains(x)
    assert 0 < inside.sum() < 600


def test_slabs_across_inputs_are_told_by_their_strongest() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4_000, 3))
    covered = rng.random(4_000) < np.where(x[:, 0] + x[:, 1] > 1.5, 0.4, 0.97)
    found = worst_slab(covered, x, coverage=RIGHT, directions=300, replicates=9)
    assert found.slab is not None
    assert found.region is not None
    assert abs(found.slab.direction[:2].sum()) > 1.2  # of at most √2
    assert found.region.where == "1.501 < x1 + 0.961·x0 ≤ 2.332"
    words = re.fullmatch(
        r"mostly (.+) < x0 ≤ (.+) and (.+) < x1 ≤ (.+)", found.slab.mostly(x).replace("−", "-")
    )
    assert words is not None
    inside = x[found.slab.contains(x)]
    ends = np.array(words.groups(), dtype=float)
    shares = [(inside[:, i] > ends[2 * i]) & (inside[:, i] <= ends[2 * i + 1]) for i in (0, 1)]
    assert np.mean(shares, axis=1) == pytest.approx([0.9, 0.9], abs=0.01)
    tilted = x[:, 1] + 0.961 * x[:, 0]
    told = (tilted > 1.501) & (tilted <= 2.332)  # the words, in the inputs' own units
    assert np.mean(told == found.slab.contains(x)) > 0.999


# Coverage gap


def test_chance_adds_to_a_gap_as_by_integration() -> None:
    """A group whose gap was seen as d + e counts as one whose gap is d."""
    error = np.array([0.02, 0.05, 0.1])
    for gap in (0.0, 0.03, 0.4):
        z = np.linspace(-12.0, 12.0, 200_001)
        added = [
            (np.abs(gap + e * z) * stats.norm.pdf(z)).sum() * 1.2e-4 - gap for e in error.tolist()
        ]
        np.testing.assert_allclose(_added_by_chance(gap + error, error), added, atol=1e-7)


def test_the_interval_of_a_gap_contains_that_of_right_and_wrong_models() -> None:
    """Without what chance adds, that of 20 right groups never did."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(20), 50)
    for chances in (np.full(20, 0.9), np.repeat([0.8, 0.98], 10)):
        inside = 0
        for _ in range(100):
            hit = rng.random(1_000) < chances[groups]
            found = coverage_gap(hit, groups, coverage=0.9, replicates=9).raw
            inside += found.lower <= np.abs(chances - 0.9).mean() <= found.upper
        assert inside >= 90


@given(st.integers(1, 60), st.floats(0.02, 0.98))
@examples(60)
def test_the_null_of_the_gap_is_the_mean_deviation(n: int, share: float) -> None:
    found = coverage_gap(np.ones(2 * n), np.repeat([0, 1], n), coverage=share, replicates=1)
    assert found.raw.null == pytest.approx(mean_deviation(n, share), rel=1e-9)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_certain_rows_stray_by_nothing(share: float) -> None:
    np.testing.assert_array_equal(_mean_deviation(np.array([1, 12]), share), [0.0, 0.0])


def test_the_gap_by_hand() -> None:
    sizes, hits = np.array([10, 40, 50]), np.array([10, 30, 45])
    covered = np.concatenate(
        [np.r_[np.ones(h), np.zeros(n - h)] for n, h in zip(sizes, hits, strict=True)]
    )
    found = coverage_gap(covered, np.repeat(["a", "b", "c"], sizes), coverage=0.9, name="site")
    off = hits / sizes - 0.9
    assert found.raw.value == pytest.approx(np.abs(off).mean())
    cut = np.maximum(off**2 - 0.09 / sizes, 0)
    assert found.debiased.value == pytest.approx(cut.mean())
    assert found.region is not None
    assert (found.region.where, found.region.n) == ("site=b", 40)
    raw = [stats.binomtest(int(h), int(n), 0.9).pvalue for h, n in zip(hits, sizes, strict=True)]
    assert found.p_values[1] == pytest.approx(min(1, 3 * 2 * stats.binom.cdf(30, 40, 0.9)))
    assert np.argmin(raw) == 1


def test_right_models_sit_at_the_null_of_the_gap() -> None:
    raw, debiased, p_values = [], [], []
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), rng.integers(5, 60, 20))
    for seed in range(200):
        covered = np.random.default_rng(seed).random(len(groups)) < RIGHT
        found = coverage_gap(covered, groups, coverage=RIGHT, replicates=199, seed=seed)
        raw.append(found.raw.value - found.raw.null)
        debiased.append(found.debiased.value - found.debiased.null)
        p_values.append(found.raw.p)
    for excess in (raw, debiased):
        assert abs(np.mean(excess)) < 3 * np.std(excess) / math.sqrt(len(excess))
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


# HSIC and correlation


@pytest.mark.slow
@pytest.mark.parametrize("law", ["uniform", "lognormal", "pareto"])
def test_hsic_is_the_dense_one(law: str) -> None:
    rng = np.random.default_rng(0)
    width = {
        "uniform": rng.uniform(1, 3, 2_000),
        "lognormal": rng.lognormal(0, 1, 2_000),
        "pareto": rng.pareto(1.0, 2_000),
    }[law]
    covered = rng.random(2_000) < 0.8 + 0.15 * (width > np.median(width))
    found = hsic(covered, width, coverage=RIGHT, permutations=9)
    assert found.estimate.value == pytest.approx(dense_hsic(covered, width), abs=1e-9)
    assert found.rank < 200


@given(st.lists(st.floats(0.1, 10.0), min_size=2, max_size=40, unique=True))
@examples(100)
def test_the_median_gap_is_the_median_of_all(values: list[float]) -> None:
    from scipy.spatial.distance import pdist

    array = np.array(values)
    gaps = pdist(array[:, None])
    assert median_gap(array) == pytest.approx(np.median(gaps[gaps > 0]), rel=1e-9, abs=1e-12)


def test_the_median_gap_of_repeated_widths_is_that_of_different_ones() -> None:
    assert median_gap(np.array([1.0] * 9 + [3.0])) == pytest.approx(2.0)


def test_the_null_of_hsic_is_its_mean_over_all_permutations() -> None:
    width = np.array([1.0, 1.3, 2.0, 2.2, 3.5, 4.0])
    covered = np.array([1, 1, 0, 1, 0, 1])
    found = hsic(covered, width, coverage=RIGHT, permutations=1)
    assert found.estimate.null == pytest.approx(permuted_mean(covered, width), rel=1e-6)


def test_hsic_and_the_correlation_do_not_change_with_units() -> None:
    rng = np.random.default_rng(0)
    width = rng.gamma(2.0, size=400)
    covered = rng.random(400) < RIGHT
    for measure in (hsic, width_correlation):
        first = measure(covered, width, coverage=RIGHT, permutations=99)
        second = measure(covered, 1e-6 * width, coverage=RIGHT, permutations=99)
        assert second.estimate.value == pytest.approx(first.estimate.value, rel=1e-9)
        assert second.estimate.p == first.estimate.p
        again = measure(covered[::-1], width[::-1], coverage=RIGHT, permutations=99)
        assert (again.estimate.value, again.estimate.p) == pytest.approx(
            (first.estimate.value, first.estimate.p), rel=1e-9
        )


def test_the_correlation_and_its_error_are_those_of_scipy_and_of_repeats() -> None:
    values, told = [], []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        width = rng.gamma(3.0, size=300)
        covered = rng.random(300) < np.clip(0.75 + 0.05 * width, 0, 1)
        found = width_correlation(covered, width, coverage=RIGHT, permutations=1)
        assert found.estimate.value == pytest.approx(stats.pearsonr(width, covered)[0], rel=1e-9)
        values.append(found.estimate.value)
        told.append(found.estimate.error)
    assert np.mean(told) == pytest.approx(np.std(values), rel=0.2)


def test_the_standard_error_of_hsic_is_that_of_repeats() -> None:
    values, told = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        width = rng.uniform(1, 3, 500)
        covered = rng.random(500) < np.where(width < 1.5, 0.6, 0.98)
        found = hsic(covered, width, coverage=RIGHT, permutations=1)
        values.append(found.estimate.value)
        told.append(found.estimate.error)
    assert np.mean(told) == pytest.approx(np.std(values), rel=0.25)


def test_the_failing_widths_are_named() -> None:
    rng = np.random.default_rng(0)
    width = rng.uniform(1, 3, 3_000)
    covered = rng.random(3_000) < np.where(width > 2.8, 0.5, 0.95)
    found = hsic(covered, width, coverage=RIGHT, permutations=99)
    assert found.estimate.p == 0.01
    assert found.region is not None
    assert found.region.where.endswith("≤ width")
    assert float(found.region.where.split()[0]) == pytest.approx(2.8, abs=0.04)
    assert found.region.empirical_coverage == pytest.approx(0.5, abs=0.12)


# ERT


def test_known_chances_give_the_closed_forms() -> None:
    x, covered, chance = wrong(40_000, 1, 0)
    target = RIGHT
    expected = {
        "squared": np.mean((chance - target) ** 2),
        "absolute": np.mean(np.abs(chance - target)),
        "log": np.mean(special.rel_entr(chance, target) + special.rel_entr(1 - chance, 1 - target)),
    }
    for loss, mean in expected.items():
        found = excess_risk(covered, chance, target, loss)
        assert found.value == pytest.approx(mean, abs=4 * found.error)
        assert found.details["under"] + found.details["over"] == pytest.approx(found.value)
        assert found.lower < mean < found.upper
    failing = x[:, 0] > 1
    under = excess_risk(covered, chance, target).details["under"]
    assert under == pytest.approx(np.mean(failing * 0.4**2), abs=0.006)


@given(st.integers(0, 1000))
@examples(30)
def test_the_excess_risk_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    c, h = (rng.random(20) < 0.8) * 1.0, rng.uniform(0.05, 0.95, 20)
    target = 0.85
    by_hand = {
        "squared": (target - c) ** 2 - (h - c) ** 2,
        "absolute": np.where(h > target, 1.0, -1.0) * (c - target),
        "log": c * np.log(h / target) + (1 - c) * np.log((1 - h) / (1 - target)),
    }
    for loss, scores in by_hand.items():
        found = excess_risk(c, h, target, loss)
        assert found.value == pytest.approx(scores.mean())
        assert found.error == pytest.approx(scores.std(ddof=1) / math.sqrt(20))
        assert found.details["over"] == pytest.approx((scores * (h > target)).mean())


def test_ert_approaches_the_truth_from_below_and_names_the_place() -> None:
    x, covered, chance = wrong(4_000, 3, 0)
    found = ert(covered, x, coverage=RIGHT, names=["age", "b", "c"], classifier=leaf())
    truth = np.mean((chance - RIGHT) ** 2)
    assert 0.8 * truth < found.squared.value < truth + 2 * found.squared.error
    assert found.squared.p < 1e-10
    assert found.region is not None
    assert found.region.where.startswith("age > ")
    assert float(found.region.where.split()[-1]) == pytest.approx(1.0, abs=0.05)
    assert found.region.lower < 0.5 < found.region.upper
    assert sum(part.n for part in found.parts) == 2_000
    assert found.probability[x[:, 0] > 1].mean() == pytest.approx(0.5, abs=0.05)
    assert found.probability[x[:, 0] < 1].mean() == pytest.approx(0.9756, abs=0.01)


def test_ert_leaves_the_classifier_as_it_was_and_ignores_the_order_of_rows() -> None:
    x, covered, _ = wrong(400, 2, 0)
    model = leaf()
    first = ert(covered, x, coverage=RIGHT, classifier=model)
    assert not hasattr(model, "tree_")
    order = np.random.default_rng(0).permutation(400)
    again = ert(covered[order], x[order], coverage=RIGHT, classifier=model)
    assert again.squared.value == pytest.approx(first.squared.value, rel=1e-12)
    np.testing.assert_allclose(again.probability, first.probability[order])


def test_a_right_model_sits_at_the_simulated_null_of_ert() -> None:
    x, covered = right(500, 2, 3)
    found = ert(covered, x, coverage=RIGHT, classifier=leaf(4), replicates=99)
    for risk in (found.squared, found.absolute, found.log):
        assert risk.p > 0.02
        assert risk.value <= risk.null_upper
    assert found.squared.null < 0  # noise in the chances costs
    x, covered, _ = wrong(500, 2, 3)
    assert ert(covered, x, coverage=RIGHT, classifier=leaf(4), replicates=99).squared.p == 0.01


def test_over_coverage_counts_too() -> None:
    x, _ = right(300, 2, 0)
    found = ert(np.ones(300), x, coverage=RIGHT)
    assert found.squared.value == pytest.approx(0.01, abs=1e-4)
    assert found.squared.details["under"] == 0.0
    assert found.absolute.value == pytest.approx(0.1)


# Conditional validity index


class Given:
    """A classifier that knows the chances by the first input, and learns nothing."""

    classes_ = np.array([0, 1])

    def __init__(self, low: float = 0.5, high: float = 0.9756) -> None:
        self.low, self.high = low, high

    def get_params(self, deep: bool = True) -> dict[str, float]:
        return {"low": self.low, "high": self.high}

    def fit(self, x: np.ndarray, y: np.ndarray) -> Given:
        return self

    def predict_proba(self, x: np.ndarray) -> np.ndarray:
        chance = np.where(x[:, 0] > 1, self.low, self.high)
        return np.stack([1 - chance, chance], axis=1)


def test_the_index_of_known_chances_is_the_mean_distance_of_coverage() -> None:
    x, covered, chance = wrong(2_000, 2, 0)
    found = conditional_validity_index(covered, x, coverage=RIGHT, classifier=Given())
    failing = x[:, 0] > 1
    assert found.value == pytest.approx(np.abs(chance - RIGHT).mean())
    told = found.details
    assert told["share_under"] == pytest.approx(failing.mean())
    assert told["mean_under"] == pytest.approx(0.4)
    assert told["mean_over"] == pytest.approx(0.0756)
    assert told["under"] == pytest.approx(0.4 * failing.mean())
    assert math.isnan(found.null)
    assert math.isnan(found.p)


def test_a_learner_of_the_right_shape_finds_the_distance_and_its_two_parts() -> None:
    x, covered, chance = wrong(4_000, 3, 0)
    found = conditional_validity_index(covered, x, coverage=RIGHT, classifier=leaf(1))
    for name, truth in (("under", RIGHT - chance), ("over", chance - RIGHT)):
        error = float(found.details[f"{name}_standard_error"])
        expected = np.maximum(truth, 0.0).mean()
        assert found.details[name] == pytest.approx(expected, abs=3 * error), name
        assert error < 0.01
    assert found.lower < np.abs(chance - RIGHT).mean() < found.upper
    smoothed = conditional_validity_index(covered, x, coverage=RIGHT)
    assert smoothed.null_upper < smoothed.value < found.value


@given(st.integers(0, 1000))
@examples(20)
def test_the_index_by_hand_with_a_tolerance(seed: int) -> None:
    """Row by row as insurance-conformal 1.3.2 has it; it gave the same on 1,000 such tables."""
    rng = np.random.default_rng(seed)
    low, high, tolerance = rng.uniform(0.3, 0.9), rng.uniform(0.8, 0.99), rng.uniform(0.0, 0.2)
    x, covered = rng.normal(size=(80, 1)), rng.random(80) < 0.85
    found = conditional_validity_index(
        covered, x, coverage=0.85, tolerance=tolerance, classifier=Given(low, high)
    )
    shortfalls, excesses = [], []
    for row in x:
        chance = low if row[0] > 1 else high
        if chance < (1 - tolerance) * 0.85:
            shortfalls.append(0.85 - chance)
        elif chance > (1 + tolerance) * 0.85:
            excesses.append(chance - 0.85)
    under, over = sum(shortfalls) / 80, sum(excesses) / 80
    assert found.details["under"] == pytest.approx(under)
    assert found.details["over"] == pytest.approx(over)
    assert found.value == pytest.approx(under + over)
    assert found.details["share_over"] == pytest.approx(len(excesses) / 80)


def test_corrected_to_first_order_the_index_is_the_absolute_excess_risk() -> None:
    x, covered, _ = wrong(600, 3, 1)
    found = ert(covered, x, coverage=RIGHT)
    h = found.probability
    one_step = np.abs(h - RIGHT) + np.sign(h - RIGHT) * (covered - h)
    assert found.validity.value == pytest.approx(np.abs(h - RIGHT).mean())
    assert found.absolute.value == pytest.approx(one_step.mean())
    own = conditional_validity_index(covered, x, coverage=RIGHT)
    assert (own.value, own.p, own.null) == (
        found.validity.value,
        found.validity.p,
        found.validity.null,
    )
    assert own.details["under"] + own.details["over"] == pytest.approx(own.value)


@pytest.mark.slow
def test_the_index_of_a_right_model_is_its_null_and_errors_are_right() -> None:
    """Where coverage fails the error is that of repeated tables; a right model's is larger."""
    values: dict[bool, list[Any]] = {True: [], False: []}
    for seed in range(80):
        x, covered = right(300, 3, seed)
        values[True].append(conditional_validity_index(covered, x, coverage=RIGHT, replicates=39))
        x, covered, _ = wrong(600, 3, seed)
        values[False].append(conditional_validity_index(covered, x, coverage=RIGHT, replicates=1))
    seen = np.array([found.value for found in values[True]])
    nulls = [found.null for found in values[True]]
    assert seen.mean() == pytest.approx(np.mean(nulls), abs=4 * seen.std() / math.sqrt(80))
    assert np.mean([found.p <= 0.1 for found in values[True]]) <= allowed(80, 0.1)
    for name, error in (("value", "error"), ("under", ""), ("over", "")):
        found = [
            (f.value, f.error) if error else (f.details[name], f.details[f"{name}_standard_error"])
            for f in values[False]
        ]
        estimates, errors = np.transpose(np.array(found, dtype=np.float64))
        assert 0.8 < errors.mean() / estimates.std(ddof=1) < 1.3, name
    errors = np.array([found.error for found in values[True]])
    assert 1.0 < errors.mean() / seen.std(ddof=1) < 1.7


def test_bad_input_to_the_index_is_refused_by_name() -> None:
    x, covered = right(100, 1, 0)
    for wrong_tolerance in (1.0, -0.1, math.nan):
        with pytest.raises(InputError, match=r"tolerance must be in \[0, 1\)"):
            conditional_validity_index(covered, x, coverage=RIGHT, tolerance=wrong_tolerance)
    few = conditional_validity_index(covered[:40], x[:40], coverage=RIGHT)
    assert math.isnan(few.value)
    assert few.reason == "5 folds need at least 50 rows, got 40"


# Local PIT


def test_the_local_pit_finds_where_predictions_fail_and_how() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4_000, 2))
    past = x[:, 0] > 1
    noise = rng.normal(size=4_000)
    faults = {
        "too narrow": noise * np.where(past, 2.5, 1.0),
        "too wide": noise * np.where(past, 0.3, 1.0),
        "too low": noise + 1.5 * past,
        "too high": noise - 1.5 * past,
    }
    from sklearn.tree import DecisionTreeRegressor

    model = DecisionTreeRegressor(max_depth=2, min_samples_leaf=50)
    for fault, z in faults.items():
        found = local_pit(special.ndtr(z), x, regressor=model)
        assert found.fault == fault
        assert found.estimate.p < 1e-6
        assert found.region_p_value < 1e-3
        assert found.region is not None
        edge = re.match(r"(?:x0 > )?([0-9.]+)", found.region.where)
        assert edge is not None, found.region.where
        assert float(edge[1]) > 0.95
        assert found.distance[past].mean() > 5 * found.distance[~past].mean()
        assert (np.diff(found.cdf, axis=1) >= 0).all()


def test_the_value_of_the_local_pit_is_the_mean_squared_distance() -> None:
    """With a regressor that is right, the expectation is the mean of (r − γ)²."""
    rng = np.random.default_rng(0)
    x = (rng.random(20_000) < 0.5).astype(float)[:, None]
    pit = np.where(x[:, 0] == 1, rng.beta(2, 1, 20_000), rng.beta(1, 2, 20_000))
    levels = np.arange(1, 20) / 20
    local = [stats.beta(1, 2).cdf(levels), stats.beta(2, 1).cdf(levels)]
    truth = np.mean([np.square(part - levels).mean() for part in local])
    from sklearn.linear_model import LinearRegression

    found = local_pit(pit, x, regressor=LinearRegression())
    assert found.estimate.value == pytest.approx(truth, abs=4 * found.estimate.error)
    np.testing.assert_allclose(found.cdf[x[:, 0] == 1].mean(axis=0), local[1], atol=0.02)


# Laws: coverage indicators permuted across rows


def _null_slab(covered: np.ndarray, x: np.ndarray, width: np.ndarray) -> float:
    found = worst_slab(covered, x, coverage=RIGHT, directions=20, replicates=1)
    return (found.estimate.value - found.estimate.null) / math.sqrt(
        0.09 / (found.region.n if found.region else 1)
    )


def _null_gap(covered: np.ndarray, x: np.ndarray, width: np.ndarray) -> float:
    found = coverage_gap(covered, np.digitize(x[:, 0], [-1, 0, 1]), coverage=RIGHT, replicates=49)
    return (found.raw.value - found.raw.null) * 20


def _null_hsic(covered: np.ndarray, x: np.ndarray, width: np.ndarray) -> float:
    found = hsic(covered, width, coverage=RIGHT, permutations=1)
    return (found.estimate.value - found.estimate.null) / found.estimate.null


def _null_correlation(covered: np.ndarray, x: np.ndarray, width: np.ndarray) -> float:
    found = width_correlation(covered, width, coverage=RIGHT, permutations=1)
    return found.estimate.value * math.sqrt(len(x))


@pytest.mark.slow
@pytest.mark.parametrize("distance", [_null_slab, _null_gap, _null_hsic, _null_correlation])
def test_permuted_coverage_sits_at_the_null(
    distance: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
) -> None:
    """The count of covered rows varies as a right model's would: the gap's null says so."""
    x, _ = right(500, 3, 0)
    width = np.abs(x[:, 0]) + 0.5
    rng = np.random.default_rng(1)
    counts = rng.binomial(500, 1 - RIGHT, 120)
    found = np.array(
        [distance(rng.permutation(np.arange(500) >= count), x, width) for count in counts]
    )
    assert abs(found.mean()) < 3.5 * found.std() / math.sqrt(len(found))


@pytest.mark.slow
def test_permuted_coverage_and_pit_leave_nothing_to_learn() -> None:
    from sklearn.tree import DecisionTreeRegressor

    x, _ = right(500, 3, 0)
    covered = np.arange(500) >= 50
    pit = (np.arange(500) + 0.5) / 500
    rng = np.random.default_rng(1)
    regressor = DecisionTreeRegressor(max_depth=2, min_samples_leaf=20)
    rejected = []
    for _ in range(100):
        shuffled = rng.permutation(covered)
        found = ert(shuffled, x, coverage=RIGHT, classifier=leaf())
        local = local_pit(rng.permutation(pit), x, regressor=regressor)
        risks = (found.squared, found.absolute, found.log, local.estimate)
        rejected.append([risk.p < 0.05 for risk in risks])
    assert (np.mean(rejected, axis=0) <= 0.11).all()


# What rows claim


def allowed(tables: int, level: float = 0.05) -> float:
    """A rate of this level with three of its standard errors."""
    return level + 3 * math.sqrt(level * (1 - level) / tables)


def counts(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A perfect Poisson law: inputs, coverage, claims, widths of the 90 % interval, and PIT."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    law = stats.poisson(np.exp(1 + 0.8 * x[:, 0]))
    low, high = law.ppf(0.05), law.ppf(0.95)
    y = law.rvs(random_state=rng)
    pit = law.cdf(y - 1) + rng.random(n) * law.pmf(y)
    claimed = law.cdf(high) - law.cdf(low - 1)
    return x, (y >= low) & (y <= high), claimed, high - low, np.clip(pit, 0, 1)


def test_equal_claims_are_one_nominal_coverage() -> None:
    x, covered, _ = wrong(300, 2, 0)
    width, every = np.abs(x[:, 0]) + 0.1, np.full(300, RIGHT)
    site = np.digitize(x[:, 0], [-1, 0, 1])
    few: dict[str, Any] = {"directions": 10, "replicates": 9}

    def tell(coverage: Any) -> list[Any]:
        risks = ert(covered, x, coverage=coverage)
        gap = coverage_gap(covered, site, coverage=coverage, replicates=49)
        return [
            worst_slab(covered, x, coverage=coverage, **few).estimate,
            worst_region(covered, x, coverage=coverage).estimate,
            *(risks.squared, risks.absolute, risks.log, *risks.parts),
            *(gap.raw, gap.debiased, gap.region),
            hsic(covered, width, coverage=coverage, permutations=19).estimate,
            width_correlation(covered, width, coverage=coverage, permutations=19).estimate,
        ]

    assert tell(RIGHT) == tell(every)


def test_claims_are_checked_and_follow_their_rows() -> None:
    x, covered, claimed, width, pit = counts(240, 0)
    site = np.digitize(x[:, 0], [-1, 0, 1])
    order = np.random.default_rng(0).permutation(240)
    for measure in (
        lambda o: worst_slab(covered[o], x[o], coverage=claimed[o], directions=9).estimate,
        lambda o: regions_differ(covered[o], x[o], coverage=claimed[o], pit=pit[o]).estimate,
        lambda o: ert(covered[o], x[o], coverage=claimed[o]).log,
        lambda o: coverage_gap(covered[o], site[o], coverage=claimed[o], replicates=49).debiased,
        lambda o: hsic(covered[o], width[o], coverage=claimed[o], permutations=19).estimate,
        lambda o: width_correlation(covered[o], width[o], coverage=claimed[o]).estimate,
    ):
        first, second = measure(np.arange(240)), measure(order)
        for name in ("value", "null", "null_upper", "p", "lower", "upper", "error"):
            expected = pytest.approx(getattr(first, name), rel=1e-8, abs=1e-10, nan_ok=True)
            assert getattr(second, name) == expected, name
    with pytest.raises(InputError, match=r"coverage must be in \[0, 1\] in every row"):
        ert(covered, x, coverage=claimed + 0.5)
    with pytest.raises(InputError, match="coverage must have 240 rows"):
        worst_region(covered, x, coverage=claimed[1:])


def test_the_gap_of_unequal_claims_by_hand() -> None:
    claimed = np.array([0.9, 0.7, 0.8, 0.95, 0.6, 0.99])
    covered = np.array([1, 0, 1, 1, 1, 0])
    groups = np.array(["a", "a", "a", "b", "b", "b"])
    found = coverage_gap(covered, groups, coverage=claimed, replicates=20_000)
    means = np.array([claimed[:3].mean(), claimed[3:].mean()])
    off = np.array([2 / 3, 2 / 3]) - means
    assert found.raw.value == pytest.approx(np.abs(off).mean())
    noise = np.array([(part * (1 - part)).sum() / 9 for part in (claimed[:3], claimed[3:])])
    assert found.debiased.value == pytest.approx(np.maximum(off**2 - noise, 0).mean())
    outcomes = np.array([[i >> k & 1 for k in range(6)] for i in range(64)])
    chances = np.prod(np.where(outcomes == 1, claimed, 1 - claimed), axis=1)
    gaps = np.abs(outcomes.reshape(64, 2, 3).mean(axis=2) - means).mean(axis=1)
    exact = float(chances @ gaps)
    error = math.sqrt(float(chances @ (gaps - exact) ** 2) / 20_000)
    assert found.raw.null == pytest.approx(exact, abs=4 * error)
    tail = float(chances @ (gaps >= found.raw.value - 1e-12))
    assert found.raw.p == pytest.approx(tail, abs=4 * math.sqrt(tail / 20_000))


def test_the_correlation_of_unequal_claims_is_that_of_what_is_left() -> None:
    _, covered, claimed, width, _ = counts(400, 1)
    found = width_correlation(covered, width, coverage=claimed, permutations=9)
    from scipy.optimize import brentq

    odds = special.logit(claimed)
    step = brentq(lambda a: special.expit(odds + a).mean() - covered.mean(), -5, 5, xtol=1e-14)
    left = covered - special.expit(odds + step)
    assert found.estimate.value == pytest.approx(stats.pearsonr(width, left)[0], rel=1e-8)


@pytest.mark.rate
def test_a_perfect_law_of_counts_passes_every_measure() -> None:
    """Judged by the nominal coverage, ERT and the gap rejected 40 to 85 % of such tables."""
    names = ("squared", "absolute", "log", "gap", "hsic", "correlation", "slab", "region")
    p_values = []
    for seed in range(150):
        x, covered, claimed, width, pit = counts(300, seed)
        site = np.digitize(x[:, 0], [-1, 0, 1])
        risks = ert(covered, x, coverage=claimed)
        gap = coverage_gap(covered, site, coverage=claimed, replicates=199)
        found = (
            *(risks.squared, risks.absolute, risks.log, gap.raw),
            hsic(covered, width, coverage=claimed, permutations=99).estimate,
            width_correlation(covered, width, coverage=claimed, permutations=99).estimate,
            worst_slab(covered, x, coverage=claimed, directions=5, replicates=1).estimate,
            regions_differ(covered, x, coverage=claimed, pit=pit).estimate,
        )
        p_values.append([estimate.p for estimate in found])
    rejected = dict(zip(names, np.mean(np.array(p_values) <= 0.05, axis=0), strict=True))
    assert max(rejected.values()) <= allowed(150), rejected


# Trees that see the inputs alone


def test_the_smoother_averages_rows_of_other_folds() -> None:
    rng = np.random.default_rng(0)
    x, fold = rng.normal(size=(200, 2)), np.arange(200) % 5
    smoother = Smoother(x, fold)
    weights = smoother(np.eye(200)).astype(np.float64)
    assert (weights >= 0).all()
    assert (weights[fold[:, None] == fold] == 0).all()
    sums = weights.sum(axis=1)
    assert (sums < 1 + 1e-5).all()  # less where a leaf has no row of another fold
    assert sums.mean() > 0.9
    values = rng.normal(size=(200, 3))
    np.testing.assert_allclose(smoother(values), weights @ values, atol=1e-5)
    order = rng.permutation(200)
    again = Smoother(x[order], fold[order])(values[order])
    np.testing.assert_allclose(again, smoother(values)[order], atol=1e-5)
    near = np.abs(x[:, None] - x).max(axis=2)
    assert (weights * near).sum() / weights.sum() < 0.7 * near.mean()


def test_the_nulls_of_ert_and_the_local_pit_are_their_closed_forms() -> None:
    """With weights S the squared excess of a right model has the mean −Σ S_ij² p(1−p)/n."""
    x, covered = right(400, 2, 0)
    found = ert(covered, x, coverage=0.5, replicates=2_000)  # where no chance is cut
    local = local_pit(np.random.default_rng(0).random(400), x, levels=[0.3, 0.5, 0.9])
    weights = Smoother(x, np.arange(400) % 5)(np.eye(400)).astype(np.float64)
    square = np.square(weights).sum() / 400  # about: folds follow the content of the rows
    assert found.squared.null == pytest.approx(-square / 4, rel=0.05)
    noise = np.mean([0.21, 0.25, 0.09])
    assert local.estimate.null == pytest.approx(-square * noise, rel=0.2)
    assert local.estimate.null_lower < local.estimate.null < local.estimate.null_upper


@pytest.mark.rate
def test_ert_and_the_local_pit_hold_their_level_and_keep_their_power() -> None:
    rejected, seen = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x, z = rng.normal(size=(300, 3)), rng.normal(size=300)
        risks = ert(np.abs(z) < 1.6449, x, coverage=RIGHT)
        local = local_pit(special.ndtr(z), x)
        found = (risks.squared, risks.absolute, risks.log, local.estimate)
        rejected.append([estimate.p <= 0.05 for estimate in found])
        if seed < 15:
            z = z * np.where(x[:, 2] > 0.5, 2.0, 1.0)
            seen.append(ert(np.abs(z) < 1.6449, x, coverage=RIGHT).squared.p <= 0.05)
    assert (np.mean(rejected, axis=0) <= allowed(100)).all(), np.mean(rejected, axis=0)
    assert np.mean(seen) >= 0.9


# The worst region


def table(
    seed: int, n: int, *, wrong: float = 1.0, shift: float = 0.0, factor: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A normal model whose errors are wider or shifted past .5 of the third input."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    past = x[:, 2] > 0.5
    z = (rng.normal(size=n) * np.where(past, wrong, 1.0) + shift * past) / factor
    return x, np.abs(z) < 1.6449, special.ndtr(z)


@pytest.mark.parametrize("fault", ["none", "everywhere", "counts"])
@pytest.mark.rate
def test_what_is_the_same_everywhere_is_no_region(fault: str) -> None:
    p_values = []
    for seed in range(300):
        if fault == "counts":
            x, covered, claimed, _, pit = counts(300, seed)
        else:
            x, covered, pit = table(seed, 300, factor=0.8 if fault == "everywhere" else 1.0)
            claimed = np.full(300, RIGHT)
        p_values.append(regions_differ(covered, x, coverage=claimed, pit=pit).estimate.p)
    assert np.mean(np.array(p_values) <= 0.05) <= allowed(300)


@pytest.mark.parametrize(
    ("known", "signal", "power"),
    [({"wrong": 2.0}, {"coverage", "spread"}, 0.95), ({"shift": 0.7}, {"bias"}, 0.9)],
)
def test_a_fault_in_one_place_is_found_there(
    known: dict[str, float], signal: set[str], power: float
) -> None:
    found = []
    for seed in range(40):
        x, covered, pit = table(seed, 1_000, **known)
        found.append(regions_differ(covered, x, coverage=RIGHT, pit=pit).estimate)
    assert np.mean([each.p <= 0.05 for each in found]) >= power
    assert np.mean([each.details["signal"] in signal for each in found]) >= power
    assert np.mean(["x2" in str(each.details["where"]) for each in found]) >= power
    assert all(str(each.details["where"]).count(",") <= 1 for each in found)


def test_the_worst_region_is_judged_by_rows_that_did_not_choose_it() -> None:
    x, covered, pit = table(0, 1_000, wrong=2.5)
    found = worst_region(covered, x, coverage=RIGHT)
    assert found.region is not None
    edge = re.fullmatch(r"x2 > ([0-9.]+)", found.region.where)
    assert edge is not None
    inside = x[:, 2] > float(edge[1])
    assert found.estimate.n < 0.6 * inside.sum()
    interval = stats.binomtest(
        round(found.estimate.value * found.estimate.n), int(found.estimate.n)
    ).proportion_ci(0.975, method="exact")  # for the regions of both halves
    assert (found.estimate.lower, found.estimate.upper) == pytest.approx(
        (interval.low, interval.high)
    )
    assert found.estimate.null == RIGHT
    assert found.estimate.value == pytest.approx(covered[inside].mean(), abs=0.06)
    assert found.estimate.details["share"] == pytest.approx(found.estimate.n / 500)
    few = worst_region(covered[:18], x[:18], coverage=RIGHT)
    assert "10 rows in each half" in few.estimate.reason
    flat = worst_region(covered, np.ones((1_000, 2)), coverage=RIGHT)
    assert flat.estimate.reason == "no input varies"
    with pytest.raises(InputError, match="pit must have 1000 rows"):
        regions_differ(covered, x, coverage=RIGHT, pit=pit[1:])
    every = worst_region(np.ones(1_000), x, coverage=RIGHT).estimate
    assert (every.value, every.details["where"], every.n) == (1.0, "all rows", 500)


@pytest.mark.parametrize("over", [0.985, 0.999])
def test_the_worst_region_is_the_lowest_even_where_another_differs_more(over: float) -> None:
    """Six tenths of the rows are covered too seldom, the rest, which stands out, too often."""
    rng = np.random.default_rng(3)
    x = rng.random((4_000, 1))
    covered = rng.random(4_000) < np.where(x[:, 0] > 0.4, 0.843, over)
    worst = worst_region(covered, x, coverage=RIGHT, names=["age"])
    assert worst.region is not None
    assert re.match(r"age > 0\.40|0\.40\d* < age", worst.region.where)
    assert worst.estimate.upper < 0.88  # so that a limit of .88 is broken
    assert worst.estimate.lower < 0.843 < worst.estimate.upper
    test = regions_differ(covered, x, coverage=RIGHT, names=["age"])
    assert test.region is not None
    assert test.region.empirical_coverage > 0.97  # it differs most
    assert test.estimate.details["where"] == worst.region.where  # and is not what is told


def test_the_worst_region_pays_for_being_chosen() -> None:
    """Brute force: the trees of both halves, each judged by hand on the other half."""
    x, covered, _ = table(1, 600)
    found = worst_region(covered, x, coverage=RIGHT).estimate
    order = content_order(0, covered.astype(np.float64), x)
    sides = []
    for learn, judge in ((order[:300], order[300:]), (order[300:], order[:300])):
        tree = DecisionTreeRegressor(max_depth=2, min_samples_leaf=15, random_state=0)
        tree.fit(x[learn], covered[learn] - RIGHT)
        nodes = [
            tree.decision_path(x[rows]).toarray()[:, 1:].astype(bool) for rows in (learn, judge)
        ]
        ends = [
            stats.beta.ppf(
                0.99995, covered[learn][inside].sum() + 1, (~covered[learn][inside]).sum()
            )
            for inside in nodes[0].T
        ]
        inside = nodes[1][:, int(np.nanargmin(ends))]
        hits, n = covered[judge][inside].sum(), inside.sum()
        sides.append((stats.beta.ppf(0.9875, hits + 1, n - hits), hits, n))
    upper, hits, n = min(sides)
    assert found.upper == pytest.approx(upper, rel=1e-9)
    assert found.value == pytest.approx(hits / n)
    assert found.p == pytest.approx(min(1.0, 2 * stats.binom.cdf(hits, n, RIGHT)), rel=1e-9)


# Bad input


def test_what_cannot_be_answered_is_nan_with_a_reason() -> None:
    x, covered = right(60, 2, 0)
    few = worst_slab(covered, x, coverage=RIGHT)
    assert "at least 100 rows, got 60" in few.estimate.reason
    x, covered = right(200, 2, 0)
    flat = np.ones((200, 2))
    cases = {
        "few": few.estimate.value,
        "no input varies": worst_slab(covered, flat, coverage=RIGHT).estimate.value,
    }
    for measure in (ert, local_pit):
        start = covered if measure is ert else np.linspace(0, 1, 200)
        options: dict[str, Any] = {"coverage": RIGHT}
        part = "squared" if measure is ert else "estimate"
        found = getattr(measure(start, flat, **options), part)
        assert "no input varies" in found.reason
        cases[str(measure)] = found.value
        small = getattr(measure(start[:20], x[:20], **options), part)
        assert "at least 50 rows, got 20" in small.reason
        cases[f"{measure} small"] = small.value
    for measure in (hsic, width_correlation):
        for hits, widths, reason in (
            (covered, np.full(200, 0.3), "all widths are equal"),
            (np.ones(200), x[:, 0] ** 2, "every row is covered"),
            (np.zeros(200), x[:, 0] ** 2, "no row is covered"),
            (covered, np.where(covered, np.inf, 1.0), "some intervals are unbounded"),
        ):
            got = measure(hits, widths, coverage=RIGHT).estimate
            assert got.reason == reason
            cases[f"{measure} {reason}"] = got.value
    single = coverage_gap(covered, ["a"] * 200, coverage=RIGHT).raw
    assert "one group" in single.reason
    cases["one group"] = single.value
    assert all(math.isnan(value) for value in cases.values()), cases


def test_constant_inputs_are_left_out_of_slabs() -> None:
    x, covered, _ = wrong(600, 2, 0)
    with_constant = np.column_stack([np.full(600, 7.0), x])
    found = worst_slab(covered, with_constant, coverage=RIGHT, directions=50, replicates=9)
    assert found.slab is not None
    assert found.slab.direction[0] == 0.0
    assert found.estimate.value < 0.75


def test_when_every_row_is_covered_no_slab_is_worse() -> None:
    x, _ = right(300, 2, 0)
    found = worst_slab(np.ones(300), x, coverage=RIGHT, directions=10, replicates=9)
    assert (found.estimate.value, found.estimate.error, found.estimate.p) == (1.0, 0.0, 1.0)
    assert "every searched row is covered" in found.estimate.reason


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda c, x: worst_slab(c, x, coverage=90), "coverage must be strictly"),
        (lambda c, x: worst_slab(c, x, coverage=0.9, share=0), "share must be strictly"),
        (lambda c, x: worst_slab(c, x, coverage=0.9, directions=0), "directions must be"),
        (lambda c, x: worst_slab(c, x[:-1], coverage=0.9), "x must have 200 rows"),
        (lambda c, x: worst_slab(c, x * np.nan, coverage=0.9), "x must contain finite"),
        (lambda c, x: worst_slab(c + 1.5, x, coverage=0.9), "covered must be true or false"),
        (lambda c, x: worst_slab(c, x, coverage=0.9, names=["a"]), "names needs 2"),
        (lambda c, x: ert(c, x, coverage=0.9, folds=1), "folds must be"),
        (lambda c, x: ert(c, x, coverage=0.9, replicates=-1), "replicates must be"),
        (lambda c, x: ert(c, x, coverage=0.9, classifier="forest"), "fit and predict_proba"),
        (lambda c, x: excess_risk(c, np.ones(200) * 1.1, 0.9), "chance must be in"),
        (lambda c, x: excess_risk(c, np.ones(200), 0.9, "log"), "chance must be in"),
        (lambda c, x: excess_risk(c, np.ones(200), 0.9, "cubic"), "loss must be one of"),
        (lambda c, x: hsic(c, -np.ones(200), coverage=0.9), "width must not be negative"),
        (lambda c, x: hsic(c, np.full(200, np.nan), coverage=0.9), "width must contain no missing"),
        (lambda c, x: hsic(c, x[:, 0] ** 2, coverage=0.9, permutations=0), "permutations must be"),
        (lambda c, x: coverage_gap(c, ["a"], coverage=0.9), "groups must have 200 rows"),
        (lambda c, x: coverage_gap(c, c, coverage=0.9, replicates=0), "replicates must be"),
        (lambda c, x: local_pit(c * 2.0, x), "pit"),
        (lambda c, x: local_pit(c, x, levels=[0.5, 0.4]), "levels must increase"),
        (lambda c, x: local_pit(c, x, regressor="forest"), "fit and predict"),
    ],
)
def test_bad_input_is_refused(call: Callable[..., object], match: str) -> None:
    x, covered = right(200, 2, 0)
    with pytest.raises(InputError, match=match):
        call(covered * 1.0, x)
