"""All congruence studies of one task, side by side: what a page is drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.core.records import Record, Table
from howsure.studies.congruence.diagnosis import Diagnosis
from howsure.studies.congruence.perturbations import MonotonicityResult
from howsure.studies.congruence.rejection import Rejection
from howsure.studies.congruence.reliability import Reliability, reliability
from howsure.studies.congruence.result import CongruenceResult
from howsure.studies.congruence.robustness import Robustness


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelBeliefs:
    """What one model believes of the test part, in a few numbers a row.

    Attributes
    ----------
    model : str
        Whose beliefs.
    y : ndarray of float, shape (n,)
        What happened.
    point : ndarray of float, shape (n,)
        Point predictions.
    lower, upper : ndarray of float, shape (n,)
        Ends of the central interval of 95 %.
    x : ndarray of float, shape (n,), optional
        The inputs, where they are one number a row.
    pit : ndarray of float, shape (n,), optional
        P(Y ≤ y) by the model's law.
    seed : int
        Of data and model.
    """

    model: str
    y: FloatArray
    point: FloatArray
    lower: FloatArray
    upper: FloatArray
    x: FloatArray | None = None
    pit: FloatArray | None = None
    seed: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CongruenceStudies:
    """The studies of one task with the same fitted models.

    A plan of several seeds gives one of these for each seed; see `all_runs`.

    Attributes
    ----------
    task : str
        Its name.
    units : str
        Of y.
    counts : bool
        Whether y counts something.
    result : CongruenceResult
        Measures of every model, and of the truth where that is known.
    rejections : tuple of Rejection
        One a model; none where the study was not asked for, and so below.
    monotonicity : MonotonicityResult, optional
        Models under perturbations.
    diagnoses : tuple of Diagnosis
        One a model.
    robustness : tuple of Robustness
        One a model.
    beliefs : tuple of ModelBeliefs
        One a model, the truth too; none where they were not kept.
    seed : int
        Of data and models.
    notes : tuple of str
        What became of models without an answer, and what stands in place of what.

    Examples
    --------
    >>> studies = CongruenceStudies(
    ...     task="wave", units="counts", counts=True, result=CongruenceResult(runs=())
    ... )
    >>> studies.models, studies.records()
    ((), ())
    """

    task: str
    units: str
    counts: bool
    result: CongruenceResult
    rejections: tuple[Rejection, ...] = ()
    monotonicity: MonotonicityResult | None = None
    diagnoses: tuple[Diagnosis, ...] = ()
    robustness: tuple[Robustness, ...] = ()
    beliefs: tuple[ModelBeliefs, ...] = ()
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in order of first appearance."""
        return self.result.models

    @property
    def reliability(self) -> Reliability | None:
        """How much CCE and ECE vary; None without two bootstrap samples."""
        try:
            return reliability(self.result)
        except InputError:
            return None

    def records(self) -> tuple[Record, ...]:
        """The numbers of all studies."""
        found = list(self.result.records())
        parts: Iterable[Rejection | Diagnosis | Robustness] = (
            *self.rejections,
            *self.diagnoses,
            *self.robustness,
        )
        for part in parts:
            found += part.records()
        if self.monotonicity is not None:
            found += self.monotonicity.records()
        return tuple(found)

    def tables(self) -> tuple[Table, ...]:
        """The tables of all studies: models, their variation, then study by study."""
        found = [self.result.table()] if self.result.runs else []
        if self.reliability is not None:
            found.append(self.reliability.table())
        if self.monotonicity is not None:
            found.append(self.monotonicity.table())
        found += [part.table() for part in self.robustness]
        found += [part.table() for part in self.diagnoses]
        return tuple(found)


def all_runs(studies: Sequence[CongruenceStudies]) -> CongruenceResult:
    """Measures of several seeds, or of several tasks, as one comparison.

    Parameters
    ----------
    studies : sequence of CongruenceStudies
        At least one, with the same choices.

    Raises
    ------
    InputError
        If there is none, or choices differ.

    Examples
    --------
    >>> one = CongruenceStudies(
    ...     task="wave", units="counts", counts=True, result=CongruenceResult(runs=())
    ... )
    >>> all_runs([one, one]).runs
    ()
    """
    if not studies:
        raise InputError("studies must hold at least one, got none")
    first = dict(studies[0].result.options)
    for other in studies[1:]:
        if dict(other.result.options) != first:
            raise InputError("studies must have the same options of measures, got others")
    runs = tuple(run for part in studies for run in part.result.runs)
    return CongruenceResult(runs=runs, options=first)


def beliefs_of(
    model: str,
    y: FloatArray,
    point: FloatArray,
    ends: FloatArray,
    x: FloatArray,
    seed: int = 0,
    pit: FloatArray | None = None,
) -> ModelBeliefs:
    """Beliefs in a few numbers a row.

    Parameters
    ----------
    model : str
        Whose.
    y, point : ndarray of float, shape (n,)
        What happened, and what was predicted.
    ends : ndarray of float, shape (n, 2)
        Quantiles at 0.025 and 0.975.
    x : ndarray, shape (n, …)
        Inputs; kept where they are one number a row.
    seed : int
        Of data and model.
    pit : ndarray of float, shape (n,), optional
        P(Y ≤ y).

    Examples
    --------
    >>> y = np.zeros(2)
    >>> beliefs_of("m", y, y, np.array([[-1.0, 1.0]] * 2), np.ones((2, 1))).x
    array([1., 1.])
    """
    flat = np.asarray(x)
    single = flat.ndim < 3 and flat.size == len(y)
    return ModelBeliefs(
        model=model,
        y=y,
        point=point,
        lower=ends[:, 0],
        upper=ends[:, 1],
        x=np.asarray(flat.reshape(-1), dtype=np.float64) if single else None,
        pit=pit,
        seed=seed,
    )
