"""Make all results that ship, and all that is written from them: `make papers`.

    python -m benchmarks.papers                       # what plans have beyond what ships
    python -m benchmarks.papers --anew                # all papers, within two hours on two cores
    python -m benchmarks.papers pointwise splits      # studies, or plans by name
    python -m benchmarks.papers which --worlds energy "bike-hours, late"
    python -m benchmarks.papers --store FOLDER --jobs 2

For each plan whose results ship: those are run that neither ship nor are in the store, world by
world; after each the file beside the plan is written, with all that is there by then. At the end
the case studies in docs/ are brought up to date. A run that is cut off goes on where it was, or
after its last world where the store is gone. A plan ships from the day on which it is named here
once. A study whose results need each other is run, and written, whole.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure.core.registry import check_known, unknown
from howsure_studies.cli.display import run_shown
from howsure_studies.engine import (
    Store,
    grouped,
    load_plan,
    plan_file,
    plan_names,
    study_of,
    trials_of,
)
from howsure_studies.engine.shipped import carried, in_parts, shipped_bytes

DOCS = Path(__file__).parents[1] / "docs" / "make_studies.py"


def chosen(names: list[str]) -> list[str]:
    """Plans by name, or those of studies whose results ship; all of these where none is named."""
    plans = {name: load_plan(name).study for name in plan_names()}
    shipping = {name: study for name, study in plans.items() if _beside(name).exists()}
    for name in names:
        if name not in plans and name not in shipping.values():
            raise InputError(unknown(name, (*plans, *dict.fromkeys(shipping.values())), "paper"))
    wanted = [name for name in plans if name in names]
    return [
        *wanted,
        *(plan for plan, study in shipping.items() if not names or study in names),
    ]


def _beside(name: str) -> Path:
    """Where the results of a plan ship."""
    return plan_file(name).with_suffix(".parquet")


def made(
    name: str, store: Store, *, worlds: list[str] | None = None, anew: bool = False, jobs: int = 0
) -> int:
    """Run what a plan lacks, write its file after each world, and give the trials that failed."""
    began, plan, failed, done = time.monotonic(), load_plan(name), 0, 0
    for world in worlds or ():
        check_known(world, plan.worlds, f"world of plan {name!r}")
    trials = trials_of(plan)
    groups = grouped(trials)
    there = {} if anew else carried(plan, groups)
    left = [group for group in groups if group not in there]
    parts = [[world] for world in worlds or plan.worlds]
    apart = in_parts(study_of(plan.study))
    if not apart:
        if worlds:
            raise InputError(f"--worlds must be left out: study {plan.study!r} ships whole")
        parts = [list(plan.worlds)]
    for part in parts:
        wanted = [group for group in left if group[0] in part]
        if wanted:
            own = replace(plan, worlds={world: plan.worlds[world] for world in part})
            summary = run_shown(own, store, jobs=jobs, results=wanted)
            failed += summary.failed + summary.failed_before
            done += summary.done
            atomic_write(_beside(name), shipped_bytes(plan, store, trials))
    if apart and not left:  # what ships of it may stand in another plan's file
        atomic_write(_beside(name), shipped_bytes(plan, store, trials))
    print(
        f"{name}: {len(there)} of {len(groups)} results shipped before, {done} trials run, "
        f"{failed} failed, {_beside(name).stat().st_size:,} bytes, "
        f"{time.monotonic() - began:.0f} s",
        flush=True,
    )
    return failed


def main() -> None:
    """Run, write, and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="studies or plans; all that ship if omitted")
    parser.add_argument("--worlds", nargs="+", help="only these of the plan, by label")
    parser.add_argument("--anew", action="store_true", help="run also what ships already")
    parser.add_argument("--store", default="papers", help="folder of results (papers)")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run trials (2)")
    given = parser.parse_args()
    options = {"worlds": given.worlds, "anew": given.anew, "jobs": given.jobs}
    names = list(dict.fromkeys(chosen(given.names)))
    if given.worlds:  # of a study named, the plans that have them
        having = [name for name in names if {*given.worlds} <= {*load_plan(name).worlds}]
        names = having or names
    failed = sum(made(name, Store(given.store), **options) for name in names)
    if failed:
        sys.exit(f"{failed} trials failed: howsure bench status PLAN --store {given.store}")
    subprocess.run([sys.executable, str(DOCS)], check=True)


if __name__ == "__main__":
    main()
