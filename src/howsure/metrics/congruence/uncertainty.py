"""Mean conditional congruence error with its two uncertainties: Monte-Carlo and data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.brief import brief_repr
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.progress import reported
from howsure.core.rng import child
from howsure.metrics.congruence.beliefs import Belief, Mode
from howsure.metrics.congruence.outputs import fit_outputs
from howsure.metrics.congruence.reference import CongruenceReference, checked_belief
from howsure.metrics.congruence.smoothing import largest_kernel, lengths
from howsure.stats.namespace import Array
from howsure.stats.ridge import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanCCE:
    """Mean error over evaluation points, and how much it varies.

    Attributes
    ----------
    mean : float
        On the data as they are, averaged over Monte-Carlo repeats.
    monte_carlo_sd : float
        Standard deviation over repeats of the Monte-Carlo draws on the data as they are; 0 in
        exact mode, NaN with a single set of draws.
    data_sd : float
        Standard deviation over bootstrap samples (and repeats within): the standard error.
    coefficient_of_variation : float
        data_sd / mean.
    mode : {"exact", "samples"}
        How beliefs were embedded.
    repeats : ndarray of float, shape (K,)
        Mean errors on the data as they are, one for each set of draws.
    bootstraps : ndarray of float, shape (B, K)
        Mean errors on the bootstrap samples.
    """

    mean: float
    monte_carlo_sd: float
    data_sd: float
    coefficient_of_variation: float
    mode: Mode
    repeats: FloatArray
    bootstraps: FloatArray

    __repr__ = brief_repr


def mean_cce(
    reference: CongruenceReference,
    grid: npt.ArrayLike | None = None,
    *,
    repeats: Sequence[Belief] = (),
    bootstraps: int = 10,
    seed: int = 0,
) -> MeanCCE:
    """Mean conditional congruence error with its Monte-Carlo and data uncertainty.

    Parameters
    ----------
    reference : CongruenceReference
        Fitted on labelled rows.
    grid : array-like of shape (g, d), optional
        Where to evaluate; by default the reference inputs.
    repeats : sequence of Belief, optional
        Further Monte-Carlo draws of the same beliefs, in samples mode.
    bootstraps : int
        Bootstrap samples of the reference rows, two or more. The grid is resampled as well:
        with the reference rows where it is those rows, else on its own.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    MeanCCE

    Raises
    ------
    InputError
        If a repeat does not fit the reference, differs in mode or number of draws, or there
        are fewer than two bootstrap samples.

    Notes
    -----
    What is used again. For repeats: everything, the system and its factors; a repeat only adds
    right-hand sides. For a bootstrap sample: the output vectors, the kernel matrix and its
    low-rank factor, since repeated rows enter as counts c in (√c K √c + nλI) with the same K.
    The spectrum of a smooth kernel too, where a null has found it. Not the Cholesky factor: counts
    change the matrix by full rank, so a direct solve factors anew for each bootstrap sample, and
    the iterative one only takes new steps. A Nyström system keeps its landmarks and passes over
    the rows anew. Bandwidths stay those of the data. Repeated rows carry less information than new
    ones, so bootstrap means lie above the mean itself; only their spread is used.

    References
    ----------
    Young et al. (2025), section 4.5: ten bootstrap samples of five sets of draws.

    Examples
    --------
    >>> from howsure.metrics.congruence.beliefs import Normals
    >>> x = np.linspace(0.0, 6.0, 200)
    >>> y = np.cos(x) + 0.5 * child(0, "doc").standard_normal(200)
    >>> reference = CongruenceReference(x, y, Normals(np.cos(x), np.full(200, 0.5)))
    >>> found = mean_cce(reference)
    >>> 0.0 < found.data_sd < found.mean, found.monte_carlo_sd
    (True, 0.0)
    """
    check_whole(bootstraps, "bootstraps", 2)
    points = reference.points(grid)
    targets = [reference.target, *(_target(reference, belief) for belief in repeats)]
    stacked = np.hstack(targets)
    edges = np.cumsum([part.shape[1] for part in targets])[:-1]
    rows = len(reference.y)

    def means(solution: Solution, shares: FloatArray | None) -> FloatArray:
        vectors = reference.vectors(points, solution)
        parts: list[Array] = np.split(vectors, edges, axis=1)
        return np.array([np.average(lengths(part), weights=shares) for part in parts])

    plain = means(reference.system.solve(stacked) if repeats else reference.solution(), None)
    resampled = []
    for number in reported(range(bootstraps), "bootstrap"):
        rng = child(seed, "congruence bootstrap", number)
        counts = _counts(rng, rows)
        shares = counts if points is None else _counts(rng, len(points))
        resampled.append(means(reference.system.solve(stacked, counts), shares))
    spread = np.array(resampled)
    mean, data_sd = float(plain.mean()), float(spread.std(ddof=1))
    return MeanCCE(
        mean=mean,
        monte_carlo_sd=_monte_carlo(reference.belief.mode, plain),
        data_sd=data_sd,
        coefficient_of_variation=data_sd / mean if mean else math.nan,
        mode=reference.belief.mode,
        repeats=plain,
        bootstraps=spread,
    )


def _target(reference: CongruenceReference, belief: Belief) -> FloatArray:
    first = reference.belief
    checked_belief(belief, reference.y)
    if belief.mode != first.mode or belief.draws != first.draws:
        raise InputError(
            "repeats must be in the reference's mode with as many draws, got "
            f"{belief.mode} with {belief.draws} beside {first.mode} with {first.draws}"
        )
    options = reference.system.options
    peak = largest_kernel(reference.inputs.kernel, reference.inputs.rows)
    return fit_outputs(
        reference.output_kernel,
        reference.y,
        belief,
        tolerance=options.accuracy * reference.regularization / (2.0 * peak),
        options=options,
    )[1]


def _counts(rng: np.random.Generator, rows: int) -> FloatArray:
    return np.bincount(rng.integers(0, rows, rows), minlength=rows).astype(np.float64)


def _monte_carlo(mode: Mode, repeats: FloatArray) -> float:
    if mode == "exact":
        return 0.0
    return float(repeats.std(ddof=1)) if len(repeats) > 1 else math.nan
