"""Every way to recalibrate a belief, before and after, through every metric."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.errors import HowsureError, InputError
from howsure.core.records import Record, Table
from howsure.methods.conformal import DELTA, RankRule, TooFew
from howsure.methods.interface import checked_coverages
from howsure.metrics.catalogue import catalogue
from howsure.metrics.measure import evaluate
from howsure.predictions import EvalSet, Intervals
from howsure.recalibration.base import POINT, kinds_of
from howsure.recalibration.dispatch import METHODS, Options
from howsure.recalibration.levels import levels_with

Key = tuple[str, float | None]


def compare_recalibrations(
    test: EvalSet,
    calibration: EvalSet,
    *,
    methods: Sequence[str] | None = None,
    coverages: tuple[float, ...] = (0.9,),
    metrics: Iterable[str] | None = None,
    seed: int = 0,
    rank: RankRule = "conformal",
    delta: float = DELTA,
    too_few: TooFew = "infinite",
) -> Table:
    """One belief as it is and recalibrated in every way that suits it, through every metric.

    Parameters
    ----------
    test : EvalSet
        Rows to judge by, with one belief, or a point forecast alone.
    calibration : EvalSet
        Held-out rows with the same belief by the same model.
    methods : sequence of str, optional
        Names as in `recalibrate`; all that suit the belief if omitted.
    coverages : tuple of float
        Nominal coverages to assess, and to make intervals at; of a point forecast, intervals are
        made at the first.
    metrics : iterable of str, optional
        Names from the catalogue; all if omitted.
    seed : int
        Fixes the draws of randomised measures.
    rank, delta, too_few
        As in `recalibrate`.

    Returns
    -------
    Table
        Named ``recalibrations``; a row for each metric and coverage that something can be said
        of: ``metric``, ``title``, ``coverage`` (NaN without one), ``perfect``, ``direction``,
        ``before``, and a column for each method. NaN where there is no answer; the notes say
        which methods could not be used, and why.

    Raises
    ------
    InputError
        If there are several beliefs or none that can be recalibrated, a method does not suit it,
        or calibration lacks it.

    Examples
    --------
    >>> from howsure.predictions import Distribution
    >>> rng = np.random.default_rng(0)
    >>> made = lambda: EvalSet.checked(rng.normal(0, 2, 500), Distribution.normal([0.0] * 500, 1.0))
    >>> table = compare_recalibrations(made(), made(), metrics=["empirical_coverage"])
    >>> [name for name in table.columns][5:]
    ['before', 'scale', 'isotonic', 'crude', 'cqr', 'asymmetric', 'ucc']
    >>> [round(float(table.columns[name][0]), 2) for name in ("before", "scale", "ucc")]
    [0.6, 0.9, 0.9]
    """
    kind = _kind(test)
    known = [name for name in METHODS[kind] if (kind, name) != (Intervals.kind, "ucc")]
    chosen = known if methods is None else list(methods)
    for name in chosen:
        if name not in METHODS[kind]:
            raise InputError(f"methods must suit {kind} ({', '.join(known)}), got {name!r}")
    wanted = checked_coverages(coverages)
    options = Options(
        coverage=wanted[0] if kind == POINT else None,
        coverages=wanted,
        too_few=too_few,
        rank=rank,
        delta=delta,
        levels=levels_with(wanted),
    )
    asked = None if metrics is None else list(metrics)
    found: dict[str, dict[Key, Record]] = {}
    notes = []
    found["before"] = _records(test, wanted, asked, seed)
    for name in chosen:
        try:
            mended = METHODS[kind][name](options).fit(calibration).apply(test)
        except HowsureError as error:
            notes.append(f"{name} could not be used: {error}.")
            found[name] = {}
            continue
        found[name] = _records(mended, wanted, asked, seed)
    return _table(found, test.model, notes)


def _kind(test: EvalSet) -> str:
    kinds = kinds_of(test)
    if len(kinds) > 1:
        raise InputError(f"test must hold one belief to compare, got {', '.join(kinds)}")
    if kinds[0] not in METHODS:
        raise InputError(f"test must hold a belief that can be recalibrated, got {kinds[0]}")
    return kinds[0]


def _records(
    evalset: EvalSet, coverages: tuple[float, ...], metrics: list[str] | None, seed: int
) -> dict[Key, Record]:
    records = evaluate(evalset, coverages=coverages, metrics=metrics, seed=seed).records
    return {(r.metric, None if math.isnan(r.coverage) else r.coverage): r for r in records}


def _table(found: dict[str, dict[Key, Record]], model: str, notes: list[str]) -> Table:
    kept: dict[Key, Record] = {}
    for records in found.values():
        for key, record in records.items():
            if not math.isnan(record.value):
                kept.setdefault(key, record)
    entries = catalogue()
    columns: dict[str, npt.NDArray[Any]] = {
        "metric": np.array([metric for metric, _ in kept], dtype=object),
        "title": np.array([entries[metric].title for metric, _ in kept], dtype=object),
        "coverage": np.array([np.nan if at is None else at for _, at in kept], dtype=np.float64),
        "perfect": np.array([record.target for record in kept.values()], dtype=np.float64),
        "direction": np.array([r.direction.value for r in kept.values()], dtype=object),
    }
    for name, records in found.items():
        values = [records[key].value if key in records else math.nan for key in kept]
        columns[name] = np.array(values, dtype=np.float64)
    return Table(name="recalibrations", columns=columns, model=model, notes=" ".join(notes))
