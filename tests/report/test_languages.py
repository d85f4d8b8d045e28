"""What an error proposes works in the language in which howsure was asked."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import howsure
from extras import needs
from howsure.cli.main import main
from howsure.cli.options import ReadOptions
from howsure.core.errors import HowsureError, asked_in, language
from howsure.inputs.roles import name_roles

N = 60
_RNG = np.random.default_rng(0)
_Y = _RNG.normal(size=N)
_MEAN, _SD = _Y + _RNG.normal(size=N), np.ones(N)
_GAP = np.where(np.arange(N) == 3, np.nan, _Y)
_NORMAL = {"mean": _MEAN, "sd": _SD}
_DRAWS = {"y": np.repeat(_Y, 2), "value": np.repeat(_Y, 2), "level": np.tile([0.1, 0.9], N)}


class Case(NamedTuple):
    """A table that is refused, and what a reader puts in place of each COLUMN."""

    columns: Mapping[str, Any]
    columns_to_name: tuple[str, ...] = ()
    said: Mapping[str, Any] = {}
    options: Mapping[str, Any] = {}


CASES = {
    "no outcome": Case({"sales": _Y, **_NORMAL}, ("sales",)),
    "no prediction": Case({"y": _Y, "a_lo": _MEAN, "b": _MEAN}, ("b",)),
    "two outcomes": Case({"y": _Y, "target": _Y, **_NORMAL}),
    "missing": Case({"y": _GAP, **_NORMAL}),
    "an unclear coverage": Case(
        {"y": _Y, "lower_5": _MEAN - 1, "upper_5": _MEAN + 1}, ("lower_5", "upper_5")
    ),
    "one end": Case({"y": _Y, "lower_90": _MEAN - 1, "top": _MEAN + 1}, ("lower_90", "top")),
    "ends, or two models": Case({"y": _Y, "yhat_min": _MEAN - 1, "yhat_max": _MEAN + 1}),
    "unclear levels": Case({"y": _Y, "q1": _MEAN - 1, "q5": _MEAN + 1}, ("q1", "q5")),
    "an interval of a mean": Case(
        {"y": _Y, "mean": _MEAN, "mean_ci_lower": _MEAN - 1, "mean_ci_upper": _MEAN + 1}
    ),
    "ends without a name": Case(
        {"y": _Y, "mean": _MEAN, "a": _MEAN - 1, "b": _MEAN + 1}, ("a", "b"), {"coverage": 0.9}
    ),
    "label sets without coverage": Case({"y": ["a", "b"] * 30, "set": ["a", "a b"] * 30}),
    "levels of a long table": Case(
        {"y": _DRAWS["y"], "prediction": _DRAWS["value"], "q": _DRAWS["level"]},
    ),
    "no time": Case(
        {"y": _Y, **_NORMAL, "t": np.arange(N)},
        ("t",),
        options={"baseline": "persistence", "lead": 1},
    ),
    "no horizon": Case(
        {"y": _Y, **_NORMAL, "date": np.arange(N), "ahead": np.ones(N, dtype=int)},
        ("ahead",),
        {"time": "date"},
        {"baseline": "persistence"},
    ),
}
OF_TABLES = {name: case for name, case in CASES.items() if not case.options}


def calls(text: str) -> list[str]:
    """Each ``howsure.Table(…)`` in a message, to its last bracket."""
    found = []
    for match in re.finditer(re.escape("howsure.Table("), text):
        depth, end = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(text[match.start() : end])
    return found


def filled(proposed: str, columns: tuple[str, ...], write: Callable[[str], str]) -> str:
    for column in columns:
        proposed = proposed.replace("COLUMN", write(column), 1)
    return proposed


def refused(work: Callable[[], object]) -> str:
    with pytest.raises(HowsureError) as error:
        work()
    return str(error.value)


@pytest.mark.parametrize("name", CASES)
def test_in_python(name: str) -> None:
    case = CASES[name]
    options = howsure.Options(trials=False, **case.options)
    data = dict(case.columns)
    message = refused(lambda: howsure.assess(howsure.Table(data, **case.said), options=options))
    assert "--" not in message
    proposed = calls(message)
    assert proposed, message
    chosen = proposed[-1] if name == "no horizon" else proposed[0]
    said = "".join(f", {role}={value!r}" for role, value in case.said.items())
    code = filled(chosen, case.columns_to_name, repr).replace("(…", f"(data{said}")
    code = re.sub(r"(, coverage=0.9)(.*)\1", r"\1\2", code)
    table = eval(code, {"howsure": howsure, "data": data})
    if case.options:
        assert howsure.assess(table, options=options).records
    assert table.evalsets[0].predictions or table.evalsets[0].point is not None


@pytest.mark.parametrize("name", CASES)
def test_on_the_command_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    path = tmp_path / "t.csv"
    csv.write_csv(pa.table(dict(case.columns)), path)
    words = ["howsure", "assess", str(path), "--no-trials"]
    words += [f"--{name}={value}" for name, value in {**case.said, **case.options}.items()]

    def run(*more: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", [*words, *more])
        return main(), capsys.readouterr().err

    status, message = run()
    assert status == 2
    assert "howsure." not in message
    message = " ".join(message.split())
    flag = r"--[a-z-]+ (?:'[^']*'|[^-\s,;:]+[^-\s,;:.])"
    every = re.findall(rf"{flag}(?: {flag})*", message)
    assert every, message
    chosen = every[-1] if name == "no horizon" else every[0]
    flags = shlex.split(filled(chosen, case.columns_to_name, shlex.quote))
    status, message = run(*flags, *(() if case.options else ("--explain-input",)))
    assert status == 0, message


@pytest.mark.parametrize("name", OF_TABLES)
def test_in_the_fields_of_an_agent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("mcp")
    served: Any = import_module("howsure.cli.mcp")
    case = CASES[name]
    csv.write_csv(pa.table(dict(case.columns)), tmp_path / "t.csv")
    monkeypatch.chdir(tmp_path)

    def asked(columns: dict[str, Any], **fields: Any) -> Any:
        with asked_in("fields"):
            return served.assess(["t.csv"], columns=columns, **fields)

    message = refused(lambda: asked(dict(case.said)))
    value = r'"[^"]*"|\[[^]]*\]|\w*[a-z]\w*|[\d.]*\d'
    field = rf"(?:columns\.)?\w+=(?:{value}|COLUMN)"
    (chosen, *_) = re.findall(rf"{field}(?: and {field})*", message) or [""]
    assert chosen, message
    columns: dict[str, Any] = dict(case.said)
    fields: dict[str, Any] = {}
    for role, said in re.findall(rf"([\w.]+)=({value})", filled(chosen, case.columns_to_name, str)):
        place = columns if role.startswith("columns.") else fields
        place[role.removeprefix("columns.")] = said if said[0].isalpha() else json.loads(said)
    read = served._reading(columns, ReadOptions(**fields))
    assert read.load("t.csv").evalsets


ARRAYS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "crossed ends": ((_MEAN + 1, _MEAN - 1), {"coverage": 0.9}, {}),
    "weights that are no counts": (
        (_MEAN - 1, _MEAN + 1),
        {"coverage": 0.9, "weights": np.full(N, 0.5)},
        {},
    ),
    "a role in its old place": ((_MEAN - 1, _MEAN + 1), {"coverage": 0.9, "point": _MEAN}, {}),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_of_arrays(name: str) -> None:
    prediction, said, _ = ARRAYS[name]
    message = refused(lambda: howsure.assess(_Y, prediction, **said))
    code = calls(message)[0].replace("=…", "=_MEAN").replace("(…", "(_Y, prediction, **said")
    code = code.replace(", **said, point=_MEAN", ", **said")
    table = eval(code, {"howsure": howsure, "_Y": _Y, "prediction": prediction, "said": said})
    assert howsure.assess(table, options=howsure.Options(trials=False)).records


def test_options_and_reading_are_proposed_as_they_are_given() -> None:
    ends = {"coverage": 0.9}
    for unknown, value in (("seed", 3), ("also", ()), ("memory", "1GB")):
        message = refused(lambda u=unknown: howsure.assess(_Y, (_MEAN - 1, _MEAN + 1), **{u: 0}))
        argument = re.search(r"(options|large)=(howsure\.\w+\(\w+=)…\)", message)
        assert argument is not None, message
        more = {argument[1]: eval(f"{argument[2]}value)", {"howsure": howsure, "value": value})}
        assert howsure.assess(_Y, (_MEAN - 1, _MEAN + 1), **ends, **more).records
    options = howsure.Options(baseline="persistence", trials=False)
    table = howsure.Table({"y": _Y, **_NORMAL, "date": np.arange(N)}, time="date")
    message = refused(lambda: howsure.assess(table, options=options))
    assert "give options=howsure.Options(lead=N) or howsure.Table(…, horizon=COLUMN)" in message
    options = howsure.Options(baseline="persistence", trials=False, lead=1)
    assert howsure.assess(table, options=options).records


def test_a_language_ends_with_its_block() -> None:
    with asked_in("command"):
        assert name_roles(lower=["a", "b c"], missing="drop") == (
            "--lower a --lower 'b c' --missing drop"
        )
        with asked_in("fields"):
            assert name_roles(softmax="", common_rows=True) == (
                'columns.softmax="" and common_rows=true'
            )
            assert name_roles(image=...) == "--image COLUMN"  # is no field
    assert language() == "python"
    assert name_roles(quantiles={0.05: "a"}) == "howsure.Table(…, quantiles={0.05: 'a'})"
