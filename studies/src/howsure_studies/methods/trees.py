"""Boosted and Bayesian trees of other libraries, each as it comes: CatBoost, NGBoost, stochtree."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Checked, Count, Coverages, Positive
from howsure.core.optional import require
from howsure.core.rng import row_keys, row_normals
from howsure.inputs.distributions import central_levels, located
from howsure.predictions import Quantiles, Samples
from howsure_studies.methods.interface import COVERAGES, Fitted, Method, Predictions, checked_rows


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31 - 1))


@final
@frozen(kw_only=True)
class CatBoostQuantiles(Method, Checked):
    """CatBoost's quantiles of y, all levels in one model; crossing quantiles are sorted.

    Parameters
    ----------
    iterations : int
        Trees.
    learning_rate : float
        By which each is shrunk.
    depth : int
        Of each.
    coverages : tuple of float
        The coverages of its central intervals.

    Raises
    ------
    MissingDependencyError
        When fitted, if CatBoost is not installed.

    Notes
    -----
    The loss is ``MultiQuantile``; all else is CatBoost's default. Source: Prokhorenkova et al.
    2018, "CatBoost: unbiased boosting with categorical features", NeurIPS.

    Examples
    --------
    >>> CatBoostQuantiles(coverages=(0.9,)).fixed_coverages
    (0.9,)
    """

    name: ClassVar[str] = "CatBoost quantiles"
    iterations: Count = 300
    learning_rate: Positive = 0.1
    depth: Count = 6
    coverages: Coverages = COVERAGES

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        return self.coverages

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Fit one model to all levels."""
        inputs, targets = checked_rows(x, y, least=2)
        levels = central_levels(self.coverages)
        alphas = ",".join(f"{level:.6g}" for level in levels)
        loss = f"MultiQuantile:alpha={alphas}"
        own = {"depth": self.depth, "learning_rate": self.learning_rate}
        model = _catboost(loss, rng, iterations=self.iterations, **own)
        return _CatBoostLevels(model.fit(inputs, targets), levels)


@final
@frozen(eq=False)
class _CatBoostLevels(Fitted):
    model: Any
    levels: FloatArray

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Quantiles of a new y at each row of x."""
        inputs = as_matrix(x, "x")
        values = np.asarray(self.model.predict(inputs)).reshape(len(inputs), len(self.levels))
        return Predictions(Quantiles(self.levels, values, crossing="sort"))


@final
@frozen(kw_only=True)
class CatBoostNormal(Method, Checked):
    """CatBoost's mean and variance of y, by the likelihood of a normal law.

    Parameters
    ----------
    iterations : int
        Trees.
    depth : int
        Of each.

    Raises
    ------
    MissingDependencyError
        When fitted, if CatBoost is not installed.

    Notes
    -----
    The loss is ``RMSEWithUncertainty``; all else is CatBoost's default. Source: Malinin,
    Prokhorenkova and Ustimenko 2021, "Uncertainty in gradient boosting via ensembles", ICLR.

    Examples
    --------
    >>> CatBoostNormal().name
    'CatBoost normal'
    """

    name: ClassVar[str] = "CatBoost normal"
    iterations: Count = 1000
    depth: Count = 6

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Maximise the likelihood."""
        inputs, targets = checked_rows(x, y, least=2)
        own = {"iterations": self.iterations, "depth": self.depth}
        model = _catboost("RMSEWithUncertainty", rng, **own)
        return _MeanAndVariance(model.fit(inputs, targets))


@final
@frozen(eq=False)
class _MeanAndVariance(Fitted):
    model: Any

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Normal laws of a new y at each row of x."""
        mean, variance = np.asarray(self.model.predict(as_matrix(x, "x"))).T
        return Predictions(located("norm", mean, np.sqrt(variance)))


def _catboost(loss: str, rng: np.random.Generator, **own: float) -> Any:
    """CatBoost with one thread, that writes no folder of its own."""
    catboost: Any = require("catboost", extra="trees", of="howsure-studies")
    return catboost.CatBoostRegressor(
        **own,
        loss_function=loss,
        thread_count=1,
        random_seed=_seed(rng),
        verbose=False,
        allow_writing_files=False,
    )


@final
@frozen(kw_only=True)
class NGBoostNormal(Method, Checked):
    """NGBoost's normal laws of y.

    Parameters
    ----------
    iterations : int
        Steps of boosting, each two trees of depth 3.

    Raises
    ------
    MissingDependencyError
        When fitted, if NGBoost is not installed.

    Notes
    -----
    NGBoost's defaults: the log score, natural gradients, a learning rate of 0.01. y is divided
    by its sd first, as its steps are of fixed size. Source: Duan et al. 2020, "NGBoost: natural
    gradient boosting for probabilistic prediction", ICML.

    Examples
    --------
    >>> NGBoostNormal().name
    'NGBoost'
    """

    name: ClassVar[str] = "NGBoost"
    iterations: Count = 500

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Maximise the likelihood."""
        inputs, targets = checked_rows(x, y, least=2)
        center, unit = float(targets.mean()), float(targets.std()) or 1.0
        ngboost: Any = require("ngboost", extra="trees", of="howsure-studies")
        model = ngboost.NGBRegressor(
            n_estimators=self.iterations, verbose=False, random_state=_seed(rng)
        )
        return _Scaled(model.fit(inputs, (targets - center) / unit), center, unit)


@final
@frozen(eq=False)
class _Scaled(Fitted):
    model: Any
    center: float
    unit: float

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Normal laws of a new y at each row of x."""
        law = self.model.pred_dist(as_matrix(x, "x")).params
        mean = self.center + self.unit * np.asarray(law["loc"])
        return Predictions(located("norm", mean, self.unit * np.asarray(law["scale"])))


@final
@frozen(kw_only=True)
class BART(Method, Checked):
    """Bayesian additive regression trees by stochtree: samples of a new y.

    Parameters
    ----------
    trees : int
        Of the sum.
    draws : int
        Of the posterior, each with its own noise: samples of a new y.
    heteroskedastic : bool
        Whether the noise's variance has trees of its own, as many as a fifth of `trees`.

    Raises
    ------
    MissingDependencyError
        When fitted, if stochtree is not installed.

    Notes
    -----
    stochtree's defaults: ten sweeps that grow trees from the root, then a chain of Gibbs steps.
    Source: Chipman, George and McCulloch 2010, Annals of Applied Statistics 4; He and Hahn 2023,
    Journal of the American Statistical Association 118.

    Examples
    --------
    >>> BART(draws=200).name
    'BART'
    """

    trees: Count = 200
    draws: Annotated[int, Bound(20)] = 200
    heteroskedastic: bool = False

    @property
    def name(self) -> str:
        return "BART, varying noise" if self.heteroskedastic else "BART"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Fitted:
        """Draw from the posterior."""
        inputs, targets = checked_rows(x, y, least=10)
        stochtree: Any = require("stochtree", extra="trees", of="howsure-studies")
        model = stochtree.BARTModel()
        noise = {"num_trees": self.trees // 5} if self.heteroskedastic else {}
        model.sample(
            X_train=inputs,
            y_train=targets,
            num_gfr=10,
            num_burnin=0,
            num_mcmc=self.draws,
            general_params={
                "random_seed": _seed(rng),
                "num_threads": 1,
                "sample_sigma2_global": not noise,
            },
            mean_forest_params={"num_trees": self.trees},
            variance_forest_params=noise or None,
        )
        return _Posterior(model, _seed(rng))


@final
@frozen(eq=False)
class _Posterior(Fitted):
    model: Any
    seed: int

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """A sample of a new y from each draw of the posterior; its noise belongs to the row."""
        inputs = as_matrix(x, "x")
        mean = np.asarray(self.model.predict(inputs, terms="mean_forest"))
        if self.model.has_term("variance_forest"):
            variance = np.asarray(self.model.predict(inputs, terms="variance_forest"))
        else:
            variance = np.asarray(self.model.extract_parameter("sigma2"))
        noise = row_normals(self.seed, "noise of BART", row_keys(inputs), mean.shape[1])
        return Predictions(Samples(mean + np.sqrt(variance) * noise))
