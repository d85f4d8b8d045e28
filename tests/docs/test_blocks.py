"""Blocks of code on the older pages run, or say why not; every page says what its blocks are.

Pages of how-to and explanations, of columns and findings, of `check` and of measures have tests
of their own. Conventions are those of `test_how_to`.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest

from docs.test_docs import PAGES, ROOT
from docs.test_how_to import blocks, executed, outputs, sentences_of, unknown_commands
from docs.test_words import long_sentences, prose
from extras import absent, needs
from howsure_studies.tasks import DataNotFoundError
from scripts import script

DOCS = ROOT / "docs"
RUN = [
    page
    for page in PAGES
    if page.parent in (DOCS, DOCS / "case-studies", DOCS / "reference")
    and page.name not in ("check.md", "what-goes-in.md", "quickstart.md", "index.md")
]
LANGUAGES = {"python", "console", "shell", "sh", "text", "toml", "yaml", "json", "markdown", "r"}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def lines_of(text: str) -> list[str]:
    """Commands of a block, each without its prompt, its comment and what follows a pipe."""
    joined = re.sub(r"\\\n>?\s*", "", text)
    found = re.findall(r"(?:^(?:\$ )?|; )(howsure [^;\n]*)", joined, flags=re.MULTILINE)
    return [re.split(r"\s[|>]\s|\s&&\s", line)[0] for line in found]


def fits(shown: str, came: str) -> bool:
    """As in `test_how_to`, wherever a terminal of another width breaks lines."""
    parts = [re.escape(" ".join(part.split())) for part in f"\n{shown}".split("\n…\n")]
    return re.fullmatch(".*".join(parts), " ".join(came.split())) is not None


def test_pages_were_found() -> None:
    assert len(PAGES) > 100
    assert len(RUN) > 20


def test_every_block_says_what_it_is() -> None:
    wrong = []
    for page in PAGES:
        inside = False
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith("```"):
                said = line.removeprefix("```").strip()
                if not (inside or said in LANGUAGES or said.startswith("{")):
                    wrong.append(f"{named(page)}: {line}")
                inside = not inside
        wrong += [f"{named(page)}: its last block has no end"] if inside else []
    assert not wrong, wrong


@pytest.mark.slow
def test_the_program_knows_every_command() -> None:
    lines = {
        line
        for page in PAGES
        for block in blocks(page.read_text(encoding="utf-8"))
        if block.language in ("console", "shell", "sh")
        for line in lines_of(block.text)
        if not re.search(r"COMMAND|--install-completion|…", line)
    }
    unknown = unknown_commands(lines)
    assert not unknown, unknown


def test_toml_is_toml() -> None:
    for page in PAGES:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language == "toml":
                tomllib.loads(block.text)


SHORT = [
    ROOT / "README.md",
    *(DOCS / name for name in ("index.md", "quickstart.md", "inputs.md", "reference/formats.md")),
    DOCS / "case-studies" / "README.md",
    *(
        page
        for name in ("measures", "how-to", "explanations")
        for page in (DOCS / name).glob("*.md")
    ),
]


def test_sentences_are_short() -> None:
    long = [
        f"{page}: {sentence}"
        for page in SHORT
        for sentence in long_sentences(sentences_of(prose(page.read_text(encoding="utf-8"))))
    ]
    assert not long, long


@pytest.mark.parametrize("page", RUN, ids=named)
@pytest.mark.rate
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    held: dict[str, object] = {"__name__": "page"}
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language == "python" and block.run:
            try:
                executed(block.text, held, page.name)
            except DataNotFoundError as error:
                absent("data", str(error))


@pytest.mark.parametrize(
    ("name", "least"), [("README.md", 1), ("docs/index.md", 2), ("docs/quickstart.md", 2)]
)
@pytest.mark.slow
def test_the_first_pages_run_and_show_what_comes_out(
    name: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / name).read_text(encoding="utf-8")
    for file in set(re.findall(r"examples/\w+\.csv", page)):
        needs("pandas")
        (tmp_path / "examples").mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    seen = [(shown, came) for _, shown, came in outputs(page, name)]
    assert len([shown for shown, _ in seen if shown.strip()]) >= least
    for shown, came in seen:
        assert fits(shown, came), f"the page shows\n{shown}\nbut this comes\n{came}"


def test_the_start_page_shows_one_report() -> None:
    """Its words and its pictures are of one command."""
    command = script("docs/make_pages.py").STARTED
    assert f"$ howsure {command} -o report.html\n" in (DOCS / "index.md").read_text("utf-8")
