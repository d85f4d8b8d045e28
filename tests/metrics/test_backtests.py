"""Kupiec's and Christoffersen's tests, against enumeration and published numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import xlogy

import howsure
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.metrics import christoffersen_coverage_test, christoffersen_test, kupiec_test
from howsure.predictions import EvalSet

TESTS = tuple(
    f"{test}_{end}"
    for test in ("kupiec", "christoffersen", "christoffersen_coverage")
    for end in ("below", "above")
)
KUPIEC = {  # numbers of failures between which VaR is not rejected: Kupiec 1995, Jorion's table 6-3
    0.01: {255: (None, 7), 510: (1, 11), 1000: (4, 17)},
    0.025: {255: (2, 12), 510: (6, 21), 1000: (15, 36)},
    0.05: {255: (6, 21), 510: (16, 36), 1000: (37, 65)},
    0.075: {255: (11, 28), 510: (27, 51), 1000: (59, 92)},
    0.1: {255: (16, 36), 510: (38, 65), 1000: (81, 120)},
}


def misses(count: int, n: int) -> np.ndarray:
    return np.arange(n) < count


def share_ratio(k: int, n: int, p: float) -> float:
    """Kupiec's ratio from the definition."""
    own, stated = stats.binom.logpmf(k, n, k / n), stats.binom.logpmf(k, n, p)
    return float(2 * (own - stated))


def pair_ratio(seen: np.ndarray) -> float:
    """Christoffersen's ratio from counted transitions."""
    before, after = seen[:-1], seen[1:]
    n = [[float(((before == i) & (after == j)).sum()) for j in (0, 1)] for i in (0, 1)]

    def half(a: float, b: float) -> float:
        return float(xlogy(a, a / max(a + b, 1)) + xlogy(b, b / max(a + b, 1)))

    return 2 * (half(*n[0]) + half(*n[1]) - half(n[0][0] + n[1][0], n[0][1] + n[1][1]))


@pytest.mark.parametrize("p", KUPIEC)
def test_the_ratio_leaves_what_kupiec_left(p: float) -> None:
    for n, (low, high) in KUPIEC[p].items():
        bound = 3.8415

        def ratio(count: int, n: int = n) -> float:
            return float(kupiec_test(misses(count, n), level=p).details["likelihood_ratio"])

        assert ratio(high - 1) <= bound < ratio(high)
        if low is not None:
            assert ratio(low) > bound >= ratio(low + 1)


def test_a_published_backtest() -> None:
    """J.P. Morgan's 20 failures in 252 days of 1998, six after a failure (Jorion, chapter 6)."""
    assert kupiec_test(misses(20, 252), level=0.05).details["likelihood_ratio"] == pytest.approx(
        3.91, abs=0.005
    )
    # 14 runs; 253 days make 252 transitions
    runs = [[1] * 7, *[[1]] * 13]
    calm = [[0] * 17] * 13 + [[0] * 12]
    days = np.concatenate([part for pair in zip(runs, calm, strict=True) for part in pair])
    days = np.append(np.zeros(1), days[:252])
    before, after = days[:-1], days[1:]
    assert (int((before * after).sum()), int(after.sum()), len(after)) == (6, 20, 252)
    found = christoffersen_test(days)
    assert found.details["likelihood_ratio"] == pytest.approx(9.53, abs=0.005)
    assert found.details["pairs"] == 6


@pytest.mark.parametrize("p", [0.01, 0.05, 0.3])
def test_kupiec_p_is_the_probability_of_ratios_as_large(p: float) -> None:
    n = 120
    every = np.array([share_ratio(k, n, p) for k in range(n + 1)])
    chance = stats.binom.pmf(np.arange(n + 1), n, p)
    for k in (0, 1, 2, 5, 11, 40, 119, 120):
        found = kupiec_test(misses(k, n), level=p)
        assert found.details["likelihood_ratio"] == pytest.approx(every[k], abs=1e-9)
        exact = chance[every >= every[k] * (1 - 1e-9) - 1e-12].sum()
        assert found.value == found.p == pytest.approx(exact, rel=1e-9, abs=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", ["001110000000", "1010100001", "1110000", "0001", "01", "110111011", "0101010101"]
)
def test_p_values_are_those_of_all_sequences(row: str) -> None:
    seen = np.array([int(each) for each in row])
    n, k = len(seen), int(seen.sum())
    ratio = pair_ratio(seen)
    own = christoffersen_test(seen)
    assert own.details["likelihood_ratio"] == pytest.approx(ratio, abs=1e-9)
    as_many = []
    for places in itertools.combinations(range(n), k):
        other = np.zeros(n, dtype=int)
        other[list(places)] = 1
        as_many.append(pair_ratio(other))
    assert own.p == pytest.approx(np.mean(np.array(as_many) >= ratio - 1e-9), rel=1e-9)
    for p in (0.1, 0.4):
        joint, total = ratio + share_ratio(k, n, p), 0.0
        for bits in itertools.product((0, 1), repeat=n):
            other = np.array(bits)
            count = int(other.sum())
            if pair_ratio(other) + share_ratio(count, n, p) >= joint - 1e-9:
                total += p**count * (1 - p) ** (n - count)
        both = christoffersen_coverage_test(seen, level=p)
        assert both.details["likelihood_ratio"] == pytest.approx(joint, abs=1e-9)
        assert both.p == pytest.approx(total, rel=1e-8)


def test_no_ratio_is_smaller_than_that_of_independent_pairs() -> None:
    """Of three 00, two 11, three 01 and two 10: LR is 0 but for rounding."""
    found = christoffersen_test([0, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1])
    assert found.details["likelihood_ratio"] == pytest.approx(0.0, abs=1e-12)
    assert found.p == pytest.approx(1.0, rel=1e-9)


def test_misses_and_others_may_change_places() -> None:
    seen = child(5, "places").random(20_000) < 0.002
    few = christoffersen_coverage_test(seen, level=0.002)
    many = christoffersen_coverage_test(~seen, level=0.998)
    assert many.p == pytest.approx(few.p, rel=1e-8)
    assert christoffersen_test(~seen).p == pytest.approx(christoffersen_test(seen).p, rel=1e-8)


def test_many_misses_have_the_chi_square_law() -> None:
    seen = child(0, "many").random(20_000) < 0.05
    known = {1: kupiec_test(seen, level=0.05), 2: christoffersen_coverage_test(seen, level=0.05)}
    for freedom, found in known.items():
        law = stats.chi2.sf(found.details["likelihood_ratio"], freedom)
        assert found.p == pytest.approx(law, abs=0.03)
    found = christoffersen_test(seen)
    law = stats.chi2.sf(found.details["likelihood_ratio"], 1)
    assert found.p == pytest.approx(law, abs=0.06)
    # where the enumeration ends, both laws tell much the same
    seen = child(2, "edge").random(1_200) < 0.05
    enumerated = christoffersen_coverage_test(seen, level=0.05).p
    law = stats.chi2.sf(
        christoffersen_coverage_test(seen, level=0.05).details["likelihood_ratio"], 2
    )
    assert enumerated == pytest.approx(law, abs=0.06)


def rejected(tables: int, n: int, p: float, *names: object) -> dict[str, float]:
    """How often right sequences have p < .05: exact, and by the law of chi-square."""
    told = dict.fromkeys(("kupiec", "pairs", "both", "kupiec χ²", "pairs χ²", "both χ²"), 0.0)
    drawn: Counter[tuple[int, ...]] = Counter()
    example = {}
    for table in range(tables):
        seen = child(table, "size", n, *names).random(n) < p
        # numbers of pairs and how often y was missed, on which all three tests hang alone
        pairs = np.bincount(2 * seen[:-1] + seen[1:], minlength=4)
        kind = (*pairs.tolist(), int(seen.sum()))
        drawn[kind] += 1
        example[kind] = seen
    for kind, count in drawn.items():
        seen = example[kind]
        found = [kupiec_test(seen, level=p), None, christoffersen_coverage_test(seen, level=p)]
        if 0 < seen.sum() < n:
            found[1] = christoffersen_test(seen)
        for name, freedom, each in zip(("kupiec", "pairs", "both"), (1, 1, 2), found, strict=True):
            if each is not None:
                told[name] += (each.p < 0.05) * count / tables
                law = stats.chi2.sf(each.details["likelihood_ratio"], freedom)
                told[f"{name} χ²"] += (law < 0.05) * count / tables
    return told


@pytest.mark.slow
def test_right_sequences_are_rarely_rejected() -> None:
    told = rejected(300, 250, 0.05)
    assert max(told["kupiec"], told["pairs"], told["both"]) <= 0.05 + 3 * 0.0126


@pytest.mark.rate
@pytest.mark.parametrize(("n", "p"), [(250, 0.01), (250, 0.05), (1_000, 0.05), (4_000, 0.05)])
def test_sizes(n: int, p: float) -> None:
    told = rejected(3_000, n, p, "rates")
    for name in ("kupiec", "pairs"):
        assert told[name] <= 0.05 + 3 * 0.004, (n, p, told)
    # beyond 60 expected misses it is that of chi-square, which is off by a point
    assert told["both"] <= (0.05 if n * p <= 60 else 0.065) + 3 * 0.004, (n, p, told)
    if (n, p) == (250, 0.01):
        assert told["kupiec χ²"] > 0.08


def records(model: EvalSet) -> dict[tuple[str, float], howsure.core.records.Record]:
    found = evaluate(model, metrics=TESTS).records
    return {(record.metric, round(record.coverage, 6)): record for record in found}


def series(n: int) -> tuple[np.ndarray, howsure.Quantiles]:
    """Errors whose spread has a memory, beside quantiles that do not know of it."""
    rng = child(1, "series")
    calm = np.repeat(rng.random(n // 25) < 0.8, 25)
    y = rng.normal(size=n) * np.where(calm, 0.8, 1.9)
    levels = np.array([0.01, 0.05, 0.5, 0.95, 0.99])
    return y, howsure.Quantiles(levels, np.tile(1.15 * stats.norm.ppf(levels), (n, 1)))


def test_every_stated_level_is_tested_in_order_of_time() -> None:
    y, table = series(1_000)
    mixed = child(2, "order").permutation(1_000)
    told = records(EvalSet.checked(y[mixed], table.take(mixed), time=mixed))
    assert {coverage for _, coverage in told} == {0.9, 0.98}
    for (name, coverage), record in told.items():
        test, _, end = name.rpartition("_")
        level = (1 - coverage) / 2
        limit = 1.15 * stats.norm.ppf(level if end == "below" else 1 - level)
        seen = y < limit if end == "below" else y > limit
        exact = {
            "kupiec": lambda s=seen, p=level: kupiec_test(s, level=p),
            "christoffersen": lambda s=seen: christoffersen_test(s),
            "christoffersen_coverage": lambda s=seen, p=level: christoffersen_coverage_test(
                s, level=p
            ),
        }[test]()
        assert record.value == record.p == pytest.approx(exact.p, rel=1e-6)
        assert record.options["misses"] == seen.sum()
        assert record.units == "p-value"
    assert told["christoffersen_above", 0.9].p < 0.01
    assert told["christoffersen_coverage_above", 0.9].p < 0.01


def test_samples_and_counts_are_held_to_what_they_state() -> None:
    rng = child(3, "claims")
    x = rng.normal(size=500)
    y = x + rng.normal(size=500)
    ten = howsure.Samples(x[:, None] + rng.normal(size=(500, 19)))
    record = records(EvalSet.checked(y, ten))["kupiec_below", 0.9]
    assert record.options["expected"] == pytest.approx(500 / 20)
    mean = np.exp(rng.uniform(0, 2, 500))
    law = howsure.Distribution("poisson", {"mu": mean})
    record = records(EvalSet.checked(rng.poisson(mean).astype(float), law))["kupiec_above", 0.9]
    upper = law.interval(0.9)[1]
    assert record.options["expected"] == pytest.approx((1 - law.cdf(upper)).sum())


def test_weights_are_rows_that_repeat() -> None:
    seen, times = misses(7, 60), child(4, "weights").integers(1, 5, 60)
    weighted = kupiec_test(seen, level=0.05, weights=times)
    assert weighted.p == pytest.approx(kupiec_test(np.repeat(seen, times), level=0.05).p, rel=1e-9)


def test_what_has_no_order_says_why() -> None:
    y, table = series(100)
    name = ("christoffersen_below", 0.9)
    told = records(EvalSet.checked(y, table))
    assert told[name].reason == "the order of rows is unknown: the table has no time"
    assert told["kupiec_below", 0.9].p > 0
    told = records(EvalSet.checked(y, table, time=np.arange(100) // 2))
    assert told[name].reason == "several rows have the same time, so their order is unknown"
    told = records(EvalSet.checked(y, table, time=np.arange(100), weights=np.full(100, 2)))
    assert "no unique order" in told[name].reason
    told = records(EvalSet.checked(np.zeros(100), table, time=np.arange(100)))
    assert told[name].reason == "no row is a miss"
    unknown = howsure.Intervals(y - 1, y + 1, coverage=None)
    told = {each.metric: each for each in evaluate(EvalSet.checked(y, unknown)).records}
    assert told["kupiec_below"].reason == "the nominal coverage of the intervals is unknown"


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="level"):
        kupiec_test([True, False], level=1.0)
    with pytest.raises(InputError, match="missed must be true or false in every row"):
        christoffersen_test([0.5, 1.0])
    with pytest.raises(InputError, match="must contain misses and others, got 0 misses in 3 rows"):
        christoffersen_test([False] * 3)
    assert not math.isnan(christoffersen_coverage_test([False] * 30, level=0.05).p)
