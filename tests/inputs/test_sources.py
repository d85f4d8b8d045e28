"""A table that lies in pieces is read whole as their concatenation, by every reader."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from extras import needs
from howsure.core.errors import InputError
from howsure.inputs import Loaded, load, load_new, load_unlabelled, open_table, write_table
from howsure.inputs.sources import is_huge
from howsure.inputs.tables import cut
from howsure.predictions.columns import to_columns
from howsure.streaming.load import _load_all

FORMS = (".parquet", ".arrow", ".csv", ".csv.gz", ".tsv.zst")


def table(n: int = 60) -> pa.Table:
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    return pa.table(
        {
            "y": mean + sd * rng.normal(size=n),
            "mean": mean,
            "sd": sd,
            "site": pa.array(rng.choice(["a", "b", "007"], n)).dictionary_encode(),
            "age": np.arange(n),
        }
    )


def laid_out(folder: Path, ending: str, rows: pa.Table) -> Path:
    """Three files of unequal length, some labels of which one alone holds."""
    (folder / "parts").mkdir()
    for number, (start, end) in enumerate(((0, 7), (7, 40), (40, 60))):
        write_table(rows.slice(start, end - start), folder / "parts" / f"{number}{ending}")
    return folder / "parts"


@pytest.mark.parametrize("ending", FORMS)
def test_a_folder_is_read_as_one_table(ending: str, tmp_path: Path) -> None:
    rows = table()
    whole = tmp_path / f"whole{ending}"
    write_table(rows, whole)
    folder = laid_out(tmp_path, ending, rows)
    given: Any = {"groups": "site", "features": "age"}
    (wanted,) = load(whole, **given).evalsets
    for source in (folder, str(folder / f"*{ending}")):
        (found,) = load(source, **given).evalsets
        np.testing.assert_array_equal(found.y, wanted.y)
        np.testing.assert_array_equal(found.features["age"], wanted.features["age"])
        for name in wanted.groups:
            assert found.groups[name].values().tolist() == wanted.groups[name].values().tolist()
        assert found.model == "parts"
    assert open_table(folder).read_all().num_rows == 60


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_rows_without_y_are_read_from_folders_too(ending: str, tmp_path: Path) -> None:
    rows = table()
    reference = load(rows.to_pydict(), features="age")
    folder = laid_out(tmp_path, ending, rows.drop_columns(["y"]))
    new = load_new(folder)
    assert (new.n, new.evalset.n, new.labelled) == (60, 60, False)
    unlabelled = load_unlabelled(folder, reference)
    np.testing.assert_array_equal(unlabelled.inputs.features["age"], np.arange(60))


def test_models_in_folders_are_compared(tmp_path: Path) -> None:
    folders = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        folders.append(
            laid_out(tmp_path / name, ".parquet", table()).rename(tmp_path / name / name)
        )
    assert [held.model for held in load(folders).evalsets] == ["one", "two"]


def test_a_stream_of_batches_is_read_whole() -> None:
    batches = table().to_batches(max_chunksize=7)
    assert load_new(iter(batches)).n == 60
    assert load(pa.RecordBatchReader.from_batches(batches[0].schema, batches)).evalsets[0].n == 60


def test_a_bad_cell_is_told_by_its_line_and_its_file(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, ".csv", table())
    lines = (folder / "1.csv").read_text().splitlines()
    lines[4] = "1.0,x,2.0,a,9"
    lines.insert(2, "")  # an empty line is none of a row
    (folder / "1.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"'mean' .*line 6 of 1\.csv"):
        load(folder)


def test_parts_of_types_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    folder = laid_out(tmp_path, ".parquet", table())
    rows = table(9)
    for other in (pa.array(np.arange(9), pa.timestamp("s")), pa.array(["0.5"] * 9)):
        write_table(rows.set_column(1, "mean", other), folder / "9.parquet")
        with pytest.raises(InputError, match="columns must have compatible types in all parts"):
            load(folder)
        (folder / "9.parquet").unlink()
    write_table(rows.drop_columns(["sd"]), folder / "9.parquet")
    with pytest.raises(InputError, match=r"9\.parquet: every part must have the columns"):
        load(folder)
    (folder / "notes.txt").write_text("none of these")
    (folder / "9.parquet").unlink()
    assert open_table(folder).read_all().num_rows == 60


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.zst", ".parquet"])
def test_a_small_file_of_many_rows_is_huge(tmp_path: Path, ending: str) -> None:
    """Equal rows take next to nothing where they are compressed."""
    path, equal = tmp_path / f"t{ending}", pa.table({name: np.zeros(200_000) for name in "abc"})
    if ending == ".parquet":
        pq.write_table(equal, path)  # which says once what repeats
    else:
        write_table(equal, path)
    past = min(50 * path.stat().st_size - 1, 150_000)
    assert is_huge(path, past)
    assert not is_huge(path, 300_000)


def content(source: Any, read: Callable[..., Loaded]) -> dict[str, bytes]:
    """All that is known of the rows, array by array."""
    (evalset,) = read(source, groups="site", features="age,kind", time="age", rows="id").evalsets
    arrays: dict[str, Any] = {"y": evalset.y, "time": evalset.time, **to_columns(evalset)}
    arrays |= {f"feature {name}": column for name, column in evalset.features.items()}
    arrays |= {f"group {name}": group.values() for name, group in evalset.groups.items()}
    arrays["rows"] = evalset.row_names()
    return {
        name: repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
        for name, array in arrays.items()
    }


def doors(rows: pa.Table, folder: Path) -> Iterator[tuple[str, Any, Callable[..., Loaded]]]:
    """The same rows by every door, and what reads them."""
    for ending in (".csv", ".parquet", ".arrow", ".tsv.gz"):
        write_table(rows, folder / f"t{ending}")
        yield ending, folder / f"t{ending}", load
        yield f"parts of {ending}", folder / f"t{ending}", in_parts
        (folder / ending).mkdir()
        for number, start in enumerate((0, 7, 40)):
            part = rows.slice(start, (7, 33, 20)[number])
            write_table(part, folder / ending / f"{number}{ending}")
        yield f"a folder of {ending}", folder / ending, load
        yield f"a folder of {ending} in parts", folder / ending, in_parts
    yield "a mapping", {name: rows[name].to_numpy() for name in rows.column_names}, load
    yield "Arrow", rows, load
    yield "a reader", rows.to_reader(9), load
    yield "an iterator", iter(rows.to_batches(9)), in_parts
    if importlib.util.find_spec("pandas"):
        yield "pandas", rows.to_pandas(), load
    if importlib.util.find_spec("polars"):
        polars = needs("polars")
        yield "Polars", polars.from_arrow(rows), load
        yield "lazy Polars", polars.from_arrow(rows).lazy(), in_parts
    if importlib.util.find_spec("duckdb"):
        relation = needs("duckdb").from_arrow(rows)
        yield "DuckDB", relation, load
        yield "DuckDB in parts", relation, in_parts


def in_parts(source: Any, **columns: Any) -> Loaded:
    """All rows, a few at a time."""
    scan = cut(source, batch_rows=11, **columns)
    batches = [batch for piece in scan.pieces for batch in scan.reading.batches(piece)]
    return _load_all(scan, [(scan.pieces[0], batch) for batch in batches])


def test_the_same_rows_by_any_door_are_the_same_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = table().set_column(3, "site", pa.array(rng.choice(["a", "b", "d"], 60)))
    rows = rows.append_column("kind", pa.array(rng.choice(["p", "q"], 60)))
    rows = rows.append_column("id", pa.array([f"case {number}" for number in range(60)]))
    wanted = content(rows, load)
    for door, source, read in doors(rows, tmp_path):
        assert content(source, read) == wanted, door
