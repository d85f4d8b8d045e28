"""Processor time and memory of assessments, each a whole process, now and at earlier commits.

Run ``python benchmarks/assess.py`` for the tree that this file is in (``--works "10,000"`` for some
of it). ``--commits d386136 HEAD`` measures each of them in a worktree of its own, with the
interpreter and libraries of today, and keeps the figures in ``benchmarks/assess.json``. ``--write``
makes ``docs/speed.md`` of that file. After ``--commits`` this tree is measured too, and what each
commit took is printed as a ratio. ``--peers`` compares formulas with peer libraries.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import special
from scipy.signal import lfilter

ROOT = Path(__file__).parent.parent
KEPT, PAGE = ROOT / "benchmarks" / "assess.json", ROOT / "docs" / "speed.md"
IMPORTS = "import numpy, scipy.stats, pyarrow.parquet"
HOWSURE = ("-c", "from howsure.cli.entry import main; main()")
LIMIT = 300
METER = f"""
import resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, timeout={LIMIT}).returncode
wall, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * 1024 / 1e6)
sys.exit(code)
"""  # a small process, as a large one hands its own peak to its child


def drawn(rows: int) -> tuple[np.random.Generator, Any, Any, Any]:
    """A source of numbers, and y, mean and sd of a model whose sd is too small."""
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=rows), np.exp(rng.uniform(-0.7, 0.7, rows))
    return rng, mean + 1.1 * sd * rng.normal(size=rows), mean, sd


def make_table(rows: int, groups: bool = True, features: int = 0) -> pa.Table:
    """y, lower, upper, mean and sd, two group columns and features."""
    rng, y, mean, sd = drawn(rows)
    columns = {"y": y, "lower_90": mean - 1.6449 * sd, "upper_90": mean + 1.6449 * sd}
    columns |= {"mean": mean, "sd": sd}
    if groups:
        columns["region"] = rng.choice(["north", "south", "east", "west"], rows)
        columns["kind"] = rng.choice([f"k{i}" for i in range(12)], rows)
    return pa.table(columns | {f"x{i}": rng.normal(size=rows) for i in range(features)})


def make_series(rows: int) -> pa.Table:
    """Hourly rows whose errors follow each other, with months and hours as groups."""
    rng, _, mean, sd = drawn(rows)
    errors = lfilter([0.8], [1.0, -0.6], rng.normal(size=rows))
    when = np.datetime64("2020-01-01T00") + np.arange(rows).astype("timedelta64[h]")
    columns = {"y": mean + sd * errors, "mean": mean, "sd": sd, "time": when}
    columns["hour"] = np.arange(rows) % 24
    return pa.table(columns | {"month": when.astype("datetime64[M]").astype(int) % 12})


def make_models(models: int, rows: int) -> pa.Table:
    """Models under one another, of the same rows."""
    rng, y, mean, sd = drawn(rows)
    columns = {"model": np.repeat(np.arange(models), rows), "row": np.tile(np.arange(rows), models)}
    columns["mean"] = (mean + 0.3 * sd * rng.normal(size=(models, rows))).ravel()
    columns["sd"] = np.outer(np.linspace(0.7, 1.4, models), sd).ravel()
    return pa.table(columns | {"y": np.tile(y, models)})


def make_samples(rows: int, draws: int) -> pa.Table:
    """y, and draws beside one another."""
    rng, y, mean, sd = drawn(rows)
    return pa.table({"y": y} | {f"s_{i}": mean + sd * rng.normal(size=rows) for i in range(draws)})


def make_quantiles(rows: int, levels: int) -> pa.Table:
    """y, and quantiles at levels that lie evenly."""
    _, y, mean, sd = drawn(rows)
    at = np.arange(1, levels + 1) / (levels + 1)
    columns = {f"q_{level:.4g}": mean + sd * special.ndtri(level) for level in at}
    return pa.table({"y": y} | columns)


def make_sets(rows: int, classes: int, size: int) -> pa.Table:
    """y, and sets of labels that hold it nine times of ten."""
    rng = np.random.default_rng(0)
    y, names = rng.integers(0, classes, rows), np.array([f"c{i}" for i in range(classes)])
    chosen = rng.random((rows, classes)).argpartition(size, axis=1)[:, :size]
    inside = rng.random(rows) < 0.9
    chosen[inside, 0] = y[inside]
    sets = pa.array([names[np.unique(row)].tolist() for row in chosen])
    return pa.table({"y": names[y], "set_90": sets})


@dataclass(frozen=True)
class Work:
    """What is measured, its bars (a time, or times faster; megabytes), and of what."""

    name: str
    bar: float
    unit: str = "U"
    make: Callable[[], pa.Table] | None = None
    flags: tuple[str, ...] = ()
    memory: float = inf
    command: tuple[str, ...] = ("assess", "table.parquet")

    def told(self, value: float, mb: float = inf) -> str:
        """A figure or a bar with its unit."""
        return f"{value:.3g} {self.unit}" + (f", {mb:.0f} MB" if mb < inf else "")

    def met(self, figure: Any) -> str:
        """Whether a figure, or why there is none, is within the bars."""
        if isinstance(figure, str):
            return "missed" if figure.startswith("over") else ""
        value, mb = (*figure, 0.0)[:2]
        within = value >= self.bar if self.unit == "× faster" else value <= self.bar
        return "met" if within and mb <= self.memory else "missed"

    def cell(self, figure: Any) -> str:
        """A figure in words, or in short why there is none."""
        return figure.partition(":")[0] if isinstance(figure, str) else self.told(*figure)


GROUPS, X = ("--groups", "region,kind"), ("--features", "x0,x1,x2", "-o", "page.html")
DATED = ("--time", "time", "--groups", "month,hour")
BY = ("--model", "model", "--row-id", "row")
WORKS = [
    Work("100 rows", 1.5, "U", lambda: make_table(100, False)),
    Work("1,000 rows", 1.5, "U", lambda: make_table(1_000, False)),
    Work(
        "1,000 rows, groups and features",
        2.5,
        "U",
        lambda: make_table(1_000, True, 3),
        (*GROUPS, "--features", "x0,x1,x2"),
    ),
    Work("10,000 rows, two groups", 2.5, "U", lambda: make_table(10_000), GROUPS),
    Work("the same, three features, page", 5, "U", lambda: make_table(10_000, True, 3), GROUPS + X),
    Work("1,000,000 rows, two groups", 4, "U", lambda: make_table(1_000_000), GROUPS, 500),
    Work("100,000 rows in time, two groups", 15, "U", lambda: make_series(100_000), DATED),
    Work("100 models of 300 rows", 15, "U", lambda: make_models(100, 300), BY),
    Work("20,000 rows of 23 quantiles", 3, "U", lambda: make_quantiles(20_000, 23), (), 250),
    Work("500 rows of 99 quantiles", 3, "U", lambda: make_quantiles(500, 99), (), 300),
    Work("2,000 rows of 999 quantiles", 15, "U", lambda: make_quantiles(2_000, 999), (), 300),
    Work("2,000 sets of 1,000 labels", 4, "U", lambda: make_sets(2_000, 5_000, 1_000)),
    Work(
        "5,000 rows, 300 features",
        18,
        "U",
        lambda: make_table(5_000, False, 300),
        ("--features", ",".join(f"x{i}" for i in range(300))),
    ),
    Work(
        "1,000,000 rows recalibrated",
        7,
        "U",
        lambda: make_table(1_000_000, False),
        (),
        500,
        ("recalibrate", "table.parquet", "--calibration", "table.parquet", "-o", "new.parquet"),
    ),
    Work("2,000 rows of 1,000 draws", 4, "tables", lambda: make_samples(2_000, 1_000)),
    Work("`howsure --help`", 0.6, "s", None, (*HOWSURE, "--help")),
    Work("`import howsure`", 0.4, "s", None, ("-c", "import howsure")),
    Work("20,000 rows in Python, the verdict", 15, "× faster"),
    Work("20,000 rows in Python, every record", 15, "× faster"),
]


def toolbox(rows: int = 20_000) -> list[float]:
    """Least processor seconds of uncertainty-toolbox, of the verdict, and of it and all records."""
    import uncertainty_toolbox as uct  # type: ignore[import-untyped]

    from howsure import Distribution, assess

    _, y, mean, sd = drawn(rows)
    assess(y[:100], Distribution.normal(mean[:100], sd[:100]))
    taken = []
    for _ in range(3):
        at = [time.process_time()]
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
            uct.get_all_metrics(mean, sd, y, verbose=False)
        at.append(time.process_time())
        found = assess(y, Distribution.normal(mean, sd))
        at.append(time.process_time())
        assert found.records
        taken.append((at[1] - at[0], at[2] - at[1], time.process_time() - at[1]))
    return [min(each) for each in zip(*taken, strict=True)]


def peers(rows: int = 200_000) -> dict[str, float | str]:
    """Processor time of a peer library over that of the same formula here, or why there is none.

    The floor is a script of the formulas in NumPy: what no library could be much below.
    """
    from howsure.engine.catalogue import catalogue
    from howsure.metrics import empirical_coverage
    from howsure.predictions import EvalSet
    from howsure.topics.crps import crps_samples
    from howsure.topics.crps_closed import crps_normal
    from howsure.topics.groups import Grouping, group_means

    rng, y, mean, sd = drawn(rows)
    lower, upper = mean - 1.6449 * sd, mean + 1.6449 * sd
    samples = mean[:20_000, None] + sd[:20_000, None] * rng.normal(size=(20_000, 50))
    ends = np.stack([lower, upper], axis=1)[:, :, None]
    region = rng.integers(0, 12, rows)
    scores, evalset = np.abs(y - mean), EvalSet(y=y, point=mean)
    table = pa.table({"score": scores, "region": region})
    grouping = Grouping("region", region, tuple(map(str, range(12))))

    def scoringrules_normal() -> Any:
        import scoringrules as sr

        return lambda: sr.crps_normal(y, mean, sd)

    def scoringrules_samples() -> Any:
        import scoringrules as sr

        return lambda: sr.crps_ensemble(y[:20_000], samples)

    def properscoring_samples() -> Any:
        import properscoring as ps  # type: ignore[import-not-found]

        return lambda: ps.crps_ensemble(y[:20_000], samples)

    def mapie_coverage() -> Any:
        from mapie.metrics.regression import regression_coverage_score

        return lambda: regression_coverage_score(y, ends)

    def duckdb_groups() -> Any:
        import duckdb

        connection = duckdb.connect()
        connection.execute("set threads = 1")
        connection.register("held", table)
        query = "select region, avg(score), stddev(score), count(*) from held group by region"
        return lambda: connection.execute(query).fetchall()

    def numpy_crps() -> Any:
        def floor() -> Any:
            z = (y - mean) / sd
            density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
            return sd * (z * (2.0 * special.ndtr(z) - 1.0) + 2.0 * density - 1.0 / np.sqrt(np.pi))

        return floor

    def of_normal() -> Any:
        return crps_normal(y, mean, sd)

    def of_samples() -> Any:
        return crps_samples(y[:20_000], samples)

    def of_groups() -> Any:
        return group_means(evalset, grouping, scores, catalogue()["mae"]).error

    compared: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "CRPS of normals, scoringrules": (scoringrules_normal, of_normal),
        "CRPS of normals, NumPy script": (numpy_crps, of_normal),
        "CRPS of 50 samples, scoringrules": (scoringrules_samples, of_samples),
        "CRPS of 50 samples, properscoring": (properscoring_samples, of_samples),
        "coverage, MAPIE": (mapie_coverage, lambda: empirical_coverage(y, lower, upper)),
        "means of groups, DuckDB": (duckdb_groups, of_groups),
    }
    ratios: dict[str, float | str] = {}
    for name, (load, own) in compared.items():
        try:
            other = load()
        except ImportError as error:
            ratios[name] = f"skipped: {error}"
            continue
        ratios[name] = seconds_of(other) / seconds_of(own)
    return ratios


def seconds_of(function: Callable[[], Any]) -> float:
    """Least processor seconds of a call, of seven after a first."""
    function()
    taken = []
    for _ in range(7):
        start = time.process_time()
        function()
        taken.append(time.process_time() - start)
    return max(min(taken), 1e-9)


def numbers(source: Path, folder: str, *arguments: str) -> list[float]:
    """What a process prints last, with the howsure of a tree."""
    env = os.environ | {"PYTHONPATH": str(source / "src"), "OPENBLAS_NUM_THREADS": "1"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages have theirs
    command = [sys.executable, *arguments]
    run = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, check=False)
    if run.returncode:
        late = "TimeoutExpired" in run.stderr
        lines = [line for each in run.stderr.splitlines() if (line := each.strip("│╭╮╰╯─ "))]
        why = lines[-1] if lines else f"status {run.returncode}"
        raise RuntimeError(f"over {LIMIT} s" if late else f"not possible: {why}")
    return [float(each) for each in run.stdout.split()[-3:]]


def least(source: Path, folder: str, runs: int, *arguments: str) -> list[float]:
    """Least processor seconds, seconds and megabytes; no run begins past a tenth of the limit."""
    found: list[list[float]] = []
    start = time.perf_counter()
    while not found or (len(found) < runs and time.perf_counter() - start < LIMIT / 10):
        found.append(numbers(source, folder, "-c", METER, sys.executable, *arguments))
    return [min(each) for each in zip(*found, strict=True)]


def measured(source: Path, runs: int, part: str) -> dict[str, Any]:
    """The unit, and the figures of a tree: values in their units and megabytes, or why not."""
    figures: dict[str, Any] = {}
    units: list[list[float]] = []
    against: list[float] = []
    for work in (each for each in WORKS if part in each.name):
        with tempfile.TemporaryDirectory() as folder:
            try:
                if work.unit == "× faster":
                    against = against or numbers(source, folder, __file__, "--toolbox")
                    ours = against[1 + work.name.endswith("record")]
                    figures[work.name] = [against[0] / ours]
                    continue
                if work.unit != "s":
                    units.append(least(source, folder, runs, "-c", IMPORTS))
                told = work.flags
                if work.make:
                    table = work.make()
                    parquet.write_table(table, f"{folder}/table.parquet")
                    told = (*HOWSURE, *work.command, *work.flags)
                times = 5 * runs if work.unit == "s" else runs
                processor, wall, mb = least(source, folder, times, *told)
                over = (mb - units[-1][2]) * 1e6 / table.nbytes if work.unit == "tables" else 0.0
                figures[work.name] = [{"U": processor, "s": wall, "tables": over}[work.unit], mb]
            except RuntimeError as error:
                figures[work.name] = str(error)
            print(work.name, figures[work.name], file=sys.stderr)
    unit = min((each[0] for each in units), default=0.0)
    for work in WORKS:
        if isinstance(found := figures.get(work.name), list):
            found[0] /= unit if work.unit == "U" else 1.0
            figures[work.name] = [round(each, 3) for each in found]
    return {"unit": round(unit, 3), "figures": figures}


def git(*arguments: str) -> str:
    """What git prints."""
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def keep(commit: str, runs: int, part: str) -> None:
    """Measure a commit in a worktree of its own, and put it among those kept."""
    short, date = git("log", "-1", "--abbrev=7", "--format=%h %cI", commit).split()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--detach", str(tree), short)
        try:
            found = measured(tree, runs, part)
            version = (tree / "src/howsure/_version.py").read_text().split('"')[-2]
            heads = re.findall("^## (.*)", (tree / "CHANGELOG.md").read_text(), re.MULTILINE)
        finally:
            git("worktree", "remove", "--force", str(tree))
    label = version if heads[0].startswith(version) else f"after {version}"
    cpu = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[0]
    machine = f"{os.cpu_count()} cores ({cpu}), Python {platform.python_version()}"
    held = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    before = held.get(short, {"unit": 0.0, "figures": {}})
    found["unit"] = found["unit"] or before["unit"]
    found["figures"] = before["figures"] | found["figures"]
    held[short] = {"date": date, "label": label, "machine": machine} | found
    KEPT.write_text(json.dumps(held, indent=1) + "\n")


def page() -> str:
    """The figures that are kept: a row a work, a column a commit."""
    held = dict(sorted(json.loads(KEPT.read_text()).items(), key=lambda each: each[1]["date"]))
    machines = dict.fromkeys(each["machine"] for each in held.values())
    unit = [each["unit"] for each in held.values()]
    heads = [f"{each['label']}, {short}, {each['date'][:10]}" for short, each in held.items()]
    told = {"least": min(unit), "most": max(unit), "machines": "; ".join(machines), "limit": LIMIT}
    lines = [HEAD.format(**told)]
    lines += [f"| task | bar | {' | '.join(heads)} |", f"|:--|--:|{'--:|' * len(held)}"]
    for work in WORKS:
        figures = [each["figures"].get(work.name, "–") for each in held.values()]
        cells = [work.told(work.bar, work.memory), *map(work.cell, figures)]
        for place, figure in enumerate(figures, start=1):
            if work.met(figure) == "missed":
                cells[place] = f"**{cells[place]}**"
        lines.append(f"| {work.name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


HEAD = """# Time and memory by commit

Made with `python benchmarks/assess.py --commits COMMIT … --write`. Each commit is measured with
today's interpreter and libraries, and each task in its own process. The result is the minimum of
three runs (one run for tasks of half a minute or more; fifteen for those in s). The time limit is
{limit} s. Results that miss their bar are bold.

Machine: {machines}.

* **U** is the processor time (user and system, children included) of a Python that imports NumPy,
  `scipy.stats` and `pyarrow.parquet`, with one thread for BLAS: {least:.2f} to {most:.2f} s here.
  Tasks in U are `howsure assess` of a Parquet file with y, 90 % intervals, mean and sd; for
  several models, with y, mean and sd.
* **MB** is the peak memory of a process. **tables** is its excess over the same imports, as a
  multiple of the table's 16 MB.
* **s** is wall-clock time in seconds.
* **× faster** compares processor time with `get_all_metrics` of uncertainty-toolbox: for
  `howsure.assess` (the verdict), and including its `records` (every record).

Modules are compiled in advance, as in an installed package. For d386136, each process compiled
them again, which takes about 0.3 s.
"""


def main() -> None:
    """Print every figure beside its bar, or keep those of commits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--works", default="", help="part of their names")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--peers", action="store_true", help="formulas beside peer libraries")
    parser.add_argument("--toolbox", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.toolbox:
        print(*toolbox())
        return
    if chosen.peers:
        for name, ratio in peers().items():
            print(f"{name:36} {ratio if isinstance(ratio, str) else f'{ratio:.2f} × our time'}")
        return
    for commit in chosen.commits:
        keep(commit, chosen.runs, chosen.works)
    if chosen.write:
        PAGE.write_text(page(), encoding="utf-8")
        return
    found = measured(ROOT, chosen.runs, chosen.works)
    kept = json.loads(KEPT.read_text()) if chosen.commits else {}
    earlier = [git("log", "-1", "--abbrev=7", "--format=%h", each) for each in chosen.commits]
    print(f"U = {found['unit']:.3f} s")
    for work in (each for each in WORKS if each.name in found["figures"]):
        figure, bar = found["figures"][work.name], work.told(work.bar, work.memory)
        print(f"{work.name:36} {work.cell(figure):>20}  bar {bar:>14}  {work.met(figure)}")
        for short in earlier:
            print(f"{'':36} {times_of(kept[short]['figures'].get(work.name), figure):>20}  {short}")


def times_of(before: Any, now: Any) -> str:
    """How many times the figure of today an earlier one was."""
    if not (isinstance(before, list) and isinstance(now, list)):
        return str(before if isinstance(before, str) else "–").partition(":")[0]
    return " and ".join(f"{old / new:.2f} ×" for old, new in zip(before, now, strict=True))


if __name__ == "__main__":
    main()
