"""What a trial measures: areas, gains over a constant band, operating points, the crossing.

The formulas are those of `howsure.metrics.characteristic`; here they are asked for together, with
bootstrap errors and with what a well-specified model of the same widths would show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Annotated, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.brief import brief_repr
from howsure.core.convert import Bound, Checked, Fraction, filled
from howsure.core.errors import InputError
from howsure.core.records import Curve, Direction, Notion, Record
from howsure.core.rng import child
from howsure.metrics.characteristic import (
    AreaRequest,
    BootstrapCurve,
    Bootstrapped,
    CharacteristicCurve,
    bootstrap_curve,
    bootstrap_gain_difference,
    characteristic_curve,
    gain_of_perfect_model,
)
from howsure.metrics.characteristic.bands import XAxis, YAxis
from howsure.metrics.characteristic.reference import Draws
from howsure.metrics.characteristic.significance import permutation_tests
from howsure.metrics.miss_range import MISS_RANGE, MissRange, check_miss_range
from howsure.stats.binomial import holm
from howsure.stats.ranks import wilcoxon_holm

AXES: Final[tuple[tuple[XAxis, YAxis], ...]] = (
    ("bandwidth", "miss_rate"),
    ("excess", "miss_rate"),
    ("bandwidth", "deficit"),
    ("excess", "deficit"),
)
"""The pairs of axes of the paper; the first is the one that figures show."""

_SWAPS: Final = 500  # of a partial area each takes two curves
_POINTS: Final = 200  # of a drawn curve, and of a band
TAIL: Final = 0.02  # a curve is drawn to where all models miss no more than this


def _shares(values: tuple[float, ...], name: str) -> tuple[float, ...]:
    return tuple(sorted({check_fraction(value, name) for value in filled(values, name)}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring(Checked):
    """What is measured of a model's bands.

    Attributes
    ----------
    miss_range : (float, float)
        The low miss rates, of partial areas and gains.
    miss_rates : tuple of float
        Operating points.
    replicates : int
        Of the bootstrap, and of the well-specified model.
    confidence : float
        Of bootstrap intervals.
    """

    miss_range: Annotated[MissRange, check_miss_range] = MISS_RANGE
    miss_rates: Annotated[tuple[float, ...], _shares] = (0.1, 0.5)
    replicates: Annotated[int, Bound(2)] = 200
    confidence: Fraction = 0.95


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """As much of a result as figures show; of the model and of the constant band, in this order."""

    curves: tuple[Curve, Curve]  # of bandwidth and miss rate, thinned
    tail: float  # the bandwidth to which curves are drawn: where both miss few rows
    scales: FloatArray  # (2, m), of the bands at each operating point
    place: FloatArray  # (k,), test rows along the axis, thinned; none where they have no place
    y: FloatArray
    point: FloatArray
    below: FloatArray  # (2, k), their bands before they are scaled
    above: FloatArray
    clusters: int  # how many all test rows are of; 0 where of none


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MethodResult:
    """One method on one world under one seed.

    Attributes
    ----------
    world, method, seed
        What it is of, as the plan calls it.
    y, point, lower, upper : ndarray of float, shape (n,)
        Test rows: what happened, the forecast, and its interval, which is scaled. Empty in what
        ships with a plan.
    records : tuple of Record
        Its numbers.
    options : Measuring
        What was measured.
    cluster, place : ndarray, shape (n,), optional
        As in `Split`.
    axis : str
        What `place` is.
    window : (float, float), optional
        The part of it that a figure shows.
    notes : str
        How the fit went.
    problem : {"", "gap", "traffic"}
        Which problem of the paper it does again.
    kept : Picture, optional
        What figures show of rows that did not ship.
    pairs : tuple of PairTest
        Tests against other methods, of rows that did not ship.
    """

    world: str
    method: str
    seed: int
    y: FloatArray
    point: FloatArray
    lower: FloatArray
    upper: FloatArray
    records: tuple[Record, ...]
    options: Measuring = field(default_factory=Measuring)
    cluster: IntArray | None = None
    place: FloatArray | None = None
    axis: str = ""
    window: tuple[float, float] | None = None
    notes: str = ""
    problem: str = ""
    kept: Picture | None = None
    pairs: tuple[PairTest, ...] = ()

    __repr__ = brief_repr

    def curve(self) -> CharacteristicCurve:
        """Its curve of bandwidth and miss rate."""
        return characteristic_curve(self.y, self.point, self.lower, self.upper)

    def picture(self) -> Picture | None:
        """What figures show of it; None where its rows did not ship and nothing was kept."""
        return self.kept if self.kept is not None or not len(self.y) else _picture(self)

    def without_rows(self) -> MethodResult:
        """The same without its test rows."""
        none = np.empty(0)
        return replace(self, y=none, point=none, lower=none, upper=none, cluster=None, place=None)

    @property
    def shows_pattern(self) -> bool:
        """Whether curves cross, and the partial gain is positive and above the whole, as published.

        It is the gain under the curve.
        """
        whole = self.record("characteristic_gain").value
        low = self.record("characteristic_partial_gain").value
        return low > max(whole, 0.0) and 0.0 < self.record("crossing").value < 1.0

    def record(self, metric: str, coverage: float = math.nan) -> Record:
        """The number of a name, at a coverage where it has one.

        Raises
        ------
        InputError
            If it was not measured.
        """
        for record in self.records:
            same = record.coverage == coverage or math.isnan(coverage)
            if record.metric == metric and same:
                return record
        known = ", ".join(dict.fromkeys(record.metric for record in self.records))
        raise InputError(f"metric must be one of {known}, got {metric!r}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairTest:
    """Two methods on the same test rows.

    Attributes
    ----------
    first, second : str
        The methods.
    difference : float
        AUUCC of the first less that of the second; negative where the first is better. Over
        several seeds the median difference.
    p, adjusted : float
        p-value, and after Holm's adjustment for all pairs of the world. Of one seed by the paired
        permutation test; of several by Wilcoxon's signed-rank test over them.
    gain : float
        Gain at low miss rates (to the left of the curve) of the first less that of the second, in
        percentage points; the median over several seeds.
    gain_error : float
        Its paired bootstrap error; NaN for several seeds.
    gain_p, gain_adjusted : float
        As `p` and `adjusted`: of the areas to the left of the curve at low miss rates; over
        several seeds, of their gains.
    """

    first: str
    second: str
    difference: float
    p: float
    adjusted: float = math.nan
    gain: float
    gain_error: float
    gain_p: float
    gain_adjusted: float = math.nan

    def turned(self) -> PairTest:
        """The same with the second method first."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            gain=-self.gain,
        )


def measure(
    curve: CharacteristicCurve,
    options: Measuring | None = None,
    *,
    draws: Draws | None = None,
    cluster: npt.ArrayLike | None = None,
    seed: int = 0,
) -> tuple[Record, ...]:
    """Everything that the study says of a model's bands.

    Parameters
    ----------
    curve : CharacteristicCurve
        Of bandwidth and miss rate.
    options : Measuring, optional
        What is measured.
    draws : callable or array, optional
        Draws of y from the model, as `gain_of_perfect_model` takes them; without them, its
        critical scales are permuted.
    cluster : array-like of shape (n,), optional
        Rows that depend on each other are resampled together.
    seed : int
        Of bootstrap and draws.

    Returns
    -------
    tuple of Record
        ``auucc`` and ``characteristic_gain`` on all pairs of axes (the others have the axes in
        their names), ``characteristic_partial_gain`` (area under the curve where the miss rate is
        low) and ``characteristic_left_gain`` (area to its left), ``crossing``, and at each
        operating point, as the coverage 1 − miss rate, ``bandwidth`` and ``constant_bandwidth``.

    Examples
    --------
    >>> error, band = np.array([1, -2, 0.5, 3]), np.array([1, 1, 1, 2])
    >>> curve = characteristic_curve(error, np.zeros(4), -band, band)
    >>> found = measure(curve, Measuring(replicates=50))
    >>> found[0].metric, found[0].value
    ('auucc', 1.5625)
    """
    measuring = options or Measuring()

    def resampled(of: CharacteristicCurve, request: AreaRequest | None = None) -> BootstrapCurve:
        return bootstrap_curve(
            of,
            request,
            replicates=measuring.replicates,
            confidence=measuring.confidence,
            cluster=cluster,
            seed=seed,
        )

    low = measuring.miss_range
    first = resampled(curve)
    records = [_record("auucc", first.area, curve.n, "y", Direction.LOWER)]
    for name, request in (
        ("characteristic_gain", AreaRequest()),
        ("characteristic_partial_gain", AreaRequest(y_range=low)),
        ("characteristic_left_gain", AreaRequest(y_range=low, reading="left")),
    ):
        gain = first.gain if request == AreaRequest() else resampled(curve, request).gain
        null = gain_of_perfect_model(
            curve, request, draws=draws, replicates=measuring.replicates, seed=seed
        )
        made = _record(name, gain, curve.n)
        records.append(replace(made, null=null.value, null_lower=null.lower, null_upper=null.upper))
    for x, y_axis in AXES[1:]:
        rotated, ending = curve.on(x=x, y_axis=y_axis), f"_{x}_{y_axis}"
        bootstrap, units = resampled(rotated), rotated.area().units
        records.append(_record(f"auucc{ending}", bootstrap.area, curve.n, units, Direction.LOWER))
        records.append(_record(f"characteristic_gain{ending}", bootstrap.gain, curve.n))
    crossing = bootstrap_crossing(curve, measuring, cluster=cluster, seed=seed)
    records.append(_record("crossing", crossing, curve.n, "1", Direction.HIGHER))
    constant = curve.constant()
    for miss_rate in measuring.miss_rates:
        for name, each in (("bandwidth", curve), ("constant_bandwidth", constant)):
            wanted = each.at(miss_rate=miss_rate)
            made = Record(
                metric=name,
                value=wanted.bandwidth,
                coverage=1.0 - miss_rate,
                n=float(curve.n),
                direction=Direction.LOWER,
                units="y",
                reason=wanted.reason,
            )
            records.append(made)
    return tuple(records)


def _record(
    name: str,
    estimate: Bootstrapped,
    n: int,
    units: str = "%",
    direction: Direction = Direction.HIGHER,
) -> Record:
    return Record(
        metric=name,
        value=estimate.value,
        standard_error=estimate.standard_error,
        lower=estimate.lower,
        upper=estimate.upper,
        confidence=estimate.confidence,
        n=float(n),
        direction=direction,
        units=units,
        notion=Notion.LOCAL,
        reason=estimate.reason,
    )


def crossing_of(curve: CharacteristicCurve, rows: IntArray | None = None) -> float:
    """The miss rate below which the model needs less bandwidth than a constant band.

    Two empirical curves may cross many times in their tails. The bandwidth saved, summed over miss
    rates from 0 upwards, has one maximum: up to there the model is worth choosing. Where the curves
    cross once, it is the crossing.

    Parameters
    ----------
    curve : CharacteristicCurve
        Of bandwidth and miss rate, without weights.
    rows : ndarray of int, optional
        Rows to take in place of all, with repeats.

    Returns
    -------
    float
        0 where the model saves nothing from there on up, 1 where it saves throughout.

    Examples
    --------
    >>> band = np.array([1.0, 2.0, 3.0, 4.0])
    >>> crossing_of(characteristic_curve(band, 0 * band, -band, band))
    0.5
    """
    bands = curve.bands
    chosen = slice(None) if rows is None else rows
    half_width = float((0.5 * (bands.below + bands.above)[chosen]).mean())
    scale = np.sort(bands.critical()[chosen])
    bandwidth = np.full(len(scale), np.inf)  # of rows that no scale captures, whatever the mean
    np.multiply(half_width, scale, out=bandwidth, where=np.isfinite(scale))
    flat = bands.constant()
    constant = flat.mean_band() * np.sort(flat.critical()[chosen])
    saved = np.cumsum((constant - bandwidth)[::-1])
    best = int(np.argmax(saved))
    return 0.0 if saved[best] <= 0 else (best + 1) / len(saved)


def bootstrap_crossing(
    curve: CharacteristicCurve,
    options: Measuring | None = None,
    *,
    cluster: npt.ArrayLike | None = None,
    seed: int = 0,
) -> Bootstrapped:
    """`crossing_of` with its bootstrap error, over rows or clusters of rows."""
    measuring = options or Measuring()
    labels = np.arange(curve.n) if cluster is None else np.asarray(cluster)
    names, member = np.unique(labels, return_inverse=True)
    groups = np.split(np.argsort(member, kind="stable"), np.cumsum(np.bincount(member))[:-1])
    rng = child(seed, "characteristic", "crossing")
    drawn = np.empty(measuring.replicates)
    for index in range(measuring.replicates):
        units = rng.integers(0, len(names), len(names))
        drawn[index] = crossing_of(curve, np.concatenate([groups[unit] for unit in units]))
    tail = 0.5 * (1.0 - measuring.confidence)
    lower, upper = np.quantile(drawn, [tail, 1.0 - tail])
    return Bootstrapped(
        value=crossing_of(curve),
        standard_error=float(drawn.std(ddof=1)),
        lower=float(lower),
        upper=float(upper),
        confidence=measuring.confidence,
        replicates=measuring.replicates,
        units=len(names),
    )


def compare(results: Sequence[MethodResult]) -> tuple[PairTest, ...]:
    """Every pair of methods on one world, by AUUCC and by the gain at low miss rates.

    Parameters
    ----------
    results : sequence of MethodResult
        All methods under the same seeds; seeds that lack a method are left out. Of one seed, pairs
        need the test rows of both methods, or what was kept of them.

    Returns
    -------
    tuple of PairTest
        The better method of each pair first.

    Examples
    --------
    >>> compare([])
    ()
    """
    by_seed: dict[int, dict[str, MethodResult]] = {}
    for result in sorted(results, key=lambda result: result.method):
        by_seed.setdefault(result.seed, {})[result.method] = result
    methods = max(by_seed.values(), key=len, default={})
    whole = [by_method for by_method in by_seed.values() if len(by_method) == len(methods)]
    if len({result.method for result in results}) > len(methods) or len(methods) < 2:
        return ()
    tests = _over_rows(whole[0]) if len(whole) == 1 else _over_seeds(whole)
    adjusted = holm([test.p for test in tests])
    gain_adjusted = holm([test.gain_p for test in tests])
    return tuple(
        replace(
            test if test.difference <= 0 else test.turned(),
            adjusted=float(adjusted[k]),
            gain_adjusted=float(gain_adjusted[k]),
        )
        for k, test in enumerate(tests)
    )


def _over_rows(results: Mapping[str, MethodResult]) -> list[PairTest]:
    """Pairs by their test rows, and those that were kept; not adjusted for each other."""
    rows = [result for result in results.values() if len(result.y)]
    kept = [
        pair
        for result in results.values()
        for pair in result.pairs
        if not {pair.first, pair.second} <= {result.method for result in rows}
        and {pair.first, pair.second} <= set(results)
    ]
    pairs = list(combinations(range(len(rows)), 2))
    if not pairs:
        return kept
    curves = [result.curve() for result in rows]
    measuring, cluster, seed = rows[0].options, rows[0].cluster, rows[0].seed
    low = AreaRequest(y_range=measuring.miss_range, reading="left")
    tests = permutation_tests(curves, pairs, cluster=cluster, seed=seed)
    low_tests = permutation_tests(
        curves, pairs, low, permutations=_SWAPS, cluster=cluster, seed=seed
    )
    made = []
    for (i, j), test, low_test in zip(pairs, tests, low_tests, strict=True):
        gain = bootstrap_gain_difference(
            *(curves[i], curves[j], low),
            replicates=measuring.replicates,
            cluster=cluster,
            seed=seed,
        )
        made.append(
            PairTest(
                first=rows[i].method,
                second=rows[j].method,
                difference=test.difference,
                p=test.p_value,
                gain=gain.value,
                gain_error=gain.standard_error,
                gain_p=low_test.p_value,
            )
        )
    return made + kept


def _over_seeds(whole: Sequence[Mapping[str, MethodResult]]) -> list[PairTest]:
    """Pairs by their numbers over seeds; not adjusted for each other."""

    def numbers(method: str, metric: str) -> FloatArray:
        return np.array([by_method[method].record(metric).value for by_method in whole])

    made = []
    for first, second in combinations(whole[0], 2):
        areas, gains = (
            np.column_stack([numbers(method, metric) for method in (first, second)])
            for metric in ("auucc", "characteristic_left_gain")
        )
        made.append(
            PairTest(
                first=first,
                second=second,
                difference=float(np.median(areas[:, 0] - areas[:, 1])),
                p=float(wilcoxon_holm(areas)[0, 1]),
                gain=float(np.median(gains[:, 0] - gains[:, 1])),
                gain_error=math.nan,
                gain_p=float(wilcoxon_holm(gains)[0, 1]),
            )
        )
    return made


@lru_cache(maxsize=64)
def _picture(result: MethodResult) -> Picture:
    """What figures show of a result."""
    curve = result.curve()
    both = (curve, curve.constant())
    place = result.place if result.place is not None else np.empty(0)
    low, high = result.window or (-math.inf, math.inf)
    order = np.argsort(place, kind="stable")
    order = order[(place[order] >= low) & (place[order] <= high)]
    rows = order[:: max(len(order) // _POINTS, 1)]
    ends = [each.at(miss_rate=TAIL).bandwidth for each in both]
    known = [end for end in ends if np.isfinite(end) and end > 0]
    model, constant = (each.bands for each in both)
    miss_rates = result.options.miss_rates
    return Picture(
        curves=(curve.drawn(_POINTS), both[1].drawn(_POINTS, reference=False)),
        tail=float(np.max(known)) if known else math.nan,
        scales=np.array([[each.at(miss_rate=rate).knob for rate in miss_rates] for each in both]),
        place=place[rows],
        y=result.y[rows],
        point=result.point[rows],
        below=np.stack([model.below[rows], constant.below[rows]]),
        above=np.stack([model.above[rows], constant.above[rows]]),
        clusters=0 if result.cluster is None else len(np.unique(result.cluster)),
    )


def joint_draws(
    fitted: object, x: FloatArray, outcome: object, *, replicates: int, seed: int
) -> Draws | None:
    """Draws of y from a model: of all rows together where it can, else row by row, else none.

    Only a distribution is drawn from; intervals and quantiles say too little of the tails.
    """
    from howsure.predictions import Distribution, Samples

    joint: Callable[..., FloatArray] | None = getattr(fitted, "joint", None)
    if joint is not None:
        return joint(x, child(seed, "characteristic", "draws"), replicates)
    if isinstance(outcome, Distribution | Samples):
        return lambda rng: outcome.sample(rng, 1)[:, 0]
    return None
