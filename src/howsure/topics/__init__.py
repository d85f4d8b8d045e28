"""What a topic is made of: measures, with the arrays, curves, tables, findings and section.

A package of your own adds a topic by an entry point of the group ``howsure.topics``, which names a
`Topic`. Its measures then stand beside howsure's, with their errors and the values of a perfect
model: in groups, on the page, in JSON, in ``howsure metrics``. In ``examples/own_topic`` one file
does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.optional import exporting

if TYPE_CHECKING:
    from howsure.core.errors import UnanswerableError as UnanswerableError
    from howsure.core.records import Axis as Axis
    from howsure.core.records import Companion as Companion
    from howsure.core.records import Curve as Curve
    from howsure.core.records import Direction as Direction
    from howsure.core.records import Layout as Layout
    from howsure.core.records import Mark as Mark
    from howsure.core.records import Notion as Notion
    from howsure.core.records import ResultTable as ResultTable
    from howsure.core.records import TableLayout as TableLayout
    from howsure.engine.finding import Case as Case
    from howsure.engine.finding import Draft as Draft
    from howsure.engine.finding import Finding as Finding
    from howsure.engine.finding import FindingQuestion as FindingQuestion
    from howsure.engine.finding import Words as Words
    from howsure.engine.metric import Array as Array
    from howsure.engine.metric import Form as Form
    from howsure.engine.metric import Laws as Laws
    from howsure.engine.metric import Metric as Metric
    from howsure.engine.metric import Question as Question
    from howsure.engine.metric import Topic as Topic
    from howsure.stats.estimate import Estimate as Estimate

_HOMES = {
    "core.errors": "UnanswerableError",
    "core.records": "Axis Companion Curve Direction Layout Mark Notion ResultTable TableLayout",
    "engine.finding": "Case Draft Finding FindingQuestion Words",
    "engine.metric": "Array Form Laws Metric Question Topic",
    "stats.estimate": "Estimate",
}

__getattr__, __dir__, __all__ = exporting(__name__, _HOMES, base="howsure")
