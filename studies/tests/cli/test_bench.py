"""`howsure bench …` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from engine.chain import announce
from extras import needs
from howsure.cli.main import app, main
from howsure.core.errors import HowsureError, UnanswerableError
from howsure_studies.cli.display import KEPT
from howsure_studies.engine import Store, TrialOutput, load_plan, survey, trials_of


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "200"})


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("bench") / "store")
    assert call("run", "smoke", "--store", place).exit_code == 0
    return place


@pytest.mark.rate
def test_a_plan_runs_and_goes_on(folder: str) -> None:
    first = call("run", "smoke", "--store", folder, "--set", "simulations=4")
    assert first.exit_code == 0
    assert "4 trials: 4 done, 0 already done" in first.stdout
    more = call("run", "smoke", "--store", folder)
    assert "8 trials: 4 done, 4 already done" in more.stdout
    assert call("run", "smoke", "--store", folder, "--jobs", "2").exit_code == 0


@pytest.mark.slow
def test_a_plan_runs_on_one_of_its_worlds(folder: str) -> None:
    world, *others = load_plan("smoke").worlds
    assert others
    ran = call("run", "smoke", "--store", folder, "--jobs", "0", "--world", world)
    assert ran.exit_code == 0, ran.output
    done = survey(load_plan("smoke"), Store(folder)).done()
    assert {trial.labels["world"] for trial in done} == {world}
    wrong = call("run", "smoke", "--store", folder, "--world", "nowhere")
    assert "--world must be one of line, fan" in str(wrong.exception)


@pytest.mark.slow
def test_status_counts_and_tells_why(folder: str) -> None:
    empty = call("status", "smoke", "--store", folder)
    assert empty.exit_code == 0
    assert "missing" in empty.stdout
    assert not Path(folder).exists()
    call("run", "smoke", "--store", folder)
    victim = trials_of(load_plan("smoke"))[0].address
    file = Path(folder) / "trials" / victim / "records.parquet"
    file.write_bytes(file.read_bytes()[:100])
    told = call("status", "smoke", "--store", folder).stdout
    assert f"damaged: line on line ({victim[:12]})" in told
    assert "records.parquet should be of" in told.replace("\n", "")


@pytest.mark.slow
def test_failures_set_the_exit_status(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from howsure_studies.pointwise import PointwiseStudy

    def broken(*_: object) -> None:
        raise MemoryError("too\x1b[31m big")

    monkeypatch.setattr(PointwiseStudy, "run", broken)
    failed = call("run", "smoke", "--store", folder, "--jobs", "0")
    assert failed.exit_code == 1
    assert "8 failed, 0 failed before" in failed.stdout
    assert "failed: line on line: MemoryError: too\ufffd[31m big" in failed.stderr
    monkeypatch.undo()
    before = call("run", "smoke", "--store", folder)
    assert before.exit_code == 1
    assert "0 done, 0 already done, 0 failed, 8 failed before" in before.stdout
    told = call("status", "smoke", "--store", folder)
    assert "MemoryError: too\ufffd[31m big" in told.stdout
    assert call("run", "smoke", "--store", folder, "--retry-failed").exit_code == 0


@pytest.mark.slow
def test_an_endless_error_of_a_method_is_cut(tmp_path: Path) -> None:
    """A message of 1 MB is neither printed nor kept whole, and says how long it was."""
    plan, store = tmp_path / "loud.toml", tmp_path / "store"
    plan.write_text(
        '[plan]\nname = "loud"\nstudy = "pointwise"\n[options]\nsimulations = 3\nblock = 3\n'
        'n_train = 20\nn_test = 5\n[worlds]\nline = "linear"\n[methods.t]\nmethod = "linear_t"\n'
        '[methods.bad]\nmethod = "engine.guilty:Bad"\nhow = "loud"\n'
    )
    given = (str(plan), "--store", str(store))
    failed = call("run", *given, "--jobs", "0")
    assert failed.exit_code == 1
    assert "RuntimeError: no no no" in failed.stderr
    told = [failed, call("status", *given), call("show", *given)]
    told.append(call("report", *given, "-o", str(tmp_path / "page.md")))
    assert [each.exit_code for each in told] == [1, 0, 0, 0]
    assert max(len(each.output) for each in told) < 5_000
    assert "(1,050,000 characters)" in told[0].output
    assert len((tmp_path / "page.md").read_text()) < 50_000
    assert max(path.stat().st_size for path in store.rglob("trial.json")) < 100_000
    one = ("simulate", "linear", "--method", "engine.guilty:Bad:how=loud", "--trials", "2")
    shown = CliRunner().invoke(app, [*one, "--n-train", "20", "--n-test", "5"])
    assert len(shown.output) < 5_000


@pytest.mark.filterwarnings("ignore:left out because their data are not on this machine")
@pytest.mark.parametrize(
    ("name", "stage"), [("shift_small", "network"), ("adaptivity_labels", "outputs")]
)
def test_a_plan_without_a_result_so_far_is_told(name: str, stage: str, folder: str) -> None:
    """What others are made of is done, and no result is: no internal error, no empty page."""
    store, done = Store(folder), 0
    trials = trials_of(load_plan(name, ["seeds=[77]"]))
    for trial in trials:
        if trial.context["stage"] == stage:
            store.write(trial.address, trial.identity, TrialOutput())
            done += 1
    assert done
    count = len({trial.address for trial in trials})
    for more in (["show"], ["report", "-o", f"{folder}/page.md"]):
        shown = call(more[0], name, *more[1:], "--store", folder, "--set", "seeds=[77]")
        assert isinstance(shown.exception, UnanswerableError)
        told = f"no result of plan {name!r} is complete yet: {done} of {count} trials are done"
        assert told in str(shown.exception)


@pytest.mark.slow
def test_results_are_shown_side_by_side(filled: str) -> None:
    told = call("show", "smoke", "--store", filled)
    assert told.exit_code == 0
    for word in ("empirical_coverage", "through_zero", "fan", "±", "perfect"):
        assert word in told.stdout
    assert "picf_variance" not in told.stdout
    every = call("show", "smoke", "--store", filled, "--metric", "all").stdout
    assert "picf_variance" in every
    one = call("show", "smoke", "--store", filled, "--metric", "cicp").stdout
    assert "empirical_coverage" not in one
    assert call("show", "smoke", "--store", filled, "--metric", "PICP").stdout == (
        call("show", "smoke", "--store", filled, "--metric", "empirical_coverage").stdout
    )


@pytest.mark.slow
def test_five_worlds_are_shown_together_by_each_measure_asked_for(filled: str) -> None:
    """By the leading one unless others are asked for; the two worlds of `smoke` are too few."""

    def heads(*arguments: str) -> list[str]:
        lines = call("show", *arguments).stdout.splitlines()
        return [line.strip() for line in lines if line.startswith("Methods over")]

    of = "Methods over 5 worlds, by"
    assert heads("pointwise") == [f"{of} empirical coverage at 90 %"]
    assert heads("pointwise", "--metric", "prediction_width", "--metric", "cicp") == [
        f"{of} prediction width at 90 %",
        f"{of} cicp at 90 %",
    ]
    assert heads("smoke", "--store", filled) == []


def test_many_methods_stand_one_below_the_other(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from howsure_studies.cli.display import print_results

    def shown(count: int) -> str:
        methods = [f"m{number}" for number in range(count)]
        columns = {
            "world": ["w"] * count,
            "method": methods,
            "seed": [0] * count,
            "metric": ["test_coverage"] * count,
            "coverage": [0.9] * count,
            "group": [""] * count,
            "value": [0.5 + 0.05 * number for number in range(count)],
            "standard_error": [0.01] * count,
            "direction": ["closer to the target is better"] * count,
            "target": [0.9] * count,
            "reason": [""] * count,
        }
        print_results(Console(width=130), pa.table(columns), ("test_coverage",))
        return capsys.readouterr().out

    beside = shown(5).splitlines()
    assert beside[2].split() == ["Measure", *(f"m{k}" for k in range(5)), "perfect"]
    assert beside[3].startswith("test_coverage at 90 %")
    rows = [line.split() for line in shown(9).splitlines()]
    assert ["m6", "0.800", "±", "0.010"] in rows
    assert ["m8", "0.900", "±", "0.010", "*"] in rows
    assert ["perfect", "0.9"] in rows


@pytest.mark.slow
def test_results_are_written_as_tables(filled: str, tmp_path: Path) -> None:
    pd = needs("pandas")
    frames = []
    for ending in ("csv", "json", "parquet"):
        path = tmp_path / f"results.{ending}"
        told = call("show", "smoke", "--store", filled, "-o", str(path))
        assert told.stdout == f"written: {path}\n"
        frames.append(getattr(pd, f"read_{ending}")(path))
    csv, plain, parquet = frames
    assert len(csv) == len(plain) == len(parquet) > 100
    assert set(parquet["world"]) == {"line", "fan"}
    pd.testing.assert_series_equal(csv["value"], parquet["value"])
    pd.testing.assert_series_equal(plain["value"], parquet["value"])
    shown = call("show", "smoke", "--store", filled, "--format", "csv", "--metric", "cicp").stdout
    assert len(shown.splitlines()) == 1 + 2 * 2 * 2
    rows = json.loads(call("show", "smoke", "--store", filled, "--format", "json").stdout)
    assert rows[0]["method"] == "line"


def test_results_so_far_come_with_a_note(filled: str) -> None:
    told = call("show", "smoke", "--store", filled, "--set", "simulations=12")
    assert told.exit_code == 0
    assert "note: 4 of 12 trials are not done" in told.stderr


def test_a_report_is_drawn(filled: str, tmp_path: Path) -> None:
    needs("altair")
    page = tmp_path / "report.html"
    told = call("report", "smoke", "--store", filled, "-o", str(page))
    assert told.exit_code == 0, told.exception
    written = page.read_text(encoding="utf-8")
    assert "<h1>Are prediction intervals right at every x? 2 methods on 2 worlds</h1>" in written
    assert "through_zero" in written
    assert "<dd>smoke</dd>" in written


CHAIN = """
[plan]
study = "chain"
seeds = [0, 1]
[options]
networks = 2
[worlds]
near = "near"
far = "far"
[methods]
sum = "sum"
other = "other"
"""


def test_a_study_of_another_package_has_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the plan to every form of the page, though the study has no page of its own."""
    announce(tmp_path / "packages")
    monkeypatch.syspath_prepend(str(tmp_path / "packages"))
    plan, place = tmp_path / "sums.toml", ["--store", str(tmp_path / "store")]
    plan.write_text(CHAIN)
    assert call("run", str(plan), *place, "--jobs", "0").exit_code == 0
    assert "sum, seed 1" in call("show", str(plan), *place).stdout
    for form in ("html", "md", "json", "csv"):
        page = tmp_path / f"page.{form}"
        told = call("report", str(plan), "-o", str(page), *place)
        assert (told.exit_code, told.exception) == (0, None)
        text = page.read_text()
        assert all(word in text for word in ("near", "far", "total", "sum", "other"))
    assert "total,18.0" in (tmp_path / "page.csv").read_text()
    html = (tmp_path / "page.html").read_text()
    assert "chain: 2 methods on 2 worlds" in html
    assert "<h2" in html


def test_plans_are_listed() -> None:
    told = call("plans").stdout
    assert "sluijterman" in told
    assert "smoke" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "smok"), "near: smoke"),
        (("run", "smoke", "--set", "simulatons=3"), "near: simulations"),
        (("run", "smoke", "--jobs", "-2"), "jobs must be"),
        (("run", "smoke", "--trial-timeout", "0"), "trial_timeout must be a positive number"),
        (("show", "smoke"), "no trial of plan 'smoke' is done"),
        (("report", "smoke", "-o", "x.html"), "no trial of plan 'smoke' is done"),
        (("show", "smoke", "--format", "parquet"), "needs a file to write"),
        (("show", "smoke", "-o", "x.txt"), "must end in .csv, .json, .parquet"),
        (("show", "smoke", "-o", "x.txt", "--format", "table"), "must end in"),
        (("report", "smoke", "-o", "x.txt"), "must end in"),
        (("report", "plan.json", "-o", "plan.json"), "must not overwrite an input"),
        (("show", "plan.json", "-o", "plan.json"), "must not overwrite an input"),
    ],
)
def test_bad_input_is_told(
    folder: str,
    arguments: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text("{}", encoding="utf-8")
    told = call(*arguments, "--store", folder)
    assert isinstance(told.exception, HowsureError)
    assert words in str(told.exception)


def test_a_measure_that_is_not_there_is_told(filled: str) -> None:
    told = call("show", "smoke", "--store", filled, "--metric", "cic")
    assert "near: cicp" in str(told.exception)


def test_a_newer_store_is_told(filled: str, tmp_path: Path) -> None:
    (tmp_path / "store.json").write_text('{"format": 99}')
    told = call("show", "smoke", "--store", str(tmp_path))
    assert "newer howsure" in str(told.exception)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.rate
def test_an_interrupt_ends_cleanly(folder: str, jobs: str) -> None:
    """Ctrl-C goes to all processes of the terminal's group: exit 130, what is done is kept."""
    plan = load_plan("smoke", ["simulations=4000"])
    command = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]
    arguments = ["bench", "run", "smoke", "--set", "simulations=4000", "--store", folder]
    with subprocess.Popen(
        [*command, *arguments, "--jobs", jobs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        store = Store(folder)
        deadline = time.monotonic() + 60
        while len(store.addresses()) < 20 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    (line,) = [line for line in errors.splitlines() if line and "left:" not in line]
    assert line == f"howsure: {KEPT}"
    counts = survey(plan, Store(folder)).counts
    assert set(counts) == {"done", "missing"}
    assert counts["done"] >= 10


def test_warnings_of_howsure_are_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs("torch")
    monkeypatch.setenv("HOWSURE_DATA", str(tmp_path))
    store = str(tmp_path / "store")
    monkeypatch.setattr("sys.argv", ["howsure", "bench", "status", "congruence", "--store", store])
    assert main() == 0
    told = capsys.readouterr().err
    assert told.startswith(
        "note: left out because their data are not on this machine: blood, digits"
    )
    assert ".py" not in told


OWN_PLAN = """
[plan]
name = "own"
study = "pointwise"
seeds = [0]
[options]
coverages = [0.9]
simulations = 3
n_train = 30
n_test = 20
[worlds]
line = "linear"
[methods]
mine = { method = "own_for_bench:Mine", factor = 2.0 }
"""
OWN = """
import numpy as np
from howsure import Intervals

class Mine:
    def __init__(self, factor=1.0):
        self.factor = factor
    def fit(self, x, y, rng):
        self.mean, self.reach = np.mean(y), self.factor * 1.645 * np.std(y)
        return self
    def predict(self, x):
        if self.factor < 0:
            raise ValueError("a factor below 0")
        n = len(x)
        return Intervals(np.full(n, self.mean - self.reach), np.full(n, self.mean + self.reach))
"""


@pytest.mark.slow
def test_a_class_of_its_own_is_benched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_for_bench.py").write_text(OWN, encoding="utf-8")
    plan = tmp_path / "own.toml"
    plan.write_text(OWN_PLAN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    options = ("--store", str(tmp_path / "kept"))
    told = call("run", str(plan), *options)
    assert told.exit_code == 0, told.output
    assert "1 done" in told.stdout
    assert "1 already done" in call("run", str(plan), *options).stdout
    plan.write_text(OWN_PLAN.replace("2.0", "3.0"), encoding="utf-8")
    assert "1 done" in call("run", str(plan), *options).stdout
    plan.write_text(OWN_PLAN.replace("2.0", "-1.0"), encoding="utf-8")
    failed = call("run", str(plan), *options)
    assert failed.exit_code == 1
    words = "all 3 simulations failed; the first in predict: ValueError: a factor below 0"
    assert words in " ".join(failed.output.split())


def test_a_store_of_ones_own_is_pointed_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["bench", "show", "splits"]
    note = "for your own runs, name a plan and --store howsure-results"
    assert note not in CliRunner().invoke(app, asked).output
    Path("howsure-results").mkdir()
    assert note in " ".join(CliRunner().invoke(app, asked).output.split())


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["adaptivity_intervals", "characteristic_traffic", "splits"])
def test_results_that_ship_need_no_data_and_miss_nothing(
    plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOWSURE_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("howsure-results").mkdir()  # which is asked only where it is named
    done = CliRunner().invoke(app, ["bench", "report", plan, "-o", "page.md", "-o", "page.csv"])
    assert done.exit_code == 0, done.output
    assert Path("page.csv").is_file()
    assert "for your own runs" in " ".join(done.output.split())
    assert "not done" not in done.output
    assert "## Comparison with the published numbers" in Path("page.md").read_text("utf-8")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"howsure-results", "page.csv", "page.md"}
