"""`howsure demo`: a table of predictions as an energy company might have it, and its report."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from howsure.cli.terminal import Console, escape
from howsure.core.errors import InputError
from howsure.core.files import new_folders
from howsure.core.rng import child
from howsure.inputs.write import write_table

# 90 % of a normal distribution lie within so many sd of its mean.
_SD_OF_90: float = 1.6449
# Enough for each of four regions to be judged, and a file of half a megabyte.
_ROWS: int = 8_000


def run(folder: Path) -> int:
    """Write the table and run the command that a user would run; its status."""
    table, page = folder / "predictions.csv", folder / "report.html"
    for path in (table, page):
        if path.exists():
            raise InputError(f"FOLDER must have no {path.name} yet, got {str(folder)!r}")
    with new_folders([folder]):
        write_table(make_table(), table)
    command = ["assess", str(table), "--groups", "region,season", "-o", str(page)]
    Console().print(escape(f"$ {shlex.join(['howsure', *command])}"), soft_wrap=True)
    main = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]
    return subprocess.run([*main, *command], check=False).returncode


def make_table(n: int = _ROWS, seed: int = 0) -> dict[str, Any]:
    """Hourly loads of a network and their forecasts, with sd too small, above all in the north."""
    rng = child(seed, "demo")
    hour = np.arange(n)
    region = rng.choice(["north", "south", "east", "west"], size=n, p=[0.2, 0.3, 0.3, 0.2])
    season = np.array(["winter", "spring", "summer", "autumn"])[hour * 4 // n]
    daily = np.sin(2 * np.pi * hour / 24)
    load = 50 + 12 * daily + 6 * np.cos(2 * np.pi * hour / n)
    sd = 2.0 + 1.5 * np.abs(daily)
    mean = load + rng.normal(scale=0.4, size=n)
    y = load + sd * np.where(region == "north", 1.6, 1.0) * rng.normal(size=n)
    stated = 0.9 * sd
    numbers = {
        "y": y,
        "mean": mean,
        "sd": stated,
        "lower_90": mean - _SD_OF_90 * stated,
        "upper_90": mean + _SD_OF_90 * stated,
    }
    rounded = {name: column.round(3) for name, column in numbers.items()}
    return {"time": hour, "region": region, "season": season} | rounded
