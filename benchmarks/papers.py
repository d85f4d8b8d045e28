"""Make every result that ships, and all that is written from them, anew: `make papers`.

    python -m benchmarks.papers                       # all papers, within two hours on two cores
    python -m benchmarks.papers pointwise splits      # studies, or plans by name
    python -m benchmarks.papers --store FOLDER --jobs 2

For each plan whose results ship: its trials are run that the store does not hold, the file beside
the plan is written, and the case studies in docs/ are brought up to date. A run that is cut off
goes on where it was. A plan ships from the day on which it is named here once.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from howsure.core.errors import InputError
from howsure.core.files import atomic_write
from howsure.core.registry import unknown
from howsure_studies.cli.display import run_shown
from howsure_studies.engine import Store, load_plan, plan_file, plan_names
from howsure_studies.engine.shipped import shipped_bytes

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


def main() -> None:
    """Run, write, and say how long it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="studies or plans; all that ship if omitted")
    parser.add_argument("--store", default="papers", help="folder of results (papers)")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run trials (2)")
    given = parser.parse_args()
    store = Store(given.store)
    for name in dict.fromkeys(chosen(given.names)):
        began, plan = time.monotonic(), load_plan(name)
        summary = run_shown(plan, store, jobs=given.jobs)
        data = shipped_bytes(plan, store)
        atomic_write(_beside(name), data)
        print(
            f"{name}: {summary.done} of {summary.trials} trials run, {len(data):,} bytes, "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )
    subprocess.run([sys.executable, str(DOCS)], check=True)


if __name__ == "__main__":
    main()
