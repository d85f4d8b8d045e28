"""What a running correction gains and costs, beside no correction and other ways to adapt.

Run ``python benchmarks/watch_running.py`` (some minutes): it prints Markdown tables. Rows come day
by day, 50 a day unless said otherwise, and labels so many days late. Intervals are right for a
reference of 2,000 rows; what changes is the spread of the errors. Scores are those of days 100 to
365; the correction runs from day 0.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy import signal, special, stats

from howsure.core.rng import child
from howsure.metrics.scores import pinball
from howsure.stats.evidence import evidence
from howsure.watch.quantities import coverage_bounds
from howsure.watch.running import LEVEL, Running, shadow

DAYS, CHANGE, LATE, LEVEL_OF_INTERVALS = 365, 100, (0, 1, 7, 30), 0.9
ALPHA = 1.0 - LEVEL_OF_INTERVALS


@dataclass(frozen=True)
class Spreads:
    """How the spread of errors goes, as a multiple of what is promised."""

    name: str
    step: float = 1.0  # from day 100 on
    drift: float = 1.0  # reached at the end of the year
    season: float = 0.0  # amplitude in logs, of 60 days
    volatility: float = 0.0  # sd of logs, AR(.8) from day to day
    freedom: float = 0.0  # of Student's t; 0: normal

    def ratios(self, rng: np.random.Generator, days: int, rows: int) -> np.ndarray:
        """Shape (days, rows)."""
        day = np.arange(days)
        log = np.where(day >= CHANGE, math.log(self.step), 0.0) + math.log(self.drift) * day / DAYS
        log = log + self.season * np.sin(2.0 * np.pi * day / 60)
        noise = rng.normal(size=days + 100)
        log = log + self.volatility * 0.6 * signal.lfilter([1.0], [1.0, -0.8], noise)[100:]
        return self.right(rng, (days, rows)) * np.exp(log)[:, None]

    def right(self, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        """Of a right model."""
        if self.freedom:
            return np.abs(rng.standard_t(self.freedom, shape)) / stats.t.ppf(0.95, self.freedom)
        return np.abs(rng.normal(size=shape)) / special.ndtri(0.95)


SPREADS = (
    Spreads("right"),
    Spreads("right, heavy tails (t, 3 df)", freedom=3.0),
    Spreads("step to 1.3", step=1.3),
    Spreads("step to 1.3, heavy tails", step=1.3, freedom=3.0),
    Spreads("step to 2", step=2.0),
    Spreads("step to .7", step=0.7),
    Spreads("drift to 1.6 in a year", drift=1.6),
    Spreads("season of 60 days, ± 35 %", season=0.3),
    Spreads("AR(.8) volatility, sd .3", volatility=0.3),
)


def running(ratios: np.ndarray, reference: np.ndarray, late: int) -> np.ndarray:
    """The factor of each day."""
    days, rows = ratios.shape
    begun = Running.begin(reference, LEVEL_OF_INTERVALS, late=late)
    return begun.after(ratios.ravel(), np.repeat(np.arange(days), rows))[1][::rows]


def once(ratios: np.ndarray, reference: np.ndarray, late: int) -> np.ndarray:
    """Recalibrated on the first 100 rows from day 100 on, as soon as their labels are there."""
    days, rows = ratios.shape
    first = np.sort(ratios[CHANGE:].ravel()[:100])
    factors = np.ones(days)
    factors[CHANGE + math.ceil(100 / rows) + late :] = first[math.ceil(101 * 0.9) - 1]
    return factors


def delayed(after: np.ndarray, late: int) -> np.ndarray:
    """The factor of each day from those known after each day."""
    return np.concatenate([np.ones(late + 1), after])[: len(after)]


def adaptive(speed: float, ratios: np.ndarray, reference: np.ndarray, late: int) -> np.ndarray:
    """Adaptive conformal inference: I. Gibbs and E. Candès, NeurIPS 2021; a step a row."""
    ordered, alphas, factors = np.sort(reference), np.full(len(ratios) + 1, ALPHA), []
    for day in range(len(ratios)):
        known = day - late - 1
        if known >= 0:
            misses = (ratios[known] > factors[known]).sum()
            alphas[day] = alphas[day - 1] + speed * (ALPHA * ratios.shape[1] - misses)
        factors.append(_quantile(ordered, alphas[day]))
    return np.array(factors)


def _quantile(ordered: np.ndarray, alpha: float) -> float:
    """Of the reference; its largest ratio in place of an infinite one."""
    rank = math.ceil((1.0 - alpha) * (len(ordered) + 1)) - 1
    return float(ordered[min(max(rank, 0), len(ordered) - 1)])


def mixed_adaptive(ratios: np.ndarray, reference: np.ndarray, late: int) -> np.ndarray:
    """DtACI: I. Gibbs and E. Candès, Journal of Machine Learning Research 25 (2024)."""
    speeds, span = np.array([0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128]), 500
    fine = (1.0 - ALPHA) ** 2 * ALPHA**3 + ALPHA**2 * (1.0 - ALPHA) ** 3
    rate = math.sqrt(3.0 / span * (math.log(span * len(speeds)) + 2.0) / fine)
    ordered, shares, alphas = np.sort(reference), np.full(8, 0.125), np.full(8, ALPHA)
    after = []
    for row in ratios:
        beta = 1.0 - np.searchsorted(ordered, row) / (len(ordered) + 1.0)
        loss = pinball(beta[:, None], alphas, ALPHA).sum(axis=0)
        shares = shares * np.exp(-rate * (loss - loss.min()))
        shares = (1.0 - 1.0 / (2 * span)) * shares / shares.sum() + 1.0 / (16 * span)
        alphas = alphas + speeds * (ALPHA - (alphas > beta[:, None])).sum(axis=0)
        after.append(_quantile(ordered, float(shares @ alphas)))
    return delayed(np.array(after), late)


def trackers(ratios: np.ndarray, reference: np.ndarray, late: int) -> np.ndarray:
    """Four quantile trackers with a step a row, mixed by their losses, unclamped."""
    scale, speeds = float(np.median(reference)), np.array([0.01, 0.03, 0.1, 0.3])
    logs, shares, after = np.zeros(4), np.full(4, 0.25), []
    for row in ratios:
        for ratio in row.tolist():
            tracks = np.exp(logs)
            shares = shares * np.exp(-pinball(np.full(4, ratio), tracks, 0.9) / scale)
            shares = 0.995 * shares / shares.sum() + 0.005 / 4.0
            logs = logs + speeds * ((ratio > tracks) - ALPHA)
        after.append(math.exp(float(shares @ logs)))
    return delayed(np.array(after), late)


METHODS = {
    "running": running,
    "recalibrated once": once,
    "trackers, step a row": trackers,
    "ACI .01": lambda *given: adaptive(0.01, *given),
    "ACI .05": lambda *given: adaptive(0.05, *given),
    "DtACI": mixed_adaptive,
}


def score(ratios: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Interval score of each row, by the unchanged width."""
    q = factors[:, None]
    return q + np.maximum(ratios - q, 0.0) / ALPHA


def drawn(spread: Spreads, runs: int, rows: int = 50) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Ratios of a year and of a reference."""
    for run in range(runs):
        rng = child(0, "running", spread.name, rows, run)
        reference = spread.right(rng, (1, 2_000))[0]
        yield spread.ratios(rng, DAYS, rows), reference


def compared(spread: Spreads, late: int, runs: int) -> list[str]:
    """Score relative to none, coverage, farthest factor: a cell for each method."""
    cells = []
    years = list(drawn(spread, runs))
    plain = sum(score(r, np.ones(DAYS))[CHANGE:].sum() for r, _ in years)
    missed = np.mean([(r[CHANGE:] <= 1.0).mean() for r, _ in years])
    for method in METHODS.values():
        total, covered, far = 0.0, [], 1.0
        for ratios, reference in years:
            factors = method(ratios, reference, late)
            total += score(ratios, factors)[CHANGE:].sum()
            covered.append((ratios <= factors[:, None])[CHANGE:].mean())
            most = float(np.maximum(factors, 1.0 / np.maximum(factors, 1e-9)).max())
            far = max(far, most)
        cells.append(f"{100 * (total / plain - 1):+.1f}, {100 * np.mean(covered):.1f}, {far:.1f}")
    return [f"{100 * missed:.1f}", *cells]


def alarmed(ratios: np.ndarray, late: int) -> int:
    """The day on which a watch over coverage gives alarm; 0 where it does not."""
    sums = (ratios <= 1.0).sum(axis=1) - LEVEL_OF_INTERVALS * ratios.shape[1]
    counts = np.full(len(ratios), float(ratios.shape[1]))
    logs = evidence(sums, counts, coverage_bounds(LEVEL_OF_INTERVALS, 0.01))
    broken = np.flatnonzero(logs >= math.log(20.0))
    day = int(broken[0]) + 1 + late if len(broken) else DAYS
    return day if day < DAYS else 0


@dataclass
class Offers:
    """What daily looks at a shadow came to."""

    corrected: float = 0.0  # sums of scores
    none: float = 0.0
    runs: int = 0
    alarms: int = 0
    made: int = 0
    delays: list[int] = field(default_factory=list)  # days from the start of the shadow
    worse: int = 0  # offers after which it scored worse than none up to the end of the year


def offered(spread: Spreads, late: int, runs: int) -> Offers:
    """The shadow begins with the watch, or where the watch tells of it with its alarm."""
    told = Offers(runs=runs)
    for ratios, reference in drawn(spread, runs):
        factors = running(ratios, reference, late)
        since, rows = alarmed(ratios, late), ratios.size
        days = np.repeat(np.arange(DAYS), ratios.shape[1])
        each = np.repeat(factors, ratios.shape[1])
        whole = shadow(ratios.ravel(), np.ones(rows), each, LEVEL_OF_INTERVALS, days)
        none, corrected = whole.sums[since:, 2], whole.sums[since:, 3]
        told.alarms += since > 0
        told.corrected, told.none = told.corrected + corrected.sum(), told.none + none.sum()
        for place in np.flatnonzero(whole.log_capital(since) >= -math.log(LEVEL)).tolist():
            if whole.until(since + place).gain(since).offered:
                told.made += 1
                told.delays.append(place + 1)
                told.worse += bool(corrected[place + 1 :].sum() > none[place + 1 :].sum())
                break
    return told


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--table", choices=("all", "methods", "rows", "offers"), default="all")
    given = parser.parse_args()
    if given.table in ("all", "methods"):
        print("Each cell: interval score beside none in %, coverage in %, farthest factor.\n")
        print(f"| spread | days late | covered by none | {' | '.join(METHODS)} |")
        print("|---" * (len(METHODS) + 3) + "|")
        for spread in SPREADS:
            for late in LATE:
                cells = compared(spread, late, given.runs)
                print(f"| {spread.name} | {late} | {' | '.join(cells)} |", flush=True)
    if given.table in ("all", "rows"):
        print("\n| rows a day | spread | score beside none, % | covered, % | seconds a day |")
        print("|---|---|---|---|---|")
        for rows in (1, 10, 50, 1_000, 10_000):
            for spread in (SPREADS[0], SPREADS[2], SPREADS[8]):
                total = plain = covered = 0.0
                runs = max(given.runs // (1 + rows // 500), 2)
                start = time.perf_counter()
                for ratios, reference in drawn(spread, runs, rows):
                    factors = running(ratios, reference, 0)
                    total += score(ratios, factors)[CHANGE:].sum()
                    plain += score(ratios, np.ones(DAYS))[CHANGE:].sum()
                    covered += (ratios <= factors[:, None])[CHANGE:].mean() / runs
                spent = (time.perf_counter() - start) / runs / DAYS
                told = f"{100 * (total / plain - 1):+.2f} | {100 * covered:.1f} | {spent:.4f}"
                print(f"| {rows:,} | {spread.name} | {told} |", flush=True)
    if given.table in ("all", "offers"):
        print("\n| spread | days late | alarms, % | score beside none, % | offered, % | ", end="")
        print("median days until | harmful, % |\n|---|---|---|---|---|---|---|")
        for spread in SPREADS:
            for late in LATE:
                seen = offered(spread, late, given.runs)
                days = f"{np.median(seen.delays):.0f}" if seen.delays else "–"
                shares = (seen.alarms, seen.made, seen.worse)
                alarms, made, worse = (100 * count / seen.runs for count in shares)
                gain = 100.0 * (seen.corrected / seen.none - 1.0)
                told = f"{alarms:.0f} | {gain:+.2f} | {made:.0f} | {days} | {worse:.0f}"
                print(f"| {spread.name} | {late} | {told} |", flush=True)


if __name__ == "__main__":
    main()
