"""What a model believes of each y, and the averages of an output kernel over it.

Predictions are normal laws, mixtures, listed values, or samples.

`Draws` stands for the Monte-Carlo mode of the papers; every other prediction is exact, with no
sampling noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import Literal, Self, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, as_matrix
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.stats.kernels import RBF, Kernel, Laplacian
from howsure.stats.namespace import Array

Mode = Literal["exact", "samples"]


class PredictiveLaw(ABC):
    """A law of y for each of n rows."""

    __slots__ = ()

    @property
    def mode(self) -> Mode:
        """Whether the embedding is exact, or made of Monte-Carlo draws.

        The two give different values for one model, so they are never compared.
        """
        return "exact"

    @property
    def draws(self) -> int:
        """Monte-Carlo draws for each row; 0 in exact mode."""
        return 0

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def outputs(self) -> int:
        """Number of outputs p."""
        return int(self.atoms().mean.shape[1])

    @abstractmethod
    def atoms(self) -> Atoms:
        """All atoms, those of a row side by side."""

    def masses(self) -> FloatArray:
        """Share of all rows' probability on each atom, shape (a,); they sum to one."""
        atoms = len(self.atoms())
        return np.full(atoms, 1.0 / (atoms // len(self)) / len(self))

    @abstractmethod
    def average(self, values: FloatArray) -> FloatArray:
        """Weighted sums by row of values (a, r) of the atoms, shape (n, r)."""

    @abstractmethod
    def take(self, rows: slice) -> PredictiveLaw:
        """The prediction of some rows."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> FloatArray:
        """One draw of y for each row, shape (n, p).

        Raises
        ------
        InputError
            In samples mode: the few draws are not the law that they came from.
        """


@final
@frozen(init=False, eq=False)
class Normals(PredictiveLaw):
    """Normal laws, with independent outputs where there are several.

    Parameters
    ----------
    mean : array-like of shape (n,) or (n, p)
        In the units of y.
    sd : array-like of the same shape
        Zero or more.

    Raises
    ------
    InputError
        If the shapes differ, or a standard deviation is negative.

    Examples
    --------
    >>> len(Normals([0.0, 1.0], [1.0, 1.0]))
    2
    """

    mean: FloatArray
    sd: FloatArray

    def __init__(self, mean: npt.ArrayLike, sd: npt.ArrayLike) -> None:
        centre = as_matrix(mean, "mean")
        spread = as_matrix(sd, "sd", length=len(centre), columns=centre.shape[1])
        _refuse_negative(spread, "sd")
        object.__setattr__(self, "mean", centre)
        object.__setattr__(self, "sd", spread)

    def __len__(self) -> int:
        return len(self.mean)

    def atoms(self) -> Atoms:
        return Atoms(self.mean, self.sd)

    def average(self, values: FloatArray) -> FloatArray:
        return values

    def take(self, rows: slice) -> Normals:
        return Normals(self.mean[rows], self.sd[rows])

    def draw(self, rng: np.random.Generator) -> FloatArray:
        return self.mean + self.sd * rng.standard_normal(self.mean.shape)


@final
@frozen(init=False, eq=False)
class Mixtures(PredictiveLaw):
    """Mixtures of k normal laws of one output, such as an ensemble's.

    Parameters
    ----------
    weights : array-like of shape (n, k)
        Zero or more, each row summing to one.
    means, sds : array-like of shape (n, k)
        In the units of y.

    Raises
    ------
    InputError
        If the shapes differ, a standard deviation is negative, or weights are not
        probabilities.

    Examples
    --------
    >>> Mixtures([[0.5, 0.5]], [[-1.0, 1.0]], [[1.0, 1.0]]).atoms().mean.tolist()
    [[-1.0], [1.0]]
    """

    weights: FloatArray
    means: FloatArray
    sds: FloatArray

    def __init__(self, weights: npt.ArrayLike, means: npt.ArrayLike, sds: npt.ArrayLike) -> None:
        centres = as_matrix(means, "means")
        rows, parts = centres.shape
        spreads = as_matrix(sds, "sds", length=rows, columns=parts)
        _refuse_negative(spreads, "sds")
        shares = _probabilities(
            as_matrix(weights, "weights", length=rows, columns=parts), "weights"
        )
        object.__setattr__(self, "weights", shares)
        object.__setattr__(self, "means", centres)
        object.__setattr__(self, "sds", spreads)

    def __len__(self) -> int:
        return len(self.means)

    def atoms(self) -> Atoms:
        return Atoms(self.means.reshape(-1, 1), self.sds.reshape(-1, 1))

    def masses(self) -> FloatArray:
        return self.weights.reshape(-1) / len(self)

    def average(self, values: FloatArray) -> FloatArray:
        return _weighted_rows(self.weights, values)

    def take(self, rows: slice) -> Mixtures:
        return Mixtures(self.weights[rows], self.means[rows], self.sds[rows])

    def draw(self, rng: np.random.Generator) -> FloatArray:
        chosen = _inverse(self.weights, rng)
        mean = np.take_along_axis(self.means, chosen, axis=1)
        sd = np.take_along_axis(self.sds, chosen, axis=1)
        return mean + sd * rng.standard_normal(mean.shape)


@final
@frozen(init=False, eq=False)
class Support(PredictiveLaw):
    """Laws of one output on listed values, such as counts.

    Parameters
    ----------
    values : array-like of shape (s,) or (n, s)
        The values, shared by all rows or one set for each row.
    probabilities : array-like of shape (n, s)
        Zero or more, each row summing to one (to within 1e-6, then made exact).

    Raises
    ------
    InputError
        If the shapes differ, or rows are not probabilities.

    Examples
    --------
    >>> Support([0, 1, 2], [[0.5, 0.5, 0.0]]).draw(np.random.default_rng(0)).shape
    (1, 1)
    """

    values: FloatArray
    probabilities: FloatArray

    def __init__(self, values: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
        shares = _probabilities(as_matrix(probabilities, "probabilities"), "probabilities")
        listed = np.asarray(values)
        if listed.ndim == 2 and listed.shape[0] != 1:
            points = as_matrix(listed, "values", length=len(shares), columns=shares.shape[1])
        else:
            points = as_matrix(listed.reshape(1, -1), "values", columns=shares.shape[1])
        object.__setattr__(self, "values", points)
        object.__setattr__(self, "probabilities", shares)

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def _shared(self) -> bool:
        return len(self.values) == 1

    def atoms(self) -> Atoms:
        return Atoms(self.values.reshape(-1, 1))

    def masses(self) -> FloatArray:
        shares = self.probabilities
        return (shares.sum(axis=0) if self._shared else shares.reshape(-1)) / len(self)

    def average(self, values: FloatArray) -> FloatArray:
        if self._shared:
            return self.probabilities @ values
        return _weighted_rows(self.probabilities, values)

    def take(self, rows: slice) -> Support:
        values = self.values if self._shared else self.values[rows]
        return Support(values, self.probabilities[rows])

    def draw(self, rng: np.random.Generator) -> FloatArray:
        chosen = _inverse(self.probabilities, rng)
        values = np.broadcast_to(self.values, self.probabilities.shape)
        return np.take_along_axis(values, chosen, axis=1)


@frozen(init=False, eq=False)
class Sampled(PredictiveLaw):
    """m samples for each row, whatever they stand for: see `Empirical` and `Draws`."""

    samples: FloatArray = field(repr=False)

    def __init__(self, samples: npt.ArrayLike) -> None:
        object.__setattr__(self, "samples", _cube(samples))

    def take(self, rows: slice) -> Self:
        return type(self)(self.samples[rows])

    def __len__(self) -> int:
        return len(self.samples)

    def atoms(self) -> Atoms:
        return Atoms(self.samples.reshape(-1, self.samples.shape[2]))

    def average(self, values: FloatArray) -> FloatArray:
        rows, size, _ = self.samples.shape
        return np.asarray(values.reshape(rows, size, -1).mean(axis=1))


@final
@frozen(init=False, eq=False)
class Empirical(Sampled):
    """The empirical law of m samples a row: the samples *are* the prediction.

    Parameters
    ----------
    samples : array-like of shape (n, m) or (n, m, p)
        In the units of y.

    Raises
    ------
    InputError
        If they are not finite numbers of that shape.

    Examples
    --------
    >>> predictive = Empirical([[0.0, 1.0], [2.0, 3.0]])
    >>> predictive.average(predictive.atoms().mean).tolist()
    [[0.5], [2.5]]
    """

    def draw(self, rng: np.random.Generator) -> FloatArray:
        rows, size, _ = self.samples.shape
        return np.asarray(self.samples[np.arange(rows), rng.integers(0, size, rows)])


@final
@frozen(init=False, eq=False)
class Draws(Sampled):
    """ℓ Monte-Carlo draws a row that stand for a law, as the papers have it.

    Parameters
    ----------
    samples : array-like of shape (n,), (n, ℓ) or (n, ℓ, p)
        In the units of y.

    Raises
    ------
    InputError
        If they are not finite numbers of that shape.

    Examples
    --------
    >>> drawn = Draws([0.1, 0.9])
    >>> drawn.mode, drawn.draws
    ('samples', 1)
    """

    @property
    def mode(self) -> Mode:
        return "samples"

    @property
    def draws(self) -> int:
        return int(self.samples.shape[1])

    def draw(self, rng: np.random.Generator) -> FloatArray:
        raise InputError(
            "draws must be given for predictions in samples mode, got none: its own draws would "
            "match themselves"
        )


def _weighted_rows(weights: FloatArray, values: FloatArray) -> FloatArray:
    rows, parts = weights.shape
    return np.asarray(np.matmul(weights[:, None, :], values.reshape(rows, parts, -1))[:, 0])


def _inverse(shares: FloatArray, rng: np.random.Generator) -> IntArray:
    """One column for each row, drawn with that row's probabilities; shape (n, 1)."""
    total = np.cumsum(shares, axis=1)
    level = rng.random((len(shares), 1)) * total[:, -1:]
    return np.asarray((total <= level).sum(axis=1, keepdims=True))


def _probabilities(array: FloatArray, name: str) -> FloatArray:
    _refuse_negative(array, name)
    total = array.sum(axis=1, keepdims=True)
    wrong = np.abs(total[:, 0] - 1.0) > 1e-6
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"{name} must sum to 1 in every row, got {total[first, 0]:.6g} at row {first}"
        )
    return np.asarray(array / total)


def _refuse_negative(array: FloatArray, name: str) -> None:
    if (array < 0.0).any():
        raise InputError(f"{name} must not be negative, got {float(array.min()):g}")


def _cube(samples: npt.ArrayLike) -> FloatArray:
    array = np.asarray(samples)
    if array.ndim == 3 and array.size:
        rows = len(array)
        return as_matrix(array.reshape(rows, -1), "samples").reshape(array.shape)
    return as_matrix(array, "samples")[:, :, None]


# ---- averages of an output kernel over laws of y, in closed form ---------------------------------
# The mean embedding of a law is the average of the kernel over it. Every predictive law is a
# weighted sum of *atoms*, points or independent normal laws, whose kernel averages are known.


@frozen
class Atoms:
    """Points, or normal laws with independent outputs."""

    mean: FloatArray  # shape (a, p): points, or means
    sd: FloatArray | None = None  # shape (a, p): standard deviations; None for points

    def __len__(self) -> int:
        return len(self.mean)

    def take(self, rows: IntArray | slice) -> Atoms:
        """The atoms chosen by an index."""
        return Atoms(self.mean[rows], None if self.sd is None else self.sd[rows])

    def join(self, other: Atoms) -> Atoms:
        """These atoms, and then others."""
        mean = np.concatenate([self.mean, other.mean])
        if self.sd is None and other.sd is None:
            return Atoms(mean)
        first, second = (
            np.zeros_like(atoms.mean) if atoms.sd is None else atoms.sd for atoms in (self, other)
        )
        return Atoms(mean, np.concatenate([first, second]))


def expected_gram(kernel: Kernel, left: Atoms, right: Atoms) -> Array:
    """Average kernel E κ(Y, Y') of independent draws from every two atoms.

    The difference of two independent normal laws is N(δ, s²) with s² the sum of the variances.
    For each output, Gaussian kernel: (1+2γs²)^(-1/2) exp(−γδ²/(1+2γs²)). Laplacian kernel:
    ½e^(−δ²/2s²)[erfcx((γs²+δ)/s√2) + erfcx((γs²−δ)/s√2)]. Outputs multiply.

    Examples
    --------
    >>> law = Atoms(np.array([[0.0]]), np.array([[1.0]]))
    >>> expected_gram(RBF(0.5), law, Atoms(np.array([[0.0]])))
    array([[0.70710678]])
    """
    if left.sd is None and right.sd is None:
        return kernel.gram(left.mean, right.mean)
    average = _smoothed(kernel)
    out: FloatArray = np.ones((len(left), len(right)))
    zero = np.zeros(1)
    for output in range(left.mean.shape[1]):
        gap = left.mean[:, output, None] - right.mean[:, output]
        first = zero if left.sd is None else left.sd[:, output]
        second = zero if right.sd is None else right.sd[:, output]
        out *= average(gap, np.square(first)[:, None] + np.square(second))
    return out


def expected_diagonal(kernel: Kernel, atoms: Atoms) -> Array:
    """Squared length of every atom's embedding, E κ(Y, Y') of two draws, shape (a,)."""
    if atoms.sd is None:
        return kernel.diagonal(atoms.mean)
    average = _smoothed(kernel)
    return np.asarray(np.prod(average(np.zeros(1), 2.0 * np.square(atoms.sd)), axis=1))


def _smoothed(kernel: Kernel) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """Average of the kernel over N(gap, variance), for one output."""
    if isinstance(kernel, RBF):
        return lambda gap, variance: _smooth_rbf(kernel.gamma, gap, variance)
    if isinstance(kernel, Laplacian) and not kernel.squared:
        return lambda gap, variance: _smooth_laplacian(kernel.gamma, gap, variance)
    raise InputError(
        "output_kernel must be rbf or laplacian for the exact embedding of normal distributions, "
        f"got {kernel.describe()}; draw samples instead"
    )


def _smooth_rbf(gamma: float, gap: FloatArray, variance: FloatArray) -> FloatArray:
    widened = 1.0 + 2.0 * gamma * variance
    return np.exp(-gamma * np.square(gap) / widened) / np.sqrt(widened)


def _smooth_laplacian(gamma: float, gap: FloatArray, variance: FloatArray) -> FloatArray:
    from scipy.special import erfc, erfcx

    distance, spread = np.broadcast_arrays(np.abs(gap), variance)
    sd = np.sqrt(np.where(spread > 0.0, spread, 1.0))
    low = (gamma * spread - distance) / (sd * np.sqrt(2.0))
    high = (gamma * spread + distance) / (sd * np.sqrt(2.0))
    peak = np.exp(-0.5 * np.square(distance / sd))
    far = np.exp(np.minimum(gamma * (0.5 * gamma * spread - distance), 0.0))
    near_side = np.where(low >= 0.0, peak * erfcx(np.maximum(low, 0.0)), far * erfc(low))
    smooth: FloatArray = 0.5 * (near_side + peak * erfcx(high))
    return np.where(spread > 0.0, smooth, np.exp(-gamma * distance))
