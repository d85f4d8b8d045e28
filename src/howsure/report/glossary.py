"""What each number on a page is, from the catalogue."""

from __future__ import annotations

import math
from collections.abc import Iterable

from howsure.core.records import Record
from howsure.metrics.catalogue import catalogue
from howsure.report.document import GlossaryEntry


def glossary(records: Iterable[Record]) -> tuple[GlossaryEntry, ...]:
    """Entries for the metrics that have a number, in the catalogue's order."""
    named = {record.metric for record in records if not math.isnan(record.value)}
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
