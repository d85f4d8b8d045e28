"""The site that `make docs` built: search, links, tables of contents, nothing from elsewhere."""

from __future__ import annotations

import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from extras import absent, needs

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
LONG = 150
"""Lines of a page past which it needs a table of contents: about three screens."""


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    if not (SITE / "index.html").exists():
        absent("site", "the site is not built: make docs")


class _Page(HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        self.ids |= {held["id"]} if "id" in held else set()
        if tag == "a" and "href" in held:
            self.links.append(held["href"])
        loaded = held.get("src") if tag in ("script", "img", "iframe", "source") else None
        if tag == "link" and "stylesheet" in held.get("rel", ""):
            loaded = held.get("href")
        self.loads += [loaded] if loaded else []


@cache
def pages() -> dict[Path, _Page]:
    return {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(SITE.rglob("*.html"))}


@pytest.mark.slow
def test_pages_were_built() -> None:
    assert len(pages()) > 150


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere() -> None:
    for path, page in pages().items():
        assert not [each for each in page.loads if urlsplit(each).netloc], path
    for style in SITE.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//|@import", text), style


@pytest.mark.slow
def test_every_internal_link_leads_somewhere() -> None:
    wrong = []
    for path, page in pages().items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                wrong.append(f"{path.relative_to(SITE)}: {link}")
            elif target.suffix == ".html" and parts.fragment:
                known = pages()[target].ids
                if unquote(parts.fragment) not in known:
                    wrong.append(f"{path.relative_to(SITE)}: {link}")
    assert not wrong, "\n".join(wrong[:20])


def test_the_start_page_leads_to_every_section() -> None:
    start = _Page((SITE / "index.html").read_text(encoding="utf-8"))
    links = {urlsplit(link).path for link in start.links}
    for page in ("quickstart", "check", "inputs", "measures/README", "reference/commands"):
        assert f"{page}.html" in links, page
    for page in ("reference/api/index", "figures/index", "case-studies/README", "errata"):
        assert f"{page}.html" in links, page


@pytest.mark.slow
def test_every_script_has_a_thumbnail_of_its_own() -> None:
    scripts = sorted((ROOT / "docs").glob("*/plot_*.py"))
    scripts = [path for path in scripts if path.parent.name in ("gallery", "tutorials")]
    thumbs = [SITE / "_images" / f"sphx_glr_{path.stem}_thumb.png" for path in scripts]
    pictures = {path.read_bytes() for path in thumbs}
    if len(pictures) == 1:
        absent("site", "the site is built without its figures: make docs")
    assert len(thumbs) > 10
    assert len(pictures) == len(thumbs)


@pytest.mark.parametrize(
    ("width", "height", "seen"),
    [
        (1400, 1000, (".hero", ".start-verdict pre", ".start-picture img:visible")),
        (390, 844, (".hero",)),
    ],
)
def test_what_it_is_and_three_ways_in_stand_on_the_first_screen(
    chromium: str, width: int, height: int, seen: tuple[str, ...]
) -> None:
    needs("playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.goto((SITE / "index.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ways = tab.locator(".ways .sd-card")
        assert ways.count() == 3
        assert tab.locator(".start-picture img:visible").count() == 1  # of light and dark
        for shown in (*(tab.locator(each) for each in seen), *ways.all()):
            box = shown.bounding_box()
            assert box is not None
            assert box["y"] + box["height"] <= height
        browser.close()


# Search


@cache
def index() -> dict[str, Any]:
    text = (SITE / "searchindex.js").read_text(encoding="utf-8")
    held: dict[str, Any] = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return held


def found(words: str) -> set[str]:
    """Pages that the search finds for all of some words."""
    return set.intersection(*(_found(word) for word in words.split()))


def _found(word: str) -> set[str]:
    """Pages that it finds for one; it looks for stems, as the browser does."""
    stem = needs("sphinx.search.en").SearchEnglish({}).stem(word.lower())
    names = index()["docnames"]
    held: set[str] = set()
    for part in ("terms", "titleterms"):
        places = index()[part].get(stem, [])
        held |= {names[place] for place in (places if isinstance(places, list) else [places])}
    return held


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("PICP", {"measures/empirical_coverage", "reference/commands"}),
        ("conformal", {"reference/api/conformal", "recalibrate", "reference/commands"}),
        ("MAPIE", {"what-goes-in", "errata"}),
        ("weights", {"inputs", "measures/ert_squared"}),
        ("recalibrate", {"recalibrate", "quickstart"}),
        ("CRPS", {"measures/crps"}),
        ("PIT", {"measures/pit_uniformity"}),
        ("SBC", {"how-to/simulation-based-calibration"}),
        ("TabPFN", {"how-to/from-tabpfn", "what-goes-in"}),
        ("TabICL", {"how-to/from-tabpfn"}),
        ("fairness", {"how-to/fairness"}),
        ("Mondrian", {"how-to/fairness"}),
        ("LLM", {"how-to/language-models", "how-to/for-llm-evaluations"}),
        ("sharpness", {"measures/sharpness"}),
        ("ECE", {"measures/class_calibration_error"}),
        ("reliability diagram", {"how-to/from-scikit-learn", "how-to/classifier"}),
        ("prediction intervals wide", {"how-to/intervals-too-narrow"}),
    ],
)
def test_the_search_finds(word: str, expected: set[str]) -> None:
    assert expected <= found(word)


def test_the_search_does_not_find_all() -> None:
    assert not found("xylophone")
    assert len(found("MAPIE")) < len(index()["docnames"]) / 4


# What language models read


def test_llms_txt_lists_every_page_with_a_line() -> None:
    """In the form of llmstxt.org: a heading, a summary, lists of links with what they lead to."""
    head, *lines = (SITE / "llms.txt").read_text(encoding="utf-8").splitlines()
    assert head == "# howsure"
    assert next(line for line in lines if line).startswith("> howsure compares predictions")
    item = re.compile(r"- \[(?P<title>[^\]]+)\]\((?P<page>[\w/.-]+)\): (?P<told>\S.*)")
    known = [line for line in lines if line and not line.startswith(("> ", "## "))]
    found = [item.fullmatch(line) for line in known]
    assert not [line for line, each in zip(known, found, strict=True) if each is None]
    pages = [each["page"] for each in found if each is not None]
    assert sorted(pages) == sorted(
        f"{name}.html" for name in index()["docnames"] if name != "index"
    )
    assert all((SITE / page).is_file() for page in pages)
    sections = [line for line in lines if line.startswith("## ")]
    assert sections[0] == "## Start"
    assert sections[-1] == "## Optional"
    assert len(sections) == len({*sections})


# Tables of contents


def sources() -> list[tuple[str, int]]:
    """Pages and their lines, but for the start page, which lists all, and sheets of thumbnails."""
    docs = ROOT / "docs"
    listing = ("index", "learn/index", "figures/index")
    names = [name for name in index()["docnames"] if name not in listing]
    held = []
    for name in names:
        for suffix in (".md", ".rst"):
            path = docs / f"{name}{suffix}"
            if path.exists():
                held.append((name, len(path.read_text(encoding="utf-8").splitlines())))
    return held


def test_a_long_page_has_a_table_of_contents() -> None:
    long = [name for name, lines in sources() if lines > LONG]
    assert len(long) > 10
    for name in long:
        text = (SITE / f"{name}.html").read_text(encoding="utf-8")
        assert 'class="toc-tree"' in text, name


def test_a_table_of_contents_is_there_on_a_desk_and_can_be_opened_on_a_phone(
    chromium: str,
) -> None:
    needs("playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        address = (SITE / "reference" / "commands.html").as_uri()
        tab = browser.new_page(viewport={"width": 1400, "height": 900})
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(address)
        shown = ".toc-tree a[href='#howsure-assess']"
        assert tab.locator(shown).is_visible()
        tab.close()
        tab = browser.new_page(viewport={"width": 390, "height": 844})
        tab.goto(address)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert not _inside(tab, shown)
        tab.locator("label[for='__toc']:visible").first.click()
        tab.wait_for_timeout(500)
        assert _inside(tab, shown)
        browser.close()
    assert not [url for url in asked if not url.startswith(("file:", "data:"))]


def _inside(tab: Any, chosen: str) -> bool:
    """Whether an element lies in the window."""
    box = tab.locator(chosen).bounding_box()
    return box is not None and 0 <= box["x"] < tab.viewport_size["width"]


def test_the_search_works_without_a_server(chromium: str) -> None:
    needs("playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(f"{(SITE / 'search.html').as_uri()}?q=PICP")
        first = tab.locator("ul.search li a").first
        first.wait_for(timeout=20_000)
        assert "PICP" in tab.locator("ul.search").inner_text()
        browser.close()
