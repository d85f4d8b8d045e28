"""Split conformal methods: one part of the rows trains, the other gives thresholds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.adapting import Adaptation, Calibration, Marginal, RankChoice, Thresholds
from howsure.conformal.ranks import DELTA, RankRule
from howsure.conformal.scores import (
    Band,
    Offset,
    Range,
    Score,
    region_ends,
)
from howsure.conformal.thresholds import TooFew, held_scores
from howsure.core.arrays import FloatArray, as_matrix, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import Coverages, Fraction, check_fields
from howsure.core.errors import InputError
from howsure.predictions import Intervals
from howsure_studies.methods.interface import (
    COVERAGES,
    Fitted,
    Method,
    Predictions,
    checked_rows,
    held_out,
    point_of,
    trained,
)

EVERYWHERE: Final = Marginal()
"""One threshold for all x."""

Bands = Callable[[FloatArray], Sequence[Band]]
"""Maps inputs to bands: one for all coverages, or one a coverage."""


@final
@frozen(eq=False)
class Forecaster:
    """A trained model's point forecast, checked.

    Examples
    --------
    >>> Forecaster(lambda x: 2 * x[:, 0])(np.array([[1.0]]))
    array([2.])
    """

    model: Any  # a fitted regressor, or a function of inputs

    def __call__(self, x: FloatArray) -> FloatArray:
        """One finite number a row, shape (m,)."""
        if hasattr(self.model, "predict"):
            return point_of(self.model, x)
        return as_vector(self.model(x), "the model's forecast", length=len(x))


def comes_trained(model: Any) -> bool:
    """Whether a model is a function of inputs, which is used as it is."""
    return callable(model) and not hasattr(model, "fit")


def forecaster(model: Any, x: FloatArray, y: FloatArray, rng: np.random.Generator) -> Forecaster:
    """A model ready to forecast: a regressor's copy is trained, a function is used as it is.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> x = np.array([[0.0], [1.0]])
    >>> forecaster(LinearRegression(), x, x[:, 0], np.random.default_rng(0))(x)
    array([0., 1.])
    """
    return Forecaster(model if comes_trained(model) else trained(model, x, y, rng))


def model_name(model: Any) -> str:
    """What reports call a model.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model_name(LinearRegression())
    'LinearRegression'
    """
    if comes_trained(model):
        return str(getattr(model, "__qualname__", type(model).__name__)).rpartition(".")[2]
    return type(model).__name__


@frozen(kw_only=True)
class InductiveConformal(Method):
    """What split conformal methods share. Subclasses are final.

    A model trains on one part of the rows, and scores of the rest give thresholds. A model that
    is a function of inputs comes trained, so that every row serves calibration. Cost beyond the
    model's: O(n log n) time and O(n) memory.

    Parameters
    ----------
    calibration : int or float
        Rows, or the share of rows, held out for calibration.
    coverages : tuple of float
        The coverages of its intervals.
    rank : {"conformal", "paper", "pac"}
        What the coverage means; see `conformal_rank`. ``pac`` gives PAC intervals.
    delta : float
        δ of ``pac``: the share of calibration sets that may fall short of the coverage.
    adapt : Adaptation
        How thresholds depend on x: `Marginal`, `Mondrian`, `CovariateShift`, `DivergenceBall`
        or `Localized`. Where it must see another population, `fit_for` takes its inputs.
    clip : tuple of float, optional
        The valid range of y: intervals are cut off there, and y outside is refused.
    too_few : {"infinite", "error"}
        What to do where the calibration rows are too few for a finite interval.

    Raises
    ------
    InputError
        If an option breaks its rule.
    """

    calibration: float = 0.5
    coverages: Coverages = COVERAGES
    rank: RankRule = "conformal"
    delta: Fraction = DELTA
    adapt: Adaptation = EVERYWHERE
    clip: Range | None = None
    too_few: TooFew = "infinite"

    def __post_init__(self) -> None:
        object.__setattr__(self, "clip", check_clip(self.clip))
        if not isinstance(self.adapt, Adaptation):
            raise InputError(f"adapt must say how thresholds depend on x, got {self.adapt!r}")
        check_fields(self)

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        return self.coverages

    @property
    def name(self) -> str:
        parts = ("PAC" if self.rank == "pac" else "", self.adapt.label)
        return ", ".join([self._base_name(), *filter(None, parts)])

    @abstractmethod
    def _base_name(self) -> str:
        """Its name without what is common to all."""

    @abstractmethod
    def _trains(self) -> bool:
        """Whether some rows are needed to train."""

    @abstractmethod
    def _prepared(
        self, x: FloatArray, y: FloatArray, rng: np.random.Generator
    ) -> tuple[Score, Bands]:
        """The score, and what gives the bands that it measures y against; trained on rows."""

    def _tuned(self, bands: Bands, x: FloatArray, y: FloatArray) -> Bands:
        """What gives the bands, after a look at the calibration rows; as it is by default."""
        return bands

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Train on one part of the rows, and learn thresholds from the other."""
        inputs, targets = checked_rows(x, y, least=3 if self._trains() else 1)
        check_within(targets, self.clip)
        calibrating = np.ones(len(targets), dtype=np.bool_)
        if self._trains():
            calibrating = held_out(rng, len(targets), self.calibration, "calibration")
        training = inputs[~calibrating], targets[~calibrating]
        return self._calibrated(training, (inputs[calibrating], targets[calibrating]), None, rng)

    def fit_for(
        self,
        training: tuple[npt.ArrayLike, npt.ArrayLike],
        calibration: tuple[npt.ArrayLike, npt.ArrayLike],
        elsewhere: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> Fitted:
        """Train and calibrate on rows of one's own, for rows of another population.

        Parameters
        ----------
        training, calibration : (x, y)
            Inputs of shape (n, d) and what happened, shape (n,), of each part.
        elsewhere : array-like of shape (m, d)
            Inputs of the other population, as `adapt` may need them; no y of theirs is known.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        Fitted

        Raises
        ------
        InputError
            If a value is missing or not finite, columns differ, or there are too few rows.
        """
        given = checked_rows(*training, least=2)
        held = checked_rows(*calibration, least=1)
        new = as_matrix(elsewhere, "elsewhere", columns=given[0].shape[1])
        for _, targets in (given, held):
            check_within(targets, self.clip)
        return self._calibrated(given, held, new, rng)

    def _calibrated(
        self,
        training: tuple[FloatArray, FloatArray],
        held: tuple[FloatArray, FloatArray],
        elsewhere: FloatArray | None,
        rng: np.random.Generator,
    ) -> Fitted:
        score, bands = self._prepared(*training, rng)
        bands = self._tuned(bands, *held)
        scores = [held_scores(score, held[1], band) for band in bands(held[0])]
        columns = (len(held[1]), len(self.coverages))
        calibration = Calibration(
            scores=np.broadcast_to(np.stack(scores, axis=1), columns),
            x=held[0],
            coverages=self.coverages,
            choice=RankChoice(self.rank, self.delta, self.too_few),
            training=training[0],
            forecast=_Centers(bands),
            rng=rng,
            elsewhere=elsewhere,
        )
        learnt = self.adapt.learn(calibration)
        return FittedConformal(score, bands, learnt, self.coverages, self.clip)


@final
@frozen(eq=False)
class FittedConformal(Fitted):
    """A split conformal method fitted to data."""

    score: Score  # how far y lies from a band
    bands: Bands
    thresholds: Thresholds  # learnt from the calibration rows
    coverages: tuple[float, ...]
    clip: Range | None  # the valid range of y

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Intervals for a new y at each row of x."""
        inputs = as_matrix(x, "x")
        bands = self.bands(inputs)
        values = self.thresholds.at(inputs)
        ends = [
            region_ends(self.score, bands[column if len(bands) > 1 else 0], at, self.clip)
            for column, at in enumerate(values.T)
        ]
        lower, upper = (np.stack(side, axis=1) for side in zip(*ends, strict=True))
        return Predictions(Intervals(lower, upper, self.coverages))


@final
@frozen(eq=False)
class _Centers:
    """The point forecast that bands imply."""

    bands: Bands

    def __call__(self, x: FloatArray) -> FloatArray:
        return self.bands(x)[0].center


@final
@frozen(eq=False)
class _Point:
    forecast: Forecaster

    def __call__(self, x: FloatArray) -> Sequence[Band]:
        point = self.forecast(x)
        return [Band(point, point, point)]


@final
@frozen
class SplitConformal(InductiveConformal):
    """Split conformal prediction around any regressor: forecast ± a quantile of held-out errors.

    Parameters
    ----------
    regressor : scikit-learn regressor or callable
        What forecasts. A function of inputs, such as the ``predict`` of a fitted model, comes
        trained: every row serves calibration.
    calibration, coverages, rank, delta, adapt, clip, too_few
        As in `InductiveConformal`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Half-width: the ⌈(n + 1)(1 − α)⌉-th smallest of n held-out |y − f̂|; infinite where n is too
    small. Covers 1 − α on average over x, for any law of exchangeable rows. Source: Lei et al.
    2018, Algorithm 2.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(200, 1))
    >>> fitted = SplitConformal(LinearRegression()).fit(x, rng.normal(size=200), rng)
    >>> fitted.predict([[0.5]]).outcome.coverages
    (0.7, 0.8, 0.9, 0.95)
    """

    regressor: Any

    def _base_name(self) -> str:
        return f"split conformal ({model_name(self.regressor)})"

    def _trains(self) -> bool:
        return not comes_trained(self.regressor)

    def _prepared(
        self, x: FloatArray, y: FloatArray, rng: np.random.Generator
    ) -> tuple[Score, Bands]:
        return Offset(), _Point(forecaster(self.regressor, x, y, rng))


def check_clip(clip: Range | None) -> Range | None:
    """A valid range of y: two numbers, the first below the second; infinite ends are legal."""
    if clip is None:
        return None
    rule = "clip must be two numbers, the least and the most that y can be"
    try:
        low, high = (float(end) for end in clip)
    except (TypeError, ValueError) as error:
        raise InputError(f"{rule}, got {clip!r}") from error
    if not low < high:
        raise InputError(f"{rule}, got {clip!r}")
    return low, high


def check_within(y: FloatArray, clip: Range | None) -> None:
    """Raise `InputError` unless every y lies in the valid range."""
    if clip is None:
        return
    outside = (y < clip[0]) | (y > clip[1])
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"y must be in its valid range {clip[0]:g} to {clip[1]:g}, got {int(outside.sum())} "
            f"that do not (first at row {row}: {y[row]:g})"
        )
