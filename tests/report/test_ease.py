"""A column of ease gives T-CV, T-SS and their kin a place in an assessment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from howsure import LabelSets, assess
from howsure.cli.main import app
from howsure.metrics.adaptivity import Resampling, t_cv, t_ss


def rows(n: int = 600) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    sd = rng.uniform(0.2, 2.0, n)
    return {
        "y": rng.normal(0, sd),
        "point": np.zeros(n),
        "lower_90": -1.645 * sd,
        "upper_90": 1.645 * sd,
        "ease": -sd,
    }


def test_a_table_with_a_column_of_ease_is_measured_by_it(tmp_path: Path) -> None:
    table = rows()
    path = tmp_path / "t.csv"
    lines = [
        ",".join(table),
        *(",".join(map(repr, row.tolist())) for row in np.array([*table.values()]).T),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    given = CliRunner().invoke(app, ["assess", str(path), "-o", str(tmp_path / "page.json")])
    assert given.exit_code == 0, given.output
    page = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    records = {record["metric"]: record for record in page["records"]}
    size, hits = 3.29 * -table["ease"], np.abs(table["y"]) <= -1.645 * table["ease"]
    cv = t_cv(hits, table["ease"], coverage=0.9).estimate
    assert records["t_cv"]["value"] == pytest.approx(cv.value, abs=1e-12)
    assert records["t_cv"]["null"] == pytest.approx(cv.null)
    slope = t_ss(size, np.abs(table["y"]), table["ease"], resampling=Resampling(replicates=0))
    assert records["t_ss"]["value"] == pytest.approx(slope.estimate.value, abs=1e-9)
    assert {"coverage_by_ease", "size_by_difficulty"} <= {c["name"] for c in page["curves"]}


def test_inputs_named_ease_serve_and_others_do_not() -> None:
    table = rows()
    bounds = table["lower_90"], table["upper_90"]
    options = {"coverage": 0.9, "point": table["point"], "trials": False}
    found = assess(table["y"], bounds, x={"ease": table["ease"]}, **options)
    assert found.value("T-CV") > 0
    assert found.value("t_ss") > 0.7
    html = found.to_html()
    assert "Coverage by ease" in html
    assert "Size by difficulty" in html
    other = assess(table["y"], bounds, x={"age": table["ease"]}, **options)
    assert not [record for record in other.records if record.metric in ("t_cv", "t_ss")]


def test_label_sets_are_measured_as_far_as_they_can_be() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 300)
    members = rng.random((300, 4)) < 0.7
    found = assess(y, LabelSets(members, 0.7), x={"ease": rng.random(300)}, trials=False)
    assert found.value("t_cv") > 0
    (slope,) = (record for record in found.records if record.metric == "t_ss")
    assert "class scores" in slope.reason


def test_ease_that_is_no_number_has_a_reason() -> None:
    table = rows(60)
    bounds = table["lower_90"], table["upper_90"]
    words = np.where(np.arange(60) % 2, "easy", "hard")
    found = assess(table["y"], bounds, x={"ease": words}, coverage=0.9, trials=False)
    (record,) = (record for record in found.records if record.metric == "t_cv")
    assert record.reason == "the column 'ease' must hold numbers"
