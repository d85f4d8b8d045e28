"""CRPS of quantiles and samples against definitions, quadrature and simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.metrics import crps, log_score
from howsure.predictions import Distribution, Quantiles, Samples
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


def brute_force(y: float, cdf: Callable[[np.ndarray], np.ndarray]) -> float:
    """∫ (F(t) − 1{y ≤ t})² dt on a fine grid."""
    grid = np.linspace(-30.0, 30.0, 600_001)
    return float(np.trapezoid(np.square(cdf(grid) - (y <= grid)), grid))


def test_crps_of_each_kind_is_the_integral() -> None:
    y, place, scale = Y[:6], RNG.normal(size=6), np.exp(0.3 * RNG.normal(size=6))
    draws = RNG.normal(size=(6, 5))
    laws = [stats.norm(m, s) for m, s in zip(place, scale, strict=True)]
    expected = [brute_force(at, law.cdf) for at, law in zip(y, laws, strict=True)]
    normal = Distribution.normal(place, scale)
    assert crps(y, normal) == pytest.approx(expected, abs=2e-4)
    counts = np.array([2.0, 0.0, 7.0])
    expected = [brute_force(at, stats.poisson(3.0).cdf) for at in counts]
    poisson = Distribution("poisson", {"mu": np.full(3, 3.0)})
    assert crps(counts, poisson) == pytest.approx(expected, abs=5e-4)
    steps = [
        brute_force(at, lambda t, row=row: np.searchsorted(row, t, "right") / 5)
        for at, row in zip(y, np.sort(draws, axis=1), strict=True)
    ]
    assert crps(y, Samples(draws), fair=False) == pytest.approx(steps, abs=5e-4)
    fine = (np.arange(4_000) + 0.5) / 4_000
    assert crps(y, Quantiles(fine, normal.quantile(fine))) == pytest.approx(
        crps(y, normal), rel=2e-3
    )


def test_crps_of_each_kind_is_that_of_its_numbers() -> None:
    table, levels = np.sort(RNG.normal(size=(40, 4)), axis=1), np.array([0.1, 0.25, 0.6, 0.9])
    pairs = [
        (crps(Y, Distribution.normal(Y + 1.0, np.ones(40))), crps_normal(Y, Y + 1.0, np.ones(40))),
        (crps(Y, Samples(table), fair=True), crps_samples(Y, table)),
        (crps(Y, Samples(table)), crps_samples(Y, table, fair=False)),
        (crps(Y, Quantiles(levels, table)), crps_quantiles(Y, table, levels)),
    ]
    for got, want in pairs:
        np.testing.assert_array_equal(got, want)


def test_a_score_is_the_measure_of_its_name() -> None:
    table = np.sort(RNG.normal(size=(40, 6)), axis=1)
    for prediction in (
        Distribution.normal(Y + 1.0, np.ones(40)),
        Samples(table),
        Quantiles(np.array([0.1, 0.25, 0.4, 0.5, 0.6, 0.9]), table),
    ):
        report = howsure.assess(Y, prediction, options=howsure.Options(trials=False))
        assert report.value("crps") == pytest.approx(crps(Y, prediction).mean())
    fair = crps(Y, Samples(table), fair=True).mean()
    report = howsure.assess(Y, Samples(table), options=howsure.Options(trials=False))
    assert report.value("crps_fair") == pytest.approx(fair)


def test_log_scores_are_minus_the_log_density() -> None:
    normal = Distribution.normal(Y + 1.0, np.full(40, 2.0))
    assert log_score(Y, normal) == pytest.approx(-stats.norm.logpdf(Y, Y + 1.0, 2.0))
    poisson = Distribution("poisson", {"mu": np.full(2, 3.0)})
    assert log_score([2.0, 0.0], poisson) == pytest.approx(-stats.poisson.logpmf([2, 0], 3.0))
    uniform = Distribution("uniform", {"loc": np.zeros(1), "scale": np.ones(1)})
    assert log_score([2.0], uniform) == [np.inf]


@pytest.mark.parametrize("prediction", [Samples(np.zeros((40, 3))), np.zeros((40, 3)), None])
def test_what_has_no_density_is_refused(prediction: object) -> None:
    kind = prediction.kind if isinstance(prediction, Samples) else type(prediction).__name__
    with pytest.raises(InputError, match=f"^prediction must be distributions.* got {kind}"):
        log_score(Y, prediction)  # type: ignore[arg-type]


@pytest.mark.parametrize("score", [crps, log_score])
def test_lengths_must_agree(score: Callable[..., object]) -> None:
    with pytest.raises(InputError, match="y must have"):
        score(Y[:39], Distribution.normal(Y, np.ones(40)))


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
