"""Tables written: unaltered, whole, or not at all."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError
from howsure.core.labels import Categories
from howsure.inputs import open_table, write_table

SETTINGS = examples(60)
ENDINGS = [".csv", ".tsv", ".csv.gz", ".tsv.zst", ".parquet", ".pq", ".arrow", ".feather", ".ipc"]
text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)


@SETTINGS
@given(
    st.sampled_from(ENDINGS),
    text.filter(lambda name: name not in ("", "y")),
    st.lists(st.tuples(st.floats(allow_nan=False), text), min_size=1, max_size=6),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, ending: str, name: str, rows: Any
) -> None:
    """Every digit of every number, every character of every text, hostile names too."""
    path = tmp_path_factory.mktemp("w") / f"t{ending}"
    numbers, texts = [row[0] for row in rows], [row[1] for row in rows]
    write_table({"y": numbers, name: texts}, path)
    source = open_table(path)
    assert source.names == ("y", name)
    table = source.read({"y": "number", name: "text"})
    assert table["y"].to_pylist() == numbers
    assert table[name].to_pylist() == texts
    assert os.listdir(path.parent) == [path.name]


def test_text_that_looks_like_a_formula_is_kept(tmp_path: Path) -> None:
    cells = ["=1+1", "+a", "-a", "@a", "'=a"]
    write_table({"y": range(5), "note": cells}, tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [row["note"] for row in csv.DictReader(file)] == cells


def test_columns_of_every_kind(tmp_path: Path) -> None:
    columns = {
        "f": np.array([0.1, np.nan]),
        "i": np.array([1, 2]),
        "b": np.array([True, False]),
        "d": np.array(["2026-01-01", "2026-01-02"], "M8[D]"),
        "s": np.array(["a", "b"], dtype=object),
        "u": np.array(["a", "b"]),
        "c": Categories.checked(["n", "s"], "c"),
    }
    write_table(columns, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        '"f","i","b","d","s","u","c"',
        '0.1,1,true,2026-01-01,"a","a","n"',
        ',2,false,2026-01-02,"b","b","s"',
    ]
    write_table(pa.table({"g": pa.array(["a", "b"]).dictionary_encode()}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == '"g"\n"a"\n"b"\n'


@pytest.mark.parametrize(
    ("table", "name", "said"),
    [
        ({"y": [1.0]}, "t.txt", "the ending must be one of"),
        ({"y": [1.0]}, "t.parquet.gz", "the ending must be one of"),
        ({"y": [1.0]}, "none/t.csv", "folder of the output must exist"),
        ({"y": [1.0], "x": [1.0, 2.0]}, "t.csv", "columns must have the same length"),
        ({}, "t.csv", "no columns"),
        ({1: [1.0], "1": [1.0]}, "t.csv", "column names must differ"),
        ({"y": ["\ud800"]}, "t.csv", "column 'y'"),
        ({"y": [[1.0]]}, "t.csv", "nested type"),
        (pa.table({"y": [[1.0]]}), "t.csv", "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_said(tmp_path: Path, table: Any, name: str, said: str) -> None:
    (tmp_path / "t.csv").write_text("before")
    with pytest.raises(InputError, match=said):
        write_table(table, tmp_path / name)
    assert (tmp_path / "t.csv").read_text() == "before"
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz"])
def test_bare_text_is_quoted_where_it_must_be(tmp_path: Path, name: str) -> None:
    cells = ["1.50", "007", 'say "a, b"', "two\nlines", "tab\tin", "", "\r"]
    table = pa.table({"a,b": cells, "n": [0.1 + 0.2, *[None] * 5, float("inf")]})
    write_table(table, tmp_path / name, bare=True)
    again = open_table(tmp_path / name).read_all()
    assert again["a,b"].to_pylist() == cells
    assert again["n"].to_pylist() == ["0.30000000000000004", *[""] * 5, "inf"]


def test_beside_decimal_commas_semicolons_part_the_cells(tmp_path: Path) -> None:
    table = pa.table({"a,b": ["1,5"], "c": ["2"]})
    for name, text in (("out.csv", '"a,b";c\n1,5;2\n'), ("out.tsv", '"a,b"\tc\n1,5\t2\n')):
        write_table(table, tmp_path / name, bare=True, decimal=",")
        assert (tmp_path / name).read_text(encoding="utf-8") == text
        assert open_table(tmp_path / name, decimal=",").read_all().equals(table)


def test_numbers_that_are_text_are_no_formulas(tmp_path: Path) -> None:
    cells = ["-1.5", "+2", "-3e-5", "-1,5", "-a", "=1"]
    write_table(pa.table({"a": cells}), tmp_path / "out.csv", csv_safe=True)
    found = open_table(tmp_path / "out.csv").read_all()["a"].to_pylist()
    assert found == [*cells[:4], "'-a", "'=1"]
