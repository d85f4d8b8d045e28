"""Arrow columns as arrays: what is missing stays, what does not fit is named."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.inputs.values import absent, feature, labels, names, numbers, times

SETTINGS = examples(80)
DAY = datetime.date(2026, 1, 2)
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def column(values: list[Any], kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (column([1, None]), [1.0, math.nan]),
        (column([True, False, None]), [1.0, 0.0, math.nan]),
        (column([1.5, math.nan], pa.float32()), [1.5, math.nan]),
        (column(np.array([1.5], dtype=np.float16), pa.float16()), [1.5]),
        (column([None]), [math.nan]),
        (column([Decimal("1.25"), None]), [1.25, math.nan]),
        (column([2**63], pa.uint64()), [2.0**63]),
        (column(["1", " 2.5 ", "+3", "-inf", "NA", "", "nan", None]),
         [1.0, 2.5, 3.0, -math.inf, math.nan, math.nan, math.nan, math.nan]),
        (column(["1", "2"]).dictionary_encode(), [1.0, 2.0]),
        (column(["1"], pa.string_view()), [1.0]),
        (column(["1"], pa.large_string()), [1.0]),
        (pa.chunked_array([[1.0], [], [2.0]]), [1.0, 2.0]),
        (pa.chunked_array([], pa.float64()), []),
    ],
)  # fmt: skip
def test_numbers_of_every_type(given: pa.ChunkedArray, expected: list[float]) -> None:
    np.testing.assert_array_equal(numbers(given, "y"), expected)


@pytest.mark.parametrize(
    "given", [column([b"1"]), column([[1]]), column([DAY]), column([MOMENT]), column([{"a": 1}])]
)
def test_what_holds_no_numbers_is_named(given: pa.ChunkedArray) -> None:
    with pytest.raises(InputError, match="column 'y' must contain numbers, got type"):
        numbers(given, "y")


@SETTINGS
@given(st.lists(st.one_of(st.floats(), st.integers(-(2**60), 2**60)), min_size=1))
def test_numbers_survive_their_text(values: list[float]) -> None:
    expected = np.array([float(value) for value in values])
    np.testing.assert_array_equal(numbers(column([repr(v) for v in values]), "y"), expected)


@SETTINGS
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), min_size=1))
def test_text_is_a_number_only_if_python_says_so(cells: list[str]) -> None:
    try:
        found = numbers(column(cells), "y")
    except InputError:
        return
    for cell, value in zip(cells, found.tolist(), strict=True):
        if not math.isnan(value):
            assert float(cell) == value


@pytest.mark.parametrize(
    ("given", "codes", "distinct"),
    [
        (column(["b", "a", None, "", "b"]), [0, 1, -1, -1, 0], ["b", "a"]),
        (column([3, 1, None]), [0, 1, -1], [3, 1]),
        (column([True, None]), [0, -1], [True]),
        (column([1.0, 2.0, math.nan, None]), [0, 1, -1, -1], [1, 2]),
        (column([1.5, 0.5]), [0, 1], [1.5, 0.5]),
        (column([DAY, None]), [0, -1], ["2026-01-02"]),
        (column([None, None]), [-1, -1], []),
        (column(["a", None], pa.large_string()), [0, -1], ["a"]),
        (column(["a", "b"]).dictionary_encode().slice(1), [0], ["b"]),
        (pa.chunked_array([["a", "b"], ["c"]]).dictionary_encode(), [0, 1, 2], ["a", "b", "c"]),
    ],
)  # fmt: skip
def test_labels_of_every_type(
    given: pa.ChunkedArray, codes: list[int], distinct: list[Any]
) -> None:
    found = labels(given, "g")
    assert found.codes.tolist() == codes
    assert found.labels.tolist() == distinct


def test_dictionaries_as_strangers_write_them() -> None:
    """With labels twice, missing ones within, and unused ones."""
    odd = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, None], pa.int8()), pa.array(["a", "a", None, "", "unused"])
    )
    found = labels(pa.chunked_array([odd]), "g")
    assert found.codes.tolist() == [0, 0, -1, -1, -1]
    assert found.labels.tolist() == ["a"]


def test_labels_that_are_none_are_named() -> None:
    many = column([i + 0.5 for i in range(101)])
    with pytest.raises(InputError, match="'g' must contain labels, got 101 different fractional"):
        labels(many, "g")
    assert len(labels(many.slice(1), "g").labels) == 100
    assert len(labels(column([float(i) for i in range(500)]), "g").labels) == 500
    with pytest.raises(InputError, match="finite labels, got inf"):
        labels(column([math.inf]), "g")
    for wrong in (column([[1]]), column([b"a"])):
        with pytest.raises(InputError, match="must contain labels, got type"):
            labels(wrong, "g")


@SETTINGS
@given(st.lists(st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=3))))
def test_labels_are_found_again(cells: list[str | None]) -> None:
    found = labels(column(cells, pa.string()), "g")
    again = [None if code < 0 else found.labels[code] for code in found.codes]
    assert again == [cell or None for cell in cells]
    assert found.missing().tolist() == [not cell for cell in cells]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (column(["2026-01-02", None]), ["2026-01-02", "NaT"]),
        (column(["2026-01-02 03:04:05"]), ["2026-01-02T03:04:05"]),
        (column(["2026-01-02T03:04:05Z"]), ["2026-01-02T03:04:05"]),
        (column(["2026-01-02T05:04:05+02:00"]), ["2026-01-02T03:04:05"]),
        (column(["2026-01-02T03:04:05.123456789"]), ["2026-01-02T03:04:05.123456789"]),
        (column([DAY, None]), ["2026-01-02", "NaT"]),
        (column([DAY], pa.date64()), ["2026-01-02"]),
        (column([MOMENT]), ["2026-01-02T03:04:05"]),
        (column([MOMENT], pa.timestamp("ns", "Europe/Zurich")), ["2026-01-02T03:04:05"]),
    ],
)
def test_moments(given: pa.ChunkedArray, expected: list[str]) -> None:
    found = times(given, "t")
    assert found.dtype.kind == "M"
    np.testing.assert_array_equal(found, np.array(expected, dtype="M8[ns]"))


def test_times_may_be_numbers() -> None:
    for moments in (column([1, None]), column(["1", ""]), column([1.0, math.nan])):
        np.testing.assert_array_equal(times(moments, "t"), [1.0, math.nan])


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (["2026-01-02", "03/04/2026"], "got '03/04/2026' at row 1"),
        (["03/04/2026", "2026-01-02"], "got '2026-01-02' at row 1"),
        (
            ["2026-01-02", "2026-01-02T03:04:05Z"],
            "have a time zone in all of its times or in none; got both",
        ),
        (["1", "2026-01-02"], "must contain numbers"),
        (["noon"], "must contain numbers or dates as 2024-02-29"),
    ],
)
def test_what_is_no_moment_is_named(cells: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        times(column(cells), "t")
    with pytest.raises(InputError, match="must contain numbers, got type duration"):
        times(column([datetime.timedelta(1)]), "t")


def test_names_of_rows() -> None:
    assert names(column([1, 2]), "id").dtype.kind == "i"
    assert names(column(["a", "", None]), "id").tolist() == ["a", None, None]
    assert names(column([1, None]), "id").tolist() == ["1", None]
    assert names(column([1.5, math.nan]), "id").tolist() == ["1.5", None]
    assert absent(names(column(["a", ""]), "id")).tolist() == [False, True]
    assert absent(names(column([1, 2]), "id")).tolist() == [False, False]
    with pytest.raises(InputError, match="must contain names, got type list"):
        names(column([[1]]), "id")


def test_features_are_numbers_or_labels() -> None:
    assert feature(column([1, 2]), "x").tolist() == [1.0, 2.0]
    found = feature(column(["1", "2"]), "x")
    assert not isinstance(found, np.ndarray)
    assert found.labels.tolist() == ["1", "2"]
    assert feature(column(["1", "2"]), "x", from_text=True).tolist() == [1.0, 2.0]
    mixed = feature(column(["1", "b"]), "x", from_text=True)
    assert not isinstance(mixed, np.ndarray)
    assert mixed.labels.tolist() == ["1", "b"]
