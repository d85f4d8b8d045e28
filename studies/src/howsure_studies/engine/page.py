"""What the pages of studies have in common, and the page of one that has none of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from howsure._version import __version__
from howsure.core import formats
from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import ResultTable
from howsure.figures import Figure
from howsure.report.document import (
    TONES,
    Cell,
    Choice,
    Document,
    Grid,
    Option,
    Section,
    Tone,
    VerdictLine,
    form_of,
)
from howsure.report.grids import number_cell
from howsure_studies.engine.comparison import Comparison, side_by_side
from howsure_studies.engine.grids import (
    BESIDE,
    MISSING,
    beside_section,
    estimate_cell,
    number_grid,
)
from howsure_studies.engine.papers import OwnNumber, published
from howsure_studies.engine.standings import Scale, Standings
from howsure_studies.engine.tables import records_of

if TYPE_CHECKING:
    from howsure_studies.engine.study import Study

FIRST_CHOICE: Final = 0.9
"""The nominal coverage that sentences speak of, where no other is asked for."""
SIDE_BY_SIDE_NOTE: Final = (
    "Value ± standard error. *: the best, and methods within 1.96 standard errors of it."
)
"""The note below a table that shows methods side by side."""
_SIDE_BY_SIDE: Final = 5
"""The most methods that stand side by side."""
_MAX_PARTS_ON_PAGE: Final = 60
"""The most tables and figures of single worlds on one page: more take seconds to open."""
MOST_TASKS: Final = 3
"""The most tasks that the first screen shows one by one."""
_TELLING: Final = 6
"""The fewest worlds of which all signs alike are rarer than 5 %."""
_SCORED: Final[Mapping[Scale, str]] = {
    "ratio": "Score: the logarithm of the value minus its mean over methods.",
    "share": "Score: distance of the share from its target.",
    "rank": "Score: the rank on a world.",
}


def study_document(
    *,
    headline: VerdictLine | None,
    opening: Section,
    sections: Iterable[Section],
    facts: Mapping[str, str],
    beside: tuple[Section, ResultTable] | None = None,
    tables: Iterable[ResultTable] = (),
    **rest: Any,
) -> Document:
    """The document of a study; sentences of a section are told with its title.

    What was published, of `beside_section`, comes last.
    """
    first = () if headline is None else (headline,)
    shown = _with_anchors((*sections, *(beside or ())[:1]))
    lines = (
        replace(line, question=f"{section.title}, {line.question}")
        for section in shown
        for line in section.lines
    )
    return Document(
        opening=replace(opening, lines=(*first, *opening.lines)),
        sections=shown,
        lines=(*first, *opening.lines, *lines),
        tables=(*tables, *(beside or ())[1:]),
        facts={**facts, "howsure": __version__},
        **rest,
    )


def save_pages(page: Document, path: Path, worlds: Collection[str]) -> tuple[Path, ...]:
    """Write a study's page; of many figures, each world's go to a second file beside it.

    Other forms than HTML are for programs, or searched as one text: they are written whole.
    """
    single = [section for section in page.sections if section.title in worlds]
    parts = sum(
        len(section.grids) + sum(len(choice.options) for choice in section.choices)
        for section in single
    )
    if form_of(path) != ".html" or parts <= _MAX_PARTS_ON_PAGE:
        page.save(path)
        return (path,)
    beside = path.with_name(f"{path.stem}-each.html")
    rest = tuple(section for section in page.sections if section.title not in worlds)
    replace(
        page, sections=rest, lines=(), facts={**page.facts, "Each world": f"in {beside.name}"}
    ).save(path)
    Document(
        title=f"{page.title} Each world",
        opening=Section(title=""),
        sections=tuple(single),
        facts={**page.facts, "All worlds": f"in {path.name}"},
        command=page.command,
    ).save(beside)
    return path, beside


def coverage_of(studied: Iterable[float], asked: float | None) -> float:
    """The nominal coverage that is asked for, else the highest up to `FIRST_CHOICE`."""
    known = sorted(set(studied))
    if asked is None:
        return max((c for c in known if c <= FIRST_CHOICE + 1e-9), default=known[0])
    level = check_fraction(asked, "coverage")
    near = min(known, key=lambda c: abs(c - level))
    if abs(near - level) > 1e-9:
        levels = ", ".join(f"{c:g}" for c in known)
        raise InputError(f"coverage must be one that was studied ({levels}), got {level:g}")
    return near


def choice_of(label: str, options: Iterable[tuple[str, Figure | None]]) -> tuple[Choice, ...]:
    """A choice of the figures that there are; none where there is no figure."""
    drawn = tuple(Option(label=name, figures=(figure,)) for name, figure in options if figure)
    return (Choice(label=label, options=drawn),) if drawn else ()


def overview(
    title: str,
    rows: Mapping[str, Mapping[str, Cell]],
    states: Mapping[Tone, str],
    *notes: str,
) -> Grid:
    """A row a method: its state on each of a few tasks, else on how many it has each state."""
    tasks = dict.fromkeys(task for cells in rows.values() for task in cells)
    tones = [cell.tone for cells in rows.values() for cell in cells.values()]
    marked = [(tone, words) for tone, words in states.items() if tone in tones]
    many = len(tasks) > MOST_TASKS
    shown = []
    for name, cells in rows.items():
        own = [cell.tone for cell in cells.values()]
        counts = [own.count(tone) for tone, _ in marked]
        row = (
            [Cell(text=f"{count} of {len(own)}", key=str(count)) for count in counts]
            if many
            else [cells.get(task, MISSING) for task in tasks]
        )
        shown.append((Cell(text=name), *row))
    titles = [words for _, words in marked] if many else tasks
    marks = "; ".join(f"{TONES[tone][0]} {words.lower()}" for tone, words in marked)
    return number_grid(title, titles, shown, (*notes, f"{marks}." if marks and not many else ""))


def named(names: Sequence[str], noun: str) -> str:
    """The only name, or how many there are."""
    return names[0] if len(names) == 1 else formats.counted(len(names), noun)


def _with_anchors(sections: Iterable[Section]) -> tuple[Section, ...]:
    """The sections, with numbers where two would have one anchor, or one would have none."""
    seen = {Section(title="").anchor}
    shown = []
    for number, section in enumerate(sections, 1):
        if section.anchor in seen:
            section = replace(section, label=f"{section.title} {number}")
        seen.add(section.anchor)
        shown.append(section)
    return tuple(shown)


def side_by_side_page(
    study: Study, table: pa.Table, *, facts: Mapping[str, str], command: str = ""
) -> Document:
    """The page of records alone: the leading measure on all worlds, then a section a world."""
    worlds, methods = (table[name].unique().to_pylist() for name in ("world", "method"))
    comparisons = side_by_side(table, study.headline)
    columns = {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}
    records = records_of(table)
    metrics = dict.fromkeys(record.metric for record in records)
    return study_document(
        title=f"{study.name}: {named(methods, 'method')} on {named(worlds, 'world')}",
        headline=_leading_line(comparisons),
        opening=_leading(comparisons),
        sections=[
            Section(title=grid.title, grids=(replace(grid, title="Methods side by side"),))
            for grid in side_by_side_grids(table, study.headline)
        ],
        beside=beside_section(
            (
                OwnNumber(task=r.group.removeprefix("world="), method=r.model, record=r)
                for r in records
            ),
            published(study),
            {metric: metric.replace("_", " ") for metric in metrics},
            "",
        ),
        records=records,
        tables=(ResultTable(name="results", columns=columns, notes=SIDE_BY_SIDE_NOTE),),
        facts={"Worlds": ", ".join(worlds), "Methods": ", ".join(methods), **facts},
        command=command,
    )


def _leading_line(comparisons: Sequence[Comparison]) -> VerdictLine:
    """Which method is best by the leading measure, and on how many worlds it is shown to be."""
    rows = [row for row in comparisons if row.metric == comparisons[0].metric and row.best]
    several = [row for row in rows if len(row.cells) > 1]
    if not several:
        return VerdictLine(text="This study reports numbers without a verdict.")
    wins = Counter(name for row in several for name in row.best)
    alone = Counter(row.best[0] for row in several if len(row.best) == 1)
    (first, count), *_ = wins.most_common()
    of = formats.counted(len(several), "comparison")
    text = (
        f"By {rows[0].metric.replace('_', ' ')}, {first} is best or not significantly worse "
        f"than the best in {count} of {of}; it is the only one in {alone[first]}."
    )
    return VerdictLine(text=text)


def _leading(comparisons: Sequence[Comparison]) -> Section:
    """The leading measure of every method on every world."""
    rows = [row for row in comparisons if row.metric == comparisons[0].metric]
    if len({row.world for row in rows}) < 2:  # the world's own section says the same
        return Section(title="")
    methods = dict.fromkeys(name for row in rows for name in row.cells)
    at = [f"{row.world} {_at(row)}".strip() for row in rows]
    cells = [(Cell(text=name), *(_cell(row, name) for row in rows)) for name in methods]
    title = rows[0].metric.replace("_", " ").capitalize()
    return Section(title="", grids=(number_grid(title, at, cells, (SIDE_BY_SIDE_NOTE,)),))


def side_by_side_grids(table: pa.Table, metrics: Sequence[str]) -> list[Grid]:
    """A table a world: methods side by side, or one below the other where they are many."""
    grids = []
    comparisons = side_by_side(table, metrics)
    for world in dict.fromkeys(row.world for row in comparisons):
        rows = [row for row in comparisons if row.world == world]
        methods = list(dict.fromkeys(name for row in rows for name in row.cells))
        made = (
            _below(rows, methods) if len(methods) > _SIDE_BY_SIDE else _grid_of_rows(rows, methods)
        )
        grids.append(replace(made, title=world))
    return grids


def over_worlds(table: pa.Table, metrics: Iterable[str]) -> list[Standings]:
    """Methods over the worlds of a study's table, by each of these measures that permits it.

    A measure of several nominal coverages is taken at that of `coverage_of`.
    """
    levels: dict[str, set[float]] = {}
    for row in table.select(["metric", "coverage"]).to_pylist() if table.num_rows else ():
        levels.setdefault(row["metric"], set()).add(row["coverage"])
    found = []
    for metric in (name for name in metrics if name in levels):
        known = [level for level in levels[metric] if not math.isnan(level)]
        with suppress(UnanswerableError):
            at = coverage_of(known, None) if known else math.nan
            found.append(Standings.of(table, metric, at))
    return found


def standings_grid(found: Standings) -> Grid:
    """A row a method: its mean rank, the interval of its rank, and how far it is from the first."""
    title = f"Methods over {len(found.worlds)} worlds, by {found.metric.replace('_', ' ')}"
    if not math.isnan(found.coverage):
        title += f" at {formats.level(found.coverage)}"
    gap = {"ratio": "Above the first, %", "share": "Above the first, points"}.get(found.scale)
    rows = []
    for i, name in enumerate(found.methods):
        low, high = int(found.lower[i]), int(found.upper[i])
        cells = [
            Cell(text=name),
            number_cell(float(found.mean_rank[i])),
            Cell(text=f"{low}–{high}" if low < high else f"{low}", key=str(low)),
            Cell(text="yes" if found.best[i] else "no"),
        ]
        if gap is not None:
            ends = (found.gap[i], found.gap_lower[i], found.gap_upper[i])
            cells.append(_gap_cell(*(100.0 * _grown(found.scale, float(end)) for end in ends)))
        rows.append(tuple(cells))
    return number_grid(
        title,
        ("Mean rank", "Rank, 95 %", "May be best", *filter(None, (gap,))),
        rows,
        (
            f"{_SCORED[found.scale]} Rows are ordered by its mean. Ranks are by the true mean; "
            "their intervals are simultaneous, with 95 % confidence.",
            "yes: not significantly worse than the best (95 % confidence set). These methods "
            "cannot be ordered.",
            "Each interval in the last column has 95 % confidence by itself." if gap else "",
            "Worlds are treated as independent; if they share data, intervals are too narrow.",
            f"A world's score is the mean over its parts, {found.parts} in all."
            if found.parts > len(found.worlds)
            else "",
            "Methods without a number on some of these worlds: "
            f"{formats.listed(found.left_out, 5)}."
            if found.left_out
            else "",
            "So few worlds cannot separate ranks." if len(found.worlds) < _TELLING else "",
        ),
    )


def _grown(scale: Scale, difference: float) -> float:
    """A difference of scores as a share: of logarithms, by how much more."""
    return math.expm1(difference) if scale == "ratio" else difference


def _gap_cell(value: float, lower: float, upper: float) -> Cell:
    """A gap with its interval; the first has none to itself."""
    return number_cell(value, f"({formats.interval(lower, upper)})" if lower < upper else "")


def with_standings(page: Document, study: Study, table: pa.Table) -> Document:
    """A study's page with methods over all worlds by its leading measure, where it permits."""
    found = over_worlds(table, study.headline[:1])
    if not found:
        return page
    section = Section(title="Methods over all worlds", grids=tuple(map(standings_grid, found)))
    last = len(page.sections) - any(table.name == BESIDE for table in page.tables)
    return replace(
        page,
        sections=(*page.sections[:last], section, *page.sections[last:]),
        tables=(*page.tables, *(each.table() for each in found)),
    )


def _grid_of_rows(rows: Sequence[Comparison], methods: Sequence[str]) -> Grid:
    """A row a measure; what is perfect stands there where it is known of one."""
    known = any(not math.isnan(row.target) for row in rows)
    cells = [
        (
            Cell(text=row.metric, small=_at(row)),
            *(_cell(row, name) for name in methods),
            *((number_cell(row.target),) if known else ()),
        )
        for row in rows
    ]
    return number_grid("", (*methods, *(("perfect",) if known else ())), cells, words=("Measure",))


def _below(rows: Sequence[Comparison], methods: Sequence[str]) -> Grid:
    """A row a method."""
    several = len({row.coverage for row in rows}) > 1
    titles = [
        f"{row.metric.replace('_', ' ')} {_at(row) if several else ''}".strip() for row in rows
    ]
    cells = [(Cell(text=name), *(_cell(row, name) for row in rows)) for name in methods]
    if any(not math.isnan(row.target) for row in rows):
        cells.append((Cell(text="perfect"), *(number_cell(row.target) for row in rows)))
    return number_grid("", titles, cells)


def _at(row: Comparison) -> str:
    return "" if math.isnan(row.coverage) else f"at {formats.level(row.coverage)}"


def _cell(row: Comparison, name: str) -> Cell:
    """A number with its error; marked where it is among the best."""
    if name not in row.cells:
        return MISSING
    cell = estimate_cell(row.cells[name].value, row.cells[name].standard_error)
    best = name in row.best and len(row.cells) > 1
    return replace(cell, small=" ".join(filter(None, (cell.small, "*" if best else ""))))
