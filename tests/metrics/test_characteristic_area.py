"""Areas and gains: the worked example by every convention, identities, the paper's theory."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError
from howsure.topics.characteristic.bands import bands_from_sd
from howsure.topics.characteristic.curve import characteristic_curve
from howsure.topics.characteristic.operating import measure
from howsure.topics.characteristic.trace import AreaRequest
from oracles import characteristic as oracle

ERROR = np.array([1.0, -2.0, 0.5, 3.0])
BAND = np.array([1.0, 1.0, 1.0, 2.0])

quarter = st.integers(-24, 24).map(lambda number: number / 4)
positive = st.integers(1, 12).map(lambda number: number / 4)
table = st.lists(st.tuples(quarter, positive, positive), min_size=1, max_size=10)


def example(**options):
    return characteristic_curve(ERROR, np.zeros(4), -BAND, BAND, **options)


def noisy(n, seed, *, asymmetric=False, **options):
    rng = np.random.default_rng(seed)
    error, below = rng.standard_t(3, n), rng.uniform(0.2, 2.0, n)
    above = rng.uniform(0.2, 2.0, n) if asymmetric else below
    return characteristic_curve(error, np.zeros(n), -below, above, **options)


def test_worked_example_by_every_convention():
    model, constant = example(), example().constant()
    assert model.area().value == 1.5625
    assert model.area("paper").value == 0.9375
    assert constant.area().value == 1.625
    assert constant.area("paper").value == 0.875
    toolkit, flat = model.uq360(), constant.uq360()
    assert toolkit.area(AreaRequest()) * toolkit.x_unit == pytest.approx(0.703125, rel=1e-15)
    assert flat.area(AreaRequest()) * flat.x_unit == pytest.approx(0.8125, rel=1e-15)
    assert np.trapezoid(model.y, model.x) == 1.25
    assert np.trapezoid(constant.y, constant.x) == 1.25


def test_worked_example_four_conventions_four_signs():
    model = example()
    assert model.gain("paper").value == pytest.approx(-100 / 14, abs=1e-12)
    assert model.gain().value == pytest.approx(100 * 0.0625 / 1.625, abs=1e-12)
    from_first = 100.0 * (0.8125 - 0.703125) / 0.8125
    assert from_first == pytest.approx(13.46, abs=0.005)
    # the toolkit divides by the model's area
    assert model.gain("uq360").value == pytest.approx(100.0 * (0.8125 - 0.703125) / 0.703125)


def test_every_area_names_its_convention():
    area = example().partial_area(y_range=(0, 0.5), reading="left")
    assert area.request.convention == "exact"
    assert area.request.reading == "left"
    assert area.units == "y"
    assert example(y_axis="deficit").area().units == "y²"
    assert example().area("uq360").units == "sd of y"
    assert example().gain("paper").area.request.convention == "paper"


@examples(150)
@given(table)
def test_area_is_the_mean_critical_bandwidth(rows):
    error, below, above = np.array(rows).T
    curve = characteristic_curve(error, np.zeros(len(error)), -below, above)
    scale = np.sort(np.abs(error) / np.where(error >= 0, above, below))
    band = 0.5 * np.mean(below + above)
    assert curve.area().value == pytest.approx(band * scale.mean(), rel=1e-13, abs=1e-15)
    # eq. 14, with the miss rate at a critical scale counted after all of its ties
    places = band * np.unique(np.append(0.0, scale))
    after = np.array([np.mean(scale * band > place) for place in places])
    paper = np.sum(after[1:] * np.diff(places))
    assert curve.area("paper").value == pytest.approx(paper, rel=1e-12, abs=1e-14)


def test_without_ties_the_printed_sum_loses_the_largest_term():
    curve = noisy(300, 10)
    bandwidth = curve.x[1:]
    assert len(bandwidth) == 300
    assert curve.area("paper").value == pytest.approx(bandwidth[:-1].sum() / 300, rel=1e-12)
    assert curve.area().value == pytest.approx(bandwidth.sum() / 300, rel=1e-12)


def test_a_symmetric_constant_band_has_the_mean_absolute_error():
    curve = noisy(500, 1)
    size = np.abs(curve.bands.error)
    assert curve.constant().area().value == pytest.approx(size.mean(), rel=1e-13)
    for width in (0.01, 7.0):
        flat = characteristic_curve(
            curve.bands.error, np.zeros(500), np.full(500, -width), np.full(500, width)
        )
        assert flat.area().value == pytest.approx(size.mean(), rel=1e-13)
        assert flat.gain().value == pytest.approx(0.0, abs=1e-10)


def test_a_lopsided_band_is_measured_against_one_as_lopsided():
    """In closed form, and without gain where the band is constant itself."""
    curve = noisy(500, 1, asymmetric=True)
    error, below, above = curve.bands.error, curve.bands.below, curve.bands.above
    side = np.where(error >= 0, above.mean(), below.mean())
    area = 0.5 * (below.mean() + above.mean()) * np.mean(np.abs(error) / side)
    assert curve.constant().area().value == pytest.approx(area, rel=1e-12)
    gain = 100 * (1 - curve.area().value / area)
    assert curve.gain().value == pytest.approx(gain, rel=1e-10)
    skewed = np.random.default_rng(2).gamma(1.0, 1.0, 500) - 0.05
    low, high = np.full(500, -0.1), np.full(500, 2.9)
    flat = characteristic_curve(skewed, np.zeros(500), low, high)
    assert flat.gain().value == pytest.approx(0.0, abs=1e-10)
    assert flat.partial_gain(y_range=(0.0, 0.2)).value == pytest.approx(0.0, abs=1e-10)
    assert flat.gain("paper").value > 20.0  # as published: against a symmetric band


def test_gain_is_a_covariance():
    curve = noisy(2000, 2)
    band, size = curve.bands.above, np.abs(curve.bands.error)
    covariance = np.cov(band, size / band, ddof=0)[0, 1]
    assert curve.gain().value == pytest.approx(100 * covariance / size.mean(), rel=1e-10)


def test_proposition_1_area_estimates_the_expected_critical_bandwidth():
    # e = σε with σ uniform and ε normal: k = |ε|, so E[B] = E[σ]·√(2/π)
    n = 100_000
    rng = np.random.default_rng(3)
    sd = rng.uniform(0.5, 2.0, n)
    curve = characteristic_curve(rng.normal(0.0, sd), *bands_from_sd(np.zeros(n), sd))
    expected = 1.25 * math.sqrt(2.0 / math.pi)
    spread = 1.25 * math.sqrt((1.0 - 2.0 / math.pi) / n) + 0.8 * math.sqrt(1.5**2 / 12 / n)
    assert abs(curve.area().value - expected) < 4 * spread
    assert curve.area().value - curve.area("paper").value == pytest.approx(curve.x[-1] / n)


@pytest.mark.parametrize("move", ["scale", "bias"])
def test_corollary_1_area_is_the_mean_excess_at_the_critical_points(move):
    curve = noisy(300, 4, asymmetric=True, x="excess", move=move)
    excess = [measure(curve.bands, setting)["excess"] for setting in curve.bands.critical()]
    assert curve.area().value == pytest.approx(np.mean(excess), rel=1e-12)


def test_remark_2_half_cost_is_half_the_mean_absolute_gap():
    curve = noisy(400, 5, x="excess", y_axis="deficit")
    size, band = np.abs(curve.bands.error), curve.bands.above
    for knob in (0.0, 0.4, 1.0, 3.0):
        point = curve.at(knob=knob)
        half = 0.5 * point.excess + 0.5 * point.deficit
        assert half == pytest.approx(0.5 * np.mean(np.abs(size - knob * band)), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.5])
def test_interval_score_is_a_cost_of_bandwidth_and_deficit(alpha):
    curve = noisy(400, 6, asymmetric=True, y_axis="deficit")
    bands = curve.bands
    for knob in (0.5, 1.0, 2.0):
        low, high = -knob * bands.below, knob * bands.above
        score = (high - low) + 2 / alpha * (
            np.maximum(low - bands.error, 0) + np.maximum(bands.error - high, 0)
        )
        point = curve.at(knob=knob)
        assert score.mean() == pytest.approx(2 * (point.bandwidth + point.deficit / alpha))
        weight = alpha / (1 + alpha)
        cost = weight * point.bandwidth + (1 - weight) * point.deficit
        assert score.mean() == pytest.approx(2 * (1 + alpha) / alpha * cost)
        # the printed remark has the miss rate in the deficit's place, and 1/(1 + α) as its weight
        printed = point.bandwidth / (1 + alpha) + alpha / (1 + alpha) * point.miss_rate
        assert score.mean() != pytest.approx((1 + alpha) / alpha * printed, rel=0.01)
    now = curve.cost(coverage=1.0 - alpha)
    score = (bands.above + bands.below) + 2 / alpha * (
        np.maximum(-bands.below - bands.error, 0) + np.maximum(bands.error - bands.above, 0)
    )
    assert now.cost_now == pytest.approx(score.mean())


@examples(120)
@given(
    table,
    st.sampled_from(["bandwidth", "excess"]),
    st.sampled_from(["miss_rate", "deficit"]),
    st.sampled_from(["scale", "bias"]),
    st.integers(0, 9),
    st.integers(1, 10),
)
def test_partial_areas_agree_with_the_corners(rows, x, y_axis, move, start, width):
    error, below, above = np.array(rows).T
    zero = np.zeros(len(error))
    curve = characteristic_curve(error, zero, -below, above, x=x, y_axis=y_axis, move=move)
    corners = oracle.polyline(oracle.rows_of(error, zero, -below, above), x, y_axis, move)
    top = 1 if y_axis == "miss_rate" else 4
    # levels between the steps, so that rounding cannot move an end by a whole step
    low, high = top * (start + 0.37) / 21, top * (start + width + 0.41) / 21
    left, right = oracle.reach(corners, high), oracle.reach(corners, low)
    under = float(oracle.under(corners, left, right))
    found = curve.partial_area(y_range=(low, high))
    assert found.complete
    assert found.value == pytest.approx(under, rel=1e-9, abs=1e-12)
    rectangle = high * float(left) - low * float(right)
    beside = curve.partial_area(y_range=(low, high), reading="left")
    assert beside.value == pytest.approx(under + rectangle, rel=1e-9, abs=1e-12)
    assert beside.mean == pytest.approx(beside.value / (high - low))
    by_x = curve.partial_area(x_range=(0.3, 2.9))
    exact = float(oracle.under(corners, 0.3, 2.9))
    assert by_x.value == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_left_area_is_the_integral_of_critical_bandwidths():
    curve = noisy(200, 7)
    bandwidth = np.sort(curve.x[1:])[::-1]  # by rising miss rate, each over a share 1/n
    part = curve.partial_area(y_range=(0.1, 0.35), reading="left")
    assert part.value == pytest.approx(bandwidth[20:70].sum() / 200)
    assert part.mean == pytest.approx(bandwidth[20:70].mean())


def test_parts_add_up_to_the_whole():
    curve = noisy(200, 8, asymmetric=True)
    for reading in ("under", "left"):
        parts = [
            curve.partial_area(y_range=part, reading=reading).value
            for part in ((0, 0.2), (0.2, 0.7), (0.7, 1))
        ]
        assert sum(parts) == pytest.approx(curve.area().value, rel=1e-12)
    paper = [
        curve.partial_area(y_range=part, convention="paper").value for part in ((0, 0.2), (0.2, 1))
    ]
    assert sum(paper) == pytest.approx(curve.area("paper").value, rel=1e-12)
    ends = (0.0, 0.8, 2 * curve.x[-1])
    along = [curve.partial_area(x_range=ends[j : j + 2]).value for j in range(2)]
    assert sum(along) == pytest.approx(curve.area().value, rel=1e-12)


def test_paper_area_of_a_part_by_hand():
    # rectangles after the drops: .75, .5, .25, 0 over widths of .625
    curve = example()
    assert curve.partial_area(x_range=(0.3, 1.0), convention="paper").value == pytest.approx(
        0.325 * 0.75 + 0.375 * 0.5
    )
    # miss rate .5 is reached at 1.25 and 0 at 2.5
    assert curve.partial_area(y_range=(0, 0.5), convention="paper").value == 0.625 * 0.25


def test_paper_area_stands_on_critical_points_alone():
    # on the excess axis unequal bands bend the curve between drops: no rectangle begins there
    rows = ([1.0, -3.0], [0.0, 0.0], [-1.0, -1.0], [4.0, 4.0])
    curve = characteristic_curve(*rows, x="excess")
    drops = [0.0] + [curve.at(knob=knob).excess for knob in (0.25, 3.0)]
    assert len(curve.x) > 3
    assert curve.area("paper").value == pytest.approx(0.5 * (drops[1] - drops[0]))


def row_16(n, seed):
    rng = np.random.default_rng(seed)
    sd = rng.uniform(0.5, 2.0, n)
    return characteristic_curve(rng.normal(0.0, sd), *bands_from_sd(np.zeros(n), sd))


@pytest.mark.parametrize("seed", [0, 1])
def test_a_perfectly_specified_model_gains_nothing_overall_but_at_low_miss_rates(seed):
    curve = row_16(100_000, seed)
    assert abs(curve.gain().value) <= 1.0
    for largest, under, left in ((0.1, 31.0, 12.4), (0.2, 26.8, 8.7), (0.5, 14.8, 2.8)):
        part = (0.0, largest)
        assert curve.partial_gain(y_range=part).value == pytest.approx(under, abs=1.0)
        gain = curve.partial_gain(y_range=part, reading="left").value
        assert gain == pytest.approx(left, abs=1.0)


def test_the_overall_gain_prefers_shrunken_bands():
    rng = np.random.default_rng(9)
    sd = rng.uniform(0.5, 2.0, 50_000)
    error, zero = rng.normal(0.0, sd), np.zeros(50_000)
    gains = [
        characteristic_curve(error, *bands_from_sd(zero, sd**power)).gain().value
        for power in (0.5, 1.0, 2.0)
    ]
    assert gains[0] > 2.0
    assert abs(gains[1]) < 1.5
    assert gains[2] < -5.0


def test_gain_needs_an_area():
    curve = example()
    nothing = curve.partial_gain(x_range=(3.5, 4.0))
    assert math.isnan(nothing.value)
    assert nothing.reason == "the area of the constant band is 0"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a y_range or an x_range"),
        ({"y_range": (0, 0.5), "x_range": (0, 1)}, "must not both be given"),
        ({"y_range": (0.5, 0.5)}, "two rising numbers between 0 and 1"),
        ({"y_range": (0, 1.5)}, "two rising numbers between 0 and 1"),
        ({"x_range": (-1, 1)}, "two rising numbers of at least 0"),
        ({"x_range": (0, math.inf)}, "finite"),
        ({"x_range": (0, 1, 2)}, "two rising numbers"),
        ({"x_range": (0, 1), "reading": "left"}, "reading 'left' needs a y_range"),
        ({"y_range": (0, 1), "reading": "left", "convention": "paper"}, "convention 'exact'"),
        ({"y_range": (0, 1), "reading": "right"}, "reading must be one of"),
        ({"y_range": (0, 1), "convention": "trapezoid"}, "convention must be one of"),
    ],
)
def test_requests_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        example().partial_area(**options)


@pytest.mark.parametrize(
    ("law", "excess", "deficit", "density", "area"),
    [
        (  # errors uniform on [0, 1]
            stats.uniform(),
            lambda k: k**2 / 2,
            lambda k: (1 - k) ** 2 / 2,
            lambda k: 1 / k,
            1 / 24,
        ),
        (  # exponential errors: the excess has no bound, so that the paper's Q is infinite
            stats.expon(),
            lambda k: k - 1 + np.exp(-k),
            lambda k: np.exp(-k),
            lambda k: np.exp(-k) / (1 - np.exp(-k)),
            1 / 2,
        ),
    ],
    ids=["bounded", "unbounded"],
)
def test_the_area_over_excess_and_deficit_is_the_mean_deficit_over_excesses(
    law, excess, deficit, density, area
):
    """Proposition 2: of D/p_X(X) over critical scales, of the deficit over even excesses."""
    errors = law.ppf((np.arange(40_000) + 0.5) / 40_000)
    curve = characteristic_curve(
        errors,
        0 * errors,
        -np.ones(len(errors)),
        np.ones(len(errors)),
        x="excess",
        y_axis="deficit",
    )
    assert curve.area().value == pytest.approx(area, rel=2e-3)
    scales = law.rvs(400_000, random_state=np.random.default_rng(3))  # critical ones, as z = 1
    weighed = deficit(scales) / density(scales)
    error = weighed.std() / len(scales) ** 0.5
    assert abs(weighed.mean() - area) < 4 * error
    largest = excess(errors[-1])
    even = np.linspace(0, largest, 50_001)
    knobs = np.interp(even, excess(np.append(0, errors)), np.append(0, errors))
    assert largest * deficit(knobs).mean() == pytest.approx(area, rel=5e-3)
