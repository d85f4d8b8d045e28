"""Tables of any size, in pieces: what `load` reads of the whole, whatever the parts."""

from __future__ import annotations

import gzip
import importlib.util
import os
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extras import absent, needs
from generated import examples
from howsure.core.errors import InputError
from howsure.inputs import load, write_table
from howsure.inputs.batches import Batch, with_numbers
from howsure.inputs.sources import extent, is_huge
from howsure.inputs.tables import Scan, cut
from howsure.predictions import EvalSet
from pace import slowness, spent

N = 3_000
FORMS = (".parquet", ".arrow", ".csv", ".csv.gz", ".tsv", ".tsv.zst")


def made(n: int = N, start: int = 0) -> pa.Table:
    """Rows of two models' worth of columns: y, intervals, a normal law, a site and an hour."""
    rng = np.random.default_rng(start)
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    return pa.table(
        {
            "y": mean + sd * rng.normal(size=n),
            "lower_90": mean - 1.6 * sd,
            "upper_90": mean + 1.6 * sd,
            "mean": mean,
            "sd": sd,
            "site": pa.array([f"site {k}" for k in rng.integers(0, 5, n)]).dictionary_encode(),
            "hour": rng.integers(0, 24, n).astype(np.int8),
        }
    )


def parts(folder: Path, count: int = 3, ending: str = ".parquet") -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        write_table(made(N, number), folder / f"part-{number}{ending}")
    return folder


def batches(held: Scan) -> list[Batch]:
    return [batch for piece in held.pieces for batch in held.reading.batches(piece)]


def same(held: Scan, whole: EvalSet, model: int = 0) -> None:
    """The batches together are the evaluation set of the whole."""
    sets = [batch.evalsets[model] for batch in batches(held) if batch.evalsets]
    np.testing.assert_array_equal(np.concatenate([one.y for one in sets]), whole.y)
    for place, prediction in enumerate(whole.predictions):
        for name, column in prediction.numbers().items():
            found = np.concatenate([one.predictions[place].numbers()[name] for one in sets])
            np.testing.assert_array_equal(found, column)
    for name, group in whole.groups.items():
        found = np.concatenate([one.groups[name].values() for one in sets])
        assert found.tolist() == group.values().tolist()
    assert {one.model for one in sets} == {whole.model}


@pytest.mark.parametrize("ending", FORMS)
@pytest.mark.parametrize("rows", [700, 131_072])
def test_a_file_gives_what_load_gives(ending: str, rows: int, tmp_path: Path) -> None:
    path = tmp_path / f"preds{ending}"
    write_table(made(), path)
    held = cut(path, batch_rows=rows, groups="site,hour")
    loaded = load(path, groups="site,hour")
    same(held, loaded.evalsets[0])
    assert held.explanation == loaded.explanation
    assert [batch.rows for batch in batches(held)] == [
        min(rows, N - start) for start in range(0, N, rows)
    ]


@pytest.mark.parametrize("ending", FORMS)
def test_a_folder_is_one_table(ending: str, tmp_path: Path) -> None:
    folder = parts(tmp_path / "preds", 3, ending)
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "notes.txt").write_text("no table")
    held = cut(folder, groups="site,hour")
    whole = load(pa.concat_tables([made(N, k) for k in range(3)]), groups="site,hour")
    same(held, replace(whole.evalsets[0], model="preds"))
    assert held.title == f"{folder}/ (3 files)"
    assert held.again
    same(cut(f"{folder}/*{ending}", groups="site,hour"), replace(whole.evalsets[0], model="preds"))


@examples(25)
@given(
    sizes=st.lists(st.integers(0, 60), min_size=1, max_size=5).filter(any),
    group=st.integers(1, 50),
    batch=st.integers(1, 70),
    piece=st.integers(1, 100),
)
def test_rows_come_once_and_in_order(
    sizes: list[int], group: int, batch: int, piece: int, tmp_path_factory: Any
) -> None:
    """Whatever the files, the row groups, the batches and the pieces."""
    folder = tmp_path_factory.mktemp("parts")
    tables = [made(size, number) for number, size in enumerate(sizes)]
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=group)
    held = cut(folder, batch_rows=batch, piece_rows=piece)
    assert held.rows == sum(sizes) == sum(one.rows for one in batches(held))
    found = np.concatenate([one.evalsets[0].y for one in batches(held)])
    np.testing.assert_array_equal(found, np.concatenate([t["y"].to_numpy() for t in tables]))
    for one in held.pieces:
        assert one.rows == sum(batch.rows for batch in held.reading.batches(one))
    assert len({one.identity for one in held.pieces}) == len(held.pieces)


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_row_groups_are_pieces(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{ending}"
    if ending == ".parquet":
        pq.write_table(made(), path, row_group_size=500)
    else:
        with pa.ipc.new_file(path, made().schema) as file:
            file.write_table(made(), max_chunksize=500)
    held = cut(path, piece_rows=1000)
    word = "row groups" if ending == ".parquet" else "batches"
    assert [one.title for one in held.pieces] == [
        f"{path}, {word} {first} to {first + 1}" for first in (0, 2, 4)
    ]
    assert [one.first_row for one in held.pieces] == [0, 1000, 2000]
    (last,) = held.reading.batches(held.pieces[2])
    assert last.evalsets[0].row_names().tolist() == list(range(2000, 3000))


def test_an_arrow_stream_is_one_piece(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    with pa.ipc.new_stream(path, made().schema) as stream:
        stream.write_table(made(), max_chunksize=500)
    held = cut(path, groups="site")
    assert len(held.pieces) == 1
    same(held, load(path, groups="site").evalsets[0])


def test_pieces_and_their_reading_travel(tmp_path: Path) -> None:
    held = cut(parts(tmp_path / "preds"), groups="site")
    again: Scan = pickle.loads(pickle.dumps(held))
    assert again == held
    assert batches(again)[2].evalsets[0].y.tolist() == batches(held)[2].evalsets[0].y.tolist()


def test_an_identity_is_that_of_the_content(tmp_path: Path) -> None:
    folder = parts(tmp_path / "preds")
    first = [one.identity for one in cut(folder).pieces]
    assert [one.identity for one in cut(folder).pieces] == first
    os.utime(folder / "part-1.parquet", ns=(5, 5))
    second = [one.identity for one in cut(folder).pieces]
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, False, True]


def test_a_file_that_changes_is_told(tmp_path: Path) -> None:
    held = cut(parts(tmp_path / "preds"))
    write_table(made(10), tmp_path / "preds" / "part-1.parquet")
    with pytest.raises(InputError, match=r"part-1\.parquet: the file has changed since"):
        batches(held)


def test_hive_partitions_are_columns(tmp_path: Path) -> None:
    for year in (2023, 2024):
        for site in ("a b", "c"):
            folder = tmp_path / "preds" / f"year={year}" / f"place={site.replace(' ', '%20')}"
            folder.mkdir(parents=True)
            write_table(made(10, year).drop(["site"]), folder / "0.parquet")
    held = cut(tmp_path / "preds", groups="year,place", batch_rows=4)
    groups = [batch.evalsets[0].groups for batch in batches(held)]
    years = np.concatenate([one["year"].values() for one in groups])
    assert years.tolist() == [2023] * 20 + [2024] * 20
    places = np.concatenate([one["place"].values() for one in groups]).tolist()
    assert places == (["a b"] * 10 + ["c"] * 10) * 2
    assert held.reading.names == ("preds",)
    one = cut(str(tmp_path / "preds" / "**" / "*.parquet"), groups="year")
    assert sum(batch.rows for batch in batches(one)) == 40


def test_several_models_in_one_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=(1000, 5))
    y.sort(axis=1)
    names = ["y", "a_lower_90", "b_lower_90", "a_upper_90", "b_upper_90"]
    table = pa.table(list(y[:, [2, 0, 1, 3, 4]].T), names=names)
    write_table(table, tmp_path / "t.parquet")
    held = cut(tmp_path / "t.parquet", batch_rows=300)
    loaded = load(tmp_path / "t.parquet")
    assert held.reading.names == tuple(one.model for one in loaded.evalsets) == ("a", "b")
    for place, whole in enumerate(loaded.evalsets):
        same(held, whole, place)
    assert held.explanation == loaded.explanation


def test_missing_cells(tmp_path: Path) -> None:
    folder = parts(tmp_path / "preds")
    table = made(N, 1)
    y = table["y"].to_numpy().copy()
    y[2_345] = np.nan
    write_table(table.set_column(0, "y", pa.array(y)), folder / "part-1.parquet")
    with pytest.raises(
        InputError, match=r"part-1\.parquet: cells are missing: 1 in 'y' \(first at row 23"
    ):
        batches(cut(folder, batch_rows=500))
    held = batches(cut(folder, batch_rows=500, missing="drop"))
    assert sum(one.rows for one in held) == 3 * N
    assert sum(one.dropped for one in held) == 1
    (one,) = (one for one in held if one.dropped)
    assert one.dropped_by == {"y": 1}
    assert one.evalsets[0].row_names().tolist() == [k for k in range(2000, 2500) if k != 2345]


def test_a_batch_without_a_whole_row(tmp_path: Path) -> None:
    y = np.arange(30.0)
    y[10:20] = np.nan
    weights = np.repeat([1.0, 1.0, 0.0], 10)
    table = pa.table({"y": y, "pred": y, "weight": weights})
    write_table(table, tmp_path / "t.parquet")
    held = batches(cut(tmp_path / "t.parquet", batch_rows=10, missing="drop"))
    assert [len(one.evalsets) for one in held] == [1, 0, 0]
    assert [one.dropped for one in held] == [0, 10, 0]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        (
            "y",
            np.inf,
            r"column 'y' must contain finite numbers, got 1 infinite \(first at row 2345",
        ),
        ("sd", -1.0, r"first at row 2345: -1"),
        ("lower_90", 99.0, r"1 crossed intervals \(first at row 2345: lower 99"),
        ("y", 1e200, r"first at row 2345\)"),
    ],
)
def test_bad_values_are_told_by_file_and_row(
    column: str, value: float, said: str, tmp_path: Path
) -> None:
    folder = parts(tmp_path / "preds")
    table = made(N, 2)
    found = table[column].to_numpy().copy()
    found[2_345] = value
    gone = table["mean"].to_numpy().copy()
    gone[2_001:2_010] = np.nan
    table = table.set_column(table.column_names.index(column), column, pa.array(found))
    table = table.set_column(table.column_names.index("mean"), "mean", pa.array(gone))
    write_table(table, folder / "part-2.parquet")
    held = cut(folder, batch_rows=500, missing="drop")
    with pytest.raises(InputError, match=rf"part-2\.parquet: .*{said}") as caught:
        batches(held)
    assert "dropped" not in str(caught.value)


def test_parts_of_other_schemas(tmp_path: Path) -> None:
    folder = parts(tmp_path / "preds")
    table = made(N, 1)
    other = table.select([*reversed(table.column_names)]).append_column("more", table["y"])
    write_table(other, folder / "part-1.parquet")
    whole = load(pa.concat_tables([made(N, k) for k in range(3)]), groups="site,hour")
    same(cut(folder, groups="site,hour"), replace(whole.evalsets[0], model="preds"))

    single = table.set_column(0, "y", table["y"].cast(pa.float32()).cast(pa.float64()))
    halves = table.set_column(0, "y", table["y"].cast(pa.float32()))
    write_table(halves, folder / "part-1.parquet")
    assert batches(cut(folder))[1].evalsets[0].y.tolist() == single["y"].to_pylist()

    write_table(table.drop(["sd"]), folder / "part-1.parquet")
    with pytest.raises(InputError, match=r"part-1\.parquet: every part .* one has no 'sd'"):
        batches(cut(folder))

    moments = pa.array(np.arange(N).astype("datetime64[s]"))
    write_table(table.set_column(0, "y", moments), folder / "part-1.parquet")
    with pytest.raises(
        InputError, match=r"part-1\.parquet: column 'y' must contain numbers, got typ"
    ):
        batches(cut(folder))

    place = table.column_names.index("hour")
    hours = pa.array([f"at {k}" for k in range(N)])
    write_table(table.set_column(place, "hour", hours), folder / "part-1.parquet")
    with pytest.raises(
        InputError, match=r"part-1\.parquet: column 'hour' must contain whole numbers"
    ):
        batches(cut(folder, groups="hour"))
    with pytest.raises(InputError, match=r"part-0\.parquet: groups: no column of"):
        cut(folder, groups="x")


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow"])
def test_empty_parts_are_passed_over(ending: str, tmp_path: Path) -> None:
    folder = parts(tmp_path / "preds", 2, ending)
    for name in ("aaa", "zzz"):
        write_table(made(1).slice(0, 0), folder / f"{name}{ending}")
    assert sum(one.rows for one in batches(cut(folder))) == 2 * N
    for file in folder.glob("part*"):
        file.unlink()
    with pytest.raises(InputError, match="have columns but no rows"):
        cut(folder)


@pytest.mark.parametrize("ending", [".parquet", ".csv.gz", ".csv.zst", ".arrow"])
def test_a_part_that_is_cut_short(ending: str, tmp_path: Path) -> None:
    folder = parts(tmp_path / "preds", 3, ending)
    path = folder / f"part-1{ending}"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with pytest.raises(InputError, match=rf"part-1\{ending} cannot be read"):
        batches(cut(folder))


def test_broken_pages(tmp_path: Path) -> None:
    folder = parts(tmp_path / "preds")
    path = folder / "part-1.parquet"
    pq.write_table(made(), path, write_page_checksum=True, compression="none")
    data = bytearray(path.read_bytes())
    data[5000] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"part-1\.parquet cannot be read: .*CRC"):
        batches(cut(folder))


def test_what_is_no_table(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "_SUCCESS").write_text("")
    with pytest.raises(InputError, match="the folder has no table files; skipped: _SUCC"):
        cut(empty)
    with pytest.raises(InputError, match=r"\*\.parquet: no file matches"):
        cut(empty / "*.parquet")
    with pytest.raises(InputError, match="no such file"):
        cut(tmp_path / "none.parquet")
    folder = parts(tmp_path / "preds")
    (folder / "notes.csv").write_text("y\n1\n")
    with pytest.raises(InputError, match=r"must have one format, got \.csv and parquet .*'.*/\*\."):
        cut(folder)
    (folder / "notes.csv").rename(folder / "part-3.parquet")
    with pytest.raises(InputError, match=r"part-3\.parquet: the ending says \.parquet file, but"):
        cut(folder)
    (folder / "part-3.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"part-3\.parquet: the file is empty"):
        cut(folder)


def text(path: Path, rows: int, change: Mapping[int, str]) -> Path:
    """A file of text whose rows are long enough for many blocks, some rows changed."""
    filler = "x" * 40
    with path.open("w", encoding="latin-1") as file:
        file.write("y,pred,site,note\n")
        for row in range(rows):
            file.write(change.get(row, f"{row}.5,{row},{row % 3},{filler}") + "\n")
    return path


FAR = 70_000


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1,2,3", rf"every row must have 4 cells .* got 3 in line {FAR + 2}"),
        ("1,2,3,4,5", rf"every row must have 4 cells .* got 5 in line {FAR + 2}"),
        ('1,2,3,"four', r"a quote is opened .*never closed"),
        ("1,2,3,f\xfcr", rf"the text is not valid utf-8: invalid byte 0xfc in line {FAR + 2}"),
        ("one,2,3,x", rf"column 'y' must contain numbers, .*'one' at line {FAR + 2}"),
        ("1,inf,3,x", rf"column 'pred' must contain finite numbers, .*first at line {FAR + 2}"),
        ("1,2,,x", rf"cells are missing: 1 in 'site' \(first at line {FAR + 2}\)"),
        (
            "1,2,north,x",
            rf"column 'site' must contain whole numbers, .*'north' at line {FAR + 2}\)",
        ),
        ("1,2,3,\0", rf"text must not contain NUL bytes, got one in line {FAR + 2}"),
    ],
)
def test_bad_text_far_down(row: str, said: str, tmp_path: Path) -> None:
    path = text(tmp_path / "t.csv", 80_000, {FAR: row})
    with pytest.raises(InputError, match=rf"t\.csv: {said}"):
        batches(cut(path, batch_rows=10_000, groups="site"))


def test_a_number_that_only_care_reads_changes_no_row(tmp_path: Path) -> None:
    """Where plain reading ends far down, the careful one goes on from that very row."""
    path = text(tmp_path / "t.csv", 80_000, {FAR: " 7.25 ,1,2,x"})
    held = cut(path, batch_rows=9_999, groups="site")
    same(held, load(path, groups="site").evalsets[0])
    kinds = held.reading.kinds
    found = [
        with_numbers(table, kinds, ".").schema.field("y").type
        for table in held.pieces[0].batches(kinds, 9_999)
    ]
    assert set(found) == {pa.float64()}


def test_labels_of_text_keep_the_form_of_the_first_rows(tmp_path: Path) -> None:
    """Parts that happen to hold whole numbers alone are of text if the first one is."""
    names = ["a", "1", "1", "2", "2", "b"]
    lines = [f"{k},{k},{name}\n" for k, name in enumerate(names)]
    (tmp_path / "t.csv").write_text("y,pred,group\n" + "".join(lines))
    found = batches(cut(tmp_path / "t.csv", batch_rows=2))
    assert [one.evalsets[0].groups["group"].values().tolist() for one in found] == [
        ["a", "1"] if k == 0 else names[2 * k : 2 * k + 2] for k in range(3)
    ]
    features = batches(cut(tmp_path / "t.csv", batch_rows=2, features="group", groups=""))
    assert features[1].evalsets[0].features["group"].tolist() == ["1", "2"]
    (tmp_path / "t.csv").write_text("y,pred,x\n" + "".join(reversed(lines[:-1])))
    with pytest.raises(
        InputError, match=r"'x' must contain numbers, .* got text \('a' at line 6\); in P"
    ):
        batches(cut(tmp_path / "t.csv", batch_rows=2))


@examples(60)
@given(
    rows=st.lists(st.sampled_from(["1,a", "2.5,b", " 7 ,a", '3,"c\nd"', "4,", "x,y"]), min_size=1),
    marks=st.lists(st.tuples(st.integers(0, 300), st.sampled_from(['"', ",", "\n", "\0"]))),
    block=st.integers(60, 200),
)
def test_text_is_read_as_load_reads_it(
    rows: list[str], marks: list[tuple[int, str]], block: int, tmp_path_factory: Any
) -> None:
    """Wherever blocks end, and whatever is wrong."""
    path = tmp_path_factory.mktemp("text") / "t.csv"
    content = "y,group,pred\n" + "".join(f"{row},1\n" for row in rows)
    for place, mark in marks[:2]:
        content = content[:place] + mark + content[place:]
    path.write_bytes(content.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("howsure.inputs.text.BLOCK", block)
        try:
            whole = load(path, missing="drop").evalsets[0]
        except InputError as error:
            if "every row has missing cells" not in str(error):
                with pytest.raises(InputError):
                    batches(cut(path, missing="drop"))
            return
        same(cut(path, missing="drop"), whole)


def test_the_delimiter_and_the_decimal_mark(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y;pred\n1,5;2,5\n3,5;4,5\n")
    held = cut(tmp_path / "t.csv", decimal=",")
    assert batches(held)[0].evalsets[0].y.tolist() == [1.5, 3.5]
    assert held.notes == (f"{tmp_path}/t.csv: cells are separated by ';'",)


def test_times(tmp_path: Path) -> None:
    folder = tmp_path / "preds"
    folder.mkdir()
    start = np.datetime64("2024-01-01", "ns")
    for k, unit in enumerate(("ms", "us")):
        moments = start + (np.arange(100) + 100 * k) * np.timedelta64(1, "h")
        table = made(100, k).append_column("time", pa.array(moments.astype(f"M8[{unit}]")))
        pq.write_table(table, folder / f"{k}.parquet")
    held = cut(folder)
    times = [one.evalsets[0].time for one in batches(held)]
    assert all(one is not None and one.dtype == "M8[ms]" for one in times)
    first, last = start.astype("M8[ms]").astype(float), 199 * 3_600_000.0
    assert held.time_range == (first, first + last)
    for k in range(2):
        numbers = pa.array(np.arange(100) + 100 * k)
        pq.write_table(made(100, k).append_column("time", numbers), folder / f"{k}.parquet")
    assert cut(folder).time_range == (0.0, 199.0)
    pq.write_table(
        made(100).append_column("time", numbers), folder / "1.parquet", write_statistics=False
    )
    assert cut(folder).time_range is None


def test_a_guessed_time_that_cannot_be_read_is_none_for_all_parts(tmp_path: Path) -> None:
    words = pa.array(["noon"] * 10 + ["2024-01-01"] * 10)
    table = made(20).append_column("time", words)
    write_table(table, tmp_path / "t.parquet")
    held = cut(tmp_path / "t.parquet", batch_rows=10)
    assert [one.evalsets[0].time for one in batches(held)] == [None, None]
    (use,) = (one for one in held.explanation if one.column == "time")
    assert use.note == "cells that are not numbers or dates"


def test_series_are_counted_in_several_parts(tmp_path: Path) -> None:
    """Where they lie one after another, the first rows hold few of all."""
    days = pa.array(np.arange("2024-01-01", "2024-02-10", dtype="M8[D]"))
    for number in range(12):
        series = pa.array([f"series {number}"] * 40)
        table = made(40, number).append_column("unique_id", series).append_column("ds", days)
        pq.write_table(table, tmp_path / f"{number:02}.parquet")
    held = cut(tmp_path)
    assert held.reading.roles["cluster"] == ("unique_id",)
    found = batches(held)[3].evalsets[0].cluster
    assert found is not None
    assert found.labels.tolist() == ["series 3"]
    for number in range(4, 12):
        (tmp_path / f"{number:02}.parquet").unlink()
    few = cut(tmp_path)
    assert not few.reading.roles["cluster"]
    assert {one.evalsets[0].cluster for one in batches(few)} == {None}


def test_names_of_rows(tmp_path: Path) -> None:
    table = made(20).append_column("id", pa.array([f"r{k}" for k in range(20)]))
    write_table(table, tmp_path / "t.parquet")
    found = batches(cut(tmp_path / "t.parquet", batch_rows=10))
    assert found[1].evalsets[0].row_names().tolist() == [f"r{k}" for k in range(10, 20)]


def test_what_cannot_be_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    long = {
        "y": np.repeat(np.arange(20.0), 2),
        "quantile_level": [0.1, 0.9] * 20,
        "value": np.arange(40.0),
    }
    write_table(pa.table(long), path)
    with pytest.raises(
        InputError, match=r"'quantile_level' makes this a long table.*convert it to wide form"
    ):
        cut(path)
    write_table(made(20).append_column("model", pa.array(["a", "b"] * 10)), path)
    with pytest.raises(InputError, match=r"'model' names several \('a', 'b'\)"):
        cut(path)
    write_table(made(20).append_column("model", pa.array(["a"] * 15 + ["b"] * 5)), path)
    with pytest.raises(InputError, match=r"'model' names several \('a', 'b'\)"):
        batches(cut(path, batch_rows=10))
    write_table(made(20).append_column("text", pa.array(["a"] * 20)), path)
    with pytest.raises(InputError, match="columns cannot be encoded"):
        cut(path, encode={"text": len})
    with pytest.raises(InputError, match=r"several tables \(2\) are several models"):
        cut([str(path), str(path)])
    with pytest.raises(InputError, match="batch_rows must be a whole number of at least 1"):
        cut(path, batch_rows=0)
    with pytest.raises(InputError, match="missing must be 'error' or 'drop'"):
        cut(path, missing="no")  # type: ignore[arg-type]


def test_a_model_column_of_one_name_names_the_model(tmp_path: Path) -> None:
    write_table(made(20).append_column("model", pa.array(["a"] * 20)), tmp_path / "t.parquet")
    held = batches(cut(tmp_path / "t.parquet", batch_rows=10))
    assert [one.evalsets[0].model for one in held] == ["a", "a"]


def test_models_under_one_another_are_told(tmp_path: Path) -> None:
    y = np.random.default_rng(0).normal(size=50)
    table = pa.table({"y": [*y, *y], "pred": np.arange(100.0), "kind": ["a"] * 50 + ["b"] * 50})
    write_table(table, tmp_path / "t.parquet")
    with pytest.raises(
        InputError, match="each have the same rows, like models one below the other"
    ):
        cut(tmp_path / "t.parquet")


def test_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    p = rng.dirichlet([1.0, 1.0, 1.0], 300)
    names = ["ant", "bee", "cat"]
    y = [names[k] for k in rng.integers(0, 3, 300)]
    y[100:200] = ["bee"] * 100
    table = pa.table({"y": y, **{f"p_{name}": p[:, k] for k, name in enumerate(names)}})
    write_table(table, tmp_path / "t.parquet")
    same(cut(tmp_path / "t.parquet", batch_rows=100), load(tmp_path / "t.parquet").evalsets[0])
    sets = pa.table({"y": y, "set_90": ["ant|bee|cat"] * 100 + ["ant|bee"] * 200})
    sets = sets.filter(pa.array([not (k >= 100 and one == "cat") for k, one in enumerate(y)]))
    write_table(sets, tmp_path / "t.parquet")
    same(cut(tmp_path / "t.parquet", batch_rows=100), load(tmp_path / "t.parquet").evalsets[0])
    write_table(sets.take(list(reversed(range(len(sets))))), tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"first 50 rows \('ant', 'bee'\), got 'cat' later"):
        batches(cut(tmp_path / "t.parquet", batch_rows=50))


def test_a_thousand_files_are_found_fast(tmp_path: Path) -> None:
    table = made(20)
    for number in range(1000):
        pq.write_table(table, tmp_path / f"{number:04}.parquet")
    begun = spent()
    held = cut(tmp_path)
    assert spent() - begun < 5 * slowness()
    assert (len(held.pieces), held.rows) == (1000, 20_000)


def test_only_needed_columns_are_read(tmp_path: Path) -> None:
    """A column that plays no role may even be broken."""
    table = made().append_column("noise", pa.array([b"x" * 100] * N))
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    place = data.index(b"x" * 100)
    data[place] ^= 0xFF
    path.write_bytes(data)
    assert batches(cut(path, model="", groups="site"))[0].rows == N


class TestExtent:
    def test_files(self, tmp_path: Path) -> None:
        for ending in (".parquet", ".arrow"):
            write_table(made(), tmp_path / f"t{ending}")
            assert extent(tmp_path / f"t{ending}").rows == N
        rows = extent(text(tmp_path / "t.csv", 80_000, {})).rows
        assert rows is not None
        assert abs(rows / 80_000 - 1) < 0.1
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
        packed = extent(tmp_path / "t.csv.gz").rows
        assert packed is not None
        assert abs(packed / 80_000 - 1) < 0.2
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"y,pred\n1,2\n"))
        assert extent(tmp_path / "t.csv.gz").rows == 2
        assert not any(extent(tmp_path / f"t{e}").parts for e in (".parquet", ".csv", ".csv.gz"))

    def test_what_parts_alone_can_be_read_of(self, tmp_path: Path) -> None:
        for source in (tmp_path, tmp_path / "*.csv", "s3://bucket/t.csv", iter([made()])):
            assert extent(source).parts
            assert is_huge(source, 10**9)
        assert extent(made().to_reader()).parts

    def test_what_load_reads(self, tmp_path: Path) -> None:
        for source in (made(), {"y": [1.0]}, [made(), made()], tmp_path / "none.csv", 3):
            assert not extent(source).parts
            assert not is_huge(source, 10)
        write_table(made(), tmp_path / "t.parquet")
        assert is_huge([tmp_path / "t.parquet"], N - 1)
        assert not is_huge(tmp_path / "t.parquet", N)


class TestStreams:
    """What yields Arrow batches."""

    def check(self, source: Any, *, again: bool = False, title: str = "the table") -> Scan:
        held = cut(source, groups="site,hour", batch_rows=700)
        assert held.again is again
        assert held.title == title
        same(held, load(made(), groups="site,hour").evalsets[0])
        return held

    def test_what_has_an_arrow_stream(self) -> None:
        held = self.check(made().to_reader(max_chunksize=400))
        with pytest.raises(InputError, match="can be read only once and were already read"):
            batches(held)
        self.check(made())

    def test_iterables(self) -> None:
        def pieces() -> Iterator[Any]:
            yield made().slice(0, 0)
            yield from made().slice(0, 1000).to_batches(max_chunksize=300)
            yield made().slice(1000).select(reversed(made().column_names))

        self.check(pieces())
        self.check([made().slice(0, 5), made().slice(5)])
        with pytest.raises(InputError, match="batch 1 of the table must be a record batch, a tab"):
            batches(cut(iter([made(5), 3]), batch_rows=2))
        with pytest.raises(InputError, match="the table has no rows"):
            cut(iter([]))
        with pytest.raises(InputError, match=r"must be a file, a folder, .* got int"):
            cut(3)
        with pytest.raises(InputError, match="one has no 'sd'"):
            batches(cut(iter([made(5), made(5).drop(["sd"])]), batch_rows=5))

    def test_a_dataset(self, tmp_path: Path) -> None:
        pq.write_table(made(), tmp_path / "t.parquet")
        dataset = ds.dataset(tmp_path)
        held = self.check(dataset, again=True, title="the dataset")
        assert [one.rows for one in held.pieces] == [N]
        assert batches(pickle.loads(pickle.dumps(held)))[1].rows == 700
        positive = dataset.filter(ds.field("y") > 0)
        assert min(one.evalsets[0].y.min() for one in batches(cut(positive))) > 0

    def test_pandas(self) -> None:
        needs("pandas")
        frame = made().to_pandas()
        self.check(frame)
        self.check(iter([frame[:500], frame[:0], frame[500:]]))

    def test_polars(self) -> None:
        polars = needs("polars")
        frame = polars.from_arrow(made())
        self.check(frame)
        self.check(frame.lazy())
        with pytest.raises(InputError, match=r"the table cannot be read: .*absent"):
            cut(frame.lazy().select("absent"))

    def test_dask(self) -> None:
        needs("distributed")
        needs("pandas")
        frames = importlib.import_module("dask.dataframe")
        frame = frames.from_pandas(made().to_pandas(), npartitions=4)
        held = self.check(frame, again=True, title="the table (4 partitions)")
        assert sum(one.rows for one in batches(pickle.loads(pickle.dumps(held)))) == N

    def test_duckdb(self) -> None:
        duckdb = needs("duckdb")
        rows = made()
        self.check(duckdb.sql("select * from rows"))
        odd = duckdb.sql('select y, mean as "pred ""a""" from rows')
        assert batches(cut(odd, point='pred "a"'))[0].rows == rows.num_rows

    @pytest.mark.filterwarnings("ignore")  # of Ray's own
    def test_ray(self) -> None:
        if importlib.util.find_spec("ray") is None:
            absent("", "ray is not installed (it is in no extra)")
        self.check(importlib.import_module("ray.data").from_arrow(made()))


class TestAddresses:
    """Files that fsspec knows."""

    @pytest.fixture
    def folder(self) -> Iterator[str]:
        fsspec = needs("fsspec")
        files = fsspec.filesystem("memory")
        for number in range(3):
            with files.open(f"/preds/year={number}/t.parquet", "wb") as file:
                pq.write_table(made(100, number), file)
        with files.open("/texts/t.csv", "wb") as file:
            file.write(b"y,pred\n1,2\n3,4\n")
        with files.open("/texts/t.csv.gz", "wb") as file:
            file.write(gzip.compress(b"y,pred\n1,2\n3,4\n"))
        yield "memory://preds"
        for name in ("/preds", "/texts"):
            files.rm(name, recursive=True)

    def test_folders_and_patterns(self, folder: str) -> None:
        for source in (folder, f"{folder}/**/*.parquet", f"{folder}/year=*/*.parquet"):
            held = cut(source, groups="year")
            assert not held.again  # what lies in memory is another process's own
            years = [one.evalsets[0].groups["year"].values().tolist() for one in batches(held)]
            assert years == [[number] * 100 for number in range(3)]
            assert held.pieces[0].title == "memory:///preds/year=0/t.parquet"

    def test_single_files(self, folder: str) -> None:
        held = cut(f"{folder}/year=1/t.parquet")
        assert held.rows == 100
        assert batches(held)[0].evalsets[0].model == "t"
        for ending in ("", ".gz"):
            (found,) = batches(cut(f"memory://texts/t.csv{ending}"))
            assert found.evalsets[0].y.tolist() == [1.0, 3.0]

    def test_what_is_no_table_is_skipped_by_name(self, folder: str) -> None:
        files = needs("fsspec").filesystem("memory")
        for name in ("README.txt", "_SUCCESS", "_log/0.parquet"):
            with files.open(f"/preds/{name}", "wb") as file:
                file.write(b"no table")
        for source in (folder, f"{folder}/**"):
            listing = cut(source).listing
            assert listing is not None
            assert [(path.rpartition("preds/")[2], why[:8]) for path, why in listing.skipped] == [
                ("README.txt", "its endi"),
                ("_SUCCESS", "its name"),
                ("_log/0.parquet", "its name"),
            ]
        with files.open("/preds/part.dat", "wb") as file:
            file.write(b"\x00\x01")
        with pytest.raises(InputError, match=r"part\.dat: the ending must be one of"):
            cut(folder)

    def test_a_part_that_grows_meanwhile_is_refused(self, folder: str) -> None:
        held = cut("memory://texts/t.csv")
        tables = held.pieces[0].batches(held.reading.kinds, 10)
        next(tables)
        with needs("fsspec").filesystem("memory").open("/texts/t.csv", "wb") as file:
            file.write(b"y,pred\n1,2\n3,4\n5,6\n")
        with pytest.raises(InputError, match=r"t\.csv: the file has changed"):
            next(tables)

    def test_what_is_not_there(self, folder: str) -> None:
        with pytest.raises(InputError, match="memory://none: no such file"):
            cut("memory://none")
        with pytest.raises(InputError, match=r"memory://preds/\*\.csv: no file matches"):
            cut(f"{folder}/*.csv")
        with pytest.raises(InputError, match=r"cannot be read: .*nowhere"):
            cut("nowhere://x/t.csv")
