"""Write the results that ship with a plan, from the store of a run in which every trial is done.

    howsure bench run shift --store STORE --jobs 2
    python benchmarks/shipped.py shift_small STORE

The file lies beside the plan and holds a row a number, with what made it in its metadata.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from howsure.core.files import atomic_write
from howsure_studies.engine import Store, load_plan
from howsure_studies.engine.shipped import shipped_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plan", help="plan by name")
    parser.add_argument("store", help="folder of its results")
    given = parser.parse_args()
    plan = load_plan(given.plan)
    folder = Path(__file__).parents[1] / "studies/src/howsure_studies" / plan.study / "plans"
    data = shipped_bytes(plan, Store(given.store))
    atomic_write(folder / f"{plan.name}.parquet", data)
    print(f"written: {folder / plan.name}.parquet, {len(data):,} bytes")


if __name__ == "__main__":
    main()
