"""JSON, Markdown and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from html import unescape
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from figures import samples
from generated import examples
from howsure.core.records import Curve, Record, ResultTable
from howsure.report.document import Document, VerdictLine
from howsure.report.grids import MAX_ROWS
from howsure.report.plain import FORMAT, escape, to_csv, to_json, to_markdown
from howsure.report.questions import document_of

QUIET = examples(300)
READER = MarkdownIt("commonmark", {"html": True}).enable("table")


def refuse(constant: str) -> Any:
    """Strict JSON knows no NaN."""
    raise AssertionError(constant)


def read(content: Document) -> Any:
    """The JSON form, read strictly."""
    return json.loads(to_json(content), parse_constant=refuse)


def test_json_holds_every_record_curve_and_table() -> None:
    content = samples.content()
    assert any(curve.hover for curve in content.curves)
    whole = read(content)
    assert whole["format"] == FORMAT
    assert whole["command"] == content.command
    assert [line["text"] for line in whole["verdict"]] == [line.text for line in content.lines]
    assert whole["records"] == [
        {**record.as_dict(), "options": dict(record.options)} for record in content.records
    ]
    for plain, curve in zip(whole["curves"], content.curves, strict=True):
        assert plain["x"] == curve.x.tolist()
        assert plain["y"] == curve.y.tolist()
        assert plain["name"] == curve.name
        assert plain["hover"] == {name: part.tolist() for name, part in curve.hover.items()}
    for plain, table in zip(whole["tables"], content.tables, strict=True):
        assert list(plain["columns"]) == list(table.columns)
        assert all(len(column) == len(table) for column in plain["columns"].values())


def test_json_writes_what_is_missing_and_what_is_infinite() -> None:
    content = document_of(
        title="t",
        records=(Record(metric="a", value=math.nan, upper=math.inf, options={"k": math.nan}),),
        curves=(Curve(name="c", x=np.array([0.0, 1.0]), y=np.array([math.nan, -math.inf])),),
        tables=(
            ResultTable(
                name="t",
                columns={
                    "f": np.array([math.nan, math.inf, 1.5], dtype=np.float32),
                    "o": np.array([None, True, np.datetime64("2026-01-02")], dtype=object),
                },
            ),
        ),
    )
    whole = read(content)
    assert whole["records"][0]["value"] is None
    assert whole["records"][0]["upper"] == "Infinity"
    assert whole["records"][0]["options"] == {"k": None}
    assert whole["curves"][0]["y"] == [None, "-Infinity"]
    assert whole["curves"][0]["lower"] is None
    assert whole["tables"][0]["columns"]["f"] == [None, "Infinity", 1.5]
    assert whole["tables"][0]["columns"]["o"] == [None, True, "2026-01-02"]


@pytest.mark.slow
@QUIET
@given(st.text())
def test_texts_come_back_from_json(text: str) -> None:
    content = document_of(title=text, records=(Record(metric=text, value=1.0, group=text),))
    whole = json.loads(to_json(content).encode("utf-8"))
    assert whole["title"] == re.sub("[\x7f-\x9f]", "\ufffd", text)


def test_csv_holds_every_record() -> None:
    content = samples.content()
    rows = list(csv.DictReader(io.StringIO(to_csv(content))))
    assert len(rows) == len(content.records)
    for row, record in zip(rows, content.records, strict=True):
        assert row["metric"] == record.metric
        assert row["value"] == ("" if math.isnan(record.value) else repr(record.value))
        assert row["direction"] == record.direction.value
    assert rows[4]["options"] == "levels=99.0"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])
def test_formulas_are_kept_from_running_in_a_spreadsheet(start: str) -> None:
    text = f"{start}HYPERLINK(1)"
    record = Record(metric="m", value=-1.0, group=text, model=text, reason=text)
    row = next(csv.DictReader(io.StringIO(to_csv(document_of(title="t", records=(record,))))))
    assert row["group"] == row["model"] == row["reason"] == "'" + text.replace("\r", "\n")
    assert row["value"] == "-1.0"


@pytest.mark.slow
@QUIET
@given(st.text())
def test_no_cell_of_text_starts_a_formula(text: str) -> None:
    record = Record(metric=text, value=1.0, options={text: text})
    stream = io.StringIO(to_csv(document_of(title="t", records=(record,))), newline="")
    rows = list(csv.reader(stream))
    assert len(rows) == 2
    assert all(cell[:1] not in {"=", "+", "@", "\t", "\r"} for cell in rows[1])


@QUIET
@given(st.text(alphabet=st.sampled_from(list("ab1 <>&\\`*_[]()#+-.!|~$=:\"'\n\t/{}")), max_size=40))
def test_markdown_shows_hostile_text_as_it_is(text: str) -> None:
    html = READER.render(escape(text))
    plain = " ".join(text.split())
    assert re.fullmatch(r"(<p>.*</p>\n)?", html, re.DOTALL)
    assert unescape(html.removeprefix("<p>").removesuffix("</p>\n")) == plain
    assert "<" not in html.removeprefix("<p>").removesuffix("</p>\n")


@QUIET
@given(st.text(alphabet=st.sampled_from(list("ab <>&\\`*_[]()|\n!")), max_size=30))
def test_hostile_text_breaks_no_table_of_markdown(text: str) -> None:
    record = Record(metric="m", value=1.0, model=text)
    content = document_of(title="t", records=(record, replace(record, model="other")))
    tokens = READER.parse(to_markdown(content))
    assert sum(token.type == "tr_open" for token in tokens) == 2
    assert sum(token.type == "td_open" for token in tokens) == 4  # a measure of two models
    assert not [token for token in tokens if token.type == "html_block"]


@QUIET
@given(st.text(alphabet=st.sampled_from(list("ab <>&\\`*_[]()|\n!=\"'")), max_size=30))
def test_hostile_commands_stay_code_or_text(text: str) -> None:
    line = VerdictLine("s", "info", command=f"howsure assess '{text}' <img>")
    tokens = READER.parse(to_markdown(document_of(title="t", lines=(line,), command=line.command)))
    within = [part for token in tokens for part in token.children or ()]
    assert not [token for token in (*tokens, *within) if token.type.startswith("html")]
    if "\n" not in text:
        assert line.command in [part.content for part in within if part.type == "code_inline"]


def test_markdown_holds_the_page_and_says_what_it_leaves_out() -> None:
    content = document_of(
        title="t",
        lines=samples.content().lines,
        findings=samples.findings(),
        records=samples.records() + samples.group_records(500),
        tables=(samples.groups(400),),
        command="howsure assess a.csv",
    )
    text = to_markdown(content)
    for line in content.lines:
        assert escape(line.text, inside=True) in text
    assert f"The {MAX_ROWS} of 500 farthest from their target" in text
    assert f"The worst {MAX_ROWS} of 400." in text
    assert "no distribution was given" in text
    for entry in content.glossary:
        assert escape(entry.formula) in text
    tokens = READER.parse(text)
    rows = sum(token.type == "tr_open" for token in tokens)
    assert rows > 2 * MAX_ROWS
    code = [token.content for token in tokens if token.type == "fence"]
    assert code == [content.command + "\n"]


def test_a_command_with_backticks_stays_in_its_fence() -> None:
    command = "howsure assess '```\n# x\n````.csv'"
    tokens = READER.parse(to_markdown(document_of(title="t", command=command)))
    assert [token.content for token in tokens if token.type == "fence"] == [command + "\n"]
    assert sum(token.type == "heading_open" for token in tokens) == 2
