"""Arrays of columns become beliefs, and beliefs beside y become evaluation sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError
from howsure.core.formats import CountedNote
from howsure.inputs.cells import ParsedColumns
from howsure.inputs.classes import label_sets
from howsure.inputs.source import counted, quoted
from howsure.inputs.values import Labels
from howsure.predictions import (
    Distribution,
    EvalSet,
    Intervals,
    Prediction,
    Quantiles,
    Samples,
)

Crossing = Literal["error", "sort"]


def build(
    parts: Sequence[ParsedColumns], *, crossing: Crossing, embedding: FloatArray | None = None
) -> tuple[EvalSet, ...]:
    """One evaluation set for each model; what is known of rows besides comes from the first."""
    first = parts[0]
    ease = first.one("ease")
    if isinstance(ease, Labels) and "ease" not in first.roles.guessed:
        raise InputError(
            f"{first.title}: ease must be a column of numbers, and "
            f"{quoted(str(first.roles.one('ease')))} holds text"
        )
    moved = first.places[-1] + 1 != first.n
    names, cluster, series = first.one("rows"), first.one("cluster"), first.one("series")
    vectors = list(first.of("embedding").values())
    made = []
    for part in parts:
        try:
            with counted(places=part.places):
                made.append(
                    EvalSet.checked(
                        first.one("y"),
                        beliefs_of(part, crossing),
                        point=part.one("point"),
                        uncertainty=part.one("uncertainty"),
                        features={
                            name: column.categories().values()
                            if isinstance(column, Labels)
                            else column
                            for name, column in (first.of("features") | first.of("ease")).items()
                        },
                        ease=first.roles.one("ease") or "ease",
                        embedding=np.hstack(vectors) if vectors else embedding,
                        groups={n: held.categories() for n, held in first.of("groups").items()},
                        weights=first.one("weights"),
                        weights_kind=first.roles.weights_kind,
                        cluster=None if cluster is None else cluster.categories(),
                        time=first.one("time"),
                        cutoff=first.one("cutoff"),
                        horizon=first.one("horizon"),
                        series=None if series is None else series.categories(),
                        rows=first.places if names is None and moved else names,
                        model=part.model,
                    )
                )
        except InputError as error:
            where = f"; rows of the model {quoted(part.model)}" if len(parts) > 1 else ""
            raise InputError(f"{part.title}: {error}{where}") from error
    return tuple(made)


def without_y(
    parts: Sequence[ParsedColumns], lacking: BoolArray, known: int
) -> tuple[EvalSet | None, ...]:
    """What each model predicted of the rows that lack y; None where there are none.

    They are read as if they had the y of a row where it is `known`. Predictions that are impossible
    are those of no row.
    """
    if not lacking.any():
        return (None,) * len(parts)
    filled = []
    for part in parts:
        rows, columns = part.take(lacking), {}
        for (kind, name), column in part.columns.items():
            if name in part.roles["y"]:
                columns[kind, name] = column.take(np.full(rows.n, known))
        filled.append(replace(rows, columns={**rows.columns, **columns}))
    try:
        made = build(filled, crossing="sort")
    except InputError:
        return (None,) * len(parts)
    return tuple(replace(each, y=np.full(each.n, np.nan)) for each in made)


def beliefs_of(cells: ParsedColumns, crossing: Crossing) -> tuple[Prediction, ...]:
    """The predictions with uncertainty that the columns of one model hold."""
    roles = cells.roles
    beliefs: list[Prediction] = []

    def table(role: str) -> FloatArray:
        return np.column_stack([cells.columns["number", name] for name in roles[role]])

    if roles.classes:
        column = cells.one("label_set")
        beliefs.append(
            label_sets(
                cells.labels,
                dict(zip(roles.labels, cells.of("softmax").values(), strict=True)),
                None if column is None else (column.codes, column.labels.tolist()),
                roles.coverages[0],
            )
        )
    if roles["lower"]:
        shares = [share for share in roles.coverages if share is not None]
        beliefs.append(Intervals(table("lower"), table("upper"), shares or None, crossing))
    if roles["sd"] or roles["variance"]:
        beliefs.append(Distribution.normal(cells.one("mean"), _spread(cells)))
    if roles.law is not None:
        parameters = {
            name: cells.columns["number", value] if isinstance(value, str) else value
            for name, value in roles.law.parameters.items()
        }
        beliefs.append(Distribution(roles.law.name, parameters, n=cells.n))
    if roles["quantiles"]:
        beliefs.append(Quantiles(roles.levels, table("quantiles"), crossing))
    if roles["samples"]:
        beliefs.append(Samples.owning(table("samples")))
    return tuple(beliefs)


def _spread(cells: ParsedColumns) -> FloatArray:
    """The stated standard deviations, or the roots of the stated variances."""
    if cells.roles["sd"]:
        return np.asarray(cells.one("sd"))
    variance = np.asarray(cells.one("variance"))
    if (variance < 0).any():
        row = int(np.argmax(variance < 0))
        name = quoted(cells.roles["variance"][0])
        raise InputError(
            f"column {name} must hold variances of at least 0, got {variance[row]:g} (first at "
            f"row {row})"
        )
    return np.asarray(np.sqrt(variance))


def crossing_notes(made: Sequence[EvalSet]) -> tuple[str, ...]:
    """What to say of quantiles and of ends of intervals that crossed."""
    return tuple(
        CountedNote.of(
            belief.crossed_rows,
            "row",
            f" of the model {quoted(evalset.model)} had {_CROSSING[belief.kind]} that crossed; "
            "each was sorted",
        )
        for evalset in made
        for belief in evalset.beliefs
        if isinstance(belief, Quantiles | Intervals) and belief.crossed_rows
    )


_CROSSING: Final = {Quantiles.kind: "quantiles", Intervals.kind: "ends of intervals"}
