"""Operating points, what they promise, and what they cost."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import beta

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.topics.characteristic.curve import characteristic_curve
from oracles import characteristic as oracle

ERROR = np.array([1.0, -2.0, 0.5, 3.0])
BAND = np.array([1.0, 1.0, 1.0, 2.0])
AXES = ("bandwidth", "miss_rate", "excess", "deficit")

quarter = st.integers(-24, 24).map(lambda number: number / 4)
positive = st.integers(1, 12).map(lambda number: number / 4)
table = st.lists(st.tuples(quarter, positive, positive), min_size=1, max_size=10)


def example(**options):
    return characteristic_curve(ERROR, np.zeros(4), -BAND, BAND, **options)


def curve_from(rows, **options):
    error, below, above = np.array(rows).T
    zero = np.zeros(len(error))
    curve = characteristic_curve(error, zero, -below, above, **options)
    return curve, oracle.rows_of(error, zero, -below, above)


@examples(100)
@given(table, st.sampled_from(["scale", "bias"]), st.integers(0, 16))
def test_measures_at_any_setting(rows, move, sixteenths):
    curve, exact = curve_from(rows, move=move)
    knob = curve.knob[0] + 0.37 * sixteenths  # off the kinks, where a rounded end could tip a row
    point = curve.at(knob=knob)
    for name, value in oracle.measures(exact, knob, move).items():
        assert getattr(point, name) == pytest.approx(float(value), rel=1e-12, abs=1e-12)


def test_the_present_point_lies_on_the_curve():
    point = example().at()
    assert (point.wanted, point.knob, point.move) == ("now", 1.0, "scale")
    assert (point.bandwidth, point.miss_rate) == (1.25, 0.5)
    assert example(move="bias").at().knob == 0.0
    assert example(move="bias").at().bandwidth == 1.25


@examples(100)
@given(table, st.sampled_from(["scale", "bias"]), st.integers(1, 40))
def test_wishes_are_met_as_cheaply_as_possible(rows, move, size):
    curve, _ = curve_from(rows, move=move)
    tiny = 1e-7 * (1.0 + abs(curve.knob[-1]))
    for name in ("miss_rate", "deficit"):
        wish = size / 40 if name == "miss_rate" else size / 20
        point = curve.at(**{name: wish})
        assert getattr(point, name) <= wish * (1 + 1e-9) + 1e-12
        if point.knob - tiny > curve.knob[0] and getattr(point, name) < curve.trace.axes[name][0]:
            assert getattr(curve.at(knob=point.knob - tiny), name) > wish - 1e-12
    for name in ("bandwidth", "excess"):
        wish = size / 20
        point = curve.at(**{name: wish})
        assert getattr(point, name) == pytest.approx(wish, rel=1e-9)
        assert getattr(curve.at(knob=point.knob + tiny), name) > wish


def test_a_wish_beyond_the_last_vertex():
    assert example().at(bandwidth=25.0).knob == 20.0
    # all captured at k = 2: excess = mean(k·z − |e|)
    assert example().at(excess=10.0).knob == pytest.approx((10.0 + 6.5 / 4) / 1.25)
    assert example(move="bias").at(bandwidth=10.0).knob == pytest.approx(8.75)


def test_wishes_that_cannot_be_met_have_a_reason():
    curve = characteristic_curve([1.0, 1.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 0.0])
    point = curve.at(miss_rate=0.2)
    assert math.isnan(point.knob)
    assert math.isnan(point.bandwidth)
    assert "no setting brings the miss rate below 0.5" in point.reason
    assert "no setting brings the deficit" in curve.at(deficit=0.1).reason
    assert curve.at(miss_rate=0.5).knob == 1.0
    flat = characteristic_curve([1.0, -1.0], [0.0, 0.0], [0.0, -1.0], [1.0, 0.0])
    assert "never exceeds" in flat.at(excess=3.0).reason


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"miss_rate": 1.2}, "miss_rate must not exceed 1"),
        ({"miss_rate": -0.1}, "miss_rate must be finite and at least 0"),
        ({"bandwidth": math.inf}, "bandwidth must be finite"),
        ({"excess": math.nan}, "excess must be finite"),
        ({"knob": -0.5}, "knob must be finite and at least 0"),
        ({"bandwidth": 1.0, "miss_rate": 0.1}, "at most one target may be given"),
        ({"confidence": 1.0}, "confidence must be strictly"),
    ],
)
def test_wishes_are_checked(wish, message):
    with pytest.raises(InputError, match=message):
        example().at(**wish)


def test_split_conformal_rank():
    rng = np.random.default_rng(0)
    error = rng.normal(size=99)
    curve = characteristic_curve(error, np.zeros(99), -np.ones(99), np.ones(99))
    point = curve.at(miss_rate=0.1)
    size = np.sort(np.abs(error))
    assert point.knob == size[math.ceil(0.9 * 99) - 1]
    assert point.conformal.rank == 90
    assert point.conformal.knob == size[89]
    assert point.conformal.coverage == pytest.approx(0.9)
    assert point.conformal.coverage_lower == pytest.approx(beta.ppf(0.05, 90, 10))
    few = curve.at(miss_rate=0.005).conformal
    assert few.knob == math.inf
    assert few.reason == "99 rows are too few for a miss rate of 0.005"


@pytest.mark.slow
def test_split_conformal_promise_holds_by_simulation():
    # 4,000 draws of 39 rows with a fresh one: coverage is rank/(n + 1) exactly
    rng = np.random.default_rng(1)
    covered = chance = 0
    for _ in range(4000):
        width = rng.uniform(0.5, 2.0, 40)
        error = rng.standard_t(3, 40)
        held = slice(0, 39)
        curve = characteristic_curve(error[held], np.zeros(39), -width[held], width[held])
        promise = curve.at(miss_rate=0.23).conformal
        covered += abs(error[39]) <= promise.knob * width[39]
        chance = promise.coverage
    assert chance == 31 / 40
    assert abs(covered / 4000 - chance) < 4 * math.sqrt(chance * (1 - chance) / 4000)


@pytest.mark.slow
def test_lower_bounds_hold_by_simulation():
    # all bands 1 and errors uniform on (0, 1): the coverage of a setting k is k
    rng = np.random.default_rng(2)
    failures = np.zeros(2)
    for _ in range(2000):
        error = rng.uniform(0.0, 1.0, 60)
        curve = characteristic_curve(error, np.zeros(60), -np.ones(60), np.ones(60))
        promise = curve.at(miss_rate=0.2, confidence=0.9).conformal
        failures[0] += promise.knob < promise.coverage_lower
        chosen = curve.cost(miss_cost=2.0).knob  # a setting found by looking
        failures[1] += chosen < curve.at(knob=chosen, confidence=0.9).conformal.coverage_lower
    assert abs(failures[0] / 2000 - 0.1) < 4 * math.sqrt(0.09 / 2000)
    assert failures[1] / 2000 <= 0.1


def test_promises_need_exchangeable_rows():
    weighted = example(weights=[0.5, 1.0, 1.0, 1.0], weights_kind="importance")
    assert "importance weights" in weighted.at(miss_rate=0.5).conformal.reason
    assert math.isnan(weighted.at().conformal.coverage)
    pair = np.column_stack([ERROR, ERROR])
    band = np.column_stack([BAND, BAND])
    pooled = characteristic_curve(pair, 0 * pair, -band, band)
    assert "several outputs" in pooled.at(miss_rate=0.5).conformal.reason
    assert pooled.outputs[0].at(miss_rate=0.5).conformal.rank == 3


@examples(100)
@given(
    table,
    st.sampled_from(["bandwidth", "excess"]),
    st.sampled_from(["miss_rate", "deficit"]),
    st.sampled_from(["scale", "bias"]),
    st.integers(0, 400),
)
def test_the_optimum_beats_every_setting(rows, x, y_axis, move, tenths):
    curve, exact = curve_from(rows, x=x, y_axis=y_axis, move=move)
    x_weight, y_weight = 2.0, tenths / 10
    found = curve.cost(miss_cost=y_weight)
    knobs = oracle.settings(exact, move)
    tried = knobs + [(a + b) / 2 for a, b in pairwise(knobs)] + [knobs[-1] + 1]
    least = min(
        x_weight * float(here[x]) + y_weight * float(here[y_axis])
        for here in (oracle.measures(exact, knob, move) for knob in tried)
    )
    assert found.cost == pytest.approx(least, rel=1e-11, abs=1e-13)
    assert found.cost == pytest.approx(x_weight * found.x + y_weight * found.y)
    assert found.regret >= -1e-12
    now = curve.at()
    present = x_weight * getattr(now, x) + y_weight * getattr(now, y_axis)
    assert found.cost_now == pytest.approx(present, abs=1e-15)


@pytest.mark.parametrize("x", ["bandwidth", "excess"])
@pytest.mark.parametrize("y_axis", ["miss_rate", "deficit"])
def test_the_papers_weight_is_a_price(x, y_axis):
    rng = np.random.default_rng(5)
    size, band = np.abs(rng.normal(size=80)), rng.uniform(0.5, 2.0, 80)
    curve = characteristic_curve(size, 0 * size, -band, band, x=x, y_axis=y_axis)
    for weight in (0.05, 0.3, 0.5, 0.9, 1.0):
        cost, priced = curve.cost(cost_weight=weight), 2 * (1 - weight) / weight
        other = curve.cost(miss_cost=priced)
        assert cost.knob == other.knob
        assert cost.cost == pytest.approx(weight / 2 * other.cost)
        assert cost.slope == pytest.approx(other.slope)
        knobs = np.append(curve.knob, 1.0)
        here = [curve.at(knob=float(knob)) for knob in knobs]
        tried = [weight * getattr(p, x) + (1 - weight) * getattr(p, y_axis) for p in here]
        assert cost.cost == pytest.approx(min(tried))
        assert cost.cost_now == pytest.approx(tried[-1])
    none_missed = curve.cost(cost_weight=0.0)
    assert none_missed.cost == none_missed.y == 0.0
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(InputError, match=r"cost_weight must be in \[0, 1\]"):
            curve.cost(cost_weight=wrong)


def test_at_equal_weights_excess_and_deficit_cost_half_the_distance_from_the_nearer_end():
    """Remark 2 of the paper: C = ½ mean |k z_i − d_i|, for bands that are symmetric."""
    rng = np.random.default_rng(6)
    size, band = np.abs(rng.normal(size=60)), rng.uniform(0.5, 2.0, 60)
    curve = characteristic_curve(size, 0 * size, -band, band, x="excess", y_axis="deficit")
    half = curve.cost(cost_weight=0.5)
    assert half.cost_now == pytest.approx(0.5 * np.abs(band - size).mean())
    assert half.cost == pytest.approx(0.5 * np.abs(half.knob * band - size).mean())


def test_scale_zero_can_be_the_optimum():
    assert example().cost(miss_cost=0.2).knob == 0.0


def test_the_median_problem_of_excess_and_deficit():
    rng = np.random.default_rng(3)
    size, band = np.abs(rng.normal(size=101)), rng.uniform(0.5, 2.0, 101)
    curve = characteristic_curve(size, 0 * size, -band, band, x="excess", y_axis="deficit")
    # the weighted median of k_i with weights z_i
    order = np.argsort(size / band)
    half = np.searchsorted(np.cumsum(band[order]), band.sum() / 2)
    assert curve.cost(miss_cost=2.0).knob == (size / band)[order[half]]


def test_isocost_lines():
    found = example().cost(miss_cost=8.0)
    assert found.slope == -0.25
    assert found.isocost([found.x])[0] == pytest.approx(found.y)
    curve = example()
    assert (curve.y >= found.isocost(curve.x) - 1e-15).all()
    now = found.x_weight * found.x_now + found.y_weight * found.y_now
    assert found.cost_now == pytest.approx(now)
    free = example().cost(miss_cost=0.0)
    assert free.slope == -math.inf
    assert np.isnan(free.isocost([1.0])).all()


@pytest.mark.parametrize("price", [-1.0, math.inf, math.nan])
def test_prices_are_checked(price):
    with pytest.raises(InputError, match="miss_cost must be finite and at least 0"):
        example().cost(miss_cost=price)


def test_no_price_is_supposed():
    """The default was 1 for each axis, at which it was cheapest to miss everything."""
    for prices, came in (
        ({}, "none"),
        ({"miss_cost": 1.0, "coverage": 0.9}, "miss_cost and coverage"),
        ({"miss_cost": 1.0, "cost_weight": 0.5}, "miss_cost and cost_weight"),
    ):
        rule = f"one of miss_cost, coverage, cost_weight must be given, got {came}"
        with pytest.raises(InputError, match=rule):
            example().cost(**prices)
    with pytest.raises(InputError, match="coverage"):
        example().cost(coverage=90)


def scores(curve, knob, alpha):
    """The mean interval score of bands scaled by a knob, from its definition."""
    low, high, y = -knob * curve.bands.below, knob * curve.bands.above, curve.bands.error
    short = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return float(np.mean(high - low + 2.0 / alpha * short))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_a_coverage_has_its_own_price_on_the_deficit(coverage):
    rng = np.random.default_rng(5)
    size, band = np.abs(rng.normal(size=300)), rng.uniform(0.5, 2.0, 300)
    curve = characteristic_curve(size, 0 * size, -band, band, y_axis="deficit")
    knobs = np.linspace(0.0, 4.0, 2001)
    brute = [scores(curve, knob, 1 - coverage) for knob in knobs]
    found = curve.cost(coverage=coverage)
    assert found.cost_now == pytest.approx(scores(curve, 1.0, 1 - coverage))
    assert found.cost <= min(brute) + 1e-12
    assert found.knob == pytest.approx(knobs[int(np.argmin(brute))], abs=0.02)
    # the z-weighted miss rate at the cheapest scale is α
    missed = np.average(size > found.knob * band * (1 + 1e-12), weights=band)
    assert missed == pytest.approx(1 - coverage, abs=2.0 / 300)
    excess = curve.on(x="excess", y_axis="deficit").cost(coverage=coverage)
    assert excess.knob == found.knob
    assert excess.cost == pytest.approx(found.cost - 2.0 * size.mean())


def test_a_coverage_has_no_price_elsewhere():
    with pytest.raises(UnanswerableError, match="sets no price of a miss"):
        example().cost(coverage=0.9)
    lopsided = characteristic_curve(ERROR, 0 * ERROR, -BAND, 2 * BAND, x="excess", y_axis="deficit")
    with pytest.raises(UnanswerableError, match="bands are not symmetric"):
        lopsided.cost(coverage=0.9)
    assert lopsided.on(x="bandwidth", y_axis="deficit").cost(coverage=0.9).cost > 0


def test_width_and_misses_are_least_where_the_density_is_the_price_over_one():
    """Why a coverage has no price on the miss rate: for N(0, s²) it is s / density at the end."""
    levels = (np.arange(200_000) + 0.5) / 200_000
    for spread in (1.0, 3.0):
        y = spread * stats.norm.ppf(levels)
        curve = characteristic_curve(y, 0 * y, -np.ones_like(y), np.ones_like(y))
        price = spread / stats.norm.pdf(stats.norm.ppf(0.95))
        assert curve.cost(miss_cost=price).y == pytest.approx(0.1, abs=0.002)
