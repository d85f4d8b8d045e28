"""Standard deviations against errors: definitions, derivatives and simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.stats.estimate import Estimate, mean_statistic
from howsure.topics.dispersion import ence, relative_calibration_error, sharpness, squared_z
from metrics.statistics import (
    Draw,
    assert_influence_is_the_derivative,
    assert_standard_error_holds,
    same,
)
from oracles import scores as oracle


def mean_squared_z(y: Any, mean: Any, sd: Any, *, weights: np.ndarray | None = None) -> Estimate:
    """The mean of the row form: ZMS."""
    return mean_statistic(squared_z(y, mean, sd), weights)


def test_ence_is_the_definition_in_bins_of_equal_mass() -> None:
    rng = np.random.default_rng(7)
    sd = rng.gamma(2.0, 1.0, 47)
    error = sd * rng.normal(size=47) * 1.2
    got = ence(error, np.zeros(47), sd, bins=6)
    assert got.value == pytest.approx(oracle.ence(error, sd, 6), rel=1e-12)
    # where the rows divide evenly the bins are the usual ones
    parts = np.split(np.argsort(sd[:42]), 6)
    rmse = np.sqrt([np.mean(error[part] ** 2) for part in parts])
    rmv = np.sqrt([np.mean(sd[part] ** 2) for part in parts])
    usual = np.mean(np.abs(rmv - rmse) / rmv)
    assert ence(error[:42], np.zeros(42), sd[:42], bins=6).value == pytest.approx(usual, rel=1e-12)


def test_ence_of_one_sd_ignores_row_order() -> None:
    """All rows tie, so every bin holds all of them in proportion: |1 − RMSE/sd|."""
    error = np.arange(40.0)
    got = ence(error, np.zeros(40), np.full(40, 10.0), bins=15)
    assert got.value == pytest.approx(abs(1 - np.sqrt(np.mean(error**2)) / 10), rel=1e-12)


def test_ence_needs_two_rows_a_bin() -> None:
    got = ence(np.ones(29), np.zeros(29), np.ones(29))
    assert np.isnan(got.value)
    assert got.reason == "29 rows are fewer than two for each of 15 bins"


def test_squared_z_of_each_row() -> None:
    got = squared_z([3.0, -1.0], [1.0, 0.0], [2.0, 0.5])
    np.testing.assert_allclose(got, [1.0, 4.0])
    assert squared_z([1.0], [0.0], [1e-200])[0] == np.inf
    assert squared_z([1e308], [-1e308], [1.0])[0] == np.inf


def test_moments_of_errors_are_the_definitions() -> None:
    rng = np.random.default_rng(8)
    y, mean, sd = rng.normal(size=30), rng.normal(size=30), rng.gamma(2.0, 1.0, 30)
    error = y - mean
    assert mean_squared_z(y, mean, sd).value == pytest.approx(np.mean((error / sd) ** 2))
    rmv, rmse = np.sqrt(np.mean(sd**2)), np.sqrt(np.mean(error**2))
    assert relative_calibration_error(y, mean, sd).value == pytest.approx((rmv - rmse) / rmv)
    assert sharpness(sd).value == pytest.approx(rmv)
    assert sharpness(sd, kind="mean_sd").value == pytest.approx(sd.mean())
    assert relative_calibration_error(y, y, sd).value == 1.0


def measures() -> dict[str, Callable[[np.ndarray | None], Estimate]]:
    """Statistics of 25 rows as functions of the weights."""
    rng = np.random.default_rng(9)
    sd = rng.gamma(2.0, 1.0, 25)
    y = sd * rng.normal(size=25) * 1.5
    zero = np.zeros(25)
    return {
        "rce": lambda w: relative_calibration_error(y, zero, sd, weights=w),
        "zms": lambda w: mean_squared_z(y, zero, sd, weights=w),
        "sharpness": lambda w: sharpness(sd, weights=w),
        "mean sd": lambda w: sharpness(sd, kind="mean_sd", weights=w),
        "ence-one-bin": lambda w: ence(y, zero, sd, bins=1, weights=w),
    }


@pytest.mark.parametrize("name", sorted(measures()))
def test_influence_is_the_derivative_by_the_weights(name: str) -> None:
    assert_influence_is_the_derivative(measures()[name], 25)


def wide_errors(rng: np.random.Generator) -> tuple[Any, ...]:
    sd = rng.gamma(4.0, 0.25, 400)
    return sd * rng.normal(0.0, 1.5, 400), np.zeros(400), sd


SIMULATED: dict[str, tuple[Callable[..., Estimate], Draw]] = {
    "ence": (ence, wide_errors),
    "rce": (relative_calibration_error, wide_errors),
    "zms": (mean_squared_z, wide_errors),
    "sharpness": (lambda y, mean, sd: sharpness(sd), wide_errors),
}


@pytest.mark.parametrize("name", list(SIMULATED))
def test_standard_errors_are_those_of_simulation(name: str) -> None:
    assert_standard_error_holds(*SIMULATED[name])


SDS = st.lists(
    st.tuples(st.floats(-5, 5), st.sampled_from([0.5, 1.0, 2.0, 3.0]), st.integers(1, 4)),
    min_size=4,
    max_size=12,
)


@examples(80)
@given(rows=SDS, factor=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
def test_weights_repeat_rows_and_units_vanish_for_errors(
    rows: list[tuple[float, float, int]], factor: float, shift: float
) -> None:
    y, sd, count = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    y = np.round(y, 3)
    zero = np.zeros(len(y))
    index = np.random.default_rng(13).permutation(np.repeat(np.arange(len(y)), count.astype(int)))
    for measure in (
        lambda y, m, s, w: ence(y, m, s, bins=2, weights=w),
        lambda y, m, s, w: relative_calibration_error(y, m, s, weights=w),
        lambda y, m, s, w: mean_squared_z(y, m, s, weights=w),
    ):
        own = measure(y, zero, sd, count)
        repeated = measure(y[index], zero[index], sd[index], None)
        same(own, repeated)
        assert own.influence is not None
        assert repeated.influence is not None
        np.testing.assert_allclose(own.influence[index], repeated.influence, atol=1e-7, rtol=1e-7)
        moved = measure((y + shift) * factor, np.full(len(y), shift * factor), sd * factor, count)
        assert moved.value == pytest.approx(own.value, rel=1e-7, abs=1e-9)
        assert measure(-y, zero, sd, count).value == pytest.approx(own.value, abs=1e-12)
    assert sharpness(sd * factor).value == pytest.approx(factor * sharpness(sd).value)


def test_extreme_errors_give_numbers_or_reasons() -> None:
    n = 40
    tiny, huge = np.full(n, 1e-200), np.full(n, 1e200)
    got = relative_calibration_error(huge, np.zeros(n), huge)
    assert got.value == pytest.approx(0.0)
    assert relative_calibration_error(huge, np.zeros(n), tiny).reason != ""
    assert ence(huge, np.zeros(n), huge).value == pytest.approx(0.0)
    lost = ence(np.ones(n), np.zeros(n), np.geomspace(1e-200, 1e200, n))
    assert np.isnan(lost.value)
    assert lost.reason != ""
    assert mean_squared_z(huge, np.zeros(n), tiny).reason == "some rows have an infinite score"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ence([1.0], [0.0], [0.0]), "sd must be above 0"),
        (lambda: ence([1.0], [0.0], [1.0], bins=0), "bins must be a whole number of at least 1"),
        (lambda: relative_calibration_error([1e308], [-1e308], [1.0]), "y - mean must be finite"),
        (lambda: squared_z([1], [0], [-1]), "sd must be above 0"),
        (lambda: sharpness([1.0], kind="median"), "kind must be"),
        (lambda: sharpness([np.nan]), "sd must contain finite"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
