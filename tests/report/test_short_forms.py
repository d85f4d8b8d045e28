"""Short forms: the key numbers, Markdown for a pull request, what a notebook shows."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest
from markdown_it import MarkdownIt

import howsure
from extras import needs
from figures import samples
from howsure.core.rng import child
from howsure.report.assessment import Assessment
from howsure.report.document import Grid
from howsure.report.plain import in_brief, key_numbers, sentences

N = 300
ONES = np.ones(N)
Z = child(0, "brief").normal(size=N)
NORMAL = howsure.Distribution.normal(np.zeros(N), np.ones(N))
WIDE = howsure.Distribution.normal(np.zeros(N), np.full(N, 1.5))
HOSTILE = "<script>alert(1)</script>|`"


@cache
def both() -> Assessment:
    groups = {f"g{HOSTILE}": np.arange(N) % 12}
    return howsure.assess(
        Z, {"right": NORMAL, HOSTILE: WIDE}, groups=groups, options=howsure.Options(trials=False)
    )


def measures(grid: Grid) -> dict[str, tuple[str, ...]]:
    """The rows of a table, by their first cell."""
    return {row[0].text: tuple(cell.text for cell in row[1:]) for row in grid.parts[0].rows}


def test_ten_numbers_at_most_in_the_order_of_the_catalogue() -> None:
    result = howsure.assess(
        Z, NORMAL, features={"x": Z[::-1]}, options=howsure.Options(trials=False)
    )
    grid = key_numbers(result.records)
    told = measures(grid)
    assert [column.title for column in grid.columns] == ["Measure", "Value", "Interval", "Perfect"]
    assert next(iter(told)) == "Empirical coverage (PICP) at 90 %"
    assert len(told) == 10
    assert {"CRPS", "Mean absolute error", "Root mean squared error"} <= set(told)
    inside = np.mean(np.abs(Z) <= 1.6448536)
    value, _, perfect = told["Empirical coverage (PICP) at 90 %"]
    assert float(value) == pytest.approx(inside, abs=5e-4)
    assert perfect == "0.9"


def test_several_coverages_are_told_for_coverage_alone() -> None:
    result = howsure.assess(
        Z, NORMAL, coverage=[0.5, 0.7, 0.8, 0.9, 0.95], options=howsure.Options(trials=False)
    )
    titles = list(measures(key_numbers(result.records)))
    told = [title for title in titles if title.startswith("Empirical coverage")]
    assert [title.rpartition(" at ")[2] for title in told] == ["80 %", "90 %", "95 %"]
    assert "Mean width at 90 %" in titles
    assert "Mean width at 50 %" not in titles


@pytest.mark.slow
def test_models_stand_side_by_side() -> None:
    grid = key_numbers(both().records)
    assert [column.title for column in grid.columns] == ["Measure", "right", HOSTILE]
    cells = {row[0].text: row[1] for row in grid.parts[0].rows}
    assert cells["Mean absolute error"].small.startswith("± ")
    width = cells["Mean width at 90 %"]
    assert (width.text, width.small) == ("3.29", "")  # of equal widths, without an error


@pytest.mark.slow
def test_models_judged_at_different_coverages_leave_blanks_and_it_is_said() -> None:
    wide, narrow = (howsure.Intervals(-a * ONES, a * ONES, c) for a, c in ((1.645, 0.9), (1, 0.7)))
    assert key_numbers(both().records).notes == ("Value ± standard error.",)
    result = howsure.assess(
        Z, {"wide": wide, "narrow": narrow}, options=howsure.Options(trials=False)
    )
    grid = key_numbers(result.records)
    assert ("", "") not in measures(grid).values()
    assert any("" in cells for cells in measures(grid).values())
    said = "Blanks: models are judged at different coverages ("
    assert grid.notes[-1] == f"{said}wide at 90 %, narrow at 70 %)."


def test_scores_that_depend_on_the_kind_are_not_set_side_by_side() -> None:
    """CRPS of three quantiles is smaller than that of the law whose quantiles they are."""
    levels = [0.05, 0.5, 0.95]
    table = howsure.Quantiles(levels, NORMAL.quantile(levels))
    result = howsure.assess(
        Z, {"law": NORMAL, "quantiles": table}, options=howsure.Options(trials=False)
    )
    assert result.value("crps", model="quantiles") < 0.9 * result.value("crps", model="law")
    titles = measures(key_numbers(result.records))
    assert not {"CRPS", "Pinball loss", "Weighted interval score"} & set(titles)
    assert "Interval score (Winkler) at 90 %" in titles


def test_nothing_is_answered_by_nothing() -> None:
    assert key_numbers(()).size == 0


def test_sentences_are_told_once_and_what_is_wrong_comes_first() -> None:
    document = samples.several_models()
    told = sentences(document)
    assert sorted(map(repr, told)) == sorted(map(repr, document.lines))
    first = document.opening.lines
    assert told[: len(first)] == first
    tones = [line.tone for line in told[len(first) :]]
    order = ["bad", "caution", "negligible", "good", "undecided", "info"]
    assert tones == sorted(tones, key=order.index)
    brief = in_brief(document).opening.lines
    assert brief[: len(first)] == first
    wrong = [line for line in told[len(first) :] if line.tone not in ("good", "undecided")]
    assert list(brief[len(first) :]) == wrong[:6]  # marks tell the rest
    assert 0 < len(wrong) < len(told) - len(first)
    alone = samples.content()
    assert in_brief(alone).opening.lines == sentences(alone)


@pytest.mark.rate
@pytest.mark.few_draws
def test_of_many_models_the_first_are_shown() -> None:
    sds = {f"sd {k}": howsure.Distribution.normal(0 * Z, ONES + k / 10) for k in range(12)}
    groups = {"g": np.arange(N) % 3}
    result = howsure.assess(Z, sds, groups=groups, options=howsure.Options(trials=False))
    brief = in_brief(result.document())
    states, numbers = brief.opening.grids
    ranked = next(t for t in result.tables if t.name == "overview").columns["model"][:5].tolist()
    for grid in (states, numbers):
        assert [column.title for column in grid.columns[1:]] == ranked
    told = {table.model for table in result.tables if table.name == "groups"}
    beside = [column.title for column in brief.sections[0].grids[0].columns[2:]]
    assert beside == [name for name in ranked if name in told] != []
    assert "The first 5 of 12 models." in states.notes


def test_markdown_fits_a_screen_or_two_and_names_what_it_leaves_out() -> None:
    text = both().to_markdown()
    assert len(text.splitlines()) <= 80
    assert "The worst 6 of 12." in text
    assert "contain all numbers" in text
    assert not re.search("<[a-zA-Z/!]", text)
    assert "✗" in text
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    assert not [token for token in tokens if token.type.startswith("html")]
    assert sum(token.type == "table_open" for token in tokens) == 3  # states, numbers, groups


class Checked(HTMLParser):
    """Counts tags, and fails on any that is a script."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag != "script"
        self.seen.append(tag)


def test_a_notebook_shows_states_questions_numbers_and_a_figure() -> None:
    result = both()
    html = result._repr_html_()
    parser = Checked()
    parser.feed(html)
    assert parser.seen.count("li") == len(in_brief(result.document()).opening.lines)
    assert parser.seen.count("table") == 2
    assert "nan" not in html.lower()
    assert "✗" in html
    needs("matplotlib")
    assert parser.seen.count("svg") == 1


def test_a_notebook_is_read_on_light_and_on_dark() -> None:
    """It has no background of its own, and what is no series has the colour of the text."""
    needs("matplotlib")
    html = both()._repr_html_()
    assert not re.search(r"background|fill: #ffffff|fill: white|#000000", html)
    assert 'fill="currentColor"' in html
    for colour in set(re.findall(r"span style=\"color:(#\w+)\"", html)):
        for ground in ("#ffffff", "#111111", "#1e1e1e"):
            assert contrast(colour, ground) >= 3.0, (colour, ground)


def contrast(first: str, second: str) -> float:
    """The contrast of two colours, by WCAG 2.1."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_a_notebook_without_matplotlib_has_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    html = both()._repr_html_()
    assert "<svg" not in html
    assert "<table" in html


def test_a_notebook_shows_a_point_forecast_without_a_figure() -> None:
    html = howsure.assess(howsure.Table(Z, point=np.zeros(N)))._repr_html_()
    assert "<svg" not in html
    assert "Mean absolute error" in html
