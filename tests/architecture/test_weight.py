"""The ratchet: nothing in `weight.toml` grows, but for what an entry there accounts for."""

from __future__ import annotations

import io
import sys
import tokenize
import tomllib
from pathlib import Path

import pytest

from architecture.weigh import (
    FILE,
    ROOT,
    Figures,
    count_characters,
    count_largest_signature,
    count_tokens,
    find_unpassed,
    lower,
    read_calls,
    read_limits,
    weigh,
    weigh_example,
    weigh_files,
)

LIMITS = read_limits(tomllib.loads(FILE.read_text(encoding="utf-8")))
SLACK = 0.01  # what is lighter by more has its figure lowered


def departures(found: Figures) -> list[str]:
    """Figures that have grown, and those that have fallen and are not lowered."""
    lines = []
    for place, figures in found.items():
        assert set(figures) <= set(LIMITS[place]), f"{place}: {figures} are not all in weight.toml"
        for figure, limit in LIMITS[place].items():
            value = figures.get(figure, 0)
            if not (1.0 - SLACK) * limit <= value <= limit:
                remedy = "add an entry" if value > limit else "run tests/architecture/weigh.py"
                lines.append(f"{place}: {value:,} {figure} of {limit:,}: {remedy}")
    return lines


def test_no_tree_grows() -> None:
    assert departures(weigh()) == []


@pytest.mark.slow
def test_the_example_enters_no_more() -> None:
    assert departures(weigh_example()) == []


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


def test_burdens_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    wide = ", ".join(f"p{number}" for number in range(12))
    path.write_text(
        '"""Why."""\n__all__ = ["A", "b"]\n_HOMES = {"c": "d e f"}\nclass A:\n'
        f"    def _told(self, {wide}):\n        held = isinstance(self, Quantiles)\n"
        'print([table for table in tables if table.name in {"groups", "models"}])\n'
    )
    assert weigh_files([path]) == {
        "files": 1,
        "tokens": count_tokens(path.read_text()),
        "statements": 7,
        "public names": 5,
        "classes": 1,
        "functions of many parameters": 1,
        "functions called by a filler": 1,
        "bindings called by a filler": 1,
        "isinstance on kinds": 1,
        "literals of a table's name": 2,
    }
    assert count_largest_signature([path]) == 13
    assert count_characters([path]) == len("Abcd e fgroupsmodels")


def test_parameters_that_nothing_passes_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(
        "def f(a, b=1, c=2, *, d=3, e=4): ...\n"
        "class K:\n    def __init__(self, a=1, b=2): ...\n    def run(self, x=1): ...\n"
        "def spread(p=1, q=2): ...\n@app.command()\ndef serve(port=1): ...\n"
        "f(0, 1, e=5)\nK(1)\npartial(K(1).run, 7)\nspread(*both)\n"
    )
    unpassed = list(find_unpassed([path], read_calls([path])))
    assert unpassed == [f"{path}: {each}" for each in ("f(c)", "f(d)", "K(b)")]


def test_growth_needs_an_entry_and_a_fall_lowers_the_figure() -> None:
    content = '[figures."a"]\n"tokens" = 10\n"files" = 2\n\n[figures."b"]\n"tokens" = 5\n'
    entry = '[[given]]\nplace = "a"\nfigure = "tokens"\nby = 3\nwhat = "x"\ninstead_of = "{}"\n'
    held = content + entry.format("y")
    assert read_limits(tomllib.loads(held))["a"] == {"tokens": 13, "files": 2}
    with pytest.raises(AssertionError, match="what left for it"):
        read_limits(tomllib.loads(content + entry.format(" ")))
    found = {"a": {"tokens": 12, "files": 3}, "b": {"tokens": 4}}
    fallen = tomllib.loads(lower(found, held))
    assert fallen["figures"] == {"a": {"tokens": 9, "files": 2}, "b": {"tokens": 4}}
    assert read_limits(fallen)["a"]["tokens"] == 12
