"""Tables too large for memory: time and memory as ratios, and what is exact, in one run.

Run: python benchmarks/scale.py [--rows 100000000] [--folder DIR] [--dask]

Parts of 10,000,000 rows are written into the folder, 470 MB each; those that are there are used.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import special

COMMAND = [sys.executable, "-c", "from howsure.cli.entry import main; main()"]
STEP = 1_000_000
PART = 10_000_000


def rows_of(number: int, rows: int) -> pa.Table:
    """y, lower, upper, mean, sd and two groups, in one of which the sd is too small."""
    rng = np.random.default_rng(number)
    mean, sd = 2.0 * rng.normal(size=rows), 0.5 + rng.gamma(2.0, 0.5, rows)
    site, hour = rng.integers(0, 20, rows), rng.integers(0, 24, rows)
    y = mean + sd * rng.normal(size=rows) * np.where(site == 3, 1.2, 1.0)
    half = special.ndtri(0.95) * sd
    names = pa.array([f"s{k:02d}" for k in range(20)])
    return pa.table(
        {
            "y": y,
            "lower_90": mean - half,
            "upper_90": mean + half,
            "mean": mean,
            "sd": sd,
            "site": pa.DictionaryArray.from_arrays(pa.array(site.astype(np.int8)), names),
            "hour": pa.array(hour.astype(np.int8)),
        }
    )


def write(path: Path, first: int, rows: int) -> None:
    """A part of the table, unless it is there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    steps = -(-rows // STEP)
    with parquet.ParquetWriter(beside, rows_of(0, 1).schema) as writer:
        for step in range(steps):
            size = min(STEP, rows - step * STEP)
            writer.write_table(rows_of(first + step, size), row_group_size=1 << 18)
    beside.rename(path)


def memory_of(pid: int) -> int:
    """Bytes of a process and all that it started, what they share once."""
    total, left = 0, [pid]
    while left:
        each = left.pop()
        try:
            for task in os.listdir(f"/proc/{each}/task"):
                left += map(int, Path(f"/proc/{each}/task/{task}/children").read_text().split())
            for line in Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
        except OSError:  # it has ended
            continue
    return total


def timed(*arguments: str) -> tuple[float, float]:
    """Seconds and peak gigabytes of a command of howsure, with all its processes."""
    start, peak, over = time.perf_counter(), 0, threading.Event()
    run = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL)

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.1):
            peak = max(peak, memory_of(run.pid))

    thread = threading.Thread(target=watch)
    thread.start()
    status = run.wait()
    over.set()
    thread.join()
    if status:
        raise SystemExit(f"howsure {' '.join(arguments)} ended with {status}")
    return time.perf_counter() - start, peak / 1e9


def one_pass(path: Path) -> tuple[float, float]:
    """Seconds of PIT, CRPS and coverage of every batch in NumPy, and of a warm scan."""
    columns = ["y", "lower_90", "upper_90", "mean", "sd"]
    parts = sorted(path.glob("*.parquet"))
    scanned, formulas = 0.0, 0.0
    for _ in range(2):  # the first makes the file's pages warm
        scanned, formulas = 0.0, 0.0
        for part in parts:
            start = time.perf_counter()
            for batch in parquet.ParquetFile(part).iter_batches(1 << 17, columns=columns):
                y, low, high, mean, sd = (column.to_numpy() for column in batch.columns)
                now = time.perf_counter()
                z = (y - mean) / sd
                pit = special.ndtr(z)
                density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
                crps = sd * (z * (2.0 * pit - 1.0) + 2.0 * density - 1.0 / math.sqrt(math.pi))
                float(crps.sum()), float(((y >= low) & (y <= high)).mean()), float(pit.sum())
                formulas += time.perf_counter() - now
            scanned += time.perf_counter() - start
    return formulas, scanned - formulas


def records_of(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The records of a report in JSON, by what they tell of."""
    told = json.loads(path.read_text())
    return {(r["metric"], r["coverage"], r["group"]): r for r in told["records"]}


def compare(whole: Path, parts: Path) -> None:
    """How far a report by parts is from one of all rows at once."""
    ours, theirs = records_of(parts), records_of(whole)
    far = dict.fromkeys(("rows", "histogram", "sample"), (0.0, ""))
    count = dict.fromkeys(far, 0)
    for key, held in theirs.items():
        found, value = ours[key], held["value"]
        if value is None or found["value"] is None:
            if value != found["value"]:
                print(f"  {key}: {value} of all rows, {found['value']} by parts")
            continue
        off = abs(found["value"] - value)
        if found["exact"] == "rows":
            size = max(abs(value), held["standard_error"] or 0.0) or 1.0
            ends = [
                abs((found[name] or 0.0) - (held[name] or 0.0)) / size
                for name in ("standard_error", "lower", "upper")
            ]
            off = max(off / size, *ends)
        if found["exact"] == "sample":
            off = off / found["standard_error"] if found["standard_error"] else 0.0
        if held["units"] == "p-value":
            continue
        count[found["exact"]] += 1
        far[found["exact"]] = max(far[found["exact"]], (off, f"{key[0]} {key[2]}".strip()))
    for way, bar, unit in (
        ("rows", "bar 1e-9", "apart"),
        ("histogram", "stated 1.5e-5", "apart"),
        ("sample", "bar 2", "standard errors apart"),
    ):
        most, name = far[way]
        print(f"  {way} ({count[way]:,} records): at most {most:.2g} {unit}, {name} ({bar})")


def on_dask(path: Path, folder: Path, flags: list[str]) -> None:
    """The same of a cluster of two workers, one of which is killed midway."""
    from distributed import Client, LocalCluster

    local = folder / "local.json"
    timed("assess", str(path), *flags, "-o", str(local))
    for killed in (False, True):
        with LocalCluster(n_workers=2, threads_per_worker=1, processes=True) as cluster:
            out = folder / f"dask{killed}.json"
            if killed:
                with Client(cluster) as client:
                    victim = next(iter(client.run(os.getpid).values()))
                threading.Timer(4.0, lambda pid=victim: os.kill(pid, 9)).start()
            seconds, _ = timed(
                "assess",
                str(path),
                *flags,
                "--scheduler",
                cluster.scheduler_address,
                "-o",
                str(out),
            )
            same = records_of(local) == records_of(out)
            print(
                f"dask, {'a worker killed' if killed else 'two workers'}: {seconds:.1f} s, "
                f"{'equal' if same else 'NOT EQUAL'} to this machine alone"
            )


def main() -> None:
    """Print every figure beside its bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--dask", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(chosen.folder or scratch)
        flags = ["--groups", "site,hour", "--quiet"]
        one = folder / "one.parquet"
        write(one, 0, 1_000_000)
        at_once, peak = timed("assess", str(one), *flags, "-o", f"{scratch}/one.json")
        print(f"1,000,000 rows in memory: {at_once:.1f} s, {peak:.2f} GB")
        seconds, _ = timed(
            "assess", str(one), *flags, "--memory", "900MB", "-o", f"{scratch}/parts.json"
        )
        print(f"1,000,000 rows by parts: {seconds:.1f} s")
        compare(Path(scratch, "one.json"), Path(scratch, "parts.json"))
        parts = folder / "parts"
        for number in range(-(-chosen.rows // PART)):
            first = number * (PART // STEP)
            write(parts / f"{number:03d}.parquet", first, min(PART, chosen.rows - number * PART))
        ten = parts / "000.parquet"
        seconds, peak = timed("assess", str(ten), *flags, "-o", f"{scratch}/ten.json")
        print(
            f"{min(PART, chosen.rows):,} rows: {seconds:.1f} s, {seconds / at_once:.2f} times one "
            f"million in memory (bar 2.5), {peak:.2f} GB (bar 1.5)"
        )
        seconds, peak = timed("assess", str(parts), *flags, "-o", f"{scratch}/all.json")
        state = f"{scratch}/all.arrow"
        timed(
            "assess", str(ten), *flags, "--no-trials", "--state", state, "-o", f"{scratch}/t.json"
        )
        share, _ = timed("merge", state, "--quiet", "-o", f"{scratch}/share.json")
        formulas, scan = one_pass(parts)
        beyond = (seconds - share) / (formulas + scan)
        print(
            f"{chosen.rows:,} rows: {seconds:.1f} s, {peak:.2f} GB (bar 2); beyond the sample's "
            f"{share:.1f} s {beyond:.1f} times one NumPy pass of {formulas:.1f} s and a warm scan "
            f"of {scan:.1f} s (bar 10)"
        )
        if chosen.dask:
            on_dask(ten, Path(scratch), flags)


if __name__ == "__main__":
    main()
