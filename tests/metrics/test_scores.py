"""Scores against their definitions, published forms, and the laws that every score must obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from extras import needs
from generated import examples
from howsure.core.errors import InputError
from howsure.topics.crps import crps_quantiles, crps_samples
from howsure.topics.crps_closed import crps_laplace, crps_logistic, crps_normal, crps_t
from howsure.topics.scores import (
    interval_score,
    mean_pinball,
    pinball_loss,
    weighted_interval_score,
)
from oracles import scores as oracle

RNG = np.random.default_rng(20)

Y = RNG.normal(size=40)

LOWER = Y + RNG.normal(size=40) - 1.0

UPPER = LOWER + RNG.gamma(2.0, 1.0, 40)


def test_interval_score_is_the_definition() -> None:
    got = interval_score(Y, LOWER, UPPER, coverage=0.8)
    want = [oracle.interval_score(*row, 0.8) for row in zip(Y, LOWER, UPPER, strict=True)]
    np.testing.assert_allclose(got, want, rtol=1e-14)
    theirs = needs("scoringrules").interval_score(Y, LOWER, UPPER, 0.2)
    np.testing.assert_allclose(got, theirs, rtol=1e-12)


def test_interval_score_of_unbounded_intervals_is_infinite() -> None:
    got = interval_score([0.0, 0.0], [-np.inf, -1.0], [1.0, np.inf], coverage=0.9)
    assert (got == np.inf).all()
    assert interval_score([1e308], [-1e308], [1e308], coverage=0.9)[0] == np.inf


def test_interval_score_is_twice_the_bandwidth_plus_deficit_over_alpha() -> None:
    """mean IS = 2 [bandwidth + deficit/α], the relation to the characteristics curve."""
    deficit = np.where(Y < LOWER, LOWER - Y, np.where(Y > UPPER, Y - UPPER, 0.0)).mean()
    bandwidth = (UPPER - LOWER).mean() / 2
    got = interval_score(Y, LOWER, UPPER, coverage=0.7).mean()
    assert got == pytest.approx(2 * (bandwidth + deficit / 0.3), rel=1e-13)


@pytest.mark.parametrize("with_median", [True, False])
def test_weighted_interval_score_is_twice_the_mean_pinball(with_median: bool) -> None:
    coverages = np.array([0.5, 0.95, 0.8])  # in any order
    tails = (1 - coverages) / 2
    levels = np.concatenate([tails, 1 - tails, [0.5]])
    quantiles = np.sort(RNG.normal(size=(40, 7)), axis=1)
    order = np.argsort(levels)
    at = {round(float(level), 9): quantiles[:, j] for j, level in enumerate(levels[order])}
    lower = np.stack([at[round(float(t), 9)] for t in tails], axis=1)
    upper = np.stack([at[round(float(1 - t), 9)] for t in tails], axis=1)
    median = at[0.5] if with_median else None
    got = weighted_interval_score(Y, median, lower, upper, coverages)
    keep = [k for k in order if with_median or levels[k] != 0.5]
    table = np.stack([at[round(float(levels[k]), 9)] for k in keep], axis=1)
    want = 2 * mean_pinball(Y, table, levels[keep])
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_scoringrules_adds_the_median_itself() -> None:
    """Its NumPy ``weighted_interval_score`` has w₀·median where the formula has w₀·|y − median|.

    Ours agrees with it exactly where the two coincide (y = 0, median above 0), and moving y and
    the forecast together leaves ours alone but moves theirs.
    """
    lower, upper, alpha = np.array([[-1.0, -2.0]]), np.array([[2.0, 3.0]]), np.array([0.5, 0.1])
    score = needs("scoringrules").weighted_interval_score
    theirs = [
        float(score([shift], [0.5 + shift], lower + shift, upper + shift, alpha, backend="numpy"))
        for shift in (0.0, 10.0)
    ]
    ours = [
        float(
            weighted_interval_score(
                [shift], [0.5 + shift], lower + shift, upper + shift, 1 - alpha
            )[0]
        )
        for shift in (0.0, 10.0)
    ]
    assert ours[0] == pytest.approx(theirs[0], rel=1e-12)
    assert ours[1] == pytest.approx(ours[0], rel=1e-12)
    assert theirs[1] == pytest.approx(theirs[0] + 0.5 * 10 / 2.5, rel=1e-12)


def test_pinball_is_the_definition() -> None:
    for level in (0.05, 0.5, 0.9):
        got = pinball_loss(Y, LOWER, level=level)
        want = [oracle.pinball(*row, level) for row in zip(Y, LOWER, strict=True)]
        np.testing.assert_allclose(got, want, rtol=1e-14)
        np.testing.assert_allclose(
            got, needs("scoringrules").quantile_score(Y, LOWER, level), rtol=1e-12
        )
    table = np.stack([LOWER, UPPER], axis=1)
    got = mean_pinball(Y, table, [0.1, 0.7])
    want = [
        (oracle.pinball(y, low, 0.1) + oracle.pinball(y, high, 0.7)) / 2
        for y, low, high in zip(Y, LOWER, UPPER, strict=True)
    ]
    np.testing.assert_allclose(got, want, rtol=1e-13)


FINITE = st.floats(-1e3, 1e3)

SHAPES: list[tuple[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]] = [
    ("normal", crps_normal),
    ("logistic", crps_logistic),
    ("laplace", crps_laplace),
    ("t", lambda y, a, s: crps_t(y, np.full(len(y), 3.0), a, s)),
    ("interval", lambda y, a, s: interval_score(y, a - s, a + s, coverage=0.9)),
    ("pinball", lambda y, a, s: mean_pinball(y, np.stack([a - s, a + s], 1), [0.2, 0.8])),
    (
        "weighted",
        lambda y, a, s: weighted_interval_score(y, a, (a - s)[:, None], (a + s)[:, None], [0.6]),
    ),
    ("samples", lambda y, a, s: crps_samples(y, np.stack([a - s, a, a + s], 1), fair=True)),
    (
        "quantiles",
        lambda y, a, s: crps_quantiles(y, np.stack([a - s, a + s], 1), [0.2, 0.8]),
    ),
]


@pytest.mark.parametrize(("name", "score"), SHAPES, ids=[name for name, _ in SHAPES])
@examples(40)
@given(
    rows=st.lists(st.tuples(FINITE, FINITE, st.floats(1e-2, 1e2)), min_size=1, max_size=6),
    shift=FINITE,
    factor=st.floats(1e-3, 1e3),
)
def test_scores_move_with_the_units(
    name: str, score: Callable[..., np.ndarray], rows: list[Any], shift: float, factor: float
) -> None:
    y, a, s = (np.array(column) for column in zip(*rows, strict=True))
    own = score(y, a, s)
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(score(y + shift, a + shift, s), own, **close)
    np.testing.assert_allclose(score(y * factor, a * factor, s * factor), own * factor, **close)
    np.testing.assert_allclose(score(-y, -a, s), own, **close)  # all symmetric predictions here
    np.testing.assert_array_equal(score(y[::-1], a[::-1], s[::-1]), own[::-1])


PROPER: list[tuple[str, Callable[[np.ndarray, float], np.ndarray]]] = [
    ("interval", lambda y, k: _interval(y, k)),
    ("weighted", lambda y, k: _weighted(y, k)),
    ("crps", lambda y, k: crps_normal(y, np.zeros(len(y)), np.full(len(y), k))),
    ("pinball", lambda y, k: pinball_loss(y, np.full(len(y), 1.2816 * k), level=0.9)),
]


def _interval(y: np.ndarray, k: float) -> np.ndarray:
    end = np.full(len(y), 1.6449 * k)
    return interval_score(y, -end, end, coverage=0.9)


def _weighted(y: np.ndarray, k: float) -> np.ndarray:
    ends = np.tile(np.array([0.6745, 1.6449]) * k, (len(y), 1))
    return weighted_interval_score(y, np.zeros(len(y)), -ends, ends, [0.5, 0.9])


@pytest.mark.parametrize(("name", "score"), PROPER, ids=[name for name, _ in PROPER])
def test_the_right_prediction_scores_best(
    name: str, score: Callable[[np.ndarray, float], np.ndarray]
) -> None:
    y = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    means = {k: score(y, k).mean() for k in (0.7, 0.9, 1.0, 1.1, 1.4)}
    assert min(means, key=lambda k: means[k]) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interval_score([1], [2], [1], coverage=0.9), "lower must not exceed upper"),
        (lambda: interval_score([1], [0], [1], coverage=90), "coverage must be strictly"),
        (lambda: interval_score([1, 2], [0], [1], coverage=0.9), "lower must have 2 rows"),
        (lambda: interval_score([np.nan], [0], [1], coverage=0.9), "y must contain finite"),
        (
            lambda: weighted_interval_score([1], None, [[0]], [[1]], [0.5, 0.9]),
            "lower must have 2 columns",
        ),
        (
            lambda: weighted_interval_score([1], None, [[0, 0]], [[1, 1]], [0.5, 0.5]),
            "coverages must increase strictly",
        ),
        (lambda: pinball_loss([1], [1], level=1.0), "level must be strictly"),
        (lambda: mean_pinball([1], [[1, 2]], [0.5]), "quantiles must have 1 columns"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
