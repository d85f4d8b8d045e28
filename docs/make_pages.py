"""Take pictures of reports: six that `tests/browser` looks at, and the one of the start page."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FOLDER = HERE / "pages"
ASSETS = HERE / "assets"
STARTED = "assess examples/rentals.csv --groups day"
"""The command whose report the start page shows."""
COLOURS = 128
VIEWS = {
    "1400": ({"width": 1400, "height": 950}, "light"),
    "390": ({"width": 390, "height": 844}, "light"),
    "dark": ({"width": 1400, "height": 950}, "dark"),
}
"""What each picture's name ends in: a desk, a phone, and a desk in the dark."""
START_VIEWS = {
    "report": ({"width": 1000, "height": 630}, "light"),
    "report-dark": ({"width": 1000, "height": 630}, "dark"),
}
"""The pictures of the start page, in whose columns little room is."""
SHOWN = {
    "one": (
        "One model",
        "a distribution in each row, with two groups. What fails, and what corrects it.",
    ),
    "two": ("Two models", "with groups and features. Models are columns, figures hold both."),
    "five": ("Five models", "the states of all beside each other, best first."),
    "bare": ("Intervals alone", "a table of y, lower and upper, with two groups."),
    "labels": ("Sets of labels", "a classifier's sets, and a site where they miss."),
    "monitor": ("A monitor", "new rows without y: which lie outside, and which to distrust."),
}
"""Title of each page, and what it shows."""


def page() -> str:
    """The list of pictures."""
    lines = [
        "# Pages",
        "",
        "The first screen of a report holds the answer: what is wrong, how sure that is, and what "
        "to do. Sections follow, one a question; what is not needed at once is folded.",
        "",
        "These are the first screens of six reports, at 1,400 and 390 pixels. They are made by "
        "`python docs/make_pages.py`, of the data that `tests/browser` looks at.",
    ]
    for name, (title, told) in SHOWN.items():
        lines += [
            "",
            f"## {title}",
            "",
            f"{told[0].upper()}{told[1:]}",
            "",
            f"![{title} on a desk](pages/{name}-1400.png)",
            "",
            f"![{title} on a phone](pages/{name}-390.png) [Dark mode](pages/{name}-dark.png)",
        ]
    return "\n".join([*lines, ""])


def pictures(folder: Path) -> None:
    """Every page in every view, and the report of the start page."""
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(HERE.parent / "tests"))
    from browser import pages

    with tempfile.TemporaryDirectory() as made, sync_playwright() as play:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        file = Path(made) / "page.html"
        for name in SHOWN:
            file.write_text(pages.html(name), encoding="utf-8")
            for view, seen in VIEWS.items():
                (folder / f"{name}-{view}.png").write_bytes(_taken(browser, file, *seen))
        words = [*STARTED.split(), "--quiet", "-o", str(file)]
        run = [sys.executable, "-c", "from howsure.cli.entry import main; main()", *words]
        subprocess.run(run, check=True, cwd=HERE.parent)
        for name, seen in START_VIEWS.items():
            (ASSETS / f"{name}.png").write_bytes(_taken(browser, file, *seen))
        browser.close()


def _taken(browser: Any, file: Path, size: dict[str, int], scheme: str) -> bytes:
    """The first screen of a page."""
    tab = browser.new_page(viewport=size, color_scheme=scheme)
    tab.goto(file.as_uri())
    tab.wait_for_selector("html.ready")
    picture = _small(tab.screenshot())
    tab.close()
    return picture


def _small(picture: bytes) -> bytes:
    """A picture in few colours."""
    from PIL import Image

    whole = Image.open(io.BytesIO(picture)).convert("RGB")
    few: Any = whole.quantize(COLOURS, kmeans=2)
    held = io.BytesIO()
    few.save(held, "PNG", optimize=True)
    return held.getvalue()


def main() -> None:
    """Write the pictures and the page anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.png"):
        old.unlink()
    pictures(FOLDER)
    (HERE / "pages.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
