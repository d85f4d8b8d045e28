"""Persistence, the seasonal naive forecast, and skill against them or a named model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import howsure
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.predictions import Distribution, EvalSet, Intervals, Samples, content_order
from howsure.stats.binomial import clopper_pearson
from howsure.topics.baseline import MIN_CHANGES, naive_quantiles, with_baselines
from howsure.topics.skill import MIDPOINTS, TOLERANCE
from howsure.verdict.dependence import follow

LEVELS = np.array([0.1, 0.5, 0.8])


def by_definition(
    y: Any, time: Any, series: Any, lead: Any, season: int, levels: Any = LEVELS
) -> Any:
    """Row by row, from all rows; quantiles of the counts at which they are taken again."""
    known = {(s, t): v for s, t, v in zip(series, time, y, strict=True)}
    taken = [MIN_CHANGES]
    while taken[-1] < len(y):
        taken.append(max(taken[-1] + 1, int(1.1 * taken[-1])))
    table = np.full((len(y), len(levels)), np.nan)
    for row, (s, t, h) in enumerate(zip(series, time, lead, strict=True)):
        lag = season * math.ceil(h / season)
        past = sorted(u for k, u in known if k == s and u <= t - h and (s, u - lag) in known)
        changes = [known[s, u] - known[s, u - lag] for u in past]
        if (s, t - lag) in known and len(changes) >= MIN_CHANGES:
            count = max(each for each in taken if each <= len(changes))
            table[row] = known[s, t - lag] + np.quantile(changes[:count], levels)
    return table


@pytest.mark.parametrize("season", [1, 4])
def test_naive_quantiles_are_those_of_the_definition(season: int) -> None:
    rng = child(1, "naive", season)
    series = np.repeat(["a", "b"], 120)
    time = np.tile(np.arange(120), 2)
    kept = rng.permutation(240)[:200]  # with gaps, in no order
    y, lead = rng.normal(size=240).cumsum(), rng.integers(1, 7, size=240)
    rows = [each[kept] for each in (y, time, series, lead)]
    expected = by_definition(*rows, season)
    made = naive_quantiles(rows[0], rows[1], LEVELS, lead=rows[3], season=season, series=rows[2])
    np.testing.assert_allclose(made, expected, rtol=1e-12)
    assert 20 < np.isfinite(made).all(axis=1).sum() < 180


def test_nothing_of_the_future_is_known() -> None:
    y = child(2, "naive").normal(size=200).cumsum()
    other = np.where(np.arange(200) < 150, y, y + 100.0)
    made, changed = (naive_quantiles(each, np.arange(200), LEVELS, lead=5) for each in (y, other))
    np.testing.assert_array_equal(made[:155], changed[:155])
    assert (made[155:] != changed[155:]).any()


@pytest.mark.parametrize(
    ("days", "steps"),
    [("2015-01-31", "M"), ("2015-01-01", "D")],
)
def test_months_are_steps(days: str, steps: str) -> None:
    """A month before is the month before, of 28 days or 31."""
    moments = np.arange(np.datetime64("2015-01", "M"), np.datetime64("2023-01", "M"))
    time = (moments + 1).astype("datetime64[D]") - 1 if steps == "M" else moments
    y = child(3, "months").normal(size=len(time))
    made = naive_quantiles(y, time.astype("datetime64[ns]"), LEVELS, lead=1)
    np.testing.assert_allclose(made, naive_quantiles(y, np.arange(len(y)), LEVELS, lead=1))
    assert np.isfinite(made[-1]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lead": 0}, "lead must be whole numbers of at least 1, got 0"),
        ({"lead": 1.5}, "lead must be whole numbers of at least 1, got 1.5"),
        ({"lead": [1, 2]}, "lead must be one number or 100 as y has rows, got 2"),
        ({"lead": 1, "season": 0}, "season must be a whole number of at least 1, got 0"),
        (
            {"lead": 1, "series": ["a"] * 99},
            "series must have 100",
        ),
    ],
)
def test_what_makes_no_naive_forecast_is_refused(options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        naive_quantiles(np.arange(100.0), np.arange(100), LEVELS, **options)


def test_two_values_at_one_time_need_series() -> None:
    time = np.repeat(np.arange(50), 2)
    with pytest.raises(
        InputError, match=r"two \(first at row 1\): name the series with .*series=COLUMN"
    ):
        naive_quantiles(np.arange(100.0), time, LEVELS, lead=1)
    same = naive_quantiles(np.repeat(np.arange(50.0), 2), time, LEVELS, lead=1)
    np.testing.assert_array_equal(same[0::2], same[1::2])


# ---- skill ---------------------------------------------------------------------------------------


def walk(n: int, *names: Any) -> tuple[Any, Any]:
    """A season and a walk, and what a model knows of it one step ahead."""
    rng = child(4, "walk", *names)
    season = 3.0 * np.sin(2.0 * np.pi * np.arange(n) / 7)
    noise = rng.normal(size=n)
    return season + noise, season


def test_skill_is_one_less_the_ratio_of_the_scores_where_both_predict() -> None:
    y, season = walk(300)
    held = EvalSet.checked(y, Distribution.normal(season, np.ones(300)), time=np.arange(300))
    (held,) = with_baselines([held], lead=2, season=7)
    records = evaluate(held, metrics=["persistence_skill", "seasonal_skill"]).records
    own = season[:, None] + stats.norm.ppf(MIDPOINTS)
    for record, lag in zip(records, (1, 7), strict=True):
        other = naive_quantiles(y, np.arange(300), MIDPOINTS, lead=2, season=lag)
        rows = np.isfinite(other).all(axis=1)
        losses = [
            np.mean([stats_pinball(y[rows], q[rows, k], a) for k, a in enumerate(MIDPOINTS)])
            for q in (own, other)
        ]
        assert record.value == pytest.approx(1.0 - losses[0] / losses[1], rel=1e-12)
        assert record.n == pytest.approx(rows.sum())
        assert record.lower < record.value < record.upper
        assert record.options["score"] == "pinball loss"


def stats_pinball(y: Any, quantile: Any, level: float) -> Any:
    off = y - quantile
    return np.maximum(level * off, (level - 1.0) * off)


def test_intervals_are_compared_by_their_own_score() -> None:
    y, season = walk(300, "intervals")
    held = EvalSet.checked(
        y, Intervals(season - 1.5, season + 1.5, coverage=0.8), time=np.arange(300)
    )
    (held,) = with_baselines([held], lead=1, season=7)
    (record,) = evaluate(held, metrics=["seasonal_skill"]).records
    ends = naive_quantiles(y, np.arange(300), [0.1, 0.9], lead=1, season=7)
    rows = np.isfinite(ends).all(axis=1)
    own, other = (
        np.mean(howsure.metrics.interval_score(y[rows], low[rows], high[rows], coverage=0.8))
        for low, high in ((season - 1.5, season + 1.5), ends.T)
    )
    assert record.value == pytest.approx(1.0 - own / other, rel=1e-12)
    assert record.options["score"] == "interval score"


def test_weights_are_repeated_rows() -> None:
    y, season = walk(120, "weights")
    time, counts = np.arange(120), 1 + np.arange(120) % 3
    law = Distribution.normal(season, np.ones(120))
    held = EvalSet.checked(y, law, time=time, weights=counts)
    again = held.take(np.repeat(np.arange(120), counts))
    again = EvalSet.checked(again.y, again.predictions, time=again.time)
    made = [with_baselines([each], lead=1)[0] for each in (held, again)]
    one, other = (evaluate(each, metrics=["persistence_skill"]).records[0] for each in made)
    assert one.value == pytest.approx(other.value, rel=1e-12)
    assert one.standard_error == pytest.approx(other.standard_error, rel=1e-9)
    assert one.n == pytest.approx(other.n)


def models(n: int = 400) -> dict[str, Any]:
    y, season = walk(n, "models")
    laws = {"right": (season, 1.0), "wide": (season, 3.0), "idle": (0.0 * season, 2.3)}
    return {"y": y, **{k: Distribution.normal(m, np.full(n, s)) for k, (m, s) in laws.items()}}


@pytest.mark.parametrize("members", [5, 10])
def test_few_members_are_no_loss_against_their_distribution(members: int) -> None:
    rng = child(0, "baseline of few members", members)
    n, law = 3_000, Distribution.normal(np.zeros(3_000), np.ones(3_000))
    y, draws = rng.normal(size=n), Samples(rng.normal(size=(n, members)))
    sets = [EvalSet.checked(y, each, model=name) for name, each in (("law", law), ("few", draws))]
    _, few = with_baselines(sets, baseline="law")
    (record,) = evaluate(few, metrics=["baseline_skill"]).records
    assert record.lower < 0.0 < record.upper
    assert abs(record.value) < 0.05


def test_a_model_is_judged_beside_the_one_that_is_named() -> None:
    data = models()
    y = data.pop("y")
    result = howsure.assess(y, data, options=howsure.Options(baseline="idle", trials=False))
    told = {each.model: each for each in result.findings if each.id == "skill"}
    assert told["right"].state == "good"
    assert "than idle" in told["right"].sentence
    assert "a climatology baseline" in told["idle"].sentence
    right = evaluate(
        with_baselines(
            [EvalSet.checked(y, law, model=name) for name, law in data.items()], baseline="idle"
        )[0],
        metrics=["baseline_skill"],
    ).records[0]
    pinball = [
        np.mean([stats_pinball(y, data[name].quantile([a])[:, 0], a) for a in MIDPOINTS])
        for name in ("right", "idle")
    ]
    assert right.value == pytest.approx(1.0 - pinball[0] / pinball[1], rel=1e-12)


def test_a_loss_against_what_anyone_could_have_predicted_is_told() -> None:
    y, _ = walk(600, "loss")
    flat = Distribution.normal(np.zeros(600), np.full(600, y.std()))
    hours = np.datetime64("2024-01-01", "D") + np.arange(600)
    result = howsure.assess(y, flat, time=hours, options=howsure.Options(lead=1, trials=False))
    (finding,) = (each for each in result.findings if each.id == "skill")
    assert finding.state == "bad"
    assert "than the seasonal naive forecast (a week before)" in finding.sentence
    assert "(a week before) is better" in result.answer.sentence
    alone = howsure.assess(y, flat, time=hours, options=howsure.Options(trials=False))
    assert all("naive" not in each.sentence for each in alone.findings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"baseline": "seasnal"}, "baseline must be one of climatology, persistence, seasonal, m"),
        ({"lead": 0}, "lead must be a whole number of at least 1, got 0"),
        ({"lead": 1, "season": 1}, "season must be a whole number of at least 2, got 1"),
        ({"season": 7}, r"season 7 cannot be used: it needs the lead time .*Options\(lead=N\)"),
        ({"baseline": "seasonal"}, r"baseline 'seasonal' cannot be made: it needs the lead time"),
        (
            {"baseline": "seasonal", "lead": 1},
            r"no season was found in the times: give options=howsure\.Options\(season=",
        ),
        (
            {"baseline": "persistence", "lead": 99},
            "no row has 30 earlier changes over its lead time",
        ),
    ],
)
def test_a_baseline_that_cannot_be_made_is_refused(options: Any, message: str) -> None:
    y = np.arange(100.0)
    held = [EvalSet.checked(y, Distribution.normal(y, y + 1.0), time=np.arange(100), model="m")]
    with pytest.raises(InputError, match=message):
        with_baselines(held, **options)


def test_a_lead_needs_times() -> None:
    held = [EvalSet.checked([1.0, 2.0], Intervals([0.0, 0.0], [3.0, 3.0], coverage=0.9))]
    with pytest.raises(InputError, match="lead 1 cannot be used: it needs the time of each row"):
        with_baselines(held, lead=1)


def test_horizons_of_no_step_leave_naive_forecasts_out() -> None:
    y = np.arange(100.0)
    ahead = np.arange(100) % 3
    law = Distribution.normal(y, y + 1.0)
    held = EvalSet.checked(y, law, time=np.arange(100), horizon=ahead)
    assert with_baselines([held])[0].baselines == ()
    later = EvalSet.checked(y, law, time=np.arange(100), horizon=ahead + 1)
    assert [each.kind for each in with_baselines([later])[0].baselines] == ["persistence"]


def losses(n: int, phi: float, runs: int) -> tuple[int, int]:
    """Of models whose skill is −2 %: losses that are proven, and intervals that hold."""
    noise = phi
    proven = held_by = 0
    k = _AT_TOLERANCE[phi]
    for run in range(runs):
        rng = child(5, "size", phi, n, run)
        season = 1.5 * np.sin(2.0 * np.pi * np.arange(n) / 7)
        y, e = season + _ar(rng, n, phi), _ar(rng, n, noise)
        law = Distribution.normal(season + k * e, np.full(n, math.hypot(1.0, k)))
        (made,) = with_baselines([EvalSet.checked(y, law, time=np.arange(n))], lead=3, season=7)
        (made,), _ = follow([made], content_order([made]))
        (record,) = evaluate(made, metrics=["seasonal_skill"]).records
        proven += float(record.options["p_of_loss"]) < 0.05
        held_by += record.lower <= -TOLERANCE <= record.upper
    return proven, held_by


def _ar(rng: Any, n: int, phi: float) -> Any:
    from scipy.signal import lfilter

    return lfilter([math.sqrt(1.0 - phi**2)], [1.0, -phi], rng.normal(size=n + 200))[200:]


_AT_TOLERANCE = {0.0: 1.03, 0.8: 0.81}
"""By how many standard deviations of noise a model's skill is −2 %, found on 100,000 rows."""


def test_losses_within_the_tolerance_are_seldom_proven() -> None:
    proven, held_by = losses(300, 0.8, 60)
    assert clopper_pearson(proven, 60)[0] <= 0.05
    assert clopper_pearson(held_by, 60)[1] >= 0.93


@pytest.mark.rate
@pytest.mark.parametrize("n", [300, 1000, 4000])
@pytest.mark.parametrize("phi", [0.0, 0.8])
def test_size_under_dependence(phi: float, n: int) -> None:
    proven, held_by = losses(n, phi, 400)
    assert clopper_pearson(proven, 400)[0] <= 0.05
    assert clopper_pearson(held_by, 400)[1] >= 0.93


@pytest.mark.parametrize("law", ["translation", "scale", "reflection", "permutation"])
def test_laws_of_skill_against_baselines(law: str) -> None:
    y, season = walk(300, "laws")
    other = 0.5 * season
    order = child(6, "laws").permutation(300)

    def skills(y: Any, means: tuple[Any, Any], sd: float, time: Any) -> list[float]:
        sets = [
            EvalSet.checked(y, Distribution.normal(m, np.full(300, sd)), time=time, model=name)
            for name, m in zip(("own", "other"), means, strict=True)
        ]
        naive = with_baselines(sets, lead=2, season=7)[0]
        named = with_baselines(sets, baseline="other")[0]
        asked = ("persistence_skill", "seasonal_skill")
        records = [*evaluate(naive, metrics=asked).records]
        records += evaluate(named, metrics=["baseline_skill"]).records
        return [value for r in records for value in (r.value, r.standard_error)]

    time = np.arange(300)
    before = skills(y, (season, other), 1.0, time)
    after = {
        "translation": lambda: skills(y + 40, (season + 40, other + 40), 1.0, time),
        "scale": lambda: skills(4 * y, (4 * season, 4 * other), 4.0, time),
        "reflection": lambda: skills(-y, (-season, -other), 1.0, time),
        "permutation": lambda: skills(y[order], (season[order], other[order]), 1.0, time[order]),
    }[law]()
    np.testing.assert_allclose(after, before, rtol=1e-9)


def test_a_horizon_that_serves_no_naive_forecast_is_no_fault() -> None:
    """Several rows at a time, or parts of a step: a column may be called so by chance."""
    y = child(7, "guessed").normal(size=120)
    table = {"y": y, "mean": 0 * y, "sd": 0 * y + 1}
    for time, horizon in (
        (np.arange(120) // 4, np.arange(120) % 4 + 1),
        (np.arange(120), np.full(120, 1.5)),
    ):
        held = howsure.assess(
            {**table, "time": time, "horizon": horizon}, options=howsure.Options(trials=False)
        )
        assert math.isnan(held.value("persistence_skill"))
    with pytest.raises(InputError, match="lead 1 cannot be used: y must be one value at each time"):
        howsure.assess({**table, "time": np.arange(120) // 4}, options=howsure.Options(lead=1))


@pytest.mark.parametrize(
    ("step", "lead", "words"),
    [("h", 24, "a week"), ("h", 200, "2 weeks"), ("D", 7, "a week"), ("M", 1, "a year")],
)
def test_the_past_is_called_as_long_as_it_is(step: str, lead: int, words: str) -> None:
    n = 800
    y = np.arange(float(n))
    time = np.datetime64("2000-01", step) + np.arange(n)
    law = Distribution.normal(y, y + 1.0)
    (held,) = with_baselines([EvalSet.checked(y, law, time=time)], lead=lead)
    names = {each.kind: each.name for each in held.baselines}
    assert names["seasonal"] == f"the seasonal naive forecast ({words} before)"
    assert names["persistence"] == f"persistence ({lead} step{'s' * (lead > 1)} before)"
    (other,) = with_baselines([EvalSet.checked(y, law, time=np.arange(n))], lead=9, season=7)
    assert "(14 steps before)" in other.baselines[1].name


def test_models_share_what_is_made_of_y_alone() -> None:
    y, season = walk(200, "shared")
    sets = [
        EvalSet.checked(y, Distribution.normal(season + k, np.ones(200)), time=np.arange(200))
        for k in range(3)
    ]
    made = with_baselines(sets, lead=1, season=7)
    assert all(each.baselines[0] is made[0].baselines[0] for each in made)


def test_rows_without_a_past_say_so() -> None:
    y, season = walk(200, "part")
    law = Distribution.normal(season, np.ones(200))
    (held,) = with_baselines([EvalSet.checked(y, law, time=np.arange(200))], lead=1)
    (record,) = evaluate(held.take(np.arange(20)), metrics=["persistence_skill"]).records
    assert record.reason == "no row has 30 earlier changes"
