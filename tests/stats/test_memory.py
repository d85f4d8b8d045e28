"""Memory of a series: closed forms of τ, the definition by loops, and levels by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import integrate, optimize, signal, special, stats

from howsure.core.errors import UnanswerableError
from howsure.core.times import Chronology, slots
from howsure.core.weights import Weights
from howsure.stats.estimate import counts_as, spread_of
from howsure.stats.memory import MIN_EFFECTIVE, Memory, memory_of

Draw = Callable[[np.random.Generator, int], np.ndarray]


def filtered(*polynomial: float, over: tuple[float, ...] = (1.0,)) -> Draw:
    """A process of unit innovations."""

    def draw(rng: np.random.Generator, n: int) -> np.ndarray:
        return signal.lfilter(over, polynomial, rng.normal(size=n + 1_500))[1_500:]

    return draw


def season(lag: int, phi: float) -> tuple[float, ...]:
    return (1.0, *[0.0] * (lag - 1), -phi)


def worth(polynomial: tuple[float, ...], n: int, over: tuple[float, ...] = (1.0,)) -> float:
    """n times the variance of the mean of n values over that of one: Σ (1 − |k|/n) ρ_k."""
    impulse = signal.lfilter(over, polynomial, np.r_[1.0, np.zeros(5_000)])
    covariance = signal.fftconvolve(impulse, impulse[::-1])[5_000 : 5_000 + n]
    shares = 1.0 - np.arange(n) / n
    return float(2.0 * shares @ covariance / covariance[0] - 1.0)


PROCESSES: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "AR(.8)": ((1.0, -0.8), (1.0,)),
    "lag 12": (season(12, 0.8), (1.0,)),
    "MA(5)": ((1.0,), (1.0,) * 6),
    "ARMA(2, 1)": ((1.0, -0.9, 0.3), (1.0, 0.5)),
    "AR(.5) and a season of 7": (tuple(np.convolve((1.0, -0.5), season(7, 0.7))), (1.0,)),
}


def test_worth_is_the_closed_form() -> None:
    assert worth((1.0, -0.8), 4_000) == pytest.approx(9.0, rel=0.01)
    assert worth(season(12, 0.8), 4_000) == pytest.approx(9.0, rel=0.03)
    assert worth((1.0,), 4_000, (1.0, 1.0)) == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("name", PROCESSES)
def test_tau_is_that_of_the_mean(name: str) -> None:
    polynomial, over = PROCESSES[name]
    draw = filtered(*polynomial, over=over)
    true = worth(polynomial, 2_000, over)
    found = [memory_of(draw(np.random.default_rng([1, k]), 2_000)) for k in range(12)]
    typical = float(np.median([each.tau for each in found]))
    if "MA" in name:  # no shape of the family: it errs to the safe side
        assert true <= typical <= 2.0 * true
    else:
        assert typical == pytest.approx(true, rel=0.3 if "and" in name else 0.2)
        assert sum(low <= true <= high for low, high in (each.bounds() for each in found)) >= 8
    expected = 12 if name == "lag 12" else 7 if "7" in name else 1
    if "MA(5)" not in name:  # whose spectrum has waves as that of a season
        assert sum(each.lag == expected for each in found) >= 11


def test_days_and_weeks_that_stay_cost_next_to_nothing() -> None:
    """A pattern of mean 0 beside AR(.5): 5,000 hours are worth 2,400 of such, not some 5."""
    for season_of in (24, 168):
        rng = np.random.default_rng(season_of)
        pattern = rng.normal(size=season_of)
        pattern = (pattern - pattern.mean()) / pattern.std()
        noise = math.sqrt(0.75) * signal.lfilter([1.0], [1.0, -0.5], rng.normal(size=5_500))[500:]
        series = math.sqrt(0.7) * noise + math.sqrt(0.3) * pattern[np.arange(5_000) % season_of]
        assert 1_500 < memory_of(series).effective < 3_000


def autoregression(phi: float, share: float, w: float) -> float:
    return 1 - share + share * (1 - phi**2) / (1 - 2 * phi * math.cos(w) + phi**2)


def fractional(d: float, n: int, share: float, w: float) -> float:
    """Of fractional noise; at 0 what its mean is worth, from the autocorrelations."""
    if w == 0.0:
        rho = np.cumprod([(k - 1 + d) / (k - d) for k in range(1, n)])
        wave = 1 + 2 * float((1 - np.arange(1, n) / n) @ rho)
    else:
        ends = math.gamma(1 - d) ** 2 / math.gamma(1 - 2 * d)
        wave = ends * (2 * math.sin(w / 2)) ** (-2 * d)
    return 1 - share + share * wave


def by_definition(series: np.ndarray, off: float) -> float:
    """The tail of the mean from the paper's formulas, shape by shape, without a season."""
    n = len(series)
    x = series - series.mean()
    variance = x @ x / (n - 1)
    power, at = [], []
    for j in range(1, n):
        wave = [math.sqrt(2.0 / n) * math.cos(math.pi * j * (t + 0.5) / n) for t in range(n)]
        power.append(float(np.array(wave) @ x) ** 2 / variance)
        at.append(math.pi * j / n)
    low = max(4, int(0.4 * n ** (2 / 3)))
    lengths = [0.7 * 1.25**k for k in range(100) if 0.7 * 1.25**k <= n / 2 * (1 + 1e-12)]
    total = sum(length**-0.5 for length in lengths)
    shapes: list[tuple[float, Callable[[float], float]]] = [(0.8, lambda w: 1.0)]
    for length in lengths:
        for share in (0.1, 0.25, 0.5, 0.75, 1.0):
            one = partial(autoregression, math.exp(-1 / length), share)
            shapes.append((0.15 * length**-0.5 / total / 5, one))
    orders = [(d, share) for d in (0.1, 0.2, 0.3, 0.4) for share in (0.5, 1.0)]
    shapes += [(0.05 / 8, partial(fractional, d, n, share)) for d, share in orders]
    odds, tails, trusted = [], [], min(3 * low, 60)
    for prior, spectrum in shapes:
        rest = [p / spectrum(w) for p, w in zip(power, at, strict=True)]
        log = math.log(prior) - (n - 1) / 2 * math.log(sum(rest))
        odds.append(log - sum(math.log(spectrum(w)) for w in at) / 2)
        scale = (trusted * np.mean(rest) + sum(rest[:low])) / (trusted + low)
        tau = max(spectrum(0.0) * scale, 1.0)
        tails.append(stats.t.sf(off / math.sqrt(tau), trusted + low))
    weights = np.exp(np.array(odds) - max(odds))
    return float(weights @ tails / weights.sum())


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_tails_are_those_of_the_definition(rho: float) -> None:
    """With a season at most every fourth of 24 rows, none is clear: plain shapes alone."""
    checked = 0
    for seed in range(8):
        x = filtered(1.0, -rho)(np.random.default_rng(seed), 24)
        found = memory_of(x)
        if found.lag > 1:
            continue
        for off in (1.5, 3.0):
            plain = by_definition(x, off)
            checked += found.tail(off) == pytest.approx(plain, rel=0.02)
    assert checked >= 8


def test_students_law_has_the_tails_of_the_mixture() -> None:
    for seed, polynomial in enumerate([(1.0,), (1.0, -0.8), season(12, 0.8), (1.0, -0.97)]):
        found = memory_of(filtered(*polynomial)(np.random.default_rng(seed), 150))
        error, degrees = found.student()
        unit = math.sqrt(found.variance / found.n)
        for level in (0.05, 0.005):
            off = float(stats.t.isf(level / 2, degrees)) * error
            assert 2 * found.tail(off / unit) == pytest.approx(level, rel=0.05)
        off = float(stats.t.isf(0.01, degrees)) * error
        assert 2 * found.tail(off / unit) == pytest.approx(0.02, rel=0.2)


def mixture(
    taus: np.ndarray, weights: np.ndarray, freedom: np.ndarray, variance: float = 1.0
) -> Memory:
    """Of 100 times of one series."""
    return Memory(
        100, 100, 100.0, variance, 1.0, taus, weights, freedom, np.zeros(len(taus), bool), 1
    )


def test_quantiles_are_where_the_tail_is() -> None:
    """Against Brent's root of the definition, in either tail of what taus can weigh."""

    def beyond(off: float, mixed: Memory, tail: float) -> float:
        return mixed.tail(off) - tail

    rng = np.random.default_rng(0)
    for _ in range(200):
        taus = np.exp(np.cumsum(rng.exponential(size=rng.integers(1, 12))))
        weights, freedom = rng.dirichlet(np.full(len(taus), 0.3)), rng.uniform(2, 300, len(taus))
        mixed = mixture(taus, weights, freedom)
        for tail in (0.025, 0.0025):
            root = optimize.brentq(beyond, 0.1, 1e6, args=(mixed, tail))
            assert mixed._quantile(tail) == pytest.approx(root, rel=1e-9)


def test_a_mixture_of_one_is_student() -> None:
    found = mixture(np.array([9.0]), np.array([1.0]), np.array([30.0]), variance=4.0)
    error, degrees = found.student()
    assert degrees == pytest.approx(30.0, rel=1e-6)
    assert error == pytest.approx(math.sqrt(4.0 / 100 * 9.0), rel=1e-6)
    density, _ = integrate.quad(lambda t: stats.t.pdf(t, 30), 2 / 3, 100)
    assert found.tail(2.0) == pytest.approx(density, rel=1e-6)
    assert found.effective == pytest.approx(100 / 9)


def test_a_signal_stands_for_hits_only_where_these_hardly_vary() -> None:
    """Of many misses their own memory is enough; of few, the dearer of both counts."""
    rng = np.random.default_rng(0)
    signal_of = filtered(1.0, -0.95)(rng, 4_000)
    for share, own in ((0.5, True), (0.995, False)):
        hits = (np.abs(signal_of) <= np.quantile(np.abs(signal_of), share)).astype(float)
        alone = Chronology(np.arange(4_000))
        plain = spread_of(hits - hits.mean(), None, alone)
        hidden = spread_of(hits - hits.mean(), None, alone.hiding(signal_of))
        assert (hidden.error[0] == plain.error[0]) == own
        assert hidden.error[0] >= plain.error[0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 400])
@pytest.mark.parametrize("name", ["independent", *PROCESSES])
def test_means_keep_their_level(name: str, n: int) -> None:
    polynomial, over = PROCESSES.get(name, ((1.0,), (1.0,)))
    draw, tables, seen = filtered(*polynomial, over=over), 300, 0
    for number in range(tables):
        x = draw(np.random.default_rng([n, number]), n)
        seen += spread_of(x - x.mean(), None, Chronology(np.arange(n))).p(x.mean()) < 0.05
    assert seen <= tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables))


def test_one_number_a_time_has_the_mean_of_its_rows() -> None:
    rng = np.random.default_rng(0)
    times, values, mass = rng.integers(0, 30, 200) * 7, rng.normal(size=200), rng.uniform(1, 3, 200)
    values -= np.average(values, weights=mass)
    series, _ = Chronology(times).numbers(values, mass)
    held = np.unique(times)
    assert len(series) == len(held)
    by_hand = [mass[times == t] @ values[times == t] * len(held) / mass.sum() for t in held]
    np.testing.assert_allclose(series, by_hand)
    assert series.mean() == pytest.approx(0.0, abs=1e-12)


def test_rows_count_as_what_their_errors_say() -> None:
    """Four independent rows a time count as four; missing times do not count."""
    rng = np.random.default_rng(6)
    x, times = rng.normal(size=1_200), np.repeat(np.arange(300), 4)
    found = spread_of(x - x.mean(), None, Chronology(times))
    assert counts_as(x - x.mean(), None, found, 1_200.0) == pytest.approx(1_200, rel=0.15)
    assert found.units[0] == pytest.approx(300, rel=0.1)
    kept = np.sort(rng.choice(2_000, 1_200, replace=False))
    found = spread_of(x - x.mean(), None, Chronology(kept))
    assert found.units[0] == pytest.approx(1_200, rel=0.1)
    assert counts_as(x - x.mean(), None, found, 1_200.0) == pytest.approx(1_200, rel=0.15)
    slow = filtered(1.0, -0.8)(rng, 1_200)
    found = spread_of(slow - slow.mean(), None, Chronology(np.arange(1_200)))
    assert counts_as(slow - slow.mean(), None, found, 1_200.0) == pytest.approx(133, rel=0.35)


def test_times_lie_on_the_grid_of_their_step() -> None:
    days = np.array(["2024-03-01", "2024-03-04", "2024-03-02", "2024-03-04"], dtype="datetime64[D]")
    assert slots(days).tolist() == [0, 3, 1, 3]
    assert slots(np.array([10, 4, 6, 22])).tolist() == [3, 0, 1, 9]
    assert slots(np.array([0.1, 0.4, 0.2])).tolist() == [0, 3, 1]
    assert slots(np.array([0.0, 1.0, 2.5])).tolist() == [0, 1, 2]  # no grid
    assert slots(np.array(["b", "a", "c"])).tolist() == [1, 0, 2]
    gaps = np.array([0, 1, 3, 4])
    for times, places, count in ((5 + gaps, gaps, 5), (3 * gaps, np.arange(4), 4)):
        place, seen = Chronology(times).places()  # ranks, where most times are missing
        assert place.tolist() == places.tolist()
        assert seen == count


def test_weights_of_frequency_are_repeated_rows_of_one_time() -> None:
    rng = np.random.default_rng(1)
    x, copies = filtered(1.0, -0.7)(rng, 300), rng.integers(1, 4, 300)
    psi = x - np.average(x, weights=copies)
    one = spread_of(psi, Weights(copies.astype(float)), Chronology(np.arange(300)))
    rows = np.repeat(np.arange(300), copies)
    other = spread_of(psi[rows], None, Chronology(rows))
    for field in ("error", "skew", "units", "degrees"):
        assert getattr(one, field)[0] == pytest.approx(getattr(other, field)[0], rel=1e-9)


def test_groups_are_told_one_by_one() -> None:
    rng = np.random.default_rng(2)
    x, groups = filtered(1.0, -0.7)(rng, 600), np.arange(600) // 50 % 3
    times = Chronology(np.arange(600), size=x, signal=np.abs(x))
    every = spread_of(x, None, times, groups, 4)
    for group in range(3):
        rows = np.flatnonzero(groups == group)
        alone = spread_of(x[rows], None, times.take(rows))
        assert every.error[group] == pytest.approx(alone.error[0], rel=1e-12)
    assert math.isnan(every.error[3])


def test_a_score_has_at_least_the_memory_that_it_hides() -> None:
    rng = np.random.default_rng(3)
    slow = filtered(1.0, -0.95)(rng, 2_000)
    hits = (slow < np.quantile(slow, 0.98)).astype(float)
    hits -= hits.mean()
    times = Chronology(np.arange(2_000))
    plain, hidden = spread_of(hits, None, times), spread_of(hits, None, times.hiding(slow))
    assert hidden.error[0] > plain.error[0]
    assert hidden.units[0] == pytest.approx(memory_of(slow).effective, rel=0.02)
    alike = spread_of(np.zeros(2_000), None, times.hiding(slow))
    assert alike.error[0] == 0.0
    assert alike.units[0] == pytest.approx(hidden.units[0])


def panel(
    rng: np.random.Generator, series: int, times: int, rho: float, shock: float = 0.0
) -> tuple[np.ndarray, Chronology]:
    """AR(1) series of variance 1 at the same times; a share of it is a shock with that memory."""
    x = math.sqrt(1.0 - rho**2) * np.stack(
        [filtered(1.0, -rho)(rng, times) for _ in range(series + 1)]
    )
    x = math.sqrt(1.0 - shock) * x[1:] + math.sqrt(shock) * x[0]
    which, when = np.divmod(np.arange(series * times), times)
    return x.ravel(), Chronology(when, series=which)


@pytest.mark.parametrize("shock", [0.0, 0.3, 1.0])
def test_the_error_of_a_panel_is_that_of_its_mean(shock: float) -> None:
    """Var = (own share / series + shock) · n-times-variance of one series / times."""
    series, times, rho, errors = 8, 300, 0.6, []
    for seed in range(12):
        x, units = panel(np.random.default_rng([int(10 * shock), seed]), series, times, rho, shock)
        errors.append(float(spread_of(x - x.mean(), None, units).error[0]))
    one = worth((1.0, -rho), times) / times
    assert np.median(errors) == pytest.approx(
        math.sqrt(((1.0 - shock) / series + shock) * one), rel=0.15
    )


def test_series_that_are_alike_are_one() -> None:
    x, _ = panel(np.random.default_rng(1), 1, 80, 0.6)
    alone = spread_of(x - x.mean(), None, Chronology(np.arange(80)))
    units = Chronology(np.tile(np.arange(80), 4), series=np.repeat(np.arange(4), 80))
    four = spread_of(np.tile(x - x.mean(), 4), None, units)
    for name in ("error", "skew", "units", "degrees"):  # but for which shapes are taken as one
        assert getattr(four, name)[0] == pytest.approx(getattr(alone, name)[0], rel=1e-3)


def test_series_are_numbered_in_any_way_and_may_have_gaps() -> None:
    rng = np.random.default_rng(2)
    x, units = panel(rng, 6, 60, 0.5)
    assert units.series is not None
    kept, name = rng.permutation(len(x))[:300], rng.permutation(6)
    some = units.take(kept)
    other = Chronology(some.times, series=name[units.series[kept]])
    found = [spread_of(x[kept] - x[kept].mean(), None, each) for each in (some, other)]
    assert found[0].error[0] == pytest.approx(found[1].error[0], rel=1e-9)
    assert found[0].error[0] > 1.2 * math.sqrt(np.var(x[kept]) / 300)


def test_very_many_series_stand_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    x, units = panel(np.random.default_rng(3), 60, 50, 0.5)
    every = spread_of(x - x.mean(), None, units).error[0]
    monkeypatch.setattr("howsure.core.times._MAX_CELLS", 500)
    ten = spread_of(x - x.mean(), None, units.take(np.arange(len(x)))).error[0]
    assert ten == pytest.approx(every, rel=0.15)


def test_shocks_that_series_share_are_told_from_their_own_memory() -> None:
    for shock, shared in ((0.0, False), (0.3, True)):
        x, units = panel(np.random.default_rng(4), 16, 60, 0.5, shock)
        found = memory_of(*units.numbers(x - x.mean(), None))
        assert (found.common > 0.9) == shared
        assert (found.common < 0.1) != shared
        assert found.effective < 60 if shared else found.effective > 200
        assert not found.few
        few, of_few = panel(np.random.default_rng(5), 16, 20, 0.5, shock)
        assert memory_of(*of_few.numbers(few - few.mean(), None)).few == shared


@pytest.mark.slow
@pytest.mark.parametrize("shock", [0.0, 0.3])
@pytest.mark.parametrize(
    ("series", "times", "rho"), [(5, 60, 0.7), (16, 20, 0.5), (2, 200, 0.5), (30, 100, 0.3)]
)
def test_means_of_panels_keep_their_level(
    series: int, times: int, rho: float, shock: float
) -> None:
    """By row 23 to 40 % of these tests of a right mean are below .05."""
    tables, seen, plain = 200, 0, 0
    for number in range(tables):
        x, units = panel(np.random.default_rng([series, number]), series, times, rho, shock)
        seen += spread_of(x - x.mean(), None, units).p(x.mean()) < 0.05
        plain += spread_of(x - x.mean()).p(x.mean()) < 0.05
    assert seen <= tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables))
    assert plain > 0.15 * tables


def test_too_few_effective_rows_have_no_error() -> None:
    rng = np.random.default_rng(4)
    found = spread_of(np.cumsum(rng.normal(size=200)), None, Chronology(np.arange(200)))
    assert np.isnan([found.error[0], found.units[0], found.p(3.0)]).all()
    assert MIN_EFFECTIVE == 10


def test_what_has_no_memory_to_tell() -> None:
    for x in (np.zeros(50), np.full(50, 1e6), np.arange(7.0)):
        with pytest.raises(UnanswerableError, match="too few, or all alike"):
            memory_of(x)


def test_scale_and_sign_change_nothing() -> None:
    x = filtered(1.0, -0.6)(np.random.default_rng(5), 200)
    first = memory_of(x)
    for factor in (-1.0, 1e-80, 1e80):
        assert memory_of(factor * x).tau == pytest.approx(first.tau, rel=1e-9)
    assert special.ndtri(0.5) == 0.0
