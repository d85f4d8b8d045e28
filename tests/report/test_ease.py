"""A column of ease gives T-CV, T-SS and their kin a place in an assessment."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from howsure import LabelSets, Options, Table, assess
from howsure.cli.main import app
from howsure.core.errors import HowsureError
from howsure.stats.permutation import Resampling
from howsure.topics.adaptivity.association import t_ss
from howsure.topics.adaptivity.coverage import t_cv


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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("cells", [3, 20, 100])
def test_cells_are_as_many_as_are_asked_for(cells: int) -> None:
    """T-CV and T-SS by hand: rows sorted by ease and cut, and a line through the cells."""
    table = rows(600)
    found = assess(table, options=Options(cells=cells, trials=False))
    order = np.argsort(table["ease"])
    hits = (np.abs(table["y"]) <= table["upper_90"])[order]
    width, error = 2 * table["upper_90"][order], np.abs(table["y"])[order]
    ends = [cell * 600 // cells for cell in range(cells + 1)]
    cut = [slice(*pair) for pair in pairwise(ends)]
    gaps = [abs(hits[cell].mean() - 0.9) for cell in cut]
    assert found.value("t_cv") == pytest.approx(max(gaps), abs=1e-12)
    r = np.corrcoef(*([each[cell].mean() for cell in cut] for each in (width, error)))[0, 1]
    assert found.value("t_ss") == pytest.approx(np.sign(r) * r**2, abs=1e-9)
    for record in found.records:
        if record.metric in ("t_cv", "t_ss"):
            assert record.options["cells"] == cells
    (shown,) = [table for table in found.tables if table.name == "adaptivity_cells"]
    assert len(shown.columns["n"]) == cells


@pytest.mark.slow
def test_more_cells_show_more_by_chance() -> None:
    nulls = []
    for cells in (20, 50, 100):
        found = assess(rows(600), options=Options(cells=cells, trials=False))
        (record,) = [record for record in found.records if record.metric == "t_cv"]
        nulls.append(record.null)
    assert nulls == sorted(nulls)
    assert found.value("t_cv") != assess(rows(600), options=Options(trials=False)).value("t_cv")


@pytest.mark.parametrize(
    ("cells", "n", "words"),
    [
        (2, 600, "cells must be a whole number of at least 3, got 2"),
        (121, 600, "cells must be between 3 and the 120 that 600 rows fill, 5 each, got 121"),
        (3, 12, "cells need at least 15 rows, got 12"),
        (20.5, 600, "cells must be a whole number"),
        ("20", 600, "cells must be a whole number"),
    ],
)
def test_cells_that_cannot_be_are_refused(cells: Any, n: int, words: str) -> None:
    with pytest.raises(HowsureError, match=words):
        assess(rows(n), options=Options(cells=cells, trials=False))


def test_cells_need_an_ease() -> None:
    table = rows()
    del table["ease"]
    with pytest.raises(HowsureError, match="cells needs the ease score"):
        assess(table, options=Options(cells=20, trials=False))


def test_the_command_takes_cells(tmp_path: Path) -> None:
    table = rows(100)
    path = tmp_path / "t.csv"
    lines = [",".join(map(repr, row.tolist())) for row in np.array([*table.values()]).T]
    path.write_text("\n".join([",".join(table), *lines]), encoding="utf-8")
    given = CliRunner().invoke(app, ["assess", str(path), "--cells", "10", "--json"])
    assert given.exit_code == 0, given.output
    records = {record["metric"]: record for record in json.loads(given.stdout)["records"]}
    assert records["t_cv"]["options"]["cells"] == 10
    assert records["t_cv"]["value"] == assess(table, options=Options(cells=10, trials=False)).value(
        "t_cv"
    )
    for cells, words in (("2", "--cells must be a whole number of at least 3"), ("21", "the 20")):
        refused = CliRunner().invoke(app, ["assess", str(path), "--cells", cells])
        assert refused.exit_code != 0
        assert words in str(refused.exception or refused.output)


@pytest.mark.parametrize("name", ["ease", "age"])
def test_an_input_named_ease_serves_and_others_do_not(name: str) -> None:
    table = rows()
    bounds = table["lower_90"], table["upper_90"]
    found = assess(
        Table(
            table["y"], bounds, features={name: table["ease"]}, coverage=0.9, point=table["point"]
        ),
        options=Options(trials=False),
    )
    if name == "ease":
        assert found.value("T-CV") > 0
        assert found.value("t_ss") > 0.7
        html = found.to_html()
        assert "Coverage by ease" in html
        assert "Size by difficulty" in html
    else:
        assert not [record for record in found.records if record.metric in ("t_cv", "t_ss")]


def test_label_sets_are_measured_as_far_as_they_can_be() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 300)
    members = rng.random((300, 4)) < 0.7
    found = assess(
        y,
        LabelSets(members, 0.7),
        features={"ease": rng.random(300)},
        options=Options(trials=False),
    )
    assert found.value("t_cv") > 0
    (slope,) = (record for record in found.records if record.metric == "t_ss")
    assert "class probabilities" in slope.reason


def test_ease_that_is_no_number_has_a_reason() -> None:
    table = rows(60)
    bounds = table["lower_90"], table["upper_90"]
    words = np.where(np.arange(60) % 2, "easy", "hard")
    found = assess(
        table["y"], bounds, features={"ease": words}, coverage=0.9, options=Options(trials=False)
    )
    (record,) = (record for record in found.records if record.metric == "t_cv")
    assert record.reason == "the column 'ease' must contain numbers"


@pytest.mark.rate
@pytest.mark.few_draws
def test_any_column_may_be_the_ease(tmp_path: Path) -> None:
    table = rows(300)
    table["stability"] = table.pop("ease")
    (tmp_path / "t.csv").write_text(
        "\n".join(
            [
                ",".join(table),
                *(",".join(map(repr, row.tolist())) for row in np.array([*table.values()]).T),
            ]
        ),
        encoding="utf-8",
    )
    page = tmp_path / "page.json"
    command = ["assess", str(tmp_path / "t.csv"), "--ease", "stability", "--no-trials"]
    given = CliRunner().invoke(app, [*command, "-o", str(page)])
    assert given.exit_code == 0, given.output
    held = json.loads(page.read_text(encoding="utf-8"))
    told = {record["metric"]: record["value"] for record in held["records"]}
    names = {finding["id"] for finding in held["findings"]}
    assert "ease" in names
    bounds = table["lower_90"], table["upper_90"]
    for ease in (
        {"ease": table["stability"]},
        {"ease": "s", "features": {"s": table["stability"]}},
    ):
        data = Table(table["y"], bounds, coverage=0.9, point=table["point"], **ease)
        assert assess(data, options=Options(trials=False)).value("t_cv") == told["t_cv"]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"ease": "b", "features": {"a": np.ones(300)}}, "ease must name a column of f.*, got 'b'"),
        ({"ease": np.r_[np.nan, np.ones(299)]}, "ease must contain finite numbers"),
        ({"ease": np.ones(7)}, "ease must have 300 rows"),
    ],
)
def test_an_ease_that_is_none_is_named(said: dict[str, Any], wanted: str) -> None:
    table = rows(300)
    with pytest.raises(HowsureError, match=wanted):
        assess(Table(table["y"], table["point"], **said))


def test_a_table_whose_ease_is_text_is_refused_where_it_is_named() -> None:
    table: dict[str, Any] = {**rows(30), "word": ["easy", "hard"] * 15}
    with pytest.raises(HowsureError, match="ease must be a column of numbers, but 'word'"):
        assess(Table(table, ease="word"))
    with pytest.raises(HowsureError, match="cells are missing: 1 in 'ease'"):
        assess({**table, "ease": [None, *[1.0] * 29]})


def test_labels_serve_as_y() -> None:
    p = np.tile([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], (30, 1))
    y = np.array(["cat", "emu", "cat", "cat"] * 15)
    names = ["cat", "dog", "emu"]
    sets = LabelSets.likeliest(p, 0.9, names)
    known = assess(np.array([names.index(one) for one in y]), sets, options=Options(trials=False))
    columns = {f"p_{name}": p[:, place] for place, name in enumerate(names)}
    assert assess(y, sets, options=Options(trials=False)).numbers() == known.numbers()
    options = Options(trials=False)
    for found in (
        assess(y, columns, coverage=0.9, options=options),
        assess({"y": y, **columns}, coverage=0.9, options=options),
    ):
        assert found.value("set_size") == known.value("set_size")
        assert found.value("set_deficit") == known.value("set_deficit")
    with pytest.raises(HowsureError, match=r"labels of the classes .* got 'bird' \(first at row 1"):
        assess(np.where(y == "emu", "bird", y), sets)
    with pytest.raises(HowsureError, match=r"names no classes: .* LabelSets\(…, labels=…\)"):
        assess(y, LabelSets.likeliest(p, 0.9))
