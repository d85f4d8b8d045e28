"""Serial dependence: its moments by permutation, τ by closed forms, levels by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import signal, stats

from howsure.core.errors import UnanswerableError
from howsure.core.weights import Weights
from howsure.engine.autocorrelation import (
    Dependence,
    _OrderedUnits,
    batches_for,
    batches_of,
    file_dependence,
    follows,
    in_time_order,
    is_sorted,
    mid_ranks,
    serial_dependence,
    stretches,
)
from howsure.stats.ecdf import legendre


def autoregressive(rng: np.random.Generator, n: int, rho: float) -> np.ndarray:
    fresh = rng.normal(size=n + 500)
    return signal.lfilter([math.sqrt(1 - rho**2)], [1.0, -rho], fresh)[500:]


def both(scores: np.ndarray) -> dict[str, np.ndarray]:
    side, size = legendre(stats.norm.cdf(scores))[:2]
    return {"side": side, "size": size}


def products(x: np.ndarray, w: np.ndarray, block: np.ndarray) -> float:
    """Σ w_i x_i w_j x_j over ordered pairs of different rows of one block, from the definition."""
    same = (block[:, None] == block[None, :]) & ~np.eye(len(x), dtype=bool)
    return float(np.outer(w * x, w * x)[same].sum())


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_products_have_the_moments_of_permuted_rows(weighted: bool) -> None:
    """Blocks of 1, 2 and 4 units of unequal size: mean, spread and upper tail of 4,000 orders."""
    rng = np.random.default_rng(0)
    units = np.sort(rng.integers(0, 32, 90))
    units = np.unique(units, return_inverse=True)[1]
    w = rng.uniform(0.5, 1.5, 90) if weighted else np.ones(90)
    rows = _OrderedUnits(units, w if weighted else None, "time", False)
    x = rng.exponential(size=90)
    x -= np.average(x, weights=w)
    chances = []
    for _ in range(4000):
        order = rng.permutation(90)
        mixed = x[order] - np.average(x[order], weights=w)
        chances.append(rows.test(mixed)[0])
    found = np.array(chances)
    assert found.shape[1] == len(rows.blocks) == 2 + (len(set(units)) >= 32)
    for level in (0.5, 0.2, 0.05):
        share = (found < level).mean(axis=0)
        assert (np.abs(share - level) < 0.03 + 4 * math.sqrt(level / 4000)).all(), (level, share)


def test_a_block_sums_products_of_different_rows() -> None:
    rng = np.random.default_rng(1)
    units, x = np.repeat(np.arange(20), 3), rng.normal(size=60)
    x -= x.mean()
    rows = _OrderedUnits(units, None, "clusters", False)
    block = rows.blocks[0]
    assert block.pairs == block.held == 20 * 3 * 2
    assert block.triples == 20 * 3 * 2 * 1
    (chance,), (excess, _, _) = rows.test(x)
    own, total = float(x @ x), products(x, np.ones(60), units)
    centre = -own / 60 * block.held / 59
    assert excess == pytest.approx((total - centre) / own)
    assert 0 < chance < 1


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 400])
def test_independent_rows_are_seldom_called_dependent(n: int) -> None:
    tables, red = 600, {"time": 0, "ties": 0, "clusters": 0, "misses": 0}
    for number in range(tables):
        rng = np.random.default_rng([n, number])
        scores = rng.normal(size=n)
        known, order = both(scores), np.arange(n)
        red["time"] += serial_dependence(known, order, "time").found
        red["ties"] += serial_dependence(known, order // 3, "time").found
        red["clusters"] += serial_dependence(known, order // 10, "clusters").found
        missed = {"size": (np.abs(scores) > 1.0).astype(float)}
        red["misses"] += serial_dependence(missed, order, "time").found
    bar = tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables))
    assert max(red.values()) <= bar, red
    assert min(red.values()) >= tables * 0.01, red


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "n"), [(0.5, 1000), (0.8, 1000), (0.95, 8000)])
def test_tau_is_that_of_an_autoregression(rho: float, n: int) -> None:
    found = [
        serial_dependence(
            {"side": autoregressive(np.random.default_rng([n, number]), n, rho)},
            np.arange(n),
            "time",
        )
        for number in range(30)
    ]
    right = (1 + rho) / (1 - rho)
    assert all(each.found for each in found)
    assert np.median([each.tau for each in found]) == pytest.approx(right, rel=0.12)
    assert np.median([each.correlation for each in found]) == pytest.approx(rho, abs=0.02)
    inside = sum(each.lower <= right - 1 <= each.upper for each in found)
    assert inside >= 24


def test_tau_of_means_of_neighbours_and_of_clusters() -> None:
    """1 + 2ρ₁ of a moving average, 1 + (m − 1)ρ of clusters of m rows."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=20_001)
    moving = serial_dependence({"side": noise[1:] + noise[:-1]}, np.arange(20_000), "time")
    assert moving.tau == pytest.approx(2.0, rel=0.15)
    cluster = np.arange(20_000) // 20
    x = math.sqrt(0.3) * rng.normal(size=1000)[cluster] + math.sqrt(0.7) * noise[1:]
    found = serial_dependence({"side": x}, cluster, "clusters")
    assert found.correlation == pytest.approx(0.3, abs=0.03)
    assert found.tau == pytest.approx(1 + 19 * 0.3, rel=0.1)
    assert found.effective == pytest.approx(20_000 / found.tau)


def test_seasons_are_seen_and_cost_what_they_do() -> None:
    """Lag 12 at .8: blocks are blind to it, and 1,000 rows counted as 970; true 111."""
    for n, rows in ((100, 11), (300, 33), (1_000, 111)):
        rng = np.random.default_rng([7, n])
        fresh = 0.6 * rng.normal(size=n + 600)
        x = signal.lfilter([1.0], [1.0, *[0.0] * 11, -0.8], fresh)[600:]
        found = serial_dependence({"side": x}, np.arange(n), "time")
        assert found.found
        assert found.lag == 12
        assert found.effective == pytest.approx(rows, rel=0.35)
        assert found.lower < 8.0 < found.upper
        assert found.correlation == pytest.approx(0.8, abs=0.15)


def test_rare_values_make_no_season() -> None:
    """Two misses among 100 rows are a pair at some lag, whichever."""
    x = np.zeros(100)
    x[[10, 17]] = 1.0
    assert serial_dependence({"size": x}, np.arange(100), "time").p > 0.2


def test_ranks_count_equal_values_half() -> None:
    assert mid_ranks(np.array([3.0, 1.0, 3.0, 9.0])).tolist() == [0.5, 0.125, 0.5, 0.875]


def test_whether_numbers_follow_each_other() -> None:
    rng = np.random.default_rng(8)
    slow = autoregressive(rng, 400, 0.95)
    assert follows(slow, np.arange(400))
    assert follows(np.exp(slow) * rng.choice([-1.0, 1.0], 400), np.arange(400))
    assert not follows(np.ones(400), np.arange(400))
    assert not follows(slow[:10], np.arange(10))


def test_the_size_of_errors_may_have_a_memory_of_its_own() -> None:
    rng = np.random.default_rng(3)
    scores = np.exp(autoregressive(rng, 4000, 0.95)) * rng.normal(size=4000)
    ranks = stats.rankdata(scores) / 4001
    found = serial_dependence(both(stats.norm.ppf(ranks)), np.arange(4000), "time")
    assert found.found
    assert found.signal == "size"


def test_a_single_change_is_no_memory() -> None:
    rng = np.random.default_rng(4)
    scores = rng.normal(size=3000) * np.where(np.arange(3000) < 2400, 1.0, 0.5)
    found = serial_dependence(both(scores), np.arange(3000), "time")
    assert found.tau < 1.5


def test_repeated_rows_at_other_times_and_weights_of_frequency_are_one() -> None:
    """A weight of 3 is three independent rows of one time, up to products of its copies."""
    rng = np.random.default_rng(5)
    x = autoregressive(rng, 600, 0.9)
    weights = Weights.checked(np.full(600, 3.0), "frequency", length=600)
    plain = serial_dependence({"side": x}, np.arange(600), "time")
    heavy = serial_dependence({"side": x}, np.arange(600), "time", weights=weights)
    assert heavy.p == pytest.approx(plain.p)
    assert heavy.n == 1800
    assert heavy.found
    shares = Weights.checked(np.full(600, 3.0), "importance", length=600)
    alike = serial_dependence({"side": x}, np.arange(600), "time", weights=shares)
    assert alike.tau == pytest.approx(plain.tau)
    assert alike.n == pytest.approx(600)


def test_what_cannot_be_asked() -> None:
    x = np.random.default_rng(6).normal(size=100)
    for values, units, by, why in (
        (x, np.zeros(100, dtype=np.int64), "time", "one time"),
        (x, np.zeros(100, dtype=np.int64), "clusters", "one cluster"),
        (x[:10], np.arange(10), "time", "10 rows are too few"),
        (np.ones(100), np.arange(100), "time", "rows do not differ"),
        (x, np.arange(100), "clusters", "too few"),
    ):
        with pytest.raises(UnanswerableError, match=why):
            serial_dependence({"side": values}, units, by)


def test_batches_are_whole_consecutive_and_alike_in_mass() -> None:
    rng = np.random.default_rng(7)
    units = np.unique(np.sort(rng.integers(0, 300, 2000)), return_inverse=True)[1]
    mixed = rng.permutation(2000)
    batch = batches_of(units[mixed], np.ones(2000), 12)
    by_unit = np.array([set(batch[units[mixed] == u]) for u in range(units.max() + 1)])
    assert all(len(each) == 1 for each in by_unit)
    ordered = np.array([each.pop() for each in by_unit])
    assert (np.diff(ordered) >= 0).all()
    assert np.bincount(batch).min() > 0.85 * 2000 / 12
    few = batches_of(np.array([0, 1, 2]), np.array([100.0, 1.0, 1.0]), 3)
    assert few.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("effective", "count"), [(19.0, 1), (21.0, 10), (50.0, 10), (160.0, 20), (9_999.0, 50)]
)
def test_how_many_batches(effective: float, count: int) -> None:
    found = Dependence(
        by="time",
        signal="side",
        correlation=0.5,
        tau=1000 / effective,
        effect=1.0,
        lower=1.0,
        upper=1.0,
        p=0.0,
        n=1000.0,
        found=True,
    )
    assert batches_for(found) == count


def test_neighbours_in_a_file() -> None:
    rng = np.random.default_rng(8)
    for n in (900, 60_000):
        rows = stretches(n)
        assert rows.shape == ((1, n) if n == 900 else (10, 2000))
        follows = autoregressive(rng, n, 0.5)
        found = file_dependence(both(follows[rows.ravel()]), rows.shape)
        assert found is not None
        assert found.correlation == pytest.approx(0.5, abs=0.07)
        weak = autoregressive(rng, n, 0.05)
        assert file_dependence(both(weak[rows.ravel()]), rows.shape) is None


def test_a_file_that_a_column_sorts() -> None:
    x = np.random.default_rng(9).normal(size=500)
    assert is_sorted(np.sort(x)[None, :, None])
    assert is_sorted(np.stack([x, -np.sort(x)], axis=1)[None])
    assert not is_sorted(x[None, :, None])
    assert not is_sorted(np.ones((1, 500, 2)))


def test_clusters_that_follow_each_other() -> None:
    time = np.arange(12) // 2
    assert in_time_order(time, np.array([5, 5, 5, 1, 1, 1, 0, 0, 0, 2, 2, 2])) is not None
    ranked = in_time_order(np.arange(6), np.array([1, 1, 0, 0, 2, 2]))
    assert ranked is not None
    assert ranked.tolist() == [0, 0, 1, 1, 2, 2]
    assert in_time_order(np.arange(6), np.array([0, 1, 0, 1, 0, 1])) is None


def test_series_of_one_memory_each_are_seen_where_sums_hide_it() -> None:
    """Of 30 series the sums over 100 times see an AR(.3) in a third of tables, rows in each."""
    (series, when), taus = np.divmod(np.arange(3_000), 100), []
    for seed in range(5):
        rng = np.random.default_rng([30, seed])
        x = np.concatenate([autoregressive(rng, 100, 0.3) for _ in range(30)])
        found = serial_dependence({"side": x}, when, "time", series=series)
        assert found.found
        assert found.p < 1e-6
        assert found.correlation == pytest.approx(0.3, abs=0.06)
        assert found.common < 0.5
        assert found.series == "known"
        taus.append(found.tau)
    assert np.mean(taus) == pytest.approx(1.3 / 0.7, rel=0.15)


def test_independent_series_are_seldom_called_dependent() -> None:
    series, when = np.divmod(np.arange(300), 60)
    rngs = (np.random.default_rng([31, seed]) for seed in range(200))
    seen = sum(
        serial_dependence(both(rng.normal(size=300)), when, "time", series=series).found
        for rng in rngs
    )
    assert seen <= 200 * (0.05 + 3 * math.sqrt(0.05 * 0.95 / 200))


@pytest.mark.parametrize("weighted", [False, True])
def test_no_correlation_is_above_1(weighted: bool) -> None:
    """A large spell that comes twice: products over the variance of all rows reach 1.1."""
    rng = np.random.default_rng(32)
    times = np.r_[np.arange(200), np.arange(50, 90)]
    x = autoregressive(rng, 200, 0.5) * np.where((times[:200] >= 50) & (times[:200] < 90), 2.0, 1.0)
    x = np.r_[x, x[50:90]]
    weights = Weights(rng.uniform(0.5, 2.0, 240), "importance") if weighted else None
    found = serial_dependence({"side": x - np.mean(x)}, times, "time", weights=weights)
    assert 0.95 < found.correlation <= 1.0
