"""Adaptivity of an evaluation set: are beliefs larger where rows are harder, and do they hold?

Needs label sets or intervals, and for the cells by ease how easy each row is; see
`howsure.metrics.adaptivity.ease`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_vector
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Curve, Direction, Notion, Record, Table
from howsure.core.weights import Weights
from howsure.metrics.adaptivity import (
    TORCHCP_STRATA,
    AdaptivityMeasure,
    CellTable,
    Resampling,
    Strata,
    escv,
    label_rank,
    rank_cv,
    rank_ss,
    satisfaction_rate,
    set_deficit,
    set_excess,
    sscv,
    t_cv,
    t_ss,
)
from howsure.metrics.measure import choose_coverages
from howsure.metrics.view import View
from howsure.predictions import EvalSet, LabelSets
from howsure.stats.dominance import merge_ties
from howsure.stats.estimate import mean_statistic, standard_error

_DEFAULT = Resampling()


@dataclass(frozen=True, slots=True)
class AdaptivityReport:
    """What adaptivity tells of one model.

    Attributes
    ----------
    records : tuple of Record
        ``t_cv``, ``t_ss`` and ``satisfaction_rate``; for label sets also ``sscv``, ``escv``,
        ``rank_cv``, ``rank_ss``, ``set_deficit`` and ``set_excess``. `null` is what chance alone
        shows at this size, and options hold its upper end and the p-value.
    tables : tuple of Table
        ``adaptivity_cells``: cells by ease with coverage, mean size and mean difficulty.
    curves : tuple of Curve
        ``coverage_by_ease``, with the band of a perfect model, and ``size_by_difficulty``.
    """

    records: tuple[Record, ...]
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """What the measures read; what is not known is the reason why."""

    covered: FloatArray
    size: FloatArray | str
    difficulty: FloatArray | str
    ease: FloatArray | str
    weights: FloatArray | None


def assess_adaptivity(
    held: EvalSet,
    *,
    ease: npt.ArrayLike | str | None = None,
    scores: npt.ArrayLike | None = None,
    coverage: float | None = None,
    bins: int = 50,
    strata: Strata | None = TORCHCP_STRATA,
    resampling: Resampling = _DEFAULT,
) -> AdaptivityReport:
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
    strata : sequence of (low, high), or None
        Of set sizes, for SSCV.
    resampling : Resampling
        How intervals and floors are drawn.

    Returns
    -------
    AdaptivityReport
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
    >>> report = assess_adaptivity(held, ease=-sd, bins=10)
    >>> [record.metric for record in report.records]
    ['t_cv', 't_ss', 'satisfaction_rate']
    >>> report.records[1].value > 0.9
    True
    """
    nominal = choose_coverages(held)[-1] if coverage is None else coverage
    if math.isnan(nominal):
        raise InputError("coverage must be given, as that of the intervals is unknown")
    view = View(held)
    try:
        covered = np.asarray(view.get("covered", nominal), dtype=np.float64)
    except UnanswerableError as error:
        raise InputError(f"held must have label sets or intervals: {error}") from error
    labels = view.source(("covered",), nominal) == LabelSets.kind
    rows = _Rows(
        covered=covered,
        size=_sizes(view, nominal, labels=labels),
        difficulty=_difficulty(view, scores, labels=labels),
        ease=_ease(held, ease),
        weights=held.multiplicities,
    )
    cells = max(3, min(bins, held.n // 5))
    units = "labels" if labels else "y"
    makers: dict[str, Callable[[], AdaptivityMeasure]] = {
        "t_cv": lambda: t_cv(
            covered,
            _known(rows.ease),
            coverage=nominal,
            bins=cells,
            weights=rows.weights,
            resampling=resampling,
        ),
        "t_ss": lambda: t_ss(
            _known(rows.size),
            _known(rows.difficulty),
            _known(rows.ease),
            bins=cells,
            weights=rows.weights,
            resampling=resampling,
        ),
        "satisfaction_rate": lambda: _property(rows, held.n, resampling),
    }
    if labels:
        makers |= _of_label_sets(rows, nominal, strata, resampling)
    shared = _shared(held, nominal, resampling)
    found: dict[str, AdaptivityMeasure] = {}
    records = [_record(name, make, shared, held, found) for name, make in makers.items()]
    if labels:
        records += [_mean(name, rows, shared, held.weights) for name in ("deficit", "excess")]
    tables, curves = _views(found, nominal, units, held.model)
    return AdaptivityReport(tuple(records), tables, curves)


def _of_label_sets(
    rows: _Rows, nominal: float, strata: Strata | None, resampling: Resampling
) -> dict[str, Callable[[], AdaptivityMeasure]]:
    weights = rows.weights
    return {
        "sscv": lambda: sscv(
            rows.covered,
            _known(rows.size),
            coverage=nominal,
            strata=strata,
            weights=weights,
            resampling=resampling,
        ),
        "escv": lambda: escv(
            rows.covered,
            _known(rows.size),
            coverage=nominal,
            weights=weights,
            resampling=resampling,
        ),
        "rank_cv": lambda: rank_cv(
            rows.covered,
            _known(rows.difficulty),
            coverage=nominal,
            weights=weights,
            resampling=resampling,
        ),
        "rank_ss": lambda: rank_ss(
            _known(rows.size), _known(rows.difficulty), weights=weights, resampling=resampling
        ),
    }


def _property(rows: _Rows, n: int, resampling: Resampling) -> AdaptivityMeasure:
    if rows.weights is not None:
        raise UnanswerableError("the satisfaction rate needs unweighted rows")
    return satisfaction_rate(
        _known(rows.size),
        _known(rows.difficulty),
        subset=min(100, max(1, n // 10)),
        resampling=resampling,
    )


def _known(value: FloatArray | str) -> FloatArray:
    if isinstance(value, str):
        raise UnanswerableError(value)
    return value


def _sizes(view: View, nominal: float, *, labels: bool) -> FloatArray | str:
    if labels:
        return np.asarray(view.get("set_sizes"))
    lower, upper = view.get("ends", nominal)
    widths = np.asarray(upper - lower)
    if not np.isfinite(widths).all():
        return "some intervals are unbounded"
    return merge_ties(widths, 4e-16 * np.maximum(np.abs(lower), np.abs(upper)))


def _difficulty(view: View, scores: npt.ArrayLike | None, *, labels: bool) -> FloatArray | str:
    if not labels:
        try:
            return np.asarray(view.get("absolute_error"))
        except UnanswerableError as error:
            return str(error)
    if scores is None:
        return "class scores are needed for the rank of the true label"
    table = np.asarray(scores)
    wanted = view.belief(LabelSets).members.shape
    if table.shape != wanted:
        raise InputError(f"scores must have shape {wanted} as the sets have, got {table.shape}")
    return label_rank(table, view.evalset.y)


def _ease(held: EvalSet, ease: npt.ArrayLike | str | None) -> FloatArray | str:
    if ease is None:
        return "the ease of each row is needed"
    if isinstance(ease, str):
        if ease not in held.features:
            known = ", ".join(held.features) or "none"
            raise InputError(f"ease must name a feature ({known}), got {ease!r}")
        return as_vector(held.features[ease], f"feature {ease!r}")
    return as_vector(ease, "ease", length=held.n)


def _shared(held: EvalSet, nominal: float, resampling: Resampling) -> Record:
    return Record(
        metric="",
        value=math.nan,
        confidence=resampling.confidence,
        n=float(held.n),
        notion=Notion.LOCAL,
        coverage=nominal,
        model=held.model,
    )


_HIGHER = ("t_ss", "rank_ss", "satisfaction_rate")


def _record(
    name: str,
    make: Callable[[], AdaptivityMeasure],
    shared: Record,
    held: EvalSet,
    found: dict[str, AdaptivityMeasure],
) -> Record:
    direction = Direction.HIGHER if name in _HIGHER else Direction.LOWER
    if name in ("rank_cv", "rank_ss"):
        direction = Direction.NONE
    record = replace(shared, metric=name, direction=direction)
    try:
        if held.cluster is not None:
            raise UnanswerableError("measures of adaptivity need independent rows, not clusters")
        measure = make()
    except UnanswerableError as error:
        return replace(record, reason=str(error))
    found[name] = measure
    return replace(
        record,
        value=measure.value,
        lower=measure.lower,
        upper=measure.upper,
        n=measure.n,
        target=1.0 if direction is Direction.HIGHER else math.nan,
        null=measure.floor,
        reason=measure.reason,
        options={
            "cells": float((measure.cells.n > 0).sum()),
            "chance_upper": measure.floor_upper,
            "p_value": measure.p_value,
        },
    )


def _mean(name: str, rows: _Rows, shared: Record, weights: Weights | None) -> Record:
    """Mean Deficit or Excess, with its standard error."""
    record = replace(
        shared,
        metric=f"set_{name}",
        direction=Direction.LOWER,
        notion=Notion.MARGINAL,
        units="labels",
    )
    try:
        rank, size = _known(rows.difficulty), _known(rows.size)
    except UnanswerableError as error:
        return replace(record, reason=str(error))
    each = set_deficit(rank, size) if name == "deficit" else set_excess(rank, size)
    mean = mean_statistic(each, rows.weights)
    assert mean.influence is not None
    spread = standard_error(mean.influence, weights)
    reach = 1.959964 * spread
    return replace(
        record,
        value=mean.value,
        standard_error=spread,
        lower=max(mean.value - reach, 0.0),
        upper=mean.value + reach,
        confidence=0.95,
        target=0.0,
    )


def _views(
    found: dict[str, AdaptivityMeasure], nominal: float, units: str, model: str
) -> tuple[tuple[Table, ...], tuple[Curve, ...]]:
    """The cells by ease, as a table and as curves, of whatever measures were answered."""
    violation, slope = found.get("t_cv"), found.get("t_ss")
    held = violation or slope
    if held is None:
        return (), ()
    cells = held.cells
    columns = {"cell": np.arange(1.0, len(cells.n) + 1), "ease_low": cells.low}
    columns |= {"ease_high": cells.high, "n": cells.n}
    curves = []
    if violation is not None:
        columns["coverage"] = cells.means["coverage"]
        curves.append(_coverage_curve(violation, nominal, model))
    if slope is not None:
        columns |= {name: slope.cells.means[name] for name in ("size", "difficulty")}
        curves.append(_size_curve(slope.cells, units, model))
    table = Table(
        name="adaptivity_cells",
        columns=columns,
        labels={"cell": "cell, from the hardest", "n": "rows"},
        model=model,
        notes="Cells of equal mass by ease; size and difficulty are means.",
    )
    return (table,), tuple(curves)


def _coverage_curve(measure: AdaptivityMeasure, nominal: float, model: str) -> Curve:
    cells = measure.cells
    share = (np.cumsum(cells.n) - cells.n / 2) / cells.n.sum()
    flat = np.full(len(share), nominal)
    return Curve(
        name="coverage_by_ease",
        x=share,
        y=cells.means["coverage"],
        lower=np.maximum(flat - measure.floor_upper, 0.0),
        upper=np.minimum(flat + measure.floor_upper, 1.0),
        reference=flat,
        x_label="Share of rows that are harder",
        y_label="Empirical coverage",
        band=f"{measure.confidence:.0%} band of a perfect model, all cells at once",
        model=model,
        notes=f"T-CV {measure.value:.3g}; a perfect model shows {measure.floor:.3g} on average.",
        hover={"Rows": cells.n, "Ease from": cells.low, "Ease to": cells.high},
    )


def _size_curve(cells: CellTable, units: str, model: str) -> Curve:
    order = np.argsort(cells.means["difficulty"], kind="stable")
    labels = units == "labels"
    return Curve(
        name="size_by_difficulty",
        x=cells.means["difficulty"][order],
        y=cells.means["size"][order],
        x_label="Mean rank of the true label" if labels else "Mean |y − forecast| (y)",
        y_label="Mean set size (labels)" if labels else "Mean width (y)",
        model=model,
        notes="Each point is a cell of equal mass by ease.",
        hover={
            "Rows": cells.n[order],
            "Cell from the hardest": np.arange(1.0, len(order) + 1)[order],
        },
    )
