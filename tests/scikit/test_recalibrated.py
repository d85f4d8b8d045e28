"""A recalibrated regressor covers where its estimator does not, and is an estimator like others."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
)
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from extras import needs
from howsure import Distribution, Options, Quantiles, assess_model
from howsure.core.errors import InputError, UnanswerableError
from howsure.sklearn import MetricScorer, RecalibratedClassifier, RecalibratedRegressor


def table(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + rng.normal(size=n)


X, Y = table(600, 0)
FAR, TRUTH = table(4000, 1)


class HalfAsSure(RegressorMixin, BaseEstimator):
    """A ridge that states a share of its sd."""

    def __init__(self, share: float = 0.5) -> None:
        self.share = share

    def fit(self, X: Any, y: Any) -> HalfAsSure:
        self.inner_ = BayesianRidge().fit(X, y)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        mean, sd = self.inner_.predict(X, return_std=True)
        return (mean, self.share * sd) if return_std else mean


def covers(model: Any, coverage: float) -> float:
    low, high = model.predict_interval(FAR, coverage).T
    return float(((low <= TRUTH) & (high >= TRUTH)).mean())


def about(coverage: float) -> Any:
    """Within four standard errors, of 600 rows that teach and 4,000 that judge."""
    error = np.sqrt(coverage * (1.0 - coverage) * (1 / 600 + 1 / 4000))
    return pytest.approx(coverage, abs=4.0 * error)


@pytest.mark.slow
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_it_covers_where_the_estimator_does_not(coverage: float) -> None:
    narrow = HalfAsSure().fit(X, Y)
    mean, sd = narrow.predict(FAR, return_std=True)
    low, high = stats.norm.interval(coverage, mean, sd)
    assert ((low <= TRUTH) & (high >= TRUTH)).mean() < coverage - 0.15
    model = RecalibratedRegressor(HalfAsSure()).fit(X, Y)
    assert model.method_ == "scale"
    assert covers(model, coverage) == about(coverage)
    point, spread = model.predict(FAR, return_std=True)
    np.testing.assert_allclose(point, mean)
    np.testing.assert_allclose(spread / sd, spread[0] / sd[0])
    wanted = stats.norm.ppf([0.1, 0.6], point[:, None], spread[:, None])
    np.testing.assert_allclose(model.predict_quantiles(FAR, [0.1, 0.6]), wanted)


def test_what_is_right_stays_as_it_is() -> None:
    model = RecalibratedRegressor(BayesianRidge()).fit(X, Y)
    assert model.method_ == ""
    assert model.guarantee_ == "None in finite samples: predictions are those of the estimator."
    plain = BayesianRidge().fit(X, Y)
    for one, other in zip(
        model.predict(FAR, return_std=True), plain.predict(FAR, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_scale_is_learnt_of_out_of_fold_predictions() -> None:
    """Of the method ``scale``, the factor is the root mean square of the out-of-fold z."""
    folds = KFold(4, shuffle=True, random_state=3)
    model = RecalibratedRegressor(HalfAsSure(), method="scale", cv=folds).fit(X, Y)
    z = np.empty(len(Y))
    for train, test in folds.split(X):
        mean, sd = HalfAsSure().fit(X[train], Y[train]).predict(X[test], return_std=True)
        z[test] = (Y[test] - mean) / sd
    spread = model.predict(FAR, return_std=True)[1]
    whole = HalfAsSure().fit(X, Y).predict(FAR, return_std=True)[1]
    np.testing.assert_allclose(spread, whole * np.sqrt((z**2).mean()))
    np.testing.assert_array_equal(model.calibration_.y, Y)


def test_a_point_forecast_gets_the_order_statistic_of_its_out_of_fold_errors() -> None:
    model = RecalibratedRegressor(LinearRegression(), cv=3).fit(X, Y)
    assert model.method_ == "split"
    errors = np.sort(np.abs(Y - cross_val_predict(LinearRegression(), X, Y, cv=3)))
    point = LinearRegression().fit(X, Y).predict(FAR)
    np.testing.assert_allclose(model.predict(FAR), point)
    for coverage in (0.8, 0.9):
        wide = errors[int(np.ceil(601 * coverage - 1e-9)) - 1]
        ends = np.column_stack([point - wide, point + wide])
        np.testing.assert_allclose(model.predict_interval(FAR, coverage), ends)
        assert covers(model, coverage) == about(coverage)
    with pytest.raises(UnanswerableError, match="intervals have no standard deviation"):
        model.predict(FAR, return_std=True)


@pytest.mark.slow
def test_intervals_cover_on_average_where_the_estimator_is_stable() -> None:
    """Of 60 rows: ⌈61 · 0.9⌉ / 61 = 0.902 would be covered, were all predicted by one model."""
    found = []
    for seed in range(150):
        rows, truth = table(60, 100 + seed)
        found.append(covers(RecalibratedRegressor(LinearRegression()).fit(rows, truth), 0.9))
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(55 / 61, abs=4.0 * error)
    assert error < 0.005


def test_an_estimator_that_is_fitted_learns_from_rows_of_its_own() -> None:
    fitted = LinearRegression().fit(X[:300], Y[:300])
    model = RecalibratedRegressor(fitted, method="split", cv="prefit").fit(X[300:], Y[300:])
    assert model.estimator_ is fitted
    errors = np.sort(np.abs(Y[300:] - fitted.predict(X[300:])))
    wide = errors[int(np.ceil(301 * 0.9)) - 1]
    low, high = model.predict_interval(FAR).T
    np.testing.assert_allclose((high - low) / 2.0, wide)
    assert model.guarantee_.startswith(
        "90 % intervals: a new row exchangeable with the 300 calibration rows is covered"
    )


def test_quantile_regressors_are_one_estimator() -> None:
    three = [QuantileRegressor(quantile=q, alpha=0.0) for q in (0.05, 0.5, 0.95)]
    model = RecalibratedRegressor(three, method="conformal", cv=2).fit(X, Y)
    made = model.predict_uncertainty(FAR)
    assert isinstance(made, Quantiles)
    assert made.own_levels == (0.05, 0.5, 0.95)
    assert covers(model, 0.9) == about(0.9)
    np.testing.assert_array_equal(model.predict(FAR), made.quantile([0.5])[:, 0])
    one = RecalibratedRegressor(three[2], method="shift", cv=2).fit(X, Y)
    assert (one.predict(FAR) >= TRUTH).mean() == about(0.95)


class Ends(LinearRegression):  # type: ignore[misc]
    """A line with intervals that are too narrow by a constant."""

    def predict_interval(self, X: Any) -> Any:
        point = self.predict(X)
        return np.column_stack([point - 1.0, point + 1.0])


def test_intervals_keep_their_coverage_and_move_by_their_order_statistic() -> None:
    model = RecalibratedRegressor(Ends(), method="cqr", cv=3).fit(X, Y)
    scores = np.sort(np.abs(Y - cross_val_predict(LinearRegression(), X, Y, cv=3)) - 1.0)
    offset = scores[int(np.ceil(601 * 0.9)) - 1]
    point = LinearRegression().fit(X, Y).predict(FAR)
    ends = np.column_stack([point - 1.0 - offset, point + 1.0 + offset])
    np.testing.assert_allclose(model.predict_interval(FAR), ends)
    np.testing.assert_allclose(model.predict(FAR), point)
    with pytest.raises(UnanswerableError, match=r"0\.8"):
        model.predict_interval(FAR, 0.8)


def test_rows_that_no_fold_tests_teach_nothing() -> None:
    model = RecalibratedRegressor(BayesianRidge(), method="scale", cv=TimeSeriesSplit(3)).fit(X, Y)
    np.testing.assert_array_equal(model.calibration_.y, Y[150:])


def test_frames_and_pipelines_keep_their_columns() -> None:
    pandas = needs("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"])
    inner = make_pipeline(StandardScaler(), BayesianRidge())
    model = RecalibratedRegressor(inner, method="scale").fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    plain = RecalibratedRegressor(inner, method="scale").fit(X, Y)
    np.testing.assert_allclose(model.predict(frame), plain.predict(X))
    piped = make_pipeline(StandardScaler(), RecalibratedRegressor(BayesianRidge(), method="scale"))
    np.testing.assert_allclose(piped.fit(X, Y).predict(X), plain.predict(X))


def test_it_is_assessed_as_any_model() -> None:
    model = RecalibratedRegressor(HalfAsSure(), method="scale").fit(X, Y)
    result = assess_model(
        model, FAR[:400], TRUTH[:400], features=None, options=Options(trials=False)
    )
    assert result.facts["Predictions"] == "distributions"
    low, high = model.predict_interval(FAR[:400], 0.9).T
    inside = ((low <= TRUTH[:400]) & (TRUTH[:400] <= high)).mean()
    assert result.value("empirical_coverage", coverage=0.9) == pytest.approx(inside)


def test_it_is_kept_and_cloned() -> None:
    model = RecalibratedRegressor(BayesianRidge(), method="scale").fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_interval(FAR), model.predict_interval(FAR))
    other = clone(model).set_params(estimator__max_iter=7, method="cqr")
    assert other.estimator.max_iter == 7
    with pytest.raises(NotFittedError):
        other.predict(FAR)
    assert isinstance(model.predict_uncertainty(FAR), Distribution)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"method": "bset"}, "method.*bset"),
        ({"method": "group"}, "method must be one of"),
        ({"method": "scale"}, r"method must suit .*, point \(split, asymmetric\), got 'scale'"),
        ({"method": "shift"}, r"method must suit .*, point \(split, asymmetric\), got 'shift'"),
        ({"coverage": 90}, "coverage must be strictly between 0 and 1, got 90"),
        ({"cv": "prefitted"}, "cv must be folds or 'prefit', got 'prefitted'"),
        ({"cv": RepeatedKFold(n_splits=2, n_repeats=2)}, "cv must put each row in at most one"),
    ],
)
def test_wrong_options_are_refused_by_name(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        RecalibratedRegressor(LinearRegression(), **options).fit(X, Y)


def _copies(n: int, seed: int) -> tuple[Any, Any]:
    """One input, six times, which naive Bayes takes for six; y in two or three classes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = np.array(["a", "b", "c"])[np.searchsorted([-1.0, 1.0], x + 1.5 * rng.normal(size=n))]
    return np.repeat(x[:, None], 6, axis=1), y


@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_is_recalibrated(classes: int) -> None:
    (x, y), (far, truth) = _copies(900, 0), _copies(3_000, 1)
    if classes == 2:
        y, truth = y == "c", truth == "c"
    plain = GaussianNB().fit(x, y)
    model = RecalibratedClassifier(GaussianNB(), cv=3).fit(x, y)
    assert model.method_ in ("temperature", "platt", "beta", "isotonic")
    stated = model.predict_proba(far)
    np.testing.assert_allclose(stated.sum(axis=1), 1.0)
    assert log_loss(truth, stated) < log_loss(truth, plain.predict_proba(far)) - 0.1
    assert (model.predict(far) == model.classes_[stated.argmax(axis=1)]).all()
    prefit = RecalibratedClassifier(plain, method="temperature", cv="prefit").fit(far, truth)
    assert prefit.method_ == "temperature"
    first = cross_val_predict(GaussianNB(), x, y, cv=3, method="predict_proba")
    (held_out,) = model.calibration_.predictions
    np.testing.assert_allclose(held_out.numbers()["probabilities"], first)


def test_scorers_of_classes_are_those_of_scikit_learn() -> None:
    x, y = _copies(300, 0)
    model = GaussianNB().fit(x, y)
    stated = model.predict_proba(x)
    assert MetricScorer("brier")(model, x, y) == pytest.approx(-brier_score_loss(y, stated))
    assert MetricScorer("log_score")(model, x, y) == pytest.approx(-log_loss(y, stated))
    assert MetricScorer("accuracy")(model, x, y) == model.score(x, y)
    with pytest.raises(InputError, match="classes of the estimator, got 'd'"):
        MetricScorer("brier")(model, x, np.where(y == "a", "d", y))
    with pytest.raises(InputError, match="at least two classes"):
        RecalibratedClassifier(GaussianNB()).fit(x, np.zeros(300))


NOT_HERE = {"check_array_api_input"}
"""Asked of estimators where scipy is set to take arrays of other libraries."""
OF_THE_ESTIMATOR = {
    "LinearRegression": set[str](),
    "LogisticRegression": set[str](),
    # its predict(X, return_std=True) words the error on columns of objects otherwise
    "BayesianRidge": {"check_dtype_object"},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        RecalibratedRegressor(LinearRegression()),
        RecalibratedRegressor(BayesianRidge(), method="scale"),
        RecalibratedClassifier(LogisticRegression()),
    ],
    ids=lambda model: type(model.estimator).__name__,
)
def test_the_checks_of_scikit_learn_pass(model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(model, on_fail=None, on_skip=None)
    assert len(found) > 40
    failed = {each["check_name"] for each in found if each["status"] != "passed"}
    assert failed - NOT_HERE == OF_THE_ESTIMATOR[type(model.estimator).__name__]
