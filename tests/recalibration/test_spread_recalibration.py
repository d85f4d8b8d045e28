"""Distributions, samples and quantiles: the equalities that each method promises."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Quantiles, Samples
from howsure.predictions.laws import ScipyLaw
from howsure.recalibration import recalibrate
from howsure.recalibration.conformal import ConformalQuantiles
from howsure.recalibration.levels import DEFAULT_LEVELS
from howsure.recalibration.scaling import SpreadScaling, VarianceScaling
from howsure.recalibration.shape import Crude, Isotonic, pit_knots

LEVELS = np.array(DEFAULT_LEVELS)


def normal_rows(name: str, n: int, df: float = 4) -> EvalSet:
    """A biased, overconfident normal model of heavy-tailed errors."""
    rng = child(0, "normal", name)
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    y = mean + 0.4 + 1.5 * sd * rng.standard_t(df, size=n)
    return EvalSet.checked(y, Distribution.normal(mean, sd))


def at_or_below(evalset: EvalSet, slack: float = 0.0) -> np.ndarray:
    """Rows at or below each quantile."""
    return (evalset.y[:, None] <= evalset.predictions[0].values + slack).sum(axis=0)


def outward(levels: np.ndarray, n: int) -> list[int]:
    """Ranks (n + 1)p rounded away from one half; the lower neighbour at one half."""
    places = [Fraction(str(level)) * (n + 1) for level in levels]
    return [
        int(place) if level <= 0.5 else -int(-place // 1)
        for level, place in zip(levels, places, strict=True)
    ]


# Variance scaling.


@pytest.mark.parametrize(
    ("law", "parameters"),
    [
        ("norm", {"loc": 1.0, "scale": 2.0}),
        ("t", {"df": 5.0, "loc": -1.0, "scale": 0.5}),
        ("gamma", {"a": 3.0, "scale": 2.0}),
        ("lognorm", {"s": 0.5, "scale": 3.0}),
        ("gumbel_r", {"loc": 4.0, "scale": 2.0}),
    ],
)
def test_variance_scaling_makes_zms_one_and_keeps_means(
    law: str, parameters: dict[str, float]
) -> None:
    rng = child(1, law)
    held_out = EvalSet.checked(rng.normal(2.0, 6.0, 50), Distribution(law, parameters, n=50))
    fitted = VarianceScaling().fit(held_out)
    before, after = held_out.predictions[0], fitted.apply(held_out).predictions[0]
    factor = fitted.parameters[0].value
    assert after.law.name == before.law.name
    np.testing.assert_allclose(after.point(), before.point(), rtol=1e-12)
    np.testing.assert_allclose(after.sd(), factor * before.sd(), rtol=1e-12)
    assert np.mean(((held_out.y - after.point()) / after.sd()) ** 2) == pytest.approx(1, rel=1e-12)


def test_the_factors_standard_error_is_what_resampling_shows() -> None:
    factors, errors = [], []
    for trial in range(400):
        learnt = VarianceScaling().fit(normal_rows(f"se {trial}", 300, df=30)).parameters[0]
        factors.append(learnt.value)
        errors.append(learnt.standard_error)
    assert np.mean(errors) == pytest.approx(np.std(factors, ddof=1), rel=0.1)


def test_a_scale_needs_a_continuous_law_with_moments_and_errors() -> None:
    poisson = EvalSet.checked([1.0, 2.0], Distribution("poisson", {"mu": [1.0, 2.0]}))
    with pytest.raises(
        InputError,
        match="only continuous distributions can be shifted or scaled, got poisson; use 'shape'",
    ):
        VarianceScaling().fit(poisson)
    cauchy = EvalSet.checked([1.0, 2.0], Distribution("cauchy", {"loc": [1.0, 2.0]}))
    with pytest.raises(UnanswerableError, match="have no"):
        VarianceScaling().fit(cauchy)
    perfect = EvalSet.checked([1.0, 2.0], Distribution.normal([1.0, 2.0], [1.0, 1.0]))
    with pytest.raises(InputError, match="all errors in the calibration rows are zero"):
        VarianceScaling().fit(perfect)


# CRUDE.


@pytest.mark.parametrize("n", [199, 200, 1000])
@pytest.mark.parametrize("shift", [True, False])
def test_crude_has_uniform_pit_on_its_own_rows(n: int, shift: bool) -> None:
    held_out = normal_rows("crude", n)
    mended = Crude(shift=shift).fit(held_out).apply(held_out)
    levels = mended.predictions[0].levels
    assert at_or_below(mended).tolist() == outward(levels, n)


def test_crude_is_the_mean_the_shift_and_the_sd_times_empirical_quantiles() -> None:
    held_out, test = normal_rows("formula", 99), normal_rows("formula test", 5)
    fitted = Crude(levels=[0.1, 0.9]).fit(held_out)
    model = held_out.predictions[0]
    constant = np.mean(held_out.y - model.point())
    z = np.sort((held_out.y - model.point() - constant) / model.sd())
    assert fitted.parameters[0].value == pytest.approx(constant)
    mean, sd = test.predictions[0].point(), test.predictions[0].sd()
    wanted = np.stack([mean + constant + sd * z[9], mean + constant + sd * z[89]], axis=1)
    np.testing.assert_allclose(fitted.apply(test).predictions[0].values, wanted, rtol=1e-12)


def test_crude_survives_constant_errors() -> None:
    mean = np.arange(30.0)
    held_out = EvalSet.checked(mean + 3.0, Distribution.normal(mean, 1.0 + mean))
    mended = Crude().fit(held_out).apply(held_out)
    np.testing.assert_allclose(mended.predictions[0].values - held_out.y[:, None], 0.0, atol=1e-12)


def test_crude_survives_errors_as_small_as_roundings() -> None:
    rng = child(7, "roundings")
    for _ in range(20):
        mean, sd = rng.uniform(-1e6, 1e6, 99), rng.uniform(0.5, 2.0, 99)
        y = mean + sd * rng.normal(scale=3e-10, size=99)
        held_out = EvalSet.checked(y, Distribution.normal(mean, sd))
        fitted = Crude(levels=np.arange(1, 100) / 100, shift=False).fit(held_out)
        assert (np.diff([learnt.value for learnt in fitted.parameters[1:]]) >= 0).all()
        assert (at_or_below(fitted.apply(held_out)) >= np.arange(1, 100)).all()


def test_crude_needs_spread() -> None:
    held_out = EvalSet.checked(np.zeros(9), Samples(np.ones((9, 4))))
    with pytest.raises(InputError, match="above 0; 9 have none"):
        Crude("samples").fit(held_out)
    with pytest.raises(InputError, match="prediction must be"):
        Crude("intervals").fit(held_out)


# Isotonic recalibration.


@pytest.mark.parametrize("n", [199, 1000])
@pytest.mark.parametrize("law", ["norm", "t", "gamma"])
def test_isotonic_has_uniform_pit_on_its_own_rows(n: int, law: str) -> None:
    rng = child(2, law, n)
    scale = rng.uniform(1.0, 3.0, n)
    shapes = {"norm": {}, "t": {"df": 3.0}, "gamma": {"a": 4.0}}[law]
    prediction = Distribution(law, {**shapes, "scale": scale})
    y = scale * (rng.gamma(2.0, 2.0, n) if law == "gamma" else rng.normal(0.5, 1.3, n))
    mended = Isotonic().fit(EvalSet.checked(y, prediction)).apply(EvalSet.checked(y, prediction))
    # A quantile is F⁻¹(F(y)) of one row, right but for the rounding of SciPy's inverse.
    assert at_or_below(mended, 1e-7).tolist() == outward(mended.predictions[0].levels, n)
    assert (np.diff(mended.predictions[0].values, axis=1) >= 0).all()


def test_isotonic_leaves_a_law_beside_its_own_quantiles() -> None:
    n = 999
    prediction = Distribution.normal(np.linspace(-5, 5, n), np.linspace(1, 2, n))
    grid = child(3, "grid").permutation(np.arange(1, n + 1) / (n + 1))
    y = prediction.point() + prediction.sd() * stats.norm.ppf(grid)
    mended = (
        Isotonic(levels=LEVELS)
        .fit(EvalSet.checked(y, prediction))
        .apply(EvalSet.checked(y, prediction))
    )
    np.testing.assert_allclose(mended.predictions[0].values, prediction.quantile(LEVELS), atol=1e-9)


def test_roundings_of_a_numerical_inverse_do_not_cross(monkeypatch: pytest.MonkeyPatch) -> None:
    def rough(_law: ScipyLaw, level: np.ndarray, _parameters: object) -> np.ndarray:
        return np.round(level, 9) - 1e-3 * (level - np.round(level, 9))

    monkeypatch.setattr(ScipyLaw, "quantile", rough)
    y = 0.3 + np.arange(199) * 2e-15
    prediction = Distribution("uniform", {}, n=199)
    fitted = Isotonic(levels=np.arange(1, 100) / 100).fit(EvalSet.checked(y, prediction))
    knots = [learnt.value for learnt in fitted.parameters]
    assert (np.diff(prediction.quantile(knots), axis=1) < 0).any()
    mended = fitted.apply(EvalSet.checked(y, prediction)).predictions[0]
    assert (np.diff(mended.values, axis=1) >= 0).all()


def test_isotonic_names_levels_beyond_the_law() -> None:
    held_out = EvalSet.checked(
        np.linspace(-99, 99, 199), Distribution.normal(np.zeros(199), np.ones(199))
    )
    fitted = Isotonic().fit(held_out)
    assert any("are beyond the range of the distributions on" in note for note in fitted.notes)
    assert np.isfinite(fitted.apply(held_out).predictions[0].values).all()
    with pytest.raises(InputError, match="are beyond the range"):
        Isotonic(too_few="error").fit(held_out)
    far = EvalSet.checked(np.full(50, 99.0), Distribution.normal(np.zeros(50), np.ones(50)))
    with pytest.raises(InputError, match="too few calibration rows for any level"):
        Isotonic().fit(far)


def test_a_perfect_count_model_stays_as_it_is() -> None:
    rng = child(4, "counts")
    rate = rng.uniform(0.5, 20.0, 40_000)
    prediction = Distribution("poisson", {"mu": rate})
    fitted = Isotonic().fit(EvalSet.checked(rng.poisson(rate), prediction))
    moved = np.array([learnt.value - learnt.nominal for learnt in fitted.parameters])
    assert np.abs(moved).max() < 4 * 0.5 / np.sqrt(40_000)
    few = EvalSet.checked([3.0] * 3, Distribution("poisson", {"mu": [0.7, 3.0, 11.0]}))
    levels, values = (
        fitted.apply(few).predictions[0].levels,
        fitted.apply(few).predictions[0].values,
    )
    assert (np.abs(values - few.predictions[0].quantile(levels)) <= 1).all()


def test_an_overdispersed_count_model_is_mended() -> None:
    rng = child(4, "overdispersed")
    rate = rng.uniform(3.0, 20.0, 20_000)
    y = rng.negative_binomial(rate, 0.5)
    prediction = Distribution("poisson", {"mu": rate})
    half = np.arange(20_000) < 10_000
    held_out, test = (
        EvalSet.checked(y, prediction).take(half),
        EvalSet.checked(y, prediction).take(~half),
    )
    mended = recalibrate(test, held_out).evalset
    lower, upper = mended.predictions[0].interval(0.9)
    before = test.predictions[0].interval(0.9)
    assert ((before[0] <= test.y) & (test.y <= before[1])).mean() < 0.82
    assert 0.89 < ((lower <= test.y) & (test.y <= upper)).mean() < 0.94


@examples(150)
@given(
    st.lists(
        st.tuples(st.integers(0, 10), st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=8
    )
)
def test_pit_knots_are_where_the_summed_pit_reaches_each_rank(
    rows: list[tuple[int, int, int]],
) -> None:
    left = np.array([start / 16 for start, _, _ in rows])
    right = np.array([(start + width) / 16 for start, width, _ in rows])
    counts = np.array([count for _, _, count in rows], dtype=float)
    ranks = np.arange(1, int(counts.sum()) + 1)

    def total(v: float) -> float:
        ramp = np.clip((v - left) / np.where(right > left, right - left, 1.0), 0.0, 1.0)
        return float(counts @ np.where(right > left, ramp, v >= left))

    knots = pit_knots(left, right, ranks, counts)
    assert (np.diff(knots) >= 0).all()
    for rank, knot in zip(ranks, knots, strict=True):
        assert total(knot + 1e-6) >= rank - 1e-6
        assert total(knot - 1e-6) < rank
    repeated = np.repeat(np.arange(len(rows)), counts.astype(int))
    np.testing.assert_allclose(pit_knots(left[repeated], right[repeated], ranks), knots, atol=1e-9)


# Samples.


def sample_rows(name: str, n: int, m: int, spread: float) -> EvalSet:
    rng = child(5, "samples", name)
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    draws = mean[:, None] + spread * sd[:, None] * rng.standard_exponential((n, m))
    return EvalSet.checked(mean + sd * rng.standard_exponential(n), Samples(draws))


@pytest.mark.parametrize("m", [2, 5, 20])
def test_samples_of_the_truth_keep_their_spread(m: int) -> None:
    learnt = SpreadScaling().fit(sample_rows("truth", 40_000, m, 1.0)).parameters[0]
    assert abs(learnt.value - 1.0) < 4 * learnt.standard_error
    assert learnt.standard_error < 0.02


def test_spread_matches_the_error_of_the_mean_afterwards() -> None:
    held_out = sample_rows("match", 300, 7, 0.4)
    mended = SpreadScaling().fit(held_out).apply(held_out)
    after = mended.predictions[0]
    np.testing.assert_allclose(after.point(), held_out.predictions[0].point(), rtol=1e-12)
    error = np.mean((held_out.y - after.point()) ** 2)
    assert error == pytest.approx((1 + 1 / 7) * np.mean(after.sd() ** 2), rel=1e-12)


def test_sample_ranks_become_uniform_by_isotonic_recalibration() -> None:
    held_out, test = sample_rows("pit", 4000, 39, 0.7), sample_rows("pit test", 4000, 39, 0.7)
    mended = recalibrate(test, held_out, method="isotonic").evalset
    levels = mended.predictions[0].levels
    share = at_or_below(mended) / 4000
    raw = (test.y[:, None] <= test.predictions[0].quantile(levels)).mean(axis=0)
    assert np.abs(share - levels).max() < 0.03 < np.abs(raw - levels).max()


def test_samples_refusals() -> None:
    flat = EvalSet.checked(np.arange(5.0), Samples(np.zeros((5, 3))))
    with pytest.raises(InputError, match="must vary within"):
        SpreadScaling().fit(flat)
    one = EvalSet.checked(np.arange(5.0), Samples(np.zeros((5, 1))))
    with pytest.raises(UnanswerableError, match="no standard deviation"):
        SpreadScaling().fit(one)
    three, four = sample_rows("3", 30, 3, 1.0), sample_rows("4", 30, 4, 1.0)
    with pytest.raises(InputError, match="3 samples per row, like the calibration rows, got 4"):
        recalibrate(four, three)


# Quantiles.


def quantile_rows(name: str, n: int) -> EvalSet:
    rng = child(6, "quantiles", name)
    mean, sd = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    table = mean[:, None] + 0.6 * sd[:, None] * stats.norm.ppf(LEVELS)
    return EvalSet.checked(mean + 0.3 + sd * rng.normal(size=n), Quantiles(LEVELS, table))


def test_shifted_quantiles_cover_their_own_rows_as_the_ranks_say() -> None:
    held_out = quantile_rows("own", 250)
    fitted = ConformalQuantiles().fit(held_out)
    raw = held_out.predictions[0]
    shifts = np.array([learnt.value for learnt in fitted.parameters])
    below = (held_out.y[:, None] <= raw.values + shifts).sum(axis=0)
    assert below.tolist() == outward(LEVELS, 250)
    moved = fitted.apply(held_out).predictions[0]
    np.testing.assert_array_equal(moved.values, np.sort(raw.values + shifts, axis=1))


def test_rows_that_cross_when_moved_are_sorted_and_counted() -> None:
    prediction = Quantiles([0.25, 0.75], [[-9.0, 9.0]] * 39)
    held_out = EvalSet.checked(np.linspace(-1, 1, 39), prediction)
    test = EvalSet.checked([0.0, 0.0], Quantiles([0.25, 0.75], [[-9.0, 9.0], [0.0, 0.5]]))
    result = recalibrate(test, held_out)
    values = result.evalset.predictions[0].values
    assert (np.diff(values, axis=1) >= 0).all()
    assert any(note.startswith("1 row of quantiles crossed") for note in result.notes)


def test_levels_out_of_reach_are_left_out_or_refused() -> None:
    held_out, test = quantile_rows("few", 20), quantile_rows("few test", 5)
    result = recalibrate(test, held_out)
    assert result.evalset.predictions[0].levels.tolist() == LEVELS[2:-2].tolist()
    assert any("0.01, 0.025, 0.975, 0.99 need more than 20" in note for note in result.notes)
    with pytest.raises(InputError, match="need more than 20 calibration rows"):
        recalibrate(test, held_out, too_few="error")
    other = EvalSet.checked([0.0], Quantiles([0.5], [[0.0]]))
    with pytest.raises(InputError, match=r"got 0\.5"):
        recalibrate(other, held_out)
