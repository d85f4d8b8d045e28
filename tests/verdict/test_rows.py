"""Rows that are not what they seem are named, and right models are not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

from howsure import Options, assess, load
from howsure.core.errors import InputError
from howsure.core.labels import Categories
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
from howsure.recalibration import recalibrate
from howsure.verdict.advice import try_recalibrations
from howsure.verdict.copies import RowFault, copies
from howsure.verdict.dependence import follow
from howsure.verdict.family import examine
from howsure.verdict.rows import row_faults
from howsure.verdict.words import answer

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


def one_sided(rng: Rng, n: int) -> EvalSet:
    mean, sd = parts(rng, n)
    upper = mean + sd * stats.norm.ppf(0.9)
    held = Intervals(np.full(n, -np.inf), upper, coverage=0.9)
    return EvalSet.checked(rng.normal(mean, sd), held)


def two_widths(rng: Rng, n: int) -> EvalSet:
    """Noise of one size under widths of two: wrong, and no variance."""
    sd = np.where(np.arange(n) < 0.6 * n, 1.0, 0.4)
    return EvalSet.checked(rng.normal(size=n), Distribution.normal(np.zeros(n), sd))


def points(rng: Rng, n: int) -> EvalSet:
    mean = np.exp(rng.normal(size=n))
    return EvalSet.checked(rng.gamma(3, mean / 3), point=mean, features={"x": mean})


def skewed_points(rng: Rng, n: int) -> EvalSet:
    """The mean lies far above most y."""
    mean = np.exp(5.5 + 0.1 * rng.normal(size=n))
    return EvalSet.checked(mean * np.exp(rng.normal(size=n) - 0.5), point=mean)


def some_widths(rng: Rng, n: int) -> EvalSet:
    sd = rng.choice([0.1, 0.2, 0.4, 0.8], n)
    return EvalSet.checked(sd * rng.normal(size=n), Distribution.normal(np.zeros(n), sd))


def walk(rng: Rng, n: int) -> EvalSet:
    """The forecast is the value before."""
    path = np.cumsum(rng.normal(size=n + 1))
    held = Distribution.normal(path[:-1], np.ones(n))
    return EvalSet.checked(path[1:], held, time=np.arange(n))


def cut_at_zero(rng: Rng, n: int) -> EvalSet:
    """Quantiles that know the share at 0."""
    mean = rng.normal(size=n)
    y = np.maximum(rng.normal(mean, 1.0), 0.0)
    return EvalSet.checked(y, Quantiles(FIVE, np.maximum(mean[:, None] + stats.norm.ppf(FIVE), 0)))


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


def smooth(rng: Rng, n: int, lag: int = 0) -> EvalSet:
    """Four series of a long memory, whose level is predicted; y moved within each."""
    n -= n % 4
    level = lfilter([1.0], [1.0, -0.9], rng.normal(size=(4, n // 4)), axis=1)
    y = np.roll(level + 0.3 * rng.normal(size=level.shape), lag, axis=1)
    time, series = np.tile(np.arange(n // 4), 4), np.repeat(list("ABCD"), n // 4)
    held = EvalSet.checked(
        y.ravel(),
        Distribution.normal(level.ravel(), np.full(n, 0.3)),
        time=time,
        series=series,
        groups={"site": series},
    )
    return held.take(rng.permutation(n))


def levels(rng: Rng, n: int, *, exchange: bool = False) -> EvalSet:
    """Rows by site, each of its own level, and predictions of two sites exchanged."""
    held = normal(rng, n)
    held = held.take(np.argsort(held.groups["site"].codes, kind="stable"))
    held = replace(held, rows=np.arange(n))
    mean, _ = of(held)
    codes = held.groups["site"].codes
    level = np.array([0.0, 6.0, 15.0])
    other = np.array([1, 0, 2]) if exchange else np.arange(3)
    return wrong(held, y=held.y + level[codes], mean=mean + level[other[codes]])


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
    one_sided,
    two_widths,
    points,
    skewed_points,
    some_widths,
    walk,
    cut_at_zero,
    ensemble,
    weak,
    strong,
    in_time,
    label_sets,
    smooth,
    levels,
)


def drawn(world: Callable[[Rng, int], EvalSet], n: int, number: int) -> EvalSet:
    return world(child(0, "rows", world.__name__, n, number), n)


@pytest.mark.slow
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


def test_copies_in_a_sample_are_told_and_are_no_clusters() -> None:
    """The sample holds some of a row's copies, and the sums over all rows know no clusters."""
    held = replace(drawn(normal, 100, 0).take(np.repeat(np.arange(100), 5)), share=0.5)
    (followed,), _ = follow([held], content_order([held]))
    assert followed.cluster is None
    assert not fault(held, "copies").harmless


def test_no_advice_comes_of_copies_in_two_folds() -> None:
    """A tree on inputs knows held-out rows whose copies teach it: it was advised in 6 of 6."""
    for number in range(2):
        held = drawn(normal, 60, 100 + number).take(np.repeat(np.arange(60), 5))
        assert try_recalibrations(held).advice is None


def test_a_right_model_with_each_row_five_times_is_not_condemned() -> None:
    """Any ✗ in 12 of 12 tables, and the advice made fresh rows worse."""
    red = 0
    for number in range(12):
        held = drawn(normal, 150, number).take(np.repeat(np.arange(150), 5))
        findings, _ = examine(held)
        assert (findings[0].id, findings[0].state) == ("rows", "negligible")
        red += any(each.state == "bad" for each in findings)
    assert red <= 2


def test_a_wrong_model_with_copies_is_still_condemned() -> None:
    held = drawn(normal, 400, 0)
    wrong = replace(held, predictions=(Distribution.normal(held.features["x"], np.full(400, 0.4)),))
    findings, _ = examine(wrong.take(np.repeat(np.arange(400), 2)))
    assert {"spread": "bad", "rows": "negligible"}.items() <= {
        e.id: e.state for e in findings
    }.items()


# What else rows may be


def wrong(held: EvalSet, **changed: np.ndarray) -> EvalSet:
    """The rows of `normal` with another y, mean or sd."""
    law = held.predictions[0]
    mean, sd = law.numbers()["loc"], law.numbers()["scale"]
    stated = Distribution.normal(changed.get("mean", mean), changed.get("sd", sd))
    return replace(held, y=changed.get("y", held.y), predictions=(stated,))


def of(held: EvalSet) -> tuple[np.ndarray, np.ndarray]:
    numbers = held.predictions[0].numbers()
    return numbers["loc"], numbers["scale"]


def small(rng: Rng, n: int) -> EvalSet:
    """`normal` in units of which y has few."""
    held = normal(rng, n)
    mean, sd = of(held)
    return replace(wrong(held, mean=mean / 20, sd=sd / 20), y=held.y / 20)


Planted = Callable[[Rng, int], EvalSet]


def as_variance(rng: Rng, n: int) -> EvalSet:
    held = small(rng, n)
    return wrong(held, sd=of(held)[1] ** 2)


def as_sd(rng: Rng, n: int) -> EvalSet:
    held = small(rng, n)
    return wrong(held, sd=np.sqrt(of(held)[1]))


def student_as_variance(rng: Rng, n: int) -> EvalSet:
    mean, sd = parts(rng, n)
    y = mean + 20 * sd * rng.standard_t(3, n)
    return EvalSet.checked(y, Distribution.from_scipy(stats.t(3, mean, 400 * sd**2)))


def off_by(factor: float, shift: float = 0.0, site: str = "") -> Planted:
    def world(rng: Rng, n: int) -> EvalSet:
        held = normal(rng, n)
        mean, sd = of(held)
        rows = held.groups["site"].values() == site if site else np.ones(n, dtype=bool)
        mean = np.where(rows, (mean - shift) / factor, mean)
        return wrong(held, mean=mean, sd=np.where(rows, sd / factor, sd))

    return world


def leaked(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    mean, _ = of(held)
    return wrong(held, y=mean + 0.1 * (held.y - mean))


def leaked_points(rng: Rng, n: int) -> EvalSet:
    y = rng.normal(size=n)
    return EvalSet.checked(y, point=np.where(rng.random(n) < 0.7, y, y + rng.normal(size=n)))


def target_in_inputs(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    return replace(held, features={**held.features, "price": 2.0 * held.y + 1.0})


def marked(value: float, share: float, *, prediction: bool = False) -> Planted:
    def world(rng: Rng, n: int) -> EvalSet:
        held = normal(rng, n)
        rows = rng.permutation(n) < max(3, share * n)
        changed = np.where(rows, value, of(held)[0] if prediction else held.y)
        return wrong(held, **{"mean" if prediction else "y": changed})

    return world


def clipped(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    return wrong(held, y=np.minimum(held.y, np.quantile(held.y, 0.85)))


def clipped_predictions(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    mean, _ = of(held)
    return wrong(held, mean=np.minimum(mean, 10.0), sd=np.full(n, 0.5))


def whole(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    return wrong(held, y=held.y.round())


def censored(name: str) -> Planted:
    """Times after which a row was not watched any more."""

    def world(rng: Rng, n: int) -> EvalSet:
        held = normal(rng, n)
        until = rng.normal(11.0, 2.0, n)
        event = (held.y <= until).astype(int)
        mark = event if name == "event" else 1 - event
        return replace(
            EvalSet.checked(np.minimum(held.y, until), held.predictions[0], groups={name: mark})
        )

    return world


def swapped(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    return wrong(held, y=of(held)[0], mean=held.y)


def mean_as_sd(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    mean, sd = of(held)
    return wrong(held, mean=sd, sd=mean)


def one_for_all(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    return wrong(held, mean=np.full(n, 10.0), sd=np.full(n, 2.5))


def moved(lag: int) -> Planted:
    def world(rng: Rng, n: int) -> EvalSet:
        held = normal(rng, n)
        return wrong(held, y=np.roll(held.y, lag) if lag else held.y[::-1])

    return world


def smooth_moved(rng: Rng, n: int) -> EvalSet:
    return smooth(rng, n, 1)


def exchanged(rng: Rng, n: int) -> EvalSet:
    return levels(rng, n, exchange=True)


def fahrenheit_since(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    return wrong(held, y=np.where(np.arange(n) < 0.6 * n, held.y, 1.8 * held.y + 32.0))


def logarithm(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    mean, _ = of(held)
    return wrong(held, y=np.log(np.maximum(held.y + 10.0, 1.0)), mean=mean + 10.0)


def multiplied(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    mean, sd = of(held)
    return wrong(held, mean=1.5 * mean, sd=1.5 * sd)


def nearly_target(rng: Rng, n: int) -> EvalSet:
    held = normal(rng, n)
    _, sd = of(held)
    return replace(held, features={"late": 5.0 * held.y + 0.1 * sd * rng.normal(size=n)})


def delivered_twice(rng: Rng, n: int) -> EvalSet:
    """A tenth of the times come again, with corrections of a hundredth of an error."""
    held = in_time(rng, n * 10 // 11)
    again = np.r_[np.arange(held.n), held.n // 3 + np.arange(n - held.n)]
    twice = held.take(again)
    fixed = np.r_[np.zeros(held.n), 0.01 * rng.normal(size=n - held.n)]
    return replace(twice, y=twice.y + of(twice)[1] * fixed)


PLANTED: tuple[tuple[str, Planted, str, bool], ...] = (
    ("a spell delivered twice", delivered_twice, "corrected", False),
    ("variance as sd", as_variance, "variance", True),
    ("sd as variance", as_sd, "variance", True),
    ("variance of t3 as scale", student_as_variance, "variance", True),
    ("all by 1,000", off_by(1000.0), "units", True),
    ("all in cm for inches", off_by(1 / 2.54), "units", True),
    ("all in Celsius for Fahrenheit", off_by(1.8, 32.0), "units", True),
    ("all in Celsius for kelvin", off_by(1.0, 273.15), "units", True),
    ("site C by 1,000", off_by(1000.0, site="C"), "units", True),
    ("site C by 1/100", off_by(0.01, site="C"), "units", True),
    ("site C in mm for inches", off_by(1 / 25.4, site="C"), "units", True),
    ("errors of a tenth", leaked, "leakage", True),
    ("predictions that equal y", leaked_points, "leakage", True),
    ("y among the inputs", target_in_inputs, "target", False),
    ("y of −9999 in 3 %", marked(-9999.0, 0.03), "marks", False),
    ("y of 1e20 in 1 %", marked(1e20, 0.01), "marks", False),
    ("y of 999 in 20 %", marked(999.0, 0.2), "marks", False),
    ("predictions of −999 in 3 %", marked(-999.0, 0.03, prediction=True), "marks", False),
    ("y clipped above", clipped, "clipped", False),
    ("predictions clipped above", clipped_predictions, "clipped_predictions", False),
    ("whole y", whole, "rounded", False),
    ("a column event", censored("event"), "censored", False),
    ("a column censored", censored("censored"), "censored", False),
    ("y and prediction swapped", swapped, "swapped", False),
    ("mean and sd swapped", mean_as_sd, "mean_and_sd", False),
    ("one prediction for all", one_for_all, "one_prediction", False),
    ("y moved by a row", moved(1), "order", False),
    ("y moved back by 7 rows", moved(-7), "order", False),
    ("y turned round", moved(0), "order", False),
    ("y moved by a step in each series", smooth_moved, "order", False),
    ("predictions of two sites exchanged", exchanged, "exchanged", False),
    ("y in Fahrenheit from a row on", fahrenheit_since, "units", True),
    ("the logarithm of y", logarithm, "log", True),
    ("predictions by 1.5", multiplied, "multiple", False),
    ("an input that nearly is y", nearly_target, "target", False),
)
"""Faults, what names them, and whether they are ✗."""


@pytest.mark.parametrize(
    ("world", "name", "bad"), [each[1:] for each in PLANTED], ids=[each[0] for each in PLANTED]
)
def test_what_is_planted_is_found(world: Planted, name: str, bad: bool) -> None:
    for number in range(3):
        told = {each.name: each for each in row_faults(world(child(1, name, number), 2_000))}
        assert name in told
        assert told[name].bad == bad
        assert set(told) <= {name, "target"}  # of swapped columns, the input that was the mean
        assert told[name].explains or name in NO_FAULT_OF_OTHERS


@pytest.mark.parametrize("times", [10.0, 20.0, 50.0])
def test_intervals_wider_than_y_itself_are_too_wide_whoever_saw_y(times: float) -> None:
    held = normal(child(0, "far too wide"), 200)
    mean, sd = of(held)
    for prediction in (
        Distribution.normal(mean, times * sd),
        Intervals(mean - 1.645 * times * sd, mean + 1.645 * times * sd, coverage=0.9),
    ):
        findings, _ = examine(EvalSet.checked(held.y, prediction))
        assert {each.id: each.state for each in findings}["coverage"] == "bad"
        assert answer(findings, 200).reply == "no"
        assert "rows" not in {each.id for each in findings}


def test_a_bias_in_a_group_is_no_unit() -> None:
    """Rentals at three in the morning, of a model that does not know the hour: 5, not 41."""
    rng = child(4, "nights")
    hour = rng.integers(0, 24, 2_000)
    mean = np.where(hour == 3, 41.0, 200.0) + rng.normal(size=2_000) * 8
    y = np.where(hour == 3, 5.0, mean) + rng.normal(size=2_000) * np.where(hour == 3, 2.0, 60.0)
    law = Distribution.normal(mean, np.full(2_000, 60.0))
    assert "units" not in names(EvalSet.checked(y, law, groups={"hour": hour}))


NO_FAULT_OF_OTHERS = {"corrected", "clipped_predictions", "swapped", "one_prediction", "multiple"}
"""What is named, and explains no other finding."""


@pytest.mark.parametrize(
    ("world", "name", "bad"), [each[1:] for each in PLANTED], ids=[each[0] for each in PLANTED]
)
def test_the_first_sentence_is_the_cause(world: Planted, name: str, bad: bool) -> None:
    """Nothing else is ✗, but where the model itself is wrong."""
    findings, _ = examine(world(child(2, name), 1_000))
    assert findings[0].id == "rows"
    assert findings[0].state == ("bad" if bad else "caution")
    others = {each.id for each in findings[1:] if each.state == "bad"}
    assert not others or name in NO_FAULT_OF_OTHERS
    for each in findings[1:]:
        if bad and each.id in ("spread", "coverage") and each.state == "caution":
            assert each.sentence.endswith("this is part of the problems of the rows.")
    told = answer(findings, 1_000)
    assert told.reply != "yes"
    assert findings[0].clause.partition(". ")[0][1:] in told.sentence


def test_a_model_that_is_wrong_stands_in_no_other_order_or_unit() -> None:
    """A spread, biases, opposite ones of sites, and forecasts that trust the last y too much."""
    for number in range(3):
        held = levels(child(10, "wrong", number), 800)
        mean, sd = of(held)
        site = held.groups["site"].codes
        time = np.arange(800)
        y = lfilter([1.0], [1.0, -0.6], child(10, "memory", number).normal(size=800))
        naive = Distribution.normal(np.r_[0.0, 0.9 * y[:-1]], np.full(800, 0.5))
        for each in (
            wrong(held, sd=0.4 * sd),
            wrong(held, mean=mean + 3.0 * sd, sd=0.6 * sd),
            wrong(held, mean=mean + np.array([2.0, -2.0, 0.0])[site] * sd),
            wrong(held, mean=mean + 0.2 * (mean - mean.mean())),
            EvalSet.checked(y, naive, time=time),
            EvalSet.checked(y, point=0.9 * np.r_[0.0, y[:-1]], time=time),
        ):
            assert not names(each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "world"),
    [
        ("marks", marked(-9999.0, 0.05)),
        ("clipped", clipped),
        ("censored", censored("event")),
        ("rounded", whole),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_right_models_of_such_rows_are_not_condemned(name: str, world: Planted) -> None:
    red = 0
    for number in range(8):
        findings, _ = examine(world(child(3, name, number), 1_000))
        assert findings[0].id == "rows"
        red += any(each.state == "bad" for each in findings)
    assert red <= 1


def test_a_fault_past_what_marks_explain_stays() -> None:
    held = marked(-9999.0, 0.01)(child(4, "marks"), 2_000)
    _, sd = of(held)
    states = {each.id: each.state for each in examine(wrong(held, sd=0.5 * sd))[0]}
    assert states["rows"] == "caution"
    assert states["spread"] == states["coverage"] == "bad"


def test_predictions_in_other_units_are_named_with_what_multiplies_them() -> None:
    held, new = (
        replace(off_by(1000.0)(child(seed, "units"), 300), features={}, groups={})
        for seed in (5, 6)
    )
    assert try_recalibrations(held).advice is None
    told = next(each for each in examine(held)[0] if each.id == "rows").sentence
    assert told.endswith("method='multiply') does it.")
    mended = recalibrate(new, held, method="multiply").evalset
    assert not any(each.state == "bad" for each in examine(mended)[0])
    ignoring, silent = examine(held, ignore={"rows"})
    assert silent["rows"] == "ignored, as asked"
    assert any(each.state == "bad" for each in ignoring)


def test_counts_in_another_unit_are_not_said_to_be_mended_by_a_multiple() -> None:
    """A law of counts cannot be multiplied, and an end that is infinite says no factor."""
    rng = child(7, "counts in another unit")
    rate = np.exp(0.5 * rng.normal(size=400) + 8.0)
    counts = Distribution.from_scipy(stats.poisson(rate / 1000.0))
    found = row_faults(EvalSet.checked(rng.poisson(rate).astype(float), counts))
    assert [each.name for each in found if each.bad] == ["units"]
    assert not found[0].facts["multiply"]


def test_lower_and_upper_ends_swapped_are_refused() -> None:
    with pytest.raises(InputError, match="lower"):
        Intervals(np.ones(5), np.zeros(5), coverage=0.9)


def test_a_forecast_made_of_the_value_before_stands_in_no_other_order() -> None:
    """The best forecast of a weak memory agrees with y a step before, and is right."""
    assert "order" not in names(drawn(in_time, 500, 0))


def test_rows_with_names_that_are_no_numbers_have_no_order() -> None:
    held = moved(1)(child(6, "order"), 300)
    assert "order" in names(held)
    assert "order" not in names(replace(held, rows=np.array([f"r{k}" for k in range(300)])))
    mixed = held.take(child(7, "order").permutation(300))
    assert "order" in names(mixed)


def test_many_rows_take_little_time() -> None:
    held = drawn(normal, 200_000, 0)
    start = time.process_time()
    assert not row_faults(held)
    assert time.process_time() - start < 2.0


def test_a_column_that_may_mark_censored_rows_is_asked_for() -> None:
    held = censored("event")(child(8, "censored"), 400)
    mean, sd = of(held)
    table = {"y": held.y, "mean": mean, "sd": sd, "event": held.groups["event"].values()}
    assert load(table).read().censoring == ("event",)
    (last,) = [
        each
        for each in assess(table, options=Options(trials=False)).verdict.splitlines()
        if "'e" in each
    ]
    assert last.startswith("Column 'event' may mark censored rows and is not used: howsure.Table(")
    read = assess(table, groups="event", options=Options(trials=False))
    assert read.lines[1].text.startswith("y seems censored in ")
    assert all(each.state != "bad" for each in read.findings)


def test_copies_that_agree_in_a_small_group_are_no_proof() -> None:
    """All 20 rows of a group are covered: by chance in one table of eight, five copies or not."""
    rng = child(9, "small group")
    site = np.arange(200) < 20
    y = np.where(site, 0.1, 1.0) * rng.normal(size=200)
    ends = np.full(200, stats.norm.ppf(0.95))
    held = EvalSet.checked(y, Intervals(-ends, ends, coverage=0.9))
    held = replace(held, groups={"site": Categories.checked(np.where(site, "A", "B"), "site")})
    told, _ = examine(held.take(np.repeat(np.arange(200), 5)))
    (groups,) = (each for each in told if each.id == "groups")
    assert groups.p > 0.05


def test_clusters_that_hold_copies_and_others_name_what_they_share() -> None:
    held = drawn(normal, 100, 0).take(np.repeat(np.arange(100), 5))
    units = np.repeat(np.arange(20), 25)
    named = replace(held, cluster=Categories.checked(units, "cluster"))
    assert copies([named]) is None
    apart = replace(held, cluster=Categories.checked(np.arange(500) % 5, "cluster"))
    found = copies([apart])
    assert found is not None
    assert not found.fault.harmless
    alike = replace(held, cluster=Categories.checked(np.repeat(np.arange(100), 5), "cluster"))
    assert fault(alike, "copies").harmless


def test_rows_of_a_random_walk_are_not_in_another_unit() -> None:
    """A walk that stays on one side of its start tells of no unit, and of no variance."""
    half = stats.norm.ppf(0.95) * np.sqrt(np.arange(1, 301))
    for seed in (28, 75):  # which are said to be so where rows count as independent
        walk = np.cumsum(np.random.default_rng(seed).normal(size=300))
        bare = Intervals(-half, half, coverage=0.9)
        assert any(each.bad for each in row_faults(EvalSet.checked(walk, bare)))
        found = examine(EvalSet.checked(walk, bare, time=np.arange(300)))[0]
        assert "rows" not in [each.id for each in found]
