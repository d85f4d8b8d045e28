"""Whether coverage holds where rows are hard: found where it does not, quiet where it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from howsure.predictions import EvalSet, Intervals, LabelSets
from howsure.verdict import Finding
from howsure.verdict.family import examine


def _found(held: EvalSet, **options: Any) -> dict[str, Finding]:
    return {finding.id: finding for finding in examine(held, **options)[0]}


def _sets(slope: float, n: int = 1500, seed: int = 3) -> EvalSet:
    """Sets of class probabilities; with a slope those of hard rows are stated too surely."""
    rng = np.random.default_rng(seed)
    ease = rng.uniform(size=n)
    logits = rng.normal(size=(n, 5)) * (0.3 + 3 * ease[:, None])
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    y = np.minimum((chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 4)
    stated = np.exp(logits * (1 + slope * (1 - ease[:, None])))
    sets = LabelSets.likeliest(stated / stated.sum(axis=1, keepdims=True), 0.9)
    return EvalSet.checked(y, sets, features={"sharp": ease}, ease="sharp")


def test_sets_that_fail_on_hard_rows_are_named() -> None:
    found = _found(_sets(4.0))
    ease = found["ease"]
    assert ease.state == "bad"
    assert "sharp" in ease.where
    assert ease.where in ease.sentence
    assert ease.effect < 0
    assert found["coverage"].state == "bad"
    assert found["region"].state != "bad"  # the same fault, told once
    assert "ease" not in _found(_sets(4.0), ignore={"ease"})


def test_intervals_of_one_width_fail_on_hard_rows() -> None:
    rng = np.random.default_rng(0)
    ease = rng.uniform(size=1500)
    y = rng.normal(size=1500) * (1.5 - ease)
    flat = Intervals(np.full(1500, -1.75), np.full(1500, 1.75), coverage=0.9)
    found = _found(EvalSet.checked(y, flat, features={"ease": ease}))
    assert found["ease"].state == "bad"
    assert found["coverage"].state != "bad"
    half = 1.645 * (1.5 - ease)
    right = EvalSet.checked(y, Intervals(-half, half, coverage=0.9), features={"ease": ease})
    assert _found(right)["ease"].state != "bad"


def test_a_question_that_ease_cannot_answer_says_why() -> None:
    held = _sets(0.0, n=200)
    for features, reason in (
        ({}, "no ease"),
        ({"sharp": np.ones(200)}, "the same ease in every row"),
        ({"sharp": np.array(["a", "b"] * 100)}, "must contain numbers"),
    ):
        asked = EvalSet.checked(held.y, held.predictions, features=features, ease="sharp")
        findings, silent = examine(asked)
        assert all(finding.id != "ease" for finding in findings)
        assert reason in silent["ease"]


@pytest.mark.slow
def test_right_probabilities_are_not_condemned() -> None:
    red = [
        any(finding.state == "bad" for finding in examine(_sets(0.0, n=300, seed=seed))[0])
        for seed in range(40)
    ]
    assert sum(red) <= 6


def test_sets_of_all_labels_cover_and_are_no_fault() -> None:
    """Of three illnesses: sets of one and of two cover as claimed, those of three always."""
    rng = np.random.default_rng(2)
    n, size = 900, rng.choice([1, 2, 3], 900, p=[0.5, 0.3, 0.2])
    y = np.where(rng.random(n) < 0.875, rng.integers(0, size), size % 3)
    y = np.where(size == 3, rng.integers(0, 3, n), y)
    sets = LabelSets(np.arange(3) < size[:, None], 0.9)
    found = _found(EvalSet.checked(y, sets))
    assert found["sets"].state != "bad"
    assert found["sets"].where in ("1", "2")
