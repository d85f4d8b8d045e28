"""The report of a test of coverage at every point: one page, Markdown, JSON or CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, final

import numpy as np

from howsure._version import __version__
from howsure.core import formats
from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.figures.text import distinct
from howsure.protocols.pointwise_result import PointwiseResult
from howsure.protocols.pointwise_views import curves, points_table, trials_table
from howsure.report.document import GlossaryEntry, form_of
from howsure.report.parted import PartedReport
from howsure.report.pointwise_sections import world_part
from howsure.report.pointwise_words import GLOSSARY, headline

_FIRST_CHOICE: Final = 0.9


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointwiseReport(PartedReport):
    """What tests of coverage at every point found, in every form; `pointwise_report` makes it.

    Attributes
    ----------
    coverage : float
        The nominal coverage that sentences and figures speak of; tables hold all.
    results : mapping of str to tuple of PointwiseResult
        What it is made from.
    """

    glossary: ClassVar[tuple[GlossaryEntry, ...]] = GLOSSARY

    coverage: float
    results: Mapping[str, tuple[PointwiseResult, ...]]

    def data(self) -> tuple[tuple[Table, ...], tuple[Curve, ...]]:
        """Each test point's and each trial's numbers, and curves of every result."""
        held = [result for results in self.results.values() for result in results]
        tables: list[Table] = []
        for result in held:
            tables += [points_table(result, self.coverage), trials_table(result, self.coverage)]
        return tuple(tables), tuple(curve for result in held for curve in curves(result))


def pointwise_report(
    results: Mapping[str, Sequence[PointwiseResult]],
    *,
    title: str = "Coverage at every point",
    coverage: float | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> PointwiseReport:
    """A report on methods tested in worlds."""
    held = _by_test_set(results)
    given = {part: (names or {}).get(name) for part, (name, _) in held.items()}
    parted = {part: found for part, (_, found) in held.items()}
    wanted = _coverage([r for found in parted.values() for r in found], coverage)
    parts = tuple(
        world_part(part, found, wanted, names_of(given[part], found[0].x.shape[1]))
        for part, found in parted.items()
    )
    findings = [found for part in parts for found in part.findings]
    stated = {
        "Worlds": ", ".join(parted),
        "Methods": ", ".join(dict.fromkeys(r.method for f in parted.values() for r in f)),
        "Nominal coverage shown": f"{formats.level(wanted)}",
        "howsure": __version__,
    }
    return PointwiseReport(
        title=title,
        coverage=wanted,
        headline=headline(findings, len(results)),
        parts=parts,
        results=parted,
        facts={**stated, **(facts or {})},
        command=command,
    )


def write_report(
    results: Mapping[str, Sequence[PointwiseResult]],
    path: str | os.PathLike[str],
    *,
    title: str = "Coverage at every point",
) -> None:
    """Write a report on methods tested in worlds: a page, Markdown, JSON or CSV by its ending."""
    form_of(path)
    pointwise_report(results, title=title).save(path)


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


def _coverage(results: Sequence[PointwiseResult], wanted: float | None) -> float:
    shared = [
        c
        for c in results[0].coverages
        if all(min(abs(c - other) for other in result.coverages) < 1e-9 for result in results)
    ]
    if not shared:
        raise InputError("results must share a nominal coverage, got none that all answered")
    if wanted is None:
        below = [c for c in shared if c <= _FIRST_CHOICE + 1e-9]
        return max(below) if below else min(shared)
    level = check_fraction(wanted, "coverage")
    near = min(shared, key=lambda c: abs(c - level))
    if abs(near - level) > 1e-9:
        told = ", ".join(f"{c:g}" for c in shared)
        raise InputError(f"coverage must be one that all methods answered ({told}), got {level:g}")
    return near


def names_of(given: Sequence[str] | None, columns: int) -> tuple[str, ...] | None:
    """Names of columns, if there are any of the right number."""
    return tuple(given) if given is not None and len(given) == columns else None
