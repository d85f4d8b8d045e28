"""Selective methods around any method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import ARDRegression, LinearRegression

from howsure.core.errors import InputError
from howsure.inputs.distributions import located
from howsure_studies.methods.catalogue import method_named, method_spec
from howsure_studies.methods.conformal.inductive import SplitConformal
from howsure_studies.methods.interface import Fitted, Method, Predictions
from howsure_studies.methods.linear import LinearT
from howsure_studies.methods.selective import (
    FittedSelective,
    GMMScore,
    KNNScore,
    Selective,
    VarianceScore,
)


@dataclass(frozen=True)
class Pictures(Method):
    """A model of pictures that has features: their mean brightness, twice."""

    flat: bool = False

    @property
    def name(self) -> str:
        return "pictures"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        return Seen(len(np.asarray(x)), self.flat)


@dataclass(frozen=True)
class Seen(Fitted):
    rows: int
    flat: bool

    def predict(self, x: npt.ArrayLike) -> Predictions:
        mean = np.asarray(x).mean(axis=(1, 2, 3))
        return Predictions(located("norm", mean, 1.0 + np.abs(mean)))

    def features(self, x: npt.ArrayLike) -> npt.NDArray[np.float64]:
        mean = np.asarray(x).mean(axis=(1, 2, 3))
        return np.zeros((len(mean), 2, 2)) if self.flat else np.stack([mean, mean**2], axis=1)


def table(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) * np.array([1.0, 100.0, 0.01])
    return x, x[:, 0] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("score", ["gmm", "knn", "variance", KNNScore(3, "euclidean")])
def test_about_the_share_of_rows_like_home_is_accepted(score: object) -> None:
    x, y = table()
    fitted = Selective(LinearT(), score, validation=200).fit(x, y, np.random.default_rng(0))
    rate = fitted.prediction_rate(table(4000, seed=1)[0])
    assert abs(rate - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200)
    near, far = fitted.score([[0.0, 0.0, 0.0]]), fitted.score([[50.0, -9e3, 0.9]])
    if score != "knn":
        assert far[0] > near[0]
        assert not fitted.accepts([[50.0, -9e3, 0.9]])[0]


def test_the_threshold_is_that_of_the_rows_held_out() -> None:
    x, y = table(100)
    rng = np.random.default_rng(3)
    fitted = Selective(LinearT(), "variance", validation=30).fit(x, y, rng)
    held = np.random.default_rng(3).permutation(100)[:30]
    scores = np.sort(fitted.score(x[held]))
    assert fitted.threshold == scores[int(0.95 * 30)]
    assert (fitted.predict(x).outcome.sd() == fitted.score(x)).all()
    assert np.isin(fitted.accepts(x), [True, False]).all()


def test_inputs_count_in_units_of_their_spread() -> None:
    x, y = table()
    plain = Selective(LinearT(), KNNScore(3, "euclidean")).fit(x, y, np.random.default_rng(0))
    units = np.array([1e-3, 7.0, 1e4])
    other = Selective(LinearT(), KNNScore(3, "euclidean"))
    scaled = other.fit(x * units, y, np.random.default_rng(0))
    np.testing.assert_allclose(scaled.score(x * units), plain.score(x), rtol=1e-6)


def test_features_of_the_model_are_used_where_it_has_some() -> None:
    pictures = np.random.default_rng(0).uniform(size=(60, 4, 4, 1))
    method = Selective(Pictures(), GMMScore(1), validation=0.25)
    fitted = method.fit(pictures, np.ones(60), np.random.default_rng(0))
    assert fitted.fitted.rows == 45
    assert fitted.accepts(pictures + 5.0).sum() == 0
    with pytest.raises(InputError, match="the model's features must have two dimensions"):
        Selective(Pictures(flat=True)).fit(pictures, np.ones(60), np.random.default_rng(0))


def test_all_rows_train_where_validation_rows_are_given() -> None:
    pictures = np.random.default_rng(0).uniform(size=(60, 4, 4, 1))
    fitted = Selective(Pictures(), "knn").fit_with(
        pictures, np.ones(60), pictures + 0.1, np.random.default_rng(0)
    )
    assert fitted.fitted.rows == 60
    assert fitted.accepts(pictures + 0.1).sum() == 58


def test_coverages_are_those_of_the_method() -> None:
    inner = SplitConformal(LinearRegression(), coverages=(0.5, 0.9))
    method = Selective(inner, VarianceScore())
    assert method.fixed_coverages == (0.5, 0.9)
    x, y = table(60)
    with pytest.raises(InputError, match="score must be one that the method can give"):
        method.fit(x, y, np.random.default_rng(0))
    with pytest.raises(InputError, match="coverages must be those that"):
        Selective(inner, coverages=(0.7,))
    assert Selective(LinearT()).fixed_coverages is None


def test_it_is_made_by_name() -> None:
    made = method_named("selective", method="linear_t", score={"name": "knn", "neighbours": 3})
    assert made == Selective(LinearT(), KNNScore(3))
    spec = method_spec(made)
    assert spec["name"] == "selective"
    assert method_named(spec["name"], **spec["options"]) == made
    fixed = method_named("selective", method="cqr", coverages=[0.5, 0.6])
    assert fixed.fixed_coverages == (0.5, 0.6)
    assert made.name == f"{LinearT().name}, selective (kNN k=3, angular)"
    assert isinstance(Selective(ARDRegression()).method, Method)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Selective(LinearT(), "gm"), "score must be one of gmm, knn.*near: gmm"),
        (lambda: Selective(LinearT(), 3), "score must be a score or the name of one, got 3"),
        (lambda: Selective(LinearT(), share=1.0), "share must be strictly between"),
        (lambda: Selective(3), "method must be a method, or an object"),
        (
            lambda: Selective(LinearT(), {"name": "knn", "k": 3}),
            "score 'knn': option must be one of neighbours, metric, got 'k'",
        ),
    ],
)
def test_bad_options_are_told(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_missing_rows_are_told() -> None:
    x, y = table(50)
    fitted = Selective(LinearT(), "knn").fit(x, y, np.random.default_rng(0))
    assert isinstance(fitted, FittedSelective)
    with pytest.raises(InputError, match="x must have 3 columns, got 2"):
        fitted.score(x[:, :2])
    with pytest.raises(InputError, match="y must have 50 rows, got 49"):
        Selective(LinearT()).fit(x, y[1:], np.random.default_rng(0))
    with pytest.raises(InputError, match="x must have two dimensions where the fitted model"):
        Selective(_Anything()).fit(np.ones((20, 2, 2)), np.ones(20), np.random.default_rng(0))


@dataclass(frozen=True)
class _Anything(Method):
    @property
    def name(self) -> str:
        return "anything"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        return _Same()


@dataclass(frozen=True)
class _Same(Fitted):
    def predict(self, x: npt.ArrayLike) -> Predictions:
        n = len(np.asarray(x))
        return Predictions(located("norm", np.zeros(n), np.ones(n)))
