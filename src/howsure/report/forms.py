"""The forms of a report: which one a file's ending names, and tables as Markdown."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol

from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure.report import plain
from howsure.report.page.sections import Grid


class Formed(Protocol):
    """A report that can be written in every form."""

    def to_html(self) -> str:
        """One self-contained page that works offline."""

    def to_markdown(self) -> str:
        """Sentences and tables as Markdown."""

    def to_json(self) -> str:
        """Everything as JSON."""

    def to_csv(self) -> str:
        """Every record as a line of CSV."""


_ENDINGS: Final = (".html", ".md", ".json", ".csv")


def form_of(path: str | os.PathLike[str]) -> str:
    """The ending of a file that a report may be written to."""
    ending = Path(path).suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(f"path must end in {', '.join(_ENDINGS)}, got {os.fspath(path)!r}")
    return ending


def save(report: Formed, path: str | os.PathLike[str]) -> None:
    """Write the form that the ending names, whole or not at all."""
    makers = (report.to_html, report.to_markdown, report.to_json, report.to_csv)
    atomic_write(path, dict(zip(_ENDINGS, makers, strict=True))[form_of(path)]())


def grid_markdown(grid: Grid) -> str:
    """A grid as a Markdown table; the title of a part goes before its rows' first cells."""
    several = len(grid.parts) > 1
    titles = [*(["Part"] if several else []), *(column.title for column in grid.columns)]
    rules = [*([":--"] if several else [])]
    rules += ["--:" if column.numeric else ":--" for column in grid.columns]
    rows = [
        [*([part.title] if several else []), *(f"{c.text} {c.small}".strip() for c in row)]
        for part in grid.parts
        for row in part.rows
    ]
    lines = [[plain.escape(title) for title in titles], rules]
    lines += [[plain.escape(cell) for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
