"""Numbers of Young et al. (2025), and of repeated runs of their published procedure."""

import numpy as np
import pytest

from howsure.core.rng import child
from howsure.predictions.counts import DoublePoisson, NegativeBinomial, Poisson
from howsure.topics.congruence.predictive import Draws, Normals
from howsure.topics.congruence.reference import cce, mcmd

PI = np.pi


def sd(x):
    """Spread of the heteroscedastic truth."""
    return np.sqrt(np.maximum(x, 0.2))


def always(value):
    return lambda x: np.full_like(x, value)


def pairs(rng, rows, low, high, mean, spread):
    x = rng.uniform(low, high, rows)
    return x, mean(x) + spread(x) * rng.standard_normal(rows)


HOMOSCEDASTIC = (
    (0.0, 2.0 * PI, np.cos, always(0.5)),
    [
        (np.cos, always(0.5)),
        (np.cos, always(0.1)),
        (np.cos, always(1.5)),
        (lambda x: np.cos(x) - 2.0, always(0.1)),
        (lambda x: np.cos(x) - 2.0, always(1.5)),
        (lambda x: x - 5.0, always(0.5)),
    ],
    [0.038, 0.118, 0.292, 0.822, 0.544, 0.463],
    [0.005, 0.005, 0.015, 0.005, 0.012, 0.011],
)
HETEROSCEDASTIC = (
    (-PI, PI, np.sin, sd),
    [
        (np.sin, sd),
        (np.sin, lambda x: sd(x) / 4.0),
        (np.sin, lambda x: 2.0 * sd(x)),
        (lambda x: np.sin(x) - 3.0, lambda x: sd(x) / 4.0),
        (lambda x: np.sin(x) - 3.0, lambda x: 2.0 * sd(x)),
        (lambda x: x, always(0.5)),
    ],
    [0.041, 0.149, 0.169, 0.842, 0.642, 0.316],
    [0.009, 0.005, 0.013, 0.008, 0.015, 0.011],
)


@pytest.mark.parametrize("which", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "setting", [HOMOSCEDASTIC, HETEROSCEDASTIC], ids=["homoscedastic", "heteroscedastic"]
)
def test_mean_discrepancy_of_known_laws(setting, which):
    (low, high, mean, spread), others, expected, deviation = setting
    means = []
    for seed in range(4):
        rng = child(seed, "supplement A.4", which)
        x, y = pairs(rng, 1000, low, high, mean, spread)
        ends = (x.min(), x.max()) if which == 5 else (low, high)
        x2, y2 = pairs(rng, 500, *ends, *others[which])
        grid = np.linspace(x.min(), x.max(), 50)
        means.append(mcmd(x, y, x2, y2, grid, bandwidth=1.0).mean)
    assert abs(means[0] - expected[which]) < 3.0 * deviation[which]
    assert abs(np.mean(means) - expected[which]) < 2.0 * deviation[which]


@pytest.mark.parametrize(("bandwidth", "expected"), [("half-variance", 0.223), ("variance", 0.359)])
def test_a_model_that_ignores_x_is_found_out(bandwidth, expected):
    """Figure 1: marginally right, conditionally wrong; the code's γ of y, and the stated one."""
    values = []
    for seed in range(4):
        rng = child(seed, "figure 1")
        x = rng.standard_normal(500)
        y = 3.0 * x + rng.standard_normal(500)
        drawn = np.sqrt(10.0) * rng.standard_normal(500)
        found = cce(x, y, Draws(drawn), bandwidth=1.0, output_bandwidth=bandwidth)
        values.append(found.mean)
    assert np.mean(values) == pytest.approx(expected, abs=0.02)
    right = Draws(3.0 * x + rng.standard_normal(500))
    assert cce(x, y, right, bandwidth=1.0, output_bandwidth=bandwidth).mean < expected / 2.0


def law_of_the_figure(name, x, rng):
    """Draws of the four laws of Figure 14, all with mean x and variance x (or near it)."""
    if name == "normal":
        return lambda: x + np.sqrt(x) * rng.standard_normal(len(x))
    law = {
        "poisson": lambda: Poisson(x),
        "negative binomial": lambda: NegativeBinomial(x, 1.0 / np.round(x**2 / 0.1)),
        "double poisson": lambda: DoublePoisson(x, np.ones(len(x))),
    }[name]()
    return lambda: law.sample(rng)[:, 0]


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("normal", 0.0192),
        ("poisson", 0.0235),
        ("negative binomial", 0.0163),
        ("double poisson", 0.0165),
    ],
)
def test_right_models_score_near_zero_whatever_their_kind(name, published):
    """Figure 14: draws from the true law, n = 2000; calibration errors there reach 0.06."""
    values = []
    for seed in range(4):
        rng = child(seed, "figure 14", name)
        x = rng.uniform(1.0, 10.0, 2000)
        draw = law_of_the_figure(name, x, rng)
        values.append(cce(x, draw(), Draws(draw()), bandwidth=0.5).mean)
    assert np.mean(values) == pytest.approx(published, abs=0.008)


def test_exact_embeddings_of_right_models_score_lower_than_draws():
    rng = child(0, "figure 14", "exact")
    x = rng.uniform(1.0, 10.0, 2000)
    y = x + np.sqrt(x) * rng.standard_normal(2000)
    law = Normals(x, np.sqrt(x))
    sampled = [cce(x, y, Draws(law.draw(rng)[:, 0]), bandwidth=0.5).mean for _ in range(4)]
    assert cce(x, y, law, bandwidth=0.5).mean < np.mean(sampled)


def discrete_wave(rng, rows):
    """y = 30 − K with K Conway–Maxwell–Poisson of power 5: strong under-dispersion."""
    x = rng.uniform(0.0, 2.0 * PI, rows)
    counts = np.arange(60.0)
    shares = Poisson(10.0 * np.sin(x) + 10.0).pmf(np.tile(counts, (rows, 1))) ** 5
    shares /= shares.sum(axis=1, keepdims=True)
    drawn = (np.cumsum(shares, axis=1) < rng.random((rows, 1))).sum(axis=1)
    mean = shares @ counts
    return x, 30.0 - drawn, 30.0 - mean, np.sqrt(shares @ counts**2 - mean**2)


def test_under_dispersed_counts_separate_poisson_from_normal():
    """Figure 2, with the true mean in place of a trained network: the ratio is 3 to 4.5."""
    rng = child(0, "figure 2")
    x, y, mean, spread = discrete_wave(rng, 100)
    poisson, normal = [], []
    for _ in range(5):
        drawn = Poisson(mean).sample(rng, 5)
        poisson.append(cce(x, y, Draws(drawn), bandwidth=0.5).mean)
        close = mean[:, None] + spread[:, None] * rng.standard_normal((100, 5))
        normal.append(cce(x, y, Draws(close), bandwidth=0.5).mean)
    assert np.mean(poisson) == pytest.approx(0.120, abs=0.03)
    assert np.mean(poisson) > 3.0 * np.mean(normal)


@pytest.mark.parametrize("regularization", [0.001, 0.01, 0.05, 0.1, 0.5, 1.0])
def test_more_regularization_draws_the_discrepancy_to_zero(regularization):
    values = []
    for strength in (regularization, 2.0 * regularization):
        rng = child(0, "lambda study")
        x, y = pairs(rng, 200, 0.0, 2.0 * PI, np.cos, always(0.5))
        x2, y2 = pairs(rng, 100, x.min(), x.max(), lambda u: u - 5.0, always(0.5))
        grid = np.linspace(x.min(), x.max(), 50)
        found = mcmd(x, y, x2, y2, grid, bandwidth=0.5, regularization=strength)
        values.append(found.mean)
    assert values[1] < values[0]
    assert found.diagnostics.squared_error < 1e-8


def test_a_shift_of_the_labels_is_scored_by_its_size():
    rng = child(0, "label perturbation")
    x = rng.uniform(0.0, 6.0, 400)
    y = np.cos(x) + 0.5 * rng.standard_normal(400)
    law = Normals(np.cos(x), np.full(400, 0.5))
    scores = [
        cce(
            x,
            y + (shift + rng.standard_normal(400) if shift else 0.0),
            law,
            bandwidth=1.0,
            output_bandwidth=0.05,
        ).mean
        for shift in range(6)
    ]
    assert (np.diff(scores) > 0.0).all()
