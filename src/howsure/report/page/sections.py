"""The content of a report, cut into what a page shows: plain text in frozen shapes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from howsure.core import formats
from howsure.core.faults import attempt
from howsure.core.records import Direction, Record, Table
from howsure.figures.tables import worst_first
from howsure.figures.text import headed
from howsure.report.content import TONES, GlossaryEntry, PageContent
from howsure.report.overview import LEGEND, OVERVIEW

ROWS_LIMIT = 200
"""The most rows of one table on a page."""
TABLE_TITLES = {
    OVERVIEW: "Models and questions",
    "groups": "Coverage by group",
    "worst_rows": "The worst rows",
    "key_numbers": "Key numbers",
    "mends": "What was tried",
    "models": "Differences between models",
    "characteristic_points": "Operating points",
    "cce_map": "Congruence at every row",
    "cce_rows": "Rows of the highest and the lowest CCE",
    "cce_tree": "Which inputs go with the error",
    "cce_images": "Images of the highest and the lowest CCE",
    "monitor": "Rows scored without labels",
    "outside": "Rows outside the reference",
}
COLUMN_TITLES = {
    "p_value": "p-value",
    "adjusted_p_value": "Adjusted p-value",
    "cce": "CCE",
    "cce_when_grown": "CCE where the tree was grown",
}
UNSHOWN = {"thumbnail"}
"""Columns that only a page can show, in its own way."""
INPUT_TABLES = {"worst_rows": {}, "cce_rows": {"cce": "CCE"}}
"""Tables of rows of the input, whose columns keep their names, with those that are ours."""
DIRECTIONS = {
    Direction.LOWER: ("↓", "lower"),
    Direction.HIGHER: ("↑", "higher"),
    Direction.TARGET: ("◎", "near\N{NO-BREAK SPACE}ideal"),
    Direction.NONE: ("·", "descriptive"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell: what it shows, what it sorts by, and what stands small beside it."""

    text: str
    key: str = ""
    small: str = ""
    link: str = ""


def number_cell(value: float, small: str = "", digits: int = 3) -> Cell:
    """A number with so many significant digits."""
    return Cell(text=formats.number(value, digits), small=small, key=sort_key(value))


def share_cell(value: float, small: str = "") -> Cell:
    """A share in percent."""
    return Cell(text=formats.share(value), small=small, key=sort_key(value))


def sort_key(value: object) -> str:
    """What a cell sorts by: a number's shortest exact form, nothing for the rest."""
    held = formats.plain(value)
    if isinstance(held, bool) or not isinstance(held, int | float) or not math.isfinite(held):
        return ""
    return repr(held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column: its title and whether it holds numbers."""

    title: str
    numeric: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows that belong together; they are sorted among themselves."""

    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table as a page shows it, in one part or several with a heading each."""

    title: str
    columns: tuple[Column, ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many rows it has."""
        return sum(len(part.rows) for part in self.parts)


def record_grid(content: PageContent) -> Grid | None:
    """The numbers of all rows, one part a question (a notion where no question is known)."""
    whole, _ = split_records(content.records)
    if not whole:
        return None
    entries = {entry.name: entry for entry in content.glossary}
    places = {name: place for place, name in enumerate(entries)}
    parts: dict[str, list[Record]] = {}
    for record in sorted(whole, key=lambda record: places.get(record.metric, len(places))):
        parts.setdefault(_heading(record, entries), []).append(record)
    return _record_grid("", parts, entries)


def group_grid(content: PageContent, *, limit: int = ROWS_LIMIT) -> Grid | None:
    """The numbers of groups in one grid, those farthest from their target first."""
    _, grouped = split_records(content.records)
    if not grouped:
        return None
    ordered = sorted(grouped, key=_departure, reverse=True)
    notes = []
    if len(ordered) > limit:
        notes.append(
            f"The {limit} of {len(ordered):,} that lie farthest from their target, in "
            "standard errors. The JSON and CSV forms of this report hold all."
        )
    entries = {entry.name: entry for entry in content.glossary}
    return _record_grid(
        "Every measure by group", {"": ordered[:limit]}, entries, groups=True, notes=notes
    )


def split_records(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Answered records: those of all rows, and those of groups."""
    answered = [record for record in records if not math.isnan(record.value)]
    general = {record.metric for record in answered if not record.group}
    whole = [r for r in answered if not r.group or r.metric not in general]
    return whole, [r for r in answered if r.group and r.metric in general]


def unanswered_grid(content: PageContent, *, limit: int = ROWS_LIMIT) -> Grid | None:
    """What could not be computed, one row a reason."""
    entries = {entry.name: entry for entry in content.glossary}
    reasons: dict[str, dict[str, int]] = {}
    for record in content.records:
        if math.isnan(record.value):
            title = _title(record.metric, entries)
            if math.isfinite(record.coverage):
                title += f" at {formats.level(record.coverage)}"
            told = reasons.setdefault(record.reason or "no reason was given", {})
            told[title] = told.get(title, 0) + 1
    if not reasons:
        return None
    rows = tuple(
        (
            Cell(text=reason),
            Cell(text=", ".join(f"{t} (×{k:,})" if k > 1 else t for t, k in told.items())),
        )
        for reason, told in list(reasons.items())[:limit]
    )
    columns = (Column(title="Reason"), Column(title="Measures"))
    return Grid(
        title="What could not be answered, and why", columns=columns, parts=(Part(rows=rows),)
    )


def table_grids(
    tables: Iterable[Table], glossary: Sequence[GlossaryEntry] = (), *, limit: int = ROWS_LIMIT
) -> list[Grid]:
    """The tables of a report that hold rows."""
    made: list[Grid | None] = [
        attempt(
            f"table {table.name}",
            partial(table_grid, table, glossary, limit=limit),
            lambda _: None,
        )
        for table in tables
        if len(table)
    ]
    return [grid for grid in made if grid is not None]


def table_grid(
    table: Table, glossary: Sequence[GlossaryEntry] = (), *, limit: int = ROWS_LIMIT
) -> Grid:
    """A table of a report."""
    order = worst_first(table)[:limit]
    notes = [table.notes] if table.notes else []
    if table.name == OVERVIEW:
        notes.append(LEGEND)
    if len(table) > len(order):
        which = "worst" if table.name in {"groups", "worst_rows", "cce_map"} else "first"
        notes.append(
            f"The {which} {len(order)} of {len(table):,} rows. The JSON form of this report "
            "holds all."
        )
    entries = {entry.name: entry for entry in glossary}
    columns, cells = [], []
    for name, column in table.columns.items():
        if name in UNSHOWN:
            continue
        columns.append(Column(title=_column_title(table, name), numeric=column.dtype.kind in "fiu"))
        values = [formats.plain(column[row]) for row in order]
        texts = formats.column(values)
        if name.endswith("p_value"):
            texts = [formats.p_value(value) for value in values]
        if name == "metric":
            texts = [_title(text, entries) for text in texts]
        if table.name == OVERVIEW:
            texts = [TONES.get(text, (text,))[0] for text in texts]
        pairs = zip(texts, values, strict=True)
        cells.append([Cell(text=text, key=sort_key(value)) for text, value in pairs])
    title = TABLE_TITLES.get(table.name) or headed(table.name.replace("_", " "))
    if table.model:
        title += f" · {table.model}"
    part = Part(rows=tuple(zip(*cells, strict=True)))
    return Grid(title=title, columns=tuple(columns), parts=(part,), notes=tuple(notes))


def _column_title(table: Table, name: str) -> str:
    """A label where there is one; rows of the input keep the names of its columns."""
    if name in table.labels:
        return table.labels[name]
    if table.name in INPUT_TABLES:
        return INPUT_TABLES[table.name].get(name, name)
    return COLUMN_TITLES.get(name) or headed(name.replace("_", " "))


def anchor(name: str) -> str:
    """A safe anchor for a measure."""
    return "measure-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _heading(record: Record, entries: dict[str, GlossaryEntry]) -> str:
    entry = entries.get(record.metric)
    if entry is not None and entry.question:
        return entry.question
    return f"{record.notion.value.capitalize()} measures"


def _title(metric: str, entries: dict[str, GlossaryEntry]) -> str:
    entry = entries.get(metric)
    return entry.title if entry is not None and entry.title else headed(metric.replace("_", " "))


def _departure(record: Record) -> float:
    """Distance from the target in standard errors; below all others where it is not known."""
    ideal = record.null if math.isfinite(record.null) else record.target
    if not math.isfinite(ideal):
        return -1.0
    if not record.standard_error > 0:
        return 0.0 if record.value == ideal else math.inf
    return abs(record.value - ideal) / record.standard_error


def _record_grid(
    title: str,
    parts: Mapping[str, Sequence[Record]],
    entries: dict[str, GlossaryEntry],
    *,
    groups: bool = False,
    notes: Sequence[str] = (),
) -> Grid:
    records = [record for part in parts.values() for record in part]
    shown = _Shown(
        group=groups,
        model=len({record.model for record in records}) > 1,
        perfect=any(_perfect(record) != Cell(text="") for record in records),
        units=any(record.units != "1" for record in records),
    )
    confidence = {record.confidence for record in records if not math.isnan(record.lower)}
    level = (
        f"{formats.level(next(iter(confidence)))} interval" if len(confidence) == 1 else "Interval"
    )
    columns = [
        Column(title="Measure"),
        *([Column(title="Group")] if shown.group else []),
        *([Column(title="Model")] if shown.model else []),
        Column(title="Value", numeric=True),
        Column(title=level, numeric=True),
        *([Column(title="Perfect model", numeric=True)] if shown.perfect else []),
        Column(title="n", numeric=True),
        Column(title="Better"),
        *([Column(title="Units")] if shown.units else []),
    ]
    grid_parts = tuple(
        Part(title=heading, rows=tuple(_record_row(record, entries, shown) for record in part))
        for heading, part in parts.items()
    )
    return Grid(title=title, columns=tuple(columns), parts=grid_parts, notes=tuple(notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """Which of the columns that may be empty a grid of records shows."""

    group: bool
    model: bool
    perfect: bool
    units: bool


def _record_row(
    record: Record, entries: dict[str, GlossaryEntry], shown: _Shown
) -> tuple[Cell, ...]:
    value, error = formats.estimate(record.value, record.standard_error)
    sign, words = DIRECTIONS[record.direction]
    group = "" if shown.group else record.group
    meta = " · ".join(part for part in (group, formats.details(record), record.reason) if part)
    known = record.metric in entries
    return (
        Cell(
            text=_title(record.metric, entries),
            small=meta,
            link=anchor(record.metric) if known else "",
        ),
        *([Cell(text=record.group)] if shown.group else []),
        *([Cell(text=record.model)] if shown.model else []),
        Cell(text=value, small=f"± {error}" if error else "", key=sort_key(record.value)),
        Cell(text=formats.interval(record.lower, record.upper), key=sort_key(record.lower)),
        *([_perfect(record)] if shown.perfect else []),
        number_cell(record.n, digits=7),
        Cell(text=f"{sign}\N{NO-BREAK SPACE}{words}"),
        *([Cell(text="" if record.units == "1" else record.units)] if shown.units else []),
    )


def _perfect(record: Record) -> Cell:
    """What a perfect model shows at this n, with its range, or why there is none."""
    low, high = record.null_lower, record.null_upper
    reach = str(record.options.get("no_null", ""))
    if not (math.isnan(low) and math.isnan(high)):
        side, end = ("up to", high) if math.isnan(low) else ("from", low)
        whole = not (math.isnan(low) or math.isnan(high))
        reach = formats.interval(low, high) if whole else f"{side} {formats.number(end)}"
    value = record.null if math.isfinite(record.null) else record.target
    return replace(_maybe(value), small=reach)


def _maybe(value: float) -> Cell:
    return Cell(text="" if math.isnan(value) else formats.number(value), key=sort_key(value))
