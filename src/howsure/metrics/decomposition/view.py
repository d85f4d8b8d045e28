"""The parts of a score of an evaluation set, and their figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.records import Direction
from howsure.core.rng import row_keys, row_uniforms
from howsure.metrics.decomposition.parts import (
    Decomposition,
    ScoreParts,
    mean_parts,
    quantile_parts,
)
from howsure.metrics.metric import Laws, Metric, Question, Topic, stated
from howsure.predictions import Samples
from howsure.stats.estimate import Estimate

if TYPE_CHECKING:
    from howsure.metrics.view import View

_PART = 1_500
"""Rows that are measured unless a part of the score is asked for by name; then the most."""
_MOST = 100_000
_DRAWN = 20_000  # rows for which y is drawn
_DRAWS = (9, 99)
_WORK = 200_000  # rows of all draws together
_ASKED = "drawn where it is asked for by name"
_OUTSIDE = "quantiles give no distribution beyond their outermost levels"
_Measure = Callable[["View"], ScoreParts]


def _of_quantiles(part: View) -> ScoreParts:
    quantiles, levels = part.get("knowledge")
    return quantile_parts(part.evalset.y, quantiles, levels, _mass(part), part.evalset.units)


def _of_mean(part: View) -> ScoreParts:
    return mean_parts(part.evalset.y, part.get("mean_point"), _mass(part), part.evalset.units)


def _mass(view: View) -> FloatArray:
    counts = view.evalset.multiplicities
    return np.ones(view.evalset.n) if counts is None else counts


def _decomposed(view: View, _: float, *, of: _Measure, names: tuple[str, ...]) -> Decomposition:
    """The parts, of some rows; of all, with what right forecasts show, where one is asked for."""
    asked = view.slow.intersection(names)
    part = view.part(_MOST if asked else _PART)
    held = part.evalset
    kind = "frequency" if held.weights is None else held.weights.kind
    found = of(part).estimated(_mass(part), held.units, kind, view.confidence)
    estimates = [found.miscalibration, found.discrimination, found.uncertainty]
    if asked:
        try:
            draws = _if_right(part, of)
        except UnanswerableError as error:
            estimates = [_without(each, str(error)) for each in estimates]
        else:
            estimates = [_beside(*each) for each in zip(estimates, draws.T, strict=True)]
            larger = int((draws[:, 0] >= found.miscalibration.value).sum())
            estimates[0] = replace(estimates[0], p=(1 + larger) / (1 + len(draws)))
    else:
        estimates = [_without(each, _ASKED) for each in estimates]
    if part is not view:
        n = float(held.n) if held.weights is None else held.weights.effective_n
        estimates = [replace(each, n=n) for each in estimates]
    return Decomposition(found.score, *estimates)


def _without(estimate: Estimate, why: str) -> Estimate:
    """An estimate that says why no perfect model stands beside it."""
    return replace(estimate, details={**estimate.details, "no_null": why})


def _beside(estimate: Estimate, draws: FloatArray) -> Estimate:
    """With the mean and the 95 % range of what right forecasts show."""
    centre, count = float(draws.mean()), len(draws)
    reach = float(special.stdtrit(count - 1, 0.975)) * math.sqrt(1.0 + 1.0 / count)
    off = reach * float(draws.std(ddof=1))
    return replace(estimate, null=centre, null_lower=centre - off, null_upper=centre + off)


def _if_right(part: View, of: _Measure) -> FloatArray:
    """MCB, DSC and UNC of these forecasts where each y is drawn from its own, shape (draws, 3)."""
    from howsure.metrics.view import KIND_PRIORITY  # which reads the catalogue

    held = part.evalset
    if held.units is not None:
        raise UnanswerableError("rows depend, and each y would be drawn by itself")
    if held.weights is not None and held.weights.kind == "frequency":
        counts = held.weights.values.astype(np.int64)
        if counts.sum() <= _DRAWN:
            held = replace(held.take(np.repeat(np.arange(held.n), counts)), weights=None)
    frequent = held.weights is not None and held.weights.kind == "frequency"
    if held.n > _DRAWN or frequent:
        raise UnanswerableError(f"y is drawn for at most {_DRAWN:,} rows")
    drawers = [kind for kind in KIND_PRIORITY if kind.answers("redrawn")]
    belief = next((b for kind in drawers for b in held.beliefs if isinstance(b, kind)), None)
    if belief is None:
        raise UnanswerableError("a point forecast alone gives no distribution of y")
    whole = part.on(held)
    others = tuple(each for each in held.beliefs if each is not belief)
    given = {}
    for name in () if isinstance(belief, Samples) else ("knowledge", "mean_point"):
        try:
            given[name] = whole.get(name)
        except UnanswerableError:
            continue
    keys = row_keys(held.y, *(each for b in held.beliefs for each in b.numbers().values()))
    means = []
    for number in range(int(np.clip(_WORK // held.n, *_DRAWS))):
        y, stated_law = belief.redrawn(held.y, row_uniforms(part.seed, f"outcome {number}", keys))
        if np.isinf(y).any():
            raise UnanswerableError(_OUTSIDE)
        drawn = part.on(replace(held, y=y, beliefs=(stated_law, *others)), given=given)
        means.append(of(drawn).means(_mass(drawn)))
    return np.array(means)


_entry = partial(
    Metric,
    question=Question.SKILL,
    source="Gneiting and Resin 2023; cross-fitted here",
    merges="rows",
)
_FOLDED = "folds are drawn anew where y and forecasts are negated"
_QUANTILES = partial(_entry, units="y", laws=Laws(scale=1.0, reflection="varies", why=_FOLDED))
_MEANS = partial(_entry, units="y²", laws=Laws(scale=2.0, reflection="varies", why=_FOLDED))
_SOME = f"Past {_PART:,} rows it is told of that many, unless it is asked for by name."
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

TOPIC = Topic(
    entries=_ENTRIES,
    arrays={
        "quantile_decomposition": partial(_decomposed, of=_of_quantiles, names=_OF_QUANTILES),
        "mean_decomposition": partial(_decomposed, of=_of_mean, names=_OF_MEANS),
    },
    label="Skill",
)
