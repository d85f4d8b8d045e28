"""The store: whole or not at all, readable by anyone, and honest about damage."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

from extras import needs
from howsure.core.errors import InputError
from howsure.core.files import LocalFolder
from howsure.core.records import ResultTable
from howsure_studies.engine import (
    FORMAT,
    DamagedError,
    OutputError,
    Store,
    TrialError,
    TrialOutput,
    address_of,
)
from howsure_studies.engine.locks import SystemLocks
from howsure_studies.engine.tables import arrays_of, parquet_bytes, parquet_table, to_arrow

IDENTITY = {"seed": 0, "world": {"world": "linear"}, "options": [0.8, None, True]}
ADDRESS = address_of(IDENTITY)


def output(values: Any = (0.25, np.nan, -np.inf)) -> TrialOutput:
    numbers = np.array(values, dtype=np.float64)
    return TrialOutput(
        records=ResultTable(name="records", columns={"metric": np.array(["a"] * len(numbers))}),
        predictions=ResultTable(name="predictions", columns={"lower": numbers}),
        tables={"points": ResultTable(name="points", columns={"x0": numbers + 1})},
        keys={"method": "line", "seed": 3},
        facts={"reasons": {"cicf": "none"}, "n": 3},
        failed_parts=2,
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def written(store: Store) -> Path:
    store.write(ADDRESS, IDENTITY, output(), {"howsure": "1"})
    return store.root / "trials" / ADDRESS


def test_what_is_written_is_read(store: Store) -> None:
    written(store)
    entry = store.entry(ADDRESS, thorough=True)
    assert (entry.status, entry.failed_parts, entry.problem) == ("done", 2, "")
    assert entry.identity == IDENTITY
    assert entry.facts == {"reasons": {"cicf": "none"}, "n": 3}
    assert entry.provenance == {"howsure": "1"}
    assert set(entry.tables) == {"records", "predictions", "points"}
    found = store.table(ADDRESS, "predictions")
    assert found.column_names == ["trial", "method", "seed", "lower"]
    np.testing.assert_array_equal(found["lower"].to_numpy(), [0.25, np.nan, -np.inf])
    assert set(found["trial"].to_pylist()) == {ADDRESS}
    assert found["seed"].to_pylist() == [3, 3, 3]
    assert store.addresses() == (ADDRESS,)


def test_tables_are_plain_parquet_that_pandas_reads(store: Store) -> None:
    pd = needs("pandas")
    folder = written(store)
    frame = pd.read_parquet(folder / "predictions.parquet")
    assert frame["lower"].tolist()[0] == 0.25
    assert frame["method"].unique().tolist() == ["line"]
    other = address_of({"seed": 1})
    store.write(other, {"seed": 1}, output())
    assert store.tables("predictions").num_rows == 6
    assert set(store.tables("predictions")["trial"].to_pylist()) == {ADDRESS, other}
    assert store.tables("predictions", [other]).num_rows == 3


def test_an_empty_table_is_kept(store: Store) -> None:
    store.write(ADDRESS, IDENTITY, output(()))
    assert store.table(ADDRESS, "predictions").num_rows == 0
    assert store.entry(ADDRESS, thorough=True).status == "done"


def test_a_failure_is_kept_and_replaced(store: Store) -> None:
    failure = TrialError(error="ValueError", message="nö", trace="Traceback …")
    store.write_failure(ADDRESS, IDENTITY, failure, {"seconds": 1.0})
    entry = store.entry(ADDRESS)
    assert (entry.status, entry.failure) == ("failed", failure)
    assert store.tables().num_rows == 0
    with pytest.raises(InputError, match="has no tables"):
        store.table(ADDRESS, "records")
    written(store)
    assert store.entry(ADDRESS).status == "done"


def test_nothing_is_known_of_what_never_ran(store: Store) -> None:
    assert store.entry(ADDRESS).status == "missing"
    assert store.addresses() == ()
    assert store.tables().num_rows == 0
    assert not store.root.exists()
    with pytest.raises(InputError, match="no tables, got the name 'records'"):
        store.table(ADDRESS, "records")


@pytest.mark.parametrize("name", ["records", "predictions", "points"])
@pytest.mark.parametrize("harm", ["cut", "gone", "flipped", "empty"])
def test_damage_is_named(store: Store, name: str, harm: str) -> None:
    file = written(store) / f"{name}.parquet"
    data = bytearray(file.read_bytes())
    if harm == "gone":
        file.unlink()
    elif harm == "flipped":
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(data)
    else:
        file.write_bytes(data[: len(data) // 2] if harm == "cut" else b"")
    entry = store.entry(ADDRESS, thorough=True)
    assert entry.status == "damaged"
    assert f"{name}.parquet" in entry.problem
    assert store.entry(ADDRESS).status == ("done" if harm == "flipped" else "damaged")
    with pytest.raises(DamagedError, match=f"{name}.parquet has changed since it was written"):
        store.table(ADDRESS, name)
    written(store)
    assert store.entry(ADDRESS, thorough=True).status == "done"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"format": 1}', "\x00\xff"])
def test_a_damaged_list_of_files_is_named(store: Store, text: str) -> None:
    (written(store) / "trial.json").write_bytes(text.encode("latin-1"))
    entry = store.entry(ADDRESS)
    assert entry.status == "damaged"
    assert "trial.json is not readable" in entry.problem
    with pytest.raises(DamagedError, match=r"trial.json is not readable"):
        store.table(ADDRESS, "records")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": "1"}, "its format is '1'"),
        ({"format": True}, "its format is True"),
        ({"status": 3}, "its status is 3"),
        ({"status": "missing"}, "its status is 'missing'"),
        ({"status": "failed"}, "its status is 'failed', beside its failure"),
        ({"identity": []}, r"its identity is \[\]"),
        ({"facts": None}, "its facts is None"),
        ({"failure": "E"}, "its failure is 'E'"),
        ({"failure": {}, "status": "failed"}, "its failure is {}"),
        ({"failure": {"error": 1, "message": "", "trace": ""}, "status": "failed"}, "its failure"),
        ({"failed_parts": 1.5}, "its failed_parts is 1.5"),
        ({"failed_parts": True}, "its failed_parts is True"),
        ({"provenance": "here"}, "its provenance is 'here'"),
        ({"files": ["records.parquet"]}, "its files is "),
        ({"files": {"records.parquet": 3}}, "it names the file 'records.parquet'"),
        ({"files": {"records.parquet": {"bytes": "9"}}}, "its entry for records.parquet is"),
        ({"files": {"records.parquet": {"bytes": 9, "sha256": 1}}}, "its entry for"),
        ({"files": {"../ef/records.parquet": {"bytes": 9, "sha256": ""}}}, "it names the file"),
        ({"files": {"/etc/passwd": {"bytes": 9, "sha256": ""}}}, "it names the file '/etc/passwd'"),
        ({"files": {"..": {"bytes": 9, "sha256": ""}}}, "it names the file '..'"),
        ({"files": {"trial.json": {"bytes": 9, "sha256": ""}}}, "it names the file 'trial.json'"),
    ],
)
def test_a_list_of_files_with_other_things_in_it_is_damaged(
    store: Store, change: dict[str, Any], words: str
) -> None:
    """Whoever wrote it; another of its own time, without a hash of itself, is read."""
    file = written(store) / "trial.json"
    held = json.loads(file.read_text())
    del held["sha256"]
    file.write_text(json.dumps(held))
    assert store.entry(ADDRESS, thorough=True).status == "done"
    file.write_text(json.dumps({**held, **change}))
    entry = store.entry(ADDRESS, thorough=True)
    assert entry.status == "damaged"
    assert re.search(f"trial.json is not readable: {words}", entry.problem)
    with pytest.raises(DamagedError, match=r"trial.json is not readable"):
        store.table(ADDRESS, "records")
    assert store.tables().num_rows == 0
    written(store)
    assert store.entry(ADDRESS, thorough=True).status == "done"


def test_a_fact_that_was_changed_is_damage(store: Store) -> None:
    file = written(store) / "trial.json"
    held = json.loads(file.read_text())
    file.write_text(json.dumps({**held, "identity": {"seed": 10}}))
    assert store.entry(ADDRESS).problem.endswith("it has changed since it was written")
    file.write_text('{"format": ' + "[" * 100_000)
    assert store.entry(ADDRESS).status == "damaged"


@pytest.mark.parametrize("name", ["../up", "a/b", "", ".hidden", "a\\b", 3])
def test_names_of_tables_stay_in_their_folder(store: Store, name: Any) -> None:
    table = ResultTable(name="t", columns={"value": np.zeros(1)})
    with pytest.raises(OutputError, match="names of tables must be letters"):
        store.write(ADDRESS, IDENTITY, TrialOutput(records=table, tables={name: table}))
    assert store.entry(ADDRESS).status == "missing"


def test_what_dead_runs_were_just_writing_is_swept(store: Store) -> None:
    """What a process works on is left alone, and so is all that is not of this kind."""
    temporary = ".0123456789abcdef"
    dead, live = written(store), store.root / "trials" / "cd"
    live.mkdir()
    for folder in (dead, live):
        (folder / f"{temporary}.json").write_text("{")
        (folder / temporary).touch()
        (folder / ".scratch").write_text("minutes of training")
    (store.root / "runs").mkdir()
    (store.root / "runs" / "gone").touch()
    with store.shown("here"), store.claimed("cd", {}) as mine:
        assert mine
        Store(store.root).sweep()
        assert store.sees("here")
        assert not store.sees("gone")
        assert {path.name for path in live.glob(".*")} == {
            *(".claim", ".scratch", temporary, f"{temporary}.json")
        }
    assert {path.name for path in dead.glob(".*")} == {".claim", ".scratch"}
    assert not store.sees("here")
    store.sweep()
    assert {path.name for path in live.glob(".*")} == {".claim", ".scratch"}
    assert store.entry(ADDRESS, thorough=True).status == "done"


def test_files_without_their_list_do_not_count(store: Store) -> None:
    """What a killed process leaves: some files, whole or hidden, and no trial.json."""
    folder = written(store)
    (folder / "trial.json").unlink()
    (folder / ".0123456789abcdef.json").write_text("{")
    assert store.entry(ADDRESS).status == "missing"
    assert store.tables().num_rows == 0


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (FORMAT + 1, r"by a newer howsure \(form 2; this one reads 1\): update howsure, or choose"),
        (
            FORMAT - 1,
            r"by an older howsure \(form 0; this one reads 1\): use that, or choose",
        ),
        (-7, "an older howsure"),
        (10**40, "a newer howsure"),
    ],
)
def test_a_store_of_another_form_is_refused(store: Store, form: int, words: str) -> None:
    folder = written(store)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    (store.root / "store.json").write_text(json.dumps({"format": form}))
    with pytest.raises(InputError, match=words):
        Store(store.root)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before  # nothing is lost


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "3",
        "\xff",
        '{"format": true}',
        '{"format": "1"}',
        "[" * 99999,
    ],
)
def test_an_unreadable_store_is_refused(store: Store, text: str) -> None:
    written(store)
    (store.root / "store.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"store.json is not readable: .*; restore it, or choose"):
        Store(store.root)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match=r"contains 'thesis.txt' but no store.json"):
        Store(tmp_path)
    with pytest.raises(InputError, match="is not one"):
        Store(tmp_path / "thesis.txt")


def test_two_may_begin_a_store_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process makes it a store between this one's look at store.json and at the folder."""
    real = LocalFolder.names

    def names(self: LocalFolder, name: str = "") -> tuple[str, ...]:
        (tmp_path / "store.json").write_text(json.dumps({"format": FORMAT}))
        return real(self, name)

    monkeypatch.setattr(LocalFolder, "names", names)
    assert Store(tmp_path).addresses() == ()


def full(*args: Any, **kwargs: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["write_bytes", "replace"])
def test_a_full_disk_is_told_and_leaves_what_was(
    store: Store, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    folder = written(store)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    monkeypatch.setattr(Path, call, full)
    with pytest.raises(InputError, match="No space left on device"):
        store.write(ADDRESS, IDENTITY, output((1.0,)))
    monkeypatch.undo()
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    other = address_of({"seed": 9})
    monkeypatch.setattr(Path, call, full)
    with pytest.raises(InputError, match="No space left on device"):
        store.write(other, {"seed": 9}, output())
    monkeypatch.undo()
    assert store.entry(other).status == "missing"


def test_a_disk_that_fills_between_files_leaves_the_trial_undone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file fits, the second does not: no trial.json, and the next write succeeds."""
    real, count = Path.write_bytes, []

    def write(self: Path, data: bytes) -> int:
        count.append(self)
        return full() if len(count) == 3 else real(self, data)

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(InputError, match="No space left"):
        store.write(ADDRESS, IDENTITY, output())
    monkeypatch.undo()
    assert store.entry(ADDRESS).status == "missing"
    written(store)
    assert store.entry(ADDRESS, thorough=True).status == "done"


@pytest.mark.skipif(sys.platform != "linux", reason="a small disk is mounted on Linux alone")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"mount is not permitted: {done.stderr.decode().strip()}")
    try:
        store = Store(place / "store")
        written(store)
        other = address_of({"seed": 9})
        with pytest.raises(InputError, match="No space left on device"):
            store.write(other, {"seed": 9}, output(np.random.default_rng(0).random(20_000)))
        assert store.entry(other).status == "missing"
        assert store.entry(ADDRESS, thorough=True).status == "done"
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_claim_is_one_processs(store: Store) -> None:
    """Another process is refused while it lasts; it ends with the process that made it."""
    code = (
        "import sys, time\n"
        "from howsure_studies.engine import Store\n"
        "with Store(sys.argv[1]).claimed(sys.argv[2], {'pid': 7}) as mine:\n"
        "    print(mine, flush=True)\n"
        "    time.sleep(60)\n"
    )
    argv = [sys.executable, "-c", code, str(store.root), ADDRESS]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        assert store.in_work(ADDRESS)
        assert store.claim_note(ADDRESS) == {"pid": 7}
        with store.claimed(ADDRESS, {"pid": 8}) as mine:
            assert not mine
        assert store.claim_note(ADDRESS) == {"pid": 7}
        other.kill()
    assert not store.in_work(ADDRESS)
    assert store.claim_note(ADDRESS) == {"pid": 7}  # it died at work
    with store.claimed(ADDRESS, {"pid": 8}) as mine:
        assert mine
        with store.claimed(ADDRESS, {"pid": 9}) as again:
            assert not again
        assert store.claim_note(ADDRESS) == {"pid": 8}
    assert store.claim_note(ADDRESS) == {}
    assert store.entry(ADDRESS).status == "missing"


def test_a_claim_that_cannot_be_written_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(store)
    monkeypatch.setattr(os, "open", full)
    with (
        pytest.raises(InputError, match="No space left on device"),
        store.claimed(ADDRESS, {}),
    ):
        pass
    monkeypatch.undo()
    monkeypatch.setattr(os, "write", full)
    with (
        pytest.raises(InputError, match="No space left on device"),
        store.claimed(ADDRESS, {"pid": 1}),
    ):
        pass


def test_addresses_tell_what_differs() -> None:
    base = {"a": 1, "b": [1.5, "x"], "c": {"d": None}}
    assert address_of(base) == address_of({"c": {"d": None}, "b": [1.5, "x"], "a": 1})
    assert len(address_of(base)) == 64
    others: list[dict[str, Any]] = [
        {**base, "a": 2},
        {**base, "a": True},
        {**base, "a": "1"},
        {**base, "b": ["x", 1.5]},
        {**base, "e": None},
    ]
    assert len({address_of(item) for item in [base, *others]}) == 6
    for bad in (np.float64("nan"), float("inf"), object(), {1, 2}):
        with pytest.raises(InputError, match="the settings of a trial must be"):
            address_of({"a": bad})


def test_keys_may_not_hide_columns(store: Store) -> None:
    table = ResultTable(name="records", columns={"method": np.array(["x"])})
    with pytest.raises(InputError, match="must not have the names of keys, got method"):
        store.write(ADDRESS, IDENTITY, TrialOutput(records=table, keys={"method": "line"}))
    uneven = ResultTable(name="records", columns={"a": np.zeros(1), "b": np.zeros(2)})
    with pytest.raises(InputError, match="must have one length"):
        store.write(ADDRESS, IDENTITY, TrialOutput(records=uneven))
    assert store.entry(ADDRESS).status == "missing"


def test_a_folder_reads_what_is_there(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    assert folder.read("none") is None
    assert folder.names("none") == ()
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        folder.read("sub")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="cannot be written"):
        folder.write("file/below", b"")
    assert not SystemLocks(folder).is_held("none")
    assert not folder.is_file()
    assert LocalFolder(tmp_path / "file").is_file()


def test_repeats_of_keys_cost_nothing(store: Store) -> None:
    many = TrialOutput(
        records=ResultTable(name="records", columns={"value": np.zeros(100_000)}),
        keys={"method": "a rather long name of a method"},
    )
    store.write(ADDRESS, IDENTITY, many)
    file = store.root / "trials" / ADDRESS / "records.parquet"
    assert file.stat().st_size < 20_000
    assert parquet.read_table(file)["method"].to_pylist()[-1] == "a rather long name of a method"


ARRAYS = {
    "outputs": np.random.default_rng(0).standard_normal((2, 500)),
    "features": np.random.default_rng(1).standard_normal((50, 64)).astype(np.float32),
    "half": np.array([[1.5, np.nan, -np.inf]], dtype=np.float16),
    "covered": np.arange(9000) % 7 > 0,
    "labels/val": np.arange(-3, 3, dtype=np.int8),
    "weights": np.frombuffer(b"network", dtype=np.uint8),
    "empty": np.zeros((0, 4)),
    "one": np.array(3 + 4j),
    "columns": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "big_endian": np.arange(5, dtype=">i4"),
    "file": np.zeros(2),
}


def with_arrays(arrays: Any) -> TrialOutput:
    return TrialOutput(
        records=ResultTable(name="records", columns={"value": np.zeros(1)}), arrays=arrays
    )


def test_arrays_are_kept_bit_by_bit(store: Store) -> None:
    store.write(ADDRESS, IDENTITY, with_arrays(ARRAYS))
    found = store.arrays(ADDRESS)
    assert list(found) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()
    entry = store.entry(ADDRESS, thorough=True)
    assert (entry.status, entry.tables) == ("done", ("records",))
    file = store.root / "trials" / ADDRESS / "arrays.npz"
    with np.load(file, allow_pickle=False) as held:  # anyone reads them
        np.testing.assert_array_equal(held["covered"], ARRAYS["covered"])
    before = file.read_bytes()
    store.write(ADDRESS, IDENTITY, with_arrays(ARRAYS))
    assert file.read_bytes() == before


def test_arrays_are_compressed_where_it_pays(store: Store) -> None:
    def size(arrays: Any) -> int:
        store.write(ADDRESS, IDENTITY, with_arrays(arrays))
        return (store.root / "trials" / ADDRESS / "arrays.npz").stat().st_size

    assert size({"covered": np.ones(1_000_000, dtype=bool)}) < 5_000
    noise = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    assert noise.nbytes < size({"noise": noise}) < noise.nbytes + 1_000


@pytest.mark.parametrize("harm", ["cut", "gone", "flipped"])
def test_damaged_arrays_are_named(store: Store, harm: str) -> None:
    store.write(ADDRESS, IDENTITY, with_arrays({"a": np.arange(100.0)}))
    file = store.root / "trials" / ADDRESS / "arrays.npz"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data[:-9] if harm == "cut" else data)
    if harm == "gone":
        file.unlink()
    entry = store.entry(ADDRESS, thorough=True)
    assert entry.status == "damaged"
    assert "arrays.npz" in entry.problem
    with pytest.raises(DamagedError, match=r"arrays.npz has changed since it was written"):
        store.arrays(ADDRESS)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"a": np.array([None])}, "array 'a' must contain numbers or booleans, got type object"),
        ({"a": np.array(["x"])}, "array 'a' must contain numbers or booleans, got type <U1"),
        ({"a": np.zeros(2, dtype=[("b", "f8")])}, "array 'a' must contain numbers"),
        ({"": np.zeros(2)}, "names of arrays must be printable text .* got ''"),
        ({"a.npy": np.zeros(2)}, "names of arrays must be printable text .* got 'a.npy'"),
        ({"a\n": np.zeros(2)}, "names of arrays must be printable text .* got"),
        ({3: np.zeros(2)}, "names of arrays must be printable text .* got 3"),
    ],
)
def test_what_is_no_array_is_refused(store: Store, arrays: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        store.write(ADDRESS, IDENTITY, with_arrays(arrays))
    assert store.entry(ADDRESS).status == "missing"


def test_a_trial_without_arrays_has_none(store: Store) -> None:
    with pytest.raises(InputError, match="must be done, got no results of it"):
        store.arrays(ADDRESS)
    written(store)
    assert store.arrays(ADDRESS) == {}
    with pytest.raises(InputError, match="is not a readable file of arrays"):
        arrays_of(b"nothing", "it")


def test_records_may_be_left_out(store: Store) -> None:
    store.write(ADDRESS, IDENTITY, TrialOutput(arrays={"x": np.arange(2)}))
    assert store.entry(ADDRESS, thorough=True).tables == ()
    assert [p.name for p in (store.root / "trials" / ADDRESS).iterdir() if p.suffix != ".json"] == [
        "arrays.npz"
    ]
    store.write(ADDRESS, IDENTITY, TrialOutput(facts={"n": 3}))
    entry = store.entry(ADDRESS, thorough=True)
    assert (entry.status, entry.facts) == ("done", {"n": 3})
    assert store.arrays(ADDRESS) == {}
    assert store.tables().num_rows == 0
    with pytest.raises(InputError, match="has no tables, got the name 'records'"):
        store.table(ADDRESS, "records")


def test_a_store_of_before_arrays_is_read(store: Store) -> None:
    """Files and lists as the first version of the form wrote them, byte for byte."""
    folder = store.root / "trials" / "ab"
    folder.mkdir(parents=True)
    data = parquet_bytes(to_arrow(ResultTable(name="records", columns={"value": np.array([0.5])})))
    (folder / "records.parquet").write_bytes(data)
    told = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    entry = {"format": 1, "address": "ab", "status": "done", "identity": {"seed": 0}}
    entry |= {"facts": {}, "failure": None, "failed_parts": 0, "provenance": {}}
    text = json.dumps({**entry, "files": {"records.parquet": told}})
    (folder / "trial.json").write_text(text)
    (store.root / "store.json").write_text('{"format": 1, "what": "howsure results"}')
    held = Store(store.root)
    assert held.entry("ab", thorough=True).status == "done"
    assert held.table("ab", "records")["value"].to_pylist() == [0.5]
    assert held.arrays("ab") == {}


def test_columns_of_every_kind_come_back_as_they_are_and_some_when_asked_for() -> None:
    columns: dict[str, Any] = {
        "text": np.array(["ä", "", "long enough"]),
        "count": np.arange(3, dtype=np.int32)[::-1],
        "value": np.array([[0.1, 1.0], [np.nan, 1.0], [-np.inf, 1.0]])[:, 0],
        "flag": np.array([True, False, True]),
        "thing": np.array(["a", None, "b"], dtype=object),
    }
    made = to_arrow(ResultTable(name="all", columns=columns), {"world": "fän", "seed": 3})
    made.validate(full=True)
    data = parquet_bytes(made)
    held = parquet_table(data, "all")
    assert held.schema == parquet.read_table(io.BytesIO(data)).schema
    for name, values in columns.items():
        np.testing.assert_array_equal(held[name].to_pylist(), values.tolist())
    assert held["world"].to_pylist() == ["fän"] * 3
    assert held["count"].type == "int32"
    assert parquet_table(data, "all", ["flag", "absent"]).column_names == ["flag"]


def test_numbers_and_text_are_kept_without_pandas() -> None:
    code = """
import sys, numpy as np
from howsure.core.records import ResultTable
from howsure_studies.engine.tables import parquet_bytes, parquet_table, to_arrow
columns = {"text": np.array(["a"]), "value": np.array([0.5])}
parquet_table(parquet_bytes(to_arrow(ResultTable(name="t", columns=columns), {"w": "x"})), "t")
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
