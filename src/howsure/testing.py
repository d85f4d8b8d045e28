"""Assertions for tests of models: a test fails if predictions are shown to break a limit.

Inconclusive limits pass, unless ``undecided="fail"``. No test framework is needed: pytest,
unittest and plain scripts show the sentences of an `AssertionError`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from howsure.core.arrays import check_fraction
from howsure.core.errors import InputError
from howsure.core.registry import check_known
from howsure.engine.view import choose_coverages
from howsure.inputs import Loaded
from howsure.report.check import (
    CheckResult,
    Rules,
    check,
    limit_of,
    limits_of,
    read_rules,
    rules_from,
    with_more,
)
from howsure.report.coercion import (
    OF_TABLES,
    ROWS,
    check_coverage_is_used,
    columns_of,
    is_table,
    named_labels,
    opened,
)
from howsure.report.replicates import replicate_rng
from howsure.report.table import Table, as_coverages
from howsure.verdict import TOLERANCE

__all__ = ["assert_covers", "assert_holds", "replicate_rng"]


def assert_covers(
    data: Any = None,
    prediction: Any = None,
    *,
    y: Any = None,
    coverage: float | None = None,
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
    by: Any = None,
    confidence: float = 0.95,
    undecided: Literal["pass", "fail"] = "pass",
    seed: int = 0,
    **given: Any,
) -> None:
    """Fail if intervals are shown to under-cover.

    Parameters
    ----------
    data, prediction, y
        What happened and what was predicted, or a table of both, as `howsure.assess` takes them.
    coverage : float, optional
        Nominal coverage; as in `howsure.assess` if omitted.
    min, max : float, optional
        Least and most empirical coverage. Without either, the nominal coverage less 0.01.
    by : array-like of shape (n,), mapping of such, or names, optional
        Labels of groups, each of which is tested; for a table, names of columns.
    confidence : float
        Confidence level of the bounds.
    undecided : {"pass", "fail"}
        Outcome of an inconclusive coverage.
    seed : int
        Fixes all draws.
    **given
        Further arguments of `howsure.assess` that say what the rows are: `levels`, `weights`,
        `cluster`, `time`, `groups`, …

    Examples
    --------
    >>> import howsure
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=500)
    >>> assert_covers(y, howsure.Distribution.normal(np.zeros(500), np.ones(500)))
    >>> assert_covers(y, howsure.Distribution.normal(np.zeros(500), np.full(500, 0.5)))
    Traceback (most recent call last):
    ...
    AssertionError: 1 of 1 fails
    ✗ model: empirical_coverage ≥ 0.89 at 0.9: 0.582 (0.5444 … 0.6188), n 500
    """
    __tracebackhide__ = True
    wanted = () if coverage is None else (check_fraction(coverage, "coverage"),)
    loaded, columns = _loaded(data, prediction, wanted, by, {"y": y, **given})
    if min is None and max is None:
        coverages = {c for evalset in loaded.evalsets for c in choose_coverages(evalset, wanted)}
        if any(math.isnan(share) for share in coverages):
            raise InputError("the coverage of the intervals is unknown: pass coverage=0.9, or min")
        least = {
            share: round(np.maximum(share - TOLERANCE, 0.0), 12) for share in sorted(coverages)
        }
        limits = [limit_of("coverage", "min", value, at=share) for share, value in least.items()]
    else:
        limits = limits_of("coverage", min, max)
    rules = Rules(
        limits=tuple(limits),
        by=columns,
        confidence=confidence,
        undecided=undecided,
    )
    _assert(check(loaded.evalsets, rules, coverages=wanted, seed=seed))


def assert_holds(
    data: Any = None,
    prediction: Any = None,
    *,
    y: Any = None,
    limits: str | os.PathLike[str] | Sequence[Mapping[str, Any]] = (),
    by: Any = None,
    fail_on: str | None = None,
    undecided: Literal["pass", "fail"] | None = None,
    coverage: float | Sequence[float] = (),
    seed: int = 0,
    **given: Any,
) -> None:
    """Fail if predictions are shown to break limits, or if the verdict finds a fault.

    Parameters
    ----------
    data, prediction, y
        As `howsure.assess` takes them.
    limits : path, or sequence of mappings
        A TOML file as ``howsure check --limits`` reads, or its limits:
        ``[{"measure": "crps", "max": 2.0}]``.
    by : array-like of shape (n,), mapping of such, or names, optional
        Labels of groups, to each of which limits apply; for a table, names of columns.
    fail_on : {"never", "caution", "bad"}, optional
        Which findings of the verdict fail; that of the file, or ``never``, if omitted.
    undecided : {"pass", "fail"}, optional
        Outcome of an inconclusive limit; that of the file, or ``pass``, if omitted.
    coverage : float or sequence of float
        Nominal coverages to judge.
    seed : int
        Fixes all draws.
    **given
        Other keys of such a file (`confidence`, `sided`, `findings`, `ignore`, `tolerance`,
        `threshold`), and further arguments of `howsure.assess` that say what the rows are.

    Examples
    --------
    >>> import howsure
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> normal = howsure.Distribution.normal(np.zeros(500), np.ones(500))
    >>> assert_holds(y, normal, limits=[{"measure": "crps", "max": 0.7}], fail_on="bad")
    """
    __tracebackhide__ = True
    wanted = as_coverages(coverage)
    chosen = {name: given.pop(name) for name in _CHOICES if name in given}
    chosen = {k: tuple(v) if k in ("findings", "ignore") else v for k, v in chosen.items()}
    chosen |= {} if fail_on is None else {"fail_on": fail_on}
    chosen |= {"undecided": undecided} if undecided else {}
    if isinstance(limits, str | os.PathLike):
        rules = with_more(read_rules(limits), **chosen)
    else:
        rules = rules_from({**chosen, "limits": limits}, "assert_holds")
    loaded, columns = _loaded(data, prediction, wanted, by, {"y": y, **given}, rules.columns)
    rules = replace(rules, by=columns or rules.by)
    _assert(check(loaded.evalsets, rules, coverages=wanted, seed=seed))


_CHOICES = ("confidence", "sided", "findings", "ignore", "tolerance", "threshold")


def _loaded(
    data: Any,
    prediction: Any,
    coverage: Sequence[float],
    by: Any,
    arguments: dict[str, Any],
    columns: Sequence[str] = (),
) -> tuple[Loaded, tuple[str, ...]]:
    """What was given as evaluation sets, and the names of the columns of `by`."""
    data = data.read() if isinstance(data, Table) else data
    for name in arguments:
        check_known(name, (*ROWS, *OF_TABLES, "y", "missing", "levels", *_CHOICES), "keyword")
    groups = arguments.get("groups")
    if prediction is not None or not is_table(data):
        added = {} if isinstance(by, str) else named_labels(by)
        names = (by,) if isinstance(by, str) else tuple(added)
        arguments["groups"] = {**named_labels(groups), **added} or None
    else:
        names = (by,) if isinstance(by, str) else tuple(by or ())
        if not isinstance(data, Loaded):
            arguments["groups"] = columns_of(groups, *names, *columns) or None
    loaded = opened(data, prediction, coverage=coverage, **arguments)
    check_coverage_is_used(loaded, coverage)
    return loaded, names


def _assert(result: CheckResult) -> None:
    __tracebackhide__ = True
    if result.failed:
        lines = [f"✗ {outcome.sentence}" for outcome in result.failed]
        total = len(result.results)
        fails = "fails" if len(lines) == 1 else "fail"
        raise AssertionError("\n".join([f"{len(lines)} of {total} {fails}", *lines]))
