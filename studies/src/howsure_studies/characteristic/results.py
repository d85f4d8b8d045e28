"""What a method gave on one world under one seed: what figures show of it, and tests of pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import combinations
from typing import Final, final

import numpy as np

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.classes import frozen
from howsure.core.errors import InputError
from howsure.core.records import Curve, Record
from howsure.stats.binomial import holm
from howsure.topics.characteristic.curve import CharacteristicCurve, characteristic_curve
from howsure.topics.characteristic.resampling import bootstrap_gain_difference, permutation_tests
from howsure.topics.characteristic.trace import AreaRequest
from howsure_studies.characteristic.measures import Measuring
from howsure_studies.engine.ranks import wilcoxon_holm

TAIL: Final = 0.02
"""A curve is drawn to where all models miss no more than this."""
_POINTS: Final = 200  # of a drawn curve, and of a band
_SWAPS: Final = 500  # of a partial area each takes two curves


@final
@frozen(kw_only=True, eq=False)
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
@frozen(kw_only=True, eq=False)
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
        As in `TrainTest`.
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
@frozen(kw_only=True)
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
