"""What a topic is made of: measures, with the arrays, curves, tables and section that go with them.

A package of your own adds a topic by an entry point of the group ``howsure.topics``, which names a
`Topic`. Its measures then stand beside howsure's, with their errors and the values of a perfect
model: in groups, on the page, in JSON, in ``howsure metrics``. In ``examples/own_topic`` one file
does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from howsure.core.lazy import exporting

if TYPE_CHECKING:
    from howsure.core.records import Curve as Curve
    from howsure.core.records import Direction as Direction
    from howsure.core.records import Notion as Notion
    from howsure.core.records import Table as Table
    from howsure.figures.figure import Axis as Axis
    from howsure.figures.figure import Mark as Mark
    from howsure.figures.layouts import Layout as Layout
    from howsure.metrics.metric import Form as Form
    from howsure.metrics.metric import Laws as Laws
    from howsure.metrics.metric import Metric as Metric
    from howsure.metrics.metric import Question as Question
    from howsure.metrics.metric import Topic as Topic
    from howsure.stats.estimate import Estimate as Estimate

_HOMES = {
    "core.records": "Curve Direction Notion Table",
    "figures.figure": "Axis Mark",
    "figures.layouts": "Layout",
    "metrics.metric": "Form Laws Metric Question Topic",
    "stats.estimate": "Estimate",
}

__getattr__, __dir__, __all__ = exporting("howsure", _HOMES)
