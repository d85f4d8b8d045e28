"""`howsure check`: one-sided confidence by closed forms, and a status 1 that means one thing."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import csv
from scipy import stats
from typer.testing import CliRunner

from howsure.cli.main import app, main
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.metrics.measure import evaluate
from howsure.predictions import EvalSet
from howsure.report.check import judge, slack_of
from howsure.report.limits import Limit
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
    strict = ["check", str(dated(300, 1.0)), *time, "--max-drift", "0.05", "--require-proof"]
    assert CliRunner().invoke(app, strict).exit_code == 1
    with pytest.raises(InputError, match="cannot be judged: the table holds no time"):
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
def test_what_breaks_is_no_failed_limit(tmp_path: Path, fault: str) -> None:
    """Status 2 and one line on stderr, whatever it was: 1 is for a limit that is broken."""
    path = covering(tmp_path / "t.csv", 45, 50)
    code = (
        "import howsure.cli.check\n"
        f"def broken(*given):\n    {fault}\n"
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

    def broken(*given: object) -> bool:
        raise fault

    monkeypatch.setattr("howsure.cli.check.run", broken)
    monkeypatch.setattr(sys, "argv", ["howsure", "check", str(path), "--min-coverage", "0.5"])
    assert main() == 2
    monkeypatch.setattr("howsure.cli.check.run", lambda *given: True)
    assert main() == 1


def test_a_fault_of_howsure_asks_to_be_reported(tmp_path: Path) -> None:
    """With the place; the whole way there in Python's development mode."""
    path = covering(tmp_path / "t.csv", 45, 50)
    code = (
        "import howsure.cli.check\n"
        "howsure.cli.check.run = lambda *given: 1 / 0\n"
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
            "please report it at https://"
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
    assert status("check", path, "--fail-on", "bad", "--ignore", "one_sided") == 1
    loose = ("--tolerance", "0.05", "--ignore", "one_sided")
    assert status("check", path, "--fail-on", "bad", *loose) == 0
    assert (
        status("check", path, "--fail-on", "bad", "--ignore", "one_sided", "--ignore", "coverage")
        == 0
    )
    right = covering(tmp_path / "right.csv", 1_800, 2_000)
    assert status("check", right, "--fail-on", "bad", "--ignore", "one_sided") == 0


def test_what_the_verdict_cannot_be_told_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = covering(tmp_path / "t.csv", 90, 100)
    for line, said in (
        (["check", "--fail-on", "bad", "--ignore", "colour"], "ignore must be among"),
        (["check", "--min-coverage", "0.5", "--ignore", "width"], "say fail_on bad or watch"),
        (["assess", "--ignore", "colour"], "ignore must be among"),
        (["assess", "--tolerance", "2"], "--tolerance"),
    ):
        monkeypatch.setattr(sys, "argv", ["howsure", line[0], str(path), *line[1:]])
        assert main() == 2
        assert said in capsys.readouterr().err


def test_a_limit_follows_errors_that_follow_each_other_in_time(tmp_path: Path) -> None:
    day = np.arange(2_000.0)
    runs = child(0, "runs of misses").choice(80, 14, replace=False)
    missed = np.isin(day // 25, runs)  # one row in six, but few events
    columns = {"y": 2.0 * missed, "lower_90": day * 0 - 1, "upper_90": day * 0 + 1, "day": day}
    path = tmp_path / "runs.csv"
    csv.write_csv(pa.table(columns), path)
    assert state(path, "--min-coverage", "0.86") == "fails"
    assert state(path, "--min-coverage", "0.86", "--time", "day") == "undecided"
    assert state(path, "--min-coverage", "0.97", "--time", "day") == "fails"
