"""Isotonic regression against its definition, scikit-learn and model-diagnostics."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import pytest

from extras import needs
from howsure.core.rng import child
from howsure.metrics import pinball_loss
from howsure.stats.isotonic import isotonic_mean
from isotonic import isotonic_quantiles

LEVELS = (0.1, 0.25, 0.5, 1 / 18, 0.77, 0.9)


def lowest_quantile(y: np.ndarray, mass: np.ndarray, level: float) -> float:
    order = np.argsort(y)
    upto = np.cumsum(mass[order])
    return float(y[order][np.searchsorted(upto, level * upto[-1] - 1e-9)])


def min_max(x: np.ndarray, y: np.ndarray, level: float, mass: np.ndarray) -> np.ndarray:
    """The largest, over starts, of the least, over ends, quantile of the rows between."""
    places = np.unique(x)
    found = {}
    for k, place in enumerate(places):
        least = []
        for first in places[: k + 1]:
            among = [(x >= first) & (x <= last) for last in places[k:]]
            least.append(min(lowest_quantile(y[rows], mass[rows], level) for rows in among))
        found[place] = max(least)
    return np.array([found[place] for place in x])


def table(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """At most 30 rows, with ties in x and y, and weights."""
    rng = child(number, "isotonic")
    n = int(rng.integers(1, 31))
    x = rng.integers(0, rng.integers(1, 30), n).astype(float)
    y = rng.integers(0, rng.integers(1, 20), n).astype(float) + (number % 2) * x
    return x, y, rng.integers(1, 4, n).astype(float), LEVELS[number % len(LEVELS)]


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_quantiles_are_those_of_the_min_max_formula(first: int) -> None:
    for number in range(first, first + 60):
        x, y, mass, level = table(number)
        assert isotonic_quantiles(x, y, level, mass) == pytest.approx(min_max(x, y, level, mass))


def test_no_rising_function_has_a_lower_pinball_loss() -> None:
    """By linear programming: minimise Σ w (τ u + (1 − τ) v), with u − v = y − g, g rising in x."""
    from scipy import optimize, sparse

    for number in range(40):
        x, y, mass, level = table(number)
        places, at = np.unique(x, return_inverse=True)
        n, k = len(y), len(places)
        fit = sparse.csr_matrix((np.ones(n), (np.arange(n), at)), (n, k))
        equal = sparse.hstack([fit, sparse.eye(n), -sparse.eye(n)])
        rising = sparse.diags([1.0, -1.0], [0, 1], (k - 1, k)) if k > 1 else None
        unequal = None if rising is None else sparse.hstack([rising, np.zeros((k - 1, 2 * n))])
        found = optimize.linprog(
            np.concatenate([np.zeros(k), level * mass, (1 - level) * mass]),
            A_ub=unequal,
            b_ub=None if unequal is None else np.zeros(k - 1),
            A_eq=equal,
            b_eq=y,
            bounds=[(None, None)] * k + [(0, None)] * (2 * n),
        )
        loss = mass @ pinball_loss(y, isotonic_quantiles(x, y, level, mass), level=level)
        assert loss == pytest.approx(found.fun, abs=1e-9)


def test_weights_are_rows_that_repeat_and_order_is_none() -> None:
    for number in range(30):
        x, y, mass, level = table(number)
        repeat = np.repeat(np.arange(len(x)), mass.astype(int))
        again = child(number, "order").permutation(len(repeat))
        for fit in (isotonic_mean, partial(isotonic_quantiles, level=level)):
            weighted, plain = fit(x, y, weights=mass), fit(x[repeat], y[repeat])
            assert plain == pytest.approx(weighted[repeat], abs=1e-12)
            assert fit(x[repeat][again], y[repeat][again]) == pytest.approx(plain[again], abs=1e-12)


@pytest.mark.parametrize("tail", [0.0, 3.0])
def test_means_are_those_of_scikit_learn(tail: float) -> None:
    from sklearn.isotonic import IsotonicRegression

    for number in range(200):
        x, y, mass, _ = table(number)
        if tail:
            y = np.exp(tail * y / 5)
        expected = IsotonicRegression().fit(x, y, sample_weight=mass).predict(x)
        assert isotonic_mean(x, y, mass) == pytest.approx(expected, rel=1e-9, abs=1e-12 * y.max())


def test_both_are_those_of_model_diagnostics() -> None:
    needs("model_diagnostics")
    from model_diagnostics.scoring import PinballLoss, SquaredError, decompose

    rng = child(1, "peer")
    x = rng.normal(size=300).round(1)
    y = x + rng.normal(size=300).round(1)
    for level in (0.1, 0.5, 0.8):
        loss = PinballLoss(level=level)
        peer = decompose(y, x + 1, scoring_function=loss, functional="quantile", level=level)
        own = pinball_loss(y, isotonic_quantiles(x + 1, y, level), level=level).mean()
        assert own == pytest.approx(peer["uncertainty"][0] - peer["discrimination"][0], abs=1e-12)
    peer = decompose(y, x + 1, scoring_function=SquaredError())
    own = np.square(y - isotonic_mean(x + 1, y)).mean()
    assert own == pytest.approx(peer["uncertainty"][0] - peer["discrimination"][0], abs=1e-12)


def test_what_model_diagnostics_says_of_twelve_rows() -> None:
    """Numbers of model-diagnostics 1.5.0, so that they are held where it is not installed."""
    x = np.array([-1.1, -1.1, -0.8, 0.8, -1.0, -1.0, -0.4, 1.4, -0.9, -0.7, 0.2, 0.1])
    y = np.array([-0.7, -1.7, -1.7, -0.5, -0.7, -1.2, 0.0, 1.4, 0.5, -0.1, 0.4, 0.1])
    forecast = (x + 1.0).round(1)
    loss = pinball_loss(y, isotonic_quantiles(forecast, y, 0.8), level=0.8).mean()
    assert loss == pytest.approx(0.241667 - 0.14, abs=1e-6)
    square = np.square(y - isotonic_mean(forecast, y)).mean()
    assert square == pytest.approx(0.780833 - 0.492083, abs=2e-6)


@pytest.mark.slow
def test_a_hundred_thousand_rows_at_nine_levels_take_about_a_second() -> None:
    rng = child(2, "many")
    x = rng.normal(size=100_000)
    y = x + rng.normal(size=100_000)
    begun = time.process_time()
    for level in (np.arange(9) + 0.5) / 9:
        isotonic_quantiles(x, y, level)
    assert time.process_time() - begun < 3.0
