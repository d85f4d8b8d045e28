"""Networks whose dropout stays on while predicting: at a fixed rate, and at learnt rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import Bound, Count, Fraction, Positive
from howsure.core.rng import child
from howsure.methods.bootstrap import noise_left
from howsure.methods.deep.batch import Network, dropped_outputs, moments
from howsure.methods.deep.body import Bernoulli, Concrete, Dropout
from howsure.methods.deep.heads import Gaussian, SquaredError
from howsure.methods.deep.method import NetworkFit, NetworkMethod, Task, matched
from howsure.methods.interface import Beliefs

NoiseKind = Literal["predicted", "constant"]

_SETTLED: Final = 0.1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
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
    layers, epochs, batch_size, learning_rate, penalty, chunk
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

    rate: Fraction = 0.05
    drop_input: bool = False
    passes: Annotated[int, Bound(2)] = 100
    noise: NoiseKind = "predicted"
    validation: float = 0.13

    @property
    def name(self) -> str:
        """What reports call it."""
        return "MC dropout"

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

    def _fitted(self, task: Task, networks: tuple[Network, ...]) -> NetworkFit:
        fitted = _Passes(networks, self.dropout, self.passes, task.seed, self.head)
        if isinstance(self.head, Gaussian) or networks[0].failure is not None:
            return fitted
        means, _ = fitted.moments(task.held_x)
        left = noise_left(task.held_y, means.mean(axis=0), means.var(axis=0, ddof=1))
        return replace(fitted, noise=left)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
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
    layers, epochs, batch_size, learning_rate, penalty, chunk
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

    epochs: Count = 240
    drop_input: bool = False
    passes: Annotated[int, Bound(2)] = 100
    length: Positive = 1e-4
    temperature: Positive = 0.1
    start: Fraction = 0.1

    @property
    def name(self) -> str:
        """What reports call it."""
        return "concrete dropout"

    @property
    def head(self) -> Gaussian:
        """A mean and a log variance."""
        return Gaussian()

    @property
    def dropout(self) -> Concrete:
        """At learnt rates."""
        return Concrete(self.length, self.temperature, self.start, self.drop_input)

    def _fitted(self, task: Task, networks: tuple[Network, ...]) -> NetworkFit:
        return _Passes(networks, self.dropout, self.passes, task.seed, self.head)


@final
@dataclass(frozen=True, slots=True, eq=False)
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

    def _beliefs(self, x: FloatArray) -> Beliefs:
        means, variances = self.moments(x)
        return matched(means, variances + self.noise, ddof=1)
