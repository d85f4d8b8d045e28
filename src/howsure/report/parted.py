"""What reports of experiments have in common: a headline, parts, and every form."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from howsure.core.records import Curve, Record, Table
from howsure.report.document import Document, GlossaryEntry, Section, VerdictLine, save
from howsure.report.pointwise_sections import WorldPart


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

    def document(self) -> Document:
        """Everything, without its form."""
        tables, curves = self.data()
        first = () if self.headline is None else (self.headline,)
        return Document(
            title=self.title,
            opening=Section(title="Verdict", lines=first),
            sections=tuple(
                Section(
                    title=part.name,
                    lines=part.lines,
                    choices=part.panels,
                    grids=part.grids,
                    facts=part.facts,
                )
                for part in self.parts
            ),
            lines=self.lines,
            records=self.records,
            curves=curves,
            tables=tables,
            glossary=self.glossary,
            command=self.command,
            facts=self.facts,
        )

    def to_html(self) -> str:
        """One self-contained page that works offline."""
        return self.document().to_html()

    def to_markdown(self) -> str:
        """Sentences and tables as Markdown."""
        return self.document().to_markdown()

    def to_json(self) -> str:
        """Every record, table and curve as JSON."""
        return self.document().to_json()

    def to_csv(self) -> str:
        """Every record as a line of CSV."""
        return self.document().to_csv()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the form that the ending names: .html, .md, .json or .csv, whole or not at all."""
        save(self, path)
