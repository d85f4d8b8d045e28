"""`howsure check`: one-sided confidence by closed forms, and a status 1 that means one thing."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import csv, parquet
from scipy import stats
from typer.testing import CliRunner

from howsure.cli.main import app, main
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.predictions import EvalSet
from howsure.report.check import Limit, judge, slack_of
from howsure.stats.estimate import skewed_ends, spread_of

CONFIDENCES = (0.6, 0.9, 0.95, 0.99)
STEP = 1e-6


def covering(path: Path, covered: int, n: int) -> Path:
    """A table of intervals of which so many hold y."""
    y = np.where(np.arange(n) < covered, 0.0, 2.0)
    csv.write_csv(
        pa.table({"y": y, "lower_90": np.full(n, -1.0), "upper_90": np.full(n, 1.0)}), path
    )
    return path


def state(path: Path, *flags: str) -> str:
    """What is said of the one limit, and the status that goes with it."""
    result = CliRunner().invoke(app, ["check", str(path), *flags], catch_exceptions=False)
    word = {"✓": "holds", "✗": "fails", "?": "undecided"}[result.stdout.split()[0]]
    assert result.exit_code == (1 if word == "fails" else 0)
    return word


def turning(judged: Callable[[float], str], at: float) -> tuple[str, str]:
    """What is said of a limit just below, and just above."""
    return judged(at - STEP), judged(at + STEP)


@pytest.mark.slow
@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize(("covered", "n"), [(46, 50), (171, 200), (1, 30)])
def test_a_coverage_is_judged_by_the_binomial_tail(
    tmp_path: Path, confidence: float, covered: int, n: int
) -> None:
    """From the definition: the limit at which so many, or more, have probability 1 − c.

    A table that holds the coverage with probability 1 − c by chance alone proves it just so; the
    two-sided interval at c would ask for half of that.
    """
    path = covering(tmp_path / "t.csv", covered, n)
    tail = 1 - confidence

    def least(limit: float) -> str:
        return state(path, "--min-coverage", str(limit), "--confidence", str(confidence))

    low, high = (
        stats.beta.ppf(tail, covered, n - covered + 1),
        stats.beta.isf(tail, covered + 1, n - covered),
    )
    assert stats.binom.sf(covered - 1, n, low) == pytest.approx(tail, rel=1e-9)
    assert stats.binom.cdf(covered, n, high) == pytest.approx(tail, rel=1e-9)
    assert turning(least, low) == ("holds", "undecided")
    assert turning(least, high) == ("undecided", "fails")


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_where_all_rows_are_covered_the_bound_is_a_power(tmp_path: Path, confidence: float) -> None:
    """All of n: the coverage p is proven where pⁿ ≤ 1 − c."""
    path = covering(tmp_path / "t.csv", 40, 40)

    def least(limit: float) -> str:
        return state(path, "--min-coverage", str(limit), "--confidence", str(confidence))

    assert turning(least, (1 - confidence) ** (1 / 40)) == ("holds", "undecided")


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_a_mean_is_judged_by_its_skewed_interval_and_one_row_more(
    tmp_path: Path, confidence: float
) -> None:
    path = tmp_path / "t.csv"
    errors = child(0, "check").gamma(2.0, size=30)
    csv.write_csv(pa.table({"y": errors, "pred": np.zeros(30)}), path)
    psi = errors - errors.mean()
    low, high = skewed_ends(errors.mean(), spread_of(psi), 2 * confidence - 1)
    over = np.maximum(psi, 0.0)
    units = np.square(np.square(over).sum()) / (over**4).sum()
    worst = max(1.0, 8.0 / units) * psi.max() / 31

    def most(limit: float) -> str:
        return state(path, "--max-mae", str(limit), "--confidence", str(confidence))

    assert turning(most, low[0]) == ("fails", "undecided")
    assert turning(most, high[0] + worst) == ("undecided", "holds")


@pytest.mark.parametrize("scale", [0.0, 0.8])
def test_a_limit_at_the_truth_seldom_holds(scale: float) -> None:
    """Mean absolute errors of 100 rows, normal and lognormal: 5 % at most, not 14."""
    rng = child(1, "check")
    truth = math.sqrt(2 / math.pi) if scale == 0 else math.exp(scale**2 / 2)
    held, tables = 0, 400
    for _ in range(tables):
        noise = rng.normal(size=100)
        y = np.abs(noise) if scale == 0 else np.exp(scale * noise)
        found = evaluate(EvalSet.checked(y, point=np.zeros(100)), metrics=["mae"], confidence=0.9)
        (record,) = found.records
        held += judge(Limit("mae", "max", truth), record, slack_of(found, record)) == "holds"
    assert held / tables < 0.05 + 3 * math.sqrt(0.0475 / tables)


def test_drift_is_judged_by_the_interval_of_the_largest_change(tmp_path: Path) -> None:
    """Coverage falls from 90 to 55 % at seven tenths; a short table proves neither."""

    def dated(n: int, growth: float) -> Path:
        y = child(0, "drift", n).normal(size=n) * np.where(np.arange(n) < 0.7 * n, 1.0, growth)
        path = tmp_path / f"{n}.csv"
        ends = {"lower_90": np.full(n, -1.645), "upper_90": np.full(n, 1.645)}
        csv.write_csv(pa.table({"y": y, **ends, "hour": np.arange(n)}), path)
        return path

    time = ("--time", "hour")
    assert state(dated(3_000, 2.2), *time, "--max-drift", "0.05") == "fails"
    assert state(dated(3_000, 2.2), *time, "--max", "drift=0.6") == "holds"
    assert state(dated(30_000, 1.0), *time, "--max-drift", "0.05") == "holds"
    assert state(dated(300, 1.0), *time, "--max-drift", "0.05") == "undecided"
    strict = ["check", str(dated(300, 1.0)), *time, "--max-drift", "0.05", "--undecided", "fail"]
    assert CliRunner().invoke(app, strict).exit_code == 1
    with pytest.raises(InputError, match="cannot be judged: the table has no time"):
        state(covering(tmp_path / "t.csv", 45, 50), "--max-drift", "0.05")


@pytest.mark.parametrize(
    "fault",
    [
        "raise ZeroDivisionError('once\\nmore')",
        "raise MemoryError",
        "raise OSError(5, 'Input/output error')",
        "raise SystemExit('gone')",
        "raise BrokenPipeError",
        "import no_such_module",
    ],
)
@pytest.mark.rate
def test_what_breaks_is_no_failed_limit(tmp_path: Path, fault: str) -> None:
    """Status 2 and one line on stderr, whatever it was: 1 is for a limit that is broken."""
    path = covering(tmp_path / "t.csv", 45, 50)
    code = (
        "import howsure.cli.check\n"
        f"def broken(**given):\n    {fault}\n"
        "howsure.cli.check.run = broken\n"
        "from howsure.cli.entry import main; main()"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, "check", str(path), "--min-coverage", "0.5"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.count("\n") == 1, run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize("fault", [EOFError(), SystemExit(1), typer.Abort()])
def test_only_a_command_gives_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    """Not the libraries below it, each of which would on its own."""
    path = covering(tmp_path / "t.csv", 45, 50)

    def broken(**given: object) -> bool:
        raise fault

    monkeypatch.setattr("howsure.cli.check.run", broken)
    monkeypatch.setattr(sys, "argv", ["howsure", "check", str(path), "--min-coverage", "0.5"])
    assert main() == 2
    monkeypatch.setattr("howsure.cli.check.run", lambda **given: True)
    assert main() == 1


@pytest.mark.rate
def test_a_fault_of_howsure_asks_to_be_reported(tmp_path: Path) -> None:
    """With the place; the whole way there in Python's development mode."""
    path = covering(tmp_path / "t.csv", 45, 50)
    code = (
        "import howsure.cli.check\n"
        "howsure.cli.check.run = lambda **given: 1 / 0\n"
        "from howsure.cli.entry import main; main()"
    )
    arguments = ["-c", code, "check", str(path), "--min-coverage", "0.5"]
    for more in ([], ["-X", "dev", "-W", "ignore"]):
        run = subprocess.run(
            [sys.executable, *more, *arguments], capture_output=True, text=True, check=False
        )
        *before, last = run.stderr.splitlines()
        assert last.startswith(
            "howsure: internal error: ZeroDivisionError: division by zero (<string>, line 2); "
            "please report it to the developers"
        )
        assert run.returncode == 2
        assert bool(before) == bool(more)
        assert ("Traceback" in run.stderr) == bool(more)


def status(*arguments: object) -> int:
    """The exit status of the command line."""
    return CliRunner().invoke(app, [str(each) for each in arguments]).exit_code


def test_the_verdict_is_a_gate(tmp_path: Path) -> None:
    """86.5 % of 2,000 rows for 90 %: a fault of 3.5 points, which a tolerance may allow."""
    path = covering(tmp_path / "short.csv", 1_730, 2_000)
    gate = ("--fail-on", "bad", "--ignore", "one_sided", "--ignore", "skill")
    assert status("check", path, *gate) == 1
    assert status("check", path, *gate, "--tolerance", "0.05") == 0
    assert status("check", path, *gate, "--ignore", "coverage") == 0
    right = covering(tmp_path / "right.csv", 1_800, 2_000)
    assert status("check", right, *gate) == 0


def test_what_the_verdict_cannot_be_told_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = covering(tmp_path / "t.csv", 90, 100)
    for line, said in (
        (["check", "--fail-on", "bad", "--ignore", "colour"], "ignore must be among"),
        (["check", "--min-coverage", "0.5", "--ignore", "width"], "set fail_on to bad or caution"),
        (["assess", "--ignore", "colour"], "ignore must be among"),
        (["assess", "--tolerance", "2"], "--tolerance"),
    ):
        monkeypatch.setattr(sys, "argv", ["howsure", line[0], str(path), *line[1:]])
        assert main() == 2
        assert said in capsys.readouterr().err


def test_a_limit_follows_errors_that_follow_each_other_in_time(tmp_path: Path) -> None:
    day = np.arange(2_000.0)
    lengths = child(0, "runs of misses").geometric([1 / 62, 1 / 13], (100, 2))
    missed = np.repeat(np.tile([False, True], 100), lengths.ravel())[:2_000]  # but few events
    columns = {"y": 2.0 * missed, "lower_90": day * 0 - 1, "upper_90": day * 0 + 1, "day": day}
    path = tmp_path / "runs.csv"
    csv.write_csv(pa.table(columns), path)
    assert state(path, "--min-coverage", "0.86") == "fails"
    assert state(path, "--min-coverage", "0.86", "--time", "day") == "undecided"
    assert state(path, "--min-coverage", "0.97", "--time", "day") == "fails"


def told(*arguments: object, **environment: str) -> tuple[int, str]:
    """The exit status, and stdout."""
    words = ["check", *(str(each) for each in arguments)]
    result = CliRunner().invoke(app, words, env={"GITHUB_ACTIONS": "", **environment})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def grouped(path: Path, label: str = "north") -> Path:
    """Two groups of 200 rows: 190 are covered of one, 140 of the other."""
    hit = np.concatenate([np.arange(200) < 190, np.arange(200) < 140])
    ends = {"lower_90": np.full(400, -1.0), "upper_90": np.full(400, 1.0)}
    names = np.repeat(np.array([label, "south"], dtype=object), 200)
    csv.write_csv(pa.table({"y": np.where(hit, 0.0, 2.0), **ends, "region": names}), path)
    return path


def test_a_line_a_group_and_a_summary(tmp_path: Path) -> None:
    """The bounds are those of the binomial law: 5 % below, and 2.5 % above for two groups."""
    path = grouped(tmp_path / "t.csv")
    low, high = stats.beta.ppf(0.05, 190, 11), stats.beta.isf(0.025, 191, 10)
    code, shown = told(path, "--min-coverage", "0.9", "--by", "region")
    assert code == 1
    first, second, last = shown.splitlines()
    assert first == (
        f"✓  t: region=north: empirical_coverage ≥ 0.9 at 0.9: 0.95 ({low:.4g} … {high:.4g}), n 200"
    )
    assert second.startswith("✗  t: region=south: empirical_coverage ≥ 0.9 at 0.9: 0.7 (")
    assert last == (
        "✗  FAIL (exit 1). Limits: 1 held, 1 failed. Limits are judged with 95 % one-sided bounds; "
        "failures are adjusted for the number of groups."
    )
    assert told(path, "--min", "worst_group=0.6", "--groups", "region")[0] == 0
    assert told(path, "--min", "worst_group=0.8", "--by", "region")[0] == 1
    assert "two-sided intervals" in told(path, "--min-coverage", "0.5", "--sided", "two")[1]


def test_undecided_passes_and_says_so_unless_proof_is_required(tmp_path: Path) -> None:
    path = covering(tmp_path / "t.csv", 90, 100)
    code, shown = told(path, "--min-coverage", "0.9")
    assert (code, shown[0]) == (0, "?")
    assert shown.splitlines()[-1].startswith("○  PASS (1 limit inconclusive), exit 0.")
    code, shown = told(path, "--min-coverage", "0.9", "--undecided", "fail")
    assert (code, shown[0]) == (1, "✗")
    assert shown.splitlines()[0].endswith(": inconclusive")
    assert shown.splitlines()[-1].endswith("Inconclusive limits fail.")
    assert told(path, "--min-coverage", "0.5")[1].splitlines()[-1].startswith("✓  PASS (exit 0).")


def test_limits_come_from_a_file_a_project_and_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project's own serve where no flag asks for anything; a file is added to by flags."""
    path = grouped(tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)
    limits = 'limits = [{measure = "coverage", min = 0.9, by = ["region"]}]\n'
    (tmp_path / "mine.toml").write_text(limits)
    code, shown = told(path, "--limits", "mine.toml")
    assert (code, shown.splitlines()[0]) == (1, "limits: mine.toml")
    assert shown.count("empirical_coverage") == 2
    assert told(path, "--limits", "mine.toml", "--min", "coverage=0.5")[1].count("coverage") == 3
    with pytest.raises(InputError, match="check needs a limit"):
        told(path)
    (tmp_path / "pyproject.toml").write_text(f"[tool.howsure.check]\n{limits}")
    code, shown = told(path)
    assert (code, shown.splitlines()[0]) == (1, "limits: pyproject.toml [tool.howsure.check]")
    assert told(path, "--by", "")[0] == 1
    assert told(path, "--min-coverage", "0.5")[1].count("empirical_coverage") == 1
    assert told(path, "--fail-on", "never", "--min-coverage", "0.5")[0] == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--min-coverage", "90"], r"--min-coverage: .* got 90: did you mean 0\.9\?"),
        (["--max-coverage", "95"], r"--max-coverage: .* did you mean 0\.95\?"),
        (["--max-drift", "5"], r"--max-drift: .* did you mean 0\.05\?"),
        (["--min", "misses_below=5"], r"--min: .* did you mean 0\.05\?"),
        (["--min", "coverage"], "--min must look like MEASURE=LIMIT, got 'coverage'"),
        (["--min", "coverage=x"], "--min coverage must be a number, got 'x'"),
        (["--max", "crsp=1"], "got 'crsp'; did you mean crps"),
        (["--min-coverage", "0.9", "--max-coverage", "0.8"], "must not exceed its max"),
        (
            ["--min-coverage", "0.9", "--by", "regio"],
            "--by must name columns of groups: .*'region'",
        ),
        (["--min-coverage", "0.9", "--findings", "drift"], "set fail_on to bad or caution"),
        (["--fail-on", "bad", "--findings", "drift"], "finding drift cannot be judged: .*no time"),
        (["--max-drift", "0.1"], "coverage_drift ≤ 0.1 cannot be judged: the table has no time"),
        (["--limits", "gone.toml"], r"gone\.toml cannot be read"),
        (["--min-coverage", "0.9", "--junit", "no/such.xml"], "folder of the output must exist"),
        (["--min-coverage", "0.9", "--confidence", "0.4"], r"confidence must be in \(0.5, 1\)"),
    ],
)
def test_what_is_asked_in_vain_is_refused(tmp_path: Path, flags: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        told(grouped(tmp_path / "t.csv"), *flags)


def test_by_in_a_file_is_named_with_it(tmp_path: Path) -> None:
    path, limits = grouped(tmp_path / "t.csv"), tmp_path / "l.toml"
    limits.write_text('by = ["regio"]\nlimits = [{measure = "coverage", min = 0.5}]')
    with pytest.raises(
        InputError, match=r"by in .*l\.toml must name columns of groups: .*'region'"
    ):
        told(path, "--limits", limits)
    with pytest.raises(InputError, match="must not overwrite an input"):
        told(path, "--limits", limits, "--junit", limits)


def test_json_holds_every_limit_and_finding(tmp_path: Path) -> None:
    """Numbers alone, NaN as null, and nothing besides on stdout."""
    path = grouped(tmp_path / "t.csv")
    flags = ("--min-coverage", "0.9", "--by", "region", "--fail-on", "bad", "--json")
    code, shown = told(path, *flags, "--findings", "coverage", GITHUB_ACTIONS="true")
    held = json.loads(shown)
    assert (code, held["exit"]) == (1, 1)
    assert [held[key] for key in ("confidence", "sided", "undecided", "fail_on", "source")] == [
        *(0.95, "one", "pass", "bad", None)
    ]
    first, second = held["limits"]
    assert first == {
        "measure": "empirical_coverage",
        "side": "min",
        "limit": 0.9,
        "model": "t",
        "group": "region=north",
        "coverage": 0.9,
        "state": "holds",
        "failed": False,
        "value": 0.95,
        "lower": pytest.approx(stats.beta.ppf(0.05, 190, 11)),
        "upper": pytest.approx(stats.beta.isf(0.025, 191, 10)),
        "lower_confidence": pytest.approx(0.95),
        "upper_confidence": pytest.approx(0.975),
        "n": 200.0,
        "reason": "",
        "sentence": first["sentence"],
    }
    assert (second["state"], second["failed"]) == ("fails", True)
    (finding,) = held["findings"]
    assert (finding["id"], finding["state"], finding["failed"]) == ("coverage", "bad", True)
    point = tmp_path / "p.csv"
    csv.write_csv(pa.table({"y": [1.0, 2.0, 3.5], "pred": [1.5, 2.0, 3.0]}), point)
    (limit,) = json.loads(told(point, "--max-mae", "9", "--json")[1])["limits"]
    assert limit["coverage"] is None


def test_junit_has_a_case_for_each(tmp_path: Path) -> None:
    path, out = grouped(tmp_path / "t.csv"), tmp_path / "out.xml"
    flags = ("--min-coverage", "0.93", "--by", "region", "--fail-on", "bad", "--junit", out)
    assert told(path, *flags, "--findings", "coverage")[0] == 1
    root = ElementTree.parse(out).getroot()
    (suite,) = root
    assert root.tag == "testsuites"
    counts = {"tests": "3", "failures": "2", "errors": "0", "skipped": "1"}
    assert {key: suite.get(key) for key in counts} == counts
    finding, north, south = suite
    assert (finding.get("classname"), finding.get("name")) == ("t", "finding coverage")
    assert north.get("name") == "region=north: empirical_coverage ≥ 0.93 at 0.9"
    assert [part.tag for case in suite for part in case] == ["failure", "skipped", "failure"]
    assert south[0].get("type") == "fails"
    assert south[0].get("message") == south[0].text
    assert told(path, *flags[:4], "--undecided", "fail", "--junit", out)[0] == 1
    assert ElementTree.parse(out).getroot().get("failures") == "2"
    assert told(path, "--min-coverage", "0.5", "--junit", out)[0] == 0
    assert [part.tag for part in ElementTree.parse(out).getroot().iter()][-1] == "system-out"


HOSTILE = '</failure>&"<x>\x1b[1m\ufffe%\r\n::error::,:]]>'


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    """In XML they are escaped, or replaced where XML cannot hold them; a command is one line."""
    path, out = tmp_path / "t.parquet", tmp_path / "out.xml"
    hit = np.arange(100) < 50
    columns = {"y": np.where(hit, 0.0, 2.0), "lower_90": hit * 0.0 - 1, "upper_90": hit * 0.0 + 1}
    columns["region"] = np.full(100, HOSTILE, dtype=object)
    parquet.write_table(pa.table(columns), path)
    flags = (path, "--min-coverage", "0.9", "--by", "region")
    code, shown = told(*flags, "--junit", out, "--github")
    assert code == 1
    case = ElementTree.parse(out).getroot()[0][0]
    kept = '</failure>&"<x>�[1m�%��::error::,:]]>'
    assert case.get("name") == f"region={kept}: empirical_coverage ≥ 0.9 at 0.9"
    assert kept in str(case[0].text)
    *_, command = shown.splitlines()
    assert shown.count("\n") == 3
    title, _, message = command.removeprefix("::error file=t.parquet,title=").partition("::")
    assert "%2C%3A]]>" in title
    assert ":" not in title
    assert "," not in title
    assert "%25%0D%0A::error::,:]]>" in message
    assert "\x1b" not in shown
    held = json.loads(told(*flags, "--json")[1])
    assert held["limits"][0]["group"] == f"region={HOSTILE}"


def test_github_is_told_inside_of_its_runs_alone_unless_asked(tmp_path: Path) -> None:
    """An error for what fails, a warning for what is undecided; nothing for what holds."""
    path = grouped(tmp_path / "t.csv")

    def lines(*flags: str, **environment: str) -> list[str]:
        shown = told(path, "--min-coverage", "0.93", "--by", "region", *flags, **environment)[1]
        return [line for line in shown.splitlines() if line.startswith("::")]

    warning, error = lines("--github")
    assert warning.startswith(
        "::warning file=t.csv,title=howsure%3A region=north%3A empirical_coverage ≥ 0.93 at 0.9::"
    )
    assert error.startswith("::error file=t.csv,title=howsure%3A region=south%3A")
    assert lines() == lines("--no-github", GITHUB_ACTIONS="true") == []
    assert lines(GITHUB_ACTIONS="true") == [warning, error]
    assert told(path, "--min-coverage", "0.5", "--github")[1].count("::") == 0


def test_findings_are_named_and_doubts_fail_as_asked(tmp_path: Path) -> None:
    path = covering(tmp_path / "short.csv", 1_730, 2_000)
    assert status("check", path, "--fail-on", "bad", "--findings", "coverage") == 1
    assert status("check", path, "--fail-on", "bad", "--findings", "one_sided") == 1
    assert status("check", path, "--fail-on", "never", "--min-coverage", "0.5") == 0
    balanced = tmp_path / "balanced.csv"
    y = np.where(np.arange(400) < 347, 0.0, np.where(np.arange(400) % 2, 2.0, -2.0))
    ends = {"lower_90": np.full(400, -1.0), "upper_90": np.full(400, 1.0)}
    csv.write_csv(pa.table({"y": y, **ends}), balanced)
    pair = ("--findings", "coverage,one_sided")
    found = json.loads(told(balanced, "--fail-on", "bad", *pair, "--json")[1])
    states = {each["id"]: each["state"] for each in found["findings"]}
    assert (states["coverage"], found["exit"]) == ("caution", 0)
    code, shown = told(balanced, "--fail-on", "caution", *pair)
    assert (code, shown[0]) == (1, "✗")
    code, shown = told(balanced, "--fail-on", "bad", *pair, "--github")
    assert (code, shown[0]) == (0, "○")
    (line,) = [line for line in shown.splitlines() if line.startswith("::")]
    assert line.startswith(
        "::warning file=balanced.csv,title=howsure%3A finding coverage::balanced: "
    )


def watched(folder: Path, far: int, *, n: int = 100, laws: bool = True) -> list[str]:
    """A check of new rows of which so many lie far outside a reference."""
    rng = child(3, "watched")
    x = rng.uniform(-1, 1, 400)
    columns = {"x0": x}
    if laws:
        columns |= {"y": x + rng.normal(size=400), "mean": x, "sd": np.ones(400)}
    csv.write_csv(pa.table(columns), folder / "reference.csv")
    new = {
        "x0": np.where(np.arange(n) < far, 50.0, np.linspace(-0.5, 0.5, n)),
        "week": np.arange(n) // 10,
    }
    csv.write_csv(pa.table(new), folder / "new.csv")
    flags = ["--features", "x0", "--reference", str(folder / "reference.csv")]
    return ["check", str(folder / "new.csv"), *flags]


@pytest.mark.parametrize("laws", [True, False])
def test_a_limit_on_rows_outside_is_judged_by_the_binomial_tail(tmp_path: Path, laws: bool) -> None:
    told = watched(tmp_path, 12, laws=laws)
    low, high = stats.beta.ppf(0.05, 12, 89), stats.beta.ppf(0.95, 13, 88)
    for limit, status, word in ((low - 1e-4, 1, "fails"), (high + 1e-4, 0, "holds")):
        limits = tmp_path / "limits.toml"
        limits.write_text(f'limits = [{{measure = "outside", max = {limit}}}]')
        for flags in (["--max-outside", f"{limit}"], ["--limits", str(limits)]):
            result = CliRunner().invoke(app, [*told, *flags, "--json"], catch_exceptions=False)
            assert result.exit_code == status
            (outcome,) = json.loads(result.stdout)["limits"]
            assert outcome["state"] == word
            assert (outcome["model"], outcome["measure"]) == ("new", "outside")
            assert outcome["value"] == 0.12
            assert outcome["lower"] == pytest.approx(low)
            assert outcome["upper"] == pytest.approx(high)


def test_new_rows_by_week_flagged_and_over_time(tmp_path: Path) -> None:
    told = watched(tmp_path, 20)
    flags = ["--max-outside", "0.5", "--by", "week", "--json"]
    result = CliRunner().invoke(app, [*told, *flags], catch_exceptions=False)
    states = {each["group"]: each["state"] for each in json.loads(result.stdout)["limits"]}
    assert {week for week, word in states.items() if word == "fails"} == {"week=0", "week=1"}
    assert result.exit_code == 1
    flags = ["--max-flagged", "0.2", "--max-outside-drift", "0.05", "--time", "week", "--json"]
    result = CliRunner().invoke(app, [*told, *flags], catch_exceptions=False)
    limits = {each["measure"]: each for each in json.loads(result.stdout)["limits"]}
    assert limits["flagged"]["n"] == 80
    assert limits["flagged"]["state"] == "holds"
    assert limits["outside_drift"]["value"] == 1.0  # two weeks of all, then of none
    assert limits["outside_drift"]["state"] in ("fails", "undecided")
    quiet = watched(tmp_path, 0)
    flags = ["--max-outside-drift", "0.3", "--time", "week", "--json"]
    result = CliRunner().invoke(app, [*quiet, *flags], catch_exceptions=False)
    (drift,) = json.loads(result.stdout)["limits"]
    assert (drift["value"], drift["state"], result.exit_code) == (0.0, "holds", 0)
    assert drift["upper"] == pytest.approx(stats.beta.ppf(0.95, 1, 15))  # none of 15 rows


def test_findings_on_new_rows_fail_too(tmp_path: Path) -> None:
    for far, status in ((20, 1), (0, 0)):
        told = [*watched(tmp_path, far), "--fail-on", "bad", "--json"]
        result = CliRunner().invoke(app, told, catch_exceptions=False)
        assert result.exit_code == status
        found = {each["id"]: each["failed"] for each in json.loads(result.stdout)["findings"]}
        assert found == {"outside": bool(far), "congruence": False}


@pytest.mark.parametrize(
    ("flags", "laws", "said"),
    [
        (["--max-crps", "2"], True, "limits on rows without y are outside, flagged"),
        (["--max-flagged", "0.2"], False, "the reference has no predictive distributions"),
        (["--max-outside", "2"], True, "limit on outside must be in [0, 1], got 2"),
        (["--min", "outside=0.1"], True, "outside needs max"),
        (["--max-outside-drift", "0.1"], True, "without times: give --time"),
        (
            ["--max-outside", "0.1", "--by", "site"],
            True,
            "must have groups, but has none of 'site'",
        ),
    ],
)
def test_what_no_answer_is_possible_to_on_new_rows(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    laws: bool,
    said: str,
) -> None:
    monkeypatch.setattr(sys, "argv", ["howsure", *watched(tmp_path, 3, laws=laws), *flags])
    assert main() == 2
    assert said in capfd.readouterr().err


def test_rows_outside_are_limited_with_a_reference_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = covering(tmp_path / "rows.csv", 9, 10)
    monkeypatch.setattr(sys, "argv", ["howsure", "check", str(path), "--max-outside", "0.1"])
    assert main() == 2
    assert "needs howsure check NEW --reference TABLE" in capfd.readouterr().err
