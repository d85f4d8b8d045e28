"""Tests of coverage by replicates: how often they err, what they say, what they take."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import howsure
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.report.replicates import (
    CoverageOutcome,
    CoverageRule,
    CoverageSession,
    CoverageTrial,
    covered_rows,
    replicate_rng,
)

RULE = CoverageRule(coverage=0.9, tolerance=0.02, replicates=200)
ERROR = 0.01


def hits(rng: np.random.Generator, mean: float, rows: int, kind: str) -> Any:
    """Rows of a replicate: independent, of two halves that are copies, or one row many times."""
    if kind == "independent":
        return rng.random(rows) < mean
    fresh = rng.random(rows) < mean
    fresh[: rows // 2 if kind == "half" else rows] = rng.random() < mean
    return fresh


def run(rule: CoverageRule, share: float, mean: float, kind: str, *names: Any) -> CoverageTrial:
    """A test of a method that covers so often, until it is decided."""
    trial = CoverageTrial(rule, error_rate=share)
    rng = child(0, "replicates", mean, kind, *names)
    while len(trial.values) < rule.replicates and trial.state == "undecided":
        trial.add(hits(rng, mean, 30, kind))
    return trial


def failed_sessions(sessions: int, tests: int, rule: CoverageRule, mean: float, kind: str) -> int:
    return sum(
        any(
            run(rule, ERROR / tests, mean, kind, session, test).state == "fails"
            for test in range(tests)
        )
        for session in range(sessions)
    )


KINDS = ("independent", "half", "copies")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_right_methods_hardly_ever_fail_in_few_sessions(kind: str) -> None:
    rule = replace(RULE, replicates=60)
    failed = failed_sessions(100, 3, rule, RULE.least, kind)
    assert failed <= stats.binom.ppf(0.999, 100, ERROR)


@pytest.mark.parametrize(
    ("kind", "mean"),
    [*((kind, RULE.least) for kind in KINDS), ("half", 0.9), ("half", RULE.most)],
)
@pytest.mark.rate
def test_a_session_of_right_methods_fails_in_1_of_100(kind: str, mean: float) -> None:
    """Means that are right, and as far off as is right."""
    failed = failed_sessions(300, 4, RULE, mean, kind)
    assert failed <= stats.binom.ppf(0.999, 300, ERROR)


@pytest.mark.parametrize(("kind", "most"), [("independent", 40), ("half", 120), ("copies", 900)])
def test_a_method_of_80_percent_fails(kind: str, most: int) -> None:
    rule = replace(RULE, replicates=most)
    states = [run(rule, ERROR / 4, 0.8, kind, k).state for k in range(15)]
    assert states.count("fails") >= 14
    assert "holds" not in states


def test_over_coverage_fails_on_two_sides_alone() -> None:
    trial = CoverageTrial(RULE, error_rate=ERROR)
    low = CoverageTrial(replace(RULE, sided="low"), error_rate=ERROR)
    for _ in range(200):
        trial.add(np.ones(10, bool))
        low.add(np.ones(10, bool))
    assert trial.state == "fails"
    assert low.state == "holds"
    # (1 + 0.99 · 0.08 / 0.92)ᵗ / 2 = 2 / 0.01: half of the capital, and half of the error a side
    first = math.ceil(math.log(400.0) / math.log1p(0.99 * 0.08 / 0.92))
    again = CoverageTrial(RULE, error_rate=ERROR)
    while again.state == "undecided":
        again.add(np.ones(10, bool))
    assert first - 5 <= len(again.values) <= first


def test_a_right_method_is_proven_right() -> None:
    trial = run(replace(RULE, tolerance=0.05), ERROR, 0.9, "independent")
    outcome = trial.outcome()
    assert outcome.state == "holds"
    assert 0.85 <= outcome.lower < outcome.empirical_coverage < outcome.upper <= 0.95
    assert outcome.confidence == 0.95


def test_proofs_of_right_methods_are_wrong_in_1_of_20_at_most() -> None:
    rule = CoverageRule(coverage=0.9, tolerance=0.05, replicates=120, sided="low")
    wrong = sum(
        run(rule, 1e-9, rule.least, "copies", "held", k).state == "holds" for k in range(40)
    )
    assert wrong <= stats.binom.ppf(0.999, 40, 0.05)


def test_a_coverage_above_1_cannot_fail() -> None:
    rule = CoverageRule(coverage=0.99, tolerance=0.02)
    assert rule.most == 1.0
    trial = CoverageTrial(rule, error_rate=ERROR)
    for _ in range(150):
        trial.add(np.ones(10, bool))
    assert trial.state == "holds"
    assert "at least 97 %" in trial.outcome().sentence


def test_undecided_says_how_many_replicates_would_decide() -> None:
    few, more = (CoverageTrial(replace(RULE, tolerance=0.05), error_rate=ERROR) for _ in range(2))
    for _ in range(20):
        few.add(np.arange(10) < 9)
    outcome = few.outcome()
    assert outcome.state == "undecided"
    assert outcome.needed is not None
    while more.state == "undecided":
        more.add(np.arange(10) < 9)
    assert outcome.needed - 5 <= len(more.values) <= outcome.needed
    assert f"about {outcome.needed} replicates should decide" in outcome.sentence
    edge = CoverageTrial(replace(RULE, tolerance=0.0), error_rate=ERROR)
    for _ in range(20):
        edge.add(np.arange(10) < 9)
    assert edge.outcome().needed is None
    assert "no number of replicates should decide" in edge.outcome().sentence


def failing() -> CoverageOutcome:
    trial = CoverageTrial(RULE, error_rate=0.005, test="tests/test_a.py::test_b[x|y]", seed=3)
    for k in range(40):
        trial.add(np.arange(10) < (7 if k == 4 else 8))
        if trial.state == "fails":
            break
    return trial.outcome()


def test_a_failure_says_what_was_found() -> None:
    found = failing()
    assert found.state == "fails"
    assert found.upper <= 0.88 < found.coverage
    assert found.e_value >= found.e_value_needed == 400.0
    assert found.farthest == 5
    assert found.rows == 10 * found.replicates
    assert found.sentence == (
        f"Empirical coverage is {100 * found.empirical_coverage:.1f} % "
        f"({100 * found.lower:.1f}–{100 * found.upper:.1f}, bounds at 99.75 %) over "
        f"{found.replicates} replicates with {found.rows} rows. It is significantly below 88 %, "
        f"and should be between 88 % and 92 %. The e-value is {found.e_value:.0f} (limit 400; a "
        "correct method exceeds it with probability 0.5 % at most). The farthest is replicate 5, "
        "70 %, drawn with howsure.testing.replicate_rng('tests/test_a.py::test_b[x|y]', 5, 3)."
    )


def test_a_test_that_broke_says_so() -> None:
    trial = CoverageTrial(RULE, error_rate=ERROR)
    nothing = trial.outcome("ValueError: no\nway")
    assert nothing.state == "error"
    assert math.isnan(nothing.empirical_coverage)
    trial.add([True])
    assert trial.outcome("ValueError: no").sentence == "Stopped in replicate 2: ValueError: no"


def test_a_session_as_json_and_as_markdown() -> None:
    broken = CoverageTrial(RULE, error_rate=ERROR, test="tests/<b>.py::c").outcome("E: `x`\n# no")
    session = CoverageSession(outcomes=(failing(), broken), error_rate=ERROR)
    assert session.summary == (
        "2 tests of coverage: 1 failed, 1 broken. If all methods are correct, the probability of "
        "any failure is at most 1 %."
    )
    held = json.loads(session.to_json())
    assert held["error_rate"] == ERROR
    assert [each["state"] for each in held["tests"]] == ["fails", "error"]
    assert held["tests"][1]["empirical_coverage"] is None
    assert held["tests"][0]["e_value"] == session.outcomes[0].e_value
    text = session.to_markdown()
    assert r"test\_b\[x\|y\]" in text
    assert "<b>" not in text
    assert r"\`x\` \# no" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 4
    assert {line.replace(r"\|", "").count("|") for line in table} == {8}
    empty = CoverageSession(outcomes=(), error_rate=ERROR)
    assert "none ran" in empty.to_markdown()
    assert json.loads(empty.to_json())["tests"] == []


Y, LOW, HIGH = np.array([0.0, 2.0, -3.0, 1.0]), -np.ones(4), np.ones(4)


@pytest.mark.parametrize(
    "given",
    [
        (np.array([True, False, False, True]),),
        ([True, False, False, True],),
        (Y, LOW, HIGH),
        (Y, (LOW, HIGH)),
        (Y, howsure.Intervals(LOW, HIGH, coverage=0.9)),
        (Y, howsure.Distribution.normal(np.zeros(4), np.full(4, 0.61))),
        (Y, np.stack([LOW, HIGH], axis=1)),
    ],
)
def test_covered_rows_of_all_forms(given: Any) -> None:
    assert covered_rows(*given, coverage=0.9).tolist() == [True, False, False, True]


def test_covered_rows_of_label_sets() -> None:
    sets = howsure.LabelSets([[True, False], [True, True]], coverage=0.9)
    assert covered_rows([1, 1], sets, coverage=0.9).tolist() == [False, True]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0.0, 1.0],), "covered needs True or False for each row .* got float64 of shape"),
        ((np.ones((2, 2), bool),), r"covered needs .* got bool of shape \(2, 2\)"),
        ((np.ones(0, bool),), "a replicate must have at least one row, got none"),
        ((Y, {"a": (LOW, HIGH), "b": (LOW, HIGH)}), "prediction must come from one model, got 2"),
        ((Y, HIGH, LOW), "lower must not exceed upper, got 4 crossed intervals"),
    ],
)
def test_what_is_not_rows_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        covered_rows(*given, coverage=0.9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"coverage": 90},
            r"coverage must be strictly between 0 and 1, got 90; did you mean 0\.9",
        ),
        ({"coverage": 0.9, "tolerance": -0.1}, r"tolerance must be at least 0, got -0\.1"),
        ({"coverage": 0.1, "tolerance": 0.1}, r"tolerance must be below coverage, 0\.1, got 0\.1"),
        ({"coverage": 0.9, "replicates": 0}, "replicates must be a whole number of at least 1"),
        ({"coverage": 0.9, "sided": "one"}, "sided must be one of two, low, got 'one'"),
    ],
)
def test_wrong_rules_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CoverageRule(**given)


def test_draws_are_fixed_by_test_replicate_and_seed() -> None:
    first = replicate_rng("a::b", 1).random()
    assert first == replicate_rng("a::b", 1).random()
    others = [replicate_rng("a::c", 1), replicate_rng("a::b", 2), replicate_rng("a::b", 1, 1)]
    assert len({first, *(rng.random() for rng in others)}) == 4
    with pytest.raises(InputError, match="replicate must be a whole number of at least 1, got 0"):
        replicate_rng("a::b", 0)
