"""The naive bootstrap of networks: Algorithm 1 of the simulation study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.methods.bootstrap import (
    Convention,
    Spread,
    check_members,
    degrees_of_freedom,
    mean_and_variance,
    noise_left,
    t_laws,
)
from howsure.methods.deep.heads import SquaredError
from howsure.methods.deep.members import Member, Network
from howsure.methods.deep.method import NetworkFit, NetworkMethod, Task
from howsure.methods.deep.outputs import outputs
from howsure.methods.interface import Beliefs


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkBootstrap(NetworkMethod):
    """Networks trained on resampled rows by squared error; their spread gives t-intervals.

    The arithmetic is that of `NaiveBootstrap`; the networks are trained all at once.

    Parameters
    ----------
    members : int
        M, at least 2 (at least 4 and even for ``spread="mean"``).
    validation : int or float
        Rows, or the share of rows, held out to estimate the noise.
    convention : {"paper", "code"}
        ``paper``: spread with divisor M − 1, t with M degrees of freedom. ``code``: divisor M,
        M − 1 degrees of freedom.
    spread : {"member", "mean"}
        The variance of single members, as published, or that of their mean.
    layers, epochs, batch_size, learning_rate, penalty, chunk
        See `Training`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    See `NaiveBootstrap`. Source: Heskes 1997; Sluijterman, Cator and Heskes, arXiv 2106.03395,
    Algorithm 1. The published study holds out 150 further rows: give it 1150 and
    ``validation=150``.

    Examples
    --------
    >>> NetworkBootstrap(members=20).batch
    25
    """

    members: int = 50
    validation: float = 0.13
    convention: Convention = "paper"
    spread: Spread = "member"

    def __post_init__(self) -> None:
        NetworkMethod.__post_init__(self)
        check_members(self.members, self.spread)

    @property
    def name(self) -> str:
        """What reports call it."""
        return "network bootstrap"

    @property
    def networks(self) -> int:
        """As many as members."""
        return self.members

    @property
    def head(self) -> SquaredError:
        """The mean alone."""
        return SquaredError()

    @property
    def validation_rows(self) -> float:
        """Rows, or the share of rows, that are held out."""
        return self.validation

    def _members(self, task: Task) -> list[Member]:
        twins = 2 if self.spread == "mean" else 1
        return task.members(self.members, resampled=True, twins=twins)

    def _fitted(self, task: Task, networks: tuple[Network, ...]) -> NetworkFit:
        fitted = _Bootstrap(networks, self, float("nan"))
        if any(network.failure is not None for network in networks):
            return fitted
        return replace(fitted, noise=noise_left(task.held_y, *fitted.center(task.held_x)))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Bootstrap(NetworkFit):
    method: NetworkBootstrap
    noise: float

    def center(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean of the members and its claimed variance at each row."""
        scales = [network.scale for network in self.networks]
        units = np.array([[scale.y_unit] for scale in scales])
        centers = np.array([[scale.y_center] for scale in scales])
        forecasts = centers + units * outputs(self.networks, x)[:, 0]
        return mean_and_variance(forecasts, self.method.convention, self.method.spread)

    def _beliefs(self, x: FloatArray) -> Beliefs:
        df = degrees_of_freedom(self.method.members, self.method.convention, self.method.spread)
        return t_laws(*self.center(x), self.noise, df)
