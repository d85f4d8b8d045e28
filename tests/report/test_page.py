"""The HTML page, read as text; `tests/browser` looks at it in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from extras import needs
from figures import samples
from howsure.core.records import Direction, Record, ResultTable
from howsure.figures import figures_of
from howsure.figures.telling import describe_figure
from howsure.report.document import Document, GlossaryEntry, Section, VerdictLine, slug
from howsure.report.grids import MAX_ROWS
from howsure.report.page import render
from howsure.report.page.figures import MAX_ROWS_OF_MAP, block_of, packed
from howsure.report.questions import STEP, document_of, state_grid

needs("vl_convert")
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=pwned()>\"'`"


class Elements(HTMLParser):
    """Every element with its attributes, every text outside scripts, every script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            given, text = self.scripts[-1]
            self.scripts[-1] = (given, text + data)
        elif self._inside != "style":
            self.texts.append(data)

    def all(self, tag: str) -> Iterator[dict[str, str | None]]:
        """Attributes of every element of one kind."""
        return (given for name, given in self.found if name == tag)


@pytest.fixture(scope="module")
def page() -> str:
    """The report with everything in it."""
    return samples.content().to_html()


def specs_of(elements: Elements) -> list[dict[str, Any]]:
    """The drawings of a page."""
    return [
        json.loads(zlib.decompress(base64.b64decode(text)))
        for given, text in elements.scripts
        if str(given.get("id", "")).startswith("spec-")
    ]


def sentences(page: str) -> list[str]:
    """Every text of a page, with spaces at which a line may end."""
    return [text.replace("\N{NO-BREAK SPACE}", " ").strip() for text in Elements(page).texts]


def test_no_line_ends_between_a_number_and_its_sign() -> None:
    line = VerdictLine(text="The 90 % intervals cover 83.1 % (p = 0.01).")
    made = Document(title="t", opening=Section(title="", lines=(line,))).to_html()
    assert "The 90\xa0% intervals cover 83.1\xa0% (p\xa0=\xa00.01)." in made


def test_everything_of_the_content_is_on_the_page(page: str) -> None:
    content = samples.content()
    text = " ".join(sentences(page))
    assert content.title in text
    assert content.command in text
    for line in content.lines:
        assert line.text in text
        assert line.command in text
        assert line.question in text
    for entry in content.glossary:
        assert entry.title in text
        assert entry.formula in text
    for table in content.tables:
        for name in table.columns["group"] if table.name == "groups" else ():
            assert str(name) in text
    for name, fact in content.facts.items():
        assert name in text
        assert fact in text
    assert "0.8312" in text
    assert "± 0.0034" in text
    assert "0.825 to 0.838" in text
    assert "no distribution was given" in text


def test_the_verdict_comes_first_then_a_section_a_question_then_what_they_rest_on(
    page: str,
) -> None:
    ids = [str(given["id"]) for given in Elements(page).all("section")]
    sections = [section.anchor for section in samples.content().sections]
    assert ids == ["verdict", *sections, "glossary", "reproduce"]
    assert sections.index("section-coverage") < sections.index("section-groups")
    assert sections[-2:] == ["section-numbers", "section-silent"]


def test_a_section_names_each_model_once() -> None:
    lines = [
        VerdictLine(text, "bad", question, model=model)
        for model in ("north & south", "b")
        for question, text in (("Is it wide?", "It is narrow."), ("Is it centred?", "It is low."))
    ]
    section = Section(title="Q", lines=(VerdictLine("b wins.", "good"), *lines))
    document = Document(title="t", opening=Section(title=""), sections=(section,))
    page = document.to_html()
    part = page[page.index('<section id="section-q"') :]
    assert part.count("north &amp; south") == part.count(">b</h3>") == 1
    assert part.count("<p>It is narrow.</p>") == 2
    markdown = document.to_markdown()
    assert markdown.count("**north &amp; south**") == markdown.count("**b**") == 1
    assert markdown.count("- ✗ Is it wide?: It is narrow.") == 2
    single = replace(document, sections=(replace(section, lines=(lines[0], lines[2])),))
    assert "<h3>b</h3>" not in single.to_html()
    assert single.to_html().count("<p>b: It is narrow.</p>") == 1


def test_no_sentence_stands_twice_but_for_the_first_screen(page: str) -> None:
    content = samples.content()
    told = sentences(page)
    first = {line.text for line in content.opening.lines}
    for line in content.lines:
        placed = any(line in section.lines for section in content.sections)
        assert told.count(line.text) == (line.text in first) + placed


def test_the_first_screen_shows_states_and_calibration_with_a_switch(page: str) -> None:
    (first, *_) = samples.content().opening.choices
    labels = [option.label for option in first.options]
    assert labels == ["Intervals", "Quantiles", "PIT histogram", "PIT ECDF"]
    opening = page[page.index('<section id="verdict"') : page.index('<section id="section-')]
    elements = Elements(opening)
    assert len([g for g in elements.all("input") if g.get("type") == "radio"]) == 4
    signs = [g for g in elements.all("span") if "sign" in str(g.get("class"))]
    assert {str(g["aria-label"]) for g in signs} >= {
        "fault",
        "possible problem",
        "negligible",
        "good",
    }


@pytest.mark.parametrize("numeric", [False, True])
def test_only_a_long_table_of_numbers_stands_below_the_figure(numeric: bool) -> None:
    content = samples.content()
    (grid,) = content.opening.grids[:1]
    (part,) = grid.parts
    long = replace(
        grid,
        columns=tuple(replace(column, numeric=numeric) for column in grid.columns),
        parts=(replace(part, rows=part.rows[:1] * 9),),
    )
    page = replace(content, opening=replace(content.opening, grids=(long,))).to_html()
    assert (page.index(" states") > page.index('class="shown"')) == numeric


def test_tables_of_one_name_are_told_apart_when_read_aloud() -> None:
    grid = samples.content().sections[-1].grids[0]
    sections = (Section(title="a", grids=(grid,)), Section(title="b", grids=(grid,)))
    made = Document(title="t", opening=Section(title=""), sections=sections).to_html()
    named = [g["aria-label"] for g in Elements(made).all("div") if g.get("role") == "region"]
    assert named == [f"Table: {grid.title}", f"Table: {grid.title} (2)"]


def test_there_is_one_drawing_a_figure(page: str) -> None:
    elements = Elements(page)
    content = samples.content()
    parts = (content.opening, *content.sections)
    figures = [f for part in parts for c in part.choices for o in c.options for f in o.figures]
    assert len(specs_of(elements)) == len(figures) > 10
    drawn = [g for g in elements.all("div") if g.get("data-spec")]
    for given, figure in zip(drawn, figures, strict=True):
        assert given["aria-label"] == f"{figure.title}. {describe_figure(figure)} " + (
            "Colour: CCE. " * (figure.shades is not None) + "The data follow as a table."
        )
    names = [figure.name for figure in figures]
    assert sorted(names) == sorted(f.name for f in figures_of(content.curves, content.tables))


def test_the_page_asks_the_network_for_nothing(page: str) -> None:
    elements = Elements(page)
    for tag, given in elements.found:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form", "img"}
        assert "src" not in given
        assert "srcset" not in given
        assert str(given.get("href") or "#").startswith("#")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_only_the_named_scripts_may_run(page: str) -> None:
    elements = Elements(page)
    policy = next(
        str(given["content"])
        for given in elements.all("meta")
        if given.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    allowed = policy[policy.index("script-src") : policy.index("style-src")]
    assert "unsafe" not in allowed
    run = [text for given, text in elements.scripts if given.get("type") != "text/plain"]
    assert len(run) == 1
    (library,) = [text for given, text in elements.scripts if given.get("id") == "library"]
    whole = [zlib.decompress(base64.b64decode(library)), run[0].encode()]
    digests = [base64.b64encode(hashlib.sha256(code).digest()).decode() for code in whole]
    assert re.findall(r"'sha256-([^']+)'", allowed) == digests
    handlers = [name for _, given in elements.found for name in given if name.startswith("on")]
    assert handlers == []


def test_the_page_is_small_and_the_same_every_time(page: str) -> None:
    assert len(page.encode()) < 1_500_000
    assert samples.content().to_html() == page


def hostile_content(text: str = HOSTILE) -> Document:
    """A report in which every text is hostile."""
    table = ResultTable(
        name=text,
        columns={text: np.array([text, text], dtype=object), "n": np.array([1.0, 2.0])},
        labels={"n": text},
        model=text,
        notes=text,
    )
    record = samples.record(text, 1.0, 0.1, units=text, model=text, source=text, reason=text)
    grouped = replace(record, group=text)
    found = [samples.finding(name, "bad", text) for name in ("coverage", "groups", "comparison")]
    found = [replace(one, where=text, model=text) for one in found]
    made = document_of(
        title=text,
        lines=[
            *(VerdictLine(text, one.state, one.question, text, about=one.id) for one in found),
            VerdictLine(text, "info", STEP, text, about=STEP),
        ],
        findings=found,
        records=(
            record,
            grouped,
            replace(record, model="b", options={text: text}),
            Record(metric=text, value=math.nan, reason=text, model=text),
        ),
        curves=tuple(
            replace(curve, notes=text, band=text, x_label=text, y_label=text, hover={text: curve.x})
            for curve in (
                samples.calibration(text),
                samples.calibration(text + "2"),
                replace(samples.error_by_width(), name=text),
                *samples.risk_coverage(text),
            )
        ),
        tables=(
            table,
            samples.groups(3, model=text, names=[text, text, "c"]),
            samples.models(text, "b"),
            samples.worst_rows(column=text, value=text),
            samples.characteristic(text)[2],
            *samples.hostile_congruence(text),
        ),
        command=text,
        facts={text: text},
    )
    entry = GlossaryEntry(
        name=text,
        title=text,
        meaning=text,
        formula=text,
        source=text,
        direction=text,
        notion=text,
        units=text,
        question=text,
    )
    return replace(made, glossary=(entry,))


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [HOSTILE, "{{ 7*7 }}{% raw %}", "]]><!--<script>", "javascript:alert(1)", "a\r\nb\tc"]
)
def test_hostile_text_adds_no_element_and_no_attribute(text: str) -> None:
    plain = Elements(hostile_content("q" * len(text)).to_html())
    elements = Elements(hostile_content(text).to_html())
    assert [tag for tag, _ in elements.found] == [tag for tag, _ in plain.found]
    assert [sorted(given) for _, given in elements.found] == [
        sorted(given) for _, given in plain.found
    ]
    shown = " ".join(" ".join(elements.texts).split())
    assert " ".join(text.split()) in shown
    for given, source in elements.scripts:
        if given.get("type") == "text/plain":
            assert re.fullmatch("[A-Za-z0-9+/=]+", source)
    assert specs_of(elements)


def test_stray_characters_become_replacement_characters() -> None:
    page = hostile_content("a\ud800\x00\x1bb").to_html()
    assert "a\ufffd\ufffd\ufffdb" in page
    page.encode("utf-8")


@pytest.mark.parametrize("value", ["</script>", "<!--", "a&b", "\u2028", "é"])
def test_packed_text_is_exact_and_holds_no_markup(value: str) -> None:
    text = packed(json.dumps({"k": value}))
    assert re.fullmatch("[A-Za-z0-9+/=]+", text)
    assert json.loads(zlib.decompress(base64.b64decode(text))) == {"k": value}


def test_without_vl_convert_the_tables_remain_and_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    bare = samples.content().to_html()
    elements = Elements(bare)
    assert 'pip install "howsure[report]"' in " ".join(elements.texts)
    assert len(bare) < 400_000
    assert not [g for g in elements.all("div") if g.get("data-spec")]
    assert len(list(elements.all("table"))) == len(list(Elements(page).all("table")))
    data = [given for given in elements.all("details") if given.get("class") == "data"]
    assert data
    assert all("open" in given for given in data)
    monkeypatch.undo()
    assert render._drawing_library()  # its absence is not remembered


def test_thousands_of_groups_are_limited_and_said() -> None:
    content = document_of(
        title="t",
        records=samples.records() + samples.group_records(3000),
        tables=(samples.groups(3000), samples.worst_rows(1000)),
    )
    page = content.to_html()
    text = " ".join(Elements(page).texts)
    assert f"The worst {MAX_ROWS} of 3,000." in text
    assert f"The worst {MAX_ROWS} of 1,000 rows." in text
    assert f"The {MAX_ROWS} of 3,000 farthest from their target" in text
    assert len(page.encode()) < 1_500_000
    assert page.count("<tr>") < 4 * MAX_ROWS + 500


def test_the_size_of_a_region_is_left_to_its_sentence() -> None:
    made = [samples.finding(name, "bad", f"{name}.") for name in ("coverage", "region")]
    grid = state_grid(made, (), {})
    assert grid is not None
    shown = {row[0].text: row[1] for row in grid.parts[0].rows}
    assert shown["Coverage"].small
    assert shown["Input regions"].tone == "bad"
    assert not shown["Input regions"].small


def test_answers_that_are_folded_are_counted() -> None:
    for number, words in ((7, "1 more answer<"), (9, "3 more answers<"), (6, "")):
        lines = tuple(VerdictLine(f"Line {place}.") for place in range(number))
        page = Document(
            title="t", opening=Section(title=""), sections=(Section(title="Q", lines=lines),)
        ).to_html()
        assert ("more answer" in page) == bool(words)
        assert words in page


def test_an_empty_report_is_a_page_all_the_same() -> None:
    page = Document(title="nothing", opening=Section(title="")).to_html()
    assert "Nothing could be judged." in page
    assert "vegaEmbed=" not in page
    assert "another library" not in page  # there is nothing to draw
    lost = (Record(metric="a", value=math.nan, reason="why"),)
    assert (
        "Measures that could not be computed, and why"
        in document_of(title="t", records=lost).to_html()
    )


def test_every_link_has_its_target(page: str) -> None:
    elements = Elements(page)
    ids = [str(given["id"]) for _, given in elements.found if "id" in given]
    assert len(ids) == len(set(ids))
    targets = {str(given["href"])[1:] for given in elements.all("a")}
    assert targets <= set(ids)
    assert slug("measure", "crps") in targets


def test_tables_are_marked_up_for_screen_readers(page: str) -> None:
    elements = Elements(page)
    assert all("scope" in given for given in elements.all("th"))
    regions = [g for g in elements.all("div") if g.get("role") == "region"]
    assert all(g.get("aria-label") and g.get("tabindex") == "0" for g in regions)
    assert len(regions) == len(list(elements.all("table")))


def test_a_map_has_a_legend_of_its_colours_and_a_short_table(page: str) -> None:
    assert page.count('class="ramp"') == 1
    edges = re.findall(r'<div class="ramp-ends">(.*?)</div>', page)[0]
    assert re.findall(r"<span>(.*?)</span>", edges) == [
        "0",
        "0.01",
        "0.02",
        "0.03",
        "0.04",
        "0.05",
        "0.06",
    ]
    colours = re.findall(r"background: var\(--ramp-(\d+)\)", page)
    assert [int(place) for place in colours] == [0, 5, 10, 14, 19, 24]
    assert all(f"--ramp-{place}: #" in page for place in range(25))
    block = next(b for b in map(block_of, figures_of(tables=samples.content().tables)) if b.ramp)
    assert block.data.size == MAX_ROWS_OF_MAP
    assert block.data.notes == ("The 100 points with the highest CCE.",)
    titles = [column.title for column in block.data.columns]
    assert titles == [
        "Row", "First principal coordinate", "Second", "CCE", "CCE of a perfect model", "p-value",
    ]  # fmt: skip
    shown = [float(row[3].text) for row in block.data.parts[0].rows]
    assert shown == sorted(shown, reverse=True)
    assert block.described.endswith("Colour: CCE. The data follow as a table.")


def test_the_table_of_a_figure_names_points_and_tells_what_hover_tells() -> None:
    curve, constant, marks = samples.characteristic()
    (block,) = map(block_of, figures_of([curve, constant], [marks]))
    titles = [column.title for column in block.data.columns]
    assert titles == ["Series", "Point", "Bandwidth (MW)", "Miss rate", "From", "To", "k"]
    rows = block.data.parts[0].rows
    (named,) = (row for row in rows if row[1].text == "miss rate 0.1")
    assert float(named[-1].text) == pytest.approx(marks.columns["k"][1], rel=1e-3)
    assert {row[-1].text for row in rows if row[0].text == "constant band"} == {""}


def test_directions_are_said_in_words(page: str) -> None:
    text = " ".join(Elements(page).texts)
    for words in ("↓\N{NO-BREAK SPACE}lower", "↑\N{NO-BREAK SPACE}higher"):
        assert words in text
    assert {direction.value for direction in Direction} == {
        "lower is better",
        "higher is better",
        "closer to the target is better",
        "descriptive",
    }
