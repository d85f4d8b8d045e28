"""The report of the congruence studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from howsure.core.errors import InputError
from howsure.core.records import Curve
from howsure.report.document import Document
from howsure.studies.congruence.bundle import CongruenceStudies
from howsure.studies.congruence.findings import World
from howsure.studies.congruence.panels import colours_of, over_x
from howsure.studies.congruence.parts import (
    opening,
    reliability_of,
    reliability_section,
    task_section,
)
from howsure.studies.congruence.suite import TRUTH
from howsure.studies.congruence.tables import published_table
from howsure.studies.congruence.words import GLOSSARY, headline, title_of
from howsure.studies.engine import study_document


def congruence_report(
    results: Mapping[str, Sequence[CongruenceStudies]],
    *,
    title: str = "",
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A report on the congruence studies, beside what was published.

    Published numbers stand beside those of models called by the key or the title of a head, on
    tasks called discrete wave, wave, AAF, EVA, FG-Net and COCO-People.
    """
    if not results or not all(results.values()):
        raise InputError("results must hold at least one set of studies for each task, got none")
    worlds = [World(name=str(name), studies=tuple(held)) for name, held in results.items()]
    models = list(dict.fromkeys(name for world in worlds for name in world.result.models))
    places = colours_of(models)
    varied = reliability_of(worlds)
    beside = published_table(worlds)
    known = [name for name in models if name != TRUTH]
    return study_document(
        title=title or title_of(len(known), [world.name for world in worlds]),
        headline=headline([one for world in worlds for one in world.found]),
        opening=opening(worlds),
        sections=[
            *(task_section(world, places) for world in worlds),
            *([] if varied is None else [reliability_section(varied, worlds)]),
        ],
        records=(
            *(record for world in worlds for record in world.records),
            *(() if varied is None else varied.records()),
        ),
        tables=(
            *(table for world in worlds for table in world.tables),
            *([] if varied is None else [varied.table()]),
            *([] if beside is None else [beside]),
        ),
        curves=tuple(curve for world in worlds for curve in _curves(world)),
        glossary=GLOSSARY,
        facts={
            "Tasks": ", ".join(world.name for world in worlds),
            "Models": ", ".join(known),
            **(facts or {}),
        },
        command=command,
    )


def _curves(world: World) -> list[Curve]:
    """What the page draws as lines, named by task and set of data."""
    found = []
    for part in world.studies:
        group = f"task={world.name}, seed={part.seed}"
        held = [*over_x(part).values(), *(c for one in part.rejections for c in one.drawn())]
        found += [replace(curve, group=group) for curve in held]
    return found
