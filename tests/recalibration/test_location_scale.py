"""Moving and stretching: the least pinball loss against brute force, the moments by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Quantiles,
    Samples,
    mixture,
)
from howsure.recalibration.location_scale import (
    CalibrationRows,
    LocationScale,
    _around,
    floored,
    moved,
    power_of,
    weighted_quantile,
)

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def pinball(y: np.ndarray, table: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The loss of each row, from its definition."""
    below = y[:, None] - table
    return np.where(below >= 0, levels * below, (levels - 1.0) * below).mean(axis=1)


def table_rows(n: int, seed: int = 0) -> tuple[np.ndarray, Quantiles]:
    rng = child(seed, "moving")
    center, wide = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    table = center[:, None] + wide[:, None] * np.array([-1.2, -0.4, 0.0, 0.5, 1.9])
    return center + 0.4 + 1.3 * wide * rng.standard_t(3, n), Quantiles(LEVELS, table)


@examples(100)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=1, max_size=12),
    st.sampled_from([0.1, 0.25, 0.5, 0.8]),
    st.booleans(),
)
def test_a_weighted_quantile_is_the_middle_of_the_least_losses(
    rows: list[tuple[int, int]], level: float, even: bool
) -> None:
    values = np.array([float(value) for value, _ in rows])
    weights = np.array([1.0 if even else float(count) for _, count in rows])

    def loss(at: float) -> float:
        below = values - at
        return float(weights @ np.where(below >= 0, level * below, (level - 1) * below))

    losses = np.array([loss(at) for at in np.unique(values)])
    least = np.unique(values)[losses <= losses.min() + 1e-9]
    assert weighted_quantile(values, weights, level) == pytest.approx((least[0] + least[-1]) / 2.0)
    assert weighted_quantile(-values, weights, 1.0 - level) == -weighted_quantile(
        values, weights, level
    )


def test_a_weighted_quantile_of_many_values_is_that_of_repeated_ones() -> None:
    rng = np.random.default_rng(0)
    values, counts = rng.normal(size=6_000).round(2), rng.integers(1, 4, 6_000)
    for level in (0.001, 0.25, 0.5, 0.9, 0.999):
        for seen, times in ((values, counts), (np.sort(values), np.sort(counts))):
            even = np.ones(int(times.sum()))
            repeated = weighted_quantile(np.repeat(seen, times), even, level)
            assert weighted_quantile(seen, times.astype(float), level) == repeated


def test_a_weighted_quantile_of_a_table_sorts_few_of_its_values() -> None:
    """Rows of 23 values, which are not sampled in step with their columns."""
    rng = child(0, "a table")
    table = rng.normal(size=(16_000, 1)) + np.linspace(-2.0, 2.0, 23)
    weights = np.abs(rng.normal(size=table.size))
    values, _, before = _around(table.ravel(), weights, 0.3 * float(weights.sum()))
    assert len(values) < 4 * 500
    low = float(weights[table.ravel() < values.min()].sum())
    assert before == pytest.approx(low, rel=1e-12)


def test_one_shift_and_one_factor_have_the_least_pinball_loss() -> None:
    y, table = table_rows(60)
    frame, mass = LocationScale.of(table), child(1, "mass").integers(1, 4, 60).astype(float)
    grid = np.linspace(-2.0, 3.0, 5001)
    for unit in (np.ones(60), frame.spread):
        shift = frame.shift(y, mass, unit)
        losses = [
            mass @ pinball(y, table.values + at * unit[:, None], LEVELS) for at in (*grid, shift)
        ]
        assert losses[-1] <= min(losses) + 1e-12
    center = frame.center[:, None]
    for about in (None, frame.center + 0.4):
        factor = frame.factor(y, mass, about)
        where = center if about is None else about[:, None]
        losses = [
            mass @ pinball(y, where + at * (table.values - center), LEVELS)
            for at in (*np.linspace(0.0, 5.0, 5001), factor)
        ]
        assert losses[-1] <= min(losses) + 1e-12
    assert frame.loss(mass, y[:, None] - table.values) == pytest.approx(
        np.average(pinball(y, table.values, LEVELS), weights=mass)
    )


def test_moments_of_distributions_and_samples() -> None:
    y, mean, sd = np.array([1.0, 4.0, -1.0]), np.array([0.0, 1.0, 0.0]), np.array([1.0, 2.0, 1.0])
    mass = np.array([1.0, 1.0, 2.0])
    frame = LocationScale.of(Distribution.normal(mean, sd))
    # Σ m e/s² = 1 + 3/4 − 2, Σ m/s² = 1 + 1/4 + 2; in units of s: Σ m e/s = 1 + 3/2 − 2, Σ m = 4
    assert frame.shift(y, mass, np.ones(3)) == pytest.approx(-0.25 / 3.25)
    assert frame.shift(y, mass, sd) == pytest.approx(0.5 / 4.0)
    assert frame.factor(y, mass) == pytest.approx(np.sqrt((1.0 + 9.0 / 4.0 + 2.0) / 4.0))
    frame = LocationScale.of(Samples([[-1.0, 1.0], [-2.0, 2.0], [0.0, 0.0]]))
    y = np.array([1.0, 4.0, -2.0])
    assert frame.shift(y, mass, np.ones(3)) == pytest.approx(1.0 / 4.0)
    # errors² 1, 16, 4, 4 against 1.5 times the variances 2, 8, 0, 0
    assert frame.factor(y, mass) == pytest.approx(np.sqrt(25.0 / (1.5 * 10.0)))


@pytest.mark.parametrize(
    "kind", ["normal", "mixture", "gamma", "samples", "quantiles", "intervals"]
)
def test_what_is_moved_is_the_same_prediction_elsewhere(kind: str) -> None:
    rng = child(0, "elsewhere", kind)
    center, wide = rng.normal(size=30), rng.uniform(0.5, 2.0, 30)
    normal = Distribution.normal(center, wide)
    held = {
        "normal": normal,
        "mixture": mixture([normal, Distribution.normal(center + 1.0, 2.0 * wide)], [0.3, 0.7]),
        "gamma": Distribution("gamma", {"a": 1.0 + wide, "loc": center, "scale": wide}),
        "samples": Samples(normal.sample(rng, 9)),
        "quantiles": Quantiles(LEVELS, normal.quantile(LEVELS)),
        "intervals": Intervals(center - wide, center + 2.0 * wide, 0.9),
    }[kind]
    frame = LocationScale.of(held)
    shift, factor = rng.normal(size=30), rng.uniform(0.5, 2.0, 30)
    made = moved(held, frame, shift, factor)
    after = LocationScale.of(made)
    np.testing.assert_allclose(after.center, frame.center + shift, atol=1e-12)
    np.testing.assert_allclose(after.spread, factor * frame.spread)
    if kind == "intervals":
        ends = (np.array(side) for side in zip(held.interval(0.9), made.interval(0.9), strict=True))
    else:
        ends = (each.quantile([0.2, 0.7]).T for each in (held, made))
        ends = zip(*ends, strict=True)
    for before, then in ends:
        at = frame.center + shift + factor * (before - frame.center)
        np.testing.assert_allclose(then, at, rtol=1e-6, atol=1e-9)


def test_floors_and_powers_by_hand() -> None:
    np.testing.assert_array_equal(floored(np.array([0.0, 2.0]), 0.5), [0.5, 2.0])
    np.testing.assert_array_equal(floored(np.array([0.0, 0.0]), 0.0), [1.0, 1.0])
    np.testing.assert_allclose(power_of(np.array([4.0, 1.0, 0.0]), 1.0, 0.5), [0.5, 1.0, 1.0])


def test_what_has_no_frame_says_why() -> None:
    with pytest.raises(
        InputError,
        match=r"only continuous distributions can be shifted or scaled, got poisson; use 'shape'",
    ):
        LocationScale.of(Distribution("poisson", {"mu": [1.0]}))
    with pytest.raises(InputError, match="with infinite ends cannot be scaled"):
        LocationScale.of(Intervals([0.0], [np.inf], 0.9))
    with pytest.raises(InputError, match="coverage of the intervals must be known"):
        LocationScale.of(Intervals([0.0], [1.0]))
    with pytest.raises(InputError, match="label sets cannot be shifted or scaled"):
        LocationScale.of(LabelSets([[True, False]], 0.9))
    with pytest.raises(UnanswerableError, match="no mean"):
        LocationScale.of(Distribution("cauchy", {"loc": [0.0]}))
    flat = LocationScale.of(Quantiles([0.5], [[1.0], [2.0]]))
    with pytest.raises(InputError, match="no row has a spread"):
        flat.factor(np.zeros(2), np.ones(2))
    some = EvalSet.checked([0.0, 1.0], Quantiles([0.1, 0.9], [[1.0, 1.0], [0.0, 1.0]]))
    with pytest.raises(InputError, match="every calibration row must have a spread above 0"):
        CalibrationRows.spread_out(some, "quantiles")


def test_tables_without_a_median_turn_about_the_middle_of_their_ends() -> None:
    frame = LocationScale.of(Quantiles([0.6, 0.9], [[1.0, 3.0]]))
    assert (frame.center[0], frame.spread[0]) == (2.0, 1.0)
    held = EvalSet.checked([0.0], Intervals([[0.0, -1.0]], [[1.0, 4.0]], [0.5, 0.9]))
    frame = LocationScale.of(held.predictions[0])
    assert (frame.center[0], frame.spread[0]) == (0.5, 2.5)
    np.testing.assert_allclose(frame.levels, [0.25, 0.05, 0.75, 0.95])
