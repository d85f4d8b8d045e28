"""Limits and findings as data: bounds from the definition, and error rates by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals
from howsure.report.check import CheckResult, Limit, Rules, check, limit_of
from howsure.verdict.family import examine
from howsure.verdict.findings import questions


def covering(covered: Sequence[int], n: Sequence[int], model: str = "m") -> EvalSet:
    """Groups of so many rows, of which so many lie in their interval."""
    hit = np.concatenate([np.arange(size) < k for k, size in zip(covered, n, strict=True)])
    names = np.repeat([f"g{i}" for i in range(len(n))], n)
    ends = np.ones(len(hit))
    return EvalSet.checked(
        np.where(hit, 0.0, 2.0),
        Intervals(-ends, ends, coverage=0.9),
        groups={"where": names, "all": np.zeros(len(hit), dtype=int)},
        model=model,
    )


def judged(held: EvalSet, *limits: Limit, **choices: Any) -> CheckResult:
    return check([held], Rules(limits=limits, **choices))


def test_a_group_is_proven_at_one_tail_and_refuted_at_its_share_of_it() -> None:
    """Lower bounds: Beta at 5 %. Upper bounds: Beta at 5 % over the number of groups."""
    covered, n = (45, 60, 20), (50, 100, 21)
    found = judged(covering(covered, n), limit_of("coverage", "min", 0.79), by=("where",))
    assert [each.group for each in found.outcomes] == ["where=g0", "where=g1", "where=g2"]
    for each, k, size in zip(found.outcomes, covered, n, strict=True):
        assert each.lower == pytest.approx(stats.beta.ppf(0.05, k, size - k + 1), rel=1e-9)
        assert each.upper == pytest.approx(stats.beta.isf(0.05 / 3, k + 1, size - k), rel=1e-9)
        assert each.lower_confidence == pytest.approx(0.95)
        assert each.upper_confidence == pytest.approx(1 - 0.05 / 3)
        assert each.n == size
    assert [each.state for each in found.outcomes] == ["holds", "fails", "holds"]
    assert (found.status, len(found.failed)) == (1, 1)


def test_a_most_has_its_tails_the_other_way_round() -> None:
    (one, _) = judged(
        covering((45, 60), (50, 100)), limit_of("coverage", "max", 0.99), by=("where",)
    ).outcomes
    assert one.upper == pytest.approx(stats.beta.isf(0.05, 46, 5), rel=1e-9)
    assert one.lower == pytest.approx(stats.beta.ppf(0.025, 45, 6), rel=1e-9)
    assert one.state == "holds"


def test_two_sided_limits_have_half_the_tail() -> None:
    (one,) = judged(
        covering((45,), (50,)), limit_of("coverage", "min", 0.8), sided="two", confidence=0.9
    ).outcomes
    assert one.lower == pytest.approx(stats.beta.ppf(0.05, 45, 6), rel=1e-9)
    assert one.upper == pytest.approx(stats.beta.isf(0.05, 46, 5), rel=1e-9)
    assert one.lower_confidence == pytest.approx(0.95)


def test_the_worst_group_is_bounded_by_the_least_bounds_of_all() -> None:
    """Brute force over the groups, which it must agree with in every state."""
    held = covering((45, 60, 20), (50, 100, 21))
    for bound in (0.4, 0.5, 0.6, 0.75, 0.95):
        groups = judged(held, limit_of("coverage", "min", bound), by=("where",)).outcomes
        (worst,) = judged(held, limit_of("worst_group", "min", bound), by=("where",)).outcomes
        states = {each.state for each in groups}
        expected = "fails" if "fails" in states else states.pop() if len(states) == 1 else None
        assert worst.state == (expected or "undecided")
        assert worst.lower == min(each.lower for each in groups)
        assert worst.upper == min(each.upper for each in groups)
        assert worst.group == "where=g1"


def test_the_worst_group_is_of_all_columns_where_none_is_named() -> None:
    """Four groups in all: three of one column, one of the other."""
    (worst,) = judged(
        covering((45, 60, 20), (50, 100, 21)), limit_of("worst_group", "min", 0.5)
    ).outcomes
    assert worst.upper_confidence == pytest.approx(1 - 0.05 / 4)
    bare = EvalSet.checked(np.zeros(50), Intervals(-np.ones(50), np.ones(50), coverage=0.9))
    with pytest.raises(InputError, match=r"worst_group ≥ 0\.5 cannot be judged without groups"):
        judged(bare, limit_of("worst_group", "min", 0.5))


@pytest.mark.parametrize(("limit", "state"), [(0.88, "fails"), (0.8, "holds")])
def test_a_gate_on_the_worst_region_reads_under_coverage(limit: float, state: str) -> None:
    """Rows past .4 are covered at 84 %, and others, which differ more from all, at 98.5 %."""
    rng = child(0, "mixed coverage")
    x, z = rng.random(6_000), rng.normal(size=6_000)
    sd = 1.645 / np.where(x > 0.4, stats.norm.ppf(0.92), stats.norm.ppf(0.9925))
    ends = np.full(6_000, 1.645)
    held = EvalSet.checked(sd * z, Intervals(-ends, ends, coverage=0.9), features={"x_a": x})
    (one,) = judged(held, limit_of("worst_region", "min", limit)).outcomes
    assert one.state == state
    assert one.lower < 0.84 < one.upper


def failing(groups: int, size: int, bound: float, tail: float) -> float:
    """The exact chance that a limit fails in any group whose coverage is the bound."""
    k = np.arange(size + 1)
    upper = np.where(k < size, stats.beta.isf(tail, k + 1, np.maximum(size - k, 1)), 1.0)
    each = float(stats.binom.pmf(k[upper < bound], size, bound).sum())
    return 1.0 - (1.0 - each) ** groups


@pytest.mark.rate
def test_a_limit_at_the_truth_of_ten_groups_seldom_fails() -> None:
    """As often as the binomial law says, which is at most 5 %; unadjusted it would be 24 %."""
    groups, size, tables = 10, 80, 300
    rng, failed = child(0, "limits by groups"), 0
    limit = limit_of("coverage", "min", 0.9)
    for _ in range(tables):
        covered = rng.binomial(size, 0.9, groups)
        failed += judged(covering(covered, [size] * groups), limit, by=("where",)).status
    truth = failing(groups, size, 0.9, 0.05 / groups)
    assert 0.005 < truth <= 0.05 < 0.2 < failing(groups, size, 0.9, 0.05)
    assert stats.binomtest(failed, tables, truth).pvalue > 0.001
    assert stats.binomtest(failed, tables, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.slow
def test_a_mean_at_the_truth_of_ten_groups_seldom_fails() -> None:
    """Mean absolute errors of lognormal size, whose bounds are approximate."""
    groups, size, tables = 10, 50, 150
    rng, failed = child(1, "limits by groups"), 0
    names = np.repeat(np.arange(groups), size)
    limit = limit_of("mae", "max", math.exp(0.5 * 0.5**2))
    for _ in range(tables):
        errors = np.exp(0.5 * rng.normal(size=groups * size))
        held = EvalSet.checked(errors, point=np.zeros(groups * size), groups={"g": names})
        failed += judged(held, limit, by=("g",)).status
    assert stats.binomtest(failed, tables, 0.05, alternative="greater").pvalue > 0.001


def test_one_bad_group_among_sure_ones_seldom_holds() -> None:
    """Exact: that all hold has at most the chance that the bad one does, without an adjustment."""
    size, bound = 200, 0.8
    k = np.arange(size + 1)
    proven = np.where(k > 0, stats.beta.ppf(0.05, np.maximum(k, 1), size - k + 1), 0.0) >= bound
    assert 0.01 < stats.binom.pmf(k[proven], size, bound).sum() <= 0.05
    least = int(k[proven][0])
    for covered, state in ((least, "holds"), (least - 1, "undecided")):
        found = judged(
            covering((covered, size, size), (size, size, size)),
            limit_of("coverage", "min", bound),
            by=("where",),
        )
        assert [each.state for each in found.outcomes] == [state, "holds", "holds"]


def test_limits_keep_to_their_model_and_coverage() -> None:
    n = 200
    y = child(0, "models").normal(size=n)
    sets = [
        EvalSet.checked(y, Distribution.normal(np.zeros(n), np.full(n, sd)), model=name)
        for name, sd in (("wide", 1.0), ("narrow", 0.4))
    ]
    limits = (
        limit_of("coverage", "min", 0.8, model="wide", at=0.9),
        limit_of("coverage", "min", 0.4, at=0.5),
        limit_of("crps", "max", 5.0),
    )
    told = [
        (each.model, each.limit.value, each.coverage)
        for each in check(sets, Rules(limits=limits)).outcomes
    ]
    assert told[0] == ("wide", 0.8, 0.9)
    assert told[1] == ("wide", 0.4, 0.5)
    assert [(m, v) for m, v, _ in told[2:]] == [("wide", 5.0), ("narrow", 0.4), ("narrow", 5.0)]
    with pytest.raises(
        InputError,
        match=r"model of the limit .* must be one of wide, narrow, got 'wid'; near: wide",
    ):
        check(sets, Rules(limits=(limit_of("mae", "max", 1.0, model="wid"),)))


def test_a_group_without_an_answer_is_undecided_and_none_is_an_error() -> None:
    """One row has no R²; where no group has one, nothing can be judged."""
    y = np.array([1.0, 2.0, 4.0, 3.0, 8.0, 5.0, 6.0, 7.0, 9.0])
    held = EvalSet.checked(
        y, point=y + 0.01, groups={"g": np.array(["a"] * 8 + ["b"]), "one": np.arange(9)}
    )
    limit = limit_of("r_squared", "min", 0.0)
    found = judged(held, limit, by=("g",), undecided="fail")
    assert [each.state for each in found.outcomes][1] == "undecided"
    assert math.isnan(found.outcomes[1].value)
    assert found.outcomes[1].reason
    assert found.outcomes[1].failed
    with pytest.raises(InputError, match="r_squared ≥ 0 cannot be judged: "):
        judged(held, limit, by=("one",))


def test_a_column_of_too_many_groups_is_refused() -> None:
    n = 1_001
    held = EvalSet.checked(np.zeros(n), point=np.ones(n), groups={"id": np.arange(n)})
    with pytest.raises(InputError, match="by must name columns of at most 1,000 groups, got 'id'"):
        judged(held, limit_of("mae", "max", 2.0), by=("id",))
    with pytest.raises(InputError, match="by must be one of id, got 'di'; near: id"):
        judged(held, limit_of("mae", "max", 2.0), by=("di",))


def test_weights_of_two_are_rows_twice_in_groups_too() -> None:
    once = covering((45, 60), (50, 100))
    twice = EvalSet.checked(
        once.y,
        once.predictions[0],
        groups={"where": once.groups["where"]},
        weights=np.full(once.n, 2.0),
    )
    limit = limit_of("coverage", "min", 0.8)
    weighted = judged(twice, limit, by=("where",)).outcomes
    repeated = judged(covering((90, 120), (100, 200)), limit, by=("where",)).outcomes
    for one, other in zip(weighted, repeated, strict=True):
        assert (one.lower, one.upper, one.n) == pytest.approx((other.lower, other.upper, other.n))


def test_findings_fail_as_asked_and_dependence_never() -> None:
    """States are those of `examine`; what is no fault of a prediction is told alone."""
    n = 800
    noise = child(7, "findings").normal(size=n + 1)
    held = EvalSet.checked(
        1.2 * (noise[1:] + noise[:-1]) / math.sqrt(2) + 0.15,
        Distribution.normal(np.zeros(n), np.ones(n)),
        time=np.arange(n),
    )
    states = {each.id: each.state for each in examine(held)[0]}
    assert states["dependence"] == "caution"
    assert {"bad", "caution"} <= {state for name, state in states.items() if name != "dependence"}
    for fail_on, fatal in (("bad", {"bad"}), ("caution", {"bad", "caution"})):
        found = check([held], Rules(fail_on=fail_on))
        expected = {n for n, state in states.items() if state in fatal and n != "dependence"}
        assert {each.finding.id for each in found.answers if each.failed} == expected
        assert {each.finding.id: each.state for each in found.answers} == states
    assert check([held], Rules(fail_on="bad", findings=("dependence",))).status == 0


def test_named_findings_are_judged_alone_and_must_be_judged() -> None:
    """A column of time that went missing must not pass for one without drift."""
    held = covering((900, 900), (1_000, 1_000))
    rules = Rules(fail_on="bad", findings=("coverage", "groups"), ignore=("groups",))
    assert [each.finding.id for each in check([held], rules).answers] == ["coverage"]
    with pytest.raises(InputError, match="finding drift cannot be judged: the table has no time"):
        check([held], Rules(fail_on="bad", findings=("drift",)))
    n = 100
    y = child(0, "support").normal(size=n)
    possible = EvalSet.checked(y, Distribution.normal(np.zeros(n), np.ones(n)))
    assert check([possible], Rules(fail_on="bad", findings=("support",))).answers == ()


def test_the_summary_counts() -> None:
    held = covering((45, 60, 20), (50, 100, 21))
    found = judged(held, limit_of("coverage", "min", 0.85), by=("where",), confidence=0.9)
    assert found.summary == (
        "FAIL (exit 1). Limits: 1 failed, 2 inconclusive. Limits are judged with 90 % one-sided "
        "bounds; failures are adjusted for the number of groups. Inconclusive limits pass; "
        "with undecided='fail' they fail."
    )
    whole = judged(held, limit_of("coverage", "min", 0.5), fail_on="bad", findings=("coverage",))
    assert whole.summary == (
        "FAIL (exit 1). Limits: 1 held. Findings: 1 of 1 failed. "
        "Limits are judged with 95 % one-sided bounds."
    )


def test_every_finding_can_be_named_or_is_refused() -> None:
    for name in questions():
        if name in ("congruence", "comparison"):
            with pytest.raises(
                InputError, match=r"findings cannot include .*, which only a report judges"
            ):
                Rules(fail_on="bad", findings=(name,))
        else:
            assert name not in Rules(fail_on="bad", findings=(name,)).left_out
