"""What reports of experiments have in common: a headline, parts, and every form."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from howsure.core.records import Curve, Record, Table
from howsure.core.text import legible
from howsure.report import plain
from howsure.report.content import GlossaryEntry, PageContent, VerdictLine
from howsure.report.forms import grid_markdown, save
from howsure.report.page.pointwise_render import render_pointwise
from howsure.report.page.pointwise_sections import WorldPart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartedReport(ABC):
    """A report in parts, in every form. Subclasses are final, and say what else they hold.

    Attributes
    ----------
    title : str
        A heading.
    headline : VerdictLine, optional
        The main message; None where nothing could be judged.
    parts : tuple of WorldPart
        Sentences, tables and figures: one a world or task, and what is said across them.
    facts : mapping of str to str
        What else is known.
    command : str
        What makes the report again.
    """

    glossary: ClassVar[tuple[GlossaryEntry, ...]]

    title: str
    headline: VerdictLine | None
    parts: tuple[WorldPart, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    command: str = ""

    @abstractmethod
    def data(self) -> tuple[tuple[Table, ...], tuple[Curve, ...]]:
        """Tables and curves, for the forms that programs read."""

    @property
    def lines(self) -> tuple[VerdictLine, ...]:
        """Every sentence, the main message first."""
        first = () if self.headline is None else (self.headline,)
        rest = (
            replace(line, question=f"{part.name}, {line.question}")
            for part in self.parts
            for line in part.lines
        )
        return (*first, *rest)

    @property
    def records(self) -> tuple[Record, ...]:
        """Every number, part by part."""
        return tuple(record for part in self.parts for record in part.records)

    def content(self) -> PageContent:
        """Everything, without its form."""
        tables, curves = self.data()
        return PageContent(
            title=self.title,
            verdict=self.lines,
            records=self.records,
            curves=curves,
            tables=tables,
            glossary=self.glossary,
            command=self.command,
            facts=self.facts,
        )

    def to_html(self) -> str:
        """One self-contained page that works offline."""
        shell = PageContent(
            title=self.title, glossary=self.glossary, command=self.command, facts=self.facts
        )
        return render_pointwise(shell, self.headline, self.parts)

    def to_markdown(self) -> str:
        """Sentences and tables as Markdown."""
        blocks = [f"# {plain.escape(self.title)}"]
        if self.headline is not None:
            blocks.append(f"**{plain.escape(self.headline.text)}**")
        for part in self.parts:
            if part.lines or part.grids:
                blocks += _told(part)
        if self.command:
            blocks += ["## Reproduce", plain.fenced(self.command)]
        return legible("\n\n".join(filter(None, blocks)), lines=True) + "\n"

    def to_json(self) -> str:
        """Every record, table and curve as JSON."""
        return plain.to_json(self.content())

    def to_csv(self) -> str:
        """Every record as a line of CSV."""
        return plain.to_csv(self.content())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the form that the ending names: .html, .md, .json or .csv, whole or not at all."""
        save(self, path)


def _told(part: WorldPart) -> Iterator[str]:
    """The blocks of a part: facts, sentences, tables."""
    yield f"## {plain.escape(part.name)}"
    yield "; ".join(plain.escape(f"{name}: {fact}") for name, fact in part.facts.items())
    yield "\n".join(
        f"- **{plain.escape(line.question)}**: {plain.escape(line.text)}" for line in part.lines
    )
    for grid in part.grids:
        yield f"### {plain.escape(grid.title)}"
        yield from map(plain.escape, grid.notes)
        yield grid_markdown(grid)
