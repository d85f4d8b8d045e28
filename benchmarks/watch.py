"""How often a watch breaks kept promises within a year of daily looks, and how soon it sees faults.

Run ``python -m benchmarks.watch`` (some minutes). With ``--write`` the tables replace what
``docs/watch.md`` has between its markers. A reference of a year tells how rows depend; then a year
of days comes, looked at every day. Errors are normal; all five quantities are watched. Where errors
have become 1.5 times as large, a correction is learnt from some rows, and watched for a year.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.intervals import write
from scipy import signal, special

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.binomial import clopper_pearson
from howsure.stats.ecdf import legendre
from howsure.stats.evidence import evidence, worth_of
from howsure.watch import Watch
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
    tolerance: float = 0.01

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
    told = (coverage_bounds(0.9, world.tolerance), *component_bounds(world.tolerance))
    logs = [
        evidence(row, counts, bounds, worth_of(past, before, bounds.variance))
        for row, past, bounds in zip(seen, reference, told, strict=True)
    ]
    total = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
    alarms = np.flatnonzero(total >= BROKEN)
    return int(alarms[0]) if len(alarms) else -1


KEPT = (
    World("independent"),
    World("independent, 500 rows a day", rows=500),
    World("independent, reference of 60 days", reference=60),
    World("independent, tolerance 0", tolerance=0.0),
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
    World("coverage .85, tolerance 0", scale=1.1427, start=LATE, tolerance=0.0),
    World("coverage .88, tolerance 0", scale=1.0579, start=LATE, tolerance=0.0),
    World("bias of .2 sd", shift=0.2, start=LATE),
    World("errors 1.3 times as large", scale=1.3, start=LATE),
    World("coverage .85, 500 rows a day", scale=1.1427, start=LATE, rows=500),
    World("bias of .2 sd, 500 rows a day", shift=0.2, start=LATE, rows=500),
    World("bias of .2 sd, AR(.8) from row to row", shift=0.2, start=LATE, memory=0.8),
    World("bias of .2 sd, AR(.8) from day to day", shift=0.2, start=LATE, memory=0.9955),
)


STEP, LEARNT = 1.5, (300, 1_000, 3_000)


def corrected(learnt: int, run: int) -> tuple[bool, float] | None:
    """Whether the promise of a correction is told broken, and coverage; None if it is refused."""
    rng, days = child(0, "watch", "corrected", learnt, run), learnt // 50

    def rows(first: int, count: int, scale: float = 1.0) -> dict[str, np.ndarray]:
        day = np.repeat(np.arange(first, first + count), 50)
        mean, error = rng.normal(size=(2, len(day)))
        return {"day": day, "y": mean + scale * error, "mean": mean, "sd": np.ones(len(day))}

    with tempfile.TemporaryDirectory() as folder:
        watch = Watch.init(f"{folder}/model.watch", rows(0, DAYS), time="day")
        try:
            watch.correct(rows(DAYS, days, STEP), since=DAYS)
        except InputError:
            return None
        watch.add(rows(DAYS + days, DAYS, STEP))
        report = watch.show()
    return not report.kept, float(report.covered.mean())


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])


def share(hits: int, runs: int) -> tuple[str, str]:
    """In %, and its 95 % interval."""
    low, high = (100.0 * float(end) for end in clopper_pearson(hits, runs))
    return f"{100.0 * hits / runs:.1f}", f"{low:.1f} to {high:.1f}"


def shown(name: str) -> str:
    """A world's name as the table has it; the name itself seeds the draws."""
    return name.replace("rows a day", "rows per day")


def found(alarms: np.ndarray, start: int) -> tuple[str, str]:
    """Of years without an alarm before a fault, those in which it is found, in %; median delay.

    The first day of the fault is day 1; there is no median where it is not found in half of them.
    """
    years = alarms[(alarms < 0) | (alarms >= start)]
    if 2 * len(years) < len(alarms) or not len(years):
        return "–", "–"
    delay = float(np.median(np.where(years < 0, np.inf, years - start + 1.0)))
    median = f"{math.ceil(delay)}" if math.isfinite(delay) else "–"
    return f"{100.0 * (years >= 0).mean():.0f}", median


def of_corrections(runs: int) -> Iterable[tuple[str, ...]]:
    """A row for each number of rows that a correction is learnt from."""
    for learnt in LEARNT:
        made = [each for each in (corrected(learnt, run) for run in range(runs)) if each]
        covered = np.array([each[1] for each in made])
        low, high = 100.0 * np.quantile(covered, (0.05, 0.95))
        off = 100.0 * np.mean(np.abs(covered - 0.9) > 0.01)
        broken = share(sum(each[0] for each in made), len(made))
        refused = f"{100.0 * (1.0 - len(made) / runs):.0f}"
        yield f"{learnt:,}", refused, f"{low:.1f} to {high:.1f}", f"{off:.0f}", *broken


def main() -> None:
    """Run all worlds, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    kept = [
        (
            shown(world.name),
            *share(sum(looked_at(world, run) >= 0 for run in range(given.runs)), given.runs),
        )
        for world in KEPT
    ]
    faults = []
    for world in FAULTS:
        alarms = np.array([looked_at(world, run) for run in range(given.runs // 3)])
        faults.append((shown(world.name), *found(alarms, world.start)))
    heads = ["rows used to fit", "refused, %", "coverage afterwards, 90 % of runs, %"]
    heads += ["error above 1 point, %", "reported as broken within a year, %", "95 % interval"]
    text = "\n\n".join(
        [
            markdown(["correct predictions", "ever reported as broken, %", "95 % interval"], kept),
            markdown(["fault", "found within a year, %", "median delay, days"], faults),
            markdown(heads, of_corrections(given.runs)),
        ]
    )
    print(text)
    if given.write:
        write(f"{text}\n", MARKS, PAGE)


if __name__ == "__main__":
    main()
