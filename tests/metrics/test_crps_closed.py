"""CRPS of laws by closed form, and by quadrature where there is none, against definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from extras import needs
from howsure.core.errors import InputError
from howsure.topics.crps_closed import (
    crps_between,
    crps_closed,
    crps_gamma,
    crps_laplace,
    crps_logistic,
    crps_lognormal,
    crps_negative_binomial,
    crps_normal,
    crps_poisson,
    crps_support,
    crps_t,
)
from howsure.topics.crps_numeric import crps_numeric
from oracles import scores as oracle

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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "law"), [*CONTINUOUS, *NUMERIC], ids=lambda v: str(getattr(v, "args", v))
)
def test_laws_agree_with_quadrature(family: str, law: Any) -> None:
    y = places(law)
    want = np.array([oracle.crps_continuous(law, value) for value in y])
    closed = crps_closed(family, y, by_name(law, len(y)))
    if (family, law) in CONTINUOUS:
        assert closed is not None
        np.testing.assert_allclose(closed, want, rtol=1e-8)
    else:
        assert closed is None
    for spread in (1.0, 0.01, 100.0):
        width = np.full(len(y), (law.ppf(0.75) - law.ppf(0.25)) * spread)
        with np.errstate(over="ignore"):  # of SciPy's own formulas far out
            got = crps_numeric(y, lambda values, rows: law.cdf(values), width)
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 2.0), (-math.inf, 2.0), (-1.0, math.inf)])
def test_between_thresholds_it_is_the_integral_between_them(lower: float, upper: float) -> None:
    """∫ (F(z) − 1{y ≤ z})² dz, of y at each threshold and between."""
    law, y = stats.norm(0.3, 1.5), np.array([-1.0, 0.5, 2.0])
    want = [
        integrate.quad(lambda z: law.cdf(z) ** 2, lower, each)[0]
        + integrate.quad(lambda z: law.sf(z) ** 2, each, upper)[0]
        for each in y
    ]
    got = crps_between("norm", y, by_name(law, 3), lower, upper)
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_closed_forms_agree_with_scoringrules() -> None:
    peer = needs("scoringrules")
    n = 200
    rng = np.random.default_rng(3)
    y, a, s = rng.normal(size=n) * 3, rng.normal(size=n), rng.gamma(2.0, 1.0, n)
    count = rng.poisson(4.0, n).astype(float)
    pairs = [
        (crps_normal(y, a, s), peer.crps_normal(y, a, s)),
        (crps_logistic(y, a, s), peer.crps_logistic(y, a, s)),
        (crps_laplace(y, a, s), peer.crps_laplace(y, a, s)),
        (crps_t(y, s + 1, a, s), peer.crps_t(y, s + 1, a, s)),
        (crps_lognormal(abs(y), a, s), peer.crps_lognormal(abs(y), a, s)),
        (crps_gamma(abs(y), s, s), peer.crps_gamma(abs(y), s, scale=s)),
        (crps_poisson(count, s), peer.crps_poisson(count, s)),
    ]
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)


def test_what_has_no_closed_form_has_none() -> None:
    assert crps_closed("t", [0.0], {"df": np.array([0.9])}) is None
    assert crps_closed("nosuch", [0.0], {}) is None


@pytest.mark.parametrize("rate", [0.01, 1.0, 7.3, 400.0])
def test_poisson_is_the_sum_over_counts(rate: float) -> None:
    law = stats.poisson(rate)
    high = int(law.isf(1e-16)) + 60
    y = np.array([-3.0, -0.5, 0.0, 1.0, 2.4, np.floor(rate), np.floor(rate) + 50, rate])
    got = crps_poisson(y, np.full(len(y), rate))
    want = [oracle.crps_counts(law.cdf, value, -4, high) for value in y]
    np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


def test_a_poisson_of_rate_zero_is_a_point() -> None:
    np.testing.assert_allclose(crps_poisson([-1.0, 0.0, 2.0], np.zeros(3)), [1.0, 0.0, 2.0])


def test_a_poisson_of_large_rate_is_nearly_normal() -> None:
    rate = np.full(3, 1e10)
    y = rate + np.array([-2.0, 0.0, 1.0]) * 1e5
    normal = crps_normal(y, rate - 0.5, np.full(3, 1e5))
    np.testing.assert_allclose(crps_poisson(y, rate), normal, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.05, 0.5, 3.0, 150.0, 1999.0, 2001.0, 1e5])
@pytest.mark.parametrize("chance", [0.02, 0.4, 0.95, 1.0])
def test_negative_binomial_is_the_sum_over_counts(size: float, chance: float) -> None:
    law = stats.nbinom(size, chance)
    mean, sd = size * (1 - chance) / chance, np.sqrt(size * (1 - chance)) / chance
    low, high = int(mean - 12 * sd) - 4, int(mean + 12 * sd + 40 / chance) + 60
    y = np.round([mean, mean + 3 * sd, mean - sd]) + np.array([0.0, 0.25, 0.0])
    got = crps_negative_binomial(y, np.full(len(y), size), np.full(len(y), chance))
    want = [oracle.crps_counts(law.cdf, value, low, high) for value in y]
    np.testing.assert_allclose(got, want, rtol=2e-7, atol=1e-12)


def test_listed_values_are_scored_by_their_definition() -> None:
    """∫ (F − 1)² between the values, and as a Poisson law cut far out."""
    rng = np.random.default_rng(5)
    values = np.sort(rng.normal(size=(30, 6)), axis=1)
    values[:, 3] = values[:, 2]  # ties
    shares = rng.dirichlet(np.ones(6), 30)
    y = rng.normal(size=30)
    knots = np.sort(np.column_stack([values, y]), axis=1)
    middles = (knots[:, 1:] + knots[:, :-1]) / 2
    below = (shares[:, None, :] * (values[:, None, :] <= middles[:, :, None])).sum(axis=2)
    want = (np.diff(knots, axis=1) * (below - (y[:, None] <= middles)) ** 2).sum(axis=1)
    np.testing.assert_allclose(crps_support(y, values, shares), want, rtol=1e-12)
    rate, counts = rng.uniform(0.1, 9.0, 30), np.tile(np.arange(80.0), (30, 1))
    poisson = stats.poisson.pmf(counts, rate[:, None])
    truth = np.floor(3 * np.abs(y))
    np.testing.assert_allclose(
        crps_support(truth, counts, poisson), crps_poisson(truth, rate), rtol=1e-10, atol=1e-13
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crps_support([1], [[1, 0]], [[0.5, 0.5]]), "values must not fall .* row 0"),
        (lambda: crps_support([1], [[0, 1]], [[0.5, 0.4]]), "got 0.9 in all, 0.4 at the least"),
        (lambda: crps_support([1], [[0, 1]], [[1.5, -0.5]]), "probabilities must be zero or more"),
        (lambda: crps_support([1], [[0, 1]], [[1.0]]), "probabilities must have 2 columns"),
        (lambda: crps_normal([1], [1], [0]), "sd must be above 0, got 1 that are not"),
        (lambda: crps_t([1], [1], [0], [1]), "freedom must be above 1"),
        (lambda: crps_gamma([1], [0], [1]), "shape must be above 0"),
        (lambda: crps_lognormal([1], [0], [-1]), "sigma must be above 0"),
        (lambda: crps_poisson([1], [-1]), "rate must not be negative"),
        (lambda: crps_negative_binomial([1], [1], [0]), r"probability must be in \(0, 1\]"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
