"""One table of roles: flags, keywords and docs follow it."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest
import typer.main

import howsure
from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.inputs import explain, load
from howsure.inputs.classes import family, positive_column, set_coverage
from howsure.inputs.columns import assign_roles
from howsure.inputs.names import bound, normal_form, quantile_levels
from howsure.inputs.roles import ROLES, Columns, Role
from howsure.report.table import ROLES as TABLE_ROLES

NAMES = [role.name for role in ROLES]
TABLE = {"y": [1.0, 2.0], "pred": [1.0, 2.0]}


def test_keywords_are_those_of_the_table() -> None:
    assert list(Columns.__annotations__) == NAMES
    taken = signature(load).parameters
    assert list(taken)[1 : 1 + len(NAMES)] == NAMES
    assert str(taken["samples"]) == "samples: 'Names' = None"
    assert all(taken[name].default is None for name in NAMES)


def test_assess_names_what_it_is_given_as_the_table_does() -> None:
    own = {"data", "prediction", "levels", "options", "large", "progress", "unknown"}
    known = set(signature(howsure.assess).parameters)
    assert known - own <= set(NAMES)
    assert own <= known
    assert len(known - {"unknown"}) == 14
    assert set(NAMES) <= set(TABLE_ROLES)


@pytest.mark.parametrize("command", ["assess", "check", "recalibrate", "characteristic"])
def test_every_role_is_a_flag_of_every_command_that_reads_tables(command: str) -> None:
    found: Any = typer.main.get_command(app)
    flags = {p.name: p for p in found.commands[command].params}
    for role in ROLES:
        flag = flags[role.name]
        assert flag.help == role.help
        assert flag.opts == [f"--{(role.flag or role.name).replace('_', '-')}"]
        assert flag.multiple == role.repeats


def test_a_keyword_that_is_no_role_is_refused() -> None:
    for read in (load, explain):
        with pytest.raises(InputError, match=r"keyword of a column must be .* got 'sample'; near"):
            read(TABLE, sample="s_*")  # type: ignore[operator]


@pytest.mark.parametrize("role", [r for r in ROLES if r.guessable], ids=lambda r: r.name)
def test_names_are_recognised(role: Role) -> None:
    others = {"y": "y", "point": "pred"}
    if role.name in ("sd", "mean"):
        others = {"y": "y", "mean": "mu", "sd": "sigma"}
    if role.name == "boundary":
        others["quantile_level"] = "range"
    for name in (*role.names.split(), *role.examples.split()):
        assert normal_form(name) == name
        names = [*(held for other, held in others.items() if other != role.name), name]
        assert assign_roles(names)[role.name] == (name,)


def test_examples_of_names_that_a_rule_reads_are_read() -> None:
    rules = {role.name: role.examples.split() for role in ROLES if not role.pattern}
    for side in ("lower", "upper"):
        for name in rules.pop(side):
            end = bound(name)
            assert end is not None
            assert (end.side, end.unclear) == (side, False)
    levels = quantile_levels([*rules["quantiles"], "q975"])
    assert set(rules.pop("quantiles")) <= set(levels)
    assert None not in levels.values()
    assert assign_roles(["y", *rules["law"]])["law"] == tuple(rules.pop("law"))
    for name in rules.pop("softmax"):
        found = family([name, f"{name[:-1]}1"]) or positive_column([name])
        assert name in found
    for name in rules.pop("stated_confidence"):
        assert assign_roles(["correct", name])["stated_confidence"] == (name,)
    assert all(set_coverage(normal_form(name))[0] for name in rules.pop("label_set"))
    assert not any(rules.values())
