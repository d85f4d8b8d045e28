"""Scores and calibration measures from their definitions, slowly and in plain sight."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate

_LEVELS = (
    1e-12,
    1e-9,
    1e-6,
    1e-4,
    0.01,
    0.1,
    0.25,
    0.5,
    0.75,
    0.9,
    0.99,
    0.9999,
    1 - 1e-6,
    1 - 1e-9,
)


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
    """Both tails by adaptive quadrature, split at quantiles of the law."""
    lowest, highest = law.support()
    inner = [float(law.ppf(level)) for level in _LEVELS]
    left = [lowest, *sorted(q for q in inner if lowest < q < y), y] if lowest < y else []
    right = [y, *sorted(q for q in inner if y < q < highest), highest] if y < highest else []
    return _pieces(lambda x: float(law.cdf(x)) ** 2, left) + _pieces(
        lambda x: float(law.sf(x)) ** 2, right
    )


def _pieces(function: Callable[[float], float], edges: list[float]) -> float:
    total = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", integrate.IntegrationWarning)
        for low, high in zip(edges[:-1], edges[1:], strict=True):
            if high > low:
                total += integrate.quad(function, low, high, epsabs=0, epsrel=1e-11, limit=400)[0]
    return total


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
