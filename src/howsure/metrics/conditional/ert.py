"""Excess risk of the target coverage (ERT): can anything predict who is missed?

A model with conditional coverage misses at random: no classifier, however good, then forecasts
coverage better than the constant 1 − α. How much better one does on rows that it has not seen
bounds from below how far the conditional coverage strays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, as_vector, check_fraction
from howsure.core.brief import brief_repr
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.metrics.conditional.forests import (
    DRAWS,
    FEWEST_PER_FOLD,
    Smoother,
    chance_elsewhere,
    check_model,
    folds_of,
    tree_inputs,
)
from howsure.metrics.conditional.regions import Region, region_of, tree_parts
from howsure.metrics.conditional.rows import Problem, as_claimed, as_covered, as_problem
from howsure.stats.estimate import Estimate

Loss = Literal["squared", "absolute", "log"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ERT:
    """Outcome of `ert`.

    Attributes
    ----------
    squared, absolute, log : Estimate
        By each loss, as `excess_risk` tells.
    probability : ndarray of float, shape (n,)
        Cross-fitted chance that each row is covered, in the order of the rows given.
    region : Region or None
        Where it is worst: the part of `parts` whose chances, learnt on one half of the rows, lie
        farthest from the target.
    parts : tuple of Region
        Leaves of a shallow tree on those chances, the worst first, judged on the other half.
    """

    squared: Estimate
    absolute: Estimate
    log: Estimate
    probability: FloatArray
    region: Region | None = None
    parts: tuple[Region, ...] = ()

    __repr__ = brief_repr


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
    if classifier is not None:
        check_model(classifier, "predict_proba", "classifier")
    check_whole(replicates, "replicates", 0)
    fold = folds_of(problem.n, folds)
    reason = ""
    if problem.n < FEWEST_PER_FOLD * folds:
        reason = f"{folds} folds need at least {FEWEST_PER_FOLD * folds} rows, got {problem.n}"
    elif np.ptp(problem.x, axis=0).max() == 0:
        reason = "no input varies"
    if reason:
        none = Estimate(math.nan, reason=reason, n=problem.n)
        unknown = np.full(problem.n, np.nan)
        return ERT(squared=none, absolute=none, log=none, probability=unknown)
    if classifier is None:
        held = replace(problem, x=tree_inputs(problem.x)[0])
        chance, drawn = _smoothed(held, fold, replicates or DRAWS, seed)
    else:
        held = problem
        chance = _cross_fitted(classifier, held.x, held.covered, fold)
        drawn = _simulated(classifier, held, fold, replicates, seed)
    parts = _parts(classifier, problem, held.x, level)
    squared, absolute, log = (
        _beside(
            excess_risk(problem.covered, chance, problem.coverage, loss, level),
            drawn.get(loss),
            parts[0],
        )
        for loss in _LOSSES
    )
    given = np.empty(problem.n)
    given[problem.order] = chance
    return ERT(
        squared=squared,
        absolute=absolute,
        log=log,
        probability=given,
        region=parts[0],
        parts=parts,
    )


def excess_risk(
    covered: npt.ArrayLike,
    chance: npt.ArrayLike,
    coverage: float | npt.ArrayLike,
    loss: Loss = "squared",
    confidence: float = 0.95,
) -> Estimate:
    """How much better known chances forecast coverage than the target does.

    Parameters
    ----------
    covered : array-like of shape (n,)
        c_i: whether each row was covered.
    chance : array-like of shape (n,)
        h_i: chance that it is covered, in [0, 1], learnt from other rows; strictly inside for
        the log loss.
    coverage : float or array-like of shape (n,)
        The target 1 − α, in (0, 1), or what each row claims, in [0, 1].
    loss : {"squared", "absolute", "log"}
        How forecasts are judged.
    confidence : float
        Of the interval.

    Returns
    -------
    Estimate
        Negative where the chances are worse than the constant. Its null is 0, which the mean over
        models with conditional coverage does not exceed; p is by the normal limit, one-sided
        (twice that for the absolute loss, as the folds agree on a sign). Details hold the parts
        of the rows that are thought covered less (``under``) and more (``over``) than the target,
        which sum to the value, and their standard errors.

    Raises
    ------
    InputError
        If an argument leaves its domain or lengths differ.

    Notes
    -----
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
        raise InputError(f"chance must lie in {domain}, got {h.min():g} to {h.max():g}")
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
    return np.asarray(np.square(target - c) - np.square(h - c))


def _absolute(c: FloatArray, h: FloatArray, target: FloatArray) -> FloatArray:
    return np.asarray(np.sign(h - target) * (c - target))


def _log(c: FloatArray, h: FloatArray, target: FloatArray) -> FloatArray:
    edge = 0.5 / len(c)  # a claim of certainty costs no more than half a row in all
    target = np.clip(target, edge, 1 - edge) if len(c) > 1 else target
    return np.asarray(np.where(c == 1, np.log(h / target), np.log1p(-h) - np.log1p(-target)))


_LOSSES: dict[Loss, Callable[[FloatArray, FloatArray, FloatArray], FloatArray]] = {
    "squared": _squared,
    "absolute": _absolute,
    "log": _log,
}


def _mean(scores: FloatArray) -> tuple[float, float]:
    error = float(scores.std(ddof=1)) / math.sqrt(len(scores)) if len(scores) > 1 else math.nan
    return float(scores.mean()), error


def _smoothed(
    problem: Problem, fold: npt.NDArray[np.int64], replicates: int, seed: int
) -> tuple[FloatArray, dict[Loss, FloatArray]]:
    """Chances by the default forest, and excess risks of models that cover as they claim."""
    smoother, claimed, edge = Smoother(problem.x, fold), problem.coverage[:, None], 0.5 / problem.n

    def chances(covered: BoolArray) -> FloatArray:
        local = smoother(covered - claimed).astype(np.float64)
        return np.asarray(np.clip(claimed + local, edge, 1 - edge))

    rng, step = child(seed, "ert null"), smoother.per_pass()
    drawn: dict[Loss, list[FloatArray]] = {loss: [] for loss in _LOSSES}
    for start in range(0, replicates, step):
        lucky = rng.random((problem.n, min(step, replicates - start))) < claimed
        found = chances(lucky)
        for loss, risk in _LOSSES.items():
            drawn[loss].append(risk(lucky.astype(np.float64), found, claimed).mean(axis=0))
    known = {loss: np.concatenate(parts) for loss, parts in drawn.items()}
    return chances(problem.covered[:, None])[:, 0], known


def _cross_fitted(
    classifier: Any, x: FloatArray, covered: BoolArray, fold: npt.NDArray[np.int64]
) -> FloatArray:
    """Chance of each row by the rows of the other folds."""
    chance = np.empty(len(x))
    for number in range(int(fold.max()) + 1):
        here = fold == number
        chance[here] = chance_elsewhere(classifier, x[~here], covered[~here], x[here])
    return chance


def _simulated(
    classifier: Any, problem: Problem, fold: npt.NDArray[np.int64], replicates: int, seed: int
) -> dict[Loss, FloatArray]:
    """Excess risks of models with conditional coverage, with all their fits."""
    drawn: dict[Loss, list[float]] = {loss: [] for loss in _LOSSES}
    for number in range(replicates):
        lucky = child(seed, "ert null", number).random(problem.n) < problem.coverage
        chance = _cross_fitted(classifier, problem.x, lucky, fold)
        for loss, values in drawn.items():
            values.append(excess_risk(lucky, chance, problem.coverage, loss).value)
    return {loss: np.array(values) for loss, values in drawn.items() if values}


def _beside(found: Estimate, drawn: FloatArray | None, worst: Region) -> Estimate:
    """The excess risk with the worst part, and its simulated null where there is one."""
    found = replace(found, details={**found.details, "where": worst.where})
    if drawn is None:
        return found
    return replace(
        found,
        null=float(drawn.mean()),
        null_lower=float(np.quantile(drawn, 0.025)),
        null_upper=float(np.quantile(drawn, 0.975)),
        p=float((1 + np.count_nonzero(drawn >= found.value)) / (1 + len(drawn))),
    )


def _parts(
    classifier: Any, problem: Problem, inputs: FloatArray, confidence: float
) -> tuple[Region, ...]:
    """Parts of the inputs that one half of the rows tells apart, judged on the other half."""
    half = problem.n // 2
    chance = chance_elsewhere(classifier, inputs[:half], problem.covered[:half], inputs)
    part, words = tree_parts(problem.x, chance, problem.names)
    off = chance - problem.coverage
    learnt = {leaf: abs(float(off[part == leaf].mean())) for leaf in words}
    regions = []
    for leaf in sorted(words, key=lambda leaf: (-learnt[leaf], leaf)):
        first = problem.covered[:half][part[:half] == leaf]
        region = region_of(
            words[leaf],
            part[half:] == leaf,
            problem.covered[half:],
            problem.coverage[half:],
            found=float(first.mean()) if len(first) else math.nan,
            confidence=confidence,
        )
        regions.append(region)
    return tuple(regions)
