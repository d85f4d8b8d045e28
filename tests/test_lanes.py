"""The Makefile with stand-ins for its tools: all lanes are run, whatever fails in one of them."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MADE = (".venv/.made", ".venv/.dev", ".venv/.rates", ".venv-bare/.made")
NUMPYS = "NPY_DISABLE_CPU_FEATURES"
BESIDE = ["ruff check", "ruff format", "mypy", "sphinx"]
LANES = [*BESIDE, "bare", "quick"]
TOOL = """#!/bin/sh
case "$0 $*" in
    *bare*-m\\ pytest*) tool=bare;;
    *-m\\ pytest*pace\\ rest*) tool=rest;;
    *-m\\ pytest*) tool=quick;;
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
    """The tools that were run; those of lanes beside one another in the order of `BESIDE`."""
    ran = (folder / "tools").read_text().splitlines()
    return sorted(ran, key=lambda tool: BESIDE.index(tool) if tool in BESIDE else len(BESIDE))


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
    assert shown.count("== 3 passed in 0.01s ==") == 4
    listed = shown[shown.index("\nRed: ") :]
    assert listed.startswith(
        "\nRed: docs-quick\n  FAILED tests/x.py::test_sphinx - assert 0\n"
        "\nRed: test-bare\n  FAILED tests/x.py::test_bare - assert 0\n"
    )
    assert "jobserver" not in shown


def test_a_lane_that_names_no_test_is_listed(folder: Path) -> None:
    (folder / ".venv/bin/mypy").write_text("#!/bin/sh\nexit 1\n")
    status, shown = make(folder, "test")
    assert status == 2
    assert "\nRed: lint\n  exit status 2\n" in shown
    assert tools(folder) == [tool for tool in LANES if tool != "mypy"]


@pytest.mark.parametrize(
    ("target", "ran"),
    [("lint", BESIDE[:3]), ("docs", ["sphinx"]), ("test-rest", ["sphinx", "rest"])],
)
def test_a_lane_is_run_alone(folder: Path, target: str, ran: list[str]) -> None:
    assert make(folder, target)[0] == 0
    assert tools(folder) == ran


def test_the_lane_of_processors_runs_what_is_not_slow_on_each(folder: Path) -> None:
    status, shown = make(folder, "processors", red="quick")
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
    quick = "-m not (slow or rate or data or browser) --pace test src tests studies"
    assert all(each[3].endswith(quick) for each in settings)
    assert status == 2
    assert shown.count("\nRed: test-quick THREADS=") == 10


def test_the_lane_of_rates_runs_what_no_other_does(folder: Path) -> None:
    (folder / "tests" / "test_dear.py").write_text("@pytest.mark.rate\ndef test_dear(): ...\n")
    assert make(folder, "rates")[0] == 0
    assert make(folder, "rates", "QUARTER=3")[0] == 0
    lines = [line.split("|") for line in (folder / "settings").read_text().splitlines()]
    command = "-m pytest -n 2 --dist worksteal -m rate --pace rates"
    assert [each[2:] for each in lines] == [
        ["1", f"{command} tests/test_dear.py"],
        ["1", f"{command}-quarter --quarter 3 tests/test_dear.py"],
    ]


def test_the_lane_of_the_rest_collects_files_that_hold_tests_of_it(folder: Path) -> None:
    for name, text in (("slow", "@pytest.mark.slow"), ("real", "def test(data_dir)"), ("no", "")):
        (folder / "tests" / f"test_{name}.py").write_text(text)
    assert make(folder, "rest")[0] == 0
    (run,) = (folder / "settings").read_text().splitlines()
    assert set(run.partition("--pace rest ")[2].split()) == {
        "tests/test_slow.py",
        "tests/test_real.py",
    }


def test_no_test_is_left_out_or_run_twice(folder: Path) -> None:
    """By marks: each mark, alone or with others, is in one of three lanes, but `rate` in none."""
    for lane in ("test", "rest"):
        assert make(folder, lane)[0] == 0
    runs = [line.split("|")[3] for line in (folder / "settings").read_text().splitlines()]
    quick, rest = (re.search(r"-m (not \(.*?\)|\(.*?\).*?) --", run) for run in runs[-2:])
    assert quick is not None
    assert rest is not None
    names = ("slow", "rate", "data", "browser")
    for marks in itertools.product([False, True], repeat=4):
        held = dict(zip(names, marks, strict=True))
        chosen = [eval(found[1], {}, held) for found in (quick, rest)]
        assert sum(chosen) == (0 if held["rate"] else 1), held
