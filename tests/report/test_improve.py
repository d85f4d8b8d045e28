"""`howsure improve`: from a held-out table to new rows, with a proof that programs read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import howsure
from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.inputs import write_table
from howsure.recalibration import load_recalibration
from howsure.report.improve import Improvement


def table(seed: int, n: int, **beside: Any) -> dict[str, Any]:
    """Rows of two regions, one of which has errors twice as large as predicted."""
    rng = child(seed, "improve")
    x = rng.normal(size=n)
    region = np.where(rng.uniform(size=n) < 0.3, "north", "south")
    y = x + np.where(region == "north", 1.2, 0.6) * rng.normal(size=n)
    return {
        "id": np.arange(n),
        "y": y,
        "mean": x,
        "sd": np.full(n, 0.6),
        "region": region,
        **beside,
    }


@pytest.fixture(scope="module")
def found() -> Improvement:
    return howsure.improve(table(0, 3_000), groups="region", until_right=True)


def test_what_was_confirmed_serves_new_rows(found: Improvement, tmp_path: Path) -> None:
    assert [step.advice.method for step in found.rows.confirmed] == ["group"]
    assert found.fitted.by == ("region",)
    new = table(1, 2_000)
    served = howsure.recalibrate(new, found.fitted)
    sd = served.predictions["recalibrated_sd"]
    north = np.asarray(new["region"]) == "north"
    assert sd[north].mean() == pytest.approx(1.2, rel=0.1)
    assert sd[~north].mean() == pytest.approx(0.6, rel=0.1)
    found.fitted.save(tmp_path / "kept.json")
    again = howsure.recalibrate(new, load_recalibration(tmp_path / "kept.json"))
    np.testing.assert_array_equal(again.predictions["recalibrated_sd"], sd)
    with pytest.raises(InputError, match="region"):
        howsure.recalibrate({"mean": [0.0], "sd": [1.0]}, found.fitted)


@pytest.mark.slow
def test_two_steps_are_kept_and_served_as_one(tmp_path: Path) -> None:
    rng = child(9, "two")
    x = rng.normal(size=2_000)
    y = x + (rng.gamma(2.0, size=2_000) - 2.0) * np.exp(0.4 * x)
    held = {"y": y, "mean": x, "sd": np.ones(2_000), "x": x}
    found = howsure.improve(held, features="x", until_right=True)
    assert len(found.rows.confirmed) >= 2
    assert found.fitted.features == {"x": "number"}
    found.fitted.save(tmp_path / "kept.json")
    new = {"mean": x[:9], "sd": np.ones(9), "x": x[:9]}
    ours = howsure.recalibrate(new, found.fitted).predictions
    theirs = howsure.recalibrate(new, tmp_path / "kept.json").predictions
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        np.testing.assert_array_equal(values, theirs[name])


def test_it_is_told_in_words(found: Improvement) -> None:
    told = str(found).split("\n")
    assert told[0] == ("1,500 rows teach, 1,500 are held back to prove: split at random.")
    assert told[1].startswith("Recalibrate within region. On the held-out rows this cuts the ")
    assert told[-3:] == [
        "No further recalibration is advised.",
        "One step was confirmed. Nothing is proven wrong on the held-back rows.",
        "The chance that a step is confirmed though none helps is at most 3.5 %, however many are "
        "tried.",
    ]


def test_a_fault_of_the_teaching_rows_alone_is_not_hidden(found: Improvement) -> None:
    rows = replace(found.rows, ended="nothing_helps", reason="No way.", teaching_faults=("width",))
    told = [text for _, text in replace(found, rows=rows).lines()]
    assert told[2:4] == ["No way.", "The teaching rows still show a fault of widths."]
    silent = replace(rows, reason="", teaching_faults=())
    told = [text for _, text in replace(found, rows=silent).lines()]
    assert told[2] == "The teaching rows advise nothing more."


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["improve", *map(str, words)], env={"COLUMNS": "200"})


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    write_table(table(0, 600), tmp_path / "held_out.csv")
    write_table(table(1, 300), tmp_path / "new.csv")
    return tmp_path / "held_out.csv", tmp_path / "new.csv"


def test_the_command_writes_new_rows_proof_and_what_was_learnt(
    tables: tuple[Path, Path], tmp_path: Path
) -> None:
    held_out, new = tables
    proof, kept, out = (tmp_path / name for name in ("proof.json", "kept.json", "out.csv"))
    ends = ["-o", out, "--proof", proof, "--keep", kept]
    done = run(held_out, new, "--groups", "region", "--until-right", *ends)
    held = json.loads(proof.read_text("utf-8"))
    assert done.exit_code == (0 if held["right"] else 1)
    assert [step["confirmed"] for step in held["steps"]][:1] == [True]
    assert held["summary"] in done.stdout
    assert "300 rows recalibrated" in done.stdout
    again = tmp_path / "again.csv"
    given = ["recalibrate", str(new), "--calibration", str(kept), "-o", str(again)]
    assert CliRunner().invoke(app, given).exit_code == 0
    assert again.read_bytes() == out.read_bytes()
    once = proof.read_bytes()
    assert run(held_out, "--groups", "region", "--until-right", "--proof", proof).exit_code in (
        0,
        1,
    )
    assert proof.read_bytes() == once


def test_what_is_still_wrong_is_said_and_is_the_exit_status(tmp_path: Path) -> None:
    rng = child(5, "lost")
    mean = 10.0 + rng.normal(size=300)
    held = {"y": 1_000.0 * (mean + rng.normal(size=300)), "mean": mean, "sd": np.ones(300)}
    write_table(held, tmp_path / "units.csv")
    done = run(tmp_path / "units.csv", "--proof", tmp_path / "proof.json")
    assert done.exit_code == 1
    assert "✗  Predictions look divided by 1,000." in done.stdout
    assert "The rows themselves are wrong: put them right first." in done.stdout
    assert "No step was confirmed. On the held-back rows this is still proven wrong:" in done.stdout
    assert json.loads((tmp_path / "proof.json").read_text("utf-8"))["ended"] == "rows"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("NEW", "-o must name the file of the new table, got nothing"),
        ("-o {out}/new.csv", "-o needs a table of new rows, got nothing"),
        ("--proof {out}/proof.csv", "a proof is written to a .json file"),
        ("--proof {out}/other.json", "is there and is no proof: choose another name"),
        ("--keep {out}/other.json", "is there and is no kept recalibration"),
        ("--hold-back 2", "--hold-back must lie strictly between 0 and 1, got 2.0"),
    ],
)
def test_nothing_is_begun_that_cannot_end(
    words: str, told: str, tables: tuple[Path, Path], tmp_path: Path
) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"mine": 1}', "utf-8")
    given = words.replace("NEW", str(tables[1])).format(out=tmp_path).split()
    done = run(tables[0], *given)
    assert isinstance(done.exception, InputError | SystemExit)
    assert told in done.output + str(done.exception)
    assert other.read_text("utf-8") == '{"mine": 1}'
    assert not (tmp_path / "improvement.json").exists()
