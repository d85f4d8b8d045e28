"""Help: panels, and an example for each command that its own parser takes."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from howsure.cli import demo
from howsure.cli.main import app
from howsure.core.errors import InputError


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
    shown = CliRunner().invoke(app, ["assess", "--help-all"], terminal_width=100).stdout
    assert shown.index("─ Options ─") < shown.index("─ How tables are read ─")
    assert "[bold" not in shown


LONG = [name for name, one in COMMANDS.items() if one.params and one.rare]
"""Commands whose help shows the usual options alone."""


def shown(name: str, flag: str) -> str:
    """The help of a command at 80 columns."""
    words = [*name.split()[1:], flag]
    return CliRunner().invoke(app, words, env={"COLUMNS": "80"}, catch_exceptions=False).stdout


def flags_in(help_text: str) -> set[str]:
    """The flags that have a line of their own, by their first names."""
    return set(re.findall(r"^│ (?:[* ]  )?(--[a-z-]+)", help_text, flags=re.MULTILINE))


def test_commands_with_many_options_have_a_short_help() -> None:
    many = {name for name, one in COMMANDS.items() if len(one.params) > 17}
    assert many == set(LONG)
    assert {"howsure assess", "howsure check", "howsure recalibrate"} <= many


@pytest.mark.parametrize("name", LONG)
def test_short_help_says_truly_how_many_options_it_leaves_out(name: str) -> None:
    short, whole = shown(name, "--help"), shown(name, "--help-all")
    assert max(map(len, short.splitlines())) <= 80
    left_out = flags_in(whole) - flags_in(short)
    assert short.rstrip().splitlines()[-1] == f" --help-all shows {len(left_out)} more options."
    assert flags_in(short) < flags_in(whole)
    assert len(left_out) > len(flags_in(short))
    assert "more options" not in whole


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_is_in_the_whole_help(name: str) -> None:
    whole = shown(name, "--help-all" if name in LONG else "--help")
    options = [p for p in COMMANDS[name].params if p.param_type_name == "option"]
    told = {p.opts[0] if p.opts[0][:2] == "--" else p.opts[1] for p in options if p.help}
    assert flags_in(whole) == {*told, "--help"}
    assert [p.name for p in options if p.hidden] == (["x"] if name.endswith("istic") else [])


def test_the_help_of_assess_fits_on_a_page() -> None:
    assert len(shown("howsure assess", "--help").splitlines()) <= 60


def test_the_short_help_shows_what_most_people_need() -> None:
    for name, flags in (
        ("assess", "--y --lower --upper --coverage --mean --sd --groups --time --output --all"),
        ("check", "--min-coverage --max-crps --min --max --by --limits --fail-on --json --junit"),
        ("recalibrate", "--calibration --output --method --by --keep --compare"),
    ):
        assert set(flags.split()) <= flags_in(shown(f"howsure {name}", "--help"))


def test_a_misspelt_flag_is_found_among_those_that_the_short_help_leaves_out() -> None:
    said = CliRunner().invoke(app, ["assess", "x.csv", "--kernal", "rbf"]).output
    assert "--kernel" in said


def test_only_the_command_that_is_asked_has_its_parameters_made() -> None:
    root: Any = typer.main.get_command(app)
    root.main(["assess", "--help"], standalone_mode=False)
    held = commands(root, ("howsure",))
    assert [name for name, one in held.items() if "params" in vars(one)] == ["howsure assess"]
    root = typer.main.get_command(app)
    root.main(["--help"], standalone_mode=False)
    held = commands(root, ("howsure",))
    assert len(held) == 16
    assert not [name for name, one in held.items() if "params" in vars(one)]


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (["--version"], ("rich", "pydantic", "howsure.cli.terminal")),
        (["assess", "--help"], ("pydantic", "howsure.cli.check", "howsure.cli.assess")),
    ],
)
def test_what_is_not_used_is_not_imported(words: list[str], unused: tuple[str, ...]) -> None:
    code = (
        f"import sys; sys.argv = ['howsure', *{words}]\n"
        "from howsure.cli.main import main\n"
        f"main(); sys.exit(str([m for m in {unused} if m in sys.modules]))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip() == "[]"


def test_howsure_alone_shows_commands_that_its_parser_takes() -> None:
    shown = CliRunner().invoke(app, [])
    assert shown.exit_code == 0
    examples = [shlex.split(line) for line in shown.stdout.splitlines() if "  howsure" in line]
    assert [words[1] for words in examples] == ["assess", "check", "recalibrate"]
    for words in examples:
        COMMANDS[" ".join(words[:2])].make_context(words[1], words[2:])


def test_each_command_stands_in_a_panel_with_a_title() -> None:
    shown = CliRunner().invoke(app, ["--help"], terminal_width=100).stdout
    assert "─ Commands ─" not in shown
    assert shown.index("─ Begin with ─") < shown.index("─ Further ─")


def test_the_demo_replaces_no_file(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(InputError, match=r"FOLDER must have no report\.html yet"):
        demo.run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.slow
def test_the_demo_finds_the_fault_that_its_table_has(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert demo.run(tmp_path / "trial") == 0
    assert "coverage is 66.4 % in region=north" in " ".join(capfd.readouterr().out.split())
    assert {path.name for path in (tmp_path / "trial").iterdir()} == {
        "predictions.csv",
        "report.html",
    }
