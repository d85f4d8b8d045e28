"""What measures say of laws of counts that are right, and of those that are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import howsure
from howsure.core.records import Record
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet
from howsure.predictions.counts import CountFamily
from howsure.predictions.distribution import law_named
from howsure.topics.congruence.predictive import Support
from howsure.topics.congruence.view import predictive_of
from laws.worlds import COUNT_KINDS, make, make_counts

REPLICATES = 40


def records(held: EvalSet, *names: str) -> dict[str, Record]:
    return {r.metric: r for r in evaluate(held, metrics=names or None, coverages=[0.9]).records}


@pytest.fixture(scope="module", params=COUNT_KINDS)
def right(request: pytest.FixtureRequest) -> list[dict[str, Record]]:
    """Records of right models, many times."""
    rng = child(0, "right counts", request.param)
    names = ("bias", "mean_squared_z", "pit_uniformity", "calibration_error", "empirical_coverage")
    worlds = (make_counts(request.param, 400, rng, bias=1.0) for _ in range(REPLICATES))
    return [records(held, *names) for held in worlds]


@pytest.mark.parametrize("kind", COUNT_KINDS)
def test_every_measure_of_a_continuous_law_answers(kind: str) -> None:
    rng = child(1, kind)
    answered = {
        name for name, r in records(make("logistic", 157, rng)).items() if r.value == r.value
    }
    counts = records(make_counts(kind, 157, rng))
    assert {"crps", "log_score", "pit_uniformity", "calibration_error"} <= answered
    reasons = {counts[name].reason for name in answered if np.isnan(counts[name].value)}
    assert reasons <= {"0 rows are beyond the threshold, fewer than 10"}  # a tenth are 0


@pytest.mark.parametrize("kind", COUNT_KINDS)
def test_wide_laws_have_the_crps_of_their_sum(kind: str) -> None:
    """Narrow ones are summed, wide ones go through the cdf: one answer for both."""
    second = {"negative_binomial": 0.3, "double_poisson": 1e-3}
    name = law_named(kind).parameters[1]
    mu = np.array([300.0, 3_000.0, 30_000.0])
    parameters = {"mu": mu} | ({name: second[kind]} if kind in second else {})
    prediction = Distribution(kind, parameters)
    y = prediction.quantile([0.93, 0.1, 0.5]).diagonal()
    assert isinstance(prediction.law, CountFamily)
    values, shares = prediction.law.frozen(prediction.parameters).support()
    below = np.cumsum(shares, axis=1)
    want = np.square(below - (values >= y[:, None])).sum(axis=1)
    for row in range(3):
        held = EvalSet.checked(y[[row]], prediction.take(np.array([row])))
        assert records(held, "crps")["crps"].value == pytest.approx(want[row], rel=1e-6)


@pytest.mark.parametrize("kind", COUNT_KINDS)
def test_congruence_embeds_counts_exactly(kind: str) -> None:
    held = make_counts(kind, 120, child(4, kind), bias=1.0)
    (prediction,) = held.predictions
    exact = predictive_of(held, "exact")
    assert isinstance(exact, Support)
    values = np.broadcast_to(exact.values, exact.probabilities.shape)
    mean = (exact.probabilities * values).sum(axis=1)
    np.testing.assert_allclose(mean, prediction.point(), rtol=1e-8)
    spread = (exact.probabilities * (values - mean[:, None]) ** 2).sum(axis=1)
    np.testing.assert_allclose(np.sqrt(spread), prediction.sd(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COUNT_KINDS)
def test_a_table_names_a_law_of_counts(kind: str) -> None:
    held = make_counts(kind, 120, child(5, kind), bias=1.0)
    (prediction,) = held.predictions
    columns = dict(prediction.parameters)
    law = ",".join(f"{name}={name}" for name in columns)
    loaded = howsure.load({"y": held.y} | columns, law=f"{kind}:{law}")
    result = howsure.assess(loaded, options=howsure.Options(trials=False))
    for metric, record in records(held, "crps", "log_score").items():
        assert result.record(metric).value == pytest.approx(record.value, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bias", "mean_squared_z"])
def test_right_models_have_right_moments(right: list[dict[str, Record]], name: str) -> None:
    values = np.array([found[name].value for found in right])
    expected = {"bias": 0.0, "mean_squared_z": 1.0}[name]
    assert abs(values.mean() - expected) < 4.0 * values.std() / np.sqrt(REPLICATES)


@pytest.mark.slow
def test_right_models_are_calibrated(right: list[dict[str, Record]]) -> None:
    """Random ranks are uniform; shares spread over jumps lie no farther off than chance."""
    ranks = [found["pit_uniformity"].value for found in right]
    assert stats.kstest(ranks, "uniform").pvalue > 1e-3
    errors = np.array([found["calibration_error"].value for found in right])
    nulls = np.array([found["calibration_error"].null for found in right])
    assert errors.mean() < nulls.mean() + 3.0 * errors.std() / np.sqrt(REPLICATES)
    covered = np.array([found["empirical_coverage"].value for found in right])
    assert covered.min() > 0.86


@pytest.mark.parametrize("kind", COUNT_KINDS)
def test_proper_scores_of_right_models_are_their_expectation(kind: str) -> None:
    """The log score is the entropy, the CRPS half the mean gap of two draws; wrong is worse."""
    held = make_counts(kind, 4_000, child(2, kind), bias=1.0)
    wrong = make_counts(kind, 4_000, child(2, kind), bias=1.25)
    np.testing.assert_array_equal(held.y, wrong.y)
    (prediction,) = held.predictions
    assert isinstance(prediction.law, CountFamily)
    values, shares = prediction.law.frozen(prediction.parameters).support()
    below = np.cumsum(shares, axis=1)
    expected = {
        "crps": (below * (1.0 - below)).sum(axis=1).mean(),
        "log_score": stats.entropy(shares, axis=1).mean(),
    }
    names = tuple(expected)
    found, worse = records(held, *names), records(wrong, *names)
    for name, value in expected.items():
        assert abs(found[name].value - value) < 4.0 * found[name].standard_error
        assert worse[name].value > found[name].value
    assert values.shape == shares.shape


@pytest.mark.slow
@pytest.mark.parametrize("kind", COUNT_KINDS)
def test_wrong_means_are_found_out(kind: str) -> None:
    found = records(make_counts(kind, 3_000, child(3, kind), bias=1.4))
    assert found["pit_uniformity"].value < 1e-3
    assert found["calibration_error"].value > 5.0 * found["calibration_error"].null
    assert found["bias"].value > 4.0 * found["bias"].standard_error
