"""Outputs as short vectors whose inner products are the output kernel.

A discrepancy of two conditional laws is a length in the space of the output kernel. Rows of
outputs and predictions are projected on the span of a few well-chosen atoms; what is left out is
measured and bounds the error. Where a kernel is too rough for a few atoms to do, the whole Gram
matrix is factored instead.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.core.classes import frozen
from howsure.core.errors import HowsureWarning
from howsure.core.progress import reported
from howsure.core.rng import child
from howsure.stats.kernels import Kernel, tiles
from howsure.stats.solvers import SolverOptions, coordinates, dense_factor, pivoted_cholesky
from howsure.topics.congruence.predictive import (
    Atoms,
    Empirical,
    PredictiveLaw,
    expected_diagonal,
    expected_gram,
)

# Atoms among which landmarks are sought at once: with 1,024 landmarks their features are 490 MB.
_MAX_CANDIDATES = 60_000
# Atoms whose features are held at once: with 1,024 landmarks, 540 MB.
_ATOMS_AT_ONCE = 65_536
# Rows with the worst residual that join the candidates in each round. By hand; not tuned.
_ROWS_ADDED = 400
# Chosen by hand; not tuned. More rounds go on where a kernel is too rough for landmarks.
_MAX_ROUNDS = 4
# Time grows with its square for every atom; four times as many are allowed where no matrix is
# held.
_MAX_RANK = 1024
# A dense matrix of 12,000 rows is 1.2 GB, within the 2 GB of a kernel matrix.
_MAX_DENSE_ROWS = 12_000
# 4 · 10¹⁰ kernel values take a minute or more of one core.
_MAX_DENSE_PAIRS = 4e10
_ROUNDING_OF_SQUARES = (
    1e-9  # of the largest squared length: a mean left out that is no longer rounding
)


@frozen
class LandmarkMap:
    """Coordinates in the span of a few atoms' embeddings."""

    kernel: Kernel  # the output kernel
    landmarks: Atoms  # the r atoms
    triangle: FloatArray  # shape (r, r): cholesky factor of the landmarks' Gram matrix

    def features(self, law: PredictiveLaw) -> tuple[FloatArray, FloatArray]:
        """Coordinates of every row, and a bound of the squared length left out."""
        features = np.empty((len(law), len(self.landmarks)))
        residual = np.empty(len(law))
        size = max(1, _ATOMS_AT_ONCE * len(law) // max(1, len(law.atoms())))
        for rows in reported(tiles(len(law), size), "outputs"):
            some_rows = law.take(rows)
            atoms = some_rows.atoms()
            cross = expected_gram(self.kernel, self.landmarks, atoms)
            values: FloatArray = coordinates(self.triangle, cross).astype(np.float64, copy=False)
            missing = expected_diagonal(self.kernel, atoms) - np.einsum("ij,ij->i", values, values)
            features[rows] = some_rows.average(values)
            residual[rows] = some_rows.average(np.maximum(missing, 0.0)[:, None])[:, 0]
        return features, residual


class OutputFactor(ABC):
    """Differences of outcomes and predictions as vectors: D with D Dᵀ the Gram of φ(yᵢ) − μᵢ."""

    __slots__ = ()

    @abstractmethod
    def difference(self, y: FloatArray) -> tuple[FloatArray, float]:
        """D for some outcomes."""

    @abstractmethod
    def exchanged(self, drawn: FloatArray, y: FloatArray, members: int) -> FloatArray:
        """D where each row's outcome has changed places with one of its own values.

        Parameters
        ----------
        drawn : ndarray of float, shape (n, p)
            Of each row, its outcome or one of its samples; an outcome stands in its place.
        y : ndarray of float, shape (n, p)
            The outcomes.
        members : int
            Samples of each row, m, of mass 1/m each.

        Returns
        -------
        ndarray of float, shape (n, r)

        Notes
        -----
        With μ the mean of the samples, the mean of the others and y is μ − (φ(drawn) − φ(y))/m.
        """


class LandmarkOutputs(OutputFactor):
    """Differences through a `LandmarkMap`."""

    __slots__ = ("_believed", "_known", "_left", "_map")

    def __init__(self, landmarks: LandmarkMap, believed: FloatArray, left: FloatArray) -> None:
        self._map = landmarks
        self._believed = believed
        self._left = left
        self._known: tuple[FloatArray, FloatArray] | None = None  # of the outcomes last asked for

    def difference(self, y: FloatArray) -> tuple[FloatArray, float]:
        outcomes, residual = self._map.features(as_law(y))
        return outcomes - self._believed, float(2.0 * np.mean(residual + self._left))

    def exchanged(self, drawn: FloatArray, y: FloatArray, members: int) -> FloatArray:
        plain = self._known[1] if self._known and self._known[0] is y else self.difference(y)[0]
        self._known = (y, plain)
        return (1.0 + 1.0 / members) * self.difference(drawn)[0] - plain / members


class DenseOutputs(OutputFactor):
    """Differences through a factor of their whole n × n Gram matrix."""

    __slots__ = ("_inner", "_kernel", "_known", "_predictive")

    def __init__(self, kernel: Kernel, predictive: PredictiveLaw) -> None:
        self._kernel = kernel
        self._predictive = predictive
        self._inner = law_gram(kernel, predictive, predictive)
        self._known: tuple[FloatArray, FloatArray] | None = None  # of the outcomes last asked for

    def difference(self, y: FloatArray) -> tuple[FloatArray, float]:
        cross = self._cross(y)
        return self._factor(self._gram(y, y, cross, cross), y)

    def exchanged(self, drawn: FloatArray, y: FloatArray, members: int) -> FloatArray:
        plain = self._known[1] if self._known and self._known[0] is y else self._cross(y)
        self._known = (y, plain)
        cross, share = self._cross(drawn), 1.0 / members
        both = self._gram(drawn, y, cross, plain)
        gram = (1.0 + share) ** 2 * self._gram(drawn, drawn, cross, cross)
        gram -= (1.0 + share) * share * (both + both.T)
        gram += share**2 * self._gram(y, y, plain, plain)
        return self._factor(gram, drawn)[0]

    def _cross(self, y: FloatArray) -> FloatArray:
        return law_gram(self._kernel, as_law(y), self._predictive)

    def _gram(
        self, first: FloatArray, second: FloatArray, cross: FloatArray, other: FloatArray
    ) -> FloatArray:
        """Inner products of two sets of differences, given those of outcomes and predictions."""
        gram: FloatArray = self._inner - cross
        gram -= other.T
        gram += self._kernel.gram(first, second)
        return gram

    def _factor(self, gram: FloatArray, y: FloatArray) -> tuple[FloatArray, float]:
        scale = max(
            float(np.abs(self._kernel.diagonal(y)).max()),
            float(np.abs(np.diagonal(self._inner)).max()),
        )
        factor, residual = dense_factor(gram, "output_kernel", scale=scale)
        return factor, residual / len(y)


def fit_outputs(
    kernel: Kernel,
    y: FloatArray,
    predictive: PredictiveLaw,
    *,
    tolerance: float,
    options: SolverOptions,
) -> tuple[OutputFactor, FloatArray, float]:
    """Choose a factor of differences of outcomes and predictions."""
    if options.method != "dense":
        # a whole Gram matrix costs atoms², of laws of counts far more than rows²
        few = max(1, min(len(predictive.atoms()) // 4, _MAX_RANK))
        limit = 4 * _MAX_RANK if options.method == "iterative" else few
        basis, features, residuals = fit_landmarks(
            kernel, [as_law(y), predictive], tolerance=tolerance / 4.0, limit=limit, options=options
        )
        residual = float(2.0 * np.mean(residuals[0] + residuals[1]))
        atoms = float(len(predictive.atoms()) + len(predictive))
        affordable = len(predictive) <= _MAX_DENSE_ROWS and atoms**2 <= _MAX_DENSE_PAIRS
        affordable = affordable and options.method != "iterative"
        if residual <= tolerance or not affordable:
            _warn_if_rough(basis, residual, tolerance)
            factor = LandmarkOutputs(basis, features[1], residuals[1])
            return factor, features[0] - features[1], residual
    dense = DenseOutputs(kernel, predictive)
    return dense, *dense.difference(y)


def fit_pair(
    kernel: Kernel,
    first: FloatArray,
    second: FloatArray,
    *,
    tolerance: float,
    options: SolverOptions,
) -> tuple[list[FloatArray], list[float]]:
    """Vectors for two samples of outcomes together, with inner products the output kernel."""
    size = len(first) + len(second)
    if options.method != "dense":
        few = max(1, min(size // 8, _MAX_RANK))
        limit = 4 * _MAX_RANK if options.method == "iterative" else few
        laws = [as_law(first), as_law(second)]
        basis, features, row_residuals = fit_landmarks(
            kernel, laws, tolerance=tolerance, limit=limit, options=options
        )
        residuals = [float(part.mean()) for part in row_residuals]
        affordable = options.method != "iterative" and size <= _MAX_DENSE_ROWS
        if max(residuals) <= tolerance or not affordable:
            _warn_if_rough(basis, max(residuals), tolerance)
            return features, residuals
    joint = np.concatenate([first, second])
    factor, residual = dense_factor(kernel.gram(joint, joint).astype(np.float64), "output_kernel")
    return [factor[: len(first)], factor[len(first) :]], [
        residual / len(first),
        residual / len(second),
    ]


def fit_landmarks(
    kernel: Kernel,
    laws: Sequence[PredictiveLaw],
    *,
    tolerance: float,
    limit: int,
    options: SolverOptions,
) -> tuple[LandmarkMap, list[FloatArray], list[FloatArray]]:
    """Choose landmarks for some laws together, and project them.

    Landmarks are pivots of a pivoted Cholesky factor of the atoms' Gram matrix. Of very many
    atoms a random part is searched, and the rows that it serves worst join until every law's
    mean residual is within the tolerance.
    """
    rng = child(options.seed, "output landmarks")
    chosen = [_candidates(rng, law) for law in laws]
    for _ in range(_MAX_ROUNDS):
        atoms = reduce(Atoms.join, (atoms for atoms, _ in chosen))
        pivoted = pivoted_cholesky(
            expected_diagonal(kernel, atoms),
            partial(_gram_row, kernel, atoms),
            tolerance=tolerance * len(laws),
            max_rank=limit,
            weights=np.concatenate([masses for _, masses in chosen]),
            name="output_kernel",
        )
        basis = LandmarkMap(kernel, atoms.take(pivoted.pivots), pivoted.triangle.astype(np.float64))
        features, residual = map(list, zip(*map(basis.features, laws), strict=True))
        behind = [left_out.mean() > tolerance for left_out in residual]
        searched = [
            len(atoms) == len(law.atoms()) for (atoms, _), law in zip(chosen, laws, strict=True)
        ]
        if not any(behind) or all(searched) or len(basis.landmarks) >= limit:
            break
        chosen = [
            _with_worst(pair, law, left_out) if late else pair
            for pair, law, left_out, late in zip(chosen, laws, residual, behind, strict=True)
        ]
    return basis, features, residual


def law_gram(kernel: Kernel, left: PredictiveLaw, right: PredictiveLaw) -> FloatArray:
    """Inner products of the mean embeddings of every two rows, shape (n, m)."""
    out = np.empty((len(left), len(right)))
    for rows in reported(tiles(len(left), _rows_of(left)), "output kernel matrix"):
        first = left.take(rows)
        atoms = first.atoms()
        for columns in tiles(len(right), _rows_of(right)):
            second = right.take(columns)
            inner = expected_gram(kernel, atoms, second.atoms()).astype(np.float64, copy=False)
            out[rows, columns] = first.average(second.average(inner.T).T)
    return out


def as_law(y: FloatArray) -> PredictiveLaw:
    """Outcomes as laws with all mass on one point."""
    return Empirical(y[:, None, :])


def _gram_row(kernel: Kernel, atoms: Atoms, row: int) -> FloatArray:
    return np.asarray(expected_gram(kernel, atoms.take(slice(row, row + 1)), atoms)[0])


def _candidates(rng: np.random.Generator, law: PredictiveLaw) -> tuple[Atoms, FloatArray]:
    atoms, masses = law.atoms(), law.masses()
    if len(atoms) <= _MAX_CANDIDATES:
        return atoms, masses
    chosen = np.sort(rng.choice(len(atoms), _MAX_CANDIDATES, replace=False, shuffle=False))
    return atoms.take(chosen), masses[chosen] / masses[chosen].sum()


def _with_worst(
    pair: tuple[Atoms, FloatArray], law: PredictiveLaw, residual: FloatArray
) -> tuple[Atoms, FloatArray]:
    worst = np.argsort(residual)[-_ROWS_ADDED:]
    atoms, masses = pair
    for row in np.sort(worst):
        row_law = law.take(slice(row, row + 1))
        atoms = atoms.join(row_law.atoms())
        masses = np.concatenate([masses, row_law.masses() / len(masses)])
    return atoms, masses


def _warn_if_rough(basis: LandmarkMap, residual: float, tolerance: float) -> None:
    scale = float(basis.triangle[0, 0]) ** 2 if len(basis.landmarks) else 0.0
    if residual > max(tolerance, _ROUNDING_OF_SQUARES * scale):
        warnings.warn(
            f"the output kernel {basis.kernel.describe()} is too rough for {len(basis.landmarks)} "
            "numbers to stand for an output, and its whole Gram matrix is too large, or was not "
            f"wanted: a mean squared length of {residual:.2g} is left out, so values may be low",
            HowsureWarning,
            stacklevel=4,
        )


def _rows_of(law: PredictiveLaw) -> int:
    """Rows whose atoms number about two thousand."""
    return max(1, 2048 * len(law) // max(1, len(law.atoms())))
