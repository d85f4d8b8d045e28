"""Skill against what anybody could have predicted, on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure.core.errors import InputError
from howsure.inputs import write_table

N = 400


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Daily demand of two series, by two models, of which one knows the day of the week."""
    folder = tmp_path_factory.mktemp("demand")
    rng = np.random.default_rng(0)
    day = np.tile(np.arange(N), 2)
    weekly = 5 * np.sin(2 * np.pi * day / 7)
    y = 20 + weekly + rng.normal(size=2 * N)
    rows = {
        "y": y,
        "when": np.datetime64("2023-01-01", "D") + day,
        "shop": np.repeat(["a", "b"], N),
    }
    for name, mean, sd in (("calendar", 20 + weekly, 1.0), ("constant", 20 + 0 * y, 3.7)):
        table = {**rows, "mean": mean, "sd": np.full(2 * N, sd)}
        write_table(table, folder / f"{name}.csv")
    return folder


def checked(tables: Path, *words: str) -> tuple[int, str]:
    names = [str(tables / word) if word.endswith(".csv") else word for word in words]
    done = CliRunner().invoke(app, ["check", *names, "--time", "when", "--series", "shop"])
    refused = done.exception if isinstance(done.exception, InputError) else None
    return (2, str(refused)) if refused else (done.exit_code, done.output)


def test_least_skill_is_against_the_baseline(tables: Path) -> None:
    naive = ("--baseline", "seasonal", "--lead", "1")
    status, told = checked(tables, "calendar.csv", "--min-skill", "0.1", *naive)
    assert status == 0, told
    assert "✓  calendar: skill ≥ 0.1: 0.2" in told
    status, told = checked(tables, "constant.csv", "--min-skill", "0", *naive)
    assert status == 1, told
    assert "✗  constant: skill ≥ 0: -1." in told
    status, told = checked(tables, "constant.csv", "--min-skill", "-0.1")
    assert status == 0, told  # as good as the distribution of y


def test_the_baseline_itself_need_not_beat_itself(tables: Path) -> None:
    both = ("calendar.csv", "constant.csv", "--min-skill", "0.3")
    status, told = checked(tables, *both, "--baseline", "constant")
    assert status == 0, told
    assert "constant:" not in told
    assert checked(tables, *both)[0] == 1


def test_a_file_of_limits_names_the_baseline(tables: Path, tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text(
        'limits = [{measure = "skill", min = 0.1}]\nbaseline = "seasonal"\nlead = 1\n'
    )
    status, told = checked(tables, "constant.csv", "--limits", str(limits))
    assert status == 1, told
    assert "skill ≥ 0.1: -1." in told


def test_findings_are_judged_by_the_baseline(tables: Path) -> None:
    words = ("--fail-on", "bad", "--findings", "skill", "--lead", "1")
    assert checked(tables, "calendar.csv", *words)[0] == 0
    status, told = checked(tables, "constant.csv", *words)
    assert status == 1, told
    assert "than the seasonal naive forecast (a week before)" in told


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--baseline", "seasonal"), "the lead time of rows in steps: give --lead N"),
        (("--baseline", "sesonal", "--lead", "1"), "near: seasonal"),
        (("--lead", "0"), "lead must be a whole number of at least 1, got 0"),
    ],
)
def test_what_cannot_be_asked_is_told(tables: Path, words: tuple[str, ...], message: str) -> None:
    status, told = checked(tables, "constant.csv", "--min-skill", "0", *words)
    assert status == 2
    assert message in " ".join(told.split())
