"""From totals to records: what is known of all rows takes the place of what a sample tells.

Means and their errors follow from moments. Formulas that ask for more are given named arrays with
one entry for each cell of groups, block of time or cell of a histogram, weighted by its rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from scipy import special

from howsure.core.arrays import FloatArray, IntArray
from howsure.core.errors import attempt
from howsure.core.labels import Categories
from howsure.core.records import Curve, Key, Record
from howsure.core.times import Chronology
from howsure.core.weights import Weights, WeightsKind
from howsure.engine.autocorrelation import Dependence
from howsure.engine.catalogue import catalogue, from_sums, sorting_arrays
from howsure.engine.measure import (
    Evaluation,
    because,
    beside_claims,
    evaluate,
    find_form,
    noted,
    record_of,
    supposed,
    tail_of,
)
from howsure.engine.metric import Metric
from howsure.engine.view import View
from howsure.predictions import Distribution, EvalSet, Quantiles
from howsure.predictions.laws import NormalLaw
from howsure.stats.binomial import shift_shares
from howsure.stats.ecdf import legendre
from howsure.stats.estimate import Z_95, Estimate, spread_of, spread_of_sums
from howsure.stats.moments import Moments
from howsure.streaming.totals import (
    CLAIMED,
    PIT_CELLS,
    ClusterSums,
    SufficientStatistics,
)
from howsure.topics.calibration import view as calibration
from howsure.topics.calibration.components import (
    by_normal_scores,
    p_of_units,
    pit_components,
    wider_than,
)
from howsure.topics.groups import (
    Grouping,
    GroupMeans,
    GroupReport,
    compare_groups,
    group_means,
    groupings,
    records_of_means,
)

_SIDES = ("below", "above", "missed")


@dataclass(frozen=True)
class FromTotals:
    """All rows of one model, known by their totals, beside a sample of them."""

    totals: SufficientStatistics  # what all rows add up to
    sample: Evaluation  # of the rows of the sample, with a record for every measure
    dependence: Dependence | str = ""  # how the sample's rows go together
    seed: int = 0  # fixes all draws
    confidence: float = 0.95  # of intervals

    @property
    def n(self) -> float:
        """Rows that count: a sum of frequencies, or Kish's number."""
        totals = self.totals
        return totals.mass**2 / totals.squares if self._importance else totals.mass

    @property
    def _importance(self) -> bool:
        weights = self.sample.evalset.weights
        return weights is not None and weights.kind == "importance"

    @property
    def weights_kind(self) -> WeightsKind:
        """What weights mean; plain rows are rows of frequency 1."""
        return "importance" if self._importance else "frequency"

    @cached_property
    def units(self) -> tuple[ClusterSums, IntArray] | None:
        """The totals' units, and the number of the unit of each entry; None of plain rows."""
        return None if self.totals.units is None else self._coded(self.totals.units)

    def _coded(self, sums: ClusterSums) -> tuple[ClusterSums, IntArray] | None:
        if sums.by == "time":
            dependence = self.dependence
            if not isinstance(dependence, str) and dependence.doubted:
                return sums, sums.key - sums.key.min()  # a grid: gaps count
            if not self._importance:
                return None
            sums = replace(sums, by="rows")  # whose weights differ, though they are independent
        return sums, np.unique(sums.key, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def _cells(self) -> tuple[EvalSet, FloatArray]:
        """An entry for each cell, and unit where rows depend; means of columns, shape (c, p)."""
        totals = self.totals
        coded = None if totals.units is None else self._coded(totals.by_cell())
        if coded is None:
            moments = totals.moments
            cells = np.arange(len(moments.mass))
            return self._entries(moments.mass, cells=cells), moments.mean
        sums, codes = coded
        means = sums.sums / sums.mass[:, None]
        return self._entries(sums.mass, codes, sums.cell), means

    # Records of all rows.

    def measured(self) -> Evaluation:
        """The sample's evaluation, with the records of all rows where there are some."""
        return replace(
            self.sample, records=self.merged(self.of_all.records, self.of_sample.records)
        )

    def merged(self, exact: Iterable[Record], sampled: Iterable[Record]) -> tuple[Record, ...]:
        """Records of all rows and others of the sample, in the order of the sample's."""
        by_key = {record.key: record for record in (*sampled, *exact)}
        return tuple(by_key[record.key] for record in self.sample.records)

    @cached_property
    def of_all(self) -> Evaluation:
        """With the records of all rows alone."""
        of_all = {**self._exact, **self._by_histogram(), **self._by_block()}
        return replace(self.sample, records=tuple(of_all.values()))

    @cached_property
    def of_sample(self) -> Evaluation:
        """With the sample's records of what totals do not tell, of all rows or of some group."""
        exact = {record.key for record in self.of_all.records}
        if self.sample.evalset.groups:  # of which totals tell means alone
            partly = self._importance or self.totals.cells.left_out
            exact = set() if partly else exact & self._columns.keys()
        records = [record for record in self.sample.records if record.key not in exact]
        return replace(self.sample, records=tuple(records))

    @cached_property
    def _columns(self) -> dict[Key, int]:
        """The columns of the totals, by what they hold."""
        return {key: column for column, key in enumerate(self.totals.keys)}

    @cached_property
    def _exact(self) -> dict[Key, Record]:
        """Records of means, shares and statistics of sums."""
        keys = [record.key for record in self.sample.records]
        means = {key: self._mean(key, self._columns[key]) for key in keys if key in self._columns}
        joints = (key for key in keys if str(key) in self.totals.joints)
        return means | {key: self._statistic(key) for key in joints}

    @cached_property
    def _every(self) -> Moments:
        """The moments of all cells together."""
        moments = self.totals.moments
        return moments.placed(np.zeros(len(moments.mass), dtype=np.int64), 1)

    def _mean(self, key: Key, column: int) -> Record:
        value = float(self._every.mean[0, column])
        if not math.isfinite(value):
            return self._record(key, Estimate(value, reason="some rows have an infinite score"))
        if self.units is None:
            mass, powers = self._every.mass, (self._every.second, self._every.third)
            spread = spread_of_sums(mass, *(power[:, column] for power in powers))
            return self._record(key, Estimate(value, spread=spread))
        sums, codes = self.units
        off = sums.sums[:, column] / sums.mass - value
        return self._record(key, Estimate(value, off), self._entries(sums.mass, codes))

    def _statistic(self, key: Key) -> Record:
        joint = self.totals.joints[str(key)]
        counted = joint.counting_as(self.n) if self._importance else joint
        estimate, slopes = from_sums()[key.metric].value(counted)
        if slopes is not None and not joint.is_representable():
            reason = (
                "no interval: the numbers are too large or too small for their cubes to be summed"
            )
            estimate, slopes = replace(estimate, reason=reason), None
        if slopes is None or not math.isfinite(estimate.value):
            return self._record(key, estimate)
        powers = joint.powers(slopes)
        if self.units is None:
            spread = spread_of_sums(np.array([joint.mass]), *powers)
            return self._record(key, replace(estimate, spread=spread))
        sums_within, codes = self.units
        sums = sums_within.sums[:, self.totals.joint_columns()[str(key)]][:, : len(slopes)]
        values = (
            (sums - sums_within.mass[:, None] * joint.mean[: len(slopes)])
            @ slopes
            / sums_within.mass
        )
        rows = self._entries(sums_within.mass, codes)
        record = self._record(key, replace(estimate, influence=values), rows)
        if math.isnan(record.p) or not record.standard_error > 0.0:
            return record
        units = codes if rows.chronology is None else rows.chronology
        sd = math.sqrt(float(powers[0][0]) / joint.mass)
        spread = spread_of(values, rows.weights, units)
        wider = wider_than(sd / math.sqrt(record.n), spread, units)
        null = 0.0 if math.isnan(record.null) else record.null
        return replace(
            record,  # with the p-value and the perfect model's range of rows that go together
            p=p_of_units(record.value, sd, math.hypot(sd, record.value), spread, units),
            null_lower=null - wider * (null - record.null_lower),
            null_upper=null + wider * (record.null_upper - null),
        )

    def _entries(
        self, mass: FloatArray, units: IntArray | None = None, cells: IntArray | None = None
    ) -> EvalSet:
        """Weights, units and groups of what stands for all rows, and no y."""
        groups: Mapping[str, Categories] = {}
        if cells is not None:
            columns = self.totals.cells.groups()
            groups = {name: column.take(cells) for name, column in columns.items()}
        named, times = None, None
        by = "" if self.units is None else self.units[0].by
        if units is not None and by == "time":
            times = Chronology(units)
        elif units is not None and by == "clusters":
            named = Categories(units, np.arange(1, int(units.max()) + 2))
        return EvalSet(
            y=np.full(len(mass), np.nan),
            groups=groups,
            weights=Weights(mass, self.weights_kind),
            cluster=named,
            chronology=times,
            model=self.totals.model,
            fewest=self.sample.evalset.fewest,
        )

    def _record(self, key: Key, estimate: Estimate, rows: EvalSet | None = None) -> Record:
        metric = catalogue()[key.metric]
        view = self.sample.view
        form = find_form(view, metric, key.at, without=sorting_arrays())
        estimate = self._claimed(metric, key.at, noted(estimate, form))
        tail = None
        if form.squares:
            tail = tail_of(view, form, key.at)
        bundles = None
        if self.units is not None and self.units[0].by == "rows":
            bundles = self.units[1]
        record = record_of(
            metric,
            replace(estimate, n=self.n),
            rows or self._entries(np.ones(1)),
            coverage=key.at,
            confidence=self.confidence,
            share=form.reduce == "share",
            source=self.totals.sources[str(key)],
            tail=tail,
            bundles=bundles,
        )
        return supposed(view, metric, [record])[0]

    def _claimed(self, metric: Metric, coverage: float, estimate: Estimate) -> Estimate:
        claims = self.totals.claims.get(str(float(coverage)))
        if not metric.expected or claims is None:
            return estimate
        ends = dict(zip(_SIDES, claims.mean.reshape(3, 2), strict=True))
        ends["covered"] = 1.0 - ends["missed"][::-1]
        return beside_claims(metric, coverage, estimate, *map(float, ends[metric.expected]))

    # The histogram of the PIT.

    @cached_property
    def _pit(self) -> Evaluation | None:
        """The cells of the PIT's histogram as weighted rows, evaluated."""
        counts = self.totals.pit
        if counts is None:
            return self._between_quantiles()
        filled = np.flatnonzero(counts > 0.0)
        pit = (filled + 0.5) / PIT_CELLS
        rows, weights = self._histogram(counts[filled])
        arrays: dict[str, Any] = {"cdf": pit, "cdf_left": pit, "left": None}
        law = self.sample.view.find_prediction(Distribution)
        if law is not None and isinstance(law.law, NormalLaw):
            scores_at = by_normal_scores(np.stack([pit, pit]))
            arrays["components"] = pit_components(
                lambda b, k: scores_at(b, k)[0], legendre, weights=weights
            )
        names = _by_histogram(tests=not self._importance and self.sample.evalset.cluster is None)
        return evaluate(
            rows, metrics=names, confidence=self.confidence, seed=self.seed, given=arrays
        )

    def _histogram(self, counts: FloatArray) -> tuple[EvalSet, Weights]:
        """An entry for each cell of a histogram, as often as rows count."""
        weights = Weights(counts * (self.n / self.totals.mass))
        return replace(self._entries(counts), weights=weights), weights

    def _between_quantiles(self) -> Evaluation | None:
        """The rows between any two quantiles of a table of quantiles, as weighted rows."""
        counts, table = self.totals.among, self.sample.view.find_prediction(Quantiles)
        if counts is None or table is None:
            return None
        below = np.flatnonzero(counts > 0.0).astype(np.float64)
        rows, _ = self._histogram(counts[counts > 0.0])
        edges = np.tile(np.arange(len(table.levels)) + 0.5, (len(below), 1))
        return evaluate(
            rows,
            metrics=["calibration_error"],
            confidence=self.confidence,
            seed=self.seed,
            given={"y": below, "quantiles": edges, "levels": table.levels},
        )

    def _by_histogram(self) -> dict[Key, Record]:
        if self._pit is None:
            return {}
        wider = self._wider()
        units, clusters = self.sample.evalset.units, self.sample.evalset.cluster
        cells = self.totals.pit is not None
        sampled = {record.key: record for record in self.sample.records}
        records = {}
        for record in self._pit.records:
            mine = sampled.get(record.key)
            if mine is None or math.isnan(record.value):
                continue
            reason = "approximate: importance weights" if self._importance else ""
            if units is not None and record.key in wider:
                if not cells:  # an error that the sample tells is no error of all rows
                    continue
                record = _widened(record, wider[record.key])
                reason = (
                    "its error is inflated like that of the sample, whose rows are autocorrelated"
                )
                if clusters is not None and not isinstance(units, Chronology):
                    reason = f"its error is that of {len(clusters.labels):,} clusters of the sample"
            records[record.key] = replace(
                because(record, reason),
                source=mine.source,
                exact="histogram" if cells else "rows",
                added_error=1.0 / PIT_CELLS if cells else 0.0,
                n=self.n,
            )
        return records

    def _wider(self) -> dict[Key, float]:
        """By what errors exceed those of independent rows, by the clusters of the sample."""
        evalset = self.sample.evalset
        if evalset.units is None:
            return {}
        names = {r.metric for r in self.sample.records} & {*_by_histogram(tests=False)}
        plain = evaluate(
            replace(evalset, cluster=None, chronology=None), metrics=sorted(names), seed=self.seed
        )
        errors = {record.key: record.standard_error for record in self.sample.records}
        ratios = {r.key: errors[r.key] / r.standard_error for r in plain.records}
        return {name: max(ratio, 1.0) for name, ratio in ratios.items() if math.isfinite(ratio)}

    # Time.

    def _by_block(self) -> dict[Key, Record]:
        """Drift of coverage, by the hits in each block of time."""
        sums, times = self.totals.units, self.sample.evalset.time
        if sums is None or sums.by != "time" or times is None:
            return {}
        blocks, codes = np.unique(sums.key, return_inverse=True)
        starts: Any = blocks * sums.width
        if times.dtype.kind == "M":
            starts = (starts * 1e6).astype("datetime64[us]")
        records = {}
        for sampled in self.sample.records:
            hits = self._columns.get(Key.of("empirical_coverage", sampled.coverage))
            if sampled.metric != "coverage_drift" or hits is None:
                continue
            if not self._one_claim(sampled.coverage):
                continue
            claimed = self._columns.get(Key.of(CLAIMED, sampled.coverage))
            mass = np.concatenate([sums.sums[:, hits], sums.mass - sums.sums[:, hits]])
            filled = mass > 0.0
            units = np.tile(codes, 2)[filled]
            arrays: dict[str, Any] = {
                "covered": np.repeat([1.0, 0.0], len(codes))[filled],
                "units_of_time": units,
                "times": Categories(units, starts),
            }
            if claimed is not None:
                arrays["claim"] = np.tile(sums.sums[:, claimed] / sums.mass, 2)[filled]
            (record,) = evaluate(
                self._entries(mass[filled]),
                coverages=(sampled.coverage,),
                metrics=["coverage_drift"],
                confidence=self.confidence,
                seed=self.seed,
                given=arrays,
            ).records
            records[sampled.key] = replace(record, n=self.n, source=sampled.source)
        return records

    def calibration_curves(self) -> list[Curve]:
        """The calibration curve and the PIT, of all rows."""
        if self._pit is None:
            return []
        return [
            curve
            for draw in calibration.TOPIC.curves
            for curve in attempt(
                "curves of the PIT", partial(draw, self._pit, self.confidence), lambda _: []
            )
        ]

    # Groups.

    def in_groups(self, sampled: GroupReport) -> tuple[list[Record], GroupReport]:
        """Every mean and test in groups of all rows; what the sample's report tells beside."""
        if not self.totals.cells.names or self._importance:
            return [], sampled
        entries, means = self._cells
        divided = groupings(entries)[0]
        records: list[Record] = []
        tests, tested = GroupReport((), None, ()), set[Key]()
        for grouping in divided:
            of_groups = self._means_of(grouping)
            for key, column in self._columns.items():
                if key in self._exact:
                    record, metric = self._exact[key], catalogue()[key.metric]
                    records += records_of_means(
                        of_groups(column, metric), grouping, record, self.confidence
                    )
        for key, column in self._columns.items():
            covered = key in self._exact and key.metric == "empirical_coverage"
            if covered and self._one_claim(key.at):
                tests = compare_groups(
                    self._coverage_in_cells(key, means[:, column]),
                    divided,
                    confidence=self.confidence,
                    seed=self.seed,
                )
                tested |= {record.key for record in tests.records}
                records += tests.records
        exact = {(record.key, record.group) for record in records}
        in_sample = (
            r for r in sampled.records if r.key not in tested and (r.key, r.group) not in exact
        )
        notes = (f"{name}: {why}" for name, why in self.totals.cells.left_out.items())
        table = sampled.table if tests.table is None else tests.table
        return records, GroupReport(tuple(in_sample), table, (*sampled.notes, *notes))

    def _means_of(self, grouping: Grouping) -> Callable[[int, Metric], GroupMeans]:
        """How the means of a column in each group follow."""
        entries, means = self._cells
        if self.units is not None:
            return lambda column, metric: group_means(entries, grouping, means[:, column], metric)
        moments = self.totals.moments.placed(grouping.codes, len(grouping.labels))

        def mean_of(column: int, metric: Metric) -> GroupMeans:
            second, third = moments.second[:, column], moments.third[:, column]
            share = any(form.reduce == "share" for form in metric.forms)
            spread = None if share else spread_of_sums(moments.mass, second, third)
            return GroupMeans(metric, moments.mass, moments.mean[:, column], moments.mass, spread)

        return mean_of

    def _one_claim(self, coverage: float) -> bool:
        """Whether all rows of a cell claim one coverage; else tests need what each row claims."""
        claimed = self._columns.get(Key.of(CLAIMED, coverage))
        if claimed is None:
            return True
        moments = self.totals.moments
        return bool((moments.second[:, claimed] <= _MAX_VARIANCE_OF_EQUALS * moments.mass).all())

    def _coverage_in_cells(self, key: Key, values: FloatArray) -> Evaluation:
        """The coverage of each cell, with what the tests of groups ask."""
        entries, means = self._cells
        record, scores = self._exact[key], {key: values}
        arrays: dict[str, Any] = {}
        width, claimed = (
            self._columns.get(Key.of(name, key.at)) for name in ("mean_width", CLAIMED)
        )
        if width is not None:
            scores[Key("mean_width", key.coverage)] = means[:, width]
        if claimed is not None:
            claims = np.clip(means[:, claimed], 0.0, 1.0)
            arrays = {
                "claimed": claims,
                "claim": claims,
                "expected_coverage": shift_shares(
                    claims, min(record.value, 1.0), entries.multiplicities
                ),
            }
        elif key.coverage is None:
            arrays = {"expected_coverage": np.full(entries.n, record.value)}
        view = View(entries, seed=self.seed, confidence=self.confidence, given=arrays)
        return Evaluation(entries, view, (key.at,), (record,), scores)


# Variance of shares that are equal but for rounding: the square of 10⁻¹⁰, which sums of many rows
# lose.
_MAX_VARIANCE_OF_EQUALS = 1e-20


def _by_histogram(*, tests: bool) -> list[str]:
    """The measures that the histogram of the PIT tells, with tests or without."""
    return [
        name
        for name, entry in catalogue().items()
        if entry.merges == "histogram" and (tests or entry.units != "p-value")
    ]


def _widened(record: Record, wider: float) -> Record:
    """A record of independent rows as one of rows that go together, whose errors are wider."""
    target = 0.0 if math.isnan(record.target) else record.target
    room, p = record.null_upper - target, record.p
    if p == p and room > 0.0:
        p = float(2.0 * special.ndtr(-Z_95 * abs(record.value - target) / room / wider))
    return replace(
        record,
        standard_error=wider * record.standard_error,
        lower=record.value - wider * (record.value - record.lower),
        upper=record.value + wider * (record.upper - record.value),
        null_lower=target - wider * (target - record.null_lower),
        null_upper=target + wider * room,
        p=p,
    )
