"""Scorers: a fitted estimator is asked what it can say, and that is measured in one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier

from howsure.core.arrays import FloatArray, as_vector, check_fraction, check_levels
from howsure.core.classes import frozen
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Direction
from howsure.engine.catalogue import catalogue, metric_named
from howsure.engine.measure import evaluate
from howsure.inputs.classes import label_text
from howsure.inputs.given import PredictionInput
from howsure.predictions import EvalSet, Prediction, Probabilities, Quantiles
from howsure.report.model import ask_model


@final
@frozen
class MetricScorer:
    """Any measure of the catalogue as a scorer, ``scorer(estimator, X, y)``; greater is better.

    Where less is better, the score is the measure times −1. Where a target is best, such as the
    nominal coverage, it is −|value − target|.

    Parameters
    ----------
    metric : str
        A name of the catalogue, or what else the field calls it.
    coverage : float
        Nominal coverage of the intervals asked for, where the measure is of intervals.
    levels : sequence of float, optional
        Levels of quantiles to score the prediction at, rising. What a quantile regressor predicts
        is taken for the quantile at this one level.

    Raises
    ------
    InputError
        If there is no such measure, it only describes, or it needs more than y and a prediction;
        or if the coverage or a level is not strictly between 0 and 1. Of a call: if the estimator
        does not say what the measure needs.

    Notes
    -----
    An estimator is asked as `howsure.assess_model` asks it, pipelines and searches too.
    A call takes ``sample_weight``, shape (n,): how much each row counts.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> y = X[:, 0] + rng.normal(size=200)
    >>> cross_val_score(BayesianRidge(), X, y, scoring=MetricScorer("winkler"), cv=2).round(1)
    array([-5.1, -4.2])
    """

    metric: str
    coverage: float = 0.9
    levels: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        named = metric_named(self.metric)
        if named.direction is Direction.NONE:
            raise InputError(f"metric must have a direction (better or worse), got {self.metric!r}")
        if named.beside or not named.forms:
            raise InputError(f"metric must need only y and a prediction, got {self.metric!r}")
        object.__setattr__(self, "metric", named.name)
        object.__setattr__(self, "coverage", check_fraction(self.coverage, "coverage"))
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(check_levels(self.levels, "levels").tolist()))

    def __call__(
        self, estimator: Any, X: Any, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        """The score of a fitted estimator at X."""
        metric = catalogue()[self.metric]
        stated = self._at_levels(
            ask_model(
                estimator,
                X,
                len(y),  # type: ignore[arg-type]
                y=None if is_classifier(estimator) else as_vector(y, "y"),
                coverages=(self.coverage,) if metric.per_coverage else (),
                levels=None if self.levels is None else np.array(self.levels),
                called="estimator",
            )
        )
        rows = EvalSet.checked(
            _as_numbers(y, stated),
            stated.predictions,
            point=stated.point,
            weights=sample_weight,
            weights_kind="importance",
        )
        evaluation = evaluate(
            rows, coverages=(self.coverage,), metrics=[metric.name], slow=[metric.name]
        )
        record = next(entry for entry in evaluation.records if not entry.group)
        if math.isnan(record.value):
            title = type(estimator).__name__
            raise InputError(
                f"estimator {title} does not predict what {self.metric} needs: {record.reason}"
            )
        if metric.direction is Direction.HIGHER:
            return record.value
        if metric.direction is Direction.LOWER:
            return -record.value
        return -abs(record.value - metric.target_at(self.coverage))

    def _at_levels(self, stated: PredictionInput) -> PredictionInput:
        """A prediction as quantiles at the levels asked for."""
        if self.levels is None:
            return stated
        if not stated.predictions:
            raise InputError("estimator must predict quantiles for levels=, got a point forecast")
        return replace(stated, predictions=(_quantiles(stated.predictions[0], self.levels),))


def _as_numbers(y: npt.ArrayLike, stated: PredictionInput) -> FloatArray:
    """Outcomes; labels as numbers of the classes."""
    for prediction in stated.predictions:
        if isinstance(prediction, Probabilities):
            number = {name: code for code, name in enumerate(prediction.names)}
            labels = list(map(label_text, np.asarray(y).tolist()))
            if strange := sorted({*labels} - {*number}):
                raise InputError(f"y must contain classes of the estimator, got {strange[0]!r}")
            return np.array([number[label] for label in labels], dtype=np.float64)
    return as_vector(y, "y")


def _quantiles(prediction: Prediction, levels: tuple[float, ...]) -> Quantiles:
    try:
        return Quantiles(levels, prediction.quantile(levels))
    except UnanswerableError as error:
        raise InputError(f"estimator must predict quantiles at levels={levels}: {error}") from error


def interval_score(*, coverage: float = 0.9) -> MetricScorer:
    """Minus the mean interval (Winkler) score, `howsure.metrics.interval_score`.

    Parameters
    ----------
    coverage : float
        Nominal coverage of the central intervals.

    Returns
    -------
    MetricScorer
        In the units of y, at most 0.

    Examples
    --------
    >>> interval_score(coverage=0.8)
    MetricScorer(metric='interval_score', coverage=0.8)
    """
    return MetricScorer("interval_score", coverage)


def crps() -> MetricScorer:
    """Minus the mean CRPS of distributions or samples, or its approximation by quantiles.

    Returns
    -------
    MetricScorer
        In the units of y, at most 0.

    Examples
    --------
    >>> from sklearn.linear_model import BayesianRidge
    >>> x, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0.1, 0.9, 2.1, 2.9]
    >>> round(crps()(BayesianRidge().fit(x, y), x, y), 3)
    -0.054
    """
    return MetricScorer("crps")


def pinball(*, levels: Sequence[float] | None = None) -> MetricScorer:
    """Minus the mean pinball loss over rows and levels, `howsure.metrics.pinball_loss`.

    Parameters
    ----------
    levels : sequence of float, optional
        Levels of the quantiles, rising; those of the prediction if omitted. What a quantile
        regressor predicts is then scored at its own level.

    Returns
    -------
    MetricScorer
        In the units of y, at most 0.

    Examples
    --------
    >>> pinball(levels=[0.1, 0.9]).levels
    (0.1, 0.9)
    """
    return MetricScorer("pinball", levels=None if levels is None else tuple(levels))


def log_score() -> MetricScorer:
    """The mean log density, or log probability of a count, at y.

    Returns
    -------
    MetricScorer
        In nats: the log likelihood of a row.

    Examples
    --------
    >>> log_score().metric
    'log_score'
    """
    return MetricScorer("log_score")


def miscoverage(*, coverage: float = 0.9) -> MetricScorer:
    """Minus the gap between empirical and nominal coverage, −|empirical − nominal|.

    It is no proper score: intervals as wide as all of y, of the right share of rows, score 0.
    Choose between models by `interval_score`, and look at this beside it.

    Parameters
    ----------
    coverage : float
        Nominal coverage of the central intervals.

    Returns
    -------
    MetricScorer
        At most 0, where the coverage is met.

    Examples
    --------
    >>> miscoverage().metric
    'empirical_coverage'
    """
    return MetricScorer("empirical_coverage", coverage)
