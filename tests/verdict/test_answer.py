"""The answer: every reply, from findings alone, in words that a reader needs to read once."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import howsure
from docs.test_words import wrong_in_finding
from generated import examples
from howsure.core.rng import child
from howsure.engine.finding import Finding, Standing, State
from howsure.report.assessment import Assessment
from howsure.verdict.findings import questions
from howsure.verdict.words import STATES, answer
from verdict.drafts import drafts, finding, possible

ROWS = 1_200


def found(name: str, state: State, clause: str = "", **more: Any) -> Finding:
    made = replace(finding(drafts(name, -1.0)[0], state), clause=clause or f"{name} is so")
    return replace(made, p_adjusted=0.5, **more)


COVER = "the 90 % intervals cover 82.9 %"
NORTH = "coverage is 67.9 % in region=north"


@pytest.mark.parametrize(
    ("findings", "reply", "words"),
    [
        (
            [found("coverage", "bad", COVER), found("groups", "bad", NORTH)],
            "no",
            f"No. The 90 % intervals cover 82.9 %; {NORTH}.",
        ),
        (
            [found("groups", "bad", NORTH), found("coverage", "good", COVER)],
            "partly",
            f"Partly: {COVER}, but {NORTH}.",
        ),
        (
            [found("bias", "bad", "y is 0.31 above"), found("coverage", "undecided", COVER)],
            "partly",
            f"Partly: {COVER}, but y is 0.31 above.",
        ),
        (
            [found("coverage", "good", COVER)],
            "yes",
            f"Yes: no problems found in 1,200 rows; {COVER}.",
        ),
        (
            [found("coverage", "negligible", COVER), found("drift", "caution", "coverage fell")],
            "yes",
            f"Yes: no problems found in 1,200 rows; {COVER}, though possibly coverage fell (not "
            "significant).",
        ),
        (
            [found("coverage", "undecided", COVER, more_rows=900.0)],
            "unknown",
            f"Inconclusive: {COVER} in 1,200 rows; about 900 more should decide.",
        ),
        (
            [found("coverage", "undecided", COVER)],
            "unknown",
            f"Inconclusive: {COVER} in 1,200 rows: too few to decide.",
        ),
        (
            [found("coverage", "undecided", COVER, more_rows=math.inf)],
            "unknown",
            f"Inconclusive: {COVER}, and more rows would not decide.",
        ),
        (
            [
                found("rows", "bad", "predictions look divided by 1,000"),
                found("coverage", "caution", COVER),
            ],
            "unknown",
            "Inconclusive: predictions look divided by 1,000.",
        ),
        (
            [
                found("rows", "caution", "y is −9999 in 20 rows"),
                found("coverage", "good", COVER),
            ],
            "partly",
            f"Partly: {COVER}, but y is −9999 in 20 rows.",
        ),
        (
            [
                found("rows", "caution", "y is 12 and never above"),
                found("coverage", "undecided", COVER, more_rows=900.0),
            ],
            "unknown",
            "Inconclusive: y is 12 and never above.",
        ),
        (
            [
                found("rows", "caution", "y is −9999 in 20 rows"),
                found("spread", "bad", "actual errors are 2 × the predicted spread"),
                found("coverage", "bad", COVER),
            ],
            "no",
            "No. The 90 % intervals cover 82.9 %; y is −9999 in 20 rows; actual errors are 2 × the "
            "predicted spread.",
        ),
        (
            [
                found("rows", "negligible", "1,200 rows hold 300 different ones: y"),
                found("coverage", "good", COVER),
            ],
            "yes",
            f"Yes: no problems found in 1,200 rows; {COVER}, though 1,200 rows hold 300 different "
            "ones: y.",
        ),
        (
            [found("rows", "caution", "y contains whole numbers")],
            "unknown",
            "Inconclusive: y contains whole numbers.",
        ),
        (
            [
                found("drift", "bad", "coverage fell from 91 % to 52 % around May", effect=-0.39),
                found("coverage", "caution", COVER),
            ],
            "no",
            "No. Coverage fell from 91 % to 52 % around May.",
        ),
        (
            [
                found("drift", "bad", "coverage rose from 52 % to 90 % around May", effect=0.38),
                found("coverage", "caution", COVER),
            ],
            "partly",
            f"Partly: {COVER}, but coverage rose from 52 % to 90 % around May.",
        ),
        ([found("bias", "bad", "y is 3 above")], "no", "No. y is 3 above."),
        ([], "unknown", "Inconclusive: the predictions state no uncertainty."),
    ],
)
def test_every_reply(findings: list[Finding], reply: str, words: str) -> None:
    told = answer(findings, ROWS)
    assert (told.reply, told.sentence, told.model) == (reply, words, "")


def test_sets_that_claim_to_cover_nearly_always_are_no_evidence_for_probabilities() -> None:
    """Of two classes a 90 % set is mostly both: 85 % are claimed, and 50 % are right."""
    rng = child(0, "two classes")
    likelier, right = rng.integers(0, 2, 5000), rng.random(5000) < 0.5
    stated = np.where(likelier[:, None] == np.arange(2), 0.85, 0.15)
    y = np.where(right, likelier, 1 - likelier)
    told = howsure.assess(
        y, howsure.LabelSets.likeliest(stated, 0.9), options=howsure.Options(trials=False)
    )
    begins = "Inconclusive: the 90 % sets cover 100 % (expected 100 %), and more rows"
    assert (told.answer.reply, told.answer.sentence[: len(begins)]) == ("unknown", begins)
    found = next(each for each in told.findings if each.id == "coverage")
    assert (found.state, found.more_rows) == ("undecided", math.inf)
    assert "hardly test the probabilities; use a lower coverage" in found.sentence
    lower = howsure.assess(
        y, howsure.LabelSets.likeliest(stated, 0.5), options=howsure.Options(trials=False)
    ).answer
    assert lower.sentence == "No. The 50 % sets cover 49.5 % (expected 85 %)."
    y = np.where(rng.random(5000) < 0.85, likelier, 1 - likelier)
    assert howsure.assess(y, howsure.LabelSets.likeliest(stated, 0.5)).answer.reply == "yes"


def test_an_answer_tells_what_samples_claim() -> None:
    rng = child(0, "claims of samples")
    y = rng.normal(size=2000)
    samples = howsure.Samples(rng.normal(size=(2000, 16)))
    found = howsure.assess(y, samples, coverage=0.8, options=howsure.Options(trials=False))
    claimed = r"the 80 % intervals cover 7\d\.\d % \(expected 76\.5 %\)"
    assert re.search(claimed, found.answer.sentence)
    (sentence,) = (each.sentence for each in found.findings if each.id == "coverage")
    assert sentence.endswith(", expected 76.5 %: in line with the expected coverage.")


def test_an_answer_tells_what_one_quantile_claims() -> None:
    y = child(0, "claim of a quantile").normal(size=2000)
    told = howsure.assess(
        y, np.full((2000, 1), 0.5), levels=0.8, options=howsure.Options(trials=False)
    ).answer.sentence
    assert re.search(
        r"^No\. 6\d.* % of y are at or below the 0\.8 quantile \(expected 80 %\)", told
    )


def ranked(
    values: tuple[float, ...], best: tuple[int, ...], metric: str = "crps"
) -> tuple[Standing, list[str]]:
    names = ["two", "one", "three", "four", "five"][: len(values)]
    size = np.array(values)
    held: Any = SimpleNamespace(
        models=tuple(names),
        values=size,
        best=np.isin(np.arange(len(values)), best),
        difference=float(size[0] - size[1]),
        difference_lower=float(size[0] - size[1]) - 0.06,
        difference_upper=float(size[0] - size[1]) + 0.06,
        score=SimpleNamespace(metric=metric, title="CRPS" if metric == "crps" else "log score"),
    )
    return held, names


@pytest.mark.parametrize(
    ("values", "best", "metric", "words"),
    [
        ((0.72, 1.0), (0,), "crps", "Use two: its CRPS is lower by 28 % (22 to 34)."),
        ((0.95, 1.0), (0,), "crps", "Use two: its CRPS is lower by 5 % (−1 to 11)."),
        ((0.5, 0.7), (0,), "log_score", "Use two: its log score is lower by 0.2 (0.14 to 0.26)."),
        ((-0.3, -0.1), (0,), "crps", "Use two: its CRPS is lower by 0.2 (0.14 to 0.26)."),
        (
            (0.72, 0.73, 0.9),
            (0, 1),
            "crps",
            "two and one do not differ significantly in CRPS; two has the lowest.",
        ),
        (
            (0.72, 0.73, 0.74, 0.75, 0.9),
            (0, 1, 2, 3),
            "crps",
            "4 of 5 models do not differ significantly in CRPS; two has the lowest.",
        ),
    ],
)
def test_of_several_models_one_is_named(
    values: tuple[float, ...], best: tuple[int, ...], metric: str, words: str
) -> None:
    standing, names = ranked(values, best, metric)
    bad = [found("coverage", "bad", "the 90 % intervals cover 84 %")]
    told = answer(bad, ROWS, standing=standing, models=names, recalibrates=True)
    assert (told.reply, told.model) == ("no", "two")
    assert told.choice == words
    own = "No for two. The 90 % intervals cover 84 %."
    assert told.sentence == f"{own} Recalibrate it first."
    alone = answer(bad, ROWS, standing=standing, models=names)
    assert alone.sentence == f"{own} Do not rely on it as it is."
    good = answer([found("coverage", "good", COVER)], ROWS, standing=standing, models=names)
    assert good.choice == words
    assert good.sentence == (
        f"Yes for two: no problems found in {ROWS:,} rows; the 90 % intervals cover 82.9 %."
    )
    assert STATES[good.reply] == "good"


def test_models_without_a_score_in_common_are_said_to_have_none() -> None:
    told = answer([found("coverage", "good", COVER)], ROWS, models=["a", "b"])
    assert told.choice == "The 2 models have no score in common; a is listed first."


ANY = [(name, state) for name in questions() for state in possible(name)]


@examples(400)
@given(some.lists(some.sampled_from(ANY), max_size=5, unique_by=lambda each: each[0]))
def test_no_reply_without_its_evidence(seen: list[tuple[str, State]]) -> None:
    """Yes needs coverage in line and nothing bad; no and partly a fault, no skill or no ends."""
    findings = [found(name, state) for name, state in seen]
    findings.sort(key=lambda each: (each.state != "bad", each.id != "rows"))
    told, states = answer(findings, ROWS), dict(seen)
    bad = [name for name, state in seen if state == "bad"]
    if told.reply == "yes":
        assert not bad
        evidence = [states.get(name) for name in ("coverage", "level", "sureness")]
        assert {"good", "negligible"}.intersection(evidence)
    if told.reply in ("no", "partly"):
        doubts = [states.get(name) for name in ("skill", "ends")]
        assert bad or (told.reply == "partly" and "caution" in doubts)
    if states.get("coverage") == "bad":
        assert told.reply == "no"


def assessed(sd: float, n: int, seed: int = 0, **options: Any) -> Assessment:
    error, known = child(seed, "answer").normal(size=n), child(seed, "known").normal(size=n)
    law = howsure.Distribution.normal(known, np.full(n, sd))
    y = known + error
    return howsure.assess(y, law, **options)


@pytest.mark.parametrize(
    ("sd", "n", "reply"), [(0.7, 1_000, "no"), (1.0, 4_000, "yes"), (1.0, 60, "unknown")]
)
def test_it_is_the_first_line_in_every_form(sd: float, n: int, reply: str) -> None:
    result = assessed(sd, n)
    told = result.answer
    assert told is not None
    assert told.reply == reply
    first = result.lines[0]
    assert (first.text, first.tone) == (told.sentence, STATES[told.reply])
    assert result.verdict.startswith(told.sentence)
    document = result.brief_document()
    assert document.headline == first
    assert document.answer == told
    assert told.sentence.split(";")[0] in result.to_markdown()
    assert not wrong_in_finding(told.sentence)
    for each in re.split(r"(?<=\.)\s+", told.sentence):
        assert len(each.split()) <= 25


def test_the_first_screen_of_several_models_has_the_answer_and_the_step() -> None:
    n = 800
    y, zero = child(2, "answer").normal(size=n), np.zeros(n)
    laws = {
        "off": howsure.Distribution.normal(zero + 1.5, zero + 1.0),
        "narrow": howsure.Distribution.normal(zero + 0.2, zero + 0.7),
    }
    result = howsure.assess(y, laws)
    assert result.answer is not None
    assert result.answer.model == "narrow"
    assert result.answer.choice.startswith("Use narrow: its CRPS is lower by ")
    choice, trust, step = result.brief_document().opening.lines
    assert (choice.text, choice.tone) == (result.answer.choice, "info")
    assert (trust.text, trust.tone) == (result.answer.sentence, "bad")
    assert step.question == "What would help?"


def test_the_first_screen_of_one_model_has_its_costliest_faults() -> None:
    result = assessed(0.7, 1_000)
    _, *faults, step = result.brief_document().opening.lines
    bad = [line for line in result.lines[1:] if line.tone == "bad"]
    assert faults == bad[:3]
    assert len(faults) >= 2
    assert step.question == "What would help?"


def test_a_model_that_knows_nothing_is_partly_to_be_trusted() -> None:
    always = "no better than a climatology baseline (skill "
    y = child(3, "answer").normal(size=4_000)
    law = howsure.Distribution.normal(np.zeros(4_000), np.ones(4_000))
    answer = howsure.assess(y, law, options=howsure.Options(trials=False)).answer
    assert answer is not None
    assert answer.reply == "partly"
    assert answer.sentence.startswith(f"Partly: calibrated, but {always}")
    few = howsure.assess(
        y[:1_300], law.take(np.arange(1_300)), options=howsure.Options(trials=False)
    )
    states = {each.id: each.state for each in few.findings}
    assert (states["coverage"], states["skill"]) == ("good", "caution")
    assert "undecided" in (states["bias"], states["spread"])  # so more cannot be said
    assert few.answer is not None
    assert few.answer.sentence.startswith("Partly: the 90 % intervals cover ")
    assert f"but {always}" in few.answer.sentence


def test_what_more_rows_would_do_is_in_the_finding() -> None:
    coverage = next(each for each in assessed(1.0, 60).findings if each.id == "coverage")
    assert coverage.state == "undecided"
    assert coverage.more_rows > 0
    assert f"about {coverage.more_rows:,.0f} more rows should decide" in coverage.sentence
    decided = next(each for each in assessed(0.5, 1_000).findings if each.id == "coverage")
    assert math.isnan(decided.more_rows)
