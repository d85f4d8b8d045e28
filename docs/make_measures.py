"""Write a page for each measure of the catalogue into docs/measures."""

from __future__ import annotations

import inspect
import math
from pathlib import Path

from howsure import metrics
from howsure.metrics.catalogue import catalogue
from howsure.metrics.metric import Metric

FOLDER = Path(__file__).parent / "measures"


def page(metric: Metric) -> str:
    """The page of one measure."""
    if isinstance(metric.target, str):
        target = {
            "coverage": "the nominal coverage",
            "miss": "one minus the nominal coverage",
            "half miss": "half of one minus the nominal coverage",
        }[metric.target]
    else:
        target = "depends on the data" if math.isnan(metric.target) else f"{metric.target:g}"
    needs = [f"`{', '.join((*form.needs, *form.keywords.values()))}`" for form in metric.forms]
    notes = [f"- {form.note}" for form in metric.forms if form.note]
    functions = [f"`howsure.metrics.{name}`" for name in _functions(metric)]
    scale = metric.laws.scale
    powers = {"varies": "varies", "log": "adds log s", 0.0: "invariant", 1.0: "multiplies it by s"}
    power = powers[scale]
    lines = [
        f"# {metric.title}",
        "",
        f"`{metric.name}` — {metric.meaning}",
        "",
        "| | |",
        "|---|---|",
        f"| answers | {metric.question.value} |",
        f"| formula | {_cell(metric.formula)} |",
        f"| direction | {metric.direction.value} |",
        f"| units | {metric.units} |",
        f"| notion it tests | {metric.notion.value} |",
        f"| value of a perfect model | {target} |",
        f"| computed at each coverage | {'yes' if metric.per_coverage else 'no'} |",
        f"| computed from | {' or '.join(needs) if needs else 'the groups of rows'} |",
        f"| source | {metric.source} |",
        *([f"| also called | {_cell(', '.join(metric.synonyms))} |"] if metric.synonyms else []),
        *([f"| on arrays | {', '.join(functions)} |"] if functions else []),
        "",
        "## Laws",
        "",
        f"Adding a constant to y and predictions: {metric.laws.translation}. "
        f"Multiplying them by s > 0: {power}. "
        f"Negating them: {_reflection(metric.laws.reflection)}. "
        "Permuting rows changes nothing, and a frequency weight of two is a row seen twice.",
        *([f"{metric.laws.why[0].upper()}{metric.laws.why[1:]}."] if metric.laws.why else []),
        *(["", "## Notes", "", *notes] if notes else []),
        "",
    ]
    return "\n".join(lines)


def index() -> str:
    """The list of pages."""
    lines = ["# Measures", ""]
    question = None
    for metric in catalogue().values():
        if metric.question != question:
            question = metric.question
            lines += [f"## {question.value}", ""]
        lines.append(f"- [{metric.title}]({metric.name}.md): {metric.meaning}")
    lines += [
        "## On arrays",
        "",
        "`howsure.metrics` has these functions, which need no report.",
        "",
    ]
    for name in metrics.__all__:
        function = getattr(metrics, name)
        first = inspect.getdoc(function).partition("\n")[0]
        parameters = ", ".join(inspect.signature(function).parameters)
        lines.append(f"- `{name}({parameters})`: {first}")
    return "\n".join(lines).replace("\n## ", "\n\n## ") + "\n"


def pages() -> dict[str, str]:
    """Every file of the folder, by name."""
    made = {f"{name}.md": page(metric) for name, metric in catalogue().items()}
    return {"README.md": index(), **made}


def _functions(metric: Metric) -> list[str]:
    """Exported functions that make it: of its name, of its forms, and of one kind of content."""
    made = [form.function for form in metric.forms]
    rest = [name for name in metrics.__all__ if name not in catalogue()]
    kinds = {name for name in rest if name.startswith(f"{metric.name}_")}
    named = {name for name in metrics.__all__ if getattr(metrics, name) in made}
    return [n for n in metrics.__all__ if n == metric.name or n in kinds | named]


def _reflection(law: str) -> str:
    words = {"invariant": "changes nothing", "negates": "negates the value", "varies": "varies"}
    return words.get(law, f"gives the value of `{law}`")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the folder anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
