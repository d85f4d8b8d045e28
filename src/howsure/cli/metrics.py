"""`howsure metrics`: the catalogue, for people."""

from __future__ import annotations

from rich.padding import Padding

from howsure.cli.terminal import Console, escape
from howsure.core.errors import InputError
from howsure.metrics.catalogue import catalogue
from howsure.metrics.metric import Metric


def run(name: str | None) -> None:
    """Print every measure, or one in full."""
    console = Console()
    entries = catalogue()
    if name is not None:
        if name not in entries:
            raise InputError(f"measure must be one of {', '.join(entries)}, got {name!r}")
        _print_one(console, entries[name])
        return
    question = None
    for metric in entries.values():
        if metric.question != question:
            question = metric.question
            console.print(f"\n[bold]{escape(question.value)}[/bold]")
        title = f"[cyan]{metric.name}[/cyan]  {escape(metric.title)}"
        console.print(title, highlight=False, soft_wrap=True)
        facts = (metric.direction.value, f"tests {metric.notion.value}", f"units {metric.units}")
        for text in (metric.formula, f"{'; '.join(facts)}; source: {metric.source}"):
            console.print(Padding(escape(text), (0, 0, 0, 4)), style="dim", highlight=False)
    console.print("\nhowsure metrics NAME shows one in full.", highlight=False)


def _print_one(console: Console, metric: Metric) -> None:
    console.print(f"[bold]{escape(metric.title)}[/bold] ({metric.name})")
    for label, text in (
        ("question", metric.question.value),
        ("meaning", metric.meaning),
        ("formula", metric.formula),
        ("direction", metric.direction.value),
        ("units", metric.units),
        ("tests", metric.notion.value),
        ("source", metric.source),
    ):
        console.print(f"  {label:<10} {escape(text)}", highlight=False)
