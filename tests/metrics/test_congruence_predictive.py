"""Exact embeddings against numerical integration, sums, and many Monte-Carlo draws."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from generated import examples
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions.counts import DoublePoisson, NegativeBinomial, Poisson
from howsure.stats.kernels import RBF, Laplacian, Polynomial
from howsure.topics.congruence.outputs import law_gram
from howsure.topics.congruence.predictive import (
    Atoms,
    Draws,
    Empirical,
    Mixtures,
    Normals,
    Support,
    expected_diagonal,
    expected_gram,
)
from howsure.topics.congruence.reference import cce
from oracles.congruence import rbf, squared_cce

quick = examples(40)


def integrated(function, variance, gap):
    """Average of a function of |Z|, Z ~ N(gap, variance)."""
    if variance == 0.0:
        return function(abs(gap))
    sd = np.sqrt(variance)
    ends = np.unique(
        np.clip([gap - 12 * sd, 0.0, gap, gap + 12 * sd], gap - 12 * sd, gap + 12 * sd)
    )
    density = stats.norm(gap, sd).pdf
    return sum(
        integrate.quad(lambda z: function(abs(z)) * density(z), a, b, epsabs=1e-13, limit=200)[0]
        for a, b in pairwise(ends)
    )


@pytest.mark.slow
@quick
@given(
    st.floats(0.01, 20.0),
    st.floats(-6.0, 6.0),
    st.sampled_from([0.0, 1e-3, 0.5, 3.0]),
    st.sampled_from([0.0, 0.02, 1.0, 8.0]),
)
def test_normal_laws_under_both_kernels_agree_with_integration(gamma, gap, first, second):
    left = Atoms(np.array([[gap]]), np.array([[first]]))
    right = Atoms(np.array([[0.0]]), np.array([[second]]))
    for kernel, shape in (
        (RBF(gamma), lambda d: np.exp(-gamma * d**2)),
        (Laplacian(gamma), lambda d: np.exp(-gamma * d)),
    ):
        truth = integrated(shape, first**2 + second**2, gap)
        assert expected_gram(kernel, left, right)[0, 0] == pytest.approx(truth, abs=1e-10)
        own = integrated(shape, 2.0 * first**2, 0.0)
        assert expected_diagonal(kernel, left)[0] == pytest.approx(own, abs=1e-10)


@pytest.mark.parametrize("kernel", [RBF(3.0), Laplacian(50.0), Laplacian(1e-3)])
def test_extreme_laws_stay_finite_and_inside_zero_and_one(kernel):
    mean = np.array([[0.0], [1e-9], [5.0], [1e4], [-1e8]])
    sd = np.array([[0.0], [1e-12], [1e-3], [1e3], [1e8]])
    gram = expected_gram(kernel, Atoms(mean, sd), Atoms(mean, sd))
    assert np.isfinite(gram).all()
    assert (gram >= 0.0).all()
    assert (gram <= 1.0 + 1e-12).all()
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12)


def test_laws_without_spread_are_points():
    points = child(0, "points").normal(size=(6, 2))
    for kernel in (RBF(0.7), Laplacian(0.7)):
        law = Atoms(points, np.zeros_like(points))
        np.testing.assert_allclose(
            expected_gram(kernel, law, Atoms(points)), kernel.gram(points, points), rtol=1e-12
        )


def laws(rows, rng):
    """One prediction of each kind, with many draws from it."""
    mean, sd = rng.normal(size=rows), rng.uniform(0.3, 1.5, rows)
    weights = rng.dirichlet(np.ones(3), rows)
    rate = rng.uniform(0.5, 8.0, rows)
    poisson = Poisson(rate)
    return {
        "normals": Normals(mean, sd),
        "several outputs": Normals(rng.normal(size=(rows, 2)), rng.uniform(0.3, 1.5, (rows, 2))),
        "mixtures": Mixtures(weights, rng.normal(size=(rows, 3)), rng.uniform(0.1, 1.0, (rows, 3))),
        "own support": Support(*poisson.support()),
        "shared support": Support(np.arange(40), shares(poisson, rows, 40)),
        "samples": Empirical(rng.normal(size=(rows, 6))),
    }


def shares(law, rows, size):
    table = law.pmf(np.tile(np.arange(size), (rows, 1)))
    return table / table.sum(axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(laws(2, child(0, "names"))))
@pytest.mark.parametrize("kernel", [RBF(0.4), Laplacian(0.5)])
def test_inner_products_are_averages_over_pairs_of_draws(name, kernel):
    law = laws(5, child(1, "laws"))[name]
    rng = child(2, "pairs")
    draws = np.stack([law.draw(rng) for _ in range(2000)], axis=1)  # (5, 2000, p)
    gram = law_gram(kernel, law, law)
    for i in range(5):
        for j in range(5):
            pairs = kernel.gram(draws[i, :1000], draws[j, 1000:])
            spread = np.sqrt(pairs.mean(axis=1).var() / 1000 + pairs.mean(axis=0).var() / 1000)
            assert abs(gram[i, j] - pairs.mean()) < 5.0 * spread + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normals", "mixtures", "shared support", "several outputs"])
def test_exact_errors_are_the_limit_of_many_draws(name):
    rng = child(3, "limit", name)
    rows = 60
    law = laws(rows, rng)[name]
    x, y = rng.normal(size=rows), law.draw(rng) + 0.5
    exact = np.square(cce(x, y, law, bandwidth=0.5, output_bandwidth=0.4).values)
    gaps = []
    for draws in (4, 400):
        many = np.stack([law.draw(rng) for _ in range(draws)], axis=1)
        sampled = cce(x, y, Draws(many), bandwidth=0.5, output_bandwidth=0.4)
        gaps.append(np.abs(np.square(sampled.values) - exact).mean())
    assert gaps[1] < 0.004
    assert gaps[1] < gaps[0] / 3.0  # the error falls as the root of the number of draws


def test_equal_laws_written_differently_have_equal_errors():
    rng = child(4, "written")
    rows = 80
    x, rate = rng.normal(size=rows), rng.uniform(1.0, 6.0, rows)
    y = rng.poisson(rate).astype(float)
    table = shares(Poisson(rate), rows, 50)
    shared = cce(x, y, Support(np.arange(50), table)).values
    own = cce(x, y, Support(*Poisson(rate).support())).values
    np.testing.assert_allclose(shared, own, atol=1e-8)
    padded = cce(x, y, Support(np.tile(np.arange(50.0), (rows, 1)), table)).values
    np.testing.assert_allclose(shared, padded, atol=1e-8)
    mean, sd = rng.normal(size=(rows, 1)), rng.uniform(0.5, 1.0, (rows, 1))
    normal = cce(x, y, Normals(mean, sd)).values
    halves = Mixtures(np.full((rows, 2), 0.5), np.tile(mean, 2), np.tile(sd, 2))
    np.testing.assert_allclose(cce(x, y, halves).values, normal, atol=1e-8)
    pair = np.column_stack([mean, mean + 1.0])
    points = Mixtures(np.full((rows, 2), 0.5), pair, np.zeros((rows, 2)))
    sampled = Empirical(pair)
    np.testing.assert_allclose(cce(x, y, points).values, cce(x, y, sampled).values, atol=1e-8)


def test_draws_and_samples_share_their_arithmetic_but_not_their_mode():
    rng = child(5, "modes")
    x, y, cloud = rng.normal(size=40), rng.normal(size=40), rng.normal(size=(40, 3))
    drawn, exact = (
        cce(x, y, Draws(cloud), bandwidth=0.7),
        cce(x, y, Empirical(cloud), bandwidth=0.7),
    )
    np.testing.assert_array_equal(drawn.values, exact.values)
    assert (drawn.mode, exact.mode) == ("samples", "exact")
    truth = squared_cce(
        x[:, None],
        y[:, None],
        cloud[:, :, None],
        x[:, None],
        inputs=rbf(0.7),
        outputs=rbf(1.0 / (2.0 * y.var(ddof=1))),
        regularization=0.1,
    )
    np.testing.assert_allclose(np.square(drawn.values), truth, atol=1e-10)


@pytest.mark.parametrize(
    "law",
    [
        Poisson([3.0, 9.0]),
        NegativeBinomial([3.0, 9.0], [0.2, 1.0]),
        DoublePoisson([3.0, 9.0], [5.0, 0.5]),
    ],
    ids=lambda law: type(law).__name__,
)
def test_count_laws_become_predictions_with_their_moments(law):
    predictive = Support(*law.support())
    rng = child(6, "counts")
    draws = np.stack([predictive.draw(rng)[:, 0] for _ in range(4000)], axis=1)
    error = 5.0 * np.sqrt(law.variance() / 4000)
    assert (np.abs(draws.mean(axis=1) - law.mean()) < error).all()
    np.testing.assert_allclose(draws.var(axis=1), law.variance(), rtol=0.15)


@pytest.mark.parametrize("name", list(laws(2, child(0, "names"))))
def test_masses_are_the_shares_of_the_atoms(name):
    law = laws(7, child(7, "laws"))[name]
    atoms = law.atoms()
    masses = law.masses()
    assert masses.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        masses @ atoms.mean, law.average(atoms.mean).mean(axis=0), atol=1e-12
    )
    part = law.take(slice(2, 5))
    np.testing.assert_allclose(
        part.average(part.atoms().mean), law.average(atoms.mean)[2:5], atol=1e-12
    )


def test_polynomial_output_kernels_work_where_atoms_are_points():
    rng = child(8, "polynomial")
    x, y, cloud = rng.normal(size=50), rng.normal(size=50), rng.normal(size=(50, 2))
    kernel = Polynomial(2, 0.3, 1.0)
    found = cce(x, y, Draws(cloud), bandwidth=0.5, output_kernel=kernel)
    truth = squared_cce(
        x[:, None],
        y[:, None],
        cloud[:, :, None],
        x[:, None],
        inputs=rbf(0.5),
        outputs=kernel.gram,
        regularization=0.1,
    )
    np.testing.assert_allclose(np.square(found.values), truth, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Normals([0.0], [-1.0]), "sd must not be negative, got -1"),
        (lambda: Normals([0.0, 1.0], [1.0]), "sd must have 2 rows, got 1"),
        (lambda: Normals([np.nan], [1.0]), "mean must contain finite numbers"),
        (
            lambda: Mixtures([[0.5, 0.4]], [[0.0, 1.0]], [[1.0, 1.0]]),
            "weights must sum to 1 .* 0.9",
        ),
        (
            lambda: Mixtures([[1.5, -0.5]], [[0.0, 1.0]], [[1.0, 1.0]]),
            "weights must not be negative",
        ),
        (lambda: Mixtures([[1.0]], [[0.0, 1.0]], [[1.0, 1.0]]), "weights must have 2 columns"),
        (lambda: Support([0, 1, 2], [[0.5, 0.5]]), "values must have 2 columns, got 3"),
        (lambda: Support([0, 1], [[0.7, 0.5]]), "probabilities must sum to 1 .* row 0"),
        (lambda: Support([[0, 1], [0, 1], [0, 1]], [[0.5, 0.5]] * 2), "values must have 2 rows"),
        (lambda: Draws([np.inf]), "samples must contain finite numbers"),
        (lambda: Empirical(np.zeros((2, 2, 2, 2))), "samples must have two dimensions"),
        (lambda: Draws([0.0]).draw(np.random.default_rng(0)), "draws must be given"),
    ],
)
def test_bad_predictions_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()
