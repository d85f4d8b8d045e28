"""Diagnosis without labels: does CCE at new inputs follow the model's true error there?

Labelled validation rows are the reference S; CCE is taken at test inputs, whose labels are not
used. In a simulated world the model's true error at x is known: the distance of its law from the
true one, in the very space of the kernel of y. Source: Young et al. 2025, section 4.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import checked
from howsure.core.errors import InputError
from howsure.core.records import Direction, Notion, Record, Table
from howsure.core.rng import child
from howsure.methods.interface import Fitted
from howsure.metrics.congruence.view import belief_of
from howsure.predictions import EvalSet
from howsure.studies.congruence.measure import (
    CongruenceMeasure,
    answer,
    congruence_at,
    losses,
    stated,
)
from howsure.studies.congruence.tasks import CongruenceTask
from howsure.studies.congruence.worlds import law_distance


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Diagnosis:
    """CCE at unlabelled inputs beside what is wrong there.

    Attributes
    ----------
    task, model : str
        Which model on what.
    x : ndarray of float, shape (n, e)
        Embeddings of the test inputs.
    cce : ndarray of float, shape (n,)
        By the validation part's labels.
    error : ndarray of float, shape (n,)
        Distance of the model's law from the true one.
    nll : ndarray of float, shape (n,)
        With the test part's labels; NaN where laws have no density.
    options : mapping of str to str or float
        The choices that decided the numbers.
    """

    task: str
    model: str
    x: FloatArray
    cce: FloatArray
    error: FloatArray
    nll: FloatArray
    options: Mapping[str, str | float] = field(default_factory=dict)

    def correlation(self, score: str = "cce") -> tuple[float, float]:
        """Spearman's and Pearson's correlation of a score with the true error; NaN if constant.

        Raises
        ------
        InputError
            If the score is neither ``cce`` nor ``nll``.
        """
        checked(score, Literal["cce", "nll"], "score")
        values = self.cce if score == "cce" else self.nll
        from scipy.stats import rankdata

        return _pearson(rankdata(values), rankdata(self.error)), _pearson(values, self.error)

    def records(self) -> tuple[Record, ...]:
        """The correlations of CCE, without labels, and of NLL, with labels."""
        return tuple(
            Record(
                metric=f"{score}_error_{name}",
                value=value,
                n=float(len(self.cce)),
                direction=Direction.HIGHER,
                notion=Notion.LOCAL,
                target=1.0,
                null=0.0,
                model=self.model,
                group=f"task={self.task}",
                reason="" if np.isfinite(value) else "a column is constant or missing",
                options=self.options,
            )
            for score in ("cce", "nll")
            for name, value in zip(("spearman", "pearson"), self.correlation(score), strict=True)
        )

    def table(self) -> Table:
        """One row a test input."""
        columns: dict[str, npt.NDArray[Any]] = {
            f"x{place}": self.x[:, place] for place in range(min(self.x.shape[1], 2))
        }
        columns |= {"cce": self.cce, "error": self.error, "nll": self.nll}
        return Table(
            name="congruence_diagnosis",
            columns=columns,
            labels={"error": "distance from the true distribution"},
            model=self.model,
            notes="CCE knows no label of these rows.",
        )


def diagnosis(
    task: CongruenceTask,
    models: Mapping[str, Fitted],
    *,
    measure: CongruenceMeasure | None = None,
    seed: int = 0,
) -> dict[str, Diagnosis]:
    """Compare CCE at unlabelled test inputs with the true error of each model.

    Parameters
    ----------
    task : CongruenceTask
        Of a simulated world: its law of y is known.
    models : mapping of str to Fitted
        Fitted to the training part.
    measure : CongruenceMeasure, optional
        How; by default the exact embedding of beliefs.
    seed : int
        Fixes draws, if any.

    Returns
    -------
    dict of str to Diagnosis

    Raises
    ------
    InputError
        If the task's truth is not known.
    UnanswerableError
        If a model has failed, or its laws have no exact embedding.
    """
    if task.truth is None:
        raise InputError(f"task must be simulated, with a known truth, got {task.name!r}")
    how = (measure or CongruenceMeasure(draws=None)).of_task(task)
    right = stated(task.truth(task.test.x), task.test.y, task.embed(task.test.x), model="truth")
    found = {}
    for label, model in models.items():
        val = answer(model, task.val, task.embed, model=label)
        test = answer(model, task.test, task.embed, model=label)
        sets = [
            congruence_at(
                val, test.embedding, how, child(seed, "congruence diagnosis", label, number)
            )
            for number in range(how.sets)
        ]
        found[label] = Diagnosis(
            task=task.name,
            model=label,
            x=_embedding(test),
            cce=np.mean(sets, axis=0),
            error=law_distance(
                belief_of(test, "exact"),
                belief_of(right, "exact"),
                float(1.0 / (2.0 * task.val.y.var(ddof=1))),
            ),
            nll=losses(test).get("nll", np.full(test.n, np.nan)),
            options=how.options(),
        )
    return found


def _embedding(held: EvalSet) -> FloatArray:
    assert held.embedding is not None
    return held.embedding


def _pearson(first: FloatArray, second: FloatArray) -> float:
    known = np.isfinite(first).all() and np.isfinite(second).all()
    if not known or len(first) < 2 or np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])
