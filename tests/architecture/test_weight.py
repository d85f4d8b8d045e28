"""The ratchet: no tree grows beyond `weight.toml`, but for what an entry there accounts for."""

from __future__ import annotations

import io
import re
import sys
import tokenize
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
KEPT = tomllib.loads(Path(__file__).with_name("weight.toml").read_text(encoding="utf-8"))
TOKEN = re.compile(
    r"""(?P<skipped> \#.* | \\\n )
    | [rRbBuUfF]{0,2} (?: \"{3} (?:[^\\]|\\(?s:.))*? \"{3} | \'{3} (?:[^\\]|\\(?s:.))*? \'{3} )
    | [rRbBuUfF]{0,2} (?: \" (?:[^"\\\n]|\\(?s:.))* \" | \' (?:[^'\\\n]|\\(?s:.))* \' )
    | 0[xXoObB]\w+ | (?: \d[\d_]*\.?[\d_]* | \.\d[\d_]* ) (?:[eE][-+]?\d+)? [jJ]?
    | \w+
    | \*\*=? | //=? | >>=? | <<=? | \.{3} | -> | := | [-+*/%&|^=<>!@]= | [^\w\s]""",
    re.VERBOSE,
)
SLACK = 0.01  # a tree that is lighter by more has its figure lowered


def count_tokens(source: str) -> int:
    """Names, operators, numbers and strings; an f-string is one, on every version of Python."""
    return sum(not match["skipped"] for match in TOKEN.finditer(source))


def weigh_tree(tree: Path) -> int:
    """Tokens of all Python files below a folder."""
    return sum(count_tokens(path.read_text(encoding="utf-8")) for path in tree.rglob("*.py"))


def allowed_tokens(kept: dict[str, Any], tree: str) -> int:
    """What a tree may weigh."""
    given = [entry for entry in kept.get("given", ()) if entry["tree"] == tree]
    assert all(entry["what"].strip() and entry["instead_of"].strip() for entry in given)
    return int(kept["tokens"][tree] + sum(entry["tokens"] for entry in given))


@pytest.mark.parametrize("tree", KEPT["tokens"])
def test_no_tree_grows(tree: str) -> None:
    weight, allowed = weigh_tree(ROOT / tree), allowed_tokens(KEPT, tree)
    assert weight <= allowed, f"{tree} has {weight:,} tokens of {allowed:,}: see weight.toml"
    lowest = (1.0 - SLACK) * allowed
    assert weight >= lowest, f"{tree} has {weight:,} tokens: lower its figure in weight.toml"


def test_tokens_are_names_operators_numbers_and_strings() -> None:
    assert count_tokens("def f(x):  # why\n    return x + 1.5\n") == 10
    assert count_tokens('f"{x + 1} of {y:.2f}"\n') == 1
    assert count_tokens("""f"{f'{x}'}"\n""") == count_tokens('"""doc\n\nlines"""\n') == 1


def test_tokens_are_those_of_the_language() -> None:
    """Python's own tokenizer agrees; versions count f-strings differently."""
    kinds = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
    for path in sorted((ROOT / "src" / "howsure" / "stats").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        if sys.version_info < (3, 12) or 'f"' not in source:
            assert count_tokens(source) == sum(token.type in kinds for token in tokens), path


def test_growth_needs_an_entry() -> None:
    kept = {"tokens": {"a": 10, "b": 5}}
    assert allowed_tokens(kept, "a") == 10
    entry = {"tree": "a", "tokens": 3, "what": "a finding", "instead_of": "a figure"}
    assert [allowed_tokens({**kept, "given": [entry]}, tree) for tree in "ab"] == [13, 5]
    with pytest.raises(AssertionError):
        allowed_tokens({**kept, "given": [{**entry, "instead_of": " "}]}, "a")
