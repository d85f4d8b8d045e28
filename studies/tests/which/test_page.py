"""Sentences of the page of `which`: said where the numbers prove them, and dropped elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure_studies.which.answers import correction_lines, shift_lines
from howsure_studies.which.judging import ALL, ARMS, BEST, CONFORMAL, RAW
from howsure_studies.which.page import which_report
from howsure_studies.which.results import WhichResult
from howsure_studies.which.standing import Which
from report.words import check_words
from which.results import many

Results = dict[str, list[WhichResult]]


def _said(results: Results) -> dict[str, str]:
    """The sentences of the first screen, by their question."""
    page = which_report(results)
    return {line.question: line.text for line in page.opening.lines}


def _covering(results: Results, method: str, arm: str, share: float) -> Results:
    """The same with another coverage of one method's arm, which varies a little by table."""
    changed: Results = {}
    for k, (world, own) in enumerate(results.items()):
        changed[world] = []
        for each in own:
            table = each.coverage.copy()
            if each.method == method:
                table[ARMS.index(arm), 2] = share + 0.004 * (k % 3 - 1)
            changed[world].append(replace(each, coverage=table))
    return changed


def test_one_method_that_is_better_than_all_is_named_alone() -> None:
    said = _said(many({"good": 0.0, "fair": 0.2, "poor": 0.4}))
    assert said["Score"] == (
        "Use good: over 12 tables, every other method has a significantly worse score."
    )


def test_a_method_that_was_not_compared_is_not_said_to_be_worse() -> None:
    made = many({"good": 0.0, "fair": 0.2, "poor": 0.4})
    made["table 0"] = [each for each in made["table 0"] if each.method != "poor"]
    assert _said(made)["Score"] == (
        "Use good: over 12 tables, every other method with numbers on all has a significantly "
        "worse score."
    )


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        (
            {"one": 0.0, "two": 0.3, "far": 0.6},
            "With up to 10,000 rows, one leads, as with 1,000 on the same tables.",
        ),
        (
            {"one": 0.0, "two": 0.0, "far": 0.6},
            "On 12 tables with up to 10,000 rows, 1 of 3 methods is significantly worse than the "
            "best; with 1,000 rows, 2 of 3.",
        ),
    ],
)
def test_more_rows_are_said_to_change_nothing_only_where_the_same_methods_lead(
    gaps: dict[str, float], said: str
) -> None:
    made = many({"one": 0.0, "two": 0.3, "far": 0.6})
    noise = 0.02 if gaps["two"] else 0.1
    large = {
        f"{world}, up to 10000": [replace(each, rows=(7000, 2000, 2000)) for each in own]
        for world, own in many(gaps, noise=noise).items()
    }
    page = which_report({**made, **large})
    (part,) = (each for each in page.sections if each.label == "Ranks")
    (line,) = (each for each in part.lines if each.question == "More rows")
    assert line.text == said


def test_methods_that_cannot_be_told_apart_are_named_together() -> None:
    said = _said(many({"one": 0.0, "two": 0.001, "poor": 0.4}, noise=0.1))
    first = "one or two", "two or one"
    assert said["Score"] in [
        f"Use {names}: over 12 tables, no score is significantly worse." for names in first
    ]
    wide = _said(many(dict.fromkeys("abcdef", 0.0), noise=0.1))
    assert wide["Score"].startswith("Use any of 6 methods, such as ")


def test_a_leader_that_covers_too_little_is_told_beside_its_score() -> None:
    good = many({"good": 0.0, "fair": 0.2})
    assert _said(good)["Coverage"] == "Uncorrected, its 90 % intervals cover 90 % on average."
    short = _covering(good, "good", ALL, 0.78)
    assert _said(short)["Coverage"] == "Uncorrected, its 90 % intervals cover 78 % (78 to 78)."
    # between the two nothing is proven, and nothing is said
    unsure = _covering(good, "good", ALL, 0.9)
    for k, own in enumerate(unsure.values()):
        own[1].coverage[ARMS.index(ALL), 2] = 0.6 if k % 2 else 1.0
    assert "Coverage" not in _said(unsure)


def test_a_correction_is_praised_only_where_every_method_is_near_the_nominal() -> None:
    good = many({"good": 0.0, "fair": 0.2})
    (first, *_) = correction_lines(Which(good))
    assert first.text == "Corrected with held-out rows, every method covers 90 % on average."
    off = _covering(good, "fair", CONFORMAL, 0.82)
    (first, *_) = correction_lines(Which(off))
    assert first.text == (
        "Corrected with held-out rows, 1 of 2 methods cover 88 to 92 % on average; all methods "
        "cover 82 to 90 % on average."
    )
    assert first.tone == "caution"


def test_the_price_of_rows_that_correct_is_told_where_it_is_proven() -> None:
    dear = many({"good": 0.0, "fair": 0.2}, **{CONFORMAL: 0.05})
    assert "Price" in {line.question for line in correction_lines(Which(dear))}
    free = many({"good": 0.0, "fair": 0.2})
    assert "Price" not in {line.question for line in correction_lines(Which(free))}


def test_what_advice_bought_is_told_of_rows_that_it_never_saw() -> None:
    made = many({"good": 0.0, "fair": 0.2}, **{BEST: -0.04})
    advised = {w: [replace(r, advised="scale") for r in own] for w, own in made.items()}
    for own in advised.values():
        for each in own:
            each.coverage[ARMS.index(RAW), 2] = 0.8
    (line,) = (x for x in correction_lines(Which(advised)) if x.question == "Advice")
    assert line.text == (
        "Advised in 100 % of fits, corrections lowered the score on new rows by 3.9 % (3.9 to "
        "3.9) and moved coverage 10.0 points closer to nominal."
    )
    assert line.tone == "good"


def test_no_method_keeps_coverage_under_a_shift_is_said_only_where_none_does() -> None:
    made = many({"good": 0.0, "fair": 0.2})
    late = {
        f"{world}, late": [replace(r, shift="late", by="the last year") for r in own]
        for world, own in made.items()
    }
    for arm in (ALL, CONFORMAL):
        for method, share in (("good", 0.6), ("fair", 0.7)):
            late = _covering(late, method, arm, share)
    (line,) = shift_lines(Which({**made, **late}))
    assert line.text == (
        "On late or foreign rows, no method has 90 % coverage: 60 to 70 % uncorrected, 60 to 70 % "
        "corrected."
    )
    kept = _covering(late, "fair", CONFORMAL, 0.9)
    (line,) = shift_lines(Which({**made, **kept}))
    assert line.text == (
        "On late or foreign rows, methods cover 60 to 70 % on average (nominal 90 %); corrected, "
        "60 to 90 %."
    )
    assert shift_lines(Which(made)) == ()


def test_a_star_stands_beside_the_methods_that_lead() -> None:
    page = which_report(many({"one": 0.0, "two": 0.001, "poor": 0.4}, noise=0.1))
    (part,) = page.opening.grids[0].parts
    starred = {row[0].text for row in part.rows if row[1].small.endswith("*")}
    assert starred == {"one", "two"}


def test_the_page_of_two_tables_says_that_they_are_too_few() -> None:
    page = which_report(many({"a": 0.0, "b": 0.1}, tables=2))
    assert page.headline is not None
    assert page.headline.text == "2 tables and 3 methods are too few to choose a method."
    assert page.headline.tone == "undecided"


def test_a_fit_without_numbers_is_told_and_leaves_the_others() -> None:
    made = many({"a": 0.0, "b": 0.1})
    known = {"table": "table 0", "method": "b", "shift": "", "by": "", "seed": 0}
    failed = WhichResult.failed(**known, rows=(7, 3, 2), failure="ValueError: no column")
    made["table 0"] = [*made["table 0"][:2], failed]
    page = which_report(made)
    (tables,) = (part for part in page.sections if part.label == "Tables")
    assert tables.lines[0].text == "b has no numbers on table 0."
    assert "b on table 0: ValueError: no column." in tables.grids[0].notes
    assert page.headline is not None
    assert page.headline.text.startswith("Use a")


def test_every_form_of_the_page_can_be_made(tmp_path: pytest.TempPathFactory) -> None:
    made = many({"good": 0.0, "fair": 0.2})
    page = which_report(made, command="howsure bench report which -o page.html")
    assert page.to_html().count("<h2") >= 5
    assert "| good |" in page.to_markdown()
    assert len({record.metric for record in page.records}) == 10


def test_the_page_keeps_the_rules_of_words() -> None:
    late = many({"good": 0.0, "fair": 0.2}, noise=0.1)
    for own in late.values():
        own[:] = [replace(each, shift="late", by="the last year") for each in own]
    made = many({"good": 0.0, "fair": 0.2}, **{CONFORMAL: 0.05})
    check_words(which_report({**made, **{f"{world}, late": own for world, own in late.items()}}))


def test_nothing_makes_no_page() -> None:
    with pytest.raises(InputError, match="at least one method for each world"):
        which_report({})
    assert np.isnan(
        WhichResult.failed(
            table="a", method="m", shift="", by="", seed=0, rows=(1, 1, 1), failure="x"
        ).ratio(ALL)
    )
