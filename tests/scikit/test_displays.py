"""Displays hold the numbers that they draw, on axes of their own or those given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import BayesianRidge, LinearRegression

import howsure
from extras import needs
from howsure.core.errors import InputError
from howsure.sklearn import CalibrationDisplay, CoverageDisplay, WidthDisplay

matplotlib = needs("matplotlib")
pyplot = needs("matplotlib.pyplot")

RNG = np.random.default_rng(0)
N = 120
SD = RNG.uniform(0.5, 2.0, size=N)
Y = SD * RNG.normal(size=N)
NORMAL = howsure.Distribution.normal(np.zeros(N), SD)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """No display changes what is set for all figures."""
    pyplot.switch_backend("agg")
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    pyplot.close("all")


def lines(ax: Any) -> dict[str, Any]:
    return {line.get_label(): line.get_xydata() for line in ax.lines}


@pytest.mark.slow
def test_calibration_draws_shares_below_each_quantile_with_a_band() -> None:
    _, ax = pyplot.subplots()
    display = CalibrationDisplay.from_predictions(Y, NORMAL, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    (drawn,) = (xy for name, xy in lines(ax).items() if name == "model")
    pit = stats.norm.cdf(Y / SD)
    inner = drawn[(drawn[:, 0] > 0) & (drawn[:, 0] < 1)]
    below = [(pit <= level).mean() for level in inner[:, 0]]
    np.testing.assert_allclose(inner[:, 1], below, atol=1.5 / N)
    assert len(inner) > 10
    assert ax.collections  # the band


@pytest.mark.slow
def test_coverage_draws_a_point_and_its_interval_for_each_group() -> None:
    side = np.where(np.arange(N) < N // 2, "one", "two")
    display = CoverageDisplay.from_predictions(Y, NORMAL, coverage=0.8, groups={"side": side})
    hit = np.abs(Y) <= SD * stats.norm.ppf(0.9)
    expected = {hit.mean(), hit[side == "one"].mean(), hit[side == "two"].mean()}
    drawn = np.concatenate([xy[:, 0] for xy in lines(display.ax_).values()])
    assert all(np.isclose(drawn, share).any() for share in expected)
    bars = [bar for held in display.ax_.collections for bar in held.get_segments()]
    whole = stats.binomtest(int(hit.sum()), N).proportion_ci(0.95, "exact")
    assert any(np.allclose(sorted(bar[:, 0]), whole, atol=1e-6) for bar in bars)
    again = display.plot()
    assert again is display
    assert {text.get_text() for text in display.ax_.get_yticklabels()} >= {"one", "two"}


@pytest.mark.slow
def test_an_estimator_is_asked_as_its_prediction_is_drawn() -> None:
    X = np.column_stack([SD, RNG.normal(size=N)])
    model = BayesianRidge().fit(X, Y)
    mean, sd = model.predict(X, return_std=True)
    given = WidthDisplay.from_predictions(Y, howsure.Distribution.normal(mean, sd))
    asked = WidthDisplay.from_estimator(model, X, Y)
    for one, other in zip(given.ax_.lines, asked.ax_.lines, strict=True):
        np.testing.assert_allclose(one.get_xydata(), other.get_xydata())
    assert asked.assessment.facts["Models"] == "BayesianRidge"


@pytest.mark.slow
def test_a_point_forecast_has_no_such_figure() -> None:
    X = SD[:, None]
    model = LinearRegression().fit(X, Y)
    for display in (CalibrationDisplay, WidthDisplay):
        with pytest.raises(InputError, match="prediction must give one of the curves"):
            display.from_estimator(model, X, Y)
    with pytest.raises(InputError, match="prediction must give intervals of known coverage"):
        CoverageDisplay.from_estimator(model, X, Y)
