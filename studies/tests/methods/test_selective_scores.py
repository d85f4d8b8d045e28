"""Scores of how foreign a row looks, recomputed from their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.inputs.distributions import located
from howsure_studies.methods.interface import Predictions
from howsure_studies.methods.selective import (
    EnsembleVarianceScore,
    GMMScore,
    KNNScore,
    VarianceScore,
    accepts,
    mean_likelihood,
    prediction_rate,
    score_acceptance,
    threshold,
    threshold_rank,
)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_mixture_of_one_law_is_the_normal_density_of_mean_and_covariance() -> None:
    features = rng().normal(size=(80, 3)) @ rng(1).normal(size=(3, 3)) + 2.0
    found = GMMScore(1).fit(features, rng())(features[:9] + 0.3)
    covariance = np.cov(features.T, ddof=0) + 1e-6 * np.eye(3)
    law = multivariate_normal(features.mean(axis=0), covariance)
    np.testing.assert_allclose(found, -law.logpdf(features[:9] + 0.3), rtol=1e-9)


@pytest.mark.parametrize("components", [2, 4, 8])
def test_a_mixture_scores_minus_the_log_of_its_weighted_densities(components: int) -> None:
    features = np.concatenate([rng(k).normal(6.0 * k, 1.0, size=(40, 2)) for k in range(4)])
    fitted = GMMScore(components).fit(features, rng())
    parts = zip(
        fitted.mixture.weights_, fitted.mixture.means_, fitted.mixture.covariances_, strict=True
    )
    wanted = rng(9).normal(8.0, 9.0, size=(20, 2))
    density = sum(share * multivariate_normal(m, c).pdf(wanted) for share, m, c in parts)
    np.testing.assert_allclose(fitted(wanted), -np.log(density), rtol=1e-7)
    assert fitted.mixture.weights_.shape == (components,)


def test_a_mixture_is_drawn_from_the_generator_alone() -> None:
    features = rng().normal(size=(120, 4))
    np.random.seed(3)  # noqa: NPY002 - a legacy draw must change nothing
    first = GMMScore().fit(features, rng(5))(features)
    np.random.seed(4)  # noqa: NPY002
    again = GMMScore().fit(features, rng(5))(features)
    assert (first == again).all()


def test_features_that_do_not_spread_are_cut_and_the_fit_says_so() -> None:
    thin = rng().normal(size=(200, 2)) * 1e9 @ np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    fitted = GMMScore(1).fit(thin, rng())
    assert fitted.notes == ("singular: features cut to 1 principal components",)
    assert np.isfinite(fitted(thin)).all()
    wide = GMMScore(1).fit(rng().normal(size=(50, 3)), rng())
    assert wide.notes == ()
    asked = GMMScore(1, dimensions=2).fit(rng().normal(size=(50, 3)), rng())
    assert asked.notes == ("features cut to 2 principal components",)


def test_constant_features_have_a_density_all_the_same() -> None:
    fitted = GMMScore(2).fit(np.ones((30, 2)), rng())
    assert fitted([[1.0, 1.0]])[0] < fitted([[2.0, 1.0]])[0]


@pytest.mark.parametrize("metric", ["angular", "euclidean"])
@pytest.mark.parametrize("neighbours", [1, 5, 20])
@pytest.mark.parametrize("width", [2, 30])
def test_knn_is_the_mean_of_the_smallest_distances(
    metric: str, neighbours: int, width: int
) -> None:
    train, test = rng().normal(size=(60, width)), rng(1).normal(size=(25, width))
    cosine = (test / np.linalg.norm(test, axis=1)[:, None]) @ (
        train / np.linalg.norm(train, axis=1)[:, None]
    ).T
    apart = np.sqrt(2.0 - 2.0 * cosine)
    if metric == "euclidean":
        apart = np.linalg.norm(test[:, None] - train[None], axis=2)
    expected = np.sort(apart, axis=1)[:, :neighbours].mean(axis=1)
    found = KNNScore(neighbours, metric).fit(train, rng())(test)
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_a_zero_feature_is_at_right_angles_to_all() -> None:
    fitted = KNNScore(2).fit([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], rng())
    np.testing.assert_allclose(fitted([[0.0, 0.0]]), [math.sqrt(2.0)])
    np.testing.assert_allclose(fitted([[3.0, 0.0]]), [math.sqrt(2.0) / 2.0], atol=1e-12)


@given(scale=st.floats(1e-3, 1e3), seed=st.integers(0, 99))
@examples(20)
def test_angles_do_not_depend_on_the_unit_of_features(scale: float, seed: int) -> None:
    train, test = rng(seed).normal(size=(30, 4)), rng(seed + 1).normal(size=(9, 4))
    plain = KNNScore(3).fit(train, rng())(test)
    np.testing.assert_allclose(KNNScore(3).fit(scale * train, rng())(scale * test), plain)
    lengths = KNNScore(3, "euclidean").fit(train, rng())(test)
    scaled = KNNScore(3, "euclidean").fit(scale * train, rng())(scale * test)
    np.testing.assert_allclose(scaled, scale * lengths)


def test_the_mean_likelihood_is_the_mean_of_densities() -> None:
    scores = rng().normal(2.0, 3.0, size=(5, 30))
    np.testing.assert_allclose(mean_likelihood(scores), -np.log(np.exp(-scores).mean(axis=0)))
    far = mean_likelihood([[2000.0, np.inf], [2001.0, np.inf]])
    assert far[0] == pytest.approx(2000.0 - math.log((1 + math.exp(-1)) / 2))
    assert far[1] == np.inf
    with pytest.raises(InputError, match="scores must contain no missing values"):
        mean_likelihood([[math.nan]])


def test_variance_scores_come_from_predictions() -> None:
    law = located("norm", np.zeros(3), np.array([1.0, 3.0, 2.0]))
    other = located("norm", np.zeros(3), np.array([0.1, 0.3, 0.2]))
    assert VarianceScore().of(Predictions(law)).tolist() == [1.0, 3.0, 2.0]
    assert EnsembleVarianceScore().of(Predictions(law, other)).tolist() == [0.1, 0.3, 0.2]
    with pytest.raises(UnanswerableError, match="predicts no distribution of the mean"):
        EnsembleVarianceScore().of(Predictions(law))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GMMScore(0), "components must be a whole number of at least 1, got 0"),
        (lambda: GMMScore(True), "components must be a whole number of at least 1, got True"),
        (lambda: GMMScore(2, dimensions=0), "dimensions must be a whole number of at least 1"),
        (lambda: KNNScore(-1), "neighbours must be a whole number of at least 1, got -1"),
        (lambda: KNNScore(3, "cosine"), "metric must be 'angular' or 'euclidean', got 'cosine'"),
        (lambda: GMMScore(4).fit(np.ones((3, 1)), rng()), "at least 4 rows for 4 components"),
        (lambda: KNNScore(4).fit(np.ones((3, 1)), rng()), "at least 4 rows for as many"),
        (
            lambda: GMMScore(1).fit([[1.0], [math.nan]], rng()),
            "features must contain finite numbers",
        ),
        (lambda: KNNScore(1).fit(np.ones((3, 2)), rng())([[1.0]]), "must have 2 columns, got 1"),
        (lambda: GMMScore(1).fit(np.eye(3), rng())([[1.0]]), "must have 3 columns, got 1"),
        (lambda: threshold([]), "scores must have at least one row"),
        (lambda: threshold([1.0, math.nan]), "scores must contain no missing values"),
        (lambda: threshold([1.0], share=95), "share must be strictly between 0 and 1, got 95"),
    ],
)
def test_bad_input_is_told(make: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_the_threshold_is_a_plain_order_statistic() -> None:
    for n in range(1, 300):
        scores = rng(n).normal(size=n)
        place = (95 * n) // 100
        assert threshold_rank(n) == place + 1
        assert threshold(scores) == np.sort(scores)[place]
        assert accepts(scores, threshold(scores)).sum() == place + 1


def test_equal_scores_are_all_accepted() -> None:
    assert prediction_rate(np.full(50, 3.0), threshold(np.full(50, 3.0))) == 1.0
    assert threshold([np.inf, 1.0], 0.5) == np.inf


@given(seed=st.integers(0, 999))
@examples(30)
def test_a_rising_change_of_the_score_leaves_acceptance(seed: int) -> None:
    val, test = rng(seed).normal(size=40), rng(seed + 1).normal(0.7, 1.0, size=60)
    val[:5] = val[5:10]
    plain = accepts(test, threshold(val))
    assert (accepts(np.exp(3 * test) - 1, threshold(np.exp(3 * val) - 1)) == plain).all()


def test_risk_and_coverage_come_from_the_scores() -> None:
    loss, scores = np.array([3.0, 1.0, 2.0, 8.0]), np.array([0.2, 0.1, 0.4, 0.3])
    curve = score_acceptance(loss, scores).curve(at=())
    np.testing.assert_allclose(curve.prediction_rate, [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve.risk, [1.0, 2.0, 4.0, 3.5])
    limit = threshold(scores, 0.5)
    kept = accepts(scores, limit)
    assert loss[kept].mean() == score_acceptance(loss, scores).risk(kept.mean())
