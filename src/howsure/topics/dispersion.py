"""Dispersion: do predicted standard deviations match the size of the errors?

Weights are multiplicities: a weight of two is a row twice. To use importance weights, scale them
so that they sum to Kish's effective n.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_vector, check_above, power_of_two
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.records import Direction
from howsure.core.weights import check_multiplicities
from howsure.engine.metric import (
    BINNED,
    BY_UNIT,
    POSITIVE,
    Array,
    Metric,
    Question,
    Sums,
    Topic,
    Value,
    of_rows,
    root_mean,
    row_mean,
    statistic,
)
from howsure.engine.view import View
from howsure.stats.estimate import Estimate, NormNoise, mean_statistic, noise_of_bins, weighted_mean
from howsure.stats.moments import Joint


def squared_z(y: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike) -> FloatArray:
    """Squared z-score of each row, (y − mean)²/sd²; its mean is the mean squared z-score (ZMS).

    The mean is 1 where the predicted variances are right on average, above 1 where the model is
    overconfident, below 1 where it is underconfident. Closer to 1 is better; no units; the notion
    is marginal. Rows of small sd weigh most. Not a proper score by itself.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's predicted mean and standard deviation (above 0).

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    InputError
        If an sd is not above 0, lengths differ, or a value is missing.

    Notes
    -----
    Pernot (2024), Negative impact of heavy-tailed uncertainty and error distributions on the
    reliability of calibration statistics for machine learning regression tasks,
    arXiv:2402.10043.

    Examples
    --------
    >>> squared_z([1.0, 4.0], [0.0, 0.0], [1.0, 2.0])
    array([1., 4.])
    """
    truth = as_vector(y, "y")
    centre = as_vector(mean, "mean", length=len(truth))
    scale = _check_sd(sd, len(truth))
    with np.errstate(over="ignore"):
        return np.square((truth - centre) / scale)


def variance_ratio(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    sd: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Mean squared error over mean predicted variance, Σ(y − mean)²/Σsd².

    The mean is 1 where the predicted variances are right on average, above 1 where the model is
    overconfident. Closer to 1 is better; no units; the notion is marginal. For the mean and the
    sd s of m samples pass s√(1 + 1/m): the expectations of both sums are then equal for any
    distribution, while the mean of (y − mean)²/s² exceeds 1 for a perfect ensemble, by 41 % for
    ten normal members.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's predicted mean and standard deviation (0 or more).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        The influence is ((y − mean)² − ratio·sd²)/mean(sd²); NaN where every sd is 0.

    Raises
    ------
    InputError
        If an sd is below 0, lengths differ, or a value is missing.

    Notes
    -----
    Fortin, Abaza, Anctil and Turcotte (2014), Why should ensemble spread match the RMSE of the
    ensemble mean?, Journal of Hydrometeorology 15, 1708-1713.

    Examples
    --------
    >>> variance_ratio([1.0, 3.0], [0.0, 0.0], [1.0, 2.0]).value
    2.0
    """
    return _of_variances(_ratio, y, mean, sd, weights)


def relative_calibration_error(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    sd: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Relative calibration error (RCE) of the root mean variance against the RMSE.

    (RMV − RMSE)/RMV with RMV = √mean(sd²) and RMSE = √mean((y − mean)²). Positive means
    underconfident, negative overconfident; closer to 0 is better; no units; the notion is
    marginal. Not the regression calibration error of `howsure.topics.calibration`.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's predicted mean and standard deviation (0 or more).
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        1 − √r with r of `variance_ratio`, whose influence over −2√r is this one's. NaN where
        every sd is 0.

    Raises
    ------
    InputError
        If an sd is below 0, lengths differ, or a value is missing.

    Notes
    -----
    Pernot (2024), arXiv:2402.10043.

    Examples
    --------
    >>> relative_calibration_error([1.0, -1.0], [0.0, 0.0], [2.0, 2.0]).value
    0.5
    """
    return _of_variances(_relative_error, y, mean, sd, weights)


def _of_variances(
    value: Value,
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    sd: npt.ArrayLike,
    weights: npt.ArrayLike | None,
) -> Estimate:
    """A statistic of squared errors and variances that no unit changes."""
    error = _errors(y, mean)
    scale = as_vector(sd, "sd", length=len(error))
    if (scale < 0).any():
        raise InputError(f"sd must not be negative, got {float(scale.min()):g}")
    w = check_multiplicities(weights, len(error))
    # in this unit no square overflows, and the largest does not vanish
    unit = max(float(scale.max()), float(np.abs(error).max())) or 1.0
    squared_error, variance = np.square(error / unit), np.square(scale / unit)
    estimate = of_rows(value, (squared_error, variance), weights=w, squares=squared_error)
    if math.isnan(estimate.value) and scale.max() > 0.0:
        return replace(estimate, reason="every sd is negligible beside the largest error")
    return estimate


def _ratio(sums: Joint) -> tuple[Estimate, FloatArray | None]:
    """Of squared errors and variances."""
    error, variance = (float(mean) for mean in sums.mean)
    if variance == 0.0:
        reason = "every sd is 0, so the predictions show no spread"
        return Estimate(math.nan, reason=reason), None
    ratio = error / variance
    return Estimate(ratio), np.array([1.0, -ratio]) / variance


def _relative_error(sums: Joint) -> tuple[Estimate, FloatArray | None]:
    """Of squared errors and variances."""
    ratio, slopes = _ratio(sums)
    if slopes is None:
        return ratio, None
    root = math.sqrt(ratio.value)
    return Estimate(1.0 - root), slopes * (-0.5 / root if root > 0.0 else 0.0)


def ence(
    y: npt.ArrayLike,
    mean: npt.ArrayLike,
    sd: npt.ArrayLike,
    *,
    bins: int = 15,
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Expected normalised calibration error: is the sd right at every size of sd?

    Rows are binned by sd into bins of equal mass; the mean over bins of |RMV_b − RMSE_b|/RMV_b.
    Lower is better, 0 is perfect; no units; the notion is local in the predicted sd.

    Rows of one sd are shared among the bins that they reach into, each in the same proportion,
    and so is a single row on an edge. So bins hold exactly n/bins rows, row order does not
    matter, a weight of two is a row twice, and where no row is cut the bins are the usual ones.

    Parameters
    ----------
    y, mean, sd : array-like of shape (n,)
        What happened, and each row's predicted mean and standard deviation (above 0).
    bins : int
        Number of bins, at least 1.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate
        NaN where there are fewer than two rows a bin. The influence holds the edges fixed.

    Raises
    ------
    InputError
        If an sd is not above 0, lengths differ, a value is missing, or bins is below 1.

    Notes
    -----
    Levi, Gispan, Giladi and Fetaya (2022), Evaluating and calibrating uncertainty prediction in
    regression tasks, Sensors 22, 5540.

    Examples
    --------
    >>> ence([1.0, -1.0, 4.0, -4.0], [0.0] * 4, [1.0, 1.0, 2.0, 2.0], bins=2).value
    0.5
    """
    check_whole(bins, "bins")
    error, scale = _check_errors(y, mean, sd)
    w = check_multiplicities(weights, len(error))
    total = float(len(error)) if w is None else float(w.sum())
    if total < 2 * bins:
        return Estimate(
            math.nan, reason=f"{total:g} rows are fewer than two for each of {bins} bins"
        )
    cut = _equal_mass_bins(scale, w, bins)
    unit = max(float(scale.max()), float(np.abs(error).max()))
    squared_error, variance = np.square(error / unit), np.square(scale / unit)
    mse, mv = cut.means(squared_error), cut.means(variance)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.sqrt(mse / mv)
        sign = np.where(mse > 0.0, np.sign(ratio - 1.0), 0.0)
        by_error = np.where(mse > 0.0, sign / (2.0 * np.sqrt(mse * mv)), 0.0)
        by_variance = sign * ratio / (2.0 * mv)
        influence = squared_error * cut.spread(by_error) - variance * cut.spread(by_variance)
    value = float(np.abs(1.0 - ratio).mean())
    if not (math.isfinite(value) and np.isfinite(influence).all()):
        return Estimate(value, reason="the sd spans too many orders of magnitude")
    z = squared_error / cut.spread(mv)
    kurtosis = weighted_mean(np.square(z), w) / weighted_mean(z, w) ** 2 if z.any() else 1.0
    size = ratio * math.sqrt(max(kurtosis - 1.0, 0.0) / (4.0 * cut.capacity))
    draws = np.abs(noise_of_bins(bins))
    noise = NormNoise(draws @ size / bins, lambda most: value - most)
    return Estimate(value, influence, squares=squared_error, noise=noise)


def sharpness(
    sd: npt.ArrayLike,
    *,
    kind: Literal["root_mean_variance", "mean_sd"] = "root_mean_variance",
    weights: npt.ArrayLike | None = None,
) -> Estimate:
    """Typical predicted standard deviation, whatever happened.

    √mean(sd²), or mean(sd). Lower is sharper, and better among calibrated models only; in the
    units of y; the notion is marginal.

    Parameters
    ----------
    sd : array-like of shape (n,)
        Predicted standard deviations, 0 or more.
    kind : {"root_mean_variance", "mean_sd"}
        Which average.
    weights : array-like of shape (n,), optional
        Multiplicities of the rows.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        If an sd is below 0 or missing, or the kind is unknown.

    Notes
    -----
    Root mean variance: Tran et al. (2020), Methods for comparing uncertainty quantifications for
    material property predictions, Machine Learning: Science and Technology 1, there called
    sharpness.

    Examples
    --------
    >>> sharpness([3.0, 4.0]).value, sharpness([3.0, 4.0], kind="mean_sd").value
    (3.5355, 3.5)
    """
    scale = as_vector(sd, "sd")
    if (scale < 0).any():
        raise InputError(f"sd must not be negative, got {float(scale.min()):g}")
    w = check_multiplicities(weights, len(scale))
    if kind == "mean_sd":
        return mean_statistic(scale, w)
    if kind != "root_mean_variance":
        raise InputError(f"kind must be 'root_mean_variance' or 'mean_sd', got {kind!r}")
    unit = power_of_two(scale)  # so that squares neither vanish nor overflow
    return of_rows(root_mean, (np.square(scale / unit),), weights=w, unit=unit)


@frozen
class _Bins:
    """Rows sorted into groups of one sd, and groups shared among bins of equal mass."""

    order: IntArray
    starts: IntArray
    weights: FloatArray | None
    group: IntArray
    bin: IntArray
    share: FloatArray
    count: int
    capacity: float

    def means(self, values: FloatArray) -> FloatArray:
        """Mean of the values in each bin."""
        weighted = values if self.weights is None else values * self.weights
        sums = np.add.reduceat(weighted[self.order], self.starts)
        shared = self.share * sums[self.group]
        return np.bincount(self.bin, weights=shared, minlength=self.count) / self.capacity

    def spread(self, by_bin: FloatArray) -> FloatArray:
        """Value of each row's bin, averaged over the bins that it is shared among."""
        shared = np.bincount(self.group, weights=self.share * by_bin[self.bin])
        sizes = np.diff(self.starts, append=len(self.order))
        out = np.empty(len(self.order))
        out[self.order] = np.repeat(shared, sizes)
        return out


def _equal_mass_bins(key: FloatArray, w: FloatArray | None, bins: int) -> _Bins:
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    masses = np.add.reduceat(np.ones(len(key)) if w is None else w[order], starts)
    ends = masses.cumsum()
    scale = bins / ends[-1]
    low = np.append(0.0, ends[:-1]) * scale
    high = ends * scale
    first = np.minimum(np.floor(low).astype(np.int64), bins - 1)
    last = np.clip(np.ceil(high).astype(np.int64) - 1, first, bins - 1)
    reach = last - first + 1
    group = np.repeat(np.arange(len(starts)), reach)
    offset = np.arange(len(group)) - np.repeat(np.append(0, reach.cumsum()[:-1]), reach)
    number = first[group] + offset
    overlap = np.minimum(high[group], number + 1.0) - np.maximum(low[group], number)
    width = np.where(masses > 0.0, high - low, 1.0)
    return _Bins(
        order, starts, w, group, number, overlap / width[group], bins, float(ends[-1]) / bins
    )


def _check_sd(sd: npt.ArrayLike, n: int) -> FloatArray:
    scale = as_vector(sd, "sd", length=n)
    check_above(scale, "sd", 0.0)
    return scale


def _check_errors(
    y: npt.ArrayLike, mean: npt.ArrayLike, sd: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    error = _errors(y, mean)
    return error, _check_sd(sd, len(error))


def _errors(y: npt.ArrayLike, mean: npt.ArrayLike) -> FloatArray:
    truth = as_vector(y, "y")
    centre = as_vector(mean, "mean", length=len(truth))
    with np.errstate(over="ignore"):
        error = truth - centre
    if not np.isfinite(error).all():
        row = int(np.argmin(np.isfinite(error)))
        raise InputError(f"y - mean must be finite, got an overflow at row {row}")
    return error


def _members(view: View) -> int:
    """How many samples the sd of a row was estimated from; 0 where it was stated."""
    answered = view.answered("sd")
    return 0 if answered is None else answered.draws


def _error_sd(view: View, _: float) -> FloatArray:
    """Standard deviation of y about the mean: that of m samples has an error of its own."""
    sd: FloatArray = view.get("sd")
    members = _members(view)
    return sd * math.sqrt(1.0 + 1.0 / members) if members else sd


def _ensemble_sd(view: View, _: float) -> FloatArray:
    """As `_error_sd`, of samples alone."""
    sd: FloatArray = view.get("error_sd")
    if not _members(view):
        raise UnanswerableError("the sd is not that of samples")
    return sd


def _stated_sd(view: View, _: float) -> FloatArray:
    """The sd where it was stated, so that rows can be binned by it without its chance."""
    sd: FloatArray = view.get("sd")
    if members := _members(view):
        raise UnanswerableError(
            f"bins are based on the sd of {members} samples, so a perfect model scores above 0"
        )
    return sd


def _errors_and_variances(sd: str, view: View, _: float) -> tuple[FloatArray, ...]:
    return np.square(view.get("y") - view.get("mean")), np.square(view.get(sd))


def _positive_sd(view: View, _: float) -> FloatArray:
    """Standard deviations that errors can be divided by."""
    sd: FloatArray = view.get("error_sd")
    if not (sd > 0).all():
        rows, first = int((sd <= 0).sum()), view.evalset.row_names()[int(np.argmax(sd <= 0))]
        told = "1 row" if rows == 1 else f"{rows:,} rows"
        raise UnanswerableError(
            f"the {view.source(['sd'])} of {told} are all equal (first at row {first}), so no "
            "error can be divided by their sd"
        )
    return sd


_entry = partial(Metric, question=Question.CALIBRATION, direction=Direction.TARGET)

_ENTRIES = (
    Metric(
        name="sharpness",
        title="Sharpness",
        synonyms=("SHP", "root mean variance"),
        question=Question.WIDTH,
        meaning="Root mean predicted variance; lower is sharper.",
        formula="√mean sd²",
        source="Gneiting, Balabdaoui and Raftery 2007",
        direction=Direction.NONE,
        units="y",
        forms=(statistic(sharpness, "sd"),),
        laws=BY_UNIT,
        standard_normal=1.0,
        bounds=POSITIVE,
        beware="A model that claims certainty is sharpest. Read it with a measure of calibration.",
    ),
    _entry(
        name="mean_squared_z",
        title="Mean squared z-score (ZMS)",
        synonyms=(
            "z-score variance",
            "variance of z",
            "mean z squared",
            "reduced chi squared",
            "MSZ",
        ),
        meaning="Squared errors over predicted variances: above 1 the sd is too small.",
        formula="mean ((y − μ)/sd)²; of m samples Σ(y − μ)²/Σ(1 + 1/m)sd²",
        source="Pernot 2024; of samples Fortin et al. 2014",
        forms=(
            statistic(variance_ratio, "y", "mean", "ensemble_sd", squares=True),
            row_mean(squared_z, "y", "mean", "positive_sd", squares=True),
        ),
        standard_normal=1.0,
        target=1.0,
        bounds=POSITIVE,
        beware=(
            "One tiny sd with an ordinary error can dominate it. Where z is heavy-tailed, no "
            "interval is given. Over- and under-confident rows cancel."
        ),
    ),
    _entry(
        name="relative_calibration_error",
        title="Relative calibration error (RCE)",
        meaning="Root mean variance against root mean squared error: above 0 the sd is too large.",
        formula="(RMV − RMSE)/RMV; of m samples with (1 + 1/m)sd² for the variance",
        source="Pernot 2024",
        forms=(statistic(relative_calibration_error, "y", "mean", "error_sd", squares=True),),
        standard_normal=0.0,
        target=0.0,
        bounds=(-math.inf, 1.0),
        beware="Rows with large variances dominate it; others may be wrong.",
    ),
    _entry(
        name="ence",
        title="ENCE",
        synonyms=("expected normalised calibration error", "expected normalized calibration error"),
        meaning="Expected normalised calibration error: sd against error in bins of equal mass.",
        formula="mean over bins of |RMV_b − RMSE_b| / RMV_b; of m samples as RCE",
        source="Levi et al. 2022",
        direction=Direction.LOWER,
        forms=(statistic(ence, "y", "mean", "positive_sd"),),
        merges="rows",
        standard_normal=0.0,
        target=0.0,
        bounds=POSITIVE,
        supposes="stated_sd",
        beware=f"{BINNED} Its interval is wide: it contains the truth in 99 % of tables, not 95 %.",
    ),
)

TOPIC = Topic(
    entries=_ENTRIES,
    arrays=(
        Array("error_sd", _error_sd, predicted=True),
        Array("ensemble_sd", _ensemble_sd, predicted=True),
        Array("positive_sd", _positive_sd, predicted=True, by_row=True),
        Array("stated_sd", _stated_sd, predicted=True),
        Array("sd", lambda view, _: view.ask("sd", "sd"), predicted=True, by_row=True),
        Array(
            "mean",
            lambda view, _: view.ask("mean", "point", also="sd"),
            predicted=True,
            by_row=True,
        ),
    ),
    sums={
        "sharpness": Sums(lambda view, _: (np.square(view.get("sd")),), root_mean),
        "mean_squared_z": Sums(partial(_errors_and_variances, "ensemble_sd"), _ratio),
        "relative_calibration_error": Sums(
            partial(_errors_and_variances, "error_sd"), _relative_error
        ),
    },
)
