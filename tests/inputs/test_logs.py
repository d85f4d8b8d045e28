"""Lines of JSON: flat records, and questions with the log-likelihood of each answer offered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import howsure
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Probabilities


def written(folder: Path, records: list[dict[str, Any]], name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def questions(n: int = 40, **changes: Any) -> list[dict[str, Any]]:
    """Samples as lm-evaluation-harness logs them: numbers as text, and other fields beside."""
    rng = child(0, "samples")
    scores = -rng.gamma(2.0, 2.0, (n, 4))
    targets = rng.integers(4, size=n)
    return [
        {
            "doc_id": number,
            "doc": {"question": f"q{number}", "subject": ["law", "physics"][number % 2]},
            "target": str(target),
            "arguments": [["a prompt", " A"]],
            "resps": [[[str(score), "False"]] for score in row],
            "filtered_resps": [[str(score), "False"] for score in row],
            "filter": "none",
            "acc": float(np.argmax(row) == target),
            **changes,
        }
        for number, (row, target) in enumerate(zip(scores, targets, strict=True))
    ]


@pytest.mark.parametrize("stated", [True, False], ids=["acc", "target"])
def test_questions_are_read_as_confidence_and_what_was_right(tmp_path: Path, stated: bool) -> None:
    logged = questions()
    kept = logged if stated else [{k: v for k, v in q.items() if k != "acc"} for q in logged]
    table = howsure.load(written(tmp_path, kept), groups="subject")
    (rows,) = table.evalsets
    scores = np.array([[float(answer[0]) for answer in q["filtered_resps"]] for q in logged])
    (prediction,) = rows.predictions
    assert isinstance(prediction, Probabilities)
    np.testing.assert_allclose(prediction.table[:, 1], special.softmax(scores, axis=1).max(axis=1))
    np.testing.assert_array_equal(rows.y, [q["acc"] for q in logged])
    assert list(rows.groups["subject"].labels) == ["law", "physics"]
    assert "log-likelihoods of 40 questions" in " ".join(table.notes)


def test_one_filter_is_read_of_several(tmp_path: Path) -> None:
    both = questions() + questions(filter="strict", acc=0.0)
    (rows,) = howsure.load(written(tmp_path, both)).evalsets
    assert rows.n == 40


def test_flat_records_are_a_table_as_any(tmp_path: Path) -> None:
    records = [
        {"confidence": 0.9, "correct": number % 3 > 0, "site": number % 2, "doc": {"id": number}}
        for number in range(12)
    ]
    path = written(tmp_path, records, "log.ndjson")
    table = howsure.load(path, groups="site")
    (rows,) = table.evalsets
    columns = {name: [record[name] for record in records] for name in ("confidence", "correct")}
    (same,) = howsure.load(columns).evalsets
    np.testing.assert_array_equal(rows.y, same.y)
    assert "not read, as records within records are not: 'doc'" in " ".join(table.notes)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"p": 0.5}\nno\n', "line 2: not JSON"),
        ("[1, 2]\n", r"line 1: each line must be a record of names and values, got '\[1, 2\]'"),
        ("\n\n", "no records"),
        ("[" * 100_000, "line 1: not JSON"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        howsure.load(path)


def test_a_question_without_what_was_right_is_refused(tmp_path: Path) -> None:
    logged = [{k: v for k, v in q.items() if k != "acc"} | {"target": "B"} for q in questions()]
    with pytest.raises(InputError, match="question 0 must have acc, or the number of the right"):
        howsure.load(written(tmp_path, logged))
