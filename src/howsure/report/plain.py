"""A report as JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Literal

import pyarrow as pa

from howsure.core import formats
from howsure.core.convert import checked, json_number, plain
from howsure.core.errors import MissingDependencyError
from howsure.core.records import Record, Table
from howsure.core.text import clean, legible
from howsure.inputs.write import unformulaic
from howsure.report.content import TONES, PageContent
from howsure.report.overview import OVERVIEW
from howsure.report.page import sections

FORMAT = "howsure-report/1"
"""The name and version of the JSON form."""


def to_json(content: PageContent) -> str:
    """Everything in a report as JSON: every record, curve and table."""
    whole = {
        "format": FORMAT,
        "title": content.title,
        "command": content.command,
        "facts": {str(name): str(fact) for name, fact in content.facts.items()},
        "verdict": [plain(line) for line in content.verdict],
        "findings": [plain(finding, json_number) for finding in content.findings],
        "advice": None if content.advice is None else plain(content.advice, json_number),
        "records": [record.as_dict() for record in content.records],
        "curves": [plain(curve, json_number) for curve in content.curves],
        "tables": [_table(table) for table in content.tables],
        "glossary": [plain(entry) for entry in content.glossary],
    }
    return clean(json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"


def to_csv(content: PageContent) -> str:
    """Every record as a line of CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [part.name for part in fields(Record)]
    writer.writerow(names)
    for record in content.records:
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


def to_markdown(content: PageContent) -> str:
    """A report as Markdown: the verdict, every record, every table, the glossary."""
    blocks = [f"# {escape(content.title)}"]
    if content.facts:
        facts = content.facts.items()
        blocks.append("\n".join(f"- {escape(name)}: {escape(fact)}" for name, fact in facts))
    first = [table for table in content.tables if table.name == OVERVIEW]
    blocks += _table_blocks(first, content)
    if content.verdict:
        blocks += ["## Verdict", "\n".join(_verdict_line(line) for line in content.verdict)]
    blocks += _record_blocks(content)
    blocks += _table_blocks([t for t in content.tables if t.name != OVERVIEW], content)
    if content.glossary:
        blocks += ["## Glossary", *(_glossary_block(entry) for entry in content.glossary)]
    if content.command:
        blocks += ["## Reproduce", fenced(content.command)]
    return legible("\n\n".join(blocks), lines=True) + "\n"


def _table_blocks(tables: Sequence[Table], content: PageContent) -> list[str]:
    longest = max(map(len, tables), default=0)
    blocks: list[str] = []
    for grid in sections.table_grids(tables, content.glossary, limit=longest):
        blocks += [f"## {escape(grid.title)}", *map(escape, grid.notes), _markdown_grid(grid)]
    return blocks


def escape(text: object, *, inside: bool = False) -> str:
    """Text that Markdown shows as it is, on one line, with no markup and no HTML.

    Inside of a line, nothing can begin a list.
    """
    line = " ".join(str(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", line)
    return line if inside else re.sub(r"^(\d*)([-+.)=])", r"\1\\\2", line)


def _verdict_line(line: Any) -> str:
    command = f" `{line.command.replace('`', '')}`" if line.command else ""
    return f"- {TONES[line.tone][0]} {escape(line.text, inside=True)}{command}"


def _record_blocks(content: PageContent) -> list[str]:
    blocks = []
    grid = sections.record_grid(content)
    if grid is not None:
        blocks.append("## Numbers")
        for part in grid.parts:
            if part.title:
                blocks.append(f"### {escape(part.title)}")
            blocks.append(_markdown_rows(grid, part.rows))
    groups = sections.group_grid(content, limit=len(content.records))
    if groups is not None:
        blocks += [f"## {escape(groups.title)}", _markdown_grid(groups)]
    lost = sections.unanswered_grid(content, limit=len(content.records))
    if lost is not None:
        blocks += [f"## {escape(lost.title)}", _markdown_grid(lost)]
    return blocks


def _markdown_grid(grid: sections.Grid) -> str:
    return _markdown_rows(grid, [row for part in grid.parts for row in part.rows])


def _markdown_rows(grid: sections.Grid, rows: Sequence[Sequence[sections.Cell]]) -> str:
    titles = [escape(column.title) for column in grid.columns]
    rules = ["--:" if column.numeric else ":--" for column in grid.columns]
    cells = [
        [escape(f"{cell.text} {cell.small}".strip(), inside=True) for cell in row] for row in rows
    ]
    lines = [titles, rules, *cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _glossary_block(entry: Any) -> str:
    parts = [
        f"**{escape(entry.title or entry.name)}** ({escape(entry.name)})",
        escape(entry.meaning),
    ]
    parts.append(f"Formula: {escape(entry.formula)}" if entry.formula else "")
    parts.append(f"Source: {escape(entry.source)}" if entry.source else "")
    return "  \n".join(part for part in parts if part)


def fenced(command: str) -> str:
    """A code block whose fence is longer than any run of backticks inside it."""
    longest = max((len(run) for run in re.findall(r"`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
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
