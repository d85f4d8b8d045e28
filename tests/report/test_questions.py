"""Sections of the page: what topics bring, in the order of the page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from howsure.core.records import Layout
from howsure.engine.catalogue import own_topics
from howsure.report import questions
from howsure.topics.drift import TOPIC
from howsure.verdict import findings

LABELS = ("Models", "Coverage", "Distribution", "Groups", "Inputs", "Ease", "Rows", "Widths")


def test_every_finding_has_one_section_and_sections_have_their_order() -> None:
    parts = questions._sections_of_topics()
    assert tuple(part.label for part in parts)[: len(LABELS)] == LABELS
    placed = [name for part in parts for name in part.ids]
    assert len(set(placed)) == len(placed)
    assert set(placed) - {"outside"} == set(findings.questions())  # which the monitor tells
    where = {name: part.label for part in parts for name in part.ids}
    assert where["sets"] == where["support"] == "Coverage"
    assert where["region"] == where["congruence"] == "Inputs"


@pytest.mark.parametrize("label", ["Inputs", "Mine"])
def test_topics_of_one_label_share_a_section(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layouts = {
        "here": Layout(order=1, question="Here?", title="Here"),
        "there": Layout(order=2, question="There?", title="There", section="Ease"),
    }
    other = replace(
        TOPIC, findings=(), label=label, title="Mine", layouts=layouts, titles={"mine": "A table"}
    )
    monkeypatch.setattr(questions, "every_topic", lambda: (*own_topics(), other))
    parts = questions._sections_of_topics.__wrapped__()
    assert [part.folded for part in parts] == sorted(part.folded for part in parts)
    (part,) = (part for part in parts if part.label == label)
    assert ("local_pit" in part.figures) == (label == "Inputs")
    assert "here" in part.figures
    assert "there" not in part.figures
    assert "mine" in part.tables
    assert part.title == ("" if label == "Inputs" else "Mine")  # howsure's keep their own
    assert "there" in next(part.figures for part in parts if part.label == "Ease")
