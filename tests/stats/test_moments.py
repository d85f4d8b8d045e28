"""Moments of parts merge into those of the whole, and tell the spread of means."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from howsure.core.weights import Weights
from howsure.stats.estimate import spread_of, spread_of_sums
from howsure.stats.moments import Joint, Moments

CUTS = st.lists(st.integers(0, 500), max_size=6).map(lambda cuts: sorted({0, 500, *cuts}))


def table(seed: int = 0) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = [1e4 + rng.gamma(2.0, size=500), rng.normal(size=500), rng.integers(0, 2, 500) * 1.0]
    return columns, rng.integers(0, 5, 500), rng.integers(1, 4, 500).astype(float)


@given(CUTS, st.booleans())
def test_parts_merge_into_the_whole(cuts: list[int], weighted: bool) -> None:
    columns, codes, copies = table()
    weights = copies if weighted else None
    parts = [
        Moments.of(
            [each[a:b] for each in columns],
            codes[a:b],
            5,
            None if weights is None else weights[a:b],
        )
        for a, b in itertools.pairwise(cuts)
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part)
    for cell in range(5):
        rows = codes == cell
        w = copies[rows] if weighted else np.ones(rows.sum())
        for place, values in enumerate(columns):
            x = values[rows]
            mean = np.average(x, weights=w)
            off = x - mean
            assert merged.mass[cell] == w.sum()
            assert merged.mean[cell, place] == pytest.approx(mean, rel=1e-13, abs=1e-13)
            assert merged.second[cell, place] == pytest.approx((w * off**2).sum(), rel=1e-11)
            assert merged.third[cell, place] == pytest.approx(
                (w * off**3).sum(), rel=1e-10, abs=1e-9
            )


@given(CUTS)
def test_joint_moments_merge(cuts: list[int]) -> None:
    columns, _, w = table(1)
    whole = Joint.of(columns[:2], columns[2:], w)
    parts = [
        Joint.of([c[a:b] for c in columns[:2]], [columns[2][a:b]], w[a:b])
        for a, b in itertools.pairwise(cuts)
    ]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part)
    off = np.stack(columns[:2]) - np.average(columns[:2], axis=1, weights=w)[:, None]
    np.testing.assert_allclose(merged.third, np.einsum("n,an,bn,cn->abc", w, off, off, off), 1e-9)
    np.testing.assert_allclose(merged.second, whole.second, rtol=1e-11)
    np.testing.assert_allclose(merged.mean, np.average(columns, axis=1, weights=w), rtol=1e-13)
    assert merged.least.tolist() == [each.min() for each in columns]
    assert merged.greatest.tolist() == [each.max() for each in columns]


def test_cells_that_become_one() -> None:
    columns, codes, w = table(2)
    joined = np.array([0, 1, 0, 1, 0])
    made = Moments.of(columns, codes, 5, w).placed(joined, 2)
    direct = Moments.of(columns, joined[codes], 2, w)
    for name in ("mass", "mean", "second", "third"):
        np.testing.assert_allclose(getattr(made, name), getattr(direct, name), rtol=1e-10)


@given(st.floats(0.1, 10.0), st.floats(-1e3, 1e3), st.booleans())
def test_the_spread_of_sums_is_that_of_rows(scale: float, shift: float, weighted: bool) -> None:
    columns, _, copies = table(3)
    values = shift + scale * columns[0]
    weights = Weights(copies) if weighted else None
    moments = Moments.of([values], np.zeros(500, dtype=np.int64), 1, copies if weighted else None)
    told = spread_of_sums(moments.mass, moments.second[:, 0], moments.third[:, 0])
    rows = spread_of(values - moments.mean[0, 0], weights)
    for name in ("error", "skew", "units", "degrees"):
        np.testing.assert_allclose(getattr(told, name), getattr(rows, name), rtol=1e-7)
