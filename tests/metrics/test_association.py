"""Kendall, Spearman and binned R² against pairs, SciPy, simulation and published numbers."""

import csv
import gzip
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.core.weights import Weights
from howsure.stats.estimate import standard_error
from howsure.topics.association import binned_r2, kendall_tau, spearman, width_bins
from oracles.association import kendall_tau_b, midranks, spearman_rho

quick = examples(200)
RANKED = pytest.mark.parametrize(
    ("function", "oracle"), [(kendall_tau, kendall_tau_b), (spearman, spearman_rho)]
)
EVERY = pytest.mark.parametrize("function", [kendall_tau, spearman, partial(binned_r2, bins=5)])


@st.composite
def tables(draw, largest_weight=3):
    n = draw(st.integers(2, 30))
    numbers = st.one_of(st.integers(0, 4).map(float), st.floats(0, 100).map(lambda v: round(v, 3)))
    column = st.lists(numbers, min_size=n, max_size=n)
    error, width = np.array(draw(column)), np.array(draw(column))
    counts = draw(st.lists(st.integers(0, largest_weight), min_size=n, max_size=n))
    weights = np.array(counts, dtype=float)
    kept = weights > 0
    assume(np.unique(error[kept]).size > 1)
    assume(np.unique(width[kept]).size > 1)
    return error, width, weights


def linked(rng, n, decimals=None):
    """Errors whose scale is the width, on a grid of values if asked."""
    width = rng.lognormal(sigma=0.5, size=n)
    error = np.abs(rng.normal(size=n)) * width
    return (error, width) if decimals is None else (error.round(decimals), width.round(decimals))


@pytest.mark.slow
@RANKED
@quick
@given(case=tables())
def test_value_is_the_definition(function, oracle, case):
    error, width, _ = case
    assume(np.unique(error).size > 1 and np.unique(width).size > 1)
    assert function(error, width).value == pytest.approx(oracle(error, width), abs=1e-12)


@pytest.mark.slow
@RANKED
@quick
@given(case=tables())
def test_a_weight_of_two_is_a_row_twice(function, oracle, case):
    error, width, weights = case
    rows = np.repeat(np.arange(len(error)), weights.astype(int))
    weighted, plain = function(error, width, weights), function(error[rows], width[rows])
    assert weighted.value == pytest.approx(plain.value, abs=1e-12)
    assert weighted.value == pytest.approx(oracle(error[rows], width[rows]), abs=1e-12)
    np.testing.assert_allclose(weighted.influence[rows], plain.influence, atol=1e-10)


@pytest.mark.slow
@quick
@given(case=tables())
def test_binned_r2_obeys_the_law_of_weights(case):
    error, width, weights = case
    rows = np.repeat(np.arange(len(error)), weights.astype(int))
    weighted = binned_r2(error, width, weights, bins=4)
    plain = binned_r2(error[rows], width[rows], bins=4)
    assert weighted.reason == plain.reason
    assert weighted.value == pytest.approx(plain.value, abs=1e-12, nan_ok=True)
    ours = width_bins(error, width, weights, bins=4)
    theirs = width_bins(error[rows], width[rows], bins=4)
    np.testing.assert_array_equal(ours.codes[rows], theirs.codes)
    for name in ("mass", "mean_width", "mean_error"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-12)


def test_bins_without_a_slope_have_a_value_and_finite_influence():
    """The covariance is exactly 0, as a law of weights found by chance: it may not divide."""
    error, width = np.array([1.0, 1.0, 0.0]), np.array([0.0, 4.0, 2.0])
    flat = binned_r2(error, width, bins=3)
    assert (flat.value, flat.reason) == (0.0, "")
    np.testing.assert_array_equal(flat.influence, np.zeros(3))
    near = binned_r2(error, width + np.array([0.0, 1e-6, 0.0]), bins=3)
    np.testing.assert_allclose(near.influence, np.zeros(3), atol=1e-5)


@pytest.mark.parametrize("decimals", [None, 1, 0])
def test_scipy_agrees_on_a_thousand_rows(decimals):
    error, width = linked(child(1, "scipy"), 1000, decimals)
    assert kendall_tau(error, width).value == pytest.approx(
        stats.kendalltau(error, width).statistic, abs=1e-12
    )
    assert spearman(error, width).value == pytest.approx(
        stats.spearmanr(error, width).statistic, abs=1e-12
    )
    np.testing.assert_allclose(midranks(error[:50]), stats.rankdata(error[:50]))


@EVERY
@pytest.mark.parametrize("decimals", [None, 0])
def test_influence_is_the_derivative_in_each_weight(function, decimals):
    error, width = linked(child(2, "derivative"), 60, decimals)
    weights = child(3, "derivative").integers(1, 4, 60).astype(float)
    ours = function(error, width, weights)
    step = 1e-5
    for row in range(0, 60, 7):
        nudge = step * (np.arange(60) == row)
        rise = function(error, width, weights + nudge).value
        fall = function(error, width, weights - nudge).value
        slope = weights.sum() * (rise - fall) / (2 * step)
        assert ours.influence[row] == pytest.approx(slope, abs=1e-6)
    assert weights @ ours.influence == pytest.approx(0, abs=1e-10)


def wavy(rng, n, decimals):
    """A relation that no line fits, so that R² lies away from 1, where it is not normal."""
    width = rng.uniform(size=n)
    error = np.abs(rng.normal(size=n)) * (1 + width + 0.6 * np.sin(9 * width))
    return (error, width) if decimals is None else (error.round(1), width.round(1))


@pytest.mark.parametrize("decimals", [None, 0])
@pytest.mark.parametrize(
    ("function", "draw", "n"),
    [(kendall_tau, linked, 300), (spearman, linked, 300), (binned_r2, wavy, 1000)],
)
def test_standard_error_is_the_spread_over_simulations(function, draw, n, decimals):
    rng = child(4, "simulation")
    results = [function(*draw(rng, n, decimals)) for _ in range(500)]
    errors = [standard_error(result.influence) for result in results]
    # 500 runs know a standard deviation to 3 % (one standard error).
    assert np.mean(errors) == pytest.approx(np.std([r.value for r in results]), rel=0.1)


@EVERY
def test_frequency_weights_and_repeated_rows_have_one_standard_error(function):
    error, width = linked(child(5, "law"), 50)
    weights = child(6, "law").integers(0, 4, 50).astype(float)
    rows = np.repeat(np.arange(50), weights.astype(int))
    weighted = standard_error(function(error, width, weights).influence, Weights(weights))
    plain = standard_error(function(error[rows], width[rows]).influence)
    assert weighted == pytest.approx(plain, rel=1e-9)


@EVERY
def test_the_order_of_rows_and_the_unit_do_not_matter(function):
    error, width = linked(child(7, "order"), 200, 1)
    mixed = child(8, "order").permutation(200)
    value = function(error, width).value
    assert function(error[mixed], width[mixed]).value == pytest.approx(value, abs=1e-13)
    assert function(3 * error, 7 * width).value == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("function", [kendall_tau, spearman])
def test_only_order_counts_for_ranks(function):
    error, width = linked(child(9, "monotone"), 100)
    value = function(error, width).value
    assert function(error**3, np.log(width)).value == pytest.approx(value, abs=1e-13)
    assert function(error, -width).value == pytest.approx(-value, abs=1e-13)
    assert function(error, error).value == pytest.approx(1, abs=1e-13)
    infinite = np.where(width == width.max(), np.inf, width)
    assert function(error, infinite).value == pytest.approx(value, abs=1e-13)


@pytest.mark.parametrize("function", [kendall_tau, spearman])
def test_constant_input_has_a_reason(function):
    assert function([1.0, 2.0], [3.0, 3.0]).reason == "all widths are equal"
    assert function([1.0, 1.0], [3.0, 4.0]).reason == "all errors are equal"
    assert function([1.0], [3.0]).reason == "all widths are equal"
    lone = function([1.0, 2.0], [3.0, 4.0], np.array([1.0, 0.0]))
    assert np.isnan(lone.value)
    assert lone.influence is None


def test_bins_have_equal_mass_and_keep_ties_together():
    width = child(10, "bins").normal(size=1000)
    table = width_bins(np.ones(1000), width, bins=7)
    assert set(table.mass) <= {142.0, 143.0}
    ends = [(width[table.codes == k].min(), width[table.codes == k].max()) for k in range(7)]
    assert all(one[1] < other[0] for one, other in pairwise(ends))
    tied = np.repeat([1.0, 2.0, 3.0], [60, 30, 10])
    table = width_bins(np.arange(100.0), tied, bins=10)
    assert table.mass.tolist() == [60.0, 30.0, 10.0]
    assert table.mean_width.tolist() == [1.0, 2.0, 3.0]
    assert table.codes.tolist() == (tied - 1.0).tolist()


def test_bins_describe_their_rows():
    error, width = linked(child(11, "describe"), 90)
    table = width_bins(error, width, bins=3)
    for code, rows in enumerate(np.array_split(np.argsort(width), 3)):
        assert table.mean_width[code] == pytest.approx(width[rows].mean())
        assert table.mean_error[code] == pytest.approx(error[rows].mean())


def test_binned_r2_is_that_of_a_line_through_the_bins():
    error, width = linked(child(12, "line"), 400)
    bins = np.array_split(np.argsort(width), 10)
    fit = stats.linregress(
        [width[rows].mean() for rows in bins], [error[rows].mean() for rows in bins]
    )
    assert binned_r2(error, width).value == pytest.approx(fit.rvalue**2, abs=1e-12)
    line = binned_r2(2 * width + 1, width)
    assert line.value == pytest.approx(1, abs=1e-12)
    assert line.reason == ""
    falling = binned_r2(10 - width, width)
    assert falling.value == pytest.approx(1, abs=1e-12)
    assert "falls" in falling.reason


@EVERY
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_extreme_units_do_not_matter(function, scale):
    error, width = linked(child(14, "extreme"), 60)
    value = function(error, width).value
    assert function(scale * error, width / scale).value == pytest.approx(value, abs=1e-12)


def test_an_infinite_width_without_weight_does_not_count():
    error, width = linked(child(15, "infinite"), 60)
    weights = np.r_[0.0, np.ones(59)]
    width[0] = np.inf
    result = binned_r2(error, width, weights, bins=4)
    assert result.value == pytest.approx(binned_r2(error[1:], width[1:], bins=4).value, abs=1e-12)
    assert np.isfinite(result.influence).all()


def test_widths_that_say_nothing_give_one_over_bins_less_one():
    rng = child(13, "noise")
    values = [binned_r2(rng.normal(size=500), rng.normal(size=500)).value for _ in range(1000)]
    assert np.mean(values) == pytest.approx(1 / 9, abs=4 * np.std(values) / 1000**0.5)


def test_binned_r2_that_cannot_be_computed_has_a_reason():
    ten = np.arange(10.0)
    assert "fewer than three" in binned_r2(ten, np.ones(10)).reason
    assert "fewer than three" in binned_r2(ten, np.repeat([1.0, 2.0], 5)).reason
    assert "same mean error" in binned_r2(np.ones(10), ten).reason
    assert "infinite" in binned_r2(ten, np.r_[ten[:-1], np.inf]).reason
    assert "mean error is infinite" in binned_r2(np.full(30, 1.7e308), np.arange(30.0)).reason
    assert "same mean error" in binned_r2(np.full(10, 0.1), ten, bins=3).reason
    assert "same mean width" in binned_r2(ten, 1 + 1e-15 * ten).reason
    assert np.isnan(binned_r2(ten, np.ones(10)).value)


@pytest.mark.parametrize("function", [kendall_tau, spearman, binned_r2])
def test_bad_input_is_named(function):
    with pytest.raises(InputError, match="error must contain finite numbers"):
        function([1.0, np.inf], [1.0, 2.0])
    with pytest.raises(InputError, match="width must contain no missing values"):
        function([1.0, 2.0], [1.0, np.nan])
    with pytest.raises(InputError, match="width must have 2 rows"):
        function([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="weights must not all be zero"):
        function([1.0, 2.0], [1.0, 2.0], np.zeros(2))


@pytest.mark.parametrize("bins", [0, 2, 2.5, True])
def test_bins_are_checked(bins):
    with pytest.raises(InputError, match="bins must be"):
        binned_r2([1.0, 2.0], [1.0, 2.0], bins=bins)


def test_published_correlations_are_reproduced(data_dir):
    """CC of Pernot's tables, on his rows: those with an sd above 1e-6 of the errors' sd."""
    folder = data_dir("preds_chem_pernot")
    with (folder / "expected_zetaScores_2024_RCE.csv").open() as lines:
        expected = {row["set"]: float(row["CC"]) for row in csv.DictReader(lines)}
    seen = 0
    for path in sorted(folder.glob("PAL2022__*_Test_cal.csv.gz")):
        with gzip.open(path, "rt") as lines:
            rows = [(float(row["E"]), float(row["uE"])) for row in csv.DictReader(lines)]
        error, sd = np.array(rows).T
        kept = sd > 1e-6 * error.std(ddof=1)
        name = path.name.removeprefix("PAL2022__").removesuffix("_cal.csv.gz")
        value = spearman(np.abs(error[kept]), sd[kept]).value
        assert value == pytest.approx(expected[name], abs=1e-12)
        seen += 1
    assert seen == 6
