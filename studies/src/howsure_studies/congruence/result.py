"""What the congruence study gives: measures of models, four experiments, and all of one task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import Curve, Direction, Notion, Record, ResultTable
from howsure.core.registry import check_known, unknown
from howsure.topics.congruence.examples import RejectionCurve, rejection_curve
from howsure_studies.engine import columns_of

TITLES: Final[Mapping[str, str]] = {
    "cce": "CCE",
    "cce_null": "CCE of a correctly specified model",
    "ece": "ECE",
    "ece_exact": "ECE, cells of discrete distributions",
    "nll": "NLL",
    "nll_unnormalised": "NLL without constant",
    "mae": "MAE",
}
"""Measures of a run, with their titles; lower is better in all."""
MEASURES: Final = ("cce", "ece", "nll")
"""Those that experiments take."""
_UNITS: Final[Mapping[str, str]] = {"nll": "nats", "nll_unnormalised": "nats", "mae": "y"}
_LOSSES: Final = {"mae": "mean absolute error", "nll": "mean negative log likelihood"}
_TOPS: Final = ("nll", "cce")
_AREAS: Final = ("area", "random_area", "oracle_area")
_NONE: Final = np.empty(0)


def mean_known(values: npt.ArrayLike) -> float:
    """Mean of the finite values; NaN where there is none."""
    known = _finite_values(values)
    return float(known.mean()) if known.size else math.nan


def sample_sd(values: npt.ArrayLike) -> float:
    """Standard deviation of the finite values, divisor one less; NaN for fewer than two."""
    known = _finite_values(values)
    return float(known.std(ddof=1)) if known.size > 1 else math.nan


def _finite_values(values: npt.ArrayLike) -> FloatArray:
    given = np.asarray(values, dtype=np.float64)
    return given[np.isfinite(given)]


@final
@frozen(kw_only=True, eq=False)
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
    values: Mapping[str, float] = field(default_factory=dict)
    repeats: FloatArray = field(default_factory=lambda: _NONE)
    bootstraps: Mapping[str, FloatArray] = field(default_factory=dict)
    rows: Mapping[str, FloatArray] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def value(self, measure: str) -> float:
        """A measure on the data as they are."""
        check_known(measure, TITLES, "measure")
        return self.values.get(measure, math.nan)

    @property
    def monte_carlo_sd(self) -> float:
        """Standard deviation of CCE over sets of draws, divisor K − 1; NaN for one set."""
        return _sd(self.repeats)

    def data_sd(self, measure: str) -> float:
        """Standard deviation over bootstrap samples (and draws within), divisor one less."""
        return _sd(self.bootstraps.get(measure, _NONE))

    def bootstrap_mean(self, measure: str) -> float:
        """Mean over bootstrap samples (and draws within)."""
        samples = self.bootstraps.get(measure, _NONE)
        return float(samples.mean()) if samples.size else math.nan

    def variation(self, measure: str) -> float:
        """Coefficient of variation over bootstrap samples: standard deviation by mean."""
        mean = self.bootstrap_mean(measure)
        return self.data_sd(measure) / mean if mean else math.nan


@final
@frozen(kw_only=True, eq=False)
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
        """The runs of a model, on one task or on all."""
        runs = tuple(run for run in self.runs if run.model == model and task in (None, run.task))
        if not runs:
            raise InputError(unknown(model, self.models, "model"))
        return runs

    def values(self, model: str, measure: str) -> FloatArray:
        """A measure in each run of a model, shape (runs,)."""
        return np.array([run.value(measure) for run in self.of(model)])

    def mean(self, model: str, measure: str) -> float:
        """Mean over the runs of a model; NaN where one has no answer."""
        return float(self.values(model, measure).mean())

    def records(self) -> tuple[Record, ...]:
        """Every measure of every model and task.

        Over several runs the standard error is that of their mean, by their spread; of a single
        run, the spread over bootstrap samples.
        """
        pairs = {(run.task, run.model) for run in self.runs}
        return tuple(
            self._record(self.of(model, task), measure)
            for task in self.tasks
            for model in self.models
            if (task, model) in pairs
            for measure in TITLES
            if measure != "cce_null"
        )

    def _record(self, runs: tuple[CongruenceRun, ...], measure: str) -> Record:
        known = np.array([run.value(measure) for run in runs])
        cce = measure == "cce"
        return Record(
            metric="mean_cce" if cce else measure,
            value=float(known.mean()),
            standard_error=_sd(known) / math.sqrt(len(runs))
            if len(runs) > 1
            else runs[0].data_sd(measure),
            n=float(sum(run.n for run in runs)),
            direction=Direction.LOWER,
            units=_UNITS.get(measure, "1"),
            notion=Notion.POINTWISE if cce else Notion.MARGINAL,
            null=float(np.mean([run.value("cce_null") for run in runs])) if cce else math.nan,
            model=runs[0].model,
            group=f"task={runs[0].task}",
            reason=next((run.reasons[measure] for run in runs if measure in run.reasons), ""),
            options={**self.options, "runs": float(len(runs))},
        )

    def table(self) -> ResultTable:
        """One row a task, model and seed: measures with their spreads and variations."""
        rows = [
            {
                "task": run.task,
                "model": run.model,
                "seed": run.seed,
                "n": run.n,
                **{name: run.value(name) for name in TITLES},
                "cce_draws_sd": run.monte_carlo_sd,
                **{f"{name}_sd": run.data_sd(name) for name in MEASURES},
                **{f"{name}_cv": run.variation(name) for name in ("cce", "ece")},
            }
            for run in self.runs
        ]
        return ResultTable(
            name="congruence_models",
            columns=columns_of(rows),
            labels={
                **TITLES,
                "cce_draws_sd": "sd of CCE over draws",
                **{f"{m}_sd": f"sd of {m.upper()} over bootstrap samples" for m in MEASURES},
                **{f"{m}_cv": f"coefficient of variation of {m.upper()}" for m in ("cce", "ece")},
            },
            notes="Values of CCE can be compared within a task alone, where kernels and λ are one.",
        )


def _sd(values: FloatArray) -> float:
    return float(values.std(ddof=1)) if values.size > 1 else math.nan


def banded(sd: FloatArray | None, words: str, *, y: FloatArray, **rest: Any) -> Curve:
    """A curve with a band of one standard deviation over something, where that is known."""
    if sd is None:
        return Curve(y=y, **rest)
    band = f"one standard deviation over {words}"
    return Curve(y=y, lower=y - sd, upper=y + sd, band=band, **rest)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Monotonicity:
    """Measures of one model under one perturbation."""

    # Which model on what, under which perturbation
    task: str
    model: str
    kind: str
    severities: FloatArray  # (s,): rising, the first 0: data as they are
    values: Mapping[str, FloatArray]  # (trials, s): ``cce``, ``ece`` and ``nll``

    @cached_property
    def pages(self) -> dict[str, tuple[float, float]]:
        """By measure Page's L and its p-value: trials are blocks, the measure rises with severity.

        NaN where there are fewer than two trials or three severities, or a value is missing.
        """
        from scipy.stats import page_trend_test

        pages = dict.fromkeys(self.values, (math.nan, math.nan))
        for measure, table in self.values.items():
            if table.shape[0] > 1 and table.shape[1] > 2 and np.isfinite(table).all():
                trend = page_trend_test(table)
                pages[measure] = float(trend.statistic), float(trend.pvalue)
        return pages

    def drawn(self, measure: str = "cce") -> Curve:
        """The mean over trials by severity, with a band of their standard deviation."""
        table = self.values[measure]
        return banded(
            table.std(axis=0, ddof=1) if len(table) > 1 else None,
            f"{len(table)} trials",
            name=f"congruence_{measure}_by_severity",
            x=self.severities,
            y=table.mean(axis=0),
            x_label="severity",
            y_label=f"mean {measure.upper()}",
            model=self.model,
            group=f"task={self.task}, perturbation={self.kind}",
        )

    def steps_up(self) -> float:
        """Share of steps from one severity to the next at which mean CCE rises."""
        return float((np.diff(self.values["cce"].mean(axis=0)) > 0).mean())


@final
@frozen(kw_only=True, eq=False)
class MonotonicityResult:
    """Models under perturbations."""

    curves: tuple[Monotonicity, ...]
    options: Mapping[str, str | float] = field(default_factory=dict)

    def records(self) -> tuple[Record, ...]:
        """The share of steps up of mean CCE; options hold Page's L and its p-value."""
        return tuple(
            Record(
                metric="cce_steps_up",
                value=curve.steps_up(),
                n=float(len(curve.values["cce"])),
                direction=Direction.HIGHER,
                notion=Notion.POINTWISE,
                target=1.0,
                model=curve.model,
                group=f"task={curve.task}, perturbation={curve.kind}",
                options={
                    **self.options,
                    **dict(zip(("page_l", "page_p_value"), curve.pages["cce"], strict=True)),
                },
            )
            for curve in self.curves
        )


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Rejection:
    """What becomes of the losses of one model as rows are withheld by CCE."""

    task: str
    model: str
    scores: FloatArray  # (n,): CCE at the test rows
    # (n,): ``mae`` (absolute errors) and, where predictions have a density, ``nll``
    losses: Mapping[str, FloatArray]
    # Share of random orders of the rows with an area as small, the order by CCE counted in
    p_values: Mapping[str, float]
    units: str = "y"
    options: Mapping[str, str | float] = field(default_factory=dict)

    @cached_property
    def curves(self) -> Mapping[str, RejectionCurve]:
        """One a loss."""
        return {name: rejection_curve(self.scores, loss) for name, loss in self.losses.items()}

    @cached_property
    def drawn(self) -> tuple[Curve, ...]:
        """A curve for each loss: by CCE, with random order as reference and its 95 % band."""
        curves = []
        for loss, curve in self.curves.items():
            low, high = random_band(self.losses[loss])
            curves.append(
                Curve(
                    name=f"rejection_{loss}",
                    x=curve.rejected,
                    y=curve.error,
                    reference=np.full(len(curve.error), curve.random),
                    lower=low,
                    upper=high,
                    band="95 % of random orders",
                    x_label="share left out",
                    y_label=f"{_LOSSES[loss]} of the rows kept",
                    model=self.model,
                    group=f"task={self.task}",
                    area=curve.area,
                    hover={"oracle": curve.oracle},
                )
            )
        return tuple(curves)

    def records(self) -> tuple[Record, ...]:
        """The gain of each loss: 0 for random order, 1 for the order of the losses themselves."""
        return tuple(
            Record(
                metric=f"rejection_gain_{loss}",
                value=curve.gain,
                n=float(len(self.scores)),
                direction=Direction.HIGHER,
                notion=Notion.LOCAL,
                target=1.0,
                null=0.0,
                model=self.model,
                group=f"task={self.task}",
                reason="" if math.isfinite(curve.gain) else "all losses are equal",
                options={
                    **self.options,
                    **{area: getattr(curve, area) for area in _AREAS},
                    "p_value": self.p_values[loss],
                },
            )
            for loss, curve in self.curves.items()
        )


def random_band(loss: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Between which the mean loss of rows kept at random lies in 95 % of orders, nearly.

    At shares withheld of 0, 1/n, … The mean of m of n rows, drawn without replacement, has
    variance s²/m (1 − m/n), s² with divisor n − 1; the band takes the normal limit.
    """
    n, loss = len(loss), loss.astype(np.float64)
    kept = np.arange(n, 0, -1)
    s = float(loss.std(ddof=1)) if n > 1 else 0.0
    half = 1.959963984540054 * s * np.sqrt((1.0 - kept / n) / kept)
    return loss.mean() - half, loss.mean() + half


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """CCE at unlabelled inputs beside what is wrong there."""

    task: str
    model: str
    x: FloatArray  # (n, e): embeddings of the test inputs
    cce: FloatArray  # (n,): by the validation part's labels
    error: FloatArray  # (n,): distance of the predictive distribution from the true conditional one
    nll: FloatArray  # (n,): with the test part's labels; NaN where predictions have no density
    options: Mapping[str, str | float] = field(default_factory=dict)

    @cached_property
    def correlations(self) -> Mapping[str, tuple[float, float]]:
        """Spearman's and Pearson's correlation of a score with the true error; NaN if constant."""
        from scipy.stats import rankdata

        return {
            score: (_pearson(rankdata(values), rankdata(self.error)), _pearson(values, self.error))
            for score, values in (("cce", self.cce), ("nll", self.nll))
        }

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
            for score, pair in self.correlations.items()
            for name, value in zip(("spearman", "pearson"), pair, strict=True)
        )

    def table(self) -> ResultTable:
        """One row a test input."""
        inputs = {f"x{number}": column for number, column in enumerate(self.x.T[:2])}
        return ResultTable(
            name="congruence_diagnosis",
            columns={**inputs, "cce": self.cce, "error": self.error, "nll": self.nll},
            labels={"error": "distance from the true distribution"},
            model=self.model,
            notes="CCE does not use labels of these rows.",
        )


def _pearson(first: FloatArray, second: FloatArray) -> float:
    known = np.isfinite(first).all() and np.isfinite(second).all()
    if not known or len(first) < 2 or np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return math.nan
    return float(np.corrcoef(first, second)[0, 1])


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Robustness:
    """Measures of one model as a few rows are spoilt."""

    model: str
    settings: tuple[str, ...]  # What was done; the first is ``as they are``
    spoilt: IntArray  # (s,): rows that were changed
    # (s,): ``nll``, ``ece`` and mean ``cce``; ``nll_top`` and ``cce_top``, the largest value of a
    # row by the median of rows
    values: dict[str, FloatArray]
    n: int

    @cached_property
    def changes(self) -> dict[str, FloatArray]:
        """Change of NLL, ECE and CCE against the data as they are, by its size; shape (s,)."""
        return {
            measure: (self.values[measure] - self.values[measure][0]) / abs(self.values[measure][0])
            for measure in ("nll", "ece", "cce")
        }

    def records(self) -> tuple[Record, ...]:
        """The relative change of each measure in each setting."""
        return tuple(
            Record(
                metric=f"{measure}_relative_change",
                value=float(change[number]),
                n=float(self.n),
                direction=Direction.NONE,
                model=self.model,
                group=f"setting={setting}",
                options={"rows_changed": float(self.spoilt[number])},
            )
            for number, setting in enumerate(self.settings)
            if number
            for measure, change in self.changes.items()
        )

    def table(self) -> ResultTable:
        """One row a setting."""
        return ResultTable(
            name="congruence_robustness",
            columns={
                "setting": np.array(self.settings, dtype=object),
                "rows_changed": self.spoilt,
                **self.values,
            },
            labels={f"{m}_top": f"largest {m.upper()} of a row, by the median" for m in _TOPS},
            model=self.model,
        )


@final
@frozen(kw_only=True, eq=False)
class ModelPredictions:
    """What one model predicts of the test part, in a few numbers a row."""

    model: str
    y: FloatArray  # (n,): what happened
    point: FloatArray  # (n,): point predictions
    # (n,): ends of the central interval of 95 %
    lower: FloatArray
    upper: FloatArray
    x: FloatArray | None = None  # (n,): the inputs, where they are one number a row
    pit: FloatArray | None = None  # (n,): P(Y ≤ y) by the predictive distribution
    seed: int = 0


@final
@frozen(kw_only=True, eq=False)
class CongruenceStudies:
    """All experiments of one task with the same fitted models.

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
        Measures of every model, and of the true distribution where that is known.
    rejections : tuple of Rejection
        One a model; none where the experiment was not asked for, and so below.
    monotonicity : MonotonicityResult, optional
        Models under perturbations.
    diagnoses : tuple of Diagnosis
        One a model.
    robustness : tuple of Robustness
        One a model.
    beliefs : tuple of ModelPredictions
        One a model, the true distribution too.
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
    beliefs: tuple[ModelPredictions, ...] = ()
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in order of first appearance."""
        return self.result.models

    def records(self) -> tuple[Record, ...]:
        """The numbers of all experiments."""
        parts = (*self.rejections, *self.diagnoses, self.monotonicity, *self.robustness)
        return tuple(r for part in (self.result, *parts) if part for r in part.records())


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
        raise InputError("studies must contain at least one, got none")
    first = dict(studies[0].result.options)
    if any(dict(other.result.options) != first for other in studies):
        raise InputError("studies must have the same options of measures, got others")
    runs = tuple(run for study in studies for run in study.result.runs)
    return CongruenceResult(runs=runs, options=first)


def joined(
    parts: Sequence[CongruenceStudies], task: str = "", models: Sequence[str] = ()
) -> CongruenceStudies:
    """Studies of models of one task and seed as one, under a name and in an order of models."""

    def every(lists: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
        gathered = [item for items in lists for item in items]
        if task:
            gathered = [replace(i, task=task) if hasattr(i, "task") else i for i in gathered]
        if models:
            gathered.sort(key=lambda item: models.index(item.model))
        return tuple(gathered)

    first = parts[0]
    trends = [study.monotonicity for study in parts if study.monotonicity is not None]
    return replace(
        first,
        task=task or first.task,
        notes=tuple(dict.fromkeys(note for study in parts for note in study.notes)),
        result=replace(first.result, runs=every(study.result.runs for study in parts)),
        monotonicity=replace(trends[0], curves=every(t.curves for t in trends)) if trends else None,
        rejections=every(study.rejections for study in parts),
        diagnoses=every(study.diagnoses for study in parts),
        robustness=every(study.robustness for study in parts),
        beliefs=every(study.beliefs for study in parts),
    )
