"""What reaches the terminal: text from data as it stands, which gives the terminal no orders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from typing import Any

import rich.console
from rich import markup
from rich.segment import Segment

from howsure.core.text import legible

SIGNS = {
    "good": "[green]✓[/green]",
    "caution": "[yellow]○[/yellow]",
    "bad": "[red]✗[/red]",
    "negligible": "[cyan]≈[/cyan]",
    "undecided": "[yellow]?[/yellow]",
    "info": "[cyan]→[/cyan]",
}
"""What stands before a line of a verdict, by its state."""


class Console(rich.console.Console):
    """A console whose text is legible, whoever wrote it; stdout, or stderr."""

    def __init__(self, **options: Any) -> None:
        if not os.environ.get("COLUMNS", "unset").strip("0"):  # no columns: rich would print none
            options.setdefault("width", shutil.get_terminal_size().columns)
        super().__init__(**options, emoji=False, highlight=False)

    def render(self, *args: Any, **options: Any) -> Iterable[Segment]:
        """As any console, but for what would steer the terminal: that is for styles alone."""
        for segment in super().render(*args, **options):
            text, style, control = segment
            yield segment if control else Segment(legible(text, lines=True), style)


def escape(text: str) -> str:
    """Text on one line that is no markup: all of data, and all that may hold some."""
    return markup.escape(legible(text))


def say_written(console: Console, *paths: object) -> None:
    """A line for each file that was written."""
    for path in paths:
        console.print(f"written: {escape(str(path))}", soft_wrap=True)
