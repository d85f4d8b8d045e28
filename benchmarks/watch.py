"""How often a watch breaks kept promises within a year of daily looks, and how soon it sees faults.

Run ``python benchmarks/watch.py`` (some minutes). With ``--write`` the tables replace what
``docs/watch.md`` has between its markers. A reference of a year tells how rows depend; then a year
of days comes, looked at every day. Errors are normal; all five quantities are watched.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import signal, special

from howsure.core.rng import child
from howsure.metrics.calibration.components import legendre
from howsure.stats.binomial import clopper_pearson
from howsure.stats.evidence import evidence, worth_of
from howsure.watch.quantities import component_bounds, coverage_bounds

PAGE = Path(__file__).parent.parent / "docs" / "watch.md"
MARKS = ("<!-- watch: made by benchmarks/watch.py -->", "<!-- end of watch -->")
DAYS, BROKEN = 365, math.log(20.0)
BOUNDS = (coverage_bounds(0.9, 0.01), *component_bounds(0.01))


@dataclass(frozen=True)
class World:
    """How rows depend, and what becomes of a model from some day on."""

    name: str
    rows: int = 50
    memory: float = 0.0  # correlation from row to row
    shared: float = 0.0  # share of the variance that a day's rows have in common
    weekly: float = 0.0  # share that the season of a week has
    reference: int = DAYS  # its days
    shift: float = 0.0
    scale: float = 1.0
    start: int = 0

    def sums(self, rng: np.random.Generator, days: int, broken: bool) -> np.ndarray:
        """Sums of the five quantities, shape (5, days)."""
        n = days * self.rows
        noise = rng.normal(size=n + 2_000) * math.sqrt(1.0 - self.memory**2)
        z = signal.lfilter([1.0], [1.0, -self.memory], noise)[2_000:]
        day = np.arange(n) // self.rows
        if self.shared:
            level = np.repeat(rng.normal(size=days), self.rows)
            z = math.sqrt(1.0 - self.shared) * z + math.sqrt(self.shared) * level
        if self.weekly:
            season = math.sqrt(2.0) * np.sin(2.0 * np.pi * day / 7)
            z = math.sqrt(1.0 - self.weekly) * z + math.sqrt(self.weekly) * season
            z = special.ndtri(np.clip(_law(self.weekly, z), 1e-12, 1.0 - 1e-12))
        if broken:
            z = np.where(day >= self.start, self.scale * z + self.shift, z)
        values = np.vstack([(np.abs(z) < special.ndtri(0.95)) - 0.9, legendre(special.ndtr(z))])
        return values.reshape(5, days, self.rows).sum(axis=2)


def _law(share: float, z: np.ndarray) -> np.ndarray:
    """Distribution function of a normal error and the season of a week, over all days."""
    season = math.sqrt(2.0 * share) * np.sin(2.0 * np.pi * np.arange(7) / 7)
    return np.mean([special.ndtr((z - level) / math.sqrt(1.0 - share)) for level in season], axis=0)


def looked_at(world: World, run: int) -> int:
    """The day of the alarm within the year that counts from the start of the fault; −1: none."""
    rng = child(0, "watch", world.name, run)
    reference = world.sums(rng, world.reference, broken=False)
    days = DAYS + world.start
    seen = world.sums(rng, days, broken=True)
    counts = np.full(days, float(world.rows))
    before = np.full(world.reference, float(world.rows))
    logs = [
        evidence(row, counts, bounds, worth_of(past, before, bounds.variance))
        for row, past, bounds in zip(seen, reference, BOUNDS, strict=True)
    ]
    total = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
    alarms = np.flatnonzero(total >= BROKEN)
    return int(alarms[0]) if len(alarms) else -1


KEPT = (
    World("independent"),
    World("independent, 500 rows a day", rows=500),
    World("independent, reference of 60 days", reference=60),
    World("rows of a day share 5 %", shared=0.05),
    World("rows of a day share 20 %", shared=0.2),
    World("season of a week, 10 %", weekly=0.1),
    World("AR(.8) from row to row", memory=0.8),
    World("AR(.6) from day to day", memory=0.99),
    World("AR(.8) from day to day", memory=0.9955),
    World("AR(.8) from day to day, reference of 90 days", memory=0.9955, reference=90),
)
LATE = 100
FAULTS = (
    World("coverage .85", scale=1.1427, start=LATE),
    World("coverage .88", scale=1.0579, start=LATE),
    World("bias of .2 sd", shift=0.2, start=LATE),
    World("errors 1.3 times as large", scale=1.3, start=LATE),
    World("coverage .85, 500 rows a day", scale=1.1427, start=LATE, rows=500),
    World("bias of .2 sd, 500 rows a day", shift=0.2, start=LATE, rows=500),
    World("bias of .2 sd, AR(.8) from row to row", shift=0.2, start=LATE, memory=0.8),
    World("bias of .2 sd, AR(.8) from day to day", shift=0.2, start=LATE, memory=0.9955),
)


def main() -> None:
    """Run all worlds, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    lines = ["| rows that are as promised | ever told broken, % | 95 % interval |", "|---|---|---|"]
    for world in KEPT:
        hits = sum(looked_at(world, run) >= 0 for run in range(given.runs))
        low, high = (100.0 * float(end) for end in clopper_pearson(hits, given.runs))
        lines.append(
            f"| {world.name} | {100.0 * hits / given.runs:.1f} | {low:.1f} to {high:.1f} |"
        )
        print(lines[-1], flush=True)
    lines += ["", "| fault | found within a year, % | median delay, days |", "|---|---|---|"]
    for world in FAULTS:
        alarms = [looked_at(world, run) for run in range(given.runs // 3)]
        delays = [day - world.start for day in alarms if day >= world.start]
        early = sum(0 <= day < world.start for day in alarms)
        share = 100.0 * len(delays) / max(len(alarms) - early, 1)
        median = f"{np.median(delays):.0f}" if delays else "–"
        lines.append(f"| {world.name} | {share:.0f} | {median} |")
        print(lines[-1], flush=True)
    told = "\n".join(lines)
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        PAGE.write_text(f"{before}{MARKS[0]}\n{told}\n\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
