"""`howsure metrics`: the catalogue, for people."""

from __future__ import annotations

from rich.padding import Padding

from howsure.cli.terminal import Console, escape
from howsure.engine.catalogue import catalogue, metric_named
from howsure.engine.metric import Metric


def run(name: str | None) -> None:
    """Print every measure, or one in full."""
    console = Console()
    if name is not None:
        _print_one(console, metric_named(name, "NAME"))
        return
    question = None
    for metric in catalogue().values():
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
        ("also", ", ".join(metric.synonyms)),
        ("meaning", metric.meaning),
        ("formula", metric.formula),
        ("direction", metric.direction.value),
        ("units", metric.units),
        ("tests", metric.notion.value),
        ("source", metric.source),
    ):
        if text:
            console.print(f"  {label:<10} {escape(text)}", highlight=False)
