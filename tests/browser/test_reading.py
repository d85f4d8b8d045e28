"""How a page is read: folds, links, switches, print, and what is left without scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from figures import samples
from howsure.report.document import Document

Open = Callable[..., tuple[Any, Any]]


@pytest.fixture(scope="module")
def report() -> Document:
    """A report with every kind of section."""
    return samples.content()


def summary(page: Any, section: str) -> Any:
    """What opens the fold of a section."""
    return page.locator(f"#section-{section} > details > summary")


def fills_its_card(plot: Any) -> bool:
    """Whether a figure is drawn in the width that it has."""
    plot.page.wait_for_function(
        "(one) => one.matches('.drawn[data-seen=true]')", arg=plot.element_handle()
    )
    width = plot.locator("svg").bounding_box()["width"]
    return bool(abs(width - plot.bounding_box()["width"]) < 12)


def in_sight(page: Any, selector: str) -> bool:
    """Whether the top of an element is in the window, below the bar."""
    page.wait_for_function(
        """(selector) => {
          const { top } = document.querySelector(selector).getBoundingClientRect();
          return top >= document.querySelector(".bar").offsetHeight - 1 && top < innerHeight;
        }""",
        arg=selector,
    )
    return True


def test_folds_open_by_click_and_draw_their_figures(opened: Open, report: Document) -> None:
    page, _ = opened(report)
    plot = page.locator("#section-time .plot")
    assert not plot.is_visible()
    summary(page, "time").click()
    assert plot.is_visible()
    assert fills_its_card(plot)
    summary(page, "time").click()
    assert not plot.is_visible()


def test_folds_open_by_keyboard(opened: Open, report: Document) -> None:
    page, _ = opened(report)
    for key, section in (("Enter", "time"), ("Space", "worst")):
        summary(page, section).focus()
        page.keyboard.press(key)
        inside = page.locator(f"#section-{section} table, #section-{section} .plot").first
        assert inside.is_visible()
        page.keyboard.press(key)
        assert not inside.is_visible()


def test_the_data_of_a_figure_are_folded_below_it(opened: Open, report: Document) -> None:
    page, _ = opened(report)
    data = page.locator("#section-groups details.data").first
    assert not data.locator("table").is_visible()
    data.locator("summary").click()
    assert data.locator("table").is_visible()


def test_a_question_of_the_first_screen_leads_to_its_section(
    opened: Open, report: Document
) -> None:
    page, _ = opened(report)
    links = page.locator(".states tbody a")
    assert links.count() == len(samples.findings())
    for link in links.all():
        target = link.get_attribute("href")
        link.click()
        assert in_sight(page, target)
        page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")


def test_a_link_opens_the_fold_that_holds_its_target(opened: Open, report: Document) -> None:
    page, _ = opened(report)
    summary(page, "numbers").click()
    link = page.locator("#section-numbers").get_by_role("link", name="CRPS").first
    target = link.get_attribute("href")
    for _time in range(2):  # the second time the address does not change
        assert not page.locator(target).is_visible()
        link.click()
        assert page.locator(target).is_visible()
        assert in_sight(page, target)
        page.locator("#glossary summary").click()
    address = page.url.partition("#")[0]
    page.goto("about:blank")
    page.goto(f"{address}{target}")
    page.locator(target).wait_for(state="visible")


def shown_option(page: Any) -> list[str]:
    """Titles of the figures of the first switch that are in sight."""
    titles: list[str] = (
        page.locator("#verdict .option h3").locator("visible=true").all_inner_texts()
    )
    return titles


def test_a_switch_shows_one_figure_by_mouse_and_by_keyboard(opened: Open, report: Document) -> None:
    page, _ = opened(report)
    first, second, third, last = page.locator("#verdict .switch").get_by_role("radio").all()
    start = shown_option(page)
    assert len(start) == 1
    page.locator("#verdict .switch label").nth(2).click()
    assert third.is_checked()
    assert not first.is_checked()
    clicked = shown_option(page)
    assert len(clicked) == 1
    assert clicked != start
    assert fills_its_card(page.locator("#verdict .plot").locator("visible=true"))
    page.keyboard.press("ArrowRight")
    assert last.is_checked()
    page.keyboard.press("ArrowRight")
    assert first.is_checked()
    assert shown_option(page) == start
    page.keyboard.press("ArrowRight")
    assert second.is_checked()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") != "radio"
    group = page.get_by_role("group", name="Calibration of")
    assert group.get_by_role("radio", name="Quantiles").is_checked()


def test_print_unfolds_everything_and_hides_only_what_chooses(
    opened: Open, report: Document
) -> None:
    page, _ = opened(report)
    page.wait_for_selector("html.complete")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    hidden = page.evaluate(
        """() => [...document.querySelectorAll("main h2, main h3, main p, main table, main svg")]
            .filter((one) => !one.closest(".data, .filter, .legend, .plot svg svg"))
            .filter((one) => !one.checkVisibility()
              || one.getBoundingClientRect().height === 0)
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert hidden == []
    for selector in (".bar", ".switch", "#copy", "details.data"):
        assert not page.locator(selector).first.is_visible(), selector
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert not page.locator("#glossary article").first.is_visible()


def test_a_printed_page_holds_what_was_folded(opened: Open, report: Document) -> None:
    page, _ = opened(report)
    page.wait_for_selector("html.complete")
    folded = page.pdf(format="A4")
    page.evaluate("document.querySelectorAll('details').forEach((d) => d.remove())")
    page.evaluate(
        "document.querySelectorAll('.switch, .option[hidden]').forEach((d) => d.remove())"
    )
    assert folded.startswith(b"%PDF")
    assert folded.count(b"/Type /Page\n") > page.pdf(format="A4").count(b"/Type /Page\n") + 2


def test_without_scripts_every_fold_opens_and_every_figure_has_its_data(
    opened: Open, report: Document
) -> None:
    page, _ = opened(report, java_script_enabled=False)
    assert page.locator(".headline").is_visible()
    assert page.locator(".states table").is_visible()
    for section in ("time", "worst", "numbers"):
        summary(page, section).click()
    assert page.locator("#section-worst table").is_visible()
    assert page.locator("#section-numbers table").first.is_visible()
    for data in page.locator("#verdict details.data").all():
        data.locator("summary").click()
        assert data.locator("table").is_visible()


@pytest.mark.rate
def test_a_browser_that_cannot_unpack_says_so_and_shows_the_data(
    opened: Open, report: Document
) -> None:
    page, watch = opened(report)
    page.context.add_init_script("delete window.DecompressionStream")
    page.reload()
    page.wait_for_selector("html.ready")
    assert page.locator("#verdict .plot").first.inner_text().startswith("This figure could not")
    assert page.locator("#verdict details.data summary").first.is_visible()
    assert any("DecompressionStream" in said for said in watch.console)
    watch.console.clear()
