"""Squared kernel calibration error: published values, the definition, its null and its power."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy import exp, sqrt
from scipy import stats

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Record
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Samples, mixture
from howsure.predictions.laws import ScipyLaw
from howsure.topics.congruence.skce import _different, skce, skce_of_part

# Published


@pytest.mark.parametrize(
    ("mean", "sd", "y", "scale", "expected"),
    [
        ([0, 0], [1, 1], [0, 0], 1.0, 1 - sqrt(2) + 1 / sqrt(3)),
        (
            *([0, 1], [1, 2], [1, 0], 1.0),
            exp(-sqrt(2)) * (exp(-1 / 2) - 1 / sqrt(2) - 1 / sqrt(5) + exp(-1 / 12) / sqrt(6)),
        ),
        (
            *([0, 1], [1, 2], [0, 1], 1.0),
            exp(-sqrt(2))
            * (
                exp(-1 / 2)
                - exp(-1 / 4) / sqrt(2)
                - exp(-1 / 10) / sqrt(5)
                + exp(-1 / 12) / sqrt(6)
            ),
        ),
        ([0, 0], [1, 1], [0, 0], 2.0, 1 - 2 / sqrt(1.25) + 1 / sqrt(1.5)),
        (
            *([0, 1], [1, 2], [1, 0], 2.0),
            exp(-sqrt(2)) * (exp(-1 / 8) - 1 / sqrt(1.25) - 1 / sqrt(2) + exp(-1 / 18) / 1.5),
        ),
        (
            *([0, 1], [1, 2], [0, 1], 2.0),
            exp(-sqrt(2))
            * (
                exp(-1 / 8)
                - exp(-1 / 10) / sqrt(1.25)
                - exp(-1 / 16) / sqrt(2)
                + exp(-1 / 18) / 1.5
            ),
        ),
    ],
)
def test_the_values_in_the_tests_of_the_authors_package(
    mean: Any, sd: Any, y: Any, scale: float, expected: float
) -> None:
    """CalibrationErrorsDistributions.jl, test/normal.jl; the kernel of y has the length `scale`."""
    law = Distribution.normal(mean, sd)
    found = skce(y, law, prediction_scale=1.0, outcome_scale=scale, replicates=0)
    assert found.value == pytest.approx(float(expected), abs=1e-10)


# By definition

N = 14
LP, LY = 1.3, 0.8


def kappa(a: Any, b: Any) -> Any:
    return np.exp(-0.5 * np.square((np.asarray(a) - np.asarray(b)) / LY))


def by_definition(
    y: np.ndarray, points: np.ndarray, masses: np.ndarray, distance: np.ndarray
) -> float:
    """Mean of h over pairs, each law given as weighted points, shape (n, s)."""
    total = 0.0
    for i in range(len(y)):
        for j in range(len(y)):
            if i == j:
                continue
            h = kappa(y[i], y[j])
            h -= masses[i] @ kappa(points[i], y[j])
            h -= masses[j] @ kappa(points[j], y[i])
            h += masses[i] @ kappa(points[i][:, None], points[j]) @ masses[j]
            total += math.exp(-distance[i, j] / LP) * h
    return total / (len(y) * (len(y) - 1))


LEVELS = (np.arange(500) + 0.5) / 500
"""In the middle of equal shares."""


def wasserstein(points: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(points[:, None] - points).mean(axis=2))


def test_normal_laws_by_definition() -> None:
    rng = np.random.default_rng(0)
    mean, sd, y = rng.normal(size=N), np.exp(0.4 * rng.normal(size=N)), rng.normal(size=N)
    nodes, masses = np.polynomial.hermite_e.hermegauss(80)
    points = mean[:, None] + sd[:, None] * nodes
    distance = np.hypot(mean[:, None] - mean, sd[:, None] - sd)
    expected = by_definition(y, points, np.tile(masses / masses.sum(), (N, 1)), distance)
    found = skce(
        y, Distribution.normal(mean, sd), prediction_scale=LP, outcome_scale=LY, replicates=0
    )
    assert found.value == pytest.approx(expected, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["logistic", "gamma", "t", "mixture"])
def test_other_laws_by_definition(family: str) -> None:
    """Quadrature over quantiles, against 500 equal shares of each law."""
    rng = np.random.default_rng(1)
    loc, scale, y = rng.normal(size=N), np.exp(0.4 * rng.normal(size=N)), 2 * rng.normal(size=N)
    law = {
        "logistic": lambda: Distribution("logistic", {"loc": loc, "scale": scale}),
        "gamma": lambda: Distribution("gamma", {"a": 2.0 + scale, "loc": loc, "scale": scale}),
        "t": lambda: Distribution("t", {"df": np.full(N, 5.0), "loc": loc, "scale": scale}),
        "mixture": lambda: mixture(
            [Distribution.normal(loc, scale), Distribution.normal(loc + 2, 0.5 * scale)]
        ),
    }[family]()
    points = np.stack([law.quantile([level])[:, 0] for level in LEVELS], axis=1)
    masses = np.full(points.shape, 1.0 / points.shape[1])
    expected = by_definition(y, points, masses, wasserstein(points))
    found = skce(y, law, prediction_scale=LP, outcome_scale=LY, replicates=0)
    assert found.value == pytest.approx(expected, rel=5e-3)


def test_counts_by_definition() -> None:
    rng = np.random.default_rng(2)
    mu = rng.uniform(0.5, 6.0, N)
    y = rng.poisson(1.5 * mu).astype(float)
    points = np.tile(np.arange(60.0), (N, 1))
    masses = stats.poisson.pmf(points, mu[:, None])
    distance = wasserstein(stats.poisson.ppf(LEVELS, mu[:, None]))
    expected = by_definition(y, points, masses, distance)
    found = skce(
        y, Distribution("poisson", {"mu": mu}), prediction_scale=LP, outcome_scale=LY, replicates=0
    )
    assert found.value == pytest.approx(expected, rel=0.05)  # W₂ of steps, by 48 quantiles
    exactly = by_definition(y, points, masses, np.zeros((N, N)))
    alike = skce(
        y,
        Distribution("poisson", {"mu": mu}),
        prediction_scale=1e12,
        outcome_scale=LY,
        replicates=0,
    )
    assert alike.value == pytest.approx(exactly, abs=1e-9)


def test_samples_by_definition_are_compared_with_y_among_them() -> None:
    rng = np.random.default_rng(3)
    draws, y = rng.normal(size=(N, 7)), rng.normal(size=N)
    distance = wasserstein(np.sort(np.column_stack([draws, y]), axis=1))
    expected = by_definition(y, draws, np.full((N, 7), 1 / 7), distance)
    found = skce(y, Samples(draws), prediction_scale=LP, outcome_scale=LY, replicates=0)
    assert found.value == pytest.approx(expected, abs=1e-9)


def test_scales_are_medians_that_do_not_see_y() -> None:
    rng = np.random.default_rng(4)
    mean, sd = rng.normal(size=60), np.exp(0.4 * rng.normal(size=60))
    law = Distribution.normal(mean, sd)
    told = skce(rng.normal(size=60), law, replicates=0).details
    first, second = np.triu_indices(60, 1)
    gaps = np.hypot(mean[first] - mean[second], sd[first] - sd[second])
    assert told["prediction_scale"] == pytest.approx(np.sort(gaps)[(len(gaps) - 1) // 2], rel=1e-12)
    drawn = law.sample(rng, 200).ravel()
    expected = np.median(np.abs(drawn - rng.permutation(drawn)))
    assert told["outcome_scale"] == pytest.approx(expected, rel=0.03)
    again = skce(100 * rng.normal(size=60), law, replicates=0).details
    assert again["outcome_scale"] == pytest.approx(told["outcome_scale"], rel=1e-12)


@pytest.mark.parametrize("block", [2, 3, 50])
def test_blocks_by_definition(block: int) -> None:
    rng = np.random.default_rng(5)
    mean, y = rng.normal(size=50), rng.normal(size=50)
    law = Distribution.normal(mean, np.ones(50))
    found = skce(y, law, prediction_scale=LP, outcome_scale=LY, block_size=block, replicates=0)
    ordered = _different(y, law, None, 0)
    nodes, masses = np.polynomial.hermite_e.hermegauss(60)
    sums, pairs = 0.0, 0
    for rows in np.array_split(np.arange(50), 50 // block):
        centre = ordered.prediction.point()[rows]
        weight = np.tile(masses / masses.sum(), (len(rows), 1))
        gaps = np.abs(centre[:, None] - centre)
        each = by_definition(ordered.y[rows], centre[:, None] + nodes, weight, gaps)
        sums += each * len(rows) * (len(rows) - 1)
        pairs += len(rows) * (len(rows) - 1)
    if block != 3:  # where blocks differ in size, who has the larger ones is no matter of this
        assert found.value == pytest.approx(sums / pairs, abs=1e-10)
    assert found.details.get("blocks", 1.0) == 50 // block


# What a right model shows


def right(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, Prediction]:
    mean, sd = rng.normal(size=n), np.exp(0.4 * rng.normal(size=n))
    if kind == "normal":
        return mean + sd * rng.normal(size=n), Distribution.normal(mean, sd)
    if kind == "gamma":
        law = Distribution("gamma", {"a": 1.0 + sd, "loc": mean, "scale": sd})
        return law.sample(rng, 1)[:, 0], law
    if kind == "poisson":
        law = Distribution("poisson", {"mu": np.exp(mean)})
        return law.sample(rng, 1)[:, 0], law
    draws = mean[:, None] + sd[:, None] * rng.normal(size=(n, int(kind) + 1))
    return draws[:, 0], Samples(draws[:, 1:])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "gamma", "poisson", "2", "10"])
def test_right_models_have_a_mean_of_0_and_uniform_p_values(kind: str) -> None:
    rng = np.random.default_rng(6)
    values, p, below = [], [], 0
    for seed in range(150):
        found = skce(*right(kind, 60, rng), replicates=39, seed=seed)
        values.append(found.value)
        p.append(found.p)
        below += found.value < 0
    assert abs(np.mean(values)) < 4 * np.std(values) / sqrt(150)
    assert 40 < below < 130
    assert stats.kstest(np.array(p) - rng.uniform(0, 1 / 40, 150), "uniform").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("block", [None, 20])
@pytest.mark.parametrize("factor", [1.0, 0.6])
def test_the_error_is_that_of_repeated_tables(block: int | None, factor: float) -> None:
    rng = np.random.default_rng(7)
    scales = {"prediction_scale": 1.0, "outcome_scale": 1.0}
    found = [
        skce(*shrunk(300, factor, rng), block_size=block, replicates=0, **scales)
        for _ in range(150)
    ]
    values, errors = (np.array([getattr(f, name) for f in found]) for name in ("value", "error"))
    most = 1.35 if factor == 1.0 and block is None else 1.2  # a right model's is a floor of noise
    assert 0.85 < errors.mean() / values.std(ddof=1) < most
    truth = 0.0
    if factor != 1.0:
        truth = skce(*shrunk(6_000, factor, rng), block_size=1_000, replicates=0, **scales).value
    assert values.mean() == pytest.approx(truth, abs=5 * values.std() / sqrt(150))
    assert np.mean([f.lower <= values.mean() <= f.upper for f in found]) > 0.88


def shrunk(n: int, factor: float, rng: np.random.Generator) -> tuple[np.ndarray, Distribution]:
    mean, sd = rng.normal(size=n), np.exp(0.4 * rng.normal(size=n))
    return mean + sd * rng.normal(size=n), Distribution.normal(mean, factor * sd)


def test_blocks_pay_with_noise_and_all_pairs_do_not() -> None:
    rng = np.random.default_rng(8)
    spreads = {
        block: np.std(
            [skce(*shrunk(100, 1.0, rng), block_size=block, replicates=0).value for _ in range(40)]
        )
        for block in (None, 2)
    }
    assert spreads[2] > 3 * spreads[None]


def test_faults_are_found_that_the_pit_does_not_show() -> None:
    """Bias up where the forecast is high and down where it is low: the PIT stays symmetric."""
    rng = np.random.default_rng(9)
    mean = rng.normal(size=600)
    bias = np.where(mean > 0, 0.4, -0.4)
    y = mean + bias + sqrt(1 - 0.4**2) * rng.normal(size=600)
    held = EvalSet.checked(y, Distribution.normal(mean, np.ones(600)))
    found = {record.metric: record for record in evaluate(held).records}
    assert found["pit_uniformity"].value > 0.05
    assert found["skce"].p == 0.005
    assert found["skce"].value > found["skce"].null_upper > 0 > found["skce"].null_lower


@pytest.mark.slow
def test_the_null_of_blocks_and_of_all_pairs_fit_their_values() -> None:
    rng = np.random.default_rng(10)
    for n, block in ((300, None), (300, 30)):
        values = [
            skce(*shrunk(n, 1.0, rng), block_size=block, replicates=0).value for _ in range(80)
        ]
        told = skce(*shrunk(n, 1.0, rng), block_size=block)
        width = told.null_upper - told.null_lower
        assert width == pytest.approx(
            np.quantile(values, 0.975) - np.quantile(values, 0.025), rel=0.4
        )
        assert told.null == 0.0


# Weights, order, size


@pytest.mark.parametrize("n", [90, pytest.param(1_300, marks=pytest.mark.slow)])
def test_weights_are_repetition_and_order_is_nothing_in_blocks_too(n: int) -> None:
    rng = np.random.default_rng(11)
    y, law = shrunk(n, 0.7, rng)
    counts = rng.integers(0, 4, n)
    rows = rng.permutation(np.repeat(np.arange(n), counts))
    first = skce(y, law, weights=counts)
    again = skce(y[rows], law.take(rows))
    assert first.n == again.n == counts.sum()
    for name in ("value", "error", "lower", "null_lower", "null_upper", "p"):
        assert getattr(first, name) == pytest.approx(getattr(again, name), rel=1e-9, abs=1e-13), (
            name
        )
    assert first.details["outcome_scale"] == pytest.approx(again.details["outcome_scale"])


def test_rows_seen_very_often_have_a_null_by_a_part_of_them() -> None:
    rng = np.random.default_rng(12)
    y, law = shrunk(200, 1.0, rng)
    few, many = (skce(y, law, weights=np.full(200, times)) for times in (10, 50))
    assert (few.n, many.n) == (2_000, 10_000)
    ratio = (many.null_upper - many.null_lower) / (few.null_upper - few.null_lower)
    assert ratio == pytest.approx(2_000 / 10_000, rel=0.35)
    assert many.p == few.p == 0.005  # copies of one row are no independent rows


@pytest.mark.slow
def test_a_part_stands_for_very_many_rows() -> None:
    rng = np.random.default_rng(13)
    y, law = shrunk(2_500, 0.7, rng)
    (record,) = records(EvalSet.checked(y, law))
    assert record.n == 500
    assert record.reason == "on 500 of 2,500 rows"
    (every,) = records(EvalSet.checked(y, law), slow=("skce",))
    assert every.n == 2_500
    assert every.value == pytest.approx(record.value, abs=3 * record.standard_error)


@pytest.mark.slow
def test_laws_whose_quantiles_are_sought_are_looked_at_on_few_rows() -> None:
    rng = np.random.default_rng(14)
    law = Distribution("exponnorm", {"K": rng.uniform(0.5, 2.0, 300)})
    assert isinstance(law.law, ScipyLaw)
    assert law.law.searched
    found = skce_of_part(law.sample(rng, 1)[:, 0], law, None)
    assert found.n == 100
    assert 0.005 <= found.p <= 1


# What has no answer


def records(held: EvalSet, **options: Any) -> tuple[Record, ...]:
    return evaluate(held, metrics=["SKCE"], **options).records


def test_what_it_needs_is_said() -> None:
    rng = np.random.default_rng(15)
    y, law = shrunk(60, 1.0, rng)
    site = np.arange(60) % 5
    intervals = Intervals(y - 1, y + 1, coverage=0.9)
    for held, reason in (
        (EvalSet.checked(y, intervals), "SKCE needs a predictive distribution or samples"),
        (EvalSet.checked(y, law, cluster=site), "SKCE needs independent rows"),
        (
            EvalSet.checked(y, law, weights=rng.random(60), weights_kind="importance"),
            "SKCE needs independent rows without importance weights",
        ),
    ):
        (record,) = records(held)
        assert math.isnan(record.value)
        assert record.reason.startswith(reason)
    with pytest.raises(UnanswerableError, match="SKCE needs a predictive distribution or samples"):
        skce(y, intervals)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"block_size": 1}, "block_size must be"),
        ({"outcome_scale": 0.0}, "outcome_scale must be a finite number above 0, got 0.0"),
        (
            {"prediction_scale": math.inf},
            "prediction_scale must be a finite number above 0, got inf",
        ),
        ({"replicates": -1}, "replicates must be"),
        ({"weights": [0.5, 1.0, 1.0]}, "frequency weights must be whole numbers"),
        ({"confidence": 95}, "confidence must be strictly between 0 and 1"),
        ({"y": [1.0, 2.0]}, "y must have 3 rows"),
    ],
)
def test_bad_input_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {
        "y": [0.0, 1.0, 2.0],
        "prediction": Distribution.normal([0.0] * 3, [1.0] * 3),
    }
    with pytest.raises(InputError, match=message):
        skce(**{**given, **changes})


def test_too_few_or_equal_rows_have_a_reason() -> None:
    one = skce([1.0], Distribution.normal([0.0], [1.0]))
    assert (math.isnan(one.value), one.reason) == (True, "one row makes no pair")
    flat = skce([1.0, 1.0, 1.0], Samples(np.ones((3, 4))))
    assert flat.reason == "all outcomes that are predicted are equal"
    twice = skce([0.3], Distribution.normal([0.0], [1.0]), weights=[2])
    assert math.isfinite(twice.value)
