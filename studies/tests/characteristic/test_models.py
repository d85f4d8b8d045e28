"""The models of the paper's two problems."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from extras import needs
from howsure.core.rng import child
from howsure.metrics.characteristic.view import characteristic_view
from howsure.metrics.view import View
from howsure.predictions import EvalSet
from howsure_studies.characteristic import (
    BaggedNetworks,
    BayesianNetwork,
    ErrorModel,
    Measuring,
    QuantileBoosting,
    crossing_of,
    gap,
    measure,
    read_traffic,
)
from howsure_studies.characteristic.models import Functions
from howsure_studies.methods import method_named, method_spec

HERE = "howsure_studies.characteristic"


def test_draws_are_functions_with_noise() -> None:
    functions = Functions(lambda x: np.tile([[0.0, 10.0]], (len(x), 1)), np.array([1.0, 2.0]))
    x = np.zeros((5_000, 1))
    draws = functions.joint(x, np.random.default_rng(0), 50)
    assert draws.shape == (5_000, 2)
    np.testing.assert_allclose(draws.mean(axis=0), [0, 10], atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), [1, 2], rtol=0.05)
    assert functions.joint(x, np.random.default_rng(0), 1).shape == (5_000, 1)
    outcome = functions.predict(x).outcome
    np.testing.assert_allclose(outcome.sd(), np.sqrt(25 + 2.5))  # spread of means, mean variance
    np.testing.assert_allclose(outcome.point(), 5)


@pytest.mark.parametrize(
    "method", [BaggedNetworks(members=3), BayesianNetwork(), ErrorModel(), QuantileBoosting()]
)
def test_a_method_is_known_by_its_name_and_options(method: object) -> None:
    name = f"{HERE}:{type(method).__name__}"
    spec = method_spec(method)  # type: ignore[arg-type]
    assert method_named(name, **spec["options"]) == method


@pytest.mark.slow
def test_bagged_networks_are_unsure_in_the_gap() -> None:
    rows = gap(0, n_test=400)
    with threadpool_limits(1):
        fitted = BaggedNetworks(members=10).fit(rows.x, rows.y, child(0, "fit"))
        sd = fitted.predict(rows.x_test).outcome.sd()
    inside = np.abs(rows.x_test[:, 0]) < 0.8
    assert np.median(sd[inside]) > 2 * np.median(sd[~inside])
    assert 0.05 < np.median(sd[~inside]) < 0.3


@pytest.mark.slow
def test_a_bayesian_network_shows_the_pattern() -> None:
    """It crosses the constant band; a small gain over all, a large one at low miss rates."""
    needs("numpyro")
    rows = gap(0)
    method = BayesianNetwork(draws=150, chains=1, depth=6)
    fitted = method.fit(rows.x, rows.y, child(0, "characteristic", "fit"))
    assert "0 divergent" in fitted.notes
    outcome = fitted.predict(rows.x_test).outcome
    curve = characteristic_view(View(EvalSet.checked(rows.y_test, outcome)))
    low = (0.0, 0.5)
    whole, under = curve.gain().value, curve.partial_gain(y_range=low).value
    left = curve.partial_gain(y_range=low, reading="left").value
    assert abs(whole) < 40
    assert whole < left < under
    assert 0.1 < crossing_of(curve) < 0.4
    assert curve.at(miss_rate=0.7).bandwidth > curve.constant().at(miss_rate=0.7).bandwidth


@pytest.mark.rate
def test_traffic_shows_the_pattern(data_dir: Callable[[str], Path]) -> None:
    """Equal bands gain at low miss rates, and nothing over all; unequal ones as predicted lose."""
    rows = read_traffic(data_dir("metro_traffic"), every=4)
    told = Measuring(replicates=2)
    gains = []
    with threadpool_limits(1):
        for method in (
            QuantileBoosting(rounds=60, categories=(1, 8)),
            QuantileBoosting(rounds=60, categories=(1, 8), centred=True),
            ErrorModel(rounds=60, categories=(1, 8)),
        ):
            fitted = method.fit(rows.x, rows.y, child(0, "fit"))
            outcome = fitted.predict(rows.x_test).outcome
            curve = characteristic_view(View(EvalSet.checked(rows.y_test, outcome)))
            gains.append({r.metric: r.value for r in measure(curve, told)})
    for held in gains[1:]:
        assert abs(held["characteristic_gain"]) < 8
        assert held["characteristic_partial_gain"] > 15
        assert held["characteristic_gain"] < held["characteristic_left_gain"]
        assert held["characteristic_left_gain"] < held["characteristic_partial_gain"]
        assert 0.05 < held["crossing"] < 0.3
    assert gains[0]["characteristic_gain"] < gains[1]["characteristic_gain"]
