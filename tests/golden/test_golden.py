"""What people see of small tables stays as it is, unless a commit says why."""

from __future__ import annotations

import csv
import difflib
import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from golden.make import CASES, EXPECTED, made, read

REMAKE = (
    "If the change is meant: run `python tests/golden/make.py`, read the difference, and say in "
    "the commit why it is right."
)
RELATIVE = 1e-12
CONGRUENCE = 1e-8  # solved by iteration
FLOOR = 1e-13  # of what cancels to nothing, beside numbers of order one
SHOWN = 20


@pytest.mark.parametrize("case", CASES)
def test_what_people_see_is_what_it_was(case: str) -> None:
    now, before = made(case), read(case)
    assert sorted(now) == sorted(before), f"{case} writes other files. {REMAKE}"
    for ending, text in now.items():
        problems = list(differences(ending, text, before[ending]))
        if problems:
            listed = "\n".join(problems[:SHOWN])
            more = f"\n… and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
            pytest.fail(f"{case}{ending}:\n{listed}{more}\n{REMAKE}", pytrace=False)


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in EXPECTED.iterdir()} == set(CASES)


@pytest.mark.parametrize(
    ("now", "before", "told"),
    [
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 * (1 + 1e-13)]}, []),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 * (1 + 1e-11)]}, ["a.1: "]),
        ({"name": "cce_map", "y": 2.0}, {"name": "cce_map", "y": 2.0 * (1 + 1e-9)}, []),
        ({"name": "cce_map", "y": 2.0}, {"name": "cce_map", "y": 2.0 * (1 + 1e-7)}, ["y: "]),
        ({"a": 1e-17}, {"a": 0.0}, []),
        ({"a": None}, {"a": 0.0}, ["a: "]),
        ({"a": True}, {"a": 1}, ["a: "]),
        ({"a": "x"}, {"a": "y"}, ["a: "]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: "]),
        ({"a": 1}, {"b": 1}, [": "]),
    ],
)
def test_a_difference_is_seen(now: Any, before: Any, told: list[str]) -> None:
    found = list(unequal(now, before, RELATIVE))
    assert len(found) == len(told)
    assert all(one.startswith(start) for one, start in zip(found, told, strict=True))


def differences(ending: str, now: str, before: str) -> Iterator[str]:
    """What differs: numbers by their size, text to the letter."""
    if ending == ".json":
        yield from unequal(json.loads(now), json.loads(before), RELATIVE)
    elif ending == ".csv":
        table = cells(now)
        relative = CONGRUENCE if "cce" in table[0] else RELATIVE
        yield from unequal(table, cells(before), relative)
    else:
        lines = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
        yield from (line for line in lines if not line.startswith(("---", "+++")))


def cells(text: str) -> list[list[str | float]]:
    """The cells of a CSV table, numbers as such."""

    def value(cell: str) -> str | float:
        try:
            return float(cell)
        except ValueError:
            return cell

    return [[value(cell) for cell in row] for row in csv.reader(text.splitlines())]


def unequal(now: Any, before: Any, relative: float, place: str = "") -> Iterator[str]:
    """Where two plain values differ, and how."""
    if isinstance(now, dict) and isinstance(before, dict) and list(now) == list(before):
        names = [str(now.get(key, "")) for key in ("name", "metric", "id")]
        if any(name.startswith(("cce", "mean_cce", "congruence")) for name in names):
            relative = CONGRUENCE
        for name in now:
            inner = f"{place}.{name}" if place else name
            yield from unequal(now[name], before[name], relative, inner)
    elif isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        for number, pair in enumerate(zip(now, before, strict=True)):
            yield from unequal(*pair, relative, f"{place}.{number}")
    elif type(now) in (int, float) and type(before) in (int, float):
        floor = max(FLOOR, relative / 10)
        if not (
            math.isclose(now, before, rel_tol=relative, abs_tol=floor)
            or (math.isnan(now) and math.isnan(before))
        ):
            yield f"{place}: {now!r}, was {before!r}"
    elif type(now) is not type(before) or now != before:
        yield f"{place}: {shortened(now)}, was {shortened(before)}"


def shortened(value: Any) -> str:
    """A value in few words."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(list(value) if isinstance(value, dict) else value)
    return text if len(text) < 200 else f"{text[:200]}…"
