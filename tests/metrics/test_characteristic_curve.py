"""The curve itself: the worked example, brute force from the definition, edges, weights."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.topics.characteristic.bands import bands_from_sd
from howsure.topics.characteristic.curve import characteristic_curve
from howsure.topics.characteristic.trace import find_kinks, running_sum, trace
from oracles import characteristic as oracle

AXES = ("bandwidth", "miss_rate", "excess", "deficit")
ERROR = np.array([1.0, -2.0, 0.5, 3.0])
BAND = np.array([1.0, 1.0, 1.0, 2.0])

quarter = st.integers(-24, 24).map(lambda number: number / 4)
band = st.integers(0, 12).map(lambda number: number / 4)
row = st.tuples(quarter, quarter, band, band)
table = st.lists(row, min_size=1, max_size=12).filter(
    lambda rows: any(below > 0 or above > 0 for *_, below, above in rows)
)


def example():
    return characteristic_curve(ERROR, np.zeros(4), -BAND, BAND)


def arrays(rows):
    point, error, below, above = np.array(rows).T
    return point + error, point, point - below, point + above


def test_worked_example():
    curve = example()
    assert curve.knob.tolist() == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert curve.x.tolist() == [0.0, 0.625, 1.25, 1.875, 2.5]
    assert curve.y.tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]


def assert_agrees(curve, rows, move):
    """All axes at all vertices, to 1e-12 of each axis's largest value."""
    exact = oracle.settings(rows, move)
    place = np.array([float(setting) for setting in exact])
    found = {name: [] for name in AXES}
    for knob in curve.knob:
        nearest = int(np.argmin(np.abs(place - knob)))
        assert place[nearest] == pytest.approx(knob, rel=1e-14, abs=1e-14)
        for name, value in oracle.measures(rows, exact[nearest], move).items():
            found[name].append(float(value))
    for name in AXES:
        error = np.abs(curve.trace.axes[name] - found[name]).max()
        assert error <= 1e-12 * max(found[name]), name


@examples(200)
@given(table, st.sampled_from(["scale", "bias"]))
def test_agrees_with_the_definition(rows, move):
    y, point, lower, upper = arrays(rows)
    curve = characteristic_curve(y, point, lower, upper, move=move)
    assert_agrees(curve, oracle.rows_of(y, point, lower, upper), move)


@examples(100)
@given(table, st.sampled_from(["scale", "bias"]), st.data())
def test_agrees_with_the_definition_under_weights(rows, move, data):
    y, point, lower, upper = arrays(rows)
    positive = (upper > lower).astype(int)
    weights = [data.draw(st.integers(int(one), 3)) for one in positive]
    curve = characteristic_curve(y, point, lower, upper, move=move, weights=weights)
    assert_agrees(curve, oracle.rows_of(y, point, lower, upper, weights), move)


@examples(50)
@given(table, st.sampled_from(["scale", "bias"]))
def test_every_drop_and_bend_is_a_vertex(rows, move):
    y, point, lower, upper = arrays(rows)
    curve = characteristic_curve(y, point, lower, upper, move=move)
    exact = oracle.rows_of(y, point, lower, upper)
    for x in ("bandwidth", "excess"):
        for y_axis in ("miss_rate", "deficit"):
            corners = oracle.polyline(exact, x, y_axis, move)
            whole = float(oracle.under(corners, 0, corners[-1][0]))
            on = curve.on(x=x, y_axis=y_axis)
            assert on.area().value == pytest.approx(whole, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("move", ["scale", "bias"])
@pytest.mark.parametrize("kind", ["symmetric", "asymmetric", "tied", "heavy"])
def test_agrees_with_loops_over_rows(kind, move):
    rng = np.random.default_rng(5)
    n = 1200
    error = rng.standard_t(2, n) if kind == "heavy" else rng.normal(size=n)
    below = rng.lognormal(0.0, 1.5, n)
    above = rng.lognormal(0.0, 1.5, n) if kind in ("asymmetric", "heavy") else below
    if kind == "tied":
        error, below = np.round(error, 1), np.round(below, 0) + 0.5
        above = np.round(rng.lognormal(0.0, 1.0, n), 0) + 0.5
    curve = characteristic_curve(error, np.zeros(n), -below, above, move=move)
    size, active = np.abs(error), np.where(error >= 0, above, below)
    critical = size / active if move == "scale" else np.where(size > 0, size - active, -np.inf)
    for index in range(0, len(curve.knob), 7):
        knob = curve.knob[index]
        if move == "scale":
            low, high = knob * below, knob * above
        else:
            low, high = np.maximum(below + knob, 0.0), np.maximum(above + knob, 0.0)
        inside = critical <= knob
        near = np.where(error >= 0, high, low)
        found = {
            "bandwidth": np.mean(low + high) / 2,
            "miss_rate": 1 - np.mean(inside),
            "excess": np.mean(
                np.where(inside, np.maximum(np.minimum(error + low, high - error), 0), 0)
            ),
            "deficit": np.mean(np.where(inside, 0.0, np.maximum(size - near, 0.0))),
        }
        for name, value in found.items():
            axis = curve.trace.axes[name]
            assert abs(axis[index] - value) <= 1e-12 * axis.max(), (name, index)


def test_tails_keep_their_digits_at_a_million_rows():
    rng = np.random.default_rng(0)
    n = 1_000_000
    error, width = rng.standard_t(3, n), rng.uniform(0.5, 2.0, n)
    curve = characteristic_curve(error, np.zeros(n), -width, width)
    size = np.abs(error)
    critical = size / width
    for index in (-2, -5, -100, -10_000, n // 2, 1000):
        knob = curve.knob[index]
        late = critical > knob
        deficit = math.fsum(size[late] - knob * width[late]) / n
        # near the end, |e| - kz cancels in the reference itself: its terms carry 2e-16 of |e|
        slack = 4e-16 * size[late].sum() / n
        assert abs(curve.trace.axes["deficit"][index] - deficit) <= 1e-12 * deficit + slack
        excess = math.fsum(knob * width[~late] - size[~late]) / n
        assert curve.trace.axes["excess"][index] == pytest.approx(excess, rel=1e-12)
        assert curve.trace.axes["miss_rate"][index] == late.sum() / n


def test_one_huge_band_does_not_spoil_the_excess():
    # once y is nearer to the other end, the huge band must leave no trace
    curve = characteristic_curve([1.0, 5.0], [0.0, 0.0], [-1e-3, -1.0], [1e12, 1.0], x="excess")
    assert curve.knob[-1] == 5.0
    assert curve.x[-1] == pytest.approx((1.0 + 5e-3 + 0.0) / 2, rel=1e-14)


def test_running_sum_recovers_what_plain_sums_lose():
    rng = np.random.default_rng(3)
    values = rng.normal(size=200_000) * 10.0 ** rng.integers(-8, 9, 200_000)
    sums = running_sum(values)
    for index in (0, 17, 65_535, 65_536, 131_072, 199_999):
        assert sums[index] == pytest.approx(math.fsum(values[: index + 1]), rel=1e-14)


def test_ties_make_one_drop():
    curve = characteristic_curve(np.ones(5), np.zeros(5), -np.ones(5), np.ones(5))
    assert curve.x.tolist() == [0.0, 1.0]
    assert curve.y.tolist() == [1.0, 0.0]


def test_all_scales_equal_at_different_widths():
    width = np.array([1.0, 2.0, 4.0])
    curve = characteristic_curve(0.5 * width, np.zeros(3), -width, width)
    assert curve.knob.tolist() == [0.0, 0.5]
    assert curve.area().value == pytest.approx(0.5 * width.mean())
    assert curve.trace.axes["excess"].tolist() == [0.0, 0.0]


def test_one_row():
    curve = characteristic_curve([2.0], [0.0], [-1.0], [1.0])
    assert curve.x.tolist() == [0.0, 2.0]
    assert curve.y.tolist() == [1.0, 0.0]
    assert curve.area().value == 2.0
    assert curve.gain().value == 0.0


def test_perfect_points_leave_nothing_to_miss():
    curve = characteristic_curve([1.0, 2.0], [1.0, 2.0], [0.0, 2.0], [1.0, 3.0])
    assert curve.x.tolist() == [0.0]
    assert curve.y.tolist() == [0.0]
    assert curve.area().value == 0.0
    assert math.isnan(curve.gain().value)
    assert curve.gain().reason == "the area of the constant band is 0"


def test_errors_of_zero_are_captured_from_the_start():
    curve = characteristic_curve([0.0, 1.0], [0.0, 0.0], [0.0, -1.0], [0.0, 1.0])
    assert curve.y.tolist() == [0.5, 0.0]
    assert curve.at(knob=0.0).miss_rate == 0.5


def test_a_row_on_the_side_of_a_zero_band_is_never_captured():
    curve = characteristic_curve([1.0, 1.0, 2.0], np.zeros(3), [-1.0] * 3, [1.0, 0.0, 1.0])
    assert curve.uncaptured == pytest.approx(1 / 3)
    assert curve.y[-1] == pytest.approx(1 / 3)
    area = curve.area()
    assert not area.complete
    assert "never captured" in area.reason
    # c = 5/6; under 1 to k=1, 2/3 to k=2
    assert area.value == pytest.approx(5 / 6 * (1.0 + 2 / 3))
    assert math.isnan(curve.gain().value)
    assert "never captured" in curve.gain().reason
    above_it = curve.partial_gain(y_range=(0.4, 1.0), reading="left")
    assert above_it.reason == ""
    assert math.isfinite(above_it.value)
    # only miss rates of at least 1/3 are reached: x is 10/6 down to there
    reached = curve.partial_area(y_range=(0.0, 0.5), reading="left")
    assert reached.value == pytest.approx(10 / 6 * (0.5 - 1 / 3))
    for reading in ("under", "left"):
        out_of_reach = curve.partial_area(y_range=(0.0, 0.2), reading=reading)
        assert not out_of_reach.complete
        assert out_of_reach.value == pytest.approx(0.0, abs=1e-15)
    deficit = curve.on(x="bandwidth", y_axis="deficit")
    assert deficit.y[-1] == pytest.approx(1 / 3)
    assert not deficit.area().complete


def test_by_bias_every_row_is_captured():
    curve = characteristic_curve(
        [1.0, 1.0, 2.0], np.zeros(3), [-1.0] * 3, [1.0, 0.0, 1.0], move="bias"
    )
    assert curve.knob[0] == -1.0
    assert curve.uncaptured == 0.0
    assert curve.at().miss_rate == pytest.approx(2 / 3)
    assert curve.area().complete


def test_rounding_cannot_lose_a_row_at_its_own_critical_scale():
    rng = np.random.default_rng(11)
    error, width = rng.normal(size=2000), rng.uniform(0.1, 3.0, 2000)
    curve = characteristic_curve(error, np.zeros(2000), -width, width)
    by_interval = np.array([np.mean(np.abs(error) > knob * width) for knob in curve.knob])
    assert (by_interval > curve.y).any(), "the trap must be there for the test to mean anything"
    assert np.allclose(curve.y, 1.0 - np.arange(2001) / 2000, rtol=0, atol=1e-15)


def test_zero_bands_everywhere_are_refused():
    with pytest.raises(InputError, match="bands of 0 only"):
        characteristic_curve([1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    with pytest.raises(InputError, match="bands of 0 only"):
        characteristic_curve([1.0, 2.0], [0.0, 0.0], [0.0, -1.0], [0.0, 1.0], weights=[1, 0])


def test_a_point_outside_its_interval_is_refused_or_recentred():
    broken = ([1.0, 1.0], [0.0, 5.0], [-1.0, 0.0], [1.0, 2.0])
    with pytest.raises(InputError, match=r"point must be inside its interval, got 1 .* row 1"):
        characteristic_curve(*broken)
    curve = characteristic_curve(*broken, outside="recentre")
    repaired = characteristic_curve([1.0, 1.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 2.0])
    assert curve.x.tolist() == repaired.x.tolist()
    assert curve.y.tolist() == repaired.y.tolist()


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_must_be_finite(position, value):
    given_arrays = [[1.0, 1.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 1.0]]
    given_arrays[position] = [value, 0.5]
    with pytest.raises(InputError, match="must contain finite numbers"):
        characteristic_curve(*given_arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": "width"}, "x must be one of bandwidth, excess, got 'width'"),
        ({"y_axis": "coverage"}, "y_axis must be one of"),
        ({"move": "shift"}, "move must be one of"),
        ({"outside": "drop"}, "outside must be one of"),
        ({"weights": [1.0]}, "weights must have 2 rows"),
        ({"weights": [0.5, 1.0]}, "whole numbers"),
    ],
)
def test_words_and_weights_are_checked(change, message):
    with pytest.raises(InputError, match=message):
        characteristic_curve([1.0, 2.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 1.0], **change)


def test_shapes_and_order_are_checked():
    with pytest.raises(InputError, match="point must have 2 rows"):
        characteristic_curve([1.0, 2.0], [0.0], [-1.0], [1.0])
    with pytest.raises(InputError, match="lower must not exceed upper"):
        characteristic_curve([1.0], [0.0], [1.0], [-1.0])
    with pytest.raises(InputError, match="at least one row"):
        characteristic_curve([], [], [], [])
    with pytest.raises(InputError, match="overflow"):
        characteristic_curve([1e308], [-1e308], [-1.2e308], [1e308])


def test_a_curve_does_not_hang_on_the_callers_array():
    y = ERROR.copy()
    curve = characteristic_curve(y, np.zeros(4), -BAND, BAND)
    y[:] = 0.0
    assert curve.bands.y.tolist() == ERROR.tolist()


@pytest.mark.parametrize("move", ["scale", "bias"])
def test_frequency_weights_are_repetitions(move):
    rng = np.random.default_rng(2)
    error, below, above = rng.normal(size=30), rng.uniform(0.2, 2, 30), rng.uniform(0.2, 2, 30)
    weights = rng.integers(0, 4, 30)
    long = np.repeat(np.arange(30), weights)
    options = {"x": "excess", "y_axis": "deficit", "move": move}
    short = characteristic_curve(error, np.zeros(30), -below, above, weights=weights, **options)
    zero = np.zeros(len(long))
    full = characteristic_curve(error[long], zero, -below[long], above[long], **options)
    for x in ("bandwidth", "excess"):
        for y_axis in ("miss_rate", "deficit"):
            one, two = short.on(x=x, y_axis=y_axis), full.on(x=x, y_axis=y_axis)
            assert one.area().value == pytest.approx(two.area().value, rel=1e-13)
            assert one.area("paper").value == pytest.approx(two.area("paper").value, rel=1e-13)
            assert one.gain().value == pytest.approx(two.gain().value, rel=1e-10)
    one, two = short.at(miss_rate=0.2), full.at(miss_rate=0.2)
    assert one.conformal == two.conformal
    assert one.excess == pytest.approx(two.excess)


def test_importance_weights_shift_the_shares():
    curve = characteristic_curve(
        [1.0, 2.0], [0, 0], [-1, -1], [1, 1], weights=[0.3, 0.1], weights_kind="importance"
    )
    assert curve.y == pytest.approx([1.0, 0.25, 0.0])
    assert curve.area().value == pytest.approx(0.75 * 1.0 + 0.25 * 2.0)


def test_several_outputs_are_averaged_and_kept():
    rng = np.random.default_rng(4)
    y, width = rng.normal(size=(40, 3)), rng.uniform(0.5, 2.0, (40, 3))
    zero = np.zeros((40, 3))
    curve = characteristic_curve(y, zero, -width, width)
    assert len(curve.outputs) == 3
    alone = [characteristic_curve(y[:, j], zero[:, j], -width[:, j], width[:, j]) for j in range(3)]
    for output, single in zip(curve.outputs, alone, strict=True):
        assert output.x.tolist() == single.x.tolist()
        assert output.y.tolist() == single.y.tolist()
    for knob in (0.3, 1.0, 2.2):
        pooled = curve.at(knob=knob)
        for name in AXES:
            mean = np.mean([getattr(single.at(knob=knob), name) for single in alone])
            assert getattr(pooled, name) == pytest.approx(mean)
    assert curve.on(x="excess", y_axis="deficit").outputs[1].x_axis == "excess"
    assert characteristic_curve(y[:, :1], zero[:, :1], -width[:, :1], width[:, :1]).outputs == ()


def test_scale_of_the_bands_does_not_matter():
    curve = example()
    wider = characteristic_curve(ERROR, np.zeros(4), -8 * BAND, 8 * BAND)
    for name in AXES:
        assert wider.trace.axes[name] == pytest.approx(curve.trace.axes[name])


def test_a_distribution_by_mean_and_sd():
    point, lower, upper = bands_from_sd([1.0, 2.0], [0.5, 1.0])
    assert upper - point == pytest.approx([0.5, 1.0])
    assert point - lower == pytest.approx(upper - point)
    with pytest.raises(InputError, match="sd must not be negative"):
        bands_from_sd([1.0], [-1.0])


@pytest.mark.parametrize("y_axis", ["miss_rate", "deficit"])
def test_a_drawn_curve_is_short_and_exact_where_it_stands(y_axis):
    rng = np.random.default_rng(6)
    error, width = rng.standard_t(2, 20_000), rng.uniform(0.5, 2.0, 20_000)
    curve = characteristic_curve(error, np.zeros(20_000), -width, width, y_axis=y_axis)
    drawn = curve.drawn(model="m")
    assert len(drawn.x) <= 500
    kept = curve.vertices_to_draw()
    assert (np.diff(kept) > 0).all()
    assert drawn.x.tolist() == curve.x[kept].tolist()
    assert drawn.y.tolist() == curve.y[kept].tolist()
    assert (drawn.x[0], drawn.y[-1]) == (0.0, 0.0)
    assert drawn.step == (y_axis == "miss_rate")
    assert drawn.area == curve.area().value
    ahead = kept[1:] - 1  # the last vertex skipped before each one kept
    assert (curve.x[ahead] - curve.x[kept[:-1]]).max() <= curve.x[-1] / 249
    assert (curve.y[kept[:-1]] - curve.y[ahead]).max() <= curve.y[0] / 249
    size = np.sort(np.abs(error))
    if y_axis == "miss_rate":
        share = 1.0 - np.searchsorted(size, drawn.x, side="right") / len(size)
        assert drawn.reference == pytest.approx(share, abs=1e-12)
    else:
        short = [np.maximum(size - x, 0.0).mean() for x in drawn.x[::25]]
        assert drawn.reference[::25] == pytest.approx(short, abs=1e-9)


@pytest.mark.parametrize("move", ["scale", "bias"])
@pytest.mark.parametrize("y_axis", ["miss_rate", "deficit"])
def test_a_drawn_curve_tells_the_setting_of_each_point(y_axis, move):
    rng = np.random.default_rng(7)
    error, below, above = rng.normal(size=3_000), *rng.uniform(0.5, 2.0, (2, 3_000))
    curve = characteristic_curve(error, 0 * error, -below, above, y_axis=y_axis, move=move)
    drawn = curve.drawn(60)
    (name,) = drawn.hover
    assert name == {"scale": "k", "bias": "t"}[move]
    for x, y, knob in zip(drawn.x, drawn.y, drawn.hover[name], strict=True):
        point = curve.at(knob=knob)
        assert (point.bandwidth, getattr(point, y_axis)) == pytest.approx((x, y), abs=1e-12)


def test_a_drawn_curve_ends_where_every_row_is_captured():
    # the excess bends at k = 200 |e|, long after the last row is inside
    error, band = np.array([1.0, -0.5, 2.0]), np.ones(3)
    curve = characteristic_curve(error, 0 * error, -0.99 * band, band)
    assert curve.knob[-1] > 100
    drawn = curve.drawn()
    assert drawn.x[-1] == curve.at(miss_rate=0.0).bandwidth == pytest.approx(2.0 * 0.995)
    assert drawn.y.tolist() == [1.0, 2 / 3, 1 / 3, 0.0]


def test_a_drawn_curve_ends_where_no_further_row_is_captured():
    # the last row has no band, so it is missed at every scale; the excess bends at k = 200 |e|
    error, band = np.array([1.0, -0.5, 2.0, 1.0]), np.array([1.0, 1.0, 1.0, 0.0])
    curve = characteristic_curve(error, 0 * error, -0.99 * band, band)
    assert curve.knob[-1] > 100
    drawn = curve.drawn()
    assert drawn.y.tolist() == [1.0, 0.75, 0.5, 0.25]
    assert drawn.x[-1] == pytest.approx(2.0 * 0.995 * 0.75)


def test_a_curve_is_drawn_without_a_constant_band_on_request():
    alone, beside = example().drawn(reference=False), example().drawn()
    assert alone.reference is None
    assert beside.reference is not None
    assert alone.y.tolist() == beside.y.tolist()
    assert "constant" in beside.notes
    assert "constant" not in alone.notes


@pytest.mark.parametrize("scale", [0.3, 1.0, 50.0, 1e4])
def test_ends_that_round_differently_leave_a_symmetric_band_symmetric(scale):
    rng = np.random.default_rng(8)
    point, sd = scale * rng.normal(size=500), np.exp(rng.normal(size=500))
    y = point + sd * rng.normal(size=500)
    lower, upper = point - 1.6448536269514722 * sd, point + 1.6448536269514722 * sd
    assert ((point - lower) != (upper - point)).any()
    curve = characteristic_curve(y, point, lower, upper)
    assert len(curve.knob) <= 501
    assert curve.knob[-1] == pytest.approx(np.max(np.abs(y - point) / (1.6448536269514722 * sd)))
    exact = characteristic_curve(y - point, 0 * y, -(upper - lower) / 2, (upper - lower) / 2)
    assert curve.area().value == pytest.approx(exact.area().value, rel=1e-14 * (1 + scale))


@pytest.mark.parametrize(
    ("point", "lower", "upper"),
    [
        (0.0, -1.0, 1.0 + 1e-9),  # meant: far above the rounding of the ends
        (1.0, 1.0, 1.0 + 2.2e-16),  # at the rounding of the ends, but all that there is
    ],
)
def test_bands_that_are_meant_to_differ_still_differ(point, lower, upper):
    curve = characteristic_curve([point], [point], [lower], [upper])
    assert curve.bands.below[0] == point - lower
    assert curve.bands.above[0] == upper - point
    assert curve.bands.below[0] != curve.bands.above[0]


def test_a_short_curve_is_drawn_whole():
    assert example().drawn().x.tolist() == example().x.tolist()
    with pytest.raises(InputError, match="points must be a whole number of at least 4"):
        example().drawn(3)


def test_narrow_kinks_do_not_depend_on_kept_rows():
    bands = example().bands
    plain = find_kinks(bands, ("bandwidth", "miss_rate"))
    kept = find_kinks(bands, ("bandwidth", "miss_rate"), keep_rows=True)
    assert plain.row is None
    assert kept.row is not None
    assert plain.position.tolist() == kept.position.tolist()
    assert plain.capture.tolist() == kept.capture.tolist()
    with pytest.raises(InputError, match="kept their rows"):
        trace(plain, bands, ("bandwidth", "miss_rate"), weights=np.ones(4))
