"""A class with ``fit(x, y, rng)`` and ``predict(x)`` alone, wherever a method goes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator

from howsure import Distribution, Intervals, Samples, Table
from howsure.core.errors import InputError
from howsure_studies.engine import make_method, method_identity
from howsure_studies.methods.catalogue import method_named, method_spec
from howsure_studies.methods.conformal.quantile import Conformalized
from howsure_studies.methods.interface import Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.recalibrated import RecalibratedMethod
from howsure_studies.methods.regressors import OwnMethod, as_method
from howsure_studies.methods.selective.method import Selective
from howsure_studies.pointwise import over_splits, pointwise

REACH = stats.norm.ppf(0.95)
MODULE = """
import numpy as np
from howsure import Distribution, Intervals

class Mine:
    def __init__(self, factor=1.0):
        self.factor = factor
    def fit(self, x, y, rng):
        self.mean, self.sd = float(np.mean(y)), self.factor * float(np.std(y))
        return self
    def predict(self, x):
        return Distribution.normal(np.full(len(x), self.mean), np.full(len(x), self.sd))

class Memory(Mine):
    def __init__(self, factor=1.0):
        super().__init__(factor)
        self.seen = []

def made() -> Mine:
    return Mine(2.0)

def unsaid():
    raise AssertionError("called")

ready = Mine(3.0)
"""


class Mine:
    """The normal law of all y; counts its fits."""

    def __init__(self) -> None:
        self.fits: list[int] = []

    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Any:
        self.fits.append(len(y))
        self.mean, self.sd = float(np.mean(y)), float(np.std(y))
        return self

    def predict(self, x: Any) -> Any:
        n = len(x)
        return Distribution.normal(np.full(n, self.mean), np.full(n, self.sd))

    def ends(self, x: Any) -> tuple[Any, Any]:
        reach = REACH * self.sd
        return np.full(len(x), self.mean - reach), np.full(len(x), self.mean + reach)


class Quiet(Mine):
    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> None:
        super().fit(x, y, rng)


class Elsewhere(Mine):
    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Any:
        other = Mine()
        return other.fit(x, y, rng)


class ThirdByPlace(Mine):
    def fit(self, x: Any, y: Any, generator: np.random.Generator) -> Any:
        return super().fit(x, y, generator)


class OnlyByName(Mine):
    def fit(self, x: Any, y: Any, *, rng: np.random.Generator) -> Any:
        return super().fit(x, y, rng)


class Believes(Mine):
    def predict(self, x: Any) -> Any:
        return Predictions(super().predict(x), super().predict(x))


class Ends(Mine):
    def predict(self, x: Any) -> Any:
        return Intervals(*self.ends(x))


class Bare(Mine):
    def predict(self, x: Any) -> Any:
        return self.ends(x)


class SaysIt(Bare):
    coverage = 0.9


class WithMean(Mine):
    """Both intervals in columns; `form` makes of them what predict returns."""

    form: Any = dict

    def predict(self, x: Any) -> Any:
        lower, upper = self.ends(x)
        columns = {"lower": lower, "upper": upper}
        reach = REACH * self.sd / 5
        ends = {"ci_lower": np.full(len(x), self.mean - reach), "ci_upper": lower * 0 + self.mean}
        return type(self).form(columns | ends)


class InFrame(WithMean):
    form = pd.DataFrame


class InTable(WithMean):
    form = staticmethod(lambda columns: Table(columns, coverage=0.9))


class ByName(WithMean):
    form = staticmethod(lambda columns: {f"{name}_90": each for name, each in columns.items()})


class OneEnd(WithMean):
    form = staticmethod(lambda columns: {k: v for k, v in columns.items() if k != "ci_lower"})


class OnlyMean(WithMean):
    form = staticmethod(lambda columns: {k: v for k, v in columns.items() if k.startswith("ci")})


class Holds(Mine):
    """Holds a method, which it is not."""

    method = LinearT()


class Drawing(Mine):
    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Any:
        super().fit(x, y, rng)
        self.mean = float(rng.normal())
        return self


class Drawn(Mine):
    def predict(self, x: Any) -> Any:
        return Samples(np.random.default_rng(0).normal(self.mean, self.sd, (len(x), 20)))


class Frozen(Mine):
    def predict(self, x: Any) -> Any:
        return stats.norm(np.full(len(x), self.mean), self.sd)


class Point(Mine):
    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.mean)


class Short(Mine):
    def predict(self, x: Any) -> Any:
        return super().predict(x[:-1])


class Missing(Mine):
    def predict(self, x: Any) -> Any:
        lower, upper = self.ends(x)
        return Intervals(lower * np.nan, upper)


class Nothing(Mine):
    def predict(self, x: Any) -> Any:
        return None


class Lost(Mine):
    def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Any:
        return 3


class Stuck(Mine):
    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("cannot pickle a lock")


class Columns(Mine):
    def predict(self, x: Any) -> Any:
        return np.column_stack(self.ends(x))


class Levels(Mine):
    def predict(self, x: Any) -> Any:
        lower, upper = self.ends(x)
        return {0.05: lower, 0.95: upper}


class MeanAndSd(Mine):
    def predict(self, x: Any) -> Any:
        return {"mean": np.full(len(x), self.mean), "sd": np.full(len(x), self.sd)}


class Models(Mine):
    def predict(self, x: Any) -> Any:
        return {"a": super().predict(x), "b": super().predict(x)}


GOOD = [Mine, Quiet, Elsewhere, ThirdByPlace, OnlyByName, Believes, Ends, Frozen, Drawn, Holds]


@pytest.mark.parametrize("kind", [*GOOD, Bare, SaysIt, Columns, Levels, MeanAndSd])
@pytest.mark.parametrize("given", [lambda kind: kind, lambda kind: kind()], ids=["class", "object"])
def test_a_class_of_its_own_is_tested_like_any_method(kind: type, given: Any) -> None:
    result = pointwise("linear", given(kind), coverages=(0.9,), trials=3, n_train=40, n_test=20)
    assert result.method == kind.__name__
    assert result.trials == 3, result.failures
    law = pointwise("linear", Mine, coverages=(0.9,), trials=3, n_train=40, n_test=20)
    if kind not in (Drawn,):
        np.testing.assert_allclose(result.lower, law.lower, atol=1e-12)


@pytest.mark.parametrize("kind", [WithMean, InFrame, InTable, ByName])
def test_columns_are_a_confidence_interval_of_the_mean(kind: type) -> None:
    stated = () if kind in (InTable, ByName) else (0.9,)
    y = np.arange(50.0)
    fitted = as_method(kind, stated or None).fit(y[:, None], y, np.random.default_rng(0))
    predictions = fitted.predict(y[:3, None])
    reach = REACH * y.std()
    for given, lower, upper in (
        (predictions.outcome, y.mean() - reach, y.mean() + reach),
        (predictions.mean, y.mean() - reach / 5, y.mean()),
    ):
        ends = given.interval(0.9)
        np.testing.assert_allclose(ends[0], np.full(3, lower))
        np.testing.assert_allclose(ends[1], np.full(3, upper))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (OneEnd, "OneEnd.predict.x.: ci_lower and ci_upper must be given together, got ci_upper"),
        (OnlyMean, "OnlyMean.predict.x.: must return a prediction of y beside the confidence"),
    ],
)
def test_a_confidence_interval_alone_or_with_one_end_is_refused(kind: type, words: str) -> None:
    y = np.arange(50.0)
    fitted = as_method(kind, (0.9,)).fit(y[:, None], y, np.random.default_rng(0))
    with pytest.raises(InputError, match=words):
        fitted.predict(y[:3, None])


def test_without_a_coverage_the_methods_own_is_asked() -> None:
    assert pointwise("linear", SaysIt, trials=2, n_train=40, n_test=20).coverages == (0.9,)
    with pytest.raises(InputError, match=r"coverages must be among those of SaysIt \(0.9\)"):
        pointwise("linear", SaysIt, coverages=(0.8,), trials=2, n_train=40, n_test=20)
    lost = pointwise("linear", Ends, trials=2, n_train=40, n_test=20)
    assert "Ends.predict(x) gives intervals of unknown coverage" in lost.failures[0].message
    assert pointwise("linear", Mine, trials=2, n_train=40, n_test=20).trials == 2


def test_trials_share_no_state() -> None:
    """Each fit works on a copy: the object that was given stays as it was."""
    mine = Mine()
    method = as_method(mine)
    x, y = np.zeros((5, 1)), np.arange(5.0)
    first = method.fit(x, y, np.random.default_rng(0))
    before = first.predict(x).outcome.point()
    method.fit(x, y + 100.0, np.random.default_rng(0))
    np.testing.assert_array_equal(first.predict(x).outcome.point(), before)
    assert mine.fits == []
    assert not hasattr(mine, "mean")


def test_draws_come_from_the_trial_alone() -> None:
    both = pointwise("linear", Drawing, trials=3, n_train=40, n_test=20, seed=4)
    later = pointwise("linear", Drawing, trials=1, first_trial=2, n_train=40, n_test=20, seed=4)
    np.testing.assert_array_equal(both.lower[2], later.lower[0])
    assert not np.array_equal(both.lower[0] - both.lower[1], np.zeros_like(both.lower[0]))


def test_an_estimators_random_states_are_drawn() -> None:
    class Estimator(BaseEstimator, Mine):  # type: ignore[misc]
        def __init__(self, random_state: int | None = None) -> None:
            self.random_state = random_state

        def fit(self, x: Any, y: Any, rng: np.random.Generator) -> Any:
            self.mean, self.sd = float(self.random_state or 0), 1.0
            return self

    x, y = np.zeros((5, 1)), np.arange(5.0)
    method = as_method(Estimator())
    points = {
        float(method.fit(x, y, np.random.default_rng(s)).predict(x).outcome.point()[0])
        for s in (0, 1)
    }
    assert len(points) == 2


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Point, "Point.predict"),
        (Short, r"Short.predict\(x\) must have a row for each of the 20 of x, got 19"),
        (Missing, r"Missing.predict\(x\): lower must contain no missing values"),
        (Models, r"Models.predict\(x\): one model was expected, got a, b"),
        (Nothing, r"Nothing.predict\(x\) must return a prediction, got None"),
        (Lost, r"Lost.fit must return itself, or what has predict\(x\), got int"),
        (Stuck, "Stuck must be copyable for every fit: cannot pickle a lock"),
    ],
)
def test_what_is_wrong_names_the_class(kind: type, words: str) -> None:
    method = as_method(kind(), (0.9,))
    with pytest.raises(InputError, match=words):
        method.fit(np.zeros((30, 1)), np.arange(30.0), np.random.default_rng(0)).predict(
            np.zeros((20, 1))
        )


def test_a_point_forecast_alone_is_said_to_be_one() -> None:
    method = as_method(Point(), (0.9,))
    fitted = method.fit(np.zeros((30, 1)), np.arange(30.0), np.random.default_rng(0))
    with pytest.raises(InputError, match="got only a point forecast"):
        fitted.predict(np.zeros((20, 1)))


def test_wrappers_take_it() -> None:
    quick = {"coverages": (0.8,), "trials": 2, "n_train": 120, "n_test": 20}
    for method in (
        RecalibratedMethod(inner=Mine(), coverages=(0.8,)),
        RecalibratedMethod(inner=Ends, method="cqr", coverages=(0.8,)),
        Conformalized(Mine(), coverages=(0.8,)),
        Conformalized(Ends, coverages=(0.8,)),
        Selective(Mine()),
        Selective(Ends(), coverages=(0.8,)),
    ):
        result = pointwise("linear", method, **quick)
        assert result.trials == 2, result.failures
        assert "Mine" in result.method or "Ends" in result.method


def test_it_is_measured_over_splits() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    result = over_splits(x, x[:, 0], Ends, metrics=["empirical_coverage"])
    assert not result.failures
    assert 0.5 < result.record("empirical_coverage").value <= 1.0


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_methods_here.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "own_methods_here"


def sd_of(method: Any) -> float:
    x, y = np.zeros((4, 1)), np.array([-1.0, 1.0, -1.0, 1.0])
    return float(method.fit(x, y, np.random.default_rng(0)).predict(x).outcome.sd()[0])


def test_a_name_makes_it_with_its_options(module: str) -> None:
    assert sd_of(method_named(f"{module}:Mine")) == pytest.approx(1.0)
    assert sd_of(method_named(f"{module}:Mine", factor=5)) == pytest.approx(5.0)
    assert sd_of(method_named(f"{module}:made")) == pytest.approx(2.0)
    assert sd_of(method_named(f"{module}:ready")) == pytest.approx(3.0)
    within = method_named("selective", method={"name": f"{module}:Mine", "factor": 4})
    assert sd_of(within.method) == pytest.approx(4.0)  # type: ignore[attr-defined]
    maker = method_named("selective", method=f"{module}:made")
    assert sd_of(maker.method) == pytest.approx(2.0)  # type: ignore[attr-defined]
    with pytest.raises(InputError, match=r"option must be .*factor.*got 'fcator'"):
        method_named(f"{module}:Mine", fcator=5)
    for spec in (f"{module}:unsaid", {"name": f"{module}:unsaid"}):
        with pytest.raises(InputError, match="it was not called"):
            method_named("selective", method=spec)


def test_a_spec_makes_it_again(module: str) -> None:
    method = method_named(f"{module}:Mine", factor=5)
    spec = method_spec(method)
    assert spec["options"]["own"] == {"name": f"{module}:Mine", "factor": 5}
    assert sd_of(method_named(spec["name"], **spec["options"])) == pytest.approx(5.0)
    others = [method_spec(method_named(f"{module}:Mine", factor=f)) for f in (1.0, 2.0)]
    assert others[0] != others[1]
    with pytest.raises(InputError, match="keep what its __init__ takes and no more"):
        method_spec(method_named(f"{module}:Memory"))


def test_a_plan_knows_it_by_its_options_or_its_words(module: str) -> None:
    entry = {"method": f"{module}:Mine", "factor": 5}
    method = make_method("m", entry, (0.9,))
    assert isinstance(method, OwnMethod)
    assert method.fixed_coverages == (0.9,)
    assert method_identity(method, entry)["options"]["coverages"] == [0.9]
    words = {"method": f"{module}:Memory", "factor": 5, "revision": 2}
    assert method_identity(make_method("m", words, (0.9,)), words) == words


def test_a_fitted_one_travels(module: str) -> None:
    method = method_named(f"{module}:Mine")
    fitted = method.fit(np.zeros((4, 1)), np.arange(4.0), np.random.default_rng(0))
    again = pickle.loads(pickle.dumps((method, fitted)))[1]
    assert again.predict(np.zeros((2, 1))).outcome.n == 2
    assert not hasattr(fitted, "score")


def test_a_class_without_rng_that_predicts_more_is_told_what_it_lacks() -> None:
    class NoRng:
        def fit(self, x: Any, y: Any) -> None:
            self.mean = np.mean(y)

        def predict(self, x: Any) -> Any:
            return Distribution.normal(np.full(len(x), self.mean), np.ones(len(x)))

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    with pytest.raises(
        InputError, match=r"one number per row, got Distribution.* fit\(x, y, rng\)"
    ):
        as_method(NoRng()).fit(x, y, rng)
