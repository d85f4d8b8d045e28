"""How a page is read: folds, links, switches, print, and what is left without scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import pages
from extras import absent, needs
from figures import samples
from howsure.figures.telling import describe_figure
from howsure.report.document import Document

Open = Callable[..., tuple[Any, Any]]


@pytest.fixture(scope="module")
def report() -> Document:
    """A report with every kind of section."""
    return samples.content()


def summary(page: Any, section: str) -> Any:
    """What opens the fold of a section."""
    return page.locator(f"#section-{section} > details > summary")


def test_a_drawn_figure_keeps_its_name(opened: Open, report: Document) -> None:
    page, _ = opened(report)
    page.wait_for_selector("html.complete")
    names: list[str] = page.eval_on_selector_all(
        ".plot.drawn[role=img]", "all => all.map((one) => one.ariaLabel)"
    )
    parts = (report.opening, *report.sections)
    figures = [f for part in parts for c in part.choices for o in c.options for f in o.figures]
    assert len(names) == len(figures) > 10
    for name, figure in zip(names, figures, strict=True):
        assert name.startswith(f"{figure.title}. {describe_figure(figure)}")
    assert page.locator(".plot > :not([aria-hidden=true])").count() == 0


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
    links = page.locator(".states a")
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


def tab_to(page: Any, selector: str, most: int = 120) -> Any:
    """Press Tab until what has the focus matches, is in sight and shows it."""
    for _step in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
            break
    held = page.locator(":focus")
    assert held.evaluate("(one, wanted) => one.matches(wanted)", selector), selector
    assert (
        held.evaluate(
            """(one) => getComputedStyle(
            one.matches("input[type=radio]") ? one.nextElementSibling : one).outlineStyle"""
        )
        == "solid"
    ), selector
    page.wait_for_function(
        """() => { const box = document.activeElement.getBoundingClientRect();
            return box.top < innerHeight && box.bottom > 0; }"""
    )
    return held


def test_a_page_is_read_by_keys_alone(opened: Open, report: Document) -> None:
    page, _ = opened(report, permissions=["clipboard-read", "clipboard-write"])
    keys = page.keyboard
    assert tab_to(page, ".skip", 1).inner_text() == "Skip to the verdict"
    keys.press("Enter")
    assert tab_to(page, "#verdict a").inner_text() == "Coverage"  # past the bar
    tab_to(page, "#verdict [type=radio]")
    before = shown_option(page)
    keys.press("ArrowRight")
    assert shown_option(page) != before
    tab_to(page, "#verdict .plot.drawn")
    for key, place in (("ArrowRight", 0), ("ArrowRight", 1), ("End", -1), ("ArrowLeft", -2)):
        keys.press(key)
        told = page.locator("#tip dd").all_inner_texts()
        marks = page.locator("#verdict .plot:focus").evaluate(
            """(plot) => [...plot.querySelectorAll("[class*='mark-symbol'] > *")]
                .filter((one) => one.__data__.tooltip)
                .sort((a, b) => a.getBoundingClientRect().x - b.getBoundingClientRect().x)
                .map((one) => Object.values(one.__data__.tooltip))"""
        )
        assert told == [text for text in marks[place] if text]
        read = page.locator("#read").inner_text()
        assert all(text in read for text in told)
    keys.press("Escape")
    assert not page.locator("#tip").is_visible()
    tab_to(page, "summary")
    keys.press("Enter")
    data = page.locator("#verdict details.data[open] table").first
    assert data.is_visible()
    tab_to(page, "#verdict details.data[open] .scroll")
    first = data.locator("tbody tr").first.inner_text()
    button = tab_to(page, "#verdict details.data[open] thead button")
    keys.press("Space")
    keys.press("Space")
    assert button.locator("..").get_attribute("aria-sort") == "descending"
    assert data.locator("tbody tr").first.inner_text() != first
    tab_to(page, "#section-numbers summary")
    keys.press("Enter")
    tab_to(page, "#section-numbers [type=search]")
    keys.type("crps")
    assert page.locator("#section-numbers tbody tr:not(.part):visible").count() >= 1
    tab_to(page, "#copy", 400)
    keys.press("Enter")
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == report.command
    for _step in range(400):
        keys.press("Shift+Tab")
        if page.evaluate("document.activeElement.id") == "theme":
            break
    keys.press("Space")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    keys.press("Shift+Tab")
    target = page.locator(":focus").get_attribute("href")
    keys.press("Enter")
    assert in_sight(page, target)


def overlaps(paper: bytes) -> list[str]:
    """Lines of text of a PDF that lie over each other, or off the paper, by more than a hair."""
    pdfium = needs("pypdfium2")
    found = []
    for number, page in enumerate(pdfium.PdfDocument(paper), 1):
        width, height = page.get_size()
        text = page.get_textpage()
        boxes = np.array([text.get_rect(place) for place in range(text.count_rects())])
        left, bottom, right, top = boxes[(np.ptp(boxes[:, ::2], axis=1) > 1)].T
        if min(left.min(), bottom.min()) < 0 or right.max() > width or top.max() > height:
            found.append(f"page {number}: off the paper")
        across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
        along = np.minimum.outer(top, top) - np.maximum.outer(bottom, bottom)
        for one, other in np.argwhere(np.triu((across > 1.5) & (along > 2.0), 1)):
            words = [
                text.get_text_bounded(left[k], bottom[k], right[k], top[k]) for k in (one, other)
            ]
            found.append(f"page {number}: {words}")
    return found


MARGIN = 14 / 25.4 * 72
"""Points of the margin above and below a printed page."""
EMPTIEST = 0.4


def empty_pages(paper: bytes) -> list[str]:
    """Pages of a PDF, the last excepted, whose foot stays empty."""
    pdfium = needs("pypdfium2")
    found = []
    for number, page in enumerate(list(pdfium.PdfDocument(paper))[:-1], 1):
        inked = np.asarray(page.render(scale=0.5).to_pil().convert("L")) < 250
        foot = 2 * (np.flatnonzero(inked.any(axis=1)).max() + 1)
        height = page.get_size()[1]
        left = (height - MARGIN - foot) / (height - 2 * MARGIN)
        if left > EMPTIEST:
            found.append(f"page {number}: {left:.0%} empty")
    return found


def stranded_headings(page: Any, paper: bytes) -> list[str]:
    """Headings that end a page of a PDF; titles of closed folds are whole by themselves."""
    pdfium = needs("pypdfium2")
    titles: list[str] = page.eval_on_selector_all(
        "h1, h2, h3",
        """all => all.filter((one) => one.checkVisibility() && !one.closest("details:not([open])"))
            .map((one) => one.textContent.trim())""",
    )
    lasts = [
        one.get_textpage().get_text_range().strip().splitlines()[-1].strip()
        for one in pdfium.PdfDocument(paper)
    ]
    ends = [f" {title}" for title in titles]
    return [last for last in lasts[:-1] if any(end.endswith(f" {last}") for end in ends)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "most", "paper"),
    [
        *(("one", 5, "A4"), ("one", 5, "Letter"), ("two", 7, "A4"), ("five", 6, "A4")),
        *(("bare", 3, "A4"), ("labels", 3, "A4"), ("monitor", 4, "A4")),
    ],
)
def test_paper_is_well_filled_and_nothing_lies_over_anything(
    opened: Open, name: str, most: int, paper: str
) -> None:
    """Folds print as their summaries, unless they were opened: then all they hold, too."""
    pdfium = needs("pypdfium2")
    page, _ = opened(pages.html(name))
    page.wait_for_selector("html.complete")
    folded = page.pdf(format=paper)
    assert len(pdfium.PdfDocument(folded)) <= most
    assert overlaps(folded) == []
    assert empty_pages(folded) == []
    assert stranded_headings(page, folded) == []
    whole = "".join(one.get_textpage().get_text_range() for one in pdfium.PdfDocument(folded))
    assert "All numbers" in whole
    assert "Mean CCE [" not in whole
    page.evaluate(
        "document.querySelectorAll('#section-numbers, #section-worst, #section-rows')"
        ".forEach((one) => one.querySelectorAll('details').forEach((d) => { d.open = true; }))"
    )
    opened_up = page.pdf(format=paper)
    assert len(pdfium.PdfDocument(opened_up)) > len(pdfium.PdfDocument(folded))
    assert overlaps(opened_up) == []
    assert empty_pages(opened_up) == []
    assert stranded_headings(page, opened_up) == []


def test_faults_of_a_printed_page_are_seen(opened: Open) -> None:
    """The test above can fail."""
    page, _ = opened(pages.html("bare"))
    page.evaluate("document.querySelector('.headline').style.marginBottom = '-4rem'")
    assert overlaps(page.pdf(format="A4")) != []
    page.evaluate("document.querySelector('#verdict .shown').style.breakBefore = 'page'")
    assert len(empty_pages(page.pdf(format="A4"))) == 1
    title = page.locator("main > section h2").nth(1)
    title.evaluate("(one) => { one.nextElementSibling.style.breakBefore = 'page'; }")
    assert stranded_headings(page, page.pdf(format="A4")) == [title.inner_text()]


def test_print_shows_figures_at_full_width_and_folds_as_their_summaries(opened: Open) -> None:
    page, _ = opened(pages.html("one"))
    page.wait_for_selector("html.complete")
    page.set_viewport_size({"width": 700, "height": 1000})
    page.emulate_media(media="print")
    wide = page.evaluate(
        """() => [...document.querySelectorAll("main > section .card")]
            .filter((one) => one.checkVisibility())
            .map((one) => one.getBoundingClientRect().width / document.body.clientWidth)"""
    )
    assert len(wide) >= 4
    assert min(wide) > 0.95
    for fold in page.locator("details:not([open])").all():
        if fold.is_visible():
            assert fold.locator("summary").first.is_visible()
            assert fold.bounding_box()["height"] < 60
    for selector in (".bar", ".switch", "#copy"):
        assert not page.locator(selector).first.is_visible(), selector


def test_without_scripts_every_fold_opens_and_every_figure_has_its_data(
    opened: Open, report: Document
) -> None:
    page, _ = opened(report, java_script_enabled=False)
    assert page.locator(".headline").is_visible()
    assert page.locator(".states dl").is_visible()
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


AXE = "axe.run({ resultTypes: ['violations'] })"
PHONE = {"width": 390, "height": 844}
SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"


def violations(page: Any) -> list[tuple[str, str, str]]:
    """What axe-core finds against a page, in light and dark, on a desk and on a phone."""
    axe = Path(needs("axe_core_python").__file__).with_name("axe.min.js")
    page.evaluate(axe.read_text(encoding="utf-8"))
    desk, found = page.viewport_size, []
    for scheme in ("light", "dark"):
        for size in (desk, PHONE):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size(size)
            page.wait_for_timeout(300)
            ran = page.evaluate(AXE)
            assert len(ran["passes"]) > 20
            assert [each["error"] for each in ran["incomplete"] if "error" in each] == []
            found += [
                (f"{scheme}, {size['width']} px", each["id"], each["nodes"][0]["html"][:120])
                for each in ran["violations"]
            ]
    return found


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("labels", "monitor")),
        *(pytest.param(name, marks=pytest.mark.rate) for name in ("one", "two", "five", "bare")),
    ],
)
def test_a_screen_reader_finds_its_way(opened: Open, name: str) -> None:
    """All rules of axe-core, with every fold open."""
    page, _ = opened(pages.html(name), bypass_csp=True)
    page.set_default_timeout(120_000)
    page.wait_for_selector("html.complete")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert violations(page) == []


@pytest.mark.slow
def test_a_screen_reader_finds_its_way_on_the_site(browser: Any) -> None:
    if not (SITE / "index.html").exists():
        absent("site", "the site is not built: make docs")
    page = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
    for name in ("index", "quickstart", "pages"):
        page.goto((SITE / f"{name}.html").as_uri())
        assert violations(page) == [], name
    page.close()


def test_what_fails_a_screen_reader_is_seen(opened: Open) -> None:
    """The tests above can fail."""
    page, _ = opened(pages.html("labels"), bypass_csp=True)
    page.locator(".plot").first.evaluate("(one) => one.removeAttribute('aria-label')")
    page.locator(".headline p").evaluate("(one) => { one.style.color = '#ccc'; }")
    assert {rule for _, rule, _ in violations(page)} == {"role-img-alt", "color-contrast"}
