"""Methods side by side: who is best, and who cannot be told from the best."""

from __future__ import annotations

import math
from typing import Any

import pytest

from howsure.core.records import Direction, Record
from howsure_studies.engine import records_table, side_by_side, stacked
from howsure_studies.engine.tables import parquet_bytes, parquet_table


def table(direction: Direction, target: float, **values: tuple[float, float]) -> Any:
    rows = []
    for method, (value, error) in values.items():
        record = Record(
            metric="m", value=value, standard_error=error, direction=direction, target=target
        )
        rows.append(records_table([record], {"world": "w", "method": method, "seed": 0}))
    return stacked(rows)


@pytest.mark.parametrize(
    ("direction", "target", "values", "best"),
    [
        (Direction.LOWER, 0.0, {"a": (1.0, 0.1), "b": (1.2, 0.1), "c": (1.3, 0.1)}, ("a", "b")),
        (Direction.HIGHER, math.nan, {"a": (1.0, 0.0), "b": (1.2, 0.0)}, ("b",)),
        (Direction.HIGHER, math.nan, {"a": (1.2, math.nan), "b": (1.2, math.nan)}, ("a", "b")),
        (Direction.TARGET, 0.9, {"a": (0.85, 0.0), "b": (0.97, 0.0)}, ("a",)),
        (Direction.TARGET, 0.9, {"a": (0.85, 0.02), "b": (0.97, 0.02)}, ("a", "b")),
        (Direction.LOWER, 0.0, {"a": (math.nan, math.nan), "b": (5.0, 0.1)}, ("b",)),
        (Direction.LOWER, 0.0, {"a": (math.inf, math.nan), "b": (5.0, 0.1)}, ("b",)),
        (Direction.LOWER, 0.0, {"a": (math.nan, math.nan)}, ()),
        (Direction.NONE, math.nan, {"a": (1.0, 0.1), "b": (2.0, 0.1)}, ()),
    ],
)
def test_the_best_are_told(
    direction: Direction, target: float, values: dict[str, Any], best: tuple[str, ...]
) -> None:
    """1.2 − 1.0 = 0.2 < 1.96 √(0.1² + 0.1²) = 0.277 < 0.3."""
    (found,) = side_by_side(table(direction, target, **values))
    assert found.best == best
    assert math.isnan(found.coverage)
    assert list(found.cells) == list(values)


def test_seeds_stand_apart_and_measures_are_ordered() -> None:
    rows = [
        records_table(
            [
                Record(metric=metric, value=float(seed), coverage=coverage)
                for metric in ("x", "y")
                for coverage in (0.9, 0.8)
            ],
            {"world": world, "method": "a", "seed": seed},
        )
        for world in ("v", "w")
        for seed in (0, 1)
    ]
    found = side_by_side(stacked(rows), ["y", "x"])
    assert [(c.world, c.metric, c.coverage) for c in found] == [
        (world, metric, coverage)
        for world in ("v", "w")
        for metric in ("y", "x")
        for coverage in (0.8, 0.9)
    ]
    assert {name: cell.value for name, cell in found[0].cells.items()} == {
        "a, seed 0": 0.0,
        "a, seed 1": 1.0,
    }
    assert len(side_by_side(stacked(rows), ["y"])) == 4
    assert side_by_side(stacked(rows), ["none"]) == ()


def test_records_become_columns() -> None:
    record = Record(metric="m", value=math.nan, reason="why", n=3.0, direction=Direction.LOWER)
    made = records_table([record], {"world": "w", "seed": 2})
    held = parquet_table(parquet_bytes(made), "made").to_pylist()[0]
    assert held["reason"] == "why"
    assert math.isnan(held["value"])
    assert (held["world"], held["seed"], held["n"]) == ("w", 2, 3.0)
    assert held["direction"] == "lower is better"
    assert stacked([]).num_rows == 0
