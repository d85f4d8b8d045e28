"""Coverage at single points: formulas against their definitions, and against known laws."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from generated import examples
from howsure.core.errors import InputError
from howsure.stats.binomial import clopper_pearson
from howsure_studies.pointwise.formulas import (
    brier,
    cicf,
    cicp,
    coverage_band,
    interval_mass,
    picf,
    picp,
)

SHARES = st.tuples(st.integers(1, 8), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(0, 1))
)
LAWS = {
    "normal": stats.norm(),
    "t3": stats.t(3),
    "gamma": stats.gamma(0.5, loc=-0.5),
    "two modes": stats.beta(0.4, 0.4, loc=-0.5),
}


@pytest.mark.parametrize("name", LAWS)
def test_picf_in_closed_form_matches_brute_force(name: str) -> None:
    """Row 13: |Δ| ≤ 3/√N, from N new y drawn against each interval."""
    law, draws = LAWS[name], 20000
    rng = np.random.default_rng(0)
    mean, sd = np.array([0.0, 5.0, -2.0]), np.array([1.0, 0.1, 3.0])
    lower = mean + sd * rng.normal(-1, 0.5, size=(8, 3))
    upper = lower + sd * rng.uniform(0.2, 3, size=(8, 3))
    exact = picf(lower, upper, lambda y: law.cdf((y - mean) / sd))
    y = mean + sd * law.rvs(size=(draws, 3), random_state=1)
    ends = zip(lower, upper, strict=True)
    brute = np.mean([((low <= y) & (y <= high)).mean(axis=0) for low, high in ends], axis=0)
    assert (np.abs(exact - brute) <= 3 * 0.5 / math.sqrt(draws)).all()


def test_shares_match_loops() -> None:
    rng = np.random.default_rng(1)
    target = rng.normal(size=6)
    lower = rng.normal(-1, 1, size=(4, 6))
    upper = lower + rng.uniform(0, 2, size=(4, 6))
    lower[0, 0] = upper[1, 1] = np.nan
    lower[0, 0], upper[0, 0] = target[0], target[0] + 1  # an end that is met counts as inside
    lower[1, 1], upper[1, 1] = target[1] - 1, target[1]
    inside = [[lower[s, i] <= target[i] <= upper[s, i] for i in range(6)] for s in range(4)]
    by_trial = [sum(row) / 6 for row in inside]
    by_point = [sum(row[i] for row in inside) / 4 for i in range(6)]
    assert picp(target, lower, upper).tolist() == pytest.approx(by_trial)
    assert cicp(target, lower, upper).tolist() == pytest.approx(by_trial)
    assert cicf(target, lower, upper).tolist() == pytest.approx(by_point)
    assert picp(target, lower, upper).mean() == pytest.approx(cicf(target, lower, upper).mean())


@examples(150)
@given(SHARES, st.floats(0.05, 0.95))
def test_brier_matches_its_definition(shares: np.ndarray, coverage: float) -> None:
    trials, points = shares.shape
    score = brier(shares, coverage)
    means = [sum(shares[:, i]) / trials for i in range(points)]
    raw = sum((m - coverage) ** 2 for m in means) / points
    bias = sum(m - coverage for m in means) / points
    assert score.raw == pytest.approx(raw, abs=1e-12)
    assert score.raw_bias_squared == pytest.approx(bias**2, abs=1e-12)
    assert score.raw_variance == pytest.approx(np.var(means), abs=1e-12)
    assert (score.trials, score.points) == (trials, points)
    if trials == 1:
        assert math.isnan(score.corrected)
        assert math.isnan(score.noise)
        return
    noise = [np.var(shares[:, i], ddof=1) / trials for i in range(points)]
    corrected = sum((m - coverage) ** 2 - e for m, e in zip(means, noise, strict=True)) / points
    assert score.corrected == pytest.approx(corrected, abs=1e-12)
    assert score.noise == pytest.approx(sum(noise) / points, abs=1e-12)
    pairs = [
        np.mean((shares[s] - coverage) * (shares[t] - coverage))
        for s in range(trials)
        for t in range(trials)
        if s != t
    ]
    assert score.corrected == pytest.approx(np.mean(pairs), abs=1e-12)
    average = shares.mean(axis=1)
    assert score.bias_squared == pytest.approx(
        (average.mean() - coverage) ** 2 - average.var(ddof=1) / trials, abs=1e-12
    )
    assert score.bias_squared + score.variance == pytest.approx(score.corrected, abs=1e-12)


@examples(60)
@given(SHARES.filter(lambda shares: len(shares) > 2), st.floats(0.05, 0.95))
def test_errors_are_the_jackknife_or_that_of_a_degenerate_statistic(
    shares: np.ndarray, coverage: float
) -> None:
    score, n = brier(shares, coverage), len(shares)
    without = [brier(np.delete(shares, s, axis=0), coverage) for s in range(n)]
    off = shares - shares.mean(axis=0)
    average = off.mean(axis=1)

    def error(values: list[float], pair: Callable[[int, int], float]) -> float:
        jackknife = (n - 1) / n * sum((v - np.mean(values)) ** 2 for v in values)
        squares = [pair(s, t) ** 2 for s in range(n) for t in range(n) if s != t]
        alone = 2 * np.mean(squares) / (n * (n - 1))
        return math.sqrt(max(jackknife - alone, alone))

    def whole(s: int, t: int) -> float:
        return float(np.mean(off[s] * off[t]))

    def bias(s: int, t: int) -> float:
        return float(average[s] * average[t])

    assert score.standard_error == pytest.approx(
        error([w.corrected for w in without], whole), abs=1e-9
    )
    assert score.bias_squared_error == pytest.approx(
        error([w.bias_squared for w in without], bias), abs=1e-9
    )
    assert score.variance_error == pytest.approx(
        error([w.variance for w in without], lambda s, t: whole(s, t) - bias(s, t)), abs=1e-9
    )


@pytest.mark.parametrize("dependent", [True, False])
def test_a_perfect_score_is_within_its_error(dependent: bool) -> None:
    """Coverage right everywhere: |corrected| > 3 errors about never, unlike by the jackknife."""
    rng, repeats = np.random.default_rng(0), 2000
    far, scores, errors = 0, [], []
    for _ in range(repeats):
        z = rng.normal(size=(30, 1 if dependent else 10)) * np.ones(10)
        score = brier(0.8 + 0.05 * np.clip(z, -3, 3), 0.8)
        far += abs(score.corrected) > 3 * score.standard_error
        scores.append(score.corrected)
        errors.append(score.standard_error)
    assert far / repeats < 0.005
    ratio = np.mean(errors) / np.std(scores)  # of the jackknife alone 1.31 and 1.45
    assert 0.9 < ratio < 1.25


def test_a_known_fault_has_no_error_of_its_own() -> None:
    """The same wrong coverage in every trial is known exactly, however few the trials."""
    rng = np.random.default_rng(0)
    assert brier(np.full((5, 4), 0.5), 0.8).standard_error < 1e-12
    scores = [brier(0.5 + 0.01 * rng.uniform(-1, 1, size=(20, 4)), 0.8) for _ in range(500)]
    claimed = math.sqrt(np.mean([score.standard_error**2 for score in scores]))
    assert claimed == pytest.approx(np.std([score.corrected for score in scores]), rel=0.15)


def test_many_trials_share_the_table_of_some() -> None:
    shares = 0.8 + 0.05 * np.random.default_rng(0).uniform(-1, 1, size=(2500, 4))
    some = brier(shares[:1000], 0.8)
    assert brier(shares, 0.8).standard_error == pytest.approx(
        some.standard_error * 1000 / 2500, rel=0.5
    )


def test_the_correction_for_shares_of_zero_and_one() -> None:
    """For the CICF s²/S is ĉ(1−ĉ)/(S−1)."""
    held = (np.random.default_rng(0).random((20, 7)) < 0.8).astype(float)
    c = held.mean(axis=0)
    expected = np.mean((c - 0.8) ** 2 - c * (1 - c) / 19)
    assert brier(held, 0.8).corrected == pytest.approx(expected, abs=1e-14)


def test_the_corrected_score_is_unbiased_and_the_raw_is_not() -> None:
    """Independent points of known coverage: E raw = truth + mean p(1−p)/S, E corrected = truth."""
    p, coverage, trials, repeats = np.array([0.7, 0.8, 0.8, 0.95]), 0.8, 10, 4000
    truth = np.mean((p - coverage) ** 2)
    rng = np.random.default_rng(0)
    scores = [brier((rng.random((trials, 4)) < p) * 1.0, coverage) for _ in range(repeats)]
    corrected = np.array([s.corrected for s in scores])
    raw = np.array([s.raw for s in scores])
    bias = np.array([s.bias_squared for s in scores])
    error = corrected.std() / math.sqrt(repeats)
    assert abs(corrected.mean() - truth) < 3 * error
    assert abs(bias.mean() - (p.mean() - coverage) ** 2) < 3 * bias.std() / math.sqrt(repeats)
    noise = np.mean(p * (1 - p)) / trials
    assert abs(raw.mean() - truth - noise) < 3 * raw.std() / math.sqrt(repeats)
    assert noise > 20 * error
    assert corrected.min() < 0
    claimed = np.mean([s.standard_error for s in scores])
    assert claimed == pytest.approx(corrected.std(), rel=0.15)


def test_too_few_trials_have_no_error() -> None:
    score = brier([[0.5, 0.6], [0.7, 0.8]], 0.7)
    assert math.isfinite(score.corrected)
    assert math.isnan(score.standard_error)


def test_coverages_that_differ_over_points_show_in_the_variance_alone() -> None:
    """Right on average, wrong at every point: what PICP cannot see."""
    shares = np.tile([0.6, 1.0], (50, 10))
    score = brier(shares, 0.8)
    assert score.bias_squared == pytest.approx(0.0, abs=1e-15)
    assert score.variance == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: brier([[1.2]], 0.9), r"must be in \[0, 1\], got 1.2"),
        (lambda: brier([[math.nan]], 0.9), "coverage_by_trial must contain finite"),
        (lambda: brier([[0.5]], 90), "coverage must be"),
        (lambda: coverage_band([[0.5]]), "at least 2 trials"),
        (lambda: coverage_band([[0.5], [0.6]], binary=True), "0 and 1 alone"),
        (lambda: coverage_band([[0.5], [0.6]], confidence=1.0), "confidence must be"),
        (lambda: coverage_band([[0.5], [0.6]], resamples=0), "resamples must be"),
        (lambda: coverage_band([[0.0], [1.0]]).verdict(2.0), "coverage must be"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def walk(rng: np.random.Generator, trials: int, points: int, *, dependent: bool) -> np.ndarray:
    """Standard normal numbers, equal in law at every point; neighbours alike where dependent."""
    if not dependent:
        return rng.normal(size=(trials, points))
    angle = np.linspace(0, 1.5, points)
    return rng.normal(size=(trials, 1)) * np.cos(angle) + rng.normal(size=(trials, 1)) * np.sin(
        angle
    )


@pytest.mark.parametrize("dependent", [True, False])
@pytest.mark.parametrize("trials", [20, 100])
def test_bands_hold_at_all_points_together(dependent: bool, trials: int) -> None:
    rng, repeats = np.random.default_rng(0), 300
    hold = narrow = 0
    for repeat in range(repeats):
        shares = stats.norm.cdf(0.85 + 0.3 * walk(rng, trials, 40, dependent=dependent))
        band = coverage_band(shares, resamples=500, seed=repeat)
        truth = stats.norm.cdf(0.85 / math.sqrt(1.09))
        hold += bool(((band.lower <= truth) & (truth <= band.upper)).all())
        narrow += band.pointwise_confidence
    assert 0.91 < hold / repeats < 0.985  # 0.95, a little less for so few trials, ± 3 errors
    single = narrow / repeats
    assert (single < 0.985) if dependent else (single > 0.995)


def test_binary_bands_hold_at_all_points_together() -> None:
    rng, repeats, trials = np.random.default_rng(0), 300, 60
    hold = 0
    for repeat in range(repeats):
        held = walk(rng, trials, 40, dependent=True) < stats.norm.ppf(0.9)
        band = coverage_band(held * 1.0, binary=True, resamples=500, seed=repeat)
        hold += bool(((band.lower <= 0.9) & (band.upper >= 0.9)).all())
    assert hold / repeats > 0.95 - 3 * math.sqrt(0.05 * 0.95 / repeats)


@pytest.mark.parametrize("trials", [4, 50])
def test_one_point_needs_no_more_than_its_own_interval(trials: int) -> None:
    shares = np.random.default_rng(0).uniform(0.4, 0.9, size=(trials, 1))
    band = coverage_band(shares, resamples=200_000)
    mean = shares.mean()
    error = shares.std(ddof=1) / math.sqrt(trials)
    reach = stats.t.ppf([0.025, 0.975], trials - 1) * error / (mean * (1 - mean))
    ends = special.expit(special.logit(mean) + reach)
    assert band.lower[0] == pytest.approx(ends[0], abs=2e-3)
    assert band.upper[0] == pytest.approx(ends[1], abs=2e-3)
    assert band.standard_error[0] == pytest.approx(error)


def test_one_binary_point_needs_no_more_than_its_own_interval() -> None:
    shares = np.random.default_rng(0).uniform(0.4, 0.9, size=(50, 1))
    held = (shares > 0.6) * 1.0
    exact = clopper_pearson(held.sum(), 50, 0.95)
    found = coverage_band(held, binary=True, resamples=200_000)
    assert found.lower[0] == pytest.approx(float(exact[0]), abs=0.003)
    assert found.upper[0] == pytest.approx(float(exact[1]), abs=0.003)


def test_points_without_spread() -> None:
    """The same mass in every trial is known exactly; the same 0/1 in every trial is not."""
    shares = np.full((10, 3), 0.8)
    band = coverage_band(shares)
    np.testing.assert_allclose(band.lower, 0.8)
    np.testing.assert_allclose(band.upper, 0.8)
    always = coverage_band(np.ones((10, 3)), binary=True)
    assert always.lower[0] == pytest.approx(0.025 ** (1 / 10))
    assert always.upper.tolist() == [1.0] * 3


def test_a_band_is_the_same_for_the_same_seed_and_wider_for_more_confidence() -> None:
    shares = np.random.default_rng(0).uniform(size=(30, 5))
    first, again = coverage_band(shares, seed=3), coverage_band(shares, seed=3)
    assert np.array_equal(first.lower, again.lower)
    wider = coverage_band(shares, seed=3, confidence=0.99)
    assert (wider.lower <= first.lower).all()
    assert (wider.upper >= first.upper).all()
    assert (first.lower >= 0).all()
    assert (first.upper <= 1).all()


def test_long_tables_are_resampled_in_blocks() -> None:
    shares = np.random.default_rng(0).uniform(size=(20, 3000))
    wide = coverage_band(shares, resamples=3000)
    assert 3.0 < stats.norm.ppf(0.5 + wide.pointwise_confidence / 2) < 5.5


def test_two_models_of_which_the_likelier_covers_worse() -> None:
    """Row 6: section 3.4 of the paper; its printed factors cannot give its printed numbers."""
    rng, size = np.random.default_rng(0), 100
    y = rng.normal(100, 5, size=(10_000, size))
    mean = y.mean(axis=1)

    def seen(center: np.ndarray, sd: np.ndarray) -> tuple[float, float]:
        mass = interval_mass(center - sd, center + sd, stats.norm(100.0, 5.0).cdf)
        likelihood = -0.5 * np.log(2 * np.pi * sd**2) - (25 + (center - 100) ** 2) / (2 * sd**2)
        return float(mass.mean()), float(likelihood.mean())

    spread = y.std(axis=1)
    for shrink, stretch, expected in (
        (0.8, 1.02, (0.570, 0.675, -3.109, -3.111)),
        (0.9, 1.05, (0.625, 0.649, -3.056, -3.379)),
    ):
        off = np.sqrt(np.square(y - stretch * mean[:, None]).mean(axis=1))
        first, second = seen(mean, shrink * spread), seen(stretch * mean, off)
        assert first[0] == pytest.approx(expected[0], abs=0.005)
        assert second[0] == pytest.approx(expected[1], abs=0.005)
        assert first[1] == pytest.approx(expected[2], abs=0.003)
        assert second[1] == pytest.approx(expected[3], abs=0.003)
        assert first[1] > second[1]
        assert first[0] < second[0]
