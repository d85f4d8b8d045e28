"""Data on persons (`--no-rows`): what may be told of many rows, and nothing of a single one.

Rows lose their names as they come in, and labels of few rows are put together, so that no measure
and no sentence knows them. Of what is then made, tables of single rows go, with all that is of
fewer rows than `FEWEST`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from howsure.core.arrays import AnyArray, BoolArray, FloatArray
from howsure.core.errors import InputError, either
from howsure.core.labels import Categories
from howsure.core.records import Curve, Record, ResultTable
from howsure.engine.finding import MIN_ROWS_OF_PART
from howsure.figures.build import points_of
from howsure.inputs import Loaded, Unlabelled
from howsure.predictions import EvalSet
from howsure.report.assessment import Assessment, Basis, Later

FEWEST = MIN_ROWS_OF_PART
"""The fewest rows of which anything is told."""
OTHERS = "others"
"""What labels of few rows are called together."""

_FACTS = {"Single rows": f"not shown, and no result on fewer than {FEWEST} rows"}
_ROW = "row"
"""The column that names rows: a table that has it shows single ones."""
_COUNTS = ("n", "rows", "Rows")
"""What says of how many rows a line of a table or a point of a curve is."""
_ENDS = frozenset({"ease_low", "ease_high", "Ease from", "Ease to"})
"""Least and greatest values, which are those of single rows."""
_OF_FILES = "files"


def check_no_state(state: object) -> None:
    """Refuse to keep what `howsure merge` needs."""
    if state is not None:
        raise InputError(
            f"{either('state', '--state')} saves a sample of rows, which "
            f"{either('no_rows', '--no-rows')} forbids"
        )


def without_rows(loaded: Loaded) -> Loaded:
    """What was read, without names of rows, texts, images and labels of few rows.

    Of a table that was read by parts, groups are as large as in all rows.
    """
    rows = loaded.totals[0].n if loaded.totals else loaded.evalsets[0].n
    if rows < FEWEST:
        option = either("no_rows", "--no-rows")
        raise InputError(f"{option} needs at least {FEWEST} rows, got {rows:,.0f}")
    sets = [_unnamed(evalset) for evalset in loaded.evalsets]
    for number, total in enumerate(loaded.totals):
        groups = {
            name: _as_in(group, name, total)
            for name, group in loaded.evalsets[number].groups.items()
            if name in total.cells.names
        }
        sets[number] = replace(sets[number], groups=groups)
    totals = []
    for total in loaded.totals:
        groups = total.cells.groups()
        mass = total.moments.mass
        totals.append(total.relabelled({name: pooled(groups[name], mass) for name in groups}))
    first, first_pooled = loaded.evalsets[0], sets[0]
    pairs = [(first.groups, first_pooled.groups), (first.features, first_pooled.features)]
    changed = [name for old, new in pairs for name in new if new[name] is not old[name]]
    notes = [
        f"{name}: labels of fewer than {FEWEST} rows are pooled as {OTHERS}"
        for name in dict.fromkeys(changed)
    ]
    notes += [
        f"{name} is omitted, because the sizes of its groups are unknown"
        for name in first.groups
        if name not in first_pooled.groups
    ]
    return replace(
        loaded,
        evalsets=tuple(sets),
        totals=tuple(totals),
        texts={},
        images=None,
        notes=(*loaded.notes, *notes),
    )


def new_without_rows(new: Unlabelled) -> Unlabelled:
    """Rows to be scored, without their names, texts, images and labels of few rows."""
    inputs, labelled = new.inputs, new.labelled
    groups = {name: pooled(group) for name, group in inputs.groups.items()}
    return replace(
        new,
        inputs=replace(inputs, rows=None, groups=groups),
        texts={},
        images=None,
        labelled=None if labelled is None else replace(labelled, rows=None, fewest=FEWEST),
    )


def _unnamed(evalset: EvalSet) -> EvalSet:
    frequent = evalset.weights is not None and evalset.weights.kind == "frequency"
    counts = evalset.weights.values if frequent and evalset.weights is not None else None
    groups = {name: pooled(group, counts) for name, group in evalset.groups.items()}
    features = {name: _pooled_text(feature, counts) for name, feature in evalset.features.items()}
    return replace(evalset, rows=None, groups=groups, features=features, fewest=FEWEST)


def _as_in(sampled: Categories, name: str, totals: Any) -> Categories:
    """The groups of a sample under the labels that they have among all rows."""
    column = totals.cells.groups()[name]
    among = pooled(column, totals.moments.mass)
    pooled_label = dict(zip(column.values().tolist(), among.values().tolist(), strict=True))
    labels = [pooled_label[label] for label in sampled.labels.tolist()]
    if labels == sampled.labels.tolist():
        return sampled
    values = np.array(labels, dtype=object)[sampled.codes]
    return Categories.checked(values, name)


def pooled(column: Categories, counts: FloatArray | None = None) -> Categories:
    """Labels of few rows as one, with the next smallest where these are few together.

    So what they show cannot be had by subtraction.

    >>> pooled(Categories.checked(["a"] * 30 + ["b"] * 20 + ["c"] * 4, "g")).labels.tolist()
    ['a', 'b and others']
    """
    rows = np.bincount(column.codes, weights=counts, minlength=len(column.labels))
    few = int((rows < FEWEST).sum())
    if not few:
        return column
    order = np.argsort(rows, kind="stable")
    together = order[: max(few, int(np.argmax(np.cumsum(rows[order]) >= FEWEST)) + 1)]
    labels = np.array([str(label) for label in column.labels.tolist()], dtype=object)
    existing = set(labels.tolist())
    name = " and ".join([*labels[together[few:]], OTHERS])
    labels[together[0]] = name if name not in existing else f"{name} (few rows)"
    code_of = np.arange(len(labels))
    code_of[together] = together[0]
    return Categories.from_codes(code_of[column.codes], labels)


def _pooled_text(column: AnyArray, counts: FloatArray | None) -> AnyArray:
    """A feature of labels with the rare ones as one; of numbers the column itself."""
    if column.dtype.kind in "biuf":
        return column
    labels = Categories.checked(column, "feature")
    pooled_labels = pooled(labels, counts)
    return column if pooled_labels is labels else pooled_labels.values()


def of_many_rows(report: Assessment) -> Assessment:
    """A report without tables of single rows, and without all that is of few rows."""
    return replace(report, brief=_shown(report.brief), whole=Later(lambda: _shown(report.whole())))


def _shown(basis: Basis) -> Basis:
    tables = (_of_many(table) for table in basis.tables if _ROW not in table.columns)
    return Basis(
        records=tuple(record for record in basis.records if not _is_of_few(record)),
        curves=tuple(map(_at_many, basis.curves)),
        tables=tuple(table for table in tables if len(table)),
        facts={**basis.facts, **_FACTS},
    )


def _is_of_few(record: Record) -> bool:
    """Whether a number is of a part of fewer rows."""
    return bool(record.group or "where" in record.options) and record.n < FEWEST


def _of_many(table: ResultTable) -> ResultTable:
    """The lines that are of enough rows, and of these no ends."""
    if table.name == _OF_FILES:
        return table
    many = _enough(table.columns, len(table))
    columns = {name: column[many] for name, column in table.columns.items() if name not in _ENDS}
    return replace(table, columns=columns)


def _at_many(curve: Curve) -> Curve:
    """The points that are of enough rows, and of these no ends."""
    hover = {name: column for name, column in curve.hover.items() if name not in _ENDS}
    return points_of(replace(curve, hover=hover), _enough(hover, len(curve.x)))


def _enough(columns: Mapping[str, AnyArray], size: int) -> BoolArray:
    """Which of some lines are of enough rows, by each column that says of how many they are."""
    many = np.ones(size, dtype=np.bool_)
    for name in _COUNTS:
        if name in columns:
            many &= np.asarray(columns[name], dtype=np.float64) >= FEWEST
    return many
