"""Numbers printed in the paper that proposes CCE, to set beside one's own.

Young et al. 2025, Assessing the Probabilistic Fit of Neural Regressors via Conditional
Congruence: figures 1, 2 and 14, tables 1, 2 and 3.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import final

import numpy as np

from howsure.core.registry import check_known
from howsure_studies.congruence.result import Reliability


@final
@dataclass(frozen=True, slots=True)
class Published:
    """One printed number.

    Attributes
    ----------
    source : str
        Which figure or table.
    task, model, measure : str
        What it is of; models by the names of heads, measures by those of
        `howsure_studies.congruence.result.CongruenceResult.table`.
    value : float
        The number.
    note : str
        What is doubtful about it.
    """

    source: str
    task: str
    model: str
    measure: str
    value: float
    note: str = ""


@cache
def _all() -> tuple[Published, ...]:
    text = files("howsure_studies.congruence").joinpath("published.csv").read_text("utf-8")
    _, *rows = csv.reader(text.splitlines())
    return tuple(
        Published(source, task, model, measure, float(value), note)
        for source, task, model, measure, value, note in rows
    )


def published_numbers(
    source: str | None = None,
    *,
    task: str | None = None,
    model: str | None = None,
    measure: str | None = None,
) -> tuple[Published, ...]:
    """Printed numbers, in the order of the paper.

    Parameters
    ----------
    source : str, optional
        ``figure 1``, ``figure 2``, ``figure 14``, ``table 1``, ``table 2`` or ``table 3``.
    task, model, measure : str, optional
        As in `Published`.

    Raises
    ------
    InputError
        If the source is unknown.

    Examples
    --------
    >>> [row.value for row in published_numbers("figure 2", measure="cce")]
    [0.12, 0.118, 0.028, 0.029]
    """
    if source is not None:
        check_known(source, dict.fromkeys(row.source for row in _all()), "source")
    wanted = {"source": source, "task": task, "model": model, "measure": measure}
    return tuple(
        row
        for row in _all()
        if all(value in (None, getattr(row, name)) for name, value in wanted.items())
    )


def published_reliability(*, unswap: bool = False) -> Reliability:
    """Coefficients of variation of table 2, for 25 pairs of a task and a model.

    Parameters
    ----------
    unswap : bool
        Whether the two cells of COCO-People that stand in each other's place, in both columns,
        are put right. Welch's test takes no notice, since columns keep their numbers.

    Examples
    --------
    >>> test = published_reliability().test
    >>> round(test.two_sided, 3), round(test.greater, 3)
    (0.377, 0.812)
    """
    rows = {(row.task, row.model, row.measure): row.value for row in published_numbers("table 2")}
    pairs = list(dict.fromkeys((task, model) for task, model, _ in rows))
    swapped = {"poisson": "gaussian", "gaussian": "poisson"}
    cells = [  # where each pair's coefficients are printed
        (task, swapped.get(model, model) if unswap and task == "COCO-People" else model)
        for task, model in pairs
    ]
    return Reliability(
        task=tuple(task for task, _ in pairs),
        model=tuple(model for _, model in pairs),
        cce=np.array([rows[(*cell, "cce_cv")] for cell in cells]),
        ece=np.array([rows[(*cell, "ece_cv")] for cell in cells]),
        cce_draws=np.array([rows[(*p, "cce_draws_sd")] / rows[(*p, "cce")] for p in pairs]),
    )
