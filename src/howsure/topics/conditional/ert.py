"""Excess risk of the target coverage (ERT): can anything predict who is missed?

A model with conditional coverage misses at random: no classifier, however good, then forecasts
coverage better than the constant 1 − α. How much better one does on rows that it has not seen
bounds from below how far the conditional coverage strays. The conditional validity index takes
the same chances at their word: how far they lie from 1 − α.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, IntArray, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.stats.estimate import Estimate
from howsure.topics.conditional.forests import (
    DRAWS,
    MIN_ROWS_PER_FOLD,
    Problem,
    Region,
    Smoother,
    add_null,
    as_claimed,
    as_covered,
    as_problem,
    chance_elsewhere,
    check_model,
    folds_of,
    judge_parts,
    tree_inputs,
    tree_parts,
)

Loss = Literal["squared", "absolute", "log"]


@frozen(kw_only=True, eq=False)
class ERT:
    """Outcome of `ert`.

    Attributes
    ----------
    squared, absolute, log : Estimate
        By each loss, as `excess_risk` tells.
    probability : ndarray of float, shape (n,)
        Cross-fitted chance that each row is covered, in the order of the rows given.
    region : Region or None
        Where it is worst: the part of `parts` whose chances, fitted on one half of the rows, lie
        farthest below the target.
    parts : tuple of Region
        Leaves of a shallow tree on those chances, the worst first, judged on the other half.
    validity : Estimate
        The index of `conditional_validity_index`, without tolerance.
    """

    squared: Estimate
    absolute: Estimate
    log: Estimate
    probability: FloatArray
    validity: Estimate
    region: Region | None = None
    parts: tuple[Region, ...] = ()


def ert(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    classifier: Any = None,
    folds: int = 5,
    replicates: int = 0,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> ERT:
    """Excess risk of the target coverage, cross-fitted; 0 or less is best.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    x : array-like of shape (n, d)
        Inputs; finite.
    coverage : float or array-like of shape (n,)
        The target 1 − α, in (0, 1), or what each row claims, in [0, 1].
    classifier : scikit-learn classifier, optional
        Or a pipeline; anything that can be cloned and has ``predict_proba``. If omitted, 50 trees
        that see the inputs alone and average c_i − p_i in their leaves.
    folds : int
        Parts that the rows are cut into; each is forecast by the others.
    replicates : int
        Models with conditional coverage to simulate for the null. If 0, none with a classifier,
        which is fitted anew each time, and 199 without, which cost no fit.
    names : sequence of str, optional
        Names of the inputs.
    confidence : float
        Of the intervals.
    seed : int
        Fixes folds, halves and simulations.

    Returns
    -------
    ERT
        By the squared and the absolute loss and in nats. NaN with a reason where a fold holds
        fewer than ten rows, or no input varies.

    Raises
    ------
    InputError
        If an argument leaves its domain, lengths differ, or the classifier lacks a method.

    Notes
    -----
    See `excess_risk` for the formulas. Without a classifier h_i = p_i + Σ_j s_ij (c_j − p_j) with
    weights s_ij that no c decides, so the null and p, of c_i drawn with p_i, are those of this
    very measure. Rows must be independent. Source: S. Braun, D. Holzmüller, M. I. Jordan and
    F. Bach (2025, arXiv:2512.11779).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> chance = np.where(x[:, 0] > 1, 0.5, 0.97)
    >>> found = ert(rng.random(2000) < chance, x, coverage=0.9, names=["age", "dose"])
    >>> float(np.mean((chance - 0.9) ** 2)), found.squared.value
    (0.029, 0.025)
    >>> found.region.where
    'age > 1.277'
    """
    problem = as_problem(covered, x, coverage, names, seed)
    level = check_fraction(confidence, "confidence")
    fold = _checked(problem, classifier, folds, replicates)
    if isinstance(fold, str):
        none = Estimate(math.nan, reason=fold, n=problem.n)
        unknown = np.full(problem.n, np.nan)
        return ERT(squared=none, absolute=none, log=none, probability=unknown, validity=none)
    scores = {"validity": _gap, **{str(loss): score for loss, score in _LOSSES.items()}}
    learnt = _learnt(classifier, problem, fold, replicates, seed, scores)
    parts = _parts(classifier, problem, learnt.x, level)
    where = parts[0].where

    def finish(estimate: Estimate, name: str) -> Estimate:
        estimate = replace(estimate, details={**estimate.details, "where": where})
        return add_null(estimate, learnt.drawn.get(name))

    squared, absolute, log = (
        finish(excess_risk(problem.covered, learnt.chance, problem.coverage, loss, level), loss)
        for loss in _LOSSES
    )
    probability = np.empty(problem.n)
    probability[problem.order] = learnt.chance
    return ERT(
        squared=squared,
        absolute=absolute,
        log=log,
        probability=probability,
        validity=finish(_validity(problem, learnt, 0.0, level), "validity"),
        region=parts[0],
        parts=parts,
    )


def conditional_validity_index(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    tolerance: float = 0.0,
    classifier: Any = None,
    folds: int = 5,
    replicates: int = 0,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Conditional validity index (CVI): mean distance of estimated coverage from the target.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    x : array-like of shape (n, d)
        Inputs; finite.
    coverage : float or array-like of shape (n,)
        The target 1 − α, in (0, 1), or what each row claims, in [0, 1].
    tolerance : float
        γ, in [0, 1): chances within (1 ± γ)(1 − α) count as right. At 0 none is left out.
    classifier, folds, replicates, confidence, seed
        As for `ert`; the classifier is the reliability estimator.

    Returns
    -------
    Estimate
        In [0, 1]; lower is better. Details hold its two parts, which sum to the value:
        ``under`` (undercoverage risk) and ``over`` (overcoverage cost). Each is the share of rows
        (``share_under``, ``share_over``) times their mean distance (``mean_under``,
        ``mean_over``). The null is the value expected under exact conditional validity, which is
        above 0; p is the share of such models with an index as large. NaN with a reason as `ert`.

    Raises
    ------
    InputError
        If an argument leaves its domain, lengths differ, or the classifier lacks a method.

    Notes
    -----
    CVI = mean |h_i − (1−α)| = π₋ · mean of (1−α) − h over the rows with h < (1−γ)(1−α), plus
    π₊ · mean of h − (1−α) over those with h > (1+γ)(1−α), with h cross-fitted chances of cover.
    Chances estimated from n rows deviate by chance, so that a model with conditional coverage
    has an index above 0; it has no direction to fall in. Corrected for that to first order, it is
    the absolute excess risk of `ert`: |h−(1−α)| + sign(h−(1−α))·(c−h) =
    sign(h−(1−α))·(c−(1−α)). The standard error counts how each c moves the chances: exactly
    without a classifier, to first order with one. For a model with conditional coverage it is
    some 45 % too large; those of the two parts are right there too.

    Source: Z. Zhou, X. Zhang, C. Tao and Y. Yang, Conformal prediction assessment (2026,
    arXiv:2603.27189), of which the abstract alone was at hand. The formula is that of the package
    insurance-conformal 1.3.2 (γ = 0.1) and of its author's account of the paper (γ = 0), and
    whether the paper has a tolerance could not be checked. The package learns with boosted trees
    and isotonic regression.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> chance = np.where(x[:, 0] > 1, 0.5, 0.97)
    >>> found = conditional_validity_index(rng.random(2000) < chance, x, coverage=0.9)
    >>> float(np.mean(np.abs(chance - 0.9))), found.value, found.null
    (0.12, 0.095, 0.022)
    >>> found.details["under"], found.details["over"]
    (0.049, 0.046)
    """
    problem = as_problem(covered, x, coverage, None, seed)
    level = check_fraction(confidence, "confidence")
    if not (math.isfinite(tolerance) and 0.0 <= tolerance < 1.0):
        raise InputError(f"tolerance must be in [0, 1), got {tolerance!r}")
    fold = _checked(problem, classifier, folds, replicates)
    if isinstance(fold, str):
        return Estimate(math.nan, reason=fold, n=problem.n)
    scores = {"validity": partial(_gap, tolerance=tolerance)}
    learnt = _learnt(classifier, problem, fold, replicates, seed, scores)
    return add_null(_validity(problem, learnt, tolerance, level), learnt.drawn.get("validity"))


def excess_risk(
    covered: npt.ArrayLike,
    chance: npt.ArrayLike,
    coverage: float | npt.ArrayLike,
    loss: Loss = "squared",
    confidence: float = 0.95,
) -> Estimate:
    """How much better known chances forecast coverage than the target does.

    Squared: mean of (1−α−c_i)² − (h_i−c_i)². Absolute: mean of sign(h_i−(1−α))·(c_i−(1−α)).
    Log: mean log-loss of 1−α minus that of h_i, in nats. With p_i the true chances, their
    expectations are E[(p−(1−α))²] − E[(p−h)²], at most E|p−(1−α)|, and E[KL(p‖1−α)] −
    E[KL(p‖h)]; each is largest at h = p. Source: Braun et al. (2025, arXiv:2512.11779).

    Examples
    --------
    >>> excess_risk([1, 0, 1, 1], [0.95, 0.4, 0.95, 0.95], 0.9).value
    0.1681
    """
    hit = as_covered(covered)
    h = as_vector(chance, "chance", length=len(hit))
    nominal, level = as_claimed(coverage, len(hit)), check_fraction(confidence, "confidence")
    if loss not in _LOSSES:
        raise InputError(f"loss must be one of {tuple(_LOSSES)}, got {loss!r}")
    closed = loss != "log"
    if ((h < 0) | (h > 1)).any() or (not closed and ((h == 0) | (h == 1)).any()):
        domain = "[0, 1]" if closed else "(0, 1)"
        raise InputError(f"chance must be in {domain}, got {h.min():g} to {h.max():g}")
    scores = _LOSSES[loss](hit.astype(np.float64), h, nominal)
    value, error = _mean(scores)
    under, under_error = _mean(np.where(h < nominal, scores, 0.0))
    over, over_error = _mean(np.where(h > nominal, scores, 0.0))
    reach = float(special.ndtri((1 + level) / 2)) * error
    tail = float(special.ndtr(-value / error)) if error > 0 else float(value <= 0)
    return Estimate(
        value,
        null=0.0,
        details={
            "under": under,
            "over": over,
            "under_standard_error": under_error,
            "over_standard_error": over_error,
        },
        error=error,
        lower=value - reach,
        upper=value + reach,
        p=min(1.0, 2 * tail) if loss == "absolute" else tail,
        n=len(hit),
    )


def _squared(c: FloatArray, h: FloatArray, target: FloatArray) -> FloatArray:
    return np.square(target - c) - np.square(h - c)


def _absolute(c: FloatArray, h: FloatArray, target: FloatArray) -> FloatArray:
    return np.sign(h - target) * (c - target)


def _log(c: FloatArray, h: FloatArray, target: FloatArray) -> FloatArray:
    edge = 0.5 / len(c)  # a claim of certainty costs no more than half a row in all
    target = np.clip(target, edge, 1 - edge) if len(c) > 1 else target
    return np.where(c == 1, np.log(h / target), np.log1p(-h) - np.log1p(-target))


_LOSSES: dict[Loss, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = {
    "squared": _squared,
    "absolute": _absolute,
    "log": _log,
}


def _mean(scores: FloatArray) -> tuple[float, float]:
    error = float(scores.std(ddof=1)) / math.sqrt(len(scores)) if len(scores) > 1 else math.nan
    return float(scores.mean()), error


def _gap(c: FloatArray, h: FloatArray, target: FloatArray, tolerance: float = 0.0) -> FloatArray:
    """Distance of chances from the target; 0 within the tolerance, whatever c."""
    off = np.abs(h - target)
    return np.where(off > tolerance * target, off, 0.0)


@frozen(eq=False)
class _Learnt:
    """Chances learnt from other rows, and mean scores of models that cover as they claim."""

    x: FloatArray  # shape (n, d): inputs as the classifier sees them
    chance: FloatArray  # shape (n,)
    drawn: dict[str, FloatArray]  # by score, shape (R,)
    smoother: Smoother | None = None  # None beside a classifier


Scores = Mapping[str, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]]


def _checked(problem: Problem, classifier: Any, folds: int, replicates: int) -> IntArray | str:
    """The fold of each row, or why nothing can be learnt of them."""
    if classifier is not None:
        check_model(classifier, "predict_proba", "classifier")
    check_whole(replicates, "replicates", 0)
    fold = folds_of(problem.n, folds)
    if problem.n < MIN_ROWS_PER_FOLD * folds:
        return f"{folds} folds need at least {MIN_ROWS_PER_FOLD * folds} rows, got {problem.n}"
    return "no input varies" if np.ptp(problem.x, axis=0).max() == 0 else fold


def _learnt(
    classifier: Any,
    problem: Problem,
    fold: IntArray,
    replicates: int,
    seed: int,
    scores: Scores,
) -> _Learnt:
    """Chances of coverage, and what right models score by them."""
    if classifier is not None:
        chance = _cross_fitted(classifier, problem.x, problem.covered, fold)
        simulated: dict[str, list[float]] = {name: [] for name in scores}
        for number in range(replicates):
            lucky = child(seed, "ert null", number).random(problem.n) < problem.coverage
            by_luck = _cross_fitted(classifier, problem.x, lucky, fold)
            for name, score in scores.items():
                rows = score(lucky.astype(np.float64), by_luck, problem.coverage)
                simulated[name].append(float(rows.mean()))
        drawn = {name: np.array(means) for name, means in simulated.items() if means}
        return _Learnt(problem.x, chance, drawn)
    inputs = tree_inputs(problem.x)[0]
    smoother, claimed = Smoother(inputs, fold), problem.coverage[:, None]
    edge = 0.5 / problem.n

    def chances(covered: BoolArray) -> FloatArray:
        local = smoother(covered - claimed).astype(np.float64)
        return np.clip(claimed + local, edge, 1 - edge)

    rng, step = child(seed, "ert null"), smoother.per_pass()
    draws = replicates or DRAWS
    parts: dict[str, list[FloatArray]] = {name: [] for name in scores}
    for start in range(0, draws, step):
        lucky = rng.random((problem.n, min(step, draws - start))) < claimed
        chances_by_luck = chances(lucky)
        for name, score in scores.items():
            parts[name].append(
                score(lucky.astype(np.float64), chances_by_luck, claimed).mean(axis=0)
            )
    drawn = {name: np.concatenate(means) for name, means in parts.items()}
    return _Learnt(inputs, chances(problem.covered[:, None])[:, 0], drawn, smoother)


def _cross_fitted(classifier: Any, x: FloatArray, covered: BoolArray, fold: IntArray) -> FloatArray:
    """Chance of each row by the rows of the other folds."""
    chance = np.empty(len(x))
    for number in range(int(fold.max()) + 1):
        here = fold == number
        chance[here] = chance_elsewhere(classifier, x[~here], covered[~here], x[here])
    return chance


def _validity(problem: Problem, learnt: _Learnt, tolerance: float, confidence: float) -> Estimate:
    """The index with its two parts; c moves the chances of its neighbours, and so the error."""
    hit, h, target = problem.covered.astype(np.float64), learnt.chance, problem.coverage
    gap = _gap(hit, h, target, tolerance)
    far = (gap > 0).astype(np.float64)
    below, above = far * (h < target), far * (h > target)

    def moved(side: FloatArray) -> tuple[float, float]:
        """Mean distance of some rows, signed, and its standard error."""
        reach = side if learnt.smoother is None else learnt.smoother.backwards(side)
        return _mean(np.abs(side) * gap + reach * (hit - h))[1], float((np.abs(side) * gap).mean())

    (under_error, under), (over_error, over), (error, value) = (
        moved(side) for side in (-below, above, above - below)
    )
    reach = float(special.ndtri((1 + confidence) / 2)) * error
    shares = float(below.mean()), float(above.mean())
    details: dict[str, str | float] = {
        "under": under,
        "over": over,
        "under_standard_error": under_error,
        "over_standard_error": over_error,
        "share_under": shares[0],
        "share_over": shares[1],
        "mean_under": under / shares[0] if shares[0] else 0.0,
        "mean_over": over / shares[1] if shares[1] else 0.0,
    }
    return Estimate(
        value,
        details={**details, "tolerance": tolerance} if tolerance else details,
        error=error,
        lower=max(value - reach, 0.0),
        upper=min(value + reach, 1.0),
        n=problem.n,
    )


def _parts(
    classifier: Any, problem: Problem, inputs: FloatArray, confidence: float
) -> tuple[Region, ...]:
    """Parts of the inputs that one half of the rows tells apart, judged on the other half."""
    half, claimed = problem.n // 2, problem.coverage
    chance = chance_elsewhere(classifier, inputs[:half], problem.covered[:half], inputs)
    leaf_of_row, words = tree_parts(problem.x, chance, problem.names)
    regions = judge_parts(
        words, leaf_of_row, claimed - chance, problem.covered, claimed, confidence
    )
    return tuple(regions.values())
