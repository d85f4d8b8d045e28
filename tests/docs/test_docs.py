"""The docs say what is true: pages are current, commands exist, links lead somewhere."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

from extras import libraries
from howsure.cli.main import app
from scripts import script

ROOT = Path(__file__).parents[2]
MADE = {"_build", "learn", "figures", "api"}
"""Folders that a build of the site fills."""
PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if not MADE & {*page.relative_to(ROOT).parts}
)


@pytest.mark.rate
def test_measure_pages_are_current() -> None:
    made = script("docs/make_measures.py").pages()
    held = {p.name: p.read_text(encoding="utf-8") for p in (ROOT / "docs/measures").glob("*.md")}
    assert held == made, "run python docs/make_measures.py"


def test_the_page_of_time_and_memory_is_current() -> None:
    held = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(ROOT / "benchmarks" / "assess.py"))["page"]()
    assert held == made, "run python benchmarks/assess.py --write"


def test_the_page_of_columns_is_current() -> None:
    held = (ROOT / "docs" / "inputs.md").read_text(encoding="utf-8")
    assert held == script("docs/make_inputs.py").page(), "run python docs/make_inputs.py"


def test_links_lead_somewhere() -> None:
    dead = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text(encoding="utf-8"))
        if not target.startswith(("http:", "https:", "mailto:"))
        and not (page.parent / target).exists()
    ]
    assert not dead, dead


def test_documented_commands_exist() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    named = {name for text in texts for name in re.findall(r"(?:`|\$ )howsure (\w+)(?= )", text)}
    unknown = [name for name in named if CliRunner().invoke(app, [name, "--help"]).exit_code != 0]
    assert len(named) > 10
    assert not unknown, unknown


def test_the_readme_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})  # the page's own words
    assert (tmp_path / "report.html").stat().st_size > 10_000


TOLD = [*PAGES, *(ROOT / "docs").glob("*.py"), *(ROOT / "docs").glob("*/plot_*.py")]
TOLD += [path for path in (ROOT / "examples").rglob("*") if path.suffix in (".md", ".py", ".yml")]


def unreleased(text: str) -> list[str]:
    """Lines that install howsure from where it is not, and do not say from when on it is."""
    found = r"pip3? install\b[^`\n]*?[\s\"'](howsure\b(?![-\w]*\.)[^`\n]*)"
    return [
        line
        for line in text.splitlines()
        if re.search(found, line) and not re.search("(first|next) release on\\W", line)
    ]


def test_what_is_installed_is_there() -> None:
    faults, known = [], {*libraries()}
    for page in TOLD:
        text = page.read_text(encoding="utf-8")
        asked = re.findall(r"(?:howsure|[\s\"']\.)\[([\w,]+)\]", text)
        absent = {extra for extras in asked for extra in extras.split(",")} - known
        faults += [f"{page}: {fault}" for fault in (*unreleased(text), *absent)]
    assert not faults, faults


def test_a_command_that_fails_today_is_seen() -> None:
    for text in (
        "pip install howsure",
        'run `pip install "howsure[report]"`',
        "pip install -U howsure",
    ):
        assert unreleased(text)
    for text in (
        "pip install wheels/howsure-*.whl",
        'pip install ".[report]"  # from the first release on: pip install "howsure[report]"',
        "pip install -e examples/sixth_study",
    ):
        assert not unreleased(text)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/quickstart.md"])
def test_the_first_command_works_in_a_checkout(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    first = re.search(r"```(?:shell|console)\n(?:\$ )?(pip .*)", text)
    assert first is not None
    assert first[1].startswith('pip install ".[report]"')
    assert 'pip install "howsure[report]"' in text


def test_files_named_in_the_errata_exist() -> None:
    text = (ROOT / "docs/errata.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:studies/)?tests/[^`:]+)", text):
        assert (ROOT / name).exists(), name


def test_nothing_speaks_of_where_it_was_made() -> None:
    banned = re.compile(r"/work/|HOWSURE_DATA=/|\.library")
    for path in [*PAGES, *ROOT.glob("src/**/*.py"), *ROOT.glob("examples/*.py")]:
        assert not banned.search(path.read_text(encoding="utf-8")), path
