"""Monotonicity: does CCE rise as the data are perturbed more and more?

Three perturbations of the test part, each at five severities: Gaussian blur of images (the law of
x), noise on labels (the law of y), and mixup of both (the law of y given x). Source: Young et al.
2025, section 4.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import Bound, Positive, check_whole, checked
from howsure.core.errors import InputError
from howsure.core.progress import part_of, tell
from howsure.core.records import Direction, Notion, Record, Table
from howsure.core.rng import child
from howsure.methods.interface import Fitted
from howsure.predictions import EvalSet, Prediction
from howsure.studies.congruence.measure import (
    CongruenceMeasure,
    calibration_of,
    congruence_at,
    losses,
    stated,
)
from howsure.studies.congruence.tasks import CongruenceTask
from howsure.studies.tasks import Part

Kind = Literal["blur", "label_shift", "label_noise", "mixup"]

SEVERITIES: Final[Mapping[Kind, tuple[float, ...]]] = {
    "blur": (1.0, 2.5, 5.0, 7.5, 10.0),
    "label_shift": (1.0, 2.0, 3.0, 4.0, 5.0),
    "label_noise": (1.0, 2.0, 3.0, 4.0, 5.0),
    "mixup": (0.1, 0.2, 0.3, 0.4, 0.5),
}
"""Perturbations with their severities: sd of the blur in pixels; m of N(m, 1) added to y, as
published; sd of N(0, sd²) added to y; share of another row in x and y."""
_MEASURES: Final = ("cce", "ece", "nll")


def gaussian_blur(
    images: npt.NDArray[Any], sd: float, *, kernel: tuple[int, int] = (5, 9)
) -> npt.NDArray[Any]:
    """Images under a Gaussian blur with a kernel cut off at a few pixels.

    Parameters
    ----------
    images : ndarray, shape (n, height, width, channels)
        8-bit or real numbers.
    sd : float
        Standard deviation in pixels, above 0.
    kernel : tuple of int
        Pixels of the kernel along the width and along the height, odd. Weights sum to one;
        images are mirrored at their edges, the outermost pixels not repeated.

    Returns
    -------
    ndarray of the same shape and type

    Raises
    ------
    InputError
        If sd is not above 0, a kernel is even or larger than an image allows, or x is no image.

    Notes
    -----
    The transform of torchvision, with the published kernel of (5, 9).

    Examples
    --------
    >>> dot = np.zeros((1, 9, 9, 1)); dot[0, 4, 4] = 1.0
    >>> blurred = gaussian_blur(dot, 1.0)
    >>> float(blurred.sum().round(6)), float(blurred.max().round(3))
    (1.0, 0.161)
    """
    if images.ndim != 4:
        raise InputError(f"images must have four dimensions, got shape {images.shape}")
    checked(sd, Positive, "sd")
    from scipy.ndimage import convolve1d

    blurred = images.astype(np.float64)
    for axis, size in ((2, kernel[0]), (1, kernel[1])):
        if size < 1 or size % 2 == 0 or size // 2 >= images.shape[axis]:
            raise InputError(f"kernel must hold odd sizes that fit the images, got {kernel}")
        weights = np.exp(-0.5 * (np.arange(size) - size // 2) ** 2 / sd**2)
        blurred = convolve1d(blurred, weights / weights.sum(), axis=axis, mode="mirror")
    return _as_before(blurred, images)


def noisy_labels(
    y: FloatArray, rng: np.random.Generator, *, shift: float, sd: float, counts: bool = False
) -> FloatArray:
    """Labels with N(shift, sd²) added; counts are rounded, and no less than 0.

    Examples
    --------
    >>> noisy_labels(np.zeros(2), np.random.default_rng(0), shift=3.0, sd=0.0)
    array([3., 3.])
    """
    return _counted(y + shift + sd * rng.standard_normal(len(y)), counts=counts)


def mixup(
    x: npt.NDArray[Any],
    y: FloatArray,
    weight: float,
    rng: np.random.Generator,
    *,
    counts: bool = False,
) -> tuple[npt.NDArray[Any], FloatArray]:
    """Every row mixed with another: (1 − w) of its own x and y, w of those of a random row.

    Parameters
    ----------
    x : ndarray, shape (n, …)
        Inputs; 8-bit numbers are rounded.
    y : ndarray of float, shape (n,)
        Labels.
    weight : float
        w, from 0 to 1.
    rng : numpy.random.Generator
        Permutes the rows.
    counts : bool
        Whether labels are rounded.

    Returns
    -------
    x, y : ndarray

    Raises
    ------
    InputError
        If the weight leaves [0, 1].

    Examples
    --------
    >>> mixup(np.array([[0.0], [2.0]]), np.array([0.0, 2.0]), 0.5, np.random.default_rng(3))[1]
    array([1., 1.])
    """
    checked(weight, Annotated[float, Bound(0.0, 1.0, "[]")], "weight")
    other = rng.permutation(len(y))
    mixed = (1.0 - weight) * x.astype(np.float64) + weight * x[other].astype(np.float64)
    return _as_before(mixed, x), _counted((1.0 - weight) * y + weight * y[other], counts=counts)


def perturbed(
    task: CongruenceTask, part: Part, kind: Kind, severity: float, rng: np.random.Generator
) -> Part:
    """A part of a task under a perturbation; severity 0 leaves it as it is.

    Raises
    ------
    InputError
        If there is no such perturbation, or images are needed and there are none.
    """
    checked(kind, Kind, "kind")
    if severity == 0.0:
        return part
    x, y = part.x, part.y
    if kind == "blur":
        x = gaussian_blur(x, severity)
    elif kind == "mixup":
        x, y = mixup(x, y, severity, rng, counts=task.counts)
    elif kind == "label_shift":
        y = noisy_labels(y, rng, shift=severity, sd=1.0, counts=task.counts)
    else:
        y = noisy_labels(y, rng, shift=0.0, sd=severity, counts=task.counts)
    return Part(x=x, y=y, ids=part.ids)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Monotonicity:
    """Measures of one model under one perturbation.

    Attributes
    ----------
    task, model, kind : str
        Which model on what, under which perturbation.
    severities : ndarray of float, shape (s,)
        Rising, the first 0: data as they are.
    values : mapping of str to ndarray of float, shape (trials, s)
        ``cce``, ``ece`` and ``nll``.
    """

    task: str
    model: str
    kind: str
    severities: FloatArray
    values: Mapping[str, FloatArray]

    def page(self, measure: str = "cce") -> tuple[float, float]:
        """Page's L and its p-value: trials are blocks, and the measure rises with severity.

        NaN where there are fewer than two trials or three severities, or a value is missing.
        """
        table = self.values[measure]
        if table.shape[0] < 2 or table.shape[1] < 3 or not np.isfinite(table).all():
            return math.nan, math.nan
        from scipy.stats import page_trend_test

        found = page_trend_test(table)
        return float(found.statistic), float(found.pvalue)

    def steps_up(self, measure: str = "cce") -> float:
        """Share of steps from one severity to the next at which the mean rises."""
        return float((np.diff(self.values[measure].mean(axis=0)) > 0).mean())


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MonotonicityResult:
    """Models under perturbations.

    Attributes
    ----------
    curves : tuple of Monotonicity
        One for each model and perturbation.
    options : mapping of str to str or float
        The choices that decided the numbers.
    """

    curves: tuple[Monotonicity, ...]
    options: Mapping[str, str | float] = field(default_factory=dict)

    def records(self) -> tuple[Record, ...]:
        """The share of steps up of mean CCE; options hold Page's L and its p-value."""
        found = []
        for curve in self.curves:
            statistic, p = curve.page()
            found.append(
                Record(
                    metric="cce_steps_up",
                    value=curve.steps_up(),
                    n=float(len(curve.values["cce"])),
                    direction=Direction.HIGHER,
                    notion=Notion.POINTWISE,
                    target=1.0,
                    model=curve.model,
                    group=f"task={curve.task}, perturbation={curve.kind}",
                    options={**self.options, "page_l": statistic, "page_p_value": p},
                )
            )
        return tuple(found)

    def table(self) -> Table:
        """One row a model, perturbation and severity: means and spreads over trials."""
        rows = list(self._rows())
        columns = {
            name: np.array([row[name] for row in rows], dtype=object if text else np.float64)
            for name, text in {
                **dict.fromkeys(("task", "model", "perturbation"), True),
                **dict.fromkeys(("severity", "trials"), False),
                **{f"{m}{end}": False for m in _MEASURES for end in ("", "_sd", "_page_p")},
            }.items()
        }
        return Table(
            name="congruence_monotonicity",
            columns=columns,
            labels={"cce_page_p": "p of Page's trend test over all severities"},
            notes="Trials are bootstrap samples of one test part, so p does not apply to "
            "other models and data.",
        )

    def _rows(self) -> Iterator[dict[str, Any]]:
        for curve in self.curves:
            trend = {f"{m}_page_p": curve.page(m)[1] for m in _MEASURES}
            for place, severity in enumerate(curve.severities):
                row: dict[str, Any] = {
                    "task": curve.task,
                    "model": curve.model,
                    "perturbation": curve.kind,
                    "severity": severity,
                    "trials": len(curve.values["cce"]),
                    **trend,
                }
                for measure in _MEASURES:
                    held = curve.values[measure][:, place]
                    row[measure] = held.mean()
                    row[f"{measure}_sd"] = held.std(ddof=1) if len(held) > 1 else math.nan
                yield row


def monotonicity(
    task: CongruenceTask,
    models: Mapping[str, Fitted],
    *,
    kinds: Sequence[Kind] | None = None,
    severities: Mapping[Kind, Sequence[float]] | None = None,
    trials: int = 5,
    resample: bool = True,
    output_bandwidth: Literal["each", "fixed"] = "each",
    measure: CongruenceMeasure | None = None,
    seed: int = 0,
) -> MonotonicityResult:
    """Measure fitted models on the test part under perturbations of rising severity.

    Parameters
    ----------
    task : CongruenceTask
        Its test part is perturbed, and is then the reference S.
    models : mapping of str to Fitted
        Fitted to the training part.
    kinds : sequence of str, optional
        Which perturbations; by default ``blur`` (of images), ``label_shift`` and ``mixup``, as
        published.
    severities : mapping of str to sequence of float, optional
        In place of those of `SEVERITIES`, rising.
    trials : int
        How often each is done.
    resample : bool
        Whether each trial takes a bootstrap sample of the test part, the same at all severities;
        else only noise and draws differ between trials.
    output_bandwidth : {"each", "fixed"}
        Whether γ of y is set anew for each perturbed part, as published, or stays that of the test
        part as it is. Perturbations that change the variance of y, as mixup does, change γ with
        it: a fixed γ compares like with like, and may fall where a γ set anew rises.
    measure : CongruenceMeasure, optional
        How; by default one draw a row.
    seed : int
        Fixes samples, noise and draws.

    Returns
    -------
    MonotonicityResult

    Raises
    ------
    InputError
        If a perturbation is unknown or needs images, or severities do not rise from above 0.
    """
    check_whole(trials, "trials", 1)
    checked(output_bandwidth, Literal["each", "fixed"], "output_bandwidth")
    how = (measure or CongruenceMeasure()).of_task(task)
    if output_bandwidth == "fixed" and how.output_bandwidth is None:
        how = replace(how, output_bandwidth=float(1.0 / (2.0 * task.test.y.var(ddof=1))))
    usual: tuple[Kind, ...] = ("blur", "label_shift", "mixup")
    chosen = usual[0 if task.images else 1 :] if kinds is None else tuple(kinds)
    levels = {kind: _levels(kind, severities) for kind in chosen}
    total = len(models) * sum(len(level) for level in levels.values()) * trials
    study = _Study(task, how, trials, resample, seed, total)
    curves = [
        study.curve(label, model, kind, level)
        for label, model in models.items()
        for kind, level in levels.items()
    ]
    return MonotonicityResult(
        curves=tuple(curves),
        options={**how.options(), "trials": float(trials), "gamma_of_y": output_bandwidth},
    )


@dataclass(slots=True)
class _Study:
    """What stays the same over models and perturbations."""

    task: CongruenceTask
    how: CongruenceMeasure
    trials: int
    resample: bool
    seed: int
    total: int
    done: int = 0

    def curve(self, label: str, model: Fitted, kind: Kind, levels: FloatArray) -> Monotonicity:
        """One model under one perturbation."""
        values = {name: np.full((self.trials, len(levels)), np.nan) for name in _MEASURES}
        for place, level in enumerate(levels):
            said: Prediction | None = None
            embedded: FloatArray | None = None
            for trial in range(self.trials):
                noise = child(self.seed, "congruence perturbation", kind, float(level), trial)
                part = perturbed(self.task, self.task.test, kind, float(level), noise)
                if said is None or embedded is None or kind == "mixup":
                    said, embedded = model.predict(part.x).outcome, self.task.embed(part.x)
                held = stated(said, part.y, embedded, model=label)
                with part_of(f"{kind} of {label}", self.done, self.total):
                    found = self._measures(held, trial)
                for name, value in found.items():
                    values[name][trial, place] = value
                self.done += 1
                tell(f"{kind} of {label}", self.done, self.total)
        return Monotonicity(
            task=self.task.name, model=label, kind=kind, severities=levels, values=values
        )

    def _measures(self, held: EvalSet, trial: int) -> dict[str, float]:
        if self.resample:
            rng = child(self.seed, "congruence perturbation rows", trial)
            held = held.take(rng.integers(held.n, size=held.n))
        draws = child(self.seed, "congruence perturbation draws", held.model, trial)
        known = losses(held)
        return {
            "cce": float(congruence_at(held, None, self.how, draws).mean()),
            "ece": calibration_of(held, self.how, exact=False),
            "nll": float(known["nll"].mean()) if "nll" in known else math.nan,
        }


def _levels(kind: Kind, severities: Mapping[Kind, Sequence[float]] | None) -> FloatArray:
    checked(kind, Kind, "kinds")
    given = np.asarray((severities or {}).get(kind, SEVERITIES[kind]), dtype=np.float64)
    levels = np.concatenate([[0.0], given])
    if given.ndim != 1 or not len(given) or not (np.diff(levels) > 0).all():
        raise InputError(f"severities must rise from above 0, got {given.tolist()} of {kind}")
    return levels


def _as_before(values: FloatArray, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if like.dtype.kind in "iu":
        return np.rint(values).astype(like.dtype)
    return values.astype(like.dtype)


def _counted(y: FloatArray, *, counts: bool) -> FloatArray:
    return np.maximum(np.rint(y), 0.0) if counts else y
