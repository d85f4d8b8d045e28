"""What the study measures: areas and gains as the formulas have them, the crossing, pairs."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import wilcoxon

from howsure.core.errors import InputError
from howsure.topics.characteristic.curve import CharacteristicCurve, characteristic_curve
from howsure.topics.characteristic.reference import gain_of_perfect_model
from howsure.topics.characteristic.resampling import (
    bootstrap_curve,
    bootstrap_gain_difference,
    permutation_test,
)
from howsure.topics.characteristic.trace import AreaRequest
from howsure_studies.characteristic import Measuring, MethodResult, compare, crossing_of, measure
from howsure_studies.characteristic.measures import (
    AXES,
    bootstrap_crossing,
)
from howsure_studies.engine import packed, unpacked

TOLD = Measuring(miss_range=(0.0, 0.3), miss_rates=(0.1, 0.4), replicates=50)


def symmetric(error: npt.ArrayLike, band: npt.ArrayLike) -> CharacteristicCurve:
    half = np.asarray(band, dtype=float)
    return characteristic_curve(error, 0 * half, -half, half)


def drawn(seed: int, n: int = 300) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    sd = rng.uniform(0.2, 2.0, n)
    return rng.normal(0.0, sd), sd


def result(method: str, half: npt.ArrayLike, seed: int = 0, rows: int = 0) -> MethodResult:
    y = drawn(rows)[0]
    band = np.asarray(half, dtype=float)
    curve = symmetric(y, band)
    return MethodResult(
        world="w",
        method=method,
        seed=seed,
        y=y,
        point=0 * y,
        lower=-band,
        upper=band,
        records=measure(curve, TOLD, seed=seed),
        options=TOLD,
    )


def test_crossing_of_curves_known_by_hand() -> None:
    # Bands 1, 1, 1, 9 with mean 3: critical scales 1, 1, 1, 1, so the model needs 3 throughout;
    # the constant band needs 9 below a miss rate of 1/4, and 1 above it.
    assert crossing_of(symmetric([1, -1, 1, 9], [1, 1, 1, 9])) == 0.25
    assert crossing_of(symmetric([1, 2, 3, 4], [1, 1, 1, 1])) == 0.0
    # Wide where the error is small: worse at every miss rate.
    assert crossing_of(symmetric([1, 2, 3, 4], [4, 3, 2, 1])) == 0.0
    # 1, 2, 3, 4 by errors 1, 2, 3, 4: all at 2.5; better for the errors 3 and 4.
    assert crossing_of(symmetric([1, 2, 3, 4], [1, 2, 3, 4])) == 0.5
    # Bands √e have critical scales √e, so the model needs mean(√e)·√e: less where √e > mean(√e).
    error = np.linspace(1, 9, 50)
    root = np.sqrt(error)
    assert crossing_of(symmetric(error, root)) == np.mean(root > root.mean())
    # Rows may be drawn again and again: here the last two alone, ten times.
    assert crossing_of(symmetric(error, error), np.repeat([48, 49], 10)) == 0.5


def test_crossing_saves_the_most_area_to_the_left() -> None:
    curve = symmetric(*drawn(3, 200))
    saved = [
        curve.partial_gain(y_range=(0, share), reading="left") for share in np.arange(1, 201) / 200
    ]
    best = int(np.argmax([gain.constant.value - gain.area.value for gain in saved]))
    assert crossing_of(curve) == pytest.approx((best + 1) / 200)
    assert 0.05 < crossing_of(curve) < 0.5


def test_bootstrap_of_the_crossing() -> None:
    curve = symmetric(*drawn(4, 400))
    rows = bootstrap_crossing(curve, Measuring(replicates=100))
    assert rows.units == 400
    assert rows.lower <= rows.value <= rows.upper
    assert 0 < rows.standard_error < 0.2
    one = bootstrap_crossing(curve, Measuring(replicates=10), cluster=np.zeros(400))
    assert (one.units, one.standard_error, one.lower) == (1, 0.0, one.value)


def test_numbers_are_those_of_the_formulas() -> None:
    """Every area and gain, with its error and the gain of a well-specified model."""
    curve = symmetric(*drawn(5))
    weeks = np.arange(300) // 10
    by_name = {r.metric: r for r in measure(curve, TOLD, cluster=weeks, seed=7)}
    common = {"replicates": 50, "seed": 7}
    for x, y_axis in AXES:
        one = curve.on(x=x, y_axis=y_axis)
        ending = "" if (x, y_axis) == AXES[0] else f"_{x}_{y_axis}"
        expected = bootstrap_curve(one, cluster=weeks, **common)
        for name, wanted in (("auucc", expected.area), ("characteristic_gain", expected.gain)):
            given = by_name[name + ending]
            assert (given.value, given.standard_error) == (wanted.value, wanted.standard_error)
            assert (given.lower, given.upper) == (wanted.lower, wanted.upper)
        assert by_name[f"auucc{ending}"].value == one.area().value
        assert by_name[f"characteristic_gain{ending}"].value == one.gain().value
    readings = {"characteristic_partial_gain": "under", "characteristic_left_gain": "left"}
    for name, reading in readings.items():
        request = AreaRequest(y_range=(0, 0.3), reading=reading)
        assert by_name[name].value == curve.gain_by(request).value
        perfect = gain_of_perfect_model(curve, request, **common)
        assert (by_name[name].null, by_name[name].null_upper) == (perfect.value, perfect.upper)


def test_operating_points_are_those_of_the_curve() -> None:
    given = result("m", drawn(0)[1])
    curve = given.curve()
    for miss_rate in (0.1, 0.4):
        own = given.record("bandwidth", 1 - miss_rate)
        constant = given.record("constant_bandwidth", 1 - miss_rate)
        assert own.value == curve.at(miss_rate=miss_rate).bandwidth
        assert constant.value == curve.constant().at(miss_rate=miss_rate).bandwidth
    with pytest.raises(InputError, match="metric must be one of auucc"):
        given.record("area")


def test_a_result_survives_the_store_also_without_numbers() -> None:
    """A row that is never captured leaves infinite areas, gains that are NaN, and reasons."""
    y, half = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0])
    records = measure(symmetric(y, half), TOLD)
    assert any(record.reason for record in records)
    bands = {"y": y, "point": 0 * y, "lower": -half, "upper": half}
    one = MethodResult(world="w", method="m", seed=3, records=records, options=TOLD, **bands)
    arrays, facts = packed(one)
    back = unpacked(MethodResult, arrays, json.loads(json.dumps(facts)))
    assert repr(back.records) == repr(records)
    assert (back.options, back.seed, back.cluster, back.window) == (TOLD, 3, None, None)
    np.testing.assert_array_equal(back.upper, half)


def test_pairs_of_one_data_set_are_those_of_the_formulas() -> None:
    y, sd = drawn(0)
    three = [result("a", 1 + 0 * sd), result("b", sd), result("c", np.abs(y) + 0.1)]
    pairs = compare(three)
    assert {(pair.first, pair.second) for pair in pairs} == {("c", "a"), ("c", "b"), ("b", "a")} | {
        ("a", "b")
    } & {(pair.first, pair.second) for pair in pairs} or len(pairs) == 3
    by_name = {frozenset((pair.first, pair.second)): pair for pair in pairs}
    request = AreaRequest(y_range=(0, 0.3), reading="left")
    for one, two in (("a", "b"), ("a", "c"), ("b", "c")):
        held = {r.method: r.curve() for r in three}
        test = permutation_test(held[one], held[two])
        gain = bootstrap_gain_difference(held[one], held[two], request, replicates=50)
        pair = by_name[frozenset((one, two))]
        sign = 1 if pair.first == one else -1
        assert pair.difference <= 0
        assert pair.difference == sign * test.difference
        assert pair.p == test.p_value <= pair.adjusted
        assert (pair.gain, pair.gain_error) == (sign * gain.value, gain.standard_error)


def test_the_order_of_methods_changes_nothing() -> None:
    y, sd = drawn(0)
    three = [result("a", 1 + 0 * sd), result("b", sd), result("c", np.abs(y) + 0.1)]
    assert compare(three) == compare(three[::-1]) == compare([three[1], three[2], three[0]])


def test_pairs_of_several_data_sets_are_tested_over_them() -> None:
    held = [
        result(name, half(*drawn(seed)), seed=seed, rows=seed)
        for seed in range(6)
        for name, half in (("flat", lambda y, sd: 1 + 0 * sd), ("near", lambda y, sd: abs(y) + 0.1))
    ]
    (pair,) = compare(held)
    areas = {
        name: [r.record("auucc").value for r in held if r.method == name]
        for name in ("flat", "near")
    }
    assert (pair.first, pair.second) == ("near", "flat")
    assert pair.p == pair.adjusted == wilcoxon(areas["near"], areas["flat"]).pvalue
    assert pair.difference == np.median(np.subtract(areas["near"], areas["flat"]))
    assert math.isnan(pair.gain_error)


def test_a_pair_needs_a_seed_in_common() -> None:
    one = result("a", drawn(0)[1])
    assert compare([one]) == ()
    assert compare([one, replace(result("b", drawn(0)[1]), seed=1)]) == ()
