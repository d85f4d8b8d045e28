"""Methods made of small networks: alone, as ensembles, as a bootstrap, and by passes of dropout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, Final, Literal, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.convert import Bound, Count, Coverages, Fraction, NonNegative, Positive
from howsure.core.rng import child
from howsure.predictions.base import tail_levels
from howsure_studies.methods.bootstrap import (
    Convention,
    Spread,
    check_members,
    degrees_of_freedom,
    mean_and_variance,
    noise_left,
    parametric_laws,
    t_laws,
)
from howsure_studies.methods.deep.batch import (
    Member,
    Network,
    dropped_outputs,
    moments,
    outputs,
    train,
)
from howsure_studies.methods.deep.heads import Gaussian, QuantileHead, SquaredError, head_named
from howsure_studies.methods.deep.method import (
    Combine,
    DataSet,
    HeadFit,
    NetworkFit,
    NetworkMethod,
    check_combine,
    matched,
)
from howsure_studies.methods.deep.mlp import Bernoulli, Concrete, Dropout
from howsure_studies.methods.deep.training import (
    TABLES,
    Initial,
    Keep,
    Layers,
    Schedule,
    check_sound,
)
from howsure_studies.methods.interface import COVERAGES, Predictions, checked_rows

NoiseKind = Literal["predicted", "constant"]

_SETTLED: Final = 0.1


@final
@frozen(kw_only=True)
class MeanVarianceNetwork(NetworkMethod):
    """One network with two outputs, the mean and the log variance: normal laws of a new y.

    It does not tell the mean's uncertainty from the noise: no confidence intervals.

    Parameters
    ----------
    layers, epochs, batch_size, learning_rate, penalty, chunk, device
        See `BatchTraining`.

    Notes
    -----
    Source: Nix and Weigend 1994.

    Examples
    --------
    >>> MeanVarianceNetwork(chunk=100).batch
    400
    """

    name: ClassVar[str] = "mean–variance network"


@final
@frozen(kw_only=True)
class DeepEnsemble(NetworkMethod):
    """Mean–variance networks that differ by their first weights and order of rows.

    Parameters
    ----------
    members : int
        M, at least 2.
    resampled : bool
        Whether each is trained on its own resample of the rows.
    combine : {"mixture", "moments"}
        A new y follows the mixture of the members' laws, or the normal law with its moments; see
        `combined`.
    layers, epochs, batch_size, learning_rate, penalty, chunk, device
        See `BatchTraining`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    f̂ = mean of the μ_m; σ² = mean of the σ_m²; σ_ω² = mean of (μ_m − f̂)², divisor M. With
    ``moments`` a new y is N(f̂, σ² + σ_ω²); the mean is N(f̂, σ_ω²) in both, which without
    resampling holds the randomness of training alone. Source: Lakshminarayanan, Pritzel and
    Blundell 2017, without adversarial training.

    Examples
    --------
    >>> DeepEnsemble(members=8).batch
    64
    """

    members: Annotated[int, Bound(2)] = 5
    resampled: bool = False
    combine: Combine = "mixture"

    @property
    def name(self) -> str:
        return "bootstrapped deep ensemble" if self.resampled else "deep ensemble"

    @property
    def networks(self) -> int:
        return self.members

    def _members(self, task: DataSet) -> list[Member]:
        return task.members(self.members, resampled=self.resampled)

    def _fitted(self, task: DataSet, networks: tuple[Network, ...]) -> HeadFit:
        return HeadFit(networks, self.head, self.combine)


@final
@frozen(kw_only=True)
class QuantileNetwork(NetworkMethod):
    """One network with one output a quantile, by the pinball loss; crossing ones are sorted.

    Parameters
    ----------
    coverages : tuple of float
        The coverages of its central intervals.
    layers, epochs, batch_size, learning_rate, penalty, chunk, device
        See `BatchTraining`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Examples
    --------
    >>> QuantileNetwork(coverages=(0.8, 0.5)).head.levels
    (0.1, 0.25, 0.75, 0.9)
    """

    name: ClassVar[str] = "quantile network"
    coverages: Coverages = COVERAGES

    @property
    def fixed_coverages(self) -> tuple[float, ...]:
        return self.coverages

    @property
    def head(self) -> QuantileHead:
        """One output a level that bounds an interval."""
        return QuantileHead(tuple(sorted({p for c in self.coverages for p in tail_levels(c)})))


@final
@frozen(kw_only=True)
class HeadNetwork(NetworkMethod):
    """Networks with a head of any kind; several make a mixture of their laws, a deep ensemble.

    Parameters
    ----------
    head : str, mapping or Head
        A name of `howsure_studies.methods.deep.heads.HEADS`, a mapping of ``name`` and options, or
        a head.
    members : int
        Networks that differ by their first weights and order of rows, at least 1.
    resampled : bool
        Whether each is trained on its own resample of the rows.
    validation : int or float, optional
        Rows, or the share of rows, held out to choose the epoch that is kept.
    combine : {"mixture", "moments"}
        How members predict together: see `combined`.
    layers, epochs, batch_size, learning_rate, penalty, chunk, device
        See `BatchTraining`, as the next; defaults are its preset `TABLES`.
    weight_decay, schedule, keep, initial, warm, standardise
        ``warm`` is its ``warm_start``.

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
    layers: Layers = TABLES.layers
    epochs: Count = TABLES.epochs
    weight_decay: NonNegative = TABLES.weight_decay
    schedule: Schedule = TABLES.schedule
    keep: Keep = TABLES.keep
    initial: Initial = TABLES.initial
    warm: bool = TABLES.warm_start
    standardise: bool = TABLES.standardise
    combine: Combine = field(default="mixture", metadata={"later": True})

    def __post_init__(self) -> None:
        NetworkMethod.__post_init__(self)
        object.__setattr__(self, "head", head_named(self.head))
        self.training.check_held(self.validation, "validation is None")
        check_combine(self.combine, self.head)

    @property
    def name(self) -> str:
        kind = "network" if self.members == 1 else "deep ensemble"
        return f"{'bootstrapped ' * self.resampled}{self.head.title} {kind}"

    @property
    def networks(self) -> int:
        return self.members

    @property
    def fixed_coverages(self) -> tuple[float, ...] | None:
        """The coverages that the levels of a head of quantiles bound; None for other heads."""
        fixed: tuple[float, ...] | None = self.head.fixed_coverages
        return fixed

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
        """Train on one data set beside rows held out by choice; if None, as `fit` has it."""
        if held is None:
            task = self._task(data[0], data[1], rng)
        else:
            x, y = checked_rows(data[0], data[1], least=4)
            held_x, held_y = checked_rows(held[0], held[1], least=1)
            held_x = as_matrix(held_x, "held", columns=x.shape[1])
            task = DataSet(x, y, held_x, held_y, int(rng.integers(2**63 - 1)))
        networks = train(self._members(task), self.head, self.training)
        return self._fitted(task, tuple(networks))

    def _members(self, task: DataSet) -> list[Member]:
        plain = task.members(self.members, resampled=self.resampled)
        if not len(task.held_y):
            return plain
        return [replace(member, held=(task.held_x, task.held_y)) for member in plain]

    def _fitted(self, task: DataSet, networks: tuple[Network, ...]) -> HeadFit:
        return HeadFit(networks, self.head, self.combine)


@final
@frozen(kw_only=True)
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
    layers, epochs, batch_size, learning_rate, penalty, chunk, device
        See `BatchTraining`.

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

    name: ClassVar[str] = "network bootstrap"
    members: int = 50
    validation: float = 0.13
    convention: Convention = "paper"
    spread: Spread = "member"

    def __post_init__(self) -> None:
        NetworkMethod.__post_init__(self)
        check_members(self.members, self.spread)

    @property
    def networks(self) -> int:
        return self.members

    @property
    def head(self) -> SquaredError:
        """The mean alone."""
        return SquaredError()

    @property
    def validation_rows(self) -> float:
        """Rows, or the share of rows, that are held out."""
        return self.validation

    def _members(self, task: DataSet) -> list[Member]:
        twins = 2 if self.spread == "mean" else 1
        return task.members(self.members, resampled=True, twins=twins)

    def _fitted(self, task: DataSet, networks: tuple[Network, ...]) -> NetworkFit:
        fitted = _Bootstrap(networks, self, float("nan"))
        if any(network.failure is not None for network in networks):
            return fitted
        return replace(fitted, noise=noise_left(task.held_y, *fitted.center(task.held_x)))


@final
@frozen(eq=False)
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

    def _predictions(self, x: FloatArray) -> Predictions:
        df = degrees_of_freedom(self.method.members, self.method.convention, self.method.spread)
        return t_laws(*self.center(x), self.noise, df)


@final
@frozen(kw_only=True)
class ParametricBootstrap(NetworkMethod):
    """A deep ensemble whose members are trained again on y drawn from what they learnt.

    How far the second training leads from the first is what the randomness of the data does; how
    far members lie apart is what that of training does. The naive bootstrap, which resamples
    rows, mixes both: see `NetworkBootstrap`, and `DeepEnsemble` with ``resampled``.

    Parameters
    ----------
    members : int
        M, at least 2.
    repeated : float
        The share of the epochs, up to 1, that the second training repeats; 0.3 in the authors'
        code.
    layers, epochs, batch_size, learning_rate, penalty, chunk, device
        See `BatchTraining`. Adam begins anew with the last ``repeated`` of the epochs.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    Mean–variance networks (f_m, σ_m²), m = 1 … M, are trained on all rows. From where member m
    stood before the last epochs it is trained once more, in the same order, on the same x and
    y* ~ N(f_m(x), σ_m²(x)), to f*_m. With f̂ = mean f_m, σ_ω² = mean (f_m − f*_m)² + s²/M, where
    s² is the variance of the f_m, divisor M − 1: the mean follows f̂ ± t_{M−1} σ_ω. A new y adds
    noise of variance mean σ_m²; its law is Student's t with the variance σ_ω² + mean σ_m² in
    place of the scale's square, and Satterthwaite's degrees of freedom,
    (M − 1)(1 + mean σ_m²/σ_ω²)². The first term of σ_ω² is the variance of one member. Where
    members answer the same noise each in its own way, that of their mean is smaller, and the
    confidence intervals are too wide; lines answer alike, and theirs are exact. Source:
    Sluijterman, Cator and Heskes, arXiv 2202.10903, and their code, which draws new y from the
    sum of the two laws.

    Examples
    --------
    >>> ParametricBootstrap(members=4).batch
    128
    """

    name: ClassVar[str] = "parametric bootstrap"
    members: Annotated[int, Bound(2)] = 5
    repeated: Annotated[float, Bound(0.0, 1.0, "(]")] = 0.3

    @property
    def networks(self) -> int:
        return self.members

    def fit_many(
        self,
        data: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
        rngs: Sequence[np.random.Generator],
    ) -> list[NetworkFit]:
        """Train the networks of several data sets together, and the last part of it again."""
        members = [m for task in self._tasks(data, rngs) for m in self._members(task)]
        last = max(round(self.repeated * self.epochs), 1)
        if last < self.epochs:
            options = replace(self.training, epochs=self.epochs - last)
            early = train(members, self.head, options)
            members = [replace(m, begin=n) for m, n in zip(members, early, strict=True)]
        options = replace(self.training, epochs=last)
        first = train(members, self.head, options)
        drawn = [_redrawn(m, n) for m, n in zip(members, first, strict=True)]
        again = train(drawn, self.head, options)
        size = self.members
        ends = [slice(k, k + size) for k in range(0, len(members), size)]
        return [_Parametric(tuple(first[own]), tuple(again[own])) for own in ends]


def _redrawn(member: Member, network: Network) -> Member:
    """A member with y drawn from its network's laws at its rows; as it is where that failed."""
    if network.failure is not None:
        return member
    (mean,), (variance,) = moments([network], Gaussian(), outputs([network], member.x))
    noise = child(member.seed, "targets", member.index).normal(size=len(mean))
    return replace(member, y=mean + np.sqrt(variance) * noise)


@final
@frozen(eq=False)
class _Parametric(NetworkFit):
    again: tuple[Network, ...]  # the same members, trained on what they drew

    def moments(self, networks: Sequence[Network], x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances of y by each of some networks, shape (m, n)."""
        return moments(networks, Gaussian(), outputs(networks, x))

    def _predictions(self, x: FloatArray) -> Predictions:
        check_sound(self.again)
        first, noise = self.moments(self.networks, x)
        second, _ = self.moments(self.again, x)
        return parametric_laws(first, second, noise)


@final
@frozen(kw_only=True)
class MCDropout(NetworkMethod):
    """One network with dropout at a fixed rate, kept on while predicting.

    Parameters
    ----------
    rate : float
        The probability that a unit is dropped, in (0, 1).
    drop_input : bool
        Whether x is dropped too.
    passes : int
        B, stochastic passes of a prediction, at least 2.
    noise : {"predicted", "constant"}
        ``predicted``: the network gives a log variance at each x. ``constant``: it gives the mean
        alone, and the noise is learnt from rows held out.
    validation : int or float
        Rows, or the share of rows, held out where the noise is constant.
    layers, epochs, batch_size, learning_rate, penalty, chunk, device
        See `BatchTraining`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    f̂ = mean over passes of μ_b; σ_ω² = their variance, divisor B − 1; σ² = mean of the σ_b², or
    mean over held-out rows of max((y − f̂)² − σ_ω², 0). A new y: N(f̂, σ_ω² + σ²); the mean:
    N(f̂, σ_ω²). Source: Gal and Ghahramani 2016, with σ² where they have 1/τ.

    Examples
    --------
    >>> MCDropout(rate=0.1, drop_input=True).dropout
    Bernoulli(rate=0.1, drop_input=True)
    """

    name: ClassVar[str] = "MC dropout"
    rate: Fraction = 0.05
    drop_input: bool = False
    passes: Annotated[int, Bound(2)] = 100
    noise: NoiseKind = "predicted"
    validation: float = 0.13

    @property
    def head(self) -> Gaussian | SquaredError:
        """A mean, with a log variance where the noise is predicted."""
        return Gaussian() if self.noise == "predicted" else SquaredError()

    @property
    def dropout(self) -> Bernoulli:
        """At the fixed rate."""
        return Bernoulli(self.rate, self.drop_input)

    @property
    def validation_rows(self) -> float | None:
        """Rows, or the share of rows, that are held out where the noise is constant."""
        return self.validation if self.noise == "constant" else None

    def _fitted(self, task: DataSet, networks: tuple[Network, ...]) -> NetworkFit:
        fitted = _Passes(networks, self.dropout, self.passes, task.seed, self.head)
        if isinstance(self.head, Gaussian) or networks[0].failure is not None:
            return fitted
        means, _ = fitted.moments(task.held_x)
        left = noise_left(task.held_y, means.mean(axis=0), means.var(axis=0, ddof=1))
        return replace(fitted, noise=left)


@final
@frozen(kw_only=True)
class ConcreteDropout(NetworkMethod):
    """One mean–variance network with a learnt rate of dropout a layer, kept on while predicting.

    Parameters
    ----------
    drop_input : bool
        Whether x is dropped too, as the authors' code does.
    passes : int
        B, stochastic passes of a prediction, at least 2.
    length : float
        The prior's length scale.
    temperature : float
        Of the concrete law.
    start : float
        The first rate of each layer.
    layers, epochs, batch_size, learning_rate, penalty, chunk, device
        See `BatchTraining`.

    Raises
    ------
    InputError
        If an option breaks its rule.

    Notes
    -----
    See `Concrete` for the rates, `MCDropout` for the laws. Source: Gal, Hron and Kendall 2017;
    Sluijterman, Cator and Heskes, arXiv 2106.03395, Algorithm 2. That paper states 80 epochs, at
    which the rates of its toy networks are still falling from 0.1 and intervals come out too
    wide; the authors' later code trains three times as long, which with x left undropped is the
    default here. That is a choice, not an end: rates of the toy networks fall as long as training
    lasts (near 0.01 after 240 epochs, 0.004 after 480, 0.001 after 960), and with them the
    confidence intervals. `rates` and `settled` of what is fitted show it.

    Examples
    --------
    >>> ConcreteDropout().epochs, ConcreteDropout(epochs=80, drop_input=True).dropout.drop_input
    (240, True)
    """

    name: ClassVar[str] = "concrete dropout"
    epochs: Count = 240
    drop_input: bool = False
    passes: Annotated[int, Bound(2)] = 100
    length: Positive = 1e-4
    temperature: Positive = 0.1
    start: Fraction = 0.1

    @property
    def dropout(self) -> Concrete:
        """At learnt rates."""
        return Concrete(self.length, self.temperature, self.start, self.drop_input)

    def _fitted(self, task: DataSet, networks: tuple[Network, ...]) -> NetworkFit:
        return _Passes(networks, self.dropout, self.passes, task.seed, Gaussian())


@final
@frozen(eq=False)
class _Passes(NetworkFit):
    """One network, predicting by passes with dropout."""

    options: Dropout
    passes: int
    seed: int
    head: Gaussian | SquaredError
    noise: float = 0.0

    @property
    def rates(self) -> FloatArray:
        """Learnt rates after each epoch; no columns where the rate is fixed."""
        return self.networks[0].rates

    @property
    def settled(self) -> bool:
        """Whether each learnt rate changed by less than a tenth in the last tenth of training."""
        early = self.rates[-1 - max(len(self.rates) // 10, 1)] if len(self.rates) > 1 else np.inf
        return bool((np.abs(self.rates[-1] - early) < _SETTLED * self.rates[-1]).all())

    def moments(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means and variances of y in each pass, shape (passes, n)."""
        rng = child(self.seed, "passes")
        values = dropped_outputs(self.networks[0], x, self.options, rng, self.passes)
        return moments(self.networks, self.head, values)

    def _predictions(self, x: FloatArray) -> Predictions:
        means, variances = self.moments(x)
        return matched(means, variances + self.noise, ddof=1)
