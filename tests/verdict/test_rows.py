"""Rows that are not what they seem are named, and right models are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from howsure.core.rng import child
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Quantiles,
    Samples,
    content_order,
)
from howsure.verdict import examine
from howsure.verdict.dependence import follow
from howsure.verdict.rows import RowFault, row_faults

Rng = np.random.Generator
FIVE = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def parts(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A mean and an sd a row."""
    return rng.normal(10.0, 2.0, n), np.exp(0.5 * rng.normal(size=n))


def normal(rng: Rng, n: int) -> EvalSet:
    mean, sd = parts(rng, n)
    groups = {"site": rng.choice(list("ABC"), n), "event": rng.integers(2, size=n)}
    held = Distribution.normal(mean, sd)
    return EvalSet.checked(rng.normal(mean, sd), held, groups=groups, features={"x": mean})


def one_width(rng: Rng, n: int) -> EvalSet:
    mean = rng.normal(size=n)
    return EvalSet.checked(mean + rng.normal(size=n), Distribution.normal(mean, np.ones(n)))


def constant(rng: Rng, n: int) -> EvalSet:
    x = rng.normal(size=n)
    held = Distribution.normal(np.zeros(n), np.ones(n))
    return EvalSet.checked(rng.normal(size=n), held, features={"x": x})


def constant_rounded(rng: Rng, n: int) -> EvalSet:
    return EvalSet.checked(rng.normal(5, 1, n).round(1), Distribution.normal(np.full(n, 5.0), 1.0))


def two_predictions(rng: Rng, n: int) -> EvalSet:
    mean = rng.choice([1.0, 3.0], n)
    return EvalSet.checked(rng.normal(mean, 1).round(2), Distribution.normal(mean, np.ones(n)))


def rounded(rng: Rng, n: int) -> EvalSet:
    """Both to a digit, so that rows tie in both."""
    mean, sd = parts(rng, n)
    sd = np.maximum(sd.round(1), 0.5)
    mean = mean.round(1)
    return EvalSet.checked(rng.normal(mean, sd).round(1), Distribution.normal(mean, sd))


def student(rng: Rng, n: int) -> EvalSet:
    mean, sd = parts(rng, n)
    held = Distribution.from_scipy(stats.t(3, mean, sd))
    return EvalSet.checked(mean + sd * rng.standard_t(3, n), held)


def skewed(rng: Rng, n: int) -> EvalSet:
    scale = np.exp(rng.normal(size=n))
    return EvalSet.checked(
        scale * rng.gamma(2, size=n),
        Quantiles(FIVE, stats.gamma.ppf(FIVE, 2, scale=scale[:, None])),
    )


def lognormal(rng: Rng, n: int) -> EvalSet:
    scale = np.exp(2 * rng.normal(size=n))
    held = Distribution.from_scipy(stats.lognorm(1.0, scale=scale))
    return EvalSet.checked(scale * np.exp(rng.normal(size=n)), held)


def counts(rng: Rng, n: int) -> EvalSet:
    rate = np.exp(1 + rng.normal(size=n))
    held = Distribution.from_scipy(stats.poisson(rate))
    return EvalSet.checked(rng.poisson(rate).astype(float), held, features={"rate": rate})


def repeated_patients(rng: Rng, n: int) -> EvalSet:
    """Counts of patients that are seen three times, with the same inputs."""
    rate = np.repeat(np.exp(rng.normal(size=n // 3)), 3)
    held = Distribution.from_scipy(stats.poisson(rate))
    return EvalSet.checked(rng.poisson(rate).astype(float), held, features={"rate": rate})


def log_counts(rng: Rng, n: int) -> EvalSet:
    """One prediction for all; y is the logarithm of a count."""
    y = np.log1p(rng.poisson(300.0, n))
    centre = np.full(n, np.log(301.0))
    return EvalSet.checked(y, Distribution.normal(centre, 1 / np.sqrt(300)))


def count_samples(rng: Rng, n: int) -> EvalSet:
    rate = np.exp(rng.normal(size=n))
    members = rng.poisson(rate[:, None], (n, 20)).astype(float)
    return EvalSet.checked(rng.poisson(rate).astype(float), Samples(members))


def zero_inflated(rng: Rng, n: int) -> EvalSet:
    """Half of y are 0, as samples know; rows of thirty kinds."""
    scale = np.exp(rng.normal(size=30))[rng.integers(30, size=n)]
    drawn = scale[:, None] * rng.gamma(2, size=(n, 21)) * (rng.random((n, 21)) < 0.5)
    return EvalSet.checked(drawn[:, 0], Samples(drawn[:, 1:]), features={"scale": scale})


def far_from_zero(rng: Rng, n: int) -> EvalSet:
    """0 in a third of rows, near 20,000 in the others, and the quantiles say so."""
    scale = 1 + 0.05 * rng.normal(size=n)
    y = np.where(rng.random(n) < 0.3, 0.0, 20_000 * scale * np.exp(0.1 * rng.normal(size=n)))
    above = 20_000 * scale[:, None] * np.exp(0.1 * stats.norm.ppf((FIVE[2:] - 0.3) / 0.7))
    return EvalSet.checked(y, Quantiles(FIVE, np.column_stack((np.zeros((n, 2)), above))))


def bounded(rng: Rng, n: int) -> EvalSet:
    """Values censored at 0 and 10 by nature, whose samples know it."""
    mean = rng.uniform(0, 10, n)
    drawn = np.clip(mean[:, None] + 3 * rng.normal(size=(n, 21)), 0, 10)
    return EvalSet.checked(drawn[:, 0], Samples(drawn[:, 1:]), features={"x": mean})


def bounded_intervals(rng: Rng, n: int) -> EvalSet:
    mean = rng.uniform(0, 10, n)
    y = np.clip(mean + 3 * rng.normal(size=n), 0, 10)
    ends = (np.clip(mean + 3 * stats.norm.ppf(q), 0, 10) for q in (0.05, 0.95))
    return EvalSet.checked(y, Intervals(*ends, coverage=0.9))


def points(rng: Rng, n: int) -> EvalSet:
    mean = np.exp(rng.normal(size=n))
    return EvalSet.checked(rng.gamma(3, mean / 3), point=mean, features={"x": mean})


def ensemble(rng: Rng, n: int) -> EvalSet:
    drawn = rng.normal(size=(n, 1)) + rng.normal(size=(n, 11))
    return EvalSet.checked(drawn[:, 0], Samples(drawn[:, 1:]))


def weak(rng: Rng, n: int) -> EvalSet:
    """Hardly any signal, so that predictions are close to each other and y is far."""
    mean = 0.01 * rng.normal(size=n)
    held = Distribution.normal(mean, np.ones(n))
    return EvalSet.checked(
        mean + rng.normal(size=n), held, groups={"site": rng.integers(4, size=n)}
    )


def strong(rng: Rng, n: int) -> EvalSet:
    """Hardly any noise."""
    mean = 1000 * rng.normal(size=n)
    held = Distribution.normal(mean, np.full(n, 0.1))
    return EvalSet.checked(mean + 0.1 * rng.normal(size=n), held, features={"x": mean})


def in_time(rng: Rng, n: int) -> EvalSet:
    """The best forecast of a weak memory: a multiple of the value before."""
    y = np.zeros(n + 1)
    for at, fresh in enumerate(rng.normal(size=n), 1):
        y[at] = 0.3 * y[at - 1] + fresh
    held = Distribution.normal(0.3 * y[:-1], np.ones(n))
    return EvalSet.checked(y[1:], held, time=np.arange(n))


def label_sets(rng: Rng, n: int) -> EvalSet:
    members = rng.random((n, 4)) < 0.9
    return EvalSet.checked(rng.integers(4, size=n).astype(float), LabelSets(members, 0.9))


RIGHT: tuple[Callable[[Rng, int], EvalSet], ...] = (
    normal,
    one_width,
    constant,
    constant_rounded,
    two_predictions,
    rounded,
    student,
    skewed,
    lognormal,
    counts,
    repeated_patients,
    log_counts,
    count_samples,
    zero_inflated,
    far_from_zero,
    bounded,
    bounded_intervals,
    points,
    ensemble,
    weak,
    strong,
    in_time,
    label_sets,
)


def drawn(world: Callable[[Rng, int], EvalSet], n: int, number: int) -> EvalSet:
    return world(child(0, "rows", world.__name__, n, number), n)


@pytest.mark.parametrize("world", RIGHT, ids=lambda world: world.__name__)
def test_nothing_is_said_of_right_models(world: Callable[[Rng, int], EvalSet]) -> None:
    for n, tables in ((30, 15), (300, 10), (3_000, 2)):
        for number in range(tables):
            assert not row_faults(drawn(world, n, number)), (n, number)


def names(held: EvalSet) -> list[str]:
    return [each.name for each in row_faults(held)]


def fault(held: EvalSet, name: str) -> RowFault:
    (found,) = (each for each in row_faults(held) if each.name == name)
    return found


# Copies


@pytest.mark.parametrize(
    "world", [normal, one_width, student, lognormal, ensemble, points, constant]
)
@pytest.mark.parametrize(("n", "times"), [(15, 2), (60, 5), (300, 2), (6_000, 5)])
def test_copies_are_found(world: Callable[[Rng, int], EvalSet], n: int, times: int) -> None:
    held = drawn(world, n, 0).take(np.repeat(np.arange(n), times))
    found = fault(held, "copies")
    assert found.rows == n * (times - 1)
    assert found.facts["distinct"] == n
    assert not found.bad


def test_a_bootstrap_sample_and_a_few_copies_are_found() -> None:
    rng = child(0, "bootstrap")
    held = drawn(normal, 400, 1)
    assert fault(held.take(rng.integers(400, size=400)), "copies").rows > 100
    some = held.take(np.r_[np.arange(400), np.arange(12)])
    assert fault(some, "copies").rows == 12
    assert "copies" not in names(held.take(np.r_[np.arange(400), 0, 1]))


def test_copies_are_clusters_and_stay_together() -> None:
    held = drawn(normal, 100, 0).take(np.repeat(np.arange(100), 5))
    (followed,), _ = follow([held], content_order([held]))
    assert followed.cluster is not None
    assert len(followed.cluster.labels) == 100
    for place in range(100):
        assert len(np.unique(followed.y[followed.cluster.codes == place])) == 1


def test_a_right_model_with_each_row_five_times_is_not_condemned() -> None:
    """Any ✗ in 12 of 12 tables, and the advice made fresh rows worse."""
    red = 0
    for number in range(12):
        held = drawn(normal, 150, number).take(np.repeat(np.arange(150), 5))
        findings, _ = examine(held)
        assert (findings[0].id, findings[0].state) == ("rows", "watch")
        red += any(each.state == "bad" for each in findings)
    assert red <= 2


def test_a_wrong_model_with_copies_is_still_condemned() -> None:
    held = drawn(normal, 400, 0)
    wrong = replace(held, beliefs=(Distribution.normal(held.features["x"], np.full(400, 0.4)),))
    findings, _ = examine(wrong.take(np.repeat(np.arange(400), 2)))
    assert {"spread": "bad", "rows": "watch"}.items() <= {e.id: e.state for e in findings}.items()
