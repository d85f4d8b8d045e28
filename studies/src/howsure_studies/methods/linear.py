"""Linear models with intervals: exact t-intervals, and Bayesian ridge regression."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.inputs.distributions import located
from howsure_studies.methods.interface import Fitted, Method, Predictions, checked_rows


@final
@frozen
class LinearT(Method):
    """Least squares with Student's t intervals: exact where y is linear with equal normal noise.

    Parameters
    ----------
    intercept : bool
        Whether the line may miss the origin.

    Notes
    -----
    With leverage h(x) = x′(X′X)⁻¹x, residual variance s² and m = n − rank degrees of freedom, the
    mean at x is f̂ ± t_m s√h and a new y is f̂ ± t_m s√(1 + h). Inputs of deficient rank are
    solved by the pseudo-inverse; then h is right for every x that obeys the same relations as the
    training inputs, and other x are refused. Source: any textbook of regression.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fitted = LinearT().fit(x, [0.1, 0.9, 2.1, 2.9], np.random.default_rng(0))
    >>> lower, upper = fitted.predict([[1.5]]).mean.interval(0.9)
    >>> float(lower[0]), float(upper[0])
    (1.3153, 1.6847)
    """

    intercept: bool = True

    @property
    def name(self) -> str:
        return "linear t" if self.intercept else "linear t, no intercept"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Line:
        """Fit by least squares; draws nothing from the generator."""
        inputs, targets = checked_rows(x, y, least=2)
        columns = _standardised(inputs, centred=self.intercept)
        center = float(targets.mean()) if self.intercept else 0.0
        left, sizes, right = np.linalg.svd(columns.apply(inputs), full_matrices=False)
        rank = int((sizes > sizes[0] * max(inputs.shape) * np.finfo(float).eps).sum())
        rows = right[:rank]
        freedom = len(targets) - rank - int(self.intercept)
        if freedom < 1:
            raise InputError(
                f"x must have more rows than the line has coefficients, got {len(targets)} rows"
            )
        along = left[:, :rank].T @ (targets - center)
        rest = targets - center - left[:, :rank] @ along
        variance = float(np.square(rest).sum()) / freedom
        basis = rows.T / sizes[:rank]
        floor = 1.0 / len(targets) if self.intercept else 0.0
        return _Line(columns, center, basis, basis @ along, rows, floor, variance, freedom)


@final
@frozen(eq=False)
class _Line(Fitted):
    columns: StandardizedColumns
    center: float
    basis: FloatArray
    slopes: FloatArray
    rows: FloatArray
    least_leverage: float
    variance: float
    freedom: int

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Student's t laws of a new y and of the mean at each row of x."""
        z = self.columns.apply(as_matrix(x, "x", columns=len(self.columns.center)))
        rest = np.linalg.norm(z - z @ self.rows.T @ self.rows, axis=1)
        outside = rest > 1e-6 * (1.0 + np.linalg.norm(z, axis=1))
        if outside.any():
            raise InputError(
                "x must satisfy the linear relations of the training inputs, got "
                f"{int(outside.sum())} rows that do not: the mean there is not determined"
            )
        leverage = self.least_leverage + np.square(z @ self.basis).sum(axis=1)
        mean, df = self.center + z @ self.slopes, float(self.freedom)
        return Predictions(
            outcome=located("t", mean, np.sqrt(self.variance * (1.0 + leverage)), df=df),
            mean=located("t", mean, np.sqrt(self.variance * leverage), df=df),
        )


@final
@frozen
class BayesianRidge(Method):
    """scikit-learn's Bayesian ridge regression on standardised columns, with normal intervals.

    The mean's variance is that of the posterior, with the intercept's, 1/(n × noise precision)
    under a flat prior, which scikit-learn leaves out.

    Parameters
    ----------
    iterations : int
        The most iterations of the evidence maximisation.

    Notes
    -----
    Source: MacKay 1992; Tipping 2001; ``sklearn.linear_model.BayesianRidge``.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 20)[:, None]
    >>> fitted = BayesianRidge().fit(x, 2 * x[:, 0], np.random.default_rng(0))
    >>> fitted.predict([[0.5]]).outcome.point()
    array([1.])
    """

    name: ClassVar[str] = "Bayesian ridge"
    iterations: int = 300

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Ridge:
        """Maximise the evidence; draws nothing from the generator."""
        from sklearn.linear_model import BayesianRidge as Ridge

        inputs, targets = checked_rows(x, y, least=3)
        center, unit = float(targets.mean()), float(targets.std())
        if unit == 0:
            raise InputError("y must not be constant")
        columns = _standardised(inputs, centred=True)
        model = Ridge(max_iter=self.iterations)
        model.fit(columns.apply(inputs), (targets - center) / unit)
        return _Ridge(columns, center, unit, model, len(targets))


@final
@frozen(eq=False)
class _Ridge(Fitted):
    columns: StandardizedColumns
    center: float
    unit: float
    model: Any
    n: int

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Normal laws of a new y and of the mean at each row of x."""
        z = self.columns.apply(as_matrix(x, "x", columns=len(self.columns.center)))
        mean = self.center + self.unit * np.asarray(self.model.predict(z), dtype=np.float64)
        noise = 1.0 / float(self.model.alpha_)
        slopes = np.einsum("ij,jk,ik->i", z, np.asarray(self.model.sigma_), z)
        own = np.maximum(slopes, 0.0) + noise / self.n
        return Predictions(
            outcome=located("norm", mean, self.unit * np.sqrt(own + noise)),
            mean=located("norm", mean, self.unit * np.sqrt(own)),
        )


@final
@frozen(eq=False)
class StandardizedColumns:
    """How columns are standardised: (x − center)/unit."""

    center: FloatArray
    unit: FloatArray

    def apply(self, x: FloatArray) -> FloatArray:
        """Standardised columns, shape (n, d)."""
        return np.asarray((x - self.center) / self.unit)


def _standardised(x: FloatArray, *, centred: bool) -> StandardizedColumns:
    """Mean and standard deviation of each column; a column without spread keeps its unit."""
    center = x.mean(axis=0) if centred else np.zeros(x.shape[1])
    size = np.sqrt(np.square(x - center).mean(axis=0))
    flat = size <= 1e-12 * np.abs(x).max(axis=0)
    return StandardizedColumns(center, np.where(flat, 1.0, size))
