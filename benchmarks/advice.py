"""Whether advice is right, and what comes of following it.

Run ``python -m benchmarks.advice`` (some 40 minutes of one core; ``--tables 10`` for a first look).
With ``--write`` the tables replace what ``docs/verdict.md`` has between its markers; with
``--cells`` the lines of other cells are kept.

A cell is a world with a fault, a kind of prediction, and the mends that are right for it. Advice
is right if it is one of these, or gains at least 90 % of the best candidate's gain on fresh rows.
It is followed: fitted on its table, and applied to 200,000 fresh rows of the same world, and to a
fresh table of as many rows, which is judged and tried in turn. The next advice is the opposite if
it moves the ends of the 90 % intervals most of the way back.
"""

from __future__ import annotations

import argparse
import functools
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from benchmarks import verdict
from benchmarks.intervals import write
from benchmarks.verdict import BOTH, FIVE, PAGE, Rows, Section, World, beyond, half, share, split
from scipy import stats

from howsure.engine.finding import SharedScore
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.recalibration import METHODS, Recalibrator
from howsure.recalibration.base import counts
from howsure.recalibration.info import RecalibrationOptions
from howsure.recalibration.recent import since_rows
from howsure.topics.shared import scored, shared_by_all
from howsure.verdict.advice import Advice, RecalibrationTrial, try_recalibrations

MARKS = ("<!-- advice: made by benchmarks/advice.py -->", "<!-- end of advice -->")
TABLES = 60
FRESH = 200_000
NEAR = 0.9
"""Share of the best gain from which on a mend is as good as the right one."""
AGAIN = 2
"""Of so many tables one is judged again after its advice was followed."""
BACK = -0.5
"""Cosine of two moves of the same ends, below which one undoes the other."""


@dataclass(frozen=True)
class Cell:
    """One world with the mends that are right for it; none for a right model.

    `fresh` is where the mend is to serve, if not in the same world. At 1,000 rows the bar for right
    advice holds for `clear` cells only.
    """

    name: str
    world: World
    right: tuple[str, ...] = ()
    fresh: World | None = None
    clear: bool = False
    many: int = FRESH
    sizes: tuple[int, ...] = (1_000, 5_000)


def told_as(world: World, kind: str, size: int = 20) -> World:
    """The predictions of a world of normal ones, told as another kind."""

    def made(rng: np.random.Generator, n: int) -> EvalSet:
        held = world(rng, n)
        stated = held.predictions[0]
        assert isinstance(stated, Distribution)
        if kind == "samples":
            spread = stated.sd()[:, None] * rng.normal(size=(n, size))
            return replace(held, predictions=(Samples(stated.point()[:, None] + spread),))
        if kind == "quantiles":
            return replace(held, predictions=(Quantiles(FIVE, stated.quantile(FIVE)),))
        return replace(held, predictions=(Intervals(*stated.interval(0.9), coverage=0.9),))

    return made


def in_kinds(name: str, world: World, *right: str, clear: bool = False) -> Iterator[Cell]:
    """A fault in each of four kinds of prediction."""
    yield Cell(f"{name}, normal", world, right, clear=clear)
    for kind in ("samples", "quantiles", "intervals"):
        yield Cell(f"{name}, {kind}", told_as(world, kind), right, clear=clear)


def apart(drawn: Rows) -> np.ndarray:
    """What the mean lacks where an input is large."""
    return np.where(drawn.x[:, 1] > 0.5, -0.7, 0.0)


def wrong_mean(rng: np.random.Generator, n: int) -> EvalSet:
    """Normal predictions whose mean is .7 sd too low in a region."""
    drawn = verdict.rows(rng, n)
    y = drawn.mean + drawn.sd * rng.normal(size=n)
    stated = Distribution.normal(drawn.mean + apart(drawn) * drawn.sd, drawn.sd)
    return verdict.known(drawn, y, stated, ("features",))


def of_site(name: str) -> World:
    """Half the sd in one group."""
    return verdict.normal(
        stated=half(lambda drawn: drawn.groups["site"] == name), beside=("groups",)
    )


def right(name: str, world: World, *sizes: int) -> Cell:
    """A cell of a right model."""
    return Cell(name, world, sizes=sizes or (100, 300, 1_000, 3_000))


SMALL_SITE = of_site("A")
LARGE_SITE = of_site("B")
OVERREACT = verdict.normal(stated=verdict.noisy)
CELLS: tuple[Cell, ...] = (
    right("normal", verdict.normal()),
    right("constant noise, groups and features", verdict.normal(varying=False, beside=BOTH)),
    right("t3", verdict.law(stats.t, 3)),
    right("gamma, groups and features", verdict.law(stats.gamma, 2, beside=BOTH)),
    right("lognormal", verdict.law(stats.lognorm, 0.8)),
    right("Poisson", verdict.counts("law")),
    right("10 members, groups and features", verdict.ensemble(10, beside=BOTH)),
    right("gamma as 5 quantiles", verdict.tabled(FIVE, stats.gamma, 2)),
    right("intervals of a t3", verdict.bare(stats.t, 3)),
    right("weights of importance", verdict.normal(weights="importance")),
    *(
        right(name, verdict.dependent(noise, "normal"), *sizes)
        for name, noise, sizes in (
            ("clusters of 20", verdict.alike(20), (300, 1_000, 3_000)),
            ("clusters of 50", verdict.alike(50), (1_000, 3_000)),
            ("AR(.8) in time", verdict.autoregressive(0.8), (300, 1_000, 3_000)),
            ("volatility that follows itself", verdict.volatile(0.95, 0.7), (1_000, 3_000)),
        )
    ),
    *in_kinds("sd × .8", verdict.normal(scale=0.8), "scale", clear=True),
    *in_kinds("sd × .9", verdict.normal(scale=0.9), "scale"),
    Cell("sd × .7, normal", verdict.normal(scale=0.7), ("scale",)),
    *in_kinds("bias of .2 sd", verdict.normal(shift=0.2), "shift", clear=True),
    Cell("bias of .5 sd, normal", verdict.normal(shift=0.5), ("shift",)),
    Cell("half the sd in a group of 5 %, normal", SMALL_SITE, ("group by site",)),
    *in_kinds("half the sd in a group of 20 %", LARGE_SITE, "group by site"),
    Cell(
        "half the sd where time > .5",
        verdict.normal(stated=half(lambda d: d.x[:, 2] > 0.5), beside=("features",)),
        ("inputs",),
    ),
    Cell("mean wrong in a region", wrong_mean, ("inputs",)),
    Cell("t3, normal prediction", verdict.law(stats.t, 3, stated="normal"), ("shape",)),
    Cell("gamma, normal prediction", verdict.law(stats.gamma, 2, stated="normal"), ("shape",)),
    Cell(
        "constant width under varying noise",
        verdict.normal(stated=lambda d: np.full(len(d.sd), 1.13), beside=("features",)),
        ("inputs",),
    ),
    *in_kinds("widths that overreact", OVERREACT, "widths", clear=True),
    Cell(
        "misses on one side, intervals",
        verdict.bare(stats.norm, tails=(1e-9, 0.9)),
        ("shift_scale", "asymmetric"),
    ),
    Cell("Poisson rate × .8", verdict.counts("law", factor=0.8), ("shape",), many=20_000),
    Cell(
        "twice the errors in the last fifth",
        verdict.over_time(size=lambda t: 1.0 + (t >= 0.8)),
        ("scale, recent rows",),
        fresh=verdict.over_time(size=lambda t: np.full_like(t, 2.0)),
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What came of the advice on one table."""

    advised: str
    right: bool = False
    stated: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    fresh: float = math.nan
    best: str = ""
    following: str = ""
    opposite: bool | None = None
    seconds: float = 0.0


def called(advice: Advice | RecalibrationTrial) -> str:
    """A mend as the tables name it."""
    name = f"{advice.method} by {', '.join(advice.by)}" if advice.by else advice.method
    return f"{name}, recent rows" if advice.since else name


def advised(held: EvalSet, seed: int = 0) -> tuple[Advice | None, tuple[RecalibrationTrial, ...]]:
    """The advice on a table, none where nothing helps, and all that was tried."""
    found = try_recalibrations(held, seed=seed)
    advice = found.advice
    return advice if advice is not None and advice.method else None, found.trials


def followed(advice: Advice | RecalibrationTrial, held: EvalSet) -> Recalibrator:
    """The advised mend, fitted."""
    rows = since_rows(held, advice.since) if advice.since else held
    options = RecalibrationOptions(by=advice.by)
    return METHODS[advice.method].make(held.predictions[0].kind, options).fit(rows)


def levels_of(trials: Sequence[RecalibrationTrial], held: EvalSet) -> tuple[float, ...]:
    """Levels at which trials are scored; none where each mend leaves the kind as it is."""
    for trial in trials:
        if trial.method == "shape" and not trial.reason:
            made = followed(trial, held).apply(held.take(np.arange(2))).predictions[0]
            if isinstance(made, Quantiles) and made.kind != held.predictions[0].kind:
                return tuple(made.levels)
    return ()


def scores(before: EvalSet, after: EvalSet, levels: Sequence[float] = ()) -> tuple[float, float]:
    """Mean scores, of the finest that both have; the pinball loss where levels are given."""
    pair = [evaluate(held, metrics=("crps", "mae")) for held in (before, after)]
    if levels:
        ruler = SharedScore("pinball", levels=tuple(levels))
        rows = [scored(each, ruler) for each in pair]
    else:
        shared = shared_by_all(pair)
        assert shared is not None
        rows = [shared.rows[0], shared.rows[1]]
    old, new = (float(np.average(each, weights=counts(before))) for each in rows)
    return old, new


def gain(before: EvalSet, after: EvalSet, levels: Sequence[float] = ()) -> float:
    """By which share the score falls."""
    old, new = scores(before, after, levels)
    return (old - new) / old


def ends(held: EvalSet) -> np.ndarray:
    """Both ends of the 90 % interval of every row."""
    return np.concatenate(held.predictions[0].interval(0.9))


def undone(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> bool:
    """Whether the move from second to third goes back what came from first to second."""
    there, back = second - first, third - second
    size = float(np.linalg.norm(there) * np.linalg.norm(back))
    return size > 0 and float(there @ back) < BACK * size


@functools.lru_cache(maxsize=1)
def fresh_rows(place: int) -> EvalSet:
    """Rows on which what is learnt from tables of a cell is to serve."""
    cell = CELLS[place]
    return (cell.fresh or cell.world)(np.random.default_rng([place, 10**6]), cell.many)


def follow(
    place: int, held: EvalSet, advice: Advice, trials: Sequence[RecalibrationTrial], seed: int
) -> Outcome:
    """What comes of following advice."""
    cell, fresh = CELLS[place], fresh_rows(place)
    fitted = followed(advice, held)
    levels = levels_of(trials, held)
    found = gain(fresh, fitted.apply(fresh), levels)
    name = called(advice)
    best, most = name, found
    if name not in cell.right:
        for trial in trials:
            if not trial.reason and called(trial) != name:
                other = gain(fresh, followed(trial, held).apply(fresh), levels)
                if other > most:
                    best, most = called(trial), other
    following, opposite = None, None
    if seed % AGAIN == 0:
        before = (cell.fresh or cell.world)(np.random.default_rng([place, held.n, seed, 1]), held.n)
        after = fitted.apply(before)
        following, _ = advised(after, seed)
        opposite = following is not None and undone(
            *map(ends, (before, after, followed(following, after).apply(after)))
        )
    return Outcome(
        name,
        name in cell.right or (found > 0 and found >= NEAR * most),
        advice.gain,
        advice.lower,
        advice.upper,
        found,
        best,
        "" if following is None else called(following),
        opposite,
    )


def table(task: tuple[int, int, int]) -> tuple[int, int, Outcome]:
    """One table: judged, advised, followed."""
    place, n, number = task
    start = time.process_time()
    held = CELLS[place].world(np.random.default_rng([place, n, number]), n)
    advice, trials = advised(held, number)
    if advice is None:
        found = Outcome("")
    elif not CELLS[place].right:
        found = Outcome(called(advice))
    else:
        found = follow(place, held, advice, trials, number)
    return place, n, replace(found, seconds=time.process_time() - start)


def tasks(tables: int, places: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Every table of every cell; fewer of many rows."""
    for place in places:
        for n in CELLS[place].sizes:
            count = tables if n <= 1_000 else max(tables // 3, 5)
            yield from ((place, n, number) for number in range(count))


def which(outcomes: Sequence[Outcome]) -> str:
    """What was advised, and how often."""
    told = Counter(each.advised for each in outcomes if each.advised)
    return ", ".join(f"{name} {count}" for name, count in told.most_common())


def right_line(place: int, n: int, outcomes: Sequence[Outcome]) -> str:
    """Tables of a right model without advice."""
    none = sum(not each.advised for each in outcomes)
    told = which(outcomes)
    head = f"| {CELLS[place].name} | {n:,}"
    return f"{head} | {share(none, len(outcomes))} | {told} | {len(outcomes)} |"


def fault_line(place: int, n: int, outcomes: Sequence[Outcome]) -> str:
    """Advice on tables with a fault, and what came of it."""
    went = [each for each in outcomes if each.advised]
    again = [each.opposite for each in went if each.opposite is not None]
    cells = [CELLS[place].name, f"{n:,}", share(len(went), len(outcomes))]
    cells.append(share(sum(each.right for each in outcomes), len(outcomes)))
    if went:
        stated, fresh = (
            100 * np.median([getattr(each, name) for each in went]) for name in ("stated", "fresh")
        )
        within = sum(each.lower <= each.fresh <= each.upper for each in went)
        cells += [
            share(sum(each.fresh > 0 for each in went), len(went)),
            share(sum(filter(None, again)), len(again)) if again else "–",
            f"{stated:.1f}",
            f"{fresh:.1f}",
            share(within, len(went)),
        ]
    else:
        cells += ["–"] * 5
    return f"| {' | '.join([*cells, which(outcomes), str(len(outcomes)), str(len(again))])} |"


def off(cells: list[str]) -> bool:
    """Whether a line of a fault misses a bar."""
    cell = next(cell for cell in CELLS if cell.name == cells[0])
    n, tables = int(cells[1].replace(",", "")), int(cells[10])
    barred = n >= cell.sizes[-1] or cell.clear
    seldom = barred and float(cells[3]) < 90.0
    if cells[4] == "–":
        return seldom
    again = str(max(int(cells[11]), 1))
    went = str(round(float(cells[2]) / 100 * tables))
    worse = beyond(f"{100 - float(cells[4]):.6f}", 0.05, went)
    back = cells[5] != "–" and beyond(cells[5], 0.02, again)
    return seldom or worse or back


def overall(lines: Sequence[str]) -> str:
    """What came of all advice that was followed, over all lines of faults."""
    better = went = back = again = 0
    for line in lines:
        cells = split(line)
        if cells[4] == "–":
            continue
        count = round(float(cells[2]) / 100 * int(cells[10]))
        went += count
        better += round(float(cells[4]) / 100 * count)
        if cells[5] != "–":
            again += int(cells[11])
            back += round(float(cells[5]) / 100 * int(cells[11]))
    return (
        f"Over all lines: {share(better, max(went, 1))} % of {went:,} tables have a better score, "
        f"and {share(back, max(again, 1))} % of {again:,} get the opposite advice next."
    )


RIGHT = Section(
    "Advice on correctly specified models",
    "The bar is no advice in 97 % of the tables, within three binomial standard errors.",
    "| model | n | none, % | advised | tables |",
    [(cell.name, f"{n:,}") for cell in CELLS if not cell.right for n in cell.sizes],
    lambda cells: beyond(f"{100 - float(cells[2]):.6f}", 0.03, cells[4]),
)
FAULTS = Section(
    "Advice on planted faults, and its effect",
    "Advice is *right* if it corrects that fault, or reaches 90 % of the best candidate's "
    "gain on fresh rows. *Better* counts advice that lowers the score of 200,000 fresh rows. "
    "*Opposite* counts the next advice, on a fresh recalibrated table, if it moves intervals most "
    "of the way back; *again* counts the tables with such a second assessment. Gains are medians, "
    "in percent of the score; *inside* counts fresh gains in the stated interval.\n\n"
    "Bars: right in 90 % at the largest n, and at n = 1,000 for an sd × .8, a bias of .2 sd and "
    "widths that overreact; better in 95 % and opposite in 2 % of the advice followed. The last "
    "two have a margin of three binomial standard errors.",
    "| fault | n | advised, % | right, % | better, % | opposite, % | gain stated | gain, fresh "
    "| inside, % | which | tables | again |",
    [(cell.name, f"{n:,}") for cell in CELLS if cell.right for n in cell.sizes],
    off,
)


def main() -> None:
    """Draw, advise, follow, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cells", nargs="*", default=[], help="parts of names; others are kept")
    parser.add_argument("--rows", type=int, nargs="*", default=[], help="numbers of rows")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    places = [
        place
        for place, cell in enumerate(CELLS)
        if not chosen.cells or any(part in cell.name for part in chosen.cells)
    ]
    wanted = [
        task for task in tasks(chosen.tables, places) if not chosen.rows or task[1] in chosen.rows
    ]
    found: dict[tuple[int, int], list[Outcome]] = {}
    lines: dict[bool, list[str]] = {False: [], True: []}
    with ProcessPoolExecutor(chosen.jobs) as pool:
        drawn = pool.map(table, wanted, chunksize=5)
        for (place, n, _), (_, _, outcome) in zip(wanted, drawn, strict=True):
            told = found.setdefault((place, n), [])
            told.append(outcome)
            if len(told) == sum(task[:2] == (place, n) for task in wanted):
                faulty = bool(CELLS[place].right)
                lines[faulty].append((fault_line if faulty else right_line)(place, n, told))
                seconds = np.mean([each.seconds for each in told])
                missed = Counter(
                    f"{each.advised or 'none'} for {each.best}" for each in told if not each.right
                )
                print(lines[faulty][-1], f"({seconds:.1f} s a table)", flush=True)
                if faulty and missed:
                    print("    not right:", dict(missed), flush=True)
                back = Counter(
                    f"{each.advised}, then {each.following}" for each in told if each.opposite
                )
                if back:
                    print("    opposite:", dict(back), flush=True)
    used = sum(each.seconds for told in found.values() for each in told)
    print(f"{len(wanted):,} tables, {used:,.0f} s of processor time")
    if chosen.write:
        first, last = MARKS
        before = PAGE.read_text(encoding="utf-8").partition(first)[2].partition(last)[0]
        faults = FAULTS.text(lines[True], before)
        known = {cells[0] for cells in FAULTS.known}
        shown = [line for line in faults if line[:1] == "|" and split(line)[0] in known]
        body = [*RIGHT.text(lines[False], before), *faults, overall(shown), ""]
        write("\n".join(body), MARKS)


if __name__ == "__main__":
    main()
