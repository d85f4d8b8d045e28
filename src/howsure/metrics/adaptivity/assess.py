"""The adaptivity of one model, by everything that is known of its rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import as_vector
from howsure.core.errors import InputError, UnanswerableError
from howsure.metrics.adaptivity.results import Resampling
from howsure.metrics.adaptivity.view import BINS
from howsure.metrics.catalogue import catalogue
from howsure.metrics.measure import Evaluation, evaluate
from howsure.metrics.metric import Question
from howsure.metrics.view import View, choose_coverages
from howsure.predictions import EvalSet, LabelSets

_DEFAULT = Resampling()


def assess_adaptivity(
    held: EvalSet,
    *,
    ease: npt.ArrayLike | str | None = None,
    scores: npt.ArrayLike | None = None,
    coverage: float | None = None,
    bins: int = BINS,
    resampling: Resampling = _DEFAULT,
) -> Evaluation:
    """Every measure of adaptivity that the content permits.

    Parameters
    ----------
    held : EvalSet
        With label sets, or with what gives intervals.
    ease : array-like of shape (n,) or str, optional
        Ease of each row, or the name of the feature that holds it. Without it the measures by
        cells of ease have no answer.
    scores : array-like of shape (n, classes), optional
        Class probabilities beside label sets: they give the rank of the true label.
    coverage : float, optional
        Nominal coverage to judge; the last of `choose_coverages` if omitted.
    bins : int
        Cells by ease, at least 3; at most a fifth of the rows are made.
    resampling : Resampling
        How intervals and floors are drawn.

    Returns
    -------
    Evaluation
        A measure that has no answer is a record of NaN with the reason.

    Raises
    ------
    InputError
        If the ease or the scores do not fit the rows, or there is neither label sets nor
        intervals.

    Notes
    -----
    Difficulty is the rank of the true label, or |y − point forecast|; size is the number of
    labels, or the width.

    Examples
    --------
    >>> from howsure.predictions import Intervals
    >>> rng = np.random.default_rng(0)
    >>> sd = rng.uniform(0.2, 2.0, 600)
    >>> belief = Intervals(-1.645 * sd, 1.645 * sd, coverage=0.9)
    >>> held = EvalSet.checked(rng.normal(0, sd), belief, point=np.zeros(600))
    >>> found = assess_adaptivity(held, ease=-sd, bins=10)
    >>> [record.metric for record in found.records][:3]
    ['t_cv', 't_ss', 'satisfaction_rate']
    >>> found.records[1].value > 0.9
    True
    """
    nominal = choose_coverages(held)[-1] if coverage is None else coverage
    if math.isnan(nominal):
        raise InputError("coverage must be given, as that of the intervals is unknown")
    try:
        View(held).get("covered", nominal)
    except UnanswerableError as error:
        raise InputError(f"held must have label sets or intervals: {error}") from error
    given: dict[str, Any] = {"bins": bins, "resampling": resampling}
    if ease is not None:
        given["ease"] = _ease(held, ease)
    if scores is not None:
        table, sets = np.asarray(scores), View(held).held(LabelSets)
        if sets is None or table.shape != sets.members.shape:
            wanted = "label sets beside it" if sets is None else f"shape {sets.members.shape}"
            raise InputError(f"scores must have {wanted} as the sets have, got {table.shape}")
        given["class_scores"] = table
    return evaluate(
        held,
        coverages=(nominal,),
        metrics=[m.name for m in catalogue().values() if m.question is Question.ADAPTIVITY],
        beside="ease",
        confidence=resampling.confidence,
        seed=resampling.seed,
        given=given,
    )


def _ease(held: EvalSet, ease: npt.ArrayLike | str) -> npt.NDArray[np.float64]:
    if isinstance(ease, str):
        if ease not in held.features:
            known = ", ".join(held.features) or "none"
            raise InputError(f"ease must name a feature ({known}), got {ease!r}")
        return as_vector(held.features[ease], f"feature {ease!r}")
    return as_vector(ease, "ease", length=held.n)
