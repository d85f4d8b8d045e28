"""Class probabilities and label sets in a table: recognised, checked, and written back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import explain, load
from howsure.inputs.classes import family, label_sets, label_text, labels_of, parse_sets
from howsure.inputs.new import load_new
from howsure.inputs.write import write_table
from howsure.predictions import LabelSets, Probabilities
from howsure.predictions.columns import to_columns, written_set

Y = ["cat", "dog", "cat"]
P: dict[str, Any] = {"p_cat": [0.9, 0.1, 0.5], "p_dog": [0.1, 0.9, 0.5]}


def _sets(table: Any, **said: Any) -> LabelSets:
    prediction = load(table, **said).evalsets[0].predictions[-1]
    assert isinstance(prediction, LabelSets)
    return prediction


@pytest.mark.parametrize(
    "cells",
    [
        ["cat|dog", "dog", "{}"],
        ["cat;dog", "dog", ""],
        ["cat, dog", "dog", "∅"],
        ["{cat, dog}", "{dog}", "{}"],
        ["['cat', 'dog']", "['dog']", "[]"],
        ["['cat' 'dog']", "['dog']", "[]"],
        ["[np.str_('cat'), np.str_('dog')]", "[np.str_('dog')]", "[]"],
        ['["cat", "dog"]', '["dog"]', "[]"],
        ["('cat', 'dog')", "('dog',)", "()"],
        ["{'cat', 'dog'}", "{'dog'}", "set()"],
        ["frozenset({'cat', 'dog'})", "frozenset({'dog'})", "frozenset()"],
        [["cat", "dog"], ["dog"], []],
        [("cat", "dog"), ("dog",), ()],
        [{"cat", "dog"}, {"dog"}, set()],
    ],
)
def test_sets_are_read_in_the_forms_that_people_write(cells: list[Any]) -> None:
    held = _sets({"y": Y, "label_set": cells}, coverage=0.9)
    assert held.labels == ("cat", "dog")
    assert held.members.tolist() == [[True, True], [False, True], [False, False]]


@pytest.mark.parametrize("cells", [["1|10", "2"], ["[1 10]", "[2]"], ["[1, 10]", "[2.0]"]])
def test_classes_may_be_numbers(cells: list[str]) -> None:
    loaded = load({"y": [10, 2.0], "set_80": cells})
    held = loaded.evalsets[0].predictions[0]
    assert isinstance(held, LabelSets)
    assert (held.labels, held.coverage) == (("1", "2", "10"), 0.8)
    assert loaded.evalsets[0].y.tolist() == [2.0, 1.0]


def test_cells_with_escapes_and_marks_come_back() -> None:
    labels = ("a|b", 'say "c"', "d, e")
    rows = np.random.default_rng(0).random((20, 3)) < 0.5
    cells = [written_set(row, labels) for row in rows]
    found = parse_sets(cells, "set")
    assert found == [tuple(n for n, i in zip(labels, row, strict=True) if i) for row in rows]
    assert parse_sets(["New York, NY|Bonn", "New York, NY"], "set")[1] == ("New York, NY",)
    with pytest.raises(
        InputError, match=r"one separator between labels, got ';' .* ',' in 'cat, dog'"
    ):
        parse_sets(["cat, dog", "cat", "dog", "cat;dog"], "set")
    assert parse_sets([r"['it\'s', 'x']"], "set") == [("it's", "x")]
    assert parse_sets([None, float("nan"), "NA"], "set") == [None, None, None]


def test_sets_of_many_classes_by_brute_force() -> None:
    compared = 0

    class Label(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, str(other))

    rng = child(0, "many classes")
    labels = [Label(f"c{k}") for k in range(300)]
    different = [tuple(labels[k] for k in rng.permutation(300)[:size]) for size in (100, 0, 300, 1)]
    codes = np.array([3, 0, 0, 1, 2])
    found = label_sets(labels, None, (codes, different), 0.9).members
    assert compared < 1_000  # not each class with each label of each set
    brute = [[any(a is b for b in different[code]) for a in labels] for code in codes]
    assert found.tolist() == brute


def test_probabilities_make_the_sets_that_the_classifier_claims() -> None:
    loaded = load({"y": Y, **P, "pred": ["cat", "dog", "dog"]}, coverage=0.9)
    stated, held = loaded.evalsets[0].predictions
    assert isinstance(held, LabelSets)
    assert isinstance(stated, Probabilities)
    assert held.probabilities is not None
    assert (
        stated.table.tolist() == held.probabilities.tolist() == [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]
    )
    assert held.members.tolist() == [[True, False], [False, True], [True, True]]
    assert loaded.evalsets[0].y.tolist() == [0.0, 1.0, 0.0]
    assert _sets({"y": Y, **P}, coverage=0.95).sizes.tolist() == [2, 2, 2]
    told = {use.column: (use.role, use.note) for use in loaded.explanation}
    assert told["p_cat"] == ("probability of cat", "if rows sum to 1")
    assert told["pred"][0] == "ignored"
    assert "predicted class" in told["pred"][1]


def test_the_likeliest_classes_by_brute_force() -> None:
    rng = np.random.default_rng(1)
    p = np.round(rng.dirichlet(np.full(4, 0.7), size=200), 2)
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.abs(p) / np.abs(p).sum(axis=1, keepdims=True)
    for coverage in (0.5, 0.9):
        held = LabelSets.likeliest(p, coverage)
        for row, members in zip(p, held.members, strict=True):
            levels = sorted(set(row), reverse=True)
            wanted = next(t for t in levels if row[row >= t].sum() >= coverage - 1e-12)
            reached = {round(float(row[row >= t].sum()), 9) for t in levels}
            assert round(float(row[members].sum()), 9) in reached
            assert row[members].sum() >= coverage - 1e-9
            assert row[members].min() >= wanted - 1e-12


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (["p_cat", "p_dog", "y"], ["cat", "dog"]),
        (["Prob_Cat", "prob_dog"], ["Cat", "dog"]),
        (["p_0", "p_1", "p_2"], ["0", "1", "2"]),
        (["softmax_1", "softmax_2"], ["1", "2"]),
        (["p_T-shirt/top", "p_a b"], ["T-shirt/top", "a b"]),
        (["prob_0", "prob_1", "prob_3"], ["0", "1", "3"]),
        (["p_5", "p_50", "p_95"], []),
        (["p_1", "p_3"], []),
        (["p_0.05", "p_0.95"], []),
        (["p_5", "p_value"], []),
        (["p_cat"], []),
        (["p_cat", "p_dog", "prob_cat", "prob_dog"], []),
    ],
)
def test_names_of_probabilities(names: list[str], labels: list[str]) -> None:
    assert list(family(names).values()) == labels


def test_labels_are_what_a_pattern_leaves_open() -> None:
    assert labels_of(["model_cat_p", "model_dog_p"], ["model_*_p"]) == ("cat", "dog")
    assert labels_of(["p_cat", "p_dog"], ["p_cat", "p_dog"]) == ("cat", "dog")
    assert labels_of(["cat", "dog"], ["cat", "dog"]) == ("cat", "dog")
    assert [label_text(x) for x in (1, 1.0, np.float64(2), True, " a ", "3.0", 0.5)] == [
        *("1", "1", "2", "True", "a", "3", "0.5"),
    ]
    table = {"y": [1, 0], "a_0": [0.1, 0.9], "a_1": [0.9, 0.1]}
    assert _sets(table, softmax="a_*", coverage=0.9).labels == ("0", "1")


def test_other_predictions_are_read_as_before() -> None:
    shares = {"p_urban": [0.2, 0.7], "p_rural": [0.8, 0.3]}
    other = load({"y": [1.0, 2.0], "pred": [1.0, 2.0], **shares})
    assert other.evalsets[0].point is not None
    assert not other.evalsets[0].predictions
    told = {use.column: use for use in other.explanation}
    assert told["p_urban"].role == "ignored"
    assert "none of its 2 labels" in told["p_urban"].note
    (normal,) = load({"y": [1, 0], "mean": [1, 2], "sd": [1, 1], **shares}).evalsets[0].predictions
    assert normal.kind == "distributions"
    split = load({"y": [1.0, 2.0], "pred": [1.0, 2.0], "set": ["train", "test"]})
    assert split.evalsets[0].point is not None
    levels = {"p_5": [0.1, 0.2], "p_50": [0.4, 0.5], "p_95": [1.0, 2.0]}
    (table,) = load({"y": [1.0, 0.0], **levels}).evalsets[0].predictions
    assert table.kind == "quantiles"


@pytest.mark.parametrize(
    ("table", "said", "wanted"),
    [
        ({"y": ["cat", "bird", "cat"], **P}, {}, r"'bird' in 1 rows \(first at row 1"),
        ({"y": [1, 2, 3], **P}, {}, "none of its 3 labels is a class"),
        ({"y": Y, "p_cat": [0.9, 0.1, 0.4], "p_dog": P["p_dog"]}, {}, r"row 2: sum 0\.9\)"),
        ({"y": Y, "p_cat": [0.9, 0.1, 1.5], "p_dog": [0.1, 0.9, -0.5]}, {}, r"row 2: least -0\.5"),
        (
            {"y": Y, "p_cat": P["p_cat"], "p_dog": ["a", "b", "c"]},
            {},
            "'p_dog' must contain numbers",
        ),
        (
            {"y": ["cat", "dog", "emu"], "p_cat": P["p_cat"]},
            {"softmax": "p_*"},
            "two classes where 'p_cat' alone is a probability, got 3",
        ),
        ({"y": ["a", "b", "a"], "p": P["p_cat"]}, {}, "does not say which of them it is the"),
        ({"y": [0, 1, 1], "p": [20, 70, 90]}, {}, "got 20 .* divide percent by 100"),
        ({"y": [0, 1, 1], "score": [-1.0, 2, 3]}, {"softmax": "score"}, "call log-odds logit"),
        ({"y": [0, 1, 1], "confidence": [0.2, 0.7, 0.9]}, {}, "a column of what was right"),
        ({"correct": [0, 1, 1], "confidence": [0.2, 70, 90]}, {}, "the scale is unclear"),
        (
            {"y": ["a", "b", "b"], "confidence": [0.2, 0.7, 0.9]},
            {"stated_confidence": "confidence"},
            "whether the answer was right, by 0 and 1",
        ),
        (
            {"y": ["a|b", "b", "a"], "p_a": [0.9, 0.1, 0.6], "p_b": [0.8, 0.9, 0.1]},
            {"softmax": "p_*"},
            "several labels, assess each label by its own",
        ),
        ({"y": Y, **P, "p_cat ": P["p_cat"]}, {"softmax": "p_*"}, "each class once, got 'cat'"),
        (
            {"y": Y, **P, "sd": [1, 1, 1]},
            {"softmax": "p_*", "sd": "sd"},
            "softmax is for classes, and sd",
        ),
        ({"y": Y, **P}, {"coverage": [0.8, 0.9]}, "coverage must be one number for label sets"),
        ({"y": Y, "set": Y}, {}, "need their nominal coverage"),
        (
            {"y": Y, "set_90": Y, "set_80": Y},
            {},
            "label_set must be one column, but the names of 2 match",
        ),
        ({"y": Y, "set_90": Y}, {"coverage": 0.8}, "implies a coverage of 0.9"),
        (
            {"y": Y, **P, "set_90": ["cat", "bird", ""]},
            {},
            "'set_90' must contain labels .* 'bird'",
        ),
        ({"y": Y, "set_90": ["cat|cat", "", ""]}, {}, "each label of a set once, got 'cat'"),
        ({"y": Y, "set_90": ["[cat", "", ""]}, {}, r"such as cat\|dog .* got '\[cat'"),
        ({"y": ["a"] * 3, "set_90": ["a", "a", ""]}, {}, "at least two classes, got 'a'"),
        ({"y": Y, "set_90": ["cat", None, "dog"]}, {}, "cells are missing: 1 in 'set_90'"),
    ],
)
def test_what_is_wrong_is_named(table: Any, said: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InputError, match=wanted):
        load(table, **said)


def test_missing_cells_are_dropped_where_that_is_asked() -> None:
    holes = {"p_cat": [0.9, 0.1, np.nan], "p_dog": [0.1, 0.9, 0.5]}
    assert _sets({"y": Y, **holes}, missing="drop", coverage=0.9).n == 2
    assert _sets({"y": ["cat", None, "dog"], **P}, missing="drop", coverage=0.9).n == 2
    table = {"y": Y, "set_90": ["cat", None, "dog|cat"]}
    assert _sets(table, missing="drop").sizes.tolist() == [1, 2]


def test_models_tell_of_the_same_classes() -> None:
    turned = {"p_dog": P["p_dog"], "p_cat": P["p_cat"]}
    one, two = load([{"y": Y, **P}, {"y": Y, **turned}]).evalsets
    assert (
        one.predictions[0].numbers()["probabilities"].tolist()
        == two.predictions[0].numbers()["probabilities"].tolist()
    )
    first, second = load([{"y": Y, "set_90": Y}, {"y": Y, "set_90": ["bird", "dog", ""]}]).evalsets
    assert first.y.tolist() == second.y.tolist() == [1.0, 2.0, 1.0]
    assert first.predictions[0].labels == second.predictions[0].labels == ("bird", "cat", "dog")  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="same classes, got 'cat', 'dog' of 'model 1'"):
        load([{"y": Y, **P}, {"y": Y, "p_cat": P["p_cat"], "p_dog": P["p_dog"], "p_emu": [0] * 3}])


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow", ".tsv"])
def test_files_hold_what_was_written(ending: str, tmp_path: Path) -> None:
    loaded = load({"y": Y, **P}, coverage=0.9)
    columns = to_columns(loaded.evalsets[0])
    assert list(columns) == ["y", "p_dog", "label_set_90", "p_cat"]
    file = tmp_path / f"table{ending}"
    write_table(columns, file)
    again = load(file).evalsets[0]
    assert again.y.tolist() == loaded.evalsets[0].y.tolist()
    old, new = loaded.evalsets[0].predictions[0].numbers(), again.predictions[0].numbers()
    assert all(np.array_equal(old[name], new[name]) for name in old)
    rows = load_new(file)
    assert rows.labelled
    assert rows.evalset.y.tolist() == loaded.evalsets[0].y.tolist()
    write_table({name: column for name, column in columns.items() if name != "y"}, file)
    assert not load_new(file).labelled


@pytest.mark.parametrize(
    ("table", "said", "classes", "of_second", "y"),
    [
        ({"y": [0, 1, 1], "p": [0.2, 0.7, 0.9]}, {}, ("0", "1"), [0.2, 0.7, 0.9], [0, 1, 1]),
        (
            {"y": [False, True, True], "prob": [0.2, 0.7, 0.9]},
            {},
            ("False", "True"),
            [0.2, 0.7, 0.9],
            [0, 1, 1],
        ),
        (
            {"y": ["spam", "ham", "ham"], "p_spam": [0.2, 0.7, 0.9]},
            {},
            ("ham", "spam"),
            [0.2, 0.7, 0.9],
            [1, 0, 0],
        ),
        ({"y": [0, 0, 0], "p": [0.2, 0.7, 0.9]}, {}, ("0", "1"), [0.2, 0.7, 0.9], [0, 0, 0]),
        (
            {"y": [0, 1, 1], "score": [0.2, 0.7, 0.9]},
            {"softmax": "score"},
            ("0", "1"),
            [0.2, 0.7, 0.9],
            [0, 1, 1],
        ),
        ({"y": [0, 1], "logit": [0.0, np.log(3.0)]}, {}, ("0", "1"), [0.5, 0.75], [0, 1]),
        (
            {"y": ["a", "b"], "logit_a": [0.0, 1.0], "logit_b": [np.log(3.0), 1.0]},
            {},
            ("a", "b"),
            [0.75, 0.5],
            [0, 1],
        ),
        (
            {"correct": [True, False], "confidence": [80, 100], "answer": ["a", "b"]},
            {},
            ("wrong", "right"),
            [0.8, 1.0],
            [1, 0],
        ),
        (
            {"label": [1, 0], "correct": [0, 1], "conf": [0.5, 1.0]},
            {},
            ("wrong", "right"),
            [0.5, 1.0],
            [0, 1],
        ),
    ],
)
def test_probabilities_of_two_classes(
    table: Any, said: Any, classes: tuple[str, ...], of_second: list[float], y: list[int]
) -> None:
    evalset = load(table, **said).evalsets[0]
    (stated,) = evalset.predictions
    assert isinstance(stated, Probabilities)
    assert stated.names == classes
    assert stated.table[:, 1] == pytest.approx(of_second)
    assert evalset.y.tolist() == y


def test_names_alone_are_explained() -> None:
    told = {use.column: use.role for use in explain({"y": Y, **P, "set_80": Y})}
    assert told == {
        "y": "y",
        "p_cat": "probability of cat",
        "p_dog": "probability of dog",
        "set_80": "label set at 80 %",
    }
