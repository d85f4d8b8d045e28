"""From totals to records: what is known of all rows takes the place of what a sample tells.

Two weighted values a cell have the moments of its rows, so the formulas on rows, given these
values with their weights, make the same records as all rows would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from howsure.stats.estimate import Z_95, Estimate, spread_of
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
from howsure.topics.groups import Grouping, GroupReport, compare_groups, groupings, means_in_groups
from howsure.verdict.nulls import with_nulls

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
        if sums.by != "time":
            return sums, np.unique(sums.key, return_inverse=True)[1].astype(np.int64)
        dependence = self.dependence
        if isinstance(dependence, str) or not dependence.doubted:
            return None
        return sums, sums.key - sums.key.min()  # a grid: gaps count

    @cached_property
    def _by_cell(self) -> tuple[ClusterSums, IntArray] | None:
        """Entries by unit and cell, and the unit of each; None of plain rows."""
        if self.units is None or self._importance:
            return None
        return self._coded(self.totals.by_cell())

    # Records of all rows.

    def measured(self) -> Evaluation:
        """The sample's evaluation, with the records of all rows where there are some."""
        records = [self._of_all.get(record.key, record) for record in self.sample.records]
        return replace(self.sample, records=tuple(records))

    @cached_property
    def _of_all(self) -> dict[Key, Record]:
        """Every record of all rows."""
        return {**self._exact, **self._by_histogram(), **self._by_block()}

    @cached_property
    def _columns(self) -> dict[str, int]:
        """The columns of the totals, by what they hold."""
        return {str(key): column for column, key in enumerate(self.totals.keys)}

    def _column(self, name: str, coverage: float) -> int | None:
        return self._columns.get(str(Key.of(name, coverage)))

    def told(self, sampled: Sequence[Record] = ()) -> tuple[tuple[Record, ...], GroupReport]:
        """The sample's records, those of all rows in place of them where there are some; groups.

        `sampled` is what the sample tells of groups; without a table, so is the report of these.
        """
        of_totals, grouped = self._of_all, self._groups()
        of_sample = [record for record in self.sample.records if record.key not in of_totals]
        of_all, in_groups = with_nulls(
            replace(self.sample, records=tuple(of_totals.values())),
            () if grouped is None else grouped.records,
            seed=self.seed,
            dependence=self.dependence,
            n=self.n,
        )
        by_key = {record.key: record for record in (*of_sample, *of_all)}
        records = tuple(by_key[record.key] for record in self.sample.records)
        known_groups = {(record.key, record.group) for record in in_groups}
        sampled_groups = (r for r in sampled if (r.key, r.group) not in known_groups)
        in_groups = (*in_groups, *sampled_groups)
        return records, replace(grouped or GroupReport((), None, ()), records=in_groups)

    @cached_property
    def _exact(self) -> dict[Key, Record]:
        """Records of means, shares and statistics of sums."""
        records = {}
        wanted = {record.key for record in self.sample.records}
        for column, key in enumerate(self.totals.keys):
            if key in wanted:
                records[key] = self._mean(key, column)
        for record in self.sample.records:
            key = record.key
            if str(key) in self.totals.joints:
                records[key] = self._statistic(key)
        return records

    @cached_property
    def _every(self) -> Moments:
        """The moments of all cells together."""
        moments = self.totals.moments
        return moments.placed(np.zeros(len(moments.mass), dtype=np.int64), 1)

    def _mean(self, key: Key, column: int) -> Record:
        value = float(self._every.mean[0, column])
        if not math.isfinite(value):
            return self._record(key, Estimate(value, reason="some rows have an infinite score"))
        rows, values = self.rows_of(key, column, self._every)
        return self._record(key, Estimate(value, values - value), rows)

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
        if self.units is None:
            values, mass = joint.points(slopes)
            rows = self._rows(values, mass)
            return self._record(key, replace(estimate, influence=values), rows)
        sums_within, codes = self.units
        sums = sums_within.sums[:, self.totals.joint_columns()[str(key)]][:, : len(slopes)]
        values = (
            (sums - sums_within.mass[:, None] * joint.mean[: len(slopes)])
            @ slopes
            / sums_within.mass
        )
        rows = self._rows(values, sums_within.mass, codes)
        record = self._record(key, replace(estimate, influence=values), rows)
        if math.isnan(record.p) or not record.standard_error > 0.0:
            return record
        points, mass = joint.points(slopes)
        units = codes if rows.chronology is None else rows.chronology
        sd = math.sqrt(float(mass @ np.square(points)) / record.n)
        spread = spread_of(values, rows.weights, units)
        wider = wider_than(sd / math.sqrt(record.n), spread, units)
        null = 0.0 if math.isnan(record.null) else record.null
        return replace(
            record,  # with the p-value and the perfect model's range of rows that go together
            p=p_of_units(record.value, sd, math.hypot(sd, record.value), spread, units),
            null_lower=null - wider * (null - record.null_lower),
            null_upper=null + wider * (record.null_upper - null),
        )

    def rows_of(
        self, key: Key, place: int, moments_of: Moments | None = None
    ) -> tuple[EvalSet, FloatArray]:
        """Weighted rows that stand for all in the mean of a column, and their scores."""
        by_unit = self._by_cell if moments_of is None else self.units or self._by_cell
        if by_unit is not None:
            sums, codes = by_unit
            values = sums.sums[:, place] / sums.mass
            cell = sums.cell if by_unit is not self.units else None
            return self._rows(values, sums.mass, codes, cell), values
        moments = self.totals.moments if moments_of is None else moments_of
        if _is_share(key.metric):
            hits = moments.mean[:, place] * moments.mass
            mass = np.concatenate([hits, moments.mass - hits])
            mass = np.round(mass) if not self._importance else mass
            values = np.repeat([1.0, 0.0], len(hits))
        else:
            values, mass = moments.points(place)
        cells = np.tile(np.arange(len(moments.mass)), 2)
        filled = mass > 0.0
        values = values[filled]
        return self._rows(values, mass[filled], cells=cells[filled]), values

    def _rows(
        self,
        values: FloatArray,
        mass: FloatArray,
        units: IntArray | None = None,
        cells: IntArray | None = None,
    ) -> EvalSet:
        groups: Mapping[str, Categories] = {}
        if cells is not None and len(self.totals.cells.codes) > int(cells.max(initial=0)):
            groups = {
                name: column.take(cells) for name, column in self.totals.cells.groups().items()
            }
        named, times = None, None
        by = "" if self.units is None else self.units[0].by
        if units is not None and by == "time":
            times = Chronology(units)
        elif units is not None and by == "clusters":
            named = Categories(units, np.arange(1, int(units.max()) + 2))
        return EvalSet(
            y=values,
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
            rows or EvalSet(y=np.zeros(1), model=self.totals.model),
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
        weights = Weights(counts[filled] * (self.n / self.totals.mass))
        rows = EvalSet(y=pit, weights=weights, model=self.totals.model)
        arrays: dict[str, Any] = {"cdf": pit, "cdf_left": pit, "left": None}
        law = self.sample.view.held(Distribution)
        if law is not None and isinstance(law.law, NormalLaw):
            scores_at = by_normal_scores(np.stack([pit, pit]))
            arrays["components"] = pit_components(
                lambda b, k: scores_at(b, k)[0], legendre, weights=weights
            )
        names = _by_histogram(tests=not self._importance and self.sample.evalset.cluster is None)
        return evaluate(
            rows, metrics=names, confidence=self.confidence, seed=self.seed, given=arrays
        )

    def _between_quantiles(self) -> Evaluation | None:
        """The rows between any two quantiles of a table of quantiles, as weighted rows."""
        counts, table = self.totals.among, self.sample.view.held(Quantiles)
        if counts is None or table is None:
            return None
        below = np.flatnonzero(counts > 0.0).astype(np.float64)
        weights = Weights(counts[counts > 0.0] * (self.n / self.totals.mass))
        rows = EvalSet(y=below, weights=weights, model=self.totals.model)
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
        blocks_of_time, times = self.totals.units, self.sample.evalset.time
        if blocks_of_time is None or blocks_of_time.by != "time" or times is None:
            return {}
        records = {}
        for sampled in self.sample.records:
            hits = self._column("empirical_coverage", sampled.coverage)
            if sampled.metric != "coverage_drift" or hits is None:
                continue
            if not self._one_claim(sampled.coverage):
                continue
            claimed = self._column(CLAIMED, sampled.coverage)
            mass = np.concatenate(
                [blocks_of_time.sums[:, hits], blocks_of_time.mass - blocks_of_time.sums[:, hits]]
            )
            filled = mass > 0.0
            blocks, codes = np.unique(blocks_of_time.key, return_inverse=True)
            starts: Any = blocks * blocks_of_time.width
            if times.dtype.kind == "M":
                starts = (starts * 1e6).astype("datetime64[us]")
            units = np.tile(codes, 2)[filled]
            arrays: dict[str, Any] = {
                "covered": np.repeat([1.0, 0.0], len(codes))[filled],
                "units_of_time": units,
                "times": Categories(units, starts),
            }
            if claimed is not None:
                arrays["claim"] = np.tile(blocks_of_time.sums[:, claimed] / blocks_of_time.mass, 2)[
                    filled
                ]
            rows = EvalSet(
                y=arrays["covered"],
                weights=Weights(mass[filled], self.weights_kind),
                model=self.totals.model,
                fewest=self.sample.evalset.fewest,
            )
            (record,) = evaluate(
                rows,
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

    def _groups(self) -> GroupReport | None:
        """Every mean in every group, and the tests of groups."""
        if not self.totals.cells.names or self._importance:
            return None
        shown: GroupReport | None = None
        records: list[Record] = []
        divided: tuple[Grouping, ...] = ()
        for column, key in enumerate(self.totals.keys):
            if key not in self._exact:
                continue
            rows, values = self.rows_of(key, column)
            evaluation = self._in_cells(rows, key, values, self._exact[key])
            divided = groupings(rows)[0]
            for grouping in divided:
                records.extend(means_in_groups(evaluation, grouping, self.confidence))
            if key.metric == "empirical_coverage" and self._one_claim(key.at):
                tests = compare_groups(
                    evaluation, divided, confidence=self.confidence, seed=self.seed
                )
                records.extend(tests.records)
                shown = tests
        notes = tuple(f"{name}: {why}" for name, why in self.totals.cells.left_out.items())
        return GroupReport(tuple(records), None if shown is None else shown.table, notes)

    def _one_claim(self, coverage: float) -> bool:
        """Whether all rows of a cell claim one coverage; else tests need what each row claims."""
        moments, claimed = self.totals.moments, self._column(CLAIMED, coverage)
        if claimed is None:
            return True
        return bool((moments.second[:, claimed] <= _MAX_VARIANCE_OF_EQUALS * moments.mass).all())

    def _in_cells(self, rows: EvalSet, key: Key, values: FloatArray, record: Record) -> Evaluation:
        """The evaluation of rows that stand for all, with what the tests of groups ask."""
        scores = {key: values}
        arrays: dict[str, Any] = {}
        if key.metric == "empirical_coverage":
            width, claimed = (self._column(name, key.at) for name in ("mean_width", CLAIMED))
            if width is not None:
                scores[Key("mean_width", key.coverage)] = self._of_cells(rows, width)
            if claimed is not None:
                claims = np.clip(self._of_cells(rows, claimed), 0.0, 1.0)
                weights = rows.multiplicities
                expected_coverage = shift_shares(claims, min(record.value, 1.0), weights)
                arrays = {
                    "claimed": claims,
                    "claim": claims,
                    "expected_coverage": expected_coverage,
                }
            elif key.coverage is None:
                arrays = {"expected_coverage": np.full(rows.n, record.value)}
        view = View(rows, seed=self.seed, confidence=self.confidence, given=arrays)
        return Evaluation(rows, view, (key.at,), (record,), scores)

    def _of_cells(self, rows: EvalSet, column: int) -> FloatArray:
        """For each row that stands for others the mean of a column in its cell."""
        totals = self.totals
        if self._by_cell is not None:
            sums = self._by_cell[0]
            return np.asarray(sums.sums[:, column] / sums.mass)
        width = [len(labels) for labels in totals.cells.labels]
        joint = np.zeros(rows.n, dtype=np.int64)
        order = np.zeros(len(totals.cells.codes), dtype=np.int64)
        for column_of, name in enumerate(totals.cells.names):
            labels = {label: code for code, label in enumerate(totals.cells.labels[column_of])}
            moved = np.array([labels[label] for label in rows.groups[name].labels.tolist()])
            joint = joint * width[column_of] + moved[rows.groups[name].codes]
            order = order * width[column_of] + totals.cells.codes[:, column_of]
        ranked = np.argsort(order)
        cell = ranked[np.searchsorted(order[ranked], joint)]
        return np.asarray(totals.moments.mean[cell, column])


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


def _is_share(name: str) -> bool:
    return any(form.reduce == "share" for form in catalogue()[name].forms)


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
