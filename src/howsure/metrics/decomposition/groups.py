"""What a forecast knows within each group: its skill against the y of the same group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from howsure.core.records import Table
from howsure.metrics.skill import FEWEST

if TYPE_CHECKING:
    from howsure.metrics.measure import Evaluation

MOST_GROUPS = 40


def skill_by_group(evaluation: Evaluation) -> list[Table]:
    """Skill of each group of at least 30 rows, with intervals that hold for all at once."""
    from howsure.metrics.measure import evaluate  # which reads the catalogue

    held = evaluation.evalset
    mass = np.ones(held.n) if held.weights is None else held.weights.values
    groups: list[tuple[str, str, np.ndarray]] = []
    for name, column in held.groups.items():
        if len(column.labels) > MOST_GROUPS - len(groups):
            continue
        for code, label in enumerate(column.labels.tolist()):
            rows = np.flatnonzero(column.codes == code)
            if float(mass[rows].sum()) >= max(FEWEST, held.fewest):
                groups.append((name, str(label), rows))
    if not groups:
        return []
    view = evaluation.view
    confidence = 1.0 - (1.0 - view.confidence) / len(groups)
    found = []
    for name, label, rows in groups:
        part = evaluate(
            held.take(rows),
            coverages=[each for each in evaluation.coverages if not math.isnan(each)],
            metrics=["crps_skill", "interval_skill"],
            confidence=confidence,
            seed=view.seed,
        )
        known = [each for each in part.records if math.isfinite(each.lower + each.upper)]
        if known:
            found.append((name, label, known[0], len(rows)))
    if not found:
        return []
    titles = {"crps_skill": "CRPS", "interval_skill": "interval score"}
    columns = {
        "grouping": [name for name, *_ in found],
        "group": [label for _, label, *_ in found],
        "skill": [record.value for _, _, record, _ in found],
        "lower": [record.lower for _, _, record, _ in found],
        "upper": [record.upper for _, _, record, _ in found],
        "score": [titles[record.metric] for _, _, record, _ in found],
        "n": [rows for *_, rows in found],
    }
    return [
        Table(
            name="skill_by_group",
            columns={name: np.array(values) for name, values in columns.items()},
            model=held.model,
            notes=(
                f"Intervals are simultaneous over {len(groups)} groups (Bonferroni). The y of a "
                "group are known only afterwards."
            ),
        )
    ]
