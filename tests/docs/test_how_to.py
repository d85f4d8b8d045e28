"""docs/how-to and docs/explanations: what stands there is run, and what is shown comes out.

A page is run from top to bottom in a folder of its own. Python blocks share one namespace, and the
``text`` block after one is what it prints. In a ``console`` block, lines after a command are what
it prints; a line ``…`` stands for any lines. Commands are ``howsure`` and ``pytest``; one that ends
otherwise than with 0 shows so in the next line: ``$ echo $?``. A block whose first line is a
comment with a file's name is that file.
Before a block that would take long or need what is not here, a comment says so, and its commands
are only parsed: ``<!-- not run: why -->``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from docs.test_words import long_sentences, wrong
from extras import needs
from howsure.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
NUCLEI = DOCS / "case-studies" / "nuclei.md"
PAGES = sorted([*(DOCS / "how-to").glob("*.md"), *(DOCS / "explanations").glob("*.md"), NUCLEI])
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))
STANDING_IN = [path for path in TUTORIALS if "DataNotFoundError" in path.read_text("utf-8")]
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<why>.+?) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    flags=re.DOTALL | re.MULTILINE,
)
FILE = re.compile(r"# ([\w.-]+\.(?:toml|py|csv|yml))\n")
OPTIONAL = (
    *("mapie", "uncertainty_toolbox", "crepes", "scoringrules", "pandas", "polars", "torch"),
    *("arviz", "statsmodels", "prophet", "python_calamine", "openpyxl", "jsonschema"),
    *("huggingface_hub", "mlflow", "wandb", "mcp"),
)
COMMAND: Any = typer.main.get_command(app)


@dataclass
class Block:
    """A fenced block of a page, and where its text lies in the page."""

    language: str
    text: str
    start: int
    end: int
    run: bool


def blocks(page: str) -> list[Block]:
    return [
        Block(found["language"], found["text"], *found.span("text"), found["why"] is None)
        for found in BLOCK.finditer(page)
    ]


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with what is shown of it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = command[:-1] + more.removeprefix(">").strip()
        yield command, shown


def parsed(command: str) -> None:
    """The program knows this command and its flags; nothing is done."""
    words = shlex.split(command, comments=True)
    assert words.pop(0) == "howsure", command
    inner = COMMAND
    while hasattr(inner, "get_command"):
        context = inner.make_context("howsure", [words[0]], resilient_parsing=True)
        inner = inner.get_command(context, words.pop(0))
        assert inner is not None, command
    inner.make_context("howsure", words)


def unknown_commands(lines: Iterable[str]) -> list[str]:
    """Those that the program does not know, or a flag of them, each with what it says."""
    unknown = []
    for line in lines:
        try:
            parsed(line)
        except Exception as error:  # noqa: BLE001  # of a parser that is typer's own
            unknown.append(f"{line}: {error}")
    return unknown


def finished(command: str) -> tuple[int, str]:
    """A command that was run: its exit status and what it printed."""
    words = shlex.split(command, comments=True)
    if words[0] == "pytest":
        return session_of_pytest(words[1:])
    assert words[0] == "howsure", command
    result = CliRunner().invoke(app, words[1:], catch_exceptions=False, env={"COLUMNS": "80"})
    return result.exit_code, result.output


def session_of_pytest(words: list[str]) -> tuple[int, str]:
    """A session of pytest with the plug-in of howsure, and no other that is installed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "howsure.pytest_plugin", *words],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def executed(code: str, held: dict[str, Any], name: str) -> str:
    """A block of Python that was run: what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries
        exec(compile(code, name, "exec"), held)  # the page's own words
    return out.getvalue()


def outputs(page: str, name: str) -> Iterator[tuple[Block, str, str]]:
    """Run a page; of each block with output, what it shows and what comes out."""
    held: dict[str, Any] = {"__name__": "page"}
    printed = ""
    for block in blocks(page):
        named = FILE.match(block.text)
        if named:
            Path(named[1]).write_text(block.text, encoding="utf-8")
        if block.language == "python":
            printed = executed(block.text, held, name)
        elif block.language == "text":
            yield block, block.text, printed
        elif block.language == "console" and not block.run:
            for command, _ in commands(block.text):
                parsed(command)
        elif block.language == "console":
            status = 0
            for command, shown in commands(block.text):
                if command == "echo $?":
                    came, status = f"{status}\n", 0
                else:
                    assert not status, f"{name}: show the exit status {status} before {command}"
                    status, came = finished(command)
                yield block, shown, came
            assert not status, f"{name}: show the exit status {status}"


def fits(shown: str, came: str) -> bool:
    """Whether what is shown is what came; a line of dots stands for any lines."""
    if not shown.strip():
        return True
    parts = re.split(r"^…\n", shown.rstrip() + "\n", flags=re.MULTILINE)
    pattern = "(?:.*\n)*".join(re.escape(part) for part in parts)
    return re.fullmatch(pattern, came.rstrip() + "\n") is not None


def sentences_of(text: str) -> list[str]:
    """Each sentence, item and cell of a text."""
    text = text.replace("**", "")
    parts = re.split(r"\n\s*\n|^\s*[-*|] |^\d+\. |\|", text, flags=re.MULTILINE)
    return [each for part in parts for each in re.split(r"(?<=[.;:?!])\s", part)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


def named(path: Path) -> str:
    return str(path.relative_to(DOCS))


def test_pages_were_found() -> None:
    assert len(PAGES) > 20
    assert len(TUTORIALS) == 8
    assert len(STANDING_IN) == 6


QUESTIONS = {
    "gate-a-model": "How do I gate a model?",
    "intervals-too-narrow": "My intervals are too narrow: what now?",
    "88-or-90": "Is 88 % different from 90 %?",
    "which-columns": "Which columns does my table need?",
    "compare-models": "How do I compare five models?",
    "own-method": "How do I use my own method?",
}


@pytest.mark.parametrize(("name", "asked"), QUESTIONS.items())
def test_a_newcomers_question_is_the_title_of_a_page(name: str, asked: str) -> None:
    text = (DOCS / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# {asked}"


def test_what_a_page_shows_is_compared(folder: Path) -> None:
    page = "```python\n# a.csv\nprint(1)\n```\n\n```text\n1\n```\n\n```console\n$ howsure nope\n"
    found = outputs(f"{page}…\n$ echo $?\n2\n```\n", "a page")
    assert [(shown, came) for _, shown, came in found][::2] == [("1\n", "1\n"), ("2\n", "2\n")]
    assert (folder / "a.csv").exists()
    with pytest.raises(AssertionError, match="exit status 2"):
        list(outputs(f"{page}```\n", "a page"))
    assert fits("a\n…\nc\n", "a\nb\nb\nc\n")
    assert fits("…\n", "a\n")
    assert not fits("a\n", "b\n")
    assert not fits("a\n…\nc\n", "a\nb\n")


def test_commands_that_are_not_run_are_parsed() -> None:
    right = "howsure bench submit mypkg:Mine"
    assert unknown_commands([f"{right} --jobs 2 -o page.html"]) == []
    flag, command = unknown_commands([f"{right} --nonsense", "howsure nonsense"])
    assert "No such option" in flag
    assert command.startswith("howsure nonsense: ")


def test_commands_in_a_line_are_known() -> None:
    texts = [path.read_text(encoding="utf-8") for path in PAGES]
    lines = {line for text in texts for line in re.findall(r"`(howsure [a-z]+ [^`\n]+)`", text)}
    assert len(lines) > 20
    unknown = unknown_commands(lines)
    assert not unknown, unknown


@pytest.mark.parametrize("path", PAGES, ids=named)
@pytest.mark.rate
def test_a_page_runs_and_shows_what_comes_out(path: Path, folder: Path) -> None:
    page = path.read_text(encoding="utf-8")
    if (table := path.with_suffix(".csv")).exists():
        shutil.copy(table, folder)
    for library in OPTIONAL:
        if re.search(rf"^(?:import|from) {library}\b", page, flags=re.MULTILINE):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some announce their next version
                needs(library)
    for _, shown, came in outputs(page, path.name):
        assert fits(shown, came), f"{path.name} shows\n{shown}\nbut this comes\n{came}"


@pytest.mark.parametrize("folder_name", ["how-to", "explanations"])
def test_the_index_lists_every_page(folder_name: str) -> None:
    index = (DOCS / folder_name / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"```\{toctree\}\n(.*?)```", index, flags=re.DOTALL)
    listed = {line.strip() for tree in trees for line in tree.splitlines() if line.strip()}
    held = {page.stem for page in (DOCS / folder_name).glob("*.md")} - {"index"}
    assert held == {line for line in listed if not line.startswith(":") and "/" not in line}


@pytest.mark.parametrize("path", STANDING_IN, ids=lambda path: path.stem)
@pytest.mark.rate
def test_a_tutorial_runs_without_the_data(path: Path, tmp_path: Path) -> None:
    """On what stands in for them; `make docs` runs every tutorial on the data themselves."""
    needs("matplotlib")
    environment = {**os.environ, "MPLBACKEND": "Agg", "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("HOWSURE_DATA", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::UserWarning", str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_has_its_parts(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""\n')
    title, line = text.splitlines()[1:3]
    assert line == "=" * len(title)
    assert "\n# What was decided\n# ------" in text
    assert "\n# Where to go next:\n" in text
    told = "\n".join(re.findall(r"^# ?(.*)$", text, flags=re.MULTILINE))
    assert not long_sentences(sentences_of(re.sub(r"^%%$|^-+$", "\n", told, flags=re.MULTILINE)))
    assert not wrong(re.sub(r"``[^`]*``", "", told))
    for target in re.findall(r":doc:`[^<`]+<([^>]+)>`", " ".join(told.split())):
        page = DOCS / target[1:] if target.startswith("/") else path.parent / target
        assert page.with_suffix(".md").exists() or page.with_suffix(".py").exists(), target
