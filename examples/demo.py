"""Make a table of predictions as an energy company might hold, and assess it.

The model forecasts the load of a network an hour ahead. It is honest about the mean but claims too
little uncertainty, above all in the north, where the wind blows.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv


def make_table(n: int = 8_000, seed: int = 7) -> pa.Table:
    """Hourly loads with forecasts: y, mean, sd, a 90 % interval, region and season."""
    rng = np.random.default_rng(seed)
    hour = np.arange(n)
    region = rng.choice(["north", "south", "east", "west"], size=n, p=[0.2, 0.3, 0.3, 0.2])
    season = np.array(["winter", "spring", "summer", "autumn"])[(hour // (n // 4)).clip(0, 3)]
    base = 50 + 12 * np.sin(2 * np.pi * hour / 24) + 6 * np.cos(2 * np.pi * hour / n)
    true_sd = 2.0 + 1.5 * np.abs(np.sin(2 * np.pi * hour / 24))
    true_sd = true_sd * np.where(region == "north", 1.6, 1.0)
    mean = base + rng.normal(scale=0.4, size=n)
    y = base + true_sd * rng.standard_t(df=8, size=n) * np.sqrt(6 / 8)
    claimed = 0.9 * (2.0 + 1.5 * np.abs(np.sin(2 * np.pi * hour / 24)))
    reach = 1.6449 * claimed
    return pa.table(
        {
            "time": hour,
            "region": region,
            "season": season,
            "y": y.round(3),
            "mean": mean.round(3),
            "sd": claimed.round(3),
            "lower_90": (mean - reach).round(3),
            "upper_90": (mean + reach).round(3),
        }
    )


def main() -> None:
    """Write the table and run the command that a user would run."""
    folder = Path("demo")
    folder.mkdir(exist_ok=True)
    table = folder / "predictions.csv"
    csv.write_csv(make_table(), table)
    command = ["assess", str(table), "--groups", "region,season", "-o", str(folder / "report.html")]
    print("howsure", " ".join(command))
    run = [sys.executable, "-c", "from howsure.cli.entry import main; main()", *command]
    sys.exit(subprocess.run(run, check=False).returncode)


if __name__ == "__main__":
    main()
