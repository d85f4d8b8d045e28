"""A browser that talks to nobody, and pages opened in it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from extras import absent

DESK = {"width": 1280, "height": 900}


@dataclass
class Watch:
    """What went wrong on a page, or left it."""

    console: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def attach(self, page: Any) -> None:
        """Listen to a page."""
        page.on("console", lambda message: self.console.append(f"{message.type} {message.text}"))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))

    def assert_quiet(self, address: str) -> None:
        """Nothing was said, and nothing but the page itself was asked for."""
        assert self.console == []
        assert self.errors == []
        assert self.dialogs == []
        assert {url.partition("#")[0] for url in self.requests} == {address}


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """A running Chromium that talks to nobody."""
    for library in ("playwright", "vl_convert"):
        if importlib.util.find_spec(library) is None:
            absent("browser", f"{library} is not installed")
    from playwright.sync_api import sync_playwright

    quiet = ("--no-sandbox", "--disable-background-networking", "--disable-component-update")
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=chromium, args=list(quiet))
        yield running
        running.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., tuple[Any, Watch]]]:
    """Open a page, of a document or of HTML; at the end nothing may have been said or asked for."""
    contexts: list[Any] = []
    watches: list[tuple[Watch, str]] = []

    def show(report: Any, **choices: Any) -> tuple[Any, Watch]:
        path = tmp_path / f"report{len(contexts)}.html"
        html = report if isinstance(report, str) else report.to_html()
        path.write_text(html, encoding="utf-8")
        context = browser.new_context(**{"viewport": DESK, "color_scheme": "light", **choices})
        context.set_default_timeout(15_000)
        contexts.append(context)
        page = context.new_page()
        watch = Watch()
        watch.attach(page)
        page.goto(path.as_uri())
        if choices.get("java_script_enabled", True):
            page.wait_for_selector("html.ready")
        watches.append((watch, path.as_uri()))
        return page, watch

    yield show
    for context in contexts:
        context.close()
    for watch, address in watches:
        watch.assert_quiet(address)
