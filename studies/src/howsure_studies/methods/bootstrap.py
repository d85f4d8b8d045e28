"""The naive bootstrap of Heskes around any regressor, and laws from bootstraps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import check_fields
from howsure.core.errors import InputError
from howsure.inputs.distributions import located
from howsure_studies.methods.interface import (
    Fitted,
    Method,
    Predictions,
    checked_rows,
    held_out,
    point_of,
    trained,
)

Convention = Literal["paper", "code"]
Spread = Literal["member", "mean"]

_NORMAL: Final = 1e6  # degrees of freedom of which a t law is a normal one to six digits


@final
@frozen
class NaiveBootstrap(Method):
    """Members trained on resampled rows; their spread gives the intervals, which are t-intervals.

    Parameters
    ----------
    regressor : scikit-learn regressor
        What is trained on each resample.
    members : int
        M, at least 2 (at least 4 and even for ``spread="mean"``).
    validation : int or float
        Rows, or the share of rows, held out to estimate the noise.
    convention : {"paper", "code"}
        ``paper``: spread with divisor M − 1, t with M degrees of freedom. ``code``: divisor M,
        M − 1 degrees of freedom, as in the code of the authors' later paper.
    spread : {"member", "mean"}
        ``member``: the variance of single members, as published; it overstates that of their
        mean by the randomness of training. ``mean``: the variance of the mean. Each of M/2
        resamples is trained on twice; half the mean squared difference of such pairs is the
        variance due to training, and what the variance of the pairs' means holds beyond half of
        it is due to data.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    f̂ = mean of members; σ_ω² = their variance; σ² = mean over validation rows of
    max((y − f̂)² − σ_ω², 0), equal at all x; mean: f̂ ± t σ_ω; a new y: f̂ ± t √(σ_ω² + σ²).
    Source: Heskes 1997; Sluijterman, Cator and Heskes, arXiv 2106.03395, Algorithm 1 and
    equation 9. With ``spread="mean"``, R = M/2 pairs, g_r a pair's mean and w = ½ mean
    (difference)²: σ_ω² = max(var g − w/2, 0) + var g/R, and M is R in the convention; the two
    terms are the variance due to data and what is left of the resampling itself. Where training
    is much more random than data, the floor at 0 makes it a little large. Dividing σ_ω² by M
    instead would be wrong: members share their data.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=(100, 1))
    >>> method = NaiveBootstrap(LinearRegression(), members=20, validation=20)
    >>> predictions = method.fit(x, x[:, 0] + 0.1 * rng.normal(size=100), rng).predict([[0.5]])
    >>> bool(predictions.mean.sd()[0] < 0.05 < predictions.outcome.sd()[0])
    True
    """

    regressor: Any
    members: int = 50
    validation: float = 0.13
    convention: Convention = "paper"
    spread: Spread = "member"

    def __post_init__(self) -> None:
        check_fields(self)
        check_members(self.members, self.spread)

    @property
    def name(self) -> str:
        return f"naive bootstrap ({type(self.regressor).__name__})"

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> _Ensemble:
        """Train the members on resampled rows, and learn the noise from rows held out."""
        inputs, targets = checked_rows(x, y, least=4)
        validation = held_out(rng, len(targets), self.validation, "validation")
        own, answers = inputs[~validation], targets[~validation]
        repeats = 2 if self.spread == "mean" else 1
        members: list[Any] = []
        for _ in range(self.members // repeats):
            rows = rng.integers(len(answers), size=len(answers))
            members.extend(
                trained(self.regressor, own[rows], answers[rows], rng) for _ in range(repeats)
            )
        ensemble = _Ensemble(self, tuple(members), 0.0)
        mean, variance = ensemble.mean_and_variance(inputs[validation])
        return replace(ensemble, noise=noise_left(targets[validation], mean, variance))


@final
@frozen(eq=False)
class _Ensemble(Fitted):
    method: NaiveBootstrap
    members: tuple[Any, ...]
    noise: float

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """Student's t laws of a new y and of the mean at each row of x."""
        df = degrees_of_freedom(len(self.members), self.method.convention, self.method.spread)
        return t_laws(*self.mean_and_variance(x), self.noise, df)

    def mean_and_variance(self, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Mean of the members and its claimed variance at each row of x."""
        forecasts = np.stack([point_of(member, x) for member in self.members])
        return mean_and_variance(forecasts, self.method.convention, self.method.spread)


def check_members(members: int, spread: Spread) -> None:
    """Check the number of members of a bootstrap."""
    least = 2 if spread == "member" else 4
    if members < least or (spread == "mean" and members % 2):
        rule = f"at least {least}" + (" and even" if spread == "mean" else "")
        raise InputError(f"members must be a whole number, {rule}, got {members!r}")


def mean_and_variance(
    forecasts: FloatArray, convention: Convention, spread: Spread
) -> tuple[FloatArray, FloatArray]:
    """Mean of forecasts (m, n) and its claimed variance at each x; pairs stand side by side."""
    ddof = 1 if convention == "paper" else 0
    if spread == "member":
        return forecasts.mean(axis=0), forecasts.var(axis=0, ddof=ddof)
    pairs = forecasts.reshape(-1, 2, forecasts.shape[1])
    means = pairs.mean(axis=1)
    between = means.var(axis=0, ddof=ddof)
    training = 0.5 * np.square(pairs[:, 0] - pairs[:, 1]).mean(axis=0)
    data = np.maximum(between - 0.5 * training, 0.0)
    return means.mean(axis=0), data + between / len(means)


def noise_left(y: FloatArray, mean: FloatArray, variance: FloatArray) -> float:
    """Variance of the noise: mean over held-out rows of max((y − mean)² − variance, 0)."""
    return float(np.maximum(np.square(y - mean) - variance, 0.0).mean())


def degrees_of_freedom(members: int, convention: Convention, spread: Spread) -> float:
    """Of the t law: the number of resamples, or one fewer."""
    units = members // (2 if spread == "mean" else 1)
    return float(units if convention == "paper" else units - 1)


def t_laws(mean: FloatArray, variance: FloatArray, noise: float, df: float) -> Predictions:
    """Student's t laws: of a new y with variance + noise, of the mean with the variance alone."""
    return Predictions(
        outcome=located("t", mean, np.sqrt(variance + noise), df=df),
        mean=located("t", mean, np.sqrt(variance), df=df),
    )


def parametric_laws(first: FloatArray, second: FloatArray, noise: FloatArray) -> Predictions:
    """Student's t laws of a new y and of the mean, from M members (M, n) before and after.

    `second` are the means of the members trained again on y drawn from them, `noise` variances.
    """
    members = len(first)
    variance = np.square(first - second).mean(axis=0) + first.var(axis=0, ddof=1) / members
    variance = np.maximum(variance, np.finfo(float).tiny)
    share = 1.0 + noise.mean(axis=0) / variance
    with np.errstate(over="ignore"):  # a normal law is the limit
        df = np.minimum((members - 1) * np.square(share), _NORMAL)
    mean = first.mean(axis=0)
    return Predictions(
        outcome=located("t", mean, np.sqrt(variance * share), df=df),
        mean=located("t", mean, np.sqrt(variance), df=float(members - 1)),
    )
