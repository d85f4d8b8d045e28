"""Stores at URLs, and locks by files where the system has none."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.errors import InputError, MissingDependencyError
from howsure.core.files import RemoteFolder
from howsure.core.records import ResultTable
from howsure_studies.engine import (
    FORMAT,
    DamagedError,
    Store,
    TrialError,
    TrialOutput,
    locks,
)

fsspec = needs("fsspec")

IDENTITY = {"seed": 0}


def output(value: float = 0.5) -> TrialOutput:
    return TrialOutput(
        records=ResultTable(name="records", columns={"value": np.array([value])}),
        arrays={"features": np.arange(6.0).reshape(2, 3)},
    )


@pytest.fixture(params=["memory://", "file://", "local://"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield f"{request.param}{tmp_path}/store"
    files = fsspec.filesystem("memory")
    if files.exists(str(tmp_path)):
        files.rm(str(tmp_path), recursive=True)


def test_a_store_at_a_url_is_a_store(url: str) -> None:
    store = Store(url)
    assert store.entry("ab").status == "missing"
    assert store.addresses() == ()
    with store.claimed("ab", {"pid": 7}) as mine:
        assert mine
        assert store.in_work("ab")
        assert store.claim_note("ab") == {"pid": 7}
        with Store(url).claimed("ab", {"pid": 8}) as again:
            assert not again
        store.write("ab", IDENTITY, output(), {"seconds": 1.0})
    assert not store.in_work("ab")
    assert store.claim_note("ab") == {}
    held = Store(store.location)
    entry = held.entry("ab", thorough=True)
    assert (entry.status, entry.identity, entry.tables) == ("done", IDENTITY, ("records",))
    assert held.table("ab", "records")["value"].to_pylist() == [0.5]
    assert held.tables().num_rows == 1
    np.testing.assert_array_equal(held.arrays("ab")["features"], output().arrays["features"])
    held.write_failure("cd", IDENTITY, TrialError(error="E", message="m"))
    assert held.addresses() == ("ab", "cd")
    found = held.entries(["cd", "ab", "ef", "ab"])
    assert {a: e.status for a, e in found.items()} == {
        "cd": "failed",
        "ab": "done",
        "ef": "missing",
    }


def test_what_is_at_a_url_already_is_looked_at(tmp_path: Path) -> None:
    store = Store(f"memory://{tmp_path}/a")
    store.write("ab", IDENTITY, output())
    folder = RemoteFolder(store.location)
    folder.write("store.json", json.dumps({"format": FORMAT + 1}).encode())
    with pytest.raises(InputError, match=r"memory://.* was written by a newer howsure \(form 2"):
        Store(store.location)
    folder.write("store.json", b"{")
    with pytest.raises(InputError, match=r"memory://.*/store.json is not readable"):
        Store(store.location)
    RemoteFolder(f"memory://{tmp_path}/b").write("thesis.txt", b"years of work")
    with pytest.raises(InputError, match=r"contains 'thesis.txt' but no store.json"):
        Store(f"memory://{tmp_path}/b")
    with pytest.raises(InputError, match="is not one"):
        Store(f"memory://{tmp_path}/b/thesis.txt")
    with pytest.raises(InputError, match="store must be on a disk, got 'memory://"):
        _ = Store(f"memory://{tmp_path}/c").root


@pytest.mark.parametrize("harm", ["cut", "gone", "flipped"])
def test_damage_at_a_url_is_named(tmp_path: Path, harm: str) -> None:
    """Sizes are looked at; what is read is compared with its hash."""
    store = Store(f"memory://{tmp_path}/store")
    store.write("ab", IDENTITY, output())
    folder, file = RemoteFolder(store.location), "trials/ab/arrays.npz"
    data = folder.read(file)
    assert data is not None
    if harm == "gone":
        folder.remove(file)
    else:
        folder.write(file, data[:-1] if harm == "cut" else data[:-1] + b"\xff")
    status = store.entry("ab", thorough=True).status
    assert status == ("done" if harm == "flipped" else "damaged")
    with pytest.raises(
        DamagedError, match=r"memory://.*arrays.npz has changed since it was written"
    ):
        store.arrays("ab")
    folder.write("trials/ab/trial.json", b"{")
    assert "trial.json is not readable" in store.entry("ab").problem


@pytest.mark.parametrize(
    ("location", "error", "words"),
    [
        ("zzz://bucket/x", InputError, "'zzz://bucket/x' cannot be opened: .*not known: zzz"),
        ("file://", InputError, "store must name a folder, got 'file://'"),
        ("local:///", InputError, "store must name a folder"),
    ],
)
def test_a_bad_url_is_told(location: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Store(location)


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingDependencyError, match=r"an address s3:// needs .* s3fs"):
        Store("s3://bucket/x")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "howsure\[cluster\]"'):
        Store("memory://x")


@pytest.mark.parametrize("method", ["pipe_file", "cat_file", "info", "ls", "rm_file"])
def test_a_place_that_refuses_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """Libraries of places raise errors of their own kinds: a full quota, keys that are wrong."""

    class QuotaError(Exception):
        pass

    folder = RemoteFolder(f"memory://{tmp_path}/store")
    folder.write("a", b"x")

    def refuse(*_: Any, **__: Any) -> None:
        raise QuotaError("no space left")

    monkeypatch.setattr(fsspec.filesystem("memory"), method, refuse)
    calls: dict[str, Callable[[], object]] = {
        "pipe_file": lambda: folder.write("b", b""),
        "cat_file": lambda: folder.read("a"),
        "info": lambda: folder.size("a"),
        "ls": lambda: folder.names("b"),
        "rm_file": lambda: folder.remove("a"),
    }
    with pytest.raises(InputError, match=r"memory://.* cannot be .*: QuotaError: no space left"):
        calls[method]()


def test_a_folder_that_is_missing_is_made_and_a_bucket_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fsspec's own local files stand for a place with folders."""
    made = RemoteFolder(f"memory://{tmp_path}/store")
    local = fsspec.filesystem("file")
    monkeypatch.setattr(made, "_files", local, raising=False)
    made.write("trials/ab/x", b"1")
    assert (tmp_path / "store" / "trials" / "ab" / "x").read_bytes() == b"1"
    assert not made.create("trials/ab/x", b"2")
    assert made.create("trials/cd/x", b"2")
    assert made.names("trials") == ("ab", "cd")
    assert made.names("trials/ab/x") == ()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        local,
        "pipe_file",
        lambda *_, **__: (_ for _ in ()).throw(FileNotFoundError("no such bucket")),
    )
    monkeypatch.setattr(made, "_root", "bucket/store", raising=False)
    with pytest.raises(InputError, match="cannot be written: FileNotFoundError: no such bucket"):
        made.write("x", b"")
    assert not (tmp_path / "bucket").exists()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_EXPIRY", 0.6)
    monkeypatch.setattr(locks, "_BEAT", 0.1)
    monkeypatch.setattr(locks, "_SETTLE", 0.05)


CLAIM = (
    "import sys, time\n"
    "from howsure_studies.engine import Store, locks\n"
    "locks._BEAT = 0.1\n"
    "with Store(sys.argv[1]).claimed('ab', {'pid': 7}) as mine:\n"
    "    print(mine, flush=True)\n"
    "    time.sleep(60)\n"
)


def test_a_claim_by_file_lives_while_its_process_does(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its signs of life go on, however slow the machine is; where it is killed, they end."""
    monkeypatch.setattr(locks, "_EXPIRY", 60.0)
    store = Store(f"local://{tmp_path}/store")
    file = tmp_path / "store" / "trials" / "ab" / ".claim"
    argv = [sys.executable, "-c", CLAIM, store.location]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        beats = set[float]()
        while len(beats) < 8:
            time.sleep(0.02)
            beats.add(json.loads(file.read_text())["beat"])
        assert store.in_work("ab")
        with store.claimed("ab", {"pid": 8}) as mine:
            assert not mine
        other.kill()
    assert store.in_work("ab")  # nobody can know yet
    monkeypatch.setattr(locks, "_EXPIRY", 0.0)
    assert not store.in_work("ab")
    assert store.claim_note("ab") == {"pid": 7}  # it died at work
    with store.claimed("ab", {"pid": 8}) as mine:
        assert mine
    assert store.claim_note("ab") == {}


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_clock_that_jumps_takes_no_claim_from_the_living(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """To who looks with another clock a live claim seems void; signs of life go on, though."""
    store = Store(f"local://{tmp_path}/store")
    file = tmp_path / "store" / "trials" / "ab" / ".claim"
    clock = SimpleNamespace(
        time=lambda: time.time() + jump, monotonic=time.monotonic, sleep=time.sleep
    )
    argv = [sys.executable, "-c", CLAIM, store.location]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "True\n"
        monkeypatch.setattr(locks, "time", clock)
        monkeypatch.setattr(locks, "_PROOF", 20)  # two seconds, however busy the machine is
        for _ in range(3):
            assert not store.in_work("ab")
            with store.claimed("ab", {"pid": 8}) as mine:
                assert not mine
        assert json.loads(file.read_text())["note"] == '{"pid":7}'
        other.kill()
    with store.claimed("ab", {"pid": 8}) as mine:  # by any clock it is silent now
        assert mine
        assert store.claim_note("ab") == {"pid": 8}


def test_a_claim_is_taken_over_when_its_silence_is_proved(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before two beats have passed, and not if another takes it over first."""
    store, slept = Store(f"local://{tmp_path}/store"), []
    file = tmp_path / "store" / "trials" / "ab" / ".claim"
    file.parent.mkdir(parents=True)
    dead = json.dumps({"token": "x", "beat": time.time() - 99, "note": '{"pid": 7}'})
    theirs = json.dumps({"token": "y", "beat": time.time() - 98, "note": '{"pid": 9}'})
    now = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds
        if len(slept) == 3 and file.read_text() == dead:
            file.write_text(theirs)

    clock = SimpleNamespace(time=time.time, monotonic=lambda: now[0], sleep=sleep)
    monkeypatch.setattr(locks, "time", clock)
    file.write_text(json.dumps({"token": "x", "beat": time.time() + 99, "note": ""}))
    monkeypatch.setattr(locks, "_EXPIRY", 1e6)
    with store.claimed("ab", {"pid": 8}) as mine:
        assert not mine  # a claim that seems alive is not waited for
    assert slept == []
    monkeypatch.setattr(locks, "_EXPIRY", 0.6)
    file.write_text(dead)
    with store.claimed("ab", {"pid": 8}) as mine:
        assert not mine
    assert (len(slept), file.read_text()) == (3, theirs)
    with store.claimed("ab", {"pid": 8}) as mine:
        assert mine
    assert sum(slept[3:]) >= 2 * locks._BEAT


def test_a_claim_that_another_takes_over_first_is_theirs(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(f"local://{tmp_path}/store")
    file = tmp_path / "store" / "trials" / "ab" / ".claim"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"token": "x", "beat": 0.0, "note": ""}))
    theirs = json.dumps({"token": "y", "beat": time.time(), "note": ""})

    def void(*_: Any) -> bool:
        file.write_text(theirs)
        return True

    monkeypatch.setattr(locks.FileLocks, "_void", void)
    with store.claimed("ab", {"pid": 8}) as mine:
        assert not mine
    assert file.read_text() == theirs


def test_a_claim_ends_with_an_error_and_keeps_its_note(tmp_path: Path, quick: None) -> None:
    store = Store(f"local://{tmp_path}/store")
    with pytest.raises(KeyboardInterrupt), store.claimed("ab", {"pid": 7}):
        raise KeyboardInterrupt
    assert not store.in_work("ab")
    assert store.claim_note("ab") == {"pid": 7}
    store.disclaim("ab")
    assert store.claim_note("ab") == {}


def test_a_claim_that_was_taken_over_is_let_go(tmp_path: Path, quick: None) -> None:
    store = Store(f"local://{tmp_path}/store")
    file = tmp_path / "store" / "trials" / "ab" / ".claim"
    with store.claimed("ab", {"pid": 7}) as mine:
        assert mine
        theirs = json.dumps({"token": "x", "beat": time.time() + 9, "note": '{"pid": 9}'})
        file.write_text(theirs)
        time.sleep(0.3)
    assert file.read_text() == theirs
    for odd in ("half of a cl", "[]", '{"token": 1}', "[" * 99_999, f'{{"beat": {10**999}}}'):
        file.write_text(odd)
        assert not store.in_work("ab")
        with store.claimed("ab", {"pid": 8}) as mine:
            assert mine


@pytest.mark.parametrize("before", ["", "void"])
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_of_many_who_claim_at_once_one_wins(
    tmp_path: Path, quick: None, kind: str, before: str
) -> None:
    store, won = Store(f"{kind}://{tmp_path}/store"), []
    if before:
        with pytest.raises(ZeroDivisionError), store.claimed("ab", {}):
            raise ZeroDivisionError
    gate, leave = threading.Barrier(8), threading.Event()

    def claim() -> None:
        gate.wait()
        with store.claimed("ab", {}) as mine:
            won.append(mine)
            if mine:
                leave.wait(5)

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    while len(won) < 8:
        time.sleep(0.01)
    leave.set()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 7 + [True]


def test_a_disk_without_locks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def take(handle: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks, "_take", take)
    store = Store(tmp_path / "store")
    words = rf"cannot be locked \(No locks available\).* name the store as local://{tmp_path}/store"
    with pytest.raises(InputError, match=words), store.claimed("ab", {}):
        pass
    with Store(f"local://{tmp_path}/store").claimed("ab", {}) as mine:
        assert mine
