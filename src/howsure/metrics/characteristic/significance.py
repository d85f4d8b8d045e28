"""Do two models' areas differ by more than chance? A paired permutation test."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray
from howsure.core.convert import check_whole
from howsure.core.rng import child
from howsure.metrics.characteristic.area import Area, AreaRequest, area_of, path_of
from howsure.metrics.characteristic.bands import Bands
from howsure.metrics.characteristic.curve import CharacteristicCurve
from howsure.metrics.characteristic.reference import resampling_request
from howsure.metrics.characteristic.resampling import Units, check_pair, units_of
from howsure.metrics.characteristic.trace import axes_needed, find_kinks, trace

BY_PRODUCTS = 10_000
BY_CURVES = 1_000
_BLOCK = 512
_ROUNDING = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest:
    """Outcome of a paired permutation test of two areas.

    Attributes
    ----------
    difference : float
        Area of the first model minus that of the second; negative where the first is better.
    p_value : float
        (1 + #{|Δ*| ≥ |Δ|})/(1 + permutations), two-sided; NaN where `reason` says why.
    permutations : int
        Random swaps drawn.
    method : {"products", "curves"}
        Areas by two matrix products, or by a curve for each swap (with fewer swaps by default).
    units : int
        Rows or clusters that were swapped.
    first, second : Area
        The two areas.
    reason : str
        Why there is no p-value.
    """

    difference: float
    p_value: float
    permutations: int
    method: str
    units: int
    first: Area
    second: Area
    reason: str = ""


def permutation_test(
    first: CharacteristicCurve,
    second: CharacteristicCurve,
    request: AreaRequest | None = None,
    *,
    permutations: int | None = None,
    cluster: npt.ArrayLike | None = None,
    seed: int = 0,
) -> PermutationTest:
    """Swap the two models' bands and critical scales row by row, at random.

    Scaling is free, so a model's bands are known up to a factor: before any swap each model's
    bands are divided by their mean and its critical scales multiplied by it. Otherwise the
    p-value would depend on that factor. Rows are swapped with probability ½, clusters whole.

    The whole exact area on bandwidth and miss rate is a product of two means, mean band and mean
    critical scale. Under swaps s ∈ {0, 1}ⁿ both means are linear in s, so all areas follow from
    two products of the matrix of swaps. Any other area needs a curve for each swap: the kinks of
    both models are sorted once, and a swap chooses which of them count.

    Source: Navrátil et al., section 2.2.6 (the test); the normalisation is ours.

    Parameters
    ----------
    first, second : CharacteristicCurve
        Of two models on the same rows, and on the same axes.
    request : AreaRequest, optional
        Which area; by default the whole, exactly.
    permutations : int, optional
        Random swaps; by default 10,000 by products and 1,000 by curves.
    cluster : array-like of shape (rows,), optional
        Labels of clusters of dependent rows, swapped whole.
    seed : int
        Of the randomness.

    Returns
    -------
    PermutationTest

    Raises
    ------
    InputError
        If the models are not on the same rows and axes, or the convention is ``uq360``.

    Examples
    --------
    >>> from howsure.metrics.characteristic import bands_from_sd, characteristic_curve
    >>> rng = np.random.default_rng(0)
    >>> sd, zero, y = rng.uniform(0.5, 2.0, 500), np.zeros(500), rng.normal(0.0, 1.0, 500)
    >>> first = characteristic_curve(y, *bands_from_sd(zero, zero + 1))
    >>> second = characteristic_curve(y, *bands_from_sd(zero, sd))
    >>> permutation_test(first, second).p_value < 0.001
    True
    """
    check_pair(first, second)
    request = resampling_request(request, first.y_axis)
    by_products = (first.x_axis, first.y_axis, first.bands.move) == (
        "bandwidth",
        "miss_rate",
        "scale",
    ) and request == AreaRequest()
    if permutations is None:
        permutations = BY_PRODUCTS if by_products else BY_CURVES
    check_whole(permutations, "permutations")
    units = units_of(first.bands, cluster)
    areas = [curve.area_by(request) for curve in (first, second)]
    difference = areas[0].value - areas[1].value
    reason = areas[0].reason or areas[1].reason
    p_value = math.nan
    if not reason:
        bands = [_normalised(curve.bands) for curve in (first, second)]
        rng = child(seed, "characteristic", "permutation")
        if by_products:
            swapped = _by_products(bands, units, permutations, rng)
        else:
            swapped = _by_curves(first, bands, units, request, permutations, rng)
        least = abs(difference) - _ROUNDING * max(areas[0].value, areas[1].value)
        p_value = (1 + int(np.sum(np.abs(swapped) >= least))) / (1 + permutations)
    return PermutationTest(
        difference=difference,
        p_value=p_value,
        permutations=permutations,
        method="products" if by_products else "curves",
        units=units.count,
        first=areas[0],
        second=areas[1],
        reason=reason,
    )


def _normalised(bands: Bands) -> Bands:
    """Bands of mean 1. A bias has the units of y, so bands moved by one keep their size."""
    if bands.move == "bias":
        return bands
    size = bands.mean_band()
    return replace(bands, below=bands.below / size, above=bands.above / size)


def _by_products(
    bands: list[Bands], units: Units, permutations: int, rng: np.random.Generator
) -> FloatArray:
    """Differences of whole areas under swaps: each area is a product of two sums."""
    half_width, scale = (
        np.stack(columns)
        for columns in (
            [0.5 * (one.below + one.above) for one in bands],
            [one.critical() for one in bands],
        )
    )
    weights = units.spread(np.ones(units.count)) if units.copies is None else None
    sums, steps = [], []
    for columns in (half_width, scale):
        weighted = columns if weights is None else columns * weights
        step = weighted[1] - weighted[0]
        if units.code is not None:
            step = np.bincount(units.code, weights=step, minlength=units.count)
        if units.copies is not None:
            weighted = columns * units.copies[slice(None) if units.code is None else units.code]
            step = np.repeat(step, units.copies.astype(np.int64))
        sums.append(weighted.sum(axis=1))
        steps.append(step)
    total = bands[0].total
    moved = _random_sums(np.stack(steps, axis=1), permutations, rng) / total
    (wide_1, wide_2), (far_1, far_2) = sums[0] / total, sums[1] / total
    area_1: FloatArray = (wide_1 + moved[:, 0]) * (far_1 + moved[:, 1])
    area_2: FloatArray = (wide_2 - moved[:, 0]) * (far_2 - moved[:, 1])
    return area_1 - area_2


def _random_sums(values: FloatArray, repeats: int, rng: np.random.Generator) -> FloatArray:
    """Sums of random halves of the rows of a table, one half a repeat."""
    sums = np.zeros((repeats, values.shape[1]))
    for begin in range(0, len(values), _BLOCK):
        block = values[begin : begin + _BLOCK]
        noise = rng.integers(0, 256, (repeats, -(-len(block) // 8)), dtype=np.uint8)
        swaps = np.unpackbits(noise, axis=1, count=len(block))
        sums += swaps.astype(np.float64) @ block
    return sums


def _by_curves(
    curve: CharacteristicCurve,
    bands: list[Bands],
    units: Units,
    request: AreaRequest,
    permutations: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Differences of areas under swaps, by curves over the pooled kinks of both models."""
    one, two = bands
    pooled = replace(
        one,
        y=np.concatenate([one.y, two.y]),
        error=np.concatenate([one.error, two.error]),
        below=np.concatenate([one.below, two.below]),
        above=np.concatenate([one.above, two.above]),
        weights=None,
    )
    axes = axes_needed(curve.x_axis, curve.y_axis)
    kinks = find_kinks(pooled, axes, keep_rows=True)
    everyone = np.ones(units.count) if units.copies is None else units.copies
    differences = np.empty(permutations)
    for index in range(permutations):
        gone = rng.binomial(everyone.astype(np.int64), 0.5).astype(np.float64)
        kept, swapped = units.spread(everyone - gone), units.spread(gone)
        areas = []
        for weights in (np.append(kept, swapped), np.append(swapped, kept)):
            found = trace(kinks, pooled, axes, weights=weights)
            path = path_of(found, curve.x_axis, curve.y_axis, request.convention)
            areas.append(area_of(path, request)[0])
        differences[index] = areas[0] - areas[1]
    return differences
