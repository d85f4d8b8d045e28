"""Jackknife+, CV+ and the jackknife+ after the bootstrap: every row trains and calibrates."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.ranks import conformal_rank, rows_needed
from howsure.conformal.scores import Range, uncrossed
from howsure.conformal.thresholds import TooFew, check_few
from howsure.core.arrays import FloatArray, IntArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Coverages, check_fields
from howsure.core.errors import InputError
from howsure.predictions import Intervals
from howsure_studies.methods.conformal.inductive import check_clip, check_within, model_name
from howsure_studies.methods.interface import (
    COVERAGES,
    Fitted,
    Method,
    Predictions,
    checked_rows,
    point_of,
    trained,
)

Combine = Literal["plus", "minmax"]

_BLOCK = 2**22


@frozen(kw_only=True)
class CrossConformal(Method):
    """What conformal methods without a split share. Subclasses are final.

    Each training row has its own forecast f̂₋ᵢ, by models that did not see it, and an error
    R_i = |y_i − f̂₋ᵢ(x_i)|.

    Parameters
    ----------
    coverages : tuple of float
        The coverages of its intervals.
    combine : {"plus", "minmax"}
        ``plus``: from the (n + 1 − r)-th smallest f̂₋ᵢ(x) − R_i to the r-th smallest
        f̂₋ᵢ(x) + R_i, with r = ⌈(n + 1)(1 − α)⌉. ``minmax``: from min f̂₋ᵢ(x) − R to
        max f̂₋ᵢ(x) + R, with R the r-th smallest error; wider.
    clip : tuple of float, optional
        The valid range of y: intervals are cut off there, and y outside is refused.
    too_few : {"infinite", "error"}
        What to do where the rows are too few for a finite interval.

    Raises
    ------
    InputError
        If an option breaks its rule.
    """

    coverages: Coverages = COVERAGES
    combine: Combine = "plus"
    clip: Range | None = None
    too_few: TooFew = "infinite"

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", check_clip(self.clip))
        check_fields(self)

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        return self.coverages

    @abstractmethod
    def _left_out(self, x: FloatArray, y: FloatArray, rng: np.random.Generator) -> LeftOut:
        """Train the models."""

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> FittedCross:
        """Train the models, and measure the errors of rows that they did not see."""
        inputs, targets = checked_rows(x, y, least=3)
        check_within(targets, self.clip)
        n = len(targets)
        ranks = np.array([conformal_rank(n, coverage) for coverage in self.coverages])
        if ranks[-1] > n:
            needed = rows_needed(self.coverages[-1])
            check_few(self.too_few, f"coverage {self.coverages[-1]:g} needs {needed}, got {n}")
        left_out = self._left_out(inputs, targets, rng)
        own = left_out.own_forecasts(inputs)
        return FittedCross(self, left_out, np.abs(targets - own), ranks)


@final
@frozen(eq=False)
class LeftOut:
    """Models, and which of them did not see each training row."""

    models: tuple[Any, ...]  # fitted regressors
    answers: IntArray | FloatArray  # (n,): which model answers for each row; or (b, n): its shares

    def forecasts(self, x: FloatArray) -> FloatArray:
        """The forecast of each model at each row of x, shape (m, b)."""
        return np.stack([point_of(model, x) for model in self.models], axis=1)

    def spread(self, forecasts: FloatArray, rows: IntArray) -> FloatArray:
        """The forecast f̂₋ᵢ of some training rows, from those of the models, shape (m, k)."""
        if self.answers.ndim == 1:
            return forecasts[:, self.answers[rows].astype(np.int64)]
        return np.asarray(forecasts @ self.answers[:, rows])

    def own_forecasts(self, x: FloatArray) -> FloatArray:
        """The forecast f̂₋ᵢ(x_i) of each training row, shape (n,)."""
        if self.answers.ndim == 2:
            return np.asarray(np.einsum("ib,bi->i", self.forecasts(x), self.answers))
        own = np.empty(len(x))
        for number, model in enumerate(self.models):
            rows = self.answers == number
            own[rows] = point_of(model, x[rows])
        return own


@final
@frozen(eq=False)
class FittedCross(Fitted):
    """A conformal method without a split, fitted to data."""

    method: CrossConformal  # its options
    left_out: LeftOut
    errors: FloatArray  # (n,): R_i, of rows that the models did not see
    ranks: IntArray  # (c,): r at each coverage; above n the interval is infinite

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Intervals for a new y at each row of x; memory by blocks of rows."""
        inputs = as_matrix(x, "x")
        order = np.argsort(self.errors, kind="stable")
        size = max(1, _BLOCK // (len(self.errors) + len(self.left_out.models)))
        starts = range(0, len(inputs), size)
        parts = [self._block(inputs[start : start + size], order) for start in starts]
        lower, upper = (np.concatenate(side) for side in zip(*parts, strict=True))
        lower, upper, _ = uncrossed(lower, upper)
        if self.method.clip is not None:
            lower, upper = (np.clip(side, *self.method.clip) for side in (lower, upper))
        return Predictions(Intervals(lower, upper, self.method.coverages))

    def _block(self, x: FloatArray, order: IntArray) -> tuple[FloatArray, FloatArray]:
        forecasts = self.left_out.forecasts(x)
        ends = self._plus if self.method.combine == "plus" else self._minmax
        pairs = [
            ends(forecasts, order, int(rank))
            if rank <= len(order)
            else (np.full(len(x), -np.inf), np.full(len(x), np.inf))
            for rank in self.ranks
        ]
        lower, upper = (np.stack(side, axis=1) for side in zip(*pairs, strict=True))
        return lower, upper

    def _plus(
        self, forecasts: FloatArray, order: IntArray, rank: int
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of rank r, from the few errors that can decide them.

        Forecasts of different models at one x differ by at most some δ, so the r-th smallest
        f̂₋ᵢ(x) + R_i belongs to an error within δ of the r-th smallest R.
        """
        ranked = self.errors[order]
        middle = ranked[rank - 1]
        gap = float(np.ptp(forecasts, axis=1).max())
        gap += 8 * float(np.spacing(np.abs(forecasts).max() + ranked[-1]))
        first = int(np.searchsorted(ranked, middle - gap, side="left"))
        last = int(np.searchsorted(ranked, middle + gap, side="right"))
        rows, column = order[first:last], rank - 1 - first
        own = self.left_out.spread(forecasts, rows)
        high = np.partition(self.errors[rows] + own, column, axis=1)[:, column]
        low = np.partition(self.errors[rows] - own, column, axis=1)[:, column]
        return -low, high

    def _minmax(
        self, forecasts: FloatArray, order: IntArray, rank: int
    ) -> tuple[FloatArray, FloatArray]:
        own = self.left_out.spread(forecasts, np.arange(len(order)))
        reach = self.errors[order[rank - 1]]
        return own.min(axis=1) - reach, own.max(axis=1) + reach


@final
@frozen
class CVPlus(CrossConformal):
    """CV+: errors and forecasts of cross-validation, each row with the model that left it out.

    Parameters
    ----------
    regressor : scikit-learn regressor
        What forecasts.
    folds : int
        K, at least 2; at most as many as rows.
    coverages, combine, clip, too_few
        As in `CrossConformal`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Covers at least 1 − 2α − √(2/n) on average over x, in practice about 1 − α; ``minmax`` at
    least 1 − α, for folds of equal size. K models; prediction takes O(m n) time at
    most, and much less where the models agree. Source:
    Barber, Candès, Ramdas and Tibshirani 2021, "Predictive inference with the jackknife+",
    section 3 and theorem 4.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(200, 1))
    >>> fitted = CVPlus(LinearRegression(), 5).fit(x, x[:, 0] + rng.normal(size=200), rng)
    >>> lower, upper = fitted.predict([[0.5]]).outcome.interval(0.9)
    >>> bool(3.0 < upper[0] - lower[0] < 3.8)
    True
    """

    regressor: Any
    folds: Annotated[int, Bound(2)] = 10

    @property
    def name(self) -> str:
        kind = "CV+" if self.combine == "plus" else "CV-minmax"
        return f"{kind} ({model_name(self.regressor)})"

    def _left_out(self, x: FloatArray, y: FloatArray, rng: np.random.Generator) -> LeftOut:
        if self.folds > len(y):
            raise InputError(f"folds must be at most the rows, {len(y)}, got {self.folds}")
        return _by_fold(self.regressor, x, y, rng.permutation(len(y)) % self.folds, rng)


@final
@frozen
class JackknifePlus(CrossConformal):
    """Jackknife+: each row with the model that was trained without it.

    Parameters
    ----------
    regressor : scikit-learn regressor
        What forecasts.
    coverages, combine, clip, too_few
        As in `CrossConformal`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Covers at least 1 − 2α on average over x, in practice about 1 − α; ``minmax`` at least
    1 − α. n models, so for small data or cheap regressors; see `CVPlus`. Source: Barber, Candès,
    Ramdas and Tibshirani 2021, "Predictive inference with the jackknife+", theorems 1 and 2.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> x = np.arange(6.0)[:, None]
    >>> y = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 8.0])
    >>> fitted = JackknifePlus(LinearRegression(), coverages=(0.5,))
    >>> fitted.fit(x, y, np.random.default_rng(0)).predict([[2.0]]).outcome.interval(0.5)
    (array([0.8649]), array([3.2907]))
    """

    regressor: Any

    @property
    def name(self) -> str:
        kind = "jackknife+" if self.combine == "plus" else "jackknife-minmax"
        return f"{kind} ({model_name(self.regressor)})"

    def _left_out(self, x: FloatArray, y: FloatArray, rng: np.random.Generator) -> LeftOut:
        return _by_fold(self.regressor, x, y, np.arange(len(y)), rng)


@final
@frozen
class JackknifeAfterBootstrap(CrossConformal):
    """Jackknife+ after the bootstrap: each row with the mean of the members that did not see it.

    Parameters
    ----------
    regressor : scikit-learn regressor
        What is trained on each resample.
    members : int
        Resamples, at least 2; about thirty leave no row in every one.
    coverages, combine, clip, too_few
        As in `CrossConformal`.

    Raises
    ------
    InputError
        If an option breaks its rule; when fitted, if a row is in every resample.

    Notes
    -----
    Covers at least 1 − 2α on average over x where the number of members is itself drawn from a
    binomial law, in practice about 1 − α. Source: Kim, Xu and Barber 2020, "Predictive inference
    is free with the jackknife+-after-bootstrap", theorem 1.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(100, 1))
    >>> fitted = JackknifeAfterBootstrap(LinearRegression()).fit(x, rng.normal(size=100), rng)
    >>> len(fitted.left_out.models)
    50
    """

    regressor: Any
    members: Annotated[int, Bound(2)] = 50

    @property
    def name(self) -> str:
        kind = "jackknife+" if self.combine == "plus" else "jackknife-minmax"
        return f"{kind} after bootstrap ({model_name(self.regressor)})"

    def _left_out(self, x: FloatArray, y: FloatArray, rng: np.random.Generator) -> LeftOut:
        n = len(y)
        models, unseen = [], np.ones((self.members, n))
        for member in range(self.members):
            rows = rng.integers(n, size=n)
            unseen[member, rows] = 0.0
            models.append(trained(self.regressor, x[rows], y[rows], rng))
        counts = unseen.sum(axis=0)
        if (counts == 0).any():
            raise InputError(
                "members must be so many that each row is left out of a resample, got "
                f"{self.members} that leave {int((counts == 0).sum())} of {n} rows out of none"
            )
        return LeftOut(tuple(models), unseen / counts)


def _by_fold(
    regressor: Any, x: FloatArray, y: FloatArray, owner: IntArray, rng: np.random.Generator
) -> LeftOut:
    models = tuple(
        trained(regressor, x[owner != fold], y[owner != fold], rng)
        for fold in range(int(owner.max()) + 1)
    )
    return LeftOut(models, owner)
