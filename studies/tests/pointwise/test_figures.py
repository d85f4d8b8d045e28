"""Figures of pointwise coverage say what their numbers say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from extras import needs
from generated import examples
from howsure.core.records import Curve
from howsure.figures import plot, to_vega
from howsure.figures.figure import HIGHLIGHT, REFERENCE, Figure, Mark
from howsure_studies.pointwise import (
    FigureWords,
    coverage_profile,
    intervals_along_x,
    share_histogram,
)
from howsure_studies.pointwise.figures import MOST_BINS, OneRun, intervals_over_truth, spread_figure

WORDS = FigureWords(name="n", question="Why?", title="T", reading="R", x="x", notes=("told",))
SHARES = st.integers(1, 300).flatmap(
    lambda n: arrays(np.float64, n, elements=st.floats(0.0, 1.0, width=32))
)


def run(n: int = 300, **options: Any) -> OneRun:
    x = np.linspace(-1.0, 1.0, n)
    mean = x**2
    given: dict[str, Any] = {
        "x": x,
        "y": mean + np.where(np.arange(n) % 10 == 0, 2.0, 0.1),
        "lower": mean - 1.0,
        "upper": mean + 1.0,
        "mean": mean,
        "true_lower": mean - 0.5,
        "true_upper": mean + 0.5,
    }
    return OneRun(**{**given, **options})


def marks(figure: Figure, series: str) -> Any:
    return next(layer for layer in figure.layers if layer.series == series)


@examples(60)
@given(values=SHARES, coverage=st.floats(0.05, 0.95))
def test_histograms_count_everything_once(values: np.ndarray, coverage: float) -> None:
    figure = share_histogram({"a": values}, coverage, WORDS, places={"a": 3}, of="trials")
    bars, rule = figure.layers
    assert bars.y.sum() == pytest.approx(1.0)
    assert bars.colour == 3
    assert 1 < len(bars.y) <= MOST_BINS + 1
    widths = bars.upper - bars.lower
    np.testing.assert_allclose(widths, widths[0])
    assert figure.x.domain is not None
    low, high = figure.x.domain
    assert 0 <= low <= min(values.min(), coverage) + 1e-9
    assert max(values.max(), coverage) - 1e-9 <= high <= 1
    assert rule.x.tolist() == [coverage]
    for left, right, share in zip(bars.lower, bars.upper, bars.y, strict=True):
        last = math.isclose(right, high)
        inside = (values >= left) & ((values <= right) if last else (values < right))
        assert share == pytest.approx(inside.mean())
    assert to_vega(figure)


def test_several_methods_are_outlines_that_begin_and_end_at_zero() -> None:
    shares = {"a": np.array([0.1, 0.2]), "b": np.array([0.8, 0.9])}
    figure = share_histogram(shares, 0.9, WORDS, places={"a": 0, "b": 1}, of="points")
    for place, name in enumerate(shares):
        outline = marks(figure, name)
        assert outline.mark is Mark.STEP
        assert outline.colour == place
        assert outline.y[0] == outline.y[-1] == 0.0
        assert outline.y.sum() == pytest.approx(1.0)
    assert [item.label for item in figure.legend()] == ["a", "b", "nominal 90 %"]
    assert figure.y.title == "Share of points"


def curve(model: str, n: int = 1000, **options: Any) -> Curve:
    x = np.linspace(0.0, 1.0, n)
    given: dict[str, Any] = {"y": 0.8 + 0.1 * x, "lower": 0.7 + 0 * x, "upper": 0.95 + 0 * x}
    return Curve(name="picf", x=x, model=model, band="the band", **{**given, **options})


def test_a_profile_keeps_the_colours_of_its_methods() -> None:
    figure = coverage_profile([curve("b"), curve("c")], 0.9, WORDS, places={"a": 0, "b": 1, "c": 2})
    assert [(layer.mark, layer.colour) for layer in figure.layers] == [
        (Mark.BAND, 1),
        (Mark.BAND, 2),
        (Mark.LINE, REFERENCE),
        (Mark.LINE, 1),
        (Mark.LINE, 2),
    ]
    line = marks(figure, "b")
    assert len(line.x) <= 400
    np.testing.assert_allclose(line.y, 0.8 + 0.1 * line.x)
    assert marks(figure, "nominal 90 %").y.tolist() == [0.9, 0.9]
    assert figure.notes == ("told", "Shaded: the band.")
    assert [item.label for item in figure.legend()] == ["b", "c", "nominal 90 %"]


def test_further_numbers_of_bins_are_told() -> None:
    short = curve("a", 6, hover={"points": np.full(6, 7.0)})
    figure = coverage_profile([short], 0.9, WORDS, places={"a": 0})
    assert marks(figure, "a").hover["Points"].tolist() == [7.0] * 6
    bare = coverage_profile([curve("a", lower=None, upper=None)], 0.9, WORDS, places={"a": 0})
    assert Mark.BAND not in {layer.mark for layer in bare.layers}


def test_intervals_lie_over_the_truth() -> None:
    held = run(mean_lower=np.full(300, -0.1), mean_upper=np.full(300, 0.3))
    figure = intervals_along_x(held, WORDS, colour=2)
    band = marks(figure, "prediction interval")
    np.testing.assert_allclose(band.lower, band.x**2 - 1.0)
    assert band.colour == 2
    assert set(marks(figure, "confidence interval").upper.tolist()) == {0.3}
    np.testing.assert_allclose(marks(figure, "true mean").y, band.x**2)
    outside = marks(figure, "y outside it")
    assert outside.colour == HIGHLIGHT
    assert (outside.y > outside.hover["Upper end"]).all()
    inside = marks(figure, "y inside its interval")
    assert (inside.y <= inside.hover["Upper end"]).all()
    assert inside.labels[1].startswith("test point ")
    without = intervals_along_x(run(), WORDS, colour=0)
    assert "confidence interval" not in {layer.series for layer in without.layers}


def test_the_spread_of_coverage_is_its_mean_and_nine_in_ten_points() -> None:
    rng = np.random.default_rng(0)
    values = [rng.uniform(0.5, 1.0, 200), np.full(9, 0.8)]
    figure = spread_figure(["a", "b"], values, 0.9)
    level, ranges, means = figure.layers
    assert level.x.tolist() == [0.9]
    np.testing.assert_allclose(means.x, [values[0].mean(), 0.8])
    inside = (values[0] >= ranges.lower[0]) & (values[0] <= ranges.upper[0])
    assert inside.sum() == 180
    np.testing.assert_allclose((ranges.lower[1], ranges.upper[1]), 0.8)
    assert figure.y.categories == ("a", "b")


def test_points_of_many_columns_are_placed_by_their_mean() -> None:
    upper = run().upper.copy()
    upper[5] = math.inf
    held = run(x=run().mean, upper=upper)
    figure = intervals_over_truth(held, WORDS, colour=1)
    bars = marks(figure, "prediction interval")
    assert bars.mark is Mark.INTERVALS
    assert len(bars.x) <= 90
    np.testing.assert_allclose(bars.upper, bars.x + 1.0)
    assert "of 300 test points" in figure.notes[-1]
    assert not bars.listed


@pytest.mark.parametrize("kind", ["profile", "histogram", "along", "over", "spread"])
def test_every_figure_is_drawn_by_both_renderers(kind: str) -> None:
    needs("matplotlib").use("Agg")
    figure = {
        "profile": coverage_profile(
            [curve("a"), curve("b", 5)], 0.9, WORDS, places={"a": 0, "b": 1}
        ),
        "histogram": share_histogram({"a": np.array([0.2, 0.4])}, 0.9, WORDS, places={}, of="x"),
        "along": intervals_along_x(run(), WORDS, colour=0),
        "over": intervals_over_truth(run(), WORDS, colour=0),
        "spread": spread_figure(["a", "a"], [np.ones(3), np.zeros(2)], 0.9),
    }[kind]
    axes = plot(figure)
    assert axes.get_xlabel()
    assert to_vega(figure)["layer"]
