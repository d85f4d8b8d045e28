"""Series at the same times: stated, found, or without a name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from howsure.core.labels import Categories
from howsure.core.rng import child
from howsure.predictions import EvalSet
from howsure.predictions.evalset import series_of, unnamed


def of_panel(**columns: object) -> EvalSet:
    return EvalSet.checked(np.zeros(60), point=np.zeros(60), time=TIMES, **columns)


TIMES, SITES = np.repeat(np.arange(20), 3), np.tile(["a", "b", "c"], 20)


def test_what_tells_series_apart() -> None:
    stated = series_of(of_panel(series=SITES), TIMES)
    for columns in ({"groups": {"site": SITES}}, {"features": {"site": SITES}}):
        np.testing.assert_array_equal(series_of(of_panel(**columns), TIMES), stated)
    other = np.repeat(["x", "y"], 30)
    found = series_of(of_panel(groups={"half": other, "site": SITES}), TIMES)
    np.testing.assert_array_equal(found, stated)
    for nothing in ({}, {"groups": {"half": other}}, {"groups": {"row": np.arange(60)}}):
        assert series_of(of_panel(**nothing), TIMES) is None
    assert series_of(of_panel(series=np.zeros(60)), TIMES) is None
    # clusters stay what they are, unless they are the series and times are many
    assert series_of(of_panel(cluster=SITES), TIMES) is None
    long = np.repeat(np.arange(40), 3)
    held = EvalSet.checked(
        np.zeros(120), point=np.zeros(120), time=long, cluster=np.tile(["a", "b", "c"], 40)
    )
    assert series_of(held, long) is not None
    assert series_of(replace(held, cluster=Categories.checked(long, "cluster")), long) is None


def test_rows_that_come_by_chance_are_no_series_without_a_name() -> None:
    rng = child(0, "times by chance")
    held = of_panel()
    assert unnamed(held, TIMES, None)
    assert not unnamed(held, TIMES, np.zeros(60, dtype=np.int64))
    assert not unnamed(held, np.arange(60), None)
    assert not unnamed(of_panel(horizon=np.tile([1.0, 2.0, 3.0], 20)), TIMES, None)
    assert sum(unnamed(held, rng.integers(0, 20, 100), None) for _ in range(50)) < 5
