"""The one list of measures, gathered from the topics, those of other packages too.

Every entry says what it is, which way is better, from what content it is computed, which laws it
obeys, and its value for a perfect model; the tests hold each entry to what it says.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

from howsure.core.errors import HowsureWarning, InputError
from howsure.core.registry import PluginError, Registry, nearest
from howsure.engine.metric import Array, Beside, Metric, Sums, Topic

_OWN = (
    "coverage",
    "scores",
    "crps",
    "skill",
    "baseline",
    "decomposition.view",
    "tails",
    "tail_calibration",
    "backtests",
    "calibration.view",
    "calibration.shape",
    "dispersion",
    "association",
    "selective",
    "characteristic.view",
    "drift",
    "lead_time",
    "many_series",
    "congruence.view",
    "conditional.view",
    "conditional.noise",
    "adaptivity.view",
    "point",
    "classes.view",
)
"""Modules of howsure's own topics, in the order in which reports show their measures."""

BROUGHT = Registry("topic", "howsure.topics")
"""Topics of other packages, by entry points of the group ``howsure.topics``."""


@cache
def own_topics() -> tuple[Topic, ...]:
    """howsure's own topics; they import what reads this catalogue, so they come when asked for."""
    return tuple(import_module(f"howsure.topics.{name}").TOPIC for name in _OWN)


def every_topic() -> tuple[Topic, ...]:
    """howsure's own topics, then those of other packages."""
    return (*own_topics(), *brought())


@cache
def brought() -> tuple[Topic, ...]:
    """Topics of other packages; one that cannot be read, or takes a name, is left out and told."""
    topics_brought: list[Topic] = []
    for name in BROUGHT.names():
        try:
            topic = BROUGHT.get(name)
            _check_topic(name, topic, (*own_topics(), *topics_brought))
        except (PluginError, InputError) as error:
            warnings.warn(f"{error}; it is left out", HowsureWarning, stacklevel=2)
            continue
        topics_brought.append(topic)
    return tuple(topics_brought)


def _check_topic(name: str, topic: object, before: Iterable[Topic]) -> None:
    """Refuse what is no topic, and one that calls something as another topic does."""
    if not isinstance(topic, Topic) or not topic.entries:
        raise InputError(f"topic {name!r} must be a Topic with entries, got {type(topic).__name__}")
    for what, own, others in (
        ("measure", {e.name for e in topic.entries}, {e.name for t in before for e in t.entries}),
        ("array", {a.name for a in topic.arrays}, {a.name for t in before for a in t.arrays}),
        ("finding", {f.id for f in topic.findings}, {f.id for t in before for f in t.findings}),
    ):
        if own & others:
            raise InputError(
                f"topic {name!r} must name things of its own, got the {what} "
                f"{min(own & others)!r}, which another topic has"
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
    return MappingProxyType(
        {entry.name: entry for topic in every_topic() for entry in topic.entries}
    )


def metric_named(name: object, argument: str = "metric") -> Metric:
    """The measure of this name, title or synonym, in any case and with any marks between words.

    `argument` is what the caller calls it; the message for an unknown name tells the nearest.

    Examples
    --------
    >>> metric_named("PICP").name, metric_named("Mean-Width").name
    ('empirical_coverage', 'mean_width')
    >>> metric_named("miscalibrated area")
    Traceback (most recent call last):
    ...
    howsure.core.errors.InputError: metric must be a measure that howsure metrics lists,
    got 'miscalibrated area'; did you mean miscalibration_area?
    """
    spellings = _spellings()
    wanted = _plain(str(name))
    if wanted in spellings:
        return catalogue()[spellings[wanted]]
    near = nearest(wanted, spellings, cutoff=0.7)
    names = tuple(dict.fromkeys(spellings[spelling] for spelling in near))
    hint = f"; did you mean {' or '.join(names)}?" if names else ""
    raise InputError(f"{argument} must be a measure that howsure metrics lists, got {name!r}{hint}")


def asked_for(names: Iterable[str], argument: str) -> tuple[str, ...]:
    """Slow measures that a user asks for: names or synonyms, or ``group_statistics``.

    Examples
    --------
    >>> asked_for(["CCE"], "--also")
    ('mean_cce',)
    """
    return tuple(
        name if name == "group_statistics" else metric_named(name, argument).name for name in names
    )


@cache
def _spellings() -> Mapping[str, str]:
    """Names of measures by every spelling, in plain letters; a name goes before a synonym."""
    names = {_plain(name): name for name in catalogue()}
    for name, entry in catalogue().items():
        for spelling in entry.spellings:
            names.setdefault(_plain(spelling), name)
    return MappingProxyType(names)


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


@cache
def arrays() -> Mapping[str, Array]:
    """Every array by name."""
    return MappingProxyType(
        {array.name: array for topic in every_topic() for array in topic.arrays}
    )


@cache
def sorting_arrays() -> frozenset[str]:
    """The arrays for which all rows are sorted."""
    return frozenset(array.name for array in arrays().values() if array.sorts)


@cache
def from_sums() -> Mapping[str, Sums]:
    """How statistics follow from sums over rows, by the name of the measure."""
    return MappingProxyType(
        {name: sums for topic in every_topic() for name, sums in topic.sums.items()}
    )


@cache
def key_measures() -> tuple[str, ...]:
    """The measures that a report shows first, in the order in which they are looked for."""
    return _in_order({name: entry.key_number for name, entry in catalogue().items()})


@cache
def comparing_scores() -> tuple[str, ...]:
    """The scores by the first of which models are compared in one figure."""
    return _in_order({name: entry.compares for name, entry in catalogue().items()})


def _in_order(places: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(sorted(filter(places.get, places), key=places.__getitem__))


def topics(beside: Beside = "") -> tuple[Topic, ...]:
    """The topics that need this much beside y and predictions."""
    return tuple(t for t in every_topic() if t.entries[0].beside == beside)
