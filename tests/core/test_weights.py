"""Weights at the door, and what they count for."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.core.weights import Weights, check_multiplicities, merge_rows

SETTINGS = examples(100)


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        ([1.0, -1.0], "importance", "not be negative, got -1"),
        ([0.0, 0.0], "frequency", "not all be zero"),
        ([1.0, 0.5], "frequency", "whole numbers .* got 0.5 at row 1"),
        ([1.0], "other", "'frequency' or 'importance', got 'other'"),
        ([np.nan], "frequency", "finite"),
        ([1e308, 1e308], "importance", "finite sum"),
        ([2.0**63], "frequency", "less than 9,007,199,254,740,992 .* got 9.22337e\\+18"),
        (
            [2.0**53, 1.0, 1.0],
            "frequency",
            "less than 9,007,199,254,740,992 .* weights_kind='importance'",
        ),
    ],
)
def test_weights_that_are_none_are_named(values: Any, kind: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Weights.checked(values, kind)


@SETTINGS
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=20).filter(any),
    st.floats(1e-300, 1e300),
)
def test_effective_n(counts: list[int], scale: float) -> None:
    """Kish: a row counts once for frequencies; scale does not matter for importance."""
    assert Weights.checked(counts).effective_n == sum(counts)
    effective = Weights.checked(np.array(counts) * scale, "importance").effective_n
    assert effective == pytest.approx(sum(counts) ** 2 / sum(c * c for c in counts))
    assert 1 - 1e-9 <= effective <= np.count_nonzero(counts) + 1e-9


@SETTINGS
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=12),
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
def test_merged_rows_cannot_tell_copies_from_weights(
    rows: list[tuple[int, int]], counts: list[int]
) -> None:
    table, copies = np.array(rows, dtype=float), np.array(counts[: len(rows)], dtype=float)
    merged, mass = merge_rows(table, copies)
    written = merge_rows(np.repeat(table, copies.astype(int), axis=0))
    expected = Counter(np.repeat(table, copies.astype(int), axis=0)[:, 0].tolist())
    np.testing.assert_array_equal(merged, written[0])
    np.testing.assert_array_equal(mass, written[1])
    assert len({tuple(row) for row in merged.tolist()}) == len(merged)
    assert {v: mass[merged[:, 0] == v].sum() for v in expected} == expected


def test_multiplicities_are_weights_that_may_be_fractions() -> None:
    assert check_multiplicities(None, 3) is None
    made = check_multiplicities([0.5, 2], 2)
    assert made is not None
    assert made.tolist() == [0.5, 2.0]
    with pytest.raises(InputError, match="weights must have 3 rows, got 2"):
        check_multiplicities([0.5, 2], 3)


def test_weights_travel() -> None:
    item = Weights.checked([1.0])
    assert pickle.loads(pickle.dumps(item)) is not item
    assert item == item
    assert len({item}) == 1
