"""The examples run, and show what they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from pyarrow import csv

from extras import needs
from howsure.cli.demo import make_table
from scripts import script


def example(name: str) -> ModuleType:
    return script(f"examples/{name}.py")


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.slow
def test_after_scikit_learn() -> None:
    result = example("after_scikit_learn").main()
    assert abs(result.value("empirical_coverage", model="linear + conformal") - 0.9) < 0.06
    assert "Gaussian process" in result.verdict


def test_after_quantile_regressor() -> None:
    result = example("after_quantile_regressor").main()
    assert 0.8 < result.value("empirical_coverage") < 0.95
    assert result.value("kendall_tau") > 0.2


@pytest.mark.rate
def test_after_torch() -> None:
    needs("torch")
    result = example("after_torch").main(steps=200)
    assert result.value("r_squared") > 0.5


def test_demo_table_is_what_the_readme_says() -> None:
    table = make_table(500)
    assert {"y", "mean", "sd", "lower_90", "upper_90", "region", "season"} <= set(table)


@pytest.mark.rate
def test_the_table_of_rentals_is_what_its_script_makes(data_dir: Callable[[str], Path]) -> None:
    data_dir("shift_bike_hour")
    module = example("rentals")
    made, held = module.make_table(), csv.read_csv(module.FILE)
    assert made.column_names == held.column_names
    for name in ("hour", "day", "y"):
        assert made[name].to_pylist() == held[name].to_pylist()
    for name in ("lower_90", "upper_90"):
        np.testing.assert_allclose(made[name], held[name], atol=0.11)
