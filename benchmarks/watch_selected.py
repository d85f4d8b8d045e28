"""What a watch says where labels are missing by x: unweighted, by strata, and by true weights.

Run ``python -m benchmarks.watch_selected`` (a minute; half an hour for all worlds, ``--all``). With
``--write`` the table replaces what ``docs/watch.md`` has between its markers.
Intervals of 90 % cover 97 % of rows where the first of three inputs is low and 83 % where it is
high; or less and less along it, from 99 to 75 % between its 5 and 95 % quantiles. Over all rows
they are right. For a year, labels come with a probability that depends on inputs, and the watch
looks at each day. In broken worlds coverage falls to 85 % on day 60. Sums weighted by strata are
divided by their worth, or by the greatest weight; true weights, one over that probability, by the
greatest.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from benchmarks.intervals import write
from benchmarks.watch import BOUNDS, BROKEN, DAYS, PAGE, found, markdown, share
from scipy import optimize, special

from howsure.core.rng import child
from howsure.stats.ecdf import legendre
from howsure.stats.evidence import evidence
from howsure.watch.selected import Strata, missing_by_stratum, weighted

MARKS = (
    "<!-- watch selected: made by benchmarks/watch_selected.py -->",
    "<!-- end of watch selected -->",
)
START = 60
VARIANCES = np.array([each.variance for each in BOUNDS])
NAMES = ("x0", "x1", "x2")
NODES, SHARES = np.polynomial.hermite_e.hermegauss(40)
GRID = np.linspace(-12.0, 12.0, 24_001)
LOW, HIGH = (special.ndtri(0.95) / special.ndtri(0.5 + c / 2.0) for c in (0.97, 0.83))
Chance = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Of a label, by inputs and by day."""


@dataclass(frozen=True)
class Model:
    """How large errors are by the first input, and what is stated: their law over all rows."""

    name: str
    scale: Callable[[np.ndarray], np.ndarray]
    nodes: np.ndarray  # its scales over all rows
    shares: np.ndarray

    @cached_property
    def stated(self) -> np.ndarray:
        """The distribution function on the grid."""
        return self.shares @ special.ndtr(GRID / self.nodes[:, None])

    def end(self, coverage: float) -> float:
        """Half the width of an interval."""

        def over(z: float) -> float:
            return float(self.shares @ special.ndtr(z / self.nodes)) - 0.5 - coverage / 2.0

        return float(optimize.brentq(over, 0.0, 20.0))

    def values(self, x: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """What is watched of each row."""
        z = errors * self.scale(x[:, 0])
        covered = np.abs(z) <= self.end(0.9)
        return np.vstack([covered - 0.9, legendre(np.interp(z, GRID, self.stated))])


HALVES = Model(
    "halves",
    lambda x: np.where(x <= 0.0, LOW, HIGH),
    np.array([LOW, HIGH]),
    np.array([0.5, 0.5]),
)
SLOPE = Model("slope", lambda x: np.exp(x / 4.0), np.exp(NODES / 4.0), SHARES / SHARES.sum())


def by_half(low: float, high: float) -> Chance:
    """The chance of a label where the first input is low, and where it is high."""
    return lambda x, day: np.where(x[:, 0] <= 0.0, low, high)


LABELS: dict[str, Chance] = {
    "all": by_half(1.0, 1.0),
    "60 % of all": by_half(0.6, 0.6),
    "90 and 30 % of halves": by_half(0.9, 0.3),
    "95 and 5 % of halves": by_half(0.95, 0.05),
    "90 and 0 % of halves": by_half(0.9, 0.0),
    "logistic in 3 inputs": lambda x, day: np.maximum(
        special.expit(0.5 - x @ [1.0, 0.7, 0.5]), 0.02
    ),
    "all, in 90 days 10 % of one half": lambda x, day: np.where(
        (x[:, 0] > 0.0) & (day // 90 == 1), 0.1, 1.0
    ),
}
MIXED = np.array([[1.0, 0.5], [0.5, -1.0], [0.3, 0.3]])
"""Of three inputs, two numbers such as a point and a width, which say part of them."""


@dataclass(frozen=True)
class World:
    """A model, which of its rows have y, and what is known of it."""

    model: Model
    labels: str
    rows: int = 50  # a day
    reference: int = 1_000
    mixed: bool = False  # whether strata see two mixtures of the inputs alone
    broken: bool = False


@dataclass(frozen=True)
class Year:
    """The days of a year, and what is known of its labels at the end."""

    sums: dict[str, np.ndarray]  # shape (5, days), by what is done about missing labels
    counts: dict[str, np.ndarray]
    slack: np.ndarray  # shape (5, days)
    missing: bool  # whether it was shown that labels are missing by stratum
    worth: float  # rows that count as one for coverage
    unseen: float  # share of rows for which the reference stands


def year_of(world: World, run: int) -> Year:
    """One year."""
    model, n = world.model, DAYS * world.rows
    rng = child(0, "selected", model.name, world.labels, world.rows, world.reference, run)
    seen = (lambda x: x @ MIXED) if world.mixed else (lambda x: x)
    x = rng.normal(size=(world.reference, 3))
    strata = Strata.grown(seen(x), NAMES, model.values(x, rng.normal(size=len(x))), VARIANCES)
    x, errors, day = rng.normal(size=(n, 3)), rng.normal(size=n), np.arange(n) // world.rows
    if world.broken:
        errors = np.where(day >= START, errors * model.end(0.9) / model.end(0.85), errors)
    chance = LABELS[world.labels](x, day)
    values, known = model.values(x, errors), (rng.random(n) < chance).astype(float)
    cells, shape = strata.at(seen(x)) * DAYS + day, (len(strata.rows), DAYS)
    rows, labelled, *parts = (
        np.bincount(cells, each, math.prod(shape)).reshape(shape)
        for each in (np.ones(n), known, *(known * values))
    )
    done = weighted(np.array(parts)[:, None], labelled[None], rows[None], np.arange(DAYS), strata)
    proven = done.worth[:, 0] / done.greatest[0]
    sums = {
        "unweighted": np.sum(parts, axis=1),
        "strata": done.sums[:, 0],
        "strata by greatest weight": done.sums[:, 0] * proven,
    }
    counts = {
        "unweighted": labelled.sum(axis=0),
        "strata": done.counts[:, 0],
        "strata by greatest weight": done.counts[:, 0] * proven,
    }
    if chance.min() > 0:
        weights = known * chance.min() / chance
        total, *parts = (np.bincount(day, weights * each, DAYS) for each in (np.ones(n), *values))
        sums["true weights"], counts["true weights"] = np.array(parts), total
    counts = {way: np.broadcast_to(each, sums[way].shape) for way, each in counts.items()}
    shown = missing_by_stratum(labelled, rows).max() >= BROKEN
    worth, unseen = float(done.worth[0, 0, -1]), float(done.unseen[0, -1])
    return Year(sums, counts, done.slack[:, 0], bool(shown), worth, unseen)


def alarms(years: list[Year], way: str) -> np.ndarray:
    """The first day of each year on which all quantities together break the promise; −1: none."""
    if way not in years[0].sums:
        return np.empty(0)
    logs = [
        evidence(
            np.array([each.sums[way][k] for each in years]),
            np.array([each.counts[way][k] for each in years]),
            bounds,
            slack=np.array([each.slack[k] for each in years]) * way.startswith("strata"),
        )
        for k, bounds in enumerate(BOUNDS)
    ]
    broken = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)) >= BROKEN
    return np.where(broken.any(axis=1), broken.argmax(axis=1), -1)


def worlds() -> Iterator[World]:
    """All of them, kept."""
    for rows, reference in ((50, 1_000), (50, 5_000), (500, 1_000), (500, 5_000)):
        for labels in LABELS:
            yield World(HALVES, labels, rows, reference)
    for labels in ("90 and 30 % of halves", "95 and 5 % of halves"):
        yield World(HALVES, labels, 5)
    for rows, reference in ((50, 1_000), (500, 5_000)):
        for labels in ("90 and 30 % of halves", "logistic in 3 inputs"):
            yield World(SLOPE, labels, rows, reference)
            yield World(SLOPE, labels, rows, reference, mixed=True)


WAYS = ("unweighted", "strata", "strata by greatest weight", "true weights")


def main() -> None:
    """Run the worlds, and print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--all", action="store_true", help="print more rows and columns")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    told = [f"{what}, {way}" for what in ("false, %", "found, % (days)") for way in WAYS]
    heads = ["model", "labels", "rows per day", "reference", *told]
    heads += ["missing by x shown, %", "rows that count as one", "the reference stands for, %"]
    every, few = [], []
    for world in worlds() if given.all else (World(HALVES, labels) for labels in LABELS):
        kept = [year_of(world, run) for run in range(given.runs)]
        broken = [year_of(replace(world, broken=True), run) for run in range(given.runs // 2)]
        unseen = f"{100.0 * np.mean([each.unseen for each in kept]):.0f}"
        false = [false_alarms(kept, way) for way in WAYS]
        seen = [found(alarms(broken, way), START) for way in WAYS]
        few.append([world.labels, false[0][0], *false[1], *seen[1], unseen])
        name = world.model.name + (", strata see part" if world.mixed else "")
        cells = [name, world.labels, f"{world.rows}", f"{world.reference:,}"]
        cells += [f"{here} ({ends})" for here, ends in false]
        cells += [f"{here} ({median})" for here, median in seen]
        cells.append(f"{100.0 * np.mean([each.missing for each in kept]):.0f}")
        cells.append(f"{np.mean([each.worth for each in kept]):.2f}")
        every.append([*cells, unseen])
    if given.all:
        print(markdown(heads, every), end="\n\n")
    text = markdown(FEW, few[: len(LABELS)])
    print(text)
    if given.write:
        write(f"{text}\n", MARKS, PAGE)


FEW = (
    "rows with y",
    "reported as broken unweighted, %",
    "reported as broken weighted, %",
    "95 % interval",
    "fall to 85 % found, %",
    "median delay, days",
    "reference stands for, %",
)


def false_alarms(years: list[Year], way: str) -> tuple[str, str]:
    """Years in which a promise that is kept was told broken, in %, and their 95 % interval."""
    days = alarms(years, way)
    return share(int((days >= 0).sum()), len(years)) if len(days) else ("–", "–")


if __name__ == "__main__":
    main()
