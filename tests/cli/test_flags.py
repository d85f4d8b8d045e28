"""Every flag of every command acts on tables, or is refused with a reason that is true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from pyarrow import csv
from typer.testing import CliRunner

from howsure.cli.main import app

ROWS = 60
SOURCES = ("one file", "several files", "long table", "folder")
ELSEWHERE = ("demo", "metrics", "schema", "mcp", "watch", "simulate", "bench", "data")
"""Commands that read no table of predictions, or no table at all: their tests are their own."""

CASES: dict[str, str] = {
    "--all": "",
    "--at": "0.5",
    "--baseline": "climatology",
    "--bins": "3 --method o_cpa --ease c_ease",
    "--bootstrap": "20",
    "--boundary": "c_bound",
    "--by": "c_group",
    "--calibration": "{other}",
    "--cells": "5 --ease c_ease",
    "--cluster": "c_group",
    "--common-rows": "",
    "--compare": "",
    "--confidence": "0.5",
    "--coverage": "0.5",
    "--crossing": "sort",
    "--cutoff": "c_time",
    "--csv-safe": "",
    "--decimal": ",",
    "--delta": "0.2 --rank pac",
    "--draws": "3",
    "--ease": "c_ease",
    "--embedding": "c_emb_*",
    "--encode": "c_text=encoders_tried:lengths",
    "--encoding": "utf-16",
    "--explain-input": "",
    "--fail-on": "caution",
    "--features": "c_ease",
    "--findings": "coverage",
    "--gamma": "0.3",
    "--github": "",
    "--groups": "c_group",
    "--hold-back": "0.4",
    "--horizon": "c_weight",
    "--uncertainty": "c_weight",
    "--ignore": "coverage",
    "--image": "c_text",
    "--jobs": "1",
    "--json": "",
    "--junit": "{out}/junit.xml",
    "--keep": "{out}/kept.json",
    "--kernel": "laplacian",
    "--label-set": "c_set",
    "--law": "norm:loc=c_mean,scale=c_sd",
    "--lead": "2 --time c_time",
    "--levels": "0.2,0.8",
    "--limits": "{limits}",
    "--lower": "c_lower --upper c_upper",
    "--map": "pca",
    "--max": "interval_score=0.1",
    "--max-brier": "0.1",
    "--max-coverage": "0.5",
    "--max-crps": "0.1",
    "--max-drift": "0.1",
    "--max-flagged": "0.1",
    "--max-interval-score": "0.1",
    "--max-mae": "0.1",
    "--max-mean-width": "0.1",
    "--max-outside": "0.1",
    "--max-outside-drift": "0.1",
    "--mean": "c_mean",
    "--memory": "1MB",
    "--method": "shift",
    "--min": "empirical_coverage=0.99",
    "--min-coverage": "0.99",
    "--min-skill": "0.99",
    "--cost-weight": "0.5",
    "--miss-cost": "3",
    "--miss-range": "0 0.5",
    "--missing": "drop",
    "--missing-value": "-9999",
    "--model": "c_group",
    "--no-rows": "",
    "--output": "{out}/written.csv",
    "--output-type": "c_type",
    "--penalty": "0.5 --method raps",
    "--plot": "{out}/curve.svg",
    "--point": "c_mean",
    "--points": "c_mean,c_lower",
    "--progress": "",
    "--proof": "{out}/other.json",
    "--quantile": "0.1=c_lower --quantile 0.9=c_upper",
    "--quantile-level": "c_level",
    "--quiet": "-o {out}/quiet.json",
    "--rank": "pac",
    "--reference": "{other}",
    "--regularization": "0.5",
    "--repeated": "",
    "--resume": "",
    "--row-id": "c_row",
    "--sample-id": "c_level",
    "--samples": "c_s_*",
    "--sarif": "{out}/check.sarif",
    "--scheduler": "tcp://127.0.0.1:1",
    "--sd": "c_sd",
    "--seed": "3",
    "--season": "2 --lead 1 --time c_time",
    "--series": "c_group",
    "--sided": "two",
    "--since": "2020-02-01",
    "--softmax": "c_p_*",
    "--stated-confidence": "c_p_a",
    "--state": "{out}/state.arrow",
    "--threshold": "0.2",
    "--time": "c_time",
    "--tolerance": "0.2",
    "--too-few": "error",
    "--trials": "",
    "--undecided": "fail",
    "--until-right": "",
    "--upper": "c_upper --lower c_lower",
    "--want": "miss_rate=0.3",
    "--variance": "c_sd",
    "--weights": "c_weight",
    "--weights-kind": "importance",
    "--also": "mean_cce",
    "--x": "excess",
    "--x-axis": "excess",
    "--y": "c_y",
    "--y-axis": "deficit",
}
"""What follows each flag; a flag that is new needs its own."""

BESIDE: dict[tuple[str, str], str] = {
    **{(command, "--missing"): "--y c_holes" for command in ("assess", "check", "characteristic")},
    **{
        (command, "--crossing"): "--quantile 0.1=c_upper --quantile 0.9=c_lower"
        for command in ("assess", "check", "characteristic", "recalibrate")
    },
    ("assess", "--miss-range"): "--all",
    ("assess", "--weights-kind"): "--weights c_weight",
    ("check", "--weights-kind"): "--weights c_weight",
    ("check", "--sided"): "--min-coverage 0.8",
    ("check", "--confidence"): "--min-coverage 0.8",
    ("check", "--tolerance"): "--fail-on bad",
    ("check", "--findings"): "--fail-on bad",
    ("check", "--ignore"): "--fail-on bad",
    ("check", "--miss-range"): "--fail-on bad",
    ("recalibrate", "--since"): "--time c_time",
}
"""What a flag needs beside it, to have something to act on; the run without it has this too."""

BASE = {
    "assess": "assess {files} --no-trials",
    "merge": "merge {states} --no-trials",
    "check": "check {files} --max mae=5 --max mean_width=1 --min empirical_coverage=0.1",
    "recalibrate": "recalibrate {file} --calibration {held_out} -o {out}/base{ending}",
    "improve": "improve {held_out} {file} -o {out}/base{ending} --proof {out}/proof.json",
    "conformal": "conformal {file} --calibration {held_out} -o {out}/base.csv --method {method}",
    "characteristic": "characteristic {files} --bootstrap 0",
}

UNSEEN = {
    "--seed": "draws alone hang on it",
    "--progress": "it shows in a terminal alone",
    "--no-progress": "it shows in a terminal alone",
    "--jobs": "numbers are the same, whoever reads",
    "--memory": "numbers are the same, however much is read at once",
    "--resume": "nothing was interrupted",
    "--baseline": "the distribution of y is it in any case",
    **dict.fromkeys(("--lead", "--season"), "60 rows have no past of 30 changes"),
    "--miss-range": "no gain is shown that hangs on it",
    "--trials": "the base says the opposite",
    "--no-trials": "the base says so, too",
    "--until-right": "one step, or none, is all there is",
    "--no-rows": "what is printed shows no single row",
    "--no-github": "it is so outside of GitHub",
    "--scheduler": "small tables are read here",
    "--also": "small tables have slow measures, too",
    "--undecided": "limits that fail fail with it",
    "--too-few": "there are enough rows",
    "--crossing": "some commands read no quantiles here",
    "--missing": "some tables are complete",
    "--missing-value": "no cell holds it, which the report alone tells",
    "--rank": "methods that are not conformal have none",
    "--delta": "it goes with a rank",
    "--levels": "what stays a distribution is written as one",
    "--common-rows": "of one model, all rows are common",
    **dict.fromkeys(
        ("--row-id", "--quantile-level", "--output-type", "--boundary", "--weights-kind"),
        "the table is read so without it",
    ),
    **dict.fromkeys(
        (
            *("--features", "--ease", "--embedding", "--image", "--groups"),
            *("--time", "--cutoff", "--horizon", "--series", "--cluster", "--uncertainty"),
        ),
        "the column is read and checked, and used where a measure asks for it",
    ),
    **dict.fromkeys(
        (
            "--law",
            "--lower",
            "--upper",
            "--quantile",
            "--samples",
            "--sd",
            "--variance",
            "--coverage",
            "--point",
        ),
        "what is judged here is of the point forecast, or of a richer prediction beside it",
    ),
    **dict.fromkeys(
        ("--gamma", "--kernel", "--draws", "--map", "--regularization"),
        "no conditional congruence is asked for: see test_congruence_flags.py",
    ),
}
"""Flags that need not change what is printed or written here, and why."""


def commands() -> Iterator[tuple[str, Any]]:
    """Each command that reads tables of predictions, with its parameters."""
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="howsure")
    for name in root.list_commands(context):
        if name not in ELSEWHERE:
            yield name, root.get_command(context, name).params


FLAGS = [
    (command, flag)
    for command, parameters in commands()
    for parameter in parameters
    if parameter.param_type_name == "option" and parameter.name not in ("help", "help_all")
    for flag in (max(parameter.opts, key=len), *parameter.secondary_opts)
    if flag != "--range"
]


def test_every_flag_has_a_case() -> None:
    """Whoever adds a flag says here what follows it."""
    assert {name for name, _ in commands()} == set(BASE)
    known = {*CASES, "--no-trials", "--no-progress", "--no-github"}
    assert {flag for _, flag in FLAGS} == known


def wide(seed: int) -> dict[str, Any]:
    """Columns for every role; those that begin with c_ are recognised by no name."""
    y = np.random.default_rng(seed // 2).normal(size=ROWS)
    rng = np.random.default_rng(10 + seed)
    mean = y + rng.normal(size=ROWS)
    ends = (mean - 1.0, mean + 1.0)
    return {
        "y": y,
        "mean": mean,
        "sd": 1.2 + np.arange(ROWS) % 3,
        "c_row": np.arange(ROWS),
        "c_y": y + 1.0,
        "c_holes": np.where(np.arange(ROWS) == 3, np.nan, y),
        "c_mean": mean + 0.3,
        "c_sd": 0.7 + np.arange(ROWS) % 2,
        "c_lower": ends[0],
        "c_upper": ends[1],
        "c_s_1": mean - 1.0,
        "c_s_2": mean,
        "c_s_3": mean + 1.0,
        "c_p_a": np.full(ROWS, 0.4),
        "c_p_b": np.full(ROWS, 0.6),
        "c_set": ["a|b"] * ROWS,
        "c_group": ["=n", "south"] * (ROWS // 2),
        "c_ease": rng.normal(size=ROWS),
        "c_emb_0": rng.normal(size=ROWS),
        "c_emb_1": rng.normal(size=ROWS),
        "c_text": ["a", "bb", "ccc"] * (ROWS // 3),
        "c_weight": 1.0 + np.arange(ROWS) % 3,
        "c_time": [f"2020-{1 + k // 10:02d}-{1 + k % 10:02d}" for k in range(ROWS)],
    }


def long(seed: int) -> dict[str, Any]:
    """The same rows, three quantiles of each one below the other, and keys by other names."""
    levels = (0.1, 0.5, 0.9)
    held = {name: np.repeat(values, 3) for name, values in wide(seed).items()}
    level = np.tile(levels, ROWS)
    value = held.pop("mean") + 1.2 * np.tile((-1.28, 0.0, 1.28), ROWS)
    del held["sd"]
    kinds = {"c_level": level, "c_type": ["quantile"] * len(level)}
    kinds["c_bound"] = ["lower", "upper", "upper"] * ROWS
    return {"id": held["c_row"], "quantile_level": level, "value": value, **held, **kinds}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Where the tables of each source lie."""
    folder = tmp_path_factory.mktemp("flags")

    def written(name: str, columns: dict[str, Any]) -> str:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        csv.write_csv(pa.table({key: pa.array(list(held)) for key, held in columns.items()}), path)
        return str(path)

    a, b, held_out = (written(f"{k}.csv", wide(n)) for n, k in enumerate(("a", "b", "held")))
    tall, tall_held = written("long.csv", long(0)), written("long_held.csv", long(2))
    for number in range(2):
        written(f"parts/{number}.csv", wide(number))
    parts = str(folder / "parts")
    (folder / "limits.toml").write_text("[limits]\nmae = {max = 0.1}\n")
    shared = {"other": b, "limits": str(folder / "limits.toml"), "out": str(folder / "out")}
    found = {}
    for source, files in zip(SOURCES, ((a,), (a, b), (tall,), (parts,)), strict=True):
        known = {"files": " ".join(files), "file": files[0], **shared}
        known["held_out"] = tall_held if source == "long table" else held_out
        known["other"] = tall_held if source == "long table" else b
        known["method"] = "cqr" if source == "long table" else "cp"
        known["ending"] = "" if source == "folder" else ".csv"
        states = []
        for path in files:
            state = f"{folder}/{Path(path).stem}.arrow"
            result = call(f"assess {path} --memory 1MB --no-trials --state {state}")[0]
            states += [state] if result == 0 else []
        known["states"] = " ".join(states) or "none.arrow"
        found[source] = known
    return found


def call(words: str) -> tuple[int, str]:
    """Status of a command, and what it printed or said in its error."""
    result = CliRunner().invoke(app, words.split(), env={"COLUMNS": "200"})
    error = "" if isinstance(result.exception, SystemExit) else str(result.exception or "")
    return result.exit_code, result.output + error


def done(words: str, out: Path) -> tuple[int, str]:
    """Status of a command, and all that it printed and wrote."""
    out.mkdir(exist_ok=True)
    status, shown = call(words)
    for path in sorted(out.rglob("*")):
        if path.is_file():
            shown += path.name + path.read_bytes().decode(errors="replace")
            path.unlink()
    return status, re.sub(r'"command": .*', "", shown)


@pytest.mark.parametrize("command", list(BASE))
@pytest.mark.rate
@pytest.mark.few_draws
def test_every_flag_acts_or_says_why_not(command: str, places: dict[str, dict[str, str]]) -> None:
    silent, untrue = [], []
    bases: dict[str, tuple[int, str]] = {}
    for own, flag in FLAGS:
        if own != command:
            continue
        for source in SOURCES:
            known = places[source]
            out = Path(known["out"])
            base = f"{BASE[command]} {BESIDE.get((command, flag), '')}".format(**known)
            if base not in bases:
                bases[base] = done(base, out)
            given = CASES.get(flag, "").format(**known)
            status, shown = done(f"{base} {flag} {given}", out)
            name = f"{command} {source} {flag}: {shown[:300]}"
            if "internal error" in shown or "fault in howsure" in shown:
                untrue.append(name)
            if (status, shown) == bases[base]:
                if flag not in UNSEEN and (status == 0 or command == "check"):
                    silent.append(f"{flag} {source}")
            elif re.search(rf"(give|use|add|pass|write|by|needs|say) {flag}\b(?!-| '')", shown):
                untrue.append(name)
    assert (silent, untrue) == ([], [])
