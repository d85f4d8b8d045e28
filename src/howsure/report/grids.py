"""Records and tables as grids: what a reader sees of them, as plain text."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import starmap

import numpy as np

from howsure.core import formats
from howsure.core.errors import attempt
from howsure.core.records import Direction, Record, ResultTable
from howsure.core.text import headed
from howsure.figures.layouts import layout_of_table
from howsure.report.document import (
    LEGEND,
    OVERVIEW,
    TONES,
    Cell,
    Column,
    GlossaryEntry,
    Grid,
    GridRows,
    slug,
)

# A page of hundreds of rows is slow, and JSON and CSV have all.
MAX_ROWS = 100
"""The most rows of one table on a page."""
TABLE_TITLES = {
    OVERVIEW: "Models and questions",
    "mends": "Recalibration methods tried",
    "monitor": "Rows scored without labels",
    "outside": "Rows outside the reference",
    "flagged": "Flagged rows with the highest CCE",
}
COLUMN_TITLES = {
    "p_value": "p-value",
    "adjusted_p_value": "Adjusted p-value",
    "per_cent": "Difference, %",
    "cce": "CCE",
    "cce_when_grown": "CCE on the rows that grew the tree",
}
UNSHOWN = {"thumbnail"}
"""Columns that only a page can show, in its own way."""
DIRECTIONS = {
    Direction.LOWER: ("↓", "lower"),
    Direction.HIGHER: ("↑", "higher"),
    Direction.TARGET: ("◎", "near\N{NO-BREAK SPACE}ideal"),
    Direction.NONE: ("·", "descriptive"),
}
BETTER = "↓ lower is better  ↑ higher is better  ◎ closer to perfect"
"""What the signs of directions mean."""

# Twice a remark is read; thrice it is noise, and a footnote is shorter.
MIN_REPEATS = 3
"""In how many cells of a column a remark stands that becomes a footnote."""
# Shorter ones take no more room than a mark.
MIN_WORDS = 4
"""How many words a remark has at least."""
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_USUAL = "Measures of uncertainty are computed from {} unless stated otherwise."
OF_KINDS = ("crps", "pinball", "weighted_interval_score")
"""Scores that mean another thing for quantiles than for distributions; their reason tells which.
Models of both kinds are compared by the score that means the same for all."""


def number_cell(value: float, small: str = "", digits: int = 3) -> Cell:
    """A number with so many significant digits."""
    return Cell(formats.number(value, digits), small=small, key=sort_key(value))


def share_cell(value: float, small: str = "") -> Cell:
    """A share in percent."""
    return Cell(formats.share(value), small=small, key=sort_key(value))


def sort_key(value: object) -> str:
    """What a cell sorts by: a number's shortest exact form, nothing for the rest."""
    number = formats.plain(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        return ""
    return repr(number)


def record_grid(
    records: Iterable[Record], glossary: Iterable[GlossaryEntry] = (), *, narrow: bool = False
) -> Grid | None:
    """The numbers of all rows, one part per question (a notion where no question is known).

    A `narrow` one leaves out what an interval beside a number implies.
    """
    answered, _ = split_records(records)
    if not answered:
        return None
    entries = {entry.name: entry for entry in glossary}
    places = {name: position for position, name in enumerate(entries)}
    parts: dict[str, list[Record]] = {}
    for record in sorted(answered, key=lambda record: places.get(record.metric, len(places))):
        parts.setdefault(_heading(record, entries), []).append(record)
    notes = [BETTER] if narrow else []
    return _record_grid("All numbers", parts, entries, narrow=narrow, notes=notes)


def group_grid(records: Iterable[Record], glossary: Iterable[GlossaryEntry] = ()) -> Grid | None:
    """The numbers of groups in one grid, those farthest from their target first."""
    _, grouped = split_records(records)
    if not grouped:
        return None
    ordered = sorted(grouped, key=_departure, reverse=True)
    lines = list(dict.fromkeys(map(_line, ordered)))
    notes = []
    if len(lines) > MAX_ROWS:
        notes.append(
            f"The {MAX_ROWS} of {len(lines):,} farthest from their target, in standard errors. "
            "The JSON and CSV reports contain all."
        )
    first = set(lines[:MAX_ROWS])
    shown = [record for record in ordered if _line(record) in first]
    entries = {entry.name: entry for entry in glossary}
    return _record_grid("All measures by group", {"": shown}, entries, groups=True, notes=notes)


def split_records(records: Iterable[Record]) -> tuple[list[Record], list[Record]]:
    """Answered records: those of all rows, and those of groups."""
    answered = [record for record in records if not math.isnan(record.value)]
    general = {record.metric for record in answered if not record.group}
    general_records = [r for r in answered if not r.group or r.metric not in general]
    return general_records, [r for r in answered if r.group and r.metric in general]


def silent_grids(
    records: Sequence[Record],
    glossary: Sequence[GlossaryEntry],
    tables: Iterable[ResultTable],
    *,
    by_model: bool = True,
) -> list[Grid]:
    """What was not judged, and what could not be computed, with the reasons."""
    silent = [table for table in tables if table.name == "not_judged"]
    shown = table_grids(silent if by_model else map(_without_models, silent))
    missing = unanswered_grid(records, glossary)
    return shown if missing is None else [*shown, missing]


def _without_models(table: ResultTable) -> ResultTable:
    """Rows that are the same for several models, each once."""
    columns = {name: column for name, column in table.columns.items() if name != "model"}
    rows = dict.fromkeys(zip(*columns.values(), strict=True))
    arrays = (np.array(column, dtype=object) for column in zip(*rows, strict=True))
    return replace(table, columns=dict(zip(columns, arrays, strict=True))) if rows else table


def unanswered_grid(
    records: Iterable[Record], glossary: Iterable[GlossaryEntry] = ()
) -> Grid | None:
    """What could not be computed, one row a reason."""
    entries = {entry.name: entry for entry in glossary}
    titles_of: dict[str, Counter[str]] = {}
    for record in records:
        if math.isnan(record.value):
            title = _title(record.metric, entries)
            if math.isfinite(record.coverage):
                title += f" at {formats.level(record.coverage)}"
            reason = record.reason or "no reason was given"
            titles_of.setdefault(reason, Counter())[title] += 1
    if not titles_of:
        return None
    rows = [
        (
            Cell(reason),
            Cell(", ".join(f"{t} (×{k:,})" if k > 1 else t for t, k in titles.items())),
        )
        for reason, titles in list(titles_of.items())[:MAX_ROWS]
    ]
    columns = (Column("Reason"), Column("Measures"))
    return Grid.of("Measures that could not be computed, and why", columns, rows)


def table_grids(tables: Iterable[ResultTable]) -> list[Grid]:
    """The tables of a report that hold rows."""
    grids = (
        attempt(f"table {table.name}", partial(table_grid, table), lambda _: None)
        for table in tables
        if len(table)
    )
    return [grid for grid in grids if grid is not None]


def table_grid(table: ResultTable, *, limit: int = MAX_ROWS) -> Grid:
    """A table of a report."""
    layout, order = layout_of_table(table.name), np.arange(len(table))
    if layout.ranks is not None:
        order = np.argsort(layout.ranks(table), kind="stable")
    order = order[:limit]
    notes = [table.notes] if table.notes else []
    if table.name == OVERVIEW:
        notes.append(LEGEND)
    if len(table) > len(order):
        which = "first" if layout.ranks is None else "worst"
        notes.append(
            f"The {which} {len(order)} of {len(table):,} rows. The JSON report contains all."
        )
    shown = {name: column for name, column in table.columns.items() if name not in UNSHOWN}
    columns, cells = [], []
    for field, column in shown.items():
        columns.append(Column(_column_title(table, field), numeric=column.dtype.kind in "fiu"))
        values = [formats.plain(column[row]) for row in order]
        texts = formats.column(values)
        if field.endswith("p_value"):
            texts = [formats.p_value(value) for value in values]
        if field == "metric":
            texts = [_title(text, {}) for text in texts]
        if table.name == OVERVIEW:
            texts = [TONES.get(text, (text,))[0] for text in texts]
        pairs = zip(texts, values, strict=True)
        cells.append([Cell(text, key=sort_key(value)) for text, value in pairs])
    name = TABLE_TITLES.get(table.name) or layout.title or headed(table.name.replace("_", " "))
    title = f"{name} · {table.model}" if table.model else name
    grid = Grid.of(title, columns, zip(*cells, strict=True), notes)
    reasons = [position for position, column in enumerate(shown) if column == "reason"]
    return footnoted(replace(grid, name=name), reasons)


def footnoted(grid: Grid, reasons: Collection[int] = ()) -> Grid:
    """A grid in which a remark of several cells of a column stands once, as a footnote.

    The text of a cell is a remark in columns of `reasons`.
    """
    rows = [row for block in grid.parts for row in block.rows]
    repeated = Counter(
        (column, remark)
        for row in rows
        for column, cell in enumerate(row)
        for remark in _remarks(cell, in_full=column in reasons)
    )
    marks: dict[str, str] = {}
    for (_, remark), count in repeated.items():
        if count >= MIN_REPEATS:
            marks.setdefault(remark, str(len(marks) + 1).translate(_RAISED))

    def marked(column: int, cell: Cell) -> Cell:
        remarks = _remarks(cell, in_full=column in reasons)
        noted = [remark for remark in remarks if repeated[column, remark] >= MIN_REPEATS]
        if not noted:
            return cell
        raised = "\N{THIN SPACE}".join(marks[remark] for remark in noted)
        if column in reasons:
            return replace(cell, text=raised)
        named = cell.remarks or (("", cell.small),)
        return cell.remarked((pair for pair in named if pair[1] not in noted), raised)

    parts = tuple(
        replace(block, rows=tuple(tuple(starmap(marked, enumerate(row))) for row in block.rows))
        for block in grid.parts
    )
    footnotes = tuple(f"{mark}\N{NO-BREAK SPACE}{remark}" for remark, mark in marks.items())
    return replace(grid, parts=parts, footnotes=footnotes)


def _remarks(cell: Cell, *, in_full: bool) -> list[str]:
    """What explains a cell in many words: what stands small in it, or the `in_full` of it."""
    remarks = [cell.text] if in_full else [text for _, text in cell.remarks] or [cell.small]
    return [remark for remark in dict.fromkeys(remarks) if len(remark.split()) >= MIN_WORDS]


def groups_beside(tables: Sequence[ResultTable], *, limit: int = MAX_ROWS) -> Grid:
    """Coverage in groups, a column each model; the group worst in any model first."""
    rows_of: dict[tuple[str, str, float], dict[int, int]] = {}
    for number, table in enumerate(tables):
        names = ("grouping", "group", "nominal")
        for row, key in enumerate(zip(*(table.columns[name] for name in names), strict=True)):
            grouping, group, nominal = str(key[0]), str(key[1]), float(key[2])
            nominal = -1.0 if math.isnan(nominal) else nominal
            rows_of.setdefault((grouping, group, nominal), {})[number] = row
    worst = {
        key: min(float(tables[number].columns["upper"][row]) for number, row in rows.items())
        for key, rows in rows_of.items()
    }
    shown = sorted(rows_of, key=lambda key: worst[key])[:limit]
    several = len({nominal for *_, nominal in rows_of}) > 1
    lines = []
    for key in shown:
        _, group, nominal = key
        first, row = next(iter(rows_of[key].items()))
        cells = [Cell(group)]
        cells += [Cell(formats.level(nominal), key=repr(nominal))] if several else []
        cells += [number_cell(float(tables[first].columns["n"][row]), digits=7)]
        for number, table in enumerate(tables):
            line = rows_of[key].get(number)
            cells.append(Cell("") if line is None else _covered(table, line))
        lines.append(tuple(cells))
    notes = [f"The worst {len(shown)} of {len(rows_of):,}."] if len(shown) < len(rows_of) else []
    columns = (
        Column("Group"),
        *([Column("Nominal", numeric=True)] if several else []),
        Column("n", numeric=True),
        *(Column(t.model if len(tables) > 1 else "Coverage", numeric=True) for t in tables),
    )
    return Grid.of(layout_of_table(tables[0].name).title, columns, lines, notes)


def _covered(table: ResultTable, row: int) -> Cell:
    """Coverage with its interval, in percent."""
    value, low, high = (
        float(table.columns[name][row]) for name in ("empirical_coverage", "lower", "upper")
    )
    return share_cell(value, f"({formats.interval(100.0 * low, 100.0 * high)})")


def _column_title(table: ResultTable, name: str) -> str:
    """A label where there is one; rows of the input keep the names of its columns."""
    if name in table.labels:
        return table.labels[name]
    columns = layout_of_table(table.name).columns
    if columns is not None:
        return columns.get(name, name)
    return COLUMN_TITLES.get(name) or headed(name.replace("_", " "))


def _heading(record: Record, entries: dict[str, GlossaryEntry]) -> str:
    entry = entries.get(record.metric)
    if entry is not None and entry.question:
        return entry.question
    return f"{record.notion.value.capitalize()} measures"


def _title(metric: str, entries: dict[str, GlossaryEntry]) -> str:
    from howsure.engine.catalogue import catalogue

    entry = entries.get(metric) or catalogue().get(metric)
    return entry.title if entry is not None and entry.title else headed(metric.replace("_", " "))


def _departure(record: Record) -> float:
    """Distance from the target in standard errors; below all others where it is not known."""
    ideal = record.null if math.isfinite(record.null) else record.target
    if not math.isfinite(ideal):
        return -1.0
    if not record.standard_error > 0:
        return 0.0 if record.value == ideal else math.inf
    return abs(record.value - ideal) / record.standard_error


def _line(record: Record) -> tuple[object, ...]:
    """What the records of several models share that stand in one row."""
    return record.key, record.group, record.source, record.units, _kind(record)


def _kind(record: Record) -> str:
    """Of which kind of prediction a score is, where that decides what it means."""
    return record.reason if record.metric in OF_KINDS else ""


def _record_grid(
    title: str,
    parts: Mapping[str, Sequence[Record]],
    entries: dict[str, GlossaryEntry],
    *,
    groups: bool = False,
    narrow: bool = False,
    notes: Sequence[str] = (),
) -> Grid:
    """One row per measure; of several models, a column each."""
    records = [record for block in parts.values() for record in block]
    sources = Counter(record.source for record in records if record.source)
    ((source, count),) = sources.most_common(1) or [("", 0)]
    if count >= MIN_REPEATS:
        notes = [*notes, _USUAL.format(source)]
        parts = {
            heading: [replace(r, source="") if r.source == source else r for r in block]
            for heading, block in parts.items()
        }
        records = [record for block in parts.values() for record in block]
    models = list(dict.fromkeys(record.model for record in records))
    if len(models) > 1:
        return _models_grid(title, parts, entries, models, notes, groups=groups, narrow=narrow)
    confidence = {record.confidence for record in records if not math.isnan(record.lower)}
    level = (
        f"{formats.level(next(iter(confidence)))} interval" if len(confidence) == 1 else "Interval"
    )
    measure: Callable[[Record], Cell] = partial(_measure, entries=entries, group=not groups)
    if narrow:
        measure = _short_measure(map(measure, records), measure)
    cells: list[tuple[bool, Column, Callable[[Record], Cell]]] = [
        (True, Column("Measure"), measure),
        (groups, Column("Group"), lambda record: Cell(record.group)),
        (True, Column("Value", numeric=True), partial(_value, error=not narrow)),
        (True, Column(level, numeric=True), _interval),
        (
            any(_perfect(record) != Cell("") for record in records),
            Column("Perfect model", numeric=True),
            _perfect,
        ),
        (not narrow, Column("n", numeric=True), lambda record: number_cell(record.n, digits=7)),
        (True, Column("" if narrow else "Better"), partial(_better, narrow=narrow)),
        (
            not narrow and any(record.units != "1" for record in records),
            Column("Units"),
            _units,
        ),
    ]
    shown = [(column, cell) for is_shown, column, cell in cells if is_shown]
    grid_parts = [
        GridRows(tuple(tuple(cell(record) for _, cell in shown) for record in block), title=heading)
        for heading, block in parts.items()
    ]
    columns = tuple(column for column, _ in shown)
    grid = Grid(title=title, columns=columns, parts=tuple(grid_parts), notes=tuple(notes))
    return footnoted(grid)


def _models_grid(
    title: str,
    parts: Mapping[str, Sequence[Record]],
    entries: dict[str, GlossaryEntry],
    models: Sequence[str],
    notes: Sequence[str],
    *,
    groups: bool,
    narrow: bool,
) -> Grid:
    """The numbers of several models, one beside the other."""
    measure: Callable[[Record], Cell] = partial(_measure, entries=entries, group=not groups)
    if narrow:
        lines_of = {_line(r): _shared(r) for block in parts.values() for r in block}
        measure = _short_measure(map(measure, lines_of.values()), measure)
    grid_parts = []
    for heading, block in parts.items():
        lines: dict[tuple[object, ...], dict[str, Record]] = {}
        for record in block:
            lines.setdefault(_line(record), {}).setdefault(record.model, record)
        rows = []
        for by_model in lines.values():
            first = next(iter(by_model.values()))
            cells = [measure(_shared(first))]
            cells += [Cell(first.group)] if groups else []
            cells += [_value(by_model[m]) if m in by_model else Cell("") for m in models]
            rows.append((*cells, _better(first, narrow=narrow)))
        grid_parts.append(GridRows(tuple(rows), title=heading))
    columns = (
        Column("Measure"),
        *([Column("Group")] if groups else []),
        *(Column(model, numeric=True) for model in models),
        Column("" if narrow else "Better"),
    )
    return footnoted(
        Grid(title=title, columns=columns, parts=tuple(grid_parts), notes=tuple(notes))
    )


def _shared(record: Record) -> Record:
    """What the records of several models in one row have in common."""
    return replace(record, options={}, p=math.nan, reason=_kind(record))


def _short_measure(
    cells: Iterable[Cell], measure: Callable[[Record], Cell]
) -> Callable[[Record], Cell]:
    """What names a measure by its coverage and its rows, unless others share these."""
    alike = Counter(map(_shortened, cells))

    def named(record: Record) -> Cell:
        cell = measure(record)
        less = _shortened(cell)
        return less if alike[less] == 1 else cell

    return named


def _shortened(cell: Cell) -> Cell:
    """Of what decided a number, its coverage and its rows."""
    return cell.remarked(remark for remark in cell.remarks if remark[0] in ("coverage", "where"))


def _measure(record: Record, entries: dict[str, GlossaryEntry], *, group: bool) -> Cell:
    """The measure's title, with what decided the number; it leads to the glossary."""
    remarks = {"group": record.group} if group else {}
    remarks |= {**formats.details(record), "reason": record.reason}
    link = slug("measure", record.metric) if record.metric in entries else ""
    cell = Cell(_title(record.metric, entries), link=link)
    return cell.remarked(remark for remark in remarks.items() if remark[1])


def _value(record: Record, *, error: bool = True) -> Cell:
    value, width = formats.estimate(record.value, record.standard_error)
    small = f"± {width}" if width and error else ""
    return Cell(value, small=small, key=sort_key(record.value))


def _interval(record: Record) -> Cell:
    return Cell(formats.interval(record.lower, record.upper), key=sort_key(record.lower))


def _units(record: Record) -> Cell:
    return Cell("" if record.units == "1" else record.units)


def _better(record: Record, *, narrow: bool = False) -> Cell:
    sign, words = DIRECTIONS[record.direction]
    return Cell(sign if narrow else f"{sign}\N{NO-BREAK SPACE}{words}")


def _perfect(record: Record) -> Cell:
    """What a perfect model shows at this n, with its range, or why there is none."""
    low, high = record.null_lower, record.null_upper
    reach = str(record.options.get("no_null", ""))
    if not (math.isnan(low) and math.isnan(high)):
        side, end = ("up to", high) if math.isnan(low) else ("from", low)
        bounded = not (math.isnan(low) or math.isnan(high))
        reach = f"({formats.interval(low, high)})" if bounded else f"{side} {formats.number(end)}"
    value = record.null if math.isfinite(record.null) else record.target
    text = "" if math.isnan(value) else formats.number(value)
    return Cell(text, key=sort_key(value), small=reach)
