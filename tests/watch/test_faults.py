"""A ledger survives what kills its writers."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from howsure.watch import Watch
from watch.test_watch import ROWS, rows

_WRITER = """
import sys
from howsure.watch import Watch
from watch.test_watch import rows, without_y, labels_of

watch = Watch(sys.argv[1])
for day in range(30, 400):
    part = rows(day, day + 1)
    watch.add(without_y(part))
    watch.add(labels_of(part))
    print(day, flush=True)
"""


@pytest.mark.parametrize("form", ["file", "folder"])
def test_a_writer_that_is_killed_harms_nothing(tmp_path: Path, form: str) -> None:
    for delay in (0.0, 0.07):
        place = str(tmp_path / f"{delay}.watch")
        if form == "folder":
            place = f"{tmp_path}/{delay}/"
        Watch.init(place, rows(0, 30), time="day", row_id="id", mature=1_000)
        with subprocess.Popen(
            [sys.executable, "-c", _WRITER, place], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(delay)
            writer.kill()
            done = (first + writer.stdout.read()).split()
        report = Watch(place).show()
        assert report.open_rows % ROWS == 0
        assert report.open_rows >= len(done) * ROWS
        assert report.waiting in (0, ROWS)


def test_a_writer_that_is_killed_within_its_writing_is_taken_back(tmp_path: Path) -> None:
    place = tmp_path / "a.watch"
    watch = Watch.init(place, rows(0, 30), time="day")
    watch.add(rows(30, 32))
    code = (
        "import os, signal, sqlite3, sys\n"
        "base = sqlite3.connect(sys.argv[1])\n"
        "base.execute('PRAGMA cache_size = 1')\n"
        "base.execute('DELETE FROM held')\n"
        "base.executemany('INSERT INTO held VALUES (?, ?)', ((str(k), bytes(9_000)) for k in "
        "range(400)))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(place)], check=False)
    assert place.with_name("a.watch-journal").exists()
    assert Watch(place).show().days == 2


def test_a_full_disk_leaves_the_ledger_as_it_was(tmp_path: Path) -> None:
    place = f"{tmp_path}/a/"
    watch = Watch.init(place, rows(0, 30), time="day")
    watch.add(rows(30, 32))
    before = {path.name: path.read_bytes() for path in Path(place).iterdir()}
    code = (
        "import resource, sys\n"
        "from howsure.watch import Watch\n"
        "from watch.test_watch import rows\n"
        "watch = Watch(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "watch.add(rows(32, 34))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, place], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert {path.name: path.read_bytes() for path in Path(place).iterdir()} == before
    watch.add(rows(32, 34))
    assert watch.show().days == 4
