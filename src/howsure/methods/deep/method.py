"""What the methods made of small networks share: options, and training for many data sets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.convert import Checked, Count, NonNegative, Positive
from howsure.core.errors import InputError
from howsure.methods.deep.dropout import Dropout
from howsure.methods.deep.heads import Head
from howsure.methods.deep.members import Layers, Member, Network, Training, check_sound
from howsure.methods.deep.train import train
from howsure.methods.interface import Beliefs, Fitted, Method, checked_rows, held_out

_CHUNKS: Final = 4


@final
@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One data set, before its networks are trained.

    Attributes
    ----------
    x, y : ndarray of float, shapes (n, d) and (n,)
        Rows to train on.
    held_x, held_y : ndarray of float, shapes (h, d) and (h,)
        Rows held out; none where the method needs none.
    seed : int
        Seed of all that follows.
    """

    x: FloatArray
    y: FloatArray
    held_x: FloatArray
    held_y: FloatArray
    seed: int

    def members(self, count: int, *, resampled: bool = False, twins: int = 1) -> list[Member]:
        """Networks to be trained on its rows, or on resamples, of which each serves `twins`."""
        return [
            Member(self.x, self.y, self.seed, k, k // twins if resampled else None)
            for k in range(count)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMethod(Method, Checked):
    """A method made of small networks. Subclasses are final.

    Parameters
    ----------
    layers, epochs, batch_size, learning_rate, penalty, chunk
        See `Training`.

    Raises
    ------
    InputError
        If an option breaks its rule.
    """

    layers: Layers = (40, 30, 20)
    epochs: Count = 80
    batch_size: Count = 32
    learning_rate: Positive = 1e-3
    penalty: NonNegative = 0.0
    chunk: Count = 128

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
        )

    @property
    @abstractmethod
    def networks(self) -> int:
        """How many networks a data set takes."""

    @property
    @abstractmethod
    def head(self) -> Head:
        """What outputs mean."""

    @property
    def dropout(self) -> Dropout | None:
        """What is dropped, if anything."""
        return None

    @property
    def validation_rows(self) -> float | None:
        """Rows, or the share of rows, that are held out; None for none."""
        return None

    @property
    def batch(self) -> int:
        """How many data sets fill some chunks of networks, which threads share."""
        return max(_CHUNKS * self.chunk // self.networks, 1)

    def fit(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> NetworkFit:
        """Train the networks of one data set.

        Raises
        ------
        InputError
            If a value is missing or not finite, y holds what the head does not speak of, or there
            are too few rows.
        MissingDependencyError
            If torch is not installed.
        """
        return self.fit_many([(x, y)], [rng])[0]

    def fit_many(
        self,
        data: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
        rngs: Sequence[np.random.Generator],
    ) -> list[NetworkFit]:
        """Train the networks of several data sets together.

        Raises
        ------
        InputError
            As `fit`, for any of the data sets, or if there is not one generator for each.
        MissingDependencyError
            If torch is not installed.
        """
        if len(data) != len(rngs):
            raise InputError(f"rngs must hold {len(data)} generators, got {len(rngs)}")
        tasks = [self._task(x, y, rng) for (x, y), rng in zip(data, rngs, strict=True)]
        members = [member for task in tasks for member in self._members(task)]
        networks = train(members, self.head, self.training, self.dropout)
        size = self.networks
        return [
            self._fitted(task, tuple(networks[k * size : (k + 1) * size]))
            for k, task in enumerate(tasks)
        ]

    def _members(self, task: Task) -> list[Member]:
        """The networks to train for one data set."""
        return task.members(self.networks)

    @abstractmethod
    def _fitted(self, task: Task, networks: tuple[Network, ...]) -> NetworkFit:
        """What the trained networks of one data set make."""

    def _task(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> Task:
        inputs, targets = checked_rows(x, y, least=4)
        self.head.check_targets(targets)
        held = np.zeros(len(targets), dtype=np.bool_)
        if self.validation_rows is not None:
            held = held_out(rng, len(targets), self.validation_rows, "validation")
        seed = int(rng.integers(2**63 - 1))
        return Task(inputs[~held], targets[~held], inputs[held], targets[held], seed)


@dataclass(frozen=True, slots=True, eq=False)
class NetworkFit(Fitted):
    """Trained networks of one data set. Subclasses are final.

    Attributes
    ----------
    networks : tuple of Network
        The networks, each with what it was standardised by and whether it failed.
    """

    networks: tuple[Network, ...]

    def predict(self, x: npt.ArrayLike) -> Beliefs:
        """What is believed at the rows of x, shape (n, d).

        Raises
        ------
        InputError
            If x is not a table of finite numbers with as many columns as in training.
        UnanswerableError
            If a network failed in training.
        """
        columns = len(self.networks[0].scale.x_center)
        inputs = as_matrix(x, "x", columns=columns)
        check_sound(self.networks)
        return self._beliefs(inputs)

    @abstractmethod
    def _beliefs(self, x: FloatArray) -> Beliefs:
        """What is believed at checked rows."""
