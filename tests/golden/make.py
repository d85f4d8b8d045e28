"""What people see of small tables, kept beside as golden files.

    python tests/golden/make.py

writes them anew. Do so where a change is meant to alter what people see, read the difference, and
say in the commit why it is right.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from pyarrow import csv

HERE = Path(__file__).parent
INPUTS = HERE / "inputs"
EXPECTED = HERE / "expected"
ANSWERS = HERE / "answers.txt"
"""The answer of every case that has one, to be read."""
WIDTH = 100

COMMANDS = {
    "intervals": "assess intervals.csv --coverage 0.9 -o .json -o .md",
    "intervals_of_unknown_coverage": "assess intervals.csv -o .json -o .md",
    "two_coverages": "assess two_coverages.csv -o .json -o .md",
    "normal": "assess normal.csv -o .json -o .md -o .csv",
    "quantiles": "assess quantiles.csv -o .json -o .md",
    "ensemble": "assess ensemble.csv -o .json -o .md",
    "counts": "assess counts.csv --law poisson:mu=mu -o .json -o .md",
    "points": "assess points.csv -o .json -o .md",
    "inputs": "assess inputs.csv --groups kind,region --features x -o .json -o .md",
    "frequency_weights": "assess weights.csv --weights w -o .json -o .md",
    "importance_weights": (
        "assess weights.csv --weights share --weights-kind importance -o .json -o .md"
    ),
    "clusters": "assess clusters.csv --cluster site -o .json -o .md",
    "time": "assess time.csv --time day -o .json -o .md",
    "two_models": "assess two_models.csv --row-id row --model model -o .json -o .md",
    "explained": "assess inputs.csv --groups kind,region --explain-input",
    "refused": "assess points.csv --y no_such_column",
    "unlabelled": (
        "assess unlabelled.csv --reference labelled.csv --features x,g -o .json -o .md -o .csv"
    ),
    "recalibrate_laws": "recalibrate to_mend.csv --calibration held_out.csv -o .csv",
    "recalibrate_intervals": (
        "recalibrate to_mend_intervals.csv --calibration held_out_intervals.csv -o .csv"
    ),
    "recalibrate_compare": ("recalibrate to_mend.csv --calibration held_out.csv --compare -o .md"),
    "characteristic": "characteristic normal.csv --want miss_rate=0.1 --bootstrap 200",
    "characteristic_deficit": (
        "characteristic two_models.csv --row-id row --model model --x-axis excess --y-axis deficit "
        "--bootstrap 0 --miss-cost 2"
    ),
    "simulate": (
        "simulate linear --method linear_t --method quantile_forest:trees=10 --trials 4 "
        "--train-rows 30 --test-rows 20 --coverage 0.75 --coverage 0.9 -o .md"
    ),
    "check_holds": "check normal.csv --min-coverage 0.8 --max crps=3",
    "check_fails": "check two_coverages.csv --min-coverage 0.85 --undecided fail",
}
"""What a user types; ``-o .json`` writes a file of the case's name."""

ASSESSED = ("label_sets", "equal_widths")
"""From Python: what no table can hold; and widths that are equal, whose gains are rounding errors
that differ between machines, so that no text but the verdict stays the same."""

CASES = (*COMMANDS, *ASSESSED)
WITH_GLOSSARY = "inputs"
"""The case whose glossary is kept; its words are the catalogue's, and the same everywhere."""


def made(case: str) -> dict[str, str]:
    """What a case shows: the terminal's text, and each file that it writes, by ending."""
    if case in COMMANDS:
        found = _typed(case, COMMANDS[case])
    else:
        result = _assessed(case)
        found = {".txt": f"{result.verdict}\n", ".json": result.to_json()}
    if ".json" in found:
        found[".json"] = _lined(json.loads(found[".json"]), glossary=case == WITH_GLOSSARY)
    if ".md" in found and case != WITH_GLOSSARY:
        found[".md"] = re.sub(r"(?s)## Glossary\n.*?(?=## Reproduce|\Z)", "", found[".md"])
    return {ending: _settled(text) for ending, text in found.items()}


def _typed(case: str, command: str) -> dict[str, str]:
    from howsure.cli.main import main

    told = io.StringIO()
    status: Any = 0
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            f"{folder}/{case}{part}" if re.fullmatch(r"\.\w+", part) else part
            for part in shlex.split(command)
        ]
        with _terminal(["howsure", *arguments], told):
            try:
                status = main()
            except SystemExit as leaving:
                status = leaving.code or 0
        files = {path.suffix: path.read_text("utf-8") for path in sorted(Path(folder).iterdir())}
        shown = f"$ howsure {command}\n{told.getvalue()}[status {status}]\n"
        return {
            ending: text.replace(f"{folder}/", "")
            for ending, text in {".txt": shown, **files}.items()
        }


@contextlib.contextmanager
def _terminal(arguments: list[str], told: io.StringIO) -> Iterator[None]:
    """A terminal of one width and no colour, in the folder of the tables."""
    seen = {"COLUMNS": str(WIDTH), "TERM": "dumb", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    with (
        mock.patch.dict(os.environ, seen),
        mock.patch.object(sys, "argv", arguments),
        contextlib.chdir(INPUTS),
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(told),
    ):
        yield


def _assessed(case: str) -> Any:
    from howsure import assess
    from howsure.predictions import LabelSets

    if case == "equal_widths":
        with contextlib.chdir(INPUTS):
            return assess("equal_widths.csv")
    table = csv.read_csv(INPUTS / "labels.csv")
    members = np.stack([table[f"in_{k}"].to_numpy() for k in range(3)], axis=1)
    return assess(table["y"].to_numpy(), LabelSets(members, coverage=0.9))


def _lined(held: dict[str, Any], *, glossary: bool) -> str:
    """JSON with a line for each record, curve and table, so that a difference can be read."""
    if not glossary:
        held.pop("glossary", None)
    parts = []
    for name, value in held.items():
        if isinstance(value, list):
            lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in value)
            text = f"[\n{lines}\n]"
        else:
            text = json.dumps(value, ensure_ascii=False)
        parts.append(f"{json.dumps(name)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _settled(text: str) -> str:
    """Without what changes from run to run: the version, and blanks at the ends of lines."""
    from howsure import __version__

    version = re.escape(__version__).replace(r"\.", r"\\?\.")
    text = re.sub(rf'((?:^- |")howsure"?: "?){version}', r"\1VERSION", text, flags=re.MULTILINE)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def read(case: str) -> Mapping[str, str]:
    """The golden files of a case, by ending."""
    paths = sorted(EXPECTED.glob(f"{case}.*"))
    return {path.suffix: path.read_text("utf-8") for path in paths}


def write() -> None:
    """Write every golden file anew."""
    EXPECTED.mkdir(exist_ok=True)
    for old in EXPECTED.iterdir():
        old.unlink()
    for case in CASES:
        for ending, text in made(case).items():
            (EXPECTED / f"{case}{ending}").write_text(text, "utf-8", newline="\n")
    ANSWERS.write_text(answers(), "utf-8", newline="\n")


def answers() -> str:
    """A line for each case: its answer."""
    kept = {case: read(case).get(".json") for case in CASES}
    told = {case: json.loads(text).get("answer") for case, text in kept.items() if text}
    return "".join(f"{case}: {held['sentence']}\n" for case, held in told.items() if held)


if __name__ == "__main__":
    write()
