"""Outputs and options are refused before any work, and no output replaces what is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.core.rng import child

pytestmark = pytest.mark.slow

COMMAND = "from howsure.cli.entry import main; main()"


def invoked(*arguments: object) -> None:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A folder with two tables of predictions, and two other names of the first."""
    for name in ("new.csv", "held_out.csv"):
        rng = child(0, name)
        x = rng.uniform(-1, 1, 300)
        y = x + rng.normal(size=300)
        columns = {"x": x, "y": y, "lower_90": x - 1.6, "upper_90": x + 1.6}
        csv.write_csv(pa.table(columns), tmp_path / name)
    (tmp_path / "symbolic.csv").symlink_to("new.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "new.csv")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "assess new.csv -o new.csv",
        "assess new.csv -o report.html -o folder/../new.csv",
        "assess new.csv -o symbolic.csv",
        "assess symbolic.csv -o new.csv",
        "assess new.csv -o hard.csv",
        "assess held_out.csv new.csv -o new.csv",
        "assess new.csv --reference held_out.csv --features x -o held_out.csv",
        "assess new.csv --reference held_out.csv --features x -o hard.csv",
        "recalibrate new.csv --calibration held_out.csv -o new.csv",
        "recalibrate new.csv --calibration held_out.csv -o held_out.csv",
        "recalibrate new.csv --calibration held_out.csv --compare -o held_out.csv",
        "simulate new.csv --target y --method linear_t -o new.csv",
    ],
)
def test_an_output_is_no_input(tables: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(tables)
    before = {path: path.read_bytes() for path in tables.iterdir() if path.is_file()}
    with pytest.raises(InputError, match="must not overwrite an input"):
        invoked(*line.split())
    assert {path: path.read_bytes() for path in tables.iterdir() if path.is_file()} == before


def test_a_figure_is_no_input(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ending is no table's, but a link may have any name."""
    monkeypatch.chdir(tables)
    Path("curve.svg").symlink_to("new.csv")
    with pytest.raises(InputError, match="must not overwrite an input"):
        invoked("characteristic", "new.csv", "--plot", "curve.svg")


def test_two_outputs_are_two_files(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tables)
    with pytest.raises(InputError, match="outputs must be different files"):
        invoked("assess", "new.csv", "-o", "a.html", "-o", "folder/../a.html")
    assert not Path("a.html").exists()


def test_an_output_that_is_there_is_replaced(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tables)
    for name in ("report.json", "mended.csv"):
        Path(name).write_text("before", encoding="utf-8")
    invoked("assess", "new.csv", "-o", "report.json")
    invoked("recalibrate", "new.csv", "--calibration", "held_out.csv", "-o", "mended.csv")
    assert Path("report.json").read_text(encoding="utf-8").startswith("{")
    assert csv.read_csv("mended.csv").num_rows == 300
    names = {"new.csv", "held_out.csv", "symbolic.csv", "hard.csv", "folder"}
    assert {path.name for path in tables.iterdir()} == names | {"report.json", "mended.csv"}


REFUSED = [
    *(
        f"assess gone.csv {options}"
        for options in (
            "-o report.exe",
            "-o nowhere/report.html",
            "-o folder.html",
            "--also nonsense",
            "--confidence 1",
            "--confidence nan",
            "--coverage 90",
            "--at 0",
            "--seed -1",
            "--kernel nonsense",
            "--map nonsense",
            "--gamma 0",
            "--draws 0",
            "--missing nonsense",
            "--crossing nonsense",
            "--decimal x",
            "--weights-kind nonsense",
            "--reference held_out.csv -o scores.exe",
            "--reference held_out.csv -o nowhere/scores.parquet",
            "--reference held_out.csv --also crps",
            "--reference held_out.csv --explain-input",
        )
    ),
    "check gone.csv --min-coverage 0.5 --confidence 0.5",
    "check gone.csv --min-coverage 0.5 --seed -1",
    *(
        f"characteristic gone.csv {options}"
        for options in (
            "--x nonsense",
            "--y-axis nonsense",
            "--want nonsense=1",
            "--want miss_rate=1.1",
            "--want knob=-1",
            "--want bandwidth=inf",
            "--miss-cost -1",
            "--miss-cost nan",
            "--cost-weight 1.5",
            "--cost-weight nan",
            "--cost-weight 0.5 --miss-cost 2",
            "--range 0.5 0.1",
            "--range 0 2",
            "--bootstrap -1",
            "--bootstrap 1",
            "--seed -1",
            "--plot curve.exe",
            "--plot nowhere/curve.svg",
        )
    ),
    "recalibrate gone.csv --calibration held_out.csv",
    *(
        f"recalibrate gone.csv --calibration held_out.csv {options}"
        for options in (
            "-o new.exe",
            "-o nowhere/mended.csv",
            "-o mended.csv --method nonsense",
            "-o mended.csv --method cqr,scale",
            "-o mended.csv --rank nonsense",
            "-o mended.csv --too-few nonsense",
            "-o mended.csv --delta 1",
            "-o mended.csv --method all",
            "-o mended.csv --by region --method scale",
            "-o mended.csv --keep mend.txt",
            "-o mended.csv --keep held_out.csv",
            "-o mended.csv --keep nowhere/mend.json",
            "-o mended.csv --levels 0.5,0.1",
            "-o mended.csv --seed -1",
            "--compare -o ways.exe",
            "--compare -o nowhere/ways.csv",
            "--compare --method cqr,nonsense",
            "--compare --method best",
            "--compare --keep mend.json",
            "--compare --levels 0.1,0.5",
        )
    ),
    *(
        f"simulate gone.csv --target y --method linear_t {options}"
        for options in (
            "-o report.exe",
            "-o nowhere/report.html",
            "--method nonsense",
            "--coverage 1",
            "--trials 0",
            "--train-rows 0",
            "--test-rows 0",
            "--until-se 0",
            "--of nonsense",
            "--noise nonsense",
            "--residuals nonsense",
            "--covariates nonsense",
            "--missing nonsense",
            "--seed -1",
        )
    ),
]


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_wrong_is_said_before_a_table_is_read(
    tables: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """The table is not there, and that is not what is said."""
    monkeypatch.chdir(tables)
    (tables / "folder.html").mkdir()
    result = CliRunner().invoke(app, line.split())
    said = result.stderr + str(result.exception)
    assert isinstance(result.exception, InputError) or result.exit_code == 2
    assert "gone.csv" not in said
    assert result.stdout == ""


def test_all_ways_may_be_asked_for_by_that_word(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tables)
    ways = ["recalibrate", "new.csv", "--calibration", "held_out.csv", "--compare", "-o"]
    invoked(*ways, "all.csv", "--method", "all")
    invoked(*ways, "omitted.csv")
    assert Path("all.csv").read_bytes() == Path("omitted.csv").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size to set")
@pytest.mark.parametrize("name", ["report.html", "report.csv", "mended.csv", "mended.parquet"])
@pytest.mark.rate
def test_a_full_disk_leaves_nothing_half_written(tables: Path, name: str) -> None:
    """A file may not grow: one line, status 2, and what was there before."""
    output = tables / name
    output.write_text("before", encoding="utf-8")
    given = ["assess", "new.csv"]
    if name.startswith("mended"):
        given = ["recalibrate", "new.csv", "--calibration", "held_out.csv"]
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); {COMMAND}"
    run = subprocess.run(
        [sys.executable, "-B", "-c", limited, *given, "-o", name],
        capture_output=True,
        text=True,
        cwd=tables,
        check=False,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == f"howsure: '{name}' cannot be written: File too large\n"
    assert output.read_text(encoding="utf-8") == "before"
    assert not [path for path in tables.iterdir() if path.name.startswith(".")]


def test_cells_that_a_spreadsheet_would_run(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, so that what is read back is what was given; on request, harmless."""
    monkeypatch.chdir(tables)
    cells = ["=1+1", "+a", "-a", "@a", "a", None]
    for name in ("new.csv", "held_out.csv"):
        held = csv.read_csv(name)
        note = pa.array(np.resize(np.array(cells, dtype=object), held.num_rows))
        csv.write_csv(held.append_column("=note", note), name)
    given = ["recalibrate", "new.csv", "--calibration", "held_out.csv", "--groups", "=note"]
    invoked(*given, "-o", "kept.csv", "--missing", "drop")
    invoked(*given, "-o", "safe.csv", "--missing", "drop", "--csv-safe")
    kept, safe = csv.read_csv("kept.csv"), csv.read_csv("safe.csv")
    assert sorted(set(kept["=note"].to_pylist())) == sorted(["", *cells[:5]])
    assert sorted(set(safe["'=note"].to_pylist())) == ["", "'+a", "'-a", "'=1+1", "'@a", "a"]
    for numbers in ("y", "lower_90", "recalibrated_lower_90"):
        assert kept[numbers].equals(safe[numbers])
        assert min(safe[numbers].to_pylist()) < 0
