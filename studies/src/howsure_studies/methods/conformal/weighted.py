"""Weighted conformal thresholds: for shifted inputs, and for coverage near each x."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, final

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.conformal.adapting import Adaptation, Calibration, Thresholds
from howsure.conformal.thresholds import check_bounded, check_few
from howsure.core.arrays import FloatArray, as_matrix, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Positive
from howsure.core.errors import InputError
from howsure.core.rng import row_keys, row_uniforms

_BLOCK = 2**21
_SLACK = 1e-12
_MOST = 1e9  # a learnt ratio beside which calibration rows weigh nothing: intervals are infinite

Ratio = Callable[[FloatArray], FloatArray]


def weighted_thresholds(
    scores: npt.ArrayLike, weights: npt.ArrayLike, new: npt.ArrayLike, coverage: float
) -> FloatArray:
    """Thresholds for new rows of another population, by the ratio of the two densities.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Calibration scores.
    weights : array-like of shape (n,)
        w(x) of the calibration rows: density of new inputs over that of calibration inputs, up to
        a common factor.
    new : array-like of shape (m,)
        w(x) of the new rows, with the same factor.
    coverage : float
        Nominal coverage 1−α, in (0, 1).

    Returns
    -------
    ndarray of float, shape (m,)
        The smallest score s with Σ{w_i : s_i ≤ s} ≥ (1 − α)(Σ w_i + w), +inf where there is none.

    Raises
    ------
    InputError
        If a score is missing, a weight is negative or not finite, or the coverage leaves (0, 1).

    Notes
    -----
    Covers 1 − α on average over new rows, for the true ratio. With equal weights it is the
    conformal rank ⌈(n + 1)(1 − α)⌉. Cost O((n + m) log n), memory O(n + m). Source: Tibshirani,
    Foygel Barber, Candès and Ramdas 2019, "Conformal prediction under covariate shift",
    corollary 1.

    Examples
    --------
    >>> weighted_thresholds([1.0, 2.0, 3.0], [1.0, 1.0, 8.0], [0.0, 5.0], 0.8)
    array([ 3., inf])
    """
    given = as_vector(scores, "scores", finite=False)
    mass = _weighed(weights, "weights", len(given))
    beside = _weighed(new, "new", None)
    order = np.argsort(given, kind="stable")
    reached = np.cumsum(mass[order])
    total = reached[-1] + beside
    wanted = check_fraction(coverage, "coverage") * total - _SLACK * total
    places = np.searchsorted(reached, wanted)
    ends = np.r_[given[order], np.inf]
    return np.asarray(np.where(total > 0, ends[places], np.inf))


@final
@frozen
class CovariateShift(Adaptation):
    """Thresholds for inputs from another population: coverage holds on average over new x.

    Parameters
    ----------
    ratio : callable, optional
        Maps inputs, shape (m, d), to density of new x over that of old x, up to a factor, shape
        (m,). If omitted, `density_ratio` learns one from the inputs of training and of the other
        population.
    classifier : scikit-learn classifier, optional
        That of `density_ratio`.

    Notes
    -----
    See `weighted_thresholds`. Where the ratio is estimated, coverage is as good as the estimate;
    and nothing is promised where y given x changes too.

    Examples
    --------
    >>> CovariateShift(lambda x: np.exp(x[:, 0])).label
    'weighted'
    """

    ratio: Ratio | None = None
    classifier: Any = field(default=None, metadata={"later": True})

    def __post_init__(self) -> None:
        if self.ratio is not None and not callable(self.ratio):
            raise InputError(f"ratio must be a function of inputs, got {self.ratio!r}")

    @property
    def label(self) -> str:
        """What reports add to a method's name."""
        return "weighted"

    @property
    def for_elsewhere(self) -> bool:
        """They are for another population."""
        return True

    def learn(self, calibration: Calibration) -> _Shifted:
        """Weigh the calibration rows.

        Raises
        ------
        InputError
            If a weight is negative or not finite, another rank than the conformal is asked, or a
            ratio is to be learnt and inputs of the other population are not at hand.
        """
        _check_rule(calibration, "covariate shift")
        ratio = self.ratio or learnt_ratio(calibration, self.classifier)
        weights = _weighed(ratio(calibration.x), "ratio", len(calibration.x))
        return _Shifted(ratio, weights, calibration)


@final
@frozen(eq=False)
class _Shifted(Thresholds):
    ratio: Ratio
    weights: FloatArray
    calibration: Calibration

    def at(self, x: FloatArray) -> FloatArray:
        """The thresholds that hold at each row of x, shape (m, c)."""
        new = _weighed(self.ratio(x), "ratio", len(x))
        columns = [
            weighted_thresholds(self.calibration.scores[:, column], self.weights, new, coverage)
            for column, coverage in enumerate(self.calibration.coverages)
        ]
        return _answered(np.stack(columns, axis=1), self.calibration)


@final
@frozen
class Localized(Adaptation, Checked):
    """Thresholds from calibration rows near x, weighted by a Gaussian kernel.

    Parameters
    ----------
    bandwidth : float
        Standard deviation of the kernel, in standard deviations of each column; above 0. Small
        values follow x closely and need more calibration rows, exponentially so in the number of
        columns: intervals are infinite where too few are near.
    randomized : bool
        Whether the kernel is centred on a point drawn near x, which makes coverage on average
        over x exact; without it the kernel is centred on x, and nothing is guaranteed.

    Notes
    -----
    With x̃ drawn from the kernel H(x, ·), calibration rows weigh H(x_i, x̃) and the new row
    H(x, x̃); see `weighted_thresholds`. The draw is fixed by x and by the fit's generator. Time
    O(mn), memory by blocks. Source: Hore and Foygel Barber 2024, "Conformal prediction with local
    weights: randomization enables robust guarantees"; Guan 2023 without randomisation and without
    her correction of the level.

    Examples
    --------
    >>> Localized(0.5).label
    'local'
    """

    bandwidth: Positive = 0.5
    randomized: bool = True

    @property
    def label(self) -> str:
        """What reports add to a method's name."""
        return "local"

    def learn(self, calibration: Calibration) -> _Near:
        """Standardise the columns, by training rows where there are any.

        Raises
        ------
        InputError
            If another rank than the conformal is asked.
        """
        _check_rule(calibration, "local weights")
        rows = calibration.training if len(calibration.training) else calibration.x
        unit = rows.std(axis=0) * self.bandwidth
        unit = np.where(unit > 0, unit, 1.0)
        return _Near(self, unit, int(calibration.rng.integers(2**62)), calibration)


@final
@frozen(eq=False)
class _Near(Thresholds):
    method: Localized
    unit: FloatArray
    seed: int
    calibration: Calibration

    def at(self, x: FloatArray) -> FloatArray:
        """The thresholds that hold at each row of x, shape (m, c)."""
        size = max(1, _BLOCK // len(self.calibration.x))
        center = self._centers(x)
        starts = range(0, len(x), size)
        parts = [self._block(x[i : i + size], center[i : i + size]) for i in starts]
        return _answered(np.concatenate(parts), self.calibration)

    def _centers(self, x: FloatArray) -> FloatArray:
        if not self.method.randomized:
            return x
        keys = row_keys(x)
        draws = [row_uniforms(self.seed, f"column {j}", keys) for j in range(x.shape[1])]
        return np.asarray(x + self.unit * special.ndtri(np.stack(draws, axis=1)))

    def _block(self, x: FloatArray, center: FloatArray) -> FloatArray:
        known = self.calibration
        logs = _log_kernel(center, known.x, self.unit)
        own = -0.5 * np.square((x - center) / self.unit).sum(axis=1)
        top = np.maximum(logs.max(axis=1), own)
        weights, beside = np.exp(logs - top[:, None]), np.exp(own - top)
        found = []
        for column, coverage in enumerate(known.coverages):
            order = np.argsort(known.scores[:, column], kind="stable")
            reached = np.cumsum(weights[:, order], axis=1)
            total = reached[:, -1] + beside
            wanted = (coverage - _SLACK) * total
            places = (reached < wanted[:, None]).sum(axis=1)
            found.append(np.r_[known.scores[order, column], np.inf][places])
        return np.stack(found, axis=1)


def density_ratio(
    old: npt.ArrayLike, new: npt.ArrayLike, classifier: Any = None, most: float = math.inf
) -> Ratio:
    """Density of new inputs over that of old ones, by a classifier that tells them apart.

    Parameters
    ----------
    old, new : array-like of shape (n, d), (m, d)
        Inputs of the two populations; no y is needed. Neither should hold calibration rows.
    classifier : scikit-learn classifier, optional
        With ``predict_proba``; logistic regression on standardised columns if omitted.
    most : float
        The largest ratio that is given, above 0: a classifier may be sure that a row is new.

    Returns
    -------
    callable
        Maps inputs, shape (k, d), to ratios, shape (k,): p/(1 − p) of being new, times n/m.

    Raises
    ------
    InputError
        If a value is not finite, columns differ, or `most` is not above 0; when called, if a
        probability is 1 and `most` is infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ratio = density_ratio(rng.normal(size=(500, 1)), rng.normal(1.0, size=(500, 1)))
    >>> bool(ratio(np.array([[2.0]]))[0] > 1 > ratio(np.array([[-1.0]]))[0])
    True
    """
    first = as_matrix(old, "old")
    second = as_matrix(new, "new", columns=first.shape[1])
    if classifier is None:
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        model: Any = make_pipeline(StandardScaler(), LogisticRegression())
    else:
        from sklearn.base import clone

        model = clone(classifier)
    model.fit(np.concatenate([first, second]), np.repeat([0, 1], [len(first), len(second)]))
    factor = len(first) / len(second)
    if not most > 0:
        raise InputError(f"most must be above 0, got {most!r}")

    def ratio(x: FloatArray) -> FloatArray:
        share = np.asarray(model.predict_proba(x)[:, 1], dtype=np.float64)
        if math.isinf(most) and (share >= 1).any():
            raise InputError(
                "the classifier must leave every row a chance to be old, got "
                f"{int((share >= 1).sum())} rows with none"
            )
        with np.errstate(divide="ignore"):
            return np.minimum(factor * share / (1.0 - share), most)

    return ratio


def learnt_ratio(calibration: Calibration, classifier: Any) -> Ratio:
    """The ratio by a classifier between inputs of training and of the other population."""
    if calibration.elsewhere is None or not len(calibration.training):
        raise InputError(
            "ratio must be given, or inputs of the training rows and of the other population to "
            "learn it from: a method's fit_for takes these"
        )
    return density_ratio(calibration.training, calibration.elsewhere, classifier, _MOST)


def _log_kernel(center: FloatArray, x: FloatArray, unit: FloatArray) -> FloatArray:
    """Log of the Gaussian kernel between rows, shape (m, n)."""
    middle = x.mean(axis=0)
    first, second = (center - middle) / unit, (x - middle) / unit
    squares = np.square(first).sum(axis=1)[:, None] + np.square(second).sum(axis=1)
    return np.asarray(-0.5 * np.maximum(squares - 2.0 * first @ second.T, 0.0))


def _weighed(value: npt.ArrayLike, name: str, length: int | None) -> FloatArray:
    weights = as_vector(value, name, length=length)
    if (weights < 0).any():
        raise InputError(f"{name} must not be negative, got {weights.min():g}")
    return weights


def _check_rule(calibration: Calibration, what: str) -> None:
    if calibration.choice.rule != "conformal":
        raise InputError(f"rank must be 'conformal' with {what}, got {calibration.choice.rule!r}")


def _answered(thresholds: FloatArray, calibration: Calibration) -> FloatArray:
    check_bounded(float(thresholds.min()), min(calibration.coverages))
    endless = int(np.isinf(thresholds).any(axis=1).sum())
    if endless:
        reason = f"{endless} rows weigh too much beside the calibration rows"
        check_few(calibration.choice.too_few, reason)
    return thresholds
