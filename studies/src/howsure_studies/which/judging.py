"""What is said of one stored fit: raw, corrected in each way, and fitted to all known rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import HowsureError, UnanswerableError
from howsure.engine.view import View
from howsure.predictions import EvalSet, Prediction, Quantiles
from howsure.recalibration import recalibrate
from howsure.topics.scores import pinball
from howsure.verdict.advice import try_recalibrations
from howsure.verdict.family import examine
from howsure_studies.tasks import SplitTable
from howsure_studies.which.cuts import Cut

LEVELS: Final = tuple(round(0.05 * step, 2) for step in range(1, 20))
"""The levels of the quantiles that are kept and scored."""
COVERAGES: Final = (0.5, 0.8, 0.9)
"""Nominal coverages whose intervals are looked at."""
INTERVALS: Final = tuple(round(0.1 * step, 1) for step in range(1, 10))
"""Nominal coverages of the intervals that make these quantiles."""

RAW, ALL, BEST = "raw", "all", "best"
CONFORMAL = "conformal"
WAYS: Final = ("scale", CONFORMAL, "shape", "group", "inputs")
ARMS: Final = (RAW, *WAYS, BEST, ALL)
"""Fitted to training rows; that corrected in each way by the calibration rows, and as advised;
fitted to both."""
FINDINGS: Final = (
    *("coverage", "spread", "bias", "skew", "tails", "region", "groups", "width", "trade", "skill"),
)
"""What of the verdict is counted."""
_STATES: Final[Mapping[str, int]] = {
    "good": 1,
    "negligible": 2,
    "undecided": 2,
    "caution": 3,
    "bad": 4,
}
_JUDGED: Final = (RAW, BEST, ALL)
"""Arms of which the whole verdict is asked."""
_MOST_LABELS: Final = 20


def quantile_table(prediction: Prediction) -> FloatArray:
    """Quantiles at `LEVELS`, shape (n, 19).

    The median of central intervals alone is the middle of the narrowest.
    """
    if prediction.kind != "intervals":
        return np.asarray(prediction.quantile(np.array(LEVELS)))
    ends = [prediction.interval(coverage) for coverage in INTERVALS]
    lower = np.stack([low for low, _ in reversed(ends)], axis=1)
    upper = np.stack([high for _, high in ends], axis=1)
    middle = 0.5 * (lower[:, -1:] + upper[:, :1])
    return np.sort(np.concatenate([lower, middle, upper], axis=1), axis=1)


@final
@frozen(kw_only=True, eq=False)
class FitVerdict:
    """The numbers of `WhichResult`, of all arms."""

    score: FloatArray
    climatology: float
    coverage: FloatArray
    width: FloatArray
    worst: FloatArray
    states: npt.NDArray[np.int8]
    advised: str


def judged_fit(
    table: SplitTable,
    cut: Cut,
    *,
    calibration: FloatArray,
    test: FloatArray,
    whole: FloatArray,
    seed: int = 0,
) -> FitVerdict:
    """Judge a fit by quantiles alone: no method is fitted.

    Parameters
    ----------
    table, cut
        What was predicted.
    calibration, test : ndarray of float, shape (n, 19)
        Quantiles of the fit to training rows.
    whole : ndarray of float, shape (n, 19)
        Quantiles of the test rows by the fit to all known rows.
    seed : int
        Fixes the draws of the verdict.

    Returns
    -------
    FitVerdict
    """
    group = _group(table)
    held = _rows(table, cut.calibration, calibration, group)
    given = _rows(table, cut.test, test, group)
    advice = try_recalibrations(held, coverages=(0.9,), seed=seed).advice
    advised = "" if advice is None else advice.method
    by = () if advice is None else advice.by
    predicted: dict[str, FloatArray | None] = {RAW: test, ALL: whole}
    for way in WAYS:
        predicted[way] = _corrected(given, held, way)
    predicted[BEST] = _corrected(given, held, advised, by) if advised else test
    y = table.part.y
    reference = np.quantile(y[cut.with_y], LEVELS)[None, :]
    climatology = np.repeat(reference, len(cut.test), axis=0)
    arms = [
        _numbers(table, cut.test, predicted[arm], group, judge=arm in _JUDGED, seed=seed)
        for arm in ARMS
    ]
    unit = _width(climatology)
    return FitVerdict(
        score=np.array([arm.score for arm in arms]),
        climatology=_score(y[cut.test], climatology),
        coverage=np.array([arm.coverage for arm in arms]),
        width=np.array([arm.width for arm in arms]) / unit,
        worst=np.array([arm.worst for arm in arms]),
        states=np.array([arm.states for arm in arms], dtype=np.int8),
        advised=advised,
    )


@final
@frozen(kw_only=True)
class _Arm:
    """The numbers of one arm."""

    score: float = math.nan
    coverage: Sequence[float] = (math.nan,) * len(COVERAGES)
    width: float = math.nan
    worst: Sequence[float] = (math.nan, math.nan)
    states: Sequence[int] = (0,) * len(FINDINGS)


def _numbers(
    table: SplitTable,
    rows: IntArray,
    quantiles: FloatArray | None,
    group: Mapping[str, npt.NDArray[np.str_]],
    *,
    judge: bool,
    seed: int,
) -> _Arm:
    """What is seen of an arm; nothing where it is not there."""
    if quantiles is None:
        return _Arm()
    y = table.part.y[rows]
    worst, states = (math.nan, math.nan), [0] * len(FINDINGS)
    if judge:
        known = _rows(table, rows, quantiles, group)
        found = {each.id: _STATES[each.state] for each in examine(known, seed=seed)[0]}
        states = [found.get(name, 0) for name in FINDINGS]
        with suppress(UnanswerableError):
            region = View(known, seed=seed).get("regions_differ", 0.9).region
            worst = worst if region is None else (region.empirical_coverage, region.expected)
    return _Arm(
        score=_score(y, quantiles),
        coverage=[_covered(y, quantiles, coverage) for coverage in COVERAGES],
        width=_width(quantiles),
        worst=worst,
        states=states,
    )


def _score(y: FloatArray, quantiles: FloatArray) -> float:
    """Twice the mean pinball loss over rows and levels."""
    losses = [pinball(y, column, level) for column, level in zip(quantiles.T, LEVELS, strict=True)]
    return 2.0 * float(np.mean(losses))


def _covered(y: FloatArray, quantiles: FloatArray, coverage: float) -> float:
    low, high = _ends(quantiles, coverage)
    return float(np.mean((low <= y) & (y <= high)))


def _width(quantiles: FloatArray) -> float:
    low, high = _ends(quantiles, 0.9)
    return float(np.mean(high - low))


def _ends(quantiles: FloatArray, coverage: float) -> tuple[FloatArray, FloatArray]:
    """The ends of a central interval."""
    at = np.array([0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage])
    low, high = np.asarray(Quantiles(LEVELS, quantiles).quantile(at)).T
    return low, high


def _rows(
    table: SplitTable,
    rows: IntArray,
    quantiles: FloatArray,
    group: Mapping[str, npt.NDArray[np.str_]],
) -> EvalSet:
    """Rows with their quantiles, inputs, group and unit."""
    part = table.part
    return EvalSet.checked(
        part.y[rows],
        Quantiles(LEVELS, quantiles),
        features={name: part.x[rows, k] for k, name in enumerate(part.columns)},
        groups={name: labels[rows] for name, labels in group.items()},
        cluster=None if table.units is None else table.units[rows],
    )


def _corrected(
    given: EvalSet, held: EvalSet, way: str, by: Sequence[str] = ()
) -> FloatArray | None:
    """The test's quantiles, corrected; None where the way cannot be gone."""
    if way == "group" and not held.groups:
        return None
    try:
        made = recalibrate(given, held, method=way, by=by).evalset.predictions[0]
        return np.asarray(made.quantile(np.array(LEVELS)))
    except HowsureError:
        return None


def _group(table: SplitTable) -> dict[str, npt.NDArray[np.str_]]:
    """The column of labels that divides the rows most evenly, by its name; none without labels."""
    columns: dict[str, list[int]] = {}
    for number, name in enumerate(table.part.columns):
        if "=" in name:
            columns.setdefault(name.partition("=")[0], []).append(number)
    best: tuple[float, str, npt.NDArray[np.str_]] | None = None
    for name, own in columns.items():
        flags = table.part.x[:, own] > 0
        label = np.where(flags.any(axis=1), flags.argmax(axis=1), len(own))
        shares = np.bincount(label, minlength=len(own) + 1) / len(label)
        entropy = -float(np.sum(shares[shares > 0] * np.log(shares[shares > 0])))
        if len(own) < _MOST_LABELS and (best is None or entropy > best[0]):
            best = entropy, name, label.astype(np.str_)
    return {} if best is None else {best[1]: best[2]}
