"""Write a file of every form that howsure keeps, as this version writes it, beside this script.

    python tests/kept/make.py

A file is written once for each version of its form, which its name ends with, and never again: what
is here was kept by somebody. Where a form changes, its version rises and the script adds a file;
`test_kept.py` asks of each older one that it opens, or is refused with what to do.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

import howsure
from howsure.core.rng import child
from howsure.recalibration import serialization
from howsure.streaming import state
from howsure.watch import Watch
from howsure.watch.ledger import FORM

FOLDER = Path(__file__).parent
ROWS = 8


def days(first: int, last: int, sd: float = 1.0) -> dict[str, Any]:
    """Some rows a day, with names and inputs."""
    day = np.repeat(np.arange(first, last), ROWS)
    rng = child(0, "kept", first)
    y = (sd * rng.normal(size=len(day))).round(3)
    site = np.where(np.arange(len(day)) % 2, "a", "b")
    names = [f"{each}-{k}" for k, each in enumerate(day)]
    return {"day": day, "id": names, "site": site, "y": y, "mean": 0.0 * y, "sd": 0.0 * y + 1.0}


def without_y(rows: dict[str, Any]) -> dict[str, Any]:
    return {name: column for name, column in rows.items() if name != "y"}


def without_names(rows: dict[str, Any]) -> dict[str, Any]:
    return {name: rows[name] for name in ("site", "y", "mean", "sd")}


def ledger(path: Path) -> None:
    """A promise that broke and was corrected, with rows that wait."""
    given = {"time": "day", "groups": ["site"], "row_id": "id"}
    watch = Watch.init(path, days(0, 40), mature=2, **given)
    watch.add(days(40, 50))
    watch.add(days(50, 95, sd=2.0))
    watch.correct(days(50, 95, sd=2.0), since=50)
    watch.add(days(95, 100, sd=2.0))
    watch.add(without_y(days(100, 102)))


def part_of_a_table(path: Path) -> None:
    """Compressed, as a state holds histograms that are mostly 0."""
    rows = pa.table(without_names(days(0, 8)))
    with TemporaryDirectory() as folder:
        whole = Path(folder) / "whole.arrow"
        howsure.assess(rows, groups="site", large=howsure.Large(state=whole))
        path.write_bytes(gzip.compress(whole.read_bytes(), mtime=0))


def improved() -> Any:
    held_out = without_names(days(0, 150))
    held_out["y"] *= np.where(held_out["site"] == "a", 2.0, 1.0)
    return howsure.improve(held_out, groups="site", until_right=True)


FILES: dict[str, Callable[[Path], None]] = {
    f"ledger-{FORM}.watch": ledger,
    f"state-{state.VERSION}.arrow.gz": part_of_a_table,
    f"recalibration-{serialization.VERSION}.json": lambda path: improved().fitted.save(path),
    "improvement-1.json": lambda path: improved().save(path),
}


if __name__ == "__main__":
    for name, write in FILES.items():
        if not (FOLDER / name).exists():
            write(FOLDER / name)
            sys.stdout.write(f"written: {name}, {(FOLDER / name).stat().st_size:,} bytes\n")
