"""Statistics of sums are those of rows, wherever y lies, however it is scaled and cut."""

from __future__ import annotations

import itertools
import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.labels import Categories
from howsure.core.weights import Weights
from howsure.engine.catalogue import from_sums
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Intervals
from howsure.streaming.from_totals import FromTotals
from howsure.streaming.totals import SufficientStatistics
from laws.worlds import KINDS, affine, make

EPS = np.finfo(np.float64).eps
NUMBERS = ("value", "standard_error", "lower", "upper", "n", "p")
METRICS = [*from_sums(), "mae", "mean_width", "interval_score"]


def streamed(held: EvalSet, edges: list[int]) -> FromTotals:
    """The totals of some parts, put together."""
    parts = [held.take(np.arange(a, b)) for a, b in itertools.pairwise(edges)]
    coverages = (0.9,)
    totals = reduce(
        SufficientStatistics.merged, (SufficientStatistics.of(part, coverages) for part in parts)
    )
    return FromTotals(totals, evaluate(held, coverages=coverages, metrics=METRICS))


def compare(held: EvalSet, edges: list[int], tolerance: float) -> None:
    """Hold what is told by parts against what is told of all rows."""
    whole = streamed(held, edges)
    found = {(r.metric, str(r.coverage)): r for r in whole.measured().records}
    for record in whole.sample.records:
        other = found[record.metric, str(record.coverage)]
        if math.isnan(record.value):
            assert math.isnan(other.value), (record, other)
            continue
        size = max(abs(record.value), np.nan_to_num(record.standard_error))
        for name in NUMBERS:
            one, two = getattr(record, name), getattr(other, name)
            near = one == two or abs(one - two) <= tolerance * size
            assert near or (math.isnan(one) and math.isnan(two)), (name, record, other)


@examples(25)
@given(
    kind=st.sampled_from(KINDS),
    shift=st.sampled_from([0.0, 1e3, -1e6, 1e9]),
    scale=st.sampled_from([1e-9, 1e-3, 1.0, -1e3, 1e9]),
    ties=st.booleans(),
    rows_are=st.sampled_from(["plain", "frequency", "clusters"]),
    cuts=st.lists(st.integers(1, 199), max_size=4, unique=True),
    seed=st.integers(0, 2**16),
)
def test_wherever_y_lies(
    kind: str, shift: float, scale: float, ties: bool, rows_are: str, cuts: list[int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    held = make(kind, 200, rng)
    if ties:
        held = EvalSet.checked(np.round(held.y), held.predictions)
    if kind == "logistic":
        scale = abs(scale)
    if rows_are == "frequency":
        weights = Weights(rng.integers(1, 4, 200).astype(np.float64))
        held = EvalSet(y=held.y, predictions=held.predictions, weights=weights)
    if rows_are == "clusters":
        houses = Categories.checked(rng.integers(0, 30, 200), "house")
        held = EvalSet(y=held.y, predictions=held.predictions, cluster=houses)
    moved = affine(held, shift, scale)
    moved = EvalSet(
        y=moved.y, predictions=moved.predictions, weights=held.weights, cluster=held.cluster
    )
    rounding = EPS * (1.0 + abs(shift / scale))  # of y itself
    compare(moved, [0, *sorted(cuts), 200], 1e-9 + 1e3 * rounding)


@pytest.mark.parametrize("cuts", [[], [60], [5, 6]])
def test_infinite_widths_stay_infinite_however_rows_are_cut(cuts: list[int]) -> None:
    held = make("intervals", 200, np.random.default_rng(1))
    (given_,) = held.predictions
    upper = given_.upper.copy()
    upper[5] = np.inf
    moved = EvalSet.checked(held.y, Intervals(given_.lower, upper, coverage=given_.coverages))
    whole = streamed(moved, [0, *cuts, 200])
    widths = [r.value for r in whole.measured().records if r.metric.endswith("width")]
    assert widths
    assert all(math.isinf(value) for value in widths)
    compare(moved, [0, *cuts, 200], 1e-9)


@pytest.mark.parametrize("scale", [1e-100, 1e-60, 1e60, 1e90])
def test_an_interval_whose_cubes_are_no_numbers_is_withheld(scale: float) -> None:
    held = affine(make("normal", 200, np.random.default_rng(1)), 0.0, scale)
    whole = streamed(held, [0, 70, 200])
    for record in whole.measured().records:
        if record.metric in ("r_squared", "relative_width", "rmse"):
            own = next(r for r in whole.sample.records if r.metric == record.metric)
            assert record.value == pytest.approx(own.value, rel=1e-9)
            assert math.isnan(record.lower)
            assert record.reason.startswith("no interval: ")


def test_y_of_two_values_has_an_interval_however_rows_are_cut() -> None:
    y = np.tile([0.0, 1.0], 100)
    held = EvalSet.checked(y, Distribution.normal(0.2 + 0.5 * y, 1.0))
    compare(held, [0, 50, 101, 200], 1e-9)
