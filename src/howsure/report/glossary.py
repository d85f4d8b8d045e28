"""What each number on a page is, from the catalogue."""

from __future__ import annotations

from collections.abc import Iterable

from howsure.core.records import Record
from howsure.metrics.catalogue import catalogue
from howsure.report.content import GlossaryEntry


def glossary(records: Iterable[Record]) -> tuple[GlossaryEntry, ...]:
    """Entries for the metrics among the records, in the catalogue's order."""
    named = {record.metric for record in records}
    return tuple(
        GlossaryEntry(
            name=metric.name,
            title=metric.title,
            meaning=metric.meaning,
            formula=metric.formula,
            source=metric.source,
            direction=metric.direction.value,
            notion=metric.notion.value,
            units=metric.units,
            question=metric.question.value,
        )
        for metric in catalogue().values()
        if metric.name in named
    )
