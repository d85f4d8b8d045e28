"""Code of a user's: found from the installed command, run where it is named and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow

SCRIPT = Path(sys.executable).with_name("howsure")
DRIVER = """
import contextlib, io, json, runpy, sys
script, own, *commands = json.load(sys.stdin)
here, ended = list(sys.path), []
for command in commands:
    sys.path[:] = here
    for name in own:
        sys.modules.pop(name, None)
    sys.argv = [script, *command]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as leaving:
            ended.append([leaving.code, out.getvalue(), err.getvalue(), sys.path[0]])
print(json.dumps(ended))
"""
"""Runs the installed script again and again, as each start of it takes a second."""
CODE = '''
"""Names that a command line asks for."""
import pathlib
import numpy as np

with pathlib.Path("loaded").open("a") as file:
    file.write("x")


def lengths(texts):
    return [[len(text), text.count("a")] for text in texts]


class Mean:
    """The mean of y."""

    def fit(self, x, y):
        self.mean = float(y.mean())
        return self

    def predict(self, x):
        return np.full(len(x), self.mean)
'''
PLAN = """
[plan]
study = "pointwise"
seeds = [0]

[options]
simulations = 4
block = 2
n_train = 20
n_test = 5
coverages = [0.9]

[worlds]
line = "linear"

[methods]
own = "owncode:Mean"
"""
TRAP = "import pathlib\npathlib.Path('sprung').touch()\nraise ImportError('a trap')\n"
FAULTS = {
    "raises": ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
    "unwritten": ("def f(:\n    pass", "SyntaxError: "),
    "leaves": ("import sys; sys.exit(0)", "SystemExit: 0"),
    "lacks": ("import no_such_module_of_mine", "No module named 'no_such_module_of_mine'"),
    "talks": ("raise ValueError('z' * 10**6)", "(1,000,000 characters)"),
    "hides": ("def __getattr__(name):\n    raise OSError('shut')", "OSError: shut"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    mean = rng.normal(size=300)
    y = mean + rng.normal(size=300)
    rows = [f"{y[i]},{mean[i]},1,{'ab' * (1 + i % 7)},{i}" for i in range(len(y))]
    text = "\n".join(["y,mean,sd,text,row", *rows])
    (tmp_path / "table.csv").write_text(text, encoding="utf-8")
    (tmp_path / "owncode.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "own.toml").write_text(PLAN, encoding="utf-8")
    for name in ("pandas", "numpy", "yaml", "torch", "vl_convert", "typing_extensions"):
        (tmp_path / f"{name}.py").write_text(TRAP, encoding="utf-8")
    for name, (code, _) in FAULTS.items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    return tmp_path


def installed(folder: Path, *commands: list[str]) -> list[tuple[Any, str, str]]:
    """Status, output and errors of commands of the installed script, run in a folder."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    driver = elsewhere / "driver.py"
    driver.write_text(DRIVER, encoding="utf-8")
    own = ["owncode", *FAULTS]
    done = subprocess.run(
        [sys.executable, str(driver)],
        input=json.dumps([str(SCRIPT), own, *commands]),
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    assert len(ended) == len(commands)
    assert all(Path(first) == elsewhere for *_, first in ended), "code of the folder goes first"
    return [(code, out, err) for code, out, err, _ in ended]


@pytest.mark.rate
def test_every_command_finds_code_of_the_current_folder(folder: Path) -> None:
    encode = ["--encode", "text=owncode:lengths"]
    ended = installed(
        folder,
        ["assess", "table.csv", *encode, "--no-trials", "--quiet", "-o", "page.json"],
        ["check", "table.csv", *encode, "--min-coverage", "0.5"],
        ["recalibrate", "table.csv", "--calibration", "table.csv", *encode, "-o", "new.csv"],
        ["simulate", "linear", "--method", "owncode:Mean", "--trials", "3", "--train-rows", "20"],
        ["bench", "run", "own.toml", "--jobs", "0"],
    )
    assert [code for code, *_ in ended] == [0] * 5, ended
    assert (folder / "loaded").read_text() == "x" * 5
    assert not (folder / "sprung").exists()


@pytest.mark.rate
def test_looking_at_a_plan_runs_no_code_of_it(folder: Path) -> None:
    looks = (["status", "own.toml"], ["show", "own.toml"], ["report", "own.toml", "-o", "a.html"])
    commands = [["bench", *look] for look in looks]
    before, *_, run = installed(folder, *commands, ["bench", "plans"], ["bench", "run", "own.toml"])
    assert before[0] == 2
    assert "was not run in howsure-results in its current form" in before[2]
    assert run[0] == 0, run
    loads = (folder / "loaded").read_text()
    ended = installed(folder, *commands)
    assert [code for code, *_ in ended] == [0, 0, 0], ended
    assert all("trials are from the last run" in err for _, _, err in ended)
    assert "own" in ended[0][1]
    assert (folder / "loaded").read_text() == loads
    assert not (folder / "sprung").exists()
    changed = installed(folder, ["bench", "status", "own.toml", "--set", "simulations=2"])
    assert changed[0][0] == 2


def test_errors_of_a_module_are_errors_of_its_name(folder: Path) -> None:
    commands = [["assess", "table.csv", "--encode", f"text={name}:f"] for name in FAULTS]
    commands.append(["assess", "table.csv", "--encode", "text=owncode:length"])
    ended = installed(folder, *commands, ["simulate", "linear", "--method", "leaves:f"])
    for (code, _, told), words in zip(ended[:-2], (w for _, w in FAULTS.values()), strict=True):
        assert code == 2
        assert words in told
        assert len(told) < 2000
    assert [code for code, *_ in ended[-2:]] == [2, 2]
    assert "got 'length'; near: lengths" in ended[-2][2]
