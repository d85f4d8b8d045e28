"""A report on rows that are watched: which to distrust, and whether that served."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.formats import p_words, percent
from howsure.core.records import Curve, Direction, Notion, Record, Table
from howsure.core.threads import one_thread
from howsure.inputs import Unlabelled
from howsure.metrics.congruence import NullReference
from howsure.metrics.congruence.exhibits import (
    LOSSES,
    losses_of,
    map_table,
    rejection_curves,
)
from howsure.predictions import EvalSet
from howsure.report.assess import missing_fact
from howsure.report.assessment import Assessment
from howsure.report.content import Tone, VerdictLine
from howsure.report.images import image_table
from howsure.report.monitor import Monitor, scored

SHOWN = 200
PICTURES = 12
MANY = 0.1
"""Share of flagged rows beyond which one should look, whatever the mean says."""
WITHHELD = 0.2
"""Share of rows whose rejection the verdict tells."""
FEWEST = 5
"""The fewest rows withheld of which it tells."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Scores of all rows, and what there is to say of them.

    Attributes
    ----------
    table : Table
        ``monitor``, a line for each row.
    report : Assessment
        Verdict, map, the rows of the highest errors; rejection where labels are there.
    """

    table: Table
    report: Assessment

    def columns(self, new: Unlabelled) -> dict[str, npt.NDArray[Any]]:
        """Scores beside the inputs, as columns of one table."""
        columns = dict(self.table.columns)
        for name, value in {**new.features, **new.texts}.items():
            columns[name if name not in columns else f"{name} (input)"] = value
        return columns


@one_thread()
def watch(
    monitor: Monitor,
    new: Unlabelled,
    *,
    facts: Mapping[str, str] | None = None,
    command: str = "",
) -> Watched:
    """Score rows and say which to distrust."""
    grid = monitor.inputs(new.features, new.embedding)
    null = monitor.compare(grid)
    table = scored(null, new.names, monitor.part.model)
    curves: tuple[Curve, ...] = ()
    if new.labelled is not None:
        held = replace(new.labelled, model=monitor.part.model)
        curves = rejection_curves(held, null.point_observed[new.places])
    lines = [_headline(table, null)]
    if new.labelled is not None:
        lines += _rejection_lines(new.labelled, null.point_observed[new.places])
    report = Assessment(
        lines=tuple(lines),
        records=(_record(monitor, null),),
        curves=curves,
        tables=_tables(monitor, new, grid, null, table),
        facts={
            **_facts(monitor, new),
            **(facts or {}),
            **missing_fact(new.images, new.names),
        },
        command=command,
        title="Which rows to distrust?",
    )
    return Watched(table, report)


def _headline(table: Table, null: NullReference) -> VerdictLine:
    flagged = table.columns["flagged"]
    text = (
        f"{percent(float(flagged.mean()))} of {len(flagged):,} rows are flagged; 5 % would be if "
        f"the model were right (mean CCE {null.observed:.3g}, a right model's would be "
        f"{null.expected:.3g}, {p_words(null.p_value)})."
    )
    tone: Tone = "good" if flagged.mean() <= MANY else "undecided"
    if null.p_value < 0.05:
        tone = "bad"
    return VerdictLine(text, tone, "Is the belief right where these rows lie?")


def _rejection_lines(held: EvalSet, scores: FloatArray) -> list[VerdictLine]:
    """What withholding the rows of highest error does to each loss; chance is told apart."""
    count = round(WITHHELD * len(scores))
    if count < FEWEST:
        return []
    order = np.argsort(-scores, kind="stable")
    lines = []
    for name, losses in losses_of(held).items():
        out, kept = losses[order[:count]], losses[order[count:]]
        error = math.sqrt(out.var(ddof=1) / len(out) + kept.var(ddof=1) / len(kept))
        apart = float(out.mean() - kept.mean())
        way = "does not change, beyond chance," if abs(apart) <= 1.96 * error else ""
        way = way or ("lowers" if apart > 0 else "raises")
        best = np.sort(losses)[: len(kept)].mean()
        text = (
            f"Withholding the {percent(WITHHELD, 0)} of highest CCE {way} the mean "
            f"{LOSSES[name]} of {len(scores):,} labelled rows: {losses.mean():.4g} before, as in "
            f"random order, {kept.mean():.4g} after; by the losses themselves {best:.4g}."
        )
        lines.append(VerdictLine(text, "info", "Does it help to withhold suspect rows?"))
    return lines


def _record(monitor: Monitor, null: NullReference) -> Record:
    return Record(
        metric="mean_cce",
        value=null.observed,
        n=float(len(null.point_observed)),
        null=null.expected,
        null_upper=null.upper,
        p=null.p_value,
        direction=Direction.LOWER,
        notion=Notion.POINTWISE,
        model=monitor.part.model,
        source="embedding",
        options={
            "mode": monitor.mode,
            "reference_rows": float(monitor.part.n),
            "regularization": monitor.options.regularization,
        },
    )


def _tables(
    monitor: Monitor,
    new: Unlabelled,
    grid: npt.NDArray[Any],
    null: NullReference,
    table: Table,
) -> tuple[Table, ...]:
    """A map, the rows of the highest errors, and their images."""
    values = null.point_observed
    map_ = map_table(
        np.asarray(monitor.reference.inputs.more(grid, "inputs"), dtype=np.float64),
        values,
        null,
        new.names,
        second=("CCE", values),
        layout=monitor.options.layout,
        model=monitor.part.model,
        seed=monitor.seed,
    )
    order = np.argsort(-values, kind="stable")
    columns = dict(table.columns)
    for name, value in {**new.features, **new.texts}.items():
        columns.setdefault(name, value)
    worst = {name: column[order[:SHOWN]] for name, column in columns.items()}
    notes = table.notes
    if len(order) > SHOWN:
        notes += f" The {SHOWN} of {len(order):,} rows with the highest CCE."
    made = [map_, replace(table, columns=worst, notes=notes)]
    if new.images is not None:
        first = order[:PICTURES]
        rows = {name: column[first] for name, column in table.columns.items()}
        rows["kind"] = np.array(["new"] * len(first), dtype=object)
        chosen = replace(table, columns=rows)
        made.append(image_table(chosen, new.images[first], each=PICTURES))
    return tuple(made)


def _facts(monitor: Monitor, new: Unlabelled) -> dict[str, str]:
    facts = {
        "Rows": f"{len(new.names):,}",
        "Reference": f"{monitor.part.n:,} labelled rows",
        "Seed": str(monitor.seed),
    }
    if len(new.places):
        facts["Labelled rows"] = f"{len(new.places):,}"
    return facts
