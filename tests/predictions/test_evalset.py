"""The evaluation set: one door for all that belongs to a row."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.core.weights import Weights
from howsure.predictions import Distribution, EvalSet, Intervals, Samples

SETTINGS = examples(50)


def full(n: int = 8, weights: Any = None) -> EvalSet:
    """Everything that a row can hold, each telling its row's number."""
    row = np.arange(n, dtype=float)
    return EvalSet.checked(
        row,
        (
            Intervals(row - 1, row + 1, 0.9),
            Distribution.normal(row, row + 1),
            Samples(np.column_stack([row, row + 0.25])),
        ),
        point=row + 0.5,
        features={"x": row, "kind": [f"k{i}" for i in range(n)]},
        embedding=np.column_stack([row, -row]),
        groups={"g": [f"g{i}" for i in range(n)]},
        weights=weights,
        cluster=row.astype(int),
        time=np.datetime64("2026-01-01") + np.arange(n),
        rows=[f"r{i}" for i in range(n)],
        model="m",
    )


def told_rows(made: EvalSet) -> list[list[float]]:
    """The row's number as each part tells it."""
    intervals, law, samples = made.predictions
    assert made.point is not None
    assert made.embedding is not None
    assert made.cluster is not None
    assert made.time is not None
    return [
        made.y.tolist(),
        (intervals.interval(0.9)[0] + 1).tolist(),
        law.point().tolist(),
        samples.point().__sub__(0.125).tolist(),
        (made.point - 0.5).tolist(),
        made.features["x"].tolist(),
        [float(name[1:]) for name in made.features["kind"]],
        (-made.embedding[:, 1]).tolist(),
        [float(label[1:]) for label in made.groups["g"].values()],
        made.cluster.values().tolist(),
        (made.time - np.datetime64("2026-01-01")).astype(float).tolist(),
        [float(name[1:]) for name in made.row_names()],
    ]


@SETTINGS
@given(st.lists(st.integers(0, 7), min_size=1, max_size=12))
def test_whatever_belongs_to_a_row_goes_with_it(rows: list[int]) -> None:
    for told in told_rows(full().take(np.array(rows))):
        assert told == [float(row) for row in rows]


def test_masks_choose_rows_too() -> None:
    part = full().take(np.arange(8) % 3 == 0)
    assert part.y.tolist() == [0.0, 3.0, 6.0]
    assert part.model == "m"
    assert part.n == 3


def test_rows_of_frequency_zero_go() -> None:
    """Their names stay those of the table."""
    made = full(4, weights=[1, 0, 2, 0])
    assert told_rows(made)[0] == [0.0, 2.0]
    assert made.weights is not None
    assert made.weights.values.tolist() == [1.0, 2.0]
    plain = EvalSet.checked([1.0, 2.0, 3.0], point=[1.0, 2.0, 3.0], weights=[0, 1, 1])
    assert plain.row_names().tolist() == [1, 2]


def test_row_names_are_numbers_unless_given() -> None:
    plain = EvalSet.checked([1.0, 2.0], point=[1.0, 2.0])
    assert plain.row_names().tolist() == [0, 1]
    assert plain.take(np.array([1])).row_names().tolist() == [1]


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({}, "No prediction given"),
        ({"point": [1.0]}, "point must have 2 rows, got 1"),
        ({"predictions": Intervals([0.0], [1.0])}, "intervals must have 2 rows like y, got 1"),
        (
            {"predictions": Samples(np.zeros((5, 2)))},
            r"got 5 \(shape \(5, 2\)\); they look transposed: give Samples\(samples.T\)",
        ),
        (
            {"predictions": Distribution.normal([0.0], [1.0])},
            "distributions must have 2 rows like y",
        ),
        (
            {"predictions": (Samples([1.0, 2.0]), Samples([1.0, 2.0]))},
            "predictions must be of different kinds, got samples, samples",
        ),
        ({"predictions": [np.zeros(2)]}, "predictions must be predictions, got ndarray"),
        ({"groups": {"g": ["a"]}}, "group 'g' must have 2 rows, got 1"),
        ({"groups": {"g": ["a", None]}}, "group 'g' must contain no missing labels"),
        (
            {"features": {"x": [1.0, np.nan]}},
            "feature 'x' must contain finite numbers, got 1",
        ),
        (
            {"features": {"x": [1.0, np.inf]}},
            "feature 'x' must contain finite numbers, got 1",
        ),
        ({"features": {"x": ["a", None]}}, "feature 'x' must contain no missing labels"),
        ({"embedding": [[1.0], [np.inf]]}, "embedding must contain finite numbers"),
        ({"weights": [1.0]}, "weights must have 2 rows, got 1"),
        ({"weights": Weights.checked([1.0])}, "weights must have 2 rows, got 1"),
        ({"weights": [0.5, 1.0]}, "frequency weights must be whole numbers"),
        ({"cluster": [1, 2, 3]}, "cluster must have 2 rows, got 3"),
        ({"time": np.array(["2026-01-01", "NaT"], "M8[D]")}, "time must contain no missing"),
        ({"rows": ["a"]}, "rows must have 2 rows, got 1"),
    ],
)
def test_what_does_not_belong_is_named(keywords: dict[str, Any], said: str) -> None:
    predictions = keywords.pop("predictions", ())
    if keywords and "point" not in keywords:
        keywords["point"] = [1.0, 2.0]
    with pytest.raises(InputError, match=said):
        EvalSet.checked([1.0, 2.0], predictions, **keywords)


def test_y_is_checked() -> None:
    for y in ([], [np.nan], [np.inf], ["a"]):
        with pytest.raises(InputError, match="y must"):
            EvalSet.checked(y, point=[1.0])


def test_a_set_travels() -> None:
    made = full()
    assert told_rows(pickle.loads(pickle.dumps(made))) == told_rows(made)
    assert made == made
