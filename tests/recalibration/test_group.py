"""Recalibration by group: finite-sample laws, brute force, planted defects and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from howsure.conformal import rows_needed
from howsure.conformal.ranks import DELTA, level_ranks
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles, Samples
from howsure.predictions.laws import ScipyLaw
from howsure.recalibration import recalibrate
from howsure.recalibration.conformal import ConformalIntervals, ConformalQuantiles
from howsure.recalibration.dispatch import METHODS
from howsure.recalibration.group import ByGroup
from howsure.recalibration.location_scale import LocationScale
from recalibration.conditional_worlds import (
    KINDS,
    covered,
    is_bad,
    numbers,
    rescaled,
    score,
    weighted,
    world,
)

# The finite-sample law, in each group.


@pytest.mark.parametrize("sizes", [{"a": 30, "b": 55}, {"a": 130, "b": 40}])
def test_each_group_covers_by_the_beta_binomial_law(sizes: dict[str, int]) -> None:
    rng = child(0, "mondrian", *sizes.values())
    fresh, tables = 60, 250
    labels = np.repeat(list(sizes), list(sizes.values()))
    hits: dict[str, list[int]] = {name: [] for name in sizes}
    for _ in range(tables):
        y = rng.uniform(size=len(labels)) * np.where(labels == "a", 1.0, 9.0)
        held_out = EvalSet.checked(y, Intervals(0.3 * y**0, 0.4 * y**0, 0.9), groups={"g": labels})
        new = np.repeat(list(sizes), fresh)
        late = rng.uniform(size=len(new)) * np.where(new == "a", 1.0, 9.0)
        test = EvalSet.checked(
            late, Intervals(0.3 * late**0, 0.4 * late**0, 0.9), groups={"g": new}
        )
        inside = covered(ByGroup("intervals").fit(held_out).apply(test))
        for name in sizes:
            hits[name].append(int(inside[new == name].sum()))
    for name, n in sizes.items():
        if n * 0.05 >= 5:  # each end on its own: the misses of one leave the other's as they are
            ends = math.ceil((n + 1) * 0.95)
            law = stats.betabinom(fresh, 2 * ends - n - 1, 2 * (n + 1 - ends))
        else:
            rank = math.ceil((n + 1) * 0.9)
            law = stats.betabinom(fresh, rank, n + 1 - rank)
        found = np.array(hits[name])
        u = law.cdf(found - 1) + rng.uniform(size=tables) * law.pmf(found)
        assert stats.kstest(u, "uniform").pvalue > 0.001, name


def test_each_level_of_each_group_holds_by_the_beta_law() -> None:
    """The share at or below a conformal quantile of uniform y is that quantile itself."""
    rng = child(0, "mondrian quantiles")
    labels = np.repeat(["a", "b"], [40, 70])
    levels = np.array([0.1, 0.5, 0.9])
    found: dict[str, list[np.ndarray]] = {"a": [], "b": []}
    for _ in range(250):
        y = rng.uniform(size=110)
        held_out = EvalSet.checked(y, Quantiles(levels, np.zeros((110, 3))), groups={"g": labels})
        values = ByGroup("quantiles").fit(held_out).apply(held_out).predictions[0].values
        found["a"].append(values[0])
        found["b"].append(values[-1])
    for name, n in (("a", 40), ("b", 70)):
        low, high = level_ranks(levels, n)
        shares = np.array(found[name])
        for column in (0, 2):
            assert low[column] == high[column]
            law = stats.beta(low[column], n + 1 - low[column])
            assert stats.kstest(shares[:, column], law.cdf).pvalue > 0.001


def test_a_group_alone_is_what_its_rows_alone_give() -> None:
    held_out, new = world("intervals", 900, "alone"), world("intervals", 200, "alone too")
    made = ByGroup("intervals").fit(held_out).apply(new).predictions[0]
    inside = np.flatnonzero(held_out.groups["g"].values() == "c")
    own = ConformalIntervals("asymmetric").fit(held_out.take(inside)).apply(new).predictions[0]
    rows = new.groups["g"].values() == "c"
    assert rows.any()
    assert np.array_equal(numbers(made)[rows], numbers(own)[rows])


def test_guarantees_and_parameters_are_those_of_the_groups() -> None:
    labels = np.repeat(["a", "b", "c"], [199, 19, 3])
    y = child(0, "sizes").normal(size=221)
    held_out = EvalSet.checked(y, Intervals(y * 0 - 1, y * 0 + 1, 0.9), groups={"g": labels})
    fitted = ByGroup("intervals").fit(held_out)
    expected = {each.name: each.expected for each in fitted.parameters}
    assert expected["lower offset, g=a"] == pytest.approx(0.9)
    assert expected["offset, g=b"] == pytest.approx(0.9)
    assert not any("g=c" in name for name in expected)
    assert "Within 2 groups" in fitted.guarantee
    assert "0.9 (or more" in fitted.guarantee
    assert "Other groups have no separate guarantee" in fitted.guarantee
    assert fitted.notes == (
        "Groups with fewer than 19 calibration rows use the fit to all rows: g=c.",
    )


def test_no_group_large_enough_leaves_the_whole_with_its_guarantee() -> None:
    labels = np.repeat(list("abcdefgh"), 5)
    y = child(0, "small").normal(size=40)
    held_out = EvalSet.checked(y, point=y * 0, groups={"g": labels})
    made = recalibrate(held_out, held_out, by="g", coverage=0.9)
    whole = recalibrate(held_out, held_out, method="split", coverage=0.9)
    assert np.array_equal(
        numbers(made.evalset.predictions[0]), numbers(whole.evalset.predictions[0])
    )
    assert made.notes == (
        "Groups with fewer than 19 calibration rows use the fit to all rows: g=a; g=b; g=c and "
        "5 more.",
    )
    assert made.guarantees["point"].startswith("No group has enough rows")
    assert whole.guarantees["point"] in made.guarantees["point"]


@pytest.mark.parametrize("tail", [0.5, 0.3, 0.25, 0.1, 0.05, 0.025, 0.01, 1 / 3, 0.07])
def test_rows_that_quantiles_need(tail: float) -> None:
    levels = np.unique([tail, 1 - tail])
    n = 1
    while not ((level_ranks(levels, n)[0] >= 1).all() and (level_ranks(levels, n)[1] <= n).all()):
        n += 1
    many = 400
    table = Quantiles(levels, np.zeros((many, len(levels))))
    held_out = EvalSet.checked(
        np.linspace(0, 1, many), table, groups={"g": ["a"] * n + ["b"] * (many - n)}
    )
    fewer = EvalSet.checked(
        np.linspace(0, 1, many), table, groups={"g": ["a"] * (n - 1) + ["b"] * (many - n + 1)}
    )
    method = ByGroup("quantiles")
    assert method.fit(held_out).notes == ()
    assert n == 1 or "g=a" in method.fit(fewer).notes[0]


# Shift and scale of distributions and samples, by brute force.


def brute(z: np.ndarray, labels: list[str]) -> dict[str, tuple[float, float]]:
    """Shift and factor of each group of distributions by the definition, one row at a time."""
    groups = sorted(set(labels))
    rows = {g: [v for v, label in zip(z, labels, strict=True) if label == g] for g in groups}
    large = [g for g in groups if len(rows[g]) >= 10]

    def shared(own: dict[str, float], squares: dict[str, float]) -> dict[str, float]:
        counts = {g: len(rows[g]) for g in large}
        usual = float(np.median([squares[g] / (counts[g] - 1) for g in large]))
        noise = {g: (squares[g] + 5 * usual) / (counts[g] + 4) / counts[g] for g in large}
        total = sum(1 / noise[g] for g in large)
        mean = sum(own[g] / noise[g] for g in large) / total
        q = sum((own[g] - mean) ** 2 / noise[g] for g in large)
        size = total - sum(1 / noise[g] ** 2 for g in large) / total
        tau2 = max((q - len(large) + 1) / size, 0.0)
        weight = {g: 1 / (tau2 + noise[g]) for g in large}
        common = sum(weight[g] * own[g] for g in large) / sum(weight.values())
        share = {g: tau2 * weight[g] if g in large else 0.0 for g in groups}
        return {g: share[g] * own[g] + (1 - share[g]) * common for g in groups}

    own = {g: sum(rows[g]) / len(rows[g]) for g in groups}
    shift = shared(own, {g: sum((v - own[g]) ** 2 for v in rows[g]) for g in large})
    square = {g: [(v - shift[g]) ** 2 for v in rows[g]] for g in groups}
    own = {g: sum(square[g]) / len(rows[g]) for g in groups}
    off = {g: sum((v / own[g] - 1) ** 2 for v in square[g]) for g in large}
    factor = shared({g: math.log(own[g]) for g in groups}, off)
    return {g: (shift[g], math.exp(factor[g] / 2)) for g in groups}


def test_moments_equal_brute_force() -> None:
    rng = child(0, "brute group")
    labels = rng.choice(["a", "b", "c", "d"], 120, p=[0.05, 0.2, 0.3, 0.45])
    mean, sd = rng.normal(size=120), rng.uniform(0.5, 2, 120)
    y = mean + sd * rng.normal(size=120) * np.where(labels == "b", 2.0, 1.0) + (labels == "c")
    held_out = EvalSet.checked(y, Distribution.normal(mean, sd), groups={"g": labels})
    found = {each.name: each.value for each in ByGroup("distributions").fit(held_out).parameters}
    for name, (shift, factor) in brute((y - mean) / sd, labels.tolist()).items():
        assert found[f"shift, g={name}"] == pytest.approx(shift, rel=1e-10)
        assert found[f"factor, g={name}"] == pytest.approx(factor, rel=1e-10)


@pytest.mark.parametrize(("sds", "alone"), [(4.9, False), (5.1, True)])
def test_a_group_five_sds_from_the_middle_is_what_its_rows_say(sds: float, alone: bool) -> None:
    """The sd between groups is that of a normal law whose median deviation is theirs."""
    places = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5])
    far = sds * float(stats.median_abs_deviation([*places, 100.0], scale="normal"))
    labels = np.repeat(np.arange(9), 100)
    y = np.append(places, far)[labels] + np.tile([-0.01, 0.01], 450)
    rows = EvalSet.checked(y, Distribution.normal(0 * y, 0 * y + 1), groups={"g": labels})
    found = {each.name: each.value for each in ByGroup("distributions").fit(rows).parameters}
    assert (abs(found["shift, g=8"] - far) < 1e-12) == alone


@pytest.mark.parametrize("fault", ["divided", "noisy", "moved"])
def test_a_broken_group_harms_no_other(fault: str) -> None:
    """What right groups learn is what they learn without it."""
    rng = child(0, f"broken group {fault}")
    labels = rng.choice(list("abcdef"), 1_000)
    truth, sd = 30.0 * rng.normal(size=1_000), np.ones(1_000)
    y = truth + sd * rng.normal(size=1_000)
    broken = {"divided": truth / 1_000, "noisy": truth + 20.0 * rng.normal(size=1_000)}
    wrong = broken.get(fault, truth + 8.9)
    mean = np.where(labels == "a", wrong, truth)
    held_out = EvalSet.checked(y, Distribution.normal(mean, sd), groups={"g": labels})
    found, alone = (
        {each.name: each.value for each in ByGroup("distributions").fit(rows).parameters}
        for rows in (held_out, held_out.take(np.flatnonzero(labels != "a")))
    )
    for name, value in alone.items():
        assert found[name] == pytest.approx(value, abs=0.05)
    assert abs(found["shift, g=a"]) + found["factor, g=a"] > 5


@pytest.mark.parametrize("kind", KINDS[:2])
def test_one_group_is_the_whole(kind: str) -> None:
    held_out = world(kind, 300, "one")
    one = EvalSet.checked(held_out.y, held_out.predictions, groups={"g": ["all"] * 300})
    fitted = {each.name: each.value for each in ByGroup(kind).fit(one).parameters}
    frame, mass = LocationScale.of(one.predictions[0]), np.ones(300)
    shift = frame.shift(one.y, mass, frame.spread)
    factor = frame.factor(one.y, mass, frame.center + shift * frame.spread)
    assert fitted["shift, g=all"] == fitted["shift"] == pytest.approx(shift, rel=1e-12)
    assert fitted["factor, g=all"] == pytest.approx(factor, rel=1e-12)


def test_groups_that_differ_by_no_more_than_chance_are_all_as_the_whole() -> None:
    y = np.tile([-1.0, 1.0], 60)
    held_out = EvalSet.checked(
        y, Distribution.normal(y * 0, y**0 * 2), groups={"g": np.arange(120) // 2 % 4}
    )
    fitted = ByGroup("distributions").fit(held_out)
    assert {each.value for each in fitted.parameters if "factor" in each.name} == {0.5}


# Laws.


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_y_do_not_matter(kind: str) -> None:
    held_out, new = world(kind, 400, "units", "group"), world(kind, 50, "more units")
    made = ByGroup(kind).fit(held_out).apply(new).predictions[0]
    other = ByGroup(kind).fit(rescaled(held_out, 3.0, -7.0)).apply(rescaled(new, 3.0, -7.0))
    wanted = numbers(rescaled(EvalSet.checked(new.y, made), 3.0, -7.0).predictions[0])
    assert np.allclose(numbers(other.predictions[0]), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_reflection_of_y_reflects(kind: str) -> None:
    held_out, new = world(kind, 400, "mirror", "groupbias"), world(kind, 50, "more mirror")
    made = ByGroup(kind).fit(held_out).apply(new).predictions[0]
    other = ByGroup(kind).fit(rescaled(held_out, -1.0, 0.0)).apply(rescaled(new, -1.0, 0.0))
    wanted = numbers(rescaled(EvalSet.checked(new.y, made), -1.0, 0.0).predictions[0])
    assert np.allclose(numbers(other.predictions[0]), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_order_does_not_matter_and_a_frequency_is_a_repetition(kind: str) -> None:
    held_out, new = world(kind, 300, "order", "group"), world(kind, 50, "new")
    made = numbers(ByGroup(kind).fit(held_out).apply(new).predictions[0])
    order = child(0, "order").permutation(300)
    again = ByGroup(kind).fit(held_out.take(order)).apply(new).predictions[0]
    assert np.allclose(numbers(again), made, rtol=1e-9, atol=1e-12)
    copies = child(0, "copies").integers(1, 4, 300)
    counted = ByGroup(kind).fit(weighted(held_out, copies)).apply(new).predictions[0]
    repeated = ByGroup(kind).fit(held_out.take(np.repeat(np.arange(300), copies))).apply(new)
    assert np.allclose(numbers(counted), numbers(repeated.predictions[0]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_importance_weights_are_told_to_be_approximate(kind: str) -> None:
    held_out = world(kind, 300, "importance")
    weighing = EvalSet.checked(
        held_out.y,
        held_out.predictions,
        groups=held_out.groups,
        weights=child(0, "w").uniform(0.5, 1.5, 300),
        weights_kind="importance",
    )
    fitted = ByGroup(kind).fit(weighing)
    assert any(note.startswith("Importance weights") for note in fitted.notes)
    assert "finite-sample guarantee" in fitted.guarantee


# Planted defects come right; right models are hardly harmed.


@pytest.mark.parametrize("defect", ["group", "groupbias"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_defect_in_one_group_comes_right(kind: str, defect: str) -> None:
    fresh = world(kind, 20_000, "fresh", defect)
    shares, scores = [], []
    for table in range(5):
        made = recalibrate(fresh, world(kind, 2_000, table, defect), method="group").evalset
        inside, bad = covered(made), is_bad(fresh, defect)
        shares.append((inside[bad].mean(), inside[~bad].mean()))
        scores.append(score(made))
    assert np.abs(np.mean(shares, axis=0) - 0.9).max() < 0.03
    assert max(scores) < score(fresh)


@pytest.mark.parametrize(
    ("kind", "most"),
    # Conformal offsets are not shrunk, or they would guarantee nothing: two quantiles a group.
    [("distributions", 0.005), ("samples", 0.005), ("quantiles", 0.01), ("intervals", 0.015)],
)
def test_a_right_model_is_hardly_harmed(kind: str, most: float) -> None:
    fresh = world(kind, 20_000, "right")
    made = [recalibrate(fresh, world(kind, 1_000, t), by="g").evalset for t in range(10)]
    assert np.mean([score(each) for each in made]) / score(fresh) - 1.0 < most


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_mended_needs_no_mend_again(kind: str) -> None:
    held_out = world(kind, 2_000, "twice", "groupbias")
    once = ByGroup(kind).fit(held_out).apply(held_out)
    for each in ByGroup(kind).fit(once).parameters:
        if "g=" not in each.name:  # what serves groups never seen
            continue
        still = 1.0 if each.name.startswith("factor") else 0.0
        assert each.value == pytest.approx(still, abs=0.02 if kind in KINDS[:2] else 1e-9), each


# Crossings, unseen groups, bad input.


def test_several_columns_cross() -> None:
    rng = child(0, "crossing")
    n = 600
    a, b = rng.choice(["u", "v"], n), rng.choice([1, 2], n)
    y = rng.normal(size=n) * np.where((a == "u") & (b == 2), 3.0, 1.0)
    groups = {"a": a, "b": b, "other": rng.choice(["p", "q"], n)}
    held_out = EvalSet.checked(y, Distribution.normal(y * 0, y**0), groups=groups)
    made = recalibrate(held_out, held_out, by=["a", "b"])
    names = [each.name for each in made.recalibrators[0].parameters]
    assert names[:5] == [f"shift, a={p}, b={q}" for p in "uv" for q in (1, 2)] + ["shift"]
    crossed = [f"{p}{q}" for p, q in zip(a, b, strict=True)]
    single = EvalSet.checked(y, held_out.predictions, groups={"c": crossed})
    same = recalibrate(single, single, by="c")
    assert np.array_equal(
        numbers(made.evalset.predictions[0]), numbers(same.evalset.predictions[0])
    )


def test_labels_agree_across_types_of_number() -> None:
    y = child(0, "labels").normal(size=200)
    labels = np.arange(200) % 2 + 1
    prediction = Distribution.normal(y * 0, y**0)
    fitted = ByGroup("distributions").fit(EvalSet.checked(y, prediction, groups={"g": labels}))
    whole = fitted.apply(EvalSet.checked(y, prediction, groups={"g": labels})).predictions[0].sd()
    for given in (labels.astype(float), labels.astype(str)):
        made, notes = fitted.transform(EvalSet.checked(y, prediction, groups={"g": given}))
        assert np.array_equal(made.sd(), whole)
        assert notes == ()


@pytest.mark.parametrize("kind", KINDS)
def test_an_unseen_group_takes_what_all_rows_teach_and_says_so(kind: str) -> None:
    held_out = world(kind, 400, "seen", "group")
    new = EvalSet.checked(
        np.zeros(3),
        tuple(each.take(np.array([0, 1, 2])) for each in held_out.predictions),
        groups={"g": ["b", "zebra", "zebra"]},
    )
    made = recalibrate(new, held_out, by="g")
    assert made.notes[-1] == ("2 rows in groups without calibration rows use the fit to all rows.")
    fitted = made.recalibrators[0]
    lone = fitted.transform(new.take(np.array([1])))[0]
    assert np.array_equal(numbers(lone)[0], numbers(made.evalset.predictions[0])[1])
    if kind == "distributions":
        values = {each.name: each.value for each in fitted.parameters}
        old = new.predictions[0]
        want = values["factor"] * old.sd()[1:]
        assert np.allclose(made.evalset.predictions[0].sd()[1:], want)
        assert np.allclose(
            made.evalset.predictions[0].point()[1:],
            old.point()[1:] + values["shift"] * old.sd()[1:],
        )
    if kind == "quantiles":
        want = ConformalQuantiles().fit(held_out).transform(new)[0]
        assert np.array_equal(numbers(made.evalset.predictions[0])[1:], numbers(want)[1:])
    if kind == "intervals":
        want = ConformalIntervals("asymmetric").fit(held_out).transform(new)[0]
        assert np.array_equal(numbers(made.evalset.predictions[0])[1:], numbers(want)[1:])


@pytest.mark.parametrize("kind", ["distributions", "samples"])
def test_a_group_of_three_rows_is_as_the_whole(kind: str) -> None:
    held_out = world(kind, 400, "three")
    labels = np.where(np.arange(400) < 3, "rare", "common")
    labels[3:200] = "usual"
    rows = EvalSet.checked(held_out.y, held_out.predictions, groups={"g": labels})
    fitted = ByGroup(kind).fit(rows)
    values = {each.name: each.value for each in fitted.parameters}
    assert values["shift, g=rare"] == values["shift"]
    assert values["factor, g=rare"] == pytest.approx(values["factor"], rel=1e-14)
    assert fitted.notes == (
        "Groups with fewer than 10 calibration rows use the fit to all rows: g=rare.",
    )


def test_notes_on_rows_name_their_groups() -> None:
    y = np.concatenate([np.zeros(60), child(0, "collapse").normal(size=60)])
    labels = np.repeat(["still", "wild"], 60)
    held_out = EvalSet.checked(y, Intervals(y * 0 - 1, y * 0 + 1, 0.9), groups={"g": labels})
    small = EvalSet.checked(y, Intervals(y * 0 - 0.1, y * 0 + 0.1, 0.9), groups={"g": labels})
    notes = ByGroup("intervals").fit(held_out).transform(small)[1]
    assert notes == (
        "g=still: 60 intervals at coverage 0.9 would have a negative width: each is replaced by "
        "its midpoint.",
    )


def table(**beside: object) -> EvalSet:
    y = np.repeat([-1.0, 1.0], 20)
    return EvalSet.checked(y, Distribution.normal(y * 0, y**0), **beside)  # type: ignore[arg-type]


def test_bad_columns_are_named() -> None:
    two = table(groups={"season": ["w", "s"] * 20, "sex": ["m", "f"] * 20})
    with pytest.raises(InputError, match=r"by must name at least one .* season, sex$"):
        recalibrate(two, two, method="group")
    with pytest.raises(InputError, match=r"group columns \(season, sex\), got 'age'"):
        recalibrate(two, two, by=["season", "age"])
    with pytest.raises(InputError, match="calibration rows have none"):
        recalibrate(table(), table(), by="season")
    with pytest.raises(InputError, match=r"groups sex, like the calibration rows, got season"):
        recalibrate(table(groups={"season": ["w", "s"] * 20}), two, by="sex")
    with pytest.raises(InputError, match="by needs the method 'group' or no method, got"):
        recalibrate(two, two, by="sex", method="scale")


def test_what_cannot_be_moved_is_refused_with_what_can() -> None:
    y = np.arange(20.0)
    labels = {"g": ["a", "b"] * 10}
    counts = Distribution(ScipyLaw(stats.poisson), {"mu": y + 1})
    with pytest.raises(InputError, match=r"only continuous distributions.*'shape'"):
        ByGroup("distributions").fit(EvalSet.checked(y, counts, groups=labels))
    flat = Samples(np.tile(y[:, None], 3))
    with pytest.raises(InputError, match="spread above 0"):
        ByGroup("samples").fit(EvalSet.checked(y + 1, flat, groups=labels))
    right = Distribution.normal(y, y + 1)
    with pytest.raises(InputError, match="spreads cannot be scaled"):
        ByGroup("distributions").fit(EvalSet.checked(y, right, groups=labels))
    one = EvalSet.checked([1.0], Distribution.normal([0.0], [1.0]), groups={"g": ["a"]})
    with pytest.raises(InputError, match="at least 2 rows"):
        ByGroup("distributions").fit(one)
    fitted = ByGroup("distributions").fit(EvalSet.checked(y + 1, right, groups=labels))
    with pytest.raises(InputError, match=r"must have distributions, .* got samples"):
        fitted.transform(EvalSet.checked(y, Samples(np.ones((20, 2))), groups=labels))


def test_a_group_without_errors_takes_the_factor_of_all() -> None:
    y = np.concatenate([np.zeros(30), np.tile([-2.0, 2.0], 30)])
    rows = EvalSet.checked(
        y,
        Distribution.normal(y * 0, y * 0 + 1),
        groups={"g": np.repeat(["still", "wild"], [30, 60])},
    )
    values = {e.name: e.value for e in ByGroup("distributions").fit(rows).parameters}
    assert values["factor, g=still"] == pytest.approx(values["factor"]) == math.sqrt(8 / 3)


def test_every_kind_but_label_sets_knows_the_method() -> None:
    assert sorted(METHODS["group"].kinds) == [
        "distributions",
        "intervals",
        "point",
        "quantiles",
        "samples",
    ]


def test_a_group_needs_the_rows_of_its_rule() -> None:
    """One that promises more asks for more: with 25 rows a group, "pac" takes the whole's."""
    rng = child(0, "rule of a group")
    y, groups = rng.uniform(size=75), np.repeat(["a", "b", "c"], 25)
    rows = EvalSet.checked(y, Intervals(0.3 * y**0, 0.4 * y**0, 0.9), groups={"g": groups})
    plain, strict = (ByGroup("intervals", rank=rank).fit(rows) for rank in ("conformal", "pac"))
    assert not any("use the fit to all rows" in note for note in plain.notes)
    needed = rows_needed(0.95, "pac", DELTA)
    assert needed > 25
    assert any(f"fewer than {needed} calibration rows" in note for note in strict.notes)
