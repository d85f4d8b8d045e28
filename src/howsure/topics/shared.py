"""Scores that mean the same for models whose predictions are of different kinds.

A score of a whole distribution is no score of three quantiles, and an ensemble of ten pays for
having ten members. So models are set side by side as they are where their predictions are alike,
and else at the levels that all of them state; ensembles are scored as the distribution behind
their members.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cache

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import UnanswerableError
from howsure.core.records import Key
from howsure.engine.catalogue import catalogue
from howsure.engine.finding import SharedScore
from howsure.engine.measure import Evaluation
from howsure.engine.metric import Question
from howsure.predictions import Distribution, Intervals, Probabilities, Quantiles, Samples
from howsure.predictions.base import Prediction, levels_in_words, tail_levels
from howsure.topics.classes.scores import brier_score, log_loss
from howsure.topics.crps import crps_samples
from howsure.topics.scores import MIN_MEMBERS_BEYOND, pinball_loss, pinball_samples

_WHOLE = "of the whole distribution"
# Levels such as 1 − .9 − .05 are off by 10⁻¹⁷; nobody states more than nine digits.
_DIGITS_OF_LEVELS = 9


@frozen(eq=False)
class Shared:
    """A score in common with its row scores, by the models' places, and who is left out, why."""

    score: SharedScore
    rows: dict[int, FloatArray]
    left_out: dict[int, str] = field(default_factory=dict)


def meaning(evaluation: Evaluation, metric: str, coverage: float, *, fair: bool = True) -> str:
    """What a measure of a model tells of, in words; the same words for what may be compared.

    `fair` says that ensembles are scored as the distribution behind their members.
    """
    law, members = (
        evaluation.view.find_prediction(Distribution),
        evaluation.view.find_prediction(Samples),
    )
    table, entry = evaluation.view.find_prediction(Quantiles), catalogue()[metric]
    if metric == "crps" and law is not None:
        return _WHOLE
    if metric == "crps" and members is not None:
        return _WHOLE if fair and members.size > 1 else f"of {members.described()}"
    if metric == "weighted_interval_score":
        many = evaluation.view.find_prediction(Intervals)
        if many is not None and len(many.coverages) > 1:
            return f"at coverages {', '.join(f'{c:g}' for c in many.coverages)}"
    if metric in ("crps", "pinball", "weighted_interval_score") and table is not None:
        return f"at {levels_in_words(table.levels)}"
    if metric == "log_score" and evaluation.view.find_prediction(Probabilities) is not None:
        return "of class probabilities"
    if metric == "log_score" and law is not None:
        return "of probabilities" if law.discrete else "of densities"
    if entry.question is Question.POINT:
        return _functional(evaluation)
    if not entry.per_coverage:
        return ""
    source = next(
        (record.source for record in evaluation.records if record.key == Key.of(metric, coverage)),
        "",
    )
    if source == Samples.kind and members is not None:
        return f"between ranks of {members.described()}"
    if source == Quantiles.kind and table is not None:
        ends = {round(level, _DIGITS_OF_LEVELS) for level in tail_levels(coverage)}
        if not ends <= set(_rounded(table.own_levels)):
            return f"interpolated between {levels_in_words(table.levels)}"
    return ""


def row_scores(evaluation: Evaluation, metric: str, coverage: float) -> FloatArray | None:
    """The row scores of a measure as they are compared: those of ensembles are fair."""
    rows = evaluation.row_scores(metric, coverage)
    if rows is None or metric != "crps":
        return None if rows is None else rows.astype(np.float64)
    if not _has_ensemble(evaluation) or evaluation.view.prediction(Samples).size < 2:
        return rows.astype(np.float64)
    fair = evaluation.row_scores("crps_fair", math.nan)
    if fair is not None:
        return fair
    return crps_samples(evaluation.evalset.y, evaluation.view.prediction(Samples).sorted_samples)


def shared_by_all(evaluations: Sequence[Evaluation], *, fair: bool = True) -> Shared | None:
    """The finest score that all models have in common; None where they have none.

    Unless `fair`, quantiles of an ensemble are scored as they are, not as those of a distribution.
    """
    return next(all_shared(evaluations, fair=fair), None)


def all_shared(evaluations: Sequence[Evaluation], *, fair: bool = True) -> Iterator[Shared]:
    """Every score that all models have in common, the finest first."""
    for score in _candidates(evaluations, fair=fair):
        rows = {}
        for model, evaluation in enumerate(evaluations):
            scores = scored(evaluation, score, fair=fair)
            if isinstance(scores, str):
                break
            rows[model] = scores
        else:
            yield Shared(score, rows)


def shared_by_most(evaluations: Sequence[Evaluation]) -> Shared | None:
    """The finest score of all models, else of as many as possible; None where no two have one."""
    by_all = shared_by_all(evaluations)
    if by_all is not None:
        return by_all
    best: Shared | None = None
    for score in _candidates(evaluations, some=True):
        scores = {model: scored(evaluation, score) for model, evaluation in enumerate(evaluations)}
        rows = {model: each for model, each in scores.items() if not isinstance(each, str)}
        if len(rows) > max(1, 0 if best is None else len(best.rows)):
            left_out = {model: each for model, each in scores.items() if isinstance(each, str)}
            best = Shared(score, rows, left_out)
    return best


def _candidates(
    evaluations: Sequence[Evaluation], *, some: bool = False, fair: bool = True
) -> list[SharedScore]:
    """Scores to try, the finest first: laws, own quantiles, levels in common, points.

    For all models a level must be one that each may answer; for `some`, each model's own levels
    are a candidate as well.
    """
    ensembles = any(_has_ensemble(evaluation) for evaluation in evaluations)
    stated_levels = dict.fromkeys(levels for found in evaluations if (levels := _stated(found)))
    every = sorted({level for levels in stated_levels for level in levels} or _tails(evaluations))
    common = [
        level for level in every if all(_reaches(found, level, fair) for found in evaluations)
    ]
    sets = [tuple(common)] if common else []
    if some:
        sets += sorted(stated_levels, key=len, reverse=True)
    if all(found.view.find_prediction(Probabilities) is not None for found in evaluations):
        return [SharedScore("log_score"), SharedScore("brier")]
    return [
        SharedScore("crps", how=_FAIR if ensembles else ""),
        *(
            SharedScore("crps", levels=levels, how=f"at {levels_in_words(levels)}")
            for levels in stated_levels
        ),
        *(_at_levels(levels) for levels in dict.fromkeys(sets)),
        *(SharedScore("mae", how=of) for of in dict.fromkeys(map(_functional, evaluations)) if of),
        SharedScore("mae", how=_MEDIANS),
    ]


_FAIR = "fair: of the distribution behind an ensemble's members"
_MEDIANS = "of the point given, or of the median"


def _tails(evaluations: Sequence[Evaluation]) -> tuple[float, ...]:
    """The levels that bound the interval of the headline coverage."""
    coverage = evaluations[0].view.headline
    return () if math.isnan(coverage) else tail_levels(coverage)


def _at_levels(levels: tuple[float, ...]) -> SharedScore:
    """The interval score where the levels bound one central interval, else the pinball loss."""
    how = f"at {levels_in_words(levels)}, which all state"
    if len(levels) == 2 and abs(sum(levels) - 1.0) < 10.0**-_DIGITS_OF_LEVELS:
        return SharedScore(
            "interval_score", round(levels[1] - levels[0], _DIGITS_OF_LEVELS), levels, how
        )
    return SharedScore("pinball", levels=levels, how=how)


def scored(evaluation: Evaluation, score: SharedScore, *, fair: bool = True) -> FloatArray | str:
    """The row scores of a model, or why it has none."""
    try:
        rows = _rows_of(evaluation, score, fair)
    except UnanswerableError as error:
        return str(error)
    if not np.isfinite(rows).all():
        return "some rows have an infinite score"
    return rows


def _rows_of(evaluation: Evaluation, score: SharedScore, fair: bool) -> FloatArray:
    if score.metric == "crps":
        rows = row_scores(evaluation, "crps", math.nan)
        wanted = f"at {levels_in_words(score.levels)}" if score.levels else _WHOLE
        if rows is None or meaning(evaluation, "crps", math.nan, fair=fair) != wanted:
            raise UnanswerableError(f"it gives {offered(evaluation)}")
        return rows
    if score.metric in ("log_score", "brier"):
        table, codes = evaluation.view.get("class_table"), evaluation.view.get("class_codes")
        return log_loss(table, codes) if score.metric == "log_score" else brier_score(table, codes)
    if score.metric == "mae":
        return _point_errors(evaluation, score.how, fair)
    if not all(_reaches(evaluation, level, fair) for level in score.levels):
        raise UnanswerableError(f"it gives {offered(evaluation)}")
    total = sum(_pinball_at(evaluation, level, fair) for level in score.levels)
    if score.metric == "interval_score":
        return np.asarray(total * 2.0 / (1.0 - score.coverage))
    return np.asarray(total / len(score.levels))


def _point_errors(evaluation: Evaluation, how: str, fair: bool) -> FloatArray:
    if how != _MEDIANS:
        rows = row_scores(evaluation, "mae", math.nan)
        if rows is None or _functional(evaluation) != how:
            raise UnanswerableError(f"it gives {offered(evaluation)}")
        return rows
    if evaluation.evalset.point is not None:
        return np.asarray(np.abs(evaluation.evalset.y - evaluation.evalset.point))
    if not _reaches(evaluation, 0.5, fair):
        raise UnanswerableError(f"it gives {offered(evaluation)}")
    return 2.0 * _pinball_at(evaluation, 0.5, fair)


def _pinball_at(evaluation: Evaluation, level: float, fair: bool) -> FloatArray:
    """The pinball loss of a level that the model reaches, by the kind that states it best."""
    y = evaluation.evalset.y
    law, members = (
        evaluation.view.find_prediction(Distribution),
        evaluation.view.find_prediction(Samples),
    )
    if law is not None:
        return pinball_loss(y, law.quantile([level])[:, 0], level=level)
    for prediction in (
        evaluation.view.find_prediction(Quantiles),
        evaluation.view.find_prediction(Intervals),
    ):
        if prediction is not None and level in _own_levels(prediction):
            if isinstance(prediction, Quantiles):
                return pinball_loss(y, prediction.quantile([level])[:, 0], level=level)
            side = min(level, 1.0 - level)
            lower, upper = prediction.interval(round(1.0 - 2.0 * side, _DIGITS_OF_LEVELS))
            end = lower if level < 0.5 else upper
            if not np.isfinite(end).all():
                raise UnanswerableError("some of its intervals are unbounded")
            return pinball_loss(y, end, level=level)
    assert members is not None
    if not fair:
        return pinball_loss(y, members.quantile([level])[:, 0], level=level)
    return pinball_samples(y, members.sorted_samples, level=level)


def _reaches(evaluation: Evaluation, level: float, fair: bool) -> bool:
    """Whether the model states a quantile at the level, so that nothing need be interpolated."""
    for prediction in evaluation.evalset.predictions:
        beyond = (prediction.draws + 1) * min(level, 1.0 - level)
        if level in _own_levels(prediction):
            return True
        if _is_free(prediction) and (
            not prediction.draws or beyond >= (MIN_MEMBERS_BEYOND if fair else 1.0)
        ):
            return True
    return False


def _stated(evaluation: Evaluation) -> tuple[float, ...]:
    """The levels that a model is bound to; none where it may be asked for any."""
    if any(map(_is_free, evaluation.evalset.predictions)):
        return ()
    every = {
        level for prediction in evaluation.evalset.predictions for level in _own_levels(prediction)
    }
    return tuple(sorted(every))


def _is_free(prediction: Prediction) -> bool:
    """Whether it may be asked for a quantile at any level."""
    return prediction.answers("quantile") and not prediction.own_levels


def _own_levels(prediction: Prediction) -> tuple[float, ...]:
    return _rounded(prediction.own_levels)


def offered(evaluation: Evaluation) -> str:
    """What a model gives, in words."""
    words = [prediction.described() for prediction in evaluation.evalset.predictions]
    if evaluation.evalset.point is not None:
        words.append("a point forecast")
    return " and ".join(words)


def _functional(evaluation: Evaluation) -> str:
    """Which point of the prediction the errors of the point are of; "" where there is none."""
    if evaluation.evalset.point is not None:
        return "of the mean"
    try:
        evaluation.view.get("point")
    except UnanswerableError:
        return ""
    answered = evaluation.view.answered("point")
    if answered is None or not answered.point_is:
        return ""
    members = f" of {answered.described()}" if answered.draws else ""
    return f"of the {answered.point_is}{members}"


def _has_ensemble(evaluation: Evaluation) -> bool:
    return (
        evaluation.view.find_prediction(Distribution) is None
        and evaluation.view.find_prediction(Samples) is not None
    )


@cache
def _rounded(levels: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(round(level, _DIGITS_OF_LEVELS) for level in levels)
