"""Experiments on fitted models, as Young et al. 2025 have them.

Monotonicity (section 4.4): does CCE rise as the test part is perturbed more and more: images
blurred (x), noise on labels (y), mixup of both (y given x)? Rejection (appendix A.3): do the rows
that CCE flags, by the validation part's labels alone, hold the errors? Diagnosis (4.7): does that
CCE follow the model's true error, the exact distance of its predictions from the true
distribution, where a simulated world knows it? Robustness (4.6, D.2): what do a few outliers, or
one row of false certainty, do to NLL, which has no bound, to ECE and to CCE, where a row's share
is bounded by its smoothing weight?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import Bound, Fraction, Positive, check_whole, checked
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import part_of, report_progress
from howsure.core.rng import child
from howsure.metrics.congruence import rejection_curve
from howsure.metrics.congruence.view import belief_of
from howsure.predictions import Distribution, EvalSet, NormalLaw, Prediction
from howsure_studies.congruence.measure import (
    CongruenceMeasure,
    TrueDistribution,
    answer,
    calibration_of,
    congruence_at,
    law_of,
    losses,
    stated,
)
from howsure_studies.congruence.result import (
    MEASURES,
    Diagnosis,
    Monotonicity,
    MonotonicityResult,
    Rejection,
    Robustness,
)
from howsure_studies.congruence.worlds import law_distance
from howsure_studies.methods.interface import Fitted
from howsure_studies.tasks import Part, Task

Kind = Literal["blur", "label_shift", "label_noise", "mixup"]
SEVERITIES: Final[Mapping[Kind, tuple[float, ...]]] = {
    "blur": (1.0, 2.5, 5.0, 7.5, 10.0),
    "label_shift": (1.0, 2.0, 3.0, 4.0, 5.0),
    "label_noise": (1.0, 2.0, 3.0, 4.0, 5.0),
    "mixup": (0.1, 0.2, 0.3, 0.4, 0.5),
}
"""Perturbations with their severities: sd of the blur in pixels; m of N(m, 1) added to y, as
published; sd of N(0, sd²) added to y; share of another row in x and y."""
_BLOCK: Final = 4_000_000


def gaussian_blur(
    images: npt.NDArray[Any], sd: float, *, kernel: tuple[int, int] = (5, 9)
) -> npt.NDArray[Any]:
    """Images under a Gaussian blur, of so many pixels along the width and along the height.

    The transform of torchvision, with the published kernel of (5, 9). Weights sum to one; images
    are mirrored at their edges, the outermost pixels not repeated.
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
    """Labels with N(shift, sd²) added; counts are rounded, and no less than 0."""
    return _counted(y + shift + sd * rng.standard_normal(len(y)), counts=counts)


def mixup(
    x: npt.NDArray[Any],
    y: FloatArray,
    weight: float,
    rng: np.random.Generator,
    *,
    counts: bool = False,
) -> tuple[npt.NDArray[Any], FloatArray]:
    """Every row mixed with another: (1 − w) of its own x and y, w of those of a random row."""
    checked(weight, Annotated[float, Bound(0.0, 1.0, "[]")], "weight")
    other = rng.permutation(len(y))
    mixed = (1.0 - weight) * x.astype(np.float64) + weight * x[other].astype(np.float64)
    return _as_before(mixed, x), _counted((1.0 - weight) * y + weight * y[other], counts=counts)


def perturbed(
    task: Task, part: Part, kind: Kind, severity: float, rng: np.random.Generator
) -> Part:
    """A part of a task under a perturbation; severity 0 leaves it as it is."""
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


def monotonicity(
    task: Task,
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

    The perturbed part is the reference S. By default ``blur`` (of images), ``label_shift`` and
    ``mixup``, as published. With `resample` each trial takes a bootstrap sample, the same at all
    severities; else only noise and draws differ. Perturbations that change the variance of y, as
    mixup does, change γ of y with it where that is set anew for each, as published: a fixed γ
    compares like with like, and may fall where the other rises.
    """
    check_whole(trials, "trials", 1)
    checked(output_bandwidth, Literal["each", "fixed"], "output_bandwidth")
    how = (measure or CongruenceMeasure()).of_task(task)
    if output_bandwidth == "fixed":
        how = _fixed(how, task.test.y)
    usual: tuple[Kind, ...] = ("blur", "label_shift", "mixup")
    chosen = usual[0 if task.images else 1 :] if kinds is None else tuple(kinds)
    levels = {kind: _levels(kind, severities) for kind in chosen}
    total = len(models) * sum(len(level) for level in levels.values()) * trials
    values = {
        (label, kind): {name: np.full((trials, len(level)), np.nan) for name in MEASURES}
        for label in models
        for kind, level in levels.items()
    }
    settings = ((*key, step) for key in values for step in range(len(levels[key[1]])))
    for number, (label, kind, step) in enumerate(settings):
        model, level = models[label], float(levels[kind][step])
        said: Prediction | None = None
        embedded: FloatArray | None = None
        for trial in range(trials):
            noise = child(seed, "congruence perturbation", kind, level, trial)
            part = perturbed(task, task.test, kind, level, noise)
            if said is None or embedded is None or kind == "mixup":
                said, embedded = model.predict(part.x).outcome, task.space.embed(part.x)
            evaluation = stated(said, part.y, embedded, model=label)
            if resample:
                rows = child(seed, "congruence perturbation rows", trial)
                evaluation = evaluation.take(rows.integers(evaluation.n, size=evaluation.n))
            stage, done = f"{kind} of {label}", number * trials + trial
            with part_of(stage, done, total):
                draws = child(seed, "congruence perturbation draws", label, trial)
                errors = congruence_at(evaluation, None, how, draws)
            own = values[label, kind]
            own["cce"][trial, step] = errors.mean()
            own["ece"][trial, step] = calibration_of(evaluation, how, exact=False)
            own["nll"][trial, step] = losses(evaluation).get("nll", np.array(np.nan)).mean()
            report_progress(stage, done + 1, total)
    return MonotonicityResult(
        curves=tuple(
            Monotonicity(
                task=task.name, model=label, kind=kind, severities=levels[kind], values=own
            )
            for (label, kind), own in values.items()
        ),
        options={**how.options(), "trials": float(trials), "gamma_of_y": output_bandwidth},
    )


def _gamma_of(y: FloatArray) -> float:
    return float(1.0 / (2.0 * y.var(ddof=1)))


def _fixed(how: CongruenceMeasure, y: FloatArray) -> CongruenceMeasure:
    """The measure with γ of y as these rows have it, unless one is chosen."""
    return how if how.output_bandwidth is not None else replace(how, output_bandwidth=_gamma_of(y))


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


def order_p_value(
    loss: FloatArray, area: float, rng: np.random.Generator, replicates: int = 999
) -> float:
    """Share of random orders whose area under the rejection curve is at most this one.

    The area is a weighted sum of the losses: the row that is withheld last but i − 1 has weight
    (1/n) Σ_{m ≥ i} 1/m.
    """
    n = len(loss)
    weights = np.cumsum(1.0 / np.arange(n, 0, -1))[::-1] / n
    below, left = 0, replicates
    while left:
        block = min(left, max(1, _BLOCK // n))
        orders = rng.permuted(np.broadcast_to(loss, (block, n)), axis=1)
        below += int((orders @ weights <= area + 1e-12 * max(abs(area), 1.0)).sum())
        left -= block
    return (1 + below) / (replicates + 1)


def _unlabelled(
    task: Task, label: str, model: Fitted, how: CongruenceMeasure, seed: int, name: str
) -> tuple[EvalSet, FloatArray]:
    """The test part, and CCE there by the validation part's labels: mean over sets of draws."""
    val, test = (
        answer(model, part, task.space.embed, model=label) for part in (task.val, task.test)
    )
    sets = [
        congruence_at(val, test.embedding, how, child(seed, name, label, number))
        for number in range(how.sets)
    ]
    return test, np.mean(sets, axis=0)


def rejection(
    task: Task,
    models: Mapping[str, Fitted],
    *,
    measure: CongruenceMeasure | None = None,
    replicates: int = 999,
    seed: int = 0,
) -> dict[str, Rejection]:
    """Withhold test rows by a CCE that knows labels of the validation part alone."""
    check_whole(replicates, "replicates", 1)
    how = (measure or CongruenceMeasure(draws=1, bootstraps=0)).of_task(task)
    results = {}
    for number, (label, model) in enumerate(models.items()):
        with part_of(f"rejection by {label}", number, len(models)):
            test, scores = _unlabelled(task, label, model, how, seed, "congruence rejection")
        known = losses(test)
        rows = {"mae": known["error"]} | ({"nll": known["nll"]} if "nll" in known else {})
        for loss, values in rows.items():
            if infinite := int((~np.isfinite(values)).sum()):
                raise UnanswerableError(f"its {loss} is infinite in {infinite} of {test.n} rows")
        areas = {loss: rejection_curve(scores, values).area for loss, values in rows.items()}
        rng = child(seed, "congruence rejection orders", label)
        results[label] = Rejection(
            task=task.name,
            model=label,
            scores=scores,
            losses=rows,
            p_values={
                loss: order_p_value(rows[loss], area, rng, replicates)
                for loss, area in areas.items()
            },
            units=task.units,
            options=how.options(),
        )
    report_progress("rejection", len(models), len(models))
    return results


def diagnosis(
    task: Task,
    models: Mapping[str, Fitted],
    *,
    measure: CongruenceMeasure | None = None,
    seed: int = 0,
) -> dict[str, Diagnosis]:
    """Compare CCE at unlabelled test inputs with the true error of each model."""
    how = (measure or CongruenceMeasure(draws=None)).of_task(task)
    right = answer(TrueDistribution(task), task.test, task.space.embed)
    results = {}
    for label, model in models.items():
        test, cce = _unlabelled(task, label, model, how, seed, "congruence diagnosis")
        assert test.embedding is not None
        results[label] = Diagnosis(
            task=task.name,
            model=label,
            x=test.embedding,
            cce=cce,
            error=law_distance(
                belief_of(test, "exact"), belief_of(right, "exact"), _gamma_of(task.val.y)
            ),
            nll=losses(test).get("nll", np.full(test.n, np.nan)),
            options=how.options(),
        )
    return results


def robustness(
    evaluation: EvalSet,
    *,
    outliers: Sequence[int] = (1, 2, 5),
    distance: float = 10.0,
    narrowing: float | None = 1e-3,
    counts: bool = False,
    measure: CongruenceMeasure | None = None,
    seed: int = 0,
) -> Robustness:
    """Measure a model on rows as they are, with a few outliers, and with one false certainty.

    In rows chosen at random, y is put so many predicted standard deviations from the prediction,
    to a random side, or above for counts; rows of a smaller number are among those of a larger
    one. γ of y stays that of the rows as they are, and so do draws.
    """
    checked(distance, Positive, "distance")
    checked(narrowing, Fraction | None, "narrowing")
    for number in outliers:
        check_whole(number, "outliers", 1)
        if number > evaluation.n:
            raise InputError(f"outliers must be at most {evaluation.n} rows, got {number}")
    how = _fixed(measure or CongruenceMeasure(), evaluation.y)
    law = law_of(evaluation)
    rng = child(seed, "congruence outliers")
    order = rng.permutation(evaluation.n)
    side = np.ones(evaluation.n) if counts else rng.choice([-1.0, 1.0], evaluation.n)
    sets: list[tuple[str, int, EvalSet]] = [("as they are", 0, evaluation)]
    for number in outliers:
        far, rows = evaluation.y.copy(), order[:number]
        far[rows] = (law.point() + side * distance * law.sd())[rows]
        moved = replace(evaluation, y=np.rint(far) if counts else far)
        sets.append((f"outliers at {distance:g} sd", number, moved))
    if narrowing is not None and isinstance(law, Distribution) and isinstance(law.law, NormalLaw):
        sets.append((f"one sd × {narrowing:g}", 1, _certain(evaluation, law, narrowing)))
    values = [_values(moved, how, seed) for _, _, moved in sets]
    return Robustness(
        model=evaluation.model,
        settings=tuple(name for name, _, _ in sets),
        spoilt=np.array([number for _, number, _ in sets]),
        values={name: np.array([value[name] for value in values]) for name in values[0]},
        n=evaluation.n,
    )


def _certain(evaluation: EvalSet, law: Distribution, narrowing: float) -> EvalSet:
    """The row of median |z| gets a prediction too narrow."""
    distance = np.abs(evaluation.y - law.point()) / law.sd()
    row = int(np.argsort(distance, kind="stable")[evaluation.n // 2])
    sd = law.sd().copy()
    sd[row] *= narrowing
    return replace(evaluation, beliefs=(Distribution.normal(law.point(), sd),))


def _values(evaluation: EvalSet, how: CongruenceMeasure, seed: int) -> dict[str, float]:
    points = congruence_at(
        evaluation, None, how, child(seed, "congruence outlier draws", evaluation.model)
    )
    nll = losses(evaluation).get("nll", np.full(evaluation.n, np.nan))
    return {
        "nll": float(nll.mean()),
        "ece": calibration_of(evaluation, how, exact=False),
        "cce": float(points.mean()),
        "nll_top": float(nll.max() / abs(np.median(nll))),
        "cce_top": float(points.max() / np.median(points)),
    }
