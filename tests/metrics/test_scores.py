"""Scores against their definitions, quadrature, sums, published forms, and laws they must obey."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scoringrules
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from howsure.core.errors import InputError
from howsure.metrics import scores
from oracles import scores as oracle

RNG = np.random.default_rng(20)
Y = RNG.normal(size=40)
LOWER = Y + RNG.normal(size=40) - 1.0
UPPER = LOWER + RNG.gamma(2.0, 1.0, 40)


# --- intervals and quantiles ---------------------------------------------------------------------


def test_interval_score_is_the_definition() -> None:
    got = scores.interval_score(Y, LOWER, UPPER, coverage=0.8)
    want = [oracle.interval_score(*row, 0.8) for row in zip(Y, LOWER, UPPER, strict=True)]
    np.testing.assert_allclose(got, want, rtol=1e-14)
    theirs = scoringrules.interval_score(Y, LOWER, UPPER, 0.2)
    np.testing.assert_allclose(got, theirs, rtol=1e-12)


def test_interval_score_of_unbounded_intervals_is_infinite() -> None:
    got = scores.interval_score([0.0, 0.0], [-np.inf, -1.0], [1.0, np.inf], coverage=0.9)
    assert (got == np.inf).all()
    assert scores.interval_score([1e308], [-1e308], [1e308], coverage=0.9)[0] == np.inf


def test_interval_score_is_twice_the_bandwidth_plus_deficit_over_alpha() -> None:
    """mean IS = 2 [bandwidth + deficit/α], the relation to the characteristics curve."""
    deficit = np.where(Y < LOWER, LOWER - Y, np.where(Y > UPPER, Y - UPPER, 0.0)).mean()
    bandwidth = (UPPER - LOWER).mean() / 2
    got = scores.interval_score(Y, LOWER, UPPER, coverage=0.7).mean()
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
    got = scores.weighted_interval_score(Y, median, lower, upper, coverages)
    keep = [k for k in order if with_median or levels[k] != 0.5]
    table = np.stack([at[round(float(levels[k]), 9)] for k in keep], axis=1)
    want = 2 * scores.mean_pinball(Y, table, levels[keep])
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_scoringrules_adds_the_median_itself() -> None:
    """Its NumPy ``weighted_interval_score`` has w₀·median where the formula has w₀·|y − median|.

    Ours agrees with it exactly where the two coincide (y = 0, median above 0), and moving y and
    the forecast together leaves ours alone but moves theirs.
    """
    lower, upper, alpha = np.array([[-1.0, -2.0]]), np.array([[2.0, 3.0]]), np.array([0.5, 0.1])
    theirs = [
        float(
            scoringrules.weighted_interval_score(
                np.array([shift]), np.array([0.5 + shift]), lower + shift, upper + shift, alpha
            )
        )
        for shift in (0.0, 10.0)
    ]
    ours = [
        float(
            scores.weighted_interval_score(
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
        got = scores.pinball(Y, LOWER, level=level)
        want = [oracle.pinball(*row, level) for row in zip(Y, LOWER, strict=True)]
        np.testing.assert_allclose(got, want, rtol=1e-14)
        np.testing.assert_allclose(got, scoringrules.quantile_score(Y, LOWER, level), rtol=1e-12)
    table = np.stack([LOWER, UPPER], axis=1)
    got = scores.mean_pinball(Y, table, [0.1, 0.7])
    want = [
        (oracle.pinball(y, low, 0.1) + oracle.pinball(y, high, 0.7)) / 2
        for y, low, high in zip(Y, LOWER, UPPER, strict=True)
    ]
    np.testing.assert_allclose(got, want, rtol=1e-13)


def test_crps_of_quantiles_is_the_trapezoid_and_tends_to_the_crps() -> None:
    levels = np.array([0.1, 0.25, 0.6, 0.9])
    table = np.sort(RNG.normal(size=(40, 4)), axis=1)
    losses = np.stack(
        [scores.pinball(Y, table[:, j], level=p) for j, p in enumerate(levels)], axis=1
    )
    got = scores.crps_quantiles(Y, table, levels)
    np.testing.assert_allclose(got, 2 * np.trapezoid(losses, levels, axis=1), rtol=1e-12)
    fine = (np.arange(4000) + 0.5) / 4000
    near = scores.crps_quantiles(Y, np.tile(stats.norm.ppf(fine), (40, 1)), fine)
    exact = scores.crps_normal(Y, np.zeros(40), np.ones(40))
    np.testing.assert_allclose(near, exact, rtol=2e-3)
    assert scores.truncation_note(levels) == "truncated: integrated over levels 0.1 to 0.9 only"


def test_squared_z() -> None:
    got = scores.squared_z([3.0, -1.0], [1.0, 0.0], [2.0, 0.5])
    np.testing.assert_allclose(got, [1.0, 4.0])
    assert scores.squared_z([1.0], [0.0], [1e-200])[0] == np.inf


# --- samples -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fair", [True, False])
def test_crps_of_samples_is_the_sum_over_pairs(fair: bool) -> None:
    samples = np.round(RNG.normal(size=(40, 7)), 1)  # with ties
    got = scores.crps_samples(Y, samples, fair=fair)
    want = [oracle.crps_samples(y, row, fair=fair) for y, row in zip(Y, samples, strict=True)]
    np.testing.assert_allclose(got, want, atol=1e-14)
    estimator = "fair" if fair else "qd"
    theirs = scoringrules.crps_ensemble(Y, samples, estimator=estimator)
    np.testing.assert_allclose(got, theirs, atol=1e-12)


def test_unfair_samples_score_their_step_function() -> None:
    samples = np.sort(RNG.normal(size=(40, 9)), axis=1)

    def cdf(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (samples[rows, None, :] <= values[:, :, None]).mean(axis=2)

    numeric = scores.crps_numeric(Y, cdf, np.ones(40))
    np.testing.assert_allclose(scores.crps_samples(Y, samples, fair=False), numeric, rtol=1e-6)


def test_fair_samples_estimate_the_law_whatever_their_number() -> None:
    n = 40_000
    exact = float(scores.crps_normal([0.7], [0.0], [1.0])[0])
    for m in (2, 5):
        got = scores.crps_samples(
            np.full(n, 0.7), np.random.default_rng(m).normal(size=(n, m)), fair=True
        )
        assert got.mean() == pytest.approx(exact, abs=4 * got.std() / np.sqrt(n))
        unfair = scores.crps_samples(
            np.full(n, 0.7), np.random.default_rng(m).normal(size=(n, m)), fair=False
        )
        assert unfair.mean() > exact + 0.05


def test_samples_far_from_the_origin_keep_their_digits() -> None:
    samples = RNG.normal(size=(10, 50))
    near = scores.crps_samples(np.zeros(10), samples)
    far = scores.crps_samples(np.full(10, 1e9), samples + 1e9)
    np.testing.assert_allclose(far, near, atol=1e-6)


# --- closed forms --------------------------------------------------------------------------------

CONTINUOUS = [
    ("norm", stats.norm(1.5, 2.0)),
    ("logistic", stats.logistic(-1.0, 0.3)),
    ("laplace", stats.laplace(2.0, 3.0)),
    ("t", stats.t(1.2, 1.0, 2.0)),
    ("t", stats.t(7.5, 1.0, 2.0)),
    ("lognorm", stats.lognorm(0.02, 0.0, 5.0)),
    ("lognorm", stats.lognorm(1.0, 1.0, 2.0)),
    ("lognorm", stats.lognorm(3.0)),
    ("gamma", stats.gamma(0.1, 0.0, 2.0)),
    ("gamma", stats.gamma(4.0, -1.0, 0.5)),
    ("gamma", stats.gamma(1e5, 0.0, 1.0)),
    ("expon", stats.expon(1.0, 3.0)),
]
NUMERIC = [
    ("uniform", stats.uniform(1.0, 2.0)),
    ("beta", stats.beta(0.5, 0.5)),
    ("beta", stats.beta(2e4, 1e4)),
    ("triang", stats.triang(0.3)),
    ("gumbel_r", stats.gumbel_r(0.0, 2.0)),
    ("weibull_min", stats.weibull_min(0.5)),
    ("pareto", stats.pareto(1.2)),
    ("cauchy", stats.cauchy(1.0, 2.0)),
    ("t", stats.t(0.8)),
]


def places(law: Any) -> np.ndarray:
    """Places in the middle, in the tails, outside any support, and far away."""
    middle, reach = law.ppf(0.5), law.ppf(0.75) - law.ppf(0.25)
    inside = law.ppf([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    return np.append(inside, middle + reach * np.array([-1e3, 30.0, 1e3, 1e7]))


def by_name(law: Any, n: int) -> dict[str, np.ndarray]:
    shapes, loc, scale = law.dist._parse_args(*law.args, **law.kwds)
    names = [part.strip() for part in (law.dist.shapes or "").split(",") if part.strip()]
    values = dict(zip([*names, "loc", "scale"], [*shapes, loc, scale], strict=True))
    return {name: np.full(n, float(value)) for name, value in values.items()}


@pytest.mark.parametrize(
    ("family", "law"), [*CONTINUOUS, *NUMERIC], ids=lambda v: str(getattr(v, "args", v))
)
def test_laws_agree_with_quadrature(family: str, law: Any) -> None:
    y = places(law)
    want = np.array([oracle.crps_continuous(law, value) for value in y])
    closed = scores.crps_closed(family, y, by_name(law, len(y)))
    if (family, law) in CONTINUOUS:
        assert closed is not None
        np.testing.assert_allclose(closed, want, rtol=1e-8)
    else:
        assert closed is None
    for spread in (1.0, 0.01, 100.0):
        width = np.full(len(y), (law.ppf(0.75) - law.ppf(0.25)) * spread)
        with np.errstate(over="ignore"):  # of SciPy's own formulas far out
            got = scores.crps_numeric(y, lambda values, rows: law.cdf(values), width)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_closed_forms_agree_with_scoringrules() -> None:
    n = 200
    rng = np.random.default_rng(3)
    y, a, s = rng.normal(size=n) * 3, rng.normal(size=n), rng.gamma(2.0, 1.0, n)
    count = rng.poisson(4.0, n).astype(float)
    pairs = [
        (scores.crps_normal(y, a, s), scoringrules.crps_normal(y, a, s)),
        (scores.crps_logistic(y, a, s), scoringrules.crps_logistic(y, a, s)),
        (scores.crps_laplace(y, a, s), scoringrules.crps_laplace(y, a, s)),
        (scores.crps_t(y, s + 1, a, s), scoringrules.crps_t(y, s + 1, a, s)),
        (scores.crps_lognormal(abs(y), a, s), scoringrules.crps_lognormal(abs(y), a, s)),
        (scores.crps_gamma(abs(y), s, s), scoringrules.crps_gamma(abs(y), s, scale=s)),
        (scores.crps_poisson(count, s), scoringrules.crps_poisson(count, s)),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


@pytest.mark.parametrize("rate", [0.01, 1.0, 7.3, 400.0])
def test_poisson_is_the_sum_over_counts(rate: float) -> None:
    law = stats.poisson(rate)
    high = int(law.isf(1e-16)) + 60
    y = np.array([-3.0, -0.5, 0.0, 1.0, 2.4, np.floor(rate), np.floor(rate) + 50, rate])
    got = scores.crps_poisson(y, np.full(len(y), rate))
    want = [oracle.crps_counts(law.cdf, value, -4, high) for value in y]
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_a_poisson_of_rate_zero_is_a_point() -> None:
    np.testing.assert_allclose(scores.crps_poisson([-1.0, 0.0, 2.0], np.zeros(3)), [1.0, 0.0, 2.0])


def test_a_poisson_of_large_rate_is_nearly_normal() -> None:
    rate = np.full(3, 1e10)
    y = rate + np.array([-2.0, 0.0, 1.0]) * 1e5
    normal = scores.crps_normal(y, rate - 0.5, np.full(3, 1e5))
    np.testing.assert_allclose(scores.crps_poisson(y, rate), normal, rtol=1e-5)


@pytest.mark.parametrize("size", [0.05, 0.5, 3.0, 150.0, 1999.0, 2001.0, 1e5])
@pytest.mark.parametrize("chance", [0.02, 0.4, 0.95, 1.0])
def test_negative_binomial_is_the_sum_over_counts(size: float, chance: float) -> None:
    law = stats.nbinom(size, chance)
    mean, sd = size * (1 - chance) / chance, np.sqrt(size * (1 - chance)) / chance
    low, high = int(mean - 12 * sd) - 4, int(mean + 12 * sd + 40 / chance) + 60
    y = np.round([mean, mean + 3 * sd, mean - sd]) + np.array([0.0, 0.25, 0.0])
    got = scores.crps_negative_binomial(y, np.full(len(y), size), np.full(len(y), chance))
    want = [oracle.crps_counts(law.cdf, value, low, high) for value in y]
    np.testing.assert_allclose(got, want, rtol=2e-7, atol=1e-12)


LATTICE = [
    stats.poisson(0.3),
    stats.poisson(2.5e3),
    stats.binom(12, 0.3),
    stats.binom(100_000, 0.2),
    stats.nbinom(0.2, 0.01),
    stats.geom(0.05),
    stats.randint(-3, 90),
    stats.randint(0, 5000),
]


@pytest.mark.parametrize("law", LATTICE, ids=lambda law: f"{law.dist.name}{law.args}")
@pytest.mark.parametrize("spread", [1.0, 0.02, 50.0])
def test_the_lattice_score_is_the_sum_over_counts(law: Any, spread: float) -> None:
    low, high = int(law.ppf(1e-15)) - 6, int(law.isf(1e-15)) + 6
    y = np.append(law.ppf([0.01, 0.5, 0.8]), [low + 1.0, high - 2.0, low + 0.25])
    got = scores.crps_lattice(
        y, lambda values, rows: law.cdf(values), np.full(len(y), law.std() * spread)
    )
    want = [oracle.crps_counts(law.cdf, value, low - 1, high + 1) for value in y]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-12)


def test_a_lattice_wider_than_any_sum() -> None:
    """A uniform law on a billion numbers: Σ is (N² − 1)/6N plus the distance terms."""
    n = 10.0**9
    y = np.array([0.0, 3e8])
    got = scores.crps_lattice(
        y, lambda values, rows: np.clip((values + 1) / n, 0.0, 1.0), np.full(2, n / 4)
    )
    below = y * (y + 1) / (2 * n)
    above = (n - 1 - y) * (n - y) / (2 * n)
    np.testing.assert_allclose(got, below + above - (n**2 - 1) / (6 * n), rtol=1e-6)


def test_scores_that_do_not_exist_are_missing() -> None:
    got = scores.crps_numeric([0.0], lambda values, rows: special.stdtr(0.4, values), [1.0])
    assert np.isnan(got[0])
    assert scores.crps_closed("t", [0.0], {"df": np.array([0.9])}) is None
    assert scores.crps_closed("nosuch", [0.0], {}) is None


def test_a_law_narrower_than_a_float_is_a_point() -> None:
    def cdf(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return (values >= 5.0).astype(float)

    np.testing.assert_allclose(
        scores.crps_numeric([5.0, 7.0], cdf, [0.0, 0.0]), [0.0, 2.0], atol=1e-12
    )


def test_rows_keep_their_own_law_across_blocks() -> None:
    n = 9000
    rng = np.random.default_rng(4)
    mean, sd = rng.normal(size=n) * 100, rng.gamma(1.0, 1.0, n) + 1e-3
    y = mean + sd * rng.normal(size=n)

    def cdf(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return special.ndtr((values - mean[rows, None]) / sd[rows, None])

    got = scores.crps_numeric(y, cdf, sd)
    np.testing.assert_allclose(got, scores.crps_normal(y, mean, sd), rtol=1e-6)


# --- laws ----------------------------------------------------------------------------------------

FINITE = st.floats(-1e3, 1e3)
SHAPES: list[tuple[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]] = [
    ("normal", scores.crps_normal),
    ("logistic", scores.crps_logistic),
    ("laplace", scores.crps_laplace),
    ("t", lambda y, a, s: scores.crps_t(y, np.full(len(y), 3.0), a, s)),
    ("interval", lambda y, a, s: scores.interval_score(y, a - s, a + s, coverage=0.9)),
    ("pinball", lambda y, a, s: scores.mean_pinball(y, np.stack([a - s, a + s], 1), [0.2, 0.8])),
    (
        "weighted",
        lambda y, a, s: scores.weighted_interval_score(
            y, a, (a - s)[:, None], (a + s)[:, None], [0.6]
        ),
    ),
    ("samples", lambda y, a, s: scores.crps_samples(y, np.stack([a - s, a, a + s], 1), fair=True)),
    (
        "quantiles",
        lambda y, a, s: scores.crps_quantiles(y, np.stack([a - s, a + s], 1), [0.2, 0.8]),
    ),
]


@pytest.mark.parametrize(("name", "score"), SHAPES, ids=[name for name, _ in SHAPES])
@settings(derandomize=True, deadline=None, max_examples=40)
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
    np.testing.assert_allclose(score(-y, -a, s), own, **close)  # all symmetric beliefs here
    np.testing.assert_array_equal(score(y[::-1], a[::-1], s[::-1]), own[::-1])


PROPER: list[tuple[str, Callable[[np.ndarray, float], np.ndarray]]] = [
    ("interval", lambda y, k: _interval(y, k)),
    ("weighted", lambda y, k: _weighted(y, k)),
    ("crps", lambda y, k: scores.crps_normal(y, np.zeros(len(y)), np.full(len(y), k))),
    ("pinball", lambda y, k: scores.pinball(y, np.full(len(y), 1.2816 * k), level=0.9)),
]


def _interval(y: np.ndarray, k: float) -> np.ndarray:
    end = np.full(len(y), 1.6449 * k)
    return scores.interval_score(y, -end, end, coverage=0.9)


def _weighted(y: np.ndarray, k: float) -> np.ndarray:
    ends = np.tile(np.array([0.6745, 1.6449]) * k, (len(y), 1))
    return scores.weighted_interval_score(y, np.zeros(len(y)), -ends, ends, [0.5, 0.9])


@pytest.mark.parametrize(("name", "score"), PROPER, ids=[name for name, _ in PROPER])
def test_the_right_belief_scores_best(
    name: str, score: Callable[[np.ndarray, float], np.ndarray]
) -> None:
    y = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    means = {k: score(y, k).mean() for k in (0.7, 0.9, 1.0, 1.1, 1.4)}
    assert min(means, key=lambda k: means[k]) == 1.0


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: scores.interval_score([1], [2], [1], coverage=0.9), "lower must not exceed upper"),
        (lambda: scores.interval_score([1], [0], [1], coverage=90), "coverage must lie strictly"),
        (lambda: scores.interval_score([1, 2], [0], [1], coverage=0.9), "lower must have 2 rows"),
        (lambda: scores.interval_score([np.nan], [0], [1], coverage=0.9), "y must hold finite"),
        (
            lambda: scores.weighted_interval_score([1], None, [[0]], [[1]], [0.5, 0.9]),
            "lower must have 2 columns",
        ),
        (
            lambda: scores.weighted_interval_score([1], None, [[0, 0]], [[1, 1]], [0.5, 0.5]),
            "coverages must rise strictly",
        ),
        (lambda: scores.pinball([1], [1], level=1.0), "level must lie strictly"),
        (lambda: scores.mean_pinball([1], [[1, 2]], [0.5]), "quantiles must have 1 columns"),
        (lambda: scores.crps_quantiles([1], [[1]], [0.5]), "at least 2 levels"),
        (lambda: scores.crps_samples([1], [[1]], fair=True), "at least 2 columns"),
        (lambda: scores.crps_samples([1], [[np.inf, 1]]), "samples must hold finite"),
        (lambda: scores.crps_normal([1], [1], [0]), "sd must be above 0, got 1 that are not"),
        (lambda: scores.crps_t([1], [1], [0], [1]), "freedom must be above 1"),
        (lambda: scores.crps_gamma([1], [0], [1]), "shape must be above 0"),
        (lambda: scores.crps_lognormal([1], [0], [-1]), "sigma must be above 0"),
        (lambda: scores.crps_poisson([1], [-1]), "rate must not be negative"),
        (lambda: scores.crps_negative_binomial([1], [1], [0]), r"probability must lie in \(0, 1\]"),
        (lambda: scores.crps_numeric([1], lambda v, r: v, [-1]), "spread must not be negative"),
        (lambda: scores.squared_z([1], [0], [-1]), "sd must be above 0"),
        (lambda: scores.truncation_note([0.5, 0.1]), "levels must rise"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
