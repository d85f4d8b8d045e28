"""Recalibration by inputs: trees, planted defects, laws, encodings and bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Prediction, Quantiles
from howsure.recalibration import METHODS, recalibrate
from howsure.recalibration.inputs import LEAST_GAIN, SHRINKAGE, ByInputs, Encoding, Tree, grown
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

# Trees.


def test_trees_say_what_scikit_learns_say() -> None:
    rng = child(0, "trees")
    x = rng.normal(size=(700, 4))
    target = np.where(x[:, 1] > 0.3, 2.0, 0.0) + (x[:, 2] < -0.5) + 0.3 * rng.normal(size=700)
    ours = grown(x, list("abcd"), target, np.ones(700))
    theirs = DecisionTreeRegressor(
        max_depth=3,
        min_samples_leaf=58,
        ccp_alpha=(LEAST_GAIN + 2 * np.log(4)) * target.var() / 700,
        random_state=0,
    ).fit(x, target)
    assert theirs.tree_.node_count == len(ours.feature) > 3
    elsewhere = rng.normal(size=(500, 4))
    for rows in (x, elsewhere):
        assert np.array_equal(ours.apply(rows), theirs.apply(rows))
        assert np.allclose(ours.at(rows), theirs.predict(rows), rtol=1e-12)


def test_rules_tell_where_each_leaf_lies() -> None:
    rng = child(0, "rules")
    x = np.round(rng.uniform(0, 10, size=(600, 2)), 2)
    target = np.where(x[:, 0] > 4, np.where(x[:, 1] > 7, 3.0, 1.0), 0.0)
    tree = grown(x, ["age", "dose"], target, np.ones(600))
    leaves = tree.apply(x)
    for leaf in tree.leaves:
        inside = np.ones(600, dtype=bool)
        for part in tree.rules[leaf].split(" and "):
            name, sign, edge = part.split()
            values = x[:, ["age", "dose"].index(name)]
            inside &= values > float(edge) if sign == ">" else values <= float(edge)
        assert np.array_equal(inside, leaves == leaf)


def test_values_that_32_bits_cannot_hold_are_told_apart() -> None:
    x = np.array([[1e60], [2e60], [3e60]])[np.arange(300) % 3]
    tree = grown(x, ["big"], (x[:, 0] > 1e60) * 1.0 + np.arange(300) % 2, np.ones(300))
    assert tree.threshold[0] == pytest.approx(1.5e60)
    assert np.array_equal(tree.at(np.array([[1e60], [2e60]])), [0.5, 1.5])


@pytest.mark.parametrize("low", [-np.inf, 0.0])
def test_infinite_values_are_apart_from_finite_ones(low: float) -> None:
    x = np.array([[low], [np.inf]])[np.arange(200) % 2]
    tree = grown(x, ["x"], np.where(x[:, 0] > 0, 2.0, 1.0), np.ones(200))
    assert np.array_equal(tree.at(x), np.where(x[:, 0] > 0, 2.0, 1.0))


@pytest.mark.parametrize("n", [1, 59, 60, 400])
def test_nothing_is_split_where_rows_are_too_few_or_alike(n: int) -> None:
    x = np.arange(float(n))[:, None]
    least = max(30, n // 12)
    tree = grown(x, ["x"], (x[:, 0] >= n / 2) * 1.0, np.ones(n))
    assert len(tree.leaves) == (2 if n >= 2 * least else 1)
    assert grown(x, ["x"], np.ones(n), np.ones(n)).leaves == [0]


def test_chance_alone_hardly_ever_splits() -> None:
    rng = child(0, "chance")
    split = 0
    for _ in range(150):
        x = rng.normal(size=(300, 5))
        split += len(grown(x, list("abcde"), rng.normal(size=300), np.ones(300)).leaves) > 1
    assert split <= 12  # 8 %


# Leaves, by definition.


@pytest.mark.parametrize("kind", KINDS)
def test_leaves_hold_what_their_rows_and_ten_of_the_whole_teach(kind: str) -> None:
    held_out = world(kind, 1_500, "leaves", "regionbias")
    fitted = ByInputs(kind).fit(held_out)
    assert len(fitted.mean.leaves) > 1
    frame, y = LocationScale.of(held_out.predictions[0]), held_out.y
    x = fitted.encoding.table(held_out)
    leaf = fitted.mean.apply(x)

    def own_shift(rows: np.ndarray) -> float:
        part = frame.take(rows)
        return part.shift(y[rows], np.ones(len(rows)), part.spread)

    whole = own_shift(np.arange(held_out.n))
    shift = np.empty(held_out.n)
    for node in set(leaf.tolist()):
        rows = np.flatnonzero(leaf == node)
        assert len(rows) >= 125
        own = len(rows) * own_shift(rows) + SHRINKAGE * whole
        shift[rows] = own / (len(rows) + SHRINKAGE)
    assert np.allclose(fitted.mean.at(x), shift, rtol=1e-12)
    center = frame.center + shift * frame.spread
    everywhere = frame.factor(y, np.ones(held_out.n), center)
    leaf = fitted.spread.apply(x)
    for node in set(leaf.tolist()):
        rows = np.flatnonzero(leaf == node)
        own = frame.take(rows).factor(y[rows], np.ones(len(rows)), center[rows])
        both = (len(rows) * own**2 + SHRINKAGE * everywhere**2) / (len(rows) + SHRINKAGE)
        assert fitted.spread.value[node] == pytest.approx(np.sqrt(both), rel=1e-12)


# Laws.


@pytest.mark.parametrize(
    ("kind", "factor"), [*((kind, 3.0) for kind in KINDS), *((kind, -1.0) for kind in KINDS[:2])]
)
def test_units_and_sign_of_y_do_not_matter(kind: str, factor: float) -> None:
    held_out, new = world(kind, 600, "units", "region"), world(kind, 50, "more units")
    made = ByInputs(kind).fit(held_out).apply(new).predictions[0]
    turned = ByInputs(kind).fit(rescaled(held_out, factor, 5.0))
    other = turned.apply(rescaled(new, factor, 5.0)).predictions[0]
    wanted = numbers(rescaled(EvalSet.checked(new.y, made), factor, 5.0).predictions[0])
    assert np.allclose(numbers(other), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_order_does_not_matter_and_a_frequency_is_a_repetition(kind: str) -> None:
    held_out, new = world(kind, 500, "order", "region"), world(kind, 50, "new")
    made = numbers(ByInputs(kind).fit(held_out).apply(new).predictions[0])
    assert np.array_equal(numbers(ByInputs(kind).fit(held_out).apply(new).predictions[0]), made)
    order = child(0, "order").permutation(500)
    again = ByInputs(kind).fit(held_out.take(order)).apply(new).predictions[0]
    assert np.allclose(numbers(again), made, rtol=1e-9, atol=1e-12)
    copies = child(0, "copies").integers(1, 4, 500)
    counted = ByInputs(kind).fit(weighted(held_out, copies)).apply(new).predictions[0]
    repeated = ByInputs(kind).fit(held_out.take(np.repeat(np.arange(500), copies))).apply(new)
    assert np.allclose(numbers(counted), numbers(repeated.predictions[0]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_units_of_inputs_do_not_matter(kind: str) -> None:
    held_out, new = world(kind, 500, "inputs", "region"), world(kind, 50, "new")

    def other(rows: EvalSet) -> EvalSet:
        features = {name: np.exp(3 * values) for name, values in rows.features.items()}
        return EvalSet.checked(rows.y, rows.predictions, features=features)

    made = ByInputs(kind).fit(held_out)
    turned = ByInputs(kind).fit(other(held_out))
    ours, theirs = made.apply(held_out).predictions[0], turned.apply(other(held_out)).predictions[0]
    assert np.allclose(numbers(ours), numbers(theirs), rtol=1e-12)
    assert turned.apply(other(new)).n == 50


# Planted defects come right; right models are not harmed.


@pytest.mark.parametrize("defect", ["region", "regionbias"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_defect_in_one_region_comes_right(kind: str, defect: str) -> None:
    fresh = world(kind, 20_000, "fresh", defect)
    shares, scores = [], []
    for table in range(5):
        made = recalibrate(fresh, world(kind, 2_000, table, defect), method="inputs").evalset
        inside, bad = covered(made), is_bad(fresh, defect)
        shares.append((inside[bad].mean(), inside[~bad].mean()))
        scores.append(score(made))
    assert np.abs(np.mean(shares, axis=0) - 0.9).max() < 0.03
    assert max(scores) < score(fresh)


@pytest.mark.parametrize("kind", KINDS)
def test_a_right_model_is_not_harmed(kind: str) -> None:
    fresh = world(kind, 20_000, "right")
    made = [recalibrate(fresh, world(kind, 1_000, t), method="inputs") for t in range(12)]
    harm = np.mean([score(each.evalset) for each in made]) / score(fresh) - 1.0
    assert harm < 0.005
    alike = [
        any("all rows get the same correction" in note for note in each.notes) for each in made
    ]
    assert sum(alike) >= 9


@pytest.mark.parametrize("defect", ["region", "regionbias"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_mended_needs_no_mend_again(kind: str, defect: str) -> None:
    held_out = world(kind, 2_000, "twice", defect)
    once = ByInputs(kind).fit(held_out).apply(held_out)
    twice = ByInputs(kind).fit(once).apply(once)
    first = score(held_out) - score(once)
    assert first > 0
    assert abs(score(once) - score(twice)) < 0.1 * first


# What the trees may ask for.


def labelled(n: int, name: str, labels: str = "uvw") -> tuple[np.ndarray, np.ndarray]:
    rng = child(0, "labelled", name)
    place = rng.choice(list(labels), n)
    return place, rng.normal(size=n) * np.where(place == "w", 3.0, 1.0)


def unit(y: np.ndarray) -> Prediction:
    return Distribution.normal(np.zeros(len(y)), np.ones(len(y)))


def test_labels_are_those_known_at_calibration() -> None:
    place, y = labelled(900, "known")
    held_out = EvalSet.checked(y, unit(y), features={"place": place})
    fitted = ByInputs("distributions").fit(held_out)
    assert [each.name for each in fitted.encoding.inputs] == ["place=w"]
    names = {each.name for each in fitted.parameters}
    assert {"factor, place=w", "factor, not place=w"} <= names
    assert fitted.notes == ("The spread differs between: not place=w; place=w.",)
    new = EvalSet.checked(np.zeros(4), unit(np.zeros(4)), features={"place": list("wuxx")})
    made, notes = fitted.transform(new)
    assert made.sd()[0] > 2.5
    assert np.ptp(made.sd()[1:]) == 0
    assert notes == (
        "2 rows with labels of place that calibration rows do not have: treated as an unknown "
        "label.",
    )


def test_inputs_that_no_tree_asks_for_need_not_come() -> None:
    place, y = labelled(900, "asked")
    features = {"place": place, "idle": child(0, "idle").normal(size=900)}
    fitted = ByInputs("distributions").fit(EvalSet.checked(y, unit(y), features=features))
    few = EvalSet.checked(y, unit(y), features={"place": place})
    assert np.array_equal(
        fitted.apply(few).predictions[0].sd(),
        fitted.apply(EvalSet.checked(y, unit(y), features=features)).predictions[0].sd(),
    )
    with pytest.raises(InputError, match=r"must have the input place, .*, got idle"):
        fitted.apply(EvalSet.checked(y, unit(y), features={"idle": features["idle"]}))
    with pytest.raises(InputError, match=r"input place must contain labels, .*, got numbers"):
        fitted.apply(EvalSet.checked(y, unit(y), features={"place": np.arange(900)}))


def test_numbers_must_stay_numbers() -> None:
    rng = child(0, "numbers")
    x = rng.uniform(size=900)
    y = rng.normal(size=900) * np.where(x > 0.6, 3.0, 1.0)
    fitted = ByInputs("distributions").fit(EvalSet.checked(y, unit(y), features={"x": x}))
    with pytest.raises(InputError, match=r"input x must contain numbers, .*, got labels"):
        fitted.apply(EvalSet.checked(y, unit(y), features={"x": x.astype(str)}))


@pytest.mark.parametrize("width", [3, 60])
def test_an_embedding_serves_where_there_are_no_features(width: int) -> None:
    rng = child(0, "embedding", width)
    turn = np.linalg.qr(rng.normal(size=(width, width)))[0]

    def rows(n: int) -> EvalSet:
        x = rng.normal(size=(n, width)) * np.where(np.arange(width) == 0, 5.0, 1.0)
        y = rng.normal(size=n) * np.where(x[:, 0] > 1.0, 3.0, 1.0)
        given = x if width == 3 else x @ turn + 7.0
        return EvalSet.checked(y, unit(y), embedding=given)

    fitted = ByInputs("distributions").fit(rows(2_000))
    wide = ["embedding 0", "principal coordinate 1"][width > 3]
    assert [each.name for each in fitted.encoding.inputs] == [wide]
    fresh = rows(4_000)
    factor = fitted.apply(fresh).predictions[0].sd()
    coordinate = fresh.embedding[:, 0] if width == 3 else (fresh.embedding - 7.0) @ turn[0]
    assert factor[coordinate > 2].min() > 2.2
    assert factor[coordinate < 0].max() < 1.3
    with pytest.raises(InputError, match=f"an embedding of {width} columns, .*, got 2 columns"):
        fitted.apply(EvalSet.checked([0.0], unit(np.zeros(1)), embedding=[[1.0, 2.0]]))
    with pytest.raises(InputError, match="got none"):
        fitted.apply(EvalSet.checked([0.0], unit(np.zeros(1))))


def test_a_turned_embedding_is_turned_alike_at_new_rows() -> None:
    rows = child(0, "turned").normal(size=(300, 60)) * np.arange(60, 0, -1)
    y = np.zeros(300)
    held = EvalSet.checked(y, unit(y), embedding=rows)
    encoding = Encoding.learnt(held)
    table = encoding.table(held)
    left, size, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    wanted = left[:, :20] * size[:20]
    assert np.allclose(np.abs(table), np.abs(wanted), rtol=1e-6, atol=1e-6)
    assert np.allclose(encoding.used([4, 2]).table(held), table[:, [4, 2]])
    assert np.allclose(encoding.table(held.take(np.arange(5))), table[:5])


# Bad input, and what is stored.


def test_bad_input() -> None:
    y = child(0, "bad").normal(size=80)
    with pytest.raises(InputError, match=r"needs features or an embedding.* have neither"):
        recalibrate(*[EvalSet.checked(y, unit(y))] * 2, method="inputs")
    x = {"x": np.arange(80)}
    with pytest.raises(InputError, match="spreads cannot be scaled"):
        ByInputs("distributions").fit(EvalSet.checked(y * 0, unit(y), features=x))
    with pytest.raises(InputError, match="at least 2 rows"):
        ByInputs("distributions").fit(EvalSet.checked([1.0], unit(y[:1]), features={"x": [1]}))
    assert "point" not in METHODS["inputs"].kinds


def test_rows_of_another_kind_or_level_are_refused() -> None:
    held_out = world("quantiles", 200, "levels")
    fitted = ByInputs("quantiles").fit(held_out)
    with pytest.raises(InputError, match=r"must have quantiles, .* got intervals"):
        fitted.apply(world("intervals", 20, "levels"))
    (held,) = held_out.predictions
    assert isinstance(held, Quantiles)
    fewer = replace(held_out, predictions=(Quantiles(held.levels[1:], held.values[:, 1:]),))
    with pytest.raises(InputError, match=r"quantiles at levels 0\.025, .* got 0\."):
        fitted.apply(fewer)


def test_trees_are_plain_arrays() -> None:
    fitted = ByInputs("distributions").fit(world("distributions", 900, "plain", "region"))
    for tree in (fitted.mean, fitted.spread):
        assert isinstance(tree, Tree)
        held = (tree.feature, tree.threshold, tree.left, tree.right, tree.value)
        assert all(isinstance(each, np.ndarray) for each in held)
        assert len({len(each) for each in (*held, tree.rules)}) == 1
