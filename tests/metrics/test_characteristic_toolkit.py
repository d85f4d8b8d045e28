"""The UQ360 convention: against loops, and against the numbers of its published notebook."""

import csv
import gzip
import json

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.topics.characteristic.curve import characteristic_curve
from howsure.topics.characteristic.trace import AreaRequest
from oracles import characteristic as oracle


def noisy(n, seed, **options):
    rng = np.random.default_rng(seed)
    y, point = rng.normal(3.0, 2.0, n), rng.normal(3.0, 1.0, n)
    lower, upper = point - rng.uniform(0.2, 2.0, n), point + rng.uniform(0.2, 2.0, n)
    return (y, point, lower, upper), characteristic_curve(y, point, lower, upper, **options)


@pytest.mark.parametrize("move", ["scale", "bias"])
@pytest.mark.parametrize("x", ["bandwidth", "excess"])
@pytest.mark.parametrize("y_axis", ["miss_rate", "deficit"])
def test_agrees_with_loops(move, x, y_axis):
    data, curve = noisy(150, 1, x=x, y_axis=y_axis, move=move)
    slow = oracle.toolkit(*data, move=move)
    found = curve.uq360()
    assert found.knob == pytest.approx(slow["knob"])
    assert found.x == pytest.approx(slow[x], abs=1e-13)
    assert found.y == pytest.approx(slow[y_axis], abs=1e-13)
    unit = np.std(data[0])
    along = slow[x] / unit
    up = slow[y_axis] if y_axis == "miss_rate" else slow[y_axis] / unit
    assert curve.area("uq360").value == pytest.approx(np.trapezoid(up, along))
    ends = sorted(int(np.argmin(np.abs(up - level))) for level in (0.05, 0.3))
    part = slice(ends[0], ends[1] + 1)
    request = {"y_range": (0.05, 0.3), "convention": "uq360"}
    assert curve.partial_area(**request).value == pytest.approx(np.trapezoid(up[part], along[part]))
    costs = 2.0 / unit * slow[x] + 3.0 * up
    price = found.cost(2.0, 3.0)
    assert price.cost == pytest.approx(costs.min())
    assert price.knob == pytest.approx(slow["knob"][np.argmin(costs)])
    assert found.x / found.x_unit == pytest.approx(along, abs=1e-13)
    assert found.y / found.y_unit == pytest.approx(up, abs=1e-13)


def test_the_gain_divides_by_the_models_area():
    data, curve = noisy(150, 2, x="excess")
    flat = oracle.toolkit(data[0], data[1], data[1] - 1, data[1] + 1)
    own = oracle.toolkit(*data)
    areas = [np.trapezoid(one["miss_rate"], one["excess"]) for one in (own, flat)]
    assert curve.gain("uq360").value == pytest.approx(100 * (areas[1] - areas[0]) / areas[0])


def test_bands_of_zero_become_the_smallest_band_and_predictions_stay():
    y, point = np.array([1.0, -2.0, 0.5]), np.zeros(3)
    lower, upper = np.array([-1.0, -2.0, 0.0]), np.array([0.0, 2.0, 1.0])
    found = characteristic_curve(y, point, lower, upper).uq360()
    # the lower side's smallest band, 1, stands in for both zeros; the points of 0 are kept
    repaired = oracle.toolkit(y, point, np.array([-1.0, -2.0, -1.0]), np.array([1.0, 2.0, 1.0]))
    _, first = np.unique(repaired["knob"][::-1], return_index=True)
    last = len(y) - 1 - first
    assert found.knob == pytest.approx(repaired["knob"][last])
    assert found.x == pytest.approx(repaired["bandwidth"][last])
    assert found.y == pytest.approx(repaired["miss_rate"][last])
    with pytest.raises(InputError, match="needs a positive lower band"):
        characteristic_curve(y, point, point, upper).uq360()


def test_it_knows_no_weights():
    curve = characteristic_curve([1.0, 2.0], [0, 0], [-1, -1], [1, 1], weights=[1, 2])
    with pytest.raises(InputError, match="does not support weights"):
        curve.area("uq360")


@pytest.fixture(scope="module")
def notebook(data_dir):
    """The toolkit's sample predictions and what its notebook printed."""
    folder = data_dir("preds_ucc_uq360")
    with gzip.open(folder / "sample_predict.csv.gz", "rt") as file:
        table = np.array(list(csv.reader(file))[1:], dtype=float)
    return table, json.loads((folder / "expected_from_notebook.json").read_text())


def piece(table, first, last, **options):
    actual, point, lower, upper = table[first:last].T
    return characteristic_curve(actual, point, lower, upper, **options)


def test_notebook_first_500(notebook):
    table, printed = notebook
    told = printed["first_500"]
    found = piece(table, 0, 500, x="excess").uq360()  # the toolkit's default axes
    assert round(found.area(AreaRequest()), 2) == told["AUUCC"]
    assert round(found.y_now, 2) == told["OP_y"]
    # the notebook divides x by the unit of y once more than the toolkit has done
    assert round(found.x_now / found.x_unit**2, 2) == told["OP_x_norm"]


def test_notebook_first_500_excess_and_deficit(notebook):
    table, printed = notebook
    told = printed["first_500_excess_deficit"]
    curve = piece(table, 0, 500, x="excess", y_axis="deficit")
    found = curve.uq360()
    assert round(curve.area("uq360").value, 2) == told["AUUCC"]
    assert round(found.x_now / found.x_unit**2, 2) == told["OP_x_norm"]
    assert round(found.y_now / found.y_unit, 2) == told["OP_y"]
    low = curve.partial_area(y_range=(0, 0.05), convention="uq360")
    assert round(low.value, 3) == told["AUUCC_partial_y_0_0.05"]
    early = curve.partial_area(x_range=(0, 0.1), convention="uq360")
    assert round(early.value, 3) == told["AUUCC_partial_x_0_0.1"]


def test_notebook_cheapest_point_is_a_bias(notebook):
    table, printed = notebook
    told = printed["first_500_excess_deficit"]["minimize_cost_x1_y10"]
    axes = {"x": "excess", "y_axis": "deficit"}
    by_scale, by_bias = (
        piece(table, 0, 500, move=move, **axes).uq360().cost(1.0, 10.0)
        for move in ("scale", "bias")
    )
    assert told["operation"] == "bias"
    assert by_bias.cost < by_scale.cost
    for name, value in (
        ("cost", by_bias.cost),
        ("modvalue", by_bias.knob),
        ("new_x", by_bias.x),
        ("new_y", by_bias.y),
        ("original_cost", by_bias.cost_now),
    ):
        assert value == pytest.approx(told[name], rel=1e-9), name


def test_notebook_slice(notebook):
    table, printed = notebook
    told = printed["slice_510_830_bandwidth_missrate_norm"]
    curve = piece(table, 510, 830)
    found = curve.uq360()
    # the printed area has rows that the toolkit lost at their own critical scale, by rounding
    lossy = oracle.toolkit(*table[510:830].T, by_rounded_ends=True)
    assert (lossy["miss_rate"] > found.y + 0.5 / 320).sum() == 12
    area = np.trapezoid(lossy["miss_rate"], lossy["bandwidth"] / found.x_unit)
    assert round(area, 4) == told["AUUCC"] == 0.4188
    assert round(curve.area("uq360").value, 4) == 0.4187
    assert round(found.x_now / found.x_unit, 4) == told["OP_x"]
    assert round(found.y_now, 4) == told["OP_y"]
    cheapest, least = found.cost(1.0, 10.0), told["minimize_cost_scale_x1_y10"]
    for name, value in (
        ("cost", cheapest.cost),
        ("modvalue", cheapest.knob),
        ("new_x", cheapest.x),
        ("new_y", cheapest.y),
        ("original_cost", cheapest.cost_now),
    ):
        assert value == pytest.approx(least[name], rel=1e-9), name
    # over all scales, 0 among them, the exact curve can only be cheaper
    exact = curve.cost(miss_cost=20.0 * found.x_unit)
    assert exact.cost / (2.0 * found.x_unit) == pytest.approx(cheapest.cost, rel=1e-9)
