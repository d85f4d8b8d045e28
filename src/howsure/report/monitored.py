"""A report on rows that a monitor scored: which to distrust, and whether that served."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray
from howsure.core.brief import brief_repr
from howsure.core.formats import p_words, percent
from howsure.core.records import Curve, Direction, Notion, Record, Table
from howsure.core.threads import one_thread
from howsure.figures.text import one_line
from howsure.inputs import Unlabelled
from howsure.metrics.congruence.examples import (
    LOSSES,
    losses_of,
    map_table,
    rejection_curves,
)
from howsure.metrics.finding import State
from howsure.predictions import EvalSet
from howsure.report.assess import missing_fact
from howsure.report.assessment import Assessment, Basis, Later
from howsure.report.document import VerdictLine
from howsure.report.images import image_table
from howsure.report.monitor import FLAGGED, LABELS, OUTSIDE, Judged, Monitor, scored
from howsure.report.no_rows import new_without_rows, of_many_rows
from howsure.stats.binomial import clopper_pearson, holm
from howsure.stats.neighbours import more_outside
from howsure.verdict import Finding

SHOWN = 200
PICTURES = 12
POWER = 0.9
"""Share of worlds in which a bias of half an sd must show for no fault to be evidence of none."""
OUTERMOST = 50
"""Rows outside the reference that a report shows."""
WITHHELD = 0.2
"""Share of rows whose rejection the verdict tells."""
FEWEST = 5
"""The fewest rows withheld of which it tells."""
UNREAD = (
    "Errors are those of the reference's model at the new inputs. Predictions in the new table are "
    "used only in rows that have y."
)
SUPPORT_ONLY = "The reference states no distribution, so rows are judged by where they lie alone."
_ONE_INSIDE = "The row lies inside the reference."


@dataclass(frozen=True, slots=True)
class Monitored:
    """Scores of all rows, and what there is to say of them."""

    table: Table  # `monitor`, a line for each row
    # verdict, map, the rows of the highest errors; rejection where labels are there
    report: Assessment

    __repr__ = brief_repr

    def columns(self, new: Unlabelled) -> dict[str, npt.NDArray[Any]]:
        """Scores beside the inputs, as columns of one table."""
        return _beside(self.table, new)


@one_thread()
def monitored(
    monitor: Monitor,
    new: Unlabelled,
    *,
    facts: Mapping[str, str] | None = None,
    command: str = "",
    no_rows: bool = False,
) -> Monitored:
    """Say which rows can be judged, and which of these to distrust, or only how many."""
    if no_rows:
        new = new_without_rows(new)
    judged = monitor.judge(new.features, new.embedding)
    table = scored(monitor, judged, new.names)
    findings = findings_of(monitor, judged, table)
    lines = [VerdictLine(found.sentence, found.state, found.question) for found in findings]
    curves: tuple[Curve, ...] = ()
    if new.labelled is not None and monitor.reference is not None:
        inside = ~judged.outside[new.places]
        scores = table.columns["cce"][new.places[inside]]
        if len(scores):
            held = replace(new.labelled.take(np.flatnonzero(inside)), model=monitor.part.model)
            curves = rejection_curves(held, scores)
            lines += _rejection_lines(held, scores)
    lines.append(VerdictLine(_judged(monitor), "info", "Which predictions are judged?"))
    basis = Basis(
        records=(_record(monitor, judged),),
        curves=curves,
        tables=_tables(monitor, new, judged, table),
        facts={
            **_facts(monitor, new, judged),
            **(facts or {}),
            **missing_fact(new.images, new.names),
        },
    )
    report = Assessment(
        lines=tuple(lines),
        findings=findings,
        brief=basis,
        whole=Later(None, basis),
        command=command,
        title=f"Which rows{_of(facts)} can be trusted?",
    )
    return Monitored(table, of_many_rows(report) if no_rows else report)


def _beside(table: Table, new: Unlabelled) -> dict[str, npt.NDArray[Any]]:
    columns = dict(table.columns)
    for name, value in {**new.features, **new.texts}.items():
        columns[name if name not in columns else f"{name} (input)"] = value
    return columns


def _judged(monitor: Monitor) -> str:
    return UNREAD if monitor.reference is not None else SUPPORT_ONLY


def _of(facts: Mapping[str, str] | None) -> str:
    source = (facts or {}).get("Source", "")
    return f" of {one_line(source, 60)}" if source else ""


def findings_of(monitor: Monitor, judged: Judged, table: Table) -> tuple[Finding, ...]:
    """Are rows inside the reference, and is the model right around them? One Holm step for both."""
    count, rows = int(judged.outside.sum()), len(judged.outside)
    low, high = clopper_pearson(count, rows)
    tests = [more_outside(judged.support_p_value, monitor.part.n, OUTSIDE)]
    near = None if judged.null is None else judged.null.near
    if near is not None:
        tests.append(near.p_value)
    adjusted = holm(np.array(tests))
    within = count == 0 or float(high) - monitor.chance <= 0.03
    support = _finding(
        "outside",
        "Do rows lie where the reference does?",
        (count / rows - monitor.chance, float(low) - monitor.chance, float(high) - monitor.chance),
        (tests[0], float(adjusted[0]), 0.01),
        within,
        "share",
        monitor.part.model,
    )
    found = [replace(support, sentence=_support_words(support, count, rows, monitor.chance))]
    if near is not None:
        usual = float(near.replicates.mean())
        ratio = near.observed / usual if usual > 0 else 1.0
        spread = 1.96 * float(near.replicates.std(ddof=1)) / usual if usual > 0 else math.inf
        inside, flagged = rows - count, int(table.columns["flagged"].sum())
        few = flagged <= math.ceil(special.bdtrik(0.95, inside, FLAGGED))
        made = _finding(
            "congruence",
            "Is the prediction right around the rows inside?",
            (ratio - 1.0, ratio - 1.0 - spread, ratio - 1.0 + spread),
            (tests[1], float(adjusted[1]), 0.02),
            near.power >= POWER and few,
            "ratio − 1",
            monitor.part.model,
        )
        found.append(replace(made, sentence=_near_words(made, flagged, inside, near.power)))
    return tuple(sorted(found, key=lambda finding: finding.state != "bad"))


def _finding(
    name: str,
    question: str,
    effect: tuple[float, float, float],
    test: tuple[float, float, float],
    good: bool,
    unit: str,
    model: str,
) -> Finding:
    """An effect with its ends; a p-value alone and jointly, and what does no harm."""
    size, low, high = effect
    p, adjusted, tolerance = test
    state: State = "good" if good else "undecided"
    if adjusted < 0.05:
        state = "bad" if size > tolerance else "negligible"
    elif p < 0.05 and size > tolerance:
        state = "caution"
    return Finding(
        id=name,
        question=question,
        state=state,
        effect=size,
        unit=unit,
        lower=low,
        upper=high,
        p=p,
        p_adjusted=adjusted,
        tolerance=tolerance,
        cost=abs(size) / tolerance,
        where="",
        sentence="",
        model=model,
    )


def _support_words(found: Finding, count: int, rows: int, chance: float) -> str:
    if count == 0:
        return f"All {rows:,} rows lie inside the reference." if rows > 1 else _ONE_INSIDE
    if rows == 1:
        return "The row lies outside the reference: there the model cannot be judged."
    text = f"{percent(count / rows)} of {rows:,} rows lie outside the reference"
    if found.state == "good":
        return f"{text}, as may happen by chance ({percent(chance)}). These cannot be judged."
    return f"{text} ({percent(chance)} would by chance): there the model cannot be judged."


def _near_words(found: Finding, flagged: int, rows: int, power: float) -> str:
    which = f"the {rows:,} rows" if rows > 1 else "the row"
    text = (
        f"Around {which} inside, the prediction is {1.0 + found.effect:.2f} times as far from the "
        f"data as a correctly specified model's ({p_words(found.p)})."
    )
    if flagged:
        text += (
            f" {percent(flagged / rows)} are flagged; by chance up to {percent(FLAGGED)} would be."
        )
    else:
        text += " No row is flagged."
    if found.state == "good":
        return f"{text} A bias of half an sd would show."
    if found.state == "undecided" and power < POWER:
        return f"{text} The reference is too small to show a bias of half an sd."
    return text


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
            f"Withholding the {percent(WITHHELD, 0)} of highest CCE {way} the mean {LOSSES[name]} "
            f"of {len(scores):,} labelled rows: {losses.mean():.4g} before, {kept.mean():.4g} "
            f"after. The best order would reach {best:.4g}."
        )
        lines.append(VerdictLine(text, "info", "Does it help to withhold suspect rows?"))
    return lines


def _record(monitor: Monitor, judged: Judged) -> Record:
    null = judged.null
    options: dict[str, str | float] = {
        "mode": monitor.mode or "support",
        "reference_rows": float(monitor.part.n),
        "regularization": monitor.options.regularization,
        "rows_outside": float(judged.outside.sum()),
    }
    record = Record(
        metric="mean_cce",
        value=math.nan,
        direction=Direction.LOWER,
        notion=Notion.POINTWISE,
        model=monitor.part.model,
        source="embedding",
        reason=(
            "the reference states no distribution"
            if monitor.reference is None
            else "every row lies outside the reference"
        ),
        options=options,
    )
    if null is None:
        return record
    return replace(
        record,
        value=null.observed,
        n=float(len(null.point_observed)),
        null=null.expected,
        null_upper=null.upper,
        p=null.p_value,
        reason="",
        options={**options, "p_of": "a model correctly specified throughout the reference"},
    )


def _tables(monitor: Monitor, new: Unlabelled, judged: Judged, table: Table) -> tuple[Table, ...]:
    """A map, the rows of the highest errors and their images, and the outermost rows."""
    inside = np.flatnonzero(~judged.outside)
    columns = _beside(table, new)
    made = [_map(monitor, new, judged, table)]
    if judged.null is not None:
        values = judged.null.point_observed
        order = inside[np.argsort(-values, kind="stable")]
        notes = table.notes
        if len(order) > SHOWN:
            notes += f" The {SHOWN} of {len(order):,} rows inside with the highest CCE."
        worst = {name: column[order[:SHOWN]] for name, column in columns.items()}
        made.append(replace(table, columns=worst, notes=notes))
        if new.images is not None:
            first = order[:PICTURES]
            rows = {name: column[first] for name, column in table.columns.items()}
            rows["kind"] = np.array(["new"] * len(first), dtype=object)
            chosen = replace(table, columns=rows)
            made.append(image_table(chosen, new.images[first], each=PICTURES))
    if judged.outside.any():
        made.append(outermost(judged, columns, monitor.part.model))
    return tuple(made)


def _map(monitor: Monitor, new: Unlabelled, judged: Judged, table: Table) -> Table:
    """All new rows over a plane: first of the input by which most rows lie outside."""
    null, columns = judged.null, table.columns
    if null is not None:
        null = replace(null, point_expected=columns["perfect"], point_p_value=columns["p_value"])
    why = judged.why[judged.outside].tolist()
    named = {name: sum(str(text).startswith(f"{name} ") for text in why) for name in new.features}
    return map_table(
        judged.grid,
        columns.get("cce", np.full(len(new.names), math.nan)),
        null,
        new.names,
        second=("Distance to the reference, in sd", judged.distance),
        features=new.features,
        first=sorted((name for name in named if named[name]), key=lambda name: -named[name]),
        outside=judged.outside,
        layout=monitor.options.layout,
        model=monitor.part.model,
        seed=monitor.seed,
    )


def outermost(judged: Judged, columns: Mapping[str, npt.NDArray[Any]], model: str = "") -> Table:
    """The table ``outside``: rows outside the reference, the farthest first."""
    rows = np.flatnonzero(judged.outside)
    rows = rows[np.argsort(-judged.distance[rows], kind="stable")]
    notes = "Rows that the model cannot be judged at, farthest from the reference first."
    if len(rows) > OUTERMOST:
        notes += f" The first {OUTERMOST} of {len(rows):,}."
    rows = rows[:OUTERMOST]
    own = ("distance", "outside", "cce", "perfect", "upper", "p_value", "near_p_value", "flagged")
    kept = {name: column[rows] for name, column in columns.items() if name not in own}
    first = {name: kept.pop(name) for name in ("row", "why", "support_p_value")}
    return Table(
        name="outside",
        columns={**first, "distance": judged.distance[rows], **kept},
        labels=LABELS,
        model=model,
        notes=notes,
    )


def _facts(monitor: Monitor, new: Unlabelled, judged: Judged) -> dict[str, str]:
    facts = {
        "Rows": f"{len(new.names):,}",
        "Reference": f"{monitor.part.n:,} labelled rows",
        "Rows outside": f"{int(judged.outside.sum()):,}",
        "Predictions": _judged(monitor),
        "Seed": str(monitor.seed),
    }
    if len(new.places):
        facts["Labelled rows"] = f"{len(new.places):,}"
    return facts
