"""Conditional congruence of evaluation sets: right models pass, wrong places are found."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import subscribe
from howsure.core.rng import child
from howsure.inputs import load, load_unlabelled
from howsure.predictions import Distribution, EvalSet, Intervals, Samples
from howsure.report.assess import assess
from howsure.report.congruence import with_embedding
from howsure.report.monitor import fit_monitor, scored
from howsure.topics.congruence.examples import map_table, tree_table
from howsure.topics.congruence.laws import predictive_of
from howsure.topics.congruence.null import NullReference
from howsure.topics.congruence.predictive import Draws, Empirical, Normals, Support
from howsure.topics.congruence.view import CongruenceOptions, assess_congruence, congruence_mode


def wave(n: int = 700, *, wrong: float = 0.0, seed: int = 0) -> EvalSet:
    """A heteroscedastic wave whose model is wrong by an offset where x > 1."""
    rng = child(seed, "wave")
    x, side = rng.uniform(-2, 2, n), rng.choice(["left", "right"], n)
    sd = 0.2 + 0.2 * np.abs(x)
    y = np.sin(2 * x) + sd * rng.normal(size=n)
    mean = np.sin(2 * x) + wrong * (x > 1)
    features = {"x": x, "side": side}
    return with_embedding(EvalSet.checked(y, Distribution.normal(mean, sd), features=features))


@pytest.mark.rate
def test_a_right_model_sits_at_its_null() -> None:
    reports = [assess_congruence(wave(seed=s), "exact") for s in range(8)]
    trees = [table for each in reports for table in each.tables if table.name == "cce_tree"]
    assert sum(each.columns["worse"].any() for each in trees) <= 1 < len(trees)
    found = [each.record for each in reports]
    p_values = [record.p for record in found]
    assert np.mean(p_values) > 0.2
    for record in found:
        assert record.value == pytest.approx(record.null, rel=0.6)


def test_no_leaf_is_worse_unless_the_model_is_proven_to_be_wrong() -> None:
    """Leaves of smooth errors differ whether or not there is a fault."""
    held = wave()
    for proven in (False, True):
        tree = tree_table(held, np.square(held.features["x"]), 0, proven)
        assert tree is not None
        assert tree.columns["worse"].any() == proven


@pytest.mark.slow
def test_a_model_wrong_somewhere_is_caught_and_the_place_named() -> None:
    report = assess_congruence(wave(wrong=1.0), "exact")
    assert report.record.p <= 0.01
    assert report.record.value > 3 * report.record.null
    tables = {table.name: table for table in report.tables}
    assert "x > " in str(tables["cce_tree"].columns["where"][0])
    assert tables["cce_tree"].columns["worse"][0]
    worst = tables["cce_rows"].columns["x"][:10].astype(float)
    assert (worst > 0.5).all()
    assert len(tables["cce_map"]) == 700
    grown, fresh = (tables["cce_tree"].columns[c][0] for c in ("cce_when_grown", "cce"))
    assert fresh == pytest.approx(grown, rel=0.2)
    losses = {"rejection", "rejection_nll"}
    assert {curve.name for curve in report.curves} == losses | {f"{name}_oracle" for name in losses}


def test_every_law_embeds_in_the_mode_that_serves_all() -> None:
    n = 40
    y, mean = np.arange(n) % 5 * 1.0, np.full(n, 2.0)
    normal = EvalSet.checked(y, Distribution.normal(mean, np.ones(n)))
    count = EvalSet.checked(y, Distribution.from_scipy(stats.poisson(mean)))
    draws = EvalSet.checked(y, Samples(child(0, "s").normal(size=(n, 9))))
    skewed = EvalSet.checked(y, Distribution.from_scipy(stats.gamma(2.0, scale=mean)))
    assert congruence_mode([normal, count, draws]) == "exact"
    assert congruence_mode([normal, skewed]) == "samples"
    kinds = [type(predictive_of(held, "exact")) for held in (normal, count, draws)]
    assert kinds == [Normals, Support, Empirical]
    support = predictive_of(count, "exact")
    assert isinstance(support, Support)
    assert support.probabilities.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    expected = (support.values * support.probabilities).sum(axis=1)
    assert expected == pytest.approx(mean, abs=1e-9)
    assert type(predictive_of(skewed, "samples")) is Draws
    with pytest.raises(UnanswerableError):
        predictive_of(skewed, "exact")
    with pytest.raises(UnanswerableError):
        congruence_mode([EvalSet.checked(y, Intervals(y, y + 1, 0.9))])


def test_what_cannot_be_answered_is_said() -> None:
    held = wave(60)
    plain = EvalSet.checked(held.y, held.predictions)
    assert "needs inputs" in assess_congruence(plain, "exact").record.reason
    weighted = EvalSet.checked(
        held.y, held.predictions, embedding=held.embedding, weights=np.full(60, 2)
    )
    record = assess_congruence(weighted, "exact").record
    assert math.isnan(record.value)
    assert "unweighted" in record.reason
    constant = EvalSet.checked(
        np.zeros(60), Distribution.normal(np.zeros(60), np.ones(60)), embedding=held.embedding
    )
    assert "vary" in assess_congruence(constant, "exact").record.reason


@pytest.mark.slow
def test_assess_uses_one_mode_for_all_models() -> None:
    held = wave(300)
    x = held.features["x"]
    models = {
        "normal": held.predictions[0],
        "gamma": Distribution.from_scipy(stats.gamma(4.0, loc=np.sin(2 * x) - 1.0, scale=0.25)),
    }
    result = assess(held.y, models, features={"x": x})
    modes = {r.options["mode"] for r in result.records if r.metric == "mean_cce"}
    assert modes == {"samples"}
    assert "every input" in result.verdict or "some inputs" in result.verdict


def test_a_monitor_flags_where_the_model_is_wrong_without_labels() -> None:
    reference = replace(wave(900, wrong=1.5), embedding=None)
    monitor = fit_monitor(reference)
    new = {"x": np.array([1.8, -1.8]), "side": np.array(["left", "left"])}
    table = scored(monitor, monitor.judge(new), np.arange(2))
    assert table.columns["flagged"][0]
    assert table.columns["cce"][0] > 3 * table.columns["cce"][1]
    with pytest.raises(InputError, match="features"):
        monitor.judge({"x": np.array([1.0])})
    bare = EvalSet.checked(reference.y, reference.predictions)
    with pytest.raises(InputError, match="the reference needs features"):
        fit_monitor(bare)


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"x": [1.0]}, "side"),
        ({"x": ["a"], "side": ["left"]}, "x"),
        ({"x": [float("nan")], "side": ["left"]}, "missing"),
    ],
)
def test_unlabelled_rows_must_look_like_the_reference(
    table: dict[str, list[object]], match: str
) -> None:
    features = wave(60).features
    columns = {name: np.zeros(60) for name in ("y", "mean")} | {"sd": np.ones(60)}
    reference = load({**columns, **features}, features=[*features])
    with pytest.raises(InputError, match=match):
        load_unlabelled(table, reference)


def grouped(n: int = 1200, *, seed: int = 0, apart: bool = False) -> EvalSet:
    """Five sites alike in x; in one of them the model is wrong. Apart: x tells the site."""
    rng = child(seed, "sites")
    site = rng.choice(["oslo", "lima", "cairo", "turin", "delhi"], n, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    x = rng.uniform(-2, 2, n) + (4.0 * (site == "turin") if apart else 0.0)
    y = np.sin(x) + 0.3 * rng.normal(size=n) + 0.9 * (site == "turin")
    held = EvalSet.checked(
        y,
        Distribution.normal(np.sin(x), np.full(n, 0.3)),
        features={"x": x, "noise": rng.normal(size=n)},
        groups={"site": site, "day": rng.choice(["mon", "tue", "wed"], n)},
    )
    return with_embedding(held)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.rate
def test_the_group_where_the_model_is_wrong_is_named(apart: bool) -> None:
    for seed in range(3):
        report = assess_congruence(grouped(seed=seed, apart=apart), "exact")
        tree = next(table for table in report.tables if table.name == "cce_tree")
        where = [str(rule).split(", ") for rule in tree.columns["where"]]
        cce, grown = tree.columns["cce"], tree.columns["cce_when_grown"]
        if not apart:
            named = np.array(["site=turin" in rule for rule in where])
            assert cce[named].min() > 1.3 * cce[~named].max()
        assert "site=turin" in where[0] or (apart and "x > " in str(where[0]))
        assert cce[0] == pytest.approx(grown[0], rel=0.25)
        assert "CCE given the inputs and site, day." in tree.notes


@pytest.mark.rate
def test_a_group_that_is_right_everywhere_explains_nothing() -> None:
    held = grouped()
    right = EvalSet.checked(
        held.y - 0.9 * (held.groups["site"].values() == "turin"),
        held.predictions,
        features=held.features,
        groups=held.groups,
    )
    report = assess_congruence(with_embedding(right), "exact")
    tree = next(table for table in report.tables if table.name == "cce_tree")
    wrong = assess_congruence(held, "exact")
    worst = next(table for table in wrong.tables if table.name == "cce_tree")
    assert tree.columns["cce"].max() < worst.columns["cce"].max() / 2


@pytest.mark.rate
def test_groups_stand_beside_an_embedding_of_any_kind() -> None:
    held = grouped(400)
    assert held.embedding is not None
    wide = np.hstack([held.embedding, child(0, "wide").normal(size=(held.n, 30))])
    for embedding in (held.embedding[:, :1], 1e4 * held.embedding, wide):
        part = replace(held, embedding=embedding, features={})
        report = assess_congruence(part, "exact")
        tree = next(table for table in report.tables if table.name == "cce_tree")
        assert "site=turin" in str(tree.columns["where"][0])


def flat_null(n: int) -> NullReference:
    """A reference of n points without errors."""
    zeros = np.zeros(n)
    return NullReference(
        observed=0.0,
        expected=0.0,
        upper=0.0,
        range=(0.0, 0.0),
        stopped=False,
        p_value=1.0,
        level=0.95,
        replicates=zeros,
        point_observed=zeros,
        point_expected=zeros,
        point_upper=zeros,
        point_p_value=zeros,
    )


def test_the_map_has_the_inputs_that_tell_errors_apart_in_their_own_units() -> None:
    rng = child(0, "map of inputs")
    names = ("noise", "bowl", "step", "constant", "label")
    features = {
        "noise": rng.normal(size=500),
        "bowl": 1000.0 + 50.0 * rng.normal(size=500),
        "step": rng.integers(0, 30, 500),
        "constant": np.ones(500),
        "label": rng.choice(["a", "b"], 500),
    }
    assert tuple(features) == names
    values = np.square((features["bowl"] - 1000) / 50) + 0.2 * (features["step"] > 14)
    zeros = np.zeros(500)
    null = flat_null(500)
    told = {"second": ("y", zeros), "names": np.arange(500)}

    def axes(kept: list[str]) -> tuple[str, str]:
        part = {name: features[name] for name in kept}
        table = map_table(rng.normal(size=(500, 3)), values, null, features=part, **told)
        for place in ("first", "second"):
            if table.labels[place] in part:
                np.testing.assert_array_equal(table.columns[place], part[table.labels[place]])
        return table.labels["first"], table.labels["second"]

    assert axes([*names]) == ("bowl", "step")
    assert axes(["noise", "constant"]) == ("noise", "y")
    assert axes(["label"])[0] == "first principal coordinate"


@pytest.mark.slow
def test_the_map_by_principal_coordinates_and_by_t_sne() -> None:
    held = wave(300)
    options = CongruenceOptions(layout="pca")
    plain = assess_congruence(held, "exact", options=options).tables[0]
    near = assess_congruence(held, "exact", options=CongruenceOptions(layout="t-sne")).tables[0]
    again = assess_congruence(held, "exact", options=CongruenceOptions(layout="t-sne")).tables[0]
    assert plain.labels["first"] == "first principal coordinate"
    assert near.labels["first"] == "first t-SNE coordinate"
    assert "t-SNE" in near.notes
    assert "t-SNE" not in plain.notes
    for name in ("first", "second"):
        np.testing.assert_array_equal(near.columns[name], again.columns[name])
    np.testing.assert_array_equal(near.columns["cce"], plain.columns["cce"])
    assert held.embedding is not None
    centred = held.embedding - held.embedding.mean(axis=0)
    _, scale, _ = np.linalg.svd(centred)
    for name, size in zip(("first", "second"), scale, strict=False):
        assert np.linalg.norm(plain.columns[name]) == pytest.approx(size)


def test_t_sne_keeps_clusters_together_and_draws_few_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("howsure.topics.congruence.examples.MAX_ROWS_OF_MAP", 300)
    rng = child(0, "clusters")
    kind = np.arange(400) % 3
    rows = 8.0 * np.eye(3)[kind] + 0.3 * rng.normal(size=(400, 3))
    values, zeros = kind.astype(float), np.zeros(400)
    null = flat_null(400)
    table = map_table(
        rows, values, null, np.arange(400), second=("y", zeros), layout="t-sne", model="m"
    )
    assert len(table) == 300
    assert "300 of 400 rows" in table.notes
    plane = np.stack([table.columns["first"], table.columns["second"]], axis=1)
    found = table.columns["cce"].astype(int)
    np.testing.assert_array_equal(found, table.columns["row"] % 3)
    middle = np.stack([plane[found == k].mean(axis=0) for k in range(3)])
    nearest = np.linalg.norm(plane[:, None] - middle, axis=2).argmin(axis=1)
    assert (nearest == found).mean() > 0.99


@pytest.mark.parametrize(
    ("choice", "match"),
    [
        ({"draws": 0}, "draws must be a whole number of at least 1"),
        ({"regularization": 0.0}, "regularization must be positive"),
        ({"regularization": math.nan}, "regularization must be positive"),
        ({"bandwidth": -1.0}, "bandwidth must be positive"),
        ({"bandwidth": math.nan}, "bandwidth must be positive"),
        ({"layout": "umap"}, "layout must be one of inputs, pca, t-sne"),
        ({"kernel": "x"}, "kernel must be one of"),
        ({"bandwidth": "x"}, "bandwidth must be"),
    ],
)
def test_bad_choices_are_named(choice: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        CongruenceOptions(**choice)


def test_stages_are_told_from_first_to_last() -> None:
    told: list[tuple[str, int, int]] = []
    with subscribe(lambda *step: told.append(step)):
        assess_congruence(wave(100), "exact")
    own = [(done, total) for _, done, total in told if total == 4]
    assert own == [(done, 4) for done in range(5)]
    assert all(stage.startswith("congruence of model") for stage, _, _ in told)


def clouds(n: int, members: int, seed: int, *, spread: float = 1.0) -> EvalSet:
    rng = child(seed, "clouds")
    x = rng.uniform(-2, 2, n)
    sd = 0.2 + 0.2 * np.abs(x)
    y = np.sin(2 * x) + sd * rng.normal(size=n)
    table = np.sin(2 * x)[:, None] + spread * sd[:, None] * rng.normal(size=(n, members))
    return with_embedding(EvalSet.checked(y, Samples(table), features={"x": x}))


@pytest.mark.parametrize("mode", ["exact", "samples"])
@pytest.mark.rate
def test_ensembles_are_judged_with_y_among_their_members(mode: str) -> None:
    """Narrow ones are found to any p that a verdict needs, right ones sit within their range."""
    right = assess_congruence(clouds(250, 5, 0), mode).record
    wrong = assess_congruence(clouds(250, 5, 0, spread=0.4), mode).record
    for record in (right, wrong):
        assert record.null_lower < record.null < record.null_upper
        assert record.standard_error > 0
        assert record.options["null_draws"] >= 199
    assert right.null_lower < right.value < right.null_upper
    assert right.p > 0.05
    assert wrong.p < 0.002
    assert wrong.options["null_draws"] > 499


def test_draws_of_an_ensemble_hold_no_member_twice() -> None:
    held = clouds(60, 5, 1)
    law = held.predictions[0]
    assert isinstance(law, Samples)
    for draws in (3, 5, 9):
        predictive = predictive_of(held, "samples", draws=draws)
        assert isinstance(predictive, Draws)
        taken = predictive.samples[:, :, 0]
        assert taken.shape == (60, min(draws, 5))
        for row in range(60):
            assert set(taken[row]) <= set(law.sorted_samples[row])
            assert len(set(taken[row])) == min(draws, 5)
