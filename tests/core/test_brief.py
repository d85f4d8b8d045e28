"""What values show of themselves stays a few lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.classes import brief, brief_repr
from howsure.core.rng import child
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
)

N = 500
MEAN = child(0, "brief").normal(size=N)
NORMAL = Distribution.normal(MEAN, np.full(N, 0.5))


@pytest.mark.parametrize(
    ("prediction", "shown"),
    [
        (Intervals(MEAN, MEAN + 1, 0.9), "Intervals(n=500, coverage=0.9)"),
        (Intervals(MEAN, MEAN + 1), "Intervals(n=500, coverage=unknown)"),
        (
            Quantiles([0.05, 0.5, 0.95], np.column_stack([MEAN - 1, MEAN, MEAN + 1])),
            "Quantiles(n=500, levels=0.05, 0.5, 0.95)",
        ),
        (
            Quantiles(np.arange(1, 100) / 100, np.arange(99.0) + MEAN[:, None]),
            "Quantiles(n=500, levels=0.01, 0.02, …, 0.99 (99))",
        ),
        (Samples(np.zeros((N, 100))), "Samples(n=500, m=100)"),
        (LabelSets(np.ones((N, 3), bool), 0.9), "LabelSets(n=500, classes=3, coverage=0.9)"),
        (
            Distribution("norm", {"loc": [-1.2] + [3.4] * (N - 1), "scale": 0.5}),
            "Distribution(norm, n=500: loc -1.2 to 3.4, scale 0.5)",
        ),
    ],
)
def test_each_kind_of_prediction_is_one_line(prediction: Prediction, shown: str) -> None:
    assert repr(prediction) == shown


def test_an_evaluation_set_names_what_it_holds() -> None:
    held = EvalSet.checked(MEAN, NORMAL, groups={"side": np.sign(MEAN)}, features={"x": MEAN})
    told = repr(held)
    assert told.startswith(
        "EvalSet(\n    n=500,\n    model='model',\n    predictions=[Distribution(norm"
    )
    assert "groups=['side']" in told
    assert len(told) < 300


@dataclass
class Found:
    name: str
    values: Any
    parts: tuple[int, ...] = ()
    words: dict[str, Any] = field(default_factory=dict)
    _own: int = 0

    __repr__ = brief_repr


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (Found("a", np.zeros((9, 2))), "Found(name='a', values=array of shape (9, 2))"),
        (Found("a", np.array([0.5, 2.0])), "Found(name='a', values=[0.5, 2])"),
        (
            Found("a", np.array(["b"]), (1, 2)),
            "Found(name='a', values=array of shape (1,), parts=(1, 2))",
        ),
        (Found("a", 1, tuple(range(9000))), "Found(name='a', values=1, parts=9,000 of int)"),
        (
            Found("a", 1, (), {"b": np.zeros(99)}),
            "Found(name='a', values=1, words={'b': array of shape (99,)})",
        ),
    ],
)
def test_a_dataclass_shows_its_fields_by_their_size(found: Found, shown: str) -> None:
    assert repr(found) == shown


def test_what_is_long_is_cut() -> None:
    assert len(brief("x" * 500)) == 100
    assert brief([Found("a", 1), 2]) == "2 of several kinds"
    assert brief(Found("a" * 200, 1)) == "Found(…)"
    assert brief({k: k for k in range(7)}) == "7 by name"
    assert repr(Found("a" * 99, 1)).count("\n") == 3


@pytest.mark.slow
def test_no_public_result_is_more_than_a_few_lines() -> None:
    table = {"y": MEAN + child(0, "y").normal(size=N), "mean": MEAN, "sd": np.full(N, 0.5)}
    result = howsure.assess(table, options=howsure.Options(trials=False))
    mended = howsure.recalibrate(table, table)
    loaded = howsure.load(table)
    every = [loaded, loaded.evalsets[0], mended, mended.fitted, mended.rows, mended.evalset]
    every += [*result.records, *result.findings, *result.curves, *result.tables, *result.figures]
    assert len(every) > 30
    for value in every:
        told = repr(value)
        assert told.count("\n") <= 16, told[:500]
        assert len(told) < 1200, told[:500]


def test_frames_are_told_by_shape() -> None:
    pd = needs("pandas")
    assert brief(pd.DataFrame({"a": range(9)})) == "DataFrame of shape (9, 1)"
