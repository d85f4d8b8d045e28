"""Exact inference on a share: how many of n rows were covered.

Everything takes arrays of counts and answers for all groups at once. Counts need not be whole:
the beta laws behind the exact answers continue to fractions, which serves Kish's effective n of
importance weights; such answers are approximate.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import special

from howsure.core.arrays import FloatArray, as_vector, check_fraction
from howsure.core.errors import InputError
from howsure.stats.roots import root

Alternative = Literal["two-sided", "less", "greater"]
# How near to 0 or 1 a share may be before logits are taken: those of 0 and 1 are infinite. At 10⁻⁹
# (±21) certain rows move last, and still move.
_MARGIN_OF_CERTAINTY = 1e-9


def clopper_pearson(
    covered: npt.ArrayLike, n: npt.ArrayLike, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Exact two-sided confidence interval for a share.

    Source: C. J. Clopper and E. S. Pearson, Biometrika 26 (1934). With α = 1 − confidence the
    ends are the α/2 quantile of Beta(k, n − k + 1) and the 1 − α/2 quantile of
    Beta(k + 1, n − k). It excludes p exactly where the two-sided `binomial_test` of p has a
    p-value below α.
    """
    tail = (1 - check_fraction(confidence, "confidence")) / 2
    k, total = _checked(covered, n)
    return _lower(k, total, tail), _upper(k, total, tail)


def wilson(
    covered: npt.ArrayLike, n: npt.ArrayLike, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval for a share: approximate, shorter than the exact one.

    Source: E. B. Wilson, JASA 22 (1927): the p with |k/n − p| ≤ z √(p(1 − p)/n).
    """
    z = float(special.ndtri((1 + check_fraction(confidence, "confidence")) / 2))
    k, total = _checked(covered, n)
    centre = (k + z * z / 2) / (total + z * z)
    half = z * np.sqrt(k * (1 - k / np.maximum(total, 1e-300)) + z * z / 4) / (total + z * z)
    lower = np.where(k <= 0, 0.0, centre - half)
    upper = np.where(k >= total, 1.0, centre + half)
    return lower, upper


def binomial_test(
    covered: npt.ArrayLike,
    n: npt.ArrayLike,
    share: npt.ArrayLike,
    alternative: Alternative = "two-sided",
) -> FloatArray:
    """Exact p-value that the true share is as stated.

    One-sided p-values are P(X ≤ k) and P(X ≥ k). The two-sided p-value is twice the smaller,
    at most 1 (the central test), so that it always agrees with the Clopper–Pearson interval;
    SciPy's ``binomtest`` sums the less likely outcomes instead, and may not.
    """
    k, total = _checked(covered, n)
    p = np.asarray(share, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"share must be in [0, 1], got {share!r}")
    k, total, p = np.broadcast_arrays(k, total, p)
    if alternative not in get_args(Alternative):
        raise InputError(f"alternative must be one of {get_args(Alternative)}, got {alternative!r}")
    if alternative == "less":
        return _at_most(k, total, p)
    if alternative == "greater":
        return _at_least(k, total, p)
    both = 2 * np.minimum(_at_most(k, total, p), _at_least(k, total, p))
    return np.asarray(np.minimum(1.0, both))


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Adjust p-values for many tests at once, by Holm's method.

    Source: S. Holm, Scandinavian Journal of Statistics 6 (1979): the i-th smallest of m becomes
    the running maximum of (m − i + 1) p_(i), at most 1.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise InputError(f"p_values must have one dimension, got shape {p.shape}")
    tested = ~np.isnan(p)
    if ((p[tested] < 0) | (p[tested] > 1)).any():
        raise InputError(f"p_values must be in [0, 1], got {np.nanmin(p):g} to {np.nanmax(p):g}")
    adjusted = np.full(len(p), np.nan)
    tests = np.flatnonzero(tested)
    order = tests[np.argsort(p[tests], kind="stable")]
    factors = len(order) - np.arange(len(order))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p[order]), 1.0)
    return adjusted


def shift_shares(
    shares: npt.ArrayLike, mean: float, weights: npt.ArrayLike | None = None
) -> FloatArray:
    """Move shares by one step on the logit scale, so that their mean is as wanted."""
    p = as_vector(shares, "shares")
    if ((p < 0) | (p > 1)).any():
        raise InputError(f"shares must be in [0, 1], got {p.min():g} to {p.max():g}")
    if not 0 <= mean <= 1:
        raise InputError(f"mean must be in [0, 1], got {mean!r}")
    mass = np.ones(len(p)) if weights is None else as_vector(weights, "weights", length=len(p))
    if mean in (0.0, 1.0) or p.min() == p.max():
        return np.full(len(p), float(mean))

    order = np.lexsort((mass, p))  # so that the order of the rows leaves no rounding
    # Certain rows move too: else a mean below their share could not be reached.
    odds, mass = (
        special.logit(np.clip(p, _MARGIN_OF_CERTAINTY, 1 - _MARGIN_OF_CERTAINTY)),
        mass[order] / mass.sum(),
    )
    rising = odds[order]

    def off(step: float) -> float:
        return float(mass @ special.expit(rising + step)) - mean

    edge = float(special.logit(mean))
    # Of a step in log odds, as many digits as shares have.
    step = root(off, edge - rising[-1] - 1, edge - rising[0] + 1, 1e-13)
    return np.asarray(special.expit(odds + step))


def worst_part(upper: FloatArray, expected: FloatArray | float, farthest: int) -> int:
    """The part that its interval proves to be covered less than expected by most.

    `upper` are the upper ends of simultaneous intervals. Where no part is covered less, it is
    `farthest`, the one that differs most in either direction.

    >>> worst_part(np.array([0.99, 0.5, 0.8]), np.full(3, 0.9), farthest=0)
    1
    """
    short = np.nan_to_num(expected - upper, nan=0.0)
    return int(short.argmax()) if (short > 0).any() else farthest


def _checked(covered: npt.ArrayLike, n: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    k, total = np.broadcast_arrays(
        np.asarray(covered, dtype=np.float64), np.asarray(n, dtype=np.float64)
    )
    legal = np.isfinite(k) & np.isfinite(total) & (k >= 0) & (k <= total)
    if not legal.all():
        first = int(np.argmin(legal))
        raise InputError(
            "covered and n must be finite with 0 <= covered <= n, "
            f"got covered {k.flat[first]:g} of n {total.flat[first]:g} (place {first})"
        )
    return k, total


def _lower(k: FloatArray, n: FloatArray, tail: float) -> FloatArray:
    inside = k > 0
    ends = special.betaincinv(np.where(inside, k, 1.0), n - k + 1, tail)
    return np.where(inside, ends, 0.0)


def _upper(k: FloatArray, n: FloatArray, tail: float) -> FloatArray:
    inside = k < n
    ends = special.betainccinv(k + 1, np.where(inside, n - k, 1.0), tail)
    return np.where(inside, ends, 1.0)


def _at_least(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """P(X ≥ k) = I_p(k, n − k + 1)."""
    inside = k > 0
    return np.where(inside, special.betainc(np.where(inside, k, 1.0), n - k + 1, p), 1.0)


def _at_most(k: FloatArray, n: FloatArray, p: FloatArray) -> FloatArray:
    """P(X ≤ k) = 1 − I_p(k + 1, n − k)."""
    inside = k < n
    return np.where(inside, special.betaincc(k + 1, np.where(inside, n - k, 1.0), p), 1.0)
