"""What a perfectly congruent model would score: the null reference of a congruence error.

A conditional congruence error is positive even for a perfect model, by an amount that depends
on n, λ and the kernels. Here the outcomes are drawn from the predictions themselves, so that the
model is right by construction, and the error is computed again. Of samples, the outcome and the m
members are exchangeable: any of these m + 1 values is the outcome, judged with all m others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, check_fraction, to_host
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.progress import reported
from howsure.core.rng import child
from howsure.stats.namespace import Array
from howsure.stats.ridge import Solution
from howsure.topics.congruence.predictive import Empirical, Mode, PredictiveLaw, Sampled
from howsure.topics.congruence.reference import CongruenceReference, as_outputs, checked_predictive
from howsure.topics.congruence.results import lengths

Outcomes = Callable[[np.random.Generator], npt.ArrayLike] | npt.ArrayLike | Literal["exchange"]

# Right-hand sides solved together: more share each pass over the kernel, up to the memory below.
_SIDES_AT_ONCE = 1024
# 1 GB of right-hand sides beside the kernel matrix (2 GB). Not tuned.
_MAX_BYTES_OF_SIDES = 1e9
# Replicates as large as the observed error settle its p-value: ten know it to a third.
_REPLICATES_TO_SETTLE = 10
_MAX_MULTIPLICATIONS = (
    3.2e10  # multiplications that further replicates may cost: below 2 s of one core
)
# Of a replicate, in points: what drawing and solving it takes beside its errors at the points. A
# rough estimate; it decides time alone.
_OVERHEAD_IN_POINTS = 1500


@frozen(kw_only=True)
class NullReference:
    """Errors of a model beside those that it would have if it were right.

    Attributes
    ----------
    observed : float
        Mean error of the model.
    expected : float
        Mean error expected of a right model at this n, λ and kernel.
    upper : float
        Its quantile at `level`.
    range : tuple of float
        Its central range at `level`.
    p_value : float
        Share of replicates with a mean error at least as large, the model's own counted in:
        (1 + #)/(R + 1).
    level : float
        Level of the quantiles.
    replicates : ndarray of float, shape (R,)
        Mean errors of the replicates.
    stopped : bool
        Whether the cost of further replicates, not their outcome, ended them.
    point_observed, point_expected, point_upper, point_p_value : ndarray of float, shape (g,)
        The same at each evaluation point, by the replicates of the start. The p-values are not
        adjusted for their number.
    near : NearErrors, optional
        The errors of the reference rows around each point alone.
    """

    observed: float
    expected: float
    upper: float
    range: tuple[float, float]
    p_value: float
    level: float
    replicates: FloatArray
    stopped: bool
    point_observed: FloatArray
    point_expected: FloatArray
    point_upper: FloatArray
    point_p_value: FloatArray
    near: NearErrors | None = None


@frozen(kw_only=True)
class NearErrors:
    """Errors of the reference rows around each point, beside those that a right model would have.

    A congruence error is smooth: where a model is wrong, the errors of right rows far from there
    rise with it, beyond those of a model that is right throughout. These are of rows around a
    point alone: ‖Σ_i w_i (φ(y_i) − μ_i)‖ with given weights.
    """

    observed: float  # mean error of the model
    replicates: FloatArray  # shape (R,): means of right models
    # shape (g,): of each point
    point_observed: FloatArray
    point_p_value: FloatArray
    # shape (S,): means of models that are right but for a bias of half their spread; empty if not
    # made
    shifted: FloatArray = field(default_factory=lambda: np.zeros(0))

    @property
    def p_value(self) -> float:
        """Of the mean error."""
        larger = int((self.replicates >= self.observed).sum())
        return (1 + larger) / (len(self.replicates) + 1)

    @property
    def power(self) -> float:
        """Share of the shifted models that a test at 5 % finds."""
        limit = np.quantile(self.replicates, 0.95, method="higher")
        return float((self.shifted > limit).mean()) if len(self.shifted) else 0.0


def null_reference(
    reference: CongruenceReference,
    grid: npt.ArrayLike | None = None,
    *,
    outcomes: Outcomes | None = None,
    replicates: int = 199,
    most: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    near: Any = None,
) -> NullReference:
    """Compare a model's errors with those of the same model in a world where it is right.

    The p-value tests that every outcome was drawn from its prediction, independently of the
    others; of samples, that y and the members of its row are exchangeable. Members that are put in
    y's place while y is left out would be nearer to each other than to y: with few of them a right
    model would be rejected in 15 to 24 % at 5 %. Stopping at 10 is that of Besag and Clifford 1991.
    Bandwidths stay those of the observed outcomes: with a rule (not a number) for the
    output bandwidth the test is exact only up to that. The system is factored once; each
    replicate adds right-hand sides.

    Examples
    --------
    >>> from howsure.topics.congruence.predictive import Normals
    >>> x = np.linspace(0.0, 6.0, 200)
    >>> y = np.cos(x) + 0.5 * child(0, "doc").standard_normal(200)
    >>> wrong = CongruenceReference(x, y, Normals(np.sin(x), np.full(200, 0.5)))
    >>> found = null_reference(wrong, replicates=99)
    >>> found.observed > found.upper, found.p_value
    (True, 0.01)
    """
    check_fraction(level, "level")
    points = reference.points(grid)
    observed = lengths(reference.vectors(points, reference.solution()))
    mean = float(observed.mean())
    around: list[FloatArray] = []

    def note_near(differences: Iterator[FloatArray]) -> Iterator[FloatArray]:
        for difference in differences:
            if near is not None:
                around.append(lengths(near @ difference))
            yield difference

    worlds = note_near(_differences(reference, outcomes, 0, replicates, seed))
    null = np.array(list(_errors(reference, points, worlds)))
    means = null.mean(axis=1)
    affordable, width = len(means), max(1, int(reference.target.shape[1]))
    if most is not None:
        check_whole(most, "most", replicates)
        work = len(reference.y) * (len(observed) + _OVERHEAD_IN_POINTS) * width
        affordable = min(most, replicates + int(_MAX_MULTIPLICATIONS / work))
    larger = int((means >= mean).sum())
    while larger < _REPLICATES_TO_SETTLE and len(means) < affordable:
        together = max(1, _columns(len(reference.y)) // width)
        count = min(together, affordable - len(means))
        worlds = _differences(reference, outcomes, len(means), count, seed)
        fresh = [errors.mean() for errors in _errors(reference, points, worlds)]
        means = np.append(means, fresh)
        larger = int((means >= mean).sum())
    near_errors = None
    if near is not None:
        near_observed, drawn = lengths(near @ reference.target), np.array(around)
        near_errors = NearErrors(
            observed=float(near_observed.mean()),
            replicates=drawn.mean(axis=1),
            point_observed=near_observed,
            point_p_value=(1 + (drawn >= near_observed).sum(axis=0)) / (len(drawn) + 1),
        )
    ends = np.quantile(means, [0.5 * (1.0 - level), 0.5 * (1.0 + level)])
    return NullReference(
        observed=mean,
        expected=float(means.mean()),
        upper=float(np.quantile(means, level)),
        range=(float(ends[0]), float(ends[1])),
        p_value=(1 + larger) / (len(means) + 1),
        level=level,
        replicates=means,
        stopped=most is not None and affordable < most and larger < _REPLICATES_TO_SETTLE,
        point_observed=observed,
        point_expected=null.mean(axis=0),
        point_upper=np.quantile(null, level, axis=0),
        point_p_value=(1 + (null >= observed).sum(axis=0)) / (len(null) + 1),
        near=near_errors,
    )


def _errors(
    reference: CongruenceReference, points: Array | None, differences: Iterator[FloatArray]
) -> Iterator[FloatArray]:
    """Errors at the points in worlds with these differences; many are solved together."""
    for batch in _batches(differences, len(reference.y)):
        solution = reference.system.solve(np.hstack(batch))
        vectors = reference.vectors(points, solution)
        edges = np.cumsum([difference.shape[1] for difference in batch])[:-1]
        yield from (lengths(difference) for difference in np.split(vectors, edges, axis=1))


def _differences(
    reference: CongruenceReference, outcomes: Outcomes | None, first: int, count: int, seed: int
) -> Iterator[FloatArray]:
    """Differences of outcomes and predictions in worlds where the model is right."""
    predictive, y, outputs = reference.predictive, reference.y, reference.outputs
    check = partial(as_outputs, name="outcomes", length=len(y), columns=y.shape[1])
    exchanged = isinstance(outcomes, str) or (
        outcomes is None and isinstance(predictive, Empirical)
    )
    if not (exchanged or outcomes is None or callable(outcomes)):
        array = np.asarray(to_host(outcomes, "outcomes"))
        if array.ndim not in (2, 3) or array.shape[1] == 0:
            raise InputError(
                f"outcomes must have shape (n, R) or (n, R, p), got shape {array.shape}"
            )
        cube = array[:, :, None] if array.ndim == 2 else array
        for column in reported(range(cube.shape[1]), "null reference"):
            yield outputs.difference(check(cube[:, column]))[0]
        return
    samples = predictive.samples if isinstance(predictive, Sampled) else None
    if exchanged and (samples is None or outcomes not in (None, "exchange")):
        raise InputError(
            f"outcomes may be 'exchange' only with samples, got {outcomes!r} beside "
            f"{type(predictive).__name__}"
        )
    check_whole(count, "replicates")
    for number in reported(range(first, first + count), "null reference"):
        rng = child(seed, "congruence null", number)
        if exchanged and samples is not None:
            members = samples.shape[1]
            member = rng.integers(0, members + 1, len(y))
            other = samples[np.arange(len(y)), np.minimum(member, members - 1)]
            drawn = np.where((member == members)[:, None], y, other)
            yield outputs.exchanged(drawn, y, members)
        else:
            fresh = outcomes(rng) if callable(outcomes) else predictive.draw(rng)
            yield outputs.difference(check(fresh))[0]


def _columns(rows: int) -> int:
    return max(1, min(_SIDES_AT_ONCE, int(_MAX_BYTES_OF_SIDES / (8 * rows))))


def _batches(items: Iterator[FloatArray], rows: int) -> Iterator[list[FloatArray]]:
    """Group right-hand sides so that a system is solved for about a thousand at once."""
    limit = _columns(rows)
    batch: list[FloatArray] = []
    for item in items:
        if batch and sum(difference.shape[1] for difference in batch) + item.shape[1] > limit:
            yield batch
            batch = []
        batch.append(item)
    yield batch


# ---- mean conditional congruence error with its two uncertainties: Monte-Carlo and data ----------


@frozen(kw_only=True)
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
    mode : {"exact", "samples"}
        How predictions were embedded.
    repeats : ndarray of float, shape (K,)
        Mean errors on the data as they are, one for each set of draws.
    bootstraps : ndarray of float, shape (B, K)
        Mean errors on the bootstrap samples.
    """

    mean: float
    monte_carlo_sd: float
    data_sd: float
    mode: Mode
    repeats: FloatArray
    bootstraps: FloatArray


def mean_cce(
    reference: CongruenceReference,
    grid: npt.ArrayLike | None = None,
    *,
    repeats: Sequence[PredictiveLaw] = (),
    bootstraps: int = 10,
    seed: int = 0,
) -> MeanCCE:
    """Mean conditional congruence error with its Monte-Carlo and data uncertainty.

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
    >>> from howsure.topics.congruence.predictive import Normals
    >>> x = np.linspace(0.0, 6.0, 200)
    >>> y = np.cos(x) + 0.5 * child(0, "doc").standard_normal(200)
    >>> reference = CongruenceReference(x, y, Normals(np.cos(x), np.full(200, 0.5)))
    >>> found = mean_cce(reference)
    >>> 0.0 < found.data_sd < found.mean, found.monte_carlo_sd
    (True, 0.0)
    """
    check_whole(bootstraps, "bootstraps", 2)
    points = reference.points(grid)
    mode, draws = reference.predictive.mode, reference.predictive.draws
    targets = [reference.target]
    for predictive in repeats:
        checked_predictive(predictive, reference.y)
        if predictive.mode != mode or predictive.draws != draws:
            raise InputError(
                "repeats must be in the reference's mode with as many draws, got "
                f"{predictive.mode} with {predictive.draws} beside {mode} with {draws}"
            )
        targets.append(reference.fit(predictive)[1])
    stacked = np.hstack(targets)
    edges = np.cumsum([target.shape[1] for target in targets])[:-1]
    rows = len(reference.y)

    def means(solution: Solution, shares: FloatArray | None) -> FloatArray:
        vectors = reference.vectors(points, solution)
        parts: list[Array] = np.split(vectors, edges, axis=1)
        return np.array(
            [np.average(lengths(vectors_of_one), weights=shares) for vectors_of_one in parts]
        )

    plain = means(reference.system.solve(stacked) if repeats else reference.solution(), None)
    resampled = []
    for number in reported(range(bootstraps), "bootstrap"):
        rng = child(seed, "congruence bootstrap", number)
        counts = _counts(rng, rows)
        shares = counts if points is None else _counts(rng, len(points))
        resampled.append(means(reference.system.solve(stacked, counts), shares))
    spread = np.array(resampled)
    mean, data_sd = float(plain.mean()), float(spread.std(ddof=1))
    monte_carlo = 0.0 if mode == "exact" else math.nan
    if mode != "exact" and len(plain) > 1:
        monte_carlo = float(plain.std(ddof=1))
    return MeanCCE(
        mean=mean,
        monte_carlo_sd=monte_carlo,
        data_sd=data_sd,
        mode=mode,
        repeats=plain,
        bootstraps=spread,
    )


def _counts(rng: np.random.Generator, rows: int) -> FloatArray:
    return np.bincount(rng.integers(0, rows, rows), minlength=rows).astype(np.float64)
