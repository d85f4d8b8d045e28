"""Methods around regressors against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression

from howsure.core.errors import InputError
from howsure.predictions import Intervals, Quantiles
from howsure_studies.methods.bootstrap import NaiveBootstrap
from howsure_studies.methods.quantile_regression import PredictedQuantiles, linear_quantiles
from howsure_studies.methods.regressors import GaussianProcess, PredictedSd, SplitConformal


class Shaken(RegressorMixin, BaseEstimator):
    """Least squares through the mean alone, plus a training error drawn by the random state."""

    def __init__(self, shake: float = 0.0, random_state: int | None = None) -> None:
        self.shake = shake
        self.random_state = random_state

    def fit(self, x: np.ndarray, y: np.ndarray) -> Shaken:
        error = np.random.default_rng(self.random_state).normal()
        self.value_ = float(y.mean() + self.shake * error)
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.full(len(x), self.value_)


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n, 1))
    return x, 2 * x[:, 0] + 0.5 * rng.normal(size=n)


def by_hand(
    x: np.ndarray, y: np.ndarray, new: np.ndarray, seed: int, members: int, held: int
) -> tuple[np.ndarray, np.ndarray]:
    """Members' forecasts at new x and at the rows held out, drawn as the method draws them."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(y), dtype=bool)
    chosen[rng.permutation(len(y))[:held]] = True
    own, answers = x[~chosen], y[~chosen]
    forecasts = []
    for _ in range(members):
        pick = rng.integers(len(answers), size=len(answers))
        model = LinearRegression().fit(own[pick], answers[pick])
        forecasts.append((model.predict(new), (y - model.predict(x))[chosen]))
    return np.array([f for f, _ in forecasts]), np.array([r for _, r in forecasts])


@pytest.mark.parametrize("convention", ["paper", "code"])
def test_the_bootstrap_is_algorithm_1(convention: Any) -> None:
    x, y = rows(50)
    new = np.array([[-1.0], [0.0], [2.0]])
    method = NaiveBootstrap(LinearRegression(), 7, validation=10, convention=convention)
    predictions = method.fit(x, y, np.random.default_rng(3)).predict(new)
    forecasts, residuals = by_hand(x, y, new, seed=3, members=7, held=10)
    ddof, freedom = (1, 7) if convention == "paper" else (0, 6)
    center, spread = forecasts.mean(axis=0), forecasts.var(axis=0, ddof=ddof)
    left = residuals.mean(axis=0) ** 2 - residuals.var(axis=0, ddof=ddof)
    noise = np.mean([max(value, 0.0) for value in left])
    t = stats.t.ppf(0.9, freedom)
    assert predictions.mean is not None
    for prediction, sd in (
        (predictions.mean, np.sqrt(spread)),
        (predictions.outcome, np.sqrt(spread + noise)),
    ):
        lower, upper = prediction.interval(0.8)
        np.testing.assert_allclose(lower, center - t * sd, rtol=1e-10)
        np.testing.assert_allclose(upper, center + t * sd, rtol=1e-10)


def claimed(spread: Any, shake: float) -> float:
    """Mean claimed variance of the ensemble's mean, over data sets of 30 standard normal rows."""
    method = NaiveBootstrap(Shaken(shake), members=40, validation=2, spread=spread)
    found = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        prediction = method.fit(np.zeros((32, 1)), rng.normal(size=32), rng).predict([[0.0]]).mean
        assert prediction is not None
        found.append(float(prediction.sd()[0]) ** 2)
    units = 40 if spread == "member" else 20  # a t law's variance is df/(df − 2) × scale²
    return float(np.mean(found)) * (units - 2) / units


@pytest.mark.slow
@pytest.mark.parametrize("shake", [0.0, 0.25])
def test_the_spread_of_the_mean_is_its_variance(shake: float) -> None:
    """Members that differ by training alone make the published spread too large."""
    data, resampling = 1 / 30, 29 / 900
    true = data + resampling / 20 + shake**2 / 40
    assert claimed("mean", shake) == pytest.approx(true, rel=0.12)
    true = data + (resampling + shake**2) / 40
    published = claimed("member", shake)
    assert published == pytest.approx(resampling + shake**2, rel=0.12)
    assert (published > 2 * true) == (shake > 0)


def test_conformal_half_widths_are_ranks_of_errors() -> None:
    x, y = rows(60)
    method = SplitConformal(LinearRegression(), calibration=20, coverages=(0.8, 0.9, 0.99))
    prediction = method.fit(x, y, np.random.default_rng(5)).predict([[0.3]]).outcome
    chosen = np.zeros(60, dtype=bool)
    chosen[np.random.default_rng(5).permutation(60)[:20]] = True
    model = LinearRegression().fit(x[~chosen], y[~chosen])
    errors = np.sort(np.abs(y[chosen] - model.predict(x[chosen])))
    assert isinstance(prediction, Intervals)
    for coverage in (0.8, 0.9):
        half = errors[math.ceil(21 * coverage - 1e-9) - 1]
        lower, upper = prediction.interval(coverage)
        assert upper[0] - lower[0] == pytest.approx(2 * half)
        assert (upper[0] + lower[0]) / 2 == pytest.approx(model.predict([[0.3]])[0])
    assert np.isinf(prediction.interval(0.99)).all()


@pytest.mark.slow
def test_conformal_intervals_cover_new_rows_whatever_the_law() -> None:
    """Rank 9 of 10 + 1: coverage 9/11 exactly, for a wrong model and heavy tails."""
    rng, trials = np.random.default_rng(0), 3000
    method = SplitConformal(Shaken(), calibration=10, coverages=(0.8,))
    hits = 0
    for _ in range(trials):
        y = rng.standard_t(1.5, size=14) * 3
        lower, upper = (
            method.fit(np.zeros((13, 1)), y[:-1], rng).predict([[0.0]]).outcome.interval(0.8)
        )
        hits += bool(lower[0] <= y[-1] <= upper[0])
    assert abs(hits / trials - 9 / 11) < 4 * math.sqrt(9 / 11 * 2 / 11 / trials)


def test_gaussian_processes_are_the_textbook_formula() -> None:
    x, y = rows(25)
    new = np.array([[-0.5], [0.0], [3.0]])
    fitted = GaussianProcess().fit(x, y, np.random.default_rng(0))
    predictions = fitted.predict(new)
    kernel = fitted.model.kernel_
    latent, noise = kernel.k1, kernel.k2.noise_level
    z, at = (x - x.mean()) / x.std(), (new - x.mean()) / x.std()
    gram = np.linalg.inv(latent(z) + noise * np.eye(25))
    cross = latent(at, z)
    mean = y.mean() + y.std() * cross @ gram @ ((y - y.mean()) / y.std())
    own = (np.diag(latent(at)) - np.einsum("ij,jk,ik->i", cross, gram, cross)) * y.var()
    assert predictions.mean is not None
    np.testing.assert_allclose(predictions.outcome.point(), mean, rtol=1e-6)
    np.testing.assert_allclose(predictions.mean.sd(), np.sqrt(own), rtol=1e-4)
    np.testing.assert_allclose(predictions.outcome.sd(), np.sqrt(own + noise * y.var()), rtol=1e-6)


def test_linear_quantiles_split_the_rows_as_told() -> None:
    x, y = rows(400)
    prediction = linear_quantiles((0.5, 0.8)).fit(x, y, np.random.default_rng(0)).predict(x).outcome
    assert isinstance(prediction, Quantiles)
    assert prediction.levels.tolist() == [0.1, 0.25, 0.75, 0.9]
    shares = (y[:, None] <= prediction.values).mean(axis=0)
    np.testing.assert_allclose(shares, prediction.levels, atol=0.01)
    np.testing.assert_allclose(
        prediction.values.mean(axis=0) - 2 * x.mean(),
        0.5 * stats.norm.ppf(prediction.levels),
        atol=0.1,
    )


class Fixed(RegressorMixin, BaseEstimator):
    """Predicts what it is told."""

    def __init__(self, table: Any = None) -> None:
        self.table = table

    def fit(self, x: np.ndarray, y: np.ndarray) -> Fixed:
        return self

    def predict(
        self, x: np.ndarray, return_std: bool = False, quantiles: Any = None
    ) -> tuple[np.ndarray, np.ndarray] | np.ndarray:
        if quantiles is not None:
            return np.asarray(self.table, dtype=float)
        return np.zeros(len(x)), np.asarray(self.table, dtype=float)


def test_predicted_sds_make_normal_laws() -> None:
    x, y = np.zeros((3, 1)), np.zeros(3)
    rng = np.random.default_rng(0)
    prediction = PredictedSd(Fixed([1.0, 2.0, 0.0])).fit(x, y, rng).predict(x).outcome
    lower, upper = prediction.interval(0.9)
    np.testing.assert_allclose(upper[:2], stats.norm.ppf(0.95) * np.array([1.0, 2.0]))
    assert abs(lower[2]) < 1e-80
    assert abs(upper[2]) < 1e-80
    for wrong, words in (([1.0, -1.0, 1.0], "not be negative"), ([1.0], "must have 3 rows")):
        with pytest.raises(InputError, match=words):
            PredictedSd(Fixed(wrong)).fit(x, y, rng).predict(x)


def test_predicted_quantiles_are_sorted_where_they_cross() -> None:
    x, y = np.zeros((2, 1)), np.zeros(2)
    method = PredictedQuantiles(Fixed([[0.0, 1.0], [3.0, 2.0]]), coverages=(0.8,))
    prediction = method.fit(x, y, np.random.default_rng(0)).predict(x).outcome
    assert isinstance(prediction, Quantiles)
    assert prediction.crossed_rows == 1
    assert prediction.interval(0.8)[0].tolist() == [0.0, 2.0]
