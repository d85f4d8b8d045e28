"""Lines of JSON, a record a row, and the questions that lm-evaluation-harness logs so."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import special

from howsure.core.errors import InputError
from howsure.core.text import quoted
from howsure.inputs.frames import MappingTable
from howsure.inputs.source import listed

_ANSWERS = "filtered_resps"
"""The answers of a question: where they are offered, each begins with its log-likelihood."""
# A text that as few rows share on average names no group of questions.
_MIN_ROWS_OF_GROUP = 5


def log_table(title: str, file: pa.NativeFile) -> MappingTable:
    """The table in an open file of records, or of logged multiple-choice questions."""
    records = list(_records(title, file.read()))
    if not records:
        raise InputError(f"{title}: no records")
    if all(_is_choice(record) for record in records):
        return _choices(title, records)
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: [record.get(name) for record in records] for name in names}
    nested = [name for name, values in columns.items() if any(map(_is_nested, values))]
    table = MappingTable(
        {name: _plain(values) for name, values in columns.items() if name not in nested}, title
    )
    if nested:
        table.notes = (f"{title}: not read, as records within records are not: {listed(nested)}",)
    return table


def _records(title: str, content: bytes) -> Any:
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{title}, line {number:,}: not JSON: {error}") from error
        if not isinstance(record, Mapping):
            raise InputError(
                f"{title}, line {number:,}: each line must be a record of names and values, got "
                f"{quoted(str(record))}"
            )
        yield record


def _is_nested(value: Any) -> bool:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return not all(isinstance(item, int | float) for item in value)
    return isinstance(value, Mapping)


def _plain(values: list[Any]) -> list[Any]:
    """Values of one kind: numbers, lists of numbers, or else text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float, bool} or kinds == {list}:
        return values
    return [None if value is None else str(value) for value in values]


# ---- multiple-choice questions -------------------------------------------------------------------


def _is_choice(record: Mapping[str, Any]) -> bool:
    """Whether a record has the log-likelihood of each of several answers."""
    answers = record.get(_ANSWERS)
    return isinstance(answers, list) and len(answers) > 1 and not any(map(_no_number, answers))


def _no_number(answer: Any) -> bool:
    """Whether an answer does not begin with a log-likelihood, a number or the text of one."""
    try:
        return not (isinstance(answer, list) and float(answer[0]) <= 0.0)
    except (IndexError, TypeError, ValueError):
        return True


def _choices(title: str, records: Sequence[Mapping[str, Any]]) -> MappingTable:
    """The probability of the likeliest answer among those offered, and whether it was right."""
    first = records[0].get("filter")
    rows = [record for record in records if record.get("filter") == first]
    scores = [np.array([float(answer[0]) for answer in row[_ANSWERS]]) for row in rows]
    columns: dict[str, Any] = {
        "confidence": [float(special.softmax(score).max()) for score in scores],
        "correct": [_is_right(title, *pair) for pair in zip(rows, scores, strict=True)],
        "doc_id": [row.get("doc_id") for row in rows],
    }
    documents = [row["doc"] if isinstance(row.get("doc"), Mapping) else {} for row in rows]
    for name in dict.fromkeys(name for document in documents for name in document):
        values = [document.get(name) for document in documents]
        groups = len(set(map(str, values)))
        texts = all(isinstance(value, str) for value in values)
        if texts and 1 < groups <= len(rows) / _MIN_ROWS_OF_GROUP:
            columns.setdefault(name, values)
    table = MappingTable(columns, title)
    table.notes = (
        f"{title}: log-likelihoods of {len(rows):,} questions read as the probability of the "
        "likeliest answer among those offered",
    )
    return table


def _is_right(title: str, row: Mapping[str, Any], scores: np.ndarray[Any, Any]) -> bool:
    """Whether the likeliest answer was right: as `acc` says, else by the number of the target."""
    stated = row.get("acc", math.nan)
    if isinstance(stated, int | float) and not math.isnan(stated):
        return bool(stated)
    try:
        return int(row["target"]) == int(np.argmax(scores))
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{title}: question {row.get('doc_id')} must have acc, or the number of the right "
            f"answer as target, got {quoted(str(row.get('target')))}"
        ) from None
