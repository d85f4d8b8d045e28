"""Tables of a study's page: records turned into a grid, and set beside what was published."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, final

import numpy as np

from howsure.core import formats
from howsure.core.classes import frozen
from howsure.core.records import Record, ResultTable
from howsure.report.document import Cell, Column, Grid, GridRows, Section, VerdictLine
from howsure.report.grids import number_cell, share_cell, sort_key
from howsure_studies.engine.comparison import columns_of
from howsure_studies.engine.papers import OwnNumber, Published, pairs

Key = str | Callable[[Record], str]
"""What tells records apart: a field, an option, or what is made of a record."""
Show = Callable[[Record], Cell]
"""Makes a table's cell of a record."""
Shown = str | tuple[str, Show]
"""A column of a table: a measure, or one with how its cells are made."""

MISSING: Final = Cell(text=formats.MISSING)
"""The cell of what was not measured."""
BESIDE: Final = "beside_published"
"""The name of the table of published numbers beside ours."""
_Z: Final = 1.96  # two-sided 95 %
Differs = Literal["yes", "no", "unknown"]


def estimate_cell(value: float, error: float = math.nan) -> Cell:
    """A number with its error small beside it, both to two digits of the error."""
    if math.isnan(value):
        return MISSING
    text, small = formats.estimate(value, error)
    return Cell(text=text, small=f"± {small}" if small else "", key=sort_key(value))


def record_cell(record: Record) -> Cell:
    """A record's number with its standard error."""
    return estimate_cell(record.value, record.standard_error)


def interval_cell(record: Record) -> Cell:
    """A record's number with its interval."""
    ends = formats.interval(record.lower, record.upper)
    if math.isnan(record.value):
        return MISSING
    return number_cell(record.value, f"({ends})" if ends else "")


def share_of(record: Record) -> Cell:
    """A share in percent with its interval, where that has a width."""
    if math.isnan(record.value):
        return MISSING
    known = record.lower < record.upper
    return share_cell(record.value, formats.between(record).strip() if known else "")


def number_grid(
    title: str,
    columns: Iterable[str],
    parts: Iterable[GridRows] | Iterable[Sequence[Cell]],
    notes: Iterable[str] = (),
    *,
    words: Sequence[str] = ("Method",),
) -> Grid:
    """A table of numbers after columns of words; rows, or parts of them under titles."""
    given = [each if isinstance(each, GridRows) else tuple(each) for each in parts]
    rows = [each for each in given if not isinstance(each, GridRows)]
    titled = [each for each in given if isinstance(each, GridRows)]
    return Grid(
        title=title,
        columns=(
            *(Column(title=word) for word in words),
            *(Column(title=name, numeric=True) for name in columns),
        ),
        parts=(*([GridRows(rows=tuple(rows))] if rows else []), *titled),
        notes=tuple(dict.fromkeys(filter(None, notes))),
    )


def pivot(
    records: Iterable[Record],
    title: str,
    *,
    rows: Key = "model",
    columns: Key | Mapping[str, Shown],
    by: Key = "metric",
    parts: Key = "coverage",
    show: Show = record_cell,
    words: str = "Method",
    notes: Iterable[str] = (),
) -> Grid | None:
    """Records as a table: what differs downwards, what across, and one part for each of a third.

    Parameters
    ----------
    records : iterable of Record
        One a cell.
    title : str
        Of the table.
    rows, parts : str or callable
        A field of records, an option of theirs, or what is made of a record. A part has no title
        where it is the only one, unless it is a nominal coverage.
    columns : str, callable or mapping
        The same of what stands across; or, by their titles, the values of `by` that do.
    by : str or callable
        What columns of a mapping are values of: measures, if omitted.
    show : callable
        Makes a cell of a record, where a column has no way of its own.
    words : str
        What the rows are.
    notes : iterable of str
        Below the table; why numbers are missing of whole rows follows them.

    Returns
    -------
    Grid or None
        None where no number is known. Rows without any are left out.

    Examples
    --------
    >>> made = [Record(metric="mae", value=1.5, standard_error=0.12, model="line")]
    >>> grid = pivot(made, "Errors", columns={"MAE": "mae"})
    >>> [cell.text for cell in grid.parts[0].rows[0]]
    ['line', '1.50']
    """
    given = list(records)
    across: Mapping[str, Shown] = (
        {value: value for value in dict.fromkeys(_of(record, columns) for record in given)}
        if isinstance(columns, str) or callable(columns)
        else columns
    )
    by = by if isinstance(columns, Mapping) else columns
    table: dict[str, dict[str, dict[str, Record]]] = {}
    for record in given:
        part = _of(record, parts)
        table.setdefault(part, {}).setdefault(_of(record, rows), {})[_of(record, by)] = record
    shown, reasons = [], dict[str, dict[str, None]]()
    for part, lines in table.items():
        cells = []
        for name, own in lines.items():
            chosen = [(way if isinstance(way, tuple) else (way, show)) for way in across.values()]
            there = [own[key] for key, _ in chosen if key in own]
            if all(math.isnan(record.value) for record in there):
                for why in dict.fromkeys(record.reason for record in there if record.reason):
                    reasons.setdefault(why.removeprefix(f"{name} "), {})[name] = None
                continue
            numbers = (way(own[key]) if key in own else MISSING for key, way in chosen)
            cells.append((Cell(text=name), *numbers))
        if cells:
            shown.append(GridRows(title=part, rows=tuple(cells)))
    if not shown:
        return None
    missing = (f"{', '.join(names)}: {why}." for why, names in reasons.items())
    if len(table) == 1 and parts != "coverage":
        shown = [GridRows(rows=shown[0].rows)]
    return number_grid(title, across, shown, (*notes, *missing), words=(words,))


def _of(record: Record, key: Key) -> str:
    """What tells a record apart, as a table names it."""
    if not isinstance(key, str):
        return key(record)
    if key == "coverage":
        at = record.coverage
        return "" if math.isnan(at) else f"Nominal {formats.level(at)}"
    return str(record.options.get(key, "") if key in record.options else getattr(record, key))


@final
@frozen(kw_only=True)
class _Beside:
    """A published number beside ours."""

    printed: Published
    method: str
    ours: float
    error: float
    lost: str  # why ours is missing
    why: str  # it differs, where the paper's number has no note

    @property
    def difference(self) -> float:
        return self.ours - self.printed.value

    @property
    def spread(self) -> float:
        """The error of the difference; NaN without one of ours."""
        return math.hypot(self.error, 0.0 if math.isnan(self.printed.sd) else self.printed.sd)

    @property
    def differs(self) -> Differs:
        """Whether the difference is significant."""
        if math.isnan(self.difference) or math.isnan(self.spread):
            return "unknown"
        return "yes" if abs(self.difference) > _Z * self.spread else "no"

    @property
    def reason(self) -> str:
        """Why ours is missing, or why it differs; nothing where it does not."""
        if math.isnan(self.ours):
            return self.printed.note or self.lost
        if math.isnan(self.difference) or self.differs == "no":
            return ""
        return self.printed.note or self.why


def beside_section(
    own: Iterable[OwnNumber],
    published: Sequence[Published],
    titles: Mapping[str, str],
    why: str,
    *,
    shares: Collection[str] = (),
    error: str = "the standard error",
) -> tuple[Section, ResultTable] | None:
    """Each published number beside ours, and where they differ the reason; None without any.

    Where the paper has words in place of a number, they stand there.

    Parameters
    ----------
    own : iterable of OwnNumber
        Under the paper's names; several of one method are of several seeds.
    published : sequence of Published
        All of the paper.
    titles : mapping of str to str
        Measures in words; others are left out.
    why : str
        Why ours differ, where a number's own note does not say.
    shares : collection of str
        Measures that are shown in percent.
    error : str
        What the errors of ours are.

    Returns
    -------
    section : Section
        One table, a part for each task and measure.
    table : ResultTable
        The same numbers, for programs.
    """
    wanted = [printed for printed in published if printed.measure in titles]
    known = [_compared(numbers, printed, why) for numbers, printed in pairs(own, wanted)]
    if not known:
        return None
    parts: dict[str, list[tuple[Cell, ...]]] = {}
    reasons: dict[str, int] = {}  # each stands once, below the table
    for number in known:
        printed, reason = number.printed, number.reason
        unit = 100.0 if printed.measure in shares else 1.0
        heading = f"{printed.task}: {titles[printed.measure]}{' in %' if unit > 1.0 else ''}"
        if not math.isnan(printed.coverage):
            heading += f", nominal {formats.level(printed.coverage)}"
        mark = f"({reasons.setdefault(reason, len(reasons) + 1)})" if reason else ""
        parts.setdefault(heading, []).append((*_cells(number, unit), Cell(text=mark)))
    left = len(wanted) - len({id(number.printed) for number in known})
    grid = number_grid(
        "Published numbers",
        ("Here", "Published", "Difference"),
        [GridRows(title=heading, rows=tuple(cells)) for heading, cells in parts.items()],
        (
            f"Published: {_sources(number.printed for number in known)}. Here, ± is {error}; "
            "in the paper, the printed standard deviation. A reason is given if the difference "
            "exceeds 1.96 combined errors, or if no error is known.",
            *(f"({number}) {reason}." for reason, number in reasons.items()),
            f"{formats.counted(left, 'published number')} without a match here: tasks or methods "
            "that were not run."
            if left
            else "",
        ),
    )
    grid = replace(grid, columns=(*grid.columns, Column(title="Why")))
    line = VerdictLine(text=_significant(known), question="Comparison with the published numbers")
    section = Section(title="Comparison with the published numbers", lines=(line,), grids=(grid,))
    return section, ResultTable(name=BESIDE, columns=columns_of([*map(_row, known)]))


def _compared(numbers: Sequence[OwnNumber], printed: Published, why: str) -> _Beside:
    """A number with its standard error; of several seeds their mean, by their spread."""
    records = [number.record for number in numbers]
    value, error = records[0].value, records[0].standard_error
    if len(records) > 1:
        values = np.array([record.value for record in records])
        value, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    method, lost = records[0].model, records[0].reason
    return _Beside(printed=printed, method=method, ours=value, error=error, lost=lost, why=why)


def _cells(number: _Beside, unit: float) -> tuple[Cell, ...]:
    """The method, ours, the published number or its words, and the difference."""
    printed = number.printed
    return (
        Cell(text=number.method),
        estimate_cell(unit * number.ours, unit * number.error),
        Cell(text=printed.note)
        if math.isnan(printed.value)
        else estimate_cell(unit * printed.value, unit * printed.sd),
        replace(estimate_cell(unit * number.difference, unit * number.spread), small=""),
    )


def _row(number: _Beside) -> dict[str, Any]:
    """The same for programs."""
    printed = number.printed
    return {
        **{name: getattr(printed, name) for name in ("paper", "table", "task")},
        "method": number.method,
        "published_method": printed.method,
        "measure": printed.measure,
        "coverage": printed.coverage,
        "ours": number.ours,
        "standard_error": number.error,
        "published": printed.value,
        "published_sd": printed.sd,
        "difference": number.difference,
        "differs": number.differs,
        "reason": number.reason,
    }


def _significant(numbers: Sequence[_Beside]) -> str:
    """How many of ours differ from the published, of those whose error is known."""
    compared = [n.differs for n in numbers if not math.isnan(n.difference)]
    yes, unknown = compared.count("yes"), compared.count("unknown")
    if not compared:
        return "No number here can be compared with a published one."
    rest = f"{formats.counted(unknown, 'number')} here without a known error"
    if unknown == len(compared):
        return f"Inconclusive: {rest}."
    of = formats.counted(len(compared) - unknown, "number")
    more = f"; inconclusive for {rest}" if unknown else ""
    differ = "differs" if yes == 1 else "differ"
    return f"{yes:,} of {of} {differ} significantly from the published ones{more}."


def _sources(numbers: Iterable[Published]) -> str:
    """The papers, with their tables and figures."""
    papers: dict[str, dict[str, None]] = {}
    for printed in numbers:
        papers.setdefault(printed.paper, {})[printed.table] = None
    return "; ".join(f"{paper}, {_listed(tables)}" for paper, tables in papers.items())


def _listed(tables: Iterable[str]) -> str:
    """Tables and figures of a paper, those of one kind together."""
    kinds: dict[str, list[str]] = {}
    for table in tables:
        kind, _, number = table.partition(" ")
        kinds.setdefault(kind, []).append(number)
    return ", ".join(
        f"{kind}{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        for kind, numbers in kinds.items()
    )
