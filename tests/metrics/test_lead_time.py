"""Coverage, score, width and skill by lead time: beside brute force, and what must hold of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import signal, stats

import howsure
from howsure.core.records import Curve, Record, ResultTable
from howsure.core.rng import child
from howsure.core.weights import Weights
from howsure.engine.measure import curves_of, evaluate, tables_of
from howsure.engine.view import View
from howsure.metrics import climatology_crps, interval_score
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    Prediction,
    Quantiles,
    content_order,
)
from howsure.topics.crps import crps_quantiles
from howsure.topics.crps_closed import crps_normal
from howsure.topics.lead_time import MAX_CELLS, MIN_ROWS_OF_CELL, Leads, Profile
from howsure.topics.skill import climatology_pinball
from howsure.verdict.dependence import follow
from howsure.verdict.family import examine

MEASURES = ("lead_time_drop", "lead_times_differ")
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def ahead(
    name: str,
    origins: int = 200,
    steps: int = 4,
    memory: float = 0.5,
    stated: Callable[[np.ndarray], Any] = np.ones_like,
    kind: str = "law",
    **beside: Any,
) -> EvalSet:
    """Forecasts of an AR(1) from every origin; `stated` multiplies their sd, of the horizon."""
    rng = child(0, "ahead", name)
    path = signal.lfilter([1.0], [1.0, -memory], rng.normal(size=origins + steps + 200))[200:]
    origin, lead = np.repeat(np.arange(origins), steps), np.tile(np.arange(steps) + 1, origins)
    mean = memory**lead * path[origin]
    sd = np.sqrt((1.0 - memory ** (2.0 * lead)) / (1.0 - memory**2)) * stated(lead)
    made: dict[str, Prediction] = {
        "law": Distribution.normal(mean, sd),
        "quantiles": Quantiles(LEVELS, mean[:, None] + sd[:, None] * stats.norm.ppf(LEVELS)),
        "intervals": Intervals(mean - 1.645 * sd, mean + 1.645 * sd, coverage=0.9),
    }
    beside.setdefault("horizon", lead)
    return EvalSet.checked(path[origin + lead], made[kind], **beside)


def known(held: EvalSet, **options: Any) -> dict[str, Record]:
    return {r.metric: r for r in evaluate(held, metrics=MEASURES, **options).records}


def profiles(held: EvalSet) -> dict[str, Profile]:
    return {each.name: each for each in View(held).get("lead_profiles", 0.9)}


def dated(held: EvalSet) -> EvalSet:
    """The set with the dependence that its times show."""
    (found,), _ = follow([held], content_order([held]))
    return found


def centre_and_sd(law: Distribution) -> tuple[np.ndarray, np.ndarray]:
    """Those of normal laws, by two quantiles."""
    centre, one_above = law.quantile([0.5, stats.norm.cdf(1.0)]).T
    return centre, one_above - centre


def own_score(held: EvalSet) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Scores of rows, and of the distribution of some y in their rows, by hand."""
    (prediction,), y = held.predictions, held.y
    if isinstance(prediction, Distribution):
        return crps_normal(y, *centre_and_sd(prediction)), climatology_crps
    if isinstance(prediction, Quantiles):
        gaps = np.diff(LEVELS)
        factors = np.append(gaps, 0.0) + np.append(0.0, gaps)
        return crps_quantiles(y, prediction.values, LEVELS), lambda rows: sum(
            factor * climatology_pinball(rows, level=level)
            for factor, level in zip(factors, LEVELS, strict=True)
        )
    lower, upper = prediction.interval(0.9)
    return (
        interval_score(y, lower, upper, coverage=0.9),
        lambda rows: (
            20.0 * (climatology_pinball(rows, level=0.05) + climatology_pinball(rows, level=0.95))
        ),
    )


@pytest.mark.parametrize("kind", ["law", "quantiles", "intervals"])
def test_every_number_is_that_of_the_rows_at_its_horizon(kind: str) -> None:
    held = ahead("brute force", kind=kind)
    assert held.horizon is not None
    lower, upper = held.predictions[0].interval(0.9)
    inside = (lower <= held.y) & (held.y <= upper)
    scores, reference = own_score(held)
    found = profiles(held)
    score = "interval_score" if kind == "intervals" else "crps"
    skill = "interval_skill" if kind == "intervals" else "crps_skill"
    assert list(found) == ["empirical_coverage", score, "mean_width", skill]
    for cell, horizon in enumerate((1.0, 2.0, 3.0, 4.0)):
        rows = held.horizon == horizon
        assert found["empirical_coverage"].value[cell] == pytest.approx(inside[rows].mean())
        assert found["mean_width"].value[cell] == pytest.approx((upper - lower)[rows].mean())
        assert found[score].value[cell] == pytest.approx(scores[rows].mean())
        ratio = scores[rows].mean() / reference(held.y[rows]).mean()
        assert found[skill].value[cell] == pytest.approx(1.0 - ratio)
    # of independent rows bands are exact, at a level that all hold at
    level = 0.95**0.25
    for each in found.values():
        assert each.level == pytest.approx(level)
    hits = np.array([inside[held.horizon == h].sum() for h in (1, 2, 3, 4)])
    ends = [stats.binomtest(int(k), 200).proportion_ci(level) for k in hits]
    np.testing.assert_allclose(found["empirical_coverage"].lower, [end.low for end in ends])
    np.testing.assert_allclose(found["empirical_coverage"].upper, [end.high for end in ends])


def test_the_drop_is_that_of_the_ends() -> None:
    held = ahead("ends", steps=6, stated=lambda lead: 1.0 - 0.1 * lead)
    assert held.horizon is not None
    lower, upper = held.predictions[0].interval(0.9)
    inside = (lower <= held.y) & (held.y <= upper)
    short, long = inside[held.horizon <= 2], inside[held.horizon >= 5]
    drop = known(held)["lead_time_drop"]
    assert drop.value == pytest.approx(short.mean() - long.mean())
    assert drop.options["short"] == "1–2 steps"
    assert drop.options["long_coverage"] == pytest.approx(long.mean())
    error = math.sqrt(sum(part.var(ddof=1) / len(part) for part in (short, long)))
    assert drop.standard_error == pytest.approx(error, rel=5e-3)
    assert drop.n == len(short) + len(long)
    counts = [[part.sum(), (~part).sum()] for part in (short, long)]
    exact = stats.fisher_exact(counts).pvalue  # the test permutes hits of two groups
    assert drop.p == pytest.approx(exact, abs=0.01)


def test_clusters_tell_the_error_of_the_drop() -> None:
    """Beside the jackknife that leaves out one cluster at a time, done in full."""
    clusters = np.repeat(np.arange(40), 30)
    held = ahead("clusters", origins=200, steps=6, cluster=clusters)
    assert held.horizon is not None
    lower, upper = held.predictions[0].interval(0.9)
    inside = (lower <= held.y) & (held.y <= upper)

    def drop(rows: np.ndarray) -> float:
        short, long = held.horizon <= 2, held.horizon >= 5  # type: ignore[operator]
        return float(inside[rows & short].mean() - inside[rows & long].mean())

    left = np.array([drop(clusters != each) for each in range(40)])
    error = math.sqrt(39 / 40 * np.square(left - left.mean()).sum())
    found = known(held)["lead_time_drop"]
    assert found.standard_error == pytest.approx(error, rel=0.02)
    t = abs(found.value) / found.standard_error
    assert found.p == pytest.approx(2 * stats.t.sf(t, 39))


def test_too_few_effective_rows_have_no_interval() -> None:
    times = np.repeat(np.arange(200), 4) + np.tile(np.arange(4), 200)
    held = dated(ahead("few", time=times))
    assert held.chronology is not None
    few = replace(held, chronology=replace(held.chronology, few=True))
    found = known(few)["lead_time_drop"]
    assert math.isnan(found.standard_error)
    assert math.isnan(found.p)
    assert found.reason.startswith("no interval: the effective sample size is too small")


def test_ends_that_agree_at_every_time_have_the_error_of_independent_rows() -> None:
    """Their difference is 0 at every time; that is luck, or what rows hide, and no proof."""
    times = np.repeat(np.arange(12), 20)
    errors = np.cumsum(child(0, "agree").normal(size=12))[times]
    lead = np.tile([1, 2], 120)
    law = Distribution.normal(np.zeros(240), np.ones(240))
    found = known(dated(EvalSet.checked(errors, law, time=times, horizon=lead)))["lead_time_drop"]
    assert found.value == pytest.approx(0.0, abs=1e-12)
    assert math.isnan(found.standard_error) or found.standard_error > 0.01
    assert math.isnan(found.p) or found.p == pytest.approx(1.0)


def test_claims_that_differ_by_lead_time_are_no_drop() -> None:
    """Poisson counts: what rows claim falls from .97 to .91 with the mean."""
    rng = child(0, "claims")
    lead = np.tile([1, 2], 4_000)
    mu = np.where(lead == 1, 0.3, 30.0)
    law = Distribution.from_scipy(stats.poisson(mu))
    held = EvalSet.checked(rng.poisson(mu).astype(float), law, horizon=lead)
    drop = known(held)["lead_time_drop"]
    assert abs(float(drop.options["short_claim"]) - float(drop.options["long_claim"])) > 0.02
    assert drop.lower < 0.0 < drop.upper
    assert drop.p > 0.05


def leads(horizon: np.ndarray) -> Leads:
    n = len(horizon)
    law = Distribution.normal(np.zeros(n), np.ones(n))
    held = EvalSet.checked(child(0, "leads").normal(size=n), law, horizon=horizon)
    found: Leads = View(held).get("leads")
    return found


def test_many_horizons_are_put_into_consecutive_cells_of_like_size() -> None:
    found = leads(np.tile(np.arange(1, 289), 10))
    assert len(found.labels) == MAX_CELLS
    assert found.labels[0] == "1–24 steps"
    np.testing.assert_array_equal(np.bincount(found.grouping.codes), 240)
    np.testing.assert_allclose(found.middle[:2], [12.5, 36.5])
    uneven = leads(np.repeat(np.arange(1.0, 31.0), np.r_[600, [40] * 29]))
    counts = np.bincount(uneven.grouping.codes)
    assert uneven.labels[0] == "1 step"
    assert counts[1:].min() >= 80
    assert counts[1:].max() <= 200


def test_horizons_of_few_rows_are_said_and_not_drawn() -> None:
    horizon = np.repeat([0.0, 1.0, 2.0, 7.0], [50, 60, 70, MIN_ROWS_OF_CELL - 1])
    found = leads(horizon)
    assert found.labels == ("0 steps", "1 step", "2 steps")
    assert found.left_out == f"Horizons of fewer than {MIN_ROWS_OF_CELL} rows are left out: 7."
    assert found.view.evalset.n == 180
    n = len(horizon)
    law = Distribution.normal(np.zeros(n), np.ones(n))
    held = EvalSet.checked(child(0, "few").normal(size=n), law, horizon=horizon)
    (table,) = lead_tables(held)
    assert "left out: 7." in table.notes
    np.testing.assert_array_equal(table.columns["n"], [50, 60, 70])
    assert all("left out: 7." in curve.notes for curve in lead_curves(held))


def test_copies_count_as_rows_of_a_cell_and_important_rows_as_kish_has_it() -> None:
    rng = child(0, "copies of cells")
    horizon = np.repeat(np.arange(1.0, 31.0), 40)
    counts = np.where(horizon <= 3, 9, np.where(horizon == 30, 0, 1))
    counts[horizon == 29] = np.arange(40) < 6  # with its neighbours
    law = Distribution.normal(np.zeros(1_200), np.ones(1_200))
    weighted = EvalSet.checked(rng.normal(size=1_200), law, horizon=horizon, weights=counts)
    repeated = weighted.take(np.repeat(np.arange(weighted.n), weighted.weights.values.astype(int)))
    repeated = replace(repeated, weights=None)
    (one,), (other,) = lead_tables(weighted), lead_tables(repeated)
    assert one.columns.pop("lead_time").tolist() == other.columns.pop("lead_time").tolist()
    for name, column in one.columns.items():
        np.testing.assert_allclose(column, other.columns[name], rtol=1e-9)
    few = EvalSet.checked(rng.normal(size=60), law.take(np.arange(60)), horizon=np.arange(60) % 4)
    assert not lead_tables(few)
    (table,) = lead_tables(replace(few, weights=Weights(np.full(60, 2.0))))
    assert table.columns["n"].tolist() == [30.0] * 4
    important = ahead(
        "important",
        weights=np.tile([1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0], 100),
        weights_kind="importance",
    )
    (table,) = lead_tables(important)
    np.testing.assert_allclose(table.columns["n"], [160.0] * 4)  # (Σw)²/Σw² of 100 ones and threes


def lead_tables(held: EvalSet) -> list[ResultTable]:
    found = evaluate(held, metrics=["empirical_coverage"])
    return [table for table in tables_of(found) if table.name == "lead_times"]


def lead_curves(held: EvalSet) -> list[Curve]:
    found = evaluate(held, metrics=["empirical_coverage"])
    return [curve for curve in curves_of(found) if curve.name.startswith("lead_time")]


@pytest.mark.parametrize(
    ("horizon", "reason"),
    [
        (None, "the table has no horizon"),
        (np.ones(60), "all rows have one lead time"),
        (np.repeat([1, 2], [50, 10]), "fewer than two lead times have 30 rows"),
    ],
)
def test_why_there_is_no_answer(horizon: Any, reason: str) -> None:
    law = Distribution.normal(np.zeros(60), np.ones(60))
    held = EvalSet.checked(child(0, "reasons").normal(size=60), law, horizon=horizon)
    for record in known(held).values():
        assert math.isnan(record.value)
        assert record.reason == reason
    assert not lead_tables(held)
    assert not lead_curves(held)


def test_rows_that_are_all_covered_tell_of_no_drop() -> None:
    held = ahead("all covered", stated=lambda lead: 20.0 + 0.0 * lead)
    assert {record.reason for record in known(held).values()} == {"every row is covered"}
    assert profiles(held)["empirical_coverage"].value.tolist() == [1.0] * 4


def test_neither_order_nor_units_nor_copies_matter() -> None:
    held = ahead("laws", origins=60)
    before = known(held)
    turned = held.take(child(1, "order").permutation(held.n))
    counts = child(2, "copies").integers(0, 4, held.n)
    weighted = EvalSet.checked(held.y, held.predictions, horizon=held.horizon, weights=counts)
    repeated = held.take(np.repeat(np.arange(held.n), counts))
    (law,) = held.predictions
    assert isinstance(law, Distribution)
    centre, sd = centre_and_sd(law)
    for scale in (-1.0, 250.0):
        moved = Distribution.normal(7.0 + scale * centre, abs(scale) * sd)
        other = EvalSet.checked(7.0 + scale * held.y, moved, horizon=held.horizon)
        same(before, known(other))
    same(before, known(turned))
    same(known(weighted), known(repeated))


def assess(held: EvalSet) -> tuple[Any, ...]:
    """The findings of a set whose rows may depend in time."""
    return howsure.assess(
        howsure.Table(held.y, held.predictions[0], time=held.time, horizon=held.horizon),
        options=howsure.Options(trials=False),
    ).findings


def same(one: dict[str, Record], other: dict[str, Record]) -> None:
    for name in MEASURES:
        a, b = one[name], other[name]
        for part in ("value", "lower", "upper", "p", "standard_error", "n"):
            assert getattr(a, part) == pytest.approx(getattr(b, part), rel=1e-7, nan_ok=True), part


def test_the_finding_names_the_fall() -> None:
    held = ahead("fall", origins=1_000, steps=6, stated=lambda lead: 1.0 - 0.08 * lead)
    told, _ = examine(held)
    found = {each.id: each for each in told}["lead_time"]
    assert found.state == "bad"
    assert found.sentence.startswith("Coverage falls with lead time: ")
    assert found.effect < -0.05
    assert found.lower < found.effect < found.upper < 0.0


def test_the_finding_sees_a_fall_through_overlapping_forecasts() -> None:
    lead = np.tile(np.arange(1, 7), 400)
    times = np.repeat(np.arange(400), 6) + lead
    held = ahead("seen", 400, 6, stated=lambda lead: 1.0 - 0.4 * lead / 6, time=times)
    (found,) = (each for each in assess(held) if each.id == "lead_time")
    assert found.state == "bad"
    assert found.sentence.startswith("Coverage falls with lead time: ")


def test_the_finding_names_the_one_lead_time_that_is_off() -> None:
    held = ahead(
        "one", origins=1_000, steps=7, memory=0.0, stated=lambda lead: 1.0 - 0.4 * (lead == 4)
    )
    told, _ = examine(held)
    found = {each.id: each for each in told}["lead_time"]
    assert (found.state, found.where) == ("bad", "4 steps")
    assert found.sentence.startswith("At 4 steps, ")


def test_a_right_model_of_many_rows_is_good_and_no_horizon_is_silent() -> None:
    held = ahead("right", origins=4_000, memory=0.0)
    told, _ = examine(held)
    found = {each.id: each for each in told}["lead_time"]
    assert found.state == "good"
    assert found.sentence.endswith("no lead time differs by more than 3 points.")
    _, silent = examine(replace(held, horizon=None))
    assert silent["lead_time"] == "the table has no horizon"


# ---- overlapping forecasts -----------------------------------------------------------------------

STEPS, MEMORY = 6, 0.8
TRUE_CRPS = np.sqrt((1.0 - MEMORY ** (2.0 * np.arange(1, STEPS + 1))) / (1.0 - MEMORY**2)) / (
    math.sqrt(math.pi)
)


def overlapping(name: str, number: int, known_by: str, origins: int = 300) -> EvalSet:
    lead = np.tile(np.arange(STEPS) + 1, origins)
    origin = np.repeat(np.arange(origins), STEPS)
    beside: dict[str, Any] = {"time": {"time": origin + lead}, "cutoff": {"cutoff": origin}}
    more = beside.get(known_by, {})
    return dated(ahead(f"{name} {number}", origins, STEPS, MEMORY, horizon=lead, **more))


def holds(held: EvalSet) -> tuple[bool, bool, float]:
    """Whether both bands hold the truth at every lead time, and the finding's p-value."""
    found = profiles(held)
    inside = [
        bool(((found[name].lower <= true) & (true <= found[name].upper)).all())
        for name, true in (("empirical_coverage", np.full(STEPS, 0.9)), ("crps", TRUE_CRPS))
    ]
    p = [record.p for record in known(held).values()]
    return inside[0], inside[1], min(2.0 * min(p), 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("known_by", ["time", "cutoff"])
def test_bands_hold_where_forecasts_overlap_in_time(known_by: str) -> None:
    """A small version of the rates below."""
    drawn = [holds(overlapping("few", number, known_by)) for number in range(20)]
    coverage, crps, p = (np.array(part) for part in zip(*drawn, strict=True))
    assert coverage.sum() >= 17
    assert crps.sum() >= 17
    assert (p < 0.05).sum() <= 3


@pytest.mark.rate
@pytest.mark.parametrize("known_by", ["time", "cutoff"])
def test_the_rates_of_bands_and_of_the_finding(known_by: str) -> None:
    drawn = [holds(overlapping("many", number, known_by)) for number in range(400)]
    coverage, crps, p = (np.array(part) for part in zip(*drawn, strict=True))
    error = 3 * math.sqrt(0.05 * 0.95 / 400)
    assert coverage.mean() >= 0.95 - error
    assert crps.mean() >= 0.95 - error
    assert (p < 0.05).mean() <= 0.05 + error


@pytest.mark.rate
def test_without_a_time_bands_are_too_narrow() -> None:
    """Rows count as independent: the page of the docs says that a time is needed."""
    drawn = [holds(overlapping("untimed", number, "")) for number in range(200)]
    coverage, crps, _ = (np.array(part) for part in zip(*drawn, strict=True))
    assert coverage.mean() < 0.92
    assert crps.mean() < 0.92
