"""A regressor for tables as scikit-learn has them, with a head of any kind."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from howsure.core.arrays import FloatArray
from howsure.core.errors import HowsureWarning, InputError, UnanswerableError
from howsure.core.rng import child
from howsure.predictions import Prediction
from howsure_studies.methods.deep.heads import Head
from howsure_studies.methods.deep.method import Combine
from howsure_studies.methods.deep.networks import HeadNetwork
from howsure_studies.methods.deep.training import TABLES, Initial, Keep, Schedule


@dataclass(eq=False, repr=False)
class HeadRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Networks whose head gives a law of y at each row: counts, normal laws, quantiles, mixtures.

    Parameters
    ----------
    head : str, mapping or Head
        ``poisson``, ``negative_binomial``, ``double_poisson``, ``gaussian``, ``beta_gaussian``,
        ``natural_gaussian``, ``faithful_gaussian``, ``quantile``, ``student_t`` or ``mixture``; a
        mapping of ``name`` and options, as ``{"name": "mixture", "components": 5}``; or a head.
    members, resampled, validation, combine
        See `HeadNetwork`; rows are held out at random where `fit` is given none.
    layers, epochs, batch_size, learning_rate, weight_decay, schedule, keep, penalty, initial
        See `BatchTraining`, as the next; defaults are its preset `TABLES`.
    warm, standardise, chunk, device
        ``warm`` is its ``warm_start``.
    random_state : int or None
        Fixes all that is random; fresh numbers each time if None.

    Attributes
    ----------
    fit_ : HeadFit
        The trained networks.
    n_features_in_ : int
        Columns of X.
    failures_ : list of str
        Where the loss of a network stopped being finite; that network is as it was after the
        epoch before.

    Notes
    -----
    Needs the extra ``deep``. `predict` gives the mean (of quantiles, their point forecast);
    `predict_distribution` all that is believed.

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("torch")
    >>> x = np.linspace(0.0, 1.0, 40)[:, None]
    >>> model = HeadRegressor(head="poisson", layers=(8,), epochs=3)
    >>> model.fit(x, np.arange(40) // 10).predict_distribution(x).law.name
    'poisson'
    """

    head: str | Mapping[str, Any] | Head = "gaussian"
    _: KW_ONLY
    members: int = 1
    resampled: bool = False
    layers: tuple[int, ...] = TABLES.layers
    epochs: int = TABLES.epochs
    batch_size: int = TABLES.batch_size
    learning_rate: float = TABLES.learning_rate
    weight_decay: float = TABLES.weight_decay
    schedule: Schedule = TABLES.schedule
    keep: Keep = TABLES.keep
    validation: float | None = 0.1
    penalty: float = TABLES.penalty
    initial: Initial = TABLES.initial
    warm: bool = TABLES.warm_start
    standardise: bool = TABLES.standardise
    combine: Combine = "mixture"
    chunk: int = TABLES.chunk
    device: str = TABLES.device
    random_state: int | None = 0

    @property
    def method(self) -> HeadNetwork:
        """The same as a method, which fits with a generator and predicts predictions."""
        options = self.get_params(deep=False)
        del options["random_state"]
        return HeadNetwork(**options)

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        X_val: npt.ArrayLike | None = None,
        y_val: npt.ArrayLike | None = None,
    ) -> Self:
        """Train; X_val and y_val choose the epoch; a network that diverges is warned of."""
        if (X_val is None) != (y_val is None):
            raise InputError("X_val and y_val must be given together, got one of them")
        method, rng = self.method, self._rng()
        data = self._checked(X, y, y_numeric=True, ensure_min_samples=4)
        validation = None if X_val is None or y_val is None else (X_val, y_val)
        fitted = method.fit_beside(data, validation, rng)
        self.fit_ = fitted
        bad = [
            f"network {number}: {network.failure}; kept as after epoch {network.kept}"
            for number, network in enumerate(fitted.networks)
            if network.failure is not None
        ]
        self.failures_ = bad
        if bad:
            warnings.warn(
                f"{len(bad)} of {len(fitted.networks)} networks diverged ({bad[0]})",
                HowsureWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """The point forecast at each row, shape (n,): the mean, or what quantiles imply."""
        return self.predict_distribution(X).point()

    def predict_distribution(self, X: npt.ArrayLike) -> Prediction:
        """A distribution, or quantiles, of y at each row; a network never trained is an error."""
        check_is_fitted(self, "fit_")
        inputs: FloatArray = self._checked(X, reset=False)
        for number, network in enumerate(self.fit_.networks):
            if network.failure is not None and network.kept == 0:
                raise UnanswerableError(f"network {number} was never trained: {network.failure}")
        return self.fit_.predictions(inputs).outcome

    def _checked(self, *data: Any, **options: Any) -> Any:
        """Data as scikit-learn's own check makes them; it keeps the number and names of columns."""
        try:
            return validate_data(self, *data, dtype=np.float64, **options)
        except (TypeError, ValueError) as error:
            raise InputError(str(error)) from error

    def _rng(self) -> np.random.Generator:
        if self.random_state is None:
            return np.random.default_rng()
        return child(self.random_state, "head regressor")
