"""Calibration measures against definitions, derivatives and simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from howsure.core.arrays import Weights
from howsure.core.errors import InputError
from howsure.metrics.calibration import (
    calibration_curve,
    calibration_curve_quantiles,
    calibration_error,
    calibration_error_quantiles,
    ence,
    mean_squared_z,
    miscalibration_area,
    pit_histogram,
    randomised_pit,
    relative_calibration_error,
    sharpness,
)
from howsure.stats.estimate import Statistic, standard_error
from oracles import scores as oracle

GRID = np.array([0.07, 0.2, 0.5, 0.51, 0.8, 0.95])


def plain(seed: int = 1, n: int = 25) -> tuple[np.ndarray, np.ndarray]:
    values = np.random.default_rng(seed).beta(0.6, 0.9, n)
    return values, values


def counts(seed: int = 2, n: int = 25, shift: float = 1.3) -> tuple[np.ndarray, np.ndarray]:
    """PIT cells of Poisson laws whose rates are too low by a factor."""
    rng = np.random.default_rng(seed)
    rate = rng.gamma(2.0, 1.5, n)
    y = rng.poisson(rate * shift)
    return stats.poisson.cdf(y - 1, rate), stats.poisson.cdf(y, rate)


def mixed(seed: int = 3, n: int = 25) -> tuple[np.ndarray, np.ndarray]:
    """Cells of every width, some of none."""
    rng = np.random.default_rng(seed)
    left = rng.random(n)
    width = 10.0 ** rng.uniform(-6, 0, n) * (rng.random(n) < 0.7)
    return left, np.minimum(left + width, 1.0)


CELLS = [plain(), counts(), mixed()]
NAMES = ["plain", "counts", "mixed"]


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("left", "right"), CELLS, ids=NAMES)
@pytest.mark.parametrize("weighting", ["uniform", "frequency"])
@pytest.mark.parametrize("exponent", [1.0, 2.0, 1.7])
def test_calibration_error_is_the_definition(
    left: np.ndarray, right: np.ndarray, weighting: Any, exponent: float
) -> None:
    got = calibration_error(right, left=left, levels=GRID, exponent=exponent, weighting=weighting)
    want = oracle.calibration_error(left, right, GRID, exponent, weighting)
    assert got.value == pytest.approx(want, rel=1e-12)


def test_levels_by_number_run_from_end_to_end() -> None:
    pit = plain()[0]
    levels = np.linspace(1e-5, 1 - 1e-5, 100)
    assert calibration_error(pit).value == calibration_error(pit, levels=levels).value
    assert calibration_error(pit, levels=7).value == pytest.approx(
        oracle.calibration_error(pit, pit, np.linspace(1e-5, 1 - 1e-5, 7), 1.0, "uniform")
    )


@pytest.mark.parametrize("weighting", ["uniform", "frequency"])
def test_quantile_columns_agree_with_the_law_that_they_come_from(weighting: Any) -> None:
    rng = np.random.default_rng(4)
    mean = rng.normal(size=300)
    y = mean + 1.3 * rng.normal(size=300) + 0.2
    columns = mean[:, None] + stats.norm.ppf(GRID)
    got = calibration_error_quantiles(y, columns, GRID, weighting=weighting, exponent=2)
    want = calibration_error(stats.norm.cdf(y - mean), levels=GRID, weighting=weighting, exponent=2)
    assert got.value == pytest.approx(want.value, rel=1e-12)
    assert got.null == pytest.approx(want.null, rel=1e-12)
    assert got.influence is not None
    assert want.influence is not None
    np.testing.assert_allclose(got.influence, want.influence, atol=1e-12)
    curve = calibration_curve_quantiles(y, columns, GRID)
    same = calibration_curve(stats.norm.cdf(y - mean), levels=GRID)
    np.testing.assert_allclose(curve.observed, same.observed, atol=1e-15)
    np.testing.assert_allclose(curve.standard_error, same.standard_error, atol=1e-15)


def test_a_perfect_discrete_law_has_no_calibration_error() -> None:
    """Each count as often as the law says: the plain CDF would see an error, cells see none."""
    law = stats.binom(7, 0.3)
    k = np.arange(8)
    left, right = np.maximum(law.cdf(k - 1), 0.0), np.minimum(law.cdf(k), 1.0)
    weights = law.pmf(k) * 1e6
    assert calibration_error(right, left=left, weights=weights).value < 1e-12
    assert miscalibration_area(right, left=left, weights=weights).value < 1e-9
    folded = miscalibration_area(right, left=left, weights=weights, version="interval")
    assert folded.value < 1e-9
    assert calibration_error(right, weights=weights).value > 0.05


@pytest.mark.parametrize(("left", "right"), CELLS, ids=NAMES)
@pytest.mark.parametrize("version", ["quantile", "interval"])
def test_area_is_the_integral(left: np.ndarray, right: np.ndarray, version: Any) -> None:
    got = miscalibration_area(right, left=left, version=version)
    want = oracle.miscalibration_area(left, right, interval=version == "interval")
    assert got.value == pytest.approx(want, abs=3e-5)  # the oracle's grid has steps of 5e-5


def test_areas_in_closed_form() -> None:
    assert miscalibration_area([0.0, 0.0]).value == pytest.approx(0.5)
    assert miscalibration_area([0.3]).value == pytest.approx(0.3**2 / 2 + 0.7**2 / 2)
    assert miscalibration_area([0.8], version="interval").value == pytest.approx(
        0.6**2 / 2 + 0.4**2 / 2
    )
    even = (np.arange(50) + 0.5) / 50  # the curve crosses the diagonal in every step
    assert miscalibration_area(even).value == pytest.approx(1 / (4 * 50), rel=1e-12)
    # one cell [0.2, 0.6]: the curve is 0, then (p − 0.2)/0.4, then 1, and crosses at p = 1/3
    pieces = 0.2**2 / 2 + 0.2 * (1 / 3 - 0.2) / 2 + 0.4 * (0.6 - 1 / 3) / 2 + 0.4**2 / 2
    assert miscalibration_area([0.6], left=[0.2]).value == pytest.approx(pieces, rel=1e-12)


@pytest.mark.parametrize(("left", "right"), CELLS, ids=NAMES)
@pytest.mark.parametrize("version", ["quantile", "interval"])
def test_curve_shows_shares_and_their_standard_errors(
    left: np.ndarray, right: np.ndarray, version: Any
) -> None:
    share = oracle.row_share if version == "quantile" else oracle.folded_share
    table = np.array([[share(a, b, p) for p in GRID] for a, b in zip(left, right, strict=True)])
    curve = calibration_curve(right, left=left, levels=GRID, version=version)
    np.testing.assert_allclose(curve.observed, table.mean(axis=0), atol=1e-12)
    errors = table.std(axis=0, ddof=1) / np.sqrt(len(table))
    np.testing.assert_allclose(curve.standard_error, errors, atol=1e-8)
    assert (curve.simultaneous.lower <= curve.pointwise.lower).all()
    assert (curve.simultaneous.upper >= curve.pointwise.upper).all()
    assert curve.pointwise.n == len(left)


def test_histogram_counts_bins_and_its_band_holds() -> None:
    left, right = counts()
    edges = np.linspace(0, 1, 6)
    table = np.array(
        [[oracle.row_share(a, b, p) for p in edges] for a, b in zip(left, right, strict=True)]
    )
    got = pit_histogram(right, left=left, bins=5)
    np.testing.assert_allclose(got.share, np.diff(table.mean(axis=0)), atol=1e-12)
    assert pit_histogram([0.0, 0.2, 1.0], bins=5).share[0] == pytest.approx(2 / 3)
    rng = np.random.default_rng(5)
    inside = 0
    for _ in range(1000):
        shown = pit_histogram(rng.random(200), bins=10)
        inside += bool(((shown.share >= shown.lower) & (shown.share <= shown.upper)).all())
    assert inside / 1000 >= 0.95 - 4 * 0.007
    assert inside / 1000 <= 0.99  # Bonferroni over whole counts, not much wider than it must be


def test_randomised_pit_is_uniform_and_lies_in_its_cell() -> None:
    left, right = counts(n=4000, shift=1.0)
    drawn = randomised_pit(right, left, np.random.default_rng(6).random(4000))
    assert ((drawn >= left) & (drawn <= right)).all()
    assert stats.kstest(drawn, "uniform").pvalue > 0.01


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


# --- influence and standard errors ---------------------------------------------------------------

Measure = Callable[[np.ndarray | None], Statistic]


def measures() -> dict[str, Measure]:
    """Statistics of 25 rows as functions of the weights."""
    found: dict[str, Measure] = {}
    for name, (left, right) in zip(NAMES, CELLS, strict=True):
        for exponent in (1.0, 2.0, 1.5):
            for weighting in ("uniform", "frequency"):
                found[f"error-{name}-{exponent}-{weighting}"] = (
                    lambda w, a=left, b=right, e=exponent, v=weighting: calibration_error(
                        b, left=a, exponent=e, weighting=v, levels=GRID, weights=w
                    )
                )
        for version in ("quantile", "interval"):
            found[f"area-{name}-{version}"] = lambda w, a=left, b=right, v=version: (
                miscalibration_area(b, left=a, version=v, weights=w)
            )
    rng = np.random.default_rng(9)
    sd = rng.gamma(2.0, 1.0, 25)
    y = sd * rng.normal(size=25) * 1.5
    zero = np.zeros(25)
    columns = stats.norm.ppf(GRID) * sd[:, None]
    found["columns"] = lambda w: calibration_error_quantiles(y, columns, GRID, weights=w)
    found["rce"] = lambda w: relative_calibration_error(y, zero, sd, weights=w)
    found["zms"] = lambda w: mean_squared_z(y, zero, sd, weights=w)
    found["sharpness"] = lambda w: sharpness(sd, weights=w)
    found["mean sd"] = lambda w: sharpness(sd, kind="mean_sd", weights=w)
    found["ence-one-bin"] = lambda w: ence(y, zero, sd, bins=1, weights=w)
    return found


@pytest.mark.parametrize("name", sorted(measures()))
def test_influence_is_the_derivative_by_the_weights(name: str) -> None:
    measure = measures()[name]
    got = measure(None)
    assert got.influence is not None
    want = oracle.derivative(lambda w: measure(w).value, 25)
    np.testing.assert_allclose(got.influence, want, atol=2e-4 * np.abs(want).max())
    assert abs(got.influence.sum()) < 1e-9 * np.abs(got.influence).sum() + 1e-12


def beta_pit(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.beta(0.6, 0.8, 400),)


def poisson_pit(rng: np.random.Generator) -> tuple[Any, ...]:
    rate = rng.gamma(2.0, 1.5, 400)
    y = rng.poisson(rate * 1.4)
    return stats.poisson.cdf(y, rate), stats.poisson.cdf(y - 1, rate)


def wide_errors(rng: np.random.Generator) -> tuple[Any, ...]:
    sd = rng.gamma(4.0, 0.25, 400)
    return sd * rng.normal(0.0, 1.5, 400), np.zeros(400), sd


SIMULATED: dict[str, tuple[Callable[..., Statistic], Callable[..., tuple[Any, ...]]]] = {
    "error": (calibration_error, beta_pit),
    "error-square": (lambda u: calibration_error(u, exponent=2), beta_pit),
    "error-frequency": (lambda u: calibration_error(u, weighting="frequency"), beta_pit),
    "error-counts": (lambda u, low: calibration_error(u, left=low), poisson_pit),
    "area": (miscalibration_area, beta_pit),
    "area-interval": (lambda u: miscalibration_area(u, version="interval"), beta_pit),
    "area-counts": (lambda u, low: miscalibration_area(u, left=low), poisson_pit),
    "ence": (ence, wide_errors),
    "rce": (relative_calibration_error, wide_errors),
    "zms": (mean_squared_z, wide_errors),
    "sharpness": (lambda y, mean, sd: sharpness(sd), wide_errors),
}


@pytest.mark.parametrize("name", list(SIMULATED))
def test_standard_errors_are_those_of_simulation(name: str) -> None:
    """Away from a perfect model; 800 replicates know a standard deviation to 2.5 %."""
    measure, draw = SIMULATED[name]
    rng = np.random.default_rng(10)
    values, errors = [], []
    for _ in range(800):
        found = measure(*draw(rng))
        assert found.influence is not None
        values.append(found.value)
        errors.append(standard_error(found.influence))
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(values), rel=0.1)


# --- nulls ---------------------------------------------------------------------------------------


def uniform_pit(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (rng.random(n),)


def right_counts(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    rate = rng.gamma(2.0, 1.0, n)
    y = rng.poisson(rate)
    return stats.poisson.cdf(y, rate), stats.poisson.cdf(y - 1, rate)


def right_errors(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    sd = rng.gamma(4.0, 0.25, n)
    return sd * rng.normal(size=n), np.zeros(n), sd


NULLS: dict[str, tuple[Callable[..., Statistic], Callable[..., tuple[Any, ...]], float]] = {
    "error": (calibration_error, uniform_pit, 0.01),
    "error-square": (lambda u: calibration_error(u, exponent=2), uniform_pit, 0.01),
    "error-1.5": (lambda u: calibration_error(u, exponent=1.5), uniform_pit, 0.02),
    "error-frequency": (lambda u: calibration_error(u, weighting="frequency"), uniform_pit, 0.03),
    "area": (miscalibration_area, uniform_pit, 0.01),
    "area-interval": (lambda u: miscalibration_area(u, version="interval"), uniform_pit, 0.01),
    "error-counts": (lambda u, low: calibration_error(u, left=low), right_counts, 0.03),
    "error-counts-square": (
        lambda u, low: calibration_error(u, left=low, exponent=2),
        right_counts,
        0.03,
    ),
    "area-counts": (lambda u, low: miscalibration_area(u, left=low), right_counts, 0.03),
    "area-counts-interval": (
        lambda u, low: miscalibration_area(u, left=low, version="interval"),
        right_counts,
        0.03,
    ),
    "ence": (lambda y, m, s: ence(y, m, s, bins=5), right_errors, 0.02),
    "rce": (relative_calibration_error, right_errors, 0.02),
}


@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("name", list(NULLS))
def test_nulls_are_the_means_of_perfect_models(name: str, n: int) -> None:
    """Within four standard errors of the simulation, and the bias that the docstring admits."""
    measure, draw, bias = NULLS[name]
    rng = np.random.default_rng(11)
    found = [measure(*draw(rng, n)) for _ in range(1500)]
    values = np.array([each.value for each in found])
    null = float(np.mean([each.null for each in found]))
    assert values.mean() == pytest.approx(
        null, abs=4 * values.std() / np.sqrt(len(values)) + bias * abs(null)
    )


def test_the_null_of_the_area_has_its_known_limit() -> None:
    """√n E∫|q − p| → ∫ √(2 p(1 − p)/π) dp = √(2π)/8."""
    pit = (np.arange(10_000) + 0.5) / 10_000
    assert miscalibration_area(pit).null * 100 == pytest.approx(np.sqrt(2 * np.pi) / 8, rel=2e-3)


def test_bands_hold_perfect_models() -> None:
    rng = np.random.default_rng(12)
    inside = 0
    for _ in range(500):
        curve = calibration_curve(rng.random(150))
        band = curve.simultaneous
        inside += bool(((curve.observed >= band.lower) & (curve.observed <= band.upper)).all())
    assert inside / 500 == pytest.approx(0.95, abs=4 * 0.01)


# --- laws ----------------------------------------------------------------------------------------

Rows = list[tuple[float, float, int]]
ROWS = st.lists(
    st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(1, 3)), min_size=2, max_size=10
)


def same(one: Statistic, other: Statistic) -> None:
    assert one.value == pytest.approx(other.value, abs=1e-12, nan_ok=True)
    assert one.null == pytest.approx(other.null, abs=1e-12, nan_ok=True)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(rows=ROWS, plain_values=st.booleans(), version=st.sampled_from(["quantile", "interval"]))
def test_weights_repeat_rows_for_the_pit(rows: Rows, plain_values: bool, version: Any) -> None:
    right = np.array([max(a, b) for a, b, _ in rows])
    left = right if plain_values else np.array([min(a, b) for a, b, _ in rows])
    weights = np.array([float(w) for *_, w in rows])
    index = np.repeat(np.arange(len(rows)), weights.astype(int))[::-1]
    for measure in (
        lambda a, b, w: calibration_error(b, left=a, weights=w, levels=GRID),
        lambda a, b, w: calibration_error(b, left=a, weights=w, exponent=2, weighting="frequency"),
        lambda a, b, w: miscalibration_area(b, left=a, weights=w, version=version),
    ):
        weighted = measure(left, right, weights)
        repeated = measure(left[index], right[index], None)
        same(weighted, repeated)
        if weighted.influence is not None and repeated.influence is not None:
            np.testing.assert_allclose(weighted.influence[index], repeated.influence, atol=1e-9)
            assert standard_error(weighted.influence, Weights(weights)) == pytest.approx(
                standard_error(repeated.influence), abs=1e-9
            )
    one = calibration_curve(right, left=left, weights=weights, levels=GRID, version=version)
    two = calibration_curve(right[index], left=left[index], levels=GRID, version=version)
    np.testing.assert_allclose(one.observed, two.observed, atol=1e-12)
    np.testing.assert_array_equal(one.simultaneous.lower, two.simultaneous.lower)
    np.testing.assert_allclose(
        pit_histogram(right, left=left, weights=weights).share,
        pit_histogram(right[index], left=left[index]).share,
        atol=1e-12,
    )


SDS = st.lists(
    st.tuples(st.floats(-5, 5), st.sampled_from([0.5, 1.0, 2.0, 3.0]), st.integers(1, 4)),
    min_size=4,
    max_size=12,
)


@settings(derandomize=True, deadline=None, max_examples=80)
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


@settings(derandomize=True, deadline=None, max_examples=60)
@given(rows=ROWS)
def test_reflection_changes_nothing(rows: Rows) -> None:
    """Turning y and the law over turns the PIT u into 1 − u."""
    right = np.array([max(a, b) for a, b, _ in rows])
    left = np.array([min(a, b) for a, b, _ in rows])
    versions: tuple[Any, ...] = ("quantile", "interval")
    for version in versions:
        one = miscalibration_area(right, left=left, version=version).value
        two = miscalibration_area(1 - left, left=1 - right, version=version).value
        assert one == pytest.approx(two, abs=1e-8)


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
    assert mean_squared_z(huge, np.zeros(n), tiny).reason == "some rows score infinity"
    assert calibration_error([1.0], levels=[0.5], weighting="frequency").reason != ""


def test_one_row_is_enough_for_a_value() -> None:
    assert calibration_error([0.5]).value > 0
    assert miscalibration_area([0.5]).null == pytest.approx(1 / 3, rel=1e-3)
    assert np.isnan(calibration_curve([0.5]).standard_error).all()


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration_error([0.5, 1.2]), r"pit must lie in \[0, 1\]"),
        (lambda: calibration_error([0.5], left=[0.6]), "left must not exceed pit"),
        (lambda: calibration_error([0.5], left=[0.1, 0.2]), "left must have 1 rows"),
        (lambda: calibration_error([0.5], exponent=0.5), "exponent must be at least 1"),
        (lambda: calibration_error([0.5], exponent=float("nan")), "exponent must be at least 1"),
        (lambda: calibration_error([0.5], levels=1), "levels must be at least 2"),
        (lambda: calibration_error([0.5], levels=[0.5, 0.4]), "levels must rise"),
        (lambda: calibration_error([0.5], weighting="both"), "weighting must be"),
        (lambda: calibration_error([0.5], weights=[0.0]), "weights must not all be zero"),
        (lambda: calibration_error_quantiles([1], [[1, 2]], [0.5]), "quantiles must have 1 col"),
        (lambda: miscalibration_area([0.5], version="both"), "version must be"),
        (lambda: calibration_curve([0.5], confidence=95), "confidence must lie"),
        (lambda: pit_histogram([0.5], bins=1), "bins must be at least 2"),
        (lambda: randomised_pit([0.5], [0.1], [2.0]), "uniforms must lie"),
        (lambda: ence([1.0], [0.0], [0.0]), "sd must be above 0"),
        (lambda: ence([1.0], [0.0], [1.0], bins=0), "bins must be at least 1"),
        (lambda: mean_squared_z([1e308], [-1e308], [1.0]), "y - mean must be finite"),
        (lambda: sharpness([1.0], kind="median"), "kind must be"),
        (lambda: sharpness([np.nan]), "sd must hold finite"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
