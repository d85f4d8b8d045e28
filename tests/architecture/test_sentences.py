"""Sentences are for readers: no decision hangs on what one says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import howsure

ROOMS = (
    *(
        "engine",
        "topics",
        "recalibration",
        "figures",
        "verdict",
        "report",
        "streaming",
        "watch",
        "cli",
    ),
    "sklearn",
)
LOOKS = {"startswith", "endswith", "removeprefix", "removesuffix", "find", "index", "count"}


def read_sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where code looks for several words in a text, and which; names of two words are no text."""
    for node in ast.walk(tree):
        asked: list[ast.expr] = []
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            text = node.comparators[0]
            asked = [node.left] if not isinstance(text, ast.Name | ast.Tuple | ast.Set) else []
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = node.args[:1] if node.func.attr in LOOKS else []
        for each in asked:
            said = each.value if isinstance(each, ast.Constant) else None
            if isinstance(said, str) and sum(map(str.isalpha, said.split())) > 1:
                yield node.lineno, said


SENTENCES = {"sentence", "clause", "in_full", "choice"}
CUTS = {*LOOKS, "partition", "rpartition", "split", "rsplit", "replace", "lower", "strip"}


def taken_apart(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Where code cuts a sentence, or compares two."""
    for node in ast.walk(tree):
        sentences: list[ast.expr] = []
        match node:
            case ast.Call(func=ast.Attribute(attr=method, value=value)) if method in CUTS:
                sentences = [value]
            case ast.Subscript(value=value):
                sentences = [value]
            case ast.Compare(left=left, comparators=[*others]):
                sentences = [left, *others]
        for each in sentences:
            if isinstance(each, ast.Attribute) and each.attr in SENTENCES:
                yield node.lineno, ast.unparse(node)


def test_a_sentence_that_is_cut_or_compared_is_seen() -> None:
    code = """
a.sentence.partition(". "); b.clause[1:]; c.choice == d.choice
e.sentence.title(); f.text == "x"
"""
    assert [line for line, _ in taken_apart(ast.parse(code))] == [2, 2, 2, 2]


def test_no_code_takes_a_sentence_apart() -> None:
    found = []
    for room in ROOMS:
        for path in sorted((Path(howsure.__file__).parent / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [f"{room}/{path.name}:{line}: {code}" for line, code in taken_apart(tree)]
    assert not found, found


def test_a_look_into_a_sentence_is_seen() -> None:
    code = 'if "groups must" not in str(e) or r.startswith("no interval"): pass'
    assert [said for _, said in read_sentences(ast.parse(code))] == ["groups must", "no interval"]


def test_no_decision_hangs_on_words() -> None:
    found = []
    for room in ROOMS:
        for path in sorted((Path(howsure.__file__).parent / room).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [f"{room}/{path.name}:{line}: {said!r}" for line, said in read_sentences(tree)]
    assert not found, found
