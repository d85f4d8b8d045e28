"""Class probabilities judged: from a table, arrays or a classifier to the first line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import howsure
from howsure import HowsureError, Options, Probabilities, assess
from howsure.core.rng import child
from howsure.engine.view import View
from howsure.predictions import EvalSet, LabelSets, content_order
from howsure.recalibration import recalibrate
from howsure.recalibration.classes import advise_classes
from howsure.report.assessment import Assessment
from howsure.verdict.advice import try_recalibrations
from howsure.verdict.family import examine

QUICK = Options(trials=False)


def world(n: int, slope: float = 1.0, shift: float = 0.0, seed: int = 0) -> tuple[Any, Any]:
    """Probabilities whose log-odds are `slope` times too large, and what happened."""
    rng = child(seed, "classes")
    logit = 1.5 * rng.normal(size=n)
    y = rng.random(n) < special.expit(logit)
    return special.expit(slope * logit + shift), y.astype(float)


def states(result: Assessment) -> dict[str, str]:
    return {finding.id: finding.state for finding in result.findings}


@pytest.mark.parametrize("coverage", [None, 0.9])
def test_a_coin_claimed_at_85_is_no(coverage: float | None) -> None:
    y = np.array(["no", "yes"])[np.arange(200) % 2]
    table = {"y": y, "p_yes": np.full(200, 0.85), "p_no": np.full(200, 0.15)}
    result = assess(table, coverage=coverage, options=QUICK)
    assert result.answer.reply == "no"
    begins = "No. On average it says 85 %, 50 % happen (43–57): far too high"
    assert result.answer.sentence.startswith(begins)
    assert states(result)["level"] == "bad"


@pytest.mark.slow
def test_right_probabilities_are_called_right() -> None:
    p, y = world(6_000)
    result = assess(y, p, options=QUICK)
    assert result.answer.reply == "yes"
    assert "it says 85 %" in result.answer.sentence
    assert {"bad"}.isdisjoint(states(result).values())
    few = assess(y[:60], p[:60], options=QUICK).answer
    assert (few.reply, few.sentence[:51]) == (
        "unknown",
        "Inconclusive: no fault found, but 60 rows are too f",
    )


def test_what_is_too_sure_is_said_and_mended(tmp_path: Path) -> None:
    p, y = world(3_000, slope=1.7)
    held_out, new = {"y": y[:1500], "p": p[:1500]}, {"p": p[1500:]}
    result = assess(held_out)
    assert result.answer.sentence.startswith("No. Where it says")
    assert result.answer.sentence.endswith("too confident.")
    assert result.advice is not None
    assert result.advice.method == "temperature"
    assert result.advice.gain > 0
    done = howsure.recalibrate(new, held_out, method=result.advice.method)
    done.fitted.save(tmp_path / "fit.json")
    kept = howsure.recalibrate(new, tmp_path / "fit.json")
    mended = kept.predictions["recalibrated_p_1"]
    assert mended.tolist() == done.predictions["recalibrated_p_1"].tolist()
    slope = np.polyfit(special.logit(p[1500:]), special.logit(mended), 1)[0]
    assert slope == pytest.approx(1 / 1.7, abs=0.1)
    assert log_loss(y[1500:], mended) < log_loss(y[1500:], p[1500:]) - 0.01


def test_numbers_are_those_of_scikit_learn() -> None:
    p, y = world(300)
    result = assess(y, p, options=QUICK)
    assert result.value("brier") == pytest.approx(brier_score_loss(y, p))
    assert result.value("log_score") == pytest.approx(log_loss(y, p))
    assert result.value("auc") == pytest.approx(roc_auc_score(y, p))
    assert result.value("accuracy") == np.mean((p > 0.5) == y)
    error = result.record("class_calibration_error")
    assert 0 < error.null < 0.1
    assert error.null_lower < error.null < error.null_upper
    (bins,) = (table for table in result.tables if table.name == "class_bins")
    assert bins.columns["rows"].sum() == 300
    weighed = np.average(bins.columns["says"], weights=bins.columns["rows"])
    assert weighed == pytest.approx(p.mean())
    low, high = bins.columns["perfect_low"], bins.columns["perfect_high"]
    assert ((low <= bins.columns["says"]) & (bins.columns["says"] <= high)).all()


@pytest.mark.slow
def test_order_and_repetition_change_nothing() -> None:
    p, y = world(150, slope=1.5)
    weights = np.arange(150) % 3 + 1.0
    known = assess({"y": y, "p": p, "weight": weights}, options=QUICK)
    order = child(0, "order").permutation(150)
    turned = assess({"y": y[order], "p": p[order], "weight": weights[order]}, options=QUICK)
    again = np.repeat(np.arange(150), weights.astype(int))
    repeated = assess({"y": y[again], "p": p[again]}, options=QUICK)
    for name in ("brier", "log_score", "class_level", "class_sureness"):
        assert turned.value(name) == pytest.approx(known.value(name), rel=1e-12), name
        assert repeated.value(name) == pytest.approx(known.value(name), rel=1e-9), name
    assert turned.record("class_level").p == known.record("class_level").p


def test_a_confidence_beside_what_was_right_is_judged_by_document() -> None:
    rng = child(0, "answers")
    confidence = np.round(100 * rng.beta(8, 2, 600))
    right = rng.random(600) < 0.8 * confidence / 100
    log = {"correct": right, "confidence": confidence, "cluster": np.arange(600) // 10}
    result = assess(log, options=QUICK)
    assert result.answer.reply == "no"
    assert "are right" in result.answer.sentence
    assert states(result)["sureness"] == "bad"


@pytest.mark.slow
def test_groups_that_differ_are_named() -> None:
    rng = child(0, "sites")
    site = rng.choice(["north", "south"], 3_000)
    p, _ = world(3_000)
    y = rng.random(3_000) < special.expit(special.logit(p) + 0.7 * (site == "north"))
    result = assess(y.astype(float), p, groups={"site": site})
    (finding,) = (each for each in result.findings if each.id == "class_groups")
    assert finding.state == "bad"
    assert finding.sentence.startswith("In site=")
    assert result.advice is not None
    assert (result.advice.method, result.advice.by) == ("group", ("site",))
    table = {"y": y.astype(float), "p": p, "site": site}
    mended = howsure.recalibrate(table, table, by="site").evalset
    after = assess(mended.y, mended.predictions[0], groups={"site": site}, options=QUICK)
    assert states(after)["class_groups"] != "bad"


def test_probabilities_beside_their_sets_are_recalibrated_by_group() -> None:
    p, y = world(200)
    both = (Probabilities(p), LabelSets.likeliest(Probabilities(p), 0.9))
    rows = EvalSet.checked(y, both, groups={"site": np.arange(200) % 2})
    assert recalibrate(rows, rows, by="site").methods == {"class probabilities": "group"}


def test_gains_are_shares_of_the_weighted_score() -> None:
    p, y = world(400)
    wrong = special.expit(2.5 * special.logit(p))
    rows = EvalSet.checked(y, Probabilities(wrong), weights=1.0 + 9.0 * (p > 0.5))
    advice = try_recalibrations(rows).advice
    assert advice is not None
    view = View(rows.take(content_order([rows])))
    table, codes = view.get("class_table"), view.get("class_codes")
    weights = view.evalset.multiplicities
    found = {finding.id: finding.p for finding in examine(rows)[0] if finding.state == "bad"}
    faults = {name: p for name, p in found.items() if name in ("level", "sureness", "shape")}
    raw = advise_classes(table, codes, faults, weights=weights)
    assert raw is not None
    assert raw.method == advice.method
    score = log_loss(codes, table[:, 1], sample_weight=weights)
    assert advice.gain == pytest.approx(raw.gain / score)


@pytest.mark.slow
def test_classifiers_are_asked() -> None:
    rng = child(0, "classifier")
    x = rng.normal(size=(900, 2))
    y = np.array(["a", "b", "c"])[(x[:, 0] + rng.normal(size=900) > 0) + (x[:, 1] > 1).astype(int)]
    model = LogisticRegression().fit(x[:300], y[:300])
    result = howsure.assess_model(model, x[300:], y[300:], features=None, options=QUICK)
    known = assess(
        y[300:], Probabilities(model.predict_proba(x[300:]), classes=model.classes_), options=QUICK
    )
    assert result.value("brier") == known.value("brier")
    assert result.facts["Predictions"] == "class probabilities"
    with pytest.raises(HowsureError, match="names no classes"):
        assess(y[300:], model.predict_proba(x[300:]))
    with pytest.raises(HowsureError, match="names no classes"):
        assess(y[300:], Probabilities(model.predict_proba(x[300:])))


@pytest.mark.slow
def test_models_are_compared_by_what_they_share() -> None:
    p, y = world(1_500)
    worse = special.expit(2.0 * special.logit(p))
    result = assess(y, {"plain": p, "sharp": worse}, options=QUICK)
    assert result.answer.choice.startswith("Use plain: its log score is lower by")


def test_what_is_impossible_and_happens_is_a_fault() -> None:
    p, y = world(400)
    stated = np.where(np.arange(400) % 4 == 0, 1.0 - y, p)
    result = assess(y, stated, options=QUICK)
    assert states(result)["impossible"] == "bad"
    assert math.isinf(result.record("log_score").value)


def test_what_does_not_serve_classes_says_so(tmp_path: Path) -> None:
    p, y = world(100)
    table = {"y": y, "p": p}
    with pytest.raises(HowsureError, match="got class probabilities: recalibrate with"):
        howsure.improve(table)
    from howsure.watch import Watch

    with pytest.raises(HowsureError, match="classes are not monitored"):
        Watch.init(tmp_path / "ledger", reference=table)


LAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "U-shaped": lambda rng, n: rng.beta(0.3, 0.3, n),
    "rare": lambda rng, n: rng.beta(1.0, 30.0, n),
    "ten classes": lambda rng, n: rng.dirichlet(np.full(10, 0.3), n),
}


@pytest.mark.rate
@pytest.mark.parametrize("clusters", [False, True], ids=["independent", "clusters"])
@pytest.mark.parametrize("law", LAWS)
def test_right_probabilities_are_seldom_faulted(law: str, clusters: bool) -> None:
    """Any ✗ of the whole verdict, within 5 % and three errors of 200 tables."""
    from howsure.predictions import EvalSet
    from howsure.verdict.family import examine

    n, tables, faulted = 200, 200, 0
    for number in range(tables):
        rng = child(number, "rate of classes", law)
        p = LAWS[law](rng, n)
        latent = rng.normal(size=n)
        if clusters:
            latent = np.sqrt(0.5) * latent + np.sqrt(0.5) * np.repeat(rng.normal(size=n // 10), 10)
        table = Probabilities(p).table
        rising = table.cumsum(axis=1)[:, :-1]
        y = (special.ndtr(latent)[:, None] > rising).sum(axis=1)
        cluster = np.repeat(np.arange(n // 10), 10) if clusters else None
        rows = EvalSet.checked(y.astype(float), Probabilities(p), cluster=cluster)
        findings, _ = examine(rows, seed=number)
        faulted += any(finding.state == "bad" for finding in findings)
    assert faulted <= tables * 0.05 + 3 * math.sqrt(tables * 0.05 * 0.95)
