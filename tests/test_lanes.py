"""The Makefile with stand-ins for its tools: all lanes are run, whatever fails in one of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = (".venv/.made", ".venv/.dev", ".venv/.rates", ".venv-bare/.made")
NUMPYS = "NPY_DISABLE_CPU_FEATURES"
LANES = ["ruff check", "ruff format", "mypy", "sphinx", "bare", "judge", "studies"]
TOOL = """#!/bin/sh
case "$0 $*" in
    *bare*-m\\ pytest*) tool=bare;;
    *-m\\ pytest*\\ studies) tool=studies;;
    *-m\\ pytest*) tool=judge;;
    *-m\\ sphinx*) tool=sphinx;;
    *) tool=$(basename "$0")${1:+ $1};;
esac
echo "$OPENBLAS_CORETYPE|$NPY_DISABLE_CPU_FEATURES|$OPENBLAS_NUM_THREADS|$*" >> settings
echo "$tool" >> tools
case " $RED " in
    *" $tool "*)
        echo "FAILED tests/x.py::test_$tool - assert 0"
        echo "== 1 failed in 0.01s =="
        exit 1;;
    *) echo "== 3 passed in 0.01s ==";;
esac
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The Makefile in a folder where all is set up, and tools write down that they were run."""
    for name in (
        "Makefile",
        "tests/lanes.py",
        "pyproject.toml",
        "studies/pyproject.toml",
        "constraints.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in MADE:
        for tool in ("python", "ruff", "mypy"):
            path = tmp_path / Path(name).parent / "bin" / tool
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(TOOL)
            path.chmod(0o755)
        (tmp_path / name).touch()
    return tmp_path


def make(folder: Path, *arguments: str, red: str = "") -> tuple[int, str]:
    """Exit status and output of make; what is red are names of tools."""
    hidden = ("MAKE", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "OPENBLAS_CORETYPE", NUMPYS)
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    run = subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env={**kept, "RED": red},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return run.returncode, run.stdout


def tools(folder: Path) -> list[str]:
    """The tools that were run, in order."""
    return (folder / "tools").read_text().splitlines()


def test_all_lanes_are_run_and_green(folder: Path) -> None:
    status, shown = make(folder, "test")
    assert (status, tools(folder)) == (0, LANES)
    assert "Red" not in shown
    assert shown.rstrip().endswith("== 3 passed in 0.01s ==")


@pytest.mark.parametrize("jobs", ["-j1", "-j4"])
def test_a_red_lane_keeps_no_other_from_running(folder: Path, jobs: str) -> None:
    status, shown = make(folder, jobs, "test", red="sphinx bare")
    assert (status, tools(folder)) == (2, LANES)
    assert shown.count("== 1 failed in 0.01s ==") == 2
    assert shown.count("== 3 passed in 0.01s ==") == 5
    listed = shown[shown.index("\nRed: ") :]
    assert listed.startswith(
        "\nRed: docs\n  FAILED tests/x.py::test_sphinx - assert 0\n"
        "\nRed: test-bare\n  FAILED tests/x.py::test_bare - assert 0\n"
    )
    assert "jobserver" not in shown


def test_a_lane_that_names_no_test_is_listed(folder: Path) -> None:
    (folder / ".venv/bin/mypy").write_text("#!/bin/sh\nexit 1\n")
    status, shown = make(folder, "test")
    assert status == 2
    assert "\nRed: lint\n  exit status 2\n" in shown
    assert tools(folder) == [tool for tool in LANES if tool != "mypy"]


@pytest.mark.parametrize(("target", "ran"), [("lint", LANES[:3]), ("docs", ["sphinx"])])
def test_a_lane_is_run_alone(folder: Path, target: str, ran: list[str]) -> None:
    assert make(folder, target)[0] == 0
    assert tools(folder) == ran


def test_the_lane_of_processors_runs_what_is_not_slow_on_each(folder: Path) -> None:
    status, shown = make(folder, "processors", red="judge")
    settings = [line.split("|") for line in (folder / "settings").read_text().splitlines()]
    without = "X86_V4,AVX512_ICL,AVX512_SPR"
    assert [each[:3] for each in settings] == [
        [core, features, threads]
        for core, features in [
            ("Haswell", ""),
            ("SkylakeX", ""),
            ("Zen", ""),
            ("", without),
            ("", f"X86_V3,{without}"),
        ]
        for threads in ("1", "2")
    ]
    assert all(each[3].endswith("-m not slow and not rate") for each in settings)
    assert status == 2
    assert shown.count("\nRed: test-quick THREADS=") == 10


def test_the_lane_of_rates_runs_what_no_other_does(folder: Path) -> None:
    assert make(folder, "rates")[0] == 0
    (dear,) = [line.split("|") for line in (folder / "settings").read_text().splitlines()]
    assert dear[2:] == ["1", "-m pytest -n 2 -m rate --pace 12"]
