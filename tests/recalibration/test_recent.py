"""Recalibration by recent rows: since a time, or by weights that fade; and times of no use."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals
from howsure.recalibration import compare_recalibrations, recalibrate
from howsure.recalibration.conformal import ConformalIntervals
from howsure.recalibration.dispatch import METHODS, methods_of
from howsure.recalibration.location_scale import LocationScale
from howsure.recalibration.recent import Recent, faded, since_rows
from recalibration.conditional_worlds import (
    KINDS,
    covered,
    is_bad,
    numbers,
    rescaled,
    score,
    weighted,
    world,
)


def dated(times: object) -> EvalSet:
    n = len(times)  # type: ignore[arg-type]
    y = np.tile([-1.0, 1.0], n)[:n]
    return EvalSet.checked(y, Distribution.normal(y * 0, y**0), time=times)  # type: ignore[arg-type]


# Rows from a time on.


@pytest.mark.parametrize(
    ("times", "since"),
    [
        ([1, 2, 3, 4], 3),
        ([1, 2, 3, 4], "2.5"),
        ([1.5, 2.5, 3.5, 4.5], 3),
        (["2024-01-31", "2024-02-01", "2024-11-05", "2025-01-01"], "2024-11"),
        (["2024-01-31", "2024-02-01", "2024-11-05", "2025-01-01"], date(2024, 11, 5)),
        (["2024-01-31 10:00", "2024-01-31 11:00", "2024-01-31 12:00", "2025-01-01 00:00"],
         "2024-01-31T11:30"),
        (["2024-01-31T10:00Z", "2024-01-31T11:00Z", "2024-01-31T12:00Z", "2025-01-01T00:00Z"],
         "2024-01-31T13:30+02:00"),
        (np.array(["2020", "2021", "2022", "2023"], dtype="datetime64[Y]"), "2022-01-01"),
        (np.array([5, 6, 7, 8], dtype="datetime64[ns]") + np.timedelta64(10**18), "2001-09-09"),
    ],
)  # fmt: skip
def test_rows_from_a_time_on(times: object, since: object) -> None:
    kept = since_rows(dated(times), since).rows
    want = [0, 1, 2, 3] if since == "2001-09-09" else [2, 3]
    assert (np.arange(4) if kept is None else kept).tolist() == want


def test_a_time_itself_is_kept() -> None:
    assert since_rows(dated([1, 2, 3]), 2).rows.tolist() == [1, 2]
    assert since_rows(dated([1, 2, 3]), 0).n == 3


@pytest.mark.parametrize(
    ("times", "since", "words"),
    [
        ([1, 2, 3], "spring", r"since must be a number, .*from 1 to 3\), got 'spring'"),
        ([1, 2, 3], float("nan"), "since must be a number"),
        ([3, 1, 2], 4, r"times run from 1 to 3\), got 4"),
        (["2024-01-01", "2024-03-01"], "spring", r"from 2024-01-01 to 2024-03-01\), got 'spring'"),
        (["2024-01-01", "2024-03-01"], 5, "since must be a date as ISO text"),
        (["2024-01-01", "2024-03-01"], "NaT", "since must be a date as ISO text"),
        (["2024-01-01", "2024-03-01"], "2024-13-01", "since must be a date as ISO text"),
        (["2024-01-01", "2024-03-01"], "2024-03-02", "run from 2024-01-01 to 2024-03-01"),
        (["early", "late"], "2024-01-01", "times must be numbers or dates as ISO text .*'early'"),
        (np.array([1, 2], dtype="m8[s]"), "2024-01-01", "times must be numbers or dates"),
    ],
)
def test_times_that_cannot_be_compared(times: object, since: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        since_rows(dated(times), since)
    with pytest.raises(InputError, match=words):
        recalibrate(dated(times), dated(times), since=since)


def test_rows_without_times() -> None:
    rows = EvalSet.checked([1.0, 2.0], point=[0.0, 0.0])
    with pytest.raises(InputError, match="since needs a time column"):
        since_rows(rows, 3)
    with pytest.raises(InputError, match="needs a time column"):
        recalibrate(rows, rows, method="recent", coverage=0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_since_serves_every_method(kind: str) -> None:
    held_out, new = world(kind, 900, "since", "late"), world(kind, 40, "since new")
    late = held_out.take(np.arange(720, 900))
    known = methods_of(kind).values()
    methods = [i.name for i in known if i.gives != "intervals"]  # which must be told the coverage
    for method in [*methods, None]:
        made = recalibrate(new, held_out, method=method, since=720)
        want = recalibrate(new, late, method=method, since=720)
        assert np.array_equal(
            numbers(made.evalset.predictions[0]), numbers(want.evalset.predictions[0])
        ), method
        assert "180 of 900 calibration rows are from 720 or later and were used." in made.notes
    recent = recalibrate(new, held_out, method="recent", since=720).recalibrators[0]
    direct = Recent(kind, since=720).fit(held_out)
    found, wanted = ([asdict(each) for each in one.parameters] for one in (recent, direct))
    np.testing.assert_equal(found, wanted)


def test_times_of_the_new_rows_are_not_asked() -> None:
    held_out = world("distributions", 300, "no times")
    new = EvalSet.checked(held_out.y, held_out.predictions)
    assert recalibrate(new, held_out, since=100).evalset.n == 300
    assert recalibrate(new, held_out, method="recent").evalset.n == 300


# Weights that fade.


def test_weights_halve_every_tenth_of_the_rows() -> None:
    order = child(0, "faded").permutation(2_000)
    used, half = faded(dated(order))
    assert half == 200
    weight = used.weights.values[np.argsort(order)]
    assert weight[-1] == 1
    assert np.allclose(weight[:-200] / weight[200:], 0.5)
    assert used.weights.kind == "importance"


def test_rows_of_one_time_count_alike_and_few_rows_fade_slowly() -> None:
    used, half = faded(dated([1, 1, 2, 2, 2]))
    assert half == 100
    assert np.allclose(used.weights.values, [2**-0.03, 2**-0.03, 1, 1, 1])


def test_text_that_is_no_date_is_in_the_order_of_text() -> None:
    used, _ = faded(dated(["b", "a", "c"]))
    assert np.argsort(used.weights.values).tolist() == [1, 0, 2]
    used, _ = faded(dated(["2024-02-01T00:00+01:00", "2024-01-31T23:30Z"]))
    assert used.weights.values[0] < used.weights.values[1]


def test_shift_and_factor_are_the_weighted_ones_by_definition() -> None:
    held_out = world("distributions", 1_500, "definition", "late")
    fitted = Recent("distributions").fit(held_out)
    prediction = held_out.predictions[0]
    w = 0.5 ** ((1_499 - np.arange(1_500)) / 150)
    z = (held_out.y - prediction.point()) / prediction.sd()
    shift = (w * z).sum() / w.sum()
    factor = np.sqrt((w * (z - shift) ** 2).sum() / w.sum())
    assert [each.value for each in fitted.parameters] == pytest.approx([shift, factor], rel=1e-12)
    kish = w.sum() ** 2 / (w**2).sum()
    assert fitted.parameters[0].n == pytest.approx(kish)
    assert f"effective sample size {kish:.0f} of 1,500" in fitted.notes[0]
    assert "No finite-sample guarantee" in fitted.guarantee


def test_intervals_have_the_weighted_offsets_of_each_end() -> None:
    held_out = world("intervals", 800, "ends")
    fitted = Recent("intervals").fit(held_out)
    used = faded(held_out)[0]
    want = ConformalIntervals("asymmetric").fit(used)
    assert repr(fitted.parameters) == repr(want.parameters)  # NaN is unlike itself
    assert "no finite-sample guarantee" in fitted.guarantee
    since = Recent("intervals", since=500).fit(held_out)
    assert "exchangeable with the 300 calibration rows" in since.guarantee


def test_quantiles_are_shifted_and_stretched_as_their_frame_says() -> None:
    held_out = world("quantiles", 500, "frame", "late")
    fitted = Recent("quantiles", since=400).fit(held_out)
    late = held_out.take(np.arange(400, 500))
    frame, mass = LocationScale.of(late.predictions[0]), np.ones(100)
    shift = frame.shift(late.y, mass, frame.spread)
    factor = frame.factor(late.y, mass, frame.center + shift * frame.spread)
    assert [each.value for each in fitted.parameters] == [shift, factor]
    median = late.predictions[0].values[:, 3]
    want = (median + shift * frame.spread)[:, None] + factor * (
        late.predictions[0].values - median[:, None]
    )
    assert np.allclose(fitted.apply(late).predictions[0].values, want)


def test_a_point_forecast_gets_intervals() -> None:
    y = child(0, "point").normal(size=500) * np.where(np.arange(500) < 400, 1.0, 3.0)
    held_out = EvalSet.checked(y, point=y * 0, time=np.arange(500))
    made = recalibrate(held_out, held_out, method="recent", coverage=0.9, since=400).evalset
    low, high = made.predictions[0].interval(0.9)
    assert np.mean((low <= y) & (y <= high)) > 0.97
    assert recalibrate(held_out, held_out, method="recent", coverage=0.9).methods == {
        "point": "recent"
    }


# Laws.


@pytest.mark.parametrize("since", [None, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_units_order_and_repetition(kind: str, since: int | None) -> None:
    held_out, new = world(kind, 500, "laws", "late"), world(kind, 50, "new")
    made = Recent(kind, since).fit(held_out).apply(new).predictions[0]
    other = Recent(kind, since).fit(rescaled(held_out, 3.0, -7.0))
    turned = other.apply(rescaled(new, 3.0, -7.0)).predictions[0]
    wanted = numbers(rescaled(EvalSet.checked(new.y, made), 3.0, -7.0).predictions[0])
    assert np.allclose(numbers(turned), wanted, rtol=1e-9, atol=1e-9)
    mixed = held_out.take(child(0, "order").permutation(500))
    again = Recent(kind, since).fit(mixed).apply(new).predictions[0]
    assert np.allclose(numbers(again), numbers(made), rtol=1e-9, atol=1e-12)
    copies = child(0, "copies").integers(1, 4, 500)
    counted = Recent(kind, since).fit(weighted(held_out, copies)).apply(new).predictions[0]
    repeated = Recent(kind, since).fit(held_out.take(np.repeat(np.arange(500), copies))).apply(new)
    assert np.allclose(numbers(counted), numbers(repeated.predictions[0]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("since", [None, 200])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_reflection_of_y_reflects_moments(kind: str, since: int | None) -> None:
    held_out, new = world(kind, 400, "mirror", "late"), world(kind, 50, "more mirror")
    made = Recent(kind, since).fit(held_out).apply(new).predictions[0]
    other = Recent(kind, since).fit(rescaled(held_out, -1.0, 0.0)).apply(rescaled(new, -1.0, 0.0))
    wanted = numbers(rescaled(EvalSet.checked(new.y, made), -1.0, 0.0).predictions[0])
    assert np.allclose(numbers(other.predictions[0]), wanted, rtol=1e-9, atol=1e-9)


# Drift comes right on later rows; right models are hardly harmed.


@pytest.mark.parametrize("kind", KINDS)
def test_errors_doubled_late_come_right(kind: str) -> None:
    fresh = world(kind, 30_000, "fresh", "late")
    later = fresh.take(np.flatnonzero(is_bad(fresh, "late")))
    since, fading = [], []
    for table in range(6):
        held_out = world(kind, 2_000, table, "late")
        sharp = recalibrate(later, held_out, method="recent", since=1_600).evalset
        soft = recalibrate(later, held_out, method="recent").evalset
        since.append(covered(sharp).mean())
        fading.append(covered(soft).mean())
        assert score(sharp) < score(later)
        assert score(soft) < score(later)
    assert abs(np.mean(since) - 0.9) < 0.03
    assert np.mean(fading) > covered(later).mean() + 0.15  # a quarter of its weight is older
    assert abs(np.mean(fading) - 0.9) < 0.05


@pytest.mark.parametrize(
    ("kind", "most"),
    # Some 290 rows alike teach: 1/(2·290) of the score a moment, and more a quantile.
    [("distributions", 0.005), ("samples", 0.005), ("quantiles", 0.01), ("intervals", 0.015)],
)
def test_a_right_model_is_hardly_harmed(kind: str, most: float) -> None:
    fresh = world(kind, 20_000, "right")
    made = [recalibrate(fresh, world(kind, 1_000, t), method="recent") for t in range(10)]
    assert np.mean([score(each.evalset) for each in made]) / score(fresh) - 1.0 < most


def test_every_kind_but_label_sets_knows_the_method() -> None:
    assert METHODS["recent"].kinds == METHODS["group"].kinds  # all but label sets


def test_intervals_of_unknown_coverage_are_refused() -> None:
    y = np.arange(20.0)
    rows = EvalSet.checked(y, Intervals(y - 1, y + 1), time=y)
    with pytest.raises(InputError, match="unknown coverage"):
        Recent("intervals").fit(rows)


# The comparison of all ways tries what the rows can teach.


def test_ways_are_compared_that_the_rows_can_teach() -> None:
    held_out, new = world("distributions", 300, "compared"), world("distributions", 200, "new")
    bare = EvalSet.checked(held_out.y, held_out.predictions)

    def ways(calibration: EvalSet, methods: list[str] | None = None) -> set[str]:
        table = compare_recalibrations(
            new, calibration, metrics=["crps"], methods=methods, coverages=(0.9,)
        )
        return set(table.columns)

    beside = {"group", "inputs", "recent"}
    assert beside <= ways(held_out)
    assert not beside & ways(bare)
    crossed = EvalSet.checked(
        held_out.y,
        held_out.predictions,
        groups={"g": held_out.groups["g"], "h": np.arange(300) % 2},
    )
    assert not beside & ways(crossed)
    assert "group" in ways(crossed, ["group"])  # asked for, it says why it cannot be used
