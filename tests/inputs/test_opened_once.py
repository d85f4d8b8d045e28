"""A command opens each of its tables once, so that what it says is of one file."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.inputs import load, open_table, write_table
from howsure.inputs.source import refusing

pytestmark = pytest.mark.slow

ENDINGS = (".csv", ".tsv", ".csv.gz", ".csv.zst", ".parquet", ".arrow", ".ipc")
N = 60


def made(folder: Path, ending: str) -> Path:
    y = np.arange(float(N))
    table = pa.table({"y": y, "mean": y, "sd": np.ones(N), "group": ["a", "b"] * (N // 2)})
    path = folder / f"t{ending}"
    if ending == ".ipc":
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    else:
        write_table(table, path)
    return path


def opened(path: Path, act: Callable[[], None]) -> int:
    """How often a file is opened, as the kernel tells; readings keep openings apart."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    access, close, opening = 0x1, 0x18, 0x20
    try:
        assert libc.inotify_add_watch(watch, os.fsencode(path), access | close | opening) > 0
        act()
        events = os.read(watch, 1 << 20)
    finally:
        os.close(watch)
    count = place = 0
    while place < len(events):
        _, mask, _, length = struct.unpack_from("iIII", events, place)
        count += bool(mask & opening)
        place += 16 + length
    return count


linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is of Linux")


@linux
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "words", [("assess", "--explain-input"), ("check", "--max", "mae=1", "--groups", "group")]
)
def test_a_command_opens_its_table_once(
    ending: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = made(tmp_path, ending)

    def act() -> None:
        done = CliRunner().invoke(app, [words[0], str(path), *words[1:]], catch_exceptions=False)
        assert done.exit_code == 0, done.output

    assert opened(path, act) == 1


@linux
@pytest.mark.parametrize("ending", [".csv.gz", ".parquet"])
def test_rows_to_watch_and_their_reference_are_opened_once(ending: str, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    reference, new = made(tmp_path, ending), made(tmp_path / "new", ending)
    words = ["assess", str(new), "--reference", str(reference), "--features", "group"]

    def act() -> None:
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output

    assert opened(new, act) == opened(reference, act) == 1


@linux
def test_openings_are_counted(tmp_path: Path) -> None:
    path = made(tmp_path, ".csv")

    def twice() -> None:
        load([path])
        path.read_bytes()

    assert opened(path, twice) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_read_is_what_was_opened(ending: str, tmp_path: Path) -> None:
    """A file that is replaced meanwhile does not mix with what was there."""
    path = made(tmp_path, ending)
    source = open_table(path)
    path.unlink()
    path.write_text("other\n", encoding="utf-8")
    for _ in range(2):
        table = source.read({"y": "number", "group": "label"})
        assert table["y"].to_pylist() == list(range(N))


def test_what_the_system_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught, refusing("t.csv"):
        pa.OSFile(str(tmp_path / "absent.csv"))
    assert str(caught.value) == f"t.csv cannot be read: {os.strerror(errno.ENOENT)}"
