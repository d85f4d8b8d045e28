"""Groups are judged by what their rows claim, and compared with all rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import signal, special, stats

from howsure.core.records import Record
from howsure.core.times import Chronology
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles
from howsure.stats.binomial import shift_shares
from howsure.stats.estimate import spells_of, spread_of
from howsure.topics.groups import MIN_UNITS, assess_groups, compare_groups, groupings


def poisson(seed: int, n: int) -> EvalSet:
    """A perfect law of counts, grouped by the size of its mean."""
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.uniform(-1, 3, n))
    size = np.digitize(rate, np.quantile(rate, [0.25, 0.5, 0.75]))
    law = Distribution.from_scipy(stats.poisson(rate))
    return EvalSet.checked(rng.poisson(rate).astype(float), law, groups={"size": size})


def normal(seed: int, n: int, *, factor: float = 1.0, wrong: float = 1.0) -> EvalSet:
    """Two groupings; stated sds are off by a factor, and wrong in the first of five groups."""
    rng = np.random.default_rng(seed)
    g, h, sd = rng.choice(5, n), rng.choice(3, n), np.exp(rng.uniform(-0.5, 0.5, n))
    y = sd * rng.normal(size=n) * np.where(g == 0, wrong, 1.0)
    return EvalSet.checked(
        y, Distribution.normal(np.zeros(n), factor * sd), groups={"g": g, "h": h}
    )


def clustered(seed: int, n: int) -> EvalSet:
    """A perfect model whose errors agree within clusters of six; groups of whole clusters too."""
    rng = np.random.default_rng(seed)
    cluster = np.arange(n) // 6
    most = cluster.max() + 1
    z = math.sqrt(0.5) * (rng.normal(size=most)[cluster] + rng.normal(size=n))
    groups = {"g": rng.choice(4, most)[cluster], "h": rng.choice(3, n)}
    law = Distribution.normal(np.zeros(n), np.ones(n))
    return EvalSet.checked(z, law, groups=groups, cluster=cluster)


def weighted(seed: int, n: int, factor: float = 1.0) -> EvalSet:
    """A perfect model with importance weights."""
    rng = np.random.default_rng(seed)
    law = Distribution.normal(np.zeros(n), np.full(n, factor))
    groups = {"g": rng.choice(5, n), "h": rng.choice(3, n)}
    mass = rng.exponential(size=n)
    y = rng.normal(size=n)
    return EvalSet.checked(y, law, groups=groups, weights=mass, weights_kind="importance")


def answers(held: EvalSet) -> tuple[Record, Record]:
    found = evaluate(held, coverages=[0.9], metrics=["empirical_coverage"])
    records = {record.metric: record for record in assess_groups(found).records}
    return records["groups_differ"], records["worst_group_shortfall"]


def share_of(make: Callable[[int], EvalSet], tables: int) -> tuple[float, float]:
    """How often groups are said to differ, and one is said to fall short."""
    found = [answers(make(seed)) for seed in range(tables)]
    differ = np.mean([first.p <= 0.05 for first, _ in found])
    return float(differ), float(np.mean([second.lower > 0 for _, second in found]))


def allowed(tables: int, level: float = 0.05) -> float:
    """A rate of this level with three of its standard errors."""
    return level + 3 * math.sqrt(level * (1 - level) / tables)


# What rows claim


def test_a_law_of_counts_claims_the_mass_of_its_own_interval() -> None:
    rate = np.array([0.05, 0.7, 3.0, 40.0])
    held = EvalSet.checked(np.zeros(4), Distribution.from_scipy(stats.poisson(rate)))
    low, high = stats.poisson(rate).ppf([[0.05], [0.95]])
    by_hand = [
        sum(stats.poisson(r).pmf(k) for k in range(int(a), int(b) + 1))
        for r, a, b in zip(rate, low, high, strict=True)
    ]
    found = evaluate(held, coverages=[0.9])
    np.testing.assert_allclose(found.view.get("claimed", 0.9), by_hand, rtol=1e-12)
    record = next(r for r in found.records if r.metric == "empirical_coverage")
    assert record.null == pytest.approx(np.mean(by_hand), rel=1e-12)


@pytest.mark.parametrize(
    "prediction",
    [
        Distribution.normal(np.zeros(3), np.ones(3)),
        Intervals(-np.ones(3), np.ones(3), coverage=0.9),
        Quantiles([0.05, 0.95], np.tile([-1.0, 1.0], (3, 1))),
    ],
)
def test_other_predictions_claim_the_nominal_coverage(prediction: Any) -> None:
    found = evaluate(EvalSet.checked(np.zeros(3), prediction), coverages=[0.9])
    assert found.view.get("claimed", 0.9) == pytest.approx(np.full(3, 0.9), rel=1e-15)
    record = next(r for r in found.records if r.metric == "empirical_coverage")
    assert math.isnan(record.null)  # the target says it


def test_shares_are_shifted_by_one_step_on_the_logit_scale() -> None:
    rng = np.random.default_rng(0)
    shares, weights = rng.uniform(0.3, 1.0, 200), rng.integers(0, 4, 200)
    shares[:5] = 1.0
    moved = shift_shares(shares, 0.62, weights)
    assert np.average(moved, weights=weights) == pytest.approx(0.62, abs=1e-10)
    steps = special.logit(moved[5:]) - special.logit(shares[5:])
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)
    repeated = shift_shares(np.repeat(shares, weights), 0.62)
    np.testing.assert_allclose(repeated, np.repeat(moved, weights), rtol=1e-9)
    assert shift_shares([0.9, 0.9], 0.5).tolist() == [0.5, 0.5]
    assert shift_shares([0.7, 0.9], 1.0).tolist() == [1.0, 1.0]
    np.testing.assert_allclose(shift_shares(shares, float(shares.mean())).mean(), shares.mean())


# Groups of independent rows


@pytest.mark.rate
def test_groups_of_a_perfect_law_of_counts_differ_by_chance_alone() -> None:
    """Told by the nominal coverage, they differed in 53 % of the tables."""
    differ, short = share_of(lambda seed: poisson(seed, 1_000), 300)
    assert differ <= allowed(300)
    assert short <= allowed(300)
    assert differ > 0  # or the test could not be failed


@pytest.mark.slow
def test_a_fault_that_is_the_same_everywhere_is_proven_no_larger_than_it_is() -> None:
    """Stated sds of nine tenths: 3.9 points short everywhere, at n = 300."""
    true = 0.9 - (2 * stats.norm.cdf(0.9 * stats.norm.ppf(0.95)) - 1)
    assert true == pytest.approx(0.039, abs=5e-4)
    found = [answers(normal(seed, 300, factor=0.9)) for seed in range(300)]
    assert np.mean([short.lower <= true for _, short in found]) >= 0.95
    assert np.mean([differ.p <= 0.05 for differ, _ in found]) <= allowed(300)


def test_one_wrong_group_of_five_is_found_and_named() -> None:
    found = [answers(normal(seed, 1_000, wrong=2.0)) for seed in range(30)]
    assert np.mean([differ.p <= 0.005 for differ, _ in found]) >= 0.9
    assert all(str(differ.options["where"]).startswith("g=0") for differ, _ in found)
    assert np.mean([short.lower > 0.039 and short.p < 0.05 for _, short in found]) >= 0.9
    assert np.mean([short.group == "g=0" for _, short in found]) >= 0.9


def test_the_differing_group_is_told_with_its_simultaneous_interval() -> None:
    held = normal(1, 1_000, wrong=2.0)
    differ, short = answers(held)
    inside = held.groups["g"].codes == 0
    view = evaluate(held, coverages=[0.9]).view
    hits = view.get("covered", 0.9)
    number = 5 + 3 + 15  # the groups of both columns and of their pairs
    exact = stats.binomtest(int(hits[inside].sum()), int(inside.sum())).proportion_ci(
        1 - 0.05 / number, method="exact"
    )
    told = differ.options
    assert (told["where"], told["rows"]) == ("g=0", inside.sum())
    assert told["value"] == pytest.approx(hits[inside].mean())
    assert told["expected"] == pytest.approx(hits.mean())  # that of all rows
    assert (told["lower"], told["upper"]) == pytest.approx((exact.low, exact.high))
    assert short.group == "g=0"
    assert (short.lower, short.upper) == pytest.approx((0.9 - exact.high, 0.9 - exact.low))
    assert short.null_lower < short.null < short.null_upper < short.value


def test_the_worst_group_by_chance_is_that_of_perfect_models() -> None:
    """The null of the shortfall is its mean and range over perfect tables of the same groups."""
    held = normal(0, 300)
    shortfalls, rng = [], np.random.default_rng(5)
    for _ in range(150):
        y = held.predictions[0].sd() * rng.normal(size=300)  # type: ignore[attr-defined]
        groups = {name: column.values() for name, column in held.groups.items()}
        shortfalls.append(answers(EvalSet.checked(y, held.predictions, groups=groups))[1])
    values = np.array([record.value for record in shortfalls])
    null = shortfalls[0]
    error = values.std() * math.sqrt(1 / 150 + 1 / 199)
    assert values.mean() == pytest.approx(null.null, abs=4 * error)
    assert np.mean(values > null.null_upper) <= allowed(150, 0.025) + 0.02
    assert null.reason == "no group under-covers significantly"


def test_the_table_tells_what_each_group_claims() -> None:
    held = poisson(0, 400)
    found = evaluate(held, coverages=[0.9], metrics=["empirical_coverage"])
    table = assess_groups(found).table
    assert table is not None
    claimed, codes = found.view.get("claimed", 0.9), held.groups["size"].codes
    means = [claimed[codes == g].mean() for g in range(4)]
    np.testing.assert_allclose(table.columns["claimed"], means)
    hits = [found.view.get("covered", 0.9)[codes == g].sum() for g in range(4)]
    sizes = held.groups["size"].counts
    tails = [
        2 * min(stats.binom.cdf(k, n, p), stats.binom.sf(k - 1, n, p))
        for k, n, p in zip(hits, sizes, means, strict=True)
    ]
    np.testing.assert_allclose(table.columns["p_value"], np.minimum(tails, 1.0))


# Weights and clusters


@pytest.mark.slow
@pytest.mark.parametrize("make", [clustered, weighted])
def test_weights_and_clusters_hold_their_level(make: Callable[[int, int], EvalSet]) -> None:
    differ, short = share_of(lambda seed: make(seed, 300), 200)
    assert differ <= allowed(200)
    assert short <= allowed(200)


def test_weights_and_clusters_find_a_wrong_group() -> None:
    rng = np.random.default_rng(0)
    cluster = np.arange(1_200) // 6
    group = rng.choice(4, 200)[cluster]
    y = rng.normal(size=1_200) * np.where(group == 2, 2.5, 1.0)
    law = Distribution.normal(np.zeros(1_200), np.ones(1_200))
    for known in ({"cluster": cluster}, {"weights": rng.exponential(size=1_200)}):
        kind = {"weights_kind": "importance"} if "weights" in known else {}
        differ, short = answers(EvalSet.checked(y, law, groups={"g": group}, **known, **kind))
        assert differ.p < 1e-3
        assert differ.options["where"] == short.group == "g=2"
        assert short.lower > 0.1
        assert short.p < 1e-3


def test_groups_of_few_clusters_are_left_out_and_this_is_said() -> None:
    rng = np.random.default_rng(0)
    cluster = np.arange(120) // 3
    group = np.where(cluster < 3, "few", np.where(cluster % 2, "odd", "even"))
    y = np.where(group == "few", 9.0, rng.normal(size=120))
    law = Distribution.normal(np.zeros(120), np.ones(120))
    differ, short = answers(EvalSet.checked(y, law, groups={"g": group}, cluster=cluster))
    assert differ.reason == "groups of fewer than 5 clusters are left out: 1"
    assert short.group != "g=few"


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1.0, 0.7])
def test_memory_is_sought_of_the_clearest_groups_alone(factor: float) -> None:
    """And yet the p-value is the least of all groups, each by its definition."""
    for seed in range(2):
        rng, n = np.random.default_rng(seed), 600
        z = signal.lfilter([0.8], [1.0, -0.6], rng.normal(size=n + 100))[100:]
        groups = {"day": np.arange(n) % 7, "part": np.arange(n) // 30 % 4}
        sd = np.where(groups["part"] == 1, factor, 1.0)
        held = EvalSet.checked(z, Distribution.normal(np.zeros(n), sd), groups=groups)
        times = Chronology(np.arange(n), size=z**2)
        hidden = times.hiding(z**2)
        hits = np.abs(z) <= 1.6448536269514722 * sd
        p, off, noise = [], hits - hits.mean(), float(hits.var())
        for grouping in groupings(held)[0]:
            codes, size = grouping.codes, len(grouping.labels)
            visits = spells_of(off, np.ones(n), np.arange(n), codes, size, noise)
            for group in range(size):
                inside = codes == group
                part = inside - inside.mean()
                added, sizes = (
                    part * (x - np.where(inside, x[inside].mean(), x[~inside].mean()))
                    for x in (hits, z**2)
                )
                spread = spread_of(added, None, times.hiding(sizes))
                error = max(n * float(spread.error[0]), math.sqrt(noise * (part @ part)))
                told = 2 * stats.t.sf(abs(off[inside].sum()) / error, spread.degrees[0])
                own = spread_of(hits[inside] - hits[inside].mean(), None, hidden.take(inside))
                if own.units[0] >= MIN_UNITS:
                    p.append(np.fmax(told, visits.p[group]))
        found = compare_groups(evaluate(replace(held, chronology=times)))
        record = next(r for r in found.records if r.metric == "groups_differ")
        assert record.p == pytest.approx(min(1.0, np.isfinite(p).sum() * np.nanmin(p)), rel=1e-9)


# Laws


@pytest.mark.parametrize("make", [poisson, lambda seed, n: normal(seed, n, wrong=1.6)])
def test_weights_repeat_rows_and_no_order_matters(make: Callable[[int, int], EvalSet]) -> None:
    held = make(3, 240)
    counts = np.random.default_rng(0).integers(0, 4, 240)
    groups = {name: column.values() for name, column in held.groups.items()}
    once = EvalSet.checked(held.y, held.predictions, groups=groups, weights=counts)
    order = np.random.default_rng(1).permutation(int(counts.sum()))
    twice = held.take(np.repeat(np.arange(240), counts)).take(order)
    for first, second in zip(answers(once), answers(twice), strict=True):
        for name in ("value", "lower", "upper", "p", "null", "null_upper", "n"):
            expected = getattr(first, name)
            assert getattr(second, name) == pytest.approx(expected, rel=1e-9, nan_ok=True), name
        assert first.options.get("where") == second.options.get("where")
        assert first.group == second.group


@pytest.mark.slow
def test_what_is_left_out_of_many_groups_is_told() -> None:
    rng = np.random.default_rng(0)
    held = EvalSet.checked(
        rng.normal(size=404),
        Distribution.normal(np.zeros(404), np.ones(404)),
        groups={"few": np.arange(404) % 2, "many": np.arange(404) % 101},
    )
    found = assess_groups(evaluate(held))
    told = {r.group.split("=")[0] for r in found.records if r.metric == "rmse" and r.group}
    assert told == {"few"}
    assert found.notes == (
        "for groups by many and few × many only means of rows are reported: above 50,000 rows or "
        "100 groups, howsure.Options(also={'group_statistics'}) adds all measures",
    )
    asked = assess_groups(evaluate(held), statistics=True)
    assert asked.notes == ()
    assert {r.group.split("=")[0] for r in asked.records if r.metric == "rmse" and r.group} > told
