"""Short forms of a report: what a terminal, a pull request and a notebook show of it."""

from __future__ import annotations

import importlib.util
import io
import math
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from howsure.core import formats
from howsure.core.records import Key, Record, Table
from howsure.engine.catalogue import catalogue, key_measures
from howsure.report import grids
from howsure.report.document import (
    OVERVIEW,
    TONES,
    Cell,
    Column,
    Document,
    Grid,
    Section,
    Tone,
    VerdictLine,
)
from howsure.report.questions import MOST_COLUMNS

if TYPE_CHECKING:
    from howsure.figures import Figure

_MOST: Final = 10
_MAIN: Final = 0.9  # of several coverages, that nearest to it speaks for all but coverage itself
_COVERAGES: Final = 3
_ORDER: Final[tuple[Tone, ...]] = ("bad", "caution", "negligible", "good", "undecided", "info")
"""What is told first."""
_MARKED: Final[tuple[Tone, ...]] = ("good", "undecided")
"""What of several models marks tell, and no sentence."""
_SENTENCES: Final = 6
_GROUPS: Final = 6
_TRIED: Final = 5
_REST: Final = "The HTML and JSON forms of this report hold every number."
_FACTS: Final = ("Source", "Files", "Rows", "Models", "Dropped rows", "Reading", "Notes")


def in_brief(document: Document) -> Document:
    """A screen or two of a report: its verdict, the key numbers, groups, and what was tried."""
    states = states_beside(document)
    first = _first_models(document)
    numbers = key_numbers(document.records, first)
    groups = [t for t in document.tables if t.name == "groups" and len(t)]
    groups = [t for t in groups if not first or t.model in first]
    tried = [_best_first(t) for t in document.tables if t.name == "mends" and document.advice]
    tables = [*([grids.groups_beside(groups, limit=_GROUPS)] if groups else [])]
    tables += grids.table_grids(tried if first else [replace(t, model="") for t in tried])
    return replace(
        document,
        facts={name: document.facts[name] for name in _FACTS if name in document.facts},
        opening=replace(
            document.opening,
            lines=_first_lines(document) if states else sentences(document),
            grids=tuple(grid for grid in (states, numbers) if grid is not None and grid.size),
        ),
        sections=tuple(
            Section(title=grid.title, grids=(replace(grid, title=""),)) for grid in tables
        ),
        glossary=(),
    )


def _best_first(tried: Table) -> Table:
    """The methods that save most, of those that were tried."""
    gain = np.asarray(tried.columns["gain"], dtype=np.float64)
    order = np.argsort(np.where(np.isnan(gain), -np.inf, gain), kind="stable")[::-1][:_TRIED]
    columns = {name: column[order] for name, column in tried.columns.items()}
    said = f" The best {len(order)} of {len(tried)}." if len(order) < len(tried) else ""
    return replace(tried, columns=columns, notes=tried.notes + said)


def pull_request(document: Document) -> str:
    """A screen or two of Markdown, which says what holds the rest."""
    brief = in_brief(document)
    *others, last = brief.opening.grids or (Grid(title="", columns=(), parts=()),)
    told = replace(last, notes=(*last.notes, _REST))
    return replace(brief, opening=replace(brief.opening, grids=(*others, told))).to_markdown()


def sentences(document: Document) -> tuple[VerdictLine, ...]:
    """Every sentence once: the headline and the next step, then what is wrong, then the rest."""
    first = document.opening.lines
    others = [line for line in document.lines if line not in first]
    return (*first, *sorted(others, key=lambda line: _ORDER.index(line.tone)))


def _first_lines(document: Document) -> tuple[VerdictLine, ...]:
    """Of several models: the headline, the next step, and what is most wrong."""
    first = len(document.opening.lines)
    told = sentences(document)
    return (
        *told[:first],
        *[line for line in told[first:] if line.tone not in _MARKED][:_SENTENCES],
    )


def _first_models(document: Document) -> list[str]:
    """Several models, in the order in which their states are told, as many as have room."""
    ranked = [table.columns["model"] for table in document.tables if table.name == OVERVIEW]
    return [str(name) for names in ranked for name in names][:MOST_COLUMNS]


def states_beside(document: Document) -> Grid | None:
    """Questions by models, with how the models are ordered; None of one model."""
    ranked = [table.notes for table in document.tables if table.name == OVERVIEW]
    for grid in document.opening.grids:
        if len(grid.columns) > 2:
            notes = tuple(filter(None, (*grid.notes, *ranked)))
            return replace(grid, title=grids.TABLE_TITLES[OVERVIEW], notes=notes)
    return None


def key_numbers(records: Sequence[Record], first: Sequence[str] = ()) -> Grid:
    """At most ten measures of all rows, in the catalogue's order; a column for each model.

    Of one model, its value stands beside the interval and what a perfect model shows. Of many,
    the `first` are shown, if they are said.
    """
    whole = _answered_of_all(records)
    models, rows_of = key_records(records, first)
    several = len(models) != 1
    rows = []
    for found in rows_of:
        cells = map(_estimate, found) if several else _in_full(found[0])
        rows.append((Cell(measured(next(filter(None, found)))), *cells))
    titles = models if several else ["Value", "Interval", "Perfect"]
    notes = ["Value ± standard error."] if several and rows else []
    judged = {model: _coverages(whole, model) for model in models}
    if len(set(judged.values()) - {""}) > 1:
        told = ", ".join(f"{model} at {at}" for model, at in judged.items() if at)
        notes.append(f"Models are judged at different coverages, which leaves blanks: {told}.")
    columns = (Column("Measure"), *(Column(title, numeric=True) for title in titles))
    return Grid.of("Key numbers", columns, rows, notes)


def key_records(
    records: Sequence[Record], first: Sequence[str] = ()
) -> tuple[list[str], list[tuple[Record | None, ...]]]:
    """The models, and the key numbers: for each measure and coverage, a record of each model."""
    whole = _answered_of_all(records)
    models = list(dict.fromkeys(record.model for record in whole))
    models = [name for name in first if name in models] or models
    known = {(r.key, r.model): r for r in reversed(whole)}
    several = len(models) != 1
    chosen = _rows([r for r in whole if not (several and r.metric in grids.OF_KINDS)])
    rows = [tuple(known.get((key, model)) for model in models) for key in chosen]
    return models, [row for row in rows if any(row)]


def _answered_of_all(records: Sequence[Record]) -> list[Record]:
    """Answered, and of all rows."""
    return [r for r in records if not r.group and not math.isnan(r.value)]


def measured(record: Record) -> str:
    """A measure in words, with its coverage."""
    at = "" if math.isnan(record.coverage) else f" at {formats.level(record.coverage)}"
    return catalogue()[record.metric].title + at


def _coverages(whole: Sequence[Record], model: str) -> str:
    """Where a model's coverage is judged, in words."""
    metric = "empirical_coverage"
    found = {r.coverage for r in whole if r.model == model and r.metric == metric}
    return ", ".join(formats.level(at) for at in sorted(found) if not math.isnan(at))


def _rows(whole: Sequence[Record]) -> list[Key]:
    """Which measures at which coverages."""
    keys = dict.fromkeys(record.key for record in whole)
    given = list(dict.fromkeys(key.coverage for key in keys))
    main = min((at for at in given if at), key=lambda at: abs(at - _MAIN), default=None)
    chosen: list[Key] = []
    for name in key_measures():
        levels = [Key(name, at) for at in given if Key(name, at) in keys]
        if name == "empirical_coverage":
            levels.sort(key=lambda key: abs((key.coverage or 0.0) - (main or 0.0)))
            levels = levels[:_COVERAGES]
            levels.sort(key=lambda key: key.coverage or 0.0)
        else:
            levels = [key for key in levels if key.coverage in (main, None)]
        chosen += levels
    places = {name: place for place, name in enumerate(catalogue())}
    return sorted(chosen[:_MOST], key=lambda key: places[key.metric])


def _estimate(record: Record | None) -> Cell:
    """A value and its standard error, unless that is of rounding alone."""
    if record is None:
        return Cell("")
    value, error = formats.estimate(record.value, record.standard_error)
    if record.standard_error > 1e-12 * abs(record.value):
        return Cell(value, small=f"± {error}")
    return Cell(formats.number(record.value))


def _in_full(record: Record | None) -> tuple[Cell, ...]:
    """A value, its interval, and what a perfect model shows."""
    assert record is not None  # the rows are chosen from the records of the only model
    perfect = record.null if not math.isnan(record.null) else record.target
    rounding = record.upper - record.lower <= 1e-12 * abs(record.value)
    return (
        Cell(formats.estimate(record.value, record.standard_error)[0]),
        Cell("" if rounding else formats.interval(record.lower, record.upper)),
        Cell("" if math.isnan(perfect) else formats.number(perfect, 3)),
    )


_COLOURS: Final[dict[Tone, str]] = {
    "good": "#25945f",
    "bad": "#e0533d",
    "caution": "#b98200",
    "negligible": "#2b8fb8",
    "undecided": "#b98200",
    "info": "#2b8fb8",
}
"""Colours of marks that are read on light and on dark."""


def notebook(document: Document) -> str:
    """The opening of a report as a fragment of HTML, without scripts and without a background."""
    brief = in_brief(document).opening
    lines = "".join(
        f"<li>{_mark(line.tone)} {escape(line.text)}"
        + (f"<br><code>{escape(line.command)}</code>" if line.command else "")
        + "</li>"
        for line in brief.lines
    )
    drawn = [figure for choice in brief.choices[:1] for figure in choice.options[0].figures]
    return (
        f'<ul style="list-style:none;padding-left:0">{lines}</ul>'
        + "".join(map(_table, brief.grids))
        + "".join(map(_picture, drawn))
    )


def _mark(tone: Tone) -> str:
    return f'<span style="color:{_COLOURS[tone]}" title="{TONES[tone][1]}">{TONES[tone][0]}</span>'


def _table(grid: Grid) -> str:
    sides = ["right" if column.numeric else "left" for column in grid.columns]
    head = "".join(
        f'<th style="text-align:{side};padding:2px 8px">{escape(column.title)}</th>'
        for side, column in zip(sides, grid.columns, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side};padding:2px 8px">{_cell(cell)}</td>'
            for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for part in grid.parts
        for row in part.rows
    )
    notes = "".join(
        f"<p><small>{escape(note)}</small></p>" for note in (*grid.notes, *grid.footnotes)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def _cell(cell: Cell) -> str:
    parts = (
        _mark(cell.tone) if cell.tone else "",
        escape(cell.text),
        f"<small>{escape(cell.small)}</small>" if cell.small else "",
    )
    return " ".join(filter(None, parts))


def _picture(figure: Figure) -> str:
    """A figure as SVG in the colour of the text around it; nothing without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return ""
    from matplotlib.figure import Figure as Canvas

    from howsure.figures import plot
    from howsure.figures.palette import LIGHT
    from howsure.figures.telling import describe_figure

    canvas = Canvas(figsize=(6.0, 4.0), layout="constrained")
    plot(figure, ax=canvas.subplots())
    stream = io.StringIO()
    canvas.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    named = f'<svg fill="currentColor" role="img" aria-label="{escape(describe_figure(figure))}"'
    _, _, drawn = stream.getvalue().partition("<svg")
    text = named + drawn
    text = text.replace(f"stroke: {LIGHT.grid}", "stroke: currentColor; stroke-opacity: 0.15")
    return text.replace("#000000", "currentColor")
