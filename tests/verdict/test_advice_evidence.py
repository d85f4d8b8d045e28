"""A small version of `benchmarks/advice.py`, and what both scripts of advice count and draw."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.recalibration import METHODS, methods_of
from howsure.recalibration.info import RecalibrationOptions
from howsure.verdict.advice import Advice, RecalibrationTrial, Trials

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The scripts, of a package of no other folder."""
    sys.path.insert(0, str(ROOT))
    yield {name: import_module(f"benchmarks.{name}") for name in ("advice", "advice_real")}
    sys.path.remove(str(ROOT))


@pytest.fixture(scope="module")
def advice(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["advice"]


@pytest.fixture(scope="module")
def real(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["advice_real"]


def place_of(advice: ModuleType, name: str) -> int:
    return [cell.name for cell in advice.CELLS].index(name)


def scaling(held: EvalSet, *, seed: int = 0) -> Trials:
    """Advice to scale wherever the mean squared z is off by a tenth, without any trial."""
    kind = held.predictions[0].kind
    fitted = METHODS["scale"].make(kind, RecalibrationOptions()).fit(held)
    found = fitted.apply(held).predictions[0].sd() / held.predictions[0].sd()
    if abs(math.log(float(np.median(found)))) < 0.05:
        return Trials(advice=Advice(method=""))
    made = Advice(method="scale", gain=0.02, lower=-0.5, upper=0.5)
    return Trials(advice=made)


def test_every_fault_has_a_right_mend_that_its_kind_knows(advice: ModuleType) -> None:
    names = [cell.name for cell in advice.CELLS]
    assert len(set(names)) == len(names)
    rng = np.random.default_rng(0)
    for cell in advice.CELLS:
        kind = cell.world(rng, 50).predictions[0].kind
        known = {re.split(" by |, ", name)[0] for name in cell.right}
        assert known <= set(methods_of(kind)), cell.name
        if cell.right and cell.fresh is not None:
            assert cell.fresh(rng, 50).predictions[0].kind == kind


def test_a_fault_is_the_same_in_every_kind(advice: ModuleType) -> None:
    """Moments, quantiles and ends are those of the normal prediction behind them."""
    world = advice.verdict.normal(scale=0.8, shift=0.2)
    plain, *others = (
        made(np.random.default_rng(3), 4_000)
        for made in (
            world,
            *(advice.told_as(world, kind) for kind in ("samples", "quantiles", "intervals")),
        )
    )
    stated, wide = plain.predictions[0], stats.norm.ppf(0.95)
    for held in others:
        assert np.array_equal(held.y, plain.y)
        told = held.predictions[0]
        if isinstance(told, Samples):
            off = (told.point() - stated.point()) / stated.sd()
            assert abs(off.mean()) < 4 / math.sqrt(20 * 4_000)
            # the variance of 20 normal draws has a relative standard error of √(2/19)
            ratio = np.square(told.sd() / stated.sd()).mean()
            assert abs(ratio - 1) < 4 * math.sqrt(2 / 19 / 4_000)
        elif isinstance(told, Quantiles):
            assert told.values[:, -1] == pytest.approx(stated.point() + wide * stated.sd())
        else:
            assert isinstance(told, Intervals)
            assert told.lower[:, 0] == pytest.approx(stated.point() - wide * stated.sd())


def test_a_gain_is_the_share_by_which_the_score_falls(advice: ModuleType) -> None:
    """Of normal predictions the expected CRPS is known: (√(2(1 + k²)) − k)/√π for an sd of k."""
    rng = np.random.default_rng(1)
    n, narrow = 400_000, 0.7
    y, zero = rng.normal(size=n), np.zeros(n)
    before = EvalSet.checked(y, Distribution.normal(zero, np.full(n, narrow)))
    after = replace(before, predictions=(Distribution.normal(zero, np.ones(n)),))
    expected = [(math.sqrt(2 * (1 + k**2)) - k) / math.sqrt(math.pi) for k in (narrow, 1.0)]
    assert advice.gain(before, after) == pytest.approx(1 - expected[1] / expected[0], abs=1e-3)
    assert advice.gain(after, before) == pytest.approx(1 - expected[0] / expected[1], abs=1e-3)


def test_what_became_quantiles_is_compared_at_the_same_levels(advice: ModuleType) -> None:
    rng = np.random.default_rng(2)
    y, zero = rng.normal(size=1_000), np.zeros(1_000)
    before = EvalSet.checked(y, Distribution.normal(zero, zero + 1.0))
    levels = np.array([0.1, 0.6])
    same = replace(before, predictions=(Quantiles(levels, before.predictions[0].quantile(levels)),))
    assert advice.gain(before, same) == 0.0
    lower, upper = same.predictions[0].values.T
    pinball = np.maximum(0.1 * (y - lower), -0.9 * (y - lower)).mean()
    pinball += np.maximum(0.6 * (y - upper), -0.4 * (y - upper)).mean()
    assert advice.scores(before, same) == pytest.approx((pinball / 2, pinball / 2))
    assert advice.scores(before, before, (0.1, 0.6)) == pytest.approx((pinball / 2, pinball / 2))


@pytest.mark.parametrize(
    ("second", "third", "back"),
    [
        ([-2.0, 2.0], [-1.0, 1.0], True),  # widened, then narrowed
        ([-2.0, 2.0], [-1.9, 1.9], True),
        ([-2.0, 2.0], [-3.0, 3.0], False),
        ([-2.0, 2.0], [-1.5, 2.5], False),  # widened, then moved
        ([0.0, 2.0], [-0.5, 1.5], True),  # moved, then moved back
        ([0.0, 2.0], [-0.5, 2.5], False),
        ([0.0, 2.0], [0.0, 2.0], False),
    ],
)
def test_opposite_advice_moves_the_ends_back(
    advice: ModuleType, second: list[float], third: list[float], back: bool
) -> None:
    first = np.array([-1.0, 1.0])
    assert advice.undone(first, np.array(second), np.array(third)) is back
    assert not advice.undone(first, first, np.array(third))


def test_following_finds_what_advice_gains(
    advice: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a judge that only scales, where the gain has a closed form, and on a right model."""
    monkeypatch.setattr(advice, "try_recalibrations", scaling)
    place = place_of(advice, "sd × .7, normal")
    found = advice.table((place, 5_000, 0))[2]
    expected = 1 - 1 / (math.sqrt(2 * (1 + 0.49)) - 0.7)
    assert (found.advised, found.right, found.opposite) == ("scale", True, False)
    assert found.fresh == pytest.approx(expected, abs=0.003)
    right = advice.table((place_of(advice, "normal"), 1_000, 0))[2]
    assert right.advised == ""


def test_wrong_advice_is_right_only_if_it_gains_as_much(
    advice: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To scale a group's fault away gains far less than the group does."""
    held = advice.CELLS[place_of(advice, "half the sd in a group of 20 %, normal")]
    place = advice.CELLS.index(held)
    by_site = Advice(method="group", by=("site",))
    rows = held.world(np.random.default_rng(0), 5_000)
    monkeypatch.setattr(advice, "try_recalibrations", scaling)
    tried = RecalibrationTrial(method="group", by=("site",))
    found = advice.follow(place, rows, Advice(method="scale"), (tried,), 0)
    assert (found.right, found.best) == (False, "group by site")
    other = advice.follow(place, rows, by_site, (), 0)
    assert other.right
    assert other.fresh > found.fresh


def outcome(advice: ModuleType, **told: object) -> object:
    given = {"stated": 0.02, "lower": 0.01, "upper": 0.03, "fresh": 0.025} | told
    return advice.Outcome(**given)


def test_lines_count_what_came_of_advice(advice: ModuleType) -> None:
    place = place_of(advice, "sd × .8, normal")
    told = [
        outcome(advice, advised="scale", right=True, opposite=False),
        outcome(advice, advised="scale", right=True, fresh=0.035),
        outcome(advice, advised="shift", fresh=-0.01, opposite=True),
        advice.Outcome(""),
    ]
    line = advice.fault_line(place, 1_000, told)
    assert line == (
        "| sd × .8, normal | 1,000 | 75.0 | 50.0 | 66.7 | 50.0 | 2.0 | 2.5 | 33.3 "
        "| scale 2, shift 1 | 4 | 2 |"
    )
    assert advice.off(advice.verdict.split(line))
    right = advice.right_line(0, 100, told)
    assert right == "| normal | 100 | 25.0 | scale 2, shift 1 | 4 |"
    none = advice.fault_line(place, 1_000, [advice.Outcome("")])
    assert advice.off(advice.verdict.split(none))
    assert advice.overall([line, none]) == (
        "Over all lines: 66.7 % of 3 tables have a better score, and 50.0 % of 2 get the opposite "
        "advice next."
    )


def test_bars_are_those_that_the_page_states(advice: ModuleType) -> None:
    def missed(name: str, n: str, right: str, better: str = "100.0", opposite: str = "0") -> bool:
        return bool(
            advice.off(
                [name, n, "100.0", right, better, opposite, "1", "1", "90", "scale", "60", "60"]
            )
        )

    assert missed("sd × .8, normal", "1,000", "89.0")
    assert not missed("sd × .8, normal", "1,000", "90.0")
    assert not missed("sd × .9, normal", "1,000", "40.0")
    assert missed("sd × .9, normal", "5,000", "89.0")
    # of 60, three binomial standard errors are 8.4 points about 5 % and 5.4 about 2 %
    assert missed("sd × .9, normal", "1,000", "95.0", better="86.0")
    assert not missed("sd × .9, normal", "1,000", "95.0", better="87.0")
    assert missed("sd × .9, normal", "1,000", "95.0", opposite="8.0")
    assert not missed("sd × .9, normal", "1,000", "95.0", opposite="7.0")
    assert advice.RIGHT.misses(["normal", "100", "90.0", "", "60"])
    assert not advice.RIGHT.misses(["normal", "100", "91.0", "", "60"])


def test_lines_not_drawn_are_kept_between_the_marks(
    advice: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\nText.\n", encoding="utf-8")
    intervals = sys.modules["benchmarks.intervals"]
    monkeypatch.setattr(intervals, "PAGE", page)
    intervals.write("## Other\n")
    first = "| normal | 100 | 100.0 |  | 60 |"
    second = "| t3 | 100 | 98.3 | shape 1 | 60 |"
    for line in (first, second, first.replace("100.0", "95.0")):
        _, _, held = page.read_text(encoding="utf-8").partition(advice.MARKS[0])
        advice.write("\n".join(advice.RIGHT.text([line], held)), advice.MARKS)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Page\n\nText.\n")
    assert "## Other" in text
    assert first not in text
    assert text.index("| normal | 100 | 95.0 |") < text.index(second)
    kept = [found.group() for found in advice.verdict.MARKED.finditer(text)]
    assert [text.count(part) for part in kept] == [1, 1]
    assert second in kept[1]
    assert "## Other" in kept[0]


def test_halves_follow_content_or_time(real: ModuleType) -> None:
    rng = np.random.default_rng(4)
    held = EvalSet.checked(rng.normal(size=2_000), Distribution.normal(np.zeros(2_000), 1.0))
    one, other = real.halves(held)
    assert one.n + other.n == 2_000
    assert abs(one.n - 1_000) < 4 * math.sqrt(500)
    order = rng.permutation(2_000)
    again, _ = real.halves(held.take(order))
    assert np.array_equal(np.sort(again.y), np.sort(one.y))
    dated = EvalSet.checked(held.y, held.predictions[0], time=np.arange(2_000))
    early, late = real.in_time(dated)
    assert max(early.time) < min(late.time)


def test_a_study_says_what_went_and_what_stayed(
    real: ModuleType, advice: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(advice, "try_recalibrations", scaling)
    monkeypatch.setattr(real, "try_recalibrations", scaling)
    world = advice.verdict.normal(scale=0.5, beside=("groups",))
    rows = real.halves(world(np.random.default_rng(5), 4_000))
    text = "\n".join(real.told(real.Study("Half", "Drawn.", lambda _: rows), tmp_path))
    assert "Corrected: " in text
    assert re.search(r"\| spread \| ✗ .* \| [✓?○] ", text)
    told = re.search(r"\| 90 % intervals cover \| ([\d.]+) % \| ([\d.]+) % \|", text)
    assert told is not None
    for value, expected in zip(told.groups(), (0.5892, 0.9), strict=True):  # 2 Φ(1.645 / 2) − 1
        error = math.sqrt(expected * (1 - expected) / rows[1].n)
        assert abs(float(value) / 100 - expected) < 5 * error
    assert "The score falls by" in text
    assert "A second assessment of these rows has no recommendation." in text
    plain = advice.verdict.normal()(np.random.default_rng(6), 4_000)
    quiet = real.told(real.Study("Right", "Drawn.", lambda _: real.halves(plain)), tmp_path)
    assert not any("Corrected" in line for line in quiet)


@pytest.mark.rate
def test_small_version(advice: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain faults are mended by their own mend, right models are left alone."""
    fewer = [replace(cell, many=20_000) for cell in advice.CELLS]
    monkeypatch.setattr(advice, "CELLS", fewer)
    advice.fresh_rows.cache_clear()
    faults = (
        "sd × .8, normal",
        "bias of .2 sd, quantiles",
        "widths that overreact, normal",
        "half the sd in a group of 20 %, normal",
    )
    for name in faults:
        told = [advice.table((place_of(advice, name), 1_000, number))[2] for number in range(2)]
        assert all(each.right for each in told), (name, told)
        assert all(each.fresh > 0 for each in told), (name, told)
        assert not told[0].opposite, (name, told)
    none = tables = 0
    for place, cell in enumerate(advice.CELLS):
        if not cell.right:
            found = advice.table((place, min(n for n in cell.sizes if n >= 300), 0))[2]
            none += not found.advised
            tables += 1
    assert tables >= 14
    assert none >= tables - 1
    advice.fresh_rows.cache_clear()
