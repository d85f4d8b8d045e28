"""Rows that depend: right models keep their level, and intervals and nulls follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy import signal, special, stats

from howsure import assess
from howsure.core.labels import Categories
from howsure.core.rng import child, row_keys
from howsure.engine.autocorrelation import Dependence
from howsure.engine.finding import Draft
from howsure.engine.measure import evaluate
from howsure.engine.view import View
from howsure.inputs import Loaded
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    LabelSets,
    Prediction,
    Quantiles,
    Samples,
    content_order,
)
from howsure.report.assess import assess_loaded
from howsure.verdict import Finding
from howsure.verdict.dependence import follow, signals
from howsure.verdict.draws import Copula, copula_of
from howsure.verdict.family import _finding, examine
from howsure.verdict.nulls import WHY, with_nulls
from howsure.verdict.words import sentence

FIVE = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def autoregressive(rng: np.random.Generator, n: int, rho: float) -> np.ndarray:
    fresh = rng.normal(size=n + 500)
    return signal.lfilter([math.sqrt(1 - rho**2)], [1.0, -rho], fresh)[500:]


def right(scores: np.ndarray, rng: np.random.Generator, **known: object) -> EvalSet:
    """Normal predictions whose errors have these normal scores."""
    mean, sd = rng.normal(size=len(scores)), np.exp(rng.uniform(-0.5, 0.5, len(scores)))
    return EvalSet.checked(mean + sd * scores, Distribution.normal(mean, sd), **known)


def followed(held: EvalSet) -> tuple[EvalSet, Dependence | str]:
    (taken,), (known,) = follow([held], content_order([held]))
    return taken, known


def found_in(held: EvalSet) -> tuple[Finding | None, str]:
    findings, silent = examine(held)
    told = next((each for each in findings if each.id == "dependence"), None)
    return told, silent.get("dependence", "")


@pytest.mark.rate
def test_right_models_whose_errors_follow_each_other_are_seldom_condemned() -> None:
    """AR(.8) with `time`: any ✗ in 78 % of tables with groups, 45 % of these, and now in 5 %."""
    tables, red, before = 60, 0, 0
    for number in range(tables):
        rng = np.random.default_rng([1, number])
        held = right(autoregressive(rng, 600, 0.8), rng, time=np.arange(600))
        red += any(each.state == "bad" for each in examine(held)[0])
        before += any(each.state == "bad" for each in examine(replace(held, time=None))[0])
    assert before > 0.3 * tables
    assert red <= tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables))


@pytest.mark.slow
def test_faults_are_still_seen_where_rows_follow_each_other() -> None:
    seen = 0
    for number in range(20):
        rng = np.random.default_rng([2, number])
        scores = 1.0 / 0.6 * autoregressive(rng, 3000, 0.8)
        findings, _ = examine(right(scores, rng, time=np.arange(3000)))
        seen += any(each.id == "spread" and each.state == "bad" for each in findings)
    assert seen >= 18


def lagged(rng: np.random.Generator, n: int, lag: int, rho: float = 0.8) -> np.ndarray:
    fresh = math.sqrt(1 - rho**2) * rng.normal(size=n + 600)
    return signal.lfilter([1.0], [1.0, *[0.0] * (lag - 1), -rho], fresh)[600:]


def condemned(world: Callable[[np.random.Generator], EvalSet], tables: int, seed: int) -> int:
    """Of how many tables of a right model any line is red."""
    rngs = (np.random.default_rng([seed, number]) for number in range(tables))
    return sum(any(f.state == "bad" for f in examine(world(rng))[0]) for rng in rngs)


def seldom(red: int, tables: int) -> bool:
    return red <= tables * (0.05 + 3 * math.sqrt(0.05 * 0.95 / tables))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "gaps"),
    [
        (100, False),
        pytest.param(100, True, marks=pytest.mark.rate),
        pytest.param(1_000, False, marks=pytest.mark.rate),
        pytest.param(1_000, True, marks=pytest.mark.rate),
    ],
)
def test_right_models_whose_errors_come_again_are_seldom_condemned(n: int, gaps: bool) -> None:
    """Lag 12 at .8: any ✗ in 60 % of tables with n = 100, and 45 % with 1,000."""

    def world(rng: np.random.Generator) -> EvalSet:
        times = np.arange(n)
        if gaps:
            times = np.sort(rng.choice(n * 10 // 9, n, replace=False))
        return right(lagged(rng, n * 10 // 9, 12)[times], rng, time=times)

    assert seldom(condemned(world, 40, 20), 40)


@pytest.mark.slow
def test_right_intervals_whose_hits_hardly_vary_are_seldom_condemned() -> None:
    """AR(.95), and a random walk of 60 steps, between its own quantiles: any ✗ in 30 to 58 %."""

    def slow(rng: np.random.Generator) -> EvalSet:
        scores, wide = autoregressive(rng, 100, 0.95), np.exp(rng.uniform(-0.5, 0.5, 100))
        held = Intervals(-1.645 * wide, 1.645 * wide, coverage=0.9)
        return EvalSet.checked(wide * scores, held, time=np.arange(100))

    def walk(rng: np.random.Generator) -> EvalSet:
        wide = 1.645 * np.sqrt(np.arange(1, 61))
        held = Intervals(-wide, wide, coverage=0.9)
        return EvalSet.checked(np.cumsum(rng.normal(size=60)), held, time=np.arange(60))

    for number, world in enumerate((slow, walk)):
        assert seldom(condemned(world, 60, 21 + number), 60)


@pytest.mark.rate
def test_groups_of_rows_that_come_again_are_seldom_said_to_differ() -> None:
    """Months of errors with a season: each group is every twelfth row."""

    def world(rng: np.random.Generator) -> EvalSet:
        times = np.arange(600)
        scores = lagged(rng, 600, 12, 0.9)
        return right(scores, rng, time=times, groups={"month": times % 12 // 3})

    assert seldom(condemned(world, 40, 23), 40)


@pytest.mark.slow
def test_a_fault_is_still_seen_under_a_season() -> None:
    seen = 0
    for number in range(20):
        rng = np.random.default_rng([24, number])
        held = right(1.4 * lagged(rng, 3_000, 12), rng, time=np.arange(3_000))
        seen += any(f.id == "spread" and f.state == "bad" for f in examine(held)[0])
    assert seen >= 18


def test_the_finding_tells_the_season() -> None:
    rng = np.random.default_rng(25)
    told, _ = found_in(right(lagged(rng, 1_000, 12), rng, time=np.arange(1_000)))
    assert told is not None
    assert told.state == "caution"
    assert "(r = 0.7" in told.sentence or "(r = 0.8" in told.sentence
    assert "at lag 12): effective sample size about 1" in told.sentence


HOURS = np.datetime64("2022-01-01T00") + np.arange(0, 17_520, 4).astype("timedelta64[h]")
SEASON = np.array(["winter", "spring", "summer", "autumn"])[
    ((HOURS.astype("datetime64[M]").astype(int) % 12 + 1) // 3) % 4
]


def of_seasons(seed: int, sd: np.ndarray) -> EvalSet:
    """Two years of errors that follow each other, with these sd for a stated 1."""
    rng = child(seed, "seasons")
    y = sd * autoregressive(rng, len(HOURS), 0.6)
    stated = Distribution.normal(np.zeros(len(y)), np.ones(len(y)))
    return EvalSet.checked(y, stated, time=HOURS, groups={"season": SEASON})


def test_a_wrong_season_is_named_by_its_spells() -> None:
    """Winter covers 46 %; its fault is no memory, so that other lines can be told, too."""
    told = {
        each.id: each for each in examine(of_seasons(0, np.where(SEASON == "winter", 2.7, 1)))[0]
    }
    groups, dependence = told["groups"], told["dependence"]
    assert groups.state == "bad"
    assert groups.where == "season=winter"
    assert groups.sentence.startswith("Intervals cover 4")
    assert "rows in 3 periods in season=winter, 78.5 % overall" in groups.sentence
    assert told["coverage"].state == "bad"
    assert told["coverage"].upper < -0.08
    count = int(dependence.sentence.partition("about ")[2].partition(" ")[0].replace(",", ""))
    assert count > 700  # of 4,380 rows; 1,095 where the season alone differs


def test_a_right_season_is_no_fault() -> None:
    states = {each.id: each.state for each in examine(of_seasons(1, np.ones(len(HOURS))))[0]}
    assert states["groups"] == "undecided"  # 1,095 rows that follow each other are few
    assert states["coverage"] == "good"


def test_few_spells_tell_of_themselves_alone() -> None:
    """Two winters within fourteen months are 46 %: more winters might be otherwise."""
    first = np.flatnonzero(np.datetime64("2023-03-01") > HOURS)
    held = of_seasons(2, np.where(SEASON == "winter", 2.7, 1.0)).take(first)
    told = {each.id: each for each in examine(held)[0]}
    assert told["groups"].state == "caution"
    assert told["groups"].sentence.endswith(
        "% overall. With only 2 periods, this may not apply to season=winter in general."
    )


@pytest.mark.rate
def test_seasons_that_differ_from_year_to_year_are_seldom_a_fault() -> None:
    """Each spell has an sd of its own: the verdict on a season is that of its spells."""
    spell = np.cumsum(np.r_[False, SEASON[1:] != SEASON[:-1]])
    bad = 0
    for seed in range(12):
        sd = np.exp(0.5 * child(seed, "years").normal(size=spell[-1] + 1))[spell]
        bad += {e.id: e.state for e in examine(of_seasons(seed, sd))[0]}["groups"] == "bad"
    assert bad <= 4  # 13 % of very many


def test_draws_come_again_as_errors_do() -> None:
    held = replace(copula(0.8, 4_000), lag=12)
    z = special.ndtri(np.stack([held.uniforms(0, f"draw {k}") for k in range(20)]))
    for lag, expected in ((1, 0.0), (6, 0.0), (12, 0.8), (24, 0.64)):
        assert (z[:, lag:] * z[:, :-lag]).mean() == pytest.approx(expected, abs=0.03)
    alone = np.arange(4_000) % 12
    found = held.companions(alone, 12)[0]
    assert found == pytest.approx(np.full(12, 8.0), rel=0.05)


def test_the_finding_tells_the_effective_number_of_rows() -> None:
    rng = np.random.default_rng(3)
    told, _ = found_in(right(autoregressive(rng, 3000, 0.8), rng, time=np.arange(3000)))
    assert told is not None
    assert told.state == "caution"
    assert told.effect == pytest.approx(8.0, rel=0.25)
    assert told.lower < 8.0 < told.upper
    assert told.sentence.startswith("Errors are correlated in time (r = 0.7")
    assert ": effective sample size about 3" in told.sentence


@pytest.mark.slow
def test_independent_rows_in_time_are_good_once_there_are_enough() -> None:
    states = []
    for number in range(20):
        rng = np.random.default_rng([4, number])
        told, _ = found_in(right(rng.normal(size=4000), rng, time=np.arange(4000)))
        assert told is not None
        states.append(told.state)
    assert states.count("good") >= 17
    rng = np.random.default_rng(5)
    told, _ = found_in(right(rng.normal(size=100), rng, time=np.arange(100)))
    assert told is not None
    assert told.state == "undecided"


@pytest.mark.slow
def test_batches_are_the_units_of_all_that_follows() -> None:
    rng = np.random.default_rng(6)
    held = right(autoregressive(rng, 3000, 0.8), rng, time=np.arange(3000))
    taken, known = followed(held)
    assert isinstance(known, Dependence)
    assert taken.cluster is not None
    assert known.batches == len(taken.cluster.labels) == round(known.effective / 8)
    order = np.argsort(taken.time)
    assert (np.diff(taken.cluster.codes[order]) >= 0).all()
    result = assess_loaded(Loaded(evalsets=(held,)))
    assert result.facts["Clusters"] == f"{known.batches} batches of consecutive rows in time"
    alone = assess_loaded(Loaded(evalsets=(replace(held, time=None),)))
    wide, narrow = (
        next(each for each in part.records if each.metric == "pit_bias") for part in (result, alone)
    )
    assert wide.value == narrow.value
    assert wide.upper - wide.lower > 2.2 * (narrow.upper - narrow.lower)
    assert wide.null_upper > 2.2 * narrow.null_upper


@pytest.mark.slow
def test_too_few_effective_rows_give_no_p_value() -> None:
    rng = np.random.default_rng(7)
    held = right(autoregressive(rng, 300, 0.99), rng, time=np.arange(300))
    findings, _ = examine(held)
    told = {each.id: each for each in findings}
    for name in ("coverage", "bias", "spread", "skew", "tails"):
        assert math.isnan(told[name].p)
        assert told[name].state == "undecided"
    facts = assess_loaded(Loaded(evalsets=(held,))).facts
    assert facts["Clusters"] == "one: the effective sample size is too small for batches of time"
    walk = np.cumsum(np.random.default_rng(0).normal(size=60)) / 5.0
    findings, _ = examine(right(walk, rng, time=np.arange(60)))
    told = {each.id: each for each in findings}
    assert "too few for any test" in told["dependence"].sentence
    assert all(math.isnan(each.p) for name, each in told.items() if name != "dependence")


def of_panel(
    rng: np.random.Generator,
    series: int,
    times: int,
    rho: float,
    *,
    shock: float = 0.0,
    named: str = "series",
    scale: float = 1.0,
    shift: float = 0.0,
) -> EvalSet:
    """A right model of AR(1) series at the same times, which may share a shock."""
    scores = math.sqrt(1.0 - shock) * np.stack(
        [autoregressive(rng, times, rho) for _ in range(series)]
    ) + math.sqrt(shock) * autoregressive(rng, times, rho)
    which, when = np.divmod(np.arange(series * times), times)
    site = np.char.add("site ", which.astype(str))
    known: dict[str, object] = {
        "series": {"series": site},
        "groups": {"groups": {"site": site}},
        "": {},
    }[named]
    return right(scale * scores.ravel() + shift, rng, time=when, **known)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "series", "times", "rho"),
    [("series", 5, 60, 0.7), ("series", 16, 20, 0.5), ("", 16, 20, 0.5)],
)
def test_right_models_of_panels_are_seldom_condemned(
    named: str, series: int, times: int, rho: float
) -> None:
    """Any ✗ in 12 to 21 % of tables where memory was sought in sums over each time alone."""
    red = condemned(lambda rng: of_panel(rng, series, times, rho, named=named), 40, 40)
    assert seldom(red, 40)


@pytest.mark.slow
def test_faults_of_panels_are_still_seen() -> None:
    for fault, change in (("bias", {"shift": 0.3}), ("spread", {"scale": 1.2})):
        seen = 0
        for number in range(10):
            held = of_panel(np.random.default_rng([41, number]), 30, 100, 0.3, **change)
            seen += any(f.id == fault and f.state == "bad" for f in examine(held)[0])
        assert seen >= 9


def test_what_is_said_of_panels() -> None:
    def sentence_of(held: EvalSet) -> str:
        told, _ = found_in(held)
        assert told is not None
        return told.sentence

    rng = np.random.default_rng(42)
    shared = sentence_of(of_panel(rng, 16, 60, 0.5, shock=0.3))
    assert shared.startswith("Series share shocks (r = 0.")
    assert ": effective sample size about " in shared
    assert shared.endswith(" of 960.")
    few = of_panel(rng, 16, 20, 0.5, shock=0.5)
    assert sentence_of(few).endswith(" of 320. 20 times are too few for any test.")
    own = sentence_of(of_panel(rng, 16, 60, 0.5))
    assert own.startswith("Errors are correlated in time (r = 0.")
    assert ": effective sample size about " in own
    sampled = sentence_of(replace(of_panel(rng, 16, 60, 0.5), share=0.1))
    assert sampled.endswith(", from a sample of short periods).")
    unnamed = of_panel(rng, 16, 20, 0.0, named="")
    assert sentence_of(unnamed).endswith(
        "There are several rows per time: name their series with "
        "howsure.Table(…, series=COLUMN); without it "
        "20 times are too few."
    )
    assert sentence_of(of_panel(rng, 16, 60, 0.0, named="")).endswith(
        "There are several rows per time: if these are series, name their column with "
        "howsure.Table(…, series=COLUMN)."
    )
    for held in (few, unnamed):
        findings, silent = examine(held)
        tested = [f for f in findings if f.id in ("coverage", "bias", "spread", "skew", "tails")]
        assert all(f.state == "undecided" and math.isnan(f.p) for f in tested)
        assert "drift" in silent


def test_series_that_are_groups_or_clusters_are_known() -> None:
    rng = np.random.default_rng(43)
    held = of_panel(rng, 16, 60, 0.5)
    assert held.series is not None

    def series_by_y(taken: EvalSet) -> np.ndarray:
        assert taken.chronology is not None
        assert taken.chronology.series is not None
        return taken.chronology.series[np.argsort(taken.y)]

    stated = series_by_y(followed(held)[0])
    for known in ({"groups": {"site": held.series}}, {"cluster": held.series}):
        taken, found = followed(replace(held, series=None, **known))
        assert isinstance(found, Dependence)
        assert found.series == "known"
        np.testing.assert_array_equal(series_by_y(taken), stated)


def test_given_clusters_stay_the_units_unless_they_follow_each_other() -> None:
    rng = np.random.default_rng(8)
    days = np.arange(4800) // 24
    daily = np.repeat(autoregressive(rng, 200, 0.8), 24)
    scores = math.sqrt(0.5) * daily + math.sqrt(0.5) * rng.normal(size=4800)
    hours = np.arange(4800)
    taken, known = followed(right(scores, rng, cluster=days, time=hours))
    assert isinstance(known, Dependence)
    assert known.by == "time"
    assert taken.cluster is not None
    batches = taken.cluster.codes
    assert len(taken.cluster.labels) < 40
    of_day = {day: set(batches[taken.time // 24 == day]) for day in range(200)}
    assert all(len(each) == 1 for each in of_day.values())
    stations = np.arange(4800) % 40
    taken, known = followed(right(scores, rng, cluster=stations, time=hours))
    assert isinstance(known, Dependence)
    assert known.by == "clusters"
    assert len(taken.cluster.labels) == 40


@pytest.mark.slow
def test_the_order_of_rows_changes_nothing() -> None:
    """Ties in time too: no number differs where rows are shuffled."""
    rng = np.random.default_rng(9)
    held = right(autoregressive(rng, 900, 0.7), rng, time=np.arange(900) // 3)
    mixed = held.take(rng.permutation(900))
    first, second = (assess_loaded(Loaded(evalsets=(each,))) for each in (held, mixed))
    assert first.verdict == second.verdict
    for one, other in zip(first.records, second.records, strict=True):
        np.testing.assert_equal(
            (one.value, one.lower, one.p, one.null_lower, one.null_upper),
            (other.value, other.lower, other.p, other.null_lower, other.null_upper),
        )


@pytest.mark.slow
def test_the_order_of_a_file_gives_a_caution_alone() -> None:
    rng = np.random.default_rng(10)
    held = right(autoregressive(rng, 900, 0.7), rng)
    told, _ = found_in(held)
    assert told is not None
    assert told.state == "caution"
    assert told.sentence.endswith("name the time column with howsure.Table(…, time=COLUMN).")
    mixed = held.take(rng.permutation(900))
    missing, why = found_in(mixed)
    assert missing is None
    assert why == "neither times nor clusters were given"
    first, second = (assess_loaded(Loaded(evalsets=(each,))) for each in (held, mixed))
    assert [(r.metric, r.value, r.upper) for r in first.records if r.value == r.value] == [
        (r.metric, r.value, r.upper) for r in second.records if r.value == r.value
    ]


@pytest.mark.parametrize("column", ["y", "mean"])
def test_a_sorted_file_gives_no_caution(column: str) -> None:
    """Sorted by y, errors of a right model follow each other: rows were put so."""
    rng = np.random.default_rng(11)
    held = right(rng.normal(size=900), rng)
    by = held.y if column == "y" else held.predictions[0].quantile([0.5])[:, 0]
    told, why = found_in(held.take(np.argsort(by)))
    assert told is None
    assert why == "neither times nor clusters were given"


@pytest.mark.slow
def test_independent_rows_in_a_file_are_hardly_ever_cautioned() -> None:
    cautions = 0
    for number in range(300):
        rng = np.random.default_rng([12, number])
        cautions += isinstance(followed(right(rng.normal(size=200), rng))[1], Dependence)
    assert cautions <= 3


def of_kind(kind: str, scores: np.ndarray, rng: np.random.Generator) -> EvalSet:
    n = len(scores)
    zero = np.zeros(n)
    held: tuple[Prediction, ...] = ()
    match kind:
        case "samples":
            held = (Samples(rng.normal(size=(n, 20))),)
        case "one sample":
            held = (Samples(rng.normal(size=(n, 1))),)
        case "quantiles":
            held = (Quantiles(FIVE, np.tile(stats.norm.ppf(FIVE), (n, 1))),)
        case "intervals":
            held = (Intervals(zero - 1.0, zero + 1.0, coverage=0.68),)
        case "no level":
            held = (Intervals(zero - 1.0, zero + 1.0),)
        case "counts":
            rate = np.full(n, 3.0)
            y = stats.poisson.ppf(special.ndtr(scores), rate)
            held = (Distribution.from_scipy(stats.poisson(rate)),)
            return EvalSet.checked(y, held, time=np.arange(n))
        case "label sets":
            y = (scores > 0.5).astype(float)
            members = np.tile([True, False], (n, 1))
            return EvalSet.checked(y, LabelSets(members, coverage=0.7), time=np.arange(n))
    return EvalSet.checked(scores, held, point=zero if not held else None, time=np.arange(n))


KINDS = [
    "samples",
    "one sample",
    "quantiles",
    "intervals",
    "no level",
    "counts",
    "label sets",
    "point",
]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_prediction_shows_it(kind: str) -> None:
    rng = np.random.default_rng(13)
    held = of_kind(kind, autoregressive(rng, 2000, 0.9), rng)
    values = signals(View(held))
    assert all(each.shape == (2000,) and np.isfinite(each).all() for each in values.values())
    taken, known = followed(held)
    assert isinstance(known, Dependence)
    assert known.found
    assert taken.cluster is not None
    free = of_kind(kind, rng.normal(size=2000), rng)
    _, known = followed(free)
    assert isinstance(known, Dependence)
    assert known.p > 1e-3


def copula(rho: float, n: int, *, serial: bool = True, folded: bool = False) -> Copula:
    rows = np.arange(n)
    place = rows if serial else rows // 20
    return Copula(rho, folded, serial, place, row_keys(rows), np.ones(n))


@pytest.mark.slow
def test_draws_follow_each_other_as_they_should() -> None:
    held = copula(0.8, 4000)
    drawn = np.stack([held.uniforms(0, f"draw {k}") for k in range(20)])
    assert stats.kstest(drawn[:, ::50].ravel(), "uniform").pvalue > 1e-3
    z = special.ndtri(drawn)
    for lag in (1, 2, 5):
        assert (z[:, lag:] * z[:, :-lag]).mean() == pytest.approx(0.8**lag, abs=0.02)
    sizes = copula(0.8, 4000, folded=True)
    u = np.stack([sizes.uniforms(0, f"draw {k}") for k in range(20)])
    assert stats.kstest(u[:, ::50].ravel(), "uniform").pvalue > 1e-3
    x = special.ndtri(np.abs(2 * u - 1))
    assert (x[:, 1:] * x[:, :-1]).mean() == pytest.approx(0.8, abs=0.02)
    assert ((u[:, 1:] - 0.5) * (u[:, :-1] - 0.5)).mean() == pytest.approx(0.0, abs=0.003)


def test_draws_in_clusters_go_together() -> None:
    held = copula(0.3, 4000, serial=False)
    z = special.ndtri(np.stack([held.uniforms(0, f"draw {k}") for k in range(20)]))
    by_cluster = z.reshape(20, 200, 20)
    among = (np.square(by_cluster.sum(axis=2)) - np.square(by_cluster).sum(axis=2)).mean()
    assert among / (20 * 19) == pytest.approx(0.3, abs=0.03)
    apart = (by_cluster[:, 1:, 0] * by_cluster[:, :-1, 0]).mean()
    assert apart == pytest.approx(0.0, abs=0.06)


def test_draws_of_series_follow_each_other_within_each() -> None:
    which, when = np.divmod(np.arange(4_000), 200)
    held = replace(copula(0.8, 4_000), place=when, series=which)
    z = special.ndtri(np.stack([held.uniforms(0, f"draw {k}") for k in range(20)]))
    z = z.reshape(20, 20, 200)
    assert (z[..., 1:] * z[..., :-1]).mean() == pytest.approx(0.8, abs=0.04)
    assert (z[:, 1:] * z[:, :-1]).mean() == pytest.approx(0.0, abs=0.05)


def test_draws_belong_to_rows() -> None:
    held, order = copula(0.8, 500), np.random.default_rng(0).permutation(500)
    moved = replace(held, place=held.place[order], keys=held.keys[order])
    np.testing.assert_array_equal(held.uniforms(1, "a")[order], moved.uniforms(1, "a"))


@pytest.mark.slow
@pytest.mark.parametrize("serial", [True, False])
def test_hermite_coefficients_give_the_variance_of_a_mean(serial: bool) -> None:
    """Of coverage and of a score in one part of the rows, against 2,000 dependent draws."""
    n, groups = 600, np.arange(600) // 5 % 2
    held = copula(0.7, n, serial=serial)
    scores: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "coverage": lambda u: (np.abs(2 * u - 1) < 0.8).astype(float),
        "side": lambda u: np.exp(u),
    }
    stacked = np.stack([np.mod(held.uniforms(0, "one") + k / 50, 1.0) for k in range(50)])
    drawn = np.stack([held.uniforms(0, f"draw {k}") for k in range(2000)])
    for score in scores.values():
        variance = score(stacked).var()
        means = held.hermite(score(stacked), stacked).mean(axis=1)
        grown = 1 + np.square(means) @ held.companions(groups, 2) / variance
        for group in (0, 1):
            seen = score(drawn)[:, groups == group].mean(axis=1).var() * 300 / variance
            assert grown[group] == pytest.approx(seen, rel=0.2)


@pytest.mark.parametrize("kind", ["time", "clusters"])
@pytest.mark.rate
def test_ranges_of_perfect_models_hold_where_rows_depend(kind: str) -> None:
    """Tables of a right model lie in the range as often as they should; before, half did."""
    names = ("empirical_coverage", "crps", "pit_bias", "mean_squared_z")
    inside = dict.fromkeys(names, 0)
    tables = 40
    for number in range(tables):
        rng = np.random.default_rng([24, number])
        cluster = np.arange(1000) // 20
        shared = rng.normal(size=50)[cluster]
        scores = math.sqrt(0.4) * shared + math.sqrt(0.6) * rng.normal(size=1000)
        known: dict[str, object] = {"cluster": cluster}
        if kind == "time":
            scores, known = autoregressive(rng, 1000, 0.8), {"time": np.arange(1000)}
        taken, dependence = followed(right(scores, rng, **known))
        found = evaluate(taken, metrics=names, coverages=[0.8])
        records, _ = with_nulls(found, dependence=dependence)
        for each in records:
            inside[each.metric] += each.null_lower <= each.value <= each.null_upper
    assert min(inside.values()) >= tables * (0.95 - 3 * math.sqrt(0.05 * 0.95 / tables)), inside


def test_a_part_of_dependent_rows_stands_for_no_statistic() -> None:
    rng = np.random.default_rng(15)
    held = right(autoregressive(rng, 6000, 0.8), rng, time=np.arange(6000))
    taken, known = followed(held)
    found = evaluate(taken, metrics=["rmse", "crps"])
    by_name = {each.metric: each for each in with_nulls(found, dependence=known)[0]}
    assert "rows are dependent" in by_name["rmse"].options[WHY]
    assert by_name["crps"].null_lower < by_name["crps"].null_upper
    copula = copula_of(View(taken), known)
    assert copula is not None
    assert copula.rho == pytest.approx(0.8, abs=0.06)


def test_models_share_the_batches_of_the_one_that_depends_most() -> None:
    rng = np.random.default_rng(16)
    n = 2000
    slow, mean = autoregressive(rng, n, 0.9), rng.normal(size=n)
    y = mean + slow
    sets = [
        EvalSet.checked(y, Distribution.normal(mean, np.ones(n)), time=np.arange(n), model="slow"),
        EvalSet.checked(
            y, Distribution.normal(mean + slow, np.full(n, 0.1)), time=np.arange(n), model="knows"
        ),
    ]
    taken, known = follow(sets, content_order(sets))
    assert isinstance(taken[0].cluster, Categories)
    assert taken[0].cluster is taken[1].cluster
    assert {each.batches for each in known if isinstance(each, Dependence)} == {
        len(taken[0].cluster.labels)
    }


def test_what_goes_to_a_file_has_no_batches() -> None:
    """The set that was given stays as it is."""
    rng = np.random.default_rng(17)
    held = right(autoregressive(rng, 600, 0.8), rng, time=np.arange(600))
    assess(held.y, held.predictions[0], time=held.time)
    followed(held)
    assert held.cluster is None


@pytest.mark.parametrize(
    ("p", "told"),
    [
        (0.2, "With only 2 periods, this may not apply to site=A in general."),
        (0.03, "Possibly groups differ in coverage: p = 0.03, not significant"),
    ],
)
def test_what_spells_cannot_tell_is_said_where_rows_alone_reject(p: float, told: str) -> None:
    facts = {"value": 0.7, "expected": 0.9, "overall": 0.9, "rows": 50.0, "spells": 2.0}
    facts |= {"claimed": False, "sets": False}
    draft = Draft(
        id="groups",
        effect=-0.2,
        lower=-0.3,
        upper=-0.1,
        p=p,
        where="site=A",
        n=50.0,
        good=False,
        facts={**facts, "p_here": 0.02},
    )
    finding = _finding(draft, 0.3, 0.01, "model")
    assert finding.state == "caution"
    assert told in sentence(finding, draft)
