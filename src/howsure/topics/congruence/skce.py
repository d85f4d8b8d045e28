"""Squared kernel calibration error (SKCE): is y distributed as predicted, given the prediction?

Where congruence asks at every input, this asks at every prediction: of all rows that are told the
same law, is y drawn from it? No inputs are needed. Rows are compared in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, IntArray, as_vector, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError, UnanswerableError
from howsure.core.rng import child, row_hashes, row_uniforms
from howsure.core.weights import Weights
from howsure.predictions import Distribution, Prediction, Samples
from howsure.predictions.laws import NormalLaw, ScipyLaw
from howsure.stats.estimate import Estimate
from howsure.stats.kernels import RBF
from howsure.stats.solvers import SolverOptions
from howsure.topics.congruence.laws import LAWS, exact_predictive
from howsure.topics.congruence.outputs import LandmarkMap, as_law, fit_landmarks
from howsure.topics.congruence.predictive import PredictiveLaw, Support

# p = .005 at the least; each replicate draws all outcomes anew.
REPLICATES = 199
# 125,000 pairs, each of laws of up to 48 quantiles.
MAX_ROWS_OF_ALL_PAIRS = 500
"""Different rows up to which all pairs are taken."""
# As many pairs for each row as a quarter of the whole. Chosen by hand; not tuned: larger blocks
# use more pairs, and time grows with their size.
ROWS_OF_BLOCK = 125
"""Different rows of a block, where there are more."""
# As many as all pairs are taken of; a larger set can be asked for.
MOST_ROWS = 500
"""Different rows of an evaluation set that are looked at."""
# Different rows of counts, and of laws whose quantiles are sought one by one, which takes ms each.
_MAX_ROWS_SEARCHED = 100
# Quantiles that stand for a law, and for one of those: by Gauss's rule they give a normal law 99.9
# and 99.1 % of its variance, and its mean under a Gaussian kernel to 6 · 10⁻⁶ and 10⁻⁴.
_QUANTILES_OF_LAW, _QUANTILES_OF_SEARCHED_LAW = 48, 16
# Rows, counted as often as they were seen, whose y is drawn; of more, evenly spread ones stand.
_MAX_COPIES_DRAWN = 2_000
# Rows whose distances set the scale: 79,800 pairs.
_ROWS_OF_SCALE = 400
# Outcomes that do: 19,900 pairs.
_OUTCOMES_OF_SCALE = 200
# Mean squared length that the landmarks of the value may leave out, and those of the test, of
# which there are fewer: a replicate is compared with others of the same landmarks, so a thousandth
# does no harm.
_LENGTH_LEFT_OUT = 1e-11
_LENGTH_LEFT_OUT_OF_TEST = 1e-3  # and those of the test, of which there are fewer
# 400 columns of 500 rows and 48 quantiles are 77 MB.
_MAX_LANDMARKS = 400
_MAX_SCALE = 1e150  # beyond it squares are infinite, and below its inverse 0
# Numbers of drawn outcomes that are held at once: 32 MB.
_NUMBERS_AT_ONCE = 4e6


def skce(
    y: npt.ArrayLike,
    prediction: Prediction,
    *,
    weights: npt.ArrayLike | None = None,
    block_size: int | None = None,
    prediction_scale: float | None = None,
    outcome_scale: float | None = None,
    replicates: int = REPLICATES,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Squared kernel calibration error of predictive distributions, with its p-value.

    Parameters
    ----------
    y : array-like of shape (n,)
        What happened.
    prediction : Distribution or Samples
        The predictive distribution of each row.
    weights : array-like of shape (n,), optional
        How often each row was seen: whole numbers.
    block_size : int, optional
        Rows of a block: only rows of one block are paired, so that the cost grows with n, not n².
        Two or more. By default all pairs up to 500 different rows, and beyond blocks of 125.
    prediction_scale, outcome_scale : float, optional
        Lengths ℓ_P and ℓ_Y of the kernels, in units of y. By default medians: of the distances of
        two predictions, and of two outcomes that the predictions expect.
    replicates : int
        Tables of y drawn from the predictions for the p-value; none if 0.
    confidence : float
        Of the interval.
    seed : int
        Fixes blocks and draws.

    Returns
    -------
    Estimate
        No units; 0 is best. Unbiased, so that a perfect model has 0 on average, and more often
        than not less. p is the share of drawn tables with a value as large, the model's own
        counted in. NaN with a reason for fewer than two rows, or where no outcomes differ.

    Raises
    ------
    InputError
        If an argument leaves its domain, or lengths differ.
    UnanswerableError
        If the prediction is no distribution.

    Notes
    -----
    Mean over the pairs of rows (of one block) of

    h = exp(−W₂(P, P')/ℓ_P) · [κ(y, y') − E κ(Z, y') − E κ(y, Z') + E κ(Z, Z')]

    with κ(y, y') = exp(−(y−y')²/(2ℓ_Y²)), Z ~ P and Z' ~ P' independent, and W₂ the 2-Wasserstein
    distance of the two predictions. Normal laws, their mixtures, laws of counts and samples are
    averaged exactly, W₂ is exact for normal laws and for samples; others are summed over 48
    quantiles (Gauss and Legendre), 16 where SciPy seeks each. The scales do not see y, so that
    the p-value is exact.

    Samples: y and the m draws are exchangeable under a right model, so the null draws which of the
    m + 1 is y. For that, the distance is that of all m + 1 values of two rows; it tends to W₂ as m
    grows. Without y in it, a right model's samples would show an error: rows whose draws happen to
    lie alike err alike.

    The standard error is that of a U-statistic, its second order included, for independent rows.
    Of all pairs of a right model it is some 20 % too large; the p-value does not rest on it.

    Source: D. Widmann, F. Lindsten and D. Zachariah (2021), Calibration tests beyond
    classification, arXiv:2210.13355; the package CalibrationErrorsDistributions.jl.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> mean, sd = rng.normal(size=400), np.exp(0.3 * rng.normal(size=400))
    >>> y = mean + sd * rng.normal(size=400)
    >>> right = skce(y, Distribution.normal(mean, sd))
    >>> wrong = skce(y, Distribution.normal(mean, 0.6 * sd))
    >>> right.value, wrong.value
    (-3.7e-05, 0.0040)
    >>> right.p > 0.05, wrong.p
    (True, 0.005)
    """
    if not isinstance(prediction, LAWS):
        raise UnanswerableError("SKCE needs a predictive distribution or samples")
    truth = as_vector(y, "y", length=prediction.n)
    prediction.check_outcomes(truth)
    counts = None if weights is None else Weights.checked(weights, length=len(truth)).values
    if block_size is not None:
        check_whole(block_size, "block_size", 2)
    for name, scale in (
        ("prediction_scale", prediction_scale),
        ("outcome_scale", outcome_scale),
    ):
        if scale is not None and not (math.isfinite(scale) and scale > 0):
            raise InputError(f"{name} must be a finite number above 0, got {scale!r}")
    level = check_fraction(confidence, "confidence")
    check_whole(replicates, "replicates", 0)
    rows = _different(truth, prediction, counts, seed)
    return _estimated(rows, block_size, prediction_scale, outcome_scale, replicates, level, seed)


def skce_of_part(
    y: FloatArray,
    prediction: Prediction,
    counts: FloatArray | None,
    *,
    everything: bool = False,
    confidence: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The same of at most 500 (or 100) different rows, chosen by content, unless of everything."""
    counted = isinstance(prediction, Distribution) and prediction.discrete  # many values a row
    most = _MAX_ROWS_SEARCHED if counted or _searched(prediction) else MOST_ROWS
    rows = _different(y, prediction, counts, seed, None if everything else most)
    return _estimated(rows, None, None, None, REPLICATES, confidence, seed)


@frozen(eq=False)
class _DifferentRows:
    """Different rows in an order that their content decides."""

    y: FloatArray  # shape (n,)
    prediction: Distribution | Samples
    counts: FloatArray  # shape (n,): how often each was seen
    # shape (n, k): quantiles, or what stands among each other in rising order, y with samples
    values: FloatArray
    masses: FloatArray  # shape (k,): how much of a prediction each value stands for

    def take(self, places: IntArray) -> _DifferentRows:
        """Some of the rows, each seen once."""
        ones = np.ones(len(places))
        law = self.prediction.take(places)
        return _DifferentRows(self.y[places], law, ones, self.values[places], self.masses)


def _searched(prediction: Prediction) -> bool:
    law = prediction.law if isinstance(prediction, Distribution) else None
    return isinstance(law, ScipyLaw) and law.searched


def _different(
    y: FloatArray,
    prediction: Prediction,
    counts: FloatArray | None,
    seed: int,
    most: int | None = None,
) -> _DifferentRows:
    assert isinstance(prediction, LAWS)
    hashes = row_hashes(y, *prediction.numbers().values())
    times = np.ones(len(y)) if counts is None else counts
    hashes_once, first, code = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.bincount(code, weights=times, minlength=len(hashes_once)).astype(np.float64)
    order = np.argsort(row_uniforms(seed, "skce", hashes_once), kind="stable")
    order = order[summed[order] > 0][:most]
    truth, law = y[first[order]], prediction.take(first[order])
    if isinstance(law, Samples):
        values = np.column_stack([law.sorted_samples, truth])
        values.sort(axis=1)
        masses = np.full(values.shape[1], 1.0 / values.shape[1])
    else:  # Gauss and Legendre: they integrate a function of the level
        at, weight = np.polynomial.legendre.leggauss(
            _QUANTILES_OF_SEARCHED_LAW if _searched(law) else _QUANTILES_OF_LAW
        )
        values, masses = law.quantile((at + 1.0) / 2.0), np.asarray(weight / 2.0)
    return _DifferentRows(truth, law, summed[order], values, masses)


@frozen(eq=False)
class _Pairs:
    """Rows of one block, pair by pair: how alike their predictions are."""

    rows: slice
    alike: FloatArray  # shape (b, b): kernel of the predictions


def _estimated(
    rows: _DifferentRows,
    block_size: int | None,
    prediction_scale: float | None,
    outcome_scale: float | None,
    replicates: int,
    confidence: float,
    seed: int,
) -> Estimate:
    """The value with the range of right models, and the share of them with a value as large."""
    total = float(rows.counts.sum())
    if total < 2:
        return Estimate(math.nan, reason="one row makes no pair", n=total)
    places = _coordinates(rows)
    wide = outcome_scale or _outcome_scale(rows)
    if not wide > 0:
        return Estimate(math.nan, reason="all outcomes that are predicted are equal", n=total)
    if not 1.0 / _MAX_SCALE < wide < _MAX_SCALE:
        return Estimate(math.nan, reason="squares of y are too small or too large", n=total)
    far = prediction_scale or _prediction_scale(places, rows.counts)
    size = block_size or (ROWS_OF_BLOCK if len(rows.y) > MAX_ROWS_OF_ALL_PAIRS else len(rows.y))
    blocks = _blocks(places, size, far)
    outputs = _outputs(rows, wide)
    value, error, pairs = _u_statistic(outputs.difference(rows.y), rows.counts, blocks)
    if not pairs:
        return Estimate(math.nan, reason="no block has a pair of rows", n=total)
    reach = float(special.ndtri((1.0 + confidence) / 2.0)) * error
    details: dict[str, str | float] = {"prediction_scale": far, "outcome_scale": wide}
    if len(blocks) > 1:
        details["blocks"] = float(len(blocks))
    estimate = Estimate(
        value,
        null=0.0,
        error=error,
        lower=value - reach,
        upper=value + reach,
        n=total,
        details=details,
    )
    if not replicates:
        return estimate
    outputs = outputs.coarse()
    seen = _mean_h(outputs.difference(rows.y)[:, None], rows.counts, blocks)[0]
    if total > len(rows.y):  # each time that a row was seen, its y is drawn anew
        if total <= _MAX_COPIES_DRAWN:
            units = np.repeat(np.arange(len(rows.y)), rows.counts.astype(np.int64))
        else:
            middle = (np.arange(_MAX_COPIES_DRAWN // 2) + 0.5) * (total / (_MAX_COPIES_DRAWN // 2))
            units = np.searchsorted(np.cumsum(rows.counts), middle)
        rows, blocks = rows.take(units), _taken(blocks, units)
        outputs = replace(outputs, centre=outputs.centre[units])
    draw, step = _drawer(rows, wide), max(1, int(_NUMBERS_AT_ONCE / outputs.centre.size))
    parts = []
    for start in range(0, replicates, step):
        numbers = range(start, min(start + step, replicates))
        worlds = np.stack([draw(child(seed, "skce null", number)) for number in numbers], axis=1)
        parts.append(_mean_h(outputs.difference(worlds), rows.counts, blocks))
    drawn = np.concatenate(parts)
    if len(rows.y) < total:  # of a part; chance in all rows shrinks with the root of the pairs
        drawn *= math.sqrt(sum(len(block.alike) * (len(block.alike) - 1) for block in blocks))
        drawn /= math.sqrt(pairs)
    return replace(
        estimate,
        null_lower=float(np.quantile(drawn, 0.025)),
        null_upper=float(np.quantile(drawn, 0.975)),
        p=float((1 + np.count_nonzero(drawn >= seen)) / (1 + len(drawn))),
        details={**details, "null_draws": float(len(drawn))},
    )


def _u_statistic(
    difference: FloatArray, counts: FloatArray, blocks: list[_Pairs]
) -> tuple[float, float, float]:
    """Mean of h over pairs, its standard error, and how many (ordered) pairs there are.

    A row that was seen w times pairs with itself w(w − 1) times.
    """
    sums, partners, squares = np.zeros(len(counts)), np.zeros(len(counts)), 0.0
    for block in blocks:
        mine, times = difference[block.rows], counts[block.rows]
        h = block.alike * (mine @ mine.T)
        with_itself = np.diagonal(h)
        sums[block.rows] = h @ times - with_itself
        partners[block.rows] = times.sum() - 1.0
        np.square(h, out=h)
        squares += float(times @ h @ times - times @ np.diagonal(h))
    n, pairs = float(counts.sum()), float(counts @ partners)
    if not pairs:
        return math.nan, math.nan, 0.0
    value = float(counts @ sums) / pairs
    moved = 2.0 * n / pairs * (sums - value * partners)
    plain = float(counts @ np.square(moved)) / (n * (n - 1.0))
    second = max(squares / pairs - value**2, 0.0) / (pairs / 2.0)
    # The sums of a row hold the noise of its pairs too, and each pair is in two of them.
    return value, math.sqrt(max(plain - second, second)), pairs


def _taken(blocks: list[_Pairs], units: IntArray) -> list[_Pairs]:
    """The blocks of some of their rows, in rising order, each perhaps several times."""
    taken = []
    for block in blocks:
        start, stop = np.searchsorted(units, [block.rows.start, block.rows.stop])
        places = units[start:stop] - block.rows.start
        taken.append(_Pairs(slice(int(start), int(stop)), block.alike[np.ix_(places, places)]))
    return taken


def _mean_h(differences: FloatArray, counts: FloatArray, blocks: list[_Pairs]) -> FloatArray:
    """Means of h over pairs, of several worlds at once, shape (n, worlds, r)."""
    total, pairs = np.zeros(differences.shape[1]), 0.0
    single = differences.astype(np.float32)
    for block in blocks:
        mine, times = single[block.rows], counts[block.rows]
        weighted = mine * times[:, None, None].astype(np.float32)
        near = block.alike.astype(np.float32) @ weighted.reshape(len(mine), -1)
        total += np.einsum("iwr,iwr->w", weighted, near.reshape(mine.shape), dtype=np.float64)
        total -= np.einsum("iwr,iwr->w", weighted, mine, dtype=np.float64)
        pairs += float(times.sum() ** 2 - times.sum())
    return total / pairs


def _blocks(places: FloatArray, size: int, scale: float) -> list[_Pairs]:
    """Blocks of so many rows, or a few more."""
    n = len(places)
    edges = np.linspace(0, n, max(1, n // size) + 1).round().astype(np.int64)
    blocks = []
    for start, stop in pairwise(edges):
        distance = _distances(places[start:stop])
        alike = np.exp(-distance / scale) if scale > 0 else np.ones_like(distance)
        blocks.append(_Pairs(slice(int(start), int(stop)), alike))
    return blocks


def _distances(places: FloatArray) -> FloatArray:
    """Euclidean distances of every two rows; 0 of a row to itself."""
    distances = np.zeros((len(places), len(places)))
    if places.shape[1] <= 4:  # no digits cancel
        for column in places.T:
            distances += np.square(column[:, None] - column)
    else:
        centred = places - places.mean(axis=0)
        squares = np.einsum("ij,ij->i", centred, centred)
        np.maximum(squares[:, None] + squares - 2.0 * (centred @ centred.T), 0.0, out=distances)
        np.fill_diagonal(distances, 0.0)
    return np.sqrt(distances, out=distances)


def _coordinates(rows: _DifferentRows) -> FloatArray:
    """Points whose distances are 2-Wasserstein distances of the predictions, shape (n, k)."""
    law = rows.prediction
    if isinstance(law, Distribution) and isinstance(law.law, NormalLaw):
        return np.stack([law.parameters["loc"], law.parameters["scale"]], axis=1)
    return rows.values * np.sqrt(rows.masses)


def _prediction_scale(places: FloatArray, counts: FloatArray) -> float:
    """Median distance of two predictions of some rows; the mean where it is 0."""
    few, counted = places[:_ROWS_OF_SCALE], counts[:_ROWS_OF_SCALE]
    first, second = np.triu_indices(len(few))
    times = np.where(
        first == second,
        counted[first] * (counted[first] - 1.0) / 2.0,
        counted[first] * counted[second],
    )
    return _middle(_distances(few)[first, second], times)


def _outcome_scale(rows: _DifferentRows) -> float:
    """Median distance of two outcomes that the predictions expect; the mean where it is 0."""
    values, masses = rows.values, rows.masses
    if isinstance(rows.prediction, Samples):  # of many draws some
        last = values.shape[1] - 1
        lower = np.linspace(0.0, last / 2.0, _QUANTILES_OF_LAW // 2).astype(np.int64)
        columns = np.unique([lower, last - lower])
        values, masses = values[:, columns], masses[columns]
    mass = (rows.counts[:, None] * masses).ravel()
    order = np.argsort(values, axis=None, kind="stable")
    upto = np.cumsum(mass[order])
    middle = (np.arange(_OUTCOMES_OF_SCALE) + 0.5) / _OUTCOMES_OF_SCALE * upto[-1]
    ranked = values.ravel()[order]
    sides = (np.searchsorted(upto, middle * (1.0 + side)) for side in (-1e-12, 1e-12))
    pooled = np.mean([ranked[each] for each in sides], axis=0)  # of a tie both, as seen in a mirror
    first, second = np.triu_indices(_OUTCOMES_OF_SCALE, 1)
    return _middle(np.abs(pooled[first] - pooled[second]), np.ones(len(first)))


def _middle(values: FloatArray, times: FloatArray) -> float:
    """Weighted median; the mean where that is 0."""
    order = np.argsort(values, kind="stable")
    upto = np.cumsum(times[order])
    if not upto[-1] > 0:
        return 0.0
    median = float(values[order][np.searchsorted(upto, upto[-1] / 2.0 * (1.0 - 1e-12))])
    return median if median > 0 else float(values @ times / upto[-1])


@frozen(eq=False)
class _Outputs:
    """Outcomes as vectors whose inner products are their kernel, less those of predictions."""

    landmarks: LandmarkMap
    centre: FloatArray  # shape (n, r): mean vector of the outcomes that are drawn of a row
    stretch: float  # by which a drawn outcome is farther from its prediction than from the centre

    def difference(self, y: FloatArray) -> FloatArray:
        """φ(y) − E φ(Z) of outcomes of shape (n,) or (n, worlds), with a last axis of r."""
        outcomes = self.landmarks.features(as_law(y.reshape(-1, 1)))[0].reshape(*y.shape, -1)
        centre = self.centre if y.ndim == 1 else self.centre[:, None]
        return self.stretch * (outcomes - centre)

    def coarse(self) -> _Outputs:
        """By the first few landmarks, which do for a test."""
        diagonal = np.square(np.diagonal(self.landmarks.triangle))
        few = max(2, int(np.count_nonzero(diagonal > _LENGTH_LEFT_OUT_OF_TEST)))
        triangle, atoms = self.landmarks.triangle, self.landmarks.landmarks
        nested = LandmarkMap(self.landmarks.kernel, atoms.take(slice(0, few)), triangle[:few, :few])
        return _Outputs(nested, self.centre[:, :few], self.stretch)


def _outputs(rows: _DifferentRows, scale: float) -> _Outputs:
    predictive = _predictive(rows, scale)
    landmarks, (outcomes, believed), _ = fit_landmarks(
        RBF(0.5 / scale**2),
        [as_law(rows.y[:, None]), predictive],
        tolerance=_LENGTH_LEFT_OUT,
        limit=_MAX_LANDMARKS,
        options=SolverOptions(),
    )
    if not isinstance(rows.prediction, Samples):
        return _Outputs(landmarks, believed, 1.0)
    share = 1.0 / (rows.prediction.size + 1.0)  # y is one of the values among which it is drawn
    return _Outputs(landmarks, believed + share * (outcomes - believed), 1.0 / (1.0 - share))


def _predictive(rows: _DifferentRows, scale: float) -> PredictiveLaw:
    """The predictions as weighted points or normal laws."""
    law = rows.prediction
    exact = exact_predictive(law, scale)
    if exact is not None:
        return exact
    return Support(rows.values, np.broadcast_to(rows.masses, rows.values.shape))


def _drawer(rows: _DifferentRows, scale: float) -> Callable[[np.random.Generator], FloatArray]:
    """Outcomes of a right model, shape (n,), of a source of random numbers."""
    if not isinstance(rows.prediction, Samples):
        predictive = _predictive(rows, scale)
        if not isinstance(predictive, Support) or rows.prediction.discrete:
            return lambda rng: predictive.draw(rng)[:, 0]
    upto, n = np.cumsum(rows.masses), np.arange(len(rows.y))

    def draw(rng: np.random.Generator) -> FloatArray:
        value = np.searchsorted(upto, rng.random(len(n)), side="right")
        return rows.values[n, np.minimum(value, len(upto) - 1)]

    return draw
