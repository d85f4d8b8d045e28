"""Class probabilities of an evaluation set: measures, reliability diagram, findings, words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray
from howsure.core.errors import UnanswerableError, either
from howsure.core.formats import fixed, percent
from howsure.core.records import (
    UNIT,
    Axis,
    Curve,
    Direction,
    Layout,
    Notion,
    Record,
    ResultTable,
)
from howsure.core.rng import row_keys, row_uniforms
from howsure.engine.finding import LEVEL, Case, Draft, Finding, FindingQuestion, Words, between
from howsure.engine.measure import Evaluation
from howsure.engine.metric import (
    BINNED,
    SHARE,
    Array,
    Laws,
    Metric,
    Question,
    Topic,
    estimated,
    row_mean,
    stated,
    statistic,
)
from howsure.engine.view import View
from howsure.predictions import Probabilities
from howsure.stats.binomial import wilson
from howsure.stats.estimate import Estimate, share_ends, spread_of, weighted_mean
from howsure.topics.classes.questions import (
    CalibrationAnswer,
    ClassJudgement,
    claims_of,
    judge_classes,
)
from howsure.topics.classes.scores import (
    NetBenefit,
    auc,
    brier_score,
    ece,
    fit_curve,
    frequency_forecast,
    log_loss,
    mean_interval,
    net_benefit,
    squared_calibration_error,
)
from howsure.topics.decomposition.parts import Decomposition, mean_parts

# Bins of the reliability diagram, of equal numbers of rows; of few rows fewer.
_MAX_BINS, _MIN_ROWS_OF_BIN = 12, 20
# Draws for the band of the diagram: its 2.5 % ends are known to .5 points.
_DRAWS_OF_BAND = 999
# Features whose regions are looked at. Each costs as much as a column of groups.
_MAX_FEATURES = 30
# A claim is right where the interval of what happens is within 4 points of it, and of half of it.
_MARGIN, _MARGIN_OF_RARE = 0.04, 0.5
# Rows that came otherwise than claimed, below which their variance is hardly known: Student's
# interval of a mean score held 39 to 88 % with one to three, and 95 to 99 % with six.
_MIN_SURPRISES = 10
# One point, or a tenth of a rare event's probability, does no harm.
_TOLERANCE, _TOLERANCE_OF_RARE = 0.01, 0.1


# ---- what formulas read --------------------------------------------------------------------------


def _table(view: View, _: float) -> FloatArray:
    """Probabilities that sum to 1, shape (n, k)."""
    stated = view.prediction(Probabilities).table
    view.note_source("class_table", Probabilities.kind)
    return np.asarray(stated / stated.sum(axis=1, keepdims=True))


def _codes(view: View, _: float) -> IntArray:
    view.prediction(Probabilities)
    return view.evalset.y.astype(np.int64)


def _claims(view: View, _: float) -> tuple[FloatArray, BoolArray]:
    """Of two classes the probability of the second and whether it came, else of the likeliest."""
    table, codes = view.get("class_table"), view.get("class_codes")
    return claims_of(table, codes, 1 if table.shape[1] == 2 else -1)


def _correct(view: View, _: float) -> BoolArray:
    return np.asarray(view.get("class_table").argmax(axis=1) == view.get("class_codes"))


def _residual(view: View, _: float) -> FloatArray:
    """What came less what was claimed, by its standard deviation."""
    claims, came = view.get("class_claims")
    return np.asarray((came - claims) / np.sqrt(np.maximum(claims * (1.0 - claims), 1e-12)))


def _judgement(view: View, _: float) -> ClassJudgement:
    """All questions on the probabilities; a frequency weight of two is a row seen twice."""
    evalset, table, codes = view.evalset, view.get("class_table"), view.get("class_codes")
    weights, rows = evalset.weights, np.arange(evalset.n)
    if weights is not None and weights.kind == "frequency":
        rows = np.repeat(rows, weights.values.astype(np.int64))
    importance = weights is not None and weights.kind != "frequency"
    features = {
        name: values[rows]
        for name, values in evalset.features.items()
        if values.dtype.kind in "iuf" and np.ptp(values) > 0
    }
    return judge_classes(
        table[rows],
        codes[rows],
        groups={name: column.codes[rows] for name, column in evalset.groups.items()},
        features=dict([*features.items()][:_MAX_FEATURES]),
        clusters=None if evalset.cluster is None else evalset.cluster.codes[rows],
        weights=weights.values if weights is not None and importance else None,
        seed=view.seed,
    )


def _mean_score(view: View, given: FloatArray, scores: FloatArray) -> Estimate:
    """The mean of row scores, with an interval that holds for rare and near-certain events."""
    evalset = view.evalset
    mean = weighted_mean(scores, evalset.multiplicities)
    if not math.isfinite(mean):
        return Estimate(mean, reason="a class that was given 0 % came")
    estimate = Estimate(mean, scores - mean)
    if np.count_nonzero(~view.get("class_correct")) >= _MIN_SURPRISES:
        return estimate
    clusters = None if evalset.cluster is None else evalset.cluster.codes
    table, codes = view.get("class_table"), view.get("class_codes")
    lower, upper = mean_interval(
        scores, table, codes, given, clusters, evalset.weights, view.confidence
    )
    return replace(estimate, lower=lower, upper=upper)


def _by_class(score: Callable[[FloatArray, IntArray], FloatArray], p: FloatArray) -> FloatArray:
    """The score of each row for each class that may come, shape (n, k)."""
    return np.stack([score(p, np.full(len(p), j)) for j in range(p.shape[1])], 1)


def _score(score: Callable[[FloatArray, IntArray], FloatArray], view: View, _: float) -> Estimate:
    table = view.get("class_table")
    return _mean_score(view, _by_class(score, table), score(table, view.get("class_codes")))


def _log_score(view: View, _: float) -> FloatArray:
    return log_loss(view.get("class_table"), view.get("class_codes"))


def _skill(view: View, _: float) -> Estimate:
    """By which share the Brier score is below that of class frequencies among other rows.

    Where it is above, also the chance that a perfect model is as far above: of few events Student's
    t knows too little.
    """
    table, codes = view.get("class_table"), view.get("class_codes")
    weights = view.evalset.multiplicities
    others = frequency_forecast(codes, table.shape[1], weights)
    baseline, scores = brier_score(others, codes), brier_score(table, codes)
    base = weighted_mean(baseline, weights)
    if not base > 0:
        return Estimate(math.nan, reason="all rows have one class")
    value = 1.0 - weighted_mean(scores, weights) / base
    given = (1.0 - value) * _by_class(brier_score, others) - _by_class(brier_score, table)
    estimate = _mean_score(view, given / base, ((1.0 - value) * baseline - scores) / base)
    chance = 1.0 if value > 0 else view.get("class_judgement").answers["skill"].p
    return replace(  # which is that of the influence values
        estimate,
        value=value,
        lower=value + estimate.lower,
        upper=value + estimate.upper,
        details={"chance": chance},
    )


def _decisions(view: View, _: float) -> tuple[NetBenefit, ...]:
    """How decisions at the thresholds fare, with intervals that hold for all of them together."""
    thresholds: tuple[float, ...] = view.given.get("thresholds", ())
    if not thresholds:
        way = either("howsure.Options(threshold=0.2)", "--threshold 0.2")
        raise UnanswerableError(f"no threshold is given, such as {way}")
    evalset, (claims, came) = view.evalset, view.get("class_claims")
    clusters = None if evalset.cluster is None else evalset.cluster.codes
    confidence = 1.0 - (1.0 - view.confidence) / len(thresholds)
    return tuple(
        net_benefit(claims, came, threshold, clusters, evalset.weights, confidence)
        for threshold in thresholds
    )


def _of_decision(number: str, decisions: tuple[NetBenefit, ...]) -> Estimate:
    """A number of the decision that is least proven to gain, with those of the others beside."""
    worst, *others = sorted(decisions, key=attrgetter("p"))
    value, lower, upper = attrgetter(number, *_ENDS[number])(worst)
    details = {item.name: getattr(worst, item.name) for item in fields(worst)}
    for place, decision in enumerate(others):
        details |= {f"{name}_{place}": getattr(decision, name) for name in _SHOWN_OF_OTHERS}
    return Estimate(
        value,
        lower=lower,
        upper=upper,
        p=min(len(decisions) * worst.p, 1.0),
        details={**details, "others": float(len(others))},
    )


_SHOWN_OF_OTHERS = ("threshold", "of_all", "beyond", "beyond_lower", "beyond_upper")
_ENDS = {"benefit": ("lower", "upper"), "beyond": ("beyond_lower", "beyond_upper")}


def _auc(view: View, _: float) -> Estimate:
    if view.get("class_table").shape[1] > 2:
        raise UnanswerableError("AUC is for two classes")
    evalset = view.evalset
    clusters = None if evalset.cluster is None else evalset.cluster.codes
    try:
        claims, came = view.get("class_claims")
        return auc(claims, came, clusters, evalset.weights, view.confidence)
    except ValueError as error:
        return Estimate(math.nan, reason=str(error))


def _parts(view: View, _: float) -> Decomposition:
    """The parts of the Brier score (p − y)²; of few surprises they have no interval.

    The interval of the uncertainty ȳ(1 − ȳ) is that of ȳ, for it is flat at ȳ = ½.
    """
    evalset, weights = view.evalset, view.evalset.weights
    claims, came = view.get("class_claims")
    clusters = None if evalset.cluster is None else evalset.cluster.codes
    outcome, mass = came.astype(np.float64), evalset.mass
    n = np.array([evalset.n if weights is None else weights.effective_n])
    kind = "" if weights is None else weights.kind
    parts = mean_parts(outcome, claims, mass, clusters).estimated(
        mass, clusters, kind, view.confidence
    )
    share = weighted_mean(outcome, mass)
    spread = spread_of(outcome - share, weights, clusters)
    low, high = np.concatenate(share_ends(np.array([share]), spread, n, view.confidence))
    ends = np.array([low * (1.0 - low), high * (1.0 - high), parts.uncertainty.value])
    most = max(0.25, ends[2]) if low < 0.5 < high else ends.max()
    parts = replace(
        parts,
        uncertainty=replace(parts.uncertainty, lower=float(ends.min()), upper=float(most)),
    )
    surprises = np.count_nonzero((claims > 0.5) != came), np.minimum(claims, 1.0 - claims).sum()
    if max(surprises) >= 2 * _MIN_SURPRISES:
        return parts
    few = "no interval: too few rows come otherwise than claimed"
    return replace(
        parts,
        miscalibration=Estimate(parts.miscalibration.value, reason=few),
        discrimination=Estimate(parts.discrimination.value, reason=few),
    )


def _answered(question: str, view: View, _: float) -> Estimate:
    """A question as an estimate: what happened less what was said, where that fails most."""
    answer: CalibrationAnswer = view.get("class_judgement").answers[question]
    if math.isnan(answer.p):
        raise UnanswerableError(answer.reason)
    evalset, where = view.evalset, answer.name
    if question == "groups":
        label = evalset.groups[answer.name].labels[int(answer.low)]
        where = f"{answer.name}={label}"
    numbers = ("claim", "happened", "low", "high", "statistic")
    lower, upper = _ends(view, answer)
    if question == "level" and answer.p < LEVEL and lower <= answer.claim <= upper:
        answer = _of_likeliest(view, answer)  # errors of both classes, which hide on average
        lower, upper = answer.lower, answer.upper
    return Estimate(
        answer.happened - answer.claim,
        lower=lower - answer.claim,
        upper=upper - answer.claim,
        null=0.0,
        p=answer.p,
        n=float(answer.n),
        details={
            **{name: float(getattr(answer, name)) for name in numbers},
            "lower": lower,
            "upper": upper,
            "code": float(answer.class_code),
            "came": 0.0 if answer.rows is None else float(len(answer.rows)),
            "where": where,
            "certain": _certainty(view, question),
        },
    )


def _of_likeliest(view: View, answer: CalibrationAnswer) -> CalibrationAnswer:
    """The answer as the likeliest class of all rows shows it."""
    claims, came = claims_of(view.get("class_table"), view.get("class_codes"), -1)
    weights = view.evalset.multiplicities
    happened = weighted_mean(came.astype(np.float64), weights)
    lower, upper = wilson(happened * answer.n_effective, answer.n_effective)
    return replace(
        answer,
        claim=weighted_mean(claims, weights),
        happened=happened,
        lower=float(lower),
        upper=float(upper),
        class_code=-1,
    )


def _ends(view: View, answer: CalibrationAnswer) -> tuple[float, float]:
    """The interval of what happened beside the claims, which explain a part of its variance."""
    share, rows = answer.happened * (1.0 - answer.happened), answer.rows
    if rows is None or not len(rows) or not share > 0 or view.evalset.weights is not None:
        return answer.lower, answer.upper
    table, codes = view.get("class_table")[rows], view.get("class_codes")[rows]
    claims, came = claims_of(table, codes, answer.class_code)
    residuals = came - claims
    if np.count_nonzero(np.abs(residuals) > 0.5) < _MIN_SURPRISES:
        return answer.lower, answer.upper
    left = min(float(residuals.std()) / math.sqrt(share), 1.0)
    below, above = answer.happened - answer.lower, answer.upper - answer.happened
    return answer.happened - left * below, answer.happened + left * above


def _certainty(view: View, question: str) -> float:
    """How far from its claims what happens may be on average, in margins; NaN if not asked."""
    if question != "sureness":
        return math.nan
    evalset = view.evalset
    clusters = None if evalset.cluster is None else evalset.cluster.codes
    claims, came = view.get("class_claims")
    if came.all() or not came.any():
        return math.nan
    weights = evalset.multiplicities
    rare = weighted_mean(np.minimum(claims, 1.0 - claims), weights)
    return fit_curve(claims, came, clusters=clusters, weights=weights).bound / _margin(rare)


_UNDRAWN = "its p-value rests on draws of a perfect model already"

# ---- the reliability diagram ---------------------------------------------------------------------


def _bins(evaluation: Evaluation) -> dict[str, FloatArray]:
    """Claims and what happened in bins of equal numbers, with the range of a perfect model."""
    view, evalset = evaluation.view, evaluation.evalset
    claims, came = view.get("class_claims")
    order = np.lexsort((row_keys(claims, evalset.y), claims))
    count = int(np.clip(evalset.n // _MIN_ROWS_OF_BIN, 1, _MAX_BINS))
    cuts = np.unique(np.searchsorted(claims[order], claims[order][_cuts(evalset.n, count)]))
    starts = np.append(0, cuts[cuts > 0])
    at = np.empty(evalset.n, dtype=np.int64)
    at[order] = np.searchsorted(starts, np.arange(evalset.n), side="right") - 1
    mass, size = evalset.mass, len(starts)

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(at, mass * values, size) / np.bincount(at, mass, size))

    keys = row_keys(claims, evalset.y)
    blocks = max((1 << 20) // evalset.n, 1)
    drawn: list[FloatArray] = []
    for start in range(0, _DRAWS_OF_BAND, blocks):
        columns = min(blocks, _DRAWS_OF_BAND - start)
        uniforms = row_uniforms(view.seed, f"band {start}", keys, columns)
        drawn += [mean((column < claims).astype(np.float64)) for column in uniforms.T]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    happened, rows = mean(came.astype(np.float64)), np.bincount(at, minlength=size)
    lower, upper = wilson(happened * rows, rows.astype(np.float64), view.confidence)
    return {
        "says": mean(claims),
        "happens": happened,
        "lower": lower,
        "upper": upper,
        "perfect_low": low,
        "perfect_high": high,
        "rows": rows,
    }


def _cuts(n: int, count: int) -> IntArray:
    """Where bins of equal numbers begin."""
    return np.arange(count) * n // count


def _drawn(evaluation: Evaluation, confidence: float) -> list[Curve]:
    bins = _bins(evaluation)
    two = evaluation.view.get("class_table").shape[1] == 2
    names = evaluation.view.prediction(Probabilities).names
    event = "the event" if names == ("0", "1") else names[1]
    what = f"of {event}" if two else "of the likeliest class"
    return [
        Curve(
            name="class_reliability",
            x=bins["says"],
            y=bins["happens"],
            lower=bins["perfect_low"],
            upper=bins["perfect_high"],
            reference=bins["says"],
            x_label=f"Stated probability {what}",
            y_label=f"Share {what}",
            band="95 % range of a perfect model in each bin",
            model=evaluation.evalset.model,
            hover={"rows": bins["rows"].astype(np.float64)},
        )
    ]


def _listed(evaluation: Evaluation) -> list[ResultTable]:
    labels = {
        "says": "It says",
        "happens": "It happens",
        "perfect_low": "Perfect model, from",
        "perfect_high": "to",
    }
    return [
        ResultTable(
            name="class_bins",
            columns=_bins(evaluation),
            labels=labels,
            model=evaluation.evalset.model,
            notes="Bins of equal numbers of rows by stated probability, with 95 % intervals.",
        )
    ]


def _decided(evaluation: Evaluation) -> list[ResultTable]:
    """What each threshold comes to."""
    decisions = evaluation.view.get("class_decisions")
    labels = {
        "acts": "Share acted on",
        "fitted": "It happens there",
        "benefit": "Net benefit",
        "of_all": "Acting on all",
        "beyond": "Beyond all and none",
    }
    names = [item.name for item in fields(NetBenefit) if item.name != "p"]
    return [
        ResultTable(
            name="class_decisions",
            columns={
                name: np.array([getattr(decision, name) for decision in decisions])
                for name in names
            },
            labels=labels,
            model=evaluation.evalset.model,
            notes="Net benefit per row: events acted on, less rows acted on in vain, each at the "
            "odds of the threshold. Acting on none has 0.",
        )
    ]


# ---- what is concluded ---------------------------------------------------------------------------


def _probabilities(case: Case) -> Probabilities:
    """The class probabilities; of other predictions nothing is said."""
    for prediction in case.evalset.predictions:
        if isinstance(prediction, Probabilities):
            return prediction
    raise UnanswerableError("")


def _draft(measure: str, case: Case) -> Draft:
    names = _probabilities(case).names
    record = case.get(measure)
    facts = record.options
    claim = float(facts["claim"])
    rare = min(claim, 1.0 - claim)
    farthest = max(abs(record.lower), abs(record.upper))
    certain = float(facts["certain"])
    impossible = measure == "class_impossible"
    p = record.p
    if measure in _OF_PARTS and record.lower <= 0.0 <= record.upper:
        # The test takes the claims' own variance; overconfident claims vary more than that.
        p = max(p, LEVEL)
    return Draft(
        effect=record.value,
        lower=record.lower,
        upper=record.upper,
        p=p,
        n=record.n,
        where=str(facts["where"]),
        good=record.p > 0.5 and record.upper <= _MARGIN
        if impossible
        else (farthest / _margin(rare) if math.isnan(certain) else certain) <= 1.0,
        tolerance=0.0 if impossible else min(_TOLERANCE, _TOLERANCE_OF_RARE * rare),
        facts={**facts, "names": names, "record": record},
    )


_OF_PARTS = ("class_groups", "class_region")


def _margin(rare: float) -> float:
    """How far the interval of what happens may reach from the claim for this to be right."""
    return min(_MARGIN, _MARGIN_OF_RARE * rare)


def _shown(share: float, facts: Any) -> str:
    """A share in percent, of rare and near-certain events with a decimal."""
    claim = float(facts["claim"])
    return f"{100.0 * share:.{1 if min(claim, 1.0 - claim) < 0.1 else 0}f}"


def _happens(facts: Any) -> str:
    """What happens in so many percent, in words."""
    names, code = facts["names"], int(facts["code"])
    if names[1] == "right" and len(names) == 2:
        return "are right"
    if len(names) == 2:
        return "happen"
    return "are right" if code < 0 else f"are {names[code]}"


def _claim_words(facts: Any) -> str:
    """What is claimed of which class, in words."""
    names, code = facts["names"], int(facts["code"])
    of = f" of {names[code]}" if code >= 0 and len(names) > 2 else ""
    return f"{_shown(float(facts['claim']), facts)} %{of}"


def _share_words(where: str, facts: Any, span: str = "") -> str:
    low, high = (_shown(float(facts[end]), facts) for end in ("lower", "upper"))
    happened = _shown(float(facts["happened"]), facts)
    return f"{where} {_claim_words(facts)}{span}, {happened} % {_happens(facts)} ({low}–{high})"


def _span(facts: Any) -> str:
    """The range of the claims, where they are not all alike."""
    low, high = float(facts["low"]), float(facts["high"])
    if not high - low > 0.01:
        return ""
    return f" ({_shown(low, facts)}–{_shown(high, facts)})"


def _way(draft: Draft) -> str:
    low = "too low" if draft.effect > 0 else "too high"
    return f"far {low}" if abs(draft.effect) > 0.15 else low


def _sentence(where: str, span: str, way: str, draft: Draft, finding: Finding) -> Words:
    seen = _share_words(where, draft.facts, span)
    fault = f": {way}" if finding.state == "bad" else ""
    return Words(seen, way, "as it says", clause=f"{seen[:1].lower()}{seen[1:]}{fault}")


def _level_words(draft: Draft, finding: Finding) -> Words:
    where = "On average it says"
    if int(draft.facts["code"]) < 0:
        where = "Of the likeliest class it says on average"
    return _sentence(where, "", _way(draft), draft, finding)


def _sureness_words(draft: Draft, finding: Finding) -> Words:
    over = float(draft.facts["statistic"]) < 0
    way = "too confident" if over else "not confident enough"
    way = f"far {way}" if abs(draft.effect) > 0.15 and over else way
    return _sentence("Where it says", _span(draft.facts), way, draft, finding)


def _shape_words(draft: Draft, finding: Finding) -> Words:
    return _sentence("Where it says", _span(draft.facts), _way(draft), draft, finding)


def _groups_words(draft: Draft, finding: Finding) -> Words:
    return _sentence(f"In {draft.where} it says", "", _way(draft), draft, finding)


def _region_words(draft: Draft, finding: Finding) -> Words:
    low, high = (float(draft.facts[end]) for end in ("low", "high"))
    where = f"Where {draft.where} is {low:.3g} to {high:.3g} it says"
    return _sentence(where, "", _way(draft), draft, finding)


def _impossible_words(draft: Draft, _: Finding) -> Words:
    came = float(draft.facts["came"])
    rows = "rows with a class at 0 % had that class"
    if tuple(draft.facts["names"])[1:] == ("right",):
        rows = "answers with a confidence of 0 or 100 % came out the other way"
    seen = f"{came:,.0f} of {draft.n:,.0f} {rows}"
    return Words(seen, "what it calls impossible happens", "as it says", clause=seen)


def _skill_draft(case: Case) -> Draft:
    _probabilities(case)
    record = case.get("class_skill")
    error = record.standard_error
    p = math.nan
    if error > 0:  # one-sided: the chance of a skill as low, were it none
        p = float(special.stdtr(case.freedom, record.value / error))
        p = max(p, float(record.options["chance"]))  # and the chance of a perfect model
    return Draft(
        effect=record.value,
        lower=record.lower,
        upper=record.upper,
        p=p,
        n=record.n,
        good=record.lower > 0.0,
        caution=False,
        facts={"record": record},
    )


def _skill_words(draft: Draft, _: Finding) -> Words:
    record: Record = draft.facts["record"]
    way, sign = ("below", 100.0) if record.value > 0 else ("above", -100.0)
    low, high = sorted((sign * record.lower, sign * record.upper))
    seen = (
        f"The Brier score is {percent(abs(record.value))} {way} that of class frequencies "
        f"({low:.1f} to {high:.1f})"
    )
    worse = "worse than class frequencies alone"
    return Words(seen, f"it is {worse}", "better than class frequencies alone", clause=worse)


def _decision_draft(case: Case) -> Draft:
    _probabilities(case)
    record = case.get("net_benefit_gain")
    return Draft(
        effect=record.value,
        lower=record.lower,
        upper=record.upper,
        p=record.p,
        n=record.n,
        good=record.lower > 0.0,
        facts={"record": record},
    )


def _decision_words(draft: Draft, finding: Finding) -> Words:
    decision: Mapping[str, Any] = draft.facts["record"].options
    threshold = percent(float(decision["threshold"]))
    other = _otherwise(decision, "")
    seen = f"Acting from {threshold} on is worth {_worth(decision, '')}"
    others = [
        f"Acting from {percent(float(decision[f'threshold_{place}']))} on is worth "
        f"{_worth(decision, f'_{place}')}."
        for place in range(int(decision["others"]))
    ]
    fitted, low, high = (
        100.0 * float(decision[f"fitted{end}"]) for end in ("", "_lower", "_upper")
    )
    there = f"Where it says {threshold}, {fitted:.0f} % happen ({low:.0f}–{high:.0f})."
    worse = f"{other} is better than acting from {threshold} on"
    return Words(seen, worse, "the model helps to decide", " ".join([there, *others]), clause=worse)


def _worth(decision: Mapping[str, Any], place: str) -> str:
    """What acting at a threshold gains, in words."""
    gain, *ends = (float(decision[f"beyond{end}{place}"]) for end in ("", "_lower", "_upper"))
    way, sign = ("more", 100.0) if gain > 0 else ("less", -100.0)
    low, high = (sign * end for end in ends)
    return (
        f"{fixed(sign * gain, 1)} events per 100 rows {way} than "
        f"{_otherwise(decision, place)}{between(low, high, 1)}"
    )


def _otherwise(decision: Mapping[str, Any], place: str) -> str:
    """What one does without the model."""
    return "always acting" if float(decision[f"of_all{place}"]) > 0 else "never acting"


_NEEDED = "Needed for {where}: a model that tells its rows apart, or recalibration by group."
_question = partial(FindingQuestion, section="Class probabilities", margin=_MARGIN)
FINDINGS = tuple(
    _question(
        id=name,
        asked=asked,
        label=label,
        draft=partial(_draft, measure),
        words=words,
        measures=(measure,),
        name=told,
        cause=told,
        needs=needs,
    )
    for name, asked, label, measure, words, told, needs in (
        (
            "impossible",
            "Does what it calls impossible happen?",
            "Impossible",
            "class_impossible",
            _impossible_words,
            "impossible classes",
            "",
        ),
        (
            "sureness",
            "Is it as sure as it should be?",
            "Sureness",
            "class_sureness",
            _sureness_words,
            "sureness",
            "",
        ),
        (
            "level",
            "Does each class happen as often as it says?",
            "Level",
            "class_level",
            _level_words,
            "level",
            "",
        ),
        (
            "shape",
            "Is the calibration curve straight?",
            "Curve",
            "class_shape",
            _shape_words,
            "the calibration curve",
            "",
        ),
        (
            "class_groups",
            "Do probabilities hold in every group?",
            "Groups",
            "class_groups",
            _groups_words,
            "groups",
            _NEEDED,
        ),
        (
            "class_region",
            "Do probabilities hold for all inputs?",
            "Inputs",
            "class_region",
            _region_words,
            "inputs",
            _NEEDED,
        ),
    )
)
SKILL = _question(
    id="class_skill",
    asked="Does it beat class frequencies?",
    label="Skill",
    unit="ratio − 1",
    tolerance=0.02,
    draft=_skill_draft,
    words=_skill_words,
    margin=math.nan,
    measures=("class_skill",),
    name="skill",
    needs="Needed for skill: inputs that are informative about the class.",
    sought="skill",
    healed="aimed",
)

DECISION = _question(
    id="decision",
    asked="Does acting on it at the threshold gain?",
    label="Decision",
    unit="events per row",
    tolerance=0.001,
    draft=_decision_draft,
    words=_decision_words,
    margin=math.nan,
    measures=("net_benefit_gain",),
    name="the decision",
    needs="Needed for the decision: recalibrated probabilities, or another threshold.",
    healed="aimed",
)

# ---- what is measured ----------------------------------------------------------------------------

_NO_LAWS = Laws(
    translation="varies", scale="varies", reflection="varies", why="y is the number of a class"
)
_entry = partial(
    Metric,
    question=Question.CLASSES,
    direction=Direction.LOWER,
    laws=_NO_LAWS,
    standard_normal=math.nan,
    merges="rows",
)
_gap = partial(
    _entry,
    direction=Direction.TARGET,
    target=0.0,
    bounds=(-1.0, 1.0),
    source="score tests of recalibrations; Cox 1958",
    beware="It is where the farthest departure was found: its interval allows for the search.",
)

_ENTRIES = (
    _entry(
        name="brier",
        title="Brier score",
        synonyms=("quadratic score", "mean squared error of probabilities"),
        meaning="Mean squared distance of the probabilities from what happened; proper.",
        formula="mean Σ_j (p_j − 1{y = j})², of two classes mean (p − y)²",
        source="Brier 1950",
        forms=(estimated("class_brier"),),
        bounds=(0.0, 2.0),
        key_number=18,
        compares=7,
        beware="It depends on how often the classes happen: compare models on the same rows.",
    ),
    _entry(
        name="class_skill",
        title="Brier skill (against class frequencies)",
        synonyms=("Brier skill score", "BSS"),
        meaning="Share by which the Brier score is below that of the frequencies of other rows.",
        formula="1 − Brier / Brier of class frequencies",
        source="definition",
        direction=Direction.HIGHER,
        forms=(estimated("class_skill"),),
        bounds=(-math.inf, 1.0),
        key_number=19,
        beware="With rare classes even good models have a small skill.",
    ),
    *(
        _entry(
            name=name,
            title=title,
            synonyms=synonyms,
            meaning=meaning,
            formula=formula,
            source="Vickers and Elkin 2006",
            direction=Direction.HIGHER,
            forms=(statistic(partial(_of_decision, number), "class_decisions", weighted=False),),
            bounds=(-math.inf, 1.0),
            beware="It is per row, and of several thresholds of the one where least is gained.",
        )
        for name, title, synonyms, meaning, formula, number in (
            (
                "net_benefit",
                "Net benefit of acting at the threshold",
                ("decision curve", "clinical utility"),
                "Events acted on, less rows acted on in vain at the threshold's odds, per row.",
                "mean 1{p ≥ t} (y − (1 − y) t/(1 − t))",
                "benefit",
            ),
            (
                "net_benefit_gain",
                "Net benefit beyond acting on all or none",
                (),
                "By how much acting at the threshold is better than acting on all and on none.",
                "net benefit − max(0, mean (y − (1 − y) t/(1 − t)))",
                "beyond",
            ),
        )
    ),
    _entry(
        name="accuracy",
        title="Accuracy",
        synonyms=("top-1 accuracy", "share correct"),
        meaning="Share of rows whose likeliest class came.",
        formula="mean 1{argmax p = y}",
        direction=Direction.HIGHER,
        forms=(row_mean(np.asarray, "class_correct", reduce="share"),),
        bounds=SHARE,
        key_number=20,
        beware="It says nothing of calibration.",
    ),
    _entry(
        name="auc",
        title="Area under the ROC curve",
        synonyms=("ROC AUC", "AUROC", "c-statistic"),
        meaning="Chance that a row with the class has a higher probability than one without.",
        formula="P(p⁺ > p⁻) + ½ P(p⁺ = p⁻)",
        source="DeLong, DeLong and Clarke-Pearson 1988",
        direction=Direction.HIGHER,
        forms=(estimated("class_auc"),),
        bounds=SHARE,
        key_number=21,
        beware="It says nothing of calibration: any rising function of p has the same.",
    ),
    _entry(
        name="class_calibration_error",
        title="Expected calibration error of classes",
        synonyms=("classification ECE", "top-label ECE", "confidence ECE"),
        meaning="Mean distance in bins of what happened from what was said, far above 0 by chance.",
        formula="Σ_b (n_b/n) |mean y − mean p|, 15 bins",
        source="Guo et al. 2017",
        forms=(statistic(lambda claims: ece(*claims), "class_claims", weighted=False),),
        bounds=SHARE,
        key_number=22,
        by_size=True,
        beware=BINNED,
    ),
    _entry(
        name="squared_calibration_error",
        title="Squared calibration error, unbiased",
        synonyms=("unbiased ECE", "debiased calibration error"),
        meaning="Squared distance of what happened from what was said, 0 on average if perfect.",
        formula="Σ_b Σ_{i ≠ j} r_i r_j / ((m_b − 1) n)",
        source="Bröcker 2012; Kumar, Liang and Ma 2019",
        forms=(
            statistic(
                lambda claims: squared_calibration_error(*claims), "class_claims", weighted=False
            ),
        ),
        target=0.0,
        beware="It may be below 0 by chance.",
    ),
    *(
        _entry(
            name=f"class_{part}",
            title=f"{title} of the Brier score",
            meaning=meaning,
            formula=formula,
            source="Dimitriadis, Gneiting and Jordan 2021",
            direction=direction,
            forms=(stated("class_parts", part),),
            beware="Of more than two classes, that of the likeliest class.",
        )
        for part, title, meaning, formula, direction in (
            (
                "miscalibration",
                "Miscalibration",
                "What the best rising recalibration would save; of a perfect model 0 on average.",
                "Brier of p − Brier of the isotonic fit, two fifths in-sample and three in folds",
                Direction.LOWER,
            ),
            (
                "discrimination",
                "Discrimination",
                "How much better the recalibrated forecast is than one probability for all.",
                "Brier of the mean − Brier of the isotonic fit",
                Direction.HIGHER,
            ),
            (
                "uncertainty",
                "Uncertainty",
                "The Brier score of the share of events alone, whatever the model is.",
                "ȳ(1 − ȳ)",
                Direction.NONE,
            ),
        )
    ),
    *(
        _gap(
            name=f"class_{question}",
            title=title,
            meaning=meaning,
            formula="share that happened − mean probability stated",
            forms=(estimated(f"answer_{question}"),),
            notion=notion,
        )
        for question, title, meaning, notion in (
            (
                "level",
                "Gap in frequency",
                "How much more often the class that is farthest off happens than is stated.",
                Notion.MARGINAL,
            ),
            (
                "sureness",
                "Gap where it is sure",
                "Gap in the rows that a temperature moves most; below 0 where overconfident.",
                Notion.MARGINAL,
            ),
            (
                "shape",
                "Gap along the curve",
                "Gap in the range of probabilities that departs most beyond level and sureness.",
                Notion.LOCAL,
            ),
            (
                "groups",
                "Gap in a group",
                "Gap in the group that departs most, beyond level and sureness.",
                Notion.GROUP,
            ),
            (
                "region",
                "Gap in a region of inputs",
                "Gap where a feature's values depart most, beyond level and sureness.",
                Notion.LOCAL,
            ),
            (
                "impossible",
                "Classes at 0 % that happened",
                "Share of rows with a class at 0 % in which that class came.",
                Notion.MARGINAL,
            ),
        )
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("class_table", _table, predicted=True),
        Array("class_codes", _codes),
        Array("class_claims", _claims),
        Array("class_correct", _correct),
        Array("class_residual", _residual),
        Array("class_brier", partial(_score, brier_score)),
        Array("class_log_score", _log_score),
        Array("class_log_mean", partial(_score, log_loss)),
        Array("class_skill", _skill),
        Array("class_auc", _auc),
        Array(
            "class_decisions", _decisions, undrawn="it is compared with acting on all and on none"
        ),
        Array("class_parts", _parts),
        Array("class_judgement", _judgement, undrawn=_UNDRAWN),
        *(
            Array(f"answer_{question}", partial(_answered, question), undrawn=_UNDRAWN)
            for question in ("level", "sureness", "shape", "groups", "region", "impossible")
        ),
    ),
    curves=(_drawn,),
    tables=(_listed, _decided),
    findings=(*FINDINGS, SKILL, DECISION),
    label="Class probabilities",
    title="Do outcomes happen as often as predicted?",
    layouts={
        "class_reliability": Layout(
            order=0,
            question="Does what it says happen as often as it says?",
            title="Reliability diagram",
            reading=(
                "On the diagonal, what has a stated probability happens as often. Below it, "
                "probabilities are too high. A departure inside the band may be chance."
            ),
            x=Axis(title="Stated probability", kind="percent", domain=UNIT),
            y=Axis(title="Share that happened", kind="percent", domain=UNIT),
            square=True,
            reference="perfect calibration",
            band_about="reference",
            band="95 % range of a perfect model",
        )
    },
    titles={
        "class_bins": "What it says, and what happens",
        "class_decisions": "Decisions at the threshold",
    },
)
