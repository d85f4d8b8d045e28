"""Networks that give a law at each x, alone or as an ensemble, and networks of quantiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import Bound
from howsure.methods.deep.heads import Gaussian, QuantileHead
from howsure.methods.deep.members import Member, Network
from howsure.methods.deep.method import NetworkFit, NetworkMethod, Task
from howsure.methods.deep.outputs import moments, outputs
from howsure.methods.interface import COVERAGES, Beliefs, Coverages, located
from howsure.predictions.base import tail_levels


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeanVarianceNetwork(NetworkMethod):
    """One network with two outputs, the mean and the log variance: normal laws of a new y.

    It does not tell the mean's uncertainty from the noise: no confidence intervals.

    Parameters
    ----------
    layers, epochs, batch_size, learning_rate, penalty, chunk
        See `Training`.

    Notes
    -----
    Source: Nix and Weigend 1994.

    Examples
    --------
    >>> MeanVarianceNetwork(chunk=100).batch
    400
    """

    @property
    def name(self) -> str:
        """What reports call it."""
        return "mean–variance network"

    @property
    def networks(self) -> int:
        """One."""
        return 1

    @property
    def head(self) -> Gaussian:
        """A mean and a log variance."""
        return Gaussian()

    def _fitted(self, task: Task, networks: tuple[Network, ...]) -> NetworkFit:
        return _MeanVariance(networks)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _MeanVariance(NetworkFit):
    def _beliefs(self, x: FloatArray) -> Beliefs:
        scale = self.networks[0].scale
        values = outputs(self.networks, x)[0]
        return Beliefs(Gaussian().belief(values, scale.y_center, scale.y_unit))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeepEnsemble(NetworkMethod):
    """Mean–variance networks that differ by their first weights and order of rows.

    Parameters
    ----------
    members : int
        M, at least 2.
    resampled : bool
        Whether each is trained on its own resample of the rows.
    layers, epochs, batch_size, learning_rate, penalty, chunk
        See `Training`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    f̂ = mean of the μ_m; σ² = mean of the σ_m²; σ_ω² = mean of (μ_m − f̂)², divisor M, so that a
    new y is N(f̂, σ² + σ_ω²), the normal law with the mixture's moments; the mean is
    N(f̂, σ_ω²), which without resampling holds the randomness of training alone. Source:
    Lakshminarayanan, Pritzel and Blundell 2017, without adversarial training.

    Examples
    --------
    >>> DeepEnsemble(members=8).batch
    64
    """

    members: Annotated[int, Bound(2)] = 5
    resampled: bool = False

    @property
    def name(self) -> str:
        """What reports call it."""
        return "bootstrapped deep ensemble" if self.resampled else "deep ensemble"

    @property
    def networks(self) -> int:
        """As many as members."""
        return self.members

    @property
    def head(self) -> Gaussian:
        """A mean and a log variance."""
        return Gaussian()

    def _members(self, task: Task) -> list[Member]:
        return task.members(self.members, resampled=self.resampled)

    def _fitted(self, task: Task, networks: tuple[Network, ...]) -> NetworkFit:
        return _DeepEnsemble(networks)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _DeepEnsemble(NetworkFit):
    def _beliefs(self, x: FloatArray) -> Beliefs:
        return mixed(*moments(self.networks, Gaussian(), outputs(self.networks, x)), ddof=0)


def mixed(means: FloatArray, variances: FloatArray, *, ddof: int) -> Beliefs:
    """Normal laws from the moments of members or passes, each of shape (m, n).

    Parameters
    ----------
    means, variances : ndarray of float, shape (m, n)
        What each says of y.
    ddof : int
        The spread of the means has divisor m − ddof.

    Returns
    -------
    Beliefs
        Of y: variance mean(variances) + var(means); of the mean: var(means).

    Examples
    --------
    >>> beliefs = mixed(np.array([[0.0], [2.0]]), np.array([[3.0], [3.0]]), ddof=0)
    >>> beliefs.outcome.sd(), beliefs.mean.sd()
    (array([2.]), array([1.]))
    """
    center, spread = means.mean(axis=0), means.var(axis=0, ddof=ddof)
    return Beliefs(
        outcome=located("norm", center, np.sqrt(spread + variances.mean(axis=0))),
        mean=located("norm", center, np.sqrt(spread)),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileNetwork(NetworkMethod):
    """One network with one output a quantile, by the pinball loss; crossing ones are sorted.

    Parameters
    ----------
    coverages : tuple of float
        The coverages of its central intervals.
    layers, epochs, batch_size, learning_rate, penalty, chunk
        See `Training`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> QuantileNetwork(coverages=(0.8, 0.5)).head.levels
    (0.1, 0.25, 0.75, 0.9)
    """

    coverages: Coverages = COVERAGES

    @property
    def name(self) -> str:
        """What reports call it."""
        return "quantile network"

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        """The coverages of its central intervals."""
        return self.coverages

    @property
    def networks(self) -> int:
        """One."""
        return 1

    @property
    def head(self) -> QuantileHead:
        """One output a level that bounds an interval."""
        return QuantileHead(tuple(sorted({p for c in self.coverages for p in tail_levels(c)})))

    def _fitted(self, task: Task, networks: tuple[Network, ...]) -> NetworkFit:
        return _QuantileFit(networks, self.head)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _QuantileFit(NetworkFit):
    head: QuantileHead

    def _beliefs(self, x: FloatArray) -> Beliefs:
        scale = self.networks[0].scale
        values = outputs(self.networks, x)[0]
        return Beliefs(self.head.belief(values, scale.y_center, scale.y_unit))
