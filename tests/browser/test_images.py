"""The gallery of images in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from extras import needs
from howsure.core.records import Table
from howsure.report.document import PageContent
from howsure.report.images import image_table
from howsure.report.page.render import render_page


def gallery(folder: Path) -> PageContent:
    """Twelve rows with pictures of many shapes, one of them gone, one with a hostile name."""
    pil = needs("PIL.Image")
    files = []
    for k in range(12):
        name = "<img src=x onerror=alert(1)>.png" if k == 3 else f"{'long' * 20}{k}.png"
        pil.new("RGB", (20 + 40 * k, 300 - 20 * k), (20 * k, 90, 90)).save(folder / name)
        files.append(str(folder / name))
    (folder / f"{'long' * 20}1.png").unlink()
    columns = {
        "kind": np.array(["worst"] * 6 + ["best"] * 6, dtype=object),
        "row": np.array([f"row name {k}" * (k % 3 + 1) for k in range(12)], dtype=object),
        "y": np.linspace(-1e6, 1e6, 12),
        "prediction": np.linspace(0, 1e-9, 12),
        "cce": np.linspace(1, 0, 12),
    }
    rows = Table(name="cce_rows", columns=columns, model="m")
    return PageContent(
        title="images", tables=(image_table(rows, np.array(files, dtype=object)), rows)
    )


@pytest.mark.parametrize("width", [360, 1280])
def test_pictures_are_seen_and_nothing_overflows(chromium: str, tmp_path: Path, width: int) -> None:
    needs("playwright.sync_api")
    from playwright import sync_api as api

    path = tmp_path / "report.html"
    path.write_text(render_page(gallery(tmp_path)), encoding="utf-8")
    said: list[Any] = []
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
        page.goto(path.as_uri())
        page.wait_for_selector("html.ready")
        sizes = page.eval_on_selector_all(
            ".tiles img", "all => all.map((one) => [one.naturalWidth, one.naturalHeight])"
        )
        overflow = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        gone = page.locator(".no-image").all_inner_texts()
        beside = page.eval_on_selector_all(
            ".tiles li",
            "all => all.every((one) => one.scrollWidth <= one.clientWidth + 1)",
        )
        browser.close()
    assert said == []
    assert len(sizes) == 11
    assert all(max(size) == 112 for size in sizes)
    assert gone == ["the file is gone"]
    assert overflow <= 0
    assert beside
