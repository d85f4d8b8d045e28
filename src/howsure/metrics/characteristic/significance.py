"""Do two models' areas differ by more than chance? A paired permutation test."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from howsure.metrics.characteristic.resampling import Units, check_pair, is_product, units_of
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
    return permutation_tests(
        (first, second),
        [(0, 1)],
        request,
        permutations=permutations,
        cluster=cluster,
        seed=seed,
    )[0]


def permutation_tests(
    curves: Sequence[CharacteristicCurve],
    pairs: Sequence[tuple[int, int]],
    request: AreaRequest | None = None,
    *,
    permutations: int | None = None,
    cluster: npt.ArrayLike | None = None,
    seed: int = 0,
) -> list[PermutationTest]:
    """`permutation_test` of pairs of several models, all on the same swaps.

    By products, the sums over swapped rows are linear in each model, so those of a pair are a
    difference of two columns of one product, however many pairs there are.
    """
    for curve in curves[1:]:
        check_pair(curves[0], curve)
    request = resampling_request(request, curves[0].y_axis)
    by_products = is_product(curves[0], request)
    if permutations is None:
        permutations = BY_PRODUCTS if by_products else BY_CURVES
    check_whole(permutations, "permutations")
    units = units_of(curves[0].bands, cluster)
    areas = [curve.area_by(request) for curve in curves]
    bands = {
        place: _normalised(curve.bands)
        for place, curve in enumerate(curves)
        if not areas[place].reason
    }
    swaps = None
    if by_products and bands:
        swaps = _Swaps.drawn(bands, units, permutations, _generator(seed))
    tests = []
    for one, two in pairs:
        difference = areas[one].value - areas[two].value
        reason = areas[one].reason or areas[two].reason
        p_value = math.nan
        if not reason:
            swapped = (
                _by_curves(
                    curves[0],
                    [bands[one], bands[two]],
                    units,
                    request,
                    permutations,
                    _generator(seed),
                )
                if swaps is None
                else swaps.differences(one, two)
            )
            least = abs(difference) - _ROUNDING * max(areas[one].value, areas[two].value)
            p_value = (1 + int(np.sum(np.abs(swapped) >= least))) / (1 + permutations)
        tests.append(
            PermutationTest(
                difference=difference,
                p_value=p_value,
                permutations=permutations,
                method="products" if by_products else "curves",
                units=units.count,
                first=areas[one],
                second=areas[two],
                reason=reason,
            )
        )
    return tests


def _generator(seed: int) -> np.random.Generator:
    return child(seed, "characteristic", "permutation")


def _normalised(bands: Bands) -> Bands:
    """Bands of mean 1. A bias has the units of y, so bands moved by one keep their size."""
    if bands.move == "bias":
        return bands
    size = bands.mean_band()
    return replace(bands, below=bands.below / size, above=bands.above / size)


@dataclass(frozen=True, slots=True, eq=False)
class _Swaps:
    """Sums over the swapped rows, and over all: of half widths, and of critical scales."""

    places: dict[int, int]
    swapped: FloatArray
    whole: FloatArray

    @classmethod
    def drawn(
        cls, bands: dict[int, Bands], units: Units, permutations: int, rng: np.random.Generator
    ) -> _Swaps:
        held = list(bands.values())
        columns = np.stack(
            [
                *(0.5 * (one.below + one.above) for one in held),
                *(one.critical() for one in held),
            ],
            axis=1,
        )
        total = held[0].total
        if units.copies is None:
            columns *= units.spread(np.ones(units.count))[:, None]
        by_unit = columns
        if units.code is not None:
            by_unit = np.stack(
                [np.bincount(units.code, column, units.count) for column in columns.T], axis=1
            )
        copies = np.ones(len(by_unit)) if units.copies is None else units.copies
        by_unit, copies = _merged(by_unit, copies)
        # Each model beside the first: what two models share need not be told apart by rounding.
        first = by_unit.reshape(len(by_unit), 2, -1)[:, :, :1]
        steps = (by_unit.reshape(len(by_unit), 2, -1) - first).reshape(len(by_unit), -1)
        swapped = _random_sums(steps, copies, permutations, rng) / total
        return cls(
            {place: index for index, place in enumerate(bands)},
            swapped.reshape(permutations, 2, -1),
            (copies @ by_unit).reshape(2, -1) / total,
        )

    def differences(self, first: int, second: int) -> FloatArray:
        """Differences of whole areas under swaps: each area is a product of two sums."""
        one, two = self.places[first], self.places[second]
        moved = self.swapped[:, :, two] - self.swapped[:, :, one]
        area_1: FloatArray = np.prod(self.whole[:, one] + moved, axis=1)
        area_2: FloatArray = np.prod(self.whole[:, two] - moved, axis=1)
        return area_1 - area_2


def _merged(rows: FloatArray, copies: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Equal rows as one with their copies, in the order in which they came.

    So that a weight draws as the row written out, and one model more changes no other pair.
    """
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    counts = np.bincount(place.ravel(), weights=copies).astype(np.float64)
    order = np.argsort(first)
    return rows[first[order]], counts[order]


def _random_sums(
    values: FloatArray, copies: FloatArray, repeats: int, rng: np.random.Generator
) -> FloatArray:
    """Sums of random halves of the copies of rows of a table, one half a repeat."""
    sums = np.zeros((repeats, values.shape[1]))
    lone, many = values[copies == 1], copies > 1
    for begin in range(0, len(lone), _BLOCK):
        block = lone[begin : begin + _BLOCK]
        noise = rng.integers(0, 256, (repeats, -(-len(block) // 8)), dtype=np.uint8)
        swaps = np.unpackbits(noise, axis=1, count=len(block))
        sums += swaps.astype(np.float64) @ block
    heavy, counts = values[many], copies[many].astype(np.int64)
    for begin in range(0, len(heavy), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        gone = rng.binomial(counts[part], 0.5, (repeats, len(counts[part])))
        sums += gone.astype(np.float64) @ heavy[part]
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
