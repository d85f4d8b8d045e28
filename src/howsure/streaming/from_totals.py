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
        held = self.totals
        return held.mass**2 / held.squares if self._importance else held.mass

    @property
    def _importance(self) -> bool:
        weights = self.sample.evalset.weights
        return weights is not None and weights.kind == "importance"

    @property
    def weights_kind(self) -> WeightsKind:
        """What weights mean; plain rows are rows of frequency 1."""
        return "importance" if self._importance else "frequency"

    @cached_property
    def units(self) -> tuple[IntArray, str] | None:
        """The unit of each entry of the totals' units, and what units are; None of plain rows."""
        return None if self.totals.units is None else self._coded(self.totals.units)

    def _coded(self, held: ClusterSums) -> tuple[IntArray, str] | None:
        codes: IntArray = np.unique(held.key, return_inverse=True)[1].astype(np.int64)
        if held.by != "time":
            return codes, held.by
        found = self.dependence
        if isinstance(found, str) or not found.doubted:
            return None
        return held.key - held.key.min(), "time"  # a grid: gaps count

    @cached_property
    def _by_cell(self) -> tuple[ClusterSums, IntArray] | None:
        """Entries by unit and cell, and the unit of each; None of plain rows."""
        if self.units is None or self._importance:
            return None
        held = self.totals.by_cell()
        coded = self._coded(held)
        return None if coded is None else (held, coded[0])

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
        known, grouped = self._of_all, self._groups()
        rest = [record for record in self.sample.records if record.key not in known]
        of_all, in_groups = with_nulls(
            replace(self.sample, records=tuple(known.values())),
            () if grouped is None else grouped.records,
            seed=self.seed,
            dependence=self.dependence,
            n=self.n,
        )
        found = {record.key: record for record in (*rest, *of_all)}
        records = tuple(found[record.key] for record in self.sample.records)
        known_groups = {(record.key, record.group) for record in in_groups}
        others = (r for r in sampled if (r.key, r.group) not in known_groups)
        in_groups = (*in_groups, *others)
        return records, replace(grouped or GroupReport((), None, ()), records=in_groups)

    @cached_property
    def _exact(self) -> dict[Key, Record]:
        """Records of means, shares and statistics of sums."""
        found = {}
        asked = {record.key for record in self.sample.records}
        for place, key in enumerate(self.totals.keys):
            if key in asked:
                found[key] = self._mean(key, place)
        for record in self.sample.records:
            key = record.key
            if str(key) in self.totals.joints:
                found[key] = self._statistic(key)
        return found

    @cached_property
    def _every(self) -> Moments:
        """The moments of all cells together."""
        held = self.totals.moments
        return held.placed(np.zeros(len(held.mass), dtype=np.int64), 1)

    def _mean(self, key: Key, place: int) -> Record:
        value = float(self._every.mean[0, place])
        if not math.isfinite(value):
            return self._record(key, Estimate(value, reason="some rows score infinity"))
        rows, values = self.rows_of(key, place, self._every)
        return self._record(key, Estimate(value, values - value), rows)

    def _statistic(self, key: Key) -> Record:
        held = self.totals.joints[str(key)]
        counted = held.counting_as(self.n) if self._importance else held
        found, slopes = from_sums()[key.metric].value(counted)
        if slopes is not None and not held.is_representable():
            told = (
                "no interval: the numbers are too large or too small for their cubes to be summed"
            )
            found, slopes = replace(found, reason=told), None
        if slopes is None or not math.isfinite(found.value):
            return self._record(key, found)
        if self.units is None:
            values, mass = held.points(slopes)
            rows = self._rows(values, mass)
            return self._record(key, replace(found, influence=values), rows)
        own = self.totals.units
        assert own is not None
        sums = own.sums[:, self.totals.joint_columns()[str(key)]][:, : len(slopes)]
        values = (sums - own.mass[:, None] * held.mean[: len(slopes)]) @ slopes / own.mass
        rows = self._rows(values, own.mass, self.units[0])
        record = self._record(key, replace(found, influence=values), rows)
        return self._dependent(record, held.points(slopes), rows, values)

    def _dependent(
        self,
        record: Record,
        points: tuple[FloatArray, FloatArray],
        rows: EvalSet,
        influence: FloatArray,
    ) -> Record:
        """With the p-value and the perfect model's range of rows that go together."""
        if math.isnan(record.p) or not record.standard_error > 0.0:
            return record
        values, mass = points
        assert self.units is not None
        units = self.units[0] if rows.chronology is None else rows.chronology
        sd = math.sqrt(float(mass @ np.square(values)) / record.n)
        spread = spread_of(influence, rows.weights, units)
        wider = wider_than(sd / math.sqrt(record.n), spread, units)
        null = 0.0 if math.isnan(record.null) else record.null
        return replace(
            record,
            p=p_of_units(record.value, sd, math.hypot(sd, record.value), spread, units),
            null_lower=null - wider * (null - record.null_lower),
            null_upper=null + wider * (record.null_upper - null),
        )

    def rows_of(
        self, key: Key, place: int, held: Moments | None = None
    ) -> tuple[EvalSet, FloatArray]:
        """Weighted rows that stand for all in the mean of a column, and their scores."""
        if self.units is not None and held is not None:
            own = self.totals.units
            assert own is not None
            values = own.sums[:, place] / own.mass
            return self._rows(values, own.mass, self.units[0]), values
        if self._by_cell is not None:
            own, codes = self._by_cell
            values = own.sums[:, place] / own.mass
            return self._rows(values, own.mass, codes, own.cell), values
        moments = self.totals.moments if held is None else held
        if _is_share(key.metric):
            hits = moments.mean[:, place] * moments.mass
            mass = np.concatenate([hits, moments.mass - hits])
            mass = np.round(mass) if not self._importance else mass
            values = np.repeat([1.0, 0.0], len(hits))
        else:
            values, mass = moments.points(place)
        cells = np.tile(np.arange(len(moments.mass)), 2)
        kept = mass > 0.0
        values = values[kept]
        return self._rows(values, mass[kept], cells=cells[kept]), values

    def _rows(
        self,
        values: FloatArray,
        mass: FloatArray,
        units: IntArray | None = None,
        cells: IntArray | None = None,
    ) -> EvalSet:
        groups: Mapping[str, Categories] = {}
        if cells is not None and len(self.totals.cells.codes) > int(cells.max(initial=0)):
            groups = {name: held.take(cells) for name, held in self.totals.cells.groups().items()}
        named, times = None, None
        by = "" if self.units is None else self.units[1]
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

    def _record(self, key: Key, found: Estimate, rows: EvalSet | None = None) -> Record:
        metric = catalogue()[key.metric]
        view = self.sample.view
        form = find_form(view, metric, key.at, without=sorting_arrays())
        found = self._claimed(metric, key.at, noted(found, form))
        tail = None
        if form.squares:
            tail = tail_of(view, form, key.at)
        bundles = None
        if self.units is not None and self.units[1] == "rows":
            bundles = self.units[0]
        record = record_of(
            metric,
            replace(found, n=self.n),
            rows or EvalSet(y=np.zeros(1), model=self.totals.model),
            coverage=key.at,
            confidence=self.confidence,
            share=form.reduce == "share",
            source=self.totals.sources[str(key)],
            tail=tail,
            bundles=bundles,
        )
        return supposed(view, metric, [record])[0]

    def _claimed(self, metric: Metric, coverage: float, found: Estimate) -> Estimate:
        told = self.totals.claims.get(str(float(coverage)))
        if not metric.expected or told is None:
            return found
        ends = dict(zip(_SIDES, told.mean.reshape(3, 2), strict=True))
        ends["covered"] = 1.0 - ends["missed"][::-1]
        return beside_claims(metric, coverage, found, *map(float, ends[metric.expected]))

    # The histogram of the PIT.

    @cached_property
    def _pit(self) -> Evaluation | None:
        """The cells of the PIT's histogram as weighted rows, evaluated."""
        counts = self.totals.pit
        if counts is None:
            return self._between_quantiles()
        kept = np.flatnonzero(counts > 0.0)
        pit = (kept + 0.5) / PIT_CELLS
        weights = Weights(counts[kept] * (self.n / self.totals.mass))
        rows = EvalSet(y=pit, weights=weights, model=self.totals.model)
        given: dict[str, Any] = {"cdf": pit, "cdf_left": pit, "left": None}
        law = self.sample.view.held(Distribution)
        if law is not None and isinstance(law.law, NormalLaw):
            place = by_normal_scores(np.stack([pit, pit]))
            given["components"] = pit_components(
                lambda b, k: place(b, k)[0], legendre, weights=weights
            )
        names = _by_histogram(tests=not self._importance and self.sample.evalset.cluster is None)
        return evaluate(
            rows, metrics=names, confidence=self.confidence, seed=self.seed, given=given
        )

    def _between_quantiles(self) -> Evaluation | None:
        """The rows between any two quantiles of a table of quantiles, as weighted rows."""
        counts, table = self.totals.among, self.sample.view.held(Quantiles)
        if counts is None or table is None:
            return None
        place = np.flatnonzero(counts > 0.0).astype(np.float64)
        weights = Weights(counts[counts > 0.0] * (self.n / self.totals.mass))
        rows = EvalSet(y=place, weights=weights, model=self.totals.model)
        edges = np.tile(np.arange(len(table.levels)) + 0.5, (len(place), 1))
        return evaluate(
            rows,
            metrics=["calibration_error"],
            confidence=self.confidence,
            seed=self.seed,
            given={"y": place, "quantiles": edges, "levels": table.levels},
        )

    def _by_histogram(self) -> dict[Key, Record]:
        if self._pit is None:
            return {}
        wider = self._wider()
        units, clusters = self.sample.evalset.units, self.sample.evalset.cluster
        cells = self.totals.pit is not None
        own = {record.key: record for record in self.sample.records}
        found = {}
        for record in self._pit.records:
            mine = own.get(record.key)
            if mine is None or math.isnan(record.value):
                continue
            reason = "approximate: importance weights" if self._importance else ""
            if units is not None and record.key in wider:
                if not cells:  # an error that the sample tells is no error of all rows
                    continue
                record = _widened(record, wider[record.key])
                reason = "its error grows as that of the sample, whose rows follow each other"
                if clusters is not None and not isinstance(units, Chronology):
                    reason = f"its error is that of {len(clusters.labels):,} clusters of the sample"
            found[record.key] = replace(
                record,
                source=mine.source,
                reason="; ".join(filter(None, (record.reason, reason))),
                exact="histogram" if cells else "rows",
                added_error=1.0 / PIT_CELLS if cells else 0.0,
                n=self.n,
            )
        return found

    def _wider(self) -> dict[Key, float]:
        """By what errors exceed those of independent rows, by the clusters of the sample."""
        held = self.sample.evalset
        if held.units is None:
            return {}
        names = {r.metric for r in self.sample.records} & {*_by_histogram(tests=False)}
        plain = evaluate(
            replace(held, cluster=None, chronology=None), metrics=sorted(names), seed=self.seed
        )
        own = {record.key: record.standard_error for record in self.sample.records}
        ratios = {r.key: own[r.key] / r.standard_error for r in plain.records}
        return {name: max(ratio, 1.0) for name, ratio in ratios.items() if math.isfinite(ratio)}

    # Time.

    def _by_block(self) -> dict[Key, Record]:
        """Drift of coverage, by the hits in each block of time."""
        held, times = self.totals.units, self.sample.evalset.time
        if held is None or held.by != "time" or times is None:
            return {}
        found = {}
        for own in self.sample.records:
            hits = self._column("empirical_coverage", own.coverage)
            if own.metric != "coverage_drift" or hits is None:
                continue
            if not self._one_claim(own.coverage):
                continue
            claimed = self._column(CLAIMED, own.coverage)
            mass = np.concatenate([held.sums[:, hits], held.mass - held.sums[:, hits]])
            kept = mass > 0.0
            blocks, codes = np.unique(held.key, return_inverse=True)
            starts: Any = blocks * held.width
            if times.dtype.kind == "M":
                starts = (starts * 1e6).astype("datetime64[us]")
            place = np.tile(codes, 2)[kept]
            given: dict[str, Any] = {
                "covered": np.repeat([1.0, 0.0], len(codes))[kept],
                "units_of_time": place,
                "times": Categories(place, starts),
            }
            if claimed is not None:
                given["claim"] = np.tile(held.sums[:, claimed] / held.mass, 2)[kept]
            rows = EvalSet(
                y=given["covered"],
                weights=Weights(mass[kept], self.weights_kind),
                model=self.totals.model,
                fewest=self.sample.evalset.fewest,
            )
            (record,) = evaluate(
                rows,
                coverages=(own.coverage,),
                metrics=["coverage_drift"],
                confidence=self.confidence,
                seed=self.seed,
                given=given,
            ).records
            found[own.key] = replace(record, n=self.n, source=own.source)
        return found

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
        for place, key in enumerate(self.totals.keys):
            if key not in self._exact:
                continue
            rows, values = self.rows_of(key, place)
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
        return bool((moments.second[:, claimed] <= _ROUNDING * moments.mass).all())

    def _in_cells(self, rows: EvalSet, key: Key, values: FloatArray, record: Record) -> Evaluation:
        """The evaluation of rows that stand for all, with what the tests of groups ask."""
        scores = {key: values}
        given: dict[str, Any] = {}
        if key.metric == "empirical_coverage":
            width, claimed = (self._column(name, key.at) for name in ("mean_width", CLAIMED))
            if width is not None:
                scores[Key("mean_width", key.coverage)] = self._of_cells(rows, width)
            if claimed is not None:
                told = np.clip(self._of_cells(rows, claimed), 0.0, 1.0)
                weights = rows.multiplicities
                expected_coverage = shift_shares(told, min(record.value, 1.0), weights)
                given = {"claimed": told, "claim": told, "expected_coverage": expected_coverage}
            elif key.coverage is None:
                given = {"expected_coverage": np.full(rows.n, record.value)}
        view = View(rows, seed=self.seed, confidence=self.confidence, given=given)
        return Evaluation(rows, view, (key.at,), (record,), scores)

    def _of_cells(self, rows: EvalSet, column: int) -> FloatArray:
        """For each row that stands for others the mean of a column in its cell."""
        held = self.totals
        if self._by_cell is not None:
            own = self._by_cell[0]
            return np.asarray(own.sums[:, column] / own.mass)
        width = [len(labels) for labels in held.cells.labels]
        joint = np.zeros(rows.n, dtype=np.int64)
        order = np.zeros(len(held.cells.codes), dtype=np.int64)
        for place, name in enumerate(held.cells.names):
            labels = {label: code for code, label in enumerate(held.cells.labels[place])}
            moved = np.array([labels[label] for label in rows.groups[name].labels.tolist()])
            joint = joint * width[place] + moved[rows.groups[name].codes]
            order = order * width[place] + held.cells.codes[:, place]
        ranked = np.argsort(order)
        cell = ranked[np.searchsorted(order[ranked], joint)]
        return np.asarray(held.moments.mean[cell, column])


_ROUNDING = 1e-20
"""Variance of shares that are equal but for rounding."""


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
