"""How many planted faults the tests catch, by a sample of mutmut's mutants: `make mutate`.

    python -m benchmarks.mutation --sample 300 --seed 0

All mutants of the rooms named in pyproject.toml (`tool.mutmut`) would take a day. A mutant is
caught if a test fails or runs out of time, and missed if no test reaches it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from howsure.core.rng import child
from howsure.stats.binomial import clopper_pearson

ROOT = Path(__file__).parents[1]
FIRST = "howsure.stats.permutation.*"
"""What is run where there are no mutants yet, for mutmut makes them when it runs."""
MISSED = {None: "not run", 0: "survived", 33: "reached by no test"}


def mutants() -> dict[str, int | None]:
    """Exit codes by mutant; None where it was not run."""
    files = sorted((ROOT / "mutants" / "src").rglob("*.meta"))
    return {
        name: code
        for file in files
        for name, code in json.loads(file.read_text("utf-8"))["exit_code_by_key"].items()
    }


def mutmut(*names: str) -> None:
    """Run mutants by name."""
    subprocess.run([sys.executable, "-m", "mutmut", "run", *names], cwd=ROOT, check=True)


def main() -> None:
    """Run a sample, and print the share that was caught, by room, and what was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if not mutants():
        mutmut(FIRST)
    names = sorted(mutants())
    chosen = child(asked.seed, "mutation").permutation(len(names))[: asked.sample]
    sample = [names[place] for place in sorted(chosen)]
    mutmut(*sample)
    codes = mutants()
    rooms = {name: name.split(".")[1] for name in sample}
    caught = Counter(rooms[name] for name in sample if codes[name] not in MISSED)
    for room, total in Counter(rooms.values()).items():
        lower, upper = clopper_pearson(caught[room], total)
        share = f"{caught[room]} of {total} caught"
        print(f"{room:>14}: {share} ({lower:.0%} to {upper:.0%} at 95 %)")
    lower, upper = clopper_pearson(caught.total(), len(sample))
    print(f"{'all':>14}: {caught.total()} of {len(sample)} caught ({lower:.0%} to {upper:.0%})")
    for name in sample:
        if codes[name] in MISSED:
            print(f"{MISSED[codes[name]]}: {name}")


if __name__ == "__main__":
    main()
