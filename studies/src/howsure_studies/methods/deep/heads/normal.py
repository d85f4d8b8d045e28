"""Heads of normal laws, of Student's t and of mixtures."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Final, final

import numpy as np
from scipy.special import log_softmax

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Checked, NonNegative
from howsure.inputs.distributions import located
from howsure.predictions import Distribution, mixture
from howsure_studies.methods.deep.heads.base import Head, Start, Tensor, inverse_softplus, softplus

LEAST: Final = -40.0
"""Least log variance, in variances of y: an sd of 2e-9, which 32 bits cannot tell from none."""

MOST: Final = 200.0
"""Greatest log variance of a law: an sd of 3e43 sds of y, so that no sd overflows."""

_LEAST_PRECISION: Final = 1e-30
_LEAST_DF: Final = 2.0
_LEAST_ABOVE: Final = 1e-3  # so that there is an sd
_FIRST_DF: Final = 5.0
_LOG_2PI: Final = math.log(2.0 * math.pi)


def half_deviance(y: Tensor, mean: Tensor, spread: Tensor) -> Tensor:
    """½[e^{−s}(y − μ)² + s] for a log variance s, which is held above `LEAST`."""
    bounded = spread.clamp(min=LEAST)
    return ((y - mean).square() * (-bounded).exp() + bounded) * 0.5


@frozen
class MeanAndLogVariance(Head):
    """A mean and a log variance, whatever the loss. Subclasses are final."""

    settles: ClassVar[bool] = True
    outputs: ClassVar[int] = 2  # the mean and the log variance

    def warm_loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """(y − μ)², shape (..., b): the log variance stays as it is."""
        return (y - outputs[..., 0, :]).square()

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Normal laws."""
        spread = np.clip(outputs[1], LEAST, MOST)
        return located("norm", center + unit * outputs[0], unit * np.exp(0.5 * spread))


@final
@frozen
class Gaussian(MeanAndLogVariance):
    """A mean and a log variance: ½[e^{−s}(y − μ)² + s] for outputs (μ, s).

    Notes
    -----
    The normal density's negative logarithm without ½ log 2π. Source: Nix and Weigend 1994.

    Examples
    --------
    >>> Gaussian().prediction(np.array([[0.0], [0.0]]), center=10.0, unit=2.0).sd()
    array([2.])
    """

    title: ClassVar[str] = "Gaussian"

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """½[e^{−s}(y − μ)² + s], shape (..., b)."""
        return half_deviance(y, outputs[..., 0, :], outputs[..., 1, :])


@final
@frozen
class BetaGaussian(MeanAndLogVariance, Checked):
    """A mean and a log variance, each row's loss weighted by σ^{2β}: rows of high noise count more.

    Parameters
    ----------
    beta : float
        β, from 0 (as `Gaussian`) to 1 (the mean's gradient is that of squared error).

    Raises
    ------
    InputError
        If β lies outside [0, 1].

    Notes
    -----
    (σ²)^β ½[e^{−s}(y − μ)² + s], where the weight is taken as a constant. Source: Seitzer,
    Tavakoli, Antic and Martius 2022.

    Examples
    --------
    >>> BetaGaussian().beta
    0.5
    """

    beta: Annotated[float, Bound(0.0, 1.0, "[]")] = 0.5
    title: ClassVar[str] = "β-Gaussian"

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """(σ²)^β ½[e^{−s}(y − μ)² + s], shape (..., b)."""
        spread = outputs[..., 1, :]
        weight = (spread.detach().clamp(min=LEAST) * self.beta).exp()
        return half_deviance(y, outputs[..., 0, :], spread) * weight


@final
@frozen
class FaithfulGaussian(MeanAndLogVariance):
    """A mean by squared error alone, and a log variance that does not disturb it.

    The log variance is a linear function of features that it does not train.

    Notes
    -----
    ½(y − μ)² − log N(y; μ as a constant, eˢ). Source: Stirn et al. 2023, Faithful heteroscedastic
    regression with neural networks.

    Examples
    --------
    >>> FaithfulGaussian().shielded
    1
    """

    title: ClassVar[str] = "faithful Gaussian"
    shielded: ClassVar[int] = 1

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """½(y − μ)² + ½[e^{−s}(y − μ)² + s + log 2π], shape (..., b)."""
        mean, spread = outputs[..., 0, :], outputs[..., 1, :]
        likelihood = half_deviance(y, mean.detach(), spread)
        return (y - mean).square() * 0.5 + likelihood + 0.5 * _LOG_2PI


@final
@frozen
class NaturalGaussian(Head):
    """The natural parameters η₁ = μ/σ² and η₂ = −1/(2σ²) of a normal law.

    Notes
    -----
    Outputs (o₁, o₂): η₁ = o₁, η₂ = −½ softplus(o₂). The loss −[η₁y + η₂y² + η₁²/(4η₂) +
    ½ log(−2η₂)] is computed as ½λ(y − η₁/λ)² − ½ log λ with λ = −2η₂, which cancels less. Source:
    Immer et al. 2023, Effective Bayesian heteroscedastic regression with deep neural networks.

    Examples
    --------
    >>> law = NaturalGaussian().prediction(np.array([[2.0], [0.5413]]), center=0.0, unit=1.0)
    >>> law.point().round(3), law.sd().round(3)
    (array([2.]), array([1.]))
    """

    title: ClassVar[str] = "natural Gaussian"
    outputs: ClassVar[int] = 2  # η₁, and what η₂ is made of

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """−[η₁y + η₂y² + η₁²/(4η₂) + ½ log(−2η₂)], shape (..., b)."""
        wide = outputs.double()
        precision = softplus(wide[..., 1, :]).clamp(min=_LEAST_PRECISION)
        residual = y - wide[..., 0, :] / precision
        return (residual.square() * precision - precision.log()) * 0.5

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Normal laws."""
        precision = np.maximum(np.logaddexp(outputs[1], 0.0), _LEAST_PRECISION)
        mean = center + unit * (outputs[0] / precision)
        return located("norm", mean, unit / np.sqrt(precision))


@final
@frozen
class SquaredError(Head, Checked):
    """A mean alone, by squared error: a normal law of one sd at all x.

    Parameters
    ----------
    sd : float
        The noise's sd, learnt elsewhere, in sds of y; at 0 the law is a point.

    Raises
    ------
    InputError
        If the sd is negative or not finite.

    Examples
    --------
    >>> SquaredError(sd=0.5).prediction(np.array([[1.0]]), center=10.0, unit=2.0).sd()
    array([1.])
    """

    sd: NonNegative = 0.0
    title: ClassVar[str] = "squared error"
    outputs: ClassVar[int] = 1  # the mean

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """(y − μ)², shape (..., b)."""
        return (y - outputs[..., 0, :]).square()

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Normal laws of one sd."""
        mean = center + unit * outputs[0]
        return located("norm", mean, np.full(len(mean), unit * self.sd))


@final
@frozen
class StudentTHead(Head):
    """Location, log squared scale and degrees of freedom (above 2) of Student's t.

    Notes
    -----
    Outputs (μ, s, o): scale² = eˢ, ν = 2 + softplus(o). The loss is the negative log density.

    Examples
    --------
    >>> law = StudentTHead().prediction(np.array([[1.0], [0.0], [50.0]]), center=0.0, unit=2.0)
    >>> law.point(), law.parameters["df"]
    (array([2.]), array([52.]))
    """

    title: ClassVar[str] = "Student t"
    outputs: ClassVar[int] = 3  # location, log squared scale, what df are made of

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Negative log density, shape (..., b)."""
        wide = outputs.double()
        spread = wide[..., 1, :].clamp(min=LEAST)
        df = _LEAST_DF + softplus(wide[..., 2, :]).clamp(min=_LEAST_ABOVE)
        squares = (y - wide[..., 0, :]).square() * (-spread).exp()
        half = (df + 1.0) * 0.5
        constant = (df * 0.5).lgamma() - half.lgamma() + (df * math.pi).log() * 0.5
        return constant + spread * 0.5 + half * (squares / df).log1p()

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Laws of Student's t."""
        spread = np.clip(outputs[1], LEAST, MOST)
        df = _LEAST_DF + np.maximum(np.logaddexp(outputs[2], 0.0), _LEAST_ABOVE)
        mean, scale = center + unit * outputs[0], unit * np.exp(0.5 * spread)
        return Distribution("t", {"df": df, "loc": mean, "scale": scale})

    def start(self, y: FloatArray) -> Start:
        """Five degrees of freedom."""
        return Start((0.0, 0.0, inverse_softplus(_FIRST_DF - _LEAST_DF)), (1.0, 1.0, 1.0))


@final
@frozen
class NormalMixture(Head, Checked):
    """A mixture density network: weights, means and log variances of k normal laws.

    Parameters
    ----------
    components : int
        k, at least 2.
    least_sd : float
        Least sd of a part, in sds of y: without one, the likelihood has no maximum.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Outputs: k logits of the weights, k means, k log variances. The loss is the negative log
    density. Source: Bishop 1994.

    Examples
    --------
    >>> law = NormalMixture(2).prediction(np.array([[0.0, 0, -1, 1, 0, 0]]).T, 0.0, 1.0)
    >>> law.law.name, law.sd().round(4)
    ('norm+norm', array([1.4142]))
    """

    components: Annotated[int, Bound(2)] = 3
    least_sd: Annotated[float, Bound(1e-8, 1.0)] = 1e-3
    title: ClassVar[str] = "mixture"

    @property
    def outputs(self) -> int:
        """Three a part."""
        return 3 * self.components

    @property
    def _least(self) -> float:
        return 2.0 * math.log(self.least_sd)

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Negative log density, shape (..., b)."""
        k = self.components
        logits, means = outputs[..., :k, :], outputs[..., k : 2 * k, :]
        spread = outputs[..., 2 * k :, :].clamp(min=self._least)
        squares = (y.unsqueeze(-2) - means).square() * (-spread).exp()
        terms = logits.log_softmax(-2) - (squares + spread + _LOG_2PI) * 0.5
        return -terms.logsumexp(-2)

    def prediction(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Mixtures of normal laws."""
        k = self.components
        weights = np.exp(log_softmax(outputs[:k], axis=0))
        sds = unit * np.exp(0.5 * np.clip(outputs[2 * k :], self._least, MOST))
        parts = [
            Distribution.normal(center + unit * mean, sd)
            for mean, sd in zip(outputs[k : 2 * k], sds, strict=True)
        ]
        return mixture(parts, weights.T)

    def start(self, y: FloatArray) -> Start:
        """Equal weights, means at quantiles of y, sds that let the parts meet."""
        k = self.components
        means = np.quantile(y, (np.arange(k) + 0.5) / k)
        variance = max(float(y.var()) / k**2, self.least_sd**2)
        offset = (*(0.0,) * k, *means.tolist(), *(math.log(variance),) * k)
        return Start(offset, (1.0,) * self.outputs)
