"""The leaderboard of methods under shift: one page, Markdown, JSON or CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, final

from howsure._version import __version__
from howsure.core import formats
from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.core.records import Curve, Table
from howsure.protocols.shift_result import ShiftResult
from howsure.protocols.shift_views import average_errors, leaderboard
from howsure.report.document import GlossaryEntry
from howsure.report.parted import PartedReport
from howsure.report.shift_findings import Finding, published_of
from howsure.report.shift_panels import curves_of
from howsure.report.shift_parts import across_part, leader_part, task_part
from howsure.report.shift_words import GLOSSARY, headline

_FIRST_CHOICE: Final = 0.9


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftPage(PartedReport):
    """What tests under shift found, in every form; `shift_report` makes it.

    Attributes
    ----------
    coverage : float
        The nominal coverage that the leaderboard, sentences and figures speak of; tables of
        single datasets hold all.
    tables : tuple of Table
        ``shift_leaderboard``, every test of every method beside published numbers, and
        ``shift_average_errors``.
    curves : tuple of Curve
        ``degree_of_shift``, of datasets that have degrees.
    """

    glossary: ClassVar[tuple[GlossaryEntry, ...]] = GLOSSARY

    coverage: float
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()

    def data(self) -> tuple[tuple[Table, ...], tuple[Curve, ...]]:
        """Tables and curves, for the forms that programs read."""
        return self.tables, self.curves


def shift_report(
    results: Mapping[str, Sequence[ShiftResult]],
    *,
    title: str = "Coverage under shift",
    coverage: float | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> ShiftPage:
    """The leaderboard of methods under shift, beside what was published.

    Published numbers stand beside those of methods that are called by the key or the title of
    `howsure.protocols.shift_methods`, on datasets called as in
    `howsure.protocols.shift_published`.
    """
    findings = [Finding.of(str(world), one) for world, held in results.items() for one in held]
    if not findings:
        raise InputError("results must hold at least one result, got none")
    wanted = _coverage([found.result for found in findings], coverage)
    _check_once([found.result for found in findings])
    spoken = [found for found in findings if found.result.coverage == wanted]
    places = {name: place for place, name in enumerate(dict.fromkeys(f.method for f in findings))}
    by_task: dict[str, list[Finding]] = {}
    for found in findings:
        by_task.setdefault(found.task, []).append(found)
    across = across_part(spoken, places)
    parts = [leader_part(spoken), *([across] if across is not None else [])]
    parts += [task_part(held, wanted) for held in by_task.values()]
    stated = {
        "Datasets": ", ".join(by_task),
        "Methods": ", ".join(places),
        "Nominal coverage shown": f"{formats.level(wanted)}",
        "Calibration rule": ", ".join(dict.fromkeys(found.result.rule for found in findings)),
        "howsure": __version__,
    }
    printed = [one for found in spoken for one in published_of(found)]
    own = [found.result for found in spoken]
    return ShiftPage(
        title=title,
        coverage=wanted,
        headline=headline(spoken),
        parts=tuple(parts),
        tables=(leaderboard(own, printed, every_test=True), average_errors(own)),
        curves=curves_of(spoken),
        facts={**stated, **(facts or {})},
        command=command,
    )


def write_report(
    results: Mapping[str, Sequence[ShiftResult]],
    path: str | os.PathLike[str],
    *,
    title: str = "Coverage under shift",
) -> None:
    """Write the leaderboard of methods under shift: a page, Markdown, JSON or CSV by its ending."""
    shift_report(results, title=title).save(path)


def _coverage(results: Sequence[ShiftResult], asked: float | None) -> float:
    levels = sorted({result.coverage for result in results})
    if asked is None:
        return _FIRST_CHOICE if _FIRST_CHOICE in levels else levels[-1]
    check_fraction(asked, "coverage")
    if asked not in levels:
        known = ", ".join(f"{level:g}" for level in levels)
        raise InputError(f"coverage must be one that was tested ({known}), got {asked:g}")
    return asked


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
