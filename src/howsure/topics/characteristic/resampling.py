"""Bootstrap bands of the curve, its area and its gain, and of the gain between two models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import AnyArray, FloatArray, IntArray, check_fraction
from howsure.core.classes import frozen
from howsure.core.convert import check_whole
from howsure.core.errors import InputError
from howsure.core.labels import as_labels
from howsure.core.records import Curve
from howsure.core.rng import child
from howsure.topics.characteristic.bands import Bands
from howsure.topics.characteristic.curve import CharacteristicCurve
from howsure.topics.characteristic.trace import (
    Area,
    AreaRequest,
    Kinks,
    Path,
    area_of,
    axes_needed,
    find_kinks,
    path_of,
    resampling_request,
    trace,
)

# 4 million numbers of 64 bits are 32 MB.
_NUMBERS_AT_ONCE = 1 << 22


@frozen(kw_only=True)
class Bootstrapped:
    """A number with its bootstrap standard error and percentile interval.

    Attributes
    ----------
    value : float
        The number itself, not the mean of replicates.
    standard_error, lower, upper : float
        NaN where `reason` says why.
    confidence : float
        Nominal confidence of the interval.
    replicates : int
        Resamples drawn.
    units : int
        Rows or clusters that were resampled.
    reason : str
        What is missing and why.
    """

    value: float
    standard_error: float
    lower: float
    upper: float
    confidence: float
    replicates: int
    units: int
    reason: str = ""


@frozen(kw_only=True)
class BootstrapCurve:
    """A curve with its pointwise bootstrap band, and the intervals of its area and gain.

    Attributes
    ----------
    curve : Curve
        The thinned curve with the band's ends and a constant band as its reference.
    area, gain : Bootstrapped
        In the area's units, and in percent.
    request : AreaRequest
        Which area.
    """

    curve: Curve
    area: Bootstrapped
    gain: Bootstrapped
    request: AreaRequest


@frozen(eq=False)
class Units:
    """What is resampled or swapped as one: rows, or clusters of rows."""

    count: int  # how many there are
    code: IntArray | None  # shape (n,): the unit of each entry; None where each entry is one
    # shape (count,): how often each stands in the data, by frequency weights
    copies: FloatArray | None
    within: FloatArray | None  # shape (n,): weights of entries that hold whatever unit is drawn

    def spread(self, by_unit: FloatArray) -> FloatArray:
        """Weights of entries from multiplicities of units."""
        entry = by_unit if self.code is None else by_unit[self.code]
        return entry if self.within is None else entry * self.within

    def resample(self, rng: np.random.Generator) -> FloatArray:
        """Weights of entries in one resample of as many units as there are, never all 0."""
        while True:
            if self.copies is None:
                drawn = np.bincount(rng.integers(0, self.count, self.count), minlength=self.count)
            else:
                total = self.copies.sum()
                drawn = rng.multinomial(int(total), self.copies / total)
            weights = self.spread(drawn.astype(np.float64))
            if weights.any():
                return weights


def units_of(bands: Bands, cluster: npt.ArrayLike | None) -> Units:
    """Rows, or clusters of rows, as units of resampling."""
    rows = len(bands) // bands.outputs
    if cluster is not None:
        labels: AnyArray = as_labels(cluster, "cluster", length=rows)
        names, member = np.unique(labels, return_inverse=True)
        return Units(len(names), np.repeat(member, bands.outputs), None, bands.weights)
    code = None if bands.outputs == 1 else np.repeat(np.arange(rows), bands.outputs)
    copies = bands.copies
    return Units(rows, code, copies, bands.weights if copies is None else None)


def bootstrap_curve(
    curve: CharacteristicCurve,
    request: AreaRequest | None = None,
    *,
    replicates: int = 1000,
    confidence: float = 0.95,
    cluster: npt.ArrayLike | None = None,
    points: int = 200,
    seed: int = 0,
) -> BootstrapCurve:
    """Resample rows (or clusters), and see how the curve, its area and its gain move.

    The kinks are sorted once; a resample only changes the weights of the running sums.

    Examples
    --------
    >>> from howsure.topics.characteristic.bands import bands_from_sd
    >>> from howsure.topics.characteristic.curve import characteristic_curve
    >>> rng = np.random.default_rng(0)
    >>> sd = rng.uniform(0.5, 2.0, 500)
    >>> curve = characteristic_curve(rng.normal(0.0, sd), *bands_from_sd(np.zeros(500), sd))
    >>> found = bootstrap_curve(curve, replicates=100)
    >>> found.area.lower < found.area.value < found.area.upper
    True
    """
    sampler = Sampler.of(curve, request)
    units = units_of(curve.bands, cluster)
    _check_replicates(replicates, confidence)
    rng = _generator(seed)
    drawn = curve.drawn(points)
    heights = np.empty((replicates, len(drawn.x)))
    areas, gains = np.empty(replicates), np.empty(replicates)
    for index in range(replicates):
        path, areas[index], gains[index] = sampler.draw(units.resample(rng))
        heights[index] = path.value(drawn.x)
    tail = 0.5 * (1.0 - confidence)
    lower, upper = np.quantile(heights, [tail, 1.0 - tail], axis=0)
    gain = curve.gain_by(sampler.request)
    return BootstrapCurve(
        curve=replace(
            drawn, lower=lower, upper=upper, band=f"{confidence:.0%} pointwise bootstrap band"
        ),
        area=_summary(gain.area.value, areas, confidence, units, gain.area.reason),
        gain=_summary(gain.value, gains, confidence, units, gain.reason),
        request=sampler.request,
    )


def bootstrap_gain_difference(
    first: CharacteristicCurve,
    second: CharacteristicCurve,
    request: AreaRequest | None = None,
    *,
    replicates: int = 1000,
    confidence: float = 0.95,
    cluster: npt.ArrayLike | None = None,
    seed: int = 0,
) -> Bootstrapped:
    """Gain of the first model minus that of the second, both on the same resamples.

    Examples
    --------
    >>> from howsure.topics.characteristic.bands import bands_from_sd
    >>> from howsure.topics.characteristic.curve import characteristic_curve
    >>> rng = np.random.default_rng(0)
    >>> sd, zero, y = rng.uniform(0.5, 2.0, 500), np.zeros(500), rng.normal(0.0, 1.0, 500)
    >>> first = characteristic_curve(y, *bands_from_sd(zero, zero + 1))
    >>> second = characteristic_curve(y, *bands_from_sd(zero, sd))
    >>> bootstrap_gain_difference(first, second, replicates=100).lower > 0
    True
    """
    return gain_differences(
        (first, second),
        [(0, 1)],
        request,
        replicates=replicates,
        confidence=confidence,
        cluster=cluster,
        seed=seed,
    )[0]


def gain_differences(
    curves: Sequence[CharacteristicCurve],
    pairs: Sequence[tuple[int, int]],
    request: AreaRequest | None = None,
    *,
    replicates: int = 1000,
    confidence: float = 0.95,
    cluster: npt.ArrayLike | None = None,
    seed: int = 0,
) -> list[Bootstrapped]:
    """`bootstrap_gain_difference` of pairs of several models, all on the same resamples."""
    for curve in curves[1:]:
        check_pair(curves[0], curve)
    _check_replicates(replicates, confidence)
    request = resampling_request(request, curves[0].y_axis)
    units = units_of(curves[0].bands, cluster)
    gains = [curve.gain_by(request) for curve in curves]
    draws = np.empty((replicates, len(curves)))
    alike: dict[bytes, int] = {}  # equal models share a column, so that they differ by exactly 0
    column = [alike.setdefault(_content(curve.bands), p) for p, curve in enumerate(curves)]
    quick = [
        model
        for model in alike.values()
        if is_product(curves[model], request) and np.isfinite(curves[model].bands.critical()).all()
    ]
    if quick:
        bands = [curves[model].bands for model in quick]
        draws[:, quick] = _product_gains(bands, units, replicates, _generator(seed))
    for model in set(alike.values()).difference(quick):
        sampler, rng = Sampler.of(curves[model], request), _generator(seed)
        draws[:, model] = [sampler.draw(units.resample(rng))[2] for _ in range(replicates)]
    return [
        _summary(
            gains[first].value - gains[second].value,
            draws[:, column[first]] - draws[:, column[second]],
            confidence,
            units,
            gains[first].reason or gains[second].reason,
        )
        for first, second in pairs
    ]


def is_product(curve: CharacteristicCurve, request: AreaRequest) -> bool:
    """Whether the area is a product of two means: those of half widths and of critical scales."""
    axes = (curve.x_axis, curve.y_axis, curve.bands.move)
    return axes == ("bandwidth", "miss_rate", "scale") and request == AreaRequest()


def _product_gains(
    bands: Sequence[Bands], units: Units, replicates: int, rng: np.random.Generator
) -> FloatArray:
    """Gains in percent under resamples, shape (replicates, models); bands of 1 miss by |error|."""
    columns = np.stack(
        [
            *(band.half_width for band in bands),
            *(band.critical() for band in bands),
            *(np.abs(band.error) for band in bands),
        ],
        axis=1,
    )
    gains = np.empty((replicates, len(bands)))
    step = max(1, _NUMBERS_AT_ONCE // len(columns))
    for start in range(0, replicates, step):
        rows = range(start, min(start + step, replicates))
        weights = np.stack([units.resample(rng) for _ in rows])
        means = (weights @ columns) / weights.sum(axis=1)[:, None]
        width, critical, constant = np.split(means, 3, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = 100.0 * (constant - width * critical) / constant
        gains[rows.start : rows.stop] = np.where(constant > 0, gain, math.nan)
    return gains


def _content(bands: Bands) -> bytes:
    parts = (bands.error, bands.below, bands.above)
    return sha256(b"".join(array.tobytes() for array in parts)).digest()


def _generator(seed: int) -> np.random.Generator:
    return child(seed, "characteristic", "bootstrap")


def check_pair(first: CharacteristicCurve, second: CharacteristicCurve) -> None:
    """Refuse two curves that are not of the same rows, on the same axes."""
    bands, other_bands = first.bands, second.bands
    if (first.x_axis, first.y_axis, bands.move) != (second.x_axis, second.y_axis, other_bands.move):
        raise InputError(
            "first and second must have the same axes and move, got "
            f"{first.x_axis}/{first.y_axis}/{bands.move} and "
            f"{second.x_axis}/{second.y_axis}/{other_bands.move}"
        )
    if bands.outputs != other_bands.outputs or not np.array_equal(bands.y, other_bands.y):
        raise InputError("first and second must be of the same rows, got other values of y")
    same_kind = bands.weights is None or bands.weights_kind == other_bands.weights_kind
    if not same_kind or not _equal(bands.weights, other_bands.weights):
        raise InputError("first and second must have the same weights")


@frozen(eq=False)
class Sampler:
    """A model and its constant band, their kinks sorted once, ready for any weights."""

    curve: CharacteristicCurve
    request: AreaRequest
    axes: tuple[str, ...]  # that the area needs
    constant: tuple[Bands, Kinks]
    kinks: Kinks

    @classmethod
    def of(cls, curve: CharacteristicCurve, request: AreaRequest | None) -> Sampler:
        """Sort the kinks of a curve and of its constant band."""
        request = resampling_request(request, curve.y_axis)
        constant = curve.bands.constant(lopsided=request.convention == "exact")
        axes = axes_needed(curve.x_axis, curve.y_axis)
        kinks, flat = (find_kinks(bands, axes, keep_rows=True) for bands in (curve.bands, constant))
        return cls(curve, request, axes, (constant, flat), kinks)

    def draw(self, weights: FloatArray) -> tuple[Path, float, float]:
        """The curve, its area and its gain under weights of entries."""
        shown, areas, paths = (self.curve.x_axis, self.curve.y_axis), [], []
        for bands, kinks in ((self.curve.bands, self.kinks), self._constant(weights)):
            drawn = trace(kinks, bands, self.axes, weights=weights)
            areas.append(area_of(path_of(drawn, *shown, self.request.convention), self.request))
            paths.append(path_of(drawn, *shown, "exact"))
        (area, complete), (constant, _) = areas
        finite = complete and constant > 0
        return paths[0], area, 100.0 * (constant - area) / constant if finite else math.nan

    def _constant(self, weights: FloatArray) -> tuple[Bands, Kinks]:
        """The constant band of a resample; its kinks are sorted anew where it is lopsided."""
        bands = self.constant[0]
        if self.request.convention != "exact" or np.array_equal(bands.below, bands.above):
            return self.constant
        bands = replace(self.curve.bands, weights=weights).constant()
        return bands, find_kinks(bands, self.axes, keep_rows=True)


def _summary(
    value: float, draws: FloatArray, confidence: float, units: Units, reason: str
) -> Bootstrapped:
    finite = draws[np.isfinite(draws)]
    missing = len(draws) - len(finite)
    error = lower = upper = math.nan
    if not reason and missing:
        reason = f"{missing} of {len(draws)} resamples have no value"
    elif not reason and units.count < 2:
        reason = "one row or cluster gives no spread"
    if not reason:
        tail = 0.5 * (1.0 - confidence)
        error = float(finite.std(ddof=1))
        lower, upper = map(float, np.quantile(finite, [tail, 1.0 - tail]))
    return Bootstrapped(
        value=value,
        standard_error=error,
        lower=lower,
        upper=upper,
        confidence=confidence,
        replicates=len(draws),
        units=units.count,
        reason=reason,
    )


def _check_replicates(replicates: int, confidence: float) -> None:
    check_fraction(confidence, "confidence")
    check_whole(replicates, "replicates", 2)


def _equal(weights: FloatArray | None, other_weights: FloatArray | None) -> bool:
    if weights is None or other_weights is None:
        return weights is other_weights
    return bool(np.array_equal(weights, other_weights))


# ---- do two models' areas differ by more than chance? A paired permutation test ------------------

# p = .05 is known to .002; a permutation is one product of sums. Navrátil et al. do not say how
# many they draw.
PERMUTATIONS_BY_PRODUCTS = 10_000
# p = .05 is known to .007; each permutation sorts all rows, so ten times fewer take the time.
PERMUTATIONS_BY_CURVES = 1_000
# 512 rows by 10,000 random signs are 40 MB in 64 bits, the only large array.
_ROWS_AT_ONCE = 512
# An area of the same rows, added up in another order, is off by less.
_AREA_ROUNDING = 1e-10


@frozen(kw_only=True)
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

    Examples
    --------
    >>> from howsure.topics.characteristic.bands import bands_from_sd
    >>> from howsure.topics.characteristic.curve import characteristic_curve
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
        permutations = PERMUTATIONS_BY_PRODUCTS if by_products else PERMUTATIONS_BY_CURVES
    check_whole(permutations, "permutations")
    units = units_of(curves[0].bands, cluster)
    areas = [curve.area_by(request) for curve in curves]
    bands = {
        model: _normalised(curve.bands)
        for model, curve in enumerate(curves)
        if not areas[model].reason
    }
    swaps = None
    if by_products and bands:
        swaps = _Swaps.drawn(bands, units, permutations, _swap_generator(seed))
    tests = []
    for first, second in pairs:
        difference = areas[first].value - areas[second].value
        reason = areas[first].reason or areas[second].reason
        p_value = math.nan
        if not reason:
            swapped = (
                _by_curves(
                    curves[0],
                    [bands[first], bands[second]],
                    units,
                    request,
                    permutations,
                    _swap_generator(seed),
                )
                if swaps is None
                else swaps.differences(first, second)
            )
            least = abs(difference) - _AREA_ROUNDING * max(areas[first].value, areas[second].value)
            p_value = (1 + int(np.sum(np.abs(swapped) >= least))) / (1 + permutations)
        tests.append(
            PermutationTest(
                difference=difference,
                p_value=p_value,
                permutations=permutations,
                method="products" if by_products else "curves",
                units=units.count,
                first=areas[first],
                second=areas[second],
                reason=reason,
            )
        )
    return tests


def _swap_generator(seed: int) -> np.random.Generator:
    return child(seed, "characteristic", "permutation")


def _normalised(bands: Bands) -> Bands:
    """Bands of mean 1. A bias has the units of y, so bands moved by one keep their size."""
    if bands.move == "bias":
        return bands
    size = bands.mean_band()
    return replace(bands, below=bands.below / size, above=bands.above / size)


@frozen(eq=False)
class _Swaps:
    """Sums over the swapped rows, and over all: of half widths, and of critical scales."""

    places: dict[int, int]
    swapped: FloatArray
    whole: FloatArray

    @classmethod
    def drawn(
        cls, bands: dict[int, Bands], units: Units, permutations: int, rng: np.random.Generator
    ) -> _Swaps:
        normalised = list(bands.values())
        columns = np.stack(
            [
                *(band.half_width for band in normalised),
                *(band.critical() for band in normalised),
            ],
            axis=1,
        )
        total = normalised[0].total
        if units.copies is None:
            columns *= units.spread(np.ones(units.count))[:, None]
        by_unit = columns
        if units.code is not None:
            by_unit = np.stack(
                [np.bincount(units.code, column, units.count) for column in columns.T], axis=1
            )
        copies = np.ones(len(by_unit)) if units.copies is None else units.copies
        # Equal rows are one with their copies, in the order in which they came, so that a weight
        # draws as the row written out, and one model more changes no other pair.
        _, first_row, place = np.unique(by_unit, axis=0, return_index=True, return_inverse=True)
        counts = np.bincount(place.ravel(), weights=copies).astype(np.float64)
        order = np.argsort(first_row)
        by_unit, copies = by_unit[first_row[order]], counts[order]
        # Each model beside the first: what two models share need not be told apart by rounding.
        first = by_unit.reshape(len(by_unit), 2, -1)[:, :, :1]
        steps = (by_unit.reshape(len(by_unit), 2, -1) - first).reshape(len(by_unit), -1)
        swapped = _random_sums(steps, copies, permutations, rng) / total
        return cls(
            {band: index for index, band in enumerate(bands)},
            swapped.reshape(permutations, 2, -1),
            (copies @ by_unit).reshape(2, -1) / total,
        )

    def differences(self, first: int, second: int) -> FloatArray:
        """Differences of whole areas under swaps: each area is a product of two sums."""
        column, other_column = self.places[first], self.places[second]
        moved = self.swapped[:, :, other_column] - self.swapped[:, :, column]
        area_1: FloatArray = np.prod(self.whole[:, column] + moved, axis=1)
        area_2: FloatArray = np.prod(self.whole[:, other_column] - moved, axis=1)
        return area_1 - area_2


def _random_sums(
    values: FloatArray, copies: FloatArray, repeats: int, rng: np.random.Generator
) -> FloatArray:
    """Sums of random halves of the copies of rows of a table, one half a repeat."""
    sums = np.zeros((repeats, values.shape[1]))
    lone, many = values[copies == 1], copies > 1
    for begin in range(0, len(lone), _ROWS_AT_ONCE):
        block = lone[begin : begin + _ROWS_AT_ONCE]
        noise = rng.integers(0, 256, (repeats, -(-len(block) // 8)), dtype=np.uint8)
        swaps = np.unpackbits(noise, axis=1, count=len(block))
        sums += swaps.astype(np.float64) @ block
    heavy, counts = values[many], copies[many].astype(np.int64)
    for begin in range(0, len(heavy), _ROWS_AT_ONCE):
        block_rows = slice(begin, begin + _ROWS_AT_ONCE)
        gone = rng.binomial(counts[block_rows], 0.5, (repeats, len(counts[block_rows])))
        sums += gone.astype(np.float64) @ heavy[block_rows]
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
    first, second = bands
    pooled = replace(
        first,
        y=np.concatenate([first.y, second.y]),
        error=np.concatenate([first.error, second.error]),
        below=np.concatenate([first.below, second.below]),
        above=np.concatenate([first.above, second.above]),
        weights=None,
    )
    axes = axes_needed(curve.x_axis, curve.y_axis)
    kinks = find_kinks(pooled, axes, keep_rows=True)
    everyone = np.ones(units.count) if units.copies is None else units.copies
    differences = np.empty(permutations)
    for index in range(permutations):
        gone = rng.binomial(everyone.astype(np.int64), 0.5).astype(np.float64)
        unswapped, swapped = units.spread(everyone - gone), units.spread(gone)
        areas = []
        for weights in (np.append(unswapped, swapped), np.append(swapped, unswapped)):
            traced = trace(kinks, pooled, axes, weights=weights)
            path = path_of(traced, curve.x_axis, curve.y_axis, request.convention)
            areas.append(area_of(path, request)[0])
        differences[index] = areas[0] - areas[1]
    return differences
