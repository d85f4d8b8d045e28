"""A ledger survives what kills its writers."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from howsure.core.errors import InputError
from howsure.inputs import write_table
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_a_ledger_that_another_writer_holds_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howsure.core.files._SECONDS_TO_WAIT", 0.05)
    place = tmp_path / "a.watch"
    watch = Watch.init(place, rows(0, 30), time="day")
    watch.add(rows(30, 32))
    with closing(sqlite3.connect(place)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="cannot be used: database is locked"):
            watch.add(rows(32, 34))
        other.rollback()
    assert Watch(place).show().days == 2
    watch.add(rows(32, 34))
    assert watch.show().days == 4


_COMMANDS = """
import json, sys
from typer.testing import CliRunner
from howsure.cli.main import app
for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, words)
    print(done.exit_code, done.exception if done.exit_code else "", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such modes")
def test_nothing_is_half_written_where_nothing_may_be(tmp_path: Path) -> None:
    """A file that is there already stays, too."""
    write_table(rows(0, 30, sd=1.5), tmp_path / "in.csv")
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("out.csv", "p.html", "k.json"):
        (folder / name).write_text("somebody's")
    Watch.init(folder / "b.watch", rows(0, 30), time="day")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    table, held = str(tmp_path / "in.csv"), str(folder)
    new, learn = f"{tmp_path}/new", ["recalibrate", table, "--calibration", table]
    commands = [
        ["watch", "init", f"{held}/c.watch", "--reference", table, "--time", "day"],
        ["watch", "init", f"{held}/c/", "--reference", table, "--time", "day"],
        ["watch", "add", f"{held}/b.watch", table],
        ["watch", "show", f"{held}/b.watch", "-o", f"{held}/p.html"],
        [*learn, "-o", f"{held}/out.csv"],
        [*learn, "-o", f"{new}.csv", "--keep", f"{held}/k.json"],
        ["improve", table, table, "-o", f"{new}.csv", "--proof", f"{held}/q.json"],
        ["improve", table, table, "-o", f"{held}/out.csv", "--proof", f"{new}.json"],
        ["assess", table, "-o", f"{new}.html", "-o", f"{held}/p.html"],
        ["assess", table, "--state", f"{held}/s.arrow"],
        ["check", table, "--min", "coverage=0.5", "--junit", f"{held}/j.xml"],
    ]
    folder.chmod(0o555)
    for path in folder.iterdir():
        path.chmod(0o444)
    try:
        done = subprocess.run(
            [*_ordinary(), sys.executable, "-c", _COMMANDS, json.dumps(commands)],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        folder.chmod(0o755)
    for words, line in zip(commands, done.stdout.splitlines(), strict=True):
        assert re.match(r"1 .*(cannot be written|cannot be used|exists and is not a)", line), words
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "in.csv"]


def _ordinary() -> list[str]:
    """What runs a command without the right of a superuser to write anywhere."""
    if os.geteuid():
        return []
    if not shutil.which("setpriv"):
        pytest.skip("a superuser may write anywhere, and setpriv is not here")
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", "--bounding-set", rights, "--inh-caps", rights]
