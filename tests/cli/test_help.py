"""Help: panels, and an example for each command that its own parser takes."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from howsure.cli.main import app


def commands(found: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """Every command by its whole name."""
    inner = getattr(found, "commands", None)
    if inner is None:
        return {" ".join(path): found}
    return {
        name: one
        for key, each in inner.items()
        for name, one in commands(each, (*path, key)).items()
    }


COMMANDS = commands(typer.main.get_command(app), ("howsure",))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_an_example_that_its_parser_takes(name: str) -> None:
    command = COMMANDS[name]
    example = (command.epilog or "").removeprefix("Example: ")
    assert example.startswith(name)
    arguments = shlex.split(example)[len(name.split()) :]
    command.make_context(name, arguments)  # which refuses an unknown flag or a wrong value


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_panels_and_the_example(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split()[1:], "--help"], terminal_width=100).stdout
    assert "─ Options ─" in shown
    assert "Example: howsure" in shown


def test_errors_of_usage_stand_on_plain_lines() -> None:
    result = CliRunner().invoke(app, ["assess", "x.csv", "--missing", "odd"], terminal_width=40)
    assert result.exit_code == 2
    assert "'odd' is not one of 'error', 'drop'" in result.output
    assert "│" not in result.output


def test_options_that_read_tables_have_a_panel_of_their_own() -> None:
    shown = CliRunner().invoke(app, ["assess", "--help"], terminal_width=100).stdout
    assert shown.index("─ Options ─") < shown.index("─ How tables are read ─")
    assert "[bold" not in shown
