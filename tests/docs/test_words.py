"""Sentences that people read use the field's terms, and those of the help are short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from howsure.cli.main import app
from howsure.engine.catalogue import catalogue

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "howsure"
LONGEST = 25
"""Words of a sentence."""

FORBIDDEN = {
    r"\bbelie(fs?|ves?|ved)\b": "prediction, predictive distribution",
    r"\blaws?\b": "distribution",
    r"\b(right|wrong) models?\b": "correctly specified model",
    r"\bholds? (a|the|its) (new )?(y|mean)\b|\bintervals hold\b": "contains, covers",
    r"\btoo (seldom|often)\b|\bseldom\b": "under-covers, over-covers",
    r"\bdares?\b": "accepts, prediction rate",
    r"\bmend(s|ed|ing)?\b": "recalibrate, correct",
    r"\bsurely off\b|\bpoints off\b": "under-covers, over-covers",
    r"\ba wish\b|\btell of\b|\bsay the\b": "plain English",
}
ALLOWED = (
    r"power laws?",
    r"\*\*Laws\.\*\*|^#+ Laws$",  # what a measure obeys
    r"[\w-]+[=.(]law\b|\blaw=|--law\b",  # an argument
    r"\b(law|[Bb]eliefs?) must\b",  # an argument, where it is refused
)
"""Where such a word is right."""


def matched(folder: Path, *patterns: str) -> list[Path]:
    """The files of a folder that patterns match: each pattern some."""
    found = {pattern: sorted(folder.glob(pattern)) for pattern in patterns}
    blind = [pattern for pattern, paths in found.items() if not paths]
    assert not blind, f"nothing in {folder} matches {blind}"
    return [path for paths in found.values() for path in paths]


MODULES = matched(SOURCE, "**/*.py")
TOPICS = ("explanations", "findings", "how-to", "measures", "reference")
PAGES = [
    *matched(ROOT, "README.md", "docs/*.md", *(f"docs/{topic}/*.md" for topic in TOPICS)),
    *matched(SOURCE, "report/page/templates/*.html"),
]


def wrong(text: str) -> list[str]:
    """The forbidden words of a text, each with what to say instead."""
    for right in ALLOWED:
        text = re.sub(right, "", text, flags=re.MULTILINE)
    return [
        f"{found[0]!r} in {text[max(found.start() - 40, 0) : found.end() + 20]!r}: say {better}"
        for pattern, better in FORBIDDEN.items()
        for found in re.finditer(pattern, text, flags=re.IGNORECASE)
    ]


def prose(page: str) -> str:
    """A page without its code, its links' targets and its addresses."""
    page = re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"`[^`\n]*`", "", page)
    return re.sub(r"\]\([^)]*\)", "]", page)


def sentences(path: Path) -> list[str]:
    """Texts of a module that are no docstrings; what is filled in stands as x."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(part)
        for node in ast.walk(tree)
        for part in (
            [node.value]
            if isinstance(node, ast.Expr)
            else node.values
            if isinstance(node, ast.JoinedStr)
            else []
        )
    }
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "x" for p in node.values)
            texts.append("".join(str(part) for part in parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts += [] if id(node) in skipped else [node.value]
    return [text for text in texts if re.search(r"\b[a-z]+ | [a-z]+\b", text)]


def helps(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """Each text of the help of a command and of those below it, by where it stands."""
    yield path, command.help or ""
    for option in command.params:
        yield f"{path} {option.opts[0]}", getattr(option, "help", None) or ""
        yield f"{path} {option.opts[0]}", getattr(option, "rich_help_panel", None) or ""
    for name, inner in getattr(command, "commands", {}).items():
        yield from helps(inner, f"{path} {name}")


def long_sentences(sentences: Iterable[str]) -> list[str]:
    return [sentence for sentence in sentences if len(sentence.split()) > LONGEST]


def test_texts_were_found() -> None:
    findings = [path for path in MODULES if "FindingQuestion(" in path.read_text("utf-8")]
    assert sum(len(sentences(path)) for path in findings) > 200
    assert len(sentences(SOURCE / "report" / "questions.py")) > 10
    assert len(PAGES) > 100


def test_a_pattern_that_matches_nothing_is_seen(tmp_path: Path) -> None:
    (tmp_path / "a_words.py").touch()
    assert matched(tmp_path, "*_words.py") == [tmp_path / "a_words.py"]
    with pytest.raises(AssertionError, match=r"matches \['report/\*_words.py'\]"):
        matched(tmp_path, "*_words.py", "report/*_words.py")


def test_forbidden_words_are_seen() -> None:
    for text in (
        "Which laws are right?",
        "How far the belief is off",
        "the intervals hold",
        "holds a new y",
        "a right model",
        "They miss too often.",
        "the mend",
    ):
        assert wrong(text), text
    for text in ("a power law", "pass --law t", "law must be", "## Laws", "amend"):
        assert not wrong(text), text
    assert prose("a `law` [b](law.md)\n```\nlaw\n```\n") == "a  [b]\n\n"


def test_help_uses_the_fields_terms_in_short_sentences() -> None:
    texts = sorted({*helps(typer.main.get_command(app), "howsure")})
    assert len(texts) > 200
    faults = [
        f"{where}: {fault}"
        for where, text in texts
        for fault in (*wrong(text), *long_sentences(re.split(r"(?<=[.;:?!]) ", text)))
    ]
    assert not faults, faults


@pytest.mark.slow
def test_sentences_use_the_fields_terms() -> None:
    faults = [f"{path}: {word}" for path in MODULES for word in wrong("\n".join(sentences(path)))]
    assert not faults, faults


def test_pages_use_the_fields_terms() -> None:
    faults = [f"{path}: {word}" for path in PAGES for word in wrong(prose(path.read_text("utf-8")))]
    assert not faults, faults


def test_measures_use_the_fields_terms() -> None:
    for metric in catalogue().values():
        assert not wrong(f"{metric.title}. {metric.question.value} {metric.meaning}"), metric.name
