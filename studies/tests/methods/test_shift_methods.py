"""Methods for another population, predictive systems, CLEAR and TabPFN, each by its definition."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LinearRegression, QuantileRegressor
from sklearn.tree import DecisionTreeRegressor

from extras import needs
from howsure.conformal.adapting import Mondrian, UniformBins
from howsure.conformal.scores import Band
from howsure.core.errors import InputError, MissingDependencyError
from howsure.core.rng import child
from howsure.predictions import Intervals, Quantiles
from howsure_studies.methods.catalogue import method_named
from howsure_studies.methods.conformal.clear import RATIOS, Clear, TwoParts, best_ratio
from howsure_studies.methods.conformal.inductive import InductiveConformal, SplitConformal
from howsure_studies.methods.conformal.predictive import ConformalPredictive
from howsure_studies.methods.conformal.weighted import CovariateShift, density_ratio
from howsure_studies.methods.tabpfn import TabPFN


def rows(n: int, seed: int, center: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    rng = child(seed, "rows")
    x = rng.normal(center, size=(n, 1))
    return x, x[:, 0] + np.exp(x[:, 0] / 2) * rng.normal(size=n)


def test_a_learnt_ratio_weighs_as_the_same_ratio_given() -> None:
    training, held, new = rows(400, 1), rows(300, 2), rows(500, 3, 0.7)[0]
    ratio = density_ratio(training[0], new)
    learnt, given = (
        SplitConformal(LinearRegression(), coverages=(0.5, 0.9), adapt=adapt).fit_for(
            training, held, new, child(0, "fit")
        )
        for adapt in (CovariateShift(), CovariateShift(ratio))
    )
    ends = [fitted.predict(new).outcome.interval(0.9) for fitted in (learnt, given)]
    assert np.array_equal(ends[0], ends[1])
    # by hand: the smallest error with 90 % of the mass of all held rows and the new one
    model = LinearRegression().fit(*training)
    errors, weights = np.abs(held[1] - model.predict(held[0])), ratio(held[0])
    for row in range(0, 500, 50):
        own = float(ratio(new[row : row + 1])[0])
        wanted = 0.9 * (weights.sum() + own)
        reached = [e for e in np.sort(errors) if weights[errors <= e].sum() >= wanted]
        expected = reached[0] if reached else math.inf
        point = float(model.predict(new[row : row + 1])[0])
        assert ends[0][1][row] == pytest.approx(point + expected, rel=1e-9)


def test_where_home_has_no_such_row_intervals_are_infinite() -> None:
    training, held = rows(300, 4), rows(200, 5)
    new = np.r_[rows(300, 6)[0], np.full((300, 1), 40.0)]
    fitted = method_named("weighted_conformal", regressor="linear", coverages=[0.9]).fit_for(
        training, held, new, child(0, "fit")
    )
    lower, upper = fitted.predict([[0.0], [40.0]]).outcome.interval(0.9)
    assert np.isfinite([lower[0], upper[0]]).all()
    assert np.isinf([lower[1], upper[1]]).all()


def test_a_method_for_elsewhere_needs_its_inputs() -> None:
    for name in ("weighted_conformal", "robust_conformal", "weighted_predictive"):
        method = method_named(name, regressor="linear")
        assert isinstance(method, InductiveConformal)
        assert method.adapt.for_elsewhere
        with pytest.raises(InputError, match=r"a method's fit_for takes these"):
            method.fit(*rows(100, 7), child(0, "fit"))
    method = SplitConformal(LinearRegression(), adapt=CovariateShift())
    with pytest.raises(InputError, match="elsewhere must have 1 column"):
        method.fit_for(rows(50, 8), rows(50, 9), np.zeros((5, 2)), child(0, "fit"))
    assert not SplitConformal(LinearRegression()).adapt.for_elsewhere


# Predictive systems


def test_quantiles_are_those_of_crepes() -> None:
    crepes = needs("crepes")
    training, held, new = rows(60, 11), rows(83, 12), rows(12, 13)[0]
    model = LinearRegression().fit(*training)
    coverages = (0.5, 0.8, 0.9)
    for sizes in (None, lambda x: 0.5 + np.abs(x[:, 0])):
        method = ConformalPredictive(model.predict, sizes, coverages=coverages)
        if sizes is None:
            found = method.fit(*held, child(0, "fit")).predict(new).outcome
        else:
            found = method.fit_for(training, held, new, child(0, "fit")).predict(new).outcome
        assert isinstance(found, Quantiles)
        peer = crepes.ConformalPredictiveSystem().fit(
            held[1] - model.predict(held[0]), None if sizes is None else sizes(held[0])
        )
        levels = found.levels[found.levels != 0.5]
        expected = peer.predict_percentiles(
            y_hat=model.predict(new),
            sigmas=None if sizes is None else sizes(new),
            lower_percentiles=(100 * levels[levels < 0.5]).tolist(),
            higher_percentiles=(100 * levels[levels > 0.5]).tolist(),
        )
        np.testing.assert_allclose(found.values[:, found.levels != 0.5], expected, rtol=1e-12)


def test_each_weighted_tail_is_the_definition() -> None:
    def ratio(x: np.ndarray) -> np.ndarray:
        return np.exp(x[:, 0])

    held, new = rows(57, 14), rows(9, 15, 0.5)[0]
    method = ConformalPredictive(
        lambda x: x[:, 0], coverages=(0.5, 0.8), adapt=CovariateShift(ratio)
    )
    found = method.fit(*held, child(0, "fit")).predict(new).outcome
    assert isinstance(found, Intervals)
    errors, weights = held[1] - held[0][:, 0], ratio(held[0])
    for row, own in enumerate(ratio(new)):
        whole = weights.sum() + own
        for column, tail in enumerate((0.25, 0.1)):
            # the mass at or below an upper quantile, the new row's own being above it
            above = [e for e in np.sort(errors) if weights[errors <= e].sum() >= (1 - tail) * whole]
            below = [e for e in np.sort(errors) if weights[errors >= e].sum() >= (1 - tail) * whole]
            high = above[0] if above else math.inf
            low = below[-1] if below else -math.inf
            assert found.upper[row, column] == pytest.approx(new[row, 0] + high, rel=1e-9)
            assert found.lower[row, column] == pytest.approx(new[row, 0] + low, rel=1e-9)


@pytest.mark.slow
def test_weights_restore_each_tail_elsewhere() -> None:
    """Errors are skewed and grow with x: one tail breaks elsewhere until rows are weighed."""

    def missed(adapt: Any, seed: int) -> np.ndarray:
        rng, found = child(seed, "tails"), []
        for _ in range(200):
            x = rng.normal(size=(300, 1))
            y = np.exp(x[:, 0] / 2) * rng.exponential(size=300)
            method = ConformalPredictive(lambda x: 0 * x[:, 0], coverages=(0.8,), adapt=adapt)
            new = rng.normal(1.0, size=(100, 1))
            prediction = method.fit(x, y, rng).predict(new).outcome
            lower, upper = prediction.interval(0.8)
            sd = np.exp(new[:, 0] / 2)
            above = np.exp(-np.maximum(upper / sd, 0))
            below = 1 - np.exp(-np.maximum(lower / sd, 0))
            found.append([below.mean(), above.mean()])
        return np.array(found)

    plain = missed(method_named("conformal_predictive").adapt, 16)  # type: ignore[attr-defined]
    assert plain.mean(axis=0)[1] > 0.15
    weighed = missed(CovariateShift(lambda x: np.exp(x[:, 0])), 17)
    error = weighed.std(axis=0) / math.sqrt(len(weighed))
    assert (weighed.mean(axis=0) <= 0.1 + 3 * error).all()
    assert weighed.mean() > 0.06


def test_a_system_of_too_few_rows_is_refused_or_infinite() -> None:
    x, y = rows(12, 18)
    with pytest.raises(InputError, match=r"calibration must leave 19 rows for a quantile at 0\.95"):
        ConformalPredictive(lambda x: x[:, 0], coverages=(0.9,)).fit(x, y, child(0, "fit"))
    groups = Mondrian(UniformBins(0, 2))
    method = ConformalPredictive(lambda x: x[:, 0], coverages=(0.5, 0.9), adapt=groups)
    found = method.fit(*rows(30, 19), child(0, "fit")).predict(x).outcome
    assert isinstance(found, Intervals)
    assert np.isinf(found.upper[:, 1]).all()
    assert np.isfinite(found.upper[:, 0]).all()


# CLEAR


def test_the_ratio_is_the_one_of_least_pinball_loss() -> None:
    """By the definition, each λ on its own; the authors' package gave the numbers of two cases."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    center, flat, far = np.sin(x), 0.3 + rng.random(50), np.abs(x) * rng.random(50)
    y = center + rng.normal(size=50) * (0.2 + 0.5 * np.abs(x))
    noise = Band(center - flat, center + 1.3 * flat, center)
    forecast = Band(center - far, center + 0.7 * far, center)
    best, least = 0.0, math.inf
    for ratio in RATIOS:
        below, above = flat + ratio * far, 1.3 * flat + ratio * 0.7 * far
        scores = np.sort(np.maximum((center - y) / below, (y - center) / above))
        scale = scores[math.ceil(51 * 0.9) - 1]
        loss = 0.0
        for end, level in ((center - scale * below, 0.05), (center + scale * above, 0.95)):
            loss += np.where(y > end, level * (y - end), (1 - level) * (end - y)).mean()
        if loss < least:
            best, least = float(ratio), loss
    found = best_ratio(y, noise, forecast, 0.9)
    assert found == best
    assert found == pytest.approx(3.910659466661318, rel=1e-12)  # of clear-uq 0.3.1


def test_intervals_are_two_parts_each_with_its_factor() -> None:
    x, y = rows(500, 20)
    method = Clear(
        DecisionTreeRegressor(max_depth=4),
        QuantileRegressor(alpha=0.0),
        members=6,
        coverages=(0.8, 0.9),
    )
    training, held = (x[:300], y[:300]), (x[300:], y[300:])
    fitted = method.fit_for(training, held, x, child(0, "fit"))
    bands, new = fitted.bands, rows(20, 21)[0]  # type: ignore[attr-defined]
    assert isinstance(bands, TwoParts)
    forecasts = np.stack([member.predict(new) for member in bands.members])
    center = np.median(forecasts, axis=0)
    widened = np.column_stack([new, center])
    for column, coverage in enumerate(method.coverages):
        low, high = (1 - coverage) / 2, (1 + coverage) / 2
        left = {
            wanted: bands.noise[
                min(bands.noise, key=lambda level, at=wanted: abs(level - at))
            ].predict(widened)
            for wanted in (low, 0.5, high)
        }
        gamma = fitted.thresholds.at(new)[:, column]  # type: ignore[attr-defined]
        both = gamma * bands.ratios[column]
        above = gamma * np.maximum(left[high] - left[0.5], 0) + both * (
            np.quantile(forecasts, high, axis=0) - center
        )
        below = gamma * np.maximum(left[0.5] - left[low], 0) + both * (
            center - np.quantile(forecasts, low, axis=0)
        )
        ends = fitted.predict(new).outcome.interval(coverage)
        np.testing.assert_allclose(ends[1], center + above, rtol=1e-6)
        np.testing.assert_allclose(ends[0], center - below, rtol=1e-6)
        at = bands(held[0])[column]
        inside = np.abs(held[1] - at.center) <= np.where(
            held[1] > at.center, at.upper - at.center, at.center - at.lower
        ) * gamma[0] * (1 + 1e-9)
        assert inside.sum() == math.ceil(201 * coverage)


@pytest.mark.slow
def test_the_ratio_follows_what_spreads_y() -> None:
    rng = child(22, "spread")
    flat, far, center = rng.uniform(0.5, 2, 2000), rng.uniform(0, 2, 2000), np.zeros(2000)
    noise, forecast = Band(-flat, flat, center), Band(-far, far, center)
    assert best_ratio(flat * rng.normal(size=2000), noise, forecast, 0.9) < 0.15
    assert best_ratio(far * rng.normal(size=2000), noise, forecast, 0.9) > 10
    both = (flat + 2 * far) * rng.normal(size=2000)
    assert best_ratio(both, noise, forecast, 0.9) == pytest.approx(2, abs=0.6)


def test_clear_refuses_what_has_no_level() -> None:
    with pytest.raises(InputError, match="quantiles must have the level of a quantile"):
        Clear(LinearRegression(), LinearRegression())
    with pytest.raises(InputError, match="members"):
        Clear(LinearRegression(), members=1)


# TabPFN


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What the package offers: normal quantiles about the training mean."""

    class TabPFNRegressor:
        def __init__(self, *, model_path: str, device: str, random_state: int) -> None:
            self.options = (model_path, device, random_state)

        def fit(self, x: np.ndarray, y: np.ndarray) -> TabPFNRegressor:
            self.n, self.mean, self.sd = len(y), y.mean(), y.std()
            return self

        def predict(self, x: np.ndarray, *, output_type: str, quantiles: list[float]) -> list[Any]:
            assert output_type == "quantiles"
            return [np.full(len(x), self.mean + self.sd * special.ndtri(q)) for q in quantiles]

    module = ModuleType("tabpfn")
    module.TabPFNRegressor = TabPFNRegressor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tabpfn", module)
    return module


def test_tabpfn_reads_weights_of_ones_own(
    stand_in: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "tabpfn-v2-regressor.ckpt"
    file.write_bytes(b"")
    x, y = rows(80, 23)
    method = method_named("tabpfn", weights=str(file), rows=50, coverages=[0.9])
    fitted = method.fit(x, y, child(0, "fit"))
    model = fitted.model  # type: ignore[attr-defined]
    assert model.options[:2] == (str(file), "cpu")
    assert model.n == 50
    prediction = fitted.predict(x[:3]).outcome
    assert prediction.levels.tolist() == pytest.approx([0.05, 0.5, 0.95])
    np.testing.assert_allclose(
        prediction.values[0], model.mean + model.sd * special.ndtri(prediction.levels)
    )
    monkeypatch.setenv("HOWSURE_TABPFN", str(file))
    assert method_named("tabpfn").fit(x, y, child(0, "fit")).predict(x).outcome.n == 80


def test_tabpfn_says_how_to_point_at_its_weights(
    stand_in: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOWSURE_TABPFN", raising=False)
    x, y = rows(20, 24)
    with pytest.raises(InputError, match=r"weights must name the file .* HOWSURE_TABPFN"):
        TabPFN().fit(x, y, child(0, "fit"))
    with pytest.raises(InputError, match="weights must be an existing file, got '/no'"):
        TabPFN(weights="/no").fit(x, y, child(0, "fit"))
    file = tmp_path / "weights.ckpt"
    file.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "tabpfn", None)
    with pytest.raises(MissingDependencyError, match="TabPFN needs the package tabpfn"):
        TabPFN(weights=str(file)).fit(x, y, child(0, "fit"))
