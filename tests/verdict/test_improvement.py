"""Steps of improvement: an honest split, proof by rows that had no part, one error rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals, LabelSets, content_order
from howsure.recalibration import recalibrate
from howsure.recalibration.dispatch import InTurn
from howsure.verdict.advice import Advice, RecalibrationTrial, confirm
from howsure.verdict.dependence import follow
from howsure.verdict.family import Judging, judge_rows
from howsure.verdict.improvement import ERROR_RATE, ImprovedRows, improved, split

N = 2_000


def normal(seed: int, sd: float = 0.6, n: int = N, **beside: Any) -> EvalSet:
    """Errors of spread 1, said to be `sd`."""
    rng = child(seed, "improvement")
    mean = rng.normal(size=n)
    return EvalSet.checked(
        mean + rng.normal(size=n), Distribution.normal(mean, np.full(n, sd)), **beside
    )


# ---- the split ---------------------------------------------------------------------------------


def test_rows_are_split_by_what_they_hold_in_any_order() -> None:
    held = normal(0)
    how, kept = split(held, 0.3, 5)
    assert how == "random"
    assert abs(kept.mean() - 0.3) < 1 / N
    order = child(1, "order").permutation(N)
    assert (split(held.take(order), 0.3, 5)[1] == kept[order]).all()
    assert (split(held, 0.3, 6)[1] != kept).any()


def test_units_copies_and_times_are_not_torn() -> None:
    units = np.arange(N) % 40
    how, kept = split(normal(0, cluster=units), 0.5, 0)
    assert how == "units"
    assert {int(kept[units == unit].sum()) for unit in range(40)} == {0, N // 40}
    copied = normal(0).take(np.tile(np.arange(N // 2), 2))
    kept = split(copied, 0.5, 0)[1]
    assert (kept[: N // 2] == kept[N // 2 :]).all()
    time = child(2, "time").integers(50, size=N)
    how, kept = split(normal(0, time=time), 0.5, 0)
    assert how == "time"
    assert time[~kept].max() < time[kept].min()
    assert abs(kept.mean() - 0.5) < 1 / 50
    few = normal(0, time=time, cluster=np.arange(N) % 5)
    assert split(few, 0.5, 0)[0] == "time"  # five units are too few to be split


@pytest.mark.parametrize("share", [0.0, 1.0, -1, float("nan"), "half"])
def test_a_share_is_between_0_and_1(share: Any) -> None:
    with pytest.raises(InputError, match=r"hold_back must .*, got"):
        improved(normal(0), hold_back=share)


def test_what_cannot_be_improved_is_refused() -> None:
    with pytest.raises(InputError, match="at least 60 rows, some to fit and some to verify"):
        improved(normal(0, n=59))
    sets = LabelSets(np.ones((80, 2), dtype=np.bool_), 0.8)
    with pytest.raises(InputError, match="to be improved, got label sets"):
        improved(EvalSet.checked(np.zeros(80), sets))


# ---- the steps ---------------------------------------------------------------------------------


def test_too_narrow_predictions_are_scaled_and_right_ones_left() -> None:
    found = improved(normal(3), until_right=True)
    assert [step.advice.method for step in found.steps] == ["scale"]
    assert found.ended == "right"
    assert found.right
    (fitted,) = found.recalibrators
    assert fitted.parameters[0].value == pytest.approx(1.0 / 0.6, rel=0.06)
    assert {each.id for each in found.before if each.state == "bad"} >= {"spread", "coverage"}
    assert found.teaching_faults == ()
    none = improved(normal(4, sd=1.0), until_right=True)
    assert (none.steps, none.recalibrators, none.ended) == ((), (), "right")


def test_the_proof_is_the_gain_on_the_rows_held_back_by_definition() -> None:
    rng = child(6, "intervals")
    mean = rng.normal(size=N)
    held = EvalSet.checked(
        mean + rng.normal(size=N), Intervals(mean - 1.0, mean + 1.0, coverage=0.9)
    )
    found = improved(held)
    assert found.ended == "one_step"
    (step,) = found.steps
    kept = held.take(split(held, 0.5, 0)[1])

    def score(rows: EvalSet) -> Any:
        lower, upper = rows.predictions[0].interval(0.9)
        outside = np.maximum(lower - rows.y, 0.0) + np.maximum(rows.y - upper, 0.0)
        return upper - lower + 2.0 / (1.0 - 0.9) * outside

    (fitted,) = step.fitted
    before, after = score(kept), score(fitted.apply(kept))
    assert step.proof.gain == pytest.approx(1.0 - after.mean() / before.mean(), abs=1e-12)
    assert step.proof.accepted


def test_rows_held_back_teach_nothing() -> None:
    """Whatever their y is, the same is advised, fitted and tried, as far as it is confirmed."""
    time = np.arange(N)
    held = normal(7, time=time)
    kept = split(held, 0.5, 0)[1]
    other = replace(held, y=np.where(kept, held.y + 5.0, held.y))
    ours, theirs = improved(held), improved(other)
    assert ours.steps[0].fitted == theirs.steps[0].fitted
    assert ours.steps[0].advice == theirs.steps[0].advice
    assert ours.steps[0].proof != theirs.steps[0].proof


@pytest.fixture(scope="module")
def two_steps() -> tuple[EvalSet, ImprovedRows]:
    """Skewed errors whose spread hangs on an input: one way does not mend both."""
    rng = child(9, "two")
    x = rng.normal(size=2_000)
    y = x + (rng.gamma(2.0, size=2_000) - 2.0) * np.exp(0.4 * x)
    held = EvalSet.checked(y, Distribution.normal(x, np.full(2_000, 1.0)), features={"x": x})
    return held, improved(held, until_right=True)


@pytest.mark.slow
def test_steps_follow_each_other_and_are_one_recalibration(
    two_steps: tuple[EvalSet, ImprovedRows],
) -> None:
    held, found = two_steps
    assert len(found.confirmed) >= 2
    rows = held.take(np.arange(50))
    by_hand = rows
    for step in found.confirmed:
        (fitted,) = step.fitted
        by_hand = fitted.apply(by_hand)
    (whole,) = found.recalibrators
    assert isinstance(whole, InTurn)
    assert whole.method == ", then ".join(step.advice.method for step in found.confirmed)
    made = whole.apply(rows).predictions[0].numbers()
    for name, values in by_hand.predictions[0].numbers().items():
        np.testing.assert_array_equal(made[name], values)


def test_the_first_step_that_is_not_confirmed_is_the_last_and_is_not_applied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: Any, **options: Any) -> RecalibrationTrial:
        return RecalibrationTrial(method="scale", gain=-0.1, p=0.9)

    monkeypatch.setattr("howsure.verdict.improvement.confirm", refuse)
    found = improved(normal(3), until_right=True)
    assert (len(found.steps), found.ended, found.recalibrators) == (1, "unconfirmed", ())
    assert found.after == found.before


def test_rows_that_are_wrong_come_first() -> None:
    rng = child(8, "units")
    mean = 10.0 + rng.normal(size=N)
    y = 1_000.0 * (mean + 0.6 * rng.normal(size=N))
    found = improved(EvalSet.checked(y, Distribution.normal(mean, np.full(N, 0.6))))
    assert (found.ended, found.steps, found.right) == ("rows", (), False)


def confirms(seed: int, sd: float) -> bool:
    """Whether rows of a model confirm a scale that was learnt where spreads are a third too low."""
    taught = normal(seed, sd=0.75, n=200)
    rows = normal(seed + 100_000, sd=sd, n=300)
    fitted = recalibrate(rows.take(np.arange(1)), taught, method="scale").recalibrators
    (rows,), (known,) = follow([rows], content_order([rows]))
    findings, _ = judge_rows(rows, known)
    return confirm(rows, known, findings, Advice(method="scale"), fitted, Judging()).accepted


def test_right_rows_seldom_confirm_and_wrong_ones_do() -> None:
    assert not any(confirms(seed, 1.0) for seed in range(3))
    assert all(confirms(seed, 0.6) for seed in range(3))


@pytest.mark.rate
def test_a_step_that_helps_nothing_is_confirmed_within_the_error_rate() -> None:
    """Also where it nearly does nothing, so that no loss hides a false gain."""
    sets, found = 600, 0
    for seed in range(sets):
        rows = normal(seed, sd=1.0, n=300)
        taught = normal(seed + 50_000, sd=1.0, n=4_000)
        fitted = recalibrate(rows.take(np.arange(1)), taught, method="scale").recalibrators
        (rows,), (known,) = follow([rows], content_order([rows]))
        findings, _ = judge_rows(rows, known)
        found += confirm(rows, known, findings, Advice(method="scale"), fitted, Judging()).accepted
    assert found <= ERROR_RATE * sets + 2.0 * np.sqrt(ERROR_RATE * sets)
