"""A perfect model's value and range: against independent samplers and closed forms."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import UnanswerableError
from howsure.core.records import Record
from howsure.core.rng import child
from howsure.engine.catalogue import arrays, catalogue
from howsure.engine.measure import evaluate
from howsure.engine.view import View
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.topics.groups import assess_groups
from howsure.verdict.nulls import BY, ROWS, WHY, with_nulls
from verdict.worlds import WORLDS, ensembles, normal, spreads, student, with_y

pytestmark = pytest.mark.draws

OWN = {
    *("characteristic_gain", "characteristic_partial_gain", "characteristic_left_gain"),
    "sscv",
}
"""With a range of their own making, which is tested with them; that of sscv is one-sided."""
STILL = {"mean_width", "median_width", "bandwidth", "sharpness", "set_size", "empty_sets"}
NEVER = {"impossible_share"}
"""What a perfect model never has: its range is 0."""
Named = Mapping[tuple[str, str], Record]


def named(records: tuple[Record, ...], group: str = "") -> Named:
    return {(r.metric, str(r.coverage)): r for r in records if r.group == group}


def nulls(held: EvalSet, **options: Any) -> Named:
    return named(with_nulls(evaluate(held, **options))[0])


def only(found: Named, metric: str) -> Record:
    return next(record for (name, _), record in found.items() if name == metric)


def perfect(record: Record) -> float:
    return record.target if math.isnan(record.null) else record.null


def ends(record: Record) -> tuple[float, float]:
    """Of the range, whose NaN end of a one-sided one is the far end of the number line."""
    low = -math.inf if math.isnan(record.null_lower) else record.null_lower
    return low, math.inf if math.isnan(record.null_upper) else record.null_upper


def holds(record: Record, value: float) -> bool:
    low, high = ends(record)
    return low - 1e-12 <= value <= high + 1e-12


def assert_rates(hits: Mapping[Any, list[bool]], tables: int, *, noise: float = 0.02) -> None:
    """Of each measure within three binomial errors, and what draws of a range add; and of all."""
    least = 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / tables) - noise
    rates = {key: float(np.mean(hit)) for key, hit in hits.items()}
    assert all(len(hit) >= 0.9 * tables for hit in hits.values())
    assert {key: rate for key, rate in rates.items() if rate < least} == {}
    assert 0.925 < np.mean(list(rates.values())) < 0.985


@pytest.mark.parametrize("world", list(WORLDS))
@pytest.mark.rate
def test_a_perfect_model_lies_in_its_range(world: str) -> None:
    """y by an independent sampler: 4 predictions of 80 rows, 50 tables of each."""
    rng = np.random.default_rng(5)
    hits: dict[tuple[str, str], list[bool]] = {}
    for _ in range(4):
        prediction, draw = WORLDS[world](rng, 80)
        held = EvalSet.checked(draw(rng), prediction)
        known = {key: r for key, r in nulls(held).items() if not math.isnan(r.null_upper)}
        names = sorted({name for name, _ in known} - OWN)
        for _ in range(50):
            for record in evaluate(with_y(held, draw(rng)), metrics=names).records:
                key = (record.metric, str(record.coverage))
                if key in known and not math.isnan(record.value):
                    hits.setdefault(key, []).append(holds(known[key], record.value))
    assert_rates(hits, 200)


@pytest.mark.parametrize("members", [5, 19])
@pytest.mark.rate
def test_a_perfect_ensemble_lies_in_its_range(members: int) -> None:
    """The null moves with the table, for y changes places with members."""
    names = ["empirical_coverage", "crps", "crps_fair", "mean_squared_z", "mae", "rmse", "ence"]
    hits: dict[tuple[str, str], list[bool]] = {}
    tables = ensembles(np.random.default_rng(6), 60, members)
    for _ in range(60):
        for key, record in nulls(next(tables), metrics=[*names, "bias", "aurc"]).items():
            if not math.isnan(record.value):
                hits.setdefault(key, []).append(holds(record, record.value))
    assert_rates(hits, 60)


@pytest.mark.slow
@pytest.mark.parametrize("world", list(WORLDS))
def test_each_answer_has_a_null_or_the_reason(world: str) -> None:
    rng = np.random.default_rng(9)
    prediction, draw = WORLDS[world](rng, 70)
    for key, record in nulls(EvalSet.checked(draw(rng), prediction)).items():
        if not math.isfinite(record.value):
            continue
        if WHY in record.options:
            assert math.isnan(record.null_lower), key
            assert (record.options[WHY] == "does not depend on y") == (key[0] in STILL), key
        else:
            assert math.isfinite(perfect(record)), key
            low, high = ends(record)
            assert low <= perfect(record) <= high, key
            if record.metric in NEVER:
                assert (low, high) == (0.0, 0.0), key
            else:
                assert record.metric in OWN or low < high, key


def test_closed_forms_of_the_normal_law() -> None:
    prediction, draw = normal(np.random.default_rng(1), 500)
    assert isinstance(prediction, Distribution)
    sd, mean = prediction.parameters["scale"], prediction.parameters["loc"]
    found = nulls(EvalSet.checked(draw(np.random.default_rng(2)), prediction))
    z, n = stats.norm.ppf(0.95), 500
    expected = {
        "crps": sd.mean() / math.sqrt(math.pi),
        "log_score": (np.log(sd) + 0.5 * math.log(2 * math.pi) + 0.5).mean(),
        "mae": sd.mean() * math.sqrt(2 / math.pi),
        "interval_score": sd.mean() * (2 * stats.norm.pdf(z) * 2 / 0.1),
        "deficit": sd.mean() * 2 * (stats.norm.pdf(z) - z * 0.05),
    }
    for name, value in expected.items():
        assert only(found, name).null == pytest.approx(value, rel=4e-3), name
    assert perfect(only(found, "mean_squared_z")) == pytest.approx(1.0, abs=5e-3)
    assert perfect(only(found, "bias")) == pytest.approx(0.0, abs=5e-3)
    ranges = {
        "mean_squared_z": stats.chi2(n).ppf([0.025, 0.975]) / n,
        "bias": stats.norm(0, math.sqrt(np.square(sd).mean() / n)).ppf([0.025, 0.975]),
        "empirical_coverage": stats.binom(n, 0.9).ppf([0.025, 0.975]) / n,
        "misses_above": stats.binom(n, 0.05).ppf([0.025, 0.975]) / n,
    }
    for name, (low, high) in ranges.items():
        record = only(found, name)
        assert record.null_lower == pytest.approx(low, abs=0.05 * (high - low)), name
        assert record.null_upper == pytest.approx(high, abs=0.05 * (high - low)), name
    assert perfect(only(found, "empirical_coverage")) == 0.9
    assert not np.isclose(mean, draw(np.random.default_rng(2))).any()


def test_nulls_of_errors_that_are_not_normal() -> None:
    """ENCE and RCE of t5 errors: against 600 tables of an independent sampler, not χ."""
    rng = np.random.default_rng(3)
    prediction, draw = student(rng, 150)
    names = ["ence", "relative_calibration_error", "mean_squared_z"]
    held = EvalSet.checked(draw(rng), prediction)
    found = nulls(held, metrics=names)
    tables = [evaluate(with_y(held, draw(rng)), metrics=names).records for _ in range(600)]
    values = {
        name: np.array([records[place].value for records in tables])
        for place, name in enumerate(names)
    }
    for name in names:
        spread = values[name].std()
        error = 4.0 * spread * math.sqrt(1 / 49 + 1 / 600)
        assert perfect(only(found, name)) == pytest.approx(values[name].mean(), abs=error), name
    assert only(found, "ence").null > 1.1 * 0.7979 / math.sqrt(2 * 10)  # that of normal errors


@pytest.mark.slow
def test_a_mixture_and_counts_have_their_own_expectations() -> None:
    for world in ("mixture", "poisson", "gamma"):
        rng = np.random.default_rng(4)
        prediction, draw = WORLDS[world](rng, 300)
        held = EvalSet.checked(draw(rng), prediction)
        names = ["crps", "log_score", "empirical_coverage", "mean_squared_z", "mae"]
        found = nulls(held, metrics=names)
        drawn = [evaluate(with_y(held, draw(rng)), metrics=names).records for _ in range(60)]
        for place, name in enumerate(names):
            values = np.array([records[place].value for records in drawn])
            error = 4.0 * values.std() / math.sqrt(60)
            assert perfect(only(found, name)) == pytest.approx(values.mean(), abs=error), name


def test_a_law_whose_crps_is_integrated_has_a_null_all_the_same() -> None:
    """By the draws themselves; E CRPS is half the mean distance of two draws."""
    mean, sd = spreads(np.random.default_rng(3), 40)
    held = Distribution.from_scipy(stats.skewnorm(3.0, mean, sd))
    y = stats.skewnorm(3.0, mean, sd).rvs(random_state=np.random.default_rng(1))
    record = only(nulls(EvalSet.checked(y, held), metrics=["crps"]), "crps")
    one, two = stats.skewnorm(3.0).rvs((2, 400_000), random_state=np.random.default_rng(2))
    assert record.null == pytest.approx(sd.mean() * np.abs(one - two).mean() / 2, rel=0.01)


def test_five_members_exactly() -> None:
    """All six places that y may take, row by row: no draw is left to chance."""
    held = next(ensembles(np.random.default_rng(8), 40, 5))
    prediction = held.predictions[0]
    assert isinstance(prediction, Samples)
    record = only(nulls(held, metrics=["crps"]), "crps")
    pool = np.column_stack([held.y, prediction.sorted_samples])
    scores = [
        np.abs(rest - pool[:, [j]]).mean(axis=1)
        - np.abs(rest[:, :, None] - rest[:, None]).mean(axis=(1, 2)) / 2
        for j in range(6)
        for rest in [np.delete(pool, j, axis=1)]
    ]
    assert record.null == pytest.approx(np.mean(scores), rel=1e-12)


def test_five_members_fairly() -> None:
    """Σe²/Σ(1 + 1/m)s² over 4,000 choices, row by row, of which value is y."""
    held = next(ensembles(np.random.default_rng(8), 40, 5))
    prediction = held.predictions[0]
    assert isinstance(prediction, Samples)
    record = only(nulls(held, metrics=["mean_squared_z"]), "mean_squared_z")
    pool = np.column_stack([held.y, prediction.sorted_samples])
    rests = [np.delete(pool, j, axis=1) for j in range(6)]
    errors = np.square([pool[:, j] - rest.mean(axis=1) for j, rest in enumerate(rests)])
    variances = np.array([1.2 * rest.var(axis=1, ddof=1) for rest in rests])
    chosen = np.random.default_rng(9).integers(0, 6, (4_000, 40)), np.arange(40)
    ratios = errors[chosen].sum(axis=1) / variances[chosen].sum(axis=1)
    error = 4.0 * ratios.std() * math.sqrt(1 / 49 + 1 / 4_000)
    assert record.target == 1.0
    assert perfect(record) == pytest.approx(ratios.mean(), abs=error)
    assert [record.null_lower, record.null_upper] == pytest.approx(
        np.quantile(ratios, [0.025, 0.975]), rel=0.3
    )


def test_misses_of_counts_lie_on_both_sides_as_they_claim() -> None:
    """Central intervals of whole numbers are not balanced: by the mass beyond their ends."""
    rate = np.exp(np.random.default_rng(2).uniform(0.0, 2.5, 200))
    law = stats.poisson(rate)
    y = law.rvs(random_state=np.random.default_rng(3)).astype(float)
    found = nulls(EvalSet.checked(y, Distribution.from_scipy(law)), metrics=["miss_imbalance"])
    record = only(found, "miss_imbalance")
    low, high = law.ppf(0.05), law.ppf(0.95)
    assert record.null == pytest.approx((law.sf(high) - law.cdf(low - 1)).mean(), rel=1e-9)
    tables = law.rvs((4_000, 200), random_state=np.random.default_rng(4))
    shares = ((tables > high).astype(float) - (tables < low)).mean(axis=1)
    assert record.null_lower == pytest.approx(shares.mean() - 1.96 * shares.std(), abs=2e-3)
    assert record.null_upper == pytest.approx(shares.mean() + 1.96 * shares.std(), abs=2e-3)


def test_what_a_quantile_table_cannot_say() -> None:
    rng = np.random.default_rng(5)
    prediction, draw = WORLDS["quantiles"](rng, 100)
    found = nulls(EvalSet.checked(draw(rng), prediction))
    outside = "quantiles give no distribution beyond their outermost levels"
    for name in ("interval_score", "deficit", "pinball", "crps", "mae", "kendall_tau", "rmse"):
        assert only(found, name).options[WHY] == outside, name
        assert math.isnan(only(found, name).null)
    inside = only(found, "excess")  # which never looks outside
    low, high = prediction.interval(0.9)
    # of a uniform law: the mean distance to the nearer of two ends is a quarter of the width
    assert inside.null == pytest.approx(0.9 * (high - low).mean() / 4, rel=2e-3)
    assert perfect(only(found, "empirical_coverage")) == 0.9
    assert only(found, "calibration_error").null_upper > only(found, "calibration_error").null


def test_whole_numbers_bound_coverage_only() -> None:
    held = EvalSet.checked(np.arange(30.0) % 5, Quantiles([0.05, 0.95], [[0.0, 4.0]] * 30))
    assert "whole numbers" in str(only(nulls(held), "empirical_coverage").options[WHY])


def test_bare_intervals_are_coins() -> None:
    rng = np.random.default_rng(6)
    prediction, draw = WORLDS["intervals"](rng, 90)
    found = nulls(EvalSet.checked(draw(rng), prediction))
    for coverage in (0.5, 0.9):
        record = found["empirical_coverage", str(coverage)]
        low, high = stats.binom(90, coverage).ppf([0.025, 0.975]) / 90
        assert (perfect(record), record.null_lower, record.null_upper) == (coverage, low, high)
    for name in ("interval_score", "deficit", "excess", "mae", "kendall_tau", "auucc"):
        assert only(found, name).options[WHY] == (
            "intervals give only the probability that y is inside"
        )


def test_a_point_alone_has_no_perfect_model() -> None:
    found = nulls(EvalSet.checked(np.arange(20.0), point=np.ones(20)))
    assert only(found, "mae").options[WHY] == "a point forecast alone gives no distribution of y"


def test_beside_a_law_intervals_borrow_its_draws() -> None:
    prediction, draw = normal(np.random.default_rng(1), 200)
    low, high = prediction.interval(0.8)
    both = (prediction, Intervals(low, high, coverage=0.9))
    found = nulls(EvalSet.checked(draw(np.random.default_rng(2)), both))
    cover, above = only(found, "empirical_coverage"), only(found, "misses_above")
    assert perfect(cover) == 0.9
    assert BY not in cover.options
    assert above.null == pytest.approx(0.1, abs=2e-3)
    assert above.options[BY] == "distributions"


@pytest.mark.slow
def test_the_order_of_rows_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    prediction, draw = normal(rng, 1200)
    held = EvalSet.checked(draw(rng), prediction, groups={"g": rng.integers(0, 3, 1200)})
    order = rng.permutation(1200)
    both = []
    for each in (held, held.take(order)):
        whole = evaluate(each)
        both.append(with_nulls(whole, assess_groups(whole).records))
    for one, other in zip(both[0][0] + both[0][1], both[1][0] + both[1][1], strict=True):
        assert one.metric == other.metric
        assert one.group == other.group
        for end in ("null", "null_lower", "null_upper"):
            assert getattr(one, end) == pytest.approx(
                getattr(other, end), rel=1e-7, abs=1e-9, nan_ok=True
            ), (one.metric, one.group, end)


@pytest.mark.parametrize("world", ["normal", "poisson", "quantiles", "intervals"])
@pytest.mark.rate
def test_a_weight_of_two_is_a_row_twice(world: str) -> None:
    rng = np.random.default_rng(3)
    prediction, draw = WORLDS[world](rng, 90)
    y, counts, g = draw(rng), rng.integers(1, 4, 90), rng.integers(0, 2, 90)
    held = EvalSet.checked(y, prediction, weights=counts, groups={"g": g})
    twice = replace(held, weights=None).take(np.repeat(np.arange(90), counts))
    made = []
    for each in (held, twice):
        whole = evaluate(each)
        made.append(with_nulls(whole, assess_groups(whole).records))
    for one, other in zip(made[0][0] + made[0][1], made[1][0] + made[1][1], strict=True):
        if one.metric in OWN:
            continue
        for end in ("null", "null_lower", "null_upper"):
            assert getattr(one, end) == pytest.approx(
                getattr(other, end), rel=1e-7, abs=1e-9, nan_ok=True
            ), (one.metric, one.group, end)


def test_importance_weights_widen_the_range() -> None:
    """The weighted mean of independent rows, against its closed form."""
    rng = np.random.default_rng(3)
    prediction, draw = normal(rng, 400)
    assert isinstance(prediction, Distribution)
    w, sd = rng.gamma(0.5, size=400), prediction.parameters["scale"]
    held = EvalSet.checked(draw(rng), prediction, weights=w, weights_kind="importance")
    record = only(nulls(held, metrics=["bias"]), "bias")
    reach = 1.96 * math.sqrt(float((np.square(w * sd)).sum())) / w.sum()
    assert record.null_upper == pytest.approx(reach, rel=0.1)
    assert record.null_lower == pytest.approx(-reach, rel=0.1)
    cover = only(nulls(held, metrics=["empirical_coverage"]), "empirical_coverage")
    error = 1.96 * math.sqrt(0.09 * float(np.square(w).sum())) / w.sum()
    assert cover.null_upper - cover.null_lower == pytest.approx(2 * error, rel=0.15)


def test_groups_have_nulls_of_their_own() -> None:
    """Means of every group, and statistics of few: as if the group were all there is."""
    rng = np.random.default_rng(3)
    prediction, draw = normal(rng, 240)
    assert isinstance(prediction, Distribution)
    sd, codes = prediction.parameters["scale"], rng.integers(0, 3, 240)
    held = EvalSet.checked(draw(rng), prediction, groups={"g": codes})
    whole = evaluate(held)
    _, grouped = with_nulls(whole, assess_groups(whole).records)
    for code in range(3):
        found, n = named(grouped, f"g={code}"), int((codes == code).sum())
        own = sd[codes == code]
        assert only(found, "crps").null == pytest.approx(own.mean() / math.sqrt(math.pi), rel=0.01)
        cover = only(found, "empirical_coverage")
        expected = stats.binom(n, 0.9).ppf([0.025, 0.975]) / n
        assert [cover.null_lower, cover.null_upper] == pytest.approx(expected)
        rmse, root = only(found, "rmse"), math.sqrt(np.square(own).mean())
        assert rmse.null == pytest.approx(root, rel=0.1)
        assert rmse.null_lower < root < rmse.null_upper
        assert only(found, "mean_width").options[WHY] == "does not depend on y"


def test_many_groups_say_that_statistics_are_not_drawn() -> None:
    prediction, draw = normal(np.random.default_rng(3), 200)
    held = EvalSet.checked(
        draw(np.random.default_rng(4)), prediction, groups={"g": np.arange(200) % 40}
    )
    whole = evaluate(held, metrics=["rmse", "crps"])
    _, grouped = with_nulls(whole, assess_groups(whole).records)
    found = named(grouped, "g=7")
    assert "groups" in str(only(found, "rmse").options[WHY])
    assert math.isfinite(only(found, "crps").null_upper)


@pytest.mark.parametrize("n", [5_000, 60_000])
def test_a_part_is_rescaled_to_the_whole(n: int) -> None:
    """Floors of noise fall as 1/√n, ranges too; against the normal law's closed forms."""
    rng = np.random.default_rng(3)
    prediction, draw = normal(rng, n)
    assert isinstance(prediction, Distribution)
    sd = prediction.parameters["scale"]
    held = EvalSet.checked(draw(rng), prediction)
    names = ["miscalibration_area", "rmse", "ence", "crps", "empirical_coverage", "kendall_tau"]
    found = nulls(held, metrics=names)
    area = only(found, "miscalibration_area")
    assert area.null == pytest.approx(math.sqrt(2 * math.pi) / 8 / math.sqrt(n), rel=0.01)
    assert area.null_upper == pytest.approx(0.65 / math.sqrt(n), rel=0.25)
    assert "1,000" in str(area.options[ROWS])
    ence = only(found, "ence")  # E|1 − χ_k/√k| ≈ √(1/(πk)), k rows a bin
    assert ence.null == pytest.approx(math.sqrt(15 / (math.pi * n)), rel=0.15)
    crps, value = only(found, "crps"), sd.mean() / math.sqrt(math.pi)
    z = stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    one = z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / math.sqrt(math.pi)
    reach = 1.96 * one.std() * math.sqrt(np.square(sd).mean() / n)
    assert crps.null_lower < value < crps.null_upper
    assert 0.95 < (crps.null_upper - crps.null) / reach < (1.05 if n <= 20_000 else 2.0)
    rmse, root = only(found, "rmse"), math.sqrt(np.square(sd).mean())
    assert rmse.null_lower < root < rmse.null_upper
    cover = only(found, "empirical_coverage")
    expected = stats.binom(n, 0.9).ppf([0.025, 0.975]) / n
    assert [cover.null_lower, cover.null_upper] == pytest.approx(expected, abs=3e-3)
    tau = only(found, "kendall_tau")
    assert tau.null_lower < tau.value < tau.null_upper


def test_what_has_a_null_and_a_range_keeps_them() -> None:
    prediction, draw = normal(np.random.default_rng(3), 60)
    whole = evaluate(EvalSet.checked(draw(np.random.default_rng(4)), prediction))
    first = replace(whole.records[0], null=0.5, null_lower=0.4, null_upper=0.6)
    kept, _ = with_nulls(replace(whole, records=(first, *whole.records[1:])))
    assert kept[0] == first
    areas = [r for r in whole.records if r.metric == "miscalibration_area"]
    assert only(named(kept), "miscalibration_area").null == areas[0].null


def test_arrays_that_follow_from_the_prediction_are_known() -> None:
    """What is said to follow from the prediction alone stays when y moves; the others move."""
    rng = np.random.default_rng(5)
    moved, still = set(), set()
    for world in (*WORLDS, "samples"):
        if world == "samples":
            held = next(ensembles(rng, 50, 19))
            other = held.y[::-1].copy()
        else:
            prediction, draw = WORLDS[world](rng, 50)
            held, other = EvalSet.checked(draw(rng), prediction), draw(rng)
        views = View(held), View(with_y(held, other))
        for name in {n for e in catalogue().values() if not e.beside for n in _asked(e)}:
            try:
                one, two = (view.get(name, 0.9) for view in views)
            except UnanswerableError:
                continue
            (still if _same(one, two) else moved).add(name)
    predicted = {name for name, array in arrays().items() if array.predicted}
    assert not moved & predicted
    assert still - moved <= predicted | {
        "left",
        "coverage",
        "expected_coverage",
        "times",
        "units_of_time",
    }


def _asked(entry: Any) -> set[str]:
    return {name for form in entry.forms for name in (*form.needs, *form.keywords.values())}


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, tuple):
        return all(_same(a, b) for a, b in zip(one, two, strict=True))
    if is_dataclass(one) and not isinstance(one, type):
        return all(_same(getattr(one, f.name), getattr(two, f.name)) for f in fields(one))
    if not isinstance(one, np.ndarray):
        return repr(one) == repr(two)
    return bool(np.array_equal(one, two))


@pytest.mark.slow
@pytest.mark.parametrize("world", list(WORLDS))
@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_rows_have_a_null_or_the_reason(world: str, n: int) -> None:
    """Under the strict net no formula faults, in groups neither."""
    rng = np.random.default_rng(n)
    prediction, draw = WORLDS[world](rng, n)
    held = EvalSet.checked(draw(rng), prediction, groups={"g": np.arange(n) % 2})
    whole = evaluate(held)
    records, grouped = with_nulls(whole, assess_groups(whole).records)
    for record in records + grouped:
        if math.isfinite(record.value) and catalogue()[record.metric].forms:
            missing = math.isnan(record.null_lower) and math.isnan(record.null_upper)
            assert (WHY in record.options) == missing, (record.metric, record.group)
            assert ends(record)[0] <= ends(record)[1], (record.metric, record.group)


def _table_of_quantiles(n: int, k: int) -> EvalSet:
    rng = child(k, "wide table")
    levels, mean = np.arange(1, k + 1) / (k + 1), rng.normal(size=n)
    table = Quantiles(levels, mean[:, None] + stats.norm.ppf(levels))
    return EvalSet.checked(mean + rng.normal(size=n), table)


def test_a_table_of_many_quantiles_is_not_kept_for_each_draw_and_coverage() -> None:
    whole = evaluate(_table_of_quantiles(100, 399), metrics=["empirical_coverage", "crps"])
    tracemalloc.start()
    try:
        with_nulls(whole)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(whole.records) > 150  # coverages: a copy of the 16 MB that are drawn from for each
    assert most < 120e6


def test_draws_that_do_not_fit_in_memory_at_once_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = _table_of_quantiles(30, 9)
    prediction = held.predictions[0]
    beside = Distribution.normal(prediction.quantile([0.5])[:, 0], np.ones(30))
    for each in (held, EvalSet.checked(held.y, (beside, prediction))):
        at_once = nulls(each)
        with monkeypatch.context() as patched:
            patched.setattr("howsure.verdict.nulls._NUMBERS_AT_ONCE", 3_000)
            assert _same(tuple(nulls(each).values()), tuple(at_once.values()))


@pytest.mark.parametrize("kind", ["frequency", "importance"])
def test_weights_may_be_of_any_size(kind: str) -> None:
    rng = np.random.default_rng(1)
    prediction, draw = normal(rng, 40)
    weights = rng.integers(1, 4, 40) * 1e11 if kind == "frequency" else rng.gamma(0.1, size=40)
    held = EvalSet.checked(draw(rng), prediction, weights=weights, weights_kind=kind)
    found = nulls(held)
    cover = only(found, "empirical_coverage")
    assert cover.null_lower < 0.9 < cover.null_upper or kind == "frequency"
    if kind == "frequency":
        assert cover.null_upper - cover.null_lower < 1e-2
