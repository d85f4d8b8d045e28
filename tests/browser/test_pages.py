"""Pages of every kind, and of bad input: they fit, and their first screen holds the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from browser import pages

DESK = {"width": 1400, "height": 950}
PHONE = {"width": 390, "height": 844}
TALLEST = {1400: 6_000, 390: 9_000}
LARGEST = {"many_models": 2_500_000}
"""Bytes of a page that needs more than 1.5 MB: each of a hundred models has its own numbers."""
EVERY = [*pages.SIX, *pages.BAD]

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


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_a_page_is_small(name: str) -> None:
    assert len(pages.html(name).encode()) < LARGEST.get(name, 1_500_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_a_page_fits(opened: Open, name: str, viewport: dict[str, int]) -> None:
    page, _ = opened(pages.html(name), viewport=viewport)
    size = page.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    assert size[0] <= viewport["width"]
    assert size[1] <= TALLEST[viewport["width"]]
    assert clipped(page, above=float("inf") if viewport is DESK else viewport["height"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_the_first_screen_holds_the_answer(opened: Open, name: str) -> None:
    page, _ = opened(pages.html(name), viewport=DESK)
    wanted = [".headline", ".states table", "#verdict .plot.drawn svg"]
    if name in {"one", "two", "bare"}:
        wanted.append("#verdict .lines li.info pre")  # the next step
    for selector in wanted:
        box = page.locator(selector).locator("visible=true").first.bounding_box()
        assert box["y"] + box["height"] <= DESK["height"], selector
        assert box["width"] > 100, selector


@pytest.mark.slow
def test_a_phone_shows_the_answer_first(opened: Open) -> None:
    for name in pages.SIX:
        page, _ = opened(pages.html(name), viewport=PHONE)
        for selector in (".headline", ".states thead"):
            box = page.locator(selector).first.bounding_box()
            assert box["y"] + box["height"] <= PHONE["height"], (name, selector)


@pytest.mark.slow
def test_markup_in_names_adds_nothing_to_the_page(opened: Open) -> None:
    page, _ = opened(pages.html("hostile"))
    page.wait_for_selector("html.complete")
    assert page.evaluate("window.pwned") is None
    assert page.locator("img, iframe, object, embed, [onerror], [onload]").count() == 0
    assert "</script><script>" in page.locator("h1").inner_text()


@pytest.mark.slow
def test_many_are_counted_where_they_are_not_shown(opened: Open) -> None:
    page, _ = opened(pages.html("many_models"))
    assert "of 100 models" in page.locator(".states").inner_text()
    page, _ = opened(pages.html("many_groups"))
    assert "10,000" in page.content() or "10 000" in page.content()
