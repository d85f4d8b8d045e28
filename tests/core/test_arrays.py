"""The checks at the door: what passes is unchanged, what does not is named."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from extras import needs
from generated import examples
from howsure.core.arrays import (
    as_matrix,
    as_vector,
    check_above,
    check_fraction,
    check_interval,
    check_levels,
    check_quantiles,
)
from howsure.core.errors import HowsureError, InputError
from howsure.core.labels import Categories, as_labels
from howsure.core.weights import Weights

SETTINGS = examples(100)

RAGGED: Any = [[1.0], [1.0, 2.0]]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "y must have at least one row, but is empty"),
        (3.0, r"y must have one dimension, got shape \(\)"),
        ([[1.0, 2.0]], r"y must have one dimension, got shape \(1, 2\)"),
        ([1.0, float("nan"), float("inf")], "got 2 missing or infinite values .first at row 1."),
        ([1.0, None], "got 1 missing or infinite value .first at row 1."),
        (["1.5"], "y must contain real numbers"),
        (np.array(["1.5"], dtype=object), "y must contain real numbers, got text"),
        ([1 + 2j], "y must contain real numbers, got dtype complex"),
        (np.array(["2020-01-01"], "M8[D]"), "y must contain real numbers, got dtype datetime64"),
        ([10**400], "y must contain real numbers"),
        ([object()], "y must contain real numbers"),
        (RAGGED, "y must be one rectangular array"),
        (np.zeros(1, dtype=[("a", float)]), "y must contain real numbers, got dtype"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "got 1 missing .* .first at row 1."),
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
        [Decimal(1), Decimal(2)],
        np.array([1.0, 2.0], dtype=object),
        np.ma.array([1.0, 2.0]),
    ],
)
def test_numbers_of_any_kind_become_floats(value: Any) -> None:
    made = as_vector(value, "y")
    assert made.dtype == np.float64
    assert made.tolist() == [1.0, 2.0]


def test_a_pandas_series_is_a_vector() -> None:
    pd = needs("pandas")
    assert as_vector(pd.Series([1, 2]), "y").tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="y must contain real numbers"):
        as_vector(pd.Series([1.0, pd.NA], dtype=object), "y")


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


def test_intervals_may_be_unbounded_but_not_crossed() -> None:
    low, high = check_interval([-np.inf, 1.0], [np.inf, 1.0])
    assert (low <= high).all()
    with pytest.raises(InputError, match=r"1 crossed intervals \(first at row 1: lower 3, upper 2"):
        check_interval([0.0, 3.0], [1.0, 2.0])
    with pytest.raises(InputError, match="upper must have 2 rows, got 1"):
        check_interval([0.0, 3.0], [1.0])


@pytest.mark.parametrize("value", [0, 1, -0.1, 90, float("nan"), "ninety", None, [0.5, 0.6]])
def test_fractions_lie_inside(value: Any) -> None:
    with pytest.raises(InputError, match="coverage must be strictly between 0 and 1"):
        check_fraction(value, "coverage")


@pytest.mark.parametrize("value", [[0.0, 0.5], [0.5, 1.0], [0.5, 0.5], [0.9, 0.1], [np.nan], []])
def test_levels_rise_inside(value: Any) -> None:
    with pytest.raises(InputError, match="levels"):
        check_levels(value)


def test_quantiles_have_a_column_a_level() -> None:
    y, table, levels = check_quantiles([1, 2], [[0, 1], [1, 2]], [0.1, 0.9])
    assert (y.tolist(), table.tolist(), levels.tolist()) == ([1, 2], [[0, 1], [1, 2]], [0.1, 0.9])
    with pytest.raises(InputError, match="quantiles must have 1 columns, got 2"):
        check_quantiles([1], [[0, 1]], [0.5])
    with pytest.raises(InputError, match="quantiles must have 1 rows, got 2"):
        check_quantiles([1], [[0], [1]], [0.5])
    with pytest.raises(InputError, match="levels must increase"):
        check_quantiles([1], [[0, 1]], [0.9, 0.1])


def test_a_bound_is_outside() -> None:
    check_above(np.array([1e-300, 1.0]), "sd", 0.0)
    with pytest.raises(InputError, match=r"sd must be above 1, got 2 .* \(first at row 0: 0.5\)"):
        check_above(np.array([0.5, 2.0, 1.0]), "sd", 1.0)


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


def test_tensors_are_arrays_at_the_door() -> None:
    torch = needs("torch")
    tensor = torch.tensor([1.0, 2.0], requires_grad=True)
    assert as_vector(tensor, "y").tolist() == [1.0, 2.0]
    assert as_vector(tensor.detach().bfloat16(), "y").tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="dense tensor of real numbers"):
        as_vector(torch.tensor([1j]), "y")
