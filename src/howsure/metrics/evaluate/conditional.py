"""Conditional coverage of an evaluation set: where does it fail, and is it more than chance?

Needs inputs (features or an embedding) or groups beside the beliefs, and independent rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.faults import attempt
from howsure.core.records import Curve, Direction, Notion, Record, Table
from howsure.core.rng import row_keys
from howsure.metrics.conditional import (
    Dependence,
    LocalPit,
    Region,
    coverage_gap,
    ert,
    hsic,
    local_pit,
    width_correlation,
    worst_slab,
)
from howsure.metrics.evaluate.measure import choose_coverages
from howsure.metrics.evaluate.view import View
from howsure.predictions import EvalSet
from howsure.stats.bootstrap import subsample
from howsure.stats.ecdf_bands import simultaneous_band

MOST_ROWS = 5_000
DIRECTIONS = 300
MOST_LABELS = 10
MOST_COLUMNS = 50
COMPONENTS = 20

Found = tuple[list[Record], list[tuple[str, Region]]]


@dataclass(frozen=True, slots=True)
class ConditionalReport:
    """What conditional coverage tells of one model.

    Attributes
    ----------
    records : tuple of Record
        ``worst_slab``, ``ert_squared``, ``ert_absolute``, ``ert_log``, ``hsic``,
        ``width_correlation``, ``local_pit``, and for each column of groups ``coverage_gap`` and
        ``coverage_gap_debiased``; options hold the p-values and the failing region in words.
    tables : tuple of Table
        ``conditional_regions``: the region that fails by each measure, judged on rows that did
        not choose it. ``conditional_parts``: parts of the inputs that a shallow tree tells apart.
    curves : tuple of Curve
        ``local_pit``: the PIT in the worst part, as its distance from uniform.
    """

    records: tuple[Record, ...]
    tables: tuple[Table, ...] = ()
    curves: tuple[Curve, ...] = ()


def assess_conditional(
    held: EvalSet,
    *,
    coverage: float | None = None,
    confidence: float = 0.95,
    classifier: Any = None,
    seed: int = 0,
    everything: bool = False,
) -> ConditionalReport:
    """Every measure of conditional coverage that the content permits.

    Parameters
    ----------
    held : EvalSet
        With features, an embedding or groups. Features are used where there are any, labels as
        indicators of the ten commonest; else the embedding, by its first 20 principal
        coordinates where it has more than 50 columns.
    coverage : float, optional
        Nominal coverage of the intervals to judge; the last of `choose_coverages` if omitted.
    confidence : float
        Of the intervals.
    classifier : scikit-learn classifier, optional
        For the excess risk; a forest if omitted.
    seed : int
        Fixes halves, folds, simulations and the choice of rows.
    everything : bool
        Past 5,000 rows, rows are chosen by their content unless this is true.

    Returns
    -------
    ConditionalReport
        A measure that has no answer is a record of NaN with the reason.

    Examples
    --------
    >>> from howsure.predictions import Intervals
    >>> rng = np.random.default_rng(0)
    >>> age, end = rng.uniform(20, 80, 400), np.ones(400)
    >>> y = rng.uniform(-1.05, 1.05, 400) * np.where(age > 60, 2.0, 1.0)
    >>> held = EvalSet.checked(y, Intervals(-end, end, coverage=0.9), features={"age": age})
    >>> report = assess_conditional(held)
    >>> [record.metric for record in report.records if record.value > 0][:3]
    ['worst_slab', 'ert_squared', 'ert_absolute']
    """
    nominal = choose_coverages(held)[-1] if coverage is None else coverage
    part = _rows(held, seed, everything)
    view = View(part, seed=seed)
    shared = Record(
        metric="",
        value=math.nan,
        n=float(part.n),
        confidence=confidence,
        notion=Notion.LOCAL,
        coverage=nominal,
        model=held.model,
        reason=f"on {part.n:,} of {held.n:,} rows" if part.n < held.n else "",
    )
    options = {"coverage": nominal, "confidence": confidence, "seed": seed}
    records: list[Record] = []
    regions: list[tuple[str, Region]] = []
    extra: list[tuple[Table | None, Curve | None]] = []
    makers: dict[tuple[str, ...], Callable[[], Found]] = {
        ("worst_slab",): lambda: _slab(view, shared, options),
        ("ert_squared", "ert_absolute", "ert_log"): lambda: _ert(
            view, shared, options, classifier, extra
        ),
        ("hsic",): lambda: _dependence("hsic", view, shared, options),
        ("width_correlation",): lambda: _dependence("width_correlation", view, shared, options),
        ("local_pit",): lambda: _local(view, shared, options, extra),
        ("coverage_gap", "coverage_gap_debiased"): lambda: _gaps(view, shared, options),
    }
    for names, make in makers.items():
        told = f"{', '.join(names)} of {held.model}"
        lost = partial(_unanswered, shared, names)
        found, where = attempt(told, partial(_of_independent, part, make), lost)
        records += found
        regions += where
    table = _region_table(regions, nominal, held.model)
    tables = [t for t in (table, *(t for t, _ in extra)) if t is not None]
    return ConditionalReport(
        tuple(records), tuple(tables), tuple(c for _, c in extra if c is not None)
    )


def input_table(held: EvalSet) -> tuple[FloatArray, tuple[str, ...]]:
    """The inputs as a matrix of numbers, with a name for each column.

    Raises
    ------
    UnanswerableError
        If there are neither features nor an embedding.

    Examples
    --------
    >>> held = EvalSet.checked([1.0, 2.0], point=[1.0, 2.0], features={"site": ["a", "b"]})
    >>> input_table(held)[1]
    ('site=a', 'site=b')
    """
    if held.features:
        named = dict(_columns(held.features))
        return np.stack(list(named.values()), axis=1), tuple(named)
    if held.embedding is None:
        raise UnanswerableError("inputs are needed: features or an embedding")
    rows = held.embedding
    if rows.shape[1] <= MOST_COLUMNS:
        return rows, tuple(f"embedding {i}" for i in range(rows.shape[1]))
    left, scale, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    kept = left[:, :COMPONENTS] * scale[:COMPONENTS]
    return kept, tuple(f"principal coordinate {i + 1}" for i in range(kept.shape[1]))


def _columns(features: Mapping[str, npt.NDArray[Any]]) -> Iterator[tuple[str, FloatArray]]:
    """Numbers as they are; each common label of other features as an indicator."""
    for name, value in features.items():
        if value.dtype.kind in "biuf":
            yield name, value.astype(np.float64)
            continue
        labels, counts = np.unique(value.astype(str), return_counts=True)
        for label in labels[np.argsort(-counts, kind="stable")][:MOST_LABELS]:
            yield f"{name}={label}", (value.astype(str) == label).astype(np.float64)


def _rows(held: EvalSet, seed: int, everything: bool) -> EvalSet:
    if everything or held.n <= MOST_ROWS:
        return held
    numbers = [value for belief in held.beliefs for value in belief.numbers().values()]
    keys = row_keys(held.y, *numbers)
    return held.take(np.sort(subsample(keys, MOST_ROWS, seed=seed, name="conditional rows")))


def _unanswered(shared: Record, names: tuple[str, ...], reason: str) -> Found:
    return [replace(shared, metric=name, reason=reason) for name in names], []


def _of_independent(held: EvalSet, make: Callable[[], Found]) -> Found:
    if held.weights is not None or held.cluster is not None:
        raise UnanswerableError(
            "measures of conditional coverage need independent, unweighted rows"
        )
    return make()


def _hits(view: View, coverage: float) -> BoolArray:
    if math.isnan(coverage):
        raise UnanswerableError("the nominal coverage of the intervals is unknown")
    return np.asarray(view.get("covered", coverage), dtype=np.bool_)


def _widths(view: View, coverage: float) -> FloatArray:
    if view.source(("covered",), coverage) == "label sets":
        return np.asarray(view.get("set_sizes"))
    return np.asarray(view.get("upper", coverage) - view.get("lower", coverage))


def _told(reason: str, shared: Record) -> str:
    return "; ".join(filter(None, (reason, shared.reason)))


def _slab(view: View, shared: Record, options: dict[str, Any]) -> Found:
    x, names = input_table(view.evalset)
    found = worst_slab(
        _hits(view, shared.coverage), x, names=names, directions=DIRECTIONS, **options
    )
    record = replace(
        shared,
        metric="worst_slab",
        value=found.value,
        standard_error=found.standard_error,
        lower=found.lower,
        upper=found.upper,
        direction=Direction.TARGET,
        target=shared.coverage,
        null=found.null,
        reason=_told(found.reason, shared),
        options={
            "p_value": found.p_value,
            "perfect_lower": found.null_lower,
            "searched": found.searched,
            "searched_null": found.searched_null,
            "searched_p_value": found.searched_p_value,
            **_where(found.region),
        },
    )
    return [record], [("worst_slab", found.region)] if found.region else []


def _ert(
    view: View,
    shared: Record,
    options: dict[str, Any],
    classifier: Any,
    extra: list[tuple[Table | None, Curve | None]],
) -> Found:
    x, names = input_table(view.evalset)
    hits = _hits(view, shared.coverage)
    found = ert(hits, x, names=names, classifier=classifier, **options)
    records = []
    for name, risk in (
        ("ert_squared", found.squared),
        ("ert_absolute", found.absolute),
        ("ert_log", found.log),
    ):
        record = replace(
            shared,
            metric=name,
            value=risk.value,
            standard_error=risk.standard_error,
            lower=risk.lower,
            upper=risk.upper,
            direction=Direction.LOWER,
            units="nats" if name == "ert_log" else "1",
            target=0.0,
            null=risk.null,
            reason=_told(found.reason, shared),
            options={
                "p_value": risk.p_value,
                "under": risk.under,
                "over": risk.over,
                **_where(found.region),
            },
        )
        records.append(record)
    if found.parts:
        named = [("ert", part) for part in found.parts]
        table = _region_table(named, shared.coverage, shared.model)
        assert table is not None
        notes = (
            "A shallow tree on the chances of coverage that one half of the rows teaches; "
            "coverage is that of the other half."
        )
        extra.append((replace(table, name="conditional_parts", notes=notes), None))
    return records, [("ert", found.region)] if found.region else []


def _dependence(name: str, view: View, shared: Record, options: dict[str, Any]) -> Found:
    hits = _hits(view, shared.coverage)
    widths = _widths(view, shared.coverage)
    signed = name == "width_correlation"
    measure = width_correlation if signed else hsic
    found: Dependence = measure(hits, widths, **options)
    reach = 1.959964 * found.standard_error
    record = replace(
        shared,
        metric=name,
        value=found.value,
        standard_error=found.standard_error,
        lower=max(found.value - reach, -1.0 if signed else 0.0),
        upper=min(found.value + reach, 1.0),
        direction=Direction.TARGET if signed else Direction.LOWER,
        target=0.0,
        null=found.null,
        reason=_told(found.reason, shared),
        options={
            "p_value": found.p_value,
            "perfect_upper": found.null_upper,
            **_where(found.region),
        },
    )
    if found.region is None or signed:  # which is the region of HSIC
        return [record], []
    return [record], [(name, found.region)]


def _local(
    view: View,
    shared: Record,
    options: dict[str, Any],
    extra: list[tuple[Table | None, Curve | None]],
) -> Found:
    x, names = input_table(view.evalset)
    told = 0.9 if math.isnan(shared.coverage) else shared.coverage
    found = local_pit(view.get("pit"), x, names=names, **{**options, "coverage": told})
    record = replace(
        shared,
        metric="local_pit",
        value=found.value,
        standard_error=found.standard_error,
        lower=found.lower,
        upper=found.upper,
        direction=Direction.LOWER,
        target=0.0,
        null=found.null,
        coverage=math.nan,
        reason=_told(found.reason, shared),
        options={
            "p_value": found.p_value,
            "region_p_value": found.region_p_value,
            "fault": found.fault,
            **_where(found.region),
        },
    )
    if found.region is None or not found.region.n:
        return [record], []
    extra.append((None, _local_curve(found, shared)))
    return [record], [("local_pit", found.region)]


def _local_curve(found: LocalPit, shared: Record) -> Curve:
    """The PIT in the worst part, as its distance from uniform, with the band of a right model."""
    assert found.region is not None
    band = simultaneous_band(found.region.n, found.levels, confidence=shared.confidence)
    return Curve(
        name="local_pit",
        x=found.levels,
        y=found.region_cdf - found.levels,
        lower=np.asarray(band.lower) - found.levels,
        upper=np.asarray(band.upper) - found.levels,
        reference=np.zeros(len(found.levels)),
        x_label="Level",
        y_label="Share of the PIT at or below, − level",
        band=f"{shared.confidence:.0%} simultaneous band of a right model",
        model=shared.model,
        notes=f"Where the beliefs hold least: {found.region.where}; there {found.fault}.",
    )


def _gaps(view: View, shared: Record, options: dict[str, Any]) -> Found:
    if not view.evalset.groups:
        raise UnanswerableError("the table holds no groups")
    hits = _hits(view, shared.coverage)
    records: list[Record] = []
    regions: list[tuple[str, Region]] = []
    for name, groups in view.evalset.groups.items():
        found = coverage_gap(hits, groups, name=name, **options)
        reach = 1.959964
        made = replace(
            shared,
            direction=Direction.LOWER,
            notion=Notion.GROUP,
            target=0.0,
            reason=_told(found.reason, shared),
        )
        for metric, value, error, null, upper, p_value in (
            (
                "coverage_gap",
                found.value,
                found.standard_error,
                found.null,
                found.null_upper,
                found.p_value,
            ),
            (
                "coverage_gap_debiased",
                found.debiased,
                found.debiased_standard_error,
                found.debiased_null,
                found.debiased_null_upper,
                found.debiased_p_value,
            ),
        ):
            record = replace(
                made,
                metric=metric,
                value=value,
                standard_error=error,
                lower=max(value - reach * error, 0.0),
                upper=min(value + reach * error, 1.0),
                null=null,
                options={
                    "column": name,
                    "p_value": p_value,
                    "perfect_upper": upper,
                    **_where(found.region),
                },
            )
            records.append(record)
        if found.region is not None:
            regions.append((f"coverage_gap {name}", found.region))
    return records, regions


def _where(region: Region | None) -> dict[str, str | float]:
    return {} if region is None else {"where": region.where}


def _region_table(regions: list[tuple[str, Region]], nominal: float, model: str) -> Table | None:
    """One row for each region, with its coverage on rows that had no say in choosing it."""
    if not regions:
        return None
    columns: dict[str, npt.NDArray[Any]] = {
        "measure": np.array([name for name, _ in regions], dtype=object),
        "where": np.array([region.where for _, region in regions], dtype=object),
    }
    for name in ("n", "share", "empirical_coverage", "lower", "upper", "p_value", "found"):
        columns[name] = np.array([float(getattr(region, name)) for _, region in regions])
    columns["nominal"] = np.full(len(regions), nominal)
    return Table(
        name="conditional_regions",
        columns=columns,
        labels={"found": "coverage where it was sought", "share": "share of rows"},
        model=model,
        notes=(
            "Where coverage fails by each measure; coverage, interval and p-value are those of "
            "rows that had no say in the choice, except for groups, whose p-values are "
            "Holm-adjusted."
        ),
    )
