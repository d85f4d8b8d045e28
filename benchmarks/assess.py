"""Speed and memory of the whole assessment, as ratios against references in the same run.

Run: python benchmarks/assess.py [--rows 1000000] [--skip-toolbox]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

COMMAND = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]
PEAK = (
    "import resource, subprocess, sys; code = subprocess.call(sys.argv[1:], "
    "stdout=subprocess.DEVNULL); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)"
)


def make_table(rows: int) -> pa.Table:
    """y, lower, upper, mean, sd and two group columns."""
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=rows), np.exp(rng.uniform(-0.7, 0.7, rows))
    y = mean + 1.1 * sd * rng.normal(size=rows)
    return pa.table(
        {
            "y": y,
            "lower_90": mean - 1.6449 * sd,
            "upper_90": mean + 1.6449 * sd,
            "mean": mean,
            "sd": sd,
            "region": rng.choice(["north", "south", "east", "west"], rows),
            "kind": rng.choice([f"k{i}" for i in range(12)], rows),
        }
    )


def reference(path: Path, rows: int) -> float:
    """Reading the file and ten argsorts of as many floats."""
    columns = [np.random.default_rng(i).normal(size=rows) for i in range(10)]
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        parquet.read_table(path)
        for column in columns:
            np.argsort(column)
        best = min(best, time.perf_counter() - start)
    return best


def timed(arguments: list[str]) -> tuple[float, float]:
    """Seconds and peak gigabytes of a command."""
    start = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments], capture_output=True, text=True, check=True
    )
    return time.perf_counter() - start, int(run.stdout.split()[-1]) / 1e6


def toolbox_ratio(rows: int = 20_000) -> None:
    """Against uncertainty-toolbox on the same rows."""
    import uncertainty_toolbox as uct

    from howsure import Distribution, assess

    rng = np.random.default_rng(1)
    mean, sd = rng.normal(size=rows), np.exp(rng.uniform(-0.7, 0.7, rows))
    y = mean + sd * rng.normal(size=rows)
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        uct.get_all_metrics(mean, sd, y, verbose=False)
    theirs = time.perf_counter() - start
    assess(y[:100], Distribution.normal(mean[:100], sd[:100]))
    start = time.perf_counter()
    assess(y, Distribution.normal(mean, sd))
    ours = time.perf_counter() - start
    print(
        f"{rows:,} rows: uncertainty-toolbox {theirs:.2f} s, howsure {ours:.2f} s: "
        f"{theirs / ours:.1f}× faster (bar 15×)"
    )


def main() -> None:
    """Print every figure beside its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--skip-toolbox", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        parquet.write_table(make_table(chosen.rows), path)
        base = reference(path, chosen.rows)
        print(f"reference (read + ten argsorts of {chosen.rows:,}): {base:.2f} s")
        for ending, bar in (("json", 20), ("html", 30)):
            out = Path(folder) / f"report.{ending}"
            command = [*COMMAND, "assess", str(path), "--groups", "region,kind", "-o", str(out)]
            seconds, peak = timed(command)
            print(
                f"assess to {ending}: {seconds:.2f} s, {seconds / base:.1f}× the reference "
                f"(bar {bar}×), peak {peak:.2f} GB (bar 1.2), "
                f"file {out.stat().st_size / 1e6:.2f} MB"
            )
    for label, arguments, bar in (
        ("import howsure", [sys.executable, "-c", "import howsure"], 0.4),
        ("howsure --help", [*COMMAND, "--help"], 0.6),
    ):
        best = min(timed(arguments)[0] for _ in range(5))
        print(f"{label}: {best:.2f} s (bar {bar})")
    if not chosen.skip_toolbox:
        toolbox_ratio()


if __name__ == "__main__":
    main()
