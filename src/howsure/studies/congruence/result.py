"""What the congruence studies give: measures of one model on one task, and of many side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.brief import brief_repr
from howsure.core.errors import InputError
from howsure.core.records import Direction, Notion, Record, Table
from howsure.core.registry import check_known, unknown

TITLES: Final[Mapping[str, str]] = {
    "cce": "CCE",
    "cce_null": "CCE of a correctly specified model",
    "ece": "ECE",
    "ece_exact": "ECE, cells of discrete laws",
    "nll": "NLL",
    "nll_unnormalised": "NLL without constant",
    "mae": "MAE",
}
"""Measures of a run, with their titles; lower is better in all."""
_UNITS: Final[Mapping[str, str]] = {"nll": "nats", "nll_unnormalised": "nats", "mae": "y"}


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CongruenceRun:
    """One model, fitted once, judged on one task.

    Attributes
    ----------
    task, model : str
        What was judged on what.
    seed : int
        Of data and model.
    n : int
        Rows judged.
    values : mapping of str to float
        The measures of `TITLES` on the data as they are; CCE is the mean over sets of draws. NaN
        where a measure has no answer.
    repeats : ndarray of float, shape (samplings,)
        Mean CCE on the data as they are, one for each set of draws.
    bootstraps : mapping of str to ndarray of float
        Measures on bootstrap samples: ``cce`` of shape (bootstraps, samplings), others of shape
        (bootstraps,).
    rows : mapping of str to ndarray of float, shape (n,)
        ``cce`` at each row (mean over bootstraps and draws where the grid is fixed, else over
        draws), ``cce_sd`` over those, ``nll`` and ``error`` (absolute).
    reasons : mapping of str to str
        Why measures are missing.
    """

    task: str
    model: str
    seed: int
    n: int
    values: Mapping[str, float]
    repeats: FloatArray
    bootstraps: Mapping[str, FloatArray]
    rows: Mapping[str, FloatArray]
    reasons: Mapping[str, str] = field(default_factory=dict)

    __repr__ = brief_repr

    def value(self, measure: str) -> float:
        """A measure on the data as they are.

        Raises
        ------
        InputError
            If there is no such measure.
        """
        check_known(measure, TITLES, "measure")
        return self.values.get(measure, math.nan)

    @property
    def monte_carlo_sd(self) -> float:
        """Standard deviation of CCE over sets of draws, divisor K − 1; NaN for one set."""
        return _sd(self.repeats)

    def data_sd(self, measure: str) -> float:
        """Standard deviation over bootstrap samples (and draws within), divisor one less."""
        return _sd(self.bootstraps.get(measure, np.empty(0)))

    def bootstrap_mean(self, measure: str) -> float:
        """Mean over bootstrap samples (and draws within)."""
        held = self.bootstraps.get(measure, np.empty(0))
        return float(held.mean()) if held.size else math.nan

    def variation(self, measure: str) -> float:
        """Coefficient of variation over bootstrap samples: standard deviation by mean."""
        mean = self.bootstrap_mean(measure)
        return self.data_sd(measure) / mean if mean else math.nan


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CongruenceResult:
    """Models side by side, on one or several sets of data.

    Attributes
    ----------
    runs : tuple of CongruenceRun
        One for each task, model and seed.
    options : mapping of str to str or float
        The choices that decided the numbers.
    """

    runs: tuple[CongruenceRun, ...]
    options: Mapping[str, str | float] = field(default_factory=dict)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in order of first appearance."""
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks, in order of first appearance."""
        return tuple(dict.fromkeys(run.task for run in self.runs))

    def of(self, model: str, task: str | None = None) -> tuple[CongruenceRun, ...]:
        """The runs of a model, on one task or on all.

        Raises
        ------
        InputError
            If there is none.
        """
        found = tuple(run for run in self.runs if run.model == model and task in (None, run.task))
        if not found:
            raise InputError(unknown(model, self.models, "model"))
        return found

    def values(self, model: str, measure: str, task: str | None = None) -> FloatArray:
        """A measure in each run of a model, shape (runs,)."""
        return np.array([run.value(measure) for run in self.of(model, task)])

    def mean(self, model: str, measure: str, task: str | None = None) -> float:
        """Mean over the runs of a model; NaN where one has no answer."""
        return float(self.values(model, measure, task).mean())

    def records(self) -> tuple[Record, ...]:
        """Every measure of every model and task.

        Over several runs the standard error is that of their mean, by their spread; of a single
        run, the spread over bootstrap samples.
        """
        return tuple(
            self._record(task, model, measure)
            for task in self.tasks
            for model in self.models
            if any(run.task == task and run.model == model for run in self.runs)
            for measure in TITLES
            if measure != "cce_null"
        )

    def _record(self, task: str, model: str, measure: str) -> Record:
        runs = self.of(model, task)
        known = np.array([run.value(measure) for run in runs])
        error = _sd(known) / math.sqrt(len(runs)) if len(runs) > 1 else runs[0].data_sd(measure)
        reason = next((run.reasons[measure] for run in runs if measure in run.reasons), "")
        nulls = np.array([run.value("cce_null") for run in runs])
        return Record(
            metric="mean_cce" if measure == "cce" else measure,
            value=float(known.mean()),
            standard_error=error,
            n=float(sum(run.n for run in runs)),
            direction=Direction.LOWER,
            units=_UNITS.get(measure, "1"),
            notion=Notion.POINTWISE if measure == "cce" else Notion.MARGINAL,
            null=float(nulls.mean()) if measure == "cce" else math.nan,
            model=model,
            group=f"task={task}",
            reason=reason,
            options={**self.options, "runs": float(len(runs))},
        )

    def table(self) -> Table:
        """One row a task, model and seed: measures with their spreads and variations."""
        runs = self.runs
        columns: dict[str, npt.NDArray[Any]] = {
            "task": np.array([run.task for run in runs], dtype=object),
            "model": np.array([run.model for run in runs], dtype=object),
            "seed": np.array([run.seed for run in runs]),
            "n": np.array([run.n for run in runs]),
        }
        columns |= {name: _column(run.value(name) for run in runs) for name in TITLES}
        columns["cce_draws_sd"] = _column(run.monte_carlo_sd for run in runs)
        for name in ("cce", "ece", "nll"):
            columns[f"{name}_sd"] = _column(run.data_sd(name) for run in runs)
        for name in ("cce", "ece"):
            columns[f"{name}_cv"] = _column(run.variation(name) for run in runs)
        return Table(
            name="congruence_models",
            columns=columns,
            labels={
                **TITLES,
                "cce_draws_sd": "sd of CCE over draws",
                "cce_sd": "sd of CCE over bootstrap samples",
                "ece_sd": "sd of ECE over bootstrap samples",
                "nll_sd": "sd of NLL over bootstrap samples",
                "cce_cv": "coefficient of variation of CCE",
                "ece_cv": "coefficient of variation of ECE",
            },
            notes="Values of CCE can be compared within a task alone, where kernels and λ are one.",
        )


def _column(numbers: Iterable[float]) -> FloatArray:
    return np.array(list(numbers), dtype=np.float64)


def _sd(values: FloatArray) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else math.nan
