"""What the verdict says of models that are right, and of faults planted on purpose.

Run ``python benchmarks/verdict.py`` (about an hour on two cores; ``--tables 20`` for a first look).
It writes ``docs/verdict.md``. A cell is a world, a kind of prediction and a number of rows; each of
its tables is drawn anew. Bars: any ✗ on a right model in at most 5 % of the tables (three binomial
standard errors allowed); a fault is named by its own line in 95 % at n = 5,000, a large one in 90 %
at n = 1,000.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import optimize, signal, special, stats

from howsure.engine.finding import Case
from howsure.engine.measure import evaluate
from howsure.inputs import load, load_unlabelled
from howsure.predictions import Distribution, EvalSet, Intervals, LabelSets, Quantiles, Samples
from howsure.report.monitor import fit_monitor
from howsure.report.monitor import monitored as report_of
from howsure.topics.baseline import with_baselines
from howsure.topics.compare import standing
from howsure.verdict.family import examine
from howsure.verdict.findings import questions
from howsure.verdict.rows import row_faults
from howsure.verdict.without_y import least_width, without_y

PAGE = Path(__file__).parent.parent / "docs" / "verdict.md"
MARKED = re.compile(
    r"<!-- ([\w ]+): made by benchmarks/\w+\.py[^>]*?-->.*?<!-- end of \1 -->", re.DOTALL
)
"""Sections of the page that other scripts write."""
FIVE = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
THREE = np.array([0.05, 0.5, 0.95])
World = Callable[[np.random.Generator, int], EvalSet]


@dataclass(frozen=True)
class Rows:
    """Inputs, a mean and an sd for each row; two groupings that say nothing of the noise."""

    x: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    groups: dict[str, np.ndarray]

    @property
    def features(self) -> dict[str, np.ndarray]:
        """The inputs by name."""
        return {name: self.x[:, place] for place, name in enumerate(("age", "dose", "time"))}


def rows(rng: np.random.Generator, n: int, *, varying: bool = True) -> Rows:
    """Three inputs; the mean follows the first, the sd the second."""
    x = rng.uniform(-1, 1, (n, 3))
    sd = np.exp(0.5 * x[:, 1]) if varying else np.ones(n)
    groups = {
        "site": rng.choice(list("ABCDE"), n, p=[0.05, 0.2, 0.25, 0.25, 0.25]),
        "sex": rng.choice(["f", "m"], n),
    }
    return Rows(x, np.sin(2 * x[:, 0]), sd, groups)


def normal(
    *,
    varying: bool = True,
    scale: float = 1.0,
    shift: float = 0.0,
    stated: Callable[[Rows], np.ndarray] | None = None,
    error: Callable[[np.random.Generator, int], np.ndarray] | None = None,
    beside: tuple[str, ...] = (),
    weights: str = "",
) -> World:
    """Normal predictions; `scale` and `shift` (in sds) are what is stated wrongly."""

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n, varying=varying)
        noise = rng.normal(size=n) if error is None else error(rng, n)
        y = drawn.mean + drawn.sd * noise
        sd = drawn.sd * scale if stated is None else stated(drawn)
        prediction = Distribution.normal(drawn.mean - shift * drawn.sd, sd)
        return known(drawn, y, prediction, beside, rng, weights)

    return world


def guessing(size: float, *, skewed: bool = False) -> World:
    """Predictions that are calibrated, and differ from row to row by noise of this size alone."""

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        y, noise = rng.normal(size=n), size * rng.normal(size=n)
        if skewed:
            return EvalSet.checked(np.exp(y), Distribution.from_scipy(stats.lognorm(1.0), n=n))
        sd = np.full(n, math.sqrt(1.0 + size**2))
        return EvalSet.checked(y, Distribution.normal(noise, sd))

    return world


def known(
    drawn: Rows,
    y: np.ndarray,
    prediction: Any,
    beside: tuple[str, ...],
    rng: np.random.Generator | None = None,
    weights: str = "",
) -> EvalSet:
    """The set with groups, features or weights beside it."""
    options: dict[str, Any] = {}
    if "groups" in beside:
        options["groups"] = drawn.groups
    if "features" in beside:
        options["features"] = drawn.features
    if weights and rng is not None:
        options |= {"weights": rng.uniform(0.5, 2, len(y)), "weights_kind": weights}
    return EvalSet.checked(y, prediction, **options)


def law(family: Any, *shape: float, stated: Any = None, beside: tuple[str, ...] = ()) -> World:
    """A law of SciPy in location and scale, of mean 0 and sd 1, stated as it is or as another."""
    unit = family(*shape)

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        y = drawn.mean + drawn.sd * (unit.rvs(n, random_state=rng) - unit.mean()) / unit.std()
        if stated == "normal":
            return known(drawn, y, Distribution.normal(drawn.mean, drawn.sd), beside)
        scale = drawn.sd / unit.std()
        frozen = family(*shape, loc=drawn.mean - unit.mean() * scale, scale=scale)
        return known(drawn, y, Distribution.from_scipy(frozen), beside)

    return world


def tabled(levels: np.ndarray, family: Any, *shape: float, scale: float = 1.0) -> World:
    """Quantiles of such a law."""
    unit = family(*shape)

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        y = drawn.mean + drawn.sd * (unit.rvs(n, random_state=rng) - unit.mean()) / unit.std()
        at = scale * (unit.ppf(levels) - unit.mean()) / unit.std()
        return known(drawn, y, Quantiles(levels, drawn.mean[:, None] + drawn.sd[:, None] * at), ())

    return world


def bare(
    family: Any,
    *shape: float,
    tails: tuple[float, float] = (0.05, 0.95),
    beside: tuple[str, ...] = (),
) -> World:
    """Intervals of such a law between two of its levels, called 90 %."""
    unit = family(*shape)

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        y = drawn.mean + drawn.sd * (unit.rvs(n, random_state=rng) - unit.mean()) / unit.std()
        low, high = (unit.ppf(np.array(tails)) - unit.mean()) / unit.std()
        if tails[0] == 0:
            low = -math.inf
        ends = drawn.mean + drawn.sd * low, drawn.mean + drawn.sd * high
        return known(drawn, y, Intervals(*ends, coverage=0.9), beside)

    return world


def ensemble(
    members: int, *, scale: float = 1.0, shift: float = 0.0, beside: tuple[str, ...] = ()
) -> World:
    """Members drawn from the truth, or from one of another sd or mean."""

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        y = drawn.mean + drawn.sd * rng.normal(size=n)
        spread = scale * drawn.sd[:, None] * rng.normal(size=(n, members))
        return known(drawn, y, Samples((drawn.mean - shift * drawn.sd)[:, None] + spread), beside)

    return world


def counts(form: str, *, factor: float = 1.0, beside: tuple[str, ...] = ()) -> World:
    """Poisson counts whose rate follows an input, stated as law, samples or quantiles."""

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        rate = np.exp(0.8 + 0.8 * drawn.x[:, 1])
        y = rng.poisson(rate).astype(float)
        stated = factor * rate
        prediction: Any = Distribution.from_scipy(stats.poisson(stated))
        if form == "binomial":
            chance = 1 / (1 + np.exp(-drawn.x[:, 1]))
            y = rng.binomial(10, chance).astype(float)
            prediction = Distribution.from_scipy(stats.binom(np.full(n, 10), chance))
        elif form == "samples":
            prediction = Samples(rng.poisson(stated[:, None], (n, 50)).astype(float))
        elif form == "quantiles":
            prediction = Quantiles(FIVE, stats.poisson.ppf(FIVE, stated[:, None]))
        size = {"size": np.where(rate > 2.2, "large", "small")} if "size" in beside else {}
        drawn.groups.update(size)
        return known(drawn, y, prediction, beside)

    return world


def label_sets() -> World:
    """Sets of any of ten labels that hold the true one nine times of ten, whatever their size."""

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        y = rng.integers(10, size=n)
        sizes = rng.integers(1, 7, size=n)
        order = rng.uniform(size=(n, 10))  # the true label comes first, or last
        order[np.arange(n), y] = np.where(rng.uniform(size=n) < 0.9, -1.0, 2.0)
        members = order.argsort(axis=1).argsort(axis=1) < sizes[:, None]
        return EvalSet.checked(y.astype(float), LabelSets(members, 0.9))

    return world


def eased(*, slope: float = 0.0) -> World:
    """The sets that class probabilities claim, right ones or, by a slope, too sure of hard rows.

    What is stated of a row of ease e is raised to the power 1 + slope (1 − e).
    """

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        ease = rng.uniform(size=n)
        logits = rng.normal(size=(n, 6)) * (0.3 + 3 * ease[:, None])
        chances = special.softmax(logits, axis=1)
        y = (chances.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
        stated = special.softmax(logits * (1 + slope * (1 - ease[:, None])), axis=1)
        sets = LabelSets.likeliest(stated, 0.9)
        return EvalSet.checked(np.minimum(y, 5).astype(float), sets, features={"ease": ease})

    return world


def half(where: Callable[[Rows], np.ndarray]) -> Callable[[Rows], np.ndarray]:
    """Half the sd where something holds, the right one elsewhere."""
    return lambda drawn: np.where(where(drawn), 0.5, 1.0) * drawn.sd


def noisy(drawn: Rows) -> np.ndarray:
    """Widths that vary more than the errors do: exp(1.0·x) for exp(.5·x)."""
    return np.asarray(drawn.sd**2 / np.exp(0.0))


Noise = Callable[[np.random.Generator, int], tuple[np.ndarray, dict[str, np.ndarray]]]


def autoregressive(rho: float) -> Noise:
    """Standard normal scores that follow each other in time."""

    def noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        fresh = rng.normal(size=n + 500)
        scores = signal.lfilter([math.sqrt(1 - rho**2)], [1.0, -rho], fresh)[500:]
        return scores, {"time": np.arange(n)}

    return noise


def process(
    *past: float, moving: tuple[float, ...] = (1.0,), gaps: float = 0.0, each: int = 1
) -> Noise:
    """Normal scores x_t = Σ past_k x_{t−k} + Σ moving_k ε_{t−k}, of variance 1.

    A share of the times is missing in the table, or half of each score is shared by the rows
    (`each` of them) of one time.
    """
    polynomial = np.r_[1.0, -np.array(past)]
    impulse = signal.lfilter(moving, polynomial, np.r_[1.0, np.zeros(20_000)])
    size = math.sqrt(float(np.square(impulse).sum()))

    def noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        times = math.ceil(n / each / (1.0 - gaps))
        scores = signal.lfilter(moving, polynomial, rng.normal(size=times + 2_000))[2_000:] / size
        held = np.sort(rng.choice(times, math.ceil(n / each), replace=False))
        when = np.repeat(held, each)[:n]
        if each == 1:
            return scores[when], {"time": when}
        own = rng.normal(size=n)
        return math.sqrt(0.5) * scores[when] + math.sqrt(0.5) * own, {"time": when}

    return noise


def season(lag: int, phi: float) -> tuple[float, ...]:
    """What an autoregression at one lag takes of the past."""
    return (*[0.0] * (lag - 1), phi)


def panel(
    series: int,
    rho: float,
    *,
    shock: float = 0.0,
    gaps: float = 0.0,
    staggered: bool = False,
    named: bool = True,
) -> Noise:
    """Autoregressive scores of several series at the same times.

    A share of the variance is a shock of each time, with the same memory; a share of the rows is
    missing, or series begin anywhere in the first half. That they are series may not be known.
    """

    def noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        each = autoregressive(rho)
        times = math.ceil(n / series / (1.0 - gaps) * (4 / 3 if staggered else 1.0)) + 3
        own = np.stack([each(rng, times)[0] for _ in range(series)], axis=1)
        scores = math.sqrt(1 - shock) * own + math.sqrt(shock) * each(rng, times)[0][:, None]
        when, which = np.divmod(np.arange(times * series), series)
        first = rng.integers(0, times // 2, series) if staggered else np.zeros(series)
        there = (rng.uniform(size=len(when)) >= gaps) & (when >= first[which])
        kept = np.flatnonzero(there)[-n:]
        spare = np.setdiff1d(np.arange(len(when)), kept)  # where chance left too few
        kept = np.sort(np.r_[kept, spare[len(spare) - (n - len(kept)) :]])
        known_of = {"time": when[kept], **({"series": which[kept]} if named else {})}
        return scores.ravel()[kept], known_of

    return noise


def fractional(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Fractional noise of order .2: memory without end."""
    k = np.arange(1, 8_000)
    weights = np.r_[1.0, np.cumprod((k - 0.8) / k)]
    scores = signal.fftconvolve(rng.normal(size=n + 8_000), weights)[8_000 : 8_000 + n]
    return scores / math.sqrt(float(np.square(weights).sum())), {"time": np.arange(n)}


def garch(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Normal scores of GARCH(1, 1) errors with .1 and .85: their sizes follow each other."""
    fresh, errors, variance = rng.normal(size=n + 500), np.empty(n + 500), 1.0
    for place, each in enumerate(fresh):
        errors[place] = math.sqrt(variance) * each
        variance = 0.05 + 0.1 * errors[place] ** 2 + 0.85 * variance
    return stats.norm.ppf(np.interp(errors[500:], *garch_law())), {"time": np.arange(n)}


@lru_cache
def garch_law() -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of such errors, from 4,000 series, and their levels."""
    rng = np.random.default_rng(0)
    errors, variance, held = np.zeros(4_000), np.ones(4_000), []
    for turn in range(700):
        errors = np.sqrt(variance) * rng.normal(size=4_000)
        variance = 0.05 + 0.1 * np.square(errors) + 0.85 * variance
        if turn >= 200 and turn % 5 == 0:
            held.append(errors)
    levels = (np.arange(2_000) + 0.5) / 2_000
    return np.quantile(np.concatenate(held), levels), levels


def random_walk(rng: np.random.Generator, n: int) -> EvalSet:
    """Intervals of each step of a random walk from its start."""
    half_width = stats.norm.ppf(0.95) * np.sqrt(np.arange(1, n + 1))
    prediction = Intervals(-half_width, half_width, coverage=0.9)
    return EvalSet.checked(np.cumsum(rng.normal(size=n)), prediction, time=np.arange(n))


def alike(size: int, share: float = 0.3) -> Noise:
    """Standard normal scores in clusters of so many rows."""

    def noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        cluster = np.arange(n) // size
        shared = rng.normal(size=cluster[-1] + 1)[cluster]
        scores = math.sqrt(share) * shared + math.sqrt(1 - share) * rng.normal(size=n)
        return scores, {"cluster": cluster}

    return noise


def volatile(rho: float, size: float) -> Noise:
    """Normal scores of e^h·ε, h autoregressive: the size of errors has a memory, the side none."""
    nodes, shares = np.polynomial.hermite_e.hermegauss(101)
    grid = np.linspace(-12, 12, 6001)
    cdf = stats.norm.cdf(grid[:, None] / np.exp(size * nodes)) @ (shares / shares.sum())
    follows = autoregressive(rho)

    def noise(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        log_scale, known_of = follows(rng, n)
        u = np.interp(np.exp(size * log_scale) * rng.normal(size=n), grid, cdf)
        return stats.norm.ppf(np.clip(u, 1e-9, 1 - 1e-9)), known_of

    return noise


def dependent(noise: Noise, kind: str, *, scale: float = 1.0, shift: float = 0.0) -> World:
    """Errors that depend, each right by itself, stated as a prediction of some kind.

    With a scale or a shift (in sds) all are wrong.
    """

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        scores, known_of = noise(rng, n)
        y, wide = drawn.mean + drawn.sd * (scale * scores + shift), stats.norm.ppf(FIVE)
        prediction: Any = Distribution.normal(drawn.mean, drawn.sd)
        if kind == "samples":
            spread = drawn.sd[:, None] * rng.normal(size=(n, 20))
            prediction = Samples(drawn.mean[:, None] + spread)
        elif kind == "quantiles":
            prediction = Quantiles(FIVE, drawn.mean[:, None] + drawn.sd[:, None] * wide)
        elif kind == "intervals":
            ends = (drawn.mean + drawn.sd * wide[place] for place in (0, -1))
            prediction = Intervals(*ends, coverage=0.9)
        return EvalSet.checked(y, prediction, groups=drawn.groups, **known_of)

    return world


def over_time(
    *,
    memory: float = 0.0,
    size: Callable[[np.ndarray], np.ndarray] = np.ones_like,
    shift: float = 0.0,
) -> World:
    """Normal predictions of dated rows, whose errors follow each other with this correlation.

    `size` says by what they are multiplied, of a time from 0 to 1; `shift` is a bias in the last
    fifth.
    """

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        noise = rng.normal(size=n + 500) * math.sqrt(1 - memory**2)
        errors = signal.lfilter([1.0], [1.0, -memory], noise)[500:]
        when = np.arange(n) / n
        errors = errors * size(when) + shift * (when >= 0.8)
        day = np.datetime64("2024-01-01T00") + np.arange(n)
        prediction = Distribution.normal(drawn.mean, drawn.sd)
        return EvalSet.checked(drawn.mean + drawn.sd * errors, prediction, time=day)

    return world


def ahead(*, knows: bool, memory: float = 0.9) -> World:
    """Predictions of the next day of a week's season and AR errors, by the law that holds.

    A model that `knows` takes the last day into account, another states the law of any day.
    """

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        noise = rng.normal(size=n + 501) * math.sqrt(1 - memory**2)
        errors = signal.lfilter([1.0], [1.0, -memory], noise)[500:]
        season = np.sin(2 * np.pi * np.arange(n) / 7) if knows else 0.0
        mean = season + memory * errors[:-1] if knows else np.zeros(n)
        sd = np.full(n, math.sqrt(1 - memory**2) if knows else 1.0)
        day = np.datetime64("2020-01-01", "D") + np.arange(n)
        held = EvalSet.checked(season + errors[1:], Distribution.normal(mean, sd), time=day)
        return with_baselines([held], lead=1, season=7)[0]

    return world


def overlapping(
    steps: int,
    memory: float = 0.8,
    *,
    stated: Callable[[np.ndarray], np.ndarray] = np.ones_like,
    timed: bool = True,
) -> World:
    """Forecasts of one AR(1) from every origin, up to so many steps ahead, so that they overlap.

    `stated` says by what their sd is multiplied, of a lead time from 0 to 1; rows know their origin
    alone unless they are `timed`.
    """

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        origins = n // steps
        path = signal.lfilter([1.0], [1.0, -memory], rng.normal(size=origins + steps + 500))[500:]
        origin, lead = np.repeat(np.arange(origins), steps), np.tile(np.arange(steps) + 1, origins)
        sd = np.sqrt((1.0 - memory ** (2.0 * lead)) / (1.0 - memory**2)) * stated(lead / steps)
        prediction = Distribution.normal(memory**lead * path[origin], sd)
        when = {"time": origin + lead} if timed else {"cutoff": origin}
        return EvalSet.checked(path[origin + lead], prediction, **when, horizon=lead)

    return world


def in_sites(
    shift: dict[str, float] | None = None,
    scale: dict[str, float] | None = None,
    *,
    kind: str = "normal",
    sites: int = 4,
    noise: Noise | None = None,
) -> World:
    """Errors of some of these sites shifted, in sds, or scaled; by chance or by whole clusters."""

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        z, known_of = (rng.normal(size=n), {}) if noise is None else noise(rng, n)
        unit = np.asarray(known_of.get("cluster", np.arange(n)))
        names = np.array([chr(65 + k) if k < 26 else f"S{k}" for k in range(sites)])
        site = rng.choice(names, n)[unit]
        moved = np.array([(shift or {}).get(each, 0.0) for each in site])
        times = np.array([(scale or {}).get(each, 1.0) for each in site])
        y = drawn.mean + drawn.sd * (z * times + moved)
        prediction: Any = Distribution.normal(drawn.mean, drawn.sd)
        if kind == "samples":
            spread = drawn.sd[:, None] * rng.normal(size=(n, 10))
            prediction = Samples(drawn.mean[:, None] + spread)
        elif kind == "quantiles":
            at = drawn.sd[:, None] * stats.norm.ppf(FIVE)
            prediction = Quantiles(FIVE, drawn.mean[:, None] + at)
        groups = {"site": site, "sex": drawn.groups["sex"]}
        return EvalSet.checked(y, prediction, groups=groups, **known_of)

    return world


HOURS = np.datetime64("2022-01-01T00") + np.arange(17_520).astype("timedelta64[h]")


def seasonal(sd: Callable[[np.random.Generator, np.ndarray], np.ndarray], wanted: str) -> World:
    """Times of two years or 60 days, and errors AR(.6) with these sd by season or weekday.

    1 is stated.
    """

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        span = 17_520 if wanted == "season" else 1_440  # two years, or 60 days
        time = HOURS[np.sort(rng.choice(span, min(n, span), replace=False))]
        of = time.astype("datetime64[M]").astype(int) % 12
        group = (
            ((of + 1) // 3) % 4
            if wanted == "season"
            else time.astype("datetime64[D]").astype(int) % 7
        )
        y = sd(rng, group) * process(0.6)(rng, len(time))[0]
        stated = Distribution.normal(np.zeros(len(time)), np.ones(len(time)))
        return EvalSet.checked(y, stated, time=time, groups={wanted: group})

    return world


def one_group(size: float) -> Callable[[np.random.Generator, np.ndarray], np.ndarray]:
    """The first group's errors so many times the stated."""
    return lambda rng, group: np.where(group == 0, size, 1.0)


DEPENDENT: tuple[tuple[str, Noise, tuple[int, int]], ...] = (
    ("AR(.8) in time", autoregressive(0.8), (450, 3_000)),
    ("AR(.95) in time", autoregressive(0.95), (2_000, 6_000)),
    ("clusters of 20", alike(20), (400, 2_000)),
    ("clusters of 50", alike(50), (1_000, 3_000)),
    ("volatility that follows itself", volatile(0.95, 0.7), (1_000, 3_000)),
)
"""What of the errors depends, and numbers of rows from some 50 effective ones on."""
REMEMBERED: tuple[tuple[str, Noise, str, tuple[int, ...]], ...] = (
    ("lag 12", process(*season(12, 0.8)), "normal", (100, 300, 1_000)),
    ("lag 12", process(*season(12, 0.8)), "intervals", (100, 1_000)),
    ("lag 24", process(*season(24, 0.8)), "normal", (300, 1_000)),
    ("short AR(.95)", process(0.95), "intervals", (100, 300)),
    ("GARCH", garch, "normal", (100, 300, 1_000)),
    ("ARMA(2, 1)", process(0.9, -0.3, moving=(1.0, 0.5)), "normal", (100, 1_000)),
    (
        "AR(.5) with a season of 7",
        process(*-np.convolve([1.0, -0.5], [1.0, *-np.array(season(7, 0.7))])[1:]),
        "normal",
        (100, 1_000),
    ),
    ("fractional noise", fractional, "normal", (100, 1_000)),
    (
        "lag 12, a tenth of the times missing",
        process(*season(12, 0.8), gaps=0.1),
        "normal",
        (1_000,),
    ),
    ("AR(.9), half of the times missing", process(0.9, gaps=0.5), "normal", (1_000,)),
    ("AR(.8), 4 rows a time", process(0.8, each=4), "normal", (300, 1_000)),
    ("lag 12, 3 rows a time", process(*season(12, 0.8), each=3), "normal", (1_000,)),
)
"""What errors remember, the kind of prediction, and numbers of rows."""
KINDS = ("normal", "samples", "quantiles", "intervals")

BOTH = ("groups", "features")
SITES = (400, 1_600, 5_000)
"""Numbers of rows of which some sites are wrong."""


@dataclass(frozen=True)
class Cell:
    """One world with what the verdict should say of it.

    `named` holds the ids of which one at least must be ✗; none for a right model. `false` holds
    those that must not.
    """

    name: str
    world: World
    named: tuple[str, ...] = ()
    large: bool = False
    false: tuple[str, ...] = ()
    sizes: tuple[int, ...] = field(default=(30, 100, 300, 1_000))


def defect(
    name: str, world: World, *named: str, large: bool = False, false: tuple[str, ...] = ()
) -> Cell:
    """A cell with a fault."""
    return Cell(name, world, named, large, false, (1_000, 5_000))


def drifting(name: str, world: World) -> Cell:
    """A cell whose fault comes with time."""
    return Cell(name, world, ("drift",), large=True, sizes=(1_000, 3_000))


CELLS: tuple[Cell, ...] = (
    Cell("normal", normal()),
    Cell("normal, constant noise, groups and features", normal(varying=False, beside=BOTH)),
    Cell("normal, groups and features", normal(beside=BOTH)),
    Cell("normal, weights of importance", normal(weights="importance"), sizes=(100, 1_000)),
    Cell(
        "normal, weights of importance and groups",
        normal(weights="importance", beside=("groups",)),
        sizes=(300, 1_000),
    ),
    Cell("t3", law(stats.t, 3)),
    Cell("lognormal", law(stats.lognorm, 0.8)),
    Cell("gamma, groups and features", law(stats.gamma, 2, beside=BOTH)),
    Cell("Poisson", counts("law")),
    Cell("Poisson, groups by size, features", counts("law", beside=(*BOTH, "size"))),
    Cell("binomial", counts("binomial")),
    Cell("Poisson as 50 samples", counts("samples")),
    Cell("Poisson as 5 quantiles", counts("quantiles")),
    Cell(
        "Poisson as quantiles, groups by size, features",
        counts("quantiles", beside=(*BOTH, "size")),
        sizes=(300, 1_000),
    ),
    Cell("5 members", ensemble(5)),
    Cell("10 members", ensemble(10)),
    Cell("10 members, groups and features", ensemble(10, beside=BOTH)),
    Cell("50 members", ensemble(50)),
    Cell("normal as 3 quantiles", tabled(THREE, stats.norm)),
    Cell("gamma as 5 quantiles", tabled(FIVE, stats.gamma, 2)),
    Cell("intervals of a gamma", bare(stats.gamma, 2)),
    Cell("intervals of a t3, groups and features", bare(stats.t, 3, beside=BOTH)),
    Cell("one-sided intervals", bare(stats.gamma, 2, tails=(0.0, 0.9))),
    Cell("label sets", label_sets(), sizes=(100, 300, 1_000)),
    Cell("claimed label sets, ease", eased(), sizes=(100, 300, 1_000)),
    *(
        Cell(f"{name}, {kind}", dependent(noise, kind), sizes=sizes)
        for name, noise, sizes in DEPENDENT
        for kind in KINDS
    ),
    defect("sd × .9", normal(scale=0.9), "spread"),
    defect("sd × .7", normal(scale=0.7), "spread", large=True, false=("skew", "tails", "bias")),
    defect(
        "sd × .7, groups and features",
        normal(scale=0.7, beside=BOTH),
        "spread",
        large=True,
        false=("groups", "region", "tails"),
    ),
    defect("bias of .2 sd", normal(shift=0.2), "bias", false=("spread", "skew", "tails")),
    defect(
        "bias of .5 sd", normal(shift=0.5), "bias", large=True, false=("spread", "skew", "tails")
    ),
    defect(
        "half the sd in a group of 5 %",
        normal(stated=half(lambda d: d.groups["site"] == "A"), beside=("groups",)),
        "groups",
    ),
    defect(
        "half the sd in a group of 20 %",
        normal(stated=half(lambda d: d.groups["site"] == "B"), beside=("groups",)),
        "groups",
        large=True,
    ),
    defect(
        "half the sd where time > .5",
        normal(stated=half(lambda d: d.x[:, 2] > 0.5), beside=("features",)),
        "region",
    ),
    defect("class probabilities too sure where rows are hard", eased(slope=3.0), "ease"),
    defect(
        "t3 errors, normal prediction",
        law(stats.t, 3, stated="normal"),
        "tails",
        false=("spread", "skew", "bias"),
    ),
    defect(
        "gamma errors, normal prediction",
        law(stats.gamma, 2, stated="normal"),
        "skew",
        false=("bias", "spread"),
    ),
    defect(
        "constant width under varying noise",
        normal(stated=lambda d: np.full(len(d.sd), 1.13), beside=("features",)),
        "width",
        false=("tails",),
    ),
    defect("widths that overreact", normal(stated=noisy), "width"),
    defect(
        "misses on one side",
        bare(stats.norm, tails=(1e-9, 0.9)),
        "one_sided",
        large=True,
        false=("coverage",),
    ),
    defect(
        "50 members, sd × .7",
        ensemble(50, scale=0.7),
        "spread",
        large=True,
        false=("skew", "tails", "bias"),
    ),
    defect(
        "10 members, bias of .5 sd",
        ensemble(10, shift=0.5),
        "bias",
        large=True,
        false=("spread", "skew"),
    ),
    defect(
        "5 quantiles, sd × .7",
        tabled(FIVE, stats.norm, scale=0.7),
        "spread",
        large=True,
        false=("skew", "tails", "bias"),
    ),
    defect("Poisson rate × .8", counts("law", factor=0.8), "bias", large=True),
    Cell("normal, dated", over_time(), sizes=(100, 1_000)),
    drifting("half the errors in the last fifth", over_time(size=lambda t: 1 - 0.5 * (t >= 0.8))),
    drifting("twice the errors in the last fifth", over_time(size=lambda t: 1.0 + (t >= 0.8))),
    drifting("half the errors in the first fifth", over_time(size=lambda t: 1 - 0.5 * (t < 0.2))),
    drifting("errors that double slowly", over_time(size=lambda t: 1.0 + t)),
    drifting("bias of .5 sd in the last fifth", over_time(shift=0.5)),
    Cell(
        "half the errors in the last fifth, AR(.8)",
        over_time(memory=0.8, size=lambda t: 1 - 0.5 * (t >= 0.8)),
        ("drift",),
        sizes=(1_000, 3_000),
    ),
    *(
        Cell(f"{name}, {kind}", dependent(noise, kind), sizes=sizes)
        for name, noise, kind, sizes in REMEMBERED
    ),
    Cell("random walk, intervals", random_walk, sizes=(60, 300)),
    Cell("two years, by season", seasonal(one_group(1.0), "season"), sizes=(2_000, 17_000)),
    Cell(
        "two years, winter covers 46 %",
        seasonal(one_group(2.66), "season"),
        ("groups",),
        sizes=(2_000, 17_000),
    ),
    Cell("60 days, by weekday", seasonal(one_group(1.0), "weekday"), sizes=(1_440,)),
    Cell(
        "60 days, one weekday covers 66 %",
        seasonal(one_group(1.724), "weekday"),
        ("groups",),
        sizes=(1_440,),
    ),
    Cell("knows nothing of its rows", guessing(0.0)),
    Cell("knows nothing of its rows, lognormal", guessing(0.0, skewed=True)),
    defect("noise for knowledge", guessing(1.0), "skill", large=True, false=("bias", "spread")),
    defect("noise for knowledge, .4 as large", guessing(0.4), "skill", false=("bias", "spread")),
    Cell(
        "one day ahead, AR(.9), beside naive forecasts", ahead(knows=True), sizes=(100, 300, 1_000)
    ),
    Cell(
        "one day ahead without the last day, AR(.9)",
        ahead(knows=False),
        ("skill",),
        sizes=(100, 300, 1_000),
    ),
    Cell("AR(.5), 6 steps ahead", overlapping(6, 0.5), sizes=(600, 2_400)),
    Cell("AR(.8), 24 steps ahead", overlapping(24), sizes=(2_400, 9_600)),
    Cell(
        "AR(.8), 24 steps ahead, origins alone", overlapping(24, timed=False), sizes=(2_400, 9_600)
    ),
    Cell(
        "AR(.5), 6 steps ahead, sd × .6 at the last step",
        overlapping(6, 0.5, stated=lambda lead: 1.0 - 0.4 * lead),
        ("lead_time",),
        sizes=(600, 2_400),
    ),
    Cell(
        "AR(.8), 24 steps ahead, sd × .6 at the last step",
        overlapping(24, stated=lambda lead: 1.0 - 0.4 * lead),
        ("lead_time",),
        sizes=(2_400, 9_600),
    ),
    Cell("4 sites", in_sites(), sizes=(100, 400, 1_600)),
    Cell("40 sites", in_sites(sites=40), sizes=(400, 1_600)),
    *(
        Cell(f"4 sites, {name}", in_sites(kind=kind, noise=noise), sizes=(400, 1_600))
        for name, kind, noise in (
            ("10 members", "samples", None),
            ("5 quantiles", "quantiles", None),
            ("AR(.8) in time", "normal", autoregressive(0.8)),
            ("of whole clusters of 20", "normal", alike(20)),
        )
    ),
    *(
        Cell(f"{name} in {where}, {kind}", in_sites(*wrong, kind=kind), ("groups",), sizes=SITES)
        for name, where, wrong in (
            ("bias of .4 sd", "one of 4 sites", ({"B": 0.4},)),
            ("biases of ± .4 sd", "two of 4 sites", ({"B": 0.4, "C": -0.4},)),
            ("sd × .8", "one of 4 sites", ({}, {"B": 1.25})),
        )
        for kind in ("normal", "samples", "quantiles")
    ),
    *(
        Cell(
            f"biases of ± .8 sd in two of 4 sites, {name}",
            in_sites({"B": 0.8, "C": -0.8}, noise=noise),
            ("groups",),
            sizes=(400, 1_600),
        )
        for name, noise in (("AR(.8)", autoregressive(0.8)), ("clusters of 20", alike(20)))
    ),
)

SHOCKS = (0.0, 0.3, 1.0)


def number(value: float) -> str:
    """As .3."""
    return f"{value:g}".removeprefix("0") or "0"


PANELS: tuple[tuple[str, Noise, int], ...] = (
    *(
        (
            f"{series} series × {times} times, AR({number(rho)}), shocks {number(shock)}",
            noise,
            series * times,
        )
        for series, times, rho in ((5, 60, 0.7), (16, 20, 0.5), (2, 200, 0.5), (30, 100, 0.3))
        for shock in SHOCKS
        for noise in [panel(series, rho, shock=shock)]
    ),
    *(
        (
            f"5 series × 60 times, AR(.7), shocks {number(shock)}, {name}",
            panel(5, 0.7, shock=shock, **how),
            300,
        )
        for name, how in (
            ("a fifth missing", {"gaps": 0.2}),
            ("staggered entry", {"staggered": True}),
            ("series unknown", {"named": False}),
        )
        for shock in SHOCKS[:2]
    ),
    ("16 series × 20 times, AR(.5), shocks 0, series unknown", panel(16, 0.5, named=False), 320),
    ("16 series × 60 times, AR(.9), shocks 0", panel(16, 0.9), 960),
    ("5 series × 60 times, independent rows", panel(5, 0.0), 300),
)
"""Several series at the same times: name, scores, rows."""

UNSEEN: tuple[tuple[str, str, World], ...] = (
    ("tails of bare intervals", "tails", bare(stats.t, 3)),
    ("sd of a Poisson distribution", "spread", counts("law", factor=1.0)),
    ("tails of 3 members", "tails", ensemble(3)),
    ("constant width without inputs", "width", normal(stated=lambda d: np.full(len(d.sd), 1.13))),
)
"""What cannot be seen, with the finding that stays silent or undecided."""


@dataclass(frozen=True)
class Planted:
    """Rows of a right model that are not what they seem: what `rows` should find."""

    name: str
    world: World
    check: str
    sizes: tuple[int, ...] = (100, 1_000)


def changed(how: Callable[..., dict[str, Any]], *, scale: float = 1.0) -> World:
    """Rows of a right normal model far from 0, of which something is changed.

    `how` is given a generator, y, mean, sd and the sites, and says what takes their place.
    """

    def world(rng: np.random.Generator, n: int) -> EvalSet:
        drawn = rows(rng, n)
        mean, sd = scale * (10 + 2 * drawn.x[:, 0]), scale * drawn.sd
        y = mean + sd * rng.normal(size=n)
        given = {"y": y, "mean": mean, "sd": sd, "x": drawn.features, "groups": {}}
        given["groups"]["site"] = drawn.groups["site"]
        given |= how(rng, y, mean, sd, drawn.groups["site"])
        place = given.pop("take", np.arange(n))
        prediction = Distribution.normal(given["mean"], given["sd"])
        held = EvalSet.checked(given["y"], prediction, features=given["x"], groups=given["groups"])
        return held.take(place)

    return world


def in_other_units(factor: float, site: str = "") -> World:
    """Means and sds divided by a factor, in all rows or of one site."""

    def how(_rng: Any, _y: Any, mean: Any, sd: Any, sites: Any) -> dict[str, Any]:
        here = (sites == site) if site else np.ones(len(mean), bool)
        return {"mean": np.where(here, mean / factor, mean), "sd": np.where(here, sd / factor, sd)}

    return changed(how)


def with_mark(value: float, part: float) -> World:
    """A value in place of y in a share of rows."""
    return changed(
        lambda rng, y, *_: {
            "y": np.where(rng.permutation(len(y)) < max(3, part * len(y)), value, y)
        }
    )


def until(name: str) -> World:
    """Times of which the later ones are cut, and a column that says so."""

    def how(rng: Any, y: Any, _mean: Any, _sd: Any, sites: Any) -> dict[str, Any]:
        end = rng.normal(11.0, 2.0, len(y))
        event = (y <= end).astype(int)
        mark = {name: event if name == "event" else 1 - event}
        return {"y": np.minimum(y, end), "groups": {"site": sites, **mark}}

    return changed(how)


def times_over(times: int) -> World:
    """Each row so many times."""
    return changed(lambda _rng, y, *_: {"take": np.repeat(np.arange(len(y) // times), times)})


def exchanged_sites() -> World:
    """Sites of different levels, and the predictions of two of them exchanged."""

    def how(_rng: Any, y: Any, mean: Any, _sd: Any, sites: Any) -> dict[str, Any]:
        names, codes = np.unique(sites, return_inverse=True)
        level = 5.0 * np.arange(len(names))
        other = np.r_[0, 2, 1, np.arange(3, len(names))]
        return {"y": y + level[codes], "mean": mean + level[other[codes]]}

    return changed(how)


def moved_in_series(rng: np.random.Generator, n: int) -> EvalSet:
    """Four series of which the level is predicted, with y of the time before."""
    noise = rng.normal(size=(4, n // 4))
    level = signal.lfilter([1.0], [1.0, -0.9], noise, axis=1)
    y = np.roll(level + 0.3 * rng.normal(size=level.shape), 1, axis=1)
    prediction = Distribution.normal(level.ravel(), np.full(level.size, 0.3))
    time, series = np.tile(np.arange(n // 4), 4), np.repeat(np.arange(4), n // 4)
    return EvalSet.checked(y.ravel(), prediction, time=time, series=series)


def delivered_twice(rng: np.random.Generator, n: int) -> EvalSet:
    """Rows in time, of which one spell comes again, a little corrected."""
    count = n * 10 // 11
    held = over_time(memory=0.6)(rng, count)
    again = np.r_[np.arange(count), count // 3 + np.arange(n - count)]
    held = held.take(again)
    y = held.y + np.r_[np.zeros(count), 0.01 * rng.normal(size=n - count)]
    return replace(held, y=y)


PLANTED: tuple[Planted, ...] = (
    Planted("each row twice", times_over(2), "copies"),
    Planted("each row five times", times_over(5), "copies"),
    Planted(
        "a bootstrap sample",
        changed(lambda rng, y, *_: {"take": rng.integers(len(y), size=len(y))}),
        "copies",
    ),
    Planted(
        "a tenth of the rows, delivered again with corrections",
        delivered_twice,
        "corrected",
        (300, 1_000),
    ),
    Planted(
        "variance as sd",
        changed(lambda _r, _y, _m, sd, _s: {"sd": sd**2}, scale=0.05),
        "variance",
    ),
    Planted(
        "sd as variance",
        changed(lambda _r, _y, _m, sd, _s: {"sd": np.sqrt(sd)}, scale=0.05),
        "variance",
    ),
    Planted("predictions divided by 1,000", in_other_units(1_000), "units"),
    Planted("predictions in inches, y in cm", in_other_units(2.54), "units"),
    Planted("predictions of one site divided by 100", in_other_units(100, "C"), "units"),
    Planted("predictions of one site in inches, y in mm", in_other_units(25.4, "C"), "units"),
    Planted(
        "predictions in Celsius, y in Fahrenheit",
        changed(lambda _r, _y, m, sd, _s: {"mean": (m - 32) / 1.8, "sd": sd / 1.8}),
        "units",
    ),
    Planted("errors of a tenth", changed(lambda _r, y, m, *_: {"y": m + 0.1 * (y - m)}), "leakage"),
    Planted("y among the inputs", changed(lambda _r, y, *_: {"x": {"price": 2 * y + 1}}), "target"),
    Planted("y of −9999 in 2 %", with_mark(-9999.0, 0.02), "marks"),
    Planted("y of 1e20 in 10 %", with_mark(1e20, 0.1), "marks"),
    Planted(
        "y clipped, 10 %",
        changed(lambda _r, y, *_: {"y": np.minimum(y, np.quantile(y, 0.9))}),
        "clipped",
    ),
    Planted(
        "predictions clipped, 50 %",
        changed(lambda _r, _y, m, *_: {"mean": np.minimum(m, 10)}),
        "clipped_predictions",
    ),
    Planted("whole y", changed(lambda _r, y, *_: {"y": np.round(y)}), "rounded"),
    Planted("censored rows, a column event", until("event"), "censored"),
    Planted("censored rows, a column censored", until("censored"), "censored"),
    Planted(
        "y and prediction swapped", changed(lambda _r, y, m, *_: {"y": m, "mean": y}), "swapped"
    ),
    Planted(
        "mean and sd swapped",
        changed(lambda _r, _y, m, sd, _s: {"mean": sd, "sd": m}),
        "mean_and_sd",
    ),
    Planted(
        "one prediction for all",
        changed(lambda _r, y, *_: {"mean": np.full(len(y), 10.0), "sd": np.full(len(y), 1.7)}),
        "one_prediction",
    ),
    Planted("y moved by a row", changed(lambda _r, y, *_: {"y": np.roll(y, 1)}), "order"),
    Planted("y turned round", changed(lambda _r, y, *_: {"y": y[::-1]}), "order"),
    Planted("y moved by a step in each of 4 series, AR(.9)", moved_in_series, "order"),
    Planted("predictions of two sites exchanged", exchanged_sites(), "exchanged"),
    Planted(
        "y in Fahrenheit from a row on",
        changed(lambda _r, y, *_: {"y": np.where(np.arange(len(y)) < len(y) / 2, y, 1.8 * y + 32)}),
        "units",
    ),
    Planted(
        "the logarithm of y",
        changed(lambda _r, y, *_: {"y": np.log(np.maximum(y, 0.1))}),
        "log",
    ),
    Planted("predictions by 1.5", in_other_units(1 / 1.5), "multiple"),
    Planted(
        "an input that nearly is y",
        changed(
            lambda rng, y, _m, sd, _s: {"x": {"late": y + 0.02 * sd * rng.normal(size=len(y))}}
        ),
        "target",
    ),
)
"""Each thing that rows may be."""
ALL_RIGHT = "all correctly specified models above"
ROW_SIZES = (30, 300, 3_000, 100_000)


def planted(task: tuple[int, int, int]) -> tuple[int, int, bool, list[str]]:
    """Whether one table's rows are named, and what else is ✗."""
    place, n, number = task
    held = PLANTED[place].world(np.random.default_rng([2_000 + place, n, number]), n)
    named = PLANTED[place].check in {each.name for each in row_faults(held)}
    bad = [each.id for each in examine(held)[0] if each.state == "bad" and each.id != "rows"]
    return place, n, named, bad


def planted_lines(found: dict[tuple[int, int], list[tuple[bool, list[str]]]]) -> list[str]:
    """How often rows are named, and other lines ✗: a line for each fault and number of rows."""
    lines = []
    for (place, n), told in found.items():
        others = Counter(i for _, bad in told for i in bad)
        which = ", ".join(f"{i} {share(count, len(told))}" for i, count in others.most_common(4))
        seen = share(sum(named for named, _ in told), len(told))
        lines.append(
            f"| {PLANTED[place].name} | {n:,} | {seen} "
            f"| {share(sum(bool(bad) for _, bad in told), len(told))} | {which} | {len(told)} |"
        )
    return lines


def suspected(task: tuple[int, int, int]) -> tuple[int, list[str]]:
    """What is said of rows of one table of a right model."""
    place, n, number = task
    held = CELLS[place].world(np.random.default_rng([3_000 + place, n, number]), n)
    return n, [each.name for each in row_faults(held)]


def suspected_lines(found: dict[int, list[list[str]]]) -> list[str]:
    """How often anything is said of rows of right models: a line for each number of rows."""
    lines = []
    for n, told in found.items():
        which = Counter(name for names in told for name in names)
        listed = ", ".join(f"{name} {count}" for name, count in which.most_common())
        lines.append(
            f"| {ALL_RIGHT} | {n:,} | {share(sum(map(bool, told)), len(told))} "
            f"| {listed} | {len(told):,} |"
        )
    return lines


Gone = Callable[[np.random.Generator, Rows, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Lacking:
    """Rows of which some have no y, with how many times too large their sds are stated.

    `gone` is given a generator, the rows and their errors in sds.
    """

    name: str
    gone: Gone
    times: float = 1.0

    @property
    def apart(self) -> bool:
        """Whether what was stated of rows without y is otherwise."""
        return self.name.startswith("those of") or "site" in self.name


def largest(values: np.ndarray, part: float) -> np.ndarray:
    """The rows of the largest values."""
    return values > np.quantile(values, 1.0 - part)


def logistic(errors: np.ndarray) -> np.ndarray:
    """A chance that rises with the size of an error."""
    return special.expit(3.0 * (np.abs(errors) - 1.5))


LACKING = (
    Lacking("a quarter at random", lambda rng, d, z: rng.random(len(z)) < 0.25),
    Lacking("those of the widest quarter", lambda rng, d, z: largest(d.sd, 0.25)),
    Lacking("those of the widest 5 %", lambda rng, d, z: largest(d.sd, 0.05)),
    Lacking(
        "a fifth in one site, a tenth elsewhere",
        lambda rng, d, z: rng.random(len(z)) < np.where(d.groups["site"] == "B", 0.2, 0.1),
    ),
    Lacking("the quarter with the largest errors", lambda rng, d, z: largest(np.abs(z), 0.25)),
    Lacking("more of larger errors", lambda rng, d, z: rng.random(len(z)) < logistic(z)),
    Lacking("2 % at random, sd × 1.25", lambda rng, d, z: rng.random(len(z)) < 0.02, 1.25),
    Lacking("a quarter at random, sd × 1.25", lambda rng, d, z: rng.random(len(z)) < 0.25, 1.25),
    Lacking("a quarter at random, sd × 1.6", lambda rng, d, z: rng.random(len(z)) < 0.25, 1.6),
)
"""Which rows have no y."""
LACKING_SIZES = (400, 1_600)


def without_labels(task: tuple[int, int, int]) -> tuple[int, int, tuple[bool, bool]]:
    """Whether rows of one table without y are said to be apart, and the others may be narrowed."""
    place, n, number = task
    rng = np.random.default_rng([4_000 + place, n, number])
    drawn, errors, what = rows(rng, n), rng.normal(size=n), LACKING[place]
    gone = what.gone(rng, drawn, errors)
    y = np.where(gone, np.nan, drawn.mean + drawn.sd * errors)
    table = {"y": y, "mean": drawn.mean, "sd": what.times * drawn.sd, **drawn.groups}
    (held,) = load(table, missing="drop", groups="site,sex").evalsets
    fault = without_y(Case(held, {}, 0.9))
    return (
        place,
        n,
        (fault is not None and bool(fault.facts["apart"]), least_width(held, 0.9) < 1.0),
    )


def lacking_lines(found: dict[tuple[int, int], list[tuple[bool, bool]]]) -> list[str]:
    """How often rows without y are apart, and narrowing is allowed: a line for each kind and n."""
    return [
        f"| {LACKING[place].name} | {n:,} | {share(sum(a for a, _ in told), len(told))} "
        f"| {share(sum(b for _, b in told), len(told))} | {len(told)} |"
        for (place, n), told in found.items()
    ]


Drawn = tuple[np.ndarray, list[Any]]


@dataclass(frozen=True)
class Race:
    """Models of which the first `best` are equally good, and none is better."""

    name: str
    draw: Callable[[np.random.Generator, int], Drawn]
    best: int
    dated: bool = False


def equal_spread(narrow: float) -> float:
    """The factor above 1 by which an sd has the expected CRPS that it has by one below 1."""

    def score(factor: float) -> float:
        return math.sqrt(2 * (1 + factor**2)) - factor

    return float(optimize.brentq(lambda wide: score(wide) - score(narrow), 1.001, 10))


def normals(
    *models: tuple[float, float],
    noise: tuple[float, ...] = (),
    error: Callable[[np.random.Generator, int], np.ndarray] = np.random.Generator.normal,
) -> Callable[[np.random.Generator, int], Drawn]:
    """Normal predictions off by so much in mean and factor, or by `noise`, drawn for each row."""

    def draw(rng: np.random.Generator, n: int) -> Drawn:
        mean = rng.normal(size=n)
        y = mean + error(rng, size=n)
        made = [Distribution.normal(mean + off, np.full(n, factor)) for off, factor in models]
        made += [
            Distribution.normal(mean + size * rng.normal(size=n), np.full(n, 1.0)) for size in noise
        ]
        return y, made

    return draw


def by_season(rng: np.random.Generator, n: int) -> Drawn:
    """Two normal predictions, each off by errors that come again after 12 times."""
    off = [process(*season(12, 0.8))(rng, n)[0] for _ in range(2)]
    return rng.normal(size=n), [Distribution.normal(each, np.full(n, math.sqrt(2))) for each in off]


def student(rng: np.random.Generator, size: int) -> np.ndarray:
    """Errors of heavy tails."""
    return rng.standard_t(3, size)


def four_kinds(rng: np.random.Generator, n: int) -> Drawn:
    """The right prediction as a law, as 20 and as 50 members, and as five quantiles."""
    mean = rng.normal(size=n)
    members = [Samples(mean[:, None] + rng.normal(size=(n, size))) for size in (20, 50)]
    table = Quantiles(FIVE, mean[:, None] + stats.norm.ppf(FIVE))
    return mean + rng.normal(size=n), [Distribution.normal(mean, np.ones(n)), *members, table]


RACES = (
    Race("2 tied by bias", normals((0.2, 1), (-0.2, 1)), 2),
    Race("2 tied by spread", normals((0, 0.7), (0, equal_spread(0.7))), 2),
    Race("2 nearly tied", normals((0.2, 1), (0.21, 1)), 1),
    Race("3, two tied", normals((0.2, 1), (-0.2, 1), (0.5, 1)), 2),
    Race("3 nearly tied", normals((0.2, 1), (0.21, 1), (0.22, 1)), 1),
    Race("10 tied", normals(noise=(0.3,) * 10), 10),
    Race("10 tied, t3 errors", normals(noise=(0.3,) * 10, error=student), 10),
    Race("10 nearly tied", normals(noise=tuple(0.3 + 0.01 * k for k in range(10))), 1),
    Race("10, one better", normals(noise=(0.1, *(0.4,) * 9)), 1),
    Race("12 tied", normals(noise=(0.3,) * 12), 12),
    Race("the right prediction in four kinds", four_kinds, 4),
    Race("2 tied, off by errors of lag 12", by_season, 2, dated=True),
)
"""Models beside each other."""
RACE_SIZES = (300, 1_000)


def race(task: tuple[int, int, int]) -> tuple[int, int, np.ndarray]:
    """Which models of one table are in the best set."""
    place, n, number = task
    y, made = RACES[place].draw(np.random.default_rng([1_000 + place, n, number]), n)
    times = np.arange(n) if RACES[place].dated else None
    sets = [EvalSet.checked(y, each, model=f"{k:02d}", time=times) for k, each in enumerate(made)]
    metrics = ["crps", "crps_fair", "pinball"]
    found = standing([evaluate(held, metrics=metrics) for held in sets])
    kept = {name for name, best in zip(found.models, found.best, strict=True) if best}
    return place, n, np.array([held.model in kept for held in sets])


def races(found: dict[tuple[int, int], list[np.ndarray]]) -> list[str]:
    """How often the best set holds the best: a line for each race and number of rows."""
    lines = []
    for (place, n), told in found.items():
        best = np.array(told)[:, : RACES[place].best]
        lines.append(
            f"| {RACES[place].name} | {n:,} | {share(int(best.sum()), best.size)} "
            f"| {share(int(best.all(axis=1).sum()), len(told))} "
            f"| {np.array(told).sum(axis=1).mean():.1f} | {len(told)} |"
        )
    return lines


def table(task: tuple[int, int, int]) -> tuple[int, int, dict[str, str], float]:
    """The states of one table's findings, and the seconds that they took."""
    place, n, number = task
    rng = np.random.default_rng([place, n, number])
    held = CELLS[place].world(rng, n)
    start = time.process_time()
    findings, _ = examine(held)
    return place, n, {f.id: f.state for f in findings}, time.process_time() - start


_FAULTY = 4
"""Of so many tables one is drawn again with each fault."""


def panelled(task: tuple[int, int]) -> tuple[int, list[str], bool, list[bool]]:
    """What is ✗ of one table of a panel, whether bias is answered, and which faults are named."""
    place, number = task
    _, noise, n = PANELS[place]

    def judged(**fault: float) -> list[Any]:
        rng = np.random.default_rng([4_000 + place, n, number])
        return list(examine(dependent(noise, "normal", **fault)(rng, n))[0])

    def bad(findings: list[Any]) -> list[str]:
        return [each.id for each in findings if each.state == "bad"]

    right, named = judged(), []
    if number % _FAULTY == 0:
        named = ["bias" in bad(judged(shift=0.3)), "spread" in bad(judged(scale=1.2))]
    return place, bad(right), any(each.id == "bias" and each.p == each.p for each in right), named


def panel_lines(found: dict[int, list[tuple[list[str], bool, list[bool]]]]) -> list[str]:
    """What is ✗ of right models, and how often faults are named: a line for each panel."""
    lines = []
    for place, told in found.items():
        red, answered, named = zip(*told, strict=True)
        which = ", ".join(
            f"{i} {k}" for i, k in Counter(i for ids in red for i in ids).most_common()
        )
        shares = [answered, *zip(*(each for each in named if each), strict=True)]
        cells = [share(sum(map(bool, red)), len(told)), which]
        cells += [share(sum(each), len(each)) for each in shares]
        name, _, n = PANELS[place]
        lines.append(f"| {name} | {n:,} | {' | '.join(cells)} | {len(told)} |")
    return lines


def tasks(tables: int, cells: list[int]) -> Iterator[tuple[int, int, int]]:
    """Every table of every cell; fewer of many rows."""
    for place in cells:
        for n in CELLS[place].sizes:
            count = tables if n <= 1_000 else max(tables // 3, 10)
            yield from ((place, n, number) for number in range(count))


def share(count: int, total: int) -> str:
    """A share in percent."""
    return f"{100 * count / total:.1f}"


INPUTS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "uniform": lambda rng, shape: rng.uniform(-math.sqrt(3), math.sqrt(3), shape),
    "lognormal(.5)": lambda rng, shape: rng.lognormal(0.0, 0.5, shape),
}
"""Laws of inputs that a monitor is tried on."""


def watched(task: tuple[str, int, int, int]) -> dict[str, list[float]]:
    """Shares of 200 new rows that one monitor calls outside or flags, and whether it turns red.

    The model is right, or wrong by 2 sd in the upper quarter of the first input. Quarters go by
    distance from the centre; rows 3 sd outside have one input 3 sd beyond the reference's largest.
    """
    law, width, n, number = task
    rng = np.random.default_rng([width, n, number, len(law)])
    drawn = {name: INPUTS[law](rng, (size, width)) for name, size in (("held", n), ("new", 200))}
    names = [f"x{k}" for k in range(width)]

    def columns(x: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(names, x.T, strict=True))

    def judged(x: np.ndarray, fault: np.ndarray) -> tuple[dict[str, np.ndarray], set[str]]:
        found = report_of(monitors[bool(fault.any())], load_unlabelled(columns(x), loaded))
        return found.table.columns, {
            each.id for each in found.report.findings if each.state == "bad"
        }

    held, new = drawn["held"], drawn["new"]
    edge = np.quantile(held[:, 0], 0.75)
    mean = np.sin(2 * held[:, 0])
    y = mean + 0.5 * rng.normal(size=n)
    monitors = {}
    for wrong in (False, True):
        stated = mean + wrong * 1.0 * (held[:, 0] > edge)
        table = {**columns(held), "y": y, "mean": stated, "sd": np.full(n, 0.5)}
        loaded = load(table, features=",".join(names))
        monitors[wrong] = fit_monitor(loaded.evalsets[0], seed=number)
    none = np.zeros(200, dtype=bool)
    right, red = judged(new, none)
    reach = np.linalg.norm((new - np.median(held, axis=0)) / held.std(axis=0), axis=1)
    quarter = np.argsort(np.argsort(reach)) // 50
    said = right["outside"] | right["flagged"]
    far = new.copy()
    far[np.arange(200), np.arange(200) % width] = (held.max(axis=0) + 3 * held.std(axis=0))[
        np.arange(200) % width
    ]
    beside, _ = judged(new, new[:, 0] > edge)
    apart = (edge - new[:, 0]) / held[:, 0].std()
    inside = ~beside["outside"]

    def of(which: np.ndarray, flags: np.ndarray) -> float:
        return float(flags[which].mean()) if which.any() else math.nan

    return {
        "red": [float(bool(red))],
        "outside": [of(quarter == k, right["outside"]) for k in range(4)],
        "said": [of(quarter == k, said) for k in range(4)],
        "far": [float(judged(far, none)[0]["outside"].mean())],
        "smoothed": [of((apart > 0.5) & inside, beside["p_value"] <= 0.05)],
        "beside": [of((apart > 0.5) & inside, beside["flagged"])],
        "wrong": [of((apart < 0) & inside, beside["flagged"])],
    }


def monitored(found: dict[tuple[str, int, int], list[dict[str, np.ndarray]]]) -> list[str]:
    """Rows outside, right rows, wrong rows: a line for each law of inputs and number of rows."""
    lines = []
    for (law, width, n), drawn in found.items():
        told = {key: 100 * np.nanmean([each[key] for each in drawn], axis=0) for key in drawn[0]}
        cells = [
            f"{told['red'][0]:.1f}",
            *(" / ".join(f"{v:.1f}" for v in told[key]) for key in ("outside", "said")),
            f"{told['far'][0]:.1f}",
            f"{told['beside'][0]:.1f} ({told['smoothed'][0]:.0f})",
            f"{told['wrong'][0]:.0f}",
        ]
        lines.append(f"| {law}, {width} | {n:,} | {' | '.join(cells)} | {len(drawn)} |")
    return lines


@dataclass(frozen=True)
class Section:
    """A table of the page. Lines are known by their first cells; those not drawn anew are kept."""

    title: str
    about: str
    head: str
    known: list[tuple[str, ...]]
    misses: Callable[[list[str]], bool]

    def text(self, drawn: list[str], before: str) -> list[str]:
        """The section, with lines of the page as it was where none was drawn."""
        _, _, held = before.partition(f"## {self.title}\n")
        kept = [line for line in held.partition("\n## ")[0].splitlines() if line.startswith("| ")]
        lines = {self.key(line): line for line in [*kept, *drawn]}
        shown = [lines[key] for key in self.known if key in lines]
        off = [", n = ".join(cells[:2]) for cells in map(split, shown) if self.misses(cells)]
        rule = "|" + "|".join(
            ":--" if place == 0 else "--:" for place in range(len(split(self.head)))
        )
        told = ["", self.about, "", self.head, f"{rule}|", *shown, ""]
        return [f"## {self.title}", *told, f"Off the bar: {'; '.join(off) or 'none'}.", ""]

    def key(self, line: str) -> tuple[str, ...]:
        """The cells that name a line."""
        return tuple(split(line)[: len(self.known[0])])


def split(line: str) -> list[str]:
    """The cells of a line."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def beyond(value: str, bar: float, tables: str) -> bool:
    """Whether a share in percent is above a bar by more than three binomial errors."""
    return float(value) / 100 > bar + 3 * math.sqrt(bar * (1 - bar) / int(tables))


def named_in(cell: Cell) -> str:
    """A fault as its line calls it."""
    return f"{cell.name} (large)" if cell.large else cell.name


def seldom_named(cells: list[str]) -> bool:
    """Whether a fault is named in too few tables for its size and number of rows."""
    cell = next(cell for cell in CELLS if cell.named and named_in(cell) == cells[0])
    last = int(cells[1].replace(",", "")) >= cell.sizes[-1]
    return float(cells[3]) / 100 < (0.95 if last else 0.9 if cell.large else 0.0)


RIGHT = Section(
    "Correctly specified models: tables with any ✗",
    "The bar is 5 %. By chance alone, up to 8.8 % are possible with 300 tables, and 11.5 % with "
    "100.",
    "| model | n | any ✗, % | of which | tables |",
    [(cell.name, f"{n:,}") for cell in CELLS if not cell.named for n in cell.sizes],
    lambda cells: beyond(cells[2], 0.05, cells[4]),
)
FAULTS = Section(
    "Faults: detected in their own finding",
    "The bar is 95 % at the largest n, and 90 % at n = 1,000 for large faults. *False* counts "
    "tables with ✗ in a finding that is unrelated to the fault.",
    "| fault | n | own line | named, % | false, % | other ✗ |",
    [(named_in(cell), f"{n:,}") for cell in CELLS if cell.named for n in cell.sizes],
    seldom_named,
)
SERIES = Section(
    "Several series at the same times",
    "The bar is 5 % of tables of a correctly specified model. *Answered* counts tables with a "
    "p-value of bias; the others have an effective sample size below 10, or fewer than 30 times "
    "if series share shocks or are unknown. *Bias* and *spread* count the detections of a bias "
    "of .3 sd, and of errors 1.2 times as large as predicted, in a quarter of the tables. "
    "Shocks are given as their share of the variance.",
    "| series | n | any ✗, % | of which | answered, % | bias, % | spread, % | tables |",
    [(name, f"{n:,}") for name, _, n in PANELS],
    lambda cells: beyond(cells[2], 0.05, cells[7]),
)
BEST = Section(
    "Comparison of models: the best set",
    "The bar is 95 % for the best model, and for each of several tied models. *All* counts "
    "tables whose best set contains every tied model.",
    "| models | n | best contained, % | all tied contained, % | models in the set | tables |",
    [(each.name, f"{n:,}") for each in RACES for n in RACE_SIZES],
    lambda cells: beyond(f"{100 - float(cells[2]):.6f}", 0.05, cells[5]),
)
ROWS_RIGHT = Section(
    "Rows of correctly specified models: any warning",
    "The bar is 0.5 %; only the finding `rows` is computed.",
    "| models | n | warned, % | of which | tables |",
    [(ALL_RIGHT, f"{n:,}") for n in ROW_SIZES],
    lambda cells: beyond(cells[2], 0.005, cells[4].replace(",", "")),
)
ROWS_PLANTED = Section(
    "Faults of the data",
    "The model is correctly specified apart from the planted fault. *Named*: detected with its own "
    "check in `rows`; the bar is 95 % at the largest n. *Any other ✗*: faults that the rows do not "
    "explain.",
    "| rows | n | named, % | any other ✗, % | of which, % | tables |",
    [(each.name, f"{n:,}") for each in PLANTED for n in each.sizes],
    lambda cells: cells[1] != "100" and float(cells[2]) < 95.0,
)


def wrong_of_labels(cells: list[str]) -> bool:
    """Whether rows without y are too often said to be apart, or too seldom, or narrowed."""
    what = next(each for each in LACKING if each.name == cells[0])
    narrowed = what.times == 1.0 and beyond(cells[3], 0.01, cells[4])
    if not what.apart:
        return narrowed or beyond(cells[2], 0.05, cells[4])
    return narrowed or (cells[1] == "1,600" and float(cells[2]) < 95.0)


LABELS = Section(
    "Rows without y",
    "*Apart* counts tables where predictions of rows without y are reported to differ: the bar is "
    "5 % if they do not, and 95 % at n = 1,600 if they do. *Narrowed* counts tables where a "
    "recalibration may narrow intervals: the bar is 1 % for correct predicted sds.",
    "| rows without y | n | apart, % | narrowed, % | tables |",
    [(each.name, f"{n:,}") for each in LACKING for n in LACKING_SIZES],
    wrong_of_labels,
)


WATCHED = [(law, width, n) for law in INPUTS for width in (1, 2, 3) for n in (300, 1_000)]
MONITOR = Section(
    "The monitor",
    "Shares of new rows, in percent. Quarters of correctly predicted rows go from the centre to "
    "the edge. The bars are 5 % outside or flagged in each, and 99 % of rows 3 sd outside. "
    "*Beside*: flagged rows with correct predictions, at least half an sd from a quarter where the "
    "model is wrong by 2 sd; in brackets, the share that the smoothed error alone would flag at 5 "
    "%. *Wrong*: flagged rows of that quarter.",
    "| inputs | n | any ✗ | outside, by quarter | outside or flagged, by quarter | 3 sd outside "
    "| beside | wrong | tables |",
    [(f"{law}, {width}", f"{n:,}") for law, width, n in WATCHED],
    lambda cells: max(map(float, cells[4].split(" / "))) > 5.0 or float(cells[5]) < 99.0,
)


def right_lines(found: dict[tuple[int, int], list[dict[str, str]]]) -> list[str]:
    """Tables of right models with any ✗: a line for each cell and number of rows."""
    lines = []
    for (place, n), told in found.items():
        if CELLS[place].named:
            continue
        red = Counter(i for states in told for i, s in states.items() if s == "bad")
        any_red = sum("bad" in states.values() for states in told)
        which = ", ".join(f"{name} {count}" for name, count in red.most_common())
        lines.append(
            f"| {CELLS[place].name} | {n:,} | {share(any_red, len(told))} | {which} | {len(told)} |"
        )
    return lines


def fault_lines(found: dict[tuple[int, int], list[dict[str, str]]]) -> list[str]:
    """Tables whose fault is named: a line for each cell and number of rows."""
    lines = []
    for (place, n), told in found.items():
        cell = CELLS[place]
        if not cell.named:
            continue
        named = sum(any(states.get(i) == "bad" for i in cell.named) for states in told)
        wrong = sum(any(states.get(i) == "bad" for i in cell.false) for states in told)
        others = Counter(
            i for s in told for i, state in s.items() if state == "bad" and i not in cell.named
        )
        which = ", ".join(f"{i} {share(count, len(told))}" for i, count in others.most_common(4))
        lines.append(
            f"| {named_in(cell)} | {n:,} | {', '.join(cell.named)} | {share(named, len(told))} "
            f"| {share(wrong, len(told)) if cell.false else '–'} | {which} |"
        )
    return lines


def unseen() -> list[str]:
    """What no number of rows shows, by the reason that the verdict gives."""
    lines = [
        "## What cannot be detected",
        "",
        "| fault | finding | result in the verdict |",
        "|:--|:--|:--|",
    ]
    for name, finding, world in UNSEEN:
        told, silent = examine(world(np.random.default_rng(0), 2_000))
        states = {each.id: each.sentence for each in told}
        lines.append(f"| {name} | {finding} | {states.get(finding) or silent[finding]} |")
    return [*lines, ""]


def main() -> None:
    """Draw, judge, count, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cells", nargs="*", default=[], help="parts of names; others are kept")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    chosen = parser.parse_args()

    def asked(name: str) -> bool:
        return not chosen.cells or any(part in name for part in chosen.cells)

    cells = [place for place, cell in enumerate(CELLS) if asked(cell.name)]
    raced_tasks = [
        (place, n, number)
        for place, each in enumerate(RACES)
        if asked(each.name)
        for n in RACE_SIZES
        for number in range(chosen.tables)
    ]
    watched_tasks = [
        (*task, number)
        for task in WATCHED
        if asked(f"monitor of {task[0]}")
        for number in range(max(chosen.tables // 3, 10))
    ]
    planted_tasks = [
        (place, n, number)
        for place, each in enumerate(PLANTED)
        if asked(f"rows: {each.name}")
        for n in each.sizes
        for number in range(max(chosen.tables // 3, 10))
    ]
    lacking_tasks = [
        (place, n, number)
        for place, each in enumerate(LACKING)
        if asked(f"without y: {each.name}")
        for n in LACKING_SIZES
        for number in range(chosen.tables)
    ]
    suspected_tasks = [
        (place, n, number)
        for n in ROW_SIZES
        for place, cell in enumerate(CELLS)
        if not cell.named and asked("rows: right models") and (n <= 3_000 or "AR(" not in cell.name)
        for number in range(max(chosen.tables * 30 // n, 2) if n > 300 else chosen.tables // 3)
    ]
    panel_tasks = [
        (place, number)
        for place, (name, *_) in enumerate(PANELS)
        if asked(name)
        for number in range(chosen.tables)
    ]
    of_panels: dict[int, list[tuple[list[str], bool, list[bool]]]] = {}
    of_rows: dict[tuple[int, int], list[tuple[bool, list[str]]]] = {}
    said: dict[int, list[list[str]]] = {}
    lacking: dict[tuple[int, int], list[tuple[bool, bool]]] = {}
    found: dict[tuple[int, int], list[dict[str, str]]] = {}
    raced: dict[tuple[int, int], list[np.ndarray]] = {}
    seen: dict[tuple[str, int, int], list[dict[str, np.ndarray]]] = {}
    used = 0.0
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for place, n, states, seconds in pool.map(table, tasks(chosen.tables, cells), chunksize=10):
            if (place, n) not in found:
                print(f"{CELLS[place].name}, n = {n:,}", flush=True)
            found.setdefault((place, n), []).append(states)
            used += seconds
        for place, *told in pool.map(panelled, panel_tasks, chunksize=10):
            of_panels.setdefault(place, []).append(tuple(told))
        for place, n, named, bad in pool.map(planted, planted_tasks, chunksize=5):
            of_rows.setdefault((place, n), []).append((named, bad))
        for place, n, told in pool.map(without_labels, lacking_tasks, chunksize=20):
            lacking.setdefault((place, n), []).append(told)
        for n, names in pool.map(suspected, suspected_tasks, chunksize=20):
            said.setdefault(n, []).append(names)
        for place, n, kept in pool.map(race, raced_tasks, chunksize=10):
            raced.setdefault((place, n), []).append(kept)
        for task, shares in zip(
            watched_tasks, pool.map(watched, watched_tasks, chunksize=5), strict=True
        ):
            seen.setdefault(task[:3], []).append(shares)
    before = chosen.output.read_text(encoding="utf-8") if chosen.output.exists() else ""
    lines = [
        "# How often the verdict is right: correct models and faults",
        "",
        "Made with `python benchmarks/verdict.py`, which simulates tables, assesses them and "
        "counts the results. With `--cells`, only the named cells are simulated again.",
        "",
        *RIGHT.text(right_lines(found), before),
        *FAULTS.text(fault_lines(found), before),
        *SERIES.text(panel_lines(of_panels), before),
        *ROWS_PLANTED.text(planted_lines(of_rows), before),
        *ROWS_RIGHT.text(suspected_lines(said), before),
        *LABELS.text(lacking_lines(lacking), before),
        *BEST.text(races(raced), before),
        *MONITOR.text(monitored(seen), before),
        *unseen(),
    ]
    for kept in MARKED.finditer(before):
        lines += [kept.group(), ""]
    chosen.output.write_text("\n".join(lines), encoding="utf-8")
    print(f"{sum(map(len, found.values())):,} tables, {used:,.0f} s of processor time")
    assert set(questions()) >= {i for cell in CELLS for i in (*cell.named, *cell.false)}


if __name__ == "__main__":
    main()
