"""The verdict without a report: only what its questions read is measured."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from howsure.core.threads import one_thread
from howsure.engine.finding import Finding
from howsure.engine.measure import evaluate
from howsure.engine.metric import MISS_RANGE
from howsure.predictions import EvalSet, content_order
from howsure.stats.permutation import Resampling
from howsure.topics.groups import compare_groups
from howsure.verdict.dependence import Known, follow
from howsure.verdict.family import TOLERANCE, check_judging, judge
from howsure.verdict.findings import measures, needs_null
from howsure.verdict.nulls import with_nulls


@one_thread()
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def examine(
    evalset: EvalSet,
    *,
    coverages: Sequence[float] = (),
    seed: int = 0,
    tolerance: float = TOLERANCE,
    ignore: Collection[str] = (),
    miss_range: Sequence[float] = MISS_RANGE,
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """Judge one model, as `howsure.assess` does but for congruence, without a report.

    Parameters
    ----------
    evalset : EvalSet
        What happened beside what was predicted.
    coverages : sequence of float
        Nominal coverages; the verdict speaks of the one nearest to 0.9.
    seed : int
        Fixes all draws.
    tolerance : float
        Miscoverage that does no harm, as a share.
    ignore : collection of str
        Ids of findings to leave out.

    Returns
    -------
    findings, silent
        As `judge`.

    Raises
    ------
    InputError
        If an argument breaks a rule.

    Examples
    --------
    >>> from howsure import Distribution
    >>> rng = np.random.default_rng(0)
    >>> y, zero = rng.normal(size=500), np.zeros(500)
    >>> held = EvalSet.checked(y, Distribution.normal(zero, zero + 1.0))
    >>> examine(held)[0][0].state
    'undecided'
    """
    check_judging(tolerance, ignore)
    (evalset,), (dependence,) = follow([evalset], content_order([evalset]))
    return judged(
        evalset,
        dependence,
        coverages=coverages,
        seed=seed,
        tolerance=tolerance,
        ignore=ignore,
        miss_range=miss_range,
    )


def judged(
    evalset: EvalSet,
    dependence: Known,
    *,
    coverages: Sequence[float] = (),
    seed: int = 0,
    tolerance: float = TOLERANCE,
    ignore: Collection[str] = (),
    miss_range: Sequence[float] = MISS_RANGE,
    told: bool = True,
) -> tuple[tuple[Finding, ...], dict[str, str]]:
    """The same of rows whose order and dependence are known, and whether its words are read."""
    whole = evaluate(
        evalset,
        coverages=coverages,
        metrics=measures(told=told),
        seed=seed,
        miss_range=miss_range,
    )
    asked = tuple(record for record in whole.records if needs_null(record))
    records = [record for record in whole.records if record not in asked]
    records += with_nulls(replace(whole, records=asked), seed=seed, dependence=dependence)[0]
    records += compare_groups(whole, seed=seed).records
    if evalset.features or evalset.embedding is not None:
        records += evaluate(
            evalset, coverages=coverages, metrics=measures("inputs"), beside="inputs", seed=seed
        ).records
    if evalset.ease in evalset.features:
        given = {"resampling": Resampling(replicates=0, permutations=0)}
        records += evaluate(
            evalset,
            coverages=coverages,
            metrics=measures("ease"),
            beside="ease",
            seed=seed,
            given=given,
        ).records
    return judge(records, evalset, dependence=dependence, tolerance=tolerance, ignore=ignore)
