"""The case study of heads on the discrete wave: what its page says holds on one set of data."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from extras import needs

needs("torch")

FOLDER = Path(__file__).parents[4] / "examples"


@pytest.fixture(scope="module")
def example() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        yield importlib.import_module("congruence_heads")


@pytest.fixture(scope="module")
def result(example: ModuleType) -> Any:
    return example.main(1)["ours"]


@pytest.mark.rate
def test_laws_of_too_wide_a_variance_cost_what_is_published(result: Any) -> None:
    assert result.mean("Poisson", "NLL") == pytest.approx(2.461, abs=0.03)
    assert result.mean("negative binomial", "NLL") == pytest.approx(2.447, abs=0.04)
    for head in ("Poisson", "negative binomial"):
        assert result.mean(head, "CCE") == pytest.approx(0.12, abs=0.03)
        assert result.mean(head, "CCE") > 3.0 * result.mean("Gaussian", "CCE")


@pytest.mark.rate
def test_laws_that_can_be_narrow_come_near_the_truth(result: Any) -> None:
    right = result.mean("the truth", "NLL")
    for head in ("Gaussian", "double Poisson"):
        assert abs(result.mean(head, "NLL published") - right) < 0.2
        assert result.mean(head, "CCE exact") < 1.5 * result.mean(head, "CCE null")
    assert result.mean("double Poisson", "NLL") > result.mean("double Poisson", "NLL published")


def test_the_published_calibration_error_is_unjust_to_the_truth(example: ModuleType) -> None:
    """Which, and a continuous law's, no training touches."""
    result = example.main(1, quick=True)["ours"]
    assert result.mean("the truth", "ECE") > 0.15
    assert result.mean("the truth", "ECE exact") < 0.06
    assert result.mean("Gaussian", "ECE") == result.mean("Gaussian", "ECE exact")


@pytest.mark.slow
def test_settings_are_run_and_told(example: ModuleType, tmp_path: Path) -> None:
    needs("matplotlib")
    settings = ["last epoch", "all as published"]
    results = example.main(1, settings, quick=True, folder=tmp_path)
    assert list(results) == settings
    for name, found in results.items():
        assert name in found.text()
        for table in found.table.values():
            assert np.isfinite(table[:, :5]).all()
    assert (tmp_path / "heads-wave.png").stat().st_size > 5_000


@pytest.mark.slow
def test_help_says_what_can_be_asked() -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "congruence_heads.py", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "--settings" in done.stdout
