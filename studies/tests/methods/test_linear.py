"""Linear intervals against textbook formulas, and the exactness that theory promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.predictions import Prediction
from howsure_studies.methods.interface import Predictions
from howsure_studies.methods.linear import BayesianRidge, LinearT

RNG = np.random.default_rng(0)


def mean_of(predictions: Predictions) -> Prediction:
    assert predictions.mean is not None
    return predictions.mean


def textbook(
    x: np.ndarray, y: np.ndarray, new: np.ndarray, coverage: float, *, intercept: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forecast and half-widths for the mean and for a new y, by the normal equations."""
    one = [np.ones(len(x))] if intercept else []
    design = np.column_stack([*one, x])
    at = np.column_stack([*([np.ones(len(new))] if intercept else []), new])
    inverse = np.linalg.inv(design.T @ design)
    slopes = inverse @ design.T @ y
    freedom = len(y) - design.shape[1]
    variance = np.square(y - design @ slopes).sum() / freedom
    leverage = np.einsum("ij,jk,ik->i", at, inverse, at)
    t = stats.t.ppf(0.5 + coverage / 2, freedom)
    return at @ slopes, t * np.sqrt(variance * leverage), t * np.sqrt(variance * (1 + leverage))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d", [1, 4])
def test_t_intervals_match_the_normal_equations(intercept: bool, d: int) -> None:
    x, new = RNG.normal(3, 10, size=(15, d)), RNG.normal(3, 10, size=(6, d))
    y = x @ np.arange(1, d + 1) + 2 + RNG.normal(size=15)
    predictions = LinearT(intercept).fit(x, y, RNG).predict(new)
    for coverage in (0.5, 0.8, 0.99):
        center, mean, outcome = textbook(x, y, new, coverage, intercept=intercept)
        for prediction, half in ((mean_of(predictions), mean), (predictions.outcome, outcome)):
            lower, upper = prediction.interval(coverage)
            np.testing.assert_allclose(lower, center - half, rtol=1e-9)
            np.testing.assert_allclose(upper, center + half, rtol=1e-9)


def test_one_input_matches_scipy() -> None:
    x = RNG.uniform(size=20)
    y = 3 * x + 1 + RNG.normal(size=20)
    line = stats.linregress(x, y)
    at_zero = mean_of(LinearT().fit(x[:, None], y, RNG).predict([[0.0]]))
    half = stats.t.ppf(0.95, 18) * line.intercept_stderr
    lower, upper = at_zero.interval(0.9)
    assert lower[0] == pytest.approx(line.intercept - half)
    assert upper[0] == pytest.approx(line.intercept + half)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.rate
def test_t_intervals_are_exact_at_every_point_for_few_rows(intercept: bool) -> None:
    """Five rows, fixed x: intervals cover 80 % at each x, of the mean and of a new y."""
    x = np.array([[-2.0], [-1.0], [0.5], [1.0], [2.0]])
    new = np.array([[-3.0], [0.1], [2.0]])
    rng, trials = np.random.default_rng(1), 3000
    mean, outcome = np.zeros(3), np.zeros(3)
    for _ in range(trials):
        predictions = (
            LinearT(intercept).fit(x, 1.5 * x[:, 0] + rng.normal(size=5), rng).predict(new)
        )
        truth = 1.5 * new[:, 0]
        low, high = mean_of(predictions).interval(0.8)
        mean += (low <= truth) & (truth <= high)
        low, high = predictions.outcome.interval(0.8)
        outcome += stats.norm.cdf(high - truth) - stats.norm.cdf(low - truth)
    error = math.sqrt(0.16 / trials)
    assert (np.abs(mean / trials - 0.8) < 4 * error).all()
    assert (np.abs(outcome / trials - 0.8) < 4 * error).all()


def test_related_columns_are_one_column() -> None:
    x, new = RNG.normal(size=(12, 2)), RNG.normal(size=(4, 2))
    y = x[:, 0] + RNG.normal(size=12)
    doubled = np.column_stack([x, x[:, 0] - 2 * x[:, 1], np.ones(12)])
    at = np.column_stack([new, new[:, 0] - 2 * new[:, 1], np.ones(4)])
    plain = LinearT().fit(x, y, RNG).predict(new)
    more = LinearT().fit(doubled, y, RNG).predict(at)
    for one, two in ((plain.outcome, more.outcome), (mean_of(plain), mean_of(more))):
        np.testing.assert_allclose(np.stack(one.interval(0.9)), np.stack(two.interval(0.9)))
    at[0, 2] += 1
    with pytest.raises(InputError, match="got 1 rows that do not"):
        LinearT().fit(doubled, y, RNG).predict(at)


def test_columns_of_very_different_size() -> None:
    x = RNG.normal(size=(20, 2)) * [1e-8, 1e8] + [0.0, 1e9]
    y = x[:, 0] * 1e8 + x[:, 1] * 1e-8 + RNG.normal(size=20)
    center, _, half = textbook(
        (x - [0.0, 1e9]) * [1e8, 1e-8], y, (x - [0.0, 1e9]) * [1e8, 1e-8], 0.9, intercept=True
    )
    lower, upper = LinearT().fit(x, y, RNG).predict(x).outcome.interval(0.9)
    np.testing.assert_allclose(lower, center - half, rtol=1e-6)
    np.testing.assert_allclose(upper, center + half, rtol=1e-6)


def test_too_few_rows_for_a_line() -> None:
    with pytest.raises(InputError, match="more rows than the line has coefficients"):
        LinearT().fit([[0.0], [1.0]], [0.0, 1.0], RNG)
    with pytest.raises(InputError, match="2 columns"):
        LinearT().fit(RNG.normal(size=(9, 2)), np.arange(9.0), RNG).predict([[1.0]])


def test_a_constant_input_leaves_the_mean() -> None:
    y = np.array([1.0, 2.0, 3.0, 6.0])
    lower, upper = mean_of(LinearT().fit(np.ones((4, 1)), y, RNG).predict([[1.0]])).interval(0.9)
    half = stats.t.ppf(0.95, 3) * y.std(ddof=1) / 2
    assert (float(lower[0]), float(upper[0])) == pytest.approx((3 - half, 3 + half))


def test_ridge_variance_is_that_of_the_posterior() -> None:
    """(noise precision × Z′Z + λ)⁻¹ for the slopes, 1/(n × precision) for the intercept."""
    from sklearn.linear_model import BayesianRidge as Ridge

    x, new = RNG.normal(5, 3, size=(30, 3)), RNG.normal(5, 3, size=(5, 3))
    y = x @ [1.0, 0.0, -2.0] + 7 + RNG.normal(size=30)
    z, at = ((v - x.mean(axis=0)) / x.std(axis=0) for v in (x, new))
    target = (y - y.mean()) / y.std()
    model = Ridge().fit(z, target)
    posterior = np.linalg.inv(model.alpha_ * z.T @ z + model.lambda_ * np.eye(3))
    slopes = model.alpha_ * posterior @ z.T @ target
    own = np.einsum("ij,jk,ik->i", at, posterior, at) + 1 / (30 * model.alpha_)
    predictions = BayesianRidge().fit(x, y, RNG).predict(new)
    np.testing.assert_allclose(
        predictions.outcome.point(), y.mean() + y.std() * at @ slopes, rtol=1e-4
    )
    np.testing.assert_allclose(mean_of(predictions).sd(), y.std() * np.sqrt(own), rtol=1e-4)
    np.testing.assert_allclose(
        predictions.outcome.sd(), y.std() * np.sqrt(own + 1 / model.alpha_), rtol=1e-4
    )


def test_ridge_with_many_rows_is_least_squares() -> None:
    x = RNG.normal(size=(2000, 2))
    y = x @ [1.0, 2.0] + 3 + RNG.normal(size=2000)
    ridge, line = (m.fit(x, y, RNG).predict(x[:9]) for m in (BayesianRidge(), LinearT()))
    for one, two in ((ridge.outcome, line.outcome), (mean_of(ridge), mean_of(line))):
        widths = [np.subtract(*prediction.interval(0.8)[::-1]) for prediction in (one, two)]
        np.testing.assert_allclose(widths[0], widths[1], rtol=5e-3)


def test_ridge_refuses_a_constant_y() -> None:
    with pytest.raises(InputError, match="y must not be constant"):
        BayesianRidge().fit(RNG.normal(size=(9, 1)), np.ones(9), RNG)
