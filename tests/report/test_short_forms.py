"""Short forms: the key numbers, Markdown for a pull request, what a notebook shows."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

import howsure
from extras import needs
from howsure.core.rng import child
from howsure.report.assessment import Assessment
from howsure.report.short_forms import key_numbers

N = 300
Z = child(0, "brief").normal(size=N)
NORMAL = howsure.Distribution.normal(np.zeros(N), np.ones(N))
WIDE = howsure.Distribution.normal(np.zeros(N), np.full(N, 1.5))
HOSTILE = "<script>alert(1)</script>|`"


@cache
def both() -> Assessment:
    groups = {f"g{HOSTILE}": np.arange(N) % 12}
    return howsure.assess(Z, {"right": NORMAL, HOSTILE: WIDE}, groups=groups, trials=False)


def test_ten_numbers_at_most_in_the_order_of_the_catalogue() -> None:
    result = howsure.assess(Z, NORMAL, x={"x": Z[::-1]}, trials=False)
    table = key_numbers(result.records)
    titles = table.columns["measure"].tolist()
    assert titles[0] == "Empirical coverage (PICP) at 90 %"
    assert len(titles) == 10
    assert {"CRPS", "Mean absolute error", "Root mean squared error"} <= set(titles)
    inside = np.mean(np.abs(Z) <= 1.6448536)
    assert float(table.columns["value"][0]) == pytest.approx(inside, abs=5e-4)
    assert table.columns["perfect"][0] == "0.9"


def test_several_coverages_are_told_for_coverage_alone() -> None:
    result = howsure.assess(Z, NORMAL, coverage=[0.5, 0.7, 0.8, 0.9, 0.95], trials=False)
    titles = key_numbers(result.records).columns["measure"].tolist()
    told = [title for title in titles if title.startswith("Empirical coverage")]
    assert [title.rpartition(" at ")[2] for title in told] == ["80 %", "90 %", "95 %"]
    assert "Mean width at 90 %" in titles
    assert "Mean width at 50 %" not in titles


def test_models_stand_side_by_side() -> None:
    table = key_numbers(both().records)
    assert list(table.columns) == ["measure", "right", HOSTILE]
    titles = table.columns["measure"].tolist()
    told = dict(zip(titles, table.columns["right"], strict=True))
    assert "±" in told["Mean absolute error"]
    assert told["Mean width at 90 %"] == "3.29"  # of equal widths, without an error


def test_scores_that_depend_on_the_kind_are_not_set_side_by_side() -> None:
    """CRPS of three quantiles is smaller than that of the law whose quantiles they are."""
    levels = [0.05, 0.5, 0.95]
    table = howsure.Quantiles(levels, NORMAL.quantile(levels))
    result = howsure.assess(Z, {"law": NORMAL, "quantiles": table}, trials=False)
    assert result.value("crps", model="quantiles") < 0.9 * result.value("crps", model="law")
    titles = key_numbers(result.records).columns["measure"].tolist()
    assert not {"CRPS", "Pinball loss", "Weighted interval score"} & set(titles)
    assert "Interval score (Winkler) at 90 %" in titles


def test_nothing_is_answered_by_nothing() -> None:
    assert len(key_numbers(())) == 0


def test_markdown_fits_a_screen_or_two_and_names_what_it_leaves_out() -> None:
    text = both().to_markdown()
    assert len(text.splitlines()) < 120
    assert "The worst 8 of 12." in text
    assert "hold every number" in text
    assert "<script" not in text
    assert "✗" in text


class Checked(HTMLParser):
    """Counts tags, and fails on any that is a script."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert tag != "script"
        self.seen.append(tag)


def test_a_notebook_shows_states_questions_numbers_and_a_figure() -> None:
    result = both()
    html = result._repr_html_()
    parser = Checked()
    parser.feed(html)
    assert parser.seen.count("li") == len(result.lines)
    assert parser.seen.count("table") == 2
    assert "nan" not in html.lower()
    assert "✗" in html
    needs("matplotlib")
    assert parser.seen.count("svg") == 1


def test_a_notebook_shows_a_point_forecast_without_a_figure() -> None:
    html = howsure.assess(Z, point=np.zeros(N))._repr_html_()
    assert "<svg" not in html
    assert "Mean absolute error" in html
