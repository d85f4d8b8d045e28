"""Labels that are missing for a reason: strata, weights, bounds."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.convert import plain, restored
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import EvalSet, Intervals
from howsure.stats.evidence import Bounds, bennett, evidence
from howsure.watch.quantities import Watched, coverage_bounds
from howsure.watch.selected import (
    _DAYS_OF_RISE,
    _ROWS_BESIDE,
    _SDS_OF_RISE,
    _Z_OF_SLACK,
    MAX_WEIGHT,
    WINDOW,
    Strata,
    bounds_sentence,
    inputs,
    missing_by_stratum,
    missing_sentence,
    weighted,
)

C = 0.9
BOUNDS = coverage_bounds(C, 0.01)
NAMES = ("x0", "x1", "x2")


def halves(n: int, *names: str | int) -> tuple[FloatArray, FloatArray]:
    """Inputs, and hits less their level: 97 % where the first input is low, 83 % elsewhere."""
    rng = child(3, "halves", n, *names)
    x = rng.normal(size=(n, 3))
    covered = rng.random(n) < np.where(x[:, 0] <= 0.0, 0.97, 0.83)
    return x, np.asarray(covered - C, dtype=np.float64)


def of_halves(n: int = 4_000) -> Strata:
    x, hits = halves(n, "reference")
    return Strata.grown(x, NAMES, hits[None], np.array([BOUNDS.variance]))


def two(means: FloatArray, rows: float = 500.0, variance: float = 0.09) -> Strata:
    """Two strata as if a reference had said so of one quantity."""
    grown = Strata.grown(
        np.repeat([[0.0], [1.0]], 50, axis=0), ("x",), np.repeat([[0.0, 1.0]], 50, 1), np.ones(1)
    )
    return Strata(
        features=(),
        tree=grown.tree,
        rows=np.full(2, rows),
        means=means[None],
        variances=np.full((1, 2), variance),
    )


def test_a_tree_divides_where_the_mean_differs() -> None:
    strata = of_halves()
    x, hits = halves(4_000, "reference")
    leaf = strata.at(x)
    assert 4 <= len(strata.rows) <= 8
    assert strata.rows.min() >= 0.05 * 4_000
    assert strata.words[0].startswith("x0 ≤ ")
    root = strata.tree.threshold[0]
    assert abs(root) < 0.1
    for k in range(len(strata.rows)):
        inside = leaf == k
        assert strata.rows[k] == inside.sum()
        assert strata.means[0, k] == pytest.approx(hits[inside].mean())
        own = hits[inside].var()
        leaning = (strata.rows[k] * own + 30.0 * within(leaf, hits)) / (strata.rows[k] + 30.0)
        assert strata.variances[0, k] == pytest.approx(leaning)


def within(leaf: IntArray, hits: FloatArray) -> float:
    """The mean variance in strata."""
    return float(sum((leaf == k).mean() * hits[leaf == k].var() for k in np.unique(leaf)))


def test_a_reference_too_small_to_divide_is_one_stratum() -> None:
    x, hits = halves(50, "few")
    strata = Strata.grown(x, NAMES, hits[None], np.array([0.09]))
    assert strata.words == ("all rows",)
    assert strata.at(x).tolist() == [0] * 50


def test_rows_that_count_twice_are_as_rows_that_stand_twice() -> None:
    x, hits = halves(600, "twice")
    mass = np.where(np.arange(600) % 3, 1.0, 2.0)
    twice = np.repeat(np.arange(600), mass.astype(int))
    one = Strata.grown(x, NAMES, hits[None], np.array([0.09]), mass)
    other = Strata.grown(x[twice], NAMES, hits[None, twice], np.array([0.09]))
    assert one.words == other.words
    np.testing.assert_allclose(one.means, other.means)
    np.testing.assert_allclose(one.variances, other.variances)


def test_strata_of_predictions_and_features_come_back_from_json() -> None:
    rng = child(3, "features")
    n = 1_000
    point, width = rng.normal(size=n), np.exp(rng.normal(size=n))
    plan = np.where(rng.random(n) < 0.4, "cash", "credit")
    width[:5], width[5:9] = 0.0, math.inf
    held = EvalSet.checked(
        rng.normal(size=n),
        Intervals(point - width / 2.0, point + np.minimum(width, 1e9) / 2.0, coverage=C),
        point=point,
        features={"age": rng.normal(size=n), "plan": plan},
    )
    hits = np.where(plan == "cash", 0.1, -0.1) * rng.random(n)
    numbers = Watched(names=("coverage",), values=hits[None], bounds=(BOUNDS,))
    strata = Strata.learnt(held, C, numbers)
    again = restored(json.loads(json.dumps(plain(strata))), Strata, "strata")
    np.testing.assert_array_equal(again.of(held, C), strata.of(held, C))
    np.testing.assert_array_equal(again.means, strata.means)
    assert again.words == strata.words
    assert again.words[0].startswith("not plan=cash") or again.words[0].startswith("plan=cash")
    names, x = inputs(held, C)
    assert names == ("point", "log width")
    np.testing.assert_allclose(x[9:, 1], np.log(width[9:]), rtol=0.0, atol=5.1e-10)
    assert np.isfinite(x).all()
    with pytest.raises(InputError, match="for each leaf of the tree"):
        replace(strata, rows=strata.rows[1:])


def days_of_counts(*names: str | int) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Sums (2, 3, 4, 40), labelled and rows of three groups and four strata; days with gaps."""
    rng = child(3, "counts", *names)
    rows = rng.poisson(3.0, (3, 4, 40)).astype(float)
    rows[0] += rows[1:].sum(axis=0)
    share = np.repeat([[0.9], [0.5], [0.04], [0.0]], 40, axis=1)
    share[2, 30:] = 1.0
    labelled = rng.binomial(rows.astype(int), share).astype(float)
    sums = rng.normal(size=(2, 3, 4, 40)) * np.sqrt(labelled)
    return sums, labelled, rows, np.cumsum(rng.integers(1, 6, 40))


def four_strata() -> Strata:
    rng = child(3, "four")
    x = np.repeat(np.arange(4.0), 100)[:, None]
    return Strata.grown(x, ("x",), x.T * 0.1 + 0.3 * rng.normal(size=(2, 400)), np.ones(2))


def test_weighted_days_by_their_definition() -> None:
    sums, labelled, rows, days = days_of_counts()
    strata = four_strata()
    made = weighted(sums, labelled, rows, days, strata)
    assert len(strata.rows) == 4
    risen = 0
    for g, k in itertools.product(range(3), range(40)):
        near = (days > days[k] - WINDOW) & (days <= days[k])
        n, every = labelled[:, :, near].sum(axis=2), rows[:, :, near].sum(axis=2)
        of_all = n[0].sum() / every[0].sum()
        weights = np.zeros(4)
        for s in range(4):
            of_stratum = (n[0, s] + _ROWS_BESIDE * of_all) / (every[0, s] + _ROWS_BESIDE)
            share = (n[g, s] + _ROWS_BESIDE * of_stratum) / (every[g, s] + _ROWS_BESIDE)
            weights[s] = min(max(1.0 / share, 1.0), MAX_WEIGHT) if n[g, s] else 0.0
        unseen = np.maximum(every[g] - weights * n[g], 0.0) / max(every[g].sum(), 1.0)
        for span, s in itertools.product(_DAYS_OF_RISE, range(4)):
            late = (days > days[k] - span) & (days <= days[k])
            known, size = labelled[g, s, late].sum(), rows[g, s, late].sum()
            if weights[s] * known > size + _SDS_OF_RISE * math.sqrt(weights[s] * size):
                weights[s], risen = max(size / known, 1.0), risen + 1
        assert made.unseen[g, k] == pytest.approx(unseen.sum())
        for q in range(2):
            h, v = strata.means[q], strata.variances[q]
            more = sum(every[g, s] * max(weights[s] - 1.0, 0.0) * v[s] for s in range(4))
            worth = 1.0 + more / sum(every[g] * (v + h**2))
            total = sum(
                weights[s] * sums[q, g, s, k]
                + (rows[g, s, k] - weights[s] * labelled[g, s, k]) * h[s]
                for s in range(4)
            )
            if not n[g].sum():
                total = 0.0
            count = rows[g, :, k].sum() if n[g].sum() else 0.0
            assert made.worth[q, g, k] == pytest.approx(worth)
            assert made.sums[q, g, k] == pytest.approx(total / worth)
            assert made.counts[q, g, k] == pytest.approx(count / worth)
            error = math.sqrt(sum(unseen[s] ** 2 * v[s] / strata.rows[s] for s in range(4)))
            assert made.slack[q, g, k] == pytest.approx(_Z_OF_SLACK * error)
    assert risen > 0


def test_weights_follow_when_labels_come_again() -> None:
    """After a winter with a tenth of the labels, the first day with all counts as it is."""
    rows = np.full((1, 2, 41), 60.0)
    labelled = rows.copy()
    labelled[0, 1, :40] = 6.0
    sums = labelled[None] * np.array([0.07, -0.07])[:, None]
    made = weighted(sums, labelled, rows, np.arange(41), two(np.zeros(2)))
    in_winter, after = (made.sums * made.worth)[0, 0, 39:]
    assert in_winter == pytest.approx(0.0, abs=0.07 * 60 * 0.05)  # unweighted: .07 × 54
    assert after == pytest.approx(0.0, abs=1e-3)
    assert made.worth[0, 0, 39] > 4.0
    assert made.worth[0, 0, 40] == pytest.approx(1.0, abs=1e-3)


def test_without_missing_labels_nothing_changes() -> None:
    sums, _, rows, days = days_of_counts("all")
    made = weighted(sums, rows, rows, days, four_strata())
    np.testing.assert_allclose(made.sums, sums.sum(axis=2), atol=1e-12)
    np.testing.assert_allclose(made.counts, np.broadcast_to(rows.sum(axis=1), made.counts.shape))
    np.testing.assert_allclose(made.worth, 1.0)
    np.testing.assert_allclose([made.slack.max(), made.unseen.max()], 0.0, atol=1e-12)


def test_what_was_made_of_a_day_stays() -> None:
    sums, labelled, rows, days = days_of_counts("past")
    whole = weighted(sums, labelled, rows, days, four_strata())
    part = weighted(sums[..., :25], labelled[..., :25], rows[..., :25], days[:25], four_strata())
    for name in ("sums", "counts", "worth", "slack"):
        np.testing.assert_allclose(getattr(part, name), getattr(whole, name)[..., :25])


@pytest.mark.parametrize("means", [[0.07, -0.07], [0.0, 0.0]], ids=["as they are", "wrong"])
def test_labels_missing_by_x_bias_nothing_if_weights_or_means_are_right(means: list[float]) -> None:
    """Of 97 and 83 % covered, .9 and .3 are labelled: of these 93.5 % are covered."""
    rows, labelled = np.array([[[1e6], [1e6]]]), np.array([[[9e5], [3e5]]])
    sums = labelled[None] * np.array([0.07, -0.07])[:, None]
    assert sums.sum() / labelled.sum() == pytest.approx(0.035)
    made = weighted(sums, labelled, rows, np.zeros(1, int), two(np.array(means)))
    assert made.sums[0, 0, 0] / made.counts[0, 0, 0] == pytest.approx(0.0, abs=1e-6)
    # the variance of each stratum is .09: that of the sum is 1/.9 and 1/.3 times as large
    within = 0.09 * (1.0 / 0.9 + 1.0 / 0.3) / 2.0
    between = np.mean(np.square(means))
    assert made.worth[0, 0, 0] == pytest.approx((within + between) / (0.09 + between), rel=1e-4)


def test_the_reference_stands_for_rows_that_are_never_labelled() -> None:
    rows, labelled = np.full((1, 2, 3), 100.0), np.tile([[[80.0], [0.0]]], 3)
    sums = labelled[None] * 0.07
    made = weighted(sums, labelled, rows, np.arange(3), two(np.array([0.07, -0.07])))
    np.testing.assert_allclose(made.sums, 0.0, atol=1e-9)
    np.testing.assert_allclose(made.unseen, 0.5, atol=0.01)
    np.testing.assert_allclose(made.slack, 1.645 * 0.5 * math.sqrt(0.09 / 500.0), rtol=0.01)


def test_without_any_label_nothing_is_said() -> None:
    rows = np.full((1, 2, 3), 100.0)
    made = weighted(np.zeros((1, *rows.shape)), rows * 0.0, rows, np.arange(3), two(np.ones(2)))
    assert not made.sums.any()
    assert not made.counts.any()
    empty = weighted(
        np.zeros((1, 1, 2, 2)),
        np.zeros((1, 2, 2)),
        np.zeros((1, 2, 2)),
        np.arange(2),
        two(np.ones(2)),
    )
    assert np.isfinite(empty.worth).all()
    assert not empty.counts.any()


def test_the_worth_is_the_ratio_of_variances() -> None:
    """Of 4,000 days of weighted sums, beside as many rows that all have y."""
    rng = child(3, "variance")
    days, per = 4_000, 60
    level, chance = np.array([0.97, 0.83]), np.array([0.9, 0.2])
    first = rng.binomial(per, 0.5, days)
    rows = np.vstack([first, per - first])
    labelled = rng.binomial(rows, chance[:, None]).astype(np.float64)
    hits = rng.binomial(labelled.astype(int), level[:, None])
    strata = Strata(
        features=(),
        tree=two(np.zeros(2)).tree,
        rows=np.full(2, 1e6),
        means=(level - C)[None],
        variances=(level * (1 - level))[None],
    )
    made = weighted(
        (hits - C * labelled)[None, None],
        labelled[None],
        rows[None].astype(np.float64),
        np.arange(days),
        strata,
    )
    total, worth = made.sums[0, 0] * made.worth[0, 0], made.worth[0, 0].mean()
    assert np.var(total) / (per * 0.09) == pytest.approx(worth, rel=0.08)
    assert worth == pytest.approx(1.0 + (0.0291 / 9.0 + 0.1411 * 4.0) / 0.18, rel=0.02)


@pytest.mark.parametrize("size", [-1.2, -0.3, 0.3, 1.2])
def test_bets_weighted_by_true_weights_are_bets(size: float) -> None:
    """E exp(t (θ d − ψ)) of one row, summed over what may happen, at the greatest weight."""
    level, chance = np.array([0.97, 0.83]), np.array([0.9, 0.3])
    cost = float(
        bennett(np.array([size / 0.3]), Bounds(variance=0.09, lowest=-C, highest=1 - C))[0]
    )
    t = chance.min() / chance
    mean = 0.0
    for half in range(2):
        for d, p in ((1 - C, level[half]), (-C, 1.0 - level[half])):
            mean += 0.5 * p * chance[half] * math.exp(t[half] * (size / 0.3 * d - cost))
        mean += 0.5 * (1.0 - chance[half])
    assert mean <= 1.0
    assert mean > 0.5


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_evidence_of_missing_labels_has_mean_1_at_most(share: float) -> None:
    """Over all that may happen on two days of two strata, the labels missing by chance."""
    rows = np.array([[3.0, 2.0], [2.0, 4.0]])
    mean, greatest = 0.0, 0.0
    for counts in itertools.product(*(range(int(n) + 1) for n in rows.ravel())):
        labelled = np.array(counts, dtype=float).reshape(2, 2)
        chance = float(np.prod(stats.binom.pmf(labelled, rows, share)))
        made = math.exp(missing_by_stratum(labelled, rows)[-1])
        mean, greatest = mean + chance * made, max(greatest, made)
    assert mean <= 1.0 + 1e-12
    assert greatest > 1.5


def test_where_labels_are_missing_is_said_once_it_is_shown() -> None:
    rng = child(3, "missing")
    strata = two(np.zeros(2))
    rows = np.full((2, 60), 25.0)
    some = rng.binomial(25, np.array([[0.9], [0.3]]), (2, 60)).astype(float)
    chance = rng.binomial(25, 0.6, (2, 60)).astype(float)
    assert missing_by_stratum(some, rows)[3] > math.log(20.0)
    known = some[1].sum() / rows[1].sum()
    whole = some.sum() / rows.sum()
    assert missing_sentence(some, rows, strata) == (
        f"Labels are missing more often where x > 0.5: {100 * known:.0f} % of these rows have y, "
        f"compared with {100 * whole:.0f} % of all rows."
    )
    assert missing_sentence(chance, rows, strata) == ""
    assert missing_sentence(rows, rows, strata) == ""
    assert missing_sentence(rows[:, :0], rows[:, :0], strata) == ""
    assert np.isfinite(missing_by_stratum(some * 0.0, rows * 0.0)).all()


def test_bounds_whatever_is_missing() -> None:
    missing, covered = 0.12, 792.0 / 880.0
    assert covered * (1.0 - missing) >= 0.79
    assert covered * (1.0 - missing) + missing <= 0.92
    assert bounds_sentence(792.0, 880.0, 1_000.0) == (
        "12 % of the rows of evaluated days have no y. Whatever their values, between 79 and 92 % "
        "of all rows are covered."
    )
    assert bounds_sentence(880.0, 1_000.0, 1_000.0) == ""


def test_a_year_of_labels_missing_by_x() -> None:
    """Labels alone break a kept promise, weighted sums do not; and these find a fault."""
    strata, days, per = of_halves(1_000), 365, 50
    day = np.arange(days * per) // per
    alarms = {"unweighted": 0, "kept": 0, "broken": 0}
    for run in range(10):
        x, hits = halves(days * per, "year", run)
        rng = child(3, "labels", run)
        known = (rng.random(len(x)) < np.where(x[:, 0] <= 0.0, 0.9, 0.3)).astype(float)
        lower = np.where((rng.random(len(x)) < 0.0556), -C, hits)  # 85 % are covered
        cells, shape = strata.at(x) * days + day, (len(strata.rows), days)

        def by_cell(
            row: FloatArray, cells: IntArray = cells, shape: tuple[int, int] = shape
        ) -> FloatArray:
            return np.bincount(cells, row, math.prod(shape)).reshape(shape).astype(np.float64)

        rows, labelled = by_cell(np.ones(len(x))), by_cell(known)
        sums = np.array([by_cell(known * hits), by_cell(known * lower)])
        kept, broken = (
            weighted(each[None, None], labelled[None], rows[None], np.arange(days), strata)
            for each in sums
        )
        plain = evidence(sums[0].sum(axis=0), labelled.sum(axis=0), BOUNDS)
        alarms["unweighted"] += bool(plain.max() >= math.log(20.0))
        for name, made in (("kept", kept), ("broken", broken)):
            logs = evidence(made.sums[0, 0], made.counts[0, 0], BOUNDS)
            alarms[name] += bool(logs.max() >= math.log(20.0))
    assert alarms["unweighted"] == 10
    assert alarms["kept"] <= 1
    assert alarms["broken"] >= 9
