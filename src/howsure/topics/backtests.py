"""Tests of value at risk (VaR): does y pass a quantile as often as stated, and independently?

Kupiec's test of the proportion of failures, Christoffersen's of independence, and the two together
(conditional coverage). A quantile's exceedances are its misses. Chi-square laws of their likelihood
ratios are off where misses are few, so p-values are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, as_vector, check_fraction
from howsure.core.errors import DegenerateError, InputError, UnanswerableError
from howsure.core.records import Direction
from howsure.core.weights import check_multiplicities
from howsure.engine.metric import (
    RANGED,
    SHARE,
    Array,
    Form,
    Laws,
    Metric,
    Question,
    Sums,
    Topic,
    statistic,
)
from howsure.engine.view import View
from howsure.stats.binomial import binomial_test
from howsure.stats.estimate import Estimate, weighted_mean
from howsure.stats.moments import Joint

End = Literal["below", "above"]
ENDS: tuple[End, ...] = ("below", "above")
# By which likelihood ratios that are the same may differ, as differences of larger numbers.
_RATIO_ROUNDING = 1e-9
# Expected misses up to which every number and arrangement of them is counted; beyond, the χ² law
# that takes its place is good, and the count slow.
_MAX_EXPECTED_MISSES = 60.0
# Probability of a number of misses that is left out; the sum of all is added to p as if it were as
# extreme.
_NEGLIGIBLE_PROBABILITY = 1e-12


def kupiec_test(
    missed: npt.ArrayLike, *, level: float, weights: npt.ArrayLike | None = None
) -> Estimate:
    """Kupiec's test that y misses a quantile as often as stated (proportion of failures).

    LR = 2 [x log(π/p) + (n − x) log((1 − π)/(1 − p))] with x misses in n rows, π = x/n. Its p-value
    is exact: the probability of all numbers of misses whose LR is as large.

    Parameters
    ----------
    missed : array-like of bool, shape (n,)
        Whether y lies beyond the quantile.
    level : float
        The stated probability p of that, in (0, 1): .05 for both a 5 % and a 95 % quantile.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows; sums are rounded to whole rows.

    Returns
    -------
    Estimate
        The p-value, with LR (``likelihood_ratio``), ``misses`` and ``expected`` among its details.

    Raises
    ------
    InputError
        If the level leaves (0, 1), lengths differ, or an entry is neither true nor false.

    Notes
    -----
    Kupiec (1995), Techniques for verifying the accuracy of risk measurement models, Journal of
    Derivatives 3. LR is χ² with one degree of freedom where misses are many. At 250 rows and a
    level of 1 % that test at 5 % rejects a right model in 9.5 % of all tables, the exact one in
    1.4 %.

    Examples
    --------
    >>> told = kupiec_test([True] * 9 + [False] * 241, level=0.01)
    >>> round(told.details["likelihood_ratio"], 3), round(told.value, 4)
    (10.229, 0.0011)
    """
    seen, _ = _checked(missed)
    w = check_multiplicities(weights, len(seen))
    total = float(len(seen)) if w is None else float(w.sum())
    return _of_share(weighted_mean(seen, w), total, check_fraction(level, "level"))


def christoffersen_test(missed: npt.ArrayLike) -> Estimate:
    """Christoffersen's test that misses do not depend on the miss before (independence).

    LR = 2 [ℓ(n₀₀, n₀₁) + ℓ(n₁₀, n₁₁) − ℓ(n₀₀ + n₁₀, n₀₁ + n₁₁)] with n_ij the times that j follows
    i (1: a miss) and ℓ(a, b) = a log(a/(a + b)) + b log(b/(a + b)). Its p-value is exact: among all
    arrangements of as many misses, the share whose LR is as large.

    Parameters
    ----------
    missed : array-like of bool, shape (n,)
        Whether y lies beyond the quantile, in order of time.

    Returns
    -------
    Estimate
        The p-value, with LR (``likelihood_ratio``), ``misses`` and misses that follow a miss
        (``pairs``) among its details.

    Raises
    ------
    InputError
        If all rows miss, or none, or an entry is neither true nor false.

    Notes
    -----
    Christoffersen (1998), Evaluating interval forecasts, International Economic Review 39. LR is χ²
    with one degree of freedom where misses are many. k misses in r runs, with z runs of the others,
    come in C(k − 1, r − 1) C(n − k − 1, z − 1) ways.

    Examples
    --------
    >>> told = christoffersen_test([0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0])
    >>> round(told.details["likelihood_ratio"], 2), round(told.value, 3)
    (3.04, 0.045)
    """
    seen, n = _checked(missed)
    k = int(seen.sum())
    if not 0 < k < n:
        raise DegenerateError(f"missed must contain misses and others, got {k} misses in {n} rows")
    own = _runs(seen)
    ratio = float(_independence_ratio(n, own)[0])
    sequences, chances = _arrangements(n, [k])
    reached = _as_large(_independence_ratio(n, sequences), ratio)
    return _test(float(chances[reached].sum()), ratio, k, pairs=k - float(own[1][0]))


def christoffersen_coverage_test(missed: npt.ArrayLike, *, level: float) -> Estimate:
    """Christoffersen's test of frequency and independence at once (conditional coverage).

    LR = LR of `kupiec_test` + LR of `christoffersen_test`, the latter 0 without misses. Up to 60
    expected misses its p-value is exact: the probability of all sequences of misses whose LR is as
    large. Beyond it is that of χ² with two degrees of freedom.

    Parameters
    ----------
    missed : array-like of bool, shape (n,)
        Whether y lies beyond the quantile, in order of time.
    level : float
        The stated probability of that, in (0, 1).

    Returns
    -------
    Estimate
        The p-value, with LR (``likelihood_ratio``) and ``misses`` among its details.

    Raises
    ------
    InputError
        If the level leaves (0, 1), or an entry is neither true nor false.

    Notes
    -----
    Christoffersen (1998), International Economic Review 39.

    Examples
    --------
    >>> told = christoffersen_coverage_test([0] * 50 + [1] * 4 + [0] * 46, level=0.05)
    >>> round(told.details["likelihood_ratio"], 2), told.value < 0.001
    (18.14, True)
    """
    seen, n = _checked(missed)
    p, k = check_fraction(level, "level"), int(seen.sum())
    own = _runs(seen)
    ratio = float((_share_ratio(own[0], float(n), p) + _independence_ratio(n, own))[0])
    if n * min(p, 1.0 - p) > _MAX_EXPECTED_MISSES:
        return _test(float(special.chdtrc(2.0, ratio)), ratio, k)
    counts = np.arange(n + 1.0)
    logs = _log_choose(float(n), counts) + special.xlogy(counts, p)
    chances = np.exp(logs + special.xlog1py(n - counts, -p))
    some = np.flatnonzero(chances > _NEGLIGIBLE_PROBABILITY)
    left_out = max(1.0 - float(chances[some].sum()), 0.0)  # as extreme as any
    sequences, shares = _arrangements(n, some.tolist())
    shares = shares * chances[sequences[0].astype(np.int64)]
    joint = _share_ratio(sequences[0], float(n), p) + _independence_ratio(n, sequences)
    return _test(left_out + float(shares[_as_large(joint, ratio)].sum()), ratio, k)


def _checked(missed: npt.ArrayLike) -> tuple[FloatArray, int]:
    """Misses as 1, and the number of rows."""
    seen = as_vector(np.asarray(missed, dtype=np.float64), "missed")
    if not np.isin(seen, (0.0, 1.0)).all():
        raise InputError("missed must be true or false in every row")
    return seen, len(seen)


def _test(p: float, ratio: float, misses: float, **more: float) -> Estimate:
    details = {"likelihood_ratio": float(ratio), "misses": float(misses), **more}
    p = min(p, 1.0)  # but for rounding
    return Estimate(p, p=p, details=details)


def _as_large(ratios: FloatArray, ratio: float) -> BoolArray:
    """Which likelihood ratios are as large as this one; it is a difference of larger numbers."""
    return np.asarray(ratios >= ratio - _RATIO_ROUNDING * max(ratio, 1.0))


def _share_ratio(misses: FloatArray, n: float, p: float) -> FloatArray:
    """Kupiec's likelihood ratio."""
    share = misses / n
    seen = special.xlogy(misses, share / p) + special.xlogy(n - misses, (1.0 - share) / (1.0 - p))
    return np.asarray(np.maximum(2.0 * seen, 0.0))


def _of_share(share: float, total: float, p: float) -> Estimate:
    """Kupiec's test of a share of misses. Its ratio falls up to n p misses and rises from there."""
    n = max(round(total), 1)
    k = min(round(share * total), n)
    ratio = float(_share_ratio(np.array(float(k)), float(n), p))
    least = math.floor(n * p)
    low = _turn(-1, least, n, p, ratio)
    high = _turn(least + 1, n + 1, n, p, ratio)
    chance = float(binomial_test(low, n, p, "less")) if low >= 0 else 0.0
    chance += float(binomial_test(high, n, p, "greater")) if high <= n else 0.0
    return _test(chance, ratio, k, expected=n * p)


def _turn(low: int, high: int, n: int, p: float, ratio: float) -> int:
    """The last number of misses in a falling part, or the first in a rising one, that reaches it.

    `low` is −1 in the falling part, which answers where none does; in the rising one `high`.
    """
    falling = low < 0

    def reaches(count: int) -> bool:
        return bool(_as_large(_share_ratio(np.array(float(count)), float(n), p), ratio))

    if falling:
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if reaches(middle) else (low, middle - 1)
        return low
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    return low


Runs = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""Numbers of misses and of their runs, and whether the first and the last row miss."""


def _runs(seen: FloatArray) -> Runs:
    starts = float(seen[0]) + float((np.diff(seen) > 0).sum())
    known = np.array([seen.sum(), starts, seen[0], seen[-1]])
    return known[0:1], known[1:2], known[2:3], known[3:4]


def _independence_ratio(n: int, sequences: Runs) -> FloatArray:
    """Christoffersen's likelihood ratio of sequences of n rows."""
    misses, runs, first, last = sequences
    starts, stops, stay = runs - first, runs - last, misses - runs  # 01, 10 and 11
    calm = n - 1.0 - stay - starts - stops

    def half(a: FloatArray, b: FloatArray) -> FloatArray:
        total = np.maximum(a + b, 1.0)
        return np.asarray(special.xlogy(a, a / total) + special.xlogy(b, b / total))

    both = half(calm, starts) + half(stops, stay) - half(calm + stops, starts + stay)
    return np.asarray(np.maximum(2.0 * both, 0.0))


def _log_choose(n: npt.ArrayLike, k: npt.ArrayLike) -> FloatArray:
    """log C(n, k), −∞ outside."""
    top, part = np.broadcast_arrays(np.asarray(n, np.float64), np.asarray(k, np.float64))
    inside = (part >= 0.0) & (part <= top)
    m, j = np.where(inside, top, 1.0), np.where(inside, part, 0.0)
    logs = special.gammaln(m + 1.0) - special.gammaln(j + 1.0) - special.gammaln(m - j + 1.0)
    return np.where(inside, logs, -np.inf)


def _arrangements(n: int, misses: Sequence[int]) -> tuple[Runs, FloatArray]:
    """Every kind of sequence with so many misses, and its share of those with as many."""
    parts = []
    for k in misses:
        if k in (0, n):
            parts.append(np.array([[k, float(k > 0), float(k > 0), float(k > 0), 1.0]]))
            continue
        most = min(k, n - k + 1)  # as others part the runs
        runs, first, last = (
            axis.ravel() for axis in np.meshgrid(np.arange(1.0, most + 1.0), [0.0, 1.0], [0.0, 1.0])
        )
        logs = _log_choose(k - 1.0, runs - 1.0)
        logs = logs + _log_choose(n - k - 1.0, runs - first - last)
        shares = np.exp(logs - _log_choose(float(n), float(k)))
        every = np.stack([np.full(len(runs), float(k)), runs, first, last, shares], axis=1)
        parts.append(every[shares > 0.0])
    table = np.concatenate(parts).T
    return (table[0], table[1], table[2], table[3]), table[4]


def _missed(end: End, view: View, coverage: float) -> FloatArray:
    """Whether each y lies beyond an end of its interval."""
    limit = view.get("lower" if end == "below" else "upper", coverage)
    y = view.evalset.y
    return np.asarray(y < limit if end == "below" else y > limit, dtype=np.float64)


def _level(end: End, view: View, coverage: float) -> float:
    """The probability of a miss that predictions state of an end, where it is one number."""
    claims, weights = view.get("claims", coverage)[end], view.evalset.multiplicities
    least, most = (weighted_mean(side, weights) for side in claims.T)
    return _one_level(least, most)


def _one_level(least: float, most: float) -> float:
    if most - least > RANGED:
        raise UnanswerableError("y often equals an end, where quantiles state a range of levels")
    if not 0.0 < least < 1.0:
        raise UnanswerableError(f"the predicted miss rate is {least:g}, which no test can reject")
    return least


def _in_time(end: End, view: View, coverage: float) -> BoolArray:
    """Misses in order of time, one at each."""
    evalset, missed = view.evalset, view.get(f"missed_{end}", coverage)
    if evalset.time is None:
        raise UnanswerableError("the order of rows is unknown: the table has no time")
    if evalset.share < 1.0:
        raise UnanswerableError("the test needs all rows; these are a sample")
    if evalset.weights is not None:
        raise UnanswerableError("weighted rows have no unique order in time")
    order = np.argsort(evalset.time, kind="stable")
    if (evalset.time[order[1:]] == evalset.time[order[:-1]]).any():
        raise UnanswerableError("several rows have the same time, so their order is unknown")
    return np.asarray(missed[order] > 0.0)


def _from_sums(sums: Joint) -> tuple[Estimate, None]:
    """Kupiec's test, of misses and of the least and the most that is stated of them."""
    share, least, most = (float(mean) for mean in sums.mean)
    try:
        return _of_share(share, sums.mass, _one_level(least, most)), None
    except UnanswerableError as error:
        return Estimate(math.nan, reason=str(error)), None


def _columns(end: End, view: View, coverage: float) -> tuple[FloatArray, ...]:
    return (view.get(f"missed_{end}", coverage), *view.get("claims", coverage)[end].T)


_entry = partial(
    Metric,
    question=Question.TAILS,
    direction=Direction.NONE,
    units="p-value",
    standard_normal=math.nan,
    per_coverage=True,
    every_level=True,
    calibration=True,
    bounds=SHARE,
)
_NO_SIZE = "A p-value is not an effect size: read it with the miss rate."


def _at_level(
    function: Callable[..., Estimate], end: End, misses: str, *, weighted: bool = True
) -> Form:
    """The form of a test of misses beyond an end, at the level that is stated of it."""
    return Form(
        needs=(f"{misses}_{end}",),
        keywords={"level": f"level_{end}"},
        function=function,
        reduce="statistic",
        weighted=weighted,
    )


def _of_end(end: End) -> tuple[Metric, ...]:
    other: End = "above" if end == "below" else "below"
    quantile = "lower" if end == "below" else "upper"
    return (
        _entry(
            name=f"kupiec_{end}",
            title=f"Kupiec's test, misses {end}",
            synonyms=(f"proportion of failures, {end}", f"POF test, {end}"),
            meaning=(
                f"P-value of the test that y is {end} the {quantile} end of its interval, a value "
                "at risk, as often as predicted."
            ),
            formula="2 [x log(π/p) + (n − x) log((1 − π)/(1 − p))], π = x/n, with an exact p-value",
            source="Kupiec 1995",
            forms=(_at_level(kupiec_test, end, "missed"),),
            laws=Laws(reflection=f"kupiec_{other}"),
            beware=(
                f"{_NO_SIZE} It assumes independent rows and central intervals, with half of the "
                "nominal miss rate on each side."
            ),
        ),
        _entry(
            name=f"christoffersen_{end}",
            title=f"Christoffersen's test of independence, misses {end}",
            synonyms=(f"independence of failures, {end}",),
            meaning=(
                f"P-value of the test that misses {end} the interval are independent of a miss at "
                "the previous time."
            ),
            formula="2 [ℓ(n₀₀, n₀₁) + ℓ(n₁₀, n₁₁) − ℓ(n₀₀ + n₁₀, n₀₁ + n₁₁)], exact given misses",
            source="Christoffersen 1998",
            forms=(statistic(_independence, f"missed_in_time_{end}", weighted=False),),
            merges="rows",
            laws=Laws(reflection=f"christoffersen_{other}"),
            beware=f"{_NO_SIZE} It detects only dependence on the previous time.",
        ),
        _entry(
            name=f"christoffersen_coverage_{end}",
            title=f"Christoffersen's test of conditional coverage, misses {end}",
            synonyms=(f"conditional coverage test, {end}",),
            meaning=(
                f"P-value of the test that misses {end} the interval are as frequent as predicted, "
                "and independent of a miss at the previous time."
            ),
            formula="LR of Kupiec's test + LR of Christoffersen's test of independence",
            source="Christoffersen 1998",
            forms=(_at_level(christoffersen_coverage_test, end, "missed_in_time", weighted=False),),
            merges="rows",
            laws=Laws(reflection=f"christoffersen_coverage_{other}"),
            beware=f"{_NO_SIZE} It does not show which of the two fails.",
        ),
    )


def _independence(missed: BoolArray) -> Estimate:
    if not 0 < missed.sum() < len(missed):
        raise UnanswerableError("no row is a miss" if not missed.any() else "every row is a miss")
    return christoffersen_test(missed)


_ARRAYS = (("missed", _missed, False), ("level", _level, True), ("missed_in_time", _in_time, False))

TOPIC = Topic(
    entries=tuple(entry for pair in zip(*map(_of_end, ENDS), strict=True) for entry in pair),
    arrays=tuple(
        Array(f"{name}_{end}", partial(make, end), per_coverage=True, predicted=predicted)
        for end in ENDS
        for name, make, predicted in _ARRAYS
    ),
    sums={f"kupiec_{end}": Sums(partial(_columns, end), _from_sums) for end in ENDS},
    label="Tails",
)
