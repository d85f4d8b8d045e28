"""An option is described once: fields, flags, arguments of agents and docs come from that."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import howsure
from howsure.cli import flags, mcp, options
from howsure.cli.main import app
from howsure.core.errors import InputError, asked_in
from howsure.core.options import described, option, options_of, with_names, words_of
from howsure.report.check import Rules
from howsure.report.options import CheckOptions, Options
from howsure.streaming import Large
from howsure.topics.congruence_options import CongruenceOptions

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
PUBLIC: list[Any] = [Options, Large, CongruenceOptions, CheckOptions]


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_field_is_described_once(kind: Any) -> None:
    described_fields = {item.name: item.flag for item in options_of(kind)}
    assert list(described_fields) == [field.name for field in fields(kind)]
    for name, flag in described_fields.items():
        assert flag.help.endswith(".")
        others = [o.flag for other in PUBLIC for o in options_of(other) if o.name == name]
        assert {id(other) for other in others} == {id(flag)}


@pytest.mark.parametrize("kind", PUBLIC)
def test_docstring_and_signature_come_from_the_description(kind: Any) -> None:
    doc = " ".join(kind.__doc__.split())
    signature = inspect.signature(kind)
    for item in options_of(kind):
        text = f"{item.flag.help} {item.flag.more}".strip()
        annotation = signature.parameters[item.name].annotation
        assert f"{item.name} : {annotation} {with_names(text)}" in doc
        assert signature.parameters[item.name].default == item.default


def flags_of(verb: str) -> dict[str, Any]:
    root: Any = typer.main.get_command(app)
    return {param.name: param for param in root.commands[verb].params}


@pytest.mark.parametrize("verb", ["assess", "check", "merge", "recalibrate", "characteristic"])
def test_flags_come_from_the_description(verb: str) -> None:
    params = flags_of(verb)
    page = PAGE.read_text(encoding="utf-8").partition(f"## `howsure {verb}`")[2]
    for item in flags.options_for(Options, verb):
        param = params[item.name]
        assert item.typed in param.opts
        assert param.help.startswith(with_names(item.flag.help, flags._typed_name))
        assert param.default == (item.default or None if item.default == () else item.default)
        assert f"`{item.typed}" in page
    wanted = {item.name for item in flags.options_for(Options, verb)}
    wanted |= {item.name for item in options_of(CheckOptions)} if verb == "check" else set()
    every = {item.name for item in flags.options_for(Options, "")}
    shared = {"miss_range"} if verb == "characteristic" else set()  # which has its own
    assert every & params.keys() == (wanted & every) | shared


def test_a_check_takes_from_flags_what_its_files_take_by_key() -> None:
    params = flags_of("check")
    keys = {field.name for field in fields(Rules)} - {"limits"}
    assert {item.name for item in options_of(CheckOptions)} == keys <= params.keys()
    assert all(params[key].default is None for key in keys)


def test_arguments_of_agents_come_from_the_description() -> None:
    for tool in (mcp.assess, mcp.check, mcp.recalibrate, mcp.improve):
        taken = inspect.signature(tool).parameters
        for kind in (Options, options.ReadOptions, options.FitFlags):
            for item in options_of(kind):
                wanted = tool.__name__ in item.flag.tools.split()
                assert (item.name in taken) == wanted
                if wanted:
                    assert mcp._ARGUMENTS[item.name] == with_names(item.flag.help)
                    assert taken[item.name].default == (item.default or None) or item.default in (
                        False,
                        "",
                    )


@described
class MoreOptions(Options):
    """What is judged, with one thing more."""

    spare: int = option(
        "Rows to spare, by {groups}.", verbs="assess", tools="assess", least=1, default=3
    )


def test_one_entry_adds_an_option_everywhere() -> None:
    (flag,) = [f for f in flags.declare_flags(MoreOptions, "assess") if f.name == "spare"]
    (info,) = flag.annotation.__metadata__
    assert (flag.default, info.default, info.help) == (
        3,
        "--spare",
        "Rows to spare, by --groups.",
    )
    assert "spare" not in {f.name for f in flags.declare_flags(MoreOptions, "merge")}
    assert "spare : int\n    Rows to spare, by `groups`." in str(MoreOptions.__doc__)
    assert inspect.signature(MoreOptions).parameters["spare"].default == 3
    assert words_of(MoreOptions(spare=5, ignore=["width"])) == [
        *("--ignore", "width"),
        *("--spare", "5"),
    ]
    with pytest.raises(InputError, match=r"^spare must be a whole number of at least 1, got 0"):
        MoreOptions(spare=0)
    with asked_in("command"), pytest.raises(InputError, match=r"^--spare must be a whole number"):
        MoreOptions(spare=0)


@pytest.mark.parametrize(
    ("words", "options_given", "rule"),
    [
        ("--tolerance 2", {"tolerance": 2.0}, "tolerance must be strictly between 0 and 1"),
        ("--confidence 95", {"confidence": 95}, "confidence must be strictly between 0 and 1"),
        ("--ignore odd", {"ignore": ["odd"]}, "ignore must be among"),
        ("--miss-range 1 0", {"miss_range": (1, 0)}, "miss_range must be two rising numbers"),
        ("--cells 2", {"cells": 2}, "cells must be a whole number of at least 3"),
        ("--also odd", {"also": ["odd"]}, "also must be "),
    ],
)
def test_messages_name_what_was_typed(
    words: str, options_given: dict[str, Any], rule: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"^{rule}"):
        howsure.Options(**options_given)
    name, _, rest = rule.partition(" ")
    path = tmp_path / "never_read.csv"
    path.touch()
    said = CliRunner().invoke(app, ["assess", str(path), *words.split()]).exception
    assert str(said).startswith(f"--{name.replace('_', '-')} {rest}")


def test_types_are_checked_in_python() -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (Options, {"trials": "no"}),
        (Large, {"resume": "yes"}),
        (CongruenceOptions, {"draws": 1.5}),
    ]
    for kind, given in wrong:
        (name,) = given
        with pytest.raises(InputError, match=f"^{name} must be "):
            kind(**given)
