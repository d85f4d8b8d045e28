"""Scores and calibration measures from their definitions, slowly and in plain sight."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

_TAILS = 10.0 ** -np.arange(0.5, 12.5, 0.5)
_LEVELS = np.concatenate([_TAILS[::-1], [0.5], 1.0 - _TAILS[_TAILS > 1e-9]])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)


def interval_score(y: float, lower: float, upper: float, coverage: float) -> float:
    alpha = 1 - coverage
    score = upper - lower
    if y < lower:
        score += 2 / alpha * (lower - y)
    if y > upper:
        score += 2 / alpha * (y - upper)
    return score


def pinball(y: float, quantile: float, level: float) -> float:
    return level * (y - quantile) if y >= quantile else (1 - level) * (quantile - y)


def crps_continuous(law: Any, y: float) -> float:
    """Both tails, split at quantiles of the law; Gauss–Legendre on each piece.

    On an endless piece x = edge ± s (e^v − 1) with v in 40 pieces of length 2, so that tails of
    any power fall exponentially.
    """
    lowest, highest = law.support()
    inner = [lowest, *law.ppf(_LEVELS).tolist(), highest]
    left = [*(q for q in inner if q < y), y]
    right = [y, *(q for q in inner if q > y)]
    scale = float(law.ppf(0.75) - law.ppf(0.25))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow in SciPy's own formulas far out
        down = _pieces(lambda x: law.cdf(x) ** 2, left, scale)
        return down + _pieces(lambda x: law.sf(x) ** 2, right, scale)


def _pieces(function: Callable[[Any], Any], edges: list[float], scale: float) -> float:
    total = 0.0
    for low, high in itertools.pairwise(edges):
        if math.isfinite(high - low):
            total += _gauss(function, low, high)
            continue
        edge, sign = (low, 1.0) if math.isfinite(low) else (high, -1.0)

        def stretched(v: Any, edge: float = edge, sign: float = sign) -> Any:
            return function(edge + sign * scale * np.expm1(v)) * scale * np.exp(v)

        total += sum(_gauss(stretched, 2.0 * step, 2.0 * step + 2.0) for step in range(40))
    return total


def _gauss(function: Callable[[Any], Any], low: float, high: float) -> float:
    half = (high - low) / 2
    return half * float(_WEIGHTS @ function((low + high) / 2 + half * _NODES))


def crps_counts(cdf: Callable[[np.ndarray], np.ndarray], y: float, low: int, high: int) -> float:
    """Sum over the cells [k, k + 1), the one with y cut in two."""
    total = 0.0
    for k, share in zip(range(low, high + 1), cdf(np.arange(low, high + 1)), strict=True):
        before = min(max(y - k, 0.0), 1.0)
        total += before * share**2 + (1 - before) * (1 - share) ** 2
    return total


def crps_samples(y: float, samples: np.ndarray, *, fair: bool) -> float:
    m = len(samples)
    pairs = sum(abs(a - b) for a in samples for b in samples)
    return float(np.abs(samples - y).mean() - pairs / (2 * m * (m - 1 if fair else m)))


def row_share(left: float, right: float, p: float) -> float:
    """Share of one row's cell at or below p."""
    if left == right:
        return float(p >= right)
    return min(max((p - left) / (right - left), 0.0), 1.0)


def shares(left: np.ndarray, right: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Shares of each row at each grid point, shape (n, k)."""
    return np.array([[row_share(a, b, p) for p in grid] for a, b in zip(left, right, strict=True)])


def folded_share(left: float, right: float, p: float) -> float:
    """Share of one row's cell inside the centred interval of coverage p."""
    low, high = (1 - p) / 2, (1 + p) / 2
    if left == right:
        return float(abs(2 * right - 1) <= p)
    return max(min(right, high) - max(left, low), 0.0) / (right - left)


def calibration_error(
    left: np.ndarray, right: np.ndarray, grid: np.ndarray, exponent: float, weighting: str
) -> float:
    observed = shares(left, right, grid).mean(axis=0)
    factor = np.ones(len(grid)) if weighting == "uniform" else observed
    return float(np.sum(factor / factor.sum() * np.abs(grid - observed) ** exponent))


def miscalibration_area(
    left: np.ndarray, right: np.ndarray, *, interval: bool, points: int = 20_001
) -> float:
    """Trapezoid over a fine grid."""
    grid = np.linspace(0, 1, points)
    if interval:
        low, high = (1 - grid) / 2, (1 + grid) / 2
        inside = np.minimum(right[:, None], high) - np.maximum(left[:, None], low)
        width = np.where(right > left, right - left, 1.0)[:, None]
        point = np.abs(2 * right[:, None] - 1) <= grid
        seen = np.where((right > left)[:, None], np.maximum(inside, 0) / width, point)
    else:
        width = np.where(right > left, right - left, 1.0)[:, None]
        part = np.clip((grid - left[:, None]) / width, 0, 1)
        seen = np.where((right > left)[:, None], part, grid >= right[:, None])
    return float(np.trapezoid(np.abs(seen.mean(axis=0) - grid), grid))


def exact_area(left: np.ndarray, right: np.ndarray) -> float:
    """∫₀¹ |q(p) − p| dp in rational numbers: between the ends of the cells q is straight."""
    cells = [(Fraction(a), Fraction(b)) for a, b in zip(left, right, strict=True)]
    knots = sorted({Fraction(0), Fraction(1), *(end for cell in cells for end in cell)})

    def gap(p: Fraction, after: Fraction) -> Fraction:
        seen = Fraction(0)
        for low, high in cells:
            seen += (high <= after) if low == high else min(max((p - low) / (high - low), 0), 1)
        return seen / len(cells) - p

    total = Fraction(0)
    for start, end in itertools.pairwise(knots):
        one, two = gap(start, start), gap(end, start)
        height = (abs(one) + abs(two)) / 2
        if one * two < 0:
            height = (one**2 + two**2) / (abs(one) + abs(two)) / 2
        total += height * (end - start)
    return float(total)


def ence(error: np.ndarray, sd: np.ndarray, bins: int) -> float:
    """Each row cut into as many equal pieces as there are bins, then bins of n pieces each."""
    order = np.argsort(sd, kind="stable")
    e, s = np.repeat(error[order], bins), np.repeat(sd[order], bins)
    gaps = []
    for part in np.split(np.arange(len(e)), bins):
        rmse = math.sqrt(np.mean(e[part] ** 2))
        rmv = math.sqrt(np.mean(s[part] ** 2))
        gaps.append(abs(rmv - rmse) / rmv)
    return float(np.mean(gaps))


def derivative(value: Callable[[np.ndarray], float], n: int, step: float = 1e-5) -> np.ndarray:
    """n times the derivative of a statistic by each row's weight, at weights of one.

    What the influence values must be, if θ(w) ≈ θ + Σ w_i ψ_i / Σ w_i.
    """
    out = np.empty(n)
    for row in range(n):
        up, down = np.ones(n), np.ones(n)
        up[row] += step
        down[row] -= step
        out[row] = n * (value(up) - value(down)) / (2 * step)
    return out
