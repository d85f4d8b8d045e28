"""What the methods made of small networks share: options, training, and what members predict."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import field, fields
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix, shortened
from howsure.core.classes import frozen
from howsure.core.convert import Checked, Count, NonNegative, Positive
from howsure.core.errors import InputError
from howsure.inputs.distributions import located
from howsure.predictions import Distribution, Prediction, Quantiles, mixture
from howsure_studies.methods.deep.batch import Member, Network, outputs, train
from howsure_studies.methods.deep.heads import Gaussian, Head, PairHead, QuantileHead
from howsure_studies.methods.deep.mlp import Dropout
from howsure_studies.methods.deep.training import BatchTraining, Device, Layers, check_sound
from howsure_studies.methods.interface import Fitted, Method, Predictions, checked_rows, held_out

Combine = Literal["mixture", "moments"]

_CHUNKS: Final = 4
_TOY: Final = BatchTraining()
_OTHER_NAMES: Final = {"warm_start": "warm"}


@final
@frozen(eq=False)
class DataSet:
    """One data set, some rows perhaps held out, and the seed of all that follows."""

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


@frozen(kw_only=True)
class NetworkMethod(Method, Checked):
    """A method made of small networks, with options of `BatchTraining`. Subclasses are final."""

    layers: Layers = _TOY.layers
    epochs: Count = _TOY.epochs
    batch_size: Count = _TOY.batch_size
    learning_rate: Positive = _TOY.learning_rate
    penalty: NonNegative = _TOY.penalty
    chunk: Count = _TOY.chunk
    device: Device = field(default=_TOY.device, metadata={"later": True})

    @property
    def training(self) -> BatchTraining:
        """How the networks are trained."""
        names = [(item.name, _OTHER_NAMES.get(item.name, item.name)) for item in fields(_TOY)]
        return BatchTraining(**{k: getattr(self, own) for k, own in names if hasattr(self, own)})

    @property
    def networks(self) -> int:
        """How many networks a data set takes: the members, where there are several."""
        return 1

    @property
    def head(self) -> Head:
        """What outputs mean: a mean and a log variance, unless a method has others."""
        return Gaussian()

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
        """Train the networks of one data set; y must be what the head speaks of."""
        return self.fit_many([(x, y)], [rng])[0]

    def fit_many(
        self,
        data: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
        rngs: Sequence[np.random.Generator],
    ) -> list[NetworkFit]:
        """Train the networks of several data sets together."""
        tasks = self._tasks(data, rngs)
        members = [member for task in tasks for member in self._members(task)]
        networks = train(members, self.head, self.training, self.dropout)
        size = self.networks
        return [
            self._fitted(task, tuple(networks[k * size : (k + 1) * size]))
            for k, task in enumerate(tasks)
        ]

    def _tasks(
        self,
        data: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
        rngs: Sequence[np.random.Generator],
    ) -> list[DataSet]:
        """The data sets, checked, each with its seed."""
        if len(data) != len(rngs):
            raise InputError(f"rngs must contain {len(data)} generators, got {len(rngs)}")
        return [self._task(x, y, rng) for (x, y), rng in zip(data, rngs, strict=True)]

    def _members(self, task: DataSet) -> list[Member]:
        """The networks to train for one data set."""
        return task.members(self.networks)

    def _fitted(self, task: DataSet, networks: tuple[Network, ...]) -> NetworkFit:
        """What the trained networks of one data set make."""
        return HeadFit(networks, self.head)

    def _task(self, x: npt.ArrayLike, y: npt.ArrayLike, rng: np.random.Generator) -> DataSet:
        inputs, targets = checked_rows(x, y, least=4)
        self.head.check_targets(targets)
        validation = np.zeros(len(targets), dtype=np.bool_)
        if self.validation_rows is not None:
            validation = held_out(rng, len(targets), self.validation_rows, "validation")
        seed = int(rng.integers(2**63 - 1))
        return DataSet(
            inputs[~validation], targets[~validation], inputs[validation], targets[validation], seed
        )


@frozen(eq=False)
class NetworkFit(Fitted):
    """Trained networks of one data set. Subclasses are final."""

    networks: tuple[Network, ...]

    def predict(self, x: npt.ArrayLike) -> Predictions:
        """What is predicted at the rows of x, shape (n, d); an error if a network failed."""
        columns = len(self.networks[0].scale.x_center)
        inputs = as_matrix(x, "x", columns=columns)
        check_sound(self.networks)
        return self._predictions(inputs)

    @abstractmethod
    def _predictions(self, x: FloatArray) -> Predictions:
        """What is believed at checked rows."""


@final
@frozen(eq=False)
class HeadFit(NetworkFit):
    """Trained networks with one head.

    Attributes
    ----------
    networks : tuple of Network
        The networks, each with what it was standardised by and whether it failed.
    head : Head
        What their outputs mean.
    combine : {"mixture", "moments"}
        How several predict together: see `combined`.

    Examples
    --------
    >>> from howsure_studies.methods.deep.heads import Gaussian
    >>> HeadFit((), Gaussian()).combine
    'mixture'
    """

    head: Head
    combine: Combine = "mixture"

    def members(self, x: FloatArray) -> list[Prediction]:
        """What each network predicts at checked rows, failed or not.

        A row that lies so far from those of training that an output is not finite is refused.
        """
        answers = outputs(self.networks, x)
        wrong = ~np.isfinite(answers).all(axis=(0, 1))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                "x must not be so far from the training rows that outputs overflow, got "
                f"{int(wrong.sum())} rows that do (first at row {row}: "
                f"{shortened(x[row].tolist())})"
            )
        return [
            self.head.prediction(values, network.scale.y_center, network.scale.y_unit)
            for values, network in zip(answers, self.networks, strict=True)
        ]

    def predictions(self, x: FloatArray) -> Predictions:
        """What they predict together, failed or not; see `predict`."""
        return combined(self.members(x), self.combine)

    def _predictions(self, x: FloatArray) -> Predictions:
        return self.predictions(x)


def combined(parts: Sequence[Prediction], how: Combine = "mixture") -> Predictions:
    """What the members of an ensemble predict together; one alone speaks for itself.

    Parameters
    ----------
    parts : sequence of Prediction
        Of each member.
    how : {"mixture", "moments"}
        ``mixture``: a new y follows the mixture of the members' laws in equal parts (see
        `together`), which is what a deep ensemble is. ``moments``: it follows the normal law with
        the mixture's mean and variance, as some protocols have it.

    Returns
    -------
    Predictions
        The mean follows N(f̂, σ_ω²) in both, from the members' means, divisor M.

    Notes
    -----
    Source: Lakshminarayanan, Pritzel and Blundell 2017, who define the mixture, and approximate it
    by the normal law to compute quantiles.

    Examples
    --------
    >>> parts = [Distribution.normal([m], [1.0]) for m in (0.0, 2.0)]
    >>> for how in ("mixture", "moments"):
    ...     print(combined(parts, how).outcome.law.name, combined(parts, how).outcome.sd().round(3))
    norm+norm [1.414]
    norm [1.414]
    """
    if len(parts) == 1:
        return Predictions(parts[0])
    means = np.stack([prediction.point() for prediction in parts])
    if how == "moments":
        laws = [prediction for prediction in parts if isinstance(prediction, Distribution)]
        return matched(means, np.stack([np.square(law.sd()) for law in laws]), ddof=0)
    return Predictions(together(parts), located("norm", means.mean(axis=0), means.std(axis=0)))


def check_combine(how: Combine, head: Head) -> None:
    """Refuse to match quantiles by moments, which they do not tell."""
    if how == "moments" and isinstance(head, PairHead | QuantileHead):
        raise InputError("combine must be 'mixture' for heads of quantiles, got 'moments'")


def matched(means: FloatArray, variances: FloatArray, *, ddof: int) -> Predictions:
    """Normal laws with the moments of members or passes, (m, n); their means' divisor is m − ddof.

    Of y: variance mean(variances) + var(means); of the mean: var(means).
    """
    center, spread = means.mean(axis=0), means.var(axis=0, ddof=ddof)
    return Predictions(
        outcome=located("norm", center, np.sqrt(spread + variances.mean(axis=0))),
        mean=located("norm", center, np.sqrt(spread)),
    )


def together(parts: Sequence[Prediction]) -> Prediction:
    """Several predictions of one kind as one: the mixture of laws, the mean of quantiles.

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
    laws = [prediction for prediction in parts if isinstance(prediction, Distribution)]
    if parts and len(laws) == len(parts):
        return mixture(laws)
    tables = [prediction for prediction in parts if isinstance(prediction, Quantiles)]
    alike = len({tuple(table.levels.tolist()) for table in tables}) == 1
    if len(tables) != len(parts) or not alike:
        raise InputError("parts must be distributions, or quantiles at the same levels, got others")
    return Quantiles(tables[0].levels, np.mean([table.values for table in tables], axis=0))
