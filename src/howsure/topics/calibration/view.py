"""Calibration of an evaluation set: its PIT, its measures, its curves."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.formats import level
from howsure.core.records import UNIT, Axis, Curve, Direction, Layout, Mark, Notion
from howsure.core.rng import row_keys, row_uniforms
from howsure.engine.metric import (
    POSITIVE,
    SHARE,
    Array,
    Form,
    Laws,
    Metric,
    Question,
    Topic,
    statistic,
)
from howsure.predictions import Distribution
from howsure.stats.ecdf import uniformity_of_counts
from howsure.stats.estimate import Estimate
from howsure.topics.calibration.curve import (
    calibration_curve,
    calibration_curve_quantiles,
    calibration_error,
    calibration_error_quantiles,
    miscalibration_area,
)
from howsure.topics.pit import pit_histogram, randomised_counts, randomised_pit

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View


def _uniformity(counted: tuple[FloatArray, int]) -> Estimate:
    p = uniformity_of_counts(*counted).p_value
    return Estimate(p, p=p)


def _pit(view: View, side: str) -> FloatArray:
    return np.asarray(view.ask(side, side, view.evalset.y))


def _cdf_left(view: View, _: float) -> FloatArray:
    distribution = view.find_prediction(Distribution)
    if distribution is not None and not distribution.discrete:
        return np.asarray(view.get("cdf"))
    return _pit(view, "cdf_left")


def _left_at_jumps(view: View, _: float) -> FloatArray | None:
    """P(Y < y), or None where it equals P(Y ≤ y)."""
    left = view.get("cdf_left")
    return None if left is view.get("cdf") else np.asarray(left)


def _pit_random(view: View, _: float) -> FloatArray:
    """PIT values of rows; at a jump, a draw fixed by the ends of the jump."""
    right, left = view.get("cdf"), view.get("left")
    if left is None:
        return np.asarray(right)
    draws = row_uniforms(view.seed, "pit", row_keys(left, right))
    return randomised_pit(right, left, draws)


def _pit_counts(view: View, _: float) -> tuple[FloatArray, int]:
    """How many PIT values lie at or below each hundredth, and how many there are."""
    evalset = view.evalset
    if evalset.cluster is not None:
        raise UnanswerableError("the test of uniformity needs independent rows, not clusters")
    right, left = view.get("cdf"), view.get("left")
    if evalset.weights is not None and evalset.weights.kind == "importance":
        raise UnanswerableError("the test of uniformity needs unweighted rows")
    copies = evalset.multiplicities
    n = evalset.n if copies is None else int(copies.sum())
    return randomised_counts(right, left, np.arange(1, 100) / 100, copies, seed=view.seed), n


def _calibration_drawn(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Observed share below each stated level, in a band that holds at all levels at once."""
    view, evalset = evaluation.view, evaluation.evalset
    weights = evalset.multiplicities
    try:
        curve = calibration_curve(
            view.get("cdf"), left=view.get("left"), confidence=confidence, weights=weights
        )
    except UnanswerableError:
        quantiles, levels = view.get("quantiles"), view.get("levels")
        curve = calibration_curve_quantiles(
            view.get("y"), quantiles, levels, confidence=confidence, weights=weights
        )
    return [
        Curve(
            name="calibration",
            x=curve.levels,
            y=curve.observed,
            lower=curve.simultaneous.lower,
            upper=curve.simultaneous.upper,
            reference=curve.levels,
            x_label="Nominal level",
            y_label="Observed frequency",
            band=f"{level(confidence)} simultaneous band of a perfect model",
            model=evalset.model,
        )
    ]


def _pit_drawn(evaluation: Evaluation, confidence: float) -> list[Curve]:
    """Where y falls in its predictive law: departure of the shares from uniform, and bins."""
    view, evalset = evaluation.view, evaluation.evalset
    pit, left, weights = view.get("cdf"), view.get("left"), evalset.multiplicities
    curve = calibration_curve(pit, left=left, confidence=confidence, weights=weights)
    bins = pit_histogram(pit, left=left, confidence=confidence, weights=weights)
    count = len(bins.share)
    band = f"{level(confidence)} simultaneous band of a perfect model"
    return [
        Curve(
            name="pit_ecdf",
            x=curve.levels,
            y=curve.observed - curve.levels,
            lower=curve.simultaneous.lower - curve.levels,
            upper=curve.simultaneous.upper - curve.levels,
            reference=np.zeros(len(curve.levels)),
            x_label="PIT",
            y_label="ECDF − uniform",
            band=band,
            model=evalset.model,
        ),
        Curve(
            name="pit_histogram",
            x=(bins.edges[1:] + bins.edges[:-1]) / 2.0,
            y=bins.share * count,
            lower=np.full(count, bins.lower * count),
            upper=np.full(count, bins.upper * count),
            reference=np.ones(count),
            x_label="PIT",
            y_label="Density",
            band=band,
            model=evalset.model,
        ),
    ]


_entry = partial(
    Metric,
    question=Question.CALIBRATION,
    direction=Direction.LOWER,
    merges="histogram",
    standard_normal=0.0,
    target=0.0,
    bounds=POSITIVE,
)

_ENTRIES = (
    _entry(
        name="calibration_error",
        title="Regression calibration error",
        synonyms=(
            "ECE",
            "expected calibration error",
            "QCE",
            "MACE",
            "mean absolute calibration error",
            "regression ECE",
            "quantile calibration error",
        ),
        meaning="Distance of observed frequencies from predicted probabilities, over levels.",
        formula="Σ_j w_j |p_j − q_j|^a",
        source="Kuleshov, Fenner and Ermon 2018",
        forms=(
            Form(
                needs=("cdf",),
                keywords={"left": "left"},
                function=calibration_error,
                reduce="statistic",
            ),
            Form(
                needs=("y", "quantiles", "levels"),
                function=calibration_error_quantiles,
                reduce="statistic",
                note="at the given levels",
            ),
        ),
        bounds=SHARE,
        beware=(
            "It is above 0 by chance: compare it with its reference. A model that ignores its "
            "inputs may be perfectly calibrated."
        ),
    ),
    _entry(
        name="miscalibration_area",
        title="Miscalibration area",
        synonyms=("MA", "miscal area", "calibration area"),
        meaning="Area between the calibration curve and the diagonal, exact.",
        formula="∫ |q(p) − p| dp",
        source="Tran et al. 2020",
        forms=(
            Form(
                needs=("cdf",),
                keywords={"left": "left"},
                function=miscalibration_area,
                reduce="statistic",
                options={"version": "quantile"},
            ),
        ),
        beware=(
            "It is above 0 by chance: compare it with its reference. Faults of opposite sign at "
            "different levels do not cancel; those at different inputs do."
        ),
    ),
    _entry(
        name="centred_miscalibration_area",
        title="Miscalibration area of central intervals",
        meaning="Area between empirical and nominal coverage of central intervals, exact.",
        formula="∫ |c(p) − p| dp over central coverages p",
        source="Tran et al. 2020",
        forms=(
            Form(
                needs=("cdf",),
                keywords={"left": "left"},
                function=miscalibration_area,
                reduce="statistic",
                options={"version": "interval"},
            ),
        ),
        beware="Bias and skew partly cancel in central intervals.",
    ),
    Metric(
        name="pit_uniformity",
        title="Uniformity of the PIT",
        synonyms=("PIT", "probability integral transform", "PIT histogram", "KS of the PIT"),
        question=Question.CALIBRATION,
        meaning="P-value of the test that the PIT is uniform, from the simultaneous band of its "
        "shares.",
        formula="simultaneous ECDF test",
        source="Säilynoja, Bürkner and Vehtari 2022",
        direction=Direction.NONE,
        units="p-value",
        forms=(statistic(_uniformity, "pit_counts", weighted=False),),
        merges="histogram",
        laws=Laws(
            reflection="varies",
            why=(
                "where y is at a jump of its distribution, a random draw breaks the tie, and other "
                "jumps have other draws"
            ),
        ),
        standard_normal=math.nan,
        beware=(
            "A p-value is not an effect size: with many rows, small departures are significant. "
            "Importance weights are not supported."
        ),
    ),
    Metric(
        name="groups_differ_in_errors",
        title="Do groups differ in bias or spread?",
        synonyms=("bias by group", "spread by group"),
        question=Question.CALIBRATION,
        meaning="P-value of the test that no group differs from all rows in bias or spread.",
        formula="min over groups and φ_1, φ_2 of p of |Σ(φ − mean φ)| / sd, times their number",
        source="Bonferroni over groups and both components",
        direction=Direction.NONE,
        units="p-value",
        forms=(),
        beside="groups",
        standard_normal=math.nan,
        notion=Notion.GROUP,
        bounds=SHARE,
        beware=(
            "A p-value is not an effect size: with many rows, a negligible difference is "
            "significant. Choose groups before looking at y."
        ),
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("cdf", lambda view, _: _pit(view, "cdf")),
        Array("cdf_left", _cdf_left),
        Array("left", _left_at_jumps),
        Array("pit", _pit_random),
        Array("pit_counts", _pit_counts),
    ),
    curves=(
        _calibration_drawn,
        _pit_drawn,
    ),
    layouts={
        "calibration": Layout(
            order=0,
            question="Does y fall below each predicted quantile as often as it should?",
            title="Reliability diagram (calibration curve)",
            reading=(
                "On the diagonal, y falls below each predicted quantile as often as its level "
                "says. A departure inside the shaded band may be chance."
            ),
            x=Axis(title="Nominal level", kind="percent", domain=UNIT),
            y=Axis(title="Observed frequency", kind="percent", domain=UNIT),
            square=True,
            reference="perfect calibration",
            band_about="reference",
            band="simultaneous band",
        ),
        "pit_ecdf": Layout(
            order=2,
            question="Is the PIT uniform?",
            title="PIT ECDF, difference from uniform",
            reading=(
                "A curve inside the shaded band is consistent with calibration. "
                "Above then below zero means predictive distributions too narrow, below then above "
                "too wide, one side biased."
            ),
            x=Axis(title="PIT", domain=UNIT),
            y=Axis(title="ECDF − uniform"),
            reference="uniform",
            band_about="reference",
            band="simultaneous band",
        ),
        "pit_histogram": Layout(
            order=3,
            question="What shape does the PIT have?",
            title="PIT histogram",
            reading=(
                "A flat histogram is calibrated. A U shape means predictive distributions too "
                "narrow, a hump too wide, a slope biased."
            ),
            x=Axis(title="PIT", domain=UNIT),
            y=Axis(title="Density", zero=True),
            mark=Mark.BARS,
            reference="uniform",
            band_about="reference",
            band="simultaneous band",
        ),
    },
)
