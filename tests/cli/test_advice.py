"""The next step as printed, run as printed, does what it said on fresh rows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from howsure.cli.main import app
from howsure.inputs import load, write_table

Columns = dict[str, Any]
RUNNER = CliRunner()
AT = stats.norm.ppf(0.95)


def narrow(rng: np.random.Generator, n: int) -> Columns:
    mean, sd = rng.normal(size=n), np.exp(0.3 * rng.normal(size=n))
    return {"y": mean + sd * rng.normal(size=n), "mu": mean, "sigma": 0.7 * sd}


def moved(rng: np.random.Generator, n: int) -> Columns:
    found = narrow(rng, n)
    return {**found, "mu": found["mu"] + 1.5, "sigma": found["sigma"] / 0.7}


def heavy(rng: np.random.Generator, n: int) -> Columns:
    return {"y": rng.standard_t(2.5, size=n), "mu": np.zeros(n), "sigma": np.full(n, 1.6)}


def one_group(rng: np.random.Generator, n: int) -> Columns:
    found = narrow(rng, n)
    site = rng.choice(["A 1", "B"], n, p=[0.2, 0.8])
    scale = np.where(site == "A 1", 0.5, 1.0)
    return {**found, "sigma": found["sigma"] / 0.7 * scale, "the site": site}


def one_region(rng: np.random.Generator, n: int) -> Columns:
    found = narrow(rng, n)
    x = rng.uniform(size=n)
    return {**found, "sigma": found["sigma"] / 0.7 * np.where(x > 0.6, 0.5, 1.0), "dose": x}


def one_end(rng: np.random.Generator, n: int) -> Columns:
    mean, y = rng.normal(size=n), rng.gamma(1.0, size=n)
    return {"y": mean + y, "low": mean - 1.0, "high": mean + 2.0}


def later(rng: np.random.Generator, n: int) -> Columns:
    found = narrow(rng, n)
    day = np.datetime64("2024-01-01") + np.arange(n)
    scale = np.where(np.arange(n) >= 0.7 * n, 0.5, 1.0)
    return {**found, "sigma": found["sigma"] / 0.7 * scale, "day": day.astype(str)}


NORMAL = ["--mean", "mu", "--sd", "sigma"]
BARE = ["--lower", "low", "--upper", "high", "--coverage", "0.9"]
CASES: list[tuple[Callable[..., Columns], list[str], list[str]]] = [
    (narrow, NORMAL, ["--method scale"]),
    (moved, NORMAL, ["--method shift"]),
    (heavy, NORMAL, ["--method shape"]),
    (one_group, [*NORMAL, "--groups", "the site"], ["--method group", "--by 'the site'"]),
    (one_region, [*NORMAL, "--features", "dose"], ["--method inputs", "--features dose"]),
    (one_end, BARE, ["--coverage 0.9", "--method "]),
    (later, [*NORMAL, "--time", "day"], ["--method scale", "--since 202"]),
]


def invoked(*arguments: object) -> str:
    found = RUNNER.invoke(app, [str(each) for each in arguments], env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output
    return found.output


@pytest.mark.parametrize(("make", "flags", "told"), CASES, ids=lambda case: _name(case))
@pytest.mark.rate
@pytest.mark.few_draws
def test_the_command_does_what_its_sentence_says(
    make: Callable[..., Columns],
    flags: list[str],
    told: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(make(np.random.default_rng(1), 1_500), "held out.csv")
    fresh = make(np.random.default_rng(2), 6_000)
    if make is later:  # what comes next is as the last rows were
        fresh = {name: values[4_200:] for name, values in fresh.items()}
    y = fresh.pop("y")
    write_table(fresh, "NEW.csv")
    shown = invoked("assess", "held out.csv", *flags, "-o", "report.json")
    (line,) = [each for each in shown.splitlines() if each.startswith("  howsure recalibrate ")]
    for part in told:
        assert part in line
    advice = json.loads(Path("report.json").read_text(encoding="utf-8"))["advice"]
    assert line.strip() == advice["command"]
    assert re.sub(r"\s+", " ", shown).count(advice["sentence"]) == 1
    (program, *arguments) = shlex.split(line)
    assert program == "howsure"
    invoked(*arguments)
    (mended,) = load("recalibrated.csv", y="mu" if "mu" in fresh else "low").evalsets
    for column, values in fresh.items():
        assert column in load_columns("recalibrated.csv")
        assert len(values) == mended.n
    (before,) = load({**fresh, "y": y}, **reading(flags)).evalsets
    gain = 1.0 - score(y, mended.predictions[0]) / score(y, before.predictions[0])
    room = 2.5 * (advice["upper"] - advice["lower"]) / 4.0
    assert advice["lower"] - room <= gain <= advice["upper"] + room
    assert gain > 0
    lower, upper = mended.predictions[0].interval(0.9)
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(0.9, abs=0.03)


def score(y: Any, prediction: Any) -> float:
    """Mean pinball loss at the levels that both sides state."""
    if hasattr(prediction, "coverages"):
        table = np.column_stack(prediction.interval(0.9))
        levels = np.array([0.05, 0.95])
    else:
        levels = np.array([0.01, 0.025, *np.arange(0.05, 0.951, 0.05).round(2), 0.975, 0.99])
        table = prediction.quantile(levels)
    below = y[:, None] - table
    return float(np.mean(np.maximum(levels * below, (levels - 1.0) * below)))


def reading(flags: list[str]) -> dict[str, Any]:
    keys = {"--mean": "mean", "--sd": "sd", "--lower": "lower", "--upper": "upper"}
    found: dict[str, Any] = {
        keys[name]: value
        for name, value in zip(flags[::2], flags[1::2], strict=True)
        if name in keys
    }
    return found | ({"coverage": 0.9} if "--coverage" in flags else {})


def load_columns(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()[0].replace('"', "").split(",")


def _name(case: Any) -> str:
    return getattr(case, "__name__", "")


@pytest.mark.slow
def test_nothing_is_tried_where_that_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "held.csv"
    write_table(narrow(np.random.default_rng(1), 500), path)
    assert "Best next step" in invoked("assess", path, *NORMAL)
    assert "Best next step" not in invoked("assess", path, *NORMAL, "--no-trials")


def test_what_is_recalibrated_already_has_no_command(tmp_path: Path) -> None:
    path = tmp_path / "held.csv"
    found = narrow(np.random.default_rng(1), 500)
    made = {"recalibrated_mean": found["mu"], "recalibrated_sd": found["sigma"]}
    write_table({"y": found["y"], **made}, path)
    shown = invoked("assess", path)
    assert "Best next step: widen every prediction" in shown
    assert "howsure recalibrate" not in shown


def test_of_several_models_the_table_of_the_best_is_named(tmp_path: Path) -> None:
    found = narrow(np.random.default_rng(1), 800)
    for name, shift in (("good", 0.0), ("bad", 1.0)):
        write_table({**found, "mu": found["mu"] + shift}, tmp_path / f"{name}.csv")
    paths = (tmp_path / "bad.csv", tmp_path / "good.csv")
    shown = invoked("assess", *paths, *NORMAL)
    assert "good: Best next step: widen every prediction" in shown
    assert f"howsure recalibrate NEW.csv --calibration {paths[1]} --mean mu" in shown
    both = {name: [*values, *values] for name, values in found.items()}
    write_table({**both, "model": ["a"] * 800 + ["b"] * 800}, tmp_path / "both.csv")
    shown = invoked("assess", tmp_path / "both.csv", *NORMAL)
    assert "Best next step: widen every prediction" in shown
    assert "howsure recalibrate" not in shown  # which reads tables of one model


def test_the_command_reads_tables_as_the_assessed_one_was_read(tmp_path: Path) -> None:
    path = tmp_path / "held.csv"
    made = narrow(np.random.default_rng(1), 500)
    lines = [
        "y;mu;sigma",
        *(";".join(f"{v:.6f}" for v in row) for row in zip(*made.values(), strict=True)),
    ]
    path.write_text("\n".join([*lines, "1,5;;1,0"]).replace(".", ","), encoding="latin-1")
    how = ["--decimal", ",", "--encoding", "latin-1", "--missing", "drop"]
    shown = invoked("assess", path, *NORMAL, *how)
    (line,) = [each for each in shown.splitlines() if each.startswith("  howsure recalibrate ")]
    (_, *arguments) = shlex.split(line)
    arguments[arguments.index("NEW.csv")] = str(path)
    arguments[-1] = str(tmp_path / "out.csv")
    assert "500 rows recalibrated" in invoked(*arguments)  # the one without a mean stays as it is
