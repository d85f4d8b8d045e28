"""Calibration error, curve and area against definitions, derivatives and simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.core.weights import Weights
from howsure.engine.view import View
from howsure.predictions import Distribution, EvalSet, Samples
from howsure.stats.estimate import Estimate, standard_error
from howsure.topics.calibration.curve import (
    calibration_curve,
    calibration_curve_quantiles,
    calibration_error,
    calibration_error_quantiles,
    miscalibration_area,
)
from howsure.verdict.family import examine
from metrics.statistics import (
    CELLS,
    GRID,
    NAMES,
    ROWS,
    Draw,
    Rows,
    assert_influence_is_the_derivative,
    assert_null_is_the_mean,
    assert_standard_error_holds,
    plain,
    same,
)
from oracles import scores as oracle


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


@pytest.mark.parametrize("width", [1.0, 1e-3, 1e-6, 1e-8])
def test_area_keeps_its_digits_beside_steep_cells(width: float) -> None:
    """The slope of a narrow cell is large, and nothing of it may remain where the cell closes."""
    rng = np.random.default_rng(15)
    left = rng.random(40)
    right = np.minimum(left + rng.random(40) * np.where(np.arange(40) % 2, width, 0.3), 1.0)
    right[::5] = left[::5]
    keep = (right == left) | (right - left >= 1e-9)  # others count as points
    got = miscalibration_area(right[keep], left=left[keep])
    assert got.value == pytest.approx(oracle.exact_area(left[keep], right[keep]), rel=1e-13)


def test_influence_of_a_steep_cell_keeps_its_digits() -> None:
    """Where the cell does not cross a knot, its influence is that of its middle."""
    middle = 0.7 + 1e-9
    steep = miscalibration_area([0.6, 0.8, 0.7 + 2e-9], left=[0.1, 0.3, 0.7]).influence
    point = miscalibration_area([0.6, 0.8, middle], left=[0.1, 0.3, middle])
    assert steep is not None
    assert point.influence is not None
    np.testing.assert_allclose(steep, point.influence, atol=1e-12)


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


Measure = Callable[[np.ndarray | None], Estimate]


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
    columns = stats.norm.ppf(GRID) * sd[:, None]
    found["columns"] = lambda w: calibration_error_quantiles(y, columns, GRID, weights=w)
    return found


@pytest.mark.parametrize("name", sorted(measures()))
def test_influence_is_the_derivative_by_the_weights(name: str) -> None:
    assert_influence_is_the_derivative(measures()[name], 25)


def beta_pit(rng: np.random.Generator) -> tuple[Any, ...]:
    return (rng.beta(0.6, 0.8, 400),)


def poisson_pit(rng: np.random.Generator) -> tuple[Any, ...]:
    rate = rng.gamma(2.0, 1.5, 400)
    y = rng.poisson(rate * 1.4)
    return stats.poisson.cdf(y, rate), stats.poisson.cdf(y - 1, rate)


SIMULATED: dict[str, tuple[Callable[..., Estimate], Draw]] = {
    "error": (calibration_error, beta_pit),
    "error-square": (lambda u: calibration_error(u, exponent=2), beta_pit),
    "error-frequency": (lambda u: calibration_error(u, weighting="frequency"), beta_pit),
    "error-counts": (lambda u, low: calibration_error(u, left=low), poisson_pit),
    "area": (miscalibration_area, beta_pit),
    "area-interval": (lambda u: miscalibration_area(u, version="interval"), beta_pit),
    "area-counts": (lambda u, low: miscalibration_area(u, left=low), poisson_pit),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SIMULATED))
def test_standard_errors_are_those_of_simulation(name: str) -> None:
    assert_standard_error_holds(*SIMULATED[name])


def uniform_pit(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (rng.random(n),)


def right_counts(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    rate = rng.gamma(2.0, 1.0, n)
    y = rng.poisson(rate)
    return stats.poisson.cdf(y, rate), stats.poisson.cdf(y - 1, rate)


NULLS: dict[str, tuple[Callable[..., Estimate], Draw, float]] = {
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
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 200])
@pytest.mark.parametrize("name", list(NULLS))
def test_nulls_are_the_means_of_perfect_models(name: str, n: int) -> None:
    measure, draw, bias = NULLS[name]
    assert_null_is_the_mean(measure, draw, n, bias)


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


@examples(60)
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


@examples(60)
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


def test_no_row_below_any_level_is_a_reason() -> None:
    assert calibration_error([1.0], levels=[0.5], weighting="frequency").reason != ""


def test_one_row_is_enough_for_a_value() -> None:
    assert calibration_error([0.5]).value > 0
    assert miscalibration_area([0.5]).null == pytest.approx(1 / 3, rel=1e-3)
    assert np.isnan(calibration_curve([0.5]).standard_error).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration_error([0.5, 1.2]), r"pit must be in \[0, 1\]"),
        (lambda: calibration_error([0.5], left=[0.6]), "left must not exceed pit"),
        (lambda: calibration_error([0.5], left=[0.1, 0.2]), "left must have 1 rows"),
        (lambda: calibration_error([0.5], exponent=0.5), "exponent must be at least 1"),
        (lambda: calibration_error([0.5], exponent=float("nan")), "exponent must be at least 1"),
        (lambda: calibration_error([0.5], levels=1), "levels must be at least 2"),
        (lambda: calibration_error([0.5], levels=[0.5, 0.4]), "levels must increase"),
        (lambda: calibration_error([0.5], weighting="both"), "weighting must be"),
        (lambda: calibration_error([0.5], weights=[0.0]), "weights must not all be zero"),
        (lambda: calibration_error_quantiles([1], [[1, 2]], [0.5]), "quantiles must have 1 col"),
        (lambda: miscalibration_area([0.5], version="both"), "version must be"),
        (lambda: calibration_curve([0.5], confidence=95), "confidence must be strictly"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


STEEP_LAWS = {
    "χ²₁": (stats.chi2(1), True),
    "gamma ¼": (stats.gamma(0.25), True),
    "exponential": (stats.expon(), False),
    "lognormal": (stats.lognorm(1.0), False),
    "uniform": (stats.uniform(), False),
    "Student's t₃": (stats.t(3), False),
}


@pytest.mark.parametrize("kind", ["distribution", "samples"])
@pytest.mark.parametrize("name", STEEP_LAWS)
def test_y_is_not_moved_where_its_density_has_no_bound(name: str, kind: str) -> None:
    law, steep = STEEP_LAWS[name]
    rng = child(0, "steep", name)
    y = law.rvs(size=800, random_state=rng)
    if kind == "samples":
        prediction = Samples(law.rvs(size=(800, 40), random_state=rng))
    else:
        prediction = Distribution.from_scipy(law, n=800)
    assert View(EvalSet.checked(y, prediction)).get("placed").by_scores == steep


@pytest.mark.slow
def test_right_samples_of_an_unbounded_density_are_seldom_condemned() -> None:
    """Of tables such as these 42 % had a ✗, of tails or skew."""
    condemned = 0
    for seed in range(20):
        rng = child(seed, "chi-squared")
        scale = np.exp(rng.normal(size=500))
        y = scale * rng.chisquare(1, size=500)
        draws = Samples(scale[:, None] * rng.chisquare(1, size=(500, 100)))
        findings, _ = examine(EvalSet.checked(y, draws))
        condemned += any(finding.state == "bad" for finding in findings)
    assert condemned <= 4
