"""Parquet and Arrow files: only what is asked for, and never a crash on broken bytes."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import HowsureError, InputError
from howsure.inputs import load, open_table

SETTINGS = examples(150)
TABLE = pa.table(
    {
        "y": [1.0, 2.0],
        "q0.05": [0.5, 1.5],
        "q0.95": [1.5, 2.5],
        "q0": [0.0, 1.0],
        "region": ["north", "south"],
        "nested": [[1], [2, 3]],
        "record": [{"a": 1}, {"a": 2}],
        "unused": [b"\xff", b""],
    }
)


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix in (".parquet", ".pq"):
        pq.write_table(table, path)
    elif path.name == "stream.arrow":
        with pa.ipc.new_stream(path, table.schema) as out:
            out.write_table(table)
    else:
        feather.write_feather(table, str(path))
    return path


@pytest.fixture(params=["t.parquet", "t.pq", "t.arrow", "t.feather", "t.ipc", "stream.arrow"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(TABLE, tmp_path / request.param)


def test_columns_are_read_by_name(path: Path) -> None:
    """Also where one name is the start of another up to a point, as of a nested path."""
    source = open_table(path)
    assert source.names == tuple(TABLE.column_names)
    table = source.read({"region": "label", "q0": "number", "y": "number"})
    assert table.column_names == ["region", "q0", "y"]
    made = load(path, groups="region").evalsets[0]
    assert made.y.tolist() == [1.0, 2.0]
    assert made.predictions[0].quantile([0.05, 0.95]).tolist() == [[0.5, 1.5], [1.5, 2.5]]
    assert made.groups["region"].values().tolist() == ["north", "south"]


def test_nested_columns_are_refused_only_when_asked_for(path: Path) -> None:
    for name in ("nested", "record"):
        with pytest.raises(
            InputError, match=f"column '{name}' must have one value per row, got nes"
        ):
            load(path, features=name)


def test_no_rows(path: Path) -> None:
    write(TABLE.slice(0, 0), path)
    with pytest.raises(InputError, match="has columns but no rows"):
        load(path)


def test_repeated_names(path: Path) -> None:
    write(pa.table([[1.0], [2.0], [3.0]], names=["y", "y", "pred"]), path)
    with pytest.raises(
        InputError, match="column names must differ; these occur more than once: 'y'"
    ):
        load(path)


def test_other_content_than_the_ending_says(tmp_path: Path, path: Path) -> None:
    wrong = tmp_path / ("w.feather" if path.suffix in (".parquet", ".pq") else "w.parquet")
    wrong.write_bytes(path.read_bytes())
    with pytest.raises(InputError, match=r"the ending says|cannot be read"):
        load(wrong)
    csv = tmp_path / f"c{path.suffix}"
    csv.write_bytes(b"y,pred\n1,2\n")
    with pytest.raises(InputError, match=r"content is something else|cannot be read"):
        load(csv)
    csv.write_bytes(b"FEA1 and so on")
    with pytest.raises(InputError, match="Feather version 1"):
        load(csv)


@pytest.mark.parametrize("name", ["t.txt", "t", "t.csv.bz2", "t.parquet.gz", "t.xls", "t.gz"])
def test_unknown_endings(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"y,pred\n1,2\n")
    with pytest.raises(InputError, match=r"the ending must be one of \.csv, \.tsv"):
        load(tmp_path / name)


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for place, said in [
        (tmp_path / "folder.csv", "the folder has no table files"),
        (tmp_path / "none.csv", "no such file"),
        (tmp_path / ("a" * 300 + ".csv"), "no such file|cannot be read"),
        ("a\0.csv", "no such file|cannot be read"),
        (Path("/dev/null"), "a regular file is needed|ending"),
    ]:
        with pytest.raises(InputError, match=said):
            load(place)


def test_text_in_number_columns(tmp_path: Path) -> None:
    table = pa.table({"y": [1.0, 2.0, 3.0], "pred": ["1.5", "x", "y"]})
    with pytest.raises(
        InputError, match=r"'pred' must contain numbers, got 2 cells .*'x' at row 1"
    ):
        load(write(table, tmp_path / "t.parquet"))
    numeric = pa.table({"y": ["1", "2"], "pred": ["1.5", "2"]})
    made = load(write(numeric, tmp_path / "t.parquet")).evalsets[0]
    assert made.y.tolist() == [1.0, 2.0]


def test_only_needed_columns_leave_the_disk(tmp_path: Path) -> None:
    """Bytes of a column that is not asked for may be broken."""
    rng = np.random.default_rng(0)
    table = pa.table({"y": rng.random(2000), "pred": rng.random(2000), "z": rng.random(2000)})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, compression="none", use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(0).column(2)
    content = bytearray(path.read_bytes())
    start = column.data_page_offset
    content[start : start + 200] = b"\xff" * 200
    path.write_bytes(content)
    np.testing.assert_array_equal(load(path).evalsets[0].y, table["y"])
    with pytest.raises(InputError, match="cannot be read"):
        load(path, features="z")


WHOLE: dict[str, bytes] = {}


@SETTINGS
@given(
    st.sampled_from(["t.parquet", "t.feather", "stream.arrow"]),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
    st.floats(0, 1.3),
)
def test_broken_bytes_never_crash(
    tmp_path_factory: pytest.TempPathFactory, name: str, changes: Any, cut: float
) -> None:
    folder = tmp_path_factory.mktemp("b")
    if name not in WHOLE:
        WHOLE[name] = write(TABLE, folder / name).read_bytes()
    content = bytearray(WHOLE[name])
    for place, value in changes:
        content[int(place * len(content))] = value
    (folder / name).write_bytes(content[: int(cut * len(content))] if cut < 1 else content)
    with contextlib.suppress(HowsureError):
        load(folder / name, groups="region")
