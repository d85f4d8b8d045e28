"""What people see of small tables stays as it is, unless a commit says why."""

from __future__ import annotations

import contextlib
import csv
import difflib
import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from golden.make import ANSWERS, CASES, EXPECTED, answers, made, read

pytestmark = pytest.mark.draws

REMAKE = (
    "If the change is meant: run `python tests/golden/make.py`, read the difference, and say in "
    "the commit why it is right."
)
SHOWN = 20


class Promise(NamedTuple):
    """How closely a number comes out again on another processor."""

    relative: float
    absolute: float  # of what cancels to nothing, beside numbers of order one


SUMMED = Promise(1e-12, 1e-13)  # sums over rows, and what is drawn through nothing else
ITERATED = Promise(1e-8, 1e-10)  # what a solver leaves where it stops, and what is drawn through it
SINGLE = Promise(1e-6, 1e-9)  # sums in single precision, as of the draws behind the null of skce


def promise(content: dict[str, Any], around: Promise) -> Promise:
    """What the making of the numbers in a part of a document can promise, by what it is named."""
    names = [str(content.get(key, "")) for key in ("name", "metric", "id")]
    solved = any(name.startswith(("cce", "mean_cce", "congruence")) for name in names)
    if "skce" in names:
        return SINGLE
    return ITERATED if solved or "cce" in content else around


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
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


def test_every_answer_is_listed() -> None:
    assert ANSWERS.read_text("utf-8") == answers()


def differ(factor: float, **others: Any) -> tuple[Any, Any]:
    """A part of a document, and the same with its number y times a factor."""
    return {**others, "y": 2.0 * factor}, {**others, "y": 2.0}


@pytest.mark.parametrize(
    ("now", "before", "found"),
    [
        (*differ(1 + 1e-13), []),
        (*differ(1 + 1e-11), ["y: "]),
        (*differ(1 + 1e-11, name="mae"), ["y: "]),
        (*differ(1 + 1e-9, name="cce_map"), []),
        (*differ(1 + 1e-9, metric="mean_cce"), []),
        (*differ(1 + 1e-9, id="congruence"), []),
        (*differ(1 + 1e-9, cce=[0.1]), []),
        (*differ(1 + 1e-7, name="cce_map"), ["y: "]),
        (*differ(1 + 1e-7, cce=[0.1]), ["y: "]),
        (*differ(1 + 1e-7, metric="skce"), []),
        (*differ(1 + 1e-5, metric="skce"), ["y: "]),
        ({"cce": 0.1, "p": [0.02]}, {"cce": 0.1, "p": [0.01]}, ["p.0: "]),  # one draw of a hundred
        ({"cce": 0.1, "n": 10**9 + 1}, {"cce": 0.1, "n": 10**9}, ["n: "]),  # a count
        ([{"cce": 0.1}, {"y": 1.0}], [{"cce": 0.1}, {"y": 1 + 1e-9}], ["1.y: "]),
        ({"cce": 0.1, "z": 1e-11}, {"cce": 0.1, "z": 0.0}, []),
        ({"cce": 0.1, "z": 1e-9}, {"cce": 0.1, "z": 0.0}, ["z: "]),
        ({"a": 1e-17}, {"a": 0.0}, []),
        ({"a": 1e-12}, {"a": 0.0}, ["a: "]),
        ({"a": 2}, {"a": 2.0}, []),
        ({"a": None}, {"a": 0.0}, ["a: "]),
        ({"a": True}, {"a": 1}, ["a: "]),
        ({"a": "x"}, {"a": "y"}, ["a: "]),
        ({"a": [1]}, {"a": [1, 2]}, ["a: "]),
        ({"a": 1}, {"b": 1}, [""]),
    ],
)
def test_a_difference_is_seen(now: Any, before: Any, found: list[str]) -> None:
    seen = list(unequal(now, before))
    assert len(seen) == len(found)
    assert all(one.startswith(start) for one, start in zip(seen, found, strict=True))


@pytest.mark.parametrize(
    ("factor", "column", "lines"),
    [(1 + 1e-9, "cce", 0), (1 + 1e-9, "y", 1), (1 + 1e-7, "cce", 1), (1 + 1e-13, "y", 0)],
)
def test_a_difference_is_seen_in_a_table(factor: float, column: str, lines: int) -> None:
    assert (
        len(list(differences(".csv", f"{column},n\n{factor},3\n", f"{column},n\n1,3\n"))) == lines
    )
    assert len(list(differences(".csv", f"{column},n\n{factor},4\n", f"{column},n\n1,3\n"))) > lines


def test_a_difference_is_seen_in_text() -> None:
    seen = list(differences(".txt", "covers 90 %\n", "covers 91 %\n"))
    assert seen[1:] == ["-covers 91 %", "+covers 90 %"]


def differences(ending: str, now: str, before: str) -> Iterator[str]:
    """What differs: numbers by their size, text to the letter."""
    if ending == ".json":
        yield from unequal(json.loads(now), json.loads(before))
    elif ending == ".csv":
        yield from unequal(rows(now), rows(before))
    else:
        lines = difflib.unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=0)
        yield from (line for line in lines if not line.startswith(("---", "+++")))


def rows(text: str) -> list[dict[str, str | float]]:
    """The rows of a CSV table by the names of its columns, numbers as such."""

    def value(cell: str) -> str | float:
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                return kind(cell)
        return cell

    header, *body = csv.reader(text.splitlines())
    return [dict(zip(header, map(value, row), strict=True)) for row in body]


def unequal(now: Any, before: Any, held: Promise = SUMMED, place: str = "") -> Iterator[str]:
    """Where two plain values differ by more than their making promises, and how."""
    if isinstance(now, dict) and isinstance(before, dict) and list(now) == list(before):
        held = promise(now, held)
        for name in now:
            yield from unequal(now[name], before[name], held, f"{place}.{name}".lstrip("."))
    elif isinstance(now, list) and isinstance(before, list) and len(now) == len(before):
        for number, pair in enumerate(zip(now, before, strict=True)):
            yield from unequal(*pair, held, f"{place}.{number}".lstrip("."))
    elif type(now) is type(before) is int:
        if now != before:  # a count, a row
            yield f"{place}: {now}, was {before}"
    elif type(now) in (int, float) and type(before) in (int, float):
        if not (
            math.isclose(now, before, rel_tol=held.relative, abs_tol=held.absolute)
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
