"""Every finding has a page, which asks its question and shows what really comes out."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from howsure.recalibration import METHODS
from howsure.verdict import Advice, Finding
from howsure.verdict.findings import questions

FOLDER = Path(__file__).parents[2] / "docs" / "findings"
PAGES = sorted(FOLDER.glob("*.md"))
EXAMPLE = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", flags=re.DOTALL)


def test_every_finding_has_a_page_and_every_page_a_finding() -> None:
    assert {page.stem for page in PAGES} == {"README", *questions()}


@pytest.mark.parametrize("name", questions())
def test_the_heading_is_the_question(name: str) -> None:
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"# {questions()[name].asked}"


def test_the_index_asks_all_questions_in_order() -> None:
    rows = re.findall(r"^\| \[`(\w+)`\]\((\w+)\.md\) \| (.*) \|$", _text("README"), flags=re.M)
    assert rows == [(name, name, question.asked) for name, question in questions().items()]


def test_the_index_tells_every_key_of_a_finding() -> None:
    told = _text("README").partition("| key |")[2].partition("\n\n")[0]
    keys = [key for row in re.findall(r"^\| (`.*?) \|", told, flags=re.M) for key in _names(row)]
    assert sorted(keys) == sorted(part.name for part in fields(Finding))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.rate
def test_the_example_prints_what_the_page_says(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = EXAMPLE.findall(_text(page.stem))
    assert len(found) == 1
    code, printed = found[0]
    assert code.count("\n") <= 12
    exec(compile(code, page.name, "exec"), {})  # the page's own words
    assert capsys.readouterr().out == printed


def _names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def _text(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", questions())
def test_the_page_lists_the_mends_that_aim_at_it(name: str) -> None:
    aimed = [f"`{each.name}`" for each in METHODS.values() if name in each.aims]
    told = f"[Tried in five-fold cross-validation](../recalibrate.md): {', '.join(aimed)}."
    assert (told in _text(name)) == bool(aimed)


def test_the_index_tells_what_advice_holds() -> None:
    told = _text("README").partition("`advice` in .json: ")[2].partition(".\n")[0]
    assert _names(told) == [part.name for part in fields(Advice) if part.name not in _OTHER]


_OTHER = {"score", "model"}
