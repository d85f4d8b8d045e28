"""What a forecast knows within each group: its skill against the y of the same group."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import UnanswerableError
from howsure.core.formats import listed
from howsure.core.records import Table
from howsure.metrics.skill import FEWEST
from howsure.stats.estimate import Estimate, skewed_ends, spread_of

if TYPE_CHECKING:
    from howsure.metrics.measure import Evaluation
    from howsure.metrics.view import View

MOST_GROUPS = 40
_TITLES = {"crps_skill": "CRPS", "interval_skill": "interval score"}
"""The measures of skill, the finest first, and the scores that they compare."""


def skill_of_groups(
    view: View, codes: IntArray, wanted: Iterable[int], coverage: float
) -> tuple[str, FloatArray, FloatArray]:
    """The measure, the skill of groups (NaN of others), and each row's influence on its own's."""
    from howsure.metrics.measure import answering  # which reads the catalogue

    name, form, arrays, keywords = answering(view, tuple(_TITLES), coverage)
    weights = view.evalset.multiplicities
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    value, influence = np.full(len(parts), np.nan), np.zeros(len(codes))
    for group in wanted:
        rows = parts[group]
        held = [
            array if need == "levels" else array[rows]
            for need, array in zip(form.needs, arrays, strict=True)
        ]
        told = {} if weights is None else {"weights": weights[rows]}
        found: Estimate = form.function(*held, **keywords, **form.options, **told)
        value[group] = found.value
        if found.influence is not None:
            influence[rows] = found.influence
    return name, value, influence


def skill_by_group(evaluation: Evaluation) -> list[Table]:
    """Skill of each group of at least 30 rows, with intervals that hold for all at once."""
    from howsure.metrics.groups import Grouping, rows_in_groups  # which reads the catalogue

    view, held = evaluation.view, evaluation.evalset
    chosen: list[tuple[Grouping, FloatArray, IntArray]] = []
    left_out: list[str] = []
    count = 0
    for name, column in held.groups.items():
        grouping = Grouping(name, column.codes, tuple(map(str, column.labels.tolist())))
        n = rows_in_groups(held, grouping)
        large = np.flatnonzero(n >= max(FEWEST, held.fewest))
        if count + len(large) > MOST_GROUPS:
            left_out.append(name)
        elif len(large):
            chosen.append((grouping, n, large))
            count += len(large)
    lines: list[tuple[str, str, float, float, float, str, float]] = []
    for grouping, n, large in chosen:
        codes = grouping.codes
        try:
            score, value, influence = skill_of_groups(view, codes, large, view.headline)
        except UnanswerableError:  # a record of the same question tells the reason
            return []
        spread = spread_of(influence, held.weights, held.units, codes, len(value))
        low, high = skewed_ends(value, spread, 1.0 - (1.0 - view.confidence) / count)
        lines += [
            (
                grouping.name,
                grouping.labels[group],
                value[group],
                low[group],
                min(high[group], 1.0),
                _TITLES[score],
                n[group],
            )
            for group in large.tolist()
            if math.isfinite(low[group] + high[group])
        ]
    if not lines:
        return []
    heads = ("grouping", "group", "skill", "lower", "upper", "score", "n")
    notes = [
        f"Intervals are simultaneous over {count} groups (Bonferroni). The y of a group are known "
        "only afterwards."
    ]
    if left_out:
        notes.append(f"Left out, past {MOST_GROUPS} groups: {listed(left_out, most=3)}.")
    return [
        Table(
            name="skill_by_group",
            columns={
                head: np.array(values)
                for head, values in zip(heads, zip(*lines, strict=True), strict=True)
            },
            model=held.model,
            notes=" ".join(notes),
        )
    ]
