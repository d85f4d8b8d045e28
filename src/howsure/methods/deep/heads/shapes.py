"""Heads of laws with shapes of their own: Student's t, and mixtures of normal laws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, final

import numpy as np
from scipy.special import log_softmax

from howsure.core.arrays import FloatArray
from howsure.core.convert import Bound, Checked
from howsure.methods.deep.heads.base import Head, Start, Tensor, inverse_softplus, softplus
from howsure.methods.deep.heads.normal import LEAST, MOST
from howsure.predictions import Distribution, mixture

_LEAST_DF: Final = 2.0
_LEAST_ABOVE: Final = 1e-3  # so that there is an sd
_FIRST_DF: Final = 5.0
_LOG_2PI: Final = math.log(2.0 * math.pi)


@final
@dataclass(frozen=True, slots=True)
class StudentT(Head):
    """Location, log squared scale and degrees of freedom (above 2) of Student's t.

    Notes
    -----
    Outputs (μ, s, o): scale² = eˢ, ν = 2 + softplus(o). The loss is the negative log density.

    Examples
    --------
    >>> law = StudentT().belief(np.array([[1.0], [0.0], [50.0]]), center=0.0, unit=2.0)
    >>> law.point(), law.parameters["df"]
    (array([2.]), array([52.]))
    """

    title: ClassVar[str] = "Student t"

    @property
    def outputs(self) -> int:
        """Three: location, log squared scale, and what the degrees of freedom are made of."""
        return 3

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Negative log density, shape (..., b)."""
        wide = outputs.double()
        spread = wide[..., 1, :].clamp(min=LEAST)
        df = _LEAST_DF + softplus(wide[..., 2, :]).clamp(min=_LEAST_ABOVE)
        squares = (y - wide[..., 0, :]).square() * (-spread).exp()
        half = (df + 1.0) * 0.5
        constant = (df * 0.5).lgamma() - half.lgamma() + (df * math.pi).log() * 0.5
        return constant + spread * 0.5 + half * (squares / df).log1p()

    def belief(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
        """Laws of Student's t."""
        spread = np.clip(outputs[1], LEAST, MOST)
        df = _LEAST_DF + np.maximum(np.logaddexp(outputs[2], 0.0), _LEAST_ABOVE)
        mean, scale = center + unit * outputs[0], unit * np.exp(0.5 * spread)
        return Distribution("t", {"df": df, "loc": mean, "scale": scale})

    def start(self, y: FloatArray) -> Start:
        """Five degrees of freedom."""
        return Start((0.0, 0.0, inverse_softplus(_FIRST_DF - _LEAST_DF)), (1.0, 1.0, 1.0))


@final
@dataclass(frozen=True, slots=True)
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
    >>> law = NormalMixture(2).belief(np.array([[0.0, 0, -1, 1, 0, 0]]).T, 0.0, 1.0)
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

    def belief(self, outputs: FloatArray, center: float, unit: float) -> Distribution:
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
