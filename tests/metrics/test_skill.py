"""Skill against the distribution of y, and what forecasts know of their own rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import signal, stats

import howsure
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.engine.catalogue import catalogue
from howsure.engine.measure import evaluate
from howsure.engine.view import View
from howsure.metrics import (
    climatology_crps,
    interval_score,
    pairing_gain,
    pinball_loss,
    skill_score,
)
from howsure.predictions import EvalSet
from howsure.topics.crps import crps_samples
from howsure.topics.crps_closed import crps_normal
from howsure.topics.skill import (
    MIDPOINTS,
    _climatology_in_groups,
    _error_of_sum,
    climatology_pinball,
)
from howsure.verdict.family import examine

SKILLS = ("crps_skill", "interval_skill", "pairing_gain")


def skewed(n: int, *names: object) -> np.ndarray:
    return np.exp(child(0, "skill", *names).normal(size=n))


def midquantile(values: np.ndarray, level: float) -> float:
    """Quantile of a step function, halfway where it is flat."""
    ordered, count = np.sort(values), level * len(values)
    low = ordered[max(math.ceil(count - 1e-9) - 1, 0)]
    high = ordered[min(math.floor(count + 1e-9), len(values) - 1)]
    return float((low + high) / 2)


def records(model: EvalSet) -> dict[str, howsure.core.records.Record]:
    found = evaluate(model, coverages=(0.9,), metrics=SKILLS)
    return {record.metric: record for record in found.records}


def test_the_distribution_of_y_scores_as_an_ensemble_of_the_other_rows() -> None:
    y = skewed(30)
    others = np.array([np.delete(y, row) for row in range(30)])
    fair = [crps_samples(y[row : row + 1], others[row : row + 1])[0] for row in range(30)]
    rows = climatology_crps(y)
    assert rows.mean() == pytest.approx(np.mean(fair), rel=1e-12)
    pairs = np.abs(y[:, None] - y)
    assert rows == pytest.approx(pairs.sum(1) / 29 - pairs.sum() / (30 * 29) / 2, rel=1e-12)


@pytest.mark.parametrize("level", [0.05, 0.1, 1 / 3, 0.5, 0.77, 0.95])
def test_a_quantile_of_y_scores_between_in_sample_and_leave_one_out(level: float) -> None:
    y = np.round(skewed(30, "pinball"), 1)  # with ties
    inside = pinball_loss(y, np.full(30, midquantile(y, level)), level=level)
    left = np.array([midquantile(np.delete(y, row), level) for row in range(30)])
    outside = pinball_loss(y, left, level=level)
    expected = (inside + outside) / 2
    assert climatology_pinball(y, level=level) == pytest.approx(expected, rel=1e-12)


def test_scores_of_the_distribution_of_y_are_unbiased() -> None:
    """In-sample they would flatter by 1/n, 5 % here, and leave-one-out overdo it."""
    draws = child(1, "unbiased").normal(size=(4_000, 20))
    crps = np.array([climatology_crps(y).mean() for y in draws])
    truth = 1 / math.sqrt(math.pi)
    assert crps.mean() == pytest.approx(truth, abs=3.5 * crps.std() / math.sqrt(len(crps)))
    pinball = np.array([climatology_pinball(y, level=0.3).mean() for y in draws[:2_000]])
    assert pinball.mean() == pytest.approx(stats.norm.pdf(stats.norm.ppf(0.3)), rel=0.012)


def test_gain_from_pairing_is_that_of_all_pairs() -> None:
    rng = child(2, "pairing")
    y = rng.normal(size=25)
    table = np.sort(y[:, None] * 0.5 + rng.normal(size=(25, 3)), axis=1)
    levels = np.array([0.1, 0.5, 0.8])
    loss = np.array(
        [
            [
                pinball_loss(y[i : i + 1], table[j : j + 1, k], level=level)[0]
                for k, level in enumerate(levels)
            ]
            for i in range(25)
            for j in range(25)
        ]
    )
    loss = loss.sum(axis=1).reshape(25, 25)
    strange = (loss.sum() - np.trace(loss)) / (25 * 24)
    gain = pairing_gain(y, table, levels)
    assert gain.value == pytest.approx(1 - np.trace(loss) / 25 / strange, rel=1e-12)


def test_gain_from_pairing_is_of_a_sample_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = child(2, "many")
    mean = rng.normal(size=900)
    model = EvalSet(
        y=mean + rng.normal(size=900),
        predictions=(howsure.Distribution.normal(mean, np.ones(900)),),
    )
    of_all = records(model)["pairing_gain"]
    few = replace(catalogue()["pairing_gain"], most_rows=400)
    entries = {**catalogue(), "pairing_gain": few}
    monkeypatch.setattr("howsure.engine.measure.catalogue", lambda: entries)
    record = records(model)["pairing_gain"]
    assert (of_all.exact, of_all.n, record.exact, record.n) == ("rows", 900, "sample", 400)
    expected = evaluate(View(model).take_at_most(400).evalset, metrics=["pairing_gain"]).records[0]
    assert (record.value, record.standard_error) == (expected.value, expected.standard_error)
    assert record.added_error == pytest.approx(record.standard_error * math.sqrt(1 - 400 / 900))
    assert abs(record.value - of_all.value) < 3 * record.added_error


@pytest.mark.parametrize("measure", ["crps", "pairing"])
def test_influence_is_that_of_a_jackknife(measure: str) -> None:
    rng = child(3, "jackknife")
    x = rng.normal(size=400)
    y = x + rng.normal(size=400)
    scores = crps_normal(y, x, np.ones(400))
    table = x[:, None] + stats.norm.ppf(MIDPOINTS)

    def value(rows: np.ndarray) -> float:
        if measure == "crps":
            return skill_score(scores[rows], climatology_crps(y[rows])).value
        return pairing_gain(y[rows], table[rows], MIDPOINTS).value

    every = np.arange(400)
    left = np.array([value(np.delete(every, row)) for row in range(400)])
    if measure == "crps":
        influence = skill_score(scores, climatology_crps(y)).influence
    else:
        influence = pairing_gain(y, table, MIDPOINTS).influence
    assert influence is not None
    assert influence == pytest.approx((left.mean() - left) * 399, abs=0.03)


@pytest.mark.parametrize("kind", ["distribution", "samples", "quantiles", "intervals"])
def test_frequency_weights_are_rows_that_repeat(kind: str) -> None:
    rng = child(4, "weights", kind)
    y, times = np.round(rng.normal(size=40), 1), rng.integers(1, 4, 40)
    mean = np.round(y / 2 + rng.normal(size=40) / 2, 1)
    draws = mean[:, None] + child(4, "draws").normal(size=(40, 15))
    made = {
        "distribution": lambda r: howsure.Distribution.normal(mean[r], np.ones(len(r))),
        "samples": lambda r: howsure.Samples(draws[r]),
        "quantiles": lambda r: howsure.Quantiles([0.1, 0.5, 0.9], mean[r, None] + [-1.0, 0.0, 1.5]),
        "intervals": lambda r: howsure.Intervals(mean[r] - 1, mean[r] + 1, coverage=0.9),
    }[kind]
    rows = np.arange(40)
    repeated = np.repeat(rows, times)
    weighted = records(EvalSet.checked(y, made(rows), weights=times, weights_kind="frequency"))
    plain = records(EvalSet.checked(y[repeated], made(repeated)))
    for name in SKILLS:
        assert weighted[name].value == pytest.approx(plain[name].value, rel=1e-9, nan_ok=True)
        assert weighted[name].lower == pytest.approx(plain[name].lower, rel=1e-6, nan_ok=True)
    assert not math.isnan(weighted["interval_skill" if kind == "intervals" else "crps_skill"].value)


def test_one_model_in_several_forms_has_one_skill() -> None:
    rng = child(5, "forms")
    x = rng.normal(size=2_000)
    y = x + rng.normal(size=2_000)
    law = howsure.Distribution.normal(x, np.ones(2_000))
    levels = np.arange(1, 100) / 100
    exact = records(EvalSet.checked(y, law))
    coarse = records(EvalSet.checked(y, howsure.Quantiles(levels, law.quantile(levels))))
    drawn = records(EvalSet.checked(y, howsure.Samples(x[:, None] + rng.normal(size=(2_000, 200)))))
    for other in (coarse, drawn):
        for name in SKILLS:
            assert other[name].value == pytest.approx(exact[name].value, abs=0.012), name
    low, high = exact["crps_skill"].lower, exact["crps_skill"].upper
    assert low < 1 - math.sqrt(0.5) < high


@pytest.mark.parametrize("members", [2, 5, 20])
def test_few_members_cost_no_skill(members: int) -> None:
    """A perfect ensemble has the skill of its distribution, by closed form of normal laws."""
    n = 3_000
    rng = child(0, "skill of few members", members)
    known = 0.75 * rng.normal(size=n)
    y = known + rng.normal(size=n)
    drawn = EvalSet.checked(y, howsure.Samples(known[:, None] + rng.normal(size=(n, members))))
    record = records(drawn)["crps_skill"]
    expected = 1.0 - 1.0 / math.hypot(1.0, 0.75)
    assert record.lower < expected < record.upper
    assert record.value == pytest.approx(expected, abs=0.05)
    fair = crps_samples(y, drawn.predictions[0].numbers()["samples"])
    assert record.value == pytest.approx(1.0 - fair.mean() / climatology_crps(y).mean(), rel=1e-9)


@pytest.mark.parametrize("shape", ["normal", "lognormal"])
def test_the_distribution_of_y_itself_has_no_skill(shape: str) -> None:
    """The interval of its skill covered 0 in half of all tables where pairs were not counted."""
    law = stats.norm() if shape == "normal" else stats.lognorm(1.0)
    inside = np.zeros(2)
    for seed in range(60):
        y = law.rvs(size=300, random_state=child(seed, "know nothing", shape))
        low, high = np.full(300, law.ppf(0.05)), np.full(300, law.ppf(0.95))
        model = howsure.Distribution.from_scipy(law, n=300)
        own = records(EvalSet.checked(y, model))
        band = records(EvalSet.checked(y, howsure.Intervals(low, high, coverage=0.9)))
        for place, record in enumerate((own["crps_skill"], band["interval_skill"])):
            inside[place] += record.lower <= 0 <= record.upper
            assert abs(record.value) < 0.1
        assert own["pairing_gain"].value == pytest.approx(0.0, abs=1e-12)
    assert inside.min() >= 56


def test_forecasts_that_do_not_know_their_rows_gain_nothing_from_them() -> None:
    rejected = 0
    for seed in range(200):
        rng = child(seed, "strange rows")
        y, x = rng.normal(size=100), rng.normal(size=100) * 2
        record = records(EvalSet.checked(y, howsure.Distribution.normal(x, np.exp(x / 4))))
        rejected += record["pairing_gain"].lower > 0
    assert rejected <= 11  # 2.5 % in expectation


@pytest.mark.slow
def test_what_a_slow_series_shows_in_hindsight_is_no_loss() -> None:
    """A right marginal forecast of a series of few independent rows, whose own level it misses."""
    judged = 0
    for seed in range(60):
        noise = child(seed, "slow series").normal(size=800) * math.sqrt(1 - 0.98**2)
        y = signal.lfilter([1], [1, -0.98], noise)[500:]
        law = howsure.Distribution.normal(np.zeros(300), np.ones(300))
        findings, _ = examine(EvalSet.checked(y, law, time=np.arange(300)))
        judged += any(each.id == "skill" for each in findings)
    assert judged <= 1  # of 7 that were, 5 had p < .05


def test_skill_within_groups_is_against_the_own_group() -> None:
    rng = child(7, "within")
    hour, site = rng.integers(0, 6, 300), rng.integers(0, 2, 300)
    y = 3.0 * hour + rng.normal(size=300)
    model = howsure.Distribution.normal(3.0 * hour + 0.5, np.ones(300))
    held = EvalSet.checked(y, model, groups={"site": site, "hour": hour})
    (record,) = evaluate(held, metrics=["crps_skill_within"]).records
    own = np.concatenate([climatology_crps(y[hour == each]) for each in range(6)])
    assert record.options == {"within": "hour", "columns": 2.0}  # it tells more than the site
    scores = crps_normal(y, 3.0 * hour + 0.5, np.ones(300))
    assert record.value == pytest.approx(1 - scores.mean() / own.mean(), rel=1e-12)
    assert record.lower < record.value < record.upper < 0.1
    alone = EvalSet.checked(y, model, groups={"row": np.arange(300)})
    (record,) = evaluate(alone, metrics=["crps_skill_within"]).records
    assert record.reason == "rows that are alone in their group have no distribution of y"
    (record,) = evaluate(EvalSet.checked(y, model), metrics=["crps_skill_within"]).records
    assert record.reason == "the table has no groups"


def test_sums_of_a_small_group_do_not_drown_in_those_of_a_large_one() -> None:
    rng, codes = child(8, "scales"), np.repeat(np.arange(3, dtype=np.int16), [40, 1, 40])
    y = rng.normal(size=81) * np.where(codes == 0, 1e12, 1.0) + np.where(codes == 2, 7.0, 0.0)
    rows, noise = _climatology_in_groups(y, codes, np.ones(81))
    assert rows[41:] == pytest.approx(climatology_crps(y[41:]), rel=1e-9)
    assert rows[:40] == pytest.approx(climatology_crps(y[:40]), rel=1e-9)
    assert np.isnan(rows[40])
    pairs = np.abs(np.subtract.outer(y[:40], y[:40])) / 1e12
    half = pairs.sum() / (40 * 39) / 2
    square = 2 * y[:40].var() / 1e24 + 4 * half**2 - 2 * np.square(pairs.sum(1) / 39).mean()
    assert noise == pytest.approx(1e12 * math.sqrt(square / (2 * 40 * 39)) * 40 / 81, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_skill_within_groups_covers_that_of_the_law(seed: int) -> None:
    inside = 0
    for number in range(60):
        rng = child(seed, "covers", number)
        hour, known = rng.integers(0, 5, 200), rng.normal(size=200)
        y = hour + known + rng.normal(size=200)
        model = howsure.Distribution.normal(hour + known, np.ones(200))
        held = EvalSet.checked(y, model, groups={"hour": hour})
        (record,) = evaluate(held, metrics=["crps_skill_within"]).records
        inside += record.lower <= 1 - math.sqrt(0.5) <= record.upper
    assert inside >= 52  # 57 in expectation


def test_what_has_no_skill_says_why() -> None:
    same = records(
        EvalSet.checked([2.0, 2.0, 2.0], howsure.Distribution.normal([2, 2, 2], [1, 1, 1]))
    )
    assert same["crps_skill"].reason == (
        "the score of the reference is 0, for example because y is constant"
    )
    wide = records(EvalSet.checked([1e-300, 3e-300], howsure.Distribution.normal([0, 0], [1, 1])))
    assert wide["crps_skill"].reason == "its score is over 1e+12 times the reference's"
    alone = records(EvalSet.checked([2.0], howsure.Distribution.normal([2], [1])))
    assert math.isnan(alone["crps_skill"].value)
    assert "more than one row" in alone["crps_skill"].reason
    assert "more than one row" in alone["pairing_gain"].reason
    with pytest.raises(InputError, match="more than one row with weight, got 1"):
        climatology_crps([1.0])
    with pytest.raises(InputError, match="level must"):
        climatology_pinball([1.0, 2.0], level=1.0)


def test_skill_of_intervals_is_by_their_own_score() -> None:
    rng = child(6, "intervals")
    x = rng.normal(size=500)
    y = x + rng.normal(size=500)
    record = records(EvalSet.checked(y, howsure.Intervals(x - 1.6449, x + 1.6449, coverage=0.9)))
    ends = [climatology_pinball(y, level=level).mean() for level in (0.05, 0.95)]
    own = interval_score(y, x - 1.6449, x + 1.6449, coverage=0.9).mean()
    assert record["interval_skill"].value == pytest.approx(1 - own / (20 * sum(ends)), rel=1e-12)
    assert "no distributions" in record["crps_skill"].reason


def test_errors_of_the_reference_at_many_levels_are_those_of_a_bridge() -> None:
    """By how much quantiles of 200 rows lower the loss of these rows, alone and at 19 levels."""
    levels = np.linspace(0.05, 0.95, 19)
    saved = np.empty((400, 19))
    for run, row in enumerate(saved):
        y = child(run, "bridge").normal(size=200)
        seen = np.quantile(y, levels, method="inverted_cdf")
        for place, level in enumerate(levels):
            true = np.full(200, stats.norm.ppf(level))
            here = np.full(200, seen[place])
            losses = [pinball_loss(y, q, level=level) for q in (true, here)]
            row[place] = losses[0].mean() - losses[1].mean()
    alone, together = saved.std(axis=0), saved.sum(axis=1).std()
    assert _error_of_sum(alone, levels) == pytest.approx(together, rel=0.1)
    assert alone.sum() > 1.5 * together
