"""README and the comparison that it is made of: pictures are current, each cell has a source."""

from __future__ import annotations

import ast
import importlib
import re
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from extras import needs
from scripts import script

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMPARISON = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
SVG = "{http://www.w3.org/2000/svg}"
LINES = 65
"""Lines of README, without the empty ones."""


def test_the_readme_is_short() -> None:
    assert len([line for line in README.splitlines() if line.strip()]) <= LINES


def test_pictures_of_the_readme_exist() -> None:
    pictures = re.findall(r'<img src="([^"]+)" width="\d+" alt="[^"]{40,}">', README)
    assert len(pictures) == README.count("<img") == 2
    pictures += re.findall(r'<source media="[^"]+" srcset="([^"]+)">', README)
    assert len(pictures) == README.count("<picture") + 2
    assert all((ROOT / picture).is_file() for picture in pictures)


MAKER = script("docs/make_terminal.py")


@pytest.fixture(scope="module")
def printed() -> str:
    return MAKER.printed()


@pytest.fixture(scope="module")
def picture() -> str:
    return MAKER.PICTURE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def drawn(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # made by a script of this repository


def test_the_picture_of_the_terminal_is_current(printed: str, picture: str) -> None:
    assert picture == MAKER.picture(printed), "run python docs/make_terminal.py"


def test_the_picture_shows_all_that_the_command_prints(
    printed: str, drawn: ElementTree.Element
) -> None:
    shown = "".join(part.text or "" for part in drawn.iter(f"{SVG}text"))
    plain = re.sub(r"\x1b\[[\d;]*m", "", printed)
    assert "".join(shown.split()) == "".join(f"${MAKER.COMMAND}{plain}".split())


def test_the_picture_is_of_the_first_command() -> None:
    first = re.search(r"```shell\n.*\n(howsure .*)", README)
    assert first is not None
    assert first[1] == f"{MAKER.COMMAND} -o report.html"
    assert f"howsure {script('docs/make_pages.py').STARTED}" == MAKER.COMMAND


def test_the_picture_loads_nothing_and_is_80_columns_wide(
    picture: str, drawn: ElementTree.Element
) -> None:
    assert not re.search(r"@font-face|@import|https?://(?!www\.w3\.org/2000/svg)", picture)
    assert not re.search(r"url\((?!#)", picture)
    width = 20 * 0.6  # of a character
    for part in drawn.iter(f"{SVG}text"):
        text = (part.text or "").rstrip("\n")
        assert float(part.attrib["x"]) + len(text) * width <= 80 * width


def luminance(colour: str) -> float:
    """Relative luminance, as in WCAG."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_picture_is_legible_on_light_and_dark_pages(drawn: ElementTree.Element) -> None:
    """Its text stands on a background of its own, with a contrast of 4.5 or more."""
    background = next(
        rect for rect in drawn.findall(f"{SVG}rect") if rect.attrib["fill"].startswith("#")
    )
    _, _, wide, high = (float(number) for number in drawn.attrib["viewBox"].split())
    assert float(background.attrib["width"]) >= wide - 2
    assert float(background.attrib["height"]) >= high - 2
    style = "".join(part.text or "" for part in drawn.iter(f"{SVG}style"))
    colours = re.findall(r"fill: (#\w{6})", style)
    assert len(colours) >= 5
    for colour in colours:
        high, low = sorted((luminance(colour), luminance(background.attrib["fill"])), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 4.5, colour


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_each_cell_of_the_comparison_has_a_source() -> None:
    table = re.search(r"^\| \| howsure \|.*?\n\n", README, flags=re.DOTALL | re.MULTILINE)
    assert table is not None
    heading, _, *rows = map(cells, table[0].strip().splitlines())
    names = [name.removesuffix(" (R)") for name in heading[1:]]
    said = {
        (name, row[0]): cell
        for row in rows
        for name, cell in zip(names, row[1:], strict=True)
        if cell
    }
    sources = {}
    for section in re.split(r"^## ", COMPARISON, flags=re.MULTILINE)[1:]:
        for row in map(cells, re.findall(r"^\| .*", section, flags=re.MULTILINE)[1:]):
            question, answer, source = row
            assert source, row
            sources[section.splitlines()[0], question] = answer
    assert len(said) > 60
    assert sources == said


@pytest.mark.slow
@pytest.mark.parametrize("library", ["mapie", "uncertainty_toolbox", "arviz", "sklearn"])
@pytest.mark.filterwarnings("ignore")  # of other libraries
def test_what_the_comparison_names_exists(library: str) -> None:
    needs(library)
    names = set(re.findall(rf"`({library}\.[\w.]+)`", COMPARISON))
    assert len(names) >= 5
    absent = sorted(name for name in names if not exists(name))
    assert not absent, absent


def exists(name: str) -> bool:
    """Whether a module defines a name; one that lacks an extra is read, not imported."""
    module, _, inner = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), inner)
    except ModuleNotFoundError:
        library, *path = module.split(".")
        spec = find_spec(library)
        assert spec is not None
        assert spec.origin is not None
        file = Path(spec.origin).parent.joinpath(*path).with_suffix(".py")
        tree = ast.parse(file.read_text(encoding="utf-8")) if file.exists() else ast.Module([], [])
        return any(getattr(node, "name", "") == inner for node in tree.body)


def test_a_name_that_is_not_there_is_seen() -> None:
    assert exists("pathlib.Path")
    assert not exists("pathlib.Paths")
    assert not exists("email.nowhere.Path")
