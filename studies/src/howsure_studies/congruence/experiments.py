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
from typing import Annotated, Final

import numpy as np

from howsure.core.arrays import AnyArray, FloatArray
from howsure.core.convert import Bound, Positive, checked
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.progress import part_of, report_progress
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Prediction
from howsure.predictions.laws import NormalLaw
from howsure.topics.congruence.examples import rejection_curve
from howsure.topics.congruence.view import predictive_of
from howsure_studies.congruence.encoders import kind_of
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
from howsure_studies.congruence.options import CongruenceStudyOptions, Kind
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

SEVERITIES: Final[Mapping[Kind, tuple[float, ...]]] = {
    "blur": (1.0, 2.5, 5.0, 7.5, 10.0),
    "label_shift": (1.0, 2.0, 3.0, 4.0, 5.0),
    "label_noise": (1.0, 2.0, 3.0, 4.0, 5.0),
    "mixup": (0.1, 0.2, 0.3, 0.4, 0.5),
}
"""Perturbations with their severities: sd of the blur in pixels; m of N(m, 1) added to y, as
published; sd of N(0, sd²) added to y; share of another row in x and y."""
_BLOCK: Final = 4_000_000


def gaussian_blur(images: AnyArray, sd: float, *, kernel: tuple[int, int] = (5, 9)) -> AnyArray:
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
            raise InputError(f"kernel must contain odd sizes that fit the images, got {kernel}")
        weights = np.exp(-0.5 * (np.arange(size) - size // 2) ** 2 / sd**2)
        blurred = convolve1d(blurred, weights / weights.sum(), axis=axis, mode="mirror")
    return _as_before(blurred, images)


def noisy_labels(
    y: FloatArray, rng: np.random.Generator, *, shift: float, sd: float, counts: bool = False
) -> FloatArray:
    """Labels with N(shift, sd²) added; counts are rounded, and no less than 0."""
    return _counted(y + shift + sd * rng.standard_normal(len(y)), counts=counts)


def mixup(
    x: AnyArray,
    y: FloatArray,
    weight: float,
    rng: np.random.Generator,
    *,
    counts: bool = False,
) -> tuple[AnyArray, FloatArray]:
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
    else:
        shift, sd = (severity, 1.0) if kind == "label_shift" else (0.0, severity)
        y = noisy_labels(y, rng, shift=shift, sd=sd, counts=task.counts)
    return Part(x=x, y=y, ids=part.ids)


def possible_kinds(task: Task, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    """Those perturbations that inputs permit: images alone are blurred, and texts do not mix."""
    left_out = {"image": (), "text": ("blur", "mixup"), None: ("blur",)}[kind_of(task.train.x)]
    return tuple(kind for kind in kinds if kind not in left_out)


def monotonicity(
    task: Task, label: str, fit: Fitted, options: CongruenceStudyOptions, seed: int = 0
) -> MonotonicityResult:
    """Measure a fitted model on the test part under perturbations of rising severity.

    The perturbed part is the reference S. By default ``blur`` (of images), ``label_shift`` and
    ``mixup``, as published. With `resample` each trial takes a bootstrap sample, the same at all
    severities; else only noise and draws differ. Perturbations that change the variance of y, as
    mixup does, change γ of y with it where that is set anew for each, as published: a fixed γ
    compares like with like, and may fall where the other rises.
    """
    how, trials = options.measure.of_task(task), options.trials
    if options.gamma_of_y == "fixed":
        how = _fixed(how, task.test.y)
    usual: tuple[Kind, ...] = ("blur", "label_shift", "mixup")
    kinds = possible_kinds(task, usual) if options.kinds is None else options.kinds
    curves: list[Monotonicity] = []
    for number, kind in enumerate(kinds):
        levels = (0.0, *options.severities.get(kind, SEVERITIES[kind]))
        values = {name: np.full((trials, len(levels)), np.nan) for name in MEASURES}
        stage = f"{kind} of {label}"
        for step, level in enumerate(levels):
            said: Prediction | None = None
            embedded: FloatArray | None = None
            for trial in range(trials):
                noise = child(seed, "congruence perturbation", kind, level, trial)
                part = perturbed(task, task.test, kind, level, noise)
                if said is None or embedded is None or kind == "mixup":
                    said, embedded = fit.predict(part.x).outcome, task.space.embed(part.x)
                evaluation = stated(said, part.y, embedded, model=label)
                if options.resample:
                    rng = child(seed, "congruence perturbation rows", trial)
                    evaluation = evaluation.take(rng.integers(evaluation.n, size=evaluation.n))
                with part_of(stage, step * trials + trial, len(levels) * trials):
                    draws = child(seed, "congruence perturbation draws", label, trial)
                    measured = _measured(evaluation, how, draws)
                for name, rows in measured.items():
                    values[name][trial, step] = rows.mean()
        report_progress(stage, number + 1, len(kinds))
        curves.append(
            Monotonicity(
                task=task.name,
                model=label,
                kind=kind,
                severities=np.array(levels, dtype=np.float64),
                values=values,
            )
        )
    return MonotonicityResult(
        curves=tuple(curves),
        options={**how.options(), "trials": float(trials), "gamma_of_y": options.gamma_of_y},
    )


def _gamma_of(y: FloatArray) -> float:
    return float(1.0 / (2.0 * y.var(ddof=1)))


def _fixed(how: CongruenceMeasure, y: FloatArray) -> CongruenceMeasure:
    """The measure with γ of y as these rows have it, unless one is chosen."""
    return how if how.output_bandwidth is not None else replace(how, output_bandwidth=_gamma_of(y))


def _as_before(values: FloatArray, like: AnyArray) -> AnyArray:
    return (np.rint(values) if like.dtype.kind in "iu" else values).astype(like.dtype)


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
    task: Task, label: str, fit: Fitted, how: CongruenceMeasure, seed: int, name: str
) -> tuple[EvalSet, FloatArray]:
    """The test part, and CCE there by the validation part's labels: mean over sets of draws."""
    val, test = (answer(fit, part, task.space.embed, model=label) for part in (task.val, task.test))
    sets = [
        congruence_at(val, test.embedding, how, child(seed, name, label, number))
        for number in range(how.sets)
    ]
    return test, np.mean(sets, axis=0)


def rejection(
    task: Task, label: str, fit: Fitted, options: CongruenceStudyOptions, seed: int = 0
) -> Rejection:
    """Withhold test rows by a CCE that knows labels of the validation part alone."""
    how = options.measure.of_task(task)
    test, scores = _unlabelled(task, label, fit, how, seed, "congruence rejection")
    known = losses(test)
    rows = {"mae": known["error"]} | ({"nll": known["nll"]} if "nll" in known else {})
    for loss, values in rows.items():
        if infinite := int((~np.isfinite(values)).sum()):
            raise UnanswerableError(f"its {loss} is infinite in {infinite} of {test.n} rows")
    rng = child(seed, "congruence rejection orders", label)
    return Rejection(
        task=task.name,
        model=label,
        scores=scores,
        losses=rows,
        p_values={
            loss: order_p_value(values, rejection_curve(scores, values).area, rng, options.orders)
            for loss, values in rows.items()
        },
        units=task.units,
        options=how.options(),
    )


def diagnosis(
    task: Task, label: str, fit: Fitted, options: CongruenceStudyOptions, seed: int = 0
) -> Diagnosis:
    """Compare CCE at unlabelled test inputs, by the exact embedding, with the true error."""
    how = replace(options.measure, draws=None).of_task(task)
    right = answer(TrueDistribution(task), task.test, task.space.embed)
    test, cce = _unlabelled(task, label, fit, how, seed, "congruence diagnosis")
    assert test.embedding is not None
    laws = predictive_of(test, "exact"), predictive_of(right, "exact")
    return Diagnosis(
        task=task.name,
        model=label,
        x=test.embedding,
        cce=cce,
        error=law_distance(*laws, _gamma_of(task.val.y)),
        nll=_nll(test),
        options=how.options(),
    )


def robustness(
    evaluation: EvalSet, options: CongruenceStudyOptions, *, counts: bool = False, seed: int = 0
) -> Robustness:
    """Measure a model on rows as they are, with a few outliers, and with one false certainty.

    In rows chosen at random, y is put so many predicted standard deviations from the prediction,
    to a random side, or above for counts; rows of a smaller number are among those of a larger
    one. γ of y stays that of the rows as they are, and so do draws.
    """
    most, distance = max(options.outliers, default=0), options.distance
    if most > evaluation.n:
        raise InputError(f"outliers must be at most {evaluation.n} rows, got {most}")
    how = _fixed(options.measure, evaluation.y)
    law = law_of(evaluation)
    rng = child(seed, "congruence outliers")
    order = rng.permutation(evaluation.n)
    side = np.ones(evaluation.n) if counts else rng.choice([-1.0, 1.0], evaluation.n)
    sets: list[tuple[str, int, EvalSet]] = [("as they are", 0, evaluation)]
    for number in options.outliers:
        far, rows = evaluation.y.copy(), order[:number]
        far[rows] = (law.point() + side * distance * law.sd())[rows]
        moved = replace(evaluation, y=np.rint(far) if counts else far)
        sets.append((f"outliers at {distance:g} sd", number, moved))
    share = options.narrowing
    if share and isinstance(law, Distribution) and isinstance(law.law, NormalLaw):
        sets.append((f"one sd × {share:g}", 1, _certain(evaluation, law, share)))
    words = "congruence outlier draws", evaluation.model
    rows_of = [_measured(moved, how, child(seed, *words)) for _, _, moved in sets]
    values = {name: np.array([rows[name].mean() for rows in rows_of]) for name in rows_of[0]}
    for name in ("nll", "cce"):
        tops = [rows[name].max() / abs(np.median(rows[name])) for rows in rows_of]
        values[f"{name}_top"] = np.array(tops)
    return Robustness(
        model=evaluation.model,
        settings=tuple(name for name, _, _ in sets),
        spoilt=np.array([number for _, number, _ in sets]),
        values=values,
        n=evaluation.n,
    )


def _certain(evaluation: EvalSet, law: Distribution, narrowing: float) -> EvalSet:
    """The row of median |z| gets a prediction too narrow."""
    distance = np.abs(evaluation.y - law.point()) / law.sd()
    row = int(np.argsort(distance, kind="stable")[evaluation.n // 2])
    sd = law.sd().copy()
    sd[row] *= narrowing
    return replace(evaluation, predictions=(Distribution.normal(law.point(), sd),))


def _measured(
    evaluation: EvalSet, how: CongruenceMeasure, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """NLL and CCE of each row, and ECE."""
    return {
        "nll": _nll(evaluation),
        "ece": np.array(calibration_of(evaluation, how, exact=False)),
        "cce": congruence_at(evaluation, None, how, rng),
    }


def _nll(evaluation: EvalSet) -> FloatArray:
    """NLL of each row; NaN where predictions have no density."""
    return losses(evaluation).get("nll", np.full(evaluation.n, np.nan))
