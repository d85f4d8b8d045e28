"""Laws that every method of recalibration obeys, whatever the prediction."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Probabilities,
    Quantiles,
    Samples,
)
from howsure.recalibration import RecalibrationMethod, recalibrate
from howsure.recalibration.affine import Shift, ShiftScale, ShiftScaledIntervals, Widths
from howsure.recalibration.conformal import ConformalIntervals, ConformalQuantiles
from howsure.recalibration.info import KINDS
from howsure.recalibration.scaling import QuantileScaling, SpreadScaling, VarianceScaling
from howsure.recalibration.shape import Crude, Isotonic, Shape
from howsure.recalibration.variance import IsotonicVariance

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Case:
    """A method, and rows that it can learn from: draws at a location and a unit of y."""

    method: RecalibrationMethod
    rows: Callable[[np.random.Generator, int, float, float], EvalSet]


def interval_rows(rng: np.random.Generator, n: int, at: float, unit: float) -> EvalSet:
    center, wide = rng.normal(size=n), rng.uniform(0.3, 2.0, n)
    y = center + wide * rng.normal(size=n)
    lower = np.stack([center - 0.5 * wide, center - wide], axis=1)
    upper = np.stack([center + 0.4 * wide, center + 1.5 * wide], axis=1)
    prediction = Intervals(at + unit * lower, at + unit * upper, [0.5, 0.9])
    return EvalSet.checked(at + unit * y, prediction, point=at + unit * center)


def point_rows(rng: np.random.Generator, n: int, at: float, unit: float) -> EvalSet:
    center = rng.normal(size=n)
    return EvalSet.checked(at + unit * rng.normal(center), point=at + unit * center)


def normal_rows(rng: np.random.Generator, n: int, at: float, unit: float) -> EvalSet:
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    y = mean + 0.3 + sd * rng.standard_t(4, size=n)
    return EvalSet.checked(at + unit * y, Distribution.normal(at + unit * mean, unit * sd))


def laplace_rows(rng: np.random.Generator, n: int, at: float, unit: float) -> EvalSet:
    mean, scale = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    prediction = Distribution("laplace", {"loc": at + unit * mean, "scale": unit * scale})
    return EvalSet.checked(at + unit * rng.normal(mean, scale), prediction)


def quantile_rows(rng: np.random.Generator, n: int, at: float, unit: float) -> EvalSet:
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    table = mean[:, None] + sd[:, None] * np.sort(rng.normal(size=len(LEVELS)))
    y = mean + sd * rng.normal(size=n)
    return EvalSet.checked(at + unit * y, Quantiles(LEVELS, at + unit * table))


def sample_rows(rng: np.random.Generator, n: int, at: float, unit: float) -> EvalSet:
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    draws = mean[:, None] + sd[:, None] * rng.normal(size=(n, 19))
    y = mean + 1.4 * sd * rng.normal(size=n)
    return EvalSet.checked(at + unit * y, Samples(at + unit * draws))


CASES = {
    "cqr": Case(ConformalIntervals("cqr"), interval_rows),
    "cqr moved": Case(ConformalIntervals("cqr", coverage=0.8), interval_rows),
    "cqr paper": Case(ConformalIntervals("cqr", rank="paper"), interval_rows),
    "asymmetric": Case(ConformalIntervals("asymmetric"), interval_rows),
    "scale": Case(ConformalIntervals("scale"), interval_rows),
    "split": Case(ConformalIntervals("split", "point", 0.9), point_rows),
    "split asymmetric": Case(ConformalIntervals("asymmetric", "point", 0.9), point_rows),
    "variance scaling": Case(VarianceScaling(), normal_rows),
    "variance scaling laplace": Case(VarianceScaling(), laplace_rows),
    "crude": Case(Crude(levels=LEVELS), normal_rows),
    "crude unshifted": Case(Crude(levels=LEVELS, shift=False), laplace_rows),
    "crude samples": Case(Crude("samples", LEVELS), sample_rows),
    "isotonic": Case(Isotonic(levels=LEVELS), normal_rows),
    "isotonic laplace": Case(Isotonic(levels=LEVELS), laplace_rows),
    "isotonic samples": Case(Isotonic("samples", (0.25, 0.5, 0.75)), sample_rows),
    "conformal": Case(ConformalQuantiles(), quantile_rows),
    "spread": Case(SpreadScaling(), sample_rows),
    "shift": Case(Shift(), normal_rows),
    "shift samples": Case(Shift("samples"), sample_rows),
    "shift quantiles": Case(Shift("quantiles"), quantile_rows),
    "shift intervals": Case(Shift("intervals"), interval_rows),
    "scale quantiles": Case(QuantileScaling(), quantile_rows),
    "shift and scale": Case(ShiftScale(), laplace_rows),
    "shift and scale samples": Case(ShiftScale("samples"), sample_rows),
    "shift and scale quantiles": Case(ShiftScale("quantiles"), quantile_rows),
    "shift and scale intervals": Case(ShiftScaledIntervals(), interval_rows),
    "widths": Case(Widths(), normal_rows),
    "widths samples": Case(Widths("samples"), sample_rows),
    "widths quantiles": Case(Widths("quantiles"), quantile_rows),
    "widths intervals": Case(Widths("intervals"), interval_rows),
    "isotonic variance": Case(IsotonicVariance(), normal_rows),
    "isotonic variance samples": Case(IsotonicVariance("samples"), sample_rows),
    "shape": Case(Shape(), normal_rows),
    "shape samples": Case(Shape("samples"), sample_rows),
    "shape quantiles": Case(Shape("quantiles"), quantile_rows),
}


@pytest.fixture(params=CASES, ids=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def numbers(prediction: Prediction) -> np.ndarray:
    """All that a prediction says, as one table."""
    if isinstance(prediction, Intervals):
        return np.hstack([prediction.lower, prediction.upper])
    if isinstance(prediction, Quantiles):
        return prediction.values
    if isinstance(prediction, Samples):
        return prediction.sorted_samples
    return prediction.quantile(LEVELS)


def drawn(case: Case, name: str, n: int, at: float = 0.0, unit: float = 1.0) -> EvalSet:
    return case.rows(child(0, "recalibration", name), n, at, unit)


def test_order_of_calibration_rows_changes_nothing(case: Case) -> None:
    held_out, test = drawn(case, "order", 101), drawn(case, "test", 30)
    shuffled = held_out.take(child(0, "shuffle").permutation(101))
    one = case.method.fit(held_out).apply(test).predictions[0]
    other = case.method.fit(shuffled).apply(test).predictions[0]
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-12, atol=1e-13)


def test_test_rows_are_mended_one_by_one_without_their_y(case: Case) -> None:
    fitted = case.method.fit(drawn(case, "rows", 101))
    test = drawn(case, "test", 30)
    blind = replace(test, y=np.full(30, np.nan))
    whole = numbers(fitted.apply(blind).predictions[0])
    rows = np.array([7, 3, 3])
    some = numbers(fitted.apply(test.take(rows)).predictions[0])
    np.testing.assert_array_equal(some, whole[rows])


def test_a_frequency_weight_is_a_repetition(case: Case) -> None:
    held_out, test = drawn(case, "weights", 60), drawn(case, "test", 30)
    counts = child(0, "counts").integers(0, 4, 60)
    weighted = EvalSet.checked(
        held_out.y, held_out.predictions, point=held_out.point, weights=counts.astype(float)
    )
    repeated = held_out.take(np.repeat(np.arange(60), counts))
    one, other = case.method.fit(weighted), case.method.fit(repeated)
    np.testing.assert_allclose(
        numbers(one.apply(test).predictions[0]),
        numbers(other.apply(test).predictions[0]),
        rtol=1e-12,
    )
    for mine, theirs in zip(one.parameters, other.parameters, strict=True):
        assert (mine.name, mine.nominal, mine.n) == (theirs.name, theirs.nominal, theirs.n)
        for number in ("value", "standard_error", "rank", "expected", "lower", "upper"):
            assert getattr(mine, number) == pytest.approx(getattr(theirs, number), nan_ok=True)
    assert one.guarantee == other.guarantee


@pytest.mark.parametrize(("at", "unit"), [(1000.0, 1.0), (0.0, 37.0), (-5.0, 0.01)])
def test_units_and_origin_of_y_are_free(case: Case, at: float, unit: float) -> None:
    plain = case.method.fit(drawn(case, "units", 101)).apply(drawn(case, "test", 30))
    moved = case.method.fit(drawn(case, "units", 101, at, unit)).apply(
        drawn(case, "test", 30, at, unit)
    )
    np.testing.assert_allclose(
        numbers(moved.predictions[0]),
        at + unit * numbers(plain.predictions[0]),
        rtol=1e-9,
        atol=1e-9 * unit,
    )


def test_nothing_but_the_prediction_changes(case: Case) -> None:
    test = replace(drawn(case, "test", 30), model="mine", time=np.arange(30))
    mended = case.method.fit(drawn(case, "fit", 101)).apply(test)
    assert mended.y is test.y
    assert mended.point is test.point
    assert mended.time is test.time
    assert mended.model == "mine"


def test_a_fitted_method_can_be_stored(case: Case) -> None:
    fitted, test = case.method.fit(drawn(case, "store", 101)), drawn(case, "test", 30)
    stored = pickle.loads(pickle.dumps(fitted))
    assert repr(stored) == repr(fitted)
    np.testing.assert_array_equal(
        numbers(stored.apply(test).predictions[0]), numbers(fitted.apply(test).predictions[0])
    )


def test_importance_weights_are_marked_as_approximate(case: Case) -> None:
    held_out = drawn(case, "importance", 101)
    even = EvalSet.checked(
        held_out.y,
        held_out.predictions,
        point=held_out.point,
        weights=np.full(101, 0.37),
        weights_kind="importance",
    )
    one, plain = case.method.fit(even), case.method.fit(held_out)
    assert "Importance weights" in one.notes[0]
    assert "no finite-sample guarantee" in one.guarantee.lower()
    assert all(np.isnan(learnt.expected) for learnt in one.parameters)
    values = [learnt.value for learnt in plain.parameters]
    assert [learnt.value for learnt in one.parameters] == pytest.approx(values)


def test_clusters_weaken_the_guarantee(case: Case) -> None:
    held_out = drawn(case, "cluster", 101)
    clustered = EvalSet.checked(
        held_out.y, held_out.predictions, point=held_out.point, cluster=np.arange(101) // 5
    )
    assert "clusters" in case.method.fit(clustered).notes[0]


# What a fresh row's chance is, for every method with a finite-sample guarantee.

GUARANTEED = {
    "cqr": lambda rows, prediction: _covered(rows, prediction, 0.9),
    "cqr moved": lambda rows, prediction: _covered(rows, prediction, 0.8),
    "cqr paper": lambda rows, prediction: _covered(rows, prediction, 0.9),
    "scale": lambda rows, prediction: _covered(rows, prediction, 0.9),
    "split": lambda rows, prediction: _covered(rows, prediction, 0.9),
    "crude unshifted": lambda rows, prediction: rows.y <= prediction.values[:, 3],
    "isotonic": lambda rows, prediction: rows.y <= prediction.values[:, 3],
    "isotonic laplace": lambda rows, prediction: rows.y <= prediction.values[:, 1],
    "conformal": lambda rows, prediction: rows.y <= prediction.values[:, 3],
}


def _covered(rows: EvalSet, prediction: Any, coverage: float) -> np.ndarray:
    lower, upper = prediction.interval(coverage)
    return (lower <= rows.y) & (rows.y <= upper)


@pytest.mark.slow
@pytest.mark.parametrize("name", GUARANTEED)
def test_coverage_of_fresh_rows_follows_its_exact_law(name: str) -> None:
    case, hit = CASES[name], GUARANTEED[name]
    n, m, repeats = 24, 25, 800
    nominal = {"cqr moved": 0.8, "isotonic laplace": 0.25}.get(
        name, 0.75 if name in ("crude unshifted", "isotonic", "conformal") else 0.9
    )
    counts = np.empty(repeats, dtype=int)
    for trial in range(repeats):
        rows = case.rows(child(5, "exact law", name, trial), n + m, 0.0, 1.0)
        fitted = case.method.fit(rows.take(np.arange(n)))
        fresh = rows.take(np.arange(n, n + m))
        counts[trial] = hit(fresh, fitted.apply(fresh).predictions[0]).sum()
    learnt = next(one for one in fitted.parameters if one.nominal == nominal)
    rank = int(learnt.rank)
    assert learnt.expected == pytest.approx(rank / (n + 1))
    law = stats.betabinom(m, rank, n + 1 - rank)
    share = law.std() / m / np.sqrt(repeats)
    assert counts.mean() / m == pytest.approx(learnt.expected, abs=3.3 * share)
    seen = np.bincount(counts, minlength=m + 1).cumsum() / repeats
    distance = np.abs(seen - law.cdf(np.arange(m + 1))).max()
    assert distance < 1.63 / np.sqrt(repeats)  # Kolmogorov's 1 % point, conservative on atoms


@pytest.mark.slow
def test_two_sided_offsets_miss_equally_often() -> None:
    n, m, repeats = 39, 40, 800
    case = CASES["asymmetric"]
    misses = np.zeros(2)
    for trial in range(repeats):
        rows = case.rows(child(6, "two sides", trial), n + m, 0.0, 1.0)
        fitted = case.method.fit(rows.take(np.arange(n)))
        fresh = rows.take(np.arange(n, n + m))
        lower, upper = fitted.apply(fresh).predictions[0].interval(0.9)
        misses += (fresh.y < lower).sum(), (fresh.y > upper).sum()
    share = misses / (repeats * m)
    error = np.sqrt(0.05 * 0.95 / repeats * (1 / m + 1 / (n + 2)))
    assert share == pytest.approx(0.05, abs=3.3 * error)
    assert fitted.parameters[-1].expected == pytest.approx(0.9)


# The call that does it all.


def set_rows(rng: np.random.Generator, n: int, shift: float, scale: float) -> EvalSet:
    stated = rng.dirichlet(np.full(3, scale), size=n)
    y = rng.integers(3, size=n) + shift
    return EvalSet.checked(y, LabelSets(stated > 0.3, 0.9, stated))


def class_rows(rng: np.random.Generator, n: int, shift: float, scale: float) -> EvalSet:
    return EvalSet.checked(
        rng.integers(3, size=n) + shift, Probabilities(rng.dirichlet(np.full(3, scale), size=n))
    )


def test_defaults_for_each_kind() -> None:
    rng = child(7, "defaults")
    kinds = {
        "intervals": ("cqr", interval_rows),
        "point": ("split", point_rows),
        "distributions": ("scale", normal_rows),
        "quantiles": ("conformal", quantile_rows),
        "samples": ("scale", sample_rows),
        "label sets": ("lac", set_rows),
        "class probabilities": ("platt", class_rows),
    }
    assert set(kinds) == set(KINDS)
    for kind, (name, rows) in kinds.items():
        test, held_out = rows(rng, 20, 0.0, 1.0), rows(rng, 99, 0.0, 1.0)
        coverage = 0.9 if kind == "point" else None
        assert recalibrate(test, held_out, coverage=coverage).methods == {kind: name}


def test_laws_that_are_not_normal_are_mended_by_pit() -> None:
    rng = child(7, "laplace")
    test, held_out = laplace_rows(rng, 20, 0.0, 1.0), laplace_rows(rng, 200, 0.0, 1.0)
    assert recalibrate(test, held_out).methods == {"distributions": "isotonic"}
    scaled = recalibrate(test, held_out, method="scale")
    assert scaled.methods == {"distributions": "scale"}
    assert scaled.evalset.predictions[0].kind == "distributions"


def both_rows(rng: np.random.Generator, n: int) -> EvalSet:
    one, other = interval_rows(rng, n, 0.0, 1.0), normal_rows(rng, n, 0.0, 1.0)
    return EvalSet.checked(
        one.y, (*one.predictions, *other.predictions), groups={"site": ["a"] * n}
    )


def test_several_predictions_are_mended_together() -> None:
    rng = child(8, "several")
    test, held_out = both_rows(rng, 20), both_rows(rng, 99)
    result = recalibrate(test, held_out, method="crude")
    assert result.methods == {"intervals": "cqr", "distributions": "crude"}
    assert [prediction.kind for prediction in result.evalset.predictions] == [
        "intervals",
        "quantiles",
    ]
    assert any("'crude' does not apply to intervals" in note for note in result.notes)
    assert result.evalset.groups == test.groups
    alone = CASES["cqr"].method.fit(held_out).apply(test).predictions
    np.testing.assert_array_equal(numbers(result.evalset.predictions[0]), numbers(alone[-1]))


def test_given_quantiles_go_before_those_made_of_a_law() -> None:
    rng = child(8, "clash")

    def rows(n: int) -> EvalSet:
        one, other = quantile_rows(rng, n, 0.0, 1.0), normal_rows(rng, n, 0.0, 1.0)
        return EvalSet.checked(one.y, (*other.predictions, *one.predictions))

    test, held_out = rows(20), rows(99)
    result = recalibrate(test, held_out, method="isotonic")
    assert [prediction.kind for prediction in result.evalset.predictions] == ["quantiles"]
    assert any("were omitted" in note for note in result.notes)
    shifted = ConformalQuantiles().fit(held_out).transform(test)[0]
    np.testing.assert_array_equal(numbers(result.evalset.predictions[0]), numbers(shifted))


def test_table_and_words_carry_the_guarantee() -> None:
    rng = child(9, "table")
    test, held_out = interval_rows(rng, 20, 0.0, 1.0), interval_rows(rng, 2000, 0.0, 1.0)
    result = recalibrate(test, held_out, rank="paper")
    table = result.table()
    assert table.columns["nominal"].tolist() == [0.5, 0.9]
    assert table.columns["rank"].tolist() == [1001, 1801]
    assert table.columns["expected"][1] == pytest.approx(1801 / 2001)
    law = stats.beta(1801, 200)
    assert table.columns["lower"][1] == pytest.approx(law.ppf(0.025))
    assert table.columns["upper"][1] == pytest.approx(law.ppf(0.975))
    assert "2000 calibration rows" in result.guarantees["intervals"]
    assert "0.90005" in result.guarantees["intervals"]
    assert table.notes == result.guarantees["intervals"]


def test_an_unused_coverage_is_noted() -> None:
    rng = child(9, "unused")
    rows = normal_rows(rng, 99, 0.0, 1.0)
    assert any("not used" in note for note in recalibrate(rows, rows, coverage=0.9).notes)


@pytest.mark.parametrize(
    ("test", "held_out", "options", "words"),
    [
        ("interval", "normal", {}, "missing: intervals"),
        ("point", "normal", {"coverage": 0.9}, "missing: point"),
        ("interval", "interval", {"method": "crude"}, "intervals: cqr, asymmetric, scale"),
        ("normal", "normal", {"method": "magic"}, "'magic'"),
        ("point", "point", {}, "coverage must be given"),
        ("point", "point", {"coverage": 95}, "strictly between 0 and 1"),
        (
            "normal",
            "laplace",
            {},
            "distributions of the family 'laplace'.*got distributions of the family 'norm'",
        ),
        ("normal", "normal", {"method": "isotonic", "levels": [0.5, 0.1]}, "increase strictly"),
        ("interval", "interval", {"too_few": "cut"}, "too_few"),
        ("interval", "interval", {"rank": "numpy"}, "rank"),
        ("quantile", "quantile", {"too_few": "cut"}, "too_few"),
    ],
)
def test_bad_input_is_named(test: str, held_out: str, options: dict[str, Any], words: str) -> None:
    makers = {
        "interval": interval_rows,
        "point": point_rows,
        "normal": normal_rows,
        "laplace": laplace_rows,
        "quantile": quantile_rows,
    }
    rng = child(10, "bad")
    with pytest.raises(InputError, match=words):
        recalibrate(makers[test](rng, 20, 0.0, 1.0), makers[held_out](rng, 99, 0.0, 1.0), **options)


def test_label_sets_are_refused() -> None:
    sets = EvalSet.checked([0.0, 1.0], LabelSets([[True, False], [True, True]], 0.9))
    with pytest.raises(InputError, match="label sets"):
        recalibrate(sets, sets)


def test_one_calibration_row_never_gives_a_plausible_answer() -> None:
    rng = child(11, "one row")
    one = interval_rows(rng, 1, 0.0, 1.0)
    lower, upper = recalibrate(one, one).evalset.predictions[0].interval(0.9)
    assert (lower[0], upper[0]) == (-np.inf, np.inf)
    assert "infinite, so they cover" in recalibrate(one, one).guarantees["intervals"]
    with pytest.raises(InputError, match="needs 9; got 1"):
        ConformalIntervals(coverage=0.9, too_few="error").fit(one)
    with pytest.raises(InputError, match="at least 2 rows"):
        recalibrate(normal_rows(rng, 1, 0.0, 1.0), normal_rows(rng, 1, 0.0, 1.0))
    result = recalibrate(quantile_rows(rng, 5, 0.0, 1.0), quantile_rows(rng, 1, 0.0, 1.0))
    assert result.evalset.predictions[0].levels.tolist() == [0.5]
    assert any("0.05, 0.25, 0.75, 0.95 need more than 1 calibration" in n for n in result.notes)
