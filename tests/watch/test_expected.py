"""What is expected before labels come: right for these very rows, or not told."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import integrate, interpolate, optimize, special, stats
from sklearn.linear_model import Ridge

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Intervals, Quantiles
from howsure.stats.balance import Curves, KnownRows
from howsure.stats.evidence import worth_of
from howsure.topics.crps_closed import crps_normal
from howsure.watch.expected import Background, Expected

Z = 1.6448536269514722


def rows(
    n: int, *names: Any, shift: float = 0.0, d: int = 2, features: bool = True, **given: Any
) -> EvalSet:
    """Standard normal predictions of y whose sd is exp(x0 / 4)."""
    rng = child(0, "expected", n, *names)
    x = rng.normal(size=(n, d))
    x[:, 0] += shift
    y = np.exp(0.25 * x[:, 0]) * rng.normal(size=n)
    if features:
        given["features"] = {f"x{place}": x[:, place] for place in range(d)}
    return EvalSet.checked(y, Distribution.normal(np.zeros(n), np.ones(n)), **given)


def truth(held: EvalSet, where: np.ndarray) -> float:
    """The coverage of 90 % intervals that is expected of some rows."""
    sd = np.exp(0.25 * held.features["x0"][where])
    return float(np.mean(2.0 * special.ndtr(Z / sd) - 1.0))


def with_features(held: EvalSet, **features: Any) -> EvalSet:
    """With these features too."""
    return replace(held, features={**held.features, **features})


def numbers(told: Expected) -> list[float]:
    values = [told.rows, told.inside, told.effective]
    for each in (told.coverage, told.score, told.factor):
        values += [each.value, each.lower, each.upper, each.seen_lower, each.seen_upper]
        values += [each.least, each.most, each.unchanged]
    return values


# ------------------------------------------------------------------------- the formulas


def test_curves_are_cubic_between_outer_quantiles_and_straight_at_them() -> None:
    x = np.sort(child(0, "curves").normal(size=400))
    curves = Curves.of(x[:, None], np.ones(400))
    columns = curves(x[:, None])
    np.testing.assert_allclose(columns.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(columns.T @ columns / 400, np.eye(4), atol=1e-10)
    within = (x >= curves.knots[0]) & (x <= curves.knots[-1])
    design = np.column_stack([np.ones(400), columns])[within]
    for values in np.eye(5):  # every natural spline through the knots is a sum of them
        natural = interpolate.CubicSpline(curves.knots, values, bc_type="natural")(x[within])
        fitted = design @ np.linalg.lstsq(design, natural, rcond=None)[0]
        np.testing.assert_allclose(fitted, natural, atol=1e-9)


def known_and_new(d: int = 3) -> tuple[KnownRows, list[np.ndarray], np.ndarray, np.ndarray]:
    rng = child(0, "balance", d)
    x, new = rng.normal(size=(300, d)), rng.normal(0.4, 1.0, size=(80, d))
    copies = np.ones(300)
    return KnownRows(list(x[:, :, None].transpose(1, 0, 2)), copies), [*new.T[:, :, None]], x, new


def test_weights_minimise_what_they_are_said_to() -> None:
    known, new, _, _ = known_and_new()
    found = known.balance(new, np.ones(80))
    z, m = known._columns, int(found.inside.sum())
    target = known._of(new)[found.inside].mean(axis=0)
    ridge = 10.0 * (1.0 / m + 1.0 / 300.0)

    def loss(theta: np.ndarray) -> float:
        return float(special.logsumexp(z @ theta) - theta @ target + ridge * theta @ theta / 2.0)

    best = optimize.minimize(loss, np.zeros(z.shape[1]), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found.weights, special.softmax(z @ best.x), atol=1e-7)
    np.testing.assert_allclose(found.left, target - found.weights @ z, atol=1e-12)


def test_expectation_is_that_of_a_regression_corrected_by_weights() -> None:
    known, new, x, _ = known_and_new()
    values = np.sin(x[:, 0]) + child(0, "values").normal(size=300)
    found = known.balance(new, np.ones(80))
    fitted = known.fit(values)
    z = known._columns
    by_others = np.empty(300)
    for row in range(300):
        rest = np.arange(300) != row
        model = Ridge(alpha=fitted.ridge).fit(z[rest], values[rest])
        by_others[row] = values[row] - model.predict(z[row : row + 1])[0]
    np.testing.assert_allclose(fitted.residuals, by_others, atol=1e-9)
    model = Ridge(alpha=fitted.ridge).fit(z, values)
    plain = model.predict(known._of(new)[found.inside]).mean()
    wanted = plain + found.weights @ (values - model.predict(z))
    told = known.mean(found, fitted)
    assert told.value == pytest.approx(wanted, abs=1e-10)
    shares = known.shares(found, fitted.ridge)
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    assert shares @ values == pytest.approx(wanted, abs=1e-10)
    assert known.effective(shares) == pytest.approx(1.0 / np.square(shares).sum())
    # values about the regression; a prior of variance σ²/λ of each slope; 15 % that it misses
    pull = np.linalg.solve(z.T @ z + fitted.ridge * np.eye(z.shape[1]), found.left)
    missed = 0.15 * model.predict(known._of(new)[found.inside]).var() / found.inside.sum()
    held_back = np.square(by_others).mean() / fitted.ridge * np.square(fitted.ridge * pull).sum()
    variance = np.square(shares * by_others).sum() + held_back + missed
    assert told.spread.error[0] ** 2 == pytest.approx(variance)
    assert told.spread.skew[0] == pytest.approx(np.sum((shares * by_others) ** 3) / variance**1.5)
    np.testing.assert_allclose(told.noise, [found.weights @ by_others**k for k in (2, 3)])


def test_each_new_row_is_judged_by_the_density_of_the_others() -> None:
    known, new, _, _ = known_and_new(d=1)
    columns, copies = known._of(new), np.ones(80)
    theta, _, curvature, _ = known._tilted(columns.mean(axis=0), 80.0)
    without = np.delete(columns, 3, axis=0).mean(axis=0)
    again, _, _, _ = known._tilted(without, 80.0)
    step = -np.linalg.solve(curvature, columns[3] - columns.mean(axis=0)) / 79.0
    np.testing.assert_allclose(again - theta, step, atol=0.1 * np.abs(step).max())
    assert known._dense_enough(columns, copies).all()


# ------------------------------------------------------------------------- closed forms


def test_of_the_reference_itself_nothing_changes() -> None:
    held = rows(400, "itself")
    known = Background.of(held, 0.9)
    told = known.expected(held)
    inside = told.rows_inside
    assert inside.mean() > 0.98
    assert told.coverage.value == pytest.approx(told.coverage.unchanged, abs=0.01)
    assert told.effective > 390.0


def test_without_inputs_that_vary_it_is_the_reference() -> None:
    n = 300
    y = child(0, "constant").normal(size=n)
    law = Distribution.normal(np.zeros(n), np.ones(n))
    held = EvalSet.checked(y, law, features={"x": np.ones(n)})
    told = Background.of(held, 0.9).expected(held.take(np.arange(50)))
    hits = int((np.abs(y) <= Z).sum())
    assert told.effective == pytest.approx(n)
    assert told.coverage.value == pytest.approx(hits / n)
    ends = stats.binomtest(hits, n).proportion_ci(0.95, method="exact")
    assert told.coverage.lower == pytest.approx(ends.low, abs=2e-3)
    assert told.coverage.upper == pytest.approx(ends.high, abs=2e-3)
    ratios = np.sort(np.abs(y) / Z)
    assert told.factor.value == pytest.approx(ratios[math.ceil(0.9 * (n + 1)) - 1])
    assert told.factor.unchanged == pytest.approx(told.factor.value)
    ranks = stats.binom.ppf([0.025, 0.975], n, 0.9)  # which bound a quantile, free of any law
    ends = np.searchsorted(ratios, [told.factor.lower, told.factor.upper]) + 1
    np.testing.assert_allclose(ends, ranks + np.array([0, 1]), atol=2)
    assert told.coverage.least == told.coverage.lower
    moved = replace(held, features={"x": np.full(n, 2.0)})  # what never changed now does
    assert Background.of(held, 0.9).expected(moved).inside == 0.0


def test_every_row_covered() -> None:
    n, m = 500, 60
    x = child(0, "covered").normal(size=n)
    held = EvalSet.checked(x, Intervals(x - 1.0, x + 1.0, coverage=0.9), features={"x": x})
    told = Background.of(held, 0.9).expected(held.take(np.arange(m)))
    effective = told.effective
    assert told.coverage.value == told.coverage.upper == told.coverage.seen_upper == 1.0
    assert told.coverage.lower == pytest.approx(0.025 ** (1.0 / effective), rel=1e-6)
    inside = int(told.rows_inside.sum())
    below = round(told.coverage.seen_lower * inside)

    def chance(k: int) -> float:  # that at most k of the new rows are covered
        def at(p: float) -> float:
            return float(effective * p ** (effective - 1.0) * stats.binom.cdf(k, inside, p))

        return float(integrate.quad(at, 0.0, 1.0, points=[0.99])[0])

    assert chance(below - 1) < 0.025 <= chance(below)
    assert told.factor.upper < 1e-12


def test_factor_is_the_weighted_conformal_quantile() -> None:
    known, new = Background.of(rows(2_000, "factor", d=1), 0.9), rows(500, "f", shift=0.4, d=1)
    told = known.expected(new)
    inputs = known._read(new)
    order = np.lexsort(inputs.T)
    found = known._known_rows.balance(known._blocks(inputs[order]), np.ones(500))
    shares = known._known_rows.shares(found, known._known_rows.fit(known.covered).ridge)
    assert (shares > 0.0).all()
    order = np.argsort(known.ratios)
    mass = np.cumsum(shares[order])  # one new row weighs Σ shares², and lies beyond all
    enough = mass >= 0.9 * (mass[-1] + np.square(shares).sum())
    assert told.factor.value == known.ratios[order][enough.argmax()]
    assert told.factor.lower < told.factor.value < told.factor.upper
    assert told.factor.value > told.factor.unchanged


# ------------------------------------------------------------------------- laws


@pytest.mark.slow
def test_order_of_rows_and_storage_change_nothing() -> None:
    held, new = rows(6_000, "order"), rows(120, "order new", shift=0.7)
    known = Background.of(held, 0.9)
    assert len(known.copies) == 5_000
    assert known.rows == 6_000
    turned = Background.of(held.take(np.arange(6_000)[::-1]), 0.9)
    assert known.to_table().equals(turned.to_table())
    stored = Background.from_table(known.to_table())
    told = known.expected(new)
    for other in (
        stored.expected(new),
        turned.expected(new.take(np.arange(120)[::-1])),
        known.expected(replace(new, y=np.zeros(120))),
    ):
        np.testing.assert_array_equal(numbers(told), numbers(other))
    back = turned.expected(new.take(np.arange(120)[::-1])).rows_inside
    np.testing.assert_array_equal(told.rows_inside, back[::-1])


def test_scale_names_and_order_of_inputs_change_nothing() -> None:
    held, new = rows(800, "scale", d=3), rows(100, "scale new", shift=0.7, d=3)

    def told(held: EvalSet, new: EvalSet, change: dict[str, tuple[str, float, float]]) -> Expected:
        def changed(given: EvalSet) -> EvalSet:
            made = {name: by * given.features[x] + at for x, (name, by, at) in change.items()}
            return replace(given, features=made)

        return Background.of(changed(held), 0.9).expected(changed(new))

    plain = told(held, new, {f"x{k}": (f"x{k}", 1.0, 0.0) for k in range(3)})
    other = told(held, new, {"x0": ("c", 1e6, 3.0), "x1": ("a", -2.0, 0.0), "x2": ("b", 1e-7, 1.0)})
    np.testing.assert_allclose(numbers(plain), numbers(other), rtol=1e-5)


def test_a_frequency_of_two_is_a_row_twice() -> None:
    held, new = rows(500, "twice"), rows(60, "twice new", shift=0.5)
    counts, counts_new = (child(0, "counts", n).integers(1, 4, size=n) for n in (500, 60))

    def weighted(given: EvalSet, count: np.ndarray) -> EvalSet:
        return EvalSet.checked(given.y, given.predictions, features=given.features, weights=count)

    def repeated(given: EvalSet, count: np.ndarray) -> EvalSet:
        return given.take(np.repeat(np.arange(given.n), count))

    one = Background.of(weighted(held, counts), 0.9).expected(weighted(new, counts_new))
    two = Background.of(repeated(held, counts), 0.9).expected(repeated(new, counts_new))
    assert one.rows == two.rows == counts_new.sum()
    np.testing.assert_allclose(one.coverage.value, two.coverage.value, rtol=0.003)
    np.testing.assert_allclose(one.effective, two.effective, rtol=0.02)


def test_rows_that_depend_count_as_fewer() -> None:
    known, new = Background.of(rows(2_000, "worth"), 0.9), rows(200, "worth new", shift=0.5)
    one, four = known.expected(new), known.expected(new, worth=4.0)
    assert four.effective == pytest.approx(one.effective / 4.0)
    assert four.coverage.value == one.coverage.value
    for name in ("coverage", "score"):
        wide, narrow = getattr(four, name), getattr(one, name)
        assert 1.8 < (wide.upper - wide.lower) / (narrow.upper - narrow.lower) < 2.5
    with pytest.raises(InputError, match=r"worth must be at least 1, got 0\.5"):
        known.expected(new, worth=0.5)


# ------------------------------------------------------------------------- what is true


def test_a_shift_is_foretold() -> None:
    errors, unchanged, held = [], [], []
    for run in range(12):
        known = Background.of(rows(1_000, "shift", run), 0.9)
        new = rows(100, "shift new", run, shift=1.0)
        told = known.expected(new)
        true = truth(new, told.rows_inside)
        errors.append(abs(told.coverage.value - true))
        unchanged.append(abs(told.coverage.unchanged - true))
        held.append(told.coverage.lower <= true <= told.coverage.upper)
        assert told.score.value > told.score.unchanged
    assert np.mean(errors) < 0.03 < 0.06 < np.mean(unchanged)
    assert sum(held) >= 9


@pytest.mark.rate
@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("new_rows", [20, 200])
def test_intervals_hold_what_is_expected_and_what_is_seen(shift: float, new_rows: int) -> None:
    expected, seen, scored = [], [], []
    for run in range(150):
        known = Background.of(rows(500, "rate", run), 0.9)
        new = rows(new_rows, "rate new", run, shift=shift)
        told = known.expected(new)
        if told.reason:
            continue
        where = told.rows_inside
        expected.append(told.coverage.lower <= truth(new, where) <= told.coverage.upper)
        share = np.mean(np.abs(new.y[where]) <= Z)
        seen.append(told.coverage.seen_lower - 1e-9 <= share <= told.coverage.seen_upper + 1e-9)
        score = crps_normal(new.y[where], np.zeros(where.sum()), np.ones(where.sum())).mean()
        scored.append(told.score.seen_lower <= score <= told.score.seen_upper)
    assert len(expected) > 140
    assert np.mean(expected) > 0.89
    assert np.mean(seen) > 0.92
    assert np.mean(scored) > 0.88


def test_point_and_width_serve_where_there_are_no_features() -> None:
    def made(n: int, name: str, shift: float) -> EvalSet:
        rng = child(0, "default", name)
        point, sd = rng.normal(size=n), np.exp(0.5 * rng.normal(shift, size=n))
        y = point + sd**1.5 * rng.normal(size=n)  # widths understate where they are large
        return EvalSet.checked(y, Distribution.normal(point, sd))

    known = Background.of(made(1_500, "reference", 0.0), 0.9)
    assert known.predicted
    assert [each.name for each in known.columns] == ["log width", "point"]
    new = made(300, "new", 1.0)
    told = known.expected(new)
    sd = new.predictions[0].sd()[told.rows_inside]
    true = float(np.mean(2.0 * special.ndtr(Z / np.sqrt(sd)) - 1.0))
    assert told.coverage.lower < true < told.coverage.upper < told.coverage.unchanged


def test_labels_count_by_their_levels() -> None:
    def made(n: int, name: str, bad: float) -> EvalSet:
        rng = child(0, "labels", name)
        site = np.where(rng.random(n) < bad, "bad", rng.choice(["a", "b"], size=n)).astype(object)
        y = rng.normal(size=n) * np.where(site == "bad", 2.0, 1.0)
        law = Distribution.normal(np.zeros(n), np.ones(n))
        return EvalSet.checked(y, law, features={"site": site})

    known = Background.of(made(2_000, "reference", 0.1), 0.9)
    new = made(200, "new", 0.5)
    told = known.expected(new)
    share = (new.features["site"][told.rows_inside] == "bad").mean()
    true = share * (2.0 * special.ndtr(Z / 2.0) - 1.0) + (1.0 - share) * 0.9
    assert told.coverage.lower < true < told.coverage.upper
    assert known.columns[0].levels[-1] == "bad"
    site = new.features["site"].copy()
    site[:30] = "elsewhere"
    told = known.expected(replace(new, features={"site": site}))
    assert not told.rows_inside[:30].any()
    assert told.rows_inside[30:].all()


def test_rare_labels_count_as_one() -> None:
    n = 400
    held = rows(n, "rare")
    many = np.array([f"id {k}" for k in range(n)], dtype=object)
    known = Background.of(with_features(held, name=many), 0.9)
    assert known.columns[0].others
    assert known.columns[0].levels == ()
    new = rows(50, "rare new")
    told = known.expected(with_features(new, name=np.array(["new"] * 50, dtype=object)))
    assert told.inside == known.expected(with_features(new, name=many[:50])).inside > 0.9


# ------------------------------------------------------------------------- what cannot be told


def test_far_away_nothing_is_expected() -> None:
    known = Background.of(rows(1_000, "far"), 0.9)
    told = known.expected(rows(200, "far new", shift=8.0))
    assert told.inside == 0.0
    assert told.sentence == (
        "No estimate for today before labels arrive: all 200 rows are outside the reference."
    )
    assert math.isnan(told.coverage.value)
    assert told.width_sentence == ""
    near, far = rows(150, "near"), rows(50, "far part", shift=8.0)
    both = np.concatenate([near.features["x0"], far.features["x0"]])
    mixed = rows(200, "far new")
    mixed = with_features(mixed, x0=both)
    told = known.expected(mixed)
    assert not told.rows_inside[150:].any()
    assert told.rows_inside[:150].mean() > 0.97
    assert told.coverage.least <= truth(mixed, np.ones(200, dtype=bool)) <= told.coverage.most
    assert told.score.most == math.inf


def test_too_little_is_refused_with_its_reason() -> None:
    known = Background.of(rows(1_000, "little"), 0.9)
    told = known.expected(rows(5, "five"))
    assert told.reason == "5 of 5 rows are within the reference; at least 10 are needed"
    small = Background.of(rows(45, "small"), 0.9).expected(rows(100, "hundred"))
    assert small.effective < 50.0
    assert "at least 50 is needed" in small.sentence
    dependent = known.expected(rows(100, "hundred"), worth=40.0)
    assert dependent.effective < 50.0
    assert dependent.reason


def test_rows_whose_inputs_are_not_finite_lie_outside() -> None:
    def made(n: int, endless: int) -> EvalSet:
        point = child(0, "endless", n).normal(size=n)
        upper = point + 1.0
        upper[:endless] = np.inf
        y = point + 0.5 * child(0, "endless y", n).normal(size=n)
        return EvalSet.checked(y, Intervals(point - 1.0, upper, coverage=0.9), point=point)

    known = Background.of(made(400, 7), 0.9)
    assert len(known.copies) == 393
    told = known.expected(made(100, 10))
    assert not told.rows_inside[:10].any()
    assert told.inside <= 0.9
    assert told.score_name == "interval_score"
    with pytest.raises(InputError, match="rows whose inputs are finite, got none"):
        Background.of(made(20, 20), 0.9)


def test_models_of_which_no_coverage_is_watched() -> None:
    point = child(0, "points").normal(size=600)
    y = point + np.exp(0.3 * point) * child(0, "errors").normal(size=600)
    held = EvalSet.checked(y, point=point)
    told = Background.of(held, math.nan).expected(held.take(np.arange(100)))
    assert math.isnan(told.coverage.value)
    assert math.isnan(told.factor.value)
    assert told.sentence.startswith("Expected today, before labels arrive: mean absolute error 0.")
    assert told.score.lower < told.score.value < told.score.upper
    assert told.score.seen_lower < told.score.lower < told.score.upper < told.score.seen_upper


@pytest.mark.parametrize("inside", [1.0, 0.93, 0.9999, 0.2])
def test_sentences(inside: float) -> None:
    known = Background.of(rows(1_000, "words"), 0.9)
    told = known.expected(rows(200, "words new"))
    told = replace(
        told,
        inside=inside,
        coverage=replace(told.coverage, value=0.863, lower=0.831, upper=0.89),
        factor=replace(told.factor, value=1.137, lower=1.05, upper=1.26),
    )
    value = "90 % intervals cover 86.3 % (83.1–89.0)"
    without = "of rows are outside the reference, without an estimate."
    where = {
        1.0: f": {value}. All rows are within the reference.",
        0.93: f": {value}; 7 % {without}",
        0.9999: f": {value}; less than 0.1 % {without}",
        0.2: f", for the 20 % of rows within the reference: {value}. The other rows have no "
        "estimate.",
    }
    assert told.sentence == f"Expected today, before labels arrive{where[inside]}"
    assert told.width_sentence == (
        "To cover 90 % for these inputs, half-widths need a factor of 1.14 (1.05 to 1.26)."
    )
    assert "only in labels" in told.beware
    endless = replace(told, factor=replace(told.factor, value=math.inf))
    assert endless.width_sentence.startswith("The reference is too short")


def test_quantiles_and_a_coverage_that_is_almost_one() -> None:
    n = 200
    y = child(0, "quantiles").normal(size=n)
    table = np.tile(special.ndtri([0.005, 0.5, 0.995]), (n, 1))
    held = EvalSet.checked(
        y, Quantiles([0.005, 0.5, 0.995], table), features={"x": y * 0 + y[::-1]}
    )
    told = Background.of(held, 0.99).expected(held.take(np.arange(40)))
    assert told.score_name == "crps"
    assert math.isinf(told.factor.upper)


# ------------------------------------------------------------------------- wrong inputs


def test_wrong_inputs_are_named() -> None:
    held = rows(300, "wrong")
    known = Background.of(held, 0.9)
    with pytest.raises(InputError, match="must contain those of the reference, got none of x1"):
        known.expected(replace(held, features={"x0": held.features["x0"]}))
    text = np.array(["a"] * 300, dtype=object)
    with pytest.raises(InputError, match="feature 'x0' must contain numbers, got object"):
        known.expected(with_features(held, x0=text))
    weighted = EvalSet.checked(
        held.y, held.predictions, weights=np.full(300, 0.5), weights_kind="importance"
    )
    with pytest.raises(InputError, match="must be frequencies, got importance weights"):
        Background.of(weighted, 0.9)
    table = known.to_table()
    beside = json.loads(table.schema.metadata[b"howsure"])
    for damaged in (
        table.drop_columns(["ratios"]),
        table.replace_schema_metadata(None),
        table.replace_schema_metadata({"howsure": json.dumps({**beside, "rows": -1})}),
        pa.table({}),
    ):
        with pytest.raises(InputError, match="inputs are damaged"):
            Background.from_table(damaged)


def test_copies_that_count_as_one_tell_as_much_as_one() -> None:
    held, new = rows(1_000, "copies"), rows(100, "copies new", shift=0.5)
    once = Background.of(held, 0.9).expected(new)
    copied = held.take(np.repeat(np.arange(1_000), 4))
    four = Background.of(copied, 0.9).expected(new, worth=4.0)
    assert four.effective == pytest.approx(once.effective, rel=0.05)
    for end in ("value", "lower", "upper"):
        assert getattr(four.coverage, end) == pytest.approx(getattr(once.coverage, end), abs=0.01)


@pytest.mark.rate
def test_worth_keeps_intervals_right_where_days_share_their_errors() -> None:
    held: dict[str, list[bool]] = {"rows": [], "worth": []}
    for run in range(120):
        rng = child(0, "days", run)

        def days(count: int, shift: float, rng: np.random.Generator = rng) -> EvalSet:
            x = rng.normal(shift, size=10 * count)
            shared = np.repeat(rng.normal(size=count), 10)
            noise = math.sqrt(0.6) * shared + math.sqrt(0.4) * rng.normal(size=10 * count)
            y = np.exp(0.25 * x) * noise
            return EvalSet.checked(
                y, Distribution.normal(0.0 * y, 0.0 * y + 1.0), features={"x0": x}
            )

        reference, new = days(200, 0.0), days(10, 0.7)
        known = Background.of(reference, 0.9)
        sums = ((np.abs(reference.y) <= Z) - 0.9).reshape(200, 10).sum(axis=1)
        worth = worth_of(sums, np.full(200, 10.0), 0.09)
        for name, given in (("rows", 1.0), ("worth", worth)):
            told = known.expected(new, worth=given)
            true = truth(new, told.rows_inside)
            held[name].append(told.coverage.lower <= true <= told.coverage.upper)
    assert np.mean(held["rows"]) < 0.92 < np.mean(held["worth"])
