"""Regions of the inputs: where is coverage lowest, and does any part differ from all rows?

Each half of the rows seeks a part of the inputs in at most two conditions, and the other half
judges it. To the second question a fault that is the same everywhere is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import BoolArray, FloatArray, as_matrix, check_fraction
from howsure.metrics.conditional.forests import tree_inputs
from howsure.metrics.conditional.regions import Region, region_of, tree_nodes
from howsure.metrics.conditional.rows import Problem, as_claimed, as_covered, as_problem
from howsure.stats.binomial import Alternative, clopper_pearson, shift_shares
from howsure.stats.ecdf import check_pit
from howsure.stats.estimate import Estimate

LEAST_JUDGED = 10
"""Rows that a region needs in the half that judges it."""
_SEARCH = 0.9999
"""Confidence by which nodes are ranked: at less, small nodes that are low by luck come first."""
_CLOSE = 1e-12
_TreeInputs = tuple[FloatArray, dict[int, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstRegion:
    """Outcome of `worst_region`.

    Attributes
    ----------
    estimate : Estimate
        Coverage inside, on the half that did not choose the region. The null is what its rows
        claim; interval and p, exact and one-sided, are adjusted for both halves. Details:
        ``where`` and the ``share`` of the rows.
    region : Region or None
        The region, with its interval.
    """

    estimate: Estimate
    region: Region | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionTest:
    """Outcome of `regions_differ`.

    Attributes
    ----------
    estimate : Estimate
        The p-value, adjusted for both halves and all signals. Details tell of the region that is
        proven to under-cover, else of the one that differs most: ``where``, ``signal``,
        its mean inside (``deviation``), the ``share`` of the rows and how many (``rows``), their
        coverage (``value``, ``lower``, ``upper``) and the ``expected`` one.
    region : Region or None
        The region that differs most, whichever way, judged by coverage alone.
    """

    estimate: Estimate
    region: Region | None = None


def worst_region(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> WorstRegion:
    """Find the part of the inputs that is covered least, and judge it on other rows.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    x : array-like of shape (n, d)
        Inputs, in any units; finite.
    coverage : float or array-like of shape (n,)
        Nominal coverage, in (0, 1), or what each row claims, in [0, 1].
    names : sequence of str, optional
        Names of the inputs.
    confidence : float
        Of the interval.
    seed : int
        Fixes halves.

    Returns
    -------
    WorstRegion
        In [0, 1]; what is claimed is best. Where all rows of a half are covered alike, its region
        is all rows. NaN with a reason where no input varies or none would hold ten judged rows.

    Raises
    ------
    InputError
        If an argument leaves its domain or lengths differ.

    Notes
    -----
    Each half of the rows fits a tree of depth two to c_i − p_i, whether covered less the claim, and
    takes the node below its root whose upper 99.99 % Clopper–Pearson end lies farthest below its
    mean claim. The other half judges it by the exact binomial test (conservative for unequal
    claims: Hoeffding 1956). Of the two regions, that with the lowest upper end is told; its p-value
    counts twice, and its interval is simultaneous for both (Bonferroni).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> covered = rng.random(2000) < np.where(x[:, 0] > 1, 0.5, 0.95)
    >>> found = worst_region(covered, x, coverage=0.9, names=["age", "dose"])
    >>> found.region.where, round(found.estimate.value, 2)
    ('age > 1', 0.52)
    """
    level = check_fraction(confidence, "confidence")
    problem = as_problem(covered, x, coverage, names, seed)
    if reason := _unanswerable(problem):
        return WorstRegion(estimate=Estimate(math.nan, reason=reason, n=problem.n))
    region = _lowest(problem, tree_inputs(problem.x), problem.coverage, level)
    if region is None:
        return WorstRegion(estimate=Estimate(math.nan, reason=_few(problem.n), n=problem.n))
    from scipy import stats  # half a second, and rarely asked for

    value, m = region.empirical_coverage, region.n
    estimate = Estimate(
        value,
        null=region.expected,
        details={"where": region.where, "share": region.share},
        error=math.sqrt(value * (1 - value) / m),
        lower=region.lower,
        upper=region.upper,
        null_lower=float(stats.binom.ppf(0.025, m, region.expected)) / m,
        null_upper=float(stats.binom.ppf(0.975, m, region.expected)) / m,
        p=min(1.0, 2 * region.p_value),
        n=m,
    )
    return WorstRegion(estimate=estimate, region=region)


def regions_differ(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    pit: npt.ArrayLike | None = None,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> RegionTest:
    """Test whether some part of the inputs strays from all rows, on rows that did not find it.

    Parameters
    ----------
    covered, x, coverage, names, confidence, seed
        As in `worst_region`.
    pit : array-like of shape (n,), optional
        P(Y ≤ y) of each row, which shows bias and spread besides; the randomised PIT for discrete
        laws.

    Returns
    -------
    RegionTest
        A p-value; NaN with a reason where no input varies or no region would hold ten judged rows.

    Raises
    ------
    InputError
        If an argument leaves its domain or lengths differ.

    Notes
    -----
    Signals of row i are c_i − p̃_i, where p̃ are the claims moved by one step on the logit scale
    to the coverage of all rows, and of the PIT u the Legendre components √3(2u − 1) (bias) and
    √5(6u² − 6u + 1) (spread), less their means over all rows. Each half of the rows fits a tree
    of depth two to each signal and takes the node whose sum of the signal is largest in the
    standard deviations that all rows lead one to expect. On the other half coverage is judged by
    the exact binomial test (of unequal p̃ conservative: Hoeffding 1956), a component by Student's
    t of its mean. The means of all rows hold the judged rows too, which makes both tests a little
    conservative. The smallest p-value counts as often as there are halves and signals (Bonferroni).

    Where coverage differs, or a region's spread is smaller, the region that is named is found as
    in `worst_region`, if other rows prove it to be covered less than expected, and than claimed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> covered = rng.random(2000) < np.where(x[:, 0] > 1, 0.5, 0.95)
    >>> found = regions_differ(covered, x, coverage=0.9, names=["age", "dose"])
    >>> found.estimate.details["where"], found.estimate.p < 1e-6
    ('age > 1', True)
    """
    level = check_fraction(confidence, "confidence")
    hits = as_covered(covered)
    inputs, claimed = as_matrix(x, "x", length=len(hits)), as_claimed(coverage, len(hits))
    ranks = None if pit is None else check_pit(pit, length=len(hits))
    if ranks is not None:  # among equal rows the PIT decides, not the place
        rising = np.argsort(ranks, kind="stable")
        ranks, hits = ranks[rising], hits[rising]
        inputs, claimed = inputs[rising], claimed[rising]
    problem = as_problem(hits, inputs, claimed, names, seed)
    if reason := _unanswerable(problem):
        return RegionTest(estimate=Estimate(math.nan, reason=reason, n=problem.n))
    hits, held = problem.covered, tree_inputs(problem.x)
    expected = shift_shares(problem.coverage, float(hits.mean()))
    signals = {"coverage": hits - expected}
    if ranks is not None:
        u = ranks[problem.order]
        signals["bias"] = math.sqrt(3) * (2 * u - 1)
        signals["spread"] = math.sqrt(5) * (6 * u * u - 6 * u + 1)
    tests: list[tuple[float, str, float, Region]] = []
    for learn in _halves(problem.n):
        for name, values in signals.items():
            signal = values - values.mean()
            plain = np.full(problem.n, float(signal.var()))
            noise = expected * (1 - expected) if name == "coverage" else plain
            found = _strayed(held, problem.names, signal, noise, learn)
            if found is None:
                continue
            where, inside = found
            strayed = signal[inside & ~learn]
            region = _judged(problem, where, inside, learn, expected, level)
            p = region.p_value if name == "coverage" else _t_test(strayed)
            tests.append((p, name, float(strayed.mean()), region))
    if not tests:
        return RegionTest(estimate=Estimate(math.nan, reason=_few(problem.n), n=problem.n))
    p, name, deviation, farthest = min(tests, key=lambda test: test[0])
    named = farthest
    if name == "coverage" or (name == "spread" and deviation < 0):
        lowest = _lowest(problem, held, expected, level)
        mean_claim = float(np.mean(problem.coverage))  # where all cover more, less is no fault
        if lowest is not None and lowest.upper < min(lowest.expected, mean_claim):
            named, name = lowest, "coverage"
            deviation = lowest.empirical_coverage - lowest.expected
    p = min(1.0, 2 * len(signals) * p)
    estimate = Estimate(
        p,
        null=0.5,
        null_lower=0.05,
        null_upper=1.0,
        details={
            "where": named.where,
            "signal": name,
            "deviation": deviation,
            "share": named.share,
            "rows": float(named.n),
            "value": named.empirical_coverage,
            "expected": named.expected,
            "lower": named.lower,
            "upper": named.upper,
        },
        p=p,
        n=problem.n,
    )
    return RegionTest(estimate=estimate, region=farthest)


def _unanswerable(problem: Problem) -> str:
    """Why no region can be sought; empty where one can."""
    if problem.n // 2 < LEAST_JUDGED:
        return _few(problem.n)
    return "" if np.ptp(problem.x, axis=0).max() > 0 else "no input varies"


def _halves(n: int) -> tuple[BoolArray, BoolArray]:
    """Which rows learn, once each half."""
    first = np.arange(n) < n // 2
    return first, ~first


def _judged(
    problem: Problem,
    where: str,
    inside: BoolArray,
    learn: BoolArray,
    due: FloatArray,
    confidence: float,
    alternative: Alternative = "two-sided",
) -> Region:
    """A region on the rows that did not find it."""
    return region_of(
        where,
        inside[~learn],
        problem.covered[~learn],
        due[~learn],
        found=float(problem.covered[inside & learn].mean()),
        confidence=confidence,
        alternative=alternative,
    )


def _lowest(
    problem: Problem, held: _TreeInputs, due: FloatArray, confidence: float
) -> Region | None:
    """The region that falls short of what is due by most, with an interval for both halves."""
    regions = []
    for learn in _halves(problem.n):
        nodes, words = tree_nodes(held, problem.covered - due, problem.names, learn)
        inside = nodes[learn].astype(np.float64)
        rows = inside.sum(axis=0)
        _, upper = clopper_pearson(problem.covered[learn] @ inside, rows, _SEARCH)
        short = due[learn] @ inside / rows - upper
        short[: len(words) > 1] = -np.inf  # all rows, unless no part differs
        short[nodes[~learn].sum(axis=0) < LEAST_JUDGED] = -np.inf
        place = int(short.argmax())
        if short[place] > -np.inf:
            both = 1.0 - (1.0 - confidence) / 2.0
            regions.append(
                _judged(problem, words[place], nodes[:, place], learn, due, both, "less")
            )
    return min(regions, key=lambda region: region.upper - region.expected, default=None)


def _few(n: int) -> str:
    return f"a region needs {LEAST_JUDGED} rows in each half, got {n} rows in all"


def _strayed(
    held: _TreeInputs,
    names: Sequence[str],
    signal: FloatArray,
    noise: FloatArray,
    learn: BoolArray,
) -> tuple[str, BoolArray] | None:
    """The node of a tree where the signal strays most clearly, by the rows that learn it."""
    nodes, words = tree_nodes(held, signal, names, learn)
    rows = nodes[learn]
    z = np.abs(signal[learn] @ rows) / np.sqrt(np.maximum(noise[learn] @ rows, _CLOSE))
    z[0] = -1.0  # all rows
    z[nodes[~learn].sum(axis=0) < LEAST_JUDGED] = -1.0
    best = int(np.argmax(z))
    return (words[best], nodes[:, best]) if z[best] > 0 else None


def _t_test(values: FloatArray) -> float:
    """Two-sided p-value of mean 0."""
    m = len(values)
    error = float(values.std(ddof=1)) / math.sqrt(m)
    if error <= _CLOSE:
        return 1.0
    return float(2 * special.stdtr(m - 1, -abs(float(values.mean())) / error))
