"""CRPS of quantiles and samples against definitions, quadrature and simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from extras import needs
from howsure.core.errors import InputError
from howsure.topics.crps import crps_quantiles, crps_samples
from howsure.topics.crps_closed import crps_normal
from howsure.topics.crps_numeric import crps_numeric
from howsure.topics.scores import pinball_loss
from oracles import scores as oracle

RNG = np.random.default_rng(20)

Y = RNG.normal(size=40)


def test_crps_of_quantiles_is_the_trapezoid_and_tends_to_the_crps() -> None:
    levels = np.array([0.1, 0.25, 0.6, 0.9])
    table = np.sort(RNG.normal(size=(40, 4)), axis=1)
    losses = np.stack([pinball_loss(Y, table[:, j], level=p) for j, p in enumerate(levels)], axis=1)
    got = crps_quantiles(Y, table, levels)
    np.testing.assert_allclose(got, 2 * np.trapezoid(losses, levels, axis=1), rtol=1e-12)
    fine = (np.arange(4000) + 0.5) / 4000
    near = crps_quantiles(Y, np.tile(stats.norm.ppf(fine), (40, 1)), fine)
    exact = crps_normal(Y, np.zeros(40), np.ones(40))
    np.testing.assert_allclose(near, exact, rtol=2e-3)


@pytest.mark.parametrize("fair", [True, False])
def test_crps_of_samples_is_the_sum_over_pairs(fair: bool) -> None:
    samples = np.round(RNG.normal(size=(40, 7)), 1)  # with ties
    got = crps_samples(Y, samples, fair=fair)
    want = [oracle.crps_samples(y, row, fair=fair) for y, row in zip(Y, samples, strict=True)]
    np.testing.assert_allclose(got, want, atol=1e-14)
    estimator = "fair" if fair else "qd"
    theirs = needs("scoringrules").crps_ensemble(Y, samples, estimator=estimator)
    np.testing.assert_allclose(got, theirs, atol=1e-12)


def test_unfair_samples_score_their_step_function() -> None:
    samples = np.sort(RNG.normal(size=(40, 9)), axis=1)

    def cdf(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (samples[rows, None, :] <= values[:, :, None]).mean(axis=2)

    numeric = crps_numeric(Y, cdf, np.ones(40))
    np.testing.assert_allclose(crps_samples(Y, samples, fair=False), numeric, rtol=1e-6)


def test_fair_samples_estimate_the_law_whatever_their_number() -> None:
    n = 40_000
    exact = float(crps_normal([0.7], [0.0], [1.0])[0])
    for m in (2, 5):
        got = crps_samples(np.full(n, 0.7), np.random.default_rng(m).normal(size=(n, m)), fair=True)
        assert got.mean() == pytest.approx(exact, abs=4 * got.std() / np.sqrt(n))
        unfair = crps_samples(
            np.full(n, 0.7), np.random.default_rng(m).normal(size=(n, m)), fair=False
        )
        assert unfair.mean() > exact + 0.05


def test_samples_far_from_the_origin_keep_their_digits() -> None:
    samples = RNG.normal(size=(10, 50))
    near = crps_samples(np.zeros(10), samples)
    far = crps_samples(np.full(10, 1e9), samples + 1e9)
    np.testing.assert_allclose(far, near, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crps_quantiles([1], [[1]], [0.5]), "at least 2 levels"),
        (lambda: crps_samples([1], [[1]], fair=True), "at least 2 columns"),
        (lambda: crps_samples([1], [[np.inf, 1]]), "samples must contain finite"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
