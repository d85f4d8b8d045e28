"""Moments of parts merge into those of the whole, and two points hold them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from howsure.stats.moments import Joint, Moments, two_points

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


@given(
    st.floats(1.0, 1e6),
    st.floats(-1e3, 1e3),
    st.just(0.0) | st.floats(1e-2, 1e3),
    st.floats(-50.0, 50.0),
)
def test_two_points_have_the_moments(mass: float, mean: float, sd: float, skew: float) -> None:
    given_ = np.array([[mass], [mean], [mass * sd**2], [mass * skew * sd**3]])
    values, weights = two_points(*given_)
    assert weights.sum() == pytest.approx(mass)
    assert (weights @ values) / mass == pytest.approx(mean, rel=1e-9, abs=1e-9 * (1.0 + sd))
    off = values - mean
    assert weights @ off**2 == pytest.approx(mass * sd**2, rel=1e-6)
    assert weights @ off**3 == pytest.approx(mass * skew * sd**3, rel=1e-5, abs=1e-6 * mass * sd**3)
