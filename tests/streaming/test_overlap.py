"""States that share rows are refused by name, and those of other rows are merged."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from damage import GONE, damaged, places
from howsure.core.errors import InputError
from howsure.inputs import write_table
from howsure.streaming import Large, State, load_parts, loaded_state, merged_states
from howsure.streaming.sample import Sketch
from streaming.tables import normal_table, state_of

DAYS = [normal_table(1_000, seed=day).select(["y", "mean", "sd"]) for day in range(3)]
MONTH = pa.concat_tables(DAYS)


def kept(source: Path, state: Path) -> Path:
    load_parts(source, large=Large(jobs=1, state=state))
    return state


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Days as files and as states, a copy of a day, and the month in three ways."""
    top = tmp_path_factory.mktemp("states")
    (top / "days").mkdir()
    for day, table in enumerate(DAYS):
        pq.write_table(table, top / "days" / f"{day}.parquet")
        kept(top / "days" / f"{day}.parquet", top / f"{day}.arrow")
    order = np.random.default_rng(0).permutation(1_000)
    write_table(DAYS[0].take(order), top / "copy.pq")
    kept(top / "copy.pq", top / "copy.arrow")
    shutil.copy(top / "0.arrow", top / "again.arrow")
    kept(top / "days", top / "folder.arrow")
    pq.write_table(MONTH.take(np.random.default_rng(1).permutation(3_000)), top / "month.parquet")
    kept(top / "month.parquet", top / "file.arrow")
    merged_states([State.open(top / f"{day}.arrow") for day in range(3)]).save(top / "merged.arrow")
    return top


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("0 0", r"the same rows \(of .*days/0.parquet\) in .*0.arrow and in .*0.arrow"),
        ("0 again", r"the same rows \(of .*days/0.parquet\) in .*0.arrow and in .*again.arrow"),
        (
            "0 copy",
            r"the same rows \(of .*days/0.parquet and .*copy.pq\) in .*0.arrow and in",
        ),
        ("folder 1", r"the same rows \(of .*days/1.parquet\) in .*folder.arrow and in .*1.arrow"),
        ("1 merged", r"the same rows \(of .*days/1.parquet\) in .*1.arrow and in .*merged.arrow"),
        ("file 2", r"all of the rows of .*2.arrow in .*file.arrow too"),
        ("0 file", r"all of the rows of .*0.arrow in .*file.arrow too"),
        (
            "folder merged",
            r"the same rows \(of .*days/0.parquet\) in .*folder.arrow and in",
        ),
        ("1 2 file", r"all of the rows of .*1.arrow in .*file.arrow too"),
    ],
)
def test_rows_twice_are_refused_by_name(states: Path, names: str, told: str) -> None:
    paths = [states / f"{name}.arrow" for name in names.split()]
    with pytest.raises(InputError, match="of different rows to be merged, got " + told):
        merged_states([State.open(path) for path in paths], list(map(str, paths)))


def test_days_of_other_rows_are_merged(states: Path) -> None:
    merged = State.open(states / "merged.arrow")
    assert merged.rows == 3_000
    assert not merged.manifest.notes
    files = merged.manifest.files
    assert [Path(each.found).name for each in files] == ["0.parquet", "1.parquet", "2.parquet"]
    folder = State.open(states / "folder.arrow").manifest.files
    assert [each.key for each in files] == [each.key for each in folder]
    whole = State.open(states / "file.arrow").manifest.files
    total = sum(int(each.key, 16) for each in files) % 2**64
    assert f"{total:016x}" == whole[0].key  # whatever the order of rows, and however it is cut


def test_a_window_that_shares_some_rows_is_noted() -> None:
    table = normal_table(3_000)
    one, other = state_of(table.slice(0, 1_500)), state_of(table.slice(1_200, 1_800))
    merged = merged_states([one, other], ["week 1", "week 2"])
    assert merged.manifest.notes == (
        "about 20 % of the rows of week 1 are equal to rows of week 2, and are counted twice",
    )
    assert merged.manifest.fact().endswith(merged.manifest.notes[0])


@pytest.mark.parametrize("values", [1, 3, 10])
def test_rows_of_few_values_are_equal_by_chance(values: int) -> None:
    """Days of counts, whose rows come again and again, are no copies."""
    days = []
    for day in range(8):
        rng = np.random.default_rng(day)
        mean = rng.integers(1, values + 1, 400).astype(float)
        table = pa.table({"y": rng.poisson(mean).astype(float), "mean": mean, "sd": np.sqrt(mean)})
        days.append(state_of(table, groups="", weights="", cluster="", time=""))
    merged = merged_states(days)
    assert merged.rows == 3_200
    assert not merged.manifest.notes


@pytest.mark.parametrize("cells", [3_000, 30_000, 10**6])
def test_chance_is_told_from_copies_whatever_the_number_of_values(cells: int) -> None:
    days = []
    for day in range(4):
        rng = np.random.default_rng(day)
        y = rng.integers(0, cells, 20_000).astype(float)
        table = pa.table({"y": y, "mean": np.full(20_000, cells / 2), "sd": np.full(20_000, 9.0)})
        days.append(state_of(table, groups="", weights="", cluster="", time=""))
    assert not merged_states(days).manifest.notes


def test_sketches_of_parts_make_that_of_the_whole() -> None:
    hashes = np.random.default_rng(0).integers(0, 2**64, 50_000, dtype=np.uint64)
    hashes[:40_000:2] = hashes[0]
    parts = [Sketch.of(part) for part in np.array_split(hashes, 7)]
    whole, joined = Sketch.of(hashes), parts[0].joined(*parts[1:])
    least, counts = np.unique(hashes, return_counts=True)
    for each in (whole, joined):
        np.testing.assert_array_equal(each.hashes, least[:8192])
        np.testing.assert_array_equal(each.counts, counts[:8192])


def test_a_day_is_found_in_a_large_month() -> None:
    """A state holds the least hashes alone, and a thirtieth of them are the day's."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=200_000)
    table = pa.table({"y": y, "mean": np.zeros(len(y)), "sd": np.ones(len(y))})
    known = {"groups": "", "weights": "", "cluster": "", "time": ""}
    month = state_of(table, [100_000], **known)
    day = state_of(table.slice(150_000, 7_000), **known)
    with pytest.raises(InputError, match="got all of the rows of state 2 in state 1 too"):
        month.merged(day)
    month.merged(state_of(table.set_column(0, "y", pa.array(y + 1.0)), **known))


def changed(path: Path, out: Path, change: object) -> Path:
    """A state whose metadata a hand has changed."""
    with pa.ipc.open_file(path) as file:
        table = file.read_all()
    told = json.loads(table.schema.metadata[b"howsure"])
    told = change(told) or told  # type: ignore[operator]
    table = table.replace_schema_metadata({"howsure": json.dumps(told)})
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out


def test_a_state_says_so_when_it_was_changed(states: Path, tmp_path: Path) -> None:
    path, out = states / "0.arrow", tmp_path / "x.arrow"

    def heavier(told: dict) -> None:
        told["facts"]["models"][0]["mass"] = -5.0

    def another(told: dict) -> None:
        told["howsure"] = "99.0"

    def older(told: dict) -> None:
        heavier(told)
        told["howsure"] = "0.2.0"
        del told["hash"]

    with pytest.raises(InputError, match=r"x\.arrow has changed since it was written"):
        State.open(changed(path, out, heavier))
    with pytest.raises(InputError, match=r"state of howsure .* or earlier, got one of 99"):
        State.open(changed(path, out, another))
    with pytest.raises(
        InputError, match=r"x\.arrow is damaged: it contains counts or weights below"
    ):
        State.open(changed(path, out, older))


def test_numbers_that_were_changed_are_noticed(states: Path, tmp_path: Path) -> None:
    with pa.ipc.open_file(states / "0.arrow") as file:
        table = file.read_all()
    for name in table.column_names:
        column = table[name].combine_chunks()
        values = column.chunk(0).values if isinstance(column, pa.ChunkedArray) else column.values
        if not len(values) or not pa.types.is_floating(values.type):
            continue
        array = values.to_numpy().copy()
        array[0] += 1.0
        other = pa.LargeListArray.from_arrays(pa.array([0, len(array)], pa.int64()), array)
        place = table.column_names.index(name)
        held = table.set_column(place, table.schema.field(place), other)
        with pytest.raises(InputError, match="the table has changed since it was written"):
            State.from_arrow(held)


def test_a_state_of_an_earlier_version_is_read_with_a_note(states: Path, tmp_path: Path) -> None:
    def older(told: dict) -> None:
        del told["hash"], told["facts"]["manifest"], told["facts"]["sketch"]
        told["howsure"] = "0.2.0"

    path = changed(states / "0.arrow", tmp_path / "old.arrow", older)
    with pa.ipc.open_file(path) as file:
        table = file.read_all()
    told = json.loads(table.schema.metadata[b"howsure"])
    new = ["sketch/hashes", "sketch/counts"]
    for name in new:
        del told["shapes"][name]
    table = table.drop_columns(new).replace_schema_metadata({"howsure": json.dumps(told)})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    old = State.open(path)
    (note,) = old.manifest.notes
    assert note.startswith("old.arrow was written by howsure 0.2.0, which wrote no hash")
    with pytest.raises(InputError, match="the same rows in a and in b"):
        merged_states([old, State.open(path)], ["a", "b"])
    merged = old.merged(State.open(states / "1.arrow"))
    assert merged.rows == 2_000
    merged.save(tmp_path / "new.arrow")
    assert State.open(tmp_path / "new.arrow").manifest.fact().endswith(note)


@pytest.mark.slow
def test_damaged_metadata_is_an_input_error(states: Path, tmp_path: Path) -> None:
    """Each fact is left out, and made something else, one after another."""
    tried, refused, out = 0, 0, tmp_path / "x.arrow"

    with pa.ipc.open_file(states / "0.arrow") as file:
        table = file.read_all()
    plain = json.loads(table.schema.metadata[b"howsure"])
    del plain["hash"]
    for place in places(plain, 3):
        for put in (None, GONE, -1, [], "text"):
            told = damaged(plain, place, put)
            held = table.replace_schema_metadata({"howsure": json.dumps(told)})
            tried += 1
            try:
                with pa.ipc.new_file(out, held.schema) as writer:
                    writer.write_table(held)
                loaded_state(State.open(out))
            except InputError:
                refused += 1
    assert (tried > 400, refused > 200) == (True, True)


@pytest.mark.parametrize("told", [b"", b"[]", b"null", b"3", b"{", b"\xff", b'{"form": 1}'])
def test_metadata_of_others_is_no_state(told: bytes) -> None:
    table = pa.table({"a": [1]}).replace_schema_metadata({"howsure": told})
    with pytest.raises(InputError, match="must be a state"):
        State.from_arrow(table)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.arrow")
    for path in (tmp_path / "s.arrow", tmp_path):
        with pytest.raises(InputError, match="a regular file is needed"):
            State.open(path)


def test_a_file_with_damaged_bytes_is_refused(tmp_path: Path) -> None:
    """Cut short, or a few bits flipped: some lie in what only fills up, and change nothing."""
    path = tmp_path / "s.arrow"
    state_of(normal_table(60), most=30).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for trial in range(200):
        held = bytearray(whole)
        if trial % 2:
            held = held[: rng.integers(len(held))]
        for place in rng.integers(max(len(held) - 6_000, 0), len(held), 3) if len(held) else ():
            held[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(held)
        try:
            State.open(path)
        except InputError:
            refused += 1
    assert refused > 190
