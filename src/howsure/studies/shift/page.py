"""The leaderboard of methods under shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.report.document import Document
from howsure.studies.engine import coverage_of, study_document
from howsure.studies.shift.findings import Finding, published_of
from howsure.studies.shift.panels import curves_of
from howsure.studies.shift.parts import across_section, opening, task_section
from howsure.studies.shift.result import ShiftResult
from howsure.studies.shift.views import average_errors, leaderboard
from howsure.studies.shift.words import GLOSSARY, headline, title_of


def shift_report(
    results: Mapping[str, Sequence[ShiftResult]],
    *,
    title: str = "",
    coverage: float | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """The leaderboard of methods under shift, beside what was published.

    Published numbers stand beside those of methods that are called by the key or the title of
    `howsure.studies.shift.methods`, on datasets called as in
    `howsure.studies.shift.published`.
    """
    findings = [Finding.of(str(world), one) for world, held in results.items() for one in held]
    if not findings:
        raise InputError("results must hold at least one result, got none")
    wanted = coverage_of((found.result.coverage for found in findings), coverage)
    _check_once([found.result for found in findings])
    spoken = [found for found in findings if found.result.coverage == wanted]
    places = {name: place for place, name in enumerate(dict.fromkeys(f.method for f in findings))}
    by_task: dict[str, list[Finding]] = {}
    for found in findings:
        by_task.setdefault(found.task, []).append(found)
    across = [across_section(spoken, places)] if len(by_task) > 1 else []
    stated = {
        "Datasets": ", ".join(by_task),
        "Methods": ", ".join(places),
        "Nominal coverage shown": formats.level(wanted),
        "Calibration rule": ", ".join(dict.fromkeys(found.result.rule for found in findings)),
    }
    printed = [one for found in spoken for one in published_of(found)]
    own = [found.result for found in spoken]
    return study_document(
        title=title or title_of(len(places), list(by_task)),
        headline=headline(spoken),
        opening=opening(spoken, places),
        sections=[*across, *(task_section(held, wanted) for held in by_task.values())],
        records=tuple(r for held in by_task.values() for f in held for r in f.records.values()),
        tables=(leaderboard(own, printed, every_test=True), average_errors(own)),
        curves=curves_of(spoken),
        glossary=GLOSSARY,
        facts={**stated, **(facts or {})},
        command=command,
    )


def _check_once(results: Sequence[ShiftResult]) -> None:
    seen = set()
    for result in results:
        key = (result.task, result.method, result.coverage)
        if key in seen:
            raise InputError(
                f"results must hold {result.method} on {result.task} once at each coverage, got "
                "it twice"
            )
        seen.add(key)
