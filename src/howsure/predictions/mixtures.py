"""Mixtures of laws, such as those of an ensemble or of a mixture density network.

A mixture is a `Distribution` like any other: its family is that of its parts, written with a plus
sign (``norm+norm``), its parameters are those of the parts with their numbers, and a weight each.
`howsure.predictions.distribution.mixture` makes one of several distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from scipy.special import logsumexp

from howsure.core.arrays import FloatArray
from howsure.core.errors import InputError
from howsure.predictions.laws import Law, Parameters

# Of the sum of weights: single precision and six written digits.
_MAX_ERROR_OF_WEIGHTS = 1e-6
# Of a level, within which a cumulative probability counts as having reached it: sums of weights
# lose no more.
_LEVEL_ROUNDING = 1e-12
_MAX_BISECTIONS = 2200  # of bisection: doubles have fewer halvings between any two of them


@final
class MixtureLaw(Law):
    """The family of mixtures of k distributions, each of its own family.

    Parameters
    ----------
    parts : sequence of Law
        Families of the parts, two or more, all discrete or none.

    Raises
    ------
    InputError
        If there are fewer than two, or discrete and continuous ones.

    Notes
    -----
    Parameters are ``weight_1``, then those of the first part with ``_1``, and so on. A quantile
    lies between the least and the greatest of the parts' quantiles, and is found by bisection.

    Examples
    --------
    >>> from howsure.predictions.laws import NormalLaw
    >>> MixtureLaw([NormalLaw(), NormalLaw()]).parameters
    ('weight_1', 'loc_1', 'scale_1', 'weight_2', 'loc_2', 'scale_2')
    """

    __slots__ = ("discrete", "name", "parameters", "parts", "shapes")

    def __init__(self, parts: Sequence[Law]) -> None:
        if len(parts) < 2:
            raise InputError(f"parts must be at least 2 distributions, got {len(parts)}")
        kinds = {law.discrete for law in parts}
        self.name = "+".join(law.name for law in parts)
        if len(kinds) > 1:
            raise InputError(f"parts must be all discrete or all continuous, got {self.name}")
        self.parts = tuple(parts)
        self.discrete = kinds.pop()
        self.parameters = tuple(
            f"{name}_{number}"
            for number, law in enumerate(parts, 1)
            for name in ("weight", *law.parameters)
        )
        self.shapes = tuple(
            f"{name}_{number}" for number, law in enumerate(parts, 1) for name in law.shapes
        )

    def check(self, parameters: Parameters) -> None:
        """Raise `InputError` where weights are no probabilities, or a part leaves its domain."""
        weights = self._weights(parameters)
        total = sum(weights)
        wrong = np.min(weights, axis=0) < 0.0
        wrong |= np.abs(total - 1.0) > _MAX_ERROR_OF_WEIGHTS
        if wrong.any():
            row = int(np.argmax(wrong))
            shown = ", ".join(f"{weight[row]:g}" for weight in weights)
            raise InputError(
                f"weights of {self.name} must be at least 0 and sum to 1 in each row; "
                f"{int(wrong.sum())} rows do not (first at row {row}: {shown})"
            )
        for law, _, numbers in self.split(parameters):
            law.check(numbers)

    def check_outcomes(self, y: FloatArray, parameters: Parameters) -> None:
        """Raise `InputError` where a y is none that a part speaks of."""
        for law, _, numbers in self.split(parameters):
            law.check_outcomes(y, numbers)

    def cdf(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """P(Y ≤ y): the weighted mean of the parts'."""
        total = sum(weight * law.cdf(y, numbers) for law, weight, numbers in self.split(parameters))
        return np.asarray(np.minimum(total, 1.0))

    def log_density(self, y: FloatArray, parameters: Parameters) -> FloatArray:
        """Log of the weighted mean of the parts' densities."""
        with np.errstate(divide="ignore"):  # a weight of zero
            terms = [
                np.log(weight) + law.log_density(y, numbers)
                for law, weight, numbers in self.split(parameters)
            ]
            return np.asarray(logsumexp(np.stack(np.broadcast_arrays(*terms)), axis=0))

    def quantile(self, level: FloatArray, parameters: Parameters) -> FloatArray:
        """Smallest y with P(Y ≤ y) ≥ level, to the last bit or nearly so."""
        components = self.split(parameters)
        ends = np.stack([law.quantile(level, numbers) for law, _, numbers in components])
        used = np.stack(np.broadcast_arrays(*self._weights(parameters), ends[0])[:-1]) > 0.0
        low = np.where(used, ends, np.inf).min(axis=0)
        high = np.where(used, ends, -np.inf).max(axis=0)
        reached = level - _LEVEL_ROUNDING * np.minimum(level, 1.0 - level)
        if self.discrete:
            low = low - 1.0
        for _ in range(_MAX_BISECTIONS):
            middle = 0.5 * low + 0.5 * high
            if self.discrete:
                middle = np.floor(middle)
            open_ = (middle > low) & (middle < high)
            if not open_.any():
                break
            enough = self.cdf(middle, parameters) >= reached
            high = np.where(open_ & enough, middle, high)
            low = np.where(open_ & ~enough, middle, low)
        return np.asarray(high)

    def mean(self, parameters: Parameters) -> FloatArray:
        """Weighted mean of the parts' means."""
        means = [law.mean(numbers) for law, _, numbers in self.split(parameters)]
        return _average(self._weights(parameters), means)

    def sd(self, parameters: Parameters) -> FloatArray:
        """Root of the mean variance within parts and the variance of their means."""
        components, weights = self.split(parameters), self._weights(parameters)
        center = self.mean(parameters)
        spread = [
            np.square(law.sd(numbers)) + np.square(law.mean(numbers) - center)
            for law, _, numbers in components
        ]
        return np.asarray(np.sqrt(_average(weights, spread)))

    def sample(self, rng: np.random.Generator, size: int, parameters: Parameters) -> FloatArray:
        """Draws, shape (n, size): a part by its weight, then a draw from it."""
        weights = np.stack(self._weights(parameters), axis=1)
        total = np.cumsum(weights, axis=1)
        level = rng.random((len(weights), size)) * total[:, -1:]
        chosen = (total[:, None, :] <= level[:, :, None]).sum(axis=2)
        drawn = np.empty((len(weights), size))
        for number, (law, _, numbers) in enumerate(self.split(parameters)):
            here = chosen == number
            drawn[here] = law.sample(rng, size, numbers)[here]
        return drawn

    def split(self, parameters: Parameters) -> list[tuple[Law, FloatArray, Parameters]]:
        """Each part's family, weights, shape (n,), and parameters under the part's own names."""
        return [
            (law, weight, {name: parameters[f"{name}_{number}"] for name in law.parameters})
            for number, (law, weight) in enumerate(
                zip(self.parts, self._weights(parameters), strict=True), 1
            )
        ]

    def _weights(self, parameters: Parameters) -> list[FloatArray]:
        return [parameters[f"weight_{number}"] for number in range(1, len(self.parts) + 1)]


def _average(weights: list[FloatArray], values: list[FloatArray]) -> FloatArray:
    """Σ w v, where a weight of zero silences even an infinite value."""
    terms = [
        np.where(weight > 0.0, weight * np.where(weight > 0.0, value, 0.0), 0.0)
        for weight, value in zip(weights, values, strict=True)
    ]
    return np.asarray(sum(terms))
