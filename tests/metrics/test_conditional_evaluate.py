"""Conditional coverage of evaluation sets: records, tables, and reasons."""

from __future__ import annotations

import math

import numpy as np
import pytest

from howsure.core.records import Notion, Record
from howsure.core.rng import child
from howsure.engine.measure import Evaluation, curves_of, evaluate, tables_of
from howsure.figures import figures_of
from howsure.predictions import Distribution, EvalSet, Intervals, LabelSets
from howsure.topics.conditional import view as conditional
from howsure.topics.conditional.view import input_table

NAMES = {
    "worst_region",
    "regions_differ",
    "worst_slab",
    "ert_squared",
    "ert_absolute",
    "ert_log",
    "conditional_validity_index",
    "hsic",
    "width_correlation",
    "local_pit",
    "coverage_gap",
    "coverage_gap_debiased",
    "noise_given_inputs",
}


def held(n: int = 1_200, *, wrong: float = 1.0, seed: int = 0) -> EvalSet:
    """Normal predictions whose sd is too small in the north."""
    rng = child(seed, "conditional")
    age, site = rng.uniform(20, 80, n), rng.choice(["north", "south"], n, p=[0.3, 0.7])
    sd = 0.5 + age / 80
    y = sd * np.where(site == "north", wrong, 1.0) * rng.normal(size=n)
    return EvalSet.checked(
        y,
        Distribution.normal(np.zeros(n), sd),
        features={"age": age, "site": site},
        groups={"site": site},
        model="net",
    )


def records(found: Evaluation) -> dict[str, Record]:
    return {record.metric: record for record in found.records}


@pytest.fixture(scope="module")
def wrong() -> Evaluation:
    return evaluate(held(wrong=2.5), beside="inputs")


def test_a_model_wrong_in_one_place_fails_every_measure_that_can_see_it(
    wrong: Evaluation,
) -> None:
    found = records(wrong)
    assert set(found) == NAMES
    for name in NAMES - {"hsic", "width_correlation", "noise_given_inputs"}:
        assert found[name].p < 1e-2, name
        assert (name == "regions_differ") == math.isnan(found[name].standard_error)
        assert "north" in str(found[name].options["where"]), name
        assert found[name].model == "net"
    assert found["worst_slab"].value < 0.75
    assert found["worst_slab"].target == 0.9
    assert found["worst_slab"].null == found["worst_region"].null == 0.9  # of a perfect model
    assert found["local_pit"].options["fault"] == "too narrow"
    assert found["coverage_gap"].notion is Notion.GROUP
    assert found["ert_squared"].notion is Notion.LOCAL
    noise = found["noise_given_inputs"]  # for equal widths alone
    assert math.isnan(noise.value)
    assert "widths differ" in noise.reason


def test_the_regions_are_told_in_one_table(wrong: Evaluation) -> None:
    tables = {table.name: table for table in tables_of(wrong)}
    regions = tables["conditional_regions"].columns
    assert regions["measure"].tolist() == [
        "worst_region",
        "worst_slab",
        "ert",
        "hsic",
        "local_pit",
        "coverage_gap site",
    ]
    coverage = dict(zip(regions["measure"], regions["empirical_coverage"], strict=True))
    assert coverage["ert"] < 0.7
    parts = tables["conditional_parts"].columns
    assert parts["n"].sum() == 600
    (curve,) = curves_of(wrong)
    assert curve.name == "local_pit"
    assert len(figures_of([curve])) == 1


def test_a_right_model_passes() -> None:
    found = records(evaluate(held(seed=5), beside="inputs"))
    low = [name for name, record in found.items() if record.p < 0.01]
    assert low == []


def test_the_answer_does_not_depend_on_the_order_of_rows() -> None:
    one = held(400, wrong=2.0)
    other = one.take(np.arange(400)[::-1])
    first, second = (
        records(evaluate(one, beside="inputs")),
        records(evaluate(other, beside="inputs")),
    )
    for name, record in first.items():
        if name == "noise_given_inputs":
            assert (math.isnan(record.value), record.reason) == (True, second[name].reason)
            continue
        assert second[name].value == pytest.approx(record.value, rel=1e-9), name
        assert second[name].p == pytest.approx(record.p)


def test_what_the_content_does_not_permit_has_a_reason() -> None:
    y = np.linspace(-1.2, 1.2, 200)
    bare = EvalSet.checked(y, Intervals(-np.ones(200), np.ones(200), coverage=0.9))
    found = records(evaluate(bare, beside="inputs"))
    assert all(math.isnan(record.value) for record in found.values())
    assert "inputs are needed" in found["worst_slab"].reason
    assert "inputs are needed" in found["local_pit"].reason
    assert "inputs are needed" in found["noise_given_inputs"].reason
    assert found["hsic"].reason == "all widths are equal"
    assert "no groups" in found["coverage_gap"].reason
    unknown = EvalSet.checked(y, Intervals(-np.ones(200), np.ones(200)), features={"x": y})
    answers = evaluate(unknown, beside="inputs")
    assert "nominal coverage" in records(answers)["ert_squared"].reason
    assert [table.name for table in tables_of(answers)] == []
    weighted = EvalSet.checked(y, bare.predictions, features={"x": y}, weights=np.full(200, 2))
    found = records(evaluate(weighted, beside="inputs"))
    assert all("unweighted" in record.reason for record in found.values())
    assert set(found) == NAMES


def test_label_sets_are_judged_by_their_sizes() -> None:
    rng = np.random.default_rng(0)
    member = rng.random((300, 5)) < 0.7
    y = rng.integers(0, 5, 300)
    sets = EvalSet.checked(y, LabelSets(member, coverage=0.7), features={"x": rng.normal(size=300)})
    found = records(evaluate(sets, beside="inputs"))
    assert not math.isnan(found["hsic"].value)
    assert not math.isnan(found["ert_squared"].value)


def test_large_sets_are_thinned_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditional, "MOST_ROWS", 300)
    one = held(700)
    found = records(evaluate(one, beside="inputs"))
    assert found["worst_slab"].n == 300
    assert found["worst_slab"].reason == "on 300 of 700 rows"
    whole = records(evaluate(one, beside="inputs", slow=["conditional"]))
    assert whole["worst_slab"].n == 700


def test_wide_embeddings_are_judged_by_their_principal_coordinates() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(100, 60))
    wide = EvalSet.checked(np.zeros(100), point=np.zeros(100), embedding=rows)
    matrix, names = input_table(wide)
    assert matrix.shape == (100, 20)
    assert names[0] == "principal coordinate 1"
    narrow = EvalSet.checked(np.zeros(100), point=np.zeros(100), embedding=rows[:, :3])
    assert input_table(narrow)[1] == ("embedding 0", "embedding 1", "embedding 2")
