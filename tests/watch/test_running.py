"""The correction that runs on, against its definition row by row, closed forms and known worlds."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from howsure.core.convert import plain, restored
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.topics.scores import interval_score
from howsure.watch.running import (
    DAYS_REMEMBERED,
    MAX_FACTOR,
    RATE_OF_LOSS,
    ROWS_OF_DAY,
    ROWS_REMEMBERED,
    SHARE_OF_NONE,
    SHARE_RENEWED,
    Running,
    ShadowGain,
    shadow,
)

Z = float(special.ndtri(0.95))
REFERENCE = np.abs(child(0, "running", "reference").normal(size=2_000)) / Z


def year(spread: float, rows: int = 20, days: int = 200, run: int = 0) -> tuple:
    """Ratios of errors that are so many times as large as promised, and their days."""
    rng = child(0, "running", "year", rows, run)
    at = np.repeat(np.arange(days), rows)
    return spread * np.abs(rng.normal(size=days * rows)) / Z, at


def by_definition(ratios: np.ndarray, days: np.ndarray, late: int) -> np.ndarray:
    """Factors by plain loops: roots by their jumps, mixes and lateness by a table of all days."""
    scale = np.mean([_pinball(r, 1.0) for r in REFERENCE])
    slope = 2.0 * Z * math.exp(-Z * Z / 2.0) / math.sqrt(2.0 * math.pi)
    shares, tracks = [SHARE_OF_NONE, *[(1.0 - SHARE_OF_NONE) / 4.0] * 4], [1.0] * 4
    table: dict[int, tuple[float, list[float]]] = {-10_000: (1.0, tracks)}
    factors = np.empty(len(ratios))
    for day in sorted(set(days.tolist())):
        rows = ratios[days == day].tolist()
        mixed, stood = table[max(d for d in table if d < day - late)]
        factors[days == day] = mixed
        losses = [np.mean([_pinball(r, q) for r in rows]) for q in (1.0, *stood)]
        odds = [
            s * math.exp(-RATE_OF_LOSS * min(len(rows), ROWS_OF_DAY) * loss / scale)
            for s, loss in zip(shares, losses, strict=True)
        ]
        prior = [SHARE_OF_NONE, *[(1.0 - SHARE_OF_NONE) / 4.0] * 4]
        shares = [
            (1.0 - SHARE_RENEWED) * s / sum(odds) + SHARE_RENEWED * p
            for s, p in zip(odds, prior, strict=True)
        ]
        tracks = [
            _track(q, rows, 1.0 / (slope * max(ROWS_REMEMBERED[k], DAYS_REMEMBERED[k] * len(rows))))
            for k, q in enumerate(tracks)
        ]
        mixed = sum(s * q for s, q in zip(shares, [1.0, *tracks], strict=True))
        table[day] = (mixed, tracks)
    return factors


def _pinball(ratio: float, quantile: float) -> float:
    return 0.9 * (ratio - quantile) if ratio > quantile else 0.1 * (quantile - ratio)


def _track(start: float, rows: list[float], step: float) -> float:
    """Of all places where the root may be, the one that is one."""

    def off(x: float) -> float:
        beyond = sum(r > math.exp(x) for r in rows)
        return x - math.log(start) - step * (beyond - 0.1 * len(rows))

    ends = [math.log(start) + step * (k - 0.1 * len(rows)) for k in range(len(rows) + 1)]
    roots = [x for x in ends if abs(off(x)) < 1e-12]
    # between the steps the root is where the count jumps
    roots += [math.log(r) for r in rows if off(math.log(r)) > 0.0 > off(math.log(r) - 1e-12)]
    return math.exp(min(max(roots[0], -math.log(MAX_FACTOR)), math.log(MAX_FACTOR)))


@pytest.mark.parametrize("late", [0, 3])
def test_factors_are_those_of_the_definition(late: int) -> None:
    ratios, days = year(1.6, rows=7, days=40)
    days = np.where(days > 20, days + 5, days) - 10  # and days without rows
    factors = Running.begin(REFERENCE, 0.9, late=late).after(ratios, days)[1]
    assert factors == pytest.approx(by_definition(ratios, days, late), abs=1e-9)
    assert np.ptp(factors) > 0.1


@pytest.mark.parametrize("late", [0, 4])
def test_rows_in_parts_are_as_rows_at_once(late: int) -> None:
    ratios, days = year(1.5, days=60)
    begun = Running.begin(REFERENCE, 0.9, late=late)
    whole, factors = begun.after(ratios, days)
    part, seen = begun, []
    for chosen in (days < 7, (days >= 7) & (days < 31), days >= 31):
        part = restored(json.loads(json.dumps(plain(part))), Running, "running")
        part, some = part.after(ratios[chosen], days[chosen])
        seen.append(some)
    assert part == whole
    assert np.array_equal(np.concatenate(seen), factors)
    assert len(whole.stood) == (late + 1 if late else 0)


def test_a_weight_of_two_is_a_row_twice_and_order_within_a_day_is_nothing() -> None:
    ratios, days = year(1.4, days=30)
    weights = child(0, "running", "weights").integers(0, 4, len(ratios))
    begun = Running.begin(REFERENCE, 0.9)
    weighted = begun.after(ratios, days, weights)[0]
    copies = np.repeat(np.arange(len(ratios)), weights)
    other = begun.after(ratios[copies], days[copies])[0]
    mixed = np.lexsort((ratios, days))
    assert weighted.factor == pytest.approx(other.factor, rel=1e-12)
    assert begun.after(ratios[mixed], days)[0].factor == pytest.approx(
        begun.after(ratios, days)[0].factor, rel=1e-12
    )


def test_labels_that_come_late_are_not_known() -> None:
    ratios, days = year(2.0, days=50)
    early = Running.begin(REFERENCE, 0.9).after(ratios, days)[1].reshape(50, -1)
    late = Running.begin(REFERENCE, 0.9, late=10).after(ratios, days)[1].reshape(50, -1)
    assert (early == early[:, :1]).all()
    assert (early[0] == 1.0).all()
    assert early[1, 0] > 1.0
    assert (late[:11] == 1.0).all()
    assert late[11, 0] > 1.0
    # what comes after a day changes no factor up to it
    changed = np.where(days >= 20, 5.0, ratios)
    again = Running.begin(REFERENCE, 0.9, late=10).after(changed, days)[1].reshape(50, -1)
    assert np.array_equal(again[:31], late[:31])
    assert again[31, 0] != late[31, 0]


def test_it_never_runs_away() -> None:
    begun = Running.begin(REFERENCE, 0.9, late=7)
    days = np.repeat(np.arange(300), 5)
    for ratios, end in ((np.full(1_500, 1e9), MAX_FACTOR), (np.zeros(1_500), 1.0 / MAX_FACTOR)):
        after, factors = begun.after(ratios, days)
        assert factors.max() <= MAX_FACTOR
        assert factors.min() >= 1.0 / MAX_FACTOR
        assert after.factor == pytest.approx(end, rel=0.05)


def test_a_day_of_many_rows_never_passes_its_quantile() -> None:
    ratios = 1.5 * np.abs(child(0, "running", "many").normal(size=20_000)) / Z
    running = Running.begin(REFERENCE, 0.9)
    for day in range(200):
        running, _ = running.after(ratios, np.full(len(ratios), day))
    assert running.factor == pytest.approx(np.quantile(ratios, 0.9), rel=0.01)
    assert running.factor <= np.quantile(ratios, 0.9)
    # the distance of the fastest track halves from day to day
    once = Running.begin(REFERENCE, 0.9).after(ratios, np.zeros(len(ratios)))[0]
    assert once.logs[0] == pytest.approx(0.5 * math.log(1.5), rel=0.1)


def test_a_right_model_loses_next_to_nothing_and_a_wrong_one_gains() -> None:
    for spread, low, high in ((1.0, -0.003, 0.001), (1.3, 0.05, 0.09), (2.0, 0.3, 0.36)):
        ratios, days = year(spread, rows=50)
        factors = Running.begin(REFERENCE, 0.9).after(ratios, days)[1]
        gain = shadow(ratios, np.ones(len(ratios)), factors, 0.9, days).gain()
        assert low < gain.value < high
        assert gain.offered == (spread > 1.0)
        assert gain.low <= gain.value <= gain.high


def test_labels_later_than_the_series_changes_cost_next_to_nothing_and_nothing_is_offered() -> None:
    """A season of 60 days: of 30 days before, one learns to widen where narrower is right."""
    ratios, days = year(1.0, rows=50, days=400)
    ratios = ratios * np.exp(0.3 * np.sin(2.0 * np.pi * days / 60.0))
    gains = []
    for late in (0, 30):
        factors = Running.begin(REFERENCE, 0.9, late=late).after(ratios, days)[1]
        gains.append(shadow(ratios, np.ones(len(ratios)), factors, 0.9, days).gain())
    assert gains[0].value > 0.03
    assert gains[0].offered
    assert abs(gains[1].value) < 0.01
    assert not gains[1].offered


def test_a_shadow_scores_as_the_interval_score() -> None:
    rng = child(0, "running", "shadow")
    y, middle, half = rng.normal(size=300), rng.normal(size=300) / 3, rng.uniform(0.3, 2, 300)
    days, weights = np.repeat(np.arange(30), 10), rng.integers(1, 4, 300)
    factors = np.repeat(rng.uniform(0.6, 1.7, 30), 10)
    ratios = np.abs(y - middle) / half
    told = shadow(ratios, 2 * half, factors, 0.9, days, weights)
    for column, q in ((2, np.ones(300)), (3, factors)):
        scores = interval_score(y, middle - q * half, middle + q * half, coverage=0.9)
        expected = np.bincount(days, weights * scores)
        assert told.sums[:, column] == pytest.approx(expected, rel=1e-9)
    assert told.gain().covered == pytest.approx(np.average(ratios <= factors, weights=weights))
    # no day can lose more than its risk
    assert (told.sums[:, 3] - told.sums[:, 2] <= told.risks + 1e-9).all()
    worst = shadow(np.where(factors > 1, 0.5, 9.0), 2 * half, factors, 0.9, days, weights)
    assert worst.sums[:, 3] - worst.sums[:, 2] == pytest.approx(worst.risks, rel=1e-9)


def test_evidence_is_a_fair_bet() -> None:
    """By the definition of a martingale: both outcomes of a day, with their chances."""
    for factor in (1.5, 0.7):
        days = [shadow([ratio], [1.0], [factor], 0.9) for ratio in (0.5, 3.0)]
        near, far = (float(day.sums[0, 2] - day.sums[0, 3]) for day in days)
        assert near * far < 0.0
        chances = np.array([far, -near]) / (far - near)  # with which it gains nothing on average
        capital = np.exp([day.log_capital()[0] for day in days])
        assert chances @ capital == pytest.approx(1.0, rel=1e-9)
        assert np.ptp(capital) > 0.01


def test_offers_need_days_an_interval_and_evidence() -> None:
    told = ShadowGain(
        days=30, value=0.061, low=0.02, high=0.1, covered=0.897, covered_unchanged=0.8,
        log_capital=3.0,
    )  # fmt: skip
    assert told.offered
    assert told.sentence("2 March", 1.21) == (
        "Since 2 March, a running correction (factor now 1.21) would have lowered the interval "
        "score by 6.1 % (2 to 10) and covered 89.7 %."
    )
    assert not replace(told, days=29).offered
    assert not replace(told, log_capital=2.9).offered
    assert not replace(told, low=-0.001).offered
    assert not replace(told, low=math.nan, high=math.nan).offered
    worse = replace(told, value=-0.01, low=-0.03, high=0.012).sentence("day 3", 0.9)
    assert "raised the interval score by 1 % (−1.2 to 3)" in worse
    unknown = replace(told, low=math.nan, high=math.nan).sentence("day 3", 0.9)
    assert "lowered the interval score by 6.1 % and covered" in unknown


def test_what_cannot_be_followed_is_refused() -> None:
    begun = Running.begin(REFERENCE, 0.9)
    with pytest.raises(InputError, match="ratios of the reference must not all be 1"):
        Running.begin([1.0, 1.0], 0.9)
    with pytest.raises(InputError, match=r"ratios must not be negative, got -0\.5"):
        begun.after([-0.5], [0])
    with pytest.raises(InputError, match="ratios"):
        begun.after([math.nan], [0])
    with pytest.raises(InputError, match="days must be ascending, one per row"):
        begun.after([1.0, 1.0], [3, 2])
    after = begun.after([1.0], [3])[0]
    with pytest.raises(InputError, match="days must come after day 3, got day 3"):
        after.after([1.0], [3])
    with pytest.raises(InputError, match="late"):
        Running.begin(REFERENCE, 0.9, late=-1)
    with pytest.raises(InputError, match="factors must be above 0"):
        shadow([1.0], [1.0], [0.0], 0.9)
    with pytest.raises(InputError, match="widths must not be negative"):
        shadow([1.0], [-1.0], [1.0], 0.9)
    with pytest.raises(UnanswerableError, match="no row has a width above 0"):
        shadow([1.0], [0.0], [1.0], 0.9).gain()
    with pytest.raises(InputError, match="at least one row"):
        begun.after([], [])


@pytest.mark.rate
def test_nothing_is_offered_where_nothing_is_wrong() -> None:
    """A year of daily looks; the bound is 5 %, of 40 runs at most 5 with probability .99."""
    offers = 0
    for run in range(40):
        ratios, days = year(1.0, rows=50, days=365, run=run)
        factors = Running.begin(REFERENCE, 0.9).after(ratios, days)[1]
        told = shadow(ratios, np.ones(len(ratios)), factors, 0.9, days)
        offers += bool((told.log_capital() >= math.log(20.0)).any())
    assert offers <= 5
