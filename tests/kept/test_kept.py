"""What earlier versions kept opens, or is refused with what to do; so is what was damaged."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import howsure
from damage import GONE, damaged, places
from forms import faults
from howsure.core.errors import HowsureError, InputError
from howsure.core.files import SingleFile
from howsure.recalibration import load_recalibration
from howsure.report.improve import check_proof
from howsure.streaming import State, loaded_state
from howsure.streaming.engine import stream_bytes, stream_table
from howsure.watch import Watch
from howsure.watch.ledger import FORM, SealedPlace, _hash
from kept.make import FILES, days, without_names, without_y

FOLDER = Path(__file__).parent
KEPT = [path.name for path in sorted(FOLDER.iterdir()) if path.suffix not in (".py", "")]
LEDGER = f"ledger-{FORM}.watch"


def copy_of(name: str, folder: Path) -> Path:
    path = folder / name.removesuffix(".gz")
    whole = (FOLDER / name).read_bytes()
    path.write_bytes(gzip.decompress(whole) if name.endswith(".gz") else whole)
    return path


def use_ledger(path: Path) -> None:
    """Everything that a ledger is asked."""
    watch = Watch(path)
    report = watch.show()
    assert report.document().lines
    waiting = days(100, 102)
    watch.add({name: waiting[name] for name in ("id", "day", "y")})
    watch.add(without_y(days(102, 103)))
    watch.undo()
    assert (report.waiting, watch.show().waiting) == (len(waiting["y"]), 0)


def use_state(path: Path) -> None:
    loaded = loaded_state(State.open(path))
    assert loaded.totals[0].n == loaded.evalsets[0].n == 64


def use_recalibration(path: Path) -> None:
    fitted = load_recalibration(path)
    loaded = howsure.load(without_names(days(0, 5)), groups="site")
    assert fitted.apply(loaded.evalsets[0]).evalset.n == 40


def use_improvement(path: Path) -> None:
    check_proof(path)  # which it may be written over
    assert not faults("improvement", json.loads(path.read_text("utf-8")))


USES: dict[str, Callable[[Path], None]] = {
    "ledger": use_ledger,
    "state": use_state,
    "recalibration": use_recalibration,
    "improvement": use_improvement,
}
ANEW = {
    "ledger": r"howsure\.watch\.Watch\.init\(new, reference\)",
    "state": r"howsure\.assess\(table, large=howsure\.Large\(state=FILE\)\)",
    "recalibration": r"howsure\.recalibrate\(new, calibration\)\.fitted\.save\(FILE\)",
}
REFUSED = {"ledger-2.watch"}
"""What this version opens no more."""


def test_there_is_a_small_file_of_every_form_and_version() -> None:
    assert {*FILES} <= {*KEPT}
    assert sum((FOLDER / name).stat().st_size for name in KEPT) < 300_000


@pytest.mark.parametrize("name", KEPT)
def test_what_was_kept_opens_or_is_refused_with_what_to_do(name: str, tmp_path: Path) -> None:
    kind, path = name.partition("-")[0], copy_of(name, tmp_path)
    if name not in REFUSED:
        USES[kind](path)
        return
    with pytest.raises(InputError, match=f"{ANEW[kind]}$"):
        USES[kind](path)


def piece(name: str, change: Callable[[bytes], bytes], path: Path) -> None:
    """Change what stands in a ledger, as it stands."""
    place = SingleFile(path)
    place.write(name, change(place.read(name) or b""))


def test_what_a_later_version_keeps_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = copy_of(LEDGER, tmp_path)
    line = b"howsure ledger %d"
    piece("promise.json", lambda held: held.replace(line % FORM, line % (FORM + 1)), path)
    with pytest.raises(InputError, match=f"{ANEW['ledger']}$"):
        Watch(path)
    path = copy_of("recalibration-1.json", tmp_path)
    path.write_text(path.read_text("utf-8").replace('"version": 1', '"version": 2'), "utf-8")
    with pytest.raises(InputError, match=f"{ANEW['recalibration']}$"):
        load_recalibration(path)
    table = pa.ipc.open_file(copy_of("state-1.arrow.gz", tmp_path)).read_all()
    told = json.loads(table.schema.metadata[b"howsure"])
    for changed in ({"form": "howsure state 2"}, {"howsure": "99.0"}):
        held = table.replace_schema_metadata({"howsure": json.dumps({**told, **changed})})
        with pytest.raises(InputError, match=f"{ANEW['state']}$"):
            State.from_arrow(held)


# Damage of ledgers; that of states and recalibrations is with these


def pieces() -> tuple[str, ...]:
    return SingleFile(FOLDER / LEDGER).names()


@pytest.mark.parametrize(
    "harm",
    [
        lambda held: b"",
        lambda held: held[: len(held) // 2],
        lambda held: held[:-1] + bytes([held[-1] ^ 1]),
        lambda held: b"{}",
        lambda held: held + b"more",
        lambda held: held.replace(b" zstd ", b" none "),
        lambda held: held.replace(b" zstd ", b" zstd 9", 1),
    ],
)
def test_whatever_is_done_to_a_ledger_by_hand_is_seen(tmp_path: Path, harm: Any) -> None:
    for name in pieces():
        path = copy_of(LEDGER, tmp_path)
        piece(name, harm, path)
        with pytest.raises(InputError, match=f"is damaged|not a ledger of this.*{ANEW['ledger']}$"):
            SealedPlace(SingleFile(path)).read(name)
        if name in ("promise.json", "entry-00000002"):
            assert use_quietly(path)


def test_pieces_of_a_ledger_cannot_be_exchanged(tmp_path: Path) -> None:
    path = copy_of(LEDGER, tmp_path)
    piece("entry-00000002", lambda _: SingleFile(path).read("entry-00000001") or b"", path)
    with pytest.raises(InputError, match="'entry-00000002' was changed since it was written"):
        Watch(path).show()


def resealed(name: str, data: bytes, path: Path) -> None:
    """Put other content into a ledger, with a hash that fits."""
    SealedPlace(SingleFile(path)).write(name, data)


def sealed_table(name: str) -> pa.Table:
    return stream_table(SealedPlace(SingleFile(FOLDER / LEDGER)).read(name) or b"")


def promise() -> bytes:
    return SealedPlace(SingleFile(FOLDER / LEDGER)).read("promise.json") or b""


def use_quietly(path: Path) -> bool:
    """Whether it is refused; what else goes wrong is raised."""
    try:
        use_ledger(path)
    except HowsureError:
        return True
    except AssertionError:  # of other numbers
        pass
    return False


PUT = (GONE, None, "", "x", -1, 0, 1e300, 1 << 62, True, [], {}, [[1]])


def changes() -> Iterator[tuple[str, str, Callable[[], bytes]]]:
    """Each piece of a ledger with another value in one place, or another column."""
    for name in filter(lambda name: not name.startswith("names"), pieces()):
        table = None if name == "promise.json" else sealed_table(name)
        told = json.loads(
            promise() if table is None else (table.schema.metadata or {}).get(b"howsure", b"[]")
        )

        def other(place: Any, put: Any, told: Any = told, table: pa.Table | None = table) -> bytes:
            text = json.dumps(damaged(told, place, put))
            if table is None:
                return text.encode()
            return stream_bytes(table.replace_schema_metadata({"howsure": text}))

        for place, put in itertools.product(places(told), PUT):
            yield name, f"{place}: {put!r}", partial(other, place, put)
        for place, column in enumerate(() if table is None else table.column_names):
            n = len(table)
            for put in (pa.nulls(n), pa.array(["x"] * n), pa.array([np.nan] * n)):
                changed = table.set_column(place, column, put)
                yield name, f"{column}: {put.type}", partial(stream_bytes, changed)
            yield name, f"no {column}", partial(stream_bytes, table.drop_columns([column]))


def tried_changes(step: int, folder: Path) -> tuple[int, int]:
    """Every so many a change is made, with a hash that fits; how many were, and were refused."""
    tried = refused = 0
    with np.errstate(all="ignore"):
        for name, words, write in itertools.islice(changes(), 0, None, step):
            path = copy_of(LEDGER, folder)
            resealed(name, write(), path)
            try:
                refused += use_quietly(path)
            except Exception as error:
                error.add_note(f"{name}, {words}")
                raise
            tried += 1
    return tried, refused


@pytest.mark.slow
def test_a_value_of_a_ledger_may_be_anything(tmp_path: Path) -> None:
    """Whoever wrote it so, with a hash that fits: it is read or refused, and nothing else."""
    tried, refused = tried_changes(173, tmp_path)
    assert (tried > 20, refused > tried / 3) == (True, True)


@pytest.mark.rate
def test_each_value_of_a_ledger_may_be_anything(tmp_path: Path) -> None:
    tried, refused = tried_changes(1, tmp_path)
    assert (tried > 3_000, refused > tried / 3) == (True, True)


def test_a_promise_that_names_code_is_refused_and_none_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`encode` loads MODULE:NAME where a table is read."""
    (tmp_path / "planted.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    monkeypatch.chdir(tmp_path)
    told = json.loads(promise())
    for role, value in (("encode", "id=planted:x"), ("image", "id"), ("rows", "id")):
        path = copy_of(LEDGER, tmp_path)
        columns = {**told["columns"], role: value}
        resealed("promise.json", json.dumps({**told, "columns": columns}).encode(), path)
        with pytest.raises(InputError, match=f"columns of the promise must not contain '{role}'"):
            use_ledger(path)
    assert not (tmp_path / "ran").exists()


def test_an_entry_that_would_fill_memory_is_refused_by_its_size(tmp_path: Path) -> None:
    path, zeros = copy_of(LEDGER, tmp_path), b"\0" * (1 << 24)
    pressed = pa.CompressedOutputStream(sink := pa.BufferOutputStream(), "zstd")
    for _ in range(192):  # 3 GiB
        pressed.write(zeros)
    pressed.close()
    line, held = b"howsure ledger %d zstd %d" % (FORM, 192 << 24), sink.getvalue().to_pybytes()
    check = _hash("entry-00000001", line, held)
    assert len(held) < 3 << 20
    SingleFile(path).write("entry-00000001", line + b"\n" + check + held)
    before = pa.default_memory_pool().max_memory()
    with pytest.raises(InputError, match=r"'entry-00000001' would expand to 3,221,225,472: create"):
        Watch(path).show()
    assert pa.default_memory_pool().max_memory() < before + (1 << 24)


def test_what_repeats_is_kept_as_it_is_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howsure.core.sizes._MIN_BYTES", 1 << 16)
    place = SealedPlace(SingleFile(tmp_path / "a"))
    whole = b"\0" * (1 << 20)  # which shrinks ten thousandfold
    place.write("piece", whole)
    assert place.read("piece") == whole
    for name in ("../other", "a/b", "", ".hidden"):
        with pytest.raises(InputError, match="is not a valid name of a piece"):
            place.remove(name)


def test_compressed_columns_are_refused(tmp_path: Path) -> None:
    """A ledger and a state have none, and a few bytes of them would take all memory."""
    table = pa.table({"a": np.zeros(10**6), "b": pa.array(["x"] * 10**6).dictionary_encode()})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(str(path), table.schema, options=options) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match="its columns are compressed"):
        State.open(path)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    with pytest.raises(pa.ArrowInvalid, match="its columns are compressed"):
        stream_table(sink.getvalue())
    assert stream_table(stream_bytes(table)).equals(table)
