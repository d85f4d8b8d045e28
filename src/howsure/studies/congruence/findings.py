"""What the congruence studies found of each model on each task, as numbers with a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.records import Record, Table
from howsure.studies.congruence.bundle import CongruenceStudies
from howsure.studies.congruence.diagnosis import Diagnosis
from howsure.studies.congruence.networks import COUNT_HEADS
from howsure.studies.congruence.perturbations import Monotonicity, MonotonicityResult
from howsure.studies.congruence.published import Published, published
from howsure.studies.congruence.rejection import Rejection
from howsure.studies.congruence.result import CongruenceResult, CongruenceRun
from howsure.studies.congruence.robustness import Robustness
from howsure.studies.congruence.suite import TRUTH

Verdict = Literal["wrong", "accepted", "not known"]

CORRECT: Final = "a correctly specified model"
TRUE: Final = "the true distribution"

SURE: Final = 2.0
"""Standard errors by which CCE must exceed that of a correctly specified model to be wrong."""
_SOURCES: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("discretewave", "wave"), ("figure 2", "discrete wave")),
    "aaf": ("table 2", "AAF"),
    "eva": ("table 2", "EVA"),
    "fgnet": ("table 2", "FG-Net"),
    "cocopeople": ("table 2", "COCO-People"),
}
"""By the letters of a task's name: where the paper prints its numbers, and under which name."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """One model on one task, over all its sets of data.

    Attributes
    ----------
    world, task, model : str
        Which model on what; the plan's name of the task, and its own.
    runs : tuple of CongruenceRun
        One a set of data.
    truths : mapping of int to CongruenceRun
        By seed: the true distribution, judged as if it were a model.
    """

    world: str
    task: str
    model: str
    runs: tuple[CongruenceRun, ...]
    truths: Mapping[int, CongruenceRun]

    @property
    def is_truth(self) -> bool:
        """Whether this is the distribution that the data came from."""
        return self.model == TRUTH

    def mean(self, measure: str) -> float:
        """Mean over the sets of data with an answer."""
        return mean_known(run.value(measure) for run in self.runs)

    def bootstrap_mean(self, measure: str) -> float:
        """Mean over bootstrap samples and sets of data; as `mean` where there are no samples."""
        known = mean_known(run.bootstrap_mean(measure) for run in self.runs)
        return known if math.isfinite(known) else self.mean(measure)

    def seed_sd(self, measure: str) -> float:
        """Standard deviation over sets of data; NaN for fewer than two."""
        values = np.array([run.value(measure) for run in self.runs])
        known = values[np.isfinite(values)]
        return float(known.std(ddof=1)) if len(known) > 1 else math.nan

    @property
    def draws_sd(self) -> float:
        """Root mean square over sets of data of CCE's standard deviation over sets of draws."""
        return _root_mean_square(run.monte_carlo_sd for run in self.runs)

    def data_sd(self, measure: str) -> float:
        """Root mean square of the standard deviation over bootstrap samples."""
        return _root_mean_square(run.data_sd(measure) for run in self.runs)

    @property
    def yardstick(self) -> tuple[float, str]:
        """CCE of a correctly specified model, and what it is of; NaN where neither is known.

        It is what a model of these predictive distributions would have if they were correct, else
        what the distribution has that the data came from.
        """
        null = self.mean("cce_null")
        if math.isfinite(null):
            return null, CORRECT
        truth = mean_known(run.value("cce") for run in self.truths.values())
        known = math.isfinite(truth) and not self.is_truth
        return (truth, TRUE) if known else (math.nan, "")

    @property
    def ratio(self) -> float:
        """CCE by that of a correctly specified model."""
        null = self.yardstick[0]
        return self.mean("cce") / null if null > 0 else math.nan

    @property
    def verdict(self) -> Verdict:
        """Whether CCE lies significantly above that of a correctly specified model.

        The standard error is the spread over bootstrap samples (where there are none, over sets of
        draws), for the mean over sets of data; that of the true distribution is added where it
        stands for the correctly specified model.
        """
        null, words = self.yardstick
        error = self._error(self.runs)
        if words == TRUE:
            error = math.hypot(error, self._error(tuple(self.truths.values())))
        away = self.mean("cce") - null
        if math.isnan(away) or math.isnan(error):
            return "not known"
        return "wrong" if away > SURE * error else "accepted"

    def _error(self, runs: Sequence[CongruenceRun]) -> float:
        spreads = [run.data_sd("cce") for run in runs]
        if not np.isfinite(spreads).any():
            spreads = [run.monte_carlo_sd for run in runs]
        return _root_mean_square(spreads) / math.sqrt(len(runs))

    @property
    def reasons(self) -> dict[str, str]:
        """Why measures are missing, of the first set of data that lacks each."""
        told: dict[str, str] = {}
        for run in self.runs:
            for measure, reason in run.reasons.items():
                told.setdefault(measure, reason)
        return told

    @property
    def printed(self) -> tuple[Published, ...]:
        """What the paper prints of this head on this task; often nothing."""
        source = printed_source(self.task) or printed_source(self.world)
        if source is None:
            return ()
        return published(source[0], task=source[1], model=head_of(self.model))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """All studies of one task, over all its sets of data.

    Attributes
    ----------
    name : str
        What the plan calls the task.
    studies : tuple of CongruenceStudies
        One a set of data; at least one.
    """

    name: str
    studies: tuple[CongruenceStudies, ...]

    @property
    def result(self) -> CongruenceResult:
        """The measures of all sets of data."""
        runs = tuple(run for part in self.studies for run in part.result.runs)
        return CongruenceResult(runs=runs, options=self.studies[0].result.options)

    @property
    def several(self) -> bool:
        """Whether there is more than one set of data."""
        return len(self.studies) > 1

    @property
    def found(self) -> tuple[Found, ...]:
        """One finding a model."""
        return findings(self.name, self.result.runs)

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Those of all sets of data."""
        return tuple(one for part in self.studies for one in part.rejections)

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """Those of all sets of data."""
        return tuple(one for part in self.studies for one in part.diagnoses)

    @property
    def robustness(self) -> tuple[Robustness, ...]:
        """Those of all sets of data."""
        return tuple(one for part in self.studies for one in part.robustness)

    @property
    def monotonicity(self) -> MonotonicityResult | None:
        """Trials of all sets of data side by side, where severities agree."""
        held = [part.monotonicity for part in self.studies if part.monotonicity is not None]
        groups: dict[tuple[str, str, tuple[float, ...]], list[Monotonicity]] = {}
        for curve in (curve for result in held for curve in result.curves):
            key = (curve.model, curve.kind, tuple(curve.severities.tolist()))
            groups.setdefault(key, []).append(curve)
        if not groups:
            return None
        curves = tuple(
            replace(
                parts[0],
                values={m: np.concatenate([p.values[m] for p in parts]) for m in parts[0].values},
            )
            for parts in groups.values()
        )
        return MonotonicityResult(curves=curves, options=held[0].options)

    @property
    def records(self) -> tuple[Record, ...]:
        """Every number; of studies of several sets of data, with the seed."""
        rest = []
        for part in self.studies:
            own = replace(part, result=CongruenceResult(runs=()), monotonicity=None).records()
            seed = {"seed": float(part.seed)} if self.several else {}
            rest += [replace(one, options={**one.options, **seed}) for one in own]
        trend = self.monotonicity
        return (*self.result.records(), *rest, *(trend.records() if trend is not None else ()))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the studies that the page draws from."""
        found = [self.result.table()] if self.result.runs else []
        trend = self.monotonicity
        found += [trend.table()] if trend is not None else []
        for part in self.studies:
            for table in (
                *(r.table() for r in part.robustness),
                *(d.table() for d in part.diagnoses),
            ):
                told = f"{self.name}, seed {part.seed}. {table.notes}".strip()
                found.append(replace(table, notes=told))
        return tuple(found)


def findings(world: str, runs: Sequence[CongruenceRun]) -> tuple[Found, ...]:
    """One finding a model of one task, in order of first appearance, the true distribution last."""
    truths = {run.seed: run for run in runs if run.model == TRUTH}
    groups: dict[str, list[CongruenceRun]] = {}
    for run in runs:
        groups.setdefault(run.model, []).append(run)
    found = [
        Found(world=world, task=held[0].task, model=model, runs=tuple(held), truths=truths)
        for model, held in groups.items()
    ]
    return tuple(sorted(found, key=lambda one: one.is_truth))


def mean_known(values: Iterable[float]) -> float:
    """Mean of the finite values; NaN where there is none."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def head_of(model: str) -> str:
    """The key of a head that a plan calls by its key or its title."""
    words = model.casefold().replace("β", "beta").replace("-", "_").replace(" ", "_")
    return words if words in COUNT_HEADS else model


def printed_source(task: str) -> tuple[str, str] | None:
    """Where the paper prints numbers of a task of this name; None where it does not."""
    letters = "".join(char for char in task.casefold() if char.isalnum())
    return _SOURCES.get(letters)


def blind_spots(found: Sequence[Found], measure: str) -> list[tuple[Found, Found]]:
    """Pairs that an ECE puts the wrong way round: a misspecified model before an accepted one."""
    wrong = [one for one in found if one.verdict == "wrong" and not one.is_truth]
    right = [one for one in found if one.verdict == "accepted" or one.is_truth]
    pairs = [
        (bad, good) for bad in wrong for good in right if bad.mean(measure) < good.mean(measure)
    ]
    pairs.sort(key=lambda pair: pair[0].mean(measure) - pair[1].mean(measure))
    return pairs


def worst_stretch(x: FloatArray, cce: FloatArray, bins: int = 8) -> tuple[float, float, float]:
    """Between which x CCE is largest: ends of the bin of equal mass, and its mean CCE."""
    order = np.argsort(x, kind="stable")
    parts = np.array_split(order, max(1, min(bins, len(x) // 5)))
    means = [float(cce[part].mean()) for part in parts]
    worst = parts[int(np.argmax(means))]
    return float(x[worst].min()), float(x[worst].max()), max(means)


def _root_mean_square(values: Iterable[float]) -> float:
    return math.sqrt(mean_known(value**2 for value in values))
