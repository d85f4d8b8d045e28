"""SKILL.md, which ships with the package: its form, its words, and every command in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs.test_how_to import outputs, parsed, sentences_of
from docs.test_words import LONGEST, prose, wrong
from howsure.cli.main import app
from howsure.core.rng import child
from howsure.core.schemas import schema
from howsure.inputs import write_table
from howsure.report.document import TONES

SKILL = Path(__file__).parents[2] / "src" / "howsure" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
_, FRONT, BODY = TEXT.split("---\n", 2)


def table(name: str, rows: int = 400) -> dict[str, object]:
    """A table of the skill's: intervals at 90 %, regions, days."""
    rng = child(0, "skill", name)
    mean = rng.normal(size=rows)
    return {
        "y": mean + rng.normal(size=rows),
        "lower_90": mean - 1.7,
        "upper_90": mean + 1.7,
        "region": ["north", "south"] * (rows // 2),
        "day": list(range(rows)),
    }


def test_its_front_matter_is_that_of_a_skill() -> None:
    told = dict(line.split(": ", 1) for line in FRONT.splitlines())
    assert set(told) == {"name", "description"}
    assert told["name"] == SKILL.parent.name  # as the form demands
    assert re.fullmatch("[a-z0-9-]{1,64}", told["name"])
    assert 0 < len(told["description"]) <= 1024
    assert not {*"<>"} & {*told["description"]}
    assert ": " not in told["description"]  # which YAML would take for a key


@pytest.mark.slow
def test_every_command_of_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("predictions", "other", "held_out", "new"):
        write_table(table(name), tmp_path / f"{name}.csv")
    write_table({**table("other"), "y": table("predictions")["y"]}, tmp_path / "other.csv")
    ran = [block.text for block, _, came in outputs(BODY, SKILL.name) if came.strip()]
    assert len(ran) == 5
    assert (tmp_path / "improved.csv").exists()
    assert {text.split()[2] for text in ran} == {"assess", "improve", "check"}


def test_commands_in_its_lines_are_known() -> None:
    lines = re.findall(r"`(howsure [a-z]+(?: [^`\n]+)?)`", BODY)
    assert len(lines) >= 4
    for line in lines:
        parsed(line.replace("--json", "FILE --json"))


def test_it_tells_every_state_by_its_mark() -> None:
    told = dict(re.findall(r"^\| (\S) \| `(\w+)` \|", BODY, flags=re.MULTILINE))
    states = schema("findings")["$defs"]["state"]["enum"]
    assert sorted(told.values()) == sorted(states)
    assert all(TONES[state][0] == mark for mark, state in told.items())


def test_its_sentences_are_short_and_in_the_fields_terms() -> None:
    assert not wrong(prose(TEXT))
    for sentence in sentences_of(prose(BODY)):
        assert len(sentence.split()) <= LONGEST, sentence


def test_the_command_prints_it() -> None:
    told = CliRunner().invoke(app, ["mcp", "--skill"], catch_exceptions=False)
    assert told.exit_code == 0
    assert told.output == TEXT
