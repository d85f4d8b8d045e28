"""What a page shows of records and tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from figures import samples
from howsure.core.records import Notion, Record, ResultTable
from howsure.report import grids
from howsure.report.document import (
    Cell,
    Column,
    Document,
    GlossaryEntry,
    Grid,
    GridRows,
    Section,
)
from howsure.report.grids import (
    MAX_ROWS,
    footnoted,
    group_grid,
    groups_beside,
    record_grid,
    split_records,
    table_grid,
    unanswered_grid,
)


def test_records_stand_under_their_questions_in_the_order_of_the_glossary() -> None:
    grid = record_grid(samples.content().records, samples.glossary())
    assert grid is not None
    asked = list(dict.fromkeys(entry.question for entry in samples.glossary()))
    assert [part.title for part in grid.parts] == asked
    titles = [row[0].text for part in grid.parts for row in part.rows]
    assert titles == [e.title for e in samples.glossary() if e.name not in {"log_score", "pinball"}]


def test_without_questions_records_stand_under_their_notions() -> None:
    records = (
        Record(metric="a", value=1.0),
        Record(metric="b", value=1.0, notion=Notion.LOCAL),
        Record(metric="c", value=1.0),
    )
    grid = record_grid(records)
    assert grid is not None
    assert [(p.title, len(p.rows)) for p in grid.parts] == [
        ("Marginal measures", 2),
        ("Local measures", 1),
    ]


def test_columns_that_would_be_empty_are_left_out() -> None:
    grid = record_grid((Record(metric="a", value=1.0, n=3.0),))
    assert grid is not None
    assert [column.title for column in grid.columns] == [
        "Measure",
        "Value",
        "Interval",
        "n",
        "Better",
    ]
    full = record_grid(samples.content().records, samples.glossary())
    assert full is not None
    assert [column.title for column in full.columns] == [
        "Measure",
        "Value",
        "95 % interval",
        "Perfect model",
        "n",
        "Better",
        "Units",
    ]


def test_models_are_columns() -> None:
    names = ("a", "b", "c")
    records = [record for name in names for record in samples.records(name)]
    grid = record_grid([*records, samples.record("rmse", 1.5, model="b")])
    assert grid is not None
    assert [column.title for column in grid.columns] == ["Measure", *names, "Better"]
    rows = {row[0].text: row for part in grid.parts for row in part.rows}
    assert [cell.text for cell in rows["Root mean squared error"][1:4]] == ["", "1.5", ""]
    assert all(cell.text for cell in rows["Mean absolute error"][1:4])


def test_groups_of_models_stand_side_by_side_the_worst_of_any_first() -> None:
    tables = [samples.groups(12, model="a"), samples.groups(30, model="b")]
    grid = groups_beside(tables, limit=20)
    assert [column.title for column in grid.columns][-2:] == ["a", "b"]
    assert grid.size == 20
    assert grid.notes == ("The worst 20 of 30.",)
    first = min(
        (float(u), str(g))
        for table in tables
        for u, g in zip(table.columns["upper"], table.columns["group"], strict=True)
    )
    assert first[1] in grid.parts[0].rows[0][0].text
    (alone,) = groups_beside(tables[:1]).columns[-1:]
    assert alone.title == "Coverage"


def test_scores_of_two_kinds_of_prediction_are_two_rows_each_with_its_kind() -> None:
    """CRPS of three quantiles is not that of a distribution, and does not stand beside it."""
    of_quantiles = samples.record("crps", 0.4, model="q", reason="from quantiles: truncated")
    other = samples.record("mae", 0.5, model="q", reason="on 20 rows")
    laws = [samples.record(name, 0.5, model="law") for name in ("crps", "mae")]
    grid = record_grid([*laws, of_quantiles, other])
    assert grid is not None
    rows = [[(cell.text, cell.small) for cell in row[:3]] for row in grid.parts[0].rows]
    assert [(row[0], row[1][0], row[2][0]) for row in rows] == [
        (("CRPS", ""), "0.5", ""),
        (("Mean absolute error", ""), "0.5", "0.5"),
        (("CRPS", "from quantiles: truncated"), "", "0.4"),
    ]


def test_a_row_says_what_decided_the_number() -> None:
    grid = record_grid(samples.content().records, samples.glossary())
    assert grid is not None
    rows = {row[0].text: row for part in grid.parts for row in part.rows}
    assert rows["Empirical coverage (PICP)"][0].small == "at 90 %"
    told = "Measures of uncertainty are computed from intervals unless stated otherwise."
    assert told in grid.notes
    assert rows["Kendall τ-b"][0].small == "on 20,000 rows drawn from all"
    assert rows["Miscalibration area"][0].small == "levels 99"


def test_sources_are_named_where_few_measures_share_one() -> None:
    records = samples.records()[:2]
    grid = record_grid([replace(record, source="samples") for record in records])
    assert grid is not None
    assert not grid.notes
    assert all("from samples" in row[0].small for part in grid.parts for row in part.rows)


def test_a_remark_of_many_cells_stands_once_below() -> None:
    many = "intervals give only the probability that y is inside"
    few = "y is the same in all rows"
    remarks = [("by range", many), (many,), ("at 90 %", few), (many,), (few,), ("at 90 %",)]
    rows = tuple(
        (Cell(text="m").remarked(("", each) for each in told), Cell(text=many)) for told in remarks
    )
    columns = (Column(title="Measure"), Column(title="reason"))
    grid = Grid(title="t", columns=columns, parts=(GridRows(rows=rows),))
    noted = footnoted(grid)
    (part,) = noted.parts
    assert [row[0].small for row in part.rows] == [
        "by range ¹",
        "¹",
        f"at 90 % · {few}",
        "¹",
        few,
        "at 90 %",
    ]
    assert all(row[1].text == many for row in part.rows)
    assert noted.footnotes == (f"¹\N{NO-BREAK SPACE}{many}",)
    (part,) = footnoted(grid, reasons=[1]).parts
    assert {row[1].text for row in part.rows} == {"¹"}


def test_footnotes_are_in_every_form_of_a_report() -> None:
    rows = tuple((Cell(text=f"m{place}", small="does not depend on y"),) for place in range(3))
    grid = Grid(title="t", columns=(Column(title="Measure"),), parts=(GridRows(rows=rows),))
    section = Section(title="Numbers", grids=(footnoted(grid),))
    document = Document(title="t", opening=Section(title=""), sections=(section,))
    for form in (document.to_html(), document.to_markdown()):
        assert form.count("does not depend on y") == 1


def test_measures_of_groups_are_told_from_tests_on_groups() -> None:
    test = Record(metric="groups_differ", value=0.01, group="region")
    whole, grouped = split_records((*samples.records(), *samples.group_records(3), test))
    assert test in whole
    assert len(grouped) == 3
    assert all(not math.isnan(record.value) for record in whole)


def test_groups_farthest_from_their_target_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def at(value: float, error: float, group: str) -> Record:
        return samples.record("c", value, error, group=group, target=0.9)

    records = (
        Record(metric="c", value=0.9),
        at(0.8, 0.1, "far but unsure"),
        at(0.85, 0.01, "far"),
        at(0.9, 0.01, "near"),
        replace(at(0.5, 0.01, "no target"), target=math.nan),
        at(0.7, 0.0, "sure"),
    )
    grid = group_grid(records)
    assert grid is not None
    order = [row[1].text for row in grid.parts[0].rows]
    assert order == ["sure", "far", "far but unsure", "near", "no target"]
    monkeypatch.setattr(grids, "MAX_ROWS", 2)
    cut = group_grid(records)
    assert cut is not None
    assert cut.size == 2
    assert "The 2 of 5 farthest from" in cut.notes[0]


def test_unanswered_measures_are_gathered_by_reason() -> None:
    lost = [
        Record(metric="a", value=math.nan, reason="no sd"),
        Record(metric="bee", value=math.nan, reason="no sd", coverage=0.5),
        Record(metric="bee", value=math.nan, reason="no sd", coverage=0.5, group="g"),
        Record(metric="see", value=math.nan),
    ]
    entry = GlossaryEntry(name="a", title="The A")
    grid = unanswered_grid(lost, (entry,))
    assert grid is not None
    assert [[cell.text for cell in row] for row in grid.parts[0].rows] == [
        ["no sd", "The A, Bee at 50 % (×2)"],
        ["no reason was given", "See"],
    ]


def test_groups_are_listed_worst_first_and_other_tables_as_given() -> None:
    table = samples.groups(300)
    grid = table_grid(table)
    assert grid.size == MAX_ROWS
    uppers = [float(row[5].key) for row in grid.parts[0].rows]
    assert uppers == sorted(table.columns["upper"])[:MAX_ROWS]
    assert grid.notes[-1].startswith(f"The worst {MAX_ROWS} of 300 rows.")
    other = table_grid(samples.worst_rows(5))
    assert [row[0].text for row in other.parts[0].rows] == ["5", "42", "79", "116", "153"]


def test_names_of_the_inputs_columns_are_kept_as_they_are() -> None:
    columns = {"x_1": np.array([1.0]), "mean_width": np.array([1.0]), "p_value": np.array([0.5])}
    told = [c.title for c in table_grid(ResultTable(name="worst_rows", columns=columns)).columns]
    assert told == ["x_1", "mean_width", "p_value"]
    own = ResultTable(name="map", columns=columns, labels={"x_1": "the first"})
    assert [c.title for c in table_grid(own).columns] == ["the first", "Mean width", "p-value"]


def test_measures_in_tables_bear_their_titles() -> None:
    grid = table_grid(samples.models())
    assert [row[0].text for row in grid.parts[0].rows][:2] == ["CRPS", "Interval score (Winkler)"]


def test_tables_of_congruence_have_titles_and_the_map_is_listed_worst_first() -> None:
    whole, ends, tree = (table_grid(table) for table in samples.congruence("net"))
    assert [grid.title.removesuffix(" · net") for grid in (whole, ends, tree)] == [
        "Congruence error of each row",
        "Rows of the highest and the lowest CCE",
        "Which inputs go with the error",
    ]
    titles = [column.title for column in whole.columns]
    assert titles == ["Row", "first principal coordinate", "Second", "CCE", "Perfect", "p-value"]
    shown = [float(row[3].key) for row in whole.parts[0].rows]
    assert shown == sorted(shown, reverse=True)
    assert [column.title for column in ends.columns] == ["kind", "row", "CCE", "wind_speed"]
    assert tree.columns[-1].title == "CCE on the rows that grew the tree"


def test_a_long_map_says_that_it_lists_the_worst() -> None:
    grid = table_grid(samples.congruence(count=500)[0])
    assert grid.size == MAX_ROWS
    assert grid.notes[-1].startswith(f"The worst {MAX_ROWS} of 500 rows.")
