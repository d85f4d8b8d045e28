"""The published beside ours: numbers, words in their place, and reasons that many share."""

from __future__ import annotations

import math

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
    assert section.lines[0].text == "1 of 2 numbers part from the published."
    assert "Here ± is a guess" in grid.notes[0]
    assert grid.notes[-1].startswith("1 published number")
    assert table.columns["reason"].tolist() == ["", WHY, "no rows", ""]


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
