"""Conformal predictive systems: a distribution of y from held-out errors with their signs."""

from __future__ import annotations

from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.conformal.adapting import Calibration, Marginal, RankChoice, Thresholds
from howsure.conformal.ranks import rows_needed
from howsure.conformal.scores import Band, Score
from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.inputs.distributions import central_levels
from howsure.predictions import Intervals, Quantiles
from howsure_studies.methods.conformal.inductive import (
    Bands,
    InductiveConformal,
    SplitConformal,
    comes_trained,
    model_name,
)
from howsure_studies.methods.conformal.normalized import NormalizedConformal
from howsure_studies.methods.interface import Fitted, Predictions


@final
@frozen
class ConformalPredictive(InductiveConformal):
    """A split conformal predictive system around any regressor: quantiles of y.

    Parameters
    ----------
    regressor : scikit-learn regressor or callable
        What forecasts; see `SplitConformal`.
    difficulty : scikit-learn regressor or callable, optional
        What predicts the size of an error from x; see `NormalizedConformal`. All errors are
        taken as of one size if omitted.
    calibration, coverages, rank, delta, adapt, clip, too_few
        As in `InductiveConformal`. Weights, as by `CovariateShift`, weigh the errors.

    Raises
    ------
    InputError
        If an option breaks its rule; when fitted, if the rows are too few for a quantile and
        thresholds are one for all x.

    Notes
    -----
    With errors R_i = (y_i − f(x_i))/s(x_i) of held-out rows that weigh w_i, the distribution of
    y at x has the mass w_i at f(x) + s(x)R_i, and the mass w(x) anywhere. A quantile at p ≥ ½ is
    the smallest of these numbers below which, itself included, lies p of the whole mass,
    w(x) being above; at p < ½ it is its mirror image; the median is the middle of both. So
    each tail is covered, on average over x, where rows are exchangeable by their weights.
    Quantiles are of the levels of the coverages and the median; where thresholds depend on x they
    may be infinite, and central intervals are given in their place. Source: Vovk, Shen, Manokhin
    and Xie 2019, "Nonparametric predictive distributions based on conformal prediction"; Vovk,
    Petej, Nouretdinov, Manokhin and Gammerman 2020, "Computationally efficient versions of
    conformal predictive distributions"; the weights of Tibshirani et al. 2019.

    Examples
    --------
    >>> method = ConformalPredictive(lambda x: x[:, 0], coverages=(0.5,))
    >>> y = np.array([-3.0, -1.0, 0.0, 1.0, 2.0, 5.0, 9.0])
    >>> fitted = method.fit(0 * y[:, None], y, np.random.default_rng(0))
    >>> prediction = fitted.predict([[10.0]]).outcome
    >>> prediction.levels, prediction.values
    (array([0.25, 0.5 , 0.75]), array([[ 9., 11., 15.]]))
    """

    regressor: Any
    difficulty: Any = None

    def _base_name(self) -> str:
        sizes = "" if self.difficulty is None else f", {model_name(self.difficulty)}"
        return f"conformal predictive system ({model_name(self.regressor)}{sizes})"

    def _trains(self) -> bool:
        return not comes_trained(self.regressor)

    def _prepared(
        self, x: FloatArray, y: FloatArray, rng: np.random.Generator
    ) -> tuple[Score, Bands]:
        inner: InductiveConformal = (
            SplitConformal(self.regressor)
            if self.difficulty is None
            else NormalizedConformal(self.regressor, self.difficulty)
        )
        return inner._prepared(x, y, rng)

    def _calibrated(
        self,
        training: tuple[FloatArray, FloatArray],
        held: tuple[FloatArray, FloatArray],
        elsewhere: FloatArray | None,
        rng: np.random.Generator,
    ) -> Fitted:
        _, bands = self._prepared(*training, rng)
        center, unit = _location(bands(held[0])[0])
        errors = (held[1] - center) / unit
        levels = np.union1d(central_levels(self.coverages), [0.5])
        signs = np.where(levels < 0.5, -1.0, 1.0)
        sides = np.r_[signs, -1.0]  # the last is the lower median
        calibration = Calibration(
            scores=sides * errors[:, None],
            x=held[0],
            coverages=(*np.maximum(levels, 1.0 - levels).tolist(), 0.5),
            choice=RankChoice(self.rank, self.delta, self.too_few),
            training=training[0],
            forecast=lambda x: bands(x)[0].center,
            rng=rng,
            elsewhere=elsewhere,
        )
        fitted = _FittedSystem(self, bands, self.adapt.learn(calibration), levels, sides)
        if isinstance(self.adapt, Marginal) and np.isinf(fitted.ends(held[0][:1])).any():
            needed = rows_needed(float(levels[-1]), self.rank, self.delta)
            raise InputError(
                f"calibration must leave {needed} rows for a quantile at {levels[-1]:g}, "
                f"got {len(errors)}"
            )
        return fitted


@final
@frozen(eq=False)
class _FittedSystem(Fitted):
    method: ConformalPredictive
    bands: Bands
    thresholds: Thresholds
    levels: FloatArray  # (k,), the median among them
    sides: FloatArray  # (k + 1,)

    def ends(self, x: FloatArray) -> FloatArray:
        """Quantiles at the rows of x, shape (m, k)."""
        center, unit = _location(self.bands(x)[0])
        reached = center[:, None] + unit[:, None] * self.sides * self.thresholds.at(x)
        values, middle = reached[:, :-1], int(np.searchsorted(self.levels, 0.5))
        low, high = reached[:, -1], values[:, middle]
        with np.errstate(invalid="ignore"):
            median = np.where(np.isinf(high), center, low / 2.0 + high / 2.0)
        # no quantile at ½ or more lies below the median, nor one below ½ above it
        outward = np.where(
            self.levels < 0.5,
            np.minimum(values, median[:, None]),
            np.maximum(values, median[:, None]),
        )
        outward[:, middle] = median
        clip = self.method.clip
        return outward if clip is None else np.clip(outward, *clip)

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """The distribution of a new y at each row of x."""
        values = self.ends(as_matrix(x, "x"))
        if isinstance(self.method.adapt, Marginal):
            return Predictions(Quantiles(self.levels, values))
        count = len(self.method.coverages)
        lower, upper = values[:, :count][:, ::-1], values[:, -count:]
        return Predictions(Intervals(lower, upper, self.method.coverages))


def _location(band: Band) -> tuple[FloatArray, FloatArray]:
    """Where a band is, and the unit of errors; 1 where it has no width."""
    unit = band.upper - band.center
    return band.center, np.where(unit > 0.0, unit, 1.0)
