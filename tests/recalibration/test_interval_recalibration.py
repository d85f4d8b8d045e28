"""Intervals: what each conformal method does to them, and where it must refuse."""

from __future__ import annotations

import numpy as np
import pytest

from howsure.core.errors import HowsureError, InputError
from howsure.core.rng import child
from howsure.predictions import EvalSet, Intervals
from howsure.recalibration import recalibrate
from howsure.recalibration.conformal import ConformalIntervals


def rows(name: str, n: int, coverage: object = 0.9) -> EvalSet:
    rng = child(0, "intervals", name)
    center, wide = rng.normal(size=n), rng.uniform(0.3, 2.0, n)
    prediction = Intervals(center - 0.7 * wide, center + wide, coverage)
    return EvalSet.checked(center + wide * rng.normal(size=n), prediction, point=center)


def covered(evalset: EvalSet, coverage: float) -> int:
    lower, upper = evalset.predictions[0].interval(coverage)
    return int(((lower <= evalset.y) & (evalset.y <= upper)).sum())


@pytest.mark.parametrize("n", [9, 10, 57, 100, 2000])
@pytest.mark.parametrize("method", ["cqr", "scale"])
def test_calibration_rows_are_covered_exactly_as_the_rank_says(method: str, n: int) -> None:
    held_out = rows("own", n)
    for rank in ("conformal", "paper"):
        fitted = ConformalIntervals(method, rank=rank).fit(held_out)
        assert covered(fitted.apply(held_out), 0.9) == fitted.parameters[0].rank


def test_the_papers_offset_by_its_own_words() -> None:
    held_out = rows("paper", 1288)
    lower, upper = held_out.predictions[0].interval(0.9)
    errors = sorted(max(a - y, y - b) for a, b, y in zip(lower, upper, held_out.y, strict=True))
    offset = errors[int(0.9 * 1288)]
    fitted = ConformalIntervals(rank="paper").fit(held_out)
    assert fitted.parameters[0].value == pytest.approx(offset, rel=1e-14)
    mended = fitted.apply(held_out).predictions[0]
    np.testing.assert_allclose(mended.lower[:, 0], lower - offset, rtol=1e-12)
    np.testing.assert_allclose(mended.upper[:, 0], upper + offset, rtol=1e-12)
    assert covered(fitted.apply(held_out), 0.9) / 1288 == (int(0.9 * 1288) + 1) / 1288


def test_the_scale_is_the_critical_scale_of_the_published_example() -> None:
    # Errors (1, −2, .5, 3) in bands (1, 1, 1, 2): critical scales (1, 2, .5, 1.5).
    error, band = np.array([1.0, -2.0, 0.5, 3.0]), np.array([1.0, 1.0, 1.0, 2.0])
    held_out = EvalSet.checked(error, Intervals(-band, band, 0.5), point=np.zeros(4))
    scales = {0.2: 0.5, 0.4: 1.0, 0.6: 1.5, 0.8: 2.0}
    for coverage, scale in scales.items():
        fitted = ConformalIntervals("scale", coverage=coverage).fit(held_out)
        assert fitted.parameters[0].value == pytest.approx(scale)
        assert fitted.apply(held_out).predictions[0].upper[:, 0] == pytest.approx(scale * band)


def test_asymmetric_offsets_follow_a_shifted_model() -> None:
    held_out = rows("bias", 399)
    shifted = EvalSet.checked(held_out.y + 5.0, held_out.predictions, point=held_out.point)
    plain = ConformalIntervals("asymmetric").fit(held_out)
    moved = ConformalIntervals("asymmetric").fit(shifted)
    (low, high), (low5, high5) = (
        [learnt.value for learnt in fitted.parameters] for fitted in (plain, moved)
    )
    assert (low5, high5) == pytest.approx((low - 5.0, high + 5.0))
    lower, upper = moved.apply(shifted).predictions[0].interval(0.9)
    assert (shifted.y < lower).sum() == 399 - 380
    assert (shifted.y > upper).sum() == 399 - 380


def test_each_coverage_learns_its_own_offset() -> None:
    rng = child(1, "levels")
    center = rng.normal(size=199)
    ends = np.stack([center - 0.1, center - 3.0], axis=1), np.stack([center, center + 2], axis=1)
    held_out = EvalSet.checked(rng.normal(center), Intervals(*ends, [0.5, 0.9]))
    mended = ConformalIntervals().fit(held_out).apply(held_out)
    assert covered(mended, 0.5) == 100
    assert covered(mended, 0.9) == 180
    alone = EvalSet.checked(held_out.y, Intervals(ends[0][:, 1], ends[1][:, 1], 0.9))
    one = ConformalIntervals().fit(alone).apply(alone).predictions[0].interval(0.9)
    np.testing.assert_array_equal(one, mended.predictions[0].interval(0.9))


def test_another_coverage_is_reached_from_the_nearest() -> None:
    center = np.zeros(199)
    prediction = Intervals(
        np.stack([center - 1, center - 9], axis=1), np.stack([center + 1, center + 9], axis=1),
        [0.5, 0.9],
    )  # fmt: skip
    held_out = EvalSet.checked(np.linspace(-10, 10, 199), prediction)
    result = recalibrate(held_out, held_out, coverage=0.95)
    assert result.evalset.predictions[0].coverages == (0.95,)
    assert covered(result.evalset, 0.95) >= 190
    assert any("0.9 were adjusted to coverage 0.95" in note for note in result.notes)
    assert any(
        "at coverages other than the given one were omitted" in note for note in result.notes
    )


def test_intervals_of_unknown_coverage_need_one() -> None:
    held_out = rows("unknown", 99, None)
    with pytest.raises(InputError, match="coverage must be given"):
        recalibrate(held_out, held_out)
    result = recalibrate(held_out, held_out, coverage=0.8)
    assert result.evalset.predictions[0].coverages == (0.8,)
    assert covered(result.evalset, 0.8) == 80
    with pytest.raises(InputError, match="known in both test and calibration rows, or in neither"):
        recalibrate(rows("known", 9), held_out, coverage=0.8)


def test_coverages_must_agree() -> None:
    with pytest.raises(InputError, match=r"calibration rows \(0\.9\), got 0\.8"):
        recalibrate(rows("other", 9, 0.8), rows("one", 99))
    with pytest.raises(InputError, match="got an unknown coverage"):
        recalibrate(rows("other", 9, None), rows("one", 99))


def test_fewer_coverages_than_calibrated_are_served() -> None:
    both = rows("both", 99)
    lower, upper = both.predictions[0].interval(0.9)
    wide = Intervals(np.stack([lower, lower - 1], 1), np.stack([upper, upper + 1], 1), [0.8, 0.9])
    held_out = EvalSet.checked(both.y, wide)
    mended = recalibrate(rows("few", 9), held_out).evalset.predictions[0]
    assert mended.coverages == (0.9,)


def test_intervals_far_too_wide_shrink_to_points_not_past_them() -> None:
    held_out = EvalSet.checked(np.zeros(99), Intervals(np.full(99, -5.0), np.full(99, 5.0), 0.9))
    test = EvalSet.checked([0.0, 0.0], Intervals([-5.0, 1.0], [5.0, 3.0], 0.9))
    result = recalibrate(test, held_out)
    lower, upper = result.evalset.predictions[0].interval(0.9)
    assert lower.tolist() == [0.0, 2.0]
    assert upper.tolist() == [0.0, 2.0]
    assert any(note.startswith("1 interval at coverage 0.9 would have") for note in result.notes)


def test_constant_errors_give_one_offset() -> None:
    point = np.arange(50.0)
    held_out = EvalSet.checked(point + 3.0, point=point)
    fitted = ConformalIntervals("split", "point", 0.9).fit(held_out)
    assert fitted.parameters[0].value == 3.0
    asymmetric = ConformalIntervals("asymmetric", "point", 0.9).fit(held_out)
    lower, upper = asymmetric.apply(held_out).predictions[0].interval(0.9)
    np.testing.assert_array_equal(lower, held_out.y)
    np.testing.assert_array_equal(upper, held_out.y)


def test_intervals_without_width_are_moved_but_not_scaled() -> None:
    point = np.zeros(99)
    held_out = EvalSet.checked(np.linspace(-1, 1, 99), Intervals(point, point, 0.9))
    assert covered(recalibrate(held_out, held_out).evalset, 0.9) >= 90
    with pytest.raises(InputError, match="all have width 0"):
        recalibrate(held_out, held_out, method="scale")


def test_a_scale_that_cannot_reach_says_so() -> None:
    width = np.r_[np.ones(50), np.zeros(50)]
    held_out = EvalSet.checked(np.full(100, 0.5), Intervals(-width, width, 0.9))
    result = recalibrate(held_out, held_out, method="scale")
    assert np.isinf(result.evalset.predictions[0].lower).all()
    assert any("have width 0 and cannot be scaled" in note for note in result.notes)
    with pytest.raises(InputError, match="have width 0"):
        recalibrate(held_out, held_out, method="scale", too_few="error")


def test_a_point_outside_its_interval_is_not_scaled_about() -> None:
    held_out = EvalSet.checked(np.zeros(20), Intervals(-np.ones(20), np.ones(20), 0.5),
                               point=np.r_[np.zeros(19), 2.0])  # fmt: skip
    with pytest.raises(InputError, match="first at row 19"):
        recalibrate(held_out, held_out, method="scale")


def test_a_scale_about_points_needs_them_in_both() -> None:
    with_point = rows("both", 99)
    without = EvalSet.checked(with_point.y, with_point.predictions)
    with pytest.raises(InputError, match="need a point forecast"):
        recalibrate(without, with_point, method="scale")
    middle = recalibrate(with_point, without, method="scale").evalset.predictions[0]
    lower, upper = with_point.predictions[0].interval(0.9)
    np.testing.assert_allclose(middle.lower + middle.upper, (lower + upper)[:, None])


def test_unbounded_intervals() -> None:
    low = np.r_[np.full(3, -np.inf), -np.ones(96)]
    held_out = EvalSet.checked(np.linspace(-2, 2, 99), Intervals(low, np.ones(99), 0.9))
    mended = recalibrate(held_out, held_out).evalset.predictions[0]
    assert (mended.lower[:3] == -np.inf).all()
    assert np.isfinite(mended.lower[3:]).all()
    with pytest.raises(InputError, match="with infinite ends cannot be scaled"):
        recalibrate(held_out, held_out, method="scale")
    endless = EvalSet.checked(
        np.zeros(99), Intervals(np.full(99, -np.inf), np.full(99, np.inf), 0.9)
    )
    with pytest.raises(InputError, match="bounded on most"):
        recalibrate(endless, endless)


def test_unknown_methods_and_kinds_are_refused() -> None:
    held_out = rows("names", 20)
    with pytest.raises(InputError, match="'magic'"):
        ConformalIntervals("magic").fit(held_out)
    with pytest.raises(InputError, match="'samples'"):
        ConformalIntervals("cqr", "samples").fit(held_out)
    fitted = ConformalIntervals().fit(held_out)
    with pytest.raises(HowsureError, match="must have intervals"):
        fitted.apply(EvalSet.checked([0.0], point=[0.0]))


@pytest.mark.parametrize("method", ["cqr", "asymmetric", "scale"])
def test_pac_intervals_cover_enough_for_nearly_every_calibration_set(method: str) -> None:
    """Row 23: all but a share δ of calibration sets reach the coverage."""
    fresh = rows("fresh", 20_000)
    reached = []
    for trial in range(200):
        held_out = rows(f"held out {trial}", 150)
        fitted = ConformalIntervals(method, rank="pac", delta=0.2, coverage=0.8).fit(held_out)
        reached.append(covered(fitted.apply(fresh), 0.8) / fresh.n >= 0.8)
    share = float(np.mean(reached))
    assert share >= 0.8 - 3 * np.sqrt(0.16 / 200)
    if method != "asymmetric":  # its two ends share δ, which is cautious
        assert share <= 0.8 + 3 * np.sqrt(0.16 / 200) + 0.06  # a rank is whole
    held_out = rows("few", 20)
    few = ConformalIntervals(method, rank="pac").fit(held_out)
    assert np.isinf(few.apply(held_out).predictions[0].interval(0.9)).all()
    needed = {"asymmetric": 72}.get(method, 29)
    assert f"{needed} calibration rows are needed, got 20" in few.notes[0]
    with pytest.raises(InputError, match="delta must be strictly between"):
        ConformalIntervals(method, rank="pac", delta=0.0).fit(held_out)


def test_pac_says_what_it_guarantees() -> None:
    held_out = rows("words", 500)
    mended = recalibrate(held_out, held_out, rank="pac", delta=0.1)
    assert (
        "at least 90 % of rows are covered for all but 10 of 100"
        in (mended.guarantees["intervals"])
    )
    assert covered(mended.evalset, 0.9) > covered(recalibrate(held_out, held_out).evalset, 0.9)
