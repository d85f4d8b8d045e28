"""Recalibration around any method, and every way to recalibrate through every metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

import howsure
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.engine.catalogue import catalogue
from howsure.engine.measure import evaluate
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
    mixture,
)
from howsure.recalibration import compare_recalibrations, methods_of, recalibrate
from howsure.recalibration.intervals_from_distributions import DerivedIntervals
from howsure.recalibration.levels import levels_with
from howsure.recalibration.scaling import SpreadScaling, VarianceScaling
from howsure.verdict import Trials
from howsure_studies.engine import make_method, method_identity
from howsure_studies.methods.catalogue import method_named, method_spec
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import BayesianRidge, LinearT
from howsure_studies.methods.recalibrated import RecalibratedMethod
from howsure_studies.pointwise.command import method_entries

COVERAGES = (0.5, 0.9)
AFFINE = ("shift_scale", "widths", "isotonic_variance", "inputs")
CONFORMAL = ("cqr", "asymmetric", "ucc")
WAYS = {
    "normal": ("scale", *AFFINE, "shape", "isotonic", "crude", *CONFORMAL),
    "mixture": ("scale", *AFFINE, "shape", "isotonic", "crude", *CONFORMAL),
    "poisson": ("shape", "isotonic", "crude", *CONFORMAL),
    "samples": ("scale", *AFFINE, "shape", "crude", *CONFORMAL),
    "quantiles": ("conformal", "scale", "shift_scale", "widths", "inputs", "shape", *CONFORMAL),
    "intervals": ("scale", "shift_scale", "widths", "inputs", *CONFORMAL),
}
PAIRS = [(kind, by) for kind, ways in WAYS.items() for by in (*ways, "best")]
BREADTH = 0.5  # what is believed is half as wide as it should be


def believed(kind: str, center: np.ndarray, breadth: float = BREADTH) -> Prediction:
    """N(center, ½) where the truth is N(center, 1), as a prediction of a kind."""
    law = Distribution.normal(center, breadth)
    if kind == "mixture":
        return mixture([law, Distribution.normal(center + 0.1, breadth)])
    if kind == "poisson":
        return Distribution("poisson", {"mu": np.exp(center)})
    if kind == "samples":
        return Samples(law.sample(child(1, "samples"), 40))
    if kind == "quantiles":
        levels = np.arange(1, 40) / 40
        return Quantiles(levels, law.quantile(levels))
    if kind == "intervals":
        ends = [law.interval(coverage) for coverage in COVERAGES]
        lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
        return Intervals(lower, upper, COVERAGES)
    return law


@final
@dataclass(frozen=True, slots=True)
class Oracle(Method, Fitted):
    """Knows the mean, x, and is too sure of itself."""

    kind: str
    breadth: float = BREADTH

    @property
    def name(self) -> str:
        return "oracle"

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        return COVERAGES if self.kind == "intervals" else None

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
        return self

    def predict(self, x: Any) -> Predictions:
        center = np.asarray(x)[:, 0]
        return Predictions(
            believed(self.kind, center, self.breadth), Distribution.normal(center, 0.1)
        )


def drawn(kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = child(seed, "drawn")
    x = rng.uniform(1.0, 3.0, size=(n, 1))
    if kind == "poisson":  # over-dispersed: variance twice the mean
        mean = np.exp(x[:, 0])
        return x, rng.poisson(rng.gamma(mean, 1.0)).astype(float)
    return x, x[:, 0] + rng.normal(size=n)


def covered(prediction: Prediction, y: np.ndarray, coverage: float) -> float:
    lower, upper = prediction.interval(coverage)
    return float(((y >= lower) & (y <= upper)).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "by"), PAIRS)
def test_every_prediction_is_mended_in_every_way_that_suits_it(kind: str, by: str) -> None:
    """1,500 rows to learn from and 20,000 to see: standard errors of 0.008 and 0.002."""
    inner = Oracle(kind)
    method = RecalibratedMethod(inner=inner, method=by, calibration=1500, coverages=COVERAGES)
    fitted = method.fit(*drawn(kind, 1504, 0), np.random.default_rng(0))
    x, y = drawn(kind, 20_000, 1)
    predictions = fitted.predict(x)
    assert predictions.mean is not None
    np.testing.assert_array_equal(predictions.mean.point(), x[:, 0])
    before = Oracle(kind).predict(x).outcome
    for coverage in COVERAGES:
        if kind == "poisson":  # intervals of counts cover more than they say
            assert covered(before, y, coverage) < coverage - 0.03
            assert coverage - 0.03 < covered(predictions.outcome, y, coverage) < coverage + 0.15
        else:
            assert covered(before, y, coverage) < coverage - 0.1
            assert covered(predictions.outcome, y, coverage) == pytest.approx(coverage, abs=0.03)


def loud(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise of sd 1, and of 2 where the second column of x is 1; a third column means nothing."""
    rng = child(seed, "loud")
    x = np.column_stack([rng.uniform(size=n), *rng.integers(0, 2, size=(2, n))])
    return x, x[:, 0] + (1.0 + x[:, 1]) * rng.normal(size=n), x[:, 1] == 1.0


def test_inputs_and_groups_restore_coverage_in_each_half() -> None:
    """By hand: one factor gives every row the sd √2.5, whatever its half needs."""
    x, y, where = loud(20_000, 1)
    halves = (~where, where)

    def at_90(method: str, **options: Any) -> list[float]:
        way = RecalibratedMethod(inner=Oracle("normal"), method=method, calibration=4000, **options)
        fitted = way.fit(*loud(4004, 0)[:2], np.random.default_rng(0))
        lower, upper = fitted.predict(x).outcome.interval(0.9)
        return [float(((y >= lower) & (y <= upper))[half].mean()) for half in halves]

    reach = math.sqrt(2.5) * stats.norm.ppf(0.95)
    told = [2.0 * stats.norm.cdf(reach / sd) - 1.0 for sd in (1.0, 2.0)]
    assert at_90("scale") == pytest.approx(told, abs=0.015)
    assert told == pytest.approx([0.9907, 0.8065], abs=1e-4)
    assert at_90("inputs") == pytest.approx([0.9, 0.9], abs=0.015)
    assert at_90("group", group_columns=(1,)) == pytest.approx([0.9, 0.9], abs=0.015)
    assert at_90("group", group_columns=(2, 1)) == pytest.approx([0.9, 0.9], abs=0.02)
    assert at_90("group", group_columns=(2,)) == pytest.approx(told, abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "quantiles", "intervals"])
@pytest.mark.parametrize(
    ("method", "columns"), [("inputs", ()), ("group", (2, 1)), ("best", ()), ("best", (1, 2))]
)
def test_what_x_teaches_is_what_a_table_with_its_columns_teaches(
    kind: str, method: str, columns: tuple[int, ...]
) -> None:
    """The same rows by hand, through the call that serves tables."""
    way = RecalibratedMethod(
        inner=Oracle(kind), method=method, coverages=COVERAGES, group_columns=columns
    )
    x, y, _ = loud(1000, 0)
    new = loud(50, 1)[0]
    fitted = way.fit(x, y, np.random.default_rng(3))
    held = np.random.default_rng(3).permutation(1000)[:300]
    calibration, rows = (
        EvalSet.checked(
            target,
            believed(kind, at[:, 0]),
            features={f"x{j}": at[:, j] for j in range(3)},
            groups={f"x{j}": at[:, j] for j in columns},
        )
        for at, target in ((x[held], y[held]), (new, np.zeros(50)))
    )
    by = [f"x{j}" for j in columns] if method == "group" else None
    levels = levels_with(COVERAGES)
    by_hand = howsure.recalibrate(rows, calibration, method=method, by=by, levels=levels)
    assert fitted.recalibrator is not None
    assert fitted.recalibrator.method == by_hand.methods[by_hand.evalset.predictions[0].kind]
    np.testing.assert_allclose(
        fitted.predict(new).outcome.interval(0.9),
        by_hand.evalset.predictions[0].interval(0.9),
        rtol=1e-12,
    )


@pytest.mark.slow
def test_the_best_way_is_one_that_helps_and_none_where_a_method_is_right() -> None:
    x, y, where = loud(2000, 0)
    divided = RecalibratedMethod(inner=Oracle("normal"), method="best", group_columns=(2, 1))
    fitted = divided.fit(x, y, np.random.default_rng(0))
    assert fitted.recalibrator is not None
    assert (fitted.recalibrator.method, fitted.recalibrator.cells.columns) == ("group", ("x1",))
    sd = fitted.predict(x).outcome.sd()
    assert sd[~where].mean() == pytest.approx(1.0, rel=0.1)
    assert sd[where].mean() == pytest.approx(2.0, rel=0.1)
    assert fitted.trials is not None
    assert {("group", ("x1",)), ("group", ("x2",)), ("inputs", ())} <= {
        (trial.method, trial.by) for trial in fitted.trials.trials
    }
    x, y = drawn("normal", 2000, 0)
    right = RecalibratedMethod(inner=Oracle("normal", breadth=1.0), method="best")
    fitted = right.fit(x, y, np.random.default_rng(0))
    assert fitted.recalibrator is None
    assert fitted.trials is not None
    assert fitted.trials.trials
    assert not any(trial.accepted for trial in fitted.trials.trials)
    predictions = fitted.predict(x)
    np.testing.assert_array_equal(predictions.outcome.sd(), 1.0)
    assert right.name == "oracle, recalibrated if that helps"
    assert right.fixed_coverages == right.coverages  # a way that is chosen may fix them
    few = right.fit(x[:40], y[:40], np.random.default_rng(0))
    assert (few.recalibrator, few.trials) == (None, Trials(advice=None))


def test_columns_of_groups_must_be_there() -> None:
    x, y, _ = loud(100, 0)
    method = RecalibratedMethod(inner=LinearT(), method="group", group_columns=(3,))
    with pytest.raises(InputError, match=r"group_columns must be below 3, .* got 3"):
        method.fit(x, y, np.random.default_rng(0))


def test_plans_name_the_ways_that_look_at_x() -> None:
    group = RecalibratedMethod(inner=LinearT(), method="group", group_columns=(0, 2))
    assert group.name == "linear t, recalibrated by group"
    entry = {"method": "recalibrated", "inner": "linear_t", "by": "group", "group_columns": [0, 2]}
    assert make_method("a", entry, None) == group
    spec = method_spec(group)
    assert spec["options"]["group_columns"] == [0, 2]
    assert method_named(spec["name"], **spec["options"]) == group
    (told,) = method_entries(
        ["recalibrated:inner=linear_t,method=group,group_columns=1"], (0.9,)
    ).values()
    shell = make_method("a", told, None)
    assert isinstance(shell, RecalibratedMethod)
    assert shell.group_columns == (1,)
    for way in ("best", "inputs"):
        entry = {"method": "recalibrated", "inner": "linear_t", "by": way}
        made = make_method("a", entry, None)
        assert made == RecalibratedMethod(inner=LinearT(), method=way)
        assert "group_columns" not in method_identity(made, entry)["options"]


def test_what_is_learnt_is_learnt_from_rows_held_out() -> None:
    """A method that remembers its rows is right on them; the rows held out know better."""

    @final
    @dataclass(frozen=True, slots=True)
    class Memory(Method):
        @property
        def name(self) -> str:
            return "memory"

        def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Fitted:
            known = dict(zip(np.asarray(x)[:, 0].tolist(), np.asarray(y).tolist(), strict=True))

            @final
            @dataclass(frozen=True, slots=True)
            class Remembered(Fitted):
                def predict(self, x: Any) -> Predictions:
                    return Predictions(
                        Distribution.normal([known.get(v, 0.0) for v in x[:, 0]], [1e-3] * len(x))
                    )

            return Remembered()

    rng = np.random.default_rng(0)
    x = rng.uniform(size=(400, 1))
    fitted = RecalibratedMethod(inner=Memory(), method="scale").fit(x, rng.normal(size=400), rng)
    assert fitted.recalibrator.parameters[0].n == 120
    assert fitted.recalibrator.parameters[0].value == pytest.approx(1000.0, rel=0.2)


def test_it_is_a_method_like_others() -> None:
    method = method_named("recalibrated", inner="linear_t", method="ucc", coverages=[0.8, 0.9])
    assert method == RecalibratedMethod(inner=LinearT(), method="ucc", coverages=(0.8, 0.9))
    assert method.fixed_coverages == (0.8, 0.9)
    assert method.name == "linear t, recalibrated with conformal factors"
    spec = method_spec(method)
    assert spec["name"] == "recalibrated"
    assert method_named(spec["name"], **spec["options"]) == method
    scaled = method_named("recalibrated", inner="bayesian_ridge", method="scale")
    assert scaled.fixed_coverages is None
    around = RecalibratedMethod(inner=LinearRegression(), method="cqr", coverages=(0.9,))
    assert around.inner.fixed_coverages == (0.9,)
    x, y = drawn("normal", 200, 0)
    one, two = (scaled.fit(x, y, np.random.default_rng(3)).predict(x).outcome for _ in range(2))
    np.testing.assert_array_equal(one.point(), two.point())
    assert isinstance(one, Distribution)
    assert one.law.name == "norm"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "magic"}, "method must be one of shift, scale"),
        ({"inner": Oracle("intervals"), "method": "cqr", "coverages": (0.7,)}, "must be among"),
        ({"coverages": ()}, "coverages must contain distinct"),
        ({"delta": 2.0}, "delta must be"),
        ({"rank": "numpy"}, "rank must be"),
        ({"too_few": "cut"}, "too_few"),
        ({"inner": 3}, "method must be a method, or an object"),
        ({"method": "recent"}, "method must be one of shift, scale, .*, group, inputs, .*, best"),
        ({"inner": Oracle("intervals"), "method": "best", "coverages": (0.7,)}, "must be among"),
        ({"method": "group"}, "group_columns must name columns of x for the method 'group'"),
        (
            {"method": "inputs", "group_columns": (0,)},
            "must go with the methods 'group' and 'best'",
        ),
        ({"method": "group", "group_columns": (-1,)}, "group_columns must be a whole number of at"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        RecalibratedMethod(**{"inner": BayesianRidge(), **options})


@pytest.mark.parametrize(
    ("kind", "by", "words"),
    [
        ("normal", "conformal", r"must suit what oracle gives, distributions \(scale, shift, "),
        ("quantiles", "isotonic", r"quantiles \(conformal, scale, shift, .*\), got 'isotonic'"),
        ("intervals", "isotonic", r"intervals \(cqr, asymmetric, scale, shift, .*\)"),
        (
            "poisson",
            "scale",
            "only continuous distributions can be shifted or scaled, got poisson; use 'shape'",
        ),
    ],
)
def test_predictions_that_a_way_does_not_suit_are_named(kind: str, by: str, words: str) -> None:
    method = RecalibratedMethod(inner=Oracle(kind), method=by, coverages=COVERAGES)
    with pytest.raises(InputError, match=words):
        method.fit(*drawn(kind, 200, 0), np.random.default_rng(0))


def test_too_few_rows_never_give_a_plausible_interval() -> None:
    x, y = drawn("normal", 40, 0)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match=r"intervals at coverage 0.95, got 12 rows that reach 0.8"):
        RecalibratedMethod(inner=Oracle("normal")).fit(x, y, rng)
    endless = RecalibratedMethod(inner=Oracle("normal"), method="cqr").fit(x, y, rng).predict(x)
    lower, upper = endless.outcome.interval(0.95)
    assert np.isinf([lower, upper]).all()
    with pytest.raises(InputError, match="at least 4 rows"):
        RecalibratedMethod(inner=Oracle("normal")).fit(x[:3], y[:3], rng)


def test_mixtures_are_scaled_part_by_part() -> None:
    """mean + f (Y − mean) by hand: the same law, wider about its mean."""
    rng = np.random.default_rng(0)
    parts = [Distribution.normal([0.0] * 300, 0.3), Distribution.normal([2.0] * 300, 0.6)]
    law = mixture(parts, [0.25, 0.75])
    held = EvalSet.checked(1.5 + 2.0 * rng.normal(size=300), law)
    fitted = VarianceScaling().fit(held)
    factor = fitted.parameters[0].value
    made = fitted.apply(held).predictions[0]
    grid = np.linspace(-4.0, 6.0, 300)
    np.testing.assert_allclose(made.cdf(1.5 + factor * (grid - 1.5)), law.cdf(grid), atol=1e-12)
    np.testing.assert_allclose(made.point(), 1.5)
    np.testing.assert_allclose(made.sd(), factor * law.sd())
    assert np.mean(((held.y - 1.5) / made.sd()) ** 2) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["normal", "samples", "quantiles"])
def test_intervals_made_of_predictions_are_those_of_their_own_intervals(kind: str) -> None:
    """By hand: the (n + 1)c-th smallest of what each row would need."""
    x, y = drawn(kind, 99, 0)
    held = EvalSet.checked(y, believed(kind, x[:, 0]))
    lower, upper = held.predictions[0].interval(0.9)
    point = held.predictions[0].point()
    offset = np.sort(np.maximum(lower - y, y - upper))[89]
    factor = np.sort(
        np.where(y > point, (y - point) / (upper - point), (point - y) / (point - lower))
    )[89]
    moved = DerivedIntervals("cqr", held.predictions[0].kind, [0.9]).fit(held).apply(held)
    np.testing.assert_allclose(
        moved.predictions[0].interval(0.9), [lower - offset, upper + offset], rtol=1e-12
    )
    assert moved.point is None
    stretched = DerivedIntervals("ucc", held.predictions[0].kind, [0.9]).fit(held).apply(held)
    np.testing.assert_allclose(
        stretched.predictions[0].interval(0.9),
        [point - factor * (point - lower), point + factor * (upper - point)],
        rtol=1e-9,
    )
    both = recalibrate(held, held, method="ucc", coverage=0.9)
    assert both.methods == {held.predictions[0].kind: "ucc"}
    assert both.notes == ()
    np.testing.assert_array_equal(
        both.evalset.predictions[0].interval(0.9), stretched.predictions[0].interval(0.9)
    )


def test_laws_of_another_family_are_refused() -> None:
    held = EvalSet.checked([0.0, 1.0, 2.0], Distribution.normal([0.0] * 3, 1.0))
    fitted = DerivedIntervals(coverages=[0.5]).fit(held)
    other = EvalSet.checked([0.0], Distribution("laplace", {"loc": [0.0]}))
    with pytest.raises(InputError, match="distributions of the family 'norm'"):
        fitted.apply(other)
    with pytest.raises(InputError, match="coverage must be given to make intervals from samples"):
        DerivedIntervals("cqr", "samples")
    with pytest.raises(InputError, match="prediction must be"):
        DerivedIntervals("cqr", "intervals", [0.5]).fit(held)
    rows = EvalSet.checked([0.0, 1.0], Distribution("cauchy", {"loc": [0.0, 1.0]}))
    with pytest.raises(UnanswerableError):
        rows.predictions[0].point()
    assert DerivedIntervals("ucc", coverages=[0.3]).fit(rows).apply(rows).n == 2


@pytest.mark.parametrize("kind", ["normal", "poisson", "samples", "quantiles", "intervals"])
def test_every_way_through_every_metric(kind: str) -> None:
    """The numbers are those that `evaluate` gives for what `recalibrate` makes."""
    test, held = (
        EvalSet.checked(y, believed(kind, x[:, 0]))
        for x, y in (drawn(kind, 400, 1), drawn(kind, 300, 0))
    )
    metrics = ["empirical_coverage", "mean_width", "interval_score", "crps", "pit_uniformity"]
    table = compare_recalibrations(test, held, metrics=metrics, coverages=(0.9,))
    beside = {"group", "inputs", "recent"}  # which need more than the predictions
    beside |= {"cp", "cp_a", "pac", "o_cpa", "o_pac"}  # intervals of them, which judge no law
    ways = [name for name in methods_of(test.predictions[0].kind) if name not in beside]
    assert list(table.columns)[5:] == ["before", *ways]
    for way in ways:
        if kind == "poisson" and way in ("scale", "shift", "multiply", *AFFINE):
            assert np.isnan(table.columns[way]).all()
            assert f"{way} could not be used: only continuous distributions can be" in table.notes
            continue
        mended = recalibrate(test, held, method=way, coverage=0.9).evalset
        for record in evaluate(mended, coverages=(0.9,), metrics=metrics).records:
            title = catalogue()[record.metric].title
            rows = (table.columns["title"] == title) & (
                np.isnan(table.columns["coverage"])
                if math.isnan(record.coverage)
                else table.columns["coverage"] == record.coverage
            )
            if np.isnan(table.columns[way][rows]).all():  # it would mean something else than before
                assert math.isnan(record.value) or title in table.notes
            elif way not in ("isotonic", "crude", "shape"):
                np.testing.assert_array_equal(table.columns[way][rows], [record.value])
    at = table.columns["metric"] == "empirical_coverage"
    gap = {
        name: abs(float(table.columns[name][at][0]) - 0.9)
        for name in ("before", *ways)
        if name not in ("shift", "multiply") and not np.isnan(table.columns[name][at]).all()
    }
    assert all(gap[name] < gap["before"] for name in gap if name != "before")


def test_points_and_choices_in_comparisons() -> None:
    rng = np.random.default_rng(0)
    rows = EvalSet.checked(rng.normal(size=99), point=np.zeros(99))
    table = compare_recalibrations(rows, rows, metrics=["empirical_coverage", "mae"])
    assert list(table.columns)[5:] == ["before", "split", "asymmetric", "shift", "multiply"]
    at = table.columns["metric"] == "empirical_coverage"
    assert np.isnan(table.columns["before"][at]).all()
    assert table.columns["split"][at][0] == pytest.approx(90 / 99)
    laws = EvalSet.checked(rng.normal(size=99), Distribution.normal([0.0] * 99, 1.0))
    only = compare_recalibrations(laws, laws, methods=["scale"], metrics=["crps"])
    assert list(only.columns)[5:] == ["before", "scale"]
    with pytest.raises(InputError, match=r"methods must suit distributions .*got 'conformal'"):
        compare_recalibrations(laws, laws, methods=["conformal"])
    two = EvalSet.checked(
        np.zeros(9), (Distribution.normal([0.0] * 9, 1.0), Samples(rng.normal(size=(9, 3))))
    )
    with pytest.raises(InputError, match=r"one type of prediction .* got distributions, samples"):
        compare_recalibrations(two, two)
    sets = EvalSet.checked([0.0, 1.0], LabelSets([[True, False], [True, True]], 0.9))
    with pytest.raises(InputError, match="a prediction that can be recalibrated, got label sets"):
        compare_recalibrations(sets, sets)
    missing = compare_recalibrations(laws, rows, metrics=["crps"], methods=["scale"])
    assert "scale could not be used: the rows must have distributions" in missing.notes


def test_samples_keep_their_own_way() -> None:
    """Forty samples half as wide as they should be never reach far enough out."""
    data, rng = drawn("samples", 1504, 0), np.random.default_rng(0)
    narrow = RecalibratedMethod(
        inner=Oracle("samples"), method="isotonic", calibration=1500, coverages=(0.5,)
    )
    x, y = drawn("samples", 20_000, 1)
    assert covered(narrow.fit(*data, rng).predict(x).outcome, y, 0.5) == pytest.approx(
        0.5, abs=0.03
    )
    with pytest.raises(InputError, match=r"reach 0.6 .*are beyond the range of the samples on"):
        RecalibratedMethod(inner=Oracle("samples"), calibration=1500).fit(*data, rng)
    x, y = drawn("samples", 300, 0)
    held = EvalSet.checked(y, believed("samples", x[:, 0]))
    method = RecalibratedMethod(inner=Oracle("samples"), method="scale", calibration=300 - 3)
    fitted = method.fit(x, y, np.random.default_rng(0))
    factor = fitted.recalibrator.parameters[0].value
    assert factor == pytest.approx(SpreadScaling().fit(held).parameters[0].value, rel=0.02)


def test_old_names_of_options_are_refused_in_calls_and_read_where_they_were_written() -> None:
    """What is recalibrated and the way were called `method` and `by`; so addresses say still."""
    for given in ({"method": LinearT(), "by": "ucc"}, {"method": LinearT()}):
        with pytest.raises(InputError, match=r"in 0\.2\.0: method and by"):
            RecalibratedMethod(**given)
    method = RecalibratedMethod(inner=LinearT(), method="ucc", coverages=(0.8, 0.9))
    assert method_named("recalibrated", method="linear_t", by="ucc", coverages=[0.8, 0.9]) == method
    assert method_spec(method)["options"] == {
        "method": {"name": "howsure.methods.linear:LinearT", "intercept": True},
        "by": "ucc",
        "calibration": 0.3,
        "coverages": [0.8, 0.9],
        "rank": "conformal",
        "delta": 0.05,
        "too_few": "infinite",
    }
    flat = {"method": "recalibrated", "inner": "linear_t", "by": "ucc"}
    nested = {"method": "recalibrated", "options": {"inner": "linear_t", "method": "ucc"}}
    made = [make_method("a", entry, (0.8, 0.9)) for entry in (flat, nested)]
    assert made == [method, method]
    assert method_identity(method, flat) == method_identity(method, nested)

    class Local(LinearRegression):  # which cannot be written down, so the words of the plan stand
        pass

    unwritable = RecalibratedMethod(inner=Local(), method="ucc")
    assert method_identity(unwritable, flat) == method_identity(unwritable, nested) == flat
    with pytest.raises(InputError, match="options of method 'a' of a plan must be a table, got 3"):
        make_method("a", {"method": "linear_t", "options": 3}, None)
    assert method_entries(["recalibrated:inner=linear_t,method=ucc"], (0.8, 0.9)) == {
        method.name: nested
    }
