"""Shift, scale, both and powers of the spread: by hand, by brute force, by simulation, by laws."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize

from howsure.core.errors import HowsureError, InputError, UnanswerableError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Quantiles, Samples
from howsure.recalibration import METHODS, Recalibrator, recalibrate
from howsure.recalibration.affine import (
    Multiply,
    PointShift,
    Shift,
    ShiftScale,
    ShiftScaledIntervals,
    Widths,
)
from howsure.recalibration.info import RecalibrationOptions
from howsure.recalibration.location_scale import LocationScale, moved
from howsure.recalibration.scaling import QuantileScaling

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
COVERAGES = (0.5, 0.9)
KINDS = ("distributions", "samples", "quantiles", "intervals")
WAYS = ("shift", "scale", "shift_scale", "widths")


def predicted(
    kind: str, center: np.ndarray, sd: np.ndarray, rng: np.random.Generator
) -> Prediction:
    """N(center, sd²) as a prediction of a kind."""
    law = Distribution.normal(center, sd)
    if kind == "samples":
        return Samples(law.sample(rng, 20))
    if kind == "quantiles":
        return Quantiles(LEVELS, law.quantile(LEVELS))
    if kind == "intervals":
        ends = [law.interval(coverage) for coverage in COVERAGES]
        lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
        return Intervals(lower, upper, COVERAGES)
    return law


def drawn(
    kind: str,
    n: int,
    seed: int,
    *,
    bias: float = 0.0,
    scale: float = 1.0,
    power: float = 1.0,
    noise: Callable[[np.random.Generator, int], np.ndarray] = lambda rng, n: rng.normal(size=n),
) -> EvalSet:
    """Rows whose prediction is wrong in one way: bias in its sds, sd times a scale, to a power."""
    rng = child(seed, "affine", kind)
    center, sd = rng.normal(size=n), np.exp(0.5 * rng.normal(size=n))
    y = center + sd * noise(rng, n)
    sd = scale * sd**power
    return EvalSet.checked(y, predicted(kind, center - bias * sd, sd, rng))


def fitted(kind: str, way: str, held: EvalSet) -> Recalibrator:
    return METHODS[way].make(kind, RecalibrationOptions()).fit(held)


def value(found: Recalibrator, name: str) -> float:
    return next(one.value for one in found.parameters if one.name == name)


def numbers(prediction: Prediction) -> np.ndarray:
    return np.column_stack(list(prediction.numbers().values()))


def pinball(y: np.ndarray, table: np.ndarray, levels: np.ndarray = LEVELS) -> float:
    below = y[:, None] - table
    return float(np.where(below >= 0, levels * below, (levels - 1.0) * below).mean())


def table(prediction: Prediction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quantiles, centre and levels."""
    if isinstance(prediction, Quantiles):
        return prediction.values, prediction.point(), LEVELS
    assert isinstance(prediction, Intervals)
    ends = np.hstack([prediction.lower, prediction.upper])
    return ends, prediction.point(), np.array([0.25, 0.05, 0.75, 0.95])


# Against what the numbers are, by other means.


def test_a_shift_of_distributions_is_the_weighted_mean_error() -> None:
    rng = child(0, "closed form")
    sd = rng.uniform(0.5, 3.0, 50)
    error = 0.4 + sd * rng.normal(size=50)
    held = EvalSet.checked(error, Distribution.normal(np.zeros(50), sd))
    found = Shift().fit(held).parameters[0]
    constant = np.average(error, weights=sd**-2)
    relative = np.average(error / sd)
    off = [np.mean(np.abs(error - constant) / sd), np.mean(np.abs(error - relative * sd) / sd)]
    best = int(np.argmin(off))
    assert found.name == ("shift", "relative shift")[best]
    assert found.value == pytest.approx((constant, relative)[best])
    if best == 0:
        psi = sd**-2 * (error - constant) / np.mean(sd**-2)
    else:
        psi = error / sd - relative
    assert found.standard_error == pytest.approx(psi.std(ddof=1) / np.sqrt(50), rel=0.03)


def test_shift_and_scale_of_distributions_by_hand() -> None:
    held = EvalSet.checked([0.0, 2.0, 7.0], Distribution.normal(np.zeros(3), np.full(3, 2.0)))
    found = ShiftScale().fit(held)
    assert [one.name for one in found.parameters] == ["shift", "factor"]
    assert value(found, "shift") == pytest.approx(3.0)
    assert value(found, "factor") == pytest.approx(np.sqrt((9 + 1 + 16) / 3) / 2.0)
    mended = found.apply(held).predictions[0]
    np.testing.assert_allclose(mended.point(), 3.0)
    assert np.mean(((held.y - mended.point()) / mended.sd()) ** 2) == pytest.approx(1.0)


def test_shift_and_scale_of_samples_are_fair() -> None:
    held = EvalSet.checked([1.0, 5.0], Samples([[-1.0, 0.0, 1.0]] * 2))
    found = ShiftScale("samples").fit(held)
    assert value(found, "shift") == pytest.approx(3.0)
    assert value(found, "factor") == pytest.approx(np.sqrt(4.0 / (4.0 / 3.0)))


@pytest.mark.parametrize("seed", range(4))
def test_shift_and_scale_of_quantiles_have_the_least_loss_of_a_linear_programme(seed: int) -> None:
    held = drawn("quantiles", 40, seed, bias=0.4, scale=0.6)
    found = ShiftScale("quantiles").fit(held)
    table = held.predictions[0].values
    center, spread = table[:, 2], (table[:, -1] - table[:, 0]) / 2.0
    relative = found.parameters[0].name == "relative shift"
    unit = np.maximum(spread, 0.1 * spread.mean()) if relative else np.ones(40)
    away, count = table - center[:, None], table.size
    # least Σ p·u + (1 − p)·v with u − v = y − center − b·unit − k·away and u, v ≥ 0
    columns = np.column_stack([np.repeat(unit, 5), away.ravel()])
    level = np.tile(LEVELS, 40)
    solved = optimize.linprog(
        np.concatenate([[0.0, 0.0], level, 1.0 - level]),
        A_eq=np.hstack([columns, np.eye(count), -np.eye(count)]),
        b_eq=np.repeat(held.y - center, 5),
        bounds=[(None, None)] * 2 + [(0.0, None)] * (2 * count),
    )
    mended = found.apply(held).predictions[0].values
    assert pinball(held.y, mended) * count == pytest.approx(solved.fun, rel=1e-7)


def test_one_factor_of_quantiles_has_the_least_loss() -> None:
    held = drawn("quantiles", 60, 0, scale=0.6)
    table = held.predictions[0].values
    center = table[:, 2:3]
    factor = QuantileScaling().fit(held).parameters[0].value
    losses = [
        pinball(held.y, center + at * (table - center))
        for at in (*np.linspace(0.0, 5.0, 2001), factor)
    ]
    assert losses[-1] <= min(losses) + 1e-12


def test_widths_of_distributions_have_the_greatest_likelihood() -> None:
    held = drawn("distributions", 300, 0, power=1.7)
    sd = held.predictions[0].sd()
    square = (held.y - held.predictions[0].point()) ** 2

    def surprise(log_a: float, b: float) -> float:
        return float(
            np.mean(log_a + b * np.log(sd) + square / (2 * np.exp(2 * log_a) * sd ** (2 * b)))
        )

    found = Widths().fit(held)
    power = value(found, "power")
    new = found.apply(held).predictions[0].sd()
    log_a = float(np.mean(np.log(new) - power * np.log(sd)))
    np.testing.assert_allclose(new, np.exp(log_a) * sd**power)
    best = optimize.minimize(
        lambda at: surprise(*at),
        [0.0, 1.0],
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-13},
    )
    np.testing.assert_allclose([log_a, power], best.x, atol=1e-5)
    assert np.mean(square / new**2) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["quantiles", "intervals"])
def test_widths_of_tables_have_the_least_loss(kind: str) -> None:
    held = drawn(kind, 80, 1, power=1.7)
    found = Widths(kind).fit(held)

    given, center, levels = table(held.predictions[0])
    spread = (given.max(axis=1) - given.min(axis=1)) / 2.0
    least = pinball(held.y, table(found.apply(held).predictions[0])[0], levels)
    for power in np.linspace(0.0, 2.0, 81):
        wide = (spread ** (power - 1.0))[:, None] * (given - center[:, None])
        for factor in np.linspace(0.3, 3.0, 109):
            assert least <= pinball(held.y, center[:, None] + factor * wide, levels) + 1e-6


@pytest.mark.parametrize("kind", ["distributions", "samples"])
@pytest.mark.parametrize("way", ["shift", "shift_scale", "widths"])
def test_standard_errors_are_those_of_repeated_tables(kind: str, way: str) -> None:
    """Over 200 tables; the sd of an sd is 5 % of it, errors themselves stray little more."""
    told = []
    for seed in range(200):
        found = fitted(kind, way, drawn(kind, 400, 1000 + seed, bias=0.5, scale=0.8))
        told.append([(one.value, one.standard_error) for one in found.parameters])
        names = [one.name for one in found.parameters]
        if "shift" in names:  # some tables prefer a constant
            told.pop()
    values = np.array(told)
    assert len(values) > 100
    np.testing.assert_allclose(
        values[:, :, 1].mean(axis=0) / values[:, :, 0].std(axis=0, ddof=1), 1.0, atol=0.2
    )


@pytest.mark.parametrize("size", [3, 5, 20])
def test_a_perfect_ensemble_keeps_its_widths(size: int) -> None:
    """Few members state their spread with noise, which is none of the widths' fault."""
    powers = []
    for seed in range(40):
        rng = child(seed, "perfect", size)
        center, sd = rng.normal(size=400), np.exp(0.7 * rng.normal(size=400))
        table = center[:, None] + sd[:, None] * rng.normal(size=(400, size + 1))
        powers.append(
            value(
                Widths("samples").fit(EvalSet.checked(table[:, 0], Samples(table[:, 1:]))), "power"
            )
        )
    assert np.mean(powers) == pytest.approx(1.0, abs=3.3 * np.std(powers) / np.sqrt(40) + 0.02)


def test_the_conformal_factors_of_moved_intervals_by_hand() -> None:
    band = Intervals(np.full(9, -1.0), np.full(9, 1.0), coverage=0.8)
    y = np.array([5.0, 5.5, 5.8, 6.0, 6.0, 6.1, 6.4, 6.5, 9.0])
    found = ShiftScaledIntervals().fit(EvalSet.checked(y, band, point=np.zeros(9)))
    shift = Shift("intervals").fit(EvalSet.checked(y, band)).parameters[0].value
    factor = np.sort(np.abs(y - shift))[7]  # rank ⌈10·0.8⌉
    assert [one.value for one in found.parameters] == pytest.approx([shift, factor])
    assert np.isnan([one.expected for one in found.parameters]).all()
    lower, upper = (
        found.apply(EvalSet.checked([0.0], band.take(np.array([0])))).predictions[0].interval(0.8)
    )
    assert (lower[0], upper[0]) == pytest.approx((shift - factor, shift + factor))


@pytest.mark.parametrize("kind", [*KINDS, "point"])
def test_a_multiple_by_brute_force(kind: str) -> None:
    """Squared errors over variance, squared errors, or pinball loss, over a grid; some are < 0."""
    rng = child(0, "multiple", kind)
    center, sd = 2.0 * rng.normal(size=300), np.exp(0.5 * rng.normal(size=300))
    y, weights = 1.8 * (center + sd * rng.normal(size=300)), rng.integers(1, 4, 300)
    prediction = predicted(kind, center, sd, rng)
    point = center if kind == "point" else None
    held = EvalSet.checked(
        y, *(() if point is not None else (prediction,)), point=point, weights=weights
    )
    (found,) = Multiply(kind).fit(held).parameters
    if kind in ("quantiles", "intervals"):
        given, _, levels = table(prediction)

        def loss(multiple: float) -> float:
            below = y[:, None] - multiple * given
            return float(weights @ np.maximum(levels * below, (levels - 1) * below).sum(axis=1))
    else:
        middle = prediction.point() if kind == "samples" else center
        unit = sd if kind == "distributions" else np.ones(300)

        def loss(multiple: float) -> float:
            return float(weights @ np.square((y - multiple * middle) / unit))

    best = optimize.minimize_scalar(
        loss, bounds=(1.0, 3.0), method="bounded", options={"xatol": 1e-9}
    )
    assert loss(found.value) <= best.fun * (1.0 + 1e-12)
    assert found.value == pytest.approx(best.x, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_another_unit_comes_right(kind: str) -> None:
    rng = child(1, "unit", kind)
    center, sd = 20.0 + rng.normal(size=400), np.exp(0.3 * rng.normal(size=400))
    prediction = predicted(kind, center, sd, rng)
    held = EvalSet.checked(1000.0 * (center + sd * rng.normal(size=400)), prediction)
    found = Multiply(kind).fit(held)
    mended = found.apply(held).predictions[0]
    multiple = found.parameters[0].value
    assert multiple == pytest.approx(1000.0, rel=0.01)
    np.testing.assert_allclose(numbers(mended), multiple * numbers(prediction), rtol=1e-12)


def test_what_cannot_be_multiplied_is_refused() -> None:
    y = np.array([1.0, 2.0, 3.0])
    for center, told in ((0.0, "because all are 0"), (-1.0, "must increase with y")):
        law = Distribution.normal(np.full(3, center), np.ones(3))
        for held in (EvalSet.checked(y, law), EvalSet.checked(y, point=np.full(3, center))):
            with pytest.raises(InputError, match=told):
                Multiply(held.predictions[0].kind if held.predictions else "point").fit(held)


# Laws.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unit", [3.0, -1.0, -0.02])
def test_stretching_moving_and_reflecting_y_moves_the_answer(
    kind: str, way: str, unit: float
) -> None:
    def seen(held: EvalSet) -> EvalSet:
        prediction = held.predictions[0]
        if isinstance(prediction, Distribution):
            one = prediction.parameters
            other: Prediction = Distribution.normal(
                7.0 + unit * one["loc"], abs(unit) * one["scale"]
            )
        elif isinstance(prediction, Samples):
            other = Samples(7.0 + unit * prediction.sorted_samples)
        elif isinstance(prediction, Quantiles):
            step = 1 if unit > 0 else -1
            other = Quantiles(LEVELS, 7.0 + unit * prediction.values[:, ::step])
        else:
            assert isinstance(prediction, Intervals)
            ends = [7.0 + unit * prediction.lower, 7.0 + unit * prediction.upper]
            other = Intervals(*(ends if unit > 0 else ends[::-1]), COVERAGES)
        return EvalSet.checked(7.0 + unit * held.y, other)

    held, test = drawn(kind, 201, 2, bias=0.3, scale=0.7), drawn(kind, 30, 3)
    plain = fitted(kind, way, held).apply(test)
    other = fitted(kind, way, seen(held)).apply(seen(test)).predictions[0]
    np.testing.assert_allclose(
        numbers(other), numbers(seen(plain).predictions[0]), rtol=1e-7, atol=1e-7 * abs(unit)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_second_time_nothing_is_left_to_mend(kind: str, way: str) -> None:
    held = drawn(kind, 2000, 4, bias=0.3, scale=0.7, power=1.3)
    once = fitted(kind, way, held).apply(held)
    again = fitted(kind, way, once)
    for one in again.parameters:
        right = 0.0 if "shift" in one.name else 1.0
        noise = 0.02 if np.isnan(one.standard_error) else 3.0 * one.standard_error
        assert one.value == pytest.approx(right, abs=noise)


# Planted faults come right on fresh rows.

FAULTS = {
    "sd times 0.7": ({"scale": 0.7}, ("scale", "shift_scale", "widths")),
    "bias of 0.3 sd": ({"bias": 0.3}, ("shift", "shift_scale")),
    "widths that overreact": ({"power": 1.6}, ("widths",)),
}


def score(rows: EvalSet) -> np.ndarray:
    """Pinball loss over given or derived quantiles; of intervals, of their ends."""
    prediction, levels = rows.predictions[0], LEVELS
    if isinstance(prediction, Intervals):
        table, levels = (
            np.hstack([prediction.lower, prediction.upper]),
            np.array([0.25, 0.05, 0.75, 0.95]),
        )
    else:
        table = prediction.quantile(LEVELS)
    below = rows.y[:, None] - table
    return np.where(below >= 0, levels * below, (levels - 1.0) * below).mean(axis=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fault", "way"), [(name, way) for name, (_, ways) in FAULTS.items() for way in ways]
)
def test_planted_faults_come_right_on_fresh_rows(kind: str, fault: str, way: str) -> None:
    """Nine tenths of what the fault costs comes back; the factors are within 4 errors."""
    wrong = FAULTS[fault][0]
    held, fresh = drawn(kind, 4000, 5, **wrong), drawn(kind, 20_000, 6, **wrong)
    right = drawn(kind, 20_000, 6)
    mended = fitted(kind, way, held).apply(fresh)
    before, after, best = (score(rows).mean() for rows in (fresh, mended, right))
    if (kind, fault) == (
        "samples",
        "widths that overreact",
    ):  # the mean of members that overreact stays noisy
        frame = LocationScale.of(fresh.predictions[0])
        best = min(
            score(
                EvalSet.checked(
                    fresh.y,
                    moved(
                        fresh.predictions[0], frame, np.zeros(fresh.n), a * frame.spread ** (b - 1)
                    ),
                )
            ).mean()
            for a in np.linspace(0.7, 1.6, 7)
            for b in np.linspace(0.5, 1.1, 7)
        )
    assert before - after > 0.9 * (before - best) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_right_predictions_stay_nearly_as_they_are(kind: str) -> None:
    held, fresh = drawn(kind, 4000, 7), drawn(kind, 20_000, 8)
    for way in WAYS:
        mended = fitted(kind, way, held).apply(fresh)
        assert score(mended).mean() < 1.002 * score(fresh).mean()


# Points, and what cannot be done.


def test_a_point_forecast_is_moved_by_its_mean_error() -> None:
    held = EvalSet.checked([1.0, 2.0, 6.0], point=[0.0, 0.0, 0.0])
    found = PointShift().fit(held)
    assert found.parameters[0].value == pytest.approx(3.0)
    assert found.parameters[0].standard_error == pytest.approx(np.sqrt(7.0 / 3.0))
    test = EvalSet.checked([0.0], point=[10.0])
    np.testing.assert_allclose(found.apply(test).point, [13.0])
    made = recalibrate(test, held, method="shift")
    np.testing.assert_allclose(made.evalset.point, [13.0])
    assert (made.methods, made.evalset.predictions) == ({"point": "shift"}, ())
    with pytest.raises(UnanswerableError, match="use apply"):
        found.transform(test)
    double = EvalSet.checked([1.0, 6.0], point=[0.0, 0.0], weights=[1.0, 3.0])
    assert PointShift().fit(double).parameters[0].value == pytest.approx(19.0 / 4.0)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_widths_are_scaled_and_a_note_says_so(kind: str) -> None:
    rng = child(9, "equal")
    center = rng.normal(size=200)
    y = center + 2.0 * rng.normal(size=200)
    held = EvalSet.checked(y, predicted(kind, center, np.ones(200), rng))
    if kind == "samples":
        held = EvalSet.checked(y, Samples(center[:, None] + np.linspace(-1.5, 1.5, 9)))
    found = Widths(kind).fit(held)
    assert any("scaled" in note for note in found.notes)
    assert value(found, "power") == 1.0
    scaled = fitted(kind, "scale", held) if kind != "intervals" else None
    if scaled is not None:
        assert value(found, "factor") == pytest.approx(value(scaled, "factor"))


def test_an_ensemble_whose_spread_is_noise_is_scaled() -> None:
    rng = child(10, "noise")
    table = rng.normal(size=(500, 6))
    found = Widths("samples").fit(EvalSet.checked(table[:, 0], Samples(table[:, 1:])))
    assert value(found, "power") == 1.0
    assert any("noise" in note for note in found.notes)


def test_rows_without_a_spread_keep_their_quantiles() -> None:
    held = drawn("quantiles", 200, 11, scale=0.6)
    flat = held.predictions[0].values.copy()
    flat[0] = 1.0
    held = EvalSet.checked(held.y, Quantiles(LEVELS, flat))
    for way in ("scale", "widths"):
        mended = fitted("quantiles", way, held).apply(held).predictions[0]
        np.testing.assert_array_equal(mended.values[0], 1.0)
        assert (np.ptp(mended.values[1:], axis=1) > np.ptp(flat[1:], axis=1) * 0.9).all()


BAD = {
    "one row": (lambda: drawn("distributions", 1, 0), WAYS, "at least 2 rows"),
    "counts": (
        lambda: EvalSet.checked([1.0, 2.0], Distribution("poisson", {"mu": [1.0, 2.0]})),
        WAYS,
        "use 'shape'",
    ),
    "no errors": (
        lambda: EvalSet.checked([0.0, 1.0], Distribution.normal([0.0, 1.0], [1.0, 2.0])),
        ("scale", "shift_scale", "widths"),
        "all errors in the calibration rows are zero",
    ),
    "no mean": (
        lambda: EvalSet.checked([0.0, 1.0], Distribution("cauchy", {"loc": [0.0, 1.0]})),
        WAYS,
        "no mean",
    ),
    "infinite ends": (
        lambda: EvalSet.checked([0.0] * 2, Intervals([-np.inf] * 2, [1.0] * 2, 0.9)),
        ("shift", "shift_scale", "widths"),
        "with infinite ends cannot be scaled",
    ),
    "unknown coverage": (
        lambda: EvalSet.checked([0.0] * 2, Intervals([-1.0] * 2, [1.0] * 2)),
        ("shift", "shift_scale", "widths"),
        "coverage of the intervals must be known",
    ),
    "no width": (
        lambda: EvalSet.checked([0.0, 3.0], Quantiles([0.1, 0.9], [[1.0, 1.0], [2.0, 2.0]])),
        ("scale", "shift_scale", "widths"),
        "no row has a spread",
    ),
    "two samples": (
        lambda: EvalSet.checked([0.0, 3.0], Samples([[0.0, 1.0], [0.0, 2.0]])),
        ("widths",),
        "at least 3 per row",
    ),
}


@pytest.mark.parametrize(("name", "way"), [(name, way) for name in BAD for way in BAD[name][1]])
def test_what_cannot_be_done_says_why(name: str, way: str) -> None:
    rows = BAD[name][0]()
    with pytest.raises(HowsureError, match=BAD[name][2]):
        fitted(rows.predictions[0].kind, way, rows)


def test_rows_of_another_kind_or_level_are_refused() -> None:
    found = Shift("quantiles").fit(drawn("quantiles", 50, 0))
    with pytest.raises(InputError, match=r"quantiles at levels .*, like the calibration rows"):
        found.apply(EvalSet.checked([0.0], Quantiles([0.1, 0.9], [[0.0, 1.0]])))
    with pytest.raises(InputError, match="must have quantiles"):
        found.apply(drawn("samples", 5, 0))
    with pytest.raises(InputError, match="must have 20 samples per row"):
        Shift("samples").fit(drawn("samples", 50, 0)).apply(
            EvalSet.checked([0.0], Samples([[0.0, 1.0]]))
        )
    with pytest.raises(InputError, match="prediction must be one of distributions"):
        Shift("label sets").fit(drawn("quantiles", 50, 0))
