"""How foreign a row looks: scores κ, higher for rows less like those of training."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final, Literal, final, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Count, check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure_studies.methods.interface import Predictions

Metric = Literal["angular", "euclidean"]

_BLOCK: Final = 1 << 22
"""Numbers gathered at once when distances are taken anew."""
_THIN: Final = 1e-10
"""Variance of a direction, as a share of the largest, below which features do not spread in it."""


class FittedScore(ABC):
    """A score fitted to training features."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, features: npt.ArrayLike) -> FloatArray:
        """κ of each row of features, shape (n, d); higher is more foreign. Shape (n,)."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of a result must know of the fit."""
        return ()


class FeatureScore(ABC):
    """A score of features, not yet fitted."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call it."""

    @abstractmethod
    def fit(self, features: npt.ArrayLike, rng: np.random.Generator) -> FittedScore:
        """Learn what training features look like.

        Parameters
        ----------
        features : array-like of shape (n, d)
            Of the training rows.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        FittedScore

        Raises
        ------
        InputError
            If a feature is missing or not finite, or rows are too few.
        """


class PredictionScore(ABC):
    """A score that a model's predictions hold themselves."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """What reports call it."""

    @abstractmethod
    def of(self, predictions: Predictions) -> FloatArray:
        """κ of each row, shape (n,).

        Raises
        ------
        UnanswerableError
            If the predictions do not hold it.
        """


Score = FeatureScore | PredictionScore
"""What tells rows apart to be accepted or not: of features, or of predictions."""


@final
@frozen
class GMMScore(FeatureScore, Checked):
    """Minus the log density of the features under a mixture of normal laws.

    Parameters
    ----------
    components : int
        Normal laws in the mixture, each with its own full covariance.
    dimensions : int, optional
        If given, features are first cut to as many principal components.
    restarts : int
        Fits from different starts, of which the best is kept.

    Raises
    ------
    InputError
        If a number is not a positive whole one.

    Notes
    -----
    Scikit-learn's mixture by expectation–maximisation from k-means, with 10⁻⁶ on the diagonal.
    Where a covariance is singular all the same, features are cut to the principal components in
    which they spread (a variance above 10⁻¹⁰ of the largest), and `FittedScore.notes` says so.
    Source: Gustafsson, Danelljan and Schön (TMLR 2023), four components.

    Examples
    --------
    >>> features = np.random.default_rng(0).normal(size=(200, 2))
    >>> score = GMMScore(1).fit(features, np.random.default_rng(0))
    >>> bool(score([[9.0, 9.0]])[0] > score([[0.0, 0.0]])[0])
    True
    """

    components: Count = 4
    dimensions: Count | None = None
    restarts: Count = 1

    @property
    def name(self) -> str:
        cut = "" if self.dimensions is None else f", {self.dimensions} principal components"
        return f"GMM k={self.components}{cut}"

    def fit(self, features: npt.ArrayLike, rng: np.random.Generator) -> FittedGMM:
        """Fit the mixture to training features.

        Raises
        ------
        InputError
            If a feature is missing or not finite, there are fewer rows than components, fewer
            than two, or the features are the same in every row.
        """
        rows = as_matrix(features, "features")
        if len(rows) < max(self.components, 2):
            raise InputError(
                f"features must have at least {max(self.components, 2)} rows for "
                f"{self.components} components, got {len(rows)}"
            )
        notes: tuple[str, ...] = ()
        center, axes = np.zeros(rows.shape[1]), None
        if self.dimensions is not None and self.dimensions < rows.shape[1]:
            center, axes, _ = _principal(rows, self.dimensions)
            notes = (f"features cut to {axes.shape[1]} principal components",)
        seed = int(rng.integers(2**31 - 1))
        try:
            mixture, warned = self._mixture(_projected(rows, center, axes), seed)
        except ValueError:
            center, axes, spread = _principal(rows, self.dimensions or rows.shape[1])
            axes = axes[:, spread > _THIN * spread[0]]
            notes = (f"singular: features cut to {axes.shape[1]} principal components",)
            try:
                mixture, warned = self._mixture(_projected(rows, center, axes), seed)
            except ValueError as error:
                raise InputError(
                    f"features must spread, so that a density fits: {error}"
                ) from error
        return FittedGMM(mixture, center, axes, (*notes, *warned))

    def _mixture(self, rows: FloatArray, seed: int) -> tuple[Any, tuple[str, ...]]:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import GaussianMixture

        mixture = GaussianMixture(
            self.components,
            covariance_type="full",
            reg_covar=1e-6,
            n_init=self.restarts,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(rows)
        warned = () if mixture.converged_ else ("the mixture had not settled after 100 steps",)
        return mixture, warned


@final
@frozen(eq=False)
class FittedGMM(FittedScore):
    """A mixture fitted to training features."""

    mixture: Any
    center: FloatArray
    axes: FloatArray | None
    warned: tuple[str, ...]

    def __call__(self, features: npt.ArrayLike) -> FloatArray:
        """−log density at each row, in nats, shape (n,)."""
        rows = as_matrix(features, "features", columns=len(self.center))
        scores = self.mixture.score_samples(_projected(rows, self.center, self.axes))
        return -np.asarray(scores, dtype=np.float64)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.warned


@final
@frozen
class KNNScore(FeatureScore):
    """Mean distance to the nearest training features.

    Parameters
    ----------
    neighbours : int
        How many.
    metric : {"angular", "euclidean"}
        ``angular``: √(2 − 2 cos) of the angle between two features, √2 where one is zero.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Neighbours are exact. Source: Gustafsson, Danelljan and Schön (TMLR 2023), who search their
    ten nearest approximately.

    Examples
    --------
    >>> score = KNNScore(1).fit([[1.0, 0.0], [0.0, 1.0]], np.random.default_rng(0))
    >>> score([[2.0, 0.0], [-1.0, 0.0]])
    array([0.   , 1.414])
    """

    neighbours: int = 10
    metric: Metric = "angular"

    def __post_init__(self) -> None:
        check_whole(self.neighbours, "neighbours")
        if self.metric not in get_args(Metric):
            raise InputError(f"metric must be 'angular' or 'euclidean', got {self.metric!r}")

    @property
    def name(self) -> str:
        return f"kNN k={self.neighbours}, {self.metric}"

    def fit(self, features: npt.ArrayLike, rng: np.random.Generator) -> FittedKNN:
        """Keep the training features; nothing is drawn.

        Raises
        ------
        InputError
            If a feature is missing or not finite, or there are fewer rows than neighbours.
        """
        from sklearn.neighbors import NearestNeighbors

        rows = as_matrix(features, "features")
        if len(rows) < self.neighbours:
            raise InputError(
                f"features must have at least {self.neighbours} rows for as many neighbours, "
                f"got {len(rows)}"
            )
        width = rows.shape[1]
        if self.metric == "angular":
            rows = _directions(rows, extra=0)
        index = NearestNeighbors(n_neighbors=self.neighbours, algorithm=_algorithm(width))
        return FittedKNN(index.fit(rows), rows, width, self.metric)


@final
@frozen(eq=False)
class FittedKNN(FittedScore):
    """Training features, ready to be searched."""

    index: Any
    rows: FloatArray
    width: int
    metric: Metric

    def __call__(self, features: npt.ArrayLike) -> FloatArray:
        """Mean distance of each row to its nearest training features, shape (n,)."""
        wanted = as_matrix(features, "features", columns=self.width)
        if self.metric == "angular":
            wanted = _directions(wanted, extra=1)
        near = self.index.kneighbors(wanted, return_distance=False)
        step = max(_BLOCK // (near.shape[1] * wanted.shape[1]), 1)
        blocks = [
            self._distances(wanted[start : start + step], near[start : start + step])
            for start in range(0, len(wanted), step)
        ]
        return np.concatenate(blocks)

    def _distances(self, rows: FloatArray, near: npt.NDArray[np.intp]) -> FloatArray:
        """Mean distance by differences: the search's own loses digits where features are near."""
        apart = self.rows[near] - rows[:, None, :]
        return np.asarray(np.sqrt(np.einsum("ikd,ikd->ik", apart, apart)).mean(axis=1))


@final
@frozen
class VarianceScore(PredictionScore):
    """The predicted sd of a new y; it orders rows as the variance does.

    Examples
    --------
    >>> from howsure.inputs.distributions import located
    >>> VarianceScore().of(Predictions(located("norm", np.zeros(2), np.array([1.0, 2.0]))))
    array([1., 2.])
    """

    name: ClassVar[str] = "predicted variance"

    def of(self, predictions: Predictions) -> FloatArray:
        """The sd of the prediction of a new y, shape (n,)."""
        return predictions.outcome.sd()


@final
@frozen
class EnsembleVarianceScore(PredictionScore):
    """The sd of the prediction of the mean of y: how far the members of an ensemble disagree.

    Examples
    --------
    >>> from howsure.inputs.distributions import located
    >>> law = located("norm", np.zeros(1), np.array([2.0]))
    >>> EnsembleVarianceScore().of(Predictions(law, located("norm", np.zeros(1), np.array([0.5]))))
    array([0.5])
    """

    name: ClassVar[str] = "ensemble variance"

    def of(self, predictions: Predictions) -> FloatArray:
        """The sd of the prediction of the mean, shape (n,).

        Raises
        ------
        UnanswerableError
            If the method does not tell the mean's uncertainty from the noise.
        """
        if predictions.mean is None:
            raise UnanswerableError("the method predicts no distribution of the mean of y")
        return predictions.mean.sd()


def mean_likelihood(scores: npt.ArrayLike) -> FloatArray:
    """κ of an ensemble from those of its members' densities: −log of the mean likelihood.

    Parameters
    ----------
    scores : array-like of shape (M, n)
        −log p_i of each member i, each density of its own features.

    Returns
    -------
    ndarray of float, shape (n,)
        −[log Σ_i p_i − log M], in nats.

    Raises
    ------
    InputError
        If a score is NaN.

    Notes
    -----
    Source: Gustafsson, Danelljan and Schön (TMLR 2023), section 4.

    Examples
    --------
    >>> mean_likelihood([[1.0], [1.0]])
    array([1.])
    """
    members = as_matrix(scores, "scores", finite=False)
    joint = special.logsumexp(-members, axis=0) - math.log(len(members))
    return -np.asarray(joint, dtype=np.float64)


def _algorithm(width: int) -> str:
    """A tree is faster where features are few, and slower where they are many."""
    return "kd_tree" if width <= 8 else "brute"


def _directions(rows: FloatArray, *, extra: int) -> FloatArray:
    """Rows of length 1; a zero row points along its own axis `extra`, at right angles to all."""
    norms = np.linalg.norm(rows, axis=1)
    zero = norms == 0.0
    turned = np.zeros((len(rows), rows.shape[1] + 2))
    turned[:, :-2] = rows / np.where(zero, 1.0, norms)[:, None]
    turned[zero, rows.shape[1] + extra] = 1.0
    return turned


def _principal(rows: FloatArray, most: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, leading principal axes as columns, shape (d, k), and the variance along each."""
    center = rows.mean(axis=0)
    _, spread, axes = np.linalg.svd(rows - center, full_matrices=False)
    return center, axes[:most].T, np.square(spread[:most]) / len(rows)


def _projected(rows: FloatArray, center: FloatArray, axes: FloatArray | None) -> FloatArray:
    return rows if axes is None else (rows - center) @ axes
