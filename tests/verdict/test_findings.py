"""Each question of the verdict on small tables with a known answer: effect, sign and state."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

from howsure import Options, Table, assess
from howsure.core.errors import _strict
from howsure.core.records import Record
from howsure.core.rng import child
from howsure.engine.catalogue import catalogue
from howsure.engine.finding import Case, Draft
from howsure.predictions import Distribution, EvalSet, Intervals
from howsure.topics.calibration.components import ONE_WIDTH
from howsure.topics.calibration.shape import MEAN_ERROR
from howsure.verdict import findings, words
from howsure.verdict.family import examine
from howsure.verdict.findings import case_of, drafts_of, headline_coverage, questions
from howsure.verdict.words import sentence
from verdict.drafts import finding, record

N = 1500
Z = child(0, "findings").normal(size=N)
SIZE = np.exp(child(0, "findings", "size").uniform(-0.7, 0.7, N))
ZERO = np.zeros(N)
NARROW = 0.7 * special.ndtri(0.95)


def shown(y: np.ndarray, prediction: Any, **more: Any) -> tuple[dict[str, Draft], dict[str, str]]:
    """Drafts of the findings of a table, and the reasons of the others."""
    held = assess(Table(y, prediction, **more))
    predictions = prediction if isinstance(prediction, tuple) else (prediction,)
    evalset = EvalSet.checked(y, predictions, point=more.get("point"))
    drafts, silent = drafts_of(case_of(held.records, evalset))
    for each in drafts:
        assert not math.isnan(each.effect)
        assert math.isnan(each.p) or 0 <= each.p <= 1
        text = sentence(finding(each, "undecided"), each)
        assert "nan" not in text
    return {each.id: each for each in drafts}, silent


def test_findings_read_measures_that_are_there_and_have_a_place() -> None:
    for name, question in questions().items():
        assert name == question.id
        assert set(question.measures) <= set(catalogue())
    assert tuple(questions())[: len(findings._ORDER)] == findings._ORDER


def test_a_fault_in_words_leaves_the_verdict_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    held = EvalSet.checked(SIZE * Z, Distribution.normal(ZERO, SIZE))
    whole, _ = examine(held)
    broken = replace(questions()["skew"], words=lambda draft, finding: 1 / 0)
    monkeypatch.setattr(words, "questions", lambda: {**questions(), "skew": broken})
    _strict.set(False)
    told, _ = examine(held)
    assert [finding.state for finding in told] == [finding.state for finding in whole]
    skew = next(finding for finding in told if finding.id == "skew")
    assert skew.sentence.startswith("Skew: fault in howsure (ZeroDivisionError")


def test_a_right_model_departs_nowhere() -> None:
    drafts, silent = shown(SIZE * Z, Distribution.normal(ZERO, SIZE))
    assert {"coverage", "bias", "spread", "skew", "tails", "width", "trade"} <= set(drafts)
    for name, each in drafts.items():
        if name not in ("trade", "skill"):  # which show a gain
            half = (each.upper - each.lower) / 2.0
            assert abs(each.effect) <= 2.0 * half, name
        assert each.p > 0.005, name
    assert drafts["trade"].effect > 0
    assert drafts["trade"].good
    assert silent["support"] == "every y is possible under its prediction"
    assert "predictive distribution" in silent["one_sided"]
    assert silent["comparison"] == "there is one model"


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_spread_and_coverage(factor: float) -> None:
    drafts, _ = shown(SIZE * Z, Distribution.normal(ZERO, factor * SIZE))
    spread, cover = drafts["spread"], drafts["coverage"]
    assert spread.effect == pytest.approx(1 / factor - 1, abs=0.1)
    true = 2 * special.ndtr(factor * special.ndtri(0.95)) - 1 - 0.9
    assert cover.effect == pytest.approx(true, abs=0.03)
    for each in (spread, cover):
        assert each.p < 1e-6
        assert each.lower <= each.effect <= each.upper


@pytest.mark.parametrize("shift", [-0.4, 0.4])
def test_bias_of_a_distribution(shift: float) -> None:
    """In mean absolute errors, above 0 where predictions are too low."""
    drafts, _ = shown(SIZE * (Z + shift), Distribution.normal(ZERO, SIZE))
    assert drafts["bias"].effect == pytest.approx(shift / MEAN_ERROR, abs=0.1)
    assert drafts["bias"].p < 1e-6


def test_bias_of_a_point_forecast() -> None:
    """Of intervals, bias is told of a point that was given, and of no midpoint."""
    y = Z + 0.3
    bare = Intervals(ZERO - 2, ZERO + 2, coverage=0.9)
    drafts, _ = shown(y, bare, point=ZERO)
    assert drafts["bias"].effect == pytest.approx(y.mean() / np.abs(y).mean())
    assert drafts["bias"].p == pytest.approx(stats.ttest_1samp(y, 0.0).pvalue, rel=1e-9)
    assert drafts["bias"].facts["point"]
    assert "bias" in shown(y, bare)[1]


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_skew_has_the_side_of_the_long_tail(side: float) -> None:
    y = side * (child(0, "gamma").gamma(4.0, size=N) - 4.0) / 2.0
    drafts, _ = shown(y, Distribution.normal(ZERO, 1.0))
    assert side * drafts["skew"].effect > 0.02
    assert drafts["skew"].p < 1e-6


@pytest.mark.parametrize(("heavy", "sign"), [(True, 1.0), (False, -1.0)])
def test_tails_have_the_sign_of_their_weight(heavy: bool, sign: float) -> None:
    rng = child(0, "tails", int(heavy))
    y = rng.standard_t(3, N) / math.sqrt(3) if heavy else rng.uniform(-1, 1, N) * math.sqrt(3)
    drafts, _ = shown(y, Distribution.normal(ZERO, 1.0))
    assert sign * drafts["tails"].effect > 0.01
    assert drafts["tails"].p < 1e-4


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_misses_on_one_side_of_intervals(side: float) -> None:
    reach = special.ndtri(0.95)
    bare = Intervals(ZERO - reach - 0.6 * side, ZERO + reach - 0.6 * side, coverage=0.9)
    drafts, silent = shown(Z, bare)
    below, above = (bare.lower[:, 0] > Z).mean(), (bare.upper[:, 0] < Z).mean()
    assert drafts["one_sided"].effect == pytest.approx(above - below)
    assert side * drafts["one_sided"].effect > 0
    assert drafts["one_sided"].facts["below"] == pytest.approx(below)
    assert drafts["one_sided"].p < 1e-6
    for name in ("spread", "skew", "tails"):
        assert name in silent


def test_what_cannot_happen_is_proof() -> None:
    y = np.r_[-0.5, child(0, "uniform").random(N - 1)]
    drafts, _ = shown(y, Distribution.from_scipy(stats.uniform(0, 1), N))
    assert drafts["support"].effect == pytest.approx(1 / N)
    assert drafts["support"].p == 0.0


@pytest.mark.parametrize(("power", "sign"), [(2.0, -1.0), (0.5, 1.0)])
def test_widths_that_overreact_or_react_too_little(power: float, sign: float) -> None:
    drafts, _ = shown(SIZE * Z, Distribution.normal(ZERO, SIZE**power))
    assert sign * drafts["width"].effect > 0.15
    assert drafts["width"].p < 1e-6
    assert not drafts["width"].facts["equal"]


def test_equal_widths_are_no_fault_of_their_own() -> None:
    _, silent = shown(Z, Distribution.normal(ZERO, 1.0))
    assert silent["width"].startswith("every row has the same width, and ")
    assert silent["trade"] == "every row has the same width"


def test_widths_without_meaning_lose_to_a_constant_band() -> None:
    drafts, _ = shown(Z, Distribution.normal(ZERO, SIZE**2))
    assert drafts["trade"].effect < 0
    assert drafts["trade"].p < 0.01
    assert not drafts["trade"].good


def test_two_models_are_compared_by_their_score() -> None:
    good, bad = Distribution.normal(ZERO, SIZE), Distribution.normal(ZERO + 0.5, SIZE)
    found = assess(SIZE * Z, {"bad": bad, "good": good})
    (told,) = [each for each in found.findings if each.id == "comparison" and each.effect][:1]
    assert told.state == "good"
    assert told.sentence.startswith("good beats bad in ")
    mirrored = assess(SIZE * Z, {"bad": good, "good": bad})
    assert any(each.sentence.startswith("bad beats good") for each in mirrored.findings)


# From records as they come


def case(coverage: float = 0.9, **records: Record) -> Case:
    held = EvalSet.checked(Z, Distribution.normal(ZERO, 1.0))
    return Case(held, records, coverage)


def from_records(name: str, records: Mapping[str, Record]) -> Draft:
    drafts, silent = drafts_of(case(**records), [other for other in questions() if other != name])
    assert drafts, silent[name]
    return drafts[0]


def test_the_group_that_stands_out() -> None:
    chosen = {"where": "season=winter", "value": 0.8, "expected": 0.88, "reach": 0.09}
    ends = {"lower": 0.75, "upper": 0.84, "rows": 300.0}
    told = record("groups_differ", 0.002, p=0.002, options={**chosen, **ends})
    draft = from_records("groups", {"groups_differ": told})
    assert draft.effect == pytest.approx(-0.08)
    assert (draft.lower, draft.upper) == pytest.approx((-0.13, -0.04))
    assert (draft.p, draft.where, draft.good) == (0.002, "season=winter", False)
    near = record("groups_differ", 0.5, p=0.5, options={**chosen, **ends, "reach": 0.03})
    assert from_records("groups", {"groups_differ": near}).good


def regions(signal: str, value: float, deviation: float = -0.2) -> Record:
    ends = {"value": value, "lower": value - 0.02, "upper": value + 0.02, "expected": 0.9}
    told = {"where": "x > 1", "signal": signal, "deviation": deviation, "rows": 200.0, **ends}
    return record("regions_differ", 0.001, p=0.001, options=told)


@pytest.mark.parametrize(
    ("low", "high", "reply", "told"),
    [
        (-np.inf, np.inf, "no", "Intervals have no bounds: they always cover and "),
        (
            np.where(np.arange(N) % 10 < 3, -np.inf, -1.645),
            0.0,
            "partly",
            "Intervals have no bounds ",
        ),
        (-np.inf, 1.2816, "partly", "Intervals have no lower bound."),
    ],
)
def test_intervals_without_an_end_are_told_first_and_are_no_yes(
    low: npt.ArrayLike, high: npt.ArrayLike, reply: str, told: str
) -> None:
    """Coverage is what they claim, and equal finite widths do not overreact; so says a check."""
    lower = np.broadcast_to(np.asarray(low, dtype=float), N)
    upper = -lower if np.ndim(low) else np.broadcast_to(np.asarray(high, dtype=float), N)
    bare = Intervals(lower, upper, coverage=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = assess(Z, bare, options=Options(trials=False))
        judged, _ = examine(EvalSet.checked(Z, bare))
    assert found.answer is not None
    assert found.answer.reply == reply
    assert found.findings[0].id == "ends"
    assert found.findings[0].sentence.startswith(told)
    states = {each.id: each.state for each in found.findings}
    assert states["coverage"] != "bad"
    assert states.get("width") in (None, "good")
    assert {each.id: (each.state, each.sentence) for each in judged} == {
        each.id: (each.state, each.sentence) for each in found.findings
    }


SITES = np.array(["a", "b", "c"])[np.arange(N) % 3]
SITE_SD = np.select([SITES == "a", SITES == "b"], [1.0, 2.6], 3.3)


@pytest.mark.parametrize("road", ["groups", "features"])
def test_the_part_that_is_named_is_covered_least(road: str) -> None:
    """Site a, as it should be, differs most from all rows; c, at 38 %, is what a reader needs."""
    bare = Intervals(ZERO - 1.645, ZERO + 1.645, coverage=0.9)
    found = assess(SITE_SD * Z, bare, **{road: {"site": SITES}}, options=Options(trials=False))
    (told,) = [each for each in found.findings if each.id in ("groups", "region")]
    assert told.state == "bad"
    assert told.where in ("site=c", "not site=a and site=c", "not site=a and not site=b")
    assert told.effect < -0.15
    share = (np.abs(SITE_SD * Z) < 1.645)[SITES == "c"].mean()
    number = f"{100 * share:.1f}".removesuffix(".0") if road == "groups" else "%"
    assert number in told.sentence
    assert number in told.clause


def test_a_region_that_over_covers_comes_after_the_lowest_coverage() -> None:
    low = record("worst_region", 0.85, options={"where": "x ≤ 1"})
    high = regions("coverage", 0.99, 0.09)
    draft = from_records("region", {"regions_differ": high, "worst_region": low})
    judged = finding(draft, "bad")
    assert sentence(judged, draft).startswith("Coverage is 85 % where x ≤ 1, 99 % where x > 1 (")
    assert words.clause(judged, draft) == "coverage is 85 % where x ≤ 1"


def test_the_level_that_under_covers_is_told_before_one_that_over_covers() -> None:
    """Light in the middle, with far outliers: 50 % intervals are farther off than the 99 %."""
    y = np.where(np.arange(N) % 6 == 0, 4.0, 0.3) * Z
    levels = (0.5, 0.9, 0.99)
    reach = special.ndtri((1 + np.array(levels)) / 2)
    ends = np.tile(reach, (N, 1))
    drafts, _ = shown(y, Intervals(-ends, ends, coverage=levels), coverage=levels)
    told = drafts["coverage"]
    assert told.effect < -0.05
    assert told.facts["coverage"] == 0.99
    text = sentence(finding(told, "bad"), told)
    assert "they under-cover by" in text
    assert "Those at 50 % over-cover by" in text


def test_the_region_that_stands_out() -> None:
    draft = from_records("region", {"regions_differ": regions("coverage", 0.7)})
    assert draft.effect == pytest.approx(-0.2)
    assert (draft.lower, draft.upper) == pytest.approx((-0.22, -0.18))
    assert draft.where == "x > 1"


@pytest.mark.parametrize(("signal", "order"), [("bias", 1), ("spread", 2)])
def test_a_region_told_by_the_pit_is_in_points_of_probability(signal: str, order: int) -> None:
    """Its effect is the deviation of φ times the largest |∫φ|."""
    u = np.linspace(0.0, 1.0, 100_001)
    phi = math.sqrt(2 * order + 1) * special.eval_sh_legendre(order, u)
    largest = np.abs(np.cumsum(phi) / len(u)).max()
    draft = from_records("region", {"regions_differ": regions(signal, 0.9, 0.5)})
    assert draft.effect == pytest.approx(0.5 * largest, abs=1e-4)
    assert draft.lower > 0  # as p < .05


def test_congruence_is_told_against_a_right_model() -> None:
    told = record("mean_cce", 0.3, half=0.02, null=0.2, p=0.01)
    draft = from_records("congruence", {"mean_cce": told})
    assert draft.effect == pytest.approx(0.5)
    assert draft.lower == pytest.approx((0.3 - 1.959964 * 0.01) / 0.2 - 1)


def test_noise_that_varies_with_inputs_stands_in_for_equal_widths() -> None:
    same = Record(metric="width_response", value=math.nan, options={ONE_WIDTH: "yes"})
    noise = record("noise_given_inputs", 1.4, half=0.1, p=0.001, options={"where": "x > 1"})
    draft = from_records("width", {"width_response": same, "noise_given_inputs": noise})
    assert draft.effect == pytest.approx(0.4)
    assert draft.facts["equal"]
    assert draft.where == "x > 1"


def test_the_coverage_spoken_of() -> None:
    assert headline_coverage([0.5, 0.8, 0.95]) == 0.95
    assert headline_coverage([0.5, 0.9, 0.95]) == 0.9
    assert headline_coverage([0.85, 0.95]) == 0.95
    assert math.isnan(headline_coverage([math.nan]))


def test_what_is_ignored_is_not_asked() -> None:
    drafts, silent = drafts_of(case(), set(questions()))
    assert not drafts
    assert set(silent.values()) == {"ignored, as asked"}


def test_importance_weights_and_clusters_use_the_error_and_not_the_binomial() -> None:
    held = EvalSet.checked(
        Z, Intervals(ZERO - NARROW, ZERO + NARROW, coverage=0.9), cluster=np.arange(N) % 30
    )
    found = assess(
        Z, Intervals(ZERO - NARROW, ZERO + NARROW, coverage=0.9), cluster=np.arange(N) % 30
    )
    drafts, _ = drafts_of(case_of(found.records, held))
    (cover,) = [each for each in drafts if each.id == "coverage"]
    seen: Record = cover.facts["record"]
    t = (seen.value - 0.9) / seen.standard_error
    assert cover.p == pytest.approx(2 * stats.t(29).sf(abs(t)))


def test_drift_explains_what_one_side_of_it_alone_shows() -> None:
    """Coverage .91 and then .52: no line told of time; now the overall lines are part of it."""
    n = 2_000
    rng = child(0, "drift")
    late = np.arange(n) >= 1_200
    time = np.datetime64("2024-01-01") + np.arange(n) // 20
    half = np.where(late, 0.706, 1.695)
    bare = Intervals(-half, half, coverage=0.9)
    found, _ = examine(EvalSet.checked(rng.normal(size=n), bare, time=time))
    told = {each.id: each for each in found}
    assert told["drift"].state == "bad"
    assert told["drift"].where == "from 2024-03-01 on"
    assert "2024-03-01 coverage fell from 9" in told["drift"].sentence
    assert told["drift"].upper < -0.2
    assert told["coverage"].state == "caution"
    assert told["coverage"].sentence.endswith("this is part of the drift.")
    normal = Distribution.normal(np.zeros(n), np.ones(n))
    wrong = EvalSet.checked(rng.normal(size=n) * np.where(late, 3.0, 1.0), normal, time=time)
    states = {each.id: each.state for each in examine(wrong)[0]}
    assert states["drift"] == "bad"
    assert states["spread"] == states["coverage"] == "caution"
    both = EvalSet.checked(rng.normal(size=n) * np.where(late, 3.0, 1.6), normal, time=time)
    states = {each.id: each.state for each in examine(both)[0]}
    assert states["drift"] == states["spread"] == states["coverage"] == "bad"


def test_a_constant_fault_is_no_drift_and_no_time_is_silent() -> None:
    n = 2_000
    y = child(1, "no drift").normal(size=n)
    half = np.full(n, 1.2536)
    bare = Intervals(-half, half, coverage=0.9)
    states = {e.id: e.state for e in examine(EvalSet.checked(y, bare, time=np.arange(n)))[0]}
    assert states["coverage"] == "bad"
    assert states["drift"] == "undecided"
    _, silent = examine(EvalSet.checked(y, bare))
    assert silent["drift"] == "the table has no time"
    many = 60_000
    normal = Distribution.normal(np.zeros(many), np.ones(many))
    held = EvalSet.checked(child(2, "held").normal(size=many), normal, time=np.arange(many))
    told = {each.id: each for each in examine(held)[0]}
    assert told["drift"].state == "good"
    assert "changes stay within 3 points" in told["drift"].sentence
