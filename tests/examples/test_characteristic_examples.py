"""The example of the characteristics curve's paper runs, tells its lines and draws its figure."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from extras import needs

FILE = Path(__file__).parents[2] / "examples" / "characteristic_paper.py"


@pytest.mark.slow
def test_the_example_tells_gains_and_draws_bands(tmp_path: Path) -> None:
    needs("matplotlib")
    spec = importlib.util.spec_from_file_location("characteristic_paper", FILE)
    assert spec is not None
    assert spec.loader is not None
    paper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(paper)
    changes = ["replicates=20", "n_test=300", "seeds=[0, 1]", "methods.networks.members=5"]
    file = tmp_path / "gap.png"
    with threadpool_limits(1):
        results = paper.main("small", tmp_path / "store", changes, file)
    told = paper.lines(results)
    assert file.stat().st_size > 10_000
    assert {result.method for result in results} == {"line", "forest", "networks"}
    assert len(told) == 15
    assert any(line.startswith("networks") and "left_gain" in line for line in told)
    shown = sum(paper.shown(result) for result in results if result.method == "forest")
    assert [line for line in told if line.startswith("forest")][-1].endswith(f"{shown} of 2")
