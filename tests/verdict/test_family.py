"""One error rate, a tolerance, states and their order, against their definitions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.engine.finding import Draft, Finding
from howsure.predictions import Distribution, EvalSet
from howsure.stats.binomial import holm
from howsure.verdict import family
from howsure.verdict.copies import OTHERS, RowFault
from howsure.verdict.family import TOLERANCE, judge, ordered
from howsure.verdict.findings import questions
from verdict.drafts import drafts

HELD = EvalSet.checked([0.0, 1.0], Distribution.normal([0.0, 0.0], 1.0))


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> partial[dict[str, Finding]]:
    """`judge`, of drafts as given."""

    def run(given: Sequence[Draft], **options: object) -> dict[str, Finding]:
        return verdict(monkeypatch, given, **options)

    return partial(run)


def verdict(
    monkeypatch: pytest.MonkeyPatch, given: Sequence[Draft], **options: object
) -> dict[str, Finding]:
    def found(_: object, ignore: Sequence[str] = ()) -> tuple[list[Draft], dict[str, str]]:
        return [each for each in given if each.id not in ignore], {}

    monkeypatch.setattr(family, "drafts_of", found)
    findings, _ = judge((), HELD, **options)  # type: ignore[arg-type]
    return {each.id: each for each in findings}


def draft(name: str, effect: float, p: float, *, half: float = 0.001, **more: object) -> Draft:
    each = drafts(name, math.copysign(1.0, effect), p)[0]
    return replace(each, effect=effect, lower=effect - half, upper=effect + half, **more)


def test_p_values_are_adjusted_by_holm(judged: partial[dict[str, Finding]]) -> None:
    """By hand: .001·4, then .02·3, .03·2 raised to the one before, .2."""
    given = [
        draft("coverage", 0.05, 0.02),
        draft("bias", 0.5, 0.001),
        draft("spread", 0.5, 0.2),
        draft("skew", 0.05, 0.03),
        draft("tails", 0.05, math.nan),
    ]
    made = judged(given)
    adjusted = [made[each.id].p_adjusted for each in given]
    np.testing.assert_allclose(adjusted, [0.06, 0.004, 0.2, 0.06, math.nan])
    np.testing.assert_allclose(adjusted, holm([each.p for each in given]))


def test_a_comparison_is_no_part_of_the_family(judged: partial[dict[str, Finding]]) -> None:
    """It is never bad, costs the others nothing, and is not adjusted."""
    made = judged([draft("coverage", 0.05, 0.03), draft("comparison", 0.5, 0.001, good=True)])
    assert made["coverage"].p_adjusted == 0.03
    assert made["coverage"].state == "bad"
    assert made["comparison"].p_adjusted == 0.001
    assert made["comparison"].state == "good"


CASES = [
    # effect, half its interval, p, what it is; tolerance .01, margin .03
    (0.0101, 0.001, 0.0499, "bad"),
    (0.0101, 0.001, 0.0501, "good"),
    (0.01, 0.001, 0.0001, "negligible"),
    (-0.01, 0.1, 0.0001, "negligible"),
    (-0.0101, 0.1, 0.0001, "bad"),
    (0.028, 0.001, 0.06, "good"),
    (0.02, 0.0101, 0.06, "undecided"),
    (-0.02, 0.0101, 0.06, "undecided"),
    (0.0, 0.03, 1.0, "good"),
    (0.0, 0.0301, 1.0, "undecided"),
    (0.0, math.nan, 1.0, "undecided"),
    (0.5, 0.6, 0.06, "undecided"),
    (0.5, 0.6, math.nan, "undecided"),
]


@pytest.mark.parametrize(("effect", "half", "p", "state"), CASES)
def test_states_of_a_single_test(
    judged: partial[dict[str, Finding]], effect: float, half: float, p: float, state: str
) -> None:
    assert judged([draft("coverage", effect, p, half=half)])["coverage"].state == state


def test_what_is_suggested_alone_and_not_proven_jointly(
    judged: partial[dict[str, Finding]],
) -> None:
    others = [draft("bias", 0.0, 0.9), draft("spread", 0.0, 0.8)]
    made = judged([draft("coverage", 0.05, 0.02), *others])
    assert made["coverage"].state == "caution"
    small = judged([draft("coverage", 0.005, 0.02), *others])
    assert small["coverage"].state == "good"  # within the tolerance, and its interval in the margin


def test_tolerances_grow_together(judged: partial[dict[str, Finding]]) -> None:
    given = [draft("coverage", 0.0299, 1e-6), draft("spread", 0.05, 1e-6)]
    assert {each.state for each in judged(given).values()} == {"bad"}
    wide = judged(given, tolerance=0.03)
    assert {each.state for each in wide.values()} == {"negligible"}
    assert wide["coverage"].tolerance == pytest.approx(0.03)
    assert wide["spread"].tolerance == pytest.approx(0.06)
    assert judged(given, tolerance=0.029)["coverage"].state == "bad"
    loose = judged([draft("coverage", 0.05, 0.5, half=0.02)], tolerance=0.08)
    assert loose["coverage"].state == "good"  # the margin is never below the tolerance


def test_what_is_ignored_costs_nothing(judged: partial[dict[str, Finding]]) -> None:
    given = [draft("coverage", 0.05, 0.03), draft("width", 0.5, 0.04)]
    assert judged(given)["coverage"].state == "caution"
    made = judged(given, ignore={"width"})
    assert set(made) == {"coverage"}
    assert made["coverage"].state == "bad"


def test_bad_comes_first_by_its_size(judged: partial[dict[str, Finding]]) -> None:
    given = [
        draft("coverage", 0.02, 1e-9),
        draft("bias", 0.5, 1e-9, within={}),
        draft("support", 0.001, 0.0),
        draft("groups", 0.0, 0.9),
        draft("one_sided", 0.0, 0.9),
    ]
    assert list(judged(given)) == ["support", "bias", "coverage", "one_sided", "groups"]


def test_bad_comes_first_by_its_cost_where_mends_were_tried(
    judged: partial[dict[str, Finding]],
) -> None:
    given = [draft("coverage", 0.02, 1e-9), draft("bias", 0.5, 1e-9), draft("groups", 0.0, 0.9)]
    found = tuple(judged(given).values())
    assert [each.id for each in found] == ["bias", "coverage", "groups"]
    told = ordered(found, {"coverage": 0.12, "bias": 0.01})
    assert [(each.id, each.cost) for each in told[:2]] == [("coverage", 0.12), ("bias", 0.01)]
    assert math.isnan(told[2].cost)


def test_what_another_finding_explains_is_part_of_it(
    judged: partial[dict[str, Finding]],
) -> None:
    """t3 errors of unit sd believed normal: tails .026, spread −.29 (20 for each unit)."""
    tails = draft("tails", 0.026, 1e-9)
    spread = draft("spread", -0.29, 1e-9, within={"skew": 3.0, "tails": 20.0})
    made = judged([spread, tails])
    assert made["tails"].state == "bad"
    assert made["spread"].state == "caution"
    assert "part of the tails" in made["spread"].sentence
    more = judged([replace(spread, effect=-0.6), tails])
    assert more["spread"].state == "bad"  # more than the tails explain
    alone = judged([spread, replace(tails, p=0.5)])
    assert alone["spread"].state == "bad"


def test_tails_that_are_part_of_the_widths_pass_on_what_they_explain(
    judged: partial[dict[str, Finding]],
) -> None:
    made = judged(
        [
            draft("spread", -0.29, 1e-9, within={"tails": 20.0}),
            draft("tails", 0.026, 1e-9, within={"width": math.inf}),
            draft("width", -0.5, 1e-9),
        ]
    )
    assert [each.state for each in made.values()].count("bad") == 1
    assert made["width"].state == "bad"
    for name in ("tails", "spread"):
        assert "how errors depend on widths" in made[name].sentence


def of_rows(**explains: float) -> Draft:
    held = RowFault(name="swapped", rows=30.0, share=0.03, explains=explains)
    return Draft(id="rows", effect=0.03, caution=True, facts={"found": (held,), "bad": False})


def test_rows_explain_what_their_share_can_move(judged: partial[dict[str, Finding]]) -> None:
    """0.03 · 2 of coverage, by the nearer end of its interval; more than that stays bad."""
    for effect, half, state in (
        (-0.05, 0.001, "caution"),
        (-0.07, 0.001, "bad"),
        (-0.07, 0.02, "caution"),
    ):
        made = judged([of_rows(coverage=2.0), draft("coverage", effect, 1e-9, half=half)])
        assert made["coverage"].state == state
        assert list(made) == ["rows", "coverage"]
    others = of_rows(**{OTHERS: math.inf, "bias": 1e-3})
    made = judged([others, draft("coverage", -0.5, 1e-9), draft("bias", -0.5, 1e-9)])
    assert (made["coverage"].state, made["bias"].state) == ("caution", "bad")
    alone = judged([of_rows(), draft("coverage", -0.05, 1e-9)])
    assert alone["coverage"].state == "bad"
    assert alone["rows"].state == "caution"
    free = judged([of_rows(bias=9.0), draft("coverage", -0.05, 0.03)])
    assert free["coverage"].p_adjusted == 0.03  # rows share no error rate


@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1.0, math.nan])
def test_tolerances_are_shares(tolerance: float) -> None:
    with pytest.raises(InputError, match="tolerance"):
        judge((), HELD, tolerance=tolerance)


def test_ids_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"ignore must be among rows, .*, got 'widths'"):
        judge((), HELD, ignore=["width", "widths"])


SIZES = st.one_of(st.sampled_from([0.0, 0.01, -0.01, 0.02, 0.03]), st.floats(-2.0, 2.0))
SHOWN = st.fixed_dictionaries(
    {
        "effect": SIZES,
        "half": st.one_of(st.just(math.nan), st.floats(0.0, 1.0)),
        "p": st.one_of(st.just(math.nan), st.sampled_from([0.0, 0.05, 1.0]), st.floats(0, 1)),
        "good": st.sampled_from([None, None, True, False]),
    }
)
NAMES = [name for name, question in questions().items() if question.kind == "model"]


@examples(150)
@given(
    shown=st.dictionaries(st.sampled_from(NAMES), SHOWN, max_size=8),
    tolerance=st.sampled_from([0.002, TOLERANCE, 0.05]),
)
def test_never_a_fault_without_proof_and_never_well_without_evidence(
    shown: Mapping[str, dict], tolerance: float
) -> None:
    given = [draft(name, **about) for name, about in shown.items()]
    with pytest.MonkeyPatch.context() as patch:
        made = verdict(patch, given, tolerance=tolerance)
    assert set(made) == set(shown)
    bad = {name for name, each in made.items() if each.state == "bad"}
    for each in given:
        got, question = made[each.id], questions()[each.id]
        allowed = question.tolerance * tolerance / TOLERANCE
        proven = got.p_adjusted < 0.05
        assert got.tolerance == pytest.approx(allowed)
        if got.state == "bad":
            assert proven
            assert abs(each.effect) > allowed
        elif got.state == "negligible":
            assert proven
            assert abs(each.effect) <= allowed
        elif got.state == "caution":
            assert each.p < 0.05
            assert abs(each.effect) > allowed
            assert not proven or bad
        elif got.state == "good":
            margin = max(question.margin, allowed)
            inside = each.lower >= -margin and each.upper <= margin
            assert not proven
            assert inside if each.good is None else each.good
            assert not (each.p < 0.05 and abs(each.effect) > allowed)
    if any(each.p_adjusted < 0.05 and abs(each.effect) > each.tolerance for each in made.values()):
        assert bad  # an explanation never leaves nothing red
