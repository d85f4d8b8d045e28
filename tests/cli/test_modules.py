"""MODULE:NAME names code of the current folder; nothing else there is run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

SCRIPT = Path(sys.executable).with_name("howsure")
HOSTILE = "from pathlib import Path\nPath(__file__).with_name('run.txt').touch()\nraise ImportError"
MINE = """
def lengths(texts):
    return [[float(len(text))] for text in texts]

class Normal:
    def fit(self, x, y, rng):
        return self
    def predict(self, x):
        import numpy as np
        import howsure
        return howsure.Distribution.normal(np.zeros(len(x)), np.ones(len(x)))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table, a module to be named, and modules that stand in for libraries."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    note = ["dark" if each > 0 else "bright" for each in y]
    table = {"y": y, "mean": np.zeros(60), "sd": np.ones(60), "note": note}
    csv.write_csv(pa.table(table), tmp_path / "t.csv")
    (tmp_path / "mine.py").write_text(MINE)
    for name in ("pandas", "numpy", "scipy", "pyarrow", "typer"):
        (tmp_path / f"{name}.py").write_text(HOSTILE)
    (tmp_path / "stops.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "plan.toml").write_text(
        '[plan]\nname = "own"\nstudy = "pointwise"\nseeds = [0]\n[options]\nsimulations = 2\n'
        'n_train = 30\nn_test = 10\n[worlds.linear]\nworld = "linear"\n'
        '[methods.mine]\nmethod = "mine:Normal"\n'
    )
    return tmp_path


def typed(folder: Path, *arguments: str) -> tuple[int, str]:
    """Status and output of the installed script in a folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    run = subprocess.run(
        [SCRIPT, *arguments],
        cwd=folder,
        env=kept,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return run.returncode, run.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("assess", "t.csv", "--encode", "note=mine:lengths", "--no-trials"),
        ("check", "t.csv", "--encode", "note=mine:lengths", "--min-coverage", "0.5"),
        ("simulate", "linear", "--method", "mine:Normal", "--trials", "2"),
        ("bench", "run", "plan.toml", "--jobs", "2"),
    ],
    ids=" ".join,
)
def test_a_module_of_the_current_folder_is_found_and_stands_in_for_none(
    folder: Path, arguments: tuple[str, ...]
) -> None:
    status, shown = typed(folder, *arguments)
    assert status == 0, shown
    assert not (folder / "run.txt").exists()


def test_a_module_that_ends_the_program_is_an_error(folder: Path) -> None:
    status, shown = typed(folder, "assess", "t.csv", "--encode", "note=stops:name")
    assert status == 2
    assert "cannot be imported, as module 'stops' fails: SystemExit: 0" in " ".join(shown.split())
