"""What a terminal, a pipe, a full disk and a poor encoding get of any command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyarrow import csv

from howsure.core.rng import child
from howsure.core.text import legible

RUN = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]
OTHERS = [
    "assess t.csv --explain-input",
    "check t.csv --min-coverage 0.5",
    "recalibrate t.csv --calibration t.parquet -o mended.csv",
    "characteristic t.csv --bootstrap 20",
    "metrics",
    "schema report",
    "data list",
    "--help",
]
COMMANDS = ["assess t.csv", *(pytest.param(line, marks=pytest.mark.rate) for line in OTHERS)]
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table in two forms."""
    where = tmp_path_factory.mktemp("streams")
    x = child(0, "streams").uniform(-1, 1, 200)
    y = x + child(1, "streams").normal(size=200)
    held = pa.table({"y": y, "lower_90": x - 1.6, "upper_90": x + 1.6})
    csv.write_csv(held, where / "t.csv")
    pa.parquet.write_table(held, where / "t.parquet")
    narrow = pa.table({"y": y, "mean": x, "sd": np.full(200, 0.5)})
    csv.write_csv(narrow, where / "narrow.csv")
    return where


def run(folder: Path, line: str, env: dict[str, str] | None = None, **how: Any) -> Any:
    return subprocess.run(
        [*RUN, *line.split()],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
        cwd=folder,
        env={**os.environ, **(env or {})},
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_an_encoding_that_lacks_characters(folder: Path, line: str, encoding: str) -> None:
    plain = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = run(folder, line, {**plain, "PYTHONIOENCODING": encoding})
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert len(ran.stdout.decode()) > 20 if encoding == "ascii" else ran.stdout.decode(encoding)


@pytest.mark.slow
def test_a_verdicts_marks_differ_in_any_encoding(folder: Path) -> None:
    """Good, bad and unknown must not all be a question mark."""
    rich = run(folder, "assess narrow.csv", {"PYTHONIOENCODING": "utf-8"}).stdout.decode()
    poor = run(folder, "assess narrow.csv", {"PYTHONIOENCODING": "ascii"}).stdout.decode("ascii")
    marks = dict(zip("✓○✗≈?→", "+ox=?>", strict=True))
    told = [line[0] for line in rich.splitlines() if line[:1] in marks and line[1:2] == " "]
    assert len(set(told)) > 2
    assert [marks[mark] for mark in told] == [
        line[0] for line in poor.splitlines() if line[:1] in marks.values() and line[1:2] == " "
    ]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_every_state_has_a_mark_of_its_own(encoding: str) -> None:
    code = (
        "from howsure.cli import entry; from howsure.cli.terminal import SIGNS; import sys\n"
        "from rich.text import Text\n"
        "out = entry._Stream.over(sys.stdout)\n"
        "out.write(''.join(str(Text.from_markup(sign)) for sign in SIGNS.values())); out.flush()"
    )
    env = {**os.environ, "PYTHONIOENCODING": encoding}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=True)
    shown = ran.stdout.decode(encoding)
    assert len(set(shown)) == len(shown) == 6


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
def test_a_reader_that_leaves(folder: Path, line: str) -> None:
    """As by SIGPIPE, and never 1, which in `check` is a limit that fails."""
    reader, writer = os.pipe()
    os.close(reader)
    ran = run(folder, line, stdout=writer)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
@pytest.mark.parametrize("line", COMMANDS)
def test_a_full_disk_behind_stdout(folder: Path, line: str) -> None:
    with open("/dev/full", "wb") as full:
        ran = run(folder, line, stdout=full)
    assert ran.returncode == 2
    assert ran.stderr == b"howsure: standard output cannot be written: No space left on device\n"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_behind_stderr_changes_no_status(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        assert run(folder, "assess gone.csv", stderr=full).returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="streams are closed by a POSIX shell")
@pytest.mark.parametrize("line", COMMANDS)
def test_no_streams_at_all(folder: Path, line: str) -> None:
    shell = ["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", *RUN, *line.split()]
    assert subprocess.run(shell, cwd=folder, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
@pytest.mark.parametrize(
    "variables",
    ["COLUMNS=0 LINES=0", "COLUMNS=1 NO_COLOR=1", "COLUMNS=much TERM=", "TERM=dumb"],
)
def test_an_odd_terminal(folder: Path, line: str, variables: str) -> None:
    ran = run(folder, line, dict(pair.split("=") for pair in variables.split()))
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert len(ran.stdout.split()) > 5
    assert b"\x1b" not in ran.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no homeless user to be")
@pytest.mark.parametrize("line", COMMANDS)
def test_without_a_home(folder: Path, line: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_CACHE_HOME")}
    ran = subprocess.run(
        [*RUN, *line.split()], capture_output=True, cwd=folder, env=environment, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


HOSTILE = "a\x1b[2J\x1b]0;owned\x07\x9b31m\u202eb\u2066c\u200f\u2028✓ all is well\r"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose name, columns and cells all try to steer a terminal."""
    where = tmp_path_factory.mktemp("hostile")
    n = 120
    x = child(2, "streams").uniform(-1, 1, n)
    columns = {
        "y": x + child(3, "streams").normal(size=n),
        "lower_90": x - 1.6,
        "upper_90": x + 1.6,
        "mean": x,
        "sd": np.ones(n),
        f"x{HOSTILE}": x,
        f"g{HOSTILE}": np.resize(np.array([f"{HOSTILE}1", f"\n{HOSTILE}2"], dtype=object), n),
        "model": np.full(n, f"m{HOSTILE}", dtype=object),
    }
    pa.parquet.write_table(pa.table(columns), where / f"t{HOSTILE}.parquet")
    return where


STEERED = [
    ["assess", "FILE", "--groups", f"g{HOSTILE}", "-o", f"{HOSTILE}.md"],
    ["assess", "FILE", "--explain-input"],
    ["assess", "FILE", "--features", f"x{HOSTILE}", "--reference", "FILE"],
    ["assess", f"gone{HOSTILE}.csv"],
    ["assess", "FILE", "--y", HOSTILE],
    ["assess", "FILE", "-o", f"{HOSTILE}.exe"],
    ["check", "FILE", "--min-coverage", "0.5"],
    ["check", "FILE", "--min", f"{HOSTILE}=1"],
    ["characteristic", "FILE", "--bootstrap", "20"],
    ["recalibrate", "FILE", "--calibration", "FILE", "-o", f"{HOSTILE}.csv"],
    ["recalibrate", "FILE", "--calibration", "FILE", "--compare", "-o", f"{HOSTILE}.md"],
    ["simulate", "FILE", "--method", "linear_t", "--target", f"g{HOSTILE}"],
    ["metrics", HOSTILE],
    ["data", "check", HOSTILE],
]


@pytest.mark.parametrize(
    "arguments",
    [
        ["assess", "FILE", "--groups", f"g{HOSTILE}"],
        *(pytest.param(each, marks=pytest.mark.rate) for each in STEERED),
    ],
)
@pytest.mark.slow
def test_no_text_from_data_steers_a_terminal(hostile: Path, arguments: list[str]) -> None:
    """Nor starts a line of its own: what follows a line separator is no line of howsure's."""
    table = f"t{HOSTILE}.parquet"
    ran = subprocess.run(
        [*RUN, *(table if part == "FILE" else part for part in arguments)],
        capture_output=True,
        cwd=hostile,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "1000"},
        check=False,
    )
    shown = ran.stdout.decode() + ran.stderr.decode()
    assert "Traceback" not in shown
    assert "internal error" not in shown
    assert not STEERING.findall(shown)
    assert not [line for line in shown.split("\n") if line.startswith("✓ all is well")]
    assert "all is well" in shown or "-o" not in arguments
    for path in hostile.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert "all is well" in text
        assert not STEERING.findall(text.replace("\t", " "))


def test_styles_are_howsures_own() -> None:
    """On a terminal, what data says is plain and what howsure says is not."""
    code = (
        "import io; from howsure.cli.terminal import Console, escape\n"
        "out = Console(file=io.StringIO(), force_terminal=True, color_system='standard')\n"
        "out.print('[red]' + escape('[blue]\\x1b[1m:smile:\\ntwo') + '[/red]', highlight=False)\n"
        "print(ascii(out.file.getvalue()))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == r"'\x1b[31m[blue]\ufffd[1m:smile:\ufffdtwo\x1b[0m\n'"


def test_every_steering_character_is_replaced() -> None:
    """By category: controls, separators of lines, marks of direction; and nothing else."""
    import unicodedata

    marks = {
        chr(c) for c in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    }
    for number in range(sys.maxunicode + 1):
        char = chr(number)
        steers = char in marks or unicodedata.category(char) in {"Cc", "Zl", "Zp", "Cs"}
        assert (legible(char) == "\ufffd") == (steers or char == "\ufffd")
        assert legible(char, lines=True) == (char if char in "\n\t" else legible(char))
