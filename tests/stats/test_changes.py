"""Changes of level against their definition, closed forms, and right series drawn many times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import signal, special

from howsure.core.errors import UnanswerableError
from howsure.core.rng import child
from howsure.stats.changes import EDGE, MAX_BATCHES, Change, find_changes
from howsure.stats.permutation import batch_starts


def change(series: np.ndarray, times: np.ndarray | None = None, **options: object) -> Change:
    found = find_changes([series], np.arange(len(series)) if times is None else times, **options)[0]
    assert found is not None
    return found


def statistic(batches: np.ndarray) -> tuple[float, int]:
    """The largest studentised CUSUM of batches of one row each, in plain loops."""
    count = len(batches)
    least = math.ceil(EDGE * count)
    best, split = -1.0, 0
    for k in range(least, count - least + 1):
        gap = batches[:k].mean() - batches[k:].mean()
        clear = abs(gap) / math.sqrt(1 / k + 1 / (count - k))
        if clear > best * (1 + 1e-9):
            best, split = clear, k
    rest = batches - np.where(
        np.arange(count) < split, batches[:split].mean(), batches[split:].mean()
    )
    band = max(round(count / 10), 1)
    variance = 0.0
    for i in range(count):
        for j in range(count):
            variance += max(1 - abs(i - j) / band, 0.0) * rest[i] * rest[j]
    return best / math.sqrt(max(variance, 0.0) / (count - 2)), split


@pytest.mark.parametrize(("count", "step"), [(8, 4.0), (27, 0.9)])
def test_the_p_value_is_that_of_batches_in_random_order(count: int, step: float) -> None:
    """The statistic in plain loops, over permutations drawn apart."""
    rng = child(0, "by definition", count)
    series = rng.normal(size=count) + step * (np.arange(count) >= 0.6 * count)
    found = change(series)
    seen, split = statistic(series)
    assert found.start == split
    assert found.before.mean == pytest.approx(series[:split].mean())
    assert found.after.mean == pytest.approx(series[split:].mean())
    draws = 1_500
    drawn = [statistic(rng.permutation(series))[0] for _ in range(draws)]
    p = np.mean(np.array(drawn) >= seen * (1 - 1e-9))
    assert 0.005 < p < 0.5
    assert found.p == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) * (1 / draws + 1 / 199)))


def test_a_step_without_noise_is_found_where_it_is() -> None:
    series = (np.arange(400) >= 260).astype(float)
    found = change(series)
    assert found.start == 260
    assert (found.before.mean, found.after.mean, found.latest.mean) == (0.0, 1.0, 1.0)
    assert found.p < 0.001
    assert found.lower == found.upper == pytest.approx(1.0)
    assert found.late == 360


def test_batches_are_alike_and_keep_a_time_together() -> None:
    assert np.diff(batch_starts(np.ones(1_000), MAX_BATCHES)).tolist() == [10] * 99
    sizes = np.diff(np.append(batch_starts(np.ones(1_050), MAX_BATCHES), 1_050))
    assert (len(sizes), sizes.min(), sizes.max()) == (100, 10, 11)
    heavy = np.ones(50)
    heavy[20] = 1_000.0
    assert 20 in batch_starts(heavy, 30)
    assert 21 in batch_starts(heavy, 30)


def autoregressive(rng: np.random.Generator, n: int, memory: float) -> np.ndarray:
    noise = rng.normal(size=n + 300) * math.sqrt(1 - memory**2)
    return np.asarray(special.ndtr(signal.lfilter([1.0], [1.0, -memory], noise)[300:]))


def clustered(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    shared = np.repeat(rng.normal(size=-(-n // size)), size)[:n]
    return np.asarray(special.ndtr(math.sqrt(0.3) * shared + math.sqrt(0.7) * rng.normal(size=n)))


def volatile(rng: np.random.Generator, n: int) -> np.ndarray:
    """Errors whose size alone has a memory, a volatility of lognormal marginals."""
    level = special.ndtri(autoregressive(rng, n, 0.9))
    return np.asarray(special.ndtr(rng.normal(size=n) * np.exp(0.4 * level)))


RIGHT = {
    "independent, 60 rows": lambda rng: rng.random(60),
    "independent": lambda rng: rng.random(1_000),
    "AR(.8), 50 effective rows": lambda rng: autoregressive(rng, 450, 0.8),
    "AR(.95), 50 effective rows": lambda rng: autoregressive(rng, 1_950, 0.95),
    "clusters of 20": lambda rng: clustered(rng, 700, 20),
    "volatility": lambda rng: volatile(rng, 1_500),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.rate
def test_series_that_do_not_change_keep_their_level(name: str) -> None:
    """As the verdict joins misses and the PIT's components: twice the smaller p-value."""
    tables, seen = 300, np.zeros(2)
    for number in range(tables):
        u = RIGHT[name](child(number, "right", name))
        x = 2 * u - 1
        missed = np.abs(x) > 0.9
        both = np.stack([math.sqrt(3) * x, math.sqrt(5) / 2 * (3 * x * x - 1)])
        ps = [
            min((each.p for each in found if each is not None), default=1.0)
            for found in (
                find_changes(series, np.arange(len(u)), seed=number)
                for series in (missed[None].astype(float), both)
            )
        ]
        seen += 2 * min(ps) < np.array([0.05, 0.007])
    for level, count in zip((0.05, 0.007), seen, strict=True):
        assert count / tables <= level + 3 * math.sqrt(level * (1 - level) / tables), seen


@pytest.mark.parametrize(("memory", "n"), [(0.0, 600), (0.8, 3_000)])
@pytest.mark.rate
def test_intervals_hold_the_largest_change_and_the_level_now(memory: float, n: int) -> None:
    tables, lower, upper, level = 200, 0, 0, 0
    for number in range(tables):
        u = autoregressive(child(number, "interval", n), n, memory)
        series = math.sqrt(12) * (u - 0.5) + (np.arange(n) >= 0.7 * n)
        found = change(series, seed=number)
        lower += found.lower > 1.0
        upper += found.upper < 1.0
        level += abs(found.after.mean - 1.0) > found.after.reach(0.95)
    allowed = tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables))
    assert lower + upper <= allowed
    assert level <= allowed


def test_rows_that_follow_each_other_count_as_fewer() -> None:
    """n(1 − ρ)/(1 + ρ) of an autoregression; the long-run variance is known to a third."""
    whole = [
        change(special.ndtri(autoregressive(child(number, "count"), 20_000, 0.8)))
        for number in range(20)
    ]
    share = [(w.before.rows + w.after.rows) / (20_000 / 9) for w in whole]
    assert 0.8 < np.exp(np.mean(np.log(share))) < 1.25


def test_copies_are_rows_and_equal_weights_are_none() -> None:
    rng = child(0, "copies")
    series, times = rng.normal(size=300), rng.integers(0, 120, 300)
    times = np.unique(times, return_inverse=True)[1]
    copies = rng.integers(1, 4, 300).astype(float)
    one = change(series, times, mass=copies)
    again = np.repeat(np.arange(300), copies.astype(int))
    other = change(series[again], times[again])
    for name in ("start", "late", "lower", "upper", "error", "p", "null", "null_upper"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-9), name
    assert one.before.rows == pytest.approx(other.before.rows)
    plain, equal = change(series), change(series, mass=np.full(300, 2.5), noise=np.full(300, 6.25))
    for name in ("start", "lower", "upper", "error", "p"):
        assert getattr(plain, name) == pytest.approx(getattr(equal, name), rel=1e-9), name
    assert plain.after.rows == pytest.approx(equal.after.rows)


def test_the_order_of_rows_is_no_matter() -> None:
    rng = child(1, "order")
    series, times = rng.normal(size=500), np.repeat(np.arange(100), 5)
    moved = rng.permutation(500)
    one, other = change(series, times), change(series[moved], times[moved])
    assert one.p == other.p
    assert one.start == other.start
    assert one.size == pytest.approx(other.size)


def test_a_million_rows_are_quick_and_the_first_draws_suffice() -> None:
    found = change(child(0, "million").normal(size=1_000_000))
    assert found.upper < 0.05


def test_what_cannot_be_told_says_why() -> None:
    noise = child(0, "few").normal(size=100)
    with pytest.raises(UnanswerableError, match="7 different times are too few"):
        change(noise, np.arange(100) % 7)
    with pytest.raises(UnanswerableError, match="all rows have one time"):
        change(noise, np.zeros(100, dtype=int))
    with pytest.raises(UnanswerableError, match="most rows have one time"):
        change(noise, np.maximum(np.arange(100) - 90, 0))
    assert find_changes([np.full(100, 0.1), noise], np.arange(100))[0] is None
