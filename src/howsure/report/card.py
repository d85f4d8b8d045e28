"""A report as a model card, whose metadata Hugging Face reads.

Source: github.com/huggingface/hub-docs, modelcard.md, `model-index`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from howsure.core.records import Record
from howsure.core.text import legible
from howsure.predictions import LabelSets
from howsure.report import grids
from howsure.report.document import Document
from howsure.report.plain import escape, fenced, grid_blocks, sentence
from howsure.report.short_forms import key_numbers, key_records, measured, sentences

_NO_YAML: Final = re.compile("[\ufeff\ufffe\uffff]")
_UNNAMED: Final = "unnamed table"


def to_card(document: Document) -> str:
    """A model card: metadata, then the verdict, its data, its numbers and what was not asked."""
    blocks = [
        "\n".join(["---", *_metadata(document), "---"]),
        f"# {escape(document.title)}",
        *_part("Verdict", "\n".join(map(sentence, sentences(document)))),
    ]
    facts = document.facts.items()
    told = "\n".join(f"- {escape(name)}: {escape(fact)}" for name, fact in facts)
    blocks += _part("What it was assessed on", told)
    numbers = key_numbers(document.records)
    blocks += _part("Numbers", *(grid_blocks(numbers) if numbers.size else ()))
    for grid in grids.table_grids([t for t in document.tables if t.name == "not_judged"]):
        blocks += _part("What was not asked", *grid_blocks(grid))
    if document.command:
        blocks += _part("How to repeat it", fenced(document.command))
    return legible("\n\n".join(filter(None, blocks)), lines=True) + "\n"


def _part(title: str, *blocks: str) -> Iterator[str]:
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
