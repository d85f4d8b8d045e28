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
COLOURS, MAXCOVERAGE = 128, 1
"""Colours of a picture, and how they are chosen: rare ones, such as those of marks, are kept."""
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
PRINT = "print"
MORE = {"one": ("dark", PRINT), "two": (PRINT,), "monitor": ("dark",)}
"""Pages that are shown in the dark, or on paper, too."""
SHEETS, SHEET_SCALE, GAP = 2, 0.85, 12
"""Sheets of A4 side by side, pixels to a point, and the pixels between them."""
SHOWN = {
    "one": (
        "One model: no",
        "a distribution for each row, with two groups: the faults, and the remedy.",
    ),
    "right": ("One model: yes", "a distribution for each row, with no problems found."),
    "few": ("One model: inconclusive", "fifty rows, and how many more are needed."),
    "two": (
        "Two models",
        "with groups and features: one column per model, and both in each figure.",
    ),
    "five": ("Five models", "the findings of all models side by side, best first."),
    "bare": ("Intervals alone", "a table of y, lower and upper, with two groups."),
    "labels": ("Label sets", "a classifier's sets, and a site where they under-cover."),
    "monitor": (
        "A monitor",
        "new rows without y: which are outside the reference, and which not to trust.",
    ),
}
"""Title of each page, and what it shows."""


def taken() -> list[tuple[str, str]]:
    """Page and view of every picture."""
    return [(name, view) for name in SHOWN for view in ("1400", "390", *MORE.get(name, ()))]


def page() -> str:
    """The list of pictures."""
    lines = [
        "# Pages",
        "",
        "The first screen of a report shows the verdict: the faults, their confidence intervals, "
        "and what to do. Then there is one section per question; details are collapsed.",
        "",
        "These are the first screens of eight reports, at 1,400 and 390 pixels, some also with a "
        "dark background and on paper. `python docs/make_pages.py` makes them from the data of "
        "`tests/browser`.",
        "",
        "A keyboard is enough: the left and right arrows read the marks of a figure that has the "
        "focus. Screen readers get a description of each figure, with its numbers.",
    ]
    for name, (title, told) in SHOWN.items():
        lines += [
            "",
            f"## {title}",
            "",
            f"{told[0].upper()}{told[1:]}",
            "",
            f"![{title} on a desk](pages/{name}-1400.webp)",
            "",
            f"![{title} on a phone](pages/{name}-390.webp)",
        ]
        words = {"dark": "in the dark", PRINT: "on paper"}
        for view in MORE.get(name, ()):
            lines += ["", f"![{title} {words[view]}](pages/{name}-{view}.webp)"]
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
            for view in (view for page, view in taken() if page == name):
                _take(browser, file, view, folder / f"{name}-{view}.webp")
        words = [*STARTED.split(), "--quiet", "-o", str(file)]
        run = [sys.executable, "-c", "from howsure.cli.entry import main; main()", *words]
        subprocess.run(run, check=True, cwd=HERE.parent)
        for name in START_VIEWS:
            _take(browser, file, name, ASSETS / f"{name}.png")
        browser.close()


def _take(browser: Any, file: Path, view: str, target: Path) -> None:
    """The first screen of a page, or its first sheets, in few colours."""
    size, scheme = {**VIEWS, **START_VIEWS}.get(view, VIEWS["1400"])
    tab = browser.new_page(viewport=size, color_scheme=scheme)
    tab.goto(file.as_uri())
    tab.wait_for_selector("html.complete" if view == PRINT else "html.ready")
    picture = _printed(tab) if view == PRINT else _read(tab.screenshot())
    tab.close()
    few: Any = picture.quantize(COLOURS, method=MAXCOVERAGE, kmeans=2)
    few.save(target, optimize=True, lossless=True, quality=100, method=6)


def _read(picture: bytes) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(picture)).convert("RGB")


def _printed(tab: Any) -> Any:
    """The first sheets of a page on A4, side by side."""
    import pypdfium2
    from PIL import Image

    document = pypdfium2.PdfDocument(tab.pdf(format="A4"))
    sheets = [sheet.render(scale=SHEET_SCALE).to_pil() for sheet in list(document)[:SHEETS]]
    wide, high = sheets[0].size
    both = Image.new("RGB", (len(sheets) * (wide + GAP) + GAP, high + 2 * GAP), "#888888")
    for place, sheet in enumerate(sheets):
        both.paste(sheet, (GAP + place * (wide + GAP), GAP))
    return both


def main() -> None:
    """Write the pictures and the page anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.webp"):
        old.unlink()
    pictures(FOLDER)
    (HERE / "pages.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
