"""The leaderboard of methods under shift: one page, Markdown, JSON or CSV."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, final

from howsure._version import __version__
from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.core.records import Curve, Record, Table
from howsure.protocols.shift_result import ShiftResult
from howsure.protocols.shift_views import average_errors, leaderboard
from howsure.report import plain
from howsure.report.content import PageContent, VerdictLine
from howsure.report.forms import grid_markdown, save
from howsure.report.page import formats
from howsure.report.page.pointwise_render import render_pointwise
from howsure.report.page.pointwise_sections import WorldPart
from howsure.report.shift_findings import Finding, published_of
from howsure.report.shift_panels import curves_of
from howsure.report.shift_parts import across_part, leader_part, task_part
from howsure.report.shift_words import GLOSSARY, headline

_FIRST_CHOICE: Final = 0.9


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShiftPage:
    """What tests under shift found, in every form; `shift_report` makes it.

    Attributes
    ----------
    title : str
        A heading.
    coverage : float
        The nominal coverage that the leaderboard, sentences and figures speak of; tables of
        single datasets hold all.
    headline : VerdictLine, optional
        The main message.
    parts : tuple of WorldPart
        The leaderboard, figures across datasets, then one part a dataset.
    tables : tuple of Table
        ``shift_leaderboard``, every test of every method beside published numbers, and
        ``shift_average_errors``.
    curves : tuple of Curve
        ``degree_of_shift``, of datasets that have degrees.
    facts : mapping of str to str
        What else is known.
    command : str
        What makes the report again.
    """

    title: str
    coverage: float
    headline: VerdictLine | None
    parts: tuple[WorldPart, ...]
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""

    @property
    def records(self) -> tuple[Record, ...]:
        """Every measure of every test, by dataset, method and coverage."""
        return tuple(record for part in self.parts for record in part.records)

    def content(self) -> PageContent:
        """Everything, without its form."""
        first = () if self.headline is None else (self.headline,)
        rest = (
            replace(line, question=f"{part.name}, {line.question}")
            for part in self.parts
            for line in part.lines
        )
        return PageContent(
            title=self.title,
            verdict=(*first, *rest),
            records=self.records,
            curves=self.curves,
            tables=self.tables,
            glossary=GLOSSARY,
            command=self.command,
            facts=self.facts,
        )

    def to_html(self) -> str:
        """One self-contained page that works offline."""
        shell = PageContent(
            title=self.title, glossary=GLOSSARY, command=self.command, facts=self.facts
        )
        return render_pointwise(shell, self.headline, self.parts)

    def to_markdown(self) -> str:
        """Sentences and tables as Markdown."""
        blocks = [f"# {plain.escape(self.title)}"]
        if self.headline is not None:
            blocks.append(f"**{plain.escape(self.headline.text)}**")
        for part in self.parts:
            if not part.lines and not part.grids:
                continue
            blocks.append(f"## {plain.escape(part.name)}")
            told = (
                f"- **{plain.escape(line.question)}**: {plain.escape(line.text)}"
                for line in part.lines
            )
            blocks.append("\n".join(told))
            for grid in part.grids:
                blocks += [f"### {plain.escape(grid.title)}", *map(plain.escape, grid.notes)]
                blocks.append(grid_markdown(grid))
        return formats.clean("\n\n".join(filter(None, blocks))) + "\n"

    def to_json(self) -> str:
        """Every record, table and curve as JSON."""
        return plain.to_json(self.content())

    def to_csv(self) -> str:
        """Every record as a line of CSV."""
        return plain.to_csv(self.content())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the form that the ending names: .html, .md, .json or .csv, whole or not at all.

        Raises
        ------
        InputError
            If the ending is another, or the file cannot be written.
        """
        save(self, path)


def shift_report(
    results: Mapping[str, Sequence[ShiftResult]],
    *,
    title: str = "Coverage under shift",
    coverage: float | None = None,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> ShiftPage:
    """The leaderboard of methods under shift, beside what was published.

    Parameters
    ----------
    results : mapping of str to sequence of ShiftResult
        By dataset; methods and datasets may be missing.
    title : str
        A heading.
    coverage : float, optional
        The nominal coverage that the leaderboard speaks of; 0.9 if there, else the greatest.
    facts : mapping of str to str, optional
        What else to state.
    command : str
        What makes the report again.

    Returns
    -------
    ShiftPage

    Raises
    ------
    InputError
        If there is no result, none has the coverage, or a method meets a task twice at one
        coverage.

    Notes
    -----
    Published numbers stand beside those of methods that are called by the key or the title of
    `howsure.protocols.shift_methods`, on datasets called as in
    `howsure.protocols.shift_published`.

    Examples
    --------
    >>> import numpy as np
    >>> from howsure.data import ShiftTask
    >>> from howsure.protocols.shift_task import run_shift
    >>> x = np.linspace(0.0, 1.0, 200)
    >>> table = {"x": x, "y": np.where(x < 0.5, x, 1.0) + 0.01 * np.sin(99 * x), "at": x}
    >>> task = ShiftTask.from_table(table, "y", split_by="at", up_to=0.5)
    >>> page = shift_report({"step": [run_shift(task, "linear_t")]})
    >>> page.headline.text[:50]
    'At a nominal 90 %, linear t does not keep its cove'
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
        "Nominal coverage shown": f"{100 * wanted:.4g} %",
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
    """Write the leaderboard of methods under shift: a page, Markdown, JSON or CSV by its ending.

    Raises
    ------
    InputError
        As `shift_report`; also if the ending is another, or the file cannot be written.
    """
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
