"""What a trial measures: areas, gains over a constant band, operating points, the crossing.

The formulas are those of `howsure.metrics.characteristic`; here they are asked for together, with
bootstrap errors and with what a well-specified model of the same widths would show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final, final

import numpy as np
import numpy.typing as npt

from howsure.core.arrays import FloatArray, IntArray, check_fraction
from howsure.core.brief import brief_repr
from howsure.core.convert import Bound, Checked, Fraction, filled
from howsure.core.errors import InputError
from howsure.core.records import Direction, Notion, Record
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
class MethodResult:
    """One method on one world under one seed.

    Attributes
    ----------
    world, method, seed
        What it is of, as the plan calls it.
    y, point, lower, upper : ndarray of float, shape (n,)
        Test rows: what happened, the forecast, and its interval, which is scaled.
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

    __repr__ = brief_repr

    def curve(self) -> CharacteristicCurve:
        """Its curve of bandwidth and miss rate."""
        return characteristic_curve(self.y, self.point, self.lower, self.upper)

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
    adjusted: float
    gain: float
    gain_error: float
    gain_p: float
    gain_adjusted: float


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
        All methods under the same seeds; seeds that lack a method are left out.

    Returns
    -------
    tuple of PairTest
        The better method of each pair first.

    Examples
    --------
    >>> compare([])
    ()
    """
    methods = sorted({result.method for result in results})
    by_seed: dict[int, dict[str, MethodResult]] = {}
    for result in results:
        by_seed.setdefault(result.seed, {})[result.method] = result
    whole = [by_method for by_method in by_seed.values() if len(by_method) == len(methods)]
    if len(methods) < 2 or not whole:
        return ()
    pairs = [(i, j) for i in range(len(methods)) for j in range(i + 1, len(methods))]
    if len(whole) == 1:
        first = [whole[0][name] for name in methods]
        measuring, cluster = first[0].options, first[0].cluster
        curves = [result.curve() for result in first]
        tests = permutation_tests(curves, pairs, cluster=cluster, seed=first[0].seed)
        adjusted = holm([test.p_value for test in tests])
        request = AreaRequest(y_range=measuring.miss_range, reading="left")
        left_tests = permutation_tests(
            curves, pairs, request, permutations=_SWAPS, cluster=cluster, seed=first[0].seed
        )
        left_adjusted = holm([test.p_value for test in left_tests])
        gains = [
            bootstrap_gain_difference(
                curves[i],
                curves[j],
                request,
                replicates=measuring.replicates,
                cluster=cluster,
                seed=first[0].seed,
            )
            for i, j in pairs
        ]
        rows = [
            (
                *(test.difference, test.p_value, float(holmed)),
                *(gain.value, gain.standard_error, left_test.p_value, float(left_holmed)),
            )
            for test, holmed, gain, left_test, left_holmed in zip(
                tests, adjusted, gains, left_tests, left_adjusted, strict=True
            )
        ]
    else:

        def table(metric: str) -> FloatArray:
            return np.array([[h[m].record(metric).value for m in methods] for h in whole])

        areas, left = table("auucc"), table("characteristic_left_gain")
        matrix, left_matrix = wilcoxon_holm(areas), wilcoxon_holm(left)
        rows = []
        for i, j in pairs:
            moved, gained = areas[:, i] - areas[:, j], left[:, i] - left[:, j]
            alone = float(wilcoxon_holm(areas[:, [i, j]])[0, 1])
            rows.append(
                (
                    float(np.median(moved)),
                    alone,
                    float(matrix[i, j]),
                    float(np.median(gained)),
                    math.nan,
                    float(wilcoxon_holm(left[:, [i, j]])[0, 1]),
                    float(left_matrix[i, j]),
                )
            )
    made = []
    for (i, j), row in zip(pairs, rows, strict=True):
        difference, p, holmed, more, error, gain_p, gain_holmed = row
        better = difference <= 0
        sign = 1.0 if better else -1.0
        made.append(
            PairTest(
                first=methods[i if better else j],
                second=methods[j if better else i],
                difference=sign * difference,
                p=p,
                adjusted=holmed,
                gain=sign * more,
                gain_error=error,
                gain_p=gain_p,
                gain_adjusted=gain_holmed,
            )
        )
    return tuple(made)


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
