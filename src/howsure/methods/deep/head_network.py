"""Networks with any head, alone or as a mixture of several, as a method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, shortened
from howsure.core.convert import Count, NonNegative
from howsure.core.errors import InputError
from howsure.methods.deep.heads import Head, QuantileHead, head_named
from howsure.methods.deep.members import (
    Initial,
    Keep,
    Layers,
    Member,
    Network,
    Schedule,
    Training,
)
from howsure.methods.deep.method import NetworkFit, NetworkMethod, Task
from howsure.methods.deep.outputs import outputs
from howsure.methods.deep.train import train
from howsure.methods.interface import Beliefs, checked_coverages, checked_rows, located
from howsure.predictions import Distribution, Prediction, Quantiles, mixture


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HeadNetwork(NetworkMethod):
    """Networks with a head of any kind; several make a mixture of their laws, a deep ensemble.

    Parameters
    ----------
    head : str, mapping or Head
        A name of `howsure.methods.deep.heads.HEADS`, a mapping of ``name`` and options, or a
        head.
    members : int
        Networks that differ by their first weights and order of rows, at least 1.
    resampled : bool
        Whether each is trained on its own resample of the rows.
    validation : int or float, optional
        Rows, or the share of rows, held out to choose the epoch that is kept.
    weight_decay, schedule, keep, initial, warm, standardise
        See `Training`.
    layers, epochs, batch_size, learning_rate, penalty, chunk
        See `Training`.

    Raises
    ------
    InputError
        If an option breaks its rule, or the best epoch is wanted and no rows are held out.

    Notes
    -----
    With several members, a new y follows the mixture of their laws in equal parts (of quantiles,
    their means level by level); the mean follows N(f̂, σ_ω²), from the spread of the members'
    means, divisor M. Sources: Lakshminarayanan, Pritzel and Blundell 2017; the settings are those
    of Young et al. 2025 for tables.

    Examples
    --------
    >>> HeadNetwork(head="double_poisson", members=5).name
    'double Poisson deep ensemble'
    """

    head: Any = "gaussian"
    members: Count = 1
    resampled: bool = False
    validation: float | None = 0.1
    layers: Layers = (128, 128, 128, 64)
    epochs: Count = 200
    weight_decay: NonNegative = 1e-5
    schedule: Schedule = "cosine"
    keep: Keep = "best"
    initial: Initial = "glorot"
    warm: bool = True
    standardise: bool = True

    def __post_init__(self) -> None:
        NetworkMethod.__post_init__(self)
        object.__setattr__(self, "head", head_named(self.head))
        if self.keep == "best" and self.validation is None:
            raise InputError("keep must be 'last' where validation is None, got 'best'")

    @property
    def name(self) -> str:
        """What reports call it."""
        kind = "network" if self.members == 1 else "deep ensemble"
        return f"{'bootstrapped ' * self.resampled}{self.head.title} {kind}"

    @property
    def training(self) -> Training:
        """How the networks are trained."""
        return Training(
            self.layers,
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.penalty,
            self.chunk,
            self.weight_decay,
            self.schedule,
            self.keep,
            self.initial,
            self.warm,
            self.standardise,
        )

    @property
    def networks(self) -> int:
        """As many as members."""
        return self.members

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        """The coverages that the levels of a head of quantiles bound; None for other heads."""
        if not isinstance(self.head, QuantileHead):
            return None
        levels = {round(level, 12) for level in self.head.levels}
        found = (round(1.0 - 2.0 * p, 12) for p in levels if p < 0.5 and round(1 - p, 12) in levels)
        return checked_coverages(tuple(found))

    @property
    def validation_rows(self) -> float | None:
        """Rows, or the share of rows, that are held out."""
        return self.validation

    def fit_beside(
        self,
        data: tuple[npt.ArrayLike, npt.ArrayLike],
        held: tuple[npt.ArrayLike, npt.ArrayLike] | None,
        rng: np.random.Generator,
    ) -> HeadFit:
        """Train the networks of one data set, with rows of one's own choice held out.

        Parameters
        ----------
        data : tuple of array-like, shapes (n, d) and (n,)
            Inputs and targets.
        held : tuple of array-like, shapes (h, d) and (h,), optional
            Those held out; if omitted, some of the data are, as `fit` has it.
        rng : numpy.random.Generator
            The only source of randomness.

        Raises
        ------
        InputError
            If a value is missing or not finite, columns differ, or there are too few rows.
        MissingDependencyError
            If torch is not installed.
        """
        if held is None:
            task = self._task(data[0], data[1], rng)
        else:
            x, y = checked_rows(data[0], data[1], least=4)
            held_x, held_y = checked_rows(held[0], held[1], least=1)
            held_x = as_matrix(held_x, "held", columns=x.shape[1])
            task = Task(x, y, held_x, held_y, int(rng.integers(2**63 - 1)))
        networks = train(self._members(task), self.head, self.training)
        return self._fitted(task, tuple(networks))

    def _members(self, task: Task) -> list[Member]:
        plain = task.members(self.members, resampled=self.resampled)
        if not len(task.held_y):
            return plain
        return [replace(member, held=(task.held_x, task.held_y)) for member in plain]

    def _fitted(self, task: Task, networks: tuple[Network, ...]) -> HeadFit:
        return HeadFit(networks, self.head)


@final
@dataclass(frozen=True, slots=True, eq=False)
class HeadFit(NetworkFit):
    """Trained networks with one head.

    Attributes
    ----------
    head : Head
        What their outputs mean.
    """

    head: Head

    def members(self, x: FloatArray) -> list[Prediction]:
        """What each network believes at checked rows, shape (n, d), failed or not.

        Raises
        ------
        InputError
            If a row lies so far from those of training that an output is not finite.
        """
        found = outputs(self.networks, x)
        wrong = ~np.isfinite(found).all(axis=(0, 1))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                "x must not lie so far from the rows of training that outputs overflow, got "
                f"{int(wrong.sum())} rows that do (first at row {row}: "
                f"{shortened(x[row].tolist())})"
            )
        return [
            self.head.belief(values, network.scale.y_center, network.scale.y_unit)
            for values, network in zip(found, self.networks, strict=True)
        ]

    def beliefs(self, x: FloatArray) -> Beliefs:
        """What they believe together, failed or not; see `predict`."""
        parts = self.members(x)
        if len(parts) == 1:
            return Beliefs(parts[0])
        means = np.stack([part.point() for part in parts])
        center, spread = means.mean(axis=0), means.std(axis=0)
        return Beliefs(together(parts), located("norm", center, spread))

    def _beliefs(self, x: FloatArray) -> Beliefs:
        return self.beliefs(x)


def together(parts: Sequence[Prediction]) -> Prediction:
    """Several beliefs of one kind as one: the mixture of laws, the mean of quantiles.

    Raises
    ------
    InputError
        If they are neither all distributions nor all quantiles at the same levels.

    Examples
    --------
    >>> both = [Distribution.normal([m], [1.0]) for m in (0.0, 2.0)]
    >>> together(both).point()
    array([1.])
    """
    laws = [part for part in parts if isinstance(part, Distribution)]
    if parts and len(laws) == len(parts):
        return mixture(laws)
    tables = [part for part in parts if isinstance(part, Quantiles)]
    alike = len({tuple(table.levels.tolist()) for table in tables}) == 1
    if len(tables) != len(parts) or not alike:
        raise InputError("parts must be distributions, or quantiles at the same levels, got others")
    return Quantiles(tables[0].levels, np.mean([table.values for table in tables], axis=0))
