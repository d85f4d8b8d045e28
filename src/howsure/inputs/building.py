"""Arrays of columns become beliefs, and beliefs beside y become evaluation sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import InputError
from howsure.inputs.alignment import Part
from howsure.inputs.cells import Cells
from howsure.inputs.naming import normal_form
from howsure.inputs.source import quoted
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
    parts: Sequence[Part],
    kept: BoolArray,
    *,
    weights_kind: str | None,
    crossing: Crossing,
    embedding: FloatArray | None = None,
) -> tuple[EvalSet, ...]:
    """One evaluation set for each model.

    Parameters
    ----------
    parts : sequence of Part
        The models, their rows in one order.
    kept : ndarray of bool, shape (n,)
        The rows that miss nothing.
    weights_kind : str, optional
        What weights mean.
    crossing : {"error", "sort"}
        What to do with rows whose quantiles cross.
    embedding : ndarray of float, shape (k, e), optional
        Of the rows kept, where it is not held by columns.

    Raises
    ------
    InputError
        If a belief is impossible, or weights are no weights.
    """
    if not kept.all():
        parts = [part.take(kept) for part in parts]
    first = parts[0]
    shared = _shared(first, weights_kind)
    if embedding is not None:
        shared["embedding"] = embedding
    made = []
    for part in parts:
        try:
            beliefs = _beliefs(part.cells, crossing)
            point = part.cells.roles.point
            made.append(
                EvalSet.checked(
                    beliefs=beliefs,
                    point=None if point is None else part.cells.numbers[point],
                    model=part.model,
                    **shared,
                )
            )
        except InputError as error:
            moved = len(part.places) != part.places[-1] + 1
            where = f"; rows of the model {quoted(part.model)}" if len(parts) > 1 else ""
            where += "; rows counted after the dropped ones" if moved and len(parts) == 1 else ""
            raise InputError(f"{part.cells.title}: {error}{where}") from error
    return tuple(made)


def _shared(part: Part, weights_kind: str | None) -> dict[str, Any]:
    """What every model's evaluation set holds alike."""
    cells, roles = part.cells, part.cells.roles
    names = cells.names
    if names is None and part.places[-1] + 1 != len(part.places):
        names = part.places
    weights = None if roles.weights is None else cells.numbers[roles.weights]
    if weights_kind is None and roles.weights is not None:
        important = normal_form(roles.weights).startswith("importance")
        weights_kind = "importance" if important else "frequency"
    embedding = [cells.vectors[name] for name in roles.embedding]
    return {
        "y": cells.numbers[roles.y],
        "features": {
            name: column.categories().values() if isinstance(column, Labels) else column
            for name, column in cells.features.items()
        },
        "embedding": np.hstack(embedding) if embedding else None,
        "groups": {name: cells.labels[name].categories() for name in roles.groups},
        "weights": weights,
        "weights_kind": weights_kind or "frequency",
        "cluster": None if roles.cluster is None else cells.labels[roles.cluster].categories(),
        "time": cells.time,
        "rows": names,
    }


def _beliefs(cells: Cells, crossing: Crossing) -> tuple[Prediction, ...]:
    roles, numbers = cells.roles, cells.numbers
    beliefs: list[Prediction] = []
    if roles.intervals:
        lower = np.column_stack([numbers[pair.lower] for pair in roles.intervals])
        upper = np.column_stack([numbers[pair.upper] for pair in roles.intervals])
        shares = [pair.coverage for pair in roles.intervals if pair.coverage is not None]
        beliefs.append(Intervals(lower, upper, shares or None))
    if roles.mean is not None and roles.sd is not None:
        beliefs.append(Distribution.normal(numbers[roles.mean], numbers[roles.sd]))
    if roles.law is not None:
        parameters = {
            name: numbers[value] if isinstance(value, str) else value
            for name, value in roles.law.parameters.items()
        }
        beliefs.append(Distribution(roles.law.name, parameters, n=cells.n))
    if roles.quantiles:
        table = np.column_stack([numbers[name] for _, name in roles.quantiles])
        beliefs.append(Quantiles([level for level, _ in roles.quantiles], table, crossing))
    if roles.samples:
        beliefs.append(Samples(np.column_stack([numbers[name] for name in roles.samples])))
    return tuple(beliefs)


def crossing_notes(made: Sequence[EvalSet]) -> tuple[str, ...]:
    """What to say of quantiles that crossed."""
    return tuple(
        f"{belief.crossed_rows} rows of the model {quoted(evalset.model)} had quantiles that "
        "crossed; each was sorted"
        for evalset in made
        for belief in evalset.beliefs
        if isinstance(belief, Quantiles) and belief.crossed_rows
    )
