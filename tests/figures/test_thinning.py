"""A curve of any length as few points that keep its shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.records import Curve
from howsure.figures.build import MAX_POINTS, placed, shape_points, thinned

GRID = np.linspace(0.0, 1.0, 4000)
SHAPES = {
    "line": GRID,
    "curve": np.sqrt(GRID),
    "waves": np.sin(12 * GRID),
    "jump": np.where(GRID < 0.3141, GRID, GRID - 2),
    "spike": np.exp(-(((GRID - 0.7) / 0.004) ** 2)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_drawn_is_the_curve_to_within_a_pixel(shape: str) -> None:
    y = SHAPES[shape]
    told = thinned(Curve(name="other", x=GRID, y=y))
    assert len(told.x) <= MAX_POINTS
    assert (told.x[0], told.x[-1]) == (0.0, 1.0)
    off = np.abs(np.interp(GRID, told.x, told.y) - y)
    away = np.abs(GRID - 0.3141) > 1e-3
    assert off[away].max() < np.ptp(y) / 320


def test_a_straight_line_needs_no_more_than_the_points_to_point_at() -> None:
    assert len(thinned(Curve(name="other", x=GRID, y=GRID)).x) < 50


def test_a_million_steps_are_a_line_through_their_corners() -> None:
    x = np.sort(np.random.default_rng(0).exponential(size=1_000_000))
    y = np.linspace(1, 0, len(x))
    told = thinned(Curve(name="other", x=x, y=y, step=True))
    assert not told.step
    assert len(told.x) <= MAX_POINTS
    assert (told.x[0], told.x[-1]) == (x[0], x[-1])
    assert np.abs(np.interp(x, told.x, told.y) - y).max() < 1 / 320


def test_a_wide_step_among_many_stays_level() -> None:
    x = np.r_[np.linspace(0, 1, 200), np.linspace(3, 4, 200)]
    told = thinned(Curve(name="other", x=x, y=np.linspace(1, 0, 400), step=True))
    level = 1 - 199 / 399
    inside = np.interp([1.1, 2.0, 2.9], told.x, told.y)
    np.testing.assert_allclose(inside, level, atol=2e-3)


def test_few_steps_stay_steps() -> None:
    curve = Curve(name="other", x=np.arange(100.0), y=np.arange(100.0), step=True)
    assert thinned(curve) is curve


def test_bands_keep_their_shape_too_and_columns_stay_together() -> None:
    wild = np.sin(12 * GRID)
    curve = Curve(
        name="other",
        x=GRID,
        y=np.zeros(4000),
        lower=-1 - wild**2,
        upper=1 + wild**2,
        reference=2 * GRID,
        hover={"k": 3 * GRID},
    )
    told = thinned(curve)
    assert told.upper is not None
    assert told.reference is not None
    assert np.abs(np.interp(GRID, told.x, told.upper) - curve.upper).max() < 0.02
    np.testing.assert_array_equal(told.reference, 2 * told.x)
    np.testing.assert_array_equal(told.hover["k"], 3 * told.x)


def test_points_without_a_place_are_left_out() -> None:
    y = np.array([0.0, np.nan, np.inf, 1.0])
    assert placed(Curve(name="other", x=np.arange(4.0), y=y)).x.tolist() == [0.0, 3.0]


@examples(60)
@given(st.lists(st.floats(-1e9, 1e9), min_size=121, max_size=400).map(sorted), st.integers(0, 99))
def test_chosen_points_rise_and_keep_the_ends(x: list[float], seed: int) -> None:
    y = np.random.default_rng(seed).normal(size=(2, len(x)))
    y[0, 5] = np.nan
    index = shape_points(np.array(x), y, 120)
    assert len(index) <= 120
    assert (index[0], index[-1]) == (0, len(x) - 1)
    assert (np.diff(index) > 0).all()
