"""Tables by parts from the command line: assess, check, states and merge."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure.cli.monitor import _name
from howsure.inputs import load
from howsure.streaming import Large, load_parts
from streaming.tables import normal_table

pytestmark = pytest.mark.few_draws

TABLE = normal_table(3_000).select(["y", "mean", "sd", "site"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "preds").mkdir()
    for number in range(3):
        parquet.write_table(
            TABLE.slice(1_000 * number, 1_000), tmp_path / "preds" / f"{number}.parquet"
        )
    return tmp_path


def run(*arguments: object) -> tuple[int, str]:
    found = CliRunner().invoke(app, [str(each) for each in arguments])
    return found.exit_code, found.output + str(found.exception or "")


@pytest.mark.rate
def test_the_same_command_for_one_file_and_for_many(folder: Path) -> None:
    one = folder / "one.parquet"
    parquet.write_table(TABLE, one)
    told = []
    for source in (one, folder / "preds", folder / "preds" / "*.parquet"):
        out = folder / "out.json"
        flags = ["--groups", "site", "--memory", "1MB", "--jobs", 1, "--no-trials", "--quiet"]
        code, output = run("assess", source, *flags, "-o", out)
        assert code == 0, output
        records = json.loads(out.read_text())["records"]
        exact = [r for r in records if r["exact"] == "rows" and r["value"] is not None]
        told.append({(r["metric"], r["group"]): r["value"] for r in exact})
        out.unlink()
    assert len(told[0]) > 60
    for other in told[1:]:
        assert other.keys() == told[0].keys()
        for key, value in told[0].items():
            assert other[key] == pytest.approx(value, rel=1e-9, abs=1e-12)


def test_check_by_parts(folder: Path) -> None:
    flags = ["--memory", "1MB", "--jobs", 1, "--groups", "site", "--by", "site"]
    code, output = run("check", folder / "preds", *flags, "--min-coverage", 0.85)
    assert code == 1
    assert "site=c: empirical_coverage" in output
    whole = run(
        "check", folder / "preds", "--groups", "site", "--by", "site", "--min-coverage", 0.85
    )
    shown = [line for line in output.splitlines() if "empirical_coverage" in line]
    assert shown == [line for line in whole[1].splitlines() if "empirical_coverage" in line]


@pytest.mark.rate
def test_merge(folder: Path) -> None:
    states = []
    for number in range(3):
        states.append(folder / f"{number}.arrow")
        source = folder / "preds" / f"{number}.parquet"
        flags = ["--groups", "site", "--no-trials", "--quiet", "-o", folder / f"{number}.json"]
        code, output = run("assess", source, *flags, "--state", states[-1])
        assert code == 0, output
    out, kept = folder / "week.json", folder / "week.arrow"
    code, output = run("merge", *states, "--no-trials", "-o", out, "--state", kept)
    assert code == 0, output
    assert f"written: {kept}" in output.replace("\n", "")
    assert json.loads(out.read_text())["facts"]["Rows"] == "3,000"
    code, again = run("merge", kept, "--no-trials")
    assert code == 0
    assert again.split("Key numbers")[0].strip() in output


def test_what_cannot_be(folder: Path) -> None:
    one = folder / "preds" / "0.parquet"
    code, told = run("assess", one, one, "--memory", "1GB")
    assert code != 0
    assert "which needs whole tables" in told
    assert "--memory must be a size" in run("assess", one, "--memory", "lots")[1]
    assert "cannot be combined" in run("assess", one, "--jobs", 2, "--scheduler", "tcp://x:1")[1]
    assert run("assess", folder / "none*.parquet")[0] != 0


def test_how_columns_of_a_folder_are_read(folder: Path) -> None:
    code, told = run("assess", folder / "preds", "--explain-input", "--groups", "site")
    assert code == 0
    assert "site" in told
    assert "run the same command without --explain-input" in told


@pytest.mark.rate
def test_what_was_read_is_told(folder: Path) -> None:
    """On the terminal and the page in a line, in JSON file by file; also by other commands."""
    (folder / "preds" / "README.txt").write_text("three days")
    (folder / "preds" / "latest.parquet").symlink_to("2.parquet")
    line = "3 files, 3,000 rows; not read: README.txt (its ending is not one of a table), latest"
    outs = [folder / f"out{ending}" for ending in (".json", ".md", ".html")]
    flags = [flag for out in outs for flag in ("-o", out)]
    state = folder / "s.arrow"
    code, output = run(
        "assess", folder / "preds", "--no-trials", "--jobs", 1, "--state", state, *flags
    )
    assert code == 0
    assert f"Files: {line}" in " ".join(output.split())
    told = json.loads(outs[0].read_text())
    assert told["facts"]["Files"].startswith(line)
    (files,) = (table["columns"] for table in told["tables"] if table["name"] == "files")
    assert [Path(path).name for path in files["file"]] == [f"{day}.parquet" for day in range(3)]
    assert files["rows"] == [1_000] * 3
    assert files["bytes"] == [path.stat().st_size for path in sorted(folder.glob("preds/[0-9]*"))]
    assert len(set(files["key"])) == 3
    for out in outs[1:]:
        assert "README.txt" in out.read_text()
        assert files["key"][0] not in out.read_text()
    merged = folder / "merged.json"
    code, output = run("merge", state, "--no-trials", "--quiet", "-o", merged)
    assert code == 0
    assert json.loads(merged.read_text())["facts"]["Files"] == told["facts"]["Files"]
    code, output = run("check", folder / "preds", "--min-coverage", 0.5)
    assert code == 0
    assert f"files: {line}" in " ".join(output.split())
    code, output = run("check", folder / "preds", "--min-coverage", 0.5, "--json")
    assert json.loads(output)["files"].startswith(line)
    fixed = folder / "fixed"
    fixed.mkdir()
    code, output = run(
        "recalibrate",
        folder / "preds",
        "--calibration",
        folder / "preds" / "0.parquet",
        "-o",
        fixed,
    )
    assert code == 0, output
    assert "not read: README.txt (its ending is not" in " ".join(output.split())
    assert sorted(path.name for path in fixed.iterdir()) == [f"{day}.parquet" for day in range(3)]


def test_states_of_the_same_rows_are_refused(folder: Path) -> None:
    states = [folder / "week.arrow", folder / "0.arrow"]
    for source, state in zip(("preds", "preds/0.parquet"), states, strict=True):
        quiet = ("--no-trials", "--jobs", 1, "--state", state)
        assert run("assess", folder / source, *quiet)[0] == 0
    for given in ([states[1], states[1]], states):
        code, output = run("merge", *given, "--no-trials")
        assert code != 0
        assert "states must be of different rows" in output
        assert f"in {given[0]} and in {given[1]}" in output


@pytest.mark.parametrize("command", ["assess", "check", "recalibrate"])
def test_a_name_that_no_file_can_have(folder: Path, command: str) -> None:
    more = {
        "assess": [],
        "check": ["--min-coverage", 0.8],
        "recalibrate": ["--calibration", folder / "preds" / "0.parquet", "-o", folder / "x.csv"],
    }
    for ending in ("", ".csv", ".parquet"):
        code, output = run(command, "x" * 5_000 + ending, *more[command])
        assert code != 0
        assert "cannot be read: File name too long" in output


def test_common_rows_of_models_in_one_file(folder: Path) -> None:
    """Rows that one model lacks are left out of a long table, as of two files."""
    few = TABLE.slice(0, 60).append_column("row", pa.array(range(60)))
    names = [pa.array(["a"] * 60), pa.array(["b"] * 50)]
    parts = [few, few.slice(0, 50)]
    long = [each.append_column("who", name) for each, name in zip(parts, names, strict=True)]
    path = folder / "long.parquet"
    parquet.write_table(pa.concat_tables(long), path)
    flags = ["--model", "who", "--row-id", "row", "--no-trials", "--quiet"]
    out = folder / "long.json"
    code, told = run("assess", path, *flags, "--common-rows", "-o", out)
    assert code == 0, told
    facts = json.loads(out.read_text())["facts"]
    assert facts["Rows"] == "50"
    assert "10 of 'a'" in facts["Reading"]
    code, told = run("assess", path, *flags, "-o", out)
    assert code != 0
    assert "got 10 rows of 'a' that 'b' lacks" in told
    code, told = run("assess", folder / "preds", "--common-rows", "--no-trials")
    assert code == 0, told
    code, told = run("characteristic", folder / "preds", "--bootstrap", "0")
    assert code == 0, told


def test_every_verb_reads_folders(folder: Path) -> None:
    """As it reads the one file that holds the same rows."""
    one = folder / "one.parquet"
    parquet.write_table(TABLE, one)
    preds = folder / "preds"
    whole = run("characteristic", one, "--bootstrap", "0")[1]
    assert run("characteristic", preds, "--bootstrap", "0")[1].replace("preds", "one") == whole
    code, told = run("characteristic", preds, "--bootstrap", "0", "--memory", "1MB", "--jobs", 1)
    assert code == 0, told
    assert "note: the curves are of a sample of" not in told  # which holds all of so few rows
    for verb, flags in (("recalibrate", []), ("conformal", ["--method", "cp_a"])):
        for source, out in ((one, "one.csv"), (preds, "many.csv")):
            given = ["--calibration", preds, *flags, "-o", folder / out, "--jobs", 1]
            code, told = run(verb, source, *given)
            assert code == 0, told
        assert (folder / "one.csv").read_bytes() == (folder / "many.csv").read_bytes()


@pytest.mark.slow
def test_new_rows_in_folders_are_scored(folder: Path) -> None:
    few = TABLE.slice(0, 900).append_column("age", pa.array(np.linspace(0.0, 1.0, 900)))
    one, many = folder / "one.parquet", folder / "many"
    many.mkdir()
    parquet.write_table(few, one)
    for number in range(3):
        parquet.write_table(few.slice(300 * number, 300), many / f"{number}.parquet")
    flags = ["--reference", many, "--features", "age", "--jobs", 1]
    scores = []
    for source, out in ((one, "one.csv"), (many, "many.csv")):
        code, told = run("assess", source, *flags, "-o", folder / out)
        assert code == 0, told
        scores.append((folder / out).read_text())
    assert scores[0] == scores[1]


def test_curves_and_a_reference_of_a_sample_say_so(folder: Path) -> None:
    many = folder / "many.parquet"
    parquet.write_table(normal_table(21_000).select(["y", "mean", "sd"]), many)
    flags = ["--memory", "1MB", "--jobs", 1]
    code, told = run("characteristic", many, "--bootstrap", "0", *flags)
    assert code == 0, told
    assert "note: the curves are of a sample of 20,000 of 21,000 rows" in told
    loaded = load_parts(many, large=Large(memory="1MB", jobs=1))
    assert _name(many, loaded).startswith("many.parquet (20,000 of 21,000 rows")
    assert _name(many, load(folder / "preds")) == "many.parquet"
