"""Perfect models of every kind, whose y an independent sampler draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from scipy import stats

from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
)
from howsure.predictions.distribution import mixture

Rng = np.random.Generator
World = Callable[[Rng, int], tuple[Prediction, Callable[[Rng], np.ndarray]]]
LEVELS = np.array([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])


def spreads(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=n), np.exp(rng.uniform(-0.7, 0.7, n))


def normal(rng: Rng, n: int) -> tuple[Prediction, Callable[[Rng], np.ndarray]]:
    mean, sd = spreads(rng, n)
    return Distribution.normal(mean, sd), lambda r: r.normal(mean, sd)


def student(rng: Rng, n: int) -> tuple[Prediction, Callable[[Rng], np.ndarray]]:
    mean, sd = spreads(rng, n)
    held = Distribution.from_scipy(stats.t(5, mean, sd))
    return held, lambda r: mean + sd * r.standard_t(5, n)


def gamma(rng: Rng, n: int) -> tuple[Prediction, Callable[[Rng], np.ndarray]]:
    shape, scale = rng.uniform(1, 4, n), np.exp(rng.uniform(-0.7, 0.7, n))
    held = Distribution.from_scipy(stats.gamma(shape, scale=scale))
    return held, lambda r: r.gamma(shape, scale)


def two_parts(rng: Rng, n: int) -> tuple[Prediction, Callable[[Rng], np.ndarray]]:
    mean, sd = spreads(rng, n)
    held = mixture(
        [Distribution.normal(mean, sd), Distribution.normal(mean + 3.0, 2.0 * sd)],
        weights=[0.7, 0.3],
    )

    def draw(r: Rng) -> np.ndarray:
        second = r.random(n) < 0.3
        return np.where(second, r.normal(mean + 3.0, 2.0 * sd), r.normal(mean, sd))

    return held, draw


def poisson(rng: Rng, n: int) -> tuple[Prediction, Callable[[Rng], np.ndarray]]:
    rate = np.exp(rng.uniform(0.0, 2.5, n))
    held = Distribution.from_scipy(stats.poisson(rate))
    return held, lambda r: r.poisson(rate).astype(float)


def quantiles(rng: Rng, n: int) -> tuple[Prediction, Callable[[Rng], np.ndarray]]:
    """Uniform laws: between the levels of their tables nothing is lost."""
    low, width = rng.normal(size=n), np.exp(rng.uniform(-0.7, 0.7, n))
    held = Quantiles(LEVELS, low[:, None] + width[:, None] * LEVELS)
    return held, lambda r: r.uniform(low, low + width)


def intervals(rng: Rng, n: int) -> tuple[Prediction, Callable[[Rng], np.ndarray]]:
    mean, sd = spreads(rng, n)
    z = stats.norm.ppf([0.75, 0.95])
    low, high = (mean[:, None] + side * sd[:, None] * z for side in (-1.0, 1.0))
    return Intervals(low, high, coverage=[0.5, 0.9]), lambda r: r.normal(mean, sd)


def label_sets(rng: Rng, n: int) -> tuple[Prediction, Callable[[Rng], np.ndarray]]:
    """Ten classes; the set holds the true one with probability 0.8."""
    size = rng.integers(1, 9, n)

    def draw(r: Rng) -> np.ndarray:
        inside = r.random(n) < 0.8
        return np.where(inside, r.integers(0, size), r.integers(size, 10)).astype(float)

    return LabelSets(np.arange(10) < size[:, None], coverage=0.8), draw


WORLDS: dict[str, World] = {
    "normal": normal,
    "student": student,
    "gamma": gamma,
    "mixture": two_parts,
    "poisson": poisson,
    "quantiles": quantiles,
    "intervals": intervals,
    "label sets": label_sets,
}


def ensembles(rng: Rng, n: int, members: int) -> Iterator[EvalSet]:
    """Tables whose y and members come from one law a row."""
    while True:
        mean, sd = spreads(rng, n)
        drawn = mean[:, None] + sd[:, None] * rng.normal(size=(n, members + 1))
        yield EvalSet.checked(drawn[:, 0], Samples(drawn[:, 1:]))


def with_y(held: EvalSet, y: np.ndarray) -> EvalSet:
    return replace(held, y=y)
