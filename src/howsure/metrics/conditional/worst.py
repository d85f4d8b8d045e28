"""The worst region: is some part of the inputs covered otherwise than all rows are?

A fault that is the same everywhere is none here. Each half of the rows seeks a part of the inputs
in at most two conditions, and the other half judges it.
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
from howsure.metrics.conditional.rows import as_claimed, as_covered, as_problem
from howsure.stats.binomial import shift_shares
from howsure.stats.ecdf import check_pit
from howsure.stats.estimate import Estimate

LEAST_JUDGED = 10
"""Rows that a region needs in the half that judges it."""
_CLOSE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstRegion:
    """Outcome of `worst_region`.

    Attributes
    ----------
    estimate : Estimate
        Coverage inside, on the half that did not choose the region, with its exact interval. The
        null is the coverage that all rows lead one to expect there; p is adjusted for both halves
        and all signals. Details: ``where``, ``signal``, its mean inside (``deviation``) and the
        ``share`` of the rows.
    region : Region or None
        The region, judged by coverage alone.
    signal : str
        What strays there most clearly: ``coverage``, ``bias`` or ``spread``.
    """

    estimate: Estimate
    region: Region | None = None
    signal: str = ""


def worst_region(
    covered: npt.ArrayLike,
    x: npt.ArrayLike,
    *,
    coverage: float | npt.ArrayLike,
    pit: npt.ArrayLike | None = None,
    names: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
) -> WorstRegion:
    """Find the part of the inputs that strays most from all rows, and judge it on other rows.

    Parameters
    ----------
    covered : array-like of shape (n,)
        Whether each row was covered.
    x : array-like of shape (n, d)
        Inputs, in any units; finite.
    coverage : float or array-like of shape (n,)
        Nominal coverage, in (0, 1), or what each row claims, in [0, 1].
    pit : array-like of shape (n,), optional
        P(Y ≤ y) of each row, which shows bias and spread besides; the randomised PIT for discrete
        laws.
    names : sequence of str, optional
        Names of the inputs.
    confidence : float
        Of the interval.
    seed : int
        Fixes halves.

    Returns
    -------
    WorstRegion
        The clearest region, proven or not; NaN with a reason where no input varies or no region
        would hold ten judged rows.

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

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(2000, 2))
    >>> covered = rng.random(2000) < np.where(x[:, 0] > 1, 0.5, 0.95)
    >>> found = worst_region(covered, x, coverage=0.9, names=["age", "dose"])
    >>> found.region.where, found.estimate.p < 1e-6
    ('age > 1.02', True)
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
    half = problem.n // 2
    if half < LEAST_JUDGED or np.ptp(problem.x, axis=0).max() == 0:
        reason = "no input varies" if half >= LEAST_JUDGED else _few(problem.n)
        return WorstRegion(estimate=Estimate(math.nan, reason=reason, n=problem.n))
    hits = problem.covered
    expected = shift_shares(problem.coverage, float(hits.mean()))
    signals = {"coverage": hits - expected}
    if ranks is not None:
        u = ranks[problem.order]
        signals["bias"] = math.sqrt(3) * (2 * u - 1)
        signals["spread"] = math.sqrt(5) * (6 * u * u - 6 * u + 1)
    tests: list[tuple[float, str, str, BoolArray, BoolArray]] = []
    first, held = np.arange(problem.n) < half, tree_inputs(problem.x)
    for learn in (first, ~first):
        for name, values in signals.items():
            signal = values - values.mean()
            plain = np.full(problem.n, float(signal.var()))
            noise = expected * (1 - expected) if name == "coverage" else plain
            found = _strayed(held, problem.names, signal, noise, learn)
            if found is None:
                continue
            where, inside = found
            judged = inside & ~learn
            p = _t_test(signal[judged])
            if name == "coverage":
                region = region_of(where, judged, hits, expected)
                p = region.p_value
            tests.append((p, name, where, inside, learn))
    if not tests:
        return WorstRegion(estimate=Estimate(math.nan, reason=_few(problem.n), n=problem.n))
    p, name, where, inside, learn = min(tests, key=lambda test: test[0])
    region = region_of(
        where,
        inside[~learn],
        hits[~learn],
        expected[~learn],
        found=float(hits[inside & learn].mean()),
        confidence=level,
    )
    from scipy import stats  # half a second, and rarely asked for

    value, m = region.empirical_coverage, region.n
    signal = signals[name] - signals[name].mean()
    estimate = Estimate(
        value,
        null=region.expected,
        details={
            "where": where,
            "signal": name,
            "deviation": float(signal[inside & ~learn].mean()),
            "share": region.share,
        },
        error=math.sqrt(value * (1 - value) / m),
        lower=region.lower,
        upper=region.upper,
        null_lower=float(stats.binom.ppf(0.025, m, region.expected)) / m,
        null_upper=float(stats.binom.ppf(0.975, m, region.expected)) / m,
        p=min(1.0, 2 * len(signals) * p),
        n=m,
    )
    return WorstRegion(estimate=estimate, region=region, signal=name)


def _few(n: int) -> str:
    return f"a region needs {LEAST_JUDGED} rows in each half, got {n} rows in all"


def _strayed(
    held: tuple[FloatArray, dict[int, FloatArray]],
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
