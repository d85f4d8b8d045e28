"""How well coverage, score and width are foretold for rows without labels, where inputs move.

Run ``python -m benchmarks.watch_expected`` (a quarter of an hour). With ``--write`` the tables
replace what ``docs/watch.md`` has between its markers. y is normal about its prediction, with
errors that are too large or too small as the inputs have it; with three inputs or more two of them
act together. New inputs move by up to one standard deviation, or spread 1.5 times as wide. The
truth is what is expected of these very rows, given their inputs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from benchmarks.intervals import write
from benchmarks.watch import PAGE, markdown
from scipy import optimize, special

from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet
from howsure.topics.crps_closed import crps_normal
from howsure.watch.expected import Background, Expected

MARKS = (
    "<!-- watch expected: made by benchmarks/watch_expected.py -->",
    "<!-- end of watch expected -->",
)
Z = float(special.ndtri(0.95))
COVERAGE = 0.9


@dataclass(frozen=True)
class Change:
    """Where new inputs lie, in standard deviations of the reference's."""

    name: str
    shift: float = 0.0
    spread: float = 1.0


CHANGES = (
    Change("none"),
    Change("mean by .5 sd", shift=0.5),
    Change("mean by 1 sd", shift=1.0),
    Change("spread × 1.5", spread=1.5),
)
FAR = Change("mean by 4 sd", shift=4.0)
REFERENCES, INPUTS, NEW = (500, 2_000, 10_000), (1, 3, 10, 0), (20, 100, 500)
"""Rows of the reference; inputs, 0 for point and width alone; and new rows."""


@dataclass(frozen=True)
class Rows:
    """Rows whose errors are so many times as large as stated."""

    evalset: EvalSet
    stated: np.ndarray
    ratio: np.ndarray

    def coverage(self, rows: np.ndarray, factor: float = 1.0) -> float:
        """Expected of some rows, with half-widths times a factor."""
        return float(np.mean(2.0 * special.ndtr(factor * Z / self.ratio[rows]) - 1.0))

    def crps(self, rows: np.ndarray) -> float:
        """Expected of some rows."""
        of_y = math.sqrt(2.0 / math.pi) * np.sqrt(1.0 + np.square(self.ratio[rows]))
        return float(np.mean(self.stated[rows] * (of_y - 1.0 / math.sqrt(math.pi))))

    def factor(self, rows: np.ndarray) -> float:
        """Under which the nominal coverage is expected."""
        return float(optimize.brentq(lambda k: self.coverage(rows, k) - COVERAGE, 0.01, 100.0))


def draw(rng: np.random.Generator, n: int, inputs: int, change: Change) -> Rows:
    """Rows of a world."""
    d = max(inputs, 3)
    x = rng.normal(size=(n, d))
    x[:, 0] = x[:, 0] * change.spread + change.shift
    if inputs != 1:
        x[:, 1] = x[:, 1] * change.spread + change.shift / 2.0
    log = 0.25 * x[:, 0]
    if inputs > 1:
        log = log + 0.15 * np.sin(1.5 * x[:, 1]) + 0.1 * x[:, 0] * x[:, 2]
    point, stated = np.zeros(n), np.ones(n)
    if not inputs:  # the model's own point and width tell where it errs
        point, stated = x[:, 0], np.exp(0.4 * x[:, 1])
        log = log + 0.15 * np.sin(1.5 * x[:, 1])
    ratio = np.exp(np.clip(log, -1.2, 1.2))
    y = point + stated * ratio * rng.normal(size=n)
    features = {f"x{place}": x[:, place] for place in range(inputs)}
    evalset = EvalSet.checked(y, Distribution.normal(point, stated), features=features)
    return Rows(evalset, stated, ratio)


@dataclass(frozen=True)
class Seen:
    """One reference and one batch of new rows."""

    reference: int
    inputs: int
    change: str
    new: int
    inside: float
    refused: bool
    unchanged: tuple[float, ...] = (math.nan,) * 3  # error of the reference's own, of each number
    error: tuple[float, ...] = (math.nan,) * 3
    held: tuple[float, ...] = (math.nan,) * 3
    width: float = math.nan
    seen_held: tuple[float, ...] = (math.nan,) * 2
    bounds_held: float = math.nan


def judged(reference: int, inputs: int, change: Change, rows: Rows, told: Expected) -> Seen:
    """What is expected beside what is true."""
    n = rows.evalset.n
    made = (reference, inputs, change.name, n, told.inside, bool(told.reason))
    if told.reason:
        return Seen(*made)
    where, every = told.rows_inside, np.ones(n, dtype=bool)
    truths = rows.coverage(where), rows.crps(where), rows.factor(where)
    found = told.coverage, told.score, told.factor
    within = np.abs(rows.evalset.y - rows.evalset.predictions[0].point()) <= Z * rows.stated
    scores = crps_normal(rows.evalset.y, rows.evalset.predictions[0].point(), rows.stated)
    seen = float(np.mean(within[where])), float(np.mean(scores[where]))
    return Seen(
        *made,
        unchanged=tuple(abs(f.unchanged - t) for f, t in zip(found, truths, strict=True)),
        error=tuple(abs(f.value - t) for f, t in zip(found, truths, strict=True)),
        held=tuple(float(f.lower <= t <= f.upper) for f, t in zip(found, truths, strict=True)),
        width=told.coverage.upper - told.coverage.lower,
        seen_held=tuple(
            float(f.seen_lower - 1e-9 <= s <= f.seen_upper + 1e-9)
            for f, s in zip(found[:2], seen, strict=True)
        ),
        bounds_held=float(told.coverage.least <= rows.coverage(every) <= told.coverage.most),
    )


def simulated(runs: int) -> list[Seen]:
    """All worlds; those with one reference share its draws."""
    made: list[Seen] = []
    for reference in REFERENCES:
        for inputs in INPUTS:
            for run in range(runs):
                rng = child(0, "expected", reference, inputs, run)
                known = Background.of(draw(rng, reference, inputs, CHANGES[0]).evalset, COVERAGE)
                for change in (*CHANGES, FAR):
                    for new in NEW:
                        rows = draw(rng, new, inputs, change)
                        told = known.expected(rows.evalset)
                        made.append(judged(reference, inputs, change, rows, told))
            print(reference, inputs, file=sys.stderr, flush=True)
    return made


Key = Callable[[Seen], tuple[str, ...]]
ERRORS = ("error if unchanged, points", "error as expected, points")
HELD = ("contains coverage, %", "contains CRPS, %", "contains factor, %")
MORE = ("contains coverage seen, %", "contains CRPS seen, %", "refused, %")


def table(seen: Iterable[Seen], key: Key, heads: tuple[str, ...], whole: bool) -> str:
    """Means over all that share a key; with the ranges for y to come, and what was refused."""
    cells: dict[tuple[str, ...], list[Seen]] = {}
    for each in seen:
        cells.setdefault(key(each), []).append(each)
    rows = []
    for name, every in cells.items():
        known = [each for each in every if not each.refused]
        unchanged, error = (
            f"{100.0 * np.mean([getattr(each, of)[0] for each in known]):.1f}" if known else "–"
            for of in ("unchanged", "error")
        )
        refused = f"{100.0 * (1.0 - len(known) / len(every)):.0f}"
        row = [*name, unchanged, error, *held(known, "held", 3)]
        rows.append([*row, *held(known, "seen_held", 2), refused] if whole else row)
    return markdown([*heads, *ERRORS, *HELD, *(MORE if whole else ())], rows)


def held(known: list[Seen], of: str, count: int) -> list[str]:
    """Shares of batches in which intervals contain the truth, in %."""
    if not known:
        return ["–"] * count
    return [f"{100.0 * share:.0f}" for share in np.mean([getattr(e, of) for e in known], axis=0)]


def of_inputs(each: Seen) -> str:
    """How many there are."""
    return f"{each.inputs}" if each.inputs else "point and width"


def main() -> None:
    """Run all worlds, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--all", action="store_true", help="print more rows and columns")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    every = simulated(given.runs)
    seen = [each for each in every if each.change != FAR.name]

    def by_change(each: Seen) -> tuple[str, ...]:
        return each.change, f"{each.new}"

    def by_inputs(each: Seen) -> tuple[str, ...]:
        return f"{each.reference:,}", of_inputs(each)

    of_change, of_reference = ("inputs moved", "new rows"), ("rows of the reference", "inputs")
    if given.all:
        print(table(seen, by_change, of_change, whole=True), end="\n\n")
        print(table(seen, by_inputs, of_reference, whole=True), end="\n\n")
        print(
            table(
                every,
                lambda each: (*by_inputs(each), *by_change(each)),
                (*of_reference, *of_change),
                whole=True,
            ),
            end="\n\n",
        )
    few = [each for each in seen if each.new != NEW[1]]
    some = [each for each in seen if each.inputs != INPUTS[1]]
    far = [each for each in every if each.change == FAR.name]
    told = [each for each in far if not each.refused]
    less, most = (
        f"{100.0 * float(np.mean([each.bounds_held for each in rows] or [1.0])):.1f} %"
        for rows in ([each for each in seen if not each.refused], told)
    )
    beyond = (
        f"Where inputs moved by 4 sd, {100.0 * (1.0 - len(told) / len(far)):.0f} % of "
        f"{len(far):,} batches have no estimate; the range for all rows contains their coverage in "
        f"{most} of the others, and in {less} of the batches of these tables."
    )
    text = "\n\n".join(
        [
            table(few, by_change, of_change, whole=False),
            table(some, by_inputs, of_reference, whole=False),
            beyond,
        ]
    )
    print(text)
    if given.write:
        write(f"{text}\n", MARKS, PAGE)


if __name__ == "__main__":
    main()
