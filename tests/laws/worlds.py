"""Evaluation sets of every kind, and what laws do to them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    Prediction,
    Quantiles,
    Samples,
)

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])


def make(
    kind: str, n: int, rng: np.random.Generator, *, spread: float = 1.0, bias: float = 0.2
) -> EvalSet:
    """Imperfect predictions of one kind about normal truth; sd varies by row unless spread is 0."""
    sd = np.exp(spread * rng.uniform(-0.7, 0.7, n))
    mean = 3.0 * spread * rng.normal(size=n)
    y = mean + bias + sd * rng.normal(size=n)
    return EvalSet.checked(y, prediction(kind, mean, sd, rng))


def prediction(
    kind: str, mean: np.ndarray, sd: np.ndarray, rng: np.random.Generator
) -> tuple[Prediction, ...]:
    """A prediction of this kind in normal laws."""
    if kind == "intervals":
        z = special.ndtri([0.9, 0.95])
        low, high = mean[:, None] - sd[:, None] * z, mean[:, None] + sd[:, None] * z
        return (Intervals(low, high, coverage=[0.8, 0.9]),)
    if kind == "normal":
        return (Distribution.normal(mean, sd),)
    if kind == "logistic":
        return (Distribution("logistic", {"loc": mean, "scale": sd * np.sqrt(3) / np.pi}),)
    if kind == "quantiles":
        return (Quantiles(LEVELS, mean[:, None] + sd[:, None] * special.ndtri(LEVELS)),)
    members = {"samples": 39, "ensemble": 10}[kind]
    return (Samples(mean[:, None] + sd[:, None] * rng.normal(size=(len(mean), members))),)


def make_counts(kind: str, n: int, rng: np.random.Generator, *, bias: float = 1.2) -> EvalSet:
    """Counts beside laws of one family whose means are too high by a factor ``bias``."""
    mu = np.exp(rng.uniform(-1.0, 3.0, n))
    second = {
        "negative_binomial": ("dispersion", 0.3),
        "double_poisson": ("phi", 0.6),
    }
    parameters = {"mu": mu}
    if kind in second:
        name, centre = second[kind]
        parameters[name] = centre * np.exp(rng.uniform(-0.5, 0.5, n))
    y = Distribution(kind, parameters).sample(rng, 1)[:, 0]
    return EvalSet.checked(y, Distribution(kind, parameters | {"mu": bias * mu}))


KINDS = ("intervals", "normal", "logistic", "quantiles", "samples", "ensemble")
COUNT_KINDS = ("poisson", "negative_binomial", "double_poisson")


def affine(held: EvalSet, shift: float, scale: float) -> EvalSet:
    """y and predictions mapped by y → shift + scale·y; scale may be negative."""

    def move(values: np.ndarray) -> np.ndarray:
        return shift + scale * values

    def moved(part: Prediction) -> Prediction:
        if isinstance(part, Intervals):
            ends = (move(part.lower), move(part.upper))
            return Intervals(*(ends if scale > 0 else ends[::-1]), coverage=part.coverages)
        if isinstance(part, Quantiles):
            levels = part.levels if scale > 0 else 1.0 - part.levels
            return Quantiles(levels, move(part.values))
        if isinstance(part, Samples):
            return Samples(move(part.sorted_samples))
        assert isinstance(part, Distribution)
        changed = {
            "loc": move(part.parameters["loc"]),
            "scale": abs(scale) * part.parameters["scale"],
        }
        return Distribution(part.law, changed)

    point = None if held.point is None else move(held.point)
    return EvalSet.checked(move(held.y), tuple(moved(b) for b in held.predictions), point=point)


Change = Callable[[EvalSet], EvalSet]
