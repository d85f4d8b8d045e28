"""Worlds of the congruence studies: laws of y given x that are known in full.

The normal laws of the behaviour study, the discrete wave, and the exact distance between a
belief and a known law, which conditional congruence errors estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.convert import Positive, checked
from howsure.core.errors import InputError
from howsure.core.rng import child
from howsure.metrics.congruence import Belief, Mixtures, Normals, Support
from howsure.predictions import Distribution
from howsure.predictions.counts import ConwayMaxwellPoisson
from howsure.predictions.laws import Law, Parameters

TAU: Final = 2.0 * np.pi
TOP: Final = 30.0
_TINY: Final = 1e-9
_CELLS: Final = 4_000_000


@final
@dataclass(frozen=True, slots=True)
class NormalWorld:
    """Normal laws of y given a number x.

    Attributes
    ----------
    mean, sd : callable
        Of arrays x of shape (n,), with values of shape (n,).

    Examples
    --------
    >>> world = NormalWorld(np.cos, always(0.5))
    >>> world.law(np.zeros(2)).sd()
    array([0.5, 0.5])
    """

    mean: Callable[[FloatArray], FloatArray]
    sd: Callable[[FloatArray], FloatArray]

    def pairs(
        self, rng: np.random.Generator, rows: int, low: float, high: float
    ) -> tuple[FloatArray, FloatArray]:
        """Pairs (x, y), each of shape (rows,), with x uniform between two ends."""
        x = rng.uniform(low, high, rows)
        return x, self.mean(x) + self.sd(x) * rng.standard_normal(rows)

    def belief(self, x: FloatArray) -> Normals:
        """The laws at x as a belief that embeds exactly."""
        return Normals(self.mean(x), self.sd(x))

    def law(self, x: FloatArray) -> Distribution:
        """The laws at x."""
        return Distribution.normal(self.mean(x), self.sd(x))


def always(value: float) -> Callable[[FloatArray], FloatArray]:
    """The same value at every x.

    Examples
    --------
    >>> always(2.0)(np.zeros(2))
    array([2., 2.])
    """
    return lambda x: np.full_like(x, value)


def swelling(factor: float) -> Callable[[FloatArray], FloatArray]:
    """A multiple of √x, with x at least 0.2.

    Examples
    --------
    >>> swelling(2.0)(np.array([4.0]))
    array([4.])
    """
    return lambda x: factor * np.sqrt(np.maximum(x, 0.2))


@final
class FallingCounts(Law):
    """Laws of top − K, K a Conway–Maxwell–Poisson count: p(k) ∝ (μᵏ/k!)^ν.

    Parameters of a law: ``mu`` (0 or more), ``nu`` (above 0) and ``top`` (whole).

    Examples
    --------
    >>> at = {"mu": np.array([4.0]), "nu": np.array([1.0]), "top": np.array([30.0])}
    >>> FallingCounts().mean(at)
    array([26.])
    """

    __slots__ = ()
    name = "falling_counts"
    discrete = True
    parameters = ("mu", "nu", "top")

    def check(self, parameters: Parameters) -> None:
        """Raise `InputError` where a parameter leaves its domain."""
        if (parameters["top"] != np.floor(parameters["top"])).any():
            raise InputError(f"top must be whole, got {parameters['top']}")
        self._law(parameters)

    def cdf(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """P(Y ≤ y)."""
        k, law = self._below(y, parameters)
        return np.asarray(1.0 - law.cdf(np.ravel(np.ceil(k)) - 1.0).reshape(k.shape))

    def quantile(self, level: FloatArray, parameters: Parameters) -> FloatArray:
        """Smallest y with P(Y ≤ y) ≥ level."""
        # y = top − k with k the largest that leaves P(K < k) ≤ 1 − level.
        law = self._law(parameters)
        found = law.quantile(1.0 - level)
        kept = law.cdf(found) <= 1.0 - level
        return np.asarray(parameters["top"] - found - kept)

    def log_density(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """Log probability; −∞ where y cannot be."""
        k, law = self._below(y, parameters)
        return np.asarray(law.log_pmf(np.ravel(k)).reshape(k.shape))

    def mean(self, parameters: Parameters) -> FloatArray:
        """Expected value."""
        return np.asarray(parameters["top"] - self._law(parameters).mean())

    def sd(self, parameters: Parameters) -> FloatArray:
        """Standard deviation."""
        return np.asarray(np.sqrt(self._law(parameters).variance()))

    def sample(self, rng: np.random.Generator, size: int, parameters: Parameters) -> FloatArray:
        """Draws, shape (n, size)."""
        return np.asarray(parameters["top"][:, None] - self._law(parameters).sample(rng, size))

    @staticmethod
    def _law(parameters: Parameters) -> ConwayMaxwellPoisson:
        mu, nu = np.broadcast_arrays(parameters["mu"], parameters["nu"])
        return ConwayMaxwellPoisson(np.ravel(mu), np.ravel(nu))

    def _below(
        self, y: FloatArray, parameters: Parameters
    ) -> tuple[FloatArray, ConwayMaxwellPoisson]:
        """What is left to the top, and one law for each number of it."""
        y, mu, nu, top = np.broadcast_arrays(
            y, parameters["mu"], parameters["nu"], parameters["top"]
        )
        return np.asarray(top - y), self._law({"mu": mu, "nu": nu})


def wave_law(x: FloatArray) -> Distribution:
    """The law of y on the discrete wave: 30 − K, p(k) ∝ (λᵏ/k!)⁵ with λ = 10 sin x + 10.

    Parameters
    ----------
    x : ndarray of float, shape (n,) or (n, 1)
        Inputs.

    Returns
    -------
    Distribution
        Its variance is about a fifth of a Poisson law's.

    Examples
    --------
    >>> wave_law(np.array([1.5 * np.pi])).point()
    array([30.])
    """
    rate = np.maximum(10.0 * np.sin(np.ravel(x)) + 10.0, _TINY)
    return Distribution(FallingCounts(), {"mu": rate, "nu": 5.0, "top": TOP})


def draw_wave(seed: int, rows: int) -> tuple[FloatArray, FloatArray, np.random.Generator]:
    """Inputs uniform on (0, 2π) and outcomes of the discrete wave, and the generator after them.

    Examples
    --------
    >>> x, y, _ = draw_wave(0, 5)
    >>> bool((y <= 30).all()), x.shape
    (True, (5,))
    """
    rng = child(seed, "discrete wave")
    x = rng.uniform(0.0, TAU, rows)
    return x, wave_law(x).sample(rng, 1)[:, 0], rng


def law_distance(first: Belief, second: Belief, gamma: float) -> FloatArray:
    """Exact distance of two laws of one y in each row, in the space of a Gaussian kernel.

    ‖μ₁ − μ₂‖ with μ the mean embedding of a law under κ(a, b) = exp(−γ(a − b)²): the quantity
    that a conditional congruence error estimates, when λ falls to 0 and the reference grows.

    Parameters
    ----------
    first, second : Normals, Mixtures or Support
        Laws of n rows.
    gamma : float
        γ, above 0.

    Returns
    -------
    ndarray of float, shape (n,)
        0 for equal laws; below √2.

    Raises
    ------
    InputError
        If γ is not above 0, lengths differ, or a belief is of another kind.

    Examples
    --------
    >>> law_distance(Normals([0.0], [0.0]), Normals([1.0], [0.0]), 0.5).round(4)
    array([0.8871])
    """
    checked(gamma, Positive, "gamma")
    if len(first) != len(second):
        raise InputError(f"second must have {len(first)} rows, got {len(second)}")
    one, two = _atoms(first), _atoms(second)
    mean, spread = (np.concatenate(pair, axis=1) for pair in zip(one[:2], two[:2], strict=True))
    weight = np.concatenate([one[2], -two[2]], axis=1)
    squares = np.empty(len(mean))
    step = max(1, _CELLS // mean.shape[1] ** 2)
    for start in range(0, len(mean), step):
        rows = slice(start, start + step)
        gap = mean[rows, :, None] - mean[rows, None, :]
        wide = 1.0 + 2.0 * gamma * (spread[rows, :, None] ** 2 + spread[rows, None, :] ** 2)
        kernel = np.exp(-gamma * gap**2 / wide) / np.sqrt(wide)
        squares[rows] = np.einsum("ia,iab,ib->i", weight[rows], kernel, weight[rows])
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)))


def _atoms(belief: Belief) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means, sds and weights of what each row's law is made of, each of shape (n, a)."""
    if isinstance(belief, Normals) and belief.outputs == 1:
        return belief.mean, belief.sd, np.ones_like(belief.mean)
    if isinstance(belief, Mixtures):
        return belief.means, belief.sds, belief.weights
    if isinstance(belief, Support):
        values = np.broadcast_to(belief.values, belief.probabilities.shape)
        return values, np.zeros(values.shape), belief.probabilities
    raise InputError(
        f"belief must be Normals of one output, Mixtures or Support, got {type(belief).__name__}"
    )
