"""Rows to look at: y beside its interval, the same rows for every model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from howsure.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.formats import level
from howsure.core.labels import Categories
from howsure.core.records import Table, TableLayout
from howsure.core.rng import row_keys, row_uniforms
from howsure.engine.measure import Evaluation
from howsure.predictions import content_order

TABLES = {"intervals": TableLayout(listed=False, figure="intervals")}
"""How y beside its interval is shown."""

SHOWN = 120
"""The most rows: more would merge into one another in a narrow figure."""
_MIDPOINT = "middle of the interval"
_WORDS = {"mean": "predicted mean", "median": "median", "midpoint": _MIDPOINT}


def interval_tables(
    evaluations: Sequence[Evaluation], *, seed: int = 0
) -> tuple[list[Table], list[str]]:
    """y beside its interval in a few rows of each model, and why a model has none.

    Rows are chosen by their content, so their order has no say, and are the same for all models.
    """
    made: list[Table] = []
    reasons: list[str] = []
    if not evaluations:
        return made, reasons
    rows = _chosen(evaluations, seed)
    for evaluation in evaluations:
        if not any(prediction.answers("interval") for prediction in evaluation.evalset.predictions):
            continue
        try:
            made.append(_table(evaluation, rows))
        except UnanswerableError as reason:
            reasons.append(
                f"intervals of {evaluation.evalset.model} cannot be drawn with y: {reason}"
            )
    return made, reasons


def _chosen(evaluations: Sequence[Evaluation], seed: int) -> IntArray:
    """Places of the rows to show, in an order that their content decides."""
    evalsets = [evaluation.evalset for evaluation in evaluations]
    order = content_order(evalsets)
    draws = row_uniforms(seed, "interval rows", row_keys(evalsets[0].y[order]))
    return np.asarray(order[np.argsort(draws, kind="stable")[:SHOWN]])


def _table(evaluation: Evaluation, rows: IntArray) -> Table:
    """The rows of one model, in order of time, or from narrow to wide."""
    evalset, view = evaluation.evalset, evaluation.view
    coverage = min(evaluation.coverages, key=lambda each: (abs(each - 0.9), each))
    lower, upper = (view.get(end, coverage)[rows].astype(np.float64) for end in ("lower", "upper"))
    centre, what = _centres(evaluation, rows, lower, upper)
    unseen = np.isinf(lower) & np.isinf(upper) | ~np.isfinite(centre)
    if unseen.all():
        raise UnanswerableError("every interval has an infinite end")
    with np.errstate(invalid="ignore"):
        width = upper - lower
    keys: list[AnyArray] = [centre, width]
    if evalset.time is not None:
        keys.append(Categories.checked(evalset.time, "time").codes[rows])
    order = np.lexsort(keys)
    order = order[~unseen[order]]
    picked = rows[order]
    inside = np.asarray(view.get("covered", coverage), dtype=bool)[picked]
    columns: dict[str, AnyArray] = {"row": evalset.row_names()[picked]}
    if evalset.time is not None:
        columns["time"] = evalset.time[picked]
    columns |= {
        "y": evalset.y[picked],
        "point": centre[order],
        "lower": lower[order],
        "upper": upper[order],
        "covered": np.where(inside, "yes", "no").astype(object),
        "nominal": np.full(len(picked), coverage),
    }
    return Table(
        name="intervals",
        columns=columns,
        labels={"point": what},
        model=evalset.model,
        notes=_in_words(inside, evalset.n, int(unseen.sum()), coverage),
    )


def _centres(
    evaluation: Evaluation, rows: IntArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, str]:
    """What the model foretells of each row, or the middle of its interval; and which it is."""
    view = evaluation.view
    try:
        point: FloatArray = view.get("point")[rows]
    except UnanswerableError:
        with np.errstate(invalid="ignore"):
            return np.asarray(lower + (upper - lower) / 2), _MIDPOINT
    answered = view.answered("point")
    return point, _WORDS.get("" if answered is None else answered.point_is, "prediction")


def _in_words(inside: BoolArray, n: int, unseen: int, coverage: float) -> str:
    """How many rows are shown of how many, and how many of them hold y."""
    shown, held = len(inside), int(inside.sum())
    plural = "row" if n == 1 else "rows"
    chance = ", chosen at random" if shown + unseen < n else ""
    which = f"{shown:,} of {n:,} {plural}{chance}" if shown < n else f"all {n:,} {plural}"
    claim = "" if math.isnan(coverage) else f"{level(coverage)} "
    told = [f"Shown: {which}.", f"The {claim}intervals contain y in {held:,} of them."]
    if unseen:
        told.append(f"Left out: {unseen:,} unbounded ones.")
    return " ".join(told)
