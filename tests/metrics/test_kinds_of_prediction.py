"""Perfect models of every kind of prediction have the values that their records call perfect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from howsure.core.records import Record
from howsure.core.rng import child
from howsure.engine.measure import curves_of, evaluate
from howsure.engine.view import View, choose_coverages
from howsure.predictions import Distribution, EvalSet, Intervals, Prediction, Quantiles, Samples
from howsure.stats.estimate import Estimate
from howsure.topics.calibration.curve import Weighting, calibration_error_quantiles
from howsure.topics.dispersion import variance_ratio


def records(held: EvalSet, *metrics: str) -> dict[str, Record]:
    return {r.metric: r for r in evaluate(held, metrics=metrics).records}


def ensemble(name: str, n: int, m: int, seed: int = 0) -> EvalSet:
    """y and m members drawn from one law a row; its spread varies from row to row."""
    rng = child(seed, "ensemble", name, m)
    spread = np.exp(rng.uniform(-0.7, 0.7, n))[:, None]
    draw = {
        "normal": lambda: spread * rng.normal(size=(n, m + 1)),
        "gamma": lambda: spread * rng.gamma(1.5, size=(n, m + 1)),
        "poisson": lambda: rng.poisson(2.0 * spread, (n, m + 1)).astype(float),
    }
    values = draw[name]()
    return EvalSet.checked(values[:, 0], Samples(values[:, 1:]))


@pytest.mark.parametrize("m", [5, 10, 15, 50])
@pytest.mark.parametrize("name", ["normal", "poisson"])
def test_perfect_ensembles_cover_what_their_records_say(name: str, m: int) -> None:
    held = ensemble(name, 20_000, m)
    for coverage in (0.5, 0.8, 0.9) if m > 18 else (0.5, *choose_coverages(held)):
        for record in evaluate(
            held,
            coverages=[coverage],
            metrics=["empirical_coverage", "miss_rate", "misses_below", "misses_above"],
        ).records:
            claimed = record.target if math.isnan(record.null) else record.null
            assert abs(record.value - claimed) < 4 * record.standard_error, record


@pytest.mark.parametrize("m", [2, 3, 5, 10, 18])
def test_few_members_are_told_at_the_highest_coverage_that_they_reach(m: int) -> None:
    held = ensemble("normal", 400, m)
    assert choose_coverages(held) == ((m - 1) / (m + 1),)
    record = records(held, "empirical_coverage")["empirical_coverage"]
    assert record.coverage == View(held).headline == (m - 1) / (m + 1)
    assert not math.isnan(record.value)


def test_few_members_have_measures_of_conditional_coverage() -> None:
    held = ensemble("normal", 300, 10)
    held = EvalSet.checked(held.y, held.predictions, features={"a": child(0, "a").normal(size=300)})
    names = ["worst_slab", "ert_squared"]
    for record in evaluate(held, beside="inputs", metrics=names).records:
        assert record.coverage == 9 / 11 or math.isnan(record.coverage)
        assert not math.isnan(record.value), record.reason


def test_coverages_that_can_be_reached() -> None:
    y = np.zeros(3)
    table = np.arange(60.0).reshape(3, 20)
    assert choose_coverages(EvalSet.checked(y, Samples(table[:, :19]))) == (0.9,)
    assert choose_coverages(EvalSet.checked(y, Samples(table[:, :1]))) == (0.5, 0.8, 0.9)
    both = (Samples(table[:, :5]), Distribution.normal(y, y + 1.0))
    assert choose_coverages(EvalSet.checked(y, both)) == (0.9,)
    narrow = Quantiles([0.1, 0.5, 0.9], table[:, :3])
    assert choose_coverages(EvalSet.checked(y, narrow)) == (0.8,)
    median = Quantiles([0.5], table[:, :1])
    assert choose_coverages(EvalSet.checked(y, median)) == (0.5,)
    for other in (Distribution.normal(y, y + 1.0), Samples(table)):
        both = EvalSet.checked(y, (median, other))
        assert choose_coverages(both) == (0.9,)
        assert np.isfinite(View(both).get("ends", 0.5)).all()


def test_quantiles_of_whole_numbers_are_judged_by_a_range() -> None:
    rng = child(0, "count quantiles")
    rate = np.exp(rng.uniform(0.0, 2.0, 5_000))
    y, levels = rng.poisson(rate).astype(float), [0.05, 0.5, 0.95]
    table = stats.poisson.ppf(levels, rate[:, None])
    record = records(EvalSet.checked(y, Quantiles(levels, table)), "empirical_coverage")
    found = record["empirical_coverage"]
    assert found.lower > 0.9  # proven above the nominal coverage, and right all the same
    assert found.target == pytest.approx(0.9)
    assert found.upper < float(found.options["claimed_most"])
    wide = Quantiles(levels, table + np.array([-1.0, 0.0, 1.0]))
    found = records(EvalSet.checked(y, wide), "empirical_coverage")["empirical_coverage"]
    assert found.lower > float(found.options["claimed_most"])


def test_quantiles_of_whole_numbers_come_true() -> None:
    """P(Y ≤ q) exceeds the level of q by up to the probability of q, which is no fault."""
    rng = child(0, "count quantiles")
    rate = np.exp(rng.uniform(0.0, 2.0, 5_000))
    y, levels = rng.poisson(rate).astype(float), [0.05, 0.25, 0.5, 0.75, 0.95]
    table = stats.poisson.ppf(levels, rate[:, None])
    found = records(EvalSet.checked(y, Quantiles(levels, table)), "calibration_error")
    assert found["calibration_error"].value <= found["calibration_error"].null
    for wrong, copies in ((stats.poisson.ppf(levels, 1.4 * rate[:, None]), y), (table, y + 1.0)):
        held = EvalSet.checked(copies, Quantiles(levels, wrong))
        found = records(held, "calibration_error")
        assert found["calibration_error"].value > 10 * found["calibration_error"].null


@pytest.mark.parametrize("weighting", ["uniform", "frequency"])
def test_the_influence_of_quantiles_that_repeat(weighting: Weighting) -> None:
    rng = child(0, "tied quantiles")
    rate = np.exp(rng.uniform(0.0, 1.0, 40))
    y, levels = rng.poisson(rate).astype(float), [0.2, 0.5, 0.8]
    table = stats.poisson.ppf(levels, 1.6 * rate[:, None])
    weights = rng.integers(1, 4, 40).astype(float)

    def value(w: np.ndarray) -> Estimate:
        return calibration_error_quantiles(y, table, levels, weighting=weighting, weights=w)

    found = value(weights)
    assert found.influence is not None
    assert found.value > 0.0
    for row in range(40):
        moved = value(weights + 1e-6 * weights.sum() * (np.arange(40) == row)).value
        assert (moved - found.value) / 1e-6 == pytest.approx(found.influence[row], abs=1e-5)


def test_claims_are_those_of_the_kind_that_gave_the_interval() -> None:
    held = ensemble("normal", 50, 15)
    (samples,) = held.predictions
    given = Intervals(held.y - 1.0, held.y + 1.0, coverage=0.8)
    law = Distribution.from_scipy(stats.poisson(np.full(50, 2.0)))
    counts = EvalSet.checked(np.full(50, 1.0), (law, Intervals(np.zeros(50), np.ones(50), 0.8)))
    for both in (EvalSet.checked(held.y, (samples, given)), counts):
        np.testing.assert_allclose(View(both).get("claimed", 0.8), 0.8)
    np.testing.assert_allclose(View(held).get("claimed", 0.8), 0.75)
    assert View(held).get("claimed", 0.8).shape == (50,)
    mass = law.claimed(counts.y, 0.8)
    alone = View(EvalSet.checked(counts.y, law))
    np.testing.assert_array_equal(alone.get("claimed", 0.8), mass)


def test_curves_of_coverage_compare_with_what_is_claimed() -> None:
    held = ensemble("poisson", 4_000, 9)
    found = evaluate(held, coverages=[0.5, 0.8], metrics=["empirical_coverage"])
    (curve,) = [c for c in curves_of(found) if c.name == "interval_calibration"]
    assert curve.reference is not None
    assert np.abs(curve.y - curve.reference).max() < 4 * np.sqrt(0.25 / 4_000)
    assert (curve.y - curve.x).max() > 0.1


@pytest.mark.parametrize("m", [2, 3, 5, 10, 50])
@pytest.mark.parametrize("name", ["normal", "gamma", "poisson"])
def test_perfect_ensembles_have_a_squared_z_of_one(name: str, m: int) -> None:
    """Where the mean of (y − mean)²/sd² is 1.41 for ten normal members."""
    held = ensemble(name, 20_000, m)
    record = records(held, "mean_squared_z")["mean_squared_z"]
    assert record.target == 1.0
    assert record.lower < 1.0 < record.upper or abs(record.value - 1.0) < 4 * record.standard_error
    assert record.standard_error < 0.05


def test_standard_errors_of_the_squared_z_of_ensembles() -> None:
    values = [
        records(ensemble("normal", 300, 5, seed), "mean_squared_z")["mean_squared_z"]
        for seed in range(200)
    ]
    spread = np.std([record.value for record in values], ddof=1)
    claimed = np.mean([record.standard_error for record in values])
    assert 0.8 < claimed / spread < 1.25


@pytest.mark.parametrize("m", [5, 10, 50])
@pytest.mark.parametrize("name", ["normal", "gamma", "poisson"])
def test_perfect_ensembles_have_no_relative_calibration_error(name: str, m: int) -> None:
    record = records(ensemble(name, 20_000, m), "relative_calibration_error")
    found = record["relative_calibration_error"]
    assert abs(found.value) < 4 * found.standard_error + 1e-4


def test_the_ratio_from_its_definition() -> None:
    rng = child(0, "ratio")
    y, mean, sd = rng.normal(size=9), rng.normal(size=9), rng.uniform(0.0, 2.0, 9)
    weights = rng.integers(1, 4, 9).astype(float)
    expected = sum(w * (a - b) ** 2 for w, a, b in zip(weights, y, mean, strict=True))
    expected /= sum(w * s**2 for w, s in zip(weights, sd, strict=True))
    found = variance_ratio(y, mean, sd, weights=weights)
    assert found.value == pytest.approx(expected)
    for row in range(9):
        step = 1e-6 * weights.sum()
        moved = weights + step * (np.arange(9) == row)
        shift = variance_ratio(y, mean, sd, weights=moved).value - found.value
        assert found.influence is not None
        assert shift / 1e-6 == pytest.approx(found.influence[row], rel=1e-4, abs=1e-5)
    assert "no spread" in variance_ratio(y, mean, np.zeros(9)).reason


def test_one_sample_has_no_spread() -> None:
    held = EvalSet.checked([1.0, 2.0], Samples([[1.0], [3.0]]))
    found = records(held, "mean_squared_z")["mean_squared_z"]
    assert found.reason == "one sample per row gives no standard deviation"


def gamma_kinds(n: int) -> dict[str, EvalSet]:
    rng = child(0, "gamma bias")
    scale = np.exp(rng.uniform(-0.5, 0.5, n))
    law = stats.gamma(1.5, scale=scale)
    y = rng.gamma(1.5, scale)
    levels = np.array([0.05, 0.5, 0.95])
    table = np.stack([law.ppf(level) for level in levels], axis=1)
    kinds: dict[str, Prediction] = {
        "quantiles": Quantiles(levels, table),
        "intervals": Intervals(table[:, 0], table[:, 2], coverage=0.9),
        "distributions": Distribution.from_scipy(law),
        "samples": Samples(rng.gamma(1.5, scale[:, None], (n, 20))),
    }
    held = {kind: EvalSet.checked(y, prediction) for kind, prediction in kinds.items()}
    return held | {"point": EvalSet.checked(y, kinds["quantiles"], point=law.mean())}


def test_a_derived_median_is_not_judged_as_a_mean() -> None:
    for kind, held in gamma_kinds(20_000).items():
        found = records(held, "bias")["bias"]
        if kind in ("quantiles", "intervals"):
            assert not found.lower < 0.0 < found.upper, kind
            assert math.isnan(found.target), kind
            assert "derived" in found.reason, kind
        else:
            assert found.target == 0.0, kind
            assert found.reason == "", kind
            assert abs(found.value) < 4 * found.standard_error, kind
