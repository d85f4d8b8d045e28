"""Uncertainty of the curve: the perfect model's gain, the bootstrap, the permutation test."""

import itertools
import math

import numpy as np
import pytest

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.topics.characteristic.bands import bands_from_sd
from howsure.topics.characteristic.curve import characteristic_curve
from howsure.topics.characteristic.reference import gain_of_perfect_model
from howsure.topics.characteristic.resampling import (
    Sampler,
    bootstrap_curve,
    bootstrap_gain_difference,
    gain_differences,
    permutation_test,
    permutation_tests,
    units_of,
)
from howsure.topics.characteristic.trace import AreaRequest

LOW = AreaRequest(y_range=(0.0, 0.2))


def heteroscedastic(n, seed, power=1.0, **options):
    rng = np.random.default_rng(seed)
    sd = rng.uniform(0.5, 2.0, n)
    y, zero = rng.normal(0.0, sd), np.zeros(n)
    return characteristic_curve(y, *bands_from_sd(zero, sd**power), **options)


def pair(n, seed, **options):
    """Two models of the same rows: one with noisy bands, one with the true spread."""
    rng = np.random.default_rng(seed)
    sd = rng.uniform(0.5, 2.0, n)
    y, zero = rng.normal(0.0, sd), np.zeros(n)
    noisy = sd * rng.lognormal(0.0, 0.3, n)
    point = rng.normal(0.0, 0.1, n)
    return (
        characteristic_curve(y, *bands_from_sd(zero, sd), **options),
        characteristic_curve(y, *bands_from_sd(point, noisy), **options),
    )


# --- the gain of a perfectly specified model


@pytest.mark.parametrize("request_", [None, LOW, AreaRequest(y_range=(0.0, 0.2), reading="left")])
def test_a_perfect_model_gains_what_a_perfect_model_gains(request_):
    curve = heteroscedastic(4000, 0)
    sd = curve.bands.above
    by_draws = gain_of_perfect_model(curve, request_, draws=lambda rng: rng.normal(0.0, sd))
    by_scales = gain_of_perfect_model(curve, request_)
    assert by_draws.method == "draws"
    assert by_scales.method == "permuted scales"
    for perfect in (by_draws, by_scales):
        assert perfect.lower < perfect.value < perfect.upper
        gain = curve.gain_by(perfect.request).value
        assert abs(gain - perfect.value) < 2.5 * (perfect.upper - perfect.lower)
    width = by_draws.upper - by_draws.lower
    assert abs(by_draws.value - by_scales.value) < width
    if request_ is None:
        assert abs(by_draws.value) < 0.5
    else:
        assert by_draws.value > 5.0


def test_an_overdispersed_model_falls_short_of_the_perfect_one():
    curve = heteroscedastic(4000, 1, power=3.0)
    perfect = gain_of_perfect_model(curve)
    assert curve.gain().value < perfect.lower
    assert abs(perfect.value) < 2.0


def test_permuted_scales_keep_the_models_own_curve():
    curve = heteroscedastic(50, 2)
    perfect = gain_of_perfect_model(curve, replicates=20)
    # 100·(MAE* − A)/MAE* with A = c·mean(k), whatever the permutation
    area, band = curve.area().value, curve.bands.above
    scale = curve.bands.critical()
    sizes = area / (1.0 - perfect.gains / 100.0)
    assert sizes.min() > np.mean(np.sort(scale)[::-1] * np.sort(band)) - 1e-12
    assert sizes.max() < np.mean(np.sort(scale) * np.sort(band)) + 1e-12
    assert np.unique(sizes).size == 20


def test_draws_may_be_a_table():
    curve = heteroscedastic(300, 3)
    rng = np.random.default_rng(0)
    table = rng.normal(0.0, curve.bands.above[:, None], (300, 50))
    perfect = gain_of_perfect_model(curve, draws=table)
    assert perfect.gains.shape == (50,)
    zero = np.zeros(300)
    by_hand = characteristic_curve(table[:, 7], *bands_from_sd(zero, curve.bands.above))
    assert perfect.gains[7] == pytest.approx(by_hand.gain().value)
    with pytest.raises(InputError, match="draws must have 300 rows"):
        gain_of_perfect_model(curve, draws=table[:10])
    with pytest.raises(InputError, match="replicates along a last axis"):
        gain_of_perfect_model(curve, draws=table[:, 0])


def test_draws_at_the_point_of_a_zero_band_are_captured():
    rng = np.random.default_rng(30)
    mean, sd = rng.normal(1e3, 1.0, 200), rng.uniform(0.5, 2.0, 200)
    sd[:50] = 0.0
    y = rng.normal(mean, sd)
    curve = characteristic_curve(y, *bands_from_sd(mean, sd))
    perfect = gain_of_perfect_model(curve, draws=lambda rng: rng.normal(mean, sd), replicates=50)
    assert perfect.reason == ""
    assert perfect.lower < perfect.value < perfect.upper


def test_a_perfect_model_of_rows_never_captured_is_unknown():
    curve = characteristic_curve([1.0, 1.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 0.0])
    perfect = gain_of_perfect_model(curve)
    assert math.isnan(perfect.value)
    assert "no critical scale to permute" in perfect.reason


def test_perfect_model_under_weights_and_outputs():
    rng = np.random.default_rng(4)
    weights = rng.integers(0, 4, 400)
    curve = heteroscedastic(400, 5, weights=weights)
    long = np.repeat(np.arange(400), weights)
    zero = np.zeros(len(long))
    sd = curve.bands.above[long]
    full = characteristic_curve(curve.bands.y[long], *bands_from_sd(zero, sd))
    assert gain_of_perfect_model(curve).gains == pytest.approx(gain_of_perfect_model(full).gains)
    shares = heteroscedastic(400, 5, weights=rng.uniform(0, 2, 400), weights_kind="importance")
    found = gain_of_perfect_model(shares, LOW)
    assert found.lower < found.value < found.upper
    width = rng.uniform(0.5, 2.0, (200, 2))
    y = rng.normal(0.0, width)
    both = characteristic_curve(y, 0 * y, -width, width)
    assert abs(gain_of_perfect_model(both).value) < 3.0


def test_the_same_seed_gives_the_same_range():
    curve = heteroscedastic(100, 6)
    one, two, other = (gain_of_perfect_model(curve, seed=seed) for seed in (1, 1, 2))
    assert one.gains.tolist() == two.gains.tolist()
    assert one.gains.tolist() != other.gains.tolist()


# --- the bootstrap


def influence_error(curve):
    """Delta-method standard errors of c·mean(k), and of the gain, from rows' influence."""
    band, scale, size = curve.bands.above, curve.bands.critical(), np.abs(curve.bands.error)
    area, constant = band.mean() * scale.mean(), size.mean()
    by_row = scale.mean() * (band - band.mean()) + band.mean() * (scale - scale.mean())
    gain = -100 * (by_row / constant - area / constant**2 * (size - constant))
    n = len(band)
    return by_row.std(ddof=1) / math.sqrt(n), gain.std(ddof=1) / math.sqrt(n)


def test_bootstrap_errors_agree_with_the_delta_method():
    curve = heteroscedastic(2000, 7)
    found = bootstrap_curve(curve, replicates=1500)
    area, gain = influence_error(curve)
    assert found.area.standard_error == pytest.approx(area, rel=0.08)
    assert found.gain.standard_error == pytest.approx(gain, rel=0.08)
    assert found.area.value == curve.area().value
    assert found.gain.value == curve.gain().value
    assert found.area.upper - found.area.lower == pytest.approx(2 * 1.96 * area, rel=0.1)


def test_bootstrap_band_of_a_constant_band_is_binomial():
    rng = np.random.default_rng(8)
    error = rng.normal(size=1000)
    curve = characteristic_curve(error, 0 * error, -1 + 0 * error, 1 + 0 * error)
    found = bootstrap_curve(curve, replicates=1500).curve
    middle = (found.y > 0.1) & (found.y < 0.9)
    half = (found.upper - found.lower)[middle] / 2
    share = found.y[middle]
    assert half == pytest.approx(1.96 * np.sqrt(share * (1 - share) / 1000), rel=0.12)
    assert found.band == "95% pointwise bootstrap band"
    assert (found.lower <= found.y).all()
    assert (found.upper >= found.y).all()


@pytest.mark.parametrize("move", ["scale", "bias"])
@pytest.mark.parametrize(("x", "y_axis"), [("excess", "deficit"), ("bandwidth", "miss_rate")])
def test_each_replicate_is_the_curve_of_the_resample(move, x, y_axis):
    rng = np.random.default_rng(9)
    error, below, above = rng.normal(size=60), rng.uniform(0.3, 2, 60), rng.uniform(0.3, 2, 60)
    options = {"x": x, "y_axis": y_axis, "move": move}
    curve = characteristic_curve(error, 0 * error, -below, above, **options)
    sampler = Sampler.of(curve, LOW)
    weights = units_of(curve.bands, None).resample(rng)
    long = np.repeat(np.arange(60), weights.astype(int))
    zero = np.zeros(len(long))
    own = characteristic_curve(error[long], zero, -below[long], above[long], **options)
    path, area, gain = sampler.draw(weights)
    assert area == pytest.approx(own.partial_area(y_range=(0.0, 0.2)).value)
    assert gain == pytest.approx(own.partial_gain(y_range=(0.0, 0.2)).value)
    assert path.total() == pytest.approx(own.area().value)


def test_clusters_are_drawn_whole():
    rng = np.random.default_rng(10)
    sd = rng.uniform(0.5, 2.0, 100)
    y = rng.normal(0.0, sd)
    each = characteristic_curve(y, *bands_from_sd(np.zeros(100), sd))
    four = np.repeat(np.arange(100), 4)
    copied = characteristic_curve(y[four], *bands_from_sd(np.zeros(400), sd[four]))
    alone = bootstrap_curve(each, replicates=400).area
    wrong = bootstrap_curve(copied, replicates=400).area
    right = bootstrap_curve(copied, replicates=400, cluster=four).area
    assert right.units == 100
    assert right.standard_error == pytest.approx(alone.standard_error, rel=1e-9)
    assert wrong.standard_error < 0.65 * alone.standard_error


def test_frequency_weights_resample_as_repetitions():
    rng = np.random.default_rng(11)
    weights = rng.integers(0, 4, 600)
    curve = heteroscedastic(600, 12, weights=weights)
    long = np.repeat(np.arange(600), weights)
    sd = curve.bands.above[long]
    full = characteristic_curve(curve.bands.y[long], *bands_from_sd(np.zeros(len(long)), sd))
    one, two = (bootstrap_curve(each, LOW, replicates=800) for each in (curve, full))
    assert one.area.value == pytest.approx(two.area.value)
    assert one.area.standard_error == pytest.approx(two.area.standard_error, rel=0.12)
    assert one.gain.standard_error == pytest.approx(two.gain.standard_error, rel=0.12)


def test_outputs_of_a_row_are_drawn_together():
    rng = np.random.default_rng(13)
    y, sd = rng.normal(size=300), rng.uniform(0.5, 2.0, 300)
    twice, width = np.column_stack([y, y]), np.column_stack([sd, sd])
    each = characteristic_curve(y, *bands_from_sd(np.zeros(300), sd))
    both = characteristic_curve(twice, 0 * twice, -width, width)
    one, two = (bootstrap_curve(curve, replicates=300).area for curve in (each, both))
    assert two.units == 300
    assert two.standard_error == pytest.approx(one.standard_error, rel=1e-9)


def test_bootstrap_says_what_it_cannot_tell():
    one = characteristic_curve([1.0], [0.0], [-1.0], [1.0])
    assert "one row" in bootstrap_curve(one, replicates=5).area.reason
    stuck = characteristic_curve([1.0, 1.0], [0.0, 0.0], [-1.0, -1.0], [1.0, 0.0])
    found = bootstrap_curve(stuck, replicates=5)
    assert "never captured" in found.area.reason
    assert math.isnan(found.gain.standard_error)
    with pytest.raises(InputError, match="replicates must be a whole number of at least 2"):
        bootstrap_curve(one, replicates=1)
    with pytest.raises(InputError, match="got 'uq360'"):
        bootstrap_curve(one, AreaRequest(convention="uq360"))


def test_rare_importance_weights_never_leave_an_empty_resample():
    weights = np.zeros(20)
    weights[3] = 1.0
    curve = heteroscedastic(20, 14, weights=weights, weights_kind="importance")
    found = bootstrap_curve(curve, replicates=50)
    assert found.area.standard_error == pytest.approx(0.0, abs=1e-12)


def test_difference_of_gains_is_paired():
    first, second = pair(1500, 15)
    found = bootstrap_gain_difference(first, second, LOW, replicates=400)
    assert found.value == pytest.approx(first.gain_by(LOW).value - second.gain_by(LOW).value)
    assert found.lower > 0
    alone = [bootstrap_curve(curve, LOW, replicates=400).gain for curve in (first, second)]
    unpaired = math.hypot(*(one.standard_error for one in alone))
    assert found.standard_error < 0.8 * unpaired
    same = bootstrap_gain_difference(first, first, replicates=50)
    assert (same.value, same.standard_error, same.lower, same.upper) == (0.0, 0.0, 0.0, 0.0)


# --- the permutation test


def every_swap(first, second, request, weights=None, cluster=None):
    """Differences of areas over all swaps, each from curves of their own."""
    n = len(first.bands)
    cluster = np.arange(n) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    sides = []
    for curve in (first, second):
        size = curve.bands.mean_band() if curve.bands.move == "scale" else 1.0
        sides.append((curve.bands.error, curve.bands.below / size, curve.bands.above / size))
    differences = []
    for swap in itertools.product([False, True], repeat=int(cluster.max()) + 1):
        gone = np.array(swap)[cluster]
        areas = []
        for one, two in (sides, sides[::-1]):
            error, below, above = (np.where(gone, b, a) for a, b in zip(one, two, strict=True))
            own = characteristic_curve(
                error,
                0 * error,
                -below,
                above,
                x=first.x_axis,
                y_axis=first.y_axis,
                move=first.bands.move,
                weights=weights,
            )
            areas.append(own.area_by(request).value)
        differences.append(areas[0] - areas[1])
    return np.array(differences)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "request_"),
    [
        ({}, AreaRequest()),
        ({}, AreaRequest(convention="paper")),
        ({}, AreaRequest(y_range=(0.1, 0.6))),
        ({}, AreaRequest(x_range=(0.2, 1.1))),
        ({"x": "excess", "y_axis": "deficit"}, AreaRequest()),
        ({"y_axis": "deficit", "move": "bias"}, AreaRequest()),
    ],
)
def test_p_value_agrees_with_every_swap(options, request_):
    first, second = pair(8, 16, **options)
    swaps = every_swap(first, second, request_)
    exact = np.mean(np.abs(swaps) >= abs(swaps[0]) * (1 - 1e-9))
    found = permutation_test(first, second, request_, permutations=3000)
    assert found.method == ("products" if not options and request_ == AreaRequest() else "curves")
    assert found.difference == pytest.approx(swaps[0])
    assert abs(found.p_value - exact) < 4 * math.sqrt(exact * (1 - exact) / 3000) + 1 / 3000


@pytest.mark.slow
@pytest.mark.parametrize("request_", [AreaRequest(), AreaRequest(y_range=(0.0, 1.0))])
def test_weights_and_clusters_are_swapped_as_they_should(request_):
    cluster = np.array(["a", "a", "b", "c", "c", "d", "e", "f"])
    first, second = pair(8, 17)
    swaps = every_swap(first, second, request_, cluster=cluster)
    exact = np.mean(np.abs(swaps) >= abs(swaps[0]) * (1 - 1e-9))
    found = permutation_test(first, second, request_, permutations=3000, cluster=cluster)
    assert found.units == 6
    assert abs(found.p_value - exact) < 4 * math.sqrt(exact * (1 - exact) / 3000) + 1 / 3000

    weights = np.array([1, 2, 0, 1, 1, 3, 1, 1])
    first, second = pair(8, 17, weights=weights)
    long = np.repeat(np.arange(8), weights)
    zero = np.zeros(len(long))
    copies = [
        characteristic_curve(
            curve.bands.error[long], zero, -curve.bands.below[long], curve.bands.above[long]
        )
        for curve in (first, second)
    ]
    swaps = every_swap(*copies, request_)
    exact = np.mean(np.abs(swaps) >= abs(swaps[0]) * (1 - 1e-9))
    found = permutation_test(first, second, request_, permutations=3000)
    assert abs(found.p_value - exact) < 4 * math.sqrt(exact * (1 - exact) / 3000) + 1 / 3000


@pytest.mark.parametrize("request_", [AreaRequest(), LOW])
def test_the_scale_of_a_models_bands_does_not_move_the_p_value(request_):
    first, second = pair(60, 18)
    zero = np.zeros(60)
    wider = characteristic_curve(first.bands.y, *bands_from_sd(zero, 40 * first.bands.above))
    one, two = (
        permutation_test(curve, second, request_, permutations=400) for curve in (first, wider)
    )
    assert 0.01 < one.p_value < 0.99
    assert two.p_value == one.p_value
    assert two.difference == pytest.approx(one.difference)


def test_p_values_are_uniform_where_the_models_are_exchangeable():
    rng = np.random.default_rng(19)
    values = []
    for _ in range(300):
        y, zero = rng.normal(size=40), np.zeros(40)
        curves = [
            characteristic_curve(y, *bands_from_sd(zero, rng.uniform(0.5, 2.0, 40)))
            for _ in range(2)
        ]
        values.append(permutation_test(*curves, permutations=199).p_value)
    for level in (0.1, 0.3, 0.5):
        share = np.mean(np.array(values) <= level)
        assert abs(share - level) < 4 * math.sqrt(level * (1 - level) / 300)


def test_a_model_does_not_differ_from_itself():
    first, _ = pair(50, 20)
    found = permutation_test(first, first, permutations=99)
    assert (found.difference, found.p_value) == (0.0, 1.0)


def test_defaults_of_permutations_are_said():
    first, second = pair(30, 21)
    assert permutation_test(first, second).permutations == 10_000
    by_curves = permutation_test(first, second, LOW)
    assert (by_curves.method, by_curves.permutations) == ("curves", 1000)


def test_models_must_be_of_the_same_rows():
    first, second = pair(30, 22)
    other, _ = pair(30, 23)
    with pytest.raises(InputError, match="of the same rows"):
        permutation_test(first, other)
    with pytest.raises(InputError, match="same axes and move"):
        permutation_test(first, second.on(x="excess", y_axis="miss_rate"))
    weighted, _ = pair(30, 22, weights=np.ones(30))
    with pytest.raises(InputError, match="same weights"):
        bootstrap_gain_difference(first, weighted)
    with pytest.raises(InputError, match="cluster must have 30 rows"):
        permutation_test(first, second, cluster=[1, 2])
    with pytest.raises(InputError, match="permutations must be a whole number of at least 1"):
        permutation_test(first, second, permutations=0)


def test_an_infinite_area_has_no_p_value():
    y, zero = [1.0, 1.0], [0.0, 0.0]
    stuck = characteristic_curve(y, zero, [-1.0, -1.0], [1.0, 0.0])
    whole = characteristic_curve(y, zero, [-1.0, -1.0], [1.0, 2.0])
    found = permutation_test(stuck, whole)
    assert math.isnan(found.p_value)
    assert "never captured" in found.reason


def several(**options):
    """Three models of the same rows, and the first again."""
    first, second = pair(80, 31, **options)
    third = characteristic_curve(
        first.bands.y, *bands_from_sd(np.full(80, 0.2), np.full(80, 1.3)), **options
    )
    return [first, second, third, first]


@pytest.mark.parametrize("options", [{}, {"weights": np.arange(80) % 3 + 1.0}])
@pytest.mark.parametrize("cluster", [None, np.arange(80) // 4])
def test_gains_of_many_models_are_those_of_curves_resampled_one_by_one(options, cluster):
    curves = several(**options)
    pairs = [(0, 1), (2, 1), (0, 3)]
    found = gain_differences(curves, pairs, replicates=40, cluster=cluster, seed=5)
    units, gains = units_of(curves[0].bands, cluster), []
    for curve in curves:
        rng, sampler = child(5, "characteristic", "bootstrap"), Sampler.of(curve, None)
        gains.append([sampler.draw(units.resample(rng))[2] for _ in range(40)])
    for (one, two), difference in zip(pairs, found, strict=True):
        draws = np.subtract(gains[one], gains[two])
        ends = np.quantile(draws, [0.025, 0.975])
        assert (difference.lower, difference.upper) == pytest.approx(ends, abs=1e-9)
        assert difference.standard_error == pytest.approx(draws.std(ddof=1), abs=1e-9)
    assert found[2].lower == found[2].upper == 0.0
    alone = bootstrap_gain_difference(curves[2], curves[1], replicates=40, cluster=cluster, seed=5)
    assert alone.lower == pytest.approx(found[1].lower, abs=1e-9)


@pytest.mark.parametrize("request_", [None, LOW])
def test_permutation_tests_of_many_models_are_those_of_each_pair(request_):
    curves = several()
    pairs = [(0, 1), (2, 1), (0, 3)]
    found = permutation_tests(curves, pairs, request_, permutations=200, seed=6)
    for (one, two), test in zip(pairs, found, strict=True):
        assert test == permutation_test(
            curves[one], curves[two], request_, permutations=200, seed=6
        )
    assert found[2].p_value == 1.0
