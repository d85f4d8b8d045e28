"""Predictive laws of an evaluation set in the form that congruence takes: exact, or by draws."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from howsure.core.arrays import BoolArray, FloatArray
from howsure.core.errors import UnanswerableError
from howsure.core.rng import child
from howsure.predictions import Distribution, EvalSet, Prediction, Samples
from howsure.predictions.mixtures import MixtureLaw
from howsure.topics.congruence.predictive import (
    Draws,
    Empirical,
    Mixtures,
    Mode,
    Normals,
    PredictiveLaw,
    Support,
)

Listed = tuple[FloatArray, FloatArray]
"""Counts and their probabilities, shape (n, s) each."""

LAWS = (Distribution, Samples)
"""The predictions that are predictive laws."""
# Chosen by hand; not tuned. The method's paper draws one; more lower the noise of the embedding
# and take more time.
DRAWS = 5
# Counts of all rows, listed one by one up to here: exact whatever the law. Beyond, quadrature over
# runs needs fewer points.
MAX_COUNTS_LISTED = 100_000
# 4 million counts and probabilities are 64 MB, the most that an embedding holds at once.
MAX_SUPPORT = 4_000_000

# Left out at both ends of a law of counts: below the 10⁻¹¹ to which embeddings are right.
_TAIL_LEFT_OUT = 1e-12
# Standard deviations that a run may span, of the law times the kernel: 16 places then integrate it
# to about 10⁻¹¹.
_SPAN_OF_RUN = 2.0
# The kernel is taken to be so much narrower than y; the usual one, γ = 1/(2 var y), is as wide.
_KERNELS_PER_SD = 2.0
# Probability of a run at whose end the law stops: what is cut there is no smooth end, so runs must
# become short.
_STOPPING_PROBABILITY = 1e-10
_MAX_PROBABILITY_MISSED = (
    1e-5  # of probability: a law's own cdf may be that far from its own sum, a kink is more
)
_WHOLE = 2.0**53  # counts above are not all numbers


def embeds_exactly(evalset: EvalSet) -> bool:
    """Whether the prediction of every row has an exact embedding; raises as `law_of`."""
    return _exact(evalset) is not None


def predictive_of(
    evalset: EvalSet, mode: Mode, *, seed: int = 0, draws: int = DRAWS
) -> PredictiveLaw:
    """The predictive laws of an evaluation set in the form that congruence takes.

    Normal laws, their mixtures, samples and laws of counts embed exactly. Counts are listed up to
    100,000 in all. Wider laws, and mixtures of them, are summed by quadrature over runs of
    counts (`lattice_rule`): for an output kernel half as wide as y's
    standard deviation or wider, embeddings are right to about 1e-11, or as the law's
    probabilities are. Those of every run are held against the law's own cdf: where they differ
    by 1e-5 in a row, as for a law with kinks or gaps, counts are listed up to four million, and
    past that there is no exact mode.
    """
    if mode == "exact":
        exact = _exact(evalset)
        if exact is None:
            raise UnanswerableError("the distributions have no exact embedding")
        return exact
    law, rng = law_of(evalset), child(seed, "congruence draws", evalset.model)
    if isinstance(law, Samples):  # no member twice, so that y and the draws are exchangeable
        order = np.argsort(rng.random(law.sorted_samples.shape), axis=1)[:, :draws]
        return Draws(np.take_along_axis(law.sorted_samples, order, axis=1))
    return Draws(law.sample(rng, draws))


def law_of(evalset: EvalSet) -> Prediction:
    """The predictive law of an evaluation set."""
    for predictive in evalset.predictions:
        if isinstance(predictive, LAWS):
            return predictive
    raise UnanswerableError("congruence needs a predictive distribution or samples")


def _exact(evalset: EvalSet) -> PredictiveLaw | None:
    return exact_predictive(law_of(evalset), float(np.std(evalset.y)) / _KERNELS_PER_SD)


def exact_predictive(law: Prediction, bandwidth: float) -> PredictiveLaw | None:
    """The exact embedding, where there is one; None for continuous laws other than normal."""
    if isinstance(law, Samples):
        return Empirical(law.sorted_samples)
    assert isinstance(law, Distribution)
    if law.discrete:
        counts = _counts(law, bandwidth)
        return None if counts is None else Support(*counts)
    parts = _parts(law)
    if any(component.law.name != "norm" for _, component in parts):
        return None
    if len(parts) == 1:
        return Normals(law.parameters["loc"], law.parameters["scale"])
    return Mixtures(
        np.stack([weight for weight, _ in parts], axis=1),
        np.stack([component.parameters["loc"] for _, component in parts], axis=1),
        np.stack([component.parameters["scale"] for _, component in parts], axis=1),
    )


def _parts(law: Distribution) -> list[tuple[FloatArray, Distribution]]:
    """Weights and laws of what a mixture is made of, mixtures in it too; else the law alone."""
    if not isinstance(law.law, MixtureLaw):
        return [(np.ones(law.n), law)]
    components: list[tuple[FloatArray, Distribution]] = []
    for number, family in enumerate(law.law.parts, 1):
        parameters = {name: law.parameters[f"{name}_{number}"] for name in family.parameters}
        weight = law.parameters[f"weight_{number}"]
        components += [
            (weight * share, component)
            for share, component in _parts(Distribution(family, parameters))
        ]
    return components


def _counts(law: Distribution, bandwidth: float) -> Listed | None:
    """Counts that stand for a law of counts; None where there would be too many."""
    ends = law.quantile([_TAIL_LEFT_OUT, 1.0 - _TAIL_LEFT_OUT])
    size = float((ends[:, 1] - ends[:, 0]).max() + 1.0) * law.n
    if size <= MAX_COUNTS_LISTED:
        return _listed(law, ends)
    parts = _parts(law)
    some = [_quadrature(component, bandwidth) for _, component in parts]
    if all(nodes is not None for nodes in some):
        together = [
            (nodes[0], weight[:, None] * nodes[1])
            for nodes, (weight, _) in zip(some, parts, strict=True)
            if nodes is not None
        ]
        values, masses = (np.hstack(side) for side in zip(*together, strict=True))
        if values.size <= MAX_SUPPORT:
            return values, masses / masses.sum(axis=1, keepdims=True)
    return _listed(law, ends) if size <= MAX_SUPPORT else None


def _listed(law: Distribution, ends: FloatArray) -> Listed:
    """All counts between the ends."""
    width = int((ends[:, 1] - ends[:, 0]).max()) + 1
    values = ends[:, :1] + np.arange(width)
    masses = _masses(law, values)
    return values, masses / masses.sum(axis=1, keepdims=True)


def _quadrature(law: Distribution, bandwidth: float) -> Listed | None:
    """Some counts with weights, or None where they are too many or too far off."""
    ends = law.quantile([_TAIL_LEFT_OUT, 1.0 - _TAIL_LEFT_OUT])
    low, high = ends.T
    spread = law.law.sd(law.parameters)
    if not (np.isfinite(spread).all() and np.abs(ends).max() < _WHOLE):
        return None
    spread = np.maximum(spread, 1.0)
    with np.errstate(divide="ignore"):
        longest = _SPAN_OF_RUN / np.hypot(1.0 / spread, 1.0 / np.float64(bandwidth))
    if float(((high - low) / np.maximum(longest, 1.0)).max()) * law.n * PLACES_OF_RUN > MAX_SUPPORT:
        return None
    stops = _masses(law, ends) * longest[:, None] > _STOPPING_PROBABILITY
    starts, lengths = lattice_runs(
        low, high, longest=longest, stops_below=stops[:, 0], stops_above=stops[:, 1]
    )
    values, weights = lattice_nodes(starts, lengths)
    masses = weights * _masses(law, values.reshape(law.n, -1)).reshape(values.shape)
    edges = np.concatenate([starts[:, :1], starts + lengths], axis=1) - 1.0
    exact = np.diff(law.law.cdf(edges, _columns(law)), axis=1)
    if np.abs(masses.sum(axis=2) - exact).sum(axis=1).max() > _MAX_PROBABILITY_MISSED:
        return None
    return values.reshape(law.n, -1), masses.reshape(law.n, -1)


def _masses(law: Distribution, counts: FloatArray) -> FloatArray:
    """Probabilities of counts, shape (n, s)."""
    return np.exp(law.law.log_density(counts, _columns(law)))


def _columns(law: Distribution) -> dict[str, FloatArray]:
    return {name: value[:, None] for name, value in law.parameters.items()}


# ---- a few counts, with weights, that stand for all counts of a wide law -------------------------
# A sum over a run of counts of something smooth needs only some of them: the rule is Gauss's for
# whole numbers (whose orthogonal polynomials are Gram's), with its places rounded to whole numbers
# and its weights settled anew. Runs are as long as the law and the kernel are smooth, and grow from
# short ones at an end where the law stops.

# Gauss's rule of 16 places is exact to degree 31, and for a bell over ±3 sd to 4 · 10⁻¹³ (24 reach
# the last digit).
PLACES_OF_RUN: Final = 16
"""Places in a run; shorter runs are counted one by one."""

# Lengths are whole numbers of 64 bits.
_MAX_LENGTH_OF_RUN: Final = 1 << 60


@lru_cache(maxsize=64)
def lattice_rule(length: int) -> tuple[FloatArray, FloatArray]:
    """Places in 0 … length − 1 and weights that sum a smooth function over all of them.

    Exact for polynomials of degree below 16, and nearly so below 32 on long runs: a Gaussian bump
    is summed to 2e-13 of its sum on a run of two of its standard deviations, to 2e-10 on three.
    """
    if length <= PLACES_OF_RUN:
        places = np.arange(float(PLACES_OF_RUN))
        return np.minimum(places, length - 1.0), (places < length).astype(np.float64)
    order = np.arange(1.0, PLACES_OF_RUN)
    beta = np.square(order) * (float(length) ** 2 - np.square(order))
    beta /= 4.0 * (4.0 * np.square(order) - 1.0)
    side = np.sqrt(beta)
    roots, vectors = np.linalg.eigh(np.diag(side, 1) + np.diag(side, -1))
    half = 0.5 * (length - 1.0)
    places = np.rint(roots + half)
    sums = (np.square(vectors[0]) * length) @ _polynomials(roots / half)
    weights = np.linalg.solve(_polynomials((places - half) / half).T, sums)
    return places, weights


def _polynomials(at: FloatArray) -> FloatArray:
    return np.asarray(np.polynomial.legendre.legvander(at, PLACES_OF_RUN - 1))


def lattice_runs(
    low: FloatArray,
    high: FloatArray,
    *,
    longest: FloatArray,
    stops_below: BoolArray,
    stops_above: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """Cut every row's counts in runs of 16, 32, 64, … counts, the last of what remains."""
    at, starts, lengths = low.copy(), [], []
    most = _power_below(np.clip(longest, PLACES_OF_RUN, _MAX_LENGTH_OF_RUN))
    while (remaining := np.maximum(high - at + 1.0, 0.0)).any():
        step = np.where(stops_below, np.minimum(most, np.maximum(at - low, PLACES_OF_RUN)), most)
        near = np.where(stops_above, remaining / 2.0, remaining)
        step = _power_below(np.maximum(np.minimum(step, near), PLACES_OF_RUN))
        step = np.minimum(step, remaining)
        starts.append(at)
        lengths.append(step)
        at = at + step
    return np.stack(starts, axis=1), np.stack(lengths, axis=1)


def lattice_nodes(starts: FloatArray, lengths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Places and weights of the runs of `lattice_runs`, shape (n, k, 16) each."""
    different, which = np.unique(lengths, return_inverse=True)
    rules = [lattice_rule(max(int(length), 1)) for length in different]
    places = np.stack([rule[0] for rule in rules])[which.reshape(lengths.shape)]
    weights = np.stack([rule[1] for rule in rules])[which.reshape(lengths.shape)]
    return starts[:, :, None] + places, np.where(lengths[:, :, None] > 0.0, weights, 0.0)


def _power_below(values: FloatArray) -> FloatArray:
    """The largest power of two that is no greater."""
    return np.ldexp(0.5, np.frexp(values)[1])
