"""The parts of a score of an evaluation set, and their figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Axis, Direction, Layout, Table, TableLayout
from howsure.engine.metric import SLOW_ROWS, Array, Laws, Metric, Question, Topic, stated
from howsure.stats.estimate import Estimate
from howsure.topics.decomposition.parts import (
    Decomposition,
    ScoreParts,
    mean_parts,
    quantile_parts,
    skill_by_group,
)
from howsure.topics.decomposition.reliability import (
    OUTSIDE,
    PART,
    asked,
    copies,
    murphy_drawn,
    reliability_drawn,
    right_outcomes,
    shown,
    some_rows,
)

if TYPE_CHECKING:
    from howsure.engine.measure import Evaluation
    from howsure.engine.view import View

_MOST = 100_000  # rows that are measured where a part of the score is asked for by name
_DRAWS = (9, 49)
_WORK = 200_000  # rows of all draws together
_ASKED = "drawn where it is asked for by name"
_Measure = Callable[["View"], ScoreParts]


def _of_quantiles(part: View) -> ScoreParts:
    quantiles, levels = part.get("knowledge")
    return quantile_parts(part.evalset.y, quantiles, levels, _mass(part), part.evalset.units)


def _of_mean(part: View) -> ScoreParts:
    return mean_parts(part.evalset.y, part.get("mean_point"), _mass(part), part.evalset.units)


def _mass(view: View) -> FloatArray:
    counts = view.evalset.multiplicities
    return np.ones(view.evalset.n) if counts is None else counts


def _decomposed(
    view: View, _: float, *, array: str, of: _Measure, forecast: str, names: tuple[str, ...]
) -> Decomposition:
    """The parts, of some rows; of all, with what right forecasts show, where one is asked for."""
    named = view.slow.intersection(names)
    part: View = some_rows(view, _MOST) if named else view.get("part_of_score")
    held = part.evalset
    kind = "frequency" if held.weights is None else held.weights.kind
    part.get(forecast)  # so that it is known who answers
    view.told(array, part.source([forecast]))
    found = of(part).estimated(_mass(part), held.units, kind, view.confidence)
    estimates = [found.miscalibration, found.discrimination, found.uncertainty]
    if named:
        try:
            draws = _if_right(part, of)
        except UnanswerableError as error:
            estimates = [_without(each, str(error)) for each in estimates]
        else:
            estimates = [_add_null(*each) for each in zip(estimates, draws.T, strict=True)]
            larger = int((draws[:, 0] >= found.miscalibration.value).sum())
            estimates[0] = replace(estimates[0], p=(1 + larger) / (1 + len(draws)))
    else:
        estimates = [_without(estimate, _ASKED) for estimate in estimates]
    if part is not view:
        n = float(held.n) if held.weights is None else held.weights.effective_n
        estimates = [replace(each, n=n) for each in estimates]
    return Decomposition(found.score, *estimates)


def _without(estimate: Estimate, why: str) -> Estimate:
    """An estimate that says why no perfect model stands beside it."""
    return replace(estimate, details={**estimate.details, "no_null": why})


def _add_null(estimate: Estimate, draws: FloatArray) -> Estimate:
    """With the mean and the 95 % range of what right forecasts show."""
    centre, count = float(draws.mean()), len(draws)
    reach = float(special.stdtrit(count - 1, 0.975)) * math.sqrt(1.0 + 1.0 / count)
    off = reach * float(draws.std(ddof=1))
    return replace(estimate, null=centre, null_lower=centre - off, null_upper=centre + off)


def _if_right(part: View, of: _Measure) -> FloatArray:
    """MCB, DSC and UNC of these forecasts where each y is drawn from its own, shape (draws, 3)."""
    means = []
    for drawn in right_outcomes(part, int(np.clip(_WORK // copies(part), *_DRAWS))):
        if np.isinf(drawn.evalset.y).any():
            raise UnanswerableError(OUTSIDE)
        means.append(of(drawn).means(_mass(drawn)))
    return np.array(means)


def score_parts(evaluation: Evaluation) -> list[Table]:
    """S = UNC − DSC + MCB, of the mean pinball loss or else of the squared error."""
    view = evaluation.view
    if view.evalset.n > SLOW_ROWS and not asked(view):
        return []
    for name, title in (
        ("quantile_decomposition", "mean pinball loss"),
        ("mean_decomposition", "mean squared error"),
    ):
        try:
            parts: Decomposition = view.get(name)
        except UnanswerableError:
            continue
        estimates = {
            "mcb": parts.miscalibration,
            "dsc": parts.discrimination,
            "unc": parts.uncertainty,
        }
        if not all(math.isfinite(estimate.value) for estimate in estimates.values()):
            continue
        columns: dict[str, npt.NDArray[Any]] = {
            "measure": np.array([title]),
            "score": np.array([parts.score]),
        }
        for part, each in estimates.items():
            columns |= {
                part: np.array([each.value]),
                f"{part}_lower": np.array([each.lower]),
                f"{part}_upper": np.array([each.upper]),
            }
        n = parts.miscalibration.n
        return [
            Table(
                name="score_parts",
                columns=columns,
                model=view.evalset.model,
                notes="" if math.isnan(n) else f"Of {n:,.0f} rows.",
            )
        ]
    return []


_entry = partial(
    Metric,
    question=Question.SKILL,
    source="Gneiting and Resin 2023; cross-fitted here",
    merges="rows",
    slow=True,
)
_FOLDED = "folds are drawn anew where y and forecasts are negated"
_QUANTILES = partial(_entry, units="y", laws=Laws(scale=1.0, reflection="varies", why=_FOLDED))
_MEANS = partial(_entry, units="y²", laws=Laws(scale=2.0, reflection="varies", why=_FOLDED))
_SOME = (
    f"Past {PART:,} rows it is told of that many, and past {SLOW_ROWS:,} of none, unless it is "
    "asked for by name."
)
_UNMENDED = "It is what the best recalibration would save, which any real one saves less of."
_RANGED = "It rises with the spread of y in the rows chosen."

_ENTRIES = (
    _QUANTILES(
        name="miscalibration",
        title="Miscalibration (MCB)",
        synonyms=("reliability component", "reliability part of the score"),
        meaning=(
            "How much of the mean pinball loss would be saved if each quantile were replaced by "
            "the best rising function of itself."
        ),
        formula="S − S_r, S_r the loss of recalibrated quantiles; S = MCB − DSC + UNC",
        direction=Direction.LOWER,
        forms=(stated("quantile_decomposition", "miscalibration"),),
        standard_normal=0.0,
        target=0.0,
        beware=f"{_UNMENDED} {_SOME}",
    ),
    _QUANTILES(
        name="discrimination",
        title="Discrimination (DSC)",
        synonyms=("resolution component", "resolution part of the score"),
        meaning=(
            "By how much less recalibrated quantiles score in mean pinball loss than those of all "
            "y: what the forecast knows."
        ),
        formula="UNC − S_r, S_r the loss of recalibrated quantiles; S = MCB − DSC + UNC",
        direction=Direction.HIGHER,
        forms=(stated("quantile_decomposition", "discrimination"),),
        standard_normal=0.0,
        beware=f"It is what could be had, not what is had. {_RANGED} {_SOME}",
    ),
    _QUANTILES(
        name="outcome_uncertainty",
        title="Uncertainty of y (UNC)",
        synonyms=("uncertainty component", "score of climatology"),
        meaning="Mean pinball loss of the quantiles of all y, the same for every row.",
        formula="mean pinball loss of the quantiles of y in new rows; S = MCB − DSC + UNC",
        direction=Direction.NONE,
        forms=(stated("quantile_decomposition", "uncertainty"),),
        standard_normal=0.2969,
        beware=f"It tells nothing of the forecast. {_SOME}",
    ),
    _MEANS(
        name="mean_miscalibration",
        title="Miscalibration of the mean",
        synonyms=("MCB of the mean",),
        meaning=(
            "How much of the mean squared error would be saved if the forecast were replaced by "
            "the best rising function of itself."
        ),
        formula="MSE − MSE_r, MSE_r of the recalibrated forecast; MSE = MCB − DSC + UNC",
        direction=Direction.LOWER,
        forms=(stated("mean_decomposition", "miscalibration"),),
        standard_normal=0.0,
        target=0.0,
        beware=f"{_UNMENDED} {_SOME}",
    ),
    _MEANS(
        name="mean_discrimination",
        title="Discrimination of the mean",
        synonyms=("DSC of the mean",),
        meaning=(
            "By how much less the recalibrated forecast scores in squared error than the mean of "
            "all y."
        ),
        formula="UNC − MSE_r, MSE_r of the recalibrated forecast; MSE = MCB − DSC + UNC",
        direction=Direction.HIGHER,
        forms=(stated("mean_decomposition", "discrimination"),),
        standard_normal=0.0,
        beware=f"It is what could be had, not what is had. {_RANGED} {_SOME}",
    ),
    _MEANS(
        name="mean_outcome_uncertainty",
        title="Variance of y",
        synonyms=("UNC of the mean",),
        meaning="Squared error of the mean of all y in new rows.",
        formula="Σ (y − ȳ)²/(n − 1); MSE = MCB − DSC + UNC",
        direction=Direction.NONE,
        forms=(stated("mean_decomposition", "uncertainty"),),
        standard_normal=1.0,
        beware=f"It tells nothing of the forecast. {_SOME}",
    ),
)
_OF_QUANTILES = tuple(entry.name for entry in _ENTRIES[:3])
_OF_MEANS = tuple(entry.name for entry in _ENTRIES[3:])

_RELIABILITY = partial(
    Layout,
    reading=(
        "What y showed where this was predicted. On the diagonal they agree; a departure inside "
        "the band may be chance."
    ),
    folded=True,
    square=True,
    reference="perfect calibration",
    band_about="reference",
)
_MURPHY = partial(
    Layout,
    order=17,
    folded=True,
    x=Axis(title="Threshold"),
    y=Axis(title="Mean elementary score", zero=True),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("shown", shown, predicted=True),
        Array("part_of_score", lambda view, _: some_rows(view, PART)),
        Array(
            "quantile_decomposition",
            partial(
                _decomposed,
                array="quantile_decomposition",
                of=_of_quantiles,
                forecast="knowledge",
                names=_OF_QUANTILES,
            ),
        ),
        Array(
            "mean_decomposition",
            partial(
                _decomposed,
                array="mean_decomposition",
                of=_of_mean,
                forecast="point",
                names=_OF_MEANS,
            ),
        ),
    ),
    curves=(reliability_drawn, murphy_drawn),
    tables=(score_parts, skill_by_group),
    titles={
        "score_parts": TableLayout(listed=False, figure="parts"),
        "skill_by_group": TableLayout(listed=False, figure="skill"),
    },
    label="Skill",
    layouts={
        "score_parts": Layout(
            order=14,
            folded=True,
            question="Is the score lost to miscalibration, or to what is not known?",
            title="Parts of the score",
            reading=(
                "A bar is a score, lower is better. MCB is what the best recalibration would save. "
                "DSC is how far the recalibrated forecast lies below the distribution of y."
            ),
        ),
        "skill_by_group": Layout(
            order=15,
            folded=True,
            question="What does the model know in each group?",
            title="Skill by group",
            reading=(
                "By how much the score is lower than that of always predicting the distribution "
                "of y in the same group. A bar that crosses the line leaves skill unproven."
            ),
        ),
        **{
            f"reliability_{name}": _RELIABILITY(
                order=16,
                question=f"Is the {words} right where it is low, and where it is high?",
                title=f"Reliability of the {words} (CORP)",
                x=Axis(title=f"Predicted {words}"),
                y=Axis(title=f"Recalibrated {words}"),
            )
            for name, words in (
                ("low", "low quantile"),
                ("median", "median"),
                ("high", "high quantile"),
                ("mean", "mean"),
            )
        },
        "murphy": _MURPHY(
            question="Is a median better whatever is at stake?",
            title="Murphy diagram of the median",
            reading=(
                "What is lost at each threshold by who acts where the forecast lies above it. A "
                "curve that is never above another is better by every score of the median."
            ),
            reference="distribution of y",
        ),
        "murphy_mean": _MURPHY(
            question="Is a mean better whatever is at stake?",
            title="Murphy diagram of the mean",
            reading=(
                "What is lost at each threshold by who pays it wherever the forecast lies above "
                "it. A curve that is never above another is better by every score of the mean."
            ),
            reference="mean of y",
        ),
    },
)
