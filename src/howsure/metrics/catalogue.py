"""The one list of measures, gathered from the topics.

Every entry says what it is, which way is better, from what content it is computed, which laws it
obeys, and its value for a perfect model; the tests hold each entry to what it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from howsure.metrics import (
    association,
    coverage,
    crps,
    dispersion,
    drift,
    point,
    scores,
    selective,
)
from howsure.metrics.adaptivity import view as adaptivity
from howsure.metrics.calibration import shape
from howsure.metrics.calibration import view as calibration
from howsure.metrics.characteristic import view as characteristic
from howsure.metrics.conditional import noise
from howsure.metrics.conditional import view as conditional
from howsure.metrics.congruence import view as congruence
from howsure.metrics.metric import Array, Beside, Metric, Topic

TOPICS: tuple[Topic, ...] = (
    coverage.TOPIC,
    scores.TOPIC,
    crps.TOPIC,
    calibration.TOPIC,
    shape.TOPIC,
    dispersion.TOPIC,
    association.TOPIC,
    selective.TOPIC,
    characteristic.TOPIC,
    drift.TOPIC,
    congruence.TOPIC,
    conditional.TOPIC,
    noise.TOPIC,
    adaptivity.TOPIC,
    point.TOPIC,
)


@cache
def catalogue() -> Mapping[str, Metric]:
    """Every measure by name, in the order in which reports show them.

    Returns
    -------
    mapping of str to Metric

    Examples
    --------
    >>> catalogue()["interval_score"].units
    'y'
    """
    return MappingProxyType({entry.name: entry for topic in TOPICS for entry in topic.entries})


@cache
def arrays() -> Mapping[str, Array]:
    """Every named array, with what makes it."""
    return MappingProxyType(
        {
            name: Array(make=make, per_coverage=name in topic.per_coverage)
            for topic in TOPICS
            for name, make in topic.arrays.items()
        }
    )


def topics(beside: Beside = "") -> tuple[Topic, ...]:
    """The topics that need this much beside y and predictions."""
    return tuple(t for t in TOPICS if t.entries[0].beside == beside)
