"""Several models at a glance: models by questions, and which of them are best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from howsure.core.records import Table
from howsure.core.text import headed
from howsure.report.document import TONES

if TYPE_CHECKING:
    from howsure.engine.finding import Standing

OVERVIEW = "overview"
"""The name of the table."""
LEGEND = "  ".join(" ".join(told) for tone, told in TONES.items() if tone != "info")


def overview(states: Mapping[str, Mapping[str, str]], ranked: Standing | None) -> Table:
    """Models by questions: the state of each finding, the score, and whether any model is better.

    The models of the lowest score come first.
    """
    from howsure.verdict.findings import questions

    scored = () if ranked is None else ranked.models
    names = [*scored, *(name for name in states if name not in scored)]
    columns: dict[str, npt.NDArray[Any]] = {"model": np.array(names, dtype=object)}
    labels, notes = {}, "The models share no score."
    if ranked is not None:
        left = len(names) - len(scored)
        best = [*np.where(ranked.best, "yes", "no"), *([""] * left)]
        columns["best_set"] = np.array(best, dtype=object)
        told = {"score": ranked.values, "lower": ranked.lower, "upper": ranked.upper}
        columns |= {name: np.append(held, np.full(left, np.nan)) for name, held in told.items()}
        labels = {"score": headed(ranked.score.title), "best_set": "In the best set"}
        how = f" ({ranked.score.how})" if ranked.score.how else ""
        out = "".join(f" {name} is not compared: {why}." for name, why in ranked.left_out.items())
        notes = (
            f"Ordered by {ranked.score.title}{how}. The best set are the models that no other "
            f"provably beats, all pairs tested jointly at 5 %.{out}"
        )
    for asked in questions():
        if any(asked in state for state in states.values()):
            marks = [states[name].get(asked, "") for name in names]
            columns[asked] = np.array(marks, dtype=object)
    return Table(name=OVERVIEW, columns=columns, labels=labels, notes=notes)
