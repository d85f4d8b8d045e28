"""The published beside ours: numbers, words in their place, and reasons that many share."""

from __future__ import annotations

import math

import pytest

from howsure.core.records import Record
from howsure_studies.engine import OwnNumber, Published, beside_section

WHY = "other data"


def printed(task: str, value: float, note: str = "") -> Published:
    names = {"paper": "A paper", "table": "table 1", "method": "net", "measure": "mae"}
    return Published(task=task, value=value, note=note, **names)


def own(task: str, value: float, error: float = 0.1, reason: str = "") -> OwnNumber:
    record = Record(metric="mae", value=value, standard_error=error, model="mine", reason=reason)
    return OwnNumber(task=task, method="net", record=record)


def test_each_published_number_stands_beside_ours() -> None:
    ours = [own("a", 1.0), own("b", 2.0), own("c", math.nan, reason="no rows"), own("d", 4.0)]
    theirs = [
        *(printed("a", 1.1), printed("b", 1.0), printed("c", 1.0)),
        *(printed("d", math.nan, "small"), printed("e", 1.0)),
    ]
    beside = beside_section(ours, theirs, {"mae": "MAE"}, WHY, error="a guess")
    assert beside is not None
    section, table = beside
    (grid,) = section.grids
    rows = {part.title: [cell.text for cell in part.rows[0]] for part in grid.parts}
    assert rows == {
        "a: MAE": ["mine", "1.00", "1.1", "−0.10", ""],
        "b: MAE": ["mine", "2.00", "1", "1.00", "(1)"],
        "c: MAE": ["mine", "–", "1", "–", "(2)"],
        "d: MAE": ["mine", "4.00", "small", "–", ""],
    }
    assert section.lines[0].text == "1 of 2 numbers differs significantly from the published ones."
    assert "Here, ± is a guess" in grid.notes[0]
    assert grid.notes[-1].startswith("1 published number")
    assert table.columns["reason"].tolist() == ["", WHY, "no rows", ""]
    assert table.columns["differs"].tolist() == ["no", "yes", "unknown", "unknown"]


@pytest.mark.parametrize(
    ("ours", "sentence"),
    [
        (
            [own("a", 1.0), own("b", 1.0, math.nan)],
            "1 of 1 number differs significantly from the published ones; inconclusive for 1 "
            "number "
            "here without a known error.",
        ),
        (
            [own("a", 1.0, math.nan), own("b", 1.0, math.nan)],
            "Inconclusive: 2 numbers here without a known error.",
        ),
        ([own("a", math.nan)], "No number here can be compared with a published one."),
    ],
)
def test_no_difference_is_counted_where_none_can_be_told(
    ours: list[OwnNumber], sentence: str
) -> None:
    theirs = [printed("a", 2.0), printed("b", 2.0)]
    beside = beside_section(ours, theirs, {"mae": "MAE"}, WHY)
    assert beside is not None
    assert beside[0].lines[0].text == sentence
    assert set(beside[1].columns["reason"]) == ({WHY} if len(ours) > 1 else {""})


def test_seeds_are_averaged_and_shares_are_in_percent() -> None:
    at = {"model": "mine", "coverage": 0.9}
    ours = [
        OwnNumber(task="a", method="Net", record=Record(metric="share", value=value, **at))
        for value in (0.8, 0.9, 1.0)
    ]
    names = {"paper": "A paper", "table": "table 1", "task": "a", "method": "net"}
    theirs = [Published(measure="share", value=0.7, sd=0.01, coverage=0.9, **names)]
    beside = beside_section(ours, theirs, {"share": "Share"}, WHY, shares={"share"})
    assert beside is not None
    section, table = beside
    (part,) = section.grids[0].parts
    assert part.title == "a: Share in %, nominal 90 %"
    assert [(cell.text, cell.small) for cell in part.rows[0][1:3]] == [
        ("90.0", "± 5.8"),
        ("70.0", "± 1.0"),
    ]
    assert table.columns["standard_error"][0] == pytest.approx(0.1 / 3**0.5)
    assert table.columns["published_method"].tolist() == ["net"]


def test_a_reason_stands_once_below_the_table() -> None:
    tasks = ["a", "b", "c"]
    beside = beside_section(
        [own(task, 2.0) for task in tasks],
        [printed(task, 1.0, note) for task, note in zip(tasks, ("", "", "a slip"), strict=True)],
        {"mae": "MAE"},
        WHY,
    )
    assert beside is not None
    (grid,) = beside[0].grids
    assert [part.rows[0][-1].text for part in grid.parts] == ["(1)", "(1)", "(2)"]
    assert list(grid.notes[1:]) == [f"(1) {WHY}.", "(2) a slip."]
    assert beside[1].columns["reason"].tolist() == [WHY, WHY, "a slip"]
