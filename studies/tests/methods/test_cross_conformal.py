"""Jackknife+, CV+ and the jackknife+ after the bootstrap, against their definitions."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from generated import examples
from howsure.conformal import conformal_rank
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Intervals
from howsure_studies.methods.conformal.cross import (
    CrossConformal,
    CVPlus,
    FittedCross,
    JackknifeAfterBootstrap,
    JackknifePlus,
    LeftOut,
)

COVERAGES = (0.3, 0.5, 0.8, 0.9)


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = child(seed, "rows")
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, x[:, 0] + 0.5 * rng.normal(size=n)


def by_definition(
    forecasts: np.ndarray, errors: np.ndarray, coverage: float, combine: str
) -> tuple[float, float]:
    """Ends at one x, from the n left-out forecasts there; α in whole per cent."""
    n, percent = len(errors), round(100 * coverage)
    up = -(-(n + 1) * percent // 100)
    down = (n + 1) * (100 - percent) // 100
    if up > n:
        return -math.inf, math.inf
    if combine == "minmax":
        reach = sorted(errors)[up - 1]
        return min(forecasts) - reach, max(forecasts) + reach
    low = sorted(f - r for f, r in zip(forecasts, errors, strict=True))[down - 1]
    high = sorted(f + r for f, r in zip(forecasts, errors, strict=True))[up - 1]
    return (low, high) if low <= high else ((low + high) / 2,) * 2


def left_out(method: CrossConformal, x: np.ndarray, y: np.ndarray, seed: int) -> list[Any]:
    """For each row, the models trained without it, drawn as the method draws them."""
    rng, n = np.random.default_rng(seed), len(y)
    if isinstance(method, JackknifeAfterBootstrap):
        drawn = [rng.integers(n, size=n) for _ in range(method.members)]
        models = [LinearRegression().fit(x[own], y[own]) for own in drawn]
        return [[m for m, own in zip(models, drawn, strict=True) if i not in own] for i in range(n)]
    folds = np.arange(n)
    if isinstance(method, CVPlus):
        folds = rng.permutation(n) % method.folds
    return [[LinearRegression().fit(x[folds != f], y[folds != f])] for f in folds]


@pytest.mark.parametrize("combine", ["plus", "minmax"])
@pytest.mark.parametrize("make", [JackknifePlus, CVPlus, JackknifeAfterBootstrap])
def test_intervals_are_the_definition(make: Any, combine: str) -> None:
    x, y = rows(23)
    new = rows(6, seed=1)[0]
    method = make(LinearRegression(), coverages=(*COVERAGES, 0.99), combine=combine)
    prediction = method.fit(x, y, np.random.default_rng(3)).predict(new).outcome
    models = left_out(method, x, y, 3)
    errors = np.array(
        [
            abs(y[i] - np.mean([m.predict(x[i : i + 1])[0] for m in own]))
            for i, own in enumerate(models)
        ]
    )
    for row in range(len(new)):
        forecasts = np.array(
            [np.mean([m.predict(new[row : row + 1])[0] for m in own]) for own in models]
        )
        for coverage in method.coverages:
            lower, upper = prediction.interval(coverage)
            expected = by_definition(forecasts, errors, coverage, combine)
            assert (lower[row], upper[row]) == pytest.approx(expected, abs=1e-12)


class Told:
    """A fitted model whose forecasts are in a column of x."""

    def __init__(self, column: int) -> None:
        self.column = column

    def predict(self, x: np.ndarray) -> np.ndarray:
        return x[:, self.column]


@examples(100)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-3, 0.3, 5.0]), st.booleans(), st.booleans())
def test_the_few_errors_that_can_decide_do_decide(
    seed: int, differ: float, ties: bool, shared: bool
) -> None:
    """Ranks within a window of the errors, against ranks among all training rows."""
    rng = child(seed, "window")
    n, models = int(rng.integers(20, 60)), int(rng.integers(2, 7))
    errors = np.abs(rng.normal(size=n))
    forecasts = 10 + differ * rng.normal(size=(8, models))
    if ties:
        errors, forecasts = np.round(errors, 1), np.round(forecasts, 1)
    answers = rng.integers(models, size=n)
    shares = rng.dirichlet(np.ones(models), size=n).T
    left = LeftOut(tuple(map(Told, range(models))), shares if shared else answers)
    ranks = np.array([conformal_rank(n, coverage) for coverage in COVERAGES])
    method = CVPlus(LinearRegression(), coverages=COVERAGES)
    prediction = FittedCross(method, left, errors, ranks).predict(forecasts).outcome
    own = forecasts @ shares if shared else forecasts[:, answers]
    for row in range(8):
        for coverage in COVERAGES:
            lower, upper = prediction.interval(coverage)
            expected = by_definition(own[row], errors, coverage, "plus")
            assert (lower[row], upper[row]) == pytest.approx(expected, rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("combine", ["plus", "minmax"])
@pytest.mark.parametrize("make", [JackknifePlus, CVPlus, JackknifeAfterBootstrap])
def test_new_rows_are_covered(make: Any, combine: str) -> None:
    """At least 1 − 2α (minmax: 1 − α) is proven; in practice about 1 − α, in small samples."""
    rng = child(5, "cover", make.__name__)
    options = {"members": 30} if make is JackknifeAfterBootstrap else {}
    method = make(LinearRegression(), coverages=(0.8,), combine=combine, **options)
    found = []
    for _ in range(60):
        x, new = rng.uniform(-1, 1, size=(20, 3)), rng.uniform(-1, 1, size=(40, 3))
        y = x[:, 0] + rng.normal(size=20)
        lower, upper = method.fit(x, y, rng).predict(new).outcome.interval(0.8)
        mass = special.ndtr(upper - new[:, 0]) - special.ndtr(lower - new[:, 0])
        found.append(mass.mean())
    mean, error = np.mean(found), np.std(found) / math.sqrt(60)
    assert mean > (0.6 if combine == "plus" else 0.8) - 3 * error
    if combine == "plus":
        assert abs(mean - 0.8) < 0.05


@pytest.mark.slow
def test_blocks_change_nothing_and_bound_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(1500)
    fitted = CVPlus(KNeighborsRegressor(), 5, coverages=(0.9,)).fit(x, y, np.random.default_rng(0))
    whole = fitted.predict(x[:100]).outcome
    monkeypatch.setattr("howsure_studies.methods.conformal.cross._BLOCK", 50_000)
    parts = fitted.predict(x[:100]).outcome
    assert isinstance(whole, Intervals)
    assert isinstance(parts, Intervals)
    assert np.array_equal(whole.lower, parts.lower)
    tracemalloc.start()
    fitted.predict(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6  # all pairs of rows would take 1.8e7


def test_clipping_and_refusal() -> None:
    x, y = rows(8)
    y = np.clip(y, -0.2, 0.2)
    method = JackknifePlus(LinearRegression(), coverages=(0.5, 0.9), clip=(-0.2, 0.2))
    prediction = method.fit(x, y, np.random.default_rng(0)).predict(x).outcome
    assert prediction.interval(0.9)[0].tolist() == [-0.2] * 8
    assert prediction.interval(0.5)[1].max() <= 0.2
    strict = JackknifePlus(LinearRegression(), coverages=(0.5, 0.9), too_few="error")
    with pytest.raises(InputError, match=r"coverage 0\.9 needs 9, got 8"):
        strict.fit(x, y, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: CVPlus(LinearRegression(), 1), "folds must be"),
        (lambda: CVPlus(LinearRegression(), 2.5), "folds must be"),
        (lambda: CVPlus(LinearRegression(), combine="max"), "combine must be"),
        (lambda: JackknifeAfterBootstrap(LinearRegression(), True), "members must be"),
        (lambda: JackknifePlus(LinearRegression(), coverages=()), "distinct"),
        (lambda: JackknifePlus(LinearRegression(), clip=(0,)), "clip must be"),
        (lambda: CVPlus(LinearRegression(), 9).fit(*rows(8), np.random.default_rng(0)), "at most"),
        (
            lambda: JackknifeAfterBootstrap(LinearRegression(), 2).fit(
                *rows(60), np.random.default_rng(0)
            ),
            "members must be so many",
        ),
    ],
)
def test_bad_options_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
