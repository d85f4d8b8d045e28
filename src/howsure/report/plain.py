"""A report as JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import html
import importlib
import importlib.util
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa

from howsure.core import formats
from howsure.core.convert import checked, json_number, plain
from howsure.core.errors import MissingDependencyError
from howsure.core.records import Key, Record, ResultTable
from howsure.core.text import clean, legible
from howsure.engine.catalogue import catalogue, key_measures
from howsure.inputs.write import unformulaic
from howsure.predictions import LabelSets
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
    by_model,
)
from howsure.report.questions import MAX_COLUMNS

if TYPE_CHECKING:
    from howsure.figures import Figure
    from howsure.verdict import TrustAnswer

FORMAT = "howsure-report/1"
"""The name and version of the JSON form."""


def to_json(document: Document) -> str:
    """Everything in a report as JSON: every record, curve and table."""
    report = {
        "format": FORMAT,
        **verdict_parts(document),
        "records": [record.as_dict() for record in document.records],
        "curves": [plain(curve, json_number) for curve in document.curves],
        "tables": [_table(table) for table in document.tables],
        "glossary": [plain(entry) for entry in document.glossary],
    }
    return clean(json.dumps(report, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"


def verdict_parts(document: Document) -> dict[str, Any]:
    """The JSON report before its numbers."""
    return {
        "title": document.title,
        "command": document.command,
        "facts": {str(name): str(fact) for name, fact in document.facts.items()},
        "answer": None if document.answer is None else _answer(document.answer),
        "verdict": [_line(line) for line in document.lines],
        "findings": [plain(finding, json_number) for finding in document.findings],
        "advice": None if document.advice is None else plain(document.advice, json_number),
    }


def _answer(answer: TrustAnswer) -> dict[str, str]:
    sentence = f"{answer.choice} {answer.sentence}".strip()
    return {"reply": answer.reply, "sentence": sentence, "model": answer.model}


def _line(line: VerdictLine) -> dict[str, str]:
    names = ("tone", "question", "command", "model")
    return {"text": line.in_full, **{name: getattr(line, name) for name in names}}


def to_csv(document: Document) -> str:
    """Every record as a line of CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [column.name for column in fields(Record)]
    writer.writerow(names)
    for record in document.records:
        writer.writerow([_csv_cell(getattr(record, name)) for name in names])
    return clean(stream.getvalue())


def to_frame(records: Sequence[Record], library: str) -> Any:
    """Every record as a row of a frame of pandas, polars or pyarrow."""
    checked(library, Literal["pandas", "polars", "pyarrow"], "library")
    rows = [record.as_dict() for record in records]
    for row, record in zip(rows, records, strict=True):
        row["options"] = "; ".join(f"{k}={v}" for k, v in record.options.items())
        row.update({k: getattr(record, k) for k in row if isinstance(getattr(record, k), float)})
    table = pa.Table.from_pylist(rows)
    if library == "pyarrow":
        return table
    try:
        module = importlib.import_module(library)
    except ImportError as error:
        raise MissingDependencyError(
            f"to_frame({library!r}) needs {library}, which is not installed: "
            f"run pip install {library}, or use to_frame('pyarrow')"
        ) from error
    return table.to_pandas() if library == "pandas" else module.from_arrow(table)


def to_markdown(document: Document) -> str:
    """A report as Markdown: sentences, tables, the glossary."""
    blocks = [f"# {escape(document.title)}", _facts(document)]
    blocks.append("\n".join(map(sentence, document.opening.lines)))
    for grid in document.opening.grids:
        blocks += [f"## {escape(grid.title)}" if grid.title else "", *grid_blocks(grid)]
    for section in document.sections:
        if section.lines or section.grids:
            blocks += _section(section)
    if document.glossary:
        blocks += ["## Glossary", *(_glossary_block(entry) for entry in document.glossary)]
    if document.command:
        blocks += ["## Reproduce", fenced(document.command)]
    return legible("\n\n".join(filter(None, blocks)), lines=True) + "\n"


def _facts(document: Document) -> str:
    facts = document.facts.items()
    return "\n".join(f"- {escape(name)}: {escape(fact)}" for name, fact in facts)


def _section(section: Section) -> Iterator[str]:
    yield f"## {escape(section.title)}"
    yield "; ".join(escape(f"{name}: {fact}") for name, fact in section.facts.items())
    for model, lines in by_model(section.lines):
        yield f"**{escape(model, inside=True)}**" if model else ""
        yield "\n".join(sentence(line, section.title) for line in lines)
    for grid in section.grids:
        yield f"### {escape(grid.title)}" if grid.title else ""
        yield from grid_blocks(grid)


def escape(text: object, *, inside: bool = False) -> str:
    """Text that Markdown shows as it is, on one line, with no markup and no HTML.

    Inside of a line, nothing can begin a list.
    """
    line = " ".join(str(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", line)
    return line if inside else re.sub(r"^(\d*)([-+.)=])", r"\1\\\2", line)


def sentence(line: VerdictLine, section: str = "") -> str:
    """A sentence; within a section after its question, where that is another than the title."""
    question = ""
    if section and line.question not in ("", section):
        question = f"{escape(line.question, inside=True)}: "
    command = f" {_code(line.command)}" if line.command else ""
    return f"- {TONES[line.tone][0]} {question}{escape(line.in_full, inside=True)}{command}"


def grid_blocks(grid: Grid) -> Iterator[str]:
    """The notes of a grid, and a Markdown table of each of its parts."""
    yield from map(escape, grid.notes)
    for block in grid.parts:
        yield f"**{escape(block.title, inside=True)}**" if block.title else ""
        yield _rows(grid, block.rows)
    yield from map(escape, grid.footnotes)


def _rows(grid: Grid, rows: Sequence[Sequence[Cell]]) -> str:
    titles = [escape(column.title) for column in grid.columns]
    rules = ["--:" if column.numeric else ":--" for column in grid.columns]
    lines = [titles, rules, *([escape(_words(cell), inside=True) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _words(cell: Cell) -> str:
    """All that a cell shows."""
    sign = TONES[cell.tone][0] if cell.tone else ""
    return " ".join(filter(None, (sign, cell.text, cell.small)))


def _glossary_block(entry: Any) -> str:
    lines = (
        f"**{escape(entry.title or entry.name)}** ({escape(entry.name)})",
        escape(entry.meaning),
        f"Formula: {escape(entry.formula)}" if entry.formula else "",
        f"Source: {escape(entry.source)}" if entry.source else "",
    )
    return "  \n".join(filter(None, lines))


def _code(command: str) -> str:
    """A command within a line, as code; as text where it has lines of its own."""
    if "\n" in command:
        return escape(command, inside=True)
    fence = "`" * (_longest_run(command) + 1)
    return f"{fence} {command} {fence}" if "`" in command else f"`{command}`"


def _longest_run(command: str) -> int:
    """Of backticks."""
    return max((len(run) for run in re.findall(r"`+", command)), default=0)


def fenced(command: str) -> str:
    """A code block whose fence is longer than any run of backticks inside it."""
    fence = "`" * max(3, _longest_run(command) + 1)
    return f"{fence}sh\n{command}\n{fence}"


def _table(table: ResultTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "columns": {str(k): [_value(cell) for cell in v] for k, v in table.columns.items()},
        "labels": dict(table.labels),
        "model": table.model,
        "notes": table.notes,
    }


def _value(value: object) -> Any:
    return plain(formats.plain(value), json_number)


def _csv_cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    if isinstance(value, bool | int):
        return str(value)
    if hasattr(value, "items"):
        value = "; ".join(f"{name}={choice}" for name, choice in value.items())
    return unformulaic(str(value).replace("\r\n", "\n").replace("\r", "\n"))


# ---- a report as a model card, whose metadata Hugging Face reads ---------------------------------
# Source: github.com/huggingface/hub-docs, modelcard.md, `model-index`.

_NO_YAML = re.compile("[\ufeff\ufffe\uffff]")
_UNNAMED = "unnamed table"


def to_card(document: Document) -> str:
    """A model card: metadata, then the verdict, its data, its numbers and what was not asked."""
    blocks = [
        "\n".join(["---", *_metadata(document), "---"]),
        f"# {escape(document.title)}",
        *_section_blocks("Verdict", "\n".join(map(sentence, sentences(document)))),
    ]
    blocks += _section_blocks("Data", _facts(document))
    numbers = key_numbers(document.records)
    blocks += _section_blocks("Numbers", *(grid_blocks(numbers) if numbers.size else ()))
    for grid in grids.table_grids([t for t in document.tables if t.name == "not_judged"]):
        blocks += _section_blocks("Questions not judged", *grid_blocks(grid))
    if document.command:
        blocks += _section_blocks("Reproduce", fenced(document.command))
    return legible("\n\n".join(filter(None, blocks)), lines=True) + "\n"


def _section_blocks(title: str, *blocks: str) -> Iterator[str]:
    """A section under its heading, if there is anything in it."""
    if any(blocks):
        yield f"## {title}"
        yield from blocks


def _metadata(document: Document) -> Iterator[str]:
    """The lines of the front matter: each model's key numbers, with their errors."""
    yield "tags:"
    yield "- uncertainty"
    finite = [record for record in document.records if math.isfinite(record.value)]
    models, rows = key_records(finite)
    source = _text(document.facts.get("Source", _UNNAMED))
    records_by_model = [
        list(filter(None, (row[column] for row in rows))) for column in range(len(models))
    ]
    if any(records_by_model):
        yield "model-index:"
    for model, records_of_model in zip(models, records_by_model, strict=True):
        if records_of_model:
            yield from _entry(model, source, records_of_model)


def _entry(model: str, source: str, records: Sequence[Record]) -> Iterator[str]:
    """What the front matter says of a model."""
    sets = any(record.source == LabelSets.kind for record in records)
    yield f"- name: {_text(model)}"
    yield "  results:"
    yield "  - task:"
    yield f"      type: tabular-{'classification' if sets else 'regression'}"
    yield "    dataset:"
    yield "      type: table"
    yield f"      name: {source}"
    yield "    metrics:"
    for record in records:
        yield from _metric(record)


def _metric(record: Record) -> Iterator[str]:
    """A number of the front matter; what is not known is left out."""
    yield f"    - type: {_text(record.metric)}"
    yield f"      name: {_text(measured(record))}"
    yield f"      value: {_number(record.value)}"
    names = ("coverage", "n", "standard_error", "lower", "upper", "confidence")
    arguments = {name: getattr(record, name) for name in names}
    finite = [name for name, value in arguments.items() if math.isfinite(value)]
    if finite:
        yield "      args:"
        yield from (f"        {name}: {_number(arguments[name])}" for name in finite)


def _text(text: str) -> str:
    """A string that YAML reads as it is: JSON's strings are YAML's, too."""
    return json.dumps(_NO_YAML.sub("\ufffd", legible(text)), ensure_ascii=False)


def _number(value: float) -> str:
    """A number that YAML 1.1 reads as one: it wants a point before an exponent."""
    text = repr(float(value))
    mantissa, sign, exponent = text.partition("e")
    return f"{mantissa}.0e{exponent}" if sign and "." not in mantissa else text


# ---- short forms of a report: what a terminal, a pull request and a notebook show of it ----------

# Rows of the key numbers: with verdict, groups and trials, a screen or two of 50 lines. So are the
# limits below. By eye.
_MAX_MEASURES = 10
# Of several coverages, that nearest to the usual one speaks for all but coverage itself.
_MAIN_COVERAGE = 0.9
# Those nearest to it, as the ten rows are for other measures, too.
_MAX_COVERAGES = 3
_ORDER: Final[tuple[Tone, ...]] = ("bad", "caution", "negligible", "good", "undecided", "info")
"""What is told first."""
_MARKED: Final[tuple[Tone, ...]] = ("good", "undecided")
"""What of several models marks tell, and no sentence."""
# Sentences, groups and trials in a short form: the rest is in the page.
_MAX_SENTENCES = 6
_MAX_GROUPS = 6
_MAX_TRIALS = 5
_REST = "The HTML and JSON reports contain all numbers."
_FACTS = ("Source", "Files", "Rows", "Models", "Dropped rows", "Reading", "Notes")


def in_brief(document: Document) -> Document:
    """A screen or two of a report: its verdict, the key numbers, groups, and what was tried."""
    states = states_beside(document)
    ranked = [table.columns["model"] for table in document.tables if table.name == OVERVIEW]
    first = [str(name) for names in ranked for name in names][:MAX_COLUMNS]
    numbers = key_numbers(document.records, first)
    groups = [t for t in document.tables if t.name == "groups" and len(t)]
    groups = [t for t in groups if not first or t.model in first]
    tried = [_best_first(t) for t in document.tables if t.name == "mends" and document.advice]
    tables = [*([grids.groups_beside(groups, limit=_MAX_GROUPS)] if groups else [])]
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


def _best_first(tried: ResultTable) -> ResultTable:
    """The methods that save most, of those that were tried."""
    gain = np.asarray(tried.columns["gain"], dtype=np.float64)
    order = np.argsort(np.where(np.isnan(gain), -np.inf, gain), kind="stable")[::-1][:_MAX_TRIALS]
    columns = {name: column[order] for name, column in tried.columns.items()}
    remark = f" The best {len(order)} of {len(tried)}." if len(order) < len(tried) else ""
    return replace(tried, columns=columns, notes=tried.notes + remark)


def pull_request(document: Document) -> str:
    """A screen or two of Markdown, which says what holds the rest."""
    brief = in_brief(document)
    *earlier, last = brief.opening.grids or (Grid(title="", columns=(), parts=()),)
    last_grid = replace(last, notes=(*last.notes, _REST))
    return replace(brief, opening=replace(brief.opening, grids=(*earlier, last_grid))).to_markdown()


def sentences(document: Document) -> tuple[VerdictLine, ...]:
    """Every sentence once: the headline and the next step, then what is wrong, then the rest."""
    first = document.opening.lines
    rest_of_lines = [line for line in document.lines if line not in first]
    return (*first, *sorted(rest_of_lines, key=lambda line: _ORDER.index(line.tone)))


def _first_lines(document: Document) -> tuple[VerdictLine, ...]:
    """Of several models: the headline, the next step, and what is most wrong."""
    first = len(document.opening.lines)
    every_line = sentences(document)
    return (
        *every_line[:first],
        *[line for line in every_line[first:] if line.tone not in _MARKED][:_MAX_SENTENCES],
    )


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
    answered = _answered_of_all(records)
    models, rows_of = key_records(records, first)
    several = len(models) != 1
    rows = []
    for records_of_row in rows_of:
        cells = map(_estimate, records_of_row) if several else _in_full(records_of_row[0])
        rows.append((Cell(measured(next(filter(None, records_of_row)))), *cells))
    titles = models if several else ["Value", "Interval", "Perfect"]
    notes = ["Value ± standard error."] if several and rows else []
    judged = {model: _coverages(answered, model) for model in models}
    if len(set(judged.values()) - {""}) > 1:
        coverages = ", ".join(f"{model} at {at}" for model, at in judged.items() if at)
        notes.append(f"Blanks: models are judged at different coverages ({coverages}).")
    columns = (Column("Measure"), *(Column(title, numeric=True) for title in titles))
    return Grid.of("Key numbers", columns, rows, notes)


def key_records(
    records: Sequence[Record], first: Sequence[str] = ()
) -> tuple[list[str], list[tuple[Record | None, ...]]]:
    """The models, and the key numbers: for each measure and coverage, a record of each model."""
    answered = _answered_of_all(records)
    models = list(dict.fromkeys(record.model for record in answered))
    models = [name for name in first if name in models] or models
    record_of = {(r.key, r.model): r for r in reversed(answered)}
    several = len(models) != 1
    chosen = _key_rows([r for r in answered if not (several and r.metric in grids.OF_KINDS)])
    rows = [tuple(record_of.get((key, model)) for model in models) for key in chosen]
    return models, [row for row in rows if any(row)]


def _answered_of_all(records: Sequence[Record]) -> list[Record]:
    """Answered, and of all rows."""
    return [r for r in records if not r.group and not math.isnan(r.value)]


def measured(record: Record) -> str:
    """A measure in words, with its coverage."""
    at = "" if math.isnan(record.coverage) else f" at {formats.level(record.coverage)}"
    return catalogue()[record.metric].title + at


def _coverages(answered: Sequence[Record], model: str) -> str:
    """Where a model's coverage is judged, in words."""
    metric = "empirical_coverage"
    coverages = {r.coverage for r in answered if r.model == model and r.metric == metric}
    return ", ".join(formats.level(at) for at in sorted(coverages) if not math.isnan(at))


def _key_rows(answered: Sequence[Record]) -> list[Key]:
    """Which measures at which coverages."""
    keys = dict.fromkeys(record.key for record in answered)
    coverages = list(dict.fromkeys(key.coverage for key in keys))
    main = min(
        (at for at in coverages if at), key=lambda at: abs(at - _MAIN_COVERAGE), default=None
    )
    chosen: list[Key] = []
    for name in key_measures():
        levels = [Key(name, at) for at in coverages if Key(name, at) in keys]
        if name == "empirical_coverage":
            levels.sort(key=lambda key: abs((key.coverage or 0.0) - (main or 0.0)))
            levels = levels[:_MAX_COVERAGES]
            levels.sort(key=lambda key: key.coverage or 0.0)
        else:
            levels = [key for key in levels if key.coverage in (main, None)]
        chosen += levels
    places = {name: position for position, name in enumerate(catalogue())}
    return sorted(chosen[:_MAX_MEASURES], key=lambda key: places[key.metric])


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
        f"<li>{_mark(line.tone)} {html.escape(line.in_full)}"
        + (f"<br><code>{html.escape(line.command)}</code>" if line.command else "")
        + "</li>"
        for line in brief.lines
    )
    drawn = [figure for choice in brief.choices[:1] for figure in choice.options[0].figures]
    return (
        f'<ul style="list-style:none;padding-left:0">{lines}</ul>'
        + "".join(map(html_table, brief.grids))
        + "".join(map(_picture, drawn))
    )


def _mark(tone: Tone) -> str:
    return f'<span style="color:{_COLOURS[tone]}" title="{TONES[tone][1]}">{TONES[tone][0]}</span>'


def html_table(grid: Grid) -> str:
    """A table as a fragment of HTML, for a notebook."""
    sides = ["right" if column.numeric else "left" for column in grid.columns]
    head = "".join(
        f'<th style="text-align:{side};padding:2px 8px">{html.escape(column.title)}</th>'
        for side, column in zip(sides, grid.columns, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align:{side};padding:2px 8px">{_cell(cell)}</td>'
            for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for block in grid.parts
        for row in block.rows
    )
    notes = "".join(
        f"<p><small>{html.escape(note)}</small></p>" for note in (*grid.notes, *grid.footnotes)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{notes}"


def _cell(cell: Cell) -> str:
    parts = (
        _mark(cell.tone) if cell.tone else "",
        html.escape(cell.text),
        f"<small>{html.escape(cell.small)}</small>" if cell.small else "",
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
    named = (
        f'<svg fill="currentColor" role="img" aria-label="{html.escape(describe_figure(figure))}"'
    )
    _, _, drawn = stream.getvalue().partition("<svg")
    text = named + drawn
    text = text.replace(f"stroke: {LIGHT.grid}", "stroke: currentColor; stroke-opacity: 0.15")
    return text.replace("#000000", "currentColor")
