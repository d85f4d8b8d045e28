"""A selective method around any other: it says of which rows it would rather not speak."""

from __future__ import annotations

from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import BoolArray, FloatArray, as_matrix, as_vector
from howsure.core.classes import frozen
from howsure.core.convert import Fraction, check_fields
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.registry import Registry
from howsure_studies.methods.interface import Fitted, Method, Predictions, held_out
from howsure_studies.methods.options import thing
from howsure_studies.methods.regressors import as_method
from howsure_studies.methods.selective.scores import FeatureScore, FittedScore, PredictionScore
from howsure_studies.methods.selective.threshold import SHARE, accepts, prediction_rate, threshold

_HERE = "howsure_studies.methods.selective.scores"

SCORES: Final = Registry(
    "score",
    "howsure.scores",
    {
        "gmm": f"{_HERE}:GMMScore",
        "knn": f"{_HERE}:KNNScore",
        "variance": f"{_HERE}:VarianceScore",
        "ensemble_variance": f"{_HERE}:EnsembleVarianceScore",
    },
)
"""Scores by name; other packages add theirs by entry points of the group ``howsure.scores``."""


@final
@frozen
class Selective(Method):
    """Any method, with a score of how foreign a row looks and a threshold above which to decline.

    Parameters
    ----------
    method : Method or regressor
        What predicts. Where its fitted model has ``features(x)``, of shape (n, d), scores of
        features take these; otherwise the columns of x, each in units of its training sd about
        its mean.
    score : FeatureScore, PredictionScore, str or mapping
        κ: a score, a name of `SCORES` (``gmm``, ``knn``, ``variance``, ``ensemble_variance``),
        or a mapping of ``name`` and options.
    validation : int or float
        Rows, or the share of rows, held out for the threshold.
    share : float
        The share of held-out rows that the threshold accepts, nearly; see `threshold`.
    coverages : tuple of float, optional
        The method's own, where it fixes them; to be left out otherwise.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    It accepts about the same share of any rows like the held-out ones. Nothing is promised of the
    coverage of accepted rows: acceptance and error may go together. Source: Gustafsson,
    Danelljan and Schön (TMLR 2023), section 4.

    Examples
    --------
    >>> from sklearn.linear_model import ARDRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> fitted = Selective(ARDRegression(), "knn").fit(x, x[:, 0], rng)
    >>> fitted.accepts([[0.0, 0.1], [-9.0, 9.0]])
    array([ True, True])
    >>> fitted = Selective(ARDRegression()).fit(x, x[:, 0], rng)
    >>> fitted.accepts([[0.0, 0.1], [-9.0, 9.0]])
    array([ True, False])
    """

    method: Any
    score: Any = "gmm"
    validation: float = 0.2
    share: Fraction = SHARE
    coverages: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "method", as_method(self.method, self.coverages))
        score = thing(self.score, "score", SCORES)
        if not isinstance(score, FeatureScore | PredictionScore):
            raise InputError(f"score must be a score or the name of one, got {self.score!r}")
        object.__setattr__(self, "score", score)
        if self.coverages is not None and self.coverages != self.method.fixed_coverages:
            raise InputError(
                f"coverages must be those that {self.method.name} fixes "
                f"({self.method.fixed_coverages}), got {self.coverages}"
            )

    @property
    def name(self) -> str:
        return f"{self.method.name}, selective ({self.score.name})"

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        """Those of its method."""
        fixed: tuple[float, ...] | None = self.method.fixed_coverages
        return fixed

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> FittedSelective:
        """Fit the method and the score on most rows, and the threshold on the others.

        Raises
        ------
        InputError
            As the method's own `fit`, or if rows are too few for the score.
        """
        inputs = np.asarray(x)
        targets = as_vector(y, "y", length=len(inputs))
        validation = held_out(rng, len(inputs), self.validation, "validation")
        return self.fit_with(inputs[~validation], targets[~validation], inputs[validation], rng)

    def fit_with(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        validation: npt.ArrayLike,
        rng: np.random.Generator,
    ) -> FittedSelective:
        """Fit on all rows, and take the threshold from validation rows of one's own.

        Parameters
        ----------
        x, y
            Training rows.
        validation : array-like of shape (m, …)
            Inputs like those of training, which the model has not seen.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        FittedSelective

        Raises
        ------
        InputError
            As `fit`.
        """
        fitted = self.method.fit(x, y, rng)
        scorer: _OfFeatures | _OfPredictions
        if isinstance(self.score, FeatureScore):
            features = _Features.of(fitted, x)
            scorer = _OfFeatures(self.score.fit(features(x), rng), features)
        else:
            scorer = _OfPredictions(self.score, fitted)
        return FittedSelective(fitted, scorer, threshold(scorer(validation), self.share))


@final
@frozen(eq=False)
class FittedSelective(Fitted):
    """A selective method fitted to data.

    Attributes
    ----------
    fitted : Fitted
        What predicts.
    scorer : callable
        From inputs to κ, shape (n,).
    threshold : float
        τ, in the units of the score: rows with κ ≤ τ are accepted.
    """

    fitted: Fitted
    scorer: _OfFeatures | _OfPredictions
    threshold: float

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """What the method believes at each row of x, accepted or not."""
        return self.fitted.predict(x)

    def score(self, x: npt.ArrayLike) -> FloatArray:
        """κ of each row of x; higher is more foreign. Shape (n,)."""
        return self.scorer(x)

    def accepts(self, x: npt.ArrayLike) -> BoolArray:
        """Whether each row of x is to be predicted, κ ≤ τ, shape (n,)."""
        return accepts(self.score(x), self.threshold)

    def prediction_rate(self, x: npt.ArrayLike) -> float:
        """Share of the rows of x that are accepted."""
        return prediction_rate(self.score(x), self.threshold)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of a result must know of the score's fit."""
        return self.scorer.notes


@final
@frozen(eq=False)
class _Features:
    """Features of inputs: the model's own, or the inputs in units of their training spread."""

    own: Any
    center: FloatArray
    unit: FloatArray

    @classmethod
    def of(cls, fitted: Fitted, x: npt.ArrayLike) -> _Features:
        own = getattr(fitted, "features", None)
        if callable(own):
            return cls(own, np.zeros(1), np.ones(1))
        if np.ndim(x) != 2:
            raise InputError(
                "x must have two dimensions where the fitted model has no features(x), "
                f"got shape {np.shape(x)}"
            )
        rows = as_matrix(x, "x")
        spread = rows.std(axis=0)
        return cls(None, rows.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, x: npt.ArrayLike) -> FloatArray:
        if self.own is None:
            return (as_matrix(x, "x", columns=len(self.center)) - self.center) / self.unit
        return as_matrix(self.own(x), "the model's features")


@final
@frozen(eq=False)
class _OfFeatures:
    """κ by a score of features."""

    score: FittedScore
    features: _Features

    def __call__(self, x: npt.ArrayLike) -> FloatArray:
        return self.score(self.features(x))

    @property
    def notes(self) -> tuple[str, ...]:
        return self.score.notes


@final
@frozen(eq=False)
class _OfPredictions:
    """κ by what the predictions hold."""

    score: PredictionScore
    fitted: Fitted
    notes: tuple[str, ...] = ()

    def __call__(self, x: npt.ArrayLike) -> FloatArray:
        try:
            return self.score.of(self.fitted.predict(x))
        except UnanswerableError as error:
            raise InputError(f"score must be one that the method can give: {error}") from error
