"""`howsure metrics` and `howsure schema`: measures for people, and forms for programs."""

from __future__ import annotations

import json
from pathlib import Path

from rich.padding import Padding

from howsure.cli.entry import echo
from howsure.cli.terminal import Console, escape
from howsure.core.files import atomic_write, check_outputs
from howsure.core.schemas import SchemaName, schema
from howsure.engine.catalogue import catalogue, metric_named
from howsure.engine.metric import Metric


def list_measures(name: str | None) -> None:
    """Print every measure, or one in full."""
    console = Console()
    if name is not None:
        _print_one(console, metric_named(name, "NAME"))
        return
    question = None
    for metric in catalogue().values():
        if metric.question != question:
            question = metric.question
            console.print(f"\n[bold]{escape(question.value)}[/bold]", highlight=True)
        title = f"[cyan]{metric.name}[/cyan]  {escape(metric.title)}"
        console.print(title, soft_wrap=True)
        facts = (metric.direction.value, f"tests {metric.notion.value}", f"units {metric.units}")
        for text in (metric.formula, f"{'; '.join(facts)}; source: {metric.source}"):
            console.print(Padding(escape(text), (0, 0, 0, 4)), style="dim")
    console.print("\nhowsure metrics NAME shows one measure in full.")


def _print_one(console: Console, metric: Metric) -> None:
    console.print(f"[bold]{escape(metric.title)}[/bold] ({metric.name})", highlight=True)
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
            console.print(f"  {label:<10} {escape(text)}")


def print_schema(name: SchemaName, output: Path | None) -> None:
    """Print the schema of what howsure writes for programs, or write it."""
    text = json.dumps(schema(name), ensure_ascii=False, indent=2)
    if output is None:
        for line in text.split("\n"):
            echo(line)
        return
    check_outputs([output])
    atomic_write(output, f"{text}\n")
    echo(f"written: {output}")
