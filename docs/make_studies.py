"""Bring what the docs say of the studies' results up to date: tables, answers and numbers.

    python docs/make_studies.py

Marks in a page say what stands there, of the results that ship with the study:

    <!-- result: shift | Across datasets | Prediction rate by dataset -->
    <!-- end of result -->

holds a table of the study's page: the title of its section (``opening`` for the first screen), and
its own. Further fields, ``parts=`` and ``columns=``, name those that are shown, with semicolons
between; ``notes=no`` leaves out the notes above it. In place of a table's title ``answers`` gives
the section's sentences, ``facts`` those facts of sections (semicolons between) that ``columns=``
names, ``made`` what made the results, and ``printed`` how many numbers of each table of the paper
stand beside ours; ``totals`` and ``reasons`` give that of whole papers, for studies that semicolons
separate, and ``states`` the states of this page's own rows. A number in the text is followed by
where it comes from:

    covers 87.9 %<!--= shift | poverty | Conformal Prediction | test_empirical_coverage@0.9 -->

that is the study, the world, the method and the measure, with slashes between them in a table; a
share is given in percent where the text before the mark is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path

from howsure.core import formats
from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure.core.registry import check_known
from howsure.report.document import Cell, Document, Grid, GridRows, Section
from howsure.report.plain import grid_blocks, sentence
from howsure_studies.engine import Published, number_grid, published, study_of, study_shipped

FOLDER = Path(__file__).parent
BLOCK = re.compile(r"(<!-- result: (.+?) -->\n)(.*?)(<!-- end of result -->)", re.DOTALL)
RESULTS = {"table", "figure"}
REST = ("other scale", "not reached")
NUMBER = re.compile(r"([−\d.,]*\d)( %)?(<!--= (.+?) -->)")


def pages() -> Iterator[Path]:
    """Pages that hold results."""
    for page in sorted(FOLDER.rglob("*.md")):
        if "_build" not in page.parts and re.search(
            "<!-- result: |<!--= ", page.read_text("utf-8")
        ):
            yield page


def current(text: str) -> str:
    """A page's text with what its marks stand for."""
    whole = text
    text = BLOCK.sub(lambda m: f"{m[1]}\n{_block(whole, *_fields(m[2]))}\n\n{m[4]}", text)
    return NUMBER.sub(
        lambda m: f"{_number(m[2] or '', *_fields(m[4].replace(' / ', ' | ')))}{m[3]}", text
    )


def _fields(mark: str) -> list[str]:
    return [field.strip() for field in mark.split(" | ")]


_shipped = cache(study_shipped)


@cache
def _page(study: str) -> Document:
    return study_of(study).page(_shipped(study))


def _block(text: str, study: str, section: str, what: str, *chosen: str) -> str:
    """Sentences of a section, one of its tables, or what made the results."""
    if what == "states":
        return _states(text)
    if what == "totals":
        return _totals(study.split(";"))
    if what == "reasons":
        return _reasons(study.split(";"))
    if what == "printed":
        return _printed(study)
    if what == "made":
        return "; ".join(_shipped(study).facts.values()) + "."
    fields = dict(each.split("=", 1) for each in chosen)
    if what == "facts":
        return "\n".join(filter(None, grid_blocks(_facts(study, section.split(";"), **fields))))
    shown = _section(study, section)
    if what == "answers":
        asked = "" if section == "opening" else section
        return "\n".join(sentence(line, asked) for line in shown.lines)
    for grid in shown.grids:
        if grid.title == what:
            blocks = grid_blocks(_part(grid, **fields))
            return "\n\n".join(filter(None, blocks))
    raise InputError(f"section {section!r} of {study} has tables {[g.title for g in shown.grids]}")


def _states(text: str) -> str:
    """How many rows of a page have each state: results, and what is built to get them."""
    rows = {
        title: [line.split(" | ")[1:3] for line in re.findall(r"^\| (?!Row|:--).+", part, re.M)]
        for title, _, part in (each.partition("\n") for each in text.split("\n## ")[1:])
    }
    lines = []
    for heading, states, of_results in (
        ("Tables and figures", ("reached", "same pattern", *REST), True),
        ("Methods, measures, protocols and data", ("built", *REST), False),
    ):
        lines.append(f"| {heading} | {' | '.join(states)} |\n| :-- |{' --: |' * len(states)}")
        for title, each in rows.items():
            counts = Counter(state for kind, state in each if (kind in RESULTS) == of_results)
            lines.append(f"| {title} | {' | '.join(str(counts[state]) for state in states)} |")
        lines.append("")
    return "\n".join(lines).rstrip()


@dataclass(frozen=True)
class _Compared:
    """The numbers that one paper printed, and what became of them."""

    paper: str
    agree: list[Published]
    differ: list[Published]
    inconclusive: list[Published]
    absent: list[Published]
    why: Counter[str]  # of those that differ

    @property
    def beside(self) -> int:
        return len(self.agree) + len(self.differ) + len(self.inconclusive)


@cache
def _compared(study: str) -> tuple[_Compared, ...]:
    """Numbers of each paper that a study's page compares; several of ours must all agree."""
    (table,) = (table for table in _page(study).tables if table.name == "beside_published")
    names = ("paper", "table", "task", "published_method", "measure", "coverage")
    ours: dict[tuple[str, ...], dict[str, str]] = {}
    columns = (map(str, table.columns[name]) for name in (*names, "differs", "reason"))
    for *key, differs, reason in zip(*columns, strict=True):
        ours.setdefault(tuple(key), {})[differs] = reason
    papers: dict[str, _Compared] = {}
    for row in published(study):
        if row.paper not in {key[0] for key in ours}:
            continue
        paper = papers.setdefault(row.paper, _Compared(row.paper, [], [], [], [], Counter()))
        key = (row.paper, row.table, row.task, row.method, row.measure, str(row.coverage))
        outcome = ours.get(key)
        if outcome is None:
            paper.absent.append(row)
        elif "yes" in outcome:
            paper.differ.append(row)
            paper.why[outcome["yes"]] += 1
        else:
            (paper.agree if "no" in outcome else paper.inconclusive).append(row)
    return tuple(papers.values())


def _totals(studies: list[str]) -> str:
    """Each paper: how many of its numbers stand beside ours, agree and differ."""
    lines = [
        "| Paper | published numbers | beside ours | agree | differ | inconclusive |",
        "| :-- | --: | --: | --: | --: | --: |",
    ]
    for paper in chain.from_iterable(map(_compared, studies)):
        counts = (
            paper.beside + len(paper.absent),
            paper.beside,
            *(len(rows) for rows in (paper.agree, paper.differ, paper.inconclusive)),
        )
        lines.append(f"| {paper.paper} | {' | '.join(f'{count:,}' for count in counts)} |")
    return "\n".join(lines)


def _reasons(studies: list[str]) -> str:
    """Each paper: why its numbers differ from ours, and which stand beside none."""
    lines = []
    for paper in chain.from_iterable(map(_compared, studies)):
        lines.append(f"* **{paper.paper}**")
        lines += [f"  * {count} differ: {why}." for why, count in paper.why.most_common()]
        if paper.absent:
            sizes: dict[int, list[str]] = {}
            for table, count in Counter(row.table for row in paper.absent).items():
                sizes.setdefault(count, []).append(table)
            places = "; ".join(
                f"{count} {'each ' * (len(t) > 1)}of {', '.join(t)}" for count, t in sizes.items()
            )
            lines.append(f"  * {len(paper.absent)} not compared on the page: {places}.")
    return "\n".join(lines)


def _printed(study: str) -> str:
    """Each table and figure that a paper printed: how many of its numbers stand beside ours."""
    lines = [
        "| printed in | numbers | compared with ours | significantly different | inconclusive |",
        "| :-- | --: | --: | --: | --: |",
    ]
    for paper in _compared(study):
        agree, differ, untold, absent = (
            Counter(row.table for row in rows)
            for rows in (paper.agree, paper.differ, paper.inconclusive, paper.absent)
        )
        printed = dict.fromkeys(row.table for row in published(study) if row.paper == paper.paper)
        ours = {table: agree[table] + differ[table] + untold[table] for table in printed}
        lines += [
            f"| {paper.paper}, {table} | {count + absent[table]} | {count} | {differ[table]} "
            f"| {untold[table]} |"
            for table, count in ours.items()
            if count
        ]
        left = [table for table, count in ours.items() if not count]
        if left:
            count = sum(absent[table] for table in left)
            lines.append(
                f"| {formats.counted(len(left), 'place')} more, not run | {count} | 0 | | |"
            )
    return "\n".join(lines)


def _facts(study: str, titles: list[str], columns: str) -> Grid:
    """The facts that are named, of some sections."""
    wanted = columns.split(";")
    rows = [
        [Cell(text=title), *(Cell(text=_section(study, title).facts[name]) for name in wanted)]
        for title in titles
    ]
    return number_grid("Facts", wanted, rows, words=("World",))


def _part(grid: Grid, parts: str = "", columns: str = "", notes: str = "yes") -> Grid:
    """The parts and columns of a table that are named, in its order, or all."""
    titles = [column.title for column in grid.columns]
    wanted = columns.split(";") if columns else titles
    for name in wanted:
        check_known(name, titles, "column")
    kept = [0, *(k for k, title in enumerate(titles) if k and title in wanted)]
    rows = [
        GridRows(title=part.title, rows=tuple(tuple(row[k] for k in kept) for row in part.rows))
        for part in grid.parts
        if not parts or part.title in parts.split(";")
    ]
    blank = Cell(text=formats.MISSING)
    some = [
        replace(part, rows=tuple(row for row in part.rows if set(row[1:]) != {blank}))
        for part in rows
    ]
    return replace(
        grid,
        columns=tuple(grid.columns[k] for k in kept),
        parts=tuple(some),
        notes=grid.notes if notes == "yes" else (),
    )


def _section(study: str, title: str) -> Section:
    page = _page(study)
    if title == "opening":
        return page.opening
    for section in page.sections:
        if section.title == title:
            return section
    raise InputError(f"{study} has sections {[s.title for s in page.sections]}, not {title!r}")


@cache
def _numbers(study: str) -> dict[tuple[str, str, str, float], list[float]]:
    """Numbers by world, method, measure and coverage, one a seed."""
    numbers: dict[tuple[str, str, str, float], list[float]] = {}
    for row in _shipped(study).table.to_pylist():
        at = -1.0 if math.isnan(row["coverage"]) else round(row["coverage"], 6)
        key = row["world"], row["method"], row["metric"], at
        numbers.setdefault(key, []).append(row["value"])
    return numbers


def _number(percent: str, study: str, world: str, method: str, measure: str) -> str:
    """A number, or the mean of it over seeds, as the text has it: in percent or as it is."""
    name, _, coverage = measure.partition("@")
    key = world, method, name, float(coverage or -1.0)
    if key not in _numbers(study):
        raise InputError(f"results of {study} hold no {measure} of {method} on {world}")
    values = _numbers(study)[key]
    mean = sum(values) / len(values)
    return formats.percent(mean) if percent else formats.number(mean, 3)


def main() -> None:
    """Write every page that holds results anew, and say which have changed."""
    for page in pages():
        text = page.read_text("utf-8")
        if (made := current(text)) != text:
            atomic_write(page, made)
            print(f"written: {page}")  # noqa: T201


if __name__ == "__main__":
    main()
