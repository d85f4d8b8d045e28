"""The report of the congruence studies: one page, Markdown, JSON or CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

from howsure._version import __version__
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.protocols.congruence import TRUTH
from howsure.protocols.congruence_bundle import CongruenceStudies
from howsure.report.congruence_findings import World
from howsure.report.congruence_panels import colours_of, over_x
from howsure.report.congruence_parts import reliability_of, reliability_part, task_part
from howsure.report.congruence_tables import published_table
from howsure.report.congruence_words import GLOSSARY, headline
from howsure.report.document import GlossaryEntry
from howsure.report.parted import PartedReport


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CongruencePage(PartedReport):
    """What the congruence studies found, in every form; `congruence_report` makes it.

    Attributes
    ----------
    tables : tuple of Table
        Those of the studies, and ``congruence_published``.
    curves : tuple of Curve
        CCE over x where x is one number, and rejection curves.
    """

    glossary: ClassVar[tuple[GlossaryEntry, ...]] = GLOSSARY

    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()

    def data(self) -> tuple[tuple[Table, ...], tuple[Curve, ...]]:
        """Tables and curves, for the forms that programs read."""
        return self.tables, self.curves


def congruence_report(
    results: Mapping[str, Sequence[CongruenceStudies]],
    *,
    title: str = "Conditional congruence",
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> CongruencePage:
    """A report on the congruence studies, beside what was published.

    Published numbers stand beside those of models called by the key or the title of a head, on
    tasks called discrete wave, wave, AAF, EVA, FG-Net and COCO-People.
    """
    if not results or not all(results.values()):
        raise InputError("results must hold at least one set of studies for each task, got none")
    worlds = [World(name=str(name), studies=tuple(held)) for name, held in results.items()]
    models = list(dict.fromkeys(name for world in worlds for name in world.result.models))
    places = colours_of(models)
    parts = [task_part(world, places) for world in worlds]
    varied = reliability_of(worlds)
    if varied is not None:
        parts.append(reliability_part(varied, worlds))
    beside = published_table(worlds)
    stated = {
        "Tasks": ", ".join(world.name for world in worlds),
        "Models": ", ".join(name for name in models if name != TRUTH),
        "howsure": __version__,
    }
    return CongruencePage(
        title=title,
        headline=headline([one for world in worlds for one in world.found]),
        parts=tuple(parts),
        tables=(
            *(table for world in worlds for table in world.tables),
            *([] if varied is None else [varied.table()]),
            *([] if beside is None else [beside]),
        ),
        curves=tuple(curve for world in worlds for curve in _curves(world)),
        facts={**stated, **(facts or {})},
        command=command,
    )


def write_report(
    results: Mapping[str, Sequence[CongruenceStudies]],
    path: str | os.PathLike[str],
    *,
    title: str = "Conditional congruence",
) -> None:
    """Write a report on the congruence studies: a page, Markdown, JSON or CSV by its ending."""
    congruence_report(results, title=title).save(path)


def _curves(world: World) -> list[Curve]:
    """What the page draws as lines, named by task and set of data."""
    found = []
    for part in world.studies:
        group = f"task={world.name}, seed={part.seed}"
        held = [*over_x(part).values(), *(c for one in part.rejections for c in one.drawn())]
        found += [replace(curve, group=group) for curve in held]
    return found
