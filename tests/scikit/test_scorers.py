"""Scorers equal the measures of the same predictions, wherever scikit-learn takes a scorer."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
)
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from howsure import metrics
from howsure.core.errors import InputError
from howsure.predictions import Distribution
from howsure.sklearn import (
    MetricScorer,
    RecalibratedRegressor,
    crps,
    interval_score,
    log_score,
    miscoverage,
    pinball,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 2))
Y = X[:, 0] + RNG.normal(size=240)
FIT, NEW = slice(0, 120), slice(120, 240)
WEIGHTS = RNG.uniform(0.5, 2.0, size=120)


@pytest.fixture(scope="module")
def ridge() -> Any:
    return BayesianRidge().fit(X[FIT], Y[FIT])


def ends(model: Any, coverage: float) -> tuple[Any, Any]:
    mean, sd = model.predict(X[NEW], return_std=True)
    low, high = stats.norm.interval(coverage, mean, sd)
    return low, high


@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_are_scored_as_by_hand(ridge: Any, coverage: float) -> None:
    low, high = ends(ridge, coverage)
    rows = metrics.interval_score(Y[NEW], low, high, coverage=coverage)
    score = interval_score(coverage=coverage)
    assert score(ridge, X[NEW], Y[NEW]) == pytest.approx(-rows.mean())
    weighted = -np.average(rows, weights=WEIGHTS)
    assert score(ridge, X[NEW], Y[NEW], sample_weight=WEIGHTS) == pytest.approx(weighted)
    inside = ((low <= Y[NEW]) & (Y[NEW] <= high)).mean()
    gap = miscoverage(coverage=coverage)(ridge, X[NEW], Y[NEW])
    assert gap == pytest.approx(-abs(inside - coverage))


def test_distributions_are_scored_as_by_hand(ridge: Any) -> None:
    mean, sd = ridge.predict(X[NEW], return_std=True)
    by_hand = -metrics.crps(Y[NEW], Distribution.normal(mean, sd)).mean()
    assert crps()(ridge, X[NEW], Y[NEW]) == pytest.approx(by_hand)
    likelihood = stats.norm.logpdf(Y[NEW], mean, sd).mean()
    assert log_score()(ridge, X[NEW], Y[NEW]) == pytest.approx(likelihood)
    losses = [
        mean_pinball_loss(Y[NEW], stats.norm.ppf(level, mean, sd), alpha=level)
        for level in (0.1, 0.7)
    ]
    score = pinball(levels=[0.1, 0.7])(ridge, X[NEW], Y[NEW])
    assert score == pytest.approx(-np.mean(losses))


def test_a_quantile_regressor_is_scored_at_its_own_level_or_the_one_asked_for() -> None:
    model = QuantileRegressor(quantile=0.8, alpha=0.0).fit(X[FIT], Y[FIT])
    for scorer, level in ((pinball(), 0.8), (pinball(levels=[0.3]), 0.3)):
        loss = mean_pinball_loss(Y[NEW], model.predict(X[NEW]), alpha=level)
        assert scorer(model, X[NEW], Y[NEW]) == pytest.approx(-loss)


def test_higher_is_better_of_every_direction(ridge: Any) -> None:
    said = {name: MetricScorer(name)(ridge, X[NEW], Y[NEW]) for name in ("mae", "r_squared")}
    assert said["mae"] == pytest.approx(-np.abs(Y[NEW] - ridge.predict(X[NEW])).mean())
    assert said["r_squared"] == pytest.approx(ridge.score(X[NEW], Y[NEW]))


def test_cross_validation_takes_them_with_pipelines() -> None:
    piped = make_pipeline(StandardScaler(), BayesianRidge())
    scoring = {"interval": interval_score(), "crps": crps()}
    found = cross_validate(piped, X, Y, scoring=scoring, cv=3, error_score="raise")
    each = cross_val_score(piped, X, Y, scoring=crps(), cv=3, error_score="raise")
    np.testing.assert_array_equal(found["test_crps"], each)
    fold = slice(0, 80)
    rest = clone(piped).fit(X[80:], Y[80:])
    assert found["test_interval"][0] == interval_score()(rest, X[fold], Y[fold])


def test_a_search_picks_the_better_of_two_quantile_regressors() -> None:
    """The level is 0.9: a regressor of level 0.5 lies far below."""
    search = GridSearchCV(
        QuantileRegressor(alpha=0.0),
        {"quantile": [0.5, 0.9]},
        scoring=pinball(levels=[0.9]),
        cv=3,
        error_score="raise",
    ).fit(X, Y)
    assert search.best_params_ == {"quantile": 0.9}
    by_hand = mean_pinball_loss(Y, search.predict(X), alpha=0.9)
    assert search.score(X, Y) == pytest.approx(-by_hand)
    rough = {"n_estimators": [1, 40]}
    trees = GridSearchCV(
        GradientBoostingRegressor(loss="quantile", alpha=0.9, random_state=0),
        rough,
        scoring=pinball(),
        cv=3,
        error_score="raise",
    ).fit(X, Y)
    assert trees.best_params_ == {"n_estimators": 40}


def test_intervals_of_a_recalibrated_regressor_are_scored_at_any_coverage() -> None:
    model = RecalibratedRegressor(LinearRegression()).fit(X[FIT], Y[FIT])
    low, high = model.predict_interval(X[NEW], 0.7).T
    rows = metrics.interval_score(Y[NEW], low, high, coverage=0.7)
    score = interval_score(coverage=0.7)(model, X[NEW], Y[NEW])
    assert score == pytest.approx(-rows.mean())


def test_scorers_are_copied_kept_and_compared_by_value() -> None:
    scorer = interval_score(coverage=0.8)
    assert pickle.loads(pickle.dumps(scorer)) == scorer == MetricScorer("winkler", 0.8)
    search = GridSearchCV(BayesianRidge(), {}, scoring=scorer)
    assert clone(search).scoring == scorer


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: interval_score(coverage=90), "coverage must be strictly between 0 and 1, got 90"),
        (lambda: pinball(levels=[0.9, 0.1]), "levels must increase strictly"),
        (lambda: MetricScorer("interval_skor"), "metric"),
        (lambda: MetricScorer("sharpness"), "metric must have a direction"),
        (lambda: MetricScorer("hsic"), "metric must need only y and a prediction"),
    ],
)
def test_wrong_options_are_refused_by_name(make: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make()


def test_an_estimator_that_says_too_little_is_told_so() -> None:
    plain = LinearRegression().fit(X[FIT], Y[FIT])
    with pytest.raises(InputError, match=r"estimator Linear.* does not predict what interval_s"):
        interval_score()(plain, X[NEW], Y[NEW])
    with pytest.raises(InputError, match="estimator must predict quantiles for levels="):
        pinball(levels=[0.1])(plain, X[NEW], Y[NEW])
    classifier = LogisticRegression().fit(X[FIT], Y[FIT] > 0)
    with pytest.raises(InputError, match=r"Logistic.* does not predict what crps needs"):
        crps()(classifier, X[NEW], Y[NEW] > 0)
    with pytest.raises(InputError, match="y must contain classes of the estimator"):
        crps()(classifier, X[NEW], Y[NEW])
    with pytest.raises(InputError, match="estimator must be fitted"):
        crps()(BayesianRidge(), X[NEW], Y[NEW])
