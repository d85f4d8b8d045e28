"""`howsure recalibrate --compare` as a user runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

from extras import needs
from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.inputs import load
from howsure.recalibration import compare_recalibrations, methods_of
from howsure.recalibration.dispatch import METHODS, can_teach

WAYS = ["before", *methods_of("distributions")]


@pytest.fixture
def laws(tmp_path: Path) -> tuple[Path, Path]:
    """Normal laws that are too narrow, to judge by and to fit on."""
    paths = tmp_path / "test.csv", tmp_path / "held.csv"
    for place, path in enumerate(paths):
        rng = np.random.default_rng(place)
        mean, sd = rng.normal(size=300), np.exp(rng.uniform(-0.5, 0.5, 300))
        y = mean + 1.6 * sd * rng.normal(size=300)
        csv.write_csv(pa.table({"y": y, "mean": mean, "sd": sd}), path)
    return paths


def compared(paths: tuple[Path, Path], *flags: object) -> str:
    given, held = paths
    arguments = ["recalibrate", given, "--calibration", held, "--compare", *flags]
    shown = CliRunner().invoke(
        app, [str(part) for part in arguments], catch_exceptions=False, env={"COLUMNS": "80"}
    )
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.mark.slow
def test_every_way_is_shown_and_written_as_the_function_gives_it(
    laws: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "ways.csv"
    shown = compared(laws, "-o", out)
    tables = len(re.findall("^Measure ", shown, re.MULTILINE))
    assert tables > 1  # 80 columns are too few for one
    drawn = [line for line in shown.splitlines() if not line.startswith("written: ")]
    assert max(map(len, drawn)) <= 80
    found = csv.read_csv(out)
    (given,), (held,) = (load(path).evalsets for path in laws)
    truth = compare_recalibrations(given, held)
    assert found.column_names == list(truth.columns)
    assert found["metric"].to_pylist() == truth.columns["metric"].tolist()
    named = ("cp", "cp_a", "pac", "o_cpa", "o_pac")  # which are compared where they are asked for
    for way in ("before", *(n for n in WAYS[1:] if n not in named and can_teach(METHODS[n], held))):
        values = found[way].to_numpy().astype(float)
        np.testing.assert_allclose(values, truth.columns[way], rtol=1e-12)
        assert re.search(rf"^Measure.* {way}\b", shown, re.MULTILINE)
    coverage = truth.columns["scale"][0]
    assert truth.columns["metric"][0] == "empirical_coverage"
    assert f"{coverage:.3g}" in shown
    assert 0 < sum("Sharpness" in line for line in shown.splitlines()) < tables  # laws have one


def test_markdown_and_json_hold_the_table(laws: tuple[Path, Path], tmp_path: Path) -> None:
    for path in (tmp_path / "ways.md", tmp_path / "ways.json"):
        compared(laws, "-o", path, "--method", "scale, ucc", "--at", 0.5, "--at", 0.8)
    text = (tmp_path / "ways.md").read_text(encoding="utf-8")
    header = "| Measure | before | scale | ucc | perfect |"
    assert header in text
    (table,) = json.loads((tmp_path / "ways.json").read_text(encoding="utf-8"))["tables"]
    assert list(table["columns"])[5:] == ["before", "scale", "ucc"]
    assert {0.5, 0.8, None} == set(table["columns"]["coverage"])
    columns = [table["columns"][way] for way in ("scale", "ucc")]
    answered = sum(any(value is not None for value in row) for row in zip(*columns, strict=True))
    assert answered == text.count("\n| ") - 2
    assert "*" in text


def test_each_prediction_of_a_table_is_compared_at_its_own_coverage(tmp_path: Path) -> None:
    paths = tmp_path / "test.csv", tmp_path / "held.csv"
    for place, path in enumerate(paths):
        y = np.random.default_rng(place).normal(size=200)
        flat = np.ones(200)
        columns = {"y": y, "lower_80": -flat, "upper_80": flat, "mean": 0 * flat, "sd": flat}
        csv.write_csv(pa.table(columns), path)
    needs("pandas")
    out = tmp_path / "ways.csv"
    shown = compared(paths, "-o", out, "--rank", "paper")
    assert "Recalibration methods: intervals" in shown
    found = csv.read_csv(out).to_pandas()
    at = found[found["metric"] == "empirical_coverage"].set_index("belief")
    assert at["coverage"].to_dict() == {"intervals": 0.8, "distributions": 0.9}
    assert np.isnan(at["isotonic"]["intervals"])
    assert abs(at["cqr"]["intervals"] - 0.8) < 0.08


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("-o", "ways.html"), "path must end in .csv, .md, .json, got 'ways.html'"),
        (("--levels", "0.1,0.9"), "--levels cannot be given with --compare"),
        (("--method", "scale,conformal"), "methods must suit distributions"),
    ],
)
def test_bad_choices_are_refused(
    laws: tuple[Path, Path], flags: tuple[str, ...], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        compared(laws, *flags)


def test_a_table_to_mend_needs_somewhere_to_go(laws: tuple[Path, Path]) -> None:
    arguments = ["recalibrate", str(laws[0]), "--calibration", str(laws[1])]
    with pytest.raises(InputError, match="no output: name the file of the new table with -o"):
        CliRunner().invoke(app, arguments, catch_exceptions=False)
