"""The case study of the calibration error of counts runs, and shows what its page says."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from extras import needs

FOLDER = Path(__file__).parents[2] / "examples"


def test_the_study_runs_and_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("matplotlib")
    monkeypatch.syspath_prepend(FOLDER)
    example = importlib.import_module("discrete_ece")
    path = tmp_path / "figure.png"
    errors, means = example.main(600, 2, replicates=2, path=path)
    assert 5_000 < path.stat().st_size < 150_000
    assert (np.abs(means["ece"] - means["limit"]) < 0.03).all()
    assert (means["ece_exact"] < 0.03).all()
    told = example.text(errors, means)
    assert "negative binomial" in told
    assert f"{means['limit'][1]:.4f}" in told


def test_help_says_what_can_be_asked() -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "discrete_ece.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--plot" in done.stdout
