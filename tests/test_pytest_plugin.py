"""The plug-in in sessions of pytest: what is repeated, what fails and what is told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from extras import needs
from howsure.report.replicates import replicate_rng

pytest_plugins = ["pytester"]

NEEDED = """
import numpy as np
import pytest

def predicted(rng, reach, rows=200):
    return rng.normal(size=rows), np.full(rows, -reach), np.full(rows, reach)
"""
RIGHT = """
@pytest.mark.coverage(0.9, tolerance=0.05)
def test_right(howsure):
    howsure.covers(*predicted(howsure.rng, 1.645))
"""
NARROW = """
@pytest.mark.coverage(0.9)
def test_narrow(howsure):
    howsure.covers(*predicted(howsure.rng, 1.2))
"""
EDGE = """
@pytest.mark.coverage(0.9, tolerance=0.02, replicates=9)
def test_edge(howsure):
    howsure.covers(*predicted(howsure.rng, 1.55))
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs pytest on a text, with this plug-in and no other that happens to be installed."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(text: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_mine=NEEDED + text)
        return pytester.runpytest_inprocess(
            "-p", "howsure.pytest_plugin", "-p", "no:cacheprovider", *arguments
        )

    return run


def reported(folder: Path) -> dict[str, Any]:
    """What a report says of each test."""
    held = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    return {each["test"].rpartition("::")[2]: each for each in held["tests"]}


def test_right_passes_wrong_fails_and_undecided_is_told(session: Any, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    done = session(RIGHT + NARROW + EDGE, "--coverage-report", str(report))
    done.assert_outcomes(passed=2, failed=1)
    found = reported(tmp_path)
    states = {name: each["state"] for name, each in found.items()}
    assert states == {"test_right": "holds", "test_narrow": "fails", "test_edge": "undecided"}
    assert found["test_right"]["replicates"] < 200
    assert found["test_narrow"]["replicates"] < 20
    assert found["test_edge"]["replicates"] == 9
    done.stdout.fnmatch_lines(
        [
            "*coverage (howsure)*",
            "3 tests of coverage: 1 held, 1 failed, 1 undecided. If all methods *at most 1 %.",
            "[?] test_mine.py::test_edge: Empirical coverage is *replicates should decide.",
        ]
    )


def test_a_failure_is_its_sentence_without_a_traceback(session: Any, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    done = session(NARROW, "--coverage-report", str(report))
    lines = done.stdout.lines
    start = next(k for k, line in enumerate(lines) if "_ test_narrow _" in line)
    end = next(k for k, line in enumerate(lines) if "coverage (howsure)" in line)
    found = reported(tmp_path)["test_narrow"]
    assert lines[start + 1 : end] == [found["sentence"]]
    number = found["farthest"]
    assert f"howsure.testing.replicate_rng('test_mine.py::test_narrow', {number})" in lines[end - 1]
    rng = replicate_rng("test_mine.py::test_narrow", number)
    assert (abs(rng.normal(size=200)) <= 1.2).mean() == found["farthest_coverage"]


DRAWS = """
@pytest.mark.coverage(0.9, replicates=2)
def test_{name}(howsure):
    with open("{name}.txt", "a") as file:
        print(howsure.replicate, howsure.rng.random(), howsure.rng.random(), file=file)
    howsure.covers([True])
"""


def test_draws_depend_on_test_and_replicate_alone(session: Any, pytester: pytest.Pytester) -> None:
    def drawn(text: str, *arguments: str) -> tuple[str, str]:
        for name in "ab":
            (pytester.path / f"{name}.txt").unlink(missing_ok=True)
        session(text, *arguments)
        return tuple(  # type: ignore[return-value]
            path.read_text() if path.exists() else ""
            for path in (pytester.path / "a.txt", pytester.path / "b.txt")
        )

    a, b = DRAWS.format(name="a"), DRAWS.format(name="b")
    first = drawn(a + b)
    numbers = [word for text in first for line in text.splitlines() for word in line.split()[1:]]
    assert len(set(numbers)) == len(numbers) == 8
    assert drawn(b + RIGHT + a) == first
    assert drawn(a + b, "-k", "test_b") == ("", first[1])
    other = drawn(a + b, "--coverage-seed", "1")
    assert not {*" ".join(other).split()} & set(numbers)


def test_tests_of_one_name_in_two_folders_are_both_reported(
    session: Any, pytester: pytest.Pytester, tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        package = pytester.mkpydir(folder)
        (package / "test_inner.py").write_text(NEEDED + EDGE, encoding="utf-8")
    session("", "--coverage-report", str(tmp_path / "r.json")).assert_outcomes(passed=2)
    held = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [each["test"] for each in held["tests"]] == ["test_inner.py::test_edge"] * 2


@pytest.mark.slow
@pytest.mark.parametrize("settled", [False, True])
def test_names_do_not_hang_on_what_pytest_is_called_with(
    session: Any, pytester: pytest.Pytester, tmp_path: Path, settled: bool
) -> None:
    """The folder that node ids are relative to is that of the settings, or depends on paths."""
    if settled:
        pytester.makeini("[pytest]")
    pytester.mkdir("inner").joinpath("test_inner.py").write_text(NEEDED + EDGE, encoding="utf-8")
    report = ("--coverage-report", str(tmp_path / "r.json"))
    names = []
    for arguments in (("inner",), ("inner/test_inner.py",), (".",), ("inner", str(tmp_path))):
        session("", *report, *arguments)
        held = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        names += [each["test"] for each in held["tests"]]
    assert (
        names == ["inner/test_inner.py::test_edge" if settled else "test_inner.py::test_edge"] * 4
    )


def test_alpha_is_shared_by_all_that_are_collected(session: Any, tmp_path: Path) -> None:
    arguments = ("--coverage-report", str(tmp_path / "r.json"), "--coverage-error", "0.06")
    everything = RIGHT + NARROW + EDGE + "def test_other(): pass\n"
    session(everything, *arguments)
    every = reported(tmp_path)
    assert {each["error_rate"] for each in every.values()} == {0.02}
    session(everything, *arguments, "-k", "narrow")
    assert reported(tmp_path) == {"test_narrow": every["test_narrow"]}
    many = NARROW.replace("def", '@pytest.mark.parametrize("k", range(5))\ndef', 1)
    session(many.replace("(howsure)", "(howsure, k)"), *arguments)
    assert {each["error_rate"] for each in reported(tmp_path).values()} == {0.012}


@pytest.mark.slow
def test_xdist_gathers_the_same(
    session: Any, pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("xdist")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1] / "src"))
    text = RIGHT + NARROW.replace("@", "@pytest.mark.xdist_group('g')\n@", 1) + EDGE
    files = [str(tmp_path / name) for name in ("r.json", "r.md")]
    reports = [word for file in files for word in ("--coverage-report", file)]
    session(text, *reports)
    alone = [Path(file).read_text(encoding="utf-8") for file in files]
    more = ("-p", "xdist", "-n", "2", "--dist", "loadgroup")
    done = session(text, *reports, *more)
    done.assert_outcomes(passed=2, failed=1)
    assert [Path(file).read_text(encoding="utf-8") for file in files] == alone
    done = session("@pytest.mark.coverage(90)\ndef test_a(howsure): pass", *more)
    done.stdout.fnmatch_lines(["*coverage must be strictly between 0 and 1, got 90; did*"])
    done.stdout.no_fnmatch_line("*INTERNALERROR*")


FORMS = """
import howsure as package

pytestmark = pytest.mark.coverage(0.9, tolerance=0.06)

class TestMine:
    @pytest.mark.parametrize("form", ["flags", "ends", "prediction", "calls"])
    def test_forms(self, howsure, form):
        y, lower, upper = predicted(howsure.rng, 1.645)
        if form == "flags":
            howsure.covers((lower <= y) & (y <= upper))
        elif form == "ends":
            howsure.covers(y, lower, upper)
        elif form == "prediction":
            howsure.covers(y, howsure.Intervals(lower, upper, coverage=howsure.coverage))
        else:
            howsure.covers(y[:50], lower[:50], upper[:50])
            howsure.covers(y[50:], package.Intervals(lower[50:], upper[50:], coverage=0.9))

def test_unmarked_by_itself():
    pass
"""


def test_all_forms_classes_and_parameters(session: Any, tmp_path: Path) -> None:
    done = session(FORMS, "--coverage-report", str(tmp_path / "r.json"))
    done.assert_outcomes(passed=5)
    found = reported(tmp_path)
    assert sorted(found) == [f"test_forms[{f}]" for f in ("calls", "ends", "flags", "prediction")]
    assert {each["state"] for each in found.values()} == {"holds"}
    assert {each["rows"] for each in found.values()} == {
        200 * each["replicates"] for each in found.values()
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("90", "coverage must be strictly between 0 and 1, got 90; did you mean 0.9?"),
        ("0.9, tolerance=-1", "tolerance must be at least 0, got -1*"),
        ("0.9, replicates=0", "replicates must be a whole number of at least 1, got 0"),
        ("0.9, sided='high'", "sided must be one of two, low, got 'high'*"),
        ("0.9, tolerence=0.1", "argument of the marker must be one of *, got 'tolerence'; near: *"),
        ("", "coverage must be given once, *, got () and {}"),
        ("0.9, 0.1", "coverage must be given once, *, got (0.9, 0.1) and {}"),
    ],
)
def test_wrong_markers_are_told(session: Any, marker: str, message: str) -> None:
    done = session(f"@pytest.mark.coverage({marker})\ndef test_a(howsure): pass")
    escaped = message.replace("?", "[?]")
    done.stdout.fnmatch_lines([f"test_mine.py::test_a: @pytest.mark.coverage: {escaped}"])
    done.stdout.no_fnmatch_line("*Traceback*")
    assert done.ret == pytest.ExitCode.INTERRUPTED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "@pytest.mark.coverage(0.9)\ndef test_a(): pass",
            "* needs the fixture howsure, got *",
        ),
        ("@pytest.mark.coverage(0.9)\nasync def test_a(howsure): pass", "* must not be async"),
        ("def test_a(howsure): pass", "the fixture howsure needs a test marked @pytest.mark.*"),
        (
            "@pytest.mark.coverage(0.9)\ndef test_a(howsure): pass",
            "* must call howsure.covers in *",
        ),
        (
            "@pytest.fixture\ndef drawn(howsure):\n    return howsure.rng\n"
            "@pytest.mark.coverage(0.9)\ndef test_a(howsure, drawn): pass",
            "howsure.rng must be used in the body of the test, not in a fixture: *",
        ),
    ],
)
def test_wrong_uses_are_told(session: Any, text: str, message: str) -> None:
    done = session(text)
    done.stdout.fnmatch_lines([message])
    assert done.ret != pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--coverage-error", "1"), "*--coverage-error must be strictly between 0 and 1, got 1.0"),
        (("--coverage-seed", "-1"), "*--coverage-seed must be at least 0, got -1"),
        (("--coverage-report", "a.html"), "*--coverage-report must be a file that ends in .json *"),
        (("--coverage-report", "no/a.md"), "*--coverage-report: the folder of the output must *"),
    ],
)
def test_wrong_options_are_told(session: Any, arguments: Any, message: str) -> None:
    done = session(RIGHT, *arguments)
    done.stderr.fnmatch_lines([message])
    assert done.ret == pytest.ExitCode.USAGE_ERROR


def test_an_error_in_the_body_comes_through_with_its_replicate(
    session: Any, tmp_path: Path
) -> None:
    text = """
@pytest.mark.coverage(0.9)
def test_a(howsure):
    howsure.covers([True, False])
    assert howsure.replicate < 3

@pytest.mark.coverage(0.9)
def test_b(howsure):
    pytest.skip("not here")

@pytest.mark.coverage(0.9)
@pytest.mark.xfail(strict=True)
def test_c(howsure):
    howsure.covers([False] * 10)
"""
    done = session(text, "--coverage-report", str(tmp_path / "r.json"))
    done.assert_outcomes(failed=1, skipped=1, xfailed=1)
    done.stdout.fnmatch_lines(
        [
            ">*assert howsure.replicate < 3",
            "E*This is replicate 3, drawn with howsure.*.replicate_rng('test_mine.py::test_a', 3).",
        ]
    )
    found = reported(tmp_path)
    assert {name: each["state"] for name, each in found.items()} == {
        "test_a": "error",
        "test_c": "fails",
    }
    assert found["test_a"]["sentence"].startswith("Stopped in replicate 3: AssertionError")


def test_other_plugins_markers_of_that_name_are_left_alone(session: Any) -> None:
    text = "@pytest.mark.coverage\ndef test_a(): pass\n"
    done = session(text, "-W", "error")
    done.assert_outcomes(passed=1)
    done.stdout.no_fnmatch_line("*coverage (howsure)*")


def test_a_report_without_tests_says_so(session: Any, tmp_path: Path) -> None:
    session("def test_a(): pass", "--coverage-report", str(tmp_path / "r.md"))
    assert "none ran" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_the_marker_is_documented(session: Any) -> None:
    done = session("", "--markers")
    done.stdout.fnmatch_lines(["@pytest.mark.coverage(coverage, tolerance=0.02, replicates=200, *"])


def test_a_session_without_the_marker_imports_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import sys\n\n"
        "def test_a():\n"
        "    known = {name for name in sys.modules if name.split('.')[0] in ('howsure', 'numpy')}\n"
        "    assert known <= {'howsure', 'howsure.pytest_plugin', 'howsure._version',\n"
        "        'howsure.core', 'howsure.core.errors', 'howsure.core.optional'}, known\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-p", "howsure.pytest_plugin", "-q", str(tmp_path)]
    path = str(Path(__file__).parents[1] / "src")
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
