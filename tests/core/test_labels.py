"""Labels at the door: what passes keeps its kind and every character, what does not is named."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extras import needs
from generated import examples
from howsure.core.errors import InputError
from howsure.core.labels import Categories, as_labels

SETTINGS = examples(100)

RAGGED: Any = [[1.0], [1.0, 2.0]]


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
        ([["a"]], "one dimension"),
        (["a", "\ud800"], "Unicode"),
        (np.array([b"\xff"]), "Unicode"),
        ([1 + 2j], "labels, got dtype complex"),
        ([], "at least one row"),
        (RAGGED, "one rectangular array"),
    ],
)
def test_labels_that_are_none_are_named(value: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        as_labels(value, "g")


def test_missing_labels_of_pandas_are_named() -> None:
    pd = needs("pandas")
    for value in (pd.Series(["a", pd.NA], dtype="string"), pd.Series(["a", pd.NaT], dtype=object)):
        with pytest.raises(InputError, match="no missing labels"):
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


def test_categories_travel() -> None:
    item = Categories.checked(["a"], "g")
    assert pickle.loads(pickle.dumps(item)) is not item
    assert item == item
    assert len({item}) == 1
