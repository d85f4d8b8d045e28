"""Risk–coverage curves against every order of the tied rows, closed forms and simulation."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.core.weights import Weights
from howsure.stats.estimate import standard_error
from howsure.topics.selective import (
    CERTAIN_SHARES,
    _harmonic_gap,
    _trigamma,
    acceptance,
    aurc,
    excess_aurc,
    risk_at,
)

quick = examples(150)
RATES = (0.03, 0.1, 0.5, 0.77, 0.9, 1.0)


@st.composite
def small_tables(draw, most=6):
    n = draw(st.integers(1, most))
    losses = draw(st.lists(st.floats(-10, 10), min_size=n, max_size=n))
    ranks = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    counts = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    counts[draw(st.integers(0, n - 1))] = 2
    return np.array(losses), np.array(ranks, dtype=float), np.array(counts, dtype=float)


def mean_over_tied_orders(loss, uncertainty):
    """Risk after 1 … n accepted rows, averaged over every legal order of acceptance."""
    n = len(loss)
    curves = [
        np.cumsum(loss[list(order)]) / np.arange(1, n + 1)
        for order in permutations(range(n))
        if (np.diff(uncertainty[list(order)]) >= 0).all()
    ]
    return np.mean(curves, axis=0)


def simulated(rng, n, decimals=None):
    uncertainty = rng.lognormal(sigma=0.7, size=n)
    loss = np.abs(rng.normal(size=n)) * uncertainty
    return loss, (uncertainty if decimals is None else uncertainty.round(decimals))


@quick
@given(small_tables())
def test_curve_and_areas_are_the_means_over_tied_orders(case):
    loss, uncertainty, _ = case
    n = len(loss)
    curve = mean_over_tied_orders(loss, uncertainty)
    rows = acceptance(loss, uncertainty)
    np.testing.assert_allclose(rows.risk(np.arange(1, n + 1) / n), curve, atol=1e-12)
    assert rows.aurc().value == pytest.approx(curve.mean(), abs=1e-12)
    best = np.mean(np.cumsum(np.sort(loss)) / np.arange(1, n + 1))
    assert excess_aurc(loss, uncertainty).value == pytest.approx(curve.mean() - best, abs=1e-12)


@quick
@given(small_tables(most=12))
def test_a_weight_of_two_is_a_row_twice(case):
    loss, uncertainty, weights = case
    rows = np.repeat(np.arange(len(loss)), weights.astype(int))
    for function in (aurc, excess_aurc):
        weighted = function(loss, uncertainty, weights)
        plain = function(loss[rows], uncertainty[rows])
        assert weighted.value == pytest.approx(plain.value, abs=1e-12)
        np.testing.assert_allclose(weighted.influence[rows], plain.influence, atol=1e-12)
    for rate in RATES:
        weighted = risk_at(loss, uncertainty, rate, weights)
        plain = risk_at(loss[rows], uncertainty[rows], rate)
        assert weighted.value == pytest.approx(plain.value, abs=1e-12)
        np.testing.assert_allclose(weighted.influence[rows], plain.influence, atol=1e-10)
    ours = acceptance(loss, uncertainty, weights).curve()
    theirs = acceptance(loss[rows], uncertainty[rows]).curve()
    for name in ("prediction_rate", "risk", "oracle", "random"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-12)
    # A variance of zero is known to rounding, 1e-14; its root is not.
    np.testing.assert_allclose(ours.standard_error, theirs.standard_error, atol=1e-6)


@quick
@given(small_tables(), st.sampled_from(RATES))
def test_a_fraction_of_a_row_takes_that_fraction_of_its_loss(case, rate):
    loss, uncertainty, _ = case
    n = len(loss)
    sums = np.r_[0, mean_over_tied_orders(loss, uncertainty) * np.arange(1, n + 1)]
    whole = int(np.floor(rate * n))
    part = rate * n - whole
    beyond = sums[min(whole + 1, n)] - sums[whole]
    expected = (sums[whole] + part * beyond) / (rate * n)
    assert risk_at(loss, uncertainty, rate).value == pytest.approx(expected, abs=1e-10)


def test_the_order_of_rows_does_not_matter():
    loss, uncertainty = simulated(child(0, "order"), 500, 0)
    mixed = child(1, "order").permutation(500)
    for function in (aurc, excess_aurc, lambda a, b: risk_at(a, b, 0.8)):
        one, other = function(loss, uncertainty), function(loss[mixed], uncertainty[mixed])
        assert one.value == pytest.approx(other.value, abs=1e-13)
        np.testing.assert_allclose(one.influence[mixed], other.influence, atol=1e-12)


def test_closed_forms():
    n = 100_000
    ranks = np.arange(1.0, n + 1)
    assert aurc(ranks, ranks).value == pytest.approx((n + 3) / 4, rel=1e-12)
    worst = aurc(ranks, -ranks).value  # mean over i of n − (i − 1)/2
    assert worst == pytest.approx((3 * n + 1) / 4, rel=1e-12)
    assert excess_aurc(ranks, -ranks).value == pytest.approx((n - 1) / 2, rel=1e-12)
    assert excess_aurc(ranks, ranks).value == 0
    assert risk_at(ranks, ranks, 0.5).value == pytest.approx((n / 2 + 1) / 2, rel=1e-12)


def test_one_tied_block_is_a_random_order():
    loss = child(2, "tied").normal(size=1000)
    rows = acceptance(loss, np.ones(1000))
    assert rows.aurc().value == pytest.approx(loss.mean(), abs=1e-13)
    np.testing.assert_allclose(rows.curve().risk, loss.mean(), atol=1e-13)
    np.testing.assert_allclose(rows.risk_at(0.5).influence, loss - loss.mean(), atol=1e-12)
    np.testing.assert_allclose(rows.aurc().influence, loss - loss.mean(), atol=1e-10)


@pytest.mark.parametrize("start", [0, 1, 5, 60, 63, 64, 65, 1000, 10**6])
@pytest.mark.parametrize("length", [1, 2, 7, 300])
def test_harmonic_gaps_are_sums_of_fractions(start, length):
    exact = float(sum(Fraction(1, start + r) for r in range(1, length + 1)))
    ours = _harmonic_gap(np.array([float(start)]), np.array([float(length)]))[0]
    assert ours == pytest.approx(exact, rel=3e-14)


def test_trigamma_falls_by_the_squared_reciprocal():
    x = np.r_[1.0, 2.5, 10.0, 63.0, 63.5, 64.0, 200.0, 1e6]
    np.testing.assert_allclose(_trigamma(x) - _trigamma(x + 1), 1 / x**2, rtol=1e-9)
    assert _trigamma(np.array([1.0]))[0] == pytest.approx(np.pi**2 / 6, rel=1e-14)


@pytest.mark.parametrize("function", [aurc, excess_aurc])
def test_area_influence_is_the_derivative_in_each_weight(function):
    rng = child(3, "derivative")
    loss = rng.normal(size=30)
    uncertainty = rng.integers(0, 15, 30).astype(float)
    weights = rng.integers(5_000, 20_000, 30).astype(float)
    slopes = np.array(
        [
            (function(loss, uncertainty, weights + unit).value
             - function(loss, uncertainty, weights - unit).value)
            for unit in np.eye(30)
        ]
    ) * weights.sum() / 2  # fmt: skip
    np.testing.assert_allclose(
        function(loss, uncertainty, weights).influence, slopes, atol=2e-3 * np.abs(slopes).max()
    )


def test_risk_influence_is_the_derivative_in_each_weight():
    rng = child(4, "derivative")
    loss = rng.normal(size=30)
    uncertainty = np.repeat(np.arange(6.0), 5)
    weights = rng.integers(10_000, 12_000, 30).astype(float)
    for rate in (0.25, 0.41, 0.9, 1.0):
        slopes = np.array(
            [
                risk_at(loss, uncertainty, rate, weights + unit).value
                - risk_at(loss, uncertainty, rate, weights - unit).value
                for unit in np.eye(30)
            ]
        ) * (weights.sum() / 2)
        ours = risk_at(loss, uncertainty, rate, weights).influence
        np.testing.assert_allclose(ours, slopes, atol=1e-4)
        assert weights @ ours == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("decimals", [None, 0])
def test_standard_errors_are_the_spread_over_simulations(decimals):
    rng = child(5, "simulation")
    found = []
    for _ in range(600):
        rows = acceptance(*simulated(rng, 400, decimals))
        numbers = [rows.aurc(), rows.excess_aurc(), *(rows.risk_at(c) for c in (0.2, 0.5, 0.95))]
        found.append([(one.value, standard_error(one.influence)) for one in numbers])
    values, errors = np.moveaxis(np.array(found), -1, 0)
    # 600 runs know a standard deviation to 3 % (one standard error).
    np.testing.assert_allclose(errors.mean(axis=0), values.std(axis=0), rtol=0.1)


@pytest.mark.parametrize("decimals", [None, 0])
def test_the_curve_carries_the_standard_error_of_risk_at(decimals):
    loss, uncertainty = simulated(child(6, "curve"), 700, decimals)
    weights = child(7, "curve").integers(0, 4, 700).astype(float)
    rows = acceptance(loss, uncertainty, weights)
    curve = rows.curve()
    for rate, error in zip(curve.prediction_rate, curve.standard_error, strict=True):
        expected = standard_error(rows.risk_at(rate).influence, Weights(weights))
        assert error == pytest.approx(expected, rel=1e-9)
    assert np.isnan(acceptance([1.0], [1.0]).curve().standard_error).all()


@pytest.mark.parametrize("n", [5, 300, 301, 20_000])
def test_a_thinned_curve_is_exact_where_it_is_drawn(n):
    loss, uncertainty = simulated(child(8, "thin"), n)
    curve = acceptance(loss, uncertainty).curve()
    assert len(curve.prediction_rate) <= 300 + len(CERTAIN_SHARES) + 1
    assert (np.diff(curve.prediction_rate) > 0).all()
    assert curve.prediction_rate[-1] == 1
    assert set(CERTAIN_SHARES) <= set(curve.prediction_rate)
    order = np.argsort(uncertainty)
    for ordered, ours in ((loss[order], curve.risk), (np.sort(loss), curve.oracle)):
        sums = np.r_[0, np.cumsum(ordered)]
        accepted = curve.prediction_rate * n
        expected = np.interp(accepted, np.arange(n + 1), sums) / accepted
        np.testing.assert_allclose(ours, expected, rtol=1e-10)
    assert curve.risk[-1] == pytest.approx(loss.mean())
    assert curve.random == pytest.approx(loss.mean())
    assert (curve.oracle <= curve.risk + 1e-12).all()
    full = np.cumsum(loss[order]) / np.arange(1, n + 1)
    if n <= 300:
        assert set(np.arange(1, n + 1) / n) <= set(curve.prediction_rate)
    drawn = np.interp(np.arange(1, n + 1) / n, curve.prediction_rate, curve.risk)
    assert np.abs(drawn - full)[n // 10 :].max() < 0.05 * np.ptp(full)


def test_importance_weights_ignore_their_unit():
    loss, uncertainty = simulated(child(9, "importance"), 300)
    weights = child(10, "importance").gamma(2.0, size=300)
    one, other = (aurc(loss, uncertainty, weights * scale) for scale in (1e-250, 7e200))
    assert one.value == pytest.approx(other.value, rel=1e-12)
    kish = acceptance(loss, uncertainty, weights).n
    assert kish == pytest.approx(weights.sum() ** 2 / np.square(weights).sum())
    share = weights[np.argsort(uncertainty)].cumsum() / weights.sum()
    sums = (weights * loss)[np.argsort(uncertainty)].cumsum() / weights.sum()
    expected = np.interp(0.6, share, sums) / 0.6
    assert risk_at(loss, uncertainty, 0.6, weights).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1e130])
def test_the_unit_of_the_loss_carries_through(scale):
    loss, uncertainty = simulated(child(11, "unit"), 100)
    for function in (aurc, excess_aurc, lambda a, b: risk_at(a, b, 0.8)):
        one, other = function(loss, uncertainty), function(scale * loss, uncertainty)
        assert other.value == pytest.approx(scale * one.value, rel=1e-12)
        np.testing.assert_allclose(other.influence / scale, one.influence, rtol=1e-9, atol=1e-9)


def test_infinite_uncertainty_comes_last():
    rows = acceptance([1.0, 5.0, 2.0], [0.1, np.inf, 0.2])
    np.testing.assert_allclose(rows.risk([1 / 3, 2 / 3, 1]), [1, 1.5, 8 / 3])


def test_bad_input_is_named():
    with pytest.raises(InputError, match="loss must contain finite numbers"):
        aurc([1.0, np.inf], [1.0, 2.0])
    with pytest.raises(InputError, match="uncertainty must contain no missing values"):
        aurc([1.0, 2.0], [1.0, np.nan])
    with pytest.raises(InputError, match="uncertainty must have 2 rows"):
        aurc([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match="weights must not be negative"):
        aurc([1.0, 2.0], [1.0, 2.0], [1.0, -1.0])
    with pytest.raises(UnanswerableError, match="too large to square"):
        aurc([1e200, 2.0], [1.0, 2.0])
    for rate in (0.0, 1.5, np.nan):
        with pytest.raises(InputError, match="prediction_rate must be in"):
            risk_at([1.0, 2.0], [1.0, 2.0], rate)
