"""The report of a test of coverage at every point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.figures.text import distinct
from howsure.report.document import Document
from howsure.studies.engine import coverage_of, study_document
from howsure.studies.pointwise.result import PointwiseResult
from howsure.studies.pointwise.sections import World, opening
from howsure.studies.pointwise.views import curves, points_table, trials_table
from howsure.studies.pointwise.words import GLOSSARY, headline, title_of


def pointwise_report(
    results: Mapping[str, Sequence[PointwiseResult]],
    *,
    title: str = "",
    coverage: float | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Document:
    """A report on methods tested in worlds."""
    held = _by_test_set(results)
    whole = [result for _, found in held.values() for result in found]
    wanted = coverage_of(_shared_coverages(whole), coverage)
    worlds = [
        World.of(part, found, wanted, (names or {}).get(name))
        for part, (name, found) in held.items()
    ]
    stated = {
        "Worlds": ", ".join(held),
        "Methods": ", ".join(dict.fromkeys(result.method for result in whole)),
        "Nominal coverage shown": formats.level(wanted),
    }
    return study_document(
        title=title or title_of(results),
        headline=headline(
            [found for world in worlds for found in world.held["picf"]], len(results)
        ),
        opening=opening(worlds, wanted),
        sections=[world.section() for world in worlds],
        records=tuple(r for world in worlds for held in world.numbers for r in held),
        tables=tuple(make(one, wanted) for one in whole for make in (points_table, trials_table)),
        curves=tuple(curve for result in whole for curve in curves(result)),
        glossary=GLOSSARY,
        facts={**stated, **(facts or {})},
        command=command,
    )


def _by_test_set(
    results: Mapping[str, Sequence[PointwiseResult]],
) -> dict[str, tuple[str, tuple[PointwiseResult, ...]]]:
    """Results that share a test set, by what to call them, with the world's name."""
    if not results or not all(results.values()):
        raise InputError("results must hold at least one result for each world, got none")
    held: dict[str, tuple[str, tuple[PointwiseResult, ...]]] = {}
    for name, found in results.items():
        seeds: dict[int, list[PointwiseResult]] = {}
        for result in found:
            seeds.setdefault(result.seed, []).append(result)
        for seed, shared in seeds.items():
            first = shared[0]
            for other in shared[1:]:
                if not np.array_equal(other.y, first.y):
                    raise InputError(
                        f"methods of world {name!r} must share its test set where their seed is "
                        f"one, but {first.method} and {other.method} do not"
                    )
            labels = distinct([result.method for result in shared])
            pairs = zip(shared, labels, strict=True)
            part = f"{name}, seed {seed}" if len(seeds) > 1 else str(name)
            held[part] = (str(name), tuple(replace(r, method=label) for r, label in pairs))
    return held


def _shared_coverages(results: Sequence[PointwiseResult]) -> list[float]:
    shared = [
        c
        for c in results[0].coverages
        if all(min(abs(c - other) for other in result.coverages) < 1e-9 for result in results)
    ]
    if not shared:
        raise InputError("results must share a nominal coverage, got none that all answered")
    return shared
