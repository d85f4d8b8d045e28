"""The checks at the door: what passes is unchanged, what does not is named."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from howsure.core.arrays import (
    Categories,
    Weights,
    as_labels,
    as_matrix,
    as_vector,
    check_fraction,
    check_interval,
    check_levels,
)
from howsure.core.errors import HowsureError, InputError

SETTINGS = settings(derandomize=True, deadline=None, max_examples=100)

RAGGED: Any = [[1.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "y must have at least one row, got none"),
        (3.0, r"y must have one dimension, got shape \(\)"),
        ([[1.0, 2.0]], r"y must have one dimension, got shape \(1, 2\)"),
        ([1.0, float("nan"), float("inf")], "got 2 missing or infinite values .first at row 1."),
        ([1.0, None], "got 1 missing or infinite value .first at row 1."),
        (["1.5"], "y must hold real numbers"),
        (np.array(["1.5"], dtype=object), "y must hold real numbers, got text"),
        ([1 + 2j], "y must hold real numbers, got dtype complex"),
        (np.array(["2020-01-01"], "M8[D]"), "y must hold real numbers, got dtype datetime64"),
        ([10**400], "y must hold real numbers"),
        ([object()], "y must hold real numbers"),
        (RAGGED, "y must be an array of one shape"),
        (np.zeros(1, dtype=[("a", float)]), "y must hold real numbers, got dtype"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "got 1 missing .* .first at row 1."),
        (pd.Series([1.0, pd.NA], dtype=object), "y must hold real numbers"),
    ],
)
def test_a_vector_that_is_none_is_named(value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        as_vector(value, "y")


@pytest.mark.parametrize(
    "value",
    [
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2], dtype=np.int8),
        np.array([[1.0], [2.0]]),
        np.array([1.0, 2.0], dtype=">f8"),
        pd.Series([1, 2]),
        [Decimal(1), Decimal(2)],
        np.array([1.0, 2.0], dtype=object),
        np.ma.array([1.0, 2.0]),
    ],
)
def test_numbers_of_any_kind_become_floats(value: Any) -> None:
    made = as_vector(value, "y")
    assert made.dtype == np.float64
    assert made.tolist() == [1.0, 2.0]


def test_lengths_and_infinities() -> None:
    assert as_vector([1.0, np.inf], "upper", finite=False)[1] == np.inf
    assert as_vector(0.9, "coverage", scalar=True).tolist() == [0.9]
    with pytest.raises(InputError, match="y must have 3 rows, got 2"):
        as_vector([1.0, 2.0], "y", length=3)
    with pytest.raises(InputError, match=r"got 1 missing value \(first at row 0\)"):
        as_vector([np.nan], "upper", finite=False)


def test_matrices() -> None:
    assert as_matrix([1.0, 2.0], "x").shape == (2, 1)
    for value, said in [
        (np.zeros((2, 2, 2)), "must have two dimensions"),
        (np.zeros((2, 0)), "at least one column"),
        (np.zeros((0, 2)), "at least one row"),
        ([[1.0, np.nan]], "first at row 0"),
    ]:
        with pytest.raises(InputError, match=said):
            as_matrix(value, "x")
    with pytest.raises(InputError, match="x must have 3 columns, got 2"):
        as_matrix(np.zeros((1, 2)), "x", columns=3)


@SETTINGS
@given(hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(allow_nan=True)))
def test_a_vector_passes_unchanged_or_not_at_all(values: np.ndarray) -> None:
    if np.isfinite(values).all():
        np.testing.assert_array_equal(as_vector(values, "y"), values)
    else:
        with pytest.raises(InputError, match=f"first at row {np.argmin(np.isfinite(values))}"):
            as_vector(values, "y")


def test_labels_keep_their_kind() -> None:
    assert as_labels([1, 2], "g").dtype.kind == "i"
    assert as_labels([True, False], "g").dtype.kind == "b"
    assert as_labels([0.5, np.inf], "g").dtype.kind == "f"
    assert as_labels(np.array(["2020-01-01"], "M8[D]"), "g").dtype.kind == "M"
    assert as_labels([1, "a"], "g").tolist() == ["1", "a"]
    assert as_labels(np.array([b"ab"]), "g").tolist() == ["ab"]
    assert as_labels(np.array([1, "a"], dtype=object), "g").tolist() == ["1", "a"]


def test_text_keeps_every_character() -> None:
    """An array of fixed width would lose trailing NULs, and so merge two labels."""
    texts = ["a", "a\0", "a\n", "", "é", "a" * 1000]
    assert as_labels(texts, "g").tolist() == texts
    assert Categories.checked(texts, "g").labels.tolist() == sorted(texts)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["a", None], "no missing labels, got 1 .first at row 1."),
        (["a", float("nan"), None], "no missing labels, got 2 .first at row 1."),
        ([1.0, float("nan")], "no missing labels, got 1 .first at row 1."),
        (np.array(["2020-01-01", "NaT"], "M8[D]"), "no missing labels, got 1"),
        (pd.Series(["a", pd.NA], dtype="string"), "no missing labels"),
        (pd.Series(["a", pd.NaT], dtype=object), "no missing labels"),
        ([["a"]], "one dimension"),
        (["a", "\ud800"], "Unicode"),
        (np.array([b"\xff"]), "Unicode"),
        ([1 + 2j], "labels, got dtype complex"),
        ([], "at least one row"),
        (RAGGED, "one shape"),
    ],
)
def test_labels_that_are_none_are_named(value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        as_labels(value, "g")


labels = st.one_of(
    st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=1, max_size=30),
    st.lists(st.integers(-5, 5), min_size=1, max_size=30),
    st.lists(st.booleans(), min_size=1, max_size=30),
)


@SETTINGS
@given(labels, st.randoms(use_true_random=False))
def test_categories_hold_what_was_given(values: list[Any], random: Any) -> None:
    made = Categories.checked(values, "g")
    assert made.values().tolist() == values
    assert made.labels.tolist() == sorted(set(values))
    assert made.counts.tolist() == [values.count(label) for label in made.labels.tolist()]
    assert len(made) == len(values)
    rows = np.array([random.randrange(len(values)) for _ in range(5)])
    part = made.take(rows)
    assert part.values().tolist() == [values[row] for row in rows]
    assert part.labels.tolist() == sorted({values[row] for row in rows})
    again = Categories.checked(made, "g", length=len(values))
    assert again.values().tolist() == values


def test_categories_check_their_length() -> None:
    made = Categories.checked(["a", "b"], "g")
    with pytest.raises(InputError, match="g must have 3 rows, got 2"):
        Categories.checked(made, "g", length=3)


def test_containers_travel() -> None:
    for item in (Categories.checked(["a"], "g"), Weights.checked([1.0])):
        assert pickle.loads(pickle.dumps(item)) is not item
        assert item == item
        assert len({item}) == 1


def test_intervals_may_be_unbounded_but_not_crossed() -> None:
    low, high = check_interval([-np.inf, 1.0], [np.inf, 1.0])
    assert (low <= high).all()
    with pytest.raises(InputError, match=r"1 crossed intervals \(first at row 1: lower 3, upper 2"):
        check_interval([0.0, 3.0], [1.0, 2.0])
    with pytest.raises(InputError, match="upper must have 2 rows, got 1"):
        check_interval([0.0, 3.0], [1.0])


@pytest.mark.parametrize("value", [0, 1, -0.1, 90, float("nan"), "ninety", None, [0.5, 0.6]])
def test_fractions_lie_inside(value: Any) -> None:
    with pytest.raises(InputError, match="coverage must lie strictly between 0 and 1"):
        check_fraction(value, "coverage")


@pytest.mark.parametrize("value", [[0.0, 0.5], [0.5, 1.0], [0.5, 0.5], [0.9, 0.1], [np.nan], []])
def test_levels_rise_inside(value: Any) -> None:
    with pytest.raises(InputError, match="levels"):
        check_levels(value)


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        ([1.0, -1.0], "importance", "not be negative, got -1"),
        ([0.0, 0.0], "frequency", "not all be zero"),
        ([1.0, 0.5], "frequency", "whole numbers .* got 0.5 at row 1"),
        ([1.0], "other", "'frequency' or 'importance', got 'other'"),
        ([np.nan], "frequency", "finite"),
        ([1e308, 1e308], "importance", "finite sum"),
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
    st.one_of(
        st.none(), st.text(), st.integers(), st.floats(), st.binary(), st.dates(),
        st.lists(st.one_of(st.none(), st.text(), st.floats(), st.integers())),
        hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_side=0, max_side=3)),
    )
)  # fmt: skip
def test_only_errors_of_our_own_come_out(value: Any) -> None:
    for check in (
        lambda: as_vector(value, "a"),
        lambda: as_matrix(value, "a"),
        lambda: as_labels(value, "a"),
        lambda: Categories.checked(value, "a"),
        lambda: check_levels(value),
        lambda: check_interval(value, value),
        lambda: Weights.checked(value, "importance"),
    ):
        try:
            check()
        except HowsureError:
            continue
