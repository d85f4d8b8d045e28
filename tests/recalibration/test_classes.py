"""Recalibration of class probabilities beside scikit-learn and direct maximisation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, special, stats
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import InputError
from howsure.recalibration.classes import METHODS, advise_classes, learn_classes
from howsure.stats.binomial import holm
from howsure.topics.classes.questions import draw_classes, judge_classes


def table(k: int, n: int, seed: int, heat: float = 1.5) -> tuple[FloatArray, IntArray]:
    """Overconfident probabilities, and what came."""
    rng = np.random.default_rng(seed)
    p = special.softmax(1.5 * rng.normal(size=(n, k)), axis=1)
    true = special.softmax(np.log(p) / heat + 0.4 * (np.arange(k) == 0), axis=1)
    return p, draw_classes(true, rng.random((n, 1)))[:, 0]


def losses(p: FloatArray, y: IntArray) -> FloatArray:
    return np.asarray(-np.log(p[np.arange(len(y)), y]))


def test_platt_without_ridge_is_a_logistic_regression() -> None:
    p, y = table(2, 500, 0)
    logit = special.logit(p[:, 1])
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(logit[:, None], y)
    ours = learn_classes(p, y, "platt", ridge=0).apply(p)
    np.testing.assert_allclose(ours, peer.predict_proba(logit[:, None]), atol=1e-6)


def test_beta_without_ridge_is_a_logistic_regression_on_both_logarithms() -> None:
    p, y = table(2, 500, 1)
    x = np.log(p)
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(x, y)
    ours = learn_classes(p, y, "beta", ridge=0).apply(p)
    np.testing.assert_allclose(ours, peer.predict_proba(x), atol=1e-5)


@pytest.mark.parametrize("method", ["shift", "temperature", "platt", "beta"])
def test_fits_are_the_least_penalised_loss(method: str) -> None:
    """Against a general minimiser, of three classes and with the ridge."""
    p, y = table(3, 200, 2)
    parts = {"shift": [0], "temperature": [1], "platt": [0, 1], "beta": [0, 1, 2]}[method]
    sizes = [3, 1, 3]

    def moved(theta: FloatArray) -> FloatArray:
        numbers = [np.zeros(size) for size in sizes]
        at = 0
        for part in parts:
            numbers[part] = theta[at : at + sizes[part]]
            at += sizes[part]
        shift, common, own = numbers
        return np.asarray(special.softmax(np.log(p) * (1 + common + own) + shift, axis=1))

    def loss(theta: FloatArray) -> float:
        return float(losses(moved(theta), y).sum() - stats.t(3, scale=0.3).logpdf(theta).sum())

    start = np.zeros(sum(sizes[part] for part in parts))
    best = optimize.minimize(loss, start, options={"gtol": 1e-7}).x
    ours = learn_classes(p, y, method).apply(p)
    np.testing.assert_allclose(ours, moved(best), atol=1e-5)


def test_groups_are_the_least_penalised_loss() -> None:
    p, y = table(2, 200, 3)
    groups = np.arange(200) % 3

    def moved(theta: FloatArray) -> FloatArray:
        numbers = theta.reshape(4, 2)
        return np.asarray(special.softmax(np.log(p) + numbers[0] + numbers[1:][groups], axis=1))

    def loss(theta: FloatArray) -> float:
        return float(losses(moved(theta), y).sum() - stats.t(3, scale=0.3).logpdf(theta).sum())

    best = optimize.minimize(loss, np.zeros(8), options={"gtol": 1e-8}).x
    learnt = learn_classes(p, y, "group", groups)
    np.testing.assert_allclose(learnt.apply(p, groups), moved(best), atol=1e-5)
    unknown = learnt.apply(p, np.full(200, -1))
    np.testing.assert_allclose(
        unknown, special.softmax(np.log(p) + learnt.shifts, axis=1), atol=1e-12
    )


def test_isotonic_is_that_of_scikit_learn() -> None:
    p, y = table(3, 300, 4)
    learnt = learn_classes(p, y, "isotonic")
    new, _ = table(3, 50, 5)
    peers = [
        IsotonicRegression(out_of_bounds="clip").fit(p[:, code], y == code).predict(new[:, code])
        for code in range(3)
    ]
    expected = np.clip(np.stack(peers, 1), 1 / 302, 1)
    np.testing.assert_allclose(learnt.apply(new), expected / expected.sum(1, keepdims=True))


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_copies(method: str) -> None:
    p, y = table(3, 120, 6)
    groups = np.arange(120) % 2
    weights = np.random.default_rng(6).integers(1, 4, 120)
    again = np.repeat(np.arange(120), weights)
    weighted = learn_classes(p, y, method, groups, weights.astype(float))
    repeated = learn_classes(p[again], y[again], method, groups[again])
    atol = 1e-6 if method != "isotonic" else 0.01  # where the least probability knows n
    np.testing.assert_allclose(weighted.apply(p, groups), repeated.apply(p, groups), atol=atol)


def test_a_shift_gives_the_share_that_came() -> None:
    p, y = table(4, 300, 7)
    new = learn_classes(p, y, "shift", ridge=0).apply(p)
    np.testing.assert_allclose(new.mean(0), np.bincount(y) / 300, atol=1e-8)


def test_rare_classes_stay_possible() -> None:
    p = np.repeat([[0.02, 0.98]], 30, axis=0)
    y = np.ones(30, dtype=np.int64)
    for method in ("shift", "temperature", "platt", "beta", "isotonic"):
        new = learn_classes(p, y, method).apply(p)
        assert (new > 0.002).all()
        np.testing.assert_allclose(new.sum(1), 1.0)


def test_bad_methods_are_refused() -> None:
    p, y = table(2, 10, 8)
    with pytest.raises(InputError, match="one of shift, temperature"):
        learn_classes(p, y, "histogram")
    with pytest.raises(InputError, match="needs groups"):
        learn_classes(p, y, "group")


def faults_of(p: FloatArray, y: IntArray) -> dict[str, float]:
    """The questions that are significant jointly, and their p-values."""
    answers = judge_classes(p, y).answers
    names = ("level", "sureness", "shape")
    adjusted = holm([answers[name].p for name in names])
    return {name: answers[name].p for name, p in zip(names, adjusted, strict=True) if p <= 0.05}


def test_advice_is_the_simplest_that_helps() -> None:
    rng = np.random.default_rng(9)
    p = special.softmax(2 * rng.normal(size=(800, 3)), axis=1)
    hot = special.softmax(np.log(p) / 2, axis=1)
    y = draw_classes(hot, rng.random((800, 1)))[:, 0]
    advice = advise_classes(p, y, faults_of(p, y))
    assert advice is not None
    assert (advice.method, advice.proven) == ("temperature", True)
    fresh = special.softmax(2 * rng.normal(size=(4_000, 3)), axis=1)
    came = draw_classes(special.softmax(np.log(fresh) / 2, axis=1), rng.random((4_000, 1)))[:, 0]
    new = learn_classes(p, y, "temperature").apply(fresh)
    saved = (losses(fresh, came) - losses(new, came)).mean()
    assert saved == pytest.approx(advice.gain, abs=4 * advice.error)
    assert advise_classes(p, y, {}) is None


def test_advice_of_clusters_knows_that_few_rows_count() -> None:
    rng = np.random.default_rng(10)
    p = np.repeat(special.softmax(rng.normal(size=(12, 2)), axis=1), 30, axis=0)
    y = np.repeat(draw_classes(p[::30], rng.random((12, 1)))[:, 0], 30)
    cluster = np.repeat(np.arange(12), 30)
    assert advise_classes(p, y, {"level": 0.01}, clusters=cluster) is None
