"""Long work tells what it does; Ctrl-C ends it cleanly."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from howsure.cli.progress import Stages
from howsure.cli.terminal import Console
from howsure.core.rng import child

RUN = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]
THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = child(0, "progress")
    x = rng.normal(size=(1500, 3))
    columns = {f"x{k}": x[:, k] for k in range(3)}
    y = x[:, 0] + rng.normal(size=1500)
    path = tmp_path_factory.mktemp("long") / "table.csv"
    held = {**columns, "y": y, "mean": x[:, 0], "sd": np.ones(len(y))}
    csv.write_csv(pa.table(held), path)
    return path


class TestStages:
    def shown(self, *, wanted: bool | None, terminal: bool, after: float) -> str:
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=100)
        with Stages(wanted, console, after) as stages:
            for step in range(1, 4):
                stages("bootstrap of [b]old[/b] <m>", step, 3)
                time.sleep(0.15)
        return stream.getvalue()

    def test_nothing_is_shown_where_nobody_looks(self) -> None:
        assert self.shown(wanted=None, terminal=False, after=0.0) == ""
        assert self.shown(wanted=False, terminal=True, after=0.0) == ""

    def test_lines_where_they_are_asked_for(self) -> None:
        shown = self.shown(wanted=True, terminal=False, after=0.1)
        assert "howsure: 0 s: bootstrap of [b]old[/b] <m> (3 of 3)" in shown
        assert "\x1b" not in shown
        assert self.shown(wanted=True, terminal=False, after=9.0) == ""

    def test_a_bar_that_comes_late(self) -> None:
        early = self.shown(wanted=None, terminal=True, after=9.0)
        assert "bootstrap of [b]old[/b] <m>" in early
        assert "3/3" not in early
        late = self.shown(wanted=None, terminal=True, after=0.0)
        assert "3/3" in late
        assert "━" in late


@pytest.mark.rate
def test_a_terminal_sees_stages_on_stderr_alone(table: Path) -> None:
    leader, follower = pty.openpty()
    run = subprocess.Popen(
        [*RUN, "assess", str(table)],
        stdout=subprocess.PIPE,
        stderr=follower,
        env={**os.environ, **THREADS, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    out, _ = run.communicate(timeout=120)
    os.close(leader)
    assert run.returncode == 0
    words = seen.decode(errors="replace")
    for stage in ("reading", "measures of table", "congruence of table"):
        assert stage in words
    assert b"congruence of table" not in out
    assert b"\x1b" not in out


@pytest.fixture(scope="module")
def duration(table: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds that the command takes here when it is left alone; it says nothing on a pipe."""
    output = tmp_path_factory.mktemp("alone") / "report.html"
    started = time.monotonic()
    run = subprocess.run(
        [*RUN, "assess", str(table), "-o", str(output)],
        capture_output=True,
        env={**os.environ, **THREADS},
        check=True,
        timeout=120,
    )
    assert run.stderr == b""
    assert output.stat().st_size > 10_000
    return time.monotonic() - started


@pytest.mark.parametrize("trial", range(6))
@pytest.mark.rate
def test_control_c_leaves_nothing_broken(
    table: Path, duration: float, tmp_path: Path, trial: int
) -> None:
    """Whenever it comes: status 130, one line, and either the whole file or none."""
    output = tmp_path / "report.html"
    output.write_text("what was here before", encoding="utf-8")
    started = time.monotonic()
    run = subprocess.Popen(
        [*RUN, "assess", str(table), "-o", str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **THREADS},
    )
    share = np.random.default_rng([trial, os.getpid()]).uniform()
    delay = 0.1 + float(share) * duration  # Python itself starts in the first tenth
    time.sleep(max(0.0, delay - (time.monotonic() - started)))
    done = run.poll() is not None
    run.send_signal(signal.SIGINT)
    out, error = run.communicate(timeout=120)
    assert "Traceback" not in out + error, f"after {delay:.2f} s: {error}"
    written = output.read_text(encoding="utf-8")
    whole = written.startswith("<!DOCTYPE html>") and written.rstrip().endswith("</html>")
    assert whole or written == "what was here before"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    if done or run.returncode == 0:  # it came too late to matter
        assert whole
    else:
        assert (run.returncode, error) == (130, "howsure: interrupted\n"), f"after {delay:.2f} s"


@pytest.mark.slow
def test_errors_still_leave_with_their_status(tmp_path: Path) -> None:
    for arguments, status in ((["assess", "gone.csv"], 2), (["--version"], 0), (["nonsense"], 2)):
        run = subprocess.run(
            [*RUN, *arguments], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        assert run.returncode == status
        assert "Traceback" not in run.stderr
        assert "interrupted" not in run.stderr
