"""Heads of counts: Poisson, negative binomial, double Poisson. Their losses take 64 bits."""

from __future__ import annotations

import math
from typing import ClassVar, Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.predictions import Distribution
from howsure_studies.methods.deep.heads.base import Head, Start, Tensor, inverse_softplus, softplus

_MOST: Final = 1e15  # what laws of counts can take
_LOG_MOST: Final = math.log(_MOST)
_LEAST_MEAN: Final = 1e-30
_LEAST_DISPERSION: Final = 1e-5
_MOST_DISPERSION: Final = 1e15
_LOG_LEAST_MU: Final = math.log(1e-6)  # of the double Poisson law
_LOG_LEAST_VARIANCE: Final = math.log(1e-4)


@frozen
class CountHead(Head):
    """A law on 0, 1, 2, …, trained on y itself. Subclasses are final."""

    standardises: ClassVar[bool] = False

    def check_targets(self, y: FloatArray) -> None:
        """Raise `InputError` unless every y is a count, at most 1e15."""
        wrong = (y < 0.0) | (y != np.floor(y)) | (y > _MOST)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"y must contain counts (0, 1, 2, …, 1e15) for the {self.title} head, got "
                f"{int(wrong.sum())} that are not (first at row {row}: {y[row]:g})"
            )


def _mean_and_variance(y: FloatArray) -> tuple[float, float]:
    """Mean and variance of counts, neither of them zero: half a count is added to the sum."""
    mean = (float(y.sum()) + 0.5) / len(y)
    return mean, max(float(y.var()), 1e-4 * mean)


def _log_step(mean: float, variance: float) -> float:
    """Unit of a log mean: ten sds as a share of the mean, at most 1.

    First weights scatter log means by some hundredths of a unit, which must be no more than laws
    are wide: counts near 10⁶ with an sd of 10³ need steps of 10⁻².
    """
    return min(10.0 * math.sqrt(variance) / mean, 1.0)


@final
@frozen
class PoissonHead(CountHead):
    """A log mean o, by the Poisson likelihood: eᵒ − y o.

    Notes
    -----
    The negative log probability without log y!.

    Examples
    --------
    >>> PoissonHead().prediction(np.array([[0.0, np.log(3.0)]]), 0.0, 1.0).point()
    array([1., 3.])
    """

    title: ClassVar[str] = "Poisson"
    outputs: ClassVar[int] = 1  # the log mean

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """eᵒ − y o, shape (..., b)."""
        log_mean = outputs[..., 0, :].double()
        return log_mean.exp() - y * log_mean

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Poisson laws."""
        return Distribution("poisson", {"mu": np.exp(np.minimum(outputs[0], _LOG_MOST))})

    def start(self, y: FloatArray) -> Start:
        """The log of the mean of y; it moves in small steps where y is narrow for its size."""
        mean, variance = _mean_and_variance(y)
        return Start((math.log(mean),), (_log_step(mean, max(variance, mean)),))


@final
@frozen
class NegativeBinomialHead(CountHead):
    """A mean μ and a dispersion a, both by softplus; variance μ + a μ².

    Notes
    -----
    −[log Γ(y + r) − log Γ(r) + r log(r/(r + μ)) + y log(μ/(r + μ))] with r = 1/a, a at least 1e-5:
    the negative log probability without log y!.

    Examples
    --------
    >>> law = NegativeBinomialHead().prediction(np.array([[0.5413], [0.5413]]), 0.0, 1.0)
    >>> law.point().round(3), (law.sd() ** 2).round(3)
    (array([1.]), array([2.]))
    """

    title: ClassVar[str] = "negative binomial"
    outputs: ClassVar[int] = 2  # what the mean and the dispersion are made of

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """−[log Γ(y+r) − log Γ(r) + r log(r/(r+μ)) + y log(μ/(r+μ))], shape (..., b)."""
        both = softplus(outputs.double())
        mean = both[..., 0, :].clamp(min=_LEAST_MEAN)
        dispersion = both[..., 1, :].clamp(min=_LEAST_DISPERSION)
        size, odds = dispersion.reciprocal(), dispersion * mean
        grown = odds.log1p()
        chosen = size.lgamma() - (y + size).lgamma()
        return chosen + size * grown - y * (odds.log() - grown)

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Negative binomial laws."""
        mean, dispersion = np.logaddexp(outputs, 0.0)
        return Distribution(
            "negative_binomial",
            {
                "mu": np.clip(mean, _LEAST_MEAN, _MOST),
                "dispersion": np.clip(dispersion, _LEAST_DISPERSION, _MOST_DISPERSION),
            },
        )

    def start(self, y: FloatArray) -> Start:
        """Mean and dispersion of y; the mean moves in steps of sds of y, if those are above 1."""
        mean, variance = _mean_and_variance(y)
        dispersion = min(max((variance - mean) / mean**2, 1e-2), 10.0)
        offset = (inverse_softplus(mean), inverse_softplus(dispersion))
        return Start(offset, (max(math.sqrt(variance), 1.0), 1.0))


@final
@frozen
class DoublePoissonHead(CountHead):
    """log μ and log φ of a double Poisson law: mean about μ, variance about μ/φ.

    Notes
    -----
    −½ log φ + φμ − φ y (1 + log μ − log y): the negative log probability without log y!, the
    terms of the saturated law and the normalising constant, which is near 1 where φμ is above 2
    or so; laws, by contrast, are normalised. μ is held above 1e-6 and μ/φ above 1e-4. Computed
    as −½ log φ + φ y (eᵈ − 1 − d) with d = log μ − log y, which cancels less. Source: Young,
    Jenkins, Dong, Dawson and Seppi 2024, Flexible heteroscedastic count regression with deep
    double Poisson networks.

    Examples
    --------
    >>> law = DoublePoissonHead().prediction(np.log([[9.0], [3.0]]), 0.0, 1.0)
    >>> law.point().round(2), (law.sd() ** 2).round(1)
    (array([9.]), array([3.]))
    """

    title: ClassVar[str] = "double Poisson"
    outputs: ClassVar[int] = 2  # log μ and log φ

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """−½ log φ + φμ − φ y (1 + log μ − log y), shape (..., b)."""
        log_mu = outputs[..., 0, :].double().clamp(min=_LOG_LEAST_MU)
        log_phi = outputs[..., 1, :].double().minimum(log_mu - _LOG_LEAST_VARIANCE)
        counts = y.double()
        gap = log_mu - counts.clamp(min=1.0).log()
        cost = (counts * (gap.expm1() - gap)).where(counts > 0.0, log_mu.exp())
        return log_phi.exp() * cost - 0.5 * log_phi

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Double Poisson laws, normalised."""
        log_mu = np.clip(outputs[0], _LOG_LEAST_MU, _LOG_MOST)
        log_phi = np.minimum(outputs[1], log_mu - _LOG_LEAST_VARIANCE)
        phi = np.exp(np.clip(log_phi, -_LOG_MOST, _LOG_MOST))
        return Distribution("double_poisson", {"mu": np.exp(log_mu), "phi": phi})

    def start(self, y: FloatArray) -> Start:
        """Logs of the mean of y, and of the mean by the variance.

        The first moves in small steps where y is narrow for its size.
        """
        mean, variance = _mean_and_variance(y)
        offset = (math.log(mean), math.log(mean / variance))
        return Start(offset, (_log_step(mean, variance), 1.0))
