"""How often the 95 % intervals of the measures hold the truth.

Run ``python benchmarks/intervals.py`` (some minutes a law; ``--cells normal --tables 60`` for a
first look). With ``--write`` the tables replace what ``docs/verdict.md`` has between its markers.

A cell is a law of errors, a model (right, or with an sd of .8 times the right one), a number of
rows, and rows that are independent or come in clusters of one level each. The truth is the measure
on one very large table; measures that first learn a region or a tree have no such truth, and are
left out. An interval that is withheld is counted apart. Bars, at n = 1,000: what is
shown holds the truth in 92 to 98 % of the tables with independent rows and in 90 to 98 % with
clusters, three binomial standard errors allowed; under normal errors it is withheld in at most 5 %.

``--parts`` counts for the parts of a score, in worlds of their own: right forecasts and wrong ones,
clusters and time.

``--adaptivity`` counts for the measures over cells how often an interval holds its own value, and
what it is an interval of: the mean value of all tables of as many rows (in each stratum).
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from scipy import signal, special, stats

from howsure import metrics as adapt
from howsure.core.records import Record
from howsure.core.times import Chronology, Units
from howsure.engine.catalogue import catalogue
from howsure.engine.measure import evaluate
from howsure.metrics import mean_pinball
from howsure.predictions import Distribution, EvalSet, Quantiles, Samples
from howsure.stats.estimate import Estimate
from howsure.stats.isotonic import Rising, fitted_together
from howsure.stats.permutation import Resampling
from howsure.topics.decomposition.parts import SHARE_INSIDE, quantile_parts
from howsure.topics.skill import MIDPOINTS, climatology_pinball

PAGE = Path(__file__).parent.parent / "docs" / "verdict.md"
MARKS = ("<!-- intervals: made by benchmarks/intervals.py -->", "<!-- end of intervals -->")
TABLES = 300
LARGE = 400_000
SHARED = 0.2
"""Share of the variance that the level of a cluster has."""
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
LAWS = {
    "normal": stats.norm(),
    "t3": stats.t(3, scale=1 / math.sqrt(3)),
    "lognormal": stats.lognorm(0.8),
}
PARTS_OF_SCORES = tuple(
    f"{of}{part}"
    for of in ("", "mean_")
    for part in ("miscalibration", "discrimination", "outcome_uncertainty")
)
"""Measures that ``--parts`` judges."""
KINDS = {
    "": (),
    "quantiles": ("weighted_interval_score", "pinball", "calibration_error"),
    "samples": ("crps", "crps_fair", "mean_squared_z", "relative_calibration_error"),
}


@dataclass(frozen=True)
class Cell:
    """One kind of table."""

    law: str
    stated: float = 1.0
    n: int = 1_000
    clusters: int = 0
    kind: str = ""
    weights: str = ""

    def __str__(self) -> str:
        rows = f"{self.clusters} clusters" if self.clusters else "rows"
        more = (self.kind, f"{self.weights} weights" if self.weights else "")
        told = (self.law, "right" if self.stated == 1 else f"sd × {self.stated:g}", rows)
        return ", ".join(filter(None, (*told, *more)))

    @property
    def bar(self) -> tuple[float, float]:
        """What share of intervals is to hold the truth."""
        return (0.90 if self.clusters else 0.92, 0.98)

    @property
    def truth(self) -> Cell:
        """The cell of the very large table; its rows may as well be independent."""
        n = LARGE // 4 if self.kind else LARGE
        return Cell(self.law, self.stated, n, kind=self.kind)


CELLS = [
    *(Cell(law, s, n) for law in LAWS for s in (1.0, 0.8) for n in (100, 1_000)),
    *(Cell(law, s, clusters=g) for law in LAWS for s in (1.0, 0.8) for g in (20, 100)),
    *(
        Cell(law, n=n, kind=k)
        for law in LAWS
        for k in ("quantiles", "samples")
        for n in (100, 1_000)
    ),
    *(
        Cell(law, n=n, weights="importance")
        for law in ("normal", "lognormal")
        for n in (100, 1_000)
    ),
]


def isotonic_quantiles(x: np.ndarray, y: np.ndarray, level: float) -> np.ndarray:
    """The rising function of x with the least pinball loss, at each row."""
    order = np.argsort(x, kind="stable")
    values, rank = np.unique(y, return_inverse=True)
    fitted = np.empty(len(x))
    problem = Rising.of(x[order], rank[order], level, np.ones(len(x)))
    fitted[order] = values[fitted_together([problem])[0]]
    return fitted


def drawn(cell: Cell, rng: np.random.Generator) -> EvalSet:
    """One table: sd and mean vary over rows, and marginal errors follow the law exactly."""
    n, law = cell.n, LAWS[cell.law]
    x = rng.uniform(-1, 1, (n, 3))
    score = rng.normal(size=n)
    options = {}
    if cell.clusters:
        member = np.arange(n) * cell.clusters // n
        level = rng.normal(size=cell.clusters)[member]
        score = math.sqrt(SHARED) * level + math.sqrt(1 - SHARED) * score
        options["cluster"] = member
    if cell.weights:  # weights that know nothing of the errors leave the truth as it is
        options |= {"weights": rng.lognormal(0.0, 0.7, n), "weights_kind": cell.weights}
    error = (law.ppf(special.ndtr(score)) - law.mean()) / law.std()
    sd, mean = np.exp(0.5 * x[:, 1]), np.sin(2 * x[:, 0])
    scale = cell.stated * sd / law.std()
    low = mean - law.mean() * scale
    if cell.kind == "quantiles":
        stated = Quantiles(LEVELS, low[:, None] + scale[:, None] * law.ppf(LEVELS))
    elif cell.kind == "samples":
        stated = Samples(low[:, None] + scale[:, None] * law.rvs((n, 20), random_state=rng))
    else:
        stated = prediction(cell.law, low, scale)
    return EvalSet.checked(mean + sd * error, stated, **options)


def prediction(law: str, low: np.ndarray, scale: np.ndarray) -> Distribution:
    """The law at a place and a scale of each row."""
    if law == "normal":
        return Distribution.normal(low, scale)
    if law == "t3":
        return Distribution.from_scipy(stats.t(3, loc=low, scale=scale / math.sqrt(3)))
    return Distribution.from_scipy(stats.lognorm(0.8, loc=low, scale=scale))


def records(cell: Cell, seed: int, confidence: float = 0.95) -> dict[str, Record]:
    """What is told of one table, by measure."""
    place = CELLS.index(cell) if cell in CELLS else len(CELLS)
    rng = np.random.default_rng([place, seed])
    names = KINDS[cell.kind] or None
    found = evaluate(drawn(cell, rng), metrics=names, confidence=confidence)
    return {each.metric: each for each in found.records}


@dataclass
class Count:
    """How the intervals of one measure fared in one cell."""

    shown: int = 0
    held: int = 0
    low: int = 0
    tables: int = 0
    widths: list[float] = field(default_factory=list)

    def add(self, record: Record, truth: float) -> None:
        """Count one table."""
        self.tables += 1
        if math.isnan(record.lower) or math.isnan(record.upper):
            return
        self.shown += 1
        self.low += record.upper < truth
        self.held += record.lower <= truth <= record.upper
        self.widths.append(record.upper - record.lower)

    @property
    def share(self) -> float:
        """Share of the intervals shown that hold the truth."""
        return self.held / self.shown if self.shown else math.nan

    @property
    def withheld(self) -> float:
        """Share of the tables without an interval."""
        return 1 - self.shown / self.tables


def run(cell: Cell, tables: int) -> tuple[dict[str, Count], dict[str, float]]:
    """Counts of one cell by measure, and the truths."""
    truth = {name: each.value for name, each in records(cell.truth, 10**6).items()}
    counts: dict[str, Count] = {}
    for seed in range(tables):
        for name, record in records(cell, seed).items():
            if math.isfinite(record.value) and math.isfinite(truth[name]):
                counts.setdefault(name, Count()).add(record, truth[name])
    return {name: count for name, count in counts.items() if count.shown or given(name)}, truth


def given(name: str) -> bool:
    """Whether a measure has an interval at all; the others are p-values and extremes."""
    known = (*PARTS_OF_SCORES, "normalised_width")
    return catalogue()[name].units != "p-value" and name not in known


def missed(cell: Cell, count: Count) -> str:
    """Why a measure in a cell is off its bar; empty where it is not, or where there is none."""
    if cell.n < 1_000:
        return ""
    told = []
    if count.shown >= 20:
        least, most = (
            bar + sign * 3 * math.sqrt(bar * (1 - bar) / count.shown)
            for bar, sign in zip(cell.bar, (-1, 1), strict=True)
        )
        if count.share < least:
            told.append("short")
        if count.share > most:
            told.append("wide")
    if cell.law == "normal" and count.withheld > 0.05 + 3 * math.sqrt(0.0475 / count.tables):
        told.append("withheld")
    return ", ".join(told)


def told(cell: Cell, counts: dict[str, Count], truth: dict[str, float], every: bool) -> list[str]:
    """Lines of one cell: the measures that miss, or all."""
    lines = []
    for name, count in counts.items():
        low, high = cell.bar
        off = missed(cell, count)
        loose = not off and (not low <= count.share <= high or count.withheld > 0.05)
        if every or off or loose:
            held, short = "–", "–"  # of a handful of intervals a share tells nothing
            if count.withheld <= 0.9:
                held = f"{100 * count.share:.1f}"
                short = f"{100 * count.low / count.shown:.1f}"
            lines.append(
                f"| {cell} | {cell.n:,} | {name} | {truth[name]:.4g} | {held} | {short} "
                f"| {100 * count.withheld:.0f} | {off} |"
            )
    return lines


HEAD = [
    "| model | n | measure | truth | contains truth, % | of which too low, % | withheld, % | off "
    "the bar |",
    "|:--|--:|:--|--:|--:|--:|--:|:--|",
]


def page(found: dict[Cell, tuple[dict[str, Count], dict[str, float]]]) -> str:
    """The section of the page."""
    lines = [
        "## Intervals of the numbers",
        "",
        "Share of 95 % intervals that contain the truth, over distributions of errors, models "
        "and clusters. One line for each measure outside 92 to 98 % (clusters: 90 to 98 %), or "
        "withheld in more than 5 % of the tables; the last column marks deviations above three "
        "binomial standard errors at n = 1,000.",
        "",
        *HEAD,
    ]
    judged = 0
    for cell, (counts, truth) in found.items():
        judged += len(counts)
        lines += told(cell, counts, truth, every=False)
    return "\n".join([*lines, "", f"{judged:,} measures in {len(found)} cells were judged.", ""])


def write(text: str, marks: tuple[str, str] = MARKS, page: Path | None = None) -> None:
    """Put a section between its markers."""
    page = page or PAGE
    whole = page.read_text(encoding="utf-8")
    first, last = marks
    head, _, rest = whole.partition(first)
    tail = rest.partition(last)[2] if rest else "\n"
    body = f"{head.rstrip()}\n\n{first}\n\n{text}\n{last}{tail}"
    page.write_text(body, encoding="utf-8")


Forecast = tuple[np.ndarray, np.ndarray]
"""What happened, and quantiles at nine levels."""
_Z = special.ndtri(MIDPOINTS)


def _normal(rng: np.random.Generator, n: int, knows: float = 1.0, sd: float = 1.0) -> Forecast:
    x, error = rng.normal(size=(2, n))
    return knows * x + error, knows * x[:, None] + sd * _Z


def _uneven(rng: np.random.Generator, n: int) -> Forecast:
    x, error, spread = rng.normal(size=(3, n))
    sd = np.exp(0.7 * spread)
    return x + sd * error, x[:, None] + sd[:, None] * _Z


def _lognormal(rng: np.random.Generator, n: int) -> Forecast:
    y, quantiles = _normal(rng, n)
    return np.exp(0.7 * y), np.exp(0.7 * quantiles)


def _t3(rng: np.random.Generator, n: int) -> Forecast:
    x = rng.normal(size=n)
    return x + rng.standard_t(3, n), x[:, None] + stats.t(3).ppf(MIDPOINTS)


def _counts(rng: np.random.Generator, n: int) -> Forecast:
    mean = np.exp(1.0 + 0.5 * rng.normal(size=n))
    upto = stats.poisson.cdf(np.arange(60)[:, None], mean[:, None, None])
    return rng.poisson(mean).astype(float), (upto < MIDPOINTS).sum(axis=1).astype(float)


def _four(rng: np.random.Generator, n: int) -> Forecast:
    place = rng.integers(0, 4, n)
    return place + rng.normal(size=n), place[:, None] + _Z


def _noise(rng: np.random.Generator, n: int) -> Forecast:
    x, y = rng.normal(size=(2, n))
    return y, 0.5 * x[:, None] + _Z


def _noise_of_lognormal(rng: np.random.Generator, n: int) -> Forecast:
    y, quantiles = _noise(rng, n)
    return np.exp(y), np.exp(quantiles)


def _bent(rng: np.random.Generator, n: int) -> Forecast:
    x, error = rng.normal(size=(2, n))
    return x + error, np.exp(x)[:, None] + _Z


def _blurred(rng: np.random.Generator, n: int) -> Forecast:
    y, quantiles = _normal(rng, n)
    return y, quantiles + 0.7 * rng.normal(size=(n, 1))


def _sd_alone(rng: np.random.Generator, n: int) -> Forecast:
    error, spread = rng.normal(size=(2, n))
    sd = np.exp(0.7 * spread)
    return sd * error, sd[:, None] * _Z


def _exponential(rng: np.random.Generator, n: int) -> Forecast:
    mean = rng.gamma(2.0, size=n)
    return mean * rng.exponential(size=n), mean[:, None] * -np.log1p(-MIDPOINTS)


def _two_peaks(rng: np.random.Generator, n: int) -> Forecast:
    x, error = rng.normal(size=(2, n))
    peak = 2.0 * rng.choice([-1.0, 1.0], n)
    return x + peak + 0.5 * error, x[:, None] + 0.5 + 2.06 * _Z


FORECASTS: dict[str, tuple[bool, Callable[[np.random.Generator, int], Forecast]]] = {
    "right": (True, _normal),
    "right, of uneven sd": (True, _uneven),
    "right, lognormal": (True, _lognormal),
    "right, t3": (True, _t3),
    "right, counts": (True, _counts),
    "right, four forecasts": (True, _four),
    "right, knows little": (True, partial(_normal, knows=0.2)),
    "right, knows most": (True, partial(_normal, knows=10.0)),
    "right, knows nothing": (True, partial(_normal, knows=0.0)),
    "half the sd": (False, partial(_normal, sd=0.5)),
    "half the sd, knows nothing": (False, partial(_normal, knows=0.0, sd=0.5)),
    "noise": (False, _noise),
    "noise, lognormal": (False, _noise_of_lognormal),
    "bent": (False, _bent),
    "blurred": (False, _blurred),
    "right, knows the sd alone": (True, _sd_alone),
    "right, exponential": (True, _exponential),
    "off, of two peaks": (False, _two_peaks),
}
"""Forecasts by their names, and whether each is right.

The weights of the recalibrated scores were chosen on the others before the last three were tried.
"""
TOGETHER = {
    "20 clusters": 20,
    "20 clusters that share forecasts": -20,
    "100 clusters": 100,
    "a memory of .8": 0.8,
    "a memory of .8, forecasts too": -0.8,
}
"""How rows of a right forecast go together; forecasts too where it is negative."""


def together(rng: np.random.Generator, n: int, how: float) -> tuple[np.ndarray, np.ndarray, Units]:
    """A right forecast of rows that go together: clusters, or times."""
    size, alike = abs(how), how < 0

    def drawn(share: bool) -> np.ndarray:
        own = rng.normal(size=n)
        if not share:
            return own
        if size > 1:
            level = rng.normal(size=int(size))[np.arange(n) * int(size) // n]
            return math.sqrt(SHARED) * level + math.sqrt(1.0 - SHARED) * own
        own[1:] *= math.sqrt(1.0 - size**2)
        return signal.lfilter([1.0], [1.0, -size], own)

    x, error = drawn(alike), drawn(True)
    units = np.arange(n) * int(size) // n if size > 1 else Chronology(np.arange(n))
    return x + error, x[:, None] + _Z, units


def off(name: str, n: int, tables: int) -> np.ndarray:
    """Of each table MCB in-sample and in folds, MCB and DSC less the truth, in % of UNC, and
    whether the intervals of both hold it; shape (tables, 6).
    """
    right, make = FORECASTS.get(name, (True, _normal))
    truth = np.zeros(3)  # S, the score of the recalibrated forecast, and UNC
    for seed in range(2):
        y, quantiles = make(np.random.default_rng([seed, 1]), LARGE // 4)
        fitted = [isotonic_quantiles(q, y, t) for q, t in zip(quantiles.T, MIDPOINTS, strict=True)]
        score, bare = (
            mean_pinball(y, np.stack(columns, axis=1), MIDPOINTS).mean()
            for columns in (quantiles.T, fitted)
        )
        unc = np.mean([climatology_pinball(y, level=level).mean() for level in MIDPOINTS])
        truth += np.array([score, score if right else bare, unc]) / 2.0
    mcb, dsc, unc = truth[0] - truth[1], truth[2] - truth[1], truth[2]
    rows = []
    for seed in range(tables):
        rng = np.random.default_rng([seed, n])
        units: Units = None
        if name in TOGETHER:
            y, quantiles, units = together(rng, n, TOGETHER[name])
        else:
            y, quantiles = make(rng, n)
        found = quantile_parts(y, quantiles, MIDPOINTS, np.ones(n), units)
        parts = found.estimated(np.ones(n), units)
        bare = [isotonic_quantiles(q, y, t) for q, t in zip(quantiles.T, MIDPOINTS, strict=True)]
        inside = parts.score - mean_pinball(y, np.stack(bare, axis=1), MIDPOINTS).mean()
        folds = (parts.miscalibration.value - SHARE_INSIDE * inside) / (1.0 - SHARE_INSIDE)
        both = (parts.miscalibration, mcb), (parts.discrimination, dsc)
        values = [inside - mcb, folds - mcb, *(each.value - true for each, true in both)]
        held = [
            math.nan if math.isnan(each.lower) else each.lower <= true <= each.upper
            for each, true in both
        ]
        rows.append([*(100.0 * value / unc for value in values), *held])
    return np.array(rows)


PART_MARKS = (
    "<!-- parts of a score: made by benchmarks/intervals.py --parts -->",
    "<!-- end of parts of a score -->",
)
PARTS = [
    "## Parts of a score",
    "",
    "Mean distance of MCB and DSC from the truth, in % of UNC, and how often their 95 % intervals "
    "contain it. The first two columns are MCB with a recalibration fitted to all rows, and in "
    "five-fold cross-validation. Intervals are wide for correctly specified forecasts: the cost of "
    "fitting is between the two, at an unknown place.",
    "",
    "| forecasts | n | MCB in-sample | MCB in folds | MCB | contains, % | DSC | contains, % |",
    "|:--|--:|--:|--:|--:|--:|--:|--:|",
]


def parts_line(name: str, n: int, tables: int) -> str:
    """What one kind of forecast shows."""
    *values, mcb, dsc = np.nanmean(off(name, n, tables), axis=0)
    inside, folds, of_mcb, of_dsc = (f"{value:+.1f}" for value in values)
    held = f"| {of_mcb} | {100 * mcb:.1f} | {of_dsc} | {100 * dsc:.1f} |"
    return f"| {name} | {n:,} | {inside} | {folds} {held}"


def label_sets(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Hits, sizes and ranks of label sets of twelve labels, and an ease that follows difficulty."""
    heat = np.exp(0.8 * rng.normal(size=n))
    shares = np.exp(2.0 * rng.normal(size=(n, 12)) / heat[:, None])
    shares /= shares.sum(axis=1, keepdims=True)
    label = (shares.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    order = np.argsort(-shares, axis=1)
    size = (np.take_along_axis(shares, order, axis=1).cumsum(axis=1) < 0.88).sum(axis=1) + 1.0
    rank = np.argsort(order, axis=1)[np.arange(n), label] + 1.0
    return (rank <= size).astype(float), size, rank, 0.3 * rng.normal(size=n) - heat


def widths(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Hits, widths and errors of intervals that grow too little with the noise; ease beside."""
    x = rng.random(n)
    error = np.abs((0.3 + x) * rng.normal(size=n))
    width = 3.29 * (0.5 + 0.6 * x) * np.exp(0.1 * rng.normal(size=n))
    return (2 * error <= width).astype(float), width, error, 0.05 * rng.normal(size=n) - x


def one_off(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Intervals that grow with the noise and cover 90 %, but 75 % in one fiftieth of the rows."""
    x = rng.random(n)
    hit = rng.random(n) < np.where((x > 0.2) & (x < 0.22), 0.75, 0.9)
    error = np.abs((0.3 + x) * rng.normal(size=n))
    return hit.astype(float), 3.29 * (0.3 + x), error, x


STRATA = ("sscv", "escv", "rank_cv")
"""Measures of label sets that take a largest violation over strata."""


def mean_violation(
    rng: np.random.Generator, rows: np.ndarray, rates: np.ndarray, coverage: float = 0.9
) -> float:
    """What tables with so many rows in each stratum show on average."""
    rows, rates = rows[rows > 0].astype(int), rates[rows > 0]
    return float(
        np.abs(coverage - rng.binomial(rows, rates, (1_000, len(rows))) / rows).max(1).mean()
    )


def adaptivity(tables: int, rows: list[int]) -> list[str]:
    """Lines on how often intervals over cells hold their own value and what they estimate.

    That is the mean value of all tables of as many rows; of strata, of as many rows in each.
    """
    none = Resampling(replicates=0, permutations=0)
    drawn = Resampling(replicates=300, permutations=0)
    lines = []
    for world, n in itertools.product((label_sets, widths, one_off), rows):
        found: dict[str, list[Estimate]] = {}
        truths: dict[str, list[float]] = {}
        hit, size, hard, _ = world(np.random.default_rng(0), LARGE)
        rates = {}
        for name in STRATA if world is label_sets else ():
            by = hard if name == "rank_cv" else size
            cells = getattr(adapt, name)(hit, by, coverage=0.9, resampling=none).cells
            rates[name] = cells.means["coverage"]
        for seed in range(tables):
            rng = np.random.default_rng([n, seed])
            hit, size, hard, ease = world(rng, n)
            bins = min(50, n // 5)
            told = {
                "t_cv": adapt.t_cv(hit, ease, coverage=0.9, bins=bins, resampling=drawn),
                "t_ss": adapt.t_ss(size, hard, ease, bins=bins, resampling=drawn),
            }
            if world is label_sets:
                told["rank_ss"] = adapt.rank_ss(size, hard, resampling=drawn)
            for name in rates:
                by = hard if name == "rank_cv" else size
                told[name] = getattr(adapt, name)(hit, by, coverage=0.9, resampling=drawn)
                cells = told[name].cells
                known = rates[name][cells.low.astype(int) - 1 if name == "escv" else slice(None)]
                truths.setdefault(name, []).append(mean_violation(rng, cells.n, known))
            for name, measure in told.items():
                found.setdefault(name, []).append(measure.estimate)
        for name, estimates in found.items():
            value, lower, upper = np.array([(e.value, e.lower, e.upper) for e in estimates]).T
            truth = np.array(truths.get(name, np.full(tables, value.mean())))
            shown = np.isfinite(lower)
            own = np.mean((lower <= value)[shown] & (value <= upper)[shown])
            held = np.mean((lower <= truth)[shown] & (truth <= upper)[shown])
            high = np.mean((lower > truth)[shown])
            reach = np.mean((upper - lower)[shown]) / (2 * 1.96 * np.std((value - truth)[shown]))
            lines.append(
                f"| {world.__name__.replace('_', ' ')} | {n:,} | {name} "
                f"| {100 * own:.0f} | {100 * held:.1f} | {100 * high:.1f} "
                f"| {100 * (1 - shown.mean()):.0f} | {reach:.2f} |"
            )
    return lines


CELL_MARKS = (
    "<!-- intervals over cells: made by benchmarks/intervals.py --adaptivity -->",
    "<!-- end of intervals over cells -->",
)
ADAPTIVITY = [
    "## Intervals of measures over cells",
    "",
    "The noise of cells changes a largest violation of coverage, or an R² of cells. Each estimates "
    "the average over tables with as many rows (in each stratum), and its 95 % interval is for "
    "this average, not for the limit of many rows. It always contains the value itself. A stratum "
    "with fewer than 5 rows gives no interval. *One off*: 2 % of the rows have a coverage of 75 %.",
    "",
    "| predictions | n | measure | contains its value, % | contains the mean, % | too high, % "
    "| withheld, % | width over 3.92 sd |",
    "|:--|--:|:--|--:|--:|--:|--:|--:|",
]


def main() -> None:
    """Draw, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cells", nargs="*", default=[], help="parts of names")
    parser.add_argument("--rows", type=int, nargs="*", default=[100, 1_000])
    parser.add_argument("--all", action="store_true", help="every measure, not only what is off")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--adaptivity", action="store_true")
    parser.add_argument("--parts", action="store_true")
    chosen = parser.parse_args()
    if chosen.parts:
        named = [(name, n) for name in FORECASTS for n in (100, 300, 1_000)]
        named += [(name, 1_000) for name in TOGETHER]
        with ProcessPoolExecutor(chosen.jobs) as pool:
            made = pool.map(parts_line, *zip(*named, strict=True), [chosen.tables] * len(named))
            lines = [*PARTS, *made]
        print("\n".join(lines))
        if chosen.write:
            write("\n".join([*lines, ""]), PART_MARKS)
        return
    if chosen.adaptivity:
        lines = [*ADAPTIVITY, *adaptivity(chosen.tables, chosen.rows)]
        print("\n".join(lines))
        if chosen.write:
            write("\n".join([*lines, ""]), CELL_MARKS)
        return
    cells = [
        cell
        for cell in CELLS
        if cell.n in chosen.rows
        and (not chosen.cells or any(part in str(cell) for part in chosen.cells))
    ]
    found = {}
    print("\n".join(HEAD))
    with ProcessPoolExecutor(chosen.jobs) as pool:
        tables = [chosen.tables] * len(cells)
        start = time.perf_counter()
        for cell, (counts, truth) in zip(cells, pool.map(run, cells, tables), strict=True):
            found[cell] = (counts, truth)
            print("\n".join(told(cell, counts, truth, chosen.all)), flush=True)
            print(f"({cell}, n = {cell.n:,}: {time.perf_counter() - start:.0f} s)", flush=True)
    assert all(name in catalogue() for counts, _ in found.values() for name in counts)
    if chosen.write:
        write(page(found))


if __name__ == "__main__":
    main()
