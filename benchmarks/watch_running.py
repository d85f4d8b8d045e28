"""What a running correction gains and costs, beside no correction and other ways to adapt.

Run ``python -m benchmarks.watch_running`` (some minutes). With ``--write`` the tables replace what
``docs/watch.md`` has between its markers; with ``--all`` it prints more methods, delays of labels
and rows a day, too. Rows come day by day, 50 a day unless said otherwise, and labels so many days
late. Intervals are right for a reference of 2,000 rows; what changes is the spread of the errors.
Scores are those of days 100 to 365; the correction runs from day 0.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from benchmarks.intervals import write
from benchmarks.watch import BROKEN, DAYS, PAGE, markdown
from scipy import signal, special, stats

from howsure.core.rng import child
from howsure.stats.evidence import evidence
from howsure.topics.scores import pinball
from howsure.watch.quantities import coverage_bounds
from howsure.watch.running import LEVEL, Running, Shadow, shadow

MARKS = (
    "<!-- watch running: made by benchmarks/watch_running.py -->",
    "<!-- end of watch running -->",
)
CHANGE, LATE, LEVEL_OF_INTERVALS = 100, (0, 1, 7, 30), 0.9
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
    "trackers, step per row": trackers,
    "ACI .001": lambda *given: adaptive(0.001, *given),
    "ACI .01": lambda *given: adaptive(0.01, *given),
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


@dataclass(frozen=True)
class Gain:
    """What a method came to from day 100 on."""

    score: float  # beside none, in %
    covered: float  # in %
    farthest: float  # factor, or one over it


def compared(spread: Spreads, late: int, runs: int, names: Sequence[str]) -> dict[str, Gain]:
    """Of some methods, by name; that of the empty name is none."""
    made = {}
    years = list(drawn(spread, runs))
    plain = sum(score(r, np.ones(DAYS))[CHANGE:].sum() for r, _ in years)
    for name in names:
        total, covered, far = 0.0, [], 1.0
        for ratios, reference in years:
            factors = METHODS[name](ratios, reference, late) if name else np.ones(DAYS)
            total += score(ratios, factors)[CHANGE:].sum()
            covered.append((ratios <= factors[:, None])[CHANGE:].mean())
            most = float(np.maximum(factors, 1.0 / np.maximum(factors, 1e-9)).max())
            far = max(far, most)
        made[name] = Gain(100.0 * (total / plain - 1.0), 100.0 * float(np.mean(covered)), far)
    return made


def alarmed(ratios: np.ndarray, late: int) -> int:
    """The day on which a watch over coverage gives alarm; 0 where it does not."""
    sums = (ratios <= 1.0).sum(axis=1) - LEVEL_OF_INTERVALS * ratios.shape[1]
    counts = np.full(len(ratios), float(ratios.shape[1]))
    logs = evidence(sums, counts, coverage_bounds(LEVEL_OF_INTERVALS, 0.01))
    broken = np.flatnonzero(logs >= BROKEN)
    day = int(broken[0]) + 1 + late if len(broken) else DAYS
    return day if day < DAYS else 0


def part(whole: Shadow, days: slice) -> Shadow:
    """Some of the days of a shadow, which holds all from 0 on."""
    return replace(whole, days=whole.days[days], sums=whole.sums[days], risks=whole.risks[days])


def offered(spread: Spreads, late: int, runs: int) -> tuple[list[int], int]:
    """Days of the shadow until an offer, of each year with one; how many it made worse than none.

    The shadow begins with the watch, or where the watch tells of it with its alarm. Worse is the
    score of the days from the offer to the end of the year.
    """
    delays, worse = [], 0
    for ratios, reference in drawn(spread, runs):
        factors = running(ratios, reference, late)
        since, rows = alarmed(ratios, late), ratios.size
        days = np.repeat(np.arange(DAYS), ratios.shape[1])
        each = np.repeat(factors, ratios.shape[1])
        whole = shadow(ratios.ravel(), np.ones(rows), each, LEVEL_OF_INTERVALS, days)
        none, corrected = whole.sums[since:, 2:4].T
        capital = part(whole, slice(since, None)).log_capital()
        for place in np.flatnonzero(capital >= -math.log(LEVEL)).tolist():
            if part(whole, slice(since, since + place + 1)).gain().offered:
                delays.append(place + 1)
                worse += bool(corrected[place + 1 :].sum() > none[place + 1 :].sum())
                break
    return delays, worse


SHOWN, LATENESS = ("running", "recalibrated once", "ACI .001", "DtACI"), (1, 30)
"""Methods, and days that labels come late, of which the page tells."""


def beside_others(late: int, runs: int) -> str:
    """A table of the methods that the page shows."""
    rows = []
    for spread in SPREADS:
        made = compared(spread, late, runs, ("", *SHOWN))
        covered = (f"{made[name].covered:.1f}" for name in ("", "running"))
        scores = (f"{made[name].score:+.1f}".replace("-", "−") for name in SHOWN)
        rows.append([spread.name, *covered, *scores])
    heads = ["spread of errors", "unchanged covers, %", "running covers, %"]
    heads += [f"score, {name}, %" for name in SHOWN]
    return f"Labels {in_days(late)} late:\n\n{markdown(heads, rows)}"


def in_days(count: int) -> str:
    """In words."""
    return f"{count} day{'s' * (count != 1)}"


def of_offers(lateness: Sequence[int], runs: int) -> str:
    """A table of what was offered, at each number of days that labels come late."""
    rows = []
    for spread in SPREADS:
        row = [spread.name]
        for late in lateness:
            delays, worse = offered(spread, late, runs)
            days = f"{np.median(delays):.0f}" if delays else "–"
            row += [f"{100 * len(delays) / runs:.0f}", days, f"{100 * worse / runs:.0f}"]
        rows.append(row)
    heads = [(f"{in_days(late)} late: offered, %", "after days", "harmful, %") for late in lateness]
    return markdown(["spread of errors", *itertools.chain(*heads)], rows)


def of_methods(runs: int) -> str:
    """A table of all methods, at all delays of labels."""
    rows = []
    for spread, late in itertools.product(SPREADS, LATE):
        made = compared(spread, late, runs, ("", *METHODS))
        cells = [f"{g.score:+.1f}, {g.covered:.1f}, {g.farthest:.1f}" for g in made.values()]
        rows.append([spread.name, f"{late}", *cells])
    return markdown(["score, coverage, farthest factor", "days late", "none", *METHODS], rows)


def by_rows(runs: int) -> str:
    """A table of the running correction, by rows a day."""
    table = []
    for rows, place in itertools.product((1, 10, 50, 1_000, 10_000), (0, 2, 8)):
        total = plain = covered = 0.0
        few = max(runs // (1 + rows // 500), 2)
        start = time.perf_counter()
        for ratios, reference in drawn(SPREADS[place], few, rows):
            factors = running(ratios, reference, 0)
            total += score(ratios, factors)[CHANGE:].sum()
            plain += score(ratios, np.ones(DAYS))[CHANGE:].sum()
            covered += (ratios <= factors[:, None])[CHANGE:].mean() / few
        spent = (time.perf_counter() - start) / few / DAYS
        told = f"{100 * (total / plain - 1):+.2f}", f"{100 * covered:.1f}", f"{spent:.4f}"
        table.append([f"{rows:,}", SPREADS[place].name, *told])
    heads = ["rows per day", "spread", "score against none, %", "covered, %", "seconds per day"]
    return markdown(heads, table)


def main() -> None:
    """Print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--all", action="store_true", help="print more tables")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.all:
        for told in (of_methods(given.runs), by_rows(given.runs), of_offers(LATE, given.runs)):
            print(told, end="\n\n")
    shown = [
        *(beside_others(late, given.runs) for late in LATENESS),
        of_offers(LATENESS, given.runs),
    ]
    text = "\n\n".join(shown)
    print(text)
    if given.write:
        write(f"{text}\n", MARKS, PAGE)


if __name__ == "__main__":
    main()
