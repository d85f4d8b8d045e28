"""Conditional congruence of evaluation sets: right models pass, wrong places are found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child
from howsure.inputs import load_inputs
from howsure.metrics.congruence import Draws, Empirical, Normals, Support
from howsure.metrics.evaluate import assess_congruence, belief_of, congruence_mode
from howsure.predictions import Distribution, EvalSet, Intervals, Samples
from howsure.report.assess import assess, with_embedding
from howsure.report.monitor import fit_monitor


def wave(n: int = 700, *, wrong: float = 0.0, seed: int = 0) -> EvalSet:
    """A heteroscedastic wave whose model is wrong by an offset where x > 1."""
    rng = child(seed, "wave")
    x, side = rng.uniform(-2, 2, n), rng.choice(["left", "right"], n)
    sd = 0.2 + 0.2 * np.abs(x)
    y = np.sin(2 * x) + sd * rng.normal(size=n)
    mean = np.sin(2 * x) + wrong * (x > 1)
    features = {"x": x, "side": side}
    return with_embedding(EvalSet.checked(y, Distribution.normal(mean, sd), features=features))


def test_a_right_model_sits_at_its_null() -> None:
    found = [assess_congruence(wave(seed=s), "exact").record for s in range(8)]
    p_values = [float(record.options["p_value"]) for record in found]
    assert np.mean(p_values) > 0.2
    for record in found:
        assert record.value == pytest.approx(record.null, rel=0.6)


def test_a_model_wrong_somewhere_is_caught_and_the_place_named() -> None:
    report = assess_congruence(wave(wrong=1.0), "exact")
    assert report.record.options["p_value"] <= 0.01
    assert report.record.value > 3 * report.record.null
    tables = {table.name: table for table in report.tables}
    assert "x > " in str(tables["cce_tree"].columns["where"][0])
    worst = tables["cce_rows"].columns["x"][:10].astype(float)
    assert (worst > 0.5).all()
    assert len(tables["cce_map"]) == 700
    grown, fresh = (tables["cce_tree"].columns[c][0] for c in ("cce_when_grown", "cce"))
    assert fresh == pytest.approx(grown, rel=0.2)
    assert {curve.name for curve in report.curves} == {"rejection", "rejection_oracle"}


def test_every_law_embeds_in_the_mode_that_serves_all() -> None:
    n = 40
    y, mean = np.arange(n) % 5 * 1.0, np.full(n, 2.0)
    normal = EvalSet.checked(y, Distribution.normal(mean, np.ones(n)))
    count = EvalSet.checked(y, Distribution.from_scipy(stats.poisson(mean)))
    draws = EvalSet.checked(y, Samples(child(0, "s").normal(size=(n, 9))))
    skewed = EvalSet.checked(y, Distribution.from_scipy(stats.gamma(2.0, scale=mean)))
    assert congruence_mode([normal, count, draws]) == "exact"
    assert congruence_mode([normal, skewed]) == "samples"
    kinds = [type(belief_of(held, "exact")) for held in (normal, count, draws)]
    assert kinds == [Normals, Support, Empirical]
    support = belief_of(count, "exact")
    assert isinstance(support, Support)
    assert support.probabilities.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    expected = (support.values * support.probabilities).sum(axis=1)
    assert expected == pytest.approx(mean, abs=1e-9)
    assert type(belief_of(skewed, "samples")) is Draws
    with pytest.raises(UnanswerableError):
        belief_of(skewed, "exact")
    with pytest.raises(UnanswerableError):
        congruence_mode([EvalSet.checked(y, Intervals(y, y + 1, 0.9))])


def test_what_cannot_be_answered_is_said() -> None:
    held = wave(60)
    plain = EvalSet.checked(held.y, held.beliefs)
    assert "needs inputs" in assess_congruence(plain, "exact").record.reason
    weighted = EvalSet.checked(
        held.y, held.beliefs, embedding=held.embedding, weights=np.full(60, 2)
    )
    record = assess_congruence(weighted, "exact").record
    assert math.isnan(record.value)
    assert "unweighted" in record.reason
    constant = EvalSet.checked(
        np.zeros(60), Distribution.normal(np.zeros(60), np.ones(60)), embedding=held.embedding
    )
    assert "vary" in assess_congruence(constant, "exact").record.reason


def test_assess_uses_one_mode_for_all_models() -> None:
    held = wave(300)
    x = held.features["x"]
    models = {
        "normal": held.beliefs[0],
        "gamma": Distribution.from_scipy(stats.gamma(4.0, loc=np.sin(2 * x) - 1.0, scale=0.25)),
    }
    result = assess(held.y, models, x={"x": x})
    modes = {r.options["mode"] for r in result.records if r.metric == "mean_cce"}
    assert modes == {"samples"}
    assert "every input" in result.verdict or "some inputs" in result.verdict


def test_a_monitor_flags_where_the_model_is_wrong_without_labels() -> None:
    reference = wave(900, wrong=1.5)
    monitor = fit_monitor(reference)
    scored = monitor.score({"x": np.array([1.8, -1.8]), "side": np.array(["left", "left"])})
    assert scored.columns["flagged"][0]
    assert scored.columns["cce"][0] > 3 * scored.columns["cce"][1]
    with pytest.raises(InputError, match="features"):
        monitor.score({"x": np.array([1.0])})
    bare = EvalSet.checked(reference.y, reference.beliefs)
    with pytest.raises(InputError, match="must hold features"):
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
    with pytest.raises(InputError, match=match):
        load_inputs(table, wave(60).features)
