"""Pages of every kind, and of bad input: they fit, and their first screen holds the answer."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser import pages
from scripts import script

DESK = {"width": 1400, "height": 950}
PHONE = {"width": 390, "height": 844}
TALLEST = {1400: 6_000, 390: 9_300}  # with a section on skill
LARGEST = {"many_models": 2_200_000}
"""Bytes of a page that needs more than 1.5 MB: each of a hundred models has its own numbers."""
FIGURE = "#verdict .plot.drawn svg"
SETTLED = """() => [...document.querySelectorAll(".plot")].every((plot) =>
    !plot.clientWidth || (plot.matches(".drawn[data-seen=true]")
      && plot.querySelector("svg").clientWidth <= plot.clientWidth))"""
STEP = "#verdict .lines li.info pre"
FAULT = "#verdict .lines li.bad"
STEPS = {"one", "two", "bare"}
"""Pages that advise a next step."""

Open = Callable[..., tuple[Any, Any]]


def clipped(page: Any, above: float = float("inf")) -> list[str]:
    """Tables in sight that are wider than their place, of those that begin above a height."""
    found: list[tuple[str, float]] = page.evaluate(
        """() => [...document.querySelectorAll(".scroll")]
            .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth)
            .map((one) => [`${one.getAttribute("aria-label")}: ${one.scrollWidth} px of ` +
              `${one.clientWidth}`, one.getBoundingClientRect().top])"""
    )
    return [told for told, top in found if top < above]


def assert_fits(page: Any, viewport: dict[str, int]) -> None:
    """Nothing is wider than the window, and the page is not too tall."""
    page.set_viewport_size(viewport)
    page.wait_for_function(SETTLED)
    size = page.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    assert size[0] <= viewport["width"]
    assert size[1] <= TALLEST[viewport["width"]]


def assert_on_the_first_screen(page: Any, *selectors: str) -> None:
    """Elements are in sight before anybody scrolls."""
    for selector in selectors:
        box = page.locator(selector).locator("visible=true").first.bounding_box()
        assert box["y"] + box["height"] <= page.viewport_size["height"], selector
        assert box["width"] > 100, selector


@pytest.mark.parametrize("name", [*pages.KINDS, *pages.BAD])
@pytest.mark.rate
def test_a_page_is_small_fits_and_answers_first(opened: Open, name: str) -> None:
    whole = pages.html(name)
    assert len(whole.encode()) < LARGEST.get(name, 1_500_000)
    page, _ = opened(whole, viewport=DESK)
    assert_fits(page, DESK)
    assert clipped(page) == []
    step = [STEP] if name in STEPS else []
    states = ".states dl" if page.locator(".states dl").count() else ".states table"
    assert_on_the_first_screen(page, ".headline", states, FIGURE, *step)
    assert page.locator(STEP).count() == len(step)
    assert_fits(page, PHONE)
    assert clipped(page, above=PHONE["height"]) == []
    faults = [FAULT] if page.locator(FAULT).count() else []
    assert_on_the_first_screen(page, ".headline", *faults)
    if name in pages.KINDS and not faults:
        assert_on_the_first_screen(page, ".states thead, .states dl div")


@pytest.mark.parametrize("name", [*pages.KINDS, *pages.BAD])
@pytest.mark.rate
def test_every_figure_of_a_page_says_its_finding(name: str) -> None:
    names = re.findall(r'<div class="plot" role="img" aria-label="([^"]*)"', pages.html(name))
    assert len(names) == pages.html(name).count('<div class="plot"')
    assert names or name == "one_row"
    for told in map(html.unescape, names):
        finding = told.partition(". ")[2].removesuffix("The data follow as a table.")
        assert re.search(r"\d", finding), told
        assert "0 values" not in finding


@pytest.mark.slow
def test_markup_in_names_adds_nothing_to_the_page(opened: Open) -> None:
    page, _ = opened(pages.html("hostile"))
    page.wait_for_selector("html.complete")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, iframe, object, embed, [onerror], [onload]").count() == 0
    assert "</script><script>" in page.locator("h1").inner_text()


@pytest.mark.slow
def test_names_that_begin_alike_are_told_apart(opened: Open) -> None:
    page, _ = opened(pages.html("hostile"))
    for selector in (
        ".states thead th",
        "#verdict .option:not([hidden]) .legend li",
        "#section-inputs .switch >> nth=0 >> label",
    ):
        texts = page.locator(selector).all_inner_texts()
        assert len(texts) > 1, selector
        assert len(texts) == len(set(texts)), selector


@pytest.mark.slow
def test_what_is_not_shown_is_counted(opened: Open) -> None:
    page, _ = opened(pages.many_models(24))
    assert "of 24 models" in page.locator(".states").inner_text()
    page, _ = opened(pages.many_groups(2_400))
    assert "1,200 labels" in page.locator("#reproduce").text_content()


@pytest.mark.rate
def test_the_pictures_of_the_docs_are_all_there_and_small() -> None:
    docs = Path(__file__).parents[2] / "docs"
    maker = script("docs/make_pages.py")
    assert (docs / "pages.md").read_text(encoding="utf-8") == maker.page(), "run make_pages.py"
    assert set(maker.SHOWN) == set(pages.KINDS)
    held = {path.name: path.stat().st_size for path in (docs / "pages").iterdir()}
    assert set(held) == {f"{name}-{view}.webp" for name, view in maker.taken()}
    assert max(held.values()) < 80_000
    assert sum(held.values()) < 700_000
