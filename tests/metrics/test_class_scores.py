"""Scores of class probabilities beside scikit-learn, brute force and simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from howsure.core.errors import InputError
from howsure.core.weights import Weights
from howsure.stats.binomial import wilson
from howsure.topics.classes.questions import draw_classes
from howsure.topics.classes.scores import (
    auc,
    brier_score,
    ece,
    fit_curve,
    frequency_forecast,
    log_loss,
    mean_interval,
    net_benefit,
    squared_calibration_error,
)


@pytest.mark.parametrize("k", [2, 5])
def test_scores_are_those_of_scikit_learn(k: int) -> None:
    rng = np.random.default_rng(k)
    p = special.softmax(rng.normal(size=(80, k)), axis=1)
    y = draw_classes(p, rng.random((80, 1)))[:, 0]
    sent = p[:, 1] if k == 2 else p
    classes = list(range(k))
    assert brier_score(p, y).mean() == pytest.approx(brier_score_loss(y, sent, labels=classes))
    assert log_loss(p, y).mean() == pytest.approx(sklearn_log_loss(y, p, labels=classes))
    assert log_loss(np.array([[1.0, 0.0]]), np.array([1]))[0] == np.inf


def test_frequencies_leave_the_row_out() -> None:
    y = np.array([0, 0, 0, 1])
    np.testing.assert_allclose(
        frequency_forecast(y, 2), [[2 / 3, 1 / 3]] * 3 + [[3 / 3.5, 0.5 / 3.5]]
    )


def test_auc_of_few_misplaced_rows_is_no_more_certain_than_a_share() -> None:
    claims = np.linspace(0.01, 0.99, 100)
    came = claims > 0.5
    came[[48, 51]] = [True, False]
    estimate = auc(claims, came)
    share = wilson(50 * estimate.value, 50)
    assert estimate.error < 0.002
    assert (estimate.lower, estimate.upper) == pytest.approx((float(share[0]), float(share[1])))


def test_auc_by_pairs_and_its_error_by_jackknife() -> None:
    rng = np.random.default_rng(2)
    claims = rng.random(60).round(1)
    came = rng.random(60) < claims
    pairs = [(a > b) + (a == b) / 2 for a, b in itertools.product(claims[came], claims[~came])]
    estimate = auc(claims, came)
    assert estimate.value == pytest.approx(np.mean(pairs))
    assert estimate.value == pytest.approx(roc_auc_score(came, claims))
    without = [auc(np.delete(claims, row), np.delete(came, row)).value for row in range(60)]
    jackknife = np.sqrt(59 / 60 * np.square(np.array(without) - np.mean(without)).sum())
    assert estimate.error == pytest.approx(jackknife, rel=0.05)
    assert estimate.lower < estimate.value < estimate.upper
    weights = rng.integers(1, 4, 60)
    again = np.repeat(np.arange(60), weights)
    weighted = auc(claims, came, weights=Weights.checked(weights))
    assert weighted.value == pytest.approx(auc(claims[again], came[again]).value)
    apart = auc(np.array([0.1, 0.2, 0.8]), np.array([0, 0, 1]) == 1)
    assert (apart.value, apart.upper) == (1.0, 1.0)
    assert apart.lower < 0.5


def test_calibration_errors_by_hand_and_beside_perfect_models() -> None:
    rng = np.random.default_rng(3)
    claims = rng.random(500)
    came = rng.random(500) < claims
    by_hand = 0.0
    for low in np.arange(10) / 10:
        inside = (claims >= low) & (claims < low + 0.1)
        by_hand += abs(came[inside].mean() - claims[inside].mean()) * inside.mean()
    estimate = ece(claims, came, bins=10)
    assert estimate.value == pytest.approx(by_hand)
    perfect = [ece(claims, rng.random(500) < claims, bins=10).value for _ in range(20)]
    assert estimate.null == pytest.approx(np.mean(perfect), abs=0.006)
    assert estimate.null_lower < estimate.null < estimate.null_upper
    square = squared_calibration_error(claims, came, bins=10)
    assert square.null == pytest.approx(0.0, abs=3e-4)
    residuals = (came - claims)[np.argsort(claims)].reshape(10, 50)
    off = [(r[:, None] * r).sum() - (r * r).sum() for r in residuals]
    assert square.value == pytest.approx(np.sum(off) / 49 / 500)
    wrong = squared_calibration_error(claims, rng.random(500) < 0.5, bins=10)
    assert wrong.value == pytest.approx(1 / 12, abs=0.03)
    assert wrong.p < 0.01


def test_curve_is_a_logistic_regression() -> None:
    rng = np.random.default_rng(4)
    claims = rng.uniform(0.05, 0.95, 2_000)
    logit = special.logit(claims)
    came = rng.random(2_000) < special.expit(0.4 + 0.7 * logit)
    fit = fit_curve(claims, came)
    peer = LogisticRegression(C=np.inf).fit(logit[:, None], came)
    assert fit.slope == pytest.approx(peer.coef_[0, 0], abs=1e-3)
    assert fit.intercept == pytest.approx(peer.intercept_[0], abs=1e-3)
    expected = special.expit(fit.intercept + fit.slope * special.logit(fit.claims))
    np.testing.assert_allclose(fit.fitted, expected)
    assert fit.bound > 0.05
    right = fit_curve(claims, rng.random(2_000) < claims)
    assert right.bound < 0.04
    one = fit_curve(np.full(50, 0.3), np.arange(50) < 15)
    assert one.fitted[0] == pytest.approx(0.3, abs=1e-4)
    assert (one.lower[0], one.upper[0]) == pytest.approx((0.19, 0.44), abs=0.02)


def test_curves_hold_by_simulation() -> None:
    """Pointwise: 95 % and three errors of 100 tables; of clusters too."""
    rng = np.random.default_rng(5)
    held = np.zeros((2, 3))
    for _ in range(100):
        claims = rng.uniform(0.1, 0.9, 200)
        cluster = np.arange(200) // 5
        latent = np.sqrt(0.5) * rng.normal(size=40)[cluster] + np.sqrt(0.5) * rng.normal(size=200)
        at = np.array([0.2, 0.5, 0.8])
        truth = special.expit(0.2 + 0.8 * special.logit(at))
        chance = special.expit(0.2 + 0.8 * special.logit(claims))
        for row, (came, units) in enumerate(
            [(rng.random(200) < chance, None), (special.ndtr(latent) < chance, cluster)]
        ):
            fit = fit_curve(claims, came, at, units)
            held[row] += (fit.lower <= truth) & (truth <= fit.upper)
    assert (held >= 95 - 3 * np.sqrt(95 * 5 / 100)).all()


def test_net_benefit_by_hand() -> None:
    claims = np.array([0.1, 0.3, 0.6, 0.9])
    came = np.array([0, 0, 1, 1]) == 1
    benefit = net_benefit(claims, came, 0.25)
    assert benefit.benefit == pytest.approx(2 / 4 - 1 / 4 / 3)
    assert benefit.of_all == pytest.approx(2 / 4 - 2 / 4 / 3)
    assert benefit.beyond == pytest.approx(1 / 4 / 3)
    assert benefit.lower < benefit.benefit < benefit.upper
    assert benefit.fitted_lower < benefit.fitted < benefit.fitted_upper
    with pytest.raises(InputError, match="strictly between 0 and 1"):
        net_benefit(claims, came, 1.0)


def test_interval_without_errors_reaches_what_may_happen() -> None:
    """No error in 50 rows at 99.5 %: a shift of the odds that gives 3.8 times 1.96 errors of 0."""
    p = np.repeat([[0.005, 0.995]], 50, axis=0)
    y = np.ones(50, dtype=np.int64)
    given = np.square(np.array([[0.995], [0.005]])).T.repeat(50, axis=0)
    low, high = mean_interval(brier_score(p, y), p, y, given)
    rate = 1.96**2 / (50 + 1.96**2)
    assert low == pytest.approx(0.005**2)
    assert high == pytest.approx(rate * 0.995**2 + (1 - rate) * 0.005**2, rel=1e-3)


@pytest.mark.rate
@pytest.mark.parametrize("name", ["uniform", "rare", "near-certain", "k10"])
@pytest.mark.parametrize("n", [50, 200, 1_000])
def test_intervals_of_scores_hold(name: str, n: int) -> None:
    """Brier and log loss of perfect models: at least 92 % of 600 tables, less three errors."""
    rng = np.random.default_rng(6)

    def law(n: int) -> np.ndarray:
        if name == "k10":
            return np.asarray(special.softmax(2.5 * rng.normal(size=(n, 10)), axis=1))
        claims = {
            "uniform": lambda: rng.random(n),
            "rare": lambda: rng.uniform(0.01, 0.05, n),
            "near-certain": lambda: special.expit(rng.choice([-1, 1], n) * rng.normal(5, 1, n)),
        }[name]()
        return np.column_stack([1 - claims, claims])

    def given(p: np.ndarray) -> list[np.ndarray]:
        k = p.shape[1]
        columns = [np.full(len(p), code) for code in range(k)]
        return [np.stack([score(p, y) for y in columns], 1) for score in (brier_score, log_loss)]

    many = law(400_000)
    truth = [(many * score).sum(1).mean() for score in given(many)]
    held = np.zeros(2)
    for _ in range(600):
        p = law(n)
        y = draw_classes(p, rng.random((n, 1)))[:, 0]
        for place, score in enumerate(given(p)):
            low, high = mean_interval(score[np.arange(n), y], p, y, score)
            held[place] += low <= truth[place] <= high
    assert (held / 600 >= 0.92 - 3 * np.sqrt(0.92 * 0.08 / 600)).all(), held / 600
