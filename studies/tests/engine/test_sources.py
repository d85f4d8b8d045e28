"""A run and its page say which worlds were drawn and which were read from originals."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure_studies.engine import Plan, RunListener, Store, combined, run, survey

PLAN = """
[plan]
name = "linked"
study = "chain"
description = "Two worlds."
seeds = [0]

[options]
networks = 1
source = "drawn"

[worlds]
b = "b"
a = "a"

[methods]
sum = "sum"
"""


class Told(RunListener):
    """Keeps what it is told of the worlds."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def sources(self, told: str) -> None:
        self.said.append(told)


@pytest.mark.parametrize(
    ("source", "said"), [("drawn", ["drawn: b, a"]), ("original", ["read from originals: b, a"])]
)
def test_a_run_tells_once_and_its_results_keep_it(
    source: str, said: list[str], chain: str, tmp_path: Path
) -> None:
    made = Plan(
        name="p",
        study=chain,
        worlds={"b": "b", "a": "a"},
        methods={"sum": "sum"},
        options={"networks": 1, "source": source},
    )
    store, told = Store(tmp_path / "store"), Told()
    run(made, store, monitor=told)
    assert told.said == said
    assert combined(made, survey(made, store), store).facts == {"Data": said[0]}


def test_a_study_that_tells_nothing_says_nothing(chain: str, tmp_path: Path) -> None:
    made = Plan(
        name="p", study=chain, worlds={"b": "b"}, methods={"sum": "sum"}, options={"networks": 1}
    )
    store, told = Store(tmp_path / "store"), Told()
    run(made, store, monitor=told)
    assert told.said == []
    assert combined(made, survey(made, store), store).facts == {}


def test_the_command_line_prints_it_and_the_page_has_it(chain: str, tmp_path: Path) -> None:
    plan, store, page = (tmp_path / name for name in ("plan.toml", "store", "page.md"))
    plan.write_text(PLAN)
    shown = CliRunner().invoke(
        app, ["bench", "run", str(plan), "--store", str(store), "--jobs", "0"]
    )
    assert shown.exit_code == 0, shown.output
    assert "worlds drawn: b, a" in shown.output
    wanted = ["bench", "report", str(plan), "--store", str(store), "-o", str(page)]
    assert CliRunner().invoke(app, wanted).exit_code == 0
    assert "drawn: b, a" in page.read_text()
