"""Numbers printed in the paper that proposes CCE, to set beside one's own.

Young et al. 2025, Assessing the Probabilistic Fit of Neural Regressors via Conditional
Congruence: figures 1, 2 and 14, tables 1, 2 and 3.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, final

import numpy as np

from howsure.core.registry import check_known
from howsure.studies.congruence.result import Reliability

_SWAPPED: Final = ("poisson", "gaussian")


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
        `howsure.studies.congruence.result.CongruenceResult.table`.
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
    text = files("howsure.studies.congruence").joinpath("published.csv").read_text("utf-8")
    return tuple(
        Published(
            row["source"],
            row["task"],
            row["model"],
            row["measure"],
            float(row["value"]),
            row["note"],
        )
        for row in csv.DictReader(text.splitlines())
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
    sources = dict.fromkeys(row.source for row in _all())
    if source is not None:
        check_known(source, sources, "source")
    return tuple(
        row
        for row in _all()
        if source in (None, row.source)
        and task in (None, row.task)
        and model in (None, row.model)
        and measure in (None, row.measure)
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

    def column(measure: str) -> list[float]:
        return [rows[task, _place(task, model, unswap=unswap), measure] for task, model in pairs]

    draws = [rows[(*pair, "cce_draws_sd")] / rows[(*pair, "cce")] for pair in pairs]
    return Reliability(
        task=tuple(task for task, _ in pairs),
        model=tuple(model for _, model in pairs),
        cce=np.array(column("cce_cv")),
        ece=np.array(column("ece_cv")),
        cce_draws=np.array(draws),
    )


def _place(task: str, model: str, *, unswap: bool) -> str:
    """Where a model's coefficients are printed."""
    if not unswap or task != "COCO-People" or model not in _SWAPPED:
        return model
    return _SWAPPED[1 - _SWAPPED.index(model)]
