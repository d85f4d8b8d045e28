"""Area and gains of the bandwidth–miss-rate curve as statistics, beside those of a perfect model.

Everything here follows from two numbers a row: the critical scale k and the half-width z. With
c = mean z, the exact area is c·mean k, and the area where the miss rate is at most r is
c·mean (k − K)₊, where K is the scale that leaves a share r missed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from howsure.core.arrays import FloatArray
from howsure.metrics.characteristic.area import AreaRequest
from howsure.metrics.characteristic.bands import Bands
from howsure.metrics.characteristic.curve import CharacteristicCurve
from howsure.stats.estimate import Estimate, mean_statistic
from howsure.stats.quantiles import quantile_statistic

LOW_MISS_RATE = 0.2


@dataclass(frozen=True, slots=True)
class PerfectGains:
    """Gains (%) of simulated perfectly specified models: mean and the middle 90 %."""

    overall: tuple[float, float, float]
    partial: tuple[float, float, float]
    method: str


def area_statistic(curve: CharacteristicCurve) -> Estimate:
    """Exact area under the curve (AUUCC), in units of y; lower is better.

    Parameters
    ----------
    curve : CharacteristicCurve
        On bandwidth and miss rate, scaled.

    Returns
    -------
    Estimate
        A = c·mean k with its delta-method influence c(k − k̄) + k̄(z − c); infinite, with the
        reason, where some row is never captured.

    Examples
    --------
    >>> from howsure.metrics.characteristic import characteristic_curve
    >>> y, point = [1.0, -2.0, 0.5, 3.0], [0.0] * 4
    >>> lower, upper = [-1.0, -1.0, -1.0, -2.0], [1.0, 1.0, 1.0, 2.0]
    >>> area_statistic(characteristic_curve(y, point, lower, upper)).value
    1.5625
    """
    found = curve.area()
    if not found.complete:
        return Estimate(math.inf, reason=found.reason)
    influence = _partial(curve.bands, 1.0).influence
    return Estimate(found.value, influence, details={"convention": "exact"})


def gain_statistic(
    curve: CharacteristicCurve,
    perfect: PerfectGains | None = None,
    *,
    miss_rate: float | None = None,
) -> Estimate:
    """How much smaller the area is than a constant band's, in percent; higher is better.

    Parameters
    ----------
    curve : CharacteristicCurve
        On bandwidth and miss rate, scaled.
    perfect : PerfectGains, optional
        What a perfectly specified model of the same widths gains: becomes ``null``.
    miss_rate : float, optional
        Only the part of the curves where the miss rate is at most this; the whole if omitted.

    Returns
    -------
    Estimate
        100·(A_const − A)/A_const with its delta-method influence.

    Examples
    --------
    >>> from howsure.metrics.characteristic import characteristic_curve
    >>> y, point = [1.0, -2.0, 0.5, 3.0], [0.0] * 4
    >>> lower, upper = [-1.0, -1.0, -1.0, -2.0], [1.0, 1.0, 1.0, 2.0]
    >>> gain_statistic(characteristic_curve(y, point, lower, upper)).value
    3.846
    """
    request = AreaRequest() if miss_rate is None else AreaRequest(y_range=(0.0, miss_rate))
    found = curve.gain_by(request)
    if math.isnan(found.value):
        return Estimate(math.nan, reason=found.reason)
    share = 1.0 if miss_rate is None else miss_rate
    own, constant = _partial(curve.bands, share), _partial(curve.bands.constant(), share)
    influence = None
    if own.influence is not None and constant.influence is not None:
        ratio = own.value / constant.value
        influence = -100.0 * (own.influence - ratio * constant.influence) / constant.value
    details: dict[str, str | float] = {"convention": "exact"}
    if perfect is None:
        return Estimate(found.value, influence, details=details)
    value, low, high = perfect.overall if miss_rate is None else perfect.partial
    details["perfect_by"] = perfect.method
    return Estimate(found.value, influence, value, details=details, null_lower=low, null_upper=high)


def perfect_gains(
    bands: Bands,
    errors: Iterable[FloatArray],
    method: str,
    *,
    miss_rate: float = LOW_MISS_RATE,
) -> PerfectGains:
    """Gains of a perfectly specified model with the same points and widths.

    Parameters
    ----------
    bands : Bands
        Unweighted; its own errors are not used.
    errors : iterable of ndarray of shape (n,)
        Errors that a perfectly specified model would make, a replicate each.
    method : str
        How they were made.
    miss_rate : float
        Upper end of the partial range.

    Returns
    -------
    PerfectGains
    """
    width = (bands.below + bands.above) / 2.0
    gains = []
    for error in errors:
        distance = np.abs(error)
        scale = distance / np.where(error >= 0, bands.above, bands.below)
        own, constant = float(width.mean()), float(distance.mean())
        top, flat = _tail_mean(scale, miss_rate), _tail_mean(distance, miss_rate)
        gains.append((_gain(own * float(scale.mean()), constant), _gain(own * top, flat)))
    table = np.array(gains)
    ends = np.quantile(table, [0.05, 0.95], axis=0)
    return PerfectGains(
        (float(table[:, 0].mean()), float(ends[0, 0]), float(ends[1, 0])),
        (float(table[:, 1].mean()), float(ends[0, 1]), float(ends[1, 1])),
        method,
    )


def permuted_errors(
    bands: Bands, rng: np.random.Generator, replicates: int
) -> Iterable[FloatArray]:
    """Errors that follow the widths perfectly: each row gets another row's signed scale."""
    signed = np.sign(bands.error) * bands.critical()
    for _ in range(replicates):
        moved = rng.permutation(signed)
        yield moved * np.where(moved >= 0, bands.above, bands.below)


def _gain(area: float, constant: float) -> float:
    return 100.0 * (1.0 - area / constant) if constant > 0 else math.nan


def _tail_mean(values: FloatArray, share: float) -> float:
    """mean (v − K)₊ with K the smallest value that leaves at most this share above it."""
    place = max(math.ceil(round((1.0 - share) * len(values), 9)) - 1, 0)
    part = np.partition(values, place)
    return float((part[place + 1 :] - part[place]).sum()) / len(values)


def _partial(bands: Bands, share: float) -> Estimate:
    """Area where the miss rate is at most a share: c·mean (k − K)₊, with its influence."""
    scale, weights = bands.critical(), bands.weights
    width = (bands.below + bands.above) / 2.0
    half = float(np.average(width, weights=weights))
    if share >= 1.0:
        tail = mean_statistic(scale, weights)
        edge_influence = np.zeros(len(scale))
    else:
        edge = quantile_statistic(scale, 1.0 - share, weights=weights)
        tail = mean_statistic(np.maximum(scale - edge.value, 0.0), weights)
        if edge.influence is None:
            return Estimate(half * tail.value)
        edge_influence = edge.influence
    if tail.influence is None:
        return Estimate(half * tail.value)
    moved = tail.influence - share * edge_influence * (share < 1.0)
    return Estimate(half * tail.value, half * moved + tail.value * (width - half))
