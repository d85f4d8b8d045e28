"""A report as JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, Final, Literal

import pyarrow as pa

from howsure.core import formats
from howsure.core.convert import checked, json_number, plain
from howsure.core.errors import MissingDependencyError
from howsure.core.formats import clean, legible
from howsure.core.records import Record, Table
from howsure.inputs.write import unformulaic
from howsure.predictions import LabelSets
from howsure.report import grids
from howsure.report.document import (
    TONES,
    Cell,
    Document,
    Grid,
    Section,
    VerdictLine,
    by_model,
)
from howsure.report.short_forms import key_numbers, key_records, measured, sentences

FORMAT = "howsure-report/1"
"""The name and version of the JSON form."""


def to_json(document: Document) -> str:
    """Everything in a report as JSON: every record, curve and table."""
    whole = {
        "format": FORMAT,
        **verdict_parts(document),
        "records": [record.as_dict() for record in document.records],
        "curves": [plain(curve, json_number) for curve in document.curves],
        "tables": [_table(table) for table in document.tables],
        "glossary": [plain(entry) for entry in document.glossary],
    }
    return clean(json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"


def verdict_parts(document: Document) -> dict[str, Any]:
    """What the JSON form of a report holds before its numbers."""
    return {
        "title": document.title,
        "command": document.command,
        "facts": {str(name): str(fact) for name, fact in document.facts.items()},
        "answer": None if document.answer is None else plain(document.answer),
        "verdict": [plain(line) for line in document.lines],
        "findings": [plain(finding, json_number) for finding in document.findings],
        "advice": None if document.advice is None else plain(document.advice, json_number),
    }


def to_csv(document: Document) -> str:
    """Every record as a line of CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [part.name for part in fields(Record)]
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
            f"run pip install {library}, or take to_frame('pyarrow')"
        ) from error
    return table.to_pandas() if library == "pandas" else module.from_arrow(table)


def to_markdown(document: Document) -> str:
    """A report as Markdown: sentences, tables, the glossary."""
    blocks = [f"# {escape(document.title)}"]
    if document.facts:
        facts = document.facts.items()
        blocks.append("\n".join(f"- {escape(name)}: {escape(fact)}" for name, fact in facts))
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
    asked = ""
    if section and line.question not in ("", section):
        asked = f"{escape(line.question, inside=True)}: "
    command = f" {_code(line.command)}" if line.command else ""
    return f"- {TONES[line.tone][0]} {asked}{escape(line.text, inside=True)}{command}"


def grid_blocks(grid: Grid) -> Iterator[str]:
    """The notes of a grid, and a Markdown table of each of its parts."""
    yield from map(escape, grid.notes)
    for part in grid.parts:
        yield f"**{escape(part.title, inside=True)}**" if part.title else ""
        yield _rows(grid, part.rows)
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
    parts = [
        f"**{escape(entry.title or entry.name)}** ({escape(entry.name)})",
        escape(entry.meaning),
    ]
    parts.append(f"Formula: {escape(entry.formula)}" if entry.formula else "")
    parts.append(f"Source: {escape(entry.source)}" if entry.source else "")
    return "  \n".join(part for part in parts if part)


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


def _table(table: Table) -> dict[str, Any]:
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
    if isinstance(value, str):
        return _harmless(str(value))
    if hasattr(value, "items"):
        return _harmless("; ".join(f"{name}={choice}" for name, choice in value.items()))
    return _harmless(str(value))


def _harmless(text: str) -> str:
    return unformulaic(text.replace("\r\n", "\n").replace("\r", "\n"))


# ---- a report as a model card, whose metadata Hugging Face reads ---------------------------------
# Source: github.com/huggingface/hub-docs, modelcard.md, `model-index`.

_NO_YAML: Final = re.compile("[\ufeff\ufffe\uffff]")
_UNNAMED: Final = "unnamed table"


def to_card(document: Document) -> str:
    """A model card: metadata, then the verdict, its data, its numbers and what was not asked."""
    blocks = [
        "\n".join(["---", *_metadata(document), "---"]),
        f"# {escape(document.title)}",
        *_section_blocks("Verdict", "\n".join(map(sentence, sentences(document)))),
    ]
    facts = document.facts.items()
    told = "\n".join(f"- {escape(name)}: {escape(fact)}" for name, fact in facts)
    blocks += _section_blocks("What it was assessed on", told)
    numbers = key_numbers(document.records)
    blocks += _section_blocks("Numbers", *(grid_blocks(numbers) if numbers.size else ()))
    for grid in grids.table_grids([t for t in document.tables if t.name == "not_judged"]):
        blocks += _section_blocks("What was not asked", *grid_blocks(grid))
    if document.command:
        blocks += _section_blocks("How to repeat it", fenced(document.command))
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
    own = [list(filter(None, (row[place] for row in rows))) for place in range(len(models))]
    if any(own):
        yield "model-index:"
    for model, told in zip(models, own, strict=True):
        if told:
            yield from _entry(model, source, told)


def _entry(model: str, source: str, told: Sequence[Record]) -> Iterator[str]:
    """What the front matter says of a model."""
    sets = any(record.source == LabelSets.kind for record in told)
    yield f"- name: {_text(model)}"
    yield "  results:"
    yield "  - task:"
    yield f"      type: tabular-{'classification' if sets else 'regression'}"
    yield "    dataset:"
    yield "      type: table"
    yield f"      name: {source}"
    yield "    metrics:"
    for record in told:
        yield from _metric(record)


def _metric(record: Record) -> Iterator[str]:
    """A number of the front matter; what is not known is left out."""
    yield f"    - type: {_text(record.metric)}"
    yield f"      name: {_text(measured(record))}"
    yield f"      value: {_number(record.value)}"
    names = ("coverage", "n", "standard_error", "lower", "upper", "confidence")
    held = {name: getattr(record, name) for name in names}
    known = {name: value for name, value in held.items() if math.isfinite(value)}
    if known:
        yield "      args:"
        yield from (f"        {name}: {_number(value)}" for name, value in known.items())


def _text(text: str) -> str:
    """A string that YAML reads as it is: JSON's strings are YAML's, too."""
    return json.dumps(_NO_YAML.sub("\ufffd", legible(text)), ensure_ascii=False)


def _number(value: float) -> str:
    """A number that YAML 1.1 reads as one: it wants a point before an exponent."""
    told = repr(float(value))
    mantissa, sign, exponent = told.partition("e")
    return f"{mantissa}.0e{exponent}" if sign and "." not in mantissa else told
