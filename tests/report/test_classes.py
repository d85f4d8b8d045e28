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
from extras import needs
from howsure import HowsureError, Options, Probabilities, assess
from howsure.core.rng import child
from howsure.engine.measure import evaluate
from howsure.engine.view import View
from howsure.predictions import EvalSet, LabelSets, content_order
from howsure.recalibration import recalibrate
from howsure.recalibration.classes import advise_classes
from howsure.recalibration.dispatch import applied, fit_methods
from howsure.report.assessment import Assessment
from howsure.stats.evidence import evidence
from howsure.topics.classes.scores import net_benefit
from howsure.topics.decomposition.parts import mean_decomposition
from howsure.verdict.advice import Advice, try_recalibrations
from howsure.verdict.dependence import follow
from howsure.verdict.family import Judging, examine
from howsure.verdict.improvement import confirm_probabilities, split
from howsure.watch import Watch
from howsure.watch.quantities import usual_logit, watched

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
    mended = kept.predictions["recalibrated_p"]
    assert mended.tolist() == done.predictions["recalibrated_p"].tolist()
    slope = np.polyfit(special.logit(p[1500:]), special.logit(mended), 1)[0]
    assert slope == pytest.approx(1 / 1.7, abs=0.1)
    assert log_loss(y[1500:], mended) < log_loss(y[1500:], p[1500:]) - 0.01


@pytest.mark.parametrize("labels", [("0", "1"), ("no", "yes"), ("cat", "dog"), ("1", "2")])
def test_what_was_recalibrated_is_read_again(labels: tuple[str, str], tmp_path: Path) -> None:
    p, y = world(200, slope=1.7)
    named = np.array(labels)[y.astype(int)]
    stated = {"p": p} if labels[0] == "0" else {f"p_{labels[1]}": p}
    if labels[1] in ("dog", "2"):
        stated[f"p_{labels[0]}"] = 1 - p
    done = howsure.recalibrate({"y": named, **stated}, {"y": named, **stated}, method="temperature")
    new = "recalibrated_p" if labels[0] == "0" else f"recalibrated_p_{labels[1]}"
    assert new in done.table.column_names
    done.save(tmp_path / "new.csv")
    known = brier_score_loss(y, done.predictions[new])
    assert assess(tmp_path / "new.csv", options=QUICK).value("brier") == pytest.approx(known)


def test_a_display_and_limits_on_skill_serve_classes() -> None:
    needs("matplotlib")
    from howsure.sklearn import CalibrationDisplay

    p, y = world(300)
    drawn = CalibrationDisplay.from_predictions(y, p)
    assert drawn.ax_.get_xlabel() == "Stated probability of the event"
    (curve,) = drawn.assessment.curves
    assert any(np.array_equal(line.get_ydata(), curve.y) for line in drawn.ax_.lines)
    (outcome,) = howsure.Table(y, p).check(min_skill=0.05).outcomes
    assert outcome.value == drawn.assessment.value("class_skill")
    assert outcome.state == "holds"


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


def test_numbers_of_few_events_show_how_little_is_known() -> None:
    """What Student's t makes of them: an interval of Brier from 0 to 0, and skill proven absent."""
    certain = np.where(np.arange(60) % 2, 0.99, 0.01)
    result = assess(np.arange(60) % 2 * 1.0, certain, options=QUICK)
    for name, expected in (
        ("brier", 0.0099),
        ("log_score", -0.99 * np.log(0.99) - 0.01 * np.log(0.01)),
    ):
        record = result.record(name)
        assert record.value < expected / 5, name
        assert record.lower < expected < record.upper, name
    assert result.record("auc").lower < 0.95
    assert math.isnan(result.record("class_miscalibration").lower)
    share = result.record("class_uncertainty")
    assert share.lower < 0.24 < 0.25 <= share.upper
    rare = assess(np.r_[1.0, np.zeros(49)], np.linspace(0.01, 0.05, 50), options=QUICK)
    assert rare.record("class_skill").lower < rare.value("class_skill") < 0
    assert states(rare)["class_skill"] == "undecided"


def test_parts_of_the_brier_score_are_those_of_a_squared_error() -> None:
    p, y = world(200)
    result = assess(y, p, options=QUICK)
    parts = mean_decomposition(y, p)
    for part in ("miscalibration", "discrimination", "uncertainty"):
        record, expected = result.record(f"class_{part}"), getattr(parts, part)
        assert record.value == pytest.approx(expected.value)
        if part != "uncertainty":
            assert (record.lower, record.upper) == pytest.approx((expected.lower, expected.upper))


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
    confidence[::30] = 100
    right = rng.random(600) < 0.8 * confidence / 100
    log = {"correct": right, "confidence": confidence, "cluster": np.arange(600) // 10}
    result = assess(log, options=QUICK)
    assert result.answer.reply == "no"
    assert "are right" in result.answer.sentence
    assert states(result)["sureness"] == "bad"
    sure = int(np.sum(confidence == 100))
    wrong = int(np.sum((confidence == 100) & ~right))
    (told,) = (each.sentence for each in result.findings if each.id == "impossible")
    assert told.startswith(
        f"{wrong} of {sure} answers with a confidence of 0 or 100 % came out the other way"
    )


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [False, True], ids=["independent", "clusters"])
def test_an_improvement_is_confirmed_by_other_rows(clusters: bool, tmp_path: Path) -> None:
    p, y = world(2_000, slope=1.7)
    site = np.array(["north", "south"])[np.arange(2_000) % 2]
    cluster = np.arange(2_000) // 4 if clusters else None
    rows = EvalSet.checked(y, Probabilities(p), groups={"site": site}, cluster=cluster)
    done = howsure.improve(rows, until_right=True)
    assert done.right
    (step,) = done.rows.confirmed
    assert step.advice.method == "temperature"
    assert {"sureness"} <= set(step.proof.heals)
    _, held_out = split(rows, 0.5, 0)
    before = log_loss(y[held_out], p[held_out])
    mended = applied(step.fitted, rows.take(held_out)).evalset
    after = log_loss(y[held_out], View(mended).get("class_table")[:, 1])
    assert step.proof.gain == pytest.approx((before - after) / before)
    assert step.proof.lower < step.proof.gain < step.proof.upper
    done.fitted.save(tmp_path / "fit.json")
    kept = howsure.recalibrate({"p": p}, tmp_path / "fit.json")
    assert kept.methods == {"class probabilities": "temperature"}


@pytest.mark.rate
@pytest.mark.parametrize("clusters", [False, True], ids=["independent", "clusters"])
def test_what_helps_nothing_is_seldom_confirmed(clusters: bool) -> None:
    """A recalibration that other rows of a right model teach: 2.5 % and three errors of 300."""
    confirmed = 0
    for number in range(300):
        rng = child(number, "improvement of classes")
        p = rng.random(600)
        latent = rng.normal(size=600)
        if clusters:
            latent = np.sqrt(0.5) * (latent + np.repeat(rng.normal(size=60), 10))
        y = (special.ndtr(latent) > 1 - p).astype(float)
        cluster = np.repeat(np.arange(60), 10) if clusters else None
        rows = EvalSet.checked(y, Probabilities(p), cluster=cluster)
        fitted, _ = fit_methods(rows.take(slice(0, 300)), rows.take(slice(0, 300)), "platt")
        advice = Advice(method="platt")
        (proof,), (known,) = follow([rows.take(slice(300, 600))], np.arange(300))
        confirmed += confirm_probabilities(proof, known, (), advice, fitted, Judging()).accepted
    assert confirmed <= 300 * 0.025 + 3 * math.sqrt(300 * 0.025 * 0.975)


def test_a_classifier_that_is_nearly_always_sure_is_advised() -> None:
    """So few of its rows are in doubt that sureness is not asked; the level shows it."""
    rng = child(0, "nearly always sure")
    event = rng.random(400) < 0.5
    p = np.where(event, 1 - 10.0 ** -rng.uniform(3, 6, 400), 10.0 ** -rng.uniform(3, 6, 400))
    y = np.where(rng.random(400) < 0.08, ~event, event)
    result = assess(y.astype(float), p)
    assert states(result)["level"] == "bad"
    assert "sureness" not in states(result)
    assert result.advice is not None
    assert result.advice.method == "temperature"


@pytest.mark.parametrize("seed", [5, 8])
def test_overconfidence_is_no_fault_of_a_region(seed: int) -> None:
    """A part is at fault only where the interval of what happened there leaves out the claim."""
    rng = np.random.default_rng(seed)
    n, logits = 1_500, rng.normal(size=(1_500, 10)) * 1.5
    truth, p = special.softmax(logits, axis=1), special.softmax(1.4 * logits, axis=1)
    y = np.array([rng.choice(10, p=row) for row in truth])
    features = {"age": rng.normal(50, 10, n), "b": rng.normal(size=n)}
    found, _ = examine(EvalSet.checked(y, Probabilities(p), features=features))
    by_id = {finding.id: finding for finding in found}
    assert by_id["sureness"].state == "bad"
    region = by_id["class_region"]
    assert region.lower < 0 < region.upper
    assert region.state == "undecided"


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


def test_a_decision_is_worth_its_net_benefit() -> None:
    """Vickers' net benefit, counted row by row, in clusters and with weights that repeat rows."""
    p, y = world(300, slope=1.6, shift=0.4)
    weights = np.arange(300) % 3 + 1.0
    table = {"y": y, "p": p, "weight": weights, "cluster": np.arange(300) // 5}
    thresholds = (0.1, 0.35)
    both = Options(trials=False, threshold=thresholds)
    (decisions,) = (t for t in assess(table, options=both).tables if t.name == "class_decisions")
    for place, threshold in enumerate(thresholds):
        right = vain = every = 0.0
        for says, came, weight in zip(p, y, weights, strict=True):
            cost = threshold / (1 - threshold)
            every += weight if came else -weight * cost
            right += weight if says >= threshold and came else 0.0
            vain += weight if says >= threshold and not came else 0.0
        benefit = (right - vain * threshold / (1 - threshold)) / weights.sum()
        assert decisions.columns["benefit"][place] == pytest.approx(benefit)
        of_all = every / weights.sum()
        assert decisions.columns["of_all"][place] == pytest.approx(of_all)
        assert decisions.columns["beyond"][place] == pytest.approx(benefit - max(of_all, 0.0))
        alone = assess(table, options=Options(trials=False, threshold=threshold))
        record = alone.record("net_benefit")
        assert record.value == pytest.approx(benefit)
        assert decisions.columns["lower"][place] < record.lower < record.value < record.upper
    least = assess(table, options=both).record("net_benefit_gain")
    assert least.value in decisions.columns["beyond"]


def test_a_decision_that_is_worse_than_none_is_a_fault() -> None:
    rng = child(0, "decision")
    p = rng.uniform(0.3, 0.6, 2_000)
    y = (rng.random(2_000) < 0.1).astype(float)
    table = {"y": y, "p": p}
    result = assess(table, options=Options(trials=False, threshold=0.3))
    assert states(result)["decision"] == "bad"
    (finding,) = (each for each in result.findings if each.id == "decision")
    assert "never acting is better than acting from 30 % on" in finding.sentence
    rules = {"limits": [{"measure": "net_benefit_gain", "min": 0}], "threshold": [0.3]}
    assert howsure.Table(table).check(**rules).status == 1
    with pytest.raises(HowsureError, match="no threshold is given"):
        howsure.Table(table).check(min_net_benefit=0)
    three = Probabilities(rng.dirichlet(np.ones(3), 50), classes=["a", "b", "c"])
    labels = np.array(["a", "b", "c"])[np.arange(50) % 3]
    with pytest.raises(HowsureError, match="of one event, got 3 classes"):
        assess(labels, three, options=Options(threshold=0.2))


@pytest.mark.rate
@pytest.mark.parametrize("clusters", [False, True], ids=["independent", "clusters"])
@pytest.mark.parametrize("rare", [False, True], ids=["usual", "rare"])
def test_intervals_of_decisions_hold(rare: bool, clusters: bool) -> None:
    """Net benefit and what it gains, of a right model: at least 92 % of 300 tables of 300 rows."""
    threshold = 0.05 if rare else 0.3
    held = np.zeros(2)

    def drawn(n: int, number: int) -> tuple[Any, Any, Any]:
        rng = child(number, "rate of decisions")
        p = rng.beta(0.5, 12.0, n) if rare else rng.beta(1.0, 2.0, n)
        latent = rng.normal(size=n)
        if clusters:
            shared = np.repeat(rng.normal(size=n // 10), 10)
            latent = np.sqrt(0.5) * (latent + shared)
        return p, special.ndtr(latent) > 1 - p, np.repeat(np.arange(n // 10), 10)

    p, _, _ = drawn(400_000, 1_000_000)
    odds = threshold / (1 - threshold)
    worth = p - (1 - p) * odds
    truth = np.array([(worth * (p >= threshold)).mean(), 0.0])
    truth[1] = truth[0] - max(worth.mean(), 0.0)
    for number in range(300):
        p, came, codes = drawn(300, number)
        found = net_benefit(p, came, threshold, codes if clusters else None)
        held += [
            found.lower <= truth[0] <= found.upper,
            found.beyond_lower <= truth[1] <= found.beyond_upper,
        ]
    assert (held / 300 >= 0.92 - 3 * math.sqrt(0.92 * 0.08 / 300)).all()


def _days(
    first: int, last: int, shift: float = 0.0, slope: float = 1.0, seed: int = 0
) -> dict[str, Any]:
    """Fifty rows a day, on which events have odds e^shift times those stated, or less sure ones."""
    rng = child(seed, "days of classes", first, last)
    day = np.repeat(np.arange(first, last), 50)
    logit = 1.2 * rng.normal(size=len(day)) - 0.5
    y = rng.random(len(day)) < special.expit(logit + shift)
    return {"day": day, "y": y.astype(int), "p": special.expit(slope * logit)}


@pytest.mark.parametrize(
    ("change", "quantity", "words"),
    [
        ({"shift": 0.6}, "level", "events happen more often than stated"),
        ({"slope": 2.0}, "sureness", "probabilities are too confident"),
    ],
)
def test_a_changed_base_rate_is_told_apart_from_sureness(
    change: dict[str, float], quantity: str, words: str, tmp_path: Path
) -> None:
    watch = Watch.init(tmp_path / "ledger", _days(0, 40), time="day")
    assert watch.promise.quantities == ("level", "sureness")
    watch.add(_days(40, 50))
    assert watch.show().kept
    watch.add(_days(50, 90, **change))
    found = watch.show()
    assert found.broken[0].quantity == quantity
    assert words in found.sentence
    assert 45 <= found.broken[0].since <= 55
    if quantity == "level":
        assert [fault.quantity for fault in found.broken] == ["level"]
    corrected = watch.correct(_days(90, 110, **change))
    assert corrected.method in ("shift", "temperature", "platt", "beta")


def test_what_is_watched_of_classes_is_of_mean_0_and_bounded() -> None:
    """Expectations over y at each p: mean 0, and a variance and a range within the bounds."""
    p = np.array([0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 0.9999])
    centre = -0.7
    of = [
        watched(EvalSet.checked(np.full(8, y), Probabilities(p)), math.nan, 0.01, None, centre)
        for y in (0.0, 1.0)
    ]
    for row, bounds in enumerate(of[0].bounds):
        none, event = (each.values[row] for each in of)
        np.testing.assert_allclose((1 - p) * none + p * event, 0.0, atol=1e-12)
        assert ((1 - p) * none**2 + p * event**2 <= bounds.variance + 1e-9).all()
        assert min(none.min(), event.min()) >= bounds.lowest
        assert max(none.max(), event.max()) <= bounds.highest
    moved = usual_logit(EvalSet.checked(np.zeros(8), Probabilities(p)))
    logit = np.clip(special.logit(p), -4, 4)
    assert moved == pytest.approx(np.average(logit, weights=p * (1 - p)))


@pytest.mark.rate
@pytest.mark.parametrize("rare", [False, True], ids=["usual", "rare"])
@pytest.mark.parametrize(
    ("shift", "slope", "least", "most"),
    [(0.0, 1.0, 0.0, 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)), (0.8, 1.0, 0.9, 1.0)],
    ids=["right", "shifted"],
)
def test_alarms_of_classes(
    rare: bool, shift: float, slope: float, least: float, most: float
) -> None:
    """Any alarm within 80 days of 40 rows, looked at every day, of 300 streams."""
    alarms = 0
    for number in range(300):
        rng = child(number, "alarms of classes")
        logit = rng.normal(-4.0 if rare else 0.0, 1.0, 3_200)
        y = (rng.random(3_200) < special.expit(slope * logit + shift)).astype(float)
        rows = EvalSet.checked(y, Probabilities(special.expit(logit)))
        seen = watched(rows, math.nan, 0.01, None, usual_logit(rows))
        sums = seen.values.reshape(2, 80, 40).sum(axis=2)
        logs = [
            evidence(line, np.full(80, 40.0), bounds)
            for line, bounds in zip(sums, seen.bounds, strict=True)
        ]
        alarms += bool((np.logaddexp(*logs) - math.log(2.0)).max() >= math.log(20.0))
    assert least <= alarms / 300 <= most


def test_what_does_not_serve_classes_says_so(tmp_path: Path) -> None:
    rng = child(0, "three")
    table = {"y": np.array(["a", "b", "c"])[np.arange(60) % 3]}
    table |= dict(zip(("p_a", "p_b", "p_c"), rng.dirichlet(np.ones(3), 60).T, strict=True))
    with pytest.raises(HowsureError, match="number classes from 0"):
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


@pytest.mark.rate
@pytest.mark.parametrize("law", ["rare", "near-certain"])
def test_intervals_of_few_events_hold(law: str) -> None:
    """Shown intervals of the Brier score and the log score hold what a right model has."""
    tables, held = 200, np.zeros(2)
    laws = {
        "rare": lambda rng, n: rng.uniform(0.01, 0.05, n),
        "near-certain": lambda rng, n: special.expit(rng.choice([-1, 1], n) * rng.normal(5, 1, n)),
    }
    many = laws[law](child(0, "many"), 200_000)
    entropy = -(many * np.log(many) + (1 - many) * np.log(1 - many)).mean()
    wanted = {"brier": (many * (1 - many)).mean(), "log_score": entropy}
    for number in range(tables):
        rng = child(number, "intervals of classes", law)
        p = laws[law](rng, 50)
        rows = EvalSet.checked((rng.random(50) < p).astype(float), Probabilities(p))
        records = {each.metric: each for each in evaluate(rows, metrics=tuple(wanted)).records}
        held += [
            records[name].lower <= true <= records[name].upper for name, true in wanted.items()
        ]
    assert (held >= tables * 0.92 - 3 * math.sqrt(tables * 0.08 * 0.92)).all()
