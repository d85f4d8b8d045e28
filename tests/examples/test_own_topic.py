"""A topic of a package of its own: announced, measured and shown as howsure's are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

FOLDER = Path(__file__).parents[2] / "examples" / "own_topic"
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUN = "from howsure.cli.entry import main; main()"


def announce(place: Path, name: str, points: str) -> None:
    """What pip would write of a package."""
    info = place / f"{name}-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[howsure.topics]\n{points}\n")


def howsure(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, with the packages of a folder beside the example's file."""
    path = os.pathsep.join([str(folder), str(FOLDER), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), "COLUMNS": "100"},
        check=False,
        timeout=120,
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder where the example is announced, with a table of a model that is right."""
    (group,) = PROJECT["entry-points"]
    assert group == "howsure.topics"
    points = PROJECT["entry-points"][group]
    announce(tmp_path, "miss_depth", "\n".join(f"{key} = {at}" for key, at in points.items()))
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=4_000), np.exp(rng.uniform(-1, 1, 4_000))
    columns = {"y": mean + sd * rng.normal(size=4_000), "mean": mean, "sd": sd}
    table = pa.table(columns | {"site": rng.choice(["a", "b"], 4_000)})
    parquet.write_table(table, tmp_path / "table.parquet")
    return tmp_path


@pytest.mark.slow
def test_its_measure_curve_and_table_stand_beside_the_others(site: Path) -> None:
    outputs = ("-o", "page.html", "-o", "report.json")
    done = howsure(site, "assess", "table.parquet", "--groups", "site", *outputs)
    assert done.returncode == 0, done.stderr
    assert "note:" not in done.stderr
    report = json.loads((site / "report.json").read_text())
    table = parquet.read_table(site / "table.parquet").to_pydict()
    y, mean, sd = (np.array(table[name]) for name in ("y", "mean", "sd"))
    depth = np.maximum(np.abs(y - mean) / (1.6448536269514722 * sd) - 1.0, 0.0)
    records = {r["group"]: r for r in report["records"] if r["metric"] == "miss_depth"}
    assert records[""]["value"] == pytest.approx(depth.mean(), rel=1e-12)
    error = depth.std(ddof=1) / np.sqrt(len(depth))
    assert records[""]["standard_error"] == pytest.approx(error, rel=1e-9)
    assert records[""]["null"] == pytest.approx(0.0254, rel=0.05)
    here = np.array(table["site"]) == "a"
    assert records["site=a"]["value"] == pytest.approx(depth[here].mean(), rel=1e-12)
    assert "miss_depth" in {curve["name"] for curve in report["curves"]}
    assert "miss_depths" in {each["name"] for each in report["tables"]}
    page = (site / "page.html").read_text()
    for words in ("How deep do misses lie?", "Depth of misses", "How deep misses lie"):
        assert words in page, words
    told = howsure(site, "metrics", "miss_depth").stdout
    assert "Miss depth (miss_depth)" in told


@pytest.mark.parametrize(("times", "state"), [(1.0, "good"), (0.7, "bad")])
@pytest.mark.slow
def test_its_finding_is_judged_beside_the_others(site: Path, times: float, state: str) -> None:
    table = parquet.read_table(site / "table.parquet")
    sd = pa.array(times * table["sd"].to_numpy())
    parquet.write_table(table.set_column(2, "sd", sd), site / "table.parquet")
    done = howsure(site, "assess", "table.parquet", "-o", "page.html", "-o", "report.json")
    assert done.returncode == 0, done.stderr
    report = json.loads((site / "report.json").read_text())
    assert "fault" not in report["facts"].get("Notes", "")
    findings = {finding["id"]: finding for finding in report["findings"]}
    assert findings["depth"]["state"] == state
    assert (findings["depth"]["p_adjusted"] < 0.05) == (state == "bad")
    assert list(findings)[-1] == "depth" or state == "bad"  # behind those that howsure orders
    page = (site / "page.html").read_text()
    assert findings["depth"]["sentence"] in page
    checked = howsure(site, "check", "table.parquet", "--fail-on", "bad", "--findings", "depth")
    assert checked.returncode == (state == "bad"), checked.stderr
    ignored = howsure(site, "assess", "table.parquet", "--ignore", "depth", "-o", "other.json")
    assert ignored.returncode == 0, ignored.stderr
    other = json.loads((site / "other.json").read_text())
    assert "depth" not in {finding["id"] for finding in other["findings"]}


@pytest.mark.parametrize("points", [True, False], ids=["points", "no misses"])
@pytest.mark.slow
def test_where_nothing_is_missed_no_table_is_empty(site: Path, points: bool) -> None:
    table = parquet.read_table(site / "table.parquet")
    table = table.select(["y", "mean"] if points else ["y", "mean", "sd"])
    if not points:
        table = table.set_column(2, "sd", pa.array(np.full(table.num_rows, 100.0)))
    parquet.write_table(table, site / "other.parquet")
    done = howsure(site, "assess", "other.parquet", "-o", "other.json")
    assert done.returncode == 0, done.stderr
    report = json.loads((site / "other.json").read_text())
    assert "fault" not in report["facts"].get("Notes", "")
    assert ("miss_depth" in {curve["name"] for curve in report["curves"]}) != points
    assert "miss_depths" not in {each["name"] for each in report["tables"]}


@pytest.mark.parametrize(
    ("points", "told"),
    [
        ("a = no_such_module:TOPIC", "topic 'a' from package other cannot be loaded"),
        ("a = json:dumps", "topic 'a' must be a Topic with entries, got function"),
        (
            "a = howsure.topics.crps:TOPIC",
            "topic 'a' must name things of its own, got the",
        ),
        (
            "a = taken:TOPIC",
            "topic 'a' must name things of its own, got the finding 'drift'",
        ),
    ],
)
@pytest.mark.slow
def test_a_topic_that_is_none_or_takes_a_name_is_left_out_and_told(
    site: Path, points: str, told: str
) -> None:
    (site / "taken.py").write_text(
        "from dataclasses import replace\n"
        "from howsure.topics.drift import TOPIC as own\n"
        "named = replace(own.entries[0], name='other')\n"
        "TOPIC = replace(own, entries=(named,), arrays=())\n"
    )
    announce(site, "other", points)
    done = howsure(site, "metrics", "miss_depth")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"note: {told}")
    assert done.stderr.rstrip().endswith("it is left out")
    assert "Miss depth" in done.stdout
